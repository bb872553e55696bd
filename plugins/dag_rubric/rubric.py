"""A task's rubric as the grader reads it: nodes, their checkpoints, and the graph they make."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from core.model import Task
from plugins.dag_rubric.graph import Graph

UNIT_PREFIX: Final = "checkpoint/"
EVIDENTIAL: Final = "evidential"
ANALYTICAL: Final = "analytical"
TYPES: Final = (EVIDENTIAL, ANALYTICAL)
#: The type of an edge that is given by its parent's id alone.
USUAL_EDGE: Final = "strong"


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """One claim that an answer should bear out. Its id is unique within its task only."""

    id: str
    text: str

    @property
    def unit(self) -> str:
        """The name of its verdict in a file of judgements."""
        return UNIT_PREFIX + self.id


@dataclass(frozen=True, slots=True)
class Node:
    """One step of the research: `evidential` (finds facts) or `analytical` (reasons over them).

    `edges` is the type of the edge from each parent, in the order of Graph.parents. `weight` is the task's own,
    None where the task has none. `critical` serves the aggregation `critical_gate`.
    """

    id: str
    type: str
    step: str
    edges: tuple[str, ...]
    checkpoints: tuple[Checkpoint, ...]
    weight: float | None
    critical: bool


@dataclass(frozen=True)
class Rubric:
    """The nodes of a task, in the order in which they are listed: node numbers of the graph."""

    nodes: tuple[Node, ...]
    graph: Graph

    @classmethod
    def of(cls, task: Task) -> Rubric:
        """The rubric of a task that the loader made."""
        return cls.of_nodes(task.payload["nodes"])

    @classmethod
    def of_nodes(cls, listed: Sequence[Mapping[str, Any]]) -> Rubric:
        """From nodes in the task format, already checked (tasks.py)."""
        parents = {node["id"]: [parent_of(parent) for parent in node["parents"]] for node in listed}
        graph = Graph.of({name: [parent for parent, _ in found] for name, found in parents.items()})
        nodes = tuple(
            Node(
                id=node["id"],
                type=node["type"],
                step=node.get("step") or "",
                edges=tuple(edge for _, edge in parents[node["id"]]),
                checkpoints=tuple(Checkpoint(found["id"], found["text"]) for found in node["checkpoints"]),
                weight=node.get("weight"),
                critical=bool(node.get("critical")),
            )
            for node in listed
        )
        return cls(nodes, graph)

    @cached_property
    def checkpoints(self) -> tuple[Checkpoint, ...]:
        """All checkpoints, node by node."""
        return tuple(checkpoint for node in self.nodes for checkpoint in node.checkpoints)

    @cached_property
    def by_unit(self) -> Mapping[str, Checkpoint]:
        """The checkpoints by the name of their unit."""
        return {checkpoint.unit: checkpoint for checkpoint in self.checkpoints}

    @cached_property
    def own_weights(self) -> tuple[float, ...] | None:
        """The task's own weights by node number; None where it has none."""
        found = [node.weight for node in self.nodes if node.weight is not None]
        return tuple(found) if len(found) == len(self.nodes) else None


def parent_of(listed: Any) -> tuple[str, str]:
    """(id, type of edge) of an entry in a node's `parents`: an id, or an object with id and edge."""
    if isinstance(listed, str):
        return listed, USUAL_EDGE
    return listed["id"], listed.get("edge") or USUAL_EDGE
