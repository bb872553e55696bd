"""system=search_and_answer: a plain research agent of our own, as a baseline that any lab can run again.

    python -m core.run benchmark=draco system=search_and_answer effort=low \\
        system.model=openai/gpt-6.1-terra system.search_url=http://127.0.0.1:8080

    plan ─▶ search ─▶ read the pages ─▶ notes or records ─▶ report or files
      └──────────────── so many rounds ──────────────┘

One model, one search back-end, no cleverness: results are read in the order of their ranks, each page from its
beginning. It is meant to be beaten; what it scores says what these two ingredients give without more.

Pages come from the run's own page service: the guard stands before every fetch, and what the agent reads is in the
archive that the judge reads. What a page says is fenced and capped, and no address is taken out of it: results of
searches are all that is fetched. It can steer what is noted, and so what is searched next.

    how it ended                                                     the submission
    a report, all files                                              completed
    some files without a record; a report that the model did not     incomplete (the notes stand in for the report)
      get out; the deadline, with something found
    no search result, no readable page, nothing to the point         empty
    the model or its filter refused                                  refused
    the deadline, with nothing found                                 timed_out
    model or search out of reach, pages not to be had for reasons    an error of the table: no number
      of ours, answers that never parse

Every call is made again by itself (adapters/_baseline_model.py). One that failed for good ends the attempt with an
error that the engine does not repeat, for that would pay for all of it again. Nothing runs at a provider: a crash
or an interrupt loses the attempt under way, and the next start begins it anew.
"""

from __future__ import annotations

import asyncio
import math
from collections import Counter
from collections.abc import Coroutine, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from datetime import UTC, datetime
from itertools import zip_longest
from typing import Any, Final, TypeVar, cast

from adapters import _baseline_prompts as prompts
from adapters._baseline_model import Model, Tally
from adapters._baseline_prompts import Source
from adapters._baseline_search import Hit, Search, is_blocked
from adapters._delivery import channel_of, checked_channel
from core.calls import AT_ONCE, RetryPolicy
from core.errors import CallError, StopRun, meaning
from core.jobs.options import section_of
from core.model import Failure, Submission, SubmissionStatus, Task
from core.pages.fetched import OURS
from core.pages.page import Page, Pages
from core.pages.urls import archive_key
from core.reply import shortened
from core.section import Section
from core.services import Services

T = TypeVar("T")

#: What an effort may set.
_BY_EFFORT: Final = (
    *("rounds", "searches", "pages", "model_tokens", "page_chars"),
    *("model", "reasoning_effort", "max_output_tokens", "timeout_s", "estimate_usd"),
)
#: The share of the token budget after which a report is written from what there is.
_RESEARCH: Final = 0.8
#: Answers that cost their own step alone; `refused` is told apart.
_UNUSABLE: Final = AT_ONCE | {"too_large"}
_LONGEST_TITLE: Final = 200


@dataclass(frozen=True, slots=True)
class Budget:
    """What one attempt may use. `model_tokens` counts input and output; calls under way may pass it."""

    rounds: int
    searches: int
    pages: int
    model_tokens: int
    page_chars: int


@dataclass(frozen=True, slots=True)
class Draft:
    """What an attempt came to, before its links are checked."""

    status: SubmissionStatus
    text: str | None = None
    files: Mapping[str, str] | None = None
    failure: Failure | None = None

    @classmethod
    def nothing(cls, status: SubmissionStatus, message: str) -> Draft:
        """An end without an answer, and why."""
        return cls(status, failure=Failure(kind=status, message=message))


class Attempt:
    """One attempt at one task: what was searched, read and noted so far."""

    def __init__(self, task: Task, number: int, tools: SearchAndAnswer, now: float) -> None:
        self.task, self.number, self.tools = task, number, tools
        # a search for what is recent needs the date
        self._today = datetime.fromtimestamp(now, UTC).date().isoformat()
        self.tally = Tally()
        self.queries: list[str] = []
        self.counts: Counter[str] = Counter()
        self.statuses: Counter[str] = Counter()
        #: addresses of pages that were fetched, as asked for and as reached
        self.fetched: set[str] = set()
        self._seen: set[str] = set()
        #: results that no page was left for; new ones go first
        self._waiting: list[Hit] = []
        self._taken = 0
        self._read: dict[int, Source] = {}
        self._unusable: CallError | None = None
        self._gate = asyncio.Semaphore(tools.pages_in_flight)

    @property
    def sources(self) -> list[Source]:
        """The pages that were read, in the order in which they were chosen."""
        return [self._read[place] for place in sorted(self._read)]

    async def run(self) -> Draft:
        """Research, then write. Raises CallError, StopRun."""
        budget = self.tools.budget
        for left in range(budget.rounds, 0, -1):
            queries = await self._plan(left)
            if not queries:
                break
            found = [*await self._search(queries), *self._waiting]
            room = max(0, math.ceil((budget.pages - self._taken) / left))
            self._waiting = found[room:]
            first, self._taken = self._taken, self._taken + len(found[:room])
            await _together(self._page(place, hit) for place, hit in enumerate(found[:room], first))
        if not any(source.notes or source.rows for source in self.sources):
            return self._nothing()
        return self._records() if self.task.required_files else await self._report()

    def so_far(self, message: str) -> Draft:
        """The answer at the deadline: what was found by then."""
        draft = self._records() if self.task.required_files else Draft("incomplete", prompts.as_text(self.sources))
        if not draft.files and not draft.text:
            return Draft.nothing("timed_out", message)
        return replace(draft, status="incomplete", failure=Failure(kind="timed_out", message=message))

    # the steps

    async def _plan(self, left: int) -> list[str]:
        """The next searches. A first plan that can't be read is replaced by the task's own words."""
        n = math.ceil((self.tools.budget.searches - len(self.queries)) / left)
        if n <= 0 or self._is_spent:
            return []
        value: Mapping[str, Any] = {}
        try:
            question = prompts.plan_question(self.task, self.number, self.sources, n, self._today)
            value = await self.tools.model.ask(question, self.tally)
        except CallError as error:
            if error.kind not in _UNUSABLE:
                raise
            self.counts["plans that could not be read"] += 1
        queries = prompts.fresh_queries(value.get("queries"), self.queries, n)
        if not queries and not self.queries:
            queries = prompts.fresh_queries([self.task.prompt], (), 1)
        self.queries += queries
        return queries

    async def _search(self, queries: Sequence[str]) -> list[Hit]:
        """What the searches find, the first of each before the second of any; none twice, none that is blocked."""
        answers = await _together(self._find(query) for query in queries)
        failed = [answer for answer in answers if isinstance(answer, CallError)]
        self.counts["searches that failed"] += len(failed)
        if failed and self.counts["searches that failed"] == len(self.queries):
            raise failed[-1]
        found = []
        for rank in zip_longest(*(answer for answer in answers if not isinstance(answer, CallError))):
            for hit in rank:
                if hit is None or (key := archive_key(hit.url)) in self._seen:
                    continue
                self._seen.add(key)
                if is_blocked(hit.url, self.task.blocked):
                    self.counts["blocked results"] += 1
                else:
                    found.append(hit)
        self.counts["results"] += len(found)
        return found

    async def _find(self, query: str) -> list[Hit] | CallError:
        try:
            return await self.tools.search.find(query, self.tally)
        except CallError as error:
            return error

    async def _page(self, place: int, hit: Hit) -> None:
        """One page, fetched and read; what comes of it is kept at once, for the deadline does not wait."""
        async with self._gate:
            if self._is_spent:
                self.counts["pages left unread: the token budget is spent"] += 1
                return
            page: Page = await self.tools.pages.get(hit.url)
            self.statuses[page.status] += 1
            if page.status != "ok":
                return
            reached = {page.url, page.final_url or page.url}
            if any(is_blocked(url, self.task.blocked) for url in (*reached, *page.chain)):
                self.counts["blocked pages behind a redirect"] += 1
                return
            self.fetched |= reached
            title = shortened(page.title or hit.title, _LONGEST_TITLE)
            question = prompts.page_question(self.task, self.number, page, title, self.tools.budget.page_chars)
            try:
                value = await self.tools.model.ask(question, self.tally)
            except CallError as error:
                if error.kind not in (*_UNUSABLE, "refused"):
                    raise
                self.counts[f"pages whose reading ended as {error.kind}"] += 1
                self._unusable = error
                return
            # looking for a passage that is not there takes a while
            source = await asyncio.to_thread(prompts.source_of, page, title, value)
            self._read[place] = source
            self.counts["notes and records that their page does not bear out"] += source.dropped

    async def _report(self) -> Draft:
        try:
            question = prompts.report_question(self.task, self.number, self.sources)
            value = await self.tools.model.ask(question, self.tally)
        except CallError as error:
            if error.kind not in _UNUSABLE:
                raise
            why = f"the notes stand in for a report that could not be written: {error.message}"
            return Draft(
                "incomplete", prompts.as_text(self.sources), failure=Failure(kind=error.kind, message=why)
            )
        return Draft("completed", value["report"])

    def _records(self) -> Draft:
        files = prompts.files_of(self.sources)
        missing = [name for name in self.task.required_files if name not in files]
        if not missing:
            return Draft("completed", files=files)
        failure = Failure(kind="empty", message=f"no record for {', '.join(missing)}")
        return Draft("incomplete", files=files, failure=failure)

    def _nothing(self) -> Draft:
        """Why there is nothing to write from; a fault of ours and a model that can't be used are raised."""
        if not self.counts["results"]:
            return Draft.nothing("empty", f"{self.tally.searches} searches found nothing that may be read")
        said = ", ".join(f"{status} {n}" for status, n in sorted(self.statuses.items()))
        if not self.statuses["ok"]:
            if OURS & self.statuses.keys():
                raise CallError("page", f"no page could be had: {said}; is this run's pages=web?")
            return Draft.nothing("empty", f"no page could be read: {said or 'the token budget is spent'}")
        if self._unusable is not None and not self.sources:
            raise self._unusable
        return Draft.nothing("empty", f"no page said anything to the point: {said}")

    @property
    def _is_spent(self) -> bool:
        share = 1.0 if self.task.required_files else _RESEARCH
        return self.tally.tokens >= share * self.tools.budget.model_tokens


class SearchAndAnswer:
    """The agent as a system (core.parts.System)."""

    can_block: Final = True
    wire_version: Final = "1"

    def __init__(self, section: Section, services: Services) -> None:
        retry = Section(section.mapping("retry"), f"{section.where}.retry")
        pace = Section(section.mapping("pace"), f"{section.where}.pace")
        policy = RetryPolicy(retry.whole("attempts"), retry.number_or_none("max_wait_s") or 0.0, "judge")
        self._services, self._name = services, section.text("name")
        self._estimate_usd = section.number_or_none("estimate_usd")
        self._timeout_s = section.seconds("timeout_s")
        self._delivery = checked_channel(section, "file", "schema", "fence")
        self.pages_in_flight = pace.whole("pages_in_flight")
        self.budget = Budget(*(section.whole(field.name) for field in fields(Budget)))
        self.model = Model(section, services, policy, pace)
        self.search = Search(section, services, policy, pace)
        #: not the model's account: an attempt would hold the slot that its own calls wait for
        self.account = f"{self._name}: attempts"
        for key in ("base_url", "api_key_env"):
            if section.values.get(key) is not None:
                raise section.refuse(key, "null: set model_base_url and model_key_env, or search_url")

    @property
    def settings(self) -> Mapping[str, Any]:
        """All that shapes an answer."""
        return {
            "prompts": prompts.VERSION,
            "model": self.model.settings,
            "search": self.search.settings,
            "budget": asdict(self.budget),
            "delivery": self._delivery,
        }

    @property
    def estimate_usd(self) -> float | None:
        """What an attempt costs that uses up its budget; None where a price is unknown."""
        if self._estimate_usd is not None:
            return self._estimate_usd
        tokens, search = self.model.estimate_usd(self.budget.model_tokens), self.search.usd
        return None if tokens is None or search is None else tokens + self.budget.searches * search

    @property
    def pages(self) -> Pages:
        """The run's pages. Raises CallError where a run has none."""
        if self._services.pages is None:
            raise CallError("page", "this run has no pages to read from (core.services.Services.pages)")
        return cast("Pages", self._services.pages)

    def check(self) -> list[str]:
        """What is missing: the model, the search back-end, their keys."""
        return [*self.model.check(), *self.search.check()]

    async def solve(self, task: Task, attempt: int) -> Submission:
        """One attempt. Raises CallError."""
        clock = self._services.clock
        run = Attempt(task, attempt, self, clock.now())
        start = clock.monotonic()
        deadline = asyncio.timeout(self._timeout_s)
        try:
            async with deadline:
                draft = await run.run()
        except TimeoutError:
            if not deadline.expired():
                raise
            draft = run.so_far(f"not done within {self._timeout_s:g} s (system.timeout_s)")
        except (CallError, StopRun) as error:
            if error.kind != "refused":
                raise self._given_up(error, run.tally) from error
            draft = Draft.nothing("refused", error.message)
        return self._submission(run, draft, clock.monotonic() - start)

    async def aclose(self) -> None:
        """Close what the model's door has opened."""
        await self.model.aclose()

    def _given_up(self, error: CallError | StopRun, tally: Tally) -> CallError:
        """The error with what the attempt has cost, of a kind that the engine does not repeat."""
        again = meaning(error.kind).retry_system
        message = self._services.keys.redact(f"{error.kind}: {error.message}" if again else error.message)
        request = getattr(error, "request_id", None)
        kind = "given_up" if again else error.kind
        return CallError(kind, message, usage=tally.usage, cost_usd=tally.usd, request_id=request)

    def _submission(self, run: Attempt, draft: Draft, latency_s: float) -> Submission:
        channel, tally = channel_of(run.task, self._delivery), run.tally
        files = {name: text for name, text in (draft.files or {}).items() if name in run.task.required_files}
        text = draft.text
        if text is not None:
            text, removed = prompts.with_checked_links(text, run.fetched)
            run.counts["links removed: not pages that were fetched"] += len(removed)
        citations = prompts.citations_of(text, run.sources)
        if files and channel == "fence":
            text, files = "\n\n".join(f"```file:{name}\n{lines}```" for name, lines in files.items()), {}
        return Submission(
            task_id=run.task.id,
            attempt=run.number,
            status=draft.status,
            text=text or None,
            files=files,
            citations=citations,
            usage=tally.usage,
            cost_usd=tally.usd,
            cost_source=tally.source,
            latency_s=latency_s,
            error=draft.failure,
            system=self._name,
            effort=self._services.effort,
            settings={
                **self.settings,
                "echoed": {
                    "model": tally.model,
                    "calls": tally.model_calls,
                    "searches": tally.searches,
                    "queries": run.queries,
                    "pages": dict(sorted(run.statuses.items())),
                    "notes": [f"{what}: {n}" for what, n in sorted(run.counts.items()) if n],
                },
            },
        ).settled()


async def _together(steps: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """The results in order. When one fails, the others are ended before its error goes on: they cost money."""
    tasks = [asyncio.ensure_future(step) for step in steps]
    try:
        return await asyncio.gather(*tasks)
    except BaseException:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        raise


def search_and_answer(config: Mapping[str, Any], services: Services) -> SearchAndAnswer:
    """The factory. Raises InputError for a value that can't be used."""
    return SearchAndAnswer(section_of(config, *_BY_EFFORT), services)
