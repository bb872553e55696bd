"""What a benchmark's own fold tells of a unit: in which groups it counts, and how many points it is worth.

Nothing here knows a benchmark. A grader's `score` is pure, so it can be asked about verdicts that nobody gave: of
one row alone its coverage says in which groups that row counts (a criterion's sign and axis, a checkpoint's type);
of rows that differ in one verdict the headline says what that verdict adds. Whether the headline is a weighted sum
at all is tried on the run's own verdicts, not believed.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from core.errors import LeadlineError
from core.model import Judgement, Submission, Task
from core.parts import Grader

#: How far a weighted sum may lie from the fold's number, as a share of the scale: both are rounded.
_ROUNDING: Final = 1e-9
Groups = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Points:
    """A headline that is a weighted sum of yes and no: start + Σ by_unit[unit] over the units met.

    In the metric's unit, before it is held between 0 and `top`.
    """

    start: float
    by_unit: Mapping[str, float]
    top: float

    def of(self, met: Mapping[str, float]) -> float:
        """The sum for verdicts 0…1 on these units, not held anywhere."""
        return math.fsum([self.start, *(points * met[unit] for unit, points in self.by_unit.items())])


def groups_of(
    grader: Grader, task: Task, submission: Submission, unit: str, verdict: Mapping[str, Any]
) -> dict[str, str]:
    """Group → member of one unit, as the fold counts it; {} where it doesn't tell."""
    try:
        coverage = grader.score(task, submission, [_row(submission, unit, verdict)]).coverage_by
    except (LeadlineError, ValueError, KeyError, TypeError):
        return {}
    return {
        group: member
        for group, members in coverage.items()
        for member, count in members.items()
        if count.graded == 1
    }


def points_of(
    grader: Grader,
    task: Task,
    submission: Submission,
    check: str,
    verdicts: Sequence[Mapping[str, bool]],
    headline: str,
) -> Points | None:
    """What each unit adds to one attempt's headline; None where that is no weighted sum.

    `verdicts`: each repeat's unit → met, all of the same units. Asks for two numbers a unit.
    """
    units = list(verdicts[0]) if verdicts else []
    if not units or any(set(found) != set(units) for found in verdicts):
        return None

    def score(met: Iterable[str]) -> float | None:
        yes = set(met)
        rows = [_row(submission, unit, {check: unit in yes}) for unit in units]
        value = grader.score(task, submission, rows).metrics.get(headline)
        return None if value is None or not math.isfinite(value) else value

    try:
        start = score(())
        alone = {unit: score((unit,)) for unit in units}
        if start is None or None in alone.values():
            return None
        gains = {unit: (value or 0.0) - start for unit, value in alone.items()}
        # what adds nothing by itself may take away: seen only where there is something to take it from
        best = [unit for unit, gain in gains.items() if gain > 0]
        top = score(best)
        if top is None:
            return None
        for unit, gain in gains.items():
            if gain <= 0:
                value = score([*best, unit])
                if value is None or (value <= 0 and value < top):
                    return None  # held at 0: how much it would have taken can't be seen
                gains[unit] = value - top
        points = Points(start, gains, top)
        tried = [dict.fromkeys(units, True), *verdicts]
        is_sum = all(_agrees(points, met, score(unit for unit in units if met[unit])) for met in tried)
    except (LeadlineError, ValueError, KeyError, TypeError):
        return None
    return points if is_sum else None


def _agrees(points: Points, met: Mapping[str, bool], value: float | None) -> bool:
    held = min(max(points.of(met), 0.0), points.top)
    return value is not None and abs(held - value) <= _ROUNDING * max(1.0, points.top)


def _row(submission: Submission, unit: str, verdict: Mapping[str, Any]) -> Judgement:
    return Judgement(task_id=submission.task_id, attempt=submission.attempt, unit=unit, verdict=dict(verdict))
