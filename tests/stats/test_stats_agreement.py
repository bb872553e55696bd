"""Agreement: published examples, where each coefficient is undefined, and gaps."""

from __future__ import annotations

import math
import random
from itertools import permutations
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.stats import (
    by_pair,
    cohen_kappa,
    cohen_kappa_of,
    confusion,
    fleiss_kappa,
    gwet_ac1,
    gwet_ac1_of,
    kappa_interval,
    krippendorff_alpha,
    percent_agreement,
    percent_agreement_of,
)

NA: Final = None

#: Krippendorff (2011): four observers, twelve units, gaps.
OBSERVERS = [
    [1, 2, 3, 3, 2, 1, 4, 1, 2, NA, NA, NA],
    [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, NA, 3],
    [NA, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, NA],
    [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, NA],
]

#: Ten subjects, fourteen raters, five categories: κ = 0.210 in every textbook that has it.
SUBJECTS = [
    [0, 0, 0, 0, 14],
    [0, 2, 6, 4, 2],
    [0, 0, 3, 5, 6],
    [0, 3, 9, 2, 0],
    [2, 2, 8, 1, 1],
    [7, 7, 0, 0, 0],
    [3, 2, 6, 3, 0],
    [2, 5, 3, 2, 2],
    [6, 5, 2, 1, 0],
    [0, 2, 2, 3, 7],
]


@pytest.mark.parametrize(
    ("matrix", "agreement", "kappa"),
    [
        ([[141, 15], [96, 131]], 0.710, 0.445),
        ([[20, 5], [10, 15]], 0.700, 0.400),
        ([[45, 15], [25, 15]], 0.600, 0.130),
        ([[25, 35], [5, 35]], 0.600, 0.259),
        ([[0, 5], [5, 0]], 0.000, -1.000),
        ([[5, 0], [0, 5]], 1.000, 1.000),
        ([[5, 0], [0, 0]], 1.000, None),  # one label throughout: chance would agree as well
        ([[5, 5], [0, 0]], 0.500, 0.000),
        ([[0, 0], [0, 0]], None, None),
        ([], None, None),
    ],
)
def test_agreement_and_cohens_kappa(matrix: list[list[int]], agreement: float | None, kappa: float | None) -> None:
    found = percent_agreement_of(matrix), cohen_kappa_of(matrix)
    assert [value if value is None else round(value, 3) for value in found] == [agreement, kappa]


@pytest.mark.parametrize(
    ("matrix", "expected"),
    [
        ([[118, 5], [2, 0]], 0.941),  # Gwet (2008): κ is −0.023 where the raters agree on 94 %
        ([[141, 15], [96, 131]], 0.421),
        ([[5, 0], [0, 0]], 1.000),  # a label that nobody used still could have been
        ([[5]], None),
        ([[0, 0], [0, 0]], None),
        ([], None),
    ],
)
def test_gwets_ac1(matrix: list[list[int]], expected: float | None) -> None:
    found = gwet_ac1_of(matrix)
    assert (found if found is None else round(found, 3)) == expected


def test_pairs_make_the_matrix() -> None:
    first = [True] * 156 + [False] * 227
    second = [True] * 141 + [False] * 15 + [True] * 96 + [False] * 131
    found = confusion(first, second)
    assert found.labels == (True, False)
    assert found.counts == ((141, 15), (96, 131))
    assert cohen_kappa(first, second) == cohen_kappa_of(found.counts)
    assert percent_agreement(first, second) == percent_agreement_of(found.counts)
    assert gwet_ac1(first, second) == gwet_ac1_of(found.counts)
    assert confusion(["x"], ["x"], labels=["y", "x"]).counts == ((0, 0), (0, 1))
    assert gwet_ac1(["x"], ["x"]) is None
    assert gwet_ac1(["x"], ["x"], labels=["y", "x"]) == 1


@pytest.mark.parametrize("matrix", [[[1, 2]], [1, 2], [[-1, 0], [0, 1]], [[math.nan, 0], [0, 1]]])
def test_what_is_no_matrix_is_refused(matrix: list[list[float]]) -> None:
    for coefficient in (cohen_kappa_of, percent_agreement_of, gwet_ac1_of):
        with pytest.raises(ValueError, match="expected a square one"):
            coefficient(matrix)


def test_ratings_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ValueError, match="1 and 2 ratings"):
        cohen_kappa(["a"], ["a", "b"])
    with pytest.raises(ValueError, match="label 'b' is none of 'a'"):
        confusion(["a"], ["b"], labels=["a"])
    with pytest.raises(ValueError, match="a has 1 units and b 2"):
        by_pair({"a": [1], "b": [1, 2]})
    with pytest.raises(ValueError, match="different numbers of units"):
        krippendorff_alpha([[1], [1, 2]])


# Many raters.


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        (SUBJECTS, 0.210),
        ([[2, 0], [0, 2]], 1.0),
        ([[1, 1], [1, 1]], -1.0),
        ([[3, 0], [3, 0]], None),
        ([], None),
    ],
)
def test_fleiss_kappa(counts: list[list[int]], expected: float | None) -> None:
    found = fleiss_kappa(counts)
    assert (found if found is None else round(found, 3)) == expected


@pytest.mark.parametrize("counts", [[[2, 0], [1, 0]], [[1, 0], [0, 1]], [[-1, 3]], [2, 2]])
def test_fleiss_kappa_refuses_uneven_units(counts: list[list[int]]) -> None:
    with pytest.raises(ValueError, match="expected"):
        fleiss_kappa(counts)


@pytest.mark.parametrize(
    ("ratings", "nominal", "interval"),
    [
        (OBSERVERS, 0.743, 0.849),
        ([[1, 1, 2], [1, 1, 2]], 1.0, 1.0),
        ([[1, 2], [2, 1]], -0.5, -0.5),
        ([[1, 1], [1, 1]], None, None),
        ([[1, NA], [NA, 1]], None, None),  # no unit has two ratings
        ([[1, math.nan], [1, 2]], None, None),
        ([[1, 2, 3]], None, None),
        ([], None, None),
    ],
)
def test_krippendorffs_alpha(
    ratings: list[list[float | None]], nominal: float | None, interval: float | None
) -> None:
    found = krippendorff_alpha(ratings), krippendorff_alpha(ratings, level="interval")
    assert [value if value is None else round(value, 3) for value in found] == [nominal, interval]


@given(st.lists(st.lists(st.sampled_from([NA, 1, 2, 5]), min_size=6, max_size=6), min_size=2, max_size=4))
def test_alpha_is_that_of_the_coincidence_matrix(ratings: list[list[int | None]]) -> None:
    coincidences: dict[tuple[int, int], float] = {}
    for unit in zip(*ratings, strict=True):
        there = [value for value in unit if value is not None]
        for pair in permutations(there, 2):
            coincidences[pair] = coincidences.get(pair, 0) + 1 / (len(there) - 1)
    margins = {c: sum(o for (row, _), o in coincidences.items() if row == c) for c in (1, 2, 5)}
    n = sum(margins.values())
    for level, power in (("nominal", 0), ("interval", 2)):
        delta = {(c, k): abs(c - k) ** power * (c != k) for c in margins for k in margins}
        expected = sum(margins[c] * margins[k] * delta[c, k] for c, k in delta)
        found = krippendorff_alpha(ratings, level="nominal" if level == "nominal" else "interval")
        if not expected:
            assert found is None
        else:
            observed = sum(o * delta[pair] for pair, o in coincidences.items())
            assert found == pytest.approx(1 - (n - 1) * observed / expected)


def test_each_pair_rests_on_the_units_that_both_rated() -> None:
    found = by_pair({"judge": ["m", "m", "u", NA], "anna": ["m", "u", "u", "u"], "ben": [NA, NA, NA, "u"]})
    assert [(pair.first, pair.second, pair.n) for pair in found] == [
        ("judge", "anna", 3),
        ("judge", "ben", 0),
        ("anna", "ben", 1),
    ]
    assert [pair.agreement for pair in found] == [pytest.approx(2 / 3), None, 1]
    assert [pair.kappa for pair in found] == [pytest.approx(0.4), None, None]
    assert found[0].ac1 == pytest.approx((2 / 3 - 0.5) / 0.5)
    assert found[2].ac1 == 1


# κ with an interval.


def test_kappa_with_its_interval() -> None:
    first = [True] * 156 + [False] * 227
    second = [True] * 141 + [False] * 15 + [True] * 96 + [False] * 131
    found = kappa_interval(first, second)
    assert found is not None
    assert found.estimate == cohen_kappa(first, second)
    # the large-sample standard error (Fleiss, Cohen & Everitt 1969) is 0.0417
    assert found.low == pytest.approx(found.estimate - 1.96 * 0.0417, abs=0.01)
    assert found.high == pytest.approx(found.estimate + 1.96 * 0.0417, abs=0.01)


def test_kappa_over_tasks_is_less_sure() -> None:
    rng = random.Random(2)
    first, second, tasks = [], [], []
    for task in range(30):
        is_hard = rng.random() < 0.3
        for _unit in range(10):
            truth = rng.random() < 0.5
            first.append(truth)
            second.append(truth if not is_hard else not truth)
            tasks.append(task)
    over_units, over_tasks = kappa_interval(first, second), kappa_interval(first, second, clusters=tasks)
    assert over_units is not None and over_tasks is not None
    assert (over_units.n, over_tasks.n) == (300, 30)
    assert over_tasks.high - over_tasks.low > 2 * (over_units.high - over_units.low)


@pytest.mark.parametrize("labels", [[], ["m"], ["m", "m", "m"]])
def test_kappa_without_an_interval(labels: list[str]) -> None:
    assert kappa_interval(labels, labels) is None
