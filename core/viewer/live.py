"""A run that is going on: what its part files hold so far, read on from where the last look ended."""

from __future__ import annotations

import json
from collections import Counter, OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from core.errors import InputError
from core.model import RULE_JUDGE
from core.report.html.reading import count, finite, mapping
from core.report.html.reading import text as text_of
from core.report.html.text import name, visible
from core.runfolder import JUDGEMENTS, RUN, SUBMISSIONS, read_json
from core.viewer.cards import is_held
from core.viewer.places import Found

#: Bytes that one look reads of one file: a run that is far along takes a few looks to catch up with.
_MOST: Final = 16 * 1024 * 1024
_KEPT: Final = 20


@dataclass
class Counts:
    """What one part file holds. `offset` is behind the last whole line that was read."""

    offset: int = 0
    n: int = 0
    by_rule: int = 0
    missing: int = 0
    usd: float = 0.0
    unknown: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    tasks: set[str] = field(default_factory=set)

    def begin(self) -> None:
        """The file was begun anew."""
        self.offset = self.n = self.by_rule = self.missing = self.unknown = 0
        self.usd = 0.0
        self.kinds.clear()
        self.tasks.clear()

    def add(self, row: Mapping[str, Any], kind: str) -> None:
        """One row of either file; `kind`: a submission's status, or an error's."""
        self.n += 1
        self.tasks.add(text_of(row.get("task_id")))
        if kind:
            self.kinds[name(visible(kind))] += 1
        usd = finite(row.get("cost_usd"))
        if usd is not None:
            self.usd += usd
        elif row.get("cost_source") == "unknown" or "status" in row:  # a submission that does not say is unknown
            self.unknown += 1


class Live:
    """Progress by run. What was counted once is not read again."""

    def __init__(self) -> None:
        self._runs: OrderedDict[str, tuple[Any, Counts, Counts]] = OrderedDict()

    def look(self, found: Found) -> dict[str, Any]:
        """How far a run is, as JSON. Raises InputError where run.json can't be read."""
        run = read_json(found.path / RUN) or {}
        key = run.get("run_id"), run.get("starts"), run.get("exit_code")
        known = self._runs.get(found.id)
        if known is None or known[0] != key:
            known = key, Counts(), Counts()
            self._runs[found.id] = known
            while len(self._runs) > _KEPT:
                self._runs.popitem(last=False)
        _, submissions, judgements = known
        code = run.get("exit_code")
        has_ended = isinstance(code, int) and not isinstance(code, bool)
        # looked at before the files are: a process that ends in between leaves nothing uncounted
        held = not has_ended and is_held(found.path)
        suffix = "" if has_ended else ".part"
        behind = _read(found.path / f"{SUBMISSIONS}{suffix}", submissions, _submission)
        behind |= _read(found.path / f"{JUDGEMENTS}{suffix}", judgements, _judgement)
        plan = mapping(run.get("plan"))
        return {
            "state": "ended" if has_ended else "running" if held else "stopped",
            "exit_code": code if has_ended else None,
            "started_at": name(visible(text_of(run.get("started_at")))),
            "finished_at": name(visible(text_of(run.get("finished_at")))),
            "behind": behind,
            "plan": {key: count(plan.get(key)) for key in ("tasks", "submissions", "judgements", "repeats")},
            "submissions": {**_told(submissions), "statuses": dict(submissions.kinds)},
            "judgements": {
                **_told(judgements),
                "by_rule": judgements.by_rule,
                "missing": judgements.missing,
                "errors": dict(judgements.kinds.most_common(12)),
            },
        }


def _told(counts: Counts) -> dict[str, Any]:
    return {"n": counts.n, "tasks": len(counts.tasks), "usd": counts.usd, "unknown": counts.unknown}


def _submission(row: Mapping[str, Any], counts: Counts) -> None:
    counts.add(row, text_of(row.get("status")))


def _judgement(row: Mapping[str, Any], counts: Counts) -> None:
    counts.add(row, text_of(mapping(row.get("error")).get("kind")))
    counts.by_rule += row.get("judge") == RULE_JUDGE
    counts.missing += row.get("verdict") is None


def _read(path: Path, counts: Counts, add: Callable[[Mapping[str, Any], Counts], None]) -> bool:
    """Count what was added to a file; returns whether there is more than one look takes."""
    try:
        with path.open("rb") as file:
            if file.seek(0, 2) < counts.offset:
                counts.begin()
            file.seek(counts.offset)
            block = file.read(_MOST)
            whole = block[: block.rfind(b"\n") + 1]
            counts.offset += len(whole)
    except FileNotFoundError:
        return False
    except OSError as error:
        raise InputError(f"can't be read: {error.strerror}", where=path.name) from None
    for line in whole.splitlines():
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(row, dict):
            add(row, counts)
    return len(block) == _MOST and bool(whole)
