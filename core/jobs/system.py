"""A provider as a system (core.parts.System): what the engine reads of it before a run, and `solve`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import date
from typing import TYPE_CHECKING, Any

from core.digest import plain
from core.jobs.api import Api
from core.jobs.driver import Driver
from core.jobs.ledger import Jobs
from core.jobs.options import JobOptions
from core.jobs.provider import Provider
from core.model import Submission, Task

if TYPE_CHECKING:
    from core.services import Services


class JobSystem:
    """A research API under test.

    `wire_version` is raised when what the adapter sends or reads changes. `estimate_usd` is what one attempt is
    expected to cost; `warn` gives what every report should say of this system (a model that retires, a deadline
    that is short). The job's own settings (`provider.settings`) and the effort word make up `settings`.
    """

    stored = True
    long_jobs = True

    def __init__(
        self,
        provider: Provider,
        api: Api,
        options: JobOptions,
        services: Services,
        *,
        wire_version: str = "1",
        warn: Callable[[date], Sequence[str]] | None = None,
    ) -> None:
        self.provider, self.options = provider, options
        self.wire_version = wire_version
        self.can_block = provider.can_block
        self.account = api.account
        self.estimate_usd = options.estimate_usd
        self.settings: Mapping[str, Any] = {**plain(provider.settings), "base_url": api.base_url}
        self._api, self._services, self._warn = api, services, warn
        jobs = services.jobs if services.jobs is not None else Jobs(services.clock)
        self._driver = Driver(provider, options, services, jobs, self.account)

    def check(self) -> list[str]:
        """What is missing before a run can start."""
        return self._api.missing()

    def warnings(self, today: date) -> list[str]:
        """What every report should say of this system."""
        return list(self._warn(today)) if self._warn is not None else []

    async def solve(self, task: Task, attempt: int) -> Submission:
        """One attempt: a job of its own, or the one that an earlier start has left. Raises CallError."""
        submission = await self._driver.run(task, attempt)
        return submission.model_copy(
            update={
                "system": self.options.name,
                "effort": self._services.effort,
                "settings": {**self.settings, **submission.settings},
            }
        )

    async def aclose(self) -> None:
        """Close what downloads have opened."""
        await self._api.aclose()
