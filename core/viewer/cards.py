"""A run in one line of the list: read from run.json and summary.json alone, whatever state the run is in.

Files may be anybody's: a value of another type than expected is not there, and a file that can't be read makes a
line that says so.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from core.errors import InputError
from core.report.html.reading import count, finite, mapping
from core.report.html.reading import text as text_of
from core.report.html.text import name, visible
from core.runfolder import RUN, SUMMARY, read_json
from core.viewer.places import Found, stamps

#: What an exit code says, in a word or two.
ENDED: Final[Mapping[int, str]] = {
    0: "complete",
    1: "crashed",
    2: "refused",
    3: "numbers missing",
    4: "budget reached",
    130: "interrupted",
}
_HOLDER: Final = re.compile(r"process ([1-9]\d{0,9})\b")


class Cards:
    """Cards by run, read again when a file of theirs changed."""

    def __init__(self) -> None:
        self._kept: dict[str, tuple[tuple[tuple[str, int, int], ...], dict[str, Any]]] = {}

    def of(self, found: Found) -> dict[str, Any]:
        """The card of a run, as JSON."""
        stamp = stamps(found.path, (RUN, SUMMARY))
        kept = self._kept.get(found.id)
        if kept is None or kept[0] != stamp:
            kept = stamp, card_of(found)
            self._kept[found.id] = kept
        card = kept[1]
        return {**card, "state": state_of(found.path, card["exit_code"])} if card["state"] == "" else card


def card_of(found: Found) -> dict[str, Any]:
    """The card; `state` is empty where it depends on whether a process still writes there."""
    card: dict[str, Any] = {
        "id": found.id,
        "name": visible(found.name),
        "sweep": visible(found.sweep),
        "state": "",
        "problem": "",
        "exit_code": None,
    }
    try:
        run = read_json(found.path / RUN) or {}
        summary = read_json(found.path / SUMMARY) or {}
    except (InputError, OSError, UnicodeDecodeError, RecursionError) as error:
        return {**card, **_numbers({}, {}), "state": "unreadable", "problem": visible(str(error)[:300])}
    code = run.get("exit_code")
    refused = text_of(run.get("refused"))
    card |= _numbers(run, summary)
    card["exit_code"] = code if isinstance(code, int) and not isinstance(code, bool) else None
    card["problem"] = visible(refused[:300])
    card["has_report"] = bool(summary) and not refused
    if refused:
        card["state"] = "refused"
    elif card["exit_code"] is not None:
        card["state"] = ENDED.get(card["exit_code"], f"exit code {card['exit_code']}")
    return card


def state_of(folder: Path, exit_code: int | None) -> str:
    """`running` while a process holds the folder, `stopped` where none does and no end is written."""
    if exit_code is not None:
        return ENDED.get(exit_code, f"exit code {exit_code}")
    return "running" if is_held(folder) else "stopped"


def is_held(folder: Path) -> bool:
    """Whether the process that locked the folder is alive. The lock itself is not tried: that would take it."""
    try:
        lock = folder / ".lock"
        if not lock.is_file():  # a pipe would be waited for
            return False
        holder = _HOLDER.match(lock.read_text(encoding="utf-8", errors="replace")[:40])
        if holder is None:
            return False
        os.kill(int(holder[1]), 0)
    except PermissionError:
        return True  # somebody else's process, which is there
    except (OSError, OverflowError):
        return False
    return True


def _numbers(run: Mapping[str, Any], summary: Mapping[str, Any]) -> dict[str, Any]:
    config = mapping(run.get("config"))
    benchmark = mapping(config.get("benchmark"))
    headline = text_of(benchmark.get("headline"))
    metric = mapping(mapping(summary.get("metrics")).get(headline))
    cost = mapping(summary.get("cost"))
    spent = mapping(run.get("spent"))
    judge = mapping(summary.get("judge")) or mapping(config.get("judge"))
    numbers = [value for part in spent.values() if (value := finite(part)) is not None]
    return {
        "benchmark": _word(summary.get("benchmark") or benchmark.get("name")),
        "system": _word(summary.get("system") or mapping(config.get("system")).get("name")),
        "effort": _word(summary.get("effort") or config.get("effort")),
        "judge": _word(judge.get("name")),
        "headline": name(visible(headline)),
        "value": finite(metric.get("value")),
        "low": finite(metric.get("low")),
        "high": finite(metric.get("high")),
        "n_tasks": count(summary.get("n_tasks")),
        "n_scored": count(summary.get("n_scored")),
        "coverage": finite(summary.get("coverage")),
        "usd": finite(cost.get("usd")) if cost else sum(numbers) if numbers else None,
        "unknown_calls": count(cost.get("unknown_calls")),
        "started_at": _word(run.get("started_at")),
        "has_report": False,
    }


def _word(value: Any) -> str:
    return name(visible(text_of(value)))
