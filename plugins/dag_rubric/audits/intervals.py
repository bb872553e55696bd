"""Intervals of shares and of counts that were never seen whole."""

from __future__ import annotations

import math
from typing import Final

#: The standard normal's quantile for intervals of 95 %.
Z: Final = 1.959963984540054

Interval = tuple[float, float]


def chapman(first: int, second: int, both: int) -> float:
    """Capture–recapture: N̂ = (n₁+1)(n₂+1)/(m+1) − 1 (Chapman 1951).

    How many there are, when two independent searches found `first` and `second` of them and `both` in common.
    """
    return (first + 1) * (second + 1) / (both + 1) - 1


def chapman_interval(first: int, second: int, both: int) -> Interval:
    """The log-normal interval of N̂ (Chao 1987), with Seber's variance (1982): never below what was seen.

    With r = n₁ + n₂ − m seen and f = N̂ − r unseen: (r + f/C, r + f·C), C = exp(z·√ln(1 + var/f²)).
    """
    seen = first + second - both
    unseen = chapman(first, second, both) - seen
    if unseen <= 0:
        return float(seen), float(seen)
    variance = (first + 1) * (second + 1) * (first - both) * (second - both) / ((both + 1) ** 2 * (both + 2))
    spread = math.exp(Z * math.sqrt(math.log1p(variance / unseen**2)))
    return seen + unseen / spread, seen + unseen * spread
