"""One level of a hierarchy: how its children's scores become its own.

A child is an entity, or a leaf at the url level. For each of the four base metrics:

    precision = mean of the children that have a value, surplus and duplicates included
    recall    = the worst value of each identity, the best `required` of them, padded with 0, over `required`

Below a node's root level a hard metric is all or nothing: 1 where it reaches 1, else 0. None is missing: a child
without a value is in no mean, and a level without a valued child has no precision, but a recall of 0.

Sums are exact (math.fsum) and rounded once, so the order of the children changes no bit. It is also what gives the
released scorer's numbers to their last digit, which adding from left to right does not.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Final, NamedTuple

from core.fold import mean

Value = float | None

#: The six numbers of one lineage, in the order in which they are written.
NAMES: Final = ("soft_precision", "soft_recall", "soft_f1", "hard_precision", "hard_recall", "hard_f1")


class Scores(NamedTuple):
    """The base metrics of one lineage, each 0…1 or None (missing); F1 is always made of the finished pair."""

    soft_precision: Value
    soft_recall: Value
    hard_precision: Value
    hard_recall: Value

    @property
    def soft_f1(self) -> Value:
        return f1(self.soft_precision, self.soft_recall)

    @property
    def hard_f1(self) -> Value:
        return f1(self.hard_precision, self.hard_recall)

    def named(self) -> dict[str, Value]:
        """All six numbers by name."""
        return {name: getattr(self, name) for name in NAMES}


class Lineages(NamedTuple):
    """Scores under both verdicts: `full` (page and evidence), `retrieval` (the page alone)."""

    full: Scores
    retrieval: Scores


#: A leaf's scores by its outcome; None is missing.
LEAF: Final[Mapping[bool | None, Scores]] = {
    True: Scores(1.0, 1.0, 1.0, 1.0),
    False: Scores(0.0, 0.0, 0.0, 0.0),
    None: Scores(None, None, None, None),
}
#: Both outcomes of a leaf, full and retrieval, as scores.
LEAVES: Final[Mapping[tuple[bool | None, bool | None], Lineages]] = {
    (full, retrieval): Lineages(LEAF[full], LEAF[retrieval]) for full in LEAF for retrieval in LEAF
}
ZERO: Final = LEAVES[False, False]


def f1(precision: Value, recall: Value) -> Value:
    """The harmonic mean; 0 where both are 0, missing where either is."""
    if precision is None or recall is None:
        return None
    total = precision + recall
    return 2 * precision * recall / total if total else 0.0


def recall(identities: Iterable[Hashable], values: Iterable[Value], required: int) -> float:
    """Of each identity the worst value, of these the best `required`, over `required`."""
    worst: dict[Hashable, float] = {}
    for identity, value in zip(identities, values, strict=True):
        if value is not None and value < worst.get(identity, math.inf):
            worst[identity] = value
    return math.fsum(sorted(worst.values(), reverse=True)[:required]) / required


def level_scores(
    identities: Sequence[str], children: Sequence[Lineages], required: int, *, is_root: bool
) -> Lineages:
    """A level's scores from its children's. `is_root`: the node's first key, whose hard metrics stay shares."""
    if len(children) > _FEW:
        return _of_many(identities, children, required, is_root=is_root)
    numbers: dict[str, int] = {}
    who = tuple(numbers.setdefault(identity, len(numbers)) for identity in identities)
    return _of_few(who, tuple(children), required, is_root=is_root)


def _of_many(
    identities: Sequence[Hashable], children: Sequence[Lineages], required: int, *, is_root: bool
) -> Lineages:
    full, retrieval = zip(*children, strict=True) if children else ((), ())
    return Lineages(
        _in_one_lineage(identities, full, required, is_root=is_root),
        _in_one_lineage(identities, retrieval, required, is_root=is_root),
    )


#: Nearly every level of a real task is a url or two that hold or fail: the same few sums over and over.
_FEW: Final = 3
_of_few = lru_cache(maxsize=4096)(_of_many)


def _in_one_lineage(
    identities: Sequence[Hashable], children: Sequence[Scores], required: int, *, is_root: bool
) -> Scores:
    soft_precisions, soft_recalls, hard_precisions, hard_recalls = (
        zip(*children, strict=True) if children else ((), (), (), ())
    )
    hard_precision = mean(hard_precisions)
    hard_recall: Value = recall(identities, hard_recalls, required)
    return Scores(
        mean(soft_precisions),
        recall(identities, soft_recalls, required),
        hard_precision if is_root else _whole(hard_precision),
        hard_recall if is_root else _whole(hard_recall),
    )


def composed(own: Scores, factors: Sequence[Scores]) -> Scores:
    """An entity's scores: its own times its subtasks'. A missing factor is 0, a missing own value missing."""
    return Scores(*(_product(values) for values in zip(own, *factors, strict=True)))


def _product(values: tuple[Value, ...]) -> Value:
    own, *factors = values
    if own is None:
        return None
    return math.prod((factor or 0.0 for factor in factors), start=own)


def _whole(value: Value) -> Value:
    return None if value is None else float(value >= 1)
