"""Run folders in a notebook: what they say, row by row, and as data frames.

    from core.load import load

    run = load("runs/demo")
    run.summary["metrics"]["normalized"]["value"]
    run.frame("judgements").groupby("unit")["verdict_met"].mean()
    load(["runs/five", "runs/one"]).frame("scores")

A file is read when it is first asked for, and its rows are kept as they stand there, with the run's name added.
docs/export.md has the columns of the frames: they are those of `python -m core.export`.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any, Final, overload

from core.comparison.reading import json_lines
from core.config import RunConfig
from core.errors import InputError, place
from core.rescore import Saved, read_run
from core.runfolder import JUDGEMENTS, SCHEMAS, SCORES, SUBMISSIONS, SUMMARY, TASKS, read_json

Row = dict[str, Any]
PathLike = str | os.PathLike[str]
#: The files of rows, by the name of a row's schema.
_FILES: Final[Mapping[str, str]] = {
    "score": SCORES,
    "submission": SUBMISSIONS,
    "judgement": JUDGEMENTS,
    "task": TASKS,
}
#: pandas' types that know a missing value.
_DTYPES: Final[Mapping[str, str]] = {"text": "string", "whole": "Int64", "number": "float64", "truth": "boolean"}


@dataclass(frozen=True, eq=False)
class LoadedRun:
    """A run folder. `name`: the folder's, or as much of its path as tells it from the others that were loaded.

    Rows are dictionaries as the files have them (docs/files.md), with `run` added; only their version is checked.
    Properties raise InputError for a file that is missing, broken or of another version. `problems` says what was
    passed over in the files that were read so far.
    """

    path: Path
    name: str
    saved: Saved = field(repr=False)
    problems: list[str] = field(default_factory=list, repr=False)

    @property
    def run(self) -> Mapping[str, Any]:
        """run.json: what was run, with the whole configuration."""
        return self.saved.facts

    @property
    def config(self) -> RunConfig:
        """The run's configuration, checked."""
        return self.saved.config

    @cached_property
    def summary(self) -> Mapping[str, Any]:
        """summary.json: the numbers of the run."""
        with _readable(self.path / SUMMARY):
            summary = read_json(self.path / SUMMARY)
        if summary is None:
            raise InputError(f"there is no {SUMMARY}: the run has not ended", where=str(self.path))
        if summary.get("schema") != SCHEMAS["summary"]:
            raise InputError(
                "a summary of another version",
                where=place(self.path / SUMMARY, field="schema"),
                expected=SCHEMAS["summary"],
                got=str(summary.get("schema")),
            )
        return summary

    @cached_property
    def tasks(self) -> list[Row]:
        """What was asked, with the rubric of each task in `payload`."""
        return list(self.stream("task"))

    @cached_property
    def scores(self) -> list[Row]:
        """One row a task."""
        return list(self.stream("score"))

    @cached_property
    def submissions(self) -> list[Row]:
        """One row an attempt, with the answer."""
        return list(self.stream("submission"))

    @cached_property
    def judgements(self) -> list[Row]:
        """One row a verdict."""
        return list(self.stream("judgement"))

    def stream(self, schema: str) -> Iterator[Row]:
        """The rows of one file, read now and not kept; `schema`: task, score, submission or judgement."""
        problems: list[str] = []
        for row in json_lines(self.path / _FILES[schema], schema, problems):
            del row["schema"]
            yield {"run": self.name} | row | {"run": self.name}
        self.problems.extend(problem for problem in problems if problem not in self.problems)

    def frame(self, table: str, *, texts: bool = False) -> Any:
        """A table as a pandas.DataFrame; see `frame_of`."""
        return frame_of([self], table, texts=texts)


@dataclass(frozen=True, eq=False)
class LoadedRuns:
    """Several run folders. Their rows stand one run after the other, in the order in which they were named."""

    runs: tuple[LoadedRun, ...]

    @property
    def summaries(self) -> dict[str, Mapping[str, Any]]:
        """summary.json by the run's name."""
        return {run.name: run.summary for run in self.runs}

    @property
    def tasks(self) -> list[Row]:
        return [row for run in self.runs for row in run.tasks]

    @property
    def scores(self) -> list[Row]:
        return [row for run in self.runs for row in run.scores]

    @property
    def submissions(self) -> list[Row]:
        return [row for run in self.runs for row in run.submissions]

    @property
    def judgements(self) -> list[Row]:
        return [row for run in self.runs for row in run.judgements]

    @property
    def problems(self) -> list[str]:
        """What was passed over in the files that were read so far."""
        return [problem for run in self.runs for problem in run.problems]

    def frame(self, table: str, *, texts: bool = False) -> Any:
        """A table as a pandas.DataFrame; see `frame_of`."""
        return frame_of(self.runs, table, texts=texts)

    def __iter__(self) -> Iterator[LoadedRun]:
        return iter(self.runs)

    def __len__(self) -> int:
        return len(self.runs)

    def __getitem__(self, name: str) -> LoadedRun:
        """The run of this name; raises KeyError."""
        for run in self.runs:
            if run.name == name:
                return run
        raise KeyError(f"no run is called {name!r}; there are {', '.join(run.name for run in self.runs)}")


@overload
def load(runs: PathLike) -> LoadedRun: ...  # type: ignore[overload-overlap]  # a text is a list of texts, too


@overload
def load(runs: Iterable[PathLike]) -> LoadedRuns: ...


def load(runs: PathLike | Iterable[PathLike]) -> LoadedRun | LoadedRuns:
    """A run folder, or several as one. Raises InputError for what is no run of a known version."""
    if isinstance(runs, (str, os.PathLike)):
        return _loaded([Path(runs)])[0]
    return LoadedRuns(_loaded([Path(run) for run in runs]))


def frame_of(runs: Sequence[LoadedRun], table: str, *, texts: bool = False) -> Any:
    """A table of runs as a pandas.DataFrame: judgements, submissions, scores, runs, metrics or groups.

    Columns and their order are those of an export; what is not there is missing, never 0. Cells of lists and
    objects hold JSON text. `texts` adds answers and judges' raw replies. Raises InputError for another name, and
    where pandas is not installed.
    """
    from core.exporting.tables import columns_of, table_of

    found = table_of(runs, table, texts=texts)
    try:
        pandas = import_module("pandas")
    except ImportError:
        raise InputError(
            "a frame needs the package pandas, which is not installed",
            expected="pip install pandas; or .judgements, .scores, … for the same rows as plain lists",
        ) from None
    cells = columns_of(found)
    return pandas.DataFrame(
        {
            column.name: pandas.array(values, dtype=_DTYPES[column.kind])
            for column, values in zip(found.columns, cells, strict=True)
        }
    )


def _loaded(paths: Sequence[Path]) -> tuple[LoadedRun, ...]:
    return tuple(LoadedRun(path, name, _saved(path)) for path, name in zip(paths, names_of(paths), strict=True))


def names_of(paths: Sequence[Path]) -> list[str]:
    """A name for each folder: its own, with as many folders above it as it takes to tell it from the others.

    Raises InputError for a folder that is named twice.
    """
    full = [path.resolve() for path in paths]
    for path, count in Counter(full).items():
        if count > 1:
            raise InputError("the folder is named twice", where=str(path), expected="each run once")
    parts = [path.parts[1:] or path.parts for path in full]
    depths = [1] * len(parts)
    while True:
        names = ["/".join(found[-depth:]) for found, depth in zip(parts, depths, strict=True)]
        counts = Counter(names)
        # a folder right below the root has no more parts to add: the others of its name then have
        longer = [
            depth + (counts[name] > 1 and depth < len(found))
            for name, found, depth in zip(names, parts, depths, strict=True)
        ]
        if longer == depths:
            return names
        depths = longer


def _saved(path: Path) -> Saved:
    with _readable(path):
        try:
            return read_run(path)
        except (KeyError, TypeError, AttributeError) as error:
            raise InputError(f"run.json lacks what a run's has: {error!r}", where=str(path)) from None


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    """Turns what reading a file may raise into an InputError."""
    try:
        yield
    except OSError as error:
        raise InputError(f"can't be read: {error.strerror}", where=str(path)) from None
    except (ValueError, RecursionError) as error:
        raise InputError(f"can't be read: {error}", where=str(path)) from None
