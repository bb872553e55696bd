"""The rollup against the paper's worked example, the released scorer's numbers, and a second way to compute it."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rollup_oracle import Oracle, node, random_task

from plugins.wandr.explain import as_tree
from plugins.wandr.levels import Scores, composed, f1, recall
from plugins.wandr.model import Identity, Key, Leaf, Node
from plugins.wandr.rollup import METRICS, NO_LEAF, Rolled, overall, published, rollup, standalone

SHARED = Path(__file__).parents[3] / "shared" / "data" / "wandr"
WORKED = SHARED / "worked_example.json"
CASES = SHARED / "rollup_cases.json"

needs_worked = pytest.mark.skipif(not WORKED.is_file(), reason="the worked example is not beside the repository")
needs_cases = pytest.mark.skipif(not CASES.is_file(), reason="the rollup cases are not beside the repository")


# the released scorer's numbers


def tree_of(nodes: Mapping[str, Sequence[Mapping[str, Any]]]) -> Node:
    """{full name: [{key, required}, …]} as a tree."""

    def made(name: str) -> Node:
        keys = tuple(Key(key["key"], (key["key"],), key["required"]) for key in nodes[name])
        below = tuple(made(other) for other in nodes if other.rpartition(".")[0] == name)
        return Node(name, "", keys, subtasks=below)

    (root,) = [name for name in nodes if "." not in name]
    return made(root)


def identity_of(clusters: Mapping[str, str]) -> Identity:
    """{"key=value": identity} as an Identity."""
    found: dict[str, dict[str, str]] = {}
    for name, identity in clusters.items():
        key, _, value = name.partition("=")
        found.setdefault(key, {})[value] = identity
    return Identity(cluster=found)


def leaf_of(record: Mapping[str, Any], node_field: str) -> Leaf:
    sure = record["confidence"] >= 2
    return Leaf(
        record[node_field],
        record["item"],
        record["url"],
        record["verdict"] if sure else None,
        record["requirements_all_satisfied"] if sure else None,
    )


@needs_cases
@pytest.mark.parametrize("number", range(50))
def test_the_released_scorers_numbers_to_the_last_digit(number: int) -> None:
    case = json.loads(CASES.read_text(encoding="utf-8"))[number]
    leaves = [leaf_of(record, "task") for record in case["records"]]
    rolled = rollup(tree_of(case["tasks"]), leaves, identity_of(case["identity"]))
    expected = {"overall": case["expected_overall"], **case["expected_standalone"]}
    found = {"overall": overall(rolled), **standalone(rolled)}
    assert found.keys() == expected.keys()
    for name, lineages in expected.items():
        numbers, _ = published(found[name])
        assert numbers == {
            **lineages["full"],
            **{f"{key}_retrieval": v for key, v in lineages["retrieval"].items()},
        }


@needs_worked
def test_the_worked_example_node_by_node() -> None:
    example = json.loads(WORKED.read_text(encoding="utf-8"))
    leaves = [leaf_of(record, "node") for record in example["records"]]
    rolled = rollup(tree_of(example["nodes"]), leaves, identity_of(example["identity"]))
    assert drawn(as_tree(rolled)) == ordered(example["expected"])


def drawn(tree: Mapping[str, Any]) -> dict[str, Any]:
    """A rolled task as the example draws it: subtasks stand, in full, below the entities that they multiply."""
    nodes: dict[str, Mapping[str, Any]] = {}

    def collect(found: Mapping[str, Any]) -> None:
        nodes[found["name"]] = found
        for subtask in found["subtasks"]:
            collect(subtask)

    def level(found: Mapping[str, Any]) -> dict[str, Any]:
        children = [
            entity(child, found["key"]) if "level" in child else leaf(child) for child in found["children"]
        ]
        return {
            "type": "key_level", "key": found["key"], "required": found["required"],
            "scores": found["scores"]["full"], "children": children,
        }  # fmt: skip

    def entity(found: Mapping[str, Any], key: str) -> dict[str, Any]:
        return {
            "type": "entity", "key": key, "value": found["value"], "entity_id": found["identity"],
            "scores": found["scores"]["full"],
            "children": [level(found["level"]), *(subtask(factor, found["identity"]) for factor in found["factors"])],
        }  # fmt: skip

    def subtask(factor: Mapping[str, Any], identity: str) -> dict[str, Any]:
        made = {
            "type": "subtask", "name": factor["node"], "entity_id": identity, "scores": factor["scores"]["full"],
        }  # fmt: skip
        if factor["value"] is None:
            return made
        (taken,) = [
            child for child in nodes[factor["node"]]["level"]["children"] if child["value"] == factor["value"]
        ]
        return {**made, "children": [level(taken["level"])]}

    def leaf(found: Mapping[str, Any]) -> dict[str, Any]:
        names = ("soft_precision", "soft_recall", "soft_f1", "hard_precision", "hard_recall", "hard_f1")
        return {
            "type": "leaf", "key": "url", "value": found["value"], "entity_id": found["identity"],
            "scores": dict.fromkeys(names, float(found["full"])),
        }  # fmt: skip

    collect(tree)
    return ordered(
        {
            "type": "task",
            "name": tree["name"],
            "scores": tree["scores"]["full"],
            "children": [level(tree["level"])],
        }
    )


def ordered(found: Mapping[str, Any]) -> dict[str, Any]:
    """The same with children in one order, and none where there is an empty list of them."""
    children = sorted((ordered(child) for child in found.get("children", ())), key=json.dumps)
    rest = {key: value for key, value in found.items() if key != "children"}
    return {**rest, "children": children} if children else rest


# the separating cases

C2 = {"c": 2, "url": 1}
TRUE, FALSE, MISSING = True, False, None


def rows(*found: tuple[str, str, bool | None]) -> list[Leaf]:
    """(value of c, url, outcome) as leaves of node t, the same in both lineages."""
    return [Leaf("t", {"c": value}, url, outcome, outcome) for value, url, outcome in found]


@pytest.mark.parametrize(
    ("keys", "leaves", "canonical", "soft", "hard"),
    [
        pytest.param(C2, rows(("a", "1", TRUE), ("b", "2", MISSING)), {}, (1, 0.5), (1, 0.5), id="b not confident"),
        pytest.param(C2, rows(("a", "1", TRUE)), {}, (1, 0.5), (1, 0.5), id="b dropped"),
        pytest.param(C2, rows(("a", "1", MISSING)), {}, (None, 0), (None, 0), id="every leaf missing"),
        pytest.param(C2, [], {}, (None, 0), (None, 0), id="no record"),
        pytest.param(
            C2, rows(("a", "1", TRUE), ("b", "2", TRUE), ("c", "3", FALSE), ("d", "4", FALSE)), {},
            (0.5, 1), (0.5, 1), id="surplus costs precision",
        ),
        pytest.param(
            {"c": 1, "url": 1}, rows(("a", "1", TRUE), ("a", "2", FALSE)), {}, (0.5, 1), (0, 1), id="two urls, one false"
        ),
        pytest.param(
            {"c": 1, "url": 1}, rows(("a", "1", TRUE), ("a", "1", FALSE)), {}, (0.5, 0), (0, 0), id="one url, once false"
        ),
        pytest.param(
            {"c": 1, "url": 2}, rows(("a", "http://x/", TRUE), ("a", "https://x", TRUE)),
            {"url": {"http://x/": "x", "https://x": "x"}}, (1, 0.5), (1, 0), id="one normalised url for two",
        ),
        pytest.param(
            C2, rows(("p", "1", FALSE), ("q", "2", FALSE), ("a", "3", TRUE)),
            {"c": {"p": "NOT_FOUND", "q": "NOT_FOUND"}}, (0.5, 0.5), (0.5, 0.5), id="NOT_FOUND is one entity",
        ),
    ],
)  # fmt: skip
def test_cases_that_tell_readings_apart(
    keys: dict[str, int],
    leaves: list[Leaf],
    canonical: dict[str, dict[str, str]],
    soft: tuple[float | None, float],
    hard: tuple[float | None, float],
) -> None:
    rolled = rollup(node("t", keys), leaves, Identity(canonical))
    found = overall(rolled)
    assert list(found) == list(METRICS)
    for suffix in ("", "_retrieval"):
        assert (found[f"soft_precision{suffix}"], found[f"soft_recall{suffix}"]) == soft
        assert (found[f"hard_precision{suffix}"], found[f"hard_recall{suffix}"]) == hard
        assert found[f"soft_f1{suffix}"] == f1(*soft)
        assert found[f"hard_f1{suffix}"] == f1(*hard)
    assert standalone(rolled) == {"t": found}


def subtask_rows(*found: tuple[str, str, bool | None]) -> list[Leaf]:
    return [Leaf("t.s", {"c": value}, url, outcome, outcome) for value, url, outcome in found]


@pytest.mark.parametrize(
    ("leaves", "cluster", "expected"),
    [
        pytest.param(subtask_rows(("a", "9", TRUE)), {}, (1, 1, 1, 1), id="the subtask's entity holds"),
        pytest.param([], {}, (0, 0, 0, 0), id="no entity of that identity"),
        pytest.param(subtask_rows(("b", "9", TRUE)), {"a": "x", "b": "x"}, (1, 1, 1, 1), id="another spelling of it"),
        pytest.param(subtask_rows(("a", "9", MISSING)), {}, (0, 0, 0, 0), id="a missing factor is 0"),
        pytest.param(
            subtask_rows(("a", "8", TRUE), ("a", "9", FALSE)), {}, (0.5, 1, 0, 1), id="a factor's hard score is whole"
        ),
        pytest.param(
            subtask_rows(("a", "9", TRUE), ("b", "8", FALSE)), {"a": "x", "b": "x"}, (0, 0, 0, 0), id="the worst is taken"
        ),
        pytest.param(  # both recalls are 1: the later value is taken, whichever has the better precision
            subtask_rows(("a", "9", TRUE), ("B", "7", TRUE), ("B", "8", FALSE)), {"a": "x", "B": "x"},
            (0.5, 1, 0, 1), id="a tie goes to the later value, in lower case",
        ),
        pytest.param(
            subtask_rows(("b", "9", TRUE), ("a", "7", TRUE), ("a", "8", FALSE)), {"a": "x", "b": "x"},
            (1, 1, 1, 1), id="a tie, the other way round",
        ),
    ],
)  # fmt: skip
def test_a_subtask_multiplies_the_entity_of_its_identity(
    leaves: list[Leaf], cluster: dict[str, str], expected: tuple[float, ...]
) -> None:
    root = node("t", {"c": 1, "url": 1}, node("t.s", {"c": 5, "url": 1}))
    rolled = rollup(root, rows(("a", "1", TRUE)) + leaves, Identity(cluster={"c": cluster}))
    assert [tuple(scores) for scores in rolled.level.scores] == [expected, expected]
    assert set(rolled.standalone.full) == {1}


def test_one_choice_of_the_worst_serves_both_lineages() -> None:
    """`b` is the worse by its full recall and the better by its retrieval: it is taken for both."""
    root = node("t", {"c": 1, "url": 1}, node("t.s", {"c": 1, "url": 1}))
    leaves = [
        Leaf("t", {"c": "a"}, "1", full=True, retrieval=True),
        Leaf("t.s", {"c": "a"}, "2", full=True, retrieval=False),
        Leaf("t.s", {"c": "b"}, "3", full=False, retrieval=True),
    ]
    found = overall(rollup(root, leaves, Identity(cluster={"c": {"a": "x", "b": "x"}})))
    assert (found["soft_f1"], found["soft_f1_retrieval"]) == (0, 1)


def test_an_entity_without_a_value_of_its_own_stays_missing() -> None:
    root = node("t", {"c": 2, "url": 1}, node("t.s", {"c": 1, "url": 1}))
    leaves = rows(("a", "1", TRUE), ("b", "2", MISSING)) + subtask_rows(("a", "3", TRUE), ("b", "4", FALSE))
    rolled = rollup(root, leaves, Identity())
    assert list(rolled.level.scores.full) == [1, 0.5, 1, 0.5]
    (b,) = [child for child in rolled.level.children if child.value == "b"]
    assert list(b.scores.full) == [None, 0, None, 0]


def test_a_nested_subtask_reaches_the_root() -> None:
    root = node(
        "t", {"a": 1, "url": 1}, node("t.s", {"a": 1, "b": 2, "url": 1}, node("t.s.u", {"b": 1, "url": 1}))
    )
    leaves = [
        Leaf("t", {"a": "x"}, "1", full=True, retrieval=True),
        Leaf("t.s", {"a": "x", "b": "p"}, "2", full=True, retrieval=True),
        Leaf("t.s", {"a": "x", "b": "q"}, "3", full=True, retrieval=True),
        Leaf("t.s.u", {"b": "p"}, "4", full=True, retrieval=True),
    ]
    rolled = rollup(root, leaves, Identity())
    assert list(rolled.level.scores.full) == [0.5, 0.5, 0, 0]
    assert {name: numbers["soft_f1"] for name, numbers in standalone(rolled).items()} == {
        "t": 1, "t.s": 1, "t.s.u": 1,
    }  # fmt: skip


def test_a_row_that_lacks_a_value_is_a_child_like_any_other() -> None:
    leaves = [*rows(("a", "1", TRUE)), Leaf("t", {}, "", full=False, retrieval=False)]
    rolled = rollup(node("t", C2), leaves, Identity())
    assert list(rolled.level.scores.full) == [0.5, 0.5, 0.5, 0.5]
    assert (rolled.level.provided, rolled.level.duplicates) == (1, 0)


@pytest.mark.parametrize(
    ("required", "leaves", "counts"),
    [
        pytest.param(3, rows(("a", "1", TRUE)), (1, 0, 2, 0, 0), id="two short"),
        pytest.param(
            1, rows(("a", "1", TRUE), ("b", "2", TRUE), ("c", "3", FALSE)), (3, 0, 0, 2, 0), id="surplus"
        ),
        pytest.param(2, rows(("a", "1", TRUE), ("A", "2", TRUE)), (2, 1, 1, 0, 0), id="a duplicate is padded"),
    ],
)
def test_a_level_says_what_it_was_made_of(required: int, leaves: list[Leaf], counts: tuple[int, ...]) -> None:
    level = as_tree(rollup(node("t", {"c": required, "url": 1}), leaves, Identity(cluster={"c": {"A": "a"}})))[
        "level"
    ]
    assert tuple(level[name] for name in ("provided", "duplicates", "pads", "surplus", "missing")) == counts


def test_a_missing_leaf_is_padded_at_its_url_level() -> None:
    tree = as_tree(rollup(node("t", C2), rows(("a", "1", MISSING)), Identity()))
    url = tree["level"]["children"][0]["level"]
    assert (url["missing"], url["pads"], url["children"][0]["full"]) == (1, 1, None)


def test_the_tree_names_the_subtasks_entity_and_is_plain_json() -> None:
    root = node("t", {"c": 1, "url": 1}, node("t.s", {"c": 1, "url": 1}))
    leaves = rows(("a", "1", TRUE)) + subtask_rows(("b", "2", TRUE), ("a", "3", FALSE))
    tree = as_tree(rollup(root, leaves, Identity(cluster={"c": {"b": "a"}})))
    (factor,) = tree["level"]["children"][0]["factors"]
    assert (factor["node"], factor["value"], factor["candidates"]) == ("t.s", "a", 2)
    assert factor["scores"]["full"]["soft_f1"] == 0
    assert [found["name"] for found in tree["subtasks"]] == ["t.s"]
    assert json.loads(json.dumps(tree, allow_nan=False)) == tree


@pytest.mark.parametrize(
    ("root", "leaves", "words"),
    [
        pytest.param(
            node("t", C2), [Leaf("u", {}, "1", TRUE, TRUE)], "node 'u'; the tree has t", id="unknown node"
        ),
        pytest.param(
            node("t", C2, node("t.s", {"z": 1, "url": 1})), [], "t.s starts with 'z'", id="stray subtask"
        ),
        pytest.param(node("t", C2, node("t.s", {"url": 1})), [], "t.s starts with 'url'", id="a subtask of a url"),
    ],
)
def test_what_is_no_task_is_refused(root: Node, leaves: list[Leaf], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        rollup(root, leaves, Identity())


@pytest.mark.parametrize(
    ("numbers", "written", "flags"),
    [
        ({"soft_f1": 0.25}, {"soft_f1": 0.25}, ()),
        ({"soft_f1": None, "soft_recall": 0.0}, {"soft_f1": 0.0, "soft_recall": 0.0}, (NO_LEAF,)),
    ],
)
def test_a_missing_number_is_written_as_zero_and_flagged(
    numbers: dict[str, float | None], written: dict[str, float], flags: tuple[str, ...]
) -> None:
    assert published(numbers) == (written, flags)


@pytest.mark.parametrize(
    ("precision", "recall_", "expected"),
    [(1, 1, 1), (0, 0, 0), (1, 0, 0), (0.5, 1, 2 / 3), (None, 1, None), (1, None, None)],
)
def test_f1(precision: float | None, recall_: float | None, expected: float | None) -> None:
    assert f1(precision, recall_) == expected


@pytest.mark.parametrize(
    ("children", "required", "expected"),
    [
        pytest.param([], 2, 0, id="nothing"),
        pytest.param([("a", None)], 1, 0, id="nothing with a value"),
        pytest.param([("a", 1.0), ("a", 0.25)], 1, 0.25, id="the worst of an identity"),
        pytest.param([("a", 1.0), ("a", None)], 1, 1, id="a missing twin changes nothing"),
        pytest.param([("a", 0.5), ("b", 1.0), ("c", 0.0)], 2, 0.75, id="the best of the required"),
        pytest.param([("a", 1.0)], 4, 0.25, id="padded"),
    ],
)
def test_recall(children: list[tuple[str, float | None]], required: int, expected: float) -> None:
    assert recall([name for name, _ in children], [value for _, value in children], required) == expected


def test_composition_multiplies_metric_by_metric() -> None:
    own = Scores(None, 1.0, 0.5, 1.0)
    factors = [Scores(0.5, 0.5, None, 1.0), Scores(1.0, 0.5, 1.0, 1.0)]
    assert list(composed(own, factors)) == [None, 0.25, 0, 1]


# against the oracle


@pytest.mark.parametrize("block", range(20))
def test_random_trees_agree_with_the_oracle(block: int) -> None:
    for seed in range(100 * block, 100 * (block + 1)):
        root, leaves, identity = random_task(random.Random(seed))
        oracle = Oracle(root, leaves, identity)
        rolled = rollup(root, leaves, identity)
        assert close(overall(rolled), oracle.overall()), f"seed {seed}"
        expected = oracle.standalone()
        for name, numbers in standalone(rolled).items():
            assert close(numbers, expected[name]), f"seed {seed}, node {name}"


def close(found: Mapping[str, float | None], expected: Mapping[str, Any]) -> bool:
    assert found.keys() == expected.keys()
    return all(
        (value is None) == (expected[name] is None) and (value is None or abs(value - expected[name]) < 1e-12)
        for name, value in found.items()
    )


# properties

seeds = st.integers(0, 2**32)


def rolled_of(root: Node, leaves: Sequence[Leaf], identity: Identity) -> tuple[Rolled, dict[str, float | None]]:
    rolled = rollup(root, leaves, identity)
    return rolled, overall(rolled)


@given(seeds, st.randoms(use_true_random=False))
def test_the_order_of_records_changes_no_bit(seed: int, rng: random.Random) -> None:
    root, leaves, identity = random_task(random.Random(seed))
    shuffled = list(leaves)
    rng.shuffle(shuffled)
    rolled, found = rolled_of(root, leaves, identity)
    again, also = rolled_of(root, shuffled, identity)
    assert also == found
    assert standalone(again) == standalone(rolled)


@given(seeds, st.data())
def test_recall_never_rises_when_a_record_that_has_no_twin_is_removed(seed: int, data: st.DataObject) -> None:
    """Of two children of one identity the worst counts, so there removing one may help."""
    root, leaves, _ = random_task(random.Random(seed))
    leaves = [replace(leaf, url=str(place)) for place, leaf in enumerate(leaves)]
    if not leaves:
        return
    gone = data.draw(st.integers(0, len(leaves) - 1))
    _, before = rolled_of(root, leaves, Identity())
    _, after = rolled_of(root, [*leaves[:gone], *leaves[gone + 1 :]], Identity())
    for name in METRICS:
        if "recall" in name:
            assert number(after[name]) <= number(before[name]) + 1e-12, name


@given(seeds)
def test_scores_lie_where_they_must(seed: int) -> None:
    root, leaves, identity = random_task(random.Random(seed))
    rolled, found = rolled_of(root, leaves, identity)
    alone = standalone(rolled)[root.name]
    for name, value in found.items():
        assert (value is None) == (alone[name] is None), name
        if value is None:
            assert "recall" not in name
            continue
        assert 0 <= value <= 1 + 1e-12, name
        assert value <= number(alone[name]) + 1e-12, f"{name}: a subtask can only lower a score"
        if name.startswith("soft") and "f1" not in name:
            assert number(found[name.replace("soft", "hard")]) <= value + 1e-12, name


@given(seeds)
def test_other_names_for_the_same_things_change_nothing(seed: int) -> None:
    """Renaming values by a rule that keeps their lower-cased order."""
    root, leaves, identity = random_task(random.Random(seed))

    def renamed(value: str) -> str:
        return "Ö" + value

    def both(table: Mapping[str, Mapping[str, str]]) -> dict[str, dict[str, str]]:
        return {key: {renamed(a): renamed(b) for a, b in known.items()} for key, known in table.items()}

    others = [
        replace(leaf, values={key: renamed(value) for key, value in leaf.values.items()}, url=renamed(leaf.url))
        for leaf in leaves
    ]
    _, found = rolled_of(root, leaves, identity)
    _, also = rolled_of(root, others, Identity(both(identity.canonical), both(identity.cluster)))
    assert also == found


def number(value: float | None) -> float:
    assert value is not None
    return value
