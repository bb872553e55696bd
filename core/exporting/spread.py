"""Objects whose keys nobody knows beforehand (verdicts, metrics, labels) as columns of a table.

The most frequent keys get a column each. A benchmark may name keys after what a task asks for, thousands over all
tasks: the rest stand together as JSON in one column, so that a table stays one that people can open.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from core.exporting.table import Column, Kind, Value, cell, json_text, kind_of
from core.strict_json import without_surrogates

#: So many keys get a column of their own.
MOST: Final = 100


@dataclass(frozen=True, slots=True)
class Spread:
    """`keys`: those with a column of their own and its kind, in the order of first appearance.

    `has_rest` says whether there are others. Columns are called `<word>_<key>`, that of the rest `more_<word>`.
    """

    word: str
    keys: Mapping[str, Kind]
    has_rest: bool

    @property
    def columns(self) -> tuple[Column, ...]:
        """The columns, that of the rest last."""
        own = tuple(Column(without_surrogates(f"{self.word}_{key}"), kind) for key, kind in self.keys.items())
        return (*own, Column(f"more_{self.word}", "text")) if self.has_rest else own

    def cells(self, values: Mapping[str, Any]) -> list[Value]:
        """An object's cells, in the order of `columns`."""
        found = [cell(values.get(key), kind) for key, kind in self.keys.items()]
        if self.has_rest:
            rest = {key: value for key, value in values.items() if key not in self.keys}
            found.append(cell(json_text(rest), "text") if rest else None)
        return found


def survey(word: str, objects: Iterable[Mapping[str, Any]], most: int = MOST) -> Spread:
    """Which columns objects need. Of equally frequent keys the first by name is taken."""
    counts: Counter[str] = Counter()
    kinds: dict[str, set[Kind]] = {}
    for values in objects:
        for key, value in values.items():
            counts[key] += 1
            seen = kinds.setdefault(key, set())
            if value is not None:
                seen.add(kind_of(value))
    frequent = sorted(counts, key=lambda key: (-counts[key], key))
    # a name that can't be written is written changed: two such names must not become one column
    writable = [key for key in frequent if without_surrogates(key) == key][:most]
    chosen = set(writable)
    keys = {key: _one_kind(seen) for key, seen in kinds.items() if key in chosen}
    return Spread(word, keys, len(keys) < len(counts))


def _one_kind(seen: set[Kind]) -> Kind:
    """The kind that holds all of a column's values; whole numbers are numbers too."""
    if len(seen) == 1:
        return next(iter(seen))
    return "number" if seen == {"whole", "number"} or not seen else "text"
