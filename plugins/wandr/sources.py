"""Where WANDR's rows come from: the hub, a file, or the tasks in this package.

Every source gives pairs of a place, for messages, and a row in the form of a task file that nobody has checked yet
(task.schema.json). The hub's own form is told by its field `task_tree_json`, also in a file that was brought from
there, and is rewritten (hub.py). Nothing is guessed: a source that can't be read is refused, never replaced.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from core.errors import InputError, place
from core.resources import resolve
from plugins.wandr import hub
from plugins.wandr.strict_json import parse

DATASET: Final = "perplexity-ai/wandr"
SPLIT: Final = "test"
SAMPLE: Final = "pkg://plugins.wandr/sample/tasks.jsonl"
#: A task file may not be larger than this once decompressed (WANDR's is 15 MB).
MAX_BYTES: Final = 512 * 1024 * 1024

_KINDS: Final = ".jsonl, .jsonl.gz or .parquet"
Placed = tuple[str, Any]


def rows(source: str, revision: str | None) -> Iterator[Placed]:
    """(place, unchecked row in the form of a task file) of `hub`, `sample` or a file.

    Raises InputError when the source can't be read; a line that is no JSON is named with its number.
    """
    for where, row in _hub_rows(revision) if source == "hub" else _file_rows(source):
        yield where, hub.row_of(row, where) if _is_hubs(row) else row


def _is_hubs(row: Any) -> bool:
    return isinstance(row, Mapping) and hub.TREE in row and "tree" not in row


def _file_rows(source: str) -> Iterator[Placed]:
    path = resolve(SAMPLE if source == "sample" else source)
    if not path.is_file():
        raise InputError(
            "there is no such file",
            where=f"benchmark.source={source}",
            expected=f"hub, sample, or a file ({_KINDS}); python -m plugins.wandr.compile makes one of a checkout",
        )
    name = path.name.lower()
    if name.endswith((".jsonl", ".jsonl.gz")):
        yield from _json_rows(path, packed=name.endswith(".gz"))
    elif name.endswith(".parquet"):
        yield from _parquet_rows(path)
    else:
        raise InputError("not a task file's name", where=str(path), expected=_KINDS, got=path.name)


def _json_rows(path: Path, *, packed: bool) -> Iterator[Placed]:
    number, size = 0, 0
    try:
        with gzip.open(path, "rb") if packed else path.open("rb") as file:
            # a line is read with a limit, so that a packed bomb without line ends is not read whole
            while line := file.readline(MAX_BYTES + 1):
                number, size = number + 1, size + len(line)
                where = place(path, number)
                if size > MAX_BYTES:
                    raise InputError("the file is too large", where=where, expected=f"<= {MAX_BYTES} bytes")
                text = _decoded(line, where, first=number == 1)
                if text.strip():
                    yield where, parse(text, where=where, expected="one JSON object a line")
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"the file can't be read: {error}", where=f"{path}, after line {number}") from error


def _decoded(line: bytes, where: str, *, first: bool) -> str:
    try:
        # some editors put a byte-order mark before the first line
        return line.decode("utf-8-sig" if first else "utf-8")
    except UnicodeDecodeError as error:
        raise InputError("the line is not UTF-8", where=where, got=str(error)) from error


def _parquet_rows(path: Path) -> Iterator[Placed]:
    import pyarrow as pa
    from pyarrow import parquet

    try:
        with parquet.ParquetFile(path) as file:
            number = 0
            for batch in file.iter_batches(batch_size=64):
                for row in batch.to_pylist():
                    number += 1
                    yield f"{path}, row {number}", row
    except (OSError, pa.ArrowException) as error:
        raise InputError(f"the file can't be read as parquet: {error}", where=str(path)) from error


def _hub_rows(revision: str | None) -> Iterator[Placed]:
    where = f"{DATASET}@{revision or 'main'}"
    try:
        import datasets

        found = datasets.load_dataset(DATASET, split=SPLIT, revision=revision)
    except Exception as error:
        # datasets and the hub's client raise classes of many libraries; each means: no tasks
        raise InputError(
            f"the dataset could not be loaded (split {SPLIT}): {type(error).__name__}: {error}",
            where=where,
            expected="access to the Hugging Face Hub, or a copy in its local cache (HF_HUB_OFFLINE=1 reads "
            "that alone); without a network bring data/test.jsonl from elsewhere and say benchmark.source=FILE, "
            "or try benchmark.source=sample",
        ) from error
    for number, row in enumerate(found, start=1):
        here = f"{where}, row {number}"
        if not _is_hubs(row):
            hub.check_fields(row, here)
        yield here, row
