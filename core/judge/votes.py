"""How the answers of several judges to one question become one. Pure.

    majority   what most members gave; where no value has more votes than another, nothing: a tie is missing
    veto       a yes only where every member says so
    mean       no vote: each member's verdicts stand as a repeat of their own, and scores are averaged over repeats

Where a question says what its answer comes to (`Question.decides`), the vote is over that, and the whole answer is
the first member's on the winning side: fields that were voted on one by one could say what no member said.
Elsewhere each field is voted on; the entries of an `exact` field each for itself. Numbers get the lower median
(majority) or the least (veto). Texts are those of the first member that agrees with the outcome.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, get_args

from core.digest import canonical_json
from core.judge.question import Question

Vote = Literal["majority", "mean", "veto"]
VOTES: Final[tuple[Vote, ...]] = get_args(Vote)

Value = Mapping[str, Any]


class TieError(Exception):
    """No value has more votes than another."""


@dataclass(frozen=True, slots=True)
class Voted:
    """What came of a vote. `value` None: a tie. `tied`: entries of `exact` fields that are left out for one."""

    value: Value | None
    tied: tuple[str, ...] = ()


def voted(question: Question, values: Mapping[str, Value], vote: Vote) -> Voted:
    """One answer out of several, by member in the order of the configuration; at least one is there."""
    answers = list(values.values())
    try:
        if question.decides is not None:
            return Voted(_by_outcome([(question.decides(answer), answer) for answer in answers], vote))
        tied: list[str] = []
        schema = question.schema.get("properties") or {}
        entries: dict[str, Value] = {}
        for name in question.exact:
            given = [answer[name] for answer in answers if isinstance(answer.get(name), Mapping)]
            inner = {one.field.removeprefix(f"{name}."): (one.yes, one.no) for one in question.probes}
            entries[name], lost = _entries(given, _inside(schema.get(name)), inner, vote)
            tied += lost
        plain = [{name: item for name, item in answer.items() if name not in entries} for answer in answers]
        probes = {probe.field: (probe.yes, probe.no) for probe in question.probes}
        return Voted({**_fields(plain, schema, probes, vote), **entries}, tuple(tied))
    except TieError:
        return Voted(None)


def is_split(question: Question, values: Mapping[str, Value]) -> bool:
    """Whether the members' answers come to different things; their words may differ."""
    answers = list(values.values())
    if question.decides is not None:
        return len({canonical_json(question.decides(answer)) for answer in answers}) > 1
    schema = question.schema.get("properties") or {}
    return len({canonical_json(_without_texts(answer, schema)) for answer in answers}) > 1


def _by_outcome(pairs: Sequence[tuple[Any, Value]], vote: Vote) -> Value:
    outcomes = [outcome for outcome, _ in pairs]
    won = all(outcomes) if vote == "veto" else _most(outcomes)
    return next(answer for outcome, answer in pairs if outcome == won)


def _entries(
    given: Sequence[Value], schema: Mapping[str, Any], probes: Mapping[str, tuple[Any, Any]], vote: Vote
) -> tuple[Value, list[str]]:
    """The entries of an object, each voted on for itself, and the names of those that are tied."""
    found: dict[str, Any] = {}
    tied: list[str] = []
    for name in dict.fromkeys(name for answer in given for name in answer):
        entries = [answer[name] for answer in given if name in answer]
        try:
            if all(isinstance(entry, Mapping) for entry in entries):
                own = {field.removeprefix(f"{name}."): both for field, both in probes.items()}
                found[name] = _fields(entries, _inside(schema.get(name)), own, vote)
            else:
                found[name] = _one(entries, probes.get(name), vote)
        except TieError:
            tied.append(name)
    return found, tied


def _fields(
    answers: Sequence[Value], schema: Mapping[str, Any], probes: Mapping[str, tuple[Any, Any]], vote: Vote
) -> Value:
    """The fields of several objects, each voted on; raises TieError."""
    names = list(dict.fromkeys(name for answer in answers for name in answer))
    texts = [name for name in names if _is_text(name, schema, answers)]
    outcome = {
        name: _one([answer[name] for answer in answers if name in answer], probes.get(name), vote)
        for name in names
        if name not in texts
    }
    agreeing = [answer for answer in answers if all(answer.get(name) == value for name, value in outcome.items())]
    spokesman = (agreeing or answers)[0]
    known = {**{name: spokesman[name] for name in texts if name in spokesman}, **outcome}
    return {name: known[name] for name in names if name in known}


def _one(given: Sequence[Any], probe: tuple[Any, Any] | None, vote: Vote) -> Any:
    """The value of one field; raises TieError."""
    if all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in given):
        ordered = sorted(given)
        return ordered[0 if vote == "veto" else (len(ordered) - 1) // 2]
    if vote == "veto" and probe is not None:
        yes, no = probe
        return yes if all(value == yes for value in given) else no
    if vote == "veto" and all(isinstance(value, bool) for value in given):
        return all(given)
    return _most(given)


def _most(given: Sequence[Any]) -> Any:
    """The value that most gave; raises TieError where two have as many votes."""
    spelt = [canonical_json(value) for value in given]
    (first, votes), *others = Counter(spelt).most_common(2)
    if others and others[0][1] == votes:
        raise TieError
    return given[spelt.index(first)]


def _inside(schema: Any) -> Mapping[str, Any]:
    """The fields of an object's schema, as far as it tells them."""
    fields = schema.get("properties") if isinstance(schema, Mapping) else None
    return fields if isinstance(fields, Mapping) else {}


def _is_text(name: str, schema: Mapping[str, Any], answers: Sequence[Value]) -> bool:
    """Whether a field is prose: a text that the schema does not limit to certain words.

    Of an entry there is no schema at hand: a text that is longer than a word is prose.
    """
    known = schema.get(name)
    if isinstance(known, Mapping):
        return known.get("type") == "string" and "enum" not in known and "const" not in known
    given = [answer[name] for answer in answers if name in answer]
    return all(isinstance(value, str) for value in given) and any(" " in value for value in given)


def _without_texts(answer: Any, schema: Mapping[str, Any]) -> Any:
    if not isinstance(answer, Mapping):
        return answer
    return {
        name: _without_texts(item, {}) for name, item in answer.items() if not _is_text(name, schema, [answer])
    }
