"""A benchmark, a system and a judge small enough to break on purpose."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from types import SimpleNamespace
from typing import Any

from core.fold import by_repeat, mean, score_of_runs
from core.hooks import hookimpl
from core.judge.question import Answer, Question
from core.judge.rows import by_rule, judgement
from core.model import BY_RULE, Aggregate, Count, Judgement, Metric, RunScore, Submission, Task, TaskScore
from core.plugin_manager import PluginManager

UNITS = ("u1", "u2")
Solve = Callable[[Task, int], Submission]
Ask = Callable[[Question], Answer]


class Loader:
    def __init__(self, tasks: Sequence[Task]) -> None:
        self._tasks = tasks

    def load(self) -> Iterator[Task]:
        yield from self._tasks


class System:
    def __init__(self, solve: Solve, **attributes: Any) -> None:
        self._solve = solve
        self.settings: Mapping[str, Any] = {}
        self.stored = True
        self.__dict__.update(attributes)

    async def solve(self, task: Task, attempt: int) -> Submission:
        return self._solve(task, attempt)


class Judge:
    def __init__(self, ask: Ask, **attributes: Any) -> None:
        self._ask = ask
        self.settings: Mapping[str, Any] = {}
        self.stored = True
        self.__dict__.update(attributes)

    async def ask(self, question: Question) -> Answer:
        return self._ask(question)


class Grader:
    """Two units a task; the score is the share of true verdicts, 0…1."""

    def __init__(self, desk: Any) -> None:
        self._desk = desk

    def expected(self, task: Task, submission: Submission | None) -> int:
        return len(UNITS)

    async def grade(self, task: Task, submission: Submission, repeat: int) -> AsyncIterator[Judgement]:
        for unit in UNITS:
            if submission.status in BY_RULE:
                yield by_rule(submission, unit, repeat, {"ok": False})
                continue
            asked = Question(task.id, submission.attempt, repeat, (unit,), "s", str(submission.text), unit, {})
            if "break the grader" in str(submission.text):
                raise RuntimeError("the grader broke")
            yield judgement(asked, unit, await self._desk.ask(asked), lambda value: {"ok": value["ok"]})

    def score(self, task: Task, submission: Submission | None, judgements: Sequence[Judgement]) -> TaskScore:
        runs = []
        for repeat, rows in by_repeat(judgements).items():
            verdicts = [float(row.verdict["ok"]) for row in rows if row.verdict is not None]
            runs.append(
                RunScore(
                    attempt=rows[0].attempt, repeat=repeat, metrics={"share": mean(verdicts)},
                    n_graded=len(verdicts), n_expected=len(UNITS),
                )
            )  # fmt: skip
        graded = sum(run.n_graded for run in runs)
        coverage = {"all": {"unit": Count(graded=graded, expected=len(UNITS) * max(1, len(runs)))}}
        score = score_of_runs(task, runs, coverage_by=coverage)
        return score if runs else score.model_copy(update={"metrics": {"share": None}})


class Aggregator:
    def aggregate(self, scores: Sequence[TaskScore]) -> Aggregate:
        values = [score.metrics["share"] for score in scores]
        n = sum(value is not None for value in values)
        return Aggregate(metrics={"share": Metric(value=mean(values), n=n, estimator="mean over scored tasks")})


def yes(question: Question) -> Answer:
    return Answer(value={"ok": True}, judge="toy", cost_usd=0.01, cost_source="reported")


def plugins(
    *,
    tasks: Sequence[str] = ("a", "b"),
    solve: Solve = lambda task, attempt: Submission(task_id=task.id, text=f"about {task.id}"),
    ask: Ask = yes,
    system: Mapping[str, Any] | None = None,
    judge: Mapping[str, Any] | None = None,
    observers: Mapping[str, Callable[..., None]] | None = None,
) -> PluginManager:
    """A plugin manager that knows the toy parts, and nothing else."""
    manager = PluginManager()
    made = [Task(id=name, prompt=f"What of {name}?", payload={"rubric": "secret"}) for name in tasks]
    registers = {
        "register_task_loaders": ("toy", lambda config, services: Loader(made)),
        "register_systems": ("toy", lambda config, services: System(solve, **(system or {}))),
        "register_judges": ("toy", lambda config, services: Judge(ask, **(judge or {}))),
        "register_graders": ("toy", lambda config, services: Grader(services.judge)),
        "register_aggregators": ("toy", lambda config, services: Aggregator()),
    }
    hooks: dict[str, Any] = {}
    for name, (part, factory) in registers.items():
        hooks[name] = hookimpl(lambda register, part=part, factory=factory: register(part, factory))
    for name, observer in (observers or {}).items():
        hooks[name] = hookimpl(observer)
    manager.add(SimpleNamespace(**hooks), name="toy")
    return manager


def tree(out: Any, **changes: Any) -> dict[str, Any]:
    """The configuration of a toy run."""
    made: dict[str, Any] = {
        "benchmark": {"name": "toy", "loader": "toy", "grader": "toy", "aggregator": "toy", "headline": "share"},
        "system": {"name": "toy", "adapter": "toy", "retry": {"attempts": 2, "max_wait_s": 0}},
        "judge": {"name": "toy", "provider": "toy", "retry": {"attempts": 2, "max_wait_s": 0}},
        "out": str(out),
        "store": f"{out}.sqlite",
        "progress": "none",
    }
    for key, value in changes.items():
        made[key] = {**made[key], **value} if isinstance(made.get(key), dict) else value
    return made
