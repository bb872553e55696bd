"""Run folders as a comparison needs them: what was run, and each task's numbers.

Tolerant where a folder has less than it should (it is left out, or what it lacks is named), never where numbers
could become others: an unreadable line in the middle of a file leaves the run out.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from core.config import RunConfig
from core.digest import json_digest, plain
from core.errors import InputError, place
from core.model import Task
from core.rescore import read_run
from core.runfolder import SCHEMAS, SCORES, SUMMARY, read_json

#: Attempt and repeat.
RunKey = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Score:
    """A task's numbers in one run; NaN is no number.

    `metrics`: the wanted ones, and their parts (`<metric>/<part>`). `by_run`: the wanted ones by attempt and
    repeat. `coverage`: (group, member) → judgements decided, and expected. Dollars and seconds are means over
    attempts.
    """

    metrics: Mapping[str, float]
    by_run: Mapping[RunKey, Mapping[str, float]]
    labels: Mapping[str, tuple[str, ...]]
    coverage: Mapping[tuple[str, str], tuple[int, int]]
    n_graded: int
    n_expected: int
    status: str
    cost_usd: float
    latency_s: float

    def has(self, metric: str) -> bool:
        """Whether the task has a number for a metric."""
        return not math.isnan(self.metrics.get(metric, math.nan))


@dataclass(frozen=True, slots=True, eq=False)
class Run:
    """A run folder, read. `digests`: each task's content by id. `known_metrics`: all names that its tasks have.

    `problems`: what was passed over, for the reader.
    """

    path: Path
    config: RunConfig
    facts: Mapping[str, Any]
    summary: Mapping[str, Any]
    tasks: Mapping[str, Task]
    digests: Mapping[str, str]
    scores: Mapping[str, Score]
    known_metrics: frozenset[str]
    problems: tuple[str, ...]

    @property
    def system(self) -> str:
        """The system's name, with its effort."""
        return self.system_with("")

    def system_with(self, mark: str) -> str:
        """The same with a mark behind the name, before the effort."""
        effort = self.effort
        return f"{self.summary.get('system')}{mark}" + (f" ({effort})" if effort else "")

    @property
    def effort(self) -> str | None:
        effort = self.summary.get("effort")
        return None if effort is None else str(effort)

    @property
    def judge(self) -> str:
        """The judge's name; of recorded verdicts, the names that their rows have."""
        named = mapping(mapping(self.summary.get("judge")).get("rows"))
        if self.config.judge.provider == "recorded" and named:
            return "+".join(sorted(named))
        return self.config.judge.name

    @property
    def judge_families(self) -> tuple[str | None, ...]:
        """The judge's family, or those of an ensemble's members; None is unknown."""
        members = self.config.judge.member_sections().values()
        return tuple(member.family for member in members) or (self.config.judge.family,)

    @property
    def judge_digest(self) -> str:
        """Over what shapes the judge's answers: its name, family and settings."""
        settings = plain(mapping(self.facts.get("judge_settings")))
        return json_digest([self.judge, self.config.judge.model, self.config.judge.epoch, settings])[:12]

    @property
    def coverage(self) -> float | None:
        """The share of expected judgements that were decided, 0…1; None where the summary does not say."""
        share = number(self.summary.get("coverage"))
        return None if math.isnan(share) else share

    @property
    def repeats(self) -> int:
        repeats = mapping(self.facts.get("plan")).get("repeats")
        return repeats if isinstance(repeats, int) else 1


def read(path: Path, metrics: Sequence[str], seen: dict[str, Task]) -> Run:
    """A run folder with scores; `metrics` empty: the headline's. Raises InputError.

    `seen` holds tasks by their content, so that many runs of the same tasks hold them once.
    """
    try:
        saved = read_run(path)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InputError(f"run.json lacks what a run's has: {error!r}", where=str(path)) from None
    if saved.config.shard is not None:
        shard = saved.config.shard
        raise ShardError(
            f"shard {shard.number}/{shard.of} is a part of a run",
            where=str(path),
            expected="the folder that python -m core.merge makes of all its shards",
        )
    if not (path / SCORES).exists():
        raise InputError(f"there is no {SCORES}: the run has no scores", where=str(path))
    summary = read_json(path / SUMMARY)
    if summary is None:
        raise InputError(f"there is no {SUMMARY}: the run has not ended", where=str(path))
    tasks, digests = {}, {}
    for task in saved.tasks:
        digests[task.id] = digest = json_digest(plain(task.model_dump(exclude={"index"})))
        tasks[task.id] = seen.setdefault(digest, task)
    wanted = tuple(metrics) or (saved.config.benchmark.headline,)
    problems: list[str] = []
    scores: dict[str, Score] = {}
    known: set[str] = set()
    for row in json_lines(path / SCORES, "score", problems):
        task_id, found = row.get("task_id"), mapping(row.get("metrics"))
        if task_id not in tasks:
            problems.append(f"{path / SCORES}: a score of task {task_id!r}, which the run does not have")
        elif task_id in scores:
            problems.append(f"{path / SCORES}: task {task_id!r} stands twice; the first is used")
        else:
            known.update(found)
            scores[task_id] = _score(row, found, wanted)
    return Run(
        path=path,
        config=saved.config,
        facts=saved.facts,
        summary=summary,
        tasks=tasks,
        digests=digests,
        scores=scores,
        known_metrics=frozenset(known),
        problems=tuple(problems),
    )


class ShardError(InputError):
    """A shard where a whole run is wanted."""


def json_lines(path: Path, schema: str, problems: list[str]) -> Iterator[dict[str, Any]]:
    """The rows of one of a run's files, unchecked but for their version.

    A last line that was cut off is passed over and named in `problems`. Raises InputError for any other line that
    is no object of the expected version, and for a file that can't be read.
    """
    fault: InputError | None = None
    try:
        with path.open("rb") as file:
            for number, line in enumerate(file, start=1):
                if not line.strip():
                    continue
                if fault is not None:
                    raise fault
                try:
                    row = json.loads(str(line, "utf-8", "surrogatepass"))
                except (ValueError, RecursionError) as error:
                    fault = InputError(f"not JSON: {error}", where=place(path, number))
                    continue
                if not isinstance(row, dict) or row.get("schema") != SCHEMAS[schema]:
                    version = row.get("schema") if isinstance(row, dict) else type(row).__name__
                    raise InputError(
                        f"not a {schema} row of a known version",
                        where=place(path, number),
                        expected=SCHEMAS[schema],
                        got=str(version),
                    )
                yield row
    except OSError as error:
        raise InputError(f"can't be read: {error.strerror}", where=str(path)) from None
    if fault is not None:
        problems.append(f"{fault.where}: the last line is cut off; it is passed over")


def number(value: Any) -> float:
    """A finite number, else NaN."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        return math.nan
    return float(value)


def mapping(value: Any) -> Mapping[str, Any]:
    """A JSON object, else an empty one."""
    return value if isinstance(value, dict) else {}


def word(value: Any) -> str | None:
    """A text, else None."""
    return value if isinstance(value, str) else None


def whole(value: Any, default: int = 0) -> int:
    """A whole number of 0 or more, else the default."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else default


def _score(row: Mapping[str, Any], metrics: Mapping[str, Any], wanted: Sequence[str]) -> Score:
    by_run = {}
    runs = row.get("by_run")
    for run in runs if isinstance(runs, list) else ():
        numbers = mapping(mapping(run).get("metrics"))
        key = whole(mapping(run).get("attempt"), 1), whole(mapping(run).get("repeat"), 1)
        by_run[key] = {name: number(numbers.get(name)) for name in wanted}
    return Score(
        metrics={name: number(value) for name, value in metrics.items() if _belongs(name, wanted)},
        by_run=by_run,
        labels={name: _words(value) for name, value in mapping(row.get("labels")).items()},
        coverage={
            (group, member): (whole(mapping(count).get("graded")), whole(mapping(count).get("expected")))
            for group, members in mapping(row.get("coverage_by")).items()
            for member, count in mapping(members).items()
        },
        n_graded=whole(row.get("n_graded")),
        n_expected=whole(row.get("n_expected")),
        status=str(row.get("status")),
        cost_usd=number(row.get("cost_usd")),
        latency_s=number(row.get("latency_s")),
    )


def _belongs(name: str, wanted: Sequence[str]) -> bool:
    return any(name == metric or name.startswith(f"{metric}/") for metric in wanted)


def _words(value: Any) -> tuple[str, ...]:
    if isinstance(value, str):
        return (value,)
    return tuple(dict.fromkeys(word for word in value if isinstance(word, str))) if isinstance(value, list) else ()
