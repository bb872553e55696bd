"""system=replay: what a submissions file may hold, what is refused, and what is read from it when."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from adapters_helpers import config, services
from hypothesis import given
from hypothesis import strategies as st

from adapters._rows import BadRowError, read_line
from adapters.replay import Replay, replay
from core.errors import CallError, InputError
from core.model import Submission, Task


def write(path: Path, *rows: Any) -> Path:
    """A submissions file: texts stand as they are, everything else as JSON."""
    lines = [row if isinstance(row, bytes) else json.dumps(row).encode() for row in rows]
    content = b"".join(line + b"\n" for line in lines)
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return path


@pytest.mark.parametrize("name", ["answers.jsonl", "answers.jsonl.gz"])
async def test_each_attempt_is_its_own_line(name: str, tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [
        {"task_id": "t1", "text": "erste – Antwort", "system": "exa", "effort": "low", "settings": {"k": 1}},
        {
            "task_id": "t1",
            "attempt": 2,
            "status": "incomplete",
            "files": {"a/b.csv": "x,y\n"},
            "citations": [{"url": "https://a.example", "title": "A", "unknown": 1}],
            "usage": {"input": 3, "output": 4},
            "latency_s": 7,
            "cost_usd": 0.25,
            "error": None,
            "a later field": True,
        },
        {"task_id": "t2", "status": "refused", "error": {"kind": "refused", "message": "no"}},
    ]
    system = replay(config("replay", path=str(write(tmp_path / name, *rows))), services("low"))
    assert system.check() == []
    system.check_tasks(["t1", "t2", "t3"])
    for row in rows:
        task, attempt = Task(id=row["task_id"], prompt=""), row.get("attempt", 1)
        assert await system.solve(task, attempt) == Submission.model_validate(row)
    first = await system.solve(Task(id="t1", prompt=""), 1)
    assert (first.system, first.effort, first.settings) == ("exa", "low", {"k": 1})
    assert system.stored is False


@pytest.mark.parametrize(
    ("efforts", "effort", "accepted"),
    [(["low", None], "low", True), (["low"], "hgh", False), (["low"], None, True), ([None], "any", True)],
)
def test_an_effort_that_no_line_has_is_refused(
    efforts: list[str | None], effort: str | None, accepted: bool, tmp_path: Path
) -> None:
    rows = [{"task_id": f"t{number}", "text": "x", "effort": word} for number, word in enumerate(efforts)]
    system = replay(config("replay", path=str(write(tmp_path / "a.jsonl", *rows))), services(effort))
    if accepted:
        assert system.check() == []
        return
    with pytest.raises(InputError, match=r"'hgh'.*one of low"):
        system.check()


async def test_a_byte_order_mark_and_nulls_are_read(tmp_path: Path) -> None:
    row = {"task_id": "t1", "text": "x", "files": None, "citations": None, "settings": None}
    path = tmp_path / "a.jsonl"
    path.write_bytes(
        b"\xef\xbb\xbf" + json.dumps(row).encode() + b"\n" + json.dumps({**row, "attempt": 2}).encode()
    )
    system = replay(config("replay", path=str(path)), services(None))
    assert system.check() == []
    for attempt in (1, 2):
        assert (await system.solve(Task(id="t1", prompt=""), attempt)).text == "x"


@pytest.mark.parametrize(
    ("task_id", "attempt"), [("t2", 1), ("t1", 2)], ids=["no line for the task", "no line for the attempt"]
)
async def test_what_is_not_there_is_an_error(task_id: str, attempt: int, tmp_path: Path) -> None:
    system = Replay(write(tmp_path / "a.jsonl", {"task_id": "t1", "text": "x"}))
    with pytest.raises(CallError, match=f"{task_id}.*{attempt}") as caught:
        await system.solve(Task(id=task_id, prompt=""), attempt)
    assert caught.value.kind == "not_recorded"


GOOD = {"task_id": "t0", "text": "x"}
REFUSED = {
    "invalid JSON": (b'{"task_id": "t1", ', "line 2:.*invalid JSON.*expected one JSON object"),
    "not UTF-8": (b'{"task_id": "t1", "text": "\xff"}', "line 2:.*invalid JSON"),
    "NaN": (b'{"task_id": "t1", "text": "x", "settings": {"t": NaN}}', "line 2:.*invalid JSON"),
    "infinity": (b'{"task_id": "t1", "text": "x", "settings": {"t": 1e999}}', "field settings"),
    "a lone surrogate": (b'{"task_id": "t1", "text": "\\ud800"}', "line 2:.*invalid JSON"),
    "nested too deep": (b"[" * 5000, "line 2:.*invalid JSON"),
    "a list": ([1], "line 2:.*not an object"),
    "null": (None, "line 2:.*not an object"),
    "no task_id": ({"text": "x"}, "line 2, field task_id: missing"),
    "task_id a number": ({"task_id": 7, "text": "x"}, "field task_id:.*expected a text.*got 7"),
    "attempt 0": ({**GOOD, "task_id": "t1", "attempt": 0}, "field attempt:.*greater than or equal to 1"),
    "attempt 1.0": ({**GOOD, "task_id": "t1", "attempt": 1.0}, "field attempt:.*a whole number.*got 1.0"),
    "attempt a text": ({**GOOD, "task_id": "t1", "attempt": "1"}, 'field attempt:.*a whole number.*got "1"'),
    "attempt true": ({**GOOD, "task_id": "t1", "attempt": True}, "field attempt:.*a whole number.*got true"),
    "attempt null": ({**GOOD, "task_id": "t1", "attempt": None}, "field attempt:.*a whole number.*got null"),
    "attempt twice": (GOOD, "line 2, field attempt:.*given twice.*the first in line 1"),
    "unknown status": ({"task_id": "t1", "status": "done"}, "field status:.*'completed'.*got \"done\""),
    "text a list": ({"task_id": "t1", "text": ["x"]}, "field text:.*expected a text"),
    "files a list": ({"task_id": "t1", "files": ["x"]}, "field files:.*expected an object"),
    "a file not a text": ({"task_id": "t1", "files": {"a": 1}}, "field files.a:.*expected a text.*got 1"),
    "citation without url": (
        {"task_id": "t1", "text": "x", "citations": [{"title": "t"}]},
        r"field citations\.0\.url: missing",
    ),
    "negative cost": (
        {**GOOD, "task_id": "t1", "cost_usd": -1},
        "field cost_usd:.*greater than or equal to 0",
    ),
    "latency a text": ({**GOOD, "task_id": "t1", "latency_s": "3"}, "field latency_s:.*expected a number"),
    "completed without an answer": ({"task_id": "t1"}, "expected a field `text` or `files`"),
    "completed with null": ({"task_id": "t1", "text": None}, "expected a field `text` or `files`"),
    "an absolute file": ({"task_id": "t1", "files": {"/etc/x": ""}}, "field files:.*relative path.*'/etc/x'"),
    "a file above": ({"task_id": "t1", "files": {"a/../../x": ""}}, "field files:.*without .."),
    "a file without a name": ({"task_id": "t1", "files": {"": "x"}}, "field files:.*not a usable file name"),
}


@pytest.mark.parametrize(("line", "message"), REFUSED.values(), ids=REFUSED)
@pytest.mark.parametrize("name", ["a.jsonl", "a.jsonl.gz"])
def test_a_faulty_line_is_refused(line: Any, message: str, name: str, tmp_path: Path) -> None:
    path = write(tmp_path / name, GOOD, line)
    with pytest.raises(InputError, match=message) as caught:
        Replay(path).check()
    assert str(caught.value).startswith(f"{path}, line 2")


@pytest.mark.parametrize(
    "row",
    [
        {"task_id": "t1", "text": ""},
        {"task_id": "t1", "files": {}},
        {"task_id": "t1", "text": None, "files": {"notes..md": "x"}},
        {"task_id": "t1", "status": "error"},
        {"task_id": "t1", "status": "timed_out", "text": None},
    ],
    ids=["an empty text", "no files", "files only", "an error", "a deadline"],
)
async def test_what_is_allowed(row: dict[str, Any], tmp_path: Path) -> None:
    system = Replay(write(tmp_path / "a.jsonl", b"", row, b"   "))
    assert system.check() == []
    assert await system.solve(Task(id="t1", prompt=""), 1) == Submission.model_validate(row)


def test_an_id_the_source_does_not_have_is_refused(tmp_path: Path) -> None:
    rows = [{"task_id": name, "text": "x"} for name in ("draco-001", "draco-0O2", "other")]
    path = write(tmp_path / "a.jsonl", *rows)
    with pytest.raises(InputError, match=r"line 2, field task_id.*'draco-0O2'.*closest is 'draco-002'"):
        Replay(path).check_tasks([f"draco-{n:03}" for n in range(1, 9)])


def test_ids_of_the_source_that_no_line_has_are_fine(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", GOOD)
    Replay(path).check_tasks({"t0", "t1"})
    with pytest.raises(InputError, match="the source has no task 't0'"):
        Replay(path).check_tasks({"t1"})


@pytest.mark.parametrize(
    ("path", "message"),
    [(None, "system.path.*got null"), ("a.csv", r"\.jsonl or \.jsonl\.gz"), (3, r"system\.path")],
    ids=["no path", "another form", "not a text"],
)
def test_a_path_that_is_none(path: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        replay(config("replay", path=path), services())


def test_a_missing_file_is_listed_by_the_preflight(tmp_path: Path) -> None:
    system = replay(config("replay", path=str(tmp_path / "none.jsonl")), services())
    assert system.check() == [f"system.path: there is no file {tmp_path / 'none.jsonl'}"]


@pytest.mark.parametrize(
    "content",
    [b"not packed", gzip.compress(b'{"task_id": "t1", "text": "x"}\n' * 9)[:-12]],
    ids=["plain", "cut"],
)
def test_a_broken_gz_is_refused(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl.gz"
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"a\.jsonl\.gz, line"):
        Replay(path).check()


async def test_a_plain_file_is_not_held_in_memory(tmp_path: Path) -> None:
    import tracemalloc

    text = "x" * 60_000
    path = write(tmp_path / "a.jsonl", *({"task_id": f"t{n}", "text": text} for n in range(200)))
    tracemalloc.start()
    system = Replay(path)
    system.check()
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert held < 200 * 2_000
    assert (await system.solve(Task(id="t150", prompt=""), 1)).text == text


async def test_a_file_that_changes_under_the_run_is_noticed(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", {"task_id": "t1", "text": "x"}, {"task_id": "t2", "text": "y"})
    system = Replay(path)
    system.check()
    write(path, {"task_id": "t2", "text": "y"}, {"task_id": "t1", "text": "x"})
    with pytest.raises(CallError, match="line 1: the file was changed"):
        await system.solve(Task(id="t1", prompt=""), 1)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
fields = st.sampled_from([*Submission.model_fields, "other"])


@given(st.dictionaries(fields, json_values, max_size=6) | json_values)
def test_a_line_is_a_submission_or_refused(value: Any) -> None:
    """Nothing else comes of it, and what was read can be written and read again."""
    try:
        row = read_line(json.dumps(value).encode())
    except BadRowError as bad:
        assert bad.expected
    else:
        assert read_line(row.model_dump_json().encode()) == row


@given(st.binary(max_size=60))
def test_any_bytes_are_a_submission_or_refused(line: bytes) -> None:
    with pytest.raises(BadRowError):
        read_line(line)
