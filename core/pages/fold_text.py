"""Folding: one spelling for texts that differ in typography alone, with a way back to the text that was folded.

A folded text is NFKC, with one sign for every quote, one for every dash, three dots for every ellipsis, one blank
for every run of white space, without what can't be seen (soft hyphens, zero-width and direction marks) and without
markdown's marks. Letters keep their case and words their order: what is folded away carries no meaning.

Where NFKC would change a number, its parts are kept apart: `10²` becomes `10^2` (not 102), `1½` becomes `1 1/2`.

Only what changes is looked at one by one; the rest of a text is copied and mapped as a whole, so that a page of
300 kB costs some milliseconds. Folding a folded text changes nothing: a pass is followed by another while
it may have made work for it (a deleted soft hyphen may bring a letter and its accent together).
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

#: Raised when the folding changes.
FOLD_VERSION: Final = 1

_QUOTES: Final = frozenset("'\"‘’‚‛′‵ʼˈ´“”„‟″‶«»‹›〝〞〟「」『』﹁﹂﹃﹄＂＇｢｣")
_DASHES: Final = frozenset("-‐‑‒–—―−⁃˗﹘﹣－⸺⸻")
#: Markdown's marks and the bullets that a list's markup becomes.
_MARKS: Final = frozenset("*_`|\\#•‣◦▪▫●○■□·∙")
#: Lengthens an Arabic word and means nothing.
_TATWEEL: Final = "ـ"
#: Halfwidth voicing marks: not combining by category, but they join the letter before them under NFKC.
_VOICING: Final = frozenset("ﾞﾟ")
#: Marks on one letter that a text in any language may need; normalising longer rows takes quadratic time.
_MOST_JOINED: Final = 30
#: The kinds of a text's characters (`_kind`) in which something may change, and what such a stretch is made of.
_STRETCH: Final = re.compile(r"[rdjnco][rdjnco .-]*")
_PART: Final = re.compile(r"[ r]{2,}|r|[xnco.-]?j+|[d-]{2,}|d|n+|c|[o.]{4,}")
#: More passes than any text was seen to need; a bound, so that no text can hold the folding up.
_MOST_PASSES: Final = 8


@dataclass(frozen=True, slots=True)
class _Map:
    """Where one pass changed a text: run i of the input became run i of the output; the rest is the same."""

    out_start: list[int]
    out_end: list[int]
    in_start: list[int]
    in_end: list[int]

    def start(self, at: int) -> int | None:
        """Where the output's character `at` starts in the input; None inside a run."""
        run = bisect_right(self.out_start, at) - 1
        if run < 0:
            return at
        if at >= self.out_end[run]:
            return self.in_end[run] + at - self.out_end[run]
        return self.in_start[run] if at == self.out_start[run] else None

    def end(self, at: int) -> int | None:
        """Where the output's character before `at` ends in the input; None inside a run."""
        last = at - 1
        run = bisect_right(self.out_start, last) - 1
        if run < 0:
            return at
        if last >= self.out_end[run]:
            return self.in_end[run] + at - self.out_end[run]
        return self.in_end[run] if at == self.out_end[run] else None


@dataclass(frozen=True, slots=True)
class Folded:
    """A folded text that knows where each of its characters came from."""

    source: str
    text: str
    maps: tuple[_Map, ...]

    def span(self, start: int, end: int) -> tuple[int, int] | None:
        """The source's offsets of `text[start:end]` (not empty); None when a cut goes through a character."""
        for step in reversed(self.maps):
            left, right = step.start(start), step.end(end)
            if left is None or right is None:
                return None
            start, end = left, right
        return start, end


def fold(text: str) -> Folded:
    """Fold a text. Any text will do, however long or strange."""
    source, maps = text, []
    for _ in range(_MOST_PASSES):
        text, changed, settled = _one_pass(text)
        if changed.in_start:
            maps.append(changed)
        if settled:
            break
    return Folded(source, text, tuple(maps))


def fold_text(text: str) -> str:
    """A text's folded spelling, without blanks at its ends."""
    return fold(text).text.strip()


@lru_cache(maxsize=8)
def fold_page(text: str) -> Folded:
    """Fold a page's text; the last few are kept, since a page's excerpts are looked for one after another."""
    return fold(text)


def squeeze(folded: str) -> str:
    """A folded text without blanks and hyphens: line ends, table cells and split words make no difference."""
    return folded.replace(" ", "").replace("-", "")


class Squeezed:
    """A squeezed page: its offsets lead back to the folded text by counting, a block at a time."""

    _BLOCK: Final = 1024

    def __init__(self, folded: str) -> None:
        self._folded = folded
        self.text = squeeze(folded)
        self._kept = [0]
        for start in range(0, len(folded), self._BLOCK):
            gaps = folded.count(" ", start, start + self._BLOCK) + folded.count("-", start, start + self._BLOCK)
            self._kept.append(self._kept[-1] + min(self._BLOCK, len(folded) - start) - gaps)

    def index(self, at: int) -> int:
        """Where the squeezed text's character `at` stands in the folded text."""
        block = bisect_right(self._kept, at) - 1
        left = at - self._kept[block]
        for place in range(block * self._BLOCK, len(self._folded)):
            if self._folded[place] in " -":
                continue
            if left == 0:
                return place
            left -= 1
        raise IndexError(f"the squeezed text has {len(self.text)} characters, asked for number {at}")


@lru_cache(maxsize=8)
def squeeze_page(folded: str) -> Squeezed:
    """Squeeze a folded page; the last few are kept."""
    return Squeezed(folded)


@lru_cache(maxsize=65536)
def _kind(char: str) -> str:
    """How folding treats a character, as a letter; `x` is left alone."""
    if char in " .-":
        return char
    if char in _DASHES:
        return "d"
    if char in _MARKS or char == _TATWEEL or char.isspace():
        return "r"
    category = unicodedata.category(char)
    if category in ("Cf", "Cc"):
        return "r"
    if category.startswith("M") or char in _VOICING or "\u1160" <= char <= "\u11ff":
        return "j"
    if _changed(char) == char:
        return "x"
    return "n" if category == "No" else "c"


@lru_cache(maxsize=65536)
def _changed(char: str) -> str:
    return "'" if char in _QUOTES else _nfkc(char)


def _nfkc(text: str) -> str:
    return unicodedata.normalize("NFKC", text).replace("\u2044", "/")


def _kinds(text: str) -> str:
    """A letter for each character; blanks, dots and hyphens are special only where they stand together.

    The kinds are searched, not the text: a pattern of all the special characters of a page can be a slow one.
    """
    kinds = text.translate({ord(char): _kind(char) for char in set(text)})
    for together, special in (("  ", "rr"), (" r", "rr"), ("--", "dd"), ("-d", "dd"), ("....", "oooo")):
        kinds = kinds.replace(together, special)
    return kinds


def _one_pass(text: str) -> tuple[str, _Map, bool]:
    """One pass over a text: what it became, where it changed, and whether another pass would find nothing."""
    kinds = _kinds(text)
    pieces: list[str] = []
    changed = _Map([], [], [], [])
    done = length = 0
    settled = True
    for stretch in _STRETCH.finditer(kinds):
        # an accent that starts a stretch belongs to the letter before it
        first = max(done, stretch.start() - 1) if stretch[0][0] == "j" else stretch.start()
        for part in _PART.finditer(kinds, first, stretch.end()):
            start, end = part.span()
            new = _replacement(text, kinds, start, end)
            if new == text[start:end]:
                continue
            pieces.append(text[done:start])
            pieces.append(new)
            length += start - done
            changed.in_start.append(start)
            changed.in_end.append(end)
            changed.out_start.append(length)
            length += len(new)
            changed.out_end.append(length)
            done = end
            settled = settled and _is_inert(new)
    pieces.append(text[done:])
    return "".join(pieces), changed, settled


@lru_cache(maxsize=4096)
def _is_inert(new: str) -> bool:
    """Whether a replacement can't be, or join with its neighbours to be, something to fold."""
    return new in (" ", "-", "'") or (bool(new) and all(_kind(char) == "x" for char in new))


def _replacement(text: str, kinds: str, start: int, end: int) -> str:
    """What one part of a stretch becomes."""
    found, kind = text[start:end], kinds[end - 1]
    if kind == "j":
        return _nfkc(found[: _MOST_JOINED + 1])
    if kind in " r":
        return _run(text, start, end)
    if found[0] == ".":
        return "..."
    if kind in "d-":
        return "-"
    return _number(text, start, end) if kind == "n" else _changed(found)


def _run(text: str, start: int, end: int) -> str:
    """White space, marks and invisible characters in a row: a blank if any is white space, else nothing."""
    found = text[start:end]
    if any(char.isspace() or char == "|" for char in found):
        return " "
    # 5*3 must not become 53; a soft hyphen or a zero-width blank in a number is not seen
    visible = any(char in _MARKS for char in found)
    return " " if visible and _digit(text, start - 1) and _digit(text, end) else ""


def _number(text: str, start: int, end: int) -> str:
    """Superscripts, circled numbers and fractions, apart from the digits beside them."""
    new = _nfkc(text[start:end])
    if new[0].isdecimal() and _digit(text, start - 1):
        new = ("^" if text[start] in "⁰¹²³⁴⁵⁶⁷⁸⁹" else " ") + new
    return new + " " if new[-1].isdecimal() and _digit(text, end) else new


def _digit(text: str, at: int) -> bool:
    return 0 <= at < len(text) and text[at].isdecimal()
