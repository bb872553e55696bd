"""The numbers of runs as tables for people: rounded, each with its interval and with what it rests on.

What is rounded here is only shown. A number that is not there is a dash; one that was withheld, because too little
of it was decided, says so. The judges, the warnings of the runs and how each number was made stand beside a table.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from core.comparison.reading import mapping, number, whole, word
from core.comparison.tables import percent
from core.exporting.layout import COUNTS, Fact, Layout, layouts_of
from core.exporting.tables import usd_per_task
from core.load import LoadedRun
from core.runfolder import safe_word

DASH: Final = "–"
WITHHELD: Final = "withheld"
#: Where a metric's own decimals are not said: of numbers up to 1, and of others.
_FINE, _COARSE = 3, 2
_OFFLINE: Final = "offline"
#: What the names of a number's interval end in, among a group's numbers.
_LIMITS: Final = ("_low", "_high")


class Shown(NamedTuple):
    """A cell: its text, and what stands small beside it."""

    text: str
    beside: str = ""


@dataclass(frozen=True, slots=True)
class ShownTable:
    """`words`: how many of the first columns hold words. `notes` belong to the reader of the table, `asides` to
    whoever puts it into a paper: warnings of the runs, and how each number was made."""

    name: str
    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Shown, ...], ...]
    words: int
    notes: tuple[str, ...]
    asides: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Number:
    """A number before it is rounded. `is_withheld`: there is none, though some tasks have one."""

    value: int | float | None
    low: float | None = None
    high: float | None = None
    sd: float | None = None
    is_withheld: bool = False
    beside: str = ""


def shown_tables(runs: Sequence[LoadedRun]) -> list[ShownTable]:
    """The tables of runs: benchmark by benchmark, each as its layout says. Raises InputError.

    Each has a name of its own that is fit for a file.
    """
    by_benchmark: dict[str, list[LoadedRun]] = {}
    for run in runs:
        by_benchmark.setdefault(run.config.benchmark.name, []).append(run)
    tables: list[ShownTable] = []
    taken: set[str] = set()
    for benchmark, found in by_benchmark.items():
        for key, layout in layouts_of(found).items():
            name = first = safe_word(f"{benchmark}_{key}")
            number = 1
            while name in taken:
                number += 1
                name = f"{first}_{number}"
            table = _table(name, benchmark, layout, found)
            if table is not None:
                taken.add(name)
                tables.append(table)
    return tables


def _table(name: str, benchmark: str, layout: Layout, runs: Sequence[LoadedRun]) -> ShownTable | None:
    """One table; None where no run has a number for it."""
    labels = _labels(runs)
    grid = _overall(layout, runs, labels) if layout.group is None else _group(layout, runs, layout.group, labels)
    if grid is None:
        return None
    what = layout.title or (f"by {layout.group}" if layout.group else "scores")
    return ShownTable(
        name=name,
        title=f"{benchmark}: {what}",
        columns=tuple(grid.columns),
        rows=tuple(map(tuple, grid.rows)),
        words=grid.words,
        notes=tuple(_notes(layout, runs, grid)),
        asides=tuple(_asides(layout, runs)),
    )


class _Grid(NamedTuple):
    """Columns and rows; the first `words` columns hold words."""

    columns: list[str]
    rows: list[list[Shown]]
    words: int


class _Labels(NamedTuple):
    """What tells runs apart: names of columns, and the words of each run."""

    columns: list[str]
    words: list[tuple[str, ...]]

    def cells(self, at: int) -> list[Shown]:
        return [Shown(text) for text in self.words[at]]

    def titles(self) -> list[str]:
        """Each run in one line."""
        return [" · ".join(words) for words in self.words]


def _overall(layout: Layout, runs: Sequence[LoadedRun], labels: _Labels) -> _Grid | None:
    """A row a run: its metrics, its facts, and how many tasks and judgements they rest on."""
    metrics = [mapping(run.summary.get("metrics")) for run in runs]
    names = layout.columns(name for found in metrics for name in found)
    if not names:
        return None
    shown = [
        _rounded(
            [_metric(mapping(found.get(name)), run) for found, run in zip(metrics, runs, strict=True)], layout
        )
        for name in names
    ]
    facts = [FACTS[fact] for fact in layout.facts]
    rows = [
        [
            *labels.cells(at),
            *(column[at] for column in shown),
            *(Shown(tell(run)) for _, tell in facts),
            Shown(_of(run.summary, *COUNTS)),
            Shown(_of(run.summary, "n_graded", "n_expected")),
        ]
        for at, run in enumerate(runs)
    ]
    headings = [*names.values(), *(heading for heading, _ in facts), "tasks", "judgements"]
    return _Grid([*labels.columns, *headings], rows, len(labels.columns))


def _group(layout: Layout, runs: Sequence[LoadedRun], group: str, labels: _Labels) -> _Grid | None:
    """A group's numbers, by member and run. Where a number is not of all tasks, the counts stand beside it."""
    found = [mapping(mapping(run.summary.get("groups")).get(group)) for run in runs]
    members = list(dict.fromkeys(member for numbers in found for member in numbers))
    places = [(member, at) for member in members for at in range(len(runs)) if member in found[at]]
    cells = [mapping(found[at][member]) for member, at in places]
    known = dict.fromkeys(name for numbers in cells for name in numbers)
    limits = {f"{name}{end}" for name in known for end in _LIMITS}
    names = layout.columns(name for name in known if name not in limits)
    if not names:
        return None
    columns = [_rounded([_of_member(numbers, name) for numbers in cells], layout) for name in names]
    by_place = dict(zip(places, map(list, zip(*columns, strict=True)), strict=True))
    none = [Shown(DASH)] * len(names)
    headings = list(names.values())
    sizes = {member: _sizes(numbers for (of, _), numbers in zip(places, cells, strict=True) if of == member)
             for member in members}  # fmt: skip
    has_sizes = any(sizes.values())
    if layout.rows == "members":
        rows = [
            [
                Shown(member),
                *(cell for at in range(len(runs)) for cell in by_place.get((member, at), none)),
                *([Shown(sizes[member] or DASH)] if has_sizes else []),
            ]
            for member in members
        ]
        heading = [group, *_crossed(labels.titles(), headings), *(["tasks"] if has_sizes else [])]
        return _Grid(heading, rows, 1)
    if layout.rows == "runs":
        rows = [
            [*labels.cells(at), *(cell for member in members for cell in by_place.get((member, at), none))]
            for at in range(len(runs))
        ]
        sides = [f"{member} ({sizes[member]})" if sizes[member] else member for member in members]
        return _Grid([*labels.columns, *_crossed(sides, headings)], rows, len(labels.columns))
    counts = [[Shown(_of(numbers, *COUNTS))] if _is_counted(numbers) else [] for numbers in cells]
    has_counts = any(counts)
    rows = [
        [
            Shown(member),
            *labels.cells(at),
            *by_place[member, at],
            *((count or [Shown(DASH)]) if has_counts else ()),
        ]
        for (member, at), count in zip(places, counts, strict=True)
    ]
    heading = [group, *labels.columns, *headings, *(["tasks"] if has_counts else [])]
    return _Grid(heading, rows, 1 + len(labels.columns))


def _sizes(cells: Iterable[Mapping[str, Any]]) -> str:
    """How many tasks a member has; several numbers, where runs differ."""
    found = sorted({whole(numbers.get("n_tasks")) for numbers in cells if _is_counted(numbers)})
    return ", ".join(f"{n_tasks:,}" for n_tasks in found)


def _crossed(sides: Sequence[str], names: Sequence[str]) -> list[str]:
    return [side if len(names) == 1 else f"{side}: {name}" for side in sides for name in names]


def _metric(found: Mapping[str, Any], run: LoadedRun) -> _Number:
    value = _number(found.get("value"))
    n, n_tasks = whole(found.get("n")), whole(run.summary.get("n_tasks"))
    return _Number(
        value,
        _number(found.get("low")),
        _number(found.get("high")),
        _number(found.get("sd")),
        is_withheld=value is None and n > 0,
        beside=f"({n:,}/{n_tasks:,})" if 0 < n < n_tasks else "",
    )


def _of_member(found: Mapping[str, Any], name: str) -> _Number:
    value = _number(found.get(name))
    low, high = (_number(found.get(f"{name}{end}")) for end in _LIMITS)
    n_scored, n_tasks = (whole(found.get(key)) for key in COUNTS)
    beside = f"({_of(found, *COUNTS)})" if _is_counted(found) and n_scored < n_tasks else ""
    return _Number(value, low, high, is_withheld=value is None and n_scored > 0, beside=beside)


def _is_counted(found: Mapping[str, Any]) -> bool:
    """Whether a member says of how many of its tasks its numbers are means."""
    return all(key in found for key in COUNTS)


def _of(found: Mapping[str, Any], part: str, total: str) -> str:
    """Two counts as one text: 97/100."""
    return f"{whole(found.get(part)):,}/{whole(found.get(total)):,}"


def _rounded(numbers: Sequence[_Number], layout: Layout) -> list[Shown]:
    """One column's numbers with equally many decimals; counts have none."""
    values = [found.value for found in numbers if found.value is not None]
    decimals = layout.decimals
    if decimals is None:
        decimals = _FINE if all(abs(value) <= 1 for value in values) else _COARSE
    if all(isinstance(value, int) for value in values):
        decimals = 0
    return [_cell(found, decimals) for found in numbers]


def _cell(found: _Number, decimals: int) -> Shown:
    if found.value is None:
        return Shown(WITHHELD, found.beside) if found.is_withheld else Shown(DASH)
    beside = []
    if found.sd is not None:
        beside.append(f"± {fixed(found.sd, decimals)}")
    if found.low is not None and found.high is not None:
        beside.append(f"[{fixed(found.low, decimals)}, {fixed(found.high, decimals)}]")
    return Shown(fixed(found.value, decimals), " ".join([*beside, *([found.beside] if found.beside else [])]))


def fixed(value: float, decimals: int) -> str:
    """A number with so many decimals; the sign of one below zero is a minus, and zero has none."""
    text = f"{value:.{decimals}f}"
    return f"−{text[1:]}" if text.startswith("-") and float(text) else text.lstrip("-")


def _labels(runs: Sequence[LoadedRun]) -> _Labels:
    """The system, and the effort, the judge and the folder where it takes these to tell runs apart."""
    said = {
        "system": [word(run.summary.get("system")) or DASH for run in runs],
        "effort": [word(run.summary.get("effort")) or DASH for run in runs],
        "judge": [_judge(run) for run in runs],
        "run": [run.name for run in runs],
    }
    columns = ["system"]
    if any(effort != DASH for effort in said["effort"]):
        columns.append("effort")
    if len(set(said["judge"])) > 1:
        columns.append("judge")
    if len(set(zip(*(said[name] for name in columns), strict=True))) < len(runs):
        columns.append("run")
    return _Labels(columns, list(zip(*(said[name] for name in columns), strict=True)))


def _judge(run: LoadedRun) -> str:
    return word(mapping(run.summary.get("judge")).get("name")) or DASH


def _notes(layout: Layout, runs: Sequence[LoadedRun], grid: _Grid) -> Iterator[str]:
    """What a reader of the table must know."""
    yield from dict.fromkeys(map(_judged_by, runs))
    if any(_OFFLINE in mapping(mapping(run.summary.get("judge")).get("rows")) for run in runs):
        yield "the judge offline is made of rules: its verdicts say nothing about a system"
    if len({_judge(run) for run in runs}) > 1:
        yield "numbers under different judges can't be compared with each other"
    if len({word(run.run.get("tasks_digest")) for run in runs}) > 1:
        yield "the runs are of different tasks"
    for run in runs:
        if run.config.shard is not None:
            yield f"{run.name} is shard {run.config.shard.number}/{run.config.shard.of} of a run"
    cells = [cell for row in grid.rows for cell in row[grid.words :]]
    if any("±" in cell.beside for cell in cells):
        yield "±: the standard deviation over judge runs"
    if any("[" in cell.beside for cell in cells):
        yield "in brackets: the 95 % interval"
    if layout.group is None:
        yield "tasks: with a score, of all; judgements: decided, of those expected"
    elif any("/" in f"{cell.text}{cell.beside}" for cell in cells):
        yield "n/n: tasks with a number, of all"
    unknown = sum(whole(mapping(run.summary.get("cost")).get("unknown_calls")) for run in runs)
    if unknown and any("usd" in fact for fact in layout.facts):
        yield f"{unknown:,} calls of unknown cost are in no sum"
    if any(cell.text == DASH for cell in cells):
        yield f"{DASH}: there is no number"
    if any(cell.text == WITHHELD for cell in cells):
        yield f"{WITHHELD}: too few tasks have a number for a mean"


def _judged_by(run: LoadedRun) -> str:
    judge = mapping(run.summary.get("judge"))
    model, repeats = word(judge.get("model")), whole(judge.get("repeats"), 1)
    of = f" ({model})" if model and model != judge.get("name") else ""
    return f"judge {_judge(run)}{of}, asked {repeats} time{'' if repeats == 1 else 's'}"


def _asides(layout: Layout, runs: Sequence[LoadedRun]) -> Iterator[str]:
    """What whoever puts the table into a paper must know: warnings, and how its numbers were made."""
    for run in runs:
        warnings = run.summary.get("warnings")
        for warning in warnings if isinstance(warnings, list) else ():
            yield f"warning of {run.name}: {warning}"
    if layout.group is None:
        metrics = [mapping(run.summary.get("metrics")) for run in runs]
        for name in layout.columns(name for found in metrics for name in found):
            made = (word(mapping(found.get(name)).get("estimator")) for found in metrics)
            yield from dict.fromkeys(f"{name}: {how}" for how in made if how)


def _number(value: Any) -> int | float | None:
    """A finite number as it is, so that a count stays one; else None."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    found = number(value)
    return None if math.isnan(found) else found


def _dollars(value: float | None) -> str:
    return DASH if value is None else fixed(value, 2)


def _latency(name: str, unit_s: float) -> Callable[[LoadedRun], str]:
    def shown(run: LoadedRun) -> str:
        value = _number(mapping(run.summary.get("latency")).get(name))
        return DASH if value is None else fixed(value / unit_s, 1)

    return shown


#: A fact's heading, and its text.
FACTS: Final[Mapping[Fact, tuple[str, Callable[[LoadedRun], str]]]] = {
    "usd_per_task": ("USD/task", lambda run: _dollars(usd_per_task(run))),
    "judge_usd": ("judging USD", lambda run: _dollars(_number(mapping(run.summary.get("cost")).get("judge_usd")))),
    "median_s": ("median s", _latency("median_s", 1)),
    "p90_s": ("P90 s", _latency("p90_s", 1)),
    "median_minutes": ("median min", _latency("median_s", 60)),
    "p90_minutes": ("P90 min", _latency("p90_s", 60)),
    "coverage": ("coverage", lambda run: percent(_number(run.summary.get("coverage")))),
    "attempts": ("attempts", lambda run: str(whole(run.summary.get("attempts"), 1))),
}
