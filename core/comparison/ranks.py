"""Do judges order systems alike, and is a swap more than noise?"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import combinations

import numpy as np

from core.comparison.agreed import Seen
from core.comparison.results import Estimate, Order, OrderAgreement, Rank, Ranks, Swap
from core.comparison.study import Grid, Study, estimate
from core.fold import mean
from core.stats import difference_interval, kendall_tau_b, rank_intervals, spearman, swaps

#: (judge, one system, another) → the one's number minus the other's.
Gap = Callable[[str, str, str], Estimate]


def published_swaps(table: Mapping[str, Mapping[str, float]]) -> list[OrderAgreement]:
    """How the judges of a published table order its systems, pair by pair of judges: {judge: {system: score}}.

    Means alone do not say what is noise, so `beyond_noise` is null.
    """

    def gap(judge: str, one: str, other: str) -> Estimate:
        return Estimate(value=table[judge][one] - table[judge][other], n=0)

    return [_agreement(one, other, table, gap) for one, other in combinations(table, 2)]


def ranks(study: Study, grid: Grid, seen: Seen) -> Ranks | None:
    """The orders under each judge, over the systems that all of them have judged; None below two of either.

    A judge that shares fewer than two systems with the one that has most takes no part.
    """
    judges = _sharing(grid)
    systems = grid.systems_of(judges)
    if len(judges) < 2 or len(systems) < 2:
        return None
    tables = {judge: np.array([seen.scores(grid, system, judge) for system in systems]) for judge in judges}
    there = np.all([~np.isnan(table).any(axis=0) for table in tables.values()], axis=0)
    if not there.any():
        return None
    scores = {judge: dict(zip(systems, table[:, there], strict=True)) for judge, table in tables.items()}
    means = {
        judge: {system: mean(values.tolist()) or 0.0 for system, values in of_judge.items()}
        for judge, of_judge in scores.items()
    }
    drawn = dict(study.bootstrap)
    if study.clusters is not None:
        drawn["clusters"] = study.clusters_of(there)

    def gap(judge: str, one: str, other: str) -> Estimate:
        first, second = scores[judge][one], scores[judge][other]
        return estimate(difference_interval(first, second, **drawn), first - second)

    def order(judge: str) -> Order:
        places = rank_intervals(scores[judge], **drawn)
        found = []
        for system in sorted(systems, key=lambda system: -means[judge][system]):
            value, place = means[judge][system], None if places is None else places[system]
            above = 1 + sum(other > value for other in means[judge].values())
            found.append(
                Rank(system=system, value=value, rank=above)
                if place is None
                else Rank(system=system, value=value, rank=place.rank, low=place.low, high=place.high)
            )
        return Order(judge=judge, ranks=tuple(found))

    return Ranks(
        metric=study.metrics[0],
        n=int(there.sum()),
        orders=tuple(order(judge) for judge in judges),
        agreements=tuple(_agreement(one, other, means, gap) for one, other in combinations(judges, 2)),
    )


def _sharing(grid: Grid) -> list[str]:
    """The judge with the most systems, and the judges that share two systems or more with all chosen before."""
    by_size = sorted(grid.judges, key=lambda judge: -len(grid.systems_of([judge])))
    chosen: list[str] = []
    for judge in by_size:
        if len(grid.systems_of([*chosen, judge])) > 1:
            chosen.append(judge)
    return [judge for judge in grid.judges if judge in chosen]


def _agreement(first: str, second: str, means: Mapping[str, Mapping[str, float]], gap: Gap) -> OrderAgreement:
    one, other = means[first], means[second]
    both = [system for system in one if system in other]
    found = swaps(one, other)
    series = np.array([one[system] for system in both]), np.array([other[system] for system in both])
    return OrderAgreement(
        first=first,
        second=second,
        n_systems=len(both),
        kendall_tau_b=kendall_tau_b(*series),
        spearman=spearman(*series),
        swaps=tuple(_swap(first, second, above, below, gap) for above, below in found.swapped),
        tied=found.tied,
    )


def _swap(first: str, second: str, above: str, below: str, gap: Gap) -> Swap:
    gaps = gap(first, above, below), gap(second, above, below)
    known = all(found.low is not None for found in gaps)
    return Swap(
        first=first,
        second=second,
        above=above,
        below=below,
        gap_first=gaps[0],
        gap_second=gaps[1],
        beyond_noise=all(found.excludes_zero for found in gaps) if known else None,
    )
