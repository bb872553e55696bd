"""The blind sheet: what a labeller needs to decide, and nothing of what a judge said.

No verdict, explanation or judge's name stands in it, and its rows are shuffled. `id` names a check of a verdict on
one answer, so that a sheet that comes back finds its rows by itself; no key file is written.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from core.calibration import fold
from core.calibration.build import grader_of
from core.calibration.cells import MOST, as_csv, cut
from core.calibration.judged import APART, Judged, Key, checks_of, decisive_check, majority, read_judged
from core.calibration.material import Shown, answer_text, record_line, shown
from core.calibration.sample import Allocation, Stratified, draw
from core.errors import InputError
from core.model import Submission, Task
from core.parts import Grader
from core.plugin_manager import PluginManager
from core.runfolder import SUBMISSIONS, replace_file

COLUMNS: Final = (
    *("id", "run", "task_id", "attempt", "unit", "check", "kind", "prompt", "asked", "shown", "note"),
    *("label", "labeller", "comment", "weight"),
)
#: What strata may be made of.
PER: Final = ("task", "verdict", "kind")
#: Every check of a verdict.
EVERY: Final = "all"
#: Characters of a task's prompt that a row shows; all of it stands in `shown` where the judge saw it.
_PROMPT: Final = 4_000


@dataclass(frozen=True)
class Wanted:
    """What is drawn. `checks`: names of checks, `all`, or none for the one that decides."""

    n: int
    seed: int = 0
    per: tuple[str, ...] = PER
    allocation: Allocation = "proportional"
    checks: tuple[str, ...] = ()
    store: Path | None = None


@dataclass(frozen=True)
class Drawn:
    """A sheet's content, and how it came about. `n_units`: verdicts of judges that could have been drawn.

    `by_task`: of each task that has such verdicts, how many rows ask for the check that decides, 0 too.
    """

    rows: tuple[Mapping[str, str], ...]
    n_units: int
    n_drawn: int
    n_exact: int
    apart: Mapping[str, int]
    by_task: Mapping[str, int]


def write_sheet(path: Path, folder: Path, wanted: Wanted) -> Drawn:
    """Draw from a run folder and write the sheet; raises InputError."""
    if path.exists():
        raise InputError("the file exists: it may hold labels", where=f"--out {path}", expected="a new file")
    drawn = draw_sheet(read_judged(folder), wanted, PluginManager.discover())
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, [as_csv(COLUMNS, drawn.rows)])
    except OSError as error:
        raise InputError(f"can't be written: {error.strerror}", where=f"--out {path}") from None
    return drawn


def draw_sheet(run: Judged, wanted: Wanted, plugins: PluginManager) -> Drawn:
    """The rows of a sheet. Raises InputError where there is nothing to draw, and for an unknown check."""
    grader = grader_of(run, plugins)
    tasks = {task.id: task for task in run.saved.tasks}
    submissions = {(found.task_id, found.attempt): found for found in run.saved.submissions()}
    kinds = _Kinds(run, grader, tasks, submissions)
    items: dict[tuple[str, ...], tuple[Key, str]] = {}
    strata: list[Stratified] = []
    apart: dict[str, int] = dict.fromkeys(APART, 0)
    families = {_family(key) for key, rows in run.rows.items() if decisive_check(rows) is not None}
    for key, rows in run.rows.items():
        if _family(key) not in families:
            continue  # never a yes or no: canonical forms, pages
        check = decisive_check(rows)
        value = majority(rows, check or "")
        if not isinstance(value, bool):
            apart[value] += 1
        if check is None or value in ("missing", "by_rule", "unsure"):
            continue
        parts = {"task": key[0], "verdict": str(value), "kind": kinds.of(key) if "kind" in wanted.per else ""}
        name = (key[0], f"{key[1]:06d}", key[2])
        items[name] = key, check
        strata.append(Stratified(name, tuple(parts[part] for part in wanted.per)))
    if not strata:
        raise InputError("the run has no verdict of a judge", where=str(run.path))
    chosen = draw(strata, wanted.n, seed=wanted.seed, allocation=wanted.allocation)
    drawn = [(*items[item.key], weight) for item, weight in chosen]
    # by task, so that a labeller reads an answer once; at random within, so that no order tells of strata
    random.Random(wanted.seed + 1).shuffle(drawn)  # noqa: S311  # likewise
    drawn.sort(key=lambda item: tasks[item[0][0]].index if item[0][0] in tasks else -1)
    seen = shown(run, [key for key, _, _ in drawn], plugins, store=wanted.store)
    rows_out = [
        _row(run, key, check, weight, tasks.get(key[0]), submissions.get(key[:2]), kinds.of(key), seen.get(key))
        for key, decisive, weight in drawn
        for check in _checks(run, key, decisive, wanted.checks)
    ]
    if not rows_out:
        names = sorted(
            {
                name
                for key, _, _ in drawn
                for said in run.rows[key].values()
                for name in checks_of(said.verdict or {})
            }
        )
        raise InputError(
            "no verdict has such a check", where="--check", expected=f"one of {', '.join(names)}, or {EVERY}"
        )
    n_exact = sum(found.exact for found in seen.values())
    asked = Counter(key[0] for key, decisive, _ in drawn if decisive in _checks(run, key, decisive, wanted.checks))
    by_task = {key[0]: asked[key[0]] for key, _ in items.values()}
    return Drawn(tuple(rows_out), len(strata), len(drawn), n_exact, apart, by_task)


class _Kinds:
    """A unit's kind as one text, each asked of the fold once."""

    def __init__(
        self,
        run: Judged,
        grader: Grader,
        tasks: Mapping[str, Task],
        submissions: Mapping[tuple[str, int], Submission],
    ) -> None:
        self._run, self._grader, self._tasks, self._submissions = run, grader, tasks, submissions
        self._known: dict[tuple[str, str], str] = {}

    def of(self, key: Key) -> str:
        # a record's place is in its name, and folding a task of many records for each would take long
        family, _, number = key[2].rpartition("/")
        name = (key[0], family if number.isdecimal() and "/" in family else key[2])
        if name not in self._known:
            self._known[name] = self._asked(key)
        return self._known[name]

    def _asked(self, key: Key) -> str:
        task, submission = self._tasks.get(key[0]), self._submissions.get(key[:2])
        verdict = next((said.verdict for said in self._run.rows[key].values() if said.verdict is not None), None)
        if task is None or submission is None or verdict is None:
            return ""
        groups = fold.groups_of(self._grader, task, submission, key[2], verdict)
        return "; ".join(f"{group} {member}" for group, member in groups.items())


def _family(key: Key) -> str:
    return key[2].partition("/")[0]


def _checks(run: Judged, key: Key, decisive: str, asked: Sequence[str]) -> list[str]:
    if not asked:
        return [decisive]
    names = list(dict.fromkeys(name for said in run.rows[key].values() for name in checks_of(said.verdict or {})))
    return names if EVERY in asked else [name for name in names if name in asked]


def _row(
    run: Judged,
    key: Key,
    check: str,
    weight: float,
    task: Task | None,
    submission: Submission | None,
    kind: str,
    seen: Shown | None,
) -> dict[str, str]:
    """One row: what the judge was shown, or the answer itself where that can't be made again."""
    task_id, attempt, unit = key
    pointer = f"all of it is in {SUBMISSIONS}, task {task_id}, attempt {attempt}"
    asked, context, note = "", "", ""
    if seen is not None:
        asked, context = seen.ask, seen.context
        note = "" if seen.exact else "made again from the folder; not to the letter what the judge was shown"
    elif submission is not None:
        line = record_line(submission, unit)
        asked, context = line or unit, "" if line else answer_text(submission)
        note = "what the judge was shown can't be made again here: this is the submission's own text"
    cells: dict[str, Any] = {
        "id": run.sheet_id(key, check),
        "run": run.run_id,
        "task_id": task_id,
        "attempt": attempt,
        "unit": unit,
        "check": check,
        "kind": _readable(kind),
        "prompt": _readable(cut(task.prompt if task is not None else "", _PROMPT)),
        "asked": _readable(cut(asked, MOST, rest=pointer)),
        "shown": _readable(cut(context, MOST, rest=pointer)),
        "note": note,
        "weight": repr(weight),
    }
    return {name: str(value) for name, value in cells.items()}


def _readable(text: str) -> str:
    """Without half characters, which a spreadsheet may refuse the whole file for; ids are kept as they are."""
    return text.encode("utf-8", "replace").decode("utf-8")
