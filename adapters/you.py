"""system=you: You.com's Research API.

    python -m core.run benchmark=draco system=you effort=high

    POST /v1/research   GET /v1/research/{task_id}   GET /v1/research/{task_id}/stream

`deep`, `exhaustive` and `frontier` run in the background; `lite` and `standard` are answered by the create itself.
A text marks its claims with [[1, 2]]: places in its list of sources. Nothing is cancelled; prices go by effort.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from adapters import _prices
from adapters._citations import merged, source
from adapters._delivery import channel_of, checked_channel, hosts_of, message, schema_of, typed
from adapters._values import is_id, listed, mapping, path_part, scalars, word
from adapters._watching import watched
from core.errors import CallError
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
from core.jobs.provider import Handle
from core.model import Citation
from core.reply import own_message
from core.section import Section
from core.services import Services
from core.sse import Event
from core.strict_json import shown

HOME: Final = "https://api.you.com"
RESEARCH: Final = "/v1/research"
_STATES: Final[Mapping[str, State]] = {
    "queued": "queued",
    "running": "running",
    "completed": "completed",
    "failed": "failed",
    "cancelled": "cancelled",
}
#: Efforts that can run in the background, and the one that must.
BACKGROUND: Final = ("deep", "exhaustive", "frontier")
#: Names of events after which a stream has nothing more to say.
_LAST: Final = ("response.done", "complete", "completed", "error", "failed", "cancelled")
#: Entries of `source_control.exclude_domains`.
MOST_BLOCKED: Final = 500
#: What a form may have: levels of objects, properties in all.
MOST_LEVELS: Final = 5
MOST_PROPERTIES: Final = 100
_MARKER: Final = re.compile(r"\[\[(\d{1,4}(?:\s*,\s*\d{1,4}){0,99})\]\]")


class You(Provider):
    """The Research API. It leaves out whole domains: entries of the block-list are cut at their first slash."""

    can_block = True

    def __init__(self, section: Section, api: Api) -> None:
        self._api = api
        self._effort = section.text("research_effort")
        self._delivery = checked_channel(section, "schema", "fence")
        transport = section.choice("transport", {word: word for word in ("poll", "stream", "sync")})
        if transport == "sync" and self._effort == "frontier":
            raise section.refuse(
                "transport", "poll or stream: research_effort frontier runs in the background only"
            )
        self._background = transport != "sync" and self._effort in BACKGROUND
        self._stream = transport == "stream"
        self._wait_s = float(section.whole("wait_s"))
        self._deadline_s = section.seconds("timeout_s")
        self.settings = {"research_effort": self._effort, "delivery": self._delivery}

    async def create(self, ask: Ask) -> Snapshot:
        channel = channel_of(ask.task, self._delivery)
        body: dict[str, Any] = {"input": message(ask.task, channel), "research_effort": self._effort}
        schema = schema_of(ask.task, channel)
        if schema is not None:
            _check(schema, self._effort)
            body["output_schema"] = schema
        hosts, _ = hosts_of(ask.task, MOST_BLOCKED)
        if hosts:
            body["source_control"] = {"exclude_domains": hosts}
        if self._background:
            return _snapshot(await self._api.json("POST", RESEARCH, {**body, "background": True}))
        try:
            return _snapshot(await self._api.json("POST", RESEARCH, body, timeout_s=self._deadline_s))
        except CallError as error:
            if error.kind != "timeout":
                raise
            said = f"you: no answer within {self._deadline_s:g} s (system.timeout_s)"
            raise CallError("timed_out", said) from error

    async def advance(self, ask: Ask, handle: Handle) -> Snapshot:
        path = f"{RESEARCH}/{path_part(handle['id'])}"
        if self._stream:
            await watched(self._api, f"{path}/stream", _over, timeout_s=self._wait_s)
        return _snapshot(await self._api.json("GET", path), handle)

    async def answer(self, ask: Ask, last: Snapshot) -> Answer:
        channel = channel_of(ask.task, self._delivery)
        output = mapping(last.body, "output")
        content = output.get("content")
        text = content if isinstance(content, str) else None
        files, notes = typed(content, ask.task.required_files) if text is None or channel == "schema" else ({}, [])
        _, unblocked = hosts_of(ask.task, MOST_BLOCKED)
        warnings = [said for said in listed(last.body.get("warnings")) if isinstance(said, str)]
        return Answer(
            text=text,
            channel=channel,
            files=files,
            citations=merged(_cited(text or "", output.get("sources"))),
            paid=_prices.listed(_prices.YOU.get(self._effort)) if last.state == "completed" else Paid(),
            echoed=scalars({"id": mapping(last.handle).get("id"), "content_type": output.get("content_type")}),
            notes=(*unblocked, *notes, *warnings),
        )


def _snapshot(reply: Mapping[str, Any], known: Handle | None = None) -> Snapshot:
    """A task as it was created or is polled, or the answer itself. The body is the answer, once there is one.

    A status says how a task stands, whatever came with it; an answer by itself has none.
    """
    status, given = reply.get("status"), reply.get("task_id") or reply.get("id")
    answered = isinstance(reply.get("output"), Mapping)
    handle = known or ({"id": given} if is_id(given) else None)
    if answered and (not isinstance(status, str) or (handle is None and status not in _STATES)):
        return Snapshot("completed", body=reply, word="completed")
    state, error = state_of(status, _STATES), reply.get("error")
    if handle is None and (not answered or state in ("queued", "running")):
        raise CallError("malformed", f"you: neither an answer nor a task with an id: {shown(reply)}")
    if known and not isinstance(status, str):
        raise CallError("malformed", f"you: neither an answer nor a task with a status: {shown(reply)}")
    return Snapshot(
        state,
        body=reply if answered else mapping(reply, "result"),
        word=word(status),
        said=own_message({"error": error}) if error else "",
        handle=handle,
        void=account_fault("you", error) if state == "failed" else None,
    )


def _over(event: Event) -> bool:
    return event.name in _LAST or mapping(event.json()).get("type") in _LAST


def _cited(text: str, sources: Any) -> Iterator[Citation]:
    """The sources in the order in which the text marks them, each with the place of its first marker, then those
    that it lists and does not mark. Numbers count from 1; those without a source are passed over.
    """
    known = [source(entry, excerpt=_snippets(entry)) for entry in listed(sources)]
    for marker in _MARKER.finditer(text):
        for number in marker[1].split(","):
            place = int(number) - 1
            found = known[place] if 0 <= place < len(known) else None
            if found is not None:
                yield found.model_copy(update={"start": marker.start(), "end": marker.end()})
    yield from (found for found in known if found is not None)


def _snippets(entry: Any) -> str:
    """A source's passages as one, with an ellipsis between them: that is where a text may be cut."""
    texts = [text.strip() for text in listed(mapping(entry).get("snippets")) if isinstance(text, str)]
    return " … ".join(dict.fromkeys(text for text in texts if text))


def _check(schema: Mapping[str, Any], effort: str) -> None:
    """Raises CallError for a form that the API refuses; what is said here is clearer than its 422."""
    if effort == "lite":
        raise CallError("bad_request", "you: research_effort lite gives no typed reply: use system.delivery=fence")
    problem = "its root is no object" if schema.get("type") != "object" else None
    levels, count = 0, 0
    queue: list[tuple[Any, int]] = [(schema, 0)]
    while queue and problem is None:
        node, level = queue.pop()
        if isinstance(node, list):
            queue += [(entry, level) for entry in node]
        if not isinstance(node, Mapping):
            continue
        properties = node.get("properties")
        if isinstance(properties, Mapping):
            level, count = level + 1, count + len(properties)
            levels = max(levels, level)
            required = node.get("required")
            if node.get("additionalProperties") is not False:
                problem = "an object without additionalProperties: false"
            elif not isinstance(required, (list, tuple)) or set(properties) - set(required):
                problem = "an object whose properties are not all required"
            queue += [(entry, level) for entry in properties.values()]
        queue += [(node[key], level) for key in ("items", "anyOf", "$defs") if key in node]
    if problem is None and levels > MOST_LEVELS:
        problem = f"{levels} levels of objects, at most {MOST_LEVELS}"
    if problem is None and count > MOST_PROPERTIES:
        problem = f"{count} properties, at most {MOST_PROPERTIES}"
    if problem is not None:
        raise CallError("bad_request", f"you: the task's output_schema is not one that it takes: {problem}")


def you(config: Mapping[str, Any], services: Services) -> JobSystem:
    """The factory. Raises InputError for a value that can't be used."""
    section = section_of(config, "research_effort")
    if section.values.get("price") is not None:
        raise section.refuse("price", "null: requests are priced by effort, not by token")
    options = JobOptions.of(section)
    api = Api.of(section, services, name="you", home=HOME, key_header="x-api-key")
    return JobSystem(You(section, api), api, options, services, warn=_prices.warnings)
