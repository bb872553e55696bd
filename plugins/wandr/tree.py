"""A task's tree, from the plain form that files and run folders hold to `Node`s that keep every rule.

The rules: `url` is the last key and stands for itself; no key twice in a node; a subtask's first key is a key of
its parent and not `url`, its others are not the parent's (but for `url`); a subtask's name is its parent's, a dot,
its own; no name twice; keys of one name have one identity throughout the tree (fields, canonical form,
duplicates), since values are matched and collapsed over the whole task.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from core.model import Task
from plugins.wandr import norms
from plugins.wandr.model import (
    URL,
    Canonicalize,
    Deduplicate,
    JudgeSpec,
    Key,
    Node,
    Requirement,
    Validity,
)
from plugins.wandr.shape import check_node, refusal

#: How a closed set's members are given.
_MEMBERS: Final[Mapping[str, type[Any]]] = {"exact_set": list, "alias_set": dict}
_OWN_NAME: Final = re.compile(r"[A-Za-z0-9_-]+")
#: Trees of the tasks seen last: a task's records are graded one by one, and each needs its node.
_KNOWN: Final[dict[str, tuple[Any, Node]]] = {}
_MOST_KNOWN: Final = 2048


def node_from(tree: Any, where: str, *, field: str = "tree") -> Node:
    """The root of a tree in plain form. `where` names the file and line, `field` the tree's place in it.

    Raises InputError that names file, line and field of the first rule that is broken.
    """
    check_node(tree, where, field)
    return checked_node(tree, where, field=field)


def checked_node(tree: Mapping[str, Any], where: str, *, field: str = "tree") -> Node:
    """The same for a tree whose shape the schema has already passed."""
    root = _node(tree, where, field)
    _check_node(root, None, where, field)
    _check_tree(root, where, field)
    return root


def tree_of(task: Task) -> Node:
    """The tree that a task carries in its payload."""
    tree = task.payload["tree"]
    known = _KNOWN.get(task.id)
    if known is not None and (known[0] is tree or known[0] == tree):
        return known[1]
    node = node_from(tree, f"task {task.id}", field="payload.tree")
    if len(_KNOWN) >= _MOST_KNOWN:
        _KNOWN.clear()
    _KNOWN[task.id] = (tree, node)
    return node


def required_records(root: Node) -> int:
    """How many records a whole task asks for: the sum over its nodes."""
    return sum(node.required_records for node in root.walk())


def required_files(root: Node) -> tuple[str, ...]:
    """The files of a submission, one a node, parents first."""
    return tuple(node.file for node in root.walk())


def _node(tree: Mapping[str, Any], where: str, field: str) -> Node:
    return Node(
        name=tree["name"],
        text=tree.get("text") or "",
        keys=tuple(_key(key, where, f"{field}.keys[{at}]") for at, key in enumerate(tree["keys"])),
        judge=_judge(tree["judge"]),
        subtasks=tuple(
            _node(subtask, where, f"{field}.subtasks[{at}]")
            for at, subtask in enumerate(tree.get("subtasks") or ())
        ),
    )


def _key(key: Mapping[str, Any], where: str, field: str) -> Key:
    deduplicate = key.get("deduplicate")
    return Key(
        name=key["name"],
        fields=tuple(key["fields"]),
        required=int(key["required"]),
        canonicalize=_canonicalize(key.get("canonicalize"), where, f"{field}.canonicalize"),
        deduplicate=None
        if deduplicate is None
        else Deduplicate(bool(deduplicate.get("llm")), deduplicate.get("guidance") or ""),
        invalid_if=key.get("invalid_if"),
    )


def _canonicalize(given: Mapping[str, Any] | None, where: str, field: str) -> Canonicalize | None:
    if given is None:
        return None
    norm, members = given["norm"], given.get("members")
    wanted = _MEMBERS.get(norm)
    if wanted is None and members:
        raise refusal(
            "an open norm has no members",
            where=where,
            field=f"{field}.members",
            expected="no members, or the norm exact_set or alias_set",
            got=members,
        )
    if wanted is not None and (not isinstance(members, wanted) or not members):
        form = "a list of members" if norm == "exact_set" else "an object {member: [aliases]}"
        raise refusal(
            f"a closed set ({norm}) needs its members",
            where=where,
            field=f"{field}.members",
            expected=f"{form}, at least one",
            got=members,
        )
    aliases: dict[str, tuple[str, ...]] = {}
    if isinstance(members, Mapping):
        aliases = {member: tuple(others) for member, others in members.items()}
    elif members:
        aliases = dict.fromkeys(members, ())
    spec = Canonicalize(norm, aliases, given.get("custom"), bool(given.get("llm")), given.get("guidance") or "")
    if wanted is not None:
        _check_members(spec, where, f"{field}.members")
    return spec


def _check_members(spec: Canonicalize, where: str, field: str) -> None:
    owners: dict[str, str] = {}
    for fold, written, member in norms.folds(spec):
        if not fold and written != member:
            continue  # an alias in another script: it matches nothing, and does no harm
        owner = owners.setdefault(fold, member)
        if owner != member:
            raise refusal(
                f"{written!r} reads like the member {owner!r}",
                where=where,
                field=field,
                expected=f"members and aliases that differ when folded (both are {fold!r})",
                got=written,
            )
        if not fold:
            raise refusal(
                "nothing is left of the member when it is folded, so no value can be it",
                where=where,
                field=field,
                expected="a member with a letter a–z or a digit",
                got=written,
            )


def _judge(judge: Mapping[str, Any]) -> JudgeSpec:
    return JudgeSpec(
        summary=judge.get("summary") or "",
        guidance=judge.get("guidance") or "",
        validity=tuple(
            Validity(check["name"], check.get("description") or "") for check in judge.get("validity") or ()
        ),
        requirements=tuple(
            Requirement(check["name"], check["supported"], check.get("satisfied"))
            for check in judge.get("requirements") or ()
        ),
        other_fields=tuple(judge.get("other_fields") or ()),
    )


def _check_node(node: Node, parent: Node | None, where: str, field: str) -> None:
    names = [key.name for key in node.keys]
    if names[-1] != URL:
        expected = "the key url, last in the list"
        raise refusal("url is not the last key", where=where, field=f"{field}.keys", expected=expected, got=names)
    _check_unlike(names, "the key", where, f"{field}.keys[{{}}].name")
    for at, key in enumerate(node.keys):
        if (key.name == URL) != (URL in key.fields) or (key.name == URL and len(key.fields) > 1):
            raise refusal(
                "the field url belongs to the key url alone, which has no other",
                where=where,
                field=f"{field}.keys[{at}].fields",
                expected='["url"]' if key.name == URL else "fields of the item",
                got=list(key.fields),
            )
    if parent is not None:
        _check_attachment(node, parent, where, field)
    for part in ("validity", "requirements"):
        checks = [check.name for check in getattr(node.judge, part)]
        _check_unlike(checks, "the check", where, f"{field}.judge.{part}[{{}}].name")
    for at, subtask in enumerate(node.subtasks):
        _check_node(subtask, node, where, f"{field}.subtasks[{at}]")


def _check_attachment(node: Node, parent: Node, where: str, field: str) -> None:
    prefix = f"{parent.name}."
    if not node.name.startswith(prefix) or not _OWN_NAME.fullmatch(node.name.removeprefix(prefix)):
        raise refusal(
            "a subtask's name does not go on from its parent's",
            where=where,
            field=f"{field}.name",
            expected=f"{prefix}<name without dots>",
            got=node.name,
        )
    others = [key.name for key in parent.keys]
    for at, key in enumerate(node.keys):
        if at == 0 and (key.name == URL or key.name not in others):
            # an address is no entity: there is nothing at the url level for a subtask to belong to
            can_carry = ", ".join(other for other in others if other != URL)
            raise refusal(
                "a subtask can't hang on the key url"
                if key.name == URL
                else "a subtask's first key is no key of its parent",
                where=where,
                field=f"{field}.keys[0].name",
                expected=f"one of {can_carry}" if can_carry else "no subtask: the parent has no key but url",
                got=key.name,
            )
        if at > 0 and key.name in others and key.name != URL:
            raise refusal(
                "a key of the parent stands below a subtask's first key",
                where=where,
                field=f"{field}.keys[{at}].name",
                expected="a key that the parent does not have",
                got=key.name,
            )


def _check_unlike(names: Sequence[str], what: str, where: str, field: str) -> None:
    seen: set[str] = set()
    for at, name in enumerate(names):
        if name in seen:
            raise refusal(
                f"{what} stands twice in the node",
                where=where,
                field=field.format(at),
                expected="a name of its own",
                got=name,
            )
        seen.add(name)


def _check_tree(root: Node, where: str, field: str) -> None:
    """What holds across nodes: names, and one identity for keys of one name."""
    names: dict[str, str] = {}
    keys: dict[str, tuple[Key, str]] = {}
    for node, place in _placed(root, field):
        if node.name in names:
            raise refusal(
                "two nodes have one name",
                where=where,
                field=f"{place}.name",
                expected=f"a name other than that of {names[node.name]}",
                got=node.name,
            )
        names[node.name] = place
        for at, key in enumerate(node.keys):
            here = f"{place}.keys[{at}]"
            first, first_place = keys.setdefault(key.name, (key, here))
            for part in ("fields", "canonicalize", "deduplicate"):
                if getattr(first, part) != getattr(key, part):
                    raise refusal(
                        f"the key {key.name!r} has another identity elsewhere in the tree",
                        where=where,
                        field=f"{here}.{part}",
                        expected=f"the same {part} as at {first_place}",
                        got=repr(getattr(key, part)),
                    )


def _placed(node: Node, field: str) -> list[tuple[Node, str]]:
    found = [(node, field)]
    for at, subtask in enumerate(node.subtasks):
        found += _placed(subtask, f"{field}.subtasks[{at}]")
    return found
