"""How a score came about, node by node, as plain JSON (core/report/html/shapes.md)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from core.fold import by_repeat, mean, mean_metrics
from core.model import Judgement
from plugins.dag_rubric.rubric import Node
from plugins.dag_rubric.scoring import HEADLINE, Plan, node_score, run_metrics, verdicts
from plugins.dag_rubric.settings import TREES, NodeRule


def explained(plan: Plan, judgements: Sequence[Judgement]) -> dict[str, Any]:
    """The graph with each node's share of the weight and its score, and the task's score under every scheme.

    Means over repeats. A node without a graded checkpoint has no score; a tree's aggregation weighs no node.
    Raises as the grader's `score` does.
    """
    settings, rubric = plan.settings, plan.rubric
    runs = [verdicts(rubric, rows) for rows in by_repeat(judgements).values()]
    metrics = mean_metrics([run_metrics(plan, met) for met in runs])
    is_tree = settings.aggregation in TREES
    prefix = f"{HEADLINE}/"
    others = {name.removeprefix(prefix): value for name, value in metrics.items() if name.startswith(prefix)}
    chosen = settings.aggregation if is_tree else settings.scheme
    shares = [None] * len(rubric.nodes) if is_tree else plan.weights.shares()
    names = rubric.graph.ids
    return {
        "graph": {
            "nodes": [
                {
                    "id": node.id,
                    "kind": node.type,
                    "text": node.step,
                    "weight": share,
                    "score": mean(_score(node, met, settings.node_rule) for met in runs),
                    "checkpoints": [{"unit": one.unit, "text": one.text} for one in node.checkpoints],
                }
                for node, share in zip(rubric.nodes, shares, strict=True)
            ],
            "edges": [
                [names[parent], node.id, edge]
                for node, parents in zip(rubric.nodes, rubric.graph.parents, strict=True)
                for parent, edge in zip(parents, node.edges, strict=True)
            ],
            "schemes": {chosen: metrics.get(HEADLINE), **others},
            "scheme": chosen,
            "note": _note(settings.aggregation),
        }
    }


def _score(node: Node, met: dict[str, bool], rule: NodeRule) -> float | None:
    found = [met[checkpoint.id] for checkpoint in node.checkpoints if checkpoint.id in met]
    return float(node_score(sum(found), len(found), rule)) if found else None


def _note(aggregation: str) -> str:
    if aggregation == "gate":
        return "Behind the gate, a node counts for less than its score where what it builds on failed."
    if aggregation in TREES:
        return "The score is folded along the tree; no scheme weighs its nodes."
    return "The score is the sum of weight times score over all nodes, times 100."
