"""A blind sheet, one row at a time: what a labeller needs, and labels put back into the file.

The sheet of `core.calibrate sample` holds no verdict; should somebody have added columns, they are not shown
either. The file is read anew for every label and replaced as a whole, so that nothing of it is lost.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from core.calibration.cells import MOST, as_csv, read_csv
from core.calibration.labels import WORDS
from core.errors import InputError, place
from core.report.html.text import visible
from core.runfolder import replace_file

#: What a labeller sees of a row: the question, what it is about, and what is known of it.
SHOWN: Final = ("task_id", "unit", "check", "prompt", "asked", "shown", "note")
#: What a label may be; an empty one takes a label back.
LABELS: Final = ("yes", "no", "")
_NAME: Final = 80


class Sheet:
    """A sheet as it is in its file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.rows = [row for _, row in read_csv(path)]
        self.columns = list(dict.fromkeys(name for row in self.rows for name in row))
        for name in ("id", "label"):
            if self.rows and name not in self.columns:
                raise InputError(f"there is no column {name!r}", where=place(path), expected="a blind sheet")

    def overview(self) -> dict[str, Any]:
        """Which rows are labelled, in the order of the file."""
        return {
            "rows": [
                {"id": row.get("id", ""), "task": visible(row.get("task_id", "")), "label": _label(row)}
                for row in self.rows
            ]
        }

    def row(self, number: int) -> dict[str, Any]:
        """The row at place `number` (from 0), as a labeller may see it."""
        row = self._row(number)
        return {
            "id": row.get("id", ""),
            "label": _label(row),
            "labeller": visible(row.get("labeller", "")),
            "comment": visible(row.get("comment", "")),
            "fields": {name: visible(row.get(name, "")) for name in SHOWN},
        }

    def put(self, number: int, key: str, label: str, labeller: str, comment: str) -> None:
        """Label a row and write the file; raises InputError where the row is another one by now."""
        row = self._row(number)
        if row.get("id", "") != key:
            raise InputError("the sheet has changed: load it again", where=place(self._path))
        changed = {**row, "label": label, "labeller": labeller, "comment": comment}
        columns = list(dict.fromkeys([*self.columns, "labeller", "comment"]))
        rows = [changed if at == number else other for at, other in enumerate(self.rows)]
        try:
            replace_file(self._path, [as_csv(columns, rows)])
        except OSError as error:
            raise InputError(f"can't be written: {error.strerror}", where=self._path.name) from None

    def _row(self, number: int) -> dict[str, str]:
        if not 0 <= number < len(self.rows):
            raise InputError("there is no such row", expected=f"0 to {len(self.rows) - 1}", got=str(number))
        return self.rows[number]


def asked(body: Any) -> tuple[int, str, str, str, str]:
    """(row, id, label, labeller, comment) of a request's body; raises InputError naming what is wrong."""
    if not isinstance(body, Mapping):
        raise InputError("not a JSON object", expected="row, id, label, labeller, comment")
    row = body.get("row")
    if not isinstance(row, int) or isinstance(row, bool):
        raise InputError("row: not a whole number", got=repr(row)[:_NAME])
    words = {name: body.get(name, "") for name in ("id", "label", "labeller", "comment")}
    for name, value in words.items():
        most = MOST if name == "comment" else _NAME
        if not isinstance(value, str) or len(value) > most:
            raise InputError(f"{name}: not a text of at most {most} characters")
    if words["label"] not in LABELS:
        raise InputError("label: none that can be given", expected=", ".join(LABELS[:2]), got=repr(words["label"]))
    return row, words["id"], words["label"], words["labeller"], words["comment"]


def _label(row: Mapping[str, str]) -> str:
    """A label as this page says it, whichever of its words the file has; others as they stand."""
    word = row.get("label", "").strip()
    met = WORDS.get(word.lower())
    return visible(word) if met is None else "yes" if met else "no"
