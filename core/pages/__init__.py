"""Fetching a page, reading it, finding an excerpt in it. What a page says is data, and hostile."""

from __future__ import annotations

from collections.abc import Sequence


def main(argv: Sequence[str] | None = None) -> int:
    """`core.pages export|import …`; returns the exit code."""
    from core.pages.command import main as command

    return command(argv)
