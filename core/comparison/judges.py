"""Judges with each other and with themselves, on the same answers.

Verdicts are paired unit by unit and repeat by repeat; only answers that both judges saw alike count. Intervals
draw tasks, with all that hangs on them.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations

import numpy as np
import numpy.typing as npt

from core.comparison.agreed import Panel, Seen
from core.comparison.labels import UnitLabels
from core.comparison.preference import preferences
from core.comparison.results import (
    Estimate,
    Flip,
    FlipRate,
    JudgeFacts,
    JudgePair,
    Judges,
    SelfAgreement,
    YesRates,
)
from core.comparison.rows import BY_RULE, MISSING, OTHER, Cells, Verdicts, without_repeat
from core.comparison.study import Grid, Mask, Numbers, Study
from core.stats import (
    cohen_kappa_of,
    fleiss_kappa,
    gwet_ac1_of,
    krippendorff_alpha,
    percent_agreement_of,
    statistic_interval,
)

#: (group, member) → which units are in it; (None, None): all.
Labelled = Mapping[tuple[str | None, str | None], Mask]


def judges(study: Study, grid: Grid, seen: Seen, labels: UnitLabels) -> Judges:
    """Everything about the judges of a study; `seen` holds their verdicts."""
    panel = Panel.of(study, grid, seen)
    labelled = _labelled(seen, labels)
    pairs = [_pair(study, grid, seen, panel, one, other, labelled) for one, other in combinations(grid.judges, 2)]
    decided = panel.said[:, (panel.said >= 0).sum(axis=0) > 1]
    return Judges(
        metric=study.metrics[0],
        judges=tuple(_facts(study, grid, seen, judge) for judge in grid.judges),
        pairs=tuple(pair for pair in pairs if pair is not None),
        alpha=krippendorff_alpha([[None if code < 0 else code for code in row] for row in decided.tolist()]),
        n_alpha=decided.shape[1],
        flip_rates=tuple(_flip_rates(panel, labelled)),
        flips=tuple(_flips(study, grid, seen, panel)),
        preferences=tuple(preferences(study, grid, seen)),
    )


def _facts(study: Study, grid: Grid, seen: Seen, judge: str) -> JudgeFacts:
    places = [place for (_, who), place in grid.runs.items() if who == judge]
    read = [seen.verdicts[place] for place in places if place in seen.verdicts]
    said = np.concatenate([one.said for one in read]) if read else np.empty(0, dtype=np.int8)
    by_rule, other = int((said == BY_RULE).sum()), int((said == OTHER).sum())
    n = len(said) - by_rule
    usd = math.fsum(one.usd for one in read)
    unknown = sum(one.unknown_costs for one in read)
    errors: Counter[str] = Counter()
    for one in read:
        errors.update(one.errors)
    scores = [score for place in places for score in study.runs[place].scores.values()]
    graded: Counter[tuple[str, str]] = Counter()
    expected: Counter[tuple[str, str]] = Counter()
    for score in scores:
        for key, (had, due) in score.coverage.items():
            graded[key] += had
            expected[key] += due
    coverage_by: dict[str, dict[str, float | None]] = {}
    for (group, member), due in sorted(expected.items()):
        coverage_by.setdefault(group, {})[member] = graded[group, member] / due if due else None
    total = sum(score.n_expected for score in scores)
    return JudgeFacts(
        judge=judge,
        family="+".join(sorted({one for one in study.runs[places[0]].judge_families if one})) or None,
        runs=tuple(study.names[place] for place in places),
        n=n,
        missing=int((said == MISSING).sum()),
        errors=dict(sorted(errors.items())),
        by_rule=by_rule,
        other=other,
        coverage=sum(score.n_graded for score in scores) / total if total else None,
        coverage_by=coverage_by,
        usd=usd,
        unknown_costs=unknown,
        usd_per_judgement=usd / n if n and not unknown else None,
        with_itself=_with_itself(read),
    )


def _with_itself(read: Sequence[Verdicts]) -> SelfAgreement | None:
    """Fleiss' κ over the questions that were decided in every repeat; None where nothing was asked twice.

    Repeats of different members of an ensemble (vote=mean) are no repeats of one judge: each counts for itself.
    """
    tables, most = [], 0
    for one in read:
        there = one.said >= 0
        asked = without_repeat(one.cells[there]) * (int(one.by.max(initial=0)) + 1) + one.by[there]
        _, unit, n = np.unique(asked, return_inverse=True, return_counts=True)
        yes = np.bincount(unit, weights=one.said[there], minlength=len(n))
        tables.append(np.column_stack([n - yes, yes]))
        most = max(most, int(n.max(initial=0)))
    if most < 2:
        return None
    table = np.concatenate(tables)
    full = table[table.sum(axis=1) == most]
    return SelfAgreement(
        repeats=most,
        n=len(full),
        unanimous=float(np.mean(full.max(axis=1) == most)),
        fleiss_kappa=fleiss_kappa(full),
    )


def _pair(
    study: Study, grid: Grid, seen: Seen, panel: Panel, first: str, second: str, labelled: Labelled
) -> JudgePair | None:
    """Two judges; None where they share no system."""
    if not grid.systems_of([first, second]):
        return None
    one, other = panel.said[grid.judges.index(first)], panel.said[grid.judges.index(second)]
    both = (one >= 0) & (other >= 0)
    ones, others, tasks = one[both].astype(np.int64), other[both].astype(np.int64), panel.tasks[both]
    by_task = (
        np.bincount(tasks * 4 + ones * 2 + others, minlength=4 * study.n_tasks).reshape(-1, 4).astype(np.float64)
    )
    matrix = by_task.sum(axis=0).reshape(2, 2)
    return JudgePair(
        first=first,
        second=second,
        n=int(both.sum()),
        agreement=percent_agreement_of(matrix),
        kappa=_kappa(study, by_task),
        ac1=gwet_ac1_of(matrix),
        shift=_shift(study, grid, seen, first, second),
        yes=tuple(_yes_rates(study, ones, others, tasks, panel.units[both], labelled)),
    )


def _kappa(study: Study, by_task: Numbers) -> Estimate:
    """Cohen's κ from each task's confusion counts (tasks, 4), its interval over tasks."""
    asked = by_task.sum(axis=1) > 0
    there = by_task[asked]

    def kappas(counts: npt.NDArray[np.float64], weights: Numbers) -> Numbers:
        found = [cohen_kappa_of(matrix) for matrix in (weights @ counts).reshape(-1, 2, 2)]
        return np.array([np.nan if kappa is None else kappa for kappa in found])

    interval = statistic_interval(there, kappas, **{**study.bootstrap, "clusters": study.clusters_of(asked)})
    if interval is None:
        return Estimate(value=cohen_kappa_of(by_task.sum(axis=0).reshape(2, 2)), n=study.n_units(asked))
    return Estimate(value=interval.estimate, low=interval.low, high=interval.high, n=interval.n)


def _shift(study: Study, grid: Grid, seen: Seen, first: str, second: str) -> Estimate:
    """The metric under `second` minus that under `first`, pooled over the systems and tasks that both have."""
    sums, sizes = np.zeros(study.n_tasks), np.zeros(study.n_tasks)
    for system in grid.systems_of([first, second]):
        one, other = seen.scores(grid, system, first), seen.scores(grid, system, second)
        gap = other - one
        there = ~np.isnan(gap)
        sums[there] += gap[there]
        sizes[there] += 1
    return ratio(study, sums, sizes)


def ratio(study: Study, sums: Numbers, sizes: Numbers) -> Estimate:
    """Σ sums / Σ sizes over tasks, with its interval over tasks."""
    there = sizes > 0
    parts = np.column_stack([sums, sizes])[there]

    def ratios(parts: npt.NDArray[np.float64], weights: Numbers) -> Numbers:
        drawn = weights @ parts
        found: Numbers = drawn[:, 0] / drawn[:, 1]
        return found

    interval = statistic_interval(parts, ratios, **{**study.bootstrap, "clusters": study.clusters_of(there)})
    if interval is None:
        value = float(parts[:, 0].sum() / parts[:, 1].sum()) if len(parts) else None
        return Estimate(value=value, n=study.n_units(there))
    return Estimate(value=interval.estimate, low=interval.low, high=interval.high, n=interval.n)


def _yes_rates(
    study: Study, ones: Cells, others: Cells, tasks: Cells, units: Cells, labelled: Labelled
) -> Iterator[YesRates]:
    for (group, member), mask in labelled.items():
        chosen = mask[units]
        n = int(chosen.sum())
        if not n:
            continue
        gap = np.bincount(tasks[chosen], weights=(others - ones)[chosen], minlength=study.n_tasks)
        sizes = np.bincount(tasks[chosen], minlength=study.n_tasks).astype(np.float64)
        yield YesRates(
            group=group,
            member=member,
            n=n,
            first=float(ones[chosen].mean()),
            second=float(others[chosen].mean()),
            shift=ratio(study, gap.astype(np.float64), sizes),
        )


def _flip_rates(panel: Panel, labelled: Labelled) -> Iterator[FlipRate]:
    said = panel.said
    n = (said >= 0).sum(axis=0)
    yes = (said == 1).sum(axis=0)
    decided, flipped = n > 1, (yes > 0) & (yes < n)
    for (group, member), mask in labelled.items():
        chosen = decided & mask[panel.units]
        if chosen.any():
            rate = float(flipped[chosen].mean())
            yield FlipRate(group=group, member=member, rate=rate, n=int(chosen.sum()))


def _flips(study: Study, grid: Grid, seen: Seen, panel: Panel) -> Iterator[Flip]:
    """The units with the largest share of differing pairs of verdicts, then with the most pairs."""
    said, n_units = panel.said, len(seen.units.numbers)
    n = (said >= 0).sum(axis=0)
    yes = (said == 1).sum(axis=0)
    pairs = np.bincount(panel.units, weights=n * (n - 1) / 2, minlength=n_units)
    differing = np.bincount(panel.units, weights=yes * (n - yes), minlength=n_units)
    share = np.divide(differing, pairs, out=np.zeros(n_units), where=pairs > 0)
    names = list(seen.units.numbers)
    ranked = sorted(np.flatnonzero(differing).tolist(), key=lambda unit: (-share[unit], -pairs[unit], names[unit]))
    for unit in ranked[: study.settings.top]:
        here = said[:, panel.units == unit]
        rates = {
            judge: float((row[row >= 0]).mean())
            for judge, row in zip(grid.judges, here, strict=True)
            if (row >= 0).any()
        }
        task, name = names[unit]
        yield Flip(task=task, unit=name, disagreement=float(share[unit]), n=int(pairs[unit]), yes=rates)


def _labelled(seen: Seen, labels: UnitLabels) -> Labelled:
    """All units, then those of each label."""
    found: dict[tuple[str | None, str | None], Mask] = {(None, None): np.ones(len(seen.units.numbers), dtype=bool)}
    members: dict[tuple[str, str], Mask] = {}
    for place, key in enumerate(seen.units.numbers):
        for group, member in labels.get(key, {}).items():
            mask = members.setdefault((str(group), str(member)), np.zeros(len(seen.units.numbers), dtype=bool))
            mask[place] = True
    return {**found, **dict(sorted(members.items()))}
