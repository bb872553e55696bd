"""Where DRACO's rows come from: the hub, a file, or the tasks in this package.

Every source gives the same thing: pairs of a place, for messages, and a row that nobody has checked yet.
Nothing is guessed: a source that can't be read is refused, never replaced by another.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from core.errors import InputError, place
from core.resources import resolve
from plugins.draco.strict_json import parse

DATASET: Final = "perplexity-ai/draco"
SPLIT: Final = "test"
SAMPLE: Final = "pkg://plugins.draco/sample/tasks.jsonl"
#: A task file may not be larger than this once decompressed (DRACO's is 0.9 MB).
MAX_BYTES: Final = 512 * 1024 * 1024

Placed = tuple[str, Any]


def rows(source: str, revision: str | None) -> Iterator[Placed]:
    """(place, unchecked row) of `hub`, `sample` or a file (.jsonl, .jsonl.gz, .parquet).

    Raises InputError when the source can't be read; a line that is no JSON is named with its number.
    """
    if source == "hub":
        yield from _hub_rows(revision)
        return
    path = resolve(SAMPLE if source == "sample" else source)
    if not path.is_file():
        raise InputError(
            "there is no such file",
            where=f"benchmark.source={source}",
            expected="hub, sample, or a file (.jsonl, .jsonl.gz, .parquet)",
        )
    name = path.name.lower()
    if name.endswith((".jsonl", ".jsonl.gz")):
        yield from _json_rows(path, packed=name.endswith(".gz"))
    elif name.endswith(".parquet"):
        yield from _parquet_rows(path)
    else:
        raise InputError(
            "not a task file's name", where=str(path), expected=".jsonl, .jsonl.gz or .parquet", got=path.name
        )


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
                text = _decode(line, where, first=number == 1)
                if text.strip():
                    yield where, parse(text, where=where, expected="one JSON object a line")
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"the file can't be read: {error}", where=f"{path}, after line {number}") from error


def _decode(line: bytes, place: str, *, first: bool) -> str:
    try:
        # some editors put a byte-order mark before the first line
        return line.decode("utf-8-sig" if first else "utf-8")
    except UnicodeDecodeError as error:
        raise InputError("the line is not UTF-8", where=place, got=str(error)) from error


def _parquet_rows(path: Path) -> Iterator[Placed]:
    import pyarrow as pa
    from pyarrow import parquet

    try:
        with parquet.ParquetFile(path) as file:
            number = 0
            for batch in file.iter_batches(batch_size=256):
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
            "that alone); without a network bring test.jsonl from elsewhere and say benchmark.source=FILE, "
            "or try benchmark.source=sample",
        ) from error
    for number, row in enumerate(found, start=1):
        yield f"{where}, row {number}", row
