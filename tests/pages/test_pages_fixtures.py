"""Pages as files: read strictly, confined to their folder, and the same after a round trip."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from core.errors import InputError
from core.pages.fetched import Fetched
from core.pages.fixtures import INDEX, Fixtures, write
from core.resources import resolve

LINE: dict[str, Any] = {
    "url": "https://example.org/a",
    "status": "ok",
    "final_url": "https://example.org/b",
    "chain": ["https://example.org/b"],
    "content_type": "text/html; charset=utf-8",
    "charset": None,
    "fetched_at": "2026-01-31T12:00:00+00:00",
    "file": "bodies/a.html",
}


def same(url: str) -> str:
    return url


def folder(tmp_path: Path, *lines: Any) -> Path:
    """A folder of fixtures with these lines; texts stand as they are."""
    root = tmp_path / "pages"
    (root / "bodies").mkdir(parents=True)
    (root / "bodies" / "a.html").write_bytes(b"<p>a</p>")
    (tmp_path / "secret").write_bytes(b"not a page")
    (root / "bodies" / "link").symlink_to(tmp_path / "secret")
    text = "\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines)
    (root / INDEX).write_text(text, encoding="utf-8")
    return root


def test_a_line_is_a_page(tmp_path: Path) -> None:
    pages = Fixtures(folder(tmp_path, "", LINE, ""), same)
    assert len(pages) == 1
    assert pages.get(LINE["url"]) == Fetched(
        url="https://example.org/a",
        status="ok",
        fetched_at=1_769_860_800.0,
        final_url="https://example.org/b",
        chain=("https://example.org/b",),
        content_type="text/html; charset=utf-8",
        charset="utf-8",
        body=b"<p>a</p>",
    )
    assert pages.get("https://example.org/b") is None


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        pytest.param(
            {"url": "u", "status": "gone"},
            {"status": "gone", "final_url": "u", "body": b""},
            id="only what is needed",
        ),
        pytest.param(
            {"url": "u", "status": "timeout", "file": None, "chain": None}, {"status": "timeout"}, id="nulls"
        ),
        pytest.param({"url": "u", "status": "ok", "file": "bodies/a.html"}, {"fetched_at": 0.0}, id="no time"),
        pytest.param(
            {"url": "u", "status": "ok", "file": "bodies/a.html", "fetched_at": "2026-01-31T12:00:00Z", "more": 1},
            {"fetched_at": 1_769_860_800.0},
            id="Z, and a field of somebody's own",
        ),
        pytest.param(
            {"url": "u", "status": "gone", "fetched_at": "2026-01-31T13:00:00+01:00"},
            {"fetched_at": 1_769_860_800.0},
            id="an offset",
        ),
        pytest.param(
            {"url": "u", "status": "gone", "chain": ["v", "w"]}, {"final_url": "w"}, id="the chain's end"
        ),
    ],
)
def test_what_a_line_may_leave_out(tmp_path: Path, line: dict[str, Any], expected: dict[str, Any]) -> None:
    found = Fixtures(folder(tmp_path, line), same).get("u")
    assert found is not None
    assert {name: getattr(found, name) for name in expected} == expected


@pytest.mark.parametrize(
    ("line", "field"),
    [
        pytest.param("{", None, id="not JSON"),
        pytest.param("[1]", None, id="not an object"),
        pytest.param("[" * 100_000, None, id="nested without end"),
        pytest.param({**LINE, "url": None}, "url", id="no url"),
        pytest.param({**LINE, "url": " "}, "url", id="blank url"),
        pytest.param({**LINE, "status": "fine"}, "status", id="unknown status"),
        pytest.param({**LINE, "status": ["ok"]}, "status", id="status of a wrong type"),
        pytest.param({**LINE, "chain": "https://example.org/b"}, "chain", id="chain is no list"),
        pytest.param({**LINE, "chain": [1]}, "chain", id="chain of numbers"),
        pytest.param({**LINE, "content_type": 7}, "content_type", id="content type is a number"),
        pytest.param({**LINE, "charset": 7}, "charset", id="charset is a number"),
        pytest.param({**LINE, "final_url": 7}, "final_url", id="final url is a number"),
        pytest.param({**LINE, "fetched_at": "yesterday"}, "fetched_at", id="no time"),
        pytest.param({**LINE, "fetched_at": 1769860800}, "fetched_at", id="time as a number"),
        pytest.param({**LINE, "http_status": True}, "http_status", id="http status is a truth"),
        pytest.param({**LINE, "headers": ["a"]}, "headers", id="headers are a list"),
        pytest.param({**LINE, "tried": [["a"]]}, "tried", id="half a try"),
        pytest.param({**LINE, "file": None}, "file", id="ok without a body"),
        pytest.param({**LINE, "file": "bodies/b.html"}, "file", id="no such file"),
        pytest.param({**LINE, "file": "../secret"}, "file", id="above the folder"),
        pytest.param({**LINE, "file": "bodies/../../secret"}, "file", id="above the folder, roundabout"),
        pytest.param({**LINE, "file": "bodies/link"}, "file", id="a link out of the folder"),
        pytest.param({**LINE, "file": "/etc/hostname"}, "file", id="absolute"),
        pytest.param({**LINE, "file": "bodies"}, "file", id="a folder"),
        pytest.param({**LINE, "file": "bodies\\a.html"}, "file", id="backslash"),
        pytest.param({**LINE, "file": "bodies/a.html\0"}, "file", id="zero byte"),
        pytest.param({**LINE, "file": ""}, "file", id="empty name"),
        pytest.param({**LINE, "file": "a" * 5000}, "file", id="a name too long"),
    ],
)
def test_a_malformed_line_is_refused_with_its_place(tmp_path: Path, line: Any, field: str | None) -> None:
    root = folder(tmp_path, {"url": "x", "status": "gone"}, line)
    with pytest.raises(InputError) as caught:
        Fixtures(root, same)
    assert caught.value.where == f"{root / INDEX}, line 2" + (f", field {field}" if field else "")
    assert caught.value.expected


def test_a_page_stands_once(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="the same page as line 1"):
        Fixtures(folder(tmp_path, LINE, {**LINE, "url": LINE["url"].upper()}), str.lower)


def test_a_folder_without_an_index_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=INDEX):
        Fixtures(tmp_path, same)


def test_a_body_that_went_away_is_an_error_and_no_page(tmp_path: Path) -> None:
    root = folder(tmp_path, LINE)
    pages = Fixtures(root, same)
    (root / "bodies" / "a.html").unlink()
    with pytest.raises(InputError, match="line 1"):
        pages.get(LINE["url"])


def test_pages_survive_the_round_trip(tmp_path: Path) -> None:
    ok = Fetched(
        url="https://example.org/ä?b=1",
        status="ok",
        fetched_at=1_800_000_000.375,
        final_url="https://example.org/c",
        chain=("https://example.org/c",),
        http_status=200,
        content_type="application/pdf",
        charset=None,
        headers={"server": "x"},
        body=b"%PDF-1.7 \xff",
        message="",
        tried=(("https://example.org/ä?b=1", "not_found"), ("https://example.org/c", "ok")),
        rendered=True,
    )
    twin = replace(ok, url="https://example.org/twin", tried=(), rendered=False)
    empty = replace(twin, url="https://example.org/empty", body=b"", content_type="text/html")
    gone = Fetched(
        url="https://example.org/gone",
        status="gone",
        fetched_at=1.0,
        final_url="https://example.org/gone",
        http_status=410,
        message="the server answered 410",
    )
    pages = [ok, twin, empty, gone]
    assert write(tmp_path / "out", pages) == 4
    assert list(Fixtures(tmp_path / "out", same).all()) == pages
    names = sorted(path.suffix for path in (tmp_path / "out" / "bodies").iterdir())
    assert names == [".html", ".pdf"], "equal bodies are kept once"


def test_a_folder_with_something_in_it_is_not_written_over(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("x", encoding="utf-8")
    with pytest.raises(InputError, match="not empty"):
        write(tmp_path, [])


def test_a_packaged_folder_has_an_address() -> None:
    assert (resolve("pkg://plugins.draco/sample", folder=True) / "submissions.jsonl").is_file()
    with pytest.raises(InputError, match="no folder"):
        resolve("pkg://plugins.draco/sample/submissions.jsonl", folder=True)
