"""Reading a chat completion: the answer, what it cost, and why there is none.

One rule for every judge that asks a chat model: an answer that was cut, filtered or refused is an error
with its reason, never a verdict; what is known of usage and cost is kept with the error too.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from core.digest import canonical_json, plain
from core.errors import CallError
from core.judge.question import Answer, Question
from core.judge.structured import parse_answer
from core.model import Usage
from core.prices import Price, cost
from core.reply import shortened
from core.strict_json import without_surrogates

#: Finish reasons in the words of several vendors, lower case.
CUT: Final = frozenset({"length", "max_tokens", "model_length", "model_context_window_exceeded"})
FILTERED: Final = frozenset(
    {"content_filter", "refusal", "safety", "recitation", "blocklist", "prohibited_content", "spii"}
)
#: For an estimate: characters of a token in English, and tokens of an answer with a little thinking.
CHARACTERS_PER_TOKEN: Final = 4
OUTPUT_TOKENS: Final = 600

#: What a model is told that can't be held to a schema. It stands in the system prompt, which all
#: questions share.
_INSTRUCTION: Final = (
    "Answer with one JSON object and nothing else. It must be valid under this JSON Schema, "
    "its fields in this order:\n"
)


@dataclass(frozen=True, slots=True)
class Bill:
    """What a reply says about its cost."""

    usage: Usage | None = None
    usd: float | None = None
    source: str = "unknown"


def instructed(question: Question, *, structured: bool) -> str:
    """The system text, with the schema in words where the request can't carry it."""
    if structured:
        return question.system
    schema = json.dumps(plain(question.schema), ensure_ascii=False, separators=(",", ":"))
    return f"{question.system}\n\n{_INSTRUCTION}{schema}"


def bill(reply: Mapping[str, Any], price: Price | None) -> Bill:
    """Tokens and dollars of a reply: as reported, else computed from the price, else unknown.

    `usage.cost` is the server's word, `usage.list_cost` what a client library made of its price list.
    """
    raw = reply.get("usage")
    if not isinstance(raw, Mapping):
        return Bill()
    usage = Usage(
        input=_count(raw.get("prompt_tokens")),
        cached_input=_count(_inside(raw, "prompt_tokens_details", "cached_tokens")),
        output=_count(raw.get("completion_tokens")),
        reasoning=_count(_inside(raw, "completion_tokens_details", "reasoning_tokens")),
    )
    reported = raw.get("cost")
    if isinstance(reported, Mapping):
        reported = reported.get("total_cost")
    if isinstance(reported, (int, float)) and not isinstance(reported, bool) and 0 <= reported < math.inf:
        return Bill(usage, float(reported), "reported")
    listed = raw.get("list_cost") if price is None else None
    computed = float(listed) if isinstance(listed, (int, float)) else cost(usage, price)
    return Bill(usage, computed, "unknown" if computed is None else "computed")


def read_completion(
    reply: Mapping[str, Any], question: Question, price: Price | None, *, request_id: str | None = None
) -> Answer:
    """The answer in a chat completion's body.

    Raises CallError with what is known of usage, cost, model and raw text: `truncated`, `refused`, `empty`,
    `malformed`, or `server` when the provider says that generation broke.
    """
    paid = bill(reply, price)
    named = reply.get("model")
    model = named if isinstance(named, str) else None
    text: str | None = None
    try:
        choice = first_choice(reply)
        message = choice.get("message")
        message = message if isinstance(message, Mapping) else {}
        text = text_of(message)
        finish = str(choice.get("finish_reason") or "").lower() or None
        _check_finish(finish, message, text)
        value = parse_answer(text, question.schema, digest=question.schema_digest, exact=question.exact)
        question.check(value)
    except CallError as error:
        raise CallError(
            error.kind,
            error.message,
            request_id=request_id,
            usage=paid.usage,
            cost_usd=paid.usd,
            raw=text if text is not None else shortened(canonical_json(dict(reply)), 2000),
            model=model,
            partial=error.partial,
        ) from error
    return Answer(
        value=value,
        model=model,
        raw=text,
        finish_reason=finish,
        usage=paid.usage,
        cost_usd=paid.usd,
        cost_source=paid.source,
    )


def first_choice(reply: Mapping[str, Any]) -> Mapping[str, Any]:
    """The first choice of a chat completion's body; raises CallError `malformed`."""
    choices = reply.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    if not isinstance(choice, Mapping):
        raise CallError("malformed", "the reply has no choices[0]; is base_url a chat completions endpoint?")
    return choice


def _check_finish(finish: str | None, message: Mapping[str, Any], text: str) -> None:
    if finish in CUT:
        raise CallError("truncated", "the answer was cut at max_output_tokens: raise it, thinking shares it")
    if finish in FILTERED:
        raise CallError("refused", f"the provider's filter stopped the answer ({finish})")
    refusal = message.get("refusal")
    if isinstance(refusal, str) and refusal.strip():
        raise CallError("refused", f"the model refused: {shortened(refusal, 300)}")
    if finish == "error" and not text.strip():
        raise CallError("server", "the provider broke off the generation")


def text_of(message: Mapping[str, Any]) -> str:
    """The content of a message: a string, or a list of parts with text."""
    content = message.get("content")
    if isinstance(content, list):
        parts = [part.get("text") for part in content if isinstance(part, Mapping)]
        content = "".join(part for part in parts if isinstance(part, str))
    if not isinstance(content, str):
        return ""
    return content if content.isascii() else str(without_surrogates(content))


def _count(value: Any) -> int | None:
    """A number of tokens; whatever else a server puts there is unknown."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _inside(usage: Mapping[str, Any], group: str, name: str) -> Any:
    details = usage.get(group)
    return details.get(name) if isinstance(details, Mapping) else None


def estimated_cost(question: Question, price: Price | None) -> float | None:
    """Dollars that one call is expected to cost, caching left out; None when the price is unknown."""
    if price is None:
        return None
    characters = len(question.system) + len(question.context) + len(question.ask)
    return cost(Usage(input=characters // CHARACTERS_PER_TOKEN + 100, output=OUTPUT_TOKENS), price)
