"""What the audits read: files of tasks, and folders of runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from core.config import RunConfig
from core.errors import InputError
from core.model import TaskScore
from core.rescore import Saved, fold, read_run
from core.taskfile import Placed, rows
from plugins.dag_rubric.aggregate import DagAggregator
from plugins.dag_rubric.grader import DagGrader
from plugins.dag_rubric.tasks import SAMPLE, checked_rows


def task_rows(source: str) -> dict[str, Mapping[str, Any]]:
    """The rows of a task file (or `sample`) by id, in its order; raises InputError."""
    return {row["id"]: row for _, row in checked_rows(placed_rows(source), where=source)}


def placed_rows(source: str, on_fault: Callable[[InputError], None] | None = None) -> Iterator[Placed]:
    """(place, unchecked row) of a task file, or of `sample`; see core.taskfile.rows."""
    where = f"the argument {source}"
    if source == "hub":
        raise InputError("audits read files", where=where, expected="a task file, or sample")
    return rows(source, sample=SAMPLE, hub=None, constants=True, where=where, on_fault=on_fault)


@dataclass(frozen=True)
class JudgedRun:
    """A run of this benchmark, its judgements folded anew. `system` is what tables call it."""

    path: Path
    config: RunConfig
    system: str
    scores: Sequence[TaskScore]
    summary: Mapping[str, Any]


def judged(path: Path, **changes: Any) -> JudgedRun:
    """Fold a run's judgements with `changes` to its section `benchmark`; raises InputError."""
    saved = read_run(path)
    section = {**_section(saved), **changes}
    folded = fold(
        saved.config,
        saved.facts,
        saved.tasks,
        saved.submissions(),
        saved.judgements(),
        grader=DagGrader(section, None),
        aggregator=DagAggregator(section),
        warnings=(),
    )
    effort = folded.summary["effort"]
    system = folded.summary["system"] + (f" ({effort})" if effort else "")
    return JudgedRun(path, saved.config, system, folded.scores, folded.summary)


def _section(saved: Saved) -> dict[str, Any]:
    benchmark = saved.config.benchmark
    if benchmark.grader != "dag_rubric":
        raise InputError(
            "not a run of this benchmark",
            where=str(saved.path),
            expected="the folder of a run with benchmark=dag_rubric",
            got=benchmark.name,
        )
    return benchmark.plain()
