"""Where a report draws what: layers of graphs, bins, ticks."""

from __future__ import annotations

import pytest

from core.report.html import charts
from core.report.html.graph import graph_of, layers


@pytest.mark.parametrize(
    ("parents", "found"),
    [
        ([], [[]]),
        ([[]], [[0]]),
        ([[], [0], [1]], [[0], [1], [2]]),
        ([[], [0], [0], [1, 2]], [[0], [1, 2], [3]]),
        ([[], [0], [0, 1]], [[0], [1], [2]]),
        ([[2], [], [1]], [[1], [2], [0]]),
        # two chains that cross as listed do not when drawn
        ([[], [], [1], [0]], [[0, 1], [3, 2]]),
        ([[1], [0]], None),
        ([[0]], None),
    ],
    ids=["nothing", "one", "chain", "diamond", "longest path", "backwards", "crossing", "circle", "loop"],
)
def test_layers(parents: list[list[int]], found: list[list[int]] | None) -> None:
    assert layers(parents) == found


def test_every_edge_points_right_and_no_two_nodes_meet() -> None:
    ids = [f"n{place}" for place in range(40)]
    edges = [[ids[place // 2], ids[place], "strong"] for place in range(1, 40)]
    shape = {"nodes": [{"id": name, "weight": 1 / 40, "score": 0.5} for name in ids], "edges": edges}
    graph = graph_of(shape, {}, longest=100, most=10)
    assert graph is not None
    assert graph.drawing is not None
    assert len(graph.drawing.edges) == 39
    assert all(edge.x1 < edge.x2 for edge in graph.drawing.edges)
    places = {(node.x, node.y) for node in graph.drawing.nodes}
    assert len(places) == 40
    assert all(0 < x < graph.drawing.width and 0 < y < graph.drawing.height for x, y in places)


def test_areas_are_in_the_ratio_of_weights() -> None:
    shape = {"nodes": [{"id": "a", "weight": 0.4}, {"id": "b", "weight": 0.1}, {"id": "c"}]}
    graph = graph_of(shape, {}, longest=100, most=10)
    assert graph is not None
    assert graph.drawing is not None
    assert [node.size for node in graph.drawing.nodes] == [19.0, 9.5, 6.0]


def test_arrow_keys_stay_in_the_layer() -> None:
    shape = {"nodes": [{"id": name} for name in "abc"]}
    graph = graph_of(shape, {}, longest=100, most=10)
    assert graph is not None
    assert graph.drawing is not None
    assert [(node.up, node.down) for node in graph.drawing.nodes] == [(None, 1), (0, 2), (1, None)]


@pytest.mark.parametrize(("n", "is_drawn"), [(150, True), (151, False)])
def test_a_large_graph_is_listed(n: int, is_drawn: bool) -> None:
    graph = graph_of({"nodes": [{"id": f"n{place}"} for place in range(n)]}, {}, longest=100, most=10)
    assert graph is not None
    assert (graph.drawing is not None) == is_drawn
    assert len(graph.nodes) == n


def test_long_names_do_not_pull_a_graph_apart() -> None:
    ids = ["x" * 500, "y" * 500]
    graph = graph_of({"nodes": [{"id": name} for name in ids], "edges": [[*ids, "weak"]]}, {}, longest=9, most=9)
    assert graph is not None
    assert graph.drawing is not None
    assert graph.drawing.width == 2 * 48 + 220


@pytest.mark.parametrize(
    ("values", "scale", "bins"),
    [
        ([0.0, 4.9, 5.0, 100.0, 100.0], 100, [(2, 0, 5), (1, 5, 10), (2, 95, 100)]),
        ([0.5], 1, [(1, 0.5, 0.55)]),
        ([-3.0, 250.0], 100, [(1, 0, 5), (1, 95, 100)]),
    ],
    ids=["ends", "scale of 1", "outside"],
)
def test_a_histogram_counts_every_task(
    values: list[float], scale: float, bins: list[tuple[int, float, float]]
) -> None:
    chart = charts.histogram(values, scale, None, None, None)
    assert chart is not None
    assert [(bar.count, round(bar.low, 9), round(bar.high, 9)) for bar in chart.bars] == bins
    assert chart.n == len(values) == len(chart.rug)


def test_there_is_no_histogram_of_nothing() -> None:
    assert charts.histogram([], 100, None, None, None) is None


@pytest.mark.parametrize(
    ("pairs", "n", "unknown"),
    [
        ([("a", 1.0, 50.0), ("b", 2.0, 60.0), ("c", None, 1.0), ("d", 1.0, None)], 2, 2),
        ([("a", 0.0, 0.0), ("b", 0.0, 100.0)], 2, 0),
        ([("a", 1.0, 50.0), ("b", None, 60.0)], None, None),
        ([], None, None),
    ],
    ids=["some", "free", "one", "none"],
)
def test_a_scatter_counts_what_it_lacks(
    pairs: list[tuple[str, float | None, float | None]], n: int | None, unknown: int | None
) -> None:
    chart = charts.scatter(pairs, 100)
    assert (None if chart is None else (len(chart.points), chart.unknown)) == (None if n is None else (n, unknown))
    for point in chart.points if chart is not None else ():
        assert charts.LEFT <= point.x <= charts.WIDTH
        assert 0 <= point.y <= charts.HEIGHT


@pytest.mark.parametrize(
    ("end", "whole", "found"),
    [
        (100, False, [0, 20, 40, 60, 80, 100]),
        (1, False, [0, 0.2, 0.4, 0.6, 0.8, 1]),
        (0.031, False, [0, 0.01, 0.02, 0.03]),
        (3, True, [0, 1, 2, 3]),
        (1, True, [0, 1]),
        (0, False, [0]),
        (7e5, False, [0, 200000, 400000, 600000]),
    ],
)
def test_ticks_are_round(end: float, whole: bool, found: list[float]) -> None:
    assert charts.ticks(end, whole=whole) == found


@pytest.mark.parametrize(
    ("score", "step"), [(None, -1), (0.0, 0), (0.2, 1), (0.999, 4), (1.0, 4), (-1.0, 0), (7.0, 4)]
)
def test_the_ramp_has_five_steps(score: float | None, step: int) -> None:
    assert charts.ramp(score) == step
