"""Quantiles of the normal and of Student's t, without scipy."""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import Final

_NORMAL: Final = NormalDist()

#: From here on Student's quantile is expanded about the normal one: its error is then below 1e-9.
_MANY: Final = 300


def normal_cdf(x: float) -> float:
    """Φ(x), 0…1."""
    return _NORMAL.cdf(x)


def normal_quantile(p: float) -> float:
    """Φ⁻¹(p) for 0 < p < 1; raises ValueError (StatisticsError) for other p."""
    return _NORMAL.inv_cdf(p)


def two_sided(level: float) -> float:
    """The half width, in standard errors, of a normal interval of this level: 1.96 for 0.95."""
    check_level(level)
    return normal_quantile((1 + level) / 2)


def check_level(level: float) -> None:
    """Raises ValueError for a level of confidence outside (0, 1)."""
    if not 0 < level < 1:
        raise ValueError(f"level={level}, expected a share between 0 and 1, such as 0.95")


def t_cdf(x: float, df: int) -> float:
    """Student's distribution function for a whole number of degrees of freedom, df >= 1.

    The finite sums of Abramowitz & Stegun (1964), 26.7.3 and 26.7.4; they have df / 2 terms.
    """
    if df < 1:
        raise ValueError(f"df={df}, expected 1 or more")
    angle = math.atan2(x, math.sqrt(df))
    sine, cosine = math.sin(angle), math.cos(angle)
    odd = df % 2
    term = total = cosine if odd else 1.0
    if df == 1:
        total = 0.0
    for k in range(2 + odd, df - 1, 2):
        term *= (k - 1) / k * cosine**2
        total += term
    between = 2 / math.pi * (angle + sine * total) if odd else sine * total
    return (1 + between) / 2


def t_quantile(p: float, df: int) -> float:
    """The x with t_cdf(x, df) = p, for 0 < p < 1 and df >= 1.

    By bisection; beyond 300 degrees of freedom by the expansion of Abramowitz & Stegun (1964), 26.7.5.
    """
    if not 0 < p < 1:
        raise ValueError(f"p={p}, expected a probability between 0 and 1")
    if p < 0.5:
        return -t_quantile(1 - p, df)
    if df > _MANY:
        z = normal_quantile(p)
        terms = (
            (z**3 + z) / 4,
            (5 * z**5 + 16 * z**3 + 3 * z) / 96,
            (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
            (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160,
        )
        return z + math.fsum(term / float(df) ** power for power, term in enumerate(terms, start=1))
    low, high = 0.0, 1.0
    while t_cdf(high, df) < p:
        low, high = high, 2 * high
    while True:
        middle = (low + high) / 2
        if middle in (low, high):
            return middle
        low, high = (middle, high) if t_cdf(middle, df) < p else (low, middle)
