"""system=gemini, gemini_model and gemini_antigravity against recorded exchanges and what can go wrong beside them."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pytest
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
    sse,
)
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from adapters._gemini import Places, Stream, read
from core.clock import RealClock
from core.errors import CallError, InputError
from core.jobs.ledger import Jobs
from core.jobs.outcome import submission_of
from core.jobs.provider import Ask, Snapshot
from core.model import Submission
from core.sse import Event
from core.store import Store
from core.testing import services as parts_services
from core.testing import system as system_factory

CREATE = "/v1beta/interactions"
JOB = f"{CREATE}/v1_FakeInteractionId0001"
MODEL_JOB = f"{CREATE}/v1_FakeModel1"
ENVIRONMENT = "/v1beta/environments/env_fake_0001/files/workspace"
REDIRECT = "https://vertexaisearch.cloud.google.com/grounding-api-redirect/FAKE"
#: Patience that no slow machine wears out; tests of its end set their own.
PATIENT = ("system.poll.grace_s=60", "system.poll.outage_s=60")
HASTY = ("system.poll.grace_s=0.05", "system.poll.outage_s=0.05")
#: By the sample's counts: 540,233 + 250,000 tokens of input at $2, 27,164 of output at $12, 37 searches at $0.035.
USD = 790_233 * 2e-6 + 27_164 * 12e-6 + 37 * 0.035


def created(**changes: Any) -> Exchange:
    """A create that is answered at once by a running interaction."""
    body = {"id": "v1_FakeInteractionId0001", "status": "in_progress", "steps": [], **changes}
    return answer("POST", CREATE, 200, body)


def polled(status: str = "completed", text: str | None = "Done.", **changes: Any) -> Exchange:
    """A poll's answer made by hand."""
    steps = [] if text is None else [output(text)]
    body = {"id": "v1_FakeInteractionId0001", "status": status, "steps": steps, **changes}
    return answer("GET", JOB, 200, body)


def output(*texts: str) -> dict[str, Any]:
    return {"type": "model_output", "content": [{"type": "text", "text": text} for text in texts]}


def google(status: int, word: str, message: str, *details: dict[str, Any]) -> dict[str, Any]:
    """An error as Google's APIs word it."""
    return {"error": {"code": status, "message": message, "status": word, "details": list(details)}}


def retry_info(delay: str) -> dict[str, Any]:
    return {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": delay}


def exceeded(quota: str) -> dict[str, Any]:
    return {"@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": [{"quotaId": quota}]}


def run(
    folder: Path, exchanges: Sequence[Exchange], *words: str, system: str = "gemini", **more: Any
) -> tuple[ReplayServer, Any]:
    """Solve one task; every exchange has to be asked for, and nothing else. A next start needs the same `port`."""
    task = more.pop("task", None)
    with ReplayServer(exchanges, always=more.pop("always", ()), port=more.pop("port", 0)) as server:
        result = solved(folder, server, system, task, *PATIENT, *words, **more)
    assert server.unexpected == []
    assert server.left == 0
    return server, result


def submission(result: Any) -> Submission:
    assert result.submission is not None, result.stopped
    assert KEY not in result.submission.model_dump_json()
    found: Submission = result.submission
    return found


# the recorded scenarios


@pytest.mark.parametrize(
    ("name", "words", "status", "usd"),
    [
        ("happy", (), "completed", USD),
        ("failed", (), "failed", None),
        ("stream", ("system.transport=stream",), "completed", USD),
        ("transient_poll", (), "completed", USD),
    ],
)
def test_recorded_scenarios_end_as_they_should(
    tmp_path: Path, name: str, words: tuple[str, ...], status: str, usd: float | None
) -> None:
    server, result = run(tmp_path, scenario("gemini", name), "effort=low", *words)
    found = submission(result)
    assert (found.status, found.cost_source) == (status, "unknown" if usd is None else "computed")
    assert found.cost_usd == (None if usd is None else pytest.approx(usd))
    assert not result.job_left, "an ended job is forgotten"
    assert server.requests[0].headers["x-goog-api-key"] == KEY
    assert server.requests[0].headers["api-revision"] == "2026-05-20"
    assert found.settings["agent"] == "deep-research-preview-04-2026"
    if status == "completed":
        assert found.text is not None
        assert found.text.startswith("Résumé – The Lakeshore Grid Association has three members.")
        assert found.usage is not None
        assert found.usage.model_dump() == {
            "input": 790_233,
            "cached_input": 250_000,
            "output": 27_164,
            "reasoning": 21_044,
        }
        assert found.settings["echoed"]["agent"] == "deep-research-preview-04-2026"
        assert found.settings["echoed"]["cost"]["google_search"] == pytest.approx(37 * 0.035)
    else:
        assert found.error is not None
        expected = "gemini: Internal error while researching.; job v1_FakeInteractionId0001"
        assert found.error.message.startswith(expected)


def test_citations_are_places_in_characters_and_redirects_stay(tmp_path: Path) -> None:
    found = submission(run(tmp_path, scenario("gemini", "happy"))[1])
    assert found.text is not None
    assert [(one.url, one.title) for one in found.citations] == [
        (REDIRECT, "northmere.example.org"),
        ("https://lga.example.org/members", "Members - Lakeshore Grid Association"),
    ]
    places = [found.text[one.start : one.end] for one in found.citations]
    raw = found.text.encode()
    assert places == [raw[352:373].decode(), raw[653:668].decode()]
    assert found.citations[0].start == 352 - 4, "two letters of two bytes and a dash of three stand before it"


def test_what_an_agent_is_asked(tmp_path: Path) -> None:
    expected = recorded("gemini", "01_create_deep_research")
    server, _ = run(tmp_path, scenario("gemini", "happy"), "effort=high")
    assert server.requests[0].path == expected.path
    assert server.requests[0].json == {
        "agent": "deep-research-max-preview-04-2026",
        "input": plain_task().prompt,
        "background": True,
        "store": True,
        "agent_config": {
            "type": "deep-research",
            "thinking_summaries": "auto",
            "visualization": "off",
            "collaborative_planning": False,
        },
    }


@pytest.mark.parametrize("transport", ["poll", "sync"])
def test_a_model_answers_with_search_and_a_typed_reply(tmp_path: Path, transport: str) -> None:
    task = plain_task(output_schema={"type": "object"})
    words = ("effort=high", f"system.transport={transport}")
    server, result = run(tmp_path, scenario("gemini", "sync_schema"), *words, system="gemini_model", task=task)
    body = server.requests[0].json
    assert body.pop("background", None) == (True if transport == "poll" else None)
    assert body == {
        "model": "gemini-4-argon",
        "input": task.prompt,
        "store": True,
        "tools": [{"type": "google_search"}, {"type": "url_context"}],
        "generation_config": {"thinking_level": "high", "max_output_tokens": 65536},
        "response_format": {"type": "text", "mime_type": "application/json", "schema": {"type": "object"}},
    }
    found = submission(result)
    assert found.status == "completed"
    assert found.cost_usd == pytest.approx(5200 * 2e-6 + 2410 * 10e-6 + 4 * 0.014)
    assert found.settings["echoed"]["model"] == "gemini-4-argon"
    assert found.settings["thinking_level"] == "high"
    assert json.loads(found.files["output.json"])["members"][0]["name"] == "Northmere Transmission"


def test_a_model_delivers_files_in_its_typed_reply(tmp_path: Path) -> None:
    entries = {"files": [{"path": "members.csv", "content": "name\nNorthmere\n"}]}
    steps = [output("I looked at three pages."), output(json.dumps(entries))]
    reply = answer("POST", CREATE, 200, {"id": "v1_a", "status": "completed", "steps": steps})
    server, result = run(tmp_path, [reply], system="gemini_model", task=file_task())
    assert server.requests[0].json["response_format"]["schema"] == file_task().output_schema
    assert submission(result).files == {"members.csv": "name\nNorthmere\n"}, "a preamble does not hide it"
    assert submission(result).settings["echoed"]["delivered"] is True


@pytest.mark.parametrize(
    ("version", "headers"), [("v1beta", {"api-revision": "2026-05-20"}), ("v1", {"api-revision": None})]
)
def test_the_version_is_configurable(tmp_path: Path, version: str, headers: dict[str, str | None]) -> None:
    words = [f"system.api_version={version}"]
    if headers["api-revision"] is None:
        words.append("system.api_revision=null")
    server, result = run(tmp_path, scenario("gemini", "happy"), *words)
    assert submission(result).status == "completed"
    assert server.requests[0].path == f"/{version}/interactions"
    assert server.requests[0].headers.get("api-revision") == headers["api-revision"]


@pytest.mark.parametrize(
    ("ladder", "effort", "agent"),
    [
        ("product", "low", "deep-research-preview-04-2026"),
        ("product", "medium", "deep-research-preview-04-2026"),
        ("product", "high", "deep-research-max-preview-04-2026"),
        ("product", "xhigh", "deep-research-max-preview-04-2026"),
        ("wandr", "low", "deep-research-preview-04-2026"),
        ("wandr", "high", "deep-research-max-preview-04-2026"),
    ],
)
def test_efforts_are_agents(ladder: str, effort: str, agent: str) -> None:
    with ReplayServer([]) as server:
        system = make_system(server, "gemini", f"effort={effort}", f"system.ladder={ladder}")
    assert system.settings["agent"] == agent  # type: ignore[attr-defined]


def test_two_words_for_one_agent_have_the_same_settings() -> None:
    with ReplayServer([]) as server:
        low, medium, high = (
            make_system(server, "gemini", f"effort={effort}").settings  # type: ignore[attr-defined]
            for effort in ("low", "medium", "high")
        )
    assert low == medium != high


# before a job has begun


@pytest.mark.parametrize(
    ("exchange", "kind", "words"),
    [
        (answer("POST", CREATE, 400, google(400, "INVALID_ARGUMENT", "API key not valid.", {"reason": "API_KEY_INVALID"})), "key", "not valid"),
        (answer("POST", CREATE, 401, google(401, "UNAUTHENTICATED", "No credentials.")), "key", "No credentials"),
        (answer("POST", CREATE, 403, google(403, "PERMISSION_DENIED", "Not for this project.")), "key", "project"),
        (answer("POST", CREATE, 402, google(402, "FAILED_PRECONDITION", "No credit.")), "quota", "No credit"),
        (answer("POST", CREATE, 429, google(429, "RESOURCE_EXHAUSTED", "You exceeded your current quota.", exceeded("GenerateRequestsPerDayPerProject"), retry_info("37s"))), "quota", "exceeded"),
    ],
)  # fmt: skip
def test_a_wrong_key_and_a_spent_quota_stop_the_run_at_once(
    tmp_path: Path, exchange: Exchange, kind: str, words: str
) -> None:
    server, result = run(tmp_path, [exchange])
    assert len(server.requests) == 1
    assert result.stopped is not None
    assert result.stopped.kind == kind
    assert result.stopped.message.startswith("gemini: ")
    assert words in result.stopped.message
    assert KEY not in result.stopped.message
    assert not result.job_left


@pytest.mark.parametrize(("name", "kind"), [("quota", "quota"), ("auth", "key")])
def test_the_recorded_refusals_stop_the_run(tmp_path: Path, name: str, kind: str) -> None:
    server, result = run(tmp_path, scenario("gemini", name))
    assert len(server.requests) == 1
    assert result.stopped is not None
    assert result.stopped.kind == kind


@pytest.mark.parametrize(
    "refusal",
    [
        answer("POST", CREATE, 429, google(429, "RESOURCE_EXHAUSTED", "Slow down.", retry_info("0.01s"))),
        answer("POST", CREATE, 429, google(429, "RESOURCE_EXHAUSTED", "Quota.", exceeded("GenerateRequestsPerMinute"))),
        answer("POST", CREATE, 429, google(429, "RESOURCE_EXHAUSTED", "Slow down."), {"retry-after": "0.01"}),
        answer("POST", CREATE, 429, google(429, "RESOURCE_EXHAUSTED", "Slow down."), {"retry-after-ms": "10"}),
        answer("POST", CREATE, 429, google(429, "RESOURCE_EXHAUSTED", "Slow down.")),
        answer("POST", CREATE, 503, google(503, "UNAVAILABLE", "The service is unavailable.")),
        answer("POST", CREATE, 500, "<html><title>Error</title></html>"),
        answer("POST", CREATE, 502, "<html><title>Bad gateway</title></html>"),
        answer("POST", CREATE, 409, google(409, "ABORTED", "Again, please.")),
        answer("POST", CREATE, 200, google(503, "UNAVAILABLE", "The service is unavailable.")),
    ],
)  # fmt: skip
def test_a_create_that_was_refused_for_now_is_sent_again(tmp_path: Path, refusal: Exchange) -> None:
    server, result = run(tmp_path, [refusal, created(), polled()])
    assert submission(result).status == "completed"
    assert len(server.sent("POST")) == 2


@pytest.mark.parametrize(
    ("exchange", "kind"),
    [
        (
            answer("POST", CREATE, 400, google(400, "INVALID_ARGUMENT", "background=true is required.")),
            "bad_request",
        ),
        (answer("POST", CREATE, 404, {"error": {"code": "not_found", "message": "No such agent."}}), "not_found"),
        (answer("POST", CREATE, 413, google(413, "INVALID_ARGUMENT", "Too large.")), "too_large"),
    ],
)
def test_a_refused_form_is_an_error_and_is_sent_once(tmp_path: Path, exchange: Exchange, kind: str) -> None:
    server, result = run(tmp_path, [exchange])
    found = submission(result)
    assert (found.status, found.cost_usd) == ("error", 0.0)
    assert found.error is not None
    assert found.error.kind == kind
    assert len(server.requests) == 1
    assert not result.job_left


@pytest.mark.parametrize(
    "lost",
    [
        hang_up("POST", CREATE),
        cut(created()),
        answer("POST", CREATE, 504, "<html><title>Gateway time-out</title></html>"),
        answer("POST", CREATE, 200, "<html>We are busy</html>"),
        answer("POST", CREATE, 200, {"status": "in_progress"}),
        answer("POST", CREATE, 200, []),
    ],
)
def test_a_create_that_was_not_answered_is_never_sent_again(tmp_path: Path, lost: Exchange) -> None:
    server, result = run(tmp_path, [lost])
    found = submission(result)
    assert (found.status, found.cost_usd) == ("error", None)
    assert found.error is not None
    assert found.error.kind == "maybe_billed"
    assert "can't be asked which jobs it has" in found.error.message
    assert len(server.requests) == 1
    server, result = run(tmp_path, [], port=server.port)
    assert server.requests == [], "nor by the next start"
    assert result.calls[-1] == ("maybe_billed", 0.0), "and counted once"


# while a job is asked about


@pytest.mark.parametrize(
    "odd",
    [
        answer("GET", JOB, 400, google(400, "INVALID_ARGUMENT", "Something.")),
        answer("GET", JOB, 403, google(403, "PERMISSION_DENIED", "Permission denied on resource.")),
        answer("GET", JOB, 404, {"error": {"code": "not_found", "message": "Interaction not found."}}),
        answer("GET", JOB, 408, google(408, "DEADLINE_EXCEEDED", "Too slow.")),
        answer("GET", JOB, 409, google(409, "ABORTED", "Again.")),
        answer("GET", JOB, 425, "<html>Too early</html>"),
        answer("GET", JOB, 429, google(429, "RESOURCE_EXHAUSTED", "Slow down.", retry_info("0.01s"))),
        answer("GET", JOB, 429, google(429, "RESOURCE_EXHAUSTED", "Quota.", exceeded("PollsPerDay"))),
        answer("GET", JOB, 500, "<html>Error</html>"),
        answer("GET", JOB, 502, "<html>Bad gateway</html>"),
        answer("GET", JOB, 503, google(503, "UNAVAILABLE", "Unavailable.")),
        answer("GET", JOB, 504, google(504, "DEADLINE_EXCEEDED", "Too slow.")),
        answer("GET", JOB, 200, "<html>A page</html>"),
        answer("GET", JOB, 200, {}),
        answer("GET", JOB, 200, [1]),
        answer("GET", JOB, 200, {"id": 7, "status": {}}),
        hang_up("GET", JOB),
        cut(polled()),
    ],
)
def test_a_poll_that_makes_no_sense_is_asked_again(tmp_path: Path, odd: Exchange) -> None:
    server, result = run(tmp_path, [created(), odd, odd, polled()])
    assert submission(result).status == "completed"
    assert len(server.sent("POST")) == 1


@pytest.mark.parametrize(
    "exchange",
    [
        answer(
            "GET", JOB, 400, google(400, "INVALID_ARGUMENT", "API key not valid.", {"reason": "API_KEY_INVALID"})
        ),
        answer("GET", JOB, 401, google(401, "UNAUTHENTICATED", "The key was withdrawn.")),
    ],
)
def test_a_key_that_fails_on_the_way_stops_the_run_and_keeps_the_job(tmp_path: Path, exchange: Exchange) -> None:
    server, result = run(tmp_path, [created(), exchange])
    assert len(server.requests) == 2, "it is not waited out"
    assert result.stopped is not None
    assert result.stopped.kind == "key"
    assert result.job_left
    server, result = run(tmp_path, [polled()], port=server.port)
    assert submission(result).status == "completed"
    assert server.sent("POST") == []


@pytest.mark.parametrize(
    ("exchange", "status", "kind"),
    [
        (answer("GET", JOB, 404, {"error": {"code": "not_found", "message": "Not here."}}), "failed", "failed"),
        (answer("GET", JOB, 400, google(400, "INVALID_ARGUMENT", "Something.")), "error", "unreachable"),
        (answer("GET", JOB, 503, google(503, "UNAVAILABLE", "Down.")), "error", "unreachable"),
        (answer("GET", JOB, 200, {"what": "ever"}), "error", "unreachable"),
    ],
)
def test_patience_ends(tmp_path: Path, exchange: Exchange, status: str, kind: str) -> None:
    _, result = run(tmp_path, [created(), exchange], *HASTY)
    found = submission(result)
    assert found.status == status
    assert found.error is not None
    assert found.error.kind == kind


@pytest.mark.parametrize(
    ("reply", "status", "kind", "words"),
    [
        (polled("completed", None), "empty", None, ""),
        (polled("completed", "  "), "empty", None, ""),
        (polled("incomplete", "| a |"), "incomplete", "truncated", "ended as incomplete"),
        (polled("budget_exceeded", "| a |"), "incomplete", "truncated", "ended as budget_exceeded"),
        (polled("requires_action", "Shall I?"), "incomplete", "truncated", "ended as requires_action"),
        (
            polled("incomplete", "| a |", error={"message": "output limit"}),
            "incomplete",
            "truncated",
            "output limit",
        ),
        (polled("cancelled", None), "failed", "failed", "cancelled"),
        (polled("failed", None, errors=[{"code": "internal_error"}]), "failed", "failed", "internal_error"),
        (
            polled("failed", None, error={"code": "PROHIBITED_CONTENT", "message": "No."}),
            "refused",
            "refused",
            "No.",
        ),
        (polled("failed", None, errors="x", error=[]), "failed", "failed", "failed"),
    ],
)
def test_how_a_job_ends(tmp_path: Path, reply: Exchange, status: str, kind: str | None, words: str) -> None:
    found = submission(run(tmp_path, [created(), reply])[1])
    assert found.status == status
    assert (found.error.kind if found.error else None) == kind
    assert words in (found.error.message if found.error else "")
    assert found.cost_usd is None, "without token counts a cost is unknown"


@pytest.mark.parametrize("word", ["idle", "queued", "pondering", "requires_continuation"])
def test_a_state_that_is_no_end_is_asked_about_until_the_deadline(tmp_path: Path, word: str) -> None:
    cancelled = answer("POST", f"{JOB}/cancel", 400, google(400, "FAILED_PRECONDITION", "Already over."))
    words = ("effort=low", "system.ladders.product.low.timeout_s=0.2")
    server, result = run(tmp_path, [created(), polled(word, "half")], *words, always=[cancelled])
    found = submission(result)
    assert found.status == "timed_out"
    assert found.text == "half"
    assert len(server.sent("POST", f"{JOB}/cancel")) == 1
    assert len(server.sent("POST", CREATE)) == 1


@pytest.mark.parametrize(("ending", "status"), [("cancelled", "timed_out"), ("completed", "completed")])
def test_a_deadline_cancels_and_takes_what_ended_meanwhile(tmp_path: Path, ending: str, status: str) -> None:
    create, cancelled = scenario("gemini", "cancel")

    def where_it_stands() -> bytes:
        return polled(ending if server.sent("POST", f"{JOB}/cancel") else "in_progress").body

    look = answer("GET", JOB, make=where_it_stands)
    words = ("effort=low", "system.ladders.product.low.timeout_s=0.2")
    with ReplayServer([create], always=[look, cancelled]) as server:
        result = solved(tmp_path, server, "gemini", None, *words)
    assert server.unexpected == []
    assert submission(result).status == status
    assert len(server.sent("POST", f"{JOB}/cancel")) == 1
    assert server.requests[-1].method == "GET", "it is looked at once more"


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        ({"error": {"code": "resource_exhausted", "message": "You exceeded your current quota."}}, "quota"),
        ({"errors": [{"code": "failed_precondition", "message": "Enable billing."}]}, "quota"),
        ({"error": {"code": "unauthenticated", "message": "API key expired."}}, "key"),
    ],
)
def test_a_job_that_the_account_fails_stops_the_run(tmp_path: Path, fault: dict[str, Any], kind: str) -> None:
    _, result = run(tmp_path, [created(), polled("failed", None, **fault)])
    assert result.stopped is not None
    assert result.stopped.kind == kind
    assert result.stopped.message.startswith("gemini: ")
    assert not result.job_left, "the next start sends it anew"


def test_what_is_echoed_is_flat(tmp_path: Path) -> None:
    deep: Any = 1
    for _ in range(400):
        deep = {"x": deep}
    usage = {"total_input_tokens": 1, "total_output_tokens": 2, "deep": deep, "grounding_tool_count": [deep]}
    _, result = run(tmp_path, [created(), polled(usage=usage, model=deep)])
    echoed = submission(result).settings["echoed"]
    assert echoed["usage"] == {"total_input_tokens": 1, "total_output_tokens": 2, "google_search": 0}
    assert "model" not in echoed


# continuations


def paused(token: Any = "tok_fake") -> Exchange:
    return answer("GET", MODEL_JOB, 200, {"id": "v1_FakeModel1", "status": "requires_continuation", "continuation_token": token})  # fmt: skip


def test_a_pause_is_continued_with_its_token(tmp_path: Path) -> None:
    begun = answer("POST", CREATE, 200, {"id": "v1_FakeModel1", "status": "in_progress"})
    pause = recorded("gemini", "13_get_requires_continuation")
    busy = answer("POST", CREATE, 503, google(503, "UNAVAILABLE", "Unavailable."))
    ended = recorded("gemini", "07_model_grounded_schema")
    server, result = run(tmp_path, [begun, pause, busy, ended], system="gemini_model")
    found = submission(result)
    assert found.status == "completed"
    first, refused, again = server.sent("POST", CREATE)
    assert refused.json == again.json == {**first.json, "continuation_token": "tok_fake"}
    assert found.settings["echoed"]["notes"] == [
        "continued 1 times: text, tokens and cost are those of the last reply"
    ]


def test_a_continuation_that_is_not_answered_may_have_been_billed(tmp_path: Path) -> None:
    begun = answer("POST", CREATE, 200, {"id": "v1_FakeModel1", "status": "in_progress"})
    server, result = run(tmp_path, [begun, paused(), hang_up("POST", CREATE)], system="gemini_model")
    found = submission(result)
    assert found.error is not None
    assert found.error.kind == "maybe_billed"
    assert len(server.sent("POST")) == 2
    server, _ = run(tmp_path, [], system="gemini_model", port=server.port)
    assert server.requests == [], "the next start does not send it either"


def stopped_while_paused(folder: Path) -> int:
    """A start that ends before its continuation is taken; the server's port."""
    begun = answer("POST", CREATE, 200, {"id": "v1_FakeModel1", "status": "in_progress"})
    withdrawn = answer("POST", CREATE, 401, google(401, "UNAUTHENTICATED", "The key was withdrawn."))
    server, result = run(folder, [begun, paused("t1"), withdrawn], system="gemini_model")
    assert result.stopped is not None
    assert result.job_left
    return server.port


def test_a_pause_of_an_earlier_start_is_continued_at_once(tmp_path: Path) -> None:
    port = stopped_while_paused(tmp_path)
    ended = recorded("gemini", "07_model_grounded_schema")
    server, result = run(tmp_path, [ended], system="gemini_model", port=port)
    assert submission(result).status == "completed"
    assert [(one.method, one.json["continuation_token"]) for one in server.requests] == [("POST", "t1")]


def test_only_what_costs_money_is_in_doubt_after_a_restart(tmp_path: Path) -> None:
    port = stopped_while_paused(tmp_path)
    begun = answer("POST", CREATE, 200, {"id": "v1_FakeModel1", "status": "in_progress"})
    model = recorded("gemini", "07_model_grounded_schema")
    exchanges = [begun, hang_up("GET", MODEL_JOB), answer("GET", MODEL_JOB, 200, model.json)]
    server, result = run(tmp_path, exchanges, system="gemini_model", port=port)
    assert submission(result).status == "completed", "a question that is not answered is asked again"
    assert len(server.sent("POST")) == 1


def test_a_pause_is_not_continued_after_the_deadline() -> None:
    handle = {"id": "v1_a", "token": "t1", "until": 1.0}
    ask = Ask(plain_task(), 1, "token", lambda handle: None, lambda make: make())
    late = asyncio.run(PROVIDERS["gemini_model"].advance(ask, handle))
    assert (late.state, late.paid_next) == ("timed_out", False)


def test_a_pause_is_known_by_its_handle_alone() -> None:
    pause = {"id": "v1_a", "status": "requires_continuation", "continuation_token": "t1"}
    waiting = PROVIDERS["gemini_model"]._snapshot(pause, {"id": "v1_a", "continued": 1, "token": "t0"})
    assert (waiting.handle, waiting.paid_next) == ({"id": "v1_a", "continued": 1, "token": "t1"}, True)
    running = PROVIDERS["gemini_model"]._snapshot({"status": "in_progress"}, waiting.handle)
    assert (running.handle, running.paid_next) == ({"id": "v1_a", "continued": 1}, False), "a token serves once"


def test_pauses_without_end_are_cut(tmp_path: Path) -> None:
    pause = {"id": "v1_FakeModel1", "status": "requires_continuation", "continuation_token": "t"}
    server, result = run(tmp_path, [], system="gemini_model", always=[answer("POST", CREATE, 200, pause)])
    assert submission(result).status == "empty"
    assert len(server.sent("POST")) == 21


# streams


def event(kind: str, number: int, **data: Any) -> dict[str, Any]:
    return {"event": kind, "data": {"event_type": kind, "event_id": f"ev{number}", **data}}


BEGUN = event("interaction.created", 1, interaction={"id": "v1_FakeInteractionId0001", "status": "in_progress"})
STARTED = event("step.start", 2, index=0, step={"type": "model_output"})
HALF = event("step.delta", 3, index=0, delta={"type": "text", "text": "Zürich "})
REST = event("step.delta", 4, index=0, delta={"type": "text", "text": "lies."})
CITED = event("step.delta", 5, index=0, delta={"type": "text_annotation_delta", "annotations": [{"type": "url_citation", "start_index": 8, "end_index": 12, "url": "https://a.example/"}]})  # fmt: skip
STOPPED = event("step.stop", 6, index=0)
ENDED = event("interaction.completed", 7, interaction={"id": "v1_FakeInteractionId0001", "status": "completed"})
STREAM = {"content-type": "text/event-stream"}


def stream(*events: dict[str, Any], method: str = "POST", path: str = CREATE, extra: bytes = b"") -> Exchange:
    return Exchange(method, path, 200, STREAM, sse(*events) + extra)


def broken(*events: dict[str, Any], method: str = "POST", path: str = CREATE) -> Exchange:
    """A stream that breaks off behind these events."""
    whole = sse(*events)
    return cut(Exchange(method, path, 200, STREAM, whole + b":" * len(whole)))


@pytest.mark.parametrize(
    "exchanges",
    [
        [stream(BEGUN, STARTED, HALF, REST, CITED, STOPPED, ENDED)],
        [stream(BEGUN, STARTED, HALF, HALF, REST, CITED, STOPPED, ENDED, extra=b": keep-alive\n\ndata: [DONE]\n\n")],
        [broken(BEGUN, STARTED, HALF), stream(REST, CITED, STOPPED, ENDED, method="GET", path=JOB)],
        [broken(BEGUN, STARTED, HALF), stream(HALF, REST, CITED, ENDED, method="GET", path=JOB)],
        [broken(BEGUN), broken(STARTED, HALF, method="GET", path=JOB), stream(REST, CITED, ENDED, method="GET", path=JOB)],
    ],
    ids=["whole", "twice_and_comments", "resumed", "resumed_too_early", "resumed_twice"],
)  # fmt: skip
def test_a_stream_is_put_together_and_goes_on_from_its_last_event(
    tmp_path: Path, exchanges: list[Exchange]
) -> None:
    server, result = run(tmp_path, exchanges, "system.transport=stream")
    found = submission(result)
    assert (found.status, found.text) == ("completed", "Zürich lies.")
    assert [(one.url, one.start, one.end) for one in found.citations] == [("https://a.example/", 7, 11)]
    assert len(server.sent("POST")) == 1
    assert server.requests[0].json["stream"] is True
    assert server.requests[0].query == {"alt": "sse"}
    if len(exchanges) == 2:
        assert server.requests[1].query == {"alt": "sse", "stream": "true", "last_event_id": "ev3"}


@pytest.mark.parametrize(
    "exchanges",
    [
        [stream(BEGUN, STARTED, HALF, STOPPED)],
        [stream(BEGUN, event("error", 9, error={"code": "deadline_exceeded", "message": "Too long."}))],
        [stream(event("interaction.status_update", 1, interaction_id="v1_FakeInteractionId0001", status="in_progress"))],
        [broken(BEGUN, STARTED), broken(STARTED, method="GET", path=JOB)],
        [broken(BEGUN, STARTED), hang_up("GET", JOB)],
        [broken(BEGUN, STARTED), answer("GET", JOB, 400, google(400, "INVALID_ARGUMENT", "No such event."))],
    ],
    ids=["ends_with_a_step", "its_own_error", "a_status_only", "nothing_new", "hung_up", "not_resumable"],
)  # fmt: skip
def test_a_stream_that_ends_too_early_is_polled(tmp_path: Path, exchanges: list[Exchange]) -> None:
    server, result = run(tmp_path, [*exchanges, polled(text="Whole.")], "system.transport=stream")
    assert (submission(result).status, submission(result).text) == ("completed", "Whole.")
    assert len(server.sent("POST")) == 1


@pytest.mark.parametrize(
    ("first", "kind"),
    [
        (stream({"data": "[DONE]"}), "maybe_billed"),
        (broken({"data": {"event_type": "ping"}}), "maybe_billed"),
        (stream(event("error", 1, error={"code": 400, "message": "No such agent."})), "bad_request"),
    ],
)
def test_a_stream_that_never_names_its_job(tmp_path: Path, first: Exchange, kind: str) -> None:
    server, result = run(tmp_path, [first], "system.transport=stream")
    found = submission(result)
    assert found.error is not None
    assert found.error.kind == kind
    assert len(server.requests) == 1


def test_a_server_that_does_not_stream(tmp_path: Path) -> None:
    whole = answer("POST", CREATE, 200, {"id": "v1_a", "status": "completed", "steps": [output("Whole.")]})
    _, result = run(tmp_path, [whole], "system.transport=stream")
    assert (submission(result).status, submission(result).text) == ("completed", "Whole.")


def test_the_older_events() -> None:
    reader = Stream()
    for data in (
        {"event_type": "interaction.start", "interaction": {"id": "v1_a", "status": "in_progress"}},
        {"event_type": "content.start", "index": 0, "content": {"type": "thought"}},
        {
            "event_type": "content.delta",
            "index": 0,
            "delta": {"type": "thought_summary", "content": {"text": "Hm."}},
        },
        {"event_type": "content.start", "index": 1, "content": {"type": "text", "text": "A"}},
        {"event_type": "content.delta", "index": 1, "delta": {"type": "text", "text": "B"}},
        {"event_type": "content.delta", "index": -1, "delta": {"type": "text", "text": "C"}},
        {"event_type": "content.stop", "index": 1},
        {"event_type": "interaction.complete", "interaction": {"id": "v1_a", "status": "completed"}},
    ):
        reader.take(Event(json.dumps(data)))
    assert reader.id == "v1_a"
    assert reader.body()["status"] == "completed"
    assert read(reader.body()).text == "AB"


# text and sources


def cited(start: Any, end: Any, url: Any = "https://a.example/", **more: Any) -> dict[str, Any]:
    return {"type": "url_citation", "start_index": start, "end_index": end, "url": url, **more}


def part(text: str, *annotations: Any) -> dict[str, Any]:
    return {"type": "text", "text": text, "annotations": list(annotations)}


@pytest.mark.parametrize(
    ("parts", "text", "places"),
    [
        ([part("abc", cited(1, 2))], "abc", [("https://a.example/", 1, 2)]),
        ([part("äbc", cited(2, 3))], "äbc", [("https://a.example/", 1, 2)]),
        ([part("€uro 😀!", cited(0, 3), cited(7, 11, "https://b.example/"))], "€uro 😀!", [("https://a.example/", 0, 1), ("https://b.example/", 5, 6)]),
        ([part("😀", cited(1, 3))], "😀", [("https://a.example/", 0, 0)]),
        ([part("é", cited(2, 99))], "é", [("https://a.example/", 1, 1)]),
        ([part("é–"), part("ü!", cited(2, 3))], "é–ü!", [("https://a.example/", 3, 4)]),
        ([part("ab", {"type": "url_citation", "end_index": 1, "url": "https://a.example/"})], "ab", [("https://a.example/", 0, 1)]),
        ([part("ab", cited(2, 1)), part("c", cited("1", None, "https://b.example/"))], "abc", [("https://a.example/", None, None), ("https://b.example/", None, None)]),
        ([part("ab", cited(1, 2), cited(0, 1))], "ab", [("https://a.example/", 0, 1)]),
        ([part("ab", {"start_index": 0, "end_index": 1, "source": "https://a.example/"})], "ab", [("https://a.example/", 0, 1)]),
        ([part("ab", {"start_index": 0, "end_index": 1, "source": "A title"}, {"type": "file_citation", "url": "https://a.example/"}, 7, None)], "ab", []),
        ([part("See https://c.example/x.")], "See https://c.example/x.", [("https://c.example/x", None, None)]),
    ],
    ids=["ascii", "two_bytes", "three_and_four", "inside", "beyond", "of_its_own_part", "zero_left_out", "no_places", "first_passage", "older", "no_addresses", "in_the_text"],
)  # fmt: skip
@pytest.mark.parametrize("shape", ["steps", "outputs", "many_steps"])
def test_places_are_bytes_of_a_part_and_become_characters_of_the_text(
    parts: list[dict[str, Any]], text: str, places: list[tuple[str, int | None, int | None]], shape: str
) -> None:
    body: dict[str, Any] = {"outputs": [{"type": "thought"}, *parts]}
    if shape == "steps":
        body = {"steps": [{"type": "thought"}, {"type": "model_output", "content": parts}], "outputs": []}
    elif shape == "many_steps":
        body = {"steps": [{"type": "model_output", "content": [one]} for one in parts]}
    found = read(body)
    assert found.text == text
    assert [(one.url, one.start, one.end) for one in found.citations] == places
    assert found.notes == ()


@given(st.text(max_size=40), st.data())
def test_a_place_is_where_the_bytes_before_it_end(text: str, data: st.DataObject) -> None:
    place = data.draw(st.integers(0, len(text)))
    assert Places(text).character(len(text[:place].encode())) == place


def test_types_that_nobody_knows_are_noted(tmp_path: Path) -> None:
    steps = [{"type": "dream"}, {"type": ["x"]}, 5, output("Done."), {"type": "model_output", "content": [{"type": "image"}, 5]}, {"type": "model_output", "content": "x"}]  # fmt: skip
    found = submission(run(tmp_path, [created(), polled(steps=steps)])[1])
    assert (found.status, found.text) == ("completed", "Done.")
    assert found.settings["echoed"]["notes"] == [
        'a step of unknown type: "dream"',
        'a step of unknown type: ["x"]',
        "a step of unknown type: null",
        'a part of unknown type: "image"',
    ]


# cost


@pytest.mark.parametrize(
    ("words", "usage", "usd"),
    [
        ((), {"total_input_tokens": 1_000_000, "total_output_tokens": 0}, 2.0),
        ((), {"total_input_tokens": 0, "total_output_tokens": 500_000, "total_thought_tokens": 500_000}, 12.0),
        ((), {"total_input_tokens": 0, "total_output_tokens": 0, "total_tool_use_tokens": 1_000_000}, 2.0),
        ((), {"total_input_tokens": 0, "total_output_tokens": 0, "grounding_tool_count": [{"type": "google_search", "count": 10}, {"type": "other", "count": 5}, 3]}, 0.35),
        (("system.search_fee_usd=0.014",), {"total_input_tokens": 0, "total_output_tokens": 0, "grounding_tool_count": [{"type": "google_search", "count": 10}]}, 0.14),
        (("system.price={input: 1, output: 4, cached_input: 0.1}",), {"total_input_tokens": 1_000_000, "total_cached_tokens": 500_000, "total_output_tokens": 0}, 0.55),
        ((), {"total_input_tokens": 5}, None),
        ((), {"total_input_tokens": -5, "total_output_tokens": 10**400}, None),
        ((), [], None),
        (("system.ladders.product.low.agent=deep-research-next",), {"total_input_tokens": 5, "total_output_tokens": 5}, None),
    ],
)  # fmt: skip
def test_what_a_task_cost(tmp_path: Path, words: tuple[str, ...], usage: Any, usd: float | None) -> None:
    found = submission(run(tmp_path, [created(), polled(usage=usage)], "effort=low", *words)[1])
    assert found.cost_usd == (None if usd is None else pytest.approx(usd))
    assert found.cost_source == ("unknown" if usd is None else "computed")


@pytest.mark.parametrize(
    ("name", "words", "today", "expected"),
    [
        ("gemini", ("effort=low",), date(2026, 12, 24), []),
        ("gemini", ("effort=high",), date(2026, 12, 24), ["one task came to as much as $325 with deep-research-max-preview-04-2026: set budget.usd"]),
        ("gemini", ("effort=low", "system.ladders.product.low.timeout_s=1800"), date(2026, 12, 24), ["a tenth of the tasks took deep-research-preview-04-2026 more than 60 min: raise system.timeout_s"]),
        ("gemini", ("effort=low", "system.ladders.product.low.agent=deep-research-pro-preview-12-2025", "system.price={input: 2, output: 12}"), date(2026, 12, 24), ["deep-research-pro-preview-12-2025 is retired: results can't be repeated"]),
        ("gemini_model", (), date(2026, 11, 30), []),
        ("gemini_model", (), date(2026, 12, 1), ["prices of gemini-4-* were to rise on 2026-12-01: check them and set system.price"]),
        ("gemini_antigravity", (), date(2026, 12, 24), ["antigravity-preview-09-2026 has no price in the list: its costs are unknown, set system.price"]),
    ],
)  # fmt: skip
def test_what_reports_warn_of(name: str, words: tuple[str, ...], today: date, expected: list[str]) -> None:
    with ReplayServer([]) as server:
        system: Any = make_system(server, name, *words)
    assert system.warnings(today) == expected


# files of the sandbox


def sandbox(*exchanges: Exchange, **changes: Any) -> list[Exchange]:
    create, done, *_ = scenario("gemini", "files")
    return [create, done.with_json(**changes) if changes else done, *exchanges]


def files(*entries: Any, token: Any = "") -> Exchange:
    return answer("GET", ENVIRONMENT, 200, {"files": list(entries), "next_page_token": token})


def entry(path: str, modified: str = "2026-11-30T10:00:00Z", **more: Any) -> dict[str, Any]:
    return {"path": path, "type": "file", "modified": modified, **more}


def download(path: str, content: str | bytes = "name\nA\n", status: int = 200) -> Exchange:
    body = content.encode() if isinstance(content, str) else content
    address = f"{ENVIRONMENT.removesuffix('/workspace')}/{path}"
    return Exchange("GET", address, status, {"content-type": "application/octet-stream"}, body)


def test_the_recorded_files(tmp_path: Path) -> None:
    exchanges = scenario("gemini", "files")
    server, result = run(tmp_path, exchanges, system="gemini_antigravity", task=file_task())
    found = submission(result)
    assert found.status == "completed"
    assert found.files["members.csv"].startswith("name,hq_city,founded_year,source_url\nNorthmere Transmission,")
    assert found.settings["echoed"]["delivered"] is True
    assert found.settings["echoed"]["environment_id"] == "env_fake_0001"
    assert found.cost_usd is None, "the agent has no price in the list"
    body = server.requests[0].json
    assert body.pop("input").startswith(file_task().prompt)
    assert body == {
        "agent": "antigravity-preview-09-2026",
        "environment": "remote",
        "background": True,
        "store": True,
        "agent_config": {"type": "antigravity", "max_total_tokens": 2000000},
    }
    assert "/workspace/members.csv" in server.requests[0].json["input"]
    listing, media = server.requests[-2:]
    assert listing.query == {"recursive": "true", "page_size": "100"}
    assert media.query == {"alt": "media"}


@pytest.mark.parametrize(
    ("exchanges", "delivered", "status", "note"),
    [
        ([files()], {}, "empty", None),
        ([files(entry("workspace/members.csv")), download("workspace/members.csv", "")], {"members.csv": ""}, "empty", None),
        ([files(entry("workspace/list.csv"))], {}, "empty", 'files that were not asked for, 1: "workspace/list.csv"'),
        ([files(entry("workspace/members.csv", type="directory"))], {}, "empty", None),
        ([files(entry("workspace/out/members.csv", "2026-12"), entry("workspace/members.csv")), download("workspace/out/members.csv", "b"), download("workspace/members.csv", "a")], {"members.csv": "a"}, "completed", "members.csv: delivered more than once, the last one counts"),
        ([files(entry("workspace/b/members.csv", "2"), entry("workspace/a/members.csv", "1")), download("workspace/a/members.csv", "a"), download("workspace/b/members.csv", "b")], {"members.csv": "b"}, "completed", "members.csv: delivered more than once, the last one counts"),
        ([files(entry("workspace/../../x/members.csv"))], {}, "empty", 'a path that leads elsewhere: "workspace/../../x/members.csv"'),
        ([files(entry("workspace//members.csv"))], {}, "empty", 'a path that leads elsewhere: "workspace//members.csv"'),
        ([files(entry("/workspace/members.csv")), download("workspace/members.csv")], {"members.csv": "name\nA\n"}, "completed", None),
        ([files(token="p2"), files(entry("workspace/members.csv"), token=None), download("workspace/members.csv")], {"members.csv": "name\nA\n"}, "completed", None),
        ([files(entry("workspace/members.csv")), download("workspace/members.csv", b"\xff\xfe\x00")], {}, "empty", "members.csv: not UTF-8"),
        ([files(7, {"path": 3}, None)], {}, "empty", "an entry of the list of files without a path: 7"),
        ([answer("GET", ENVIRONMENT, 200, {"files": "x", "next_page_token": 5})], {}, "empty", None),
        ([answer("GET", ENVIRONMENT, 404, {"error": {"message": "No environment."}}), files(entry("workspace/members.csv")), download("workspace/members.csv")], {"members.csv": "name\nA\n"}, "completed", None),
        ([files(entry("workspace/members.csv")), download("workspace/members.csv", "{}", 404), download("workspace/members.csv", "{}", 404), download("workspace/members.csv")], {"members.csv": "name\nA\n"}, "completed", None),
        ([files(entry("workspace/members.csv")), download("workspace/members.csv", "{}", 503), download("workspace/members.csv")], {"members.csv": "name\nA\n"}, "completed", None),
        ([files(entry("workspace/members.csv")), cut(download("workspace/members.csv")), download("workspace/members.csv")], {"members.csv": "name\nA\n"}, "completed", None),
        ([files(entry("workspace/members.csv")), download("workspace/members.csv", "{}", 404)], {}, "empty", "workspace/members.csv could not be had: gemini: the server answered 404: {}"),
        ([files(entry("workspace/members.csv")), download("workspace/members.csv", "{}", 403)], {}, "empty", "workspace/members.csv could not be had: gemini: the server answered 403: {}"),
        ([answer("GET", ENVIRONMENT, 404, {"error": {"message": "Expired."}})], {}, "empty", "the list of files could not be had: gemini: the server answered 404: Expired."),
    ],
)  # fmt: skip
def test_files_that_come_and_files_that_do_not(
    tmp_path: Path, exchanges: list[Exchange], delivered: dict[str, str], status: str, note: str | None
) -> None:
    words = HASTY if note and "could not be had" in note else ()
    _, result = run(tmp_path, sandbox(*exchanges), *words, system="gemini_antigravity", task=file_task())
    found = submission(result)
    assert (found.files, found.status) == (delivered, status)
    notes = found.settings["echoed"].get("notes", [])
    assert (note in notes) if note else notes == []
    if status == "empty":
        assert found.error is not None
        assert found.error.message == "gemini_antigravity: not delivered: members.csv; job v1_FakeAnti1"


def test_several_files_with_odd_names(tmp_path: Path) -> None:
    listed = files(entry("workspace/a b.csv"), entry("workspace/50%?#.csv"), entry("workspace/ü.csv"))
    contents = [
        download("workspace/50%?#.csv", "1"),
        download("workspace/a b.csv", "2"),
        download("workspace/ü.csv", "3"),
    ]
    names = ("a b.csv", "50%?#.csv", "ü.csv")
    with ReplayServer(sandbox(listed), always=contents) as server:
        result = solved(tmp_path, server, "gemini_antigravity", file_task(*names))
    assert server.unexpected == []
    assert submission(result).files == {"50%?#.csv": "1", "a b.csv": "2", "ü.csv": "3"}


@pytest.mark.parametrize(
    ("status", "listed", "expected"),
    [
        ("budget_exceeded", True, "incomplete"),
        ("failed", True, "incomplete"),
        ("failed", False, "failed"),
        ("budget_exceeded", False, "empty"),
    ],
)
def test_the_state_and_the_delivery_are_two_things(
    tmp_path: Path, status: str, listed: bool, expected: str
) -> None:
    exchanges = [files(entry("workspace/members.csv")), download("workspace/members.csv")] if listed else [files()]
    _, result = run(tmp_path, sandbox(*exchanges, status=status), system="gemini_antigravity", task=file_task())
    found = submission(result)
    assert found.status == expected
    assert found.settings["echoed"]["state"] == status
    assert found.settings["echoed"]["delivered"] is listed


def test_without_an_environment_there_are_no_files(tmp_path: Path) -> None:
    _, result = run(tmp_path, sandbox(environment_id=None), system="gemini_antigravity", task=file_task())
    assert submission(result).status == "empty"
    assert submission(result).settings["echoed"]["notes"] == ["the reply names no environment: there is nowhere to look for files"]  # fmt: skip


@pytest.mark.parametrize(
    "exchange",
    [
        download("workspace/members.csv", "<html>Bad gateway</html>", 502),
        replace(download("workspace/members.csv"), fault="hang_up"),
    ],
)
def test_files_that_cannot_be_fetched_for_now_are_fetched_by_the_next_start(
    tmp_path: Path, exchange: Exchange
) -> None:
    listed = files(entry("workspace/members.csv"))
    wanted: dict[str, Any] = {"system": "gemini_antigravity", "task": file_task()}
    server, result = run(tmp_path, sandbox(listed, exchange), *HASTY, **wanted)
    found = submission(result)
    assert found.error is not None
    assert found.error.kind == "unreachable"
    assert result.job_left
    again = [sandbox()[1], listed, download("workspace/members.csv")]
    server, result = run(tmp_path, again, **wanted, port=server.port)
    assert submission(result).files == {"members.csv": "name\nA\n"}
    assert server.sent("POST") == []


def test_fences_stay_in_the_text(tmp_path: Path) -> None:
    server, result = run(tmp_path, scenario("gemini", "happy"), task=file_task())
    found = submission(result)
    assert "response_format" not in server.requests[0].json, "agents refuse it"
    assert (found.status, found.files) == ("completed", {})
    assert found.settings["echoed"]["delivered"] is True


# the configuration


@pytest.mark.parametrize(
    ("name", "words", "where"),
    [
        ("gemini", ("system.backend=other",), "system.backend"),
        ("gemini", ("system.model=gemini-4-argon",), "system.model"),
        ("gemini_model", ("system.agent=deep-research-preview-04-2026",), "system.agent"),
        ("gemini_model", ("system.tools=[browser]",), "system.tools"),
        ("gemini_model", ("system.model=null",), "system.model"),
        ("gemini", ("system.delivery=schema",), "system.delivery"),
        ("gemini_model", ("system.delivery=file",), "system.delivery"),
        ("gemini", ("system.transport=sync",), "system.transport"),
        ("gemini_antigravity", ("system.max_total_tokens=0", "system.efforts=null", "system.default_effort=null"), "system.max_total_tokens"),
        ("gemini_model", ("system.search_fee_usd=-1",), "system.search_fee_usd"),
        ("gemini", ("system.price={input: -1, output: 2}",), "system.price.input"),
    ],
)  # fmt: skip
def test_values_that_cannot_be_used_are_named(name: str, words: tuple[str, ...], where: str) -> None:
    with ReplayServer([]) as server, pytest.raises(InputError) as caught:
        make_system(server, name, *words)
    assert caught.value.where == where


def test_the_key_is_missed_by_its_name() -> None:
    made: Any = system_factory("gemini", "system.api_key_env=GOOGLE_API_KEY")(parts_services(environ={}))
    assert made.check() == [
        "system gemini: the environment variable GOOGLE_API_KEY is not set (system.api_key_env)"
    ]
    assert made.can_block is False


# hostile replies

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
WORDS = st.sampled_from(["completed", "failed", "incomplete", "requires_continuation", "requires_action", "text", "model_output", "url_citation", "https://a.example/"])  # fmt: skip
PARTS = st.fixed_dictionaries(
    {},
    optional={
        "type": WORDS | JSON,
        "text": JSON | st.text(),
        "annotations": JSON
        | st.lists(
            st.fixed_dictionaries(
                {},
                optional={
                    "type": WORDS | JSON,
                    "url": WORDS | JSON,
                    "source": WORDS | JSON,
                    "title": JSON,
                    "start_index": JSON | st.integers(),
                    "end_index": JSON | st.integers(),
                },
            ),
            max_size=3,
        ),
    },
)
BODIES = st.fixed_dictionaries(
    {},
    optional={
        "id": JSON | st.text(min_size=1),
        "status": WORDS | JSON,
        "steps": JSON
        | st.lists(st.fixed_dictionaries({}, optional={"type": WORDS | JSON, "content": JSON | st.lists(PARTS)}), max_size=3),
        "outputs": JSON | st.lists(PARTS, max_size=3),
        "usage": JSON
        | st.fixed_dictionaries(
            {},
            optional=dict.fromkeys(("total_input_tokens", "total_output_tokens", "total_cached_tokens", "total_tool_use_tokens", "total_thought_tokens", "grounding_tool_count"), JSON),
        ),
        "environment_id": JSON,
        "continuation_token": JSON,
        "error": JSON,
        "errors": JSON,
    },
)  # fmt: skip


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    body=BODIES, name=st.sampled_from(["gemini", "gemini_model", "gemini_antigravity"]), wants_files=st.booleans()
)
def test_any_reply_gives_a_submission_or_an_error_of_the_table(body: Any, name: str, wants_files: bool) -> None:
    provider = PROVIDERS[name]

    async def patiently(make: Any) -> Any:
        raise CallError("not_found", "nothing is here")

    task = file_task() if wants_files else plain_task(output_schema={})
    ask = Ask(task, 1, "token", lambda handle: None, patiently)
    for last in (provider_snapshot(provider, body), Snapshot("timed_out", body=body)):
        if last is not None:
            found = submission_of(
                ask, last, asyncio.run(provider.answer(ask, last)), name=name, handle=None, latency_s=0.0
            )
            assert Submission.model_validate_json(found.model_dump_json()) == found


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.lists(
        st.fixed_dictionaries(
            {},
            optional={
                "event_type": st.sampled_from(["step.start", "step.delta", "content.start", "interaction.status_update", "error"]) | JSON,
                "event_id": JSON,
                "index": st.integers(-1, 2) | JSON,
                "step": PARTS | JSON,
                "delta": PARTS | JSON,
                "interaction": BODIES | JSON,
                "interaction_id": JSON,
                "status": WORDS | JSON,
            },
        )
        | JSON,
        max_size=6,
    )
)  # fmt: skip
def test_any_events_give_something_that_can_be_read(events: list[Any]) -> None:
    reader = Stream()
    for one in events:
        reader.take(Event(json.dumps(one)))
    read(reader.body())
    assert reader.id is None or isinstance(reader.id, str)


def provider_snapshot(provider: Any, body: Any) -> Snapshot | None:
    try:
        found: Snapshot = provider._snapshot(body, {"id": "v1_a"})
    except CallError:
        return None
    return found


def _provider(name: str) -> Any:
    made: Any = system_factory(name)(parts_services())
    return made.provider


PROVIDERS = {name: _provider(name) for name in ("gemini", "gemini_model", "gemini_antigravity")}


def test_an_interrupt_leaves_a_continuation_in_doubt(tmp_path: Path) -> None:
    released, asked = threading.Event(), threading.Event()

    def hold() -> bytes:
        asked.set()
        released.wait(20)
        return b"{}"

    async def started(server: ReplayServer, *, interrupt: bool) -> str:
        jobs, store = Jobs(RealClock()), Store(tmp_path / "store.sqlite")
        jobs.open(store)
        given = replace(provider_services(), jobs=jobs)
        system = make_system(server, "gemini_model", given=given)
        jobs.bind("lga-001", 1, "key")
        job = asyncio.ensure_future(system.solve(plain_task(), 1))
        if interrupt:
            await asyncio.to_thread(asked.wait, 20)
            job.cancel()
        with pytest.raises(asyncio.CancelledError if interrupt else CallError):
            await job
        await given.http.aclose()
        row = store.job("key")
        store.close()
        assert row is not None
        return row.step

    begun = answer("POST", CREATE, 200, {"id": "v1_FakeModel1", "status": "in_progress"})
    stop = answer("POST", f"{MODEL_JOB}/cancel", 200, {"id": "v1_FakeModel1", "status": "cancelled"})
    with ReplayServer([begun, paused(), answer("POST", CREATE, make=hold)], always=[stop]) as server:
        assert asyncio.run(started(server, interrupt=True)) == "paying"
        released.set()
        sent = len(server.sent("POST", CREATE))
        assert asyncio.run(started(server, interrupt=False)) == "paying"
        assert len(server.sent("POST", CREATE)) == sent == 2, "it is never sent again"
