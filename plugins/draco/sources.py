"""Where DRACO's rows come from: the hub at a pinned revision, a file, or the tasks in this package."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from core import taskfile
from core.taskfile import Placed

DATASET: Final = "perplexity-ai/draco"
SPLIT: Final = "test"
SAMPLE: Final = "pkg://plugins.draco/sample/tasks.jsonl"


def rows(source: str, revision: str | None) -> Iterator[Placed]:
    """(place, unchecked row) of `hub`, `sample` or a file (.jsonl, .jsonl.gz, .parquet); raises InputError."""
    yield from taskfile.rows(source, sample=SAMPLE, hub=taskfile.Hub(DATASET, SPLIT, revision))
