"""Submission lines: reading them strictly, and telling where they came from.

`read_line` is the one reader of the form that submissions.jsonl, a command's answer and the files of
other runs share. What is wrong is raised as `BadRowError`, which knows the field; whoever reads adds the file
and the line, or the name of the program.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any, Final

from pydantic import ValidationError
from pydantic_core import ErrorDetails, from_json

from core.errors import TABLE, CallError
from core.model import Failure, Submission, SubmissionStatus

#: How much of a value an error shows.
SHOWN: Final = 80

_EXPECTED: Final[Mapping[str, str]] = {
    "missing": "the field",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "finite_number": "a finite number",
    "string_type": "a text",
    "dict_type": "an object",
    "mapping_type": "an object",
    "model_type": "an object",
    "tuple_type": "a list",
}

#: Fields for which a null, as tables write it, says the same as their absence.
_MAY_BE_NULL: Final = ("files", "citations", "settings")
#: Kinds that only the engine can know of; a system that names one is not believed.
_ENGINES_OWN: Final = frozenset({"budget", "interrupted", "maybe_billed", "not_recorded"})


class BadRowError(ValueError):
    """A line that is not a submission. `field` is the field at fault, None for the whole line."""

    def __init__(self, message: str, *, at: str | None = None, expected: str, got: str | None = None) -> None:
        self.message, self.field, self.expected, self.got = message, at, expected, got
        text = f"field {at}: {message}" if at else message
        super().__init__(f"{text}; expected {expected}" + (f"; got {got}" if got is not None else ""))


def read_line(line: bytes, given: Mapping[str, Any] | None = None) -> Submission:
    """The submission in one JSON line; `given` holds fields that the line may leave out.

    Unknown fields are ignored. Raises BadRowError: not UTF-8 or not JSON (NaN and lone surrogates are not),
    not an object, a field that is missing, of the wrong type or out of range, a file name that leaves
    the folder.
    """
    try:
        value = from_json(line, allow_inf_nan=False)
    except ValueError as error:
        raise BadRowError(f"invalid JSON: {error}", expected="one JSON object a line", got=_short(line)) from None
    if not isinstance(value, dict):
        raise BadRowError("not an object", expected="one JSON object a line", got=_short(line))
    nothing = [name for name in _MAY_BE_NULL if name in value and value[name] is None]
    if nothing or (given and any(key not in value for key in given)):
        value = {**(given or {}), **{name: item for name, item in value.items() if name not in nothing}}
        line = json.dumps(value).encode()
    try:
        # strict, and from JSON: "1", 1.0 and true are no attempt numbers, and a list is a tuple
        submission = Submission.model_validate_json(line, strict=True)
        json.dumps(submission.settings, allow_nan=False)  # 1e999 is JSON and reads as infinity
    except ValidationError as error:
        raise _bad_field(error.errors(include_url=False)[0]) from None
    except ValueError as error:
        raise BadRowError(str(error), at="settings", expected="finite numbers") from None
    check_file_names(submission.files)
    if submission.status == "completed" and submission.text is None and "files" not in value:
        raise BadRowError("a completed submission without an answer", expected="a field `text` or `files`")
    return submission


def check_file_names(names: Iterable[str]) -> None:
    """Raises BadRowError for a name that is not a relative path inside its folder."""
    for name in names:
        path = PurePosixPath(name)
        unusable = not name or "\\" in name or "\0" in name or str(path) == "."
        if unusable or path.is_absolute() or ".." in path.parts:
            raise BadRowError(
                "a file's name leaves its folder" if not unusable else "not a usable file name",
                at="files",
                expected="a relative path with / and without ..",
                got=repr(name[:SHOWN]),
            )


def _bad_field(error: ErrorDetails) -> BadRowError:
    expected = _EXPECTED.get(error["type"]) or error["msg"].removeprefix("Input should be ")
    missing = error["type"] == "missing"
    got = None if missing else _short(json.dumps(error["input"], ensure_ascii=False, default=str).encode())
    place = ".".join(str(part) for part in error["loc"]) or None
    return BadRowError("missing" if missing else "not usable", at=place, expected=expected, got=got)


def _short(line: bytes) -> str:
    text = line.decode("utf-8", "replace").strip()
    return text if len(text) <= SHOWN else text[: SHOWN - 1] + "…"


@dataclass(frozen=True, slots=True)
class Origin:
    """Where an adapter's submissions come from: what it writes into each."""

    system: str
    effort: str | None
    settings: Mapping[str, Any] = field(default_factory=dict)

    def own(self, row: Submission, latency_s: float) -> Submission:
        """A submission as the system under test gave it, with what the adapter knows filled in.

        The system's own `settings` stand under `reported`: it can't rename itself. A submission whose
        status is `error` is raised as the CallError it describes, so that the engine retries, waits or
        stops as for every other system.
        """
        if row.status == "error":
            kind = row.error.kind if row.error else "crash"
            message = row.error.message if row.error else "the system reported an error without a reason"
            if kind not in TABLE or kind in _ENGINES_OWN:
                kind, message = "crash", f"{kind}: {message}"
            raise CallError(kind, message, usage=row.usage, cost_usd=row.cost_usd)
        settings = {**self.settings, "reported": row.settings} if row.settings else self.settings
        source = row.cost_source or ("unknown" if row.cost_usd is None else "reported")
        update = {
            "system": self.system,
            "effort": self.effort,
            "settings": settings,
            "cost_source": source,
            "latency_s": latency_s if row.latency_s is None else row.latency_s,
        }
        return row.model_copy(update=update).settled()

    def ended(
        self, task_id: str, attempt: int, status: SubmissionStatus, message: str, latency_s: float
    ) -> Submission:
        """A submission without an answer: the system's own end, with its reason."""
        return Submission(
            task_id=task_id,
            attempt=attempt,
            status=status,
            latency_s=latency_s,
            cost_source="unknown",
            error=Failure(kind=status, message=message),
            system=self.system,
            effort=self.effort,
            settings=self.settings,
        )
