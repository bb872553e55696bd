"""Judges on the same answers: agreement, bias, flips, themselves."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from comparison_helpers import compare
from fakes.run_folders import task_rows, write_run

from core.stats import statistic_interval
from plugins.draco.grader import DracoGrader

#: Both judges' verdicts on 383 DRACO criteria: MET by both, by the first alone, by the second alone, by neither.
BOTH, FIRST, SECOND, NEITHER = 141, 15, 96, 131
TASKS = ("t0", "t1", "t2", "t3")

Verdicts = Sequence[bool | None]


def judged(
    root: Path,
    said: Mapping[str, Mapping[str, Mapping[str, Verdicts]]],
    *,
    criteria: Mapping[str, float] | None = None,
    more: Mapping[str, Mapping[str, Any]] | None = None,
) -> list[Path]:
    """A run of one system for each judge: judge → task → criterion → a verdict a repeat."""
    names = {task for tasks in said.values() for task in tasks}
    return [
        write_run(
            root / judge,
            {task: [50.0] for task in sorted(names)},
            judge=judge,
            said=tasks,
            tasks=task_rows(sorted(names), criteria=criteria),
            **(more or {}).get(judge, {}),
        )
        for judge, tasks in said.items()
    ]


def confusion(root: Path) -> list[Path]:
    """The 383 criteria, spread over twelve tasks."""
    pairs = [(True, True)] * BOTH + [(True, False)] * FIRST + [(False, True)] * SECOND + [(False, False)] * NEITHER
    said: dict[str, dict[str, dict[str, list[bool | None]]]] = {"haiku": {}, "gemini": {}}
    for at, pair in enumerate(pairs):
        for judge, met in zip(said, pair, strict=True):
            said[judge].setdefault(f"t{at % 12}", {})[f"c{at // 12}"] = [met]
    return judged(root, said)


def test_the_383_criteria(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (pair,) = compare(capsys, confusion(tmp_path)).json["judges"]["pairs"]
    assert pair["n"] == 383
    assert round(pair["agreement"], 3) == 0.710
    assert round(pair["kappa"]["value"], 3) == 0.445
    assert pair["kappa"]["low"] < 0.445 < pair["kappa"]["high"]
    assert pair["kappa"]["n"] == 12
    every = pair["yes"][0]
    assert (every["first"], every["second"]) == (156 / 383, 237 / 383)
    assert every["shift"]["value"] == pytest.approx(81 / 383)


@pytest.mark.parametrize(
    ("first", "second", "n", "agreement", "kappa"),
    [
        ([True, False], [True, False], 8, 1.0, 1.0),
        ([True, False], [False, True], 8, 0.0, -1.0),
        ([True, True], [True, True], 8, 1.0, None),
        ([True, None], [True, False], 4, 1.0, None),
        ([None, None], [True, False], 0, None, None),
    ],
    ids=["alike", "opposite", "one label", "a missing verdict is none", "nothing in common"],
)
def test_pairs_of_judges(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    first: Verdicts,
    second: Verdicts,
    n: int,
    agreement: float | None,
    kappa: float | None,
) -> None:
    said = {
        judge: {task: {"c1": [verdicts[0]], "c2": [verdicts[1]]} for task in TASKS}
        for judge, verdicts in {"a": first, "b": second}.items()
    }
    (pair,) = compare(capsys, judged(tmp_path, said)).json["judges"]["pairs"]
    assert (pair["n"], pair["agreement"], pair["kappa"]["value"]) == (n, agreement, kappa)


def test_repeats_are_paired_by_number(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = {
        "a": {task: {"c1": [True, False, True]} for task in TASKS},
        "b": {task: {"c1": [True, False]} for task in TASKS},
    }
    found = compare(capsys, judged(tmp_path, said)).json["judges"]
    assert (found["pairs"][0]["n"], found["pairs"][0]["agreement"]) == (8, 1.0)
    alone = {judge["judge"]: judge["with_itself"] for judge in found["judges"]}
    assert (alone["a"]["repeats"], alone["a"]["n"], alone["a"]["unanimous"]) == (3, 4, 0.0)
    assert (alone["b"]["repeats"], alone["b"]["unanimous"]) == (2, 0.0)


def test_units_are_labelled_by_the_benchmark(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = {
        "a": {task: {"good": [True], "bad": [False]} for task in TASKS},
        "b": {task: {"good": [True], "bad": [True]} for task in TASKS},
    }
    found = compare(capsys, judged(tmp_path, said, criteria={"good": 10, "bad": -5})).json
    rates = {(yes["group"], yes["member"]): yes for yes in found["judges"]["pairs"][0]["yes"]}
    assert {key: (yes["first"], yes["second"], yes["n"]) for key, yes in rates.items()} == {
        (None, None): (0.5, 1.0, 8),
        ("axis", "facts"): (0.5, 1.0, 8),
        ("sign", "negative"): (0.0, 1.0, 4),
        ("sign", "positive"): (1.0, 1.0, 4),
    }
    flips = {(rate["group"], rate["member"]): rate["rate"] for rate in found["judges"]["flip_rates"]}
    assert (flips["sign", "negative"], flips["sign", "positive"], flips[None, None]) == (1.0, 0.0, 0.5)
    assert [(flip["task"], flip["unit"]) for flip in found["judges"]["flips"]] == [
        (task, "criterion/bad") for task in TASKS
    ]
    assert found["judges"]["flips"][0]["yes"] == {"a": 0.0, "b": 1.0}


def test_a_benchmark_that_does_not_label_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(DracoGrader, "unit_labels")
    found = compare(capsys, confusion(tmp_path))
    assert "does not label" in found.finding("labels")["text"]
    assert len(found.json["judges"]["pairs"][0]["yes"]) == 1


def test_the_top_is_as_long_as_asked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = compare(capsys, confusion(tmp_path), "--top", "3").json["judges"]
    assert len(found["flips"]) == 3
    assert found["flip_rates"][0]["rate"] == (FIRST + SECOND) / 383


def test_krippendorffs_alpha_is_over_all_judges(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = {judge: {task: {"c1": [True], "c2": [judge != "c"]} for task in TASKS} for judge in ("a", "b", "c")}
    found = compare(capsys, judged(tmp_path, said)).json["judges"]
    # 20 yes and 4 no of 24; each of the 4 split units has 4 differing ordered pairs among its 3 verdicts
    assert found["n_alpha"] == 8
    assert found["alpha"] == pytest.approx(1 - 23 * (4 * 4 / 2) / (2 * 4 * 20))
    assert [(pair["first"], pair["second"]) for pair in found["pairs"]] == [("a", "b"), ("a", "c"), ("b", "c")]


def test_only_answers_that_both_saw_are_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = {judge: {task: {"c1": [True]} for task in TASKS} for judge in ("a", "b")}
    again = {"b": {"answers": {"t1": "another answer"}}}
    found = compare(capsys, judged(tmp_path, said, more=again))
    assert "1 answers differ" in found.finding("answers")["text"]
    (pair,) = found.json["judges"]["pairs"]
    assert (pair["n"], pair["shift"]["n"]) == (3, 3)


def test_what_a_judge_lacks_and_costs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said: dict[str, dict[str, dict[str, Verdicts]]] = {
        "a": {task: {"c1": [True], "c2": [None]} for task in TASKS},
        "b": {task: {"c1": [True], "c2": [True]} for task in TASKS},
    }
    paid = {"a": {"judgement_usd": 0.25, "judge_family": "google"}}
    rows = compare(capsys, judged(tmp_path, said, more=paid)).json["judges"]["judges"]
    first, second = rows
    assert (first["n"], first["missing"], first["errors"]) == (8, 4, {"timeout": 4})
    assert (first["usd"], first["usd_per_judgement"], first["family"]) == (2.0, 0.25, "google")
    assert (second["unknown_costs"], second["usd_per_judgement"]) == (8, None)
    assert second["coverage_by"] == {"sign": {"positive": 1.0}}


def rewritten(folder: Path, change: Callable[[dict[str, Any]], object]) -> Path:
    """The run with its judgements changed."""
    rows = [json.loads(line) for line in (folder / "judgements.jsonl").read_text("utf-8").splitlines()]
    for row in rows:
        change(row)
    (folder / "judgements.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return folder


@pytest.mark.parametrize(
    ("usd", "source", "unknown", "each"),
    [(None, None, 8, None), (None, "unknown", 8, None), (0.0, "computed", 0, 0.0), (0.5, "reported", 0, 0.5)],
    ids=["a recorded file without costs", "unpriced", "costs nothing", "priced"],
)
def test_a_cost_that_nobody_states_is_not_nothing(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    usd: float | None,
    source: str | None,
    unknown: int,
    each: float | None,
) -> None:
    (folder,) = judged(tmp_path, {"a": {task: {"c1": [True], "c2": [True]} for task in TASKS}})
    rewritten(folder, lambda row: row.update(cost_usd=usd, cost_source=source))
    (judge,) = compare(capsys, [folder], "--judges").json["judges"]["judges"]
    assert (judge["unknown_costs"], judge["usd_per_judgement"]) == (unknown, each)


def test_rows_that_share_an_answer_state_its_cost_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder,) = judged(tmp_path, {"a": {task: {"c1": [True], "c2": [True]} for task in TASKS}})
    rewritten(
        folder,
        lambda row: row.update(
            {"cost_usd": 0.5, "cost_source": "reported"}
            if row["unit"] == "criterion/c1"
            else {"cost_usd": None, "cost_source": None}
        ),
    )
    (judge,) = compare(capsys, [folder], "--judges").json["judges"]["judges"]
    assert (judge["usd"], judge["unknown_costs"], judge["usd_per_judgement"]) == (2.0, 0, 0.25)


@pytest.mark.parametrize(
    ("repeats", "members", "itself"),
    [
        ([True, False], ["m1", "m2"], None),
        ([True, False, True, False], ["m1", "m2", "m1", "m2"], (2, 8, 1.0)),
        ([True, False], ["m1", "m1"], (2, 4, 0.0)),
    ],
    ids=["a repeat each", "two repeats each", "one judge"],
)
def test_members_of_an_ensemble_are_no_repeats_of_one_judge(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    repeats: list[bool | None],
    members: list[str],
    itself: tuple[int, int, float] | None,
) -> None:
    (folder,) = judged(tmp_path, {"a": {task: {"c1": repeats} for task in TASKS}})
    rewritten(folder, lambda row: row.update(judge=members[row["repeat"] - 1]))
    (judge,) = compare(capsys, [folder], "--judges").json["judges"]["judges"]
    found = judge["with_itself"]
    assert (found and (found["repeats"], found["n"], found["unanimous"])) == itself


def test_forms_of_one_task_are_drawn_together_for_judges_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Five tasks of four forms; both judges say the same of all forms of one task."""
    names = [f"t{task}:{form}" for task in range(5) for form in range(4)]
    rows = task_rows(names, criteria={"c1": 1.0, "c2": 1.0})
    for row in rows:
        row["labels"] = {"task": row["id"].partition(":")[0]}
    folders = [
        write_run(
            tmp_path / judge,
            {name: [50.0 + by * int(name[1])] for name in names},
            judge=judge,
            tasks=rows,
            said={name: {"c1": [True], "c2": [by > 0 and int(name[1]) < 2]} for name in names},
        )
        for by, judge in enumerate("ab")
    ]
    (pair,) = compare(capsys, folders).json["judges"]["pairs"]
    assert (pair["kappa"]["n"], pair["shift"]["n"], {yes["shift"]["n"] for yes in pair["yes"]}) == (5, 5, {5})
    by_form = statistic_interval(
        [float(name[1]) for name in names],
        lambda values, weights: weights @ values / weights.sum(axis=1),
        resamples=500,
    )
    assert by_form is not None
    assert pair["shift"]["value"] == by_form.estimate == 2.0
    assert pair["shift"]["high"] - pair["shift"]["low"] > 1.5 * (by_form.high - by_form.low)


def test_one_judge_is_looked_at_where_asked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folders = judged(tmp_path, {"a": {task: {"c1": [True, True]} for task in TASKS}})
    assert compare(capsys, folders).json["judges"] is None
    found = compare(capsys, folders, "--judges").json
    assert found["judges"]["pairs"] == []
    assert found["judges"]["judges"][0]["with_itself"]["unanimous"] == 1.0
    assert found["ranks"] is None


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("{nonsense}\n{}\n", "its judgements are not compared"),
        ('{"schema": "leadline/judgement/9"}\n', "its judgements are not compared"),
        ('{"schema": "leadline/judgement/1", "task_id": 3}\n', "1 rows without a task"),
        (
            '{"schema": "leadline/judgement/1", "task_id": "t0", "unit": "criterion/c1", "verdict": {"met": true}}\n',
            "1 rows on what was judged before",
        ),
        ('{"schema": "leadline/judgement/1", "task_id"', "the last line is cut off"),
    ],
    ids=["not JSON", "another version", "no task", "twice", "cut"],
)
def test_damaged_judgements_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], line: str, said: str
) -> None:
    folders = judged(tmp_path, {judge: {task: {"c1": [True]} for task in TASKS} for judge in ("a", "b")})
    with (folders[1] / "judgements.jsonl").open("a", encoding="utf-8") as file:
        file.write(line)
    found = compare(capsys, folders)
    assert found.code == 0
    assert any(said in finding["text"] for finding in found.json["findings"])


@pytest.mark.parametrize("name", ["judgements.jsonl", "submissions.jsonl"])
def test_missing_rows_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str) -> None:
    folders = judged(tmp_path, {judge: {task: {"c1": [True]} for task in TASKS} for judge in ("a", "b")})
    (folders[1] / name).unlink()
    found = compare(capsys, folders)
    assert found.code == 0
    assert any(name in finding["text"] for finding in found.json["findings"])
