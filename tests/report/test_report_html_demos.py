"""The report on each demo: what its benchmark tells of a score, drawn; and the command that writes it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from fakes.runs import Run, run
from report_folders import Page, write_folder

from core.model import Judgement, Submission, Task
from core.plugin_manager import PluginManager
from core.report.html import text, write
from core.report.html.command import main
from core.rescore import fold_parts, read_run
from plugins.dag_rubric.explain import explained as dag_explained
from plugins.dag_rubric.rubric import Rubric
from plugins.dag_rubric.scoring import Plan
from plugins.dag_rubric.settings import Settings
from plugins.draco.explain import explained as draco_explained


@pytest.fixture(scope="module", params=["demo_draco", "demo_dag", "demo_wandr"])
def demo(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Run:
    return run(tmp_path_factory.mktemp(request.param) / "run", f"experiment={request.param}")


def test_the_report_has_the_numbers_of_the_run(demo: Run) -> None:
    assert main([str(demo.folder)]) == 0
    root = Page((demo.folder / "report.html").read_text(encoding="utf-8")).root
    summary = demo.summary
    headline = demo.json("run.json")["config"]["benchmark"]["headline"]
    scale = 1 if summary["benchmark"] == "wandr" else 100
    value = text.number(summary["metrics"][headline]["value"], scale)
    assert root.one("p", class_="value").text == f"{value}of {scale}"
    shown = [row.children[0].text for row in root.one("section", id="metrics").one("tbody").children]
    assert shown == list(summary["metrics"])
    rows = root.one("table", id="table").one("tbody").children
    scores = demo.rows("scores.jsonl")
    assert [row.children[1].text for row in rows] == [score["task_id"] for score in scores]
    assert [row.children[3].text for row in rows] == [
        text.number(score["metrics"][headline], scale) for score in scores
    ]
    assert len(root.all("article", class_="task")) == len(scores)
    groups = [table.one("caption").text.split(":")[0] for table in root.one("section", id="groups").all("table")]
    assert len(groups) == sum(bool(members) for members in summary["groups"].values())


def test_every_warning_of_the_run_is_in_the_report(demo: Run) -> None:
    root = Page(write(demo.folder).read_text(encoding="utf-8")).root
    said = [item.text for item in root.one("ul", class_="cautions").children]
    assert said[: len(demo.summary["warnings"])] == [
        " ".join(warning.split()) for warning in demo.summary["warnings"]
    ]
    assert any("a set of rules, not a model" in warning for warning in said)


@pytest.fixture(scope="module")
def draco(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return run(tmp_path_factory.mktemp("draco") / "run", "experiment=demo_draco")


def test_draco_criteria_add_up_to_the_raw_score(draco: Run) -> None:
    saved = read_run(draco.folder)
    raw = {row["task_id"]: row["metrics"]["raw"] for row in draco.rows("scores.jsonl")}
    for task in saved.tasks:
        rows = [row for row in saved.judgements() if row.task_id == task.id]
        told = draco_explained(task, rows)
        points = [one["contribution"] for section in told["criteria"] for one in section["criteria"]]
        assert math.fsum(points) == pytest.approx(raw[task.id])
        assert [section["title"] for section in told["criteria"]] == [
            section["title"] for section in task.payload["sections"]
        ]


def test_draco_without_verdicts_has_no_contributions(draco: Run) -> None:
    task = read_run(draco.folder).tasks[0]
    told = draco_explained(task, [])
    assert {one["contribution"] for section in told["criteria"] for one in section["criteria"]} == {None}


def test_draco_a_negative_that_is_met_stands_on_top(draco: Run) -> None:
    root = Page(write(draco.folder, lambda task, _, rows: draco_explained(task, rows)).read_text("utf-8")).root
    articles = root.all("article")
    on_top = [article.all("tr", class_="section bad") for article in articles]
    assert [len(found) for found in on_top] == [0, 0, 1, 0]
    criteria = articles[2].one("table", class_="criteria")
    assert "error made: MET in 5 of 5 ●●●●● −32.61" in " ".join(cell.text for cell in criteria.all("td"))


@pytest.fixture(scope="module")
def dag(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return run(tmp_path_factory.mktemp("dag") / "run", "experiment=demo_dag")


def _dag(settings: Settings) -> Any:
    def explain(task: Task, _: Submission, rows: Sequence[Judgement]) -> dict[str, Any]:
        return dag_explained(Plan.of(task.id, Rubric.of(task), settings), rows)

    return explain


def test_dag_weights_times_scores_are_the_score(dag: Run) -> None:
    saved = read_run(dag.folder)
    explain = _dag(Settings.of({}))
    metrics = {row["task_id"]: row["metrics"] for row in dag.rows("scores.jsonl")}
    for task in saved.tasks:
        told = explain(task, None, [row for row in saved.judgements() if row.task_id == task.id])["graph"]
        total = math.fsum(node["weight"] * node["score"] for node in told["nodes"])
        assert 100 * total == pytest.approx(metrics[task.id]["score"])
        assert told["schemes"] == {
            "leaf_sum": metrics[task.id]["score"],
            **{name[6:]: value for name, value in metrics[task.id].items() if name.startswith("score/")},
        }
        assert told["scheme"] == "leaf_sum"


def test_dag_without_verdicts_has_no_scores(dag: Run) -> None:
    told = _dag(Settings.of({}))(read_run(dag.folder).tasks[0], None, [])["graph"]
    assert {node["score"] for node in told["nodes"]} == {None}
    assert set(told["schemes"]) == {"leaf_sum"}
    assert told["schemes"]["leaf_sum"] is None


def test_dag_draws_every_node_and_edge(dag: Run) -> None:
    root = Page(write(dag.folder, _dag(Settings.of({}))).read_text("utf-8")).root
    for article, task in zip(root.all("article"), read_run(dag.folder).tasks, strict=True):
        nodes = task.payload["nodes"]
        drawn = [group for group in article.all("g") if group.attributes.get("role") == "button"]
        assert len(drawn) == len(nodes) == len(article.one("table", class_="nodes").one("tbody").children)
        squares = [group for group in drawn if group.all("rect")]
        assert len(squares) == sum(node["type"] == "analytical" for node in nodes)
        edges = [path for path in article.all("path") if path.attributes["class"].startswith("edge")]
        assert len(edges) == sum(len(node["parents"]) for node in nodes)
        assert [group.attributes["tabindex"] for group in drawn].count("0") == 1


def test_wandr_shows_the_tree_and_its_records(tmp_path: Path) -> None:
    made = run(tmp_path / "run", "experiment=demo_wandr")
    grader, _ = fold_parts(read_run(made.folder).config, PluginManager.discover())
    root = Page(write(made.folder, grader.explain).read_text("utf-8")).root  # type: ignore[attr-defined]
    trees = [article.all("div", class_="tree") for article in root.all("article")]
    assert [len(found) for found in trees] == [1, 1, 2], "strict and lenient differ only in the last"
    assert "a row is malformed or a file is missing" in trees[2][0].text
    lights, cities = trees[0][0], trees[1][0]
    assert "8 given, 8 required, 1 duplicate, 1 not there (count 0)" in lights.text
    assert len(lights.all("li", class_="twin")) == 1
    assert "full = retrieval soft P 0.17 R 0.25 F1 0.2 · hard P 0 R 0 F1 0" in cities.text
    assert "× cities.currency velland" in cities.text
    assert "3 given, 2 required, 1 surplus (in precision alone)" in cities.text
    assert len(lights.all("li", class_="leaf")) == 8
    checks = lights.all("li", class_="leaf")[0].one("ul", class_="checks")
    assert "yes excerpts_faithful" in " ".join(item.text for item in checks.children)


def test_the_command_refuses_what_is_no_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(tmp_path)]) == 2
    assert "there is no run.json" in capsys.readouterr().err


def test_the_command_does_without_the_benchmarks_plugin(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = write_folder(tmp_path / "run")
    assert main([str(folder)]) == 0
    said = capsys.readouterr()
    assert said.out == f"{folder / 'report.html'}\n"
    assert "without how scores came about" in said.err
