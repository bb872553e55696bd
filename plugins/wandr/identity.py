"""Who is who in a submission: raw value → canonical value → cluster, key by key over the whole task.

The canonical value is what a row `canonicalize/<key>/<raw value>` says, else the key's deterministic norm. The
cluster is a group of the row `deduplicate/<key>`, else the canonical value itself. Rows count for any key, whether
or not its spec asks for them. Pure: what a judge said is read from rows; asking is in identity_asking.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from core.model import Judgement
from plugins.wandr.blocks import Groups
from plugins.wandr.model import URL, Identity, Key, Node
from plugins.wandr.norms import NOT_FOUND, normalise, normalise_url, raw_value

CANONICALIZE: Final = "canonicalize"
DEDUPLICATE: Final = "deduplicate"
#: Flags: `<what>:<key>`, where a question about the key failed and the deterministic answer stands.
CANONICAL_FLAG: Final = "canonical_by_norm"
CLUSTER_FLAG: Final = "duplicates_by_norm"
#: In the verdict of a deduplication: some of its blocks failed.
INCOMPLETE: Final = "incomplete"

CANONICAL_SCHEMA: Final[Mapping[str, Any]] = {
    "type": "object",
    "properties": {"canonical": {"type": "string"}},
    "required": ["canonical"],
}
GROUPS_SCHEMA: Final[Mapping[str, Any]] = {
    "type": "object",
    "properties": {
        "groups": {"type": "array", "items": {"type": "array", "items": {"type": "string"}}},
        INCOMPLETE: {"type": "boolean"},
    },
    "required": ["groups"],
}

#: Raw values by key, in the order of first appearance.
Raws = Mapping[str, Sequence[str]]


def canonical_unit(key: str, raw: str) -> str:
    return f"{CANONICALIZE}/{key}/{raw}"


def duplicates_unit(key: str) -> str:
    return f"{DEDUPLICATE}/{key}"


def keys_of(root: Node) -> dict[str, Key]:
    """Every key of the tree by its name; keys of one name have the same identity settings."""
    found: dict[str, Key] = {}
    for node in root.walk():
        for key in node.keys:
            found.setdefault(key.name, key)
    return found


def values_of(node: Node, item: Mapping[str, str], url: str) -> dict[str, str]:
    """A row's raw value for each key of its node; a key of which it has no field is left out."""
    found = {
        key.name: raw_value(key, item)
        for key in node.keys
        if key.name != URL and any(item.get(field) for field in key.fields)
    }
    return {**found, URL: url} if url else found


def raws_of(values: Iterable[Mapping[str, str]]) -> dict[str, list[str]]:
    """The distinct raw values of rows, by key."""
    found: dict[str, dict[str, None]] = {}
    for row in values:
        for key, raw in row.items():
            found.setdefault(key, {})[raw] = None
    return {key: list(raws) for key, raws in found.items()}


def by_norm(key: Key, raw: str) -> str:
    """The deterministic canonical value; an address always has one spelling, also where the key asks for none."""
    if key.name == URL and key.canonicalize is None:
        return normalise_url(raw)
    return normalise(key, raw)


@dataclass(frozen=True)
class Said:
    """What rows say about identity. `failed_*`: keys of which a question failed."""

    canonical: Mapping[tuple[str, str], str]
    groups: Mapping[str, Sequence[Sequence[str]]]
    failed_canonical: frozenset[str]
    failed_groups: frozenset[str]


def read(rows: Iterable[Judgement], keys: Iterable[str]) -> Said:
    """The rows of one repeat that speak of identity; others are passed over."""
    known = frozenset(keys)
    canonical: dict[tuple[str, str], str] = {}
    groups: dict[str, Sequence[Sequence[str]]] = {}
    failed: dict[str, set[str]] = {CANONICALIZE: set(), DEDUPLICATE: set()}
    for row in rows:
        kind, _, rest = row.unit.partition("/")
        if kind not in failed:
            continue
        key, _, raw = rest.partition("/")
        if key not in known:
            continue
        if row.verdict is None:
            failed[kind].add(key)
        elif kind == CANONICALIZE:
            canonical[key, raw] = str(row.verdict["canonical"])
        else:
            groups[key] = row.verdict["groups"]
            if row.verdict.get(INCOMPLETE):
                failed[kind].add(key)
    return Said(canonical, groups, frozenset(failed[CANONICALIZE]), frozenset(failed[DEDUPLICATE]))


def identity_of(root: Node, raws: Raws, said: Said) -> Identity:
    """The identity of these raw values."""
    keys = keys_of(root)
    canonical: dict[str, dict[str, str]] = {}
    cluster: dict[str, dict[str, str]] = {}
    for name, values in raws.items():
        found = {
            raw: spoken if (spoken := said.canonical.get((name, raw))) is not None else by_norm(keys[name], raw)
            for raw in values
        }
        canonical[name] = found
        forms = set(found.values())
        # a file of judgements may name a value as it was submitted
        cluster[name] = clusters(
            [value if value in forms else found.get(value, value) for value in group]
            for group in said.groups.get(name, ())
        )
    return Identity(canonical, cluster)


def flags_of(said: Said) -> set[str]:
    """What a reader of the numbers must know of the identity they rest on."""
    return {f"{CANONICAL_FLAG}:{key}" for key in said.failed_canonical} | {
        f"{CLUSTER_FLAG}:{key}" for key in said.failed_groups
    }


def clusters(groups: Iterable[Sequence[str]]) -> dict[str, str]:
    """Value → the name of its cluster, the least of its values; what is alone is left out.

    Groups that overlap are one. `NOT_FOUND` is no value and joins nothing.
    """
    known = [[value for value in group if value != NOT_FOUND] for group in groups]
    values = sorted({value for group in known for value in group})
    places = {value: at for at, value in enumerate(values)}
    joined = Groups(len(values))
    for group in known:
        joined.join([places[value] for value in group])
    return {values[at]: values[members[0]] for members in joined.groups() if len(members) > 1 for at in members}
