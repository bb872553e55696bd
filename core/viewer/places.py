"""The folders that a viewer may look into: which runs and sheets are there, and no path that leads out.

An address never holds a path. Runs and sheets have ids, made of where they stand; what has no id can't be asked
for. Links are resolved, and refused where they lead out of the folders that the command was given.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal

from core.calibration.sheet import COLUMNS
from core.errors import InputError
from core.runfolder import EXPLAIN, JUDGEMENTS, LOG, RUN, SCORES, SUBMISSIONS, SUMMARY, TASKS
from core.sweep import SWEEP

#: Every file of a run folder that is ever opened here.
FILES: Final = (
    *(RUN, SUMMARY, TASKS, SCORES, SUBMISSIONS, JUDGEMENTS, LOG, EXPLAIN, ".lock"),
    *(f"{SUBMISSIONS}.part", f"{JUDGEMENTS}.part"),
)
#: Folders below a given one that are searched, and how many runs and sheets are listed.
_DEEPEST, _MOST_FOLDERS, _MOST = 6, 20_000, 5_000
#: The header by which a sheet is known, as far as it needs to be read.
_HEADER: Final = ",".join(COLUMNS[:5])
_HEADER_BYTES: Final = 400


@dataclass(frozen=True, slots=True)
class Found:
    """A run folder or a sheet. `name`: its path below the given folder; `sweep`: its sweep's, if any."""

    id: str
    path: Path
    name: str
    sweep: str = ""


@dataclass
class Listing:
    """What one search found, by id. `cut`: it ended before it had seen everything."""

    runs: dict[str, Found] = field(default_factory=dict)
    sheets: dict[str, Found] = field(default_factory=dict)
    cut: bool = False


class Places:
    """What the given folders hold. A given folder may itself be a run, and a given file a sheet."""

    def __init__(self, given: Sequence[Path]) -> None:
        self.roots = tuple(dict.fromkeys(path.resolve() for path in given))
        self.listing = Listing()

    def scan(self) -> Listing:
        """Look again what is there."""
        listing = Listing()
        for root in self.roots:
            if root.is_file():
                self._add_sheet(listing, root, root.name)
            else:
                self._search(listing, root)
        self.listing = listing
        return listing

    def run(self, key: str) -> Found:
        """A run by its id; raises InputError for an id that is none, and where a file of it leads out."""
        found = self._known(key, "run")
        for name in FILES:
            self.inside(found.path / name)
        return found

    def sheet(self, key: str) -> Found:
        """A sheet by its id, likewise."""
        found = self._known(key, "sheet")
        self.inside(found.path)
        return found

    def inside(self, path: Path) -> Path:
        """The path with its links resolved; raises InputError where it leads out of the given folders."""
        try:
            real = path.resolve()
        except (OSError, RuntimeError):  # links that go round
            raise InputError("its links lead nowhere", where=path.name) from None
        if not any(real == root or root in real.parents for root in self.roots):
            raise InputError("it leads out of the folders that the viewer was given", where=path.name)
        return real

    def _known(self, key: str, kind: Literal["run", "sheet"]) -> Found:
        listing = self.listing
        if key not in listing.runs and key not in listing.sheets:
            listing = self.scan()
        among = listing.runs if kind == "run" else listing.sheets
        if key not in among:
            raise InputError(f"there is no such {kind}", expected="one of the list", got=repr(key[:40]))
        return among[key]

    def _search(self, listing: Listing, root: Path) -> None:
        for seen, (where, folders, files) in enumerate(os.walk(root)):
            folder = Path(where)
            if seen > _MOST_FOLDERS or len(listing.runs) >= _MOST:
                listing.cut = True
                return
            if RUN in files:
                _add_run(listing, root, folder)
                folders.clear()
            elif len(folder.relative_to(root).parts) >= _DEEPEST:
                folders.clear()
            folders[:] = sorted(name for name in folders if not name.startswith("."))
            for name in sorted(files):
                if name.endswith(".csv") and len(listing.sheets) < _MOST:
                    self._add_sheet(listing, folder / name, str((folder / name).relative_to(root)))

    def _add_sheet(self, listing: Listing, path: Path, name: str) -> None:
        try:
            real = self.inside(path)
            if not real.is_file():  # a pipe would be waited for
                return
            with real.open("rb") as file:
                start = file.read(_HEADER_BYTES).decode("utf-8-sig", "replace")
        except (InputError, OSError):
            return
        if start.replace(";", ",").replace("\t", ",").replace('"', "").startswith(_HEADER):
            listing.sheets.setdefault(id_of(real), Found(id_of(real), real, name))


def _add_run(listing: Listing, root: Path, folder: Path) -> None:
    name = str(folder.relative_to(root)) if folder != root else folder.name
    is_job = folder != root and ((folder.parent / SWEEP).is_file() or folder.parent.name.endswith("-sweep"))
    sweep = (folder.parent.name if folder.parent == root else str(Path(name).parent)) if is_job else ""
    key = id_of(folder)
    listing.runs.setdefault(key, Found(key, folder, name, sweep))


def id_of(path: Path) -> str:
    """The id of what stands at a path: the same as long as it stands there."""
    return hashlib.sha256(os.fsencode(path)).hexdigest()[:16]


def stamps(folder: Path, names: Sequence[str] = FILES) -> tuple[tuple[str, int, int], ...]:
    """What tells whether files of a folder changed: name, time and size of those that are there."""
    return tuple(_stamps(folder, names))


def _stamps(folder: Path, names: Sequence[str]) -> Iterator[tuple[str, int, int]]:
    for name in names:
        try:
            facts = (folder / name).stat()
        except OSError:
            continue
        yield name, facts.st_mtime_ns, facts.st_size
