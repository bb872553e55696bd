"""Reading a system's section of the configuration: every refusal names its key.

A factory reads its keys through a `Section`; a value of another type than the key's is an InputError
that says where it stands, what was expected and what came.
"""

from __future__ import annotations

import shlex
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from core.errors import InputError


@dataclass(frozen=True, slots=True)
class Section:
    """A mapping of the configuration, with the name under which errors speak of it.

    A key that is absent reads as null: the defaults stand in conf/system, and only there.
    """

    values: Mapping[str, Any]
    where: str = "system"

    def refuse(self, key: str, expected: str) -> InputError:
        """The error about this key's value."""
        got = self.values.get(key)
        shown = "null" if got is None else f"{got!r} ({type(got).__name__})"
        return InputError("not usable", where=f"{self.where}.{key}", expected=expected, got=shown)

    def text(self, key: str, expected: str = "a text that is not empty") -> str:
        value = self.values.get(key)
        if not isinstance(value, str) or not value.strip():
            raise self.refuse(key, expected)
        return value

    def text_or_none(self, key: str) -> str | None:
        return None if self.values.get(key) is None else self.text(key, "a text or null")

    def whole(self, key: str, *, least: int = 1) -> int:
        """An integer of at least `least`."""
        value = self.values.get(key)
        if not isinstance(value, int) or isinstance(value, bool) or value < least:
            raise self.refuse(key, f"a whole number of at least {least}")
        return value

    def whole_or_none(self, key: str, *, least: int = 1) -> int | None:
        return None if self.values.get(key) is None else self.whole(key, least=least)

    def number_or_none(self, key: str, *, least: float = 0.0, above: bool = False) -> float | None:
        """A finite number of at least `least` (greater than it with `above`), or None."""
        value = self.values.get(key)
        if value is None:
            return None
        numeric = isinstance(value, (int, float)) and not isinstance(value, bool)
        if not numeric or not least <= value < float("inf") or (above and value == least):
            raise self.refuse(key, f"a number {'above' if above else 'of at least'} {least:g}, or null")
        return float(value)

    def seconds(self, key: str) -> float:
        """A length of time in seconds, greater than 0."""
        value = self.number_or_none(key, above=True)
        if value is None:
            raise self.refuse(key, "a number of seconds above 0")
        return value

    def mapping(self, key: str) -> dict[str, Any]:
        """A mapping with text keys; null is an empty one."""
        value = self.values.get(key)
        if value is None:
            return {}
        if not isinstance(value, Mapping) or not all(isinstance(name, str) for name in value):
            raise self.refuse(key, "a mapping")
        return dict(value)

    def words(self, key: str, *, split: bool = False) -> tuple[str, ...]:
        """A list of texts; null is an empty one. With `split` a text is cut into words as a shell cuts it."""
        value = self.values.get(key)
        if value is None:
            return ()
        if split and isinstance(value, str):
            try:
                return tuple(shlex.split(value))
            except ValueError as error:
                raise self.refuse(key, f"words that can be told apart ({error})") from error
        if not isinstance(value, (list, tuple)) or not all(isinstance(word, str) for word in value):
            raise self.refuse(key, "a list of texts" + (" or one text" if split else ""))
        return tuple(value)

    def choice(self, key: str, options: Mapping[Any, Any]) -> Any:
        """What `options` holds for the value."""
        value = self.values.get(key)
        # a bool is not taken for the number it equals, nor the other way round
        for option, meaning in options.items():
            if type(option) is type(value) and option == value:
                return meaning
        raise self.refuse(key, "one of " + ", ".join(str(option).lower() for option in options))

    def with_effort(self, allowed: Collection[str]) -> Section:
        """The section with the chosen effort's settings laid over its own keys.

        Only keys in `allowed` may depend on the effort; others are refused, since they would be dropped
        in silence.
        """
        chosen = self.mapping("effort_settings")
        for key in chosen:
            if key not in allowed:
                close = get_close_matches(key, allowed, n=1)
                hint = f"; did you mean {close[0]!r}?" if close else ""
                raise InputError(
                    f"an effort can't set {key!r} here{hint}",
                    where=f"{self.where}.efforts",
                    expected=f"keys out of {', '.join(sorted(allowed))}" if allowed else "no keys ({})",
                )
        return Section({**self.values, **chosen}, self.where)
