"""The audits: their formulas on cases worked out by hand, and the command."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from itertools import permutations
from pathlib import Path
from typing import Any

import networkx as nx
import pytest
from dag_helpers import EXAMPLE, SIZES, graph_of, node, row
from fakes.runs import Run, run, write_rows
from hypothesis import given
from hypothesis import strategies as st

from core.audit import main
from core.errors import InputError
from core.stats import wilson
from plugins.dag_rubric.audits.convergence import replay
from plugins.dag_rubric.audits.intervals import chapman, chapman_interval
from plugins.dag_rubric.audits.matching import match, read_matches
from plugins.dag_rubric.audits.overlap import Claims, compare
from plugins.dag_rubric.audits.weights import flips, ranks, spread
from plugins.dag_rubric.lint import findings
from plugins.dag_rubric.rubric import Rubric
from plugins.dag_rubric.weights import weigh


def audit(tmp_path: Path, *words: object, code: int = 0) -> dict[str, Any]:
    """Run the command; gives what it wrote to --out."""
    out = tmp_path / "found.json"
    assert main([str(word) for word in (*words, "--out", out)]) == code
    content: dict[str, Any] = json.loads(out.read_text(encoding="utf-8"))
    return content


# Intervals.


@pytest.mark.parametrize(
    ("count", "total", "low", "high"),
    [(0, 10, 0, 0.2775), (5, 10, 0.2366, 0.7634), (10, 10, 0.7225, 1), (81, 263, 0.2553, 0.3662)],
)
def test_wilsons_interval(count: int, total: int, low: float, high: float) -> None:
    found = wilson(count, total)
    assert found is not None
    assert found == pytest.approx((low, high), abs=5e-5)


def test_no_draws_have_no_interval() -> None:
    assert wilson(0, 0) is None


def test_capture_and_recapture() -> None:
    assert chapman(20, 15, 10) == pytest.approx(21 * 16 / 11 - 1)
    low, high = chapman_interval(20, 15, 10)
    assert 25 < low < chapman(20, 15, 10) < high
    # 25 were seen, f = 4.5454 are unseen, variance 21·16·10·5/(11²·12) = 11.5702;
    # ln(1 + 11.5702/f²) = 0.44469, so C = exp(1.96·0.66685) = 3.6951, and f/C = 1.2301, f·C = 16.796
    assert (low, high) == pytest.approx((26.2301, 41.796), abs=1e-3)


@given(st.integers(0, 60), st.integers(0, 60), st.data())
def test_the_estimate_is_never_below_what_was_seen(first: int, second: int, data: st.DataObject) -> None:
    both = data.draw(st.integers(0, min(first, second)))
    low, high = chapman_interval(first, second, both)
    assert first + second - both - 1e-9 <= low <= high


def test_two_searches_that_agree_leave_nothing_unseen() -> None:
    assert chapman_interval(7, 7, 7) == (7, 7)


# Matching.

CLAIMS = {
    "x1": "The treaty entered into force on 23 June 1961",
    "x2": "The treaty has 12 original parties",
    "x3": "Mining is prohibited",
}


@pytest.mark.parametrize(
    ("other", "pairs"),
    [
        pytest.param(
            {"y1": "On 23 June 1961 the treaty entered into force."}, [("x1", "y1")], id="another order of words"
        ),
        pytest.param({"y1": "The treaty entered into force on 23 June 1962"}, [], id="another number"),
        pytest.param({"y1": "Mining is not prohibited"}, [], id="negated"),
        pytest.param({"y1": "Fishing grounds are large"}, [], id="nothing in common"),
        pytest.param({"y1": CLAIMS["x2"], "y2": CLAIMS["x2"]}, [("x2", "y1")], id="one to one"),
        pytest.param(
            {"y1": CLAIMS["x3"], "y2": CLAIMS["x1"]}, [("x1", "y2"), ("x3", "y1")], id="in the first list's order"
        ),
    ],
)
def test_claims_are_matched_by_words(other: Mapping[str, str], pairs: list[tuple[str, str]]) -> None:
    assert match(CLAIMS, other) == pairs


def test_a_matching_is_as_large_as_networkx_finds_one() -> None:
    rng = random.Random(3)
    words = ["reactor", "orbit", "treaty", "enzyme", "harbour"]
    for _ in range(60):
        lists = [{f"{side}{n}": " ".join(rng.sample(words, 2)) for n in range(rng.randint(1, 9))} for side in "xy"]
        found = match(*lists, least=0.3)
        graph: nx.Graph[str] = nx.Graph()
        graph.add_nodes_from(lists[0])
        graph.add_edges_from(
            (one, other)
            for one in lists[0]
            for other in lists[1]
            if match({one: lists[0][one]}, {other: lists[1][other]}, least=0.3)
        )
        assert len(found) == len(nx.bipartite.maximum_matching(graph, top_nodes=lists[0])) // 2
        assert len({one for one, _ in found}) == len({other for _, other in found}) == len(found)
        assert all(graph.has_edge(one, other) for one, other in found)


# Overlap and recall.


def claims(weights: Mapping[str, int]) -> Claims:
    from fractions import Fraction

    return Claims({key: key for key in weights}, {key: Fraction(weight) for key, weight in weights.items()})


def test_the_numbers_of_an_overlap() -> None:
    one, other = claims({"a": 1, "b": 2, "c": 1}), claims({"p": 5, "q": 3, "r": 1, "s": 1})
    found = compare(one, other, [("a", "p"), ("b", "q")])
    assert (found["n_a"], found["n_b"], found["matched"]) == (3, 4, 2)
    assert found["jaccard"] == 2 / 5
    assert (found["recall_of_a"], found["recall_of_b"]) == (2 / 3, 1 / 2)
    assert (found["weighted_recall_of_a"], found["weighted_recall_of_b"]) == (3 / 4, 8 / 10)
    assert found["new"] == 1 / 2
    assert found["estimated_total"] == pytest.approx(4 * 5 / 3 - 1)
    assert found["flags"] == ["low_overlap", "much_new"]


@pytest.mark.parametrize(
    ("n_a", "n_b", "both", "flags"),
    [
        (10, 10, 10, []),
        (10, 10, 9, []),
        (15, 9, 9, []),
        (16, 9, 9, ["low_overlap"]),
        (10, 11, 10, []),
        (10, 9, 8, ["much_new"]),
    ],
)
def test_the_flags_of_an_overlap(n_a: int, n_b: int, both: int, flags: list[str]) -> None:
    one, other = (claims({f"{side}{n}": 1 for n in range(count)}) for side, count in (("a", n_a), ("b", n_b)))
    assert compare(one, other, [(f"a{n}", f"b{n}") for n in range(both)])["flags"] == flags


def test_a_checkpoint_has_its_share_of_its_nodes_weight() -> None:
    found = Claims.of_nodes(row()["nodes"])
    assert sum(found.weights.values()) == 1
    assert found.weights["e2.c1"] * 5 == found.weights["e1.c1"] * 4 * 3


def two_sets(tmp_path: Path) -> tuple[Path, Path]:
    first = row(nodes=[node("e1", checkpoints=[{"id": key, "text": text} for key, text in CLAIMS.items()])])
    second_texts = {
        "y1": CLAIMS["x1"],
        "y2": "A museum opened in 1999",
        "y3": "Whales live there",
        "y4": "Ice is melting",
    }
    second = row(nodes=[node("e1", checkpoints=[{"id": key, "text": text} for key, text in second_texts.items()])])
    return write_rows(tmp_path / "a.jsonl", [first, row(id="t2")]), write_rows(tmp_path / "b.jsonl", [second])


def test_the_overlap_of_two_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first, second = two_sets(tmp_path)
    found = audit(tmp_path, "overlap", first, second)
    assert found["audit"] == "overlap"
    assert list(found["tasks"]) == ["t1"]
    assert (found["pooled"]["n_a"], found["pooled"]["n_b"], found["pooled"]["matched"]) == (3, 4, 1)
    assert found["pooled"]["jaccard"] == pytest.approx(1 / 6)
    assert found["pooled"]["mean_over_tasks"]["jaccard"] == {"value": 1 / 6, "low": None, "high": None}
    assert (found["only_in_a"], found["only_in_b"]) == (["t2"], [])
    said = capsys.readouterr().out
    assert "all, pooled" in said
    assert "lower bounds" in said


def test_matches_of_a_person_replace_those_of_words(tmp_path: Path) -> None:
    first, second = two_sets(tmp_path)
    rows: list[dict[str, Any]] = [
        {"task_id": "t1", "a": "x1", "b": "y1"},
        {"task_id": "t1", "a": "x3", "b": "y3"},
        {"task_id": "t1", "b": "y2", "relevant": False},
    ]
    matches = write_rows(tmp_path / "matches.jsonl", rows)
    found = audit(tmp_path, "overlap", first, second, "--matches", matches)["tasks"]["t1"]
    assert (found["matched"], found["n_b"], found["new"]) == (2, 3, 1 / 3)


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        (
            [{"task_id": "t1", "a": "x1", "b": "y1"}, {"task_id": "t1", "a": "x1", "b": "y2"}],
            "'x1' is matched twice",
        ),
        ([{"task_id": "t1", "a": "x1"}], "field b"),
        (["text"], "not a match"),
    ],
    ids=["twice", "half a pair", "a text"],
)
def test_a_file_of_matches_that_is_none_is_refused(tmp_path: Path, rows: list[Any], said: str) -> None:
    path = tmp_path / "matches.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in rows))
    with pytest.raises(InputError, match=said):
        read_matches(path)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("overlap", "a.jsonl", "c.jsonl"), "no task id stands in both"),
        (("overlap", "a.jsonl", "b.jsonl", "--matches", "m.jsonl"), "no claim 'x9' on side a"),
        (("overlap", "a.jsonl", "none.jsonl"), "there is no such file"),
        (("recall", "a.jsonl", "e.jsonl"), "the tasks have no 't9'"),
        (("convergence", "a.jsonl"), "no task has snapshots"),
        (("weights", "a.jsonl", "b.jsonl"), "neither one task file nor folders"),
        (("weights", "a.jsonl", "--gamma", "2"), "out of range"),
        (("forms", "nowhere"), "there is no run.json"),
        (("saturation", "nowhere"), "there is no run.json"),
        (("lnt", "a.jsonl"), "did you mean 'lint'?"),
        (("lint", "a.jsonl", "--out", "no/such/folder/found.json"), "can't be written"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_what_cannot_be_audited_is_refused(
    in_tmp: Path, capsys: pytest.CaptureFixture[str], words: Sequence[str], said: str
) -> None:
    two_sets(in_tmp)
    write_rows(in_tmp / "c.jsonl", [row(id="t7")])
    write_rows(in_tmp / "m.jsonl", [{"task_id": "t1", "a": "x9", "b": "y1"}])
    write_rows(in_tmp / "e.jsonl", [{"task_id": "t9", "text": "A point"}])
    assert main(list(words)) == 2
    assert said in capsys.readouterr().err


def test_recall_against_an_expert(tmp_path: Path) -> None:
    first, _ = two_sets(tmp_path)
    points: list[dict[str, Any]] = [
        {"task_id": "t1", "id": "force", "text": "The treaty entered into force in 1961", "weight": 3},
        {"task_id": "t1", "id": "mining", "text": "Mining is prohibited"},
        {"task_id": "t1", "id": "tourism", "text": "Tourism is regulated by a permit"},
    ]
    found = audit(tmp_path, "recall", first, write_rows(tmp_path / "expert.jsonl", points))
    assert found["tasks"]["t1"]["covered"] == 2
    assert found["tasks"]["t1"]["recall"] == pytest.approx(2 / 3)
    assert found["tasks"]["t1"]["weighted_recall"] == 4 / 5
    assert found["tasks"]["t1"]["missing"] == ["tourism"]
    assert found["pooled"]["recall"] == pytest.approx(2 / 3)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ({"text": "A"}, "not a point"),
        ({"task_id": "t1", "text": "A", "weight": -1}, "not a weight"),
        ({"task_id": "t1", "text": "A", "weight": True}, "not a weight"),
        ({"task_id": "t1", "text": "A", "weight": "heavy"}, "not a weight"),
    ],
)
def test_an_experts_list_that_is_none_is_refused(tmp_path: Path, line: dict[str, Any], said: str) -> None:
    from plugins.dag_rubric.audits.overlap import read_experts

    with pytest.raises(InputError, match=said):
        read_experts(write_rows(tmp_path / "expert.jsonl", [line]))


# Convergence.


def rounds(*graphs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{"round": number, "nodes": nodes} for number, nodes in enumerate(graphs, start=1)]


ONE, TWO = [node("e1")], [node("e1"), node("a2", ["e1"])]


@pytest.mark.parametrize(
    ("graphs", "last", "converged"),
    [
        pytest.param([ONE, TWO, TWO, TWO], 2, True, id="unchanged for two rounds"),
        pytest.param([ONE, TWO, TWO], 2, False, id="for one"),
        pytest.param([ONE, TWO, TWO, TWO, ONE], 5, False, id="changed again"),
        pytest.param([ONE, ONE, ONE], 1, True, id="never changed after the first"),
        pytest.param([ONE], 1, False, id="one round"),
    ],
)
def test_when_a_graph_has_come_to_rest(graphs: list[list[dict[str, Any]]], last: int, converged: bool) -> None:
    found = replay(rounds(*graphs))
    for how in ("ids", "content"):
        assert found[f"last_changed_by_{how}"] == last
        assert found[f"converged_by_{how}"] is converged


def test_ids_and_content_are_told_apart() -> None:
    renamed = [{**TWO[0], "id": "n1"}, {**TWO[1], "id": "n2", "parents": ["n1"]}]
    rewritten = [TWO[0], {**TWO[1], "step": "Something else"}]
    by_names = replay(rounds(TWO, renamed, renamed, renamed))
    assert (by_names["last_changed_by_ids"], by_names["last_changed_by_content"]) == (2, 1)
    by_words = replay(rounds(TWO, rewritten, rewritten, rewritten))
    assert (by_words["last_changed_by_ids"], by_words["last_changed_by_content"]) == (1, 2)
    turned = [node("e1", ["a2"]), node("a2")]
    assert replay(rounds(TWO, turned))["last_changed_by_ids"] == 2


def test_growth_is_counted() -> None:
    second = replay(rounds(ONE, TWO, ONE))["rounds"]
    assert [(entry["nodes"], entry["nodes_added"], entry["nodes_removed"]) for entry in second] == [
        (1, 1, 0),
        (2, 1, 0),
        (1, 0, 1),
    ]
    assert [entry["edges_added"] for entry in second] == [0, 1, 0]
    assert [entry["checkpoints"] for entry in second] == [1, 2, 1]


def test_the_snapshots_of_a_file(tmp_path: Path) -> None:
    still, moving = (
        row(nodes=TWO, snapshots=rounds(ONE, TWO, TWO, TWO)),
        row(id="t2", nodes=TWO, snapshots=rounds(TWO, ONE)),
    )
    found = audit(tmp_path, "convergence", write_rows(tmp_path / "tasks.jsonl", [still, moving, row(id="t3")]))
    assert list(found["tasks"]) == ["t1", "t2"]
    assert found["n_converged_by_content"] == 1
    assert [found["tasks"][task]["task_is_last_round"] for task in ("t1", "t2")] == [True, False]


# Weights.


def test_how_weight_is_spread() -> None:
    rubric = Rubric.of_nodes(row()["nodes"])
    found = spread(rubric, weigh(graph_of(EXAMPLE), "leaf_sum"))
    assert found["largest_share"] == 3 / 8
    assert found["effective_nodes"] == pytest.approx(1 / (5 / 64 + 9 / 64))
    assert found["evidential_share"] == 5 / 8
    assert spread(rubric, weigh(graph_of(EXAMPLE), "uniform"))["effective_nodes"] == pytest.approx(6)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"a": 3.0, "b": 1.0, "c": 2.0}, {"a": 1, "b": 3, "c": 2}),
        ({"a": 2.0, "b": 2.0, "c": 1.0}, {"a": 1.5, "b": 1.5, "c": 3}),
        ({"a": None, "b": 1.0}, {"a": None, "b": 1}),
    ],
)
def test_ranks(values: dict[str, float | None], expected: dict[str, float | None]) -> None:
    assert ranks(values) == expected


def test_flips_are_pairs_in_opposite_orders() -> None:
    one = {"a": 3.0, "b": 2.0, "c": 1.0, "d": None}
    assert flips(one, {"a": 1.0, "b": 2.0, "c": 0.0, "d": 9.0}) == [("a", "b")]
    assert flips(one, {"a": 2.0, "b": 2.0, "c": 2.0, "d": 2.0}) == []
    for order in permutations((1.0, 2.0, 3.0)):
        other = dict(zip("abc", order, strict=True))
        assert len(flips({key: one[key] for key in "abc"}, other)) == sum(
            x < y for x, y in ((order[0], order[1]), (order[0], order[2]), (order[1], order[2]))
        )


def judged_run(
    folder: Path,
    name: str,
    counts: Mapping[str, Sequence[int]],
    *words: str,
    queries: Mapping[str, str] | None = None,
) -> Run:
    """A run of system `name`: item id → how many checkpoints of each node are met."""
    tasks = list(dict.fromkeys(item.partition(":")[0] for item in counts))
    given: dict[str, Any] = {} if queries is None else {"queries": queries}
    write_rows(folder / f"{name}.tasks.jsonl", [row(id=task, **given) for task in tasks])
    write_rows(
        folder / f"{name}.texts.jsonl", [{"task_id": item, "text": "A report.", "system": name} for item in counts]
    )
    verdicts = [
        {"task_id": item, "unit": f"checkpoint/{node_id}.c{place}", "verdict": {"met": place <= met}}
        for item, found in counts.items()
        for node_id, met in zip(EXAMPLE, found, strict=True)
        for place in range(1, SIZES[node_id] + 1)
    ]
    write_rows(folder / f"{name}.verdicts.jsonl", verdicts)
    return run(
        folder / name,
        "benchmark=dag_rubric", f"benchmark.source={folder / f'{name}.tasks.jsonl'}",
        "system=replay", f"system.path={folder / f'{name}.texts.jsonl'}",
        "judge=recorded", f"judge.path={folder / f'{name}.verdicts.jsonl'}", *words,
    )  # fmt: skip


FINDER, REASONER = (4, 5, 4, 0, 0, 0), (0, 0, 0, 5, 3, 4)


def test_ranks_under_each_scheme_and_their_flips(tmp_path: Path) -> None:
    finder, reasoner = (
        judged_run(tmp_path, name, {"t1": met}) for name, met in (("finder", FINDER), ("reasoner", REASONER))
    )
    found = audit(tmp_path, "weights", finder.folder, reasoner.folder)
    assert found["compared_with"] == "leaf_sum"
    assert list(found["schemes"]) == [
        "leaf_sum",
        "leaf_split",
        "leaf_reach",
        "one_plus_sum",
        "katz",
        "descendants",
        "uniform",
    ]
    assert found["schemes"]["leaf_sum"]["scores"] == {"finder": 62.5, "reasoner": 37.5}
    assert found["schemes"]["leaf_sum"]["ranks"] == {"finder": 1, "reasoner": 2}
    assert {scheme for scheme, numbers in found["schemes"].items() if numbers["flips"]} == {"leaf_split"}
    assert found["schemes"]["uniform"]["ranks"] == {"finder": 1.5, "reasoner": 1.5}
    assert found["tasks"]["t1"]["leaf_sum"]["largest_share"] == 3 / 8


def test_runs_of_another_scheme_or_aggregation_are_compared_with_their_own(tmp_path: Path) -> None:
    found = audit(
        tmp_path, "weights", judged_run(tmp_path, "one", {"t1": FINDER}, "benchmark.weights.scheme=uniform").folder
    )
    assert found["compared_with"] == "uniform"
    gated = judged_run(tmp_path, "gated", {"t1": REASONER}, "benchmark.aggregation=gate")
    found = audit(tmp_path, "weights", gated.folder)
    assert round(found["schemes"]["leaf_sum"]["scores"]["gated"], 2) == 1.58


def test_the_spread_of_a_task_file(tmp_path: Path) -> None:
    heavy = row(id="t2")
    for listed in heavy["nodes"]:
        listed["weight"] = 1
    found = audit(tmp_path, "weights", write_rows(tmp_path / "tasks.jsonl", [row(), heavy]), "--gamma", "1")
    assert "explicit" not in found["tasks"]["t1"]
    assert found["tasks"]["t2"]["explicit"] == found["tasks"]["t2"]["uniform"]
    assert found["tasks"]["t1"]["katz"] == found["tasks"]["t1"]["one_plus_sum"]
    assert found["mean_nodes"] == 6


# Forms and saturation.

THREE = {"with_hints": "Long?", "without_hints": "Short?", "assigned_topic": "Topic."}


def test_gaps_of_one_run_with_all_forms(tmp_path: Path) -> None:
    counts = {
        f"{task}:{form}": met
        for task in ("t1", "t2")
        for form, met in zip(THREE, ((4, 5, 4, 5, 3, 4), FINDER, REASONER), strict=True)
    }
    found = audit(
        tmp_path, "forms", judged_run(tmp_path, "one", counts, "benchmark.form=all", queries=THREE).folder
    )
    gap = found["systems"]["one"]["with_hints - without_hints"]
    assert (gap["score"], gap["evidential"], gap["analytical"], gap["n_pairs"]) == (37.5, 0, 37.5, 2)
    assert found["systems"]["one"]["with_hints - assigned_topic"]["evidential"] == 62.5


def test_gaps_of_runs_with_one_form_each(tmp_path: Path) -> None:
    folders = []
    for form, met in (("with_hints", FINDER), ("without_hints", REASONER)):
        (tmp_path / form).mkdir()
        folders.append(
            judged_run(tmp_path / form, "one", {"t1": met}, f"benchmark.form={form}", queries=THREE).folder
        )
    found = audit(tmp_path, "forms", *folders)
    assert found["systems"]["one"]["with_hints - without_hints"]["score"] == 25


def test_the_same_run_twice_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = judged_run(tmp_path, "one", {"t1": FINDER}).folder
    assert main(["saturation", str(folder), str(folder)]) == 2
    assert "two scores for task 't1'" in capsys.readouterr().err
    assert main(["forms", str(folder)]) == 2
    assert "no task has two forms" in capsys.readouterr().err


def test_tasks_that_the_best_system_has_nearly_solved(tmp_path: Path) -> None:
    whole = (4, 5, 4, 5, 3, 4)
    first = judged_run(tmp_path, "first", {"t1": whole, "t2": FINDER})
    second = judged_run(tmp_path, "second", {"t1": FINDER, "t2": REASONER})
    found = audit(tmp_path, "saturation", first.folder, second.folder)
    assert [(task["task"], task["best"], task["system"], task["saturated"]) for task in found["tasks"]] == [
        ("t1", 100, "first", True),
        ("t2", 62.5, "first", False),
    ]
    assert (found["n_saturated"], found["n_scored"], found["share"]) == (1, 2, 0.5)
    assert audit(tmp_path, "saturation", first.folder, "--above", "100")["n_saturated"] == 0


def test_a_run_of_another_benchmark_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = run(tmp_path / "run", "experiment=demo_draco")
    assert main(["saturation", str(found.folder)]) == 2
    assert "not a run of this benchmark" in capsys.readouterr().err


# Lint.


def rules(**changes: Any) -> list[tuple[str, str]]:
    return [(rule, at) for rule, at, _ in findings(row(**changes)) if rule != "no evidence"]


LONG = "x" * 100


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        pytest.param({}, [("redundant edge", "a6"), ("heavy node", "e2")], id="the example"),
        pytest.param(
            {"nodes": [node("e1"), node("e2"), node("e3"), node("a4", ["e3"])]},
            [("isolated node", "e1"), ("isolated node", "e2")],
            id="isolated",
        ),
        pytest.param({"nodes": [node("e1")]}, [("heavy node", "e1")], id="a single node"),
        pytest.param(
            {"nodes": [node(f"e{n}") for n in range(3)] + [node("a", ["e0", "e1", "e2"])]}, [], id="nothing"
        ),
    ],
)
def test_what_is_odd_about_a_graph(changes: dict[str, Any], expected: list[tuple[str, str]]) -> None:
    assert rules(**changes) == expected


@pytest.mark.parametrize(
    ("hinted", "bare", "expected"),
    [
        (LONG, "y" * 70, []),
        (LONG, "y" * 71, ["long query"]),
        (None, "y" * 500, []),
        (LONG, "One. Two. Three.", []),
        (LONG, "One. Two. Three. Four", ["many sentences"]),
        (LONG, "In 3.5 years? Or 4.2?", []),
        (LONG, "A? B? C?", ["many questions"]),
        (LONG, "Same?" * 20, ["long query", "many questions"]),
    ],
)
def test_what_is_odd_about_a_query(hinted: str | None, bare: str, expected: list[str]) -> None:
    graph = [node(f"e{n}") for n in range(3)] + [node("a", ["e0", "e1", "e2"])]
    queries = {"with_hints": hinted, "without_hints": bare}
    assert [rule for rule, _ in rules(queries=queries, nodes=graph)] == expected


def test_lint_goes_on_after_a_fault_and_ends_with_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [row(nodes=[node("a", ["b"]), node("b", ["a"])]), row(id="t2"), row(id="t2"), "no task", row(id="t4")]
    found = audit(tmp_path, "lint", write_rows(tmp_path / "tasks.jsonl", rows), code=2)  # type: ignore[arg-type]  # a faulty line too
    assert found["n_tasks"] == 5
    assert [fault["place"].rpartition("line ")[2] for fault in found["refused"]] == ["1", "3", "4"]
    assert {finding["task_id"] for finding in found["warnings"]} == {"t2", "t4"}
    assert "5 tasks: 3 refused" in capsys.readouterr().out


def test_evidential_checkpoints_without_a_source_are_odd(tmp_path: Path) -> None:
    given = row(nodes=[node("e1"), node("a2", ["e1"])])
    assert [finding for finding in findings(given) if finding[0] == "no evidence"] == [
        ("no evidence", "e1", "checkpoint e1.c1 of an evidential node names no source")
    ]
    given["nodes"][0]["checkpoints"][0]["evidence"] = [{"url": "https://example.org"}]
    assert not [finding for finding in findings(given) if finding[0] == "no evidence"]


def test_lint_goes_on_after_a_line_that_is_not_json(tmp_path: Path) -> None:
    file = tmp_path / "tasks.jsonl"
    file.write_text(f"{json.dumps(row())}\nnot JSON\n{json.dumps(row(id='t2'))}\n{{\n", encoding="utf-8")
    found = audit(tmp_path, "lint", file, code=2)
    assert found["n_tasks"] == 4
    assert [fault["place"].rpartition("line ")[2] for fault in found["refused"]] == ["2", "4"]
    assert {finding["task_id"] for finding in found["warnings"]} == {"t1", "t2"}


@pytest.mark.parametrize("source", ["no/such.jsonl", "hub"])
@pytest.mark.parametrize("words", [("lint",), ("weights",), ("convergence",)], ids=lambda words: words[0])
def test_a_source_that_is_none_is_named_as_the_argument(
    in_tmp: Path, capsys: pytest.CaptureFixture[str], words: Sequence[str], source: str
) -> None:
    assert main([*words, source]) == 2
    said = capsys.readouterr().err
    assert source in said
    assert "benchmark." not in said


def test_keys_that_nothing_reads_are_odd() -> None:
    given = row(nodes=[node("e1", wieght=2), node("a2", ["e1"])], catgory="Law", colour="red")
    given["nodes"][1]["checkpoints"][0]["evidences"] = []
    found = {at: text for rule, at, text in findings(given) if rule == "unknown key" and at != "task"}
    assert found == {
        "e1": "nothing reads 'wieght'; did you mean 'weight'?",
        "a2.c1": "nothing reads 'evidences'; did you mean 'evidence'?",
    }
    of_task = [text for rule, at, text in findings(given) if rule == "unknown key" and at == "task"]
    assert of_task[0] == "nothing reads 'catgory'; did you mean 'category'?"
    assert of_task[1].startswith("nothing reads 'colour'; known are id, topic, category")


def test_a_heavy_weight_of_the_tasks_own_is_odd() -> None:
    given = row(nodes=[node(f"e{n}", weight=96 if n == 0 else 1) for n in range(5)])
    heavy = [(at, text) for rule, at, text in findings(given) if rule == "heavy node"]
    assert heavy == [("e0", "it has 96% of the weight under explicit")]


@pytest.mark.parametrize(
    ("one", "other", "alike"),
    [
        ("Yes", "yes ", True),
        ("南极条约于1961年生效", "南极条约于1961年生效", True),
        ("是", "是", True),
        ("是", "否", False),
        ("Yes", "No", False),
    ],
)
def test_equal_texts_are_the_same_claim_whatever_their_words(one: str, other: str, alike: bool) -> None:
    assert match({"a": one}, {"b": other}) == ([("a", "b")] if alike else [])


# The command.


def test_the_command_lists_its_audits(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    said = capsys.readouterr().out
    assert "core.audit" in said
    for name in ("convergence", "forms", "lint", "overlap", "recall", "saturation", "weights"):
        assert f"  {name} " in said
    assert main([]) == 2


def test_every_audit_explains_its_arguments(capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("convergence", "forms", "lint", "overlap", "recall", "saturation", "weights"):
        with pytest.raises(SystemExit) as ended:
            main([name, "--help"])
        assert ended.value.code == 0
        assert "--out FILE" in capsys.readouterr().out


@pytest.mark.parametrize(
    "words",
    [("lint", "sample"), ("overlap", "sample", "sample"), ("convergence", "sample"), ("weights", "sample")],
)
def test_the_packaged_tasks_can_be_audited(tmp_path: Path, words: Sequence[str]) -> None:
    assert audit(tmp_path, *words)["audit"] == words[0]
