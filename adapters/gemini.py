"""system=gemini, gemini_model, gemini_antigravity: Google's Interactions API.

    python -m core.run benchmark=wandr system=gemini effort=low

    POST /{version}/interactions   GET /interactions/{id}   POST /interactions/{id}/cancel
    GET /{version}/environments/{id}/files/{path}   the same with alt=media: a file's bytes

Three backends of one API: `agent` (deep research; files as fences, since agents take no response format), `model`
(a model with search; typed replies) and `antigravity` (an agent with a sandbox; files). The API lists no
interactions, and they carry nothing of ours: one whose create was not answered is lost. There is no field for
blocked sites.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from datetime import date
from typing import Any, ClassVar, Final

from adapters import _prices
from adapters._delivery import Channel, channel_of, checked_channel, message, schema_of, typed
from adapters._gemini import STATES, Stream, echo_of, error_of, read, searches, state, typed_text, usage_of
from adapters._gemini_files import FOLDER, files_of
from adapters._values import is_id, path_part, word
from core.clock import Clock
from core.errors import CallError, InputError
from core.http import Reply, from_status
from core.jobs import Answer, Api, Ask, JobOptions, JobSystem, Paid, Provider, Snapshot, account_fault, state_of
from core.jobs.options import section_of
from core.jobs.provider import Handle
from core.prices import price_from_config
from core.section import Section
from core.services import Services
from core.strict_json import shown

HOME: Final = "https://generativelanguage.googleapis.com"
_CHANNELS: Final[Mapping[str, tuple[Channel, ...]]] = {
    "agent": ("fence",),
    "model": ("schema", "fence"),
    "antigravity": ("file", "fence"),
}
_TOOLS: Final = ("google_search", "url_context", "code_execution")
#: How often one interaction is continued; each time is paid for.
_MOST_CONTINUED: Final = 20
#: Minutes in which nine of ten tasks ended, and dollars that a task came to, where evaluations published them.
_LONG: Final[Mapping[str, tuple[int, int | None]]] = {
    "deep-research-preview-04-2026": (60, None),
    "deep-research-max-preview-04-2026": (323, 325),
}
_GONE: Final = ("deep-research-pro-preview-12-2025", "antigravity-preview-05-2026")
#: The models of this generation are announced to cost more from this day on.
_DEARER: Final = ("gemini-4-", date(2026, 12, 1))


class Gemini(Provider):
    """The Interactions API, with one of its backends."""

    can_cancel: ClassVar[bool] = True
    #: Google's front answers so for minutes while an interaction runs unharmed.
    unwell_statuses: ClassVar[frozenset[int]] = frozenset({400, 403, 404, 408, 409, 425, 429})

    def __init__(self, section: Section, api: Api, clock: Clock) -> None:
        self._api, self._clock = api, clock
        self._backend: str = section.choice("backend", {name: name for name in _CHANNELS})
        self._root = "/" + section.text("api_version").strip("/")
        other = "agent" if self._backend == "model" else "model"
        if section.values.get(other) is not None:
            raise InputError(
                f"the backend {self._backend} takes no {other}", where=f"system.{other}", expected="null"
            )
        self._name = section.text("model" if self._backend == "model" else "agent")
        self._tools = section.words("tools")
        for tool in self._tools:
            if tool not in _TOOLS:
                raise InputError(
                    "unknown", where="system.tools", expected=f"tools out of {_TOOLS}", got=repr(tool)
                )
        self._level = section.text_or_none("thinking_level")
        self._output = section.whole_or_none("max_output_tokens")
        self._total = section.whole_or_none("max_total_tokens")
        self._summaries = section.choice("thinking_summaries", {"auto": "auto", "none": "none"})
        self._delivery = checked_channel(section, *_CHANNELS[self._backend])
        ways = ("poll", "stream", "sync") if self._backend == "model" else ("poll", "stream")
        self._transport = section.choice("transport", {way: way for way in ways})
        self._deadline_s = section.seconds("timeout_s")
        self._price = _prices.configured(price_from_config(section.values.get("price"), "system.price"))
        kind = "deep-research" if self._backend == "agent" else "model"
        fee = section.number_or_none("search_fee_usd")
        self._fee = _prices.GEMINI_SEARCH[kind] if fee is None else fee
        self.settings = {
            "backend": self._backend,
            "model" if self._backend == "model" else "agent": self._name,
            "thinking_level": self._level,
            "max_output_tokens": self._output,
            "max_total_tokens": self._total,
            "tools": list(self._tools),
            "delivery": self._delivery,
        }

    async def create(self, ask: Ask) -> Snapshot:
        if self._transport == "stream":
            return await self._streamed(ask)
        begun = {"until": self._clock.now() + self._deadline_s}
        return self._snapshot(await self._post(self._body(ask)), begun)

    async def advance(self, ask: Ask, handle: Handle) -> Snapshot:
        token = handle.get("token")
        if token is None:
            return self._snapshot(await self._get(self._path(handle)), handle)
        if self._clock.now() >= handle.get(
            "until", math.inf
        ):  # a restart after the deadline pays for nothing more
            said = f"no answer within {self._deadline_s:g} s (system.timeout_s): it was paused"
            return Snapshot("timed_out", word="timed_out", said=said, handle=handle)
        found = await self._post({**self._body(ask), "continuation_token": token})
        return self._snapshot(found, {**handle, "continued": handle.get("continued", 0) + 1})

    async def cancel(self, handle: Handle) -> None:
        await self._api.json("POST", f"{self._path(handle)}/cancel", {})

    async def answer(self, ask: Ask, last: Snapshot) -> Answer:
        body = last.body
        channel = channel_of(ask.task, self._delivery)
        reading = read(body)
        notes = list(reading.notes)
        files: dict[str, str] = {}
        more: list[str] = []
        if channel == "file":
            files, more = await files_of(ask, self._api, self._root, body.get("environment_id"))
        elif self._schema(ask) is not None and reading.text:
            files, more = typed(typed_text(reading), ask.task.required_files)
        continued = (last.handle or {}).get("continued")
        if continued:
            notes.append(f"continued {continued} times: text, tokens and cost are those of the last reply")
        return Answer(
            text=reading.text,
            channel=channel,
            files=files,
            citations=reading.citations,
            usage=usage_of(body),
            paid=self._paid(body),
            echoed=echo_of(body),
            notes=(*notes, *more),
        )

    def warnings(self, today: date) -> list[str]:
        """What every report should say of this system."""
        found = [] if self._price is not None else _prices.warnings(today)
        if self._name in _GONE:
            found.append(f"{self._name} is retired: results can't be repeated")
        prefix, since = _DEARER
        if self._price is None and self._name.startswith(prefix) and today >= since:
            found.append(f"prices of {prefix}* were to rise on {since}: check them and set system.price")
        if self._price is None and _prices.price_of(self._name, _prices.GEMINI) is None:
            found.append(f"{self._name} has no price in the list: its costs are unknown, set system.price")
        minutes, dollars = _LONG.get(self._name, (0, None))
        if self._deadline_s < minutes * 60:
            found.append(f"a tenth of the tasks took {self._name} more than {minutes} min: raise system.timeout_s")
        if dollars is not None:
            found.append(f"one task came to as much as ${dollars} with {self._name}: set budget.usd")
        return found

    # asking

    def _body(self, ask: Ask) -> dict[str, Any]:
        channel = channel_of(ask.task, self._delivery)
        body: dict[str, Any] = {"input": message(ask.task, channel, folder=FOLDER), "store": True}
        if self._transport != "sync":
            body["background"] = True
        if self._tools:
            body["tools"] = [{"type": tool} for tool in self._tools]
        if self._backend == "model":
            limits = {"thinking_level": self._level, "max_output_tokens": self._output}
            body["model"] = self._name
            body["generation_config"] = {key: value for key, value in limits.items() if value is not None}
            schema = self._schema(ask)
            if schema is not None:
                body["response_format"] = {"type": "text", "mime_type": "application/json", "schema": schema}
            return body
        body["agent"] = self._name
        if self._backend == "agent":
            body["agent_config"] = {
                "type": "deep-research",
                "thinking_summaries": self._summaries,
                "visualization": "off",
                "collaborative_planning": False,
            }
            return body
        body["environment"] = "remote"
        body["agent_config"] = {"type": "antigravity"}
        if self._total is not None:
            body["agent_config"]["max_total_tokens"] = self._total
        return body

    def _schema(self, ask: Ask) -> Mapping[str, Any] | None:
        """The form of a typed reply; only models take one."""
        return schema_of(ask.task, channel_of(ask.task, self._delivery)) if self._backend == "model" else None

    def _path(self, handle: Handle) -> str:
        return f"{self._root}/interactions/{path_part(handle['id'])}"

    async def _post(self, body: Mapping[str, Any]) -> dict[str, Any]:
        timeout_s = self._deadline_s if self._transport == "sync" else None
        return await self._api.json("POST", f"{self._root}/interactions", body, timeout_s=timeout_s)

    async def _get(self, path: str) -> dict[str, Any]:
        try:
            return await self._api.json("GET", path)
        except CallError as error:
            if error.kind == "key" and error.http_status == 400:
                # a 400 is waited out by its status; one about the key is not
                raise CallError("key", error.message, request_id=error.request_id) from error
            raise

    async def _streamed(self, ask: Ask) -> Snapshot:
        """The interaction's events. A stream that breaks goes on from its last event for as long as it brings new
        ones; then, and where it ends before the interaction does, the interaction is asked like any other.
        """
        stream = Stream()
        begun = {"until": self._clock.now() + self._deadline_s}
        until = self._clock.monotonic() + self._deadline_s
        method, path, query = "POST", f"{self._root}/interactions", {"alt": "sse"}
        body: dict[str, Any] | None = {**self._body(ask), "stream": True}
        while True:
            seen = stream.last
            left_s = max(1.0, until - self._clock.monotonic())
            try:
                async with self._api.events(method, path, body, query=query, timeout_s=left_s) as events:
                    async for event in events:
                        stream.take(event)
                        if stream.id is not None:
                            ask.keep({**begun, "id": stream.id})
                break
            except CallError:
                if stream.id is None or stream.last is None or stream.last == seen:
                    raise
            method, path, body = "GET", self._path({"id": stream.id}), None
            query = {"alt": "sse", "stream": "true", "last_event_id": stream.last}
        found = stream.body()
        if stream.id is None:
            raise self._unusable(stream.failed or found)
        last = self._snapshot({**found, "status": found.get("status") or "in_progress"}, begun)
        return last if last.state not in ("queued", "running") else Snapshot("running", handle=last.handle)

    # reading

    def _snapshot(self, body: Mapping[str, Any], handle: Handle | None) -> Snapshot:
        """What a reply says of the interaction; `handle` is what was known of it before.

        The token of a pause stands in the new handle until it is used: a handle that has one is continued, which
        costs money, every other is asked about.
        """
        status, named = word(body.get("status")), word(body.get("id"))
        known = {**(handle or {}), **({"id": named} if is_id(named) else {})}
        known.pop("token", None)
        if not status or "id" not in known:
            raise self._unusable(body)
        ends, said = state(body, state_of(status, STATES))
        token = word(body.get("continuation_token")) if status == "requires_continuation" else ""
        if token and known.get("continued", 0) >= _MOST_CONTINUED:
            token, ends, said = "", "incomplete", f"it paused more than {_MOST_CONTINUED} times"
        if token:
            known["token"] = token
        void = account_fault("gemini", error_of(body)) if ends == "failed" else None
        return Snapshot(ends, body=body, word=status, said=said, handle=known, paid_next=bool(token), void=void)

    def _unusable(self, body: Mapping[str, Any]) -> CallError:
        """The error that a reply is which is no interaction: its own, or that nobody knows what it is."""
        if not isinstance(body.get("error"), Mapping):
            return CallError("malformed", f"gemini: no interaction with an id and a status: {shown(body)}")
        error = from_status(Reply(200, {}, json.dumps(body).encode(), 0.0, ""), self._clock.now())
        return CallError(error.kind, f"gemini: {error.message}", retry_after_s=error.retry_after_s)

    def _paid(self, body: Mapping[str, Any]) -> Paid:
        usage, searched = usage_of(body), searches(body)
        fees = {"google_search": searched * self._fee} if searched else {}
        if usage is None or usage.input is None or usage.output is None:
            return Paid(None, "unknown", fees)
        price = self._price or _prices.price_of(self._name, _prices.GEMINI)
        cached = usage.cached_input or 0
        return _prices.tokens_paid(
            price, fresh=usage.input - cached, cached=cached, output=usage.output, fees=fees
        )


def gemini(config: Mapping[str, Any], services: Services) -> JobSystem:
    """The factory. Raises InputError for a value that can't be used."""
    section = section_of(config, "agent", "model", "thinking_level", "max_output_tokens", "max_total_tokens")
    options = JobOptions.of(section)
    revision = section.text_or_none("api_revision")
    headers = {"api-revision": revision} if revision else {}
    api = Api.of(section, services, name="gemini", home=HOME, key_header="x-goog-api-key", headers=headers)
    provider = Gemini(section, api, services.clock)
    return JobSystem(provider, api, options, services, warn=provider.warnings)
