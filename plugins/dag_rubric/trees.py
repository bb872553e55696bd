"""Two aggregations of other benchmarks, for graphs that are trees: a conclusion, and below it what it rests on.

The tree's root is the one leaf of the graph (its conclusion), and a node's subtrees are its parents
(prerequisites). Every node has checkpoints of its own here, which those benchmarks' inner nodes have not: they
count as one more subtree of average weight. Both give each node's contribution; the sum is the score, 0…1.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from plugins.dag_rubric.graph import Graph
from plugins.dag_rubric.rubric import Rubric
from plugins.dag_rubric.weights import decimal_fraction


def why_no_tree(graph: Graph) -> str | None:
    """What keeps a graph from being a tree with one conclusion; None when it is one."""
    leaves = graph.leaves()
    if len(leaves) > 1:
        names = ", ".join(graph.ids[leaf] for leaf in leaves[:3])
        return f"it has {len(leaves)} conclusions ({names}{', …' if len(leaves) > 3 else ''})"
    for node, children in enumerate(graph.children):
        if len(children) > 1:
            names = ", ".join(graph.ids[child] for child in children[:3])
            return f"{len(children)} nodes build on node {graph.ids[node]} ({names})"
    return None


def tree_mean(rubric: Rubric, scores: Sequence[Fraction]) -> list[Fraction]:
    """After PaperBench (arXiv 2504.01848): from the conclusion down, the weighted mean of subtrees.

    With k subtrees whose weighted mean is M, a node's value is (s + k·M) / (k + 1). Subtrees weigh what the task
    says of their top nodes, alike where it says nothing; where all of them weigh 0, the value is s.
    """
    weights = _own_weights(rubric)
    part = _whole(rubric.graph)
    found = [Fraction(0)] * len(rubric.nodes)
    for node in reversed(rubric.graph.order):
        subtrees = rubric.graph.parents[node]
        total = sum((weights[subtree] for subtree in subtrees), Fraction(0))
        share = part[node] / (len(subtrees) + 1) if total else part[node]
        found[node] = share * scores[node]
        for subtree in subtrees:
            part[subtree] = share * len(subtrees) * weights[subtree] / total if total else Fraction(0)
    return found


def critical_gate(rubric: Rubric, scores: Sequence[Fraction]) -> list[Fraction]:
    """After Mind2Web 2 (arXiv 2506.21506): a node fails when a critical subtree is not perfect.

    Otherwise its value is the mean of its own score and of its subtrees that are not critical.
    """
    graph = rubric.graph
    value = [Fraction(0)] * len(rubric.nodes)
    for node in graph.order:
        critical = [subtree for subtree in graph.parents[node] if rubric.nodes[subtree].critical]
        if all(value[subtree] == 1 for subtree in critical):
            counted = [scores[node], *(value[other] for other in graph.parents[node] if other not in critical)]
            value[node] = sum(counted, Fraction(0)) / len(counted)
    part = _whole(graph)
    found = [Fraction(0)] * len(rubric.nodes)
    for node in reversed(graph.order):
        subtrees = graph.parents[node]
        counted_trees = [subtree for subtree in subtrees if not rubric.nodes[subtree].critical]
        fails = any(value[subtree] != 1 for subtree in subtrees if rubric.nodes[subtree].critical)
        share = Fraction(0) if fails else part[node] / (len(counted_trees) + 1)
        found[node] = share * scores[node]
        for subtree in subtrees:
            part[subtree] = share if subtree in counted_trees else Fraction(0)
    return found


def _whole(graph: Graph) -> list[Fraction]:
    """How much of the whole each node's subtree is, before any is handed down: all of it is the conclusion's."""
    part = [Fraction(0)] * len(graph)
    for leaf in graph.leaves():
        part[leaf] = Fraction(1)
    return part


def _own_weights(rubric: Rubric) -> list[Fraction]:
    if rubric.own_weights is None:
        return [Fraction(1)] * len(rubric.nodes)
    return [decimal_fraction(weight) for weight in rubric.own_weights]
