"""What n tasks can show, and the quantiles it rests on."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.stats import detectable_difference, tasks_needed
from core.stats.distributions import t_cdf, t_quantile, two_sided


@pytest.fixture
def scipy_stats() -> Any:
    return pytest.importorskip("scipy.stats", reason="scipy is not installed; it checks our formulas")


# Quantiles, as printed in tables of Student's t.


@pytest.mark.parametrize(
    ("p", "df", "expected"),
    [
        (0.975, 1, 12.706),
        (0.975, 2, 4.303),
        (0.975, 3, 3.182),
        (0.975, 10, 2.228),
        (0.975, 30, 2.042),
        (0.995, 120, 2.617),
        (0.975, 1000, 1.962),
        (0.8, 5, 0.920),
        (0.5, 7, 0.0),
        (0.025, 10, -2.228),
    ],
)
def test_students_quantiles(p: float, df: int, expected: float) -> None:
    assert t_quantile(p, df) == pytest.approx(expected, abs=5.1e-4)
    assert t_cdf(t_quantile(p, df), df) == pytest.approx(p)


@pytest.mark.parametrize("df", [1, 2, 3, 4, 7, 10, 51, 299, 300, 301, 302, 1000, 10**6])
@pytest.mark.parametrize("p", [0.001, 0.3, 0.5, 0.8, 0.975, 0.9995])
def test_students_quantiles_are_scipys(scipy_stats: Any, p: float, df: int) -> None:
    assert t_quantile(p, df) == pytest.approx(scipy_stats.t.ppf(p, df), rel=1e-9, abs=1e-9)


def test_two_sided() -> None:
    assert two_sided(0.95) == pytest.approx(1.959963984540054)


@pytest.mark.parametrize("level", [0, 1, -0.5, 95, math.nan])
def test_levels_are_shares(level: float) -> None:
    with pytest.raises(ValueError, match="level="):
        two_sided(level)


# Design.


@pytest.mark.parametrize(
    ("difference", "sd", "alpha", "power", "expected"),
    [
        (0.5, 1, 0.05, 0.8, 34),  # as the noncentral t has it, and so the next two
        (0.2, 1, 0.05, 0.8, 199),
        (0.8, 1, 0.05, 0.8, 15),
        (0.5, 1, 0.05, 0.9, 45),
        (5, 20, 0.05, 0.8, 128),
        (1, 0, 0.05, 0.8, 2),
        (100, 1, 0.05, 0.8, 2),
    ],
)
def test_tasks_needed(difference: float, sd: float, alpha: float, power: float, expected: int) -> None:
    assert tasks_needed(difference, sd, alpha=alpha, power=power) == expected


@pytest.mark.parametrize(
    ("n", "sd", "expected"),
    [(0, 1, None), (1, 1, None), (100, 0, 0), (100, 20, 5.6590), (34, 1, 0.4951), (10**6, 1000, 2.8016)],
)
def test_detectable_difference(n: int, sd: float, expected: float | None) -> None:
    found = detectable_difference(n, sd)
    assert found == (None if expected is None else pytest.approx(expected, abs=1e-4))


@given(st.floats(0.05, 3), st.sampled_from([0.01, 0.05, 0.1]), st.sampled_from([0.5, 0.8, 0.95]))
def test_the_number_is_the_smallest_that_will_do(difference: float, alpha: float, power: float) -> None:
    n = tasks_needed(difference, 1, alpha=alpha, power=power)
    enough = detectable_difference(n, 1, alpha=alpha, power=power)
    fewer = detectable_difference(n - 1, 1, alpha=alpha, power=power)
    assert enough is not None and enough <= difference
    assert fewer is None or fewer > difference


@pytest.mark.parametrize(("alpha", "fewest"), [(0.05, 8), (0.01, 20)])
@pytest.mark.parametrize("power", [0.8, 0.9])
def test_the_power_reached_is_that_of_the_noncentral_t(
    scipy_stats: Any, alpha: float, fewest: int, power: float
) -> None:
    for n in (fewest, fewest + 1, 30, 100, 500):
        difference = detectable_difference(n, 1, alpha=alpha, power=power)
        assert difference is not None
        bound = scipy_stats.t.ppf(1 - alpha / 2, n - 1)
        reached = scipy_stats.nct.sf(bound, n - 1, difference * math.sqrt(n))
        assert reached == pytest.approx(power, abs=0.01)


@pytest.mark.parametrize("power", [0.8, 0.9])
@pytest.mark.parametrize("difference", [0.2, 0.35, 0.5, 0.8, 1.0])
def test_the_number_of_tasks_is_that_of_the_noncentral_t_or_one_off(
    scipy_stats: Any, difference: float, power: float
) -> None:
    exact = next(
        n
        for n in range(2, 1000)
        if scipy_stats.nct.sf(scipy_stats.t.ppf(0.975, n - 1), n - 1, difference * math.sqrt(n)) >= power
    )
    assert abs(tasks_needed(difference, 1, power=power) - exact) <= 1


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"sd": -1}, "sd="),
        ({"sd": math.nan}, "sd="),
        ({"alpha": 0}, "alpha="),
        ({"power": 1}, "power="),
        ({"power": 0.2}, "power="),
        ({"difference": 0}, "difference="),
        ({"difference": -1}, "difference="),
    ],
)
def test_what_is_refused(settings: dict[str, float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        tasks_needed(**{"difference": 1.0, "sd": 1.0, **settings})
