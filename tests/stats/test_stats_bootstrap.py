"""Bootstrap intervals: the old names' numbers, other people's formulas, clusters, and what is undefined."""

from __future__ import annotations

import math
import random
from statistics import NormalDist
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.stats import (
    bootstrap_interval,
    difference_interval,
    mean_interval,
    mean_intervals,
    statistic_interval,
    units,
)
from core.stats.bootstrap import Method
from core.stats.units import FloatArray

_RNG = random.Random(4)
SKEWED = sorted(_RNG.expovariate(0.1) for _ in range(60))


@pytest.fixture
def scipy_stats() -> Any:
    return pytest.importorskip("scipy.stats", reason="scipy is not installed; it checks our formulas")


def mean_of(values: npt.NDArray[Any], weights: FloatArray) -> FloatArray:
    """The weighted mean, as a statistic."""
    numbers = np.asarray(values, dtype=np.float64)
    return np.asarray(weights @ numbers / weights.sum(axis=1), dtype=np.float64)


@pytest.mark.parametrize(
    ("values", "settings", "expected"),
    [
        ([1.0, 3.0], {}, (1.0, 3.0)),
        ([12.5, 50.0, 62.5, 75.0, 100.0], {}, (32.5, 85.0)),
        ([12.5, 50.0, 62.5, 75.0, 100.0], {"level": 0.9, "resamples": 500, "seed": 7}, (37.5, 82.5)),
        ([0.1 * n for n in range(30)], {}, (1.1433333333333333, 1.7566666666666666)),
    ],
)
def test_the_interval_of_every_summary_stays_what_it_was(
    values: list[float], settings: dict[str, Any], expected: tuple[float, float]
) -> None:
    assert bootstrap_interval(values, **settings) == pytest.approx(expected, rel=1e-13)


@pytest.mark.parametrize("method", ["percentile", "bca"])
@pytest.mark.parametrize("level", [0.9, 0.95])
def test_limits_are_scipys_on_the_same_draws(scipy_stats: Any, method: Method, level: float) -> None:
    theirs = scipy_stats.bootstrap(
        (np.array(SKEWED),),
        np.mean,
        method={"bca": "BCa", "percentile": "percentile"}[method],
        confidence_level=level,
        n_resamples=3000,
        random_state=np.random.RandomState(5),
    ).confidence_interval
    ours = mean_interval(SKEWED, method=method, level=level, resamples=3000, seed=5)
    assert ours is not None
    assert (ours.low, ours.high) == pytest.approx((theirs.low, theirs.high), rel=1e-10)


def test_percentile_limits_agree_with_the_summarys() -> None:
    ours = mean_interval(SKEWED, method="percentile")
    assert ours is not None
    assert (ours.low, ours.high) == pytest.approx(bootstrap_interval(SKEWED), rel=1e-12)


def test_acceleration_moves_a_skewed_interval_towards_its_tail() -> None:
    plain, moved = mean_interval(SKEWED, method="percentile"), mean_interval(SKEWED, method="bca")
    assert plain is not None and moved is not None
    assert plain.low < moved.low
    assert plain.high < moved.high


@pytest.mark.parametrize("method", ["percentile", "bca"])
@pytest.mark.parametrize(
    ("values", "clusters", "expected"),
    [
        ([], None, None),
        ([1.0], None, None),
        ([1.0, 5.0, 3.0], ["a", "a", "a"], None),  # one task has no spread of tasks
        ([0.1] * 7, None, (0.1, 0.1, 7)),
        ([0.1] * 7, [0, 0, 0, 1, 1, 2, 2], (0.1, 0.1, 3)),
        ([1.0, 2.0, 2.0, 1.0], [0, 0, 1, 1], (1.5, 1.5, 2)),  # tasks that are alike, values that are not
    ],
)
def test_what_has_no_interval_or_none_of_any_width(
    method: Method, values: list[float], clusters: list[object] | None, expected: tuple[float, float, int] | None
) -> None:
    found = mean_interval(values, clusters=clusters, method=method, resamples=200)
    assert (found and (found.low, found.high, found.n)) == expected


@pytest.mark.parametrize(
    ("values", "clusters", "settings", "message"),
    [
        ([1.0, math.nan], None, {}, "holds NaN"),
        ([1.0, math.inf], None, {}, "infinite"),
        ([1.0, 2.0], ["a"], {}, "1 cluster labels for 2 values"),
        ([1.0, 2.0], None, {"level": 1.0}, "level=1.0"),
        ([1.0, 2.0], None, {"resamples": 0}, "resamples=0"),
    ],
)
def test_what_is_refused(
    values: list[float], clusters: list[object] | None, settings: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        mean_interval(values, clusters=clusters, **settings)


def test_series_of_different_tasks_are_refused() -> None:
    with pytest.raises(ValueError, match="the same tasks"):
        difference_interval([1.0, 2.0], [1.0])


@given(st.lists(st.tuples(st.integers(0, 4), st.floats(0, 100)), min_size=2, max_size=25), st.randoms())
def test_the_order_of_values_changes_no_bit(rows: list[tuple[int, float]], rng: random.Random) -> None:
    shuffled = list(rows)
    rng.shuffle(shuffled)
    first, second = (
        mean_interval([value for _, value in some], clusters=[label for label, _ in some], resamples=100)
        for some in (rows, shuffled)
    )
    assert first == second


@pytest.mark.parametrize("scale", [1e-154, 1e-30, 1e30, 1e100])
def test_the_unit_of_scores_does_not_matter(scale: float) -> None:
    plain, scaled = mean_interval(SKEWED), mean_interval([scale * value for value in SKEWED])
    assert plain is not None and scaled is not None
    assert (scaled.low / scale, scaled.high / scale) == pytest.approx((plain.low, plain.high))


def test_the_size_of_chunks_changes_no_draw(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = np.concatenate(list(units.counts(7, resamples=50, seed=3)))
    monkeypatch.setattr(units, "CHUNK", 30)
    parts = list(units.counts(7, resamples=50, seed=3))
    assert {part.shape for part in parts} == {(4, 7), (2, 7)}
    assert (np.concatenate(parts) == whole).all()
    assert (whole.sum(axis=1) == 7).all()


def test_another_seed_draws_others() -> None:
    assert mean_interval(SKEWED, seed=1) != mean_interval(SKEWED, seed=2)
    assert mean_interval(SKEWED, seed=1) == mean_interval(SKEWED, seed=1)


# Differences and many series.


def test_a_difference_is_that_of_the_pairs() -> None:
    first, second = [3.0, 5.0, 9.0, 4.0], [1.0, 4.0, 4.0, 5.0]
    found = difference_interval(first, second)
    assert found == mean_interval([2.0, 1.0, 5.0, -1.0])
    assert found is not None
    assert found.estimate == 1.75
    assert difference_interval(first, first) == mean_interval([0.0] * 4)


def test_series_with_gaps_rest_on_their_own_tasks() -> None:
    gap = math.nan
    found = mean_intervals([[1.0, gap, 4.0, 6.0], [2.0, 7.0, 1.0, 8.0], [gap, gap, gap, 1.0], [gap] * 4])
    assert found == [mean_interval([1.0, 4.0, 6.0]), mean_interval([2.0, 7.0, 1.0, 8.0]), None, None]


def test_series_share_their_draws() -> None:
    rng = random.Random(1)
    one = [rng.gauss(0, 1) for _ in range(40)]
    found = mean_intervals([one, [2 * value for value in one], [value + 5 for value in one]])
    assert found[0] is not None and found[1] is not None and found[2] is not None
    assert (found[1].low, found[1].high) == pytest.approx((2 * found[0].low, 2 * found[0].high))
    assert (found[2].low, found[2].high) == pytest.approx((found[0].low + 5, found[0].high + 5))
    assert mean_intervals([]) == []


# Clusters.


def test_clusters_of_one_are_no_clusters() -> None:
    assert mean_interval(SKEWED, clusters=range(60)) == mean_interval(SKEWED)


def test_repeats_of_a_task_add_no_certainty() -> None:
    doubled = mean_interval([value for value in SKEWED for _ in range(2)], clusters=[n // 2 for n in range(120)])
    single = mean_interval(SKEWED)
    assert doubled is not None and single is not None
    assert doubled.n == 60
    assert (doubled.low, doubled.high) == pytest.approx((single.low, single.high), rel=1e-12)


def test_the_acceleration_of_clusters_leaves_out_whole_tasks() -> None:
    """Against the definition, step by step: draw tasks, pool their values, leave out a task."""
    tasks = [[1.0, 2.0, 9.0], [4.0], [3.0, 5.0], [8.0, 8.0, 1.0, 0.0], [20.0]]
    values = [value for task in tasks for value in task]
    labels = [number for number, task in enumerate(tasks) for _ in task]
    found = mean_interval(values, clusters=labels, resamples=999, seed=8)

    # units are drawn in ascending order of (sum, size)
    tasks.sort(key=lambda task: (sum(task), len(task)))
    drawn = np.random.RandomState(8).randint(0, 5, size=(999, 5))
    replicates = np.array([np.mean([value for unit in row for value in tasks[unit]]) for row in drawn])
    left = np.array([np.mean([value for task in tasks if task is not out for value in task]) for out in tasks])
    gaps = left.mean() - left
    acceleration = (gaps**3).sum() / (6 * (gaps**2).sum() ** 1.5)
    centre = np.mean(values)
    equal = np.isclose(replicates, centre, rtol=1e-12, atol=0)
    normal = NormalDist()
    bias = normal.inv_cdf(((replicates < centre) & ~equal).mean() + equal.mean() / 2)
    tails = [
        100 * normal.cdf(bias + (bias + z) / (1 - acceleration * (bias + z))) for z in (-1.959963985, 1.959963985)
    ]
    assert found is not None
    assert abs(acceleration) > 0.05
    assert [found.low, found.high] == pytest.approx(np.percentile(replicates, tails), rel=1e-7)


# Other statistics.


@pytest.mark.parametrize("method", ["percentile", "bca"])
@pytest.mark.parametrize("clusters", [None, [n // 3 for n in range(60)]])
def test_a_mean_as_a_statistic_is_the_mean(method: Method, clusters: list[int] | None) -> None:
    # in the order in which mean_interval draws: by the task's sum
    mean = mean_interval(SKEWED, clusters=clusters, method=method)
    other = statistic_interval(SKEWED, mean_of, clusters=clusters, method=method)
    assert mean is not None and other is not None
    assert (other.estimate, other.low, other.high, other.n) == pytest.approx(
        (mean.estimate, mean.low, mean.high, mean.n), rel=1e-10
    )


def test_statistics_of_rows(scipy_stats: Any) -> None:
    rng = np.random.default_rng(2)
    x = rng.normal(size=50)
    rows = np.column_stack([x, x + rng.normal(size=50)])

    def correlation(rows: npt.NDArray[Any], weights: FloatArray) -> FloatArray:
        table = np.asarray(rows, dtype=np.float64)
        share = weights / weights.sum(axis=1, keepdims=True)
        centred = table[None] - (share @ table)[:, None]
        product = np.einsum("bn,bni,bnj->bij", share, centred, centred)
        return np.asarray(product[:, 0, 1] / np.sqrt(product[:, 0, 0] * product[:, 1, 1]))

    theirs = scipy_stats.bootstrap(
        (rows[:, 0], rows[:, 1]),
        lambda x, y: np.corrcoef(x, y)[0, 1],
        paired=True,
        vectorized=False,
        n_resamples=2000,
        method="BCa",
        random_state=np.random.RandomState(9),
    ).confidence_interval
    ours = statistic_interval(rows, correlation, resamples=2000, seed=9)
    assert ours is not None
    assert (ours.low, ours.high) == pytest.approx((theirs.low, theirs.high), rel=1e-9)


def test_replicates_without_a_value_are_counted_and_may_be_few() -> None:
    def share_of_positives(values: npt.NDArray[Any], weights: FloatArray) -> FloatArray:
        """Of the values other than 0, the share above it; undefined where only zeros were drawn."""
        numbers = np.asarray(values, dtype=np.float64)
        there = weights @ (numbers != 0)
        found = np.full(len(weights), np.nan)
        np.divide(weights @ (numbers > 0), there, out=found, where=there > 0)
        return found

    few = statistic_interval([0] * 16 + [1, 1, -1, -1], share_of_positives)
    assert few is not None
    assert 0 < few.undefined < 500
    assert statistic_interval([0] * 18 + [1, -1], share_of_positives) is None  # 12 % are undefined
    assert statistic_interval([0] * 20, share_of_positives) is None
    assert statistic_interval([], share_of_positives) is None


def test_a_statistic_at_its_bound_has_no_bca_interval() -> None:
    def n_seen(values: npt.NDArray[Any], weights: FloatArray) -> FloatArray:
        return np.asarray((weights > 0).sum(axis=1), dtype=np.float64)

    assert statistic_interval(range(30), n_seen) is None  # no resample sees as many, so z₀ is infinite
    assert statistic_interval(range(30), n_seen, method="percentile") is not None
