"""Sweeps through each of Hydra's launchers, and what a sweep says and leaves.

Ray is too large for the environment that the tests need: where it is not installed, an environment of its own is
laid over this one (`slow`, `install`).
"""

from __future__ import annotations

import fcntl
import json
import os
import platform
import select
import signal
import site
import subprocess
import sys
import venv
from collections.abc import Callable, Sequence
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from fakes.runs import run

from core.app import SweepJob, _store_path
from core.compose import compose, expand
from core.config import RunConfig
from core.launch import launch
from core.schemas import load
from core.sweep import SCHEMA, SweepFile, choices, same_runs

ROOT = Path(__file__).resolve().parents[2]
DISTRIBUTIONS = {
    "joblib": "hydra-joblib-launcher",
    "submitit_local": "hydra-submitit-launcher",
    "ray": "hydra-ray-launcher",
}
#: What keeps Ray from starting its dashboard, and lets the jobs of a sweep run at the same time on few cores.
RAY = ("+hydra.launcher.ray.init.include_dashboard=false", "+hydra.launcher.ray.remote.num_cpus=0.2")
OPTIONS = {"basic": (), "joblib": ("hydra.launcher.n_jobs=4",), "submitit_local": (), "ray": RAY}
launchers = pytest.mark.parametrize(
    "launcher",
    ["basic", "joblib", "submitit_local", pytest.param("ray", marks=pytest.mark.install)],
)

#: Two systems that note each call; `one` and `two` differ in nothing else.
AGENT = """
import os
from pathlib import Path

HERE = Path(__file__).parent

def note(name, task):
    file = os.open(HERE / "calls.txt", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(file, f"{name} {task.id}\\n".encode())
    os.close(file)

async def one(task, effort):
    note("one", task)
    return "An answer."

async def two(task, effort):
    note("two", task)
    return "Another answer."
"""


@pytest.fixture(scope="session")
def interpreter(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """A launcher's name → a Python that has it; skips the test where there is none."""

    def find(launcher: str) -> Path:
        if launcher in DISTRIBUTIONS and not _is_installed(DISTRIBUTIONS[launcher]):
            if launcher == "ray":
                return _with_ray(tmp_path_factory)
            pytest.skip(f"the extra `launchers` is not installed: no {DISTRIBUTIONS[launcher]}")
        return Path(sys.executable)

    return find


def _is_installed(name: str) -> bool:
    try:
        distribution(name)
    except PackageNotFoundError:
        return False
    return True


def _with_ray(factory: pytest.TempPathFactory) -> Path:
    """An environment with all that is installed here and what Ray has besides, at the versions that are pinned."""
    base = factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        base = base.parent
    folder = base / "ray"
    with (base / "ray.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "done").exists():
            folder.mkdir(exist_ok=True)
            (folder / "done").write_text(_install_ray(folder))
    if trouble := (folder / "done").read_text():
        pytest.skip(trouble)
    return folder / "bin" / "python"


def _install_ray(folder: Path) -> str:
    """Why it could not be installed; empty when it could."""
    venv.create(folder, with_pip=False)
    own = folder / "lib" / f"python{sys.version_info.major}.{sys.version_info.minor}" / "site-packages"
    lines = [f"import site; site.addsitedir({path!r})\n" for path in site.getsitepackages()]
    (own / "parent.pth").write_text("".join(lines))
    sets = [(ROOT / "requirements" / f"{name}.txt").read_text().splitlines() for name in ("ray", "core")]
    added = [pin for pin in sets[0] if pin not in sets[1]]
    pip = [sys.executable, "-m", "pip", "--python", str(folder / "bin" / "python"), "install", "--quiet"]
    done = subprocess.run([*pip, "--no-deps", "--no-compile", *added], capture_output=True, text=True, check=False)
    if "No matching distribution found for ray" in done.stderr:
        return "Ray has no wheel for this machine"
    assert done.returncode == 0, done.stderr[-2000:]
    return ""


def environment(python: Path, home: Path) -> dict[str, str]:
    path = os.pathsep.join([str(python.parent), os.environ.get("PATH", os.defpath)])
    return {"PATH": path, "HOME": str(home), "HF_HUB_OFFLINE": "1"}


def sweep(python: Path, folder: Path, *words: str) -> tuple[int, list[dict[str, Any]], str]:
    """`python -m core.run -m …` in a folder: its exit code, the jobs of its sweep.json, what it said."""
    done = subprocess.run(command(python, *words), cwd=folder, env=environment(python, folder),
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)  # fmt: skip
    return done.returncode, jobs(folder), done.stdout + done.stderr


def command(python: Path, *words: str) -> list[str]:
    return [str(python), "-m", "core.run", "-m", "experiment=demo_draco", "limit=2", "out=sweep",
            "store=store.sqlite", *words]  # fmt: skip


def jobs(folder: Path) -> list[dict[str, Any]]:
    content = json.loads((folder / "sweep" / "sweep.json").read_text())
    jsonschema.Draft202012Validator(load("sweep")).validate(content)
    found: list[dict[str, Any]] = content["jobs"]
    return found


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """A folder with two systems and a recorded judge's verdicts about two tasks."""
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "agent.py").write_text(AGENT)
    first = run(tmp_path / "first", "experiment=demo_draco", "limit=2", "judge.repeats=1")
    (folder / "verdicts.jsonl").write_bytes(first.bytes("judgements.jsonl"))
    return folder


def calls(folder: Path) -> list[str]:
    return sorted((folder / "calls.txt").read_text().splitlines())


@pytest.mark.slow
@launchers
def test_two_systems_before_two_judges_are_asked_once_a_task(
    work: Path, interpreter: Callable[[str], Path], launcher: str
) -> None:
    words = ("system=python", "system.target=agent:one,agent:two", "judge=offline,recorded",
             "judge.path=verdicts.jsonl", "judge.repeats=1")  # fmt: skip
    code, found, said = sweep(
        interpreter(launcher), work, *words, f"hydra/launcher={launcher}", *OPTIONS[launcher]
    )
    assert code == 0, said
    tasks = [json.loads(line)["task_id"] for line in (work / "verdicts.jsonl").read_text().splitlines()]
    assert calls(work) == sorted(f"{system} {task}" for system in ("one", "two") for task in set(tasks))
    assert [job["choices"] for job in found] == [
        {"system.target": f"agent:{system}", "judge": judge}
        for system in ("one", "two")
        for judge in ("offline", "recorded")
    ]
    assert [(job["folder"], job["exit_code"]) for job in found] == [
        (f"{number}-draco-python-default-{judge}", 0) for number, judge in enumerate(["offline", "recorded"] * 2)
    ]
    for job in found:
        summary = json.loads((work / "sweep" / job["folder"] / "summary.json").read_text())
        metric = summary["metrics"]["normalized"]
        assert job["headline"] == {
            "metric": "normalized",
            **{name: metric[name] for name in ("value", "low", "high")},
            "n": 2,
            "n_tasks": 2,
        }
        known = summary["cost"]["usd"] if not summary["cost"]["unknown_calls"] else None
        assert (job["coverage"], job["cost_usd"]) == (1.0, known)
        assert job["folder"] in said
    # Ray has a token in HOME, which is this folder
    assert {path.name for path in work.iterdir()} - {".ray", "__pycache__"} == {
        "agent.py", "verdicts.jsonl", "calls.txt", "sweep", "store.sqlite"
    }  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("launcher", ["joblib", "submitit_local"])
def test_the_worst_job_gives_the_code_and_stops_no_other(
    work: Path, interpreter: Callable[[str], Path], launcher: str
) -> None:
    # no such task: refused; a second attempt that the replayed file does not have: missing
    words = ("judge.repeats=1", "attempts=2,1", "tasks=[nosuch],null", f"hydra/launcher={launcher}")
    code, found, said = sweep(interpreter(launcher), work, *words, *OPTIONS[launcher])
    assert (code, [job["exit_code"] for job in found]) == (2, [2, 3, 2, 0]), said
    assert [job["headline"] is None for job in found] == [True, False, True, False]


#: A system that ends its own process once, at the first call after an answered one.
FATAL = """
async def fatal(task, effort):
    once = HERE / "died"
    if (HERE / "calls.txt").exists() and not once.exists():
        once.touch()
        os.kill(os.getpid(), 9)
    note("fatal", task)
    return "An answer."
"""


@pytest.mark.slow
def test_a_killed_worker_ends_a_sweep_with_1_and_the_next_start_does_the_rest(
    work: Path, interpreter: Callable[[str], Path]
) -> None:
    (work / "agent.py").write_text(AGENT + FATAL)
    words = ("system=python", "system.target=agent:fatal", "system.max_in_flight=1", "judge.repeats=1,2",
             "hydra/launcher=joblib", "hydra.launcher.n_jobs=2")  # fmt: skip
    python = interpreter("joblib")
    code, found, said = sweep(python, work, *words)
    assert code == 1, said
    assert None in [job["exit_code"] for job in found]
    assert "the launcher gave up" in said
    code, found, said = sweep(python, work, *words)
    assert (code, [job["exit_code"] for job in found]) == (0, [0, 0]), said
    asked = (work / "calls.txt").read_text().splitlines()
    assert asked.count(asked[0]) == 1  # it had been answered before the kill


#: A system that says that it began, and then waits until it is told to go.
WAITING = """
import asyncio

async def waiting(task, effort):
    if (HERE / "go").exists():
        note("waiting", task)
        return "An answer."
    with open(HERE / "begun", "w") as pipe:
        pipe.write(".")
    await asyncio.Event().wait()
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("launcher", "number", "everyone"),
    [
        ("basic", signal.SIGINT, True),
        ("joblib", signal.SIGINT, True),  # Ctrl-C reaches the workers too
        ("joblib", signal.SIGTERM, False),  # a supervisor ends the command alone
    ],
    ids=["basic, Ctrl-C", "joblib, Ctrl-C", "joblib, TERM"],
)
def test_an_interrupted_sweep_can_be_continued(
    work: Path,
    interpreter: Callable[[str], Path],
    launcher: str,
    number: signal.Signals,
    everyone: bool,
) -> None:
    (work / "agent.py").write_text(AGENT + WAITING)
    os.mkfifo(work / "begun")
    python = interpreter(launcher)
    words = ("system=python", "system.target=agent:waiting", "judge.repeats=1,2", f"hydra/launcher={launcher}")
    pipe = os.open(work / "begun", os.O_RDWR)  # held open for both ways: neither side waits for the other
    with (work / "said").open("w") as said:
        running = subprocess.Popen(command(python, *words), cwd=work, env=environment(python, work),
                                   stdin=subprocess.DEVNULL, stdout=said, stderr=said, start_new_session=True)  # fmt: skip
        try:
            assert select.select([pipe], [], [], 300)[0], "the system was never asked"
            (os.killpg if everyone else os.kill)(running.pid, number)
            code = running.wait(300)
        finally:
            running.kill()
            running.wait()
    assert code == 130, (work / "said").read_text()
    assert not any(job["exit_code"] == 0 for job in jobs(work))
    (work / "go").touch()
    code, found, told = sweep(python, work, *words)
    assert (code, [job["exit_code"] for job in found]) == (0, [0, 0]), told
    assert len(calls(work)) == len(set(calls(work))) == 2
    os.close(pipe)


def documented() -> list[str]:
    """The commands of docs/sweeps.md that name a launcher."""
    text = (ROOT / "docs" / "sweeps.md").read_text(encoding="utf-8").replace("\\\n", " ")
    return [line for line in text.splitlines() if line.startswith("python ") and "hydra/launcher=" in line]


def named(line: str) -> str:
    return line.partition("hydra/launcher=")[2].split()[0]


@pytest.mark.slow
@launchers
def test_a_documents_command_runs_as_written(
    tmp_path: Path, interpreter: Callable[[str], Path], launcher: str
) -> None:
    (line,) = [each for each in documented() if named(each) == launcher]
    python = interpreter(launcher)
    done = subprocess.run(["bash", "-c", line], cwd=tmp_path, env=environment(python, tmp_path),
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    (file,) = tmp_path.glob("runs/*/sweep.json")
    assert [job["exit_code"] for job in json.loads(file.read_text())["jobs"]] == [0, 0]


def test_the_document_has_a_command_for_each_launcher_that_is_tested() -> None:
    assert sorted(map(named, documented())) == sorted(OPTIONS)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["judge.repeats=1,1"], [[0, 1]]),
        (["system.max_in_flight=1,2"], [[0, 1]]),
        (["seed=1,2"], [[0, 1]]),
        (["seed=1,2", "sample=2"], []),
        (["effort=quick,deep,long", "system=mine"], [[0, 1]]),
        (["effort=null,quick", "system=mine"], [[0, 1]]),
        (["attempts=1,2", "seed=1,2"], [[0, 1], [2, 3]]),
        (["judge=offline,recorded"], []),
        (["system.label=a,b"], []),
    ],
    ids=str,
)
def test_jobs_that_are_one_run_are_found(tmp_path: Path, words: Sequence[str], expected: list[list[int]]) -> None:
    mine = tmp_path / "system" / "mine.yaml"
    mine.parent.mkdir()
    mine.write_text("defaults: [python, _self_]\nname: mine\ndefault_effort: deep\n"
                    "efforts: {quick: {}, deep: {}, long: {steps: 9}}\n")  # fmt: skip
    base = ["experiment=demo_draco", *words]
    configs = [RunConfig.from_tree(compose(job, str(tmp_path))) for job in expand(base)]
    assert list(same_runs(configs)) == expected


def test_jobs_that_are_one_run_are_named_before_the_start(in_tmp: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert launch(["-m", "experiment=demo_draco", "seed=1,2", "dry_run=true"]) == 0
    said = capfd.readouterr().err
    assert "jobs 0 (seed=1) and 1 (seed=2) are the same run" in said
    assert said.index("the same run") < said.index("dry run")


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["judge=a,b", "seed=1"], [{"judge": "a"}, {"judge": "b"}]),
        (["seed=1,2", "attempts=1,2"], [{"seed": s, "attempts": a} for s in (1, 2) for a in (1, 2)]),
        (["tasks=['a*'],null"], [{"tasks": ["a*"]}, {"tasks": None}]),
        (["system.label='x, y','z'"], [{"system.label": "x, y"}, {"system.label": "z"}]),
        (["++judge.params.k=1e3,true"], [{"judge.params.k": 1000.0}, {"judge.params.k": True}]),
        (["seed=range(0,2)"], [{"seed": 0}, {"seed": 1}]),
        (["seed=1,1"], [{}, {}]),
        (["seed=1"], [{}]),
    ],
    ids=str,
)
def test_choices_are_the_keys_in_which_jobs_differ(words: list[str], expected: list[dict[str, Any]]) -> None:
    assert choices(list(expand(words))) == expected


@pytest.mark.parametrize(
    ("words", "key", "values"),
    [
        (["benchmark.form=with_hints,without_hints", "experiment=demo_dag"], "benchmark.form",
         ["with_hints", "without_hints"]),
        (["seed=1,2", "sample=1", "experiment=demo_draco"], "seed", [1, 2]),
    ],
    ids=["form", "seed"],
)  # fmt: skip
def test_a_sweep_tells_its_jobs_apart(in_tmp: Path, words: list[str], key: str, values: list[Any]) -> None:
    assert launch(["-m", *words, "judge.repeats=1", "out=sweep", "store=store.sqlite", "progress=none"]) == 0
    assert [job["choices"] for job in jobs(in_tmp)] == [{key: value} for value in values]


def test_a_glob_is_refused(in_tmp: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert launch(["-m", "experiment=demo_draco", "judge=glob(*)"]) == 2
    assert "the values, with commas" in capfd.readouterr().err
    assert list(in_tmp.iterdir()) == []


@pytest.mark.parametrize(
    ("words", "number", "expected"),
    [
        ([], None, "runs/store.sqlite"),
        (["store=mine.sqlite", "out=here"], None, "mine.sqlite"),
        (["store=mine.sqlite", "out=here", f"launched_on={platform.node()}"], 1, "mine.sqlite"),
        (["store=mine.sqlite", "out=here", "launched_on=elsewhere"], None, "here/store.sqlite"),
        (["store=mine.sqlite", "out=here", "launched_on=elsewhere"], 1,
         "here/1-draco-replay-default-offline/store.sqlite"),
    ],
)  # fmt: skip
def test_machines_do_not_share_a_store(words: list[str], number: int | None, expected: str) -> None:
    config = RunConfig.from_tree(compose(["experiment=demo_draco", *words]))
    job = None if number is None else SweepJob(Path("here"), number)
    assert _store_path(config, job) == Path(expected)


def test_the_schema_of_sweep_json_is_that_of_its_model() -> None:
    made = SweepFile.model_json_schema(mode="serialization")
    schema = load("sweep")
    assert schema["properties"] == {"schema": {"const": SCHEMA}, **made["properties"]}
    assert schema["$defs"] == made["$defs"]
    assert schema["required"] == ["schema", *made["required"]]
