"""Variance components: a published table, the classical expected mean squares, gaps, other designs."""

from __future__ import annotations

import math

import numpy as np
import pytest

from core.stats import VarianceSplit, design_error, variance_split
from core.stats.units import FloatArray

ALL = [
    ("task",),
    ("system",),
    ("judge",),
    ("task", "system"),
    ("task", "judge"),
    ("system", "judge"),
    ("task", "system", "judge"),
    ("repeat",),
]


def estimates(scores: FloatArray) -> dict[tuple[str, ...], float]:
    found = variance_split(scores)
    assert found is not None
    return {component.factors: component.estimate for component in found.components}


def drawn(rng: np.random.Generator, shape: tuple[int, int, int, int], sds: dict[str, float]) -> FloatArray:
    """Scores of the model: `sds` by the letters of the axes, e.g. {"ts": 2}; "r" for repeats."""
    scores = np.full(shape, 50.0)
    for letters, spread in sds.items():
        axes = set(letters) if letters != "r" else set("tsjr")
        scores = scores + rng.normal(
            0, spread, [n if axis in axes else 1 for axis, n in zip("tsjr", shape, strict=True)]
        )
    return scores


def test_shrout_and_fleiss() -> None:
    """Shrout & Fleiss (1979), table 2: six targets, four judges; mean squares 11.24, 32.49 and 1.02."""
    ratings = np.array([[9, 2, 5, 8], [6, 1, 3, 2], [8, 4, 6, 8], [7, 1, 2, 6], [10, 5, 6, 9], [6, 2, 4, 7]])
    found = variance_split(ratings[:, None, :, None])
    assert found is not None
    assert found.levels == {"task": 6, "system": 1, "judge": 4}
    assert (found.has_repeats, found.n) == (False, 24)
    assert found.mean == pytest.approx(127 / 24)
    components = {component.factors: component.estimate for component in found.components}
    assert components == pytest.approx({("task",): 2.5556, ("judge",): 5.2444, ("repeat",): 1.0194}, abs=5e-5)
    # their ICC(2,1) and ICC(3,1)
    assert components["task",] / sum(components.values()) == pytest.approx(0.29, abs=5e-3)
    assert components["task",] / (components["task",] + components["repeat",]) == pytest.approx(0.71, abs=5e-3)


def test_balanced_scores_give_the_classical_estimates() -> None:
    """Against the expected mean squares of three crossed factors with repeats, as textbooks print them."""
    t, s, j, r = shape = (7, 4, 3, 2)
    y = drawn(
        np.random.default_rng(5), shape, {"t": 8, "s": 5, "j": 3, "ts": 4, "tj": 2, "sj": 2, "tsj": 2, "r": 1}
    )

    def effect(*axes: int) -> FloatArray:
        """The interaction contrast of these axes, over the means of the others."""
        means: FloatArray = y.mean(axis=tuple(axis for axis in range(4) if axis not in axes), keepdims=True)
        for axis in axes:
            means = means - means.mean(axis=axis, keepdims=True)
        return means

    def mean_square(*axes: int) -> float:
        freedom = math.prod(shape[axis] - 1 for axis in axes)
        return float(np.sum(np.broadcast_to(effect(*axes), shape) ** 2)) / freedom

    within = float(np.sum((y - y.mean(axis=3, keepdims=True)) ** 2)) / (t * s * j * (r - 1))
    ms = {axes: mean_square(*axes) for axes in [(0,), (1,), (2,), (0, 1), (0, 2), (1, 2), (0, 1, 2)]}
    assert estimates(y) == pytest.approx(
        {
            ("task",): (ms[0,] - ms[0, 1] - ms[0, 2] + ms[0, 1, 2]) / (s * j * r),
            ("system",): (ms[1,] - ms[0, 1] - ms[1, 2] + ms[0, 1, 2]) / (t * j * r),
            ("judge",): (ms[2,] - ms[0, 2] - ms[1, 2] + ms[0, 1, 2]) / (t * s * r),
            ("task", "system"): (ms[0, 1] - ms[0, 1, 2]) / (j * r),
            ("task", "judge"): (ms[0, 2] - ms[0, 1, 2]) / (s * r),
            ("system", "judge"): (ms[1, 2] - ms[0, 1, 2]) / (t * r),
            ("task", "system", "judge"): (ms[0, 1, 2] - within) / r,
            ("repeat",): within,
        }
    )


@pytest.mark.parametrize(
    ("shape", "factors"),
    [
        ((5, 4, 3, 2), ALL),
        ((5, 4, 3, 1), ALL[:6] + ALL[7:]),
        ((5, 4, 1, 2), [("task",), ("system",), ("task", "system"), ("repeat",)]),
        ((5, 4, 1, 1), [("task",), ("system",), ("repeat",)]),
        ((5, 1, 1, 3), [("task",), ("repeat",)]),
        ((5, 1, 1, 1), [("repeat",)]),
        ((1, 1, 1, 4), [("repeat",)]),
        ((1, 3, 1, 2), [("system",), ("repeat",)]),
    ],
)
def test_what_a_design_can_tell_apart(shape: tuple[int, int, int, int], factors: list[tuple[str, ...]]) -> None:
    scores = np.random.default_rng(1).normal(size=shape)
    found = estimates(scores)
    assert list(found) == factors
    if len(factors) == 1:
        assert found["repeat",] == pytest.approx(np.var(scores, ddof=1))


@pytest.mark.parametrize(
    "scores", [np.zeros((0, 0, 0, 0)), np.full((2, 2, 2, 2), math.nan), np.ones((1, 1, 1, 1))]
)
def test_fewer_than_two_values_have_no_components(scores: FloatArray) -> None:
    assert variance_split(scores) is None


def test_constant_scores_vary_nowhere() -> None:
    found = variance_split(np.full((4, 3, 2, 2), 0.1))
    assert found is not None
    assert [(component.estimate, component.share) for component in found.components] == [(0, None)] * 8
    assert not any(component.is_clipped for component in found.components)


def test_confounded_factors_have_no_components() -> None:
    scores = np.full((4, 4, 1, 1), math.nan)  # every system had tasks of its own
    scores[range(4), range(4), 0, 0] = [1, 5, 2, 8]
    assert variance_split(scores) is None


@pytest.mark.parametrize("scores", [np.zeros((2, 2)), np.full((2, 2, 2, 2), math.inf)])
def test_what_is_refused(scores: FloatArray) -> None:
    with pytest.raises(ValueError, match="expected finite"):
        variance_split(scores)


def test_negative_estimates_are_0_and_said_to_be() -> None:
    scores = np.zeros((2, 2, 1, 2))
    scores[..., 0] = 1.0  # all of the spread is between repeats, so the rest comes out below 0
    found = variance_split(scores)
    assert found is not None
    clipped = {component.factors: component for component in found.components}
    assert clipped["task", "system"].estimate < 0
    assert clipped["task", "system"].is_clipped
    assert clipped["task", "system"].variance == 0
    assert not clipped["repeat",].is_clipped
    assert [component.share for component in found.components][-1] == 1


def test_shares_add_up() -> None:
    found = variance_split(drawn(np.random.default_rng(3), (20, 5, 3, 2), {"t": 5, "s": 4, "r": 2}))
    assert found is not None
    assert sum(component.share or 0 for component in found.components) == pytest.approx(1)


def test_an_empty_task_is_no_task() -> None:
    scores = drawn(np.random.default_rng(3), (6, 3, 2, 2), {"t": 5, "s": 4, "r": 2})
    padded = np.concatenate([scores, np.full((1, 3, 2, 2), math.nan)])
    assert estimates(padded) == pytest.approx(estimates(scores))
    assert estimates(scores + 1e6) == pytest.approx(estimates(scores), rel=1e-6)  # a shift changes nothing


@pytest.mark.slow
@pytest.mark.parametrize("missing", [0, 0.08])
def test_components_are_right_on_average_with_and_without_gaps(missing: float) -> None:
    sds = {"t": 8.0, "s": 5.0, "j": 3.0, "ts": 4.0, "tj": 2.0, "sj": 1.5, "tsj": 2.0, "r": 3.0}
    rng = np.random.default_rng(11)
    found = []
    for _ in range(2000):
        scores = drawn(rng, (12, 5, 3, 2), sds)
        scores[rng.random(scores.shape) < missing] = math.nan
        found.append(list(estimates(scores).values()))
    means, errors = np.mean(found, axis=0), np.std(found, axis=0) / math.sqrt(len(found))
    truth = np.array([spread**2 for spread in sds.values()])
    assert (np.abs(means - truth) < 4 * errors).all()


# Other designs.


def study(shape: tuple[int, int, int, int] = (10, 4, 3, 2)) -> VarianceSplit:
    found = variance_split(
        drawn(np.random.default_rng(2), shape, {"t": 8, "s": 5, "j": 3, "ts": 4, "tj": 3, "r": 2})
    )
    assert found is not None
    return found


def test_the_standard_error_of_another_design() -> None:
    split = study()
    v = {"".join(name[0] for name in component.factors): component.variance for component in split.components}
    found = design_error(split, n_tasks=100, n_judges=2, n_repeats=5)
    relative = v["ts"] / 100 + v["sj"] / 2 + v["tsj"] / 200 + v["r"] / 1000
    assert found.relative == pytest.approx(math.sqrt(relative))
    assert found.absolute == pytest.approx(math.sqrt(relative + v["t"] / 100 + v["j"] / 2 + v["tj"] / 200))


def test_more_of_anything_is_no_less_sure() -> None:
    split = study()
    base = design_error(split, n_tasks=20)
    for more in (
        design_error(split, n_tasks=80),
        design_error(split, n_tasks=20, n_judges=4),
        design_error(split, n_tasks=20, n_repeats=4),
    ):
        assert more.absolute < base.absolute


def test_one_system_has_no_error_relative_to_others() -> None:
    found = design_error(study((10, 1, 3, 2)), n_tasks=10)
    assert found.relative is None
    assert found.absolute > 0


@pytest.mark.parametrize(
    ("shape", "design", "message"),
    [
        ((10, 4, 1, 2), {"n_tasks": 10, "n_judges": 2}, "2 judges asked of a study with one"),
        ((10, 4, 3, 1), {"n_tasks": 10, "n_repeats": 2}, "2 repeats asked"),
        ((1, 4, 3, 2), {"n_tasks": 10}, "10 tasks asked"),
        ((10, 4, 3, 2), {"n_tasks": 0}, "0 tasks, expected 1 or more"),
    ],
)
def test_a_study_says_nothing_about_what_it_did_not_vary(
    shape: tuple[int, int, int, int], design: dict[str, int], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        design_error(study(shape), **design)


@pytest.mark.slow
def test_the_implied_error_is_the_one_seen() -> None:
    """The spread of one system's mean over fresh tasks, judges and repeats is what the components say."""
    rng = np.random.default_rng(4)
    sds = {"t": 8.0, "j": 3.0, "ts": 4.0, "tj": 3.0, "sj": 2.0, "r": 3.0}
    means = np.array([drawn(rng, (20, 2, 2, 2), sds).mean(axis=(0, 2, 3)) for _ in range(4000)])
    split = variance_split(drawn(rng, (300, 40, 40, 2), {**sds, "s": 5.0}))
    assert split is not None
    found = design_error(split, n_tasks=20, n_judges=2, n_repeats=2)
    assert found.absolute == pytest.approx(means[:, 0].std(), rel=0.1)
    assert found.relative == pytest.approx((means[:, 0] - means[:, 1]).std() / math.sqrt(2), rel=0.1)
