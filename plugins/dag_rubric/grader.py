"""The grader `dag_rubric`: a question a node (or a checkpoint, or a task), a row a checkpoint."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import Any, Final

from core.flow import as_done
from core.fold import score_of_runs
from core.judge.question import Answer, Question
from core.judge.rows import by_rule, judgement
from core.judge.shown import Shown
from core.model import BY_RULE, GRADED, Judgement, Submission, Task, TaskScore
from core.services import JudgeDesk
from plugins.dag_rubric.explain import explained
from plugins.dag_rubric.prompt import MET, VERDICTS, label, question
from plugins.dag_rubric.rubric import Checkpoint, Node, Rubric
from plugins.dag_rubric.scoring import Plan, coverage_of, metric_names, run_scores
from plugins.dag_rubric.settings import Settings

#: The form of a unit's verdict in a file of judgements.
VERDICT_SCHEMA: Final[Mapping[str, Any]] = {
    "type": "object",
    "properties": {"met": {"type": "boolean"}},
    "required": ["met"],
}


class DagGrader:
    """Asks about checkpoints as `benchmark.judging` says; an answer that never came is UNMET throughout.

    `desk` asks the judge; it may be None where nothing is judged (scores folded anew). Every method raises
    InputError for a task that the configuration does not fit: an aggregation for trees and a graph that is none,
    explicit weights and a task without.
    """

    def __init__(self, config: Mapping[str, Any], desk: JudgeDesk | None) -> None:
        self._settings = Settings.of(config)
        self._desk = desk
        self._plans: dict[str, tuple[Task, Plan]] = {}

    def expected(self, task: Task, submission: Submission | None) -> int:  # noqa: ARG002 -- the rubric alone decides
        """One judgement a checkpoint and repeat, whatever became of the submission."""
        return len(self._plan(task).rubric.checkpoints)

    def describe(self, task: Task) -> str:
        """One line on a task, for listings."""
        nodes = self._plan(task).rubric.nodes
        prompt = " ".join(task.prompt.split())
        return f"{len(nodes)} nodes: {prompt if len(prompt) <= 80 else f'{prompt[:79]}…'}"

    def questions(self, task: Task, submission: Submission, repeat: int) -> list[Question]:
        """The questions of one repeat, in the rubric's order; none where a rule decides."""
        if submission.status not in GRADED:
            return []
        shown = Shown(task.prompt, submission)
        groups = _groups(self._plan(task).rubric, self._settings.judging)
        return [question(task, submission, repeat, asked, shown) for asked in groups]

    def explain(self, task: Task, submission: Submission, judgements: Sequence[Judgement]) -> dict[str, Any]:  # noqa: ARG002 -- the verdicts alone decide
        """How one submission's score came about, node by node (explain.py)."""
        return explained(self._plan(task), judgements)

    def unit_labels(self, task: Task) -> Mapping[str, Mapping[str, str]]:
        """What a comparison of judges splits by: the type of each checkpoint's node."""
        nodes = self._plan(task).rubric.nodes
        return {checkpoint.unit: {"type": node.type} for node in nodes for checkpoint in node.checkpoints}

    def unit_schema(self, task: Task, unit: str) -> Mapping[str, Any] | None:
        """The JSON Schema of a unit's verdict; None when the task has no such checkpoint."""
        return VERDICT_SCHEMA if unit in self._plan(task).rubric.by_unit else None

    async def grade(self, task: Task, submission: Submission, repeat: int) -> AsyncIterator[Judgement]:
        """The rows of one repeat, as answers come; without a judge where the system gave no answer."""
        if submission.status in BY_RULE:
            for unit in self._plan(task).rubric.by_unit:
                yield by_rule(submission, unit, repeat, {"met": False})
            return
        if submission.status not in GRADED:
            raise ValueError(f"a submission with status {submission.status!r} has nothing to grade")
        if self._desk is None:
            raise ValueError("grading needs a judge, and this grader was made without one")
        questions = self.questions(task, submission, repeat)
        async with aclosing(as_done(questions, self._desk.ask, width=self._desk.width)) as answers:
            async for asked, answer in answers:
                for place, unit in enumerate(asked.units):
                    yield judgement(asked, unit, _entry(answer, place), _verdict)

    def score(self, task: Task, submission: Submission | None, judgements: Sequence[Judgement]) -> TaskScore:  # noqa: ARG002 -- the verdicts alone decide
        """The metrics of one attempt; see scoring.py.

        No judgement at all gives the names of the metrics with nulls, and the counts of one repeat. Raises
        ValueError for rows of another task or two rows of one verdict, InputError for unknown units.
        """
        strangers = {row.task_id for row in judgements} - {task.id}
        if strangers:
            raise ValueError(f"judgements of {sorted(strangers)} given for task {task.id}")
        plan = self._plan(task)
        if not judgements:
            blank = score_of_runs(task, [], coverage_by=coverage_of(plan.rubric, {}))
            metrics = dict.fromkeys(metric_names(self._settings))
            return blank.model_copy(update={"metrics": metrics, "n_expected": len(plan.rubric.checkpoints)})
        runs, coverage = run_scores(plan, judgements)
        return score_of_runs(task, runs, coverage_by=coverage)

    def _plan(self, task: Task) -> Plan:
        """The task's rubric and weights, made once: they serve every question, row and score of it."""
        known = self._plans.get(task.id)
        if known is None or known[0].payload is not task.payload:
            plan = Plan.of(task.id, Rubric.of(task), self._settings)
            self._plans[task.id] = known = (task, plan)
        return known[1]


def _groups(rubric: Rubric, judging: str) -> Iterator[list[tuple[Node, Sequence[Checkpoint]]]]:
    """The checkpoints of each question, by their nodes."""
    if judging == "per_task":
        yield [(node, node.checkpoints) for node in rubric.nodes]
        return
    for node in rubric.nodes:
        if judging == "per_node":
            yield [(node, node.checkpoints)]
        else:
            for checkpoint in node.checkpoints:
                yield [(node, (checkpoint,))]


def _entry(answer: Answer, place: int) -> Answer:
    """The answer as it concerns the checkpoint at this place of its question.

    In an answer that was malformed to the last, a checkpoint with a valid entry has its verdict all the same.
    """
    if answer.value is None:
        return answer
    entry = answer.value[VERDICTS].get(label(place))
    return replace(answer, value=entry, error=answer.error if entry is None else None)


def _verdict(entry: Mapping[str, Any]) -> Mapping[str, Any]:
    return {"met": entry["verdict"] == MET}
