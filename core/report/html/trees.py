"""The shape of trees (shapes.md): what was delivered, grouped key by key, with the numbers of every group.

Children of one identity are shown as one, the first with its duplicates below. A tree is cut after so many rows;
how many were left out is said where they would stand.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from core.report.html import text
from core.report.html.reading import count, finite, mapping, mappings, sequence
from core.report.html.reading import text as text_of
from core.report.html.units import Tone, Unit

#: Deeper levels than this are not shown; a page's own nesting has an end too.
DEEPEST: Final = 24
_MOST_TREES: Final = 12
#: The last words of the names of scores, as a row of a tree has them.
_SHORT: Final[Mapping[str, str]] = {"precision": "P", "recall": "R", "f1": "F1"}
_MOST_FACTORS: Final = 20
_MOST_EXCERPTS: Final = 12


@dataclass(frozen=True, slots=True)
class Scores:
    """The numbers of one lineage: (name, value) in their order, each 0…1 or None."""

    lineage: str
    values: tuple[tuple[str, float | None], ...]


@dataclass(frozen=True, slots=True)
class Factor:
    """What a subtask does to an entity. `value` None: the subtask has no such entity, so it multiplies by 0."""

    node: str
    value: str | None
    candidates: int
    scores: tuple[Scores, ...]


@dataclass(frozen=True, slots=True)
class Record:
    """What the system wrote of one leaf: fields of its item and answer, address and passages."""

    item: tuple[tuple[str, str], ...]
    answer: tuple[tuple[str, str], ...]
    url: str
    excerpts: tuple[str, ...]
    more_excerpts: int


@dataclass(frozen=True, slots=True)
class Branch:
    """One row of a tree: an entity or a leaf, its duplicates, and what stands below it.

    `outcomes` are a leaf's, by lineage. `record` and `unit` belong to a leaf and are None where nothing is known.
    """

    value: str
    scores: tuple[Scores, ...]
    factors: tuple[Factor, ...]
    outcomes: tuple[tuple[str, Tone], ...]
    unit_name: str
    unit: Unit | None
    record: Record | None
    level: Level | None
    duplicates: tuple[Branch, ...]

    @property
    def is_leaf(self) -> bool:
        """Whether it is a record."""
        return self.level is None


@dataclass(frozen=True, slots=True)
class Level:
    """One key below one entity: what was asked for and what there is. `more` rows were left out."""

    key: str
    required: int
    provided: int
    n_duplicates: int
    pads: int
    surplus: int
    missing: int
    scores: tuple[Scores, ...]
    children: tuple[Branch, ...]
    more: int


@dataclass(frozen=True, slots=True)
class TreeNode:
    """A node of the task, with its subtasks."""

    name: str
    scores: tuple[Scores, ...]
    standalone: tuple[Scores, ...]
    level: Level
    subtasks: tuple[TreeNode, ...]


@dataclass(frozen=True, slots=True)
class Tree:
    """One reading of one repeat: a node, or the reason why there is none."""

    repeat: int
    readings: tuple[str, ...]
    node: TreeNode | None
    reason: str


@dataclass(frozen=True, slots=True)
class Trees:
    """All trees of one attempt. `units`: those that their leaves are about."""

    trees: tuple[Tree, ...]
    units: frozenset[str]


def trees_of(told: Mapping[str, Any], units: Mapping[str, Unit], *, longest: int, most: int) -> Trees | None:
    """The view of an explanation's trees; None where it has none. `most`: rows shown of all trees together."""
    leaves = [text_of(unit) for unit in sequence(told.get("leaves"))]
    reader = _Reader(leaves, mapping(told.get("records")), units, longest, most)
    found: list[Tree] = []
    for entry in mappings(told.get("repeats")):
        readings = [(name, value) for name, value in entry.items() if isinstance(value, Mapping)]
        seen: list[tuple[Any, list[str]]] = []
        for name, value in readings:
            same = next((names for known, names in seen if known == value), None)
            if same is None:
                seen.append((value, [name]))
            else:
                same.append(name)
        for value, names in seen[:_MOST_TREES]:
            node = value.get("tree")
            found.append(
                Tree(
                    repeat=count(entry.get("repeat")),
                    readings=tuple(map(text.name, names)),
                    node=reader.node(node) if isinstance(node, Mapping) else None,
                    reason=text.cut(text_of(value.get("reason")), text.LONGEST // 10),
                )
            )
    return Trees(tuple(found[:_MOST_TREES]), frozenset(leaves) & frozenset(units)) if found else None


class _Reader:
    """Reads nodes, and counts the rows that are left."""

    def __init__(
        self,
        leaves: Sequence[str],
        records: Mapping[str, Any],
        units: Mapping[str, Unit],
        longest: int,
        most: int,
    ) -> None:
        self._leaves, self._records, self._units = leaves, records, units
        self._longest, self._left = longest, most

    def node(self, entry: Mapping[str, Any], depth: int = 0) -> TreeNode:
        return TreeNode(
            name=text.name(text_of(entry.get("name"))),
            scores=_scores(entry.get("scores")),
            standalone=_scores(entry.get("standalone")),
            level=self._level(mapping(entry.get("level")), depth),
            subtasks=tuple(self.node(one, depth + 1) for one in mappings(entry.get("subtasks")))
            if depth < DEEPEST
            else (),
        )

    def _level(self, entry: Mapping[str, Any], depth: int) -> Level:
        groups: dict[object, list[Mapping[str, Any]]] = {}
        for place, child in enumerate(mappings(entry.get("children"))):
            identity = child.get("identity")
            groups.setdefault(identity if isinstance(identity, str) else place, []).append(child)
        children: list[Branch] = []
        more = 0
        for first, *others in groups.values():
            if not self._left or depth >= DEEPEST:
                more += 1 + len(others)
                continue
            branch = self._branch(first, depth)
            twins = []
            for other in others:
                if self._left:
                    twins.append(self._branch(other, depth))
                else:
                    more += 1
            children.append(_with_twins(branch, twins))
        return Level(
            key=text.name(text_of(entry.get("key"))),
            required=count(entry.get("required")),
            provided=count(entry.get("provided")),
            n_duplicates=count(entry.get("duplicates")),
            pads=count(entry.get("pads")),
            surplus=count(entry.get("surplus")),
            missing=count(entry.get("missing")),
            scores=_scores(entry.get("scores")),
            children=tuple(children),
            more=more,
        )

    def _branch(self, entry: Mapping[str, Any], depth: int) -> Branch:
        self._left -= 1
        below = entry.get("level")
        place = entry.get("leaf")
        is_known = isinstance(place, int) and not isinstance(place, bool) and 0 <= place < len(self._leaves)
        unit = self._leaves[place] if is_known and isinstance(place, int) else ""
        return Branch(
            value=text.cut(text_of(entry.get("value")), text.NAME * 2),
            scores=_scores(entry.get("scores")),
            factors=tuple(map(_factor, mappings(entry.get("factors"))[:_MOST_FACTORS])),
            outcomes=tuple(
                (text.name(key), _tone(value))
                for key, value in entry.items()
                if isinstance(value, bool) or (value is None and key not in ("level", "leaf"))
            ),
            unit_name=text.name(unit),
            unit=self._units.get(unit),
            record=self._record(self._records.get(unit)),
            level=self._level(below, depth + 1) if isinstance(below, Mapping) else None,
            duplicates=(),
        )

    def _record(self, entry: Any) -> Record | None:
        if not isinstance(entry, Mapping):
            return None
        excerpts, more = text.few(map(text_of, sequence(entry.get("excerpts"))), _MOST_EXCERPTS)
        return Record(
            item=self._fields(entry.get("item")),
            answer=self._fields(entry.get("answer")),
            url=text.cut(text_of(entry.get("url")), text.NAME * 3),
            excerpts=tuple(text.cut(excerpt, self._longest) for excerpt in excerpts),
            more_excerpts=more,
        )

    def _fields(self, value: Any) -> tuple[tuple[str, str], ...]:
        shown, _ = text.few(mapping(value).items(), 20)
        return tuple((text.name(key), text.said(said, self._longest)) for key, said in shown)


def lines(scores: Sequence[Scores]) -> list[tuple[str, str]]:
    """Each lineage with its numbers in a line, such as `soft P 0.67 R 0.5`; those with the same numbers in one."""
    found: dict[str, list[str]] = {}
    for entry in scores:
        parts: dict[str, list[str]] = {}
        for key, value in entry.values:
            group, _, last = key.rpartition("_")
            parts.setdefault(group, []).append(f"{_SHORT.get(last, last)} {_brief(value)}")
        line = " · ".join(" ".join(filter(None, (group, *numbers))) for group, numbers in parts.items())
        found.setdefault(line, []).append(entry.lineage)
    return [(" = ".join(lineages), line) for line, lineages in found.items()]


def _brief(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}".rstrip("0").rstrip(".")


def _with_twins(branch: Branch, twins: Sequence[Branch]) -> Branch:
    return replace(branch, duplicates=tuple(twins)) if twins else branch


def _factor(entry: Mapping[str, Any]) -> Factor:
    value = entry.get("value")
    return Factor(
        node=text.name(text_of(entry.get("node"))),
        value=text.name(value) if isinstance(value, str) else None,
        candidates=count(entry.get("candidates")),
        scores=_scores(entry.get("scores")),
    )


def _scores(value: Any) -> tuple[Scores, ...]:
    return tuple(
        Scores(
            text.name(lineage), tuple((text.name(key), finite(said)) for key, said in list(numbers.items())[:12])
        )
        for lineage, numbers in list(mapping(value).items())[:4]
        if isinstance(numbers, Mapping)
    )


def _tone(value: Any) -> Tone:
    return "missing" if value is None else "yes" if value else "no"
