"""The optional gate: a conclusion is worth what its prerequisites allow.

After arXiv 2606.03361, and our choice for this benchmark, whose paper gates nothing. In topological order

    q(v) = s(v) · Π over parents j of ( q(j) + (1 − q(j)) · λ )

with λ by the edge's type: what a failed prerequisite lets through (weak .6, strong .2, hard 0).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction

from plugins.dag_rubric.rubric import Rubric


def gated(rubric: Rubric, scores: Sequence[Fraction], passing: Mapping[str, Fraction]) -> list[Fraction]:
    """Each node's credit q, 0…1, of the nodes' scores s; `passing` maps types of edges to λ.

    Floats inside: exact products would grow with the number of paths. Factors are multiplied in the order of
    their size, so that the order in which parents are listed changes no bit.
    """
    let_through = {edge: float(share) for edge, share in passing.items()}
    credit = [0.0] * len(rubric.nodes)
    for node in rubric.graph.order:
        parents = zip(rubric.graph.parents[node], rubric.nodes[node].edges, strict=True)
        factors = [credit[parent] + (1 - credit[parent]) * let_through[edge] for parent, edge in parents]
        credit[node] = float(scores[node]) * math.prod(sorted(factors))
    return [Fraction(value) for value in credit]
