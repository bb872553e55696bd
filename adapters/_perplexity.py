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
from typing import Any, Final

from adapters import _prices
from adapters._citations import merged, source
from adapters._values import amount, count, is_id, mapping, mappings, word
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
#: `[3]`, `[3, 4]`; not the text of a link.
_MARKER: Final = re.compile(r"\[(\d{1,5}(?:\s?,\s?\d{1,5}){0,20})\](?!\()")

Item = Mapping[str, Any]


def items_of(body: Mapping[str, Any]) -> list[Item]:
    """The items of a response's output."""
    return mappings(body.get("output"))


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
        for part in mappings(item.get("content")):
            piece = part.get("text")
            if not isinstance(piece, str):
                continue
            for note in mappings(part.get("annotations")):
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
    parts = [part for item in items if item.get("type") == "message" for part in mappings(item.get("content"))]
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
        for entry in mappings(item.get(of_item)):
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
    usage = mapping(body, "usage")
    if not usage:
        return None
    return Usage(
        input=count(usage.get("input_tokens")),
        cached_input=count(mapping(usage, "input_tokens_details").get("cache_read_input_tokens")),
        output=count(usage.get("output_tokens")),
        reasoning=count(mapping(usage, "output_tokens_details").get("reasoning_tokens")),
    )


def tool_calls(body: Mapping[str, Any]) -> Iterator[tuple[str, int, float | None]]:
    """The tools that were called: name, calls, dollars (as reported, else by the list; None is unknown)."""
    for name, tool in mapping(body, "usage", "tool_calls_details").items():
        calls = count(tool.get("invocation")) if isinstance(tool, Mapping) else None
        if not calls:
            continue
        usd, price = amount(tool.get("cost_usd")), _prices.PERPLEXITY_TOOLS.get(name)
        if usd is None and price is not None:
            usd = price if name == "sandbox" else price * calls
        yield name, calls, usd


def paid_of(body: Mapping[str, Any], own_price: _prices.ModelPrice | None) -> Paid:
    """As the reply says; else tokens (at `own_price`, or the model's list price) and tools; else unknown."""
    cost = mapping(body, "usage", "cost")
    if cost.get("currency", "USD") == "USD":
        parts = {name: amount(part) for name, part in cost.items() if name != "total_cost"}
        found = _prices.reported(amount(cost.get("total_cost")), parts)
        if found is not None:
            return found
    usage, fees = usage_of(body), {name: usd for name, _, usd in tool_calls(body)}
    known = {name: usd for name, usd in fees.items() if usd is not None}
    if usage is None or usage.input is None or usage.output is None or len(known) < len(fees):
        return Paid()
    price = own_price or _prices.price_of(str(body.get("model")).rpartition("/")[2], _prices.PERPLEXITY)
    cached = usage.cached_input or 0
    written = count(mapping(body, "usage", "input_tokens_details").get("cache_creation_input_tokens")) or 0
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
            file, name = word(item.get("file_id")), item.get("filename")
            if is_id(file) and isinstance(name, str):
                shared.pop(file, None)
                shared[file] = name
            else:
                notes.append(f"a file was not shared: {shown(item.get('error'))}")
    entries = mappings(mapping(page).get("data"))
    listed: dict[str, str] = {}
    for entry in sorted(entries, key=lambda entry: amount(entry.get("created_at")) or 0.0):
        file, name = word(entry.get("id")), entry.get("filename")
        if is_id(file) and isinstance(name, str) and file not in shared:
            listed[file] = name
    return {**listed, **shared}, notes
