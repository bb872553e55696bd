"""`python -m core.merge --out DIR SHARD…`: put the shards of one run together and fold them again.

The shards must be of one configuration and one source of tasks; all shards of i/n must be there and none
twice with different content. The result is what one undivided run writes; doing it twice changes nothing.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from heapq import merge as merge_sorted
from pathlib import Path
from typing import Any, Final, TypeVar

from core.config import RunConfig
from core.digest import json_digest, plain
from core.errors import InputError
from core.model import Judgement, Submission, Task
from core.plugin_manager import PluginManager
from core.report.html import written
from core.rescore import Folded, Saved, fold, fold_parts, read_run
from core.runfolder import (
    JUDGEMENTS,
    RUN,
    SCORES,
    SUBMISSIONS,
    SUMMARY,
    TASKS,
    RunFolder,
    judgement_row,
    score_row,
    submission_row,
    task_row,
)
from core.summary import is_complete

Row = TypeVar("Row", Submission, Judgement)
_DESCRIPTION: Final = "Merge the shards of one run into one run folder and fold it."


def check(shards: Sequence[Saved]) -> None:
    """Raise InputError unless the folders are the shards of one run, each once."""
    first = shards[0]
    numbers: dict[int, Saved] = {}
    for shard in shards:
        if shard.facts.get("shared_digest") != first.facts.get("shared_digest"):
            raise InputError(
                f"{shard.path} and {first.path} are runs of different configurations",
                expected="run folders that differ in their shard only",
            )
        part = shard.config.shard
        if part is None:
            raise InputError("the run is not a shard", where=str(shard.path), expected="runs made with shard=i/n")
        assert first.config.shard is not None
        if part.of != first.config.shard.of:
            raise InputError(
                f"shard {part.number}/{part.of} beside {first.config.shard.number}/{first.config.shard.of}",
                where=str(shard.path),
            )
        if part.number in numbers:
            raise InputError(
                f"shard {part.number}/{part.of} is given twice: {numbers[part.number].path} and {shard.path}"
            )
        if shard.facts.get("exit_code") is None:
            raise InputError("the run has not ended", where=str(shard.path), expected="to run it again first")
        numbers[part.number] = shard
    assert first.config.shard is not None
    absent = [number for number in range(1, first.config.shard.of + 1) if number not in numbers]
    if absent:
        raise InputError(
            "shards are missing: " + ", ".join(f"{number}/{first.config.shard.of}" for number in absent)
        )


def merge(out: Path, paths: Sequence[Path], plugins: PluginManager) -> tuple[RunConfig, Folded]:
    """Write the merged run folder; raises InputError and leaves `out` as it was."""
    shards = [read_run(path) for path in dict.fromkeys(path.resolve() for path in paths)]
    check(shards)
    config = shards[0].config.model_copy(update={"shard": None, "out": None})
    tasks = sorted((task for shard in shards for task in shard.tasks), key=lambda task: task.index)
    _check_tasks(tasks)
    facts = _facts(shards, config, tasks)
    grader, aggregator = fold_parts(config, plugins)
    folded = fold(
        config,
        facts,
        tasks,
        (row for shard in shards for row in shard.submissions()),
        _in_order(tasks, [shard.judgements() for shard in shards]),
        grader=grader,
        aggregator=aggregator,
        warnings=facts["warnings"],
    )
    code = 0 if is_complete(folded.summary, config.missing_share()) else 3
    folder = RunFolder(out)
    try:
        folder.lock_config(facts["config_digest"], facts["config"])
        folder.write_rows(TASKS, "task", map(task_row, tasks))
        submissions = _in_order(tasks, [shard.submissions() for shard in shards])
        folder.write_rows(SUBMISSIONS, "submission", map(submission_row, submissions))
        judgements = _in_order(tasks, [shard.judgements() for shard in shards])
        folder.write_rows(JUDGEMENTS, "judgement", map(judgement_row, judgements))
        folder.write_rows(SCORES, "score", map(score_row, folded.scores))
        folder.write_json(SUMMARY, "summary", folded.summary)
        folder.write_json(RUN, "run", {**facts, "exit_code": code})
        written(out, grader)
    finally:
        folder.close()
    return config, folded


def _check_tasks(tasks: Sequence[Task]) -> None:
    seen: set[str] = set()
    for task in tasks:
        if task.id in seen:
            raise InputError(f"task {task.id!r} stands in two shards")
        seen.add(task.id)


def _in_order(tasks: Sequence[Task], files: Iterable[Iterator[Row]]) -> Iterator[Row]:
    """The rows of all shards in the order of the tasks; each file is in that order already."""
    place = {task.id: number for number, task in enumerate(tasks)}
    return merge_sorted(*files, key=lambda row: (place[row.task_id], row.attempt))


def _facts(shards: Sequence[Saved], config: RunConfig, tasks: Sequence[Task]) -> dict[str, Any]:
    """run.json of the merged folder: the same whatever order the shards were named in."""
    ordered = sorted(shards, key=lambda shard: shard.config.shard.number if shard.config.shard else 0)
    first = ordered[0].facts
    plans = [shard.facts["plan"] for shard in ordered]
    plan: dict[str, Any] = dict(first["plan"])
    for name in ("tasks", "submissions", "judgements"):
        plan[name] = sum(part[name] for part in plans)
    prompts = {shard.facts.get("prompt_digest") for shard in ordered} - {None}
    if len(prompts) > 1:
        raise InputError("the shards were judged with different prompts")
    warnings = list(dict.fromkeys(line for shard in ordered for line in shard.facts.get("warnings") or []))
    return {
        "run_id": json_digest([shard.facts["run_id"] for shard in ordered])[:32],
        "leadline": first["leadline"],
        "config_digest": config.digest(),
        "shared_digest": config.digest(without_shard=True),
        "tasks_digest": json_digest([json_digest(plain(task.model_dump())) for task in tasks]),
        "started_at": min(str(shard.facts["started_at"]) for shard in ordered),
        "finished_at": max(str(shard.facts["finished_at"]) for shard in ordered),
        "merged": [_origin(shard.facts) for shard in ordered],
        "judge_settings": first.get("judge_settings"),
        "prompt_digest": next(iter(prompts), None),
        "plan": plan,
        "plugins": first.get("plugins"),
        "warnings": warnings,
        "config": config.model_dump(mode="json"),
    }


def _origin(facts: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: facts.get(name) for name in ("run_id", "config_digest", "exit_code", "started_at", "finished_at")
    }


def main(argv: Sequence[str] | None = None) -> int:
    """The command; returns the exit code."""
    parser = argparse.ArgumentParser("core.merge", description=_DESCRIPTION)
    parser.add_argument("--out", required=True, type=Path, metavar="DIR", help="the merged run folder")
    parser.add_argument("shards", nargs="+", type=Path, metavar="RUN", help="the folder of a shard")
    words = parser.parse_args(argv)
    from core.report.console import Console

    console = Console()
    try:
        config, folded = merge(words.out, words.shards, PluginManager.discover())
    except InputError as error:
        console.refused(str(error))
        return 2
    code = 0 if is_complete(folded.summary, config.missing_share()) else 3
    console.result(folded.summary, code, words.out)
    return code


if __name__ == "__main__":
    sys.exit(main())
