"""Ranks of systems: how two orders agree, who changes places, and how sure a rank is."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from core.stats.bootstrap import LEVEL, RESAMPLES, SEED
from core.stats.distributions import check_level
from core.stats.units import ROUNDING, FloatArray, Values, cluster_sums, complete, counts

Pair = tuple[str, str]


@dataclass(frozen=True, slots=True)
class RankInterval:
    """A system's rank, 1 for the highest mean, and the ranks that resampled tasks give it.

    Ranks are whole: `rank` and `low` count the systems strictly above, `high` those not below, itself too.
    """

    rank: int
    low: int
    high: int


@dataclass(frozen=True, slots=True)
class Swaps:
    """Two score tables compared, pair by pair of the systems that both have.

    `swapped`: (higher in the first table, higher in the second). `tied`: pairs that are equal in either table, so
    neither kept nor reversed. `only_one`: systems that one table lacks.
    """

    swapped: tuple[Pair, ...]
    tied: tuple[Pair, ...]
    only_one: tuple[str, ...]


def mid_ranks(values: Values, *, highest_first: bool = False) -> list[float]:
    """Ranks from 1, ties by the mean of their places (mid-ranks; Kendall 1945). Raises ValueError for NaN."""
    array = complete([values])[:, 0]
    _, inverse, sizes = np.unique(-array if highest_first else array, return_inverse=True, return_counts=True)
    last = np.cumsum(sizes)
    found: list[float] = ((2 * last - sizes + 1) / 2)[inverse].tolist()
    return found


def spearman(first: Values, second: Values) -> float | None:
    """Spearman's ρ, −1…1: Pearson's correlation of the mid-ranks, which is right with ties (Kendall 1945).

    None below two pairs and when either side is constant.
    """
    pair = complete([first, second])
    one, other = (np.asarray(mid_ranks(column)) - (len(pair) + 1) / 2 for column in pair.T)
    scale = float(np.sqrt(np.sum(one**2) * np.sum(other**2)))
    # rounding may leave the range by a last digit
    return max(-1.0, min(1.0, float(np.sum(one * other)) / scale)) if scale else None


def kendall_tau_b(first: Values, second: Values) -> float | None:
    """Kendall's τ_b, −1…1: (C − D)/√((n₀ − n₁)(n₀ − n₂)), n₁ and n₂ the pairs tied on either side (Kendall 1945).

    C pairs have the same order in both, D the opposite one, n₀ = n(n − 1)/2. None below two pairs and when either
    side is constant. Takes n² steps.
    """
    pair = complete([first, second])
    agreeing = untied_first = untied_second = 0.0
    for place in range(len(pair) - 1):
        one, other = np.sign(pair[place + 1 :] - pair[place]).T
        agreeing += float(np.sum(one * other))
        untied_first += np.count_nonzero(one)
        untied_second += np.count_nonzero(other)
    scale = float(np.sqrt(untied_first) * np.sqrt(untied_second))
    return max(-1.0, min(1.0, agreeing / scale)) if scale else None


def rank_intervals(
    scores: Mapping[str, Values],
    *,
    clusters: Sequence[Hashable] | None = None,
    level: float = LEVEL,
    resamples: int = RESAMPLES,
    seed: int = SEED,
) -> dict[str, RankInterval] | None:
    """Each system's rank by mean over the same tasks, with percentile bootstrap limits; None below two tasks.

    All systems are ranked on the same resamples (Goldstein & Spiegelhalter 1996), so what makes tasks
    hard for everyone cancels. Systems that are equal get all the places they share. The limits are each system's
    own: that all ranks lie within theirs together is less sure. Raises ValueError for NaN: give the tasks all
    have.
    """
    check_level(level)
    names = list(scores)
    sums, sizes = cluster_sums(complete(list(scores.values())), clusters)
    if len(sums) < 2:
        return None
    above, at_least = zip(
        *(
            _places(weights @ sums / (weights @ sizes)[:, None])
            for weights in counts(len(sums), resamples=resamples, seed=seed, width=len(names))
        ),
        strict=True,
    )
    tail = 100 * (1 - level) / 2
    low = np.percentile(np.concatenate(above), tail, axis=0, method="inverted_cdf")
    high = np.percentile(np.concatenate(at_least), 100 - tail, axis=0, method="inverted_cdf")
    best, _ = _places((sums.sum(axis=0) / sizes.sum())[None])
    return {
        name: RankInterval(rank=int(best[0, place]), low=int(low[place]), high=int(high[place]))
        for place, name in enumerate(names)
    }


def swaps(order_a: Mapping[str, float], order_b: Mapping[str, float]) -> Swaps:
    """Which pairs change places between two tables of scores. Only strict reversals count; ties are told apart."""
    swapped: list[Pair] = []
    tied: list[Pair] = []
    for one, other in combinations([name for name in order_a if name in order_b], 2):
        before, after = order_a[one] - order_a[other], order_b[one] - order_b[other]
        if not before or not after:
            tied.append((one, other))
        elif (before > 0) != (after > 0):
            swapped.append((one, other) if before > 0 else (other, one))
    alone = [name for name in (*order_a, *order_b) if (name in order_a) != (name in order_b)]
    return Swaps(swapped=tuple(swapped), tied=tuple(tied), only_one=tuple(alone))


def _places(means: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Of each row of means (b, k): the first and the last place each may claim, (b, k)."""
    first, last = np.empty_like(means), np.empty_like(means)
    margin = ROUNDING * np.abs(means).max(axis=1, initial=0.0, keepdims=True)
    for place in range(means.shape[1]):
        ahead = means - means[:, place : place + 1]
        first[:, place] = 1 + np.count_nonzero(ahead > margin, axis=1)
        last[:, place] = np.count_nonzero(ahead >= -margin, axis=1)
    return first, last
