"""The one layer of retries.

A call takes a slot, is made, tells the limiter how it went, gives the slot back and only then waits.
Whether it is made again is the error table's word (core/errors.py), for a judge or for a system's job;
how long it waits is the server's, or an exponential back-off. Nothing below this layer retries.
"""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, TypeVar

from tenacity import AsyncRetrying, RetryCallState

from core.errors import CallError, StopRun

if TYPE_CHECKING:
    from core.clock import Clock
    from core.limiter import Limiter

T = TypeVar("T")

#: Seconds of the first back-off; each further one doubles.
FIRST_WAIT_S: Final = 0.5
#: An answer that can't be used is asked for again at once: nobody asked us to slow down.
AT_ONCE: Final = frozenset({"empty", "malformed", "truncated"})
#: A limit on output that was reached twice will be reached again.
MAX_TRUNCATED: Final = 2


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How often, how long, and by which column of the error table.

    `attempts` counts the first one. `max_wait_s` bounds each single wait: a server that asks for more is
    asked again after `max_wait_s`, until the attempts run out (hints are often longer than the limit they
    speak of).
    """

    attempts: int = 6
    max_wait_s: float = 60.0
    role: Literal["judge", "system"] = "judge"


class _Progress:
    """What one call has been through: the retry and wait rules of tenacity, which keeps no such state."""

    def __init__(self, policy: RetryPolicy, rng: random.Random) -> None:
        self.policy, self.rng = policy, rng
        self.attempt = 0
        self.backoffs = 0
        self.truncated = 0

    def again(self, state: RetryCallState) -> bool:
        """May the call be made again?"""
        error = _error(state)
        if error is None:
            return False
        if error.kind == "truncated":
            self.truncated += 1
            if self.truncated >= MAX_TRUNCATED:
                return False
        meaning = error.meaning
        return meaning.retry_judge if self.policy.role == "judge" else meaning.retry_system

    def wait_s(self, state: RetryCallState) -> float:
        """Seconds until it is."""
        error = _error(state)
        if error is None or error.kind in AT_ONCE:
            return 0.0
        backoff = FIRST_WAIT_S * 2.0 ** min(self.backoffs, 30)
        self.backoffs += 1
        hint = error.retry_after_s or 0.0
        # jitter also on a hint: calls that were refused together should not come back together
        wait = max(hint, backoff * self.rng.uniform(0.5, 1.0)) + self.rng.uniform(0.0, 0.1) * min(hint, 10.0)
        return min(wait, self.policy.max_wait_s)

    def exhausted(self, state: RetryCallState) -> bool:
        return state.attempt_number >= self.policy.attempts


async def call(
    make: Callable[[int], Awaitable[T]],
    *,
    policy: RetryPolicy,
    limiter: Limiter,
    clock: Clock,
    rng: random.Random,
    on_failure: Callable[[CallError, int], None] | None = None,
    ahead: bool = False,
) -> T:
    """Make a call until it is answered, may not be made again, or its attempts are used up.

    `make` gets the attempt's number, from 1. `on_failure` hears of every failed attempt, also the last,
    with its number. `ahead` waits for its slot before the others. Raises the last CallError, or StopRun where
    the error table says that no further call makes sense. asyncio.CancelledError passes through; the slot is
    free then.
    """
    progress = _Progress(policy, rng)

    async def attempt() -> T:
        progress.attempt += 1
        ticket = await limiter.acquire(ahead=ahead)
        try:
            result = await make(progress.attempt)
        except CallError as error:
            _tell(limiter, error, ticket, policy.max_wait_s)
            if on_failure is not None:
                on_failure(error, progress.attempt)
            if error.meaning.stops_run:
                raise StopRun(error.kind, error.failure().message) from error
            raise
        else:
            limiter.succeeded()
            return result
        finally:
            limiter.release()

    # one object a call: it holds the state of the attempt that is under way
    retrying = AsyncRetrying(
        sleep=clock.sleep,
        retry=progress.again,
        wait=progress.wait_s,
        stop=progress.exhausted,
        reraise=True,
    )
    return await retrying(attempt)


def _tell(limiter: Limiter, error: CallError, ticket: int, max_wait_s: float) -> None:
    """What a failed call says about the account's limit."""
    if error.meaning.refusal:
        hint = error.retry_after_s
        limiter.refused(None if hint is None else min(hint, max_wait_s), ticket, crowded=error.crowded)
    elif error.meaning.billed == "yes":
        limiter.succeeded()  # it was answered; what the answer is worth is not the account's affair


def _error(state: RetryCallState) -> CallError | None:
    error = state.outcome.exception() if state.outcome is not None else None
    return error if isinstance(error, CallError) else None
