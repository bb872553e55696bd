"""A task's trees and verdicts as flat rows, for lists that draw only what can be seen.

A tree of thousands of records is sent once, a row each, in the order in which it is read; `depth` says what
stands below what. What a row holds beyond a line is asked for when it is opened.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from core.calibration.material import record_line
from core.errors import InputError
from core.model import Judgement, Submission
from core.report.html.details import AttemptView, Detail
from core.report.html.reading import mapping, sequence
from core.report.html.reading import text as text_of
from core.report.html.text import LONGEST, name, said, visible
from core.report.html.trees import Branch, Level, Scores, Tree, TreeNode, lines
from core.report.html.units import Unit, units_of
from core.strict_json import decode
from core.viewer.library import Opened

#: Characters of one text of a judgement, and of an answer or a file of it.
MOST_RAW, MOST_ANSWER = 200_000, 2_000_000


def attempt_of(detail: Detail, number: int) -> AttemptView:
    """One attempt of a task; raises InputError where there is none."""
    found = next((attempt for attempt in detail.attempts if attempt.number == number), None)
    if found is None:
        raise InputError(f"the task has no attempt {number}")
    return found


def tree_rows(attempt: AttemptView) -> list[dict[str, Any]]:
    """Every tree of an attempt, row after row."""
    trees = attempt.trees.trees if attempt.trees is not None else ()
    return [row for tree in trees for row in _tree(tree)]


def _tree(tree: Tree) -> Iterator[dict[str, Any]]:
    title = f"Repeat {tree.repeat}: {', '.join(tree.readings)}"
    yield _row(0, "tree", title, "" if tree.node is not None else tree.reason or "no tree")
    if tree.node is not None:
        yield from _node(tree.node, 1)


def _node(node: TreeNode, depth: int) -> Iterator[dict[str, Any]]:
    alone = f"without its subtasks {_numbers(node.standalone)}" if node.subtasks else ""
    yield _row(depth, "node", node.name, alone, scores=_numbers(node.scores))
    yield from _level(node.level, depth + 1)
    for subtask in node.subtasks:
        yield from _node(subtask, depth + 1)


def _level(level: Level, depth: int) -> Iterator[dict[str, Any]]:
    counts = [
        f"{level.provided} given",
        f"{level.required} required",
        *(f"{level.n_duplicates} duplicates" for _ in range(level.n_duplicates > 0)),
        *(f"{level.pads} not there (count 0)" for _ in range(level.pads > 0)),
        *(f"{level.surplus} surplus (in precision alone)" for _ in range(level.surplus > 0)),
        *(f"{level.missing} without a value" for _ in range(level.missing > 0)),
    ]
    yield _row(depth, "level", level.key, ", ".join(counts))
    for branch in level.children:
        yield from _branch(branch, depth + 1, is_twin=False)


def _branch(branch: Branch, depth: int, *, is_twin: bool) -> Iterator[dict[str, Any]]:
    tags = ["duplicate"] if is_twin else []
    if branch.level is None:
        marks = [[what, tone] for what, tone in branch.outcomes]
        row = _row(depth, "leaf", branch.value or "no value", "", tags=tags, marks=marks)
        yield {**row, "unit": branch.unit.name if branch.unit is not None else branch.unit_name}
    else:
        factors = "; ".join(
            f"× {factor.node} {'has no such entity: 0' if factor.value is None else factor.value}"
            for factor in branch.factors
        )
        yield _row(depth, "entity", branch.value or "no value", factors, tags=tags, scores=_numbers(branch.scores))
        yield from _level(branch.level, depth + 1)
    for twin in branch.duplicates:
        yield from _branch(twin, depth, is_twin=True)


def _row(
    depth: int,
    kind: str,
    text: str,
    note: str,
    *,
    scores: str = "",
    tags: Sequence[str] = (),
    marks: Sequence[Sequence[str]] = (),
) -> dict[str, Any]:
    row: dict[str, Any] = {"depth": depth, "kind": kind, "text": visible(text)}
    extra = {"note": visible(note), "scores": scores, "tags": list(tags), "marks": list(marks)}
    return row | {key: value for key, value in extra.items() if value}


def _numbers(scores: Sequence[Scores]) -> str:
    return "; ".join(f"{lineage} {line}" for lineage, line in lines(scores))


def record_of(submission: Submission, unit: str) -> dict[str, Any] | None:
    """What the system wrote of the record that a unit names; None where the unit names none.

    `excerpts` and `url` are as they were written, since they are looked for in a page.
    """
    line = record_line(submission, unit)
    if line is None:
        return None
    try:
        told = decode(line)
    except ValueError:
        told = None
    if not isinstance(told, Mapping):
        return {"line": visible(line[:MOST_RAW]), "item": [], "answer": [], "url": "", "excerpts": []}
    return {
        "line": visible(line[:MOST_RAW]),
        "item": _fields(told.get("item")),
        "answer": _fields(told.get("answer")),
        "url": text_of(told.get("url")),
        "excerpts": [text_of(excerpt) for excerpt in sequence(told.get("excerpts"))],
    }


def _fields(value: Any) -> list[list[str]]:
    return [[name(visible(key)), visible(said(told, LONGEST))] for key, told in mapping(value).items()]


def unit_rows(opened: Opened, number: int, attempt: int) -> list[dict[str, Any]]:
    """A line for each unit of an attempt: its verdicts, repeat by repeat. `is_error`: to hold is bad."""
    rows = judgements_of(opened, number, attempt)
    criteria = attempt_of(opened.detail(number), attempt).criteria
    errors = {
        one.unit.name
        for section in (criteria.sections if criteria is not None else ())
        for one in section.criteria
        if one.is_error and one.unit is not None
    }
    return [_unit(unit, unit.name in errors) for unit in units_of(rows, longest=200, every=False).values()]


def _unit(unit: Unit, is_error: bool) -> dict[str, Any]:  # noqa: FBT001
    return {
        "unit": unit.name,
        "shown": visible(unit.name),
        "said": visible(unit.said),
        "tone": unit.tone,
        "marks": [mark.tone for mark in unit.marks],
        "split": unit.is_split,
        "is_error": is_error,
        "why": visible(unit.reasons[0].text) if unit.reasons else "",
    }


def judgements_of(opened: Opened, number: int, attempt: int) -> list[Judgement]:
    """The rows of one attempt at the task at place `number`."""
    task_id = opened.detail(number).score.task_id
    return [row for row in opened.folder.judgements.of(task_id) if row.attempt == attempt]


def submission_of(opened: Opened, number: int, attempt: int) -> Submission:
    """The answer of one attempt; raises InputError where the folder has none."""
    task_id = opened.detail(number).score.task_id
    for submission in opened.folder.submissions.of(task_id):
        if submission.attempt == attempt:
            return submission
    raise InputError("the folder has no answer of this attempt")


def judgement_json(row: Judgement) -> dict[str, Any]:
    """One verdict with all that the folder has on it."""
    usage = row.usage.model_dump(exclude_none=True) if row.usage is not None else {}
    return {
        "repeat": row.repeat,
        "verdict": None if row.verdict is None else visible(said(dict(row.verdict), MOST_RAW)),
        "error": visible(f"{row.error.kind}: {row.error.message}"[:2000]) if row.error is not None else "",
        "judge": visible(row.judge or ""),
        "explanation": visible((row.explanation or "")[:MOST_RAW]),
        "raw": visible((row.raw or "")[:MOST_RAW]),
        "facts": [
            [key, visible(str(value))]
            for key, value in (
                *((f"{kind} tokens", count) for kind, count in usage.items()),
                ("seconds", row.latency_s),
                ("dollars", row.cost_usd),
                ("price", row.cost_source),
                ("asked at", row.judged_at),
                ("question", row.prompt_digest),
            )
            if value is not None
        ],
    }


def answer_json(submission: Submission) -> dict[str, Any]:
    """An answer, whole but for what no browser should hold."""
    usage = submission.usage.model_dump(exclude_none=True) if submission.usage is not None else {}
    facts = {
        "system": submission.system,
        "effort": submission.effort,
        "seconds": submission.latency_s,
        "dollars": submission.cost_usd,
        **{f"{kind} tokens": count for kind, count in usage.items()},
        **dict(submission.settings),
    }
    return {
        "text": _long(submission.text or ""),
        "files": [{"name": visible(file), "text": _long(text)} for file, text in submission.files.items()],
        "citations": [
            {"url": visible(one.url), "title": visible(one.title or ""), "excerpt": visible(one.excerpt or "")}
            for one in submission.citations[:2000]
        ],
        "facts": [[visible(key), visible(said(value, 2000))] for key, value in facts.items() if value is not None],
    }


def _long(text: str) -> str:
    if len(text) <= MOST_ANSWER:
        return visible(text)
    return visible(f"{text[:MOST_ANSWER]}\n[… {len(text) - MOST_ANSWER:,} more characters, in submissions.jsonl]")
