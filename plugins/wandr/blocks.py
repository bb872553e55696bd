"""Which values of a key may be the same, when there are too many to be shown to the judge at once.

Up to `LARGEST` values are one block. Beyond it, values that look alike are brought together: their words, sorted,
differ little, or they share a word that few others have. Values that look like no other stand alone and are not
asked about. Blocks may overlap; what the judge joins in any of them is one, transitively.
"""

from __future__ import annotations

import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

#: Values in one block.
LARGEST: Final = 150
#: Likeness (0…100, of the sorted words) at which two values are brought together; raised where too many are.
LIKENESS: Final = (70, 80, 90)
#: Likest values that a value is brought together with; others come in through these.
NEAREST: Final = 32
#: A word that no more values than this have brings them together.
RARE: Final = 6


class Groups:
    """A partition of 0…n-1 that grows coarser: union-find."""

    def __init__(self, n: int) -> None:
        self._parents = list(range(n))

    def find(self, at: int) -> int:
        """The least member of its group."""
        root = at
        while self._parents[root] != root:
            root = self._parents[root]
        while self._parents[at] != root:
            self._parents[at], at = root, self._parents[at]
        return root

    def join(self, members: Sequence[int]) -> None:
        """Put these into one group."""
        roots = {self.find(member) for member in members}
        least = min(roots, default=0)
        for root in roots:
            self._parents[root] = least

    def groups(self) -> list[list[int]]:
        """Every group, members ascending, in the order of the least."""
        found: dict[int, list[int]] = {}
        for at in range(len(self._parents)):
            found.setdefault(self.find(at), []).append(at)
        return list(found.values())


def blocks(values: Sequence[str], largest: int = LARGEST) -> list[list[int]]:
    """Places of values to be compared with each other, in blocks of at most `largest`; deterministic."""
    if len(values) < 2:
        return []
    if len(values) <= largest:
        return [list(range(len(values)))]
    folded = [_folded(value) for value in values]
    alike = _components(range(len(values)), folded, LIKENESS, largest)
    return list(_packed((group for group in alike if len(group) > 1), largest))


def _components(
    places: Sequence[int], folded: Sequence[str], steps: Sequence[int], largest: int
) -> list[list[int]]:
    """The places in groups of values that look alike; a group that is too large is cut, harder step by step."""
    groups = Groups(len(places))
    texts = [folded[place] for place in places]
    for pair in _alike(texts, steps[0]):
        groups.join(pair)
    if len(steps) == len(LIKENESS):  # a word that is rare among all
        for members in _sharing(texts):
            groups.join(members)
    found: list[list[int]] = []
    for group in groups.groups():
        members = [places[at] for at in group]
        if len(members) <= largest:
            found.append(members)
        elif len(steps) > 1:
            # what a harder look takes apart is still compared with its neighbours
            found += [*_components(members, folded, steps[1:], largest), *_windows(members, folded, largest)]
        else:
            found += _windows(members, folded, largest)
    return found


def _windows(members: Sequence[int], folded: Sequence[str], largest: int) -> list[list[int]]:
    """Overlapping runs of the members in the order of their words."""
    ordered = sorted(members, key=lambda place: (folded[place], place))
    step = max(1, largest - largest // 4)
    starts = range(0, max(1, len(ordered) - largest // 4), step)
    return [sorted(ordered[start : start + largest]) for start in starts]


def _alike(texts: Sequence[str], likeness: int) -> Iterator[tuple[int, int]]:
    from rapidfuzz import fuzz, process

    for row, text in enumerate(texts):
        others = texts[row + 1 :]
        for _, _, place in process.extract(text, others, scorer=fuzz.ratio, score_cutoff=likeness, limit=NEAREST):
            yield row, row + 1 + place


def _sharing(texts: Sequence[str]) -> Iterator[list[int]]:
    having: dict[str, list[int]] = defaultdict(list)
    for at, text in enumerate(texts):
        for word in set(text.split()):
            if len(word) > 2:
                having[word].append(at)
    for members in having.values():
        if 1 < len(members) <= RARE:
            yield members


def _packed(groups: Iterable[Sequence[int]], largest: int) -> Iterator[list[int]]:
    """Small groups put together, so that the judge is asked fewer times."""
    block: list[int] = []
    for group in groups:
        if block and len(block) + len(set(group) - set(block)) > largest:
            yield sorted(block)
            block = []
        block += [place for place in group if place not in block]
    if block:
        yield sorted(block)


def _folded(value: str) -> str:
    """The words of a value, sorted, without case, accents and punctuation."""
    plain = unicodedata.normalize("NFKD", value.casefold())
    letters = "".join(
        character if character.isalnum() else "" if unicodedata.combining(character) else " "
        for character in plain
    )
    return " ".join(sorted(letters.split()))
