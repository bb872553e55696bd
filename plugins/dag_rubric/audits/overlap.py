"""`core.audit overlap A B` and `core.audit recall TASKS EXPERT`: is a rubric set all there is?

A construction that stops when its explorer finds nothing new has saturated the explorer, not the task. So the
checkpoints of two independent explorations of the same tasks are matched one to one. With n₁ and n₂ checkpoints
and m matches:

    Jaccard          m / (n₁ + n₂ − m)                        (Jaccard 1912)
    recall           of A by B: m / n₁; of B by A: m / n₂; weighted: matched weight / weight, a checkpoint having
                     its node's weight divided by the node's number of checkpoints
    new              (n₂ − m) / n₂: relevant checkpoints that only B has
    capture–recapture  N̂ = (n₁+1)(n₂+1)/(m+1) − 1             (Chapman 1951; interval: Chao 1987)

Shares have Wilson's interval (1927). Flags: a Jaccard below 0.6, more than 10 % new.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, Final

from core.audit import Cell, Report, Table
from core.errors import InputError
from core.fold import mean
from core.stats import wilson
from core.taskfile import json_rows
from plugins.dag_rubric.audits.intervals import Interval, chapman, chapman_interval
from plugins.dag_rubric.audits.matching import (
    LEAST,
    Matches,
    Pair,
    Similarity,
    covers,
    known,
    match,
    read_matches,
    same,
)
from plugins.dag_rubric.audits.reading import task_rows
from plugins.dag_rubric.rubric import Rubric
from plugins.dag_rubric.weights import DEFAULT, decimal_fraction, weigh

LOWEST_JACCARD: Final = 0.6
MOST_NEW: Final = 0.10
BY_WORDS: Final = (
    "matched by words: numbers, negation and key terms; paraphrases are missed, so overlap and recall are lower "
    "bounds. --matches FILE takes the matches of a person or a model"
)


@dataclass(frozen=True, slots=True)
class Claims:
    """Checkpoints (or an expert's points) by id, each with its text and its share of the weight."""

    texts: Mapping[str, str]
    weights: Mapping[str, Fraction]

    @classmethod
    def of_nodes(cls, nodes: Sequence[Mapping[str, Any]]) -> Claims:
        rubric = Rubric.of_nodes(nodes)
        shares = weigh(rubric.graph, DEFAULT).exact_shares()
        return cls(
            {checkpoint.id: checkpoint.text for checkpoint in rubric.checkpoints},
            {
                checkpoint.id: share / len(node.checkpoints)
                for node, share in zip(rubric.nodes, shares, strict=True)
                for checkpoint in node.checkpoints
            },
        )

    def without(self, ids: frozenset[str]) -> Claims:
        kept = [key for key in self.texts if key not in ids]
        return Claims({key: self.texts[key] for key in kept}, {key: self.weights[key] for key in kept})

    def weight_of(self, ids: Sequence[str]) -> float | None:
        """The share of the weight that these have."""
        total = sum(self.weights.values(), Fraction(0))
        return float(sum((self.weights[key] for key in ids), Fraction(0)) / total) if total else None


def compare(one: Claims, other: Claims, pairs: Sequence[Pair]) -> dict[str, Any]:
    """The numbers of one task; see the module's formulas."""
    first, second, both = len(one.texts), len(other.texts), len(pairs)
    found: dict[str, Any] = {
        "n_a": first,
        "n_b": second,
        "matched": both,
        **_share("jaccard", both, first + second - both),
        **_share("recall_of_a", both, first),
        **_share("recall_of_b", both, second),
        "weighted_recall_of_a": one.weight_of([pair[0] for pair in pairs]),
        "weighted_recall_of_b": other.weight_of([pair[1] for pair in pairs]),
        **_share("new", second - both, second),
        "estimated_total": chapman(first, second, both),
    }
    low, high = chapman_interval(first, second, both)
    found |= {"estimated_total_low": low, "estimated_total_high": high}
    found["flags"] = _flags(found)
    return found


def _flags(numbers: Mapping[str, Any]) -> list[str]:
    flags = []
    if numbers["jaccard"] is not None and numbers["jaccard"] < LOWEST_JACCARD:
        flags.append("low_overlap")
    if numbers["new"] is not None and numbers["new"] > MOST_NEW:
        flags.append("much_new")
    return flags


def _share(name: str, count: int, total: int) -> dict[str, float | None]:
    low, high = _ends(wilson(count, total))
    return {name: count / total if total else None, f"{name}_low": low, f"{name}_high": high}


def _ends(interval: Interval | None) -> tuple[float | None, float | None]:
    return interval or (None, None)


class Overlap:
    """Two rubric sets of the same tasks."""

    summary = "how far two independent rubric sets of the same tasks agree"

    def arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("a", metavar="A", help="a task file, or sample")
        parser.add_argument("b", metavar="B", help="another exploration of the same tasks (equal task ids)")
        _matching_arguments(parser)

    def run(self, words: argparse.Namespace) -> Report:
        left, right = task_rows(words.a), task_rows(words.b)
        shared = [task for task in left if task in right]
        if not shared:
            raise InputError("no task id stands in both files", where=f"{words.a}, {words.b}")
        matches = read_matches(words.matches) if words.matches else None
        tasks = {}
        for task in shared:
            one, other = Claims.of_nodes(left[task]["nodes"]), Claims.of_nodes(right[task]["nodes"])
            tasks[task] = _compared(task, one, other, matches, words.least)
        pooled = {key: sum(found[key] for found in tasks.values()) for key in ("n_a", "n_b", "matched")}
        overall: dict[str, Any] = {
            **pooled,
            **_share("jaccard", pooled["matched"], pooled["n_a"] + pooled["n_b"] - pooled["matched"]),
            **_share("recall_of_a", pooled["matched"], pooled["n_a"]),
            **_share("recall_of_b", pooled["matched"], pooled["n_b"]),
            **_share("new", pooled["n_b"] - pooled["matched"], pooled["n_b"]),
            "mean_over_tasks": {key: _mean_over(tasks, key) for key in _MEANS},
        }
        overall["flags"] = _flags(overall)
        data = {
            "tasks": tasks,
            "pooled": overall,
            "only_in_a": [task for task in left if task not in right],
            "only_in_b": [task for task in right if task not in left],
            "matching": _said(matches),
        }
        table = [_overlap_row(task, found) for task, found in tasks.items()]
        means = overall["mean_over_tasks"]
        weighted = {key: means[key]["value"] for key in ("weighted_recall_of_a", "weighted_recall_of_b")}
        table.append(_overlap_row("all, pooled", {**overall, **weighted, "estimated_total": None}))
        shown = Table("overlap of two rubric sets (95 % intervals in --out)", _COLUMNS, table)
        return Report([shown], data, (_said(matches),))


_COLUMNS: Final = (
    "task",
    "A",
    "B",
    "both",
    "Jaccard",
    "recall of A",
    "recall of B",
    "weighted A",
    "weighted B",
    "new",
    "N̂",
    "flags",
)
_MEANS: Final = ("jaccard", "recall_of_a", "recall_of_b", "weighted_recall_of_a", "weighted_recall_of_b", "new")


def _mean_over(tasks: Mapping[str, Mapping[str, Any]], key: str) -> dict[str, float | None]:
    """The mean over tasks, with its bootstrap interval."""
    from core.stats import bootstrap_interval

    values = [found[key] for found in tasks.values() if found[key] is not None]
    low, high = _ends(bootstrap_interval(values))
    return {"value": mean(values), "low": low, "high": high}


def _overlap_row(name: str, found: Mapping[str, Any]) -> list[Cell]:
    keys = ("n_a", "n_b", "matched", *_MEANS, "estimated_total")
    return [name, *(found[key] for key in keys), ", ".join(found["flags"])]


class Recall:
    """A rubric set against an expert's list: rows `{"task_id", "id", "text"}`, with `weight` if wanted."""

    summary = "how much of an expert's list of points a rubric set covers"

    def arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("tasks", metavar="TASKS", help="a task file, or sample")
        parser.add_argument(
            "expert", type=Path, metavar="EXPERT", help='.jsonl of {"task_id", "id", "text", "weight": 1}'
        )
        _matching_arguments(parser)

    def run(self, words: argparse.Namespace) -> Report:
        rows, experts = task_rows(words.tasks), read_experts(words.expert)
        strangers = sorted(experts.keys() - rows.keys())
        if strangers:
            raise InputError(
                f"the tasks have no {strangers[0]!r}",
                where=str(words.expert),
                expected=f"task ids of {words.tasks}",
            )
        matches = read_matches(words.matches) if words.matches else None
        tasks: dict[str, Any] = {}
        for task, points in experts.items():
            rubric = Claims.of_nodes(rows[task]["nodes"])
            pairs = _pairs(task, points, rubric, matches, words.least, how=covers)
            covered = [pair[0] for pair in pairs]
            tasks[task] = {
                "n_points": len(points.texts),
                "covered": len(pairs),
                **_share("recall", len(pairs), len(points.texts)),
                "weighted_recall": points.weight_of(covered),
                "missing": [key for key in points.texts if key not in covered],
            }
        n_points, covered_points = (sum(found[key] for found in tasks.values()) for key in ("n_points", "covered"))
        pooled = {"n_points": n_points, "covered": covered_points, **_share("recall", covered_points, n_points)}
        means = {key: _mean_over(tasks, key) for key in ("recall", "weighted_recall")}
        data = {"tasks": tasks, "pooled": {**pooled, "mean_over_tasks": means}, "matching": _said(matches)}
        columns = ("task", "points", "covered", "recall", "low", "high", "weighted", "missing")
        keys = ("n_points", "covered", "recall", "recall_low", "recall_high")
        table: list[list[Cell]] = [
            [task, *(found[key] for key in keys), found["weighted_recall"], ", ".join(found["missing"])]
            for task, found in tasks.items()
        ]
        table.append(["all, pooled", *(pooled[key] for key in keys), means["weighted_recall"]["value"], ""])
        return Report([Table("recall against an expert's list", columns, table)], data, (_said(matches),))


def read_experts(path: Path) -> dict[str, Claims]:
    """An expert's points by task; an `id` that is not given is the point's place, from 1. Raises InputError."""
    texts: dict[str, dict[str, str]] = {}
    weights: dict[str, dict[str, Fraction]] = {}
    for place, row in json_rows(path):
        if not isinstance(row, Mapping) or not all(isinstance(row.get(key), str) for key in ("task_id", "text")):
            raise InputError("not a point", where=place, expected='{"task_id": …, "text": …}')
        points = texts.setdefault(row["task_id"], {})
        key, weight = str(row.get("id") or len(points) + 1), row.get("weight", 1)
        if key in points:
            raise InputError("the point's id stands twice in the task", where=place, got=repr(key))
        try:
            share = decimal_fraction(weight)
        except ValueError:
            share = Fraction(-1)
        if share < 0:
            raise InputError("not a weight", where=f"{place}, field weight", expected="a number, 0 or more")
        points[key] = row["text"]
        weights.setdefault(row["task_id"], {})[key] = share
    if not texts:
        raise InputError("the list is empty", where=str(path), expected="at least one point")
    return {task: Claims(points, weights[task]) for task, points in texts.items()}


def _matching_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--matches", type=Path, metavar="FILE", help='.jsonl of {"task_id", "a", "b"}: who says the same'
    )
    parser.add_argument(
        "--least", type=float, default=LEAST, metavar="SHARE", help=f"least similarity of a match ({LEAST})"
    )


def _compared(task: str, one: Claims, other: Claims, matches: Matches | None, least: float) -> dict[str, Any]:
    if matches is not None:
        other = other.without(matches.irrelevant.get(task, frozenset()))
    return compare(one, other, _pairs(task, one, other, matches, least))


def _pairs(
    task: str, one: Claims, other: Claims, matches: Matches | None, least: float, *, how: Similarity = same
) -> list[Pair]:
    if matches is None:
        return match(one.texts, other.texts, least=least, how=how)
    return known(task, matches.pairs.get(task, ()), one.texts, other.texts)


def _said(matches: Matches | None) -> str:
    return BY_WORDS if matches is None else "matched by the file of --matches"
