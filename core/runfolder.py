"""The folder of a run: what is written, in what order, and by whom.

`run.json` is the lock: what was run, with digests. Rows are streamed to part files as tasks are graded and put
into the order of the source at the end, so that memory stays flat and the files don't depend on who finished
first. Every file carries its schema and is replaced as a whole, never half written.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any, Final

from core.config import identity
from core.errors import InputError
from core.model import Judgement, Row, Submission, Task, TaskScore

SCHEMAS: Final[Mapping[str, str]] = {
    "run": "leadline/run/1",
    "task": "leadline/task/1",
    "submission": "leadline/submission/1",
    "judgement": "leadline/judgement/1",
    "score": "leadline/score/1",
    "summary": "leadline/summary/1",
    "explanation": "leadline/explanation/1",
    "compare": "leadline/compare/1",
    "sweep": "leadline/sweep/1",
}
#: Letters that some readers take for the end of a line: they are written as JSON escapes.
_LINE_ENDS: Final = {code: f"\\u{code:04x}" for code in (0x85, 0x2028, 0x2029)}
#: Differences that a refusal names.
_SHOWN: Final = 5
RUN, SUMMARY, TASKS, SCORES = "run.json", "summary.json", "tasks.jsonl", "scores.jsonl"
SUBMISSIONS, JUDGEMENTS, LOG = "submissions.jsonl", "judgements.jsonl", "log.jsonl"
EXPLAIN = "explain.jsonl"


def default_name(now: float, *words: str | None) -> str:
    """`<UTC time>-<words>`, each word fit for a folder's name."""
    stamp = datetime.fromtimestamp(now, UTC).strftime("%Y%m%dT%H%M%SZ")
    return "-".join([stamp, *(safe_word(word) for word in words if word)])


def safe_word(word: str) -> str:
    return re.sub(r"[^A-Za-z0-9_.+]+", "_", word).strip("._") or "x"


def free_folder(parent: Path, name: str) -> Path:
    """A folder that doesn't exist yet: name, name-2, …; made here, so that nobody else takes it."""
    parent.mkdir(parents=True, exist_ok=True)
    number = 1
    while True:
        folder = parent / (name if number == 1 else f"{name}-{number}")
        try:
            folder.mkdir()
        except FileExistsError:
            number += 1
        else:
            return folder


def differences(before: Any, now: Any, key: str = "") -> list[str]:
    """The keys in which two configurations differ: `effort: 'high' before, 'low' now`."""
    if isinstance(before, Mapping) and isinstance(now, Mapping):
        found: list[str] = []
        for name in dict.fromkeys([*before, *now]):
            found += differences(before.get(name), now.get(name), f"{key}.{name}" if key else str(name))
        return found
    return [] if before == now else [f"{key}: {before!r} before, {now!r} now"]


class RunFile(Row):
    """The content of run.json. Either `refused` says why a job of a sweep never began, or the rest is there.

    `run_id` outlives restarts; `config_digest` is over all that makes two starts the same run,
    `shared_digest` over the same without the shard; `plan` has the counts and the expected cost; `exit_code`
    is null while the run is going on.
    """

    exit_code: int | None
    refused: str | None = None
    run_id: str | None = None
    leadline: str | None = None
    config_digest: str | None = None
    shared_digest: str | None = None
    tasks_digest: str | None = None
    started_at: str | None = None
    finished_at: str | None = None
    starts: int | None = None
    asked: int | None = None
    reused: int | None = None
    solved: int | None = None
    solved_reused: int | None = None
    spent: Mapping[str, float] | None = None
    judge_settings: Mapping[str, Any] | None = None
    prompt_digest: str | None = None
    plan: Mapping[str, Any] | None = None
    ignored_judgements: Mapping[str, int] | None = None
    plugins: Sequence[Mapping[str, Any]] | None = None
    warnings: Sequence[str] | None = None
    merged: Sequence[Mapping[str, Any]] | None = None
    config: Mapping[str, Any] | None = None


class RunFolder:
    """A run's folder, locked for this process while it is open."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            path.mkdir(parents=True, exist_ok=True)
            self._lock = _lock(path)
        except OSError as error:
            raise InputError(f"can't be used as a run folder: {error.strerror}", where=str(path)) from None
        self._parts: dict[str, IO[bytes]] = {}
        self._places: dict[str, list[tuple[tuple[int, ...], int, int]]] = {SUBMISSIONS: [], JUDGEMENTS: []}

    def close(self) -> None:
        for part in self._parts.values():
            part.close()
        for name in (SUBMISSIONS, JUDGEMENTS):
            self._part_path(name).unlink(missing_ok=True)
        self._lock.truncate(0)
        self._lock.close()

    def lock_config(self, digest: str, config: Mapping[str, Any]) -> dict[str, Any] | None:
        """What run.json of an earlier start says; refuses a folder of another run, naming what differs."""
        known = read_json(self.path / RUN)
        if known is None or known.get("refused"):
            self._refuse_strangers()
            return None
        if known.get("config_digest") != digest:
            raise InputError(
                "the folder holds a run of another configuration",
                where=str(self.path),
                expected="the same configuration, to go on with it, or another out=",
                got="; ".join(differences(identity(known["config"]), identity(config))[:_SHOWN]),
            )
        return known

    def _refuse_strangers(self) -> None:
        """A folder with a summary or scores but no run.json isn't ours to write over."""
        for name in (SUMMARY, SCORES, SUBMISSIONS, JUDGEMENTS):
            if (self.path / name).exists():
                raise InputError(
                    f"the folder has a {name} but no {RUN}", where=str(self.path), expected="another out="
                )

    def write_json(self, name: str, schema: str, content: Mapping[str, Any]) -> None:
        """One JSON file, replaced as a whole."""
        text = json.dumps({"schema": SCHEMAS[schema], **content}, ensure_ascii=False, indent=1, allow_nan=False)
        replace_file(self.path / name, [text.encode() + b"\n"])

    def write_rows(self, name: str, schema: str, rows: Iterable[Mapping[str, Any]]) -> None:
        replace_file(self.path / name, (line(schema, row) for row in rows))

    def add_submission(self, task: Task, submission: Submission) -> None:
        self._add(SUBMISSIONS, (task.index, submission.attempt), [line("submission", submission_row(submission))])

    def add_judgements(self, task: Task, attempt: int, judgements: Sequence[Judgement]) -> None:
        """The rows of one attempt, in the order of repeats and units."""
        rows = sorted(judgements, key=row_order)
        self._add(JUDGEMENTS, (task.index, attempt), [line("judgement", judgement_row(row)) for row in rows])

    def finish_rows(self) -> None:
        """Put the streamed rows into the order of the source."""
        for name, places in self._places.items():
            part = self._part(name)
            part.flush()
            with self._part_path(name).open("rb") as source:
                replace_file(self.path / name, _blocks(source, sorted(places)))

    def _add(self, name: str, order: tuple[int, ...], lines: Sequence[bytes]) -> None:
        part, block = self._part(name), b"".join(lines)
        self._places[name].append((order, part.tell(), len(block)))
        part.write(block)

    def _part(self, name: str) -> IO[bytes]:
        if name not in self._parts:
            self._parts[name] = self._part_path(name).open("wb")
        return self._parts[name]

    def _part_path(self, name: str) -> Path:
        return self.path / f"{name}.part"


def _blocks(source: IO[bytes], places: Iterable[tuple[tuple[int, ...], int, int]]) -> Iterator[bytes]:
    for _, start, length in places:
        source.seek(start)
        yield source.read(length)


def _lock(path: Path) -> IO[str]:
    """Held until closed or until the process dies, however it dies."""
    file = (path / ".lock").open("a+", encoding="utf-8")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        file.seek(0)
        holder = file.read().strip() or "another process"
        file.close()
        raise InputError(
            f"the folder is in use by {holder}", where=str(path), expected="another out=, or to wait for it"
        ) from None
    file.truncate(0)
    file.write(f"process {os.getpid()}")
    file.flush()
    return file


def line(schema: str, row: Mapping[str, Any]) -> bytes:
    """One row of a JSON Lines file: UTF-8, no NaN, numbers unrounded, one line to every reader."""
    text = json.dumps({"schema": SCHEMAS[schema], **row}, ensure_ascii=False, allow_nan=False)
    return text.translate(_LINE_ENDS).encode("utf-8", "surrogatepass") + b"\n"


def replace_file(path: Path, blocks: Iterable[bytes]) -> None:
    """Write beside, then put in place: a reader sees the old file or the new one."""
    beside = path.with_name(f"{path.name}.tmp")
    with beside.open("wb") as file:
        for block in blocks:
            file.write(block)
    beside.replace(path)


def read_json(path: Path) -> dict[str, Any] | None:
    """A JSON object from a file; None when there is no file."""
    try:
        if path.exists() and not path.is_file():  # a pipe would be waited for
            raise InputError("can't be read: not a file", where=str(path))
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"can't be read: {error}", where=str(path)) from None
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:  # not JSON, or nested beyond reading
        raise InputError(f"not JSON: {error}", where=str(path)) from None
    if not isinstance(content, dict):
        raise InputError("not a JSON object", where=str(path))
    return content


def row_order(row: Judgement) -> tuple[int, list[tuple[int, int, str]]]:
    """Repeat, then unit, numbers inside a unit's name by their value."""
    parts = re.split(r"(\d+)", row.unit)
    return row.repeat, [(1, int(part), part) if part.isdecimal() else (0, 0, part) for part in parts]


def task_row(task: Task) -> dict[str, Any]:
    return task.model_dump(mode="json")


def submission_row(submission: Submission) -> dict[str, Any]:
    return submission.model_dump(mode="json")


def judgement_row(judgement: Judgement) -> dict[str, Any]:
    """Verdict and error are always written; what else is unknown is left out."""
    row = judgement.model_dump(mode="json", exclude_none=True)
    return {
        "task_id": judgement.task_id,
        "attempt": judgement.attempt,
        "unit": judgement.unit,
        "repeat": judgement.repeat,
        "verdict": row.get("verdict"),
        "error": row.get("error"),
        "judge": judgement.judge,
        "explanation": judgement.explanation,
        **row,
    }


def score_row(score: TaskScore) -> dict[str, Any]:
    return score.model_dump(mode="json")
