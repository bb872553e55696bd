"""system=replay: answers that stand in a file, from an earlier run or from anywhere else.

    python -m core.run benchmark=draco system=replay system.path=runs/…/submissions.jsonl

The file has the form of a run's submissions.jsonl (docs/files.md): one JSON object a line, `.jsonl` or
`.jsonl.gz`. It is read whole before anything is sent and refused at its first fault. A plain file is
then kept as an index of byte offsets and each line is read when its task is scheduled, so that memory
does not grow with the answers; a compressed one has no offsets and is held.
"""

from __future__ import annotations

import codecs
import gzip
import zlib
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final

from adapters._rows import BadRowError, read_line
from core.errors import CallError, InputError, place
from core.model import Submission, Task
from core.resources import resolve
from core.section import Section
from core.services import Services

_SUFFIXES: Final = (".jsonl", ".jsonl.gz")


@dataclass(frozen=True, slots=True)
class _Line:
    """Where a submission stands: its line from 1, its bytes in a plain file or the row of a packed one."""

    number: int
    start: int = 0
    length: int = 0
    row: Submission | None = None


class Replay:
    """The submissions of one file, as a system. They are read from the file each time, never stored."""

    stored: Final = False
    estimate_usd: Final = 0.0

    def __init__(self, path: Path, effort: str | None = None) -> None:
        self.settings: Mapping[str, Any] = {}
        self._path, self._effort = path, effort
        self._efforts: set[str] = set()
        self._lines: dict[tuple[str, int], _Line] | None = None

    def check(self) -> list[str]:
        """Whether the file is there; raises InputError (file, line, field) when its content is unusable."""
        if not self._path.is_file():
            return [f"system.path: there is no file {self._path}"]
        self._index()
        if self._effort is not None and self._efforts and self._effort not in self._efforts:
            raise InputError(
                f"no line of {self._path} has the effort {self._effort!r}",
                where="effort",
                expected=f"one of {', '.join(sorted(self._efforts))}, or none at all",
            )
        return []

    def check_tasks(self, ids: Collection[str]) -> None:
        """Raises InputError for the first line about a task that the source does not have."""
        known = set(ids)
        unknown = [(line.number, task_id) for (task_id, _), line in self._index().items() if task_id not in known]
        if not unknown:
            return
        number, task_id = unknown[0]
        close = get_close_matches(task_id, known, n=1, cutoff=0.0)
        others = f" ({len(unknown)} lines have unknown ids)" if len(unknown) > 1 else ""
        raise InputError(
            f"the source has no task {task_id!r}{others}",
            where=self._where(number, "task_id"),
            expected="an id of the benchmark's source" + (f"; the closest is {close[0]!r}" if close else ""),
        )

    async def solve(self, task: Task, attempt: int) -> Submission:
        """The file's line for this attempt, as it stands there."""
        line = self._index().get((task.id, attempt))
        if line is None:
            raise CallError("not_recorded", f"{self._path} has no line for task {task.id!r}, attempt {attempt}")
        return line.row if line.row is not None else self._read(line, task.id, attempt)

    def _where(self, number: int, field: str | None = None) -> str:
        return place(self._path, number, field)

    def _index(self) -> dict[tuple[str, int], _Line]:
        if self._lines is None:
            self._lines = self._read_all()
        return self._lines

    def _read_all(self) -> dict[tuple[str, int], _Line]:
        packed = self._path.name.endswith(".gz")
        found: dict[tuple[str, int], _Line] = {}
        for number, start, raw in self._raw_lines(packed=packed):
            if not raw.strip():
                continue
            try:
                row = read_line(raw)
            except BadRowError as bad:
                where = self._where(number, bad.field)
                raise InputError(bad.message, where=where, expected=bad.expected, got=bad.got) from None
            if row.effort:
                self._efforts.add(row.effort)
            key = (row.task_id, row.attempt)
            if key in found:
                raise InputError(
                    f"attempt {row.attempt} of task {row.task_id!r} is given twice",
                    where=self._where(number, "attempt"),
                    expected="one line for each attempt at a task",
                    got=f"the first in line {found[key].number}",
                )
            found[key] = _Line(number, row=row) if packed else _Line(number, start, len(raw))
        return found

    def _raw_lines(self, *, packed: bool) -> Iterator[tuple[int, int, bytes]]:
        """Each line with its number from 1 and the offset of its first byte."""
        start, number = 0, 0
        try:
            with gzip.open(self._path, "rb") if packed else self._path.open("rb") as file:
                for number, raw in enumerate(file, start=1):
                    if number == 1 and raw.startswith(codecs.BOM_UTF8):
                        start, raw = len(codecs.BOM_UTF8), raw.removeprefix(codecs.BOM_UTF8)  # noqa: PLW2901
                    yield number, start, raw
                    start += len(raw)
        except (OSError, EOFError, zlib.error) as error:
            place = self._where(number + 1)
            raise InputError(f"can't be read: {error}", where=place, expected="a whole, readable file") from error

    def _read(self, line: _Line, task_id: str, attempt: int) -> Submission:
        try:
            with self._path.open("rb") as file:
                file.seek(line.start)
                row = read_line(file.read(line.length))
        except (OSError, BadRowError) as error:
            raise CallError("not_recorded", self._changed(line)) from error
        if (row.task_id, row.attempt) != (task_id, attempt):
            raise CallError("not_recorded", self._changed(line))
        return row

    def _changed(self, line: _Line) -> str:
        return f"{self._where(line.number)}: the file was changed while the run was reading it"


def replay(config: Mapping[str, Any], services: Services) -> Replay:
    """The factory. `path` is the file; it is opened by `check`, so that a preflight can list it."""
    path = resolve(Section(config).text("path", "the path of a submissions file: system.path=FILE"))
    if not path.name.endswith(_SUFFIXES):
        raise InputError("not usable", where="system.path", expected=" or ".join(_SUFFIXES), got=repr(path.name))
    return Replay(path, services.effort)
