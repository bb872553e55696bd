"""The shape `graph` (shapes.md), and where its nodes stand when it is drawn.

Layers run from left to right: a node stands one layer after the last of its prerequisites (longest path), so that
every edge points right. Within a layer, nodes are ordered by the mean place of their neighbours, a few sweeps
forth and back: the barycentre heuristic of Sugiyama, Tagawa and Toda (1981), which removes most crossings.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from typing import Any, Final

from core.report.html import text
from core.report.html.reading import finite, mapping, mappings, sequence
from core.report.html.reading import text as text_of
from core.report.html.units import Unit

#: More nodes than this are listed and not drawn.
MOST_DRAWN: Final = 150
_SWEEPS: Final = 4
#: Pixels between nodes of a layer, the margin, and the radius of the heaviest node.
_DOWN, _MARGIN, _RADIUS = 62, 48, 19
_SMALLEST: Final = 6
#: The width that a graph is fitted into where its labels allow, the most between layers, and a letter's width.
_WIDTH, _FARTHEST, _LETTER = 960, 220, 7
#: Letters of an id below its node, and of the score beside it.
LABEL: Final = 14
_SCORE: Final = 6
#: Edges of the drawing; a node lists all that it builds on.
_MOST_EDGES: Final = 600


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """One checkpoint of a node; `unit` None: no row at all."""

    text: str
    unit: Unit | None


@dataclass(frozen=True, slots=True)
class Node:
    """A node: `weight` is its share of the score, `score` its own, both 0…1; None is missing."""

    number: int
    id: str
    kind: str
    text: str
    weight: float | None
    score: float | None
    checkpoints: tuple[Checkpoint, ...]
    parents: tuple[int, ...]
    children: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Placed:
    """A node of the drawing: its centre and half its width, in pixels; the nodes that the arrow keys lead to."""

    node: Node
    x: float
    y: float
    size: float
    up: int | None
    down: int | None


@dataclass(frozen=True, slots=True)
class Edge:
    """A line of the drawing, from the edge of one node to that of another."""

    x1: float
    y1: float
    x2: float
    y2: float
    kind: str


@dataclass(frozen=True, slots=True)
class Drawing:
    """Nodes and edges in place."""

    width: float
    height: float
    nodes: tuple[Placed, ...]
    edges: tuple[Edge, ...]


@dataclass(frozen=True, slots=True)
class Scheme:
    """The score under one weight scheme."""

    name: str
    value: float | None
    is_chosen: bool


@dataclass(frozen=True, slots=True)
class Graph:
    """A rubric's graph. `drawing` None: too large, or not acyclic. `units`: all that its checkpoints are about."""

    nodes: tuple[Node, ...]
    drawing: Drawing | None
    schemes: tuple[Scheme, ...]
    note: str
    units: frozenset[str]
    more: int


def graph_of(shape: Any, units: Mapping[str, Unit], *, longest: int, most: int) -> Graph | None:
    """The view of a `graph` shape; None where it has no node. `most`: checkpoints shown."""
    found = mapping(shape)
    listed = mappings(found.get("nodes"))
    if not listed:
        return None
    numbers: dict[str, int] = {}
    for place, entry in enumerate(listed):
        numbers.setdefault(text_of(entry.get("id")), place)
    edges = _edges(found.get("edges"), numbers)
    parents: list[list[int]] = [[] for _ in listed]
    children: list[list[int]] = [[] for _ in listed]
    for start, end, _ in edges:
        parents[end].append(start)
        children[start].append(end)
    nodes: list[Node] = []
    named: set[str] = set()
    left = most
    for place, entry in enumerate(listed):
        checkpoints = mappings(entry.get("checkpoints"))
        named.update(text_of(checkpoint.get("unit")) for checkpoint in checkpoints)
        shown = tuple(
            Checkpoint(text.cut(text_of(one.get("text")), longest), units.get(text_of(one.get("unit"))))
            for one in checkpoints[:left]
        )
        left -= len(shown)
        nodes.append(
            Node(
                number=place,
                id=text.name(text_of(entry.get("id"))),
                kind=text.name(text_of(entry.get("kind"))),
                text=text.cut(text_of(entry.get("text")), longest),
                weight=finite(entry.get("weight")),
                score=finite(entry.get("score")),
                checkpoints=shown,
                parents=tuple(parents[place]),
                children=tuple(children[place]),
            )
        )
    n_checkpoints = sum(len(mappings(entry.get("checkpoints"))) for entry in listed)
    chosen = text_of(found.get("scheme"))
    return Graph(
        nodes=tuple(nodes),
        drawing=_drawn(nodes, edges) if len(nodes) <= MOST_DRAWN else None,
        schemes=tuple(
            Scheme(text.name(name), finite(value), is_chosen=name == chosen)
            for name, value in list(mapping(found.get("schemes")).items())[:20]
        ),
        note=text.cut(text_of(found.get("note")), longest or text.NAME),
        units=frozenset(named),
        more=n_checkpoints - (most - left),
    )


def _edges(listed: Any, numbers: Mapping[str, int]) -> list[tuple[int, int, str]]:
    """(from, to, kind) by node number, each pair once; edges of nodes that are not there are passed over."""
    found: dict[tuple[int, int], str] = {}
    for entry in sequence(listed):
        start, end, *rest = [*sequence(entry), "", ""][:3]
        if (
            isinstance(start, str)
            and isinstance(end, str)
            and start in numbers
            and end in numbers
            and start != end
        ):
            kind = rest[0] if rest and rest[0] in ("weak", "hard") else "strong"
            found.setdefault((numbers[start], numbers[end]), kind)
    return [(start, end, kind) for (start, end), kind in found.items()]


def layers(parents: Sequence[Sequence[int]]) -> list[list[int]] | None:
    """The nodes of each layer, crossings reduced; None for a graph with a cycle."""
    try:
        order = list(TopologicalSorter(dict(enumerate(parents))).static_order())
    except CycleError:
        return None
    depth = [0] * len(parents)
    children: list[list[int]] = [[] for _ in parents]
    for node in order:
        depth[node] = max((depth[parent] + 1 for parent in parents[node]), default=0)
        for parent in parents[node]:
            children[parent].append(node)
    found: list[list[int]] = [[] for _ in range(max(depth, default=0) + 1)]
    for node in range(len(parents)):
        found[depth[node]].append(node)
    for _ in range(_SWEEPS):
        _sweep(found, parents)
        _sweep(found[::-1], children)
    return found


def _sweep(found: Sequence[list[int]], neighbours: Sequence[Sequence[int]]) -> None:
    """Order each layer by the mean place of its nodes' neighbours; a node without any stays where it is."""
    places = {node: (place + 1) / (len(layer) + 1) for layer in found for place, node in enumerate(layer)}
    for layer in found:
        wish = {
            node: sum(places[other] for other in neighbours[node]) / len(neighbours[node])
            if neighbours[node]
            else places[node]
            for node in layer
        }
        layer.sort(key=lambda node: (wish[node], node))
        for place, node in enumerate(layer):
            places[node] = (place + 1) / (len(layer) + 1)


def _drawn(nodes: Sequence[Node], edges: Sequence[tuple[int, int, str]]) -> Drawing | None:
    found = layers([node.parents for node in nodes])
    if found is None:
        return None
    height = 2 * _MARGIN + _DOWN * (max(map(len, found)) - 1)
    heaviest = max((node.weight or 0 for node in nodes), default=0) or 1
    label = max(min(len(node.id), LABEL) for node in nodes) + _SCORE
    across_px = max(label * _LETTER, min(_FARTHEST, _WIDTH // max(1, len(found) - 1)))
    placed: dict[int, Placed] = {}
    for across, layer in enumerate(found):
        top = (height - _DOWN * (len(layer) - 1)) / 2
        for down, number in enumerate(layer):
            share = max(0.0, min(1.0, (nodes[number].weight or 0) / heaviest))
            placed[number] = Placed(
                node=nodes[number],
                x=_MARGIN + across_px * across,
                y=top + _DOWN * down,
                # areas, not widths, are in the ratio of weights
                size=round(max(_SMALLEST, _RADIUS * share**0.5), 1),
                up=layer[down - 1] if down else None,
                down=layer[down + 1] if down + 1 < len(layer) else None,
            )
    lines = tuple(_line(placed[start], placed[end], kind) for start, end, kind in edges[:_MOST_EDGES])
    in_order = tuple(placed[number] for layer in found for number in layer)
    return Drawing(2 * _MARGIN + across_px * (len(found) - 1), height, in_order, lines)


def _line(start: Placed, end: Placed, kind: str) -> Edge:
    """From the right side of one node to the left of the other, with a little air."""
    return Edge(start.x + start.size + 2, start.y, end.x - end.size - 4, end.y, kind)
