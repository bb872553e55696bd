"""The limiter in simulated time: growth, cuts, pauses, spacing, fairness, cancellation."""

from __future__ import annotations

import asyncio
import random

import pytest
from fakes.clock import SimClock
from hypothesis import given
from hypothesis import strategies as st

from core.calls import RetryPolicy, call
from core.errors import CallError
from core.limiter import START, Limiter, Limiters


class Server:
    """Takes `delay_s` a call (give or take a fifth), refuses what is above `most` at once."""

    def __init__(self, clock: SimClock, *, delay_s: float, most: int | None, retry_after_s: float | None = None):
        self.clock, self.delay_s, self.most, self.retry_after_s = clock, delay_s, most, retry_after_s
        self.rng = random.Random(5)
        self.in_flight = self.peak = self.refused = self.answered = 0
        self.starts: list[float] = []

    async def ask(self, _: int = 1) -> None:
        self.starts.append(self.clock.monotonic())
        if self.most is not None and self.in_flight >= self.most:
            self.refused += 1
            raise CallError("rate_limit", retry_after_s=self.retry_after_s)
        self.in_flight += 1
        self.peak = max(self.peak, self.in_flight)
        try:
            await self.clock.sleep(self.delay_s * self.rng.uniform(0.8, 1.2))
        finally:
            self.in_flight -= 1
        self.answered += 1


async def flood(server: Server, limiter: Limiter, calls: int, workers: int = 200) -> None:
    """So many calls by so many workers, each call retried as a judge's is."""
    rng, left = random.Random(1), iter(range(calls))

    async def work() -> None:
        for _ in left:
            await call(server.ask, policy=RetryPolicy(), limiter=limiter, clock=server.clock, rng=rng)

    await asyncio.gather(*(work() for _ in range(workers)))


@pytest.mark.parametrize("retry_after_s", [None, 1.0, 30.0])
@pytest.mark.parametrize("most", [1, 5, 30, 150])
async def test_a_server_with_a_ceiling_is_found_out(most: int, retry_after_s: float | None) -> None:
    clock = SimClock()
    server = Server(clock, delay_s=0.2, most=most, retry_after_s=retry_after_s)
    limiter = Limiter(clock, max_in_flight=200)
    calls = 1000 if most < 30 else 3934
    await clock.run(flood(server, limiter, calls))
    assert server.answered == calls
    assert server.refused <= 0.05 * calls
    assert server.peak >= 0.9 * most


async def test_the_ceiling_is_used_and_not_run_into() -> None:
    clock = SimClock()
    server = Server(clock, delay_s=0.2, most=30)
    await clock.run(flood(server, Limiter(clock, max_in_flight=200), 3934))
    assert server.refused <= 0.01 * 3934
    assert clock.elapsed <= 1.35 * 3934 * 0.2 / 30


async def test_without_a_ceiling_all_is_used_soon() -> None:
    clock = SimClock()
    server = Server(clock, delay_s=0.2, most=None)
    limiter = Limiter(clock, max_in_flight=200)
    await clock.run(flood(server, limiter, 1000))
    assert limiter.peak == server.peak == 200
    # doubling from 8 reaches 200 in five rounds; 1000 calls fill a few more
    assert clock.elapsed <= 11 * 0.2 * 1.2


async def test_a_lifted_ceiling_is_noticed() -> None:
    clock = SimClock()
    server = Server(clock, delay_s=0.2, most=10)
    limiter = Limiter(clock, max_in_flight=40)
    await clock.run(flood(server, limiter, 500, workers=40))
    server.most = None
    await clock.run(flood(server, limiter, 4000, workers=40))
    assert limiter.limit == limiter.peak == 40


async def test_a_slow_start_adds_one_a_success() -> None:
    limiter = Limiter(SimClock(), max_in_flight=200)
    for _ in range(START):
        await limiter.acquire()
    limiter.succeeded()
    assert limiter.limit == START + 1


async def test_a_limit_that_is_not_used_up_does_not_grow() -> None:
    limiter = Limiter(SimClock(), max_in_flight=200)
    await limiter.acquire()
    limiter.succeeded()
    assert limiter.limit == START


async def test_one_cut_an_episode() -> None:
    limiter = Limiter(SimClock(), max_in_flight=8)
    tickets = [await limiter.acquire() for _ in range(8)]
    for ticket in tickets:
        limiter.refused(None, ticket)
        limiter.release()
    assert limiter.limit == 4
    later = await limiter.acquire()
    limiter.refused(None, later)
    assert limiter.limit < 4


async def test_the_limit_never_falls_below_one() -> None:
    limiter = Limiter(SimClock(), max_in_flight=8)
    for _ in range(20):
        limiter.refused(None, await limiter.acquire())
        limiter.release()
    assert limiter.limit == 1


async def test_a_pause_holds_back_the_account() -> None:
    clock = SimClock()
    limiter = Limiter(clock, max_in_flight=8)
    limiter.refused(30.0, await limiter.acquire())
    limiter.release()

    async def use() -> float:
        async with limiter.slot():
            return clock.monotonic()

    assert await clock.run(asyncio.wait_for(use(), None)) == 30.0
    assert await clock.run(use()) == 30.0


async def test_requests_per_minute_space_the_starts() -> None:
    clock = SimClock()
    server = Server(clock, delay_s=0.1, most=None)
    await clock.run(flood(server, Limiter(clock, max_in_flight=50, requests_per_minute=120), 100, workers=50))
    gaps = [later - earlier for earlier, later in zip(server.starts, server.starts[1:], strict=False)]
    assert min(gaps) >= 0.5 - 1e-9
    assert clock.elapsed == pytest.approx(99 * 0.5 + 0.1, abs=0.1)


async def test_waiters_start_in_their_order() -> None:
    clock = SimClock()
    limiter = Limiter(clock, max_in_flight=1)
    order: list[int] = []

    async def use(number: int) -> None:
        async with limiter.slot():
            order.append(number)
            await clock.sleep(1)

    async def all_of_them() -> None:
        await asyncio.gather(*(use(number) for number in range(20)))

    await clock.run(all_of_them())
    assert order == list(range(20))


async def test_a_cancelled_waiter_leaves_no_slot_behind() -> None:
    clock = SimClock()
    limiter = Limiter(clock, max_in_flight=1)
    await limiter.acquire()
    waiters = [asyncio.create_task(limiter.acquire()) for _ in range(3)]
    await clock.settle()
    waiters[0].cancel()
    await clock.settle()
    limiter.release()  # gives the slot to the second, which is cancelled in the same turn
    waiters[1].cancel()
    await clock.settle()
    assert await waiters[2] == 0
    assert limiter.in_flight == 1
    limiter.release()
    assert limiter.in_flight == 0


async def test_a_slot_that_comes_free_while_all_waiters_are_being_cancelled() -> None:
    clock = SimClock()
    limiter = Limiter(clock, max_in_flight=1)
    await limiter.acquire()
    waiters = [asyncio.create_task(limiter.acquire()) for _ in range(2)]
    await clock.settle()
    for waiter in waiters:
        waiter.cancel()
    limiter.release()  # before any of them has run
    assert await limiter.acquire() == 0
    await clock.settle()
    assert limiter.in_flight == 1
    limiter.release()
    assert await limiter.acquire() == 0


async def test_the_last_waiter_that_leaves_takes_the_timer_along() -> None:
    clock = SimClock()
    limiter = Limiter(clock, max_in_flight=2)
    limiter.refused(30.0, await limiter.acquire())
    waiter = asyncio.create_task(limiter.acquire())
    await clock.settle()
    waiter.cancel()
    await clock.settle()
    assert [task for task in asyncio.all_tasks() if task is not asyncio.current_task()] == []


@given(
    st.lists(st.sampled_from(["acquire", "cancel", "ok", "refused", "hint", "settle"]), max_size=80),
    st.integers(1, 5),
)
def test_slots_are_never_lost_nor_made_up(steps: list[str], most: int) -> None:
    async def scenario() -> None:
        clock = SimClock()
        limiter = Limiter(clock, max_in_flight=most)
        waiting: list[asyncio.Task[int]] = []
        for step in steps:
            held = [task for task in waiting if task.done() and not task.cancelled()]
            if step == "acquire":
                waiting.append(asyncio.create_task(limiter.acquire()))
            elif step == "cancel" and waiting:
                task = waiting[-1]
                if not task.done():
                    waiting.remove(task)
                    task.cancel()
            elif step != "settle" and held:
                waiting.remove(held[0])
                if step == "ok":
                    limiter.succeeded()
                else:
                    limiter.refused(5.0 if step == "hint" else None, held[0].result())
                limiter.release()
            if step != "settle":
                continue  # several things happen in one turn of the loop
            await clock.settle()
            out = sum(task.done() for task in waiting)
            assert limiter.in_flight == out
            assert 1 <= limiter.limit <= most
            assert limiter.peak <= most

        async def drain() -> None:
            for task in waiting:
                await task
                limiter.release()

        await clock.run(drain())
        assert limiter.in_flight == 0

    asyncio.run(scenario())


def test_one_limiter_an_account_and_the_widest_bound_holds() -> None:
    limiters = Limiters(SimClock())
    first = limiters.get("a", max_in_flight=10)
    assert limiters.get("a", max_in_flight=4, requests_per_minute=60) is first
    assert limiters.get("a", max_in_flight=50) is first
    assert first.max_in_flight == 50
    assert limiters.get("b", max_in_flight=50) is not first


@pytest.mark.parametrize(("most", "per_minute"), [(0, None), (-1, None), (1, 0)])
def test_impossible_bounds_are_refused(most: int, per_minute: int | None) -> None:
    with pytest.raises(ValueError, match="at least 1"):
        Limiter(SimClock(), max_in_flight=most, requests_per_minute=per_minute)


async def test_who_is_ahead_starts_before_those_who_wait() -> None:
    clock = SimClock()
    limiter = Limiter(clock, max_in_flight=1)
    order: list[str] = []

    async def use(name: str, *, ahead: bool) -> None:
        await limiter.acquire(ahead=ahead)
        order.append(name)
        await clock.sleep(1)
        limiter.release()

    async def all_of_them() -> None:
        await asyncio.gather(use("first", ahead=False), use("second", ahead=False), use("ahead", ahead=True))

    await clock.run(all_of_them())
    assert order == ["first", "ahead", "second"]


@pytest.mark.parametrize(
    ("long_jobs", "crowded", "hint", "limit", "pause"),
    [
        (False, False, None, 4, 0.0),
        (False, True, 5.0, 4, 5.0),
        (True, False, None, 8, 1.0),
        (True, False, 30.0, 8, 30.0),
        (True, True, None, 7, 1.0),
    ],
    ids=["calls", "calls, crowded", "jobs asked too fast", "jobs, with a hint", "too many jobs"],
)
async def test_what_a_refusal_of_a_long_job_says(
    long_jobs: bool, crowded: bool, hint: float | None, limit: int, pause: float
) -> None:
    clock = SimClock()
    limiter = Limiter(clock, max_in_flight=40, long_jobs=long_jobs)
    tickets = [await limiter.acquire() for _ in range(8)]
    limiter.refused(hint, tickets[-1], crowded=crowded)
    assert limiter.limit == limit
    for _ in range(6):
        limiter.release()
    waiting = asyncio.ensure_future(limiter.acquire())
    await clock.settle()
    assert waiting.done() is (pause == 0.0)
    waiting.cancel()
