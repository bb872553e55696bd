"""The optional gate: a conclusion is worth what its prerequisites allow.

After arXiv 2606.03361, and our choice for this benchmark, whose paper gates nothing. In topological order

    q(v) = s(v) · Π over parents j of ( q(j) + (1 − q(j)) · λ )

with λ by the edge's type: what a failed prerequisite lets through (weak .6, strong .2, hard 0).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Final

from plugins.dag_rubric.rubric import Rubric

#: A credit's denominator may have so many bits: with a few checkpoints a node, some fifty steps.
EXACT_BITS: Final = 512


def gated(rubric: Rubric, scores: Sequence[Fraction], passing: Mapping[str, Fraction]) -> list[Fraction]:
    """Each node's credit q, 0…1, of the nodes' scores s; `passing` maps types of edges to λ.

    Exact while numbers stay small. A credit has as many digits as all that it rests on together, so one whose
    denominator has more than EXACT_BITS becomes the nearest float, and what builds on it is as near as that:
    deep or dense graphs have an error of some 10⁻¹⁶ a step. The products of fractions know no order, so the
    order in which parents are listed changes no bit.
    """
    credit = [Fraction(0)] * len(rubric.nodes)
    for node in rubric.graph.order:
        if not scores[node]:
            continue
        parents = zip(rubric.graph.parents[node], rubric.nodes[node].edges, strict=True)
        factors = [credit[parent] + (1 - credit[parent]) * passing[edge] for parent, edge in parents]
        if sum(factor.denominator.bit_length() for factor in factors) > EXACT_BITS:
            # floats are multiplied in the order of their size, for the same reason
            found = Fraction(math.prod(sorted(map(float, factors))) * float(scores[node]))
        else:
            found = math.prod(factors, start=scores[node])
        credit[node] = found if found.denominator.bit_length() <= EXACT_BITS else Fraction(float(found))
    return credit
