"""The passage of a page that is nearest to a quotation, and what differs between the two.

Pieces of the quotation are looked for as they stand; pieces that are found at the right distance from each other
propose a passage, and the best few proposals are compared with the quotation. The work is bounded by the number of
pieces, of places a piece and of proposals, so that a page made to slow it down costs no more than another.

A likeness says nothing of what was changed, and so a near passage also has to hold every number and negation of
the quotation in place, and neither side may have a clause, or another word, that the other has not.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import Final

from core.pages.words import Word, read_words, turned_by_prefix

#: Likeness (0–100) from which a passage is near.
NEAR: Final = 90.0
#: Characters that a quotation needs for a likeness to mean anything, and that it may have at most.
SHORTEST: Final = 24
LONGEST: Final = 10_000
_PIECES: Final = 24
_PIECE: Final = (8, 16)
_PLACES: Final = 32
_PROPOSALS: Final = 4


@dataclass(frozen=True, slots=True)
class Passage:
    """A passage of a folded page. `ratio` is its likeness to the quotation, 0–100."""

    start: int
    end: int
    ratio: float


def nearest(part: str, page: str, since: int = 0, *, cutoff: float = NEAR) -> Passage | None:
    """The passage of a folded page from `since` on that is most like a folded quotation; case makes no difference.

    None when no likeness reaches `cutoff`, and for quotations too short or too long to be looked for.
    """
    from rapidfuzz import fuzz

    if not SHORTEST <= len(part) <= LONGEST:
        return None
    part, page = _lower(part), _lower(page)
    best: Passage | None = None
    for proposed in _proposals(part, page, since):
        start, end = _whole_words(page, *proposed)
        ratio = fuzz.ratio(part, page[start:end], score_cutoff=cutoff)
        if ratio >= cutoff and (best is None or ratio > best.ratio):
            best = Passage(start, end, ratio)
    return best


def _lower(text: str) -> str:
    """Lower case of the same length."""
    low = text.lower()
    return low if len(low) == len(text) else "".join(c.lower() if len(c.lower()) == 1 else c for c in text)


def _proposals(part: str, page: str, since: int) -> list[tuple[int, int]]:
    """Passages that hold several pieces of the part, most pieces first."""
    length = min(max(_PIECE[0], len(part) // 6), _PIECE[1])
    step = max(length, len(part) // _PIECES)
    width = max(16, len(part) // 4)
    # places by how far the page has shifted against the part: (offset in the part, place in the page)
    by_shift: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for offset in range(0, len(part) - length + 1, step):
        piece = part[offset : offset + length]
        place = page.find(piece, since)
        for _ in range(_PLACES):
            if place < 0:
                break
            by_shift[(place - offset) // width].append((offset, place))
            place = page.find(piece, place + 1)
    found = []
    for shift, hits in by_shift.items():
        together = hits + by_shift[shift + 1] if shift + 1 in by_shift else hits
        pieces = len({offset for offset, _ in together})
        (first, at), (last, until) = min(together), max(together)
        start, end = max(since, at - first), min(len(page), until + len(part) - last)
        found.append((-pieces, start, end))
    return [(start, end) for _, start, end in sorted(set(found))[:_PROPOSALS] if start < end]


def _whole_words(page: str, start: int, end: int) -> tuple[int, int]:
    """A passage without the words that its ends go through, unless by one or two letters; numbers as a whole."""
    reach = 24
    left = max(0, start - reach)
    words = read_words(page, left, min(len(page), end + reach))
    for word in words:
        if word.start < start < word.end:
            start = word.start if word.is_number or start - word.start <= 2 else word.end
        if word.start < end < word.end:
            end = word.end if word.is_number or word.end - end <= 2 else word.start
    while start < end and page[start] == " ":
        start += 1
    while end > start and page[end - 1] == " ":
        end -= 1
    return start, end


def difference(part: str, passage: str) -> str:
    """What differs, in a way that matters, between a folded quotation and a passage near it; else empty."""
    from rapidfuzz.distance import Indel

    mine, theirs = read_words(part), read_words(passage)
    blocks: list[tuple[int, int, int, int]] = []
    for step in Indel.opcodes([word.text for word in mine], [word.text for word in theirs]):
        if step.tag == "equal":
            continue
        if blocks and (blocks[-1][1], blocks[-1][3]) == (step.src_start, step.dest_start):
            # what was taken out and what was put in its place are two steps
            blocks[-1] = (blocks[-1][0], step.src_end, blocks[-1][2], step.dest_end)
        else:
            blocks.append((step.src_start, step.src_end, step.dest_start, step.dest_end))
    for a, b, c, d in blocks:
        added = [word for word in theirs[c:d] if not _is_note(passage, word)]
        if a == b and (c == 0 or d == len(theirs)):
            continue  # the passage was taken a little too long
        why = _difference(mine[a:b], added)
        if why:
            return why
    return ""


def _is_note(passage: str, word: Word) -> bool:
    """Whether a word is a footnote's mark, such as [12]: it stands in a sentence and is no word of it."""
    return passage[word.start - 1 : word.start] == "[" and passage[word.end : word.end + 1] == "]"


def _difference(mine: list[Word], theirs: list[Word]) -> str:
    """Why one block of differing words matters, or nothing."""
    ours, pages = " ".join(word.text for word in mine), " ".join(word.text for word in theirs)
    both = f"{_said(ours)} where the page says {_said(pages)}"
    if any(word.is_number for word in (*mine, *theirs)):
        return f"a number differs: {both}"
    if any(word.is_negation for word in (*mine, *theirs)):
        return f"a negation differs: {both}"
    if len(mine) == 1 == len(theirs) and turned_by_prefix(ours, pages):
        return f"a negation differs: {both}"
    if not mine:
        return f"cut: the page's {_said(pages)} is left out without an ellipsis" if len(theirs) > 1 else ""
    if not theirs:
        return f"added: {_said(ours)} is not on the page there" if len(mine) > 1 else ""
    return "" if _same_but_for_typing(ours, pages) else f"worded differently: {both}"


def _same_but_for_typing(ours: str, pages: str) -> bool:
    """One letter in six may differ: `colour`, but not `increased` for `decreased`."""
    from rapidfuzz.distance import Levenshtein

    ours, pages = ours.replace(" ", ""), pages.replace(" ", "")
    most = max(1, max(len(ours), len(pages)) // 6)
    return Levenshtein.distance(ours, pages, score_cutoff=most) <= most


def _said(text: str) -> str:
    return f"“{text[:80]}{'…' if len(text) > 80 else ''}”" if text else "nothing"


def cut_or_stitched(part: str, page: str) -> str:
    """Whether a folded quotation is two passages of a folded page put together, and how; empty when it is not."""
    breaks = [word.start for word in read_words(part)][1:]
    if len(part) > LONGEST or len(breaks) < 3:
        return ""
    low, high = 0, len(breaks)  # the longest beginning of the quotation that the page has
    while low < high:
        middle = (low + high + 1) // 2
        if part[: breaks[middle - 1]].strip() in page:
            low = middle
        else:
            high = middle - 1
    if low == 0:
        return ""
    beginning, rest = part[: breaks[low - 1]].strip(), part[breaks[low - 1] :].strip()
    if len(beginning) < _PIECE[0] or len(rest) < _PIECE[0]:
        return ""
    start = page.find(beginning)
    after = page.find(rest, start + len(beginning))
    if after < 0 and rest not in page:
        return ""
    left_out = after - start - len(beginning)
    end = _said(beginning[-60:])
    if 0 <= left_out <= len(part):
        return f"cut: {left_out} characters of the page are left out after {end} without an ellipsis"
    return f"stitched: {end} and {_said(rest[:60])} stand apart on the page"
