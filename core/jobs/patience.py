"""How long to go on asking a provider that only fails to answer: asking about a job costs nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from core.errors import CallError
from core.jobs.options import JobOptions
from core.jobs.provider import Provider

if TYPE_CHECKING:
    from core.services import Services

#: Failures of the network or of a provider that is down: waited out for `outage_s`.
OUTAGE: Final = frozenset(
    {
        *("connect", "name", "tls", "timeout", "hung_up", "cut"),
        *("rate_limit", "overloaded", "server", "gateway_timeout"),
    }
)
#: Growth of the time between two polls.
GROWTH: Final = 1.3


class Patience:
    """One series of failures: how long it has gone on, and whether to go on asking."""

    def __init__(self, provider: Provider, options: JobOptions, services: Services) -> None:
        self._provider, self._options, self._services = provider, options, services
        self._since: float | None = None
        self._wait_s = options.first_s

    def calm(self) -> None:
        """An answer that makes sense ends the series."""
        self._since, self._wait_s = None, self._options.first_s

    async def bear(self, error: CallError) -> None:
        """Wait before asking again; raises the error where it is not one to wait out, or no longer."""
        clock = self._services.clock
        now = clock.monotonic()
        self._since = now if self._since is None else self._since
        left_s = self._since + self._limit_s(error) - now
        if left_s <= 0:
            raise error
        self._services.log.warning("asked again", kind=error.kind, message=error.message)
        # what a provider asks for is heeded, up to what is left
        await clock.sleep(min(max(self._wait_s, error.retry_after_s or 0.0), left_s))
        self._wait_s = min(self._wait_s * GROWTH, self._options.longest_s)

    def _limit_s(self, error: CallError) -> float:
        """Seconds for which this failure is waited out; 0: not at all."""
        if error.kind in OUTAGE:
            return self._options.outage_s
        odd = error.kind in self._provider.unwell or error.http_status in self._provider.unwell_statuses
        return self._options.grace_s if odd else 0.0
