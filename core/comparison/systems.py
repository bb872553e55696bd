"""Systems under one judge: their numbers, every difference, what could have been seen, and what it costs."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any, Final

import numpy as np

from core.aggregate import is_enough
from core.comparison.results import (
    FEW,
    LEAST_UNITS,
    Board,
    Estimate,
    Finding,
    GroupDifference,
    Pair,
    SystemRow,
    Verdict,
)
from core.comparison.study import CLUSTER, Grid, Mask, Numbers, Study, estimate
from core.fold import mean
from core.stats import (
    PairedDifference,
    compare_all,
    detectable_difference,
    mean_intervals,
    sd,
    smallest_p,
)
from core.stats.bootstrap import Method
from core.summary import quantile

#: Resamples of an interval by group in a table of more than FEW systems.
_GROUP_RESAMPLES: Final = 2_000
#: With so many patterns that the least corrected p is alpha over this, drawing hardly costs power.
_BELOW_ALPHA: Final = 20
#: Sign patterns × pairs at most: seconds of work. Beyond some 800 pairs fewer are drawn than the correction needs.
_MOST_SIGNS: Final = 2**28


def boards(study: Study) -> list[Board]:
    """One table for each judge and metric; see `_seatings` for who stands in which."""
    return [_board(study, metric, places) for metric in study.metrics for places in _seatings(study)]


def _seatings(study: Study) -> list[list[int]]:
    """Which runs stand in one table: those of one judge.

    A system that shares no judge with any other stands, under the judge it has, in a further table with the
    systems of the judge that has most of them. Where nothing is shared, all stand in one.
    """
    grid = Grid.of(study)
    by_judge = {judge: [at for at, own in enumerate(study.judges) if own == judge] for judge in grid.judges}
    if len(grid.systems) == 1:
        return list(by_judge.values())
    shared = [judge for judge in grid.judges if len(grid.systems_of([judge])) > 1]
    lone = [system for system in grid.systems if not set(grid.judges_of(system)) & set(shared)]
    seatings = [by_judge[judge] for judge in shared]
    if lone:
        lead = max(shared, key=lambda judge: len(grid.systems_of([judge])), default=None)
        others = [] if lead is None else by_judge[lead]
        seatings.append([*others, *(at for at, system in enumerate(study.systems) if system in lone)])
    return seatings


def _board(study: Study, metric: str, places: Sequence[int]) -> Board:
    table = study.table(metric)[list(places)]
    common = _common(table)
    judges = dict.fromkeys(study.judges[at] for at in places)
    names = _names(study, places, many_judges=len(judges) > 1)
    shown = np.where(common, table, np.nan) if common.any() else table
    intervals = mean_intervals(list(shown), **study.bootstrap)
    rows = [
        _row(study, metric, at, name, estimate(interval, values), values)
        for at, name, interval, values in zip(places, names, intervals, shown, strict=True)
    ]
    best = sorted(range(len(rows)), key=lambda at: (rows[at].score.value is None, -(rows[at].score.value or 0.0)))
    ordered = {names[at]: table[at] for at in best}
    judge_of = {name: study.judges[at] for name, at in zip(names, places, strict=True)}
    return Board(
        metric=metric,
        judge=next(iter(judges)) if len(judges) == 1 else None,
        n_common=int(common.sum()),
        systems=tuple(_with_trade_off([rows[at] for at in best])),
        pairs=tuple(_under_one_judge(pair, judge_of) for pair in _pairs(study, ordered)),
        patterns=_patterns(study, len(ordered)),
        groups=tuple(_groups(study, metric, ordered, [places[at] for at in best])),
    )


def _common(table: Numbers) -> Mask:
    """The tasks that every run has a number for; a run without any number at all is no obstacle."""
    there = ~np.isnan(table)
    having = there[there.any(axis=1)]
    if not len(having):
        return np.zeros(table.shape[1], dtype=bool)
    found: Mask = np.logical_and.reduce(having)
    return found


def _names(study: Study, places: Sequence[int], *, many_judges: bool) -> list[str]:
    """The systems' names in one table; the whole run's name where the system's alone would stand there twice."""
    systems = [study.systems[at] for at in places]
    return [
        study.names[at] if many_judges or systems.count(system) > 1 else system
        for at, system in zip(places, systems, strict=True)
    ]


def _row(study: Study, metric: str, place: int, name: str, found: Estimate, values: Numbers) -> SystemRow:
    run = study.runs[place]
    own = [score.metrics[metric] for score in run.scores.values() if score.has(metric)]
    costs = [one.cost_usd for one in run.scores.values() if not math.isnan(one.cost_usd)]
    latencies = [one.latency_s for one in run.scores.values() if not math.isnan(one.latency_s)]
    return SystemRow(
        system=name,
        effort=run.effort,
        run=study.names[place],
        judge=study.judges[place],
        score=found,
        own=mean(own) if is_enough(len(own), len(run.tasks), run.config.benchmark.floor) else None,
        n_own=len(own),
        n_tasks=len(run.tasks),
        coverage=run.coverage,
        usd_per_task=mean(costs),
        n_cost=len(costs),
        latency_s=quantile(latencies, 0.5),
        n_latency=len(latencies),
        # scores of an unrelated system vary as much again
        detectable=_detectable(study, values * math.sqrt(2)),
    )


def powerless(study: Study, found: Sequence[Board]) -> Iterator[Finding]:
    """A mark for each table in which nothing can be called better: too few tasks, or too many pairs."""
    for board in found:
        n = max((pair.difference.n for pair in board.pairs), default=0)
        n_tests = sum(pair.p is not None for pair in board.pairs)
        if n_tests and smallest_p(n, resamples=board.patterns) * n_tests >= study.settings.alpha:
            under = "several judges" if board.judge is None else f"judge {board.judge}"
            yield Finding(
                code="no_power",
                severity="mark",
                text=f"{board.metric} under {under}: {n} tasks and {n_tests} pairs of systems, so that no "
                f"difference can be called better at {study.settings.alpha:g}, however large",
                runs=tuple(row.run for row in board.systems),
            )


def _patterns(study: Study, n_systems: int) -> int:
    """Sign patterns to draw: the least p times the number of pairs must lie well below alpha."""
    n_pairs = max(1, math.comb(n_systems, 2))
    wanted = math.ceil(_BELOW_ALPHA * n_pairs / study.settings.alpha)
    return max(study.settings.resamples, min(wanted, _MOST_SIGNS // n_pairs))


def _under_one_judge(pair: Pair, judge_of: Mapping[str, str]) -> Pair:
    """The pair; inconclusive where the two systems' numbers come from different judges."""
    alike = judge_of[pair.first] == judge_of[pair.second]
    return pair if alike else pair.model_copy(update={"verdict": "inconclusive"})


def _pairs(study: Study, scores: Mapping[str, Numbers]) -> Iterator[Pair]:
    patterns = _patterns(study, len(scores))
    found = compare_all(scores, patterns=patterns, **study.bootstrap)
    n_tests = sum(pair.test is not None for pair in found)
    for pair in found:
        values = scores[pair.first] - scores[pair.second]
        difference = estimate(pair.interval, values)
        yield Pair(
            first=pair.first,
            second=pair.second,
            difference=difference,
            p=None if pair.test is None else pair.test.p,
            p_holm=pair.p_holm,
            verdict=_verdict(pair, difference, study.settings.alpha),
            detectable=_detectable(study, values, n_tests=n_tests, patterns=patterns),
        )


def _verdict(pair: PairedDifference, difference: Estimate, alpha: float) -> Verdict:
    if pair.p_holm is None or pair.p_holm >= alpha or not difference.excludes_zero or difference.value is None:
        return "inconclusive"
    return "better" if difference.value > 0 else "worse"


def _detectable(study: Study, values: Numbers, *, n_tests: int = 1, patterns: int | None = None) -> float | None:
    """The least difference that so many tasks find with the asked power; `values`: a difference for each task.

    None where the test can't get below alpha with so many tests and so few units that differ.
    """
    settings = study.settings
    there = ~np.isnan(values)
    clusters = study.clusters
    if clusters is None:
        units = values[there].tolist()
    else:
        drawn: dict[str, list[float]] = {}
        for place in np.flatnonzero(there).tolist():
            drawn.setdefault(clusters[place], []).append(float(values[place]))
        units = [math.fsum(found) / len(found) for found in drawn.values()]
    spread, n_differing = sd(units), sum(unit != 0 for unit in units)
    least = smallest_p(n_differing, resamples=patterns or settings.resamples)
    if spread is None or least * n_tests >= settings.alpha:
        return None
    alpha = settings.alpha / max(1, n_tests)
    return detectable_difference(len(units), spread, alpha=alpha, power=settings.power)


def _groups(
    study: Study, metric: str, scores: Mapping[str, Numbers], places: Sequence[int]
) -> Iterator[GroupDifference]:
    """The differences within each group of tasks and in each part of the metric."""
    pairs = list(combinations(scores, 2))
    if not pairs:
        return
    method: Method = "bca" if len(scores) <= FEW else "percentile"
    drawn = study.bootstrap
    if len(scores) > FEW:
        drawn["resamples"] = min(_GROUP_RESAMPLES, study.settings.resamples)
    for group, member, of_member in _members(study, metric, scores, places):
        differences = [of_member[one] - of_member[other] for one, other in pairs]
        enough = [study.n_units(~np.isnan(values)) >= LEAST_UNITS for values in differences]
        wide = [values for values, is_wide in zip(differences, enough, strict=True) if is_wide]
        intervals = iter(mean_intervals(wide, method=method, **drawn))
        for (one, other), values, has_interval in zip(pairs, differences, enough, strict=True):
            found = estimate(next(intervals) if has_interval else None, values)
            if found.value is not None:
                if not has_interval:
                    found = found.model_copy(update={"n": study.n_units(~np.isnan(values))})
                yield GroupDifference(group=group, member=member, first=one, second=other, difference=found)


def _members(
    study: Study, metric: str, scores: Mapping[str, Numbers], places: Sequence[int]
) -> Iterator[tuple[str, str, dict[str, Numbers]]]:
    """(group, member, numbers by system): by the labels of tasks, then the parts that summaries show as groups."""
    for label, members in _labels(study).items():
        for member, mask in members.items():
            yield label, member, {name: np.where(mask, values, np.nan) for name, values in scores.items()}
    for group, member in _parts(study, metric, places):
        part = study.table(f"{metric}/{member}")[list(places)]
        yield group, member, dict(zip(scores, part, strict=True))


def _labels(study: Study) -> dict[str, dict[str, Mask]]:
    """label → value → which tasks have it. A label whose every value is one task's own groups nothing."""
    found: dict[str, dict[str, Mask]] = {}
    for task, labels in study.labels.items():
        for label, members in labels.items():
            for member in members:
                masks = found.setdefault(label, {})
                masks.setdefault(member, np.zeros(study.n_tasks, dtype=bool))[study.place_of[task]] = True
    return {
        label: dict(sorted(members.items()))
        for label, members in sorted(found.items())
        if label != CLUSTER and max(int(mask.sum()) for mask in members.values()) > 1
    }


def _parts(study: Study, metric: str, places: Sequence[int]) -> list[tuple[str, str]]:
    """(group, member) of the summaries' groups whose numbers are a part of the metric: `<metric>/<member>`."""
    found: dict[tuple[str, str], None] = {}
    for place in places:
        groups: Any = study.runs[place].summary.get("groups")
        for group, members in (groups if isinstance(groups, dict) else {}).items():
            for member in members if isinstance(members, dict) else ():
                if f"{metric}/{member}" in study.runs[place].known_metrics:
                    found[group, member] = None
    return list(found)


def _with_trade_off(rows: Sequence[SystemRow]) -> list[SystemRow]:
    costs = {row.run: row.usd_per_task for row in rows}
    times = {row.run: row.latency_s for row in rows}
    return [
        row.model_copy(
            update={
                "best_for_cost": _is_efficient(row, rows, costs),
                "best_for_time": _is_efficient(row, rows, times),
            }
        )
        for row in rows
    ]


def _is_efficient(row: SystemRow, rows: Sequence[SystemRow], prices: Mapping[str, float | None]) -> bool | None:
    """Whether no other is at least as good and as cheap, and better in one; None where something is unknown."""
    value, price = row.score.value, prices[row.run]
    if value is None or price is None:
        return None
    for other in rows:
        score, cost = other.score.value, prices[other.run]
        if score is None or cost is None or other is row:
            continue
        if score >= value and cost <= price and (score > value or cost < price):
            return False
    return True
