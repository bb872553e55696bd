"""What people see of a run: the terminal (console.py) and one page of HTML (html/)."""

from __future__ import annotations

from collections.abc import Sequence


def main(argv: Sequence[str] | None = None) -> int:
    """`python -m core.report RUN…`; returns the exit code."""
    from core.report.html.command import main as command

    return command(argv)
