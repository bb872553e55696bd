"""The entry point: which names are registered. Nothing heavy is imported here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from core.hooks import Register, hookimpl
from core.services import Services


@hookimpl
def config_search_path() -> str:
    return "pkg://leadline_toy.conf"


@hookimpl
def register_task_loaders(register: Register) -> None:
    register("toy", _tasks)


@hookimpl
def register_graders(register: Register) -> None:
    register("toy", _grader)


@hookimpl
def register_aggregators(register: Register) -> None:
    register("toy", _mean)


@hookimpl
def register_systems(register: Register) -> None:
    register("echo", _echo)


def _tasks(config: Mapping[str, Any], _services: Services) -> Any:
    from leadline_toy.benchmark import Tasks

    return Tasks(config)


def _grader(_config: Mapping[str, Any], services: Services) -> Any:
    from leadline_toy.benchmark import Grader

    return Grader(services.judge)


def _mean(config: Mapping[str, Any], _services: Services) -> Any:
    from leadline_toy.benchmark import Mean

    return Mean(config)


def _echo(config: Mapping[str, Any], _services: Services) -> Any:
    from leadline_toy.system import Echo

    return Echo(config)
