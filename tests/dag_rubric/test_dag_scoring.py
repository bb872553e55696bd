"""Scores from verdicts: the published table, the gate's figures, trees, node rules, and what is missing."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import pytest
from dag_helpers import EXAMPLE, Parents, judgement, node, passed, row, submission, task_from, task_of
from hypothesis import given
from hypothesis import strategies as st

from core.errors import InputError
from core.model import Count, Task
from plugins.dag_rubric.gate import gated
from plugins.dag_rubric.grader import DagGrader
from plugins.dag_rubric.rubric import Rubric
from plugins.dag_rubric.settings import Settings

TASK = task_of()
NODES = list(EXAMPLE)
#: Passed checkpoints per node (e1, e2, e3, a4, a5, a6).
REPORTS = [(4, 5, 4, 0, 0, 0), (0, 0, 0, 5, 3, 4), (3, 4, 1, 3, 1, 2), (4, 0, 4, 5, 3, 4)]
SCHEMES = ["uniform", "leaf_sum", "leaf_split", "leaf_reach", "one_plus_sum", "katz", "descendants"]
TABLE = [
    [50.00, 62.50, 44.44, 57.14, 71.43, 63.16, 69.23],
    [50.00, 37.50, 55.56, 42.86, 28.57, 36.84, 30.77],
    [53.89, 60.42, 54.35, 57.62, 62.74, 59.17, 61.41],
    [83.33, 62.50, 72.22, 71.43, 64.29, 71.05, 69.23],
]


def metrics(
    counts: Mapping[str, int | None] | tuple[int | None, ...], task: Task = TASK, **config: Any
) -> Mapping[str, Any]:
    """The metrics of a task of which so many checkpoints are met."""
    found = counts if isinstance(counts, Mapping) else dict(zip(NODES, counts, strict=True))
    return DagGrader(config, None).score(task, submission(), passed(task, found)).metrics


def typed(parents: Parents, edge: str) -> Task:
    return task_of(
        {name: [{"id": parent, "edge": edge} for parent in found] for name, found in parents.items()},
        sizes={"e1": 4, "e2": 5, "e3": 4, "a4": 5, "a5": 3, "a6": 4},
    )


@pytest.mark.parametrize("report", range(4), ids=["evidence alone", "conclusions alone", "mixed", "one lost root"])
def test_the_table_of_reports_by_each_scheme_as_the_chosen_one_and_besides(report: int) -> None:
    besides = metrics(REPORTS[report])
    for scheme, expected in zip(SCHEMES, TABLE[report], strict=True):
        chosen = metrics(REPORTS[report], weights={"scheme": scheme})
        assert round(chosen["score"], 2) == expected, scheme
        assert f"score/{scheme}" not in chosen
        if scheme != "leaf_sum":
            assert besides[f"score/{scheme}"] == chosen["score"]
    assert besides["score"] == metrics(REPORTS[report], weights={"scheme": "leaf_sum"})["score"]


def test_the_names_of_the_metrics_and_their_order() -> None:
    assert list(metrics(REPORTS[0])) == [
        "score",
        "evidential",
        "analytical",
        "score/leaf_split",
        "score/leaf_reach",
        "score/one_plus_sum",
        "score/katz",
        "score/descendants",
        "score/uniform",
    ]


@pytest.mark.parametrize(("report", "parts"), [(0, (62.5, 0)), (1, (0, 37.5)), (3, (25, 37.5))])
def test_the_parts_are_those_of_the_types_and_add_up(report: int, parts: tuple[float, float]) -> None:
    found = metrics(REPORTS[report])
    assert (found["evidential"], found["analytical"]) == parts
    assert found["evidential"] + found["analytical"] == found["score"]


@pytest.mark.parametrize("edge", ["weak", "strong", "hard"])
@pytest.mark.parametrize(
    ("report", "expected"),
    [(0, (62.50, 62.50, 62.50)), (1, (14.58, 1.58, 0.0)), (3, (46.30, 30.90, 25.00))],
)
def test_the_figures_of_the_gate(edge: str, report: int, expected: tuple[float, ...]) -> None:
    found = metrics(REPORTS[report], typed(EXAMPLE, edge), aggregation="gate")
    assert round(found["score"], 2) == expected[["weak", "strong", "hard"].index(edge)]
    assert found["evidential"] + found["analytical"] == pytest.approx(found["score"], abs=1e-12)


def test_an_edge_without_a_type_is_strong_and_lambda_is_a_setting() -> None:
    assert metrics(REPORTS[1], aggregation="gate") == metrics(
        REPORTS[1], typed(EXAMPLE, "strong"), aggregation="gate"
    )
    loose = metrics(REPORTS[1], aggregation="gate", gate={"strong": "1"})
    assert loose["score"] == 37.5
    assert (
        metrics(REPORTS[1], aggregation="gate", gate={"strong": 0.6})["score"]
        == metrics(REPORTS[1], typed(EXAMPLE, "weak"), aggregation="gate")["score"]
    )


@given(st.randoms(use_true_random=False))
def test_the_order_of_nodes_edges_and_rows_changes_no_bit(rng: random.Random) -> None:
    counts = dict(zip(NODES, (2, 3, 1, 4, 2, 1), strict=True))
    given = row()
    given["nodes"] = [
        {**listed, "parents": rng.sample(listed["parents"], len(listed["parents"]))}
        for listed in rng.sample(given["nodes"], len(given["nodes"]))
    ]
    shuffled = task_from(given)
    for config in ({}, {"aggregation": "gate"}, {"weights": {"scheme": "leaf_split"}}):
        rows = passed(shuffled, counts)
        rng.shuffle(rows)
        found = DagGrader(config, None).score(shuffled, submission(), rows).metrics
        assert found == metrics(counts, **config)


@pytest.mark.parametrize(
    ("rule", "met", "expected"),
    [
        ("fraction", 3, 75),
        ("all", 3, 0),
        ("all", 4, 100),
        ("threshold(0.75)", 3, 100),
        ("threshold(0.75)", 2, 0),
        ("threshold( 0.76 )", 3, 0),
        ("threshold(1)", 4, 100),
    ],
)
def test_a_nodes_score(rule: str, met: int, expected: float) -> None:
    task = task_of({"e": []}, sizes={"e": 4})
    assert metrics({"e": met}, task, node_score=rule)["score"] == expected


def test_a_threshold_is_compared_exactly() -> None:
    task = task_of({"e": []}, sizes={"e": 10})
    assert metrics({"e": 7}, task, node_score="threshold(0.7)")["score"] == 100
    assert metrics({"e": 3}, task, node_score="threshold(0.3)")["score"] == 100


# Trees.

TREE: Parents = {"e1": [], "e2": [], "e3": [], "a4": ["e1", "e2"], "a5": ["a4", "e3"]}


@pytest.mark.parametrize(
    ("met", "expected"),
    [
        pytest.param({"e1", "e2", "e3", "a4", "a5"}, 1, id="all"),
        pytest.param({"a5"}, Fraction(1, 3), id="the conclusion alone"),
        pytest.param({"e3"}, Fraction(1, 3), id="a whole subtree"),
        pytest.param({"e1"}, Fraction(1, 9), id="a leaf of the tree"),
        pytest.param({"e1", "e2", "a4"}, Fraction(1, 3), id="the other subtree"),
    ],
)
def test_the_mean_of_a_tree(met: set[str], expected: Fraction | int) -> None:
    task = task_of(TREE)
    found = metrics({name: int(name in met) for name in TREE}, task, aggregation="tree_mean")
    assert found["score"] == float(100 * Fraction(expected))
    assert found["evidential"] + found["analytical"] == pytest.approx(found["score"])


def test_the_mean_of_a_tree_uses_the_tasks_own_weights_among_siblings() -> None:
    weights = {"e1": 3, "e2": 1, "e3": 0, "a4": 2, "a5": 9}
    given = row(TREE)
    given["nodes"] = [{**listed, "weight": weights[listed["id"]]} for listed in given["nodes"]]
    task = task_from(given)

    def score(*met: str) -> float:
        found = metrics({name: int(name in met) for name in TREE}, task, aggregation="tree_mean")["score"]
        assert isinstance(found, float)
        return found

    assert score("e3") == 0
    assert score("a5") == pytest.approx(100 / 3)
    # the subtree of a4 has 2/3 of the whole; e1 has three quarters of two thirds of it
    assert score("e1") == pytest.approx(100 * 2 / 3 * 2 / 3 * 3 / 4)
    assert score(*TREE) == pytest.approx(100)


@pytest.mark.parametrize(
    ("critical", "met", "expected"),
    [
        pytest.param(set(), {"e1", "a5"}, Fraction(4, 9), id="without critical nodes: the mean"),
        pytest.param({"e3"}, set(TREE) - {"e3"}, 0, id="a critical one fails"),
        pytest.param({"e3"}, {"e3", "a5"}, Fraction(1, 2), id="a critical one that holds is not counted"),
        pytest.param({"e1"}, set(TREE) - {"e1"}, Fraction(2, 3), id="only its own subtree fails"),
        pytest.param({"a4", "e1"}, set(TREE) - {"e1"}, 0, id="failure is handed on"),
        pytest.param({"a4", "e3"}, set(TREE), 1, id="all critical and perfect"),
        pytest.param({"a5"}, {"e3"}, Fraction(1, 3), id="nothing stands above the conclusion"),
    ],
)
def test_the_critical_gate_of_a_tree(critical: set[str], met: set[str], expected: Fraction | int) -> None:
    given = row(TREE)
    given["nodes"] = [{**listed, "critical": listed["id"] in critical} for listed in given["nodes"]]
    task = task_from(given)
    found = metrics({name: int(name in met) for name in TREE}, task, aggregation="critical_gate")
    assert found["score"] == pytest.approx(float(100 * Fraction(expected)))
    assert found["evidential"] + found["analytical"] == pytest.approx(found["score"])


def test_half_a_critical_node_is_not_enough() -> None:
    given = row({"e1": [], "a2": ["e1"]}, sizes={"e1": 2, "a2": 1})
    given["nodes"][0]["critical"] = True
    task = task_from(given)
    assert metrics({"e1": 1, "a2": 1}, task, aggregation="critical_gate")["score"] == 0
    assert metrics({"e1": 2, "a2": 1}, task, aggregation="critical_gate")["score"] == 100


def test_a_trees_summary_shows_weighted_schemes_besides_with_the_chosen_one() -> None:
    found = metrics({name: int(name == "a5") for name in TREE}, task_of(TREE), aggregation="tree_mean")
    plain = metrics({name: int(name == "a5") for name in TREE}, task_of(TREE))
    assert found["score/leaf_sum"] == plain["score"]
    assert found["score/uniform"] == plain["score/uniform"] == 20


@pytest.mark.parametrize("aggregation", ["tree_mean", "critical_gate"])
@pytest.mark.parametrize(
    ("parents", "reason"),
    [
        pytest.param(EXAMPLE, "it has 2 conclusions (a5, a6)", id="two conclusions"),
        pytest.param(
            {"e1": [], "a2": ["e1"], "a3": ["e1"], "a4": ["a2", "a3"]},
            "2 nodes build on node e1 (a2, a3)",
            id="a diamond",
        ),
    ],
)
def test_a_graph_that_is_no_tree_is_refused_by_name(parents: Parents, reason: str, aggregation: str) -> None:
    with pytest.raises(InputError) as refused:
        DagGrader({"aggregation": aggregation}, None).expected(task_of(parents), None)
    assert "task 't1' is not a tree" in str(refused.value)
    assert reason in str(refused.value)


def test_explicit_weights_are_refused_for_a_task_without() -> None:
    grader = DagGrader({"weights": {"scheme": "explicit"}}, None)
    with pytest.raises(InputError, match="task 't1' has no weights of its own"):
        grader.expected(TASK, None)
    weighed = row({"e1": [], "a2": ["e1"]})
    for listed, weight in zip(weighed["nodes"], (0.9, 0.1), strict=True):
        listed["weight"] = weight
    task = task_from(weighed)
    assert metrics({"e1": 1, "a2": 0}, task, weights={"scheme": "explicit"})["score"] == 90
    also = {"also": ["explicit", "uniform", "leaf_sum"]}
    assert metrics({"e1": 1, "a2": 0}, task, weights=also)["score/explicit"] == 90
    assert metrics(REPORTS[0], weights=also)["score/explicit"] is None


# Missing.


def test_a_nodes_score_is_over_its_graded_checkpoints() -> None:
    rows = [
        judgement(TASK, f"{name}.c{place}", None if name == "e2" and place > 2 else place == 1)
        for name, size in zip(NODES, (4, 5, 4, 5, 3, 4), strict=True)
        for place in range(1, size + 1)
    ]
    found = DagGrader({"weights": {"scheme": "uniform"}}, None).score(TASK, submission(), rows)
    assert found.metrics["score"] == pytest.approx(100 * (1 / 4 + 1 / 2 + 1 / 4 + 1 / 5 + 1 / 3 + 1 / 4) / 6)
    assert (found.n_graded, found.n_expected) == (22, 25)
    assert found.coverage_by == {
        "type": {"evidential": Count(graded=10, expected=13), "analytical": Count(graded=12, expected=12)}
    }


def test_a_node_without_a_verdict_leaves_no_score_and_is_no_zero() -> None:
    rows = passed(TASK, dict(zip(NODES, (4, None, 4, 5, 3, 4), strict=True)))
    found = DagGrader({}, None).score(TASK, submission(), rows)
    assert set(found.metrics.values()) == {None}
    assert (found.n_graded, found.n_expected) == (20, 25)
    both = DagGrader({}, None).score(
        TASK, submission(), rows + passed(TASK, dict(zip(NODES, REPORTS[0], strict=True)), repeat=2)
    )
    assert both.metrics["score"] == 62.5
    assert [run.metrics["score"] for run in both.by_run] == [None, 62.5]


def test_no_judgement_at_all_gives_names_and_counts() -> None:
    found = DagGrader({}, None).score(TASK, None, [])
    assert list(found.metrics) == list(metrics(REPORTS[0]))
    assert set(found.metrics.values()) == {None}
    assert (found.n_graded, found.n_expected) == (0, 25)
    assert found.coverage_by["type"]["evidential"] == Count(graded=0, expected=13)


def test_repeats_are_averaged() -> None:
    rows = passed(TASK, dict(zip(NODES, REPORTS[0], strict=True))) + passed(
        TASK, dict(zip(NODES, REPORTS[1], strict=True)), repeat=2
    )
    assert DagGrader({}, None).score(TASK, submission(), rows).metrics["score"] == 50


@pytest.mark.parametrize(
    ("change", "error", "said"),
    [
        ({"unit": "checkpoint/nobody"}, InputError, "no such checkpoint"),
        ({"unit": "criterion/e1.c1"}, InputError, "no such checkpoint"),
        ({"verdict": {"met": "yes"}}, InputError, "another form"),
        ({"task_id": "t2"}, ValueError, "given for task t1"),
        ({"unit": "checkpoint/e1.c2"}, ValueError, "two judgements"),
        ({"attempt": 2}, ValueError, "one attempt"),
    ],
    ids=["unknown unit", "another benchmark's unit", "verdict", "task", "twice", "attempts"],
)
def test_rows_that_do_not_belong_are_refused(change: dict[str, Any], error: type[Exception], said: str) -> None:
    rows = passed(TASK, dict(zip(NODES, REPORTS[0], strict=True)))
    rows[0] = rows[0].model_copy(update=change)
    with pytest.raises(error, match=said):
        DagGrader({}, None).score(TASK, submission(), rows)


@pytest.mark.parametrize(
    ("config", "key", "said"),
    [
        ({"form": "with_hint"}, "benchmark.form", "did you mean 'with_hints'?"),
        ({"weights": {"scheme": "leafsum"}}, "benchmark.weights.scheme", "did you mean 'leaf_sum'?"),
        ({"weights": {"gamma": "1.01"}}, "benchmark.weights.gamma", "out of range"),
        ({"weights": {"gamma": -0.1}}, "benchmark.weights.gamma", "out of range"),
        ({"weights": {"gamma": "a half"}}, "benchmark.weights.gamma", "not a decimal number"),
        ({"weights": {"gamma": True}}, "benchmark.weights.gamma", "not a decimal number"),
        ({"weights": {"also": ["leaf_sum", "uniform"]}}, "benchmark.weights.also", "at least 2 besides leaf_sum"),
        ({"weights": {"also": "uniform"}}, "benchmark.weights.also", "not a list"),
        ({"weights": {"shceme": "uniform"}}, "benchmark.weights", "did you mean 'scheme'?"),
        ({"weights": 3}, "benchmark.weights", "not a section"),
        ({"node_score": "threshold"}, "benchmark.node_score", "threshold(0.6)"),
        ({"node_score": "threshold(0)"}, "benchmark.node_score", "every node would pass"),
        ({"node_score": "threshold(2)"}, "benchmark.node_score", "out of range"),
        ({"aggregation": "mean"}, "benchmark.aggregation", "tree_mean"),
        ({"gate": {"weak": "7"}}, "benchmark.gate.weak", "out of range"),
        ({"judging": "per_nodes"}, "benchmark.judging", "did you mean 'per_node'?"),
        ({"transitive_reduction": "yes"}, "benchmark.transitive_reduction", "true or false"),
    ],
    ids=lambda value: str(value) if isinstance(value, dict) else "",
)
def test_a_setting_that_is_none_is_refused_by_its_key(config: dict[str, Any], key: str, said: str) -> None:
    with pytest.raises(InputError) as refused:
        Settings.of(config)
    assert refused.value.where == key
    assert said in str(refused.value)


def test_helpers_make_what_they_say() -> None:
    assert [len(listed["checkpoints"]) for listed in TASK.payload["nodes"]] == [4, 5, 4, 5, 3, 4]
    assert node("e9", n=2)["checkpoints"][1]["id"] == "e9.c2"


def by_definition(rubric: Rubric, scores: Sequence[Fraction], passing: Mapping[str, Fraction]) -> list[Fraction]:
    """The gate, in fractions throughout."""
    credit = [Fraction(0)] * len(scores)
    for number in rubric.graph.order:
        parents = zip(rubric.graph.parents[number], rubric.nodes[number].edges, strict=True)
        factors = [credit[parent] + (1 - credit[parent]) * passing[edge] for parent, edge in parents]
        credit[number] = math.prod(factors, start=scores[number])
    return credit


def test_the_gate_is_exact_in_small_graphs() -> None:
    rng, passing = random.Random(5), Settings.of({}).passing
    for _ in range(50):
        parents = {
            str(n): [{"id": str(m), "edge": rng.choice(list(passing))} for m in range(n) if rng.random() < 0.3]
            for n in range(8)
        }
        rubric = Rubric.of_nodes(row(parents)["nodes"])
        scores = [Fraction(rng.randint(0, 3), 3) for _ in parents]
        assert gated(rubric, scores, passing) == by_definition(rubric, scores, passing)


def test_the_gate_of_a_deep_graph_stays_small_and_near() -> None:
    passing = Settings.of({}).passing
    parents = {str(n): [str(m) for m in (n - 1, n - 2) if m >= 0] for n in range(14)} | {
        f"d{n}": ["13" if n == 0 else f"d{n - 1}"] for n in range(1000)
    }
    rubric = Rubric.of_nodes(row(parents)["nodes"])
    scores = [Fraction(6, 7)] * len(parents)
    found = gated(rubric, scores, passing)
    assert max(credit.denominator.bit_length() for credit in found) <= 1100
    for near, exact in zip(found[:14], by_definition(rubric, scores, passing), strict=False):
        assert float(near) == pytest.approx(float(exact), rel=1e-12)
    # along a chain q = (q·0.8 + 0.2)·6/7 has one fixed point
    assert float(found[-1]) == pytest.approx(float(Fraction(6, 35) / (1 - Fraction(24, 35))), rel=1e-12)
