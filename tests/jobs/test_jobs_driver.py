"""The life of a job on a clock that jumps: what is stored when, what is waited out, what ends how."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

import pytest
from fakes.clock import SimClock

from core.errors import CallError
from core.http import Http
from core.jobs import Answer, Ask, JobOptions, Paid, Provider, Snapshot
from core.jobs.driver import Driver
from core.jobs.ledger import Jobs
from core.jobs.provider import Handle
from core.limiter import Limiters
from core.logs import silent_logger
from core.model import Submission, Task
from core.secrets import Keys
from core.services import Services
from core.store import Store

TASK = Task(id="t", prompt="p")
OPTIONS = JobOptions(name="lab", deadline_s=600, first_s=2, longest_s=15, grace_s=60, outage_s=300)

RUNNING = Snapshot("running", {"status": "running"}, "running", handle={"id": "j1"})
DONE = Snapshot("completed", {"status": "completed", "text": "An answer."}, "completed", handle={"id": "j1"})


@dataclass
class Lab(Provider):
    """Plays a list of answers for each verb; the last one repeats. An exception in a list is raised."""

    creates: list[Any] = field(default_factory=lambda: [RUNNING])
    polls: list[Any] = field(default_factory=lambda: [DONE])
    finds: list[Any] = field(default_factory=lambda: [None])
    cancels: list[Any] = field(default_factory=lambda: [None])
    files: dict[str, str] = field(default_factory=dict)
    channel: Any = "text"
    settings: Any = field(default_factory=dict)
    sent: list[str] = field(default_factory=list)
    tokens: list[str] = field(default_factory=list)
    on: Callable[[str], None] = lambda verb: None

    can_cancel: ClassVar[bool] = True
    can_find: ClassVar[bool] = True

    def _play(self, verb: str, answers: list[Any]) -> Any:
        self.sent.append(verb)
        self.on(verb)
        found = answers[min(self.sent.count(verb), len(answers)) - 1]
        if isinstance(found, BaseException):
            raise found
        return found

    async def create(self, ask: Ask) -> Snapshot:
        self.tokens.append(ask.token)
        found: Snapshot = self._play("create", self.creates)
        return found

    async def advance(self, ask: Ask, handle: Handle) -> Snapshot:
        found: Snapshot = self._play("poll", self.polls)
        return found

    async def find(self, ask: Ask) -> Snapshot | None:
        found: Snapshot | None = self._play("find", self.finds)
        return found

    async def cancel(self, handle: Handle) -> None:
        self._play("cancel", self.cancels)

    async def answer(self, ask: Ask, last: Snapshot) -> Answer:
        return Answer(
            text=last.body.get("text"), files=self.files, channel=self.channel, paid=Paid(0.5, "reported")
        )


class Blind(Lab):
    """A provider that can neither cancel nor look up."""

    can_cancel: ClassVar[bool] = False
    can_find: ClassVar[bool] = False


class Desk:
    """A driver with its clock and store."""

    def __init__(self, folder: Path, provider: Provider, options: JobOptions = OPTIONS) -> None:
        self.clock = SimClock()
        self.store = Store(folder / "store.sqlite")
        jobs = Jobs(self.clock)
        jobs.open(self.store)
        jobs.bind(TASK.id, 1, "key")
        services = Services(
            http=Http(self.clock),
            limiter=Limiters(self.clock),
            clock=self.clock,
            rng=None,  # type: ignore[arg-type]  # not used here
            log=silent_logger(),
            keys=Keys({}),
            jobs=jobs,
        )
        self.driver = Driver(provider, options, services, jobs, "lab")

    def run(self, task: Task = TASK) -> Submission:
        return asyncio.run(self.clock.run(self.driver.run(task, 1)))

    def failure(self) -> CallError:
        with pytest.raises(CallError) as caught:
            self.run()
        return caught.value


def error(kind: str, **more: Any) -> CallError:
    return CallError(kind, f"lab: {kind}", **more)


def test_the_intent_is_stored_before_the_create_and_the_id_before_the_first_poll(tmp_path: Path) -> None:
    seen: list[tuple[str, bool, Any]] = []
    lab = Lab(polls=[RUNNING, DONE])
    desk = Desk(tmp_path, lab)

    def look(verb: str) -> None:
        row = desk.store.job("key")
        seen.append((verb, row is not None, row.handle if row else None))

    lab.on = look
    assert desk.run().status == "completed"
    assert seen == [("create", True, None), ("poll", True, {"id": "j1"}), ("poll", True, {"id": "j1"})]
    assert lab.tokens[0], "the create carries our own name for the job"


@pytest.mark.parametrize(
    "kind", ["connect", "name", "rate_limit", "overloaded", "server", "key", "quota", "bad_request"]
)
def test_a_create_that_started_nothing_leaves_nothing_behind(tmp_path: Path, kind: str) -> None:
    desk = Desk(tmp_path, Lab(creates=[error(kind)]))
    assert desk.failure().kind == kind
    assert desk.store.job("key") is None


@pytest.mark.parametrize("kind", ["timeout", "hung_up", "cut", "malformed", "gateway_timeout"])
@pytest.mark.parametrize(
    ("lab", "status", "verbs"),
    [
        (Lab(finds=[None, RUNNING]), "completed", ["create", "find", "find", "poll"]),
        (Lab(finds=[error("server"), RUNNING]), "completed", ["create", "find", "find", "poll"]),
        (Lab(finds=[None]), "maybe_billed", ["create"] + ["find"] * 4),
        (Lab(finds=[*[error("server")] * 6, RUNNING]), "completed", ["create"] + ["find"] * 7 + ["poll"]),
        (Lab(finds=[error("bad_request")]), "maybe_billed", ["create", "find"]),
        (Blind(), "maybe_billed", ["create"]),
    ],
    ids=["found", "found after an error", "not found", "found after an outage", "can't be asked", "can't look"],
)
def test_a_create_without_an_answer_is_looked_up_and_never_sent_again(
    tmp_path: Path, kind: str, lab: Lab, status: str, verbs: list[str]
) -> None:
    lab = replace(lab, creates=[error(kind)], sent=[], tokens=[])
    desk = Desk(tmp_path, lab)
    if status == "maybe_billed":
        failed = desk.failure()
        assert failed.kind == "maybe_billed"
        assert failed.cost_usd is None, "unknown, not free"
        again = Desk(tmp_path, replace(lab, sent=[]))
        failed = again.failure()
        assert (failed.kind, failed.cost_usd) == ("maybe_billed", 0.0), "counted by the start that sent it"
    else:
        assert desk.run().status == status
    assert lab.sent == verbs
    assert lab.sent.count("create") == 1


def test_a_restart_goes_on_with_the_same_job(tmp_path: Path) -> None:
    lab = Lab(polls=[RUNNING])
    desk = Desk(tmp_path, lab, replace(OPTIONS, cancel_on_interrupt=False))

    async def killed() -> None:
        work = asyncio.ensure_future(desk.driver.run(TASK, 1))
        await desk.clock.settle()
        assert lab.sent == ["create"]
        # the process ends: nothing of it runs any more
        work.cancel()
        await asyncio.wait([work])

    asyncio.run(killed())
    later = Lab()
    submission = Desk(tmp_path, later).run()
    assert later.sent == ["poll"]
    assert submission.status == "completed"
    assert submission.settings["echoed"]["resumed"] is True


@pytest.mark.parametrize(
    ("failures", "kind", "status"),
    [
        ([error("server")] * 3, None, "completed"),
        ([error("connect")] * 12, None, "completed"),
        ([error("not_found")] * 4, None, "completed"),
        ([error("malformed")] * 4, None, "completed"),
        ([error("rate_limit", retry_after_s=100)] * 2, None, "completed"),
        ([error("not_found")], "never", "failed"),
        ([error("server")], "never", "unreachable"),
        ([error("malformed")], "never", "unreachable"),
        ([error("bad_request")], "never", "unreachable"),
        ([error("key")], "never", "key"),
        ([error("quota")], "never", "quota"),
    ],
)
def test_a_poll_that_fails(tmp_path: Path, failures: list[Any], kind: str | None, status: str) -> None:
    polls = failures if kind == "never" else [*failures, DONE]
    lab = Lab(polls=polls)
    desk = Desk(tmp_path, lab)
    if status in ("completed", "failed"):
        assert desk.run().status == status
        assert lab.sent.count("create") == 1
        return
    assert desk.failure().kind == status
    assert desk.store.job("key") is not None, "the next start asks again"
    assert Desk(tmp_path, Lab()).run().status == "completed"


def test_a_series_of_failures_ends_with_an_answer_that_makes_sense(tmp_path: Path) -> None:
    polls = [*[error("not_found")] * 4, RUNNING] * 5 + [DONE]
    assert Desk(tmp_path, Lab(polls=polls)).run().status == "completed"


@pytest.mark.parametrize(
    ("polls", "files", "task", "status", "cancelled"),
    [
        ([RUNNING], {}, TASK, "timed_out", True),
        ([RUNNING] * 60 + [DONE], {}, TASK, "completed", True),
        (
            [RUNNING],
            {"a.jsonl": "{}"},
            Task(id="t", prompt="p", required_files=("a.jsonl",)),
            "incomplete",
            True,
        ),
    ],
    ids=["never ends", "ends while it is cancelled", "delivered all the same"],
)
def test_the_deadline(
    tmp_path: Path, polls: list[Any], files: dict[str, str], task: Task, status: str, cancelled: bool
) -> None:
    lab = Lab(polls=polls, files=files, channel="file" if files else "text")
    desk = Desk(tmp_path, lab)
    if status == "completed":  # the job ends with the poll after the cancel
        lab.on = lambda verb: lab.polls.__setitem__(slice(None), [DONE]) if verb == "cancel" else None
    submission = desk.run(task)
    assert submission.status == status
    assert ("cancel" in lab.sent) is cancelled
    assert 600 <= desk.clock.elapsed < 620
    if status != "completed":
        assert submission.error is not None
        assert submission.error.kind == "timed_out"
        assert "600 s" in submission.error.message


def test_a_job_that_outlived_a_stop_is_asked_before_its_deadline_is_held_against_it(tmp_path: Path) -> None:
    first = Desk(tmp_path, Lab())
    record = first.driver._jobs.record(TASK.id, 1)
    record.intend(first.clock.now() - 100_000)
    record.keep({"id": "j1"})
    assert Desk(tmp_path, Lab()).run().status == "completed"
    record.intend(first.clock.now() - 100_000)
    record.keep({"id": "j1"})
    assert Desk(tmp_path, Lab(polls=[RUNNING])).run().status == "timed_out"


@pytest.mark.parametrize(
    ("lab", "options", "step", "verbs"),
    [
        (Lab(polls=[RUNNING]), OPTIONS, "cancelling", ["create", "poll", "cancel"]),
        (
            Lab(polls=[RUNNING], cancels=[error("bad_request")]),
            OPTIONS,
            "cancelling",
            ["create", "poll", "cancel"],
        ),
        (Lab(polls=[RUNNING]), replace(OPTIONS, cancel_on_interrupt=False), "free", ["create", "poll"]),
        (Blind(polls=[RUNNING]), OPTIONS, "free", ["create", "poll"]),
    ],
    ids=["cancelled", "over already", "told to leave it", "can't"],
)
def test_an_interrupt(tmp_path: Path, lab: Lab, options: JobOptions, step: str, verbs: list[str]) -> None:
    desk = Desk(tmp_path, lab, options)

    async def interrupted() -> None:
        work = asyncio.ensure_future(desk.driver.run(TASK, 1))

        def interrupt(verb: str) -> None:
            if verb == "poll":
                work.cancel()

        lab.on = interrupt
        await desk.clock.run(asyncio.wait([work]))
        assert work.cancelled()

    asyncio.run(interrupted())
    assert lab.sent == verbs
    row = desk.store.job("key")
    assert row is not None
    assert row.step == step, "the next start sees what became of it"


CANCELLED = Snapshot("cancelled", {"status": "cancelled"}, "cancelled")


@pytest.mark.parametrize(
    ("polls", "verbs", "tokens", "booked"),
    [
        ([CANCELLED, DONE], ["poll", "create", "poll"], 1, [(0.5, "interrupted")]),
        ([Snapshot("failed", {}, "failed"), DONE], ["poll", "create", "poll"], 1, [(0.5, "interrupted")]),
        ([error("not_found")], None, 1, [(0.5, "interrupted")]),
        ([DONE], ["poll", "poll"], 0, []),
        ([RUNNING, RUNNING, DONE], ["poll", "poll", "poll"], 0, []),
    ],
    ids=["cancelled", "failed by the cancel", "gone", "over before", "runs on"],
)
def test_what_became_of_a_job_that_was_to_be_cancelled(
    tmp_path: Path, polls: list[Any], verbs: list[str] | None, tokens: int, booked: list[Any]
) -> None:
    first = Desk(tmp_path, Lab())
    record = first.driver._jobs.record(TASK.id, 1)
    record.intend(first.clock.now())
    record.keep({"id": "j1"})
    record.cancelling()
    lab = Lab(polls=list(polls))
    lab.on = lambda verb: lab.polls.append(DONE) if verb == "create" else None
    desk = Desk(tmp_path, lab)
    assert desk.run().status == "completed"
    assert verbs is None or lab.sent == verbs
    assert len(lab.tokens) == tokens, "sent anew only where it was stopped"
    assert desk.store._db.execute("SELECT usd, error FROM call").fetchall() == booked


def test_an_interrupt_while_the_answer_is_read_cancels_nothing(tmp_path: Path) -> None:
    class Slow(Lab):
        async def answer(self, ask: Ask, last: Snapshot) -> Answer:
            self.on("answer")
            await asyncio.sleep(0)
            return await super().answer(ask, last)

    lab = Slow()
    desk = Desk(tmp_path, lab)

    async def interrupted() -> None:
        work = asyncio.ensure_future(desk.driver.run(TASK, 1))

        def interrupt(verb: str) -> None:
            if verb == "answer":
                work.cancel()

        lab.on = interrupt
        await desk.clock.run(asyncio.wait([work]))
        assert work.cancelled()

    asyncio.run(interrupted())
    assert "cancel" not in lab.sent
    assert Desk(tmp_path, Lab()).run().status == "completed", "the next start reads it for nothing"


def test_a_create_that_is_refused_while_we_leave_leaves_no_intent(tmp_path: Path) -> None:
    class Slow(Lab):
        async def create(self, ask: Ask) -> Snapshot:
            self.on("create")
            await desk.clock.sleep(1)
            raise error("rate_limit")

    lab = Slow()
    desk = Desk(tmp_path, lab)

    async def interrupted() -> None:
        work = asyncio.ensure_future(desk.driver.run(TASK, 1))
        await desk.clock.settle()
        work.cancel()
        await desk.clock.run(asyncio.wait([work]))

    asyncio.run(interrupted())
    assert desk.store.job("key") is None


def test_a_5xx_that_came_although_the_job_was_started_is_looked_up(tmp_path: Path) -> None:
    lab = Lab(creates=[error("server")], finds=[RUNNING])
    assert Desk(tmp_path, lab).run().status == "completed"
    assert lab.sent == ["create", "find", "poll"]


CONTINUE = Snapshot("running", {"n": 1}, "pause", handle={"turns": 1}, paid_next=True)


@pytest.mark.parametrize(
    ("polls", "status", "left"),
    [
        ([CONTINUE, DONE], "completed", False),
        ([error("rate_limit"), error("overloaded"), DONE], "completed", False),
        ([error("hung_up")], "maybe_billed", True),
        ([error("timeout")], "maybe_billed", True),
    ],
)
def test_a_continuation_is_paid_once(tmp_path: Path, polls: Sequence[Any], status: str, left: bool) -> None:
    lab = Lab(creates=[CONTINUE], polls=list(polls))
    desk = Desk(tmp_path, lab)
    marks: list[bool] = []

    def look(verb: str) -> None:
        row = desk.store.job("key")
        marks.append(row is not None and row.step == "paying")

    lab.on = look
    if status == "completed":
        assert desk.run().status == status
    else:
        assert desk.failure().kind == status
        again = Desk(tmp_path, Lab())
        assert again.failure().kind == "maybe_billed", "what was sent is not sent again"
        assert again.driver.provider.sent == []  # type: ignore[attr-defined]
        again.driver._jobs.bind(TASK.id, 1, "key", anew=True)
        assert again.run().status == "completed", "unless retry=failed says so"
    assert marks[0] is False, "the create"
    assert all(marks[1:]), "each continuation is marked before it is sent"


def test_a_restart_before_a_continuation_marks_it_before_it_is_sent(tmp_path: Path) -> None:
    first = Desk(tmp_path, Lab())
    record = first.driver._jobs.record(TASK.id, 1)
    record.intend(first.clock.now())
    record.keep({"turns": 1}, paid_next=True)
    lab = Lab()
    desk = Desk(tmp_path, lab)
    steps: list[str] = []
    lab.on = lambda verb: steps.append(desk.store.job("key").step)  # type: ignore[union-attr]  # it is there
    assert desk.run().status == "completed"
    assert (lab.sent, steps) == (["poll"], ["paying"])


@pytest.mark.parametrize(
    ("state", "text", "files", "required", "status", "kind"),
    [
        ("completed", "x", {}, (), "completed", None),
        ("incomplete", "x", {}, (), "incomplete", "truncated"),
        ("failed", None, {}, (), "failed", "failed"),
        ("refused", None, {}, (), "refused", "refused"),
        ("cancelled", None, {}, (), "failed", "failed"),
        ("timed_out", None, {}, (), "timed_out", "timed_out"),
        ("completed", "x", {"a": "1"}, ("a",), "completed", None),
        ("failed", None, {"a": "1"}, ("a",), "incomplete", "truncated"),
        ("completed", "x", {}, ("a",), "empty", "empty"),
        ("completed", "x", {"a": " "}, ("a",), "empty", "empty"),
        ("completed", "x", {"a": "1"}, ("a", "b"), "incomplete", "truncated"),
        ("failed", None, {"a": "1"}, ("a", "b"), "failed", "failed"),
    ],
)
def test_state_and_delivery_are_kept_apart(
    tmp_path: Path,
    state: Any,
    text: str | None,
    files: dict[str, str],
    required: tuple[str, ...],
    status: str,
    kind: Any,
) -> None:
    lab = Lab(polls=[Snapshot(state, {"text": text}, state)], files=files, channel="file")
    submission = Desk(tmp_path, lab).run(Task(id="t", prompt="p", required_files=required))
    assert submission.status == status
    assert (submission.error.kind if submission.error else None) == kind
    assert submission.settings["echoed"]["state"] == state


def test_an_account_learns_from_creates_that_it_takes_more(tmp_path: Path) -> None:
    desk = Desk(tmp_path, Lab())
    limiter = desk.driver.services.limiter.get("lab", max_in_flight=100)
    limiter.in_flight = limiter.limit
    before = limiter.limit
    desk.run()
    assert limiter.limit == before + 1
