"""How far raters agree: judges with each other, with people, with themselves.

Each coefficient but the plain share takes out what chance would give, and each means something else by chance. All
are at most 1 (perfect) and 0 at chance; None where chance leaves nothing to agree about, never 0 or 1 instead.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from core.stats.bootstrap import LEVEL, RESAMPLES, SEED, Interval, Method, statistic_interval
from core.stats.units import FloatArray

Level = Literal["nominal", "interval"]


@dataclass(frozen=True, slots=True)
class Confusion:
    """Two raters' labels of the same units: counts[i][j] got labels[i] from the first and labels[j] from the
    second."""

    labels: tuple[Hashable, ...]
    counts: tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True)
class PairAgreement:
    """Two raters over the `n` units that both rated."""

    first: str
    second: str
    n: int
    agreement: float | None
    kappa: float | None
    ac1: float | None


def confusion(
    first: Sequence[Hashable], second: Sequence[Hashable], *, labels: Sequence[Hashable] | None = None
) -> Confusion:
    """The confusion matrix of two raters, unit by unit. `labels` sets the order, and may name unused ones.

    Without it, labels come in the order of first appearance. Raises ValueError for ratings of different length and
    for a label that is not listed.
    """
    if len(first) != len(second):
        raise ValueError(f"{len(first)} and {len(second)} ratings, expected one of each rater for each unit")
    known = tuple(dict.fromkeys([*first, *second] if labels is None else labels))
    unknown = {*first, *second}.difference(known)
    if unknown:
        raise ValueError(f"label {next(iter(unknown))!r} is none of {', '.join(map(repr, known))}")
    pairs = Counter(zip(first, second, strict=True))
    return Confusion(known, tuple(tuple(pairs[row, column] for column in known) for row in known))


def percent_agreement(first: Sequence[Hashable], second: Sequence[Hashable]) -> float | None:
    """The share of units with the same label, 0…1; None without units."""
    return percent_agreement_of(confusion(first, second).counts)


def percent_agreement_of(matrix: npt.ArrayLike) -> float | None:
    """The same from a confusion matrix."""
    counts = _square(matrix)
    total = counts.sum()
    return float(np.trace(counts) / total) if total else None


def cohen_kappa(first: Sequence[Hashable], second: Sequence[Hashable]) -> float | None:
    """Cohen's κ of two raters, see cohen_kappa_of."""
    return cohen_kappa_of(confusion(first, second).counts)


def cohen_kappa_of(matrix: npt.ArrayLike) -> float | None:
    """Cohen's κ = (pₒ − pₑ)/(1 − pₑ), pₑ the product of the raters' own shares, summed over labels (Cohen 1960).

    −1…1. None without units, and when both raters gave one and the same label throughout (pₑ = 1).
    """
    return _number(_kappas(_square(matrix)[None])[0])


def kappa_interval(
    first: Sequence[Hashable],
    second: Sequence[Hashable],
    *,
    clusters: Sequence[Hashable] | None = None,
    method: Method = "bca",
    level: float = LEVEL,
    resamples: int = RESAMPLES,
    seed: int = SEED,
) -> Interval | None:
    """The bootstrap interval of Cohen's κ; None as statistic_interval says. `clusters`: each unit's task."""
    labels = confusion(first, second).labels
    number = {label: place for place, label in enumerate(labels)}
    cells = np.array([number[one] * len(labels) + number[two] for one, two in zip(first, second, strict=True)])

    hits = (cells[:, None] == np.arange(len(labels) ** 2)).astype(np.float64)

    def kappa(hits: npt.NDArray[Any], weights: FloatArray) -> FloatArray:
        return _kappas((weights @ hits).reshape(-1, len(labels), len(labels)))

    return statistic_interval(
        hits, kappa, clusters=clusters, method=method, level=level, resamples=resamples, seed=seed
    )


def gwet_ac1(
    first: Sequence[Hashable], second: Sequence[Hashable], *, labels: Sequence[Hashable] | None = None
) -> float | None:
    """Gwet's AC1 of two raters, see gwet_ac1_of. It depends on how many labels there are: name those unused."""
    return gwet_ac1_of(confusion(first, second, labels=labels).counts)


def gwet_ac1_of(matrix: npt.ArrayLike) -> float | None:
    """Gwet's AC1 = (pₒ − pₑ)/(1 − pₑ), pₑ = Σ πₖ(1 − πₖ)/(q − 1) (Gwet 2008).

    πₖ is the mean of the raters' shares of label k, of q labels. Unlike κ it stays near the plain agreement when
    one label is rare. None without units and with fewer than two labels.
    """
    counts = _square(matrix)
    total = counts.sum()
    if not total or len(counts) < 2:
        return None
    shares = (counts.sum(axis=0) + counts.sum(axis=1)) / (2 * total)
    chance = float(np.sum(shares * (1 - shares))) / (len(counts) - 1)
    return (float(np.trace(counts) / total) - chance) / (1 - chance)


def fleiss_kappa(counts: npt.ArrayLike) -> float | None:
    """Fleiss' κ of any number of raters (Fleiss 1971). counts: (units, labels), each row summing to m >= 2.

    κ = (P̄ − P̄ₑ)/(1 − P̄ₑ), P̄ the mean over units of the share of agreeing pairs of raters, P̄ₑ = Σ pⱼ². The
    raters of one unit need not be those of another. None without units and when one label was used throughout.
    Raises ValueError for units with different numbers of ratings: Krippendorff's α takes those.
    """
    table = np.asarray(counts, dtype=np.float64)
    if not table.size:
        return None
    if table.ndim != 2 or (table < 0).any():
        raise ValueError(f"counts of shape {table.shape}, expected (units, labels), each 0 or more")
    raters = table.sum(axis=1)
    if raters.min() != raters.max() or raters[0] < 2:
        raise ValueError(
            f"units with {raters.min():g} to {raters.max():g} ratings, expected 2 or more, as many for each"
        )
    m = raters[0]
    observed = float(np.mean((np.sum(table**2, axis=1) - m) / (m * (m - 1))))
    chance = float(np.sum((table.sum(axis=0) / table.sum()) ** 2))
    return None if np.count_nonzero(table.sum(axis=0)) == 1 else (observed - chance) / (1 - chance)


def krippendorff_alpha(ratings: Sequence[Sequence[Hashable]], *, level: Level = "nominal") -> float | None:
    """Krippendorff's α of any number of raters (Krippendorff 2011): ratings[rater][unit], None or NaN a gap.

    α = 1 − Dₒ/Dₑ. With δ² = 1 for different labels (nominal) or the squared difference (interval), nᵤ ratings of
    unit u and n ratings that have a partner in their unit:

        Dₒ = (1/n) Σᵤ (1/(nᵤ − 1)) Σ δ² over ordered pairs in u
        Dₑ = (1/(n(n − 1))) Σ δ² over all ordered pairs

    These are the sums over the coincidence matrix (observed and expected), taken without holding it. At most 1;
    0 at chance, below 0 for systematic disagreement. None when no unit has two ratings, and when all ratings
    that have a partner are equal. Raises ValueError for raters with different numbers of units, and at the
    interval level for labels that are no numbers.
    """
    if len({len(row) for row in ratings}) > 1:
        raise ValueError("raters with different numbers of units, expected one rating or None for each unit")
    units = [[value for value in unit if not _is_gap(value)] for unit in zip(*ratings, strict=True)]
    pairable = [unit for unit in units if len(unit) > 1]
    everything = [value for unit in pairable for value in unit]
    expected = _disagreement(everything, level)
    if not expected:
        return None
    observed = sum(_disagreement(unit, level) / (len(unit) - 1) for unit in pairable)
    return 1 - (len(everything) - 1) * observed / expected


def by_pair(ratings: Mapping[str, Sequence[Hashable]]) -> list[PairAgreement]:
    """Every pair of raters, in the order given; ratings[rater][unit], None or NaN a gap.

    AC1 counts the labels that anyone used. Raises ValueError for raters with different numbers of units.
    """
    labels = list(dict.fromkeys(value for row in ratings.values() for value in row if not _is_gap(value)))
    found = []
    for (first, ones), (second, others) in combinations(ratings.items(), 2):
        if len(ones) != len(others):
            raise ValueError(f"{first} has {len(ones)} units and {second} {len(others)}, expected the same units")
        both = [
            (one, other)
            for one, other in zip(ones, others, strict=True)
            if not _is_gap(one) and not _is_gap(other)
        ]
        counts = confusion([one for one, _ in both], [other for _, other in both], labels=labels).counts
        found.append(
            PairAgreement(
                first=first,
                second=second,
                n=len(both),
                agreement=percent_agreement_of(counts),
                kappa=cohen_kappa_of(counts),
                ac1=gwet_ac1_of(counts),
            )
        )
    return found


def _kappas(matrices: FloatArray) -> FloatArray:
    """Cohen's κ of each matrix (b, k, k); NaN where undefined."""
    totals = matrices.sum(axis=(1, 2))
    rows, columns = matrices.sum(axis=2), matrices.sum(axis=1)
    agreed = np.trace(matrices, axis1=1, axis2=2)
    by_chance = np.sum(rows * columns, axis=1)
    # (pₒ − pₑ)/(1 − pₑ) times the squared total: whole numbers stay whole, so pₑ = 1 is seen exactly
    room = totals**2 - by_chance
    found = np.full(len(matrices), np.nan)
    np.divide(agreed * totals - by_chance, room, out=found, where=room > 0)
    return found


def _square(matrix: npt.ArrayLike) -> FloatArray:
    counts = np.asarray(matrix, dtype=np.float64)
    if not counts.size:
        return np.zeros((0, 0))
    if counts.ndim != 2 or counts.shape[0] != counts.shape[1] or not (counts >= 0).all():
        raise ValueError(f"a matrix of shape {counts.shape}, expected a square one of counts, each 0 or more")
    return counts


def _disagreement(values: Sequence[Hashable], level: Level) -> float:
    """Σ δ² over the ordered pairs of `values`."""
    if level == "nominal":
        return float(len(values) ** 2 - sum(count**2 for count in Counter(values).values()))
    numbers = np.asarray(values, dtype=np.float64)
    if not len(numbers) or numbers.min() == numbers.max():
        return 0.0  # the rounded mean may lie a last digit off them
    return float(2 * len(numbers) * np.sum((numbers - numbers.mean()) ** 2))


def _is_gap(value: Hashable) -> bool:
    return value is None or value != value  # only NaN differs from itself


def _number(value: float) -> float | None:
    return None if np.isnan(value) else float(value)
