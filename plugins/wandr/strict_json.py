"""JSON as it is written down: no NaN, no infinity, no key twice, no half characters.

Task files and submissions are read with the same strictness: what could be read in two ways is read in none.
"""

from __future__ import annotations

import json
import math
from typing import Any, Final

from core.errors import InputError

#: How much of an offending value a message shows.
_SHOWN: Final = 80


def decode(text: str) -> Any:
    """The value of a JSON text. Raises ValueError alone; its message is the reason in plain words."""
    try:
        value = _DECODER.decode(text)
        # half a character comes raw or as an escape; texts without either are by far the most
        if (not text.isascii() or "\\u" in text) and has_half_character(value):
            raise ValueError("a text holds half a character (a lone surrogate)")
    except json.JSONDecodeError as error:
        raise ValueError(f"not JSON: {error.msg} at character {error.pos}") from None
    except RecursionError:
        raise ValueError("nested too deeply") from None
    return value


def parse(text: str, *, where: str, expected: str) -> Any:
    """The value of a JSON text; raises InputError that names the place and shows the text."""
    try:
        return decode(text)
    except ValueError as error:
        raise InputError(str(error), where=where, expected=expected, got=shown(text)) from error


def has_half_character(value: Any) -> bool:
    """Whether a text somewhere in a JSON value can't be written as UTF-8."""
    try:
        json.dumps(value, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError:
        return True
    return False


def shown(value: Any) -> str:
    """A value as a message shows it: JSON's own words, cut, and writable as UTF-8."""
    if isinstance(value, str):
        text = json.dumps(value if len(value) <= _SHOWN else value[:_SHOWN] + "…", ensure_ascii=False)
    else:
        text = json.dumps(value, ensure_ascii=False, default=repr)
        text = text if len(text) <= _SHOWN else text[:_SHOWN] + "…"
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def _no_constant(word: str) -> Any:
    raise ValueError(f"{word} is not a JSON number")


def _finite(word: str) -> float:
    """1e999 is JSON, but no number that could be written again."""
    number = float(word)
    if not math.isfinite(number):
        raise ValueError(f"{word[:20]} is too large for a number")
    return number


def _no_twins(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise ValueError(f"the key {shown(key)} stands twice in one object")
            seen.add(key)
    return found


_DECODER: Final = json.JSONDecoder(parse_constant=_no_constant, parse_float=_finite, object_pairs_hook=_no_twins)
