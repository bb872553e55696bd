"""What is known of the jobs of a run: in the store, so that a restart goes on with them.

A job passes through: nothing, an intent (a token), a handle, and nothing again when its submission is stored (one
commit, core/store.py) or it is seen to be cancelled. An intent without a handle means that a create was sent and
its answer was lost: that is looked up, never sent again.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from core.clock import Clock
from core.jobs.provider import Paid
from core.store import Call, JobRow, Store


class JobRecord:
    """One attempt's job. Without a store (a part that is tried by itself) it lives as long as the object."""

    def __init__(self, key: str, row: JobRow | None, store: Store | None) -> None:
        self.key = key
        self._row, self._store = row, store

    @property
    def row(self) -> JobRow | None:
        """What is known; None when nothing was sent."""
        return self._row

    @property
    def handle(self) -> Mapping[str, Any] | None:
        return None if self._row is None else self._row.handle

    def intend(self, now: float) -> JobRow:
        """Before the create: from here on the job may cost money."""
        row = JobRow(self.key, uuid.uuid4().hex, now)
        self._put(row)
        return row

    def keep(self, handle: Mapping[str, Any], *, paid_next: bool = False) -> None:
        """The provider has named the job, or its name has changed. `paid_next`: what comes next costs money."""
        assert self._row is not None, "a handle without an intent"
        row = replace(self._row, handle=dict(handle), step="paid" if paid_next else "free")
        if row != self._row:
            self._put(row)

    def paying(self) -> None:
        """Before a further step that costs money."""
        assert self._row is not None, "a step of a job that was never sent"
        self._put(replace(self._row, step="paying"))

    def refused(self) -> None:
        """The step was refused before it cost anything: it is still to be sent."""
        assert self._row is not None, "a step of a job that was never sent"
        self._put(replace(self._row, step="paid"))

    def done(self) -> None:
        """The submission is made. In the store the job goes with the commit that keeps the submission."""
        if self._store is None:
            self._row = None

    def cancelling(self) -> None:
        """Before the provider is asked to stop the job: that it ends then is our doing, and no failure."""
        assert self._row is not None, "a cancel of a job that was never sent"
        self._put(replace(self._row, step="cancelling"))

    def forget(self) -> None:
        """Nothing runs and nothing is owed: the next attempt starts anew."""
        self._row = None
        if self._store is not None:
            self._store.drop_job(self.key)

    def _put(self, row: JobRow) -> None:
        self._row = row
        if self._store is not None:
            self._store.put_job(row)


class Jobs:
    """The jobs of a run. The solver binds an attempt to its key in the store before it asks the system."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self._store: Store | None = None
        self._run = ""
        self._keys: dict[tuple[str, int], str] = {}
        self._loose: dict[str, JobRecord] = {}

    def open(self, store: Store | None, run: str = "") -> None:
        """Keep jobs in this store from now on, and what they cost in the ledger of this run folder."""
        self._store, self._run = store, run

    def spent(self, key: str, paid: Paid) -> None:
        """Book what a job cost that gives no submission: it was cancelled."""
        if self._store is not None:
            call = Call(
                self._run, "system", key, self.clock.now(), usd=paid.usd, source=paid.source, error="interrupted"
            )
            self._store.put_call(call)

    def bind(self, task_id: str, attempt: int, key: str, *, anew: bool = False) -> None:
        """Say under which key an attempt's job is kept. `anew` forgets what nobody can find or tell of."""
        self._keys[task_id, attempt] = key
        if anew:
            record = self.record(task_id, attempt)
            if record.row is not None and (record.handle is None or record.row.step == "paying"):
                record.forget()

    def release(self, task_id: str, attempt: int) -> None:
        """The attempt is over: its row in the store says what of it is left."""
        self._keys.pop((task_id, attempt), None)

    def record(self, task_id: str, attempt: int) -> JobRecord:
        """The record of an attempt, as the store has it."""
        key = self._keys.get((task_id, attempt))
        if key is not None and self._store is not None:
            return JobRecord(key, self._store.job(key), self._store)
        key = key or f"{task_id}#{attempt}"
        return self._loose.setdefault(key, JobRecord(key, None, None))
