"""`core.list` and the command's other doors."""

from __future__ import annotations

import pytest

from core import cli
from core.list import main


@pytest.mark.parametrize(
    ("words", "parts"),
    [
        ([], ["plugins", "benchmarks", "systems", "judges", "experiments"]),
        (["plugins"], ["draco", "plugins.draco.plugin", "loaded", "grader draco"]),
        (["benchmarks"], ["draco", "5", "hub"]),
        (["systems"], ["replay", "chat", "low, medium, high", "any word"]),
        (["judges"], ["offline", "gemini/gemini-3.1-pro-preview", "0.2", "GEMINI_API_KEY"]),
        (["tasks", "benchmark=draco", "benchmark.source=sample"], ["4 tasks", "domain=", "labels"]),
        (["--help"], ["plugins", "tasks benchmark=NAME"]),
    ],
    ids=" ".join,
)
def test_what_is_listed(capfd: pytest.CaptureFixture[str], words: list[str], parts: list[str]) -> None:
    assert main(words) == 0
    output = capfd.readouterr().out
    for part in parts:
        assert part in output


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (["tasks"], "benchmark=NAME"),
        (["taks"], "one of plugins"),
        (["tasks", "benchmark=drako"], "did you mean 'draco'"),
        (["tasks", "benchmark=draco", "benchmark.source=sample", "where.domian=x"], "did you mean 'domain'"),
    ],
    ids=" ".join,
)
def test_what_cannot_be_listed(capfd: pytest.CaptureFixture[str], words: list[str], part: str) -> None:
    assert main(words) == 2
    assert part in capfd.readouterr().err


@pytest.mark.parametrize(
    ("words", "code", "part"),
    [
        ([], 0, "run "),
        (["--help"], 0, "merge"),
        (["--version"], 0, "leadline 0."),
        (["list", "plugins"], 0, "draco"),
        (["rnu"], 2, "did you mean 'run'"),
        (["run", "--help"], 0, "exit codes"),
        (["run", "nonsense"], 2, "key=value"),
    ],
    ids=str,
)
def test_the_console_script(capfd: pytest.CaptureFixture[str], words: list[str], code: int, part: str) -> None:
    assert cli.main(words) == code
    output = capfd.readouterr()
    assert part in output.out + output.err
