"""Folding folders again: what is refused, and that nothing changes without a reason."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fakes.runs import Run, draco_row, run, write_rows

from core.errors import InputError
from core.merge import merge
from core.plugin_manager import PluginManager
from core.rescore import rescore

CRITERIA = [("p1", 10, "States that water is wet."), ("n1", -5, "Claims that water is dry.")]


@pytest.fixture(scope="module")
def plugins() -> PluginManager:
    return PluginManager.discover()


@pytest.fixture
def make(tmp_path: Path) -> Callable[..., Run]:
    write_rows(tmp_path / "tasks.jsonl", [draco_row(name, CRITERIA) for name in "abcde"])
    write_rows(tmp_path / "reports.jsonl", [{"task_id": name, "text": "Water is wet."} for name in "abcde"])

    def make_run(name: str, *words: str) -> Run:
        return run(
            tmp_path / name, "benchmark=draco", f"benchmark.source={tmp_path / 'tasks.jsonl'}", "system=replay",
            f"system.path={tmp_path / 'reports.jsonl'}", "judge=offline", "judge.repeats=2", *words,
        )  # fmt: skip

    return make_run


def content(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.suffix in (".json", ".jsonl")}


def test_a_rescore_changes_nothing(make: Callable[..., Run], plugins: PluginManager) -> None:
    made = make("run")
    before = content(made.folder)
    rescore(made.folder, plugins)
    assert content(made.folder) == before


def test_a_rescore_follows_the_rows(make: Callable[..., Run], plugins: PluginManager) -> None:
    made = make("run")
    rows = made.rows("judgements.jsonl")
    for row in rows:
        if row["task_id"] == "a":
            row["verdict"] = {"met": not row["verdict"]["met"]}
    write_rows(made.folder / "judgements.jsonl", rows)
    folded = rescore(made.folder, plugins)
    assert [score.metrics["normalized"] for score in folded.scores] == [0.0, 100.0, 100.0, 100.0, 100.0]


@pytest.mark.parametrize(
    ("spoil", "part"),
    [
        (lambda folder: (folder / "run.json").unlink(), "run.json"),
        (lambda folder: (folder / "run.json").write_text("{"), "not JSON"),
        (lambda folder: (folder / "run.json").write_text('{"schema": "leadline/run/99"}'), "leadline/run/99"),
        (lambda folder: (folder / "judgements.jsonl").unlink(), "judgements.jsonl"),
        (lambda folder: (folder / "judgements.jsonl").write_text('{"schema": "x"}\n'), "judgements.jsonl, line 1"),
        (lambda folder: _add(folder / "judgements.jsonl", "no json\n"), "judgements.jsonl, line 21"),
        (lambda folder: _add(folder / "submissions.jsonl", '{"schema": "leadline/submission/1"}\n'), "line 6"),
    ],
    ids=["no run.json", "broken", "another version", "no rows", "rows of another version", "not json", "no task"],
)
def test_a_spoilt_folder_is_refused_and_left_alone(
    make: Callable[..., Run], plugins: PluginManager, spoil: Callable[[Path], Any], part: str
) -> None:
    made = make("run")
    spoil(made.folder)
    before = content(made.folder)
    with pytest.raises(InputError, match=part):
        rescore(made.folder, plugins)
    assert content(made.folder) == before


def _add(path: Path, text: str) -> None:
    with path.open("a") as file:
        file.write(text)


def test_shards_merge_to_the_undivided_run(
    make: Callable[..., Run], plugins: PluginManager, tmp_path: Path
) -> None:
    whole = make("whole")
    shards = [make(f"s{number}", f"shard={number}/3").folder for number in (1, 2, 3)]
    merge(tmp_path / "merged", shards, plugins)
    merged = Run(0, tmp_path / "merged")
    for name in ("scores.jsonl", "submissions.jsonl", "judgements.jsonl", "tasks.jsonl", "summary.json"):
        assert merged.bytes(name) == whole.bytes(name), name


@pytest.mark.parametrize(
    ("others", "part"),
    [
        (["shard=1/2"], "shards are missing: 2/2"),
        (["shard=1/2", "shard=2/3"], "shard 2/3 beside 1/2"),
        (["shard=1/2", "limit=5"], "not a shard"),
        (["shard=1/2", "shard=2/2 judge.repeats=1"], "different configurations"),
        (["shard=1/2", "shard=1/2"], "given twice"),
    ],
    ids=str,
)
def test_what_is_no_whole_run_is_refused(
    make: Callable[..., Run], plugins: PluginManager, tmp_path: Path, others: list[str], part: str
) -> None:
    shards = [make(f"s{number}", *words.split()).folder for number, words in enumerate(others)]
    if part == "not a shard":  # a configuration that differs in its shard only
        (tmp_path / "s1").rename(tmp_path / "old")
        shards[1] = make("s1").folder
    with pytest.raises(InputError, match=part):
        merge(tmp_path / "merged", shards, plugins)
    assert not (tmp_path / "merged").exists()


def test_a_shard_that_has_not_ended_is_refused(
    make: Callable[..., Run], plugins: PluginManager, tmp_path: Path
) -> None:
    shards = [make(f"s{number}", f"shard={number}/2").folder for number in (1, 2)]
    facts = json.loads((shards[0] / "run.json").read_text())
    (shards[0] / "run.json").write_text(json.dumps({**facts, "exit_code": None}))
    with pytest.raises(InputError, match="has not ended"):
        merge(tmp_path / "merged", shards, plugins)
