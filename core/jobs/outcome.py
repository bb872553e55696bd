"""From a job's last snapshot and its answer to a submission: what the state was, and what was delivered.

The state (how the job ended) and the delivery (whether what was asked for is there) are kept apart: a job that did
not end well but delivered every required file is an answer, flagged as incomplete; a job that ended well without
them is empty.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

from core.digest import plain
from core.jobs.provider import Answer, Ask, Snapshot
from core.model import Failure, Submission, SubmissionStatus

#: What a state gives, where nothing else decides. `cancelled`: by somebody else, at the provider.
_STATUS: Final[Mapping[str, SubmissionStatus]] = {
    "completed": "completed",
    "incomplete": "incomplete",
    "failed": "failed",
    "refused": "refused",
    "cancelled": "failed",
    "timed_out": "timed_out",
    # after the deadline, where the provider goes on
    "queued": "timed_out",
    "running": "timed_out",
}
_KIND: Final[Mapping[SubmissionStatus, str]] = {
    "incomplete": "truncated",
    "failed": "failed",
    "refused": "refused",
    "timed_out": "timed_out",
    "empty": "empty",
}


def submission_of(
    ask: Ask,
    last: Snapshot,
    answer: Answer,
    *,
    latency_s: float,
    late_s: float | None = None,
    resumed: bool = False,
) -> Submission:
    """The submission of an ended job. `late_s`: the deadline that ended it, in seconds."""
    required = ask.task.required_files
    missing = [name for name in required if not answer.files.get(name, "").strip()]
    in_files = bool(required) and answer.channel in ("file", "schema")
    typed_alone = not required and any(content.strip() for content in answer.files.values())
    delivered = not missing if in_files else bool((answer.text or "").strip()) or typed_alone
    status, said = _ended(last, late_s)
    if status not in ("completed", "incomplete") and required and not missing:
        status = "incomplete"
    elif in_files and status in ("completed", "incomplete") and missing:
        status = "empty" if len(missing) == len(required) else "incomplete"
        said = "; ".join(part for part in (said, f"not delivered: {', '.join(missing)}") if part)
    error = None
    if status != "completed":
        kind = _KIND[status] if late_s is None or status != "incomplete" else "timed_out"
        reason = said or last.word or status
        error = Failure(kind=kind, message=reason)
    echoed: dict[str, Any] = _finite(
        {
            **plain(answer.echoed),
            "state": last.word or last.state,
            "delivered": delivered,
            "cost": plain(answer.paid.components),
        }
    )
    if resumed:
        echoed["resumed"] = True
    if answer.notes:
        echoed["notes"] = list(answer.notes)
    return Submission(
        task_id=ask.task.id,
        attempt=ask.attempt,
        status=status,
        text=answer.text,
        files=answer.files,
        citations=answer.citations,
        usage=answer.usage,
        latency_s=latency_s if answer.latency_s is None else answer.latency_s,
        cost_usd=answer.paid.usd,
        cost_source=answer.paid.source if answer.paid.usd is not None else "unknown",
        error=error,
        settings={"echoed": echoed},
    )


def _finite(value: Any) -> Any:
    """A JSON value as a row can hold it: what a reply wrote as NaN or 1e999 is no number."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    return [_finite(item) for item in value] if isinstance(value, list) else value


def _ended(last: Snapshot, late_s: float | None) -> tuple[SubmissionStatus, str]:
    status = _STATUS[last.state]
    if late_s is None:
        return status, last.said
    if status in ("completed", "incomplete"):  # it ended while it was being cancelled
        return status, last.said
    said = f"no answer within {late_s:g} s (system.timeout_s)"
    return "timed_out", f"{said}; {last.said}" if last.said else said
