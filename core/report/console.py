"""What a run says on the terminal: the plan before, the numbers after, and what went wrong.

Everything goes to stderr but the result, which goes to stdout, so that it can be kept.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console as RichConsole
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from core.preflight import money
from core.sweep import Job, told

_WIDE = 160
#: What each exit code means, for people.
_CODES = {
    0: "all expected numbers are there",
    3: "some expected number is missing",
    4: "stopped by the budget",
    130: "interrupted",
}


class Console:
    """Where a run speaks."""

    def __init__(self, out: RichConsole | None = None, err: RichConsole | None = None) -> None:
        # what is piped is kept or searched: a table is not cut to a terminal that isn't there
        width = None if sys.stdout.isatty() else _WIDE
        self.out = out or RichConsole(highlight=False, soft_wrap=True, width=width)
        self.err = err or RichConsole(stderr=True, highlight=False, soft_wrap=True)
        self._warned: set[str] = set()

    def say(self, text: str) -> None:
        self.err.print(Text(text))

    def refused(self, message: str) -> None:
        self.err.print(Text("refused: ", style="bold red") + Text(message))

    def failed(self, message: str) -> None:
        self.err.print(Text("error: ", style="bold red") + Text(message))

    def plan(self, plan: Mapping[str, Any], warnings: Sequence[str]) -> None:
        """What will be done, and what it is expected to cost."""
        effort = f", effort {plan['effort']}" if plan["effort"] else ""
        self.say(f"{plan['benchmark']}: system {plan['system']}{effort}, judge {plan['judge']}")
        self.say(
            f"{plan['tasks']} of {plan['of']} tasks, attempts {plan['attempts']}, repeats {plan['repeats']}:"
            f" {plan['submissions']} submissions, {plan['judgements']:,} judgements"
        )
        self.say(
            f"expected cost, if nothing is stored yet: solving {money(plan['solving_usd'])},"
            f" judging {money(plan['judging_usd'])}"
        )
        self.warn(warnings)

    def warn(self, warnings: Sequence[str]) -> None:
        """Each warning once, though the plan and the result may both have it."""
        for warning in warnings:
            if warning in self._warned:
                continue
            self._warned.add(warning)
            self.err.print(Text("warning: ", style="bold yellow") + Text(warning))

    def result(self, summary: Mapping[str, Any], code: int, folder: Path, done: str | None = None) -> None:
        """The numbers of a run, each with its interval, spread and count."""
        judge = summary["judge"]
        title = " · ".join(
            str(word)
            for word in (summary["benchmark"], summary["system"], summary["effort"], f"judge {judge['name']}")
            if word
        )
        table = Table(title=escape(title), title_justify="left", title_style="bold")
        for name in ("metric", "value", "95 % interval", "sd of runs", "n"):
            table.add_column(name, justify="left" if name == "metric" else "right")
        for name, metric in summary["metrics"].items():
            table.add_row(
                escape(name),
                _number(metric["value"]),
                _interval(metric),
                _number(metric["sd"]),
                str(metric["n"]),
            )
        self.out.print(table)
        for group, members in summary["groups"].items():
            self.out.print(_group_table(group, members))
        self.out.print(Text(_counts(summary)))
        self.out.print(Text(_bill(summary)))
        if done is not None:
            self.out.print(Text(done))
        self.warn(summary["warnings"])
        self.out.print(Text(f"{_CODES.get(code, 'ended')} (exit {code}); files in {folder}"))

    def sweep(self, jobs: Sequence[Job], folder: Path) -> None:
        """The jobs of a sweep side by side."""
        table = Table(title="sweep", title_justify="left", title_style="bold")
        for name in ("job", "choices", "metric", "value", "95 % interval", "n", "coverage", "cost", "exit"):
            table.add_column(name, justify="left" if name in ("job", "choices", "metric") else "right")
        for job in jobs:
            headline = job.headline
            numbers = ["–"] * 6
            if headline is not None:
                numbers = [
                    escape(headline.metric),
                    _number(headline.value),
                    _interval(headline.model_dump()),
                    f"{headline.n}/{headline.n_tasks}",
                    "–" if job.coverage is None else f"{job.coverage:.1%}",
                    money(job.cost_usd),
                ]
            code = "–" if job.exit_code is None else str(job.exit_code)
            table.add_row(escape(job.folder), escape(told(job.choices)), *numbers, code)
        self.out.print(table)
        self.out.print(Text(f"{len(jobs)} jobs; folders in {folder}"))


def _interval(metric: Mapping[str, Any]) -> str:
    low, high = metric.get("low"), metric.get("high")
    return "–" if low is None else f"{_number(low)} … {_number(high)}"


def _group_table(group: str, members: Mapping[str, Mapping[str, Any]]) -> Table:
    names = list(dict.fromkeys(name for values in members.values() for name in values))
    table = Table(title=escape(f"by {group}"), title_justify="left")
    table.add_column(group)
    for name in names:
        table.add_column(escape(name), justify="right")
    for member, values in members.items():
        table.add_row(escape(member), *(_number(values.get(name)) for name in names))
    return table


def _counts(summary: Mapping[str, Any]) -> str:
    coverage = summary["coverage"]
    share = "–" if coverage is None else f"{coverage:.1%}"
    parts = [
        f"tasks scored {summary['n_scored']}/{summary['n_tasks']}",
        f"judgements {summary['n_graded']:,}/{summary['n_expected']:,} ({share})",
    ]
    if summary["errors"]:
        parts.append("errors " + ", ".join(f"{kind} {count}" for kind, count in summary["errors"].items()))
    return "; ".join(parts)


def _bill(summary: Mapping[str, Any]) -> str:
    cost, latency = summary["cost"], summary["latency"]
    text = f"cost {money(cost['usd'])} (solving {money(cost['system_usd'])}, judging {money(cost['judge_usd'])}"
    text += f", {cost['source']})" if cost["source"] else ")"
    if cost["unknown_calls"]:
        text += f"; {cost['unknown_calls']} calls of unknown cost"
    if latency["median_s"] is not None:
        text += f"; latency median {latency['median_s']:.1f} s, P90 {latency['p90_s']:.1f} s"
    return text


def _number(value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, int):
        return str(value)
    return f"{value:.3f}" if abs(value) < 1 else f"{value:.2f}"
