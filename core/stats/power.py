"""How large a difference a run can show, and how many tasks a difference needs.

For a paired design: n tasks, both systems on each, `sd` the standard deviation of the differences (ddof=1). The
normal approximation asks for n = ((z₁₋α/₂ + z_power)·sd/δ)²; with an estimated sd the z become Student's t with
n − 1 degrees of freedom (Zar 1999, chapter 7), which depend on n and add two or three tasks.

Against the noncentral t: for a power of 0.8 or 0.9, what is reached lies within 0.01 of it from 8 tasks on at
alpha 0.05, from 20 on at alpha 0.01. With fewer tasks it is lower than asked; such runs show little anyway.
"""

from __future__ import annotations

import math

from core.stats.distributions import normal_quantile, t_quantile


def detectable_difference(n: int, sd: float, *, alpha: float = 0.05, power: float = 0.8) -> float | None:
    """The smallest true difference that a two-sided paired test at `alpha` finds with chance `power`.

    δ = (t₁₋α/₂ + t_power)·sd/√n, in the unit of sd; None below two tasks; 0 when sd is 0.
    """
    _check(sd, alpha, power)
    if n < 2:
        return None
    return (t_quantile(1 - alpha / 2, n - 1) + t_quantile(power, n - 1)) * sd / math.sqrt(n)


def tasks_needed(difference: float, sd: float, *, alpha: float = 0.05, power: float = 0.8) -> int:
    """The smallest number of tasks, 2 or more, whose detectable difference is at most `difference` (> 0).

    Starts at the normal approximation, which is never too high, and adds tasks until the t-quantiles agree.
    """
    _check(sd, alpha, power)
    if not 0 < difference < math.inf:
        raise ValueError(f"difference={difference}, expected a number above 0, in the unit of sd")
    normal = (normal_quantile(1 - alpha / 2) + normal_quantile(power)) * sd / difference
    n = max(2, math.ceil(normal**2))
    while (detectable_difference(n, sd, alpha=alpha, power=power) or 0.0) > difference:
        n += 1
    return n


def _check(sd: float, alpha: float, power: float) -> None:
    if not 0 <= sd < math.inf:
        raise ValueError(f"sd={sd}, expected a number of 0 or more")
    if not 0 < alpha < 1:
        raise ValueError(f"alpha={alpha}, expected a probability between 0 and 1")
    if not 0.5 <= power < 1:
        raise ValueError(f"power={power}, expected a probability from 0.5 to below 1")
