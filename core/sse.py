"""Server-sent events out of the bytes of a stream, as the WHATWG's HTML standard describes them (section 9.2).

Events are separated by an empty line; lines end with LF, CRLF or CR; a line that begins with a colon is a comment
(keep-alive) and is passed over; several `data` lines are joined by a line feed. Unlike there, an event that the
clean end of a stream closes counts: some servers leave out the last empty line. A connection that breaks raises.
"""

from __future__ import annotations

import codecs
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any, Final

from core.errors import CallError
from core.strict_json import without_surrogates

#: Characters of one event that are kept; a longer one is refused.
MOST_CHARACTERS: Final = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Event:
    """One event. `name` is "" where the stream gives none, `id` the last id that was seen."""

    data: str
    name: str = ""
    id: str | None = None

    def json(self) -> Any:
        """The data as JSON whose texts can be written; None where it is not JSON (`[DONE]`)."""
        try:
            return without_surrogates(json.loads(self.data))
        except (ValueError, RecursionError):
            return None


class Parser:
    """Feed it bytes as they come; it gives the events that are complete. Each byte is looked at once."""

    def __init__(self) -> None:
        self._decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        self._line: list[str] = []
        self._data: list[str] = []
        self._size = 0
        self._name = ""
        self._id: str | None = None
        self._first = True
        self._held = ""

    def feed(self, piece: bytes) -> list[Event]:
        """The events that this piece completes. Raises CallError `malformed` for an event without an end."""
        text = self._held + self._decode(piece)
        if self._first and text:
            text, self._first = text.removeprefix("\ufeff"), False
        # a CR at the end may be half of a CRLF: it waits for the next piece
        self._held = "\r" if text.endswith("\r") else ""
        text = text[: len(text) - len(self._held)].replace("\r\n", "\n").replace("\r", "\n")
        first, *others = text.split("\n")
        self._line.append(first)
        self._size += len(text)
        if self._size > MOST_CHARACTERS:
            raise CallError("malformed", f"an event is longer than {MOST_CHARACTERS:,} characters")
        found = []
        for start in others:
            event = self._take("".join(self._line))
            self._line = [start]
            if event is not None:
                found.append(event)
        return found

    def end(self) -> list[Event]:
        """The event that the end of the stream completes, if there is one."""
        left = self._held or self._data or any(self._line)
        return [*self.feed(b"\n"), *self.feed(b"\n")] if left else []

    def _take(self, line: str) -> Event | None:
        if not line:
            event = Event("\n".join(self._data), self._name, self._id) if self._data else None
            self._data, self._size, self._name = [], 0, ""
            return event
        field, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if field == "data":
            self._data.append(value)
        elif field == "event":
            self._name = value
        elif field == "id" and "\0" not in value:
            self._id = value
        return None


async def events(pieces: AsyncIterator[bytes]) -> AsyncIterator[Event]:
    """The events of a stream, each as soon as it is complete."""
    parser = Parser()
    async for piece in pieces:
        for event in parser.feed(piece):
            yield event
    for event in parser.end():
        yield event
