"""The aggregator `draco`: from tasks' scores to the numbers of a summary.

The overall is the mean over tasks: not over domains, not over pooled criteria (core/aggregate.py).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from core.aggregate import Numbers, by_rule_warnings, floor_of, group, metric, run_overalls
from core.fold import add_counts
from core.model import Aggregate, Count, TaskScore

__all__ = ["METRICS", "DracoAggregator", "run_overalls"]

#: The numbers of a summary; a section's are `<metric>/<section>` in a task's metrics.
METRICS: Final = ("normalized", "pass_rate")
_HOW: Final[Mapping[str, str]] = {
    "normalized": "weights of MET criteria / positive weights, clamped to 0–100 per judge run",
    "pass_rate": "share of criteria positive and MET or negative and UNMET, unweighted",
}
#: Below this many tasks a mean says little without its interval.
SMALL: Final = 30


class DracoAggregator:
    """Reads `coverage_floor` and `strict` of the section `benchmark`."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        self._floor = floor_of(config)

    def aggregate(self, scores: Sequence[TaskScore]) -> Aggregate:
        """Metrics, groups `domain` and `axis`, and what a reader of the numbers must know."""
        return Aggregate(
            metrics={name: metric(scores, name, _HOW[name], self._floor) for name in METRICS},
            groups={"domain": self._domains(scores), "axis": self._axes(scores)},
            warnings=tuple(_warnings(scores)),
        )

    def _domains(self, scores: Sequence[TaskScore]) -> dict[str, Numbers]:
        members: dict[str, list[TaskScore]] = {}
        for score in scores:
            members.setdefault(str(score.labels.get("domain", "")), []).append(score)
        return {
            domain: group(tasks, {name: name for name in METRICS}, self._floor)
            for domain, tasks in sorted(members.items())
        }

    def _axes(self, scores: Sequence[TaskScore]) -> dict[str, Numbers]:
        axes = dict.fromkeys(name.partition("/")[2] for score in scores for name in score.metrics if "/" in name)
        found = {}
        for axis in axes:
            having = [score for score in scores if f"normalized/{axis}" in score.metrics]
            found[axis] = group(having, {name: f"{name}/{axis}" for name in METRICS}, self._floor)
        return found


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
    yield from by_rule_warnings(scores, "every criterion UNMET, so normalized is 0")
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
