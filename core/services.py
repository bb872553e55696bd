"""The services a part is given: all that it may use of the world."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from core.clock import Clock
    from core.http import Http
    from core.jobs.ledger import Jobs
    from core.judge.question import Answer, Question
    from core.limiter import Limiters
    from core.secrets import Keys


class JudgeDesk(Protocol):
    """Asking the run's judge: stored, limited, retried and paid for by the engine."""

    #: How many questions may be in flight at once; a grader asks no more than this at a time.
    width: int
    #: The name that rows carry.
    name: str
    #: Verdicts are read from a file: nothing is fetched, no name resolved.
    recorded: bool

    async def ask(self, question: Question) -> Answer:
        """The answer; a failed one has `error` set. Raises only StopRun."""


@dataclass(frozen=True, slots=True)
class Services:
    """What `factory(config, services)` gets.

    `judge` is None for every part but the grader. `pages` fetches and reads pages; None where a
    benchmark has none. `keys` reads API keys by the name of their variable and keeps them out of
    logs and files. `effort` is the run's effort word, None when it was not given. `jobs` keeps what runs at a
    provider; None where nothing outlives the process.
    """

    http: Http
    limiter: Limiters
    clock: Clock
    rng: random.Random
    log: Any
    keys: Keys
    judge: JudgeDesk | None = None
    pages: Any = None
    effort: str | None = None
    jobs: Jobs | None = None
