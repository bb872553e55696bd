"""Runs as the tables of a paper: what is shown of each number, under which layout, in LaTeX and in Markdown."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from fakes.run_folders import write_run
from fakes.runs import run

from core.export import main
from core.exporting.latex import escaped
from core.exporting.layout import Layout
from core.exporting.shown import fixed

DEMOS = {"demo_draco": "draco", "demo_dag": "dag_rubric", "demo_wandr": "wandr"}
#: Text, how LaTeX must be told to set it.
ESCAPED = [
    ("plain words", "plain words"),
    ("a & b % c $ d # e _ f", r"a \& b \% c \$ d \# e \_ f"),
    ("{x}", r"\{x\}"),
    ("~ ^ \\", r"\textasciitilde{} \textasciicircum{} \textbackslash{}"),
    (r"\input{/etc/passwd}", r"\textbackslash{}input\{/etc/passwd\}"),
    (r"\\[1ex]", r"\textbackslash{}\textbackslash{}{[}1ex{]}"),
    ("[x] *y*", "{[}x{]} {*}y{*}"),
    ("< > |", r"\textless{} \textgreater{} \textbar{}"),
    ("a-b", "a-b"),
    ("a--b---c", "a-{}-b-{}-{}-c"),
    ("''x`` ?`", "'{}'x{`}{`} ?{`}"),
    ("–", "--"),
    ("−5", "$-$5"),
    ("±", r"$\pm$"),
    ("two\nlines\r\nand\ttabs", "two lines and tabs"),
    ("a\x00b\x1bc\u202ed\ufeffe", "a b c d e"),
    ("%\n\\end{document}", r"\% \textbackslash{}end\{document\}"),
    ("深度研究 é", "深度研究 é"),
]


def exported(out: Path, *words: Any, code: int = 0) -> Path:
    assert main([*map(str, words), "--out", str(out)]) == code
    return out


def with_summary(folder: Path, tables: Any = None, **summary: Any) -> Path:
    """The folder with other contents of its summary, and with a layout."""
    content = json.loads((folder / "summary.json").read_text("utf-8"))
    (folder / "summary.json").write_text(json.dumps({**content, **summary}), "utf-8")
    facts = json.loads((folder / "run.json").read_text("utf-8"))
    facts["config"]["benchmark"]["tables"] = tables
    (folder / "run.json").write_text(json.dumps(facts), "utf-8")
    return folder


def metric(value: float | None, n: int = 100, **more: Any) -> dict[str, Any]:
    return {"value": value, "low": None, "high": None, "sd": None, "n": n, "estimator": "mean", **more}


def member(value: float | None, n_scored: int, n_tasks: int) -> dict[str, Any]:
    return {"normalized": value, "n_tasks": n_tasks, "n_scored": n_scored}


COUNTS = {"n_tasks": 100, "n_scored": 90, "n_graded": 3900, "n_expected": 3934}
GROUPS = {
    "domain": {"Law": member(10.0, 6, 6), "Finance": member(20.25, 18, 20), "Art": member(None, 1, 4)},
    "shares": {"gone": {"share": 0.125, "n": 8}},
    "gaps": {"a - b": {"score": 4.5, "score_low": 0.25, "score_high": 9.0, "n_pairs": 4, "n_tasks": 4}},
}


def alpha(folder: Path, tables: Any = None, **more: Any) -> Path:
    metrics = {
        "normalized": metric(41.25, low=-1.04, high=80.5, sd=0.34),
        "pass_rate": metric(None, n=90),
        "odd": metric(None, n=0),
        "partly": metric(0.5, n=99),
    }
    return with_summary(write_run(folder, {"t": [1.0]}, **more), tables, metrics=metrics, groups=GROUPS, **COUNTS)


def grids(text: str) -> dict[str, list[list[str]]]:
    """The tables of a Markdown document by their title: header and rows."""
    found: dict[str, list[list[str]]] = {}
    title = ""
    for line in text.splitlines():
        if line.startswith("## "):
            title = line[3:].replace("\\", "")
        elif line.startswith("|") and not line.startswith(("| :--", "| --:")):
            cells = [cell.strip().replace("\\", "") for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
            found.setdefault(title, []).append(cells)
    return found


def markdown(tmp_path: Path, *folders: Path) -> tuple[dict[str, list[list[str]]], str]:
    text = (exported(tmp_path / "out", *folders, "--format", "markdown") / "tables.md").read_text("utf-8")
    return grids(text), text


@pytest.mark.parametrize(("text", "expected"), ESCAPED, ids=range(len(ESCAPED)))
def test_text_is_escaped_for_latex(text: str, expected: str) -> None:
    assert escaped(text) == expected


@pytest.mark.parametrize(
    ("value", "decimals", "text"),
    [
        (0.0005, 3, "0.001"),
        (-0.0001, 3, "0.000"),
        (-0.0, 1, "0.0"),
        (-12.34, 1, "−12.3"),
        (5, 0, "5"),
        (1e6, 0, "1000000"),
    ],
)
def test_a_number_is_rounded_for_show(value: float, decimals: int, text: str) -> None:
    assert fixed(value, decimals) == text


def test_without_a_layout_everything_is_shown(tmp_path: Path) -> None:
    found, text = markdown(tmp_path, alpha(tmp_path / "run"))
    assert found == {
        "draco: scores": [
            ["system", "normalized", "pass_rate", "odd", "partly", "USD/task", "median s", "P90 s", "tasks", "judgements"],
            ["alpha", "41.25 ± 0.34 [−1.04, 80.50]", "withheld (90/100)", "–", "0.500 (99/100)", "–", "–", "–", "90/100", "3,900/3,934"],
        ],
        "draco: by domain": [
            ["domain", "system", "normalized", "tasks"],
            ["Law", "alpha", "10.00", "6/6"],
            ["Finance", "alpha", "20.25 (18/20)", "18/20"],
            ["Art", "alpha", "withheld (1/4)", "1/4"],
        ],
        "draco: by shares": [["shares", "system", "share", "n"], ["gone", "alpha", "0.125", "8"]],
        "draco: by gaps": [["gaps", "system", "score", "n_pairs"], ["a - b", "alpha", "4.50 [0.25, 9.00]", "4"]],
    }  # fmt: skip
    for said in ("judge judge-a, asked 1 time", "in brackets: the 95 % interval", "–: there is no number",
                 "withheld: too few tasks", "normalized: mean"):  # fmt: skip
        assert said in text.replace("\\", "")


LAYOUTS: list[tuple[dict[str, Any], list[list[str]]]] = [
    (
        {"metrics": {"normalized": "Score"}, "facts": ["coverage", "attempts"], "decimals": 1},
        [["system", "Score", "coverage", "attempts", "tasks", "judgements"],
         ["alpha", "41.2 ± 0.3 [−1.0, 80.5]", "100.0%", "1", "90/100", "3,900/3,934"],
         ["beta", "41.2 ± 0.3 [−1.0, 80.5]", "100.0%", "1", "90/100", "3,900/3,934"]],
    ),
    (
        {"group": "domain", "rows": "members", "metrics": {"normalized": None}},
        [["domain", "alpha", "beta", "tasks"], ["Law", "10.00", "10.00", "6"],
         ["Finance", "20.25 (18/20)", "20.25 (18/20)", "20"],
         ["Art", "withheld (1/4)", "withheld (1/4)", "4"]],
    ),
    (
        {"group": "domain", "rows": "runs", "metrics": {"normalized": None}, "decimals": 0},
        [["system", "Law (6)", "Finance (20)", "Art (4)"],
         ["alpha", "10", "20 (18/20)", "withheld (1/4)"], ["beta", "10", "20 (18/20)", "withheld (1/4)"]],
    ),
    (
        {"group": "shares", "rows": "runs"},
        [["system", "gone: share", "gone: n"], ["alpha", "0.125", "8"], ["beta", "0.125", "8"]],
    ),
    (
        {"group": "shares", "metrics": {"s*": "Share", "none": None}, "decimals": 2},
        [["shares", "system", "Share"], ["gone", "alpha", "0.12"], ["gone", "beta", "0.12"]],
    ),
]  # fmt: skip


@pytest.mark.parametrize(("layout", "rows"), LAYOUTS, ids=range(len(LAYOUTS)))
def test_a_layout_chooses_what_is_shown(tmp_path: Path, layout: Mapping[str, Any], rows: list[list[str]]) -> None:
    tables = {"t": {"title": "chosen", **layout}, "empty": {"metrics": {"no such metric": None}}}
    runs = [alpha(tmp_path / name, tables, system=name) for name in ("alpha", "beta")]
    found, _ = markdown(tmp_path, *runs)
    assert found == {"draco: chosen": rows}


@pytest.mark.parametrize(
    ("patterns", "names", "columns"),
    [
        ({"*": None}, ["b", "a", "n_tasks", "n_scored"], {"b": "b", "a": "a"}),
        ({"a": "A", "*": None}, ["b", "a"], {"a": "A", "b": "b"}),
        ({"s/*": "S"}, ["s/x", "s", "s/y"], {"s/x": "S", "s/y": "S"}),
        ({"x[1]": None}, ["x1", "x[1]"], {"x[1]": "x[1]"}),
        ({"gone": None}, ["a"], {}),
    ],
)
def test_patterns_choose_metrics(
    patterns: dict[str, str | None], names: list[str], columns: dict[str, str]
) -> None:
    assert Layout(metrics=patterns).columns(names) == columns


@pytest.mark.parametrize(
    ("tables", "said"),
    [
        (["x"], "benchmark.tables: "),
        ({"x": 3}, "config.benchmark.tables.x"),
        ({"x": {"metric": {}}}, "config.benchmark.tables.x.metric"),
        ({"x": {"rows": "columns"}}, "config.benchmark.tables.x.rows"),
        ({"x": {"facts": ["price"]}}, "facts are usd_per_task"),
        ({"x": {"decimals": 99}}, "config.benchmark.tables.x.decimals"),
    ],
)
def test_a_layout_that_is_none_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], tables: Any, said: str
) -> None:
    exported(tmp_path / "out", alpha(tmp_path / "run", tables), "--format", "latex", code=2)
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("first", "second", "columns", "note"),
    [
        ({"judge": "j1"}, {"judge": "j2"}, ["system", "judge"], "under different judges"),
        ({"effort": "low"}, {"effort": "high"}, ["system", "effort"], "judge judge-a, asked 1 time"),
        ({}, {}, ["system", "run"], "judge judge-a, asked 1 time"),
        ({"facts": {"tasks_digest": "a"}}, {"facts": {"tasks_digest": "b"}}, ["system", "run"], "different tasks"),
        ({"config": {"shard": "1/2"}}, {}, ["system", "run"], "first is shard 1/2"),
    ],
)
def test_what_tells_runs_apart_is_shown(
    tmp_path: Path, first: dict[str, Any], second: dict[str, Any], columns: list[str], note: str
) -> None:
    runs = [alpha(tmp_path / name, **more) for name, more in (("first", first), ("second", second))]
    found, text = markdown(tmp_path, *runs)
    header = found["draco: scores"][0]
    assert header[: header.index("normalized")] == columns
    assert note in text


def test_costs_of_solving_and_calls_nobody_could_price(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", {"a": [1.0], "b": [2.0]}, cost_usd=1.5)
    latency, cost = {"median_s": 90.0, "p90_s": 600.0}, {"judge_usd": 12.345, "unknown_calls": 3}
    tables = {"t": {"facts": ["usd_per_task", "judge_usd", "median_s", "p90_s", "median_minutes", "p90_minutes"]}}
    with_summary(folder, tables, metrics={"normalized": metric(1.5)}, latency=latency, cost=cost, **COUNTS)
    found, text = markdown(tmp_path, folder)
    (row,) = found["draco: scores"][1:]
    assert row[2:8] == ["1.50", "12.35", "90.0", "600.0", "1.5", "10.0"]
    assert "3 calls of unknown cost are in no sum" in text


def latex_faults(text: str) -> list[str]:
    """What a LaTeX run would stumble over: unbalanced groups and environments, bare signs, rows of other widths."""
    faults = []
    code = "\n".join(line for line in text.splitlines() if not line.startswith("%"))
    depth = 0
    for sign in re.findall(r"\\.|[{}]", code):
        depth += {"{": 1, "}": -1}.get(sign, 0)
        if depth < 0:
            faults.append("a group is closed that was not opened")
    if depth:
        faults.append("a group stays open")
    if re.findall(r"\\begin\{(\w+)\}", code) != re.findall(r"\\end\{(\w+)\}", code)[::-1]:
        faults.append("environments do not match")
    bare = re.sub(r"\\[\\&%$#_{}]|\$\\pm\$|\$-\$|\\label\{tab:[\w.+]+\}", "", code)
    faults += [f"bare {sign}" for sign in "%$#_~^" if sign in bare]
    columns = re.search(r"\\begin\{tabular\}\{([lr]+)\}", code)
    assert columns
    body = code[columns.end() : code.index(r"\bottomrule")]
    rows = re.split(r"(?<!\\)\\\\(?=\s*\n)", re.sub(r"\\(toprule|midrule)", "", body))[:-1]
    faults += [f"row {row!r}" for row in rows if len(re.findall(r"(?<!\\)&", row)) + 1 != len(columns[1])]
    return faults


@pytest.mark.parametrize("name", [text for text, _ in ESCAPED], ids=range(len(ESCAPED)))
def test_latex_holds_whatever_names_hold(tmp_path: Path, name: str) -> None:
    folder = with_summary(
        write_run(tmp_path / "run", {"t": [1.0]}, system=name, judge=f"j {name}", effort=name),
        metrics={name: metric(1.5, low=1.0, high=2.0, sd=0.1, estimator=name), "normalized": metric(None)},
        groups={
            name: {name: {name: 1, "n_tasks": 2, "n_scored": 1}},
            f"{name} ": {},
            "overall": {"m": {"v": 0.5}},
        },
        warnings=[name, 7],
        **COUNTS,
    )
    out = exported(tmp_path / "out", folder, "--format", "latex")
    files = sorted(out.iterdir())
    assert len(files) == 3
    assert [latex_faults(file.read_text("utf-8")) for file in files] == [[]] * 3
    assert len({re.findall(r"\\label\{.*\}", file.read_text("utf-8"))[0] for file in files}) == 3


@pytest.mark.parametrize("experiment", DEMOS)
def test_the_demonstrations_have_tables(tmp_path: Path, experiment: str) -> None:
    found = run(tmp_path / "demo", f"experiment={experiment}")
    out = exported(tmp_path / "out", found.folder, "--format", "latex")
    overall = (out / f"{DEMOS[experiment]}_overall.tex").read_text("utf-8")
    assert [latex_faults(file.read_text("utf-8")) for file in out.iterdir()] == [[]] * len(list(out.iterdir()))
    assert "made of rules" in overall
    assert f"{found.summary['n_scored']}/{found.summary['n_tasks']}" in overall
    exported(tmp_path / "out", found.folder, "--format", "markdown")
    assert "## How to read them" in (tmp_path / "out" / "tables.md").read_text("utf-8")


ODD_SUMMARIES: list[dict[str, Any]] = [
    {"metrics": [], "groups": 3},
    {"metrics": {"normalized": 7, "x": {"value": "1", "n": -3}}, "groups": {"g": [], "h": {"m": 1}}},
    {"system": None, "judge": "judge", "n_tasks": "many", "cost": [], "latency": None, "warnings": {"a": 1}},
    {"metrics": {"normalized": {"value": float("inf"), "low": 1, "high": float("nan"), "n": True}}},
]


@pytest.mark.parametrize("summary", ODD_SUMMARIES, ids=range(len(ODD_SUMMARIES)))
@pytest.mark.parametrize("form", ["parquet", "csv", "latex", "markdown"])
def test_odd_summaries_break_nothing(tmp_path: Path, summary: dict[str, Any], form: str) -> None:
    exported(tmp_path / "out", with_summary(write_run(tmp_path / "run", {}), **summary), "--format", form)
