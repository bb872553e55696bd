"""Cells of a sheet that people open in a spreadsheet, where some texts run as formulas.

A cell that begins with one of `= + - @ TAB CR LF` gets an apostrophe before it, which a spreadsheet takes for
"this is text". A cell that begins with apostrophes and then such a sign gets one more, so that reading takes away
exactly what writing added: every text comes back as it was.

A spreadsheet that separates cells by another sign than the file's splits a text at `;`, `,` or TAB, whether or not
it is quoted, and what follows begins a cell. A `= + - @` there gets its apostrophe too. Not covered: a line break
in a text, where such a spreadsheet also splits; an apostrophe before every dash of a list would be unreadable.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from core.errors import InputError, place

_RUNS: Final = re.compile(r"'*[=+\-@\t\r\n]")
_READ_BACK: Final = re.compile(r"''*[=+\-@\t\r\n]")
#: A separator with the quotes after it, which a reader that splits there takes away, and what would run.
_RUNS_SPLIT: Final = re.compile(r"([;,\t]\"*)(?='*[=+\-@])")
_READ_BACK_SPLIT: Final = re.compile(r"([;,\t]\"*)'(?='*[=+\-@])")
#: Characters of a cell that the usual spreadsheets keep, less room for a note that it was cut.
MOST: Final = 32_000
#: Spreadsheets write what their country uses.
_DELIMITERS: Final = (",", ";", "\t")


def neutral(text: str) -> str:
    """The text as a cell that is no formula, nor becomes one where it is split."""
    apart = _RUNS_SPLIT.sub(r"\1'", text)
    return f"'{apart}" if _RUNS.match(apart) else apart


def original(cell: str) -> str:
    """The counterpart of `neutral`."""
    return _READ_BACK_SPLIT.sub(r"\1", cell[1:] if _READ_BACK.match(cell) else cell)


def cut(text: str, most: int = MOST, *, rest: str = "") -> str:
    """The text, or its beginning and a note; `rest` says where the whole of it stands."""
    if len(text) <= most:
        return text
    where = f"; {rest}" if rest else ""
    return f"{text[:most]}\n[… cut after {most:,} of {len(text):,} characters{where}]"


def as_csv(columns: Sequence[str], rows: Iterable[Mapping[str, str]]) -> bytes:
    """A CSV file with a header, every cell neutral. UTF-8 with a mark, without which spreadsheets guess."""
    out = io.StringIO(newline="")
    writer = csv.writer(out)
    writer.writerow(columns)
    writer.writerows([neutral(row.get(name, "")) for name in columns] for row in rows)
    # ids are written as they are, even where one holds half a character
    return out.getvalue().encode("utf-8-sig", "surrogatepass")


def read_csv(path: Path) -> Iterator[tuple[int, dict[str, str]]]:
    """(line, cells by column) of a CSV file with a header. Raises InputError that names the line.

    Commas, semicolons and tabs are taken, whichever the header has most of. Empty lines are passed over.
    """
    try:
        text = str(path.read_bytes(), "utf-8", "surrogatepass").removeprefix("\ufeff")
    except OSError as error:
        raise InputError(f"can't be read: {error.strerror}", where=str(path)) from None
    except UnicodeDecodeError:
        raise InputError("not UTF-8", where=str(path), expected="a CSV file saved as UTF-8") from None
    header = text.partition("\n")[0]
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=max(_DELIMITERS, key=header.count), strict=True)
    columns: list[str] | None = None
    line = 1
    while True:
        try:
            cells = next(reader, None)
        except csv.Error as error:
            raise InputError(f"not CSV: {error}", where=place(path, line)) from None
        if cells is None:
            return
        if columns is None:
            columns = [cell.strip() for cell in cells]
            twice = next((name for name in columns if name and columns.count(name) > 1), None)
            if twice is not None:
                raise InputError(f"the column {twice!r} stands twice", where=place(path, line))
        elif len(cells) > len(columns):
            raise InputError(
                f"{len(cells)} cells", where=place(path, line), expected=f"{len(columns)}, as the header has"
            )
        elif any(cell.strip() for cell in cells):
            yield line, {name: original(cell) for name, cell in zip(columns, cells, strict=False)}
        line = reader.line_num + 1
