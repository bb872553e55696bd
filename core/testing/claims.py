"""The one way in which a contract check fails, and the claims that several checks make."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from core.digest import plain


class ContractBroken(AssertionError):
    """A part does not do what the engine relies on."""


def claim(holds: object, message: str) -> None:
    """Raise ContractBroken with this message unless it holds. Unlike `assert`, `python -O` keeps it."""
    if not holds:
        raise ContractBroken(message)


def claim_equal(found: object, expected: object, what: str) -> None:
    claim(found == expected, f"{what}: expected {_short(expected)}, got {_short(found)}")


def as_json(value: Any, what: str) -> str:
    """The value as JSON; a value that JSON can't hold, NaN and infinity among them, breaks the contract."""
    try:
        return json.dumps(plain(value), sort_keys=True, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise ContractBroken(f"{what} must be JSON: {error}; got {_short(value)}") from error


def claim_no_secret(text: str, secrets: Iterable[str], what: str) -> None:
    claim(not any(secret in text for secret in secrets), f"{what} holds an API key")


def claim_dollars(usd: object, what: str) -> None:
    """None is unknown; everything else is a finite number of at least 0."""
    numeric = isinstance(usd, (int, float)) and not isinstance(usd, bool)
    known = numeric and 0 <= float(usd) < float("inf")  # type: ignore[arg-type] # a number here
    claim(usd is None or known, f"{what}: expected dollars (>= 0) or None, got {usd!r}")


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 400 else f"{text[:400]}…"
