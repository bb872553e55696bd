"""Is a difference between two systems more than chance? The paired sign-flip test, and Holm's correction.

If two systems are alike, a task's difference could as well have had the other sign. The test (Fisher 1935,
section 21; Pitman 1937) turns signs at random and asks how often the sum of differences is at least as far from
0 as the one that was found. It assumes no distribution, only differences that are symmetric about 0 when nothing
is the matter.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from core.fold import mean
from core.stats.bootstrap import RESAMPLES, SEED
from core.stats.units import CHUNK, ROUNDING, FloatArray, Values, cluster_sums, columns_of, complete, numbered

#: Up to so many units that differ, every one of the 2ⁿ sign patterns is counted.
EXACT_UP_TO: Final = 16


@dataclass(frozen=True, slots=True)
class SignFlip:
    """A two-sided test. `difference`: the mean over values; `p` in (0, 1]; `n` units (tasks, or clusters).

    `exact`: all sign patterns were counted, so p carries no noise of drawing.
    """

    difference: float
    p: float
    n: int
    exact: bool


def sign_flip_test(
    first: Values,
    second: Values,
    *,
    clusters: Sequence[Hashable] | None = None,
    resamples: int = RESAMPLES,
    seed: int = SEED,
) -> SignFlip | None:
    """Tests mean(first − second) = 0 over the same tasks in the same order; None without any.

    With `clusters` a cluster's differences keep their signs together. Exact while at most 16 units differ; beyond
    that p = (b + 1)/(m + 1) for b of m drawn patterns, which never is 0 and holds its level (Phipson & Smyth
    2010). Systems that differ nowhere have p = 1, as has a single task. Raises ValueError for NaN.
    """
    pair = complete([first, second])
    return sign_flip_tests([pair[:, 0] - pair[:, 1]], clusters=clusters, resamples=resamples, seed=seed)[0]


def sign_flip_tests(
    differences: Sequence[Values],
    *,
    clusters: Sequence[Hashable] | None = None,
    resamples: int = RESAMPLES,
    seed: int = SEED,
) -> list[SignFlip | None]:
    """The same for many series of differences over the same tasks, in the order given; they share the patterns.

    NaN: this series lacks the task.
    """
    if resamples < 1:
        raise ValueError(f"resamples={resamples}, expected 1 or more")
    if not differences:
        return []
    table = columns_of(differences)
    # a task that is lacking adds 0 whatever its sign, as it should
    sums, _ = cluster_sums(np.nan_to_num(table), clusters)
    found = np.abs(sums.sum(axis=0))
    # patterns that give the same sum in another order of adding are as extreme, not less
    bounds = found - ROUNDING * np.abs(sums).sum(axis=0)
    n_differing = np.count_nonzero(sums, axis=0)
    is_exact = n_differing <= EXACT_UP_TO
    drawn = np.flatnonzero(~is_exact)
    as_extreme = _drawn_as_extreme(sums[:, drawn], bounds[drawn], resamples=resamples, seed=seed)
    p_values = np.empty(len(differences))
    p_values[drawn] = (as_extreme + 1) / (resamples + 1)
    for place in np.flatnonzero(is_exact).tolist():
        patterns = _all_sums(sums[sums[:, place] != 0, place])
        p_values[place] = np.count_nonzero(np.abs(patterns) >= bounds[place]) / len(patterns)

    units = numbered(clusters, len(table))
    tests: list[SignFlip | None] = []
    for place in range(len(differences)):
        there = ~np.isnan(table[:, place])
        centre = mean(table[there, place].tolist())
        tests.append(
            None
            if centre is None
            else SignFlip(
                difference=centre,
                p=float(p_values[place]),
                n=len(np.unique(units[there])),
                exact=bool(is_exact[place]),
            )
        )
    return tests


def smallest_p(n: int, *, resamples: int = RESAMPLES) -> float:
    """The least p that the test can give when `n` units differ: 2^(1 − n) exactly, 1/(m + 1) with drawn patterns.

    Where it is not below the level that is asked, no difference whatever is found.
    """
    if n < 0:
        raise ValueError(f"n={n}, expected 0 or more")
    return min(1.0, 2.0 ** (1 - n)) if n <= EXACT_UP_TO else 1 / (resamples + 1)


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's step-down p-values (Holm 1979), in the order given; each at most 1.

    The i-th smallest of m becomes the maximum, over j up to i, of min(1, (m − j + 1)·p₍ⱼ₎). Rejecting those at or
    below α keeps the chance of any false rejection at or below α, however the tests depend on each other.
    Raises ValueError for a p outside [0, 1].
    """
    for place, p in enumerate(p_values):
        if not 0 <= p <= 1:
            raise ValueError(f"p-value {place} is {p}, expected a number from 0 to 1")
    adjusted = [0.0] * len(p_values)
    highest = 0.0
    for step, place in enumerate(sorted(range(len(p_values)), key=lambda index: p_values[index])):
        highest = max(highest, min(1.0, (len(p_values) - step) * p_values[place]))
        adjusted[place] = highest
    return adjusted


def _all_sums(values: FloatArray) -> FloatArray:
    """The sums under each of the 2ⁿ patterns of signs."""
    sums = np.zeros(1)
    for value in values:
        sums = np.concatenate([sums + value, sums - value])
    return sums


def _drawn_as_extreme(sums: FloatArray, bounds: FloatArray, *, resamples: int, seed: int) -> FloatArray:
    """How many of the drawn patterns reach each bound, (k,)."""
    reached = np.zeros(len(bounds))
    if not len(bounds):
        return reached
    generator = np.random.RandomState(seed)
    height = max(1, CHUNK // max(sums.shape))
    for start in range(0, resamples, height):
        rows = min(height, resamples - start)
        signs = 2.0 * generator.randint(0, 2, size=(rows, len(sums))) - 1
        reached += np.count_nonzero(np.abs(signs @ sums) >= bounds, axis=0)
    return reached
