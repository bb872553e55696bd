"""A draw of verdicts with known chances: stratified by task, verdict and kind, the same for the same seed.

Every verdict has a chance above 0 to be drawn, and a row's weight is one over that chance, so weighted shares of
the sample are those of the whole on average (Horvitz & Thompson 1952). Verdicts are put in the order of their
strata, at random within each, and drawn systematically: a stratum gets its expected number, up to one. With
`proportional` all chances are n/N. With `equal` every stratum is expected to give as much, or all it has: rare
verdicts are then seen more often, at the price that a row's weight tells something of its stratum.
"""

from __future__ import annotations

import random
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Literal

Allocation = Literal["proportional", "equal"]


@dataclass(frozen=True, slots=True)
class Stratified:
    """What a draw is made of: something, and the stratum that it belongs to (its parts in their order)."""

    key: tuple[str, ...]
    stratum: tuple[Hashable, ...]


def draw(
    items: Sequence[Stratified], n: int, *, seed: int, allocation: Allocation = "proportional"
) -> list[tuple[Stratified, float]]:
    """n items with their weights, in the order of strata; all of them, with weight 1, where there are no more.

    The same items in any order give the same draw. Raises ValueError for n below 1.
    """
    if n < 1:
        raise ValueError(f"n={n}, expected 1 or more")
    rng = random.Random(seed)  # noqa: S311  # a sample that can be drawn again, no secret
    strata: dict[tuple[str, ...], list[Stratified]] = {}
    for item in sorted(items, key=lambda item: item.key):
        strata.setdefault(tuple(map(str, item.stratum)), []).append(item)
    ordered = [strata[name] for name in sorted(strata)]
    for members in ordered:
        rng.shuffle(members)
    if n >= len(items):
        return [(item, 1.0) for members in ordered for item in members]
    sizes = [len(members) for members in ordered]
    chances = _chances(sizes, n, allocation)
    drawn: list[tuple[Stratified, float]] = []
    reached, next_point = 0.0, rng.random()
    for members, chance in zip(ordered, chances, strict=True):
        for item in members:
            reached += chance
            if reached > next_point:
                drawn.append((item, 1 / chance))
                next_point += 1
    return drawn


def _chances(sizes: Sequence[int], n: int, allocation: Allocation) -> list[float]:
    """The chance of each stratum's members; over all members they add up to n."""
    if allocation == "proportional":
        return [n / sum(sizes)] * len(sizes)
    # every stratum gives `each`, or all it has: what small ones can't give, larger ones do
    left, open_strata = float(n), sorted(range(len(sizes)), key=lambda place: sizes[place])
    given = [0.0] * len(sizes)
    while open_strata:
        each = left / len(open_strata)
        place = open_strata.pop(0)
        given[place] = min(float(sizes[place]), each)
        left -= given[place]
    return [share / size for share, size in zip(given, sizes, strict=True)]
