"""What a reader of a task's numbers is told of its submission: which rows were refused and why, what was odd."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from plugins.wandr.model import Malformed, Parsed

#: Refused rows that are listed of one submission; the others are counted.
MOST_LISTED: Final = 20
#: What the note of a refused row begins with: its file's name. Notes on the delivery begin otherwise.
_REFUSED: Final = "results_"


def notes_of(parsed: Parsed) -> tuple[str, ...]:
    """The refused rows with file, line, field and reason, then what was odd about the delivery.

    Lines are counted as in units of judgements: from 0, blank ones left out.
    """
    listed = [refused(row) for row in parsed.malformed[:MOST_LISTED]]
    more = len(parsed.malformed) - len(listed)
    rest = [f"and {more} more rows or files were refused"] if more else []
    return (*listed, *rest, *parsed.notes)


def refused(row: Malformed) -> str:
    """One refused row, or a file that is missing or empty: where, and why."""
    line = [] if row.line is None else [f"line {row.line}"]
    field = [] if row.field is None else [f"field {row.field}"]
    return f"{', '.join([row.file, *line, *field])}: {row.reason}"


def first_refused(notes: Sequence[str]) -> str | None:
    """The first note on a refused row among a task's notes."""
    return next((note for note in notes if note.startswith(_REFUSED)), None)
