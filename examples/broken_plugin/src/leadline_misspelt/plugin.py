"""The hook is called `register_systems`."""

from __future__ import annotations

from core.hooks import Register, hookimpl


@hookimpl
def register_system(register: Register) -> None:
    register("misspelt", dict)
