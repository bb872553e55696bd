"""Long jobs: what every research API has in common, so that an adapter reads as its API.

    JobSystem.solve ─▶ Driver ─▶ intent stored ─▶ Provider.create ─▶ handle stored ─▶ Provider.advance… ─▶ answer
                                                                          └ deadline, interrupt: Provider.cancel

An adapter is a `Provider` (core/jobs/provider.py): how a job is created, asked about, cancelled and read. The
driver owns its life: what is stored before money is spent, how a restart goes on with the same job, which failures
are waited out, the deadline, and what becomes of it at an interrupt. docs/systems.md says what users see of it.
"""

from core.jobs.account import account_fault
from core.jobs.api import Api
from core.jobs.options import JobOptions
from core.jobs.provider import TERMINAL, Answer, Ask, Paid, Provider, Snapshot, State, state_of
from core.jobs.system import JobSystem

__all__ = [
    "TERMINAL",
    "Answer",
    "Api",
    "Ask",
    "JobOptions",
    "JobSystem",
    "Paid",
    "Provider",
    "Snapshot",
    "State",
    "account_fault",
    "state_of",
]
