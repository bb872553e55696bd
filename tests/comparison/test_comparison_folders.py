"""Run folders as they come: real ones, damaged ones, twice the same, and those of a sweep."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from comparison_helpers import SCORES, compare, two
from fakes import runs
from fakes.run_folders import write_run
from jsonschema import Draft202012Validator

from core.compare import main
from core.comparison import SCHEMA, Comparison, write

Damage = Callable[[Path], object]


def append(name: str, text: str) -> Damage:
    def damage(folder: Path) -> None:
        with (folder / name).open("a", encoding="utf-8") as file:
            file.write(text)

    return damage


def drop(name: str) -> Damage:
    return lambda folder: (folder / name).unlink()


def replace(name: str, text: str) -> Damage:
    return lambda folder: (folder / name).write_text(text, encoding="utf-8")


@pytest.mark.parametrize(
    ("damage", "why"),
    [
        (drop("scores.jsonl"), "there is no scores.jsonl"),
        (drop("summary.json"), "there is no summary.json"),
        (drop("tasks.jsonl"), "the file is missing"),
        (drop("run.json"), "there is no run.json"),
        (replace("run.json", "[]"), "not a JSON object"),
        (replace("run.json", '{"schema": "leadline/run/1"}'), "run.json lacks"),
        (replace("run.json", '{"schema": "leadline/run/1", "refused": "no key"}'), "the run was refused: no key"),
        (replace("run.json", '{"schema": "leadline/run/7"}'), "a run of another version"),
        (replace("summary.json", "{"), "not JSON"),
        (replace("scores.jsonl", "{]\n{}\n"), "not JSON"),
        (replace("scores.jsonl", '{"schema": "leadline/score/9"}\n'), "not a score row of a known version"),
        (replace("scores.jsonl", "7\n"), "not a score row"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_folder_that_is_no_run_is_left_out_and_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], damage: Damage, why: str
) -> None:
    folders = two(tmp_path, {}, {})
    damage(folders[1])
    found = compare(capsys, folders)
    assert found.code == 0
    (left,) = found.json["left_out"]
    assert left["path"] == str(folders[1])
    assert why in left["why"]
    assert [run["system"] for run in found.json["runs"]] == ["alpha"]
    alone = compare(capsys, folders[1:])
    assert (alone.code, alone.out) == (2, "")
    assert why in alone.err


@pytest.mark.parametrize(
    ("damage", "said", "n"),
    [
        (append("scores.jsonl", '{"schema": "leadline/score/1", "task_'), "the last line is cut off", 10),
        (
            append(
                "scores.jsonl", '{"schema": "leadline/score/1", "task_id": "t0", "metrics": {"normalized": 1}}\n'
            ),
            "stands twice",
            10,
        ),
        (
            append("scores.jsonl", '{"schema": "leadline/score/1", "task_id": "zz"}\n'),
            "which the run does not have",
            10,
        ),
        (append("scores.jsonl", "\n\n"), None, 10),
        (
            replace(
                "scores.jsonl", '{"schema": "leadline/score/1", "task_id": "t0", "metrics": {"normalized": NaN}}\n'
            ),
            "no task has a number",
            0,
        ),
        (
            replace(
                "scores.jsonl",
                '{"schema": "leadline/score/1", "task_id": "t0", "metrics": {"normalized": "9"}, "by_run": 3, "labels": [], "coverage_by": {"a": 1}, "cost_usd": true}\n',
            ),
            "no task has a number",
            0,
        ),
        (
            replace(
                "scores.jsonl",
                '{"schema": "leadline/score/1", "task_id": "t0", "metrics": {"normalized": 9}, "by_run": [null, {"metrics": null}], "labels": {"domain": 4}}\n',
            ),
            None,
            1,
        ),
    ],
    ids=["cut last line", "twice", "unknown task", "blank lines", "NaN", "other shapes", "odd parts"],
)
def test_odd_scores_are_passed_over_and_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], damage: Damage, said: str | None, n: int
) -> None:
    folder = write_run(tmp_path / "a", SCORES)
    damage(folder)
    found = compare(capsys, [folder])
    assert found.code == 0, found.err
    assert found.json["runs"][0]["n_scored"] == n
    if said is not None:
        assert any(said in finding["text"] for finding in found.json["findings"])


def test_a_folder_that_is_not_there_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = compare(capsys, [write_run(tmp_path / "a", SCORES), tmp_path / "b"])
    assert (found.code, found.out) == (2, "")
    assert "there is no such folder" in found.err


def test_a_run_counts_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = write_run(tmp_path / "a", SCORES)
    copy = tmp_path / "copy"
    shutil.copytree(folder, copy)
    found = compare(capsys, [folder, tmp_path / "." / "a", copy]).json
    assert len(found["runs"]) == 1
    assert [left["why"].split(": ")[1] for left in found["left_out"]] == [
        "the folder is named twice",
        f"the same run as {folder}",
    ]


def test_the_same_input_gives_the_same_bytes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folders = two(tmp_path, {}, {"judge": "judge-b"})
    for out in ("one", "two"):
        assert compare(capsys, folders, "--out", str(tmp_path / out)).code == 0
    for name in ("compare.json", "compare.md"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()
    content = json.loads((tmp_path / "one" / "compare.json").read_text(encoding="utf-8"))
    assert content["schema"] == SCHEMA
    assert (content["settings"]["seed"], content["settings"]["resamples"]) == (20260211, 500)


def test_names_from_files_are_no_markup(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = write_run(tmp_path / "a", SCORES, system="<b>[x](y)|*z*\n# [red]w[/red]")
    table = compare(capsys, [folder], "--format", "md").out
    assert "&lt;b&gt;\\[x\\](y)\\|\\*z\\* \\# \\[red\\]w\\[/red\\]" in table
    assert "[red]w[/red]" in compare(capsys, [folder], "--format", "text").out


def test_what_cannot_be_written_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = write_run(tmp_path / "a", SCORES)
    found = compare(capsys, [folder], "--out", str(folder / "run.json"))
    assert (found.code, found.out) == (2, "")
    assert "can't be written" in found.err


@pytest.mark.parametrize(
    ("experiment", "metric", "kind"),
    [
        ("demo_draco", "normalized", "criterion"),
        ("demo_dag", "score", "checkpoint"),
        ("demo_wandr", "soft_f1", "record"),
    ],
)
def test_real_runs_and_the_same_answers_judged_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], experiment: str, metric: str, kind: str
) -> None:
    """A demonstration under the offline judge, and under one whose verdicts on every third unit are turned round."""
    first = runs.run(tmp_path / "offline", f"experiment={experiment}")
    rows = first.rows("judgements.jsonl")
    judged = [row for row in rows if row["judge"] != "rule"]
    for row in judged:
        row["judge"] = "contrary"
    for row in [row for row in judged if row["unit"].startswith(kind)][::3]:
        row["verdict"] = {
            key: not value if key in ("met", "verdict", "requirements_all_satisfied") else value
            for key, value in row["verdict"].items()
        }
    recorded = runs.write_rows(tmp_path / "contrary.jsonl", rows)
    second = runs.run(
        tmp_path / "contrary",
        f"experiment={experiment}",
        "judge=recorded",
        f"judge.path={recorded}",
        "fail_on=never",
    )
    capsys.readouterr()  # what the runs said
    found = compare(capsys, [first.folder, second.folder])
    assert found.code == 0, found.err
    content = found.json
    Draft202012Validator(Comparison.model_json_schema(mode="serialization")).validate(
        {key: value for key, value in content.items() if key != "schema"}
    )
    own = {board["judge"]: board["systems"][0]["own"] for board in content["boards"]}
    assert own == {"offline": first.value(metric), "contrary": second.value(metric)}
    (pair,) = content["judges"]["pairs"]
    assert 0.6 < pair["agreement"] < 0.75
    assert all(flip["unit"].startswith(kind) for flip in content["judges"]["flips"])
    assert "offline_judge" in found.codes


def test_a_sweep_is_written(tmp_path: Path) -> None:
    folders = two(tmp_path, {}, {})
    said = write(tmp_path / "sweep", folders)
    assert said == [f"2 runs of draco compared in {tmp_path / 'sweep' / 'compare'}.md and compare.json"]
    content = json.loads((tmp_path / "sweep" / "compare.json").read_text(encoding="utf-8"))
    assert [run["system"] for run in content["runs"]] == ["alpha", "beta"]
    assert content["findings"] == []


def test_a_sweep_writes_what_it_can_and_says_what_it_could_not(tmp_path: Path) -> None:
    folders = [
        *two(tmp_path, {}, {"scores": {"other": [1.0]}}),
        write_run(tmp_path / "c", SCORES, system="gamma", config={"benchmark": {"profile": "released"}}),
        write_run(tmp_path / "d", SCORES, system="delta", config={"shard": {"number": 1, "of": 2}}),
        tmp_path / "nowhere",
    ]
    said = write(tmp_path / "sweep", folders)
    assert [line.partition(":")[0] for line in said[:2]] == ["not compared", "not compared"]
    assert "shard 1/2" in said[0]
    assert "nowhere" in said[1]
    assert sorted(path.name for path in (tmp_path / "sweep").iterdir()) == [
        "compare-draco-2.json",
        "compare-draco-2.md",
        "compare-draco.json",
        "compare-draco.md",
    ]
    content = json.loads((tmp_path / "sweep" / "compare-draco.json").read_text(encoding="utf-8"))
    assert [(finding["code"], finding["forced"]) for finding in content["findings"]] == [("no_common_tasks", True)]
    assert len(content["left_out"]) == 2


def test_a_fault_of_ours_does_not_stop_a_sweep(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise ValueError("2 labels for 0 values")

    monkeypatch.setattr("core.comparison.build.compare_runs", broken)
    said = write(tmp_path / "sweep", two(tmp_path, {}, {}))
    assert said == ["draco: not compared: ValueError: 2 labels for 0 values"]


@pytest.mark.parametrize("folders", [[], ["nowhere"]])
def test_a_sweep_without_runs_raises_nothing(tmp_path: Path, folders: list[str]) -> None:
    said = write(tmp_path / "sweep", [tmp_path / name for name in folders])
    assert len(said) == len(folders)
    assert not (tmp_path / "sweep").exists()


def test_help_is_answered_without_numpy() -> None:
    code = "import sys, core.compare\ntry:\n core.compare.main(['--help'])\nexcept SystemExit:\n pass\nassert 'numpy' not in sys.modules"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "core.compare" in done.stdout


def test_no_folder_is_an_error_of_the_command_line() -> None:
    with pytest.raises(SystemExit) as ended:
        main([])
    assert ended.value.code == 2
