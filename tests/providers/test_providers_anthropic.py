"""system=anthropic against recorded exchanges and what can go wrong beside them, over real HTTP."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

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
from hypothesis import given
from hypothesis import strategies as st

from adapters._anthropic_message import Gathering, read
from core.clock import RealClock
from core.errors import CallError, InputError
from core.jobs import Ask, Snapshot
from core.jobs.ledger import Jobs
from core.jobs.outcome import submission_of
from core.jobs.system import JobSystem
from core.model import Submission, Task
from core.sse import Event
from core.store import JobRow, Store

POST: Final = "/v1/messages"
FILE: Final = "/v1/files/file_011fake"
SYNC: Final = "system.transport=sync"
#: The recorded usage at list prices: 52,110 fresh, 20,000 written, 110,000 read, 5,200 out, 4 searches.
USD: Final = pytest.approx(0.20844 + 0.1 + 0.022 + 0.104 + 0.04)
USED: Final = {"input_tokens": 1000, "output_tokens": 100}


def reply(*content: Mapping[str, Any], stop: str | None = "end_turn", **more: Any) -> Exchange:
    """A whole message."""
    body = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude-opus-5-5",
        "content": list(content),
        "stop_reason": stop,
        "usage": USED,
        **more,
    }
    return answer("POST", POST, 200, body)


def text(value: str, *citations: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "text", "text": value, "citations": list(citations) or None}


def left(*file_ids: str) -> dict[str, Any]:
    """The result of code that left files."""
    outputs = [{"type": "bash_code_execution_output", "file_id": file_id} for file_id in file_ids]
    content = {"type": "bash_code_execution_result", "content": outputs}
    return {"type": "bash_code_execution_tool_result", "tool_use_id": "srvtoolu_9", "content": content}


def kept(file_id: str, name: str, content: str, **more: Any) -> list[Exchange]:
    """A file that the provider keeps: what it says of it, and its bytes."""
    about = {"id": file_id, "type": "file", "filename": name, "downloadable": True, **more}
    headers = {"content-type": "application/octet-stream"}
    return [
        answer("GET", f"/v1/files/{file_id}", 200, about),
        answer("GET", f"/v1/files/{file_id}/content", 200, content, headers),
    ]


def events(*data: Mapping[str, Any]) -> Exchange:
    """A stream of these events, named as the API names them."""
    body = sse(*({"event": event["type"], "data": event} for event in data))
    return Exchange("POST", POST, 200, {"content-type": "text/event-stream"}, body)


START: Final = {"type": "message_start", "message": {"id": "msg_1", "model": "claude-opus-5-5", "usage": USED}}


def failure(kind: str, message: str = "no") -> dict[str, Any]:
    return {"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_7"}


def done(folder: Path, exchanges: list[Exchange], task: Task | None = None, *words: str) -> Submission:
    """The submission of these exchanges, all of which must have been used."""
    with ReplayServer(exchanges) as server:
        result = solved(folder, server, "anthropic", task, *words)
    assert server.unexpected == []
    assert server.left == 0
    assert result.submission is not None
    assert not result.job_left
    assert KEY not in result.submission.model_dump_json()
    return result.submission


@pytest.mark.parametrize(
    ("name", "task", "words", "status", "usd"),
    [
        ("happy", file_task(), (SYNC,), "completed", USD),
        ("pause", plain_task(), (SYNC,), "completed", pytest.approx(2 * 0.47444)),
        ("schema", plain_task(output_schema=file_task().output_schema), (SYNC,), "completed", USD),
        ("stream", plain_task(), (), "completed", USD),
        ("truncated", plain_task(), (SYNC,), "incomplete", USD),
        ("overloaded", plain_task(), (SYNC,), "completed", USD),
    ],
)
def test_recorded_scenarios_end_as_they_should(
    tmp_path: Path, name: str, task: Task, words: tuple[str, ...], status: str, usd: Any
) -> None:
    submission = done(tmp_path, scenario("anthropic", name), task, "effort=medium", *words)
    assert (submission.status, submission.cost_usd, submission.cost_source) == (status, usd, "computed")
    assert submission.settings["effort"] == "medium"
    assert submission.settings["echoed"]["model"] == "claude-opus-5-5"
    assert submission.usage is not None
    assert submission.usage.cached_input in (110_000, 220_000)


def test_the_recorded_limit_is_waited_out_as_the_provider_asks(tmp_path: Path) -> None:
    limited, *others = scenario("anthropic", "rate")
    limited = replace(limited, headers={**limited.headers, "retry-after": "0.01"})
    assert done(tmp_path, [limited, *others], None, SYNC).status == "completed"


@pytest.mark.parametrize("words", [(SYNC,), ()])
def test_what_is_asked(tmp_path: Path, words: tuple[str, ...]) -> None:
    task = plain_task(blocked=("arxiv.org/abs/1", "arxiv.org/abs/2", "Example.com"))
    with ReplayServer([reply(text("x"))]) as server:
        solved(tmp_path, server, "anthropic", task, "effort=xhigh", *words)
    request = server.requests[0]
    assert request.headers["authorization"] == f"Bearer {KEY}"
    assert request.headers["anthropic-version"] == "2026-10-21"
    assert "anthropic-beta" not in request.headers
    body = request.json
    assert body.pop("stream", None) == (None if words else True)
    web = {"max_uses": 40, "blocked_domains": ["arxiv.org", "example.com"]}
    assert body == {
        "model": "claude-opus-5-5",
        "max_tokens": 128_000,
        "output_config": {"effort": "xhigh"},
        "thinking": {"type": "adaptive"},
        "tools": [
            {"type": "web_search_20260318", "name": "web_search", **web},
            {"type": "web_fetch_20260318", "name": "web_fetch", "citations": {"enabled": True}, **web},
            {"type": "code_execution_20260521", "name": "code_execution"},
        ],
        "messages": [{"role": "user", "content": task.prompt}],
    }


def test_a_knob_that_is_null_is_not_sent(tmp_path: Path) -> None:
    words = ("system.thinking=null", "system.max_searches=null", "system.code_execution=false", SYNC)
    with ReplayServer([reply(text("x"))]) as server:
        solved(tmp_path, server, "anthropic", None, *words)
    body = server.requests[0].json
    assert "thinking" not in body
    assert [tool["name"] for tool in body["tools"][:2]] == ["web_search", "web_fetch"]
    assert "max_uses" not in body["tools"][0]


@pytest.mark.parametrize(
    "word", ["delivery=zip", "transport=poll", "max_output_tokens=0", "code_execution=maybe", "model=null"]
)
def test_a_value_that_can_not_be_used_is_refused(word: str) -> None:
    with pytest.raises(InputError, match=rf"system\.{word.partition('=')[0]}"):
        make_system(ReplayServer([]), "anthropic", f"system.{word}")


# text and citations


def test_citations_quote_the_page_and_say_which_passage_rests_on_it(tmp_path: Path) -> None:
    submission = done(tmp_path, scenario("anthropic", "pause"), None, SYNC)
    assert submission.text is not None
    assert submission.text.startswith("The Lakeshore Grid Association has three members: Northmere Transmission")
    (citation,) = submission.citations
    assert citation.url == "https://lga.example.org/members"
    assert citation.title == "Members - Lakeshore Grid Association"
    assert citation.excerpt == (
        "The association has three members: Northmere Transmission, Calder Grid and Solvane Networks."
    )
    assert submission.text[citation.start : citation.end] == (
        "Northmere Transmission, Calder Grid and Solvane Networks"
    )


def test_a_streamed_message_is_the_same_as_a_whole_one(tmp_path: Path) -> None:
    submission = done(tmp_path, scenario("anthropic", "stream"))
    assert submission.text is not None
    (citation,) = submission.citations
    assert (citation.start, citation.end) == (0, len(submission.text))
    assert citation.excerpt is not None
    assert submission.usage is not None
    assert (submission.usage.input, submission.usage.output) == (182_110, 5_200)


def block(index: int, *pieces: str) -> list[dict[str, Any]]:
    """The events of a block of text."""
    start = {"type": "content_block_start", "index": index, "content_block": {"type": "text", "text": ""}}
    deltas = [
        {"type": "content_block_delta", "index": index, "delta": {"type": "text_delta", "text": piece}}
        for piece in pieces
    ]
    return [start, *deltas, {"type": "content_block_stop", "index": index}]


ENDED: Final = {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 7}}
STOP: Final = {"type": "message_stop"}


@pytest.mark.parametrize(
    "last",
    [
        pytest.param([STOP], id="after its last event"),
        pytest.param([], id="after its reason to stop"),
        pytest.param([failure("api_error")], id="after its reason to stop, with an error"),
    ],
)
def test_a_whole_message_is_kept_though_its_stream_breaks(tmp_path: Path, last: list[dict[str, Any]]) -> None:
    whole = events(START, *block(0, "whole"), ENDED, *last)
    padded = replace(whole, body=whole.body + b": bye" + b"." * len(whole.body))
    submission = done(tmp_path, [cut(padded)])
    assert (submission.status, submission.text) == ("completed", "whole")
    assert submission.usage is not None
    assert submission.usage.output == 7


@pytest.mark.parametrize("last", [[STOP], []])
def test_a_whole_message_is_kept_though_its_stream_stays_open(last: list[dict[str, Any]]) -> None:
    class OpenApi(AnyApi):
        @asynccontextmanager
        async def events(self, *_: Any, **__: Any) -> AsyncIterator[AsyncIterator[Event]]:
            async def each() -> AsyncIterator[Event]:
                for event in self._stream:
                    yield Event(json.dumps(event))
                assert not last, "nothing is asked for after the last event"
                await asyncio.Event().wait()

            yield each()

    system: Any = make_system(ReplayServer([]), "anthropic", "effort=low", "system.efforts.low.timeout_s=0.2")
    system.provider._api = OpenApi([{}], [START, *block(0, "whole"), ENDED, *last])
    submission = asyncio.run(lived(system, plain_task()))
    assert (submission.status, submission.text) == ("completed", "whole")


def test_events_that_come_again_count_once(tmp_path: Path) -> None:
    first, second = block(0, "One. "), block(1, "Two.")
    again = {**START, "message": {**START["message"], "id": "msg_2"}}  # type: ignore[dict-item]
    stream = events(START, *first, *first, again, *second, *first[1:], *second, ENDED, ENDED, STOP, STOP)
    submission = done(tmp_path, [stream])
    assert submission.text == "One. Two."
    assert submission.settings["echoed"]["id"] == "msg_1"
    assert submission.usage is not None
    assert submission.usage.output == 7


def test_a_server_that_does_not_stream_is_understood(tmp_path: Path) -> None:
    assert done(tmp_path, [reply(text("whole"))]).text == "whole"


PAGES: Final = [
    {
        "type": "web_fetch_tool_result",
        "content": {"type": "web_fetch_result", "url": url, "content": {"type": "document", "title": title}},
    }
    for url, title in (("https://a.example/1", "One"), ("https://a.example/2", "Two"))
]


@pytest.mark.parametrize(
    ("citation", "url", "title"),
    [
        ({"document_index": 0, "document_title": "Two"}, "https://a.example/2", "Two"),
        ({"document_index": 1, "document_title": None}, "https://a.example/2", None),
        ({"document_index": 9, "document_title": None}, None, None),
        ({"document_index": 0, "document_title": "Three"}, None, None),
        ({"source": "https://b.example/", "title": "Bee"}, "https://b.example/", "Bee"),
        ({"url": 7}, None, None),
    ],
)
def test_a_citation_of_a_fetched_page_gets_its_address(
    citation: dict[str, Any], url: str | None, title: str | None
) -> None:
    found = read([*PAGES, text("x", {"type": "char_location", "cited_text": "q", **citation})])
    if url is None:
        assert found.citations == ()
        assert found.notes[0].startswith("a citation without an address")
    else:
        assert [(one.url, one.title, one.excerpt) for one in found.citations] == [(url, title, "q")]


def test_texts_around_a_tool_stand_apart_and_offsets_count_it() -> None:
    cited = {"url": "https://a.example/", "cited_text": "q"}
    found = read([text("Looking."), {"type": "server_tool_use"}, text("Résumé: "), text("é", cited), "junk"])
    assert found.text == "Looking.\n\nRésumé: é"
    assert found.last == "Résumé: é"
    (citation,) = found.citations
    assert found.text[citation.start : citation.end] == "é"


def test_what_is_unknown_or_went_wrong_inside_is_noted(tmp_path: Path) -> None:
    broke = {"type": "web_search_tool_result", "content": {"error_code": "max_uses_exceeded"}}
    submission = done(tmp_path, [reply(broke, broke, {"type": "hologram"}, text("x"))], None, SYNC)
    assert submission.status == "completed"
    assert submission.settings["echoed"]["notes"] == [
        "web_search_tool_result: max_uses_exceeded",
        'an item of unknown type: "hologram"',
    ]


def test_deltas_make_up_a_block() -> None:
    gathering = Gathering()
    block = {"type": "server_tool_use", "input": {}}
    for event in (
        {"type": "ping"},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "too early"}},
        START,
        {"type": "content_block_start", "index": 1, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_start", "index": 0, "content_block": block},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "twice"}},
        *(
            {"type": "content_block_delta", "index": index, "delta": {"type": kind, field: value}}
            for index, kind, field, value in (
                (0, "input_json_delta", "partial_json", '{"query"'),
                (0, "input_json_delta", "partial_json", ':"a"}'),
                (1, "text_delta", "text", "a"),
                (1, "citations_delta", "citation", {"url": "https://a.example/"}),
                (1, "hologram_delta", "text", "z"),
                (1, "text_delta", "text", "b"),
                (5, "text_delta", "text", "nowhere"),
            )
        ),
        {"type": "content_block_stop", "index": 1},
        None,
    ):
        gathering.take(event)
    assert gathering.message() is None
    last = {"delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 7, "input_tokens": None}}
    gathering.take({"type": "message_delta", **last})
    assert gathering.message() == {
        **START["message"],  # type: ignore[dict-item]
        "content": [
            {"type": "server_tool_use", "input": {"query": "a"}},
            {"type": "text", "text": "ab", "citations": [{"url": "https://a.example/"}]},
        ],
        "stop_reason": "end_turn",
        "usage": {"input_tokens": 1000, "output_tokens": 7},
    }


# how a turn ends


@pytest.mark.parametrize(
    ("stop", "more", "status", "kind", "said"),
    [
        ("stop_sequence", {}, "completed", None, ""),
        ("max_tokens", {}, "incomplete", "truncated", "stopped early: max_tokens"),
        ("model_context_window_exceeded", {}, "incomplete", "truncated", "stopped early: model_context"),
        ("tool_use", {}, "incomplete", "truncated", "stopped early: tool_use"),
        ("hologram", {}, "incomplete", "truncated", "stopped early: hologram"),
        (None, {}, "incomplete", "truncated", "stopped early: without a reason"),
        ("refusal", {}, "refused", "refused", "refusal"),
        (
            "refusal",
            {"stop_details": {"category": "bio", "explanation": "Not this."}},
            "refused",
            "refused",
            "refusal: bio: Not this.",
        ),
    ],
)
def test_reasons_to_stop(
    tmp_path: Path, stop: str | None, more: dict[str, Any], status: str, kind: str | None, said: str
) -> None:
    submission = done(tmp_path, [reply(text("x"), stop=stop, **more)], None, SYNC)
    assert submission.status == status
    assert (submission.error.kind if submission.error else None) == kind
    assert said in (submission.error.message if submission.error else "")
    assert submission.cost_usd == pytest.approx(0.006), "it is paid for, however it ends"


def test_completed_with_nothing_is_empty(tmp_path: Path) -> None:
    assert done(tmp_path, [reply()], None, SYNC).status == "empty"


@pytest.mark.parametrize(
    ("words", "usage", "usd"),
    [
        (("system.model=claude-next-9",), USED, None),
        (("system.model=claude-next-9", "system.price={input:1,output:10}"), USED, pytest.approx(0.002)),
        ((), None, None),
        ((), {"input_tokens": -1, "output_tokens": 1}, None),
        ((), {"input_tokens": 10**400, "output_tokens": 1}, None),
        ((), {**USED, "cache_creation": {"ephemeral_1h_input_tokens": 1000}}, pytest.approx(0.014)),
        ((), {**USED, "server_tool_use": {"web_search_requests": 2}}, pytest.approx(0.026)),
    ],
)
def test_costs_are_computed_or_unknown(tmp_path: Path, words: tuple[str, ...], usage: Any, usd: Any) -> None:
    model = "claude-next-9" if words else "claude-opus-5-5"
    submission = done(tmp_path, [reply(text("x"), usage=usage, model=model)], None, SYNC, *words)
    assert submission.cost_usd == usd
    assert submission.cost_source == ("unknown" if usd is None else "computed")


# pauses


def paused(*content: Mapping[str, Any], **more: Any) -> Exchange:
    return reply(*content, stop="pause_turn", **more)


def test_a_paused_turn_is_sent_again_with_what_it_said(tmp_path: Path) -> None:
    with ReplayServer(scenario("anthropic", "pause")) as server:
        result = solved(tmp_path, server, "anthropic", None, SYNC)
    assert result.submission is not None
    first, second = (request.json for request in server.requests)
    said = recorded("anthropic", "02_messages_pause_turn").json["content"]
    assert "container" not in first
    assert second == {
        **first,
        "messages": [*first["messages"], {"role": "assistant", "content": said}],
        "container": "container_011fake",
    }
    assert result.submission.settings["echoed"]["calls"] == 2


def test_pauses_have_an_end(tmp_path: Path) -> None:
    exchanges = [paused(text(word)) for word in ("a", "b", "c")]
    submission = done(tmp_path, exchanges, None, SYNC, "system.max_continuations=2")
    assert (submission.status, submission.text) == ("incomplete", "abc")
    assert submission.error is not None
    assert submission.error.message == "anthropic: still paused after 2 continuations; job msg_1"
    assert submission.cost_usd == pytest.approx(0.018)


@pytest.mark.parametrize(
    "refusal",
    [
        answer("POST", POST, 529, failure("overloaded_error")),
        answer("POST", POST, 500, failure("api_error")),
        answer("POST", POST, 429, failure("rate_limit_error"), {"retry-after": "0"}),
        answer("POST", POST, 502, "<html><title>Bad gateway</title></html>"),
        answer("POST", POST, 200, failure("overloaded_error")),
        events(failure("overloaded_error")),
    ],
)
def test_a_continuation_that_was_not_begun_is_sent_again(tmp_path: Path, refusal: Exchange) -> None:
    submission = done(tmp_path, [paused(text("a")), refusal, reply(text("b"))])
    assert (submission.status, submission.text) == ("completed", "ab")


@pytest.mark.parametrize("lost", [hang_up("POST", POST), cut(reply(text("b"))), events(START)])
def test_a_continuation_that_was_lost_is_never_sent_again(tmp_path: Path, lost: Exchange) -> None:
    port = 0
    for again, exchanges in enumerate(([paused(text("a")), lost], [])):
        with ReplayServer(exchanges, port=port) as server:
            port = server.port
            result = solved(tmp_path, server, "anthropic")
        assert len(server.requests) == 2 - 2 * again
        assert result.submission is not None
        assert result.submission.error is not None
        assert result.submission.error.kind == "maybe_billed"


@pytest.mark.parametrize(
    ("status", "kind"), [(400, "invalid_request_error"), (413, "request_too_large"), (404, "not_found_error")]
)
def test_a_turn_that_may_not_go_on_ends_with_what_it_has(tmp_path: Path, status: int, kind: str) -> None:
    exchanges = [paused(text("a")), answer("POST", POST, status, failure(kind, "container expired"))]
    submission = done(tmp_path, exchanges, None, SYNC)
    assert (submission.status, submission.text) == ("incomplete", "a")
    assert submission.error is not None
    assert "container expired" in submission.error.message
    assert submission.cost_usd == pytest.approx(0.006)


def stopped_while_paused(folder: Path) -> int:
    """A run that stops for want of credit while a turn is paused; the server's port."""
    with ReplayServer([paused(text("a")), answer("POST", POST, 402, failure("billing_error"))]) as server:
        result = solved(folder, server, "anthropic", None, SYNC)
    assert result.stopped is not None
    assert result.stopped.kind == "quota"
    assert result.job_left
    return server.port


def test_a_restart_goes_on_with_a_paused_turn(tmp_path: Path) -> None:
    port = stopped_while_paused(tmp_path)
    with ReplayServer([reply(text("b"))], port=port) as server:
        result = solved(tmp_path, server, "anthropic", None, SYNC)
    assert result.submission is not None
    assert (result.submission.status, result.submission.text) == ("completed", "ab")
    assert result.submission.settings["echoed"]["resumed"] is True
    assert server.requests[0].json["messages"][1]["content"] == [text("a")]


def test_a_continuation_after_a_restart_is_paid_too(tmp_path: Path) -> None:
    port = stopped_while_paused(tmp_path)
    with ReplayServer([hang_up("POST", POST)], always=[reply(text("b"))], port=port) as server:
        result = solved(tmp_path, server, "anthropic", None, SYNC)
    assert len(server.requests) == 1
    assert result.submission is not None
    assert result.submission.error is not None
    assert result.submission.error.kind == "maybe_billed"


# what the first request may meet


@pytest.mark.parametrize(
    ("words", "exchange", "kind"),
    [
        *(
            (words, answer("POST", POST, status, failure(said, message)), kind)
            for words in ((SYNC,), ())
            for status, said, message, kind in (
                (401, "authentication_error", "invalid x-api-key", "key"),
                (403, "permission_error", "no", "key"),
                (402, "billing_error", "no", "quota"),
                (400, "invalid_request_error", "Your credit balance is too low", "quota"),
                (429, "rate_limit_error", "spend cap", "quota"),
                (200, "billing_error", "no", "quota"),
            )
        ),
        ((), events(failure("authentication_error")), "key"),
    ],
)
def test_a_wrong_key_and_an_empty_account_stop_the_run_at_once(
    tmp_path: Path, words: tuple[str, ...], exchange: Exchange, kind: str
) -> None:
    with ReplayServer([exchange]) as server:
        result = solved(tmp_path, server, "anthropic", None, *words)
    assert len(server.requests) == 1
    assert result.stopped is not None
    assert result.stopped.kind == kind
    assert result.stopped.message.startswith("anthropic: ")
    assert KEY not in result.stopped.message
    assert not result.job_left


@pytest.mark.parametrize("name", ["auth", "quota"])
def test_recorded_refusals_stop_the_run(tmp_path: Path, name: str) -> None:
    with ReplayServer(scenario("anthropic", name)) as server:
        result = solved(tmp_path, server, "anthropic", None, SYNC)
    assert result.stopped is not None
    assert result.stopped.kind == {"auth": "key", "quota": "quota"}[name]
    assert "req_fake" in result.stopped.message


@pytest.mark.parametrize(
    "refusal",
    [
        answer("POST", POST, 429, failure("rate_limit_error"), {"retry-after": "0"}),
        answer("POST", POST, 429, failure("rate_limit_error"), {"retry-after-ms": "5"}),
        answer("POST", POST, 429, failure("rate_limit_error"), {"retry-after": "Mon, 30 Nov 2020 10:00:00 GMT"}),
        answer(
            "POST",
            POST,
            429,
            failure("rate_limit_error"),
            {
                "anthropic-ratelimit-requests-remaining": "0",
                "anthropic-ratelimit-requests-reset": "2020-11-30T10:00:00Z",
            },
        ),
        answer("POST", POST, 408, failure("timeout_error")),
        answer("POST", POST, 409, failure("api_error")),
        answer("POST", POST, 500, failure("api_error")),
        answer("POST", POST, 503, "<html><title>Unavailable</title></html>"),
        answer("POST", POST, 529, failure("overloaded_error")),
        answer("POST", POST, 200, failure("rate_limit_error")),
        events({"type": "ping"}, failure("overloaded_error")),
    ],
)
def test_a_create_that_was_not_begun_is_sent_again(tmp_path: Path, refusal: Exchange) -> None:
    assert done(tmp_path, [refusal, reply(text("x"))]).text == "x"


@pytest.mark.parametrize(
    "lost",
    [
        hang_up("POST", POST),
        cut(reply(text("x" * 500))),
        answer("POST", POST, 504, failure("timeout_error")),
        answer("POST", POST, 200, "<html>hello</html>"),
        answer("POST", POST, 200, {"unexpected": True}),
        answer("POST", POST, 200, []),
        answer("POST", POST, 200, failure("timeout_error")),
        events(START),
        events(START, failure("overloaded_error", "Overloaded")),
        cut(events(START, {"type": "ping"}, {"type": "ping"})),
        events({"type": "ping"}),
    ],
)
def test_a_create_that_may_have_begun_is_sent_once(tmp_path: Path, lost: Exchange) -> None:
    port = 0
    for again in range(2):
        with ReplayServer([] if again else [lost], port=port) as server:
            port = server.port
            result = solved(tmp_path, server, "anthropic")
        assert len(server.requests) == 1 - again
        assert result.submission is not None
        assert result.submission.status == "error"
        assert result.submission.error is not None
        assert result.submission.error.kind == "maybe_billed"
    assert result.calls == [("maybe_billed", None), ("maybe_billed", 0.0)], "counted once"


def test_a_form_that_is_refused_is_an_error_and_not_a_score(tmp_path: Path) -> None:
    with ReplayServer([answer("POST", POST, 400, failure("invalid_request_error", "temperature"))]) as server:
        result = solved(tmp_path, server, "anthropic")
    assert len(server.requests) == 1
    assert result.submission is not None
    assert result.submission.error is not None
    assert result.submission.error.kind == "bad_request"
    assert not result.job_left


@pytest.mark.parametrize("words", [(SYNC,), ()])
def test_the_deadline_ends_a_request(tmp_path: Path, words: tuple[str, ...]) -> None:
    released = threading.Event()
    never = answer("POST", POST, make=lambda: bytes(released.wait(20)))
    with ReplayServer([never]) as server:
        result = solved(
            tmp_path, server, "anthropic", None, "effort=low", "system.efforts.low.timeout_s=0.3", *words
        )
        released.set()
    assert result.submission is not None
    assert result.submission.status == "timed_out"
    assert result.submission.error is not None
    assert result.submission.error.message == (
        "anthropic: no answer within 0.3 s (system.timeout_s); raise system.timeout_s, or lower the effort"
    )
    assert result.submission.cost_usd is None, "what an open request has used is not known"
    assert not result.job_left


def test_the_deadline_counts_from_the_first_request_on() -> None:
    turn = {"calls": 1, "stop_reason": "pause_turn", "stop_details": None, "content": [text("a")], "until": 1.0}

    async def late() -> Snapshot:
        system = make_system(ReplayServer([]), "anthropic")
        assert isinstance(system, JobSystem)
        return await system.provider.advance(ask_for(plain_task()), turn)

    ended = asyncio.run(late())
    assert (ended.state, ended.paid_next, ended.body["content"]) == ("timed_out", False, [text("a")])


def test_an_interrupt_closes_the_request_and_forgets_it(tmp_path: Path) -> None:
    released, asked = threading.Event(), threading.Event()

    def hold() -> bytes:
        asked.set()
        released.wait(20)
        return b""

    async def interrupted() -> bool:
        jobs = Jobs(RealClock())
        store = Store(tmp_path / "store.sqlite")
        jobs.open(store)
        given = replace(provider_services(), jobs=jobs)
        system = make_system(server, "anthropic", given=given)
        jobs.bind("lga-001", 1, "key")
        job = asyncio.ensure_future(system.solve(plain_task(), 1))
        await asyncio.to_thread(asked.wait, 20)
        assert store.job("key") is not None
        job.cancel()
        with pytest.raises(asyncio.CancelledError):
            await job
        await given.http.aclose()
        left = store.job("key") is not None
        store.close()
        return left

    with ReplayServer([answer("POST", POST, make=hold)]) as server:
        assert not asyncio.run(interrupted())
        released.set()


def test_an_interrupt_leaves_a_paused_turn_for_the_next_start(tmp_path: Path) -> None:
    released, asked = threading.Event(), threading.Event()

    def hold() -> bytes:
        asked.set()
        released.wait(20)
        return b""

    async def interrupted() -> JobRow | None:
        jobs = Jobs(RealClock())
        store = Store(tmp_path / "store.sqlite")
        jobs.open(store)
        given = replace(provider_services(), jobs=jobs)
        system = make_system(server, "anthropic", given=given)
        jobs.bind("lga-001", 1, "key")
        job = asyncio.ensure_future(system.solve(plain_task(), 1))
        await asyncio.to_thread(asked.wait, 20)
        job.cancel()
        with pytest.raises(asyncio.CancelledError):
            await job
        await given.http.aclose()
        left = store.job("key")
        store.close()
        return left

    with ReplayServer([paused(text("a")), answer("POST", POST, make=hold)]) as server:
        left = asyncio.run(interrupted())
        released.set()
    assert left is not None
    assert left.handle is not None
    assert (left.handle["content"], left.step) == ([text("a")], "paid")


# files


def test_files_come_from_code(tmp_path: Path) -> None:
    with ReplayServer(scenario("anthropic", "happy")) as server:
        result = solved(tmp_path, server, "anthropic", file_task(), SYNC)
    prompt = server.requests[0].json["messages"][0]["content"]
    assert prompt.startswith(file_task().prompt)
    assert "$OUTPUT_DIR/members.csv" in prompt
    assert result.submission is not None
    assert result.submission.files["members.csv"].startswith("name,hq_city,founded_year,source_url\n")
    assert result.submission.settings["echoed"]["delivered"] is True
    assert result.submission.citations, "files and citations go together"


def test_file_delivery_brings_its_tool(tmp_path: Path) -> None:
    with ReplayServer([reply(text("x"))]) as server:
        solved(tmp_path, server, "anthropic", file_task(), SYNC, "system.code_execution=false")
    assert server.requests[0].json["tools"][-1]["name"] == "code_execution"


GONE: Final = failure("not_found_error", "File not found")


@pytest.mark.parametrize(
    ("file_ids", "exchanges", "files", "note"),
    [
        (["f1"], kept("f1", "members.csv", "a"), {"members.csv": "a"}, None),
        (["f1"], kept("f1", "out/members.csv", "a"), {"members.csv": "a"}, None),
        (["f1"], kept("f1", "members.csv", ""), {"members.csv": ""}, None),
        (["f1", "f1"], kept("f1", "members.csv", "a"), {"members.csv": "a"}, None),
        (
            ["f1", "f2"],
            [*kept("f1", "members.csv", "old"), *kept("f2", "members.csv", "new")],
            {"members.csv": "new"},
            "more than once",
        ),
        (["f1"], kept("f1", "wrong.csv", "a")[:1], {}, 'a file that was not asked for: "wrong.csv"'),
        (["f1"], kept("f1", "../members.csv", "a")[:1], {}, "not asked for"),
        (["f1"], kept("f1", "members.csv", "a", downloadable=False)[:1], {}, "does not give it back"),
        (["f1"], [answer("GET", "/v1/files/f1", 404, GONE)], {}, "File not found"),
        (
            ["f1"],
            [answer("GET", "/v1/files/f1", 404, GONE), *kept("f1", "members.csv", "a")],
            {"members.csv": "a"},
            None,
        ),
        (
            ["f1"],
            [kept("f1", "members.csv", "a")[0], answer("GET", "/v1/files/f1/content", 404, GONE)],
            {},
            "File",
        ),
        (["f1"], [answer("GET", "/v1/files/f1", 400, failure("invalid_request_error", "expired"))], {}, "expired"),
        (["f1"], [answer("GET", "/v1/files/f1", 500, failure("api_error"))], {}, "500"),
        (["f1"], [answer("GET", "/v1/files/f1", 200, "<html>hi</html>")], {}, "not JSON"),
        (["f1"], [answer("GET", "/v1/files/f1", 200, {"filename": 7})], {}, "not asked for"),
        ([".."], [], {}, "not usable as an id"),
        (["a/../b"], [answer("GET", "/v1/files/a/../b", 404, GONE)], {}, "File not found"),
        ([], [], {}, None),
    ],
)
def test_files_that_can_not_be_had_are_noted(
    tmp_path: Path, file_ids: list[str], exchanges: list[Exchange], files: dict[str, str], note: str | None
) -> None:
    submission = done(tmp_path, [reply(left(*file_ids), text("done")), *exchanges], file_task(), SYNC)
    assert submission.files == files
    delivered = bool(files.get("members.csv"))
    assert submission.status == ("completed" if delivered else "empty")
    assert submission.settings["echoed"]["delivered"] is delivered
    notes = submission.settings["echoed"].get("notes", [])
    assert len(notes) == (note is not None)
    assert note is None or note in notes[0]
    assert submission.cost_usd == pytest.approx(0.006)


def test_one_of_two_files_is_not_all(tmp_path: Path) -> None:
    task = file_task("data/a.csv", "b.csv")
    submission = done(tmp_path, [reply(left("f1"), text("x")), *kept("f1", "a.csv", "a")], task, SYNC)
    assert (submission.status, submission.files) == ("incomplete", {"data/a.csv": "a"})
    assert submission.error is not None
    assert submission.error.message == "anthropic: not delivered: b.csv; job msg_1"


def test_files_of_a_turn_that_was_refused_count(tmp_path: Path) -> None:
    exchanges = [reply(left("f1"), stop="refusal"), *kept("f1", "members.csv", "a")]
    assert done(tmp_path, exchanges, file_task(), SYNC).status == "incomplete"


def test_an_answer_whose_files_can_not_be_asked_for_is_kept_for_the_next_start(tmp_path: Path) -> None:
    port = 0
    answered = reply(left("f1"), text("x"))
    for exchanges in ([answered, hang_up("GET", "/v1/files/f1")], kept("f1", "members.csv", "a")):
        with ReplayServer(exchanges, port=port) as server:
            port = server.port
            result = solved(tmp_path, server, "anthropic", file_task(), SYNC)
    assert server.sent("POST") == [], "nothing is sent or paid twice"
    assert result.submission is not None
    assert (result.submission.status, result.submission.files) == ("completed", {"members.csv": "a"})
    assert result.submission.cost_usd == pytest.approx(0.006)
    assert [kind for kind, _ in result.calls] == ["unreachable", None]


@pytest.mark.parametrize(
    ("said", "files", "status"),
    [
        ('{"files": [{"path": "members.csv", "content": "a"}]}', {"members.csv": "a"}, "completed"),
        ('{"files": [{"path": "members.csv", "con', {}, "empty"),
        ('{"rows": []}', {"output.json": '{"rows": []}'}, "empty"),
        ("", {}, "empty"),
    ],
)
def test_a_typed_reply_brings_files_and_no_citations(
    tmp_path: Path, said: str, files: dict[str, str], status: str
) -> None:
    with ReplayServer([reply(text("Searching."), {"type": "server_tool_use"}, text(said))]) as server:
        result = solved(tmp_path, server, "anthropic", file_task(), SYNC, "system.delivery=schema")
    body = server.requests[0].json
    assert body["output_config"]["format"] == {"type": "json_schema", "schema": file_task().output_schema}
    assert "citations" not in body["tools"][1]
    assert result.submission is not None
    assert (result.submission.files, result.submission.status) == (files, status)
    assert result.submission.citations == ()


def test_fences_stay_in_the_text(tmp_path: Path) -> None:
    fenced = "```csv members.csv\na\n```"
    submission = done(tmp_path, [reply(text(fenced))], file_task(), SYNC, "system.delivery=fence")
    assert (submission.status, submission.text, submission.files) == ("completed", fenced, {})


# whatever comes


def test_blocked_sites_are_hosts() -> None:
    many = tuple(f"{number}.example/x" for number in range(200))
    body = provider("stream")._body(ask_for(plain_task(blocked=("A.example/x", "a.example", *many))), {})
    hosts = ["a.example", *(f"{number}.example" for number in range(200))]
    assert [tool["blocked_domains"] for tool in body["tools"][:2]] == [hosts, hosts]


JSON: Final = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=8,
)


def shaped(fields: Mapping[str, Any], inner: st.SearchStrategy[Any] = JSON) -> st.SearchStrategy[Any]:
    """Objects with some of these fields: as they should be, or anything; or no objects at all."""
    some = {name: found | inner for name, found in fields.items()}
    return st.fixed_dictionaries({}, optional=some) | inner


CITATIONS: Final = shaped({"url": st.just("https://a.example/"), "document_index": st.integers(-1, 3)})
OUTPUTS: Final = shaped({"content": st.lists(shaped({"file_id": st.sampled_from(["f1", "..", ""])}), max_size=2)})
BLOCKS: Final = shaped(
    {
        "type": st.sampled_from(["text", "bash_code_execution_tool_result", "web_fetch_tool_result"]),
        "text": st.text(max_size=4) | st.just('"\ud800"'),
        "citations": st.lists(CITATIONS, max_size=2),
        "content": OUTPUTS,
    }
)
MESSAGES: Final = shaped(
    {
        "type": st.sampled_from(["message", "error"]),
        "content": st.lists(BLOCKS, max_size=3),
        "stop_reason": st.sampled_from(["end_turn", "pause_turn", "refusal"]),
        "usage": shaped({"input_tokens": st.integers(0, 9), "output_tokens": st.integers(0, 9)}),
        "container": shaped({"id": st.text(max_size=3)}),
        "error": shaped({"type": st.just("overloaded_error"), "message": st.text(max_size=4)}),
    }
)
EVENTS: Final = shaped(
    {
        "type": st.sampled_from(
            ["message_start", "content_block_start", "content_block_delta", "message_delta", "message", "error"]
        ),
        "message": MESSAGES,
        "index": st.integers(0, 2),
        "content_block": BLOCKS,
        "delta": shaped({"type": st.sampled_from(["text_delta", "citations_delta"]), "text": st.text(max_size=3)})
        | shaped({"stop_reason": st.sampled_from(["end_turn", "pause_turn"])}),
        "usage": JSON,
    }
)


class AnyApi:
    """An API that answers with what it is given, over and over."""

    name = "anthropic"

    def __init__(self, replies: list[Any], stream: list[Any]) -> None:
        self._replies, self._stream = replies, stream

    async def json(self, *_: Any, **__: Any) -> dict[str, Any]:
        found = self._replies[0]
        self._replies = [*self._replies[1:], found]
        if not isinstance(found, dict):
            raise CallError("malformed", "expected a JSON object")
        return found

    async def download(self, *_: Any, **__: Any) -> bytes:
        return b"\xff"

    @asynccontextmanager
    async def events(self, *_: Any, **__: Any) -> AsyncIterator[AsyncIterator[Event]]:
        async def each() -> AsyncIterator[Event]:
            for event in self._stream:
                yield Event(json.dumps(event))

        yield each()


def ask_for(task: Task) -> Ask:
    async def patiently(make: Callable[[], Any]) -> Any:
        return await make()

    return Ask(task, 1, "token", lambda handle: None, patiently)


async def lived(system: JobSystem, task: Task) -> Submission:
    """A job's life without a driver: continuations at once, then the answer."""
    provider, ask = system.provider, ask_for(task)
    last = await provider.create(ask)
    for _ in range(3):
        if last.state == "running":
            assert last.handle is not None
            last = await provider.advance(ask, json.loads(json.dumps(last.handle, allow_nan=False)))
    submission = submission_of(
        ask, last, await provider.answer(ask, last), name="anthropic", handle=None, latency_s=1.0
    )
    submission.model_dump_json()
    return submission


SYSTEMS: Final[dict[str, Any]] = {
    transport: make_system(ReplayServer([]), "anthropic", f"system.transport={transport}")
    for transport in ("sync", "stream")
}


def provider(transport: str) -> Any:
    system = SYSTEMS[transport]
    assert isinstance(system, JobSystem)
    return system.provider


@given(st.lists(MESSAGES, min_size=1, max_size=3), st.lists(EVENTS, max_size=6), st.sampled_from([*SYSTEMS]))
def test_whatever_comes_is_an_answer_or_a_call_that_failed(
    replies: list[Any], stream: list[Any], transport: str
) -> None:
    system = SYSTEMS[transport]
    provider(transport)._api = AnyApi(replies, stream)
    try:
        submission = asyncio.run(lived(system, file_task()))
    except CallError:
        return
    assert submission.cost_usd is None or submission.cost_usd >= 0
