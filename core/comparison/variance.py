"""Where the metric varies, and what more tasks, judges or repeats would buy."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from core.comparison.results import Design, Variance, VariancePart
from core.comparison.study import Grid, Study
from core.stats import VarianceSplit, design_error, variance_split
from core.stats.distributions import two_sided

#: Numbers of tasks that are looked at, as multiples of the study's.
_TASKS = (1, 2, 4)


def variance(study: Study, grid: Grid) -> Variance | None:
    """The components over tasks × systems × judges × repeats; None where the runs do not say.

    Attempts count as repeats: where a system answered several times, its own noise is among them.
    """
    runs = {key: study.repeats(place) for key, place in grid.runs.items()}
    keys = sorted({repeat for repeats in runs.values() for repeat in repeats})
    if not keys:
        return None
    shape = study.n_tasks, len(grid.systems), len(grid.judges), len(keys)
    scores = np.full(shape, np.nan)
    for (system, judge), repeats in runs.items():
        for repeat, column in repeats.items():
            scores[:, grid.systems.index(system), grid.judges.index(judge), keys.index(repeat)] = column
    split = variance_split(scores)
    if split is None:
        return None
    return Variance(
        metric=study.metrics[0],
        n=split.n,
        levels=split.levels,
        has_repeats=split.has_repeats,
        parts=tuple(
            VariancePart(factors=part.factors, variance=part.variance, share=part.share, clipped=part.is_clipped)
            for part in split.components
        ),
        designs=tuple(_designs(split, repeats=len(keys), level=study.settings.level)),
    )


def _designs(split: VarianceSplit, *, repeats: int, level: float) -> Iterator[Design]:
    """This design, one with less, and ones with more tasks."""
    if split.levels["task"] < 2:
        return
    wide = two_sided(level)
    for n_judges in sorted({1, split.levels["judge"]}):
        for n_repeats in sorted({1, repeats if split.has_repeats else 1}):
            for times in _TASKS:
                n_tasks = times * split.levels["task"]
                error = design_error(split, n_tasks=n_tasks, n_judges=n_judges, n_repeats=n_repeats)
                yield Design(
                    n_tasks=n_tasks,
                    n_judges=n_judges,
                    n_repeats=n_repeats,
                    score=wide * error.absolute,
                    difference=None if error.relative is None else wide * math.sqrt(2) * error.relative,
                )
