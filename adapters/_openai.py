"""What OpenAI's responses say: state, text, citations, containers, tokens and dollars. Pure; no reply crashes it.

A response is the JSON object of the Responses API. `cleaned`, `refusal`, `late` and `annotated` serve chat
completions as well. Whatever has another form than expected is passed over.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from adapters import _prices
from adapters._citations import source
from adapters._prices import ModelPrice
from adapters._values import count, is_id, listed, mapping, mappings, scalars, word
from core.errors import CallError
from core.jobs import Paid, Snapshot, State, account_fault, state_of
from core.judge.completion import FILTERED
from core.model import Citation, Usage
from core.reply import MESSAGE_LIMIT, Reply, from_status, shortened
from core.strict_json import shown, without_surrogates

_STATES: Final[Mapping[str, State]] = {
    "queued": "queued",
    "in_progress": "running",
    "completed": "completed",
    "incomplete": "incomplete",
    "failed": "failed",
    "cancelled": "cancelled",
}
#: Items of an output that are read or may be passed over; others are noted.
_ITEMS: Final = ("message", "reasoning", "web_search_call", "code_interpreter_call", "compaction")
#: What a service tier does to the price of tokens; a tier that is not here makes it unknown.
_TIERS: Final[Mapping[str | None, float]] = {None: 1.0, "default": 1.0, "flex": 0.5}

Items = Sequence[Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Held:
    """A file of a container. `made`: seconds since 1970, 0 where it is not said."""

    container: str
    file: str
    path: str
    made: int = 0


# what chat completions have in common with responses


def cleaned(value: Any) -> Any:
    """A reply with texts that can be written; raises CallError `malformed` where it is nested beyond reading."""
    try:
        return without_surrogates(value)
    except RecursionError as error:
        raise CallError("malformed", "the reply is nested too deeply to be read") from error


def refusal(body: Mapping[str, Any]) -> CallError:
    """The error that a 2xx reply or an event carries in `error`, or is itself, as the error table has it."""
    error = body.get("error")
    if not isinstance(error, Mapping):
        error = {"code": body.get("code"), "message": body.get("message") or error}
    # what an error nests besides is of no use, and may be too deep to be written
    words = scalars(error)
    reply = Reply(200, {}, json.dumps({"error": words}).encode(), 0.0, "")
    return CallError(from_status(reply, 0.0).kind, f"an error in place of an answer: {why(words)}")


def late(deadline_s: float) -> Snapshot:
    """The end of a request that was not answered before its deadline."""
    said = f"no answer within {deadline_s:g} s (system.timeout_s)"
    return Snapshot("timed_out", word="timed_out", said=said)


def annotated(annotations: Any, text: str, *, shift: int = 0) -> Iterator[Citation]:
    """The sources in a text's `url_citation` annotations, each with its passage, moved by `shift` characters.

    A passage that does not lie inside the text is left out.
    """
    for entry in mappings(annotations):
        if entry.get("type") not in ("url_citation", None):
            continue
        found = source(entry)
        if found is None:
            continue
        place = mapping(entry.get("url_citation", entry))
        start, end = count(place.get("start_index")), count(place.get("end_index"))
        if start is not None and end is not None and start < end <= len(text):
            found = found.model_copy(update={"start": start + shift, "end": end + shift})
        yield found


# how a response stands


def snapshot_of(response: Mapping[str, Any]) -> Snapshot:
    """What a response says of itself; its body is cleaned. Raises CallError for what is no response."""
    response = cleaned(response)
    if not is_id(response.get("id")):
        if isinstance(response.get("error"), Mapping):
            raise refusal(response)
        raise CallError("malformed", f"openai: a response without an id: {shown(response)}")
    status = response.get("status")
    state, said, void = state_of(status, _STATES), "", None
    if state == "failed":
        said = why(response.get("error"))
        void = account_fault("openai", scalars(response.get("error")))
    elif state == "incomplete":
        reason = mapping(response, "incomplete_details").get("reason")
        said = f"stopped early: {shown(reason)}"
        state = "refused" if isinstance(reason, str) and reason in FILTERED else state
    elif state == "completed" and (refused := _refused(items_of(response))):
        state, said = "refused", f"the model refused: {shortened(refused, MESSAGE_LIMIT)}"
    return Snapshot(state, body=response, word=shortened(word(status), 60), said=said, void=void)


def why(error: Any) -> str:
    """The words of an error; empty where there are none."""
    words = [mapping(error).get(name) for name in ("code", "message")]
    return shortened(
        ": ".join(str(part) for part in words if part and isinstance(part, (str, int))), MESSAGE_LIMIT
    )


def _refused(items: Items) -> str:
    """What the model said in place of an answer; empty where there is an answer."""
    parts = [part for item in items for part in _parts(item)]
    if any(part.get("type") == "output_text" and part.get("text") for part in parts):
        return ""
    said = (part.get("refusal") for part in parts if part.get("type") == "refusal")
    return next((text for text in said if isinstance(text, str) and text.strip()), "")


# what a response holds


def items_of(response: Mapping[str, Any]) -> Items:
    """The items of its output."""
    return mappings(response.get("output"))


def strangers(items: Items) -> list[str]:
    """Types of items that nobody asked for, each once."""
    kinds = dict.fromkeys(str(item.get("type")) for item in items)
    return [kind for kind in kinds if kind not in _ITEMS]


def answer_in(items: Items) -> tuple[str, list[Citation]]:
    """The text of the final messages and its citations.

    Messages say whether they are a final answer or a commentary on the way; where none is final, those that say
    nothing count, and where all are commentary, all.
    """
    messages = [item for item in items if item.get("type") == "message"]
    final = [item for item in messages if item.get("phase") == "final_answer"]
    final = final or [item for item in messages if item.get("phase") != "commentary"] or messages
    text, citations = "", list[Citation]()
    for item in final:
        gap = "\n\n" if text else ""
        for part in _parts(item):
            written = part.get("text")
            if part.get("type") == "output_text" and isinstance(written, str) and written:
                citations += annotated(part.get("annotations"), written, shift=len(text) + len(gap))
                text, gap = text + gap + written, ""
    return text, citations


def searched(items: Items) -> Iterator[Citation]:
    """The pages that the searches found."""
    for item in items:
        if item.get("type") == "web_search_call":
            for entry in listed(mapping(item, "action").get("sources")):
                found = source(entry)
                if found is not None:
                    yield found


def containers_of(items: Items) -> list[str]:
    """The containers of a run, each once: where code ran, and where files lie that a message names."""
    ran = [item.get("container_id") for item in items if item.get("type") == "code_interpreter_call"]
    found = [*ran, *(file.container for file in named_files(items))]
    return list(dict.fromkeys(name for name in map(word, found) if is_id(name)))


def named_files(items: Items) -> list[Held]:
    """The files that messages name."""
    found: list[Held] = []
    for part in (part for item in items for part in _parts(item)):
        for entry in mappings(part.get("annotations")):
            if entry.get("type") == "container_file_citation":
                container, file, path = (word(entry.get(name)) for name in ("container_id", "file_id", "filename"))
                if is_id(container) and is_id(file):
                    found.append(Held(container, file, path))
    return found


def echoed(response: Mapping[str, Any]) -> dict[str, Any]:
    """What the server says it used."""
    said = {
        "id": response.get("id"),
        "model": response.get("model"),
        "effort": mapping(response, "reasoning").get("effort"),
        "service_tier": response.get("service_tier"),
    }
    return scalars({name: value for name, value in said.items() if isinstance(value, str)})


def seconds(response: Mapping[str, Any]) -> float | None:
    """How long it took by the provider's own clock, which a restart of ours does not lengthen."""
    began, ended = count(response.get("created_at")), count(response.get("completed_at"))
    return None if began is None or ended is None or ended < began else float(ended - began)


def _parts(item: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The parts of a message; none of anything else."""
    return mappings(item.get("content")) if item.get("type") == "message" else []


# what a response cost


def usage_of(response: Mapping[str, Any]) -> Usage | None:
    """Its tokens; None where it does not say."""
    raw = response.get("usage")
    if not isinstance(raw, Mapping):
        return None
    return Usage(
        input=count(raw.get("input_tokens")),
        cached_input=count(mapping(raw, "input_tokens_details").get("cached_tokens")),
        output=count(raw.get("output_tokens")),
        reasoning=count(mapping(raw, "output_tokens_details").get("reasoning_tokens")),
    )


def paid(response: Mapping[str, Any], *, model: str, price: ModelPrice | None) -> tuple[Paid, list[str]]:
    """Tokens at the model's price, a fee for each search and each container; notes on what is doubtful about it.

    `price` goes before the list. Unknown where the tokens, the model or the tier have no price.
    """
    items, usage = items_of(response), usage_of(response)
    fees = _fees(response, items)
    if usage is None or usage.input is None or usage.output is None:
        return Paid(None, "unknown", fees), []
    if price is None:
        told = response.get("model")
        price = _prices.price_of(told if isinstance(told, str) else model, _prices.OPENAI)
        price = _of_tier(price, response.get("service_tier"))
    cached = min(usage.cached_input or 0, usage.input)
    written = count(mapping(response, "usage", "input_tokens_details").get("cache_write_tokens")) or 0
    written = min(written, usage.input - cached)
    fresh = usage.input - cached - written
    result = _prices.tokens_paid(
        price, fresh=fresh, output=usage.output, cached=cached, written=written, fees=fees
    )
    if price is None or price.long_above is None or usage.input <= price.long_above:
        return result, []
    above = f"more than {price.long_above:,} tokens of input"
    return result, [f"{above} over all calls, priced as one long call: the cost may be less"]


def _fees(response: Mapping[str, Any], items: Items) -> dict[str, float]:
    searches = count(mapping(response, "tool_usage", "web_search").get("num_requests"))
    if searches is None:
        searches = sum(item.get("type") == "web_search_call" for item in items)
    fees = {
        "web_search": searches * _prices.OPENAI_SEARCH,
        "container": len(containers_of(items)) * _prices.OPENAI_CONTAINER,
    }
    return {name: usd for name, usd in fees.items() if usd}


def _of_tier(price: ModelPrice | None, tier: Any) -> ModelPrice | None:
    share = _TIERS.get(tier) if tier is None or isinstance(tier, str) else None
    if price is None or share is None:
        return None
    cached = None if price.cached_input is None else price.cached_input * share
    return replace(price, input=price.input * share, output=price.output * share, cached_input=cached)
