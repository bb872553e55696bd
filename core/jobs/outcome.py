"""From a job's last snapshot and its answer to a submission: what the state was, and what was delivered.

The state (how the job ended) and the delivery (whether what was asked for is there) are kept apart: a job that did
not end well but delivered every required file is an answer, flagged as incomplete; a job that ended well without
them is empty.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

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
#: What a user can do about an end.
_TO_DO: Final[Mapping[SubmissionStatus, str]] = {
    "failed": "retry=failed sends it again",
    "timed_out": "raise system.timeout_s, or lower the effort",
    "refused": "retry=failed sends it again",
}
#: Levels of what a server echoed that a row keeps.
_DEEPEST: Final = 8
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
    name: str,
    handle: Mapping[str, Any] | None,
    latency_s: float,
    late_s: float | None = None,
    resumed: bool = False,
) -> Submission:
    """The submission of an ended job. `name`: the system's; `late_s`: the deadline that ended it, in seconds."""
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
        error = Failure(kind=kind, message=_explained(name, handle, said or last.word or status, status))
    echoed: dict[str, Any] = _bounded(
        {
            **answer.echoed,
            "state": last.word or last.state,
            "delivered": delivered,
            "cost": answer.paid.components,
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


def _explained(name: str, handle: Mapping[str, Any] | None, said: str, status: SubmissionStatus) -> str:
    """Who says it, of which job, and what to do."""
    job = handle.get("id") if handle else None
    parts = [said if said.startswith(f"{name}: ") else f"{name}: {said}"]
    if isinstance(job, str):
        parts.append(f"job {job[:100]}")
    if status in _TO_DO:
        parts.append(_TO_DO[status])
    return "; ".join(parts)


def _bounded(value: Any, depth: int = 0) -> Any:
    """A JSON value as a row can hold it: not too deep to be written, and no NaN or 1e999, which are no numbers."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if depth >= _DEEPEST and isinstance(value, (Mapping, list, tuple)):
        return "…"
    if isinstance(value, Mapping):
        return {str(key): _bounded(item, depth + 1) for key, item in value.items()}
    return [_bounded(item, depth + 1) for item in value] if isinstance(value, (list, tuple)) else value


def _ended(last: Snapshot, late_s: float | None) -> tuple[SubmissionStatus, str]:
    status = _STATUS[last.state]
    if late_s is None:
        return status, last.said
    if status in ("completed", "incomplete"):  # it ended while it was being cancelled
        return status, last.said
    said = f"no answer within {late_s:g} s (system.timeout_s)"
    return "timed_out", f"{said}; {last.said}" if last.said else said
