"""The DRACO plugin's entry point: which names it registers, and nothing heavy at import."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from core.hooks import Register, hookimpl

if TYPE_CHECKING:
    from core.parts import Aggregator, Grader, TaskLoader
    from core.services import Services


@hookimpl
def register_task_loaders(register: Register) -> None:
    register("draco", _loader)


@hookimpl
def register_graders(register: Register) -> None:
    register("draco", _grader)


@hookimpl
def register_aggregators(register: Register) -> None:
    register("draco", _aggregator)


def _loader(config: Mapping[str, Any], _services: Services) -> TaskLoader:
    from plugins.draco.tasks import DracoTasks

    return DracoTasks(config)


def _grader(_config: Mapping[str, Any], services: Services) -> Grader:
    from plugins.draco.grader import DracoGrader

    return DracoGrader(services.judge)


def _aggregator(config: Mapping[str, Any], _services: Services) -> Aggregator:
    from plugins.draco.aggregate import DracoAggregator

    return DracoAggregator(config)
