"""Folding numbers, in one place: means that skip what is missing, and never what is zero.

Order does not matter: sums are exact (math.fsum), so shards merged in any order give the same bits.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from core.model import Count, Judgement, RunScore, Task, TaskScore, TaskStatus

CoverageBy = Mapping[str, Mapping[str, Count]]


@dataclass(frozen=True, slots=True)
class Attempt:
    """What the fold needs of one attempt: its submission's status and its score, if there is one.

    `status` is None where no submission exists (never solved, cut short). `missing` is how many
    judgements a score of this attempt would have rested on.
    """

    status: str | None
    score: TaskScore | None
    missing: int = 0


def mean(values: Iterable[float | None]) -> float | None:
    """The arithmetic mean of what is there; None when nothing is."""
    present = [value for value in values if value is not None]
    return math.fsum(present) / len(present) if present else None


def mean_metrics(rows: Sequence[Mapping[str, float | None]]) -> dict[str, float | None]:
    """The mean of each metric over the rows that have it, in the order of first appearance."""
    names = dict.fromkeys(name for row in rows for name in row)
    return {name: mean(row.get(name) for row in rows) for name in names}


def add_counts(counts: Iterable[CoverageBy]) -> dict[str, dict[str, Count]]:
    """The sums of counts, group by group and member by member."""
    total: dict[str, dict[str, Count]] = {}
    for groups in counts:
        for group, members in groups.items():
            for member, count in members.items():
                known = total.setdefault(group, {}).get(member, Count())
                total[group][member] = Count(
                    graded=known.graded + count.graded, expected=known.expected + count.expected
                )
    return total


def by_repeat(judgements: Iterable[Judgement]) -> dict[int, list[Judgement]]:
    """The judgements of one attempt by repeat, in ascending order of repeats."""
    repeats: dict[int, list[Judgement]] = {}
    for row in judgements:
        repeats.setdefault(row.repeat, []).append(row)
    return dict(sorted(repeats.items()))


def score_of_runs(
    task: Task, runs: Sequence[RunScore], *, coverage_by: CoverageBy, flags: Iterable[str] = ()
) -> TaskScore:
    """One attempt's score: the mean of its repeats. What a grader's `score` returns."""
    return TaskScore(
        task_id=task.id,
        metrics=mean_metrics([run.metrics for run in runs]),
        by_run=tuple(runs),
        n_graded=sum(run.n_graded for run in runs),
        n_expected=sum(run.n_expected for run in runs),
        status="scored",
        flags=tuple(sorted(set(flags))),
        labels=task.labels,
        coverage_by=coverage_by,
    )


def score_of_attempts(
    task: Task, attempts: Sequence[Attempt], *, headline: str, floor: float, by_rule: frozenset[str]
) -> TaskScore:
    """The task's score: the mean of its attempts, withheld below the coverage floor.

    `floor` is a share of n_expected, 0…1. `by_rule` holds the submission statuses that were scored without
    a judge. `headline` names the metric without which a task has no score. Statuses: `error` when no
    attempt has a score, `withheld` below the floor or without a headline, `zero` when every
    attempt was scored by rule, else `scored`. The metrics of the first two are null.
    """
    scores = [attempt.score for attempt in attempts if attempt.score is not None]
    graded = sum(score.n_graded for score in scores)
    expected = sum(score.n_expected for score in scores)
    expected += sum(attempt.missing for attempt in attempts if attempt.score is None)
    metrics = mean_metrics([score.metrics for score in scores])
    flags = {flag for score in scores for flag in score.flags}
    flags |= {attempt.status for attempt in attempts if attempt.status not in (None, "completed")}

    status: TaskStatus
    if not scores:
        status = "error"
    elif graded < floor * expected or metrics.get(headline) is None:
        status = "withheld"
    elif all(attempt.status in by_rule for attempt in attempts):
        status = "zero"
    else:
        status = "scored"
    if status in ("error", "withheld"):
        metrics = dict.fromkeys(metrics)
    return TaskScore(
        task_id=task.id,
        metrics=metrics,
        by_run=tuple(run for score in scores for run in score.by_run),
        n_graded=graded,
        n_expected=expected,
        status=status,
        flags=tuple(sorted(flags)),
        labels=task.labels,
        coverage_by=add_counts(score.coverage_by for score in scores),
    )
