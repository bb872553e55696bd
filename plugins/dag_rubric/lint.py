"""What is odd about a task and not refused: findings for whoever writes tasks.

The rules for query forms are the paper's (arXiv 2608.02163): without_hints is a compressed with_hints.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from plugins.dag_rubric.rubric import EVIDENTIAL, Rubric
from plugins.dag_rubric.weights import DEFAULT, weigh

#: without_hints may be at most this long, as a share of with_hints' characters …
LONGEST_SHARE: Final = 0.70
#: … with at most so many sentences and question marks.
MOST_SENTENCES: Final = 3
MOST_QUESTION_MARKS: Final = 2
#: A node with more than this share of the weight decides too much alone.
HEAVY: Final = 0.30

_REDUCE: Final = f"it shifts {DEFAULT}; benchmark.transitive_reduction=true leaves such edges out"
_SENTENCE_END: Final = re.compile(r"[.!?。！？…]+(?=\s|$|[\"'”’)])")


def findings(row: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """(rule, node or field, what is odd) of a row that keeps the format."""
    yield from _queries(row["queries"])
    rubric = Rubric.of_nodes(row["nodes"])
    graph = rubric.graph
    for parent, child in graph.redundant_edges():
        yield (
            "redundant edge",
            graph.ids[child],
            f"its parent {graph.ids[parent]} is reached by a longer way too ({_REDUCE})",
        )
    for node, share in enumerate(weigh(graph, DEFAULT).shares()):
        if share > HEAVY:
            yield "heavy node", graph.ids[node], f"it has {share:.0%} of the weight under {DEFAULT}"
    for node in range(len(graph)):
        if len(graph) > 1 and not graph.parents[node] and not graph.children[node]:
            yield "isolated node", graph.ids[node], "nothing builds on it, and it builds on nothing"
    for listed, node_of in zip(row["nodes"], rubric.nodes, strict=True):
        for checkpoint in listed["checkpoints"]:
            if node_of.type == EVIDENTIAL and not checkpoint.get("evidence"):
                yield (
                    "no evidence",
                    node_of.id,
                    f"checkpoint {checkpoint['id']} of an evidential node names no source",
                )


def _queries(queries: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    hinted, bare = queries.get("with_hints"), queries.get("without_hints")
    if not bare:
        return
    field = "queries.without_hints"
    if hinted and len(bare) > LONGEST_SHARE * len(hinted):
        share = len(bare) / len(hinted)
        yield "long query", field, f"it has {share:.0%} of the length of with_hints, more than {LONGEST_SHARE:.0%}"
    if (n := _sentences(bare)) > MOST_SENTENCES:
        yield "many sentences", field, f"it has {n} sentences, more than {MOST_SENTENCES}"
    if (n := bare.count("?") + bare.count("？")) > MOST_QUESTION_MARKS:
        yield "many questions", field, f"it has {n} question marks, more than {MOST_QUESTION_MARKS}"


def _sentences(text: str) -> int:
    """Sentences by their ends; what is left after the last end counts as one."""
    ends = list(_SENTENCE_END.finditer(text.strip()))
    rest = text.strip()[ends[-1].end() :] if ends else text.strip()
    return len(ends) + bool(rest.strip("\"'”’) "))
