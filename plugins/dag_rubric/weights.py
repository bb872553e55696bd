"""How much each node counts: the weight schemes, exact until one division at the end.

The paper (arXiv 2608.02163) says that leaves weigh the same and that weights are passed to parents in reverse
topological order, then normalised. Whether a node sums what its children have or gets a share of it is not
published, so the scheme is a setting, and every report shows the score under several. With children = the nodes
that build on v:

    leaf_sum      leaf 1; else Σ raw(child): the literal reading, the default
    leaf_split    leaf 1; else Σ raw(child) / (number of parents of that child)
    leaf_reach    number of distinct leaves that v reaches
    one_plus_sum  1 + Σ raw(child)
    katz          1 + γ Σ raw(child), γ in 0…1 (Katz 1953)
    descendants   1 + number of distinct nodes that build on v, directly or not
    uniform       1
    explicit      the task's own weights

Raw weights are integers, or fractions where a scheme divides: on stacked diamonds they exceed 2⁵³ soon.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from functools import cached_property
from typing import Final

from plugins.dag_rubric.graph import Graph

Exact = int | Fraction

DEFAULT: Final = "leaf_sum"
EXPLICIT: Final = "explicit"


@dataclass(frozen=True)
class Weights:
    """Raw weights by node number, none negative, at least one above 0."""

    scheme: str
    raw: tuple[Exact, ...]

    @cached_property
    def total(self) -> Exact:
        return sum(self.raw)

    def shares(self) -> list[float]:
        """The normalised weights, each the float nearest to the true one."""
        # of integers of any size, true division is correctly rounded; so is a fraction's
        return [float(raw / self.total) for raw in self.raw]

    def exact_shares(self) -> list[Fraction]:
        """The normalised weights as fractions; their sum is 1."""
        return [Fraction(raw) / self.total for raw in self.raw]


def weigh(
    graph: Graph, scheme: str, *, gamma: Fraction = Fraction(1, 2), explicit: Sequence[float] | None = None
) -> Weights:
    """The weights of a graph's nodes under a scheme.

    `gamma` serves katz; `explicit` holds the task's own weights by node number. Raises KeyError for a scheme
    that SCHEMES does not have, ValueError for `explicit` without weights.
    """
    return Weights(scheme, tuple(SCHEMES[scheme](graph, gamma, explicit)))


def decimal_fraction(text: object) -> Fraction:
    """The exact value of a decimal number as it is written (`0.1` is a tenth); raises ValueError."""
    try:
        number = Decimal(str(text).strip())  # a bool's text is no number, as it should be
    except InvalidOperation:
        raise ValueError(f"{text!r} is not a decimal number") from None
    if not number.is_finite():
        raise ValueError(f"{text!r} is not finite")
    return Fraction(number)


_Scheme = Callable[[Graph, Fraction, Sequence[float] | None], Sequence[Exact]]


def _leaf_sum(graph: Graph, _gamma: Fraction, _explicit: Sequence[float] | None) -> list[int]:
    raw = [1] * len(graph)
    for node in reversed(graph.order):
        if graph.children[node]:
            raw[node] = sum(raw[child] for child in graph.children[node])
    return raw


def _leaf_split(graph: Graph, _gamma: Fraction, _explicit: Sequence[float] | None) -> list[Fraction]:
    raw = [Fraction(1)] * len(graph)
    for node in reversed(graph.order):
        if graph.children[node]:
            shares = (raw[child] / len(graph.parents[child]) for child in graph.children[node])
            raw[node] = sum(shares, Fraction(0))
    return raw


def _leaf_reach(graph: Graph, _gamma: Fraction, _explicit: Sequence[float] | None) -> list[int]:
    return graph.leaf_counts()


def _one_plus_sum(graph: Graph, _gamma: Fraction, _explicit: Sequence[float] | None) -> list[int]:
    raw = [1] * len(graph)
    for node in reversed(graph.order):
        raw[node] += sum(raw[child] for child in graph.children[node])
    return raw


def _katz(graph: Graph, gamma: Fraction, _explicit: Sequence[float] | None) -> list[int]:
    """In integers: with γ = p/q and H the longest way, raw(v)·q^H is one.

    Of a child it is divisible by q, since the child's longest way is shorter than H. So numbers are only ever
    multiplied and divided by the small p and q: the cost is that of reading H·log₂ q bits a node and edge.
    """
    p, q = gamma.numerator, gamma.denominator
    one = q ** max(graph.heights())
    scaled = [one] * len(graph)
    for node in reversed(graph.order):
        if graph.children[node]:
            scaled[node] = one + p * (sum(scaled[child] for child in graph.children[node]) // q)
    return scaled


def _descendants(graph: Graph, _gamma: Fraction, _explicit: Sequence[float] | None) -> list[int]:
    return [1 + count for count in graph.descendant_counts()]


def _uniform(graph: Graph, _gamma: Fraction, _explicit: Sequence[float] | None) -> list[int]:
    return [1] * len(graph)


def _own(graph: Graph, _gamma: Fraction, explicit: Sequence[float] | None) -> list[Fraction]:
    if explicit is None or len(explicit) != len(graph):
        raise ValueError("the nodes have no weights of their own")
    # 0.1 in a file means a tenth, not the float beside it
    return [decimal_fraction(weight) for weight in explicit]


SCHEMES: Final[Mapping[str, _Scheme]] = {
    "leaf_sum": _leaf_sum,
    "leaf_split": _leaf_split,
    "leaf_reach": _leaf_reach,
    "one_plus_sum": _one_plus_sum,
    "katz": _katz,
    "descendants": _descendants,
    "uniform": _uniform,
    EXPLICIT: _own,
}
