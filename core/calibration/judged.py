"""A run's verdicts by unit, and what of a verdict is a yes or a no.

A verdict has checks: its fields that are true or false. One of them decides: `met`, else `verdict`, else the only
one there is. What is no judge's yes or no is told apart, never taken for a wrong one:

    missing    the judge's answer failed, or never came
    by_rule    no judge was asked
    unsure     the verdict's `confidence` is below 2, where the benchmark counts it for nothing
    tied       as many repeats say yes as no
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

from core.comparison.rows import read_answers
from core.digest import json_digest
from core.errors import InputError, place
from core.model import RULE_JUDGE, Judgement
from core.rescore import Saved, read_run
from core.runfolder import JUDGEMENTS

#: Task, attempt, unit.
Key = tuple[str, int, str]
Apart = Literal["missing", "by_rule", "unsure", "tied"]
APART: Final[tuple[Apart, ...]] = ("missing", "by_rule", "unsure", "tied")
#: Which check decides; else it is the only one.
_DECISIVE: Final = ("met", "verdict")
#: Below it a verdict that says how certain it is counts for nothing (contract of WANDR's records).
_SURE: Final = 2


@dataclass(frozen=True, slots=True)
class Said:
    """One row. `digest` is that of the whole question, `at` when it was asked; null where nobody was."""

    verdict: Mapping[str, Any] | None
    judge: str | None
    error: str | None
    digest: str | None
    at: str | None


@dataclass(frozen=True, eq=False)
class Judged:
    """A run folder with its verdicts: `rows[key][repeat]`. `answers`: the digest of what was judged."""

    saved: Saved
    name: str
    rows: Mapping[Key, Mapping[int, Said]]
    answers: Mapping[tuple[str, int], str]
    problems: tuple[str, ...]

    @property
    def path(self) -> Path:
        return self.saved.path

    @property
    def run_id(self) -> str:
        return str(self.saved.facts.get("run_id") or "")

    def judges(self) -> list[str]:
        """The names of the judges that its rows have, in ascending order."""
        found = {said.judge for rows in self.rows.values() for said in rows.values()}
        return sorted(name for name in found if name is not None and name != RULE_JUDGE)

    def sheet_id(self, key: Key, check: str) -> str:
        """The name of a verdict's check in a sheet: also of the answer it speaks of, so that no other is met."""
        return json_digest([*key, check, self.answers.get(key[:2], "")])[:20]


def read_judged(path: Path) -> Judged:
    """Read a run folder; raises InputError. Its verdicts are held in memory, equal ones once."""
    if not path.is_dir():
        raise InputError("there is no such folder", where=str(path), expected="the folder of a run")
    try:
        saved = read_run(path)
    except (KeyError, TypeError, AttributeError) as error:
        raise InputError(f"run.json lacks what a run's has: {error!r}", where=str(path)) from None
    shared: dict[str, Mapping[str, Any]] = {}
    rows: dict[Key, dict[int, Said]] = {}
    for row in saved.judgements():
        repeats = rows.setdefault((row.task_id, row.attempt, row.unit), {})
        if row.repeat in repeats:
            raise InputError(
                f"two judgements on task {row.task_id!r}, attempt {row.attempt}, unit {row.unit!r}, "
                f"repeat {row.repeat}",
                where=place(path / JUDGEMENTS),
                expected="one",
            )
        repeats[row.repeat] = _said(row, shared)
    problems: list[str] = []
    answers = read_answers(path, problems)
    return Judged(saved, path.name or str(path), rows, answers, tuple(problems))


def _said(row: Judgement, shared: dict[str, Mapping[str, Any]]) -> Said:
    verdict = None if row.verdict is None else shared.setdefault(repr(row.verdict), row.verdict)
    error = row.error.kind if row.error is not None else None
    return Said(verdict, row.judge, error, row.prompt_digest, row.judged_at)


def checks_of(verdict: Mapping[str, Any]) -> list[str]:
    """The names of a verdict's checks, the one that decides first."""
    names = [name for name, value in verdict.items() if isinstance(value, bool)]
    decisive = decisive_of(verdict)
    return names if decisive is None else [decisive, *(name for name in names if name != decisive)]


def decisive_of(verdict: Mapping[str, Any]) -> str | None:
    """The check that decides; None where none does."""
    booleans = [name for name, value in verdict.items() if isinstance(value, bool)]
    for name in _DECISIVE:
        if name in booleans:
            return name
    return booleans[0] if len(booleans) == 1 else None


def decisive_check(rows: Mapping[int, Said]) -> str | None:
    """The same of a unit's rows, by the first verdict that has one."""
    for said in rows.values():
        if said.verdict is not None and (found := decisive_of(said.verdict)) is not None:
            return found
    return None


def value_of(said: Said, check: str) -> bool | Apart:
    """What one row says on a check."""
    if said.verdict is None:
        return "by_rule" if said.judge == RULE_JUDGE and said.error is None else "missing"
    if said.judge == RULE_JUDGE:
        return "by_rule"
    confidence = said.verdict.get("confidence")
    if isinstance(confidence, int) and not isinstance(confidence, bool) and confidence < _SURE:
        return "unsure"
    value = said.verdict.get(check)
    return value if isinstance(value, bool) else "missing"


def values_of(rows: Mapping[int, Said], check: str) -> list[bool]:
    """Every yes and no of a unit's repeats, in their order."""
    found = (value_of(said, check) for _, said in sorted(rows.items()))
    return [value for value in found if isinstance(value, bool)]


def majority(rows: Mapping[int, Said], check: str) -> bool | Apart:
    """What most of a unit's repeats say."""
    values = values_of(rows, check)
    if not values:
        states = [value_of(said, check) for said in rows.values()]
        return next((state for state in APART if state in states), "missing")
    yes = sum(values)
    return "tied" if 2 * yes == len(values) else 2 * yes > len(values)


def of_judge(rows: Mapping[int, Said], judge: str, judges: Sequence[str]) -> Mapping[int, Said]:
    """The rows of one judge, and those without a judge's name; all of them where it is the only one."""
    if len(judges) <= 1:
        return rows
    return {repeat: said for repeat, said in rows.items() if said.judge in (judge, RULE_JUDGE, None)}


def units_at(rows: Iterable[Key], task: str, attempt: int) -> list[str]:
    """The units of one attempt that have a row."""
    return [unit for found, number, unit in rows if (found, number) == (task, attempt)]
