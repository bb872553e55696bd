"""Loading DRACO's tasks: what is refused and how it is said, and the sources."""

from __future__ import annotations

import gzip
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from draco_helpers import row, rubric

from core import taskfile
from core.errors import InputError
from core.model import Task
from plugins.draco import leaks
from plugins.draco.rubric import criteria_of
from plugins.draco.tasks import DracoTasks, schema


def load(source: object, revision: str | None = None) -> list[Task]:
    return list(DracoTasks({"source": str(source), "revision": revision}).load())


def write(path: Path, rows: Sequence[Any]) -> Path:
    lines = [given if isinstance(given, str) else json.dumps(given) for given in rows]
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def criterion(**changes: Any) -> dict[str, Any]:
    found = {"id": "a", "weight": 10, "requirement": "States it", **changes}
    return {key: value for key, value in found.items() if value is not ...}


def answer(*criteria: Any, **section: Any) -> dict[str, Any]:
    whole = {"id": "facts", "title": "Facts", "criteria": list(criteria), **section}
    return {"id": "rubric", "sections": [{key: value for key, value in whole.items() if value is not ...}]}


def raw_weight(text: str) -> str:
    """A rubric's JSON text with this text where the first weight stands."""
    return json.dumps(answer(criterion(weight=123456))).replace("123456", text)


FIRST = "answer.sections[0].criteria[0]"


@pytest.mark.parametrize(
    ("broken", "field", "expected", "got"),
    [
        # the row
        pytest.param(row(id=...), "id", "not blank", "no such field", id="no id"),
        pytest.param(row(problem=...), "problem", "not blank", "no such field", id="no problem"),
        pytest.param(row(answer=...), "answer", "JSON text", "no such field", id="no answer"),
        pytest.param(row(domain=...), "domain", "not blank", "no such field", id="no domain"),
        pytest.param(row(id=7), "id", "text", "got 7", id="id is a number"),
        pytest.param(row(id=" "), "id", "not blank", '" "', id="blank id"),
        pytest.param(row(problem=None), "problem", "text", "null", id="problem is null"),
        pytest.param(row(problem=""), "problem", "not blank", '""', id="empty problem"),
        pytest.param(row(domain=["a"]), "domain", "text", '["a"]', id="domain is a list"),
        pytest.param(
            {**row(), "answer": {"id": "r"}}, "answer", "JSON text", '{"id": "r"}', id="answer is no text"
        ),
        pytest.param(row(problem="half a \ud800"), "", "", "surrogate", id="text that can't be written"),
        # the rubric
        pytest.param(row(answer='{"id": '), "answer", "JSON text", "invalid JSON", id="answer is no JSON"),
        pytest.param(row(answer="[]"), "answer", "an object", "[]", id="rubric is a list"),
        pytest.param(row(answer="[" * 100_000), "answer", "JSON text", "deep", id="answer is nested too deeply"),
        pytest.param(
            row(answer='{"id": "r", "id": "s"}'),
            "answer",
            "JSON text",
            "'id' stands twice",
            id="a key given twice",
        ),
        pytest.param(row(answer={"sections": []}), "answer.id", "not blank", "no such field", id="no rubric id"),
        pytest.param(row(answer={"id": "r"}), "answer.sections", "a list", "no such field", id="no sections"),
        pytest.param(
            row(answer={"id": "r", "sections": []}), "answer.sections", "at least one", "[]", id="empty sections"
        ),
        pytest.param(
            row(answer={"id": "r", "sections": {}}), "answer.sections", "a list", "{}", id="sections is an object"
        ),
        pytest.param(row(answer=answer()), "answer.sections[0].criteria", "at least one", "[]", id="no criterion"),
        pytest.param(
            row(answer=answer(criteria=...)),
            "answer.sections[0].criteria",
            "at least one",
            "no such field",
            id="no criteria",
        ),
        pytest.param(
            row(answer=answer(criterion(), title=...)),
            "answer.sections[0].title",
            "a text",
            "no such field",
            id="no title",
        ),
        pytest.param(row(answer=answer("a")), FIRST, "an object", '"a"', id="criterion is a text"),
        pytest.param(
            row(answer=answer(criterion(id=...))), f"{FIRST}.id", "", "no such field", id="no criterion id"
        ),
        pytest.param(
            row(answer=answer(criterion(id=""))), f"{FIRST}.id", "not blank", '""', id="empty criterion id"
        ),
        pytest.param(
            row(answer=answer(criterion(requirement=...))),
            f"{FIRST}.requirement",
            "not blank",
            "no such field",
            id="no requirement",
        ),
        pytest.param(
            row(answer=answer(criterion(requirement=" \n"))),
            f"{FIRST}.requirement",
            "not blank",
            '" \\n"',
            id="blank requirement",
        ),
        pytest.param(
            row(answer=answer(criterion(weight=...))), f"{FIRST}.weight", "finite", "no such field", id="no weight"
        ),
        pytest.param(row(answer=raw_weight("0")), f"{FIRST}.weight", "other than 0", "got 0", id="weight 0"),
        pytest.param(row(answer=raw_weight("-0.0")), f"{FIRST}.weight", "other than 0", "-0.0", id="weight -0.0"),
        pytest.param(row(answer=raw_weight('"10"')), f"{FIRST}.weight", "number", '"10"', id="weight is a text"),
        pytest.param(row(answer=raw_weight("true")), f"{FIRST}.weight", "number", "true", id="weight is a bool"),
        pytest.param(row(answer=raw_weight("null")), f"{FIRST}.weight", "number", "null", id="weight is null"),
        pytest.param(row(answer=raw_weight("[1]")), f"{FIRST}.weight", "number", "[1]", id="weight is a list"),
        pytest.param(row(answer=raw_weight("NaN")), "answer", "JSON text", "NaN is not", id="weight is NaN"),
        pytest.param(
            row(answer=raw_weight("Infinity")), "answer", "JSON text", "Infinity is not", id="weight is Infinity"
        ),
        pytest.param(
            row(answer=raw_weight("1e999")), f"{FIRST}.weight", "finite", "Infinity", id="weight overflows"
        ),
        pytest.param(
            row(answer=answer(criterion(weight=1.5e308), criterion(id="b", weight=1.5e308))),
            "answer",
            "a finite 100 x",
            "too far apart",
            id="weights overflow together",
        ),
        pytest.param(
            row(answer=answer(criterion(weight=5e-324), criterion(id="b", weight=-1))),
            "answer",
            "a finite 100 x",
            "sizes 5e-324 … 1",
            id="weights overflow when divided",
        ),
        pytest.param(
            row(answer=raw_weight("1" * 400)), f"{FIRST}.weight", "finite", "1111", id="weight beyond floats"
        ),
        pytest.param(
            row(answer=answer(criterion(), criterion())),
            "answer.sections[0].criteria[1].id",
            f"other than that of {FIRST}",
            '"a"',
            id="criterion id twice in a section",
        ),
        pytest.param(
            row(
                answer={
                    "id": "r",
                    "sections": [
                        {"id": "facts", "title": "F", "criteria": [criterion()]},
                        {"id": "style", "title": "S", "criteria": [criterion()]},
                    ],
                }
            ),
            "answer.sections[1].criteria[0].id",
            f"other than that of {FIRST}",
            '"a"',
            id="criterion id twice in two sections",
        ),
        pytest.param(
            row(answer={"id": "r", "sections": 2 * answer(criterion())["sections"]}),
            "answer.sections[1].id",
            "an id of its own",
            '"facts"',
            id="section id twice",
        ),
        # the line
        pytest.param("{", "", "one JSON object a line", "invalid JSON", id="line is no JSON"),
        pytest.param("[1]", "", "an object", "[1]", id="line is a list"),
        pytest.param(
            '{"id": "t", "id": "u"}', "", "one JSON object", "'id' stands twice", id="column given twice"
        ),
    ],
)
def test_a_refusal_names_file_line_field_and_what_was_expected(
    tmp_path: Path, broken: Any, field: str, expected: str, got: str
) -> None:
    path = write(tmp_path / "tasks.jsonl", [row(id="t0"), "", broken])
    with pytest.raises(InputError) as refused:
        load(path)
    assert (refused.value.where or "").startswith(f"{path}, line 3")
    assert (refused.value.where or "").endswith(f", field {field}" if field else "line 3")
    assert expected in (refused.value.expected or "")
    assert got in str(refused.value)


def test_a_repeated_task_id_names_both_lines(tmp_path: Path) -> None:
    path = write(tmp_path / "tasks.jsonl", [row(), row(id="t2"), row()])
    with pytest.raises(InputError, match=r"line 3, field id: .*expected an id other than that of .*line 1"):
        load(path)


def test_all_tasks_are_checked_before_the_first_is_used(tmp_path: Path) -> None:
    loader = DracoTasks({"source": str(write(tmp_path / "tasks.jsonl", [row(), row(id="t2", problem="")]))})
    with pytest.raises(InputError, match="line 2"):
        loader.load()


def test_what_a_task_carries(tmp_path: Path) -> None:
    problem = "Is $1 < 2 € in {braces}?  ${HOME} %s <br>\n"
    (task,) = load(write(tmp_path / "t.jsonl", [row(problem=problem, extra="ignored", domain="Law")]))
    assert task.prompt == problem
    assert task.labels == {"domain": "Law"}
    assert task.blocked == leaks.BLOCKED
    assert task.index == 0
    assert task.payload["rubric_id"] == "rubric"
    assert [(one.id, one.weight, one.section, one.sign) for one in criteria_of(task)] == [
        ("a", 10, "facts", "positive"),
        ("b", -5, "facts", "negative"),
    ]


def test_a_system_is_never_shown_the_rubric(tmp_path: Path) -> None:
    (task,) = load(write(tmp_path / "t.jsonl", [row()]))
    shown = task.shown().model_dump_json()
    assert "States the fact" not in shown
    assert "Academic" not in shown


def test_the_order_of_keys_and_fractions_of_weights_are_free(tmp_path: Path) -> None:
    turned = {"requirement": "States it", "weight": 2.5, "id": "a"}
    (task,) = load(write(tmp_path / "t.jsonl", [row(answer=answer(turned))]))
    assert criteria_of(task)[0].weight == 2.5


def test_criterion_ids_may_repeat_across_tasks(tmp_path: Path) -> None:
    assert len(load(write(tmp_path / "t.jsonl", [row(), row(id="t2")]))) == 2


# Sources.


def test_packed_and_marked_files_are_read(tmp_path: Path) -> None:
    packed = tmp_path / "tasks.jsonl.gz"
    packed.write_bytes(gzip.compress(b"\xef\xbb\xbf" + json.dumps(row()).encode() + b"\r\n\r\n"))
    assert [task.id for task in load(packed)] == ["t1"]


def test_parquet_is_read(tmp_path: Path) -> None:
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "tasks.parquet"
    parquet.write_table(pa.Table.from_pylist([row(), row(id="t2")]), path)
    assert [task.id for task in load(path)] == ["t1", "t2"]
    assert [task.index for task in load(path)] == [0, 1]


def test_a_parquet_column_of_another_type_is_refused_with_its_row(tmp_path: Path) -> None:
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "tasks.parquet"
    parquet.write_table(pa.Table.from_pylist([row(domain=3)]), path)
    with pytest.raises(InputError, match=r"row 1, field domain: .*expected a text.*got 3"):
        load(path)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        pytest.param("tasks.jsonl", b"", "no task", id="empty file"),
        pytest.param("tasks.jsonl", b"\n \n", "no task", id="blank lines"),
        pytest.param("tasks.jsonl", b'{"id": "\xff"}\n', "line 1: the line is not UTF-8", id="not UTF-8"),
        pytest.param("tasks.jsonl.gz", b"plain text", "can't be read", id="not packed"),
        pytest.param("tasks.jsonl.gz", gzip.compress(b"{}" * 99)[:-6], "can't be read", id="packed file cut"),
        pytest.param("tasks.parquet", b"PAR1 and no more", "can't be read as parquet", id="not parquet"),
        pytest.param("tasks.csv", b"id,problem", "expected .jsonl, .jsonl.gz or .parquet", id="another suffix"),
        pytest.param("tasks.json", b"[]", "expected .jsonl, .jsonl.gz or .parquet", id="a JSON file"),
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
    with pytest.raises(InputError, match=r"nowhere\.jsonl: .*expected hub, sample, or a file"):
        load(tmp_path / "nowhere.jsonl")


def test_a_packed_bomb_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(taskfile, "MAX_BYTES", 1000)
    path = tmp_path / "tasks.jsonl.gz"
    path.write_bytes(gzip.compress(b" " * 100_000))
    with pytest.raises(InputError, match="too large"):
        load(path)


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


def test_the_hub_is_asked_for_the_pinned_revision_and_the_only_split(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = FakeDatasets([row(), row(id="t2")])
    monkeypatch.setitem(sys.modules, "datasets", fake)
    assert [task.id for task in load("hub", "abc123")] == ["t1", "t2"]
    assert fake.asked == [("perplexity-ai/draco", "test", "abc123")]


@pytest.mark.parametrize("error", [ConnectionError("no route"), ValueError("Unknown split"), KeyError("x")])
def test_a_hub_that_fails_is_said_and_nothing_else_is_loaded(
    monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    fake = FakeDatasets(error)
    monkeypatch.setitem(sys.modules, "datasets", fake)
    with pytest.raises(InputError) as refused:
        load("hub", "abc123")
    assert type(error).__name__ in str(refused.value)
    assert "benchmark.source=FILE" in str(refused.value)
    assert len(fake.asked) == 1


def test_a_bad_row_of_the_hub_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "datasets", FakeDatasets([row(), row(id="t2", domain=None)]))
    with pytest.raises(InputError, match="perplexity-ai/draco@abc123, row 2, field domain"):
        load("hub", "abc123")


def test_the_schema_is_a_schema_and_describes_every_part() -> None:
    from jsonschema import Draft202012Validator

    def described(part: dict[str, Any]) -> bool:
        inner = [
            *part.get("properties", {}).values(),
            *(part[key] for key in ("items", "contentSchema") if key in part),
        ]
        return "description" in part and all(described(one) for one in inner)

    whole = schema()
    Draft202012Validator.check_schema(whole)
    Draft202012Validator.check_schema(whole["properties"]["answer"]["contentSchema"])
    assert described(whole)
    assert Draft202012Validator(whole).is_valid(row(answer=rubric({"facts": {"a": 1}})))
