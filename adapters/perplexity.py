"""system=perplexity: Perplexity's Agent API.

    python -m core.run benchmark=wandr system=perplexity effort=high

    POST {prefix}/agent                     GET {prefix}/responses/{id}, ?stream=true&starting_after=N to go on
    POST {prefix}/responses/{id}/cancel     GET {prefix}/responses/{id}/files, …/files/{file}/content

Two knobs that are never mixed: `agent_effort`, the product's own, behind which it picks models of several vendors,
or `model` with `reasoning_effort`. A create carries a request id of ours, and a response of that id is looked up
where its answer was lost. Sources stand in items of their own, `[n]` in the text points to them by number.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import partial
from typing import Any, ClassVar, Final
from uuid import UUID

from adapters import _prices
from adapters._delivery import Channel, channel_of, checked_channel, message, placed, schema_of, typed
from adapters._perplexity import (
    citations_of,
    files_of,
    items_of,
    paid_of,
    refusal_of,
    strange,
    text_of,
    tool_calls,
    usage_of,
)
from adapters._values import count, is_id, mapping, path_part, scalars, word
from core.errors import CallError, InputError
from core.jobs import (
    TERMINAL,
    Answer,
    Api,
    Ask,
    JobOptions,
    JobSystem,
    Provider,
    Snapshot,
    State,
    account_fault,
    state_of,
)
from core.jobs.options import section_of
from core.jobs.patience import OUTAGE
from core.jobs.provider import Handle
from core.model import Task
from core.prices import price_from_config
from core.reply import Reply, from_status
from core.section import Section
from core.services import Services
from core.strict_json import shown

HOME: Final = "https://api.perplexity.ai"
_STATES: Final[Mapping[str, State]] = {
    "queued": "queued",
    "in_progress": "running",
    "cancelling": "running",
    "completed": "completed",
    "incomplete": "incomplete",
    # it waits for a tool of ours, and we offer none: nothing more will come
    "requires_action": "incomplete",
    "failed": "failed",
    "cancelled": "cancelled",
}
#: Codes of an error, and reasons of an early end, that mean a refusal.
_REFUSALS: Final = ("content_filter", "content_policy_violation", "refusal")
#: The tools that need nothing but their name.
_TOOLS: Final = ("web_search", "fetch_url", "people_search", "finance_search", "sandbox")
#: Entries that search_domain_filter takes.
_MOST_BLOCKED: Final = 20
#: Files of one response that are looked at, the newest ones: an answer has a handful.
_MOST_FILES: Final = 50
#: Where the sandbox keeps its files, and how they leave it.
_FOLDER: Final = "/workspace"
_SHARE: Final = "Give each of them back with the share_file tool."


class Perplexity(Provider):
    """The Agent API."""

    can_cancel: ClassVar[bool] = True
    can_find: ClassVar[bool] = True

    def __init__(self, section: Section, api: Api) -> None:
        self._api = api
        self._prefix = "/" + section.text("prefix").strip("/")
        self._transport = section.choice("transport", {word: word for word in ("poll", "stream", "sync")})
        self._deadline_s = section.seconds("timeout_s")
        self._request_s = section.seconds("request_timeout_s")
        self._price = _prices.configured(price_from_config(section.values.get("price"), "system.price"))
        self._delivery = checked_channel(section, "file", "schema", "fence")
        self._knobs = _knobs(section)
        self._tools, self._file_tools = _tools(section, "tools"), _tools(section, "file_tools")
        if self._delivery == "file" and "sandbox" not in self._file_tools:
            raise section.refuse("file_tools", "sandbox among them: delivery=file needs it")
        self.can_block = "web_search" in self._tools and "web_search" in self._file_tools
        self.settings = {
            **self._knobs,
            "tools": self._tools,
            "file_tools": self._file_tools,
            "delivery": self._delivery,
            "prefix": self._prefix,
        }

    async def create(self, ask: Ask) -> Snapshot:
        channel = channel_of(ask.task, self._delivery)
        body: dict[str, Any] = {
            "input": message(ask.task, channel, folder=_FOLDER, hint=_SHARE),
            "background": self._transport != "sync",
            "store": True,
            **self._knobs,
            "tools": self._tools_for(ask.task, channel),
        }
        schema = schema_of(ask.task, channel)
        if schema is not None:
            form = {"name": "answer", "schema": schema, "strict": True}
            body["response_format"] = {"type": "json_schema", "json_schema": form}
        path, headers = f"{self._prefix}/agent", {"x-request-id": str(UUID(ask.token))}
        if self._transport == "stream":
            streamed = {**body, "stream": True}
            return await self._followed(ask, "POST", path, streamed, headers=headers, timeout_s=self._deadline_s)
        waits_s = self._deadline_s if self._transport == "sync" else None
        return _snapshot(await self._api.json("POST", path, body, headers=headers, timeout_s=waits_s))

    async def advance(self, ask: Ask, handle: Handle) -> Snapshot:
        """Go on with a stream that broke off, where it has more to say; else ask."""
        path, after = self._at(handle["id"]), handle.get("after")
        if isinstance(after, int):
            query = {"stream": "true", "starting_after": str(after)}
            try:
                return await self._followed(
                    ask, "GET", path, query=query, handle=handle, timeout_s=self._request_s
                )
            except CallError:
                pass  # from here on the job is polled: the snapshot's handle has no `after`
        return _snapshot(await self._api.json("GET", path))

    async def cancel(self, handle: Handle) -> None:
        await self._api.reply("POST", f"{self._at(handle['id'])}/cancel")

    async def find(self, ask: Ask) -> Snapshot | None:
        try:
            return _snapshot(await self._api.json("GET", self._at(f"resp_{UUID(ask.token)}")))
        except CallError as error:
            if error.kind == "not_found":
                return None
            raise

    async def answer(self, ask: Ask, last: Snapshot) -> Answer:
        channel = channel_of(ask.task, self._delivery)
        body, items = last.body, items_of(last.body)
        text, annotated = text_of(items)
        files: dict[str, str] = {}
        notes: list[str] = []
        if channel == "file":
            files, notes = await self._files(ask, last)
        elif channel == "schema":
            files, notes = typed(text or None, ask.task.required_files)
        notes += [f"an item of unknown type: {word}" for word in strange(items)]
        unblocked = len(_filter(ask.task.blocked)) - _MOST_BLOCKED
        if unblocked > 0:
            notes.append(f"{unblocked} blocked addresses were not passed on: no more than {_MOST_BLOCKED} may be")
        calls = scalars({name: calls for name, calls, _ in tool_calls(body)})
        return Answer(
            text=text or None,
            channel=channel,
            files=files,
            citations=citations_of(items, text, annotated),
            usage=usage_of(body),
            paid=paid_of(body, self._price),
            echoed={
                **scalars({name: body[name] for name in ("id", "model", "effort") if name in body}),
                "tool_calls": calls,
            },
            notes=tuple(notes),
        )

    def _at(self, job: str) -> str:
        return f"{self._prefix}/responses/{path_part(job)}"

    def _tools_for(self, task: Task, channel: Channel) -> list[dict[str, Any]]:
        tools: list[dict[str, Any]] = []
        for name in self._file_tools if channel == "file" else self._tools:
            tools.append({"type": name})
            if name == "web_search" and task.blocked:
                tools[-1]["filters"] = {"search_domain_filter": _filter(task.blocked)[:_MOST_BLOCKED]}
        return tools

    async def _followed(
        self,
        ask: Ask,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        *,
        query: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        handle: Handle | None = None,
        timeout_s: float,
    ) -> Snapshot:
        """The job's end out of its events; where they break off after something new, how far they were heard.

        Events carry numbers; one that was heard before is dropped. Raises CallError where nothing new came.
        """
        job, heard = (None, -1) if handle is None else (handle["id"], handle["after"])
        before = heard
        try:
            async with self._api.events(
                method, path, body, query=query, headers=headers, timeout_s=timeout_s
            ) as events:
                async for event in events:
                    said = mapping(event.json())
                    number = count(said.get("sequence_number"))
                    if number is not None and number <= heard:
                        continue
                    heard = heard if number is None else number
                    # an answer that is no stream is the response itself
                    response = said if said.get("object") == "response" else mapping(said, "response")
                    if is_id(response.get("id")):
                        found = _snapshot(response)
                        if found.state in TERMINAL:
                            return found
                        if job is None:
                            job = response["id"]
                            ask.keep({"id": job, "after": heard} if heard >= 0 else {"id": job})
                    elif isinstance(said.get("error"), Mapping) or said.get("type") == "error":
                        raise _failure(said)
        except CallError:
            if job is None or heard == before:
                raise
        if job is None or heard == before:
            raise CallError("cut", "perplexity: the stream ended and said nothing new of the job")
        return Snapshot("running", handle={"id": job, "after": heard})

    async def _files(self, ask: Ask, last: Snapshot) -> tuple[dict[str, str], list[str]]:
        """The files that the response lists or shares; what can't be had is a note."""
        job, required = word(last.body.get("id")), ask.task.required_files
        if not is_id(job):
            return {}, []
        notes: list[str] = []
        path = f"{self._at(job)}/files"
        patient = last.state in ("completed", "incomplete")
        page = await _had(ask, partial(self._api.json, "GET", path), "the list of files", notes, patient=patient)
        named, unshared = files_of(page, items_of(last.body))
        notes += unshared
        found: list[tuple[str, str | bytes]] = []
        for file, name in list(named.items())[-_MOST_FILES:]:
            fits, odd = placed([(name, "")], required)
            if not fits:
                notes += odd
                continue
            download = partial(self._api.download, f"{path}/{path_part(file)}/content")
            content = await _had(ask, download, shown(name), notes, patient=True)
            if content is not None:
                found.append((name, content))
        files, more = placed(found, required)
        return files, [*notes, *more]


# what is asked


def _knobs(section: Section) -> dict[str, Any]:
    """How hard the job works, in the API's fields: `effort`, or `model` and `reasoning`."""
    effort, model = section.text_or_none("agent_effort"), section.text_or_none("model")
    reasoning = section.text_or_none("reasoning_effort")
    longest = section.whole_or_none("max_output_tokens")
    if effort is not None and (model is not None or reasoning is not None):
        raise section.refuse("agent_effort", "null beside model or reasoning_effort (system.ladder=model)")
    if effort is None and model is None:
        raise section.refuse("agent_effort", "a level of the product, or system.model beside system.ladder=model")
    if model is not None and model.startswith("anthropic/") and longest is None:
        raise section.refuse("max_output_tokens", "a number of tokens: anthropic's models need one")
    knobs: dict[str, Any] = {
        "effort": effort,
        "model": model,
        "reasoning": None if reasoning is None else {"effort": reasoning},
        "max_steps": section.whole_or_none("max_steps"),
        "max_output_tokens": longest,
    }
    return {name: value for name, value in knobs.items() if value is not None}


def _tools(section: Section, key: str) -> tuple[str, ...]:
    names = section.words(key)
    if not names or any(name not in _TOOLS for name in names):
        raise section.refuse(key, f"some of {', '.join(_TOOLS)}")
    return names


def _filter(blocked: Iterable[str]) -> list[str]:
    """Blocked addresses as search_domain_filter has them: a minus, then a host or a whole address.

    A host stands bare and takes its subdomains with it; an address with a path has its scheme and takes the pages
    below it. It holds for searches; what fetch_url is told to open is not filtered.
    """
    entries = (address.rstrip("/") for address in blocked)
    return list(dict.fromkeys(f"-https://{entry}" if "/" in entry else f"-{entry}" for entry in entries))


# what came


def _snapshot(body: Mapping[str, Any]) -> Snapshot:
    job, status, error = body.get("id"), body.get("status"), mapping(body, "error")
    if not is_id(job):
        if error:
            raise _failure(body)
        raise CallError("malformed", f"perplexity: a response without an id: {shown(body)}")
    state = state_of(status, _STATES)
    codes = [word(error.get(name)) for name in ("message", "code", "type")]
    said = next((text for text in codes if text), word(body.get("error")))
    refusal = refusal_of(items_of(body)) if state == "completed" else None
    void = None
    if state in ("incomplete", "failed"):
        early = word(mapping(body, "incomplete_details").get("reason"))
        if state == "incomplete":
            said = "it asks for a tool of ours" if status == "requires_action" else f"stopped early: {early}"
        if any(code in _REFUSALS for code in (early, *codes)):
            refusal = said
        elif state == "failed":
            void = account_fault("perplexity", body.get("error"))
    if refusal is not None:
        state, said = "refused", refusal
    return Snapshot(state, body=body, word=word(status), said=said, handle={"id": job}, void=void)


def _failure(body: Mapping[str, Any]) -> CallError:
    """An error that came with status 200. One that is no clear refusal may have come when the job was at work."""
    error = from_status(Reply(200, {}, json.dumps(body).encode(), 0.0, ""), 0.0)
    kind = "cut" if error.kind == "server" else error.kind
    return CallError(kind, f"perplexity: {error.message}", request_id=error.request_id)


async def _had(ask: Ask, make: Callable[[], Awaitable[Any]], what: str, notes: list[str], *, patient: bool) -> Any:
    """What a free request gives; None, and a note, where the provider will not give it.

    A file may be unknown for a while after the end: that is waited out where `patient`. A provider that is down
    raises: nothing is lost, the next start asks again.
    """

    async def tried() -> Any:
        try:
            return await make()
        except CallError as error:
            if error.kind == "not_found" and not patient:
                return None
            raise

    try:
        return await ask.patiently(tried)
    except CallError as error:
        if error.kind in OUTAGE or (error.meaning.stops_run and error.http_status != 403):
            raise
        notes.append(f"{what}: {error.message}")
        return None


def perplexity(config: Mapping[str, Any], services: Services) -> JobSystem:
    """The factory. Raises InputError for a value that can't be used."""
    section = section_of(config, "agent_effort", "model", "reasoning_effort", "max_steps", "max_output_tokens")
    model = config.get("model")
    if model is not None and model != section.values.get("model"):
        raise InputError(
            "the effort sets the model",
            where="system.model",
            expected="null, or system.ladder=model, whose efforts leave it alone",
            got=repr(model),
        )
    options = JobOptions.of(section)
    api = Api.of(section, services, name="perplexity", home=HOME)
    return JobSystem(Perplexity(section, api), api, options, services, warn=_prices.warnings)
