"""system=valyu: Valyu's DeepResearch API.

    python -m core.run benchmark=draco system=valyu effort=medium

    POST /v1/deepresearch/tasks   GET /v1/deepresearch/tasks/{id}/status   POST …/{id}/cancel

Gateways before it answer some polls with an HTML page or with nothing; those are asked again. The last reply says
what a task cost. Files are deliverables of its own types, of which only CSV is text (`delivery: file`); a typed
reply (`schema`) or blocks in the text (`fence`) carry any other. Its search leaves out kinds of sources, no sites.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, Final

from adapters import _prices
from adapters._citations import merged, source
from adapters._delivery import channel_of, checked_channel, message, placed, schema_of, typed
from adapters._values import is_id, listed, mapping, path_part, scalars, word
from core.errors import CallError
from core.http import Reply, retry_hint
from core.jobs import (
    Answer,
    Api,
    Ask,
    JobOptions,
    JobSystem,
    Paid,
    Provider,
    Snapshot,
    State,
    account_fault,
    state_of,
)
from core.jobs.options import section_of
from core.jobs.patience import OUTAGE
from core.jobs.provider import TERMINAL, Handle
from core.reply import own_message
from core.section import Section
from core.services import Services
from core.strict_json import shown, without_surrogates

HOME: Final = "https://api.valyu.ai"
TASKS: Final = "/v1/deepresearch/tasks"
#: What waits for a person never comes about, since no checkpoint is asked for; if it does, the deadline ends it.
_STATES: Final[Mapping[str, State]] = {
    "queued": "queued",
    "running": "running",
    "awaiting_input": "running",
    "paused": "running",
    "completed": "completed",
    "failed": "failed",
    "cancelled": "cancelled",
}
#: The longest that a hint may put off the next poll, in seconds.
MOST_WAIT_S: Final = 60.0
#: Deliverables of one task.
MOST_FILES: Final = 10


class Valyu(Provider):
    """The DeepResearch API. It has no field for blocked sites (`excluded_sources` takes kinds of sources)."""

    can_cancel: ClassVar[bool] = True

    def __init__(self, section: Section, api: Api, services: Services) -> None:
        self._api, self._clock = api, services.clock
        self._mode = section.text("mode")
        self._delivery = checked_channel(section, "fence", "schema", "file")
        section.choice("transport", {"poll": None})
        self.settings = {"mode": self._mode, "delivery": self._delivery}

    async def create(self, ask: Ask) -> Snapshot:
        channel = channel_of(ask.task, self._delivery)
        schema = schema_of(ask.task, channel)
        body: dict[str, Any] = {
            # deliverables have no folder, so the prompt stands as it is on every channel
            "query": message(ask.task, "text"),
            "mode": self._mode,
            "output_formats": ["markdown"] if schema is None else [schema],
            "metadata": {"task_id": ask.task.id[:200], "attempt": str(ask.attempt), "token": ask.token},
        }
        if channel == "file":
            body["deliverables"] = _deliverables(ask.task.required_files)
        task = await self._api.json("POST", TASKS, body)
        if task.get("success") is False:
            raise CallError(
                "bad_request", f"valyu: the task was refused: {own_message(task) or 'no reason given'}"
            )
        return _snapshot(task)

    async def advance(self, ask: Ask, handle: Handle) -> Snapshot:
        etag = handle.get("etag")
        try:
            reply = await self._api.reply(
                "GET", f"{_path(handle)}/status", headers={"if-none-match": etag} if etag else None
            )
        except CallError as error:
            if error.http_status != 304:
                raise
            return Snapshot("running", word="running", retry_after_s=_at_most(error.retry_after_s))
        found = _snapshot(_object(reply), handle)
        tag = reply.headers.get("etag", "")
        # the tag of an ended task is not kept: what it stands for would never be sent again
        usable = found.state not in TERMINAL and tag.isascii() and tag.isprintable() and len(tag) <= 200
        return replace(
            found,
            handle={**(found.handle or {}), **({"etag": tag} if tag and usable else {})},
            retry_after_s=_at_most(retry_hint(reply.headers, None, self._clock.now())),
        )

    async def cancel(self, handle: Handle) -> None:
        # the answer may be empty
        await self._api.reply("POST", f"{_path(handle)}/cancel", {})

    async def answer(self, ask: Ask, last: Snapshot) -> Answer:
        channel = channel_of(ask.task, self._delivery)
        task = last.body
        output = task.get("output")
        text = output if isinstance(output, str) else None
        required = ask.task.required_files
        files: dict[str, str] = {}
        notes: list[str] = []
        if channel == "file":
            files, notes = await self._fetched(ask, task)
        elif channel == "schema" or text is None:
            files, notes = typed(output, required)
        return Answer(
            text=text,
            channel=channel,
            files=files,
            citations=merged(
                found
                for entry in listed(task.get("sources"))
                if (found := source(entry, excerpt=word(mapping(entry).get("description")))) is not None
            ),
            paid=self._paid(last),
            echoed={
                **scalars(
                    {
                        "id": task.get("deepresearch_id"),
                        "mode": task.get("mode") or task.get("research_mode"),
                        "output_type": task.get("output_type"),
                    }
                ),
                "tools": scalars(task.get("tools")),
            },
            notes=tuple(notes),
        )

    async def _fetched(self, ask: Ask, task: Mapping[str, Any]) -> tuple[dict[str, str], list[str]]:
        """The deliverables by the names that the task asks for. What can't be had is a note."""
        wanted = {_description(name): name for name in ask.task.required_files}
        found: list[tuple[str, str | bytes]] = []
        failed = []
        for entry in listed(task.get("deliverables"))[: 2 * MOST_FILES]:
            if not isinstance(entry, Mapping):
                failed.append(f"a deliverable of unknown form: {shown(entry)}")
                continue
            request, title, url = entry.get("request"), entry.get("title"), entry.get("url")
            # what was asked for is echoed; the title is the provider's own choice
            name = wanted.get(request) if isinstance(request, str) else None
            path = name or (title if isinstance(title, str) else "")
            if entry.get("status") == "failed" or not isinstance(url, str):
                failed.append(f"{shown(path)}: not made: {shown(entry.get('error') or 'no address')}")
                continue
            try:
                found.append((path, await ask.patiently(partial(self._api.download, url))))
            except CallError as error:
                if (
                    error.kind in OUTAGE and error.http_status is None
                ):  # nobody answered: the next start asks again
                    raise
                failed.append(f"{shown(path)}: not to be had: {error.message}")
        files, notes = placed(found, ask.task.required_files)
        return files, [*failed, *notes]

    def _paid(self, last: Snapshot) -> Paid:
        found = _prices.reported(last.body.get("cost"), last.body.get("cost_breakdown"))
        if found is not None:
            return found
        return _prices.listed(_prices.VALYU.get(self._mode)) if last.state == "completed" else Paid()


def _path(handle: Handle) -> str:
    return f"{TASKS}/{path_part(handle['id'])}"


def _object(reply: Reply) -> Mapping[str, Any]:
    """The JSON object of a poll; raises CallError `malformed` for a page, an empty body or another value."""
    try:
        found = without_surrogates(reply.json())
    except (CallError, RecursionError):
        found = None
    if isinstance(found, Mapping):
        return found
    message = f"valyu: expected a JSON object, got {len(reply.content)} bytes of something else"
    raise CallError("malformed", message, request_id=reply.request_id, http_status=reply.status)


def _snapshot(task: Mapping[str, Any], known: Handle | None = None) -> Snapshot:
    """A task as it was created, or a known one as it is polled, which must have a status."""
    status, given, error = task.get("status"), task.get("deepresearch_id"), task.get("error")
    if not (isinstance(status, str) if known else is_id(given)):
        missing = "a status" if known else "an id"
        raise CallError("malformed", f"valyu: a task without {missing}: {own_message(task) or shown(task)}")
    state = state_of(status, _STATES)
    return Snapshot(
        state,
        body=task,
        word=word(status),
        said=own_message({"error": error}) if state in TERMINAL - {"completed"} else "",
        handle={"id": known["id"] if known else given},
        void=account_fault("valyu", error) if state == "failed" else None,
    )


def _deliverables(required: tuple[str, ...]) -> list[dict[str, Any]]:
    """One deliverable a file. Raises CallError for files that Valyu does not make."""
    other = [name for name in required if not name.lower().endswith(".csv")]
    if other:
        raise CallError(
            "bad_request",
            f"valyu: of the files that the task asks for, {', '.join(other)} can't be a deliverable: of its types "
            "(csv, xlsx, pptx, docx, pdf) only csv is text; use system.delivery=fence or schema",
        )
    if len(required) > MOST_FILES:
        raise CallError("bad_request", f"valyu: {len(required)} files asked for, it makes at most {MOST_FILES}")
    return [{"type": "csv", "description": _description(name)} for name in required]


def _description(name: str) -> str:
    """What is said of a file (at most 500 characters); its form stands in the prompt."""
    return f"The file {name}, with the columns and rows that the task describes."[:500]


def _at_most(hint_s: float | None) -> float | None:
    return None if hint_s is None else min(hint_s, MOST_WAIT_S)


def valyu(config: Mapping[str, Any], services: Services) -> JobSystem:
    """The factory. Raises InputError for a value that can't be used."""
    section = section_of(config, "mode")
    if section.values.get("price") is not None:
        raise section.refuse("price", "null: tasks are priced by mode, and say what they cost")
    options = JobOptions.of(section)
    api = Api.of(section, services, name="valyu", home=HOME, key_header="x-api-key")
    return JobSystem(Valyu(section, api, services), api, options, services, warn=_prices.warnings)
