"""system=tavily: Tavily's Research API.

    python -m core.run benchmark=draco system=tavily effort=high

    POST /research   GET /research/{id}?include_usage=true

Two models, so four efforts share two levels. There is no cancel and no list of tasks: one that passes its deadline
runs on, and a create that is not answered may have been billed. Sources have titles and no text of the page. A job
costs credits, which the reply counts; their price is the list's.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, ClassVar, Final

from adapters import _prices
from adapters._citations import merged, source
from adapters._delivery import channel_of, checked_channel, hosts_of, message, schema_of, typed
from adapters._values import amount, is_id, listed, mapping, path_part, scalars, word
from core.errors import CallError, InputError
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
from core.reply import own_message
from core.section import Section
from core.services import Services
from core.strict_json import shown

HOME: Final = "https://api.tavily.com"
_STATES: Final[Mapping[str, State]] = {
    "pending": "queued",
    "in_progress": "running",
    "completed": "completed",
    "failed": "failed",
}
#: Entries that exclude_domains takes.
_MOST_BLOCKED: Final = 20
#: More credits than this are a mistake of the reply.
_MOST_CREDITS: Final = 1_000_000


class Tavily(Provider):
    """The Research API."""

    can_block = True
    can_cancel: ClassVar[bool] = False

    def __init__(self, section: Section, api: Api) -> None:
        self._api = api
        section.choice("transport", {"poll": None})
        self._model = section.choice("model", {word: word for word in ("mini", "pro", "auto")})
        lengths: dict[Any, str | None] = {None: None, "short": "short", "standard": "standard", "long": "long"}
        self._length = section.choice("output_length", lengths)
        self._delivery = checked_channel(section, "schema", "fence")
        credit = section.number_or_none("credit_usd")
        self._credit_usd = _prices.TAVILY_CREDIT if credit is None else credit
        self.settings = {"model": self._model, "output_length": self._length, "delivery": self._delivery}

    async def create(self, ask: Ask) -> Snapshot:
        channel = channel_of(ask.task, self._delivery)
        body: dict[str, Any] = {
            "input": message(ask.task, channel),
            "model": self._model,
            "citation_format": "numbered",
        }
        schema = schema_of(ask.task, channel)
        if schema is not None:
            body["output_schema"] = schema
        if self._length is not None:
            body["output_length"] = self._length
        hosts, _ = hosts_of(ask.task, _MOST_BLOCKED)
        if hosts:
            body["exclude_domains"] = hosts
        return _snapshot(await self._api.json("POST", "/research", body))

    async def advance(self, ask: Ask, handle: Handle) -> Snapshot:
        path = f"/research/{path_part(handle['id'])}"
        return _snapshot(await self._api.json("GET", path, query={"include_usage": "true"}))

    async def answer(self, ask: Ask, last: Snapshot) -> Answer:
        channel = channel_of(ask.task, self._delivery)
        body = last.body
        content = body.get("content")
        files, notes = typed(content, ask.task.required_files) if channel == "schema" else ({}, [])
        _, unblocked = hosts_of(ask.task, _MOST_BLOCKED)
        sources = (source(entry) for entry in listed(body.get("sources")))
        return Answer(
            text=_text(content),
            channel=channel,
            files=files,
            citations=merged(found for found in sources if found is not None),
            paid=self._paid(body),
            echoed={
                **scalars({name: body[name] for name in ("request_id", "model") if name in body}),
                "credits": _credits(body),
            },
            notes=(*notes, *unblocked),
        )

    def _paid(self, body: Mapping[str, Any]) -> Paid:
        credits_used = _credits(body)
        if credits_used is None:
            return Paid()
        usd = credits_used * self._credit_usd
        return Paid(usd, "computed", {"credits": usd})


def _snapshot(body: Mapping[str, Any]) -> Snapshot:
    task, status = body.get("request_id"), body.get("status")
    if not is_id(task):
        raise CallError("malformed", f"tavily: a research task without a request_id: {shown(body)}")
    state = state_of(status, _STATES)
    said = own_message(body) if state == "failed" else ""
    void = account_fault("tavily", said)
    return Snapshot(state, body=body, word=word(status), said=said, handle={"id": task}, void=void)


def _text(content: Any) -> str | None:
    """The report; a typed reply as its JSON text."""
    if isinstance(content, str) or content is None:
        return content
    return json.dumps(content, ensure_ascii=False)


def _credits(body: Mapping[str, Any]) -> float | None:
    used = amount(mapping(body, "usage").get("credits"))
    return None if used is None or used > _MOST_CREDITS else used


def tavily(config: Mapping[str, Any], services: Services) -> JobSystem:
    """The factory. Raises InputError for a value that can't be used."""
    section = section_of(config, "model", "output_length")
    model = config.get("model")
    if model is not None and model != section.values.get("model"):
        raise InputError(
            "the effort sets the model",
            where="system.model",
            expected="null, and an effort: low and medium are mini, high and xhigh are pro, auto is auto",
            got=repr(model),
        )
    options = JobOptions.of(section)
    api = Api.of(section, services, name="tavily", home=HOME)
    return JobSystem(Tavily(section, api), api, options, services, warn=_prices.warnings)
