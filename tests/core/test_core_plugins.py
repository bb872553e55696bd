"""Plugins: one door for everybody, each isolated, typed calls."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from core.errors import InputError
from core.hooks import hookimpl
from core.plugin_manager import DISABLE_VARIABLE, PluginManager


def plugin(**functions: Any) -> SimpleNamespace:
    return SimpleNamespace(**{name: hookimpl(function) for name, function in functions.items()})


def factory(config: Any, services: Any) -> str:
    return "made"


def test_the_built_ins_come_in_through_the_entry_point_group() -> None:
    manager = PluginManager.discover()
    assert {known.name for known in manager.plugins} >= {"adapters", "draco", "judges"}
    assert [known.problem for known in manager.plugins if known.problem] == []
    assert {"replay", "command", "python", "chat"} <= set(manager.names("system"))
    assert {"litellm", "openai_compatible", "recorded", "offline"} <= set(manager.names("judge"))


def test_a_registered_part_is_found_by_name() -> None:
    manager = PluginManager()
    manager.add(plugin(register_systems=lambda register: register("mine", factory)), name="p")
    assert manager.factory("system", "mine") is factory
    assert manager.plugins[0].parts == ("system mine",)


@pytest.mark.parametrize(
    ("functions", "part"),
    [
        ({"register_systems": lambda register: 1 / 0}, "ZeroDivisionError"),
        ({"register_systems": lambda register: register("", factory)}, "needs a name"),
        ({"register_systems": lambda register: register("x", "no factory")}, "can't be called"),
        ({"register_systems": lambda register: [register("x", factory) for _ in range(2)]}, "twice"),
        ({"register_system": lambda register: None}, "did you mean 'register_systems'"),
        ({"register_systems": lambda registr: None}, "registr"),
    ],
    ids=["raises", "no name", "no factory", "twice", "misspelt hook", "misspelt argument"],
)
def test_a_broken_plugin_is_named_and_does_no_harm(functions: dict[str, Any], part: str) -> None:
    manager = PluginManager()
    manager.add(plugin(**functions), name="broken")
    manager.add(plugin(register_systems=lambda register: register("good", factory)), name="good")
    assert part in str(manager.plugins[0].problem)
    assert manager.factory("system", "good") is factory
    with pytest.raises(InputError, match="broken"):
        manager.factory("system", "x")


def test_two_plugins_with_the_same_part_keep_the_first() -> None:
    manager = PluginManager()
    for name in ("one", "two"):
        manager.add(plugin(register_judges=lambda register: register("j", factory)), name=name)
    assert manager.plugins[0].problem is None
    assert "already registered by plugin 'one'" in str(manager.plugins[1].problem)


def test_a_disabled_plugin_is_not_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(DISABLE_VARIABLE, "draco, nothing")
    manager = PluginManager.discover()
    with pytest.raises(InputError, match="disabled plugins: draco"):
        manager.factory("grader", "draco")


def test_an_observer_that_raises_is_reported_and_the_next_one_still_called() -> None:
    seen: list[int] = []
    manager = PluginManager()
    manager.add(plugin(run_finished=lambda exit_code: seen.append(exit_code + 0)), name="one")
    manager.add(plugin(run_finished=lambda summary, exit_code: summary["no"]), name="two")
    manager.add(plugin(run_finished=lambda exit_code: seen.append(exit_code + 0)), name="three")
    problems = manager.observe("run_finished", summary={}, exit_code=3)
    assert seen == [3, 3]
    assert len(problems) == 1
    assert "plugin two" in problems[0]


@pytest.mark.parametrize(
    ("given", "paths"),
    [("pkg://a.conf", ["pkg://a.conf"]), (["x", "y", "x"], ["x", "y"])],
)
def test_config_folders(given: Any, paths: list[str]) -> None:
    manager = PluginManager()
    manager.add(plugin(config_search_path=lambda: given), name="p")
    manager.add(plugin(config_search_path=lambda: 1 / 0), name="broken")
    assert manager.search_paths() == paths
    assert "ZeroDivisionError" in str(manager.plugins[1].problem)
