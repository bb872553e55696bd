"""`python -m core.pages`: pages out of a store into a folder of files, and back.

    export --store FILE --out DIR [--run RUN]     the form that pages=fixtures reads
    import DIR --store FILE

An exported folder grades a run again anywhere, without a network. Of a page that both sides have, the later
fetch stays.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from core.errors import InputError, place
from core.pages.archive import Archive
from core.pages.fetched import Fetched
from core.pages.fixtures import Fixtures, write
from core.pages.urls import archive_key
from core.runfolder import JUDGEMENTS, SUBMISSIONS

_PAGE_UNIT: Final = "page/"


def export_pages(store: Path, out: Path, run: Path | None = None) -> tuple[int, int]:
    """Write a store's pages as fixtures; with `run` only those that the run asked for.

    Returns how many were written and how many of the run's pages the store does not have. Raises InputError.
    """
    if not store.is_file():
        raise InputError("there is no such store", where=str(store))
    archive = Archive(store)
    try:
        if run is None:
            return write(out, (fetched for _, fetched in archive.all())), 0
        wanted = list(dict.fromkeys(archive_key(url) for url in _asked_by(run)))
        found = (archive.get(key) for key in wanted)
        count = write(out, (fetched for fetched in found if fetched is not None))
        return count, len(wanted) - count
    finally:
        archive.close()


def import_pages(folder: Path, store: Path) -> tuple[int, int]:
    """Put fixtures into a store. Returns how many were put and how many it had already. Raises InputError."""
    fixtures = Fixtures(folder, archive_key)
    archive = Archive(store)
    put = 0
    try:
        for fetched in fixtures.all():
            put += _is_news(archive.get(archive_key(fetched.url)), fetched) and archive.put(
                archive_key(fetched.url), fetched
            )
    finally:
        archive.close()
    return put, len(fixtures) - put


def _is_news(known: Fetched | None, fetched: Fetched) -> bool:
    return known is None or fetched.fetched_at > known.fetched_at


def _asked_by(run: Path) -> Iterator[str]:
    """The addresses of a run: pages that its judgements speak of, and what its submissions cite."""
    if not (run / JUDGEMENTS).is_file() and not (run / SUBMISSIONS).is_file():
        raise InputError(f"there is no {JUDGEMENTS}", where=str(run), expected="the folder of a run")
    for name in (JUDGEMENTS, SUBMISSIONS):
        if not (run / name).is_file():
            continue
        with (run / name).open(encoding="utf-8") as rows:
            for number, line in enumerate(rows, start=1):
                try:
                    row = json.loads(line)
                    unit = row.get("unit")
                    cited = [citation["url"] for citation in row.get("citations") or ()]
                except (ValueError, TypeError, KeyError, AttributeError) as error:
                    raise InputError(f"not a row of a run: {error}", where=place(run / name, number)) from None
                if isinstance(unit, str) and unit.startswith(_PAGE_UNIT):
                    yield unit.removeprefix(_PAGE_UNIT)
                yield from (url for url in cited if isinstance(url, str))


def main(argv: Sequence[str] | None = None) -> int:
    """The command; returns the exit code."""
    parser = argparse.ArgumentParser("core.pages", description="Move archived pages out of a store and into one.")
    commands = parser.add_subparsers(dest="command", required=True, metavar="export|import")
    export = commands.add_parser("export", help="write a store's pages as files that pages=fixtures reads")
    export.add_argument("--store", required=True, type=Path, metavar="FILE", help="the store to read")
    export.add_argument("--out", required=True, type=Path, metavar="DIR", help="a new folder")
    export.add_argument("--run", type=Path, metavar="RUN", help="only the pages that this run folder speaks of")
    take = commands.add_parser("import", help="put such a folder's pages into a store")
    take.add_argument("folder", type=Path, metavar="DIR", help="a folder with pages.jsonl")
    take.add_argument("--store", required=True, type=Path, metavar="FILE", help="the store to fill")
    words = parser.parse_args(argv)
    try:
        if words.command == "export":
            count, absent = export_pages(words.store, words.out, words.run)
            beside = f"; {absent} that the run speaks of are not in the store" if absent else ""
            sys.stdout.write(f"{count} pages written to {words.out}{beside}\n")
        else:
            count, known = import_pages(words.folder, words.store)
            sys.stdout.write(
                f"{count} pages put into {words.store}, {known} were there already or can't be kept\n"
            )
    except InputError as error:
        sys.stderr.write(f"refused: {error}\n")
        return 2
    return 0
