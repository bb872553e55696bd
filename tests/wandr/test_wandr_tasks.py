"""Rows as tasks: what is refused, what a task carries, and the counts of the given tasks."""

from __future__ import annotations

import json
import statistics
from collections import Counter
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from wandr_helpers import (
    GIVEN,
    given_rows,
    given_tasks,
    key,
    needs_given,
    node,
    root_of,
    row,
    sites,
    task_of,
    write_tasks,
)

from core.errors import InputError
from core.filters import by_label
from core.model import Task
from plugins.wandr import tasks
from plugins.wandr.shape import schema
from plugins.wandr.tasks import WandrTasks, describe, intermediate_keys_of, tasks_of, volume_of
from plugins.wandr.tree import required_records, tree_of

URL = key("url")


def load(source: object, **config: Any) -> list[Task]:
    return list(WandrTasks({"source": str(source), **config}).load())


@pytest.mark.parametrize(
    ("broken", "field", "says"),
    [
        pytest.param(row(id=...), "id", "missing", id="no id"),
        pytest.param(row(id=7), "id", "got 7", id="id is a number"),
        pytest.param(row(id=" "), "id", "not blank", id="blank id"),
        pytest.param({"id": "t"}, "tree", "the root node", id="no tree"),
        pytest.param(row(instruction=3), "instruction", "null: one is made", id="instruction is a number"),
        pytest.param(row(instruction="half \ud800"), "", "half a character", id="text that can't be written"),
        pytest.param(row(labels=["a"]), "labels", "an object", id="labels are a list"),
        pytest.param(row(output_files="results_t1.jsonl"), "output_files", "the names", id="files are a text"),
        pytest.param(row(output_files=["results_x.jsonl"]), "output_files", "results_t1.jsonl", id="other files"),
        pytest.param(row(self_contained="no"), "self_contained", "true or false", id="self_contained is a text"),
        pytest.param(
            row(node("t1", key("a", 0), URL)), "tree.keys[0].required", "at least 1", id="in the tree: shape"
        ),
        pytest.param(row(node("t1", key("a"))), "tree.keys", "url is not the last", id="in the tree: rule"),
        pytest.param("{", "", "invalid JSON", id="line is no JSON"),
        pytest.param("[1]", "", "an object", id="line is a list"),
        pytest.param('{"id": "t", "id": "u"}', "", "'id' stands twice", id="a field twice"),
        pytest.param('{"id": "t", "tree": {"x": NaN}}', "", "NaN is not", id="NaN"),
        pytest.param("[" * 100_000, "", "nested too deeply", id="nested too deeply"),
        pytest.param(row(id="t0"), "id", "stands twice", id="id twice"),
    ],
)
def test_a_refusal_names_file_line_and_field(tmp_path: Path, broken: Any, field: str, says: str) -> None:
    # a lone surrogate can only come as an escape
    line = broken if isinstance(broken, str) else json.dumps(broken)
    path = write_tasks(tmp_path / "tasks.jsonl", row(id="t0"), "", line)
    with pytest.raises(InputError) as refused:
        load(path)
    where = refused.value.where or ""
    assert where == (f"{path}, line 3, field {field}" if field else f"{path}, line 3")
    assert says in str(refused.value)


def test_all_tasks_are_checked_before_the_first_is_used(tmp_path: Path) -> None:
    loader = WandrTasks({"source": str(write_tasks(tmp_path / "t.jsonl", row(), row(id="")))})
    with pytest.raises(InputError, match="line 2"):
        loader.load()


def test_a_source_without_rows_is_refused() -> None:
    with pytest.raises(InputError, match="nowhere: the source has no task"):
        tasks_of([], where="nowhere")


def test_what_a_task_carries() -> None:
    tree = sites()
    task = task_of(tree, instruction="Find {= city =} at least once.\n", extra="ignored", delivery="file")
    assert task.prompt == "Find {= city =} at least once.\n"
    assert task.required_files == (
        "results_trip.jsonl",
        "results_trip.sites.jsonl",
        "results_trip.sites.visits.jsonl",
    )
    assert task.output_schema is None
    assert task.payload == {"tree": tree, "flags": ["no_judge_spec"]}
    assert task.blocked == tasks.BLOCKED


def test_a_system_is_never_shown_what_the_judge_knows() -> None:
    judge = {"guidance": "THE SECRET GUIDANCE", "requirements": [{"name": "q", "supported": "THE SECRET CHECK"}]}
    city = key(
        "city", 2, canonicalize={"norm": "exact_set", "members": ["THE SECRET MEMBER"]}, invalid_if="SECRET"
    )
    for instruction in (None, "Find it."):
        task = task_of(node("t1", city, URL, judge=judge), instruction=instruction, labels={"topic": "SECRET"})
        assert "SECRET" not in task.shown().model_dump_json()
        assert task.payload["flags"] == []


def test_the_benchmarks_own_pages_are_blocked() -> None:
    assert {
        "huggingface.co/datasets/perplexity-ai/wandr",
        "github.com/perplexityai/wandr",
        "arxiv.org/abs/2608.14747",
        "arxiv.org/pdf/2608.14747",
        "arxiv.org/html/2608.14747",
    } <= set(tasks.BLOCKED)
    assert all("://" not in page for page in tasks.BLOCKED)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        pytest.param({}, {}, id="none"),
        pytest.param({"topology": "flat"}, {"topology": "flat"}, id="a text"),
        pytest.param({"verticals": ["legal", "tech"]}, {"verticals": ["legal", "tech"]}, id="a list"),
        pytest.param(
            {"difficulty": 0.25, "difficulty-label": "low"},
            {"difficulty": "low", "difficulty-label": "low", "difficulty-value": "0.25"},
            id="a measure and its word",
        ),
        pytest.param({"width": 1e-07}, {"width-value": "1e-07"}, id="a measure without a word"),
        pytest.param({"x": "own", "x-label": "other"}, {"x": "own", "x-label": "other"}, id="a text stays"),
        pytest.param({"is_new": True}, {"is_new": "true"}, id="a truth value"),
        pytest.param({"a": None, "b": {}, "c": "", "d": [], "e": [1]}, {}, id="nothing that is a label"),
    ],
)
def test_labels(given: dict[str, Any], expected: dict[str, Any]) -> None:
    labels = dict(task_of(labels=given).labels)
    assert {labels.pop("volume"), labels.pop("intermediate_keys")} == {"<30", "0"}
    assert labels == expected


@pytest.mark.parametrize(
    ("records", "label"),
    [
        (1, "<30"), (29, "<30"), (30, "30–119"), (119, "30–119"), (120, "120–199"), (199, "120–199"),
        (200, "200–299"), (299, "200–299"), (300, "300–479"), (479, "300–479"), (480, "≥480"), (2750, "≥480"),
    ],
)  # fmt: skip
def test_volumes(records: int, label: str) -> None:
    assert volume_of(records) == label


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        ((), "0"),
        (("a",), "0"),
        (("a", "b"), "1"),
        (("a", "b", "c"), "2"),
        (tuple("abcd"), "3+"),
        (tuple("abcde"), "3+"),
    ],
)
def test_intermediate_keys(names: tuple[str, ...], expected: str) -> None:
    assert intermediate_keys_of(root_of(node("t", *(key(name) for name in names), URL))) == expected


@pytest.mark.parametrize(
    ("tree", "expected"),
    [
        pytest.param(node("t", URL), "url(1); 1 records", id="url alone"),
        pytest.param(node("t", key("city", 3), key("url", 2)), "city(3) → url(2); 6 records", id="flat"),
        pytest.param(
            sites(),
            "country(3) → city(2) → url(1); + sites: city → site(2) → url(1); "
            "+ sites.visits: site → visit(2) → url(1); 10 records",
            id="nested subtasks",
        ),
    ],
)
def test_one_line_about_a_task(tree: dict[str, Any], expected: str) -> None:
    assert describe(task_of(tree)) == expected


def test_the_files_may_be_named_in_any_order() -> None:
    tree = node("t1", subtasks=[node("t1.s", key("city"), URL)])
    files = ["results_t1.s.jsonl", "results_t1.jsonl"]
    assert task_of(tree, output_files=files).required_files == ("results_t1.jsonl", "results_t1.s.jsonl")
    with pytest.raises(InputError, match="not those of the tree"):
        task_of(tree, output_files=files[:1])


@pytest.mark.parametrize(
    ("tree", "flags"),
    [
        pytest.param(node("t1", judge={"summary": "s"}), [], id="nothing to say"),
        pytest.param(node("t1"), ["no_judge_spec"], id="no judge spec"),
        pytest.param(node("t1", judge={"guidance": None}), ["no_judge_spec"], id="nothing but null"),
        pytest.param(node("t1", judge={"validity": [], "requirements": []}), [], id="a judge without checks"),
        pytest.param(
            node("t1", subtasks=[node("t1.s", key("city"), URL, judge={"summary": "s"})]),
            [],
            id="a judge in a subtask",
        ),
        pytest.param(
            node("t1", key("a", canonicalize={"norm": "custom", "custom": "f"}), URL, judge={"guidance": "g"}),
            ["custom_norm:a"],
            id="custom norm",
        ),
    ],
)
def test_flags(tree: dict[str, Any], flags: list[str]) -> None:
    assert task_of(tree).payload["flags"] == flags


class Log:
    def __init__(self) -> None:
        self.said: list[tuple[str, dict[str, Any]]] = []

    def warning(self, event: str, **fields: Any) -> None:
        self.said.append((event, fields))


class TestNotSelfContained:
    """Tasks that can't be solved from what they say are loaded, marked, and left out unless asked for."""

    rows = (row(id="a"), row(id="b", self_contained=False), row(id="c", self_contained=True))

    def test_left_out_and_said(self, tmp_path: Path) -> None:
        log = Log()
        loader = WandrTasks({"source": str(write_tasks(tmp_path / "t.jsonl", *self.rows))}, log)
        assert [task.id for task in loader.load()] == ["a", "c"]
        assert [(event, fields["ids"]) for event, fields in log.said] == [("tasks left out", ["b"])]
        (warning,) = loader.warnings(date(2026, 1, 1))
        assert warning.startswith("1 tasks are not self-contained and left out (b)")
        assert "include_not_self_contained=true" in warning

    def test_had_all_the_same(self, tmp_path: Path) -> None:
        loader = WandrTasks(
            {"source": str(write_tasks(tmp_path / "t.jsonl", *self.rows)), "include_not_self_contained": True}
        )
        found = {task.id: task for task in loader.load()}
        assert list(found) == ["a", "b", "c"]
        assert found["b"].labels["self_contained"] == "false"
        assert "not_self_contained" in found["b"].payload["flags"]
        assert "self_contained" not in found["c"].labels
        assert loader.warnings(date(2026, 1, 1)) == []

    def test_none_left(self, tmp_path: Path) -> None:
        path = write_tasks(tmp_path / "t.jsonl", self.rows[1])
        with pytest.raises(InputError, match="include_not_self_contained=true"):
            load(path)


def test_an_unknown_channel_is_refused() -> None:
    with pytest.raises(InputError, match=r"benchmark\.delivery: .*one of file, fence, schema; got 'mail'"):
        WandrTasks({"delivery": "mail"})


def test_the_schema_is_a_schema_and_describes_every_part() -> None:
    from jsonschema import Draft202012Validator

    def undescribed(part: dict[str, Any], name: str) -> list[str]:
        found = [] if "description" in part or "$ref" in part else [name]
        inner = {
            **part.get("properties", {}),
            **{word: part[word] for word in ("items", "additionalProperties") if word in part},
        }
        return found + [fault for word, each in inner.items() for fault in undescribed(each, f"{name}.{word}")]

    whole = schema()
    Draft202012Validator.check_schema(whole)
    assert undescribed(whole, "row") == []
    assert [fault for name, part in whole["$defs"].items() for fault in undescribed(part, name)] == []
    assert Draft202012Validator(whole).is_valid(row(sites()))
    assert not Draft202012Validator(whole).is_valid(row(node("t", key("a", 0), URL)))


# The given tasks: 500 and the smoke task.


@needs_given
class TestGiven:
    def test_all_load_in_their_order(self) -> None:
        assert [task.id for task in given_tasks()] == [each["id"] for each in given_rows()]
        assert len(given_tasks()) == 501
        assert [task.index for task in given_tasks()] == list(range(501))

    def test_every_instruction_is_shown_to_the_letter(self) -> None:
        by_file = {task.id: task for task in load(GIVEN, delivery="file")}
        for each, task in zip(given_rows(), given_tasks(), strict=True):
            assert by_file[task.id].prompt == each["instruction"]
            assert task.prompt.startswith(each["instruction"].rstrip())
            assert list(task.required_files) == each["output_files"]
        assert sum("{= " in task.prompt for task in given_tasks()) == 85

    def test_what_they_ask_for(self) -> None:
        scored = [tree_of(task) for task in given_tasks() if task.id != "smoke"]
        records = [required_records(root) for root in scored]
        assert (sum(records), statistics.median(records), min(records), max(records)) == (170_495, 245, 30, 2750)
        nodes = [each for root in scored for each in root.walk()]
        assert len(nodes) == 608
        assert Counter(each.keys[-1].required for each in nodes) == {1: 575, 2: 24, 3: 7, 5: 2}
        assert sum(bool(root.subtasks) for root in scored) == 85
        keys = [each for one in nodes for each in one.keys]
        norms = Counter(each.canonicalize.norm for each in keys if each.canonicalize is not None)
        assert norms["exact_set"] + norms["alias_set"] == 520
        assert norms["custom"] == 14
        assert sum(len(each.fields) == 1 and each.fields != (each.name,) for each in keys) == 14
        assert sum(any(len(each.fields) > 1 for one in root.walk() for each in one.keys) for root in scored) == 291

    def test_their_labels(self) -> None:
        scored = [task for task in given_tasks() if task.id != "smoke"]
        intermediate = Counter(task.labels["intermediate_keys"] for task in scored)
        assert {name: count / 5 for name, count in intermediate.items()} == {
            "0": 13.8,
            "1": 47.4,
            "2": 32.2,
            "3+": 6.6,
        }
        volumes = Counter(task.labels["volume"] for task in given_tasks())
        assert volumes == {"<30": 1, "30–119": 87, "120–199": 103, "200–299": 86, "300–479": 117, "≥480": 107}
        assert Counter(task.labels["difficulty"] for task in scored) == {"low": 167, "high": 167, "medium": 166}
        assert set(Counter(task.labels["topology"] for task in scored)) == {"flat", "hierarchical", "composite"}
        assert len(by_label(given_tasks(), "verticals", "legal")) == sum(
            "legal" in each["labels"].get("verticals", ()) for each in given_rows()
        )
        assert len(by_label(given_tasks(), "width", "xlarge")) == 48

    def test_what_is_flagged(self) -> None:
        flagged = {task.id: task.payload["flags"] for task in given_tasks() if task.payload["flags"]}
        assert len(flagged) == 11
        assert {flag.partition(":")[0] for flags in flagged.values() for flag in flags} == {"custom_norm"}

    def test_each_is_described_in_one_line(self) -> None:
        for task in given_tasks():
            line = describe(task)
            assert "\n" not in line
            assert line.endswith(f"{required_records(tree_of(task))} records")
