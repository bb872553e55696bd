"""`core.audit forms RUN…` and `core.audit saturation RUN…`: what runs on the same tasks say together."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from core.audit import Cell, Report, Table
from core.errors import InputError
from core.model import TaskScore
from core.stats import wilson
from plugins.dag_rubric.audits.reading import JudgedRun, judged
from plugins.dag_rubric.gaps import SHOWN, form_gaps, form_of, task_of
from plugins.dag_rubric.scoring import HEADLINE

#: A task on which the best system has more than this (0–100) tells systems apart no longer.
SATURATED: Final = 90.0

Key = tuple[str, str]


def by_system(runs: Sequence[JudgedRun]) -> dict[str, dict[Key, TaskScore]]:
    """System → (task, form) → score; raises InputError where two runs have a number for the same."""
    found: dict[str, dict[Key, TaskScore]] = {}
    for run in runs:
        known = found.setdefault(run.system, {})
        for score in run.scores:
            key = (task_of(score), form_of(score))
            if key in known:
                raise InputError(
                    f"system {run.system!r} has two scores for task {key[0]!r}, form {key[1]}",
                    where=str(run.path),
                    expected="runs of different systems, efforts or forms",
                )
            known[key] = score
    return found


class FormGaps:
    """Paired gaps between query forms, by system. Runs may hold all forms, or one each."""

    summary = "what systems lose without hints: paired gaps between query forms, with intervals"

    def arguments(self, parser: argparse.ArgumentParser) -> None:
        _run_arguments(parser)

    def run(self, words: argparse.Namespace) -> Report:
        systems = {
            system: form_gaps(scores.values())
            for system, scores in by_system([judged(path) for path in words.runs]).items()
        }
        if not any(systems.values()):
            raise InputError(
                "no task has two forms",
                where=", ".join(map(str, words.runs)),
                expected="a run with benchmark.form=all, or runs with different forms",
            )
        columns = ("system", "gap", *(f"{metric} (95 %)" for metric in SHOWN), "pairs", "tasks")
        table: list[list[Cell]] = [
            [
                system,
                gap,
                *(_interval(numbers, metric) for metric in SHOWN),
                numbers["n_pairs"],
                numbers["n_tasks"],
            ]
            for system, gaps in systems.items()
            for gap, numbers in gaps.items()
        ]
        note = "paired over tasks that have numbers in both forms; percentile bootstrap over tasks"
        return Report([Table("gaps between query forms, 0–100", columns, table)], {"systems": systems}, (note,))


class Saturation:
    """Tasks that the best system has nearly solved."""

    summary = "tasks on which the best system exceeds 90 %, which tell systems apart no longer"

    def arguments(self, parser: argparse.ArgumentParser) -> None:
        _run_arguments(parser)
        parser.add_argument(
            "--above",
            type=float,
            default=SATURATED,
            metavar="SCORE",
            help=f"flag tasks above this ({SATURATED:g})",
        )

    def run(self, words: argparse.Namespace) -> Report:
        best: dict[Key, tuple[float, str]] = {}
        items: dict[Key, None] = {}
        for system, scores in by_system([judged(path) for path in words.runs]).items():
            for key, score in scores.items():
                items[key] = None
                value = score.metrics.get(HEADLINE)
                if value is not None and (key not in best or value > best[key][0]):
                    best[key] = (value, system)
        tasks = [_task(key, best.get(key), words.above) for key in items]
        n_flagged = sum(bool(task["saturated"]) for task in tasks)
        low, high = wilson(n_flagged, len(best)) or (None, None)
        data = {
            "above": words.above,
            "tasks": tasks,
            "n_scored": len(best),
            "n_saturated": n_flagged,
            "share": n_flagged / len(best) if best else None,
            "share_low": low,
            "share_high": high,
        }
        table: list[list[Cell]] = [
            [task["task"], task["form"], task["best"], task["system"], "saturated" if task["saturated"] else ""]
            for task in tasks
        ]
        note = f"{n_flagged} of {len(best)} scored tasks are above {words.above:g} for the best system"
        return Report(
            [Table("best score by task", ("task", "form", "best", "system", "flag"), table)], data, (note,)
        )


def _task(key: Key, best: tuple[float, str] | None, above: float) -> dict[str, Any]:
    value, system = best or (None, None)
    return {
        "task": key[0],
        "form": key[1],
        "best": value,
        "system": system,
        "saturated": None if value is None else value > above,
    }


def _run_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("runs", nargs="+", type=Path, metavar="RUN", help="a run folder")


def _interval(numbers: Mapping[str, int | float | None], metric: str) -> str:
    value, low, high = (numbers[name] for name in (metric, f"{metric}_low", f"{metric}_high"))
    if value is None:
        return "–"
    return f"{value:.2f}" + ("" if low is None else f" ({low:.2f} … {high:.2f})")
