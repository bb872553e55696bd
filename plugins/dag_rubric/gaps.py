"""Query forms compared: what a task scores with hints, minus what the same task scores in another form.

Gaps are paired: a task counts where both forms have a number. The paper (arXiv 2608.02163) reports a mean gap of
.16 between with_hints and without_hints.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from core.aggregate import Numbers
from core.fold import mean
from core.model import TaskScore
from plugins.dag_rubric.rubric import TYPES
from plugins.dag_rubric.scoring import HEADLINE
from plugins.dag_rubric.settings import FORMS

#: The metrics whose gaps are shown: the score, and the parts it is made of.
SHOWN: Final = (HEADLINE, *TYPES)


def form_of(score: TaskScore) -> str:
    return str(score.labels.get("form", ""))


def task_of(score: TaskScore) -> str:
    """The task's own id, which its forms share."""
    return str(score.labels.get("task", score.task_id))


def form_gaps(scores: Iterable[TaskScore], *, floor: float = 0.0) -> dict[str, Numbers]:
    """`with_hints - <form>` → the mean gap of each metric, 0–100, with its interval and the number of pairs.

    Only for forms that some task of `scores` has. `floor`: no gap where a smaller share of the tasks with both
    forms has numbers for both.
    """
    by_form: dict[str, dict[str, TaskScore]] = {}
    for score in scores:
        by_form.setdefault(form_of(score), {})[task_of(score)] = score
    first = by_form.get(FORMS[0], {})
    found = {}
    for form in FORMS[1:]:
        pairs = [(first[task], other) for task, other in by_form.get(form, {}).items() if task in first]
        if pairs:
            found[f"{FORMS[0]} - {form}"] = _gap(pairs, floor)
    return found


def _gap(pairs: Sequence[tuple[TaskScore, TaskScore]], floor: float) -> Numbers:
    from core.stats import bootstrap_interval

    numbers: Numbers = {}
    n = 0
    for metric in SHOWN:
        differences = [
            gap for one, other in pairs if (gap := _difference(one.metrics, other.metrics, metric)) is not None
        ]
        n = len(differences)
        enough = n > 0 and n >= floor * len(pairs)
        low, high = (bootstrap_interval(differences) if enough else None) or (None, None)
        numbers |= {metric: mean(differences) if enough else None, f"{metric}_low": low, f"{metric}_high": high}
    return {**numbers, "n_pairs": n, "n_tasks": len(pairs)}


def _difference(one: Mapping[str, float | None], other: Mapping[str, float | None], metric: str) -> float | None:
    left, right = one.get(metric), other.get(metric)
    return None if left is None or right is None else left - right
