"""Which module may import which, and what importing costs: design rules that a machine can check."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import ROOT

PACKAGES = ("core", "plugins", "adapters")
HEAVY = ("litellm", "openai", "datasets", "numpy", "pandas", "pyarrow", "trafilatura")
MODULES = sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))


def imported(path: Path) -> Iterator[str]:
    """Every absolute module that a file imports, at whatever depth."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are absolute"
            yield node.module or ""


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_layers(path: Path) -> None:
    own = path.relative_to(ROOT).parts[0]
    forbidden = {"core": {"plugins", "adapters"}, "plugins": {"adapters"}, "adapters": {"plugins"}}[own]
    reached = {name.split(".")[0] for name in imported(path)}
    assert not reached & forbidden
    if own == "plugins" and len(path.relative_to(ROOT).parts) > 2:
        mine = path.relative_to(ROOT).parts[1]
        others = {name.split(".")[1] for name in imported(path) if name.startswith("plugins.")}
        assert others <= {mine}, "a benchmark does not import another"


@pytest.mark.parametrize(
    ("heavy", "allowed"),
    [
        ("litellm", {"core/judge/via_litellm.py"}),
        ("datasets", {"core/taskfile.py"}),
        ("httpx_aiohttp", {"core/http.py"}),
        (
            "numpy",
            {
                f"core/stats/{name}.py"
                for name in ("agreement", "bootstrap", "permutation", "ranks", "units", "variance")
            }
            | {
                f"core/comparison/{name}.py"
                for name in ("agreed", "judges", "preference", "ranks", "rows", "study", "systems", "variance")
            }
            | {"core/calibration/correct.py", "core/calibration/rates.py"},
        ),
        ("sqlite3", {"core/store.py"}),
    ],
)
def test_one_module_holds_the_door(heavy: str, allowed: set[str]) -> None:
    found = {
        str(path.relative_to(ROOT))
        for path in MODULES
        if any(name.split(".")[0] == heavy for name in imported(path))
    }
    assert found == allowed


def loaded_after(code: str) -> set[str]:
    listing = f"{code}\nimport sys\nprint('\\n'.join({{name.split('.')[0] for name in sys.modules}}))"
    done = subprocess.run([sys.executable, "-c", listing], capture_output=True, text=True, check=True, cwd=ROOT)
    return set(done.stdout.split())


@pytest.mark.parametrize(
    "code",
    [
        "import core, core.run",
        "import core.hooks, core.plugin_manager, core.config",
        "from core.plugin_manager import PluginManager; assert PluginManager.discover().names('judge')",
        "import core.run; core.run.main(['--help'])",
    ],
    ids=["core.run", "hooks and config", "every plugin loaded", "help"],
)
def test_nothing_heavy_is_loaded_early(code: str) -> None:
    assert not loaded_after(code) & set(HEAVY)


def test_help_is_answered_without_hydra() -> None:
    assert "hydra" not in loaded_after("import core.run; core.run.main(['--help'])")


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_module_says_what_it_is_and_stays_one_idea(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert ast.get_docstring(ast.parse(text)), "a module begins with what it is for"
    assert text.count("\n") <= 420


@pytest.mark.parametrize("word", ["pickle", "eval(", "exec(", "shell=True", "os.system", "yaml.load("])
def test_nothing_runs_what_it_reads(word: str) -> None:
    found = [str(path) for path in MODULES if word in path.read_text(encoding="utf-8") and "pickle it" not in word]
    found = [path for path in found if not _only_in_prose(Path(path), word)]
    assert found == []


def _only_in_prose(path: Path, word: str) -> bool:
    """Whether the word stands in docstrings and comments alone."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    attributes = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    keywords = {
        node.arg
        for node in ast.walk(tree)
        if isinstance(node, ast.keyword) and isinstance(node.value, ast.Constant) and node.value.value is True
    }
    modules = set(imported(path))
    bare = word.rstrip("(").split("=")[0].split(".")[-1]
    calls = {
        node.func.id for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    }
    if word.endswith("(") and "." not in word:
        return bare not in calls
    return bare not in names | attributes | keywords and bare not in modules
