"""Where scores vary: between tasks, systems, judges, repeats, and in what these do to each other.

The model is y = μ + t + s + j + ts + tj + sj + tsj + r, all random and independent: tasks, systems and judges
crossed, repeats nested in their combinations. Components are those of the analysis of variance: mean squares set
equal to what they are expected to be. Where values are missing, Henderson's method 1 (Henderson 1953; Searle,
Casella & McCulloch 1992, chapter 5) does the same with sums of squares, and gives the very same numbers where
none is:

    T_A = Σ over the levels a of A of (sum of a)²/n_a, for each set A of factors
    E[T_A] = N·μ² + Σ_C σ²_C · Σ_(a,c) n_ac²/n_a

It is unbiased for values that are missing at random; a few gaps do it no harm. What the components imply for other
designs is generalizability theory's D-study (Brennan 2001, chapter 4).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations
from typing import Final

import numpy as np
import numpy.typing as npt

from core.stats.units import FloatArray

#: The axes of the scores, in this order.
FACTORS: Final = ("task", "system", "judge")
REPEAT: Final = "repeat"

#: Beyond this condition number the gaps leave components that cannot be told apart.
_TOLD_APART: Final = 1e10


@dataclass(frozen=True, slots=True)
class Component:
    """A variance component, in squared units of the score.

    `factors`: what it belongs to, ("task", "judge") for the judge's own taste in tasks, ("repeat",) for what is
    left.
    `variance`: `estimate` or 0 where that is below 0 (`is_clipped`): noise, or a model that does not fit.
    `share`: of the sum of variances; None when that is 0.
    """

    factors: tuple[str, ...]
    estimate: float
    variance: float
    share: float | None

    @property
    def is_clipped(self) -> bool:
        return self.estimate < 0


@dataclass(frozen=True, slots=True)
class VarianceSplit:
    """The components, and the study they come from.

    `levels`: how many tasks, systems and judges have a value. A factor with one level has no component: what it
    does is in the others. `has_repeats`: whether any combination was repeated; else the interaction of all
    factors cannot be told from the repeats and is in ("repeat",).
    """

    components: tuple[Component, ...]
    levels: dict[str, int]
    has_repeats: bool
    mean: float
    n: int


@dataclass(frozen=True, slots=True)
class DesignError:
    """The standard error of one system's mean, in units of the score.

    `absolute`: about the system's true mean over all tasks and judges. `relative`: without what all systems
    share, so a difference of two systems on the same tasks and judges has √2 times it; None when the study had
    one system.
    """

    absolute: float
    relative: float | None


def variance_split(scores: npt.ArrayLike) -> VarianceSplit | None:
    """The components of scores[task, system, judge, repeat], NaN where there is no value.

    None below two values, and where the gaps leave components that cannot be told apart. Constant scores have
    variances of 0 and no shares. Raises ValueError for another shape and for infinities.
    """
    array = np.asarray(scores, dtype=np.float64)
    if array.ndim != 4 or np.isinf(array).any():
        raise ValueError(f"scores of shape {array.shape}, expected finite [task, system, judge, repeat] or NaN")
    there = ~np.isnan(array)
    cells = there.sum(axis=3).astype(np.float64)
    n = int(cells.sum())
    if n < 2:
        return None
    centre = math.fsum(array[there].tolist()) / n
    # a shift changes no variance, and small numbers keep their digits when squared
    values = np.where(there, array - centre, 0.0)
    if array[there].min() == array[there].max():
        values[:] = 0.0  # the rounded mean may lie a last digit off them
    axes = range(len(FACTORS))
    levels = {
        name: int(cells.any(axis=tuple(other for other in axes if other != axis)).sum())
        for axis, name in enumerate(FACTORS)
    }
    active = [axis for axis, name in enumerate(FACTORS) if levels[name] > 1]
    has_repeats = bool(cells.max() > 1)
    sets = [chosen for size in range(len(active) + 1) for chosen in combinations(active, size)]
    # without repeats the set of all factors is the repeats
    effects = sets[1:] if has_repeats or not active else sets[1:-1]
    estimates = _solve(values, cells, sets, effects, has_repeats=has_repeats)
    if estimates is None:
        return None
    variances = [max(0.0, estimate) for estimate in estimates]
    total = math.fsum(variances)
    names = [tuple(FACTORS[axis] for axis in effect) for effect in effects] + [(REPEAT,)]
    return VarianceSplit(
        components=tuple(
            Component(
                factors=name, estimate=estimate, variance=variance, share=variance / total if total else None
            )
            for name, estimate, variance in zip(names, estimates, variances, strict=True)
        ),
        levels=levels,
        has_repeats=has_repeats,
        mean=centre,
        n=n,
    )


def design_error(split: VarianceSplit, *, n_tasks: int, n_judges: int = 1, n_repeats: int = 1) -> DesignError:
    """The standard error that another number of tasks, judges and repeats would give one system's mean.

    Every component but the system's own is divided by how often the design draws it (Brennan 2001,
    chapter 4): σ²_t/n_t, σ²_tj/(n_t·n_j), … , σ²_r/(n_t·n_j·n_r). Raises ValueError for a design that the study
    says nothing about: several judges after a study of one, several repeats after a study without.
    """
    known = {
        "task": (n_tasks, split.levels["task"] > 1),
        "judge": (n_judges, split.levels["judge"] > 1),
        REPEAT: (n_repeats, split.has_repeats),
    }
    for name, (number, is_known) in known.items():
        if number < 1:
            raise ValueError(f"{number} {name}s, expected 1 or more")
        if number > 1 and not is_known:
            raise ValueError(
                f"{number} {name}s asked of a study with one, expected 1: it shows no spread of {name}s"
            )
    absolute = relative = 0.0
    for component in split.components:
        drawn = known if component.factors == (REPEAT,) else component.factors
        part = component.variance / math.prod(known[name][0] for name in drawn if name in known)
        if component.factors != ("system",):
            absolute += part
            if "system" in component.factors or component.factors == (REPEAT,):
                relative += part
    has_systems = split.levels["system"] > 1
    return DesignError(absolute=math.sqrt(absolute), relative=math.sqrt(relative) if has_systems else None)


def _solve(
    values: FloatArray,
    cells: FloatArray,
    sets: list[tuple[int, ...]],
    effects: list[tuple[int, ...]],
    *,
    has_repeats: bool,
) -> list[float] | None:
    """The components of `effects`, then of the repeats: E[T] = T solved; None where it cannot be."""
    sums = values.sum(axis=3)
    found, rows = [], []
    for chosen in sets:
        sizes = _margin(cells, chosen)
        per_level = np.divide(1.0, sizes, out=np.zeros_like(sizes), where=sizes > 0)
        found.append(float(np.sum(_margin(sums, chosen) ** 2 * per_level)))
        spread = [float(np.sum(_margin(cells, tuple({*chosen, *effect})) ** 2 * per_level)) for effect in effects]
        rows.append([float(cells.sum()), *spread, float(np.count_nonzero(sizes))])
    if has_repeats:
        found.append(float(np.sum(values**2)))
        rows.append([float(cells.sum())] * (len(effects) + 2))
    expected = np.array(rows) / cells.sum()
    if expected.shape[0] != expected.shape[1] or np.linalg.cond(expected) > _TOLD_APART:
        return None
    solved: list[float] = np.linalg.solve(expected, np.array(found) / cells.sum()).tolist()
    return solved[1:]


def _margin(array: FloatArray, kept: tuple[int, ...]) -> FloatArray:
    """Sums over all axes but those kept; the others stay, with one level."""
    summed: FloatArray = array.sum(axis=tuple(axis for axis in range(3) if axis not in kept), keepdims=True)
    return summed
