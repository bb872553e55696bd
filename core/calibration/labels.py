"""People's labels: CSV with a header, or JSON Lines, of the same fields.

    task_id, attempt (1), unit     which verdict; or `id` alone, from a sheet of `core.calibrate sample`
    check                          which field of the verdict; none: the one that decides
    label                          met, unmet, true, false, yes, no, 1, 0; blank: not labelled
    repeat                         only this repeat's verdict; none: all of them
    labeller                       who says it
    weight                         how many verdicts a row of a sample stands for
    run                            the run_id of the run that a sheet was drawn from

Other fields are passed over. One labeller may say a thing twice, but not two things.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final

from core.calibration.cells import read_csv
from core.errors import InputError, place
from core.strict_json import decode, shown

FIELDS: Final = ("id", "run", "task_id", "attempt", "unit", "check", "label", "repeat", "labeller", "weight")
WORDS: Final[Mapping[str, bool]] = {
    "met": True,
    "true": True,
    "yes": True,
    "1": True,
    "unmet": False,
    "false": False,
    "no": False,
    "0": False,
}


@dataclass(frozen=True, slots=True)
class Label:
    """One label. `unit` and `task_id` are empty where only `id` names the verdict; `check` None: what decides."""

    line: int
    id: str
    task_id: str
    attempt: int
    unit: str
    check: str | None
    met: bool
    repeat: int | None
    labeller: str
    weight: float | None


@dataclass(frozen=True, slots=True)
class Labels:
    """A file of labels. `rows` counts its rows, `blank` those without a label; `runs` are the run_ids it names."""

    path: Path
    labels: tuple[Label, ...]
    rows: int
    blank: int
    runs: tuple[str, ...]


def read_labels(path: Path) -> Labels:
    """Read and check a file; raises InputError naming file, line and field."""
    found: list[Label] = []
    runs: dict[str, None] = {}
    rows = blank = 0
    for line, row in _rows(path):
        if not rows:
            _check_fields(path, line, row)
        rows += 1
        label = _label(path, line, row)
        if label is None:
            blank += 1
            continue
        found.append(label)
        if run := _text(row, "run"):
            runs[run] = None
    if not rows:
        raise InputError("the file has no row", where=str(path), expected="labels, one a row")
    weighted = [label for label in found if label.weight is not None]
    if weighted and len(weighted) < len(found):
        lacking = next(label for label in found if label.weight is None)
        raise InputError(
            "no weight, where other rows have one",
            where=place(path, lacking.line, "weight"),
            expected="a weight on every labelled row, or on none",
        )
    return Labels(path, tuple(found), rows, blank, tuple(runs))


def _rows(path: Path) -> Iterator[tuple[int, Mapping[str, Any]]]:
    if path.suffix == ".csv":
        yield from read_csv(path)
    elif path.suffix == ".jsonl":
        yield from _json_rows(path)
    else:
        raise InputError(
            "not a kind of file that labels come in", where=str(path), expected="FILE.csv or FILE.jsonl"
        )


def _json_rows(path: Path) -> Iterator[tuple[int, Mapping[str, Any]]]:
    try:
        with path.open(encoding="utf-8-sig", errors="surrogatepass") as file:
            for line, text in enumerate(file, start=1):
                if not text.strip():
                    continue
                try:
                    row = decode(text)
                except ValueError as error:
                    raise InputError(str(error), where=place(path, line)) from None
                if not isinstance(row, dict):
                    raise InputError("not an object", where=place(path, line), got=shown(row))
                yield line, row
    except OSError as error:
        raise InputError(f"can't be read: {error.strerror}", where=str(path)) from None
    except UnicodeDecodeError:
        raise InputError("not UTF-8", where=str(path), expected="a text file in UTF-8") from None


def _check_fields(path: Path, line: int, row: Mapping[str, Any]) -> None:
    """The first row shows whether the file is one of labels at all."""
    wanted = ["label"] if "id" in row else ["task_id", "unit", "label"]
    for name in wanted:
        if name not in row:
            close = get_close_matches(name, [str(key) for key in row], n=1)
            hint = f"; is it {close[0]!r}?" if close else ""
            raise InputError(
                f"there is no field {name!r}{hint}",
                where=place(path, line),
                expected="task_id, unit and label, or id and label",
            )


def _label(path: Path, line: int, row: Mapping[str, Any]) -> Label | None:
    """A row's label; None where nothing was labelled."""

    def refuse(field: str, expected: str) -> InputError:
        return InputError(
            "not what this field takes", where=place(path, line, field), expected=expected, got=shown(row[field])
        )

    said = row.get("label")
    word = said if isinstance(said, str) else "" if said is None else _word(said)
    if not word.strip():
        return None
    met = WORDS.get(word.strip().lower())
    if met is None:
        raise refuse("label", f"one of {', '.join(WORDS)}, or nothing")
    for field in ("id", "task_id", "unit", "check", "labeller", "run"):
        if row.get(field) is not None and not isinstance(row[field], str):
            raise refuse(field, "a text")
    name, task, unit = _text(row, "id"), _text(row, "task_id"), _text(row, "unit")
    if not name and not (task and unit):
        lacking = "unit" if task else "task_id"
        raise InputError(
            "nothing here names a verdict", where=place(path, line, lacking), expected="task_id and unit, or id"
        )
    numbers: dict[str, int | None] = {}
    for field in ("attempt", "repeat"):
        numbers[field] = _whole(row.get(field))
        if numbers[field] is None and not _is_blank(row.get(field)):
            raise refuse(field, "a whole number from 1")
    weight = _weight(row.get("weight"))
    if weight is None and not _is_blank(row.get("weight")):
        raise refuse("weight", "a number above 0")
    return Label(
        line=line,
        id=name,
        task_id=task,
        attempt=numbers["attempt"] or 1,
        unit=unit,
        check=_text(row, "check").strip() or None,
        met=met,
        repeat=numbers["repeat"],
        labeller=_text(row, "labeller").strip(),
        weight=weight,
    )


def _text(row: Mapping[str, Any], field: str) -> str:
    value = row.get(field)
    return value if isinstance(value, str) else ""


def _word(value: Any) -> str:
    """A JSON label as a word; what is none stays readable for the refusal."""
    if isinstance(value, bool) or (isinstance(value, int) and value in (0, 1)):
        return str(value).lower()
    return shown(value)


def _is_blank(value: Any) -> bool:
    return value is None or (isinstance(value, str) and not value.strip())


def _whole(value: Any) -> int | None:
    if isinstance(value, str):
        text = value.strip()
        # a spreadsheet may have made 1.0 of 1
        text = text.removesuffix(".0")
        value = int(text) if text.isascii() and text.isdecimal() and len(text) < 10 else None
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value < 10**9:
        return None
    return value


def _weight(value: Any) -> float | None:
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            return None
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) and number > 0 else None
