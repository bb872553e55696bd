"""Discovery of plugins, their isolation, and typed calls to their hooks.

Plugins are called one by one: pluggy's own relay stops at the first that raises. A plugin that can't be
loaded, or whose register hook raises, is named, skipped, and fails only the run that asks for a part that
nobody else has.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Final

import pluggy

from core import hooks
from core.errors import InputError

GROUP: Final = "leadline"
DISABLE_VARIABLE: Final = "LEADLINE_DISABLE_PLUGINS"
#: Part kind → the hook that registers it.
KINDS: Final[Mapping[str, str]] = {
    "task loader": "register_task_loaders",
    "system": "register_systems",
    "grader": "register_graders",
    "aggregator": "register_aggregators",
    "judge": "register_judges",
    "audit": "register_audits",
}


@dataclass(frozen=True, slots=True)
class Loaded:
    """One plugin as `core.list plugins` shows it. `problem` is why it was skipped."""

    name: str
    source: str
    version: str = ""
    parts: tuple[str, ...] = ()
    problem: str | None = None
    disabled: bool = False


@dataclass
class PluginManager:
    """The plugins of this process and the parts they registered."""

    plugins: list[Loaded] = field(default_factory=list)
    _parts: dict[tuple[str, str], tuple[str, Any]] = field(default_factory=dict)
    _pm: pluggy.PluginManager = field(default_factory=lambda: pluggy.PluginManager(hooks.PROJECT))

    def __post_init__(self) -> None:
        self._pm.add_hookspecs(hooks)

    @classmethod
    def discover(cls) -> PluginManager:
        """Load every plugin of the entry-point group, in the order of their names."""
        manager = cls()
        disabled = {name.strip() for name in os.environ.get(DISABLE_VARIABLE, "").split(",")} - {""}
        for point in sorted(entry_points(group=GROUP), key=lambda point: point.name):
            manager._load(point, disabled)
        return manager

    def _load(self, point: EntryPoint, disabled: set[str]) -> None:
        version = point.dist.version if point.dist else ""
        if point.name in disabled:
            self.plugins.append(Loaded(point.name, point.value, version, disabled=True))
            return
        try:
            plugin = point.load()
        except Exception as error:  # noqa: BLE001  # whatever a plugin raises is the plugin's problem
            problem = f"import failed: {type(error).__name__}: {error}"
            self.plugins.append(Loaded(point.name, point.value, version, problem=problem))
            return
        self.add(plugin, name=point.name, source=point.value, version=version)

    def add(self, plugin: Any, *, name: str, source: str = "added", version: str = "") -> None:
        """Register one plugin and collect its parts; a problem is kept, not raised."""
        found: dict[tuple[str, str], Any] = {}
        try:
            self._pm.register(plugin, name=name)
            self._check_spelling(name)
            for kind, hook in KINDS.items():
                implementation = getattr(plugin, hook, None)
                if implementation is None:
                    continue
                implementation(lambda part, factory, kind=kind: _claim(found, kind, part, factory))
            for kind, part in found:
                owner = self._parts.get((kind, part))
                if owner is not None:
                    raise InputError(f"{kind} {part!r} is already registered by plugin {owner[0]!r}")
        except Exception as error:  # noqa: BLE001  # likewise
            if self._pm.has_plugin(name):
                self._pm.unregister(name=name)
            problem = f"{type(error).__name__}: {error}"
            self.plugins.append(Loaded(name, source, version, problem=problem))
            return
        for (kind, part), factory in found.items():
            self._parts[kind, part] = (name, factory)
        parts = tuple(f"{kind} {part}" for kind, part in found)
        self.plugins.append(Loaded(name, source, version, parts))

    def _check_spelling(self, name: str) -> None:
        """A function marked as a hook that no hook is called is a misspelt one."""
        known = {hook for hook in vars(hooks) if getattr(self._pm.hook, hook, None)}
        plugin = self._pm.get_plugin(name)
        for attribute in dir(plugin):
            marked = getattr(getattr(plugin, attribute, None), f"{hooks.PROJECT}_impl", None)
            if marked and (marked.get("specname") or attribute) not in known:
                close = get_close_matches(attribute, sorted(known), n=1)
                hint = f"; did you mean {close[0]!r}?" if close else ""
                raise InputError(f"no hook is called {attribute!r}{hint}")

    def names(self, kind: str) -> list[str]:
        """The registered names of one kind of part."""
        return sorted(part for known, part in self._parts if known == kind)

    def factory(self, kind: str, name: str) -> Any:
        """The factory of a part; raises InputError with the known names and the broken plugins."""
        found = self._parts.get((kind, name))
        if found is not None:
            return found[1]
        known = self.names(kind)
        close = get_close_matches(name, known, n=1)
        hint = f"; did you mean {close[0]!r}?" if close else ""
        broken = [f"{plugin.name} ({plugin.problem})" for plugin in self.plugins if plugin.problem]
        disabled = [plugin.name for plugin in self.plugins if plugin.disabled]
        notes = f"; broken plugins: {', '.join(broken)}" if broken else ""
        notes += f"; disabled plugins: {', '.join(disabled)}" if disabled else ""
        raise InputError(f"no {kind} is called {name!r}{hint}", expected=f"one of {', '.join(known)}{notes}")

    def search_paths(self) -> list[str]:
        """The config folders of all plugins; a plugin whose hook raises is marked and skipped."""
        paths: list[str] = []
        for name, found in self._call_each("config_search_path", {}):
            for path in [found] if isinstance(found, str) else list(found or ()):
                if not isinstance(path, str):
                    self._mark(name, f"config_search_path gave {path!r}, expected a string")
                elif path not in paths:
                    paths.append(path)
        return paths

    def observe(self, hook: str, **arguments: Any) -> list[str]:
        """Call an observer hook of every plugin; returns what went wrong, one line a plugin."""
        problems: list[str] = []
        self._call_each(hook, arguments, problems)
        return problems

    def _call_each(
        self, hook: str, arguments: Mapping[str, Any], problems: list[str] | None = None
    ) -> Sequence[tuple[str, Any]]:
        results: list[tuple[str, Any]] = []
        for implementation in getattr(self._pm.hook, hook).get_hookimpls():
            name = implementation.plugin_name
            try:
                # a hook may leave out arguments that it does not need
                given = {key: arguments[key] for key in implementation.argnames}
                results.append((name, implementation.function(**given)))
            except Exception as error:  # noqa: BLE001  # likewise
                text = f"{type(error).__name__}: {error}"
                if problems is None:
                    self._mark(name, f"{hook} raised {text}")
                else:
                    problems.append(f"plugin {name}: {hook} raised {text}")
        return results

    def _mark(self, name: str, problem: str) -> None:
        self.plugins = [
            Loaded(plugin.name, plugin.source, plugin.version, plugin.parts, problem)
            if plugin.name == name
            else plugin
            for plugin in self.plugins
        ]


def _claim(found: dict[tuple[str, str], Any], kind: str, part: str, factory: Any) -> None:
    if not isinstance(part, str) or not part:
        raise InputError(f"a {kind} needs a name", got=repr(part))
    if not callable(factory):
        raise InputError(f"the factory of {kind} {part!r} can't be called", got=repr(factory))
    if (kind, part) in found:
        raise InputError(f"{kind} {part!r} is registered twice")
    found[kind, part] = factory
