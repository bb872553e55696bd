"""What is odd about a task and not refused: findings for whoever writes tasks.

The rules for query forms are the paper's (arXiv 2608.02163): without_hints is a compressed with_hints.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from fractions import Fraction
from typing import Any, Final

from plugins.dag_rubric.rubric import EVIDENTIAL, Rubric
from plugins.dag_rubric.schema import properties
from plugins.dag_rubric.weights import DEFAULT, EXPLICIT, weigh

#: (rule, node or field, what is odd)
Finding = tuple[str, str, str]

#: without_hints may be at most this long, as a share of with_hints' characters …
LONGEST_SHARE: Final = 0.70
#: … with at most so many sentences and question marks.
MOST_SENTENCES: Final = 3
MOST_QUESTION_MARKS: Final = 2
#: A node with more than this share of the weight decides too much alone.
HEAVY: Final = 0.30

_REDUCE: Final = f"it shifts {DEFAULT}; benchmark.transitive_reduction=true leaves such edges out"
#: What to do about a rule's findings, where a run can do something.
_ADVICE: Final[Mapping[str, str]] = {
    "redundant edge": "benchmark.transitive_reduction=true leaves such edges out",
    "heavy node": "the scores under other schemes (score/<scheme>) say how much hangs on it",
    "isolated node": "see whether an edge was forgotten",
}
_SENTENCE_END: Final = re.compile(r"[.!?。！？…]+(?=\s|$|[\"'”’)])")


def findings(row: Mapping[str, Any]) -> Iterator[Finding]:
    """(rule, node or field, what is odd) of a row that keeps the format."""
    yield from _unknown_keys(row)
    yield from _queries(row["queries"])
    rubric = Rubric.of_nodes(row["nodes"])
    schemes = [DEFAULT] if rubric.own_weights is None else [DEFAULT, EXPLICIT]
    yield from graph_findings(rubric, schemes)
    for listed, node_of in zip(row["nodes"], rubric.nodes, strict=True):
        for checkpoint in listed["checkpoints"]:
            if node_of.type == EVIDENTIAL and not checkpoint.get("evidence"):
                yield (
                    "no evidence",
                    node_of.id,
                    f"checkpoint {checkpoint['id']} of an evidential node names no source",
                )


def graph_findings(rubric: Rubric, schemes: Iterable[str], gamma: Fraction = Fraction(1, 2)) -> Iterator[Finding]:
    """What is odd about a graph and its weights under these schemes."""
    graph = rubric.graph
    for parent, child in graph.redundant_edges():
        yield (
            "redundant edge",
            graph.ids[child],
            f"its parent {graph.ids[parent]} is reached by a longer way too ({_REDUCE})",
        )
    for scheme in schemes:
        for node, share in enumerate(weigh(graph, scheme, gamma=gamma, explicit=rubric.own_weights).shares()):
            if share > HEAVY:
                yield "heavy node", graph.ids[node], f"it has {share:.0%} of the weight under {scheme}"
    for node in range(len(graph)):
        if len(graph) > 1 and not graph.parents[node] and not graph.children[node]:
            yield "isolated node", graph.ids[node], "nothing builds on it, and it builds on nothing"


def counted(found: Iterable[tuple[str, Finding]]) -> list[str]:
    """One line a rule, of (task, finding): how often, the first by name, and what to do."""
    by_rule: dict[str, list[tuple[str, Finding]]] = {}
    for task, finding in found:
        by_rule.setdefault(finding[0], []).append((task, finding))
    lines = []
    for rule, listed in by_rule.items():
        task, (_, at, text) = listed[0]
        n_tasks = len({name for name, _ in listed})
        advice = f"; {_ADVICE[rule]}" if rule in _ADVICE else ""
        said = text.replace(f" ({_REDUCE})", "")
        how_many = f"{_many(len(listed), rule)} in {_many(n_tasks, 'task')}"
        lines.append(f"{how_many}; the first: task {task}, node {at}: {said}{advice}")
    return lines


def _many(n: int, what: str) -> str:
    return f"{n} {what}" if n == 1 else f"{n} {what}s"


def _unknown_keys(row: Mapping[str, Any]) -> Iterator[Finding]:
    """Keys that nothing reads: most often a misspelt one, whose value is lost in silence."""
    yield from _strangers(row, properties(), "task")
    for node in row["nodes"]:
        yield from _strangers(node, properties("nodes"), node["id"])
        for checkpoint in node["checkpoints"]:
            yield from _strangers(checkpoint, properties("nodes", "checkpoints"), checkpoint["id"])


def _strangers(value: Mapping[str, Any], known: Sequence[str], at: str) -> Iterator[Finding]:
    for key in value:
        if key not in known:
            close = get_close_matches(key, known, n=1)
            hint = f"; did you mean {close[0]!r}?" if close else f"; known are {', '.join(known)}"
            yield "unknown key", at, f"nothing reads {key!r}{hint}"


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
