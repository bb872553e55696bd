"""The archive: what is kept, in place of what, and that it comes back as it was."""

from __future__ import annotations

import os
import sqlite3
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.pages.archive import Archive
from core.pages.fetched import OURS, Fetched
from core.pages.page import GONE, STATUSES, UNSEEN, PageStatus

OK = Fetched(
    url="https://example.org/ä",
    status="ok",
    fetched_at=1_800_000_000.125,
    final_url="https://example.org/b",
    chain=("https://example.org/a", "https://example.org/b"),
    http_status=200,
    content_type="text/html; charset=cp1252",
    charset="cp1252",
    headers={"content-type": "text/html; charset=cp1252", "server": "x"},
    body="<p>naïve</p>".encode("cp1252") * 1000,
    tried=(("https://example.org/ä", "not_found"), ("https://example.org/a", "ok")),
    rendered=True,
)


def ended(status: PageStatus, at: float = 1_800_000_100.0) -> Fetched:
    return Fetched(url=OK.url, status=status, fetched_at=at, message="why not", http_status=404)


@pytest.fixture
def archive(tmp_path: Path) -> Archive:
    return Archive(tmp_path / "store.sqlite")


def test_a_page_comes_back_as_it_was_to_another_process(archive: Archive) -> None:
    assert archive.put("k", OK)
    again = Archive(archive.path)
    assert again.get("k") == OK
    assert again.get("other") is None


def test_a_body_is_packed(archive: Archive) -> None:
    archive.put("k", OK)
    archive.close()
    [(size, digest)] = sqlite3.connect(archive.path).execute("SELECT length(body), digest FROM page").fetchall()
    assert size < len(OK.body) / 10
    assert digest == OK.digest()


@pytest.mark.parametrize("status", sorted(GONE))
def test_what_is_gone_is_kept(archive: Archive, status: PageStatus) -> None:
    archive.put("k", OK)
    assert archive.put("k", ended(status))
    assert archive.get("k") == ended(status)


@pytest.mark.parametrize("status", sorted(UNSEEN - OURS))
def test_what_we_could_not_see_is_kept_but_replaces_nothing_better(archive: Archive, status: PageStatus) -> None:
    assert archive.put("k", ended(status))
    assert archive.get("k") == ended(status)
    assert archive.put("k", OK)
    assert not archive.put("k", ended(status))
    assert archive.get("k") == OK


@pytest.mark.parametrize("status", sorted(OURS))
def test_our_own_faults_are_not_kept(archive: Archive, status: PageStatus) -> None:
    assert not archive.put("k", ended(status))
    assert archive.get("k") is None


def test_every_status_is_spoken_of() -> None:
    assert {"ok"} | GONE | UNSEEN == set(STATUSES)


@pytest.mark.parametrize(
    "damage",
    [
        pytest.param("UPDATE page SET digest = 'another'", id="another digest"),
        pytest.param("UPDATE page SET body = x'00'", id="not zstd"),
        pytest.param("UPDATE page SET body = substr(body, 1, 20)", id="cut"),
        # a frame that says it unpacks to 4 GiB
        pytest.param("UPDATE page SET body = x'28b52ffda0ffffffff000000'", id="a bomb"),
        pytest.param("UPDATE page SET status = 'splendid'", id="no status"),
        pytest.param("UPDATE page SET meta = '{\"tried\": [7]}'", id="malformed meta"),
    ],
)
def test_a_damaged_row_is_a_page_that_is_not_there(archive: Archive, damage: str) -> None:
    archive.put("k", OK)
    database = sqlite3.connect(archive.path)
    database.execute(damage)
    database.commit()
    assert archive.get("k") is None
    archive.put("k", OK)
    assert archive.get("k") == OK


def test_all_pages_in_the_order_of_their_keys(archive: Archive) -> None:
    for key in ("b", "c", "a"):
        archive.put(key, replace(OK, url=key))
    assert [(key, page.url) for key, page in archive.all()] == [("a", "a"), ("b", "b"), ("c", "c")]


def test_a_page_is_leased_to_one_process(archive: Archive) -> None:
    assert archive.take_lease("k")
    other = Archive(archive.path)
    other._store._owner = f"{os.getppid()}:{_started(os.getppid())}"
    assert not other.take_lease("k")
    archive.drop_lease("k")
    assert other.take_lease("k")


def test_nothing_is_written_until_something_is_asked(tmp_path: Path) -> None:
    archive = Archive(tmp_path / "store.sqlite")
    archive.close()
    assert list(tmp_path.iterdir()) == []


TEXTS = st.text(max_size=30)


@given(
    url=TEXTS,
    status=st.sampled_from(["ok", "gone", "timeout"]),
    at=st.integers(0, 4_000_000_000_000).map(lambda number: number / 1000),
    chain=st.lists(TEXTS, max_size=3).map(tuple),
    headers=st.dictionaries(TEXTS, TEXTS, max_size=3),
    message=TEXTS,
    body=st.binary(max_size=300),
)
def test_whatever_can_be_encoded_comes_back(
    url: str,
    status: PageStatus,
    at: float,
    chain: tuple[str, ...],
    headers: dict[str, str],
    message: str,
    body: bytes,
) -> None:
    fetched = Fetched(
        url=url,
        status=status,
        fetched_at=at,
        chain=chain,
        headers=headers,
        message=message,
        body=body if status == "ok" else b"",
    )
    archive = Archive(Path(":memory:"))
    archive.put(url, fetched)
    assert archive.get(url) == fetched
    archive.close()


def test_half_a_character_of_a_hostile_address_is_no_error(archive: Archive) -> None:
    odd = "http://example.org/\ud800"
    archive.put(odd, replace(OK, url=odd, message="\udcff", chain=("\ud800",)))
    found = archive.get(odd)
    assert found is not None
    assert found.url == "http://example.org/?"


def _started(process: int) -> str:
    from core.store import _started as started

    return started(process)
