"""system=exa against recorded exchanges and what can go wrong beside them, over real HTTP."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, Final, cast

import pytest
from fakes.hostile_json import replies
from fakes.replay_server import (
    KEY,
    Exchange,
    ReplayServer,
    Solved,
    answer,
    cut,
    file_task,
    hang_up,
    make_system,
    plain_task,
    recorded,
    scenario,
    solved,
)
from hypothesis import given, settings

from adapters import _prices
from adapters.exa import Exa, _snapshot
from core.errors import CallError
from core.jobs import Ask, JobSystem, Snapshot
from core.model import Submission

ID: Final = "agent_run_01k9fakefakefakefakefake01"
RUNS: Final = "/agent/runs"
RUN: Final = f"{RUNS}/{ID}"
#: A deadline that passes while the test looks on.
SOON: Final = "system.efforts.low.timeout_s=0.15"

#: What no run can be asked about.
ODD_IDS: Final[tuple[Any, ...]] = ("", " ", ".", "..", 7, None, {})


def created() -> Exchange:
    return recorded("exa", "01_create_run")


def ended(**changes: Any) -> Exchange:
    return recorded("exa", "03_get_run_completed").with_json(**changes)


def row(result: Solved) -> Submission:
    """The submission, without the key anywhere in it."""
    assert result.submission is not None
    assert KEY not in result.submission.model_dump_json()
    return result.submission


def deep(levels: int) -> Any:
    """An object in an object in an object."""
    value: Any = 1
    for _ in range(levels):
        value = {"a": value}
    return value


@pytest.mark.parametrize(
    ("name", "words", "status", "usd", "source"),
    [
        ("happy", (), "completed", 0.025, "reported"),
        ("failed", (), "failed", None, "unknown"),
        ("partial", (), "incomplete", 1.0, "reported"),
        ("stream", ("system.transport=stream",), "completed", 0.025, "reported"),
        ("transient_poll", (), "completed", 0.025, "reported"),
        ("concurrency", (), "completed", 0.025, "reported"),
    ],
)
def test_recorded_scenarios_end_as_they_should(
    tmp_path: Path, name: str, words: tuple[str, ...], status: str, usd: float | None, source: str
) -> None:
    with ReplayServer(scenario("exa", name)) as server:
        result = solved(tmp_path, server, "exa", plain_task(), "effort=low", *words)
    assert server.unexpected == []
    assert server.left == 0
    submission = result.submission
    assert submission is not None
    assert (submission.status, submission.cost_usd, submission.cost_source) == (status, usd, source)
    assert not result.job_left, "an ended job is forgotten"
    assert submission.settings["effort"] == "low"
    assert server.requests[0].headers["x-api-key"] == KEY
    assert KEY not in submission.model_dump_json()
    if status == "completed":
        assert submission.text is not None
        assert submission.text.startswith("The Lakeshore Grid Association has three members.")
        assert {citation.url for citation in submission.citations} == {
            "https://lga.example.org/members",
            "https://northmere.example.org/about",
            "https://caldergrid.example.com/company",
            "https://solvane.example.net/history",
        }
        assert submission.settings["echoed"]["state"] == "completed"


def test_what_is_asked(tmp_path: Path) -> None:
    with ReplayServer(scenario("exa", "happy")) as server:
        solved(tmp_path, server, "exa", plain_task(), "effort=low")
    body = server.requests[0].json
    assert body["query"] == plain_task().prompt
    assert body["effort"] == "low"
    assert body["metadata"]["task_id"] == "lga-001"
    assert "outputSchema" not in body


@pytest.mark.parametrize(
    ("name", "kind", "words"), [("auth", "key", "req_fake_3"), ("quota", "quota", "req_fake_4")]
)
def test_a_wrong_key_and_an_empty_account_stop_the_run_at_once(
    tmp_path: Path, name: str, kind: str, words: str
) -> None:
    with ReplayServer(scenario("exa", name)) as server:
        result = solved(tmp_path, server, "exa")
    assert (len(server.requests), server.left) == (1, 0)
    assert result.stopped is not None
    assert result.stopped.kind == kind
    assert "exa" in result.stopped.message
    assert words in result.stopped.message
    assert not result.job_left


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        ({"code": "NO_MORE_CREDITS", "message": "You have exceeded your credits limit."}, "quota"),
        ({"type": "PAYMENT", "code": "API_KEY_BUDGET_EXCEEDED", "message": "stopped"}, "quota"),
        ("insufficient credits", "quota"),
        ({"code": "INVALID_API_KEY", "message": "Invalid API key"}, "key"),
        ({"code": "TIMEOUT", "message": "The run exceeded its time limit."}, None),
        (deep(300), None),
    ],
)
def test_a_run_that_failed_for_want_of_credit_is_no_score(tmp_path: Path, error: Any, kind: str | None) -> None:
    failed = recorded("exa", "05_get_run_failed").with_json(error=error)
    with ReplayServer([created(), failed]) as server:
        result = solved(tmp_path, server, "exa")
    assert (len(server.sent("POST")), result.job_left) == (1, False)
    if kind is None:
        assert (row(result).status, row(result).cost_source) == ("failed", "unknown")
    else:
        assert result.submission is None
        assert result.stopped is not None
        assert result.stopped.kind == kind


def late(folder: Path, stop: Exchange, last: dict[str, Any]) -> Submission:
    """A run that is at work until its deadline has passed; then it is cancelled and looked at once more."""
    create, running, cancel = scenario("exa", "cancel")
    after = cancel.with_json(**last).body

    def polled() -> bytes:
        return after if server.sent("POST", f"{RUN}/cancel") else running.body

    poll = answer("GET", RUN, make=polled)
    with ReplayServer([create], always=[stop, poll]) as server:
        submission = row(solved(folder, server, "exa", plain_task(), "effort=low", SOON))
    assert server.unexpected == []
    assert [one.path for one in server.sent("POST")] == [RUNS, f"{RUN}/cancel"]
    return submission


@pytest.mark.parametrize(
    ("last", "status", "usd", "source"),
    [
        # a run that was stopped may have cost anything: the price of a whole one is no measure
        ({}, "timed_out", None, "unknown"),
        ({"costDollars": {"total": 0.4}}, "timed_out", 0.4, "reported"),
        ({"status": "running"}, "timed_out", None, "unknown"),
        ({"status": "timed_out"}, "timed_out", None, "unknown"),
        ({"status": "completed", "output": {"text": "Three."}}, "completed", 0.025, "list_price"),
    ],
)
def test_a_run_past_its_deadline_is_cancelled_and_looked_at_once_more(
    tmp_path: Path, last: dict[str, Any], status: str, usd: float | None, source: str
) -> None:
    submission = late(tmp_path, scenario("exa", "cancel")[2], last)
    assert (submission.status, submission.cost_usd, submission.cost_source) == (status, usd, source)


@pytest.mark.parametrize(
    "stop",
    [
        answer("POST", f"{RUN}/cancel", 400, {"error": {"code": "BAD", "message": "the run is over"}}),
        answer("POST", f"{RUN}/cancel", 200, ""),
        hang_up("POST", f"{RUN}/cancel"),
    ],
    ids=["over", "empty", "hang_up"],
)
def test_a_run_that_ended_while_it_was_cancelled_counts(tmp_path: Path, stop: Exchange) -> None:
    submission = late(tmp_path, stop, {"status": "completed", "output": {"text": "Three."}})
    assert (submission.status, submission.text) == ("completed", "Three.")


@pytest.mark.parametrize(("effort", "beta"), [("max", "agent-max-effort-2026-07-27"), ("ultra", None)])
def test_max_is_unlocked_by_a_header(tmp_path: Path, effort: str, beta: str | None) -> None:
    with ReplayServer([created(), ended()]) as server:
        row(solved(tmp_path, server, "exa", plain_task(), f"effort={effort}"))
    assert server.requests[0].headers.get("exa-beta") == beta
    assert server.requests[0].json["effort"] == effort


@pytest.mark.parametrize("level", ["minimal", "low", "medium", "high", "xhigh"])
def test_the_levels_with_a_fixed_price_are_estimated_at_it(level: str) -> None:
    made = cast("JobSystem", make_system(ReplayServer([]), "exa", f"effort={level}"))
    assert made.estimate_usd == _prices.EXA[level]


# a create whose answer was lost


@pytest.mark.parametrize("in_request", [False, True])
def test_a_lost_run_is_looked_for_page_by_page(tmp_path: Path, in_request: bool) -> None:
    def with_the_run() -> bytes:
        named = {"metadata": {"token": server.requests[0].json["metadata"]["token"]}}
        run = ended(**({"metadata": None, "request": named} if in_request else named)).json
        # our token under an id that can't be asked about is no find
        return json.dumps({"data": [{**run, "id": ".."}, None, 7, run], "hasMore": True}).encode()

    first = {"data": [ended(metadata={"token": "another"}).json], "hasMore": True, "nextCursor": "c 1"}
    pages = [answer("GET", RUNS, 200, first), answer("GET", RUNS, make=with_the_run)]
    with ReplayServer([hang_up("POST", RUNS), *pages]) as server:
        submission = row(solved(tmp_path, server, "exa"))
    assert (submission.status, server.left, server.unexpected) == ("completed", 0, [])
    assert len(server.sent("POST")) == 1
    assert [one.query for one in server.sent("GET")] == [{"limit": "100"}, {"limit": "100", "cursor": "c 1"}]


@pytest.mark.parametrize(
    ("page", "requests"),
    [
        ({"data": [], "hasMore": True, "nextCursor": "c"}, 5),
        ({"data": [], "hasMore": True, "nextCursor": None}, 1),
        ({"data": [], "hasMore": False, "nextCursor": "c"}, 1),
        ({"data": {"id": "x"}, "hasMore": 1}, 1),
    ],
)
def test_a_list_is_not_read_for_ever(page: dict[str, Any], requests: int) -> None:
    asked: list[Any] = []

    async def json_of(*args: Any, **more: Any) -> Any:
        asked.append(args)
        return page

    assert asyncio.run(_over(json_of).find(_ask())) is None
    assert len(asked) == requests


@pytest.mark.parametrize(
    "lost",
    [
        cut(answer("POST", RUNS, 200, {"id": ID, "status": "queued"})),
        answer("POST", RUNS, 200, "<html>welcome</html>"),
        answer("POST", RUNS, 200, {"status": "queued"}),
        *(answer("POST", RUNS, 200, {"id": name, "status": "queued"}) for name in ODD_IDS),
        answer("POST", RUNS, 504, ""),
    ],
)
def test_a_create_without_a_usable_id_is_not_sent_again(tmp_path: Path, lost: Exchange) -> None:
    empty = answer("GET", RUNS, 200, {"data": [], "hasMore": False})
    with ReplayServer([lost], always=[empty]) as server:
        submission = row(solved(tmp_path, server, "exa"))
    assert submission.error is not None
    assert submission.error.kind == "maybe_billed"
    assert len(server.sent("POST")) == 1
    assert {one.path for one in server.sent("GET")} == {RUNS}


@pytest.mark.parametrize("odd", ["../../search", "b?x=1", "a b#c", "x/cancel", "%2e%2e"])
def test_a_hostile_id_stays_one_part_of_the_path(tmp_path: Path, odd: str) -> None:
    start = created().with_json(id=odd)
    running = answer("GET", f"{RUNS}/{odd}", 200, {"id": odd, "status": "running"})
    stop = answer("POST", f"{RUNS}/{odd}/cancel", 200, {})
    with ReplayServer([start], always=[running, stop]) as server:
        solved(tmp_path, server, "exa", plain_task(), "effort=low", "system.efforts.low.timeout_s=0.05")
    assert server.unexpected == []
    assert [one.path for one in server.sent("POST")] == [RUNS, f"{RUNS}/{odd}/cancel"]
    assert {tuple(one.query) for one in server.requests} == {()}


# streams


def test_a_stream_that_breaks_off_is_polled(tmp_path: Path) -> None:
    with ReplayServer([cut(recorded("exa", "07_create_stream")), ended()]) as server:
        submission = row(solved(tmp_path, server, "exa", plain_task(), "effort=low", "system.transport=stream"))
    assert (submission.status, submission.cost_usd) == ("completed", 0.025)
    assert [(one.method, one.path) for one in server.requests] == [("POST", RUNS), ("GET", RUN)]


def test_a_stream_that_ends_before_its_run_does_is_polled(tmp_path: Path) -> None:
    whole = recorded("exa", "07_create_stream")
    first = replace(whole, body=whole.body.partition(b"\n\n")[0] + b"\n\n: ping\n\ndata: [DONE]\n\n")
    with ReplayServer([first, ended()]) as server:
        submission = row(solved(tmp_path, server, "exa", plain_task(), "effort=low", "system.transport=stream"))
    assert (submission.status, len(server.sent("POST")), server.left) == ("completed", 1, 0)


@pytest.mark.parametrize("body", [b"", b": ping\n\n", b'data: {"id": ".."}\n\n', b"data: 7\n\n"])
def test_a_stream_that_never_named_its_run_is_looked_up(tmp_path: Path, body: bytes) -> None:
    silent = replace(recorded("exa", "07_create_stream"), body=body)
    empty = answer("GET", RUNS, 200, {"data": [], "hasMore": False})
    with ReplayServer([silent], always=[empty]) as server:
        submission = row(solved(tmp_path, server, "exa", plain_task(), "effort=low", "system.transport=stream"))
    assert submission.error is not None
    assert (submission.error.kind, len(server.sent("POST"))) == ("maybe_billed", 1)


def test_a_create_that_was_read_is_looked_up_and_not_sent_again(tmp_path: Path) -> None:
    run = recorded("exa", "03_get_run_completed").json

    def what_was_sent() -> bytes:
        token = server.requests[0].json["metadata"]["token"]
        return json.dumps({"data": [{**run, "metadata": {"token": token}}], "hasMore": False}).encode()

    runs = answer("GET", "/agent/runs", make=what_was_sent)
    with ReplayServer([hang_up("POST", "/agent/runs"), runs]) as server:
        result = solved(tmp_path, server, "exa")
    assert result.submission is not None
    assert result.submission.status == "completed"
    assert len(server.sent("POST")) == 1


def test_a_create_that_nobody_knows_of_may_have_been_billed(tmp_path: Path) -> None:
    empty = answer("GET", "/agent/runs", 200, {"data": [], "hasMore": False})
    port = 0
    for again in range(2):
        sent = [] if again else [hang_up("POST", "/agent/runs")]
        with ReplayServer(sent, always=[empty], port=port) as server:
            port = server.port
            result = solved(tmp_path, server, "exa")
        assert result.submission is not None
        assert result.submission.error is not None
        assert result.submission.error.kind == "maybe_billed"
        assert len(server.sent("POST")) == 1 - again, "the second start looks it up and sends nothing"
    assert result.calls == [("maybe_billed", None), ("maybe_billed", 0.0)], "counted once"


def test_files_come_as_a_typed_reply(tmp_path: Path) -> None:
    done = recorded("exa", "03_get_run_completed")
    output = {
        **done.json["output"],
        "structured": {"files": [{"path": "members.csv", "content": "name\nNorthmere\n"}]},
    }
    with ReplayServer([recorded("exa", "01_create_run"), done.with_json(output=output)]) as server:
        result = solved(tmp_path, server, "exa", file_task())
    assert server.requests[0].json["outputSchema"] == file_task().output_schema
    assert result.submission is not None
    assert result.submission.files == {"members.csv": "name\nNorthmere\n"}
    assert result.submission.settings["echoed"]["delivered"] is True


# whatever JSON comes


def test_only_plain_values_are_echoed(tmp_path: Path) -> None:
    odd: dict[str, Any] = {
        "usage": {"searches": 6, "dataSources": deep(250)},
        "stopReason": deep(250),
        "request": {"effort": [1]},
    }
    with ReplayServer([created(), ended(**odd, costDollars={"total": 0.025, "more": deep(250)})]) as server:
        submission = row(solved(tmp_path, server, "exa"))
    assert submission.status == "completed"
    echoed = submission.settings["echoed"]
    assert echoed == {"id": ID, "usage": {"searches": 6}, "state": "completed", "delivered": True, "cost": {}}


async def _at_once(make: Callable[[], Any]) -> Any:
    return await make()


def _ask() -> Ask:
    return Ask(file_task(), 1, "0" * 32, lambda handle: None, _at_once)


@cache
def _provider() -> Exa:
    return cast("Exa", cast("JobSystem", make_system(ReplayServer([]), "exa", "effort=low")).provider)


def _over(json_of: Any) -> Exa:
    """The provider, asking a function in place of the API."""
    provider = _provider()
    provider._api = cast("Any", type("Desk", (), {"json": staticmethod(json_of)}))
    return provider


SKELETON: Final[dict[str, Any]] = {
    "id": ID,
    "status": "completed",
    "stopReason": "schema_satisfied",
    "request": {"effort": "low", "metadata": {"token": "0" * 32}},
    "metadata": None,
    "output": {
        "text": "Three.",
        "structured": {"files": [{"path": "members.csv", "content": "name"}]},
        "grounding": [{"field": "x", "citations": [{"url": "https://a.example", "title": "A"}]}],
    },
    "usage": {"searches": 6},
    "costDollars": {"total": 0.025, "search": 0.005},
    "error": {"code": "X", "message": "no"},
}


@settings(max_examples=150, deadline=None)
@given(body=replies(SKELETON))
def test_whatever_json_comes_is_an_answer_or_a_call_error(body: dict[str, Any]) -> None:
    async def json_of(*args: Any, **more: Any) -> Any:
        return {"data": [body], "hasMore": False}

    try:
        last = _snapshot(body)
    except CallError as error:
        assert error.kind == "malformed"
        last = Snapshot("failed", body=body)
    provider = _over(json_of)
    found = asyncio.run(provider.answer(_ask(), last))
    assert all(isinstance(text, str) for text in found.files.values())
    asyncio.run(provider.find(_ask()))
