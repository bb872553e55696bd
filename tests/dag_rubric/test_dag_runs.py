"""Whole runs: the demonstration, recorded verdicts, the round trip, forms, refusals, and a judge that errs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from dag_helpers import EXAMPLE, SIZES, Parents, node, row
from fakes.model_server import Behaviour, Body, ModelServer, verdict
from fakes.runs import NO_SOCKETS, Run, run, write_rows

NODES = list(EXAMPLE)
THREE = {"with_hints": "Long?", "without_hints": "Short?", "assigned_topic": "Topic."}


def test_the_demonstration_needs_no_network_and_orders_its_answers(tmp_path: Path) -> None:
    home, work = tmp_path / "home", tmp_path / "work"
    home.mkdir()
    work.mkdir()
    done = subprocess.run(
        [sys.executable, "-c", NO_SOCKETS, "experiment=demo_dag", "out=here", "store=there.sqlite"],
        env={"PATH": os.environ["PATH"], "HOME": str(home)},
        cwd=work,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert {path.name for path in work.iterdir()} <= {"here", "there.sqlite"}
    assert list(home.iterdir()) == []
    found = Run(0, work / "here")
    scores = {line["task_id"]: line["metrics"]["score"] for line in found.rows("scores.jsonl")}
    assert list(scores) == ["sample-si", "sample-ntp", "sample-utf8", "sample-treaties"]
    values = list(scores.values())
    assert values == sorted(values, reverse=True)
    assert len(set(values)) == 4
    assert (values[0], values[3]) == (100, 0)
    assert [line["status"] for line in found.rows("scores.jsonl")] == ["scored"] * 3 + ["zero"]
    assert any("a set of rules, not a model" in line for line in found.summary["warnings"])
    assert any(line["explanation"] for line in found.rows("judgements.jsonl") if line["judge"] == "offline")


def recorded_rows(
    task: str, counts: Mapping[str, int | None], sizes: Mapping[str, int] = SIZES
) -> list[dict[str, Any]]:
    """Rows of judgements.jsonl: the first so many checkpoints of each node are met; None: null verdicts."""
    return [
        {
            "task_id": task,
            "unit": f"checkpoint/{name}.c{place}",
            "verdict": None if count is None else {"met": place <= count},
        }
        for name, count in counts.items()
        for place in range(1, sizes[name] + 1)
    ]


def recorded(
    folder: Path,
    rows: Sequence[Any],
    judgements: Sequence[Any],
    *words: str,
    out: str = "run",
    ids: Sequence[str] | None = None,
) -> Run:
    write_rows(folder / "tasks.in.jsonl", rows)
    names = ids if ids is not None else [given["id"] for given in rows]
    write_rows(
        folder / "submissions.in.jsonl", [{"task_id": name, "text": f"Report on {name}."} for name in names]
    )
    write_rows(folder / "judgements.in.jsonl", judgements)
    return run(
        folder / out,
        "benchmark=dag_rubric", f"benchmark.source={folder / 'tasks.in.jsonl'}",
        "system=replay", f"system.path={folder / 'submissions.in.jsonl'}",
        "judge=recorded", f"judge.path={folder / 'judgements.in.jsonl'}",
        *words,
    )  # fmt: skip


def counts(*numbers: int | None) -> dict[str, int | None]:
    return dict(zip(NODES, numbers, strict=True))


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        pytest.param((), {"score": 62.50, "evidential": 25.0, "analytical": 37.5, "score/leaf_split": 72.22, "score/leaf_reach": 71.43, "score/one_plus_sum": 64.29, "score/katz": 71.05, "score/descendants": 69.23, "score/uniform": 83.33}, id="as shipped"),
        pytest.param(("benchmark.weights.scheme=katz", "benchmark.weights.gamma=0"), {"score": 83.33}, id="katz 0"),
        pytest.param(("benchmark.weights.scheme=katz", "benchmark.weights.gamma=1"), {"score": 64.29}, id="katz 1"),
        pytest.param(("benchmark.weights.gamma=0.5",), {"score": 62.50}, id="gamma with another scheme"),
        pytest.param(("benchmark.aggregation=gate",), {"score": 30.90}, id="gate, strong edges"),
        pytest.param(("benchmark.aggregation=gate", "benchmark.gate.strong=0.6"), {"score": 46.30}, id="gate, another λ"),
        pytest.param(("benchmark.node_score=all",), {"score": 62.50}, id="all"),
        pytest.param(("benchmark.judging=per_task",), {"score": 62.50}, id="asked by task"),
        pytest.param(("benchmark.judging=per_checkpoint",), {"score": 62.50}, id="asked by checkpoint"),
        pytest.param(("benchmark.transitive_reduction=true",), {"score": 71.43}, id="reduced"),
    ],
)  # fmt: skip
def test_recorded_verdicts_give_the_published_scores(
    tmp_path: Path, words: Sequence[str], expected: Mapping[str, float]
) -> None:
    found = recorded(tmp_path, [row()], recorded_rows("t1", counts(4, 0, 4, 5, 3, 4)), *words)
    assert found.code == 0
    assert {name: round(found.value(name) or 0, 2) for name in expected} == expected
    assert found.summary["coverage"] == 1


def test_the_round_trip_in_all_forms(tmp_path: Path) -> None:
    ids = [f"t1:{form}" for form in THREE]
    judgements = [
        line
        for place, name in enumerate(ids)
        for line in recorded_rows(name, counts(4, 5 - place, 3, 5, 1, 4 - place))
    ]
    judgements[0]["verdict"] = None
    rows = [row(queries=THREE, category="Law")]
    first = recorded(tmp_path, rows, judgements, "benchmark.form=all", ids=ids, out="first")
    assert first.code == 3, "a verdict is null"
    again = run(
        tmp_path / "again",
        "benchmark=dag_rubric", f"benchmark.source={tmp_path / 'tasks.in.jsonl'}", "benchmark.form=all",
        "system=replay", f"system.path={first.folder / 'submissions.jsonl'}",
        "judge=recorded", f"judge.path={first.folder / 'judgements.jsonl'}",
    )  # fmt: skip
    for name in ("scores.jsonl", "judgements.jsonl"):
        assert again.bytes(name) == first.bytes(name), name
    assert again.summary["metrics"] == first.summary["metrics"]

    from core.rescore import main as rescore

    before = first.bytes("scores.jsonl")
    assert rescore([str(first.folder)]) == 3
    assert first.bytes("scores.jsonl") == before

    summary = first.summary
    assert [line["task_id"] for line in first.rows("scores.jsonl")] == ids
    assert (summary["n_tasks"], summary["n_expected"], summary["n_graded"]) == (3, 75, 74)
    assert list(summary["groups"]["form"]) == sorted(THREE)
    assert list(summary["groups"]["form_gaps"]) == ["with_hints - without_hints", "with_hints - assigned_topic"]
    gap = summary["groups"]["form_gaps"]["with_hints - without_hints"]
    by_form = {form: summary["groups"]["form"][form]["score"] for form in THREE}
    assert gap["score"] == pytest.approx(by_form["with_hints"] - by_form["without_hints"])
    assert summary["coverage_by"]["type"]["evidential"]["n_expected"] == 39


def test_a_task_below_the_floor_is_withheld_and_one_above_is_not(tmp_path: Path) -> None:
    rows = [row(), row(id="t2"), row(id="t3")]
    whole = recorded_rows("t1", counts(4, 5, 4, 5, 3, 4))
    one_lost, two_lost = (
        recorded_rows("t2", counts(4, 5, 4, 5, 3, 4)),
        recorded_rows("t3", counts(4, 5, 4, 5, 3, 4)),
    )
    for line in (one_lost[0], *two_lost[:2]):
        line["verdict"] = None
    found = recorded(tmp_path, rows, [*whole, *one_lost, *two_lost])
    assert found.code == 3
    lines = {line["task_id"]: line for line in found.rows("scores.jsonl")}
    assert [lines[name]["status"] for name in ("t1", "t2", "t3")] == ["scored", "scored", "withheld"]
    assert lines["t2"]["metrics"]["score"] == 100
    assert set(lines["t3"]["metrics"].values()) == {None}
    assert (lines["t3"]["n_graded"], lines["t3"]["n_expected"]) == (23, 25)
    assert found.summary["metrics"]["score"]["value"] is None


@pytest.mark.parametrize(
    ("words", "rows", "said"),
    [
        pytest.param(("benchmark.aggregation=tree_mean",), [row()], "task 't1' is not a tree", id="no tree"),
        pytest.param(
            ("benchmark.aggregation=critical_gate",),
            [row()],
            "task 't1' is not a tree",
            id="no tree for critical nodes",
        ),
        pytest.param(("benchmark.weights.scheme=explicit",), [row()], "no weights of its own", id="no weights"),
        pytest.param(("benchmark.form=without_hints",), [row()], "has no query without_hints", id="no such form"),
        pytest.param(("benchmark.weights.scheme=leaf-sum",), [row()], "did you mean 'leaf_sum'", id="scheme"),
        pytest.param(("benchmark.weights.gama=1",), [row()], "benchmark.weights.gama", id="misspelt key"),
        pytest.param((), [row(nodes=[node("a", ["b"]), node("b", ["a"])])], 'node "a"', id="cycle"),
    ],
)
def test_what_does_not_fit_is_refused_before_anything_is_sent(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], words: Sequence[str], rows: list[Any], said: str
) -> None:
    found = recorded(tmp_path, rows, [], *words)
    assert found.code == 2
    assert said in capfd.readouterr().err
    assert not found.folder.exists()


def test_a_trees_aggregation_runs_on_the_tasks_that_are_trees(tmp_path: Path) -> None:
    tree: Parents = {"e1": [], "e2": [], "a3": ["e1", "e2"]}
    sizes = dict.fromkeys(tree, 1)
    rows = [row(), row(tree, id="t2")]
    judgements = recorded_rows("t2", {"e1": 1, "e2": 0, "a3": 1}, sizes)
    found = recorded(tmp_path, rows, judgements, "benchmark.aggregation=tree_mean", "tasks=[t2]")
    assert found.code == 0
    assert found.value("score") == pytest.approx(200 / 3)
    assert found.value("score/leaf_sum") == pytest.approx(200 / 3)


@pytest.mark.parametrize("unit", ["checkpoint/e1.c9", "e1.c1", "checkpoint/"])
def test_a_unit_that_the_task_does_not_have_is_refused(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], unit: str
) -> None:
    judgements = [
        *recorded_rows("t1", counts(4, 5, 4, 5, 3, 4)),
        {"task_id": "t1", "unit": unit, "verdict": {"met": True}},
    ]
    assert recorded(tmp_path, [row()], judgements).code == 2
    assert unit in capfd.readouterr().err


# A model judge that errs.

SMALL: Parents = {"e1": [], "a2": ["e1"]}


def judged(folder: Path, server: ModelServer, *words: str, out: str = "run") -> Run:
    write_rows(folder / "tasks.in.jsonl", [row(SMALL, sizes={"e1": 3, "a2": 2})])
    write_rows(folder / "submissions.in.jsonl", [{"task_id": "t1", "text": "A report."}])
    return run(
        folder / out,
        "benchmark=dag_rubric", f"benchmark.source={folder / 'tasks.in.jsonl'}",
        "system=replay", f"system.path={folder / 'submissions.in.jsonl'}",
        "judge=openai_compatible", "judge.model=fake", f"judge.base_url={server.base_url}",
        "judge.retry.attempts=2", "judge.retry.max_wait_s=0", *words,
    )  # fmt: skip


def left_out(text: str) -> str:
    answer = json.loads(text)
    answer["verdicts"].pop("c2")
    return json.dumps(answer)


def renamed(text: str) -> str:
    return text.replace('"c2"', '"checkpoint 2"')


def invented(text: str) -> str:
    answer = json.loads(text)
    answer["verdicts"]["c9"] = {"explanation": "", "verdict": "MET"}
    return json.dumps(answer)


def repeated(text: str) -> str:
    return text.replace('{"c1"', '{"c1": {"explanation": "", "verdict": "MET"}, "c1"')


def other_word(text: str) -> str:
    answer = json.loads(text)
    answer["verdicts"]["c2"] = {"explanation": "", "verdict": "PERHAPS"}
    return json.dumps(answer)


def empty(_: str) -> str:
    return ""


FAULTS = [left_out, renamed, invented, repeated, other_word, empty]


@pytest.mark.parametrize(("judging", "n_questions"), [("per_node", 2), ("per_task", 1)])
@pytest.mark.parametrize(
    ("fault", "lost", "said"),
    [
        (left_out, 2, "c2 was left out"),
        (renamed, 2, "'checkpoint 2' was not asked for; verdicts: c2 was left out"),
        (repeated, 1, "c1 stands twice"),
        (other_word, 2, "c2.verdict: 'PERHAPS'"),
        (invented, None, ""),
    ],
    ids=lambda value: value.__name__ if callable(value) else "",
)
def test_a_judge_that_always_errs_is_asked_again_and_then_only_that_checkpoint_is_missing(
    tmp_path: Path, fault: Callable[[str], str], lost: int | None, said: str, judging: str, n_questions: int
) -> None:
    def script(_: int, body: Body) -> Behaviour:
        return Behaviour(text=fault(json.dumps(verdict(body)).replace("UNMET", "MET")))

    words = (f"benchmark.judging={judging}", "benchmark.coverage_floor=0.5", "judge.price={input: 1, output: 1}")
    with ModelServer(script) as server:
        found = judged(tmp_path, server, *words)
        assert server.requests == 2 * n_questions, "each question is asked twice"
        judged(tmp_path, server, *words, out="again")
        assert server.requests == 4 * n_questions, "an answer in parts is not kept"
    rows = found.rows("judgements.jsonl")
    missing = {line["unit"]: line["error"] for line in rows if line["verdict"] is None}
    expected = [] if lost is None else [f"e1.c{lost}", f"a2.c{lost}"][:n_questions]
    assert sorted(missing) == sorted(f"checkpoint/{name}" for name in expected)
    for error in missing.values():
        assert error["kind"] == "malformed"
        assert said in error["message"]
    assert all(line["error"] is None for line in rows if line["verdict"] is not None)
    (line,) = found.rows("scores.jsonl")
    assert (found.code, line["n_graded"], line["n_expected"]) == (3 if expected else 0, 5 - len(expected), 5)
    assert line["status"] == "scored"
    assert line["metrics"]["score"] == 100, "a node is scored over its graded checkpoints"
    assert found.summary["coverage"] == (5 - len(expected)) / 5
    # what was paid stands in the rows, once, the tries too
    assert sum(row.get("cost_usd") or 0 for row in rows) == pytest.approx(found.summary["cost"]["judge_usd"])
    again = run(
        tmp_path / "round",
        "benchmark=dag_rubric", f"benchmark.source={tmp_path / 'tasks.in.jsonl'}", "benchmark.coverage_floor=0.5",
        "system=replay", f"system.path={found.folder / 'submissions.jsonl'}",
        "judge=recorded", f"judge.path={found.folder / 'judgements.jsonl'}",
    )  # fmt: skip
    assert again.bytes("scores.jsonl") == found.bytes("scores.jsonl")


def test_the_only_checkpoint_of_a_node_that_is_lost_leaves_the_task_without_a_score(tmp_path: Path) -> None:
    def script(_: int, body: Body) -> Behaviour:
        return Behaviour(text=renamed(json.dumps(verdict(body))).replace('"c1"', '"first"'))

    with ModelServer(script) as server:
        found = judged(tmp_path, server, "benchmark.coverage_floor=0")
    (line,) = found.rows("scores.jsonl")
    # of e1, its third checkpoint is left; of a2, nothing
    assert (found.code, line["n_graded"], line["metrics"]["score"]) == (3, 1, None)


def test_below_the_floor_an_answer_in_parts_leaves_the_task_withheld(tmp_path: Path) -> None:
    def script(_: int, body: Body) -> Behaviour:
        return Behaviour(text=left_out(json.dumps(verdict(body))))

    with ModelServer(script) as server:
        found = judged(tmp_path, server)
    (line,) = found.rows("scores.jsonl")
    assert (found.code, line["status"], line["n_graded"]) == (3, "withheld", 3)
    assert found.value("score") is None


def test_a_judge_that_always_says_nothing_leaves_everything_missing(tmp_path: Path) -> None:
    with ModelServer(lambda _n, _b: Behaviour(text="")) as server:
        found = judged(tmp_path, server)
        assert server.requests == 4, "two questions, each asked twice"
    assert found.code == 3
    rows = found.rows("judgements.jsonl")
    assert [line["verdict"] for line in rows] == [None] * 5
    assert {line["error"]["kind"] for line in rows} == {"empty"}
    (line,) = found.rows("scores.jsonl")
    assert (line["status"], line["n_graded"], line["n_expected"]) == ("withheld", 0, 5)
    assert set(line["metrics"].values()) == {None}
    assert found.value("score") is None


@pytest.mark.parametrize(("judging", "n_questions"), [("per_node", 2), ("per_task", 1)])
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
def test_a_judge_that_errs_once_is_asked_again_and_then_counts(
    tmp_path: Path, fault: Callable[[str], str], judging: str, n_questions: int
) -> None:
    def script(number: int, body: Body) -> Behaviour:
        text = json.dumps(verdict(body))
        return Behaviour(text=fault(text) if number == 0 else text)

    with ModelServer(script) as server:
        word = f"benchmark.judging={judging}"
        found = judged(tmp_path, server, word)
        assert server.requests == n_questions + 1
        assert judged(tmp_path, server, word, out="again").bytes("scores.jsonl") == found.bytes("scores.jsonl")
        assert server.requests == n_questions + 1, "what was judged once is kept"
    assert found.code == 0
    assert found.summary["n_graded"] == 5


def test_one_node_that_is_never_judged_leaves_the_task_without_a_score(tmp_path: Path) -> None:
    def script(_: int, body: Body) -> Behaviour:
        text = json.dumps(verdict(body))
        return Behaviour(text="" if "Step a2" in str(body["messages"][-1]["content"]) else text)

    with ModelServer(script) as server:
        found = judged(tmp_path, server, "benchmark.coverage_floor=0")
    (line,) = found.rows("scores.jsonl")
    assert found.code == 3
    assert (line["n_graded"], line["n_expected"], line["metrics"]["score"]) == (3, 5, None)


@pytest.mark.parametrize(("judging", "requests"), [("per_node", 2), ("per_checkpoint", 5), ("per_task", 1)])
def test_the_ways_of_judging_ask_so_many_questions(tmp_path: Path, judging: str, requests: int) -> None:
    with ModelServer() as server:
        found = judged(tmp_path, server, f"benchmark.judging={judging}")
        assert server.requests == requests
    assert (found.code, found.summary["n_graded"]) == (0, 5)


def test_another_scheme_asks_nothing_again(tmp_path: Path) -> None:
    with ModelServer() as server:
        judged(tmp_path, server)
        for number, word in enumerate(
            ("benchmark.weights.scheme=uniform", "benchmark.aggregation=gate", "benchmark.node_score=all")
        ):
            assert judged(tmp_path, server, word, out=f"more{number}").code == 0
        assert server.requests == 2


def test_the_estimate_counts_questions_and_not_checkpoints(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    estimates = {}
    for judging in ("per_task", "per_checkpoint"):
        with ModelServer() as server:
            words = ("judge.price={input: 1000, output: 0}", f"benchmark.judging={judging}", "dry_run=true")
            assert judged(tmp_path, server, *words).code == 0
        line = next(text for text in capfd.readouterr().err.splitlines() if "expected cost" in text)
        estimates[judging] = float(line.split("judging")[1].split("$")[0].strip().replace(",", ""))
    assert estimates["per_checkpoint"] > 3 * estimates["per_task"]
