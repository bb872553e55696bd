"""DRACO's rows as tasks: every row is checked before the first task is used.

A row is four texts, `id, problem, answer, domain`; `answer` is JSON text of the rubric. What a row and a
rubric must look like stands in task.schema.json and only there: a message's `expected` is the description
of the schema's part that failed. What a schema can't say is checked here: ids that repeat, numbers that
are not finite, characters that can't be written.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

from core.conform import conform
from core.errors import InputError
from core.model import Task
from core.resources import resolve
from core.strict_json import parse, shown
from core.taskfile import Placed, distinct
from plugins.draco import sources
from plugins.draco.leaks import BLOCKED

if TYPE_CHECKING:
    from jsonschema.protocols import Validator


class DracoTasks:
    """The task loader `draco`. Reads `source` and `revision` of the section `benchmark`."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        self._source = str(config.get("source") or "sample")
        revision = config.get("revision")
        self._revision = None if revision is None else str(revision)

    def load(self) -> Iterator[Task]:
        """Every task in the source's order; raises InputError with file, line and field."""
        return iter(tasks_of(sources.rows(self._source, self._revision), where=self._source))


def tasks_of(rows: Iterable[Placed], *, where: str) -> list[Task]:
    """Checked tasks of unchecked rows; `where` names the source if it has no row."""
    tasks: list[Task] = []
    for place, row in distinct(rows, _check_row, where=where):
        rubric = parse(row["answer"], where=f"{place}, field answer", expected="JSON text of the rubric")
        conform(rubric, _rubric_validator(), place, field="answer")
        _check_rubric(rubric, place)
        tasks.append(_task(row, rubric, index=len(tasks)))
    return tasks


def _check_row(row: Any, place: str) -> None:
    conform(row, _row_validator(), place)


def schema() -> dict[str, Any]:
    """The JSON Schema of a row; the rubric's is its `answer`'s contentSchema."""
    text = resolve("pkg://plugins.draco/task.schema.json").read_text(encoding="utf-8")
    loaded: dict[str, Any] = json.loads(text)
    return loaded


def _task(row: Mapping[str, Any], rubric: Mapping[str, Any], *, index: int) -> Task:
    sections = [
        {
            "id": section["id"],
            "title": section["title"],
            "criteria": [
                {key: criterion[key] for key in ("id", "weight", "requirement")}
                for criterion in section["criteria"]
            ],
        }
        for section in rubric["sections"]
    ]
    return Task(
        id=row["id"],
        prompt=row["problem"],
        labels={"domain": row["domain"]},
        blocked=BLOCKED,
        payload={"rubric_id": rubric["id"], "sections": sections},
        index=index,
    )


@cache
def _row_validator() -> Validator:
    from jsonschema import Draft202012Validator

    return Draft202012Validator(schema())


@cache
def _rubric_validator() -> Validator:
    from jsonschema import Draft202012Validator

    return Draft202012Validator(schema()["properties"]["answer"]["contentSchema"])


def _check_rubric(rubric: Mapping[str, Any], place: str) -> None:
    sections: set[str] = set()
    criteria: dict[str, str] = {}
    weights: list[float] = []
    for at, section in enumerate(rubric["sections"]):
        here = f"answer.sections[{at}]"
        if section["id"] in sections:
            raise InputError(
                "the section id stands twice in the rubric",
                where=f"{place}, field {here}.id",
                expected="an id of its own",
                got=shown(section["id"]),
            )
        sections.add(section["id"])
        for number, criterion in enumerate(section["criteria"]):
            field = f"{here}.criteria[{number}]"
            if (known := criteria.get(criterion["id"])) is not None:
                raise InputError(
                    "the criterion id stands twice in the task",
                    where=f"{place}, field {field}.id",
                    expected=f"an id other than that of {known}",
                    got=shown(criterion["id"]),
                )
            criteria[criterion["id"]] = field
            weights.append(criterion["weight"])
            if not _is_finite(criterion["weight"]):
                raise InputError(
                    "the weight is not finite",
                    where=f"{place}, field {field}.weight",
                    expected="a finite number other than 0",
                    got=shown(criterion["weight"]),
                )
    if not _can_be_divided(weights):
        raise InputError(
            "the weights are too large or too far apart",
            where=f"{place}, field answer",
            expected="a finite 100 x (sum of sizes) / (smallest size)",
            got=f"sizes {min(map(abs, weights))} … {max(map(abs, weights))}",
        )


def _is_finite(weight: float) -> bool:
    """JSON may say 1e999, which is read as infinity, or an integer that no float can hold."""
    try:
        return math.isfinite(weight)
    except OverflowError:
        return False


def _can_be_divided(weights: Iterable[float]) -> bool:
    """Whether any score of these weights is a finite number, whichever of them are judged."""
    sizes = [abs(weight) for weight in weights]
    try:
        return math.isfinite(100 * math.fsum(sizes) / min(sizes))
    except OverflowError:
        return False
