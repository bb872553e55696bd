"""A task's numbers, from its submission's rows and what was judged of them. Pure.

Of each repeat: the rows that speak of identity give every value its cluster, the rows on records give every leaf
its outcomes, and the rollup does the rest. Two readings stand side by side: strict, where one malformed row (or a
file that is missing or empty) makes every number 0, and lenient (`_lenient`), where a malformed row is a leaf that
failed. Nodes of a tree also get their numbers by themselves, without their subtasks: `<metric>/<node>`. Beside
them stands what analysis.py counts: `analysis/…`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from core.errors import InputError
from core.fold import CoverageBy, by_repeat
from core.model import Count, Judgement, RunScore
from plugins.wandr import analysis, identity
from plugins.wandr.analysis import JudgedRow
from plugins.wandr.checks import outcomes
from plugins.wandr.model import Identity, Leaf, Node, Parsed, Record
from plugins.wandr.rollup import METRICS, overall, published, rollup, standalone

LENIENT: Final = "_lenient"
#: The flag of a submission with malformed rows.
MALFORMED: Final = "malformed"
RECORD: Final = "record"
PAGE: Final = "page"

Numbers = dict[str, float | None]


@dataclass(frozen=True)
class Reading:
    """A submission as it was parsed, with what does not depend on any judgement."""

    root: Node
    parsed: Parsed

    @cached_property
    def nodes(self) -> dict[str, Node]:
        return {node.name: node for node in self.root.walk()}

    @cached_property
    def values(self) -> list[dict[str, str]]:
        """The raw values of each record by key, in the order of records."""
        nodes = self.nodes
        return [identity.values_of(nodes[row.node], row.item, row.url) for row in self.parsed.records]

    @cached_property
    def malformed_leaves(self) -> list[Leaf]:
        """The malformed rows as leaves that failed; a file that is missing or empty has none."""
        nodes = self.nodes
        return [
            Leaf(
                row.node,
                identity.values_of(nodes[row.node], row.item, row.url),
                row.url,
                full=False,
                retrieval=False,
            )
            for row in self.parsed.malformed
            if row.line is not None
        ]

    @cached_property
    def raws(self) -> dict[str, list[str]]:
        """The distinct raw values by key, those of malformed rows included."""
        return identity.raws_of([*self.values, *(leaf.values for leaf in self.malformed_leaves)])

    @cached_property
    def units(self) -> dict[str, Record]:
        return {record.unit: record for record in self.parsed.records}


def metric_names(root: Node) -> list[str]:
    """The names of a task's metrics, in the order in which they are written."""
    return [*score_names(root), *analysis.of_nothing(root)]


def score_names(root: Node) -> list[str]:
    """The names of the metrics that are scores, 0…1."""
    names = [*METRICS, *(name + LENIENT for name in METRICS)]
    if root.subtasks:
        names += [f"{name}/{node.name}" for node in root.walk() for name in METRICS]
    return names


def zeros(root: Node) -> Numbers:
    """The numbers of a submission in which there is nothing: scores of 0, and counts of nothing."""
    return {**dict.fromkeys(score_names(root), 0.0), **analysis.of_nothing(root)}


def nulls(root: Node) -> Numbers:
    """The numbers where nothing was judged."""
    return dict.fromkeys(metric_names(root))


@dataclass(frozen=True, slots=True)
class Run:
    """One repeat's numbers, with the coverage and flags that go with them."""

    score: RunScore
    coverage: CoverageBy
    flags: frozenset[str]


def runs_of(reading: Reading, judgements: Sequence[Judgement]) -> list[Run]:
    """Each repeat of one attempt. Raises ValueError for two rows of one unit, InputError for unknown units."""
    if len({row.attempt for row in judgements}) > 1:
        raise ValueError("the judgements of one attempt are scored at a time")
    return [_run(reading, repeat, rows) for repeat, rows in by_repeat(judgements).items()]


def _run(reading: Reading, repeat: int, rows: Sequence[Judgement]) -> Run:
    said = identity.read(rows, identity.keys_of(reading.root))
    who = identity.identity_of(reading.root, reading.raws, said)
    judged = record_rows(reading, rows)
    metrics, flags = numbers(reading, who, judged, page_statuses(rows))
    counts = coverage_of(reading, judged)
    score = RunScore(
        attempt=rows[0].attempt,
        repeat=repeat,
        metrics=metrics,
        n_graded=sum(count.graded for count in counts.values()),
        n_expected=len(reading.parsed.records),
    )
    return Run(score, {"node": counts}, frozenset(flags | identity.flags_of(said)))


def record_rows(reading: Reading, rows: Sequence[Judgement]) -> dict[str, Judgement]:
    """The rows on records by unit; what speaks of pages and identity is passed over."""
    keys = identity.keys_of(reading.root)
    found: dict[str, Judgement] = {}
    seen: set[str] = set()
    for row in rows:
        where = f"task {row.task_id}, repeat {row.repeat}, unit {row.unit}"
        if row.unit in seen:
            raise ValueError(f"{where}: two judgements of one unit in one repeat")
        seen.add(row.unit)
        kind, _, rest = row.unit.partition("/")
        if kind == RECORD:
            if row.unit in reading.units:
                found[row.unit] = row
            elif rest.rpartition("/")[0] not in reading.nodes:
                raise InputError(
                    "the task has no such node", where=where, expected=f"one of {', '.join(reading.nodes)}"
                )
        elif kind in (identity.CANONICALIZE, identity.DEDUPLICATE):
            if rest.partition("/")[0] not in keys:
                raise InputError("the task has no such key", where=where, expected=f"one of {', '.join(keys)}")
        elif kind != PAGE:
            raise InputError(
                "not a unit of this benchmark",
                where=where,
                expected="record/<node>/<line>, canonicalize/<key>/<value>, deduplicate/<key> or page/<url>",
            )
    return found


def leaves_of(reading: Reading, judged: Mapping[str, Judgement]) -> list[Leaf]:
    """The well-formed rows as leaves, in the order of records; without a judgement they are missing."""
    leaves = []
    for record, values in zip(reading.parsed.records, reading.values, strict=True):
        row = judged.get(record.unit)
        full, retrieval = outcomes(row.verdict if row is not None else None)
        leaves.append(Leaf(record.node, values, record.url, full, retrieval))
    return leaves


def page_statuses(rows: Sequence[Judgement]) -> dict[str, str]:
    """What became of the fetches, by address."""
    prefix = f"{PAGE}/"
    return {
        row.unit.removeprefix(prefix): row.verdict["status"]
        for row in rows
        if row.verdict is not None and row.unit.startswith(prefix)
    }


def numbers(
    reading: Reading, who: Identity, judged: Mapping[str, Judgement], pages: Mapping[str, str]
) -> tuple[Numbers, set[str]]:
    """All metrics of one repeat, and their flags.

    Where rows were expected to be judged and none was, there is no number: not even the 0 of a malformed row.
    """
    root, parsed = reading.root, reading.parsed
    flags = {MALFORMED} if parsed.malformed else set()
    if parsed.records and not any(row.verdict is not None for row in judged.values()):
        return nulls(root), flags
    leaves = leaves_of(reading, judged)
    lenient = rollup(root, [*leaves, *reading.malformed_leaves], who)
    found, missing = published(overall(lenient))
    metrics: Numbers = dict.fromkeys(score_names(root), 0.0)
    metrics |= {name + LENIENT: value for name, value in found.items()}
    seen = [
        JudgedRow(leaf, row.verdict if (row := judged.get(record.unit)) else None, pages.get(record.url))
        for record, leaf in zip(parsed.records, leaves, strict=True)
    ]
    metrics |= analysis.to_metrics(analysis.analyse(root, seen, lenient, who))
    if parsed.malformed:
        flags.update(f"{flag}{LENIENT}" for flag in missing)
        return metrics, flags
    metrics |= found
    if root.subtasks:
        for name, own in standalone(lenient).items():
            metrics |= {f"{metric}/{name}": value for metric, value in published(own)[0].items()}
    return metrics, flags | set(missing)


def coverage_of(reading: Reading, judged: Mapping[str, Judgement]) -> dict[str, Count]:
    """How many of the well-formed rows were decided, by node."""
    expected = Counter(record.node for record in reading.parsed.records)
    graded = Counter(reading.units[unit].node for unit, row in judged.items() if row.verdict is not None)
    return {node: Count(graded=graded[node], expected=count) for node, count in expected.items()}


def required_coverage(root: Node, repeats: int, *, graded: bool) -> CoverageBy:
    """The coverage of a submission that is not there, or that a rule scores: its required records."""
    return {
        "node": {
            node.name: Count(
                graded=node.required_records * repeats if graded else 0, expected=node.required_records * repeats
            )
            for node in root.walk()
        }
    }
