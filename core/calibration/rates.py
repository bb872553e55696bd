"""A judge against labels: shares with two intervals each, κ, and a matrix of counts.

Wilson's interval takes verdicts for independent draws. Those of one task are not, so beside it stands a bootstrap
that draws whole tasks (the same labels, summed by task: a sum is all that these shares need). Where labels have
weights that differ, the shares are the weighted ones, w/Σw (Hájek 1971), and only the bootstrap speaks of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from core.calibration.results import Confusion, Kappa, Limits, Rate, Rates, Settings
from core.stats import Share, cohen_kappa_of, judge_rates, statistic_interval
from core.stats.bootstrap import Method
from core.stats.units import FloatArray

#: The columns of sums: people and judge, both yes, people alone, the judge alone, neither.
TP, FN, FP, TN = range(4)
#: Which columns a share counts, and of which.
_SHARES: Final = {
    "accuracy": ((TP, TN), (TP, FN, FP, TN)),
    "sensitivity": ((TP,), (TP, FN)),
    "specificity": ((TN,), (FP, TN)),
}
_METHODS: Final[tuple[Method, ...]] = ("bca", "percentile")
#: With fewer clusters a bootstrap's intervals are far too narrow (Cameron, Gelbach & Miller 2008): there is none.
FEW_TASKS: Final = 10


@dataclass(frozen=True, slots=True)
class Pair:
    """One label and what the judge says of the same verdict."""

    task: str
    label: bool
    judge: bool
    weight: float = 1.0

    @property
    def cell(self) -> int:
        return (TP if self.judge else FN) if self.label else (FP if self.judge else TN)


def rates(pairs: Sequence[Pair], settings: Settings) -> Rates:
    """The rates of a judge over labels; of none, nulls."""
    counts = [0, 0, 0, 0]
    for pair in pairs:
        counts[pair.cell] += 1
    confusion = Confusion(tp=counts[TP], fn=counts[FN], fp=counts[FP], tn=counts[TN])
    sums = by_task(pairs)
    weighted = is_weighted(pairs)
    plain = judge_rates(**confusion.model_dump(), level=settings.level)
    found = {
        name: _rate(name, getattr(plain, name), sums, settings, weighted=weighted)
        for name in ("accuracy", "sensitivity", "specificity")
    }
    return Rates(
        n=len(pairs),
        n_tasks=len(sums),
        weighted=weighted,
        confusion=confusion,
        **found,
        kappa=Kappa(value=_kappa(sums), by_task=limits(sums, _kappas, settings)),
    )


def is_weighted(pairs: Sequence[Pair]) -> bool:
    """Whether some labels count more than others."""
    return len({pair.weight for pair in pairs}) > 1


def by_task(pairs: Sequence[Pair]) -> FloatArray:
    """Weights summed by task and cell, (tasks, 4), tasks in ascending order."""
    tasks = {task: place for place, task in enumerate(sorted({pair.task for pair in pairs}))}
    sums = np.zeros((len(tasks), 4))
    for pair in pairs:
        sums[tasks[pair.task], pair.cell] += pair.weight
    return sums


def limits(
    sums: FloatArray,
    statistic: Callable[[FloatArray], FloatArray],
    settings: Settings,
) -> Limits | None:
    """The bootstrap interval over tasks of a statistic of their sums; null where undefined, and for few tasks.

    `sums` (tasks, k); `statistic` (b, k) → (b,), NaN where undefined. Where BCa has no answer (a statistic that no
    single task moves), the percentiles stand.
    """
    if len(sums) < FEW_TASKS:
        return None

    def of(values: npt.NDArray[Any], weights: FloatArray) -> FloatArray:
        return statistic(weights @ values)

    for method in _METHODS:
        found = statistic_interval(
            sums, of, method=method, level=settings.level, resamples=settings.resamples, seed=settings.seed
        )
        if found is not None:
            return Limits(low=found.low, high=found.high)
    return None


def ratio(part: FloatArray, whole: FloatArray) -> FloatArray:
    """part / whole, NaN where whole is not above 0."""
    found = np.full(np.shape(whole), np.nan)
    np.divide(part, whole, out=found, where=whole > 0)
    return found


def _rate(name: str, plain: Share | None, sums: FloatArray, settings: Settings, *, weighted: bool) -> Rate | None:
    if plain is None:
        return None
    part, whole = _SHARES[name]

    def share(rows: FloatArray) -> FloatArray:
        return ratio(rows[:, part].sum(axis=1), rows[:, whole].sum(axis=1))

    return Rate(
        value=float(share(sums.sum(axis=0)[None])[0]) if weighted else plain.value,
        count=plain.count,
        total=plain.total,
        wilson=None if weighted else Limits(low=plain.low, high=plain.high),
        by_task=limits(sums, share, settings),
    )


def _kappa(sums: FloatArray) -> float | None:
    total = sums.sum(axis=0)
    return cohen_kappa_of([[total[TP], total[FN]], [total[FP], total[TN]]]) if len(sums) else None


def _kappas(rows: FloatArray) -> FloatArray:
    """Cohen's κ of each row of sums, as core.stats defines it."""
    tp, fn, fp, tn = (rows[:, column] for column in range(4))
    total = tp + fn + fp + tn
    chance = (tp + fn) * (tp + fp) + (fp + tn) * (fn + tn)
    return ratio((tp + tn) * total - chance, total**2 - chance)
