"""`python -m core.rescore RUN…`: fold a run folder's rows again. Asks nobody, fetches nothing.

The folder holds all that a score rests on (tasks, submissions, judgements, configuration), so the same numbers
come out anywhere, and a mended scorer can be applied to an old run.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any, Final, TypeVar

from pydantic import BaseModel, ValidationError

from core.config import RunConfig
from core.errors import InputError, place
from core.model import Judgement, Submission, Task, TaskScore
from core.parts import Aggregator, Grader
from core.plugin_manager import PluginManager
from core.report.html import written
from core.runfolder import (
    EXPLAIN,
    JUDGEMENTS,
    RUN,
    SCHEMAS,
    SCORES,
    SUBMISSIONS,
    SUMMARY,
    TASKS,
    RunFolder,
    read_json,
    score_row,
)
from core.summary import JudgeFacts, Totals, score_attempt, score_task, summarise

_DESCRIPTION: Final = "Fold run folders again from their own rows: rewrites scores.jsonl and summary.json."
Model = TypeVar("Model", bound=BaseModel)


@dataclass(frozen=True)
class Saved:
    """A run folder, read: its run.json, configuration and tasks. Rows are read as they are needed."""

    path: Path
    facts: Mapping[str, Any]
    config: RunConfig
    tasks: tuple[Task, ...]

    def submissions(self) -> Iterator[Submission]:
        return read_rows(self.path / SUBMISSIONS, Submission, "submission")

    def judgements(self) -> Iterator[Judgement]:
        return read_rows(self.path / JUDGEMENTS, Judgement, "judgement")


@dataclass(frozen=True)
class Folded:
    """What a fold gives: the scores in the order of the tasks, and the content of summary.json."""

    scores: list[TaskScore]
    summary: dict[str, Any]


def read_run(path: Path) -> Saved:
    """A run folder that has ended; raises InputError."""
    facts = read_json(path / RUN)
    if facts is None:
        raise InputError(f"there is no {RUN}", where=str(path), expected="the folder of a run")
    if facts.get("schema") != SCHEMAS["run"]:
        raise InputError(
            "a run of another version",
            where=place(path / RUN, field="schema"),
            expected=SCHEMAS["run"],
            got=str(facts.get("schema")),
        )
    if facts.get("refused"):
        raise InputError(f"the run was refused: {facts['refused']}", where=str(path))
    config = RunConfig.from_tree(facts["config"])
    return Saved(path, facts, config, tuple(read_rows(path / TASKS, Task, "task")))


def read_rows(path: Path, model: type[Model], schema: str) -> Iterator[Model]:
    """The rows of one of our own files; raises InputError naming the line."""
    if not path.exists():
        raise InputError("the file is missing: did the run end?", where=str(path))
    with path.open(encoding="utf-8", errors="surrogatepass") as file:
        for number, text in enumerate(file, start=1):
            try:
                row = json.loads(text)
                version = row.pop("schema", None)
                if version != SCHEMAS[schema]:
                    raise InputError(
                        "a row of another version",
                        where=place(path, number),
                        expected=SCHEMAS[schema],
                        got=str(version),
                    )
                yield model.model_validate(row)
            except (json.JSONDecodeError, ValidationError, AttributeError) as error:
                reason = str(error).replace("\n", "; ")
                raise InputError(f"not a {schema} row: {reason}", where=place(path, number)) from None


def fold(
    config: RunConfig,
    facts: Mapping[str, Any],
    tasks: Sequence[Task],
    submissions: Iterable[Submission],
    judgements: Iterable[Judgement],
    *,
    grader: Grader,
    aggregator: Aggregator,
    warnings: Sequence[str],
) -> Folded:
    """Scores and summary from rows. `judgements` must stand in the order of the tasks, as a run writes them."""
    repeats = int(facts["plan"]["repeats"])
    totals = Totals()
    by_task: dict[str, dict[int, Submission]] = {}
    for submission in submissions:
        totals.add_submission(submission)
        by_task.setdefault(submission.task_id, {})[submission.attempt] = submission
    groups = groupby(judgements, key=lambda row: row.task_id)
    upcoming = next(groups, None)
    scores: list[TaskScore] = []
    for task in tasks:
        rows: dict[int, list[Judgement]] = {}
        if upcoming is not None and upcoming[0] == task.id:
            for row in upcoming[1]:
                totals.add_judgement(row)
                rows.setdefault(row.attempt, []).append(row)
            upcoming = next(groups, None)
        attempts = [
            score_attempt(
                grader,
                task,
                by_task.get(task.id, {}).get(number),
                rows.get(number, []),
                repeats=repeats,
                failure_is_missing=config.system.on_failure == "missing",
            )
            for number in range(1, config.attempts + 1)
        ]
        scores.append(score_task(task, attempts, config))
    if upcoming is not None:
        raise InputError(
            f"judgements of task {upcoming[0]!r} stand where no such task is expected",
            where=JUDGEMENTS,
            expected="rows in the order of the tasks",
        )
    summary = summarise(config, scores, totals, aggregator, _judge_facts(config, facts, repeats), warnings)
    return Folded(scores, summary)


def _judge_facts(config: RunConfig, facts: Mapping[str, Any], repeats: int) -> JudgeFacts:
    return JudgeFacts(
        config.judge.name,
        config.judge.model,
        facts.get("judge_settings") or {},
        facts.get("prompt_digest"),
        repeats,
        config.judge.family,
    )


def fold_parts(config: RunConfig, plugins: PluginManager) -> tuple[Grader, Aggregator]:
    """The grader and aggregator of a run, without a judge: they only fold."""
    from core.clock import RealClock
    from core.setup import make_aggregator, make_grader, make_services

    services = make_services(config, RealClock())
    return make_grader(config, plugins, services, None), make_aggregator(config, plugins, services)


def rescore(path: Path, plugins: PluginManager) -> Folded:
    """Fold one folder again and write its scores and summary."""
    saved = read_run(path)
    grader, aggregator = fold_parts(saved.config, plugins)
    folder = RunFolder(path)
    try:
        folded = fold(
            saved.config,
            saved.facts,
            saved.tasks,
            saved.submissions(),
            saved.judgements(),
            grader=grader,
            aggregator=aggregator,
            warnings=saved.facts.get("warnings") or [],
        )
        folder.write_rows(SCORES, "score", map(score_row, folded.scores))
        folder.write_json(SUMMARY, "summary", folded.summary)
        written(path, grader)
    finally:
        folder.close()
    return folded


def explain(path: Path, plugins: PluginManager) -> int:
    """Write explain.jsonl: how each submission's score came about, if the benchmark tells; returns the rows."""
    saved = read_run(path)
    grader, _ = fold_parts(saved.config, plugins)
    tell = getattr(grader, "explain", None)
    if tell is None:
        raise InputError(f"benchmark {saved.config.benchmark.name} has nothing to explain", where=str(path))
    tasks = {task.id: task for task in saved.tasks}
    rows = groupby(saved.judgements(), key=lambda row: (row.task_id, row.attempt))
    by_attempt = {key: list(group) for key, group in rows}
    told = [
        {
            "task_id": submission.task_id,
            "attempt": submission.attempt,
            "explanation": tell(
                tasks[submission.task_id],
                submission,
                by_attempt.get((submission.task_id, submission.attempt), []),
            ),
        }
        for submission in saved.submissions()
        if submission.status != "error"
    ]
    folder = RunFolder(path)
    try:
        folder.write_rows(EXPLAIN, "explanation", told)
    finally:
        folder.close()
    return len(told)


def main(argv: Sequence[str] | None = None) -> int:
    """The command; returns the exit code."""
    parser = argparse.ArgumentParser("core.rescore", description=_DESCRIPTION)
    parser.add_argument("runs", nargs="+", metavar="RUN", type=Path, help="a run folder")
    parser.add_argument(
        "--explain", action="store_true", help="also write explain.jsonl: how each score came about"
    )
    words = parser.parse_args(argv)
    from core.app import MISSING, OK, worst
    from core.report.console import Console
    from core.summary import is_complete

    plugins, console, codes = PluginManager.discover(), Console(), []
    for path in words.runs:
        try:
            folded = rescore(path, plugins)
            if words.explain:
                console.say(f"{explain(path, plugins)} explanations in {path / EXPLAIN}")
        except InputError as error:
            console.refused(str(error))
            return 2
        complete = is_complete(folded.summary, read_run(path).config.missing_share())
        codes.append(OK if complete else MISSING)
        console.result(folded.summary, codes[-1], path)
    return worst(codes)


if __name__ == "__main__":
    sys.exit(main())
