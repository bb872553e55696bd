"""Two answers to one task: where their texts part, and the units that were judged differently."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from typing import Final, Literal

from core.calibration.material import answer_text
from core.errors import InputError
from core.model import Submission
from core.report.html.overview import TaskRow
from core.report.html.text import LONGEST
from core.report.html.units import Unit, units_of
from core.viewer.library import ALL, Opened
from core.viewer.task_rows import submission_of

#: Characters of an answer that are compared, and words of a changed place that are compared one by one.
MOST, _MOST_WORDS = 200_000, 4_000
#: Lines beyond which only equal lines at the beginning and the end are found: a comparison takes their product.
_MOST_LINES: Final = 6_000
#: Equal lines around a change that are shown.
_AROUND: Final = 3
_WORDS: Final = re.compile(r"\s+|\w+|[^\w\s]")

Kind = Literal["same", "first", "second", "gap"]


@dataclass(frozen=True, slots=True)
class Piece:
    """A piece of text that both have, one has alone, or `n` lines of both that are left out."""

    kind: Kind
    text: str = ""
    n: int = 0


@dataclass(frozen=True, slots=True)
class Differing:
    """A unit that two runs judged differently; None: no row.

    `asked`: its text, where the benchmark tells it; `is_error`: the text states an error, so that to hold is bad.
    """

    name: str
    asked: str
    is_error: bool
    first: Unit | None
    second: Unit | None


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two: its run and its task's line."""

    opened: Opened
    row: TaskRow
    answer: Submission | None


@dataclass(frozen=True, slots=True)
class Difference:
    """Two answers side by side. `n_same`: units that were judged alike; `cut`: whether a text was longer."""

    task: str
    first: Side
    second: Side
    pieces: tuple[Piece, ...]
    units: tuple[Differing, ...]
    n_same: int
    cut: bool

    @property
    def is_same(self) -> bool:
        """Whether the texts are the same, as far as they are compared."""
        return bool(self.pieces) and all(piece.kind in ("same", "gap") for piece in self.pieces) and not self.cut


def difference(first: Opened, second: Opened, number: int, attempt: int = 1) -> Difference:
    """The task at place `number` (from 1) of the first run, in both; raises InputError where one lacks it."""
    detail = first.detail(number)
    task = detail.score.task_id
    other = next(
        (place for place, score in enumerate(second.folder.scores, start=1) if score.task_id == task), None
    )
    if other is None:
        raise InputError("the second run does not have this task", got=repr(task[:80]))
    sides = _side(first, number, attempt), _side(second, other, attempt)
    texts = [answer_text(side.answer) if side.answer is not None else "" for side in sides]
    units = [_units(side.opened, task, attempt) for side in sides]
    names = list(dict.fromkeys([*units[0], *units[1]]))
    asked = _asked(first, number)
    differing = [
        Differing(name, *asked.get(name, ("", False)), units[0].get(name), units[1].get(name))
        for name in names
        if _said(units[0].get(name)) != _said(units[1].get(name))
    ]
    return Difference(
        task=detail.id,
        first=sides[0],
        second=sides[1],
        pieces=tuple(_short(pieces(texts[0][:MOST], texts[1][:MOST]))),
        units=tuple(differing[:2000]),
        n_same=len(names) - len(differing),
        cut=any(len(text) > MOST for text in texts),
    )


def _side(opened: Opened, number: int, attempt: int) -> Side:
    try:
        answer = submission_of(opened, number, attempt)
    except InputError:
        answer = None
    return Side(opened, opened.overview.rows[number - 1], answer)


def _units(opened: Opened, task: str, attempt: int) -> dict[str, Unit]:
    rows = [row for row in opened.folder.judgements.of(task) if row.attempt == attempt]
    return units_of(rows, longest=ALL.reason)


def _said(unit: Unit | None) -> object:
    """What compares of a unit's verdicts: their share of yes, whatever the number of repeats."""
    if unit is None:
        return None
    share = unit.n_yes / unit.n if unit.n else None
    return (unit.tone, share, unit.said if unit.tone == "other" else "")


def _asked(opened: Opened, number: int) -> dict[str, tuple[str, bool]]:
    """The texts of criteria and checkpoints by unit, and whether they state an error, as far as is told."""
    found: dict[str, tuple[str, bool]] = {}
    for attempt in opened.detail(number).attempts:
        for section in attempt.criteria.sections if attempt.criteria is not None else ():
            found |= {one.unit.name: (one.text, one.is_error) for one in section.criteria if one.unit is not None}
        for node in attempt.graph.nodes if attempt.graph is not None else ():
            found |= {one.unit.name: (one.text, False) for one in node.checkpoints if one.unit is not None}
    return found


def pieces(first: str, second: str) -> Iterator[Piece]:
    """What makes the second text of the first: by lines, and by words where a place was changed."""
    before, after = first.splitlines(keepends=True), second.splitlines(keepends=True)
    for tag, i, j, k, m in _steps(before, after):
        if tag == "equal":
            yield from _same(before[i:j], is_first=i == 0, is_last=j == len(before) and m == len(after))
        else:
            yield from _changed("".join(before[i:j]), "".join(after[k:m]))


def _short(found: Iterable[Piece]) -> Iterator[Piece]:
    """The pieces, in parts that a template puts out whole."""
    for piece in found:
        for start in range(0, max(1, len(piece.text)), LONGEST):
            yield replace(piece, text=piece.text[start : start + LONGEST])


def _steps(before: Sequence[str], after: Sequence[str]) -> Sequence[tuple[str, int, int, int, int]]:
    if len(before) <= _MOST_LINES and len(after) <= _MOST_LINES:
        return SequenceMatcher(None, before, after, autojunk=True).get_opcodes()
    return [("replace", 0, len(before), 0, len(after))]


def _same(lines: Sequence[str], *, is_first: bool, is_last: bool) -> Iterator[Piece]:
    head = 0 if is_first else _AROUND
    tail = 0 if is_last else _AROUND
    if len(lines) <= head + tail + 1:
        yield Piece("same", "".join(lines))
        return
    if head:
        yield Piece("same", "".join(lines[:head]))
    yield Piece("gap", n=len(lines) - head - tail)
    if tail:
        yield Piece("same", "".join(lines[-tail:]))


def _changed(before: str, after: str) -> Iterator[Piece]:
    words = _WORDS.findall(before), _WORDS.findall(after)
    if not before or not after or max(map(len, words)) > _MOST_WORDS:
        yield from _only(before, after)
        return
    matcher = SequenceMatcher(None, words[0], words[1], autojunk=True)
    if matcher.quick_ratio() < 0.4:  # little in common: single words that agree only disturb
        yield from _only(before, after)
        return
    for tag, i, j, k, m in matcher.get_opcodes():
        if tag == "equal":
            yield Piece("same", "".join(words[0][i:j]))
        else:
            yield from _only("".join(words[0][i:j]), "".join(words[1][k:m]))


def _only(before: str, after: str) -> Iterator[Piece]:
    if before:
        yield Piece("first", before)
    if after:
        yield Piece("second", after)


def common_tasks(first: Opened, second: Opened) -> list[tuple[TaskRow, TaskRow]]:
    """The tasks that both runs have, in the order of the first."""
    there: Mapping[str, int] = {score.task_id: place for place, score in enumerate(second.folder.scores)}
    return [
        (row, second.overview.rows[there[score.task_id]])
        for row, score in zip(first.overview.rows, first.folder.scores, strict=True)
        if score.task_id in there
    ]
