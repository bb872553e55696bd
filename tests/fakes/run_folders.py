"""Run folders with known contents, written without a run: what a comparison reads, and nothing else.

Tasks have DRACO's form, so that the benchmark's own plugin can read them; scores are whatever the caller says.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

#: A number for each repeat; None is missing.
Repeats = Sequence[float | None]
#: Task → unit → a verdict for each repeat; None is missing.
Said = Mapping[str, Mapping[str, Sequence[bool | None]]]


def task_rows(
    names: Iterable[str], *, criteria: Mapping[str, float] | None = None, domains: int = 2
) -> list[dict[str, Any]]:
    """Tasks of one criterion each, or of the criteria named, with their weights."""
    weights = criteria or {"c1": 10.0}
    return [
        {
            "id": name,
            "prompt": f"What of {name}?",
            "labels": {"domain": f"domain {index % domains}"},
            "output_schema": None,
            "required_files": [],
            "blocked": [],
            "payload": {
                "sections": [
                    {
                        "id": "facts",
                        "title": "Facts",
                        "criteria": [
                            {"id": key, "weight": weight, "requirement": f"States {key}"}
                            for key, weight in weights.items()
                        ],
                    }
                ]
            },
            "index": index,
        }
        for index, name in enumerate(names)
    ]


def write_run(
    folder: Path,
    scores: Mapping[str, Repeats],
    *,
    system: str = "alpha",
    judge: str = "judge-a",
    effort: str | None = None,
    system_family: str | None = None,
    judge_family: str | None = None,
    said: Said | None = None,
    tasks: Sequence[Mapping[str, Any]] | None = None,
    answers: Mapping[str, str] | None = None,
    coverage: float = 1.0,
    cost_usd: float | None = None,
    latency_s: float | None = None,
    judgement_usd: float | None = None,
    explanation: str = "because",
    config: Mapping[str, Any] | None = None,
    facts: Mapping[str, Any] | None = None,
    judge_settings: Mapping[str, Any] | None = None,
) -> Path:
    """Write one run folder; `scores` has a number a repeat for each task, `config` and `facts` are laid over."""
    folder.mkdir(parents=True)
    rows = list(tasks) if tasks is not None else task_rows(scores)
    repeats = max((len(numbers) for numbers in scores.values()), default=1)
    tree = _config(system, judge, effort, system_family, judge_family)
    for key, value in (config or {}).items():
        tree[key] = {**tree[key], **value} if isinstance(tree.get(key), dict) else value
    run = {
        "schema": "leadline/run/1",
        "run_id": f"run of {folder}",
        "leadline": "0.1.0",
        "exit_code": 0,
        "judge_settings": judge_settings or {"model": judge},
        "prompt_digest": "p",
        "plan": {"repeats": repeats, "tasks": len(rows)},
        "config": tree,
        **(facts or {}),
    }
    summary = {
        "schema": "leadline/summary/1",
        "benchmark": tree["benchmark"]["name"],
        "system": system,
        "effort": effort,
        "judge": {"name": judge, "rows": {judge: 1}},
        "coverage": coverage,
        "groups": {"axis": {"facts": {}}},
    }
    (folder / "run.json").write_text(json.dumps(run), encoding="utf-8")
    (folder / "summary.json").write_text(json.dumps(summary), encoding="utf-8")
    _lines(folder / "tasks.jsonl", "task", rows)
    labels = {row["id"]: row["labels"] for row in rows}
    _lines(
        folder / "scores.jsonl",
        "score",
        (_score(task, numbers, labels[task], cost_usd, latency_s) for task, numbers in scores.items()),
    )
    _lines(
        folder / "submissions.jsonl",
        "submission",
        (
            {
                "task_id": task,
                "attempt": 1,
                "status": "completed",
                "text": (answers or {}).get(task, f"{system} on {task}"),
            }
            for task in scores
        ),
    )
    _lines(folder / "judgements.jsonl", "judgement", _judgements(said or {}, judge, judgement_usd, explanation))
    return folder


def _config(
    system: str, judge: str, effort: str | None, system_family: str | None, judge_family: str | None
) -> dict[str, Any]:
    return {
        "benchmark": {
            "name": "draco",
            "loader": "draco",
            "grader": "draco",
            "aggregator": "draco",
            "headline": "normalized",
        },
        "system": {"name": system, "adapter": "replay", "family": system_family},
        "judge": {"name": judge, "provider": "litellm", "model": judge, "family": judge_family},
        "effort": effort,
    }


def _score(
    task: str, numbers: Repeats, labels: Mapping[str, Any], cost_usd: float | None, latency_s: float | None
) -> dict[str, Any]:
    there = [number for number in numbers if number is not None]
    value = math.fsum(there) / len(there) if there else None
    return {
        "task_id": task,
        "metrics": {"normalized": value, "pass_rate": value, "normalized/facts": value},
        "by_run": [
            {"attempt": 1, "repeat": repeat, "metrics": {"normalized": number}, "n_graded": 1, "n_expected": 1}
            for repeat, number in enumerate(numbers, start=1)
        ],
        "n_graded": len(there),
        "n_expected": len(numbers),
        "status": "scored" if there else "withheld",
        "flags": [],
        "labels": labels,
        "coverage_by": {"sign": {"positive": {"graded": len(there), "expected": len(numbers)}}},
        "cost_usd": cost_usd,
        "latency_s": latency_s,
    }


def _judgements(said: Said, judge: str, usd: float | None, explanation: str) -> Iterable[dict[str, Any]]:
    for task, units in said.items():
        for repeat in range(max((len(verdicts) for verdicts in units.values()), default=0)):
            for unit, verdicts in units.items():
                if repeat < len(verdicts):
                    yield _judgement(task, unit, repeat + 1, verdicts[repeat], judge, usd, explanation)


def _judgement(
    task: str, unit: str, repeat: int, met: bool | None, judge: str, usd: float | None, explanation: str
) -> dict[str, Any]:
    return {
        "task_id": task,
        "attempt": 1,
        "unit": f"criterion/{unit}",
        "repeat": repeat,
        "verdict": None if met is None else {"met": met},
        "error": {"kind": "timeout", "message": ""} if met is None else None,
        "judge": judge,
        "explanation": explanation,
        "cost_usd": usd,
        "cost_source": "reported" if usd is not None else "unknown",
    }


def _lines(path: Path, schema: str, rows: Iterable[Mapping[str, Any]]) -> None:
    with path.open("w", encoding="utf-8") as file:
        file.writelines(json.dumps({"schema": f"leadline/{schema}/1", **row}) + "\n" for row in rows)
