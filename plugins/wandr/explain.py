"""A rolled-up task as plain JSON: every number with what it was made of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from core.fold import by_repeat
from core.model import Judgement
from plugins.wandr import identity, scoring
from plugins.wandr.levels import Lineages
from plugins.wandr.notes import notes_of, refused
from plugins.wandr.rollup import Entity, Factor, Level, Rolled, RolledLeaf, rollup

_UNJUDGED: Final = "nothing was judged: there are no numbers"
_MALFORMED: Final = "a row is malformed or a file is missing: every strict number is 0"


def explained(reading: scoring.Reading, judgements: Sequence[Judgement]) -> dict[str, Any]:
    """How one submission's numbers came about, in both readings, by repeat.

    `notes`: refused rows and what was odd about the delivery. `leaves`: what was rolled up, records by their unit
    and after them, in the lenient reading alone, the refused rows; a leaf's `leaf` in a tree is its place here.
    `records`: what each record says, by its unit.
    `repeats`: {"repeat", "strict", "lenient"}, each reading {"tree", "reason"}: see `as_tree`; where there is no
    tree, its reason. Raises as `score` does.
    """
    parsed = reading.parsed
    malformed = [refused(row) for row in parsed.malformed if row.line is not None]
    return {
        "notes": list(notes_of(parsed)),
        "leaves": [*(record.unit for record in parsed.records), *malformed],
        "records": {
            record.unit: {
                "item": dict(record.item),
                "answer": dict(record.answer),
                "url": record.url,
                "excerpts": list(record.excerpts),
            }
            for record in parsed.records
        },
        "repeats": [
            {"repeat": repeat, **_readings(reading, rows)} for repeat, rows in by_repeat(judgements).items()
        ],
    }


def _readings(reading: scoring.Reading, rows: Sequence[Judgement]) -> dict[str, Any]:
    judged = scoring.record_rows(reading, rows)
    if reading.parsed.records and not any(row.verdict is not None for row in judged.values()):
        return {name: {"tree": None, "reason": _UNJUDGED} for name in ("strict", "lenient")}
    who = identity.identity_of(reading.root, reading.raws, identity.read(rows, identity.keys_of(reading.root)))
    leaves = [*scoring.leaves_of(reading, judged), *reading.malformed_leaves]
    lenient = {"tree": as_tree(rollup(reading.root, leaves, who)), "reason": None}
    strict = {"tree": None, "reason": _MALFORMED} if reading.parsed.malformed else lenient
    return {"strict": strict, "lenient": lenient}


def as_tree(rolled: Rolled) -> dict[str, Any]:
    """The whole tree, node → key level → entity → … → leaf; null is missing. Linear in the number of records.

    A node: `name`, `scores` (composed), `standalone` (without its subtasks), `level`, `subtasks` (nodes).
    A level: `key`, `required`, `scores`, the counts `provided`, `duplicates`, `pads`, `surplus`, `missing` (see
    rollup.Level), and its `children`. An entity: `value`, `identity`, `scores`, `factors`, `level`. A factor:
    `node`, `value` (the entity of that node's own level that was taken; null: it has none), `candidates`,
    `scores`. It names the entity and does not repeat it, since many entities can share one. A leaf: `leaf` (its
    place in what was rolled up), `value`, `identity`, `full`, `retrieval` (true, false or null).
    Scores are `{"full": {…}, "retrieval": {…}}`, each with all six numbers; of a node's own level hard ones are
    shares, of every other level 0 or 1.
    """
    return {
        "name": rolled.name,
        "scores": _scores(rolled.level.scores),
        "standalone": _scores(rolled.standalone),
        "level": _level(rolled.level),
        "subtasks": [as_tree(subtask) for subtask in rolled.subtasks],
    }


def _level(level: Level) -> dict[str, Any]:
    return {
        "key": level.key,
        "required": level.required,
        "provided": level.provided,
        "duplicates": level.duplicates,
        "pads": level.pads,
        "surplus": level.surplus,
        "missing": level.missing,
        "scores": _scores(level.scores),
        "children": [_entity(child) if isinstance(child, Entity) else _leaf(child) for child in level.children],
    }


def _entity(entity: Entity) -> dict[str, Any]:
    return {
        "value": entity.value,
        "identity": entity.identity,
        "scores": _scores(entity.scores),
        "factors": [_factor(factor) for factor in entity.factors],
        "level": _level(entity.level),
    }


def _factor(factor: Factor) -> dict[str, Any]:
    return {
        "node": factor.node,
        "value": None if factor.entity is None else factor.entity.value,
        "candidates": factor.candidates,
        "scores": _scores(factor.scores),
    }


def _leaf(leaf: RolledLeaf) -> dict[str, Any]:
    return {
        "leaf": leaf.place,
        "value": leaf.value,
        "identity": leaf.identity,
        "full": _outcome(leaf.scores.full.soft_precision),
        "retrieval": _outcome(leaf.scores.retrieval.soft_precision),
    }


def _outcome(value: float | None) -> bool | None:
    return None if value is None else value == 1


def _scores(scores: Lineages) -> dict[str, Any]:
    return {"full": scores.full.named(), "retrieval": scores.retrieval.named()}
