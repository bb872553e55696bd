"""Where a page says what an excerpt quotes, or why it does not.

    exact     the excerpt stands on the page as it is
    folded    … but for typography: NFKC, quotes, dashes, ellipses, ligatures, soft hyphens, blanks, markdown
    squeezed  … but for blanks and hyphens: line ends, table cells, words that a line end divides
    near      a passage is at least 90 % like it; `why_not` says what differs if it matters
    none      nothing is

An excerpt is split where it has an ellipsis (…, [...], (…)), and its parts have to follow one another in one text
of the page. What is left out without an ellipsis, or put together without one, is not on the page.

A match must not go through a number, nor through a word so that it turns round (core/pages/words.py), and on every
rung the numbers and negations of both sides are the same. Offsets lead into the page's text as it was given.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from core.pages.fold_text import Folded, fold_page, fold_text, squeeze, squeeze_page
from core.pages.near import LONGEST, NEAR, SHORTEST, cut_or_stitched, difference, nearest
from core.pages.words import cut_changes, joined_thousands, read_words, what_matters

#: Raised when an alignment may come out differently.
ALIGN_VERSION: Final = 1

Rung = Literal["exact", "folded", "squeezed", "near", "none"]
Span = tuple[int, int]

_ELLIPSIS: Final = re.compile(r"\[\s*(?:…|\.\s?\.\s?\.)\s*\]|\(\s*(?:…|\.\s?\.\s?\.)\s*\)|…|\.{3,}")
_LINK: Final = re.compile(
    r"!?\[([^\[\]]{1,500})\]\((?:https?://|mailto:|www\.|/|#)[^()\s]{0,2000}(?:\s\"[^\"]{0,500}\")?\)"
)
_QUOTE_MARK: Final = re.compile(r"^[ \t]*(?:>[ \t]?)+", re.MULTILINE)
_ENTITY: Final = re.compile(r"&(?:#\d{1,7}|#x[0-9a-f]{1,6}|[a-z]{2,8}\d?);", re.IGNORECASE)
_ENDS: Final = " \t\r\n\"'“”„‟«»‘’‚"
#: Occurrences of a part that are looked at before it is given up.
_MOST_PLACES: Final = 256
#: Parts of an excerpt beyond which it is not looked for, and beyond which not by likeness.
_MOST_PARTS: Final = 200
_MOST_NEAR_PARTS: Final = 32


@dataclass(frozen=True, slots=True)
class Part:
    """One part of an excerpt and where the page has it: `start` and `end` are offsets in the page's text."""

    text: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Alignment:
    """Where an excerpt stands. `text` names the page's text that `parts` lead into; empty for `none`.

    `ratio` is 100 for exact, folded and squeezed, else the likeness (0–100) of the least like part. `why_not` is
    empty when nothing that matters differs.
    """

    excerpt: str
    rung: Rung
    text: str = ""
    parts: tuple[Part, ...] = ()
    ratio: float = 0.0
    why_not: str = ""

    @property
    def located(self) -> bool:
        """Whether there is a passage to show."""
        return bool(self.parts)


def passes(alignment: Alignment, *, offline: bool) -> bool:
    """Whether the page is held to say what the excerpt quotes; near is enough for the offline judge only."""
    if alignment.rung == "near":
        return offline and not alignment.why_not
    return alignment.rung != "none"


def locate(excerpt: str, texts: Sequence[tuple[str, str]]) -> Alignment:
    """Look for an excerpt in a page's texts (extractor, text), on the strongest rung first.

    Folded texts are kept for the next excerpt of the same page.
    """
    asis, unwrapped = _readings(excerpt), _readings(_unwrapped(excerpt))
    if not asis:
        return Alignment(excerpt, "none", why_not="the excerpt has no word in it")
    if max(len(parts) for parts in asis) > _MOST_PARTS:
        return Alignment(
            excerpt, "none", why_not=f"the excerpt's ellipses make more than {_MOST_PARTS} parts of it"
        )
    others = [parts for parts in unwrapped if parts not in asis]
    for rung, find in _FIRM:
        for name, text in texts:
            for parts in asis if rung == "exact" else [*asis, *others]:
                spans = find(parts, text)
                if spans is not None:
                    found = tuple(Part(part, *span) for part, span in zip(parts, spans, strict=True))
                    return Alignment(excerpt, rung, name, found, 100.0)
    return _near(excerpt, (others or asis)[-1], texts)


def _readings(excerpt: str) -> list[list[str]]:
    """The ways to read an excerpt as parts: as it stands, and split at its ellipses if it has some."""
    readings: list[list[str]] = []
    for parts in ([excerpt.strip()], [part.strip() for part in _ELLIPSIS.split(excerpt)]):
        told = [part for part in parts if any(char.isalnum() for char in fold_text(part))]
        if told and told not in readings:
            readings.append(told)
    return readings


def _unwrapped(excerpt: str) -> str:
    """An excerpt without markdown's links and quote marks, entities, and quotation marks round it all."""
    text = _QUOTE_MARK.sub("", _LINK.sub(r"\1", excerpt))
    if _ENTITY.search(text):
        text = html.unescape(text)
    return text.strip(_ENDS)


def _exact(parts: list[str], text: str) -> list[Span] | None:
    spans: list[Span] = []
    since = 0
    for part in parts:
        span = next((span for span in _places(part, text, since) if not cut_changes(text, *span)), None)
        if span is None:
            return None
        spans.append(span)
        since = span[1]
    return spans


def _places(part: str, text: str, since: int) -> Iterator[Span]:
    place = text.find(part, since)
    for _ in range(_MOST_PLACES):
        if place < 0:
            return
        yield place, place + len(part)
        place = text.find(part, place + 1)


def _folded(parts: list[str], text: str) -> list[Span] | None:
    page = fold_page(text)
    spans: list[Span] = []
    since = 0
    for part in parts:
        found = _first(fold_text(part), page, since)
        if found is None:
            return None
        spans.append(_source(page, found))
        since = found[1]
    return spans


def _first(folded: str, page: Folded, since: int) -> Span | None:
    """Where a folded page first says something, from a place on."""
    return next((place for place in _places(folded, page.text, since) if _stands(page, place)), None)


def _squeezed(parts: list[str], text: str) -> list[Span] | None:
    page = fold_page(text)
    narrow = squeeze_page(page.text)
    spans: list[Span] = []
    since = 0
    for part in parts:
        wanted = fold_text(part)
        matters = what_matters(read_words(wanted))
        for start, end in _places(squeeze(wanted), narrow.text, since):
            found = narrow.index(start), narrow.index(end - 1) + 1
            if _stands(page, found) and _same(matters, what_matters(read_words(page.text, *found))):
                spans.append(_source(page, found))
                since = end
                break
        else:
            return None
    return spans


#: The rungs on which a page says what the excerpt quotes, strongest first.
_FIRM: Final[tuple[tuple[Rung, Callable[[list[str], str], list[Span] | None]], ...]] = (
    ("exact", _exact),
    ("folded", _folded),
    ("squeezed", _squeezed),
)


def _same(mine: list[str], theirs: list[str]) -> bool:
    return mine == theirs or joined_thousands(mine) == joined_thousands(theirs)


def _stands(page: Folded, place: Span) -> bool:
    """Whether a folded passage is whole characters of the source and its cut changes nothing."""
    return page.span(*place) is not None and not cut_changes(page.text, *place)


def _source(page: Folded, place: Span) -> Span:
    span = page.span(*place)
    assert span is not None, "_stands was asked"
    return span


def _near(excerpt: str, parts: list[str], texts: Sequence[tuple[str, str]]) -> Alignment:
    """The alignment of an excerpt that no text has as it stands: near, or none and why."""
    best = Alignment(excerpt, "none", why_not=_missing(parts, texts))
    if len(parts) > _MOST_NEAR_PARTS:
        return best
    for name, text in texts:
        found = _near_in(excerpt, parts, name, text)
        if found is not None and (_standing(found) > _standing(best)):
            best = found
    return best


def _standing(alignment: Alignment) -> tuple[bool, bool, float]:
    return alignment.located, not alignment.why_not, alignment.ratio


def _near_in(excerpt: str, parts: list[str], name: str, text: str) -> Alignment | None:
    page = fold_page(text)
    found: list[Part] = []
    ratio, why, since = 100.0, "", 0
    for part in parts:
        wanted = fold_text(part)
        place = _first(wanted, page, since)
        if place is None:
            passage = nearest(wanted, page.text, since)
            if passage is None:
                return None
            place = passage.start, passage.end
            ratio = min(ratio, passage.ratio)
            why = why or difference(wanted, page.text[passage.start : passage.end])
        span = page.span(*place)
        if span is None:
            return None
        found.append(Part(part, *span))
        since = place[1]
    return Alignment(excerpt, "near", name, tuple(found), ratio, why)


def _missing(parts: list[str], texts: Sequence[tuple[str, str]]) -> str:
    """Why an excerpt is not on the page: its first missing part, and whether that was cut or stitched."""
    if not texts:
        return "the page has no text"
    pages = [fold_page(text).text for _, text in texts]
    wanted = [fold_text(part) for part in parts]
    missing = next((part for part in wanted if not any(part in page for page in pages)), None)
    if missing is None:
        return "its parts are on the page, but not whole, not in this order or not in one text"
    for page in pages:
        why = cut_or_stitched(missing, page)
        if why:
            return why
    shown = f"{missing[:80]}{'…' if len(missing) > 80 else ''}"
    if len(missing) < SHORTEST:
        return f"not on the page: “{shown}” (too short to look for something like it)"
    if len(missing) > LONGEST:
        return f"not on the page: “{shown}” (longer than {LONGEST} characters: not looked for by likeness)"
    return f"not on the page: “{shown}” (nothing is {NEAR:g} % like it)"
