"""Running Leadline from a test: the command in this process, and the files it leaves."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from core.launch import launch

#: `python -c` runs the command where nothing may open a socket or look a name up.
NO_SOCKETS = """
import socket, sys
class Closed(socket.socket):
    def __init__(self, family=-1, *rest, **more):
        if family in (socket.AF_INET, socket.AF_INET6):
            raise SystemExit("a socket was opened")
        super().__init__(family, *rest, **more)
socket.socket = Closed
def lookup(*words, **more): raise SystemExit("a name was looked up")
socket.getaddrinfo = lookup
from core.run import main
sys.exit(main(sys.argv[1:]))
"""


@dataclass(frozen=True)
class Run:
    """A run folder and the exit code of the command that made it."""

    code: int
    folder: Path

    def rows(self, name: str) -> list[dict[str, Any]]:
        return [json.loads(line) for line in (self.folder / name).read_text(encoding="utf-8").splitlines()]

    def json(self, name: str) -> dict[str, Any]:
        content: dict[str, Any] = json.loads((self.folder / name).read_text(encoding="utf-8"))
        return content

    @property
    def summary(self) -> dict[str, Any]:
        return self.json("summary.json")

    def value(self, metric: str) -> float | None:
        value: float | None = self.summary["metrics"][metric]["value"]
        return value

    def bytes(self, name: str) -> bytes:
        return (self.folder / name).read_bytes()


def run(folder: Path, *words: str) -> Run:
    """`python -m core.run …` with `out=folder`, its store beside it unless one is named."""
    store = [] if any(word.startswith("store=") for word in words) else [f"store={folder.parent / 'store.sqlite'}"]
    return Run(launch([*words, f"out={folder}", *store, "progress=none"]), folder)


def write_rows(path: Path, rows: Iterable[Mapping[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    return path


def draco_row(
    task_id: str,
    criteria: Sequence[tuple[str, float, str]] | Mapping[str, Sequence[tuple[str, float, str]]],
    **row: Any,
) -> dict[str, Any]:
    """A task in DRACO's format: criteria as (id, weight, requirement), in one section or by section."""
    by_section = criteria if isinstance(criteria, Mapping) else {"factual-accuracy": criteria}
    rubric = {
        "id": f"rubric-{task_id}",
        "sections": [
            {
                "id": section,
                "title": section.title(),
                "criteria": [{"id": key, "weight": weight, "requirement": text} for key, weight, text in items],
            }
            for section, items in by_section.items()
        ],
    }
    return {
        "id": task_id,
        "problem": f"Question {task_id}?",
        "domain": "Test",
        "answer": json.dumps(rubric),
        **row,
    }
