"""system=openai_compatible against recorded exchanges and servers that are odd in every way, over real HTTP."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from fakes.hostile_json import JSON, mutated, replies
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
    scenario,
    solved,
    sse,
)
from hypothesis import given
from hypothesis import strategies as st

from adapters import openai_compatible
from adapters.openai_compatible import _Gathered, _snapshot
from core.errors import CallError, InputError
from core.jobs import Ask, JobSystem, Provider
from core.jobs.outcome import submission_of
from core.model import Citation, Submission, Task
from core.sse import Event

PATH = "/v1/chat/completions"
NAME = "openai_compatible"
STREAM = "system.transport=stream"
FILES = {"files": [{"path": "members.csv", "content": "name\nNorthmere\n"}]}


def completion(
    text: Any = "Three members.", finish: Any = "stop", usage: Any = None, **message: Any
) -> dict[str, Any]:
    choice = {"index": 0, "finish_reason": finish, "message": {"role": "assistant", "content": text, **message}}
    return {"id": "c1", "model": "my-model-2", "choices": [choice], "usage": usage}


def answered(body: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Exchange:
    return answer("POST", PATH, status, body, headers)


def chunk(text: Any = None, finish: Any = None, **more: Any) -> dict[str, Any]:
    delta = {} if text is None else {"content": text}
    return {
        "id": "c1",
        "model": "my-model-2",
        "choices": [{"index": 0, "delta": delta, "finish_reason": finish}],
        **more,
    }


def streamed(*chunks: Any, after: bytes = b"") -> Exchange:
    # JSON in ASCII, as half a surrogate pair can only come
    body = sse(*({"data": one if isinstance(one, str) else json.dumps(one)} for one in chunks)) + after
    return Exchange("POST", PATH, 200, {"content-type": "text/event-stream"}, body)


def run(
    folder: Path, exchanges: list[Exchange], task: Task | None = None, *words: str, path: str = "/v1"
) -> tuple[Solved, ReplayServer]:
    with ReplayServer(exchanges) as server:
        base = f"system.base_url={server.base_url}{path}"
        key = "system.api_key_env=COMPAT_API_KEY"
        result = solved(folder, server, NAME, task or plain_task(), "system.model=my-model", key, *words, base)
    return result, server


def got(result: Solved) -> Submission:
    assert result.submission is not None
    return result.submission


def test_it_needs_no_other_adapter() -> None:
    assert openai_compatible.__file__ is not None
    source = Path(openai_compatible.__file__).read_text(encoding="utf-8")
    imported = re.findall(r"^(?:from|import) adapters\.(\w+)", source, re.MULTILINE)
    assert imported
    assert all(name.startswith("_") for name in imported)


# recorded scenarios


@pytest.mark.parametrize(
    ("name", "words", "status", "usd", "source"),
    [
        ("happy", ("effort=medium",), "completed", 0.0012, "reported"),
        ("citations", (), "incomplete", None, "unknown"),
        ("citations", ("system.price={input: 2, output: 10}",), "incomplete", 0.00004, "computed"),
        ("stream", (STREAM,), "completed", None, "unknown"),
        ("rate", (), "completed", 0.0012, "reported"),
    ],
)
def test_recorded_scenarios_end_as_they_should(
    tmp_path: Path, name: str, words: tuple[str, ...], status: str, usd: float | None, source: str
) -> None:
    result, server = run(tmp_path, scenario("openai_compat", name), None, *words)
    submission = got(result)
    assert server.unexpected == []
    assert server.left == 0
    assert submission.status == status
    assert submission.cost_usd == (None if usd is None else pytest.approx(usd))
    assert submission.cost_source == source
    assert not result.job_left
    assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"
    assert KEY not in submission.model_dump_json()
    assert submission.settings["model"] == "my-model"
    assert submission.settings["base_url"].endswith("/v1")
    assert submission.settings["echoed"]["model"] == "my-model"


def test_recorded_citations_have_titles_excerpts_and_passages(tmp_path: Path) -> None:
    result, _ = run(tmp_path, scenario("openai_compat", "happy"))
    (first,) = got(result).citations
    assert (first.url, first.title) == ("https://lga.example.org/members", "Members - Lakeshore Grid Association")
    assert first.excerpt is not None
    assert first.excerpt.startswith("The association has three members:")
    assert (first.start, first.end) == (0, 10)


def test_recorded_lists_of_sources_are_merged(tmp_path: Path) -> None:
    result, _ = run(tmp_path, scenario("openai_compat", "citations"))
    citations = got(result).citations
    assert len(citations) == 4
    assert citations[2].excerpt == "Calder Grid was formed in 2004 in Wexley."


def test_a_wrong_key_stops_the_run_at_once(tmp_path: Path) -> None:
    result, server = run(tmp_path, scenario("openai_compat", "auth"))
    assert len(server.requests) == 1
    assert result.stopped is not None
    assert result.stopped.kind == "key"
    assert result.stopped.message.startswith("openai_compatible: ")


# what is asked


@pytest.mark.parametrize(
    ("words", "sent"),
    [
        ((), {}),
        (("effort=xhigh",), {"reasoning_effort": "xhigh"}),
        (("effort=enormous", "system.efforts=null"), {"reasoning_effort": "enormous"}),
        (("system.max_output_tokens=9", "system.temperature=0"), {"max_tokens": 9, "temperature": 0.0}),
        (
            ("system.max_output_tokens=9", "system.params={max_tokens: null, max_completion_tokens: 8}"),
            {"max_completion_tokens": 8},
        ),
        ((STREAM,), {"stream": True, "stream_options": {"include_usage": True}}),
    ],
)
def test_what_is_asked(tmp_path: Path, words: tuple[str, ...], sent: dict[str, Any]) -> None:
    result, server = run(tmp_path, [answered(completion())], None, *words)
    assert got(result).text == "Three members."
    messages = [{"role": "user", "content": plain_task().prompt}]
    assert server.requests[0].json == {"model": "my-model", "messages": messages, **sent}


def test_a_system_prompt_stands_first(tmp_path: Path) -> None:
    _, server = run(tmp_path, [answered(completion())], None, "system.system_prompt=Be brief.")
    assert server.requests[0].json["messages"][0] == {"role": "system", "content": "Be brief."}


def test_without_a_variable_no_key_is_sent(tmp_path: Path) -> None:
    _, server = run(tmp_path, [answered(completion())], None, "system.api_key_env=null")
    assert "authorization" not in server.requests[0].headers


@pytest.mark.parametrize(
    ("path", "asked"),
    [
        ("/v1", "/v1/chat/completions"),
        ("/v1/", "/v1/chat/completions"),
        ("", "/chat/completions"),
        ("/openai/deployments/x", "/openai/deployments/x/chat/completions"),
        ("/v1/chat/completions", "/v1/chat/completions"),
    ],
)
def test_the_path_is_added_to_the_address(tmp_path: Path, path: str, asked: str) -> None:
    result, server = run(tmp_path, [answer("POST", asked, body=completion())], path=path)
    assert got(result).text == "Three members."
    assert server.requests[0].path == asked


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (("system.base_url=null",), "system.base_url"),
        (("system.base_url=localhost:8000/v1",), "system.base_url"),
        (("system.base_url='http://127.0.0.1/v1?key=1'",), "system.base_url"),
        (("system.model=null",), "system.model"),
        (("system.transport=poll",), "system.transport"),
        (("system.delivery=file",), "system.delivery"),
        (("effort=enormous",), "effort"),
    ],
)
def test_settings_that_cannot_be_are_refused_by_name(words: tuple[str, ...], named: str) -> None:
    with pytest.raises(InputError, match=named.replace(".", r"\.")):
        make_system(ReplayServer([]), NAME, "system.model=my-model", *words)


def test_a_missing_key_is_told_before_the_start() -> None:
    system = make_system(ReplayServer([]), NAME, "system.model=my-model")
    assert isinstance(system, JobSystem)
    assert system.check() == []
    assert system.can_block is False


# files


@pytest.mark.parametrize(
    ("text", "files", "status"),
    [
        (json.dumps(FILES), {"members.csv": "name\nNorthmere\n"}, "completed"),
        (json.dumps(FILES)[:-9], {}, "empty"),
        (json.dumps({"files": [{"path": "../members.csv", "content": "x"}]}), {}, "empty"),
    ],
)
def test_a_typed_reply(tmp_path: Path, text: str, files: dict[str, str], status: str) -> None:
    result, server = run(tmp_path, [answered(completion(text))], file_task(), "system.delivery=schema")
    form = server.requests[0].json["response_format"]
    assert form["type"] == "json_schema"
    assert form["json_schema"]["schema"] == file_task().output_schema
    assert (got(result).files, got(result).status) == (files, status)


def test_blocks_in_the_text_are_left_to_the_benchmark(tmp_path: Path) -> None:
    result, server = run(tmp_path, [answered(completion("```csv\na\n```"))], file_task())
    assert "response_format" not in server.requests[0].json
    assert (got(result).status, got(result).text, got(result).files) == ("completed", "```csv\na\n```", {})


# how it ends

CITED = {"type": "url_citation", "url": "https://a.example/?utm_source=x&q=1", "start_index": 0, "end_index": 5}


@pytest.mark.parametrize(
    ("body", "status", "kind", "text"),
    [
        (completion("Yes."), "completed", None, "Yes."),
        (completion("Yes.", finish=None), "completed", None, "Yes."),
        (completion([{"type": "text", "text": "Ye"}, {"text": "s."}, 7]), "completed", None, "Yes."),
        (completion("Ye", finish="length"), "incomplete", "truncated", "Ye"),
        (completion("", finish="length"), "empty", "truncated", None),
        (completion("Ye", finish="content_filter"), "refused", "refused", "Ye"),
        (completion(None, refusal="I can't."), "refused", "refused", None),
        (completion(None), "empty", None, None),
        (completion({"no": "text"}, finish={}), "empty", None, None),
        ({"choices": [{"text": "completions of old"}]}, "empty", None, None),
        (
            {**completion("Yes."), "usage": "none", "citations": 7, "search_results": [[]]},
            "completed",
            None,
            "Yes.",
        ),
    ],
)
def test_ends(tmp_path: Path, body: dict[str, Any], status: str, kind: str | None, text: str | None) -> None:
    result, _ = run(tmp_path, [answered(body)])
    submission = got(result)
    assert (submission.status, submission.text) == (status, text)
    assert (submission.error.kind if submission.error else None) == kind
    assert submission.cost_usd is None


def test_citations_lose_what_tracks(tmp_path: Path) -> None:
    result, _ = run(tmp_path, [answered(completion("Three members.", annotations=[CITED, 7, {"url": 7}]))])
    assert got(result).citations == (Citation(url="https://a.example/?q=1", start=0, end=5),)


@pytest.mark.parametrize(
    ("refused", "posts", "kind"),
    [
        (answered({"error": {"message": "slow"}}, 429, {"retry-after": "1"}), 2, None),
        (answered({"error": {"message": "slow"}}, 429, {"retry-after-ms": "9"}), 2, None),
        (answered({"error": {"message": "slow"}}, 429), 2, None),
        (answered({"error": {"message": "oops"}}, 500), 2, None),
        (answered("<html>Busy</html>", 503), 2, None),
        (answered({"error": {"message": "slow down", "code": 429}}), 2, None),
        (answered({"error": "overloaded"}), 2, None),
        (answered(completion(None, finish="error")), 2, None),
        (answered({"error": {"message": "no such field"}}, 400), 1, "bad_request"),
        (answered({"error": {"message": "no such model"}}, 404), 1, "not_found"),
        (answered("", 302, {"location": "https://elsewhere.example/v1"}), 1, "redirect"),
        (answered("<html>Gateway</html>", 504), 1, "maybe_billed"),
        (answered("<html>Welcome</html>"), 1, "maybe_billed"),
        (answered([1]), 1, "maybe_billed"),
        (answered({"choices": []}), 1, "maybe_billed"),
        (answered({"choices": {"0": 1}}), 1, "maybe_billed"),
        (hang_up("POST", PATH), 1, "maybe_billed"),
        (cut(answered(completion())), 1, "maybe_billed"),
    ],
)
def test_only_what_started_nothing_is_sent_again(
    tmp_path: Path, refused: Exchange, posts: int, kind: str | None
) -> None:
    result, server = run(tmp_path, [refused, answered(completion())])
    submission = got(result)
    assert (submission.error.kind if submission.error else None) == kind
    assert submission.status == ("completed" if kind is None else "error")
    assert len(server.requests) == posts
    assert KEY not in submission.model_dump_json()


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (402, {"message": "Payment required"}),
        (429, {"message": "You exceeded your current quota", "code": "insufficient_quota"}),
        (200, {"message": "You exceeded your current quota", "code": "insufficient_quota"}),
    ],
)
def test_an_empty_account_stops_the_run_at_once(tmp_path: Path, status: int, error: dict[str, str]) -> None:
    result, server = run(tmp_path, [answered({"error": error}, status)])
    assert len(server.requests) == 1
    assert result.stopped is not None
    assert result.stopped.kind == "quota"


@pytest.mark.parametrize("words", [(), (STREAM,)])
def test_an_answer_that_comes_too_late_is_the_systems(tmp_path: Path, words: tuple[str, ...]) -> None:
    # nobody answers on this port: connections wait in the backlog of a socket that is never read
    import socket

    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen(8)
        server = ReplayServer([], port=silent.getsockname()[1])
        result = solved(tmp_path, server, NAME, None, "system.model=m", "system.timeout_s=0.2", *words)
    submission = got(result)
    assert submission.status == "timed_out"
    assert submission.cost_usd is None
    assert submission.error is not None
    assert "0.2 s" in submission.error.message


@pytest.mark.parametrize(
    ("usage", "usd", "source"),
    [
        ({"cost": 0.5, "prompt_tokens": 1, "completion_tokens": 1}, 0.5, "reported"),
        ({"cost": {"total_cost": 0.25}}, 0.25, "reported"),
        ({"cost": -1, "prompt_tokens": 1_000_000, "completion_tokens": 0}, 2.0, "computed"),
        ({"cost": True, "prompt_tokens": 0, "completion_tokens": 1_000_000}, 10.0, "computed"),
        ({"list_cost": 7.0}, None, "unknown"),
        ({"cost": 10**400}, None, "unknown"),
        ({"prompt_tokens": 10**400, "completion_tokens": 1}, None, "unknown"),
        (None, None, "unknown"),
    ],
)
def test_costs(tmp_path: Path, usage: Any, usd: float | None, source: str) -> None:
    result, _ = run(tmp_path, [answered(completion(usage=usage))], None, "system.price={input: 2, output: 10}")
    assert (got(result).cost_usd, got(result).cost_source) == (usd, source)


# streams

USED = {"choices": [], "usage": {"prompt_tokens": 60, "completion_tokens": 4, "cost": 0.5}}


@pytest.mark.parametrize(
    ("exchange", "text", "usd"),
    [
        pytest.param(
            streamed(chunk("Three "), chunk("members.", "stop"), USED, "[DONE]"), "Three members.", 0.5, id="whole"
        ),
        pytest.param(
            streamed(chunk("Three "), chunk("members.", "stop"), USED), "Three members.", 0.5, id="no [DONE]"
        ),
        pytest.param(streamed(chunk("Three members."), "[DONE]"), "Three members.", None, id="no finish reason"),
        pytest.param(
            streamed(chunk("Three "), chunk("members.", "stop"), "[DONE]", chunk(" And more."), "[DONE]"),
            "Three members.",
            None,
            id="something after [DONE]",
        ),
        pytest.param(
            streamed(chunk("Three members.", "stop"), "[DONE]", after=b": bye\n\n: bye\n\n"),
            "Three members.",
            None,
            id="comments",
        ),
        pytest.param(
            cut(streamed(chunk("Three members.", "stop"), {"x": "y" * 900})),
            "Three members.",
            None,
            id="cut after the last word",
        ),
        pytest.param(
            streamed(
                "not json",
                [1],
                {"choices": 7},
                {"choices": [7, {"index": 1, "delta": {"content": "B"}}]},
                chunk("A", "stop"),
            ),
            "A",
            None,
            id="chunks of other forms",
        ),
        pytest.param(
            streamed(chunk([{"text": "A"}, {"no": 1}]), chunk(7), chunk("B", "stop")), "AB", None, id="parts"
        ),
        pytest.param(
            streamed(chunk("\ud83d"), chunk("\ude00", "stop")), "😀", None, id="half a sign in each chunk"
        ),
        pytest.param(streamed(chunk("\ud83d", "stop")), "\ufffd", None, id="half a sign"),
        pytest.param(streamed(completion("Three members.")), "Three members.", None, id="the whole as one event"),
        pytest.param(answered(completion("Three members.")), "Three members.", None, id="no stream at all"),
    ],
)
def test_streams(tmp_path: Path, exchange: Exchange, text: str, usd: float | None) -> None:
    result, server = run(tmp_path, [exchange], None, STREAM)
    assert (got(result).status, got(result).text, got(result).cost_usd) == ("completed", text, usd)
    assert len(server.requests) == 1


def test_what_a_stream_says_beside_its_text(tmp_path: Path) -> None:
    noted = chunk(None, annotations=7)
    noted["choices"][0]["delta"] = {"annotations": [CITED]}
    exchange = streamed(
        chunk("Three ", citations=["https://b.example/"]), noted, chunk("members.", "length"), "[DONE]"
    )
    result, _ = run(tmp_path, [exchange], None, STREAM)
    assert got(result).status == "incomplete"
    assert got(result).citations == (Citation(url="https://a.example/?q=1", start=0, end=5),)
    assert got(result).settings["echoed"]["model"] == "my-model-2"


def test_a_stream_of_nothing_but_a_refusal(tmp_path: Path) -> None:
    parts = [chunk(), chunk(finish="stop")]
    parts[0]["choices"][0]["delta"] = {"refusal": "I "}
    parts[1]["choices"][0]["delta"] = {"refusal": "can't."}
    result, _ = run(tmp_path, [streamed(*parts, "[DONE]")], None, STREAM)
    error = got(result).error
    assert got(result).status == "refused"
    assert error is not None
    assert "I can't." in error.message


@pytest.mark.parametrize(
    ("broken", "posts", "kind"),
    [
        pytest.param(cut(streamed(chunk("Three "), chunk("m" * 900))), 1, "maybe_billed", id="cut"),
        pytest.param(streamed(chunk("Three ")), 1, "maybe_billed", id="ended in the middle"),
        pytest.param(streamed(), 1, "maybe_billed", id="ended before it began"),
        pytest.param(hang_up("POST", PATH), 1, "maybe_billed", id="hung up"),
        pytest.param(
            streamed(chunk("Three "), {"error": {"message": "overloaded"}}),
            1,
            "maybe_billed",
            id="an error within",
        ),
        pytest.param(streamed({"error": {"message": "overloaded"}}), 2, None, id="an error at once"),
        pytest.param(streamed({"error": {"code": 429, "message": "slow"}}), 2, None, id="a limit at once"),
        pytest.param(answered({"error": {"message": "oops"}}, 500), 2, None, id="5xx"),
        pytest.param(answered({"error": {"message": "no stream_options"}}, 400), 1, "bad_request", id="400"),
    ],
)
def test_a_broken_stream_is_no_answer(tmp_path: Path, broken: Exchange, posts: int, kind: str | None) -> None:
    whole = streamed(chunk("Three members.", "stop"), "[DONE]")
    result, server = run(tmp_path, [broken, whole], None, STREAM)
    submission = got(result)
    assert (submission.error.kind if submission.error else None) == kind
    assert submission.text == (None if kind else "Three members.")
    assert len(server.requests) == posts


def test_a_stream_that_breaks_off_is_named_cut() -> None:
    with pytest.raises(CallError, match="cut: openai_compatible: the stream ended in the middle of an answer"):
        _gathered([chunk("Three ")])


# hostile replies

SKELETON = {
    **completion(
        "See there.", usage={"prompt_tokens": 9, "completion_tokens": 9, "cost": 0.5}, annotations=[CITED]
    ),
    "citations": ["https://b.example/"],
    "search_results": [{"url": "https://b.example/", "title": "B", "snippet": "b"}],
}


async def _made(make: Any) -> Any:
    return await make()


@cache
def _provider() -> Provider:
    words = ("system.model=m", "system.delivery=schema", "system.price={input: 2, output: 10}")
    system = make_system(ReplayServer([]), NAME, "system.base_url=http://127.0.0.1:9/v1", *words)
    assert isinstance(system, JobSystem)
    return system.provider


def _read(body: Any) -> None:
    """A completion becomes a submission that can be written, or a CallError."""
    ask = Ask(file_task(), 1, "t", lambda _: None, _made)
    try:
        last = _snapshot(body, None)
        found = asyncio.run(_provider().answer(ask, last))
        submission = submission_of(ask, last, found, name="openai_compatible", handle=None, latency_s=1.0)
    except CallError:
        return
    json.dumps(submission.model_dump(mode="json"), allow_nan=False).encode()


def _gathered(chunks: list[Any]) -> Mapping[str, Any]:
    async def read() -> Mapping[str, Any]:
        async def events() -> Any:
            for one in chunks:
                yield Event(one if isinstance(one, str) else json.dumps(one))

        gathered = _Gathered()
        await gathered.read(events())
        return gathered.completion()

    return asyncio.run(read())


@given(replies(SKELETON))
def test_no_reply_is_a_crash(body: dict[str, Any]) -> None:
    _read(body)


@given(st.lists(JSON | mutated(chunk("A", "stop", usage={"cost": 1})) | mutated(SKELETON), max_size=4))
def test_no_stream_is_a_crash(chunks: list[Any]) -> None:
    try:
        whole = _gathered(chunks)
    except CallError:
        return
    _read(whole)


def test_a_reply_that_is_nested_beyond_reading_is_malformed() -> None:
    deep: Any = []
    for _ in range(900):
        deep = [deep]
    with pytest.raises(CallError, match="malformed"):
        _snapshot({**completion(), "usage": deep}, None)
