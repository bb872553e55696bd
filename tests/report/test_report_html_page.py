"""report.html as its readers get it: what stands where, how large it is, and what it never does."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from pathlib import Path
from typing import Any

import pytest
from report_folders import Page, told, write_folder

from core.errors import InputError
from core.report.html import write

SECTIONS = ["headline", "cautions", "run", "metrics", "groups", "spread", "failures", "tasks", "details"]


def page(folder: Path, explain: Any = None) -> Page:
    return Page(write(folder, explain).read_text(encoding="utf-8"))


def test_sections_stand_in_their_order_and_each_has_a_name(tmp_path: Path) -> None:
    root = page(write_folder(tmp_path / "run"), told()).root
    main = root.one("main")
    found = [child for child in main.children if child.tag == "section"]
    assert [section.attributes["id"] for section in found] == SECTIONS
    for section in found:
        heading = section.one("h2")
        assert section.attributes["aria-labelledby"] == heading.attributes["id"]
        assert heading.text
    links = [link.attributes["href"] for link in root.one("nav").all("a")]
    assert links == [f"#{name}" for name in SECTIONS]


def test_the_numbers_are_those_of_the_summary(tmp_path: Path) -> None:
    root = page(write_folder(tmp_path / "run", values=(41.256, 60.0))).root
    assert root.one("p", class_="value").text == "50.63of 100"
    rows = [
        [cell.text for cell in row.children] for row in root.one("section", id="metrics").one("tbody").children
    ]
    assert rows == [
        ["metric", "50.63", "40.63", "60.63", "", "1.50", "2"],
        ["second", "–", "–", "–", "", "–", "0"],
    ]
    hero = {
        key.text: value.text
        for key, value in zip(
            root.one("dl", class_="keys").all("dt"), root.one("dl", class_="keys").all("dd"), strict=True
        )
    }
    assert hero == {
        "Tasks scored": "2 / 2",
        "Judgements": "7 / 8 87.5 %",
        "System": "system effort effort",
        "Judge": "judge model",
        "Date": "start",
        "Cost": "1.25 $ + 2 unknown",
        "SD of judge runs": "1.50",
    }  # fmt: skip


def test_the_run_is_described(tmp_path: Path) -> None:
    root = page(write_folder(tmp_path / "run")).root
    facts = root.one("dl", class_="facts")
    described = {key.text: value.text for key, value in zip(facts.all("dt"), facts.all("dd"), strict=True)}
    assert described["System"] == "system, effort effort setting setting value"
    assert described["Judge"] == (
        'judge (model) setting setting value, list ["setting value"]; 2 repeats; asked from first date to last date; '
        "verdicts by judge 7; prompts prompt diges"
    )
    assert (
        described["Cost"]
        == "1.25 $ + 2 calls of unknown cost solving 1.00 $, judging 0.2500 $; prices price source"
    )
    assert described["Judgements"] == "7 of 8 (87.5%) missing: sign 1/2"
    assert described["Time to answer"] == "median 12.5 s P90 20.0 s, of 2 answers"


def test_what_to_be_careful_about_is_said_once(tmp_path: Path) -> None:
    folder = write_folder(
        tmp_path / "run",
        statuses=("scored", "withheld"),
        values=(40.0, None),
        changes={"warnings": ["a", "b", "a"]},
    )
    said = [item.text for item in page(folder).root.one("ul", class_="cautions").children]
    assert said == [
        "a",
        "b",
        "1 of 2 tasks are withheld, since too little of them was judged: 0001 task id",
        "1 of 8 judgements are missing",
        "tasks with flags: flag 2",
        "the cost leaves out 2 calls whose price is not known",
        "the run ended with exit code 3: not every expected number is there",
    ]


def test_the_table_has_a_row_for_every_task(tmp_path: Path) -> None:
    root = page(
        write_folder(tmp_path / "run", tasks=7, values=(1.0, None, 3.5), statuses=("scored", "error", "zero"))
    ).root
    rows = root.one("table", id="table").one("tbody").children
    assert [[cell.text for cell in row.children[:7]] for row in rows[:3]] == [
        ["1", "0000 task id", "scored", "1.00", "–", "3/4", "0.5000 $"],
        ["2", "0001 task id", "error", "–", "–", "3/4", "0.5000 $"],
        ["3", "0002 task id", "zero", "3.50", "–", "3/4", "0.5000 $"],
    ]
    assert len(rows) == 7
    assert len(root.all("article", class_="task")) == 7


def test_the_island_has_the_facts_unrounded(tmp_path: Path) -> None:
    root = page(write_folder(tmp_path / "run", values=(1 / 3, None))).root
    island = json.loads("".join(root.one("script", id="facts").texts))
    assert island["columns"] == ["metric", "second"]
    assert [task["numbers"] for task in island["tasks"]] == [[1 / 3, None], [None, None]]
    assert set(island["tasks"][0]) == {
        "id", "labels", "numbers", "status", "flags", "n_graded", "n_expected", "cost_usd", "latency_s",
    }  # fmt: skip


def test_every_verdict_is_there_with_its_reasons(tmp_path: Path) -> None:
    met = {(0, 1): True, (0, 2): True, (0, 3): False, (1, 1): False, (1, 2): None, (1, 3): None}
    folder = write_folder(
        tmp_path / "run", tasks=1, repeats=3, values=(40.0,), met=lambda task, unit, repeat: met[unit, repeat]
    )
    table = page(folder).root.one("table", class_="units")
    rows = table.one("tbody").children
    assert [row.children[1].text for row in rows] == ["MET in 2 of 3 ●●○", "MET in 0 of 1, 2 missing ○??"]
    assert [one.text for one in rows[0].all("p", class_="why")] == [
        f"Repeat {repeat}: {repeat} explanation" for repeat in (1, 2, 3)
    ]
    assert [one.text for one in rows[1].all("p", class_="why error")] == ["Repeat 2, 3: error kind: error message"]
    assert rows[0].all("span", class_="m yes split")


@pytest.mark.parametrize(
    "shape",
    [("table", "criteria"), ("table", "nodes"), ("div", "graph"), ("div", "tree")],
    ids=" ".join,
)
def test_what_explain_tells_is_drawn(tmp_path: Path, shape: tuple[str, str]) -> None:
    folder = write_folder(tmp_path / "run", tasks=1)
    assert not page(folder).root.all(shape[0], class_=shape[1])
    assert page(folder, told()).root.all(shape[0], class_=shape[1])


def test_errors_that_were_found_stand_first(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "run", tasks=1, units=3, met=lambda task, unit, repeat: unit != 2)
    bodies = page(folder, told()).root.one("table", class_="criteria").all("tbody")
    assert [
        [row.children[0].text.split("Repeat")[0].split(" (")[0] for row in body.children] for body in bodies
    ] == [
        ["Errors that at least one repeat found", "requirement"],
        ["section", "requirement", "requirement"],
    ]
    assert [row.children[2].text for row in bodies[0].children[1:]] == ["error made: MET in 2 of 2 ●●"]
    assert bodies[1].children[0].children[1].text == "3.75"


def test_a_plugin_that_fails_leaves_the_verdicts(tmp_path: Path) -> None:
    def explain(*_: object) -> dict[str, Any]:
        raise RuntimeError("no such thing")

    root = page(write_folder(tmp_path / "run", tasks=1), explain).root
    assert len(root.one("table", class_="units").one("tbody").children) == 2
    said = [one.text for one in root.one("section", class_="attempt").all("p", class_="caution")]
    assert "the benchmark could not say how this score came about: RuntimeError: no such thing" in said


@pytest.mark.parametrize(
    "shape",
    [
        {"criteria": 3, "graph": [], "repeats": "x", "leaves": None},
        {"criteria": [{"criteria": [None, 1, {"unit": 4, "weight": "5", "text": None}]}]},
        {"graph": {"nodes": [{"id": "a"}, {"id": "a"}, {}], "edges": [["a", "a"], 1, ["a", "z"], []], "schemes": [1]}},
        {"graph": {"nodes": [{"id": "a"}, {"id": "b"}], "edges": [["a", "b"], ["b", "a"]]}},
        {"repeats": [{"repeat": "1", "strict": {"tree": {"level": {"children": [{"leaf": 99}, {"leaf": True}, 3]}}}}]},
        {"repeats": [{"strict": {"tree": []}}], "records": []},
        [],
        None,
    ],
    ids=["other types", "criteria", "graph", "circle", "leaves", "no tree", "a list", "nothing"],
)  # fmt: skip
def test_shapes_of_another_form_are_passed_over(tmp_path: Path, shape: Any) -> None:
    root = page(write_folder(tmp_path / "run", tasks=1), lambda *_: shape).root
    assert len(root.all("article")) == 1


def test_a_deep_tree_ends(tmp_path: Path) -> None:
    level: dict[str, Any] = {"key": "k", "children": []}
    for _ in range(200):
        level = {"key": "k", "children": [{"value": "v", "identity": "v", "level": level}]}
    shape = {"repeats": [{"repeat": 1, "strict": {"tree": {"name": "n", "level": level}}}]}
    tree = page(write_folder(tmp_path / "run", tasks=1), lambda *_: shape).root.one("div", class_="tree")
    assert "and 1 more: in the viewer" in tree.text


def test_duplicates_stand_below_the_first(tmp_path: Path) -> None:
    tree = page(write_folder(tmp_path / "run", tasks=1), told()).root.all("div", class_="tree")[0]
    assert "2 given, 1 required, 1 duplicate, 1 surplus (in precision alone), 1 without a value" in tree.text
    assert len(tree.all("li", class_="twin")) == 2, "one in the node, one in its subtask"
    assert "× node: it has no such entity, so × 0" in tree.text
    assert "× node entity (worst of 2)" in tree.text


@pytest.mark.parametrize("name", ["tasks.jsonl", "submissions.jsonl", "judgements.jsonl"])
def test_a_file_that_is_absent_is_named(tmp_path: Path, name: str) -> None:
    folder = write_folder(tmp_path / "run")
    (folder / name).unlink()
    root = page(folder, told()).root
    assert f"the folder has no {name}: what rests on it is not shown" in root.one("ul", class_="cautions").text
    assert len(root.all("article")) == 2


@pytest.mark.parametrize("name", ["run.json", "summary.json", "scores.jsonl"])
def test_a_folder_without_numbers_is_refused(tmp_path: Path, name: str) -> None:
    folder = write_folder(tmp_path / "run")
    (folder / name).unlink()
    with pytest.raises(InputError, match=f"there is no {name}"):
        write(folder)
    assert not (folder / "report.html").exists()


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("summary.json", "[]", "not a JSON object"),
        ("scores.jsonl", '{"schema": "leadline/score/2"}\n', "another version"),
        ("scores.jsonl", '{"schema": "leadline/score/1"}\n', "not what a run writes"),
        ("judgements.jsonl", "{\n", "line 1"),
        ("run.json", '{"schema": "leadline/run/1", "exit_code": 2, "refused": "no key"}', "no key"),
    ],
)
def test_a_file_that_is_not_ours_is_refused(tmp_path: Path, name: str, content: str, message: str) -> None:
    folder = write_folder(tmp_path / "run")
    (folder / name).write_text(content, encoding="utf-8")
    with pytest.raises(InputError, match=message):
        write(folder)


def test_fields_of_a_newer_version_are_passed_over(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "run", changes={"news": 1})
    rows = [json.loads(line) | {"news": 1} for line in (folder / "scores.jsonl").read_text().splitlines()]
    (folder / "scores.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert len(page(folder).root.all("article")) == 2


def test_a_run_in_which_everything_failed_has_a_report(tmp_path: Path) -> None:
    folder = write_folder(
        tmp_path / "run", values=(None,), statuses=("error",), met=lambda *_: None, changes={"coverage": None, "groups": {}}
    )  # fmt: skip
    root = page(folder, told()).root
    assert root.one("p", class_="value").text == "–"
    assert "Too few tasks have one" in root.one("section", id="headline").text
    assert "No task has a number" in root.one("section", id="spread").text
    assert not root.all("section", id="groups")


def test_a_run_without_tasks_has_a_report(tmp_path: Path) -> None:
    root = page(write_folder(tmp_path / "run", tasks=0)).root
    assert "No task is told in detail." in root.one("section", id="details").text


def test_the_same_folder_gives_the_same_bytes(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "run", tasks=5)
    first = write(folder, told()).read_bytes()
    assert write(folder, told()).read_bytes() == first


@pytest.mark.parametrize(("tasks", "units", "repeats"), [(100, 40, 5), (400, 10, 1)])
def test_a_page_stays_below_a_megabyte(tmp_path: Path, tasks: int, units: int, repeats: int) -> None:
    folder = write_folder(
        tmp_path / "run", tasks=tasks, units=units, repeats=repeats,
        requirement="a requirement of the usual length " * 6, values=tuple(map(float, range(100))),
    )  # fmt: skip
    html = write(folder, _criteria).read_text(encoding="utf-8")
    assert len(html.encode()) < 1_000_000
    root = Page(html).root
    assert len(root.one("table", id="table").one("tbody").children) == tasks
    told_of = [int(one.attributes["id"][1:]) for one in root.all("article")]
    assert told_of
    assert told_of[0] == 1, "the lowest number comes first"


def _criteria(task: Any, *_: object) -> dict[str, Any]:
    units = task.payload["units"]
    return {"criteria": [{"title": "s", "criteria": [{"unit": unit, "text": task.payload["text"], "weight": 5} for unit in units]}]}  # fmt: skip


def test_a_giant_task_does_not_keep_the_others_out(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "run", tasks=4, units=3000, repeats=1, explanation="x" * 400)
    html = write(folder).read_text(encoding="utf-8")
    assert len(html.encode()) < 1_000_000
    assert len(Page(html).root.all("article")) == 4


def test_nothing_is_loaded_or_sent(tmp_path: Path) -> None:
    html = write(write_folder(tmp_path / "run"), told()).read_text(encoding="utf-8")
    root = Page(html).root
    for element in root.walk():
        for name, value in element.attributes.items():
            assert name not in ("style", "srcset", "action", "formaction") and not name.startswith("on"), (element.tag, name)  # fmt: skip
            if name in ("src", "href", "xlink:href", "data"):
                assert value.startswith("#") or value == "data:,", (element.tag, value)
    assert not re.search(r"url\(|@import|https?:", root.one("style").text)
    assert not {"iframe", "object", "embed", "base", "img", "video"} & {element.tag for element in root.walk()}


def test_only_the_pages_own_script_may_run(tmp_path: Path) -> None:
    html = write(write_folder(tmp_path / "run")).read_text(encoding="utf-8")
    root = Page(html).root
    policy = next(meta.attributes["content"] for meta in root.all("meta") if "http-equiv" in meta.attributes)
    scripts = [script for script in root.all("script") if "type" not in script.attributes]
    assert len(scripts) == 1
    digest = base64.b64encode(hashlib.sha256("".join(scripts[0].texts).encode()).digest()).decode()
    assert policy.split("; ") == [
        "default-src 'none'",
        "style-src 'unsafe-inline'",
        f"script-src 'sha256-{digest}'",
        "img-src data:",
        "base-uri 'none'",
        "form-action 'none'",
    ]
    head = html.index("</head>")
    assert html.index("Content-Security-Policy") < html.index("<style>") < head


def test_a_reader_without_eyes_or_mouse_finds_the_way(tmp_path: Path) -> None:
    root = page(write_folder(tmp_path / "run"), told()).root
    assert root.one("html").attributes["lang"] == "en"
    assert root.one("body").children[0].attributes == {"class": "skip", "href": "#main"}
    for table in root.all("table"):
        assert table.one("caption").text
        assert table.all("th", scope="col")
        assert all("scope" in head.attributes for head in table.all("th"))
    for drawing in root.all("svg"):
        assert drawing.attributes.get("aria-label") or drawing.attributes["class"] in ("row", "bar")
    ids = [one.attributes["id"] for one in root.walk() if "id" in one.attributes]
    assert len(ids) == len(set(ids))
    targets = {link.attributes["href"][1:] for link in root.all("a")}
    assert targets <= set(ids)
    assert all(group.attributes["aria-label"] for group in root.all("g"))
