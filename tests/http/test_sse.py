"""Server-sent events: the same events wherever the bytes are cut."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.errors import CallError
from core.sse import MOST_CHARACTERS, Event, Parser


def parsed(*pieces: bytes) -> list[Event]:
    parser = Parser()
    return [event for piece in pieces for event in parser.feed(piece)] + parser.end()


@pytest.mark.parametrize(
    ("text", "events"),
    [
        ("", []),
        ("data: a\n\n", [Event("a")]),
        ("data:a\ndata: b\n\n", [Event("a\nb")]),
        ("event: done\nid: 7\ndata: {}\n\n", [Event("{}", "done", "7")]),
        ("id: 1\ndata: a\n\ndata: b\n\n", [Event("a", "", "1"), Event("b", "", "1")]),
        (": keep-alive\n\n: again\ndata: a\n\n", [Event("a")]),
        ("data: a\r\n\r\ndata: b\r\rdata: c\n\n", [Event("a"), Event("b"), Event("c")]),
        ("\ufeffdata: a\n\n", [Event("a")]),
        ("data: Ж–😀\n\n", [Event("Ж–😀")]),
        ("event: nothing\n\n", []),
        ("data: [DONE]", [Event("[DONE]")]),
        ("data: no last empty line\n", [Event("no last empty line")]),
        ("retry: 10\nunknown: x\ndata\n\n", [Event("")]),
    ],
)
def test_events(text: str, events: list[Event]) -> None:
    raw = text.encode()
    assert parsed(raw) == events
    assert parsed(*(raw[at : at + 1] for at in range(len(raw)))) == events


@given(st.text(alphabet="data: idevnt\r\n\ufeffЖ", max_size=60), st.lists(st.integers(0, 120), max_size=6))
def test_where_the_bytes_are_cut_does_not_matter(text: str, cuts: list[int]) -> None:
    raw = text.encode()
    places = sorted({0, len(raw), *(cut for cut in cuts if cut < len(raw))})
    pieces = [raw[start:end] for start, end in pairwise(places)]
    assert parsed(*pieces) == parsed(raw)


def test_an_event_without_an_end_is_refused() -> None:
    parser = Parser()
    with pytest.raises(CallError, match="longer than"):
        for _ in range(MOST_CHARACTERS // 1_000_000 + 2):
            parser.feed(b"x" * 1_000_000)


@pytest.mark.parametrize(
    ("data", "value"), [('{"a": 1}', {"a": 1}), ("[DONE]", None), ("[" * 100_000, None), ('"\\ud800"', "\ufffd")]
)
def test_data_as_json(data: str, value: object) -> None:
    assert Event(data).json() == value
