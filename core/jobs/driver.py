"""The life of one job, from the intent to its submission.

    nothing known      ─▶ intent stored ─▶ create ─▶ handle stored ─▶ polls ─▶ terminal snapshot ─▶ answer
    a handle known     ─▶ polls: a restart goes on with the job that is there
    an intent, no id   ─▶ looked up by its token where the API can, else maybe_billed; never sent again

A create is sent once. Whether it may be sent again is the error table's word: only an answer that says that
nothing was started (a refused connection, a limit, a 5xx) forgets the intent, so that the retrying layer may come
back. Asking about a job costs nothing, so a poll that fails is repeated here, for as long as JobOptions allow.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Final, TypeVar

from core.errors import CallError
from core.jobs.ledger import JobRecord, Jobs
from core.jobs.options import JobOptions
from core.jobs.outcome import submission_of
from core.jobs.patience import GROWTH, Patience
from core.jobs.provider import TERMINAL, Answer, Ask, Paid, Provider, Snapshot
from core.model import Submission, Task

if TYPE_CHECKING:
    from core.services import Services

T = TypeVar("T")

#: How often a job is looked for whose create was not answered.
FIND_TRIES: Final = 4


class Driver:
    """Drives one system's jobs. Stateless between jobs: what must outlive the process is in the records."""

    def __init__(
        self, provider: Provider, options: JobOptions, services: Services, jobs: Jobs, account: str
    ) -> None:
        self.provider, self.options, self.services = provider, options, services
        self._jobs, self._account = jobs, account

    async def run(self, task: Task, attempt: int) -> Submission:
        """The submission of one attempt. Raises CallError where there is none and none will come by itself."""
        record = self._jobs.record(task.id, attempt)
        await self._settle_cancelled(task, attempt, record)
        resumed = record.row is not None
        try:
            ask, snapshot = await self._begin(task, attempt, record)
            snapshot, late = await self._wait(ask, record, snapshot)
        except asyncio.CancelledError:
            await self._interrupted(record)
            raise
        if snapshot.void is not None:
            record.forget()
            raise snapshot.void
        # an interrupt from here on leaves the job as it is: it is over, and the next start reads it for nothing
        answer = await self._answer(ask, snapshot)
        assert record.row is not None, "an ended job without a record"
        began = record.row.begun
        submission = submission_of(
            ask,
            snapshot,
            answer,
            name=self.options.name,
            handle=record.handle,
            latency_s=max(0.0, self.services.clock.now() - began),
            late_s=self.options.deadline_s if late else None,
            resumed=resumed,
        )
        record.done()
        return submission

    # the beginning

    async def _settle_cancelled(self, task: Task, attempt: int, record: JobRecord) -> None:
        """A job that an earlier start asked the provider to stop: forgotten if it did, gone on with if not."""
        row = record.row
        if row is None or row.step != "cancelling" or row.handle is None:
            return
        ask = self._ask(task, attempt, row.token, record)
        try:
            found = await self._patiently(lambda: self.provider.advance(ask, row.handle or {}))
        except CallError as error:
            if error.kind != "not_found":
                raise _told(error, "unreachable", cost_usd=0.0) from error
            found = Snapshot("cancelled", word="not_found")
        if found.state not in ("cancelled", "failed"):
            record.keep(found.handle or row.handle, paid_next=found.paid_next)
            return
        try:
            paid = (await self.provider.answer(ask, found)).paid
        except CallError:
            paid = Paid()
        self._jobs.spent(record.key, paid)
        record.forget()

    async def _begin(self, task: Task, attempt: int, record: JobRecord) -> tuple[Ask, Snapshot]:
        known = record.row
        if known is None:
            row = record.intend(self.services.clock.now())
            ask = self._ask(task, attempt, row.token, record)
            return ask, await self._create(ask, record)
        ask = self._ask(task, attempt, known.token, record)
        if known.handle is None:
            return ask, await self._found(ask, record, None)
        if known.step == "paying":
            message = "a continuation was sent before the last stop, and what became of it is unknown"
            raise CallError("maybe_billed", f"{self.options.name}: {message}", cost_usd=0.0)
        return ask, Snapshot("running", handle=known.handle, paid_next=known.step == "paid")

    async def _create(self, ask: Ask, record: JobRecord) -> Snapshot:
        try:
            snapshot = await self._unbroken(self.provider.create(ask), record)
        except CallError as error:
            if record.handle is not None:  # a stream that named the job and broke off: the job goes on
                self.services.log.warning("stream broke off", kind=error.kind, message=error.message)
                return Snapshot("running", handle=record.handle)
            if error.meaning.billed == "no" or error.meaning.stored:
                found = await self._seen(ask) if error.kind == "server" and self.provider.can_find else None
                if found is not None:  # a 5xx that came although the job was started
                    record.keep(found.handle or {})
                    return found
                record.forget()  # it was never started, or it is over with the provider's own word
                raise
            return await self._found(ask, record, error)
        if snapshot.handle is not None:
            record.keep(snapshot.handle, paid_next=snapshot.paid_next)
        limiter = self.services.limiter.find(self._account)
        if limiter is not None:  # the account took one more: jobs are long, their ends come too late to learn from
            limiter.succeeded()
        return snapshot

    async def _unbroken(self, create: Awaitable[T], record: JobRecord) -> T:
        """Await a create; at an interrupt it is given time to name the job, so that it can be cancelled."""
        task = asyncio.ensure_future(create)
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            if record.handle is None and not self.provider.closing_cancels and not task.done():
                await asyncio.wait({task}, timeout=self.options.cancel_s)
            if not task.done():
                task.cancel()
            await asyncio.wait({task})
            if task.cancelled():
                raise
            error = task.exception()
            if isinstance(error, CallError) and record.handle is None and error.meaning.billed == "no":
                record.forget()  # refused while we were leaving: nothing was started
            elif error is None:
                result = task.result()
                if isinstance(result, Snapshot) and result.handle is not None:
                    record.keep(result.handle, paid_next=result.paid_next)
            raise

    async def _found(self, ask: Ask, record: JobRecord, cause: CallError | None) -> Snapshot:
        """A job whose create was not answered: the one that the provider knows by our token.

        Raises CallError `maybe_billed` where there is none; the intent stays: no later start sends it again.
        """
        name = self.options.name
        found = await self._looked_up(ask) if self.provider.can_find else None
        if found is not None and found.handle is not None:
            record.keep(found.handle)
            return found
        why = cause.message if cause is not None else f"{name}: a create was sent before the last stop, unanswered"
        what = "has shown no job with our token" if self.provider.can_find else "can't be asked which jobs it has"
        advice = CallError("maybe_billed").message
        # an older intent was counted as a call of unknown cost when it was sent; a new one is counted now
        raise CallError(
            "maybe_billed",
            f"{why}; {name} {what}: {advice}",
            cost_usd=0.0 if cause is None else None,
            request_id=cause.request_id if cause is not None else None,
        )

    async def _looked_up(self, ask: Ask) -> Snapshot | None:
        """The job of our token; a new one may take a moment to be listed. None also where none could be asked."""
        patience, wait_s = self._patience(), self.options.first_s
        seen_none = 0
        while seen_none < FIND_TRIES:
            try:
                found = await self.provider.find(ask)
            except CallError as error:
                if error.meaning.stops_run:
                    raise
                try:
                    await patience.bear(error)
                except CallError:
                    return None
                continue
            if found is not None:
                return found
            seen_none += 1
            await self.services.clock.sleep(wait_s)
            wait_s *= 2
        return None

    async def _seen(self, ask: Ask) -> Snapshot | None:
        """One look for the job of our token; None where there is none or nobody can be asked."""
        try:
            found = await self.provider.find(ask)
        except CallError:
            return None
        return found if found is not None and found.handle is not None else None

    # the middle

    async def _wait(self, ask: Ask, record: JobRecord, snapshot: Snapshot) -> tuple[Snapshot, bool]:
        """The job's last snapshot, and whether the deadline ended it."""
        assert record.row is not None, "a job that was never sent"
        options, clock = self.options, self.services.clock
        began = record.row.begun
        patience, wait_s = self._patience(), options.first_s
        words: set[str] = set()
        # a job of an earlier start may be over: it is asked at once, and before its deadline is held against it
        asked = rest = bool(snapshot.body)
        while snapshot.state not in TERMINAL:
            left_s = began + options.deadline_s - clock.now()
            if left_s <= 0 and asked:
                return await self._late(ask, record, snapshot), True
            if rest and not snapshot.paid_next:
                await clock.sleep(min(max(wait_s, snapshot.retry_after_s or 0.0), max(left_s, 0.0)))
                wait_s = min(wait_s * GROWTH, options.longest_s)
            asked = rest = True
            try:
                snapshot = await self._step(ask, record, snapshot)
                patience.calm()
            except CallError as error:
                try:
                    await patience.bear(error)
                    rest = False
                except CallError:
                    snapshot = self._given_up(error)
                continue
            record.keep(snapshot.handle or record.handle or {}, paid_next=snapshot.paid_next)
            if snapshot.word not in words:
                words.add(snapshot.word)
                self.services.log.info("job", task=ask.task.id, attempt=ask.attempt, state=snapshot.word)
        return snapshot, False

    async def _step(self, ask: Ask, record: JobRecord, snapshot: Snapshot) -> Snapshot:
        assert record.handle is not None, f"{self.options.name}: a job that goes on needs a handle"
        if not snapshot.paid_next:
            return await self.provider.advance(ask, record.handle)
        record.paying()
        try:
            found = await self.provider.advance(ask, record.handle)
        except CallError as error:
            if error.meaning.billed != "no":
                raise CallError(
                    "maybe_billed", f"{error.message}; a continuation was sent and not answered"
                ) from error
            record.refused()
            raise
        return found

    def _given_up(self, error: CallError) -> Snapshot:
        """What becomes of a job that can't be asked about any more: the provider's word, or ours."""
        if error.kind == "not_found":
            return Snapshot(
                "failed", word="not_found", said=f"{error.message}: the provider no longer has the job"
            )
        if error.meaning.stops_run or error.kind in ("maybe_billed", "crash"):
            raise error
        raise _told(error, "unreachable", cost_usd=0.0) from error

    async def _answer(self, ask: Ask, last: Snapshot) -> Answer:
        try:
            return await self.provider.answer(ask, last)
        except CallError as error:
            if error.meaning.stops_run:
                raise
            raise _told(error, "unreachable", cost_usd=0.0) from error

    # the end that nobody wants

    async def _late(self, ask: Ask, record: JobRecord, snapshot: Snapshot) -> Snapshot:
        """After the deadline: cancel, then look once more, since the job may have ended meanwhile."""
        assert record.handle is not None, "a job that goes on needs a handle"
        if self.provider.can_cancel:
            try:
                await self.provider.cancel(record.handle)
            except CallError as error:
                self.services.log.warning("not cancelled", kind=error.kind, message=error.message)
        if snapshot.paid_next:
            return snapshot
        try:
            return await self.provider.advance(ask, record.handle)
        except CallError as error:
            self.services.log.warning("not asked", kind=error.kind, message=error.message)
            return snapshot

    async def _interrupted(self, record: JobRecord) -> None:
        """Cancel what runs, where the provider can; a job that goes on is collected by the next start."""
        if record.row is None:
            return
        if record.handle is None:
            if self.provider.closing_cancels:
                record.forget()
            return
        if self.provider.closing_cancels and record.row.step == "paying":
            record.refused()  # the continuation ended with its connection: the next start sends it again
        if not (self.provider.can_cancel and self.options.cancel_on_interrupt):
            return
        if record.row.step == "paid":
            return  # a pause: nothing runs, and to look at it would be to continue it
        if record.row.step != "paying":  # what became of a continuation can't be seen for nothing
            # what becomes of it is seen by the next start: it may be over already, and then it is paid for
            record.cancelling()
        try:
            async with asyncio.timeout(self.options.cancel_s):
                await self.provider.cancel(record.handle)
        except (CallError, TimeoutError) as error:
            self.services.log.warning("not cancelled", message=str(error))

    # help

    def _patience(self) -> Patience:
        return Patience(self.provider, self.options, self.services)

    def _ask(self, task: Task, attempt: int, token: str, record: JobRecord) -> Ask:
        return Ask(task, attempt, token, record.keep, self._patiently)

    async def _patiently(self, make: Callable[[], Awaitable[Any]]) -> Any:
        """Make a free request until it is answered, or is not worth waiting for. Raises the last CallError."""
        patience = self._patience()
        while True:
            try:
                return await make()
            except CallError as error:
                await patience.bear(error)


def _told(error: CallError, kind: str, *, cost_usd: float | None = None) -> CallError:
    """The same failure under a kind that says what it means for the job."""
    return CallError(
        kind,
        f"{error.message}; {CallError(kind).message}",
        request_id=error.request_id,
        raw=error.raw,
        cost_usd=cost_usd,
        http_status=error.http_status,
    )
