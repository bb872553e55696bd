"""The DAG rubric plugin's entry point: which names it registers, and nothing heavy at import."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from core.hooks import Register, hookimpl

if TYPE_CHECKING:
    from core.audit import Audit
    from core.parts import Aggregator, Grader, TaskLoader
    from core.services import Services


@hookimpl
def register_task_loaders(register: Register) -> None:
    register("dag_rubric", _loader)


@hookimpl
def register_graders(register: Register) -> None:
    register("dag_rubric", _grader)


@hookimpl
def register_aggregators(register: Register) -> None:
    register("dag_rubric", _aggregator)


@hookimpl
def register_audits(register: Register) -> None:
    register("lint", _lint)
    register("overlap", _overlap)
    register("recall", _recall)
    register("convergence", _convergence)
    register("weights", _weights)
    register("forms", _forms)
    register("saturation", _saturation)


def _loader(config: Mapping[str, Any], _services: Services) -> TaskLoader:
    from plugins.dag_rubric.tasks import DagTasks

    return DagTasks(config)


def _grader(config: Mapping[str, Any], services: Services) -> Grader:
    from plugins.dag_rubric.grader import DagGrader

    return DagGrader(config, services.judge)


def _aggregator(config: Mapping[str, Any], _services: Services) -> Aggregator:
    from plugins.dag_rubric.aggregate import DagAggregator

    return DagAggregator(config)


def _lint() -> Audit:
    from plugins.dag_rubric.audits.lint import Lint

    return Lint()


def _overlap() -> Audit:
    from plugins.dag_rubric.audits.overlap import Overlap

    return Overlap()


def _recall() -> Audit:
    from plugins.dag_rubric.audits.overlap import Recall

    return Recall()


def _convergence() -> Audit:
    from plugins.dag_rubric.audits.convergence import Convergence

    return Convergence()


def _weights() -> Audit:
    from plugins.dag_rubric.audits.weights import WeightSensitivity

    return WeightSensitivity()


def _forms() -> Audit:
    from plugins.dag_rubric.audits.runs import FormGaps

    return FormGaps()


def _saturation() -> Audit:
    from plugins.dag_rubric.audits.runs import Saturation

    return Saturation()
