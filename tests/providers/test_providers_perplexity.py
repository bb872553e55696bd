"""system=perplexity against recorded exchanges and what can go wrong beside them, over real HTTP."""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import Callable, Mapping
from dataclasses import replace
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
    sse,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from adapters._perplexity import citations_of, items_of, text_of
from adapters.perplexity import Perplexity, _snapshot
from core.errors import CallError, InputError
from core.jobs import JobSystem, Snapshot
from core.jobs.outcome import submission_of
from core.jobs.provider import Ask
from core.model import Submission

ID: Final = "resp_00000000-fake-4fake-8fake-000000000001"
AGENT: Final = "/v1/agent"
RUN: Final = f"/v1/responses/{ID}"
FILES: Final = f"{RUN}/files"
TOKEN: Final = uuid.UUID("12345678-1234-4234-8234-123456789abc")
OURS: Final = f"/v1/responses/resp_{TOKEN}"
ROWS: Final = "name\nNorthmere\n"
#: A deadline that passes while the test looks on.
SOON: Final = "system.ladders.product.low.timeout_s=0.15"


@pytest.fixture(autouse=True)
def _fixed_token(monkeypatch: pytest.MonkeyPatch) -> None:
    """Our name for a job, so that a response of this name can be played."""
    monkeypatch.setattr("core.jobs.ledger.uuid.uuid4", lambda: TOKEN)


def response(status: str = "completed", **fields: Any) -> dict[str, Any]:
    return {"id": ID, "object": "response", "model": "openai/gpt-6-luna", "status": status, "output": [], **fields}


def said(text: str, *annotations: Mapping[str, Any]) -> dict[str, Any]:
    part = {"type": "output_text", "text": text, "annotations": list(annotations)}
    return {"type": "message", "role": "assistant", "status": "completed", "content": [part]}


def shared(file: str, name: str) -> dict[str, Any]:
    return {"type": "share_file", "file_id": file, "filename": name, "size_bytes": 15}


def created() -> Exchange:
    return answer("POST", AGENT, 200, response("queued"))


def ended(**fields: Any) -> Exchange:
    return answer("GET", RUN, 200, response(**fields))


def listing(*files: tuple[str, str]) -> Exchange:
    return answer("GET", FILES, 200, {"object": "list", "data": [{"id": i, "filename": n} for i, n in files]})


def content(file: str, text: str = ROWS) -> Exchange:
    return replace(answer("GET", f"{FILES}/{file}/content", 200, text), headers={"content-type": "text/plain"})


def row(result: Solved) -> Submission:
    assert result.submission is not None
    return result.submission


def notes(submission: Submission) -> list[str]:
    return cast("list[str]", submission.settings["echoed"].get("notes", []))


# recorded scenarios


@pytest.mark.parametrize(
    ("name", "words", "status", "kind", "usd"),
    [
        ("happy", (), "completed", None, 0.25938),
        ("sync", ("system.transport=sync",), "completed", None, 0.25938),
        ("stream", ("system.transport=stream",), "completed", None, 0.25938),
        ("failed", (), "failed", "failed", None),
        ("incomplete", (), "incomplete", "truncated", 0.25938),
        ("transient_poll", (), "completed", None, 0.25938),
        ("rate", (), "completed", None, 0.25938),
    ],
)
def test_recorded_scenarios_end_as_they_should(
    tmp_path: Path, name: str, words: tuple[str, ...], status: str, kind: str | None, usd: float | None
) -> None:
    exchanges = scenario("perplexity", name)
    with ReplayServer(exchanges) as server:
        result = solved(tmp_path, server, "perplexity", plain_task(), "effort=low", *words)
    submission = row(result)
    assert (server.unexpected, server.left) == ([], 0)
    assert (submission.status, submission.cost_usd) == (status, usd)
    assert submission.cost_source == ("unknown" if usd is None else "reported")
    assert (submission.error.kind if submission.error else None) == kind
    assert not result.job_left, "an ended job is forgotten"
    assert {request.headers["authorization"] for request in server.requests} == {f"Bearer {KEY}"}
    assert KEY not in submission.model_dump_json()
    echoed = submission.settings["echoed"]
    assert echoed["id"] == ID
    assert echoed["model"] == exchanges[-1].json["model"] if name != "stream" else "openai/gpt-6-sol"
    assert submission.settings["effort"] == "low"


def test_what_a_finished_response_gives(tmp_path: Path) -> None:
    with ReplayServer(scenario("perplexity", "happy")) as server:
        submission = row(solved(tmp_path, server, "perplexity", plain_task(), "effort=high"))
    text = submission.text or ""
    assert text.startswith("The Lakeshore Grid Association has three members.")
    at = text.index("[1]")
    assert [(c.url, c.title, c.start, c.end) for c in submission.citations] == [
        ("https://lga.example.org/members", "Members - Lakeshore Grid Association", at, at + 3),
        ("https://northmere.example.org/about", "About Northmere Transmission", at + 3, at + 6),
        ("https://caldergrid.example.com/company", "Company - Calder Grid", at + 6, at + 9),
        ("https://solvane.example.net/history", "History | Solvane Networks", at + 9, at + 12),
    ]
    assert submission.citations[2].excerpt == "Calder Grid was formed in 2004 in Wexley."
    assert submission.usage is not None
    assert submission.usage.model_dump() == {
        "input": 182340,
        "cached_input": 120000,
        "output": 4120,
        "reasoning": None,
    }
    echoed = submission.settings["echoed"]
    assert (echoed["model"], echoed["effort"]) == ("openai/gpt-6-sol", "high")
    assert echoed["tool_calls"] == {"search_web": 14, "fetch_url": 9, "sandbox": 1}
    assert echoed["cost"] == {
        "input_cost": 0.12468,
        "output_cost": 0.0412,
        "cache_read_cost": 0.024,
        "tool_calls_cost": 0.0695,
    }


def test_recorded_files_are_fetched_right_after_the_end(tmp_path: Path) -> None:
    with ReplayServer(scenario("perplexity", "files")) as server:
        submission = row(solved(tmp_path, server, "perplexity", file_task(), "effort=high"))
    assert (server.unexpected, server.left) == ([], 0)
    assert submission.status == "completed"
    assert submission.files["members.csv"].splitlines()[1] == (
        "Northmere Transmission,Ashby Quay,1998,https://northmere.example.org/about"
    )
    assert submission.settings["echoed"]["delivered"] is True
    body = server.requests[0].json
    assert body["tools"] == [{"type": "web_search"}, {"type": "sandbox"}]
    assert body["input"].startswith(plain_task().prompt)
    assert "/workspace/members.csv" in body["input"]
    assert "share_file" in body["input"]
    assert "response_format" not in body


def late(tmp_path: Path, create: Exchange, before: Exchange, stop: Exchange, after: Exchange) -> Solved:
    """A job whose deadline passes: polls give `before` until it is told to stop, and then `after`."""

    def polled() -> bytes:
        return (after if server.sent("POST", f"{RUN}/cancel") else before).body

    with ReplayServer([create], always=[stop, answer("GET", RUN, make=polled)]) as server:
        result = solved(tmp_path, server, "perplexity", plain_task(), "effort=low", SOON)
    assert server.unexpected == []
    assert len(server.sent("POST", f"{RUN}/cancel")) == 1
    return result


def test_a_job_past_its_deadline_is_cancelled(tmp_path: Path) -> None:
    create, before, stop, after = scenario("perplexity", "cancel")
    submission = row(late(tmp_path, create, before, stop, after))
    assert submission.status == "timed_out"
    assert submission.error is not None
    assert submission.error.kind == "timed_out"
    assert "system.timeout_s" in submission.error.message
    assert submission.settings["echoed"]["state"] == "cancelled"
    assert (submission.cost_usd, submission.cost_source) == (None, "unknown")


# what is asked


@pytest.mark.parametrize(
    ("words", "sent", "absent"),
    [
        (("effort=xhigh",), {"effort": "xhigh"}, ("model", "reasoning")),
        (("effort=fast",), {"effort": "fast"}, ("model", "reasoning")),
        (
            ("effort=high", "system.ladders.product.high.agent_effort='high@2026-10-16.0'"),
            {"effort": "high@2026-10-16.0"},
            ("model", "reasoning"),
        ),
        (
            ("effort=high", "system.ladder=wandr"),
            {"model": "openai/gpt-5.5", "reasoning": {"effort": "high"}},
            ("effort",),
        ),
        (
            ("effort=low", "system.ladder=model", "system.model=anthropic/claude-opus-5-5"),
            {"model": "anthropic/claude-opus-5-5", "reasoning": {"effort": "low"}},
            ("effort",),
        ),
    ],
)
def test_one_knob_is_sent(
    tmp_path: Path, words: tuple[str, ...], sent: dict[str, Any], absent: tuple[str, ...]
) -> None:
    with ReplayServer([created(), ended(output=[said("Three.")])]) as server:
        submission = row(solved(tmp_path, server, "perplexity", plain_task(), *words))
    body = server.requests[0].json
    common = {
        "input": plain_task().prompt,
        "background": True,
        "store": True,
        "max_steps": 100,
        "max_output_tokens": 128000,
        "tools": [{"type": "web_search"}, {"type": "fetch_url"}],
    }
    assert body == {**common, **sent}
    assert not set(absent) & set(body)
    assert server.requests[0].headers["x-request-id"] == str(TOKEN)
    known = {name: value for name, value in submission.settings.items() if name in sent}
    assert known == sent, "what was sent stands in the row"
    assert "transport" not in submission.settings


@pytest.mark.parametrize(
    ("words", "where"),
    [
        (
            ("system.ladder=model", "system.model=openai/gpt-5.5", "system.agent_effort=high"),
            "system.agent_effort",
        ),
        (("system.reasoning_effort=high",), "system.agent_effort"),
        (("system.ladder=model",), "system.agent_effort"),
        (("system.ladder=wandr", "system.model=openai/gpt-6-sol"), "system.model"),
        (
            ("system.ladder=model", "system.model=anthropic/claude-opus-5-5", "system.max_output_tokens=null"),
            "system.max_output_tokens",
        ),
        (("system.file_tools=[web_search]",), "system.file_tools"),
        (("system.tools=[web_search,shell]",), "system.tools"),
        (("system.delivery=text",), "system.delivery"),
        (("system.transport=carrier",), "system.transport"),
        (("system.max_steps=0",), "system.max_steps"),
    ],
)
def test_a_config_that_can_not_be_used_is_refused(words: tuple[str, ...], where: str) -> None:
    with pytest.raises(InputError, match=where):
        make_system(ReplayServer([]), "perplexity", "effort=high", *words)


@pytest.mark.parametrize(
    ("blocked", "filtered", "noted"),
    [
        (("a.example",), ["-a.example"], []),
        (("a.example/x/y", "a.example/x/y", "b.example/"), ["-https://a.example/x/y", "-b.example"], []),
        (
            tuple(f"h{n}.example" for n in range(22)),
            [f"-h{n}.example" for n in range(20)],
            ["2 blocked addresses were not passed on: no more than 20 may be"],
        ),
    ],
)
def test_blocked_pages_are_left_out_of_the_search(
    tmp_path: Path, blocked: tuple[str, ...], filtered: list[str], noted: list[str]
) -> None:
    with ReplayServer([created(), ended(output=[said("Three.")])]) as server:
        submission = row(solved(tmp_path, server, "perplexity", plain_task(blocked=blocked)))
    assert server.requests[0].json["tools"] == [
        {"type": "web_search", "filters": {"search_domain_filter": filtered}},
        {"type": "fetch_url"},
    ]
    assert notes(submission) == noted


@pytest.mark.parametrize(("tools", "can"), [("[web_search]", True), ("[fetch_url]", False)])
def test_only_a_search_can_block(tools: str, can: bool) -> None:
    system = make_system(ReplayServer([]), "perplexity", f"system.tools={tools}")
    assert getattr(system, "can_block", None) is can


def test_a_typed_reply_is_asked_for_at_the_top_and_read_as_files(tmp_path: Path) -> None:
    reply = json.dumps({"files": [{"path": "members.csv", "content": ROWS}]})
    with ReplayServer([created(), ended(output=[said(reply)])]) as server:
        submission = row(solved(tmp_path, server, "perplexity", file_task(), "system.delivery=schema"))
    body = server.requests[0].json
    assert body["response_format"]["type"] == "json_schema"
    assert body["response_format"]["json_schema"]["schema"] == file_task().output_schema
    assert body["input"] == file_task().prompt
    assert "text" not in body, "text.format is refused"
    assert submission.files == {"members.csv": ROWS}


def test_the_prefix_and_a_gateway_that_ends_in_a_version(tmp_path: Path) -> None:
    done = replace(ended(output=[said("Three.")]), path=RUN.replace("/v1/", "/v2/"))
    with ReplayServer([replace(created(), path="/v2/agent"), done]) as server:
        words = ("system.prefix=v2", f"system.base_url={server.base_url}/v2")
        assert row(solved(tmp_path, server, "perplexity", plain_task(), *words)).status == "completed"
    assert server.unexpected == []


# errors of a create


@pytest.mark.parametrize(
    ("refusal", "kind"),
    [
        ("92_err_401_quota", "quota"),
        ((402, {"error": {"message": "Payment required", "type": "billing", "code": 402}}), "quota"),
        ((429, {"error": {"message": "out of credits", "type": "insufficient_quota", "code": 429}}), "quota"),
        ((200, {"error": {"message": "Invalid API key provided", "type": "forbidden", "code": 401}}), "key"),
    ],
)
def test_a_wrong_key_and_an_empty_account_stop_the_run_at_once(
    tmp_path: Path, refusal: str | tuple[int, dict[str, Any]], kind: str
) -> None:
    said_no = recorded("perplexity", refusal) if isinstance(refusal, str) else answer("POST", AGENT, *refusal)
    with ReplayServer([said_no]) as server:
        result = solved(tmp_path, server, "perplexity")
    assert len(server.requests) == 1
    assert result.stopped is not None
    assert result.stopped.kind == kind
    assert "perplexity" in result.stopped.message
    assert KEY not in result.stopped.message
    assert not result.job_left


def test_the_auth_scenario(tmp_path: Path) -> None:
    with ReplayServer(scenario("perplexity", "auth")) as server:
        result = solved(tmp_path, server, "perplexity")
    assert (len(server.requests), server.left, result.job_left) == (1, 0, False)
    assert result.stopped is not None
    assert result.stopped.kind == "key"


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (
            400,
            {"error": {"message": "unknown field: text", "type": "invalid_request", "code": 400}},
            "bad_request",
        ),
        (413, {"error": {"message": "too large", "type": "request_too_large", "code": 413}}, "too_large"),
        (404, "<html><body>no such page</body></html>", "not_found"),
    ],
)
def test_a_refused_form_is_an_error_and_is_not_sent_again(
    tmp_path: Path, status: int, body: Any, kind: str
) -> None:
    with ReplayServer([answer("POST", AGENT, status, body)]) as server:
        result = solved(tmp_path, server, "perplexity")
    submission = row(result)
    assert len(server.requests) == 1
    assert (submission.status, submission.cost_usd) == ("error", 0.0)
    assert submission.error is not None
    assert submission.error.kind == kind
    assert not result.job_left


@pytest.mark.parametrize(
    ("status", "headers", "body"),
    [
        (429, {"retry-after": "2"}, {"error": {"message": "slow", "type": "request_rate_limit_exceeded"}}),
        (429, {"retry-after": "Mon, 30 Nov 2026 10:00:00 GMT"}, {"error": {"message": "Rate limit exceeded"}}),
        (429, {"retry-after-ms": "5"}, {"error": {"message": "Rate limit exceeded"}}),
        (429, {"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "1s"}, {"error": "slow"}),
        (429, {}, "<html>Too many requests</html>"),
        (500, {}, {"error": {"message": "internal", "type": "server_error", "code": 500}}),
        (502, {}, "<html><title>Bad gateway</title></html>"),
        (503, {"retry-after": "1"}, ""),
        (409, {}, {"error": {"message": "conflict"}}),
        (200, {}, {"error": {"message": "Rate limit exceeded", "code": 429}}),
    ],
)
def test_a_create_that_was_turned_away_is_sent_again(
    tmp_path: Path, status: int, headers: dict[str, str], body: Any
) -> None:
    away = answer("POST", AGENT, status, body, headers)
    with ReplayServer([away, created(), ended(output=[said("Three.")])]) as server:
        result = solved(tmp_path, server, "perplexity")
    assert row(result).status == "completed"
    assert (len(server.sent("POST")), server.left) == (2, 0)


@pytest.mark.parametrize(
    "lost",
    [
        hang_up("POST", AGENT),
        cut(answer("POST", AGENT, 200, response("queued"))),
        answer("POST", AGENT, 200, "<html>welcome</html>"),
        answer("POST", AGENT, 200, {"status": "queued"}),
        answer("POST", AGENT, 200, [1]),
        answer("POST", AGENT, 200, {"error": {"message": "something broke"}}),
        answer("POST", AGENT, 504, "<html>gateway time-out</html>"),
    ],
    ids=["hang_up", "cut", "html", "no_id", "list", "error_in_200", "gateway"],
)
@pytest.mark.parametrize("known", [True, False])
def test_a_create_whose_answer_was_lost_is_looked_up_by_our_id(
    tmp_path: Path, lost: Exchange, known: bool
) -> None:
    done = answer("GET", OURS, 200, response(output=[said("Three.")]))
    missing = answer("GET", OURS, 404, {"error": {"message": "Response not found", "code": 404}})
    with ReplayServer([lost], always=[done if known else missing]) as server:
        result = solved(tmp_path, server, "perplexity")
    assert len(server.sent("POST")) == 1, "a create is never sent twice"
    submission = row(result)
    if known:
        assert (submission.status, submission.text) == ("completed", "Three.")
        return
    assert submission.status == "error"
    assert submission.error is not None
    assert submission.error.kind == "maybe_billed"
    assert submission.cost_usd is None, "unknown, not free"
    with ReplayServer([], always=[missing], port=server.port) as again:
        assert row(solved(tmp_path, again, "perplexity")).status == "error"
    assert again.sent("POST") == [], "the next start looks it up and sends nothing"


# polls


@pytest.mark.parametrize(
    "odd",
    [
        answer("GET", RUN, 404, {"error": {"message": "Response not found", "code": 404}}),
        answer("GET", RUN, 502, "<html>Bad gateway</html>"),
        answer("GET", RUN, 200, "<html>maintenance</html>"),
        answer("GET", RUN, 200, {"error": {"message": "overloaded", "code": 529}}),
        answer("GET", RUN, 200, {"status": "completed"}),
        answer("GET", RUN, 429, {"error": {"message": "Rate limit exceeded"}}),
        hang_up("GET", RUN),
        cut(answer("GET", RUN, 200, response("in_progress"))),
        answer("GET", RUN, 200, response("pondering")),
        answer("GET", RUN, 200, response(cast("Any", ["completed"]))),
    ],
    ids=["404", "502", "html", "error_in_200", "no_id", "429", "hang_up", "cut", "unknown_state", "no_word"],
)
def test_a_poll_that_makes_no_sense_is_made_again(tmp_path: Path, odd: Exchange) -> None:
    with ReplayServer([created(), odd, ended(output=[said("Three.")])]) as server:
        result = solved(tmp_path, server, "perplexity")
    assert row(result).text == "Three."
    assert (len(server.sent("POST")), server.left, server.unexpected) == (1, 0, [])


STOPPING: Final = answer("POST", f"{RUN}/cancel", 200, {"response_id": ID, "status": "cancelling"})


def test_a_state_that_nobody_knows_is_asked_about_until_the_deadline(tmp_path: Path) -> None:
    odd = answer("GET", RUN, 200, response("pondering"))
    submission = row(late(tmp_path, created(), odd, STOPPING, odd))
    assert submission.status == "timed_out"
    assert submission.settings["echoed"]["state"] == "pondering"


def test_a_job_that_ends_while_it_is_cancelled_counts(tmp_path: Path) -> None:
    waiting = answer("GET", RUN, 200, response("in_progress"))
    refused = recorded("perplexity", "96_err_400_cancel_terminal")
    submission = row(late(tmp_path, created(), waiting, refused, ended(output=[said("Three.")])))
    assert (submission.status, submission.text) == ("completed", "Three.")


# ends


REFUSED: Final = {"type": "message", "content": [{"type": "refusal", "refusal": "I can't help with that."}]}


@pytest.mark.parametrize(
    ("body", "status", "kind", "words"),
    [
        (response(), "empty", "empty", ""),
        (response(output=[said("  ")]), "empty", "empty", ""),
        (response(output=None), "empty", "empty", ""),
        (response(output=[REFUSED]), "refused", "refused", "I can't help with that."),
        (response(output=[REFUSED, said("But here it is.")]), "completed", None, ""),
        (response("failed", error={"message": "no", "code": "content_filter"}), "refused", "refused", "no"),
        (response("failed", error={"message": "provider error"}), "failed", "failed", "provider error"),
        (response("failed", error="gone"), "failed", "failed", "gone"),
        (response("failed"), "failed", "failed", "failed"),
        (response("cancelled", error={"message": "by the console"}), "failed", "failed", "by the console"),
        (
            response("incomplete", output=[said("Two of")], incomplete_details={"reason": "max_output_tokens"}),
            "incomplete",
            "truncated",
            "stopped early: max_output_tokens",
        ),
        (
            response("incomplete", incomplete_details={"reason": "content_filter"}),
            "refused",
            "refused",
            "stopped early: content_filter",
        ),
        (
            response("requires_action", output=[said("One.")]),
            "incomplete",
            "truncated",
            "it asks for a tool of ours",
        ),
    ],
)
def test_how_a_job_ended(tmp_path: Path, body: dict[str, Any], status: str, kind: str | None, words: str) -> None:
    with ReplayServer([created(), answer("GET", RUN, 200, body)]) as server:
        submission = row(solved(tmp_path, server, "perplexity"))
    assert submission.status == status
    if kind is not None and status != "empty":
        assert submission.error is not None
        again = "" if status == "incomplete" else "; retry=failed sends it again"
        assert (submission.error.kind, submission.error.message) == (kind, f"perplexity: {words}; job {ID}{again}")
    assert (submission.cost_usd, submission.cost_source) == (None, "unknown")


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        ({"message": "You exceeded your current quota", "code": 401}, "quota"),
        ({"message": "Payment required", "type": "billing"}, "quota"),
        ("insufficient credits", "quota"),
        ({"message": "Invalid API key provided", "code": "invalid_api_key"}, "key"),
        ({"message": "provider error"}, None),
    ],
)
def test_a_job_that_failed_for_want_of_credit_is_no_score(tmp_path: Path, error: Any, kind: str | None) -> None:
    with ReplayServer([created(), ended(status="failed", error=error)]) as server:
        result = solved(tmp_path, server, "perplexity")
    assert (len(server.sent("POST")), result.job_left) == (1, False)
    assert (None if result.stopped is None else result.stopped.kind) == kind
    assert (result.submission is None) is (kind is not None)


def test_only_plain_values_are_echoed(tmp_path: Path) -> None:
    deep: Any = 1
    for _ in range(250):
        deep = {"a": deep}
    odd = ended(
        output=[said("Three.")], model=deep, effort=deep, usage={"cost": {"total_cost": 0.1, "more": deep}}
    )
    with ReplayServer([created(), odd]) as server:
        submission = row(solved(tmp_path, server, "perplexity"))
    assert (submission.status, submission.cost_usd) == ("completed", 0.1)
    assert {"model", "effort"}.isdisjoint(submission.settings["echoed"])


def test_items_of_unknown_type_are_noted_once(tmp_path: Path) -> None:
    output = [{"type": "hologram"}, said("Three."), {"type": "hologram"}, {"type": ["x"]}, 7, {}]
    with ReplayServer([created(), ended(output=output)]) as server:
        submission = row(solved(tmp_path, server, "perplexity"))
    assert submission.text == "Three."
    assert notes(submission) == [
        'an item of unknown type: "hologram"',
        'an item of unknown type: ["x"]',
        "an item of unknown type: null",
    ]


# streams


def event(kind: str, number: int | None, **fields: Any) -> dict[str, Any]:
    numbered = {} if number is None else {"sequence_number": number}
    return {"data": {"type": kind, **numbered, **fields}}


def stream(method: str, path: str, *events: Mapping[str, Any], tail: bytes = b"") -> Exchange:
    return Exchange(method, path, 200, {"content-type": "text/event-stream"}, sse(*events) + tail)


def broken(exchange: Exchange) -> Exchange:
    """All of these events, and then the connection breaks."""
    return cut(replace(exchange, body=exchange.body + b":" + b"." * (len(exchange.body) - 1)))


FIRST: Final = event("response.created", 0, response=response("in_progress"))
SECOND: Final = event("response.reasoning.started", 1, thought="looking")
LAST: Final = event("response.completed", 2, response=response(output=[said("Three.")]))


@pytest.mark.parametrize(
    ("exchanges", "queries"),
    [
        # goes on after the last event that was heard
        (
            [broken(stream("POST", AGENT, FIRST, SECOND)), stream("GET", RUN, LAST)],
            [{"stream": "true", "starting_after": "1"}],
        ),
        # a clean end without the job's end is a break as well
        (
            [stream("POST", AGENT, FIRST), stream("GET", RUN, SECOND), stream("GET", RUN, LAST)],
            [{"stream": "true", "starting_after": "0"}, {"stream": "true", "starting_after": "1"}],
        ),
        # a server that repeats what was heard says nothing new: the job is polled
        (
            [
                broken(stream("POST", AGENT, FIRST, SECOND)),
                stream("GET", RUN, FIRST, SECOND),
                ended(output=[said("Three.")]),
            ],
            [{"stream": "true", "starting_after": "1"}, {}],
        ),
        # one that starts anew is read past what was heard
        (
            [broken(stream("POST", AGENT, FIRST, SECOND)), stream("GET", RUN, FIRST, SECOND, LAST)],
            [{"stream": "true", "starting_after": "1"}],
        ),
        # a stream that can't be gone on with
        (
            [
                broken(stream("POST", AGENT, FIRST)),
                answer("GET", RUN, 400, {"error": {"message": "no stream", "code": 400}}),
                answer("GET", RUN, 200, response("in_progress")),
                ended(output=[said("Three.")]),
            ],
            [{"stream": "true", "starting_after": "0"}, {}, {}],
        ),
        # events without numbers: polled
        (
            [
                broken(stream("POST", AGENT, event("response.created", None, response=response("queued")))),
                ended(output=[said("Three.")]),
            ],
            [{}],
        ),
        # an error event after the job was named: the job itself is asked
        (
            [
                stream("POST", AGENT, FIRST, {"data": {"type": "error", "error": {"message": "stream broke"}}}),
                ended(output=[said("Three.")]),
            ],
            [{"stream": "true", "starting_after": "0"}],
        ),
        # keep-alives, events of unknown form, no empty line at the end
        (
            [
                replace(
                    stream("POST", AGENT),
                    body=b": ping\n\n"
                    + sse(FIRST, {"data": "[DONE]"}, {"data": [1]}, {"data": {"response": {"status": "failed"}}})
                    + sse(LAST)[:-2],
                )
            ],
            [],
        ),
        # answered without a stream
        ([answer("POST", AGENT, 200, response(output=[said("Three.")]))], []),
    ],
    ids=["resume", "clean_end", "repeats", "restarts", "refused", "unnumbered", "error", "noise", "plain"],
)
def test_a_stream_is_gone_on_with_or_the_job_is_polled(
    tmp_path: Path, exchanges: list[Exchange], queries: list[dict[str, str]]
) -> None:
    with ReplayServer(exchanges) as server:
        result = solved(tmp_path, server, "perplexity", plain_task(), "system.transport=stream")
    assert row(result).text == "Three."
    assert server.requests[0].json["stream"] is True
    assert server.requests[0].headers["accept"] == "text/event-stream"
    assert [dict(request.query) for request in server.sent("GET")] == queries
    assert (len(server.sent("POST")), server.left, server.unexpected) == (1, 0, [])


def test_a_stream_that_never_named_its_job_is_looked_up(tmp_path: Path) -> None:
    done = answer("GET", OURS, 200, response(output=[said("Three.")]))
    for lost in (stream("POST", AGENT, SECOND), broken(stream("POST", AGENT, SECOND)), hang_up("POST", AGENT)):
        with ReplayServer([lost], always=[done]) as server:
            folder = tmp_path / str(server.port)
            folder.mkdir()
            result = solved(folder, server, "perplexity", plain_task(), "system.transport=stream")
        assert row(result).text == "Three."
        assert len(server.sent("POST")) == 1


# files


def test_a_file_that_is_not_there_yet_is_waited_for(tmp_path: Path) -> None:
    missing = answer("GET", f"{FILES}/f1/content", 404, {"error": {"message": "File not found", "code": 404}})
    done = ended(output=[shared("f1", "members.csv"), said("Done.")])
    with ReplayServer([created(), done, listing(), missing, missing, content("f1")]) as server:
        submission = row(solved(tmp_path, server, "perplexity", file_task()))
    assert (server.left, server.unexpected) == (0, [])
    assert (submission.status, dict(submission.files)) == ("completed", {"members.csv": ROWS})


GONE: Final = answer("GET", f"{FILES}/f1/content", 404, {"error": {"message": "File not found", "code": 404}})
EXPIRED: Final = answer("GET", f"{FILES}/f1/content", 403, {"error": {"message": "the link has expired"}})


@pytest.mark.parametrize(
    ("output", "files", "downloads", "got", "note"),
    [
        ([shared("f1", "members.csv")], (), [content("f1")], ROWS, None),
        ([], (("f1", "members.csv"),), [content("f1")], ROWS, None),
        ([shared("f1", "/workspace/members.csv")], (), [content("f1")], ROWS, None),
        # the model shared it again: the later one counts, wherever the list has it
        (
            [shared("f1", "members.csv"), shared("f2", "members.csv")],
            (("f2", "members.csv"), ("f1", "members.csv")),
            [content("f1", "old\n"), content("f2")],
            ROWS,
            "members.csv: delivered more than once, the last one counts",
        ),
        (
            [{"type": "share_file", "error": {"message": "disk full"}}, shared("f1", "members.csv")],
            (),
            [content("f1")],
            ROWS,
            'a file was not shared: {"message": "disk full"}',
        ),
        ([{"type": "share_file", "error": "no"}], (), [], None, 'a file was not shared: "no"'),
        ([], (), [], None, None),
        ([shared("f1", "members.csv")], (), [content("f1", "")], None, None),
        ([shared("f1", "other.csv")], (), [], None, 'a file that was not asked for: "other.csv"'),
        ([shared("f1", "../members.csv")], (), [], None, 'a file that was not asked for: "../members.csv"'),
        ([shared("..", "members.csv")], (), [], None, "a file was not shared: null"),
        ([shared("f1", "members.csv")], (), [GONE], None, "File not found"),
        ([shared("f1", "members.csv")], (), [EXPIRED], None, "the link has expired"),
    ],
)
def test_files_are_shared_listed_or_noted(
    tmp_path: Path,
    output: list[Any],
    files: tuple[tuple[str, str], ...],
    downloads: list[Exchange],
    got: str | None,
    note: str | None,
) -> None:
    done = ended(output=[*output, said("Done.")])
    with ReplayServer([created(), done, listing(*files), *downloads]) as server:
        submission = row(solved(tmp_path, server, "perplexity", file_task()))
    assert (server.left, server.unexpected) == (0, [])
    assert (submission.files.get("members.csv") or None) == got
    assert submission.settings["echoed"]["delivered"] is (got is not None)
    if got is None:
        assert submission.status == "empty"
        assert submission.error is not None
        assert "not delivered: members.csv" in submission.error.message
        assert submission.text == "Done."
    if note is not None:
        assert any(note in one for one in notes(submission)), notes(submission)


def test_several_files_of_which_one_is_missing_are_incomplete(tmp_path: Path) -> None:
    done = ended(output=[shared("f1", "a.csv"), said("Done.")])
    with ReplayServer([created(), done, listing(), content("f1")]) as server:
        submission = row(solved(tmp_path, server, "perplexity", file_task("a.csv", "b.csv")))
    assert (submission.status, dict(submission.files)) == ("incomplete", {"a.csv": ROWS})
    assert submission.error is not None
    assert submission.error.message == f"perplexity: not delivered: b.csv; job {ID}"


def test_a_job_that_failed_after_it_shared_its_files_delivered(tmp_path: Path) -> None:
    done = answer(
        "GET", RUN, 200, response("failed", error={"message": "x"}, output=[shared("f1", "members.csv")])
    )
    with ReplayServer([created(), done, answer("GET", FILES, 404, {}), content("f1")]) as server:
        submission = row(solved(tmp_path, server, "perplexity", file_task()))
    assert (server.left, server.unexpected) == (0, [])
    assert (submission.status, dict(submission.files)) == ("incomplete", {"members.csv": ROWS})


def test_a_provider_that_is_down_after_the_end_is_asked_by_the_next_start(tmp_path: Path) -> None:
    done = ended(output=[shared("f1", "members.csv"), said("Done.")])
    down = answer("GET", f"{FILES}/f1/content", 502, "<html>Bad gateway</html>")
    with ReplayServer([created(), done, listing(), down]) as server:
        result = solved(tmp_path, server, "perplexity", file_task())
    assert result.job_left
    assert row(result).error is not None
    assert row(result).error.kind == "unreachable"  # type: ignore[union-attr]
    with ReplayServer([done, listing(), content("f1")], port=server.port) as again:
        submission = row(solved(tmp_path, again, "perplexity", file_task()))
    assert (again.sent("POST"), submission.status) == ([], "completed")
    assert submission.settings["echoed"]["resumed"] is True


def test_hostile_names_stay_one_part_of_the_path(tmp_path: Path) -> None:
    name = "../../v1/keys?x=/\ud800#"
    done = answer("GET", RUN, 200, response(output=[shared(name, "members.csv"), said("Done.")]))
    with ReplayServer([created(), done, listing()]) as server:
        submission = row(solved(tmp_path, server, "perplexity", file_task(), attempts=1))
    odd = server.requests[-1]
    assert odd.path.startswith(FILES), odd.path
    assert odd.path.endswith("/content")
    assert dict(odd.query) == {}
    assert submission.files == {}


# citations


def test_annotations_and_markers_are_placed_in_the_whole_text() -> None:
    found = [
        {"id": 1, "url": "https://a.example/?utm_source=x", "title": "A", "snippet": "a says"},
        {"id": 2, "url": "https://b.example/", "title": "B", "snippet": "b says"},
        {"id": 3, "url": "https://c.example/", "title": "C", "snippet": ""},
    ]
    fetched = {"url": "https://c.example/", "title": "C", "snippet": "c says"}
    note = {"type": "url_citation", "url": "https://d.example/", "title": "D", "start_index": 0, "end_index": 2}
    wild = {"type": "url_citation", "url": "https://e.example/", "start_index": 5, "end_index": 9000}
    items = items_of(
        {
            "output": [
                {"type": "search_results", "results": found},
                {"type": "fetch_url_results", "contents": [fetched]},
                said("Résumé – first [2, 3], then [2]."),
                said("D. [7](https://x.example/) [1]", note, wild),
            ]
        }
    )
    text, annotated = text_of(items)
    assert text == "Résumé – first [2, 3], then [2].\n\nD. [7](https://x.example/) [1]"
    got = {
        c.url: (c.title, c.excerpt, None if c.start is None else text[c.start : c.end])
        for c in citations_of(items, text, annotated)
    }
    assert got == {
        "https://b.example/": ("B", "b says", "[2, 3]"),
        "https://c.example/": ("C", "c says", "[2, 3]"),
        "https://d.example/": ("D", None, "D."),
        "https://a.example/": ("A", "a says", "[1]"),
        "https://e.example/": (None, None, None),
    }
    assert list(got) == [f"https://{name}.example/" for name in "bcdae"]


def test_a_number_that_two_addresses_share_names_neither() -> None:
    output = [
        {"type": "search_results", "results": [{"id": 1, "url": "https://a.example/"}]},
        {"type": "search_results", "results": [{"id": 1, "url": "https://b.example/"}]},
    ]
    items = items_of({"output": output})
    assert [(c.url, c.start) for c in citations_of(items, "x [1]", [])] == [
        ("https://a.example/", None),
        ("https://b.example/", None),
    ]


# money


USAGE: Final = {
    "input_tokens": 1_000_000,
    "output_tokens": 100_000,
    "input_tokens_details": {"cache_read_input_tokens": 400_000},
}
SEARCHES: Final = {"search_web": {"invocation": 10}, "sandbox": {"invocation": 3}}


@pytest.mark.parametrize(
    ("model", "usage", "words", "usd", "source"),
    [
        ("x/y", {**USAGE, "cost": {"currency": "USD", "total_cost": 1.5}}, (), 1.5, "reported"),
        ("x/y", {"cost": {"total_cost": 0}}, (), 0.0, "reported"),
        # gpt-6-sol: 2 / 0.2 / 10 a million, twice and half as much again above 272k tokens of input
        ("openai/gpt-6-sol", USAGE, (), 0.6 * 4 + 0.4 * 0.4 + 0.1 * 15, "computed"),
        ("anthropic/claude-opus-5-5", USAGE, (), 0.6 * 4 + 0.4 * 0.2 + 0.1 * 20, "computed"),
        ("anthropic/fable-5-x", USAGE, (), 0.6 * 10 + 0.4 * 0.5 + 0.1 * 50, "computed"),
        (
            "anthropic/claude-opus-5-5",
            {**USAGE, "tool_calls_details": SEARCHES},
            (),
            0.6 * 4 + 0.4 * 0.2 + 0.1 * 20 + 0.025 + 0.03,
            "computed",
        ),
        (
            "x/y",
            {**USAGE, "tool_calls_details": {"new_tool": {"invocation": 2, "cost_usd": 0.5}}},
            ("system.price={input: 1, output: 2}",),
            1.0 + 0.2 + 0.5,
            "computed",
        ),
        ("x/y", USAGE, (), None, "unknown"),
        (
            "anthropic/claude-opus-5-5",
            {**USAGE, "tool_calls_details": {"new": {"invocation": 1}}},
            (),
            None,
            "unknown",
        ),
        ("x/y", {**USAGE, "cost": {"currency": "EUR", "total_cost": 1.5}}, (), None, "unknown"),
        ("x/y", {"cost": {"total_cost": -1}}, (), None, "unknown"),
        ("x/y", {"cost": {"total_cost": "1.5"}}, (), None, "unknown"),
        ("x/y", None, (), None, "unknown"),
    ],
)
def test_what_a_job_cost(
    tmp_path: Path, model: str, usage: Any, words: tuple[str, ...], usd: float | None, source: str
) -> None:
    done = ended(output=[said("Three.")], model=model, usage=usage)
    with ReplayServer([created(), done]) as server:
        result = solved(tmp_path, server, "perplexity", plain_task(), *words)
    submission = row(result)
    assert submission.cost_source == source
    assert submission.cost_usd == (None if usd is None else pytest.approx(usd))
    assert result.calls == [(None, submission.cost_usd)]


# whatever JSON comes


LEAF = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-2, 10),
    st.sampled_from([float("nan"), float("inf"), 1e300, 10**400, "", "..", "completed", "[1][2]", "members.csv"]),
    st.sampled_from(
        ["message", "search_results", "fetch_url_results", "share_file", "refusal", "https://a.example"]
    ),
    st.text(max_size=5),
)
NAMES = (
    *("id", "type", "status", "output", "content", "text", "annotations", "results", "contents", "url", "title"),
    *("error", "message", "code", "usage", "cost", "total_cost", "input_tokens", "output_tokens", "model"),
    *("tool_calls_details", "invocation", "cost_usd", "file_id", "filename", "data", "created_at", "refusal"),
    *("incomplete_details", "reason", "start_index", "end_index", "input_tokens_details", "currency", "snippet"),
)
ANY = st.recursive(
    LEAF,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=6),
    max_leaves=12,
)
ITEMS = st.lists(
    st.dictionaries(st.sampled_from(NAMES), ANY, max_size=5)
    | st.fixed_dictionaries({"type": st.sampled_from(["share_file"]), "file_id": ANY, "filename": ANY})
    | st.fixed_dictionaries(
        {"type": st.sampled_from(["message", "search_results"]), "content": ANY, "results": ANY}
    ),
    max_size=5,
)
BODIES = st.builds(
    lambda body, fields: {**body, **fields},
    st.dictionaries(st.sampled_from(NAMES), ANY, max_size=8),
    st.fixed_dictionaries(
        {},
        optional={
            "id": st.just(ID),
            "output": ITEMS,
            "status": st.sampled_from(["completed", "failed", "incomplete"]),
        },
    ),
)


class _Desk:
    """Answers every question with the same JSON, every download with the same bytes."""

    def __init__(self, page: Any, file: bytes) -> None:
        self.page, self.file = page, file

    async def json(self, method: str, path: str) -> Any:
        return self.page

    async def download(self, path: str) -> bytes:
        return self.file


async def _once(make: Callable[[], Any]) -> Any:
    return await make()


@cache
def providers() -> tuple[Perplexity, ...]:
    """One of each delivery: to make one takes longer than to ask it."""
    words = [f"system.delivery={delivery}" for delivery in ("file", "schema", "fence")]
    systems = [cast("JobSystem", make_system(ReplayServer([]), "perplexity", word)) for word in words]
    return tuple(cast("Perplexity", system.provider) for system in systems)


@settings(max_examples=100, deadline=None)
@given(body=BODIES, page=st.dictionaries(st.sampled_from(NAMES), ANY, max_size=4), file=st.binary(max_size=8))
def test_whatever_json_comes_is_a_submission_or_an_error(
    body: dict[str, Any], page: dict[str, Any], file: bytes
) -> None:
    ask = Ask(file_task(), 1, TOKEN.hex, lambda handle: None, _once)
    try:
        last = _snapshot(body)
    except CallError:
        last = Snapshot("failed", body=body)

    async def submissions() -> list[Submission]:
        found = []
        for provider in providers():
            provider._api = cast("Any", _Desk(page, file))
            found.append(
                submission_of(
                    ask, last, await provider.answer(ask, last), name="perplexity", handle=None, latency_s=1.0
                )
            )
        return found

    for submission in asyncio.run(submissions()):
        json.dumps(submission.model_dump(mode="json"), allow_nan=False)
