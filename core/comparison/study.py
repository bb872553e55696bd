"""The runs side by side: one table of numbers for each metric, the same tasks in the same order for all.

A task counts as the same where its id and its content are: a run whose task of that id reads otherwise has no
number there. Tasks that ask one question in several forms (label `task`) are resampled together.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from core.comparison.identity import judge_names, system_names
from core.comparison.reading import Run, word
from core.comparison.results import Estimate, RunFacts, Settings
from core.fold import mean
from core.model import Task
from core.stats import Interval

Numbers = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

#: The label by which items of one task are drawn together.
CLUSTER: Final = "task"


@dataclass(frozen=True)
class Study:
    """What is compared. `names`, `systems`, `judges`: each run's own name, its system's and its judge's, in the
    order of `runs`; different systems have different names, as have judges (identity.py).

    `tasks`: every task of any run by id, as most runs have it. `metrics`: the first is the one that judges, ranks
    and variance speak of.
    """

    runs: tuple[Run, ...]
    names: tuple[str, ...]
    systems: tuple[str, ...]
    judges: tuple[str, ...]
    tasks: Mapping[str, Task]
    metrics: tuple[str, ...]
    settings: Settings
    foreign: Mapping[int, frozenset[str]]

    @classmethod
    def of(cls, runs: Sequence[Run], settings: Settings) -> Study:
        """Runs of one benchmark, at least one."""
        systems, judges = system_names(runs), judge_names(runs)
        digests = _usual_content(runs)
        contents = {digest: run.tasks[task] for run in runs for task, digest in run.digests.items()}
        foreign = {
            place: frozenset(task for task, digest in run.digests.items() if digest != digests[task])
            for place, run in enumerate(runs)
        }
        return cls(
            runs=tuple(runs),
            names=_distinct([f"{system} · {judge}" for system, judge in zip(systems, judges, strict=True)]),
            systems=systems,
            judges=judges,
            tasks={task: contents[digest] for task, digest in digests.items()},
            metrics=settings.metrics or (runs[0].config.benchmark.headline,),
            settings=settings,
            foreign={place: tasks for place, tasks in foreign.items() if tasks},
        )

    @property
    def n_tasks(self) -> int:
        return len(self.tasks)

    @cached_property
    def place_of(self) -> dict[str, int]:
        """Each task's place in every table."""
        return {task: place for place, task in enumerate(self.tasks)}

    @cached_property
    def labels(self) -> dict[str, Mapping[str, tuple[str, ...]]]:
        """Each scored task's labels."""
        return {task: score.labels for run in self.runs for task, score in run.scores.items()}

    @cached_property
    def clusters(self) -> list[str] | None:
        """What is drawn together, task by task; None where each task is drawn by itself."""
        names = [(self.labels.get(task, {}).get(CLUSTER) or (task,))[0] for task in self.tasks]
        return names if len(set(names)) < len(names) else None

    def clusters_of(self, chosen: Mask) -> list[str] | None:
        """The clusters of the tasks chosen, (tasks,)."""
        if self.clusters is None:
            return None
        return [name for name, is_chosen in zip(self.clusters, chosen.tolist(), strict=True) if is_chosen]

    def n_units(self, chosen: Mask) -> int:
        """How many units of drawing the chosen tasks make: tasks, or clusters."""
        clusters = self.clusters_of(chosen)
        return int(chosen.sum()) if clusters is None else len(set(clusters))

    @property
    def bootstrap(self) -> dict[str, Any]:
        """How tasks are resampled, as core.stats takes it."""
        settings = self.settings
        return {
            "clusters": self.clusters,
            "level": settings.level,
            "resamples": settings.resamples,
            "seed": settings.seed,
        }

    def table(self, metric: str) -> Numbers:
        """(runs, tasks): each task's number in each run, NaN where there is none."""
        return np.array(
            [[self._value(place, task, metric) for task in self.tasks] for place in range(len(self.runs))]
        )

    def repeats(self, place: int) -> dict[tuple[int, int], Numbers]:
        """One run's first metric by attempt and repeat, (tasks,) each; NaN where the task's number is withheld."""
        metric = self.metrics[0]
        found: dict[tuple[int, int], Numbers] = {}
        for task, score in self.runs[place].scores.items():
            if np.isnan(self._value(place, task, metric)):
                continue
            for key, numbers in score.by_run.items():
                column = found.setdefault(key, np.full(self.n_tasks, np.nan))
                column[self.place_of[task]] = numbers.get(metric, np.nan)
        return dict(sorted(found.items()))

    def has_parts(self, name: str) -> bool:
        """Whether any run's tasks have a metric of this name."""
        return any(name in run.known_metrics for run in self.runs)

    def facts(self, place: int) -> RunFacts:
        """What compare.json says of one run."""
        run = self.runs[place]
        code = run.facts.get("exit_code")
        return RunFacts(
            name=self.names[place],
            path=str(run.path),
            run_id=word(run.facts.get("run_id")),
            leadline=word(run.facts.get("leadline")),
            exit_code=code if isinstance(code, int) else None,
            system=self.systems[place],
            system_family=run.config.system.family,
            judge=self.judges[place],
            judge_family=run.config.judge.family,
            judge_model=run.config.judge.model,
            judge_digest=run.judge_digest,
            prompt_digest=word(run.facts.get("prompt_digest")),
            repeats=run.repeats,
            attempts=run.config.attempts,
            n_tasks=len(run.tasks),
            n_scored=sum(score.has(self.metrics[0]) for score in run.scores.values()),
            coverage=run.coverage,
        )

    def _value(self, place: int, task: str, metric: str) -> float:
        score = self.runs[place].scores.get(task)
        if score is None or (not self.settings.force and task in self.foreign.get(place, ())):
            return np.nan
        return score.metrics.get(metric, np.nan)


@dataclass(frozen=True, slots=True)
class Grid:
    """Systems × judges: which run has the system's answers judged by that judge, the first of several."""

    systems: tuple[str, ...]
    judges: tuple[str, ...]
    runs: Mapping[tuple[str, str], int]

    @classmethod
    def of(cls, study: Study) -> Grid:
        found: dict[tuple[str, str], int] = {}
        for place, key in enumerate(zip(study.systems, study.judges, strict=True)):
            found.setdefault(key, place)
        return cls(
            systems=tuple(dict.fromkeys(system for system, _ in found)),
            judges=tuple(dict.fromkeys(judge for _, judge in found)),
            runs=found,
        )

    def judges_of(self, system: str) -> list[str]:
        return [judge for judge in self.judges if (system, judge) in self.runs]

    def systems_of(self, judges: Sequence[str]) -> list[str]:
        """The systems that all these judges have judged."""
        return [system for system in self.systems if all((system, judge) in self.runs for judge in judges)]


def estimate(interval: Interval | None, values: Numbers) -> Estimate:
    """An interval as a result; without one, the mean alone of the values that are no NaN."""
    there = values[~np.isnan(values)]
    if interval is None:
        return Estimate(value=mean(there.tolist()), n=len(there))
    return Estimate(value=interval.estimate, low=interval.low, high=interval.high, n=interval.n)


def _usual_content(runs: Sequence[Run]) -> dict[str, str]:
    """The digest that most runs have of each task; the first run's where it is a tie."""
    found: dict[str, Counter[str]] = {}
    for run in runs:
        for task, digest in run.digests.items():
            found.setdefault(task, Counter())[digest] += 1
    return {task: counts.most_common(1)[0][0] for task, counts in found.items()}


def _distinct(names: Sequence[str]) -> tuple[str, ...]:
    """The names, those that recur numbered from the second on."""
    seen: Counter[str] = Counter()
    found = []
    for name in names:
        seen[name] += 1
        found.append(name if seen[name] == 1 else f"{name} #{seen[name]}")
    return tuple(found)
