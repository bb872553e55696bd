"""What was judged, unit by unit: the verdicts of all repeats side by side, and the reasons given."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from core.model import RULE_JUDGE, Judgement
from core.report.html import text
from core.runfolder import row_order

#: How a verdict looks: it holds, it does not, it is missing, or it is no yes and no.
Tone = Literal["yes", "no", "missing", "other"]
#: The fields of a verdict that are its yes or no, with the words for both.
_DECIDING: Final[Mapping[str, tuple[str, str]]] = {"met": ("MET", "UNMET"), "verdict": ("holds", "fails")}
#: So many checks of one verdict are shown, and so many different reasons for one unit.
_CHECKS, _REASONS = 40, 8


@dataclass(frozen=True, slots=True)
class Mark:
    """One repeat's verdict in a word."""

    repeat: int
    word: str
    tone: Tone


@dataclass(frozen=True, slots=True)
class Reason:
    """What a judge gave as its reason, or why there is no verdict. `repeats` are those that say the same."""

    repeats: tuple[int, ...]
    text: str
    is_error: bool = False


@dataclass(frozen=True, slots=True)
class Check:
    """One field of a verdict that has several: its word in the last repeat that has it."""

    name: str
    word: str
    tone: Tone


@dataclass(frozen=True, slots=True)
class Unit:
    """One unit of one attempt. `n_yes` of `n` verdicts hold (`yes` is the word for it); missing ones are in none.

    `cost_usd`: dollars of all repeats that state it; None is unknown.
    """

    name: str
    marks: tuple[Mark, ...]
    reasons: tuple[Reason, ...]
    checks: tuple[Check, ...]
    n_yes: int
    n: int
    yes: str
    cost_usd: float | None
    judges: tuple[str, ...]

    @property
    def tone(self) -> Tone:
        """The repeats' common tone; where they differ, the most frequent, and a tie does not hold."""
        if not self.n:
            return "missing" if any(mark.tone == "missing" for mark in self.marks) else "other"
        return "yes" if 2 * self.n_yes > self.n else "no"

    @property
    def said(self) -> str:
        """All repeats in a few words: `MET in 3 of 5, 1 missing`."""
        if len(self.marks) == 1:
            return self.marks[0].word
        missing = sum(mark.tone == "missing" for mark in self.marks)
        lost = f"{missing} missing" if missing else ""
        if self.n:
            return ", ".join(filter(None, (f"{self.yes} in {self.n_yes} of {self.n}", lost)))
        others = dict.fromkeys(mark.word for mark in self.marks if mark.tone == "other")
        return ", ".join(filter(None, (*list(others)[:3], lost)))

    @property
    def is_split(self) -> bool:
        """Whether repeats contradict each other."""
        return 0 < self.n_yes < self.n


def units_of(rows: Iterable[Judgement], *, longest: int, every: bool = True) -> dict[str, Unit]:
    """The units of one attempt by name, in their natural order.

    `longest`: characters of a reason; 0 leaves reasons out. `every`: the reasons of all repeats; else the first of
    each different verdict.
    """
    found: dict[str, list[Judgement]] = {}
    for row in sorted(rows, key=lambda row: row_order(row)[1]):
        found.setdefault(row.unit, []).append(row)
    return {
        name: _unit(name, sorted(group, key=lambda row: row.repeat), longest, every=every)
        for name, group in found.items()
    }


def _unit(name: str, rows: Sequence[Judgement], longest: int, *, every: bool) -> Unit:
    marks = tuple(_mark(row) for row in rows)
    decided = [mark for mark in marks if mark.tone in ("yes", "no")]
    costs = [row.cost_usd for row in rows if row.cost_usd is not None]
    return Unit(
        name=name,
        marks=marks,
        reasons=_reasons(rows if every else _first_of_each(rows), longest),
        checks=_checks(rows),
        n_yes=sum(mark.tone == "yes" for mark in decided),
        n=len(decided),
        yes=next(
            (words[0] for row in rows for field, words in _DECIDING.items() if field in (row.verdict or {})), ""
        ),
        cost_usd=sum(costs) if costs else None,
        judges=tuple(dict.fromkeys(row.judge for row in rows if row.judge)),
    )


def _mark(row: Judgement) -> Mark:
    if row.verdict is None:
        return Mark(row.repeat, "missing", "missing")
    for field, (yes, no) in _DECIDING.items():
        value = row.verdict.get(field)
        if isinstance(value, bool):
            return Mark(row.repeat, yes if value else no, "yes" if value else "no")
    return Mark(row.repeat, text.said(_only_value(row.verdict), 60), "other")


def _only_value(verdict: Mapping[str, Any]) -> Any:
    return next(iter(verdict.values())) if len(verdict) == 1 else verdict


def _first_of_each(rows: Sequence[Judgement]) -> list[Judgement]:
    """The first row of each different verdict, and of each kind of error."""
    found: dict[object, Judgement] = {}
    for row in rows:
        found.setdefault((_mark(row).word, row.error.kind if row.error is not None else None), row)
    return list(found.values())


def _reasons(rows: Sequence[Judgement], longest: int) -> tuple[Reason, ...]:
    """Each different reason once; errors are always given, since nothing else says why a verdict is missing."""
    repeats: dict[tuple[str, bool], list[int]] = {}
    for row in rows:
        if row.error is not None:
            said = f"{row.error.kind}: {row.error.message}" if row.error.message else row.error.kind
            repeats.setdefault((text.cut(said, longest or text.NAME), True), []).append(row.repeat)
        elif longest and row.explanation:
            by = " (by rule)" if row.judge == RULE_JUDGE else ""
            repeats.setdefault((text.cut(row.explanation, longest) + by, False), []).append(row.repeat)
    reasons = [Reason(tuple(which), said, is_error) for (said, is_error), which in repeats.items()]
    return tuple(reasons[:_REASONS])


def _checks(rows: Sequence[Judgement]) -> tuple[Check, ...]:
    found: dict[str, Check] = {}
    for row in rows:
        for field, value in (row.verdict or {}).items():
            if len(row.verdict or {}) > 1:
                tone: Tone = "other"
                word = text.said(value, 60)
                if isinstance(value, bool):
                    word, tone = ("yes", "yes") if value else ("no", "no")
                found[field] = Check(text.name(field), word, tone)
    return tuple(found.values())[:_CHECKS]
