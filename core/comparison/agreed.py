"""What several judges said of the same answers: read once, and laid side by side."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from core.comparison.results import Finding
from core.comparison.rows import (
    MISSING,
    Cells,
    Codes,
    Units,
    Verdicts,
    attempts_of,
    read_answers,
    read_verdicts,
    tasks_of,
    units_of,
)
from core.comparison.study import Grid, Mask, Numbers, Study
from core.errors import InputError

#: (task, attempt) of answers.
Answer = tuple[str, int]


@dataclass(frozen=True, eq=False)
class Seen:
    """The verdicts of every run of a grid, and which answers all judges of a system saw alike.

    `unlike`: by system, the answers of which some run has another text: not compared. `table`: (runs, tasks), the
    first metric.
    """

    units: Units
    verdicts: Mapping[int, Verdicts]
    unlike: Mapping[str, frozenset[Answer]]
    table: Numbers
    tasks: Mapping[str, int]
    findings: tuple[Finding, ...]

    @classmethod
    def of(cls, study: Study, grid: Grid) -> Seen:
        """Read the rows of the grid's runs; what can't be read is a finding."""
        units, verdicts, found = Units(), {}, []
        answers: dict[str, dict[Answer, str]] = {}
        unlike: dict[str, set[Answer]] = {}

        def mark(code: str, text: str, place: int) -> None:
            found.append(Finding(code=code, severity="mark", text=text, runs=(study.names[place],)))

        for (system, _), place in grid.runs.items():
            problems: list[str] = []
            try:
                verdicts[place] = read_verdicts(study.runs[place].path, units)
                problems += verdicts[place].problems
            except InputError as error:
                mark("no_verdicts", f"its judgements are not compared: {error}", place)
            if len(grid.judges_of(system)) < 2:
                continue
            try:
                own = read_answers(study.runs[place].path, problems)
            except InputError as error:
                mark("answers", f"its answers are taken to be those of the system's other runs: {error}", place)
                own = {}
            known = answers.setdefault(system, {})
            differing = {key for key, digest in own.items() if known.setdefault(key, digest) != digest}
            if differing:
                text = f"{len(differing)} answers differ from those that another judge saw: not compared"
                mark("answers", text, place)
                unlike.setdefault(system, set()).update(differing)
            for problem in problems:
                mark("damaged", problem, place)
        return cls(
            units=units,
            verdicts=verdicts,
            unlike={system: frozenset(keys) for system, keys in unlike.items()},
            table=study.table(study.metrics[0]),
            tasks=study.place_of,
            findings=tuple(found),
        )

    def scores(self, grid: Grid, system: str, judge: str) -> Numbers:
        """(tasks,): the metric of a system under a judge; NaN where another answer was judged."""
        return np.where(self.is_unlike(system), np.nan, self.table[grid.runs[system, judge]])

    def is_unlike(self, system: str) -> Mask:
        """(tasks,): which of a system's tasks have an answer that not all of its judges saw."""
        mask = np.zeros(self.table.shape[1], dtype=bool)
        for task, _ in self.unlike.get(system, ()):
            if task in self.tasks:
                mask[self.tasks[task]] = True
        return mask


@dataclass(frozen=True, eq=False)
class Panel:
    """What each judge said of each question: a unit of one system's answer, in one repeat.

    `said`: (judges, questions), a code of rows.py each. `units`, `tasks`: of each question, the unit's number
    and the task's place. Only systems with two judges are in it.
    """

    said: Codes
    units: Cells
    tasks: Cells

    @classmethod
    def of(cls, study: Study, grid: Grid, seen: Seen) -> Panel:
        places = tasks_of(seen.units, list(study.tasks))
        names = list(seen.units.numbers)
        said: list[npt.NDArray[np.int8]] = [np.empty((len(grid.judges), 0), dtype=np.int8)]
        questions: list[Cells] = [np.empty(0, dtype=np.int64)]
        for system in grid.systems:
            read = {
                judge: seen.verdicts[grid.runs[system, judge]]
                for judge in grid.judges_of(system)
                if grid.runs[system, judge] in seen.verdicts
            }
            if len(read) < 2:
                continue
            cells = np.unique(np.concatenate([one.cells for one in read.values()]))
            table = np.full((len(grid.judges), len(cells)), MISSING, dtype=np.int8)
            for judge, one in read.items():
                table[grid.judges.index(judge), np.searchsorted(cells, one.cells)] = one.said
            kept = places[units_of(cells)] >= 0
            unlike = seen.unlike.get(system, frozenset())
            if unlike:
                pairs = zip(units_of(cells).tolist(), attempts_of(cells).tolist(), strict=True)
                kept &= np.array([(names[unit][0], attempt) not in unlike for unit, attempt in pairs], dtype=bool)
            said.append(table[:, kept])
            questions.append(cells[kept])
        units = units_of(np.concatenate(questions))
        return cls(said=np.concatenate(said, axis=1), units=units, tasks=places[units])
