"""Rows in the task format as tasks: every row is checked before the first task is used.

What a row must look like stands in task.schema.json and only there; what a schema can't say is checked here: ids
that repeat, parents that are no nodes, cycles, weights on some nodes only, numbers that are not finite. One row is
one task for each query form that is asked for; the forms of a row share its graph and rubric.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from core.conform import conform
from core.errors import InputError
from core.model import Task
from core.strict_json import shown
from core.taskfile import Hub, Placed, distinct, rows
from plugins.dag_rubric.graph import Cyclic
from plugins.dag_rubric.lint import counted, graph_findings
from plugins.dag_rubric.rubric import Rubric, parent_of
from plugins.dag_rubric.schema import schema
from plugins.dag_rubric.settings import ALL_FORMS, FORMS, Settings
from plugins.dag_rubric.weights import EXPLICIT

if TYPE_CHECKING:
    from datetime import date

    from jsonschema.protocols import Validator

SAMPLE: Final = "pkg://plugins.dag_rubric/sample/tasks.jsonl"


class DagTasks:
    """The task loader `dag_rubric`. Reads source, dataset, split, revision, form and transitive_reduction."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        self._source = str(config.get("source") or "sample")
        self._settings = Settings.of(config)
        dataset, revision = config.get("dataset"), config.get("revision")
        self._hub = (
            Hub(str(dataset), str(config.get("split") or "test"), None if revision is None else str(revision))
            if dataset
            else None
        )
        self._loaded: Sequence[Task] = ()

    def load(self) -> Iterator[Task]:
        """Every task of the source, in its order; raises InputError with file, line, task and node."""
        placed = rows(self._source, sample=SAMPLE, hub=self._hub, constants=True)
        self._loaded = tasks_of(placed, self._settings, where=self._source)
        return iter(self._loaded)

    def warnings(self, today: date) -> list[str]:  # noqa: ARG002 -- parts are asked with a date; tasks have none
        """What is odd about the graphs that were loaded, one line a rule; empty before `load`."""
        rubrics = {str(task.labels["task"]): Rubric.of(task) for task in self._loaded}
        return counted(
            (name, finding)
            for name, rubric in rubrics.items()
            for finding in graph_findings(rubric, *self._weighing(rubric))
        )

    def _weighing(self, rubric: Rubric) -> tuple[list[str], Fraction]:
        settings = self._settings
        # a scheme that a task has no weights for is refused by the grader, which can say why
        fits = settings.scheme != EXPLICIT or rubric.own_weights is not None
        return [settings.scheme] if fits else [], settings.gamma


def tasks_of(placed: Iterable[Placed], settings: Settings, *, where: str) -> list[Task]:
    """Checked tasks of unchecked rows; `where` names the source if it has no row."""
    tasks: list[Task] = []
    for place, row in checked_rows(placed, where=where):
        nodes = _payload_nodes(row, reduce=settings.transitive_reduction)
        forms = [form for form in FORMS if row["queries"].get(form)]
        if settings.form == ALL_FORMS:
            tasks += [
                _task(row, form, nodes, f"{row['id']}:{form}", len(tasks) + n) for n, form in enumerate(forms)
            ]
        elif settings.form in forms:
            tasks.append(_task(row, settings.form, nodes, row["id"], len(tasks)))
        else:
            raise InputError(
                f"task {row['id']!r} has no query {settings.form}",
                where=f"{place}, field queries.{settings.form}",
                expected=f"benchmark.form={' or '.join(forms)}, or benchmark.form=all "
                f"where.form={settings.form} for the tasks that have it",
            )
    return tasks


def checked_rows(placed: Iterable[Placed], *, where: str) -> Iterator[Placed]:
    """(place, row) of rows that keep the format; raises InputError for the first that does not."""
    yield from distinct(placed, check_row, where=where)


def check_row(row: Any, place: str) -> None:
    """Raise InputError for the first fault of a row, naming place, task and node."""
    name = row.get("id") if isinstance(row, Mapping) else None
    here = f"{place}, task {shown(name)}" if isinstance(name, str) and name.strip() else place
    conform(row, _validator(), here, owner=lambda path: _owner(row, path))
    check_nodes(row["nodes"], here)
    before = 0
    for number, snapshot in enumerate(row.get("snapshots") or []):
        field = f"snapshots[{number}]"
        if snapshot["round"] <= before:
            raise InputError(
                "the rounds are out of order",
                where=f"{here}, field {field}.round",
                expected=f"a round after {before}",
                got=str(snapshot["round"]),
            )
        before = snapshot["round"]
        check_nodes(snapshot["nodes"], f"{here}, {field}")
    try:
        json.dumps(row, allow_nan=False, default=str)
    except ValueError as error:
        raise InputError("a number is not finite", where=here, expected="no NaN, no infinity") from error


def _owner(row: Mapping[str, Any], path: Sequence[str | int]) -> str:
    """`, node "n1"` for a path into a node that has an id."""
    found: Any = row
    for at, part in enumerate(path):
        found = found[part]
        if isinstance(part, int) and path[at - 1] == "nodes":
            name = found.get("id") if isinstance(found, Mapping) else None
            return f", node {shown(name)}" if isinstance(name, str) else ""
    return ""


def check_nodes(nodes: Sequence[Mapping[str, Any]], here: str) -> None:
    """Raise InputError for the first fault of a list of nodes that the schema accepts."""
    ids: set[str] = set()
    checkpoints: dict[str, str] = {}
    for node in nodes:
        where = f"{here}, node {shown(node['id'])}"
        if node["id"] in ids:
            raise InputError("the node id stands twice in the task", where=where, expected="an id of its own")
        ids.add(node["id"])
        for checkpoint in node["checkpoints"]:
            if (owner := checkpoints.get(checkpoint["id"])) is not None:
                raise InputError(
                    "the checkpoint id stands twice in the task",
                    where=where,
                    expected=f"an id other than that of a checkpoint of node {shown(owner)}",
                    got=shown(checkpoint["id"]),
                )
            checkpoints[checkpoint["id"]] = node["id"]
    for node in nodes:
        _check_parents(node, ids, f"{here}, node {shown(node['id'])}")
    _check_weights(nodes, here)
    try:
        Rubric.of_nodes(nodes)
    except Cyclic as error:
        has_leaf = len({parent_of(parent)[0] for node in nodes for parent in node["parents"]}) < len(nodes)
        raise InputError(
            f"the graph has a cycle: {error}" + ("" if has_leaf else "; no node is a leaf"),
            where=f"{here}, node {shown(error.cycle[0])}",
            expected="steps that can be put into an order in which parents come first",
        ) from None


def _check_parents(node: Mapping[str, Any], ids: set[str], where: str) -> None:
    seen: set[str] = set()
    for parent in (parent_of(listed)[0] for listed in node["parents"]):
        if parent not in ids:
            raise InputError(
                "the parent is no node of the task", where=where, expected="a node's id", got=shown(parent)
            )
        if parent in seen:
            raise InputError(
                "the parent stands twice", where=where, expected="each parent once", got=shown(parent)
            )
        seen.add(parent)


def _check_weights(nodes: Sequence[Mapping[str, Any]], here: str) -> None:
    having = [node for node in nodes if node.get("weight") is not None]
    if not having:
        return
    if len(having) < len(nodes):
        lacking = next(node for node in nodes if node.get("weight") is None)
        raise InputError(
            f"{len(having)} of {len(nodes)} nodes have a weight",
            where=f"{here}, node {shown(lacking['id'])}",
            expected="a weight on every node of the task, or on none",
            got="no weight",
        )
    for node in nodes:
        if not _is_finite(node["weight"]):
            raise InputError(
                "the weight is not finite",
                where=f"{here}, node {shown(node['id'])}",
                expected="a finite number, 0 or more",
                got=shown(node["weight"]),
            )
    if not any(node["weight"] for node in nodes):
        raise InputError("all weights are 0", where=here, expected="at least one node with a weight above 0")


def _is_finite(weight: float) -> bool:
    """JSON may say 1e999, which is read as infinity, or an integer that no float can hold."""
    try:
        return math.isfinite(weight)
    except OverflowError:
        return False


def _task(row: Mapping[str, Any], form: str, nodes: Sequence[Mapping[str, Any]], name: str, index: int) -> Task:
    labels = {"form": form, "task": row["id"]}
    if row.get("category"):
        labels["category"] = row["category"]
    return Task(id=name, prompt=row["queries"][form], labels=labels, payload={"nodes": nodes}, index=index)


def _payload_nodes(row: Mapping[str, Any], *, reduce: bool) -> list[dict[str, Any]]:
    """The nodes as the grader needs them: without evidence, optional fields filled, reduced if that is asked."""
    redundant = redundant_edges(row["nodes"]) if reduce else []
    return [
        {
            "id": node["id"],
            "type": node["type"],
            "step": node.get("step") or "",
            "parents": [
                {"id": parent, "edge": edge}
                for parent, edge in map(parent_of, node["parents"])
                if (parent, node["id"]) not in redundant
            ],
            "checkpoints": [{"id": found["id"], "text": found["text"]} for found in node["checkpoints"]],
            "weight": node.get("weight"),
            "critical": bool(node.get("critical")),
        }
        for node in row["nodes"]
    ]


def redundant_edges(nodes: Sequence[Mapping[str, Any]]) -> list[tuple[str, str]]:
    """The edges (parent, child), by ids, between nodes that a longer way connects as well."""
    graph = Rubric.of_nodes(nodes).graph
    return [(graph.ids[parent], graph.ids[child]) for parent, child in graph.redundant_edges()]


@cache
def _validator() -> Validator:
    from jsonschema import Draft202012Validator

    return Draft202012Validator(schema())
