"""The grader `wandr`: pages, identity and records of a submission, each as rows; the numbers by scoring.py.

    rows of pages          page/<url>                    what became of each fetch
    rows of identity       canonicalize/<key>/<value>    where a key wants a model
                           deduplicate/<key>
    rows of records        record/<node>/<line>          the judge's checks; by rule where the page is gone

Canonical forms come first, since records are shown with them. Then pages are fetched, and the records of each are
judged as it comes; duplicates are asked for beside them. With recorded verdicts nothing is fetched: pages are what
their rows say, and ok where they have none.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

from core.flow import as_done
from core.fold import add_counts, score_of_runs
from core.judge.question import Answer, Question
from core.judge.rows import by_rule, judgement
from core.model import BY_RULE, GRADED, RULE_JUDGE, Failure, Judgement, RunScore, Submission, Task, TaskScore
from core.pages.page import GONE, STATUSES, Page, Pages, PageStatus
from core.services import JudgeDesk
from plugins.wandr import evidence, identity, scoring, triage
from plugins.wandr.checks import RECORD_SCHEMA, USABLE, chosen_verdict, decided, failed_verdict, record_verdict
from plugins.wandr.explain import explained
from plugins.wandr.identity_asking import canonical_rows, duplicate_rows, recorded_rows
from plugins.wandr.instruction import checked_delivery
from plugins.wandr.model import Node, Record
from plugins.wandr.notes import notes_of
from plugins.wandr.prompt import Named, question
from plugins.wandr.scoring import PAGE, RECORD, Reading
from plugins.wandr.settings import settings_of
from plugins.wandr.submission import parse
from plugins.wandr.tasks import describe
from plugins.wandr.tree import required_records, tree_of

PAGE_SCHEMA: Final[Mapping[str, Any]] = {
    "type": "object",
    "properties": {
        "status": {"type": "string", "enum": list(STATUSES)},
        "final_url": {"type": ["string", "null"]},
    },
    "required": ["status"],
}
#: What a page is that a file of judgements has no row on.
_RECORDED_OK: Final[Mapping[str, Any]] = {"status": "ok"}
#: The kind of a record's error whose page was not seen.
UNSEEN_KIND: Final = "page"
#: A line's number as units have it; any other spelling of it would be a second unit of one row.
_LINE: Final = re.compile(r"0|[1-9][0-9]*")
#: Submissions whose rows are kept parsed: more than are graded at once.
_KEPT: Final = 128


@dataclass(frozen=True)
class _Job:
    """One repeat of one submission while it is graded."""

    reading: Reading
    submission: Submission
    repeat: int
    desk: JudgeDesk
    gate: asyncio.Semaphore
    names: Mapping[str, Mapping[str, Named]]

    async def ask(self, asked: Question) -> Answer:
        """Ask, with no more questions out than the desk is wide."""
        async with self.gate:
            return await self.desk.ask(asked)


class WandrGrader:
    """Grades and scores by the settings of the section `benchmark` (settings.py, `delivery`, `allow_hosts`).

    `desk` and `pages` may be None where nothing is judged (scores folded anew).
    """

    def __init__(self, config: Mapping[str, Any], desk: JudgeDesk | None, pages: Pages | None) -> None:
        self._settings = settings_of(config)
        self._delivery = checked_delivery(config.get("delivery"))
        self._allow_hosts = tuple(str(host) for host in config.get("allow_hosts") or ())
        self._desk, self._pages = desk, pages
        self._readings: dict[int, tuple[Submission, Task, Reading]] = {}

    def expected(self, task: Task, submission: Submission | None) -> int:
        """The well-formed rows of a submission; the required records where there is none to look at."""
        if submission is None or submission.status not in GRADED:
            return required_records(tree_of(task))
        return len(self._reading(task, submission).parsed.records)

    def typical_questions(self, task: Task) -> list[Question]:
        """A question of each node about a page of usual length: what a run is priced by before it has pages."""
        stand_in = Submission(task_id=task.id, text="-")
        return [evidence.typical_question(node, stand_in) for node in tree_of(task).walk()]

    def describe(self, task: Task) -> str:
        """The task's hierarchies and counts in one line, for `core.list tasks`."""
        return describe(task)

    def unit_schema(self, task: Task, unit: str) -> Mapping[str, Any] | None:
        """The JSON Schema of a unit's verdict; None when the task can't have such a unit."""
        root = tree_of(task)
        kind, _, rest = unit.partition("/")
        if kind == PAGE:
            return PAGE_SCHEMA if rest else None
        if kind == RECORD:
            name, _, line = rest.rpartition("/")
            known = _LINE.fullmatch(line) is not None and any(node.name == name for node in root.walk())
            return RECORD_SCHEMA if known else None
        name, slash, raw = rest.partition("/")
        if name not in identity.keys_of(root):
            return None
        if kind == identity.CANONICALIZE:
            return identity.CANONICAL_SCHEMA if raw else None
        return identity.GROUPS_SCHEMA if kind == identity.DEDUPLICATE and not slash else None

    async def grade(self, task: Task, submission: Submission, repeat: int) -> AsyncIterator[Judgement]:
        """The rows of one repeat, as they come; without a judge where the system gave no answer."""
        if submission.status in BY_RULE:
            for node in tree_of(task).walk():
                for line in range(node.required_records):
                    yield by_rule(submission, f"{RECORD}/{node.name}/{line}", repeat, failed_verdict())
            return
        if submission.status not in GRADED:
            raise ValueError(f"a submission with status {submission.status!r} has nothing to grade")
        if self._desk is None:
            raise ValueError("grading needs a judge, and this grader was made without one")
        reading = self._reading(task, submission)
        if not reading.parsed.records:
            return
        gate = asyncio.Semaphore(self._desk.width)
        job = _Job(reading, submission, repeat, self._desk, gate, {})
        recorded = getattr(self._desk, "recorded", False)
        async with aclosing(self._recorded(job) if recorded else self._judged(job)) as rows:
            async for row in rows:
                yield row

    async def _judged(self, job: _Job) -> AsyncGenerator[Judgement, None]:
        """Rows of a judge that is asked, about pages that are fetched."""
        reading, width = job.reading, job.desk.width
        keys = identity.keys_of(reading.root)
        said: list[Judgement] = []
        async for row in canonical_rows(job.ask, width, job.submission, job.repeat, keys, reading.raws):
            said.append(row)
            yield row
        who = identity.identity_of(reading.root, reading.raws, identity.read(said, keys))
        job = _Job(reading, job.submission, job.repeat, job.desk, job.gate, evidence.named(who.canonical))
        canonical = {name: list(dict.fromkeys(found.values())) for name, found in who.canonical.items()}
        duplicates = asyncio.ensure_future(
            _collected(duplicate_rows(job.ask, width, job.submission, job.repeat, keys, canonical))
        )
        try:
            by_url = _by_url(reading.parsed.records)
            async with aclosing(
                as_done(by_url.items(), lambda item: self._of_page(job, *item), width=width)
            ) as pages:
                async for _, rows in pages:
                    for row in rows:
                        yield row
            for row in await duplicates:
                yield row
        finally:
            duplicates.cancel()
            await asyncio.gather(duplicates, return_exceptions=True)

    async def _of_page(self, job: _Job, url: str, records: Sequence[Record]) -> list[Judgement]:
        """The rows of a page and of all records that cite it."""
        if self._pages is None:
            raise ValueError("grading needs pages, and this grader was made without them")
        page = await self._pages.get(url)
        unit = f"{PAGE}/{url}"
        answer: Answer | None = None
        if page.status == "ok" and self._settings.triage == "judge":
            asked = triage.question(job.submission, job.repeat, page, unit)
            answer = await job.ask(asked)
            page = triage.triaged(page, answer)
            rows = [judgement(asked, unit, answer, lambda _: _page_verdict(page))]
            if rows[0].verdict is None:  # no triage is no reason to leave the page out
                rows = [_page_row(job, unit, page)]
        else:
            rows = [_page_row(job, unit, page)]
        if page.status != "ok":
            return rows + [self._unjudged(job, record, page.status, page.message) for record in records]
        if self._settings.redirects == "drop" and evidence.was_moved(page.url, page.final_url):
            return rows + [_missing(job, record, _moved(page.final_url)) for record in records]
        view = evidence.View(page, self._settings)
        questions = (self._question(job, record, view) for record in records)
        async with aclosing(as_done(questions, job.ask, width=job.desk.width)) as answers:
            async for asked, answer in answers:
                spec = job.reading.nodes[job.reading.units[asked.units[0]].node].judge
                read = partial(record_verdict, spec=spec, verdict_from=self._settings.verdict)
                rows.append(judgement(asked, asked.units[0], answer, read))
        return rows

    def _question(self, job: _Job, record: Record, view: evidence.View) -> Question:
        node = job.reading.nodes[record.node]
        values = identity.values_of(node, record.item, record.url)
        names = [job.names[key.name][values[key.name]] for key in node.keys[:-1]]
        excerpts = view.excerpts(record.excerpts)
        asked = question(
            node,
            record,
            job.submission,
            job.repeat,
            names=names,
            page=view.shown(record.excerpts),
            excerpts=excerpts,
            findings=self._settings.findings == "shown",
        )
        # members of an ensemble that each fail another check agree that the record fails
        return replace(asked, decides=partial(decided, spec=node.judge, verdict_from=self._settings.verdict))

    async def _recorded(self, job: _Job) -> AsyncGenerator[Judgement, None]:
        """Rows out of a file of judgements; a rule says what records of pages gone or unseen are."""
        reading = job.reading
        by_url = _by_url(reading.parsed.records)
        pages: dict[str, Mapping[str, Any] | None] = {}
        about = [f"{PAGE}/{url}" for url in by_url]
        async for row in recorded_rows(job.ask, job.submission, job.repeat, [*about, *_identity_units(reading)]):
            if row.unit.startswith(f"{PAGE}/"):
                pages[row.unit.removeprefix(f"{PAGE}/")] = row.verdict
            yield row
        for url, records in by_url.items():
            page = pages.get(url, _RECORDED_OK)
            if page is None or page["status"] != "ok":
                for record in records:
                    yield (
                        _missing(job, record, "the recorded verdict on its page is null")
                        if page is None
                        else self._unjudged(job, record, page["status"], "")
                    )
                continue
            final_url = page.get("final_url")
            if self._settings.redirects == "drop" and evidence.was_moved(url, final_url):
                for record in records:
                    yield _missing(job, record, _moved(final_url))
                continue
            asked = evidence.bare_question(job.submission, job.repeat, [record.unit for record in records])
            answer = await job.ask(asked)
            for record in records:
                row = judgement(asked, record.unit, answer, dict)
                if row.verdict is not None:
                    chosen = chosen_verdict(row.verdict, self._settings.verdict)
                    row = row.model_copy(update={"verdict": chosen})
                yield row

    def _unjudged(self, job: _Job, record: Record, status: PageStatus, message: str) -> Judgement:
        """The row of a record whose page is not there to be judged."""
        said = f"the page's status is {status}" + (f": {message}" if message else "")
        if status in GONE and self._settings.gone == "failed":
            verdict = failed_verdict(**{USABLE: False, "page_status": status})
            return _rule_row(job, record.unit, verdict, f"decided by rule: {said}")
        return _missing(job, record, said)

    def score(self, task: Task, submission: Submission | None, judgements: Sequence[Judgement]) -> TaskScore:
        """The metrics of one attempt; see scoring.py.

        No submission gives the names of the metrics with nulls, and the counts of one repeat. Raises ValueError
        for rows of another task or two rows of one unit, InputError for unknown units.
        """
        strangers = {row.task_id for row in judgements} - {task.id}
        if strangers:
            raise ValueError(f"judgements of {sorted(strangers)} given for task {task.id}")
        root = tree_of(task)
        flags = set(task.payload.get("flags") or ())
        if submission is None or submission.status not in GRADED:
            return _without_answer(task, root, judgements, flags)
        reading = self._reading(task, submission)
        runs = scoring.runs_of(reading, judgements)
        flags.update(flag for run in runs for flag in run.flags)
        notes = notes_of(reading.parsed)
        if runs:
            coverage = add_counts(run.coverage for run in runs)
            scores = [run.score for run in runs]
            return score_of_runs(task, scores, coverage_by=coverage, flags=flags, notes=notes)
        # nothing was judged: because there is nothing well-formed, which is 0 by rule, or because it was cut short
        if reading.parsed.malformed:
            flags.add(scoring.MALFORMED)
        n_expected = len(reading.parsed.records)
        metrics = scoring.nulls(root) if n_expected else scoring.zeros(root)
        run = RunScore(attempt=submission.attempt, repeat=1, metrics=metrics, n_graded=0, n_expected=n_expected)
        coverage = {"node": scoring.coverage_of(reading, {})}
        return score_of_runs(task, [run], coverage_by=coverage, flags=flags, notes=notes)

    def explain(self, task: Task, submission: Submission, judgements: Sequence[Judgement]) -> dict[str, Any]:
        """Every node's numbers and what they were made of (explain.py), or the rule that decided them."""
        if submission.status not in GRADED:
            return {"by_rule": f"the submission's status is {submission.status}"}
        return explained(self._reading(task, submission), judgements)

    def _reading(self, task: Task, submission: Submission) -> Reading:
        known = self._readings.get(id(submission))
        # the submission is kept beside its rows, so that nothing else can have its identity
        if known is not None and known[0] is submission and known[1] is task:
            return known[2]
        root = tree_of(task)
        reading = Reading(root, parse(root, submission, self._delivery, allow_hosts=self._allow_hosts))
        while len(self._readings) >= _KEPT:
            self._readings.pop(next(iter(self._readings)))
        self._readings[id(submission)] = (submission, task, reading)
        return reading


def _without_answer(task: Task, root: Node, judgements: Sequence[Judgement], flags: set[str]) -> TaskScore:
    """Zeros where a rule decided, nulls where nothing is there."""
    repeats = sorted({row.repeat for row in judgements})
    required = required_records(root)
    coverage = scoring.required_coverage(root, len(repeats) or 1, graded=bool(repeats))
    if not repeats:
        blank = score_of_runs(task, [], coverage_by=coverage, flags=flags)
        return blank.model_copy(update={"metrics": scoring.nulls(root), "n_expected": required})
    attempt = judgements[0].attempt
    runs = [
        RunScore(
            attempt=attempt, repeat=repeat, metrics=scoring.zeros(root), n_graded=required, n_expected=required
        )
        for repeat in repeats
    ]
    return score_of_runs(task, runs, coverage_by=coverage, flags=flags)


def _by_url(records: Iterable[Record]) -> dict[str, list[Record]]:
    found: dict[str, list[Record]] = {}
    for record in records:
        found.setdefault(record.url, []).append(record)
    return found


def _identity_units(reading: Reading) -> Iterator[str]:
    for key, raws in reading.raws.items():
        yield from (identity.canonical_unit(key, raw) for raw in raws)
        yield identity.duplicates_unit(key)


def _page_verdict(page: Page) -> dict[str, Any]:
    moved = {"final_url": page.final_url} if page.final_url not in (None, page.url) else {}
    return {"status": page.status, **moved}


def _page_row(job: _Job, unit: str, page: Page) -> Judgement:
    return _rule_row(job, unit, _page_verdict(page), page.message or None)


def _missing(job: _Job, record: Record, reason: str) -> Judgement:
    """The row of a record that could not be judged: what we could not see is unknown."""
    row = _rule_row(job, record.unit, None, None)
    return row.model_copy(update={"error": Failure(kind=UNSEEN_KIND, message=reason)})


def _moved(final_url: str | None) -> str:
    return f"the page was moved to {final_url}"


def _rule_row(job: _Job, unit: str, verdict: Mapping[str, Any] | None, explanation: str | None) -> Judgement:
    return Judgement(
        task_id=job.submission.task_id,
        attempt=job.submission.attempt,
        unit=unit,
        repeat=job.repeat,
        verdict=verdict,
        judge=RULE_JUDGE,
        explanation=explanation,
    )


async def _collected(rows: AsyncIterator[Judgement]) -> list[Judgement]:
    return [row async for row in rows]
