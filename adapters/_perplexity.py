"""What a response of Perplexity's Agent API says: its text, its sources, what it used and what it cost. Pure.

    output[]   message             content[]: {"type": "output_text", "text", "annotations"}, or a refusal
               search_results      results[]: {"id", "url", "title", "snippet"}; `[id]` in the text points there
               fetch_url_results   contents[]: {"url", "title", "snippet"}
               share_file          {"file_id", "filename"}, or {"error"}: the model may share it again
    usage      tokens, tool_calls_details, cost (exact)

All of it comes from outside: whatever has another form is passed over.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeGuard
from urllib.parse import quote

from adapters import _prices
from adapters._citations import merged, source
from core.jobs import Paid
from core.model import Citation, Usage
from core.strict_json import shown

#: Types of items that are known; others are noted.
_KNOWN: Final = frozenset(
    {
        *("message", "search_results", "fetch_url_results", "sandbox_results", "share_file", "function_call"),
        *("mcp_list_tools", "mcp_call", "skill_loaded", "advisor_result", "reasoning"),
    }
)
#: Dollars for one call of a tool, by its name in the usage; a sandbox costs once a session.
_TOOL_PRICES: Final[Mapping[str, float]] = {
    "search_web": 0.0025,
    "fetch_url": 0.0005,
    "people_search": 0.005,
    "finance_search": 0.005,
    "sandbox": 0.03,
}
#: The API charges tokens at the rates of the model's own vendor.
_MODELS: Final = {**_prices.OPENAI, **_prices.ANTHROPIC, **_prices.GEMINI}
#: `[3]`, `[3, 4]`; not the text of a link.
_MARKER: Final = re.compile(r"\[(\d{1,5}(?:\s?,\s?\d{1,5}){0,20})\](?!\()")
#: A count of tokens or calls above this is a mistake of the reply.
_MOST: Final = 10**15

Item = Mapping[str, Any]


def items_of(body: Mapping[str, Any]) -> list[Item]:
    """The items of a response's output."""
    return list(_entries(body, "output"))


def strange(items: Iterable[Item]) -> list[str]:
    """The types of items that nobody knows, each once, as a message shows them."""
    types = (item.get("type") for item in items)
    return list(dict.fromkeys(shown(word) for word in types if not isinstance(word, str) or word not in _KNOWN))


def text_of(items: Iterable[Item]) -> tuple[str, list[Citation]]:
    """The text of the messages, and the sources that its parts name themselves, placed in the whole text."""
    text = ""
    cited: list[Citation] = []
    for item in items:
        if item.get("type") != "message":
            continue
        text += "\n\n" if text else ""
        for part in _entries(item, "content"):
            piece = part.get("text")
            if not isinstance(piece, str):
                continue
            for note in _entries(part, "annotations"):
                found = source(note)
                start, end = count(note.get("start_index")), count(note.get("end_index"))
                if found is not None and start is not None and end is not None and start < end <= len(piece):
                    found = found.model_copy(update={"start": len(text) + start, "end": len(text) + end})
                if found is not None:
                    cited.append(found)
            text += piece
    return text, cited


def refusal_of(items: Sequence[Item]) -> str | None:
    """What the model says in place of an answer; None where there is an answer, or neither."""
    parts = [part for item in items if item.get("type") == "message" for part in _entries(item, "content")]
    if any(isinstance(part.get("text"), str) and part["text"].strip() for part in parts):
        return None
    refusals = (part.get("refusal") for part in parts if part.get("type") == "refusal")
    return next((words for words in refusals if isinstance(words, str)), None)


def citations_of(items: Iterable[Item], text: str, annotated: Iterable[Citation]) -> tuple[Citation, ...]:
    """Every source: those that the text cites, in its order, with the place of the first mention, then the rest.

    The place of a source that `[n]` points to is that marker. A number that two addresses share names neither.
    """
    sources: list[Citation] = []
    numbered: dict[str, Citation | None] = {}
    for item in items:
        of_item = {"search_results": "results", "fetch_url_results": "contents"}.get(str(item.get("type")), "")
        for entry in _entries(item, of_item):
            found = source(entry)
            if found is None:
                continue
            sources.append(found)
            known = numbered.setdefault(str(entry.get("id")), found)
            if known is not None and known.url != found.url:
                numbered[str(entry.get("id"))] = None
    marked: dict[str, Citation] = {}
    for match in _MARKER.finditer(text):
        for number in match[1].replace(" ", "").split(","):
            found = numbered.get(number)
            if found is not None and number not in marked:
                marked[number] = found.model_copy(update={"start": match.start(), "end": match.end()})
    named = [*annotated, *marked.values()]
    named.sort(key=lambda citation: len(text) if citation.start is None else citation.start)
    return merged([*named, *sources])


def usage_of(body: Mapping[str, Any]) -> Usage | None:
    """The tokens of all the job's steps."""
    usage = inside(body, "usage")
    if not usage:
        return None
    return Usage(
        input=count(usage.get("input_tokens")),
        cached_input=count(inside(usage, "input_tokens_details").get("cache_read_input_tokens")),
        output=count(usage.get("output_tokens")),
        reasoning=count(inside(usage, "output_tokens_details").get("reasoning_tokens")),
    )


def tool_calls(body: Mapping[str, Any]) -> Iterator[tuple[str, int, float | None]]:
    """The tools that were called: name, calls, dollars (as reported, else by the list; None is unknown)."""
    for name, tool in inside(body, "usage", "tool_calls_details").items():
        calls = count(tool.get("invocation")) if isinstance(tool, Mapping) else None
        if not calls:
            continue
        usd, price = _number(tool.get("cost_usd")), _TOOL_PRICES.get(name)
        if usd is None and price is not None:
            usd = price if name == "sandbox" else price * calls
        yield name, calls, usd


def paid_of(body: Mapping[str, Any], own_price: _prices.ModelPrice | None) -> Paid:
    """As the reply says; else tokens (at `own_price`, or the model's list price) and tools; else unknown."""
    cost = inside(body, "usage", "cost")
    if cost.get("currency", "USD") == "USD":
        parts = {name: _number(part) for name, part in cost.items() if name != "total_cost"}
        found = _prices.reported(_number(cost.get("total_cost")), parts)
        if found is not None:
            return found
    usage, fees = usage_of(body), {name: usd for name, _, usd in tool_calls(body)}
    known = {name: usd for name, usd in fees.items() if usd is not None}
    if usage is None or usage.input is None or usage.output is None or len(known) < len(fees):
        return Paid()
    price = own_price or _prices.price_of(str(body.get("model")).rpartition("/")[2], _MODELS)
    cached = usage.cached_input or 0
    written = count(inside(body, "usage", "input_tokens_details").get("cache_creation_input_tokens")) or 0
    fresh = max(0, usage.input - cached - written)
    return _prices.tokens_paid(price, fresh=fresh, cached=cached, written=written, output=usage.output, fees=known)


def files_of(page: Any, items: Iterable[Item]) -> tuple[dict[str, str], list[str]]:
    """The files of a response, id → name, and notes on those that could not be shared.

    First those that only the list has, oldest first, then those that the model shared, in its order: where a name
    occurs twice, the last one is what the model meant.
    """
    shared: dict[str, str] = {}
    notes: list[str] = []
    for item in items:
        if item.get("type") == "share_file":
            file, name = item.get("file_id"), item.get("filename")
            if usable(file) and isinstance(name, str):
                shared.pop(file, None)
                shared[file] = name
            else:
                notes.append(f"a file was not shared: {shown(item.get('error'))}")
    entries = list(_entries(page, "data")) if isinstance(page, Mapping) else []
    listed: dict[str, str] = {}
    for entry in sorted(entries, key=lambda entry: _number(entry.get("created_at")) or 0.0):
        file, name = entry.get("id"), entry.get("filename")
        if usable(file) and isinstance(name, str) and file not in shared:
            listed[file] = name
    return {**listed, **shared}, notes


# values of any kind


def usable(name: Any) -> TypeGuard[str]:
    """Can this stand in a path? `..` would lead elsewhere."""
    return isinstance(name, str) and bool(name.strip("."))


def quoted(name: str) -> str:
    """A name as one part of a path."""
    return quote(name, safe="", errors="replace")


def inside(value: Mapping[str, Any], *names: str) -> Mapping[str, Any]:
    """The object under these names, one within the other; an empty one where there is none."""
    for name in names:
        inner = value.get(name)
        value = inner if isinstance(inner, Mapping) else {}
    return value


def count(value: Any) -> int | None:
    """A whole number from 0 on; whatever else stands there is unknown."""
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _MOST else None


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= _MOST:
        return None
    return float(value)


def _entries(item: Mapping[str, Any], name: str) -> Iterator[Mapping[str, Any]]:
    value = item.get(name)
    for entry in value if isinstance(value, list) else ():
        if isinstance(entry, Mapping):
            yield entry
