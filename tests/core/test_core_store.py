"""The store: what is kept, what is counted, who may work on a key."""

from __future__ import annotations

import multiprocessing
import os
import sqlite3
from pathlib import Path

import pytest

from core.errors import InputError
from core.store import SCHEMA_VERSION, Call, Spent, Store


def a_call(key: str = "k", *, usd: float | None = 0.5, run: str = "r", error: str | None = None) -> Call:
    return Call(run=run, role="judge", key=key, at=1.0, model="m", usage={"input": 3}, usd=usd, error=error)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "deep" / "store.sqlite")


def test_what_was_put_is_found_again_by_another_process_of_the_same_file(store: Store) -> None:
    store.put_answer("k", {"value": {"verdict": "MET"}, "raw": "ü"}, a_call())
    store.put_submission("s", {"text": "x"}, task_id="t", attempt=1, system="e", status="completed", call=None)
    again = Store(store.path)
    assert again.answer("k") == {"value": {"verdict": "MET"}, "raw": "ü"}
    assert again.submission("s") == {"text": "x"}
    assert again.answer("other") is None
    assert again.submission("k") is None


def test_the_ledger_counts_every_call_of_a_run_folder(store: Store) -> None:
    store.put_answer("a", {}, a_call("a"))
    store.put_call(a_call("a", usd=0.25, error="malformed"))
    store.put_call(a_call("a", usd=None, error="timeout"))
    store.put_call(a_call("a", usd=7.0, run="another"))
    assert store.spent("r", "judge") == Spent(usd=0.75, calls=3, unknown=1)
    assert store.spent("r", "system") == Spent()


def test_an_answer_that_cannot_be_written_leaves_no_call_behind(store: Store) -> None:
    with pytest.raises(ValueError, match="JSON"):
        store.put_answer("a", {"value": float("nan")}, a_call("a"))
    assert store.spent("r", "judge").calls == 0
    assert store.answer("a") is None
    store.put_answer("a", {"value": 1}, a_call("a"))
    assert store.spent("r", "judge").calls == 1


def test_a_lease_is_for_one_process(store: Store) -> None:
    assert store.take_lease("k")
    assert store.take_lease("k"), "the owner may take it again"
    other = Store(store.path)
    other._owner = f"{os.getppid()}:{_started(os.getppid())}"
    assert not other.take_lease("k")
    store.drop_lease("k")
    assert other.take_lease("k")


def test_a_result_frees_its_lease(store: Store) -> None:
    store.take_lease("k")
    store.put_answer("k", {}, a_call())
    other = Store(store.path)
    other._owner = f"{os.getppid()}:{_started(os.getppid())}"
    assert other.take_lease("k")


def test_closing_frees_every_lease_of_the_process(store: Store) -> None:
    store.take_lease("k")
    path = store.path
    store.close()
    other = Store(path)
    other._owner = f"{os.getppid()}:{_started(os.getppid())}"
    assert other.take_lease("k")


def _take_and_die(path: str) -> None:
    Store(Path(path)).take_lease("k")
    os._exit(9)


def test_the_lease_of_a_dead_process_is_free(store: Store) -> None:
    process = multiprocessing.get_context("spawn").Process(target=_take_and_die, args=(str(store.path),))
    process.start()
    process.join()
    assert store.take_lease("k")


def test_a_number_that_was_given_to_a_new_process_is_not_taken_for_the_old_one(store: Store) -> None:
    other = Store(store.path)
    other._owner = f"{os.getppid()}:1"  # the same number, but started at another time
    other.take_lease("k")
    assert store.take_lease("k")


@pytest.mark.parametrize(
    ("content", "part"),
    [(b"this is not a database, it is a text" * 100, "store"), (b"SQLite format 3\0" + b"x" * 200, "store")],
)
def test_a_file_that_is_no_store_is_refused(tmp_path: Path, content: bytes, part: str) -> None:
    path = tmp_path / "x.sqlite"
    path.write_bytes(content)
    with pytest.raises(InputError, match=part):
        Store(path)


def test_a_store_of_a_newer_version_is_refused(store: Store) -> None:
    store.close()
    database = sqlite3.connect(store.path)
    database.execute(f"PRAGMA user_version={SCHEMA_VERSION + 1}")
    database.commit()
    database.close()
    with pytest.raises(InputError, match="newer Leadline"):
        Store(store.path)


def _started(process: int) -> str:
    from core.store import _started as started

    return started(process)
