"""One attempt of a system at one task: from the store, or solved, paid and stored.

What a provider said is kept, also a refusal or a failure of its own; errors of ours are asked again by the
next run. The system is shown the task without its rubric.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from core.budget import Budget
from core.calls import RetryPolicy, call
from core.clock import Clock
from core.digest import combine, json_digest, plain
from core.errors import CallError, StopRun, cost_of, meaning
from core.jobs.ledger import Jobs
from core.limiter import Limiter
from core.model import BY_RULE, Failure, Submission, Task
from core.parts import System
from core.secrets import Keys
from core.stop import Stop
from core.store import Call, Store

_LEASE_POLL_S: Final = 0.5


@dataclass(frozen=True, slots=True)
class Asked:
    """What names a system in keys and rows."""

    name: str
    effort: str | None
    settings: Mapping[str, Any]
    wire_version: str


class Solver:
    """The run's system, with its store, limiter, budget and retries around it."""

    def __init__(
        self,
        system: System,
        *,
        name: str,
        effort: str | None,
        width: int,
        policy: RetryPolicy,
        retry_failed: bool,
        store: Store | None,
        limiter: Limiter,
        budget: Budget,
        clock: Clock,
        rng: random.Random,
        keys: Keys,
        stop: Stop,
        run: str,
        log: Any,
        jobs: Jobs | None = None,
    ) -> None:
        self.width = width
        self._system, self._policy, self._retry_failed = system, policy, retry_failed
        self._opened, self._limiter, self._budget = store, limiter, budget
        self._clock, self._rng, self._keys, self._stop = clock, rng, keys, stop
        self._run, self._log = run, log
        self._jobs = jobs
        self._failed_before: set[str] = set()
        self._busy: dict[str, asyncio.Event] = {}
        self._stored: bool = getattr(system, "stored", True)
        self._asked = Asked(
            name,
            effort,
            plain(getattr(system, "settings", {})),
            getattr(system, "wire_version", "1"),
        )
        self._estimate: float | None = getattr(system, "estimate_usd", None)

    @property
    def retried(self) -> int:
        """How many stored failures were solved again, because the run was told to."""
        return len(self._failed_before)

    @property
    def _store(self) -> Store:
        assert self._opened is not None, "a system whose submissions are kept needs a store"
        return self._opened

    def key(self, task: Task, attempt: int) -> str:
        """The submission's place in the store: what the system is shown, the system, the attempt."""
        shown = {
            "prompt": task.prompt,
            "output_schema": plain(task.output_schema),
            "required_files": list(task.required_files),
            "blocked": list(task.blocked),
        }
        return combine(
            shown=json_digest(shown),
            system=self._asked.name,
            settings=json_digest(self._asked.settings),
            effort=self._asked.effort or "",
            attempt=str(attempt),
            wire=self._asked.wire_version,
        )

    async def solve(self, task: Task, attempt: int) -> tuple[Submission, bool]:
        """The submission, and whether it came from the store. Raises StopRun when nothing may start."""
        if not self._stored:
            return await self._direct(task, attempt), False
        key = self.key(task, attempt)
        kept = self._kept(task, attempt, key)
        if kept is not None:
            return kept, True
        self._stop.check()
        # the lease is this process's: two tasks of it that show a system the same wait for each other here
        while (other := self._busy.get(key)) is not None:
            await other.wait()
        self._busy[key] = done = asyncio.Event()
        try:
            while not self._store.take_lease(key):
                await self._clock.sleep(_LEASE_POLL_S)
            # whoever had the lease may have put the submission between our look and our lease
            if (kept := self._kept(task, attempt, key)) is not None:
                return kept, True
            try:
                return await self._pay(task, attempt, key), False
            except StopRun:
                raise
            except Exception as error:  # noqa: BLE001 -- what can't be kept costs its own attempt, not everybody's
                self._log.error("an attempt could not be kept", task=task.id, attempt=attempt, exc_info=error)
                crash = CallError("crash", f"{type(error).__name__}: {error}")
                return self._own(self._ended(task, attempt, crash), task, attempt), False
        finally:
            self._store.drop_lease(key)
            del self._busy[key]
            done.set()

    def unsolved(self, task: Task, attempt: int, failure: Failure) -> Submission:
        """The row of an attempt that was never started."""
        failure = failure.model_copy(update={"message": self._keys.redact(failure.message)})
        row = Submission(task_id=task.id, attempt=attempt, status="error", error=failure, cost_usd=0.0)
        return self._own(row, task, attempt)

    def _kept(self, task: Task, attempt: int, key: str) -> Submission | None:
        body = self._store.submission(key)
        if body is None:
            return None
        submission = Submission.model_validate(body)
        if self._retry_failed and submission.status in BY_RULE:
            self._failed_before.add(key)
            return None
        # two tasks may show a system the same: the row belongs to the one that asks
        return submission.model_copy(update={"task_id": task.id, "attempt": attempt})

    async def _direct(self, task: Task, attempt: int) -> Submission:
        """A system that is read from a file: its rows stand as they are."""
        try:
            submission = await self._system.solve(task.shown(), attempt)
        except CallError as error:
            submission = self._ended(task, attempt, error)
        return self._own(submission, task, attempt).settled()

    async def _pay(self, task: Task, attempt: int, key: str) -> Submission:
        if self._jobs is None:
            return await self._call_system(task, attempt, key)
        self._jobs.bind(task.id, attempt, key, anew=self._retry_failed)
        try:
            return await self._call_system(task, attempt, key)
        finally:
            self._jobs.release(task.id, attempt)

    async def _call_system(self, task: Task, attempt: int, key: str) -> Submission:
        started = self._clock.monotonic()

        async def make(_: int) -> Submission:
            self._stop.check()
            async with self._budget.reserve("system", self._estimate) as reservation:
                try:
                    submission = await self._system.solve(task.shown(), attempt)
                except CallError as error:
                    reservation.actual = cost_of(error)
                    raise
                except (StopRun, asyncio.CancelledError):
                    raise
                except Exception as error:
                    reservation.actual = 0.0
                    raise CallError("crash", f"{type(error).__name__}: {error}") from error
                reservation.actual = submission.cost_usd
                return submission

        def on_failure(error: CallError, _: int) -> None:
            if error.kind == "crash":
                self._log.error("system failed", task=task.id, attempt=attempt, exc_info=error)
            self._store.put_call(self._call(key, error=error))

        paid: Call | None = None
        try:
            submission = await call(
                make,
                policy=self._policy,
                limiter=self._limiter,
                clock=self._clock,
                rng=self._rng,
                on_failure=on_failure,
            )
            paid = self._call(key, submission=submission)
        except CallError as error:
            submission = self._ended(task, attempt, error)
        submission = self._own(submission, task, attempt).settled()
        if submission.latency_s is None and submission.status != "error":
            submission = submission.model_copy(update={"latency_s": self._clock.monotonic() - started})
        submission = self._without_keys(submission)
        if submission.status != "error":
            self._store.put_submission(
                key,
                submission.model_dump(mode="json"),
                task_id=task.id,
                attempt=attempt,
                system=self._asked.name,
                status=submission.status,
                call=paid,
            )
        return submission

    def _ended(self, task: Task, attempt: int, error: CallError) -> Submission:
        """A call that gave no answer, as the error table has it."""
        failure = error.failure()
        return Submission(
            task_id=task.id,
            attempt=attempt,
            status=meaning(error.kind).status,
            error=failure.model_copy(update={"message": self._keys.redact(failure.message)}),
            cost_usd=cost_of(error),
            usage=error.usage,
        )

    def _own(self, submission: Submission, task: Task, attempt: int) -> Submission:
        """Name the system in the row, unless the row says where it came from."""
        changes: dict[str, Any] = {"task_id": task.id, "attempt": attempt}
        if submission.system is None:
            changes["system"] = self._asked.name
        if submission.effort is None and self._asked.effort is not None:
            changes["effort"] = self._asked.effort
        if not submission.settings:
            changes["settings"] = self._keys.redacted(self._asked.settings)
        if submission.cost_usd is None and submission.cost_source is None and self._stored:
            changes["cost_source"] = "unknown"
        return submission.model_copy(update=changes)

    def _without_keys(self, submission: Submission) -> Submission:
        """A system that repeats its key would have it written: it is taken out."""
        tree = submission.model_dump(mode="json")
        stripped = self._keys.stripped(tree)
        return submission if stripped == tree else Submission.model_validate(stripped)

    def _call(self, key: str, *, submission: Submission | None = None, error: CallError | None = None) -> Call:
        if submission is not None:
            return Call(
                run=self._run,
                role="system",
                key=key,
                at=self._clock.now(),
                usage=submission.usage.model_dump() if submission.usage else None,
                usd=submission.cost_usd,
                source=submission.cost_source,
                latency_s=submission.latency_s,
            )
        assert error is not None
        return Call(
            run=self._run,
            role="system",
            key=key,
            at=self._clock.now(),
            model=error.model,
            usd=cost_of(error),
            error=error.kind,
            message=self._keys.redact(error.message),
        )
