"""Numbers without the judge's errors, as far as labels tell.

A judge that says yes to a share se of what is met and no to a share sp of what is not says yes to
a = se·p + (1 − sp)(1 − p) of all, so p = (a + sp − 1)/(se + sp − 1) (Rogan & Gladen 1978). The same holds of each
verdict's expectation, and a score that is a weighted sum of verdicts is corrected by correcting its parts, kind by
kind. Assumed: within a kind the judge errs as often on every unit, whatever the task, the system and the true
score; and the labels are a fair draw of that kind. Not assumed: that verdicts of a task are independent. Tasks are
drawn with their verdicts and their labels together.

Undefined where se + sp <= 1 (such a judge tells nothing) and where too few labels are met, or unmet.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np

from core.calibration.rates import FN, FP, TN, TP, Pair, by_task, is_weighted, limits, ratio
from core.calibration.results import Corrected, Limits, Settings
from core.stats import rogan_gladen
from core.stats.units import FloatArray

_TELLS_NOTHING: Final = "sensitivity + specificity is 1 or less: such a judge tells nothing"


@dataclass(frozen=True, slots=True)
class Counted:
    """Verdicts of one task: `yes` of `n`."""

    yes: int
    n: int


@dataclass(frozen=True, slots=True)
class Graded:
    """Labels of one kind in one task against the mean of a judge's repeats: fractions where these differ.

    `n_met`, `n_unmet`: how many labels these are, whatever their weights.
    """

    tp: float = 0.0
    fn: float = 0.0
    fp: float = 0.0
    tn: float = 0.0
    n_met: int = 0
    n_unmet: int = 0

    def plus(self, label: bool, yes: float, weight: float) -> Graded:  # noqa: FBT001  # a label is what it is
        """With one more label: the judge's repeats say yes with the share `yes`."""
        met, unmet = weight * yes, weight * (1 - yes)
        if label:
            return replace(self, tp=self.tp + met, fn=self.fn + unmet, n_met=self.n_met + 1)
        return replace(self, fp=self.fp + met, tn=self.tn + unmet, n_unmet=self.n_unmet + 1)


@dataclass(frozen=True, slots=True)
class TaskParts:
    """What a task's score is a sum of, by kind. `scored`: whether the task has a score.

    `start`: the score when nothing is met. `earned[kind]`: Σ points × share of repeats that say yes.
    `points[kind]`: Σ points. `labels[kind]`: its labels.
    """

    scored: bool = False
    start: float = 0.0
    earned: Mapping[str, float] = field(default_factory=dict)
    points: Mapping[str, float] = field(default_factory=dict)
    labels: Mapping[str, Graded] = field(default_factory=dict)


def too_few(met: int, unmet: int, least: int) -> str | None:
    """Why labels don't tell a judge's rates; None when they do."""
    if met < least or unmet < least:
        return f"{met} labels met and {unmet} unmet, expected {least} of each"
    return None


def corrected_share(verdicts: Mapping[str, Counted], pairs: Sequence[Pair], settings: Settings) -> Corrected:
    """The share of yes without the judge's errors. `verdicts`: all of the run's by task; `pairs`: its labels."""
    yes, n = sum(found.yes for found in verdicts.values()), sum(found.n for found in verdicts.values())
    if not n:
        return Corrected(apparent=None, n=0, why="there are no verdicts")
    met = sum(pair.label for pair in pairs)
    why = too_few(met, len(pairs) - met, settings.least)
    if why is not None:
        return Corrected(apparent=yes / n, n=n, why=why)
    labelled = dict(zip(sorted({pair.task for pair in pairs}), by_task(pairs), strict=True))
    none = np.zeros(4)
    rows = np.array(
        [
            [found.yes, found.n, *labelled.get(task, none).tolist()]
            for task in sorted({*verdicts, *labelled})
            for found in [verdicts.get(task, Counted(0, 0))]
        ],
        dtype=np.float64,
    )
    raw = float(_shares(rows.sum(axis=0)[None])[0])
    if np.isnan(raw):
        return Corrected(apparent=yes / n, n=n, why=_TELLS_NOTHING)
    analytic = None
    if not is_weighted(pairs):
        cells = [sum(pair.cell == cell for pair in pairs) for cell in range(4)]
        found = rogan_gladen(yes, n, tp=cells[TP], fn=cells[FN], fp=cells[FP], tn=cells[TN], level=settings.level)
        analytic = None if found is None else Limits(low=found.low, high=found.high)
    spread = limits(rows, _shares, settings)
    held = None if spread is None else Limits(low=_held(spread.low), high=_held(spread.high))
    return Corrected(apparent=yes / n, n=n, raw=raw, value=_held(raw), analytic=analytic, by_task=held)


def corrected_score(tasks: Sequence[TaskParts], kinds: Sequence[str], settings: Settings) -> Corrected:
    """The mean score of the scored tasks without the judge's errors, each kind by rates of its own.

    A kind that is worth no points needs no labels. `tasks` in a fixed order: they are drawn in it.
    """
    n = sum(task.scored for task in tasks)
    if not n:
        return Corrected(apparent=None, n=0, why="no task has a score that is a weighted sum of verdicts")
    rows = np.array([_columns(task, kinds) for task in tasks])
    apparent = float(_apparent(rows.sum(axis=0)[None], len(kinds))[0])
    for place, kind in enumerate(kinds):
        column = 2 + 6 * place
        if not np.any(rows[:, column : column + 2]):
            continue
        tp, fn, fp, tn = rows[:, column + 2 : column + 6].sum(axis=0)
        labelled = [task.labels[kind] for task in tasks if kind in task.labels]
        why = too_few(
            sum(found.n_met for found in labelled), sum(found.n_unmet for found in labelled), settings.least
        )
        if why is None and not tp * (tn + fp) + tn * (tp + fn) > (tp + fn) * (tn + fp):
            why = _TELLS_NOTHING
        if why is not None:
            return Corrected(apparent=apparent, n=n, why=f"{kind}: {why}")

    def score(sums: FloatArray) -> FloatArray:
        return _scores(sums, len(kinds))

    raw = float(score(rows.sum(axis=0)[None])[0])
    return Corrected(apparent=apparent, n=n, raw=raw, value=raw, by_task=limits(rows, score, settings))


def _columns(task: TaskParts, kinds: Sequence[str]) -> list[float]:
    found = [float(task.scored), task.start if task.scored else 0.0]
    for kind in kinds:
        graded = task.labels.get(kind, Graded())
        found += [
            task.earned.get(kind, 0.0) if task.scored else 0.0,
            task.points.get(kind, 0.0) if task.scored else 0.0,
            *(graded.tp, graded.fn, graded.fp, graded.tn),
        ]
    return found


def _apparent(sums: FloatArray, n_kinds: int) -> FloatArray:
    earned = sum((sums[:, 2 + 6 * place] for place in range(n_kinds)), start=np.zeros(len(sums)))
    return ratio(sums[:, 1] + earned, sums[:, 0])


def _scores(sums: FloatArray, n_kinds: int) -> FloatArray:
    total = sums[:, 1].copy()
    for place in range(n_kinds):
        earned, points, *cells = (sums[:, 2 + 6 * place + column] for column in range(6))
        # in a draw without labels of a class the kind's part is undefined, unless it is worth nothing
        part = _uncovered(earned, points, *cells)
        total += np.where((earned == 0) & (points == 0), 0.0, part)
    return ratio(total, sums[:, 0])


def _shares(sums: FloatArray) -> FloatArray:
    """Corrected shares of sums (b, 6): yes, all, tp, fn, fp, tn."""
    yes, n, *cells = (sums[:, column] for column in range(6))
    return ratio(_uncovered(yes, n, *cells), n)


def _uncovered(
    yes: FloatArray, n: FloatArray, tp: FloatArray, fn: FloatArray, fp: FloatArray, tn: FloatArray
) -> FloatArray:
    """(yes + n·(sp − 1))/(se + sp − 1); NaN where the rates are undefined or tell nothing."""
    se, sp = ratio(tp, tp + fn), ratio(tn, tn + fp)
    room = se + sp - 1
    found = np.full(np.shape(room), np.nan)
    np.divide(yes + n * (sp - 1), room, out=found, where=room > 0)
    return found


def _held(value: float) -> float:
    return min(1.0, max(0.0, value))
