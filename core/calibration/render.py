"""A calibration for people: on a terminal, and as Markdown. What must be known stands above the tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from core.audit import Table
from core.calibration.results import (
    Calibration,
    Check,
    Corrected,
    JudgeReport,
    Limits,
    Rate,
    Rates,
)
from core.comparison.tables import number, percent

if TYPE_CHECKING:
    from rich.console import Console

_DASH: Final = "–"
#: What a corrected number rests on, said wherever one is shown.
ASSUMED: Final = (
    "Corrected numbers assume that within a kind the judge errs as often on every unit, whatever the task, the "
    "system and the score, and that labels are a fair draw. Scores are corrected as the sum that they are before "
    "they are held in their range."
)


def text(head: str, notes: Sequence[str], tables: Sequence[Table], foot: str, console: Console) -> None:
    """Print a title, notes, tables and how it was made."""
    from rich.table import Table as RichTable
    from rich.text import Text

    console.print(Text(head, style="bold"))
    for note in notes:
        console.print(Text("note: ", style="bold yellow") + Text(note))
    for table in tables:
        shown = RichTable(title=Text(table.title), title_justify="left", title_style="bold")
        for column in table.columns:
            shown.add_column(Text(column), overflow="fold")
        for row in table.rows:
            shown.add_row(*(Text(str(cell)) for cell in row))
        console.print()
        console.print(shown)
    console.print()
    console.print(Text(foot))


def document(head: str, notes: Sequence[str], tables: Sequence[Table], foot: str) -> str:
    """The same as one Markdown document."""
    parts = [f"# {inline(head)}"]
    if notes:
        parts.append("\n".join(f"- **note**: {inline(note)}" for note in notes))
    for table in tables:
        lines = [table.columns, ["--"] * len(table.columns), *table.rows]
        rows = "\n".join(
            "| " + " | ".join("--" if cell == "--" else inline(str(cell)) for cell in line) + " |"
            for line in lines
        )
        parts.append(f"## {inline(table.title)}\n\n{rows}")
    return "\n\n".join([*parts, inline(foot)]) + "\n"


def inline(said: str) -> str:
    """Text that Markdown and HTML leave as it is: names come from files."""
    plain = " ".join(said.split())
    for sign in ("\\", "|", "<", ">", "*", "_", "`", "[", "]", "#"):
        plain = plain.replace(sign, {"<": "&lt;", ">": "&gt;"}.get(sign, f"\\{sign}"))
    return plain


def markdown(found: Calibration) -> str:
    """calibration.md."""
    return document(title(found), found.notes, list(tables(found)), method(found))


def title(found: Calibration) -> str:
    """What was compared, in one line."""
    facts = found.labels
    return (
        f"{found.benchmark}: {facts.labels} labels of {facts.verdicts} verdicts, "
        f"{len(found.judges)} judge{'' if len(found.judges) == 1 else 's'}"
    )


def method(found: Calibration) -> str:
    """How the numbers were made."""
    settings = found.settings
    return (
        f"Intervals: {settings.level:.0%}; Wilson's takes verdicts for independent, the one by task draws whole "
        f"tasks ({settings.resamples} resamples, BCa, seed {settings.seed}). A class of fewer than "
        f"{settings.least} labels corrects nothing. A task is blocked where the judge errs on more than "
        f"{settings.limit:.0%} of at least {settings.audit_least} labels. {ASSUMED}"
    )


def tables(found: Calibration) -> Iterator[Table]:
    """Every table, in the order of reading."""
    for judge in found.judges:
        yield _rates(judge)
        yield _apart(judge)
        yield _corrected(judge)
        if judge.audit:
            yield _audit(judge)
    if found.labellers is not None:
        people = found.labellers
        yield Table(
            f"labellers with each other · Krippendorff α {number(people.alpha)}",
            ("first", "second", "n", "agreement", "Cohen κ", "Gwet AC1"),
            [
                (pair.first, pair.second, pair.n, percent(pair.agreement), number(pair.kappa), number(pair.ac1))
                for pair in people.pairs
            ],
        )


def _rates(judge: JudgeReport) -> Table:
    rows = []
    for check in judge.checks:
        for where, found in _parts(check):
            counts = found.confusion
            rows.append(
                (
                    check.check or _DASH,
                    where,
                    found.n,
                    found.n_tasks,
                    _rate(found.accuracy),
                    f"{number(found.kappa.value)}{_limits(found.kappa.by_task)}",
                    _rate(found.sensitivity),
                    _rate(found.specificity),
                    f"{counts.tp} {counts.fn} {counts.fp} {counts.tn}",
                )
            )
    return Table(
        f"judge {judge.judge} in {judge.run} against labels: value (Wilson; by task)",
        ("check", "of", "n", "tasks", "accuracy", "κ (by task)", "sensitivity", "specificity", "tp fn fp tn"),
        rows,
    )


def _parts(check: Check) -> Iterator[tuple[str, Rates]]:
    yield "weighted" if check.rates.weighted else "all", check.rates
    for group, members in check.groups.items():
        for member, found in members.items():
            yield f"{group} {member}", found
    for repeat, found in check.repeats.items():
        yield f"repeat {repeat}", found


def _apart(judge: JudgeReport) -> Table:
    return Table(
        "labels that are compared with nothing",
        ("check", "no verdict", "by rule", "unsure", "repeats tied", "labellers tied"),
        [
            (check.check or _DASH, apart.missing, apart.by_rule, apart.unsure, apart.tied, apart.disputed)
            for check in judge.checks
            for apart in [check.apart]
        ],
    )


def _corrected(judge: JudgeReport) -> Table:
    score = judge.score
    rows = []
    for check in judge.checks:
        rows.append(_correction(f"share of yes, {check.check or _DASH}", check.share))
        for group, members in check.shares.items():
            rows += [
                _correction(f"share of yes, {check.check}, {group} {member}", found)
                for member, found in members.items()
            ]
    by = f"by {score.group}" if score.group else "by kind"
    rows.append(_correction(f"{score.metric}, {by}", score.by_kind))
    rows.append(_correction(f"{score.metric}, all alike", score.pooled))
    held = f"; {score.n_held} judge runs were held in their range" if score.n_held else ""
    return Table(
        f"without the errors of {judge.judge}: {score.metric} as reported {number(score.reported)}{held}",
        ("number", "n", "as judged", "corrected", "analytic", "by task", "why not"),
        rows,
    )


def _correction(name: str, found: Corrected) -> tuple[str, ...]:
    return (
        name,
        str(found.n),
        number(found.apparent),
        number(found.value),
        _limits(found.analytic).strip(" ()") or _DASH,
        _limits(found.by_task).strip(" ()") or _DASH,
        found.why or "",
    )


def _audit(judge: JudgeReport) -> Table:
    return Table(
        f"errors of {judge.judge} by task",
        ("task", "errors", "n", "share", "Wilson", "blocked"),
        [
            (
                task.task_id,
                task.errors,
                task.n,
                percent(task.share),
                _limits(task.wilson).strip(" ()") or _DASH,
                task.blocked,
            )
            for task in judge.audit
        ],
    )


def _rate(found: Rate | None) -> str:
    if found is None:
        return _DASH
    parts = [_span(limits) for limits in (found.wilson, found.by_task)]
    return f"{number(found.value)} ({'; '.join(parts)})"


def _span(limits: Limits | None) -> str:
    return _DASH if limits is None else f"{number(limits.low)} … {number(limits.high)}"


def _limits(limits: Limits | None) -> str:
    return "" if limits is None else f" ({_span(limits)})"
