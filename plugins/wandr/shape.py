"""What a task's row must look like: task.schema.json, and the refusals of rules that it can't state."""

from __future__ import annotations

import json
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from core.conform import conform, field_place
from core.errors import InputError
from core.resources import resolve
from core.strict_json import shown

if TYPE_CHECKING:
    from jsonschema.protocols import Validator

_SCHEMA: Final = "pkg://plugins.wandr/task.schema.json"


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
    """The error of a rule that the schema can't state: place, what was wanted, what came."""
    return InputError(message, where=field_place(where, field, ()), expected=expected, got=shown(got))


def _check(value: Any, validator: Validator, where: str, field: str) -> None:
    try:
        conform(value, validator, where, field=field)
    except RecursionError:
        # subtasks of subtasks without end
        raise InputError("the value is nested too deeply", where=field_place(where, field, ())) from None


@cache
def _row_validator() -> Validator:
    from jsonschema import Draft202012Validator

    return Draft202012Validator(schema())


@cache
def _node_validator() -> Validator:
    from jsonschema import Draft202012Validator

    return Draft202012Validator({"$ref": "#/$defs/node", "$defs": schema()["$defs"]})
