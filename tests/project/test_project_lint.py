"""The code is formatted, linted and typed: the tools' own verdict, so that the test command is all it takes."""

from __future__ import annotations

import pytest
from project_helpers import HERE, ROOT


@pytest.mark.slow
@pytest.mark.parametrize(
    "words",
    [("ruff", "check", "--no-cache", "."), ("ruff", "format", "--check", "--no-cache", "."), ("mypy",)],
    ids=["ruff check", "ruff format", "mypy"],
)
def test_it_has_nothing_to_say(words: tuple[str, ...]) -> None:
    done = HERE.run("-m", *words, cwd=ROOT, code=None)
    assert done.returncode == 0, f"{done.stdout[-6000:]}{done.stderr[-2000:]}"
