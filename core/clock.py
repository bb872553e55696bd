"""Time as a service, so that simulated hours run in a test without waiting."""

from __future__ import annotations

import asyncio
import time
from typing import Protocol


class Clock(Protocol):
    """What the engine needs of time."""

    def now(self) -> float:
        """Seconds since 1970, UTC: for records and for HTTP dates."""

    def monotonic(self) -> float:
        """Seconds that never go back: for durations and deadlines."""

    async def sleep(self, seconds: float) -> None:
        """Let others run for so many seconds."""


class RealClock:
    """The machine's clock."""

    def now(self) -> float:
        return time.time()

    def monotonic(self) -> float:
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)
