"""The jobs of a sweep side by side: what each one chose, which are one run twice, and the file sweep.json.

Nothing is measured here: every number is read from the summary of its job, so that sweep.json can be made
again from the folders alone.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from core.config import RunConfig, same_settings
from core.model import Row
from core.runfolder import RUN, SUMMARY, read_json, replace_file

SWEEP: Final = "sweep.json"
SCHEMA: Final = "leadline/sweep/1"


class Headline(Row):
    """The benchmark's headline metric of one job, as its summary has it.

    `n` tasks stand behind `value`, of `n_tasks` that were scheduled; `low` and `high` are the ends of the 95 %
    interval. Null where the job gave no number.
    """

    metric: str
    value: float | None = None
    low: float | None = None
    high: float | None = None
    n: int
    n_tasks: int


class Job(Row):
    """One job of a sweep. `folder` is its name inside the sweep's folder.

    `choices` holds the keys in which the jobs differ, with this job's values. `exit_code` is null where the job
    left none: it was killed, is still running, or was never begun; it counts as 1. `headline`, `coverage` (0–1)
    and `cost_usd` are null where there is no summary or the summary does not know.
    """

    folder: str
    choices: Mapping[str, Any]
    exit_code: int | None = None
    headline: Headline | None = None
    coverage: float | None = None
    cost_usd: float | None = None


class SweepFile(Row):
    """The content of sweep.json: the jobs in the order of their numbers."""

    jobs: Sequence[Job]


def choices(jobs: Sequence[Sequence[str]]) -> list[dict[str, Any]]:
    """Job by job, the keys whose words differ between the jobs. Each job is a list of words, all of one length."""
    from hydra.core.override_parser.overrides_parser import OverridesParser

    parser = OverridesParser.create()
    differing = [place for place, words in enumerate(zip(*jobs, strict=True)) if len(set(words)) > 1]
    chosen: list[dict[str, Any]] = []
    for words in jobs:
        parsed = [parser.parse_override(words[place]) for place in differing]
        chosen.append({word.get_key_element().lstrip("+~"): _plain(word.value()) for word in parsed})
    return chosen


def _plain(value: Any) -> Any:
    """A parsed value as JSON can hold it; Hydra's own kinds of text become text."""
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if value is None or isinstance(value, (bool, int)) or (isinstance(value, float) and abs(value) < float("inf")):
        return value
    return str(value)


def told(job: Mapping[str, Any]) -> str:
    """A job's choices on one line: `judge=gpt, seed=1`."""
    return ", ".join(
        f"{key}={value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)}"
        for key, value in job.items()
    )


def same_runs(configs: Sequence[RunConfig]) -> Iterator[list[int]]:
    """The jobs that are one run several times over, by their numbers.

    Such jobs differ in nothing that shapes an answer, a verdict or the choice of tasks: only in their pace, in the
    word for one effort, or in the seed of a draw that is not made.
    """
    alike: dict[str, list[int]] = {}
    for number, config in enumerate(configs):
        alike.setdefault(_essence(config), []).append(number)
    return (numbers for numbers in alike.values() if len(numbers) > 1)


def _essence(config: RunConfig) -> str:
    word = config.effort_word()
    first, *_ = same_settings(config.system.efforts or {}).get(word or "", (word,))
    seed = config.seed if config.sample is not None else 0
    return config.model_copy(update={"effort": first, "seed": seed}).digest()


def read_job(path: Path, chosen: Mapping[str, Any], headline: str) -> Job:
    """A job as its folder tells it; `headline` names the benchmark's metric."""
    facts, summary = read_json(path / RUN) or {}, read_json(path / SUMMARY)
    code = facts.get("exit_code")
    job = Job(folder=path.name, choices=chosen, exit_code=code if isinstance(code, int) else None)
    if summary is None:
        return job
    metric = summary["metrics"].get(headline) or {}
    numbers = {name: metric.get(name) for name in ("value", "low", "high")}
    return job.model_copy(
        update={
            "headline": Headline(metric=headline, **numbers, n=summary["n_scored"], n_tasks=summary["n_tasks"]),
            "coverage": summary["coverage"],
            # what could not be priced makes the sum unknown
            "cost_usd": None if summary["cost"].get("unknown_calls") else summary["cost"]["usd"],
        }
    )


def write(folder: Path, jobs: Sequence[Job]) -> None:
    """Write sweep.json into the sweep's folder, as a whole."""
    content = {"schema": SCHEMA, **SweepFile(jobs=jobs).model_dump(mode="json")}
    text = json.dumps(content, ensure_ascii=False, indent=1, allow_nan=False)
    replace_file(folder / SWEEP, [text.encode() + b"\n"])
