"""The sign-flip test, Holm's correction, and all pairs at once."""

from __future__ import annotations

import math
import random
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.stats import compare_all, difference_interval, holm, sign_flip_test, sign_flip_tests, smallest_p


@pytest.fixture
def scipy_stats() -> Any:
    return pytest.importorskip("scipy.stats", reason="scipy is not installed; it checks our formulas")


#: Darwin's fifteen pairs of maize, in eighths of an inch, as in Fisher's Design of Experiments, section 21: of 2¹⁵
#: patterns of signs, 863 sum to at least 314 and as many to at most −314.
MAIZE = [49, -67, 8, 16, 6, 23, 28, 41, 14, 29, 56, 24, 75, 60, -48]


def test_fishers_own_example() -> None:
    found = sign_flip_test([float(value) for value in MAIZE], [0.0] * 15)
    assert found is not None
    assert found.exact
    assert found.p == 2 * 863 / 2**15
    assert found.difference == pytest.approx(314 / 15)


@pytest.mark.parametrize(
    ("differences", "clusters", "p", "n"),
    [
        ([3.0], None, 1, 1),  # both signs of one task are as extreme
        ([1.0, 2.0], None, 0.5, 2),
        ([1.0, 2.0, 4.0], None, 0.25, 3),
        ([1.0, -1.0], None, 1, 2),
        ([0.0] * 40, None, 1, 40),
        ([0.0] * 40 + [1.0, 2.0, 4.0], None, 0.25, 43),  # tasks without a difference change nothing
        ([0.1, 0.2, -0.3], None, 1, 3),  # a sum of 0, however rounded
        ([1.0, 2.0, 4.0], ["a", "a", "b"], 0.5, 2),
        ([1.0, -1.0, 4.0, 4.0], ["a", "a", "b", "c"], 0.5, 3),
    ],
)
def test_small_cases_are_counted_out(
    differences: list[float], clusters: list[str] | None, p: float, n: int
) -> None:
    found = sign_flip_test(differences, [0.0] * len(differences), clusters=clusters)
    assert found is not None
    assert (found.p, found.n, found.exact) == (p, n, True)


def test_nothing_to_compare_has_no_test() -> None:
    assert sign_flip_test([], []) is None
    assert sign_flip_tests([[math.nan, math.nan]]) == [None]
    assert sign_flip_tests([]) == []


@given(st.lists(st.integers(-5, 5), min_size=1, max_size=9))
def test_every_pattern_counts_once(differences: list[int]) -> None:
    found = sign_flip_test([float(value) for value in differences], [0.0] * len(differences))
    sums = [
        abs(sum(sign * value for sign, value in zip(signs, differences, strict=True)))
        for signs in product((1, -1), repeat=len(differences))
    ]
    assert found is not None
    assert found.p == sum(value >= abs(sum(differences)) for value in sums) / len(sums)


def test_sixteen_that_differ_are_exact_and_seventeen_are_drawn() -> None:
    sixteen = sign_flip_test([1.0] * 16, [0.0] * 16)
    seventeen = sign_flip_test([1.0] * 17, [0.0] * 17, resamples=99)
    assert sixteen is not None and seventeen is not None
    assert (sixteen.p, sixteen.exact) == (2 / 2**16, True)
    assert (seventeen.p, seventeen.exact) == (1 / 100, False)  # never 0


def test_drawn_patterns_come_near_scipys(scipy_stats: Any) -> None:
    rng = random.Random(3)
    first = [rng.gauss(50, 10) for _ in range(60)]
    second = [value - rng.gauss(1, 5) for value in first]
    theirs = scipy_stats.permutation_test(
        (first, second),
        lambda x, y, axis: (x - y).mean(axis=axis),
        permutation_type="samples",
        vectorized=True,
        n_resamples=20_000,
        rng=1,
    ).pvalue
    ours = sign_flip_test(first, second, resamples=20_000)
    assert ours is not None
    assert 0.01 < ours.p < 0.5
    assert ours.p == pytest.approx(theirs, abs=4 * math.sqrt(2 * theirs / 20_000))


def test_the_same_seed_gives_the_same_p_in_any_order() -> None:
    rng = random.Random(5)
    rows = [(rng.random(), rng.random(), task) for task in range(15) for _ in range(2)]
    rng.shuffle(rows)
    one = sign_flip_test([row[0] for row in rows], [row[1] for row in rows])
    rows.reverse()
    other = sign_flip_test([row[0] for row in rows], [row[1] for row in rows])
    assert one == other
    assert one != sign_flip_test([row[0] for row in rows], [row[1] for row in rows], seed=1)


@pytest.mark.parametrize(
    ("first", "second", "message"),
    [([1.0], [1.0, 2.0], "the same tasks"), ([math.nan], [1.0], "holds NaN"), ([math.inf], [1.0], "infinite")],
)
def test_what_is_refused(first: list[float], second: list[float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        sign_flip_test(first, second)


@pytest.mark.parametrize(
    ("p_values", "expected"),
    [
        ([], []),
        ([0.03], [0.03]),
        ([0.01, 0.04, 0.03, 0.005], [0.03, 0.06, 0.06, 0.02]),  # as R's p.adjust gives
        ([0.01, 0.01, 0.01], [0.03, 0.03, 0.03]),
        ([0.2, 0.9, 0.6], [0.6, 1, 1]),
        ([0.0, 1.0], [0, 1]),
    ],
)
def test_holm(p_values: list[float], expected: list[float]) -> None:
    assert holm(p_values) == pytest.approx(expected)


@given(st.lists(st.floats(0, 1), max_size=20))
def test_holm_keeps_order_and_range(p_values: list[float]) -> None:
    adjusted = holm(p_values)
    pairs = sorted(zip(p_values, adjusted, strict=True))
    assert [value for _, value in pairs] == sorted(adjusted)
    assert all(p <= value <= min(1, len(p_values) * p) or p == value for p, value in pairs)


@pytest.mark.parametrize("p", [-0.1, 1.1, math.nan])
def test_holm_refuses_what_is_no_probability(p: float) -> None:
    with pytest.raises(ValueError, match="p-value 1"):
        holm([0.5, p])


@pytest.mark.parametrize("clusters", [None, ["a", "a", "b"], []])
def test_without_series_there_is_nothing_to_test(clusters: list[str] | None) -> None:
    assert sign_flip_tests([], clusters=clusters) == []
    assert compare_all({}, clusters=clusters) == []


def test_one_system_has_no_pairs_whatever_its_clusters() -> None:
    assert compare_all({"a": [1.0, 2.0, 3.0]}, clusters=["x", "x", "y"]) == []


@pytest.mark.parametrize("n", [0, 1, 2, 5, 6, 16, 17, 30])
def test_no_p_is_smaller_than_the_smallest(n: int) -> None:
    (found,) = sign_flip_tests([[float(at + 1) for at in range(n)] + [0.0]], resamples=999)
    assert found is not None
    least = smallest_p(n, resamples=999)
    assert least == (2.0 ** (1 - n) if 0 < n <= 16 else 1.0 if n == 0 else 0.001)
    assert found.p >= least
    assert n > 16 or found.p == least


def test_the_smallest_p_of_less_than_no_units_is_refused() -> None:
    with pytest.raises(ValueError, match="n=-1"):
        smallest_p(-1)


def test_more_patterns_let_many_pairs_reach_the_level() -> None:
    rng = random.Random(8)
    scores = {f"s{system}": [rng.gauss(50 * system, 1) for _ in range(20)] for system in range(8)}
    few = compare_all(scores, resamples=200)
    many = compare_all(scores, resamples=200, patterns=20_000)
    assert min(pair.p_holm or 1 for pair in few) > 0.05
    assert max(pair.p_holm or 1 for pair in many) < 0.01
    assert [pair.interval for pair in few] == [pair.interval for pair in many]


# All pairs.


def test_all_pairs_at_once_are_each_pair_alone() -> None:
    rng = random.Random(6)
    base = [rng.gauss(60, 15) for _ in range(30)]
    scores = {
        name: [value + rng.gauss(shift, 5) for value in base] for name, shift in (("a", 0), ("b", 1), ("c", 9))
    }
    found = compare_all(scores)
    assert [(pair.first, pair.second) for pair in found] == [("a", "b"), ("a", "c"), ("b", "c")]
    for pair in found:
        alone = difference_interval(scores[pair.first], scores[pair.second])
        assert pair.interval is not None and alone is not None and pair.test is not None
        assert pair.interval.estimate == alone.estimate == pair.test.difference
        # the order in which tasks are drawn is shared, so the draws differ
        assert pair.interval.low == pytest.approx(alone.low, abs=0.15)
        assert pair.interval.high == pytest.approx(alone.high, abs=0.15)
    assert [pair.p_holm for pair in found] == holm([pair.test.p for pair in found if pair.test])
    assert [pair.p_holm is not None and pair.p_holm < 0.05 for pair in found] == [False, True, True]


def test_pairs_rest_on_the_tasks_that_both_have() -> None:
    gap = math.nan
    found = compare_all({"a": [1.0, 2.0, gap], "b": [2.0, 4.0, 6.0], "c": [gap, gap, 3.0]})
    assert [pair.test and pair.test.n for pair in found] == [2, None, 1]
    assert [pair.interval is None for pair in found] == [False, True, True]
    assert [pair.p_holm for pair in found] == [1, None, 1]
    assert compare_all({"a": [1.0]}) == compare_all({}) == []
