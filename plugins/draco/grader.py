"""The grader `draco`: one question a criterion, one row an answer, numbers by scoring.py."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import aclosing
from typing import Any, Final

from core.flow import as_done
from core.fold import score_of_runs
from core.judge.question import Question
from core.judge.rows import by_rule, judgement
from core.judge.shown import Shown
from core.model import BY_RULE, GRADED, Judgement, Submission, Task, TaskScore
from core.services import JudgeDesk
from plugins.draco import leaks
from plugins.draco.explain import explained
from plugins.draco.prompt import MET, question
from plugins.draco.rubric import criteria_of
from plugins.draco.scoring import coverage_of, metric_names, run_scores

#: The form of a unit's verdict in a file of judgements.
VERDICT_SCHEMA: Final[Mapping[str, Any]] = {
    "type": "object",
    "properties": {"met": {"type": "boolean"}},
    "required": ["met"],
}


class DracoGrader:
    """Asks about every criterion apart; an answer that never came is scored as UNMET throughout.

    `desk` asks the judge; it may be None where nothing is judged (scores folded anew).
    """

    def __init__(self, desk: JudgeDesk | None) -> None:
        self._desk = desk

    def expected(self, task: Task, submission: Submission | None) -> int:  # noqa: ARG002 -- the rubric alone decides
        """One judgement a criterion and repeat, whatever became of the submission."""
        return len(criteria_of(task))

    def questions(self, task: Task, submission: Submission, repeat: int) -> list[Question]:
        """The questions of one repeat, in the rubric's order; none where a rule decides."""
        if submission.status not in GRADED:
            return []
        shared = Shown(task.prompt, submission)
        return [question(task, submission, repeat, criterion, shared) for criterion in criteria_of(task)]

    def explain(self, task: Task, submission: Submission, judgements: Sequence[Judgement]) -> dict[str, Any]:  # noqa: ARG002 -- the verdicts alone decide
        """How one submission's score came about, criterion by criterion (explain.py)."""
        return explained(task, judgements)

    def unit_labels(self, task: Task) -> Mapping[str, Mapping[str, str]]:
        """What a comparison of judges splits by: each criterion's sign and axis."""
        return {one.unit: {"sign": one.sign, "axis": one.section} for one in criteria_of(task)}

    def unit_schema(self, task: Task, unit: str) -> Mapping[str, Any] | None:
        """The JSON Schema of a unit's verdict; None when the task has no such criterion."""
        return VERDICT_SCHEMA if any(criterion.unit == unit for criterion in criteria_of(task)) else None

    async def grade(self, task: Task, submission: Submission, repeat: int) -> AsyncIterator[Judgement]:
        """The rows of one repeat, as answers come; without a judge where the system gave no answer."""
        if submission.status in BY_RULE:
            for criterion in criteria_of(task):
                yield by_rule(submission, criterion.unit, repeat, {"met": False})
            return
        if submission.status not in GRADED:
            raise ValueError(f"a submission with status {submission.status!r} has nothing to grade")
        if self._desk is None:
            raise ValueError("grading needs a judge, and this grader was made without one")
        questions = self.questions(task, submission, repeat)
        async with aclosing(as_done(questions, self._desk.ask, width=self._desk.width)) as answers:
            async for asked, answer in answers:
                yield judgement(asked, asked.units[0], answer, _verdict)

    def score(self, task: Task, submission: Submission | None, judgements: Sequence[Judgement]) -> TaskScore:
        """The metrics of one attempt, and its signs of contamination; see scoring.py and leaks.py.

        No judgement at all gives the names of the metrics with nulls, and the counts of one repeat. Raises
        ValueError for rows of another task or two rows of one verdict, InputError for unknown units.
        """
        strangers = {row.task_id for row in judgements} - {task.id}
        if strangers:
            raise ValueError(f"judgements of {sorted(strangers)} given for task {task.id}")
        criteria = criteria_of(task)
        flags = leaks.flags(submission)
        if not judgements:
            blank = score_of_runs(task, [], coverage_by=coverage_of(criteria, {}), flags=flags)
            metrics = dict.fromkeys(metric_names(criteria))
            return blank.model_copy(update={"metrics": metrics, "n_expected": len(criteria)})
        runs, coverage = run_scores(criteria, judgements)
        return score_of_runs(task, runs, coverage_by=coverage, flags=flags)


def _verdict(answer: Mapping[str, Any]) -> Mapping[str, Any]:
    return {"met": answer["verdict"] == MET}
