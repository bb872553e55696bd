"""What Parallel's two APIs have in common: the address, the states of a run, its errors and its evidence."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from adapters._citations import source
from adapters._values import is_id, listed, mappings, path_part
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
        if not is_id(value):
            raise CallError("malformed", f"Parallel sent a run without {key}: {shown(run)}")
        return {"id": value}
    if not isinstance(word, str):
        raise CallError("malformed", f"Parallel sent a run without a status: {shown(run)}")
    return known


def path_of(runs: str, handle: Handle) -> str:
    """Where a run is asked about."""
    return f"{runs}/{path_part(handle['id'])}"


def not_there(name: str, error: CallError) -> CallError:
    """404 for the result of a run that says that it is completed: the run is there, so the result is late.

    It is waited out, and is unreachable where it never comes: no word on how good the answer is.
    """
    message = f"{name}: the run is completed and its result is not there: {error.message}"
    return CallError("malformed", message, request_id=error.request_id, http_status=error.http_status)


def evidence(basis: Any) -> Iterator[Citation]:
    """The sources of each field, in the order of the fields. Several excerpts of a page stand as one, with an
    ellipsis between them: that is where a text may be cut.
    """
    for field in mappings(basis):
        for entry in mappings(field.get("citations")):
            texts = [text.strip() for text in listed(entry.get("excerpts")) if isinstance(text, str)]
            found = source(entry, excerpt=" … ".join(dict.fromkeys(text for text in texts if text)))
            if found is not None:
                yield found
