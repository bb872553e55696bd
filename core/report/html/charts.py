"""The charts of a report, as places on a canvas: what to draw where. Pure; a template turns them into SVG.

Every chart has its numbers beside it in a table or in its title, and nothing is told by colour alone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

#: The canvas of a chart and its margins, in pixels.
WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 640, 200, 48, 16, 24, 36
#: The canvas of a row of dots.
ROW_WIDTH, ROW_HEIGHT = 220, 20
_BINS: Final = 20
#: More points than this are not drawn; the table has them all.
_MOST_POINTS: Final = 1500
_STEPS: Final = (1, 2, 2.5, 5, 10)


@dataclass(frozen=True, slots=True)
class Tick:
    """A mark of an axis: its place in pixels and its number."""

    at: float
    label: str


@dataclass(frozen=True, slots=True)
class Bar:
    """A bin of a histogram: places in pixels, its count, and its ends in the metric's unit."""

    x: float
    y: float
    width: float
    height: float
    count: int
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Histogram:
    """A metric over tasks. `rug`: the place of each task; `mean`, `low`, `high`: the value and its interval."""

    bars: tuple[Bar, ...]
    rug: tuple[float, ...]
    x_ticks: tuple[Tick, ...]
    y_ticks: tuple[Tick, ...]
    mean: float | None
    low: float | None
    high: float | None
    n: int


@dataclass(frozen=True, slots=True)
class Point:
    """A task in a scatter: its place in pixels, what it is called, and its two numbers."""

    x: float
    y: float
    name: str
    across: float
    up: float


@dataclass(frozen=True, slots=True)
class Scatter:
    """Two numbers of each task against each other. `unknown`: tasks that lack one of them."""

    points: tuple[Point, ...]
    x_ticks: tuple[Tick, ...]
    y_ticks: tuple[Tick, ...]
    unknown: int


@dataclass(frozen=True, slots=True)
class Row:
    """A number on a line, with an interval and the tasks around it, as places in pixels; None is not drawn."""

    value: float | None
    low: float | None = None
    high: float | None = None
    dots: tuple[float, ...] = ()


def histogram(
    values: Sequence[float], scale: float, mean: float | None, low: float | None, high: float | None
) -> Histogram | None:
    """The distribution of a metric over its scale, which begins at 0; None of nothing.

    What lies outside of the scale is counted in the bins at its ends.
    """
    if not values:
        return None
    counts = [0] * _BINS
    for value in values:
        counts[min(_BINS - 1, max(0, int(value / scale * _BINS)))] += 1
    top = max(counts)
    step = (WIDTH - LEFT - RIGHT) / _BINS
    bars = []
    for place, count in enumerate(counts):
        if count:
            y = _up(count, top)
            x = round(LEFT + place * step + 0.5, 1)
            start, end = scale * place / _BINS, scale * (place + 1) / _BINS
            bars.append(Bar(x, y, round(step - 1, 1), round(HEIGHT - BOTTOM - y, 1), count, start, end))
    return Histogram(
        bars=tuple(bars),
        rug=tuple(sorted(_across(value, scale) for value in values[:_MOST_POINTS])),
        x_ticks=tuple(Tick(_across(at, scale), _label(at)) for at in ticks(scale)),
        y_ticks=tuple(Tick(_up(at, top), _label(at)) for at in ticks(top, whole=True)),
        mean=None if mean is None else _across(mean, scale),
        low=None if low is None else _across(low, scale),
        high=None if high is None else _across(high, scale),
        n=len(values),
    )


def scatter(pairs: Sequence[tuple[str, float | None, float | None]], scale: float) -> Scatter | None:
    """(name, number across, number up) of each task, the second on a scale that begins at 0.

    None where fewer than two tasks have both numbers.
    """
    there = [(name, x, y) for name, x, y in pairs if x is not None and y is not None]
    if len(there) < 2:
        return None
    furthest = max(x for _, x, _ in there) or 1.0
    end = ticks(furthest)[-1]
    end = end if end >= furthest else furthest
    return Scatter(
        points=tuple(
            Point(_across(x, end), _up(min(max(y, 0.0), scale), scale), name, x, y)
            for name, x, y in there[:_MOST_POINTS]
        ),
        x_ticks=tuple(Tick(_across(at, end), _label(at)) for at in ticks(end)),
        y_ticks=tuple(Tick(_up(at, scale), _label(at)) for at in ticks(scale)),
        unknown=len(pairs) - len(there),
    )


def row(
    value: float | None,
    scale: float,
    low: float | None = None,
    high: float | None = None,
    dots: Sequence[float] = (),
) -> Row:
    """A number on a line from 0 to `scale`."""

    def place(number: float) -> float:
        return round(5 + (ROW_WIDTH - 10) * min(max(number / scale, 0.0), 1.0), 1)

    return Row(
        None if value is None else place(value),
        None if low is None else place(low),
        None if high is None else place(high),
        tuple(map(place, dots)),
    )


def ticks(end: float, *, whole: bool = False) -> list[float]:
    """Round numbers from 0 to at most `end`, five or so."""
    if end <= 0:
        return [0.0]
    rough = end / 5
    power = 10 ** math.floor(math.log10(rough))
    step = next(power * factor for factor in _STEPS if power * factor >= rough * 0.999)
    if whole:
        step = max(1.0, math.ceil(step))
    return [round(step * place, 10) for place in range(math.floor(end / step * 1.0001) + 1)]


def ramp(score: float | None) -> int:
    """The step of a five-step colour ramp for a score, 0…1: from 0 to 4; -1 where it is missing."""
    return -1 if score is None else min(4, max(0, int(score * 5)))


def _across(value: float, end: float) -> float:
    return round(LEFT + (WIDTH - LEFT - RIGHT) * min(max(value / end, 0.0), 1.0), 1)


def _up(value: float, end: float) -> float:
    return round(HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * value / end, 1)


def _label(value: float) -> str:
    return f"{value:,.10g}"
