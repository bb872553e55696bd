"""Files of labels, and cells that no spreadsheet runs."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from core.calibration.cells import as_csv, cut, neutral, original, read_csv
from core.calibration.labels import read_labels
from core.errors import InputError


def csv_file(folder: Path, text: str, name: str = "labels.csv") -> Path:
    path = folder / name
    path.write_bytes(text.encode())
    return path


def jsonl_file(folder: Path, *rows: Any) -> Path:
    path = folder / "labels.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


HEAD = "task_id,unit,label\n"


@pytest.mark.parametrize(
    ("word", "met"),
    [
        ("met", True), ("unmet", False), ("true", True), ("FALSE", False), ("Yes", True), ("no", False),
        ("1", True), ("0", False), (" met ", True),
    ],
)  # fmt: skip
def test_words_of_a_label(tmp_path: Path, word: str, met: bool) -> None:
    found = read_labels(csv_file(tmp_path, f"{HEAD}t,criterion/c,{word}\n"))
    assert [label.met for label in found.labels] == [met]


@pytest.mark.parametrize(
    ("value", "met"),
    [(True, True), (False, False), (1, True), (0, False), ("met", True), (None, None), ("", None)],
)
def test_labels_in_json(tmp_path: Path, value: Any, met: bool | None) -> None:
    found = read_labels(jsonl_file(tmp_path, {"task_id": "t", "unit": "u", "label": value}))
    assert [label.met for label in found.labels] == ([] if met is None else [met])
    assert found.blank == (met is None)


def test_every_field(tmp_path: Path) -> None:
    found = read_labels(
        csv_file(
            tmp_path,
            "id,run,task_id,attempt,unit,check,label,repeat,labeller,weight,colour\n"
            "i,r,t,2,u,faithful,met,3,ann,2.5,red\n"
            "i,r,t,,u,,,,,,\n",
        )
    )
    label = found.labels[0]
    assert (label.id, label.task_id, label.attempt, label.unit, label.check) == ("i", "t", 2, "u", "faithful")
    assert (label.met, label.repeat, label.labeller, label.weight, label.line) == (True, 3, "ann", 2.5, 2)
    assert (found.rows, found.blank, found.runs) == (2, 1, ("r",))


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_as_spreadsheets_save_it(tmp_path: Path, delimiter: str, mark: str, end: str) -> None:
    rows = [["task_id", "unit", "label", "attempt"], ["t", "u", "TRUE", "1.0"], ["", "", "", ""]]
    text = mark + end.join(delimiter.join(row) for row in rows) + end
    found = read_labels(csv_file(tmp_path, text))
    assert [(label.task_id, label.unit, label.met, label.attempt) for label in found.labels] == [
        ("t", "u", True, 1)
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (f"{HEAD}t,u,maybe\n", "labels.csv, line 2, field label: not what this field takes; expected one of met"),
        (f"{HEAD}t,u,met\nt,v,2\n", "labels.csv, line 3, field label"),
        (f'{HEAD}"t\nwo",u,met\nt,u,x\n', "labels.csv, line 4, field label"),
        ("task_id,unit,label,attempt\nt,u,met,0\n", "line 2, field attempt"),
        ("task_id,unit,label,repeat\nt,u,met,first\n", "line 2, field repeat"),
        ("task_id,unit,label,weight\nt,u,met,-1\n", "line 2, field weight"),
        ("task_id,unit,label,weight\nt,u,met,nan\n", "line 2, field weight"),
        ("task_id,unit,label,weight\nt,u,met,2\nt,v,met,\n", "line 3, field weight: no weight, where other rows"),
        (f"{HEAD},u,met\n", "line 2, field task_id: nothing here names a verdict"),
        (f"{HEAD}t,,met\n", "line 2, field unit: nothing here names a verdict"),
        ("task_id,unit,lable\nt,u,met\n", "there is no field 'label'; is it 'lable'?"),
        ("task_id,label\nt,met\n", "there is no field 'unit'"),
        (f"{HEAD}t,u,met,more\n", "line 2: 4 cells; expected 3"),
        ("task_id,unit,label,label\nt,u,met,met\n", "the column 'label' stands twice"),
        (f'{HEAD}t,u,"met\n', "not CSV"),
        (HEAD, "the file has no row"),
        ("", "the file has no row"),
    ],
)
def test_refusals_name_file_line_and_field(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(InputError) as refused:
        read_labels(csv_file(tmp_path, text))
    assert said in str(refused.value)
    assert "labels.csv" in str(refused.value)


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ('{"task_id": 7, "unit": "u", "label": true}', "line 1, field task_id: not what this field takes"),
        ('{"task_id": "t", "unit": ["u"], "label": true}', "line 1, field unit"),
        ('{"task_id": "t", "unit": "u", "label": 0.5}', "line 1, field label"),
        ('{"task_id": "t", "unit": "u", "label": {"met": true}}', "line 1, field label"),
        ('{"task_id": "t", "unit": "u", "label": true, "attempt": true}', "line 1, field attempt"),
        ('{"task_id": "t", "unit": "u", "label": true, "weight": 1e999}', "line 1, field weight"),
        ('{"label": true, "label": false}', "stands twice"),
        ("[1]", "line 1: not an object"),
        ("{", "line 1: invalid JSON"),
        ('{"a": NaN}', "NaN is not a JSON number"),
    ],
)
def test_refusals_of_json_lines(tmp_path: Path, row: str, said: str) -> None:
    path = tmp_path / "labels.jsonl"
    path.write_text(row + "\n", encoding="utf-8")
    with pytest.raises(InputError) as refused:
        read_labels(path)
    assert said in str(refused.value)


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("labels.xlsx", b"PK", "expected FILE.csv or FILE.jsonl"),
        ("labels.csv", b"task_id,unit,label\nt,\xff,met\n", "not UTF-8"),
        ("absent.csv", None, "can't be read"),
        ("absent.jsonl", None, "can't be read"),
    ],
)
def test_files_that_are_none(tmp_path: Path, name: str, content: bytes | None, said: str) -> None:
    path = tmp_path / name
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(InputError, match=said):
        read_labels(path)


@pytest.mark.parametrize(
    ("text", "cell"),
    [
        ("=1+1", "'=1+1"), ("+1", "'+1"), ("-1", "'-1"), ("@sum", "'@sum"), ("\tx", "'\tx"), ("\rx", "'\rx"),
        ("'=1", "''=1"), ("''=1", "'''=1"), ("'s", "'s"), ("a=b", "a=b"), ("", ""), ("'", "'"),
        ("x;=HYPERLINK(y)", "x;'=HYPERLINK(y)"), ("x,+1", "x,'+1"), ("x\t-1", "x\t'-1"), ("x;@a;=b", "x;'@a;'=b"),
        ("x;'=1", "x;''=1"), ('x;"=1', "x;\"'=1"), ("=1;=2", "'=1;'=2"), ("\t=1", "'\t'=1"), ("a; =b", "a; =b"),
    ],
)  # fmt: skip
def test_a_cell_is_no_formula(text: str, cell: str) -> None:
    assert neutral(text) == cell
    assert original(cell) == text


@given(st.text(alphabet=st.sampled_from("=+-@\t\r\n' ab\"',;é\0\u2028\ud800"), max_size=12))
@example("\r\n=cmd|' /C calc'!A0")
@example('"a","b"\n=1')
def test_every_text_comes_back(text: str) -> None:
    blob = as_csv(("before", "cell"), [{"before": "x", "cell": text}])
    cells = list(csv.reader(io.StringIO(str(blob, "utf-8", "surrogatepass").removeprefix("\ufeff"), newline="")))
    assert cells[1][1][:1] not in ("=", "+", "-", "@", "\t", "\r", "\n") or not cells[1][1]
    assert original(cells[1][1]) == text


@given(st.text(alphabet=st.sampled_from("=+-@\t' a\"',;"), max_size=12))
@example('x;=HYPERLINK("http://x")')
@example('x;"=1')
@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_no_cell_runs_where_another_separator_splits_it(delimiter: str, text: str) -> None:
    blob = str(as_csv(("before", "cell"), [{"before": "x", "cell": text}]), "utf-8-sig")
    _, row = csv.reader(io.StringIO(blob, newline=""), delimiter=delimiter)
    assert not [cell for cell in row if cell.startswith(("=", "+", "-", "@"))]


def test_a_file_comes_back(tmp_path: Path) -> None:
    hostile = ['=HYPERLINK("http://x")', "a\r\nb", "half \ud800", "nul \0", "'=", "ünï"]
    path = tmp_path / "sheet.csv"
    path.write_bytes(as_csv(("id", "n"), [{"id": text, "n": "1"} for text in hostile]))
    assert [row["id"] for _, row in read_csv(path)] == hostile


@pytest.mark.parametrize(
    ("text", "most", "expected"),
    [
        ("abc", 3, "abc"),
        ("abcd", 3, "abc\n[… cut after 3 of 4 characters; all of it is elsewhere]"),
    ],
)
def test_cut(text: str, most: int, expected: str) -> None:
    assert cut(text, most, rest="all of it is elsewhere") == expected
