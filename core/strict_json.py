"""JSON as it is written down: no NaN, no infinity, no key twice."""

from __future__ import annotations

import json
from typing import Any, Final

from core.errors import InputError

#: How much of an offending value a message shows.
_SHOWN: Final = 80


def parse(text: str, *, where: str, expected: str, constants: bool = False) -> Any:
    """The value of a JSON text; raises InputError with the place in the text.

    With `constants`, NaN and Infinity become floats: for callers that refuse them themselves and can name the
    field.
    """
    try:
        return json.loads(text, parse_constant=float if constants else _no_constant, object_pairs_hook=_no_twins)
    except json.JSONDecodeError as error:
        # the reason carries the character's place, which a one-line value needs
        raise InputError(f"invalid JSON: {error}", where=where, expected=expected, got=shown(text)) from error
    except ValueError as error:
        raise InputError(str(error), where=where, expected=expected, got=shown(text)) from error
    except RecursionError as error:
        raise InputError("the JSON is nested too deeply", where=where, expected=expected) from error


def shown(value: Any) -> str:
    """A value as a message shows it: JSON's own words, cut."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=repr)
    cut = text if len(text) <= _SHOWN else text[:_SHOWN] + "…"
    return json.dumps(cut, ensure_ascii=False) if isinstance(value, str) else cut


def _no_constant(word: str) -> Any:
    raise ValueError(f"{word} is not a JSON number")


def _no_twins(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        twin = next(key for key in keys if keys.count(key) > 1)
        raise ValueError(f"the key {twin!r} stands twice in one object")
    return found
