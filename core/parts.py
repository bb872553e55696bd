"""The parts that a plugin registers, as protocols: loader, system, grader, aggregator, judge.

The engine owns concurrency, retries, store and budget. A part never sleeps, retries or opens a
client: it uses the services it is given (core/services.py).
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

from core.judge.question import Answer, Question
from core.model import Aggregate, Judgement, Submission, Task, TaskScore


@runtime_checkable
class TaskLoader(Protocol):
    """Where tasks come from."""

    def load(self) -> Iterator[Task]:
        """Every task of the source, in its order; an InputError names file, line and field."""


@runtime_checkable
class System(Protocol):
    """A deep-research system under test.

    Optional attributes, read with these defaults:
    `settings: Mapping` = {}: the effective settings (all that shapes an answer; part of the store's key);
    `wire_version: str` = "1": raised when what the adapter sends changes;
    `account: str` = the system's name: systems of one account share a limiter;
    `stored: bool` = True: False for systems that are read from a file each time;
    `estimate_usd: float | None` = None: what one attempt is expected to cost; None is unknown;
    `long_jobs: bool` = False: whether an attempt takes minutes, so that a refusal says little of how many fit;
    `can_block: bool` = False: whether it passes `task.blocked` on to its search.
    Optional methods: `check() -> list[str]`: what is missing before a run can start (keys, packages, files);
    `check_tasks(ids: Collection[str]) -> None`: given all ids of the source, raises InputError;
    `async aclose()`.
    """

    async def solve(self, task: Task, attempt: int) -> Submission:
        """One attempt at one task. Raises CallError when the call ended without an answer."""


@runtime_checkable
class Grader(Protocol):
    """What a benchmark asks of a submission, and how it folds the verdicts.

    Optional: `explain(task, submission, judgements) -> Mapping`: how a score came about, as plain JSON, for
    `core.rescore --explain` and report.html (core/report/html/shapes.md has the forms that it draws);
    `unit_labels(task) -> {unit: {group: member}}`, what a comparison of judges splits by
    (the sign of a criterion, its axis); `unit_schema(task, unit) -> Mapping | None`, the JSON Schema of a unit's
    verdict, None when the task has no such unit; the engine checks recorded judgements with it before it starts.
    `questions(task, submission, repeat) -> list[Question]` lets the engine price a run in advance; where they
    depend on more than a text (pages), `typical_questions(task) -> list[Question]` stands in for them.
    """

    def expected(self, task: Task, submission: Submission | None) -> int:
        """How many judgements the score of one repeat rests on."""

    def grade(self, task: Task, submission: Submission, repeat: int) -> AsyncIterator[Judgement]:
        """The judgements of one repeat, as they come. Owns the order inside a task."""

    def score(self, task: Task, submission: Submission | None, judgements: Sequence[Judgement]) -> TaskScore:
        """Pure: the metrics of one attempt's judgements, in whatever order they came.

        Of no judgements at all (submission None): the metrics' names with nulls, and in `coverage_by` what one
        repeat expects, with nothing graded.
        """


@runtime_checkable
class Aggregator(Protocol):
    """How task scores become the numbers of a summary."""

    def aggregate(self, scores: Sequence[TaskScore]) -> Aggregate:
        """Pure: metrics, groups and warnings, from the scores in task order."""


@runtime_checkable
class Judge(Protocol):
    """A judge.

    Optional attributes: `settings: Mapping` (all that shapes an answer; part of the store's key), `account: str`
    (judges of one account share a limiter), `stored: bool` = True (False: read or computed each time),
    `check() -> list[str]`, `async aclose()`,
    `estimate_usd(question: Question) -> float | None`.
    """

    async def ask(self, question: Question) -> Answer:
        """One call. Raises CallError; the engine waits, retries, stores and counts."""


Factory = Any
Config = Mapping[str, Any]
