"""A task in detail: what was asked, what came, and every verdict. Pure, but for reading the task's own rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from core.model import Judgement, RunScore, Submission, Task, TaskScore
from core.preflight import money
from core.report.html import text
from core.report.html.criteria import Criteria, criteria_of
from core.report.html.folder import Folder
from core.report.html.graph import Graph, graph_of
from core.report.html.reading import mapping, sequence
from core.report.html.reading import text as text_of
from core.report.html.trees import Trees, trees_of
from core.report.html.units import Unit, units_of

#: How a grader tells how a score came about (core.parts.Grader.explain); shapes.md says what is understood.
Explain = Callable[[Task, Submission, Sequence[Judgement]], Mapping[str, Any]]
_NOTES, _FILES, _RUNS, _ATTEMPTS = 20, 12, 40, 10


@dataclass(frozen=True, slots=True)
class Lengths:
    """How much of a task a page shows: characters of each text, and rows of each list. 0 leaves a text out.

    `every`: the reasons of all repeats; else one for each different verdict on a unit.
    """

    prompt: int
    answer: int
    requirement: int
    reason: int
    rows: int
    every: bool = True


#: With all reasons; with one for each verdict; and without, where a run has more to say than a page holds.
FULL: Final = Lengths(prompt=1500, answer=1500, requirement=400, reason=240, rows=400)
SHORT: Final = Lengths(prompt=400, answer=400, requirement=240, reason=160, rows=150, every=False)
BRIEF: Final = Lengths(prompt=160, answer=0, requirement=90, reason=0, rows=60)


@dataclass(frozen=True, slots=True)
class File:
    """A file of an answer: its name, the beginning of its text, and all of its length in characters."""

    name: str
    text: str
    length: int


@dataclass(frozen=True, slots=True)
class AttemptView:
    """One answer and what was judged of it. At most one of the shapes is there; `others`: units that it lacks."""

    number: int
    status: str
    error: str
    answer: str
    files: tuple[File, ...]
    bill: str
    notes: tuple[str, ...]
    criteria: Criteria | None
    graph: Graph | None
    trees: Trees | None
    others: tuple[Unit, ...]
    more: int
    n_repeats: int


@dataclass(frozen=True, slots=True)
class Detail:
    """A task on the page. `is_brief`: shown without reasons and answers."""

    number: int
    id: str
    prompt: str
    labels: tuple[tuple[str, str], ...]
    score: TaskScore
    headline: float | None
    metrics: tuple[tuple[str, float | None], ...]
    flags: tuple[str, ...]
    notes: tuple[str, ...]
    runs: tuple[RunScore, ...]
    attempts: tuple[AttemptView, ...]
    is_brief: bool


def detail_of(folder: Folder, number: int, explain: Explain | None, lengths: Lengths) -> Detail:
    """The task that stands at place `number` (from 1) of the scores."""
    score = folder.scores[number - 1]
    task = next(iter(folder.tasks.of(score.task_id)), None)
    rows: dict[int, list[Judgement]] = {}
    for row in folder.judgements.of(score.task_id):
        rows.setdefault(row.attempt, []).append(row)
    submissions = {submission.attempt: submission for submission in folder.submissions.of(score.task_id)}
    names = [folder.headline, *folder.summary.metrics]
    attempts = sorted({*rows, *submissions})[:_ATTEMPTS]
    return Detail(
        number=number,
        id=text.name(score.task_id),
        prompt=text.cut(task.prompt, lengths.prompt) if task is not None else "",
        labels=tuple((text.name(key), text.words(value)) for key, value in list(score.labels.items())[:12]),
        score=score,
        headline=score.metrics.get(folder.headline),
        metrics=tuple((text.name(name), score.metrics.get(name)) for name in list(dict.fromkeys(names))[:24]),
        flags=tuple(map(text.name, score.flags[:_NOTES])),
        notes=tuple(text.cut(note, 400) for note in score.notes[:_NOTES]),
        runs=score.by_run[:_RUNS] if len(score.by_run) > 1 else (),
        attempts=tuple(
            _attempt(one, task, submissions.get(one), rows.get(one, []), explain, lengths, score.notes)
            for one in attempts
        ),
        is_brief=not lengths.reason,
    )


def _attempt(
    number: int,
    task: Task | None,
    submission: Submission | None,
    rows: Sequence[Judgement],
    explain: Explain | None,
    lengths: Lengths,
    known_notes: Sequence[str],
) -> AttemptView:
    units = units_of(rows, longest=lengths.reason, every=lengths.every)
    told: Mapping[str, Any] = {}
    if explain is not None and task is not None and submission is not None and submission.status != "error":
        told = _told(explain, task, submission, rows)
    criteria = criteria_of(told.get("criteria"), units, longest=lengths.requirement, most=lengths.rows)
    graph = graph_of(told.get("graph"), units, longest=lengths.requirement, most=lengths.rows)
    trees = trees_of(told, units, longest=lengths.requirement, most=lengths.rows)
    known = frozenset().union(*(shape.units for shape in (criteria, graph, trees) if shape is not None))
    others, more = text.few((unit for name, unit in units.items() if name not in known), lengths.rows)
    # what stands with the task already is not said again
    notes = [
        note
        for note in map(text_of, [told.get("by_rule"), *sequence(told.get("notes"))])
        if note not in known_notes
    ]
    error = submission.error if submission is not None else None
    return AttemptView(
        number=number,
        status=submission.status if submission is not None else "no answer in the folder",
        error=text.cut(f"{error.kind}: {error.message}" if error.message else error.kind, 400) if error else "",
        answer=text.cut(submission.text or "", lengths.answer)
        if submission is not None and lengths.answer
        else "",
        files=_files(submission, lengths),
        bill=_bill(submission, rows),
        notes=tuple(text.cut(note, 400) for note in notes if note)[:_NOTES],
        criteria=criteria,
        graph=graph,
        trees=trees,
        others=others,
        more=more,
        n_repeats=len({row.repeat for row in rows}),
    )


def _told(explain: Explain, task: Task, submission: Submission, rows: Sequence[Judgement]) -> Mapping[str, Any]:
    """What the benchmark says. Where it can't, the report shows the rows themselves and says why."""
    try:
        return mapping(explain(task, submission, rows))
    except Exception as error:  # noqa: BLE001 -- a plugin's code: whatever it raises, the numbers stand without it
        return {
            "notes": [f"the benchmark could not say how this score came about: {type(error).__name__}: {error}"]
        }


def _files(submission: Submission | None, lengths: Lengths) -> tuple[File, ...]:
    if submission is None:
        return ()
    return tuple(
        File(text.name(name), text.cut(content, lengths.answer // 2) if lengths.answer else "", len(content))
        for name, content in list(submission.files.items())[:_FILES]
    )


def _bill(submission: Submission | None, rows: Sequence[Judgement]) -> str:
    """What the attempt took, in one line; a cost that is not known says so."""
    parts = []
    if submission is not None:
        parts.append(f"solving {money(submission.cost_usd)}")
        if submission.latency_s is not None:
            parts.append(f"{submission.latency_s:.1f} s")
    costs = [row.cost_usd for row in rows if row.cost_usd is not None]
    if costs:
        parts.append(f"judging {money(sum(costs))}")
    unknown = sum(row.cost_usd is None and row.cost_source == "unknown" for row in rows)
    if unknown:
        parts.append(f"{unknown} judge calls of unknown cost")
    return ", ".join(parts)
