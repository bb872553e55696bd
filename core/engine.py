"""Solve → grade → score, as a stream.

    tasks ─▶ solving workers ─▶ submissions ─▶ grading workers ─▶ task scores, rows of the run folder

So many workers pull from an iterator; a task is graded as soon as it is solved, and what is finished leaves
memory for the part files. Everything solved and judged is in the store before it is used, so a run
that is killed goes on where it was. When the brake is pulled (core/stop.py) nothing new starts, what is in
flight ends, and what is missing is written as missing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from core.config import RunConfig
from core.errors import StopRun
from core.fold import Attempt
from core.judge.desk import Desk
from core.judge.panel import Panel
from core.model import GRADED, Judgement, Submission, Task, TaskScore
from core.parts import Grader
from core.plugin_manager import PluginManager
from core.runfolder import RunFolder
from core.solving import Solver
from core.stop import Stop
from core.summary import Totals, score_attempt, score_task

#: Submissions that may wait for a grader; solving pauses beyond it, so that memory stays flat.
_WAITING: Final = 64
#: Reports are graded side by side so that so many times the calls that the judge allows are ready to be made:
#: a report that begins has one question out, and one that ends has few.
_READY: Final = 3
_MOST_WORKERS: Final = 64
#: Repeats of one submission that are graded at the same time.
_REPEATS_AT_ONCE: Final = 8


@dataclass
class Progress:
    """The counts that a progress display reads. `judgements_expected` is for the whole run."""

    tasks: int = 0
    solves: int = 0
    judgements_expected: int = 0
    solved: int = 0
    solved_reused: int = 0
    solving: int = 0
    graded_tasks: int = 0
    judgements: int = 0
    missing: int = 0
    errors: dict[str, int] = field(default_factory=dict)


@dataclass
class Outcome:
    """What a run leaves: the score of every scheduled task in the source's order, and the totals."""

    scores: list[TaskScore]
    totals: Totals


@dataclass
class Engine:
    """One run over chosen tasks."""

    config: RunConfig
    tasks: Sequence[Task]
    repeats: int
    solver: Solver
    grader: Grader
    desk: Desk | Panel
    folder: RunFolder
    plugins: PluginManager
    stop: Stop
    log: Any
    progress: Progress = field(default_factory=Progress)

    def __post_init__(self) -> None:
        self._totals = Totals()
        self._attempts: dict[str, dict[int, Attempt]] = {task.id: {} for task in self.tasks}
        self._rows: dict[str, list[Judgement]] = {}
        self._scores: dict[str, TaskScore] = {}
        self._workers: list[asyncio.Task[None]] = []
        self.progress.tasks = len(self.tasks)
        self.progress.solves = len(self.tasks) * self.config.attempts
        self.progress.judgements_expected = sum(
            self.grader.expected(task, None) * self.repeats * self.config.attempts for task in self.tasks
        )

    async def run(self) -> Outcome:
        """Solve, grade and score every task; never raises for what a task, system or judge does."""
        jobs = self._jobs()
        ready: asyncio.Queue[tuple[Task, Submission] | None] = asyncio.Queue(_WAITING)
        graders = self._graders()
        async with asyncio.TaskGroup() as group:
            solving = [group.create_task(self._solve(jobs, ready)) for _ in range(self.solver.width)]
            grading = [group.create_task(self._grade(ready)) for _ in range(graders)]
            self._workers = [*solving, *grading]
            await asyncio.wait(solving)
            for worker in grading:
                if not worker.done():  # all of them are done only after an interrupt
                    await ready.put(None)
        for task in self.tasks:
            if task.id not in self._scores:  # interrupted before its last attempt was graded
                self._finish(task)
        return Outcome([self._scores[task.id] for task in self.tasks], self._totals)

    def _graders(self) -> int:
        """How many reports are graded at a time."""
        each = max(1, self.progress.judgements_expected // max(1, self.progress.solves))
        return min(_MOST_WORKERS, 2 + _READY * self.desk.width // each)

    def interrupt(self) -> None:
        """Stop now: what is in flight is given up, what is stored stays for the next start."""
        self.stop.pull(StopRun("interrupted"))
        for worker in self._workers:
            worker.cancel()

    def _jobs(self) -> Iterator[tuple[Task, int]]:
        for task in self.tasks:
            for attempt in range(1, self.config.attempts + 1):
                yield task, attempt

    async def _solve(
        self, jobs: Iterator[tuple[Task, int]], ready: asyncio.Queue[tuple[Task, Submission] | None]
    ) -> None:
        for task, attempt in jobs:
            self.progress.solving += 1
            try:
                submission, reused = await self.solver.solve(task, attempt)
            except StopRun as stop:
                # nothing new may start, but the jobs after this one may be in the store
                self.stop.pull(stop)
                failure = self.stop.failure()
                submission, reused = self.solver.unsolved(task, attempt, failure), False
            finally:
                self.progress.solving -= 1
            self.progress.solved += 1
            self.progress.solved_reused += reused
            if submission.error is not None:
                self._count_error(f"system {submission.error.kind}")
            self._observe("task_solved", submission=submission, reused=reused)
            await ready.put((task, submission))

    async def _grade(self, ready: asyncio.Queue[tuple[Task, Submission] | None]) -> None:
        while (item := await ready.get()) is not None:
            task, submission = item
            rows: list[Judgement] = []
            try:
                if submission.status != "error" and not self._is_missing(submission):
                    await self._judge(task, submission, rows)
                attempt = self._score(task, submission, rows)
            except Exception as error:  # a plugin's fault costs its own task, not the run
                self.log.exception("grading failed", task=task.id, attempt=submission.attempt)
                self._count_error("grader crash")
                self._totals.errors[f"grader {type(error).__name__}"] += 1
                attempt = self._score(task, None, [])
            self._keep(task, submission, rows, attempt)

    def _is_missing(self, submission: Submission) -> bool:
        return self.config.system.on_failure == "missing" and submission.status not in GRADED

    async def _judge(self, task: Task, submission: Submission, rows: list[Judgement]) -> None:
        """All repeats of one submission's questions; rows come in the order of answers."""
        gate = asyncio.Semaphore(_REPEATS_AT_ONCE)

        async def repeat(number: int) -> None:
            async with gate:
                async for row in self.grader.grade(task, submission, number):
                    rows.append(row)
                    self.progress.judgements += 1
                    if row.error is not None:
                        self.progress.missing += 1
                        self._count_error(f"judge {row.error.kind}")

        async with asyncio.TaskGroup() as group:
            for number in range(1, self.repeats + 1):
                group.create_task(repeat(number))

    def _score(self, task: Task, submission: Submission | None, rows: Sequence[Judgement]) -> Attempt:
        return score_attempt(
            self.grader,
            task,
            submission,
            rows,
            repeats=self.repeats,
            failure_is_missing=self.config.system.on_failure == "missing",
        )

    def _keep(self, task: Task, submission: Submission, rows: list[Judgement], attempt: Attempt) -> None:
        self.folder.add_submission(task, submission)
        self.folder.add_judgements(task, submission.attempt, rows)
        self._totals.add_submission(submission)
        for row in rows:
            self._totals.add_judgement(row)
        self._attempts[task.id][submission.attempt] = attempt
        self._rows.setdefault(task.id, []).extend(rows)
        if len(self._attempts[task.id]) == self.config.attempts:
            self._finish(task)

    def _finish(self, task: Task) -> None:
        """Fold a task's attempts; attempts that were never solved count as missing."""
        known = self._attempts.pop(task.id)
        attempts = [
            known.get(number) or self._score(task, None, []) for number in range(1, self.config.attempts + 1)
        ]
        score = score_task(task, attempts, self.config)
        self._scores[task.id] = score
        self.progress.graded_tasks += 1
        self._observe("task_graded", score=score, judgements=self._rows.pop(task.id, []))

    def _count_error(self, kind: str) -> None:
        self.progress.errors[kind] = self.progress.errors.get(kind, 0) + 1

    def _observe(self, hook: str, **arguments: Any) -> None:
        for problem in self.plugins.observe(hook, **arguments):
            self.log.warning("observer failed", problem=problem)
