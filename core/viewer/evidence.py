"""What a record quotes, marked in the text of its page: as the archive has it, where the excerpts align.

Nothing is fetched. Pages come from the store or folder that the run used, if it lies within the given folders
or is one of a package, or from the store that the command names: a run folder is anybody's, and must not choose
which files of this machine are opened.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from core.calibration.judged import Judged
from core.calibration.material import archived_pages
from core.errors import InputError
from core.pages.align import Alignment, locate
from core.pages.page import Page
from core.pages.service import PageService
from core.report.html.text import visible
from core.resources import SCHEME
from core.viewer.places import Places

#: Characters shown around a passage, of a whole page, and of all excerpts that are looked for.
AROUND, MOST_PAGE = 900, 400_000
_MOST_EXCERPTS: Final = 40
#: The store's usual name, looked for where a run's configuration names none.
_STORE: Final = "store.sqlite"


def pages_for(path: Path, places: Places, store: Path | None) -> PageService | None:
    """The pages that a run saw; None where they are not at hand. Raises InputError for a folder that is no run."""
    from core.rescore import read_run

    saved = read_run(path)
    section = saved.config.pages
    if section.mode == "fixtures" and store is None:
        path_of_pages = section.path or ""
        if path_of_pages.startswith(SCHEME):
            _check_package(path_of_pages)
        else:
            places.inside(Path(path_of_pages).expanduser())
        return archived_pages(Judged(saved, path.name, {}, {}, ()))
    kept = store or _store_of(saved.config.store, path, places)
    return archived_pages(Judged(saved, path.name, {}, {}, ()), kept) if kept is not None else None


def _check_package(address: str) -> None:
    """Refuse a package that no plugin has loaded: to look for its files would import it."""
    package = address.removeprefix(SCHEME).partition("/")[0]
    if package not in sys.modules:
        raise InputError("its pages are in a package that is not loaded", where=address)


def _store_of(configured: str | None, path: Path, places: Places) -> Path | None:
    """The run's store, where it is one of the given folders' files."""
    named = [Path(configured).expanduser()] if configured else [folder / _STORE for folder in path.parents[:3]]
    for candidate in named:
        try:
            if candidate.is_file() and places.inside(candidate):
                return candidate
        except InputError:
            continue
    return None


def evidence_of(page: Page, excerpts: Sequence[str], *, whole: bool) -> dict[str, Any]:
    """The page's text with the passages that the excerpts quote, as pieces: see `pieces`."""
    found = [locate(excerpt, page.texts) for excerpt in excerpts[:_MOST_EXCERPTS]] if page.texts else []
    chosen = next((alignment.text for alignment in found if alignment.located), None)
    texts = dict(page.texts)
    text = texts.get(chosen or "", page.main_text or next(iter(texts.values()), ""))
    spans = [
        (part.start, part.end, number)
        for number, alignment in enumerate(found)
        if alignment.text == chosen
        for part in alignment.parts
    ]
    return {
        "status": page.status,
        "message": visible(page.message),
        "final_url": visible(page.final_url or ""),
        "fetched_at": page.fetched_at or "",
        "title": visible(page.title),
        "reader": visible(chosen or ""),
        "length": len(text),
        "excerpts": [_said(alignment) for alignment in found],
        "pieces": list(pieces(text, spans, around=MOST_PAGE if whole else AROUND)),
    }


def _said(alignment: Alignment) -> dict[str, Any]:
    return {
        "text": visible(alignment.excerpt),
        "rung": alignment.rung,
        "ratio": alignment.ratio,
        "why_not": visible(alignment.why_not),
        "at": [[part.start, part.end] for part in alignment.parts],
    }


def pieces(text: str, spans: Sequence[tuple[int, int, int]], *, around: int) -> Iterator[dict[str, Any]]:
    """The text as pieces: `text`, with `mark` (an excerpt's number) on a passage; or `gap` characters left out.

    `spans`: (start, end, number), in any order; where they overlap, the one that begins first is marked, and the
    rest of the other. Without spans: the beginning of the text.
    """
    end = shown_to = 0
    for begins, ends, number in sorted(spans) or [(0, 0, -1)]:
        start, stop = max(begins, end), min(ends, len(text))
        since = max(start - around, shown_to)
        if since > shown_to:
            yield {"gap": since - shown_to}
        if start > since:
            yield {"text": visible(text[since:start])}
        if stop > start:
            yield {"text": visible(text[start:stop]), "mark": number}
        end = max(end, stop)
        following = min((max(at, end) for at, to, _ in spans if to > end), default=len(text))
        shown_to = max(end, min(end + around, following))
        if shown_to > end:
            yield {"text": visible(text[end:shown_to])}
            end = shown_to
    if shown_to < len(text):
        yield {"gap": len(text) - shown_to}
