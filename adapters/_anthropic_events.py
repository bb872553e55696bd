"""Reading the events of a managed session: how it ended, what the agent said last, which pages it names. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from adapters._anthropic import refusal
from adapters._citations import in_text
from adapters._values import mapping, mappings, scalars, word
from core.jobs import State
from core.model import Citation
from core.reply import own_message

#: What a session does after an error that ends its turn.
_FATAL: Final = ("exhausted", "terminal")
#: Why a session stopped → the state of the job. Nobody is there to act on what it asks for.
_STOPS: Final[Mapping[str, State]] = {
    "end_turn": "completed",
    "requires_action": "incomplete",
    "budget_reached": "incomplete",
    "retries_exhausted": "failed",
    "refusal": "refused",
}


def end_of(events: Sequence[Mapping[str, Any]], *, terminated: bool) -> tuple[State, str, str]:
    """The state of a session that does not run, its word for why it stopped, and what is said about it."""
    stop: Mapping[str, Any] = {}
    error, dead, interrupted, by_us = "", False, False, False
    for event in events:
        kind = event["type"]
        if kind == "session.status_running":
            stop, error, dead = {}, "", False
        elif kind == "session.status_idle":
            stop, by_us = event, interrupted
        elif kind == "user.interrupt":
            interrupted = True
        elif kind == "session.error" and kind_of(mapping(event.get("error")).get("retry_status")) in _FATAL:
            stop, error, dead = {}, own_message(event), True
    reason = kind_of(stop.get("stop_reason"))
    if not reason:
        state: State = "failed" if dead or terminated else "running"  # idle, because it has not begun
        return state, "", error
    state = _STOPS.get(reason, "incomplete")
    if state == "completed":
        return ("cancelled", reason, "interrupted") if by_us else (state, reason, "")
    if state == "refused":
        return state, reason, refusal(stop.get("stop_details"))
    return state, reason, f"stopped early: {reason}" + (f": {error}" if error else "")


def last_error(events: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    """The last error that ended a turn; empty where there was none."""
    errors = [mapping(event.get("error")) for event in events if event["type"] == "session.error"]
    fatal = [error for error in errors if kind_of(error.get("retry_status")) in _FATAL]
    return scalars(fatal[-1]) if fatal else {}


def kind_of(value: Any) -> str:
    """A word, bare or as the type of an object."""
    return word(value) or word(mapping(value).get("type"))


def ids_of(entries: Sequence[Mapping[str, Any]]) -> set[str]:
    return {word(entry.get("id")) for entry in entries}


def _texts(content: Any) -> str:
    return "".join(word(block.get("text")) for block in mappings(content) if block.get("type") == "text")


def last_text(events: Sequence[Mapping[str, Any]]) -> str:
    """The agent's last message."""
    said = (_texts(event.get("content")) for event in reversed(events) if event["type"] == "agent.message")
    return next((text for text in said if text.strip()), "")


def cited_in(text: str, events: Sequence[Mapping[str, Any]]) -> tuple[Citation, ...]:
    """The addresses in the text, with the titles that the agent's searches gave them."""
    titles = {
        word(block.get("source")): word(block.get("title"))
        for event in events
        if event["type"] == "agent.tool_result"
        for block in mappings(event.get("content"))
        if block.get("type") == "search_result"
    }
    return tuple(
        cited.model_copy(update={"title": cited.title or titles.get(cited.url) or None}) for cited in in_text(text)
    )
