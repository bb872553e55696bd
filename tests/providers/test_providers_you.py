"""system=you against recorded exchanges and what can go wrong beside them, over real HTTP."""

from __future__ import annotations

import asyncio
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

from adapters.you import _check, _cited, _snapshot
from core.errors import CallError, InputError
from core.jobs import Ask, Snapshot
from core.model import Submission
from core.testing import services, system

RESEARCH = "/v1/research"
TASK = f"{RESEARCH}/task_fake_1"
STREAM = f"{TASK}/stream"
URLS = [
    "https://lga.example.org/members",
    "https://northmere.example.org/about",
    "https://caldergrid.example.com/company",
    "https://solvane.example.net/history",
]
OBJECT = {"type": "object", "additionalProperties": False}


def created() -> Exchange:
    return recorded("you", "03_create_background")


def done(**changes: Any) -> Exchange:
    return recorded("you", "05_get_completed").with_json(**changes)


def only(result: Any) -> Submission:
    """The submission, without the key anywhere in it."""
    assert result.submission is not None
    assert KEY not in result.submission.model_dump_json()
    found: Submission = result.submission
    return found


@pytest.mark.parametrize(
    ("name", "words", "status", "usd", "background"),
    [
        ("sync", ("effort=medium", "system.transport=sync"), "completed", 0.10, None),
        ("sync", ("effort=low",), "completed", 0.05, None),
        ("happy", ("effort=xhigh",), "completed", 1.20, True),
        ("happy", ("effort=medium",), "completed", 0.10, True),
        ("failed", ("effort=medium",), "failed", None, True),
    ],
)
def test_recorded_scenarios_end_as_they_should(
    tmp_path: Path, name: str, words: tuple[str, ...], status: str, usd: float | None, background: bool | None
) -> None:
    with ReplayServer(scenario("you", name)) as server:
        result = solved(tmp_path, server, "you", plain_task(), *words)
    submission = only(result)
    assert (server.unexpected, server.left, result.job_left) == ([], 0, False)
    assert (submission.status, submission.cost_usd) == (status, usd)
    assert submission.cost_source == ("unknown" if usd is None else "list_price")
    assert server.requests[0].headers["x-api-key"] == KEY
    assert server.requests[0].json.get("background") is background
    assert server.requests[0].json["research_effort"] == submission.settings["research_effort"]
    if status == "failed":
        assert submission.error is not None
        assert submission.error.message == "you: Research failed; job task_fake_1; retry=failed sends it again"
        return
    assert submission.text is not None
    assert submission.text.startswith("The Lakeshore Grid Association has three members.")
    assert [citation.url for citation in submission.citations] == URLS
    assert [submission.text[one.start : one.end] for one in submission.citations[:2]] == ["[[1, 2]]"] * 2
    assert [one.start for one in submission.citations[2:]] == [None, None]
    assert submission.citations[2].title == "Company - Calder Grid"
    assert submission.citations[2].excerpt == "Calder Grid was formed in 2004 in Wexley."


def test_the_schema_scenario(tmp_path: Path) -> None:
    schema = {**OBJECT, "properties": {"members": {"type": "array"}}, "required": ["members"]}
    with ReplayServer(scenario("you", "schema")) as server:
        submission = only(solved(tmp_path, server, "you", plain_task(output_schema=schema), "effort=low"))
    assert server.requests[0].json == {
        "input": plain_task().prompt,
        "research_effort": "standard",
        "output_schema": schema,
    }
    assert (submission.status, submission.text, list(submission.files)) == ("completed", None, ["output.json"])
    assert submission.settings["echoed"]["content_type"] == "object"
    assert len(submission.citations) == 4


@pytest.mark.parametrize(
    ("effort", "knob", "estimate", "deadline"),
    [
        ("minimal", "lite", 0.012, 300),
        ("low", "standard", 0.05, 600),
        ("medium", "deep", 0.10, 1800),
        ("high", "exhaustive", 0.45, 3600),
        ("xhigh", "frontier", 1.20, 15000),
    ],
)
def test_the_efforts(effort: str, knob: str, estimate: float, deadline: float) -> None:
    made: Any = system("you", f"effort={effort}")(services())
    assert made.settings == {"research_effort": knob, "delivery": "schema", "base_url": "https://api.you.com"}
    assert (made.estimate_usd, made.options.deadline_s, made.can_block) == (estimate, deadline, True)


@pytest.mark.parametrize(
    "words",
    [
        ("effort=xhigh", "system.transport=sync"),
        ("system.transport=blocking",),
        ("system.delivery=file",),
        ("system.price={input: 1, output: 1}",),
    ],
)
def test_values_that_cannot_be_used_are_refused(words: tuple[str, ...]) -> None:
    with pytest.raises(InputError, match=r"system\.(transport|delivery|price)"):
        system("you", *words)(services())


def test_whole_hosts_are_left_out(tmp_path: Path) -> None:
    blocked = ("arxiv.org/abs/1", "arxiv.org/pdf/1", "github.com/a/b", *(f"{n}.example.org/x" for n in range(600)))
    with ReplayServer([created(), done()]) as server:
        submission = only(solved(tmp_path, server, "you", plain_task(blocked=blocked)))
    hosts = server.requests[0].json["source_control"]["exclude_domains"]
    assert hosts[:3] == ["arxiv.org", "github.com", "0.example.org"]
    assert len(hosts) == 500
    assert submission.settings["echoed"]["notes"] == ["only the first 500 of 602 blocked hosts were passed on"]


# creates


@pytest.mark.parametrize(("name", "kind"), [("91_err_401", "key"), ("92_err_402", "quota")])
def test_a_wrong_key_and_an_empty_account_stop_the_run_at_once(tmp_path: Path, name: str, kind: str) -> None:
    with ReplayServer([recorded("you", name)]) as server:
        result = solved(tmp_path, server, "you")
    assert len(server.requests) == 1
    assert result.stopped is not None
    assert (result.stopped.kind, result.job_left) == (kind, False)


@pytest.mark.parametrize("effort", ["low", "medium"])
@pytest.mark.parametrize(
    ("status", "body", "headers"),
    [
        (429, {"detail": "slow down"}, {}),
        (429, {"detail": "slow down"}, {"retry-after": "0"}),
        (500, {"detail": "internal"}, {}),
        (502, "<html><body>502 Bad Gateway</body></html>", {}),
    ],
)
def test_a_create_that_was_not_taken_is_made_again(
    tmp_path: Path, status: int, body: Any, headers: dict[str, str], effort: str
) -> None:
    then = [recorded("you", "01_research_sync")] if effort == "low" else [created(), done()]
    with ReplayServer([answer("POST", RESEARCH, status, body, headers), *then]) as server:
        submission = only(solved(tmp_path, server, "you", plain_task(), f"effort={effort}"))
    assert (submission.status, len(server.sent("POST"))) == ("completed", 2)


@pytest.mark.parametrize("effort", ["low", "medium"])
@pytest.mark.parametrize(
    ("exchange", "kind"),
    [
        (hang_up("POST", RESEARCH), "maybe_billed"),
        (cut(answer("POST", RESEARCH, 200, {"output": {"content": "x"}})), "maybe_billed"),
        (answer("POST", RESEARCH, 504, "<html>gateway time-out</html>"), "maybe_billed"),
        (answer("POST", RESEARCH, 200, "<html>hello</html>"), "maybe_billed"),
        (answer("POST", RESEARCH, 200, {"output": None}), "maybe_billed"),
        (answer("POST", RESEARCH, 422, {"detail": [{"msg": "Input should be a valid string"}]}), "bad_request"),
    ],
)
def test_a_create_that_may_have_been_read_is_sent_once(
    tmp_path: Path, exchange: Exchange, kind: str, effort: str
) -> None:
    with ReplayServer([exchange]) as server:
        result = solved(tmp_path, server, "you", plain_task(), f"effort={effort}")
    submission = only(result)
    assert submission.error is not None
    assert (submission.error.kind, len(server.requests)) == (kind, 1)
    assert result.job_left is (kind == "maybe_billed")


def test_a_request_that_passes_the_deadline_is_timed_out(tmp_path: Path) -> None:
    provider = _provider()
    provider._deadline_s = 0.05

    async def slow(*args: Any, **more: Any) -> Any:
        assert more["timeout_s"] == 0.05
        raise CallError("timeout", "you: no answer")

    provider._background = False
    provider._api.json = slow
    with pytest.raises(CallError, match=r"no answer within 0\.05 s") as caught:
        asyncio.run(provider.create(_ask(plain_task())))
    assert caught.value.kind == "timed_out"


def test_a_background_that_was_not_asked_for_is_polled_all_the_same(tmp_path: Path) -> None:
    with ReplayServer([created(), done()]) as server:
        submission = only(solved(tmp_path, server, "you", plain_task(), "effort=low"))
    assert submission.status == "completed"


# polls and streams


@pytest.mark.parametrize(
    "odd",
    [
        answer("GET", TASK, 404, {"detail": "not found"}),
        answer("GET", TASK, 502, "<html>502</html>"),
        answer("GET", TASK, 200, "<html>hello</html>"),
        answer("GET", TASK, 200, ["completed"]),
        answer("GET", TASK, 200, {"id": "task_fake_1"}),
        answer("GET", TASK, 200, {"id": "task_fake_1", "status": "pondering"}),
        answer("GET", TASK, 429, {"detail": "slow down"}, {"retry-after": "0"}),
        hang_up("GET", TASK),
        cut(answer("GET", TASK, 200, {"id": "task_fake_1", "status": "completed"})),
    ],
)
def test_polls_that_make_no_sense_are_made_again(tmp_path: Path, odd: Exchange) -> None:
    with ReplayServer([created(), odd, done()]) as server:
        submission = only(solved(tmp_path, server, "you"))
    assert (submission.status, server.left, server.unexpected) == ("completed", 0, [])


def _stream(*items: dict[str, Any], fault: str | None = None) -> Exchange:
    content = b": keep-alive\n\n" + sse(*items)
    return Exchange("GET", STREAM, 200, {"content-type": "text/event-stream"}, content, fault=fault)


@pytest.mark.parametrize(
    "stream",
    [
        None,
        _stream({"event": "progress.new", "data": {"type": "progress"}}, {"data": "[DONE]"}, {"data": [1]}),
        _stream({"data": {"type": "complete"}}),
        _stream({"event": "connected", "data": {}}, {"event": "x", "data": {}}, fault="cut"),
        _stream({"event": "error", "data": {"type": "error", "error": "lost"}}),
        answer("GET", STREAM, 404, {"detail": "not found"}),
        answer("GET", STREAM, 200, "<html>hello</html>"),
        hang_up("GET", STREAM),
    ],
    ids=["recorded", "unknown events", "no event names", "cut", "error", "404", "a page", "hang up"],
)
def test_after_a_stream_the_task_is_asked(tmp_path: Path, stream: Exchange | None) -> None:
    stream = stream or recorded("you", "07_stream")
    exchanges = [created(), stream, recorded("you", "04_get_running"), stream, done()]
    with ReplayServer(exchanges) as server:
        submission = only(solved(tmp_path, server, "you", plain_task(), "system.transport=stream"))
    assert (submission.status, server.left, server.unexpected) == ("completed", 0, [])
    assert len(submission.citations) == 4, "nothing is counted twice"


def test_the_deadline_ends_a_task_that_goes_on(tmp_path: Path) -> None:
    words = ("effort=medium", "system.efforts.medium.timeout_s=0.2")
    with ReplayServer([created()], always=[recorded("you", "04_get_running")]) as server:
        submission = only(solved(tmp_path, server, "you", plain_task(), *words))
    assert (submission.status, submission.cost_usd, submission.cost_source) == ("timed_out", None, "unknown")
    assert len(server.sent("POST")) == 1, "there is no cancel"


@pytest.mark.parametrize(
    ("changes", "status"),
    [
        ({"result": None}, "empty"),
        ({"result": {"output": {"content": "", "sources": []}}}, "empty"),
        ({"result": {"output": None}}, "empty"),
        ({"status": "cancelled", "result": None}, "failed"),
        # an answer beside a status does not make it another status
        ({"status": "failed", "result": None, "output": {}, "error": "boom"}, "failed"),
        ({"status": "failed", "result": None, "output": {"content": "Half of"}, "error": "boom"}, "failed"),
    ],
)
def test_an_end_without_an_answer(tmp_path: Path, changes: dict[str, Any], status: str) -> None:
    with ReplayServer([created(), done(**changes)]) as server:
        submission = only(solved(tmp_path, server, "you"))
    assert submission.status == status
    if status == "failed":
        assert (submission.cost_usd, submission.cost_source) == (None, "unknown")


def test_a_task_at_work_is_asked_again_although_it_shows_a_part_of_its_answer(tmp_path: Path) -> None:
    part = answer("GET", TASK, 200, {"id": "task_fake_1", "status": "running", "output": {"content": "Half"}})
    unknown = answer("GET", TASK, 200, {"id": "task_fake_1", "status": "pondering", "output": {"content": "Half"}})
    with ReplayServer([created(), part, unknown, done()]) as server:
        submission = only(solved(tmp_path, server, "you"))
    assert (submission.status, server.left) == ("completed", 0)
    assert (submission.text or "").startswith("The Lakeshore Grid Association")


@pytest.mark.parametrize(
    ("reply", "state"),
    [
        ({"output": {"content": "x"}}, "completed"),
        ({"output": {"content": "x"}, "status": "ok"}, "completed"),
        ({"output": {"content": "x"}, "status": "completed"}, "completed"),
        ({"output": {"content": "x"}, "status": "failed"}, "failed"),
        ({"output": {"content": "x"}, "status": "ok", "id": "t"}, "running"),
        ({"output": {"content": "x"}, "status": "running"}, None),
        ({"status": "queued", "task_id": ".."}, None),
        ({"status": "queued", "task_id": " "}, None),
        ({"status": "queued"}, None),
    ],
)
def test_what_a_create_was_answered_with(reply: dict[str, Any], state: str | None) -> None:
    if state is None:
        with pytest.raises(CallError, match="with an id"):
            _snapshot(reply)
    else:
        assert _snapshot(reply).state == state


@pytest.mark.parametrize(
    ("error", "kind"),
    [("Insufficient credits", "quota"), ({"code": "invalid_api_key"}, "key"), ("Research failed", None)],
)
def test_a_task_that_failed_for_want_of_credit_is_no_score(tmp_path: Path, error: Any, kind: str | None) -> None:
    with ReplayServer([created(), recorded("you", "06_get_failed").with_json(error=error)]) as server:
        result = solved(tmp_path, server, "you")
    assert (len(server.sent("POST")), result.job_left) == (1, False)
    assert (None if result.stopped is None else result.stopped.kind) == kind
    assert (result.submission is None) is (kind is not None)


def test_only_plain_values_are_echoed(tmp_path: Path) -> None:
    deep: Any = "text"
    for _ in range(250):
        deep = [deep]
    with ReplayServer([created(), done(result={"output": {"content": "x", "content_type": deep}})]) as server:
        submission = only(solved(tmp_path, server, "you"))
    assert submission.status == "completed"
    assert "content_type" not in submission.settings["echoed"]


def test_warnings_are_notes(tmp_path: Path) -> None:
    result = {"output": {"content": "x"}, "warnings": ["a source could not be read", 3]}
    with ReplayServer([created(), done(result=result)]) as server:
        submission = only(solved(tmp_path, server, "you"))
    assert submission.settings["echoed"]["notes"] == ["a source could not be read"]


# files and forms


@pytest.mark.parametrize(
    ("content", "files", "status"),
    [
        ({"files": [{"path": "members.csv", "content": "n\n"}]}, {"members.csv": "n\n"}, "completed"),
        ({"files": [{"path": "/../members.csv", "content": "n\n"}]}, {}, "empty"),
        ({"files": []}, {}, "empty"),
        ("{", {}, "empty"),
        (None, {}, "empty"),
    ],
)
def test_files_come_as_a_typed_reply(tmp_path: Path, content: Any, files: dict[str, str], status: str) -> None:
    with ReplayServer([created(), done(result={"output": {"content": content}})]) as server:
        submission = only(solved(tmp_path, server, "you", file_task()))
    assert server.requests[0].json["output_schema"] == file_task().output_schema
    assert (submission.files, submission.status) == (files, status)


def test_lite_gives_no_typed_reply_and_says_so_before_anything_is_sent(tmp_path: Path) -> None:
    with ReplayServer([]) as server:
        submission = only(solved(tmp_path, server, "you", file_task(), "effort=minimal"))
    assert server.requests == []
    assert submission.error is not None
    assert (submission.error.kind, submission.cost_usd) == ("bad_request", 0.0)
    assert "system.delivery=fence" in submission.error.message
    with ReplayServer([recorded("you", "01_research_sync")]) as server:
        words = ("effort=minimal", "system.delivery=fence")
        submission = only(solved(tmp_path / "b", server, "you", file_task(), *words))
    assert (submission.status, submission.cost_usd) == ("completed", 0.012)


def _nested(levels: int) -> dict[str, Any]:
    inner: dict[str, Any] = {"type": "string"}
    for _ in range(levels):
        inner = {**OBJECT, "properties": {"a": {"type": "array", "items": inner}}, "required": ["a"]}
    return inner


def _wide(count: int) -> dict[str, Any]:
    names = [f"p{n}" for n in range(count)]
    return {**OBJECT, "properties": {name: {"type": "string"} for name in names}, "required": names}


@pytest.mark.parametrize(
    ("schema", "problem"),
    [
        (_nested(5), None),
        (_nested(6), "6 levels of objects"),
        (_wide(100), None),
        (_wide(101), "101 properties"),
        ({**_wide(1), "required": []}, "not all required"),
        ({"type": "object", "properties": {"a": {}}, "required": ["a"]}, "additionalProperties"),
        ({"type": "array", "items": {}}, "root"),
        (
            {**OBJECT, "properties": {"a": {"anyOf": [{"type": "object", "properties": {}}]}}, "required": ["a"]},
            "additional",
        ),
    ],
)
def test_forms_that_the_api_refuses_are_refused_here(schema: dict[str, Any], problem: str | None) -> None:
    if problem is None:
        _check(schema, "standard")
        return
    with pytest.raises(CallError, match=problem) as caught:
        _check(schema, "standard")
    assert caught.value.kind == "bad_request"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("a [[2]] b [[1, 2]]", [("u2", 2, 7), ("u1", 10, 18), ("u3", None, None)]),
        ("ä [[3,1]]", [("u3", 2, 9), ("u1", 2, 9), ("u2", None, None)]),
        ("[[0]] [[4]] [[99999]] [[a]] [1] [[1]", [("u1", None, None), ("u2", None, None), ("u3", None, None)]),
        ("", [("u1", None, None), ("u2", None, None), ("u3", None, None)]),
    ],
)
def test_markers_become_citations_in_the_order_of_the_text(text: str, found: list[tuple[str, Any, Any]]) -> None:
    from adapters._citations import merged

    sources = [{"url": "u1"}, {"url": "u2"}, {"url": "u3"}]
    assert [(one.url, one.start, one.end) for one in merged(_cited(text, sources))] == found


def test_numbers_count_sources_also_those_that_make_no_sense() -> None:
    sources = [3, {"url": "u2", "snippets": ["a", " b", "a", None]}]
    found = list(_cited("[[1, 2]]", sources))
    assert [(one.url, one.excerpt) for one in found] == [("u2", "a … b")] * 2


# shapes


async def _at_once(make: Any) -> Any:
    return await make()


def _ask(task: Any) -> Ask:
    return Ask(task, 1, "token", lambda handle: None, _at_once)


def _provider() -> Any:
    made: Any = make_system(ReplayServer([]), "you")
    return made.provider


TEXT = JSON | st.sampled_from(["a [[1, 2]]", "[[2]] b [[1]]"])
SOURCES = st.lists(JSON | st.fixed_dictionaries({"url": JSON, "title": JSON, "snippets": JSON}), max_size=2)
OUTPUT = st.fixed_dictionaries({}, optional={"content": TEXT, "content_type": JSON, "sources": JSON | SOURCES})
SHAPED = st.fixed_dictionaries(
    {},
    optional={
        **dict.fromkeys(("id", "task_id", "status", "error", "result", "warnings"), JSON),
        "output": JSON | OUTPUT,
    },
)


@given(body=st.dictionaries(st.text(max_size=8), JSON, max_size=3) | SHAPED, files=st.booleans())
def test_whatever_comes_is_a_snapshot_and_an_answer_or_a_call_error(body: dict[str, Any], files: bool) -> None:
    for known in (None, {"id": "t"}):
        try:
            assert isinstance(_snapshot(body, known), Snapshot)
        except CallError as error:
            assert error.kind == "malformed"
    if not _PROVIDERS:
        _PROVIDERS.append(_provider())
    task = file_task() if files else plain_task()
    found = asyncio.run(_PROVIDERS[0].answer(_ask(task), Snapshot("completed", body)))
    assert all(isinstance(text, str) for text in found.files.values())


_PROVIDERS: list[Any] = []
