"""What run folders have, as tables: one row a verdict, an answer, a task, a run, a metric, a group's number.

The column `run` joins them; task_id and attempt join verdicts, answers and scores. Cells of a type that a column
does not hold are missing: a table is made of what can be used, docs/files.md has what files should hold.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence, Sized
from typing import Any, Final

from core.comparison.reading import mapping
from core.errors import InputError
from core.exporting.spread import survey
from core.exporting.table import Column, Kind, Table, Value, cell
from core.fold import mean
from core.load import LoadedRun

Runs = Sequence[LoadedRun]
#: A fixed column: its name, its kind, and the path of its value in a row.
Field = tuple[str, Kind, tuple[str, ...]]

_COST: Final[tuple[Field, ...]] = (
    ("latency_s", "number", ("latency_s",)),
    ("cost_usd", "number", ("cost_usd",)),
    ("cost_source", "text", ("cost_source",)),
    *((f"{name}_tokens", "whole", ("usage", name)) for name in ("input", "cached_input", "output", "reasoning")),
)
_ERROR: Final[tuple[Field, ...]] = (
    ("error_kind", "text", ("error", "kind")),
    ("error_message", "text", ("error", "message")),
)
_JUDGEMENT: Final[tuple[Field, ...]] = (
    ("run", "text", ("run",)),
    ("task_id", "text", ("task_id",)),
    ("attempt", "whole", ("attempt",)),
    ("unit", "text", ("unit",)),
    ("repeat", "whole", ("repeat",)),
    ("judge", "text", ("judge",)),
)
_JUDGEMENT_END: Final[tuple[Field, ...]] = (
    *_ERROR,
    ("explanation", "text", ("explanation",)),
    *_COST,
    ("judged_at", "text", ("judged_at",)),
    ("prompt_digest", "text", ("prompt_digest",)),
)
_SUBMISSION: Final[tuple[Field, ...]] = (
    ("run", "text", ("run",)),
    ("task_id", "text", ("task_id",)),
    ("attempt", "whole", ("attempt",)),
    ("status", "text", ("status",)),
    ("system", "text", ("system",)),
    ("effort", "text", ("effort",)),
    *_COST,
    *_ERROR,
    ("settings", "text", ("settings",)),
)
#: Of an answer itself: how much there is of it, and all of it.
_SIZES: Final = (Column("characters", "whole"), Column("files", "whole"), Column("citations", "whole"))
_TEXTS: Final[tuple[Field, ...]] = (
    ("text", "text", ("text",)),
    ("files_json", "text", ("files",)),
    ("citations_json", "text", ("citations",)),
)
_SCORE: Final[tuple[Field, ...]] = (
    ("status", "text", ("status",)),
    ("n_graded", "whole", ("n_graded",)),
    ("n_expected", "whole", ("n_expected",)),
    ("flags", "text", ("flags",)),
    ("notes", "text", ("notes",)),
    ("cost_usd", "number", ("cost_usd",)),
    ("latency_s", "number", ("latency_s",)),
)
#: A run's columns; the first word of a path says where: `run` is run.json, `summary` is summary.json, `headline`
#: the headline's metric in it.
_RUN: Final[tuple[Field, ...]] = (
    ("benchmark", "text", ("summary", "benchmark")),
    ("system", "text", ("summary", "system")),
    ("effort", "text", ("summary", "effort")),
    ("judge", "text", ("summary", "judge", "name")),
    ("judge_model", "text", ("summary", "judge", "model")),
    ("judge_family", "text", ("summary", "judge", "family")),
    ("judge_repeats", "whole", ("summary", "judge", "repeats")),
    ("judge_settings", "text", ("summary", "judge", "settings")),
    ("judge_rows", "text", ("summary", "judge", "rows")),
    ("first_judged", "text", ("summary", "judge", "dates", "first")),
    ("last_judged", "text", ("summary", "judge", "dates", "last")),
    ("attempts", "whole", ("summary", "attempts")),
    ("headline", "text", ("run", "config", "benchmark", "headline")),
    *((name, "number", ("headline", name)) for name in ("value", "low", "high", "sd")),
    *((name, "whole", ("summary", name)) for name in ("n_tasks", "n_scored", "n_graded", "n_expected")),
    ("coverage", "number", ("summary", "coverage")),
    *((name, "number", ("summary", "cost", name)) for name in ("usd", "system_usd", "judge_usd")),
    ("unknown_calls", "whole", ("summary", "cost", "unknown_calls")),
    ("cost_source", "text", ("summary", "cost", "source")),
    ("latency_median_s", "number", ("summary", "latency", "median_s")),
    ("latency_p90_s", "number", ("summary", "latency", "p90_s")),
    ("exit_code", "whole", ("run", "exit_code")),
    *(
        (name, "text", ("run", name))
        for name in ("run_id", "leadline", "started_at", "finished_at", "config_digest", "tasks_digest")
    ),
    ("prompt_digest", "text", ("summary", "judge", "prompt_digest")),
    ("warnings", "text", ("summary", "warnings")),
)
_METRIC: Final[Mapping[str, Kind]] = {
    "value": "number", "low": "number", "high": "number", "sd": "number", "n": "whole", "estimator": "text",
}  # fmt: skip


def judgements(runs: Runs, *, texts: bool = False) -> Table:
    """One row a verdict; `verdict_<key>` has what it says. With `texts`, also the judge's raw reply."""
    verdicts = survey("verdict", (mapping(row.get("verdict")) for row in _rows(runs, "judgement")))
    end = (*_JUDGEMENT_END, *((("raw", "text", ("raw",)),) if texts else ()))

    def rows() -> Iterator[Sequence[Value]]:
        for row in _rows(runs, "judgement"):
            yield [*_cells(_JUDGEMENT, row), *verdicts.cells(mapping(row.get("verdict"))), *_cells(end, row)]

    return Table("judgements", (*_columns(_JUDGEMENT), *verdicts.columns, *_columns(end)), rows)


def submissions(runs: Runs, *, texts: bool = False) -> Table:
    """One row an attempt: how it ended, what it took, how much it gave; with `texts`, all that it gave."""
    end = _TEXTS if texts else ()

    def rows() -> Iterator[Sequence[Value]]:
        for row in _rows(runs, "submission"):
            sizes = [_size(row.get("text"), str), _size(row.get("files"), dict), _size(row.get("citations"), list)]
            yield [*_cells(_SUBMISSION, row), *sizes, *_cells(end, row)]

    return Table("submissions", (*_columns(_SUBMISSION), *_SIZES, *_columns(end)), rows)


def scores(runs: Runs) -> Table:
    """One row a task: its labels, its metrics, and how many judgements they rest on."""
    labels = survey("label", (mapping(row.get("labels")) for row in _rows(runs, "score")))
    metrics = survey("metric", (mapping(row.get("metrics")) for row in _rows(runs, "score")))
    start = _JUDGEMENT[:2]

    def rows() -> Iterator[Sequence[Value]]:
        for row in _rows(runs, "score"):
            yield [
                *_cells(start, row),
                *labels.cells(mapping(row.get("labels"))),
                *metrics.cells(mapping(row.get("metrics"))),
                *_cells(_SCORE, row),
            ]

    return Table("scores", (*_columns(start), *labels.columns, *metrics.columns, *_columns(_SCORE)), rows)


def runs_table(runs: Runs) -> Table:
    """One row a run: its headline, what it rests on, what it cost, and what was run."""

    def rows() -> Iterator[Sequence[Value]]:
        for run in runs:
            metric = mapping(mapping(run.summary.get("metrics")).get(run.config.benchmark.headline))
            yield [
                _name(run),
                *_cells(_RUN, {"run": run.run, "summary": run.summary, "headline": metric}),
                usd_per_task(run),
                None if run.config.shard is None else f"{run.config.shard.number}/{run.config.shard.of}",
            ]

    ends = (Column("usd_per_task", "number"), Column("shard", "text"))
    return Table("runs", (Column("run", "text"), *_columns(_RUN), *ends), rows)


def metrics(runs: Runs) -> Table:
    """One row a metric of a run: its value, interval and spread, and how it was made."""

    def rows() -> Iterator[Sequence[Value]]:
        for run in runs:
            for name, found in mapping(run.summary.get("metrics")).items():
                values = mapping(found)
                yield [_name(run), cell(name, "text"), *(cell(values.get(key), k) for key, k in _METRIC.items())]

    columns = (Column(name, kind) for name, kind in _METRIC.items())
    return Table("metrics", (Column("run", "text"), Column("metric", "text"), *columns), rows)


def groups(runs: Runs) -> Table:
    """One row a number of a group's member; counts of judgements stand among them, as n_graded and n_expected."""

    def rows() -> Iterator[Sequence[Value]]:
        for run in runs:
            for part in ("groups", "coverage_by"):
                for group, members in mapping(run.summary.get(part)).items():
                    for member, numbers in mapping(members).items():
                        for name, value in mapping(numbers).items():
                            words = (cell(word, "text") for word in (group, member, name))
                            yield [_name(run), *words, cell(value, "number")]

    names = ("run", "group", "member", "name")
    return Table("groups", (*(Column(name, "text") for name in names), Column("value", "number")), rows)


#: Every table by its name, and whether it has longer texts that are only given when asked for.
_MAKERS: Final[Mapping[str, Callable[..., Table]]] = {
    "judgements": judgements,
    "submissions": submissions,
    "scores": scores,
    "runs": runs_table,
    "metrics": metrics,
    "groups": groups,
}
_WITH_TEXTS: Final = ("judgements", "submissions")
TABLES: Final = tuple(_MAKERS)


def table_of(runs: Runs, name: str, *, texts: bool = False) -> Table:
    """The table of this name; raises InputError for another name, and for a file that can't be read."""
    if name not in _MAKERS:
        raise InputError("no such table", expected=f"one of {', '.join(TABLES)}", got=repr(name))
    return _MAKERS[name](runs, texts=texts) if name in _WITH_TEXTS else _MAKERS[name](runs)


def columns_of(table: Table) -> list[list[Value]]:
    """A table read at once, as one list of cells a column."""
    found: list[list[Value]] = [[] for _ in table.columns]
    for row in table.rows():
        for values, value in zip(found, row, strict=True):
            values.append(value)
    return found


def usd_per_task(run: LoadedRun) -> float | None:
    """What solving a task cost, in dollars: the mean over the tasks that state it; None where none does."""
    found = (cell(row.get("cost_usd"), "number") for row in run.stream("score"))
    return mean(value for value in found if isinstance(value, float))


def _rows(runs: Runs, schema: str) -> Iterator[Mapping[str, Any]]:
    for run in runs:
        yield from run.stream(schema)


def _name(run: LoadedRun) -> Value:
    return cell(run.name, "text")


def _columns(fields: Sequence[Field]) -> tuple[Column, ...]:
    return tuple(Column(name, kind) for name, kind, _ in fields)


def _cells(fields: Sequence[Field], row: Mapping[str, Any]) -> list[Value]:
    found = []
    for _, kind, path in fields:
        value: Any = row
        for key in path:
            value = value.get(key) if isinstance(value, dict) else None
        found.append(cell(value, kind))
    return found


def _size(value: Any, wanted: type[Sized]) -> int | None:
    """How long a text, how many entries a list or object has; None where there is none."""
    return len(value) if isinstance(value, wanted) else None
