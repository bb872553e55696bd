"""How a chat completion ended, for every adapter that asks for one."""

from __future__ import annotations

from typing import Any

from core.judge.completion import CUT, FILTERED
from core.model import Failure, SubmissionStatus
from core.reply import shortened


def outcome(finish: str, refusal: Any) -> tuple[SubmissionStatus, Failure | None]:
    """The status of an answer, and why it is no success. `finish` is its finish reason in small letters."""
    if finish in FILTERED:
        return "refused", Failure(kind="refused", message=f"the provider's filter stopped the answer ({finish})")
    if isinstance(refusal, str) and refusal.strip():
        return "refused", Failure(kind="refused", message=f"the model refused: {shortened(refusal, 300)}")
    if finish in CUT:
        return "incomplete", Failure(kind="truncated", message="the answer was cut at max_output_tokens")
    return "completed", None
