"""A judge against people: its rates, the corrected share, Wilson's interval."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.stats import Share, judge_rates, rogan_gladen, share, wilson


@pytest.fixture(scope="module")
def scipy_stats() -> Any:
    return pytest.importorskip("scipy.stats", reason="scipy is not installed; it checks our formulas")


@pytest.mark.parametrize(
    ("count", "total", "level", "expected"),
    [
        (0, 0, 0.95, None),
        # Newcombe (1998), table I, method 3: the next four
        (81, 263, 0.95, (0.2553, 0.3662)),
        (15, 148, 0.95, (0.0624, 0.1605)),
        (0, 20, 0.95, (0.0, 0.1611)),
        (1, 29, 0.95, (0.0061, 0.1718)),
        (29, 29, 0.95, (0.8830, 1.0)),
        (5, 10, 0.9, (0.2693, 0.7307)),
        (1, 1, 0.95, (0.2065, 1.0)),
    ],
)
def test_wilson(count: int, total: int, level: float, expected: tuple[float, float] | None) -> None:
    found = wilson(count, total, level=level)
    assert found == (None if expected is None else pytest.approx(expected, abs=5.1e-5))


@given(st.integers(0, 50), st.integers(0, 50), st.sampled_from([0.5, 0.95, 0.99]))
def test_wilson_is_scipys(scipy_stats: Any, count: int, more: int, level: float) -> None:
    total = count + more
    if not total:
        return
    theirs = scipy_stats.binomtest(count, total).proportion_ci(level, method="wilson")
    assert wilson(count, total, level=level) == pytest.approx((theirs.low, theirs.high), abs=1e-12)


@pytest.mark.parametrize(("count", "total"), [(-1, 5), (6, 5), (0, -1)])
def test_wilson_refuses_what_is_no_share(count: int, total: int) -> None:
    with pytest.raises(ValueError, match="expected a count"):
        wilson(count, total)


def test_rates() -> None:
    found = judge_rates(tp=141, fn=15, fp=96, tn=131)
    assert found.sensitivity == share(141, 156)
    assert found.specificity == share(131, 227)
    assert found.accuracy == share(272, 383)
    assert isinstance(found.accuracy, Share)
    assert (round(found.accuracy.value, 3), found.accuracy.count, found.accuracy.total) == (0.710, 272, 383)
    assert found.accuracy.low < found.accuracy.value < found.accuracy.high


@pytest.mark.parametrize(
    ("counts", "known"),
    [
        ({"tp": 0, "fn": 0, "fp": 0, "tn": 0}, (False, False, False)),
        ({"tp": 3, "fn": 1, "fp": 0, "tn": 0}, (True, False, True)),
        ({"tp": 0, "fn": 0, "fp": 2, "tn": 0}, (False, True, True)),
    ],
)
def test_rates_of_nothing(counts: dict[str, int], known: tuple[bool, ...]) -> None:
    found = judge_rates(**counts)
    assert tuple(rate is not None for rate in (found.sensitivity, found.specificity, found.accuracy)) == known


# The corrected share.


def test_the_papers_example() -> None:
    """Lang & Reiczigel (2014), example 1: 95 % limits 0.349 and 0.372."""
    found = rogan_gladen(4060, 11284, tp=178, fn=1, fp=1, tn=358)
    assert found is not None
    assert (round(found.low, 3), round(found.high, 3)) == (0.349, 0.372)
    assert found.apparent == 4060 / 11284
    assert found.value == found.raw == pytest.approx(0.36003, abs=5e-6)


@pytest.mark.parametrize(
    ("met", "counts", "raw", "value"),
    [
        (50, {"tp": 90, "fn": 10, "fp": 20, "tn": 80}, 3 / 7, 3 / 7),
        (10, {"tp": 90, "fn": 10, "fp": 20, "tn": 80}, -1 / 7, 0),  # fewer met than false alarms alone
        (100, {"tp": 90, "fn": 10, "fp": 20, "tn": 80}, 8 / 7, 1),
        (30, {"tp": 100, "fn": 0, "fp": 0, "tn": 100}, 0.3, 0.3),
    ],
)
def test_the_correction(met: int, counts: dict[str, int], raw: float, value: float) -> None:
    found = rogan_gladen(met, 100, **counts)
    assert found is not None
    assert found.raw == pytest.approx(raw)
    assert found.value == pytest.approx(value)
    assert 0 <= found.low <= found.value <= found.high <= 1


@pytest.mark.parametrize(
    ("met", "total", "counts"),
    [
        (0, 0, {"tp": 9, "fn": 1, "fp": 1, "tn": 9}),
        (5, 10, {"tp": 0, "fn": 0, "fp": 1, "tn": 9}),
        (5, 10, {"tp": 9, "fn": 1, "fp": 0, "tn": 0}),
        (5, 10, {"tp": 5, "fn": 5, "fp": 5, "tn": 5}),  # a coin
        (5, 10, {"tp": 7, "fn": 3, "fp": 7, "tn": 3}),  # a coin, though 0.7 + 0.3 need not round to 1
        (5, 10, {"tp": 1, "fn": 9, "fp": 9, "tn": 1}),  # worse than a coin
        (5, 10, {"tp": 1, "fn": 0, "fp": 90, "tn": 10}),  # better by one lucky unit only
    ],
)
def test_a_judge_that_tells_nothing_corrects_nothing(met: int, total: int, counts: dict[str, int]) -> None:
    assert rogan_gladen(met, total, **counts) is None


def test_a_better_known_judge_narrows_the_interval() -> None:
    widths = []
    for times in (1, 10, 100):
        found = rogan_gladen(500, 1000, tp=18 * times, fn=2 * times, fp=4 * times, tn=16 * times)
        assert found is not None
        widths.append(found.high - found.low)
    assert widths == sorted(widths, reverse=True)
    assert widths[-1] < widths[0] / 3


@pytest.mark.parametrize(
    ("met", "total", "tp", "level", "message"),
    [
        (-1, 10, 9, 0.95, "expected counts"),
        (11, 10, 9, 0.95, "expected counts"),
        (5, 10, -1, 0.95, "tp=-1"),
        (5, 10, 9, math.nan, "level="),
    ],
)
def test_what_is_refused(met: int, total: int, tp: int, level: float, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        rogan_gladen(met, total, tp=tp, fn=1, fp=1, tn=9, level=level)
