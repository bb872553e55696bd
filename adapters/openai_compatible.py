"""system=openai_compatible: any server that speaks OpenAI's chat completions, asked directly.

    python -m core.run benchmark=draco system=openai_compatible system.model=my-model
        system.base_url=http://127.0.0.1:8000/v1

    POST {base_url}/chat/completions

One request is one attempt, answered at once or as a stream; nothing of it can be asked about later. A connection
that breaks before the answer is whole leaves an attempt that may have been billed, and that is not sent again.
system=chat asks through litellm instead, with each provider's own parameters.
"""

from __future__ import annotations

import json
import math
from collections.abc import AsyncIterator, Mapping
from typing import Any, ClassVar, Final
from urllib.parse import urlsplit

from adapters import _prices
from adapters._citations import cited, merged
from adapters._completion import outcome
from adapters._delivery import channel_of, checked_channel, message, schema_of, typed
from adapters._openai import annotated, cleaned, late, refusal
from adapters._values import listed, mapping, mappings, scalars
from core.digest import plain
from core.errors import CallError, InputError
from core.jobs import Answer, Api, Ask, JobOptions, JobSystem, Paid, Provider, Snapshot, State, state_of
from core.jobs.options import section_of
from core.judge.completion import Bill, bill, first_choice, text_of
from core.prices import Price, price_from_config
from core.section import Section
from core.services import Services
from core.sse import Event

_PATH: Final = "/chat/completions"
#: Kinds of a connection that broke.
_BROKEN: Final = ("cut", "hung_up", "timeout")
_STATES: Final[Mapping[str, State]] = {"completed": "completed", "incomplete": "incomplete", "refused": "refused"}
#: What an effort may set.
_BY_EFFORT: Final = ("model", "reasoning_effort", "max_output_tokens", "temperature", "params")


class OpenAICompatible(Provider):
    """One model at one server. There is no field for blocked sites.

    Closing the connection counts as the end of a call: servers stop what nobody waits for.
    """

    closing_cancels: ClassVar[bool] = True

    def __init__(self, section: Section, api: Api, services: Services) -> None:
        self._api, self._clock = api, services.clock
        self._stream = section.choice("transport", {"sync": False, "stream": True})
        self._delivery = checked_channel(section, "fence", "schema")
        self._deadline_s = section.seconds("timeout_s")
        self._price: Price | None = price_from_config(section.values.get("price"), "system.price")
        self._system_prompt = section.text_or_none("system_prompt")
        handed_on = services.effort if section.values.get("efforts") is None else None
        self._parameters = {
            "model": section.text("model", "the server's name of a model"),
            "reasoning_effort": section.text_or_none("reasoning_effort") or handed_on,
            "max_tokens": section.whole_or_none("max_output_tokens"),
            "temperature": section.number_or_none("temperature"),
            **plain(section.mapping("params")),
        }
        self.settings = {**self._parameters, "system_prompt": self._system_prompt, "delivery": self._delivery}

    async def create(self, ask: Ask) -> Snapshot:
        began = self._clock.monotonic()
        body = self._body(ask)
        try:
            completion = await (self._streamed(body) if self._stream else self._whole(body))
        except CallError as error:
            # a stream that falls silent for minutes is broken; one whose time is up is late
            if error.kind == "timeout" and self._clock.monotonic() - began >= self._deadline_s:
                return late(self._deadline_s)
            raise
        return _snapshot(completion, self._price)

    async def answer(self, ask: Ask, last: Snapshot) -> Answer:
        completion = last.body
        if not completion:  # it came too late
            return Answer(channel=channel_of(ask.task, self._delivery))
        channel = channel_of(ask.task, self._delivery)
        choice = first_choice(completion)
        reply = mapping(choice, "message")
        text = text_of(reply)
        files, odd = typed(text, ask.task.required_files) if channel == "schema" else ({}, [])
        paid = _bill(completion, self._price)
        passages = annotated(reply.get("annotations"), text)
        named = {
            "id": completion.get("id"),
            "model": completion.get("model"),
            "finish": choice.get("finish_reason"),
        }
        return Answer(
            text=text or None,
            channel=channel,
            files=files,
            citations=merged([*cited(completion), *passages]),
            usage=paid.usage,
            paid=_paid(paid),
            echoed=scalars({name: value for name, value in named.items() if isinstance(value, str)}),
            notes=tuple(odd),
        )

    def _body(self, ask: Ask) -> dict[str, Any]:
        channel = channel_of(ask.task, self._delivery)
        messages = [{"role": "user", "content": message(ask.task, channel)}]
        if self._system_prompt is not None:
            messages.insert(0, {"role": "system", "content": self._system_prompt})
        body: dict[str, Any] = {"messages": messages}
        schema = schema_of(ask.task, channel) if self._delivery == "schema" else None
        if schema is not None:
            form = {"name": "answer", "strict": True, "schema": plain(schema)}
            body["response_format"] = {"type": "json_schema", "json_schema": form}
        if self._stream:
            body |= {"stream": True, "stream_options": {"include_usage": True}}
        body |= self._parameters
        return {name: value for name, value in body.items() if value is not None}

    async def _whole(self, body: Mapping[str, Any]) -> Mapping[str, Any]:
        completion = await self._api.json("POST", _PATH, body, timeout_s=self._deadline_s)
        if completion.get("error"):
            raise refusal(completion)
        return completion

    async def _streamed(self, body: Mapping[str, Any]) -> Mapping[str, Any]:
        """The completion that a stream's chunks make up. Raises CallError `cut` where it is not whole.

        What breaks after the last word of the answer costs no more than the count of its tokens.
        """
        gathered = _Gathered()
        try:
            async with self._api.events("POST", _PATH, body, timeout_s=self._deadline_s) as events:
                await gathered.read(events)
        except CallError as error:
            if error.kind not in _BROKEN or not gathered.finish:
                raise
        return gathered.completion()


class _Gathered:
    """What the chunks of a stream add up to."""

    def __init__(self) -> None:
        self.finish: Any = None
        self._texts: list[str] = []
        self._refusals: list[str] = []
        self._annotations: list[Any] = []
        self._done = False
        self._top: dict[str, Any] = {}
        self._whole: Mapping[str, Any] | None = None

    async def read(self, events: AsyncIterator[Event]) -> None:
        """Read to the stream's last word. Raises CallError for an error in place of a chunk."""
        async for event in events:
            if event.data.strip() == "[DONE]":
                self._done = True
                return
            self._take(_chunk(event))

    def completion(self) -> Mapping[str, Any]:
        """The whole; raises CallError `cut` where neither a finish reason nor [DONE] says that it is one."""
        if self._whole is not None:
            return self._whole
        if not self.finish and not self._done:
            raise CallError("cut", "openai_compatible: the stream ended in the middle of an answer")
        reply = {
            "content": "".join(self._texts),
            "refusal": "".join(self._refusals) or None,
            "annotations": self._annotations,
        }
        return {**self._top, "choices": [{"finish_reason": self.finish, "message": reply}]}

    def _take(self, chunk: Mapping[str, Any]) -> None:
        if chunk.get("error"):
            if any(self._texts):  # it was at work, so it is not the refusal of a request
                raise CallError("cut", f"openai_compatible: {refusal(chunk).message}")
            raise refusal(chunk)
        # of what stands beside the choices, the last that says something counts: usage comes at the end
        self._top |= {name: value for name, value in chunk.items() if value and name != "choices"}
        for choice in mappings(chunk.get("choices")):
            if choice.get("index") not in (0, None):
                continue
            self.finish = choice.get("finish_reason") or self.finish
            delta = choice.get("delta")
            if isinstance(delta, Mapping):
                self._add(delta)
            elif mapping(choice, "message"):  # a server that does not stream answers whole
                self._whole = chunk

    def _add(self, delta: Mapping[str, Any]) -> None:
        text, said = delta.get("content"), delta.get("refusal")
        self._texts.append(text if isinstance(text, str) else text_of(delta))
        self._refusals += [said] if isinstance(said, str) else []
        self._annotations += listed(delta.get("annotations"))


def _chunk(event: Event) -> Mapping[str, Any]:
    """A chunk as it came: a sign may be spread over two of them, so texts are mended when they are whole."""
    try:
        return mapping(json.loads(event.data))
    except (ValueError, RecursionError):
        return {}


def _snapshot(completion: Mapping[str, Any], price: Price | None) -> Snapshot:
    """How a completion ended. Raises CallError for one that has no choice, or that the server gave up."""
    completion = cleaned(completion)
    choice = first_choice(completion)
    reply = mapping(choice, "message")
    finish = str(choice.get("finish_reason") or "").lower()
    if finish == "error" and not text_of(reply).strip():
        paid = _bill(completion, price)
        broken = "openai_compatible: the server broke off the generation"
        raise CallError("server", broken, usage=paid.usage, cost_usd=paid.usd)
    status, failure = outcome(finish, reply.get("refusal"))
    said = "" if failure is None else failure.message
    return Snapshot(state_of(status, _STATES), body=completion, word=finish[:60] or status, said=said)


def _bill(completion: Mapping[str, Any], price: Price | None) -> Bill:
    """Tokens and dollars. A server's `list_cost` is not read: it is a client library's word."""
    usage = completion.get("usage")
    if isinstance(usage, Mapping):
        usage = {name: value for name, value in usage.items() if name != "list_cost"}
    try:
        found = bill({"usage": usage}, price)
    except OverflowError:  # more tokens than a float holds
        return Bill()
    return found if found.usd is None or math.isfinite(found.usd) else Bill(found.usage)


def _paid(found: Bill) -> Paid:
    if found.usd is None:
        return Paid()
    return _prices.reported(found.usd) or Paid() if found.source == "reported" else Paid(found.usd, "computed")


def openai_compatible(config: Mapping[str, Any], services: Services) -> JobSystem:
    """The factory. Raises InputError for a value that can't be used."""
    section = section_of(config, *_BY_EFFORT)
    options = JobOptions.of(section)
    base = _base_url(section)
    api = Api.of(Section({**section.values, "base_url": base}), services, name="openai_compatible", home=base)
    return JobSystem(OpenAICompatible(section, api, services), api, options, services)


def _base_url(section: Section) -> str:
    """`system.base_url`, to which the path is added; one that ends with the path already is taken as well."""
    base = section.text("base_url", "the address of a server, such as http://127.0.0.1:8000/v1")
    parts = urlsplit(base)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
        expected = "an http(s) address without a query, such as http://127.0.0.1:8000/v1"
        raise InputError("not usable", where="system.base_url", expected=expected, got=repr(base))
    return base.rstrip("/").removesuffix(_PATH)
