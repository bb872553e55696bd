"""The built-in judges come in through the door of every plugin, and load nothing before they are asked for."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
from fakes.judging import services

from core.judge import plugin
from core.model import Usage
from core.parts import Judge
from core.plugin_manager import PluginManager
from core.prices import Price, cost

HEAVY = ("litellm", "openai", "httpx", "aiohttp", "jsonschema", "numpy")


@pytest.mark.parametrize(
    ("name", "config"),
    [
        ("litellm", {"model": "gpt-5.4"}),
        ("openai_compatible", {"model": "m", "base_url": "http://127.0.0.1:1/v1"}),
        ("recorded", {"path": "judgements.jsonl"}),
        ("offline", {}),
    ],
)
def test_every_judge_is_registered_and_built(name: str, config: dict[str, Any]) -> None:
    manager = PluginManager()
    manager.add(plugin, name="judges")
    assert isinstance(manager.factory("judge", name)({"provider": name, **config}, services()), Judge)


def test_the_plugin_loads_nothing_heavy() -> None:
    code = f"import core.judge.plugin, sys; print([name for name in {HEAVY} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("usage", "price", "dollars"),
    [
        pytest.param(Usage(input=10**6, output=10**6), Price(1, 2), 3.0, id="plain"),
        pytest.param(Usage(input=10**6, cached_input=10**6, output=0), Price(1, 2, 0.1), 0.1, id="all cached"),
        pytest.param(Usage(input=10**6, cached_input=10**6, output=0), Price(1, 2), 1.0, id="no cached price"),
        pytest.param(
            Usage(input=10, cached_input=20, output=0), Price(1, 2, 0.1), 1e-6, id="more cached than read"
        ),
        pytest.param(Usage(input=0, output=0), Price(1, 2), 0.0, id="nothing used"),
        pytest.param(Usage(input=10**6, output=10**6), Price(0, 0), 0.0, id="free"),
        pytest.param(Usage(output=1), Price(1, 2), None, id="input unknown"),
        pytest.param(Usage(input=1), Price(1, 2), None, id="output unknown"),
        pytest.param(None, Price(1, 2), None, id="usage unknown"),
        pytest.param(Usage(input=1, output=1), None, None, id="price unknown"),
    ],
)
def test_cost(usage: Usage | None, price: Price | None, dollars: float | None) -> None:
    found = cost(usage, price)
    assert found == (dollars if dollars is None else pytest.approx(dollars))
