"""From tasks' scores to a summary: means, intervals, spread, groups, and when there is no number."""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.fold import mean
from core.model import Count, RunScore, TaskScore, TaskStatus
from core.stats import bootstrap_interval, sd
from plugins.draco.aggregate import DracoAggregator, run_overalls


def scored(
    name: str,
    runs: Sequence[float | None],
    *,
    status: TaskStatus = "scored",
    domain: str = "Law",
    flags: Sequence[str] = (),
    axes: Sequence[str] = ("facts", "style"),
    negatives: Count | None = None,
) -> TaskScore:
    """A task with one number a judge run, the same for every metric."""
    by_run = tuple(_run(repeat, value, axes) for repeat, value in enumerate(runs, start=1))
    names = by_run[0].metrics
    value = mean(runs) if status in ("scored", "zero") else None
    return TaskScore(
        task_id=name,
        metrics=dict.fromkeys(names, value),
        by_run=() if status == "error" else by_run,
        n_graded=1,
        n_expected=1,
        status=status,
        flags=tuple(flags),
        labels={"domain": domain},
        coverage_by={"sign": {"negative": negatives}} if negatives else {},
    )


def _run(repeat: int, value: float | None, axes: Sequence[str]) -> RunScore:
    names = [
        "normalized",
        "pass_rate",
        *(f"{name}/{axis}" for name in ("normalized", "pass_rate") for axis in axes),
    ]
    return RunScore(attempt=1, repeat=repeat, metrics=dict.fromkeys(names, value), n_graded=1, n_expected=1)


def aggregate(scores: Sequence[TaskScore], **config: Any) -> Any:
    return DracoAggregator(config).aggregate(scores)


def test_the_overall_is_the_mean_over_tasks_not_over_domains() -> None:
    scores = [scored("a", [90]), scored("b", [60]), scored("c", [0], domain="Medicine")]
    found = aggregate(scores)
    assert found.metrics["normalized"].value == 50
    assert found.groups["domain"] == {
        "Law": {"normalized": 75, "pass_rate": 75, "n_tasks": 2, "n_scored": 2},
        "Medicine": {"normalized": 0, "pass_rate": 0, "n_tasks": 1, "n_scored": 1},
    }
    assert list(found.groups["axis"]) == ["facts", "style"]
    assert found.groups["axis"]["facts"] == {"normalized": 50, "pass_rate": 50, "n_tasks": 3, "n_scored": 3}


def test_the_spread_is_over_the_overalls_of_judge_runs() -> None:
    scores = [scored("a", [10, 20, 30]), scored("b", [30, 50, 70])]
    assert run_overalls(scores, "normalized") == [20, 35, 50]
    found = aggregate(scores).metrics["normalized"]
    assert found.value == 35
    assert found.sd == 15
    assert "3 judge runs, ddof=1" in found.estimator


def test_one_judge_run_has_no_spread_and_one_task_no_interval() -> None:
    found = aggregate([scored("a", [10])]).metrics["normalized"]
    assert (found.value, found.low, found.high, found.sd, found.n) == (10, None, None, None, 1)


def test_the_estimator_says_how_each_number_was_made() -> None:
    metrics = aggregate([scored("a", [10]), scored("b", [30])]).metrics
    assert list(metrics) == ["normalized", "pass_rate"]
    for metric in metrics.values():
        for words in (
            "mean over the 2 scored of 2 tasks",
            "95% percentile bootstrap",
            "resamples",
            "seed",
            "ddof=1",
        ):
            assert words in metric.estimator
    assert "clamped" in metrics["normalized"].estimator
    assert "unweighted" in metrics["pass_rate"].estimator


def test_a_task_scored_by_rule_counts_as_zero_and_is_said() -> None:
    found = aggregate([scored("a", [60]), scored("b", [0], status="zero", flags=["refused"])])
    assert found.metrics["normalized"].value == 30
    assert found.metrics["normalized"].n == 2
    assert any(
        "1 of 2 tasks with answers decided by rule" in line and "refused 1" in line for line in found.warnings
    )


@pytest.mark.parametrize("status", ["withheld", "error"])
def test_a_task_without_a_number_is_missing_and_never_zero(status: TaskStatus) -> None:
    scores = [scored(f"t{number}", [50]) for number in range(19)] + [scored("lost", [0], status=status)]
    found = aggregate(scores)
    assert found.metrics["normalized"].value == 50
    assert found.metrics["normalized"].n == 19
    assert found.groups["domain"]["Law"] == {"normalized": 50, "pass_rate": 50, "n_tasks": 20, "n_scored": 19}
    assert found.groups["axis"]["facts"] == {"normalized": 50, "pass_rate": 50, "n_tasks": 20, "n_scored": 19}
    # a withheld task's runs are kept in its row and stay out of the spread
    assert run_overalls(scores, "normalized") == [50]


@pytest.mark.parametrize(
    ("n_lost", "config", "value"),
    [
        pytest.param(1, {}, 50, id="at the floor"),
        pytest.param(2, {}, None, id="below the floor"),
        pytest.param(2, {"coverage_floor": 0.9}, 50, id="a lower floor"),
        pytest.param(1, {"strict": True}, None, id="strict wants every task"),
        pytest.param(0, {"strict": True}, 50, id="strict and all there"),
        pytest.param(20, {"coverage_floor": 0.0}, None, id="nothing scored"),
    ],
)
def test_below_the_floor_there_is_no_number(n_lost: int, config: dict[str, Any], value: float | None) -> None:
    scores = [scored(f"t{n}", [50], status="error" if n < n_lost else "scored") for n in range(20)]
    found = aggregate(scores, **config)
    for metric in found.metrics.values():
        assert metric.value == value
        assert metric.n == 20 - n_lost
        assert (metric.low is None) == (value is None)
    assert found.groups["domain"]["Law"]["normalized"] == value
    for numbers in found.groups["axis"].values():
        assert numbers["pass_rate"] == value


def test_no_task_at_all_gives_no_number() -> None:
    found = aggregate([])
    assert found.metrics["normalized"].value is None
    assert found.groups == {"domain": {}, "axis": {}}


def test_an_axis_counts_the_tasks_that_have_it() -> None:
    scores = [scored("a", [10]), scored("b", [30], axes=("facts",))]
    assert aggregate(scores).groups["axis"]["style"] == {
        "normalized": 10,
        "pass_rate": 10,
        "n_tasks": 1,
        "n_scored": 1,
    }


def test_contaminated_tasks_are_counted_and_keep_their_scores() -> None:
    both = ["contaminated:dataset", "contaminated:paper"]
    found = aggregate([scored("a", [60], flags=both), scored("b", [40], flags=both[1:]), scored("c", [20])])
    assert found.metrics["normalized"].value == 40
    assert any("2 of 3 tasks contaminated" in line and "(dataset 1, paper 2)" in line for line in found.warnings)


def test_a_few_tasks_are_warned_about_and_many_are_not() -> None:
    few = aggregate([scored(f"t{n}", [50]) for n in range(29)])
    assert any("only 29 tasks" in line for line in few.warnings)
    assert aggregate([scored(f"t{n}", [50]) for n in range(30)]).warnings == ()


def test_lost_negatives_are_said_since_they_can_only_raise_a_score() -> None:
    found = aggregate([scored("a", [50], negatives=Count(graded=3, expected=5))])
    assert any("2 of 5 verdicts on negative criteria" in line for line in found.warnings)
    unscored = aggregate([scored("a", [50], status="withheld", negatives=Count(graded=3, expected=5))])
    assert not any("negative criteria" in line for line in unscored.warnings)


@given(st.lists(st.floats(0, 100), min_size=1, max_size=12), st.randoms(use_true_random=False))
def test_the_order_of_tasks_changes_no_bit(values: list[float], rng: random.Random) -> None:
    scores = [scored(f"t{n}", [value, value / 2]) for n, value in enumerate(values)]
    shuffled = list(scores)
    rng.shuffle(shuffled)
    assert aggregate(shuffled).metrics == aggregate(scores).metrics


# core.stats


@given(st.floats(0, 100), st.integers(2, 20))
def test_equal_values_have_no_spread_at_all(value: float, n: int) -> None:
    assert sd([value] * n) == 0
    found = bootstrap_interval([value] * n)
    assert found is not None
    assert found[0] == found[1] == mean([value] * n)


@given(st.lists(st.floats(0, 100), min_size=2, max_size=40))
def test_the_interval_lies_within_the_values(values: list[float]) -> None:
    found = bootstrap_interval(values, resamples=500)
    assert found is not None
    low, high = found
    assert low <= high
    assert min(values) - 1e-9 <= low
    assert high <= max(values) + 1e-9


def test_the_interval_is_near_the_normal_one_for_many_values() -> None:
    rng = random.Random(7)
    values = [rng.gauss(50, 10) for _ in range(400)]
    found = bootstrap_interval(values)
    assert found is not None
    half = 1.96 * statistics.stdev(values) / math.sqrt(len(values))
    assert found[0] == pytest.approx(statistics.mean(values) - half, abs=0.15)
    assert found[1] == pytest.approx(statistics.mean(values) + half, abs=0.15)
    assert bootstrap_interval(values) == found
    assert bootstrap_interval(values[::-1]) == found
    assert bootstrap_interval(values, seed=1) != found


@pytest.mark.parametrize("values", [[], [1.0]])
def test_too_few_values_have_no_interval(values: list[float]) -> None:
    assert bootstrap_interval(values) is None


@pytest.mark.parametrize(
    ("values", "ddof", "expected"),
    [
        ([], 0, None),
        ([5.0], 1, None),
        ([5.0], 0, 0),
        ([1.0, 3.0], 1, math.sqrt(2)),
        ([1.0, 3.0], 0, 1),
        ([0.1, 0.1, 0.1], 1, 0),
    ],
)
def test_sd(values: list[float], ddof: int, expected: float | None) -> None:
    assert sd(values, ddof=ddof) == (None if expected is None else pytest.approx(expected))
