"""What has been solved, judged and fetched: one SQLite file a machine.

Every result lies under the digest of all that shaped it, so that running again does only what is missing.
Each row is committed when it arrives: a killed process loses what was in flight and nothing else.
Single flight: whoever starts on a key takes its lease; others wait. A lease of a dead process is free.

Tables: `submission` and `answer` (results), `page` (what was fetched; its body is compressed by
core/pages/archive.py), `call` (every paid call, also failed ones: the ledger of a run folder), `job` (what runs
at a provider and has not ended), `lease`.
SQLite's WAL breaks on network file systems: keep the file on a local disk.
"""

from __future__ import annotations

import json
import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

from core.errors import InputError

_MAGIC: Final = b"SQLite format 3\0"
SCHEMA_VERSION: Final = 2
_TABLES: Final = """
CREATE TABLE IF NOT EXISTS submission (
    key TEXT PRIMARY KEY, task_id TEXT NOT NULL, attempt INTEGER NOT NULL, system TEXT NOT NULL,
    status TEXT NOT NULL, body TEXT NOT NULL, created REAL NOT NULL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS answer (
    key TEXT PRIMARY KEY, body TEXT NOT NULL, created REAL NOT NULL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS page (
    key TEXT PRIMARY KEY, url TEXT NOT NULL, status TEXT NOT NULL, meta TEXT NOT NULL, digest TEXT, body BLOB,
    fetched REAL NOT NULL
);
CREATE TABLE IF NOT EXISTS call (
    id INTEGER PRIMARY KEY, run TEXT NOT NULL, role TEXT NOT NULL, key TEXT NOT NULL, at REAL NOT NULL,
    model TEXT, usage TEXT, usd REAL, source TEXT, latency_s REAL, error TEXT, message TEXT, raw TEXT
);
CREATE INDEX IF NOT EXISTS call_run ON call (run, role);
CREATE TABLE IF NOT EXISTS job (
    key TEXT PRIMARY KEY, token TEXT NOT NULL, begun REAL NOT NULL, handle TEXT, step TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS lease (key TEXT PRIMARY KEY, owner TEXT NOT NULL) WITHOUT ROWID;
"""
#: How often, and how many seconds apart, a store is opened that another process is just making.
_OPENING_TRIES: Final = 100
_OPENING_WAIT_S: Final = 0.05
Role = Literal["system", "judge"]


@dataclass(frozen=True, slots=True)
class Call:
    """One call to a provider, as the ledger keeps it. `usd` None is unknown; `raw` is kept of failures."""

    run: str
    role: Role
    key: str
    at: float
    model: str | None = None
    usage: dict[str, Any] | None = None
    usd: float | None = None
    source: str | None = None
    latency_s: float | None = None
    error: str | None = None
    message: str | None = None
    raw: str | None = None


@dataclass(frozen=True, slots=True)
class PageRow:
    """One fetched page under its address's key.

    `meta` is what the fetch said beside the body, `body` the compressed body and `digest` the SHA-256 of
    the body before it (None where there is none), `fetched` seconds since 1970.
    """

    key: str
    url: str
    status: str
    meta: dict[str, Any]
    digest: str | None
    body: bytes | None
    fetched: float


@dataclass(frozen=True, slots=True)
class JobRow:
    """A long job under its submission's key: sent, and not ended as far as we know.

    `token` is our own name for it, which the provider is told where its API takes one; `begun` is when it was sent
    (seconds since 1970); `handle` finds it again, None until the provider has said how. `step`: what comes
    next is free (a poll), is paid (a continuation), is being paid (it was sent and not answered yet), or we
    have asked the provider to stop the job.
    """

    key: str
    token: str
    begun: float
    handle: dict[str, Any] | None = None
    step: Literal["free", "paid", "paying", "cancelling"] = "free"


@dataclass(frozen=True, slots=True)
class Spent:
    """What a run folder has cost so far. `unknown` counts calls of unknown cost."""

    usd: float = 0.0
    calls: int = 0
    unknown: int = 0


class Store:
    """The store of one machine, opened by one process. Not for threads."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._owner = _owner()
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"can't hold a store: {error.strerror}", where=str(path.parent)) from None
        if path.is_file() and path.stat().st_size:
            with path.open("rb") as file:
                if file.read(len(_MAGIC)) != _MAGIC:  # SQLite itself would write over a short text
                    raise InputError(
                        "the file is no store", where=str(path), expected="an SQLite file, or none yet"
                    )
        try:
            self._db = sqlite3.connect(path, timeout=60, isolation_level=None)
            _to_wal(self._db)
            self._db.execute("PRAGMA synchronous=NORMAL")
            version = self._db.execute("PRAGMA user_version").fetchone()[0]
            if version > SCHEMA_VERSION:
                raise InputError(
                    f"the store is of version {version}, made by a newer Leadline",
                    where=str(path),
                    expected=f"version {SCHEMA_VERSION} or older",
                )
            self._db.executescript(_TABLES)
            self._db.execute(f"PRAGMA user_version={SCHEMA_VERSION}")
        except sqlite3.DatabaseError as error:
            raise InputError(f"can't be opened as a store: {error}", where=str(path)) from None

    def close(self) -> None:
        self._db.execute("DELETE FROM lease WHERE owner = ?", (self._owner,))
        self._db.close()

    # results

    def submission(self, key: str) -> dict[str, Any] | None:
        return self._body("SELECT body FROM submission WHERE key = ?", key)

    def answer(self, key: str) -> dict[str, Any] | None:
        return self._body("SELECT body FROM answer WHERE key = ?", key)

    def put_submission(
        self,
        key: str,
        body: dict[str, Any],
        *,
        task_id: str,
        attempt: int,
        system: str,
        status: str,
        call: Call | None,
    ) -> None:
        """Keep a submission and the call that it took, in one commit.

        `call` is None when its calls are in the ledger already.
        """
        with self._commit():
            self._db.execute(
                "INSERT OR REPLACE INTO submission VALUES (?, ?, ?, ?, ?, ?, ?)",
                (key, task_id, attempt, system, status, _json(body), call.at if call else time.time()),
            )
            if call is not None:
                self._add_call(call)
            self._db.execute("DELETE FROM job WHERE key = ?", (key,))
            self._db.execute("DELETE FROM lease WHERE key = ?", (key,))

    def put_answer(self, key: str, body: dict[str, Any], call: Call | None = None) -> None:
        """Keep an answer and the call that it took, in one commit.

        `call` is None when its calls are in the ledger already.
        """
        with self._commit():
            at = call.at if call is not None else time.time()
            self._db.execute("INSERT OR REPLACE INTO answer VALUES (?, ?, ?)", (key, _json(body), at))
            if call is not None:
                self._add_call(call)
            self._db.execute("DELETE FROM lease WHERE key = ?", (key,))

    def _body(self, query: str, key: str) -> dict[str, Any] | None:
        row = self._db.execute(query, (key,)).fetchone()
        if row is None:
            return None
        body: dict[str, Any] = json.loads(row[0])
        return body

    # long jobs

    def job(self, key: str) -> JobRow | None:
        row = self._db.execute("SELECT * FROM job WHERE key = ?", (key,)).fetchone()
        if row is None:
            return None
        return JobRow(row[0], row[1], row[2], None if row[3] is None else json.loads(row[3]), row[4])

    def put_job(self, row: JobRow) -> None:
        """Keep where a job stands, in place of what was known of it. On disk when this returns."""
        # a submission that is lost is asked again; a job that is forgotten is paid again: not even a power cut may
        self._db.execute("PRAGMA synchronous=FULL")
        try:
            handle = None if row.handle is None else _json(row.handle)
            with self._commit():
                self._db.execute(
                    "INSERT OR REPLACE INTO job VALUES (?, ?, ?, ?, ?)",
                    (row.key, row.token, row.begun, handle, row.step),
                )
        finally:
            self._db.execute("PRAGMA synchronous=NORMAL")

    def drop_job(self, key: str) -> None:
        """Forget a job: it was never started, or it was cancelled."""
        self._db.execute("DELETE FROM job WHERE key = ?", (key,))

    # pages

    def page(self, key: str) -> PageRow | None:
        row = self._db.execute("SELECT * FROM page WHERE key = ?", (key,)).fetchone()
        return None if row is None else PageRow(row[0], row[1], row[2], json.loads(row[3]), *row[4:])

    def put_page(self, row: PageRow) -> None:
        """Keep a page, in place of an older fetch of the same address."""
        self._db.execute(
            "INSERT OR REPLACE INTO page VALUES (?, ?, ?, ?, ?, ?, ?)",
            (row.key, row.url, row.status, _json(row.meta), row.digest, row.body, row.fetched),
        )

    def page_keys(self) -> list[str]:
        """The keys of all pages, in order."""
        return [key for (key,) in self._db.execute("SELECT key FROM page ORDER BY key")]

    # the ledger

    def put_call(self, call: Call) -> None:
        """Keep a call that gave no result: it may have cost money all the same."""
        with self._commit():
            self._add_call(call)

    def spent(self, run: str, role: Role) -> Spent:
        """What a run folder has cost over all its starts."""
        usd, calls, unknown = self._db.execute(
            "SELECT COALESCE(SUM(usd), 0.0), COUNT(*), COALESCE(SUM(usd IS NULL), 0) FROM call"
            " WHERE run = ? AND role = ?",
            (run, role),
        ).fetchone()
        return Spent(usd, calls, unknown)

    def _add_call(self, call: Call) -> None:
        self._db.execute(
            "INSERT INTO call (run, role, key, at, model, usage, usd, source, latency_s, error, message, raw)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                call.run,
                call.role,
                call.key,
                call.at,
                call.model,
                _json(call.usage) if call.usage else None,
                call.usd,
                call.source,
                call.latency_s,
                call.error,
                call.message,
                call.raw,
            ),
        )

    # single flight

    def take_lease(self, key: str) -> bool:
        """Whether this process may work on the key: nobody else living does."""
        with self._commit():
            row = self._db.execute("SELECT owner FROM lease WHERE key = ?", (key,)).fetchone()
            if row is not None and row[0] != self._owner and _alive(row[0]):
                return False
            self._db.execute("INSERT OR REPLACE INTO lease VALUES (?, ?)", (key, self._owner))
            return True

    def drop_lease(self, key: str) -> None:
        """Give a key back without a result."""
        self._db.execute("DELETE FROM lease WHERE key = ? AND owner = ?", (key, self._owner))

    @contextmanager
    def _commit(self) -> Iterator[None]:
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self._db.execute("ROLLBACK")
            raise
        self._db.execute("COMMIT")


def _to_wal(db: sqlite3.Connection) -> None:
    """Switch to the write-ahead log. SQLite refuses at once, whatever its timeout, while another does so."""
    for left in range(_OPENING_TRIES, -1, -1):
        try:
            db.execute("PRAGMA journal_mode=WAL")
        except sqlite3.OperationalError as error:
            if not left or "locked" not in str(error):
                raise
            time.sleep(_OPENING_WAIT_S)
        else:
            return


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def _owner() -> str:
    """This process, so that a later one with the same number is not taken for it."""
    return f"{os.getpid()}:{_started(os.getpid())}"


def _alive(owner: str) -> bool:
    number, _, started = owner.partition(":")
    try:
        os.kill(int(number), 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return _started(int(number)) == started


def _started(process: int) -> str:
    """When a process started, in the kernel's ticks; empty where /proc does not tell."""
    try:
        # the command's name, in parentheses, may hold blanks: count from behind it
        fields = Path(f"/proc/{process}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    # a zombie has ended although its number is not free yet
    state, *rest = fields.rpartition(")")[2].split()
    return "ended" if state == "Z" else rest[18]
