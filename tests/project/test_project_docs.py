"""The documents' commands are run, their tables hold what the code holds."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from project_helpers import ROOT, Block, blocks, documents, small_environment

from core.cli import COMMANDS
from core.compose import compose_group, options
from core.errors import TABLE, Meaning
from core.schemas import FILES, load

SHELL = ("sh", "console", "bash", "shell")
NOT_RUN = "not run: "


def commands(path: Path) -> list[Block]:
    return [block for block in blocks(path) if block.language in SHELL]


@pytest.mark.slow
@pytest.mark.parametrize("path", [path for path in documents() if commands(path)], ids=lambda path: path.name)
def test_every_command_of_a_document_runs_as_written(path: Path, tmp_path: Path) -> None:
    """All of a document's blocks, in order, in one folder. A comment above a block may say:

    `not run: REASON`, `exit: CODE` (the block's exit code), `file: NAME` (the block is the content of a file).
    """
    environment = small_environment(tmp_path, Path(sys.executable))
    for block in blocks(path):
        note = block.note or ""
        if note.startswith("file: "):
            target = tmp_path / note.removeprefix("file: ")
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(block.text, encoding="utf-8")
        elif block.language in SHELL and not note.startswith(NOT_RUN):
            expected = int(note.removeprefix("exit: ")) if note.startswith("exit: ") else 0
            done = subprocess.run(
                ["bash", "-euo", "pipefail", "-c", block.text],
                cwd=tmp_path,
                env=environment,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                check=False,
            )
            said = f"{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
            where = f"{path.name}, line {block.line}"
            assert done.returncode == expected, f"{where}: exit code {done.returncode}\n{block.text}\n{said}"


def test_few_blocks_are_not_run_and_each_says_why() -> None:
    skipped = [
        (path.name, block.line, block.note)
        for path in documents()
        for block in commands(path)
        if (block.note or "").startswith(NOT_RUN)
    ]
    assert all(len((note or "").removeprefix(NOT_RUN)) > 5 for _, _, note in skipped), skipped
    assert len(skipped) <= 15, skipped


def test_the_table_of_errors_is_that_of_the_code() -> None:
    text = (ROOT / "docs" / "errors.md").read_text(encoding="utf-8")
    rows = [line for line in text.splitlines() if re.match(r"\| `", line)]
    assert rows == [error_row(kind, meaning) for kind, meaning in TABLE.items()], (
        "copy these rows into docs/errors.md"
    )


def test_the_table_of_systems_is_that_of_the_configs() -> None:
    text = (ROOT / "docs" / "systems.md").read_text(encoding="utf-8")
    rows = [line for line in text.splitlines() if re.match(r"\| `\w+` \|", line)][: len(options("system"))]
    expected = []
    for name in options("system"):
        about = compose_group("system", [f"system={name}"])["system"]["about"]
        expected.append(
            f"| `{name}` | " + " | ".join(about[key] for key in ("needs", "returns", "cost", "time")) + " |"
        )
    assert rows == expected, "copy these rows into docs/systems.md"


def error_row(kind: str, meaning: Meaning) -> str:
    """A kind's line in docs/errors.md."""
    retried = [name for name, again in (("judge", meaning.retry_judge), ("system", meaning.retry_system)) if again]
    cells = (
        f"`{kind}`",
        meaning.advice,
        ", ".join(retried) or "no",
        meaning.billed,
        meaning.status,
        "stops the run"
        if meaning.stops_run
        else "slows down"
        if meaning.refusal
        else "kept"
        if meaning.stored
        else "",
    )
    return f"| {' | '.join(cells)} |".replace("|  |", "| |")


@pytest.mark.parametrize(("name", "kind"), FILES.items(), ids=FILES)
def test_every_field_of_a_file_is_described(name: str, kind: str) -> None:
    text = (ROOT / "docs" / "files.md").read_text(encoding="utf-8")
    section = re.split(r"(?m)^## ", text.split(f"## {name}\n", 1)[1])[0]
    cells = [line.split("|")[1] for line in section.splitlines() if line.startswith("| `")]
    described = {field for cell in cells for field in re.findall(r"`(\w+)`", cell)}
    assert described == set(load(kind)["properties"])


def test_every_document_is_in_the_index() -> None:
    index = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    missing = [
        path.name for path in (ROOT / "docs").glob("*.md") if path.name not in index and path.name != "index.md"
    ]
    assert not missing


@pytest.mark.parametrize("name", list(COMMANDS))
def test_help_is_answered(name: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", f"core.{name}", "--help"],
        env=os.environ | {"LEADLINE_DISABLE_PLUGINS": ""},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0
    assert f"core.{name}" in done.stdout
