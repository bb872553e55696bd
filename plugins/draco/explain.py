"""How a score came about, criterion by criterion, as plain JSON (core/report/html/shapes.md)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from core.fold import by_repeat, mean
from core.model import Judgement, Task
from plugins.draco.rubric import UNIT_PREFIX, criteria_of
from plugins.draco.scoring import score, verdicts


def explained(task: Task, judgements: Sequence[Judgement]) -> dict[str, Any]:
    """The rubric's sections with what each criterion adds to `raw`, in points: the mean over repeats.

    What a MET criterion adds is the difference that its verdict makes to the repeat's raw score; the sum over all
    criteria is raw itself (in a rubric of negatives alone, raw minus 100). A criterion without a verdict in any
    repeat has no contribution. Raises as the grader's `score` does.
    """
    criteria = criteria_of(task)
    added: dict[str, list[float]] = {}
    for rows in by_repeat(judgements).values():
        met = verdicts(criteria, rows)
        nothing = score(criteria, dict.fromkeys(met, False)).raw
        for criterion in criteria:
            if criterion.id not in met or nothing is None:
                continue
            alone = score(criteria, {**dict.fromkeys(met, False), criterion.id: met[criterion.id]}).raw
            added.setdefault(criterion.id, []).append((alone or 0.0) - nothing)
    return {
        "criteria": [
            {
                "id": section["id"],
                "title": section.get("title") or section["id"],
                "criteria": [
                    {
                        "unit": UNIT_PREFIX + criterion["id"],
                        "text": criterion["requirement"],
                        "weight": criterion["weight"],
                        "contribution": mean(added.get(criterion["id"], ())),
                    }
                    for criterion in section["criteria"]
                ],
            }
            for section in task.payload["sections"]
        ]
    }
