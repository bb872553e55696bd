"""The run's one brake: a wrong key, an empty account, a spent budget or Ctrl-C pulls it once.

After that nothing new is started; what is in flight ends by itself and is kept.
"""

from __future__ import annotations

import asyncio

from core.clock import Clock
from core.errors import StopRun
from core.model import Failure


class Stop:
    """Not pulled until `pull` is called; only the first reason counts."""

    def __init__(self) -> None:
        self.reason: StopRun | None = None
        self._event = asyncio.Event()

    def pull(self, reason: StopRun) -> None:
        if self.reason is None:
            self.reason = reason
            self._event.set()

    @property
    def pulled(self) -> bool:
        return self.reason is not None

    def check(self) -> None:
        """Raise the reason once the brake is pulled."""
        if self.reason is not None:
            raise StopRun(self.reason.kind, self.reason.message)

    def failure(self) -> Failure:
        """The reason as a field of a row."""
        assert self.reason is not None
        return Failure(kind=self.reason.kind, message=self.reason.message)

    async def wait(self) -> None:
        await self._event.wait()


class StoppableClock:
    """A clock whose sleep ends when the brake is pulled: nobody waits to try what won't be tried."""

    def __init__(self, clock: Clock, stop: Stop) -> None:
        self._clock, self._stop = clock, stop

    def now(self) -> float:
        return self._clock.now()

    def monotonic(self) -> float:
        return self._clock.monotonic()

    async def sleep(self, seconds: float) -> None:
        """Sleep, or raise the reason as soon as the brake is pulled."""
        self._stop.check()
        sleeping = asyncio.ensure_future(self._clock.sleep(seconds))
        stopping = asyncio.ensure_future(self._stop.wait())
        try:
            await asyncio.wait((sleeping, stopping), return_when=asyncio.FIRST_COMPLETED)
        finally:
            sleeping.cancel()
            stopping.cancel()
        self._stop.check()
