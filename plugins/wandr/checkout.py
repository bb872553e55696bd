"""A checkout of the released repository, compiled into a task file.

The released tasks are Python packages, so reading them runs the checkout's code. That happens in a child process
(checkout_child.py) without keys in its environment, and only when somebody asked for it in so many words
(compile.py). A task that can't be compiled is named, with its reason, and the rest go on: one that raises or exits
fails by itself, one that kills the child or never ends costs a new child.
"""

from __future__ import annotations

import json
import math
import os
import queue
import subprocess
import sys
import threading
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from core.errors import InputError
from core.strict_json import decode
from plugins.wandr.checks import CONFIDENCE, REASONING, UNIVERSAL, VERDICT
from plugins.wandr.tree import node_from, required_files

#: How many tasks the released repository has: 500 and the smoke task.
EXPECTED: Final = 501
TASKS: Final = Path("reference/wandr_tasks")
RENDERED: Final = Path("datasets/wandr")
HARNESS: Final = Path("adapters/wandr/src/wandr/origin/wandr_core")

_CHILD: Final = Path(__file__).with_name("checkout_child.py")
#: What a child gets of our environment: enough to start and to find the packages that the checkout needs.
_ENVIRONMENT: Final = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "PYTHONPATH", "VIRTUAL_ENV")
#: Long enough for a first import of large libraries.
TIMEOUT_S: Final = 120.0


@dataclass(frozen=True, slots=True)
class Failed:
    """A task that could not be compiled, and why."""

    name: str
    reason: str


def task_names(checkout: Path) -> list[str]:
    """The tasks of a checkout, by name; raises InputError for a folder that is no checkout."""
    for part in (HARNESS, TASKS):
        if not (checkout / part).is_dir():
            raise InputError(
                f"there is no folder {part}",
                where=str(checkout),
                expected="a checkout of the released repository (github.com/perplexityai/wandr)",
            )
    names = sorted(path.parent.name for path in (checkout / TASKS).glob("*/config.py"))
    if not names:
        raise InputError("there is no task", where=str(checkout / TASKS), expected="<name>/config.py of each task")
    return names


def compiled(
    checkout: Path, names: Sequence[str], *, timeout_s: float = TIMEOUT_S
) -> Iterator[dict[str, Any] | Failed]:
    """Each task's row in the form of a task file, or why there is none, in the order of `names`.

    Runs the checkout's code in a child process. `timeout_s` is for one task.
    """
    checkout = checkout.resolve()
    for name, found in _trees(checkout, names, timeout_s):
        if isinstance(found, Failed):
            yield found
            continue
        try:
            yield _row(checkout, name, found)
        except (InputError, OSError, ValueError) as error:
            yield Failed(name, str(error))


def _row(checkout: Path, name: str, tree: Any) -> dict[str, Any]:
    rendered = checkout / RENDERED / name.replace("_", "-")
    instruction = rendered / "instruction.md"
    return {
        "id": name,
        "instruction": instruction.read_text(encoding="utf-8") if instruction.is_file() else None,
        "labels": _labels(rendered / "task.toml"),
        "output_files": list(required_files(node_from(tree, name))),
        "tree": tree,
    }


def _labels(path: Path) -> dict[str, Any]:
    """The texts, numbers and lists of texts in the section `metadata`."""
    if not path.is_file():
        return {}
    metadata = tomllib.loads(path.read_text(encoding="utf-8")).get("metadata", {})
    return {
        name: value
        for name, value in metadata.items()
        if isinstance(value, str | int)
        or (isinstance(value, float) and math.isfinite(value))
        or (isinstance(value, list) and all(isinstance(word, str) for word in value))
    }


def _trees(checkout: Path, names: Sequence[str], timeout_s: float) -> Iterator[tuple[str, Any]]:
    """(name, tree or Failed). A child that ends early or stalls is replaced, without the task it was at."""
    left = list(names)
    while left:
        child = _Child(checkout, left)
        try:
            for name in list(left):
                found = child.answer(name, timeout_s)
                left.remove(name)
                yield name, found
                if child.is_lost:
                    break
        finally:
            child.close()


class _Child:
    """One child process and what it says, line by line."""

    def __init__(self, checkout: Path, names: Sequence[str]) -> None:
        environment = {name: os.environ[name] for name in _ENVIRONMENT if name in os.environ}
        self._process = subprocess.Popen(  # noqa: S603  # our own interpreter and our own script, no shell
            # -P: the script's folder holds modules whose names a task may use for its own
            # -B: the checkout stays as it is
            [sys.executable, "-P", "-B", str(_CHILD)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=checkout,
            env=environment,
        )
        self._lines: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self.is_lost = False
        request = {
            "harness": str(checkout / HARNESS),
            "folders": {name: str(checkout / TASKS / name) for name in names},
            "universal": [*UNIVERSAL, REASONING, VERDICT, CONFIDENCE],
        }
        self._threads = [
            threading.Thread(target=self._write, args=(json.dumps(request).encode(),), daemon=True),
            threading.Thread(target=self._read, daemon=True),
        ]
        for thread in self._threads:
            thread.start()

    def answer(self, name: str, timeout_s: float) -> Any:
        """The tree of a task, or Failed."""
        while True:
            try:
                line = self._lines.get(timeout=timeout_s)
            except queue.Empty:
                self.is_lost = True
                return Failed(name, f"no answer within {timeout_s:g} s")
            if line is None:
                self.is_lost = True
                return Failed(name, f"the process that ran it ended with exit code {self._process.wait()}")
            said = _said(line)
            if said.get("name") != name:
                continue  # not ours: whoever wrote it does not answer for a task
            if "tree" in said:
                return said["tree"]
            return Failed(name, str(said.get("error")))

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        for thread in self._threads:
            thread.join()
        assert self._process.stdout is not None
        self._process.stdout.close()

    def _write(self, request: bytes) -> None:
        assert self._process.stdin is not None
        try:
            with self._process.stdin as stdin:
                stdin.write(request)
        except OSError:
            return  # it ended before it was asked; that shows in what it says

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.put(line)
        self._lines.put(None)


def _said(line: bytes) -> Mapping[str, Any]:
    try:
        value = decode(line.decode("utf-8"))
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}
