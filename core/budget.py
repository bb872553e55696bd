"""Money: a call starts only when what is spent, what is reserved and its own estimate fit the budget."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from core.errors import StopRun
from core.store import Role

#: Rounding of dollar sums must not refuse a call that fits exactly.
_GRAIN = 1e-9


@dataclass
class Reservation:
    """Money set aside for one call. Set `actual` when its cost is known; None leaves the estimate."""

    estimate: float
    actual: float | None = None


class Budget:
    """The budget of one run folder, in dollars; None is no bound.

    `spent_*` is what earlier starts of the same folder cost.
    """

    def __init__(
        self,
        usd: float | None = None,
        judge_usd: float | None = None,
        *,
        spent_system: float = 0.0,
        spent_judge: float = 0.0,
    ) -> None:
        self._bounds = {"all": usd, "judge": judge_usd}
        self._spent: dict[Role, float] = {"system": spent_system, "judge": spent_judge}
        self._reserved = {"system": 0.0, "judge": 0.0}
        #: (sum, count) of what calls of this start cost: an estimate below their mean is not believed
        self._seen = {"system": (0.0, 0), "judge": (0.0, 0)}
        self._changed = asyncio.Event()

    @property
    def bounded(self) -> bool:
        return any(bound is not None for bound in self._bounds.values())

    def spent(self) -> float:
        return math.fsum(self._spent.values())

    def spent_by_role(self) -> dict[Role, float]:
        return dict(self._spent)

    @asynccontextmanager
    async def reserve(self, role: Role, estimate: float | None) -> AsyncIterator[Reservation]:
        """Set money aside for a call and book what it cost.

        Waits while running calls might give some back; raises StopRun("budget") when nothing runs
        and it still doesn't fit. An unknown estimate counts 0: the preflight refuses it where
        there is a bound.
        """
        total, count = self._seen[role]
        wanted = max(estimate or 0.0, total / count if count else 0.0)
        while not self._fits(role, wanted):
            if self._idle(role):
                raise StopRun("budget", self._message(role, wanted))
            self._changed.clear()
            await self._changed.wait()
        self._reserved[role] += wanted
        reservation = Reservation(wanted)
        try:
            yield reservation
        finally:
            self._reserved[role] -= wanted
            cost = wanted if reservation.actual is None else reservation.actual
            self._spent[role] += cost
            self._seen[role] = (self._seen[role][0] + cost, self._seen[role][1] + 1)
            self._changed.set()

    def _fits(self, role: Role, wanted: float) -> bool:
        total, judging = self._bounds["all"], self._bounds["judge"]
        if total is not None:
            committed = math.fsum([*self._spent.values(), *self._reserved.values(), wanted])
            if committed > total + _GRAIN:
                return False
        if judging is not None and role == "judge":
            return self._spent["judge"] + self._reserved["judge"] + wanted <= judging + _GRAIN
        return True

    def _idle(self, role: Role) -> bool:
        """Whether no running call could give money back that this one may use."""
        roles = ("system", "judge") if self._bounds["all"] is not None else (role,)
        return all(self._reserved[other] <= _GRAIN for other in roles)

    def _message(self, role: Role, wanted: float) -> str:
        bounds = ", ".join(
            f"{name}={bound:g}"
            for name, bound in (
                ("budget.usd", self._bounds["all"]),
                ("budget.judge_usd", self._bounds["judge"]),
            )
            if bound is not None
        )
        return (
            f"{self.spent():.4f} $ are spent and the next {role} call is expected to cost {wanted:.4f} $, "
            f"beyond {bounds}: raise it and run again to go on"
        )
