"""API keys: read by the name of their variable, and never shown.

Every key that a run reads is remembered here; `redact` takes it out of any text before the text is
logged, written or raised. Keys of well-known forms are taken out even if nobody read them.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from core.errors import InputError

HIDDEN: Final = "[redacted]"
#: Values shorter than this are not keys and would blot out ordinary text.
SHORTEST_KEY: Final = 6
_BEARER: Final = re.compile(
    r"(?i)\b(bearer|x-api-key|api[_-]?key|authorization)(\"?\s*[:=]\s*\"?|\s+)([^\s\"',}]{6,})"
)
_WELL_KNOWN: Final = re.compile(
    r"\b(?:sk|pplx|tvly|xai|gsk|AIza|hf|rk|pk)[-_][A-Za-z0-9_\-]{12,}\b|\bAIza[A-Za-z0-9_\-]{20,}"
)


class Keys:
    """The keys of one run."""

    def __init__(self, environ: Mapping[str, str] | None = None) -> None:
        self._environ = os.environ if environ is None else environ
        self._seen: set[str] = set()

    def get(self, variable: str | None) -> str | None:
        """The key in an environment variable; None when no variable is named.

        Raises InputError when the named variable is unset or empty, or holds what no header can carry.
        """
        if variable is None:
            return None
        value = self._environ.get(variable, "").strip()
        fault = self.fault(variable)
        if fault is not None:
            raise InputError(fault, expected="an API key in it")
        self.remember(value)
        return value

    def fault(self, variable: str | None) -> str | None:
        """Why there is no usable key in a variable; None when there is one, or none is wanted."""
        if variable is None:
            return None
        value = self._environ.get(variable, "").strip()
        if not value:
            return f"the environment variable {variable} is not set"
        if not (value.isascii() and value.isprintable()):
            self.remember(value)
            return f"the environment variable {variable} holds a line break or a letter that no key has"
        return None

    def has(self, variable: str | None) -> bool:
        return variable is None or bool(self._environ.get(variable, "").strip())

    def remember(self, value: str) -> None:
        """Take this value out of every text from now on."""
        if len(value) >= SHORTEST_KEY:
            self._seen.add(value)

    def strip(self, text: str) -> str:
        """The text without the keys that this run read; everything else stays as it is."""
        for value in sorted(self._seen, key=len, reverse=True):
            text = text.replace(value, HIDDEN)
        return text

    def redact(self, text: str) -> str:
        """For logs and errors: the text without keys, nor anything that looks like one."""
        text = self.strip(text)
        text = _BEARER.sub(lambda match: match[1] + match[2] + HIDDEN, text)
        return _WELL_KNOWN.sub(HIDDEN, text)

    def stripped(self, value: Any) -> Any:
        """`strip` for every text inside a JSON value."""
        return _each_text(value, self.strip)

    def redacted(self, value: Any) -> Any:
        """`redact` for every text inside a JSON value."""
        return _each_text(value, self.redact)


def _each_text(value: Any, change: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, Mapping):
        return {
            change(key) if isinstance(key, str) else key: _each_text(item, change) for key, item in value.items()
        }
    if isinstance(value, (list, tuple)):
        return [_each_text(item, change) for item in value]
    return value
