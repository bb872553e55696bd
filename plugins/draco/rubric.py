"""A task's rubric as the grader reads it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from core.model import Task

UNIT_PREFIX: Final = "criterion/"


@dataclass(frozen=True, slots=True)
class Criterion:
    """One criterion. `weight` is finite and not 0; below 0 the requirement states an error.

    Its id is unique within its task only: many tasks have a criterion of the same id.
    """

    id: str
    weight: float
    requirement: str
    section: str

    @property
    def unit(self) -> str:
        """The name of its verdict in a file of judgements."""
        return UNIT_PREFIX + self.id

    @property
    def sign(self) -> str:
        return "positive" if self.weight > 0 else "negative"


def criteria_of(task: Task) -> tuple[Criterion, ...]:
    """The criteria of a task, section by section, in the rubric's order."""
    return tuple(
        Criterion(criterion["id"], criterion["weight"], criterion["requirement"], section["id"])
        for section in task.payload["sections"]
        for criterion in section["criteria"]
    )
