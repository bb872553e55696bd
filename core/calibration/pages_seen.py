"""What a run's pages were: their statuses out of its rows, their bodies out of the archive that it used.

A body counts only where the archive's fetch is not younger than the run: a later run may have fetched the page
anew in its place.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final

from core.calibration.judged import Judged
from core.errors import InputError
from core.pages.archive import Archive
from core.pages.fixtures import Fixtures
from core.pages.urls import archive_key
from core.resources import resolve

PAGE: Final = "page/"
#: run.json tells times to the second, an archive to the millisecond.
_STEP_S: Final = 1.0


@dataclass(frozen=True, slots=True)
class Seen:
    """One page in one run. `status` None: the run says nothing of it. `digest`: of its body, None unknown."""

    status: str | None = None
    final_url: str | None = None
    digest: str | None = None


def pages_of(run: Judged, tasks: Collection[str], store: Path | None = None) -> dict[str, Seen]:
    """The pages of these tasks by address. `store`: where they are archived, if not where the run says."""
    found: dict[str, Seen] = {}
    for (task, _, unit), rows in run.rows.items():
        if task not in tasks or not unit.startswith(PAGE):
            continue
        url = unit.removeprefix(PAGE)
        verdict = next((said.verdict for said in rows.values() if said.verdict is not None), None)
        if verdict is None or url in found:
            continue
        status, final = verdict.get("status"), verdict.get("final_url")
        found[url] = Seen(status if isinstance(status, str) else None, final if isinstance(final, str) else None)
    digests = _digests(run, found, store)
    return {url: Seen(seen.status, seen.final_url, digests.get(url)) for url, seen in found.items()}


def _digests(run: Judged, urls: Iterable[str], store: Path | None) -> dict[str, str | None]:
    section = run.saved.config.pages
    if section.mode == "fixtures" and store is None:
        try:
            fixtures = Fixtures(resolve(section.path or "", folder=True), archive_key)
            return {
                url: fetched.digest() for url in urls if (fetched := fixtures.get(archive_key(url))) is not None
            }
        except (InputError, OSError):
            return {}  # the folder is gone: its pages' statuses are in the rows
    kept = store or (Path(run.saved.config.store).expanduser() if run.saved.config.store else None)
    if kept is None or not kept.is_file():
        return {}
    ended = _seconds(run.saved.facts.get("finished_at"))
    archive = Archive(kept)
    try:
        return {
            url: fetched.digest()
            for url in urls
            if (fetched := archive.get(archive_key(url))) is not None
            and (ended is None or fetched.fetched_at < ended + _STEP_S)
        }
    except InputError:
        return {}
    finally:
        archive.close()


def _seconds(value: object) -> float | None:
    try:
        return datetime.fromisoformat(str(value)).timestamp()
    except ValueError:
        return None
