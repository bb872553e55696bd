"""The built-in systems come in through the one door, without being imported."""

from __future__ import annotations

import subprocess
import sys

import pytest
from adapters_helpers import config, services

from adapters import plugin
from core.errors import InputError
from core.plugin_manager import PluginManager

NAMES = ["chat", "command", "python", "replay"]


def test_every_adapter_is_registered() -> None:
    manager = PluginManager()
    manager.add(plugin, name="adapters")
    assert [loaded.problem for loaded in manager.plugins] == [None]
    assert manager.names("system") == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_a_factory_reaches_its_adapter(name: str) -> None:
    """The shipped configs lack what only the user can know, and the refusal names that key."""
    manager = PluginManager()
    manager.add(plugin, name="adapters")
    needed = {"chat": "model", "command": "command", "python": "target", "replay": "path"}[name]
    with pytest.raises(InputError, match=rf"system\.{needed}\b"):
        manager.factory("system", name)(config(name), services())


def test_registering_imports_nothing_heavy() -> None:
    code = (
        "import sys, adapters.plugin\n"
        "heavy = {'litellm', 'openai', 'httpx', 'aiohttp', 'datasets', 'numpy'}\n"
        "heavy |= {'adapters.' + name for name in adapters.plugin.NAMES}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
