"""Tables as files: Parquet for programs, CSV for everything else. The same table gives the same bytes.

A file is written beside and then put in place, and a table goes by in batches, so memory stays flat.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, Final

from core.calibration.cells import neutral
from core.errors import InputError
from core.exporting.table import Table, Value
from core.runfolder import replace_file

#: Rows that are held at once; of Parquet, a row group.
_BATCH: Final = 10_000
#: What a Parquet file says of itself.
_ABOUT: Final = {"schema": "leadline/export/1"}


def write_csv(table: Table, path: Path) -> None:
    """UTF-8 with a header and the line ends of RFC 4180.

    A missing value is an empty cell. Texts that a spreadsheet would run as a formula begin with an apostrophe
    (core/calibration/cells.py has the rule and its counterpart); numbers are numbers, -1 too.
    """
    replace_file(path, _csv_blocks(table))


def write_parquet(table: Table, path: Path) -> None:
    """Typed columns that may hold nulls. Raises InputError where pyarrow is not installed."""
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise InputError(
            "Parquet needs the package pyarrow, which is not installed (it comes with datasets)",
            expected="pip install pyarrow, or --format csv",
        ) from None
    types = {"text": pa.large_string(), "whole": pa.int64(), "number": pa.float64(), "truth": pa.bool_()}
    schema = pa.schema([(column.name, types[column.kind]) for column in table.columns], metadata=_ABOUT)
    beside = path.with_name(f"{path.name}.tmp")
    with pq.ParquetWriter(beside, schema) as writer:
        for rows in _batches(table):
            columns = zip(*rows, strict=True)
            arrays = [pa.array(cells, field.type) for cells, field in zip(columns, schema, strict=True)]
            writer.write_batch(pa.record_batch(arrays, schema=schema))
    beside.replace(path)


#: The formats of tables for programs, and the ending of their files.
WRITERS: Final[Mapping[str, Callable[[Table, Path], None]]] = {"parquet": write_parquet, "csv": write_csv}


def _csv_blocks(table: Table) -> Iterator[bytes]:
    yield _csv_lines([[neutral(column.name) for column in table.columns]])
    for rows in _batches(table):
        yield _csv_lines([[_shown(value) for value in row] for row in rows])


def _csv_lines(rows: Sequence[Sequence[str]]) -> bytes:
    out = io.StringIO(newline="")
    csv.writer(out).writerows(rows)
    return out.getvalue().encode()


def _shown(value: Value) -> str:
    if isinstance(value, str):
        return neutral(value)
    if value is None:
        return ""
    return str(value).lower() if isinstance(value, bool) else repr(value)


def _batches(table: Table) -> Iterator[list[Sequence[Any]]]:
    rows = iter(table.rows())
    while batch := list(islice(rows, _BATCH)):
        yield batch
