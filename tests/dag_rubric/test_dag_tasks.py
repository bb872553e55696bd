"""The task format: what is refused and how it is said, forms, reduction, sources."""

from __future__ import annotations

import gzip
import json
import sys
from collections.abc import Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from dag_helpers import node, row, task_from

from core.errors import InputError
from core.model import Task
from plugins.dag_rubric.rubric import Rubric
from plugins.dag_rubric.schema import schema
from plugins.dag_rubric.tasks import DagTasks

TODAY = date(2026, 8, 2)


def load(source: object, **config: Any) -> list[Task]:
    return list(DagTasks({"source": str(source), **config}).load())


def write(path: Path, rows: Sequence[Any]) -> Path:
    lines = [given if isinstance(given, str) else json.dumps(given) for given in rows]
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def of(*nodes: Any, **changes: Any) -> dict[str, Any]:
    return row(nodes=list(nodes), **changes)


def checkpoint(**changes: Any) -> list[dict[str, Any]]:
    found = {"id": "c", "text": "States it", **changes}
    return [{key: value for key, value in found.items() if value is not ...}]


def weighted(text: str) -> str:
    """A row's JSON text with this text where the second node's weight stands."""
    return json.dumps(of(node("e1", weight=1), node("e2", weight=123456))).replace("123456", text)


@pytest.mark.parametrize(
    ("broken", "where", "said"),
    [
        # what only the graph tells
        pytest.param(of(node("a", ["c"]), node("b", ["a"]), node("c", ["b"])), 'task "t1", node "a"', "a cycle: a → b → c → a; no node is a leaf", id="cycle"),
        pytest.param(of(node("a", ["b"]), node("b", ["a"]), node("c", ["b"])), 'node "a"', "a cycle: a → b → a; expected", id="cycle beside a leaf"),
        pytest.param(of(node("a", ["a"])), 'node "a"', "a cycle: a → a", id="its own parent"),
        pytest.param(of(node("e1"), node("a2", ["e9"])), 'task "t1", node "a2"', 'no node of the task; expected a node\'s id; got "e9"', id="unknown parent"),
        pytest.param(of(node("e1"), node("a2", [{"id": "e9"}])), 'node "a2"', '"e9"', id="unknown parent with an edge"),
        pytest.param(of(node("e1"), node("a2", ["e1", {"id": "e1", "edge": "weak"}])), 'node "a2"', 'the parent stands twice; expected each parent once; got "e1"', id="parent twice"),
        pytest.param(of(node("e1"), node("e1")), 'task "t1", node "e1"', "the node id stands twice", id="node id twice"),
        pytest.param(of(node("e1", checkpoints=checkpoint()), node("e2", checkpoints=checkpoint())), 'task "t1", node "e2"', 'a checkpoint of node "e1"; got "c"', id="checkpoint id twice"),
        pytest.param(of(node("e1", weight=1), node("e2"), node("e3", weight=0)), 'task "t1", node "e2"', "2 of 3 nodes have a weight", id="weights on some nodes"),
        pytest.param(of(node("e1", weight=1), node("e2", weight=None)), 'node "e2"', "1 of 2 nodes have a weight", id="null is no weight"),
        pytest.param(of(node("e1", weight=0), node("e2", weight=0)), 'task "t1"', "all weights are 0", id="weights of 0 alone"),
        pytest.param(weighted("NaN"), 'task "t1", node "e2"', "the weight is not finite; expected a finite number, 0 or more; got NaN", id="NaN weight"),
        pytest.param(weighted("1e999"), 'task "t1", node "e2"', "not finite", id="infinite weight"),
        pytest.param(weighted("1" * 400), 'task "t1", node "e2"', "not finite", id="weight beyond floats"),
        pytest.param(weighted("-1"), 'task "t1", node "e2", field nodes[1].weight', "0 or more, or null; all nodes of a task have one or none has; got -1", id="negative weight"),
        pytest.param(weighted('"1"'), 'node "e2", field nodes[1].weight', 'got "1"', id="weight is a text"),
        pytest.param(weighted("true"), 'node "e2", field nodes[1].weight', "got true", id="weight is a bool"),
        # the form
        pytest.param(of(node("e1", checkpoints=[])), 'task "t1", node "e1", field nodes[0].checkpoints', "at least one checkpoint", id="no checkpoint"),
        pytest.param(of(node("e1", checkpoints=...)), 'node "e1", field nodes[0].checkpoints', "no such field", id="no checkpoints"),
        pytest.param(of(node("e1", parents=...)), 'node "e1", field nodes[0].parents', "a list of prerequisites", id="no parents"),
        pytest.param(of(node("e1", type=...)), 'node "e1", field nodes[0].type', "evidential or analytical", id="no type"),
        pytest.param(of(node("e1", type="both")), 'node "e1", field nodes[0].type', 'got "both"', id="unknown type"),
        pytest.param(of(node("e1", id=...)), 'task "t1", field nodes[0].id', "unique in the task", id="no node id"),
        pytest.param(of(node("e1"), node("a2", [{"id": "e1", "edge": "soft"}])), 'node "a2", field nodes[1].parents[0]', "weak, strong or hard", id="unknown edge"),
        pytest.param(of(node("e1"), node("a2", [{"id": "e1", "egde": "weak"}])), 'node "a2", field nodes[1].parents[0]', "the id of a node", id="misspelt edge"),
        pytest.param(of(node("e1", checkpoints=checkpoint(id=...))), "field nodes[0].checkpoints[0].id", "no such field", id="no checkpoint id"),
        pytest.param(of(node("e1", checkpoints=checkpoint(text=" "))), "field nodes[0].checkpoints[0].text", "one claim", id="blank checkpoint"),
        pytest.param(of(node("e1", checkpoints=checkpoint(evidence="a page"))), "checkpoints[0].evidence", "a list of sources", id="evidence is a text"),
        pytest.param(of(), 'task "t1", field nodes', "at least one node", id="no node"),
        pytest.param(row(nodes=...), 'task "t1", field nodes', "no such field", id="no nodes"),
        pytest.param(row(id=...), "line 1, field id", "unique in the file", id="no task id"),
        pytest.param(row(id=" "), "line 1, field id", '" "', id="blank task id"),
        pytest.param(row(queries=...), "field queries", "no such field", id="no queries"),
        pytest.param(row(queries={}), "field queries", "at least one of with_hints", id="no query"),
        pytest.param(row(queries={"with_hints": None}), "field queries", "at least one of", id="null query alone"),
        pytest.param(row(queries={"with_hints": "  "}), "field queries.with_hints", "not blank", id="blank query"),
        pytest.param(row(queries={"with_hint": "?"}), "field queries", "at least one of", id="misspelt form"),
        pytest.param("[]", "line 1", "an object with id, queries and nodes", id="a list"),
        pytest.param('{"id": ', "line 1", "invalid JSON", id="no JSON"),
        pytest.param('{"id": "t1", "id": "t2"}', "line 1", "'id' stands twice", id="a key given twice"),
        pytest.param("[" * 100_000, "line 1", "nested too deeply", id="nested too deeply"),
        pytest.param(json.dumps(row(provenance={"rounds": 3})).replace("3}", "NaN}"), 'task "t1"', "a number is not finite", id="NaN elsewhere"),
        pytest.param(row(topic="half a \ud800"), 'task "t1"', "surrogate", id="text that can't be written"),
        # rounds
        pytest.param(row(snapshots=[{"round": 1, "nodes": [node("a", ["b"])]}]), 'task "t1", snapshots[0], node "a"', "no node of the task", id="a faulty round"),
        pytest.param(row(snapshots=[{"round": 2, "nodes": [node("e")]}, {"round": 2, "nodes": [node("e")]}]), "field snapshots[1].round", "a round after 2", id="rounds out of order"),
    ],
)  # fmt: skip
def test_what_is_refused_names_line_task_and_node(tmp_path: Path, broken: Any, where: str, said: str) -> None:
    file = write(tmp_path / "tasks.jsonl", [broken])
    with pytest.raises(InputError) as refused:
        load(file)
    message = str(refused.value)
    assert f"{file}, line 1" in message
    assert where in message
    assert said in message


def test_the_line_of_a_later_row_is_named_and_ids_are_unique(tmp_path: Path) -> None:
    file = write(tmp_path / "tasks.jsonl", [row(), "", row()])
    with pytest.raises(InputError, match=r"line 3, field id: the task id stands twice; expected .*line 1"):
        load(file)
    file = write(tmp_path / "more.jsonl", [row(), row(id="t2"), of(node("x", ["y"]), id="t3")])
    with pytest.raises(InputError, match='line 3, task "t3", node "x"'):
        load(file)


def test_an_empty_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no task"):
        load(write(tmp_path / "tasks.jsonl", [""]))


@pytest.mark.parametrize(
    "given",
    [
        row(queries={"with_hints": "Same?", "without_hints": "Same?", "assigned_topic": "Same?"}),
        of(node("lonely"), node("e1"), node("a2", ["e1"])),
        of(node("heavy")),
        of(node("e1"), node("a2", ["e1"]), node("a3", ["a2", "e1"])),
    ],
    ids=["equal queries", "isolated node", "heavy node", "redundant edge"],
)
def test_what_is_only_odd_is_not_refused(given: dict[str, Any]) -> None:
    assert task_from(given).id == "t1"


def test_optional_fields_may_be_null_as_columns_have_them() -> None:
    bare: dict[str, Any] = {"weight": None, "critical": None, "step": None}
    given = row(
        topic=None,
        category=None,
        provenance=None,
        snapshots=None,
        queries={"with_hints": "Q", "without_hints": None},
        nodes=[node("e1", **bare), node("a2", [{"id": "e1", "edge": None}], **bare)],
    )
    task = task_from(given)
    assert task.labels == {"form": "with_hints", "task": "t1"}
    rubric = Rubric.of(task)
    assert (rubric.own_weights, rubric.nodes[1].edges, rubric.nodes[1].critical) == (None, ("strong",), False)


def test_what_a_system_is_shown_and_what_it_is_not() -> None:
    given = row(category="Law", topic="A topic")
    given["nodes"][0]["checkpoints"][0]["evidence"] = [{"url": "https://example.org", "quote": "a quote"}]
    task = task_from(given)
    assert task.prompt == "What is $so{?"
    assert task.labels == {"form": "with_hints", "task": "t1", "category": "Law"}
    shown = task.shown().model_dump_json()
    assert "States fact" not in shown
    assert "Step e1" not in shown
    assert "a quote" not in task.model_dump_json(), "the judge is not shown evidence either"


THREE = {"with_hints": "Long?", "without_hints": "Short?", "assigned_topic": "Topic."}


def test_all_forms_are_three_items_that_share_their_rubric() -> None:
    from plugins.dag_rubric.settings import Settings
    from plugins.dag_rubric.tasks import tasks_of

    rows = [
        ("one", row(queries=THREE, category="Law")),
        ("two", row(id="t2", queries={"assigned_topic": "Topic."})),
    ]
    found = tasks_of(rows, Settings.of({"form": "all"}), where="here")
    assert [(task.id, task.prompt, task.index) for task in found] == [
        ("t1:with_hints", "Long?", 0),
        ("t1:without_hints", "Short?", 1),
        ("t1:assigned_topic", "Topic.", 2),
        ("t2:assigned_topic", "Topic.", 3),
    ]
    assert [task.labels["form"] for task in found[:3]] == list(THREE)
    assert {str(task.labels["task"]) for task in found} == {"t1", "t2"}
    assert found[0].payload == found[1].payload == found[2].payload


@pytest.mark.parametrize("form", THREE)
def test_a_form_keeps_the_tasks_own_id(form: str) -> None:
    task = task_from(row(queries=THREE), form=form)
    assert (task.id, task.prompt, task.labels["form"]) == ("t1", THREE[form], form)


def test_a_task_without_the_chosen_form_is_refused_with_a_way_out() -> None:
    with pytest.raises(InputError) as refused:
        task_from(row(), form="assigned_topic")
    assert "task 't1' has no query assigned_topic" in str(refused.value)
    assert "benchmark.form=with_hints, or benchmark.form=all where.form=assigned_topic" in str(refused.value)


def test_the_transitive_reduction_drops_redundant_edges_and_nothing_else() -> None:
    given = of(
        node("e1"), node("a2", [{"id": "e1", "edge": "weak"}]), node("a3", ["e1", {"id": "a2", "edge": "hard"}])
    )
    whole, reduced = task_from(given), task_from(given, transitive_reduction=True)
    assert [listed["parents"] for listed in whole.payload["nodes"]][2] == [
        {"id": "e1", "edge": "strong"},
        {"id": "a2", "edge": "hard"},
    ]
    assert [listed["parents"] for listed in reduced.payload["nodes"]] == [
        [],
        [{"id": "e1", "edge": "weak"}],
        [{"id": "a2", "edge": "hard"}],
    ]


# Sources.


def as_parquet(path: Path, rows: Sequence[dict[str, Any]]) -> Path:
    import pyarrow as pa
    from pyarrow import parquet

    parquet.write_table(pa.Table.from_pylist(list(rows)), path)
    return path


def test_every_kind_of_file_gives_the_same_tasks(tmp_path: Path) -> None:
    rows = [row(), of(node("e1", weight=1.5), node("a2", ["e1"], weight=2.0), id="t2")]
    plain = write(tmp_path / "tasks.jsonl", rows)
    packed = tmp_path / "tasks.jsonl.gz"
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    marked = tmp_path / "marked.jsonl"
    marked.write_bytes(b"\xef\xbb\xbf" + plain.read_bytes())
    columns = as_parquet(tmp_path / "tasks.parquet", rows)
    expected = load(plain)
    assert [task.id for task in expected] == ["t1", "t2"]
    for path in (packed, marked, columns):
        assert load(path) == expected, path.name


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("none.jsonl", None, "there is no such file"),
        ("tasks.csv", b"id\n", "not a task file's name"),
        ("tasks.jsonl", b"\xff\xfe", "not UTF-8"),
        ("tasks.jsonl.gz", b"no gzip", "can't be read"),
        ("tasks.parquet", b"no parquet", "can't be read as parquet"),
    ],
)
def test_a_file_that_cannot_be_read_is_refused(
    tmp_path: Path, name: str, content: bytes | None, said: str
) -> None:
    path = tmp_path / name
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(InputError, match=said) as refused:
        load(path)
    assert name in str(refused.value)


def test_a_packed_bomb_is_not_read_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from core import taskfile

    monkeypatch.setattr(taskfile, "MAX_BYTES", 1000)
    path = tmp_path / "tasks.jsonl.gz"
    path.write_bytes(gzip.compress(b"[" * 100_000))
    with pytest.raises(InputError, match="too large"):
        load(path)


def test_the_hub_takes_any_dataset_with_split_and_revision(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[object, ...]] = []

    def load_dataset(name: str, *, split: str, revision: str | None) -> list[dict[str, Any]]:
        asked.append((name, split, revision))
        return [row()]

    fake = ModuleType("datasets")
    fake.load_dataset = load_dataset  # type: ignore[attr-defined]  # a stand-in for the library
    monkeypatch.setitem(sys.modules, "datasets", fake)
    assert [task.id for task in load("hub", dataset="someone/dags", split="dev", revision="abc")] == ["t1"]
    assert [task.id for task in load("hub", dataset="someone/dags")] == ["t1"]
    assert asked == [("someone/dags", "dev", "abc"), ("someone/dags", "test", None)]


def test_the_hub_without_a_dataset_or_without_a_network_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match=r"benchmark\.dataset: no dataset is named"):
        load("hub")
    fake = ModuleType("datasets")

    def load_dataset(*_: object, **__: object) -> None:
        raise ConnectionError("no network")

    fake.load_dataset = load_dataset  # type: ignore[attr-defined]  # likewise
    monkeypatch.setitem(sys.modules, "datasets", fake)
    with pytest.raises(InputError, match=r"someone/dags@main: .*ConnectionError: no network"):
        load("hub", dataset="someone/dags")


def test_the_schema_is_one_and_accepts_the_documented_example() -> None:
    import jsonschema

    jsonschema.Draft202012Validator.check_schema(schema())
    page = (Path(__file__).parents[2] / "docs" / "dag_rubric.md").read_text(encoding="utf-8")
    documented = json.loads(page.partition("```json\n")[2].partition("```")[0])
    assert {"provenance", "snapshots"} <= documented.keys()
    assert task_from(documented).id == "t1"


def test_columns_that_the_schema_does_not_know_may_have_any_type(tmp_path: Path) -> None:
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    made = {"made": datetime(2026, 8, 1, tzinfo=UTC), "day": date(2026, 8, 1), "price": Decimal("1.50")}
    parquet.write_table(pa.Table.from_pylist([row() | made]), tmp_path / "tasks.parquet")
    assert [task.id for task in load(tmp_path / "tasks.parquet")] == ["t1"]


def test_a_value_that_json_cannot_hold_is_named_as_such() -> None:
    from plugins.dag_rubric.tasks import check_row

    with pytest.raises(InputError, match="a value that JSON can't hold") as refused:
        check_row(row(note={(1, 2): "a key that is no text"}), "line 1")
    assert "surrogate" not in str(refused.value)


def test_what_is_odd_is_counted_in_a_runs_warnings(tmp_path: Path) -> None:
    redundant = {"a": [], "b": ["a"], "c": ["b", "a"], "d": [], **{f"x{n}": ["a"] for n in range(9)}}
    rows = [row(redundant), row(redundant, id="t2"), row({"e": []}, id="t3")]
    loader = DagTasks({"source": str(write(tmp_path / "tasks.jsonl", rows))})
    assert loader.warnings(TODAY) == [], "nothing is loaded yet"
    list(loader.load())
    edges, heavy, isolated = loader.warnings(TODAY)
    assert edges.startswith("2 redundant edges in 2 tasks; the first: task t1, node c: its parent a")
    assert edges.endswith("benchmark.transitive_reduction=true leaves such edges out")
    assert heavy.startswith(
        "3 heavy nodes in 3 tasks; the first: task t1, node a: it has 48% of the weight under leaf_sum"
    )
    assert isolated.startswith("2 isolated nodes in 2 tasks; the first: task t1, node d: nothing builds on it")


def test_what_the_settings_mend_is_not_warned_about(tmp_path: Path) -> None:
    source = str(write(tmp_path / "tasks.jsonl", [row(queries={"with_hints": "A?", "without_hints": "B?"})]))
    plain = DagTasks({"source": source, "form": "all"})
    assert len(list(plain.load())) == 2
    assert [line.partition(";")[0] for line in plain.warnings(TODAY)] == [
        "1 redundant edge in 1 task",
        "1 heavy node in 1 task",
    ]
    mended = DagTasks({"source": source, "transitive_reduction": True, "weights": {"scheme": "uniform"}})
    list(mended.load())
    assert mended.warnings(TODAY) == []
