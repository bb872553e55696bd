"""The retry layer in simulated time, by the error table."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import Literal

import pytest
from fakes.clock import SimClock

from core.calls import MAX_TRUNCATED, RetryPolicy, call
from core.errors import TABLE, CallError, StopRun
from core.limiter import Limiter

ATTEMPTS = 4


class Scene:
    """A call whose attempts end as scripted: a kind, a CallError, or None for an answer."""

    def __init__(self, *outcomes: str | CallError | None) -> None:
        self.outcomes = outcomes
        self.clock = SimClock()
        self.limiter = Limiter(self.clock, max_in_flight=4)
        self.attempts: list[int] = []
        self.heard: list[tuple[str, int]] = []

    async def make(self, attempt: int) -> str:
        assert self.limiter.in_flight == 1
        self.attempts.append(attempt)
        outcome = self.outcomes[min(attempt, len(self.outcomes)) - 1]
        if outcome is None:
            return "answer"
        raise CallError(outcome) if isinstance(outcome, str) else outcome

    async def run(
        self,
        policy: RetryPolicy | None = None,
        make: Callable[[int], Awaitable[str]] | None = None,
    ) -> str:
        return await self.clock.run(
            call(
                make or self.make,
                policy=policy or RetryPolicy(attempts=ATTEMPTS),
                limiter=self.limiter,
                clock=self.clock,
                rng=random.Random(3),
                on_failure=lambda error, attempt: self.heard.append((error.kind, attempt)),
            )
        )


@pytest.mark.parametrize("role", ["judge", "system"])
@pytest.mark.parametrize("kind", sorted(TABLE))
async def test_every_kind_does_what_the_table_says(kind: str, role: Literal["judge", "system"]) -> None:
    meaning = TABLE[kind]
    scene = Scene(kind)
    with pytest.raises(StopRun if meaning.stops_run else CallError) as caught:
        await scene.run(RetryPolicy(attempts=ATTEMPTS, role=role))
    again = meaning.retry_judge if role == "judge" else meaning.retry_system
    expected = 1 if not again else MAX_TRUNCATED if kind == "truncated" else ATTEMPTS
    assert isinstance(caught.value, CallError | StopRun)
    assert caught.value.kind == kind
    assert scene.attempts == list(range(1, expected + 1))
    assert scene.heard == [(kind, attempt) for attempt in scene.attempts]
    assert scene.limiter.in_flight == 0


async def test_an_answer_after_failures() -> None:
    scene = Scene("server", "timeout", None)
    assert await scene.run() == "answer"
    assert scene.attempts == [1, 2, 3]


async def test_the_last_error_is_raised() -> None:
    scene = Scene("server", "rate_limit", "timeout", "cut")
    with pytest.raises(CallError) as caught:
        await scene.run()
    assert caught.value.kind == "cut"


async def test_back_off_doubles_with_jitter_and_is_capped() -> None:
    scene = Scene("server")
    with pytest.raises(CallError):
        await scene.run(RetryPolicy(attempts=9, max_wait_s=10))
    bounds = [0.5, 1, 2, 4, 8, 10, 10, 10]
    assert len(scene.clock.slept) == len(bounds)
    for waited, most in zip(scene.clock.slept, bounds, strict=True):
        assert most / 2 <= waited <= most
    assert len(set(scene.clock.slept[:5])) == 5


@pytest.mark.parametrize(
    ("hint", "least", "most"),
    [
        pytest.param(20.0, 20.0, 21.1, id="the server's word"),
        pytest.param(0.0, 0.25, 0.5, id="at once: our own back-off"),
        pytest.param(3600.0, 60.0, 60.0, id="longer than max_wait_s"),
    ],
)
async def test_hints(hint: float, least: float, most: float) -> None:
    scene = Scene(CallError("rate_limit", retry_after_s=hint), None)
    assert await scene.run() == "answer"
    assert least <= scene.clock.elapsed <= most


@pytest.mark.parametrize("kind", ["empty", "malformed", "truncated"])
async def test_an_unusable_answer_is_asked_for_again_at_once(kind: str) -> None:
    scene = Scene(kind, None)
    assert await scene.run() == "answer"
    assert scene.clock.elapsed == 0
    assert scene.limiter.limit == 4


async def test_unusable_answers_do_not_lengthen_the_back_off() -> None:
    scene = Scene("malformed", "malformed", "server", None)
    await scene.run()
    assert scene.clock.elapsed <= 0.5


async def test_the_slot_is_free_while_a_call_waits() -> None:
    clock = SimClock()
    limiter = Limiter(clock, max_in_flight=1)
    order: list[str] = []

    async def refused_once(attempt: int) -> None:
        order.append(f"first {attempt}")
        if attempt == 1:
            raise CallError("server")

    async def fine(_: int) -> None:
        order.append("second")

    async def both() -> None:
        rng, policy = random.Random(0), RetryPolicy()
        await asyncio.gather(
            *(call(make, policy=policy, limiter=limiter, clock=clock, rng=rng) for make in (refused_once, fine))
        )

    await clock.run(both())
    assert order == ["first 1", "second", "first 2"]


async def test_only_refusals_cut_the_limit() -> None:
    for kind, cut in (("rate_limit", True), ("overloaded", True), ("server", False), ("timeout", False)):
        scene = Scene(kind, None)
        await scene.run()
        assert (scene.limiter.limit < 4) is cut, kind


async def test_cancellation_frees_the_slot() -> None:
    scene = Scene(None)
    started = asyncio.Event()

    async def forever(_: int) -> str:
        started.set()
        await asyncio.Event().wait()
        return "never"

    work = asyncio.create_task(
        call(forever, policy=RetryPolicy(), limiter=scene.limiter, clock=scene.clock, rng=random.Random(0))
    )
    await started.wait()
    assert scene.limiter.in_flight == 1
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work
    assert scene.limiter.in_flight == 0


async def test_other_exceptions_pass_through_and_free_the_slot() -> None:
    scene = Scene(None)

    async def broken(_: int) -> str:
        raise KeyError("a bug")

    with pytest.raises(KeyError):
        await scene.run(make=broken)
    assert scene.limiter.in_flight == 0
