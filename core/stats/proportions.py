"""Shares of a count, with intervals."""

from __future__ import annotations

import math
from dataclasses import dataclass

from core.stats.distributions import two_sided


@dataclass(frozen=True, slots=True)
class Share:
    """`count` of `total`: the share and its Wilson interval, all in 0…1."""

    value: float
    low: float
    high: float
    count: int
    total: int


def wilson(count: int, total: int, *, level: float = 0.95) -> tuple[float, float] | None:
    """The score interval of a share (Wilson 1927): (low, high) in 0…1; None when total is 0.

    (p + z²/2n ± z·√(p(1 − p)/n + z²/4n²)) / (1 + z²/n). Takes the `total` draws for independent: for verdicts that
    share a task, resample the tasks instead. Raises ValueError unless 0 <= count <= total.
    """
    if not 0 <= count <= total:
        raise ValueError(f"{count} of {total}, expected a count between 0 and the total")
    z = two_sided(level)
    if not total:
        return None
    share = count / total
    centre = share + z**2 / (2 * total)
    half = z * math.sqrt(share * (1 - share) / total + z**2 / (4 * total**2))
    scale = 1 + z**2 / total
    # at 0 and at all, rounding may leave the range by a last digit
    return max(0.0, (centre - half) / scale), min(1.0, (centre + half) / scale)


def share(count: int, total: int, *, level: float = 0.95) -> Share | None:
    """The share with its Wilson interval; None when total is 0."""
    found = wilson(count, total, level=level)
    return found and Share(value=count / total, low=found[0], high=found[1], count=count, total=total)
