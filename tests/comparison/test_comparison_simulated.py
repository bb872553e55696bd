"""Simulated runs whose truth is known: what is there is found, what is not there is not."""

from __future__ import annotations

import math
import random
from pathlib import Path

import numpy as np
import pytest
from comparison_helpers import compare
from fakes.run_folders import task_rows, write_run

from core.comparison import Settings
from core.comparison.reading import read
from core.comparison.study import Study
from core.comparison.systems import _pairs

FAMILIES = {"j-openai": "openai", "j-google": "google", "j-anthropic": "anthropic"}
SYSTEMS = {"s-openai": "openai", "s-google": "google", "s-other": "perplexity"}


def own_family(root: Path, *, bonus: float, judges: tuple[str, ...] = tuple(FAMILIES)) -> list[Path]:
    """Three systems × judges on 80 tasks: j-openai adds `bonus` for its own, j-anthropic is stern to all."""
    rng = random.Random(11)
    tasks = [f"t{at}" for at in range(80)]
    hard = {task: rng.gauss(50, 12) for task in tasks}
    answers = {(system, task): rng.gauss(4 * at, 8) for at, system in enumerate(SYSTEMS) for task in tasks}
    return [
        write_run(
            root / f"{system}-{judge}",
            {
                task: [
                    hard[task]
                    + answers[system, task]
                    - (9 if judge == "j-anthropic" else 0)
                    + (bonus if judge == "j-openai" and family == "openai" else 0)
                    + rng.gauss(0, 4)
                ]
                for task in tasks
            },
            system=system,
            judge=judge,
            system_family=family,
            judge_family=FAMILIES[judge],
        )
        for system, family in SYSTEMS.items()
        for judge in judges
    ]


@pytest.mark.parametrize(("bonus", "found"), [(5.0, True), (0.0, False)])
def test_an_own_family_bonus_is_found_where_there_is_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], bonus: float, found: bool
) -> None:
    preferences = compare(capsys, own_family(tmp_path, bonus=bonus)).json["judges"]["preferences"]
    by_judge = {one["judge"]: one for one in preferences}
    assert set(by_judge) == {"j-openai", "j-google"}, "no system is of anthropic's family"
    estimate = by_judge["j-openai"]["preference"]
    assert (estimate["low"] > 0) is found
    assert estimate["low"] < bonus < estimate["high"]
    others = by_judge["j-google"]
    # the bonus of the other judge is not taken for a dislike of this one's
    assert others["preference"]["low"] < 0 < others["preference"]["high"]
    assert (others["others"], others["is_sum"]) == (["s-openai", "s-other"], False)
    assert {one["few_systems"] for one in preferences} == {True}, "one system of a family is no sample of it"


@pytest.mark.parametrize(("own", "others", "few"), [(3, 3, False), (2, 3, True), (3, 2, True)])
def test_few_systems_are_no_ground_for_a_familys_preference(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], own: int, others: int, few: bool
) -> None:
    scores: dict[str, list[float | None]] = {f"t{at}": [float(at)] for at in range(6)}
    folders = [
        write_run(
            tmp_path / f"{family}{at}{judge}",
            scores,
            system=f"{family}{at}",
            judge=judge,
            system_family=family,
            judge_family=judge,
        )
        for family, n in (("openai", own), ("perplexity", others))
        for at in range(n)
        for judge in ("openai", "google")
    ]
    found = compare(capsys, folders)
    (preference,) = found.json["judges"]["preferences"]
    assert (len(preference["own"]), len(preference["others"]), preference["few_systems"]) == (own, others, few)
    shown = compare(capsys, folders, "--format", "md").out
    assert ("fewer than 3 own or other systems" in shown) is few
    assert "systems and judges taken as fixed" in shown


def test_two_judges_and_their_own_systems_give_the_sum(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folders = [
        path
        for path in own_family(tmp_path, bonus=5.0, judges=("j-openai", "j-google"))
        if "other" not in path.name
    ]
    preferences = compare(capsys, folders).json["judges"]["preferences"]
    assert [(one["is_sum"], one["others"]) for one in preferences] == [(True, ["s-google"]), (True, ["s-openai"])]
    assert preferences[0]["preference"]["value"] == pytest.approx(preferences[1]["preference"]["value"])


def test_unknown_families_take_no_part(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folders = [
        write_run(tmp_path / f"{system}{judge}", {"t1": [1.0], "t2": [2.0]}, system=system, judge=judge)
        for system in "xy"
        for judge in "ab"
    ]
    assert compare(capsys, folders).json["judges"]["preferences"] == []


@pytest.mark.slow
def test_no_difference_is_not_called_one(tmp_path: Path) -> None:
    """2,000 pairs of systems that are alike: 25 tasks, scores clamped to 0…100, half of them skewed by hard tasks."""
    tasks = [f"t{at}" for at in range(25)]
    template = read(write_run(tmp_path / "a", {task: [50.0] for task in tasks}), (), {})
    n = 2_000
    study = Study.of([template], Settings(resamples=300))
    generator = np.random.RandomState(20260211)
    false = first = 0
    for number in range(n):
        hard = generator.normal(50, 15, len(tasks)) - (
            40 * generator.exponential(1, len(tasks)) if number % 2 else 0
        )
        scores = {name: np.clip(hard + generator.normal(0, 12, len(tasks)), 0, 100) for name in ("alpha", "beta")}
        (pair,) = _pairs(study, scores)
        false += pair.verdict != "inconclusive"
        first += pair.verdict == "better"
    # 0.05 and four standard errors of a share of 2,000; and the test is not merely blind
    assert 0.02 * n < false < (0.05 + 4 * math.sqrt(0.05 * 0.95 / n)) * n
    assert first == pytest.approx(false / 2, rel=0.4)


@pytest.mark.slow
def test_many_systems_that_are_alike_are_not_told_apart(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rng = random.Random(3)
    hard = {f"t{at}": rng.gauss(50, 15) for at in range(25)}
    folders = [
        write_run(
            tmp_path / str(at),
            {task: [value + rng.gauss(0, 8)] for task, value in hard.items()},
            system=f"s{at:02}",
        )
        for at in range(21)
    ]
    (board,) = compare(capsys, folders).json["boards"]
    assert len(board["pairs"]) == 210
    assert {pair["verdict"] for pair in board["pairs"]} == {"inconclusive"}
    assert sum(pair["p"] < 0.05 for pair in board["pairs"]) > 0, (
        "only the correction keeps them from being called so"
    )


def test_swaps_beyond_noise_and_within_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Judge b likes beta by ten points more than a does; gamma and delta differ by chance alone."""
    rng = random.Random(4)
    base = {"alpha": 60.0, "beta": 55.0, "gamma": 30.0, "delta": 30.0}
    tasks = [f"t{at}" for at in range(60)]
    hard = {task: rng.gauss(0, 10) for task in tasks}
    tilt = {("gamma", "a"): 0.4, ("delta", "b"): 0.4, ("beta", "b"): 10.0}
    folders = [
        write_run(
            tmp_path / f"{system}{judge}",
            {task: [level + hard[task] + tilt.get((system, judge), 0.0) + rng.uniform(-3, 3)] for task in tasks},
            system=system,
            judge=judge,
        )
        for system, level in base.items()
        for judge in "ab"
    ]
    found = compare(capsys, folders).json["ranks"]
    (pair,) = found["agreements"]
    swaps = {(swap["above"], swap["below"]): swap["beyond_noise"] for swap in pair["swaps"]}
    assert swaps["alpha", "beta"] is True
    assert set(swaps.values()) <= {True, False}
    assert all(not beyond for key, beyond in swaps.items() if key != ("alpha", "beta"))
    orders = {order["judge"]: [rank["system"] for rank in order["ranks"]] for order in found["orders"]}
    assert orders["a"][:2] == ["alpha", "beta"]
    assert orders["b"][:2] == ["beta", "alpha"]
    places = {rank["system"]: (rank["low"], rank["high"]) for rank in found["orders"][0]["ranks"]}
    assert places["alpha"] == (1, 1)
    assert places["gamma"] == (3, 4)
    assert found["n"] == 60


def test_a_grid_is_counted_right(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """4 systems × 3 judges × 2 repeats × 12 tasks × 5 criteria, counted again with plain loops."""
    rng = random.Random(9)
    tasks, units = [f"t{at}" for at in range(12)], [f"c{at}" for at in range(5)]
    rows = task_rows(tasks, criteria=dict.fromkeys(units, 1.0))
    said: dict[tuple[str, str], dict[str, dict[str, list[bool | None]]]] = {}
    folders = []
    for system in ("s0", "s1", "s2", "s3"):
        for judge in ("a", "b", "c"):
            found: dict[str, dict[str, list[bool | None]]] = {
                task: {unit: [rng.choice([True, False, False, None]) for _ in range(2)] for unit in units}
                for task in tasks
            }
            said[system, judge] = found
            scores = {
                task: [100 * sum(found[task][unit][at] is True for unit in units) / 5 for at in range(2)]
                for task in tasks
            }
            folders.append(
                write_run(
                    tmp_path / f"{system}{judge}", scores, system=system, judge=judge, said=found, tasks=rows
                )
            )
    judges = compare(capsys, folders).json["judges"]
    for pair in judges["pairs"]:
        both = [
            (one, other)
            for system in ("s0", "s1", "s2", "s3")
            for task in tasks
            for unit in units
            for one, other in zip(
                said[system, pair["first"]][task][unit], said[system, pair["second"]][task][unit], strict=True
            )
            if one is not None and other is not None
        ]
        assert pair["n"] == len(both)
        assert pair["agreement"] == sum(one == other for one, other in both) / len(both)
        assert pair["yes"][0]["first"] == sum(one for one, _ in both) / len(both)
    questions = [
        [said[system, judge][task][unit][at] for judge in ("a", "b", "c")]
        for system in ("s0", "s1", "s2", "s3")
        for task in tasks
        for unit in units
        for at in range(2)
    ]
    decided = [[met for met in mets if met is not None] for mets in questions]
    decided = [mets for mets in decided if len(mets) > 1]
    (rate,) = (rate for rate in judges["flip_rates"] if rate["group"] is None)
    assert (rate["n"], rate["rate"]) == (len(decided), sum(len(set(mets)) > 1 for mets in decided) / len(decided))
    assert judges["n_alpha"] == len(decided)
    missing = dict.fromkeys(("a", "b", "c"), 0)
    for (_, judge), found in said.items():
        missing[judge] += sum(met is None for units_ in found.values() for mets in units_.values() for met in mets)
    assert {judge["judge"]: judge["missing"] for judge in judges["judges"]} == missing
