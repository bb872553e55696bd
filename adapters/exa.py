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
from core.errors import CallError
from core.jobs import Answer, Api, Ask, JobOptions, JobSystem, Paid, Provider, Snapshot, State, state_of
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
        return _snapshot(await self._api.json("GET", f"/agent/runs/{handle['id']}"))

    async def cancel(self, handle: Handle) -> None:
        await self._api.json("POST", f"/agent/runs/{handle['id']}/cancel", {})

    async def find(self, ask: Ask) -> Snapshot | None:
        query = {"limit": str(_PAGE)}
        for _ in range(_PAGES):
            page = await self._api.json("GET", "/agent/runs", query=query)
            runs = page.get("data")
            for run in runs if isinstance(runs, list) else ():
                if isinstance(run, Mapping) and _token(run) == ask.token:
                    return _snapshot(run)
            cursor = page.get("nextCursor")
            if not page.get("hasMore") or not isinstance(cursor, str):
                return None
            query["cursor"] = cursor
        return None

    async def answer(self, ask: Ask, last: Snapshot) -> Answer:
        channel = channel_of(ask.task, self._delivery)
        run = last.body
        output = run.get("output")
        output = output if isinstance(output, Mapping) else {}
        text = output.get("text")
        files, notes = typed(output.get("structured"), ask.task.required_files)
        grounding = output.get("grounding")
        entries = [
            citation
            for ground in (grounding if isinstance(grounding, list) else ())
            if isinstance(ground, Mapping) and isinstance(ground.get("citations"), list)
            for citation in ground["citations"]
        ]
        request = run.get("request")
        return Answer(
            text=text if isinstance(text, str) else None,
            channel=channel,
            files=files,
            citations=merged(found for entry in entries if (found := source(entry)) is not None),
            paid=self._paid(run, last),
            echoed={
                "id": run.get("id"),
                "effort": request.get("effort") if isinstance(request, Mapping) else None,
                "stop_reason": run.get("stopReason"),
                "usage": run.get("usage"),
            },
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
                if not isinstance(run, Mapping) or not isinstance(run.get("id"), str):
                    continue
                latest = _snapshot(run)
                ask.keep(latest.handle or {})
        return latest if latest is not None else _snapshot({})

    def _paid(self, run: Mapping[str, Any], last: Snapshot) -> Paid:
        cost = run.get("costDollars")
        if isinstance(cost, Mapping):
            parts = {name: usd for name, usd in cost.items() if name != "total"}
            found = _prices.reported(cost.get("total"), parts)
            if found is not None:
                return found
        if last.state == "failed":
            return Paid()
        return _prices.listed(_prices.EXA.get(self._effort or ""))


def _snapshot(run: Mapping[str, Any]) -> Snapshot:
    word = str(run.get("status") or "")
    state = state_of(word, _STATES)
    reason = run.get("stopReason")
    if state == "completed" and reason in _CUT:
        state = "incomplete"
    error = run.get("error")
    said = str(error.get("message") or error.get("code") or "") if isinstance(error, Mapping) else ""
    if state == "incomplete":
        said = f"stopped early: {reason}"
    if not isinstance(run.get("id"), str):
        raise CallError("malformed", f"exa: a run without an id: {shown(run)}")
    return Snapshot(state, body=run, word=word, said=said, handle={"id": run["id"]})


def _token(run: Mapping[str, Any]) -> Any:
    metadata = run.get("metadata")
    request = run.get("request")
    if not isinstance(metadata, Mapping) and isinstance(request, Mapping):
        metadata = request.get("metadata")
    return metadata.get("token") if isinstance(metadata, Mapping) else None


def exa(config: Mapping[str, Any], services: Services) -> JobSystem:
    """The factory. Raises InputError for a value that can't be used."""
    section = section_of(config, "agent_effort", "max_cost_usd")
    options = JobOptions.of(section)
    api = Api.of(section, services, name="exa", home=HOME, key_header="x-api-key")
    return JobSystem(Exa(section, api), api, options, services, warn=_prices.warnings)
