"""What the providers charge, in one place, as of AS_OF: used where a reply does not say what it cost.

Dollars. A price list ages: `system.price` and `system.estimate_usd` override it, and reports warn when it is older
than STALE_DAYS. What an attempt is expected to cost stands with the efforts, in conf/system. Nothing here was
checked against a bill; figures without a source at hand say `unverified`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from typing import Final

from adapters._values import amount, scalars
from core.jobs import Paid
from core.prices import Price

AS_OF: Final = date(2026, 11, 30)
STALE_DAYS: Final = 180
#: Dollars of one job above which a reply is mistaken.
_MOST_USD: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class ModelPrice:
    """Dollars per million tokens. `cached_input`: read from a cache; `cache_write…`: written to one (5 min, 1 h).

    Above `long_above` tokens of input a call costs `long_input` times as much for input, `long_output` for output.
    """

    input: float
    output: float
    cached_input: float | None = None
    cache_write: float | None = None
    cache_write_1h: float | None = None
    long_above: int | None = None
    long_input: float = 1.0
    long_output: float = 1.0


def _openai(input_: float, output: float, cached: float | None = None) -> ModelPrice:
    return ModelPrice(input_, output, cached, long_above=272_000, long_input=2.0, long_output=1.5)


def _anthropic(input_: float, output: float, cached: float | None = None) -> ModelPrice:
    return ModelPrice(
        input_,
        output,
        input_ * 0.05 if cached is None else cached,
        cache_write=input_ * 1.25,
        cache_write_1h=input_ * 2.0,
    )


#: The rates of litellm's cost map.
OPENAI: Final[Mapping[str, ModelPrice]] = {
    "gpt-6-astra": _openai(10, 50, 1),
    "gpt-6.1-sol": _openai(2, 10, 0.1),
    "gpt-6-sol": _openai(2, 10, 0.2),
    "gpt-6.1-terra": _openai(1, 5),
    "gpt-6-luna": _openai(0.1, 0.5, 0.01),
    "gpt-5.6-sol": _openai(4, 20),
    "gpt-5.5": _openai(5, 30),
    "gpt-5.5-pro": _openai(30, 180),
}
#: litellm's cost map; unverified: gemini-4-hydrogen, and what is read from a cache. An increase was announced for
#: the gemini-4 models from 2026-12-01.
GEMINI: Final[Mapping[str, ModelPrice]] = {
    "deep-research-preview-04-2026": ModelPrice(2, 12),
    "deep-research-max-preview-04-2026": ModelPrice(2, 12),
    "gemini-4-argon": ModelPrice(2, 10, 0.10),
    "gemini-4-hydrogen": ModelPrice(1.5, 7.5, 0.075),
    "gemini-3.8-flash": ModelPrice(0.75, 3.75, 0.075),
}
#: Reads from a cache cost a twentieth of the input where nothing else stands, writes 1.25 and 2 times as much.
ANTHROPIC: Final[Mapping[str, ModelPrice]] = {
    "claude-opus-5-5": _anthropic(4, 20, 0.2),
    "claude-sonnet-5-5": _anthropic(2, 10),
    "claude-haiku-5-5": _anthropic(0.1, 0.5),
    "claude-opus-5": _anthropic(5, 25),
    "fable-5-x": _anthropic(10, 50),
}
#: A run's price by its level.
EXA: Final[Mapping[str, float]] = {"minimal": 0.012, "low": 0.025, "medium": 0.10, "high": 0.50, "xhigh": 1.00}
PARALLEL: Final[Mapping[str, float]] = {
    "lite": 0.005,
    "base": 0.010,
    "core": 0.025,
    "core2x": 0.050,
    "pro": 0.100,
    "ultra": 0.300,
    "ultra2x": 0.600,
    "ultra4x": 1.200,
    "ultra8x": 2.400,
}
#: A FindAll run, and each of its matches, by generator (docs.parallel.ai, pricing, 2026-08; unverified since).
FINDALL: Final[Mapping[str, tuple[float, float]]] = {
    "preview": (0.10, 0.00),
    "base": (0.25, 0.03),
    "core": (2.00, 0.15),
    "pro": (10.00, 1.00),
}
#: An older list. A newer one counts 25, 100, 500 and 2,500 credits, whose value is unverified: what a task itself
#: says of its cost comes first.
VALYU: Final[Mapping[str, float]] = {"fast": 0.10, "standard": 0.50, "heavy": 2.50, "max": 15.00}
#: `frontier`: You.com's changelog of 2026-07-20.
YOU: Final[Mapping[str, float]] = {
    "lite": 0.012,
    "standard": 0.05,
    "deep": 0.10,
    "exhaustive": 0.45,
    "frontier": 1.20,
}
#: One call of a tool of Perplexity's; a sandbox costs once a session.
PERPLEXITY_TOOLS: Final[Mapping[str, float]] = {
    "search_web": 0.0025,
    "fetch_url": 0.0005,
    "people_search": 0.005,
    "finance_search": 0.005,
    "sandbox": 0.03,
}
#: Perplexity charges tokens at the rates of the model's own vendor.
PERPLEXITY: Final[Mapping[str, ModelPrice]] = {**OPENAI, **ANTHROPIC, **GEMINI}
#: Pay as you go; plans have other prices.
TAVILY_CREDIT: Final = 0.008
#: One search; one container (an older figure, unverified).
OPENAI_SEARCH: Final = 0.01
OPENAI_CONTAINER: Final = 0.03
#: One search, by what asks for it.
GEMINI_SEARCH: Final[Mapping[str, float]] = {"deep-research": 0.035, "model": 0.014}
ANTHROPIC_SEARCH: Final = 0.01
#: An hour in which a managed session is at work.
ANTHROPIC_HOUR: Final = 0.08


def price_of(model: str, table: Mapping[str, ModelPrice]) -> ModelPrice | None:
    """A model's price: its own, or that of the name without the date behind it; None is unknown."""
    if model in table:
        return table[model]
    return next((price for name, price in table.items() if model.startswith(f"{name}-20")), None)


def configured(price: Price | None) -> ModelPrice | None:
    """`system.price` in place of the list."""
    return None if price is None else ModelPrice(price.input, price.output, price.cached_input)


def tokens_paid(
    price: ModelPrice | None,
    *,
    fresh: int,
    output: int,
    cached: int = 0,
    written: int = 0,
    written_1h: int = 0,
    fees: Mapping[str, float] | None = None,
) -> Paid:
    """What tokens and fees come to; unknown without a price. `output` includes thinking.

    `fresh`, `cached`, `written` and `written_1h` are disjoint parts of the input. A price that changes with the
    length of a single call is applied to the sum over a job's calls, which replies do not split: `computed`.
    """
    if price is None:
        return Paid(None, "unknown", dict(fees or {}))
    longer = price.long_above is not None and fresh + cached + written + written_1h > price.long_above
    more_in, more_out = (price.long_input, price.long_output) if longer else (1.0, 1.0)
    cached_price = price.input if price.cached_input is None else price.cached_input
    written_price = price.input if price.cache_write is None else price.cache_write
    hour_price = written_price if price.cache_write_1h is None else price.cache_write_1h
    parts = {
        "input": fresh * price.input * more_in / 1e6,
        "cached_input": cached * cached_price * more_in / 1e6,
        "cache_write": (written * written_price + written_1h * hour_price) * more_in / 1e6,
        "output": output * price.output * more_out / 1e6,
        **(fees or {}),
    }
    parts = {name: usd for name, usd in parts.items() if usd}
    return Paid(sum(parts.values()), "computed", parts)


def listed(usd: float | None) -> Paid:
    """A fixed price of the list; unknown where the list has none."""
    return Paid() if usd is None else Paid(usd, "list_price", {"run": usd})


def reported(usd: object, components: object = None) -> Paid | None:
    """What the reply says it cost; None where it says nothing usable."""
    total = amount(usd)
    if total is None or total > _MOST_USD:
        return None
    known = {
        name: float(part)
        for name, part in scalars(components).items()
        if isinstance(part, (int, float)) and not isinstance(part, bool) and 0 < abs(part) <= _MOST_USD
    }
    return Paid(total, "reported", known)


def warnings(today: date) -> list[str]:
    """Whether the list is too old to be relied on."""
    age = (today - AS_OF).days
    if age <= STALE_DAYS:
        return []
    return [f"the providers' price list is of {AS_OF.isoformat()}, {age} days old: set system.price"]
