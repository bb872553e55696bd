"""The built-in systems. Each adapter is imported when a run asks for it, not before."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any, Final

from core.hooks import Register, hookimpl
from core.services import Services

#: The adapters: each is a module of this package with a factory of the same name.
NAMES: Final = (
    "anthropic",
    "anthropic_managed",
    "chat",
    "command",
    "exa",
    "gemini",
    "openai",
    "openai_compatible",
    "parallel",
    "parallel_findall",
    "perplexity",
    "python",
    "replay",
    "search_and_answer",
    "tavily",
    "valyu",
    "you",
)


class _Lazy:
    """The factory of one adapter."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __call__(self, config: Mapping[str, Any], services: Services) -> Any:
        return getattr(import_module(f"adapters.{self._name}"), self._name)(config, services)


@hookimpl
def register_systems(register: Register) -> None:
    for name in NAMES:
        register(name, _Lazy(name))
