"""A clock that jumps: simulated hours pass as soon as nobody has anything else to do."""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Coroutine
from itertools import count
from typing import Any, TypeVar

T = TypeVar("T")


class SimClock:
    """Implements core.clock.Clock. `slept` lists the lengths that were asked for."""

    def __init__(self, start: float = 1_800_000_000.0) -> None:
        self.start = start
        self.elapsed = 0.0
        self.slept: list[float] = []
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []
        self._order = count()

    def now(self) -> float:
        return self.start + self.elapsed

    def monotonic(self) -> float:
        return self.elapsed

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        if seconds <= 0:
            await asyncio.sleep(0)
            return
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._sleepers, (self.elapsed + seconds, next(self._order), future))
        await future

    async def settle(self) -> None:
        """Let everybody run who can without time passing."""
        ready = asyncio.get_running_loop()._ready  # type: ignore[attr-defined]  # the only place that knows who is idle
        await asyncio.sleep(0)
        while ready:  # noqa: ASYNC110  # idleness is no event that anybody could set
            await asyncio.sleep(0)

    async def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run to the end, jumping to the next sleeper's time whenever all are idle."""
        task = asyncio.ensure_future(work)
        while not task.done():
            await self.settle()
            if task.done():
                break
            while self._sleepers and self._sleepers[0][2].done():
                heapq.heappop(self._sleepers)
            if not self._sleepers:
                raise AssertionError("everybody waits and nobody sleeps: a deadlock")
            at, _, future = heapq.heappop(self._sleepers)
            self.elapsed = max(self.elapsed, at)
            future.set_result(None)
        return await task
