"""system=parallel against recorded exchanges and what can go wrong beside them, over real HTTP."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from fakes.hostile_json import JSON
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
    recorded,
    scenario,
    solved,
    sse,
)
from hypothesis import given
from hypothesis import strategies as st

from adapters.parallel import _result, _snapshot
from core.errors import CallError, InputError
from core.jobs import Ask, Snapshot
from core.model import Submission
from core.testing import services, system

RUNS = "/v1/tasks/runs"
ID = "trun_fake0000000000000000000000000001"
RUN = f"{RUNS}/{ID}"
URLS = [
    "https://lga.example.org/members",
    "https://northmere.example.org/about",
    "https://caldergrid.example.com/company",
    "https://solvane.example.net/history",
]
EXCERPTS = [
    "The association has three members: Northmere Transmission, Calder Grid and Solvane Networks.",
    "Founded in 1998 and headquartered in Ashby Quay, Northmere runs the northern interconnector.",
    "Calder Grid was formed in 2004 in Wexley.",
    "Solvane Networks opened its Tarn Hollow head office in 2011.",
]


def happy(*between: Exchange) -> list[Exchange]:
    """A run with a text as its result, with these exchanges between the create and the last poll."""
    return [
        recorded("parallel", "01_create_run"),
        *between,
        recorded("parallel", "03_get_run_completed"),
        recorded("parallel", "06_result_text"),
    ]


def only(result: Any) -> Submission:
    """The submission, without the key anywhere in it."""
    assert result.submission is not None
    assert KEY not in result.submission.model_dump_json()
    found: Submission = result.submission
    return found


@pytest.mark.parametrize(
    ("name", "words", "status", "usd", "source", "left"),
    [
        ("happy", (), "completed", 0.30, "list_price", 0),
        ("blocking", ("system.transport=blocking",), "completed", 0.30, "list_price", 0),
        ("text", ("system.transport=blocking",), "completed", 0.30, "list_price", 0),
        # the run has said that it failed: its result is not asked for
        ("failed", (), "failed", 0.0, "list_price", 1),
        ("events", ("system.transport=stream",), "completed", 0.30, "list_price", 0),
        ("transient_poll", (), "completed", 0.30, "list_price", 0),
        ("rate", ("system.transport=blocking",), "completed", 0.30, "list_price", 0),
    ],
)
def test_recorded_scenarios_end_as_they_should(
    tmp_path: Path, name: str, words: tuple[str, ...], status: str, usd: float | None, source: str, left: int
) -> None:
    exchanges = scenario("parallel", name)
    run = recorded("parallel", "03_get_run_completed")
    # a stream says that a run ended; the run is asked all the same
    always = [run] if name == "events" else []
    with ReplayServer(exchanges, always=always) as server:
        result = solved(tmp_path, server, "parallel", plain_task(), "effort=medium", *words)
    submission = only(result)
    assert (server.unexpected, server.left) == ([], left)
    assert (submission.status, submission.cost_usd, submission.cost_source) == (status, usd, source)
    assert not result.job_left
    assert server.requests[0].headers["x-api-key"] == KEY
    assert submission.settings["processor"] == "ultra"
    assert submission.settings["echoed"]["processor"] == "ultra"
    assert submission.settings["echoed"]["state"] == status
    assert submission.usage is None
    if status == "failed":
        assert submission.error is not None
        assert submission.error.model_dump() == {
            "kind": "failed",
            "message": f"parallel: Task run failed; internal; ref_fake_1; job {ID}; retry=failed sends it again",
        }
        return
    assert [citation.url for citation in submission.citations] == URLS
    assert [citation.excerpt for citation in submission.citations] == EXCERPTS
    assert submission.citations[0].title == "Members - Lakeshore Grid Association"
    if name == "text":
        assert (submission.text or "").startswith("The Lakeshore Grid Association has three members.")
        assert submission.files == {}
    else:
        assert list(submission.files) == ["output.json"]
        assert "Northmere Transmission" in submission.files["output.json"]


@pytest.mark.parametrize(("name", "kind"), [("auth", "key"), ("quota", "quota")])
def test_a_wrong_key_and_an_empty_account_stop_the_run_at_once(tmp_path: Path, name: str, kind: str) -> None:
    with ReplayServer(scenario("parallel", name)) as server:
        result = solved(tmp_path, server, "parallel")
    assert len(server.requests) == 1
    assert result.stopped is not None
    assert result.stopped.kind == kind
    assert "parallel" in result.stopped.message
    assert KEY not in result.stopped.message
    assert not result.job_left


@pytest.mark.parametrize(
    ("words", "processor", "estimate", "deadline"),
    [
        (("effort=minimal",), "core", 0.025, 900),
        (("effort=low",), "pro", 0.10, 1200),
        (("effort=medium",), "ultra", 0.30, 3000),
        (("effort=high",), "ultra2x", 0.60, 4200),
        (("effort=xhigh",), "ultra4x", 1.20, 7200),
        (("effort=max",), "ultra8x", 2.40, 10800),
        (("system.ladder=wandr", "effort=low"), "ultra", 0.30, 3000),
        (("system.ladder=wandr", "effort=high"), "ultra4x", 1.20, 7200),
        (("system.ladder=wandr", "effort=xhigh"), "ultra8x", 2.40, 10800),
        (("effort=low", "system.ladders.product.low.processor=pro-fast"), "pro-fast", 0.10, 1200),
        ((), "ultra", 0.30, 3000),
    ],
)
def test_the_ladders(words: tuple[str, ...], processor: str, estimate: float, deadline: float) -> None:
    made: Any = system("parallel", *words)(services())
    assert made.settings == {"processor": processor, "delivery": "schema", "base_url": "https://api.parallel.ai"}
    assert (made.estimate_usd, made.options.deadline_s) == (estimate, deadline)
    assert made.can_block is True


@pytest.mark.parametrize(
    "word",
    ["system.price={input: 1, output: 1}", "system.transport=sync", "system.delivery=file", "system.wait_s=0"],
)
def test_values_that_cannot_be_used_are_refused(word: str) -> None:
    with pytest.raises(InputError, match=r"system\.(price|transport|delivery|wait_s)"):
        system("parallel", word)(services())


def test_what_is_asked(tmp_path: Path) -> None:
    blocked = ("huggingface.co/datasets/a/b", "arxiv.org/abs/1", "arxiv.org/abs/1")
    with ReplayServer(happy()) as server:
        only(solved(tmp_path, server, "parallel", plain_task(blocked=blocked), "effort=low"))
    body = server.requests[0].json
    token = body["metadata"].pop("token")
    assert len(token) == 32
    assert body == {
        "processor": "pro",
        "input": plain_task().prompt,
        "task_spec": {"output_schema": {"type": "text"}},
        "metadata": {"task_id": "lga-001", "attempt": "1"},
        "source_policy": {"exclude_domains": ["huggingface.co/datasets/a/b", "arxiv.org/abs/1"]},
    }
    assert all(len(key) <= 16 for key in ("task_id", "attempt", "token"))


def test_a_stream_asks_for_events_and_a_blocking_request_names_its_wait(tmp_path: Path) -> None:
    with ReplayServer(scenario("parallel", "blocking")) as server:
        solved(tmp_path, server, "parallel", plain_task(), "system.transport=blocking", "system.wait_s=7")
    assert server.requests[1].query == {"timeout": "7"}
    assert "enable_events" not in server.requests[0].json
    run = recorded("parallel", "03_get_run_completed")
    with ReplayServer(scenario("parallel", "events"), always=[run]) as server:
        solved(tmp_path / "b", server, "parallel", plain_task(), "system.transport=stream")
    assert server.requests[0].json["enable_events"] is True


# files


def _schema_run(content: Any) -> list[Exchange]:
    done = recorded("parallel", "05_result_json")
    result = done.with_json(output={"type": "json", "content": content, "basis": []})
    return [recorded("parallel", "01_create_run"), recorded("parallel", "03_get_run_completed"), result]


@pytest.mark.parametrize(
    ("names", "content", "files", "status", "note"),
    [
        (("a.csv",), {"files": [{"path": "a.csv", "content": "n\n1\n"}]}, {"a.csv": "n\n1\n"}, "completed", None),
        (
            ("a.csv", "b.csv"),
            {"files": [{"path": "a.csv", "content": "n\n"}]},
            {"a.csv": "n\n"},
            "incomplete",
            None,
        ),
        (("a.csv",), {"files": [{"path": "a.csv", "content": "  "}]}, {"a.csv": "  "}, "empty", None),
        (("a.csv",), {"files": [{"path": "../a.csv", "content": "x"}]}, {}, "empty", "not asked for"),
        (("a.csv",), {"files": [{"path": "b.csv", "content": "x"}]}, {}, "empty", "not asked for"),
        (("a.csv",), {"files": [{"path": "a.csv", "content": 3}]}, {}, "empty", "without a path or content"),
        (
            ("a.csv",),
            {"files": [{"path": "a.csv", "content": "1"}, {"path": "a.csv", "content": "2"}]},
            {"a.csv": "2"},
            "completed",
            "more than once",
        ),
        (("a.csv",), None, {}, "empty", None),
        (("a.csv",), '{"files": [{"path": "a.csv"', {}, "empty", "may have been cut"),
    ],
)
def test_files_come_as_a_typed_reply(
    tmp_path: Path, names: tuple[str, ...], content: Any, files: dict[str, str], status: str, note: str | None
) -> None:
    task = file_task(*names)
    with ReplayServer(_schema_run(content)) as server:
        submission = only(solved(tmp_path, server, "parallel", task))
    assert server.requests[0].json["task_spec"]["output_schema"] == {
        "type": "json",
        "json_schema": task.output_schema,
    }
    assert (submission.files, submission.status) == (files, status)
    echoed = submission.settings["echoed"]
    assert echoed["delivered"] is (status == "completed")
    assert note is None or any(note in one for one in echoed["notes"])


def test_fences_are_asked_for_as_a_text(tmp_path: Path) -> None:
    with ReplayServer(happy()) as server:
        submission = only(solved(tmp_path, server, "parallel", file_task(), "system.delivery=fence"))
    assert server.requests[0].json["task_spec"] == {"output_schema": {"type": "text"}}
    assert submission.status == "completed"
    assert submission.text is not None
    assert submission.files == {}


def test_long_prompts_and_warnings_are_notes(tmp_path: Path) -> None:
    done = recorded("parallel", "06_result_text")
    run = {
        **done.json["run"],
        "warnings": [{"type": "warning", "message": "the form is deep"}, 3, {"message": None}],
    }
    exchanges = [*happy()[:-1], done.with_json(run=run)]
    task = plain_task(prompt="x" * 15_000, blocked=tuple(f"{n}.example.org" for n in range(201)))
    with ReplayServer(exchanges) as server:
        submission = only(solved(tmp_path, server, "parallel", task))
    assert submission.status == "completed"
    assert submission.settings["echoed"]["notes"] == [
        "input and form are 15,016 characters, above the documented 15,000",
        "only the first 200 addresses of the block-list were passed on",
        "the form is deep",
    ]
    assert len(server.requests[0].json["source_policy"]["exclude_domains"]) == 200


# what goes wrong with a create


@pytest.mark.parametrize(
    ("status", "body", "headers"),
    [
        (429, {"type": "error", "error": {"message": "Too many requests"}}, {}),
        (429, {"type": "error", "error": {"message": "Too many requests"}}, {"retry-after": "0"}),
        (429, {"error": {"message": "slow down"}}, {"retry-after": "Mon, 01 Jan 2024 00:00:00 GMT"}),
        (429, {"error": {"message": "slow down"}}, {"retry-after-ms": "1"}),
        (429, {"error": {"message": "slow down", "retry_after": 0}}, {}),
        (409, {"error": {"message": "conflict"}}, {}),
        (408, {"error": {"message": "timed out"}}, {}),
        (503, {"error": {"message": "unavailable"}}, {}),
        (500, "<html><body>oops</body></html>", {}),
        (502, "<html><body>502 Bad Gateway</body></html>", {}),
    ],
)
def test_a_create_that_was_not_taken_is_made_again(
    tmp_path: Path, status: int, body: Any, headers: dict[str, str]
) -> None:
    with ReplayServer([answer("POST", RUNS, status, body, headers), *happy()]) as server:
        submission = only(solved(tmp_path, server, "parallel"))
    assert submission.status == "completed"
    assert len(server.sent("POST")) == 2


def test_a_form_that_is_refused_is_not_sent_again(tmp_path: Path) -> None:
    with ReplayServer([recorded("parallel", "93_err_422")]) as server:
        result = solved(tmp_path, server, "parallel")
    submission = only(result)
    assert submission.error is not None
    assert (submission.status, submission.error.kind) == ("error", "bad_request")
    assert "Request validation error" in submission.error.message
    assert (len(server.requests), result.calls, result.job_left) == (1, [("bad_request", 0.0)], False)


@pytest.mark.parametrize(
    "exchange",
    [
        hang_up("POST", RUNS),
        cut(answer("POST", RUNS, 202, {"run_id": "trun_1", "status": "queued"})),
        answer("POST", RUNS, 504, "<html>gateway time-out</html>"),
        answer("POST", RUNS, 200, "<html>hello</html>"),
        answer("POST", RUNS, 202, []),
        answer("POST", RUNS, 202, {"status": "queued"}),
        answer("POST", RUNS, 202, {"run_id": 7, "status": "queued"}),
    ],
    ids=["hang up", "cut", "504", "a page", "a list", "no id", "an id of another type"],
)
def test_a_create_whose_answer_was_lost_may_have_been_billed(tmp_path: Path, exchange: Exchange) -> None:
    port = 0
    for again in range(2):
        with ReplayServer([] if again else [exchange], port=port) as server:
            port = server.port
            result = solved(tmp_path, server, "parallel")
        submission = only(result)
        assert submission.error is not None
        assert submission.error.kind == "maybe_billed"
        assert len(server.requests) == 1 - again, "the next start sends nothing"
    assert result.calls == [("maybe_billed", None), ("maybe_billed", 0.0)]


# what goes wrong while a run is asked about


ODD = [
    answer("GET", RUN, 404, {"type": "error", "error": {"message": "not found"}}),
    answer("GET", RUN, 502, "<html><body>502 Bad Gateway</body></html>"),
    answer("GET", RUN, 429, {"error": {"message": "slow down"}}, {"retry-after": "0"}),
    answer("GET", RUN, 408, {}),
    answer("GET", RUN, 200, "<html>hello</html>"),
    answer("GET", RUN, 200, ""),
    answer("GET", RUN, 200, ["completed"]),
    answer("GET", RUN, 200, {"run_id": "trun_1"}),
    answer("GET", RUN, 200, {"run_id": "trun_1", "status": {"status": "completed"}}),
    answer("GET", RUN, 200, {"run_id": "trun_1", "status": "pondering"}),
    answer("GET", RUN, 200, {"run_id": "trun_1", "status": "action_required"}),
    hang_up("GET", RUN),
    cut(answer("GET", RUN, 200, {"run_id": "trun_1", "status": "completed"})),
]


@pytest.mark.parametrize(
    ("transport", "odd"),
    [("poll", odd) for odd in ODD] + [(word, ODD[n]) for word in ("stream", "blocking") for n in (0, 4)],
)
def test_polls_that_make_no_sense_are_made_again(tmp_path: Path, transport: str, odd: Exchange) -> None:
    unknown = {"type": "error", "error": {"message": "not found"}}
    done = recorded("parallel", "06_result_text")
    # neither events nor a result that waits: the run itself says how it stands
    always = [answer("GET", f"{RUN}/events", 404, unknown), answer("GET", f"{RUN}/result", 404, unknown)]
    exchanges = happy(odd)
    if transport == "blocking":
        exchanges = [exchanges[0], always[1], odd, done]
    with ReplayServer(exchanges, always=always) as server:
        submission = only(solved(tmp_path, server, "parallel", plain_task(), f"system.transport={transport}"))
    assert submission.status == "completed"
    assert (server.unexpected, server.left) == ([], 0)
    assert len(server.sent("POST")) == 1


def test_a_result_that_is_not_there_yet_is_waited_for(tmp_path: Path) -> None:
    early = recorded("parallel", "08_result_failed")
    run = recorded("parallel", "03_get_run_completed")
    with ReplayServer(happy(run, early)) as server:
        submission = only(solved(tmp_path, server, "parallel"))
    assert submission.status == "completed"
    assert server.left == 0


@pytest.mark.parametrize("transport", ["poll", "blocking", "stream"])
def test_a_result_that_never_comes_is_no_word_on_the_run(tmp_path: Path, transport: str) -> None:
    """404 says "no such run", "not yet" and "failed" alike: of a completed run it says that the result is late."""
    gone = recorded("parallel", "08_result_failed")
    always = [recorded("parallel", "03_get_run_completed"), gone, answer("GET", f"{RUN}/events", 404, {})]
    start = recorded("parallel", "01_create_run")
    with ReplayServer([start], always=always) as server:
        port = server.port
        result = solved(tmp_path, server, "parallel", plain_task(), f"system.transport={transport}")
    submission = only(result)
    assert submission.error is not None
    assert (submission.status, submission.error.kind) == ("error", "unreachable")
    assert "completed and its result is not there" in submission.error.message
    assert result.job_left, "the next start asks again"
    with ReplayServer(happy()[1:], port=port) as server:
        assert only(solved(tmp_path, server, "parallel")).status == "completed"
    assert server.sent("POST") == []


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        ({"message": "Insufficient credit.", "ref_id": "ref_1"}, "quota"),
        ({"message": "Task run failed", "detail": {"reason": "insufficient_funds"}}, "quota"),
        ({"message": "invalid_api_key"}, "key"),
        ({"message": "Task run failed", "detail": {"reason": "internal"}}, None),
    ],
)
@pytest.mark.parametrize("transport", ["poll", "blocking"])
def test_a_run_that_failed_for_want_of_credit_is_no_score(
    tmp_path: Path, error: dict[str, Any], kind: str | None, transport: str
) -> None:
    run = {**recorded("parallel", "07_get_run_failed").json, "error": error}
    said = answer("GET", RUN, 200, run)
    if transport == "blocking":
        said = answer("GET", f"{RUN}/result", 200, {"run": run, "output": None})
    with ReplayServer([recorded("parallel", "01_create_run"), said]) as server:
        result = solved(tmp_path, server, "parallel", plain_task(), f"system.transport={transport}")
    assert (len(server.sent("POST")), result.job_left) == (1, False)
    assert (None if result.stopped is None else result.stopped.kind) == kind
    assert (result.submission is None) is (kind is not None)


def test_only_plain_values_are_echoed(tmp_path: Path) -> None:
    done = recorded("parallel", "06_result_text")
    deep: Any = "ultra"
    for _ in range(250):
        deep = [deep]
    odd = {**done.json["run"], "processor": deep, "run_id": {"a": 1}}
    with ReplayServer([*happy()[:-1], done.with_json(run=odd)]) as server:
        submission = only(solved(tmp_path, server, "parallel"))
    assert submission.status == "completed"
    assert {"id", "processor"}.isdisjoint(submission.settings["echoed"])


@pytest.mark.parametrize("odd", ["", " ", ".", "..", 7, None])
def test_a_run_without_a_usable_id_is_not_sent_again(tmp_path: Path, odd: Any) -> None:
    with ReplayServer([answer("POST", RUNS, 202, {"run_id": odd, "status": "queued"})]) as server:
        submission = only(solved(tmp_path, server, "parallel"))
    assert submission.error is not None
    assert (submission.error.kind, len(server.requests)) == ("maybe_billed", 1)


def test_404_at_the_result_of_a_failed_run_means_failed(tmp_path: Path) -> None:
    exchanges = [
        recorded("parallel", "01_create_run"),
        recorded("parallel", "08_result_failed"),
        recorded("parallel", "07_get_run_failed"),
    ]
    with ReplayServer(exchanges) as server:
        submission = only(solved(tmp_path, server, "parallel", plain_task(), "system.transport=blocking"))
    assert (submission.status, submission.cost_usd, server.left) == ("failed", 0.0, 0)


@pytest.mark.parametrize(
    ("word", "status", "usd"),
    [("cancelled", "failed", None), ("timed_out", "timed_out", None), ("failed", "failed", 0.0)],
)
@pytest.mark.parametrize("transport", ["poll", "blocking"])
def test_a_200_can_carry_a_failure(
    tmp_path: Path, word: str, status: str, usd: float | None, transport: str
) -> None:
    run = {**recorded("parallel", "03_get_run_completed").json, "status": word, "error": {"message": 3}}
    said = answer("GET", RUN, 200, run)
    if transport == "blocking":
        said = answer("GET", f"{RUN}/result", 200, {"run": run, "output": None})
    with ReplayServer([recorded("parallel", "01_create_run"), said]) as server:
        submission = only(solved(tmp_path, server, "parallel", plain_task(), f"system.transport={transport}"))
    assert (submission.status, submission.cost_usd) == (status, usd)
    assert submission.cost_source == ("unknown" if usd is None else "list_price")


def test_a_run_that_nobody_knows_any_more_has_failed(tmp_path: Path) -> None:
    gone = answer("GET", RUN, 404, {"type": "error", "error": {"message": "not found"}})
    with ReplayServer([recorded("parallel", "01_create_run"), gone]) as server:
        submission = only(solved(tmp_path, server, "parallel"))
    assert (submission.status, submission.cost_usd) == ("failed", None)


def test_a_provider_that_is_down_is_asked_again_by_the_next_start(tmp_path: Path) -> None:
    down = answer("GET", RUN, 503, {"error": {"message": "unavailable"}})
    with ReplayServer([recorded("parallel", "01_create_run"), down]) as server:
        port = server.port
        first = solved(tmp_path, server, "parallel")
    assert only(first).error is not None
    assert first.submission.error.kind == "unreachable"  # type: ignore[union-attr]
    assert first.job_left
    with ReplayServer(happy()[1:], port=port) as server:
        second = solved(tmp_path, server, "parallel")
    submission = only(second)
    assert (submission.status, submission.settings["echoed"]["resumed"]) == ("completed", True)
    assert server.sent("POST") == []


@pytest.mark.parametrize("transport", ["poll", "blocking", "stream"])
def test_the_deadline_ends_a_run_that_goes_on(tmp_path: Path, transport: str) -> None:
    running = recorded("parallel", "02_get_run_running")
    events = answer("GET", f"{RUN}/events", 200, "")
    waiting = recorded("parallel", "04_result_408")
    words = ("effort=low", "system.ladders.product.low.timeout_s=0.2", f"system.transport={transport}")
    with ReplayServer([recorded("parallel", "01_create_run")], always=[running, events, waiting]) as server:
        submission = only(solved(tmp_path, server, "parallel", plain_task(), *words))
    assert (submission.status, submission.cost_usd, submission.cost_source) == ("timed_out", None, "unknown")
    assert len(server.sent("POST")) == 1, "there is no cancel"


# streams


def _events(*items: dict[str, Any], fault: str | None = None) -> Exchange:
    content = b": keep-alive\n\n" + sse(*items)
    return Exchange("GET", f"{RUN}/events", 200, {"content-type": "text/event-stream"}, content, fault=fault)


def _state(word: str) -> dict[str, Any]:
    return {"event": "task_run.state", "data": {"type": "task_run.state", "run": {"status": word}, "output": None}}


@pytest.mark.parametrize(
    "stream",
    [
        _events(_state("completed")),
        _events({"data": {"type": "something.new"}}, {"data": "[DONE]"}, {"data": [1]}, {"data": {"run": 3}}),
        _events(_state("running"), _state("running"), _state("completed"), fault="cut"),
        _events(),
        answer("GET", f"{RUN}/events", 200, "<html>hello</html>"),
        answer("GET", f"{RUN}/events", 404, {"error": {"message": "no events"}}),
        answer("GET", f"{RUN}/events", 200, {"type": "task_run.state", "run": {"status": "completed"}}),
        hang_up("GET", f"{RUN}/events"),
    ],
    ids=["ended", "unknown events", "cut", "empty", "a page", "404", "plain JSON", "hang up"],
)
def test_after_a_stream_the_run_is_asked(tmp_path: Path, stream: Exchange) -> None:
    running = recorded("parallel", "02_get_run_running")
    with ReplayServer(happy(stream, running, stream)) as server:
        submission = only(solved(tmp_path, server, "parallel", plain_task(), "system.transport=stream"))
    assert (submission.status, server.left, server.unexpected) == ("completed", 0, [])
    assert len(submission.citations) == 4, "nothing is counted twice"


# shapes


def test_an_id_is_quoted_in_a_path(tmp_path: Path) -> None:
    create = recorded("parallel", "01_create_run").with_json(run_id="../../v1/x?y#z")
    with ReplayServer([create], always=[answer("GET", "/never", 200, {})]) as server:
        solved(
            tmp_path, server, "parallel", plain_task(), "effort=low", "system.ladders.product.low.timeout_s=0.1"
        )
    assert server.requests[1].path == f"{RUNS}/../../v1/x?y#z", "one segment, decoded by the server"
    assert server.requests[1].query == {}


def test_several_excerpts_of_a_page_stand_as_one(tmp_path: Path) -> None:
    citation = {"url": URLS[0], "title": None, "excerpts": ["one", " two ", "one", 3, ""]}
    basis = [
        {"field": "a", "citations": [citation, "x", {"url": 3}, {"title": "no address"}]},
        {"field": "a.0", "citations": [{"url": f"{URLS[0]}", "title": "Members", "excerpts": ["three"]}]},
        {"field": "b", "citations": None},
        "c",
    ]
    done = recorded("parallel", "06_result_text").with_json(
        output={"type": "text", "content": "x", "basis": basis}
    )
    with ReplayServer([*happy()[:-1], done]) as server:
        submission = only(solved(tmp_path, server, "parallel"))
    assert [found.model_dump() for found in submission.citations] == [
        {"url": URLS[0], "title": "Members", "excerpt": "one … two", "start": None, "end": None}
    ]


def test_a_processor_without_a_price_costs_an_unknown_sum(tmp_path: Path) -> None:
    done = recorded("parallel", "06_result_text")
    exchanges = [*happy()[:-1], done.with_json(run={**done.json["run"], "processor": "ultra64x"})]
    with ReplayServer(exchanges) as server:
        submission = only(solved(tmp_path, server, "parallel"))
    assert (submission.cost_usd, submission.cost_source) == (None, "unknown")
    assert submission.settings["echoed"]["processor"] == "ultra64x"


def _never(handle: Any) -> None:
    raise AssertionError("nothing is created here")


async def _at_once(make: Any) -> Any:
    return await make()


RUN_SHAPED = st.fixed_dictionaries(
    {},
    optional={
        **dict.fromkeys(("run_id", "status", "processor", "warnings", "error", "metadata"), JSON),
        "error": JSON | st.fixed_dictionaries({"message": JSON, "detail": JSON, "ref_id": JSON}),
        "warnings": st.lists(JSON | st.fixed_dictionaries({"message": JSON}), max_size=2),
    },
)
CITATIONS = st.lists(JSON | st.fixed_dictionaries({"url": JSON, "title": JSON, "excerpts": JSON}), max_size=2)
OUTPUT_SHAPED = JSON | st.fixed_dictionaries(
    {"content": JSON | st.fixed_dictionaries({"files": JSON})},
    optional={
        "basis": JSON | st.lists(st.fixed_dictionaries({"field": JSON, "citations": JSON | CITATIONS}), max_size=2)
    },
)


@given(
    run=JSON | RUN_SHAPED, output=OUTPUT_SHAPED, delivery=st.sampled_from(["schema", "fence"]), files=st.booleans()
)
def test_whatever_comes_is_a_snapshot_and_an_answer_or_a_call_error(
    run: Any, output: Any, delivery: str, files: bool
) -> None:
    for known in (None, {"id": "trun_1"}):
        try:
            assert isinstance(_snapshot(run if isinstance(run, dict) else {}, output, known), Snapshot)
        except CallError as error:
            assert error.kind == "malformed"
    with suppress(CallError):
        assert isinstance(_result({"run": run, "output": output}, {"id": "trun_1"}), Snapshot)
    provider = _provider(delivery)
    ask = Ask(file_task() if files else plain_task(), 1, "token", _never, _at_once)
    found = asyncio.run(provider.answer(ask, Snapshot("completed", {"run": run, "output": output})))
    assert all(isinstance(text, str) for text in found.files.values())


_PROVIDERS: dict[str, Any] = {}


def _provider(delivery: str) -> Any:
    if delivery not in _PROVIDERS:
        with ReplayServer([]) as server:
            made: Any = make_system(server, "parallel", f"system.delivery={delivery}")
        _PROVIDERS[delivery] = made.provider
    return _PROVIDERS[delivery]
