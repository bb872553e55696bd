"""What the comparison's tests share: the command, and folders that differ in one thing."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from fakes.run_folders import write_run

from core.compare import main

#: Few resamples: what is tested is what is compared, not the last digit of an interval.
QUICK = ("--resamples", "500")
SCORES = {f"t{at}": [float(40 + 3 * at)] for at in range(10)}


@dataclass(frozen=True)
class Compared:
    """What the command did: its exit code, what it printed, and compare.json where it printed that."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, Any]:
        content: dict[str, Any] = json.loads(self.out)
        return content

    @property
    def codes(self) -> list[str]:
        """The findings' codes."""
        return [finding["code"] for finding in self.json["findings"]]

    def finding(self, code: str) -> dict[str, Any]:
        found: list[dict[str, Any]] = [finding for finding in self.json["findings"] if finding["code"] == code]
        assert len(found) == 1, (code, self.codes)
        return found[0]


def compare(capsys: pytest.CaptureFixture[str], folders: Sequence[Path], *words: str) -> Compared:
    """`python -m core.compare FOLDER… --format json`, in this process."""
    form = () if "--format" in words else ("--format", "json")
    code = main([*map(str, folders), *QUICK, *form, *words])
    said = capsys.readouterr()
    return Compared(code, said.out, said.err)


def two(root: Path, first: Mapping[str, Any], second: Mapping[str, Any]) -> list[Path]:
    """Runs of systems alpha and beta on the same ten tasks; `first` and `second` change what is written."""
    families = {"system_family": "perplexity", "judge_family": "google"}
    return [
        write_run(root / "a", **{"scores": SCORES, "system": "alpha", **families, **first}),
        write_run(root / "b", **{"scores": SCORES, "system": "beta", **families, **second}),
    ]
