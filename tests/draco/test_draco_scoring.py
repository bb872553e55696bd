"""DRACO's numbers: the rules of the paper, what is missing, what is zero."""

from __future__ import annotations

import random
from fractions import Fraction
from typing import Any

import pytest
from draco_helpers import Weights, all_judged, judgements, submission, task_of
from hypothesis import given
from hypothesis import strategies as st

from core.errors import InputError
from core.model import Count, Judgement, Task, TaskScore
from plugins.draco.grader import DracoGrader
from plugins.draco.rubric import Criterion
from plugins.draco.scoring import NO_SCORES, Scores, score, total


def grade(task: Task, rows: list[Judgement]) -> TaskScore:
    return DracoGrader(None).score(task, submission(), rows)


def criteria(weights: dict[str, float]) -> list[Criterion]:
    return [Criterion(name, weight, "States it", "facts") for name, weight in weights.items()]


@pytest.mark.parametrize(
    ("weights", "met", "expected"),
    [
        pytest.param({"a": 10, "b": 5}, {"a": True, "b": True}, (100, 100, 100), id="all met"),
        pytest.param({"a": 10, "b": 5}, {"a": False, "b": False}, (0, 0, 0), id="all unmet"),
        pytest.param({"a": 10, "b": 5}, {"a": True, "b": False}, (200 / 3, 200 / 3, 50), id="weighted"),
        pytest.param({"a": 10, "n": -5}, {"a": True, "n": True}, (50, 50, 50), id="a met negative costs"),
        pytest.param({"a": 10, "n": -5}, {"a": True, "n": False}, (100, 100, 100), id="an unmet negative passes"),
        pytest.param(
            {"a": 10, "n": -5}, {"a": False, "n": False}, (0, 0, 50), id="unmet negative: pass rate only"
        ),
        pytest.param({"a": 10, "n": -50}, {"a": True, "n": True}, (-400, 0, 50), id="clamped at 0"),
        pytest.param({"a": 10, "b": 10}, {"a": True}, (100, 100, 100), id="missing leaves both sides"),
        pytest.param({"a": 10, "n": -5}, {"a": True}, (100, 100, 100), id="a lost negative is not UNMET"),
        pytest.param({"a": 10, "n": -5}, {"n": False}, None, id="no judged positive: no number"),
        pytest.param({"a": 10, "n": -5}, {}, None, id="nothing judged: no number"),
        pytest.param({"m": -5, "n": -15}, {"m": True, "n": False}, (75, 75, 50), id="negatives only"),
        pytest.param({"m": -5, "n": -15}, {"m": True, "n": True}, (0, 0, 0), id="negatives only, all met"),
        pytest.param({"m": -5, "n": -15}, {"m": True}, (0, 0, 0), id="negatives only, over the judged ones"),
        pytest.param({"m": -5, "n": -15}, {}, None, id="negatives only, nothing judged"),
        pytest.param({"a": 0.1, "b": 0.2}, {"a": True, "b": True}, (100, 100, 100), id="weights with fractions"),
        pytest.param({"a": 2.5, "b": 7}, {"a": True, "b": False}, (250 / 9.5, 250 / 9.5, 50), id="mixed weights"),
    ],
)
def test_score(
    weights: dict[str, float], met: dict[str, bool], expected: tuple[float, float, float] | None
) -> None:
    assert score(criteria(weights), met) == (NO_SCORES if expected is None else Scores(*expected))


def test_sums_are_exact_and_divided_once() -> None:
    weights: dict[str, float] = {"big": 2**53, "one": 1, "two": 2}
    found = score(criteria(weights), {"big": False, "one": True, "two": True})
    assert found.raw == 300 / (2**53 + 3)
    assert total([2**53, 1, 2]) == 2**53 + 3
    assert total([0.1, 0.2, -0.3]) == Fraction(0.1) + Fraction(0.2) - Fraction(0.3)


# Each case is something that other harnesses get wrong.


def test_a_run_whose_every_call_failed_has_no_score_and_earns_no_pass_rate() -> None:
    task = task_of({"facts": {"a": 10, "n": -5}})
    found = grade(task, all_judged(task, None))
    assert found.metrics["normalized"] is None
    assert found.metrics["pass_rate"] is None
    assert (found.n_graded, found.n_expected) == (0, 2)


def test_a_fully_failed_run_is_no_zero_in_the_mean_of_runs() -> None:
    task = task_of({"facts": {"a": 10, "b": 10}})
    found = grade(task, judgements(task, {"a": True, "b": False}) + all_judged(task, None, repeat=2))
    assert found.metrics["normalized"] == 50
    assert [run.metrics["normalized"] for run in found.by_run] == [50, None]
    assert (found.n_graded, found.n_expected) == (2, 4)


def test_a_failed_verdict_is_counted_beside_the_score_by_sign_and_axis() -> None:
    task = task_of({"facts": {"a": 10, "n": -5}, "style": {"s": 5}})
    found = grade(task, judgements(task, {"a": True, "n": None, "s": True}))
    assert found.metrics["normalized"] == 100
    assert found.coverage_by == {
        "sign": {"positive": Count(graded=2, expected=2), "negative": Count(graded=0, expected=1)},
        "axis": {"facts": Count(graded=1, expected=2), "style": Count(graded=1, expected=1)},
    }


def test_a_criterion_without_a_row_is_expected_all_the_same() -> None:
    task = task_of({"facts": {"a": 10, "b": 10}})
    found = grade(task, judgements(task, {"a": True}))
    assert (found.n_graded, found.n_expected) == (1, 2)


def test_verdicts_are_matched_by_id_and_not_by_place() -> None:
    before = task_of({"facts": {"a": 10, "b": 4}, "style": {"s": 6}})
    after = task_of({"style": {"s": 6}, "facts": {"b": 4, "a": 10}})
    rows = judgements(before, {"a": True, "b": False, "s": True})
    assert grade(before, rows).metrics == grade(after, rows).metrics


def test_clamping_is_done_run_by_run_and_not_on_the_mean() -> None:
    task = task_of({"facts": {"a": 10, "n": -30}})
    rows = judgements(task, {"a": True, "n": False}) + judgements(task, {"a": True, "n": True}, repeat=2)
    found = grade(task, rows)
    assert found.metrics["normalized"] == 50
    assert found.metrics["raw"] == (100 - 200) / 2


def test_each_section_is_scored_and_clamped_by_itself() -> None:
    task = task_of({"facts": {"a": 10, "n": -30}, "style": {"s": 5, "t": 5}, "none": {"x": -5}})
    found = grade(task, judgements(task, {"a": True, "n": True, "s": True, "t": False, "x": False}))
    assert found.metrics == {
        "normalized": 0,
        "pass_rate": 60,
        "raw": 100 * (10 - 30 + 5) / 20,
        "normalized/facts": 0,
        "normalized/style": 50,
        "normalized/none": 100,
        "pass_rate/facts": 50,
        "pass_rate/style": 50,
        "pass_rate/none": 100,
    }


def test_a_section_without_a_judged_positive_is_missing_alone() -> None:
    task = task_of({"facts": {"a": 10}, "style": {"s": 5, "n": -5}})
    found = grade(task, judgements(task, {"a": True, "s": None, "n": False}))
    assert found.metrics["normalized/style"] is None
    assert found.metrics["pass_rate/style"] is None
    assert found.metrics["normalized"] == 100


def test_nothing_judged_names_every_metric_and_gives_none() -> None:
    task = task_of({"facts": {"a": 10}})
    found = DracoGrader(None).score(task, None, [])
    assert found.metrics == dict.fromkeys(
        ["normalized", "pass_rate", "raw", "normalized/facts", "pass_rate/facts"]
    )
    assert found.by_run == ()
    assert (found.n_graded, found.n_expected) == (0, 1)
    assert found.coverage_by == {
        "sign": {"positive": Count(graded=0, expected=1)},
        "axis": {"facts": Count(graded=0, expected=1)},
    }


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        pytest.param({"unit": "criterion/z"}, InputError, "no such criterion", id="unknown criterion"),
        pytest.param({"unit": "a"}, InputError, "no such criterion", id="unit without its prefix"),
        pytest.param({"verdict": {"met": "yes"}}, InputError, "another form", id="verdict that is no bool"),
        pytest.param({"verdict": {"verdict": True}}, InputError, "another form", id="another benchmark's verdict"),
        pytest.param({"task_id": "t2"}, ValueError, "t2", id="another task's row"),
        pytest.param({"unit": "criterion/b"}, ValueError, "two judgements", id="two rows of one verdict"),
        pytest.param({"attempt": 2}, ValueError, "one attempt", id="another attempt's row"),
    ],
)
def test_rows_that_do_not_belong_are_refused(change: dict[str, Any], error: type[Exception], message: str) -> None:
    task = task_of({"facts": {"a": 10, "b": 5}})
    rows = judgements(task, {"a": True, "b": True})
    rows[0] = rows[0].model_copy(update=change)
    with pytest.raises(error, match=message):
        grade(task, rows)


def test_the_same_criterion_of_another_repeat_is_no_duplicate() -> None:
    task = task_of({"facts": {"a": 10}})
    found = grade(task, judgements(task, {"a": True}, repeat=3) + judgements(task, {"a": False}, repeat=1))
    assert [run.repeat for run in found.by_run] == [1, 3]
    assert found.metrics["normalized"] == 50


# Properties, over any rubric and any verdicts.

weights = st.one_of(st.integers(-500, 20), st.floats(-500, 20)).filter(lambda weight: abs(weight) > 1e-6)
rubrics = st.dictionaries(st.sampled_from([f"c{n}" for n in range(12)]), weights, min_size=1)
verdicts = st.dictionaries(st.sampled_from([f"c{n}" for n in range(12)]), st.booleans())


@given(rubrics, verdicts)
def test_numbers_stay_in_their_range(given_weights: dict[str, float], met: dict[str, bool]) -> None:
    found = score(criteria(given_weights), met)
    if found.raw is None:
        assert found == NO_SCORES
        return
    assert found.normalized == min(max(found.raw, 0), 100)
    assert found.pass_rate is not None
    assert 0 <= found.pass_rate <= 100


@given(rubrics)
def test_all_unmet_is_zero_where_there_are_positives(given_weights: dict[str, float]) -> None:
    found = score(criteria(given_weights), dict.fromkeys(given_weights, False))
    assert found.normalized == (0 if any(weight > 0 for weight in given_weights.values()) else 100)


@given(rubrics, verdicts, st.randoms(use_true_random=False))
def test_order_does_not_matter(given_weights: dict[str, float], met: dict[str, bool], rng: random.Random) -> None:
    names = list(given_weights)
    rng.shuffle(names)
    shuffled = criteria({name: given_weights[name] for name in names})
    assert score(shuffled, met) == score(criteria(given_weights), met)


@given(rubrics, verdicts)
def test_what_was_not_judged_might_as_well_not_be_there(
    given_weights: dict[str, float], met: dict[str, bool]
) -> None:
    judged = {name: weight for name, weight in given_weights.items() if name in met}
    if any(weight > 0 for weight in judged.values()):
        assert score(criteria(given_weights), met) == score(criteria(judged), met)


@given(rubrics, verdicts)
def test_a_missing_row_changes_coverage_and_nothing_else(
    given_weights: dict[str, float], met: dict[str, bool]
) -> None:
    scored = {name: verdict for name, verdict in met.items() if name in given_weights}
    weights_of: Weights = {"facts": given_weights}
    task = task_of(weights_of)
    without = grade(task, judgements(task, scored or {next(iter(given_weights)): None}))
    missing = {name: None for name in given_weights if name not in scored}
    with_missing = grade(task, judgements(task, {**scored, **missing}))
    assert with_missing.metrics == without.metrics
    assert with_missing.n_graded == without.n_graded == len(scored)
