"""How many calls an account may have in flight: found by trying, lowered by refusals.

One limiter serves one provider account. Its limit starts small and grows by one for each success (so it
doubles in the time of one call) until `max_in_flight` or the first refusal. A refusal cuts it once: calls
that were already under way then may be refused too, and that says nothing new. After a cut it grows by
one for each window of `limit` successes, and slower still where the server refused before. A pause that
the server asked for holds back the whole account. Nothing scans: every step costs the same with ten or
ten thousand waiting.

Jobs that last minutes tell less: an account that is asked too fast is not one that runs too much. With `long_jobs`
a refusal only pauses the starts; one that says that too much runs at once holds the limit at what was running.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from core.clock import Clock

START: Final = 8
#: What a cut leaves. The first one halves: a limit that doubled each round may stand at twice the ceiling.
FIRST_CUT: Final = 0.5
LATER_CUT: Final = 0.8
#: Seconds without a start after a refused job that came without a hint.
PAUSE_S: Final = 1.0
#: At the height of an earlier refusal one more is tried only once in so many windows; twice as many each
#: time the same height is refused again.
PATIENCE: Final = 4
MOST_PATIENCE: Final = 32


class Limiter:
    """The limit of one account. Waiters start in the order in which they came, but for those `ahead`.

    `limit` is what is allowed now, `in_flight` what is out, `peak` the most that was out at once.
    """

    def __init__(
        self,
        clock: Clock,
        *,
        max_in_flight: int,
        requests_per_minute: int | None = None,
        long_jobs: bool = False,
    ) -> None:
        self._clock = clock
        self._long_jobs = long_jobs
        self._max = 0
        self._interval = 0.0
        self._limit = START
        self.in_flight = 0
        self.peak = 0
        self._waiters: deque[asyncio.Future[int]] = deque()
        self._n_waiting = 0
        self._cuts = 0
        self._ceiling: int | None = None
        self._patience = PATIENCE
        self._successes = 0
        self._not_before = 0.0
        self._next_start = 0.0
        self._timer: asyncio.Task[None] | None = None
        self.share(max_in_flight, requests_per_minute)

    @property
    def limit(self) -> int:
        return self._limit

    @property
    def max_in_flight(self) -> int:
        return self._max

    def share(self, max_in_flight: int, requests_per_minute: int | None) -> None:
        """Serve one more user of the account: the widest bound and the slowest pace hold.

        A user that wants less than the account allows keeps to its own number of workers.
        """
        if max_in_flight < 1:
            raise ValueError(f"max_in_flight is at least 1, got {max_in_flight}")
        if requests_per_minute is not None and requests_per_minute < 1:
            raise ValueError(f"requests_per_minute is at least 1, got {requests_per_minute}")
        self._max = max(self._max, max_in_flight)
        self._limit = min(START, self._max) if self._cuts == 0 and self.in_flight == 0 else self._limit
        if requests_per_minute is not None:
            self._interval = max(self._interval, 60.0 / requests_per_minute)

    async def acquire(self, *, ahead: bool = False) -> int:
        """Wait for a slot. Gives its ticket, for `refused`: how many cuts there were at its start.

        `ahead` waits before the others instead of behind them: for the call that others wait for.
        """
        if self._n_waiting == 0 and self._wait_s() == 0:
            return self._start()
        future: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        if ahead:
            self._waiters.appendleft(future)
        else:
            self._waiters.append(future)
        self._n_waiting += 1
        self._wake()
        try:
            return await future
        except asyncio.CancelledError:
            if future.done() and not future.cancelled():
                self.release()  # the slot was given in the same turn in which the waiter was cancelled
            else:
                self._n_waiting -= 1
                self._wake()
            raise

    def release(self) -> None:
        """Give the slot back."""
        self.in_flight -= 1
        self._wake()

    @asynccontextmanager
    async def slot(self) -> AsyncIterator[int]:
        """A slot for the length of a block; gives its ticket."""
        ticket = await self.acquire()
        try:
            yield ticket
        finally:
            self.release()

    def succeeded(self) -> None:
        """A call was answered (whatever the answer is worth): grow, if the limit was what held calls back."""
        if self._limit >= self._max or self.in_flight < self._limit:
            return
        if self._cuts == 0:
            self._limit += 1
            self._wake()
            return
        self._successes += 1
        at_ceiling = self._ceiling is not None and self._limit >= self._ceiling
        if self._successes >= self._limit * (self._patience if at_ceiling else 1):
            self._successes = 0
            self._limit += 1
            if self._ceiling is not None and self._limit > self._ceiling + 2:
                self._ceiling, self._patience = None, PATIENCE  # the server takes more than it did
            self._wake()

    def refused(
        self, retry_after_s: float | None = None, ticket: int | None = None, *, crowded: bool = False
    ) -> None:
        """The server asked to slow down: cut once, and pause the account for `retry_after_s`.

        `ticket` is what `acquire` gave the refused call; one that started before the last cut does not
        cut again. `crowded`: the server says that too much runs at once.
        """
        if self._long_jobs and retry_after_s is None:
            retry_after_s = PAUSE_S
        if retry_after_s is not None and retry_after_s > 0:
            self._not_before = max(self._not_before, self._clock.monotonic() + retry_after_s)
        if (ticket is not None and ticket < self._cuts) or (self._long_jobs and not crowded):
            return
        # what was really out is the better measure than a limit that was not used up
        reached = min(self._limit, max(self.in_flight, 1))
        same_height = self._ceiling is not None and abs(reached - 1 - self._ceiling) <= 1
        self._patience = min(MOST_PATIENCE, 2 * self._patience) if same_height else PATIENCE
        self._ceiling = max(1, reached - 1)
        left = reached - 1 if self._long_jobs else int(reached * (FIRST_CUT if self._cuts == 0 else LATER_CUT))
        self._limit = max(1, left)
        self._cuts += 1
        self._successes = 0

    def _start(self) -> int:
        self.in_flight += 1
        self.peak = max(self.peak, self.in_flight)
        if self._interval:
            self._next_start = max(self._next_start, self._clock.monotonic()) + self._interval
        return self._cuts

    def _wait_s(self) -> float | None:
        """Seconds until time allows the next start; None while no slot is free."""
        if self.in_flight >= self._limit:
            return None
        earliest = max(self._not_before, self._next_start)
        return max(0.0, earliest - self._clock.monotonic()) if earliest else 0.0

    def _wake(self) -> None:
        """Start whoever may start; set the timer when only time stands in the way."""
        while self._n_waiting and self._waiters:
            wait = self._wait_s()
            if wait is None:
                return
            if wait > 0:
                if self._timer is None:
                    self._timer = asyncio.get_running_loop().create_task(self._wake_after(wait))
                return
            future = self._waiters.popleft()
            if not future.done():  # a cancelled waiter is only skipped; it counts itself out when it runs
                self._n_waiting -= 1
                future.set_result(self._start())
        self._waiters.clear()
        if self._timer is not None:  # nobody waits for it
            self._timer.cancel()
            self._timer = None

    async def _wake_after(self, seconds: float) -> None:
        await self._clock.sleep(seconds)
        self._timer = None
        self._wake()


class Limiters:
    """The limiters of a run, one an account."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._by_account: dict[str, Limiter] = {}

    def get(
        self,
        account: str,
        *,
        max_in_flight: int,
        requests_per_minute: int | None = None,
        long_jobs: bool = False,
    ) -> Limiter:
        """The limiter of an account. Users of one account share it."""
        found = self._by_account.get(account)
        if found is None:
            found = Limiter(
                self._clock,
                max_in_flight=max_in_flight,
                requests_per_minute=requests_per_minute,
                long_jobs=long_jobs,
            )
            self._by_account[account] = found
        else:
            found.share(max_in_flight, requests_per_minute)
        return found

    def find(self, account: str) -> Limiter | None:
        """The limiter of an account that somebody uses already."""
        return self._by_account.get(account)
