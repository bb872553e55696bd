"""What stands at the top of a report: the run as a whole. Pure: from a folder's summary, scores and run.json."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from core.model import Metric, Summary, TaskScore
from core.preflight import money
from core.report.html import text
from core.report.html.folder import Folder

#: So many of each are shown; how many more there are is said.
_WARNINGS, _MEMBERS, _GROUPS, _FLAGS, _DOTS = 60, 40, 40, 12, 50
#: The metrics that the table of tasks has columns for.
_COLUMNS: Final = 6
#: What a group is drawn by, where it does not have the headline.
_DRAWN: Final = ("value", "coverage", "mean", "full", "soft")
_SHARE: Final = "share"


@dataclass(frozen=True, slots=True)
class Fact:
    """One line about the run."""

    name: str
    value: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class Member:
    """One row of a group. `numbers` in the order of the group's columns; `dots`: the headline of each task."""

    name: str
    numbers: tuple[float | None, ...]
    dots: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Group:
    """A group of the summary. `drawn`: the place of the number that is drawn, on a scale that ends at `scale`.

    `decimals`: of each column, so that its numbers stand one below the other. `is_label`: members are values of a
    label of tasks.
    """

    name: str
    is_label: bool
    columns: tuple[str, ...]
    decimals: tuple[int, ...]
    members: tuple[Member, ...]
    drawn: int | None
    scale: float
    more: int


@dataclass(frozen=True, slots=True)
class TaskRow:
    """One line of the table of tasks. `numbers` in the order of the columns. Dollars, seconds; None is unknown."""

    number: int
    id: str
    labels: tuple[tuple[str, str], ...]
    numbers: tuple[float | None, ...]
    status: str
    flags: tuple[str, ...]
    n_graded: int
    n_expected: int
    cost_usd: float | None
    latency_s: float | None

    @property
    def headline(self) -> float | None:
        """The number that the benchmark is known by."""
        return self.numbers[0] if self.numbers else None


@dataclass(frozen=True, slots=True)
class Measure:
    """A metric of the summary with its name."""

    name: str
    metric: Metric
    estimator: str


@dataclass(frozen=True, slots=True)
class Overview:
    """The run as a whole. `scale` is the upper end of the benchmark's metrics, 1 or 100."""

    title: str
    headline: Measure | None
    headline_name: str
    scale: float
    summary: Summary
    date: str
    facts: tuple[Fact, ...]
    cautions: tuple[str, ...]
    measures: tuple[Measure, ...]
    groups: tuple[Group, ...]
    failures: tuple[tuple[str, int], ...]
    columns: tuple[str, ...]
    rows: tuple[TaskRow, ...]


def overview_of(folder: Folder) -> Overview:
    """The top of the report on a folder."""
    summary, headline = folder.summary, folder.headline
    scale = _scale(summary, folder.scores)
    measures = [
        Measure(text.name(name), metric, text.cut(metric.estimator, 1000))
        for name, metric in summary.metrics.items()
    ]
    names = [headline, *(name for name in summary.metrics if name != headline)][:_COLUMNS]
    words = (summary.benchmark, summary.system, summary.effort, f"judge {summary.judge.name}")
    return Overview(
        title=" · ".join(text.name(word) for word in words if word),
        headline=next((measure for measure in measures if measure.name == text.name(headline)), None),
        headline_name=text.name(headline),
        scale=scale,
        summary=summary,
        date=text.name((folder.run.started_at or "unknown")[:10]),
        facts=tuple(_facts(folder)),
        cautions=_cautions(folder),
        measures=tuple(measures[:_GROUPS]),
        groups=_groups(summary, folder.scores, headline, scale),
        failures=tuple((text.name(kind), count) for kind, count in summary.errors.items()),
        columns=tuple(map(text.name, names)),
        rows=tuple(_row(number, score, names) for number, score in enumerate(folder.scores, start=1)),
    )


def _scale(summary: Summary, scores: Sequence[TaskScore]) -> float:
    """1 where no number of the benchmark exceeds it, else 100: a summary does not state it."""
    found = [metric.value for metric in summary.metrics.values()]
    found += [score.metrics.get(name) for score in scores for name in summary.metrics]
    return 100.0 if any(value is not None and value > 1 for value in found) else 1.0


def _facts(folder: Folder) -> Iterator[Fact]:
    summary, run = folder.summary, folder.run
    judge, cost, latency = summary.judge, summary.cost, summary.latency
    config = run.config or {}
    yield Fact("Benchmark", text.name(summary.benchmark), _benchmark_note(config))
    effort = f", effort {text.name(summary.effort)}" if summary.effort else ""
    yield Fact("System", f"{text.name(summary.system)}{effort}", _system_note(folder))
    model = f" ({text.name(judge.model)})" if judge.model else ""
    said = [text.settings(judge.settings), f"{judge.repeats} repeats" if judge.repeats != 1 else "1 repeat"]
    said += [f"asked from {first} to {last}" for first, last in [_dates(judge.dates)] if first]
    rows = ", ".join(f"{text.name(name)} {count:,}" for name, count in list(judge.rows.items())[:8])
    said += [f"verdicts by {rows}"] if rows else []
    said += [f"prompts {judge.prompt_digest[:12]}"] if judge.prompt_digest else []
    yield Fact("Judge", f"{text.name(judge.name)}{model}", "; ".join(word for word in said if word))
    share = "nothing was expected" if summary.coverage is None else f"{summary.coverage:.1%}"
    yield Fact("Judgements", f"{summary.n_graded:,} of {summary.n_expected:,} ({share})", _parts(summary))
    statuses = ", ".join(f"{text.name(name)} {count}" for name, count in summary.status.items())
    yield Fact("Tasks with a score", f"{summary.n_scored:,} of {summary.n_tasks:,}", statuses)
    statuses = ", ".join(f"{text.name(name)} {count}" for name, count in summary.submissions.items())
    attempts = "1 attempt a task" if summary.attempts == 1 else f"{summary.attempts} attempts a task"
    yield Fact("Answers", statuses or "none", attempts)
    unknown = "" if not cost.unknown_calls else f" + {cost.unknown_calls:,} calls of unknown cost"
    source = f"; prices {text.name(cost.source)}" if cost.source else ""
    yield Fact(
        "Cost", f"{money(cost.usd)}{unknown}",
        f"solving {money(cost.system_usd)}, judging {money(cost.judge_usd)}{source}",
    )  # fmt: skip
    if latency.median_s is not None and latency.p90_s is not None:
        yield Fact(
            "Time to answer",
            f"median {latency.median_s:.1f} s",
            f"P90 {latency.p90_s:.1f} s, of {latency.n} answers",
        )
    if run.started_at:
        ended = f"ended {text.name(run.finished_at)}" if run.finished_at else ""
        starts = f"started {run.starts} times" if (run.starts or 1) > 1 else ""
        yield Fact(
            "Run", f"started {text.name(run.started_at)}", "; ".join(word for word in (ended, starts) if word)
        )
    digest = f"configuration {run.config_digest[:12]}" if run.config_digest else ""
    yield Fact("Leadline", text.name(run.leadline or "unknown version"), digest)


def _benchmark_note(config: Mapping[str, Any]) -> str:
    section = config.get("benchmark")
    if not isinstance(section, Mapping):
        return ""
    parts = [
        f"{key} {text.name(section[key])}" for key in ("source", "revision", "form", "profile") if section.get(key)
    ]
    parts += ["strict"] if section.get("strict") else []
    return ", ".join(parts)


def _system_note(folder: Folder) -> str:
    """The effective settings that the first answer states."""
    for score in folder.scores[:20]:
        for submission in folder.submissions.of(score.task_id):
            if submission.settings:
                return text.settings(submission.settings)
    return ""


def _dates(dates: Mapping[Any, str | None]) -> tuple[str | None, str | None]:
    first, last = dates.get("first"), dates.get("last")
    return (text.name(first), text.name(last)) if first and last else (None, None)


def _parts(summary: Summary) -> str:
    """Where judgements are missing, by sign, axis and the like."""
    lost = [
        f"{text.name(member)} {count.n_graded:,}/{count.n_expected:,}"
        for members in summary.coverage_by.values()
        for member, count in members.items()
        if count.n_graded < count.n_expected
    ]
    shown, more = text.few(lost, _FLAGS)
    return f"missing: {', '.join(shown)}" + (f" and {more} more" if more else "") if shown else ""


def _cautions(folder: Folder) -> tuple[str, ...]:
    """What a reader must know before the number: the run's own warnings, then what follows from its counts."""
    summary = folder.summary
    found = list(dict.fromkeys(summary.warnings))
    withheld = [score.task_id for score in folder.scores if score.status == "withheld"]
    if withheld:
        shown, more = text.few(withheld, 5)
        rest = f" and {more} more" if more else ""
        found.append(
            f"{len(withheld)} of {summary.n_tasks} tasks are withheld, since too little of them was judged: "
            f"{', '.join(map(text.name, shown))}{rest}"
        )
    if summary.n_graded < summary.n_expected:
        found.append(f"{summary.n_expected - summary.n_graded:,} of {summary.n_expected:,} judgements are missing")
    flags = Counter(flag for score in folder.scores for flag in score.flags)
    if flags:
        shown_flags, more = text.few(sorted(flags.items(), key=lambda item: (-item[1], item[0])), _FLAGS)
        listed = ", ".join(f"{text.name(flag)} {count}" for flag, count in shown_flags)
        found.append(f"tasks with flags: {listed}" + (f" and {more} more kinds" if more else ""))
    if summary.cost.unknown_calls:
        found.append(f"the cost leaves out {summary.cost.unknown_calls:,} calls whose price is not known")
    if folder.run.exit_code not in (0, None):
        found.append(f"the run ended with exit code {folder.run.exit_code}: not every expected number is there")
    if folder.absent:
        found.append(f"the folder has no {', '.join(folder.absent)}: what rests on it is not shown")
    shown, more = text.few((text.cut(warning, 600) for warning in found), _WARNINGS)
    return (*shown, f"and {more} more warnings in summary.json") if more else shown


def _groups(summary: Summary, scores: Sequence[TaskScore], headline: str, scale: float) -> tuple[Group, ...]:
    found = [
        _group(name, members, scores, headline, scale) for name, members in list(summary.groups.items())[:_GROUPS]
    ]
    return tuple(group for group in found if group.members)


def _group(
    name: str,
    members: Mapping[str, Mapping[str, int | float | None]],
    scores: Sequence[TaskScore],
    headline: str,
    scale: float,
) -> Group:
    columns = list(dict.fromkeys(key for numbers in members.values() for key in numbers))[:12]
    drawn = next((key for key in (_SHARE, headline, *_DRAWN) if key in columns), None)
    if drawn is not None:
        there = [value for numbers in members.values() if (value := numbers.get(drawn)) is not None]
        end = scale if drawn == headline else 1.0
        # what leaves the scale is not drawn: a bar that ends outside of it would say something else
        drawn = drawn if all(0 <= value <= end for value in there) else None
    shown, more = text.few(members.items(), _MEMBERS)
    return Group(
        name=text.name(name),
        is_label=any(name in score.labels for score in scores),
        columns=tuple(map(text.name, columns)),
        decimals=tuple(_decimals(numbers.get(key) for numbers in members.values()) for key in columns),
        members=tuple(
            Member(
                text.name(member),
                tuple(numbers.get(key) for key in columns),
                _dots(scores, name, member, headline) if drawn == headline else (),
            )
            for member, numbers in shown
        ),
        drawn=None if drawn is None else columns.index(drawn),
        scale=scale if drawn == headline else 1.0,
        more=more,
    )


def _decimals(values: Iterable[int | float | None]) -> int:
    """None for counts, three for shares, two for the rest."""
    there = [value for value in values if value is not None]
    if all(isinstance(value, int) for value in there):
        return 0
    return 3 if all(abs(value) <= 1 for value in there) else 2


def _dots(scores: Sequence[TaskScore], label: str, member: str, headline: str) -> tuple[float, ...]:
    """The headline of each task whose label has this value; none where there are too many for a line."""
    found = []
    for score in scores:
        value = score.labels.get(label, ())
        number = score.metrics.get(headline)
        if number is not None and member in ([value] if isinstance(value, str) else value):
            found.append(number)
    return tuple(found) if len(found) <= _DOTS else ()


def _row(number: int, score: TaskScore, names: Sequence[str]) -> TaskRow:
    flags, more = text.few(map(text.name, score.flags), _FLAGS)
    return TaskRow(
        number=number,
        id=text.name(score.task_id),
        labels=tuple((text.name(key), text.words(value)) for key, value in list(score.labels.items())[:8]),
        numbers=tuple(score.metrics.get(name) for name in names),
        status=score.status,
        flags=(*flags, f"and {more} more") if more else flags,
        n_graded=score.n_graded,
        n_expected=score.n_expected,
        cost_usd=score.cost_usd,
        latency_s=score.latency_s,
    )
