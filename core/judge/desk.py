"""The desk where graders ask: everything that stands between a question and a judge.

    question ─▶ store ─▶ single flight ─▶ first of its report ─▶ budget ─▶ retries, limiter ─▶ judge
                  ▲                                                                              │
                  └──────────────────────── answer, ledger ◀─────────────────────────────────────┘

An answer is stored only after it was read and checked; a failed one is asked again by the next run, but for
a refusal, which is the provider's word and stays until `retry=failed`. The first question about a report
goes ahead of the others, so that the provider's prompt cache has the report when they arrive.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from typing import Any, Final

from core.budget import Budget
from core.calls import RetryPolicy, call
from core.clock import Clock
from core.digest import combine, json_digest, plain, text_digest
from core.errors import CallError, StopRun, cost_of
from core.judge.question import Answer, Question
from core.limiter import Limiter
from core.model import Failure, Usage, total_usage
from core.parts import Judge
from core.secrets import Keys
from core.stop import Stop
from core.store import Call, Store

#: How long to wait for another process that asks the same question, in seconds.
_LEASE_POLL_S: Final = 0.2
#: Reports whose first question has been answered; older ones are forgotten.
_REPORTS_KEPT: Final = 4096


@dataclass(frozen=True, slots=True)
class Tools:
    """What the desk works with."""

    store: Store | None
    limiter: Limiter
    budget: Budget
    clock: Clock
    rng: random.Random
    keys: Keys
    stop: Stop
    run: str


class Desk:
    """The run's judge, as graders see it (core.services.JudgeDesk)."""

    def __init__(
        self,
        judge: Judge,
        *,
        name: str,
        width: int,
        policy: RetryPolicy,
        epoch: int = 0,
        retry_failed: bool = False,
    ) -> None:
        self.name, self.width = name, width
        self._judge, self._policy = judge, policy
        self._opened: Tools | None = None
        self._epoch, self._retry_failed = epoch, retry_failed
        self._settings_digest = json_digest(plain(getattr(judge, "settings", {})))
        self._stored: bool = getattr(judge, "stored", True)
        self._estimate: Callable[[Question], float | None] | None = getattr(judge, "estimate_usd", None)
        self._asking: dict[str, asyncio.Future[Answer]] = {}
        self._reports: dict[str, asyncio.Event] = {}
        #: whether verdicts are read from a file: then nothing else may be looked up either
        self.recorded: bool = getattr(judge, "recorded", False)
        self._prompts: set[tuple[str, str]] = set()
        self._failed_before: set[str] = set()
        self.asked = self.reused = 0

    def open(self, tools: Tools) -> None:
        """Begin to take questions; before that the desk only tells its name and width."""
        self._opened = tools

    def prompt_digest(self) -> str | None:
        """Over the system texts and answer schemas that were used; None where none was shown to a judge."""
        if self.recorded:
            return None  # whatever was asked was asked elsewhere
        used = sorted(combine(system=text_digest(system), schema=schema) for system, schema in self._prompts)
        return json_digest(used) if used else None

    @property
    def _store(self) -> Store:
        assert self._tools.store is not None, "a judge whose answers are kept needs a store"
        return self._tools.store

    @property
    def _tools(self) -> Tools:
        assert self._opened is not None, "the desk is not open: nothing may be asked before a run starts"
        return self._opened

    def key(self, question: Question) -> str:
        """The answer's place in the store: all that shapes it."""
        return combine(
            question=question.digest,
            judge=self._settings_digest,
            repeat=str(question.repeat),
            epoch=str(self._epoch),
        )

    async def ask(self, question: Question) -> Answer:
        """The answer to a question; `error` is set where none could be had. Never raises CallError or StopRun."""
        self._prompts.add((question.system, question.schema_digest))
        if not self._stored:
            return await self._direct(question)
        key = self.key(question)
        kept = self._kept(key)
        if kept is not None:
            self.reused += 1
            return kept
        running = self._asking.get(key)
        if running is not None:
            return await asyncio.shield(running)
        future: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._asking[key] = future
        try:
            answer = await self._first_of_report(question, key)
        except BaseException as error:
            future.cancel()
            if isinstance(error, Exception):
                self._store.drop_lease(key)
            raise
        else:
            future.set_result(answer)
            return answer
        finally:
            del self._asking[key]

    async def _direct(self, question: Question) -> Answer:
        """A judge that is read or computed: nothing to store, limit or pay."""
        try:
            self._tools.stop.check()
            answer = await self._call_judge(question)
        except CallError as error:
            return self._failed(error.failure())
        except StopRun as stop:
            return self._stopped(stop)
        return answer if answer.judge else replace(answer, judge=self.name)

    async def _call_judge(self, question: Question) -> Answer:
        try:
            return await self._judge.ask(question)
        except (CallError, StopRun):
            raise
        except Exception as error:
            raise CallError("crash", f"judge {self.name}: {type(error).__name__}: {error}") from error

    def _kept(self, key: str) -> Answer | None:
        body = self._store.answer(key)
        if body is None:
            return None
        answer = _from_body(body)
        if answer.error is not None and self._retry_failed:
            self._failed_before.add(key)
            return None
        return answer

    @property
    def retried(self) -> int:
        """How many stored failures were asked about again, because the run was told to."""
        return len(self._failed_before)

    async def _first_of_report(self, question: Question, key: str) -> Answer:
        """Let one question about a report go ahead; the others follow when it has been answered."""
        report = question.prefix_digest
        gate = self._reports.get(report)
        if gate is not None:
            await gate.wait()
            return await self._single_flight(question, key)
        self._reports[report] = gate = asyncio.Event()
        try:
            return await self._single_flight(question, key, gate)
        finally:
            gate.set()
            while len(self._reports) > _REPORTS_KEPT:
                self._reports.pop(next(iter(self._reports)))

    async def _single_flight(self, question: Question, key: str, gate: asyncio.Event | None = None) -> Answer:
        """Wait while another process asks the same; take over what it got or left."""
        tools = self._tools
        try:
            while not self._store.take_lease(key):
                await tools.clock.sleep(_LEASE_POLL_S)
            # whoever had the lease may have put the answer between our look and our lease
            if (kept := self._kept(key)) is not None:
                self._store.drop_lease(key)
                self.reused += 1
                return kept
            return await self._pay(question, key, gate)
        except StopRun as stop:
            tools.stop.pull(stop)
            self._store.drop_lease(key)
            return self._stopped(stop)

    async def _pay(self, question: Question, key: str, gate: asyncio.Event | None) -> Answer:
        """One question, with its budget, its tries and its ledger rows; `gate` is there if others wait for it."""
        tools, tries = self._tools, _Tries()
        estimate = self._estimate(question) if self._estimate and tools.budget.bounded else None

        async def make(_: int) -> Answer:
            tools.stop.check()
            async with tools.budget.reserve("judge", estimate) as reservation:
                try:
                    answer = await self._call_judge(question)
                except CallError as error:
                    reservation.actual = cost_of(error)
                    raise
                reservation.actual = answer.cost_usd
                return answer

        def on_failure(error: CallError, _: int) -> None:
            if gate is not None:
                gate.set()  # the others need not sit out this one's retries
            tries.add(error.usage, cost_of(error))
            self._store.put_call(self._call(key, error=error))

        self.asked += 1
        try:
            answer = await call(
                make,
                policy=self._policy,
                limiter=tools.limiter,
                clock=tools.clock,
                rng=tools.rng,
                on_failure=on_failure,
                ahead=gate is not None,
            )
        except CallError as error:
            return self._give_up(error, key, tries)
        done_call = self._call(key, answer=answer)
        tries.add(answer.usage, answer.cost_usd)
        answer = replace(
            answer,
            judge=answer.judge or self.name,
            usage=tries.usage,
            cost_usd=tries.usd,
            cost_source=answer.cost_source if tries.usd is not None else "unknown",
            asked_at=datetime.fromtimestamp(done_call.at, UTC).isoformat(timespec="seconds"),
            calls=tries.n,
            # a model may repeat what its server told it: no part of an answer may hold a key
            value=tools.keys.stripped(answer.value),
            model=tools.keys.stripped(answer.model),
            raw=tools.keys.stripped(answer.raw),
        )
        self._store.put_answer(key, _to_body(answer), done_call)
        return answer

    def _give_up(self, error: CallError, key: str, tries: _Tries) -> Answer:
        tools = self._tools
        failure = Failure(kind=error.kind, message=tools.keys.redact(error.failure().message))
        answer = replace(
            self._failed(failure),
            # what is valid in the last answer; the error is that of the rest
            value=None if error.partial is None else tools.keys.stripped(error.partial),
            raw=tools.keys.strip(error.raw) if error.raw else None,
            model=error.model,
            usage=tries.usage,
            cost_usd=tries.usd,
            cost_source=None if tries.usd is not None else "unknown",
            calls=tries.n,
        )
        if error.meaning.stored and answer.value is None:
            self._store.put_answer(key, _to_body(answer))  # its calls are in the ledger already
        else:
            self._store.drop_lease(key)
        return answer

    def _stopped(self, stop: StopRun) -> Answer:
        return self._failed(Failure(kind=stop.kind, message=self._tools.keys.redact(stop.message)))

    def _failed(self, failure: Failure) -> Answer:
        return Answer(error=failure, judge=self.name)

    def _call(self, key: str, *, answer: Answer | None = None, error: CallError | None = None) -> Call:
        tools = self._tools
        base = Call(run=tools.run, role="judge", key=key, at=tools.clock.now())
        if answer is not None:
            usage = answer.usage.model_dump() if answer.usage else None
            return replace(
                base,
                model=answer.model,
                usage=usage,
                usd=answer.cost_usd,
                source=answer.cost_source,
                latency_s=answer.latency_s,
            )
        assert error is not None
        return replace(
            base,
            model=error.model,
            usage=error.usage.model_dump() if error.usage else None,
            usd=cost_of(error),
            error=error.kind,
            message=tools.keys.redact(error.message),
            raw=tools.keys.strip(error.raw) if error.raw else None,
        )


class _Tries:
    """The sum of the calls that one question took. `usd` is None once a call's cost is unknown."""

    def __init__(self) -> None:
        self.n = 0
        self.usage: Usage | None = None
        self.usd: float | None = 0.0

    def add(self, usage: Usage | None, usd: float | None) -> None:
        self.n += 1
        self.usage = total_usage((self.usage, usage))
        self.usd = None if usd is None or self.usd is None else self.usd + usd


def _to_body(answer: Answer) -> dict[str, Any]:
    body = asdict(replace(answer, verdicts={}, error=None, usage=None))
    body.pop("verdicts")
    body["error"] = answer.error.model_dump() if answer.error else None
    body["usage"] = answer.usage.model_dump() if answer.usage else None
    return {name: value for name, value in body.items() if value is not None}


def _from_body(body: Mapping[str, Any]) -> Answer:
    fields = dict(body)
    error, usage = fields.pop("error", None), fields.pop("usage", None)
    return Answer(**fields, error=Failure(**error) if error else None, usage=Usage(**usage) if usage else None)
