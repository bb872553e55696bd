"""Deterministic norms: how a key's values are brought to one spelling, without asking anybody.

    text       lower case, blanks collapsed
    url        stripped, no trailing `/`, lower case, no scheme, no `www.`
    exact_set  a closed set: the text norm with `-` and blanks as `_`
    alias_set  a closed set with aliases: NFKD to ASCII, lower case, whatever is no letter or digit a blank
    custom     the task's own function, which no data carries: the text norm (the url norm for `url`), and a flag

A closed set folds both sides: a value is compared with its members by their folds, and what comes out is the
member as it is written, which need not be a fixed point of the fold. A value that is no member becomes
`NOT_FOUND`. A key without a norm leaves its values alone.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping
from typing import Final

from plugins.wandr.model import URL, Canonicalize, Key, Node

#: What a value becomes that is in no closed set. No norm makes it of a member.
NOT_FOUND: Final = "NOT_FOUND"
#: The flag of a task whose key has a function of its own: `custom_norm:<key>`.
CUSTOM_FLAG: Final = "custom_norm"

_SCHEME: Final = re.compile(r"\Ahttps?://")
_DIVIDERS: Final = re.compile(r"[-\s]")
_NOT_ALPHANUMERIC: Final = re.compile(r"[^a-z0-9]+")


def raw_value(key: Key, item: Mapping[str, str]) -> str:
    """A key's value in an item: its fields joined with `,`; a field that is not there is empty.

    The url stands beside the item, not in it: its raw value is the record's own.
    """
    return ",".join(item.get(field, "") for field in key.fields)


def normalise(key: Key, raw: str) -> str:
    """A raw value in the key's spelling, a member of its closed set, or `NOT_FOUND`."""
    spec = key.canonicalize
    if spec is None:
        return raw
    match spec.norm:
        case "text":
            return normalise_text(raw)
        case "url":
            return normalise_url(raw)
        case "exact_set":
            return _members(spec).get(fold_exact(raw), NOT_FOUND)
        case "alias_set":
            return _members(spec).get(fold_alias(raw), NOT_FOUND)
        case "custom":
            return normalise_url(raw) if key.name == URL else normalise_text(raw)


def normalise_text(raw: str) -> str:
    return " ".join(raw.lower().split())


def normalise_url(raw: str) -> str:
    text = raw.strip().rstrip("/").lower()
    return _SCHEME.sub("", text).removeprefix("www.")


def fold_exact(raw: str) -> str:
    return _DIVIDERS.sub("_", normalise_text(raw))


def fold_alias(raw: str) -> str:
    """Letters and digits of ASCII, words apart by one blank; a text of another script folds to nothing."""
    ascii_only = unicodedata.normalize("NFKD", raw).encode("ascii", "ignore").decode("ascii")
    return _NOT_ALPHANUMERIC.sub(" ", ascii_only.lower()).strip()


def folds(spec: Canonicalize) -> Iterator[tuple[str, str, str]]:
    """(fold, as written, canonical member) of a closed set: all members first, then the aliases."""
    fold = fold_exact if spec.norm == "exact_set" else fold_alias
    yield from ((fold(member), member, member) for member in spec.members)
    for member, aliases in spec.members.items():
        yield from ((fold(alias), alias, member) for alias in aliases)


def custom_flags(node: Node) -> tuple[str, ...]:
    """`custom_norm:<key>` for each key of the tree whose own function is stood in for."""
    keys = {
        key.name
        for each in node.walk()
        for key in each.keys
        if key.canonicalize is not None and key.canonicalize.norm == "custom"
    }
    return tuple(f"{CUSTOM_FLAG}:{name}" for name in sorted(keys))


#: Closed sets by the identity of their spec, so that a set is folded once and not once a record. The spec is kept
#: beside its folds: while it stands here nothing else can have its identity.
_FOLDED: Final[dict[int, tuple[Canonicalize, Mapping[str, str]]]] = {}
_MOST_FOLDED: Final = 2048


def _members(spec: Canonicalize) -> Mapping[str, str]:
    """Fold → member. Where two fold alike the first stands; a loader refuses such a set."""
    known = _FOLDED.get(id(spec))
    if known is not None and known[0] is spec:
        return known[1]
    found: dict[str, str] = {}
    for fold, _, member in folds(spec):
        found.setdefault(fold, member)
    # nothing is a member by having no letters
    found.pop("", None)
    if len(_FOLDED) >= _MOST_FOLDED:
        _FOLDED.clear()
    _FOLDED[id(spec)] = (spec, found)
    return found
