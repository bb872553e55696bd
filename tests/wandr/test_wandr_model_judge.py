"""A whole run before a model's endpoint: what each stage sends, what is retried, and that nothing is asked twice."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from fakes.model_server import Behaviour, ModelServer
from fakes.runs import Run, run

Body = Mapping[str, Any]


def answered(body: Body) -> dict[str, Any]:
    """Every check true; every value by itself."""
    schema = body["response_format"]["json_schema"]["schema"]["properties"]
    if "groups" in schema:
        count = len(re.findall(r"^\d+\. ", body["messages"][1]["content"], re.MULTILINE))
        return {"reasoning": "", "groups": [[number] for number in range(1, count + 1)]}
    plain = {"boolean": True, "integer": 3, "string": "said"}
    return {name: field.get("enum", [plain[field["type"]]])[0] for name, field in schema.items()}


def serving(change: Callable[[int, Body, dict[str, Any]], Any] = lambda number, body, value: value) -> ModelServer:
    def script(number: int, body: Body) -> Behaviour:
        return Behaviour(text=json.dumps(change(number, body, answered(body))))

    return ModelServer(script)


def started(tmp_path: Path, server: ModelServer, name: str, *words: str) -> Run:
    return run(
        tmp_path / name,
        "experiment=demo_wandr",
        "judge=openai_compatible",
        f"judge.base_url={server.base_url}",
        "judge.model=m-1",
        "judge.effort=medium",
        "judge.stage_efforts={deduplicate: high, triage: low}",
        "judge.retry.max_wait_s=0.01",
        *words,
    )


def test_stages_have_their_efforts_and_nothing_is_asked_twice(tmp_path: Path) -> None:
    with serving() as server:
        first = started(tmp_path, server, "first", "benchmark.triage=judge")
        asked = server.questions()
        again = started(tmp_path, server, "again", "benchmark.triage=judge")
        assert len(server.questions()) == len(asked)
    efforts: dict[str, set[str]] = {}
    for body in asked:
        efforts.setdefault(body["response_format"]["json_schema"]["name"], set()).add(body["reasoning_effort"])
    assert efforts == {"record_checks": {"medium"}, "duplicates": {"high"}, "page_triage": {"low"}}
    assert (first.code, again.code) == (0, 0)
    assert again.bytes("scores.jsonl") == first.bytes("scores.jsonl")


@pytest.mark.parametrize("fault", ["lost", "repeated", "invented"])
def test_groups_that_are_no_partition_are_asked_for_again(tmp_path: Path, fault: str) -> None:
    seen: set[str] = set()

    def change(_: int, body: Body, value: dict[str, Any]) -> Any:
        text = body["messages"][1]["content"]
        if "groups" not in value or text in seen:
            return value
        seen.add(text)
        groups = value["groups"]
        return {
            **value,
            "groups": {"lost": groups[1:], "repeated": [*groups, [1]], "invented": [*groups, [99]]}[fault],
        }

    with serving(change) as server:
        found = started(tmp_path, server, "run")
        duplicates = [
            body for body in server.questions() if body["response_format"]["json_schema"]["name"] == "duplicates"
        ]
    assert len(duplicates) == 2 * len(seen) == 10
    rows = {row["unit"]: row for row in found.rows("judgements.jsonl")}
    assert all(row["error"] is None for unit, row in rows.items() if unit.startswith("deduplicate/"))
    assert found.code == 0


def test_duplicates_that_never_come_leave_a_flag_and_the_numbers(tmp_path: Path) -> None:
    with serving(lambda _, __, value: {**value, "groups": []} if "groups" in value else value) as server:
        found = started(tmp_path, server, "run", "judge.retry.attempts=2")
    lights = found.rows("scores.jsonl")[0]
    assert "duplicates_by_norm:lighthouse" in lights["flags"]
    assert lights["metrics"]["analysis/identity_loss/all/loss"] == 0
    assert found.code == 0
