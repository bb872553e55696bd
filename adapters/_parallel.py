"""What Parallel's two APIs have in common: the address, the states of a run, its errors and its evidence."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from adapters._citations import source
from core.errors import CallError
from core.jobs import Ask, State
from core.jobs.provider import Handle
from core.model import Citation
from core.strict_json import shown

HOME: Final = "https://api.parallel.ai"
#: `action_required` and `cancelling` are no ends; `timed_out` is in no list of theirs and has been seen.
STATES: Final[Mapping[str, State]] = {
    "queued": "queued",
    "action_required": "running",
    "running": "running",
    "cancelling": "running",
    "completed": "completed",
    "failed": "failed",
    "cancelled": "cancelled",
    "timed_out": "timed_out",
}


def metadata(ask: Ask) -> dict[str, str]:
    """Our names for a run, for whoever looks at it in their console (values: at most 512 characters)."""
    return {"task_id": ask.task.id[:200], "attempt": str(ask.attempt), "token": ask.token}


def handle_of(run: Mapping[str, Any], key: str, word: Any, known: Handle | None) -> Handle:
    """How a run is asked about: as it was created, else by the id under `key`.

    Raises CallError `malformed` for a created run without an id, and for a known one without a status.
    """
    if known is None:
        value = run.get(key)
        if not isinstance(value, str) or not value:
            raise CallError("malformed", f"Parallel sent a run without {key}: {shown(run)}")
        return {"id": value}
    if not isinstance(word, str):
        raise CallError("malformed", f"Parallel sent a run without a status: {shown(run)}")
    return known


def mapping(value: Any) -> Mapping[str, Any]:
    """The value where it is an object, else an empty one."""
    return value if isinstance(value, Mapping) else {}


def entries(value: Any) -> list[Mapping[str, Any]]:
    """The objects of a list; whatever else stands in it is passed over."""
    return [entry for entry in value if isinstance(entry, Mapping)] if isinstance(value, list) else []


def evidence(basis: Any) -> Iterator[Citation]:
    """The sources of each field, in the order of the fields. Several excerpts of a page stand as one, with an
    ellipsis between them: that is where a text may be cut.
    """
    for field in entries(basis):
        for entry in entries(field.get("citations")):
            excerpts = entry.get("excerpts")
            texts = (
                [text.strip() for text in excerpts if isinstance(text, str)] if isinstance(excerpts, list) else []
            )
            found = source(entry, excerpt=" … ".join(dict.fromkeys(text for text in texts if text)))
            if found is not None:
                yield found
