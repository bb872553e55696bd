"""system=openai: OpenAI's Responses API, a model with a web search and a Python sandbox, in the background.

    python -m core.run benchmark=wandr system=openai effort=high

    POST /v1/responses   GET /v1/responses/{id}   POST /v1/responses/{id}/cancel
    GET /v1/containers/{id}/files   GET /v1/containers/{id}/files/{id}/content

Nothing lists responses, so a create that was read and not answered can't be found again. Files are what the
sandbox's containers hold at the end; a container dies after 20 idle minutes, and after about an hour in any case.
Citations have titles and places and quote nothing. adapters/_openai.py reads responses, _openai_files.py fetches.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from datetime import date, timedelta
from typing import Any, ClassVar, Final

from adapters import _openai, _prices
from adapters._citations import in_text, merged
from adapters._delivery import channel_of, checked_channel, hosts_of, message, schema_of, typed
from adapters._openai import snapshot_of
from adapters._openai_files import FOLDER, delivered
from adapters._values import count, path_part
from core.digest import plain
from core.errors import CallError
from core.jobs import TERMINAL, Answer, Api, Ask, JobOptions, JobSystem, Provider, Snapshot
from core.jobs.options import section_of
from core.jobs.provider import Handle
from core.model import Task
from core.prices import price_from_config
from core.section import Section
from core.services import Services
from core.sse import Event
from core.strict_json import shown

HOME: Final = "https://api.openai.com"
_PATH: Final = "/v1/responses"
#: What is not in an answer unless it is asked for: which pages a search found.
_SOURCES: Final = "web_search_call.action.sources"
_SEARCHES: Final = ("web_search", "web_search_preview", None)
_CONTEXTS: Final = ("low", "medium", "high", None)
_MEMORIES: Final = ("1g", "4g", "16g", "64g", None)
#: What must be said of files besides where they go.
_HINT: Final = "Write them with the python tool."
#: The API's limit on hosts that a search leaves out.
_MOST_BLOCKED: Final = 100
#: What an effort may set.
_BY_EFFORT: Final = (
    *("model", "reasoning_effort", "search_tool", "search_context_size"),
    *("max_tool_calls", "max_output_tokens"),
)
#: When models are switched off, and how long before that reports say so.
_LAST_DAYS: Final[Mapping[str, date]] = {
    "o3-deep-research": date(2026, 7, 23),
    "o4-mini-deep-research": date(2026, 7, 23),
    "gpt-5": date(2026, 12, 11),
    "o3": date(2026, 12, 11),
}
_NOTICE: Final = timedelta(days=60)


class OpenAI(Provider):
    """The Responses API, polled.

    `task.blocked` goes into `filters.blocked_domains` of the web search: hosts without a scheme, at most 100; what
    is left out is noted. The field knows no paths. The preview tool has no such field.
    """

    can_cancel: ClassVar[bool] = True

    def __init__(self, section: Section, api: Api, services: Services) -> None:
        self._api, self._clock = api, services.clock
        self._model = section.text("model")
        self._effort = section.text_or_none("reasoning_effort")
        self._search = section.choice("search_tool", {word: word for word in _SEARCHES})
        self._context = section.choice("search_context_size", {word: word for word in _CONTEXTS})
        self._memory = section.choice("sandbox_memory", {word: word for word in _MEMORIES})
        self._tool_calls = section.whole_or_none("max_tool_calls")
        self._output_tokens = section.whole_or_none("max_output_tokens")
        self._tier = section.text_or_none("service_tier")
        self._delivery = checked_channel(section, "file", "schema", "fence")
        if self._delivery == "file" and self._memory is None:
            raise section.refuse("sandbox_memory", "a size, since delivery=file needs the sandbox")
        self._price = _prices.configured(price_from_config(section.values.get("price"), "system.price"))
        self._deadline_s = section.seconds("timeout_s")
        self.can_block = section.choice("block_hosts", {True: True, False: False}) and self._search == "web_search"
        self.settings = {
            "model": self._model,
            "reasoning_effort": self._effort,
            "search_tool": self._search,
            "search_context_size": self._context,
            "sandbox_memory": self._memory,
            "max_tool_calls": self._tool_calls,
            "max_output_tokens": self._output_tokens,
            "service_tier": self._tier,
            "delivery": self._delivery,
            "block_hosts": self.can_block,
        }

    async def create(self, ask: Ask) -> Snapshot:
        body = {**self._body(ask), "background": True, "store": True}
        return _named(await self._api.json("POST", _PATH, body))

    async def advance(self, ask: Ask, handle: Handle) -> Snapshot:
        return snapshot_of(await self._api.json("GET", _path(handle), query={"include[]": _SOURCES}))

    async def cancel(self, handle: Handle) -> None:
        await self._api.json("POST", f"{_path(handle)}/cancel", {})

    async def answer(self, ask: Ask, last: Snapshot) -> Answer:
        response = last.body
        channel = channel_of(ask.task, self._delivery)
        items = _openai.items_of(response)
        text, cited = _openai.answer_in(items)
        files: Mapping[str, str] = {}
        notes = [f"an output item of type {shown(kind)}" for kind in _openai.strangers(items)]
        if channel == "file":
            files = await delivered(self._api, ask, items, notes)
        elif channel == "schema":
            files, more = typed(text, ask.task.required_files)
            notes += more
        if self.can_block:
            notes += hosts_of(ask.task, _MOST_BLOCKED)[1]
        paid, doubts = _openai.paid(response, model=self._model, price=self._price)
        return Answer(
            text=text or None,
            channel=channel,
            files=files,
            citations=merged([*cited, *_openai.searched(items)]) or in_text(text),
            usage=_openai.usage_of(response),
            paid=paid,
            echoed=_openai.echoed(response),
            notes=(*notes, *doubts),
            latency_s=_openai.seconds(response),
        )

    def _body(self, ask: Ask) -> dict[str, Any]:
        channel = channel_of(ask.task, self._delivery)
        schema = schema_of(ask.task, channel)
        form = {"type": "json_schema", "name": "answer", "strict": True, "schema": plain(schema)}
        body = {
            "model": self._model,
            "input": message(ask.task, channel, folder=FOLDER, hint=_HINT),
            "reasoning": None if self._effort is None else {"effort": self._effort},
            "tools": self._tools(ask.task) or None,
            "include": [_SOURCES] if self._search else None,
            "max_tool_calls": self._tool_calls,
            "max_output_tokens": self._output_tokens,
            "service_tier": self._tier,
            "text": None if schema is None else {"format": form},
            "metadata": {"task_id": ask.task.id[:500], "attempt": str(ask.attempt), "token": ask.token},
        }
        return {name: value for name, value in body.items() if value is not None}

    def _tools(self, task: Task) -> list[dict[str, Any]]:
        tools: list[dict[str, Any]] = []
        if self._search is not None:
            search: dict[str, Any] = {"type": self._search}
            if self._context is not None:
                search["search_context_size"] = self._context
            hosts, _ = hosts_of(task, _MOST_BLOCKED)
            if self.can_block and hosts:
                search["filters"] = {"blocked_domains": hosts}
            tools.append(search)
        if self._memory is not None:
            container = {"type": "auto", "memory_limit": self._memory}
            tools.append({"type": "code_interpreter", "container": container})
        return tools


class OpenAIStreamed(OpenAI):
    """The same as a stream of events, which a later request takes up after the last one that came.

    Only whole responses are read out of events, so one that comes twice does no harm. Where a stream ends before
    the response does, the response is asked for.
    """

    async def create(self, ask: Ask) -> Snapshot:
        body = {**self._body(ask), "background": True, "store": True, "stream": True}
        handle: dict[str, Any] = {"until": self._clock.now() + self._deadline_s}
        stream = self._api.events("POST", _PATH, body, timeout_s=self._deadline_s)
        found = await self._heard(ask, handle, stream)
        if found is None and "id" not in handle:
            raise CallError("cut", "openai: the stream ended before it named the response")
        return found or Snapshot("running", handle=handle)

    async def advance(self, ask: Ask, handle: Handle) -> Snapshot:
        left_s = handle.get("until", 0.0) - self._clock.now()
        if "after" in handle and left_s > 0:
            query = {"stream": "true", "starting_after": str(handle["after"]), "include[]": _SOURCES}
            stream = self._api.events("GET", _path(handle), query=query, timeout_s=left_s)
            try:
                found = await self._heard(ask, dict(handle), stream)
            except CallError:
                found = None  # a poll says what is wrong, if anything is
            if found is not None:
                return found
        return await super().advance(ask, handle)

    async def _heard(
        self, ask: Ask, handle: dict[str, Any], stream: AbstractAsyncContextManager[AsyncIterator[Event]]
    ) -> Snapshot | None:
        """The response at its end; None where the stream ends before. `handle` keeps up with the events."""
        try:
            async with stream as events:
                async for event in events:
                    said = event.json()
                    if not isinstance(said, Mapping):
                        continue
                    response = said if said.get("object") == "response" else said.get("response")
                    if not isinstance(response, Mapping) and (said.get("type") == "error" or said.get("error")):
                        if "id" in handle:
                            return None
                        raise _openai.refusal(said)
                    number = count(said.get("sequence_number"))
                    if number is not None:
                        handle["after"] = number
                    if not isinstance(response, Mapping):
                        continue
                    snapshot = snapshot_of(response)
                    if "id" not in handle:
                        handle["id"] = snapshot.body["id"]
                        ask.keep(dict(handle))
                    if snapshot.state in TERMINAL:
                        return snapshot
            return None
        finally:
            if "id" in handle:
                ask.keep(dict(handle))


class OpenAISync(OpenAI):
    """The same as one long request. Closing the connection ends the response."""

    closing_cancels: ClassVar[bool] = True

    async def create(self, ask: Ask) -> Snapshot:
        try:
            return _named(await self._api.json("POST", _PATH, self._body(ask), timeout_s=self._deadline_s))
        except CallError as error:
            if error.kind != "timeout":
                raise
            return _openai.late(self._deadline_s)


def _named(response: Mapping[str, Any]) -> Snapshot:
    """The answer to a create, which names the job."""
    snapshot = snapshot_of(response)
    return replace(snapshot, handle={"id": snapshot.body["id"]})


def _path(handle: Handle) -> str:
    return f"{_PATH}/{path_part(str(handle['id']))}"


_TRANSPORTS: Final[Mapping[str, type[OpenAI]]] = {"poll": OpenAI, "stream": OpenAIStreamed, "sync": OpenAISync}


def openai(config: Mapping[str, Any], services: Services) -> JobSystem:
    """The factory. Raises InputError for a value that can't be used."""
    section = section_of(config, *_BY_EFFORT)
    options = JobOptions.of(section)
    api = Api.of(section, services, name="openai", home=HOME)
    provider = section.choice("transport", _TRANSPORTS)(section, api, services)
    model = section.text("model")
    return JobSystem(provider, api, options, services, warn=lambda today: _warnings(model, today))


def _warnings(model: str, today: date) -> list[str]:
    found = _prices.warnings(today)
    last = next((day for name, day in _LAST_DAYS.items() if model == name or model.startswith(f"{name}-20")), None)
    if last is not None and today >= last - _NOTICE:
        found.append(f"OpenAI switches {model} off on {last.isoformat()}: its runs can't be repeated then")
    return found
