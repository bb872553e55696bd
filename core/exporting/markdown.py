"""Tables for people as one Markdown document, words at the left and numbers at the right."""

from __future__ import annotations

from collections.abc import Sequence

from core.calibration.render import inline
from core.exporting.shown import ShownTable


def markdown(tables: Sequence[ShownTable]) -> str:
    """tables.md: each table with its notes below; at the end what the runs warn of, and how numbers were made."""
    parts = ["# Tables", *(_table(table) for table in tables)]
    asides = dict.fromkeys(aside for table in tables for aside in table.asides)
    if asides:
        parts.append("## How to read them\n\n" + "\n".join(f"- {inline(aside)}" for aside in asides))
    return "\n\n".join(parts) + "\n"


def _table(table: ShownTable) -> str:
    sides = [":--" if at < table.words else "--:" for at in range(len(table.columns))]
    cells = [[inline(f"{cell.text} {cell.beside}".strip()) for cell in row] for row in table.rows]
    lines = [[inline(name) for name in table.columns], sides, *cells]
    rows = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    return f"## {inline(table.title)}\n\n{rows}\n\n{inline('; '.join(table.notes))}"
