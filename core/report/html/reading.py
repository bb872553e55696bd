"""Values of unknown JSON, as the type that is wanted: what has another type is not there."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any


def mapping(value: Any) -> Mapping[str, Any]:
    """An object, else an empty one."""
    return value if isinstance(value, Mapping) else {}


def mappings(value: Any) -> list[Mapping[str, Any]]:
    """The objects of a list, else none."""
    return [entry for entry in sequence(value) if isinstance(entry, Mapping)]


def sequence(value: Any) -> Sequence[Any]:
    """A list, else an empty one."""
    return value if isinstance(value, Sequence) and not isinstance(value, str) else ()


def text(value: Any) -> str:
    """A text, else an empty one."""
    return value if isinstance(value, str) else ""


def finite(value: Any) -> float | None:
    """A finite number, else None."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    try:
        found = float(value)
    except OverflowError:  # an integer of hundreds of digits
        return None
    return found if math.isfinite(found) else None


def count(value: Any) -> int:
    """A whole number of 0 or more, else 0."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else 0
