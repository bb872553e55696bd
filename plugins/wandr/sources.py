"""Where WANDR's rows come from, all in the form of a task file (task.schema.json), not yet checked.

The hub's own form is told by its field `task_tree_json`, also in a file that was brought from there, and is
rewritten (hub.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from core import taskfile
from core.taskfile import Placed
from plugins.wandr import hub

DATASET: Final = "perplexity-ai/wandr"
SPLIT: Final = "test"
SAMPLE: Final = "pkg://plugins.wandr/sample/tasks.jsonl"


def rows(source: str, revision: str | None) -> Iterator[Placed]:
    """(place, unchecked row) of `hub`, `sample` or a file (.jsonl, .jsonl.gz, .parquet).

    Raises InputError when the source can't be read, when a line is no JSON, and for a row of the hub that is of a
    form that we don't know.
    """
    for where, row in taskfile.rows(source, sample=SAMPLE, hub=taskfile.Hub(DATASET, SPLIT, revision)):
        is_hubs = source == "hub" or (isinstance(row, Mapping) and hub.TREE in row and "tree" not in row)
        yield where, hub.row_of(row, where) if is_hubs else row
