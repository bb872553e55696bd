"""`python -m core.pages`: an archive out of a store, and into another."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from conftest import ROOT

from core.cli import main as cli
from core.pages import main
from core.pages.archive import Archive
from core.pages.fetched import Fetched
from core.pages.fixtures import Fixtures
from core.pages.urls import archive_key

PAGES = [
    Fetched(
        url=f"https://example.org/{number}",
        status="ok",
        fetched_at=1_800_000_000.0 + number,
        final_url=f"https://example.org/{number}",
        http_status=200,
        content_type="text/html",
        headers={"server": "x"},
        body=f"<p>{number}</p>".encode(),
    )
    for number in range(3)
] + [
    Fetched(
        url="https://example.org/gone",
        status="gone",
        fetched_at=1_800_000_009.0,
        final_url="https://example.org/gone",
        http_status=410,
        message="the server answered 410",
    ),
    Fetched(
        url="https://example.org/slow",
        status="timeout",
        fetched_at=1_800_000_010.5,
        final_url="https://example.org/slow",
        message="no answer",
    ),
]


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return fill(tmp_path / "store.sqlite", PAGES)


def fill(path: Path, pages: list[Fetched]) -> Path:
    archive = Archive(path)
    for fetched in pages:
        archive.put(archive_key(fetched.url), fetched)
    archive.close()
    return path


def content(path: Path) -> dict[str, Fetched]:
    archive = Archive(path)
    found = {fetched.url: fetched for _, fetched in archive.all()}
    archive.close()
    return found


def test_an_archive_survives_the_round_trip(
    store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, other = tmp_path / "out", tmp_path / "other.sqlite"
    assert main(["export", "--store", str(store), "--out", str(out)]) == 0
    assert main(["import", str(out), "--store", str(other)]) == 0
    assert content(other) == content(store) == {fetched.url: fetched for fetched in PAGES}
    said = capsys.readouterr().out
    assert "5 pages written" in said
    assert "5 pages put" in said


def test_twice_changes_nothing(store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["export", "--store", str(store), "--out", str(tmp_path / "out")])
    assert main(["import", str(tmp_path / "out"), "--store", str(store)]) == 0
    assert "0 pages put" in capsys.readouterr().out
    assert content(store) == {fetched.url: fetched for fetched in PAGES}


def test_the_later_fetch_stays(store: Path, tmp_path: Path) -> None:
    older, newer = replace(PAGES[0], fetched_at=1.0, body=b"old"), replace(PAGES[1], fetched_at=2e9, body=b"new")
    other = fill(tmp_path / "other.sqlite", [older, newer])
    main(["export", "--store", str(other), "--out", str(tmp_path / "out")])
    main(["import", str(tmp_path / "out"), "--store", str(store)])
    found = content(store)
    assert (found[PAGES[0].url].body, found[PAGES[1].url].body) == (b"<p>0</p>", b"new")


def test_only_what_a_run_speaks_of(store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = tmp_path / "run"
    run.mkdir()
    rows = [
        {"task_id": "t", "unit": "record/t/0", "verdict": None},
        {"task_id": "t", "unit": "page/https://example.org/1", "verdict": {"status": "ok"}},
        {"task_id": "t", "unit": "page/https://example.org/never", "verdict": {"status": "not_archived"}},
    ]
    (run / "judgements.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    cited = {"task_id": "t", "citations": [{"url": "https://example.org/gone"}]}
    (run / "submissions.jsonl").write_text(json.dumps(cited) + "\n", encoding="utf-8")
    assert main(["export", "--store", str(store), "--out", str(tmp_path / "out"), "--run", str(run)]) == 0
    urls = [page.url for page in Fixtures(tmp_path / "out", archive_key).all()]
    assert urls == ["https://example.org/1", "https://example.org/gone"]
    assert "1 that the run speaks of are not in the store" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        pytest.param(
            ["export", "--store", "{tmp}/none.sqlite", "--out", "{tmp}/out"], "no such store", id="no store"
        ),
        pytest.param(["export", "--store", "{store}", "--out", "{tmp}"], "not empty", id="a folder in use"),
        pytest.param(
            ["export", "--store", "{store}", "--out", "{tmp}/out", "--run", "{tmp}"],
            "folder of a run",
            id="no run",
        ),
        pytest.param(["import", "{tmp}", "--store", "{store}"], "pages.jsonl", id="no fixtures"),
    ],
)
def test_what_is_refused(
    words: list[str], said: str, store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([word.format(tmp=tmp_path, store=store) for word in words]) == 2
    assert said in capsys.readouterr().err
    assert content(store) == {fetched.url: fetched for fetched in PAGES}


def test_a_row_that_is_none_is_named(store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "judgements.jsonl").write_text('{"unit": "page/x"}\n[]\n', encoding="utf-8")
    words = ["export", "--store", str(store), "--out", str(tmp_path / "out"), "--run", str(tmp_path)]
    assert main(words) == 2
    assert "line 2" in capsys.readouterr().err


def test_help(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        cli(["pages", "--help"])
    assert ended.value.code == 0
    assert "export|import" in capsys.readouterr().out


def test_it_is_a_module_to_run() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "core.pages", "export", "--help"],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "--store" in done.stdout
