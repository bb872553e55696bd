"""system=anthropic: Anthropic's Messages API with its own web tools.

    python -m core.run benchmark=draco system=anthropic effort=high

    POST /v1/messages   GET /v1/files/{id}   GET /v1/files/{id}/content

There is no job at the provider: a message is one long request, and closing it ends it. Its handle is what came so
far. A turn that pauses is sent again with what it said, which costs money; a turn that is over keeps its handle
until its files are fetched, so that a restart fetches them and pays for nothing.

Text carries citations that quote the page. A typed reply (`delivery: schema`, or a task with a schema) has none:
the API does not combine the two. Blocked sites are hosts, for the search and for fetching.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, ClassVar, Final

from adapters import _prices
from adapters._anthropic import VERSION, Tokens, api_of, clean, files_of, refusal
from adapters._anthropic_message import Contents, Gathering, read
from adapters._delivery import channel_of, checked_channel, hosts_of, message, schema_of, typed
from adapters._values import listed, mapping, mappings, scalars, word
from core.clock import Clock
from core.errors import CallError
from core.jobs import Answer, Api, Ask, JobOptions, JobSystem, Paid, Provider, Snapshot, State
from core.jobs.options import section_of
from core.jobs.provider import Handle
from core.prices import price_from_config
from core.reply import own_message
from core.section import Section
from core.services import Services
from core.strict_json import shown

_PAUSED: Final = "pause_turn"
_STATES: Final[Mapping[str, State]] = {
    "end_turn": "completed",
    "stop_sequence": "completed",
    "max_tokens": "incomplete",
    "model_context_window_exceeded": "incomplete",
    "refusal": "refused",
    _PAUSED: "running",
}
#: An error in place of an answer, by its type: nothing had begun.
_ERRORS: Final[Mapping[str, str]] = {
    "invalid_request_error": "bad_request",
    "authentication_error": "key",
    "permission_error": "key",
    "billing_error": "quota",
    "not_found_error": "not_found",
    "request_too_large": "too_large",
    "rate_limit_error": "rate_limit",
    "overloaded_error": "overloaded",
    "timeout_error": "gateway_timeout",
}
#: A continuation that the provider does not take: what came so far is the answer.
_NO_FURTHER: Final = frozenset({"bad_request", "too_large", "not_found", "refused"})
#: Where code leaves the files that the API gives back.
_FOLDER: Final = "$OUTPUT_DIR"
_HINT: Final = "Write them with the code execution tool: only files that are left in this folder are delivered."


class Messages(Provider):
    """The Messages API."""

    can_block = True
    closing_cancels: ClassVar[bool] = True

    def __init__(self, section: Section, api: Api, clock: Clock) -> None:
        self._api, self._clock = api, clock
        self._model = section.text("model")
        self._effort = section.text_or_none("model_effort")
        self._thinking = section.text_or_none("thinking")
        self._max_tokens = section.whole("max_output_tokens")
        self._max_uses = {
            "web_search": section.whole_or_none("max_searches"),
            "web_fetch": section.whole_or_none("max_fetches"),
        }
        self._code = section.choice("code_execution", {True: True, False: False})
        self._delivery = checked_channel(section, "file", "schema", "fence")
        self._continuations = section.whole("max_continuations", least=0)
        self._stream = section.choice("transport", {"stream": True, "sync": False})
        self._deadline_s = section.seconds("timeout_s")
        self._price = _prices.configured(price_from_config(section.values.get("price"), "system.price"))
        self.settings = {
            "model": self._model,
            "effort": self._effort,
            "thinking": self._thinking,
            "max_output_tokens": self._max_tokens,
            "max_uses": self._max_uses,
            "code_execution": self._code,
            "delivery": self._delivery,
            "max_continuations": self._continuations,
            "api_version": VERSION,
        }

    async def create(self, ask: Ask) -> Snapshot:
        return await self._call(ask, {"until": self._clock.now() + self._deadline_s})

    async def advance(self, ask: Ask, handle: Handle) -> Snapshot:
        known = self._snapshot(handle)
        if not known.paid_next:
            return known  # it was over before the restart
        try:
            return await self._call(ask, handle)
        except CallError as error:
            if error.kind not in _NO_FURTHER:
                raise
            return self._ended(handle, "incomplete", f"the paused turn could not go on: {error.message}")

    async def answer(self, ask: Ask, last: Snapshot) -> Answer:
        channel = channel_of(ask.task, self._delivery)
        said = last.body
        found = read(_content(said))
        files, notes = await self._files(ask, channel, found)
        tokens = _tokens(said)
        model = word(said.get("model")) or self._model
        price = self._price or _prices.price_of(model, _prices.ANTHROPIC)
        return Answer(
            text=found.text or None,
            channel=channel,
            files=files,
            citations=found.citations,
            usage=tokens.usage() if tokens else None,
            paid=tokens.paid(price) if tokens else Paid(),
            echoed={
                **scalars({name: said.get(name) for name in ("id", "model", "stop_reason", "calls", "container")}),
                "usage": asdict(tokens) if tokens else None,
            },
            notes=(*found.notes, *notes),
        )

    async def _files(self, ask: Ask, channel: str, found: Contents) -> tuple[Mapping[str, str], list[str]]:
        if channel == "file":
            return await files_of(self._api, ask, [{"id": file_id} for file_id in found.file_ids])
        if channel == "schema":
            return typed(found.last or None, ask.task.required_files)
        return {}, []

    async def _call(self, ask: Ask, before: Mapping[str, Any]) -> Snapshot:
        """The first request of a turn or its next one, within what is left of the deadline."""
        left_s = float(before["until"]) - self._clock.now()
        late = f"no answer within {self._deadline_s:g} s (system.timeout_s)"
        if left_s <= 0:
            return self._ended(before, "timed_out", late)
        body, gathering = self._body(ask, before), Gathering()
        reply: Mapping[str, Any] | None
        try:
            async with asyncio.timeout(left_s):
                if self._stream:
                    reply = await self._streamed(body, left_s, gathering)
                else:
                    reply = await self._whole(body, left_s)
        except TimeoutError:
            reply = gathering.message()
            if reply is None:  # what was used until then is not said
                return self._ended({**before, "tokens": None}, "timed_out", late)
        return self._snapshot(_joined(before, reply))

    def _body(self, ask: Ask, before: Mapping[str, Any]) -> dict[str, Any]:
        channel = channel_of(ask.task, self._delivery)
        schema = schema_of(ask.task, channel)
        prompt = message(ask.task, channel, folder=_FOLDER, hint=_HINT)
        messages: list[dict[str, Any]] = [{"role": "user", "content": prompt}]
        if _content(before):
            messages.append({"role": "assistant", "content": _content(before)})
        body: dict[str, Any] = {
            "model": self._model,
            "max_tokens": self._max_tokens,
            "tools": self._tools(ask, typed_reply=schema is not None, files=channel == "file"),
            "messages": messages,
        }
        output: dict[str, Any] = {}
        if self._effort is not None:
            output["effort"] = self._effort
        if schema is not None:
            output["format"] = {"type": "json_schema", "schema": schema}
        if output:
            body["output_config"] = output
        if self._thinking is not None:
            body["thinking"] = {"type": self._thinking}
        if before.get("container"):
            body["container"] = before["container"]
        return body

    def _tools(self, ask: Ask, *, typed_reply: bool, files: bool) -> list[dict[str, Any]]:
        search: dict[str, Any] = {"type": "web_search_20260318", "name": "web_search"}
        fetch: dict[str, Any] = {"type": "web_fetch_20260318", "name": "web_fetch"}
        if not typed_reply:
            fetch["citations"] = {"enabled": True}
        hosts, _ = hosts_of(ask.task, len(ask.task.blocked))  # no limit is known
        for tool in (search, fetch):
            uses = self._max_uses[tool["name"]]
            if uses is not None:
                tool["max_uses"] = uses
            if hosts:
                tool["blocked_domains"] = hosts
        code = {"type": "code_execution_20260521", "name": "code_execution"}
        return [search, fetch, code] if self._code or files else [search, fetch]

    async def _whole(self, body: Mapping[str, Any], left_s: float) -> Mapping[str, Any]:
        # the deadline is `_call`'s own: this one only must not come first
        reply = await self._api.json("POST", "/v1/messages", body, timeout_s=left_s + 60)
        if reply.get("type") == "error":
            raise self._refused(reply)
        return reply

    async def _streamed(self, body: Mapping[str, Any], left_s: float, gathering: Gathering) -> Mapping[str, Any]:
        """The message, once its last event has come. What breaks after its reason to stop takes nothing away."""
        streamed = {**body, "stream": True}
        try:
            async with self._api.events("POST", "/v1/messages", streamed, timeout_s=left_s + 60) as events:
                async for event in events:
                    if gathering.take(event.json()):
                        break
        except CallError:
            if gathering.message() is None:
                raise
        found = gathering.message()
        if found is not None:
            return found
        if gathering.error is not None and not gathering.began:
            raise self._refused(gathering.error)
        why = own_message(gathering.error) or "no end came"
        raise CallError("cut", f"{self._api.name}: the stream broke off: {why}")

    def _refused(self, body: Mapping[str, Any]) -> CallError:
        """An error that came with a status of success, or as the first event."""
        kind = word(mapping(body.get("error")).get("type"))
        return CallError(
            _ERRORS.get(kind, "server"),
            f"{self._api.name}: {own_message(body) or 'an error without a message'}",
            request_id=word(body.get("request_id")) or None,
        )

    def _snapshot(self, turn: Mapping[str, Any]) -> Snapshot:
        """Where a turn stands. The message is over, whatever its reason to stop: an unknown one is no success."""
        reason = word(turn.get("stop_reason"))
        if "state" in turn:
            state, said = turn["state"], turn["said"]
            return Snapshot(state, body=turn, word=state, said=said, handle=turn)
        state, said = _STATES.get(reason, "incomplete"), ""
        if state == "running" and turn["calls"] > self._continuations:
            state, said = "incomplete", f"still paused after {self._continuations} continuations"
        elif state == "refused":
            said = refusal(turn["stop_details"])
        elif state == "incomplete":
            said = f"stopped early: {reason or 'without a reason'}"
        return Snapshot(state, body=turn, word=reason, said=said, handle=turn, paid_next=state == "running")

    def _ended(self, turn: Mapping[str, Any], state: State, said: str) -> Snapshot:
        """A turn that ends here, with what it has."""
        return self._snapshot({**turn, "state": state, "said": said})


def _joined(before: Mapping[str, Any], reply: Mapping[str, Any]) -> dict[str, Any]:
    """What came so far and the latest reply, as one turn. Raises CallError for a reply that is no message."""
    reply = clean(reply)
    content = reply.get("content")
    if not isinstance(content, list):
        raise CallError("malformed", f"anthropic: expected a message with content, got {shown(reply)}")
    tokens = Tokens.read(reply.get("usage"))
    if before.get("calls"):
        earlier = _tokens(before)
        tokens = earlier.plus(tokens) if earlier and tokens else None
    container = word(mapping(reply.get("container")).get("id"))
    return {
        "until": before["until"],
        "id": before.get("id") or word(reply.get("id")),
        "model": word(reply.get("model")) or before.get("model"),
        "content": [*_content(before), *mappings(content)],
        "container": container or before.get("container"),
        "tokens": asdict(tokens) if tokens else None,
        "calls": before.get("calls", 0) + 1,
        "stop_reason": word(reply.get("stop_reason")),
        "stop_details": reply.get("stop_details"),
    }


def _content(turn: Mapping[str, Any]) -> list[Any]:
    return listed(turn.get("content"))


def _tokens(turn: Mapping[str, Any]) -> Tokens | None:
    known = turn.get("tokens")
    return Tokens(**known) if known else None


def anthropic(config: Mapping[str, Any], services: Services) -> JobSystem:
    """The factory. Raises InputError for a value that can't be used."""
    section = section_of(config, "model_effort", "max_output_tokens", "max_searches", "max_fetches")
    api = api_of(section, services)
    provider = Messages(section, api, services.clock)
    return JobSystem(provider, api, JobOptions.of(section), services, warn=_prices.warnings)
