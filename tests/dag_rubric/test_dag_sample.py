"""The packaged tasks and answers: their form, what they score, and that they keep a benchmark's contract."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from fakes.runs import run

from core.compose import compose
from core.config import RunConfig
from core.model import Submission, Task
from core.plugin_manager import PluginManager
from core.resources import resolve
from core.testing import BenchmarkUnderTest, check_benchmark
from plugins.dag_rubric import plugin
from plugins.dag_rubric.aggregate import DagAggregator
from plugins.dag_rubric.grader import DagGrader
from plugins.dag_rubric.lint import findings
from plugins.dag_rubric.rubric import Rubric
from plugins.dag_rubric.settings import FORMS
from plugins.dag_rubric.tasks import DagTasks
from plugins.dag_rubric.trees import why_no_tree

PLAIN = ("benchmark=dag_rubric", "system=replay")
TASKS: dict[str, Task] = {task.id: task for task in DagTasks({"source": "sample"}).load()}


def packaged(name: str) -> list[dict[str, Any]]:
    text = resolve(f"pkg://plugins.dag_rubric/sample/{name}").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


def graph_of(name: str) -> Any:
    return Rubric.of(TASKS[name]).graph


def test_four_tasks_with_all_forms_and_evidence() -> None:
    assert list(TASKS) == ["sample-si", "sample-ntp", "sample-utf8", "sample-treaties"]
    assert len(list(DagTasks({"source": "sample", "form": "all"}).load())) == 12
    for listed in packaged("tasks.jsonl"):
        assert 12 <= len(listed["nodes"]) <= 25
        for node in listed["nodes"]:
            for checkpoint in node["checkpoints"]:
                assert (node["type"] == "evidential") <= bool(checkpoint.get("evidence")), checkpoint["id"]
                for source in checkpoint.get("evidence", []):
                    assert source["url"].startswith("https://")
                    assert source["quote"]


def test_one_is_wide_one_deep_one_a_tree_one_has_diamonds() -> None:
    wide, deep, tree, diamonds = (graph_of(name) for name in TASKS)
    assert len(wide.leaves()) >= 8
    assert max(wide.heights()) <= 2
    assert max(deep.heights()) == len(deep) - 1 == 12
    assert why_no_tree(tree) is None
    assert max(tree.heights()) == 3
    # a diamond: two ways from one node to another
    assert any(len(children) > 1 for children in diamonds.children)
    assert len(diamonds.leaves()) == 1


def test_lint_finds_one_redundant_edge_and_nothing_else() -> None:
    rules = {listed["id"]: [(rule, at) for rule, at, _ in findings(listed)] for listed in packaged("tasks.jsonl")}
    assert rules == {
        "sample-si": [],
        "sample-ntp": [("redundant edge", "n10")],
        "sample-utf8": [],
        "sample-treaties": [],
    }


def test_the_parts_are_registered_by_name() -> None:
    manager = PluginManager()
    manager.add(plugin, name="dag_rubric")
    assert [loaded.problem for loaded in manager.plugins] == [None]
    for kind in ("task loader", "grader", "aggregator"):
        assert manager.names(kind) == ["dag_rubric"]
    assert manager.names("audit") == ["convergence", "forms", "lint", "overlap", "recall", "saturation", "weights"]


@pytest.mark.parametrize(
    ("words", "judge"),
    [
        pytest.param(PLAIN, "qwen", id="the benchmark's own"),
        pytest.param((*PLAIN, "judge=gpt-5.2"), "gpt-5.2", id="the command line"),
        pytest.param(("experiment=demo_dag",), "offline", id="the experiment"),
    ],
)
def test_which_judge_wins(words: tuple[str, ...], judge: str) -> None:
    assert compose(words)["judge"]["name"] == judge


def test_the_shipped_settings() -> None:
    tree = compose(PLAIN)
    benchmark, judge = tree["benchmark"], tree["judge"]
    assert (benchmark["form"], benchmark["judging"], benchmark["aggregation"]) == (
        "with_hints",
        "per_node",
        "weighted",
    )
    assert (benchmark["weights"]["scheme"], benchmark["headline"], benchmark["repeats"]) == (
        "leaf_sum",
        "score",
        1,
    )
    assert (judge["model"], judge["temperature"], judge["family"]) == ("dashscope/qwen3.7-max", 0, "qwen")


@pytest.mark.parametrize(
    "words",
    [
        (),
        ("benchmark.form=all",),
        ("benchmark.judging=per_task", "benchmark.strict=true", "benchmark.transitive_reduction=true"),
        ("benchmark.aggregation=gate", "benchmark.weights.scheme=katz", "benchmark.weights.gamma=0.25"),
        ("benchmark.judging=per_checkpoint", "benchmark.node_score=threshold(0.5)"),
    ],
    ids=lambda words: " ".join(words) or "as shipped",
)
def test_the_parts_keep_the_contract_of_a_benchmark(words: tuple[str, ...]) -> None:
    from core.cmdline import prepare

    config = RunConfig.from_tree(compose(prepare(["experiment=demo_dag", *words])))
    section = config.benchmark.plain()
    check_benchmark(
        BenchmarkUnderTest(
            config,
            lambda: DagTasks(section),
            lambda desk: DagGrader(section, desk),
            lambda: DagAggregator(section),
        )
    )


def test_the_answers_are_good_partial_wrong_and_empty() -> None:
    given = [Submission.model_validate(line) for line in packaged("submissions.with_hints.jsonl")]
    assert [one.task_id for one in given] == list(TASKS)
    assert [one.settled().status for one in given] == ["completed"] * 3 + ["empty"]


def test_the_answers_to_all_forms_are_those_to_each() -> None:
    by_form = {form: packaged(f"submissions.{form}.jsonl") for form in FORMS}
    together = [
        {**answer, "task_id": f"{answer['task_id']}:{form}"}
        for place in range(4)
        for form in FORMS
        for answer in [by_form[form][place]]
    ]
    assert packaged("submissions.all.jsonl") == together


@pytest.mark.parametrize("form", [*FORMS, "all"])
def test_the_demonstration_runs_in_every_form(tmp_path: Path, form: str) -> None:
    found = run(tmp_path / "run", "experiment=demo_dag", f"benchmark.form={form}")
    assert found.code == 0
    assert found.summary["n_scored"] == (12 if form == "all" else 4)
    assert any(
        "1 redundant edge in 1 task; the first: task sample-ntp" in line for line in found.summary["warnings"]
    )
    assert any("leaf_sum, the default and a reading" in line for line in found.summary["warnings"])
    if form == "all":
        gaps = found.summary["groups"]["form_gaps"]
        assert gaps["with_hints - without_hints"]["score"] > gaps["with_hints - assigned_topic"]["score"] > 0
