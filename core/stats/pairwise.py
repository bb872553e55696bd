"""Every system against every other: difference, interval, p-value, corrected for the number of pairs."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from core.stats.bootstrap import LEVEL, RESAMPLES, SEED, Interval, Method, mean_intervals
from core.stats.permutation import SignFlip, holm, sign_flip_tests
from core.stats.units import Values, columns_of


@dataclass(frozen=True, slots=True)
class PairedDifference:
    """`first` minus `second`, over the tasks that both have.

    `interval` is None below two such tasks, `test` and `p_holm` without any.
    """

    first: str
    second: str
    interval: Interval | None
    test: SignFlip | None
    p_holm: float | None


def compare_all(
    scores: Mapping[str, Values],
    *,
    clusters: Sequence[Hashable] | None = None,
    method: Method = "bca",
    level: float = LEVEL,
    resamples: int = RESAMPLES,
    patterns: int | None = None,
    seed: int = SEED,
) -> list[PairedDifference]:
    """All pairs of systems, in the order of `scores`: bootstrap intervals, sign-flip tests, Holm over all of them.

    A system's series has one number for each task, in one order of tasks for all; NaN where it has none. Intervals
    are each for its own pair: only `p_holm` takes account of how many pairs there are. `patterns`: sign patterns
    of the test, as many as resamples unless said; with many pairs the correction needs more.
    """
    names = list(scores)
    table = columns_of(list(scores.values()))
    places = list(combinations(range(len(names)), 2))
    differences = [table[:, one] - table[:, other] for one, other in places]
    intervals = mean_intervals(
        differences, clusters=clusters, method=method, level=level, resamples=resamples, seed=seed
    )
    tests = sign_flip_tests(differences, clusters=clusters, resamples=patterns or resamples, seed=seed)
    corrected = iter(holm([test.p for test in tests if test is not None]))
    return [
        PairedDifference(
            first=names[one],
            second=names[other],
            interval=interval,
            test=test,
            p_holm=None if test is None else next(corrected),
        )
        for (one, other), interval, test in zip(places, intervals, tests, strict=True)
    ]
