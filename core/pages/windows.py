"""What the judge sees of a long page: its beginning, and a window round every excerpt that was located.

A page is cut where a limit says; evidence is not. The view is made of stretches of the main text, in its order,
and of stretches of the other texts for excerpts that the main text does not have as they were found. Where
something is left out there is a mark of it.

The windows' margins shrink before anything else does, and the page's beginning fills what is left. If the excerpts
alone are longer than the limit, they are shown all the same, and nothing else is: a judge who is asked about an
excerpt must see where it stands.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from core.pages.align import Alignment

#: Characters that a view may have.
LIMIT: Final = 50_000
#: Characters shown on each side of an excerpt: the widest that fits.
_MARGINS: Final = (1_000, 500, 250, 100, 40, 0)
#: Windows together take at most this share of the limit before their margins shrink.
_SHARE: Final = 0.6
#: An excerpt's text shorter than this is shown where it was found: elsewhere it may mean something else.
_UNMISTAKABLE: Final = 40

LEFT_OUT: Final = "\n[… left out …]\n"
ELSEWHERE: Final = "\n[… elsewhere on the page …]\n"

Spans = list[tuple[int, int]]


def judge_view(
    main_text: str,
    texts: Sequence[tuple[str, str]],
    alignments: Sequence[Alignment],
    *,
    limit: int = LIMIT,
) -> str:
    """A page's main text within a limit of characters, with every located excerpt in it.

    `texts` are those that the excerpts were located in. The view is longer than `limit` only when the excerpts
    with the marks between them are.
    """
    in_main, in_others = _located(main_text, dict(texts), alignments)
    if not in_others and len(main_text) <= limit:
        return main_text
    if not in_main and not in_others and limit < 2 * len(LEFT_OUT):
        return main_text[: max(0, limit)]
    for margin in _MARGINS:
        windows = _Windows(main_text, in_main, in_others, margin)
        if len(windows.render()) <= limit * (_SHARE if margin else 1):
            break
    else:
        return windows.render()
    return windows.with_beginning(limit)


def _located(
    main_text: str, texts: dict[str, str], alignments: Sequence[Alignment]
) -> tuple[Spans, dict[str, tuple[str, Spans]]]:
    """Where the excerpts stand: in the main text, and by name in the texts that have them instead."""
    in_main: Spans = []
    in_others: dict[str, tuple[str, Spans]] = {}
    for alignment in alignments:
        text = texts.get(alignment.text, "")
        for part in alignment.parts:
            said = text[part.start : part.end]
            if text == main_text:
                in_main.append((part.start, part.end))
                continue
            place = main_text.find(said) if len(said) >= _UNMISTAKABLE else -1
            if place >= 0:
                in_main.append((place, place + len(said)))
            else:
                in_others.setdefault(alignment.text, (text, []))[1].append((part.start, part.end))
    return in_main, in_others


class _Windows:
    """Stretches of a page's texts round its excerpts."""

    def __init__(
        self, main_text: str, in_main: Spans, in_others: dict[str, tuple[str, Spans]], margin: int
    ) -> None:
        self._main = main_text
        self._in_main = _merged(main_text, in_main, margin)
        self._others = "".join(
            ELSEWHERE + _joined(text, _merged(text, spans, margin)) for text, spans in in_others.values()
        )

    def render(self, beginning: int = 0) -> str:
        """The view with so many characters of the main text's beginning."""
        first = [(0, beginning)] if beginning else []
        return _joined(self._main, _merged(self._main, first + self._in_main, 0)) + self._others

    def with_beginning(self, limit: int) -> str:
        """The view with as much of the main text's beginning as fits."""
        low, high = 0, min(limit, len(self._main))
        while low < high:
            middle = (low + high + 1) // 2
            if len(self.render(middle)) <= limit:
                low = middle
            else:
                high = middle - 1
        return self.render(low)


def _merged(text: str, spans: Spans, margin: int) -> Spans:
    """Spans with their margins, in order; those that a mark between them would not make shorter are one."""
    merged: Spans = []
    for start, end in sorted((max(0, start - margin), min(len(text), end + margin)) for start, end in spans):
        if merged and start <= merged[-1][1] + len(LEFT_OUT):
            merged[-1] = (merged[-1][0], max(merged[-1][1], end))
        else:
            merged.append((start, end))
    return merged


def _joined(text: str, spans: Spans) -> str:
    """The stretches of a text with a mark wherever something of it is left out."""
    if not spans:
        return LEFT_OUT.rstrip("\n") if text else ""
    pieces = [LEFT_OUT if spans[0][0] > 0 else ""]
    pieces.append(LEFT_OUT.join(text[start:end] for start, end in spans))
    pieces.append(LEFT_OUT if spans[-1][1] < len(text) else "")
    return "".join(pieces)
