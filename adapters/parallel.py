"""system=parallel: Parallel's Task API.

    python -m core.run benchmark=wandr system=parallel effort=high system.ladder=wandr

    POST /v1/tasks/runs   GET /v1/tasks/runs/{id}   GET …/{id}/result?timeout=N   GET …/{id}/events

A run can be neither cancelled nor looked up by anything but its id. The result is a request of its own, made when
the run says that it is completed: 404 there means "no such run", "not yet" and "failed" alike. Each field of a
result has its basis: pages with the excerpts that support it. Runs are priced by processor; failed ones are free.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from adapters import _prices
from adapters._citations import merged
from adapters._delivery import channel_of, checked_channel, message, schema_of, typed
from adapters._parallel import HOME, STATES, evidence, handle_of, metadata, not_there, path_of
from adapters._values import mapping, mappings, scalars, word
from adapters._watching import NO_NEWS, watched
from core.errors import CallError
from core.jobs import (
    TERMINAL,
    Answer,
    Api,
    Ask,
    JobOptions,
    JobSystem,
    Paid,
    Provider,
    Snapshot,
    account_fault,
    state_of,
)
from core.jobs.options import section_of
from core.jobs.provider import Handle
from core.section import Section
from core.services import Services
from core.sse import Event

RUNS: Final = "/v1/tasks/runs"
#: Characters of input and output form together. Documented, and not enforced on every processor.
MOST_CHARACTERS: Final = 15_000
#: `source_policy` takes so many entries; each is a domain, or a domain with the beginning of a path.
MOST_BLOCKED: Final = 200
#: Seconds that a blocking request is given on top of the time that the server was told to wait.
GRACE_S: Final = 30.0


class Parallel(Provider):
    """The Task API. Entries of the block-list are passed on as they are: it takes domains with paths."""

    can_block = True

    def __init__(self, section: Section, api: Api) -> None:
        self._api = api
        self._processor = section.text("processor")
        self._delivery = checked_channel(section, "schema", "fence")
        self._transport = section.choice("transport", {word: word for word in ("poll", "blocking", "stream")})
        self._wait_s = section.whole("wait_s")
        self.settings = {"processor": self._processor, "delivery": self._delivery}

    async def create(self, ask: Ask) -> Snapshot:
        channel = channel_of(ask.task, self._delivery)
        body: dict[str, Any] = {
            "processor": self._processor,
            "input": message(ask.task, channel),
            "task_spec": {"output_schema": self._form(ask)},
            "metadata": metadata(ask),
        }
        if self._transport == "stream":
            body["enable_events"] = True
        if ask.task.blocked:
            body["source_policy"] = {"exclude_domains": list(dict.fromkeys(ask.task.blocked))[:MOST_BLOCKED]}
        return _snapshot(await self._api.json("POST", RUNS, body))

    async def advance(self, ask: Ask, handle: Handle) -> Snapshot:
        path = path_of(RUNS, handle)
        if self._transport == "blocking":
            found = await self._blocking(path, handle)
            if found is not None:
                return found
        elif self._transport == "stream":
            await watched(self._api, f"{path}/events", _over, timeout_s=float(self._wait_s))
        run = _snapshot(await self._api.json("GET", path), known=handle)
        if run.state != "completed":
            return run
        try:
            return _result(await self._api.json("GET", f"{path}/result"), handle)
        except CallError as error:
            if error.kind == "not_found":
                raise not_there("parallel", error) from error
            raise

    async def answer(self, ask: Ask, last: Snapshot) -> Answer:
        channel = channel_of(ask.task, self._delivery)
        run, output = mapping(last.body.get("run")), mapping(last.body.get("output"))
        content = output.get("content")
        text = content if isinstance(content, str) else None
        files, notes = typed(content, ask.task.required_files) if text is None or channel == "schema" else ({}, [])
        return Answer(
            text=text,
            channel=channel,
            files=files,
            citations=merged(evidence(output.get("basis"))),
            paid=self._paid(run),
            echoed=scalars({"id": run.get("run_id"), "processor": run.get("processor")}),
            notes=(*self._limits(ask), *notes, *_warnings(run)),
        )

    async def _blocking(self, path: str, handle: Handle) -> Snapshot | None:
        """The result as soon as it is there; None where the run has to be asked how it stands."""
        try:
            query = {"timeout": str(self._wait_s)}
            limit_s = self._wait_s + GRACE_S
            found = await self._api.json("GET", f"{path}/result", query=query, timeout_s=limit_s)
            return _result(found, handle)
        except CallError as error:
            if error.http_status == 408 or error.kind == "timeout":
                return Snapshot("running", word="running")
            if error.kind in NO_NEWS:
                return None
            raise

    def _form(self, ask: Ask) -> dict[str, Any]:
        schema = schema_of(ask.task, channel_of(ask.task, self._delivery))
        return {"type": "text"} if schema is None else {"type": "json", "json_schema": schema}

    def _limits(self, ask: Ask) -> list[str]:
        """Documented limits that the task passes; whether they hold is the provider's affair."""
        form = json.dumps(self._form(ask), ensure_ascii=False)
        length = len(message(ask.task, channel_of(ask.task, self._delivery))) + len(form)
        over = []
        if length > MOST_CHARACTERS:
            over.append(f"input and form are {length:,} characters, above the documented {MOST_CHARACTERS:,}")
        if len(set(ask.task.blocked)) > MOST_BLOCKED:
            over.append(f"only the first {MOST_BLOCKED} addresses of the block-list were passed on")
        return over

    def _paid(self, run: Mapping[str, Any]) -> Paid:
        """The processor's price: what the reply names, else what was asked for. `-fast` costs the same."""
        state = state_of(run.get("status"), STATES)
        if state == "failed":
            return _prices.listed(0.0)
        if state != "completed":
            return Paid()
        echoed = run.get("processor")
        name = echoed if isinstance(echoed, str) else self._processor
        return _prices.listed(_prices.PARALLEL.get(name.removesuffix("-fast")))


def _snapshot(run: Mapping[str, Any], output: Any = None, known: Handle | None = None) -> Snapshot:
    status, error = run.get("status"), mapping(run, "error")
    state = state_of(status, STATES)
    parts = (error.get("message"), mapping(error, "detail").get("reason"), error.get("ref_id"))
    said = "; ".join(part for part in parts if isinstance(part, str))
    return Snapshot(
        state,
        body={"run": run, "output": output},
        word=word(status),
        said=said,
        handle=handle_of(run, "run_id", status, known),
        void=account_fault("parallel", said) if state == "failed" else None,
    )


def _over(event: Event) -> bool:
    return state_of(mapping(event.json(), "run").get("status"), STATES) in TERMINAL


def _result(found: Mapping[str, Any], handle: Handle) -> Snapshot:
    """The run as its result shows it."""
    return _snapshot(mapping(found.get("run")), found.get("output"), handle)


def _warnings(run: Mapping[str, Any]) -> list[str]:
    return [text for one in mappings(run.get("warnings")) if isinstance(text := one.get("message"), str)]


def parallel(config: Mapping[str, Any], services: Services) -> JobSystem:
    """The factory. Raises InputError for a value that can't be used."""
    section = section_of(config, "processor")
    if section.values.get("price") is not None:
        raise section.refuse("price", "null: runs are priced by processor, not by token")
    options = JobOptions.of(section)
    api = Api.of(section, services, name="parallel", home=HOME, key_header="x-api-key")
    return JobSystem(Parallel(section, api), api, options, services, warn=_prices.warnings)
