"""requirements/: exact versions that fit pyproject.toml, agree with each other, have digests and name no host."""

from __future__ import annotations

import re
import tomllib
import venv
from functools import cache
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from project_helpers import HERE, ROOT, Environment

FOLDER = ROOT / "requirements"
#: Set → the extras that it pins besides the run-time dependencies.
SETS = {"core": (), "test": ("test",), "launchers": ("launchers",), "ray": ("ray",)}


@cache
def project() -> dict[str, object]:
    found: dict[str, object] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return found


def wanted(extras: tuple[str, ...]) -> list[Requirement]:
    optional = project()["optional-dependencies"]
    assert isinstance(optional, dict)
    dependencies = project()["dependencies"]
    assert isinstance(dependencies, list)
    return [Requirement(line) for line in (*dependencies, *(line for extra in extras for line in optional[extra]))]


def pins(path: Path) -> list[Requirement]:
    """The pinned requirements of a file, without digests."""
    text = path.read_text().replace("\\\n", " ")
    return [Requirement(line.split("--hash")[0].strip()) for line in text.splitlines()]


def version_of(pin: Requirement) -> str:
    (specifier,) = pin.specifier
    assert specifier.operator == "==", pin
    return specifier.version


def test_every_extra_has_its_set() -> None:
    optional = project()["optional-dependencies"]
    assert isinstance(optional, dict)
    assert set(optional) == {extra for extras in SETS.values() for extra in extras}
    names = {path.name.removesuffix(".txt").removesuffix(".hashes") for path in FOLDER.iterdir()}
    assert names == set(SETS)


@pytest.mark.parametrize("path", sorted(FOLDER.iterdir()), ids=lambda path: path.name)
def test_no_file_names_a_host_or_an_address(path: Path) -> None:
    for line in path.read_text().splitlines():
        assert not re.search(r"://|^\s*-(?!-hash=sha256:)|^\s*#| @ |index|find-links", line), line


@pytest.mark.parametrize("name", SETS)
def test_pins_are_exact_and_the_twin_has_the_same_with_digests(name: str) -> None:
    plain = pins(FOLDER / f"{name}.txt")
    assert [str(pin) for pin in plain] == [str(pin) for pin in pins(FOLDER / f"{name}.hashes.txt")]
    assert all(version_of(pin) for pin in plain)
    entries = (FOLDER / f"{name}.hashes.txt").read_text().replace("\\\n", " ").splitlines()
    assert all(re.search(r"--hash=sha256:[0-9a-f]{64}", entry) for entry in entries)


@pytest.mark.parametrize(("name", "extras"), SETS.items(), ids=SETS)
def test_pins_fit_the_ranges_in_pyproject(name: str, extras: tuple[str, ...]) -> None:
    pinned: dict[str, list[str]] = {}
    for pin in pins(FOLDER / f"{name}.txt"):
        pinned.setdefault(canonicalize_name(pin.name), []).append(version_of(pin))
    for requirement in wanted(extras):
        versions = pinned.get(canonicalize_name(requirement.name), [])
        assert versions, f"{requirement.name} is not pinned in {name}.txt: run scripts/pin.py"
        assert all(requirement.specifier.contains(version) for version in versions), (requirement, versions)


@pytest.mark.parametrize("name", [name for name in SETS if name != "test"])
def test_sets_agree_with_the_test_set(name: str) -> None:
    tested = {canonicalize_name(pin.name) for pin in pins(FOLDER / "test.txt")}
    lines = {str(pin) for pin in pins(FOLDER / "test.txt")}
    others = {str(pin) for pin in pins(FOLDER / f"{name}.txt") if canonicalize_name(pin.name) in tested}
    assert others <= lines


@pytest.mark.parametrize("version", ["1.82.7", "1.82.8"])
def test_the_malicious_releases_of_litellm_are_excluded(version: str) -> None:
    (requirement,) = [each for each in wanted(()) if each.name == "litellm"]
    assert not requirement.specifier.contains(version)


@pytest.mark.install
@pytest.mark.slow
def test_the_hashed_set_installs_and_the_installed_package_runs_its_demo(tmp_path: Path) -> None:
    venv.create(tmp_path / "venv", with_pip=True)
    fresh = Environment(tmp_path / "venv" / "bin" / "python")
    install = ("-m", "pip", "install", "--quiet")
    fresh.run(*install, "--require-hashes", "-r", str(FOLDER / "core.hashes.txt"), cwd=tmp_path)
    fresh.run(*install, "--no-deps", str(ROOT), cwd=tmp_path)
    fresh.run("-m", "pip", "check", cwd=tmp_path)
    # outside the checkout, so that the package's own files serve: configs, tasks, schemas, templates
    fresh.run("-m", "core.run", "experiment=demo", cwd=tmp_path)
    fresh.run("-m", "core.new", "benchmark", "mine", cwd=tmp_path)
    where = fresh.run("-c", "import core; print(core.__file__)", cwd=tmp_path).stdout
    assert Path(where.strip()).is_relative_to(tmp_path)


def test_the_script_that_pins_explains_itself() -> None:
    done = HERE.run(str(ROOT / "scripts" / "pin.py"), "--nonsense", cwd=ROOT, code=2)
    assert "--upgrade" in done.stderr
