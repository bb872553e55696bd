"""A comparison for people: on a terminal, and as Markdown. What must be known stands above the tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

from core.audit import Table
from core.comparison.results import Comparison
from core.comparison.tables import method, tables, title, warnings

if TYPE_CHECKING:
    from rich.console import Console

#: Columns of words; all others hold numbers, which stand at the right.
_WORDS = frozenset(
    {
        *(
            "system",
            "best for",
            "first",
            "second",
            "first is",
            "group",
            "member",
            "judge",
            "family",
            "by part",
            "units",
        ),
        *("own systems", "task", "unit", "share of yes", "swaps", "part"),
    }
)


def text(comparison: Comparison, console: Console) -> None:
    """Print it."""
    from rich.table import Table as RichTable
    from rich.text import Text

    console.print(Text(title(comparison), style="bold"))
    for warning in warnings(comparison):
        console.print(Text("warning: ", style="bold yellow") + Text(warning))
    for table in tables(comparison):
        shown = RichTable(title=Text(table.title), title_justify="left", title_style="bold")
        for name in table.columns:
            shown.add_column(Text(name), justify="left" if name in _WORDS else "right", overflow="fold")
        for row in table.rows:
            shown.add_row(*(Text(str(cell)) for cell in row))
        console.print()
        console.print(shown)
    console.print()
    console.print(Text(method(comparison)))


def markdown(comparison: Comparison) -> str:
    """It as one Markdown document."""
    parts = [f"# {_inline(title(comparison))}"]
    found = warnings(comparison)
    if found:
        parts.append("\n".join(f"- **warning**: {_inline(warning)}" for warning in found))
    parts.extend(_markdown_table(table) for table in tables(comparison))
    parts.append(method(comparison))
    parts.append("\n".join(f"- {_inline(f'{run.name}: {run.path}')}" for run in comparison.runs))
    return "\n\n".join(parts) + "\n"


def _markdown_table(table: Table) -> str:
    sides = [":--" if name in _WORDS else "--:" for name in table.columns]
    lines = [table.columns, sides, *table.rows]
    rows = "\n".join(
        "| " + " | ".join(cell if cell in (":--", "--:") else _inline(str(cell)) for cell in line) + " |"
        for line in lines
    )
    return f"## {_inline(table.title)}\n\n{rows}"


def _inline(said: str) -> str:
    """Text that Markdown and HTML leave as it is: names come from files."""
    plain = " ".join(said.split())
    for sign in ("\\", "|", "<", ">", "*", "_", "`", "[", "]", "#"):
        plain = plain.replace(sign, {"<": "&lt;", ">": "&gt;"}.get(sign, f"\\{sign}"))
    return plain
