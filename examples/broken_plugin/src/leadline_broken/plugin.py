"""Needs a package that nobody has."""

from __future__ import annotations

import a_package_that_nobody_has  # noqa: F401 - the fault that this example is about

from core.hooks import Register, hookimpl


@hookimpl
def register_systems(register: Register) -> None:
    register("broken", dict)
