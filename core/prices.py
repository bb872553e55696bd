"""What a call costs. An unknown cost is None, never 0."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from core.errors import InputError
from core.model import Usage

_MILLION: Final = 1_000_000
_FIELDS: Final = ("input", "cached_input", "output")


@dataclass(frozen=True, slots=True)
class Price:
    """Dollars per million tokens. `cached_input` None: cached tokens cost what others cost."""

    input: float
    output: float
    cached_input: float | None = None


def cost(usage: Usage | None, price: Price | None) -> float | None:
    """Dollars for the tokens of a call; None when the tokens or the price are unknown.

    Thinking is part of `usage.output`, cached tokens are part of `usage.input`.
    """
    if usage is None or price is None or usage.input is None or usage.output is None:
        return None
    cached = min(usage.cached_input or 0, usage.input)
    cached_price = price.input if price.cached_input is None else price.cached_input
    fresh = usage.input - cached
    return (fresh * price.input + cached * cached_price + usage.output * price.output) / _MILLION


def price_from_config(value: Mapping[str, Any] | None, where: str = "judge.price") -> Price | None:
    """`{input, cached_input, output}` of a config, dollars per million tokens; None stays None."""
    if value is None:
        return None
    if not isinstance(value, Mapping):
        raise InputError("not a price", where=where, expected="{input: …, output: …}", got=repr(value))
    unknown = sorted(set(map(str, value)) - set(_FIELDS))
    if unknown:
        raise InputError(f"unknown key {unknown[0]!r}", where=where, expected=f"one of {', '.join(_FIELDS)}")
    numbers: dict[str, float | None] = {}
    for name in _FIELDS:
        number = value.get(name)
        if number is None and name == "cached_input":
            numbers[name] = None
            continue
        if isinstance(number, bool) or not isinstance(number, (int, float)) or not 0 <= number < math.inf:
            raise InputError(
                "not a price",
                where=f"{where}.{name}",
                expected="dollars per million tokens, 0 or more",
                got=repr(number),
            )
        numbers[name] = float(number)
    return Price(numbers["input"] or 0.0, numbers["output"] or 0.0, numbers["cached_input"])
