"""What a benchmark says of its units: the sign of a criterion, its axis. Asked of the benchmark's grader."""

from __future__ import annotations

from collections.abc import Mapping

from core.comparison.study import Study

#: (task, unit) → group → member.
UnitLabels = Mapping[tuple[str, str], Mapping[str, str]]


def unit_labels(study: Study) -> tuple[UnitLabels, str | None]:
    """The labels of every unit of every task, and why there are none.

    A grader tells by the optional method `unit_labels(task) -> {unit: {group: member}}`.
    """
    from core.clock import RealClock
    from core.plugin_manager import PluginManager
    from core.setup import make_grader, make_services

    config = study.runs[0].config
    try:
        services = make_services(config, RealClock())
        tell = getattr(make_grader(config, PluginManager.discover(), services, None), "unit_labels", None)
        if tell is None:
            return {}, f"benchmark {config.benchmark.name} does not label what is judged"
        return {
            (task.id, unit): dict(labels) for task in study.tasks.values() for unit, labels in tell(task).items()
        }, None
    except Exception as error:  # noqa: BLE001 -- a plugin's own code; what judges agree on does not depend on it
        return {}, f"benchmark {config.benchmark.name} can't label what is judged: {error}"
