"""What the WANDR tests share: small trees in plain form, rows of a submission, the given tasks."""

from __future__ import annotations

import gzip
import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from core.model import Submission, Task
from plugins.wandr.model import Node
from plugins.wandr.tasks import WandrTasks, tasks_of
from plugins.wandr.tree import node_from

SHARED = Path(__file__).parents[3] / "shared" / "data" / "wandr"
GIVEN = SHARED / "tasks.jsonl.gz"

needs_given = pytest.mark.skipif(not GIVEN.is_file(), reason="the WANDR tasks are not beside the repository")

Plain = dict[str, Any]


def key(name: str, required: Any = 1, **changes: Any) -> Plain:
    """A key in plain form; its one field has its name unless `fields` says otherwise."""
    found = {"name": name, "fields": [name], "required": required, **changes}
    return {part: value for part, value in found.items() if value is not ...}


def node(name: str, *keys: Plain, **changes: Any) -> Plain:
    """A node in plain form; without keys it has `city(2)` and `url(1)`."""
    found = {
        "name": name,
        "text": f"Find what {name} asks for.",
        "keys": list(keys) or [key("city", 2), key("url")],
        "judge": {},
        **changes,
    }
    return {part: value for part, value in found.items() if value is not ...}


def sites() -> Plain:
    """country(3) → city(2) → url(1), with heritage sites below the cities and visits below those."""
    visits = node("trip.sites.visits", key("site"), key("visit", 2), key("url"))
    below = node("trip.sites", key("city"), key("site", 2), key("url"), subtasks=[visits])
    return node("trip", key("country", 3), key("city", 2), key("url"), subtasks=[below])


def row(tree: Plain | None = None, **changes: Any) -> Plain:
    """A valid line of a task file."""
    found = {"id": "t1", "instruction": "Find cities.", "labels": {}, "tree": tree or node("t1"), **changes}
    return {part: value for part, value in found.items() if value is not ...}


def root_of(tree: Plain) -> Node:
    return node_from(tree, "made in a test")


def task_of(tree: Plain | None = None, *, delivery: Any = "fence", **changes: Any) -> Task:
    """One checked task."""
    return tasks_of([("made in a test", row(tree, **changes))], where="made in a test", delivery=delivery)[0]


def record(**changes: Any) -> Plain:
    """A well-formed row for a node with the key `city`; `...` leaves a part out."""
    found = {
        "item": {"city": "Ghent"},
        "url": "https://example.org/ghent",
        "excerpts": ["Ghent is a city."],
        "answer": {"founded": "630"},
        **changes,
    }
    return {part: value for part, value in found.items() if value is not ...}


def jsonl(*rows: Any) -> str:
    """Rows as the text of a file; a text stands for itself."""
    return "".join(f"{each if isinstance(each, str) else json.dumps(each, ensure_ascii=False)}\n" for each in rows)


def submission(text: str | None = None, **changes: Any) -> Submission:
    return Submission(task_id=changes.pop("task_id", "t1"), text=text, **changes)


def write_tasks(path: Path, *rows: Any) -> Path:
    """A task file."""
    path.write_text(jsonl(*rows), encoding="utf-8")
    return path


@cache
def given_rows() -> tuple[Plain, ...]:
    with gzip.open(GIVEN, "rt", encoding="utf-8") as file:
        return tuple(json.loads(line) for line in file)


@cache
def given_tasks() -> tuple[Task, ...]:
    return tuple(WandrTasks({"source": str(GIVEN)}).load())
