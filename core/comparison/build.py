"""From run folders to a comparison, and to its files."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

from core import __version__
from core.comparison import match
from core.comparison.agreed import Seen
from core.comparison.judges import judges
from core.comparison.labels import unit_labels
from core.comparison.ranks import ranks
from core.comparison.reading import Run, ShardError, read
from core.comparison.render import markdown
from core.comparison.results import SCHEMA, Comparison, Finding, LeftOut, Settings
from core.comparison.study import Grid, Study
from core.comparison.systems import boards, powerless
from core.comparison.variance import variance
from core.errors import InputError
from core.model import Task
from core.runfolder import replace_file, safe_word

#: The stem of the files' names.
STEM = "compare"


@dataclass(frozen=True)
class Gathered:
    """The folders that hold a run with scores, and those that don't."""

    runs: tuple[Run, ...]
    left_out: tuple[LeftOut, ...]
    shards: tuple[LeftOut, ...]


def compare(folders: Sequence[Path], settings: Settings | None = None) -> Comparison:
    """Compare run folders; a folder without scores is left out and named.

    Raises InputError for shards, for runs whose numbers mean different things (unless `settings.force`), for a
    metric that no run has, and where no run is left.
    """
    settings = settings or Settings()
    for folder in folders:
        if not folder.is_dir():  # a mistyped name, not a run that lacks something
            raise InputError("there is no such folder", where=str(folder), expected="the folder of a run")
    gathered = gather(folders, settings)
    if gathered.shards:
        raise InputError("; ".join(shard.why for shard in gathered.shards))
    if not gathered.runs:
        raise InputError(
            "no run to compare: " + ("; ".join(left.why for left in gathered.left_out) or "no folder is named")
        )
    return compare_runs(gathered.runs, settings, gathered.left_out)


def compare_runs(runs: Sequence[Run], settings: Settings, left_out: Sequence[LeftOut] = ()) -> Comparison:
    """The same from runs that are read, at least one."""
    refused = match.benchmarks(runs)
    if refused:
        raise InputError(_said(refused))
    _check_metrics(runs, settings.metrics)
    study = Study.of(runs, settings)
    findings = match.findings(study)
    refused = [finding for finding in findings if finding.severity == "refuse"]
    if refused:
        raise InputError(f"{_said(refused)}; --force compares them all the same, with a mark")
    grid = Grid.of(study)
    seen = None
    judged = order = None
    if settings.judges or any(len(grid.judges_of(system)) > 1 for system in grid.systems):
        seen = Seen.of(study, grid)
        labels, why = unit_labels(study)
        findings += seen.findings
        if why is not None:
            findings.append(Finding(code="labels", severity="mark", text=f"{why}: no rates by sign or axis"))
        judged = judges(study, grid, seen, labels)
        order = ranks(study, grid, seen)
    tables = boards(study)
    findings.extend(powerless(study, tables))
    return Comparison(
        leadline=__version__,
        benchmark=runs[0].config.benchmark.name,
        settings=settings.model_copy(update={"metrics": study.metrics}),
        findings=tuple(findings),
        left_out=tuple(left_out),
        runs=tuple(study.facts(place) for place in range(len(runs))),
        boards=tuple(tables),
        judges=judged,
        ranks=order,
        variance=variance(study, grid),
    )


def gather(folders: Sequence[Path], settings: Settings) -> Gathered:
    """Read the folders, each run once."""
    runs: list[Run] = []
    left_out: list[LeftOut] = []
    shards: list[LeftOut] = []
    places: set[Path] = set()
    known: dict[str, Path] = {}
    seen: dict[str, Task] = {}
    for folder in folders:
        try:
            if folder.resolve() in places:
                raise InputError("the folder is named twice", where=str(folder))
            places.add(folder.resolve())
            run = read(folder, settings.metrics, seen)
            run_id = str(run.facts.get("run_id") or folder)
            if run_id in known:
                raise InputError(f"the same run as {known[run_id]}: it counts once", where=str(folder))
            known[run_id] = folder
            runs.append(run)
        except ShardError as error:
            shards.append(LeftOut(path=str(folder), why=str(error)))
        except InputError as error:
            left_out.append(LeftOut(path=str(folder), why=str(error)))
    return Gathered(tuple(runs), tuple(left_out), tuple(shards))


def write(folder: Path, run_folders: Sequence[Path], settings: Settings | None = None) -> list[str]:
    """Compare the runs of a sweep and write compare.json and compare.md into `folder`; says what was done.

    Runs whose numbers mean different things are compared apart, in files named for their benchmark. Runs that
    can't be compared are named in what is returned: this raises for none of them, whatever goes wrong, since a
    sweep's own results and exit code do not rest on its comparison.
    """
    settings = (settings or Settings()).model_copy(update={"force": True})
    gathered = gather(run_folders, settings)
    said = [f"not compared: {left.why}" for left in (*gathered.shards, *gathered.left_out)]
    groups: dict[tuple[str, str], list[Run]] = {}
    for run in gathered.runs:
        groups.setdefault(match.group_of(run), []).append(run)
    stems: set[str] = set()
    for (benchmark, _), runs in groups.items():
        stem = STEM if len(groups) == 1 else _free(f"{STEM}-{safe_word(benchmark)}", stems)
        try:
            comparison = compare_runs(runs, settings, (*gathered.shards, *gathered.left_out))
            write_files(folder, comparison, stem)
        except (InputError, OSError) as error:
            said.append(f"{benchmark}: not compared: {error}")
        except Exception as error:  # noqa: BLE001 -- a fault of ours; the sweep's runs are whole all the same
            said.append(f"{benchmark}: not compared: {type(error).__name__}: {error}")
        else:
            said.append(f"{len(runs)} runs of {benchmark} compared in {folder / stem}.md and {stem}.json")
    return said


def write_files(folder: Path, comparison: Comparison, stem: str = STEM) -> None:
    """Write `<stem>.json` and `<stem>.md`; raises OSError."""
    folder.mkdir(parents=True, exist_ok=True)
    replace_file(folder / f"{stem}.json", [as_json(comparison).encode("utf-8", "replace")])
    replace_file(folder / f"{stem}.md", [markdown(comparison).encode("utf-8", "replace")])


def as_json(comparison: Comparison) -> str:
    """The content of compare.json."""
    content = {"schema": SCHEMA, **comparison.model_dump(mode="json")}
    return json.dumps(content, ensure_ascii=False, indent=1, allow_nan=False) + "\n"


def _check_metrics(runs: Sequence[Run], metrics: Sequence[str]) -> None:
    known = sorted(set().union(*(run.known_metrics for run in runs)))
    for metric in metrics:
        if metric not in known:
            close = get_close_matches(metric, known, n=3, cutoff=0.5) or known[:10]
            raise InputError(
                f"no run has a metric {metric!r}", where="--metric", expected=f"such as {', '.join(close)}"
            )


def _said(refused: Sequence[Finding]) -> str:
    return "; ".join(
        f"{' and '.join(dict.fromkeys(finding.runs))}: {finding.text}" if finding.runs else finding.text
        for finding in refused
    )


def _free(stem: str, taken: set[str]) -> str:
    name, number = stem, 1
    while name in taken:
        number += 1
        name = f"{stem}-{number}"
    taken.add(name)
    return name
