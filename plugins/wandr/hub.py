"""The published dataset's rows, rewritten in the form of a task file.

A row of the dataset holds the instruction, the tree as a list of nodes with their parents, and metadata, but no
judge's specification and no norms: a record is then judged by the universal checks and the node's text. Identity
gets what nearly all released tasks have: addresses in the url norm, the values of every other key compared by the
judge for duplicates. A field that is named `…_json` may hold JSON text or the value itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from core.errors import InputError
from core.strict_json import parse, shown
from plugins.wandr.model import URL
from plugins.wandr.shape import refusal

TREE: Final = "task_tree_json"
#: The fields that are read; a row without one of them is of a form that we don't know.
FIELDS: Final = (
    "task_id",
    "instruction",
    "required_output_files",
    TREE,
    "metadata_json",
    "self_contained",
)
_NODE_FIELDS: Final = ("task_id", "key_hierarchy")


def row_of(row: Any, where: str) -> dict[str, Any]:
    """The same task in the form of a task file, whose own check follows.

    Raises InputError: fields that are missing (all at once), a value of another type, nodes that make no tree.
    """
    check_fields(row, where)
    nodes = _value(row, TREE, where)
    if not isinstance(nodes, list) or not all(isinstance(node, Mapping) for node in nodes):
        raise refusal("no list of nodes", where=where, field=TREE, expected="a list of objects", got=nodes)
    labels = _value(row, "metadata_json", where)
    try:
        tree = _tree(nodes, where)
    except RecursionError:
        raise InputError("the tree is too deep", where=f"{where}, field {TREE}") from None
    return {
        "id": row["task_id"],
        "instruction": row["instruction"],
        "labels": {} if labels is None else labels,
        "output_files": _value(row, "required_output_files", where),
        "self_contained": row["self_contained"],
        "tree": tree,
    }


def check_fields(row: Any, where: str) -> None:
    """Raises InputError that lists every field that is missing."""
    if not isinstance(row, Mapping):
        raise InputError("not an object", where=where, expected="a row of the dataset", got=shown(row))
    missing = [name for name in FIELDS if name not in row]
    if missing:
        raise InputError(
            f"the row lacks {', '.join(missing)}",
            where=where,
            expected=f"the fields {', '.join(FIELDS)}; another revision of the dataset may have them "
            "(benchmark.revision)",
            got=f"the fields {', '.join(map(str, row))}",
        )


def _value(row: Mapping[str, Any], name: str, where: str) -> Any:
    value = row[name]
    if isinstance(value, str):
        return parse(value, where=f"{where}, field {name}", expected="JSON text")
    return value


def _tree(nodes: Sequence[Mapping[str, Any]], where: str) -> dict[str, Any]:
    known: dict[str, int] = {}
    children: dict[str | None, list[int]] = {}
    for at, node in enumerate(nodes):
        field = f"{TREE}[{at}]"
        missing = [name for name in _NODE_FIELDS if node.get(name) is None]
        if missing:
            raise InputError(
                f"the node lacks {', '.join(missing)}",
                where=f"{where}, field {field}",
                expected=f"the fields {', '.join(_NODE_FIELDS)}",
                got=f"the fields {', '.join(map(str, node))}",
            )
        name, parent = node["task_id"], node.get("parent_id")
        if not isinstance(name, str) or name in known:
            raise refusal(
                "no name of its own", where=where, field=f"{field}.task_id", expected="a text, unique", got=name
            )
        if parent is not None and not isinstance(parent, str):
            raise refusal(
                "no node's name", where=where, field=f"{field}.parent_id", expected="a text or null", got=parent
            )
        known[name] = at
        children.setdefault(parent or None, []).append(at)
    roots = children.get(None, [])
    if len(roots) != 1:
        raise refusal(
            "not one root",
            where=where,
            field=TREE,
            expected="one node without a parent_id",
            got=[nodes[at]["task_id"] for at in roots],
        )
    reached: list[int] = []
    tree = _node(nodes, roots[0], None, children, reached, where)
    lost = [nodes[at]["task_id"] for at in range(len(nodes)) if at not in set(reached)]
    if lost:
        raise refusal(
            "nodes that no parent leads to", where=where, field=TREE, expected="every parent_id a node's", got=lost
        )
    return tree


def _node(
    nodes: Sequence[Mapping[str, Any]],
    at: int,
    parent: str | None,
    children: Mapping[str | None, list[int]],
    reached: list[int],
    where: str,
) -> dict[str, Any]:
    """The plain form of a node and all below it. A node hangs on one parent, so this ends."""
    node, field = nodes[at], f"{TREE}[{at}]"
    reached.append(at)
    name = node["task_id"]
    if parent is not None and not name.startswith(f"{parent}."):
        name = f"{parent}.{name}"
    file = node.get("required_output_file")
    if file is not None and file != f"results_{name}.jsonl":
        raise refusal(
            "another file than the node's name gives",
            where=where,
            field=f"{field}.required_output_file",
            expected=f"results_{name}.jsonl",
            got=file,
        )
    hierarchy = node["key_hierarchy"]
    if not isinstance(hierarchy, list) or not all(isinstance(key, Mapping) for key in hierarchy):
        raise refusal(
            "no list of keys",
            where=where,
            field=f"{field}.key_hierarchy",
            expected="a list of objects with name, fields and required",
            got=hierarchy,
        )
    below = children.get(node["task_id"], [])
    return {
        "name": name,
        "text": node.get("task_text"),
        "keys": [_key(key) for key in hierarchy],
        "judge": {},
        "subtasks": [
            _node(nodes, child, name, children, reached, where)
            for child in sorted(below, key=lambda child: (_order(nodes[child]), child))
        ],
    }


def _order(node: Mapping[str, Any]) -> float:
    order = node.get("order")
    return order if isinstance(order, int | float) else 0


def _key(key: Mapping[str, Any]) -> dict[str, Any]:
    name = key.get("name")
    found = {part: key[part] for part in ("name", "required") if part in key}
    found["fields"] = [name] if key.get("fields") is None else key["fields"]
    if name == URL:
        return {**found, "canonicalize": {"norm": "url"}}
    return {**found, "deduplicate": {"llm": True}}
