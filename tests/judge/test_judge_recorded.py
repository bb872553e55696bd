"""The judge that reads a file: what it gives, and which lines it refuses."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from fakes.judging import question, services

from core.errors import InputError
from core.judge.question import RecordedVerdict
from core.judge.recorded import RecordedJudge
from core.model import Failure


def row(**changes: Any) -> dict[str, Any]:
    base = {
        "task_id": "t1",
        "attempt": 1,
        "unit": "criterion/c1",
        "repeat": 1,
        "verdict": {"met": True},
        "error": None,
        "judge": "someone",
        "explanation": "because",
    }
    return {**base, **changes}


def judge_of(path: Path, *rows: dict[str, Any] | str) -> RecordedJudge:
    text = "\n".join(line if isinstance(line, str) else json.dumps(line) for line in rows) + "\n"
    if path.suffix == ".gz":
        path.write_bytes(gzip.compress(text.encode()))
    else:
        path.write_text(text, encoding="utf-8")
    return RecordedJudge({"name": "recorded", "provider": "recorded", "path": str(path)}, services())


@pytest.fixture(params=["judgements.jsonl", "judgements.jsonl.gz"])
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return tmp_path / str(request.param)


async def test_verdicts_of_the_units_asked_for(path: Path) -> None:
    judge = judge_of(
        path,
        row(),
        "",
        row(unit="criterion/c2", verdict=None, error={"kind": "refused", "message": "no"}),
        row(unit="criterion/c3", verdict=None),
        row(repeat=2, verdict={"met": False}),
    )
    units = tuple(f"criterion/c{number}" for number in (1, 2, 3, 4))
    answer = await judge.ask(question(units=units))
    assert answer.verdicts["criterion/c1"] == RecordedVerdict({"met": True}, None, "because", "someone")
    errors = [answer.verdicts[unit].error for unit in units]
    assert errors[1] == Failure(kind="refused", message="no")
    assert [error and error.kind for error in errors] == [None, "refused", "not_recorded", "not_recorded"]
    assert [answer.verdicts[unit].verdict for unit in units[1:]] == [None, None, None]
    assert [answer.verdicts[unit].absent for unit in units] == [False, False, False, True]
    again = await judge.ask(question(repeat=2))
    assert again.verdicts["criterion/c1"].verdict == {"met": False}
    assert (judge.highest_repeat, judge.stored, answer.calls) == (2, False, 0)


async def test_attempt_and_repeat_are_one_unless_given(path: Path) -> None:
    judge = judge_of(path, {"task_id": "t1", "unit": "criterion/c1", "verdict": {"met": True}})
    assert (await judge.ask(question())).verdicts["criterion/c1"].verdict == {"met": True}


def test_rows_with_their_lines(path: Path) -> None:
    judge = judge_of(path, row(), "", row(task_id="t2", attempt=3, repeat=5, verdict=None))
    assert list(judge.rows()) == [
        ("t1", 1, "criterion/c1", 1, {"met": True}, 1),
        ("t2", 3, "criterion/c1", 5, None, 3),
    ]


def without(name: str) -> dict[str, Any]:
    return {key: value for key, value in row().items() if key != name}


@pytest.mark.parametrize(
    ("line", "field", "expected"),
    [
        pytest.param("{not json", "", "one JSON object a line", id="not JSON"),
        pytest.param("[1]", "", "one JSON object a line", id="a list"),
        pytest.param('{"task_id": "t1", "unit": "u", "verdict": {"x": NaN}}', "", "one JSON object", id="NaN"),
        pytest.param(without("task_id"), "task_id", "a text", id="no task"),
        pytest.param(row(task_id=7), "task_id", "a text", id="task is a number"),
        pytest.param(without("unit"), "unit", "a text", id="no unit"),
        pytest.param(row(unit=""), "unit", "a text", id="empty unit"),
        pytest.param(without("verdict"), "verdict", "an object or null", id="no verdict"),
        pytest.param(row(verdict=True), "verdict", "an object or null", id="verdict is true"),
        pytest.param(row(verdict="MET"), "verdict", "an object or null", id="verdict is a word"),
        pytest.param(row(attempt=0), "attempt", "a whole number from 1", id="attempt 0"),
        pytest.param(row(repeat=True), "repeat", "a whole number from 1", id="repeat true"),
        pytest.param(row(repeat=1.5), "repeat", "a whole number from 1", id="repeat 1.5"),
        pytest.param(row(repeat=None), "repeat", "a whole number from 1", id="repeat null"),
        pytest.param(row(verdict=None, error="oops"), "error", "null or an object", id="error is a word"),
        pytest.param(row(judge=3), "judge", "a text or null", id="judge is a number"),
        pytest.param(row(), "", "one row for each", id="the same row twice"),
    ],
)
def test_a_line_that_is_refused(path: Path, line: dict[str, Any] | str, field: str, expected: str) -> None:
    judge = judge_of(path, row(), "", line)
    with pytest.raises(InputError) as caught:
        list(judge.rows())
    assert str(caught.value).startswith(
        f"{path}, line 3" + (f", field {field}" if field.isidentifier() else f": {field}")
    )
    assert expected in str(caught.value)


def test_a_file_that_is_no_text(tmp_path: Path) -> None:
    for name, content in (
        ("a.jsonl", b"\xff\xfe\x00"),
        ("a.jsonl.gz", b"plain"),
        ("b.jsonl.gz", gzip.compress(b"x" * 99)[:-4]),
    ):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(InputError):
            RecordedJudge({"path": str(tmp_path / name)}, services()).highest_repeat  # noqa: B018  # reading it reads the file


def test_a_path_is_needed_and_a_missing_file_is_told(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"judge\.path"):
        RecordedJudge({"name": "r", "provider": "recorded"}, services())
    path = tmp_path / "none.jsonl"
    assert RecordedJudge({"path": str(path)}, services()).check() == [f"judge.path: there is no file {path}"]


def test_equal_verdicts_are_one_object(tmp_path: Path) -> None:
    judge = judge_of(tmp_path / "a.jsonl", row(), row(repeat=2), row(repeat=3, verdict={"met": False}))
    first, second, third = (verdict for *_, verdict, _ in judge.rows())
    assert first is second
    assert first != third
