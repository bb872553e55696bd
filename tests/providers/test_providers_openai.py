"""system=openai against recorded exchanges and what can go wrong beside them, over real HTTP."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from fakes.openai_exchanges import (
    CANCEL,
    CREATE,
    CSV,
    GET,
    ID,
    SOON,
    created,
    ended,
    event,
    events,
    got,
    response,
    run,
    said,
)
from fakes.replay_server import (
    KEY,
    Exchange,
    ReplayServer,
    answer,
    cut,
    file_task,
    hang_up,
    make_system,
    plain_task,
    provider_services,
    recorded,
    scenario,
    solved,
)

from adapters import _openai
from adapters.openai import _warnings
from core.errors import CallError, InputError
from core.jobs import Ask, JobSystem, Snapshot

#: Dollars of the recorded answers: tokens, three searches, one container.
TOKENS = {"input": 0.062468, "cached_input": 0.006, "output": 0.0912}


# recorded scenarios


@pytest.mark.parametrize(
    ("name", "words", "status", "kind", "usd"),
    [
        ("happy", (), "completed", None, 0.219668),
        ("failed", (), "failed", "failed", None),
        ("incomplete", (), "incomplete", "truncated", 0.159668),
        ("rate", (), "completed", None, 0.219668),
        ("transient_poll", (), "completed", None, 0.219668),
        ("stream", ("system.transport=stream",), "completed", None, 0.219668),
        ("sync", ("system.transport=sync", "system.model=gpt-6-luna"), "completed", None, None),
    ],
)
def test_recorded_scenarios_end_as_they_should(
    tmp_path: Path, name: str, words: tuple[str, ...], status: str, kind: str | None, usd: float | None
) -> None:
    task = file_task() if name == "happy" else plain_task()
    result, server = run(tmp_path, scenario("openai", name), task, "effort=medium", *words)
    submission = got(result)
    assert server.unexpected == []
    assert server.left == 0
    assert submission.status == status
    assert (submission.error.kind if submission.error else None) == kind
    if usd is not None:
        assert submission.cost_usd == pytest.approx(usd, rel=1e-12)
    assert submission.cost_source == ("unknown" if name == "failed" else "computed")
    assert not result.job_left, "an ended job is forgotten"
    assert len(server.sent("POST")) == (2 if name == "rate" else 1)
    assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"
    assert KEY not in submission.model_dump_json()
    if status == "completed" and name != "sync":
        assert submission.text is not None
        assert submission.text.startswith("The Lakeshore Grid Association has three members.")
        first = submission.citations[0]
        assert (first.url, first.title) == (
            "https://lga.example.org/members",
            "Members - Lakeshore Grid Association",
        )
        assert submission.text[first.start : first.end] == "lga.example.org"
        assert {citation.url for citation in submission.citations} == {
            "https://lga.example.org/members",
            "https://northmere.example.org/about",
            "https://caldergrid.example.com/company",
            "https://solvane.example.net/history",
        }
        assert submission.usage is not None
        assert submission.usage.model_dump() == {
            "input": 91234,
            "cached_input": 60000,
            "output": 9120,
            "reasoning": 7000,
        }
        assert submission.latency_s == 600.0, "by the provider's own clock"
        assert submission.settings["reasoning_effort"] == "medium"
        assert submission.settings["echoed"]["model"] == "gpt-6.1-sol"
        assert submission.settings["echoed"]["effort"] == "medium"
        assert submission.settings["echoed"]["cost"] == pytest.approx(
            {**TOKENS, "web_search": 0.03, "container": 0.03}
        )


def test_the_recorded_file_comes_out_of_the_container(tmp_path: Path) -> None:
    result, server = run(tmp_path, scenario("openai", "happy"), file_task())
    submission = got(result)
    assert list(submission.files) == ["members.csv"]
    assert submission.files["members.csv"].startswith("name,hq_city,founded_year,source_url\n")
    assert submission.settings["echoed"]["delivered"] is True
    assert "notes" not in submission.settings["echoed"]
    assert server.requests[-2].query == {"limit": "100"}


def test_a_deadline_cancels_the_job(tmp_path: Path) -> None:
    create, cancel = scenario("openai", "cancel")
    working = recorded("openai", "02_get_in_progress")

    def poll() -> bytes:
        return cancel.body if server.sent("POST", cancel.path) else working.body

    with ReplayServer([create], always=[cancel, replace(working, make=poll)]) as server:
        result = solved(tmp_path, server, "openai", plain_task(), SOON)
    submission = got(result)
    assert submission.status == "timed_out"
    assert submission.cost_usd is None
    assert submission.settings["echoed"]["state"] == "cancelled"
    assert [request.path for request in server.sent("POST")] == [CREATE, cancel.path]
    assert server.requests[-1].method == "GET", "it is asked about once more"
    assert server.unexpected == []
    assert not result.job_left


@pytest.mark.parametrize(("name", "kind"), [("quota", "quota"), ("auth", "key")])
def test_a_wrong_key_and_an_empty_account_stop_the_run_at_once(tmp_path: Path, name: str, kind: str) -> None:
    result, server = run(tmp_path, scenario("openai", name))
    assert len(server.requests) == 1
    assert result.stopped is not None
    assert result.stopped.kind == kind
    assert "openai" in result.stopped.message
    assert "req_fake" in result.stopped.message
    assert KEY not in result.stopped.message
    assert not result.job_left


def test_a_response_that_is_gone_is_a_failure_of_the_providers(tmp_path: Path) -> None:
    create, gone = scenario("openai", "expired")
    result, _ = run(tmp_path, [create, replace(gone, path=f"{CREATE}/{create.json['id']}")])
    submission = got(result)
    assert submission.status == "failed"
    assert submission.error is not None
    assert "no longer has the job" in submission.error.message
    assert submission.cost_usd is None


# what is asked


@pytest.mark.parametrize(
    ("words", "sent"),
    [
        (("effort=low",), {"reasoning": {"effort": "low"}}),
        (("effort=xhigh",), {"reasoning": {"effort": "xhigh"}}),
        (
            ("effort=high", "system.ladder=wandr", "system.sandbox_memory=null", "system.delivery=fence"),
            {
                "reasoning": {"effort": "high"},
                "tools": [{"type": "web_search_preview", "search_context_size": "high"}],
            },
        ),
        (
            ("system.max_tool_calls=120", "system.max_output_tokens=9"),
            {"max_tool_calls": 120, "max_output_tokens": 9},
        ),
        (("system.service_tier=flex",), {"service_tier": "flex"}),
        (
            ("system.search_tool=null",),
            {"tools": [{"type": "code_interpreter", "container": {"type": "auto", "memory_limit": "1g"}}]},
        ),
    ],
)
def test_what_is_asked(tmp_path: Path, words: tuple[str, ...], sent: dict[str, Any]) -> None:
    result, server = run(tmp_path, [created(), ended(said("Yes."))], plain_task(), *words)
    body = server.requests[0].json
    assert (body["model"], body["input"]) == ("gpt-6.1-sol", plain_task().prompt)
    assert (body["background"], body["store"]) == (True, True)
    assert body["metadata"]["task_id"] == "lga-001"
    assert {name: body[name] for name in sent} == sent
    assert server.requests[1].query == {"include[]": "web_search_call.action.sources"}
    assert "transport" not in got(result).settings


def test_blocked_addresses_are_passed_on_as_hosts(tmp_path: Path) -> None:
    blocked = ("a.example/x", "a.example/y", "b.example", *(f"h{number}.example/z" for number in range(200)))
    task = plain_task(blocked=blocked)
    result, server = run(tmp_path, [created(), ended(said("Yes."))], task)
    hosts = server.requests[0].json["tools"][0]["filters"]["blocked_domains"]
    assert hosts[:3] == ["a.example", "b.example", "h0.example"]
    assert len(hosts) == 100
    notes = got(result).settings["echoed"]["notes"]
    assert notes == ["only the first 100 of 202 blocked hosts were passed on"], "what is cut is said"


@pytest.mark.parametrize(
    ("words", "can"),
    [
        ((), True),
        (("system.block_hosts=false",), False),
        (("system.search_tool=web_search_preview",), False),
        (("system.search_tool=null",), False),
    ],
)
def test_only_the_web_search_can_leave_hosts_out(words: tuple[str, ...], can: bool) -> None:
    system = make_system(ReplayServer([]), "openai", *words)
    assert isinstance(system, JobSystem)
    assert system.can_block is can
    ask = Ask(plain_task(blocked=("a.example/x",)), 1, "t", lambda _: None, _asked)
    assert ("filters" in json.dumps(system.provider._body(ask))) is can  # type: ignore[attr-defined]


async def _asked(make: Any) -> Any:
    return await make()


def test_the_prompt_says_where_files_go(tmp_path: Path) -> None:
    _, server = run(tmp_path, [created(), ended(said("Done."))], file_task("a.jsonl", "b.jsonl"))
    asked = server.requests[0].json
    assert asked["input"].startswith(plain_task().prompt)
    assert "/mnt/data/a.jsonl, /mnt/data/b.jsonl" in asked["input"]
    assert "text" not in asked


def test_a_typed_reply_is_asked_for_and_read(tmp_path: Path) -> None:
    reply = json.dumps({"files": [{"path": "members.csv", "content": CSV}]})
    result, server = run(tmp_path, [created(), ended(said(reply))], file_task(), "system.delivery=schema")
    form = server.requests[0].json["text"]["format"]
    assert (form["type"], form["strict"], form["schema"]) == ("json_schema", True, file_task().output_schema)
    assert got(result).files == {"members.csv": CSV}


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (("system.sandbox_memory=null",), "system.sandbox_memory"),
        (("system.transport=websocket",), "system.transport"),
        (("system.search_context_size=huge",), "system.search_context_size"),
        (("system.delivery=mail",), "system.delivery"),
        (("system.block_hosts=1",), "system.block_hosts"),
        (("effort=enormous",), "effort"),
    ],
)
def test_settings_that_cannot_be_are_refused_by_name(words: tuple[str, ...], named: str) -> None:
    with pytest.raises(InputError, match=named.replace(".", r"\.")):
        make_system(ReplayServer([]), "openai", *words)


# the create


@pytest.mark.parametrize(
    ("refused", "headers"),
    [
        (429, {"retry-after": "1"}),
        (429, {"retry-after-ms": "15"}),
        (429, {"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "1.2s"}),
        (429, {}),
        (500, {}),
        (503, {}),
        (409, {}),
    ],
)
def test_a_create_that_started_nothing_is_sent_again(
    tmp_path: Path, refused: int, headers: dict[str, str]
) -> None:
    no = answer(
        "POST", CREATE, refused, {"error": {"message": "slow down", "code": "rate_limit_exceeded"}}, headers
    )
    result, server = run(tmp_path, [no, no, created(), ended(said("Yes."))])
    assert got(result).status == "completed"
    assert len(server.sent("POST")) == 3
    tokens = {request.json["metadata"]["token"] for request in server.sent("POST")}
    assert len(tokens) == 3, "each job has a name of its own"


@pytest.mark.parametrize(
    "bad",
    [
        hang_up("POST", CREATE),
        cut(created()),
        answer("POST", CREATE, 200, "<html><title>Sorry</title></html>"),
        answer("POST", CREATE, 504, "<html>gateway</html>"),
        answer("POST", CREATE, 200, {"object": "response"}),
        answer("POST", CREATE, 200, {"id": "..", "status": "queued"}),
        answer("POST", CREATE, 200, ["resp_1"]),
    ],
)
def test_a_create_that_may_have_been_read_is_sent_once(tmp_path: Path, bad: Exchange) -> None:
    result, server = run(tmp_path, [bad])
    submission = got(result)
    assert submission.error is not None
    assert (submission.status, submission.error.kind) == ("error", "maybe_billed")
    assert len(server.requests) == 1
    assert KEY not in submission.model_dump_json()
    assert result.calls == [("maybe_billed", None)]
    with ReplayServer([], port=server.port) as later:
        again = solved(tmp_path, later, "openai")
    assert got(again).error is not None
    assert later.requests == [], "no later start sends it again"


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        ({"code": "server_error", "message": "try again"}, "server"),
        ({"code": "rate_limit_exceeded", "message": "slow down"}, "rate_limit"),
        ({"code": "invalid_request_error", "message": "no such model"}, "bad_request"),
    ],
)
def test_an_error_in_place_of_a_response_has_the_tables_kind(error: dict[str, str], kind: str) -> None:
    with pytest.raises(CallError) as raised:
        _openai.snapshot_of({"error": error})
    assert raised.value.kind == kind
    assert error["message"] in raised.value.message


@pytest.mark.parametrize(
    ("code", "message", "kind"),
    [
        ("insufficient_quota", "You exceeded your current quota.", "quota"),
        ("invalid_api_key", "The key was withdrawn.", "key"),
    ],
)
def test_a_job_that_the_account_fails_stops_the_run(tmp_path: Path, code: str, message: str, kind: str) -> None:
    fault = {"code": code, "message": message}
    result, server = run(tmp_path, [created(), answer("GET", GET, body=response("failed", error=fault))])
    assert result.stopped is not None
    assert (result.stopped.kind, message in result.stopped.message) == (kind, True)
    assert result.stopped.message.startswith("openai: ")
    assert len(server.sent("POST")) == 1
    assert not result.job_left, "the next start sends it anew"


# polling


@pytest.mark.parametrize(
    "odd",
    [
        answer("GET", GET, 404, {"error": {"message": "not found"}}),
        answer("GET", GET, 503, "<html>Bad gateway</html>"),
        answer("GET", GET, 200, "<html>Soon</html>"),
        answer("GET", GET, 429, {"error": {"code": "rate_limit_exceeded"}}, {"retry-after": "1"}),
        answer("GET", GET, 200, {"what": "else"}),
        answer("GET", GET, 200, []),
        hang_up("GET", GET),
        cut(ended(said("Yes."))),
        answer("GET", GET, body=response("pondering")),
    ],
)
def test_a_poll_that_makes_no_sense_is_made_again(tmp_path: Path, odd: Exchange) -> None:
    result, server = run(tmp_path, [created(), odd, ended(said("Yes."))])
    submission = got(result)
    assert (submission.status, submission.text) == ("completed", "Yes.")
    assert len(server.sent("POST")) == 1


def test_a_state_that_nobody_knows_is_waited_for_until_the_deadline(tmp_path: Path) -> None:
    odd = answer("GET", GET, body=response("pondering"))
    cancelled = answer("POST", CANCEL, body=response("cancelled"))
    result, _ = run(tmp_path, [created()], None, SOON, always=[odd, cancelled])
    submission = got(result)
    assert submission.status == "timed_out"
    assert submission.settings["echoed"]["state"] == "pondering"


def test_a_job_that_ended_while_it_was_cancelled_counts(tmp_path: Path) -> None:
    over = answer("POST", CANCEL, 400, {"error": {"message": "Cannot cancel a completed response."}})

    def poll() -> bytes:
        done = response(output=[said("Just in time.")])
        return json.dumps(done if server.sent("POST", CANCEL) else response("in_progress")).encode()

    with ReplayServer([created()], always=[over, answer("GET", GET, make=poll)]) as server:
        result = solved(tmp_path, server, "openai", plain_task(), SOON)
    assert (got(result).status, got(result).text) == ("completed", "Just in time.")


# streams


def test_a_broken_stream_is_taken_up_after_its_last_event(tmp_path: Path) -> None:
    begun = events(
        event("created", 0, response=response("in_progress")),
        event("output_text.delta", 1, delta="Half "),
        event("output_text.delta", 2, delta="x" * 400),
    )
    rest = events(event("completed", 3, response=response(output=[said("Whole.")])), method="GET", path=GET)
    result, server = run(tmp_path, [cut(begun), rest], None, "system.transport=stream")
    assert (got(result).status, got(result).text) == ("completed", "Whole.")
    query = server.requests[1].query
    assert query["stream"] == "true"
    assert query["starting_after"] == "1", "the last event that came whole"
    assert len(server.sent("POST")) == 1


@pytest.mark.parametrize(
    "end",
    [
        [],
        [{"type": "error", "code": "server_error", "message": "lost", "sequence_number": 2}],
        [{"type": "error", "error": {"code": "server_error", "message": "lost"}}],
    ],
)
def test_a_stream_without_an_end_is_asked_about(tmp_path: Path, end: list[dict[str, Any]]) -> None:
    begun = events(event("queued", 0, response=response("queued")), *end)
    # it is not to be had as a stream any more, so it is polled
    refused = answer("GET", GET, 400, {"error": {"message": "no stream"}})
    result, server = run(tmp_path, [begun, refused, ended(said("Whole."))], None, "system.transport=stream")
    assert (got(result).status, got(result).text) == ("completed", "Whole.")
    assert [request.query.get("starting_after") for request in server.sent("GET")] == ["0", None]


def test_a_stream_of_odd_events_is_read(tmp_path: Path) -> None:
    body = (
        b": keep-alive\n\n"
        b"event: ping\ndata: not json\n\n"
        b'data: ["a list"]\n\n'
        b"event: response.created\ndata: "
        + json.dumps(event("created", 0, response=response("queued"))).encode()
        + b"\n\n"
        b'data: {"type": "response.novelty", "sequence_number": "x", "response": 7}\n\n'
        b"data: " + json.dumps(event("completed", 5, response=response(output=[said("Whole.")]))).encode()
    )
    stream = Exchange("POST", CREATE, 200, {"content-type": "text/event-stream; charset=utf-8"}, body)
    result, _ = run(tmp_path, [stream], None, "system.transport=stream")
    assert (got(result).status, got(result).text) == ("completed", "Whole.")


@pytest.mark.parametrize(
    ("first", "posts", "kind"),
    [
        (events({"type": "error", "code": "rate_limit_exceeded", "message": "slow"}), 2, None),
        (answer("POST", CREATE, 500, {"error": {"message": "oops"}}), 2, None),
        (events({"type": "error", "code": "invalid_request_error", "message": "bad model"}), 1, "bad_request"),
        (events(), 1, "maybe_billed"),
        (hang_up("POST", CREATE), 1, "maybe_billed"),
    ],
)
def test_a_stream_that_names_no_response(tmp_path: Path, first: Exchange, posts: int, kind: str | None) -> None:
    whole = events(event("completed", 0, response=response(output=[said("Whole.")])))
    result, server = run(tmp_path, [first, whole], None, "system.transport=stream")
    error = got(result).error
    assert (error.kind if error else None) == kind
    assert len(server.sent("POST")) == posts


@pytest.mark.parametrize(
    ("handle", "streamed"),
    [
        ({"id": ID, "after": 7, "until": 4e9}, True),
        ({"id": ID, "after": 7, "until": 0.0}, False),
        ({"id": ID}, False),
    ],
)
def test_a_job_is_listened_to_only_while_it_has_time(handle: dict[str, Any], streamed: bool) -> None:
    async def advanced() -> Snapshot:
        given = provider_services()
        system = make_system(server, "openai", "system.transport=stream", given=given)
        assert isinstance(system, JobSystem)
        try:
            ask = Ask(plain_task(), 1, "t", lambda _: None, _asked)
            return await system.provider.advance(ask, handle)
        finally:
            await given.http.aclose()

    # what a later start finds in the store: begun as a stream, past its deadline, begun as polls
    with ReplayServer([ended(said("Whole."))]) as server:
        snapshot = asyncio.run(advanced())
    assert snapshot.state == "completed"
    assert [request.query.get("starting_after") for request in server.requests] == ["7" if streamed else None]


def test_a_server_that_does_not_stream_is_polled(tmp_path: Path) -> None:
    result, server = run(tmp_path, [created(), ended(said("Whole."))], None, "system.transport=stream")
    assert got(result).text == "Whole."
    assert "stream" not in server.requests[1].query


def test_one_long_request(tmp_path: Path) -> None:
    whole = answer("POST", CREATE, body=response(output=[said("Whole.")]))
    result, server = run(tmp_path, [whole], None, "system.transport=sync")
    assert got(result).text == "Whole."
    assert "background" not in server.requests[0].json


# how it ends


@pytest.mark.parametrize(
    ("body", "status", "kind", "words", "text"),
    [
        (response(), "empty", None, "", None),
        (response(output=[said("")]), "empty", None, "", None),
        (
            response(output=[{"type": "message", "content": [{"type": "refusal", "refusal": "I can't."}]}]),
            "refused",
            "refused",
            "I can't.",
            None,
        ),
        (
            response("incomplete", [said("Half")], incomplete_details={"reason": "max_output_tokens"}),
            "incomplete",
            "truncated",
            "max_output_tokens",
            "Half",
        ),
        (
            response("incomplete", [said("Ha")], incomplete_details={"reason": "content_filter"}),
            "refused",
            "refused",
            "content_filter",
            "Ha",
        ),
        (response("incomplete", [], incomplete_details=7), "empty", "truncated", "null", None),
        (
            response("failed", error={"code": "server_error", "message": "It broke."}),
            "failed",
            "failed",
            "server_error: It broke.",
            None,
        ),
        (response("failed", error=None), "failed", "failed", "failed", None),
        (response("cancelled"), "failed", "failed", "cancelled", None),
    ],
)
def test_ends(
    tmp_path: Path, body: dict[str, Any], status: str, kind: str | None, words: str, text: str | None
) -> None:
    result, _ = run(tmp_path, [created(), answer("GET", GET, body=body)])
    submission = got(result)
    assert (submission.status, submission.text) == (status, text)
    assert (submission.error.kind if submission.error else None) == kind
    assert words in (submission.error.message if submission.error else "")
    assert submission.cost_usd is None, "without tokens the cost is unknown"


@pytest.mark.parametrize(
    ("model", "today", "warned"),
    [
        ("gpt-6.1-sol", date(2026, 11, 30), False),
        ("o3-deep-research", date(2026, 11, 30), True),
        ("gpt-5-2025-08-07", date(2026, 11, 30), True),
        ("gpt-5", date(2026, 10, 1), False),
        ("gpt-5.5", date(2026, 12, 30), False),
    ],
)
def test_a_model_that_is_switched_off_soon_is_warned_about(model: str, today: date, warned: bool) -> None:
    assert any(model in line for line in _warnings(model, today)) is warned
