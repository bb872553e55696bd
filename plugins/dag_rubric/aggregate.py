"""The aggregator `dag_rubric`: from tasks' scores to the numbers of a summary.

The overall is the mean over items: tasks, or with `form=all` a task in one form (core/aggregate.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from core.aggregate import Numbers, by_rule_warnings, floor_of, group, members, metric, values
from core.fold import mean
from core.model import Aggregate, Metric, TaskScore
from plugins.dag_rubric.gaps import SHOWN, form_gaps, form_of, task_of
from plugins.dag_rubric.rubric import TYPES
from plugins.dag_rubric.scoring import HEADLINE, metric_names
from plugins.dag_rubric.settings import TREES, Settings
from plugins.dag_rubric.weights import DEFAULT, EXPLICIT

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
    f"{DEFAULT} is the default and a reading of the paper, which leaves open whether a node sums what builds on "
    f"it or receives a share: see {HEADLINE}/<scheme>"
)
_BESIDE: Final = f"the same answers under other schemes stand beside it as {HEADLINE}/<scheme>"
#: The labels by which the summary groups.
_GROUPS: Final = ("form", "category")


class DagAggregator:
    """Reads `coverage_floor` and `strict` of the section `benchmark`, and its own keys (settings.py)."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        self._settings = Settings.of(config)
        self._floor = floor_of(config)

    def aggregate(self, scores: Sequence[TaskScore]) -> Aggregate:
        """Metrics, groups `form` and `category`, paired gaps between forms, and what a reader must know."""
        groups = {label: self._members(scores, label) for label in _GROUPS}
        gaps = form_gaps(scores, floor=self._floor)
        return Aggregate(
            metrics={name: self._metric(scores, name) for name in metric_names(self._settings)},
            groups=groups | ({"form_gaps": gaps} if gaps else {}),
            warnings=(self._reading(), *_warnings(scores)),
        )

    def _members(self, scores: Sequence[TaskScore], label: str) -> dict[str, Numbers]:
        names = {name: name for name in SHOWN}
        return {member: group(tasks, names, self._floor) for member, tasks in members(scores, label).items()}

    def _metric(self, scores: Sequence[TaskScore], name: str) -> Metric:
        found = metric(scores, name, self._how(name), self._floor)
        return (
            found if len({form_of(score) for score in scores}) < 2 else _with_forms_together(found, scores, name)
        )

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
        if aggregation in TREES:
            return f"{how} (no scheme weighs it, and it is not the paper's; {_READING})"
        is_default = (scheme or settings.scheme) == DEFAULT
        return f"{how} ({_READING})" if is_default else f"{how} (not the default scheme; {_READING})"

    def _reading(self) -> str:
        """What the score's weights rest on: said in every summary, where the score stands."""
        settings = self._settings
        reading = "a reading of the paper's text"
        if settings.aggregation in TREES:
            return (
                f"{HEADLINE}: {settings.aggregation}, which is not the paper's and which no scheme weighs; the "
                f"same answers, weighted, stand beside it as {HEADLINE}/<scheme>, of which {DEFAULT} is the "
                f"default and {reading}"
            )
        gate = " behind a gate, which the paper has not" if settings.aggregation == "gate" else ""
        if settings.scheme == DEFAULT:
            return f"{HEADLINE}: {DEFAULT}{gate}, the default and {reading}; {_BESIDE}"
        own = ", the tasks' own weights" if settings.scheme == EXPLICIT else ""
        return (
            f"{HEADLINE}: {settings.scheme}{own}{gate}, not the default, which is {DEFAULT}, {reading}; {_BESIDE}"
        )


def _with_forms_together(found: Metric, scores: Iterable[TaskScore], name: str) -> Metric:
    """The same number with an interval over tasks, not items: forms share a rubric, so they are no draws apart."""
    from core.stats import bootstrap_interval

    if found.value is None:
        return found
    tasks: dict[str, list[TaskScore]] = {}
    for score in scores:
        tasks.setdefault(task_of(score), []).append(score)
    means = [mean(values(forms, name)) for forms in tasks.values()]
    low, high = bootstrap_interval([value for value in means if value is not None]) or (None, None)
    if low is not None and high is not None:
        # where tasks have different numbers of forms, the mean over items is not that over tasks
        low, high = min(low, found.value), max(high, found.value)
    said = f"{found.estimator}; the interval draws the forms of one task together"
    return found.model_copy(update={"low": low, "high": high, "estimator": said})


def _warnings(scores: Sequence[TaskScore]) -> Iterable[str]:
    yield from by_rule_warnings(scores, "every checkpoint UNMET, so the score is 0")
    n_tasks = len({task_of(score) for score in scores if score.metrics.get(HEADLINE) is not None})
    if n_tasks < SMALL:
        yield f"only {n_tasks} tasks are scored: compare intervals, not means"
    forms = sorted({form_of(score) for score in scores})
    if len(forms) > 1:
        yield f"the overall mixes the query forms {', '.join(forms)}: compare systems form by form"
