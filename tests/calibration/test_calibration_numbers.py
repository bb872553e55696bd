"""Rates and corrected numbers: exact where the truth is plain, simulated where it is known."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from core.calibration.correct import Counted, Graded, TaskParts, corrected_score, corrected_share
from core.calibration.rates import FEW_TASKS, Pair, rates
from core.calibration.results import Confusion, Corrected, Limits, Settings
from core.calibration.scores import audit
from core.stats import kappa_interval, share

SETTINGS = Settings(resamples=400, least=5)
REPETITIONS = 2000


def pairs(tp: int, fn: int, fp: int, tn: int, *, tasks: int = 20) -> list[Pair]:
    """So many labels of each kind, dealt to tasks in turn."""
    cells = [(True, True)] * tp + [(True, False)] * fn + [(False, True)] * fp + [(False, False)] * tn
    return [Pair(f"t{place % tasks:02d}", label, judge) for place, (label, judge) in enumerate(cells)]


def test_rates_are_those_of_core_stats() -> None:
    found = rates(pairs(40, 10, 6, 44), SETTINGS)
    assert (found.n, found.n_tasks, found.weighted) == (100, 20, False)
    assert found.confusion == Confusion(tp=40, fn=10, fp=6, tn=44)
    for rate, (count, total) in (
        (found.accuracy, (84, 100)),
        (found.sensitivity, (40, 50)),
        (found.specificity, (44, 50)),
    ):
        expected = share(count, total)
        assert rate is not None
        assert expected is not None
        assert (rate.value, rate.count, rate.total) == (expected.value, count, total)
        assert rate.wilson == Limits(low=expected.low, high=expected.high)
        assert rate.by_task is not None
        assert rate.by_task.low < rate.value < rate.by_task.high
    assert found.kappa.value == pytest.approx(0.68)


def test_kappas_interval_is_that_of_core_stats() -> None:
    given = pairs(40, 10, 6, 44, tasks=100)
    found = rates(given, Settings(resamples=2000)).kappa.by_task
    expected = kappa_interval(
        [pair.label for pair in given], [pair.judge for pair in given], clusters=[pair.task for pair in given]
    )
    assert found is not None
    assert expected is not None
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high), abs=0.02)


def test_perfect_labels() -> None:
    found = rates(pairs(30, 0, 0, 30), SETTINGS)
    for rate in (found.accuracy, found.sensitivity, found.specificity):
        assert rate is not None
        assert (rate.value, rate.by_task) == (1, Limits(low=1, high=1))
    assert (found.kappa.value, found.kappa.by_task) == (1, Limits(low=1, high=1))


@pytest.mark.parametrize(
    ("cells", "known"),
    [
        ((0, 0, 0, 0), (False, False, False)),
        ((3, 1, 0, 0), (True, True, False)),
        ((0, 0, 2, 2), (True, False, True)),
    ],
)
def test_what_there_are_no_labels_of_is_undefined(
    cells: tuple[int, int, int, int], known: tuple[bool, bool, bool]
) -> None:
    found = rates(pairs(*cells), SETTINGS)
    assert tuple(rate is not None for rate in (found.accuracy, found.sensitivity, found.specificity)) == known
    assert found.kappa.value is None or found.n == 4


@pytest.mark.parametrize("n_tasks", [1, FEW_TASKS - 1])
def test_few_tasks_have_no_interval_by_task(n_tasks: int) -> None:
    found = rates(pairs(20, 5, 5, 20, tasks=n_tasks), SETTINGS)
    assert found.accuracy is not None
    assert (found.accuracy.wilson is None, found.accuracy.by_task, found.kappa.by_task) == (False, None, None)


def test_verdicts_of_a_task_that_go_together_widen_the_interval_by_task() -> None:
    together = [Pair(f"t{task}", True, task % 5 != 0) for task in range(30) for _ in range(10)]
    accuracy = rates(together, SETTINGS).accuracy
    assert accuracy is not None
    assert accuracy.wilson is not None
    assert accuracy.by_task is not None
    assert accuracy.by_task.high - accuracy.by_task.low > 2 * (accuracy.wilson.high - accuracy.wilson.low)


def test_weights_count() -> None:
    given = [Pair(f"t{place:02d}", True, place % 2 == 0, 3.0 if place % 2 == 0 else 1.0) for place in range(20)]
    found = rates(given, SETTINGS)
    assert found.weighted
    assert found.accuracy is not None
    assert (found.accuracy.value, found.accuracy.count, found.accuracy.total) == (0.75, 10, 20)
    assert found.accuracy.wilson is None
    assert found.accuracy.by_task is not None


def test_equal_weights_change_nothing() -> None:
    given = pairs(40, 10, 6, 44)
    heavy = [Pair(pair.task, pair.label, pair.judge, 7.5) for pair in given]
    assert rates(heavy, SETTINGS) == rates(given, SETTINGS)


# corrected shares


def spread(yes: int, n: int, tasks: int = 20) -> dict[str, Counted]:
    """Verdicts dealt to tasks as evenly as they go."""
    return {
        f"t{task:02d}": Counted(yes // tasks + (task < yes % tasks), n // tasks + (task < n % tasks))
        for task in range(tasks)
    }


@pytest.mark.parametrize("yes", [0, 37, 100, 200])
def test_perfect_labels_correct_nothing(yes: int) -> None:
    found = corrected_share(spread(yes, 200), pairs(20, 0, 0, 20), SETTINGS)
    assert (found.apparent, found.raw, found.value) == pytest.approx((yes / 200,) * 3)
    assert found.why is None


def test_a_share_is_corrected_by_rogan_and_gladen() -> None:
    found = corrected_share(spread(100, 200), pairs(40, 10, 6, 44), SETTINGS)
    assert found.raw == pytest.approx((0.5 + 0.88 - 1) / (0.8 + 0.88 - 1))
    assert found.analytic is not None
    assert found.by_task is not None
    assert found.by_task.low < found.value < found.by_task.high  # type: ignore[operator]


def test_a_corrected_share_is_held_between_0_and_1() -> None:
    found = corrected_share(spread(2, 200), pairs(40, 10, 10, 40), SETTINGS)
    assert found.raw is not None
    assert found.raw < 0
    assert found.value == 0


@pytest.mark.parametrize(
    ("cells", "why"),
    [
        ((4, 0, 0, 50), "4 labels met and 50 unmet, expected 5 of each"),
        ((50, 0, 0, 4), "50 labels met and 4 unmet, expected 5 of each"),
        ((0, 0, 0, 0), "0 labels met and 0 unmet"),
        ((5, 5, 5, 5), "sensitivity + specificity is 1 or less"),
        ((2, 8, 8, 2), "sensitivity + specificity is 1 or less"),
    ],
)
def test_what_labels_dont_tell_is_undefined(cells: tuple[int, int, int, int], why: str) -> None:
    share_of = corrected_share(spread(50, 100), pairs(*cells), SETTINGS)
    score = corrected_score([parts(cells)], ["all"], SETTINGS)
    for found in (share_of, score):
        assert found.value is None
        assert found.why is not None
        assert why in found.why
    assert (share_of.apparent, score.apparent) == (0.5, 60)


def test_no_verdicts() -> None:
    assert corrected_share({}, pairs(9, 1, 1, 9), SETTINGS).why == "there are no verdicts"


# corrected scores


def parts(cells: Sequence[float], earned: float = 60.0, points: float = 100.0) -> TaskParts:
    tp, fn, fp, tn = cells
    graded = Graded(tp, fn, fp, tn, n_met=round(tp + fn), n_unmet=round(fp + tn))
    return TaskParts(
        scored=True, earned={"all": earned}, points={"all": points}, labels={"all": graded} if sum(cells) else {}
    )


def test_perfect_labels_leave_a_score_as_it_is() -> None:
    tasks = [parts((3, 0, 0, 2), earned=10.0 * place) for place in range(11)]
    found = corrected_score(tasks, ["all"], SETTINGS)
    assert (found.apparent, found.raw, found.n) == (50, 50, 11)


def test_a_score_is_corrected_kind_by_kind() -> None:
    """Merits: se 0.8, sp 0.9. Errors, worth −40 in all: se 0.5, sp 1."""
    merits, faults = Graded(8, 2, 1, 9, 10, 10), Graded(5, 5, 0, 10, 10, 10)
    task = TaskParts(
        scored=True,
        start=0.0,
        earned={"merit": 60.0, "fault": -10.0},
        points={"merit": 100.0, "fault": -40.0},
        labels={"merit": merits, "fault": faults},
    )
    found = corrected_score([task], ["merit", "fault"], SETTINGS)
    assert found.apparent == 50
    assert found.value == pytest.approx((60 - 100 * 0.1) / 0.7 + -10 / 0.5)


def test_a_kind_without_points_needs_no_labels() -> None:
    tasks = [parts((3, 0, 0, 2)) for _ in range(12)]
    assert corrected_score(tasks, ["all", "nowhere"], SETTINGS).value == 60


def test_labels_of_tasks_without_a_score_count() -> None:
    scored = parts((0, 0, 0, 0))
    labelled = TaskParts(labels={"all": Graded(8, 2, 1, 9, 10, 10)})
    found = corrected_score([scored, labelled], ["all"], SETTINGS)
    assert (found.n, found.apparent) == (1, 60)
    assert found.value == pytest.approx((60 - 10) / 0.7)


def test_no_task_with_a_score() -> None:
    assert corrected_score([TaskParts()], ["all"], SETTINGS).apparent is None


@pytest.mark.parametrize(
    ("yes", "expected"), [(1.0, (2.0, 0.0, 0.0, 0.0)), (0.25, (0.5, 1.5, 0.0, 0.0)), (0.0, (0.0, 2.0, 0.0, 0.0))]
)
def test_a_label_counts_by_the_share_of_repeats(yes: float, expected: tuple[float, ...]) -> None:
    met = Graded().plus(True, yes, 2.0)
    unmet = Graded().plus(False, yes, 2.0)
    assert (met.tp, met.fn, met.fp, met.tn) == expected
    assert (unmet.fp, unmet.tn, unmet.tp, unmet.fn) == expected
    assert (met.n_met, met.n_unmet, unmet.n_met, unmet.n_unmet) == (1, 0, 0, 1)


# blocked tasks


@pytest.mark.parametrize(
    ("errors", "n", "blocked"),
    [
        (0, 10, "no"),
        (1, 10, "no"),
        (2, 10, "yes"),
        (2, 20, "no"),
        (3, 20, "yes"),
        (5, 9, "too few"),
        (0, 9, "too few"),
    ],
)
def test_more_than_a_tenth_of_errors_blocks(errors: int, n: int, blocked: str) -> None:
    given = [Pair("t", True, place >= errors) for place in range(n)]
    (found,) = audit(given, SETTINGS)
    assert (found.errors, found.n, found.blocked) == (errors, n, blocked)
    assert found.share == errors / n
    assert found.wilson is not None


def test_weighted_errors_block_by_their_weight() -> None:
    given = [Pair("t", True, place > 0, 4.0 if place == 0 else 1.0) for place in range(12)]
    (found,) = audit(given, SETTINGS)
    assert (found.errors, found.share, found.wilson, found.blocked) == (1, 4 / 15, None, "yes")


# simulations with a known truth


def covered(found: Sequence[Corrected], truth: float) -> float:
    limits = [one.by_task for one in found]
    assert sum(one is None for one in limits) < 0.01 * len(limits)
    return sum(one is not None and one.low <= truth <= one.high for one in limits) / len(limits)


@pytest.mark.slow
@pytest.mark.parametrize(("prevalence", "se", "sp"), [(0.6, 0.9, 0.8), (0.3, 0.85, 0.95)])
def test_corrected_shares_cover(prevalence: float, se: float, sp: float) -> None:
    """60 tasks of 20 verdicts, 6 of them labelled; tasks differ in how much is met."""
    rng = np.random.default_rng(5)
    settings = Settings(resamples=500)
    found = []
    for _ in range(REPETITIONS):
        met = rng.random((60, 20)) < rng.beta(4 * prevalence, 4 * (1 - prevalence), (60, 1))
        said = np.where(met, rng.random((60, 20)) < se, rng.random((60, 20)) >= sp)
        verdicts = {f"t{task:02d}": Counted(int(row.sum()), 20) for task, row in enumerate(said)}
        labelled = [
            Pair(f"t{task:02d}", bool(met[task, unit]), bool(said[task, unit]))
            for task in range(60)
            for unit in range(6)
        ]
        found.append(corrected_share(verdicts, labelled, settings))
    assert 0.93 <= covered(found, prevalence) <= 0.97


@pytest.mark.slow
@pytest.mark.parametrize("repeats", [1, 3])
def test_corrected_scores_cover(repeats: int) -> None:
    """Merits and faults by rates of their own; 50 tasks, 12 merits and 8 faults of unequal weight, half labelled."""
    rng = np.random.default_rng(7)
    settings = Settings(resamples=500)
    kinds = {"merit": (12, 0.6, 0.9, 0.8), "fault": (8, 0.3, 0.75, 0.95)}
    weights = {"merit": np.arange(1, 13) / 78 * 100, "fault": -np.arange(1, 9) / 36 * 40}
    truth = 0.6 * 100 - 0.3 * 40
    found = []
    for _ in range(REPETITIONS):
        drawn = {}
        for kind, (n, prevalence, se, sp) in kinds.items():
            met = rng.random((50, n)) < rng.beta(5 * prevalence, 5 * (1 - prevalence), (50, 1))
            chance = np.where(met, se, 1 - sp)
            drawn[kind] = met, (rng.random((repeats, 50, n)) < chance).mean(axis=0)
        tasks = []
        for task in range(50):
            labels = {}
            for kind, (met, yes) in drawn.items():
                graded = Graded()
                for unit in range(0, met.shape[1], 2):
                    graded = graded.plus(bool(met[task, unit]), float(yes[task, unit]), 1.0)
                labels[kind] = graded
            tasks.append(
                TaskParts(
                    scored=True,
                    earned={kind: float(weights[kind] @ yes[task]) for kind, (_, yes) in drawn.items()},
                    points={kind: float(weights[kind].sum()) for kind in kinds},
                    labels=labels,
                )
            )
        found.append(corrected_score(tasks, list(kinds), settings))
    assert 0.93 <= covered(found, truth) <= 0.97
