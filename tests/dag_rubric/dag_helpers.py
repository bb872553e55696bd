"""What the DAG rubric tests share: small graphs, rows of a task file, rows of judgements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from core.model import Failure, Judgement, Submission, Task
from plugins.dag_rubric.graph import Graph
from plugins.dag_rubric.settings import Settings
from plugins.dag_rubric.tasks import tasks_of

Parents = Mapping[str, Sequence[Any]]

#: The example of docs/dag_rubric.md: leaves a5 and a6.
EXAMPLE: Parents = {"e1": [], "e2": [], "e3": [], "a4": ["e1", "e2"], "a5": ["e2", "e3"], "a6": ["a4", "e2"]}
#: Its checkpoints by node.
SIZES = {"e1": 4, "e2": 5, "e3": 4, "a4": 5, "a5": 3, "a6": 4}


def graph_of(parents: Parents) -> Graph:
    return Graph.of({name: list(found) for name, found in parents.items()})


def node(name: str, parents: Any = (), n: int = 1, **changes: Any) -> dict[str, Any]:
    """A node with `n` checkpoints `<name>.c1`, …; a change to `...` takes a field out."""
    found = {
        "id": name,
        "type": "evidential" if name.startswith("e") else "analytical",
        "step": f"Step {name}",
        "parents": parents if parents is ... else list(parents),
        "checkpoints": [
            {"id": f"{name}.c{place}", "text": f"States fact {place} of {name}"} for place in range(1, n + 1)
        ],
        **changes,
    }
    return {key: value for key, value in found.items() if value is not ...}


def row(parents: Parents = EXAMPLE, sizes: Mapping[str, int] | None = None, **changes: Any) -> dict[str, Any]:
    """A valid row of a task file."""
    counts = sizes if sizes is not None else (SIZES if parents is EXAMPLE else {})
    found = {
        "id": "t1",
        "queries": {"with_hints": "What is $so{?"},
        "nodes": [node(name, above, counts.get(name, 1)) for name, above in parents.items()],
        **changes,
    }
    return {key: value for key, value in found.items() if value is not ...}


def task_of(parents: Parents = EXAMPLE, **changes: Any) -> Task:
    """One checked task with this graph."""
    return task_from(row(parents, **changes))


def task_from(given: Mapping[str, Any], **config: Any) -> Task:
    return tasks_of([("made in a test", given)], Settings.of(config), where="made in a test")[0]


def passed(task: Task, counts: Mapping[str, int | None], *, repeat: int = 1) -> list[Judgement]:
    """Rows in which the first so many checkpoints of each node are met; None: all of the node's are missing."""
    rows = []
    for listed in task.payload["nodes"]:
        count = counts[listed["id"]]
        for place, checkpoint in enumerate(listed["checkpoints"]):
            met = None if count is None else place < count
            rows.append(judgement(task, checkpoint["id"], met, repeat=repeat))
    return rows


def judgement(task: Task, checkpoint: str, met: bool | None, *, repeat: int = 1) -> Judgement:
    return Judgement(
        task_id=task.id,
        repeat=repeat,
        unit=f"checkpoint/{checkpoint}",
        verdict=None if met is None else {"met": met},
        error=Failure(kind="malformed") if met is None else None,
        judge="fake",
    )


def submission(text: str | None = "An answer.", **changes: Any) -> Submission:
    return Submission(task_id=changes.pop("task_id", "t1"), text=text, **changes)
