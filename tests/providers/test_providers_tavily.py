"""system=tavily against recorded exchanges and what can go wrong beside them, over real HTTP."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, Final, cast

import pytest
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
from hypothesis import strategies as st

from adapters.tavily import Tavily, _snapshot
from core.errors import CallError, InputError
from core.jobs import JobSystem, Snapshot
from core.jobs.outcome import submission_of
from core.jobs.provider import Ask
from core.model import Submission

ID: Final = "00000000-fake-4000-8000-00000000tvly"
RUN: Final = f"/research/{ID}"
ROWS: Final = "name\nNorthmere\n"


def task(status: str = "completed", **fields: Any) -> dict[str, Any]:
    return {"request_id": ID, "status": status, **fields}


def created() -> Exchange:
    return answer("POST", "/research", 201, task("pending"))


def ended(**fields: Any) -> Exchange:
    return answer("GET", RUN, 200, task(**fields))


def row(result: Solved) -> Submission:
    assert result.submission is not None
    return result.submission


@pytest.mark.parametrize(
    ("name", "status", "usd", "source"),
    [("happy", "completed", 0.336, "computed"), ("failed", "failed", None, "unknown")],
)
def test_recorded_scenarios_end_as_they_should(
    tmp_path: Path, name: str, status: str, usd: float | None, source: str
) -> None:
    with ReplayServer(scenario("tavily", name)) as server:
        result = solved(tmp_path, server, "tavily", plain_task(), "effort=high")
    submission = row(result)
    assert (server.unexpected, server.left) == ([], 0)
    assert (submission.status, submission.cost_source) == (status, source)
    assert submission.cost_usd == (None if usd is None else pytest.approx(usd))
    assert not result.job_left, "an ended job is forgotten"
    assert {request.headers["authorization"] for request in server.requests} == {f"Bearer {KEY}"}
    assert KEY not in submission.model_dump_json()
    assert [dict(request.query) for request in server.sent("GET")] == [{"include_usage": "true"}] * 2
    assert submission.settings["model"] == "pro"
    assert submission.settings["echoed"]["state"] == status
    assert submission.usage is None, "it counts credits, not tokens"
    if status == "completed":
        assert (submission.text or "").startswith("The Lakeshore Grid Association has three members.")
        assert submission.settings["echoed"]["credits"] == 42
        assert submission.settings["echoed"]["request_id"] == ID
        assert [(c.url, c.title, c.excerpt) for c in submission.citations] == [
            ("https://lga.example.org/members", "Members - Lakeshore Grid Association", None),
            ("https://northmere.example.org/about", "About Northmere Transmission", None),
            ("https://caldergrid.example.com/company", "Company - Calder Grid", None),
            ("https://solvane.example.net/history", "History | Solvane Networks", None),
        ]


@pytest.mark.parametrize(
    ("words", "more"),
    [
        (("effort=low",), {"model": "mini"}),
        (("effort=medium",), {"model": "mini"}),
        (("effort=high",), {"model": "pro"}),
        (("effort=xhigh",), {"model": "pro"}),
        (("effort=auto",), {"model": "auto"}),
        (("effort=high", "system.output_length=long"), {"model": "pro", "output_length": "long"}),
    ],
)
def test_what_is_asked(tmp_path: Path, words: tuple[str, ...], more: dict[str, str]) -> None:
    with ReplayServer([created(), ended(content="Three.")]) as server:
        submission = row(solved(tmp_path, server, "tavily", plain_task(), *words))
    assert server.requests[0].json == {"input": plain_task().prompt, "citation_format": "numbered", **more}
    assert submission.settings["model"] == more["model"]
    assert "transport" not in submission.settings


@pytest.mark.parametrize(
    ("blocked", "hosts", "notes"),
    [
        ((), None, None),
        (("a.example/x", "a.example/y", "b.example"), ["a.example", "b.example"], None),
        (
            tuple(f"h{n}.example/x" for n in range(21)),
            [f"h{n}.example" for n in range(20)],
            ["only the first 20 of 21 blocked hosts were passed on"],
        ),
    ],
)
def test_blocked_pages_cost_their_hosts(
    tmp_path: Path, blocked: tuple[str, ...], hosts: list[str] | None, notes: list[str] | None
) -> None:
    with ReplayServer([created(), ended(content="Three.")]) as server:
        submission = row(solved(tmp_path, server, "tavily", plain_task(blocked=blocked)))
    assert server.requests[0].json.get("exclude_domains") == hosts
    assert submission.settings["echoed"].get("notes") == notes
    assert make_system(server, "tavily").can_block is True  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("words", "where"),
    [
        (("system.model=pro",), "system.model"),
        (("system.transport=stream",), "system.transport"),
        (("system.delivery=file",), "system.delivery"),
        (("system.output_length=endless",), "system.output_length"),
        (("system.credit_usd=-1",), "system.credit_usd"),
        (("system.efforts.low.model=maxi", "effort=low"), "system.model"),
    ],
)
def test_a_config_that_can_not_be_used_is_refused(words: tuple[str, ...], where: str) -> None:
    with pytest.raises(InputError, match=where):
        make_system(ReplayServer([]), "tavily", *words)


# errors


@pytest.mark.parametrize(
    ("refusal", "kind"),
    [
        ("91_err_401", "key"),
        ("92_err_432", "quota"),
        ((433, {"detail": {"error": "This request exceeds the pay-as-you-go limit."}}), "quota"),
        ((402, {"detail": {"error": "payment"}}), "quota"),
    ],
)
def test_a_wrong_key_and_an_empty_account_stop_the_run_at_once(
    tmp_path: Path, refusal: str | tuple[int, dict[str, Any]], kind: str
) -> None:
    no = recorded("tavily", refusal) if isinstance(refusal, str) else answer("POST", "/research", *refusal)
    with ReplayServer([no]) as server:
        result = solved(tmp_path, server, "tavily")
    assert len(server.requests) == 1
    assert result.stopped is not None
    assert result.stopped.kind == kind
    assert "tavily" in result.stopped.message
    assert KEY not in result.stopped.message
    assert not result.job_left


def test_a_refused_form_is_an_error_and_is_not_sent_again(tmp_path: Path) -> None:
    with ReplayServer(
        [answer("POST", "/research", 400, {"detail": {"error": "Invalid output_schema."}})]
    ) as server:
        submission = row(solved(tmp_path, server, "tavily"))
    assert len(server.requests) == 1
    assert submission.error is not None
    assert (submission.status, submission.error.kind, submission.cost_usd) == ("error", "bad_request", 0.0)
    assert "Invalid output_schema." in submission.error.message


@pytest.mark.parametrize(
    "away",
    [
        (429, {"detail": {"error": "excessive requests"}}, {"retry-after": "60"}),
        (429, {"detail": {"error": "excessive requests"}}, {"retry-after": "Mon, 30 Nov 2026 10:00:00 GMT"}),
        (429, "<html>slow down</html>", {}),
        (500, {"detail": {"error": "Internal Server Error"}}, {}),
        (502, "<html><title>Bad gateway</title></html>", {}),
        (503, "", {}),
    ],
)
def test_a_create_that_was_turned_away_is_sent_again(
    tmp_path: Path, away: tuple[int, Any, dict[str, str]]
) -> None:
    with ReplayServer([answer("POST", "/research", *away), created(), ended(content="Three.")]) as server:
        assert row(solved(tmp_path, server, "tavily")).text == "Three."
    assert (len(server.sent("POST")), server.left) == (2, 0)


@pytest.mark.parametrize(
    "lost",
    [
        hang_up("POST", "/research"),
        cut(answer("POST", "/research", 200, task("pending"))),
        answer("POST", "/research", 200, "<html>welcome</html>"),
        answer("POST", "/research", 200, {"status": "pending"}),
        answer("POST", "/research", 200, {"request_id": "..", "status": "pending"}),
        answer("POST", "/research", 504, ""),
    ],
    ids=["hang_up", "cut", "html", "no_id", "dots", "gateway"],
)
def test_a_create_whose_answer_was_lost_is_not_sent_again(tmp_path: Path, lost: Exchange) -> None:
    port = 0
    for again in range(2):
        with ReplayServer([] if again else [lost], port=port) as server:
            port = server.port
            submission = row(solved(tmp_path, server, "tavily"))
        assert submission.error is not None
        assert submission.error.kind == "maybe_billed"
        assert submission.cost_usd == (0.0 if again else None), "counted once, as unknown"
        assert len(server.requests) == 1 - again


@pytest.mark.parametrize(
    "odd",
    [
        answer("GET", RUN, 404, {"detail": {"error": "Research task not found"}}),
        answer("GET", RUN, 502, "<html>Bad gateway</html>"),
        answer("GET", RUN, 200, "<html>maintenance</html>"),
        answer("GET", RUN, 200, {"detail": {"error": "busy"}}),
        answer("GET", RUN, 429, {"detail": {"error": "excessive requests"}}),
        answer("GET", RUN, 202, task("in_progress")),
        answer("GET", RUN, 202, task("pondering")),
        hang_up("GET", RUN),
    ],
    ids=["404", "502", "html", "no_id", "429", "202", "unknown_state", "hang_up"],
)
def test_a_poll_that_makes_no_sense_is_made_again(tmp_path: Path, odd: Exchange) -> None:
    with ReplayServer([created(), odd, ended(content="Three.")]) as server:
        assert row(solved(tmp_path, server, "tavily")).text == "Three."
    assert (len(server.sent("POST")), server.left, server.unexpected) == (1, 0, [])


def test_a_job_past_its_deadline_runs_on_and_nothing_is_cancelled(tmp_path: Path) -> None:
    with ReplayServer([created(), answer("GET", RUN, 202, task("pondering"))]) as server:
        words = ("effort=low", "system.efforts.low.timeout_s=0.15")
        submission = row(solved(tmp_path, server, "tavily", plain_task(), *words))
    assert (len(server.sent("POST")), server.unexpected) == (1, [])
    assert (submission.status, submission.cost_usd) == ("timed_out", None)
    assert submission.settings["echoed"]["state"] == "pondering"


# what a finished task gives


@pytest.mark.parametrize(
    ("fields", "status", "text"),
    [
        ({"content": "Three."}, "completed", "Three."),
        ({"content": "half \ud800 a character"}, "completed", "half \ufffd a character"),
        ({"content": ""}, "empty", ""),
        ({"content": None}, "empty", None),
        ({}, "empty", None),
        ({"content": {"members": ["Calder Grid"]}}, "completed", '{"members": ["Calder Grid"]}'),
        ({"status": "failed", "detail": {"error": "no sources"}}, "failed", None),
        ({"content": "Three.", "sources": "none"}, "completed", "Three."),
        ({"content": "Three.", "sources": [7, {}, {"url": ""}, {"title": "x"}]}, "completed", "Three."),
    ],
)
def test_how_a_task_ended(tmp_path: Path, fields: dict[str, Any], status: str, text: str | None) -> None:
    with ReplayServer([created(), ended(**fields)]) as server:
        submission = row(solved(tmp_path, server, "tavily"))
    assert (submission.status, submission.text, submission.citations) == (status, text, ())
    if status == "failed":
        assert submission.error is not None
        assert (submission.error.kind, submission.error.message) == (
            "failed",
            f"tavily: no sources; job {ID}; retry=failed sends it again",
        )


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        ({"detail": {"error": "This request exceeds your plan's usage limit."}}, "quota"),
        ({"error": "insufficient credits"}, "quota"),
        ({"error": "invalid API key"}, "key"),
        ({"detail": {"error": "no sources"}}, None),
    ],
)
def test_a_task_that_failed_for_want_of_credit_is_no_score(
    tmp_path: Path, said: dict[str, Any], kind: str | None
) -> None:
    with ReplayServer([created(), ended(status="failed", **said)]) as server:
        result = solved(tmp_path, server, "tavily")
    assert (len(server.sent("POST")), result.job_left) == (1, False)
    assert (None if result.stopped is None else result.stopped.kind) == kind
    assert (result.submission is None) is (kind is not None)


@pytest.mark.parametrize(
    ("usage", "words", "usd"),
    [
        ({"credits": 42}, (), 0.336),
        ({"credits": 42}, ("system.credit_usd=0.005",), 0.21),
        ({"credits": 0}, (), 0.0),
        ({"credits": -1}, (), None),
        ({"credits": True}, (), None),
        ({"credits": "42"}, (), None),
        ({}, (), None),
        (None, (), None),
    ],
)
def test_what_a_task_cost(tmp_path: Path, usage: Any, words: tuple[str, ...], usd: float | None) -> None:
    with ReplayServer([created(), ended(content="Three.", usage=usage)]) as server:
        submission = row(solved(tmp_path, server, "tavily", plain_task(), *words))
    assert submission.cost_usd == (None if usd is None else pytest.approx(usd))
    assert submission.cost_source == ("unknown" if usd is None else "computed")


@pytest.mark.parametrize(
    ("reply", "files", "status"),
    [
        ({"files": [{"path": "members.csv", "content": ROWS}]}, {"members.csv": ROWS}, "completed"),
        ({"files": [{"path": "out/members.csv", "content": ROWS}]}, {"members.csv": ROWS}, "completed"),
        ({"files": [{"path": "../members.csv", "content": ROWS}]}, {}, "empty"),
        ({"files": [{"path": "members.csv", "content": ""}]}, {"members.csv": ""}, "empty"),
        ({"files": []}, {}, "empty"),
        ("no JSON at all", {}, "empty"),
    ],
)
def test_files_come_as_a_typed_reply(tmp_path: Path, reply: Any, files: dict[str, str], status: str) -> None:
    with ReplayServer([created(), ended(content=reply)]) as server:
        submission = row(solved(tmp_path, server, "tavily", file_task(), "system.delivery=schema"))
    assert server.requests[0].json["output_schema"] == file_task().output_schema
    assert (submission.status, dict(submission.files)) == (status, files)
    assert submission.settings["echoed"]["delivered"] is (status == "completed")


def test_blocks_in_the_text_are_left_to_the_benchmark(tmp_path: Path) -> None:
    text = f"```file:members.csv\n{ROWS}```"
    with ReplayServer([created(), ended(content=text)]) as server:
        submission = row(solved(tmp_path, server, "tavily", file_task()))
    assert "output_schema" not in server.requests[0].json
    assert (submission.status, submission.text, dict(submission.files)) == ("completed", text, {})


def test_a_hostile_id_stays_one_part_of_the_path(tmp_path: Path) -> None:
    start = answer("POST", "/research", 200, {"request_id": "../search?q=#%2e", "status": "pending"})
    words = ("effort=low", "system.efforts.low.timeout_s=0.05")
    with ReplayServer([start]) as server:
        solved(tmp_path, server, "tavily", plain_task(), *words)
    assert server.sent("GET")
    assert all(request.path.startswith("/research/") for request in server.sent("GET"))
    assert {tuple(request.query) for request in server.sent("GET")} == {("include_usage",)}


# whatever JSON comes


LEAF = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-2, 500),
    st.sampled_from([float("nan"), float("inf"), 10**400, "", "..", ID, "completed", "https://a.example"]),
    st.text(max_size=5),
)
NAMES = (
    *("request_id", "status", "content", "sources", "usage", "credits", "model", "detail", "error"),
    *("url", "title", "files", "path"),
)
ANY = st.recursive(
    LEAF,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=5),
    max_leaves=12,
)
BODIES = st.builds(
    lambda body, fields: {**body, **fields},
    st.dictionaries(st.sampled_from(NAMES), ANY, max_size=7),
    st.fixed_dictionaries(
        {}, optional={"request_id": st.just(ID), "status": st.sampled_from(["completed", "failed"])}
    ),
)


@cache
def providers() -> tuple[Tavily, ...]:
    words = [f"system.delivery={delivery}" for delivery in ("schema", "fence")]
    systems = [cast("JobSystem", make_system(ReplayServer([]), "tavily", word)) for word in words]
    return tuple(cast("Tavily", system.provider) for system in systems)


async def _once(make: Callable[[], Any]) -> Any:
    return await make()


@settings(max_examples=100, deadline=None)
@given(body=BODIES)
def test_whatever_json_comes_is_a_submission_or_an_error(body: dict[str, Any]) -> None:
    ask = Ask(file_task(), 1, "0" * 32, lambda handle: None, _once)
    try:
        last = _snapshot(body)
    except CallError:
        last = Snapshot("failed", body=body)
    for provider in providers():
        submission = submission_of(
            ask, last, asyncio.run(provider.answer(ask, last)), name="tavily", handle=None, latency_s=1.0
        )
        json.dumps(submission.model_dump(mode="json"), allow_nan=False)
