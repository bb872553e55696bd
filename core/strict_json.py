"""JSON as it is written down: no NaN, no infinity, no key twice."""

from __future__ import annotations

import json
from typing import Any, Final

from core.errors import InputError

#: How much of an offending value a message shows.
_SHOWN: Final = 80


def decode(text: str, *, constants: bool = False) -> Any:
    """The value of a JSON text. Raises ValueError and nothing else; its message is the reason.

    With `constants`, NaN and Infinity become floats: for callers that refuse them themselves and can name the
    field.
    """
    try:
        return json.loads(text, parse_constant=float if constants else _no_constant, object_pairs_hook=_no_twins)
    except json.JSONDecodeError as error:
        # the reason carries the character's place, which a one-line value needs
        raise ValueError(f"invalid JSON: {error}") from error
    except RecursionError as error:
        raise ValueError("the JSON is nested too deeply") from error


def parse(text: str, *, where: str, expected: str, constants: bool = False) -> Any:
    """The same; raises InputError that names the place and shows the text."""
    try:
        return decode(text, constants=constants)
    except ValueError as error:
        raise InputError(str(error), where=where, expected=expected, got=shown(text)) from error


def shown(value: Any) -> str:
    """A value as a message shows it: JSON's own words, cut."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=repr)
    cut = text if len(text) <= _SHOWN else text[:_SHOWN] + "…"
    return json.dumps(cut, ensure_ascii=False) if isinstance(value, str) else cut


def without_surrogates(value: Any) -> Any:
    """Texts in a JSON value made writable: a lone half of a surrogate pair becomes U+FFFD."""
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError:
            return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        return value
    if isinstance(value, dict):
        return {without_surrogates(key): without_surrogates(item) for key, item in value.items()}
    if isinstance(value, list):
        return [without_surrogates(item) for item in value]
    return value


def _no_constant(word: str) -> Any:
    raise ValueError(f"{word} is not a JSON number")


def _no_twins(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise ValueError(f"the key {key!r} stands twice in one object")
            seen.add(key)
    return found
