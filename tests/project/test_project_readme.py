"""README.md and .ci/run say the same: two commands, which do all the set-up."""

from __future__ import annotations

import os
import re
import shlex

import pytest
from project_helpers import ROOT, blocks, documents

CI = (ROOT / ".ci" / "run").read_text(encoding="utf-8")


def setup_commands() -> list[str]:
    """The README's commands that make or reuse the environment."""
    found = [block.text.strip() for block in blocks(ROOT / "README.md") if block.language == "sh"]
    return [text for text in found if "-m venv" in text]


def ci_commands() -> list[str]:
    """The lines of .ci/run that start a program."""
    return [line for line in CI.splitlines() if "python" in line and not line.lstrip().startswith("#")]


def test_the_readme_has_two_set_up_commands_and_ci_runs_exactly_these() -> None:
    assert len(setup_commands()) == 2
    assert ci_commands() == setup_commands()


@pytest.mark.parametrize(
    ("number", "parts"),
    [
        (0, ("-c requirements/core.txt", "-m core.run experiment=demo")),
        (1, ("-c requirements/test.txt", "-m pytest")),
    ],
    ids=["main job", "tests"],
)
def test_a_command_makes_its_environment_installs_with_constraints_and_runs(
    number: int, parts: tuple[str, ...]
) -> None:
    command = setup_commands()[number]
    steps = [shlex.split(step) for step in command.split("&&")]
    assert steps[0] == ["python3", "-m", "venv", ".venv"]
    assert all(step[0] == ".venv/bin/python" for step in steps[1:])
    assert all(part in command for part in parts)


def test_ci_is_executable_reads_no_input_and_lets_pyc_files_be_written() -> None:
    assert os.access(ROOT / ".ci" / "run", os.X_OK)
    assert CI.startswith("#!/usr/bin/env bash\n")
    assert "unset PYTHONDONTWRITEBYTECODE" in CI
    assert not re.search(r"\bread\b|/dev/tty", re.sub("(?m)^#.*$", "", CI))


@pytest.mark.parametrize("path", documents(), ids=lambda path: path.name)
def test_relative_links_lead_somewhere(path: object) -> None:
    from pathlib import Path

    assert isinstance(path, Path)
    text = re.sub(r"```.*?```", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if "://" in target or target.startswith("#"):
            continue
        assert (path.parent / target.split("#")[0]).exists(), f"{path.name} links to {target}, which is not there"
