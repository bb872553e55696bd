"""A task's graph: steps, and what builds on what.

Edges run from a prerequisite (a node's *parent*) to what builds on it (its *child*). A *leaf* is a node that
nothing builds on: a terminal conclusion. A finite graph without a cycle has at least one. Nothing here recurses,
so the depth of a graph is bounded by memory alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter


class Cyclic(ValueError):
    """The steps wait for each other. `cycle` begins and ends with the same id, each id a parent of the next."""

    def __init__(self, cycle: Sequence[str]) -> None:
        self.cycle = tuple(cycle)
        super().__init__(" → ".join(self.cycle))


@dataclass(frozen=True)
class Graph:
    """An acyclic graph over node numbers 0 … n−1, in the order in which the nodes are listed.

    `parents[v]` and `children[v]` are node numbers; `order` has every node once, parents before children.
    """

    ids: tuple[str, ...]
    parents: tuple[tuple[int, ...], ...]
    children: tuple[tuple[int, ...], ...]
    order: tuple[int, ...]

    @classmethod
    def of(cls, parents: Mapping[str, Sequence[str]]) -> Graph:
        """From each node's parents. Raises KeyError for a parent that is no node, Cyclic for a cycle."""
        ids = tuple(parents)
        numbers = {name: number for number, name in enumerate(ids)}
        above = tuple(tuple(numbers[parent] for parent in parents[name]) for name in ids)
        below: list[list[int]] = [[] for _ in ids]
        for node, its_parents in enumerate(above):
            for parent in its_parents:
                below[parent].append(node)
        sorter = TopologicalSorter(dict(enumerate(above)))
        try:
            order = tuple(sorter.static_order())
        except CycleError as error:
            raise Cyclic(_from_smallest([ids[node] for node in error.args[1]])) from None
        return cls(ids, above, tuple(map(tuple, below)), order)

    def __len__(self) -> int:
        return len(self.ids)

    def leaves(self) -> list[int]:
        """The nodes that nothing builds on."""
        return [node for node, below in enumerate(self.children) if not below]

    def heights(self) -> list[int]:
        """The number of edges on the longest way from each node to a leaf."""
        heights = [0] * len(self)
        for node in reversed(self.order):
            heights[node] = max((heights[child] + 1 for child in self.children[node]), default=0)
        return heights

    def descendant_counts(self) -> list[int]:
        """How many distinct nodes build on each node, directly or not."""
        # a node's bit is its place from the end: what is found early stays short
        places = {node: place for place, node in enumerate(reversed(self.order))}
        counts = [0] * len(self)
        for node, reached in self._reached(lambda node: 1 << places[node]):
            counts[node] = reached.bit_count() - 1
        return counts

    def leaf_counts(self) -> list[int]:
        """How many distinct leaves each node reaches; a leaf reaches itself."""
        bits = {leaf: 1 << place for place, leaf in enumerate(self.leaves())}
        counts = [0] * len(self)
        for node, reached in self._reached(lambda node: bits.get(node, 0)):
            counts[node] = reached.bit_count()
        return counts

    def redundant_edges(self) -> list[tuple[int, int]]:
        """The edges (parent, child) between nodes that a longer way connects as well, by node numbers.

        Without them what is left is the transitive reduction, which an acyclic graph has one of
        (Aho, Garey and Ullman 1972).
        """
        places = {node: place for place, node in enumerate(reversed(self.order))}
        found: list[tuple[int, int]] = []
        kept: dict[int, int] = {}
        waiting = [len(parents) for parents in self.parents]
        for node in reversed(self.order):
            reached = 0
            # the nearest child comes first: whatever it reaches is no longer needed as a child
            for child in sorted(self.children[node], key=places.__getitem__, reverse=True):
                if reached >> places[child] & 1:
                    found.append((node, child))
                reached |= kept[child]
                waiting[child] -= 1
                if not waiting[child]:
                    del kept[child]
            if waiting[node]:
                kept[node] = reached | 1 << places[node]
        return sorted(found)

    def _reached(self, own: Callable[[int], int]) -> Iterator[tuple[int, int]]:
        """(node, bits of its own and of all that builds on it), children first.

        No linear algorithm is known for this; the bits of a node are freed when its last parent has read them.
        """
        kept: dict[int, int] = {}
        waiting = [len(parents) for parents in self.parents]
        for node in reversed(self.order):
            reached = own(node)
            for child in self.children[node]:
                reached |= kept[child]
                waiting[child] -= 1
                if not waiting[child]:
                    del kept[child]
            if waiting[node]:
                kept[node] = reached
            yield node, reached


def _from_smallest(cycle: Sequence[str]) -> list[str]:
    """The same cycle, begun with its smallest id: one spelling whatever the order of listing."""
    ring = list(cycle[:-1])
    start = ring.index(min(ring))
    return [*ring[start:], *ring[:start], ring[start]]
