"""`core.audit convergence FILE`: did the construction of tasks come to rest?

A task's `snapshots` hold its graph after each round. The paper (arXiv 2608.02163) stops when the graph has not
changed for two rounds, G(t) = G(t−1) = G(t−2) as sets of nodes and edges. That compares names; so the same is done
by content: the types, steps and checkpoints of nodes, and edges between contents, whatever the ids are.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from core.audit import Cell, Report, Table
from core.errors import InputError
from plugins.dag_rubric.audits.reading import task_rows
from plugins.dag_rubric.rubric import parent_of

#: Rounds in a row whose graphs must be equal.
RESTS: Final = 3
#: What is counted of a graph.
KINDS: Final = ("nodes", "edges", "checkpoints")

Content = tuple[str, str, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A graph as sets: by ids, and by content (sorted, since two nodes may have the same)."""

    nodes: frozenset[str]
    edges: frozenset[tuple[str, str]]
    checkpoints: frozenset[str]
    content: tuple[tuple[Content, ...], tuple[tuple[Content, Content], ...]]

    @classmethod
    def of_nodes(cls, nodes: Sequence[Mapping[str, Any]]) -> Snapshot:
        contents = {node["id"]: _content(node) for node in nodes}
        edges = [(parent_of(parent)[0], node["id"]) for node in nodes for parent in node["parents"]]
        return cls(
            frozenset(contents),
            frozenset(edges),
            frozenset(found["id"] for node in nodes for found in node["checkpoints"]),
            (
                tuple(sorted(contents.values())),
                tuple(sorted((contents[parent], contents[child]) for parent, child in edges)),
            ),
        )

    def same_ids(self, other: Snapshot) -> bool:
        """Equal as the paper means it: sets of nodes and edges."""
        return (self.nodes, self.edges) == (other.nodes, other.edges)


def _content(node: Mapping[str, Any]) -> Content:
    texts = tuple(sorted(_plain(checkpoint["text"]) for checkpoint in node["checkpoints"]))
    return node["type"], _plain(node.get("step") or ""), texts


def _plain(text: str) -> str:
    return " ".join(text.split()).casefold()


def replay(snapshots: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """What each round added and took away, the last that changed anything, and whether the graph came to rest."""
    graphs = [Snapshot.of_nodes(snapshot["nodes"]) for snapshot in snapshots]
    rounds: list[dict[str, Any]] = []
    for number, (snapshot, graph) in enumerate(zip(snapshots, graphs, strict=True)):
        before = graphs[number - 1] if number else Snapshot.of_nodes([])
        entry: dict[str, Any] = {"round": snapshot["round"]}
        for kind in KINDS:
            now, then = getattr(graph, kind), getattr(before, kind)
            entry |= {kind: len(now), f"{kind}_added": len(now - then), f"{kind}_removed": len(then - now)}
        entry["changed_by_ids"] = not graph.same_ids(before)
        entry["changed_by_content"] = graph.content != before.content
        rounds.append(entry)
    found: dict[str, Any] = {"rounds": rounds}
    for how in ("ids", "content"):
        changed = [entry["round"] for entry in rounds if entry[f"changed_by_{how}"]]
        still = [not entry[f"changed_by_{how}"] for entry in rounds]
        found[f"last_changed_by_{how}"] = changed[-1] if changed else None
        found[f"converged_by_{how}"] = len(still) >= RESTS and all(still[1 - RESTS :])
    return found


class Convergence:
    """The rounds in which tasks were made, replayed."""

    summary = "replay the rounds in which tasks were made: growth, and whether the graph came to rest"

    def arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("file", metavar="FILE", help="a task file with snapshots, or sample")

    def run(self, words: argparse.Namespace) -> Report:
        having = {task: row for task, row in task_rows(words.file).items() if row.get("snapshots")}
        if not having:
            raise InputError("no task has snapshots", where=words.file, expected="tasks with a list `snapshots`")
        tasks = {}
        for task, row in having.items():
            found = replay(row["snapshots"])
            last = Snapshot.of_nodes(row["snapshots"][-1]["nodes"])
            found["task_is_last_round"] = last.same_ids(Snapshot.of_nodes(row["nodes"]))
            tasks[task] = found
        steps: list[list[Cell]] = [
            [
                task,
                entry["round"],
                *(_growth(entry, kind) for kind in KINDS),
                _yes(entry["changed_by_ids"]),
                _yes(entry["changed_by_content"]),
            ]
            for task, found in tasks.items()
            for entry in found["rounds"]
        ]
        ends: list[list[Cell]] = [
            [
                task,
                found["last_changed_by_ids"],
                _yes(found["converged_by_ids"]),
                found["last_changed_by_content"],
                _yes(found["converged_by_content"]),
                _yes(found["task_is_last_round"]),
            ]
            for task, found in tasks.items()
        ]
        n_converged = sum(found["converged_by_content"] for found in tasks.values())
        tables = [
            Table(
                "rounds",
                ("task", "round", *KINDS, "ids changed", "content changed"),
                steps,
            ),
            Table(
                "where it ended",
                (
                    "task",
                    "last change of ids",
                    "at rest",
                    "last change of content",
                    "at rest",
                    "task is last round",
                ),
                ends,
            ),
        ]
        note = f"{n_converged} of {len(tasks)} tasks came to rest by content: unchanged over {RESTS} rounds"
        return Report(tables, {"tasks": tasks, "n_converged_by_content": n_converged}, (note,))


def _growth(entry: Mapping[str, Any], kind: str) -> str:
    return f"{entry[kind]} (+{entry[f'{kind}_added']} −{entry[f'{kind}_removed']})"


def _yes(value: bool) -> str:  # noqa: FBT001 -- one value, and nothing else
    return "yes" if value else "no"
