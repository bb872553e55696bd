"""The JSON Schema of a row, which is the one place that says what a row looks like."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

from core.resources import resolve


def schema() -> dict[str, Any]:
    """The JSON Schema of a row."""
    text = resolve("pkg://plugins.dag_rubric/task.schema.json").read_text(encoding="utf-8")
    loaded: dict[str, Any] = json.loads(text)
    return loaded


@cache
def properties(*fields: str) -> tuple[str, ...]:
    """The keys that a row may have; of the items of the list at these fields, if any are named."""
    whole = schema()
    part = whole
    for field in fields:
        part = part["properties"][field]
        if "$ref" in part:  # all of them lead to definitions of the same file
            part = whole["$defs"][part["$ref"].rpartition("/")[2]]
        part = part["items"]
    return tuple(part["properties"])
