"""The WANDR plugin's entry point: which names it registers, and nothing heavy at import."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from core.hooks import Register, hookimpl

if TYPE_CHECKING:
    from core.parts import Aggregator, Grader, TaskLoader
    from core.services import Services


@hookimpl
def register_task_loaders(register: Register) -> None:
    register("wandr", _loader)


@hookimpl
def register_graders(register: Register) -> None:
    register("wandr", _grader)


@hookimpl
def register_aggregators(register: Register) -> None:
    register("wandr", _aggregator)


def _loader(config: Mapping[str, Any], services: Services) -> TaskLoader:
    from plugins.wandr.tasks import WandrTasks

    return WandrTasks(config, services.log)


def _grader(config: Mapping[str, Any], services: Services) -> Grader:
    from plugins.wandr.grader import WandrGrader

    return WandrGrader(config, services.judge, services.pages)


def _aggregator(config: Mapping[str, Any], _services: Services) -> Aggregator:
    from plugins.wandr.aggregate import WandrAggregator

    return WandrAggregator(config)
