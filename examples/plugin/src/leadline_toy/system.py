"""The system `echo`: it answers with the question. It needs no network, no key and no time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from core.model import Submission, Task


class Echo:
    """Repeats the prompt `times` times."""

    #: Raise it when the same settings give another answer: stored answers of older versions are then asked anew.
    wire_version: Final = "1"

    def __init__(self, config: Mapping[str, Any]) -> None:
        self._times = int(config["effort_settings"]["times"])
        #: All that shapes an answer: part of what answers are stored under.
        self.settings: Mapping[str, Any] = {"times": self._times}
        self.estimate_usd = config.get("estimate_usd")

    async def solve(self, task: Task, attempt: int) -> Submission:
        """One attempt; every attempt gives the same."""
        text = "\n".join([task.prompt] * self._times)
        return Submission(task_id=task.id, attempt=attempt, text=text, cost_usd=0.0, cost_source="computed")
