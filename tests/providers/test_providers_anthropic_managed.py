"""system=anthropic_managed against recorded exchanges and what can go wrong beside them, over real HTTP."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any, Final

import pytest
from fakes.replay_server import (
    KEY,
    Exchange,
    ReplayServer,
    answer,
    file_task,
    hang_up,
    make_system,
    plain_task,
    provider_services,
    recorded,
    scenario,
    solved,
)
from hypothesis import given
from hypothesis import strategies as st

from core.errors import CallError, InputError
from core.jobs import Ask
from core.jobs.outcome import submission_of
from core.jobs.system import JobSystem
from core.model import Submission, Task

AGENTS: Final = "/v1/agents"
ENVIRONMENTS: Final = "/v1/environments"
SESSIONS: Final = "/v1/sessions"
SESSION: Final = "/v1/sessions/sesn_1"
EVENTS: Final = "/v1/sessions/sesn_1/events"
FILES: Final = "/v1/files"
#: Ids of the user's own, so that a scenario begins with the session.
IDS: Final = ("system.agent_id=agent_1", "system.environment_id=env_1")


def session(status: str = "running", **more: Any) -> dict[str, Any]:
    return {"id": "sesn_1", "type": "session", "status": status, **more}


CREATED: Final = answer("POST", SESSIONS, 200, session())
IDLE: Final = answer("GET", SESSION, 200, session("idle"))


def listed(path: str, *entries: Any, next_page: str | None = None) -> Exchange:
    return answer("GET", path, 200, {"data": list(entries), "next_page": next_page})


def said(text: str) -> dict[str, Any]:
    return {"type": "agent.message", "content": [{"type": "text", "text": text}]}


def idle(reason: Any = "end_turn", **more: Any) -> dict[str, Any]:
    return {"type": "session.status_idle", "stop_reason": {"type": reason} if reason else None, **more}


def error(retry: str, kind: str = "model_overloaded_error") -> dict[str, Any]:
    return {"type": "session.error", "error": {"type": kind, "message": "busy", "retry_status": {"type": retry}}}


RUNNING: Final = {"type": "session.status_running"}
INTERRUPT: Final = {"type": "user.interrupt"}
#: A session that was asked and has ended well.
WELL: Final = (CREATED, IDLE, listed(EVENTS, RUNNING, said("text"), idle()))


def kept(file_id: str, name: str, **more: Any) -> dict[str, Any]:
    return {"id": file_id, "filename": name, "created_at": "2026-11-30T10:00:00Z", "downloadable": True, **more}


def content(file_id: str, text: str) -> Exchange:
    return answer("GET", f"{FILES}/{file_id}/content", 200, text, {"content-type": "application/octet-stream"})


def done(
    folder: Path,
    exchanges: Sequence[Exchange],
    task: Task | None = None,
    *words: str,
    always: Sequence[Exchange] = (),
) -> Submission:
    """The submission of these exchanges, all of which must have been used."""
    with ReplayServer(exchanges, always=always) as server:
        result = solved(folder, server, "anthropic_managed", task, *IDS, *words)
    assert server.unexpected == []
    assert server.left == 0
    assert result.submission is not None
    assert not result.job_left
    assert KEY not in result.submission.model_dump_json()
    return result.submission


def test_the_recorded_session_ends_as_it_should(tmp_path: Path) -> None:
    with ReplayServer(scenario("anthropic", "managed")[:-1], always=[content("file_011out", "name\n")]) as server:
        result = solved(tmp_path, server, "anthropic_managed", file_task(), "effort=high")
    assert server.unexpected == []
    submission = result.submission
    assert submission is not None
    assert (submission.status, submission.cost_usd, submission.cost_source) == ("completed", 0.47, "reported")
    assert submission.files == {"members.csv": "name\n"}
    assert submission.text is not None
    assert submission.text.startswith("The Lakeshore Grid Association has three members.")
    assert submission.usage is not None
    assert (submission.usage.input, submission.usage.cached_input, submission.usage.output) == (
        355_200,
        310_000,
        9_100,
    )
    echoed = submission.settings["echoed"]
    assert (echoed["id"], echoed["model"], echoed["state"]) == ("sesn_011fake", "claude-opus-5-5", "end_turn")
    assert (echoed["agent_version"], echoed["active_seconds"]) == (1, 371.5)
    assert submission.settings["effort"] == "high"
    assert not result.job_left
    assert KEY not in submission.model_dump_json()


def test_the_recorded_budget_ends_a_session(tmp_path: Path) -> None:
    with ReplayServer(scenario("anthropic", "managed_budget")) as server:
        result = solved(tmp_path, server, "anthropic_managed", None, *IDS, "system.max_list_cost_usd=25")
    assert server.requests[0].json["budget"] == {
        "type": "limit",
        "max_list_cost": {"amount": "2500", "currency": "USD"},
    }
    assert result.submission is not None
    assert result.submission.status == "empty", "it ended early, and said nothing"
    assert result.submission.cost_usd == 0.47


def test_the_deadline_interrupts_a_session(tmp_path: Path) -> None:
    running = recorded("anthropic", "23_ma_get_running")
    events = answer("GET", f"{SESSIONS}/sesn_011fake/events", 200, {"data": [RUNNING, said("so far")]})
    words = (*IDS, "system.ladders.product.default.timeout_s=1e-9")
    with ReplayServer(scenario("anthropic", "managed_interrupt"), always=[running, events]) as server:
        result = solved(tmp_path, server, "anthropic_managed", None, *words)
    assert server.unexpected == []
    assert server.sent("POST")[-1].json == {"events": [{"type": "user.interrupt"}]}
    assert result.submission is not None
    assert (result.submission.status, result.submission.text) == ("timed_out", "so far")
    assert result.submission.cost_usd is None, "a session that has not counted yet is not free"


@pytest.mark.parametrize(
    ("events", "status"),
    [
        ((RUNNING, said("a"), INTERRUPT, idle()), "timed_out"),
        ((RUNNING, said("a"), idle(), INTERRUPT), "completed"),
    ],
)
def test_a_session_that_ends_while_it_is_interrupted(tmp_path: Path, events: tuple[Any, ...], status: str) -> None:
    refused = answer("POST", EVENTS, 400, {"type": "error", "error": {"type": "invalid_request_error"}})
    with ReplayServer([CREATED, refused, IDLE, listed(EVENTS, *events)]) as server:
        result = solved(
            tmp_path, server, "anthropic_managed", None, *IDS, "system.ladders.product.default.timeout_s=1e-9"
        )
    assert server.left == 0
    assert result.submission is not None
    assert (result.submission.status, result.submission.text) == (status, "a")


# what is asked


def test_what_is_asked(tmp_path: Path) -> None:
    exchanges = [
        answer("POST", AGENTS, 200, {"id": "agent_2"}),
        answer("POST", ENVIRONMENTS, 200, {"id": "env_2"}),
        *WELL,
    ]
    with ReplayServer(exchanges, always=[listed(FILES)]) as server:
        solved(tmp_path, server, "anthropic_managed", file_task(), "effort=low")
    assert server.unexpected == []
    agent, environment, created = (request.json for request in server.sent("POST"))
    assert agent == {
        "name": "leadline claude-opus-5-5 low",
        "model": {"id": "claude-opus-5-5", "effort": "low"},
        "tools": [{"type": "agent_toolset_20260401"}],
    }
    assert environment["config"] == {"type": "cloud", "networking": {"type": "unrestricted"}}
    (first,) = created.pop("initial_events")
    prompt = first["content"][0]["text"]
    assert prompt.startswith(file_task().prompt)
    assert "/mnt/session/outputs/members.csv" in prompt
    token = created["metadata"].pop("token")
    assert len(token) == 32
    assert created == {
        "agent": "agent_2",
        "environment_id": "env_2",
        "title": "lga-001",
        "metadata": {"task_id": "lga-001", "attempt": "1"},
    }
    for request in server.requests:
        assert request.headers["authorization"] == f"Bearer {KEY}"
        assert request.headers["anthropic-version"] == "2026-10-21"
        assert request.headers["anthropic-beta"] == "managed-agents-2026-04-01,files-api-2025-04-14"


BLOCKED: Final = tuple(f"{number}.example/page" for number in range(70))


@pytest.mark.parametrize(("sites", "passed", "noted"), [(2, 2, False), (70, 64, True)])
def test_blocked_sites_are_the_sessions_own(tmp_path: Path, sites: int, passed: int, noted: bool) -> None:
    made = [answer("POST", path, 200, {"id": "made_1"}) for path in (AGENTS, ENVIRONMENTS)]
    with ReplayServer([*made, *WELL]) as server:
        result = solved(tmp_path, server, "anthropic_managed", plain_task(blocked=BLOCKED[:sites]))
    hosts = [f"{number}.example" for number in range(passed)]
    configs = [{"name": name, "blocked_domains": hosts} for name in ("web_search", "web_fetch")]
    assert server.sent("POST", SESSIONS)[0].json["agent"] == {
        "type": "agent_with_overrides",
        "id": "made_1",
        "tools": [{"type": "agent_toolset_20260401", "configs": configs}],
    }
    assert result.submission is not None
    found = result.submission.settings["echoed"].get("notes")
    assert found == (None if not noted else ["only the first 64 of 70 blocked hosts were passed on"])


def test_an_agent_of_the_users_keeps_its_tools(tmp_path: Path) -> None:
    with ReplayServer(WELL) as server:
        solved(tmp_path, server, "anthropic_managed", plain_task(blocked=BLOCKED), *IDS, "effort=max")
        system = make_system(server, "anthropic_managed", *IDS)
    model = {"id": "claude-opus-5-5", "effort": "max"}
    expected = {"type": "agent_with_overrides", "id": "agent_1", "model": model}
    assert server.requests[0].json["agent"] == expected
    assert isinstance(system, JobSystem)
    assert system.can_block is False


def test_the_agent_and_the_environment_are_made_once() -> None:
    made = [answer("POST", path, 200, {"id": "made_1"}) for path in (AGENTS, ENVIRONMENTS)]

    async def solve() -> list[Submission]:
        given = provider_services()
        system = make_system(server, "anthropic_managed", given=given)
        found = await asyncio.gather(*(system.solve(plain_task(id=name), 1) for name in ("a", "b", "c")))
        await given.http.aclose()
        return found

    with ReplayServer([], always=[*made, *WELL]) as server:
        found = asyncio.run(solve())
    assert [one.status for one in found] == ["completed"] * 3
    assert [len(server.sent("POST", path)) for path in (AGENTS, ENVIRONMENTS, SESSIONS)] == [1, 1, 3]


@pytest.mark.parametrize(
    "trouble",
    [
        hang_up("POST", AGENTS),
        answer("POST", AGENTS, 504, "<html>"),
        answer("POST", AGENTS, 529, {"type": "error", "error": {"type": "overloaded_error"}}),
        answer("POST", AGENTS, 200, {}),
        answer("POST", AGENTS, 200, []),
    ],
)
def test_making_an_agent_is_free_and_is_tried_again(tmp_path: Path, trouble: Exchange) -> None:
    made = [answer("POST", path, 200, {"id": "made_1"}) for path in (AGENTS, ENVIRONMENTS)]
    with ReplayServer([trouble, *made, *WELL]) as server:
        result = solved(tmp_path, server, "anthropic_managed")
    assert server.left == 0
    assert result.submission is not None
    assert result.submission.status == "completed"


@pytest.mark.parametrize(
    ("words", "model", "effort"),
    [
        ((), "claude-opus-5-5", None),
        (("effort=xhigh",), "claude-opus-5-5", "xhigh"),
        (("system.ladder=wandr",), "claude-opus-4-8", None),
        (("system.ladder=wandr", "system.model=claude-sonnet-5-5"), "claude-sonnet-5-5", None),
    ],
)
def test_ladders(words: tuple[str, ...], model: str, effort: str | None) -> None:
    system = make_system(ReplayServer([]), "anthropic_managed", *words)
    assert isinstance(system, JobSystem)
    assert (system.settings["model"], system.settings["effort"]) == (model, effort)


@pytest.mark.parametrize("word", ["delivery=schema", "transport=stream", "max_list_cost_usd=0"])
def test_a_value_that_can_not_be_used_is_refused(word: str) -> None:
    with pytest.raises(InputError, match=rf"system\.{word.partition('=')[0]}"):
        make_system(ReplayServer([]), "anthropic_managed", f"system.{word}")


@pytest.mark.parametrize(
    ("ceiling", "estimate", "warned"), [("null", 47.5, False), ("25", 25.0, True), ("100", 47.5, False)]
)
def test_a_low_ceiling_is_warned_about(ceiling: str, estimate: float, warned: bool) -> None:
    system = make_system(ReplayServer([]), "anthropic_managed", f"system.max_list_cost_usd={ceiling}")
    assert isinstance(system, JobSystem)
    assert system.estimate_usd == estimate
    assert any("max_list_cost_usd=25" in line for line in system.warnings(date(2026, 11, 30))) is warned


# how a session ends


@pytest.mark.parametrize(
    ("events", "status", "kind", "message"),
    [
        ((RUNNING, said("a"), idle()), "completed", None, ""),
        ((RUNNING, said("b"), said("a"), idle()), "completed", None, ""),
        ((RUNNING, said("a"), said("  "), idle()), "completed", None, ""),
        ((said("a"), error("retrying"), idle()), "completed", None, ""),
        ((said("a"), idle("requires_action")), "incomplete", "truncated", "stopped early: requires_action"),
        ((said("a"), idle("budget_reached")), "incomplete", "truncated", "stopped early: budget_reached"),
        ((said("a"), idle("hologram")), "incomplete", "truncated", "stopped early: hologram"),
        ((said("a"), idle("retries_exhausted")), "failed", "failed", "stopped early: retries_exhausted"),
        (
            (said("a"), error("exhausted"), idle("retries_exhausted")),
            "failed",
            "failed",
            "stopped early: retries_exhausted: busy",
        ),
        ((said("a"), error("exhausted")), "failed", "failed", "busy"),
        ((said("a"), error("terminal")), "failed", "failed", "busy"),
        (
            (said("a"), idle("refusal", stop_details={"category": "cyber", "explanation": None})),
            "refused",
            "refused",
            "refusal: cyber",
        ),
        ((said("a"), INTERRUPT, idle()), "failed", "failed", "interrupted"),
        ((idle(), RUNNING, said("a"), idle("budget_reached")), "incomplete", "truncated", "budget_reached"),
    ],
)
def test_reasons_to_stop(
    tmp_path: Path, events: tuple[Any, ...], status: str, kind: str | None, message: str
) -> None:
    submission = done(tmp_path, [CREATED, IDLE, listed(EVENTS, *events)])
    assert (submission.status, submission.text) == (status, "a")
    assert (submission.error.kind if submission.error else None) == kind
    assert message in (submission.error.message if submission.error else "")


@pytest.mark.parametrize(("fault", "kind"), [("billing_error", "quota"), ("authentication_error", "key")])
def test_a_session_that_the_account_fails_stops_the_run(tmp_path: Path, fault: str, kind: str) -> None:
    events = [said("a"), error("exhausted", fault), idle("retries_exhausted")]
    over = answer("GET", SESSION, 200, session("idle", usage={"list_cost": cents("150")}))
    with ReplayServer([CREATED, over, listed(EVENTS, *events)]) as server:
        result = solved(tmp_path, server, "anthropic_managed", None, *IDS)
    assert result.stopped is not None
    assert result.stopped.kind == kind
    assert result.calls == [(kind, 1.5)], "what was used until then is owed"
    assert not result.job_left, "with credit it begins anew"


@pytest.mark.parametrize(
    "early",
    [
        [],
        [{"type": "user.message"}],
        [idle(None)],
        [idle("end_turn"), RUNNING],
        ["junk", {"type": 7}],
    ],
)
def test_a_session_that_is_idle_before_it_begins_is_asked_again(tmp_path: Path, early: list[Any]) -> None:
    exchanges = [CREATED, IDLE, listed(EVENTS, *early), IDLE, listed(EVENTS, RUNNING, said("a"), idle())]
    assert done(tmp_path, exchanges).status == "completed"


@pytest.mark.parametrize(
    ("events", "status"),
    [((said("a"), idle()), "completed"), ((said("a"), error("terminal")), "failed"), ((said("a"),), "failed")],
)
def test_a_session_that_was_terminated(tmp_path: Path, events: tuple[Any, ...], status: str) -> None:
    over = answer("GET", SESSION, 200, session("terminated"))
    assert done(tmp_path, [CREATED, over, listed(EVENTS, *events)]).status == status


@pytest.mark.parametrize(
    "trouble",
    [
        answer("GET", SESSION, 404, {"type": "error", "error": {"type": "not_found_error"}}),
        answer("GET", SESSION, 500, {"type": "error", "error": {"type": "api_error"}}),
        answer("GET", SESSION, 502, "<html><title>Bad gateway</title></html>"),
        answer("GET", SESSION, 200, "<html>hello</html>"),
        answer(
            "GET", SESSION, 429, {"type": "error", "error": {"type": "rate_limit_error"}}, {"retry-after": "0"}
        ),
        answer("GET", SESSION, 200, session("rescheduling")),
        answer("GET", SESSION, 200, session("hologram")),
        answer("GET", SESSION, 200, {"status": ["odd"]}),
        hang_up("GET", SESSION),
    ],
)
def test_a_poll_that_makes_no_sense_is_made_again(tmp_path: Path, trouble: Exchange) -> None:
    assert done(tmp_path, [CREATED, trouble, *WELL[1:]]).status == "completed"


def test_a_session_that_is_gone_has_failed(tmp_path: Path) -> None:
    gone = answer("GET", SESSION, 404, {"type": "error", "error": {"type": "not_found_error", "message": "gone"}})
    submission = done(tmp_path, [CREATED, gone], file_task())
    assert (submission.status, submission.cost_usd) == ("failed", None)
    assert submission.error is not None
    assert "no longer has the job" in submission.error.message


def test_events_come_in_pages(tmp_path: Path) -> None:
    asked: Iterator[Any] = iter(
        [
            {"data": [RUNNING, said("a")], "next_page": "page_2"},
            {"data": [idle()], "next_page": "page_3"},
            {"data": [], "next_page": "page_2"},
        ]
    )
    pages = answer("GET", EVENTS, make=lambda: json.dumps(next(asked)).encode())
    with ReplayServer([CREATED, IDLE, pages]) as server:
        result = solved(tmp_path, server, "anthropic_managed", None, *IDS)
    assert [request.query.get("page") for request in server.sent("GET", EVENTS)] == [None, "page_2", "page_3"]
    assert result.submission is not None
    assert (result.submission.status, result.submission.text) == ("completed", "a")


def test_addresses_in_the_text_are_its_sources(tmp_path: Path) -> None:
    result = {"type": "search_result", "source": "https://a.example/1", "title": "One"}
    events = [
        {"type": "agent.tool_result", "content": [result, "junk"]},
        said("See https://a.example/1 and [Two](https://a.example/2)."),
        idle(),
    ]
    submission = done(tmp_path, [CREATED, IDLE, listed(EVENTS, *events)])
    assert [(one.url, one.title) for one in submission.citations] == [
        ("https://a.example/1", "One"),
        ("https://a.example/2", "Two"),
    ]


USED: Final = {"input_tokens": 1000, "output_tokens": 100}


def cents(amount: Any, currency: str = "USD") -> dict[str, Any]:
    return {"amount": amount, "currency": currency}


@pytest.mark.parametrize(
    ("usage", "usd", "source"),
    [
        ({**USED, "list_cost": cents("4712")}, 47.12, "reported"),
        ({"list_cost": cents("1")}, 0.01, "reported"),
        ({**USED, "list_cost": cents("4712", "EUR")}, pytest.approx(0.006), "computed"),
        ({**USED, "list_cost": cents("-1")}, pytest.approx(0.006), "computed"),
        ({**USED, "list_cost": cents("9" * 400)}, pytest.approx(0.006), "computed"),
        ({**USED, "list_cost": cents("0")}, pytest.approx(0.006), "computed"),
        (
            {**USED, "active_seconds": 1800, "server_tool_use": {"web_search_requests": 3}},
            pytest.approx(0.006 + 0.04 + 0.03),
            "computed",
        ),
        ({"input_tokens": 0, "output_tokens": 0}, None, "unknown"),
        (None, None, "unknown"),
    ],
)
def test_costs_are_reported_computed_or_unknown(tmp_path: Path, usage: Any, usd: Any, source: str) -> None:
    over = answer("GET", SESSION, 200, session("idle", usage=usage))
    submission = done(tmp_path, [CREATED, over, WELL[2]])
    assert (submission.cost_usd, submission.cost_source) == (usd, source)


def test_a_model_without_a_price_has_no_cost(tmp_path: Path) -> None:
    over = answer("GET", SESSION, 200, session("idle", usage=USED))
    submission = done(tmp_path, [CREATED, over, WELL[2]], None, "system.ladder=wandr")
    assert (submission.cost_usd, submission.cost_source) == (None, "unknown")


# a session that was lost, and one that was left


def test_a_create_that_was_read_is_looked_up_and_not_sent_again(tmp_path: Path) -> None:
    asked: list[int] = []

    def page() -> bytes:
        asked.append(1)
        token = server.requests[0].json["metadata"]["token"]
        mine = session(metadata={"token": token})
        data = [mine] if len(asked) == 2 else ["junk", session(metadata=None)]
        return json.dumps({"data": data, "next_page": "page_2"}).encode()

    exchanges = [hang_up("POST", SESSIONS), answer("GET", SESSIONS, make=page), *WELL[1:]]
    with ReplayServer(exchanges) as server:
        result = solved(tmp_path, server, "anthropic_managed", None, *IDS)
    assert server.left == 0
    assert len(server.sent("POST")) == 1
    assert result.submission is not None
    assert result.submission.status == "completed"


@pytest.mark.parametrize(
    "lost", [hang_up("POST", SESSIONS), answer("POST", SESSIONS, 200, {}), answer("POST", SESSIONS, 200, "<html>")]
)
def test_a_create_that_nobody_knows_of_may_have_been_billed(tmp_path: Path, lost: Exchange) -> None:
    port = 0
    for again in range(2):
        with ReplayServer([] if again else [lost], always=[listed(SESSIONS)], port=port) as server:
            port = server.port
            result = solved(tmp_path, server, "anthropic_managed", None, *IDS)
        assert len(server.sent("POST")) == 1 - again
        assert result.submission is not None
        assert result.submission.error is not None
        assert result.submission.error.kind == "maybe_billed"
    assert result.calls == [("maybe_billed", None), ("maybe_billed", 0.0)], "counted once"


@pytest.mark.parametrize(
    ("status", "kind", "stops"),
    [(401, "authentication_error", "key"), (402, "billing_error", "quota"), (429, "rate_limit_error", "quota")],
)
def test_a_wrong_key_and_an_empty_account_stop_the_run_at_once(
    tmp_path: Path, status: int, kind: str, stops: str
) -> None:
    refused = answer("POST", SESSIONS, status, {"type": "error", "error": {"type": kind, "message": "no"}})
    with ReplayServer([refused]) as server:
        result = solved(tmp_path, server, "anthropic_managed", None, *IDS)
    assert len(server.requests) == 1
    assert result.stopped is not None
    assert result.stopped.kind == stops
    assert KEY not in result.stopped.message
    assert not result.job_left


def test_a_session_goes_on_after_a_restart(tmp_path: Path) -> None:
    refused = answer("GET", SESSION, 401, {"type": "error", "error": {"type": "authentication_error"}})
    with ReplayServer([CREATED, refused]) as server:
        assert solved(tmp_path, server, "anthropic_managed", None, *IDS).job_left
    with ReplayServer(WELL[1:], port=server.port) as server:
        result = solved(tmp_path, server, "anthropic_managed", None, *IDS)
    assert server.sent("POST") == []
    assert result.submission is not None
    assert result.submission.status == "completed"
    assert result.submission.settings["echoed"]["resumed"] is True


# files


@pytest.mark.parametrize(
    ("lists", "contents", "files", "note"),
    [
        ([[kept("f1", "members.csv")]], {"f1": "a"}, {"members.csv": "a"}, None),
        ([[], [kept("f1", "members.csv")]], {"f1": "a"}, {"members.csv": "a"}, None),
        (
            [[kept("f2", "notes.txt")], [kept("f1", "members.csv"), kept("f2", "notes.txt")]],
            {"f1": "a"},
            {"members.csv": "a"},
            "not asked for",
        ),
        ([[kept("f1", "/mnt/session/outputs/members.csv")]], {"f1": "a"}, {"members.csv": "a"}, None),
        (
            [
                [
                    kept("f2", "members.csv", created_at="2026-11-30T10:05:00Z"),
                    kept("f1", "members.csv", created_at="2026-11-30T10:00:00Z"),
                ]
            ],
            {"f1": "old", "f2": "new"},
            {"members.csv": "new"},
            "more than once",
        ),
        ([[kept("f1", "members.csv")]], {"f1": ""}, {"members.csv": ""}, None),
        ([[kept("f1", "members.csv", downloadable=False)]], {}, {}, "does not give it back"),
        ([[kept("f1", "../members.csv")]], {}, {}, "not asked for"),
        ([["junk", {"id": 7, "filename": []}]], {}, {}, "not usable as an id"),
        ([[kept("..", "members.csv")]], {}, {}, "not usable as an id"),
        ([[]], {}, {}, None),
    ],
)
def test_files_are_taken_when_their_list_has_settled(
    tmp_path: Path, lists: list[Any], contents: dict[str, str], files: dict[str, str], note: str | None
) -> None:
    left = iter(lists)
    last: list[Any] = []

    def page() -> bytes:
        last[:] = next(left, last)
        return json.dumps({"data": last}).encode()

    fetched = [content(file_id, text) for file_id, text in contents.items()]
    submission = done(tmp_path, [*WELL, answer("GET", FILES, make=page)], file_task(), always=fetched)
    assert submission.files == files
    assert submission.status == ("completed" if files.get("members.csv") else "empty")
    notes = submission.settings["echoed"].get("notes", [])
    assert len(notes) == (note is not None)
    assert note is None or note in notes[0]


def test_files_come_in_pages(tmp_path: Path) -> None:
    task = file_task("a.csv", "b.csv")
    pages = [
        {"data": [kept("f1", "a.csv")], "next_page": "page_2"},
        {"data": [kept("f2", "b.csv")], "next_page": None},
    ]
    asked = iter(pages * 2)
    listing = answer("GET", FILES, make=lambda: json.dumps(next(asked)).encode())
    with ReplayServer([*WELL, listing], always=[content("f1", "a"), content("f2", "b")]) as server:
        result = solved(tmp_path, server, "anthropic_managed", task, *IDS)
    requests = server.sent("GET", FILES)
    assert [request.query.get("page") for request in requests] == [None, "page_2"] * 2
    assert requests[0].query["scope_id"] == "sesn_1"
    assert result.submission is not None
    assert result.submission.files == {"a.csv": "a", "b.csv": "b"}


def test_a_list_that_never_settles_is_taken_as_it_is(tmp_path: Path) -> None:
    count = iter(range(10_000))

    def page() -> bytes:
        return json.dumps({"data": [kept("f1", "members.csv"), kept(f"x{next(count)}", "tmp")]}).encode()

    listing = answer("GET", FILES, make=page)
    submission = done(tmp_path, [*WELL, listing], file_task(), always=[content("f1", "a")])
    assert submission.files == {"members.csv": "a"}
    assert submission.settings["echoed"]["notes"][0].endswith("the list of files has not settled yet")


def test_a_file_that_is_late_is_waited_for(tmp_path: Path) -> None:
    missing = answer("GET", f"{FILES}/f1/content", 404, {"type": "error", "error": {"type": "not_found_error"}})
    listing = listed(FILES, kept("f1", "members.csv"))
    exchanges = [*WELL, listing, missing, content("f1", "a")]
    assert done(tmp_path, exchanges, file_task()).files == {"members.csv": "a"}


def test_files_of_a_session_that_failed_count(tmp_path: Path) -> None:
    exchanges = [
        CREATED,
        IDLE,
        listed(EVENTS, idle("retries_exhausted")),
        listed(FILES, kept("f1", "members.csv")),
        content("f1", "a"),
    ]
    submission = done(tmp_path, exchanges, file_task())
    assert (submission.status, submission.files) == ("incomplete", {"members.csv": "a"})


def test_text_tasks_do_not_ask_for_files(tmp_path: Path) -> None:
    assert done(tmp_path, WELL).settings["echoed"]["delivered"] is True


def test_fences_stay_in_the_text(tmp_path: Path) -> None:
    submission = done(tmp_path, WELL, file_task(), "system.delivery=fence")
    assert (submission.status, submission.text, submission.files) == ("completed", "text", {})


# whatever comes

JSON: Final = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=8,
)


def shaped(fields: Mapping[str, Any]) -> st.SearchStrategy[Any]:
    """Objects with some of these fields: as they should be, or anything; or no objects at all."""
    return st.fixed_dictionaries({}, optional={name: found | JSON for name, found in fields.items()}) | JSON


TYPES: Final = [
    "agent.message",
    "agent.tool_result",
    "user.interrupt",
    "session.error",
    "session.status_idle",
    "session.status_running",
]
ENTRIES: Final = shaped(
    {
        "type": st.sampled_from(TYPES),
        "content": st.lists(shaped({"type": st.just("text"), "text": st.just("\ud800 https://a.example/")})),
        "stop_reason": shaped({"type": st.sampled_from(["end_turn", "refusal"])}),
        "error": shaped({"retry_status": shaped({"type": st.just("terminal")})}),
        "id": st.sampled_from(["f1", ".", "sesn_1"]),
        "filename": st.sampled_from(["members.csv", "../members.csv"]),
        "created_at": st.text(max_size=3),
    }
)
REPLIES: Final = shaped(
    {
        "id": st.just("sesn_1") | st.text(max_size=3),
        "status": st.sampled_from(["idle", "terminated", "running"]),
        "usage": shaped({"list_cost": shaped({"amount": st.just("12"), "currency": st.just("USD")})}),
        "agent": shaped({"model": shaped({"id": st.text(max_size=3)})}),
        "data": st.lists(ENTRIES, max_size=3),
        "next_page": st.text(max_size=2),
    }
)


class AnyApi:
    """An API that answers with what it is given, over and over."""

    name = "anthropic_managed"

    def __init__(self, replies: list[Any]) -> None:
        self._replies = replies

    async def json(self, *_: Any, **__: Any) -> dict[str, Any]:
        found = self._replies[0]
        self._replies = [*self._replies[1:], found]
        if not isinstance(found, dict):
            raise CallError("malformed", "expected a JSON object")
        return found

    async def download(self, *_: Any, **__: Any) -> bytes:
        return b"\xff"


async def lived(system: JobSystem, task: Task) -> Submission:
    """A job's life without a driver, asked about three times."""

    async def patiently(make: Callable[[], Any]) -> Any:
        for _ in range(5):
            try:
                return await make()
            except CallError:
                continue
        return await make()

    ask = Ask(task, 1, "token", lambda handle: None, patiently)
    provider = system.provider
    last = await provider.create(ask)
    assert last.handle is not None
    handle = json.loads(json.dumps(last.handle, allow_nan=False))
    for _ in range(3):
        if last.state in ("running", "queued"):
            last = await provider.advance(ask, handle)
    submission = submission_of(
        ask, last, await provider.answer(ask, last), name="anthropic_managed", handle=None, latency_s=1.0
    )
    submission.model_dump_json()
    return submission


SYSTEM: Final = make_system(ReplayServer([]), "anthropic_managed", *IDS)


@given(st.lists(REPLIES, min_size=1, max_size=5))
def test_whatever_comes_is_an_answer_or_a_call_that_failed(replies: list[Any]) -> None:
    assert isinstance(SYSTEM, JobSystem)
    SYSTEM.provider._api = AnyApi(replies)  # type: ignore[attr-defined]
    try:
        submission = asyncio.run(lived(SYSTEM, file_task()))
    except CallError:
        return
    assert submission.cost_usd is None or submission.cost_usd >= 0
