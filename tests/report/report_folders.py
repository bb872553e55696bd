"""Run folders with known contents, any word of which can be chosen, and pages as a parser sees them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from core.model import Judgement, Submission, Task

#: What stands in a field: called with the field's name.
Word = Callable[[str], str]


def write_folder(
    path: Path,
    word: Word = lambda name: name,
    *,
    tasks: int = 2,
    units: int = 2,
    repeats: int = 2,
    values: Sequence[float | None] = (40.0, 60.0),
    statuses: Sequence[str] = ("scored", "scored"),
    explanation: str | None = None,
    requirement: str | None = None,
    met: Callable[[int, int, int], bool | None] = lambda task, unit, repeat: (task + unit + repeat) % 2 == 0,
    changes: Mapping[str, Any] | None = None,
) -> Path:
    """Write a folder. `met` says what each judgement is; `changes` are laid over summary.json."""
    path.mkdir(parents=True)
    names = [f"{place:04} {word('task id')}" for place in range(tasks)]
    metric = word("metric")
    labels = {word("label"): word("label value"), "many": [word("label value"), "b"]}
    _json(path / "run.json", "run", _run(word, metric, repeats))
    shown = [value for value in (values[place % len(values)] for place in range(tasks)) if value is not None]
    mean = sum(shown) / len(shown) if shown else None
    _json(path / "summary.json", "summary", {**_summary(word, metric, tasks, len(shown), mean), **(changes or {})})
    _rows(
        path / "tasks.jsonl",
        "task",
        (
            {"id": name, "prompt": word("prompt"), "labels": labels, "index": place,
             "payload": {"units": [f"criterion/{unit} {word('unit')}" for unit in range(units)],
                         "text": requirement or word("requirement")}}
            for place, name in enumerate(names)
        ),
    )  # fmt: skip
    _rows(
        path / "scores.jsonl",
        "score",
        (
            _score(word, name, metric, values[place % len(values)], statuses[place % len(statuses)], labels, units * repeats)
            for place, name in enumerate(names)
        ),
    )  # fmt: skip
    _rows(path / "submissions.jsonl", "submission", (_submission(word, name) for name in names))
    _rows(
        path / "judgements.jsonl",
        "judgement",
        (
            _judgement(word, names[place], unit, repeat, met(place, unit, repeat), explanation)
            for place in range(tasks)
            for repeat in range(1, repeats + 1)
            for unit in range(units)
        ),
    )
    return path


def told(word: Word = lambda name: name) -> Callable[[Task, Submission, Sequence[Judgement]], dict[str, Any]]:
    """An `explain` that gives every shape about the same units."""

    def explain(task: Task, submission: Submission, judgements: Sequence[Judgement]) -> dict[str, Any]:
        units = list(task.payload["units"])
        text = task.payload["text"]
        scores = {word("lineage"): {f"soft_{word('score')}": 0.5, "soft_recall": None}}
        leaf = {"leaf": 0, "value": word("address"), "identity": word("identity"), word("outcome"): True}
        entity = {
            "value": word("entity"),
            "identity": word("identity"),
            "scores": scores,
            "factors": [{"node": word("node"), "value": word("entity"), "candidates": 2, "scores": scores},
                        {"node": word("node"), "value": None, "candidates": 0, "scores": scores}],
            "level": {"key": word("key"), "required": 2, "provided": 1, "duplicates": 0, "pads": 1, "surplus": 0,
                      "missing": 0, "scores": scores, "children": [leaf]},
        }  # fmt: skip
        level = {"key": word("key"), "required": 1, "provided": 2, "duplicates": 1, "pads": 0, "surplus": 1,
                 "missing": 1, "scores": scores, "children": [entity, entity]}  # fmt: skip
        tree = {"name": word("node"), "scores": scores, "standalone": scores, "level": level,
                "subtasks": [{"name": word("node"), "scores": scores, "standalone": scores, "level": level, "subtasks": []}]}  # fmt: skip
        ids = [f"n{place} {word('node')}" for place in range(3)]
        return {
            "by_rule": word("rule"),
            "notes": [word("note of explain")],
            "criteria": [{"id": word("section"), "title": word("section"), "criteria": [
                {"unit": unit, "text": text, "weight": 5 - 8 * (place % 2), "contribution": 1.25}
                for place, unit in enumerate(units)]}],
            "graph": {
                "nodes": [{"id": name, "kind": "analytical" if place else word("kind"), "text": word("step"),
                           "weight": 0.25, "score": 0.5, "checkpoints": [{"unit": unit, "text": word("checkpoint")} for unit in units[:1]]}
                          for place, name in enumerate(ids)],
                "edges": [[ids[0], ids[1], word("edge")], [ids[0], ids[2], "weak"], [ids[1], ids[2], "hard"]],
                "schemes": {word("scheme"): 50.0, "other": None},
                "scheme": word("scheme"),
                "note": word("note of graph"),
            },
            "leaves": units,
            "records": {unit: {"item": {word("item"): word("value")}, "answer": {word("item"): word("value")},
                               "url": word("url"), "excerpts": [word("excerpt")]} for unit in units},
            "repeats": [{"repeat": 1, word("reading"): {"tree": tree, "reason": None},
                         "other": {"tree": None, "reason": word("reason")}}],
        }  # fmt: skip

    return explain


def _run(word: Word, metric: str, repeats: int) -> dict[str, Any]:
    return {
        "run_id": "r",
        "leadline": word("version"),
        "config_digest": word("digest"),
        "started_at": word("start"),
        "finished_at": word("end"),
        "exit_code": 3,
        "starts": 2,
        "plan": {"repeats": repeats},
        "config": {"benchmark": {"name": word("benchmark"), "headline": metric, "source": word("source")}},
    }


def _summary(word: Word, metric: str, n_tasks: int, n_scored: int, mean: float | None) -> dict[str, Any]:
    numbers = {
        "value": mean,
        "low": None if mean is None else mean - 10,
        "high": None if mean is None else mean + 10,
    }
    return {
        "benchmark": word("benchmark"),
        "system": word("system"),
        "effort": word("effort"),
        "judge": {
            "name": word("judge"),
            "model": word("model"),
            "family": word("family"),
            "settings": {word("setting"): word("setting value"), "list": [word("setting value")]},
            "prompt_digest": word("prompt digest"),
            "repeats": 2,
            "rows": {word("judge"): 7},
            "dates": {"first": word("first date"), "last": word("last date")},
        },
        "attempts": 1,
        "n_tasks": n_tasks,
        "n_scored": n_scored,
        "n_graded": 7,
        "n_expected": 8,
        "coverage": 0.875,
        "coverage_by": {word("coverage"): {word("sign"): {"coverage": 0.5, "n_graded": 1, "n_expected": 2}}},
        "metrics": {
            metric: {**numbers, "sd": 1.5, "n": n_scored, "estimator": word("estimator")},
            "second": {"value": None, "n": 0, "estimator": word("estimator")},
        },
        "groups": {
            word("label"): {word("label value"): {metric: mean, "n_tasks": n_tasks}},
            word("group"): {word("member"): {word("column"): 0.25}, "zero": {word("column"): None}},
        },
        "status": {"scored": n_scored, word("status"): 1},
        "submissions": {word("submission status"): n_tasks},
        "errors": {word("error"): 3, "judge timeout": 1},
        "cost": {"usd": 1.25, "system_usd": 1.0, "judge_usd": 0.25, "unknown_calls": 2, "source": word("price source")},
        "latency": {"median_s": 12.5, "p90_s": 20.0, "n": 2},
        "warnings": [word("warning"), f"2 {word('warning')}"],
    }  # fmt: skip


def _score(
    word: Word, name: str, metric: str, value: float | None, status: str, labels: Mapping[str, Any], expected: int
) -> dict[str, Any]:
    return {
        "task_id": name,
        "metrics": {metric: value, "second": None},
        "by_run": [
            {"attempt": 1, "repeat": repeat, "metrics": {metric: value}, "n_graded": 1, "n_expected": 1}
            for repeat in (1, 2)
        ],
        "n_graded": expected - 1,
        "n_expected": expected,
        "status": status,
        "flags": [word("flag")],
        "labels": labels,
        "coverage_by": {},
        "notes": [word("note")],
        "cost_usd": 0.5,
        "latency_s": 12.5,
    }


def _submission(word: Word, name: str) -> dict[str, Any]:
    return {
        "task_id": name,
        "attempt": 1,
        "status": "incomplete",
        "text": word("answer"),
        "files": {word("file"): word("content")},
        "citations": [{"url": word("url"), "title": word("title")}],
        "latency_s": 12.5,
        "cost_usd": None,
        "error": {"kind": word("error kind"), "message": word("error message")},
        "system": word("system"),
        "effort": word("effort"),
        "settings": {word("setting"): word("setting value")},
    }


def _judgement(
    word: Word, task: str, unit: int, repeat: int, met: bool | None, explanation: str | None
) -> dict[str, Any]:
    return {
        "task_id": task,
        "attempt": 1,
        "unit": f"criterion/{unit} {word('unit')}",
        "repeat": repeat,
        "verdict": None if met is None else {"met": met, word("check"): word("verdict")},
        "error": {"kind": word("error kind"), "message": word("error message")} if met is None else None,
        "judge": word("judge"),
        "explanation": explanation or f"{repeat} {word('explanation')}",
        "raw": word("raw reply"),
        "cost_usd": 0.001,
        "cost_source": "computed",
    }


def _json(path: Path, schema: str, content: Mapping[str, Any]) -> None:
    path.write_text(json.dumps({"schema": f"leadline/{schema}/1", **content}), encoding="utf-8")


def _rows(path: Path, schema: str, rows: Iterable[Mapping[str, Any]]) -> None:
    with path.open("w", encoding="utf-8") as file:
        file.writelines(json.dumps({"schema": f"leadline/{schema}/1", **row}) + "\n" for row in rows)


@dataclass
class Element:
    """One element of a page: its text is its own and that of all below it."""

    tag: str
    attributes: dict[str, str]
    children: list[Element] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        return " ".join("".join(self.texts).split())

    def walk(self) -> Iterator[Element]:
        yield self
        for child in self.children:
            yield from child.walk()

    def all(self, tag: str, **attributes: str) -> list[Element]:
        """The elements below with this tag and these attributes (`class_` for class)."""
        wanted = {name.rstrip("_"): value for name, value in attributes.items()}
        return [
            one
            for one in self.walk()
            if one.tag == tag and all(one.attributes.get(name) == value for name, value in wanted.items())
        ]

    def one(self, tag: str, **attributes: str) -> Element:
        found = self.all(tag, **attributes)
        assert len(found) == 1, f"{len(found)} × {tag} {attributes}"
        return found[0]


_VOID = frozenset({"meta", "link", "input", "br", "hr", "img"})


class Page(HTMLParser):
    """A page as a strict reader takes it: every element that needs an end has one."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.root = Element("", {})
        self._open = [self.root]
        self.feed(html)
        self.close()
        assert [one.tag for one in self._open] == [""], "every element is closed"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert len({name for name, _ in attrs}) == len(attrs), f"an attribute twice in {tag}"
        element = Element(tag, {name: value or "" for name, value in attrs})
        self._open[-1].children.append(element)
        if tag not in _VOID:
            self._open.append(element)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in _VOID:
            self._open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self._open[-1].tag == tag, f"</{tag}> where {self._open[-1].tag} is open"
        self._open.pop()

    def handle_data(self, data: str) -> None:
        for element in self._open:
            element.texts.append(data)

    def skeleton(self) -> list[tuple[str, tuple[str, ...]]]:
        """Every element in order with the names of its attributes: what no text may change."""
        return [(one.tag, tuple(one.attributes)) for one in self.root.walk()]
