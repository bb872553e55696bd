"""Simulations with a known truth: do intervals cover it as often as they say, do tests keep their level?"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
import pytest

from core.stats import (
    Interval,
    compare_all,
    holm,
    mean_intervals,
    rogan_gladen,
    sign_flip_test,
    sign_flip_tests,
    wilson,
)
from core.stats.bootstrap import Method
from core.stats.units import FloatArray

pytestmark = pytest.mark.slow

#: Enough that the share of 95 % is known to ± 0.7 % (two standard errors).
REPETITIONS = 4000


def covered(intervals: Sequence[Interval | None], truth: float) -> float:
    assert None not in intervals
    return sum(found is not None and found.low <= truth <= found.high for found in intervals) / len(intervals)


def normal(rng: np.random.Generator, shape: tuple[int, int]) -> FloatArray:
    return rng.normal(50, 15, shape)


def skewed(rng: np.random.Generator, shape: tuple[int, int]) -> FloatArray:
    """Scores of a hard benchmark: many near 0, mean 25."""
    return np.multiply(rng.beta(0.75, 2.25, shape), 100)


def shares_of_five(rng: np.random.Generator, shape: tuple[int, int]) -> FloatArray:
    """Scores in six steps, mean 60."""
    return np.multiply(rng.binomial(5, 0.6, shape), 20.0)


@pytest.mark.parametrize("method", ["percentile", "bca"])
@pytest.mark.parametrize(("draw", "n", "truth"), [(normal, 60, 50), (skewed, 100, 25), (shares_of_five, 80, 60)])
def test_intervals_of_a_mean_cover(
    draw: Callable[[np.random.Generator, tuple[int, int]], FloatArray], n: int, truth: float, method: Method
) -> None:
    scores = draw(np.random.default_rng(n), (REPETITIONS, n))
    assert 0.93 <= covered(mean_intervals(list(scores), method=method, resamples=2000), truth) <= 0.97


@pytest.mark.parametrize("method", ["percentile", "bca"])
def test_intervals_over_clusters_cover_and_those_over_values_do_not(method: Method) -> None:
    rng = np.random.default_rng(6)
    sizes = rng.integers(1, 6, 80)
    tasks = np.repeat(np.arange(80), sizes)
    scores = rng.normal(50, 15, (REPETITIONS, 80))[:, tasks] + rng.normal(0, 8, (REPETITIONS, len(tasks)))
    found = mean_intervals(list(scores), clusters=tasks.tolist(), method=method, resamples=2000)
    assert 0.93 <= covered(found, 50) <= 0.97
    assert covered(mean_intervals(list(scores), method=method, resamples=2000), 50) < 0.85


@pytest.mark.parametrize(("p", "n"), [(0.05, 100), (0.2, 60), (0.5, 80), (0.9, 100)])
def test_wilson_covers(p: float, n: int) -> None:
    limits = [wilson(count, n) or (1, 0) for count in range(n + 1)]
    counts = np.random.default_rng(3).binomial(n, p, 20_000)
    hits = sum(limits[count][0] <= p <= limits[count][1] for count in counts.tolist())
    assert 0.93 <= hits / len(counts) <= 0.97


@pytest.mark.parametrize(
    ("prevalence", "sensitivity", "specificity", "n"),
    [(0.6, 0.9, 0.6, 400), (0.3, 0.85, 0.9, 200), (0.5, 0.95, 0.8, 1000), (0.7, 0.8, 0.7, 300)],
)
def test_corrected_shares_cover(prevalence: float, sensitivity: float, specificity: float, n: int) -> None:
    rng = np.random.default_rng(n)
    apparent = prevalence * sensitivity + (1 - prevalence) * (1 - specificity)
    draws = zip(
        rng.binomial(n, apparent, REPETITIONS).tolist(),
        rng.binomial(150, sensitivity, REPETITIONS).tolist(),
        rng.binomial(200, specificity, REPETITIONS).tolist(),
        strict=True,
    )
    hits = 0
    for met, tp, tn in draws:
        found = rogan_gladen(met, n, tp=tp, fn=150 - tp, fp=200 - tn, tn=tn)
        hits += found is not None and found.low <= prevalence <= found.high
    assert 0.93 <= hits / REPETITIONS <= 0.97


@pytest.mark.parametrize(("n", "is_exact"), [(12, True), (60, False), (100, False)])
def test_the_permutation_test_keeps_its_level(n: int, is_exact: bool) -> None:
    differences = np.random.default_rng(n).standard_t(4, (REPETITIONS, n)) * 8
    found = sign_flip_tests(list(differences), resamples=1999)
    p_values = np.array([math.nan if test is None else test.p for test in found])
    assert {test.exact for test in found if test is not None} == {is_exact}
    assert 0.035 <= (p_values <= 0.05).mean() <= 0.065
    assert 0.005 <= (p_values <= 0.01).mean() <= 0.015


def test_the_permutation_test_keeps_its_level_over_clusters_alone() -> None:
    rng = np.random.default_rng(8)
    tasks = np.repeat(np.arange(40), 5)
    differences = rng.normal(0, 8, (REPETITIONS, 40))[:, tasks] + rng.normal(0, 4, (REPETITIONS, 200))
    rates = []
    for clusters in (tasks.tolist(), None):
        found = sign_flip_tests(list(differences), clusters=clusters, resamples=999)
        rates.append(np.mean([test is not None and test.p <= 0.05 for test in found]))
    assert 0.035 <= rates[0] <= 0.065
    assert rates[1] > 0.2


def test_a_difference_that_is_there_is_found_as_often_as_planned() -> None:
    """At 100 tasks and an sd of 20, 5.66 is what a power of 0.8 can detect."""
    differences = np.random.default_rng(9).normal(5.659, 20, (REPETITIONS, 100))
    found = sign_flip_tests(list(differences), resamples=1999)
    assert np.mean([test is not None and test.p <= 0.05 for test in found]) == pytest.approx(0.8, abs=0.02)


@pytest.mark.parametrize("n", [1, 12, 100])
def test_no_difference_is_never_called_one(n: int) -> None:
    scores = np.random.default_rng(n).beta(2, 2, n).tolist()
    found = sign_flip_test(scores, scores)
    assert found is not None
    assert (found.difference, found.p) == (0, 1)
    assert [pair.p_holm for pair in compare_all({"a": scores, "b": scores, "c": scores})] == [1, 1, 1]


def test_holm_keeps_the_chance_of_any_false_alarm() -> None:
    """Five systems that are alike, ten pairs that share their tasks, in 2,000 runs."""
    runs = 2000
    scores = np.random.default_rng(10).normal(50, 15, (5, runs, 60))
    pairs = [scores[one] - scores[other] for one in range(5) for other in range(one)]
    tests = sign_flip_tests(list(np.concatenate(pairs)), resamples=1999)
    p_values = np.array([math.nan if test is None else test.p for test in tests]).reshape(10, runs)
    plain = (p_values.min(axis=0) <= 0.05).mean()
    corrected = np.mean([min(holm(run)) <= 0.05 for run in p_values.T.tolist()])
    assert plain > 0.2
    assert 0.02 <= corrected <= 0.06
