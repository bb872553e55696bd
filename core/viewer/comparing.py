"""Runs side by side, as pictures: intervals, effort curves, and how far judges agree.

The numbers are those of `python -m core.compare` (core/comparison); its tables stand below the pictures.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from core.audit import Table
from core.comparison.results import Board, Comparison, Judges, SystemRow
from core.report.html import charts

_NUMBER: Final = re.compile(
    r"[<±+−\-\s]*[\d.,]+(/[\d,]+|\s?[%$s])?(\s…\s[+−\-]?[\d.,]+)?(\s\(below 0\))?|[–?]?|unknown"
)
#: Pixels that the name of a point takes.
_NAME_WIDTH, _NAME_HEIGHT = 110, 13


@dataclass(frozen=True, slots=True)
class Line:
    """A system on a line from 0 to the scale's end."""

    row: SystemRow
    drawn: charts.Row


@dataclass(frozen=True, slots=True)
class Dot:
    """A system in a curve: places in pixels; `low` and `high` are the interval's ends, None where there is none.

    `label`: the height of its name, out of the way of the others'.
    """

    point: charts.Point
    low: float | None
    high: float | None
    is_best: bool
    shape: int
    label: float


@dataclass(frozen=True, slots=True)
class Curve:
    """Score against what it takes. `paths`: the efforts of one system joined, as SVG path data."""

    title: str
    unit: str
    chart: charts.Scatter
    dots: tuple[Dot, ...]
    paths: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Picture:
    """A board with what is drawn of it. `scale`: the upper end of the metric, 1 or 100."""

    board: Board
    scale: float
    lines: tuple[Line, ...]
    curves: tuple[Curve, ...]


@dataclass(frozen=True, slots=True)
class Matrix:
    """Cohen's kappa of each two judges; a cell is (kappa, questions, step of a colour ramp), or None."""

    names: tuple[str, ...]
    rows: tuple[tuple[tuple[float | None, int, int] | None, ...], ...]


@dataclass(frozen=True, slots=True)
class Shown:
    """A table of the comparison. `numeric`: which of its columns hold numbers."""

    table: Table
    numeric: tuple[bool, ...]


def pictures(comparison: Comparison) -> tuple[Picture, ...]:
    """What is drawn of each board."""
    return tuple(_picture(board) for board in comparison.boards)


def _picture(board: Board) -> Picture:
    ends = [end for row in board.systems for end in (row.score.value, row.score.high) if end is not None]
    scale = 100.0 if any(end > 1 for end in ends) else 1.0
    return Picture(
        board,
        scale,
        tuple(
            Line(row, charts.row(row.score.value, scale, row.score.low, row.score.high)) for row in board.systems
        ),
        tuple(
            curve
            for curve in (
                _curve(board, scale, "Score against cost", "dollars a task", "usd_per_task", "best_for_cost"),
                _curve(board, scale, "Score against time", "seconds, the median", "latency_s", "best_for_time"),
            )
            if curve is not None
        ),
    )


def _curve(board: Board, scale: float, title: str, unit: str, across: str, best: str) -> Curve | None:
    rows = [row for row in board.systems if row.score.value is not None and getattr(row, across) is not None]
    chart = charts.scatter([(row.system, getattr(row, across), row.score.value) for row in rows], scale)
    if chart is None:
        return None
    families = list(dict.fromkeys(_family(row) for row in rows))
    labels = _labels(chart.points)
    dots = tuple(
        Dot(
            point,
            _up(row.score.low, scale),
            _up(row.score.high, scale),
            bool(getattr(row, best)),
            families.index(_family(row)) % 4,
            label,
        )
        for row, point, label in zip(rows, chart.points, labels, strict=True)
    )
    paths = []
    for family in families:
        own = sorted(
            (point.x, point.y) for row, point in zip(rows, chart.points, strict=True) if _family(row) == family
        )
        if len(own) > 1:
            paths.append("M" + "L".join(f"{x} {y}" for x, y in own))
    return Curve(title, unit, chart, dots, tuple(paths))


def _labels(points: Sequence[charts.Point]) -> list[float]:
    """Where the points' names stand: beside them, and lower where another name is already."""
    placed: list[tuple[float, float]] = []
    for point in points:
        height = point.y - 6
        while any(abs(x - point.x) < _NAME_WIDTH and abs(y - height) < _NAME_HEIGHT for x, y in placed):
            height += _NAME_HEIGHT
        placed.append((point.x, height))
    return [round(height, 1) for _, height in placed]


def _family(row: SystemRow) -> str:
    """The system without its effort, by which its efforts are joined."""
    return row.system.removesuffix(f"({row.effort})").strip() if row.effort else row.system


def _up(value: float | None, scale: float) -> float | None:
    """The place of a number on the canvas of charts.scatter."""
    if value is None:
        return None
    room = charts.HEIGHT - charts.TOP - charts.BOTTOM
    return round(charts.HEIGHT - charts.BOTTOM - room * min(max(value / scale, 0.0), 1.0), 1)


def matrix(judges: Judges) -> Matrix:
    """How far each two judges agree."""
    names = tuple(facts.judge for facts in judges.judges)
    known = {(pair.first, pair.second): pair for pair in judges.pairs}
    known |= {(pair.second, pair.first): pair for pair in judges.pairs}
    rows = []
    for first in names:
        cells: list[tuple[float | None, int, int] | None] = []
        for second in names:
            pair = known.get((first, second))
            if pair is None:
                cells.append(None)
            else:
                cells.append((pair.kappa.value, pair.n, charts.ramp(pair.kappa.value)))
        rows.append(tuple(cells))
    return Matrix(names, tuple(rows))


def shown(tables: Iterable[Table]) -> tuple[Shown, ...]:
    """Tables with the columns that hold numbers, which stand at the right."""
    return tuple(
        Shown(
            table,
            tuple(
                all(_NUMBER.fullmatch(str(row[place])) for row in table.rows)
                for place in range(len(table.columns))
            ),
        )
        for table in tables
    )
