"""Verdicts as arrays, and answers as digests: what of a run's rows judges are compared by.

A run has up to hundreds of thousands of judgements. Of each, only what is said of which unit, and
by whom, is kept: eleven bytes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from core.comparison.reading import json_lines, mapping, whole
from core.digest import json_digest, plain
from core.model import RULE_JUDGE
from core.runfolder import JUDGEMENTS, SUBMISSIONS
from core.summary import UNKNOWN

Cells = npt.NDArray[np.int64]
Codes = npt.NDArray[np.int8]
Members = npt.NDArray[np.int16]

#: What a row says; below 0 it is no yes or no of a judge.
NO: Final = 0
YES: Final = 1
MISSING: Final = -1
BY_RULE: Final = -2
OTHER: Final = -3
#: A cell is unit << 24 | attempt << 12 | repeat.
_BITS: Final = 12
_MOST: Final = (1 << _BITS) - 1
#: Where a verdict's yes or no stands, in this order; else it is the only boolean there is.
_DECISIONS: Final = ("met", "verdict")


@dataclass
class Units:
    """The units of all runs, numbered as they are met: task and the benchmark's name for what is judged."""

    numbers: dict[tuple[str, str], int] = field(default_factory=dict)

    def number(self, task: str, unit: str) -> int:
        return self.numbers.setdefault((task, unit), len(self.numbers))


@dataclass(frozen=True, slots=True, eq=False)
class Verdicts:
    """One run's judgements: `cells`, ascending and distinct, what is said in each, and by whom.

    `by`: a number for each name of a judge in the rows: with vote=mean an ensemble's members have a repeat each.
    `usd` is what they are known to have cost, `unknown_costs` how many could not be priced. `problems`: what was
    passed over.
    """

    cells: Cells
    said: Codes
    by: Members
    errors: Mapping[str, int]
    usd: float
    unknown_costs: int
    problems: tuple[str, ...]


def units_of(cells: Cells) -> Cells:
    """The number of each cell's unit."""
    return cells >> (2 * _BITS)


def without_repeat(cells: Cells) -> Cells:
    """Unit and attempt of each cell."""
    return cells >> _BITS


def attempts_of(cells: Cells) -> Cells:
    return (cells >> _BITS) & _MOST


def read_verdicts(folder: Path, units: Units) -> Verdicts:
    """The judgements of a run folder. Raises InputError for a file that can't be read, and for a broken line."""
    problems: list[str] = []
    cells: list[int] = []
    said: list[int] = []
    costs: list[float] = []
    errors: Counter[str] = Counter()
    unknown = unpriced = odd = 0
    by: list[int] = []
    members: dict[str, int] = {}
    for row in json_lines(folder / JUDGEMENTS, "judgement", problems):
        task, unit = row.get("task_id"), row.get("unit")
        attempt, repeat = whole(row.get("attempt"), 1), whole(row.get("repeat"), 1)
        if not isinstance(task, str) or not isinstance(unit, str) or attempt > _MOST or repeat > _MOST:
            odd += 1
            continue
        verdict = row.get("verdict")
        if verdict is None:
            code = MISSING
            errors[str(mapping(row.get("error")).get("kind"))] += 1
        elif row.get("judge") == RULE_JUDGE:
            code = BY_RULE
        else:
            code = _decision(verdict)
        cells.append(units.number(task, unit) << 2 * _BITS | attempt << _BITS | repeat)
        said.append(code)
        by.append(min(members.setdefault(str(row.get("judge")), len(members)), _MOST))
        cost = row.get("cost_usd")
        if isinstance(cost, (int, float)) and 0 <= cost < float("inf"):
            costs.append(cost)
        elif row.get("cost_source") == UNKNOWN:
            unknown += 1
        elif code != BY_RULE:
            unpriced += 1
    if not costs and not unknown:
        # rows that share one answer state its cost once; where no row states any, as in a recorded file, what
        # was paid is unknown, not nothing
        unknown = unpriced
    where = folder / JUDGEMENTS
    keys, first = np.unique(np.array(cells, dtype=np.int64), return_index=True)
    if odd:
        problems.append(f"{where}: {odd} rows without a task, unit, attempt or repeat are passed over")
    if len(keys) < len(cells):
        problems.append(f"{where}: {len(cells) - len(keys)} rows on what was judged before; the first is used")
    return Verdicts(
        cells=keys,
        said=np.array(said, dtype=np.int8)[first],
        by=np.array(by, dtype=np.int16)[first],
        errors=dict(sorted(errors.items())),
        usd=sum(sorted(costs)),
        unknown_costs=unknown,
        problems=tuple(problems),
    )


def read_answers(folder: Path, problems: list[str]) -> dict[tuple[str, int], str]:
    """(task, attempt) → digest of the answer that was judged. Raises InputError as read_verdicts does."""
    found: dict[tuple[str, int], str] = {}
    for row in json_lines(folder / SUBMISSIONS, "submission", problems):
        key = str(row.get("task_id")), whole(row.get("attempt"), 1)
        parts = [plain(row.get(name)) for name in ("status", "text", "files", "citations")]
        found.setdefault(key, json_digest(parts))
    return found


def tasks_of(units: Units, tasks: Sequence[str]) -> Cells:
    """Each unit's task as a place in `tasks`; −1 for one that is not among them."""
    places = {task: place for place, task in enumerate(tasks)}
    return np.array([places.get(task, -1) for task, _ in units.numbers], dtype=np.int64)


def _decision(verdict: Any) -> int:
    """Yes or no, where the verdict is a decision."""
    values = mapping(verdict)
    for name in _DECISIONS:
        if isinstance(values.get(name), bool):
            return int(values[name])
    booleans = [value for value in values.values() if isinstance(value, bool)]
    return int(booleans[0]) if len(booleans) == 1 else OTHER
