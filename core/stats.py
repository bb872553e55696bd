"""Statistics over plain numbers. Imported only when a run is folded: it loads numpy."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np

from core.fold import mean

RESAMPLES: Final = 10_000
SEED: Final = 20260211
LEVEL: Final = 0.95


def bootstrap_interval(
    values: Sequence[float], *, level: float = LEVEL, resamples: int = RESAMPLES, seed: int = SEED
) -> tuple[float, float] | None:
    """The percentile bootstrap interval of the mean (Efron 1979): (low, high), None below two values.

    Resamples the values with replacement, so it speaks of the tasks that could have been drawn, not of the
    judge's noise. The same values give the same bits in any order: they are sorted first, and the generator
    is RandomState, whose stream numpy keeps for ever.
    """
    centre = mean(values)
    if centre is None or len(values) < 2:
        return None
    ordered = np.sort(np.asarray(values, dtype=np.float64))
    if ordered[0] == ordered[-1]:
        return centre, centre
    drawn = np.random.RandomState(seed).randint(0, len(ordered), size=(resamples, len(ordered)))
    tail = 100 * (1 - level) / 2
    low, high = np.percentile(ordered[drawn].mean(axis=1), [tail, 100 - tail])
    # resampled means are rounded: of values that hardly differ, all may lie a last digit off the mean
    return min(float(low), centre), max(float(high), centre)


def sd(values: Sequence[float], *, ddof: int = 1) -> float | None:
    """The standard deviation with `ddof` taken from n; None when n <= ddof or there is no value."""
    centre = mean(values)
    if centre is None or len(values) <= ddof:
        return None
    if min(values) == max(values):
        return 0.0  # the rounded mean may lie a last digit off them
    return math.sqrt(math.fsum((value - centre) ** 2 for value in values) / (len(values) - ddof))
