"""The same answers judged twice on pages that may have changed: what moved, and was it the pages or the judge?

A judge who is asked the very same question may answer otherwise: that is noise, and its rate is seen on the units
whose question stayed the same to the letter. Where the question changed (the page's text did) or was asked in one
run only (the page went or came), a flipped verdict is put down to the page; `by_noise` says how many noise of that
rate would have flipped anyway. An answer that the second run took from the store is no second answer: it says
nothing of noise. Neither does the answer of another judge: where judges differ, a question that both were asked
leaves the cause of a flip unknown.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

from core import __version__
from core.calibration.drift_score import ScoreDrift, score_drift
from core.calibration.judged import Judged, Key, Said, decisive_check, read_judged, value_of
from core.calibration.material import record_line
from core.calibration.pages_seen import PAGE, Seen, pages_of
from core.calibration.results import Limits, Settings
from core.errors import InputError
from core.model import RULE_JUDGE, Frozen, Submission
from core.stats import wilson

SCHEMA: Final = "leadline/drift/1"
JSON_NAME: Final = "drift.json"
#: What became of a unit's question: asked alike, asked otherwise, asked in one run alone, in none, or who knows.
Question = Literal["same", "changed", "one", "none", "unknown"]
#: What became of a page. `body`: other bytes, and every question about it stayed the same.
PageChange = Literal["same", "status", "text", "body", "unknown"]
#: What a flip is put down to, where one judge answered both times.
Cause = Literal["page", "noise", "unknown"]

_CAUSES: Final[Mapping[Question, Cause]] = {
    "same": "noise",
    "changed": "page",
    "one": "page",
    "none": "page",
    "unknown": "unknown",
}


class PageDrift(Frozen):
    """One page in both runs. `units`: how many verdicts rest on it, as far as the submission's files tell."""

    url: str
    status: tuple[str | None, str | None]
    final_url: tuple[str | None, str | None]
    digest: tuple[str | None, str | None]
    change: PageChange
    units: int


class Flip(Frozen):
    """A verdict that is another one; null is missing."""

    task_id: str
    attempt: int
    unit: str
    repeat: int
    first: bool | None
    second: bool | None
    question: Question
    cause: Cause
    url: str | None


class FlipRate(Frozen):
    """Yes and no that became the other, among the units that have either in both runs."""

    n: int
    flipped: int
    rate: float | None
    wilson: Limits | None


class Drift(Frozen):
    """All of it. `noise`: units of which one judge was asked alike and anew.

    `reused`: those whose answer was taken from the store.
    """

    leadline: str
    first: str
    second: str
    n_tasks: int
    n_units: int
    questions: Mapping[str, int]
    reused: int
    noise: FlipRate
    changed: FlipRate
    by_noise: float | None
    lost: int
    found: int
    pages: tuple[PageDrift, ...]
    flips: tuple[Flip, ...]
    score: ScoreDrift
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Unit:
    """One verdict in both runs."""

    key: Key
    repeat: int
    first: bool | None
    second: bool | None
    question: Question
    reused: bool
    one_judge: bool
    url: str | None

    @property
    def cause(self) -> Cause:
        """What a flip would be put down to: what two judges were asked, either of them may have moved."""
        is_theirs = self.question in ("same", "changed") and not self.one_judge
        return "unknown" if is_theirs else _CAUSES[self.question]


def drift(
    first: Path,
    second: Path,
    settings: Settings | None = None,
    stores: tuple[Path | None, Path | None] = (None, None),
) -> Drift:
    """Compare two runs of the same answers. Raises InputError where they have none in common."""
    settings = settings or Settings()
    one, other = read_judged(first), read_judged(second)
    names = {run.saved.config.benchmark.name for run in (one, other)}
    if len(names) > 1:
        raise InputError(f"runs of different benchmarks: {' and '.join(sorted(names))}", expected="runs of one")
    common = sorted(at for at, digest in one.answers.items() if other.answers.get(at) == digest)
    if not common:
        raise InputError(
            "the runs have no answer in common",
            where=f"{first}, {second}",
            expected="two runs over the same submissions (system=replay system.path=RUN/submissions.jsonl)",
        )
    tasks = {task for task, _ in common}
    urls = _urls(one, set(common))
    units = _units(one, other, set(common), urls)
    seen = pages_of(one, tasks, stores[0]), pages_of(other, tasks, stores[1])
    alike = [unit for unit in units if unit.question == "same" and unit.one_judge and not unit.reused]
    otherwise = [unit for unit in units if unit.question == "changed"]
    noise, changed = _rate(alike, settings), _rate(otherwise, settings)
    counts = {
        name: sum(unit.question == name for unit in units)
        for name in ("same", "changed", "one", "none", "unknown")
    }
    return Drift(
        leadline=__version__,
        first=str(first),
        second=str(second),
        n_tasks=len(tasks),
        n_units=len(units),
        questions=counts,
        reused=sum(unit.reused for unit in units),
        noise=noise,
        changed=changed,
        by_noise=None if noise.rate is None else noise.rate * changed.n,
        lost=sum(unit.first is not None and unit.second is None for unit in units),
        found=sum(unit.first is None and unit.second is not None for unit in units),
        pages=tuple(_pages(seen, units)),
        flips=tuple(_flip(unit) for unit in units if unit.first != unit.second),
        score=score_drift(one, other, set(common), settings),
        notes=tuple(_notes(one, other, common, units)),
    )


def _units(one: Judged, other: Judged, common: set[tuple[str, int]], urls: Mapping[Key, str]) -> list[_Unit]:
    units: list[_Unit] = []
    one_judge = not _judges_differ(one, other)
    for key in dict.fromkeys([*one.rows, *other.rows]):
        pair = one.rows.get(key, {}), other.rows.get(key, {})
        check = decisive_check(pair[0]) or decisive_check(pair[1])
        if key[:2] not in common or key[2].startswith(PAGE) or check is None:
            continue
        for repeat in sorted({*pair[0], *pair[1]}):
            first, second = pair[0].get(repeat), pair[1].get(repeat)
            units.append(
                _Unit(
                    key=key,
                    repeat=repeat,
                    first=_value(first, check),
                    second=_value(second, check),
                    question=_question(first, second),
                    reused=_is_reused(first, second),
                    one_judge=one_judge and _is_one_judge(first, second),
                    url=urls.get(key),
                )
            )
    return units


def _value(said: Said | None, check: str) -> bool | None:
    """The verdict as the score takes it: a rule's counts, an unsure one doesn't."""
    if said is None or said.verdict is None or value_of(said, check) == "unsure":
        return None
    value = said.verdict.get(check)
    return value if isinstance(value, bool) else None


def _question(first: Said | None, second: Said | None) -> Question:
    if first is None or second is None:
        return "unknown"
    asked = [said.judge != RULE_JUDGE for said in (first, second)]
    if not all(asked):
        return "one" if any(asked) else "none"
    if first.digest is None or second.digest is None:
        return "unknown"
    return "same" if first.digest == second.digest else "changed"


def _is_reused(first: Said | None, second: Said | None) -> bool:
    return first is not None and second is not None and first.at is not None and first.at == second.at


def _is_one_judge(first: Said | None, second: Said | None) -> bool:
    return first is None or second is None or first.judge == second.judge


def _judges_differ(one: Judged, other: Judged) -> bool:
    """Whether the runs' judges have other names or other settings."""
    settings = (run.saved.facts.get("judge_settings") for run in (one, other))
    return one.judges() != other.judges() or next(settings) != next(settings)


def _flip(unit: _Unit) -> Flip:
    return Flip(
        task_id=unit.key[0],
        attempt=unit.key[1],
        unit=unit.key[2],
        repeat=unit.repeat,
        first=unit.first,
        second=unit.second,
        question=unit.question,
        cause=unit.cause,
        url=unit.url,
    )


def _rate(units: Sequence[_Unit], settings: Settings) -> FlipRate:
    both = [unit for unit in units if unit.first is not None and unit.second is not None]
    flipped = sum(unit.first != unit.second for unit in both)
    limits = wilson(flipped, len(both), level=settings.level)
    return FlipRate(
        n=len(both),
        flipped=flipped,
        rate=flipped / len(both) if both else None,
        wilson=None if limits is None else Limits(low=limits[0], high=limits[1]),
    )


def _urls(run: Judged, common: set[tuple[str, int]]) -> dict[Key, str]:
    """The page that each unit rests on, where the submission's files tell."""
    submissions: dict[tuple[str, int], Submission] = {}
    for submission in run.saved.submissions():
        at = submission.task_id, submission.attempt
        if at in common:
            submissions[at] = submission
    found: dict[Key, str] = {}
    for key in run.rows:
        submission_of = submissions.get(key[:2])
        line = None if submission_of is None else record_line(submission_of, key[2])
        if line is None:
            continue
        try:
            row: Any = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(row, dict) and isinstance(row.get("url"), str):
            found[key] = row["url"]
    return found


def _pages(seen: tuple[Mapping[str, Seen], Mapping[str, Seen]], units: Sequence[_Unit]) -> list[PageDrift]:
    by_url: dict[str, list[_Unit]] = {}
    for unit in units:
        if unit.url is not None:
            by_url.setdefault(unit.url, []).append(unit)
    nothing = Seen()
    return [
        PageDrift(
            url=url,
            status=(first.status, second.status),
            final_url=(first.final_url, second.final_url),
            digest=(first.digest, second.digest),
            change=_change(first, second, [unit.question for unit in by_url.get(url, ())]),
            units=len({unit.key for unit in by_url.get(url, ())}),
        )
        for url in sorted({*seen[0], *seen[1]})
        for first, second in [(seen[0].get(url, nothing), seen[1].get(url, nothing))]
    ]


def _change(first: Seen, second: Seen, questions: Sequence[Question]) -> PageChange:
    """What became of a page: statuses tell first, then what was asked about it, then its bytes."""
    if None in (first.status, second.status):
        return "unknown"
    if first.status != second.status:
        return "status"
    if "changed" in questions:
        return "text"
    if None not in (first.digest, second.digest):
        return "same" if first.digest == second.digest else "body" if "same" in questions else "text"
    return "same" if "same" in questions or first.status != "ok" else "unknown"


def _notes(one: Judged, other: Judged, common: Sequence[tuple[str, int]], units: Sequence[_Unit]) -> list[str]:
    notes = [*one.problems, *other.problems]
    apart = len({*one.answers, *other.answers} - set(common))
    if apart:
        notes.append(f"{apart} answers are not the same in both runs, or in one alone; they are left out")
    judges = [", ".join(run.judges()) or "no judge" for run in (one, other)]
    if _judges_differ(one, other):
        said = "a flip may be theirs, and neither noise nor pages can be told from it"
        notes.append(f"the judges differ ({judges[0]}; {judges[1]}): {said}")
    if one.saved.facts.get("prompt_digest") != other.saved.facts.get("prompt_digest"):
        notes.append("the judges' prompts differ: a question that changed need not mean a page that did")
    if _names_differ(one, other, set(common)):
        notes.append("canonical forms differ: they stand in questions too, which then changed without the page")
    if any(unit.question == "unknown" for unit in units):
        notes.append("some rows have no digest of their question: what their flips come from can't be told")
    if units and all(unit.reused for unit in units if unit.question == "same"):
        n_same = sum(unit.question == "same" for unit in units)
        if n_same:
            notes.append(
                "every answer to the same question was taken from the store: the judge's noise is not seen"
            )
    return notes


def _names_differ(one: Judged, other: Judged, common: set[tuple[str, int]]) -> bool:
    """Whether a unit that is no yes or no (and no page) was answered otherwise."""
    for key, rows in one.rows.items():
        if key[:2] not in common or key[2].startswith(PAGE):
            continue
        theirs = other.rows.get(key, {})
        for repeat, said in rows.items():
            verdicts = said.verdict, theirs[repeat].verdict if repeat in theirs else None
            if None not in verdicts and decisive_check(rows) is None and verdicts[0] != verdicts[1]:
                return True
    return False


def as_json(found: Drift) -> str:
    """The content of drift.json."""
    content = {"schema": SCHEMA, **found.model_dump(mode="json")}
    return json.dumps(content, ensure_ascii=False, indent=1, allow_nan=False) + "\n"
