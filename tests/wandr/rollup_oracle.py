"""The rollup a second time: straight from its definition, one metric at a time, by brute force and in fractions.

Every question is answered from all records anew, so it is slow and has nothing to keep in step. Beside it stands
what the rollup's tests share: trees in short, and random ones.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction

from plugins.wandr.model import URL, Identity, Key, Leaf, Node

BASE = ("soft_precision", "soft_recall", "hard_precision", "hard_recall")
Number = Fraction | None


def node(name: str, keys: Mapping[str, int], *subtasks: Node) -> Node:
    """A node of single-field keys, {name: required}, url last."""
    found = tuple(Key(key, (key,), required) for key, required in keys.items())
    assert found[-1].name == URL
    return Node(name, "", found, subtasks=subtasks)


class Oracle:
    """All numbers of one task."""

    def __init__(self, root: Node, leaves: Sequence[Leaf], identity: Identity) -> None:
        self.root = root
        self.leaves = leaves
        self.identity = identity

    def overall(self) -> dict[str, Number]:
        return self._all(self.root)

    def standalone(self) -> dict[str, dict[str, Number]]:
        return {found.name: self._all(replace(found, subtasks=())) for found in self.root.walk()}

    def _all(self, found: Node) -> dict[str, Number]:
        numbers: dict[str, Number] = {}
        for lineage, suffix in (("full", ""), ("retrieval", "_retrieval")):
            for metric in BASE:
                numbers[metric + suffix] = self.level(found, (), metric, lineage)
            for kind in ("soft", "hard"):
                precision = numbers[f"{kind}_precision{suffix}"]
                recall = numbers[f"{kind}_recall{suffix}"]
                if precision is None or recall is None:
                    numbers[f"{kind}_f1{suffix}"] = None
                elif precision + recall == 0:
                    numbers[f"{kind}_f1{suffix}"] = Fraction(0)
                else:
                    numbers[f"{kind}_f1{suffix}"] = 2 * precision * recall / (precision + recall)
        return numbers

    def canonical(self, key: str, raw: str) -> str:
        return self.identity.canonical.get(key, {}).get(raw, raw)

    def cluster(self, key: str, value: str) -> str:
        return self.identity.cluster.get(key, {}).get(value, value)

    def rows(self, found: Node, path: tuple[str, ...]) -> list[Leaf]:
        """The node's records whose first values are those of the path."""
        return [
            leaf
            for leaf in self.leaves
            if leaf.node == found.name
            and all(
                self.canonical(key.name, leaf.values.get(key.name, "")) == value
                for key, value in zip(found.keys, path, strict=False)
            )
        ]

    def values(self, found: Node, path: tuple[str, ...]) -> set[str]:
        key = found.keys[len(path)].name
        return {self.canonical(key, leaf.values.get(key, "")) for leaf in self.rows(found, path)}

    def level(self, found: Node, path: tuple[str, ...], metric: str, lineage: str) -> Number:
        """The aggregate of the key that follows the path."""
        key = found.keys[len(path)]
        children: list[tuple[str, Number]] = []
        if key.name == URL:
            for leaf in self.rows(found, path):
                outcome = leaf.full if lineage == "full" else leaf.retrieval
                url = self.canonical(URL, leaf.url)
                children.append((self.cluster(URL, url), None if outcome is None else Fraction(outcome)))
        else:
            for value in self.values(found, path):
                score = self.entity(found, (*path, value), metric, lineage)
                children.append((self.cluster(key.name, value), score))
        present = [(identity, score) for identity, score in children if score is not None]
        if metric.endswith("precision"):
            if not present:
                return None
            total = sum((score for _, score in present), Fraction(0)) / len(present)
        else:
            worst = [
                min(score for other, score in present if other == identity)
                for identity in {identity for identity, _ in present}
            ]
            kept = sorted(worst, reverse=True)[: key.required]
            kept += [Fraction(0)] * (key.required - len(kept))
            total = sum(kept, Fraction(0)) / key.required
        if metric.startswith("hard") and path:
            return Fraction(1) if total >= 1 else Fraction(0)
        return total

    def entity(self, found: Node, path: tuple[str, ...], metric: str, lineage: str) -> Number:
        score = self.level(found, path, metric, lineage)
        if score is None:
            return None
        key = found.keys[len(path) - 1].name
        for subtask in found.subtasks:
            if subtask.keys[0].name == key:
                score *= self.factor(subtask, self.cluster(key, path[-1]), metric, lineage) or Fraction(0)
        return score

    def factor(self, subtask: Node, identity: str, metric: str, lineage: str) -> Number:
        key = subtask.keys[0].name
        candidates = [value for value in self.values(subtask, ()) if self.cluster(key, value) == identity]
        if not candidates:
            return None

        def place(value: str) -> tuple[Fraction, str, str]:
            recall = self.entity(subtask, (value,), "soft_recall", "full")
            assert recall is not None
            return -recall, value.lower(), value

        return self.entity(subtask, (sorted(candidates, key=place)[-1],), metric, lineage)


def random_task(rng: random.Random) -> tuple[Node, list[Leaf], Identity]:
    """A small tree, up to four nodes deep, with records and identities that collide often."""
    root = _random_node(rng, "t", None, depth=0)
    keys = {key.name for found in root.walk() for key in found.keys}
    canonical: dict[str, dict[str, str]] = {}
    cluster: dict[str, dict[str, str]] = {}
    for key in sorted(keys):
        spread = rng.choice((0.0, 0.3, 0.7))
        pool = _pool(key)
        names = [*pool, "NOT_FOUND"]
        canonical[key] = {raw: rng.choice(names) for raw in pool if rng.random() < spread}
        cluster[key] = {value: f"id {rng.randrange(3)}" for value in pool if rng.random() < spread}
    leaves = [_random_leaf(rng, found) for found in root.walk() for _ in range(rng.choice((0, 3, 6, 10, 10)))]
    rng.shuffle(leaves)
    return root, leaves, Identity(canonical, cluster)


def _pool(key: str) -> list[str]:
    return [f"{key}0", f"{key}1", f"{key.upper()}1", f"{key}2", f"{key}3"]


def _random_node(rng: random.Random, name: str, first: str | None, *, depth: int) -> Node:
    names = [first] if first else []
    names += [f"k{depth}{name[-1]}{number}" for number in range(rng.randint(0 if first else 1, 2))]
    keys = {key: rng.choice((1, 2, 2)) for key in names} | {URL: rng.choice((1, 1, 1, 2, 3))}
    count = 0 if depth == 3 else rng.choice((0, 0, 1, 2) if depth else (0, 1, 1, 1, 2))
    subtasks = [
        _random_node(rng, f"{name}.s{number}", rng.choice(names), depth=depth + 1) for number in range(count)
    ]
    return node(name, keys, *subtasks)


def _random_leaf(rng: random.Random, found: Node) -> Leaf:
    values = {key.name: rng.choice(_pool(key.name)) for key in found.keys[:-1] if rng.random() > 0.02}
    outcomes = (True,) * 7 + (False, None)
    return Leaf(found.name, values, rng.choice(_pool(URL)), rng.choice(outcomes), rng.choice(outcomes))
