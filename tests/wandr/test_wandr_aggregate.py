"""From tasks' scores to WANDR's summary: metrics, groups, gaps, the pooled analysis, and what an error counts."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest
from rollup_oracle import node

from core.fold import mean
from core.model import Aggregate, RunScore, TaskScore, TaskStatus
from plugins.wandr.aggregate import METRICS, SCALING, SUFFIXES, WandrAggregator, with_zeros
from plugins.wandr.analysis import (
    ALL,
    Check,
    Completion,
    IdentityLoss,
    Share,
    TaskAnalysis,
    from_metrics,
    of_nothing,
    to_metrics,
)
from plugins.wandr.levels import NAMES

UNKNOWN = {"cost_usd": None, "latency_median_s": None}
EMPTY = of_nothing(node("t", {"c": 2, "url": 1}))


def scored(
    name: str,
    runs: Sequence[float] = (0.5,),
    *,
    status: TaskStatus = "scored",
    labels: Mapping[str, str | Sequence[str]] | None = None,
    flags: Sequence[str] = (),
    found: TaskAnalysis | None = None,
    notes: Sequence[str] = (),
    cost_usd: float | None = None,
    latency_s: float | None = None,
    **metrics: float,
) -> TaskScore:
    """A task with one number a judge run for all metrics, but for those given by name."""
    numbers: dict[str, float | None] = dict.fromkeys(METRICS, mean(runs))
    numbers |= metrics
    numbers |= to_metrics(found) if found else {}
    by_run = [
        RunScore(attempt=1, repeat=repeat, metrics=dict.fromkeys(METRICS, value), n_graded=1, n_expected=1)
        for repeat, value in enumerate(runs, start=1)
    ]
    is_there = status in ("scored", "zero")
    return TaskScore(
        task_id=name,
        metrics=numbers if is_there else dict.fromkeys(numbers),
        by_run=tuple(by_run) if is_there else (),
        n_graded=1,
        n_expected=1,
        status=status,
        labels=labels or {},
        flags=tuple(flags),
        notes=tuple(notes),
        cost_usd=cost_usd,
        latency_s=latency_s,
    )


def aggregate(scores: Sequence[TaskScore], **config: Any) -> Aggregate:
    return WandrAggregator(config).aggregate(scores)


# metrics


def test_all_metrics_of_two_lineages_and_two_readings() -> None:
    names = list(aggregate([scored("a")]).metrics)
    assert names == [
        name + suffix for suffix in ("", "_retrieval", "_lenient", "_retrieval_lenient") for name in NAMES
    ]
    assert names == list(METRICS)
    assert list(SUFFIXES) == ["", "_retrieval", "_lenient", "_retrieval_lenient"]


def test_a_metric_is_the_unweighted_mean_with_its_interval_spread_and_estimator() -> None:
    found = aggregate([scored("a", [0.1, 0.3]), scored("b", [0.5, 0.9])]).metrics["soft_f1"]
    assert found.value == pytest.approx(0.45)
    assert found.n == 2
    assert found.sd == pytest.approx(0.15 * 2**0.5)  # of 0.3 and 0.6
    assert found.low is not None
    assert found.high is not None
    assert found.low < 0.45 < found.high
    for words in ("harmonic mean", "malformed row makes a task 0", "2 scored of 2 tasks", "bootstrap", "ddof=1"):
        assert words in found.estimator


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("hard_recall", ["entities that are complete", "page and excerpts", "makes a task 0"]),
        ("soft_precision_retrieval", ["surplus and duplicates", "when the page does"]),
        ("soft_f1_lenient", ["page and excerpts", "a leaf that failed"]),
        ("hard_f1_retrieval_lenient", ["when the page does", "a leaf that failed"]),
    ],
)
def test_the_estimator_says_how_a_number_was_made(name: str, words: list[str]) -> None:
    estimator = aggregate([scored("a")]).metrics[name].estimator
    assert all(word in estimator for word in words)


@pytest.mark.parametrize(
    ("n_lost", "config", "value", "n"),
    [
        pytest.param(1, {}, 0.5, 19, id="an error is missing"),
        pytest.param(2, {}, None, 18, id="below the floor there is no number"),
        pytest.param(2, {"coverage_floor": 0.9}, 0.5, 18, id="a lower floor"),
        pytest.param(1, {"strict": True}, None, 19, id="strict wants every task"),
        pytest.param(2, {"profile": "released"}, 0.45, 20, id="released: an error counts 0"),
        pytest.param(20, {"profile": "released"}, 0, 20, id="released: nothing but errors"),
        pytest.param(20, {"coverage_floor": 0.0}, None, 0, id="nothing scored"),
    ],
)
@pytest.mark.parametrize("status", ["error", "withheld"])
def test_what_a_task_without_a_number_counts(
    status: TaskStatus, n_lost: int, config: dict[str, Any], value: float | None, n: int
) -> None:
    scores = [
        scored(f"t{k}", status=status if k < n_lost else "scored", labels={"width": "tiny"}) for k in range(20)
    ]
    found = aggregate(scores, **config)
    assert {metric.value for metric in found.metrics.values()} == {value}
    assert {metric.n for metric in found.metrics.values()} == {n}
    assert found.groups["width"]["tiny"] == {
        **dict.fromkeys(NAMES, value), **UNKNOWN, "n_tasks": 20, "n_scored": n,
    }  # fmt: skip
    assert any("count 0 (profile released)" in line for line in found.warnings) == (
        config.get("profile") == "released"
    )


def test_a_zero_for_an_error_stands_in_every_judge_run() -> None:
    scores = [scored("a", [0.4, 0.8]), scored("b", status="error")]
    assert [run.metrics["soft_f1"] for run in with_zeros(scores)[1].by_run] == [0, 0]
    assert with_zeros(scores)[0] is scores[0]
    released = aggregate(scores, profile="released").metrics["soft_f1"]
    assert released.value == pytest.approx(0.3)
    assert released.sd == pytest.approx(0.1 * 2**0.5)


def test_no_task_at_all_gives_no_number() -> None:
    found = aggregate([])
    assert {metric.value for metric in found.metrics.values()} == {None}
    assert found.groups["volume"] == {}
    assert found.groups["row_failures"] == {}
    assert found.groups["identity_loss"][ALL]["mean"] is None


# groups


@pytest.mark.parametrize(
    ("label", "values", "order"),
    [
        pytest.param("verticals", [["legal", "tech"], ["tech"]], ["legal", "tech"], id="a list is in each group"),
        pytest.param("difficulty", ["medium", "high", "low"], ["low", "medium", "high"], id="difficulty"),
        pytest.param("topology", ["hierarchical", "flat"], ["flat", "hierarchical"], id="topology"),
        pytest.param("width", ["xlarge", "odd", "tiny"], ["tiny", "xlarge", "odd"], id="width, a new word last"),
        pytest.param(
            "volume", ["≥480", "30–119", "120–199", "<30"], ["<30", "30–119", "120–199", "≥480"], id="volume"
        ),
        pytest.param("intermediate_keys", ["3+", "0"], ["0", "3+"], id="intermediate keys"),
    ],
)
def test_groups_by_label(label: str, values: list[Any], order: list[str]) -> None:
    scores = [scored(f"t{n}", labels={label: value}) for n, value in enumerate([*values, values[0]])]
    found = aggregate([*scores, scored("unlabelled")]).groups
    assert list(found[label]) == order
    first = values[0] if isinstance(values[0], str) else values[0][0]
    scaled = {"soft_f1_errors_0": 0.5, "hard_f1_errors_0": 0.5} if label in SCALING else {}
    assert found[label][first] == {**dict.fromkeys(NAMES, 0.5), **UNKNOWN, **scaled, "n_tasks": 2, "n_scored": 2}
    assert all(not found[other] for other in ("verticals", "difficulty", "volume") if other != label)


@pytest.mark.parametrize("profile", ["default", "released"])
def test_cost_latency_and_errors_by_what_a_task_asks_for(profile: str) -> None:
    labels = {"volume": "≥480", "intermediate_keys": "1", "width": "large"}
    scores = [
        scored("a", [0.6], labels=labels, cost_usd=1.0, latency_s=10.0, hard_f1=0.3),
        scored("b", [0.3], labels=labels, cost_usd=None, latency_s=90.0, hard_f1=0.0),
        scored("c", [0.9], labels=labels, status="error", cost_usd=4.0, latency_s=20.0),
    ]
    groups = aggregate(scores, coverage_floor=0.5, profile=profile).groups
    for label, member in labels.items():
        found = groups[label][member]
        assert (found["cost_usd"], found["latency_median_s"]) == (2.5, 20.0)
        assert found["soft_f1"] == pytest.approx(0.3 if profile == "released" else 0.45)
        assert ("soft_f1_errors_0" in found) == (label != "width")
    for label in ("volume", "intermediate_keys"):
        found = groups[label][labels[label]]
        assert found["soft_f1_errors_0"] == pytest.approx(0.3)
        assert found["hard_f1_errors_0"] == pytest.approx(0.1)


def test_errors_count_0_where_too_few_tasks_are_scored_for_a_mean() -> None:
    scores = [scored("a", labels={"volume": "<30"}), scored("b", labels={"volume": "<30"}, status="error")]
    found = aggregate(scores).groups["volume"]["<30"]
    assert (found["soft_f1"], found["soft_f1_errors_0"]) == (None, 0.25)


def test_gaps_are_named_for_what_they_show() -> None:
    numbers: dict[str, Any] = {
        "soft_precision": 0.75, "soft_recall": 0.25, "soft_f1": 0.5, "hard_f1": 0.25,
        "soft_precision_retrieval": 0.75, "soft_recall_retrieval": 0.5, "soft_f1_retrieval": 0.625,
        "hard_f1_retrieval": 0.5,
    }  # fmt: skip
    assert aggregate([scored("a", **numbers)]).groups["gaps"] == {
        "under_delivery": {"full": 0.5, "retrieval": 0.25},
        "incomplete_members": {"full": 0.25, "retrieval": 0.125},
        "evidence_lost_on_good_pages": {"soft": 0.125, "hard": 0.25},
    }
    lost = aggregate([scored("a", status="error")]).groups["gaps"]
    assert lost["under_delivery"] == {"full": None, "retrieval": None}


# the analysis


def analysis(name: str = "t", **changes: Any) -> TaskAnalysis:
    """That of a task without rows, with changes."""
    found = from_metrics(EMPTY)
    assert found is not None
    return replace(found, checks={f"{name}/size_supported": Check(1, 4, 0.25, 0.0)}, **changes)


def test_shares_are_over_all_rows_and_completion_over_tasks() -> None:
    scores = [
        scored("a", found=analysis(
            row_failures={"invalid": Share(1, 2)}, unverifiable={ALL: Share(0, 10)},
            structural_completion={"discovery": Completion(0.5), "enrichment": Completion(None), "evidence": Completion(1)},
        )),
        scored("b", found=analysis(
            row_failures={"invalid": Share(1, 8)}, unverifiable={ALL: Share(5, 10)},
            structural_completion={"discovery": Completion(1), "enrichment": Completion(0.25), "evidence": Completion(1)},
        )),
        scored("without"),
    ]  # fmt: skip
    found = aggregate(scores).groups
    assert found["row_failures"] == {"invalid": {"share": 0.2, "n": 10}}
    assert found["unverifiable"] == {ALL: {"share": 0.25, "n": 20}}
    assert found["structural_completion"] == {
        "discovery": {"value": 0.75, "n": 2}, "enrichment": {"value": 0.25, "n": 1}, "evidence": {"value": 1, "n": 2},
    }  # fmt: skip
    assert found["judge"]["disagreement"] == {"share": None, "n": 0}


def test_identity_loss_over_nodes_tasks_and_values() -> None:
    losses = [IdentityLoss(0.5, 3, 1, 10, 2, 1), IdentityLoss(0, 1, 0, 10, 1, 0)]
    scores = [scored(f"t{n}", found=analysis(identity_loss={ALL: lost})) for n, lost in enumerate(losses)]
    assert aggregate(scores).groups["identity_loss"][ALL] == {
        "mean": 0.125, "mean_affected": 0.5, "nodes_affected": 0.25, "tasks_affected": 0.5, "values_collapsed": 0.15,
        "nodes": 4, "tasks": 2,
    }  # fmt: skip


def test_the_weakest_checks_come_first_and_are_few() -> None:
    found = analysis(name="unused")
    checks = {f"n/{k:02}": Check(count=k, n=30, soft_f1=0.5, hard_f1=None) for k in range(30)}
    checks["n/nobody"] = Check(0, 0, None, None)
    weakest = aggregate([scored("a", found=replace(found, checks=checks))]).groups["weakest_checks"]
    assert list(weakest) == [f"n/{k:02}" for k in range(20)]
    assert weakest["n/03"] == {"share": 0.1, "n": 30, "soft_f1": 0.5, "hard_f1": None}


def test_a_task_without_a_number_has_no_part_in_the_analysis() -> None:
    one = analysis(row_failures={"invalid": Share(1, 2)})
    scores = [scored("a", found=one), scored("b", status="withheld", found=one)]
    for profile in ("default", "released"):
        assert aggregate(scores, profile=profile).groups["row_failures"] == {"invalid": {"share": 0.5, "n": 2}}


def test_means_of_counts_need_not_be_whole() -> None:
    found = aggregate([scored("a", found=analysis(row_failures={"invalid": Share(0.5, 1.5)}))])
    assert found.groups["row_failures"]["invalid"] == {"share": pytest.approx(1 / 3), "n": 1.5}


# warnings and order


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        pytest.param(
            ["refused"], "1 of 30 tasks with answers decided by rule, without a judge (refused 1)", id="by rule"
        ),
        pytest.param(["no_leaf"], "1 of 30 tasks with a number that no leaf decides", id="no leaf"),
        pytest.param(
            ["duplicates_by_norm:b", "duplicates_by_norm:a"],
            "1 of 30 tasks with duplicates_by_norm (a 1, b 1)",
            id="duplicates",
        ),
        pytest.param(
            ["canonical_by_norm:city"], "1 of 30 tasks with canonical_by_norm (city 1)", id="canonical forms"
        ),
        pytest.param(["custom_norm:url"], "1 of 30 tasks with custom_norm (url 1)", id="custom norm"),
        pytest.param([f"custom_norm:{name}" for name in "abcdef"], "(a 1, b 1, c 1, d 1, e 1, …)", id="many keys"),
    ],
)
def test_what_a_reader_must_know(flags: list[str], words: str) -> None:
    scores = [scored(f"t{n}") for n in range(29)]
    (line,) = aggregate([*scores, scored("last", flags=flags)]).warnings
    assert words in line


@pytest.mark.parametrize(
    ("runs", "status", "words"),
    [
        pytest.param([0.0], "scored", "2 of 30 tasks are 0 in the strict numbers because of malformed rows or missing files; first", id="0"),
        pytest.param([0.0, 0.6], "scored", "1 of 30 tasks are 0 in the strict numbers because of malformed rows or missing files, and 1 more in some attempts; first", id="another attempt counts"),
        pytest.param([0.0], "withheld", "1 of 30 tasks are 0", id="no number is not 0"),
    ],
)  # fmt: skip
def test_malformed_rows_are_warned_about_and_the_first_is_shown(
    runs: list[float], status: TaskStatus, words: str
) -> None:
    notes = ['"x": not a file that the task asks for', "results_t.jsonl, line 3, field url: missing"]
    scores = [
        scored("a"),
        scored("b", [0.0], flags=["malformed"], notes=notes),
        scored("c", runs, status=status, flags=["malformed"], notes=["results_t.jsonl: the file is missing"]),
        *(scored(f"t{n}") for n in range(27)),
    ]
    line = aggregate(scores).warnings[0]
    assert line.startswith(words)
    assert line.endswith("; first: task b: results_t.jsonl, line 3, field url: missing")


def test_a_few_tasks_are_warned_about_and_many_are_not() -> None:
    assert aggregate([scored(f"t{n}") for n in range(30)]).warnings == ()
    assert any("only 29 tasks" in line for line in aggregate([scored(f"t{n}") for n in range(29)]).warnings)


def test_the_order_of_tasks_changes_no_bit() -> None:
    rng = random.Random(3)
    scores = [
        scored(f"t{n}", [rng.random(), rng.random()], labels={"width": rng.choice(("tiny", "large"))},
               found=analysis(name=f"t{n}", row_failures={"invalid": Share(rng.random(), 1.1)}))
        for n in range(20)
    ]  # fmt: skip
    shuffled = list(scores)
    rng.shuffle(shuffled)
    assert aggregate(shuffled) == aggregate(scores)
