"""Reading Gemini's interactions: states, text and sources, tokens, the events of a stream. Pure.

An interaction lists its `steps`; those of type `model_output` hold the text, in parts. Older replies list
`outputs`, which are the parts themselves. An annotation's place counts UTF-8 bytes of its own part, a citation's
counts characters of the whole text. Whatever has another form is passed over, types that nobody knows are noted.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from adapters._citations import in_text, merged, source
from adapters._values import count, listed, mapping, mappings, scalars, word
from core.jobs import State
from core.model import Citation, Usage
from core.sse import Event
from core.strict_json import shown

STATES: Final[Mapping[str, State]] = {
    "queued": "queued",
    "in_progress": "running",
    "requires_continuation": "running",
    "completed": "completed",
    "incomplete": "incomplete",
    "budget_exceeded": "incomplete",
    # it waits for its caller, who has nothing to give
    "requires_action": "incomplete",
    "failed": "failed",
    "cancelled": "cancelled",
}
#: Codes of a failure that mean: the model or its filter would not.
_REFUSALS: Final = frozenset({"safety", "recitation", "blocklist", "prohibited_content", "spii", "content_filter"})
_STEPS: Final = frozenset(
    {
        "thought",
        "user_input",
        "model_output",
        "function_call",
        "function_result",
        "processing_call",
        "processing_result",
        *(
            f"{tool}_{end}"
            for tool in (
                "google_search",
                "google_maps",
                "url_context",
                "code_execution",
                "file_search",
                "mcp_server_tool",
            )
            for end in ("call", "result")
        ),
    }
)
_NOT_ASCII: Final = re.compile(r"[^\x00-\x7f]")


@dataclass(frozen=True, slots=True)
class Reading:
    """What an interaction says. `last` is the text of its last part, which a typed answer may stand in alone."""

    text: str | None
    last: str
    citations: tuple[Citation, ...]
    notes: tuple[str, ...]


def read(body: Mapping[str, Any]) -> Reading:
    """All the text, its parts joined as they are, and the sources in the order of their passages.

    Where no passage is annotated, the sources are the addresses that the text contains.
    """
    texts: list[str] = []
    found: list[Citation] = []
    notes: dict[str, None] = {}
    length = 0
    for part in _parts(body, notes):
        text = part.get("text")
        if part.get("type") != "text" or not isinstance(text, str):
            if part.get("type") not in ("text", *_STEPS):
                notes[f"a part of unknown type: {shown(part.get('type'))}"] = None
            continue
        places = Places(text)
        for annotation in mappings(part.get("annotations")):
            citation = _citation(annotation, places, length)
            if citation is not None:
                found.append(citation)
        texts.append(text)
        length += len(text)
    whole = "".join(texts)
    found.sort(key=lambda citation: (citation.start is None, citation.start or 0))
    return Reading(
        text=whole or None,
        last=texts[-1] if texts else "",
        citations=merged(found) if found else in_text(whole),
        notes=tuple(notes),
    )


def typed_text(reading: Reading) -> str:
    """The text that should be the typed answer: all of it, or the last part where a preamble stands before it."""
    whole = reading.text or ""
    try:
        json.loads(whole)
    except (ValueError, RecursionError):
        return reading.last
    return whole


def state(body: Mapping[str, Any], known: State) -> tuple[State, str]:
    """The state with what only the reasons tell (a refusal), and the reason for an end that is no success."""
    if known in ("completed", "queued", "running", "cancelled"):
        return known, ""
    error = error_of(body)
    code, message = word(error.get("code")), word(error.get("message"))
    if known == "failed":
        return ("refused" if code.lower() in _REFUSALS else "failed"), message or code
    return known, message or code or f"ended as {body.get('status')}"


def usage_of(body: Mapping[str, Any]) -> Usage | None:
    """The tokens. What tools put into the prompt is counted beside the input, thinking beside the output."""
    if not isinstance(body.get("usage"), Mapping):
        return None
    said = mapping(body, "usage")
    prompt, output = count(said.get("total_input_tokens")), count(said.get("total_output_tokens"))
    cached = count(said.get("total_cached_tokens"))
    thought = count(said.get("total_thought_tokens"))
    thought = count(said.get("total_reasoning_tokens")) if thought is None else thought
    whole = None if prompt is None else prompt + (count(said.get("total_tool_use_tokens")) or 0)
    return Usage(
        input=whole,
        cached_input=None if cached is None else min(cached, whole or 0),
        output=None if output is None else output + (thought or 0),
        reasoning=thought,
    )


def searches(body: Mapping[str, Any]) -> int:
    """How many Google searches the provider counted."""
    counts = mappings(mapping(body, "usage").get("grounding_tool_count"))
    return sum(count(entry.get("count")) or 0 for entry in counts if entry.get("type") == "google_search")


def echo_of(body: Mapping[str, Any]) -> dict[str, Any]:
    """What the server says it used: names as they are, and the counts of its usage."""
    names = {name: body.get(name) for name in ("id", "agent", "model", "environment_id")}
    found = scalars({name: value for name, value in names.items() if isinstance(value, str)})
    if isinstance(body.get("usage"), Mapping):
        counts = {name: value for name, value in scalars(body["usage"]).items() if count(value) is not None}
        found["usage"] = {**counts, "google_search": searches(body)}
    return found


class Places:
    """Where a byte of a text's UTF-8 form stands, in characters."""

    def __init__(self, text: str) -> None:
        self._length = len(text)
        #: of each character that takes several bytes: its place, the byte after it, the bytes too many up to there
        self._at: list[int] = []
        self._ends: list[int] = []
        self._extra: list[int] = []
        extra = 0
        for match in _NOT_ASCII.finditer(text):
            code = ord(match[0])
            width = 2 if code < 0x800 else 3 if code < 0x10000 else 4
            self._at.append(match.start())
            self._ends.append(match.start() + extra + width)
            extra += width - 1
            self._extra.append(extra)

    def character(self, byte: int) -> int:
        """The character that the byte lies in, at most the text's length."""
        passed = bisect_right(self._ends, byte)
        place = byte - (self._extra[passed - 1] if passed else 0)
        if passed < len(self._at):  # inside a character counts as its beginning
            place = min(place, self._at[passed])
        return min(place, self._length)


def _parts(body: Mapping[str, Any], notes: dict[str, None]) -> Iterator[Mapping[str, Any]]:
    """The parts that may hold text."""
    steps = listed(body.get("steps"))
    if not steps:
        yield from mappings(body.get("outputs"))
    for step in steps:
        kind = mapping(step).get("type")
        if not isinstance(kind, str) or kind not in _STEPS:
            notes[f"a step of unknown type: {shown(kind)}"] = None
        elif kind == "model_output":
            yield from mappings(step.get("content"))


def _citation(annotation: Mapping[str, Any], places: Places, before: int) -> Citation | None:
    """A `url_citation`, or the older form that names its `source`, which need not be an address."""
    if annotation.get("type", "url_citation") != "url_citation":
        return None
    url = annotation.get("url")
    if not isinstance(url, str):
        named = word(annotation.get("source"))
        url = named if named.startswith(("http://", "https://")) else None
    citation = source({"url": url, "title": annotation.get("title")})
    end = count(annotation.get("end_index"))
    # a zero is what Google's JSON leaves out
    start = count(annotation.get("start_index", 0))
    if citation is None or start is None or end is None or end < start:
        return citation
    first, last = places.character(start), places.character(end)
    return citation.model_copy(update={"start": before + first, "end": before + last})


def error_of(body: Mapping[str, Any]) -> Mapping[str, Any]:
    """What an interaction says went wrong: its code and message; empty where nothing is said."""
    found = mappings([body.get("error"), *listed(body.get("errors"))])
    return scalars(found[0]) if found else {}


class Stream:
    """Puts an interaction together from the events of its stream. An event that comes twice counts once.

    `last` is the id of the last event, from which a stream goes on; `failed` the stream's own error event: the
    interaction may go on without it.
    """

    def __init__(self) -> None:
        self.last: str | None = None
        self.failed: Mapping[str, Any] | None = None
        self._interaction: dict[str, Any] = {}
        self._steps: dict[int, _Step] = {}
        self._seen: set[str] = set()

    @property
    def id(self) -> str | None:
        """The interaction's id, as soon as an event has named it."""
        return word(self._interaction.get("id")) or None

    def take(self, event: Event) -> None:
        """Read one event; whatever is none (`[DONE]`) is passed over."""
        data = event.json()
        if not isinstance(data, Mapping):
            return
        mark = word(data.get("event_id"))
        if mark:
            if mark in self._seen:
                return
            self._seen.add(mark)
            self.last = mark
        kind = data.get("event_type", event.name)
        interaction = data.get("interaction")
        if isinstance(interaction, Mapping):
            self._interaction.update(interaction)
        elif kind == "interaction.status_update":
            self._interaction.setdefault("id", data.get("interaction_id"))
        elif kind == "error":
            self.failed = data
        elif kind in ("step.start", "content.start", "step.delta", "content.delta"):
            self._step(kind, data)
        elif isinstance(data.get("status"), str):  # a server that does not stream answers with the interaction
            self._interaction.update(data)

    def body(self) -> dict[str, Any]:
        """The interaction so far; the events' text stands in it where the interaction itself has none."""
        if self._interaction.get("steps") or self._interaction.get("outputs"):
            return self._interaction
        return {**self._interaction, "steps": [step.whole() for _, step in sorted(self._steps.items())]}

    def _step(self, kind: str, data: Mapping[str, Any]) -> None:
        index = count(data.get("index"))
        if index is None:
            return
        if kind.endswith("start"):
            self._steps[index] = _Step(data.get("step", data.get("content")))
        else:
            self._steps.setdefault(index, _Step(None)).add(data.get("delta"))


class _Step:
    """A step that is coming in. The older `content` events bring a part, which is a step's only one."""

    def __init__(self, begun: Any) -> None:
        begun = mapping(begun)
        kind = begun.get("type", "text")
        self._kind = "model_output" if kind == "text" else kind
        self._texts: list[str] = []
        self._annotations: list[Any] = []
        for part in (begun, *listed(begun.get("content"))):
            self.add(part)

    def add(self, part: Any) -> None:
        """Add text and annotations of a part or a delta."""
        part = mapping(part)
        if part.get("type") == "text":
            self._texts.append(word(part.get("text")))
        self._annotations += listed(part.get("annotations"))

    def whole(self) -> dict[str, Any]:
        """The step as a reply lists it."""
        part = {"type": "text", "text": "".join(self._texts), "annotations": self._annotations}
        return {"type": self._kind, "content": [part]}
