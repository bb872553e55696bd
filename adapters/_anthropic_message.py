"""A message of Anthropic's Messages API: put together from a stream's events, and read.

    message_start  content_block_start  content_block_delta…  content_block_stop  message_delta  message_stop

with `ping` anywhere and `error` in place of an end. All of it comes from outside: whatever has another form is
passed over.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from adapters._citations import merged, source
from adapters._values import mapping, mappings, word
from core.model import Citation
from core.strict_json import decode, shown

#: A delta's type → the field of a block that it adds to.
_DELTAS: Final = {
    "text_delta": "text",
    "thinking_delta": "thinking",
    "signature_delta": "signature",
    "input_json_delta": "partial_json",
}
#: Blocks that say nothing to whoever reads the answer.
_SILENT: Final = frozenset({"thinking", "redacted_thinking", "server_tool_use", "container_upload"})


class Gathering:
    """The message that a stream's events make up so far.

    Events have no ids. What comes again of a message that has begun, or of a block that has ended, counts once; a
    piece of a text that comes twice in a row can't be told from a text that says it twice.
    """

    def __init__(self) -> None:
        self.error: Mapping[str, Any] | None = None
        self._message: dict[str, Any] | None = None
        self._blocks: dict[int, dict[str, Any]] = {}
        self._stopped: set[int] = set()
        self._pieces: dict[tuple[int, str], list[str]] = {}

    @property
    def began(self) -> bool:
        """Whether the model was put to work."""
        return self._message is not None

    def take(self, event: Any) -> bool:
        """Add one event; whether it is the last one. A whole message counts: a server may not stream."""
        event = mapping(event)
        kind = word(event.get("type"))
        if kind == "message":
            self._message = dict(event)
        elif kind == "message_start" and self._message is None:
            self._message = {**mapping(event.get("message")), "content": []}
        elif kind == "error":
            self.error = event
        elif kind == "message_delta" and self._message is not None:
            self._end(self._message, event)
        elif isinstance(index := event.get("index"), int) and index not in self._stopped:
            self._of_block(kind, index, event)
        return kind == "message_stop"

    def message(self) -> dict[str, Any] | None:
        """The message; None where its end did not come: it has a reason to stop then."""
        if self._message is None or not self._message.get("stop_reason"):
            return None
        if not self._blocks:
            return self._message
        return {**self._message, "content": [self._block(index) for index in sorted(self._blocks)]}

    def _end(self, message: dict[str, Any], event: Mapping[str, Any]) -> None:
        message.update({name: value for name, value in mapping(event.get("delta")).items() if value is not None})
        # counts are totals: they replace those of the beginning, and what is left out stands
        later = {name: value for name, value in mapping(event.get("usage")).items() if value is not None}
        message["usage"] = {**mapping(message.get("usage")), **later}

    def _of_block(self, kind: str, index: int, event: Mapping[str, Any]) -> None:
        known = index in self._blocks
        if kind == "content_block_start" and not known:
            self._blocks[index] = dict(mapping(event.get("content_block")))
        elif kind == "content_block_delta" and known:
            self._add(index, mapping(event.get("delta")))
        elif kind == "content_block_stop" and known:
            self._stopped.add(index)

    def _add(self, index: int, delta: Mapping[str, Any]) -> None:
        kind = word(delta.get("type"))
        if kind == "citations_delta":
            known = self._blocks[index].get("citations")
            self._blocks[index]["citations"] = [*mappings(known), mapping(delta.get("citation"))]
        elif kind in _DELTAS:
            field = _DELTAS[kind]
            self._pieces.setdefault((index, field), []).append(word(delta.get(field)))

    def _block(self, index: int) -> dict[str, Any]:
        block = dict(self._blocks[index])
        for field in ("text", "thinking", "signature"):
            pieces = self._pieces.get((index, field))
            if pieces:
                block[field] = word(block.get(field)) + "".join(pieces)
        written = "".join(self._pieces.get((index, "partial_json"), ()))
        if written:
            try:
                block["input"] = decode(written)
            except ValueError:
                block["input"] = {}  # the call was cut; whoever continues has to send an object
        return block


@dataclass(frozen=True, slots=True)
class Contents:
    """What stands in a message. `text`: all of it; `last`: what follows the last tool; `file_ids` in order."""

    text: str
    last: str
    citations: tuple[Citation, ...]
    file_ids: tuple[str, ...]
    notes: tuple[str, ...]


def read(content: Sequence[Any]) -> Contents:
    """Read a message's blocks.

    Blocks of text that follow each other are one text, cut where a citation begins; what a tool did between two
    texts sets them apart by an empty line. Citations carry the block's place in the text.
    """
    pieces: list[str] = []
    length = last_at = 0
    apart = False
    citations: list[Citation] = []
    notes: dict[str, None] = {}
    documents = _documents(content)
    for block in mappings(content):
        kind = word(block.get("type"))
        if kind != "text":
            apart = True
            notes.update(dict.fromkeys(_remarks(kind, block)))
            continue
        if apart and length:
            pieces.append("\n\n")
            length += 2
        text = word(block.get("text"))
        if apart:
            last_at = length
        apart = False
        pieces.append(text)
        for entry in mappings(block.get("citations")):
            found = source(_located(entry, documents))
            if found is None:
                notes[f"a citation without an address: {shown(entry)}"] = None
            else:
                citations.append(found.model_copy(update={"start": length, "end": length + len(text)}))
        length += len(text)
    whole = "".join(pieces)
    return Contents(
        text=whole,
        last=whole[last_at:],
        citations=merged(citations),
        file_ids=tuple(dict.fromkeys(_file_ids(content))),
        notes=tuple(notes),
    )


def _remarks(kind: str, block: Mapping[str, Any]) -> Iterator[str]:
    """What was odd about a block that is no text."""
    if kind.endswith("_tool_result"):
        code = word(mapping(block.get("content")).get("error_code"))
        if code:
            yield f"{kind}: {code[:80]}"
    elif kind not in _SILENT:
        yield f"an item of unknown type: {shown(kind)}"


def _file_ids(content: Sequence[Any]) -> Iterator[str]:
    """The files that code has left: each result of a run lists its own."""
    for block in mappings(content):
        if word(block.get("type")).endswith("code_execution_tool_result"):
            for output in mappings(mapping(block.get("content")).get("content")):
                if file_id := word(output.get("file_id")):
                    yield file_id


def _documents(content: Sequence[Any]) -> list[tuple[str, str]]:
    """The address and the title of every page that was fetched, in order."""
    found = []
    for block in mappings(content):
        if block.get("type") == "web_fetch_tool_result":
            page = mapping(block.get("content"))
            if page.get("type") == "web_fetch_result":
                found.append((word(page.get("url")), word(mapping(page.get("content")).get("title"))))
    return found


def _located(entry: Mapping[str, Any], documents: Sequence[tuple[str, str]]) -> Mapping[str, Any]:
    """A citation with its address: its own, or that of the fetched page that it quotes."""
    if entry.get("url"):
        return entry
    title = word(entry.get("document_title"))
    url = word(entry.get("source"))
    named = {address for address, known in documents if title and known == title}
    index = entry.get("document_index")
    if not url and len(named) == 1:
        url = named.pop()
    elif not url and not title and isinstance(index, int) and 0 <= index < len(documents):
        url = documents[index][0]
    return {**entry, "url": url, "title": word(entry.get("title")) or title}
