"""Which tasks a run is about: tasks → where → sample → limit → shard, in this order.

A pattern or a label that matches nothing is refused: a typing error must not make a smaller benchmark.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from fnmatch import fnmatchcase

from core.config import Shard
from core.errors import InputError
from core.model import Task


def select(
    tasks: Sequence[Task],
    *,
    patterns: Sequence[str] | None = None,
    where: Mapping[str, str] | None = None,
    sample: int | None = None,
    seed: int = 0,
    limit: int | None = None,
    shard: Shard | None = None,
) -> list[Task]:
    """The chosen tasks in the source's order; raises InputError on what matches nothing."""
    chosen = list(tasks)
    if patterns is not None:
        if not patterns:
            raise InputError("no task is named", where="tasks", expected="ids or patterns, or tasks=null for all")
        chosen = by_patterns(chosen, patterns)
    for label, value in (where or {}).items():
        chosen = by_label(chosen, label, value)
    if sample is not None and sample < len(chosen):
        drawn = random.Random(seed).sample(range(len(chosen)), sample)  # noqa: S311 - a reproducible draw
        chosen = [chosen[place] for place in sorted(drawn)]
    if limit is not None:
        chosen = chosen[:limit]
    if shard is not None:
        chosen = chosen[shard.number - 1 :: shard.of]
    return chosen


def by_patterns(tasks: Sequence[Task], patterns: Sequence[str]) -> list[Task]:
    """Tasks whose id is, or matches, one of the patterns (fnmatch, case matters)."""
    for pattern in patterns:
        if not any(matches(task.id, pattern) for task in tasks):
            close = get_close_matches(pattern, [task.id for task in tasks], n=1)
            hint = f"; did you mean {close[0]!r}?" if close else ""
            raise InputError(f"no task is called or matches {pattern!r}{hint}", where="tasks")
    return [task for task in tasks if any(matches(task.id, pattern) for pattern in patterns)]


def matches(task_id: str, pattern: str) -> bool:
    return task_id == pattern or fnmatchcase(task_id, pattern)


def by_label(tasks: Sequence[Task], label: str, value: str) -> list[Task]:
    """Tasks that have a label's value, or have it among several."""
    labels = sorted({name for task in tasks for name in task.labels})
    if label not in labels:
        close = get_close_matches(label, labels, n=1)
        hint = f"; did you mean {close[0]!r}?" if close else ""
        raise InputError(
            f"no task has a label {label!r}{hint}",
            where=f"where.{label}",
            expected=f"one of {', '.join(labels) or 'none: these tasks have no labels'}",
        )
    chosen = [task for task in tasks if value in _values(task, label)]
    if not chosen:
        known = sorted({item for task in tasks for item in _values(task, label)})
        raise InputError(
            f"no task has {label}={value!r}", where=f"where.{label}", expected=f"one of {', '.join(known)}"
        )
    return chosen


def _values(task: Task, label: str) -> list[str]:
    found = task.labels.get(label)
    if found is None:
        return []
    return [found] if isinstance(found, str) else [str(item) for item in found]
