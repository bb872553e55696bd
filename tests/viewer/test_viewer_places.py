"""What may be looked into: the given folders, and nothing that a link or an address leads to beside them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from viewer_helpers import serving

from core.errors import InputError
from core.viewer.places import FILES, Places, id_of

HEADER = "id,run,task_id,attempt,unit,check,label\n"


def make_run(folder: Path) -> Path:
    folder.mkdir(parents=True)
    (folder / "run.json").write_text(json.dumps({"schema": "leadline/run/1", "exit_code": 0}))
    return folder


def names(places: Places) -> dict[str, str]:
    return {found.name: found.sweep for found in places.scan().runs.values()}


def test_runs_are_found_below_a_folder_and_by_themselves(tmp_path: Path) -> None:
    for name in ("a", "deep/er/b", "s/0-x", "s/1-x", "20260101T000000Z-sweep/0-y", ".hidden/c", "a/inner"):
        make_run(tmp_path / "runs" / name)
    (tmp_path / "runs" / "s" / "sweep.json").write_text("{}")
    assert names(Places([tmp_path / "runs"])) == {
        "a": "", "deep/er/b": "", "s/0-x": "s", "s/1-x": "s",
        "20260101T000000Z-sweep/0-y": "20260101T000000Z-sweep",
    }  # fmt: skip
    assert names(Places([tmp_path / "runs" / "a"])) == {"a": ""}
    assert names(Places([tmp_path / "runs" / "s"])) == {"0-x": "s", "1-x": "s"}
    assert names(Places([tmp_path / "runs" / "a", tmp_path / "runs" / "a"])) == {"a": ""}


def test_a_search_has_an_end(tmp_path: Path) -> None:
    make_run(tmp_path / "1/2/3/4/5/6")
    make_run(tmp_path / "x/1/2/3/4/5/6")
    assert names(Places([tmp_path])) == {"1/2/3/4/5/6": ""}


@pytest.mark.parametrize("key", ["", "..", "../../etc/passwd", "%2e%2e", "0" * 16, "/etc", "0" * 15 + "/", "\x00"])
def test_what_has_no_id_is_not_there(tmp_path: Path, key: str) -> None:
    make_run(tmp_path / "a")
    places = Places([tmp_path])
    with pytest.raises(InputError, match="there is no such run"):
        places.run(key)
    with pytest.raises(InputError, match="there is no such sheet"):
        places.sheet(key)


@pytest.mark.parametrize("name", FILES)
def test_a_file_that_is_a_link_out_is_refused(tmp_path: Path, name: str) -> None:
    folder = make_run(tmp_path / "runs" / "a")
    (tmp_path / "secret").write_text("secret")
    (folder / name).unlink(missing_ok=True)
    (folder / name).symlink_to(tmp_path / "secret")
    places = Places([tmp_path / "runs"])
    with pytest.raises(InputError, match=r"leads out|no such run"):
        places.run(id_of(folder.resolve()))


@pytest.mark.parametrize("target", ["../../outside", "/etc", "."])
def test_a_folder_that_is_a_link_is_not_searched(tmp_path: Path, target: str) -> None:
    make_run(tmp_path / "outside" / "b")
    make_run(tmp_path / "runs" / "x" / "a")
    (tmp_path / "runs" / "x" / "link").symlink_to(target)
    assert names(Places([tmp_path / "runs"])) == {"x/a": ""}


def test_links_that_stay_inside_are_followed(tmp_path: Path) -> None:
    folder = make_run(tmp_path / "runs" / "a")
    (tmp_path / "runs" / "kept.json").write_text((folder / "run.json").read_text())
    (folder / "run.json").unlink()
    (folder / "run.json").symlink_to("../kept.json")
    places = Places([tmp_path / "runs"])
    assert places.run(id_of(folder.resolve())).name == "a"


def test_links_that_go_round_lead_nowhere(tmp_path: Path) -> None:
    folder = make_run(tmp_path / "a")
    (folder / "summary.json").symlink_to("summary.json")
    with pytest.raises(InputError, match=r"lead nowhere|leads out"):
        Places([tmp_path]).run(id_of(folder.resolve()))


@pytest.mark.parametrize(
    ("content", "is_sheet"),
    [
        (HEADER, True),
        ("\ufeff" + HEADER, True),
        (HEADER.replace(",", ";"), True),
        (HEADER.replace(",", "\t"), True),
        ('"id","run","task_id","attempt","unit","check"\n', True),
        ("id,label\n", False),
        ("password\nhunter2\n", False),
        ("", False),
        ("\x00\xff", False),
    ],
)
def test_a_sheet_is_known_by_its_header(tmp_path: Path, content: str, is_sheet: bool) -> None:
    (tmp_path / "s.csv").write_text(content, encoding="utf-8")
    assert [found.name for found in Places([tmp_path]).scan().sheets.values()] == ["s.csv"] * is_sheet
    assert [found.name for found in Places([tmp_path / "s.csv"]).scan().sheets.values()] == ["s.csv"] * is_sheet


def test_a_sheet_that_is_a_link_out_is_not_listed(tmp_path: Path) -> None:
    (tmp_path / "outside.csv").write_text(HEADER)
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "s.csv").symlink_to(tmp_path / "outside.csv")
    assert not Places([tmp_path / "runs"]).scan().sheets


@pytest.mark.parametrize(
    "path",
    [
        "/run/../../etc/passwd",
        "/run/%2e%2e%2f%2e%2e%2fetc%2fpasswd",
        "/run/..%5c..",
        "/static/../server.py",
        "/static/%2e%2e%2fserver.py",
        "/static/..%2f..%2fview.py",
        "/static//etc/passwd",
        "/static/view.css%00.js",
        "/api/run/%2fetc/tasks",
        "/api/sheet/..%2f..%2fsecret.csv",
        "/label/%2e%2e",
        "/compare?run=../../etc&run=..",
        "/difference?first=..&second=/etc",
    ],
)
async def test_no_address_leads_to_a_path(tmp_path: Path, path: str) -> None:
    make_run(tmp_path / "runs" / "a")
    async with serving(tmp_path / "runs") as served:
        reply = await served.get(path)
        assert reply.status == 404
        assert "root:" not in reply.text
        assert "import" not in reply.text
