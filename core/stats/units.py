"""What is drawn when a run is resampled: tasks, or the clusters that tasks make, and how often each.

A resample is a row of counts, one for each unit, so a mean over it is one product of matrices. Counts come in
chunks of rows: memory stays bounded whatever the number of resamples.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

#: One number a task, in the order of tasks.
Values = Sequence[float] | FloatArray

#: How many counts a chunk holds: 8 MiB of them.
CHUNK: Final = 2**20

#: Numbers that lie closer than this share of their size are one number, rounded differently.
ROUNDING: Final = 1e-12


def columns_of(series: Sequence[Values]) -> FloatArray:
    """Series as the columns of a table, (n, k). NaN is kept: it says that a series lacks a task.

    Raises ValueError for series of different lengths, of other than one dimension, and for infinities.
    """
    found = [np.asarray(values, dtype=np.float64) for values in series]
    for place, values in enumerate(found):
        if values.shape != found[0].shape or values.ndim != 1:
            raise ValueError(
                f"series {place} has shape {values.shape}, expected {found[0].shape[:1]}: one number for "
                "each task, the same tasks in the same order in every series"
            )
        if np.isinf(values).any():
            raise ValueError(f"series {place} holds an infinite number, expected finite ones or NaN")
    return np.stack(found, axis=1) if found else np.empty((0, 0))


def complete(series: Sequence[Values]) -> FloatArray:
    """The same; raises ValueError where a number is missing."""
    table = columns_of(series)
    if np.isnan(table).any():
        place = int(np.isnan(table).any(axis=0).argmax())
        raise ValueError(f"series {place} holds NaN: leave the tasks out that lack a number, in every series")
    return table


def numbered(clusters: Sequence[Hashable] | None, n: int) -> IntArray:
    """Each value's cluster as a number from 0, in the order of first appearance. None: each is its own."""
    if clusters is None:
        return np.arange(n)
    if len(clusters) != n:
        raise ValueError(f"{len(clusters)} cluster labels for {n} values, expected one for each value")
    numbers: dict[Hashable, int] = {}
    return np.array([numbers.setdefault(label, len(numbers)) for label in clusters], dtype=np.int64)


def cluster_sums(table: FloatArray, clusters: Sequence[Hashable] | None) -> tuple[FloatArray, FloatArray]:
    """Each cluster's sums, (m, k), and its number of values, (m,), in an order that only the numbers decide.

    So the order in which tasks were given changes no bit of what follows.
    """
    if clusters is None:
        return table[_order(table)], np.ones(len(table))
    numbers = numbered(clusters, len(table))
    order = _order(table)
    sums = np.zeros((numbers.max(initial=-1) + 1, table.shape[1]))
    np.add.at(sums, numbers[order], table[order])  # one after another, so rounding follows the order too
    sizes = np.bincount(numbers, minlength=len(sums)).astype(np.float64)
    order = _order(np.column_stack([sums, sizes]))
    return sums[order], sizes[order]


def counts(n: int, *, resamples: int, seed: int, width: int | None = None) -> Iterator[FloatArray]:
    """How often each of n units is drawn, with replacement: chunks of rows (b, n), `resamples` rows in all.

    `width` is how many numbers a row will need at its widest (default n). The chunk's size changes no draw: the
    stream of RandomState is read row by row.
    """
    if resamples < 1:
        raise ValueError(f"resamples={resamples}, expected 1 or more")
    generator = np.random.RandomState(seed)
    height = max(1, CHUNK // max(n, width or n))
    for start in range(0, resamples, height):
        rows = min(height, resamples - start)
        drawn = generator.randint(0, n, size=(rows, n)) + n * np.arange(rows)[:, None]
        yield np.bincount(drawn.ravel(), minlength=rows * n).reshape(rows, n).astype(np.float64)


def _order(table: FloatArray) -> npt.NDArray[np.intp]:
    """The rows' ascending order, by the first column, then the second, and so on."""
    return np.lexsort(table.T[::-1]) if table.size else np.arange(len(table))
