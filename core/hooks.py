"""The plugin manual: every hook, what it is given, when it is called, what it may return.

A plugin is a module (or object) with some of these functions, each marked with `@hookimpl`, named by an
entry point of the group `leadline` in its distribution:

    [project.entry-points.leadline]
    my_plugin = "my_package.plugin"

Register hooks are called once, when the plugin is loaded. They get `register(name, factory)`; a factory is
called only when a run asks for the name, as `factory(config, services)` (core/services.py), so heavy imports
belong into it (an audit's is called as `factory()`). Observers see a run go by and can't change it; what
they raise is logged and ignored.
`LEADLINE_DISABLE_PLUGINS=a,b` keeps plugins from being loaded; `python -m core.list plugins` shows them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import pluggy

if TYPE_CHECKING:
    from core.model import Judgement, Submission, TaskScore

PROJECT: Final = "leadline"
hookspec: Final = pluggy.HookspecMarker(PROJECT)
hookimpl: Final = pluggy.HookimplMarker(PROJECT)

Register = Callable[[str, Any], None]


@hookspec
def register_task_loaders(register: Register) -> None:
    """Name the factories of task loaders. A benchmark's config says `loader: NAME`.

    The factory gets the config section `benchmark`; it returns an object with `load()`.
    """


@hookspec
def register_systems(register: Register) -> None:
    """Name the factories of systems. A system's config says `adapter: NAME`.

    The factory gets the config section `system` with the chosen effort resolved into
    `effort_settings`; it returns an object with `async solve(task, attempt)`.
    """


@hookspec
def register_graders(register: Register) -> None:
    """Name the factories of graders. A benchmark's config says `grader: NAME`.

    The factory gets the config section `benchmark`; it returns an object with `expected`, `grade` and `score`.
    """


@hookspec
def register_aggregators(register: Register) -> None:
    """Name the factories of aggregators. A benchmark's config says `aggregator: NAME`.

    The factory gets the config section `benchmark`; it returns an object with `aggregate(scores)`.
    """


@hookspec
def register_judges(register: Register) -> None:
    """Name the factories of judges. A judge's config says `provider: NAME`.

    The factory gets the config section `judge`; it returns an object with `async ask(question)`.
    """


@hookspec
def register_audits(register: Register) -> None:
    """Name the factories of audits: `python -m core.audit NAME …`.

    Optional. The factory gets nothing; it returns an audit (core/audit.py): what it does, its arguments, and how
    it makes a report of them.
    """


@hookspec
def config_search_path() -> str | Sequence[str]:
    """Where this plugin's YAML configs stand: `pkg://my_package.conf` or a folder's path.

    Called before a configuration is composed. The folder has the groups' names: benchmark/, system/, judge/.
    """
    return ()  # what a plugin without this hook gives; the body of a specification is never called


@hookspec
def run_started(run: Mapping[str, Any]) -> None:
    """A run begins. `run` is what run.json holds, with the counts of tasks and expected judgements."""


@hookspec
def task_solved(submission: Submission, reused: bool) -> None:  # noqa: FBT001  # pluggy passes by name
    """One attempt at one task has ended, well or not; `reused` when it came from the store."""


@hookspec
def task_graded(score: TaskScore, judgements: Sequence[Judgement]) -> None:
    """All attempts at a task are graded and folded. Called in the order of completion."""


@hookspec
def run_finished(summary: Mapping[str, Any], exit_code: int) -> None:
    """The run has ended and its files are written."""
