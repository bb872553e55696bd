"""The contract checks of a benchmark catch what they are for: each part breaks one rule, and is told which."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

import pytest

from core.config import RunConfig
from core.judge.question import Question
from core.judge.rows import by_rule
from core.model import Aggregate, Failure, Judgement, Metric, Submission, Task, TaskScore
from core.services import JudgeDesk
from core.testing import (
    BenchmarkUnderTest,
    ContractBroken,
    FakeDesk,
    check_benchmark,
)
from leadline_toy.benchmark import Grader, Mean, Tasks, points_of

PARTS = {"name": "toy", "loader": "toy", "grader": "toy", "aggregator": "toy", "headline": "recall"}
CONFIG = RunConfig.from_tree(
    {
        "benchmark": PARTS,
        "system": {"name": "s", "adapter": "s"},
        "judge": {"name": "j", "provider": "j"},
    }
)
_counter = itertools.count()


def toy(
    loader: type[Tasks] = Tasks, grader: type[Grader] = Grader, aggregator: type[Mean] = Mean
) -> BenchmarkUnderTest:
    return BenchmarkUnderTest(CONFIG, lambda: loader({}), grader, lambda: aggregator({}))


def test_the_toy_keeps_the_contract() -> None:
    check_benchmark(toy())


class NoTasks(Tasks):
    def load(self) -> Iterator[Task]:
        return iter(())


class SameIds(Tasks):
    def load(self) -> Iterator[Task]:
        return (task.model_copy(update={"id": "same"}) for task in super().load())


class OtherTasksEachTime(Tasks):
    def load(self) -> Iterator[Task]:
        return (task.model_copy(update={"prompt": f"{task.prompt} {next(_counter)}"}) for task in super().load())


class ExpectsOneMore(Grader):
    def expected(self, task: Task, submission: Submission | None) -> int:
        return super().expected(task, submission) + 1


class ChangedRows(Grader):
    """Grades as the toy does, and changes the rows on their way."""

    async def grade(self, task: Task, submission: Submission, repeat: int) -> AsyncIterator[Judgement]:
        async for row in super().grade(task, submission, repeat):
            for changed in self.change(row, task):
                yield changed

    def change(self, row: Judgement, task: Task) -> list[Judgement]:
        return [row]


class RowsTwice(ChangedRows):
    def change(self, row: Judgement, task: Task) -> list[Judgement]:
        return [row, row]


class RowsOfAnotherTask(ChangedRows):
    def change(self, row: Judgement, task: Task) -> list[Judgement]:
        return [row.model_copy(update={"task_id": "another"})]


class RowsOfAnotherRepeat(ChangedRows):
    def change(self, row: Judgement, task: Task) -> list[Judgement]:
        return [row.model_copy(update={"repeat": 9})]


class RowsWithNothing(ChangedRows):
    def change(self, row: Judgement, task: Task) -> list[Judgement]:
        return [row.model_copy(update={"error": None})] if row.verdict is None else [row]


class UnknownUnits(ChangedRows):
    def change(self, row: Judgement, task: Task) -> list[Judgement]:
        return [row.model_copy(update={"unit": f"other/{row.unit}"})]


class ChangesItsTask(ChangedRows):
    def change(self, row: Judgement, task: Task) -> list[Judgement]:
        cast("list[str]", task.payload["points"])[0] = "another point"
        return [row]


class JudgesNothing(Grader):
    """Asks the judge about answers that a rule decides."""

    async def grade(self, task: Task, submission: Submission, repeat: int) -> AsyncIterator[Judgement]:
        async for row in super().grade(task, submission.model_copy(update={"status": "completed"}), repeat):
            yield row


class SkipsWhatItCouldRule(Grader):
    async def grade(self, task: Task, submission: Submission, repeat: int) -> AsyncIterator[Judgement]:
        if submission.status == "empty":
            for unit in points_of(task):
                row = by_rule(submission, unit, repeat, {"stated": False})
                yield row.model_copy(update={"verdict": None, "error": Failure(kind="empty")})
            return
        async for row in super().grade(task, submission, repeat):
            yield row


class AsksAllAtOnce(Grader):
    """Pays no heed to the desk's width."""

    async def grade(self, task: Task, submission: Submission, repeat: int) -> AsyncIterator[Judgement]:
        desk = self._desk
        if desk is not None:
            desk.width, width = 1000, desk.width
        async for row in super().grade(task, submission, repeat):
            yield row
        if desk is not None:
            desk.width = width


class NeverTheSameWords(Grader):
    def questions(self, task: Task, submission: Submission, repeat: int) -> list[Question]:
        found = super().questions(task, submission, repeat)
        return [replace(question, ask=f"{question.ask} {next(_counter)}") for question in found]


class NoSchema(Grader):
    def questions(self, task: Task, submission: Submission, repeat: int) -> list[Question]:
        found = super().questions(task, submission, repeat)
        return [replace(question, schema={**question.schema, "required": "verdict"}) for question in found]


class ProbesElsewhere(Grader):
    def questions(self, task: Task, submission: Submission, repeat: int) -> list[Question]:
        found = super().questions(task, submission, repeat)
        return [replace(question, probes=(replace(question.probes[0], field="elsewhere"),)) for question in found]


class KnowsEveryUnit(Grader):
    def unit_schema(self, task: Task, unit: str) -> Mapping[str, Any] | None:
        return {"type": "object"}


class WantsOtherVerdicts(Grader):
    def unit_schema(self, task: Task, unit: str) -> Mapping[str, Any] | None:
        known = super().unit_schema(task, unit) is not None
        return {"type": "object", "required": ["met"]} if known else None


class ChangedScore(Grader):
    """Scores as the toy does, and changes the score."""

    def score(self, task: Task, submission: Submission | None, judgements: Sequence[Judgement]) -> TaskScore:
        return self.changed(super().score(task, submission, judgements), judgements)

    def changed(self, score: TaskScore, rows: Sequence[Judgement]) -> TaskScore:
        return score

    def with_recall(self, score: TaskScore, value: float | None) -> TaskScore:
        return score.model_copy(update={"metrics": {"recall": value}})


class MissingIsNo(ChangedScore):
    """The classic fault: a verdict that never came counts as a no."""

    def changed(self, score: TaskScore, rows: Sequence[Judgement]) -> TaskScore:
        graded = [row for row in rows if row.verdict is not None]
        stated = sum(bool(row.verdict and row.verdict["stated"]) for row in rows)
        return self.with_recall(score, 100 * stated / len(rows) if graded else None)


class MissingIsYes(ChangedScore):
    def changed(self, score: TaskScore, rows: Sequence[Judgement]) -> TaskScore:
        graded = [row for row in rows if row.verdict is not None]
        stated = sum(row.verdict is None or bool(row.verdict["stated"]) for row in rows)
        return self.with_recall(score, 100 * stated / len(rows) if graded else None)


class NothingIsZero(ChangedScore):
    def changed(self, score: TaskScore, rows: Sequence[Judgement]) -> TaskScore:
        return self.with_recall(score, score.metrics.get("recall") or 0.0)


class MissingIsGraded(ChangedScore):
    def changed(self, score: TaskScore, rows: Sequence[Judgement]) -> TaskScore:
        return score.model_copy(update={"n_graded": score.n_expected})


class NoNumberByRule(ChangedScore):
    def changed(self, score: TaskScore, rows: Sequence[Judgement]) -> TaskScore:
        return self.with_recall(score, None) if any(row.judge == "rule" for row in rows) else score


class OrderMatters(ChangedScore):
    def changed(self, score: TaskScore, rows: Sequence[Judgement]) -> TaskScore:
        first = rows[0].verdict if rows else None
        return self.with_recall(
            score, None if first is None else 100.0 * bool(first["stated"]) + len(rows[0].unit)
        )


class NeverTheSameScore(ChangedScore):
    def changed(self, score: TaskScore, rows: Sequence[Judgement]) -> TaskScore:
        return score.model_copy(update={"flags": (f"call {next(_counter)}",)})


class ChangedAggregate(Mean):
    def aggregate(self, scores: Sequence[TaskScore]) -> Aggregate:
        found = super().aggregate(scores)
        return Aggregate(metrics=self.changed(found.metrics["recall"]), groups=found.groups)

    def changed(self, metric: Metric) -> dict[str, Metric]:
        return {"recall": metric}


class ZeroForNothing(ChangedAggregate):
    def changed(self, metric: Metric) -> dict[str, Metric]:
        return {"recall": metric.model_copy(update={"value": metric.value or 0.0})}


class NoHeadline(ChangedAggregate):
    def changed(self, metric: Metric) -> dict[str, Metric]:
        return {"other": metric}


class WrongCount(ChangedAggregate):
    def changed(self, metric: Metric) -> dict[str, Metric]:
        return {"recall": metric.model_copy(update={"n": metric.n + 1})}


class NoEstimator(ChangedAggregate):
    def changed(self, metric: Metric) -> dict[str, Metric]:
        return {"recall": metric.model_copy(update={"estimator": " "})}


class IntervalElsewhere(ChangedAggregate):
    def changed(self, metric: Metric) -> dict[str, Metric]:
        return {"recall": metric.model_copy(update={"low": 200.0, "high": 300.0})}


@pytest.mark.parametrize(
    ("parts", "says"),
    [
        ({"loader": NoTasks}, "gave no task"),
        ({"loader": SameIds}, "task ids differ"),
        ({"loader": OtherTasksEachTime}, "a second load gives the same tasks"),
        ({"grader": ExpectsOneMore}, r"n_expected, and expected\(\) x repeats"),
        ({"grader": RowsTwice}, "two rows in repeat 1"),
        ({"grader": RowsOfAnotherTask}, "task and attempt of its row"),
        ({"grader": RowsOfAnotherRepeat}, "repeat 9 was not asked for"),
        ({"grader": RowsWithNothing}, "a verdict or an error, and not both"),
        ({"grader": UnknownUnits}, "unit_schema does not know"),
        ({"grader": ChangesItsTask}, "after grading"),
        ({"grader": JudgesNothing}, "the judge was asked; a rule decides"),
        ({"grader": SkipsWhatItCouldRule}, "every row has a verdict by rule"),
        ({"grader": NeverTheSameWords}, "asked about in the same words"),
        ({"grader": NoSchema}, "its schema is no JSON Schema"),
        ({"grader": ProbesElsewhere}, "the probe's field 'elsewhere'"),
        ({"grader": KnowsEveryUnit}, "None for a unit that the task does not have"),
        ({"grader": WantsOtherVerdicts}, "does not fit its unit_schema"),
        ({"grader": MissingIsNo}, "metrics without the rows that have no verdict"),
        ({"grader": MissingIsYes}, "metrics without the rows that have no verdict"),
        ({"grader": NothingIsZero}, "nothing was judged, so metrics are null"),
        ({"grader": MissingIsGraded}, "as if none had"),
        ({"grader": NoNumberByRule}, "no number in recall"),
        ({"grader": OrderMatters}, "in another order"),
        ({"grader": NeverTheSameScore}, "the score of the rows again"),
        ({"aggregator": ZeroForNothing}, "has a value"),
        ({"aggregator": NoHeadline}, "lacks the headline 'recall'"),
        ({"aggregator": WrongCount}, "recall.n of judged tasks"),
        ({"aggregator": NoEstimator}, "states its estimator"),
        ({"aggregator": IntervalElsewhere}, "its interval does not hold its value"),
    ],
    ids=lambda value: next(iter(value.values())).__name__ if isinstance(value, dict) else "",
)
def test_a_benchmark_that_breaks_a_rule_is_told_which(parts: dict[str, type], says: str) -> None:
    with pytest.raises(ContractBroken, match=says):
        check_benchmark(toy(**parts))


def test_a_grader_that_asks_too_many_questions_at_once_is_told() -> None:
    def wide(desk: JudgeDesk | None) -> Grader:
        return AsksAllAtOnce(desk)

    many = [Task(id="many", prompt="p", payload={"points": [f"Point {number}." for number in range(9)]})]

    class Many(Tasks):
        def load(self) -> Iterator[Task]:
            return iter(many)

    with pytest.raises(ContractBroken, match="9 questions at once"):
        check_benchmark(BenchmarkUnderTest(CONFIG, lambda: Many({}), wide, lambda: Mean({})))


@pytest.mark.parametrize(("grader", "end"), [(MissingIsNo, "lowest"), (MissingIsYes, "highest")])
def test_a_missing_verdict_that_counts_as_one_is_found_by_comparison_too(grader: type[Grader], end: str) -> None:
    from core.testing.benchmarks import check_missing_is_no_verdict

    tasks = list(Tasks({}).load())
    with pytest.raises(ContractBroken, match=f"always that of the {end} answers"):
        check_missing_is_no_verdict(toy(grader=grader), tasks)
    check_missing_is_no_verdict(toy(), tasks)


@pytest.mark.parametrize("failing", [0.0, 0.5, 1.0])
async def test_the_fake_desk_answers_the_same_whatever_the_order(failing: float) -> None:
    task = next(Tasks({}).load())
    questions = [
        replace(question, ask=f"{question.ask} {number}")
        for number in range(40)
        for question in Grader(None).questions(task, Submission(task_id=task.id, text="t"), 1)
    ]
    there = [await FakeDesk(seed=4, failing=failing).ask(question) for question in questions]
    desk = FakeDesk(seed=4, failing=failing)
    back = [await desk.ask(question) for question in reversed(questions)]
    assert there == back[::-1]
    failed = sum(answer.error is not None for answer in there) / len(there)
    assert failed == pytest.approx(failing, abs=0.2)
    assert {answer.value["verdict"] for answer in there if answer.value} == (
        set() if failing == 1 else {"YES", "NO"}
    )
