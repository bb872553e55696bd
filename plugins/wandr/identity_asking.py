"""Asking the judge who is who: canonical forms first (the records' questions show them), duplicates beside them.

Each answer becomes a row. A canonical form is asked for where the key wants a model and the norm alone does not
settle it (a member of a closed set is settled); duplicates are asked for once a key, over all of the task's
canonical values, in blocks where they are many.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import Any

from core.digest import json_digest
from core.flow import as_done
from core.judge.question import Answer, Question
from core.judge.rows import judgement
from core.model import Failure, Judgement, Submission, Usage
from plugins.wandr.blocks import LARGEST, blocks
from plugins.wandr.identity import INCOMPLETE, Raws, by_norm, clusters
from plugins.wandr.identity_prompt import canonical_question, duplicates_question
from plugins.wandr.model import Key
from plugins.wandr.norms import NOT_FOUND

Ask = Callable[[Question], Awaitable[Answer]]


async def canonical_rows(
    ask: Ask, width: int, submission: Submission, repeat: int, keys: Mapping[str, Key], raws: Raws
) -> AsyncIterator[Judgement]:
    """A row for each raw value whose canonical form the judge was asked for, as answers come."""
    questions = [
        question
        for name, values in raws.items()
        for question in _canonical(submission, repeat, keys[name], values)
    ]
    async with aclosing(as_done(questions, ask, width=width)) as answers:
        async for question, answer in answers:
            for unit in question.units:
                yield judgement(question, unit, checked(question, answer), _canonical_verdict)


def _canonical(submission: Submission, repeat: int, key: Key, raws: Sequence[str]) -> list[Question]:
    if key.canonicalize is None or not key.canonicalize.llm:
        return []
    alike: dict[str, list[str]] = {}
    normal_of: dict[str, str] = {}
    for raw in raws:
        normal = by_norm(key, raw)
        if key.canonicalize.members and normal != NOT_FOUND:
            continue
        # a norm that finds nothing tells nothing apart
        same = raw if normal == NOT_FOUND else normal
        alike.setdefault(same, []).append(raw)
        normal_of[same] = normal
    return [canonical_question(submission, repeat, key, values, normal_of[same]) for same, values in alike.items()]


async def duplicate_rows(
    ask: Ask, width: int, submission: Submission, repeat: int, keys: Mapping[str, Key], canonical: Raws
) -> AsyncIterator[Judgement]:
    """One row for each key whose duplicates a judge is to find. `canonical`: its distinct canonical values."""
    questions: list[tuple[Question, Sequence[str]]] = []
    for name, values in canonical.items():
        key = keys[name]
        if key.deduplicate is None or not key.deduplicate.llm:
            continue
        found = sorted(value for value in values if value != NOT_FOUND)
        # thousands of values are compared with each other: not on the loop's thread
        places = blocks(found) if len(found) <= LARGEST else await asyncio.to_thread(blocks, found)
        for block in places:
            listed = [found[at] for at in block]
            questions.append((duplicates_question(submission, repeat, key, listed), listed))
    waiting: dict[str, int] = {}
    for asked, _ in questions:
        waiting[asked.units[0]] = waiting.get(asked.units[0], 0) + 1
    rows: dict[str, dict[str, Judgement]] = {}

    async def one(item: tuple[Question, Sequence[str]]) -> Answer:
        return await ask(item[0])

    async with aclosing(as_done(questions, one, width=width)) as answers:
        async for (question, shown), answer in answers:
            unit = question.units[0]
            row = judgement(question, unit, checked(question, answer), _groups_verdict(shown))
            rows.setdefault(unit, {})[question.digest] = row
            waiting[unit] -= 1
            if not waiting[unit]:
                done = rows.pop(unit)
                yield joined([done[digest] for digest in sorted(done)])


async def recorded_rows(
    ask: Ask, submission: Submission, repeat: int, units: Iterable[str]
) -> AsyncIterator[Judgement]:
    """What a file of judgements says of these units; what it does not have gives no row, a null verdict does."""
    question = Question(
        task_id=submission.task_id,
        attempt=submission.attempt,
        repeat=repeat,
        units=tuple(units),
        system="",
        context="",
        ask="",
        schema={},
    )
    answer = await ask(question)
    for unit in question.units:
        recorded = answer.verdicts.get(unit)
        if recorded is None or not recorded.absent:
            yield judgement(question, unit, answer, dict)


def checked(question: Question, answer: Answer) -> Answer:
    """The answer, with an error where the question itself calls it malformed: not every judge looks."""
    reason = question.fault(answer.value) if question.fault is not None and answer.value is not None else None
    return (
        answer if reason is None else replace(answer, value=None, error=Failure(kind="malformed", message=reason))
    )


def joined(rows: Sequence[Judgement]) -> Judgement:
    """The rows of a key's blocks as one: groups that share a value are one, what it cost is added up.

    Blocks that failed leave their values as they are, and the row says that it is incomplete; where all failed the
    row has the first one's error.
    """
    if len(rows) == 1:
        return rows[0]
    good = [row.verdict for row in rows if row.verdict is not None]
    costs = [row.cost_usd for row in rows]
    verdict: dict[str, Any] | None = None
    if good:
        verdict = {"groups": _by_label(clusters(group for found in good for group in found["groups"]))}
        if len(good) < len(rows):
            verdict[INCOMPLETE] = True
    reasons = [f"[block {at}] {row.explanation}" for at, row in enumerate(rows, start=1) if row.explanation]
    return rows[0].model_copy(
        update={
            "verdict": verdict,
            "error": None if good else rows[0].error,
            "explanation": "\n".join(reasons) or None,
            "raw": None,
            "usage": _sum([row.usage for row in rows if row.usage is not None]),
            "cost_usd": None if None in costs else math.fsum(cost for cost in costs if cost is not None),
            "cost_source": next((row.cost_source for row in rows if row.cost_usd is None), rows[0].cost_source),
            "prompt_digest": json_digest([row.prompt_digest for row in rows]),
        }
    )


def _canonical_verdict(answer: Mapping[str, Any]) -> Mapping[str, Any]:
    return {"canonical": answer["canonical"].strip()}


def _groups_verdict(shown: Sequence[str]) -> Callable[[Mapping[str, Any]], Mapping[str, Any]]:
    """Groups of numbers as groups of values; values that are alone are left out."""

    def read(answer: Mapping[str, Any]) -> Mapping[str, Any]:
        groups = (sorted(group) for group in answer["groups"] if len(group) > 1)
        return {"groups": [[shown[number - 1] for number in group] for group in sorted(groups)]}

    return read


def _by_label(labels: Mapping[str, str]) -> list[list[str]]:
    groups: dict[str, list[str]] = {}
    for value, label in sorted(labels.items()):
        groups.setdefault(label, []).append(value)
    return list(groups.values())


def _sum(usages: Sequence[Usage]) -> Usage | None:
    if not usages:
        return None
    names = list(Usage.model_fields)
    known = {name: [value for usage in usages if (value := getattr(usage, name)) is not None] for name in names}
    return Usage(**{name: sum(values) for name, values in known.items() if values})
