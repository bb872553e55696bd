"""From rows to the numbers of a run: the same folds for a run, a rescore and a merge.

Nothing here does I/O. Attempts are folded by the benchmark's grader, tasks by core/fold.py, the run by the
benchmark's aggregator; this module adds what every benchmark has: counts, coverage, cost, latency, provenance.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from core.config import RunConfig
from core.errors import meaning
from core.fold import Attempt, add_counts, missing, score_of_attempts
from core.model import (
    BY_RULE,
    RULE_JUDGE,
    Cost,
    Count,
    Coverage,
    Failure,
    Judgement,
    JudgeSummary,
    Latency,
    Submission,
    Summary,
    Task,
    TaskScore,
)
from core.parts import Aggregator, Grader

#: Costs whose call nobody could price.
UNKNOWN: Final = "unknown"
#: Tasks without a score that a warning names.
_SHOWN: Final = 5


def score_attempt(
    grader: Grader,
    task: Task,
    submission: Submission | None,
    judgements: Sequence[Judgement],
    *,
    repeats: int,
    failure_is_missing: bool,
) -> Attempt:
    """One attempt's score, or how many judgements it lacks.

    No score without a submission, with an `error` of ours, or, where `system.on_failure=missing`, with a
    submission that would be scored by rule.
    """
    expected = grader.expected(task, submission) * repeats
    status = submission.status if submission is not None else None
    if submission is None or status == "error" or (failure_is_missing and status in BY_RULE):
        blank = missing(grader.score(task, None, []), expected=expected, repeats=repeats)
        return Attempt(status, blank, False, *_paid(submission))  # noqa: FBT003  # has_score
    score = grader.score(task, submission, judgements)
    if score.n_expected < expected:  # a repeat that was cut short before its first row
        score = score.model_copy(update={"n_expected": expected})
    return Attempt(status, score, True, *_paid(submission))  # noqa: FBT003  # has_score


def _paid(submission: Submission | None) -> tuple[float | None, float | None]:
    """What a submission cost, in dollars and seconds; None is unknown."""
    return (None, None) if submission is None else (submission.cost_usd, submission.latency_s)


def score_task(task: Task, attempts: Sequence[Attempt], config: RunConfig) -> TaskScore:
    """The task's score over all attempts that were scheduled; absent ones count as missing."""
    return score_of_attempts(
        task,
        attempts,
        headline=config.benchmark.headline,
        floor=config.benchmark.floor,
        by_rule=BY_RULE,
    )


@dataclass
class Totals:
    """What is counted over the rows of a run while they go by; order does not matter."""

    system_usd: list[float] = field(default_factory=list)
    judge_usd: list[float] = field(default_factory=list)
    unknown_calls: int = 0
    cost_sources: set[str] = field(default_factory=set)
    latencies_s: list[float] = field(default_factory=list)
    systems: Counter[str] = field(default_factory=Counter)
    efforts: Counter[str] = field(default_factory=Counter)
    judges: Counter[str] = field(default_factory=Counter)
    statuses: Counter[str] = field(default_factory=Counter)
    errors: Counter[str] = field(default_factory=Counter)
    #: of each kind of error, the first place and message in the order of places
    examples: dict[str, tuple[str, str]] = field(default_factory=dict)
    first_judged: str | None = None
    last_judged: str | None = None
    judgements: int = 0

    def add_submission(self, submission: Submission) -> None:
        self.statuses[submission.status] += 1
        if submission.system:
            self.systems[submission.system] += 1
        if submission.effort:
            self.efforts[submission.effort] += 1
        if submission.latency_s is not None:
            self.latencies_s.append(submission.latency_s)
        if submission.error is not None:
            place = f"task {submission.task_id}, attempt {submission.attempt}"
            self._add_error("system", submission.error, place)
        # a cost that is not stated is unknown, never free; an error of ours that cost something says so
        unstated = submission.cost_usd is None and submission.status != "error"
        self._add_cost(self.system_usd, submission.cost_usd, UNKNOWN if unstated else submission.cost_source)

    def add_judgement(self, row: Judgement) -> None:
        self.judgements += 1
        if row.error is not None:
            place = f"task {row.task_id}, attempt {row.attempt}, repeat {row.repeat}, {row.unit}"
            self._add_error("judge", row.error, place)
        if row.judge and row.judge != RULE_JUDGE:
            self.judges[row.judge] += 1
        if row.judged_at is not None:
            self.first_judged = min(self.first_judged or row.judged_at, row.judged_at)
            self.last_judged = max(self.last_judged or row.judged_at, row.judged_at)
        self._add_cost(self.judge_usd, row.cost_usd, row.cost_source)

    def _add_error(self, who: str, failure: Failure, place: str) -> None:
        kind = f"{who} {failure.kind}"
        self.errors[kind] += 1
        example = (place, failure.message)
        self.examples[kind] = min(self.examples.get(kind, example), example)

    def _add_cost(self, costs: list[float], usd: float | None, source: str | None) -> None:
        if usd is not None:
            costs.append(usd)
            if usd > 0 and source:
                self.cost_sources.add(source)
        elif source == UNKNOWN:
            self.unknown_calls += 1
            self.cost_sources.add(UNKNOWN)


@dataclass(frozen=True, slots=True)
class JudgeFacts:
    """What is said of the judge beside the rows: `prompt_digest` covers system texts and answer schemas."""

    name: str
    model: str | None
    settings: Mapping[str, Any]
    prompt_digest: str | None
    repeats: int
    family: str | None = None


def summarise(
    config: RunConfig,
    scores: Sequence[TaskScore],
    totals: Totals,
    aggregator: Aggregator,
    judge: JudgeFacts,
    warnings: Sequence[str] = (),
) -> dict[str, Any]:
    """The content of summary.json. `scores` in the order of the source, one for every scheduled task."""
    aggregate = aggregator.aggregate(scores)
    scored = [score for score in scores if has_number(score, config.benchmark.headline)]
    graded = sum(score.n_graded for score in scores)
    expected = sum(score.n_expected for score in scores)
    return Summary(
        benchmark=config.benchmark.name,
        system=config.system.label or _names(totals.systems) or config.system.name,
        effort=_names(totals.efforts) or config.effort_word(),
        judge=JudgeSummary(
            name=judge.name,
            model=judge.model,
            family=judge.family,
            settings=dict(judge.settings),
            prompt_digest=judge.prompt_digest,
            repeats=judge.repeats,
            rows=dict(sorted(totals.judges.items())),
            dates={"first": totals.first_judged, "last": totals.last_judged},
        ),
        attempts=config.attempts,
        n_tasks=len(scores),
        n_scored=len(scored),
        n_graded=graded,
        n_expected=expected,
        coverage=graded / expected if expected else None,
        coverage_by=_coverage(add_counts(score.coverage_by for score in scores)),
        metrics=aggregate.metrics,
        groups=aggregate.groups,
        status=dict(sorted(Counter(score.status for score in scores).items())),
        submissions=dict(sorted(totals.statuses.items())),
        errors=dict(sorted(totals.errors.items())),
        cost=Cost(
            usd=math.fsum([*totals.system_usd, *totals.judge_usd]),
            system_usd=math.fsum(totals.system_usd),
            judge_usd=math.fsum(totals.judge_usd),
            unknown_calls=totals.unknown_calls,
            source="+".join(sorted(totals.cost_sources)) or None,
        ),
        latency=Latency(
            median_s=quantile(totals.latencies_s, 0.5),
            p90_s=quantile(totals.latencies_s, 0.9),
            n=len(totals.latencies_s),
        ),
        warnings=(*warnings, *_missing(config, scores, totals), *aggregate.warnings),
    ).model_dump(mode="json")


def _missing(config: RunConfig, scores: Sequence[TaskScore], totals: Totals) -> Iterator[str]:
    """Why numbers are missing: each kind of error with an example, and the tasks without a score."""
    for kind, count in sorted(totals.errors.items()):
        place, message = totals.examples.get(kind, ("", ""))
        advice = meaning(kind.rpartition(" ")[2]).advice
        words = list(dict.fromkeys(word for word in (message, advice) if word))
        yield f"{kind} {count} times" + (f", first at {place}" if place else "") + f": {'; '.join(words)}"
    lacking = [score for score in scores if not has_number(score, config.benchmark.headline)]
    if not lacking:
        return
    shown = ", ".join(f"{score.task_id} ({score.status})" for score in lacking[:_SHOWN])
    more = f" and {len(lacking) - _SHOWN} more" if len(lacking) > _SHOWN else ""
    n_scored, floor = len(scores) - len(lacking), config.benchmark.floor
    yield f"{len(lacking)} of {len(scores)} tasks have no score: {shown}{more}"
    if n_scored < floor * len(scores):
        yield (
            f"no mean is given: {n_scored} of {len(scores)} tasks have a score, fewer than {floor:.0%} "
            f"(benchmark.{'strict' if config.benchmark.strict else 'coverage_floor'})"
        )


def has_number(score: TaskScore, headline: str) -> bool:
    return score.metrics.get(headline) is not None


def is_complete(summary: Mapping[str, Any], missing_share: float | None) -> bool:
    """Whether every expected number is there (exit code 0), up to the allowed share of judgements."""
    if missing_share is None:
        return True
    if summary["n_scored"] < summary["n_tasks"]:
        return False
    missing = summary["n_expected"] - summary["n_graded"]
    return bool(missing <= missing_share * summary["n_expected"])


def quantile(values: Sequence[float], share: float) -> float | None:
    """The linearly interpolated quantile, as numpy's default; None of nothing."""
    if not values:
        return None
    ordered = sorted(values)
    place = share * (len(ordered) - 1)
    low = math.floor(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)


def _names(found: Counter[str]) -> str | None:
    return "+".join(sorted(found)) or None


def _coverage(counts: Mapping[str, Mapping[str, Count]]) -> dict[str, dict[str, Coverage]]:
    return {
        group: {
            member: Coverage(
                coverage=count.graded / count.expected if count.expected else None,
                n_graded=count.graded,
                n_expected=count.expected,
            )
            for member, count in members.items()
        }
        for group, members in counts.items()
    }
