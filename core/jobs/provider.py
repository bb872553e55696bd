"""What an adapter of a long job says: the states of a job, and the provider's side of its life."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final, Literal, get_args

from core.errors import CallError
from core.model import Citation, Task, Usage

State = Literal["queued", "running", "completed", "incomplete", "failed", "refused", "cancelled", "timed_out"]
STATES: Final[frozenset[str]] = frozenset(get_args(State))
#: States that a job does not leave.
TERMINAL: Final[frozenset[str]] = STATES - {"queued", "running"}


def state_of(word: Any, table: Mapping[str, State]) -> State:
    """The state that a provider's word stands for. A word that nobody knows is no end: it is asked about again."""
    return table.get(word, "running") if isinstance(word, str) else "running"


#: What finds a job again after a restart: plain JSON, small, without keys.
Handle = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Ask:
    """One attempt at one task, as a provider is asked.

    `token` is our own name for this job, new for every job that is sent: put it where the API keeps metadata, or
    into the id of the request, so that a lost job can be found. `keep` stores a handle at once: for a stream,
    whose first event names the job long before the last one. `patiently` makes a request again while the provider
    is only unwell: for downloads and whatever else costs nothing.
    """

    task: Task
    attempt: int
    token: str
    keep: Callable[[Handle], None]
    patiently: Callable[[Callable[[], Awaitable[Any]]], Awaitable[Any]]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What a provider says of a job at one moment.

    `word` is its own word for the state, `body` its reply as it came, `said` its reason for an end that is no
    success. `handle` replaces the stored one; None leaves it. `retry_after_s`: when it wants to be asked again.
    `paid_next`: the next step is a request that costs money (a continuation), not a question. `void`: the job is
    over for a reason that is not the system's (an account without credit): it is forgotten, and this is raised.
    """

    state: State
    body: Mapping[str, Any] = field(default_factory=dict)
    word: str = ""
    said: str = ""
    handle: Handle | None = None
    retry_after_s: float | None = None
    paid_next: bool = False
    void: CallError | None = None


@dataclass(frozen=True, slots=True)
class Paid:
    """What a job cost: dollars, where the number comes from, and its parts by name. None is unknown."""

    usd: float | None = None
    source: Literal["reported", "list_price", "computed", "unknown"] = "unknown"
    components: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Answer:
    """What is read out of a job's last snapshot.

    `channel`: how what was asked for should have come. `files`: required name → text. `echoed`: what the server
    said it used (model, effort, tools). `notes`: what was odd, each a short text: a file that could not be had, an
    item of unknown type. `latency_s` only where the provider measures it itself.
    """

    text: str | None = None
    channel: Literal["text", "file", "schema", "fence"] = "text"
    files: Mapping[str, str] = field(default_factory=dict)
    citations: tuple[Citation, ...] = ()
    usage: Usage | None = None
    paid: Paid = field(default_factory=Paid)
    echoed: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    latency_s: float | None = None


class Provider(ABC):
    """The provider's side of a job. An adapter writes `create` and `answer`, and of the rest what its API has.

    Methods raise CallError, as core.jobs.Api does; they neither wait nor retry. `settings` is all that is sent
    beside the task and shapes an answer: it is part of the store's key and stands in every row.
    """

    #: Whether `cancel` stops a job.
    can_cancel: ClassVar[bool] = False
    #: Whether `find` can look up a job by its token.
    can_find: ClassVar[bool] = False
    #: Whether `task.blocked` is passed on.
    can_block: bool = False
    #: Whether closing the connection ends (and stops paying for) a call that has no job of its own.
    closing_cancels: ClassVar[bool] = False
    #: Error kinds that are waited out while a job is asked about, beside 5xx, limits and the network.
    unwell: ClassVar[frozenset[str]] = frozenset({"not_found", "malformed"})
    #: Statuses of answers that are waited out as well, whatever their kind.
    unwell_statuses: ClassVar[frozenset[int]] = frozenset()

    settings: Mapping[str, Any]

    @abstractmethod
    async def create(self, ask: Ask) -> Snapshot:
        """Start the job. A call that is answered at once gives a terminal snapshot and needs no handle."""

    async def advance(self, ask: Ask, handle: Handle) -> Snapshot:  # noqa: ARG002 -- adapters use it
        """Where the job stands: a poll, or the continuation that the last snapshot announced."""
        # an API that answers at once gives no handle, so that nothing is ever asked about
        raise AssertionError(f"{type(self).__name__} gave a handle and has no `advance`")

    async def cancel(self, handle: Handle) -> None:  # noqa: ARG002 -- adapters use it
        """Ask the provider to stop the job. Raises CallError where it is over already."""
        # asked of those alone that say `can_cancel`
        raise AssertionError(f"{type(self).__name__} says can_cancel and has no `cancel`")

    async def find(self, ask: Ask) -> Snapshot | None:  # noqa: ARG002 -- adapters use it
        """The job that was created with this token, if the provider knows one. Its snapshot has a handle."""
        # asked of those alone that say `can_find`
        raise AssertionError(f"{type(self).__name__} says can_find and has no `find`")

    @abstractmethod
    async def answer(self, ask: Ask, last: Snapshot) -> Answer:
        """Read the last snapshot, and download what it points to. Called for whatever state the job ended in."""
