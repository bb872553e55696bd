"""A judge that reads its verdicts from a file of judgements (docs/files.md), and asks nobody."""

from __future__ import annotations

import gzip
import json
import sys
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import IO, Any, Final

from core.errors import InputError, place
from core.judge.options import JudgeOptions
from core.judge.question import Answer, Question, RecordedVerdict
from core.model import Failure
from core.services import Services

_NOT_RECORDED: Final = Failure(kind="not_recorded", message="the file has no verdict on this unit")
_NULL: Final = Failure(kind="not_recorded", message="the recorded verdict is null")

#: Task, attempt, unit, repeat.
Key = tuple[str, int, str, int]
#: Task, attempt, unit, repeat, verdict, line.
RecordedRow = tuple[str, int, str, int, Mapping[str, Any] | None, int]


class RecordedJudge:
    """Verdicts out of `judge.path`, `.jsonl` or `.jsonl.gz`; what is not in it is missing.

    The file is read whole when it is first needed; every line that does not fit is refused with its place.
    """

    stored = False
    recorded = True
    settings: Mapping[str, Any] = {"provider": "recorded"}

    def __init__(self, config: Mapping[str, Any], services: Services) -> None:  # noqa: ARG002  # a factory's form
        options = JudgeOptions.of(config)
        if not options.path:
            raise InputError("no file is named", where="judge.path", expected="a file of judgements (.jsonl, .gz)")
        self.name = options.name
        self.path = Path(options.path).expanduser()

    def check(self) -> list[str]:
        """What is missing before a run can start."""
        return [] if self.path.is_file() else [f"judge.path: there is no file {self.path}"]

    async def ask(self, question: Question) -> Answer:
        """The recorded verdicts of the question's units."""
        found = self._verdicts
        verdicts = {
            unit: found[key][0]
            if (key := (question.task_id, question.attempt, unit, question.repeat)) in found
            else RecordedVerdict(None, _NOT_RECORDED, absent=True)
            for unit in question.units
        }
        return Answer(verdicts=verdicts, judge=self.name, calls=0)

    @property
    def highest_repeat(self) -> int | None:
        """The highest repeat in the file; None for an empty one, which does not say."""
        return max((key[3] for key in self._verdicts), default=None)

    def rows(self) -> Iterator[RecordedRow]:
        """Every row with its line, from 1, in the file's order."""
        for (task_id, attempt, unit, repeat), (verdict, line) in self._verdicts.items():
            yield task_id, attempt, unit, repeat, verdict.verdict, line

    @cached_property
    def _verdicts(self) -> dict[Key, tuple[RecordedVerdict, int]]:
        return read_judgements(self.path)


def read_judgements(path: Path) -> dict[Key, tuple[RecordedVerdict, int]]:
    """Every verdict of a file, with its line; raises InputError for the first line that does not fit."""
    found: dict[Key, tuple[RecordedVerdict, int]] = {}
    shared: dict[str, Mapping[str, Any]] = {}
    number = 0
    try:
        with _open(path) as file:
            for number, line in enumerate(file, 1):
                if not line.strip():
                    continue
                key, verdict = _row(line, place(path, number), shared)
                if key in found:
                    raise InputError(
                        f"the verdict on task {key[0]!r}, attempt {key[1]}, unit {key[2]!r}, repeat {key[3]} "
                        f"stands twice, first in line {found[key][1]}",
                        where=place(path, number),
                        expected="one row for each task, attempt, unit and repeat",
                    )
                found[key] = (verdict, number)
    except (OSError, EOFError) as error:
        raise InputError(f"can't be read: {error}", where=str(path)) from error
    except UnicodeDecodeError as error:
        raise InputError("not UTF-8", where=place(path, number + 1), expected="a text file") from error
    return found


def _open(path: Path) -> IO[str]:
    if path.suffix == ".gz":
        return gzip.open(path, "rt", encoding="utf-8-sig")
    return path.open(encoding="utf-8-sig")


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


_DECODER: Final = json.JSONDecoder(parse_constant=_no_constant)


def _row(line: str, where: str, shared: dict[str, Mapping[str, Any]]) -> tuple[Key, RecordedVerdict]:
    try:
        row = _DECODER.decode(line)
    except (ValueError, RecursionError) as error:
        raise InputError(f"not JSON: {error}", where=where, expected="one JSON object a line") from error
    if not isinstance(row, dict):
        raise InputError("not an object", where=where, expected="one JSON object a line", got=_short(row))
    for name in ("task_id", "unit"):
        if not isinstance(row.get(name), str) or not row[name]:
            raise _wrong(row, name, where, "a text")
    for name in ("attempt", "repeat"):
        value = row.setdefault(name, 1)
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise _wrong(row, name, where, "a whole number from 1")
    if "verdict" not in row or not isinstance(row["verdict"], (dict, type(None))):
        raise _wrong(row, "verdict", where, "an object or null")
    for name in ("judge", "explanation"):
        if not isinstance(row.get(name), (str, type(None))):
            raise _wrong(row, name, where, "a text or null")
    # ids, units and verdicts recur thousands of times; one object each keeps the memory flat
    key = (sys.intern(row["task_id"]), row["attempt"], sys.intern(row["unit"]), row["repeat"])
    given = row["verdict"]
    verdict = None if given is None else shared.setdefault(repr(given), given)
    judge = sys.intern(row["judge"]) if row.get("judge") else None
    failure = _failure(row, where) if verdict is None else None
    for name in ("prompt_digest", "judged_at"):
        if not isinstance(row.get(name), (str, type(None))):
            raise _wrong(row, name, where, "a text or null")
    cost = row.get("cost_usd")
    if isinstance(cost, bool) or not isinstance(cost, (int, float, type(None))):
        raise _wrong(row, "cost_usd", where, "a number or null")
    return key, RecordedVerdict(
        verdict,
        failure,
        row.get("explanation"),
        judge,
        row.get("prompt_digest"),
        sys.intern(row["judged_at"]) if row.get("judged_at") else None,
        cost,
    )


def _failure(row: Mapping[str, Any], where: str) -> Failure:
    """Why a verdict is null, as the file says."""
    error = row.get("error")
    if error is None:
        return _NULL
    if not isinstance(error, dict) or not isinstance(error.get("kind"), str):
        raise _wrong(row, "error", where, "null or an object with kind and message")
    return Failure(kind=error["kind"], message=str(error.get("message") or ""))


def _wrong(row: Mapping[str, Any], name: str, where: str, expected: str) -> InputError:
    got = _short(row[name]) if name in row else "nothing: the field is missing"
    return InputError("not a judgement", where=place(where, field=name), expected=expected, got=got)


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."
