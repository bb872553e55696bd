"""The aggregator `draco`: from tasks' scores to the numbers of a summary.

The overall is the mean over tasks: not over domains, not over pooled criteria. Missing is never zero: a
withheld or failed task leaves every mean, and where too many are missing there is no number at all.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from core.fold import add_counts, mean
from core.model import BY_RULE, Aggregate, Count, Metric, TaskScore

#: The numbers of a summary; a section's are `<metric>/<section>` in a task's metrics.
METRICS: Final = ("normalized", "pass_rate")
_HOW: Final[Mapping[str, str]] = {
    "normalized": "weights of MET criteria / positive weights, clamped to 0–100 per judge run",
    "pass_rate": "share of criteria positive and MET or negative and UNMET, unweighted",
}
#: Below this many tasks a mean says little without its interval.
SMALL: Final = 30

Numbers = dict[str, float | None]


class DracoAggregator:
    """Reads `coverage_floor` and `strict` of the section `benchmark`."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        self._floor = 1.0 if config.get("strict") else float(config.get("coverage_floor", 0.95))

    def aggregate(self, scores: Sequence[TaskScore]) -> Aggregate:
        """Metrics, groups `domain` and `axis`, and what a reader of the numbers must know."""
        return Aggregate(
            metrics={name: self._metric(scores, name) for name in METRICS},
            groups={"domain": self._domains(scores), "axis": self._axes(scores)},
            warnings=tuple(_warnings(scores)),
        )

    def _metric(self, scores: Sequence[TaskScore], name: str) -> Metric:
        from core.stats import LEVEL, RESAMPLES, SEED, bootstrap_interval, sd

        values = _values(scores, name)
        overalls = run_overalls(scores, name)
        estimator = (
            f"{_HOW[name]}; a task is the mean over its judge runs, then attempts; value: mean over the "
            f"{len(values)} scored of {len(scores)} tasks; low, high: {LEVEL:.0%} percentile bootstrap over "
            f"tasks, {RESAMPLES} resamples, seed {SEED}; sd: over the overalls of {len(overalls)} judge "
            "runs, ddof=1"
        )
        if not self._enough(len(values), len(scores)):
            return Metric(value=None, n=len(values), estimator=estimator)
        low, high = bootstrap_interval(values) or (None, None)
        return Metric(
            value=mean(values),
            low=low,
            high=high,
            sd=sd(overalls, ddof=1),
            n=len(values),
            estimator=estimator,
        )

    def _domains(self, scores: Sequence[TaskScore]) -> dict[str, Numbers]:
        members: dict[str, list[TaskScore]] = {}
        for score in scores:
            members.setdefault(str(score.labels.get("domain", "")), []).append(score)
        return {
            domain: self._group(tasks, {name: name for name in METRICS})
            for domain, tasks in sorted(members.items())
        }

    def _axes(self, scores: Sequence[TaskScore]) -> dict[str, Numbers]:
        axes = dict.fromkeys(name.partition("/")[2] for score in scores for name in score.metrics if "/" in name)
        found = {}
        for axis in axes:
            having = [score for score in scores if f"normalized/{axis}" in score.metrics]
            found[axis] = self._group(having, {name: f"{name}/{axis}" for name in METRICS})
        return found

    def _group(self, scores: Sequence[TaskScore], names: Mapping[str, str]) -> Numbers:
        """One member's numbers: {shown name: mean of the task metric}, with its counts."""
        found: Numbers = {}
        n_scored = 0
        for shown, name in names.items():
            values = _values(scores, name)
            found[shown] = mean(values) if self._enough(len(values), len(scores)) else None
            n_scored = max(n_scored, len(values))
        return {**found, "n_tasks": len(scores), "n_scored": n_scored}

    def _enough(self, n_scored: int, n_tasks: int) -> bool:
        return n_scored > 0 and n_scored >= self._floor * n_tasks


def run_overalls(scores: Iterable[TaskScore], name: str) -> list[float]:
    """The mean over scored tasks of each judge run (attempt, repeat), in the order of runs."""
    runs: dict[tuple[int, int], list[float]] = {}
    for score in scores:
        if score.metrics.get(name) is None:
            continue
        for run in score.by_run:
            value = run.metrics.get(name)
            if value is not None:
                runs.setdefault((run.attempt, run.repeat), []).append(value)
    overalls = (mean(values) for _, values in sorted(runs.items()))
    return [overall for overall in overalls if overall is not None]


def _values(scores: Iterable[TaskScore], name: str) -> list[float]:
    found = (score.metrics.get(name) for score in scores)
    return [value for value in found if value is not None]


def _warnings(scores: Sequence[TaskScore]) -> Iterable[str]:
    n_tasks = len(scores)
    contaminated = Counter(
        flag.partition(":")[2] for score in scores for flag in score.flags if flag.startswith("contaminated:")
    )
    if contaminated:
        n_found = sum(any(flag.startswith("contaminated:") for flag in score.flags) for score in scores)
        kinds = ", ".join(f"{what} {count}" for what, count in sorted(contaminated.items()))
        yield (
            f"{n_found} of {n_tasks} tasks contaminated: the answer shows signs of the benchmark's own pages "
            f"({kinds}); see the flags in scores.jsonl"
        )
    by_rule = Counter(flag for score in scores for flag in score.flags if flag in BY_RULE)
    if by_rule:
        n_found = sum(any(flag in BY_RULE for flag in score.flags) for score in scores)
        kinds = ", ".join(f"{status} {count}" for status, count in sorted(by_rule.items()))
        yield (
            f"{n_found} of {n_tasks} tasks with answers decided by rule, without a judge ({kinds}): every "
            "criterion UNMET, so normalized is 0"
        )
    published = [score for score in scores if score.metrics.get("normalized") is not None]
    lost = add_counts(score.coverage_by for score in published).get("sign", {}).get("negative", Count())
    if lost.graded < lost.expected:
        yield (
            f"{lost.expected - lost.graded} of {lost.expected} verdicts on negative criteria of the "
            "scored tasks are missing: a lost negative can only raise a score"
        )
    if len(published) < SMALL:
        yield (
            f"only {len(published)} tasks are scored: compare intervals, not means; a single task moves by 3–5 "
            "points from judge run to judge run"
        )
