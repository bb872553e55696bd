"""What the judge was shown, made again from a run folder: the grader asks, and a desk notes the questions.

No judge is asked and no page fetched. The desk answers what the folder has rows on (canonical forms shape the
questions about records) and fails everything else; pages come from the archive or folder that the run used, as far
as they are still there. A question's digest tells whether it is to the letter what the judge was shown.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, Protocol

from core.calibration.judged import Judged, Key, Said
from core.clock import RealClock
from core.errors import InputError, LeadlineError
from core.judge.question import Answer, Question, RecordedVerdict
from core.model import GRADED, Failure, Submission, Task
from core.pages.page import Page, Pages
from core.pages.service import PageService
from core.parts import Grader
from core.plugin_manager import PluginManager
from core.services import JudgeDesk
from core.setup import make_services

_WIDTH: Final = 4
_UNASKED: Final = Failure(kind="not_recorded", message="nobody is asked")


@dataclass(frozen=True, slots=True)
class Shown:
    """A unit's question. `context`: what it shares with others (query and answer, or task and page); `ask`: the
    criterion, or the record. `exact`: it has the digest of the judge's question."""

    context: str
    ask: str
    exact: bool


class _Grading(Protocol):
    """A grader that asks."""

    def grade(self, task: Task, submission: Submission, repeat: int) -> Any:
        """The rows of one repeat."""


class NotingDesk:
    """A desk where questions are noted. `wanted`: the units whose questions are kept."""

    width = _WIDTH
    name = "nobody"
    recorded = False

    def __init__(self, rows: Mapping[str, Said], wanted: Collection[str]) -> None:
        self._rows, self._wanted = rows, wanted
        self.noted: dict[str, Question] = {}

    async def ask(self, question: Question) -> Answer:
        """Note a question; the recorded verdicts of its units, or an error."""
        for unit in question.units:
            if unit in self._wanted:
                self.noted[unit] = question
        known = {unit: said for unit in question.units if (said := self._rows.get(unit)) is not None}
        if any(unit in self._wanted for unit in question.units) or len(known) < len(question.units):
            return Answer(error=_UNASKED, calls=0)
        verdicts = {
            unit: RecordedVerdict(said.verdict, _UNASKED if said.verdict is None else None)
            for unit, said in known.items()
        }
        return Answer(verdicts=verdicts, calls=0)


class NoPages:
    """Pages where none are kept."""

    async def get(self, url: str) -> Page:
        """A page that is not there to be looked at."""
        return Page(url=url, status="not_archived", message="the run's pages are not at hand")


def shown(
    run: Judged, keys: Iterable[Key], plugins: PluginManager, *, store: Path | None = None
) -> dict[Key, Shown]:
    """What the judge was shown of these units; a unit whose question can't be made again is left out.

    `store`: where the run's pages are archived, if not where its configuration says.
    """
    by_attempt: dict[tuple[str, int], set[str]] = {}
    for task, attempt, unit in keys:
        by_attempt.setdefault((task, attempt), set()).add(unit)
    return asyncio.run(_shown(run, by_attempt, plugins, store))


async def _shown(
    run: Judged, wanted: Mapping[tuple[str, int], set[str]], plugins: PluginManager, store: Path | None
) -> dict[Key, Shown]:
    pages = archived_pages(run, store)
    tasks = {task.id: task for task in run.saved.tasks}
    found: dict[Key, Shown] = {}
    try:
        for submission in run.saved.submissions():
            at = submission.task_id, submission.attempt
            if at not in wanted or submission.status not in GRADED or at[0] not in tasks:
                continue
            rows = {
                unit: next(iter(said.values())) for (*place, unit), said in run.rows.items() if tuple(place) == at
            }
            desk = NotingDesk(rows, wanted[at])
            await _grade(_grader(run, plugins, desk, pages or NoPages()), tasks[at[0]], submission)
            for unit, question in desk.noted.items():
                digests = {said.digest for said in run.rows.get((*at, unit), {}).values()}
                found[*at, unit] = Shown(question.context, question.ask, question.digest in digests)
    finally:
        if pages is not None:
            await pages.aclose()
    return found


async def _grade(grader: _Grading, task: Task, submission: Submission) -> None:
    """Have a grader ask; what it can't grade any more is left out, and a labeller gets the answer itself."""
    try:
        async with aclosing(grader.grade(task, submission, 1)) as rows:
            async for _ in rows:
                pass
    except (LeadlineError, ValueError, KeyError, TypeError):
        return


def _grader(run: Judged, plugins: PluginManager, desk: JudgeDesk, pages: Pages) -> Grader:
    config = run.saved.config
    services = replace(make_services(config, RealClock()), judge=desk, pages=pages)
    grader: Grader = plugins.factory("grader", config.benchmark.grader)(config.benchmark.plain(), services)
    return grader


def archived_pages(run: Judged, store: Path | None = None) -> PageService | None:
    """The pages that a run saw, from where they are kept; None where that is nowhere. Nothing is fetched."""
    section = run.saved.config.pages
    kept = store or (Path(run.saved.config.store).expanduser() if run.saved.config.store else None)
    if section.mode == "fixtures" and store is None:
        try:
            service = PageService(section)
        except (InputError, OSError):
            return None
        # an open service has an archive; that of a folder of pages is never asked
        service.open(store=run.path / "no-store.sqlite", clock=RealClock())
        return service
    if kept is None or not kept.is_file():
        return None
    service = PageService(section.model_copy(update={"mode": "archive", "path": None}))
    service.open(store=kept, clock=RealClock())
    return service


def record_line(submission: Submission, unit: str) -> str | None:
    """The line of a submission's file that a unit `<kind>/<name>/<line>` names; None where there is no such line.

    Files of records are named for what they hold, and lines are counted from 0 without blank ones: docs/files.md.
    """
    _, _, rest = unit.partition("/")
    name, _, number = rest.rpartition("/")
    if not name or not (number.isascii() and number.isdecimal()):
        return None
    for file, content in submission.files.items():
        if Path(file).stem.removeprefix("results_") == name:
            lines = [line for line in content.removeprefix("\ufeff").split("\n") if line.strip()]
            return lines[int(number)] if int(number) < len(lines) else None
    return None


def answer_text(submission: Submission) -> str:
    """All that a system gave, as one text."""
    from core.judge.shown import response_parts

    parts: Sequence[tuple[str, str]] = response_parts(submission)
    return "\n\n".join(f"{name}\n{content}" for name, content in parts)
