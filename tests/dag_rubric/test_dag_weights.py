"""Weight schemes and graphs: the published table, another implementation of graphs, and what must not matter."""

from __future__ import annotations

import math
import random
from fractions import Fraction
from itertools import pairwise

import networkx as nx
import pytest
from dag_helpers import EXAMPLE, Parents, graph_of
from hypothesis import given, settings
from hypothesis import strategies as st

from plugins.dag_rubric.graph import Cyclic, Graph
from plugins.dag_rubric.weights import SCHEMES, Weights, decimal_fraction, weigh

COMPUTED = [scheme for scheme in SCHEMES if scheme != "explicit"]


def shares(parents: Parents, scheme: str, gamma: str = "0.5") -> dict[str, Fraction]:
    graph = graph_of(parents)
    found = weigh(graph, scheme, gamma=decimal_fraction(gamma)).exact_shares()
    return dict(zip(graph.ids, found, strict=True))


def random_parents(rng: random.Random) -> dict[str, list[str]]:
    """A random acyclic graph whose nodes are listed in a random order."""
    size, density = rng.randint(1, 24), rng.random() * 0.5
    names = [f"n{number}" for number in range(size)]
    rng.shuffle(names)
    parents = {
        name: [names[other] for other in range(place) if rng.random() < density]
        for place, name in enumerate(names)
    }
    listed = list(parents)
    rng.shuffle(listed)
    return {name: rng.sample(parents[name], len(parents[name])) for name in listed}


def as_networkx(parents: Parents) -> nx.DiGraph[str]:
    graph: nx.DiGraph[str] = nx.DiGraph()
    graph.add_nodes_from(parents)
    graph.add_edges_from((parent, name) for name, found in parents.items() for parent in found)
    return graph


@pytest.mark.parametrize(
    ("scheme", "expected"),
    [
        ("leaf_sum", "1/8 3/8 1/8 1/8 1/8 1/8"),
        ("leaf_split", "1/18 5/18 1/9 1/9 2/9 2/9"),
        ("leaf_reach", "1/7 2/7 1/7 1/7 1/7 1/7"),
        ("one_plus_sum", "3/14 5/14 1/7 1/7 1/14 1/14"),
        ("katz", "7/38 11/38 3/19 3/19 2/19 2/19"),
        ("descendants", "3/13 4/13 2/13 2/13 1/13 1/13"),
        ("uniform", "1/6 1/6 1/6 1/6 1/6 1/6"),
    ],
)
def test_the_table_of_the_example(scheme: str, expected: str) -> None:
    assert list(shares(EXAMPLE, scheme).values()) == [Fraction(share) for share in expected.split()]


def test_explicit_weights_are_the_decimals_that_stand_in_the_file() -> None:
    graph = graph_of({"a": [], "b": [], "c": []})
    found = weigh(graph, "explicit", explicit=[0.1, 0.2, 0.7])
    assert found.exact_shares() == [Fraction(1, 10), Fraction(1, 5), Fraction(7, 10)]
    assert found.shares() == [0.1, 0.2, 0.7]
    with pytest.raises(ValueError, match="no weights of their own"):
        weigh(graph, "explicit")


@pytest.mark.parametrize(
    ("gamma", "like"),
    [pytest.param("0", "uniform", id="nothing passes"), pytest.param("1", "one_plus_sum", id="all passes")],
)
def test_the_ends_of_katz(gamma: str, like: str) -> None:
    assert shares(EXAMPLE, "katz", gamma) == shares(EXAMPLE, like)


def test_gamma_is_read_as_decimal_text() -> None:
    assert decimal_fraction("0.1") == decimal_fraction(0.1) == Fraction(1, 10)
    assert decimal_fraction(" 1e-3 ") == Fraction(1, 1000)
    # of a chain a → b, with γ = 1/10: raw 11/10 and 1
    assert shares({"a": [], "b": ["a"]}, "katz", "0.1") == {"a": Fraction(11, 21), "b": Fraction(10, 21)}


@pytest.mark.parametrize("text", ["", "half", "1/2", "nan", "inf", True, None, "0,5"], ids=repr)
def test_what_is_no_decimal_number_is_refused(text: object) -> None:
    with pytest.raises(ValueError, match=r"not (a decimal number|finite)"):
        decimal_fraction(text)


def test_networkx_agrees_on_500_random_graphs() -> None:
    rng = random.Random(20260802)
    for _ in range(500):
        parents = random_parents(rng)
        graph, theirs = graph_of(parents), as_networkx(parents)
        ids = graph.ids

        place = {ids[node]: at for at, node in enumerate(graph.order)}
        assert sorted(place) == sorted(parents)
        assert all(place[parent] < place[child] for parent, child in theirs.edges)
        assert {ids[leaf] for leaf in graph.leaves()} == {name for name, degree in theirs.out_degree if not degree}

        descendants = {name: nx.descendants(theirs, name) for name in parents}
        assert dict(zip(ids, graph.descendant_counts(), strict=True)) == {
            name: len(found) for name, found in descendants.items()
        }
        leaves = {ids[leaf] for leaf in graph.leaves()}
        assert dict(zip(ids, graph.leaf_counts(), strict=True)) == {
            name: len((found | {name}) & leaves) for name, found in descendants.items()
        }
        kept = set(theirs.edges) - {(ids[parent], ids[child]) for parent, child in graph.redundant_edges()}
        assert kept == set(nx.transitive_reduction(theirs).edges)
        longest = dict.fromkeys(parents, 0)
        for name in reversed(list(nx.topological_sort(theirs))):
            longest[name] = max((longest[child] + 1 for child in theirs.successors(name)), default=0)
        assert dict(zip(ids, graph.heights(), strict=True)) == longest


@pytest.mark.parametrize("scheme", COMPUTED)
def test_weights_sum_to_one_and_none_is_negative_or_lost(scheme: str) -> None:
    rng = random.Random(7)
    for _ in range(100):
        found = weigh(graph_of(random_parents(rng)), scheme)
        assert sum(found.exact_shares()) == 1
        assert min(found.raw) > 0
        assert math.fsum(found.shares()) == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize("scheme", COMPUTED)
@settings(max_examples=25)
@given(st.randoms(use_true_random=False))
def test_the_order_of_listing_changes_nothing(scheme: str, rng: random.Random) -> None:
    parents = random_parents(rng)
    names = rng.sample(list(parents), len(parents))
    shuffled = {name: rng.sample(parents[name], len(parents[name])) for name in names}
    assert shares(shuffled, scheme) == shares(parents, scheme)


@pytest.mark.parametrize(
    ("scheme", "changes"),
    [
        ("leaf_sum", True),
        ("leaf_split", True),
        ("one_plus_sum", True),
        ("katz", True),
        ("leaf_reach", False),
        ("descendants", False),
        ("uniform", False),
    ],
)
def test_what_a_redundant_edge_does(scheme: str, changes: bool) -> None:
    # a → b → c, d on its own; then a → c besides
    plain: Parents = {"a": [], "b": ["a"], "c": ["b"], "d": []}
    redundant = {**plain, "c": ["b", "a"]}
    assert (shares(plain, scheme) != shares(redundant, scheme)) is changes
    graph = graph_of(redundant)
    assert [(graph.ids[parent], graph.ids[child]) for parent, child in graph.redundant_edges()] == [("a", "c")]
    assert graph_of(plain).redundant_edges() == []


def diamonds(n: int) -> dict[str, list[str]]:
    """`n` diamonds stacked on each other: 2ⁿ ways from the first node to the last."""
    parents: dict[str, list[str]] = {"top0": []}
    for level in range(n):
        parents |= {f"l{level}": [f"top{level}"], f"r{level}": [f"top{level}"]}
        parents[f"top{level + 1}"] = [f"l{level}", f"r{level}"]
    return parents


def test_sixty_stacked_diamonds_lose_no_precision() -> None:
    parents = diamonds(60)
    graph = graph_of(parents)
    raw = dict(zip(graph.ids, weigh(graph, "leaf_sum").raw, strict=True))
    assert [raw[f"top{level}"] for level in (0, 1, 60)] == [2**60, 2**59, 1]
    assert raw["l0"] == 2**59
    one_plus = dict(zip(graph.ids, weigh(graph, "one_plus_sum").raw, strict=True))
    assert one_plus["top0"] == 2**62 - 3  # x ↦ 1 + 2(1 + x), 60 times, from 1
    assert shares(parents, "leaf_sum")["top60"] == Fraction(
        1, sum(2**level for level in range(61)) + sum(2 * 2**level for level in range(60))
    )
    split = shares(parents, "leaf_split")
    # halves are handed to both sides and come together again: every level weighs the same
    assert {split[f"top{level}"] for level in range(61)} == {Fraction(1, 121)}
    for scheme in COMPUTED:
        assert sum(shares(parents, scheme).values()) == 1


def test_a_chain_deeper_than_the_recursion_limit() -> None:
    names = [f"n{number}" for number in range(5000)]
    parents = {name: [before] for before, name in pairwise(names)} | {names[0]: []}
    graph = graph_of(parents)
    first = graph.ids.index("n0")
    assert graph.heights()[first] == graph.descendant_counts()[first] == 4999
    assert weigh(graph, "one_plus_sum").raw[first] == 5000
    assert graph.redundant_edges() == []
    assert weigh(graph, "leaf_split").shares() == [1 / 5000] * 5000


@pytest.mark.parametrize(
    ("parents", "cycle"),
    [
        pytest.param({"a": ["a"]}, ("a", "a"), id="itself"),
        pytest.param({"b": ["a"], "a": ["b"]}, ("a", "b", "a"), id="two"),
        pytest.param(
            {"x": [], "c": ["b", "x"], "b": ["a"], "a": ["c"]}, ("a", "b", "c", "a"), id="three, one beside"
        ),
    ],
)
def test_a_cycle_is_named(parents: Parents, cycle: tuple[str, ...]) -> None:
    with pytest.raises(Cyclic) as found:
        graph_of(parents)
    assert found.value.cycle == cycle


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), max_size=14))
def test_a_named_cycle_is_one_and_exists_where_networkx_finds_one(edges: list[tuple[int, int]]) -> None:
    parents: dict[str, list[str]] = {str(name): [] for name in range(7)}
    for parent, child in edges:
        if str(parent) not in parents[str(child)]:
            parents[str(child)].append(str(parent))
    acyclic = nx.is_directed_acyclic_graph(as_networkx(parents))
    try:
        Graph.of(parents)
    except Cyclic as error:
        assert not acyclic
        assert error.cycle[0] == error.cycle[-1]
        assert all(parent in parents[child] for parent, child in pairwise(error.cycle))
    else:
        assert acyclic


def test_a_parent_that_is_no_node_is_a_key_error() -> None:
    with pytest.raises(KeyError):
        graph_of({"a": ["b"]})


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ((1, 3), [0.25, 0.75]),
        ((Fraction(1, 3), Fraction(2, 3)), [1 / 3, 2 / 3]),
        ((10**400, 3 * 10**400), [0.25, 0.75]),
    ],
    ids=["integers", "fractions", "beyond floats"],
)
def test_shares_are_divided_once(raw: tuple[Fraction, ...], expected: list[float]) -> None:
    assert Weights("any", raw).shares() == expected


@pytest.mark.parametrize("gamma", ["0", "0.3", "0.5", "0.123456789", "1"])
def test_katz_is_the_formula_in_fractions(gamma: str) -> None:
    rng, share = random.Random(11), Fraction(gamma)
    for _ in range(100):
        graph = graph_of(random_parents(rng))
        raw = [Fraction(1)] * len(graph)
        for number in reversed(graph.order):
            raw[number] = 1 + share * sum((raw[child] for child in graph.children[number]), Fraction(0))
        found = weigh(graph, "katz", gamma=share)
        assert found.exact_shares() == [value / sum(raw) for value in raw]
        assert found.shares() == [float(value / sum(raw)) for value in raw]


def test_katz_of_a_deep_chain_is_exact() -> None:
    names = [f"n{number}" for number in range(3000)]
    graph = graph_of({name: [before] for before, name in pairwise(names)} | {names[0]: []})
    found = weigh(graph, "katz", gamma=Fraction(3, 10))
    first, last = found.raw[graph.ids.index("n0")], found.raw[graph.ids.index("n2999")]
    # 1 + γ + … + γ²⁹⁹⁹, as a geometric sum
    assert Fraction(first, last) == (1 - Fraction(3, 10) ** 3000) / Fraction(7, 10)
