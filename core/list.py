"""`python -m core.list`: what is there, and where it comes from."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

HELP: Final = """\
python -m core.list [WHAT] [KEY=VALUE…]     what is there; sends nothing

  plugins       what is loaded, from where, which parts; what is broken or disabled
  benchmarks    each with its default judge, repeats and source
  systems       each with what it needs and returns, and what its efforts set, cost and take
  judges        each with provider, model and settings
  experiments   ready-made combinations
  tasks benchmark=NAME [benchmark.source=FILE] [tasks=… where.…=… sample=… limit=… shard=…]
                the tasks of a benchmark with labels and how many judgements each expects

Without WHAT: all but the tasks.
"""
#: What an effort says of a system's price and pace, beside what it sets.
_MONEY_AND_TIME: Final = ("estimate_usd", "timeout_s")
_GROUPS: Final = {"benchmarks": "benchmark", "systems": "system", "judges": "judge", "experiments": "experiment"}


def main(argv: Sequence[str] | None = None) -> int:
    """The command; returns the exit code."""
    words = list(sys.argv[1:] if argv is None else argv)
    if any(word in ("--help", "-h") for word in words):
        sys.stdout.write(HELP)
        return 0
    from core.cmdline import prepare
    from core.compose import add_search_paths
    from core.errors import InputError
    from core.plugin_manager import PluginManager

    what = [word for word in words if "=" not in word]
    known = ["plugins", *_GROUPS, "tasks"]
    try:
        if len(what) > 1 or any(word not in known for word in what):
            raise InputError(f"can't list {' '.join(what)!r}", expected=f"one of {', '.join(known)}")
        overrides = prepare([word for word in words if "=" in word])
        plugins = PluginManager.discover()
        add_search_paths(plugins)
        if what == ["tasks"]:
            _tasks(overrides, plugins)
            return 0
        for name in what or ["plugins", *_GROUPS]:
            if name == "plugins":
                _plugins(plugins)
            else:
                _group(_GROUPS[name], overrides)
    except InputError as error:
        sys.stderr.write(f"refused: {error}\n")
        return 2
    return 0


def _table(title: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(highlight=False, soft_wrap=True)
    # piped output is for grep and scripts: nothing is cut to a terminal's width
    if not console.is_terminal:
        console = Console(highlight=False, width=400)
    table = Table(title=title, title_justify="left", box=None, header_style="bold")
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*(Text("" if cell is None else str(cell)) for cell in row))
    console.print(table)
    console.print()


def _plugins(plugins: Any) -> None:
    rows = [
        (
            plugin.name,
            plugin.version,
            plugin.source,
            "disabled" if plugin.disabled else plugin.problem or "loaded",
            ", ".join(plugin.parts),
        )
        for plugin in plugins.plugins
    ]
    _table("plugins", ("name", "version", "from", "state", "parts"), rows)


def _group(group: str, overrides: Sequence[str]) -> None:
    from core.compose import options
    from core.errors import InputError

    columns: Mapping[str, tuple[str, ...]] = {
        "benchmark": ("name", "default judge", "repeats", "source", "revision"),
        "system": ("name", "adapter", "efforts", "default", "key", "needs", "returns", "cost", "time"),
        "judge": ("name", "provider", "model", "effort", "temperature", "key", "family"),
        "experiment": ("name", "benchmark", "system", "judge"),
    }
    rows: list[Sequence[Any]] = []
    for name in options(group):
        try:
            rows.append(_row(group, name, overrides))
        except InputError as error:
            rows.append((name, f"broken: {error}"))
    _table(f"{group}s", columns[group], rows)
    if group == "system":
        columns_of_efforts = ("system", "effort", "sets", "$ an attempt", "deadline", "the same as")
        _table("efforts", columns_of_efforts, list(_efforts(options(group), overrides)))


def _efforts(names: Sequence[str], overrides: Sequence[str]) -> Iterator[Sequence[Any]]:
    """What each effort word of each system sets, and the other words that set the same."""
    from core.compose import compose_group
    from core.config import same_settings
    from core.errors import InputError

    words = [word for word in overrides if word.partition("=")[0] != "system"]
    for name in names:
        try:
            section = compose_group("system", [f"system={name}", *words]).get("system") or {}
        except InputError:
            continue  # the table of systems says what is broken
        efforts = section.get("efforts")
        if not isinstance(efforts, Mapping):
            continue
        same = same_settings(efforts)
        for word, settings in efforts.items():
            sets = ", ".join(f"{key}={value}" for key, value in settings.items() if key not in _MONEY_AND_TIME)
            # what stands in the config itself is not overridden by an effort
            merged = {**settings, **{key: section[key] for key in _MONEY_AND_TIME if section.get(key) is not None}}
            usd, seconds = merged.get("estimate_usd"), merged.get("timeout_s")
            deadline = "" if seconds is None else f"{seconds / 60:g} min"
            twins = ", ".join(other for other in same[word] if other != word)
            yield name, word, sets, "unknown" if usd is None else f"{usd:g}", deadline, twins


def _row(group: str, name: str, overrides: Sequence[str]) -> Sequence[Any]:
    from core.compose import compose_group

    chosen = [f"{group}={name}", *(word for word in overrides if word.partition("=")[0] != group)]
    tree = compose_group(group, chosen)
    section = tree.get(group) or {}
    if group == "benchmark":
        judge = (tree.get("judge") or {}).get("name")
        return name, judge, section.get("repeats"), section.get("source"), section.get("revision")
    if group == "system":
        efforts = section.get("efforts")
        words = "any word" if efforts is None else ", ".join(efforts)
        about = section.get("about") or {}
        told = [about.get(key) for key in ("needs", "returns", "cost", "time")]
        return (
            name,
            section.get("adapter"),
            words,
            section.get("default_effort"),
            section.get("api_key_env"),
            *told,
        )
    if group == "judge":
        keys = ("provider", "model", "effort", "temperature", "api_key_env", "family")
        return name, *(section.get(key) for key in keys)
    return name, *((tree.get(part) or {}).get("name") for part in ("benchmark", "system", "judge"))


def _tasks(overrides: Sequence[str], plugins: Any) -> None:
    from core.compose import compose
    from core.config import RunConfig
    from core.errors import InputError
    from core.setup import list_tasks

    if not any(word.startswith(("benchmark=", "experiment=")) for word in overrides):
        raise InputError("whose tasks?", expected="core.list tasks benchmark=NAME")
    # a system is part of every configuration; which one does not matter here
    words = list(overrides)
    if not any(word.startswith(("system=", "experiment=")) for word in words):
        words.append("system=replay")
    tasks, grader = list_tasks(RunConfig.from_tree(compose(words)), plugins)
    describe = getattr(grader, "describe", None)
    rows = []
    labels: Counter[str] = Counter()
    for task in tasks:
        for label, value in task.labels.items():
            if label.endswith("-value"):
                continue  # numbers, nearly one a task
            labels.update(f"{label}={item}" for item in ([value] if isinstance(value, str) else value))
        shown = "; ".join(
            f"{label}={value if isinstance(value, str) else ','.join(value)}"
            for label, value in task.labels.items()
        )
        rows.append(
            (task.id, grader.expected(task, None), shown, describe(task) if describe else _short(task.prompt))
        )
    _table(f"{len(tasks)} tasks", ("id", "judgements", "labels", "task"), rows)
    if labels:
        _table("labels", ("label", "tasks"), sorted(labels.items()))


def _short(text: str, length: int = 100) -> str:
    line = " ".join(text.split())
    return line if len(line) <= length else f"{line[: length - 1]}…"


if __name__ == "__main__":
    sys.exit(main())
