"""Bootstrap intervals over tasks: of a mean, of a difference between two systems, of any other statistic.

They speak of the tasks that could have been drawn, not of the judge's noise. Two methods. `percentile` reads the
limits off the resampled statistics (Efron 1979; Efron & Tibshirani 1993, chapter 13). `bca` moves the points
where it reads them, for the bias z₀ and the acceleration a (Efron 1987; Efron & Tibshirani 1993, equations
14.9–14.15), so a skewed statistic keeps its level better:

    z₀ = Φ⁻¹(share of replicates below the estimate, those equal to it by half)
    a  = Σ(θ̄ − θᵢ)³ / 6(Σ(θ̄ − θᵢ)²)^(3/2), θᵢ the statistic without unit i
    limits at Φ(z₀ + (z₀ ± z)/(1 − a(z₀ ± z)))

A unit is a task. Where a task has several values (attempts, repeats, criteria), give the task of each as
`clusters`: whole tasks are then drawn and whole tasks left out, and the mean is the pooled one, over all values
of the tasks drawn. For a mean of task means, fold each task first and give no clusters.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np
import numpy.typing as npt

from core.fold import mean
from core.stats.distributions import check_level, normal_cdf, normal_quantile
from core.stats.units import (
    CHUNK,
    ROUNDING,
    FloatArray,
    Values,
    cluster_sums,
    columns_of,
    complete,
    counts,
    numbered,
)

RESAMPLES: Final = 10_000
SEED: Final = 20260211
LEVEL: Final = 0.95

Method = Literal["percentile", "bca"]

#: (values (n, …), weights (b, n)) → (b,): the statistic of b weighted samples, NaN where it is undefined.
#: A weight says how often a value counts; 0 leaves it out.
Statistic = Callable[[npt.NDArray[Any], FloatArray], FloatArray]

#: The share of replicates that may be undefined before there is no interval.
_MAY_LACK: Final = 0.05


@dataclass(frozen=True, slots=True)
class Interval:
    """An estimate with its limits, in the statistic's own unit.

    `n` units were drawn (tasks, or clusters). `undefined` replicates had no value and were left out.
    """

    estimate: float
    low: float
    high: float
    n: int
    method: Method
    undefined: int = 0


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


def mean_interval(
    values: Values,
    *,
    clusters: Sequence[Hashable] | None = None,
    method: Method = "bca",
    level: float = LEVEL,
    resamples: int = RESAMPLES,
    seed: int = SEED,
) -> Interval | None:
    """The interval of a mean; None below two units. Values that are all equal have an interval of no width.

    The same values give the same bits in any order. Raises ValueError for NaN and infinities.
    """
    complete([values])
    return mean_intervals([values], clusters=clusters, method=method, level=level, resamples=resamples, seed=seed)[
        0
    ]


def difference_interval(
    first: Values,
    second: Values,
    *,
    clusters: Sequence[Hashable] | None = None,
    method: Method = "bca",
    level: float = LEVEL,
    resamples: int = RESAMPLES,
    seed: int = SEED,
) -> Interval | None:
    """The interval of mean(first − second), task by task; None below two units.

    Both hold the same tasks in the same order: pairing takes out what makes a task hard for everyone.
    """
    pair = complete([first, second])
    return mean_interval(
        pair[:, 0] - pair[:, 1], clusters=clusters, method=method, level=level, resamples=resamples, seed=seed
    )


def mean_intervals(
    series: Sequence[Values],
    *,
    clusters: Sequence[Hashable] | None = None,
    method: Method = "bca",
    level: float = LEVEL,
    resamples: int = RESAMPLES,
    seed: int = SEED,
) -> list[Interval | None]:
    """Intervals of many means over the same tasks, in the order given. NaN: this series lacks the task.

    Series with equally many tasks share their draws, which makes many pairs as cheap as one. Memory grows with
    resamples × series. A series among others may differ from the same one alone by the resampling's noise.
    """
    check_level(level)
    table = columns_of(series)
    alike: dict[bytes, list[int]] = {}
    for place in range(len(series)):
        alike.setdefault(np.isnan(table[:, place]).tobytes(), []).append(place)
    parts = []
    for places in alike.values():
        there = ~np.isnan(table[:, places[0]])
        labels = None if clusters is None else _chosen(clusters, there)
        parts.append((places, there, *cluster_sums(table[there][:, places], labels)))
    found: list[Interval | None] = [None] * len(series)
    # equally many units are drawn alike, whichever they are: drawing is what costs
    for n in sorted({len(sums) for _, _, sums, _ in parts if len(sums) > 1}):
        same = [part for part in parts if len(part[2]) == n]
        drawn: list[list[FloatArray]] = [[] for _ in same]
        for weights in counts(n, resamples=resamples, seed=seed):
            for chunks, (_, _, sums, sizes) in zip(drawn, same, strict=True):
                chunks.append((weights @ sums) / (weights @ sizes)[:, None])
        for chunks, (places, there, sums, sizes) in zip(drawn, same, strict=True):
            replicates = np.concatenate(chunks)
            jackknife = (sums.sum(axis=0) - sums) / (sizes.sum() - sizes)[:, None]
            for column, place in enumerate(places):
                centre = mean(table[there, place].tolist())
                assert centre is not None
                found[place] = _interval(
                    centre, replicates[:, column], jackknife[:, column], method=method, level=level
                )
    return found


def statistic_interval(
    values: npt.ArrayLike,
    statistic: Statistic,
    *,
    clusters: Sequence[Hashable] | None = None,
    method: Method = "bca",
    level: float = LEVEL,
    resamples: int = RESAMPLES,
    seed: int = SEED,
) -> Interval | None:
    """The interval of any statistic of weighted values: `values` (n, …), see Statistic.

    Units are drawn in the order of their first value, so give tasks in a fixed order, by id for instance. None
    below two units, where the statistic of all values is undefined, where more than 5 % of replicates are, and
    for `bca` where it is undefined or the same whichever unit is left out, or all replicates lie on one side of
    the estimate.
    """
    check_level(level)
    array = np.asarray(values)
    unit = numbered(clusters, len(array))
    n = int(unit.max(initial=-1)) + 1
    if n < 2:
        return None

    def of(rows: Iterator[FloatArray]) -> FloatArray:
        return np.concatenate([np.asarray(statistic(array, row[:, unit]), dtype=np.float64) for row in rows])

    centre = float(of(iter([np.ones((1, n))]))[0])
    replicates = of(counts(n, resamples=resamples, seed=seed, width=len(array)))
    jackknife = of(_all_but_one(n, len(array))) if method == "bca" else np.empty(0)
    return _interval(centre, replicates, jackknife, method=method, level=level, n=n)


def _all_but_one(n: int, width: int) -> Iterator[FloatArray]:
    """Weights that leave out one unit after another, in chunks of rows."""
    height = max(1, CHUNK // width)
    for start in range(0, n, height):
        rows = np.ones((min(height, n - start), n))
        rows[np.arange(len(rows)), start + np.arange(len(rows))] = 0
        yield rows


def _chosen(labels: Sequence[Hashable], there: npt.NDArray[np.bool_]) -> list[Hashable]:
    numbered(labels, len(there))  # refuses labels of another number
    return [label for label, is_there in zip(labels, there, strict=True) if is_there]


def _interval(
    centre: float,
    replicates: FloatArray,
    jackknife: FloatArray,
    *,
    method: Method,
    level: float,
    n: int | None = None,
) -> Interval | None:
    """The interval that replicates (b,) and, for bca, leave-one-out values (n,) give; None where undefined."""
    there = replicates[~np.isnan(replicates)]
    lacking = len(replicates) - len(there)
    if math.isnan(centre) or lacking > _MAY_LACK * len(replicates):
        return None
    n = len(jackknife) if n is None else n
    tolerance = ROUNDING * float(np.abs(there).max())
    if np.ptp(there) <= tolerance:
        return Interval(centre, centre, centre, n=n, method=method, undefined=lacking)
    tails: tuple[float, float] | None = ((1 - level) / 2, (1 + level) / 2)
    if method == "bca":
        tails = _bca_tails(centre, there, jackknife, level=level, tolerance=tolerance)
    if tails is None:
        return None
    low, high = np.percentile(there, [100 * tail for tail in tails])
    return Interval(centre, float(low), float(high), n=n, method=method, undefined=lacking)


def _bca_tails(
    centre: float, replicates: FloatArray, jackknife: FloatArray, *, level: float, tolerance: float
) -> tuple[float, float] | None:
    """The shares of replicates below the two limits; None where z₀ or a is undefined."""
    # scores come in steps: replicates that equal the estimate are many, and rounding must not sort them
    below = np.count_nonzero(replicates < centre - tolerance)
    equal = np.count_nonzero(np.abs(replicates - centre) <= tolerance)
    share = (below + equal / 2) / len(replicates)
    gaps = jackknife.mean() - jackknife
    widest = float(np.abs(gaps).max())
    if not 0 < share < 1 or not widest > tolerance:
        return None
    bias = normal_quantile(share)
    gaps /= widest  # a has no unit; powers of tiny numbers would be 0
    acceleration = float(np.sum(gaps**3)) / (6 * float(np.sum(gaps**2)) ** 1.5)
    tails = []
    for z in (normal_quantile((1 - level) / 2), normal_quantile((1 + level) / 2)):
        scale = 1 - acceleration * (bias + z)
        if scale <= 0:
            return None
        tails.append(normal_cdf(bias + (bias + z) / scale))
    return tails[0], tails[1]
