"""Which claims of two lists say the same: one to one.

Without a judge, two claims are compared by their words: the share of key terms in common (Jaccard), and no match
where numbers or negation differ (core/judge/rules.py). Whether one covers the other is asked of its terms and
numbers alone. That finds claims that are put alike and misses
paraphrases, so an audit says so, and takes the matches of a person or a model from a file instead (`--matches`).
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from core.errors import InputError
from core.judge.rules import Sentence, read_sentence
from core.taskfile import json_rows

#: Claims with less in common are not the same.
LEAST: Final = 0.5

Pair = tuple[str, str]
Similarity = Callable[[Sentence, Sentence], float]


@dataclass(frozen=True, slots=True)
class _Claim:
    """A claim as the rules see it, and its text without what is no part of its words."""

    sentence: Sentence
    folded: str

    @classmethod
    def of(cls, text: str) -> _Claim:
        plain = unicodedata.normalize("NFKC", text)
        return cls(read_sentence(plain), " ".join(plain.casefold().split()))

    def like(self, other: _Claim, how: Similarity) -> float:
        """Equal texts are alike, also where the rules find no key term in them ("Yes"; other scripts)."""
        return 1.0 if self.folded == other.folded else how(self.sentence, other.sentence)


def same(one: Sentence, other: Sentence) -> float:
    """0…1: the share of the two claims' key terms that both have; 0 where numbers or negation differ."""
    if one.numbers != other.numbers or one.negated != other.negated:
        return 0.0
    union = one.terms | other.terms
    return len(one.terms & other.terms) / len(union) if union else float(bool(one.numbers))


def covers(one: Sentence, other: Sentence) -> float:
    """0…1: the share of the first claim's key terms that the second has; 0 where it lacks a number or negation."""
    if not one.numbers <= other.numbers or one.negated != other.negated:
        return 0.0
    return len(one.terms & other.terms) / len(one.terms) if one.terms else float(bool(one.numbers))


def match(
    one: Mapping[str, str], other: Mapping[str, str], *, least: float = LEAST, how: Similarity = same
) -> list[Pair]:
    """The largest one-to-one matching of two lists of claims (id → text) whose similarity is at least `least`.

    Augmenting paths (Kuhn 1955), most similar pairs first, so that of several largest matchings the likelier
    pairs tend to be kept. Sorted by the first list's order.
    """
    left, right = (
        {key: _Claim.of(text) for key, text in one.items()},
        {key: _Claim.of(text) for key, text in other.items()},
    )
    near: dict[str, list[str]] = {}
    for name, claim in left.items():
        found = [(-claim.like(candidate, how), key) for key, candidate in right.items()]
        near[name] = [key for negative, key in sorted(found) if -negative >= least]
    taken: dict[str, str] = {}
    best = {name: left[name].like(right[keys[0]], how) if keys else 0.0 for name, keys in near.items()}
    strongest = sorted(left, key=lambda name: (-best[name], name))
    for name in strongest:
        _augment(name, near, taken)
    by_left = {name: key for key, name in taken.items()}
    return [(name, by_left[name]) for name in one if name in by_left]


def _augment(start: str, near: Mapping[str, Sequence[str]], taken: dict[str, str]) -> None:
    """Give `start` a partner, moving others to their next ones where that makes room; breadth first."""
    came_from: dict[str, str] = {}
    queue = [start]
    for name in queue:
        for key in near[name]:
            if key in came_from:
                continue
            came_from[key] = name
            if key not in taken:
                _hand_over(key, came_from, taken)
                return
            queue.append(taken[key])


def _hand_over(free: str, came_from: Mapping[str, str], taken: dict[str, str]) -> None:
    """Give a free partner to the one who came upon it, and what that one held to the one before, to the start."""
    held = {name: key for key, name in taken.items()}
    key: str | None = free
    while key is not None:
        asker = came_from[key]
        taken[key] = asker
        key = held.get(asker)


@dataclass(frozen=True)
class Matches:
    """What a person or a model found: pairs that say the same, and claims of the second list without relevance."""

    pairs: Mapping[str, Sequence[Pair]]
    irrelevant: Mapping[str, frozenset[str]]


def read_matches(path: Path) -> Matches:
    """From a file of rows `{"task_id", "a", "b"}` (a pair) and `{"task_id", "b", "relevant": false}`.

    `a` and `b` are ids of the first and of the second list. Raises InputError for an id that stands in two pairs.
    """
    pairs: dict[str, list[Pair]] = {}
    irrelevant: dict[str, set[str]] = {}
    used: set[tuple[str, str, str]] = set()
    for place, row in json_rows(path):
        task, second = _text(row, "task_id", place), _text(row, "b", place)
        if row.get("relevant") is False:
            irrelevant.setdefault(task, set()).add(second)
            continue
        first = _text(row, "a", place)
        for side, key in (("a", first), ("b", second)):
            if (task, side, key) in used:
                raise InputError(
                    f"{key!r} is matched twice", where=f"{place}, field {side}", expected="one-to-one matches"
                )
            used.add((task, side, key))
        pairs.setdefault(task, []).append((first, second))
    return Matches(pairs, {task: frozenset(found) for task, found in irrelevant.items()})


def known(task: str, pairs: Iterable[Pair], one: Mapping[str, str], other: Mapping[str, str]) -> list[Pair]:
    """The pairs, all of whose ids the lists have; raises InputError."""
    found = list(pairs)
    for first, second in found:
        for side, key, listed in (("a", first, one), ("b", second, other)):
            if key not in listed:
                raise InputError(f"task {task!r} has no claim {key!r} on side {side}", where="--matches")
    return found


def _text(row: object, name: str, place: str) -> str:
    value = row.get(name) if isinstance(row, Mapping) else None
    if not isinstance(value, str) or not value:
        raise InputError(
            "not a match", where=f"{place}, field {name}", expected="an id as text", got=repr(value)[:80]
        )
    return value
