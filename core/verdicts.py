"""From rows to yes and no: the verdicts of units that are met or not."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from core.errors import InputError
from core.model import Judgement


def met_by_id(rows: Iterable[Judgement], ids: Mapping[str, str], *, kind: str) -> dict[str, bool]:
    """Id → met, of one repeat's rows; rows without a verdict are left out.

    `ids` maps the task's units to ids, `kind` is what a unit is called (criterion, checkpoint). Raises InputError
    for a unit that the task does not have and for a verdict of another form, ValueError for two rows of one unit.
    """
    seen: set[str] = set()
    met: dict[str, bool] = {}
    for row in rows:
        where = f"task {row.task_id}, repeat {row.repeat}, unit {row.unit}"
        if row.unit not in ids:
            raise InputError(f"the task has no such {kind}", where=where, expected=f"{kind}/<id>")
        if row.unit in seen:
            raise ValueError(f"{where}: two judgements of one {kind} in one repeat")
        seen.add(row.unit)
        if row.verdict is None:
            continue
        verdict = row.verdict.get("met")
        if not isinstance(verdict, bool):
            raise InputError(
                "the verdict has another form",
                where=where,
                expected='{"met": true or false}',
                got=repr(verdict),
            )
        met[ids[row.unit]] = verdict
    return met
