"""Does a value have the form that a JSON Schema gives? If not: which part, what was expected, what came.

A message's `expected` is the `description` of the schema's part that failed, so each part needs one: what a
value must look like stands in the schema and nowhere else.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from core.errors import InputError
from core.strict_json import shown

if TYPE_CHECKING:
    from jsonschema.protocols import Validator


def conform(
    value: Any,
    validator: Validator,
    place: str,
    *,
    field: str = "",
    owner: Callable[[Sequence[str | int]], str] = lambda _: "",
) -> None:
    """Raise InputError for the first part of `value` that its schema refuses, or that can't be UTF-8.

    `place` is the file and line, `field` the value's own place in it; `owner` names what a path belongs to
    (`, node "n1"`), "" where that says nothing.
    """
    for error in validator.iter_errors(value):
        path = list(error.absolute_path)
        place += owner(path)
        part: Any = error.schema
        instance: Any = error.instance
        if error.validator == "required":
            missing = next(name for name in part["required"] if name not in instance)
            where = field_place(place, field, [*path, missing])
            expected = part["properties"][missing]["description"]
            raise InputError("the field is missing", where=where, expected=expected, got="no such field")
        raise InputError(
            "the value is refused",
            where=field_place(place, field, path),
            expected=part["description"],
            got=shown(error.instance),
        )
    try:
        # what the schema knows has JSON's types by now; other columns may have any: parquet has dates
        json.dumps(value, ensure_ascii=False, default=str).encode("utf-8")
    except TypeError as error:
        raise InputError(
            "a value that JSON can't hold",
            where=field_place(place, field, []),
            expected="objects whose keys are texts",
            got=str(error),
        ) from error
    except UnicodeEncodeError as error:
        raise InputError(
            "a text holds half a character (a lone surrogate)",
            where=field_place(place, field, []),
            got=str(error),
        ) from error


def field_place(place: str, field: str, path: Iterable[str | int]) -> str:
    """`<place>, field nodes[0].checkpoints[2].text`."""
    text = field
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return f"{place}, field {text}" if text else place
