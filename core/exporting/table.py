"""A table: typed columns, and rows that are read when they are needed.

A run may have hundreds of thousands of judgements. A table holds none of them: it can be read any number of times,
and each time reads its run's files anew.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from core.comparison.reading import number
from core.strict_json import without_surrogates

#: whole: within 64 bits; number: a finite float; truth: true or false. Every kind may be missing.
Kind = Literal["text", "whole", "number", "truth"]
Value = str | int | float | bool | None
#: Whole numbers of a column lie below this, and above its negative.
WHOLE_END: Final = 2**63


@dataclass(frozen=True, slots=True)
class Column:
    """One column: its name and what its cells hold."""

    name: str
    kind: Kind


@dataclass(frozen=True, slots=True)
class Table:
    """`rows` gives the cells of each row in the order of `columns`, from the start at every call."""

    name: str
    columns: tuple[Column, ...]
    rows: Callable[[], Iterator[Sequence[Value]]]


def kind_of(value: Any) -> Kind:
    """The kind of column that holds a JSON value as it is; text, where only its JSON text can be held."""
    if isinstance(value, bool):
        return "truth"
    if isinstance(value, int) and -WHOLE_END < value < WHOLE_END:
        return "whole"
    return "number" if isinstance(value, float) else "text"


def cell(value: Any, kind: Kind) -> Value:
    """A JSON value of unknown type as a cell; None where the column can't hold it.

    A column of text holds a text as it is, and anything else as JSON.
    """
    if value is None:
        return None
    if kind == "text":
        return str(without_surrogates(value if isinstance(value, str) else json_text(value)))
    if kind == "number":
        found = number(value) if not isinstance(value, int) or abs(value) < WHOLE_END else math.nan
        return None if math.isnan(found) else found
    return value if isinstance(value, int) and kind_of(value) == kind else None


def json_text(value: Any) -> str:
    """A JSON value in one line; NaN and infinities, which JSON does not have, become null."""
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False)
    except ValueError:
        return json.dumps(_finite(value), ensure_ascii=False)


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
