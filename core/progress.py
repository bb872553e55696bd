"""Progress of a run: done/total, in flight, rate, cost, errors, time left.

A live line on a terminal, a plain line every now and then elsewhere.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from types import TracebackType
from typing import Final, Literal, Self

from rich.live import Live
from rich.text import Text

from core.budget import Budget
from core.clock import Clock
from core.engine import Progress
from core.limiter import Limiter
from core.report.console import Console

_LIVE_EVERY_S: Final = 0.25
_PLAIN_EVERY_S: Final = 15.0

Style = Literal["auto", "rich", "plain", "none"]


class Display:
    """Shows a run's progress while it is open."""

    def __init__(
        self, progress: Progress, budget: Budget, judge: Limiter, console: Console, *, style: Style, clock: Clock
    ) -> None:
        self._progress, self._budget, self._judge = progress, budget, judge
        self._console, self._clock = console, clock
        terminal = console.err.is_terminal
        self._style = ("rich" if terminal else "plain") if style == "auto" else style
        self._started = clock.monotonic()
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self._started = self._clock.monotonic()
        if self._style != "none":
            self._task = asyncio.create_task(self._live() if self._style == "rich" else self._plain())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task
            self._console.say(self.line())

    async def _live(self) -> None:
        with Live(Text(self.line()), console=self._console.err, transient=True, auto_refresh=False) as live:
            while True:
                live.update(Text(self.line()), refresh=True)
                await asyncio.sleep(_LIVE_EVERY_S)

    async def _plain(self) -> None:
        while True:
            await asyncio.sleep(_PLAIN_EVERY_S)
            self._console.say(self.line())

    def line(self) -> str:
        """The state of the run in one line."""
        progress = self._progress
        elapsed = self._clock.monotonic() - self._started
        rate = progress.judgements / elapsed if elapsed > 0 else 0.0
        parts = [
            f"solved {progress.solved}/{progress.solves}"
            + (f" ({progress.solving} in flight)" if progress.solving else ""),
            f"graded {progress.graded_tasks}/{progress.tasks} tasks",
            f"judgements {progress.judgements:,}/{progress.judgements_expected:,} ({rate:.1f}/s"
            + (f", {self._judge.in_flight} in flight)" if self._judge.in_flight else ")"),
            f"spent {self._budget.spent():.2f} $",
        ]
        if progress.errors:
            parts.append(
                "errors " + ", ".join(f"{kind} {count}" for kind, count in sorted(progress.errors.items()))
            )
        left = progress.judgements_expected - progress.judgements
        if rate > 0 and left > 0 and progress.graded_tasks < progress.tasks:
            parts.append(f"about {_duration(left / rate)} left")
        parts.append(f"{_duration(elapsed)} elapsed")
        return "; ".join(parts)


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02} min" if hours else f"{minutes} min {rest:02} s" if minutes else f"{rest} s"
