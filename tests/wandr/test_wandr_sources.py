"""Where rows come from: files of several kinds, the hub, and what is refused."""

from __future__ import annotations

import gzip
import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from wandr_helpers import root_of, row, sites, write_tasks

from core import taskfile
from core.errors import InputError
from core.model import Task
from plugins.wandr import hub
from plugins.wandr.tasks import WandrTasks
from plugins.wandr.tree import node_from, tree_of

Plain = dict[str, Any]


def load(source: object, revision: str | None = None, **config: Any) -> list[Task]:
    return list(WandrTasks({"source": str(source), "revision": revision, **config}).load())


def hub_node(name: str, parent: str | None = None, **changes: Any) -> Plain:
    found = {
        "task_id": name,
        "parent_id": parent,
        "order": 0,
        "task_text": f"Find what {name} asks for.",
        "item_fields": ["city"],
        "key_hierarchy": [
            {"name": "city", "fields": None, "required": 2},
            {"name": "url", "fields": None, "required": 1},
        ],
        "required_output_file": f"results_{name}.jsonl",
        **changes,
    }
    return {part: value for part, value in found.items() if value is not ...}


def hub_row(*nodes: Plain, as_text: bool = True, **changes: Any) -> Plain:
    """A row as the published dataset has it."""
    nodes = nodes or (hub_node("t1"),)
    found = {
        "task_id": "t1",
        "source_commit": "0" * 40,
        "source_url": "https://example.org",
        "instruction": "Find cities.",
        "instruction_sha256": "0" * 64,
        "instruction_status": "rendered",
        "required_output_files": [
            each["required_output_file"] for each in nodes if "required_output_file" in each
        ],
        "task_tree_json": list(nodes),
        "metadata_json": {"difficulty": 0.5, "difficulty-label": "medium", "verticals": ["tech"]},
        "submission_contract_json": {},
        "self_contained": True,
        "scored": True,
        **changes,
    }
    if as_text:
        texts = [
            name for name, value in found.items() if name.endswith("_json") and isinstance(value, dict | list)
        ]
        found |= {name: json.dumps(found[name]) for name in texts}
    return {part: value for part, value in found.items() if value is not ...}


class FakeDatasets(ModuleType):
    """Stands for the package `datasets`: one function, and what it was asked."""

    def __init__(self, found: Any) -> None:
        super().__init__("datasets")
        self.asked: list[tuple[Any, ...]] = []
        self._found = found

    def load_dataset(self, path: str, *, split: str, revision: str | None) -> Any:
        self.asked.append((path, split, revision))
        if isinstance(self._found, Exception):
            raise self._found
        return self._found


@pytest.fixture
def the_hub(monkeypatch: pytest.MonkeyPatch) -> Any:
    def gives(found: Any) -> FakeDatasets:
        fake = FakeDatasets(found)
        monkeypatch.setitem(sys.modules, "datasets", fake)
        return fake

    return gives


# Files.


def test_packed_and_marked_files_are_read(tmp_path: Path) -> None:
    packed = tmp_path / "tasks.jsonl.gz"
    packed.write_bytes(gzip.compress(b"\xef\xbb\xbf" + json.dumps(row()).encode() + b"\r\n\r\n"))
    assert [task.id for task in load(packed)] == ["t1"]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        pytest.param("tasks.jsonl", b"", "no task", id="empty file"),
        pytest.param("tasks.jsonl", b"\n \n", "no task", id="blank lines"),
        pytest.param("tasks.jsonl", b'{"id": "\xff"}\n', "line 1: the line is not UTF-8", id="not UTF-8"),
        pytest.param("tasks.jsonl.gz", b"plain text", "can't be read", id="not packed"),
        pytest.param("tasks.jsonl.gz", gzip.compress(b"{}" * 99)[:-6], "can't be read", id="packed file cut"),
        pytest.param("tasks.parquet", b"PAR1 and no more", "can't be read as parquet", id="not parquet"),
        pytest.param("tasks.csv", b"id,tree", "expected .jsonl, .jsonl.gz or .parquet", id="another suffix"),
    ],
)
def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(InputError) as refused:
        load(path)
    assert message in str(refused.value)
    assert name in str(refused.value)


def test_a_file_that_is_not_there_is_refused_with_the_choices(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"nowhere\.jsonl: .*hub, sample, or a file"):
        load(tmp_path / "nowhere.jsonl")


def test_a_packed_bomb_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(taskfile, "MAX_BYTES", 1000)
    path = tmp_path / "tasks.jsonl.gz"
    path.write_bytes(gzip.compress(b" " * 100_000))
    with pytest.raises(InputError, match="too large"):
        load(path)


def test_the_hubs_own_file_is_read_as_the_hub_is(tmp_path: Path) -> None:
    (task,) = load(write_tasks(tmp_path / "test.jsonl", hub_row()))
    assert tree_of(task).name == "t1"


def test_a_parquet_copy_of_the_hubs_file_is_read(tmp_path: Path) -> None:
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "test.parquet"
    parquet.write_table(pa.Table.from_pylist([hub_row(), hub_row(hub_node("t2"), task_id="t2")]), path)
    assert [tree_of(task).name for task in load(path)] == ["t1", "t2"]


# The hub.


def test_the_hub_is_asked_for_the_pinned_revision(the_hub: Any) -> None:
    fake = the_hub([hub_row(), hub_row(hub_node("t2"), task_id="t2")])
    assert [task.id for task in load("hub", "abc123")] == ["t1", "t2"]
    assert fake.asked == [("perplexity-ai/wandr", "test", "abc123")]


@pytest.mark.parametrize("as_text", [True, False], ids=["JSON texts", "plain objects"])
def test_what_a_row_of_the_hub_becomes(the_hub: Any, as_text: bool) -> None:
    the_hub([hub_row(as_text=as_text)])
    (task,) = load("hub", delivery="file")
    assert task.prompt == "Find cities."
    assert (task.labels["difficulty"], task.labels["verticals"]) == ("medium", ["tech"])
    assert task.payload["flags"] == ["no_judge_spec"]
    root = tree_of(task)
    city, url = root.keys
    assert (root.text, city.fields, city.required) == ("Find what t1 asks for.", ("city",), 2)
    # what the dataset does not say is as in nearly all released tasks
    assert city.canonicalize is None
    assert city.deduplicate is not None
    assert city.deduplicate.llm
    assert url.canonicalize is not None
    assert url.canonicalize.norm == "url"


def test_a_tree_of_the_hub_is_put_together_by_parent_and_order() -> None:
    def keys(*names: str) -> list[Plain]:
        return [{"name": name, "fields": [name], "required": 1} for name in (*names, "url")]

    nodes = [
        hub_node("t1.b.c", "t1.b", key_hierarchy=keys("x", "y")),
        hub_node("t1.b", "t1", order=2, key_hierarchy=keys("city", "x")),
        hub_node("a", "t1", order=1, key_hierarchy=keys("city", "z"), required_output_file="results_t1.a.jsonl"),
        hub_node("t1"),
    ]
    root = node_from(hub.row_of(hub_row(*nodes, required_output_files=None), "here")["tree"], "here")
    assert [each.name for each in root.walk()] == ["t1", "t1.a", "t1.b", "t1.b.c"]


@pytest.mark.parametrize("name", hub.FIELDS)
def test_a_field_that_the_hub_lacks_is_named(the_hub: Any, name: str) -> None:
    the_hub([hub_row(), {part: value for part, value in hub_row().items() if part != name}])
    with pytest.raises(InputError, match=f"perplexity-ai/wandr@main, row 2: the row lacks {name};"):
        load("hub")


def test_all_missing_fields_are_named_at_once(the_hub: Any) -> None:
    the_hub([{"task_id": "t1", "problem": "?", "self_contained": True, "instruction": None}])
    with pytest.raises(InputError, match="lacks required_output_files, task_tree_json, metadata_json"):
        load("hub")


def test_tasks_of_the_hub_that_are_not_self_contained_are_left_out(the_hub: Any) -> None:
    the_hub([hub_row(), hub_row(hub_node("t2"), task_id="t2", self_contained=False, instruction=None)])
    assert [task.id for task in load("hub")] == ["t1"]
    both = load("hub", include_not_self_contained=True)
    assert [task.id for task in both] == ["t1", "t2"]
    assert "Find what t2 asks for." in both[1].prompt


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        pytest.param(hub_row(task_tree_json="[{"), "field task_tree_json: invalid JSON", id="no JSON"),
        pytest.param(hub_row(task_tree_json="{}"), "field task_tree_json: no list of nodes", id="no list"),
        pytest.param(hub_row(task_tree_json="[]"), "not one root", id="no root"),
        pytest.param(hub_row(hub_node("t1"), hub_node("t2")), r'not one root.*\["t1", "t2"\]', id="two roots"),
        pytest.param(
            hub_row(hub_node("t1"), hub_node("t1", "t1")),
            r"task_tree_json\[1\].task_id: no name of its own",
            id="name twice",
        ),
        pytest.param(
            hub_row(hub_node("t1"), hub_node("t1.a", "t9")), r'no parent leads to.*\["t1.a"\]', id="unknown parent"
        ),
        pytest.param(
            hub_row(hub_node("t1"), hub_node("t1.a", "t1.b"), hub_node("t1.b", "t1.a")),
            "no parent leads to",
            id="a ring",
        ),
        pytest.param(hub_row(hub_node("t1", key_hierarchy=...)), "the node lacks key_hierarchy", id="no keys"),
        pytest.param(
            hub_row(hub_node("t1", key_hierarchy="city")),
            r"\[0\].key_hierarchy: no list of keys",
            id="keys are a text",
        ),
        pytest.param(
            hub_row(hub_node("t1", required_output_file="x.jsonl")),
            "another file.*results_t1.jsonl",
            id="another file",
        ),
        pytest.param(hub_row(required_output_files=["x.jsonl"]), "field output_files", id="other files"),
        pytest.param(hub_row(metadata_json="[1]"), "field labels", id="metadata no object"),
        pytest.param(
            hub_row(hub_node("t1", key_hierarchy=[{"name": "url"}])),
            r"tree.keys\[0\].required",
            id="a rule of the tree",
        ),
    ],
)
def test_a_bad_row_of_the_hub_is_refused(the_hub: Any, broken: Plain, message: str) -> None:
    the_hub([broken])
    with pytest.raises(InputError, match=f"perplexity-ai/wandr@main, row 1.*{message}"):
        load("hub")


@pytest.mark.parametrize("error", [ConnectionError("no route"), ValueError("Unknown split"), KeyError("x")])
def test_a_hub_that_fails_is_said_and_nothing_else_is_loaded(the_hub: Any, error: Exception) -> None:
    fake = the_hub(error)
    with pytest.raises(InputError) as refused:
        load("hub", "abc123")
    assert type(error).__name__ in str(refused.value)
    assert "benchmark.source=FILE" in str(refused.value)
    assert len(fake.asked) == 1


def test_the_hubs_form_is_told_by_its_tree(tmp_path: Path) -> None:
    """A row of ours that also has the hub's field is ours."""
    (task,) = load(write_tasks(tmp_path / "t.jsonl", row(sites(), task_tree_json="[]")))
    assert tree_of(task) == root_of(sites())
