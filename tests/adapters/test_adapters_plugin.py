"""The built-in systems come in through the one door, without being imported."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from adapters import plugin
from core.compose import options
from core.errors import InputError
from core.plugin_manager import PluginManager
from core.testing import services as core_services
from core.testing.parts import compose

#: What only the user can know of a system, by its name: the shipped config lacks it.
NEEDED = {
    "chat": "model",
    "command": "command",
    "openai_compatible": "base_url",
    "python": "target",
    "replay": "path",
}


def test_every_adapter_is_registered() -> None:
    manager = PluginManager()
    manager.add(plugin, name="adapters")
    assert [loaded.problem for loaded in manager.plugins] == [None]
    assert manager.names("system") == sorted(plugin.NAMES)
    modules = {path.stem for path in Path(plugin.__file__).parent.glob("[a-z]*.py")}
    assert modules - {"plugin"} == set(plugin.NAMES), "every adapter has a name, every name an adapter"


@pytest.mark.parametrize("name", NEEDED)
def test_a_refusal_names_what_is_lacking(name: str) -> None:
    composed, plugins = compose(f"system={name}")
    with pytest.raises(InputError, match=rf"system\.{NEEDED[name]}\b"):
        plugins.factory("system", name)({**composed.system.plain(), "effort_settings": {}}, core_services())


@pytest.mark.parametrize("name", [word for word in options("system") if word not in NEEDED])
def test_a_system_is_made_and_says_which_key_it_lacks(name: str) -> None:
    composed, plugins = compose(f"system={name}")
    section = {**composed.system.plain(), "effort_settings": composed.effort_settings()}
    system = plugins.factory("system", composed.system.adapter)(section, core_services(environ={}))
    found = system.check()
    key = composed.system.api_key_env
    assert found if key is None else [key in line for line in found] == [True]


def test_registering_imports_nothing_heavy() -> None:
    code = (
        "import sys, adapters.plugin\n"
        "heavy = {'litellm', 'openai', 'httpx', 'aiohttp', 'datasets', 'numpy'}\n"
        "heavy |= {'adapters.' + name for name in adapters.plugin.NAMES}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
