"""Runs as Parquet, CSV and data frames: what stands in the files is what the run has, whatever that is."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from conftest import ROOT
from fakes.run_folders import Repeats, Said, write_run
from fakes.runs import run

from core.calibration.cells import original
from core.export import main
from core.exporting.spread import survey
from core.exporting.tables import TABLES, columns_of, table_of
from core.load import LoadedRun, load

SCORES: dict[str, Repeats] = {"t1": [50.0, 70.0], "t2": [None, None]}
SAID: Said = {"t1": {"c1": [True, False]}, "t2": {"c1": [None, None]}}
#: Texts that a spreadsheet, a parser or a terminal might take for something else.
HOSTILE = [
    *(f"{sign}{rest}" for sign in "=+-@\t\r\n" for rest in ("", "1", 'cmd|"/C calc"!A0', "HYPERLINK(1)")),
    *("'", "'=1", "''=1", "'-", "'text", '"', '""', ",", ";", "a,b", 'a"b', "a\nb", "a\r\nb", "a\rb", "\x00", "\x1b[31m"),
    *("", " ", " =1", "−1", "1e5", "007", "TRUE", "null", "NaN", "\ufeff=1", "\u2028", "𝕏", "\ud800", "e\u0301", "\u202eabc"),
]  # fmt: skip
DEMOS = ["demo_draco", "demo_dag", "demo_wandr"]


@pytest.fixture(scope="module", params=DEMOS)
def demo(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return run(tmp_path_factory.mktemp(request.param) / "demo", f"experiment={request.param}").folder


def exported(out: Path, *words: Any, code: int = 0) -> Path:
    assert main([*map(str, words), "--out", str(out)]) == code
    return out


def csv_rows(path: Path) -> list[dict[str, str]]:
    """The rows as the csv module has them, with the apostrophes taken away."""
    with path.open(encoding="utf-8", newline="") as file:
        lines = [[original(cell) for cell in line] for line in csv.reader(file, strict=True)]
    return [dict(zip(lines[0], line, strict=True)) for line in lines[1:]]


def as_csv(value: Any) -> str:
    if value is None:
        return ""
    return str(value).lower() if isinstance(value, bool) else str(value)


def rewrite(path: Path, rows: Sequence[Mapping[str, Any]], schema: str) -> None:
    """Lines as `core` writes them, but for what it would refuse to write."""
    path.write_text("".join(json.dumps({"schema": f"leadline/{schema}/1", **row}) + "\n" for row in rows))


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("texts", [True, False])
def test_both_formats_hold_every_cell_of_every_table(demo: Path, tmp_path: Path, table: str, texts: bool) -> None:
    words = ["--texts"] if texts else []
    out = exported(tmp_path, demo, "--format", "parquet", *words)
    exported(tmp_path, demo, "--format", "csv", *words)
    found = table_of([load(demo)], table, texts=texts)
    names = [column.name for column in found.columns]
    rows = [dict(zip(names, row, strict=True)) for row in found.rows()]
    assert len(set(names)) == len(names)
    assert rows
    assert pq.read_table(out / f"{table}.parquet").to_pylist() == rows
    assert csv_rows(out / f"{table}.csv") == [{key: as_csv(value) for key, value in row.items()} for row in rows]


def test_rows_are_those_of_the_files(demo: Path) -> None:
    loaded = load(demo)
    judgements = [json.loads(line) for line in (demo / "judgements.jsonl").read_text("utf-8").splitlines()]
    frame = loaded.frame("judgements")
    assert list(frame["unit"]) == [row["unit"] for row in judgements]
    assert list(frame["error_kind"].isna()) == [row["error"] is None for row in judgements]
    assert loaded.judgements == [{"run": "demo", **without_schema(row)} for row in judgements]
    assert len(loaded.scores) == len(loaded.tasks) == loaded.summary["n_tasks"]
    assert loaded.frame("runs").loc[0, "n_graded"] == loaded.summary["n_graded"]
    headline = loaded.config.benchmark.headline
    assert loaded.frame("runs").loc[0, "value"] == loaded.summary["metrics"][headline]["value"]
    assert set(loaded.frame("scores").columns) >= {
        f"metric_{headline}",
        "status",
        "n_graded",
        "n_expected",
        "flags",
    }


def without_schema(row: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in row.items() if key != "schema"}


@pytest.mark.parametrize("form", ["parquet", "csv", "latex", "markdown"])
def test_the_same_run_gives_the_same_bytes(demo: Path, tmp_path: Path, form: str) -> None:
    first, second = (exported(tmp_path / name, demo, "--format", form) for name in ("first", "second"))
    names = sorted(path.name for path in first.iterdir())
    assert names == sorted(path.name for path in second.iterdir())
    assert names
    assert all((first / name).read_bytes() == (second / name).read_bytes() for name in names)


@pytest.mark.parametrize("form", ["parquet", "csv"])
@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_texts_come_back_and_are_no_formulas(tmp_path: Path, text: str, form: str) -> None:
    folder = write_run(tmp_path / "run", SCORES, said=SAID, explanation=text)
    judgements = [json.loads(line) for line in (folder / "judgements.jsonl").read_text("utf-8").splitlines()]
    for row in judgements:
        row["verdict"] = {text: True, "said": text}
    rewrite(folder / "judgements.jsonl", judgements, "judgement")
    out = exported(tmp_path / "out", folder, "--format", form)
    writable = text.replace("\ud800", "\ufffd")
    if form == "csv":
        rows: list[dict[str, Any]] = list(csv_rows(out / "judgements.csv"))
        with (out / "judgements.csv").open(encoding="utf-8", newline="") as file:
            cells = [cell for line in csv.reader(file) for cell in line]
        assert not [cell for cell in cells if cell[:1] in tuple("=+-@\t\r\n")]
    else:
        rows = pq.read_table(out / "judgements.parquet").to_pylist()
    assert [row["explanation"] for row in rows] == [writable] * len(rows)
    assert [row["verdict_said"] for row in rows] == [writable] * len(rows)
    if text == writable:
        assert all(row[f"verdict_{text}"] in (True, "true") for row in rows)
    else:
        assert [json.loads(row["more_verdict"]) for row in rows] == [{writable: True}] * len(rows)


@pytest.mark.parametrize(
    ("values", "kind", "cells"),
    [
        ([True, False, None], "truth", [True, False, None]),
        ([1, 2, None], "whole", [1, 2, None]),
        ([1, 2.5], "number", [1.0, 2.5]),
        ([-1.5], "number", [-1.5]),
        (["a", "b"], "text", ["a", "b"]),
        ([True, 1], "text", ["true", "1"]),
        (["a", 1, None, [1]], "text", ["a", "1", None, "[1]"]),
        ([{"x": [1, None]}], "text", ['{"x": [1, null]}']),
        ([2**63], "text", [str(2**63)]),
        ([10**400], "text", [str(10**400)]),
        ([float("nan"), float("inf"), 1.0], "number", [None, None, 1.0]),
        ([[float("nan")]], "text", ["[null]"]),
        ([None, None], "number", [None, None]),
    ],
)
def test_a_column_holds_what_its_values_are(values: list[Any], kind: str, cells: list[Any]) -> None:
    spread = survey("verdict", [{"key": value} for value in values])
    assert [(column.name, column.kind) for column in spread.columns] == [("verdict_key", kind)]
    assert [spread.cells({"key": value}) for value in values] == [[cell] for cell in cells]
    assert spread.cells({}) == [None]


def test_rare_keys_share_one_column() -> None:
    objects: list[dict[str, Any]] = [{"b": 1, "a": True}, {"a": False, "c": 3}, {"more": 1, "a": None}]
    spread = survey("verdict", objects, most=2)
    assert [column.name for column in spread.columns] == ["verdict_b", "verdict_a", "more_verdict"]
    assert [spread.cells(values) for values in objects] == [
        [1, True, None],
        [None, False, '{"c": 3}'],
        [None, None, '{"more": 1}'],
    ]


def test_numbers_stay_numbers_and_what_is_missing_is_empty(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", {"t1": [-5.5], "t2": [None]}, said=SAID, judgement_usd=0.25)
    out = exported(tmp_path / "out", folder, "--format", "csv")
    scores = {row["task_id"]: row for row in csv_rows(out / "scores.csv")}
    assert [scores[task]["metric_normalized"] for task in ("t1", "t2")] == ["-5.5", ""]
    assert b",-5.5," in (out / "scores.csv").read_bytes()
    judgements = csv_rows(out / "judgements.csv")
    assert [row["verdict_met"] for row in judgements] == ["true", "false", "", ""]
    assert [row["error_kind"] for row in judgements] == ["", "", "timeout", "timeout"]
    assert [row["cost_usd"] for row in judgements] == ["0.25"] * 4


@pytest.mark.parametrize("form", ["parquet", "csv", "latex", "markdown"])
def test_a_run_without_rows_gives_tables_without_rows(tmp_path: Path, form: str) -> None:
    out = exported(tmp_path / "out", write_run(tmp_path / "run", {}), "--format", form)
    if form == "parquet":
        assert {table: pq.read_table(out / f"{table}.parquet").num_rows for table in TABLES} == {
            **dict.fromkeys(TABLES, 0),
            "runs": 1,
        }
    elif form == "csv":
        assert (out / "judgements.csv").read_text("utf-8").startswith("run,task_id,attempt,unit,repeat,judge,")
        assert csv_rows(out / "judgements.csv") == []


def test_texts_are_given_when_asked_for(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", SCORES, answers={"t1": "=the answer"})
    plain = csv_rows(exported(tmp_path / "plain", folder, "--format", "csv") / "submissions.csv")
    whole = csv_rows(exported(tmp_path / "whole", folder, "--format", "csv", "--texts") / "submissions.csv")
    assert "text" not in plain[0]
    assert [row["characters"] for row in plain] == [str(len("=the answer")), str(len("alpha on t2"))]
    assert [row["text"] for row in whole] == ["=the answer", "alpha on t2"]


ODD: list[dict[str, Any]] = [
    {},
    {"task_id": 7, "attempt": "one", "unit": None, "verdict": [1], "error": "broken", "usage": 3},
    {"task_id": "t1", "attempt": 2**70, "cost_usd": "free", "latency_s": True, "error": {"kind": {"a": 1}}},
    {"task_id": "t1", "run": "another", "schema": "leadline/judgement/1", "explanation": ["a", 1]},
]


def test_rows_of_odd_shapes_are_missing_cells(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", SCORES)
    rewrite(folder / "judgements.jsonl", ODD, "judgement")
    frame = columns_of(table_of([load(folder)], "judgements"))
    names = [column.name for column in table_of([load(folder)], "judgements").columns]
    found = dict(zip(names, frame, strict=True))
    assert found["run"] == ["run"] * 4
    assert found["task_id"] == [None, "7", "t1", "t1"]
    assert found["attempt"] == [None] * 4
    assert found["cost_usd"] == found["latency_s"] == [None] * 4
    assert found["error_kind"] == [None, None, '{"a": 1}', None]
    assert found["explanation"] == [None, None, None, '["a", 1]']


@pytest.mark.parametrize(
    ("folders", "names"),
    [
        (["x/one", "x/two"], ["one", "two"]),
        (["x/one", "y/one"], ["x/one", "y/one"]),
        (["x/a/one", "y/a/one", "z/two"], ["x/a/one", "y/a/one", "two"]),
        (["one", "x/one"], None),
    ],
)
def test_every_run_has_a_name_of_its_own(tmp_path: Path, folders: list[str], names: list[str] | None) -> None:
    paths = [write_run(tmp_path / folder, SCORES) for folder in folders]
    found = load(paths)
    expected = names or [f"{tmp_path.name}/one", "x/one"]
    assert [loaded.name for loaded in found] == expected
    assert found.frame("scores")["run"].tolist() == [name for name in expected for _ in SCORES]
    assert [row["run"] for row in found.submissions] == [name for name in expected for _ in SCORES]
    assert found[expected[0]] is found.runs[0]
    assert list(found.summaries) == expected


def broken_run_json(folder: Path) -> None:
    (folder / "run.json").write_bytes(b"\xff\xfe")


def other_version(folder: Path) -> None:
    (folder / "summary.json").write_text('{"schema": "leadline/summary/9"}')


def broken_line(folder: Path) -> None:
    (folder / "judgements.jsonl").write_text("{\n{}\n")


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda folder: (folder / "run.json").unlink(), "there is no run.json"),
        (broken_run_json, "can't be read"),
        (lambda folder: (folder / "run.json").write_text("[" * 100_000), "not JSON"),
        (
            lambda folder: (folder / "run.json").write_text('{"schema": "leadline/run/1"}'),
            "lacks what a run's has",
        ),
        (lambda folder: (folder / "run.json").write_text('{"schema": "leadline/run/2"}'), "leadline/run/1"),
        (lambda folder: (folder / "summary.json").unlink(), "the run has not ended"),
        (other_version, "leadline/summary/1"),
        (lambda folder: (folder / "judgements.jsonl").unlink(), "can't be read"),
        (broken_line, "judgements.jsonl, line 1"),
        (lambda folder: rewrite(folder / "scores.jsonl", [{}], "submission"), "leadline/score/1"),
    ],
    ids=range(10),
)
def test_what_is_no_run_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], spoil: Any, said: str
) -> None:
    folder = write_run(tmp_path / "run", SCORES)
    spoil(folder)
    exported(tmp_path / "out", folder, code=2)
    assert said in capsys.readouterr().err


def test_other_refusals(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = write_run(tmp_path / "run", SCORES)
    (tmp_path / "file").write_text("")
    cases = [
        ([folder, tmp_path / "x" / ".." / "run"], tmp_path / "out", "named twice"),
        ([folder], tmp_path / "file", "--out"),
        ([tmp_path / "file"], tmp_path / "out", "can't be read"),
        ([tmp_path / "nothing"], tmp_path / "out", "there is no run.json"),
    ]
    for runs, out, said in cases:
        exported(out, *runs, code=2)
        assert said in capsys.readouterr().err
    with pytest.raises(Exception, match="one of judgements, submissions"):
        load(folder).frame("verdicts")


def test_a_last_line_that_is_cut_off_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = write_run(tmp_path / "run", SCORES, said=SAID)
    with (folder / "judgements.jsonl").open("a") as file:
        file.write('{"schema": "leadl')
    exported(tmp_path / "out", folder, "--format", "csv")
    assert capsys.readouterr().err.count("the last line is cut off") == 1
    loaded = load(folder)
    assert len(loaded.judgements) == 4
    assert len(loaded.problems) == 1


def test_frames_have_types_that_know_missing_values(tmp_path: Path) -> None:
    frame = load(write_run(tmp_path / "run", SCORES, said=SAID)).frame("judgements")
    kinds = {name: str(frame[name].dtype) for name in ("attempt", "verdict_met", "cost_usd")}
    assert kinds == {"attempt": "Int64", "verdict_met": "boolean", "cost_usd": "float64"}
    assert frame["verdict_met"].mean() == 0.5


@pytest.mark.parametrize(
    ("missing", "code"),
    [
        ("pandas", "from core.load import load; load(sys.argv[1]).frame('scores')"),
        (
            "pyarrow",
            "from core.export import export; export([Path(sys.argv[1])], Path(sys.argv[1], 'x'), 'parquet')",
        ),
    ],
)
def test_a_package_that_is_missing_is_named(tmp_path: Path, missing: str, code: str) -> None:
    folder = write_run(tmp_path / "run", SCORES)
    program = f"import sys; from pathlib import Path; sys.modules[{missing!r}] = None; {code}"
    done = subprocess.run(
        [sys.executable, "-c", program, str(folder)], capture_output=True, text=True, check=False, cwd=ROOT
    )
    assert done.returncode == 1
    assert f"needs the package {missing}" in done.stderr.splitlines()[-1]
    assert f"pip install {missing}" in done.stderr.splitlines()[-1]


def test_reading_is_lazy(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", SCORES, said=SAID)
    loaded = load(folder)
    assert isinstance(loaded, LoadedRun)
    (folder / "judgements.jsonl").unlink()
    assert len(loaded.scores) == 2
    (folder / "scores.jsonl").unlink()
    assert len(loaded.scores) == 2, "what was read is kept"
