"""The standard deviation, where it is defined."""

from __future__ import annotations

import math
from collections.abc import Sequence

from core.fold import mean


def sd(values: Sequence[float], *, ddof: int = 1) -> float | None:
    """The standard deviation with `ddof` taken from n; None when n <= ddof or there is no value."""
    centre = mean(values)
    if centre is None or len(values) <= ddof:
        return None
    if min(values) == max(values):
        return 0.0  # the rounded mean may lie a last digit off them
    return math.sqrt(math.fsum((value - centre) ** 2 for value in values) / (len(values) - ddof))
