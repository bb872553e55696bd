"""What the project's tests share: environments that are thrown away, and commands run in them."""

from __future__ import annotations

import fcntl
import os
import re
import site
import subprocess
import sys
import venv
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Environment:
    """A Python environment: `python` is its interpreter."""

    python: Path

    def run(
        self, *words: str, cwd: Path, code: int | None = 0, **variables: str
    ) -> subprocess.CompletedProcess[str]:
        """`python WORDS…` in a folder, with a small environment; fails the test on another exit code."""
        done = subprocess.run(
            [str(self.python), *words],
            cwd=cwd,
            env=small_environment(cwd, self.python) | variables,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        said = f"{' '.join(words)}\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}"
        assert code is None or done.returncode == code, f"exit code {done.returncode}, expected {code}: {said}"
        return done


HERE = Environment(Path(sys.executable))


def small_environment(home: Path, python: Path) -> dict[str, str]:
    """PATH, HOME, how to reach packages, and nothing of whoever runs the tests."""
    kept = {name: value for name, value in os.environ.items() if name.startswith(("PIP_", "SSL_", "LC_", "LANG"))}
    proxies = {name: value for name, value in os.environ.items() if name.lower().endswith("_proxy")}
    path = os.pathsep.join([str(python.parent), os.environ.get("PATH", os.defpath)])
    return kept | proxies | {"PATH": path, "HOME": str(home), "HF_HUB_OFFLINE": "1"}


def once(tmp_path_factory: pytest.TempPathFactory, name: str, make: Callable[[Path], None]) -> Path:
    """A folder that is made by one of the parallel test processes and used by all."""
    base = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        base = base.parent
    folder = base / name
    with (base / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "made").exists():
            folder.mkdir()
            make(folder)
            (folder / "made").touch()
    return folder


def environment_with(folder: Path, packages: Sequence[Path]) -> Environment:
    """An environment with all that is installed here and these packages besides; this one stays as it is."""
    venv.create(folder, with_pip=False)
    environment = Environment(folder / "bin" / "python")
    own = folder / "lib" / f"python{sys.version_info.major}.{sys.version_info.minor}" / "site-packages"
    # addsitedir, unlike a mere path, also reads the .pth files in there: an editable install is one
    lines = [f"import site; site.addsitedir({path!r})\n" for path in site.getsitepackages()]
    (own / "parent.pth").write_text("".join(lines))
    pip_install(environment, "--no-deps", *map(str, packages), cwd=folder)
    return environment


def pip_install(environment: Environment, *words: str, cwd: Path) -> None:
    HERE.run("-m", "pip", "--python", str(environment.python), "install", "--quiet", *words, cwd=cwd)


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, its text, its line, and the comment right above it, if there is one."""

    language: str
    text: str
    line: int
    note: str | None = None


_FENCE = re.compile(r"^( *)```(\w*)\n(.*?)^\1```$", re.DOTALL | re.MULTILINE)
_NOTE = re.compile(r"<!-- ((?:(?!-->).)*?) -->\s*\Z", re.DOTALL)


def blocks(path: Path) -> list[Block]:
    """The fenced blocks of a Markdown file, in order."""
    text = path.read_text(encoding="utf-8")
    found = []
    for match in _FENCE.finditer(text):
        indent = len(match[1])
        body = "".join(line[indent:] if line.strip() else line for line in match[3].splitlines(keepends=True))
        note = _NOTE.search(text[: match.start()])
        found.append(Block(match[2], body, text.count("\n", 0, match.start()) + 1, note[1] if note else None))
    return found


def documents() -> list[Path]:
    """README, CONTRIBUTING and everything in docs/."""
    return [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
