"""From a judge's answer to the rows of a run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from core.judge.question import Answer, Question, RecordedVerdict
from core.model import RULE_JUDGE, Failure, Judgement, Submission


def judgement(
    question: Question, unit: str, answer: Answer, read: Callable[[Mapping[str, Any]], Mapping[str, Any]]
) -> Judgement:
    """The row of one unit. `read` makes the unit's verdict of the answer's schema-checked value.

    A recorded verdict is taken as it stands; an answer that failed gives a row without a verdict.
    """
    recorded = answer.verdicts.get(unit)
    if recorded is not None:
        return _recorded(question, unit, recorded, recorded.judge or answer.judge)
    verdict, explanation = None, None
    if answer.value is not None and answer.error is None:
        verdict = read(answer.value)
        explanation = str(answer.value.get("explanation") or answer.value.get("reasoning") or "") or None
    # an answer that decides several units is paid once: its cost stands in the first unit's row
    first = unit == question.units[0]
    return Judgement(
        task_id=question.task_id,
        attempt=question.attempt,
        unit=unit,
        repeat=question.repeat,
        verdict=verdict,
        error=answer.error,
        judge=answer.judge,
        explanation=explanation,
        raw=answer.raw if first else None,
        usage=answer.usage if first else None,
        latency_s=answer.latency_s if first else None,
        cost_usd=answer.cost_usd if first else None,
        cost_source=answer.cost_source if first else None,
        prompt_digest=question.digest,
        judged_at=answer.asked_at,
    )


def _recorded(question: Question, unit: str, recorded: RecordedVerdict, judge: str) -> Judgement:
    """A verdict that was given elsewhere, with what its file says of where it came from."""
    error = recorded.error
    if recorded.verdict is None and error is None:
        error = Failure(kind="not_recorded", message="the recorded verdict is null")
    return Judgement(
        task_id=question.task_id,
        attempt=question.attempt,
        unit=unit,
        repeat=question.repeat,
        verdict=recorded.verdict,
        error=error,
        judge=judge,
        explanation=recorded.explanation,
        cost_usd=recorded.cost_usd,
        prompt_digest=recorded.prompt_digest,
        judged_at=recorded.judged_at,
    )


def by_rule(submission: Submission, unit: str, repeat: int, verdict: Mapping[str, Any]) -> Judgement:
    """The row of a unit that needs no judge: the submission is empty, refused, failed or timed out."""
    return Judgement(
        task_id=submission.task_id,
        attempt=submission.attempt,
        unit=unit,
        repeat=repeat,
        verdict=verdict,
        judge=RULE_JUDGE,
        explanation=f"decided by rule: the submission's status is {submission.status}",
    )
