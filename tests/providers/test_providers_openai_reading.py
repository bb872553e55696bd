"""system=openai: what its responses say: text, citations, dollars, and whatever a hostile server sends."""

from __future__ import annotations

import asyncio
import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from fakes.hostile_json import replies
from fakes.openai_exchanges import (
    OWN,
    cite,
    created,
    ended,
    file_cited,
    got,
    ran,
    response,
    run,
    said,
    used,
)
from fakes.replay_server import (
    ReplayServer,
    file_task,
    make_system,
)
from hypothesis import given
from hypothesis import strategies as st

from adapters import _openai
from core.errors import CallError
from core.jobs import Ask, JobSystem, Provider
from core.jobs.outcome import submission_of
from core.model import Citation

# text and citations


@pytest.mark.parametrize(
    ("messages", "text"),
    [
        ([said("I look around.", phase="commentary"), said("It is so.", phase="final_answer")], "It is so."),
        ([said("I look around.", phase="commentary"), said("It is so.")], "It is so."),
        ([said("I look around.", phase="commentary")], "I look around."),
        ([said("One."), said(""), said("Two.")], "One.\n\nTwo."),
        ([said("A.", phase="final_answer"), said("B."), said("C.", phase="final_answer")], "A.\n\nC."),
    ],
)
def test_the_final_answer_is_the_text(messages: list[dict[str, Any]], text: str) -> None:
    assert _openai.answer_in(messages)[0] == text


@pytest.mark.parametrize(
    ("annotation", "found"),
    [
        (cite("https://a.example/?utm_source=openai", 0, 3), ("https://a.example/?utm_source=openai", 7, 10)),
        (cite("https://a.example/", 3, 3), ("https://a.example/", None, None)),
        (cite("https://a.example/", 1, 99), ("https://a.example/", None, None)),
        (cite("https://a.example/", -1, 2), ("https://a.example/", None, None)),
        (cite("https://a.example/", True, 2), ("https://a.example/", None, None)),
        (cite("https://a.example/", "0", 2), ("https://a.example/", None, None)),
        (cite("https://a.example/", None, None, title=7), ("https://a.example/", None, None)),
        (cite("", 0, 2), None),
        ({"type": "file_citation", "url": "https://a.example/"}, None),
        ("https://a.example/", None),
        (None, None),
    ],
)
def test_passages_of_citations(annotation: Any, found: tuple[str, int | None, int | None] | None) -> None:
    _, citations = _openai.answer_in([said("First"), said("Two", annotation)])
    assert [(one.url, one.start, one.end) for one in citations] == ([] if found is None else [found])


def test_tracking_is_taken_off_and_the_search_results_follow(tmp_path: Path) -> None:
    search = {
        "type": "web_search_call",
        "action": {
            "type": "search",
            "sources": [{"url": "https://b.example/"}, {"url": "https://a.example/p?q=1"}, 7],
        },
    }
    cited = said("See there.", cite("https://a.example/p?q=1&utm_source=openai", 0, 3))
    result, _ = run(tmp_path, [created(), ended(search, cited)])
    assert got(result).citations == (
        Citation(url="https://a.example/p?q=1", title="T", start=0, end=3),
        Citation(url="https://b.example/"),
    )


def test_addresses_in_the_text_stand_in_where_nothing_is_cited(tmp_path: Path) -> None:
    result, _ = run(tmp_path, [created(), ended(said("See https://a.example/p."))])
    assert [citation.url for citation in got(result).citations] == ["https://a.example/p"]


def test_items_of_unknown_types_are_noted(tmp_path: Path) -> None:
    odd = [{"type": "hologram"}, {"type": "hologram"}, {"type": ["x"]}, "text", None]
    result, _ = run(tmp_path, [created(), ended(*odd, said("Yes."))])
    assert got(result).status == "completed"
    assert got(result).settings["echoed"]["notes"] == [
        'an output item of type "hologram"',
        "an output item of type \"['x']\"",
    ]


# money


SEARCH: dict[str, Any] = {"type": "web_search_call"}


@pytest.mark.parametrize(
    ("body", "usd", "parts"),
    [
        (response(usage=used(1_000, 100)), 0.003, {"input": 0.002, "output": 0.001}),
        (
            response(usage=used(1_000, 100, cached=400, written=100)),
            0.00224,
            {"input": 0.001, "cached_input": 0.00004, "cache_write": 0.0002, "output": 0.001},
        ),
        (response(usage=used(100, 0, cached=900, written=900)), 0.00001, {"cached_input": 0.00001}),
        (response(usage=used(272_000, 0)), 0.544, {"input": 0.544}),
        (response(usage=used(272_001, 1_000)), 1.103004, {"input": 1.088004, "output": 0.015}),
        (response(output=[SEARCH, SEARCH], usage=used(0, 0)), 0.02, {"web_search": 0.02}),
        (
            response(output=[SEARCH], usage=used(0, 0), tool_usage={"web_search": {"num_requests": 7}}),
            0.07,
            {"web_search": 0.07},
        ),
        (response(output=[ran("a"), ran("b"), ran("a")], usage=used(0, 0)), 0.06, {"container": 0.06}),
        (response(usage=used(1_000, 100), service_tier="flex"), 0.0015, {"input": 0.001, "output": 0.0005}),
        (response(usage=used(1_000, 100), service_tier="priority"), None, {}),
        (
            response(usage=used(1_000, 100), model="gpt-6.1-sol-2026-10-01"),
            0.003,
            {"input": 0.002, "output": 0.001},
        ),
        (response(usage=used(1_000, 100), model="gpt-99"), None, {}),
        (response(output=[SEARCH], usage=None), None, {"web_search": 0.01}),
        (response(usage=used("many", 100)), None, {}),
        (response(usage=used(-1, 100)), None, {}),
        (response(usage=used(10**400, 100)), None, {}),
    ],
)
def test_costs(body: dict[str, Any], usd: float | None, parts: dict[str, float]) -> None:
    paid, doubts = _openai.paid(body, model="gpt-6.1-sol", price=None)
    assert paid.usd == (None if usd is None else pytest.approx(usd, rel=1e-12))
    assert paid.source == ("unknown" if usd is None else "computed")
    assert paid.components == pytest.approx(parts)
    assert len(doubts) == (1 if body["usage"] and body["usage"]["input_tokens"] == 272_001 else 0)


def test_a_configured_price_goes_before_the_list(tmp_path: Path) -> None:
    done = ended(said("Yes."), usage=used(1_000_000, 0), model="gpt-99", service_tier="priority")
    result, _ = run(tmp_path, [created(), done], None, "system.price={input: 3, output: 9}")
    assert (got(result).cost_usd, got(result).cost_source) == (3.0, "computed")


# hostile replies

SKELETON = response(
    output=[
        {"type": "web_search_call", "action": {"sources": [{"url": "https://a.example/"}]}},
        ran("c1"),
        said("See there.", cite("https://a.example/", 0, 3), file_cited("c1", "f1", "members.csv")),
        {"type": "message", "phase": "commentary", "content": [{"type": "refusal", "refusal": "No."}]},
    ],
    usage=used(10, 20),
    tool_usage={"web_search": {"num_requests": 1}},
    error={"code": "server_error", "message": "It broke."},
    incomplete_details={"reason": "max_output_tokens"},
    reasoning={"effort": "low"},
    created_at=1,
    completed_at=2,
)
PAGE = {"data": [{"id": "f1", "path": OWN, "created_at": 3}], "has_more": True, "last_id": "f1"}


async def _asked(make: Any) -> Any:
    return await make()


@cache
def _provider() -> Provider:
    system = make_system(ReplayServer([]), "openai")
    assert isinstance(system, JobSystem)
    return system.provider


class _Fake:
    """An API that gives one page and one file."""

    def __init__(self, page: Any, file: bytes) -> None:
        self.page, self.file = page, file

    async def json(self, *_: Any, **__: Any) -> Any:
        return self.page

    async def download(self, *_: Any, **__: Any) -> bytes:
        return self.file


@given(
    status=st.sampled_from(["completed", "failed", "incomplete", "cancelled"]),
    body=replies(SKELETON),
    page=replies(PAGE),
    file=st.binary(max_size=9),
)
def test_no_reply_is_a_crash(status: str, body: dict[str, Any], page: Any, file: bytes) -> None:
    provider = _provider()
    provider._api = _Fake(page, file)  # type: ignore[attr-defined]
    ask = Ask(file_task(), 1, "t", lambda _: None, _asked)
    try:
        last = _openai.snapshot_of({"status": status, **body})
        found = asyncio.run(provider.answer(ask, last))
        submission = submission_of(ask, last, found, name="openai", handle=None, latency_s=1.0)
    except CallError:
        return
    json.dumps(submission.model_dump(mode="json"), allow_nan=False).encode()


def test_a_reply_that_is_nested_beyond_reading_is_malformed() -> None:
    deep: Any = []
    for _ in range(900):
        deep = [deep]
    with pytest.raises(CallError, match="malformed"):
        _openai.snapshot_of(response(output=deep))
