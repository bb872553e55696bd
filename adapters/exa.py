"""system=exa: Exa's Agent API.

    python -m core.run benchmark=wandr system=exa effort=low

    POST /agent/runs   GET /agent/runs/{id}   POST /agent/runs/{id}/cancel   GET /agent/runs (a run that was lost)

A run that ends `completed` because a budget or a limit was reached is incomplete. Files come as a typed reply
(`delivery: schema`); citations name pages and quote nothing. There is no field for blocked sites.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final

from adapters import _prices
from adapters._citations import merged, source
from adapters._delivery import channel_of, checked_channel, message, schema_of, typed
from adapters._values import is_id, listed, mapping, mappings, path_part, scalars, word
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
from core.section import Section
from core.services import Services
from core.strict_json import shown

HOME: Final = "https://api.exa.ai"
_STATES: Final[Mapping[str, State]] = {
    "queued": "queued",
    "running": "running",
    "completed": "completed",
    "failed": "failed",
    "cancelled": "cancelled",
    "timed_out": "timed_out",
}
#: Reasons to stop that leave the answer unfinished, although the run is `completed`.
_CUT: Final = ("budget_reached", "time_limit_reached", "token_limit_reached", "iteration_limit_reached", "stopped")
#: Runs that are looked through for a lost one: a page, and how many pages.
_PAGE: Final = 100
_PAGES: Final = 5
#: `effort=max` is a preview that a header unlocks.
_MAX_BETA: Final = "agent-max-effort-2026-07-27"


class Exa(Provider):
    """The Agent API."""

    can_cancel: ClassVar[bool] = True
    can_find: ClassVar[bool] = True

    def __init__(self, section: Section, api: Api) -> None:
        self._api = api
        self._effort = section.text_or_none("agent_effort")
        self._delivery = checked_channel(section, "schema", "fence")
        self._budget = section.number_or_none("max_cost_usd")
        self._stream = section.choice("transport", {"poll": False, "stream": True})
        self._deadline_s = section.seconds("timeout_s")
        self.settings = {
            "effort": self._effort,
            "delivery": self._delivery,
            "max_cost_usd": self._budget,
        }

    async def create(self, ask: Ask) -> Snapshot:
        channel = channel_of(ask.task, self._delivery)
        body: dict[str, Any] = {
            "query": message(ask.task, channel),
            "metadata": {"task_id": ask.task.id[:200], "attempt": str(ask.attempt), "token": ask.token},
        }
        if self._effort is not None:
            body["effort"] = self._effort
        schema = schema_of(ask.task, channel)
        if schema is not None:
            body["outputSchema"] = schema
        if self._budget is not None:
            body["budget"] = {"maxCostDollars": self._budget}
        headers = {"exa-beta": _MAX_BETA} if self._effort == "max" else {}
        if not self._stream:
            return _snapshot(await self._api.json("POST", "/agent/runs", body, headers=headers))
        return await self._streamed(ask, body, headers)

    async def advance(self, ask: Ask, handle: Handle) -> Snapshot:
        return _snapshot(await self._api.json("GET", _path(handle)))

    async def cancel(self, handle: Handle) -> None:
        # the answer may be empty
        await self._api.reply("POST", f"{_path(handle)}/cancel", {})

    async def find(self, ask: Ask) -> Snapshot | None:
        query = {"limit": str(_PAGE)}
        for _ in range(_PAGES):
            page = await self._api.json("GET", "/agent/runs", query=query)
            for run in mappings(page.get("data")):
                if _token(run) == ask.token and is_id(run.get("id")):
                    return _snapshot(run)
            cursor = page.get("nextCursor")
            if not page.get("hasMore") or not isinstance(cursor, str):
                return None
            query["cursor"] = cursor
        return None

    async def answer(self, ask: Ask, last: Snapshot) -> Answer:
        channel = channel_of(ask.task, self._delivery)
        run = last.body
        output = mapping(run, "output")
        text = output.get("text")
        files, notes = typed(output.get("structured"), ask.task.required_files)
        grounds = mappings(output.get("grounding"))
        entries = [entry for ground in grounds for entry in listed(ground.get("citations"))]
        said = {"id": run.get("id"), "effort": mapping(run, "request").get("effort")}
        return Answer(
            text=text if isinstance(text, str) else None,
            channel=channel,
            files=files,
            citations=merged(found for entry in entries if (found := source(entry)) is not None),
            paid=self._paid(run, last),
            echoed={**scalars({**said, "stop_reason": run.get("stopReason")}), "usage": scalars(run.get("usage"))},
            notes=tuple(notes),
        )

    async def _streamed(self, ask: Ask, body: Mapping[str, Any], headers: Mapping[str, str]) -> Snapshot:
        """The run's events: the first one names the run, the last one is its end."""
        latest: Snapshot | None = None
        async with self._api.events(
            "POST", "/agent/runs", body, headers=headers, timeout_s=self._deadline_s
        ) as events:
            async for event in events:
                run = event.json()
                if not is_id(mapping(run).get("id")):
                    continue
                latest = _snapshot(run)
                ask.keep(latest.handle or {})
        return latest if latest is not None else _snapshot({})

    def _paid(self, run: Mapping[str, Any], last: Snapshot) -> Paid:
        """What the reply says; else the effort's price, which is owed by a run that came to its own end alone."""
        cost = mapping(run, "costDollars")
        parts = {name: usd for name, usd in cost.items() if name != "total"}
        found = _prices.reported(cost.get("total"), parts)
        if found is not None:
            return found
        ended_well = last.state in ("completed", "incomplete")
        return _prices.listed(_prices.EXA.get(self._effort or "")) if ended_well else Paid()


def _path(handle: Handle) -> str:
    return f"/agent/runs/{path_part(handle['id'])}"


def _snapshot(run: Mapping[str, Any]) -> Snapshot:
    status, reason, error = word(run.get("status")), word(run.get("stopReason")), run.get("error")
    state = state_of(status, _STATES)
    said = word(error) or word(mapping(error).get("message")) or word(mapping(error).get("code"))
    if state == "completed" and reason in _CUT:
        state, said = "incomplete", f"stopped early: {reason}"
    if not is_id(run.get("id")):
        raise CallError("malformed", f"exa: a run without an id: {shown(run)}")
    void = account_fault("exa", error) if state == "failed" else None
    return Snapshot(state, body=run, word=status, said=said, handle={"id": run["id"]}, void=void)


def _token(run: Mapping[str, Any]) -> Any:
    """Our name for a run, among its fields or in the request that it repeats."""
    return mapping(run.get("metadata") or mapping(run, "request").get("metadata")).get("token")


def exa(config: Mapping[str, Any], services: Services) -> JobSystem:
    """The factory. Raises InputError for a value that can't be used."""
    section = section_of(config, "agent_effort", "max_cost_usd")
    options = JobOptions.of(section)
    api = Api.of(section, services, name="exa", home=HOME, key_header="x-api-key")
    return JobSystem(Exa(section, api), api, options, services, warn=_prices.warnings)
