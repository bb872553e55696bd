"""A run folder as a report reads it: the summary and scores at once, everything else by task when it is shown.

Answers and judgements may be many times what a page can hold. Their files are read once for where each task's
rows stand; a task's rows are read again when its turn comes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, ValidationError

from core.errors import InputError, place
from core.model import Judgement, Submission, Summary, Task, TaskScore
from core.runfolder import JUDGEMENTS, RUN, SCHEMAS, SCORES, SUBMISSIONS, SUMMARY, TASKS, RunFile, read_json

Model = TypeVar("Model", bound=BaseModel)


class Rows(Generic[Model]):
    """The rows of one file by task. `is_there` is False where the folder lacks the file: it then has no rows."""

    def __init__(self, path: Path, model: type[Model], schema: str, key: str = "task_id") -> None:
        self._path, self._model, self._schema = path, model, schema
        self._places: dict[str, list[tuple[int, int]]] = {}
        self.is_there = path.is_file()
        if self.is_there:
            with path.open("rb") as file:
                for number, line in enumerate(file, start=1):
                    row = _row(line, schema, place(path, number))
                    self._places.setdefault(str(row.get(key)), []).append((number, file.tell() - len(line)))

    def of(self, task_id: str) -> list[Model]:
        """The task's rows, in the order of the file. Raises InputError naming the line."""
        found: list[Model] = []
        places = self._places.get(task_id)
        if not places:
            return found
        with self._path.open("rb") as file:
            for number, offset in places:
                file.seek(offset)
                where = place(self._path, number)
                found.append(_checked(self._model, _row(file.readline(), self._schema, where), where))
        return found


@dataclass(frozen=True)
class Folder:
    """A run that has ended. `scores` stand in the order of the source."""

    path: Path
    run: RunFile
    summary: Summary
    scores: tuple[TaskScore, ...]
    tasks: Rows[Task]
    submissions: Rows[Submission]
    judgements: Rows[Judgement]

    @property
    def headline(self) -> str:
        """The name of the metric that the benchmark is known by."""
        benchmark = (self.run.config or {}).get("benchmark")
        return str(benchmark.get("headline")) if isinstance(benchmark, Mapping) else ""

    @property
    def absent(self) -> tuple[str, ...]:
        """The files that the folder lacks and a report can do without."""
        files = {TASKS: self.tasks.is_there, SUBMISSIONS: self.submissions.is_there,
                 JUDGEMENTS: self.judgements.is_there}  # fmt: skip
        return tuple(name for name, is_there in files.items() if not is_there)


def read(path: Path) -> Folder:
    """Read a run folder; raises InputError where run.json, summary.json or scores.jsonl is not there or not ours.

    Rows of the other files are checked when a task is read.
    """
    run = _document(path / RUN, "run", RunFile)
    if run.refused:
        raise InputError(f"the run was refused: {run.refused}", where=str(path))
    summary = _document(path / SUMMARY, "summary", Summary)
    if not (path / SCORES).is_file():
        raise InputError(f"there is no {SCORES}: the run has no scores", where=str(path))
    with (path / SCORES).open("rb") as file:
        lines = [(place(path / SCORES, number), line) for number, line in enumerate(file, start=1)]
    return Folder(
        path=path,
        run=run,
        summary=summary,
        scores=tuple(_checked(TaskScore, _row(line, "score", where), where) for where, line in lines),
        tasks=Rows(path / TASKS, Task, "task", key="id"),
        submissions=Rows(path / SUBMISSIONS, Submission, "submission"),
        judgements=Rows(path / JUDGEMENTS, Judgement, "judgement"),
    )


def _document(path: Path, schema: str, model: type[Model]) -> Model:
    content = read_json(path)
    if content is None:
        raise InputError(
            f"there is no {path.name}", where=str(path.parent), expected="the folder of a run that ended"
        )
    return _checked(model, _versioned(content, schema, str(path)), str(path))


def _row(line: bytes, schema: str, where: str) -> Mapping[str, Any]:
    try:
        row = json.loads(str(line, "utf-8", "surrogatepass"))
    except (ValueError, RecursionError) as error:
        raise InputError(f"not JSON: {error}", where=where) from None
    if not isinstance(row, dict):
        raise InputError("not a JSON object", where=where)
    return _versioned(row, schema, where)


def _versioned(row: dict[str, Any], schema: str, where: str) -> dict[str, Any]:
    version = row.pop("schema", None)
    if version != SCHEMAS[schema]:
        raise InputError("of another version", where=where, expected=SCHEMAS[schema], got=str(version))
    return row


def _checked(model: type[Model], row: Mapping[str, Any], where: str) -> Model:
    """The row as its model has it; fields that a newer version added are passed over."""
    try:
        return model.model_validate({name: row[name] for name in model.model_fields if name in row})
    except ValidationError as error:
        reason = str(error).replace("\n", "; ")
        raise InputError(f"not what a run writes: {reason}", where=where) from None
