"""`python -m core.export RUN [RUN…] --out DIR`: runs as tables, for other programs and for papers.

parquet, csv        all of it, unrounded: verdicts, answers, tasks, runs, metrics, groups; joined by the column run
latex, markdown     the tables of a paper: rounded, with intervals, counts and the judge

Asks nobody, changes nothing in a run. docs/export.md has every column.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from core.errors import InputError

#: Exit codes: written; refused.
OK: Final = 0
REFUSED: Final = 2
FORMATS: Final = ("parquet", "csv", "latex", "markdown")


def main(argv: Sequence[str] | None = None) -> int:
    """The command; returns the exit code."""
    words = _parser().parse_args(argv)
    try:
        written, problems = export(words.runs, words.out, words.format, texts=words.texts)
    except InputError as error:
        sys.stderr.write(f"refused: {error}\n")
        return REFUSED
    for problem in problems:
        sys.stderr.write(f"warning: {problem}\n")
    sys.stdout.write("".join(f"{path}\n" for path in written))
    return OK


def export(runs: Sequence[Path], out: Path, form: str, *, texts: bool = False) -> tuple[list[Path], list[str]]:
    """Write the tables of runs into a folder; returns the files, and what was passed over. Raises InputError."""
    from core.exporting.latex import latex
    from core.exporting.markdown import markdown
    from core.exporting.shown import shown_tables
    from core.exporting.tables import TABLES, table_of
    from core.exporting.writers import WRITERS
    from core.load import load
    from core.runfolder import replace_file

    found = load(runs)
    written = []
    try:
        out.mkdir(parents=True, exist_ok=True)
        if form in WRITERS:
            for name in TABLES:
                written.append(out / f"{name}.{form}")
                WRITERS[form](table_of(found.runs, name, texts=texts), written[-1])
        else:
            tables = shown_tables(found.runs)
            files = (
                {"tables.md": markdown(tables)}
                if form == "markdown"
                else {f"{table.name}.tex": latex(table) for table in tables}
            )
            for name, text in files.items():
                written.append(out / name)
                replace_file(written[-1], [text.encode("utf-8", "replace")])
    except OSError as error:
        raise InputError(f"can't be written: {error.strerror}", where=f"--out {out}") from None
    return written, found.problems


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        "core.export", description="Write runs as tables: all of it for programs, or what a paper shows."
    )
    parser.add_argument("runs", nargs="+", metavar="RUN", type=Path, help="a run folder")
    parser.add_argument("--format", choices=FORMATS, default="parquet", help="of the files (parquet)")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="where the files go")
    parser.add_argument(
        "--texts", action="store_true", help="with answers and judges' raw replies (parquet and csv)"
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
