"""Telling a page that is gone from a network that is.

Without a way out, the name service says "no such name" for every name. So a name that does not exist, or a
refused connection, counts against a page only while a control host can be reached, asked after that failure:

    failed ─▶ a control answers ─▶ the page's own fault
           └▶ none does ─▶ wait until one does and fetch again
                        └▶ none came back: an error of ours; the fifth in a row ends the run

Controls are asked at the start too. A network that never was there is not waited for as long as one that broke.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Final

from core.clock import Clock

#: Names that have stood for decades or are a resolver's own: when none resolves, it is not their fault.
DEFAULT_HOSTS: Final = ("one.one.one.one", "dns.google", "www.iana.org")
#: So many failures in a row that a control does not vouch for say that there is no network.
IN_A_ROW: Final = 5
#: Seconds that a control may take.
_PATIENCE_S: Final = 10.0
#: Seconds to wait for a network that nobody has seen yet.
_NEVER_SEEN_S: Final = 7.0
_LONGEST_STEP_S: Final = 30.0

#: Reaches a control host; raises OSError.
Probe = Callable[[str], Awaitable[object]]


class Control:
    """What is known of our own network. Without hosts it is taken to work."""

    def __init__(self, clock: Clock, hosts: Sequence[str], probe: Probe, *, wait_s: float) -> None:
        self._clock, self._hosts, self._probe, self._wait_s = clock, tuple(hosts), probe, wait_s
        self._patience_s = min(_NEVER_SEEN_S, wait_s)
        self._asked = 0
        self._covered = 0
        self._alive = True
        self._in_a_row = 0
        self._lock = asyncio.Lock()
        self._waiting: asyncio.Task[bool] | None = None

    @property
    def offline(self) -> bool:
        """Whether enough failures in a row say that there is no network."""
        return self._in_a_row >= IN_A_ROW

    @property
    def alive(self) -> bool:
        """What the controls said last."""
        return self._alive

    async def start(self) -> None:
        """Ask the controls once, before anything is fetched."""
        await self._check()

    def answered(self) -> None:
        """A server answered."""
        self._in_a_row = 0

    async def vouches(self) -> bool:
        """Whether a control can be reached now, after a fetch failed as it does without a network."""
        if await self._check():
            self._in_a_row = 0
            return True
        self._in_a_row += 1
        return False

    async def comes_back(self) -> bool:
        """Wait for a control; False when none came back in time. All who ask wait together."""
        if self._waiting is None:
            self._waiting = asyncio.create_task(self._wait())
            self._waiting.add_done_callback(self._stop_waiting)
        return await asyncio.shield(self._waiting)

    async def aclose(self) -> None:
        """Wait no longer."""
        if self._waiting is not None:
            self._waiting.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._waiting

    def _stop_waiting(self, task: asyncio.Task[bool]) -> None:
        self._waiting = None
        if not task.cancelled():
            task.exception()  # those who wait have it; without them nobody would have looked

    async def _wait(self) -> bool:
        for seconds in _steps(self._patience_s):
            await self._clock.sleep(seconds)
            if await self._check():
                self._in_a_row = 0
                return True
        self._patience_s = 0.0  # until a control answers, nobody waits again
        return False

    async def _check(self) -> bool:
        """Ask the controls, unless somebody's question that began after this call has its answer."""
        self._asked += 1
        mine = self._asked
        async with self._lock:
            if self._covered < mine:
                self._covered = self._asked
                self._alive = await self._any_answers()
                if self._alive:
                    self._patience_s = self._wait_s
            return self._alive

    async def _any_answers(self) -> bool:
        if not self._hosts:
            return True
        probes = [asyncio.ensure_future(self._probe(host)) for host in self._hosts]
        try:
            async with asyncio.timeout(_PATIENCE_S):
                for probe in asyncio.as_completed(probes):
                    with contextlib.suppress(OSError):
                        await probe
                        return True
        except TimeoutError:
            pass
        finally:
            for probe in probes:
                probe.cancel()
            await asyncio.gather(*probes, return_exceptions=True)
        return False


def _steps(total_s: float) -> Iterator[float]:
    """Waits that double up to half a minute and add up to `total_s`."""
    step, left = 1.0, total_s
    while left > 0:
        wait = min(step, left)
        yield wait
        left -= wait
        step = min(2 * step, _LONGEST_STEP_S)
