"""`core.audit weights TASKS|RUN…`: how much hangs on the choice of a weight scheme?

Of tasks: the largest share that a node has, and the effective number of nodes, 1 / Σ w² (Kish 1965; the inverse of
Herfindahl's index). Of runs: every system's score and rank under every scheme, and the rank flips: pairs of
systems whose order is another than under the scheme that the first run was scored with.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import combinations
from pathlib import Path
from typing import Any

from core.audit import Cell, Report, Table
from core.errors import InputError
from core.fold import mean
from plugins.dag_rubric.audits.reading import JudgedRun, judged, task_rows
from plugins.dag_rubric.rubric import EVIDENTIAL, Rubric
from plugins.dag_rubric.scoring import HEADLINE
from plugins.dag_rubric.settings import Settings
from plugins.dag_rubric.weights import EXPLICIT, SCHEMES, Weights, weigh

Scores = Mapping[str, Mapping[str, float | None]]


def spread(rubric: Rubric, weights: Weights) -> dict[str, float]:
    """The largest share, the effective number of nodes, and the share of evidential nodes."""
    shares = weights.exact_shares()
    evidential = (share for share, node in zip(shares, rubric.nodes, strict=True) if node.type == EVIDENTIAL)
    return {
        "largest_share": float(max(shares)),
        "effective_nodes": float(1 / sum((share * share for share in shares), Fraction(0))),
        "evidential_share": float(sum(evidential, Fraction(0))),
    }


def ranks(values: Mapping[str, float | None]) -> dict[str, float | None]:
    """Rank 1 for the highest; equal values share the mean of their ranks; None for no value."""
    found: dict[str, float | None] = dict.fromkeys(values)
    present = {name: value for name, value in values.items() if value is not None}
    for name, value in present.items():
        above = sum(other > value for other in present.values())
        equal = sum(other == value for other in present.values())
        found[name] = above + (equal + 1) / 2
    return found


def flips(one: Mapping[str, float | None], other: Mapping[str, float | None]) -> list[tuple[str, str]]:
    """The pairs of systems that stand in opposite orders; ties are no flips."""
    found = []
    for left, right in combinations(one, 2):
        values = one[left], one[right], other.get(left), other.get(right)
        if None in values:
            continue
        first, second, third, fourth = (float(value) for value in values if value is not None)
        if (first - second) * (third - fourth) < 0:
            found.append((left, right))
    return found


class WeightSensitivity:
    """Scores and ranks under every scheme, and how weight is spread."""

    summary = "scores and ranks under every weight scheme, rank flips, largest shares, effective number of nodes"

    def arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            "inputs", nargs="+", metavar="TASKS|RUN", help="a task file (or sample), or folders of runs"
        )
        parser.add_argument("--gamma", default="0.5", help="katz: what passes on to a parent (0.5)")

    def run(self, words: argparse.Namespace) -> Report:
        gamma = Settings.of({"weights": {"gamma": words.gamma}}).gamma
        folders = [Path(word) for word in words.inputs if Path(word).is_dir()]
        if not folders and len(words.inputs) == 1:
            rubrics = {task: Rubric.of_nodes(row["nodes"]) for task, row in task_rows(words.inputs[0]).items()}
            return _report(*_spreads(rubrics, gamma))
        if len(folders) < len(words.inputs):
            raise InputError(
                "neither one task file nor folders of runs",
                where=" ".join(words.inputs),
                expected="one task file, or one or more run folders",
            )
        return self._of_runs(folders, words.gamma, gamma)

    def _of_runs(self, folders: Sequence[Path], text: str, gamma: Fraction) -> Report:
        from core.rescore import read_run

        # forms of one task share its rubric
        rubrics = {
            str(task.labels["task"]): Rubric.of(task) for folder in folders for task in read_run(folder).tasks
        }
        schemes = [
            scheme
            for scheme in SCHEMES
            if scheme != EXPLICIT or all(rubric.own_weights is not None for rubric in rubrics.values())
        ]
        runs = [
            judged(folder, weights={"scheme": schemes[0], "gamma": text, "also": schemes[1:]})
            for folder in folders
        ]
        chosen = Settings.of(runs[0].config.benchmark.plain()).scheme
        systems = _systems(runs)
        scores: dict[str, dict[str, float | None]] = {
            scheme: {name: _score(run, scheme, first=schemes[0]) for name, run in systems.items()}
            for scheme in schemes
        }
        by_scheme: dict[str, Any] = {
            scheme: {
                "scores": scores[scheme],
                "ranks": ranks(scores[scheme]),
                "flips": [list(pair) for pair in flips(scores[chosen], scores[scheme])],
            }
            for scheme in schemes
        }
        columns = ("scheme", *systems, f"flips against {chosen}")
        table: list[list[Cell]] = [
            [
                scheme,
                *(_ranked(found["scores"][name], found["ranks"][name]) for name in systems),
                len(found["flips"]),
            ]
            for scheme, found in by_scheme.items()
        ]
        tables, data = _spreads(rubrics, gamma)
        shown = Table("score (rank) under each scheme", columns, table)
        return _report([shown, *tables], {**data, "compared_with": chosen, "schemes": by_scheme})


def _systems(runs: Sequence[JudgedRun]) -> dict[str, JudgedRun]:
    """Runs by the name of their system; the folder's name tells equal ones apart."""
    names = [run.system for run in runs]
    found = {run.system if names.count(run.system) == 1 else f"{run.system} {run.path.name}": run for run in runs}
    if len(found) < len(runs):
        raise InputError("two runs have one name", where=", ".join(str(run.path) for run in runs))
    return found


def _score(run: JudgedRun, scheme: str, *, first: str) -> float | None:
    """The overall under a scheme; `first` is the one that the run was folded with."""
    trees = f"{HEADLINE}/{first}" in run.summary["metrics"]
    name = HEADLINE if scheme == first and not trees else f"{HEADLINE}/{scheme}"
    value: float | None = run.summary["metrics"][name]["value"]
    return value


def _ranked(score: float | None, rank: float | None) -> str:
    return "–" if score is None or rank is None else f"{score:.2f} ({rank:g})"


def _spreads(rubrics: Mapping[str, Rubric], gamma: Fraction) -> tuple[list[Table], dict[str, Any]]:
    tasks: dict[str, Any] = {}
    for task, rubric in rubrics.items():
        tasks[task] = {
            scheme: spread(rubric, weigh(rubric.graph, scheme, gamma=gamma, explicit=rubric.own_weights))
            for scheme in SCHEMES
            if scheme != EXPLICIT or rubric.own_weights is not None
        }
    table: list[list[Cell]] = []
    for scheme in SCHEMES:
        found = [by_scheme[scheme] for by_scheme in tasks.values() if scheme in by_scheme]
        if found:
            table.append(
                [
                    scheme,
                    len(found),
                    max(each["largest_share"] for each in found),
                    mean(each["largest_share"] for each in found),
                    mean(each["effective_nodes"] for each in found),
                    mean(each["evidential_share"] for each in found),
                ]
            )
    sizes = [len(rubric.nodes) for rubric in rubrics.values()]
    columns = ("scheme", "tasks", "largest share", "mean largest", "mean effective nodes", "mean evidential share")
    title = f"how weight is spread over {mean(sizes):.2f} nodes a task"
    return [Table(title, columns, table)], {"tasks": tasks, "mean_nodes": mean(sizes)}


def _report(tables: Sequence[Table], data: Mapping[str, Any]) -> Report:
    return Report(
        tables, data, ("which scheme is the paper's is not published; leaf_sum is our literal reading of it",)
    )
