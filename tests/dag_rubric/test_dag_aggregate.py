"""From tasks' scores to a summary: means, groups, paired gaps between forms, and what is said beside them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from core.model import Aggregate, RunScore, TaskScore, TaskStatus
from plugins.dag_rubric.aggregate import DagAggregator
from plugins.dag_rubric.scoring import metric_names
from plugins.dag_rubric.settings import Settings

NAMES = metric_names(Settings.of({}))


def scored(
    task: str,
    value: float | None,
    *,
    form: str = "with_hints",
    category: str | None = "Law",
    status: TaskStatus = "scored",
    flags: Sequence[str] = (),
) -> TaskScore:
    """A task whose score is `value`, a quarter of it analytical."""
    parts = {
        "evidential": None if value is None else value * 0.75,
        "analytical": None if value is None else value / 4,
    }
    metrics = {name: parts.get(name, value) for name in NAMES}
    return TaskScore(
        task_id=f"{task}:{form}",
        metrics=metrics,
        by_run=(RunScore(attempt=1, repeat=1, metrics=metrics, n_graded=1, n_expected=1),),
        n_graded=1,
        n_expected=1,
        status=status,
        flags=tuple(flags),
        labels={"form": form, "task": task, **({"category": category} if category else {})},
    )


def aggregate(scores: Sequence[TaskScore], **config: Any) -> Aggregate:
    return DagAggregator(config).aggregate(scores)


def test_the_overall_is_the_mean_over_tasks_with_its_parts_and_other_schemes() -> None:
    found = aggregate([scored("a", 80), scored("b", 40), scored("c", 0, category=None)])
    assert list(found.metrics) == NAMES
    assert {name: metric.value for name, metric in found.metrics.items()} == {
        **dict.fromkeys(NAMES, 40),
        "evidential": 30,
        "analytical": 10,
    }
    numbers = {"score": 60, "evidential": 45, "analytical": 15, "n_tasks": 2, "n_scored": 2}
    assert found.groups["category"] == {"Law": numbers}
    assert found.groups["form"]["with_hints"]["score"] == 40
    assert "form_gaps" not in found.groups
    assert found.metrics["score"].low is not None


def test_at_least_two_other_schemes_stand_beside_every_score() -> None:
    for scheme in ("leaf_sum", "uniform", "katz"):
        found = metric_names(Settings.of({"weights": {"scheme": scheme}}))
        others = [name for name in found if name.startswith("score/")]
        assert len(others) >= 2
        assert f"score/{scheme}" not in others


@pytest.mark.parametrize(
    ("config", "name", "words"),
    [
        ({}, "score", ("leaf_sum is the default and a reading of the paper", "w by leaf_sum", "s by fraction")),
        ({}, "score/leaf_split", ("w by leaf_split",)),
        ({}, "evidential", ("the part of evidential nodes",)),
        ({"weights": {"scheme": "uniform"}}, "score", ("w by uniform", "not the default scheme")),
        ({"aggregation": "gate"}, "score", ("discounted by failed prerequisites", "weak 0.6, strong 0.2, hard 0")),
        ({"aggregation": "tree_mean"}, "score", ("recursive mean over the tree",)),
        ({"aggregation": "tree_mean"}, "score/leaf_sum", ("Σ w·s over nodes, w by leaf_sum",)),
        ({"aggregation": "critical_gate"}, "score", ("0 above a critical one",)),
        ({"node_score": "threshold(0.6)"}, "score", ("s by threshold(0.6)",)),
    ],
    ids=str,
)
def test_the_estimator_says_how_a_number_was_made(config: dict[str, Any], name: str, words: Sequence[str]) -> None:
    names = metric_names(Settings.of(config))
    assert name in names
    score = scored("a", 50).model_copy(update={"metrics": dict.fromkeys(names, 50.0)})
    estimator = aggregate([score], **config).metrics[name].estimator
    for word in words:
        assert word in estimator


def three(task: str, hinted: float | None, bare: float | None, topic: float | None) -> list[TaskScore]:
    values = {"with_hints": hinted, "without_hints": bare, "assigned_topic": topic}
    return [
        scored(task, value, form=form, status="scored" if value is not None else "withheld")
        for form, value in values.items()
    ]


def test_gaps_are_paired_over_tasks() -> None:
    scores = [*three("a", 80, 60, 70), *three("b", 40, 40, 20), *three("c", 60, 20, 60)]
    gaps = aggregate(scores).groups["form_gaps"]
    assert list(gaps) == ["with_hints - without_hints", "with_hints - assigned_topic"]
    bare = gaps["with_hints - without_hints"]
    assert (bare["score"], bare["evidential"], bare["analytical"]) == (20, 15, 5)
    assert (bare["n_pairs"], bare["n_tasks"]) == (3, 3)
    low, high = bare["score_low"], bare["score_high"]
    assert low is not None
    assert high is not None
    assert 0 <= low <= 20 <= high <= 40
    assert gaps["with_hints - assigned_topic"]["score"] == 10


def test_a_pair_without_both_numbers_is_none() -> None:
    scores = [*three("a", 80, 60, None), *three("b", 40, None, 20)]
    gaps = aggregate(scores, coverage_floor=0.5).groups["form_gaps"]
    assert gaps["with_hints - without_hints"]["score"] == 20
    assert gaps["with_hints - without_hints"]["n_pairs"] == 1
    assert gaps["with_hints - without_hints"]["score_low"] is None
    strict = aggregate(scores).groups["form_gaps"]["with_hints - without_hints"]
    assert (strict["score"], strict["n_pairs"], strict["n_tasks"]) == (None, 1, 2)


def test_the_interval_draws_the_forms_of_a_task_together() -> None:
    # three forms that agree say no more than one: the interval is that of the tasks alone
    values = [10, 40, 70, 90]
    together = aggregate([score for n, value in enumerate(values) for score in three(str(n), value, value, value)])
    alone = aggregate([scored(str(n), value) for n, value in enumerate(values)])
    for name in ("score", "evidential", "score/uniform"):
        assert together.metrics[name].value == alone.metrics[name].value
        assert together.metrics[name].low == alone.metrics[name].low
        assert together.metrics[name].high == alone.metrics[name].high
        assert together.metrics[name].n == 12
    assert "draws the forms of one task together" in together.metrics["score"].estimator
    assert any("mixes the query forms" in line for line in together.warnings)


def test_the_interval_holds_the_value_where_tasks_have_different_forms() -> None:
    scores = [*three("a", 100, 100, 100), scored("b", 0), scored("c", 1)]
    metric = aggregate(scores).metrics["score"]
    assert metric.low is not None
    assert metric.high is not None
    assert metric.value is not None
    assert metric.low <= metric.value <= metric.high


@pytest.mark.parametrize(
    ("n_lost", "config", "value"),
    [(1, {}, 50), (2, {}, None), (1, {"strict": True}, None), (20, {"coverage_floor": 0.0}, None)],
    ids=["at the floor", "below", "strict", "none scored"],
)
def test_below_the_floor_there_is_no_number(n_lost: int, config: dict[str, Any], value: float | None) -> None:
    scores = [
        scored(str(n), None if n < n_lost else 50, status="error" if n < n_lost else "scored") for n in range(20)
    ]
    found = aggregate(scores, **config)
    assert found.metrics["score"].value == found.metrics["score/uniform"].value == value
    for metric in found.metrics.values():
        assert (metric.value is None) == (value is None)
        assert metric.n == 20 - n_lost
    assert found.groups["form"]["with_hints"]["score"] == value


def test_answers_by_rule_and_few_tasks_are_warned_about() -> None:
    found = aggregate([scored("a", 0, status="zero", flags=["empty"]), scored("b", 40)])
    assert any("1 of 2 tasks with answers decided by rule" in line for line in found.warnings)
    assert any("only 2 tasks are scored" in line for line in found.warnings)
    assert len(aggregate([scored(str(n), 50) for n in range(30)]).warnings) == 1


@pytest.mark.parametrize(
    ("config", "begins"),
    [
        (
            {},
            "score: leaf_sum, the default and a reading of the paper's text; the same answers under other schemes",
        ),
        ({"weights": {"scheme": "katz"}}, "score: katz, not the default, which is leaf_sum, a reading"),
        ({"weights": {"scheme": "explicit"}}, "score: explicit, the tasks' own weights, not the default"),
        ({"aggregation": "gate"}, "score: leaf_sum behind a gate, which the paper has not, the default and a"),
        ({"aggregation": "tree_mean"}, "score: tree_mean, which is not the paper's and which no scheme weighs"),
    ],
    ids=["default", "another scheme", "explicit", "gate", "tree"],
)
def test_every_summary_says_that_the_default_is_a_reading(config: dict[str, Any], begins: str) -> None:
    names = metric_names(Settings.of(config))
    score = scored("a", 50).model_copy(update={"metrics": dict.fromkeys(names, 50.0)})
    found = aggregate([score], **config)
    assert found.warnings[0].startswith(begins)
    assert "score/<scheme>" in found.warnings[0]
    for name in names:
        assert "leaf_sum is the default and a reading of the paper" in found.metrics[name].estimator, name


def test_no_task_at_all_gives_no_number() -> None:
    found = aggregate([])
    assert found.metrics["score"].value is None
    assert found.groups == {"form": {}, "category": {}}
