"""How far a score moved between two runs, by the answers alone that both of them judged."""

from __future__ import annotations

from collections.abc import Set as AbstractSet

from core.calibration.judged import Judged
from core.calibration.results import Limits, Settings
from core.fold import mean
from core.model import Frozen, TaskScore
from core.rescore import read_rows
from core.runfolder import SCORES
from core.stats import difference_interval


class ScoreDrift(Frozen):
    """second − first of the headline, over the tasks scored in both runs; the interval draws whole tasks.

    A task's number is that of the answers that both runs judged. An answer that differs counts in neither.
    """

    metric: str
    first: float | None
    second: float | None
    difference: float | None
    by_task: Limits | None
    n: int


def score_drift(
    one: Judged, other: Judged, common: AbstractSet[tuple[str, int]], settings: Settings
) -> ScoreDrift:
    """The headline of two runs; `common`: (task, attempt) of the answers that they share."""
    metric = one.saved.config.benchmark.headline
    scores = [_scored(run, metric) for run in (one, other)]
    apart = {task for task, attempt in {*one.answers, *other.answers} if (task, attempt) not in common}
    first: list[float] = []
    second: list[float] = []
    for task in sorted(scores[0].keys() & scores[1].keys() & {task for task, _ in common}):
        if task in apart:
            numbers = _of_shared(scores[0][task], scores[1][task], metric, common)
        else:
            numbers = scores[0][task].metrics[metric], scores[1][task].metrics[metric]
        if numbers[0] is not None and numbers[1] is not None:
            first.append(numbers[0])
            second.append(numbers[1])
    interval = difference_interval(
        second, first, level=settings.level, resamples=settings.resamples, seed=settings.seed
    )
    n = len(first)
    return ScoreDrift(
        metric=metric,
        first=sum(first) / n if n else None,
        second=sum(second) / n if n else None,
        difference=(sum(second) - sum(first)) / n if n else None,
        by_task=None if interval is None else Limits(low=interval.low, high=interval.high),
        n=n,
    )


def _scored(run: Judged, metric: str) -> dict[str, TaskScore]:
    """The tasks that have a number."""
    scores = read_rows(run.path / SCORES, TaskScore, "score")
    return {score.task_id: score for score in scores if score.metrics.get(metric) is not None}


def _of_shared(
    first: TaskScore, second: TaskScore, metric: str, common: AbstractSet[tuple[str, int]]
) -> tuple[float | None, float | None]:
    """A task's two numbers from the answers alone that both runs judged: repeats first, then attempts, as it is
    folded. An attempt without a judge run (0 by rule) is not seen here."""
    found: list[dict[int, float]] = []
    for score in (first, second):
        runs: dict[int, list[float | None]] = {}
        for run in score.by_run:
            if (score.task_id, run.attempt) in common:
                runs.setdefault(run.attempt, []).append(run.metrics.get(metric))
        means = {attempt: mean(values) for attempt, values in runs.items()}
        found.append({attempt: value for attempt, value in means.items() if value is not None})
    both = found[0].keys() & found[1].keys()
    return mean(found[0][attempt] for attempt in both), mean(found[1][attempt] for attempt in both)
