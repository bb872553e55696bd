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
    """What the fold needs of one attempt: its submission's status, and its score or what it lacks.

    `status` is None where no submission exists (never solved, cut short). `has_score` says whether `score` holds
    numbers; where it doesn't, `score` has the metrics' names with nulls and the judgements that are missing.
    """

    status: str | None
    score: TaskScore
    has_score: bool
    cost_usd: float | None = None
    latency_s: float | None = None


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


def missing(score: TaskScore, *, expected: int, repeats: int) -> TaskScore:
    """What an attempt without numbers lacks, from the grader's score of no judgements at all.

    That score has the counts of one repeat; here they stand for all `repeats`, and nothing is graded.
    """
    return score.model_copy(
        update={
            "metrics": dict.fromkeys(score.metrics),
            "by_run": (),
            "n_graded": 0,
            "n_expected": expected,
            "coverage_by": {
                group: {
                    name: Count(graded=0, expected=count.expected * repeats) for name, count in members.items()
                }
                for group, members in score.coverage_by.items()
            },
        }
    )


def by_repeat(judgements: Iterable[Judgement]) -> dict[int, list[Judgement]]:
    """The judgements of one attempt by repeat, in ascending order of repeats."""
    repeats: dict[int, list[Judgement]] = {}
    for row in judgements:
        repeats.setdefault(row.repeat, []).append(row)
    return dict(sorted(repeats.items()))


def score_of_runs(
    task: Task,
    runs: Sequence[RunScore],
    *,
    coverage_by: CoverageBy,
    flags: Iterable[str] = (),
    notes: Iterable[str] = (),
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
        notes=tuple(notes),
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
    scores = [attempt.score for attempt in attempts if attempt.has_score]
    everything = [attempt.score for attempt in attempts]
    graded = sum(score.n_graded for score in everything)
    expected = sum(score.n_expected for score in everything)
    metrics = mean_metrics([score.metrics for score in everything])
    flags = {flag for score in everything for flag in score.flags}
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
        by_run=tuple(run for score in everything for run in score.by_run),
        n_graded=graded,
        n_expected=expected,
        status=status,
        flags=tuple(sorted(flags)),
        labels=task.labels,
        coverage_by=add_counts(score.coverage_by for score in everything),
        notes=tuple(dict.fromkeys(note for score in everything for note in score.notes)),
        cost_usd=mean(attempt.cost_usd for attempt in attempts),
        latency_s=mean(attempt.latency_s for attempt in attempts),
    )
