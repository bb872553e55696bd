"""system=anthropic_managed: Anthropic's Managed Agents (beta), an agent with a sandbox of its own.

    python -m core.run benchmark=wandr system=anthropic_managed budget.usd=500

    POST /v1/agents   POST /v1/environments      once a run, free of charge; ids of your own can be set instead
    POST /v1/sessions                            the job, with the task as its first event
    GET  /v1/sessions/{id}   /events             where it stands, and why it stopped
    POST /v1/sessions/{id}/events                user.interrupt
    GET  /v1/sessions                            a session that was lost
    GET  /v1/files?scope_id={id}                 what it left in /mnt/session/outputs

A session is idle before it begins as well as after its end: it is over when its last `session.status_idle` event
gives a reason to stop. Its text is the agent's last message, which cites nothing but the addresses in it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import asdict, replace
from datetime import date
from functools import partial
from typing import Any, ClassVar, Final

from adapters import _prices
from adapters._anthropic import VERSION, Tokens, api_of, clean, files_of, full_name, is_about_files
from adapters._anthropic_events import cited_in, end_of, ids_of, kind_of, last_error, last_text
from adapters._delivery import channel_of, checked_channel, hosts_of, message, placed
from adapters._values import amount, count, is_id, mapping, mappings, path_part, scalars, word
from core.errors import CallError
from core.jobs import Answer, Api, Ask, JobOptions, JobSystem, Paid, Provider, Snapshot, account_fault
from core.jobs.options import section_of
from core.jobs.provider import Handle
from core.model import Task
from core.prices import price_from_config
from core.section import Section
from core.services import Services
from core.strict_json import shown

#: The second one unlocks the list of a session's files.
BETAS: Final = ("managed-agents-2026-04-01", "files-api-2025-04-14")
_FOLDER: Final = "/mnt/session/outputs"
#: Events that are kept of the many that a session has.
_KEPT: Final = frozenset(
    {
        "agent.message",
        "agent.tool_result",
        "user.interrupt",
        "session.error",
        "session.status_idle",
        "session.status_running",
        "session.status_terminated",
    }
)
#: Sessions that are looked through for a lost one, and the pages of any list that are read.
_PAGE: Final = "100"
_PAGES: Final = 200
_FIND_PAGES: Final = 5
#: Hosts that a tool takes.
_MOST_BLOCKED: Final = 64
#: Files appear within seconds after the end: how often in a row their list must be the same, with all that was
#: asked for in it, and without.
_CALM: Final = 2
_CALM_WITHOUT: Final = 4
#: Dollars below which a session's ceiling cuts many tasks short: a published run paid 46 to 49 a task on average.
_LOW_CEILING: Final = 100.0


class Sessions(Provider):
    """Managed Agents."""

    can_cancel: ClassVar[bool] = True
    can_find: ClassVar[bool] = True

    def __init__(self, section: Section, api: Api) -> None:
        self._api = api
        self._model = section.text("model")
        self._effort = section.text_or_none("model_effort")
        self._delivery = checked_channel(section, "file", "fence")
        self._ceiling = section.number_or_none("max_list_cost_usd", least=0.01)
        self._price = _prices.configured(price_from_config(section.values.get("price"), "system.price"))
        section.choice("transport", {"poll": True})
        self._own_agent = section.text_or_none("agent_id")
        self._agent, self._environment = self._own_agent, section.text_or_none("environment_id")
        self._making = asyncio.Lock()
        # an agent of the user's has tools of the user's: they are left as they are
        self.can_block = self._own_agent is None
        self.settings = {
            "model": self._model,
            "effort": self._effort,
            "agent_id": self._own_agent,
            "environment_id": self._environment,
            "max_list_cost_usd": self._ceiling,
            "delivery": self._delivery,
            "api_version": VERSION,
        }

    async def create(self, ask: Ask) -> Snapshot:
        agent, environment = await self._made()
        channel = channel_of(ask.task, self._delivery)
        content = [{"type": "text", "text": message(ask.task, channel, folder=_FOLDER)}]
        body: dict[str, Any] = {
            "agent": self._configured(agent, ask.task),
            "environment_id": environment,
            "title": ask.task.id[:200],
            "metadata": {"task_id": ask.task.id[:500], "attempt": str(ask.attempt), "token": ask.token},
            "initial_events": [{"type": "user.message", "content": content}],
        }
        if self._ceiling is not None:
            cents = str(round(self._ceiling * 100))
            body["budget"] = {"type": "limit", "max_list_cost": {"amount": cents, "currency": "USD"}}
        return self._named(await self._api.json("POST", "/v1/sessions", body))

    async def advance(self, ask: Ask, handle: Handle) -> Snapshot:
        session = clean(await self._api.json("GET", _path(handle)))
        status = word(session.get("status"))
        if status not in ("idle", "terminated"):
            return Snapshot("running", body={"session": session}, word=status, handle=handle)
        events = await self._events(handle)
        state, reason, said = end_of(events, terminated=status == "terminated")
        void = account_fault(self._api.name, last_error(events)) if state == "failed" else None
        if void is not None:  # what the session has used until then is owed
            void = CallError(void.kind, void.message, cost_usd=self._spent(session))
        return Snapshot(
            state,
            body={"session": session, "events": events},
            word=reason or status,
            said=said,
            handle=handle,
            void=void,
        )

    async def cancel(self, handle: Handle) -> None:
        await self._api.json("POST", f"{_path(handle)}/events", {"events": [{"type": "user.interrupt"}]})

    async def find(self, ask: Ask) -> Snapshot | None:
        query = {"limit": _PAGE}
        for _ in range(_FIND_PAGES):
            page = await self._api.json("GET", "/v1/sessions", query=query)
            for session in mappings(page.get("data")):
                if mapping(session.get("metadata")).get("token") == ask.token:
                    return self._named(session)
            cursor = word(page.get("next_page"))
            if not cursor:
                return None
            query["page"] = cursor
        return None

    async def answer(self, ask: Ask, last: Snapshot) -> Answer:
        channel = channel_of(ask.task, self._delivery)
        session, events = mapping(last.body.get("session")), last.body.get("events") or []
        files: Mapping[str, str] = {}
        notes: list[str] = []
        if last.handle is not None:  # None: the provider no longer has the session
            if "events" not in last.body:  # the deadline passed while it ran
                events = await ask.patiently(partial(self._events, last.handle))
            if channel == "file":
                files, notes = await self._files(ask, last.handle)
        if self.can_block:
            notes = [*notes, *hosts_of(ask.task, _MOST_BLOCKED)[1]]
        text = last_text(events)
        tokens = Tokens.read(session.get("usage"))
        agent, usage, stats = (mapping(session.get(name)) for name in ("agent", "usage", "stats"))
        return Answer(
            text=text or None,
            channel=channel,
            files=files,
            citations=cited_in(text, events),
            usage=tokens.usage() if tokens else None,
            paid=self._paid(usage, tokens),
            echoed={
                **scalars(
                    {
                        "id": word(session.get("id")),
                        "model": word(mapping(agent, "model").get("id")),
                        "effort": kind_of(mapping(agent, "model").get("effort")) or None,
                        "agent": word(agent.get("id")),
                        "agent_version": count(agent.get("version")),
                        "active_seconds": amount(stats.get("active_seconds")),
                    }
                ),
                "usage": asdict(tokens) if tokens else None,
            },
            notes=tuple(notes),
        )

    async def _made(self) -> tuple[str, str]:
        """The agent and the environment of this run's sessions; made by whoever needs them first."""
        async with self._making:
            if self._agent is None:
                name = f"leadline {self._model} {self._effort or 'default'}"
                body = {"name": name, "model": self._model_config(), "tools": [_toolset()]}
                self._agent = await self._free("/v1/agents", body)
            if self._environment is None:
                config = {"type": "cloud", "networking": {"type": "unrestricted"}}
                self._environment = await self._free("/v1/environments", {"name": "leadline", "config": config})
            return self._agent, self._environment

    async def _free(self, path: str, body: Mapping[str, Any]) -> str:
        """Make what costs nothing; its id. A failure is none that may have been billed: it is tried again."""
        try:
            found = (await self._api.json("POST", path, body)).get("id")
        except CallError as error:
            if error.meaning.billed == "no":
                raise
            raise CallError("server", error.message, request_id=error.request_id, raw=error.raw) from error
        if not isinstance(found, str) or not found:
            raise CallError("server", f"{self._api.name}: {path} answered without an id")
        return found

    def _model_config(self) -> dict[str, Any]:
        return {"id": self._model} if self._effort is None else {"id": self._model, "effort": self._effort}

    def _configured(self, agent: str, task: Task) -> str | dict[str, Any]:
        """The agent of this session: a user's with our model and effort, or ours with the task's blocked sites."""
        if self._own_agent is not None:
            return {"type": "agent_with_overrides", "id": agent, "model": self._model_config()}
        hosts, _ = hosts_of(task, _MOST_BLOCKED)
        return {"type": "agent_with_overrides", "id": agent, "tools": [_toolset(hosts)]} if hosts else agent

    def _named(self, session: Mapping[str, Any]) -> Snapshot:
        """A session that was just made or found; where it stands is asked later."""
        if not is_id(session.get("id")):
            raise CallError("malformed", f"{self._api.name}: a session without a usable id: {shown(session)}")
        session = clean(session)
        return Snapshot(
            "queued", body={"session": session}, word=word(session.get("status")), handle={"id": session["id"]}
        )

    async def _listed(self, path: str, query: Mapping[str, str]) -> AsyncIterator[Mapping[str, Any]]:
        """The entries of a list, page by page. A cursor that comes again is the end."""
        cursors: set[str] = set()
        wanted = dict(query)
        for _ in range(_PAGES):
            page = clean(await self._api.json("GET", path, query=wanted))
            for entry in mappings(page.get("data")):
                yield entry
            cursor = word(page.get("next_page"))
            if not cursor or cursor in cursors:
                return
            cursors.add(cursor)
            wanted["page"] = cursor

    async def _events(self, handle: Handle) -> list[Mapping[str, Any]]:
        events = self._listed(f"{_path(handle)}/events", {"limit": "1000"})
        return [event async for event in events if word(event.get("type")) in _KEPT]

    async def _files(self, ask: Ask, handle: Handle) -> tuple[Mapping[str, str], list[str]]:
        """What the session left, once its list of files has settled."""
        required = ask.task.required_files
        found: list[Mapping[str, Any]] = []
        calm = 0

        async def settle() -> None:
            nonlocal found, calm
            query = {"scope_id": handle["id"], "limit": _PAGE}
            listed = [entry async for entry in self._listed("/v1/files", query)]
            calm = calm + 1 if calm and ids_of(listed) == ids_of(found) else 1
            found = listed
            names = [(full_name(word(entry.get("filename")), required), "") for entry in found]
            there = len(placed(names, required)[0]) == len(set(required))
            if calm < (_CALM if there else _CALM_WITHOUT):
                raise CallError("not_found", f"{self._api.name}: the list of files has not settled yet")

        notes = []
        try:
            await ask.patiently(settle)
        except CallError as error:
            if not is_about_files(error):
                raise
            notes.append(error.message)
        # the newest of a name counts
        found = sorted(found, key=lambda entry: word(entry.get("created_at")))
        files, more = await files_of(self._api, ask, found)
        return files, [*notes, *more]

    def _spent(self, session: Mapping[str, Any]) -> float | None:
        usage = mapping(session.get("usage"))
        return self._paid(usage, Tokens.read(usage)).usd

    def _paid(self, usage: Mapping[str, Any], tokens: Tokens | None) -> Paid:
        """The session's own figure, in cents; without it, tokens, searches and running time at list prices."""
        cost = mapping(usage.get("list_cost"))
        cents = word(cost.get("amount"))
        if (
            cost.get("currency") == "USD"
            and cents.isascii()
            and cents.isdigit()
            and len(cents) < 12
            and int(cents)
        ):
            return _prices.reported(int(cents) / 100) or Paid()
        if tokens is None or tokens == Tokens():
            return Paid()
        price = self._price or _prices.price_of(self._model, _prices.ANTHROPIC)
        return tokens.paid(
            price, runtime=(amount(usage.get("active_seconds")) or 0.0) / 3600 * _prices.ANTHROPIC_HOUR
        )


def _path(handle: Handle) -> str:
    return f"/v1/sessions/{path_part(handle['id'])}"


def _toolset(blocked: Sequence[str] = ()) -> dict[str, Any]:
    """Every tool of the agent's, without the sites that searching and fetching pass over."""
    toolset: dict[str, Any] = {"type": "agent_toolset_20260401"}
    if blocked:
        names = ("web_search", "web_fetch")
        toolset["configs"] = [{"name": name, "blocked_domains": list(blocked)} for name in names]
    return toolset


def anthropic_managed(config: Mapping[str, Any], services: Services) -> JobSystem:
    """The factory. Raises InputError for a value that can't be used."""
    section = section_of(config, "model_effort", "max_list_cost_usd")
    api = api_of(section, services, betas=BETAS)
    provider = Sessions(section, api)
    options = JobOptions.of(section)
    ceiling = section.number_or_none("max_list_cost_usd")
    if ceiling is not None and options.estimate_usd is not None:
        options = replace(options, estimate_usd=min(options.estimate_usd, ceiling))

    def warn(today: date) -> list[str]:
        found = _prices.warnings(today)
        if ceiling is not None and ceiling < _LOW_CEILING:
            found.append(
                f"system.max_list_cost_usd={ceiling:g} will cut sessions short: a research task cost 46 to 49 "
                f"dollars on average in a published run; {_LOW_CEILING:g} or more leaves room"
            )
        return found

    return JobSystem(provider, api, options, services, warn=warn)
