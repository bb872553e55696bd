"""The aggregator `dag_rubric`: from tasks' scores to the numbers of a summary.

The overall is the mean over items: tasks, or with `form=all` a task in one form. Missing is never zero: a withheld
or failed item leaves every mean, and where too many are missing there is no number at all.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from core.fold import mean
from core.model import BY_RULE, Aggregate, Metric, TaskScore
from plugins.dag_rubric.gaps import Numbers, form_gaps, form_of, task_of
from plugins.dag_rubric.rubric import TYPES
from plugins.dag_rubric.scoring import HEADLINE, metric_names
from plugins.dag_rubric.settings import TREES, Settings
from plugins.dag_rubric.weights import DEFAULT

#: Below this many tasks a mean says little without its interval.
SMALL: Final = 30
_HOW: Final[Mapping[str, str]] = {
    "weighted": "Σ w·s over nodes, w by {scheme}, s by {rule} of graded checkpoints, × 100",
    "gate": "Σ w·q over nodes, w by {scheme}, q the node's score by {rule} discounted by failed prerequisites "
    "(λ weak {weak:g}, strong {strong:g}, hard {hard:g}), × 100",
    "tree_mean": "recursive mean over the tree of prerequisites, s by {rule}, × 100",
    "critical_gate": "mean over the tree of prerequisites, 0 above a critical one that is not perfect, s by "
    "{rule}, × 100",
}
_READING: Final = (
    f"{DEFAULT} is the default and a reading of the paper, which leaves open whether a node sums what builds on it or "
    f"receives a share: see {HEADLINE}/<scheme>"
)


class DagAggregator:
    """Reads `coverage_floor` and `strict` of the section `benchmark`, and its own keys (settings.py)."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        self._settings = Settings.of(config)
        self._floor = 1.0 if config.get("strict") else float(config.get("coverage_floor", 0.95))

    def aggregate(self, scores: Sequence[TaskScore]) -> Aggregate:
        """Metrics, groups `form` and `category`, paired gaps between forms, and what a reader must know."""
        groups = {"form": self._members(scores, "form"), "category": self._members(scores, "category")}
        gaps = form_gaps(scores, floor=self._floor)
        return Aggregate(
            metrics={name: self._metric(scores, name) for name in metric_names(self._settings)},
            groups=groups | ({"form_gaps": gaps} if gaps else {}),
            warnings=tuple(_warnings(scores)),
        )

    def _metric(self, scores: Sequence[TaskScore], name: str) -> Metric:
        from core.stats import LEVEL, RESAMPLES, SEED, sd

        values = _values(scores, name)
        overalls = run_overalls(scores, name)
        clusters = _clusters(scores, name)
        together = "" if len(clusters) == len(values) else f", the forms of one of {len(clusters)} tasks together"
        estimator = (
            f"{self._how(name)}; a task is the mean over its judge runs, then attempts; value: mean over the "
            f"{len(values)} scored of {len(scores)} tasks; low, high: {LEVEL:.0%} percentile bootstrap over "
            f"tasks{together}, {RESAMPLES} resamples, seed {SEED}; sd: over the overalls of {len(overalls)} judge "
            "runs, ddof=1"
        )
        value = mean(values)
        if value is None or not self._enough(len(values), len(scores)):
            return Metric(value=None, n=len(values), estimator=estimator)
        low, high = _interval(clusters, value)
        return Metric(value=value, low=low, high=high, sd=sd(overalls, ddof=1), n=len(values), estimator=estimator)

    def _how(self, name: str) -> str:
        settings = self._settings
        kind, _, scheme = name.partition("/")
        # under another scheme, a tree's nodes are simply weighted
        aggregation = "weighted" if scheme and settings.aggregation in TREES else settings.aggregation
        how = _HOW[aggregation].format(
            scheme=scheme or settings.scheme,
            rule=settings.node_rule,
            **{edge: float(share) for edge, share in settings.passing.items()},
        )
        if kind in TYPES:
            how = f"the part of {kind} nodes in the score: {how}"
        if not scheme and aggregation not in TREES:
            how += f" ({_READING})" if settings.scheme == DEFAULT else f" (not the default scheme; {_READING})"
        return how

    def _members(self, scores: Sequence[TaskScore], label: str) -> dict[str, Numbers]:
        members: dict[str, list[TaskScore]] = {}
        for score in scores:
            if label in score.labels:
                members.setdefault(str(score.labels[label]), []).append(score)
        return {member: self._group(tasks) for member, tasks in sorted(members.items())}

    def _group(self, scores: Sequence[TaskScore]) -> Numbers:
        found: Numbers = {}
        for name in (HEADLINE, *TYPES):
            values = _values(scores, name)
            found[name] = mean(values) if self._enough(len(values), len(scores)) else None
        return {**found, "n_tasks": len(scores), "n_scored": len(_values(scores, HEADLINE))}

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


def _clusters(scores: Iterable[TaskScore], name: str) -> list[float]:
    """The mean of each task over its forms: forms share a rubric, so they are not independent."""
    tasks: dict[str, list[float | None]] = {}
    for score in scores:
        tasks.setdefault(task_of(score), []).append(score.metrics.get(name))
    means = (mean(values) for values in tasks.values())
    return [value for value in means if value is not None]


def _interval(clusters: Sequence[float], value: float) -> tuple[float | None, float | None]:
    from core.stats import bootstrap_interval

    found = bootstrap_interval(clusters)
    if found is None:
        return None, None
    # where tasks have different numbers of forms, the mean over items is not that over tasks
    return min(found[0], value), max(found[1], value)


def _warnings(scores: Sequence[TaskScore]) -> Iterable[str]:
    by_rule = Counter(flag for score in scores for flag in score.flags if flag in BY_RULE)
    if by_rule:
        n_found = sum(any(flag in BY_RULE for flag in score.flags) for score in scores)
        kinds = ", ".join(f"{status} {count}" for status, count in sorted(by_rule.items()))
        yield (
            f"{n_found} of {len(scores)} tasks with answers decided by rule, without a judge ({kinds}): every "
            "checkpoint UNMET, so the score is 0"
        )
    n_tasks = len({task_of(score) for score in scores if score.metrics.get(HEADLINE) is not None})
    if n_tasks < SMALL:
        yield f"only {n_tasks} tasks are scored: compare intervals, not means"
    forms = sorted({form_of(score) for score in scores})
    if len(forms) > 1:
        yield f"the overall mixes the query forms {', '.join(forms)}: compare systems form by form"
