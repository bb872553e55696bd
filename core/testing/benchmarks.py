"""The contract of a benchmark: its loader, its grader, its aggregator, and what they are together.

The grader is asked about made-up submissions with a desk that makes answers up (core/testing/desk.py): all of
them answered, half of them failed, all of them failed, in several orders. What must hold is what the engine
relies on: rows that belong to their submission, scores that are pure, numbers that never take a missing verdict
for a zero.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from core.config import RunConfig
from core.errors import InputError
from core.judge.question import Question
from core.model import BY_RULE, RULE_JUDGE, Judgement, Submission, SubmissionStatus, Task, TaskScore
from core.parts import Aggregator, Grader, TaskLoader
from core.runfolder import judgement_row, score_row, task_row
from core.services import JudgeDesk
from core.summary import score_attempt, score_task
from core.testing.claims import ContractBroken, as_json, claim, claim_equal
from core.testing.desk import FakeDesk
from core.testing.parts import compose, services

#: Repeats that are graded in a check.
_REPEATS: Final = (1, 2)
#: Draws of missing verdicts that are compared with verdicts in their place.
_DRAWS: Final = 12


@dataclass(frozen=True)
class BenchmarkUnderTest:
    """A benchmark's parts, each made anew by a call. `config` gives the headline and the floor.

    `submit` makes the submission that is judged in a check; by default a text of a few lines.
    """

    config: RunConfig
    loader: Callable[[], TaskLoader]
    grader: Callable[[JudgeDesk | None], Grader]
    aggregator: Callable[[], Aggregator]
    submit: Callable[[Task, SubmissionStatus], Submission] | None = None

    def submission(self, task: Task, status: SubmissionStatus = "completed") -> Submission:
        if self.submit is not None:
            return self.submit(task, status)
        text = "A made-up report.\nIt names 25 fathoms and 1804." if status not in BY_RULE else None
        return Submission(task_id=task.id, status=status, text=text, system="made-up", settings={"depth": [1, 2]})


def benchmark(name: str, *overrides: str) -> BenchmarkUnderTest:
    """The benchmark `name` as a run has it, with its packaged tasks.

    `benchmark("draco", "benchmark.strict=true")`: further words are those of a command line.
    Raises InputError when the configuration or a part's name is refused.
    """
    config, plugins = compose(f"benchmark={name}", *overrides)
    section = config.benchmark

    def loader() -> TaskLoader:
        made: TaskLoader = plugins.factory("task loader", section.loader)(section.plain(), services())
        return made

    def grader(desk: JudgeDesk | None) -> Grader:
        made: Grader = plugins.factory("grader", section.grader)(section.plain(), services(judge=desk))
        return made

    def aggregator() -> Aggregator:
        made: Aggregator = plugins.factory("aggregator", section.aggregator)(section.plain(), services())
        return made

    return BenchmarkUnderTest(config, loader, grader, aggregator)


def check_benchmark(under_test: BenchmarkUnderTest, *, most_tasks: int = 5) -> None:
    """Try everything below on the first `most_tasks` tasks; raises ContractBroken at the first fault."""
    tasks = check_loader(under_test)[:most_tasks]
    for task in tasks:
        check_grading(under_test, task)
        check_by_rule(under_test, task)
        check_failures(under_test, task)
    check_missing_is_no_verdict(under_test, tasks)
    check_aggregate(under_test, tasks)


def check_loader(under_test: BenchmarkUnderTest) -> list[Task]:
    """Tasks: at least one, ids that differ, the same each time, JSON throughout."""
    tasks, again = list(under_test.loader().load()), list(under_test.loader().load())
    claim(tasks, "the loader gave no task")
    claim_equal(again, tasks, "a second load gives the same tasks")
    claim_equal(len({task.id for task in tasks}), len(tasks), "task ids differ; number of different ids")
    for task in tasks:
        as_json(task_row(task), f"task {task.id!r}")
        claim(task.prompt.strip(), f"task {task.id!r} has an empty prompt")
    return tasks


def check_grading(under_test: BenchmarkUnderTest, task: Task) -> None:
    """Rows of an answered submission: complete, its own, one a unit; scores that are pure."""
    for status in ("completed", "incomplete"):
        submission = under_test.submission(task, status)
        desk = FakeDesk(seed=1)
        rows = _graded(under_test, desk, task, submission)
        claim(desk.asked or not rows, f"task {task.id!r}: a {status} submission is judged, but nothing was asked")
        claim(desk.most_at_once <= desk.width, f"the grader asked {desk.most_at_once} questions at once, not <= 4")
        for question in desk.asked:
            _check_question(task, submission, question)
        score = _scored(under_test, task, submission, rows)
        claim_equal(
            score.n_graded, score.n_expected, f"task {task.id!r}: n_graded when every question is answered"
        )
        again = FakeDesk(seed=1)
        _graded(under_test, again, task, submission)
        claim_equal(
            sorted(question.digest for question in again.asked),
            sorted(question.digest for question in desk.asked),
            f"task {task.id!r}: the same submission is asked about in the same words",
        )
    _check_units(under_test, task, submission, desk, rows)


def check_by_rule(under_test: BenchmarkUnderTest, task: Task) -> None:
    """Statuses that are scored by rule: no question, a verdict in every row, all counted as graded, a number."""
    for status in sorted(BY_RULE):
        submission = under_test.submission(task, status)  # type: ignore[arg-type] # BY_RULE holds statuses
        desk = FakeDesk()
        rows = _graded(under_test, desk, task, submission)
        what = f"task {task.id!r}, status {status}"
        claim(not desk.asked, f"{what}: the judge was asked; a rule decides")
        claim(all(row.verdict is not None for row in rows), f"{what}: every row has a verdict by rule")
        claim(all(row.judge == RULE_JUDGE for row in rows), f"{what}: rows by rule name the judge {RULE_JUDGE!r}")
        score = _scored(under_test, task, submission, rows)
        claim_equal(score.n_graded, score.n_expected, f"{what}: n_graded")
        headline = under_test.config.benchmark.headline
        claim(score.metrics.get(headline) is not None, f"{what}: no number in {headline}; a rule decides one")


def check_failures(under_test: BenchmarkUnderTest, task: Task) -> None:
    """Half of the answers failed: they count as missing. All failed: no number at all, not zero."""
    submission = under_test.submission(task)
    for failing in (0.5, 1.0):
        rows = _graded(under_test, FakeDesk(seed=2, failing=failing), task, submission)
        score = _scored(under_test, task, submission, rows)
        lost = [row for row in rows if row.verdict is None]
        what = f"task {task.id!r}, {failing:.0%} of the answers failed"
        claim(all(row.error is not None for row in lost), f"{what}: a row without a verdict says why in `error`")
        claim(
            not lost or score.n_graded < score.n_expected, f"{what}: n_graded is {score.n_graded}, as if none had"
        )
        kept = _scored(under_test, task, submission, [row for row in rows if row.verdict is not None], whole=False)
        if failing < 1 and kept.n_graded:
            claim_equal(kept.metrics, score.metrics, f"{what}: metrics without the rows that have no verdict")
        if rows and len(lost) == len(rows):
            claim_equal(score.n_graded, 0, f"{what}: n_graded")
            numbers = {name: value for name, value in score.metrics.items() if value is not None}
            claim(not numbers, f"{what}: nothing was judged, so metrics are null; got {numbers}")


def check_missing_is_no_verdict(under_test: BenchmarkUnderTest, tasks: Sequence[Task]) -> None:
    """A missing verdict is neither of the verdicts that it could have been.

    Rows with some verdicts missing are scored, and again with the lowest and the highest answers in their place.
    A grader that always gives the number of one of these takes what is missing for that verdict.
    """
    headline = under_test.config.benchmark.headline
    same: dict[str, list[bool]] = {"lowest": [], "highest": []}
    for task in tasks:
        submission = under_test.submission(task)
        ends = {
            "lowest": _by_unit(under_test, FakeDesk(pick="low"), task, submission),
            "highest": _by_unit(under_test, FakeDesk(pick="high"), task, submission),
        }
        for draw in range(_DRAWS):
            full = _by_unit(under_test, FakeDesk(seed=draw), task, submission)
            if any(end.keys() != full.keys() for end in ends.values()):
                continue  # the units themselves depend on answers: nothing can be put in another's place
            rng = random.Random(draw)  # noqa: S311 - a reproducible draw
            gone = {unit for unit in sorted(full) if rng.random() < 0.5}
            left = [_failed(row) if unit in gone else row for unit, row in full.items()]
            filled = {
                name: _headline(under_test, task, [end[unit] if unit in gone else full[unit] for unit in full])
                for name, end in ends.items()
            }
            if filled["lowest"] == filled["highest"]:
                continue  # what is missing would not have mattered
            found = _headline(under_test, task, left)
            if found is None:
                continue  # too little is left for a number: nothing was taken for a verdict
            for name, value in filled.items():
                same[name].append(found == value)
    for name, outcomes in same.items():
        claim(
            not outcomes or not all(outcomes),
            f"{headline} of missing verdicts is always that of the {name} answers: missing is not a verdict",
        )


def check_aggregate(under_test: BenchmarkUnderTest, tasks: Sequence[Task]) -> None:
    """A summary of no task, of judged ones, and of ones that were never judged; pure, and JSON throughout."""
    headline = under_test.config.benchmark.headline
    judged = [_task_score(under_test, task, failing=0.0) for task in tasks]
    failed = [_task_score(under_test, task, failing=1.0) for task in tasks]
    half = [failed[at] if at % 2 else score for at, score in enumerate(judged)]
    for what, scores in (("judged", judged), ("half failed", half), ("all failed", failed), ("no", [])):
        before = [score_row(score) for score in scores]
        found = under_test.aggregator().aggregate(scores)
        as_json(found.model_dump(), f"the aggregate of {what} tasks")
        claim_equal([score_row(score) for score in scores], before, f"{what} tasks after they were aggregated")
        claim_equal(under_test.aggregator().aggregate(scores), found, f"a second aggregate of {what} tasks")
        claim(headline in found.metrics, f"the aggregate of {what} tasks lacks the headline {headline!r}")
        metric = found.metrics[headline]
        n_scored = sum(score.metrics.get(headline) is not None for score in scores)
        enough = n_scored > 0 and n_scored >= under_test.config.benchmark.floor * len(scores)
        claim_equal(metric.n, n_scored, f"{headline}.n of {what} tasks")
        claim_equal(
            metric.value is not None, enough, f"{headline} of {what} tasks ({n_scored} scored) has a value"
        )
        claim(all(each.estimator.strip() for each in found.metrics.values()), "every metric states its estimator")
        if metric.value is not None and metric.low is not None and metric.high is not None:
            claim(metric.low <= metric.value <= metric.high, f"{headline}: its interval does not hold its value")


def _graded(
    under_test: BenchmarkUnderTest,
    desk: FakeDesk,
    task: Task,
    submission: Submission,
    repeats: Sequence[int] = _REPEATS,
) -> list[Judgement]:
    """The rows of these repeats; what belongs to every row is claimed here."""
    grader = under_test.grader(desk)
    before = as_json([task.model_dump(), submission.model_dump()], f"task {task.id!r} and its submission")

    async def grade() -> list[Judgement]:
        return [row for repeat in repeats async for row in grader.grade(task, submission, repeat)]

    rows = asyncio.run(grade())
    after = as_json([task.model_dump(), submission.model_dump()], f"task {task.id!r} and its submission")
    claim_equal(after, before, f"task {task.id!r} and its submission after grading")
    seen: set[tuple[int, str]] = set()
    for row in rows:
        what = f"task {task.id!r}, unit {row.unit!r}"
        claim_equal(
            (row.task_id, row.attempt), (task.id, submission.attempt), f"{what}: task and attempt of its row"
        )
        claim(row.repeat in repeats, f"{what}: repeat {row.repeat} was not asked for")
        claim((row.repeat, row.unit) not in seen, f"{what}: two rows in repeat {row.repeat}")
        claim(
            (row.verdict is None) != (row.error is None), f"{what}: a row has a verdict or an error, and not both"
        )
        as_json(judgement_row(row), f"{what}: its row")
        seen.add((row.repeat, row.unit))
    return rows


def _scored(
    under_test: BenchmarkUnderTest,
    task: Task,
    submission: Submission,
    rows: Sequence[Judgement],
    *,
    whole: bool = True,
) -> TaskScore:
    """The score of these rows; that it is pure, independent of order and of a trip through JSON is claimed here.

    `whole`: the rows are all of them, so that n_expected is what the grader expects.
    """
    grader = under_test.grader(None)  # folding needs no judge
    before = [judgement_row(row) for row in rows]
    score = grader.score(task, submission, rows)
    claim_equal([judgement_row(row) for row in rows], before, f"task {task.id!r}: the rows after scoring")
    orders = [random.Random(seed).sample(rows, len(rows)) for seed in range(4)]  # noqa: S311 - reproducible orders
    read_back = [Judgement.model_validate(row) for row in before]
    others = [
        ("again", rows),
        *(("in another order", order) for order in orders),
        ("read back from JSON", read_back),
    ]
    for what, other in others:
        claim_equal(
            grader.score(task, submission, other), score, f"task {task.id!r}: the score of the rows {what}"
        )
    as_json(score_row(score), f"task {task.id!r}: its score")
    claim_equal(score.task_id, task.id, "the task that a score names")
    claim(0 <= score.n_graded <= score.n_expected, f"n_graded {score.n_graded} of n_expected {score.n_expected}")
    if whole:
        expected = grader.expected(task, submission) * len({row.repeat for row in rows})
        claim_equal(score.n_expected, expected, f"task {task.id!r}: n_expected, and expected() x repeats")
    return score


def _check_question(task: Task, submission: Submission, question: Question) -> None:
    what = f"task {task.id!r}: the question about {', '.join(question.units) or 'nothing'}"
    claim(question.units, f"{what} names no unit")
    claim_equal((question.task_id, question.attempt), (task.id, submission.attempt), f"{what}: task and attempt")
    fields = question.schema.get("properties", {})
    for probe in question.probes:
        known = probe.field.partition(".")[0] in fields  # a dotted path names a field of a field
        claim(known, f"{what}: the probe's field {probe.field!r} is not in its schema")


def _check_units(
    under_test: BenchmarkUnderTest, task: Task, submission: Submission, desk: FakeDesk, rows: Sequence[Judgement]
) -> None:
    """What the optional methods say agrees with what grading did."""
    import jsonschema

    grader = under_test.grader(desk)
    unit_schema: Callable[[Task, str], Mapping[str, Any] | None] | None = getattr(grader, "unit_schema", None)
    if unit_schema is not None:
        claim(
            unit_schema(task, "no such unit") is None,
            "unit_schema gives None for a unit that the task does not have",
        )
        for row in rows:
            schema = unit_schema(task, row.unit)
            claim(schema is not None, f"unit_schema does not know {row.unit!r}, which was graded")
            if row.verdict is None:  # made-up answers need not be answers
                continue
            error = next(iter(jsonschema.Draft202012Validator(schema or {}).iter_errors(dict(row.verdict))), None)
            claim(error is None, f"the verdict of {row.unit!r} does not fit its unit_schema: {error}")
    questions: Callable[[Task, Submission, int], list[Question]] | None = getattr(grader, "questions", None)
    if questions is not None:
        asked = sorted(question.digest for question in desk.asked if question.repeat == 1)
        told = sorted(question.digest for question in questions(task, submission, 1))
        claim_equal(told, asked, f"task {task.id!r}: questions() are those that grading asks")


def _by_unit(
    under_test: BenchmarkUnderTest, desk: FakeDesk, task: Task, submission: Submission
) -> dict[str, Judgement]:
    return {row.unit: row for row in _graded(under_test, desk, task, submission, (1,))}


def _failed(row: Judgement) -> Judgement:
    from core.model import Failure

    return row.model_copy(update={"verdict": None, "error": Failure(kind="malformed")})


def _headline(under_test: BenchmarkUnderTest, task: Task, rows: Sequence[Judgement]) -> float | None:
    score = under_test.grader(None).score(task, under_test.submission(task), rows)
    return score.metrics.get(under_test.config.benchmark.headline)


def _task_score(under_test: BenchmarkUnderTest, task: Task, *, failing: float) -> TaskScore:
    """A task's score as the engine folds it."""
    submission = under_test.submission(task)
    rows = _graded(under_test, FakeDesk(seed=5, failing=failing), task, submission)
    try:
        attempt = score_attempt(
            under_test.grader(None), task, submission, rows, repeats=len(_REPEATS), failure_is_missing=False
        )
    except InputError as error:
        raise ContractBroken(f"task {task.id!r}: its own rows were refused: {error}") from error
    return score_task(task, [attempt], under_test.config)
