"""What the DRACO tests share: small tasks, rows of judgements, a judge's desk inside the process."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from core.judge.question import Answer, Question
from core.model import Failure, Judgement, Submission, Task
from plugins.draco.rubric import criteria_of
from plugins.draco.tasks import DracoTasks, tasks_of

SHARED = Path(__file__).parents[3] / "shared" / "data" / "draco"
OFFICIAL = SHARED / "test.jsonl"
RECORDED = SHARED / "gradings" / "verdicts_10_tasks.json"

needs_official = pytest.mark.skipif(
    not OFFICIAL.is_file(), reason="the official DRACO file is not beside the repository"
)
needs_recorded = pytest.mark.skipif(
    not RECORDED.is_file(), reason="the recorded DRACO verdicts are not beside the repository"
)

Weights = Mapping[str, Mapping[str, float]]


def rubric(sections: Weights) -> dict[str, Any]:
    """{section: {criterion id: weight}} as a rubric."""
    return {
        "id": "rubric",
        "sections": [
            {
                "id": section,
                "title": section.title(),
                "criteria": [
                    {"id": name, "weight": weight, "requirement": f"States the fact {name}"}
                    for name, weight in criteria.items()
                ],
            }
            for section, criteria in sections.items()
        ],
    }


def row(**changes: Any) -> dict[str, Any]:
    """A valid row of a task file; `answer` may be given as a value."""
    found: dict[str, Any] = {
        "id": "t1",
        "problem": "What is so?",
        "answer": rubric({"facts": {"a": 10, "b": -5}}),
        "domain": "Academic",
        **changes,
    }
    if isinstance(found["answer"], dict):
        found["answer"] = json.dumps(found["answer"])
    return {key: value for key, value in found.items() if value is not ...}


def task_of(sections: Weights, **changes: Any) -> Task:
    """One checked task with these criteria."""
    return tasks_of([("made in a test", row(answer=rubric(sections), **changes))], where="made in a test")[0]


def official() -> list[Task]:
    return list(DracoTasks({"source": str(OFFICIAL)}).load())


def judgements(
    task: Task, met: Mapping[str, bool | None], *, repeat: int = 1, attempt: int = 1
) -> list[Judgement]:
    """A row for every criterion that `met` names; None is a judgement that failed."""
    return [
        Judgement(
            task_id=task.id,
            attempt=attempt,
            repeat=repeat,
            unit=f"criterion/{name}",
            verdict=None if verdict is None else {"met": verdict},
            error=Failure(kind="malformed") if verdict is None else None,
            judge="fake",
        )
        for name, verdict in met.items()
    ]


def all_judged(task: Task, verdict: bool | None, *, repeat: int = 1) -> list[Judgement]:
    return judgements(task, {criterion.id: verdict for criterion in criteria_of(task)}, repeat=repeat)


def submission(text: str | None = "An answer.", **changes: Any) -> Submission:
    return Submission(task_id=changes.pop("task_id", "t1"), text=text, **changes)


class FakeDesk:
    """A judge's desk that answers by a function and keeps what it was asked."""

    name = "fake"

    def __init__(self, answer: Callable[[Question], Answer], *, width: int = 4) -> None:
        self.width = width
        self.recorded = False
        self.asked: list[Question] = []
        self.at_work = self.most_at_work = 0
        self._answer = answer

    async def ask(self, question: Question) -> Answer:
        import asyncio

        self.asked.append(question)
        self.at_work += 1
        self.most_at_work = max(self.most_at_work, self.at_work)
        await asyncio.sleep(0)  # lets the others in, as a real call would
        self.at_work -= 1
        return self._answer(question)


def says(verdict: str, explanation: str = "because") -> Answer:
    return Answer(value={"explanation": explanation, "verdict": verdict}, judge="fake")


def ids(rows: Sequence[Judgement]) -> set[str]:
    return {row.unit for row in rows}
