"""How the answers of several judges to one question become one. Pure.

    majority   each field gets the value that most members gave; on a tie, what the first of them said
    veto       a field that a probe knows gets its `yes` only where every member said so
    mean       no vote: each member's verdicts stand as a repeat of their own, and scores are averaged over repeats

Numbers get the lower median (majority) or the least (veto): a confidence is not more than what was given. Texts
(explanations, reasoning) are those of the first member whose verdict fields are the outcome's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, get_args

from core.digest import canonical_json
from core.judge.question import Question

Vote = Literal["majority", "mean", "veto"]
VOTES: Final[tuple[Vote, ...]] = get_args(Vote)

Value = Mapping[str, Any]


def voted(question: Question, values: Mapping[str, Value], vote: Vote) -> Value:
    """One answer out of several, by member in the order of the configuration; at least one is there.

    Fields come in the schema's order. A field that a member's answer lacks is not a vote.
    """
    answers = list(values.values())
    if len(answers) == 1:
        return answers[0]
    probes = {probe.field: (probe.yes, probe.no) for probe in question.probes}
    texts = [name for name in _fields(answers) if _is_text(question, name, answers)]
    outcome: dict[str, Any] = {}
    for name in _fields(answers):
        if name in texts:
            continue
        given = [answer[name] for answer in answers if name in answer]
        if vote == "veto" and name in probes:
            yes, no = probes[name]
            outcome[name] = yes if all(value == yes for value in given) else no
        elif all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in given):
            ordered = sorted(given)
            outcome[name] = ordered[0 if vote == "veto" else (len(ordered) - 1) // 2]
        elif vote == "veto" and all(isinstance(value, bool) for value in given):
            outcome[name] = all(given)
        else:
            outcome[name] = _most(given)
    agreeing = [answer for answer in answers if all(answer.get(name) == value for name, value in outcome.items())]
    spokesman = (agreeing or answers)[0]
    return {
        name: outcome[name] if name in outcome else spokesman.get(name)
        for name in _fields(answers)
        if name in outcome or name in spokesman
    }


def is_split(question: Question, values: Mapping[str, Value]) -> bool:
    """Whether the members' answers differ in anything but their texts."""
    answers = list(values.values())
    for name in _fields(answers):
        if (
            not _is_text(question, name, answers)
            and len({canonical_json(answer.get(name)) for answer in answers}) > 1
        ):
            return True
    return False


def _fields(answers: Sequence[Value]) -> list[str]:
    return list(dict.fromkeys(name for answer in answers for name in answer))


def _is_text(question: Question, name: str, answers: Sequence[Value]) -> bool:
    """Whether a field is prose: a text that the schema does not limit to certain words."""
    schema = (question.schema.get("properties") or {}).get(name)
    if not isinstance(schema, Mapping):
        return all(isinstance(answer.get(name), str) for answer in answers if name in answer)
    return schema.get("type") == "string" and "enum" not in schema and "const" not in schema


def _most(given: Sequence[Any]) -> Any:
    """The value that most gave; on a tie the first one said."""
    spelt = [canonical_json(value) for value in given]
    counts = Counter(spelt)
    most = max(counts.values())
    return next(value for value, text in zip(given, spelt, strict=True) if counts[text] == most)
