"""What so few tasks, so many systems or several judges cannot show, and that it is said."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from comparison_helpers import SCORES, compare, two
from fakes.run_folders import task_rows, write_run

from core.stats import mean_interval


def gapped(n: int, systems: int) -> list[dict[str, list[float | None]]]:
    """Systems that differ by far more than any task does."""
    rng = random.Random(1)
    return [{f"t{at:02}": [rng.gauss(20 * system, 1)] for at in range(n)} for system in range(systems)]


@pytest.mark.parametrize(
    ("n", "systems", "can"),
    [(5, 2, False), (6, 2, True), (6, 3, False), (8, 3, True), (20, 3, True)],
    ids=str,
)
def test_what_the_test_cannot_reach_is_not_promised(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], n: int, systems: int, can: bool
) -> None:
    folders = [
        write_run(tmp_path / str(at), scores, system=f"s{at}") for at, scores in enumerate(gapped(n, systems))
    ]
    found = compare(capsys, folders)
    (board,) = found.json["boards"]
    assert {pair["verdict"] for pair in board["pairs"]} == {"better" if can else "inconclusive"}
    assert {pair["detectable"] is not None for pair in board["pairs"]} == {can}
    assert ("no_power" in found.codes) is (not can)
    if not can:
        assert f"{n} tasks and {len(board['pairs'])} pairs" in found.finding("no_power")["text"]


def test_systems_that_differ_nowhere_promise_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (board,) = compare(capsys, two(tmp_path, {}, {})).json["boards"]
    assert board["pairs"][0]["detectable"] is None


def test_one_run_of_few_tasks_promises_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (scores,) = gapped(5, 1)
    (board,) = compare(capsys, [write_run(tmp_path / "a", scores)]).json["boards"]
    assert board["systems"][0]["detectable"] is None


def test_many_systems_can_still_be_told_apart(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """36 systems make 630 pairs: with 500 patterns no corrected p could come below 0.05."""
    folders = [
        write_run(tmp_path / str(at), scores, system=f"s{at:02}") for at, scores in enumerate(gapped(20, 36))
    ]
    found = compare(capsys, folders, "--resamples", "100")
    (board,) = found.json["boards"]
    assert board["patterns"] == 20 * 630 / 0.05
    assert {pair["verdict"] for pair in board["pairs"]} == {"better"}
    assert "no_power" not in found.codes


def test_numbers_of_two_judges_are_never_better(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first, second = gapped(20, 2)
    folders = two(tmp_path, {"scores": first}, {"scores": second, "judge": "judge-b"})
    (board,) = compare(capsys, folders).json["boards"]
    assert board["judge"] is None
    assert (board["pairs"][0]["p_holm"] < 0.05, board["pairs"][0]["verdict"]) == (True, "inconclusive")


def test_only_pairs_of_one_judge_can_be_better(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folders = [
        write_run(tmp_path / name, scores, system=name, judge=judge)
        for name, judge, scores in zip("xyz", "aab", gapped(20, 3), strict=True)
    ]
    boards = compare(capsys, folders).json["boards"]
    mixed = {frozenset((pair["first"], pair["second"])): pair["verdict"] for pair in boards[1]["pairs"]}
    assert mixed == {
        frozenset(("y · a", "x · a")): "better",
        frozenset(("z · b", "x · a")): "inconclusive",
        frozenset(("z · b", "y · a")): "inconclusive",
    }


@pytest.mark.parametrize(("n", "has_interval"), [(14, False), (15, True)])
def test_groups_of_few_tasks_have_no_interval(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], n: int, has_interval: bool
) -> None:
    first, second = gapped(n, 2)
    (board,) = compare(capsys, two(tmp_path, {"scores": first}, {"scores": second})).json["boards"]
    by_group = {(group["group"], group["member"]): group["difference"] for group in board["groups"]}
    assert (by_group["axis", "facts"]["n"], by_group["axis", "facts"]["low"] is not None) == (n, has_interval)
    halves = [found for (group, _), found in by_group.items() if group == "domain"]
    assert [(found["low"], found["high"], found["value"] is None) for found in halves] == [(None, None, False)] * 2


def test_clusters_are_what_few_is_counted_in(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first, second = gapped(20, 2)
    tasks = task_rows(first)
    for at, task in enumerate(tasks):
        task["labels"] = {"task": f"base {at // 2}"}
    folders = two(tmp_path, {"scores": first, "tasks": tasks}, {"scores": second, "tasks": tasks})
    (board,) = compare(capsys, folders).json["boards"]
    (group,) = board["groups"]
    assert (group["difference"]["n"], group["difference"]["low"]) == (10, None)


@pytest.mark.parametrize(("systems", "method"), [(3, "bca"), (4, "percentile")])
def test_many_systems_have_a_cheaper_interval_by_group(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], systems: int, method: Any
) -> None:
    rng = random.Random(2)
    scores: list[dict[str, list[float | None]]] = [
        {f"t{at:02}": [rng.expovariate(1)] for at in range(16)} for _ in range(systems)
    ]
    folders = [write_run(tmp_path / str(at), numbers, system=f"s{at}") for at, numbers in enumerate(scores)]
    (board,) = compare(capsys, folders).json["boards"]
    found = next(group for group in board["groups"] if group["group"] == "axis")
    one, other = (scores[int(found[name][1])] for name in ("first", "second"))
    gaps = [(one[task][0] or 0.0) - (other[task][0] or 0.0) for task in one]
    alone = mean_interval(gaps, resamples=500, method=method)
    assert alone is not None
    # tasks stand in another order among several series, so their draws differ
    assert found["difference"]["low"] == pytest.approx(alone.low, abs=0.1)
    assert found["difference"]["high"] == pytest.approx(alone.high, abs=0.1)


@pytest.mark.parametrize("judges", [1, 2])
def test_one_system_of_forms_is_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str], judges: int) -> None:
    """Items that are drawn together and no pair of systems: there is nothing to test, and that is no fault."""
    tasks = task_rows(SCORES)
    for at, task in enumerate(tasks):
        task["labels"] = {"task": f"base {at // 2}"}
    folders = [write_run(tmp_path / str(at), SCORES, tasks=tasks, judge=f"j{at}") for at in range(judges)]
    found = compare(capsys, folders)
    assert found.code == 0, found.err
    assert [(board["pairs"], board["systems"][0]["score"]["n"]) for board in found.json["boards"]] == [
        ([], 5)
    ] * judges
