"""`python -m core.audit WHAT …`: look behind the numbers. Asks nobody, fetches nothing.

What there is to audit is a benchmark's own matter, so plugins register audits (`register_audits`); this module
finds one by name, reads its arguments, prints its tables and writes its findings as JSON.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Protocol

from core.errors import InputError

#: Exit codes: all was looked at; something was refused.
OK: Final = 0
REFUSED: Final = 2

Cell = str | int | float | None


@dataclass(frozen=True)
class Table:
    """One table of a report. Numbers are shown rounded, None as a dash."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]


@dataclass(frozen=True)
class Report:
    """What an audit found: tables for people, `data` for programs (JSON, no NaN), notes, and an exit code."""

    tables: Sequence[Table]
    data: Mapping[str, Any]
    notes: Sequence[str] = field(default=())
    code: int = OK


class Audit(Protocol):
    """One audit, as a plugin registers it by a factory without arguments."""

    #: What it does, in one line.
    summary: str

    def arguments(self, parser: argparse.ArgumentParser) -> None:
        """Declare what it takes; `--out` is there already."""

    def run(self, words: argparse.Namespace) -> Report:
        """Look; raises InputError for what can't be read."""


def main(argv: Sequence[str] | None = None) -> int:
    """The command; returns the exit code."""
    from core.plugin_manager import PluginManager

    plugins = PluginManager.discover()
    words = list(sys.argv[1:] if argv is None else argv)
    try:
        if not words or words[0] in ("-h", "--help"):
            sys.stdout.write(_help({name: plugins.factory("audit", name)() for name in plugins.names("audit")}))
            return OK if words else REFUSED
        audit: Audit = plugins.factory("audit", words[0])()
        parser = argparse.ArgumentParser(f"core.audit {words[0]}", description=audit.summary)
        parser.add_argument("--out", type=Path, metavar="FILE", help="write what was found as JSON")
        audit.arguments(parser)
        chosen = parser.parse_args(words[1:])
        report = audit.run(chosen)
        if chosen.out is not None:
            _write(chosen.out, {"audit": words[0], **report.data})
    except InputError as error:
        sys.stderr.write(f"refused: {error}\n")
        return REFUSED
    _print(report)
    return report.code


def _help(audits: Mapping[str, Audit]) -> str:
    lines = [f"  {name:<13}{audit.summary}" for name, audit in audits.items()]
    head = "python -m core.audit WHAT …     look behind the numbers; asks nobody"
    tail = "`python -m core.audit WHAT --help` says what it takes; each takes --out FILE for JSON."
    return "\n".join([head, "", *(lines or ["  no plugin has an audit"]), "", tail, ""])


def _write(path: Path, data: Mapping[str, Any]) -> None:
    try:
        path.write_text(json.dumps(data, ensure_ascii=False, indent=2, allow_nan=False) + "\n", encoding="utf-8")
    except OSError as error:
        raise InputError(f"can't be written: {error}", where=f"--out {path}") from error


def _print(report: Report) -> None:
    from rich.console import Console
    from rich.table import Table as RichTable
    from rich.text import Text

    console = Console(highlight=False, soft_wrap=True)
    # piped output is for grep and scripts: nothing is cut to a terminal's width
    if not console.is_terminal:
        console = Console(highlight=False, width=400)
    for table in report.tables:
        shown = RichTable(title=Text(table.title), title_justify="left", box=None, header_style="bold")
        for column in table.columns:
            shown.add_column(column, overflow="fold")
        for row in table.rows:
            shown.add_row(*(Text(_cell(cell)) for cell in row))
        console.print(shown)
        console.print()
    for note in report.notes:
        console.print(Text(note))


def _cell(value: Cell) -> str:
    if value is None:
        return "–"
    if isinstance(value, float):
        return f"{value:.4g}" if abs(value) < 1 else f"{value:.2f}"
    return str(value)


if __name__ == "__main__":
    sys.exit(main())
