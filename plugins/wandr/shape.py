"""What a task's row must look like, as task.schema.json says it, and how a refusal names the place.

A message's `expected` is the description of the schema's part that failed: the schema is the only text of the
rules that it can state. What it can't state is checked where a row is read (tree.py, tasks.py).
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from core.errors import InputError
from core.resources import resolve
from plugins.wandr.strict_json import has_half_character, shown

if TYPE_CHECKING:
    from jsonschema.protocols import Validator

_SCHEMA: Final = "pkg://plugins.wandr/task.schema.json"
_TOO_DEEP: Final = "the value is nested too deeply"


def schema() -> dict[str, Any]:
    """The JSON Schema of a row; a node's is its `$defs/node`."""
    loaded: dict[str, Any] = json.loads(resolve(_SCHEMA).read_text(encoding="utf-8"))
    return loaded


def check_row(row: Any, where: str) -> None:
    """Raises InputError for the first part of a row that the schema refuses, or that can't be UTF-8."""
    _check(row, _row_validator(), where, "")


def check_node(tree: Any, where: str, field: str) -> None:
    """The same for a node and all below it; `field` is the node's place in the row."""
    _check(tree, _node_validator(), where, field)


def refusal(message: str, *, where: str, field: str, expected: str, got: Any) -> InputError:
    """The error that a rule of ours raises: place, what was wanted, what came."""
    return InputError(message, where=_where(where, field), expected=expected, got=shown(got))


def _check(value: Any, validator: Validator, where: str, field: str) -> None:
    try:
        error = next(iter(validator.iter_errors(value)), None)
        halved = error is None and has_half_character(value)
    except RecursionError:
        raise InputError(_TOO_DEEP, where=_where(where, field)) from None
    if halved:
        raise InputError(
            "a text holds half a character (a lone surrogate)",
            where=_where(where, field),
            expected="texts that can be written as UTF-8",
        )
    if error is None:
        return
    path = list(error.absolute_path)
    # a validator's schema may be true or false; ours are objects throughout
    part: Any = error.schema
    instance: Any = error.instance
    if error.validator == "required":
        missing = next(name for name in part["required"] if name not in instance)
        raise InputError(
            "the field is missing",
            where=_where(where, _joined(field, [*path, missing])),
            expected=part["properties"][missing]["description"],
            got="no such field",
        )
    raise refusal(
        "the value is refused",
        where=where,
        field=_joined(field, path),
        expected=part["description"],
        got=instance,
    )


def _joined(field: str, path: Iterable[str | int]) -> str:
    """`tree.subtasks[0].keys[1].required`."""
    text = field
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text


def _where(where: str, field: str) -> str:
    return f"{where}, field {field}" if field else where


@cache
def _row_validator() -> Validator:
    from jsonschema import Draft202012Validator

    return Draft202012Validator(schema())


@cache
def _node_validator() -> Validator:
    from jsonschema import Draft202012Validator

    whole = schema()
    return Draft202012Validator({"$ref": "#/$defs/node", "$defs": whole["$defs"], "description": "a node"})
