"""WANDR's rollup: from judged records to the numbers of a task. Pure, and linear in the number of records.

A node's records are grouped by the value of its first key, each group by the value of the second, and so on to the
url, where every record is a leaf of its own. Scores rise from the leaves (levels.py), once for each lineage:

    leaves → url level → entities of the last key → … → entities of the first key → the node's root level

A subtask is rolled up before its parent. Each of its own first-key entities is a factor of the parent's entities
of the same identity, wherever in the parent they stand; what has no counterpart there is multiplied by 0. The
levels above are then made anew from the composed entities.

`rollup` keeps everything it made. `overall` and `standalone` are the numbers, `explain.as_tree` the reasons.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from plugins.wandr.levels import LEAVES, NAMES, ZERO, Lineages, Value, composed, level_scores
from plugins.wandr.model import Identity, Key, Leaf, Node

#: What a metric of the lineage `retrieval` ends in.
RETRIEVAL: Final = "_retrieval"
#: The twelve numbers of one reading of a submission, 0…1.
METRICS: Final = (*NAMES, *(name + RETRIEVAL for name in NAMES))
#: The flag of a task one of whose numbers no leaf decides: it is written as 0.
NO_LEAF: Final = "no_leaf"


@dataclass(frozen=True, slots=True)
class RolledLeaf:
    """One record. `place` is its index in the leaves given, `value` its address as submitted."""

    place: int
    value: str
    identity: str
    scores: Lineages


@dataclass(frozen=True, slots=True)
class Factor:
    """What a subtask does to one entity: `scores` multiply its own, metric by metric.

    `entity` is the subtask's entity of the same identity, None where it has none (the scores are then 0);
    `candidates` counts those of that identity, of which the worst is taken.
    """

    node: str
    entity: Entity | None
    candidates: int
    scores: Lineages


@dataclass(frozen=True, slots=True)
class Entity:
    """The records of one value of a key, below one entity of the key before. `scores` include the factors."""

    value: str
    identity: str
    level: Level
    factors: tuple[Factor, ...]
    scores: Lineages


@dataclass(frozen=True, slots=True)
class Level:
    """One key below one entity: what was required of it and what there is."""

    key: str
    required: int
    children: tuple[Entity, ...] | tuple[RolledLeaf, ...]
    scores: Lineages

    @property
    def provided(self) -> int:
        """Values, duplicates included. A value that a malformed row lacks is none."""
        return sum(bool(child.value) for child in self.children)

    @property
    def duplicates(self) -> int:
        """Values beyond one for each identity."""
        return self.provided - len({child.identity for child in self.children if child.value})

    @property
    def counted(self) -> int:
        """Identities that have a value: what recall chooses from."""
        return len({child.identity for child in self.children if child.scores.full.soft_recall is not None})

    @property
    def pads(self) -> int:
        """Zeros that stand in for what was required and is not there."""
        return max(0, self.required - self.counted)

    @property
    def surplus(self) -> int:
        """Identities beyond the required: they count in precision alone."""
        return max(0, self.counted - self.required)

    @property
    def missing(self) -> int:
        """Children without a value: judged with too little confidence, or not at all."""
        return sum(child.scores.full.soft_recall is None for child in self.children)

    def walk(self) -> Iterator[Level]:
        """This level and those below it, in its own node."""
        yield self
        for child in self.children:
            if isinstance(child, Entity):
                yield from child.level.walk()


@dataclass(frozen=True, slots=True)
class Rolled:
    """A node rolled up: `level` is its root level composed with its subtasks, `standalone` without them."""

    name: str
    level: Level
    standalone: Lineages
    subtasks: tuple[Rolled, ...] = ()

    def walk(self) -> Iterator[Rolled]:
        """This node and all below it, parents first."""
        yield self
        for subtask in self.subtasks:
            yield from subtask.walk()


def rollup(root: Node, leaves: Sequence[Leaf], identity: Identity) -> Rolled:
    """The task rolled up from its leaves; their order shapes the order of children, and no number.

    A leaf that lacks a key's value belongs to an entity of the empty value. Raises ValueError for a leaf of a node
    that the tree does not have, and for a subtask that hangs on no key of its parent above the url.
    """
    places: dict[str, list[int]] = {node.name: [] for node in root.walk()}
    for place, leaf in enumerate(leaves):
        if leaf.node not in places:
            raise ValueError(f"leaf {place} is of node {leaf.node!r}; the tree has {', '.join(places)}")
        places[leaf.node].append(place)
    return _roll(root, leaves, places, identity)


def overall(rolled: Rolled) -> dict[str, Value]:
    """The task's twelve numbers, composed with its subtasks; None is missing."""
    return metrics(rolled.level.scores)


def standalone(rolled: Rolled) -> dict[str, dict[str, Value]]:
    """Each node's twelve numbers without its subtasks, by the node's name."""
    return {node.name: metrics(node.standalone) for node in rolled.walk()}


def metrics(scores: Lineages) -> dict[str, Value]:
    """Both lineages by name, in the order of `METRICS`."""
    full, retrieval = scores.full.named(), scores.retrieval.named()
    return {**full, **{name + RETRIEVAL: value for name, value in retrieval.items()}}


def published(numbers: Mapping[str, Value]) -> tuple[dict[str, float], tuple[str, ...]]:
    """The numbers as they are written, and their flags: what is missing is 0 and flagged `no_leaf`."""
    flags = (NO_LEAF,) if None in numbers.values() else ()
    return {name: 0.0 if value is None else value for name, value in numbers.items()}, flags


def _roll(node: Node, leaves: Sequence[Leaf], places: Mapping[str, Sequence[int]], identity: Identity) -> Rolled:
    subtasks = tuple(_roll(subtask, leaves, places, identity) for subtask in node.subtasks)
    names = [key.name for key in node.keys[:-1]]
    attached: list[list[_Factors]] = [[] for _ in names]
    for subtask, rolled in zip(node.subtasks, subtasks, strict=True):
        first = subtask.keys[0].name
        if first not in names:
            raise ValueError(
                f"subtask {subtask.name} starts with {first!r}; {node.name} has the keys {', '.join(names)}"
            )
        attached[names.index(first)].append(_factors(rolled))
    own = _Grouping(node.keys, leaves, identity).level(0, places[node.name])
    return Rolled(node.name, _composed_level(own, 0, attached), own.scores, subtasks)


@dataclass(frozen=True, slots=True)
class _Grouping:
    """A node's records as levels, without its subtasks."""

    keys: tuple[Key, ...]
    leaves: Sequence[Leaf]
    identity: Identity

    def level(self, depth: int, places: Sequence[int]) -> Level:
        """The level of the key at `depth` over the leaves at `places`."""
        key = self.keys[depth]
        canonical = self.identity.canonical.get(key.name, {})
        cluster = self.identity.cluster.get(key.name, {})
        if depth == len(self.keys) - 1:
            return _level(
                key, depth, tuple(_leaf(place, self.leaves[place], canonical, cluster) for place in places)
            )
        groups: dict[str, list[int]] = {}
        for place in places:
            raw = self.leaves[place].values.get(key.name, "")
            groups.setdefault(canonical.get(raw, raw), []).append(place)
        entities = []
        for value, members in groups.items():
            below = self.level(depth + 1, members)
            entities.append(Entity(value, cluster.get(value, value), below, (), below.scores))
        return _level(key, depth, tuple(entities))


def _leaf(place: int, leaf: Leaf, canonical: Mapping[str, str], cluster: Mapping[str, str]) -> RolledLeaf:
    url = canonical.get(leaf.url, leaf.url)
    return RolledLeaf(place, leaf.url, cluster.get(url, url), LEAVES[leaf.full, leaf.retrieval])


def _level(key: Key, depth: int, children: tuple[Entity, ...] | tuple[RolledLeaf, ...]) -> Level:
    return Level(key.name, key.required, children, _scores(children, key.required, depth))


def _scores(children: tuple[Entity, ...] | tuple[RolledLeaf, ...], required: int, depth: int) -> Lineages:
    identities = [child.identity for child in children]
    return level_scores(identities, [child.scores for child in children], required, is_root=depth == 0)


@dataclass(frozen=True, slots=True)
class _Factors:
    """What one subtask is to the entities of its parent, by identity."""

    node: str
    known: Mapping[str, Factor]

    def of(self, identity: str) -> Factor:
        return self.known.get(identity) or Factor(self.node, None, 0, ZERO)


def _factors(subtask: Rolled) -> _Factors:
    candidates: dict[str, list[Entity]] = {}
    for entity in subtask.level.children:
        if isinstance(entity, Entity):
            candidates.setdefault(entity.identity, []).append(entity)
    known = {}
    for identity, entities in candidates.items():
        worst = max(entities, key=_badness)
        known[identity] = Factor(subtask.name, worst, len(entities), worst.scores)
    return _Factors(subtask.name, known)


def _badness(entity: Entity) -> tuple[float, str, str]:
    """Orders an identity's candidates, worst last; spellings that differ in case alone by the spelling."""
    return -(entity.scores.full.soft_recall or 0.0), entity.value.lower(), entity.value


def _composed_level(level: Level, depth: int, attached: Sequence[Sequence[_Factors]]) -> Level:
    """The level made anew from composed entities; itself where no subtask hangs on its key or on one below."""
    if not any(attached[depth:]):
        return level
    entities = []
    for entity in level.children:
        assert isinstance(entity, Entity), "subtasks hang on keys above the url"
        below = _composed_level(entity.level, depth + 1, attached)
        factors = tuple(subtask.of(entity.identity) for subtask in attached[depth])
        scores = Lineages(
            composed(below.scores.full, [factor.scores.full for factor in factors]),
            composed(below.scores.retrieval, [factor.scores.retrieval for factor in factors]),
        )
        entities.append(Entity(entity.value, entity.identity, below, factors, scores))
    children = tuple(entities)
    return Level(level.key, level.required, children, _scores(children, level.required, depth))
