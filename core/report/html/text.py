"""Text for a page: cut to a length, and without anything that a reader can't see.

What systems, pages and judges wrote is shown as they wrote it, but for characters that hide themselves or change
the order of others: these appear by their number, so that a page can't say one thing and look like another.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, TypeVar

#: The most characters of any one text, whatever the caller allows.
LONGEST: Final = 6000
#: The most characters of a name: of a task, a metric, a label.
NAME: Final = 120
#: Blank letters that Unicode calls letters or signs, and joiners that are marks.
_BLANKS: Final = frozenset("\u115f\u1160\u3164\uffa0\u2800\u034f\u17b4\u17b5")
#: General categories that have no shape of their own: controls, formats, surrogates, line and paragraph ends.
_UNSEEN: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Zl", "Zp"})
#: Everything that may need an escape; nearly all text has nothing of it.
_SUSPECT: Final = re.compile(r"[^\n\t\x20-\x7e\u00a1-\u00ac\u00ae-\u02ff]")
#: More marks than this on one letter run over the lines around it.
_MARKS: Final = re.compile(
    r"([\u0300-\u036f\u0483-\u0489\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f]{4})"
    r"[\u0300-\u036f\u0483-\u0489\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f]+"
)

Item = TypeVar("Item")


def visible(text: str) -> str:
    """The text with each unseen character as its number in brackets; line ends and tabs stay.

    The two selectors that turn a sign into an emoji stay as well: they are everywhere and hide nothing.
    """
    return _SUSPECT.sub(_shown, _MARKS.sub(r"\1…", text.replace("\r\n", "\n")))


def _shown(match: re.Match[str]) -> str:
    letter = match[0]
    if unicodedata.category(letter) in _UNSEEN or letter in _BLANKS or _is_selector(letter):
        return f"⟨U+{ord(letter):04X}⟩"
    return letter


def _is_selector(letter: str) -> bool:
    return "\ufe00" <= letter <= "\ufe0d" or "\U000e0100" <= letter <= "\U000e01ef"


def cut(text: str, limit: int) -> str:
    """The first `limit` characters, and how many more there are."""
    if len(text) <= limit:
        return text
    return f"{text[:limit].rstrip()}… [+{len(text) - limit:,} characters]"


def name(text: object) -> str:
    """A name in one line."""
    found = " ".join(str(text)[: 2 * NAME].split())
    return found if len(found) <= NAME else f"{found[: NAME - 1]}…"


def said(value: Any, limit: int) -> str:
    """Any JSON value as text: strings as they are, the rest as JSON."""
    if isinstance(value, str):
        return cut(value, limit)
    try:
        return cut(json.dumps(value, ensure_ascii=False, default=str), limit)
    except (ValueError, RecursionError):
        return "[a value that can't be shown]"


def few(items: Iterable[Item], most: int) -> tuple[tuple[Item, ...], int]:
    """The first items, and how many more there are."""
    found = tuple(items)
    return found[:most], max(0, len(found) - most)


def words(value: object, most: int = 12) -> str:
    """A label's value: one word, or several with commas."""
    if isinstance(value, Sequence) and not isinstance(value, str):
        shown, more = few(value, most)
        return ", ".join(map(name, shown)) + (f" and {more} more" if more else "")
    return name(value)


def settings(values: Mapping[str, Any], most: int = 12) -> str:
    """Settings in one line: `effort high, temperature 0.2`."""
    shown, more = few(values.items(), most)
    parts = [f"{name(key)} {said(value, NAME)}" for key, value in shown]
    return ", ".join(parts) + (f" and {more} more" if more else "")


def number(value: float | None, scale: float = 100) -> str:
    """A score for people: two decimals on a scale of 100, three on a scale of 1."""
    if value is None:
        return "–"
    return decimals(value, 3 if scale <= 1 else 2)


def figure(value: float | None) -> str:
    """A number of unknown scale: counts whole, the rest to three figures or two decimals."""
    if value is None:
        return "–"
    if float(value).is_integer():
        return decimals(value, 0)
    return decimals(value, 3 if abs(value) < 1 else 2)


def decimals(value: float | None, places: int) -> str:
    """A number with so many decimals; beyond a quadrillion, in powers of ten. None is a dash."""
    if value is None:
        return "–"
    shown = f"{value:,.{places}f}" if abs(value) < 1e15 else f"{value:.3g}"
    return shown.replace("-", "−")
