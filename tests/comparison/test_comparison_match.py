"""Which runs may be compared, and what is said of those that differ."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from comparison_helpers import SCORES, compare, two
from fakes.run_folders import task_rows, write_run

OTHER_TASKS = {f"u{at}": [50.0] for at in range(10)}
#: An ensemble: its own family is null, its members have one each.
ENSEMBLE = {
    "judge": {
        "name": "ensemble",
        "provider": "ensemble",
        "family": None,
        "vote": "mean",
        "members": {
            "gpt": {"name": "gpt", "provider": "litellm", "family": "openai"},
            "sonnet": {"name": "sonnet", "provider": "litellm", "family": "anthropic"},
        },
    }
}


def benchmark(**keys: Any) -> dict[str, Any]:
    return {"config": {"benchmark": keys}}


@pytest.mark.parametrize(
    ("second", "said", "can_be_forced"),
    [
        (benchmark(name="wandr"), "different benchmarks", False),
        (benchmark(profile="released"), "profile: None and 'released'", True),
        (benchmark(weights={"scheme": "uniform"}), "weights: None and {'scheme': 'uniform'}", True),
        (benchmark(form="without_hints"), "form: None and 'without_hints'", True),
        (benchmark(headline="pass_rate"), "headline: 'normalized' and 'pass_rate'", True),
        ({"scores": OTHER_TASKS}, "no task is in both", True),
    ],
    ids=["benchmark", "profile", "weights", "form", "headline", "no task in common"],
)
def test_numbers_of_different_meaning_are_refused(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    second: Mapping[str, Any],
    said: str,
    can_be_forced: bool,
) -> None:
    folders = two(tmp_path, {}, second)
    refused = compare(capsys, folders)
    assert (refused.code, refused.out) == (2, "")
    assert said in refused.err
    forced = compare(capsys, folders, "--force")
    assert forced.code == (0 if can_be_forced else 2)
    if can_be_forced:
        assert [(finding["severity"], finding["forced"]) for finding in forced.json["findings"][:1]] == [
            ("mark", True)
        ]


def test_what_is_forced_stands_apart_where_no_task_is_shared(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    forced = compare(capsys, two(tmp_path, {}, {"scores": OTHER_TASKS}), "--force")
    (board,) = forced.json["boards"]
    assert board["n_common"] == 0
    assert [(row["system"], row["score"]["value"], row["score"]["n"]) for row in board["systems"]] == [
        ("alpha", 53.5, 10),
        ("beta", 50.0, 10),
    ]
    (pair,) = board["pairs"]
    assert (pair["difference"]["value"], pair["p"], pair["verdict"]) == (None, None, "inconclusive")


@pytest.mark.parametrize(
    ("first", "second", "code"),
    [
        ({}, {"judge": "judge-b"}, "judges"),
        ({}, {"judge_settings": {"model": "judge-a", "temperature": 1}}, "judges"),
        ({}, {"facts": {"prompt_digest": "q"}}, "prompts"),
        ({}, {"scores": {**SCORES, "t10": [50.0]}}, "task_sets"),
        ({}, {"coverage": 0.97}, "coverage"),
        ({}, {"scores": {**SCORES, "t3": [None]}}, "withheld"),
        ({}, {"scores": {task: [None] for task in SCORES}}, "no_numbers"),
        ({}, {"scores": {task: numbers * 2 for task, numbers in SCORES.items()}}, "repeats"),
        ({}, {"config": {"attempts": 2}}, "attempts"),
        ({}, {"config": {"pages": {"mode": "web"}}}, "pages"),
        ({}, {"config": {"system": {"on_failure": "missing"}}}, "on_failure"),
        ({}, benchmark(strict=True), "floor"),
        ({}, {"facts": {"leadline": "0.2.0"}}, "version"),
        ({}, {"facts": {"exit_code": None}}, "unfinished"),
        ({}, {"tasks": task_rows(SCORES, criteria={"c1": 5.0})}, "contents"),
        ({"judge_family": "openai", "system_family": "openai"}, {"judge_family": "openai"}, "own_family"),
        (
            {"config": {"judge": {"provider": "offline"}}},
            {"config": {"judge": {"provider": "offline"}}},
            "offline_judge",
        ),
        ({}, {"system": "alpha"}, "again"),
        ({}, {"system_family": None}, "family_unknown"),
        ({}, {"judge_family": None}, "family_unknown"),
        ({}, {"config": {"judge": {"provider": "recorded"}}}, "recorded"),
        ({"config": ENSEMBLE}, {"config": ENSEMBLE}, "vote_mean"),
        ({"config": ENSEMBLE, "system_family": "openai"}, {"config": ENSEMBLE}, "own_family"),
        (
            {"config": {"system": {"adapter": "python"}}},
            {"system": "alpha", "config": {"system": {"adapter": "chat"}}},
            "systems",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_every_other_difference_is_a_mark(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    first: Mapping[str, Any],
    second: Mapping[str, Any],
    code: str,
) -> None:
    # a task of another content in most runs of two is a tie: the first run's is the usual one
    found = compare(capsys, two(tmp_path, first, second), *(["--force"] if code == "contents" else []))
    assert found.code == 0, found.err
    assert code in found.codes
    assert {finding["severity"] for finding in found.json["findings"]} == {"mark"}
    text = compare(
        capsys, [tmp_path / "a", tmp_path / "b"], "--format", "text", *(["--force"] if code == "contents" else [])
    )
    assert text.out.index("warning: ") < text.out.index("┏"), "marks stand above the tables"


def test_runs_that_differ_in_nothing_have_no_marks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert compare(capsys, two(tmp_path, {}, {})).codes == []


def test_an_ensembles_families_are_its_members(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = compare(
        capsys, two(tmp_path, {"config": ENSEMBLE, "system_family": "openai"}, {"config": ENSEMBLE}), "--judges"
    )
    assert found.finding("own_family")["runs"] == ["alpha · ensemble"]
    assert "family_unknown" not in found.codes
    assert found.json["judges"]["judges"][0]["family"] == "anthropic+openai"


def test_rules_have_no_family(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rules = {"config": {"judge": {"provider": "offline"}}, "judge_family": None}
    assert compare(capsys, two(tmp_path, rules, rules)).codes == ["offline_judge"]


@pytest.mark.parametrize(
    ("negative", "marked"),
    [((4, 4), False), ((99, 100), False), ((97, 100), True), ((1, 4), True), ((0, 0), False)],
)
def test_lost_parts_are_marked_whatever_the_coverage_of_all(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], negative: tuple[int, int], marked: bool
) -> None:
    folders = two(tmp_path, {}, {})
    for folder, (graded, expected) in zip(folders, [(40, 40), negative], strict=True):
        rows = [json.loads(line) for line in (folder / "scores.jsonl").read_text("utf-8").splitlines()]
        counts = {
            "positive": {"graded": 360, "expected": 360},
            "negative": {"graded": graded, "expected": expected},
        }
        rows[0]["coverage_by"] = {"sign": counts}
        (folder / "scores.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    found = compare(capsys, folders)
    assert found.codes == (["coverage_by"] if marked else [])
    if marked:
        said = found.finding("coverage_by")["text"]
        assert said.startswith("coverage of sign negative differs by more than 2%: 100.0%: alpha · judge-a; ")


def test_a_part_that_only_one_run_tells_is_held_against_the_others_whole(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folders = two(tmp_path, {}, {})
    path = folders[1] / "scores.jsonl"
    rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    rows[0]["coverage_by"]["sign"]["negative"] = {"graded": 1, "expected": 4}
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    found = compare(capsys, folders)
    assert found.codes == ["coverage_by"]
    assert found.finding("coverage_by")["runs"] == ["beta · judge-a"]


@pytest.mark.parametrize(
    "second",
    [
        {"coverage": 0.985},
        benchmark(source="tasks.jsonl", revision="r1", delivery="file"),
        {"effort": "high"},
        {"config": {"pages": {"timeout_s": 5}}},
    ],
    ids=["coverage within two points", "where tasks come from", "effort", "pace of pages"],
)
def test_what_does_not_bear_on_the_numbers_is_not_marked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], second: Mapping[str, Any]
) -> None:
    assert compare(capsys, two(tmp_path, {}, second)).codes == []


def test_a_task_of_another_content_is_not_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    changed = task_rows(SCORES)
    changed[0]["prompt"] = "What else?"
    found = compare(capsys, two(tmp_path, {}, {"tasks": changed}))
    assert found.finding("contents")["runs"] == ["beta · judge-a"]
    assert found.json["boards"][0]["n_common"] == 9
    forced = compare(capsys, [tmp_path / "a", tmp_path / "b"], "--force")
    assert forced.json["boards"][0]["n_common"] == 10


def test_a_shard_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = compare(capsys, two(tmp_path, {}, {"config": {"shard": {"number": 1, "of": 2}}}), "--force")
    assert found.code == 2
    assert "shard 1/2" in found.err
    assert "core.merge" in found.err


@pytest.mark.parametrize(
    ("runs", "boards"),
    [
        ([("alpha", "a"), ("beta", "a")], [("a", ["alpha", "beta"])]),
        ([("alpha", "a"), ("beta", "b")], [(None, ["alpha · a", "beta · b"])]),
        ([("alpha", "a"), ("alpha", "b")], [("a", ["alpha"]), ("b", ["alpha"])]),
        (
            [("alpha", "a"), ("beta", "a"), ("alpha", "b"), ("beta", "b")],
            [("a", ["alpha", "beta"]), ("b", ["alpha", "beta"])],
        ),
        (
            [("alpha", "a"), ("beta", "a"), ("gamma", "c")],
            [("a", ["alpha", "beta"]), (None, ["alpha · a", "beta · a", "gamma · c"])],
        ),
        ([("alpha", "a"), ("alpha", "a")], [("a", ["alpha · a", "alpha · a #2"])]),
    ],
    ids=["one judge", "a judge each", "one system", "a grid", "one stands alone", "one run again"],
)
def test_systems_are_compared_under_a_judge_they_share(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    runs: list[tuple[str, str]],
    boards: list[tuple[str | None, list[str]]],
) -> None:
    folders = [
        write_run(tmp_path / str(at), SCORES, system=system, judge=judge)
        for at, (system, judge) in enumerate(runs)
    ]
    found = compare(capsys, folders).json
    assert [(board["judge"], [row["system"] for row in board["systems"]]) for board in found["boards"]] == boards
