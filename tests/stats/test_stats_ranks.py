"""Ranks, rank correlations, who changes places, and how sure a rank is."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.stats import RankInterval, Swaps, kendall_tau_b, mid_ranks, rank_intervals, spearman, swaps

few = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=15)


@pytest.fixture(scope="module")
def scipy_stats() -> Any:
    return pytest.importorskip("scipy.stats", reason="scipy is not installed; it checks our formulas")


@pytest.mark.parametrize(
    ("values", "ascending", "descending"),
    [
        ([], [], []),
        ([7.0], [1], [1]),
        ([10.0, 30.0, 20.0], [1, 3, 2], [3, 1, 2]),
        ([0.0, 2.0, 3.0, 2.0], [1, 2.5, 4, 2.5], [4, 2.5, 1, 2.5]),
        ([5.0, 5.0, 5.0], [2, 2, 2], [2, 2, 2]),
    ],
)
def test_mid_ranks(values: list[float], ascending: list[float], descending: list[float]) -> None:
    assert mid_ranks(values) == ascending
    assert mid_ranks(values, highest_first=True) == descending


@pytest.mark.parametrize(
    ("first", "second", "rho", "tau"),
    [
        # IQ and hours of television, the usual worked example of ρ
        ([106, 100, 86, 101, 99, 103, 97, 113, 112, 110], [7, 27, 2, 50, 28, 29, 20, 12, 6, 17], -0.1758, -0.1111),
        ([1, 2, 3, 4], [1, 2, 3, 4], 1, 1),
        ([1, 2, 3, 4], [4, 3, 2, 1], -1, -1),
        ([12, 2, 1, 12, 2], [1, 4, 7, 1, 0], -0.5407, -0.4714),  # with ties
        ([1, 1, 1], [1, 2, 3], None, None),
        ([1], [1], None, None),
        ([], [], None, None),
    ],
)
def test_rank_correlations(first: list[float], second: list[float], rho: float | None, tau: float | None) -> None:
    for correlation, expected in ((spearman, rho), (kendall_tau_b, tau)):
        found = correlation(first, second)
        assert found == (None if expected is None else pytest.approx(expected, abs=5e-5))


@given(pairs=few)
def test_ranks_and_correlations_are_scipys(scipy_stats: Any, pairs: list[tuple[int, int]]) -> None:
    first, second = [float(one) for one, _ in pairs], [float(other) for _, other in pairs]
    assert mid_ranks(first) == scipy_stats.rankdata(first).tolist()
    if len(set(first)) < 2 or len(set(second)) < 2:
        assert spearman(first, second) is None
        assert kendall_tau_b(first, second) is None
    else:
        assert spearman(first, second) == pytest.approx(scipy_stats.spearmanr(first, second).statistic)
        assert kendall_tau_b(first, second) == pytest.approx(scipy_stats.kendalltau(first, second).statistic)


@pytest.mark.parametrize("correlation", [spearman, kendall_tau_b])
def test_what_is_refused(correlation: Callable[[list[float], list[float]], float | None]) -> None:
    with pytest.raises(ValueError, match="the same tasks"):
        correlation([1.0], [1.0, 2.0])
    with pytest.raises(ValueError, match="holds NaN"):
        correlation([1.0, math.nan], [1.0, 2.0])


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ({}, {}, Swaps((), (), ())),
        ({"a": 3, "b": 2, "c": 1}, {"a": 30, "b": 20, "c": 10}, Swaps((), (), ())),
        (
            {"a": 3, "b": 2, "c": 1},
            {"a": 1, "b": 3, "c": 2},
            Swaps((("a", "b"), ("a", "c")), (), ()),
        ),
        ({"a": 1, "b": 2}, {"a": 2, "b": 1}, Swaps((("b", "a"),), (), ())),
        ({"a": 1, "b": 1}, {"a": 2, "b": 1}, Swaps((), (("a", "b"),), ())),
        ({"a": 1, "b": 2}, {"a": 2, "b": 2}, Swaps((), (("a", "b"),), ())),
        ({"a": 1, "b": 2, "x": 3}, {"a": 2, "y": 0, "b": 1}, Swaps((("b", "a"),), (), ("x", "y"))),
    ],
)
def test_swaps(before: dict[str, float], after: dict[str, float], expected: Swaps) -> None:
    assert swaps(before, after) == expected


# Rank intervals.


def test_far_apart_ranks_are_sure_and_near_ones_are_not() -> None:
    rng = random.Random(1)
    base = [rng.gauss(50, 20) for _ in range(80)]
    scores = {
        name: [value + rng.gauss(shift, 5) for value in base]
        for name, shift in (("low", -20), ("one", 0), ("other", 0.1), ("high", 20))
    }
    found = rank_intervals(scores)
    assert found is not None
    assert found["high"] == RankInterval(1, 1, 1)
    assert found["low"] == RankInterval(4, 4, 4)
    assert {(found[name].low, found[name].high) for name in ("one", "other")} == {(2, 3)}
    assert rank_intervals(scores, seed=1) == rank_intervals(scores, seed=1)
    shuffled = dict(reversed(scores.items()))
    assert rank_intervals(shuffled) == found


def test_equal_systems_share_their_places() -> None:
    values = [0.1, 0.7, 0.3]
    found = rank_intervals({"a": values, "b": values, "c": [0.0, 0.2, 0.1]})
    assert found == {"a": RankInterval(1, 1, 2), "b": RankInterval(1, 1, 2), "c": RankInterval(3, 3, 3)}


def test_clusters_widen_rank_intervals() -> None:
    rng = random.Random(1)
    ahead = [rng.gauss(0.3, 1) for _ in range(12)]
    one, clusters = [value for value in ahead for _ in range(10)], [task for task in range(12) for _ in range(10)]
    scores = {"one": one, "other": [0.0] * 120}
    over_values, over_tasks = rank_intervals(scores), rank_intervals(scores, clusters=clusters)
    assert over_values is not None and over_tasks is not None
    assert over_values["one"] == RankInterval(1, 1, 1)
    assert over_tasks["one"] == RankInterval(1, 1, 2)


@pytest.mark.parametrize("scores", [{}, {"a": [], "b": []}, {"a": [1.0], "b": [2.0]}])
def test_too_few_tasks_have_no_rank_intervals(scores: dict[str, list[float]]) -> None:
    assert rank_intervals(scores) is None


def test_ranks_need_tasks_that_all_have() -> None:
    with pytest.raises(ValueError, match="series 1 holds NaN"):
        rank_intervals({"a": [1.0, 2.0], "b": [1.0, math.nan]})
