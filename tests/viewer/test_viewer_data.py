"""What the viewer says of runs: cards, tasks, trees, judgements, evidence, progress, labels, differences."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from fakes.run_folders import write_run
from viewer_helpers import demo_runs, serving

from core.calibration.cells import as_csv
from core.calibration.labels import read_labels
from core.calibration.sheet import Wanted, write_sheet
from core.errors import InputError
from core.viewer.cards import card_of, state_of
from core.viewer.difference import pieces as differences
from core.viewer.evidence import pieces
from core.viewer.labelling import Sheet, asked
from core.viewer.live import Live
from core.viewer.places import Found


@pytest.fixture(scope="module")
def demos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return demo_runs(tmp_path_factory.mktemp("runs"))


def found(folder: Path) -> Found:
    return Found("0" * 16, folder, folder.name)


# cards


@pytest.mark.parametrize(
    ("run", "summary", "wanted"),
    [
        ("{", None, {"state": "unreadable"}),
        ("[]", None, {"state": "unreadable"}),
        ('{"exit_code": 0}', None, {"state": "complete", "has_report": False, "value": None}),
        ('{"exit_code": 3}', "{}", {"state": "numbers missing"}),
        ('{"exit_code": 77}', "{}", {"state": "exit code 77"}),
        ('{"exit_code": true}', "{}", {"state": "", "exit_code": None}),
        ('{"exit_code": 2, "refused": "no key"}', None, {"state": "refused", "problem": "no key"}),
        ('{"exit_code": 0, "config": 7, "plan": [], "spent": {"judge": 0.5, "system": "x"}}', '{"cost": 1}',
         {"usd": 0.5, "benchmark": "", "state": "complete"}),
        ('{"exit_code": 0, "config": {"benchmark": {"name": "b", "headline": "h"}}}',
         '{"metrics": {"h": {"value": 0.5, "low": "x", "high": NaN}}, "coverage": 1, "n_tasks": -3}',
         {"value": 0.5, "low": None, "high": None, "coverage": 1.0, "n_tasks": 0, "headline": "h", "has_report": True}),
    ],
)  # fmt: skip
def test_a_card_holds_what_can_be_read(
    tmp_path: Path, run: str, summary: str | None, wanted: Mapping[str, Any]
) -> None:
    (tmp_path / "run.json").write_text(run)
    if summary is not None:
        (tmp_path / "summary.json").write_text(summary)
    card = card_of(found(tmp_path))
    assert {name: card[name] for name in wanted} == wanted


@pytest.mark.parametrize(
    ("lock", "state"),
    [
        ("process OWN", "running"),
        ("process 4194399", "stopped"),  # above the highest number that a process of Linux gets
        ("process 99999999999999999999", "stopped"),
        ("process 0", "stopped"),
        ("process -1", "stopped"),
        ("process x", "stopped"),
        ("", "stopped"),
        (None, "stopped"),
    ],
)
def test_a_run_without_an_end_is_running_or_stopped(tmp_path: Path, lock: str | None, state: str) -> None:
    if lock is not None:
        (tmp_path / ".lock").write_text(lock.replace("OWN", str(os.getpid())))
    assert state_of(tmp_path, None) == state
    assert state_of(tmp_path, 0) == "complete"


# a run and its tasks


async def test_the_list_of_runs(demos: Path) -> None:
    async with serving(demos) as served:
        cards = {card["name"]: card for card in (await served.get("/api/runs")).json}
        assert {name: (card["benchmark"], card["judge"], card["state"]) for name, card in cards.items()} == {
            "demo_draco": ("draco", "offline", "complete"),
            "demo_dag": ("dag_rubric", "offline", "complete"),
            "demo_wandr": ("wandr", "offline", "complete"),
        }
        for name, card in cards.items():
            summary = json.loads((demos / name / "summary.json").read_text())
            metric = summary["metrics"][card["headline"]]
            assert [card["value"], card["low"], card["high"]] == [metric["value"], metric["low"], metric["high"]]


@pytest.mark.parametrize("name", ["demo_draco", "demo_dag", "demo_wandr"])
async def test_a_run_and_every_task_of_it(demos: Path, name: str) -> None:
    async with serving(demos) as served:
        key = served.id_of(name)
        assert (await served.get(f"/run/{key}")).status == 200
        tasks = (await served.get(f"/api/run/{key}/tasks")).json
        scores = [json.loads(line) for line in (demos / name / "scores.jsonl").read_text().splitlines()]
        assert [row["id"] for row in tasks["rows"]] == [score["task_id"] for score in scores]
        assert [row["numbers"][0] for row in tasks["rows"]] == [
            score["metrics"][tasks["columns"][0]] for score in scores
        ]
        rows = [json.loads(line) for line in (demos / name / "judgements.jsonl").read_text().splitlines()]
        for task in tasks["rows"]:
            own = [row for row in rows if row["task_id"] == task["id"]]
            page = await served.get(f"/run/{key}/task/{task['number']}")
            assert page.status == 200
            base = f"/api/run/{key}/task/{task['number']}"
            units = (await served.get(f"{base}/units")).json
            assert {row["unit"] for row in units["rows"]} == {row["unit"] for row in own}
            for unit in {row["unit"] for row in own}:
                told = (await served.get(f"{base}/unit?unit={unit.replace('&', '%26').replace('#', '%23')}")).json
                assert [row["raw"] for row in told["judgements"]] == [
                    row.get("raw") or "" for row in own if row["unit"] == unit
                ]
            assert (await served.get(f"{base}/answer")).status == 200
        assert (await served.get(f"/run/{key}/task/{len(scores) + 1}")).status == 404
        assert (await served.get(f"/run/{key}/task/0")).status == 404
        assert (await served.get(f"/run/{key}/task/1/../2")).status == 404


async def test_parts_of_a_list(demos: Path) -> None:
    async with serving(demos) as served:
        base = f"/api/run/{served.id_of('demo_wandr')}/task/1/units"
        everything = (await served.get(base)).json
        assert everything["n"] == everything["of"] == len(everything["rows"])
        part = (await served.get(f"{base}?from=2&count=3")).json
        assert part == {**everything, "rows": everything["rows"][2:5]}
        records = (await served.get(f"{base}?find=RECORD/")).json
        assert [row["unit"] for row in records["rows"]] == [
            row["unit"] for row in everything["rows"] if row["unit"].startswith("record/")
        ]
        missing = (await served.get(f"{base}?tone=missing")).json["rows"]
        assert missing == [row for row in everything["rows"] if row["tone"] == "missing"] != []
        for bad in ("from=-1", "from=x", "count=1e3", "attempt=9", "attempt=x"):
            assert (await served.get(f"{base}?{bad}")).status == 404


async def test_a_tree_has_a_row_for_every_leaf(demos: Path) -> None:
    async with serving(demos) as served:
        key = served.id_of("demo_wandr")
        rows = (await served.get(f"/api/run/{key}/task/1/tree")).json
        assert rows[0] | {"note": ""} == {
            "depth": 0, "kind": "tree", "text": "Repeat 1: strict, lenient", "note": "",
        }  # fmt: skip
        leaves = [row["unit"] for row in rows if row["kind"] == "leaf"]
        answers = (demos / "demo_wandr" / "submissions.jsonl").read_text().splitlines()
        lines = json.loads(answers[0])["files"]["results_lighthouses.jsonl"].splitlines()
        assert sorted(leaves) == [f"record/lighthouses/{place}" for place in range(len(lines))]
        assert all(row["depth"] <= before["depth"] + 1 for before, row in pairwise(rows))


async def test_a_record_on_its_page(demos: Path) -> None:
    async with serving(demos) as served:
        base = f"/api/run/{served.id_of('demo_wandr')}/task/1"
        record = (await served.get(f"{base}/unit?unit=record/lighthouses/0")).json["record"]
        assert record["item"] == [["lighthouse", "Corran Head Light"]]
        evidence = (await served.get(f"{base}/evidence?unit=record/lighthouses/0&whole=1")).json
        assert (evidence["status"], [one["rung"] for one in evidence["excerpts"]]) == ("ok", ["exact"])
        text = "".join(piece["text"] for piece in evidence["pieces"])
        [start, end] = evidence["excerpts"][0]["at"][0]
        assert text[start:end] == record["excerpts"][0] == evidence["excerpts"][0]["text"]
        assert [piece["text"] for piece in evidence["pieces"] if "mark" in piece] == record["excerpts"]
        for unit in ("record/lighthouses/99", "page/x", "record/../0", ""):
            assert (await served.get(f"{base}/evidence?unit={unit}")).status == 404


async def test_pages_of_a_folder_that_was_not_given_are_not_read(demos: Path, tmp_path: Path) -> None:
    (tmp_path / "private").mkdir()
    (tmp_path / "private" / "pages.jsonl").write_text(
        json.dumps({"url": "https://register.sundry.example/lights/corran-head", "status": "ok", "file": "a.txt"})
    )
    (tmp_path / "private" / "a.txt").write_text("hunter2")
    copy = tmp_path / "runs" / "demo"
    copy.mkdir(parents=True)
    for path in (demos / "demo_wandr").iterdir():
        (copy / path.name).write_bytes(path.read_bytes())
    run = json.loads((copy / "run.json").read_text())
    run["config"]["pages"] |= {"mode": "fixtures", "path": str(tmp_path / "private")}
    (copy / "run.json").write_text(json.dumps(run))
    async with serving(tmp_path / "runs") as served:
        reply = await served.get(f"/api/run/{served.id_of('demo')}/task/1/evidence?unit=record/lighthouses/0")
        assert (reply.status, "leads out" in reply.text, "hunter2" in reply.text) == (404, True, False)
    run["config"]["pages"] |= {"mode": "archive", "path": None}
    run["config"]["store"] = str(tmp_path / "private" / "store.sqlite")
    (copy / "run.json").write_text(json.dumps(run))
    async with serving(tmp_path / "runs") as served:
        reply = await served.get(f"/api/run/{served.id_of('demo')}/task/1/evidence?unit=record/lighthouses/0")
        assert reply.json["status"] == "not_at_hand"
    assert not (tmp_path / "private" / "store.sqlite").exists()
    run["config"]["pages"] |= {"mode": "fixtures", "path": "pkg://this/pages"}
    (copy / "run.json").write_text(json.dumps(run))
    async with serving(tmp_path / "runs") as served:
        reply = await served.get(f"/api/run/{served.id_of('demo')}/task/1/evidence?unit=record/lighthouses/0")
        assert (reply.status, "a package that is not loaded" in reply.text) == (404, True)
    assert "this" not in sys.modules  # it would have printed a poem


async def test_a_changed_file_is_read_again(demos: Path, tmp_path: Path) -> None:
    copy = tmp_path / "demo"
    copy.mkdir()
    for path in (demos / "demo_draco").iterdir():
        (copy / path.name).write_bytes(path.read_bytes())
    async with serving(tmp_path) as served:
        key = served.id_of("demo")
        before = (await served.get(f"/api/run/{key}/tasks")).json["rows"]
        lines = (copy / "scores.jsonl").read_text().splitlines(keepends=True)
        (copy / "scores.jsonl").write_text("".join(lines[:-1]))
        assert (await served.get(f"/api/run/{key}/tasks")).json["rows"] == before[:-1]
        (copy / "scores.jsonl").write_text("not JSON\n")
        reply = await served.get(f"/api/run/{key}/tasks")
        assert (reply.status, "scores.jsonl, line 1: not JSON" in reply.text) == (404, True)


# passages


@pytest.mark.parametrize(
    ("spans", "around", "wanted"),
    [
        ([], 4, ["0123", 12]),
        ([], 100, ["0123456789abcdef"]),
        ([(5, 7, 0)], 2, [3, "34", ("56", 0), "78", 7]),
        ([(0, 2, 0)], 0, [("01", 0), 14]),
        ([(14, 16, 1)], 3, [11, "bcd", ("ef", 1)]),
        ([(8, 10, 1), (2, 4, 0)], 1, [1, "1", ("23", 0), "4", 2, "7", ("89", 1), "a", 5]),
        ([(2, 4, 0), (6, 8, 1)], 50, ["01", ("23", 0), "45", ("67", 1), "89abcdef"]),
        ([(2, 6, 0), (4, 8, 1)], 0, [2, ("2345", 0), ("67", 1), 8]),
        ([(2, 8, 0), (3, 5, 1)], 0, [2, ("234567", 0), 8]),
        ([(2, 4, 0), (4, 6, 1)], 1, [1, "1", ("23", 0), ("45", 1), "6", 9]),
        ([(12, 99, 0)], 0, [12, ("cdef", 0)]),
    ],
)  # fmt: skip
def test_pieces_of_a_page(spans: Sequence[tuple[int, int, int]], around: int, wanted: Sequence[Any]) -> None:
    text = "0123456789abcdef"
    found = list(pieces(text, spans, around=around))
    shown = [
        piece.get("gap") or ((piece["text"], piece["mark"]) if "mark" in piece else piece["text"])
        for piece in found
    ]
    joined: list[Any] = []
    for piece in shown:  # neighbours of plain text are one to a reader
        if joined and isinstance(piece, str) and isinstance(joined[-1], str):
            joined[-1] += piece
        else:
            joined.append(piece)
    assert joined == list(wanted)
    assert sum(piece.get("gap", 0) + len(piece.get("text", "")) for piece in found) == len(text)


# progress


def test_progress_is_read_on_from_where_it_was(tmp_path: Path) -> None:
    run = {
        "run_id": "r",
        "starts": 1,
        "exit_code": None,
        "plan": {"submissions": 3, "judgements": 9, "tasks": "x"},
    }
    (tmp_path / "run.json").write_text(json.dumps(run))
    (tmp_path / ".lock").write_text(f"process {os.getpid()}")
    live = Live()
    assert live.look(found(tmp_path))["submissions"]["n"] == 0
    rows = tmp_path / "judgements.jsonl.part"
    good = {"task_id": "a", "verdict": {"met": True}, "cost_usd": 0.25, "judge": "j"}
    lost = {"task_id": "b", "verdict": None, "error": {"kind": "timeout"}, "cost_source": "unknown"}
    rule = {"task_id": "b", "verdict": {"met": False}, "judge": "rule"}
    with rows.open("w") as file:
        file.write(json.dumps(good) + "\n" + json.dumps(lost)[:20])
    told = live.look(found(tmp_path))
    assert (told["state"], told["judgements"]["n"], told["plan"]) == (
        "running", 1, {"tasks": 0, "submissions": 3, "judgements": 9, "repeats": 0},
    )  # fmt: skip
    with rows.open("a") as file:
        file.write(json.dumps(lost)[20:] + "\n" + json.dumps(rule) + "\nnot JSON\n[1]\n")
    (tmp_path / "submissions.jsonl.part").write_text('{"task_id": "a", "status": "completed", "cost_usd": 1}\n')
    told = live.look(found(tmp_path))
    assert told["judgements"] == {
        "n": 3, "tasks": 2, "usd": 0.25, "unknown": 1, "by_rule": 1, "missing": 1, "errors": {"timeout": 1},
    }  # fmt: skip
    assert told["submissions"] == {"n": 1, "tasks": 1, "usd": 1.0, "unknown": 0, "statuses": {"completed": 1}}
    rows.write_text(json.dumps(good) + "\n")  # begun anew
    assert live.look(found(tmp_path))["judgements"]["n"] == 1
    (tmp_path / ".lock").write_text("")
    assert live.look(found(tmp_path))["state"] == "stopped"
    (tmp_path / "run.json").write_text(json.dumps({**run, "exit_code": 0}))
    (tmp_path / "judgements.jsonl").write_text((json.dumps(good) + "\n") * 5)
    told = live.look(found(tmp_path))
    assert (told["state"], told["exit_code"], told["judgements"]["n"]) == ("ended", 0, 5)


async def test_a_run_without_numbers_is_shown_by_its_progress(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "run.json").write_text('{"exit_code": null}')
    async with serving(tmp_path) as served:
        key = served.id_of("a")
        reply = await served.get(f"/run/{key}")
        assert (reply.status, reply.headers["Location"]) == (303, f"/run/{key}/live")
        assert (await served.get(f"/run/{key}/live")).status == 200
        assert (await served.get(f"/api/run/{key}/live")).json["state"] == "stopped"
        assert (await served.get(f"/api/run/{key}/tasks")).status == 404


# labels


@pytest.fixture
def sheet(demos: Path, tmp_path: Path) -> Path:
    path = tmp_path / "sheet.csv"
    write_sheet(path, demos / "demo_draco", Wanted(n=12))
    return path


async def test_labels_are_put_into_the_sheet(sheet: Path) -> None:
    before = Sheet(sheet).rows
    async with serving(sheet.parent) as served:
        address = f"/api/sheet/{served.id_of('sheet.csv')}"
        rows = (await served.get(address)).json["rows"]
        assert [(row["id"], row["label"]) for row in rows] == [(row["id"], "") for row in before]
        said = ["yes", "no", "yes", ""]
        for place, label in enumerate(said):
            row = {"row": place, "id": rows[place]["id"], "label": label, "labeller": "Ann", "comment": "=1+1"}
            assert (await served.post(address, row)).json == {"saved": True}
        rows = (await served.get(address)).json["rows"]
        assert [row["label"] for row in rows] == [*said, *[""] * (len(rows) - 4)]
        shown = (await served.get(f"{address}/1")).json
        assert (shown["label"], shown["labeller"], shown["comment"]) == ("no", "Ann", "=1+1")
        assert (await served.get(f"/label/{served.id_of('sheet.csv')}")).status == 200
    labels = read_labels(sheet)
    assert [(label.id, label.met, label.labeller) for label in labels.labels] == [
        (before[place]["id"], label == "yes", "Ann") for place, label in enumerate(said) if label
    ]
    kept = [{**row, "label": "", "labeller": "", "comment": ""} for row in Sheet(sheet).rows]
    assert kept == before
    assert sorted(path.name for path in sheet.parent.iterdir()) == ["sheet.csv"]


@pytest.fixture
def trapped(sheet: Path, tmp_path: Path) -> Path:
    """A sheet in a folder of its own, with a link to another file where it would be written first."""
    (tmp_path / "mine").write_text("mine")
    (tmp_path / "given").mkdir()
    sheet.rename(tmp_path / "given" / "sheet.csv")
    (tmp_path / "given" / "sheet.csv.tmp").symlink_to(tmp_path / "mine")
    return tmp_path


async def test_a_label_is_not_written_through_a_link(trapped: Path) -> None:
    async with serving(trapped / "given") as served:
        address = f"/api/sheet/{served.id_of('sheet.csv')}"
        key = (await served.get(f"{address}/0")).json["id"]
        reply = await served.post(address, {"row": 0, "id": key, "label": "no"})
        assert (reply.status, "leads out" in reply.text) == (404, True)
    assert (trapped / "mine").read_text() == "mine"


@pytest.fixture
def told(sheet: Path) -> Path:
    """A sheet to which somebody added what the judge said."""
    rows = [{**row, "verdict": "UNMET-secret", "explanation": "secret"} for row in Sheet(sheet).rows]
    sheet.write_bytes(as_csv(list(rows[0]), rows))
    return sheet


async def test_a_labeller_never_sees_what_a_judge_said(told: Path) -> None:
    async with serving(told.parent) as served:
        address = f"/api/sheet/{served.id_of('sheet.csv')}"
        reply = await served.get(f"{address}/0")
        assert set(reply.json) == {"id", "label", "labeller", "comment", "fields"}
        assert set(reply.json["fields"]) == {"task_id", "unit", "check", "prompt", "asked", "shown", "note"}
        key = reply.json["id"]
        assert (await served.post(address, {"row": 0, "id": key, "label": "no"})).status == 200
        for path in (f"{address}/0", address, f"/label/{served.id_of('sheet.csv')}"):
            assert "secret" not in (await served.get(path)).text
    assert [row["verdict"] for row in Sheet(told).rows] == ["UNMET-secret"] * len(Sheet(told).rows)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"row": 99}, "no such row"),
        ({"row": -1}, "no such row"),
        ({"row": "0"}, "row: not a whole number"),
        ({"row": True}, "row: not a whole number"),
        ({"id": "another"}, "the sheet has changed"),
        ({"label": "met"}, "label: none that can be given"),
        ({"label": None}, "label: not a text"),
        ({"labeller": "x" * 81}, "labeller: not a text of at most 80"),
        ({"comment": ["x"]}, "comment: not a text"),
    ],
)
async def test_a_label_that_does_not_fit_changes_nothing(sheet: Path, change: dict[str, Any], reason: str) -> None:
    before = Sheet(sheet).rows
    async with serving(sheet.parent) as served:
        address = f"/api/sheet/{served.id_of('sheet.csv')}"
        row = {"row": 0, "id": before[0]["id"], "label": "yes", "labeller": "", "comment": "", **change}
        reply = await served.post(address, row)
        assert (reply.status, reason in reply.text) == (404, True)
    assert Sheet(sheet).rows == before


@pytest.mark.parametrize("body", [None, [], "x", 7, {}, {"row": None}])
def test_bodies_that_are_no_label(body: Any) -> None:
    with pytest.raises(InputError):
        asked(body)


# two answers


@pytest.mark.parametrize(
    ("first", "second", "wanted"),
    [
        ("", "", []),
        ("a\n", "a\n", [("same", "a\n")]),
        ("", "a\n", [("second", "a\n")]),
        ("a\n", "", [("first", "a\n")]),
        ("It was 1871.\n", "It was 1872.\n",
         [("same", "It was "), ("first", "1871"), ("second", "1872"), ("same", ".\n")]),
        ("apples\n", "a wholly other sentence\n", [("first", "apples\n"), ("second", "a wholly other sentence\n")]),
    ],
)  # fmt: skip
def test_where_two_texts_part(first: str, second: str, wanted: Sequence[tuple[str, str]]) -> None:
    assert [(piece.kind, piece.text) for piece in differences(first, second)] == list(wanted)


def test_what_both_have_is_left_out() -> None:
    lines = "".join(f"line {place}\n" for place in range(40))
    found = list(differences(f"{lines}old\n{lines}", f"{lines}new\n{lines}"))
    assert [(piece.kind, piece.n) for piece in found if piece.kind == "gap"] == [("gap", 37), ("gap", 37)]


def test_long_texts_take_no_time() -> None:
    first = "".join(f"{place} {place * 7919 % 1009}\n" for place in range(20_000))
    found = list(differences(first, first[::-1]))
    assert {piece.kind for piece in found} == {"first", "second"}


async def test_two_runs_side_by_side(demos: Path, tmp_path: Path) -> None:
    for name, changes in {"one": {}, "two": {"MET": "UNMET"}}.items():
        (tmp_path / name).mkdir()
        for path in (demos / "demo_draco").iterdir():
            (tmp_path / name / path.name).write_bytes(path.read_bytes())
        if changes:
            rows = [json.loads(line) for line in (tmp_path / name / "judgements.jsonl").read_text().splitlines()]
            rows[0]["verdict"] = {"met": not rows[0]["verdict"]["met"]}
            (tmp_path / name / "judgements.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    async with serving(tmp_path) as served:
        query = f"first={served.id_of('one')}&second={served.id_of('two')}"
        assert (await served.get(f"/difference?{query}")).text.count("&amp;task=") == 4
        reply = await served.get(f"/difference?{query}&task=1")
        assert (reply.status, "Judged differently: 1 units" in reply.text) == (200, True)
        assert (await served.get(f"/difference?{query}&task=9")).status == 404


async def test_runs_are_compared(tmp_path: Path) -> None:
    names = [f"t{place}" for place in range(8)]
    for system, base in (("alpha", 60.0), ("beta", 40.0)):
        for judge, shift in (("j1", 0.0), ("j2", -5.0)):
            write_run(
                tmp_path / f"{system}-{judge}",
                {name: [base + shift + place] for place, name in enumerate(names)},
                system=system, judge=judge, cost_usd=0.1, latency_s=base,
                said={name: {"c1": [place % 2 == 0]} for place, name in enumerate(names)},
            )  # fmt: skip
    async with serving(tmp_path) as served:
        keys = [served.id_of(f"{system}-{judge}") for system in ("alpha", "beta") for judge in ("j1", "j2")]
        page = await served.get("/compare?" + "&".join(f"run={key}" for key in keys))
        assert page.status == 200
        for part in ("Score against cost", "Score against time", "Judges with each other", "Where judges turn"):
            assert part in page.text
        assert (await served.get(f"/compare?run={keys[0]}")).status == 404
        assert (await served.get("/compare?" + "&".join(f"run={place:016x}" for place in range(30)))).status == 404


async def test_runs_that_do_not_fit_are_not_compared(demos: Path) -> None:
    async with serving(demos) as served:
        page = await served.get(f"/compare?run={served.id_of('demo_draco')}&run={served.id_of('demo_dag')}")
        assert (page.status, "Not compared" in page.text) == (200, True)
