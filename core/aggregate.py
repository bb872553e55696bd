"""From tasks' scores to the numbers of a summary: what the benchmarks' aggregators have in common.

A number is a mean over tasks: not over groups, not over pooled verdicts. Missing is never zero: a task without a
number leaves every mean, and where too many are missing there is no number at all.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from core.fold import mean
from core.model import BY_RULE, Metric, TaskScore

Numbers = dict[str, int | float | None]


def metric(scores: Sequence[TaskScore], name: str, how: str, floor: float) -> Metric:
    """The metric `name` of a run. `how` says what one task's number is; `floor` is a share of tasks, 0…1.

    Value: the mean over scored tasks; low, high: the bootstrap interval over tasks; sd: over the overalls of judge
    runs, ddof=1. Below the floor there is no value, and `n` says how many tasks have a number.
    """
    from core.stats import LEVEL, RESAMPLES, SEED, bootstrap_interval, sd

    found = values(scores, name)
    overalls = run_overalls(scores, name)
    estimator = (
        f"{how}; a task is the mean over its judge runs, then attempts; value: mean over the "
        f"{len(found)} scored of {len(scores)} tasks; low, high: {LEVEL:.0%} percentile bootstrap over "
        f"tasks, {RESAMPLES} resamples, seed {SEED}; sd: over the overalls of {len(overalls)} judge "
        "runs, ddof=1"
    )
    if not is_enough(len(found), len(scores), floor):
        return Metric(value=None, n=len(found), estimator=estimator)
    low, high = bootstrap_interval(found) or (None, None)
    return Metric(
        value=mean(found), low=low, high=high, sd=sd(overalls, ddof=1), n=len(found), estimator=estimator
    )


def group(scores: Sequence[TaskScore], names: Mapping[str, str], floor: float) -> Numbers:
    """One member's numbers: {shown name: mean of the task metric}, then `n_tasks` and `n_scored`."""
    numbers: Numbers = {}
    n_scored = 0
    for shown, name in names.items():
        found = values(scores, name)
        numbers[shown] = mean(found) if is_enough(len(found), len(scores), floor) else None
        n_scored = max(n_scored, len(found))
    return {**numbers, "n_tasks": len(scores), "n_scored": n_scored}


def members(scores: Iterable[TaskScore], label: str) -> dict[str, list[TaskScore]]:
    """The tasks by the value of a label, in ascending order of values.

    A task whose label is a list is in each of its groups, one without the label in none.
    """
    found: dict[str, list[TaskScore]] = {}
    for score in scores:
        value = score.labels.get(label, ())
        for member in dict.fromkeys([value] if isinstance(value, str) else value):
            found.setdefault(member, []).append(score)
    return dict(sorted(found.items()))


def is_enough(n_scored: int, n_tasks: int, floor: float) -> bool:
    """Whether a mean may be shown."""
    return n_scored > 0 and n_scored >= floor * n_tasks


def floor_of(config: Mapping[str, object]) -> float:
    """The floor that the section `benchmark` sets: `coverage_floor`, or every task where it is `strict`."""
    return 1.0 if config.get("strict") else float(str(config.get("coverage_floor", 0.95)))


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
    overalls = (mean(found) for _, found in sorted(runs.items()))
    return [overall for overall in overalls if overall is not None]


def values(scores: Iterable[TaskScore], name: str) -> list[float]:
    """The numbers of those tasks that have one."""
    found = (score.metrics.get(name) for score in scores)
    return [value for value in found if value is not None]


def by_rule_warnings(scores: Sequence[TaskScore], meaning: str) -> Iterable[str]:
    """One warning where answers were scored without a judge; `meaning` says what such an answer's number is."""
    # where `system.on_failure=missing` turns the rule off, such a task has no number
    ruled = [score for score in scores if score.status != "error"]
    kinds = Counter(flag for score in ruled for flag in score.flags if flag in BY_RULE)
    if kinds:
        n_found = sum(any(flag in BY_RULE for flag in score.flags) for score in ruled)
        listed = ", ".join(f"{status} {count}" for status, count in sorted(kinds.items()))
        yield (
            f"{n_found} of {len(scores)} tasks with answers decided by rule, without a judge ({listed}): {meaning}"
        )
