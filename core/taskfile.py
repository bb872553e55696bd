"""Where a benchmark's rows come from: the hub, a file, or the tasks in its package.

Every source gives the same thing: pairs of a place, for messages, and a row that nobody has checked yet.
Nothing is guessed: a source that can't be read is refused, never replaced by another.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from core.errors import InputError, place
from core.resources import resolve
from core.strict_json import parse, shown

#: A task file may not be larger than this once decompressed.
MAX_BYTES: Final = 512 * 1024 * 1024

Placed = tuple[str, Any]


@dataclass(frozen=True, slots=True)
class Hub:
    """A dataset on the Hugging Face Hub; a `revision` of None is its newest."""

    dataset: str
    split: str
    revision: str | None = None


def rows(
    source: str,
    *,
    sample: str,
    hub: Hub | None,
    constants: bool = False,
    where: str | None = None,
    on_fault: Callable[[InputError], None] | None = None,
) -> Iterator[Placed]:
    """(place, unchecked row) of `hub`, `sample` or a file (.jsonl, .jsonl.gz, .parquet).

    `sample` is the address of the packaged file, `hub` the dataset; None where none is named. Raises InputError
    when the source can't be read; a line that is no JSON is named with its number. `constants`: see
    core.strict_json. `where` names the source in messages, as its caller was given it; `on_fault`: see json_rows.
    """
    if source == "hub":
        if hub is None:
            raise InputError(
                "no dataset is named", where="benchmark.dataset", expected="a dataset's id on the hub: owner/name"
            )
        yield from _hub_rows(hub)
        return
    path = resolve(sample if source == "sample" else source)
    if not path.is_file():
        raise InputError(
            "there is no such file",
            where=where or f"benchmark.source={source}",
            expected="hub, sample, or a file (.jsonl, .jsonl.gz, .parquet)",
        )
    name = path.name.lower()
    if name.endswith((".jsonl", ".jsonl.gz")):
        yield from json_rows(path, constants=constants, on_fault=on_fault)
    elif name.endswith(".parquet"):
        yield from _parquet_rows(path)
    else:
        raise InputError(
            "not a task file's name", where=str(path), expected=".jsonl, .jsonl.gz or .parquet", got=path.name
        )


def json_rows(
    path: Path, *, constants: bool = False, on_fault: Callable[[InputError], None] | None = None
) -> Iterator[Placed]:
    """(place, value) of each line of a `.jsonl` or `.jsonl.gz` file that is not blank.

    Raises InputError for a line that is no JSON; with `on_fault`, that is told of it and the next line is read.
    """
    packed = path.name.lower().endswith(".gz")
    number, size = 0, 0
    try:
        with gzip.open(path, "rb") if packed else path.open("rb") as file:
            # a line is read with a limit, so that a packed bomb without line ends is not read whole
            while line := file.readline(MAX_BYTES + 1):
                number, size = number + 1, size + len(line)
                where = place(path, number)
                if size > MAX_BYTES:
                    raise InputError("the file is too large", where=where, expected=f"<= {MAX_BYTES} bytes")
                try:
                    text = _decode(line, where, first=number == 1)
                    if not text.strip():
                        continue
                    row = parse(text, where=where, expected="one JSON object a line", constants=constants)
                except InputError as error:
                    if on_fault is None:
                        raise
                    on_fault(error)
                    continue
                yield where, row
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"the file can't be read: {error}", where=f"{path}, after line {number}") from error


def _decode(line: bytes, where: str, *, first: bool) -> str:
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
            for batch in file.iter_batches(batch_size=256):
                for row in batch.to_pylist():
                    number += 1
                    yield f"{path}, row {number}", row
    except (OSError, pa.ArrowException) as error:
        raise InputError(f"the file can't be read as parquet: {error}", where=str(path)) from error


def _hub_rows(hub: Hub) -> Iterator[Placed]:
    where = f"{hub.dataset}@{hub.revision or 'main'}"
    try:
        import datasets

        found = datasets.load_dataset(hub.dataset, split=hub.split, revision=hub.revision)
    except Exception as error:
        # datasets and the hub's client raise classes of many libraries; each means: no tasks
        raise InputError(
            f"the dataset could not be loaded (split {hub.split}): {type(error).__name__}: {error}",
            where=where,
            expected="access to the Hugging Face Hub, or a copy in its local cache (HF_HUB_OFFLINE=1 reads "
            "that alone); without a network bring a task file from elsewhere and say benchmark.source=FILE, "
            "or try benchmark.source=sample",
        ) from error
    for number, row in enumerate(found, start=1):
        yield f"{where}, row {number}", row


def distinct(placed: Iterable[Placed], check: Callable[[Any, str], None], *, where: str) -> Iterator[Placed]:
    """(place, row) of rows that pass `check`, which raises, and whose ids differ. `where` names the source."""
    places: dict[str, str] = {}
    for at, row in placed:
        check(row, at)
        if (known := places.get(row["id"])) is not None:
            raise InputError(
                "the task id stands twice",
                where=f"{at}, field id",
                expected=f"an id other than that of {known}",
                got=shown(row["id"]),
            )
        places[row["id"]] = at
        yield at, row
    if not places:
        raise InputError("the source has no task", where=where, expected="at least one row")
