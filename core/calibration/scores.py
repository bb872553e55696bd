"""A judge's labels as they bear on scores: the corrected headline, and the tasks that are blocked."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Final

from core.calibration import fold
from core.calibration.correct import Graded, TaskParts, corrected_score
from core.calibration.judged import Key, value_of, values_of
from core.calibration.rates import FN, FP, Pair, by_task, is_weighted
from core.calibration.results import Blocked, Corrected, Limits, Score, Settings, TaskAudit
from core.calibration.study import JudgeStudy
from core.errors import InputError
from core.fold import mean
from core.model import Judgement, TaskScore
from core.rescore import read_rows
from core.runfolder import SCORES
from core.stats import wilson

#: The one kind when all are corrected alike.
ALL: Final = "all"


def audit(pairs: Sequence[Pair], settings: Settings) -> tuple[TaskAudit, ...]:
    """Of each task: on how many labels the judge errs, and whether that blocks it."""
    return tuple(
        _audited(task, [pair for pair in pairs if pair.task == task], settings)
        for task in sorted({pair.task for pair in pairs})
    )


def _audited(task: str, pairs: Sequence[Pair], settings: Settings) -> TaskAudit:
    errors, n = sum(pair.label != pair.judge for pair in pairs), len(pairs)
    weighted = is_weighted(pairs)
    sums = by_task(pairs)[0]
    share = float((sums[FN] + sums[FP]) / sums.sum()) if weighted else errors / n
    blocked: Blocked = "too few" if n < settings.audit_least else "yes" if share > settings.limit else "no"
    limits = None if weighted else wilson(errors, n, level=settings.level)
    return TaskAudit(
        task_id=task,
        n=n,
        errors=errors,
        share=share,
        wilson=None if limits is None else Limits(low=limits[0], high=limits[1]),
        blocked=blocked,
    )


@dataclass(frozen=True)
class _Attempt:
    """One attempt's headline as a weighted sum. `yes[unit]`: the share of repeats that say yes."""

    points: fold.Points
    yes: Mapping[str, float]
    n_held: int


def score_of(study: JudgeStudy) -> Score:
    """The corrected headline of a run, or why there is none."""
    metric = study.run.saved.config.benchmark.headline
    reported = _reported(study, metric)
    overall = mean(reported.values())
    why = None
    if not study.alone:
        why = "the run's verdicts are of several judges"
    elif not study.is_yes_or_no:
        why = f"{metric} is no weighted sum of verdicts: what is corrected is the share of yes alone"
    elif study.decisive is None:
        why = "no label speaks of a verdict that is a yes or a no"
    found = _attempts(study, metric, set(reported)) if why is None else None
    if why is None and not isinstance(found, dict):
        why = found or "no task has a score"
    if not isinstance(found, dict) or why is not None:
        nothing = Corrected(apparent=overall, n=len(reported), why=why)
        return Score(
            metric=metric, reported=overall, group=None, kinds=(), by_kind=nothing, pooled=nothing, n_held=0
        )
    kinds_of, group = _kinds(study, found)
    kinds = tuple(sorted(set(kinds_of.values())))
    attempts = study.run.saved.config.attempts
    return Score(
        metric=metric,
        reported=overall,
        group=group,
        kinds=kinds,
        by_kind=corrected_score(_parts(study, found, reported, kinds_of, attempts), kinds, study.settings),
        pooled=corrected_score(
            _parts(study, found, reported, dict.fromkeys(kinds_of, ALL), attempts), (ALL,), study.settings
        ),
        n_held=sum(attempt.n_held for attempt in found.values() if isinstance(attempt, _Attempt)),
    )


def _reported(study: JudgeStudy, metric: str) -> dict[str, float]:
    """Each scored task's headline."""
    scores = read_rows(study.run.path / SCORES, TaskScore, "score")
    found = ((score.task_id, score.metrics.get(metric)) for score in scores)
    return {task: value for task, value in found if value is not None}


#: A weighted sum, or the number that a rule gave.
Found = dict[tuple[str, int], _Attempt | float]


def _attempts(study: JudgeStudy, metric: str, tasks: AbstractSet[str]) -> Found | str:
    """Every scored task's attempts; a text says why there are none."""
    found: Found = {}
    by_attempt: dict[tuple[str, int], list[Key]] = {}
    for key in study.rows:
        by_attempt.setdefault(key[:2], []).append(key)
    for (task, attempt), keys in by_attempt.items():
        submission = study.submissions.get((task, attempt))
        if task not in tasks or submission is None:
            continue
        states = [value_of(said, study.decisive or "") for key in keys for said in study.rows[key].values()]
        if "by_rule" in states:
            rows = [
                Judgement(task_id=task, attempt=attempt, unit=key[2], repeat=repeat, verdict=said.verdict)
                for key in keys
                for repeat, said in study.rows[key].items()
            ]
            value = study.grader.score(study.tasks[task], submission, rows).metrics.get(metric)
            if value is not None:
                found[task, attempt] = value
            continue
        one = _attempt(study, metric, (task, attempt), keys)
        if one is None:
            return f"{metric} of task {task!r} is no weighted sum of verdicts"
        found[task, attempt] = one
    return found


def _attempt(study: JudgeStudy, metric: str, at: tuple[str, int], keys: Sequence[Key]) -> _Attempt | None:
    check = study.decisive or ""
    yes: dict[str, float] = {}
    by_repeat: dict[int, dict[str, bool]] = {}
    for key in keys:
        values = values_of(study.rows[key], check)
        if not values:
            continue
        yes[key[2]] = sum(values) / len(values)
        for repeat, said in study.rows[key].items():
            value = value_of(said, check)
            if isinstance(value, bool):
                by_repeat.setdefault(repeat, {})[key[2]] = value
    complete = [met for _, met in sorted(by_repeat.items()) if len(met) == len(yes)]
    # where every repeat lacks something, the sum is tried on what most of them say
    tried = complete or [{unit: share >= 0.5 for unit, share in yes.items()}]
    points = fold.points_of(study.grader, study.tasks[at[0]], study.submissions[at], check, tried, metric)
    if points is None:
        return None
    sums = [points.of({unit: float(value) for unit, value in met.items()}) for met in complete]
    # the sum's last digit may lie outside where the number itself is 0 or the top
    slack = 1e-9 * max(1.0, points.top)
    n_held = sum(not -slack <= value <= points.top + slack for value in sums)
    return _Attempt(points, yes, n_held)


def _kinds(study: JudgeStudy, found: Found) -> tuple[dict[Key, str], str | None]:
    """Each unit's kind, and the group that it is a member of."""
    keys = [(*at, unit) for at, attempt in found.items() if isinstance(attempt, _Attempt) for unit in attempt.yes]
    known = list(dict.fromkeys(group for key in keys for group in study.groups(key)))
    group = study.settings.by or (known[0] if known else None)
    if group is not None and group not in known:
        raise InputError(
            "the benchmark does not count by this",
            where="--by",
            expected=f"one of {', '.join(known)}" if known else "no --by: it counts by nothing",
            got=group,
        )
    return {key: study.groups(key).get(group, ALL) if group is not None else ALL for key in keys}, group


def _parts(
    study: JudgeStudy, found: Found, reported: Mapping[str, float], kinds: Mapping[Key, str], n_attempts: int
) -> list[TaskParts]:
    """Each task as sums by kind; a task's score is the mean of its attempts."""
    labels: dict[str, dict[str, Graded]] = {}
    for key, (label, yes, weight) in study.graded(study.decisive or "").items():
        kind = kinds.get(key)
        if kind is None:
            continue
        of_task = labels.setdefault(key[0], {})
        of_task[kind] = of_task.get(kind, Graded()).plus(label, yes, weight)
    parts = []
    for task in sorted({*reported, *labels}):
        mine = [
            attempt for number in range(1, n_attempts + 1) if (attempt := found.get((task, number))) is not None
        ]
        earned: dict[str, float] = {}
        points: dict[str, float] = {}
        starts: list[float] = []
        for number in range(1, n_attempts + 1):
            attempt = found.get((task, number))
            if isinstance(attempt, float):
                starts.append(attempt)
            elif attempt is not None:
                starts.append(attempt.points.start)
                for unit, worth in attempt.points.by_unit.items():
                    kind = kinds[task, number, unit]
                    earned[kind] = earned.get(kind, 0.0) + worth * attempt.yes[unit] / len(mine)
                    points[kind] = points.get(kind, 0.0) + worth / len(mine)
        parts.append(
            TaskParts(
                scored=bool(starts),
                start=math.fsum(starts) / len(starts) if starts else 0.0,
                earned=earned,
                points=points,
                labels=labels.get(task, {}),
            )
        )
    return parts
