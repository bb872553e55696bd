"""Third-party packages, installed into an environment of their own and used by name."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from project_helpers import ROOT, Environment, environment_with, once

pytestmark = [pytest.mark.install, pytest.mark.slow]
EXAMPLES = ROOT / "examples"
TOY = ("benchmark=toy", "system=echo", "judge=offline", "out=run", "store=store.sqlite")


@pytest.fixture(scope="session")
def examples(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """An environment with the example plugin and the broken ones."""

    def make(folder: Path) -> None:
        environment_with(folder / "env", [EXAMPLES / "plugin", EXAMPLES / "broken_plugin"])

    return Environment(once(tmp_path_factory, "examples", make) / "env" / "bin" / "python")


@pytest.fixture(scope="session")
def generated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an environment, and the packages that core.new wrote, installed into it."""

    def make(folder: Path) -> None:
        from core.new import write

        packages = [folder / "a_benchmark", folder / "a_system"]
        write("benchmark", "harbour_pilots", packages[0])
        write("system", "tide_tables", packages[1])
        environment_with(folder / "env", packages)

    return once(tmp_path_factory, "generated", make)


def summary(folder: Path) -> dict[str, object]:
    content: dict[str, object] = json.loads((folder / "run" / "summary.json").read_text())
    return content


def test_the_example_runs_by_name(examples: Environment, tmp_path: Path) -> None:
    done = examples.run("-m", "core.run", *TOY, "effort=high", cwd=tmp_path)
    found = summary(tmp_path)
    assert (found["benchmark"], found["system"], found["effort"]) == ("toy", "echo", "high")
    assert (found["n_tasks"], found["n_scored"], found["coverage"]) == (3, 3, 1.0)
    metrics = found["metrics"]
    assert isinstance(metrics, dict)
    # the question states one of two points, none of two, and the only one
    assert metrics["recall"]["value"] == pytest.approx(50.0)
    assert "recall" in done.stdout
    rows = (tmp_path / "run" / "submissions.jsonl").read_text().splitlines()
    assert {json.loads(row)["settings"]["times"] for row in rows} == {3}


def test_the_examples_own_tests_pass(examples: Environment, tmp_path: Path) -> None:
    examples.run("-m", "pytest", "-q", "-p", "no:cacheprovider", str(EXAMPLES / "plugin"), cwd=tmp_path)


@pytest.mark.parametrize(
    ("name", "state"),
    [
        ("toy", "loaded"),
        ("broken", "import failed: ModuleNotFoundError: No module named 'a_package_that_nobody_has'"),
        ("misspelt", "no hook is called 'register_system'; did you mean 'register_systems'?"),
        ("draco", "loaded"),
    ],
)
def test_the_listing_names_each_plugin_and_its_problem(
    examples: Environment, tmp_path: Path, name: str, state: str
) -> None:
    done = examples.run("-m", "core.list", "plugins", cwd=tmp_path)
    (line,) = [line for line in done.stdout.splitlines() if line.split()[:1] == [name]]
    assert state in line


def test_the_listing_has_the_plugins_benchmark_system_and_efforts(examples: Environment, tmp_path: Path) -> None:
    done = examples.run("-m", "core.list", cwd=tmp_path)
    lines = [line.split() for line in done.stdout.splitlines()]
    assert ["toy", "offline", "1", "sample"] in lines
    assert any(line[:4] == ["echo", "echo", "low,", "high"] for line in lines)


def test_broken_plugins_do_no_harm_to_other_runs(examples: Environment, tmp_path: Path) -> None:
    words = ("benchmark=draco", "benchmark.source=sample", "system=echo", "judge=offline", "out=run", "store=s")
    examples.run("-m", "core.run", *words, cwd=tmp_path)
    plugins = json.loads((tmp_path / "run" / "run.json").read_text())["plugins"]
    assert {plugin["name"] for plugin in plugins if plugin["problem"]} == {"broken", "misspelt"}


@pytest.mark.parametrize(
    ("part", "problem"),
    [("broken", "a_package_that_nobody_has"), ("misspelt", "did you mean 'register_systems'")],
)
def test_only_the_run_that_asks_for_a_broken_part_is_refused(
    examples: Environment, tmp_path: Path, part: str, problem: str
) -> None:
    done = examples.run("-m", "core.run", *TOY, f"system.adapter={part}", cwd=tmp_path, code=2)
    assert f"no system is called '{part}'" in done.stderr
    assert problem in done.stderr
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("words", [("benchmark=toy", "system=replay"), ("benchmark=draco", "system=echo")])
def test_a_disabled_plugin_is_not_there(examples: Environment, tmp_path: Path, words: tuple[str, ...]) -> None:
    done = examples.run("-m", "core.run", *words, cwd=tmp_path, code=2, LEADLINE_DISABLE_PLUGINS="broken, toy")
    assert "is called" in done.stderr
    listing = examples.run("-m", "core.list", "plugins", cwd=tmp_path, LEADLINE_DISABLE_PLUGINS="broken, toy")
    states = {line.split()[0]: line for line in listing.stdout.splitlines() if line.strip()}
    assert "disabled" in states["toy"]
    assert "disabled" in states["broken"]
    assert "loaded" in states["draco"]


@pytest.mark.parametrize("package", ["a_benchmark", "a_system"])
def test_what_core_new_writes_passes_its_own_tests(generated: Path, tmp_path: Path, package: str) -> None:
    environment = Environment(generated / "env" / "bin" / "python")
    words = ("-m", "pytest", "-q", "-p", "no:cacheprovider", str(generated / package))
    assert " passed" in environment.run(*words, cwd=tmp_path).stdout


def test_what_core_new_writes_runs_by_name(generated: Path, tmp_path: Path) -> None:
    environment = Environment(generated / "env" / "bin" / "python")
    path = "pkg://leadline_harbour_pilots/submissions.jsonl"
    words = ("benchmark=harbour_pilots", "system=replay", f"system.path={path}", "judge=offline", "out=run")
    environment.run("-m", "core.run", *words, cwd=tmp_path)
    assert summary(tmp_path)["n_scored"] == 2
    taken = environment.run("-m", "core.new", "system", "tide_tables", cwd=tmp_path, code=2)
    assert "is there already" in taken.stderr


def test_what_core_new_writes_is_clean(generated: Path, tmp_path: Path) -> None:
    environment = Environment(generated / "env" / "bin" / "python")
    sources = [str(generated / "a_benchmark" / "src"), str(generated / "a_system" / "src")]
    environment.run("-m", "ruff", "check", "--no-cache", "--isolated", "--line-length=115", *sources, cwd=tmp_path)
    environment.run(
        "-m", "ruff", "format", "--check", "--no-cache", "--isolated", "--line-length=115", *sources, cwd=tmp_path
    )
    environment.run("-m", "mypy", "--strict", f"--cache-dir={tmp_path / 'mypy'}", *sources, cwd=tmp_path)
