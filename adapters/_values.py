"""Reading the values of a reply that nobody vouches for: whatever has another form than expected is nothing.

Objects are mappings, and no reply is trusted to have one where one belongs: these give an empty value or None.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeGuard
from urllib.parse import quote

#: Counts and sums beyond this are not believed.
MOST: Final = 10**15


def mapping(value: Any, *names: str) -> Mapping[str, Any]:
    """An object, or the one under these names within it, one inside the other; else an empty one."""
    found = value if isinstance(value, Mapping) else {}
    for name in names:
        inner = found.get(name)
        found = inner if isinstance(inner, Mapping) else {}
    return found


def mappings(value: Any) -> list[Mapping[str, Any]]:
    """The objects in a list; what else stands in it is passed over."""
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, list) else []


def listed(value: Any) -> list[Any]:
    """A list, else an empty one."""
    return value if isinstance(value, list) else []


def word(value: Any) -> str:
    """A text, else an empty one."""
    return value if isinstance(value, str) else ""


def count(value: Any) -> int | None:
    """A whole number of things, from 0 on; None for whatever else."""
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MOST else None


def amount(value: Any) -> float | None:
    """A finite number from 0 on; None for whatever else."""
    numeric = isinstance(value, (int, float)) and not isinstance(value, bool)
    return float(value) if numeric and 0 <= value <= MOST else None


def is_id(value: Any) -> TypeGuard[str]:
    """Whether a value can name something in a path: dots alone would climb in it."""
    return isinstance(value, str) and bool(value.strip(". "))


def path_part(value: str) -> str:
    """A name as one part of a path, whatever it holds."""
    return quote(value, safe="", errors="replace")


def scalars(value: Any) -> dict[str, Any]:
    """The plain entries of an object: what may be echoed of it, since it can't be deep or large."""
    return {
        str(name)[:100]: item[:500] if isinstance(item, str) else item
        for name, item in list(mapping(value).items())[:50]
        if item is None or isinstance(item, (str, bool, int, float))
    }
