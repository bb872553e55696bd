"""A call starts only when spent + reserved + its own estimate fits."""

from __future__ import annotations

import asyncio

import pytest

from core.budget import Budget
from core.errors import StopRun
from core.store import Role


async def spend(budget: Budget, role: Role, estimate: float | None, actual: float | None) -> None:
    async with budget.reserve(role, estimate) as reservation:
        reservation.actual = actual


@pytest.mark.parametrize(
    ("bounds", "spent_before", "calls", "stops_at"),
    [
        ({"usd": 1.0}, 0.0, [("judge", 0.5, 0.5), ("judge", 0.5, 0.5), ("judge", 0.5, 0.5)], 2),
        ({"usd": 1.0}, 0.9, [("judge", 0.2, 0.2)], 0),
        ({"usd": 1.0}, 0.0, [("system", 0.9, 0.1), ("judge", 0.9, 0.9), ("judge", 0.1, 0.1)], 2),
        ({"usd": 1.0}, 0.0, [("judge", 0.3, None), ("judge", 0.8, 0.8)], 1),
        ({"judge_usd": 1.0}, 0.0, [("system", 5.0, 5.0), ("judge", 1.0, 1.0), ("judge", 0.1, 0.1)], 2),
        ({}, 0.0, [("judge", 1e9, 1e9), ("system", None, None)], None),
        ({"usd": 0.0}, 0.0, [("judge", 0.0, 0.0), ("judge", 0.01, 0.01)], 1),
    ],
)
async def test_where_a_budget_stops(
    bounds: dict[str, float],
    spent_before: float,
    calls: list[tuple[Role, float | None, float | None]],
    stops_at: int | None,
) -> None:
    budget = Budget(bounds.get("usd"), bounds.get("judge_usd"), spent_system=spent_before)
    for number, (role, estimate, actual) in enumerate(calls):
        if number == stops_at:
            with pytest.raises(StopRun, match="budget"):
                await spend(budget, role, estimate, actual)
            return
        await spend(budget, role, estimate, actual)
    assert stops_at is None


async def test_a_call_waits_while_a_running_one_may_give_money_back() -> None:
    budget = Budget(1.0)
    release = asyncio.Event()

    async def first() -> None:
        async with budget.reserve("judge", 0.9) as reservation:
            await release.wait()
            reservation.actual = 0.1

    running = asyncio.create_task(first())
    await asyncio.sleep(0)
    waiting = asyncio.create_task(spend(budget, "judge", 0.5, 0.5))
    await asyncio.sleep(0)
    assert not waiting.done()
    release.set()
    await asyncio.gather(running, waiting)
    assert budget.spent() == pytest.approx(0.6)


async def test_a_failed_call_gives_its_reservation_back() -> None:
    budget = Budget(1.0)
    with pytest.raises(ValueError, match="broken"):
        async with budget.reserve("judge", 0.9) as reservation:
            reservation.actual = 0.0
            raise ValueError("broken")
    await spend(budget, "judge", 1.0, 1.0)
    assert budget.spent() == 1.0
