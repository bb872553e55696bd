"""Before anything is sent: what is missing, all at once, and what solving and judging will cost."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any, Final

import jsonschema

from core.config import RunConfig
from core.errors import InputError, place
from core.model import Submission, Task

#: What a report is taken to be long until there is one, in characters (about 8,000 tokens).
REPORT_CHARACTERS: Final = 32_000
#: How many tasks' questions are written to price a run.
_PRICED_TASKS: Final = 3


@dataclass(frozen=True, slots=True)
class Estimate:
    """What a run is expected to cost, in dollars; None is unknown."""

    solving_usd: float | None
    judging_usd: float | None

    @property
    def total_usd(self) -> float | None:
        if self.solving_usd is None or self.judging_usd is None:
            return None
        return self.solving_usd + self.judging_usd


def missing(*parts: Any) -> list[str]:
    """What the parts say is missing: keys, packages, files."""
    found: list[str] = []
    for part in parts:
        check = getattr(part, "check", None)
        if check is not None:
            found.extend(check())
    return list(dict.fromkeys(found))


@dataclass(frozen=True, slots=True)
class Ignored:
    """Recorded rows that a run does not ask for: of tasks that a filter left out, or of nothing it knows."""

    filtered: int = 0
    foreign: int = 0


def check_recorded(
    rows: Any,
    tasks: Sequence[Task],
    grader: Any,
    *,
    source_ids: Collection[str],
    attempts: int,
    repeats: int,
    path: str,
) -> Ignored:
    """Compare recorded judgements with what the run will ask for; returns how many rows don't apply.

    `rows` yields (task id, attempt, unit, repeat, verdict, line). A row of an unscheduled task, attempt or
    repeat is ignored and counted; an unknown unit of a scheduled task, or a verdict of another form, is refused.
    """
    unit_schema: Callable[[Task, str], Any] | None = getattr(grader, "unit_schema", None)
    by_id = {task.id: task for task in tasks}
    validators: dict[int, Any] = {}
    filtered = foreign = 0
    for task_id, attempt, unit, repeat, verdict, line in rows:
        task = by_id.get(task_id)
        if task is None and task_id in source_ids:
            filtered += 1
            continue
        if task is None or attempt > attempts or repeat > repeats:
            foreign += 1
            continue
        if unit_schema is None:
            continue
        schema = unit_schema(task, unit)
        if schema is None:
            raise InputError(f"task {task_id!r} has no unit {unit!r}", where=place(path, line, "unit"))
        if verdict is None:
            continue
        validator = validators.get(id(schema))
        if validator is None:
            validator = validators[id(schema)] = jsonschema.Draft202012Validator(schema)
        error = next(iter(validator.iter_errors(_plain(verdict))), None)
        if error is not None:
            field = ".".join(["verdict", *(str(part) for part in error.absolute_path)])
            raise InputError(error.message, where=place(path, line, field), expected=f"a verdict of {unit!r}")
    return Ignored(filtered, foreign)


def _plain(verdict: Any) -> Any:
    return dict(verdict)


def estimate(
    config: RunConfig, tasks: Sequence[Task], *, system: Any, judge: Any, grader: Any, repeats: int
) -> Estimate:
    """What solving and judging will cost, as if nothing were stored yet."""
    runs = len(tasks) * config.attempts
    solving: float | None = 0.0
    if getattr(system, "stored", True):
        each = getattr(system, "estimate_usd", None)
        solving = None if each is None else each * runs
    return Estimate(solving, _judging(config, tasks, judge=judge, grader=grader, repeats=repeats))


def _judging(config: RunConfig, tasks: Sequence[Task], *, judge: Any, grader: Any, repeats: int) -> float | None:
    if not getattr(judge, "stored", True):
        return 0.0
    price = getattr(judge, "estimate_usd", None)
    questions = _questions_of(grader)
    if price is None or questions is None or not tasks:
        return None if tasks else 0.0
    priced: list[float] = []
    units = 0
    for task in tasks[:: max(1, len(tasks) // _PRICED_TASKS)]:
        for question in questions(task):
            usd = price(question)
            if usd is None:
                return None
            priced.append(usd)
            units += len(question.units)
    expected = sum(grader.expected(task, None) for task in tasks) * repeats * config.attempts
    # a question may decide several judgements
    return math.fsum(priced) / units * expected if units else None


def _questions_of(grader: Any) -> Callable[[Task], Sequence[Any]] | None:
    """The questions that a task is priced by, before there is a submission; None when the grader tells none."""
    typical: Callable[[Task], Sequence[Any]] | None = getattr(grader, "typical_questions", None)
    if typical is not None:
        return typical
    questions = getattr(grader, "questions", None)
    if questions is None:
        return None

    def about_a_report(task: Task) -> Sequence[Any]:
        found: Sequence[Any] = questions(task, Submission(task_id=task.id, text="x" * REPORT_CHARACTERS), 1)
        return found

    return about_a_report


def check_money(config: RunConfig, cost: Estimate) -> None:
    """Refuse what can't be bounded or was not agreed to."""
    budget = config.budget
    if budget.usd is not None and cost.solving_usd is None:
        raise InputError(
            f"the price of system {config.system.name!r} is unknown, so budget.usd can't be kept",
            where="budget.usd",
            expected="system.estimate_usd=<dollars an attempt>, or no budget",
        )
    if (budget.usd is not None or budget.judge_usd is not None) and cost.judging_usd is None:
        raise InputError(
            f"the price of judge {config.judge.name!r} is unknown, so the budget can't be kept",
            where="budget",
            expected="judge.price={input: …, output: …} in dollars per million tokens, or no budget",
        )
    total = cost.total_usd
    if total is None:
        total = (cost.solving_usd or 0.0) + (cost.judging_usd or 0.0)
    if budget.usd is None and total > budget.confirm_usd:
        _confirm(total, budget.confirm_usd)


def _confirm(total: float, limit: float) -> None:
    advice = "budget.usd=<dollars> to bound it, or a higher budget.confirm_usd"
    message = f"the run is expected to cost {total:,.2f} $, more than budget.confirm_usd={limit:,.2f}"
    if not (sys.stdin is not None and sys.stdin.isatty()):
        raise InputError(message, where="budget", expected=advice)
    answer = input(f"{message}. Go on? [y/N] ")
    if answer.strip().lower() not in ("y", "yes"):
        raise InputError("not confirmed", where="budget", expected=advice)


def money(usd: float | None) -> str:
    """Dollars for people; unknown stays unknown."""
    return "unknown" if usd is None else f"{usd:,.2f} $" if usd >= 1 or usd == 0 else f"{usd:.4f} $"
