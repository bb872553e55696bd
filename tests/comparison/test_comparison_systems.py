"""Systems under one judge: what the tables hold, and what is called better."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from comparison_helpers import SCORES, compare, two
from fakes.run_folders import task_rows, write_run

from core.stats import detectable_difference, mean_interval, sd, sign_flip_test


def shifted(by: float) -> dict[str, list[float | None]]:
    return {task: [numbers[0] + by + (at % 3)] for at, (task, numbers) in enumerate(SCORES.items())}


def test_numbers_are_those_of_the_statistics(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = shifted(-2)
    (board,) = compare(capsys, two(tmp_path, {}, {"scores": other}), "--seed", "7").json["boards"]
    values = [numbers[0] for numbers in SCORES.values()]
    others = [numbers[0] or 0.0 for numbers in other.values()]
    gaps = [one - two for one, two in zip(values, others, strict=True)]
    own = mean_interval(values, resamples=500, seed=7)
    gap, test = mean_interval(gaps, resamples=500, seed=7), sign_flip_test(values, others, resamples=500, seed=7)
    assert own is not None
    assert gap is not None
    assert test is not None
    assert board["systems"][0]["score"] == {
        "value": own.estimate, "low": own.low, "high": own.high, "n": 10,
    }  # fmt: skip
    (pair,) = board["pairs"]
    assert pair["difference"] == {"value": gap.estimate, "low": gap.low, "high": gap.high, "n": 10}
    assert (pair["p"], pair["p_holm"]) == (test.p, test.p)
    assert pair["detectable"] == detectable_difference(10, sd(gaps) or 0.0)


@pytest.mark.parametrize(
    ("by", "verdict"),
    [(-5.0, "better"), (5.0, "worse"), (-1.0, "inconclusive")],
)
def test_verdicts(tmp_path: Path, capsys: pytest.CaptureFixture[str], by: float, verdict: str) -> None:
    (board,) = compare(capsys, two(tmp_path, {}, {"scores": shifted(by)})).json["boards"]
    said = {(pair["first"], pair["second"]): pair["verdict"] for pair in board["pairs"]}
    opposite = {"better": "worse", "worse": "better"}.get(verdict, verdict)
    assert said in ({("alpha", "beta"): verdict}, {("beta", "alpha"): opposite})


def test_systems_stand_in_the_order_of_their_numbers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    numbers: dict[str, dict[str, list[float | None]]] = {
        "low": shifted(-5),
        "none": {task: [None] for task in SCORES},
        "high": shifted(5),
    }
    folders = [write_run(tmp_path / name, scores, system=name) for name, scores in numbers.items()]
    (board,) = compare(capsys, folders).json["boards"]
    assert [row["system"] for row in board["systems"]] == ["high", "low", "none"]
    assert [row["score"]["value"] is None for row in board["systems"]] == [False, False, True]
    assert board["n_common"] == 10, "a run without numbers is no obstacle to the others"
    verdicts = {(pair["first"], pair["second"]): pair["verdict"] for pair in board["pairs"]}
    assert verdicts["high", "none"] == "inconclusive"


def test_only_tasks_that_all_have_a_number_for_are_in_the_table(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    easy = {**SCORES, "easy": [100.0]}
    found = compare(capsys, two(tmp_path, {"scores": easy}, {"scores": {**SCORES, "t9": [None]}})).json
    (board,) = found["boards"]
    assert board["n_common"] == 9
    assert {row["system"]: (row["score"]["value"], row["n_own"], row["n_tasks"]) for row in board["systems"]} == {
        "alpha": (52.0, 11, 11),
        "beta": (52.0, 9, 10),
    }
    assert board["pairs"][0]["difference"] == {"value": 0.0, "low": 0.0, "high": 0.0, "n": 9}


def test_repeats_are_folded_before_tasks_are_drawn(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    # the task with most repeats weighs no more than the others
    many = {**SCORES, "t0": [0.0, 0.0, 0.0, 0.0]}
    (board,) = compare(capsys, two(tmp_path, {"scores": many}, {})).json["boards"]
    alpha = next(row for row in board["systems"] if row["system"] == "alpha")
    assert alpha["score"]["value"] == pytest.approx((535 - 40) / 10)


def test_groups_have_the_same_difference(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = {task: [numbers[0] - (4 if at % 2 else 0)] for at, (task, numbers) in enumerate(SCORES.items())}
    (board,) = compare(capsys, two(tmp_path, {}, {"scores": other})).json["boards"]
    assert [
        (group["group"], group["member"], group["difference"]["value"], group["difference"]["n"])
        for group in board["groups"]
    ] == [("domain", "domain 0", 0.0, 5), ("domain", "domain 1", 4.0, 5), ("axis", "facts", 2.0, 10)]


def test_forms_of_one_task_are_drawn_together(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tasks = task_rows(SCORES)
    for at, task in enumerate(tasks):
        task["labels"] = {"task": f"base {at // 2}"}
    (board,) = compare(capsys, two(tmp_path, {"tasks": tasks}, {"tasks": tasks, "scores": shifted(-2)})).json[
        "boards"
    ]
    assert [row["score"]["n"] for row in board["systems"]] == [5, 5]
    assert (board["pairs"][0]["difference"]["n"], board["groups"][0]["group"]) == (5, "axis")


@pytest.mark.parametrize(
    ("costs", "best"),
    [
        # score falls from the first to the last
        ((3.0, 2.0, 1.0), (True, True, True)),
        ((1.0, 2.0, 3.0), (True, False, False)),
        ((2.0, 2.0, 1.0), (True, False, True)),
        ((2.0, None, 3.0), (True, None, False)),
    ],
)
def test_what_no_other_beats_in_both(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    costs: tuple[float | None, ...],
    best: tuple[bool | None, ...],
) -> None:
    folders = [
        write_run(
            tmp_path / str(at),
            shifted(-at),
            system=f"s{at}",
            cost_usd=cost,
            latency_s=None if cost is None else cost * 9,
        )
        for at, cost in enumerate(costs)
    ]
    (board,) = compare(capsys, folders).json["boards"]
    assert tuple(row["best_for_cost"] for row in board["systems"]) == best
    assert tuple(row["best_for_time"] for row in board["systems"]) == best
    assert tuple(row["usd_per_task"] for row in board["systems"]) == costs


def test_holm_is_over_all_pairs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folders = [write_run(tmp_path / str(at), shifted(-at), system=f"s{at}") for at in range(4)]
    (board,) = compare(capsys, folders).json["boards"]
    assert len(board["pairs"]) == 6
    smallest = min(pair["p"] for pair in board["pairs"])
    assert min(pair["p_holm"] for pair in board["pairs"]) == pytest.approx(min(1.0, 6 * smallest))


def test_one_run_has_its_own_table_and_what_it_could_detect(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = write_run(tmp_path / "a", SCORES)
    found = compare(capsys, [folder]).json
    (board,) = found["boards"]
    assert (board["pairs"], board["groups"], found["judges"], found["ranks"]) == ([], [], None, None)
    values = [numbers[0] for numbers in SCORES.values()]
    spread = sd(values) or 0.0
    assert board["systems"][0]["detectable"] == pytest.approx(detectable_difference(10, spread * 2**0.5))
    assert "what this run could show" in compare(capsys, [folder], "--format", "md").out


def test_metrics_are_compared_each_for_itself(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = compare(capsys, two(tmp_path, {}, {}), "--metric", "pass_rate", "--metric", "normalized").json
    assert [board["metric"] for board in found["boards"]] == ["pass_rate", "normalized"]
    assert found["settings"]["metrics"] == ["pass_rate", "normalized"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--metric", "normalised"), "normalized"),
        (("--alpha", "2"), "--alpha"),
        (("--resamples", "3"), "--resamples"),
        (("--seed", "-1"), "--seed"),
        (("--power", "0.1"), "--power"),
    ],
)
def test_words_that_make_no_sense_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], said: str
) -> None:
    found = compare(capsys, two(tmp_path, {}, {}), *words)
    assert (found.code, found.out) == (2, "")
    assert said in found.err


def test_variance_is_split_and_designs_follow(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rng = random.Random(5)
    folders = [
        write_run(
            tmp_path / f"{system}-{judge}",
            {task: [numbers[0] + 10 * at + rng.gauss(0, 1) for _ in range(3)] for task, numbers in SCORES.items()},
            system=system,
            judge=judge,
        )
        for at, system in enumerate(("alpha", "beta"))
        for judge in ("a", "b")
    ]
    found: dict[str, Any] = compare(capsys, folders).json["variance"]
    assert found["levels"] == {"task": 10, "system": 2, "judge": 2}
    parts = {tuple(part["factors"]): part["variance"] for part in found["parts"]}
    assert parts["repeat",] == pytest.approx(1.0, rel=0.3)
    assert max(parts, key=lambda key: parts[key]) == ("task",)
    designs = {(one["n_tasks"], one["n_judges"], one["n_repeats"]): one["difference"] for one in found["designs"]}
    assert set(designs) == {
        (tasks, judges, repeats) for tasks in (10, 20, 40) for judges in (1, 2) for repeats in (1, 3)
    }
    assert designs[10, 1, 1] > designs[40, 2, 3]
