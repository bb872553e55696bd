"""The embedded demo in an empty environment, and sweeps over its parts."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from fakes.runs import NO_SOCKETS, Run, run

from core.launch import launch


@pytest.mark.parametrize("experiment", ["demo", "demo_draco", "demo_dag", "demo_wandr"])
def test_a_demo_needs_no_key_no_network_and_writes_only_its_folder(tmp_path: Path, experiment: str) -> None:
    home = tmp_path / "home"
    work = tmp_path / "work"
    home.mkdir()
    work.mkdir()
    done = subprocess.run(
        [sys.executable, "-c", NO_SOCKETS, f"experiment={experiment}", "out=here", "store=there.sqlite"],
        env={"PATH": os.environ["PATH"], "HOME": str(home)},
        cwd=work,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert {path.name for path in work.iterdir()} <= {"here", "there.sqlite"}
    assert list(home.iterdir()) == []
    assert "a set of rules, not a model" in done.stderr
    result = Run(0, work / "here")
    assert any("a set of rules, not a model" in warning for warning in result.summary["warnings"])


def test_the_demo_orders_good_partial_negative_and_empty(tmp_path: Path) -> None:
    result = run(tmp_path / "run", "experiment=demo_draco")
    scores = [row["metrics"]["normalized"] for row in result.rows("scores.jsonl")]
    assert sorted(scores, reverse=True) == scores
    assert len(set(scores)) == 4
    assert scores[-1] == 0
    assert result.rows("scores.jsonl")[-1]["status"] == "zero"


def test_the_default_folder_is_named_by_the_run_and_never_reused(in_tmp: Path) -> None:
    names = []
    for _ in range(2):
        assert launch(["experiment=demo_draco", "progress=none", "store=store.sqlite"]) == 0
        names = sorted(path.name for path in (in_tmp / "runs").iterdir())
    assert len(names) == 2
    assert all("-draco-replay-default-offline" in name for name in names)


def sweep(folder: Path, *words: str) -> tuple[int, dict[str, Any]]:
    code = launch(["-m", "experiment=demo_draco", f"out={folder}", "progress=none",
                   f"store={folder.parent / 'store.sqlite'}", *words])  # fmt: skip
    return code, {path.parent.name: json.loads(path.read_text()) for path in sorted(folder.glob("*/run.json"))}


def test_a_sweep_makes_a_folder_a_job(in_tmp: Path) -> None:
    tmp_path = in_tmp
    code, jobs = sweep(tmp_path / "sweep", "judge.repeats=1,2", "limit=1,2")
    assert code == 0
    assert sorted(jobs) == [f"{number}-draco-replay-default-offline" for number in range(4)]
    assert {(job["config"]["judge"]["repeats"], job["config"]["limit"]) for job in jobs.values()} == {
        (repeats, limit) for repeats in (1, 2) for limit in (1, 2)
    }
    assert {path.name for path in tmp_path.iterdir()} <= {"sweep", "store.sqlite"}


def test_a_sweep_ends_with_the_worst_code_and_every_job_runs(tmp_path: Path) -> None:
    # an attempt that the replayed file does not have is missing: exit 3
    code, jobs = sweep(tmp_path / "sweep", "attempts=2,1")
    assert code == 3
    assert sorted(job["exit_code"] for job in jobs.values()) == [0, 3]


def test_a_dry_sweep_ends_with_0_and_writes_nothing(in_tmp: Path) -> None:
    assert sweep(in_tmp / "sweep", "judge.repeats=1,2", "dry_run=true") == (0, {})
    assert list(in_tmp.iterdir()) == []


def test_lists_of_tasks_can_be_swept(tmp_path: Path) -> None:
    code, jobs = sweep(tmp_path / "sweep", "tasks=[sample-*],null")
    assert code == 0
    assert sorted(str(job["config"]["tasks"]) for job in jobs.values()) == ["None", "['sample-*']"]


def test_a_job_that_is_refused_says_so_and_the_others_run(tmp_path: Path) -> None:
    code, jobs = sweep(tmp_path / "sweep", "tasks=[nosuch],null")
    assert code == 2
    refused = [job for job in jobs.values() if job["exit_code"] == 2]
    assert len(refused) == 1
    assert "nosuch" in refused[0]["refused"]


def test_a_refused_job_can_be_run_again_once_it_is_mended(tmp_path: Path) -> None:
    folder = tmp_path / "sweep"
    assert sweep(folder, "tasks=[nosuch],null")[0] == 2
    assert sweep(folder, "judge.repeats=5", "limit=null")[0] == 0


def test_a_folder_of_another_sweep_is_refused_and_left_alone(tmp_path: Path) -> None:
    folder = tmp_path / "sweep"
    assert sweep(folder, "judge.repeats=1,2")[0] == 0
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    assert sweep(folder, "judge.repeats=3,2")[0] == 2
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (["judge=offline,offlin"], "offlin"),
        (["limt=1,2"], "limt"),
        (["limit=1,x"], "limit"),
    ],
    ids=str,
)
def test_a_sweep_with_a_faulty_combination_starts_nothing(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], words: list[str], part: str
) -> None:
    code, jobs = sweep(tmp_path / "sweep", *words)
    assert (code, jobs) == (2, {})
    assert part in capfd.readouterr().err


def test_the_composed_configuration_can_be_printed(in_tmp: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert launch(["experiment=demo_draco", "--cfg", "job"]) == 0
    assert "coverage_floor: 0.95" in capfd.readouterr().out
    assert list(in_tmp.iterdir()) == []


def test_a_folder_of_own_configs(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    own = tmp_path / "own" / "system"
    own.mkdir(parents=True)
    (own / "mine.yaml").write_text("defaults:\n  - replay\n  - _self_\nname: mine\nlabel: mine\n")
    result = run(tmp_path / "run", "--config-dir", str(tmp_path / "own"), "experiment=demo_draco", "system=mine",
                 "system.path=pkg://plugins.draco/sample/submissions.jsonl")  # fmt: skip
    assert result.code == 0
    assert result.summary["system"] == "mine"
