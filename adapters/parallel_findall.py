"""system=parallel_findall: Parallel's FindAll API, which answers with a list of entities.

    python -m core.run benchmark=FILE system=parallel_findall effort=medium

    POST /v1beta/findall/runs   GET /v1beta/findall/runs/{id}   GET …/{id}/result   POST …/{id}/cancel

FindAll looks for candidates, checks each against the conditions and gives those that match, with the pages and
excerpts that the verdict rests on. It writes no report and no file of a form that a task prescribes: the text is a
list of the matches, and output.json holds every candidate with its status and basis. It cannot leave out sites.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Final

from adapters import _prices
from adapters._citations import merged
from adapters._delivery import TYPED, channel_of
from adapters._parallel import HOME, STATES, evidence, handle_of, metadata, not_there, path_of
from adapters._values import count, mapping, mappings, scalars, word
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
    State,
    state_of,
)
from core.jobs.options import section_of
from core.jobs.provider import Handle
from core.model import Citation
from core.section import Section
from core.services import Services

RUNS: Final = "/v1beta/findall/runs"
INGEST: Final = "/v1beta/findall/ingest"
BETA: Final = {"parallel-beta": "findall-2025-09-15"}
#: What `match_limit` may be. `preview` looks at no more than ten candidates, whatever the limit.
LIMITS: Final = (5, 1000)
#: Reasons to end that leave the list unfinished, although the run is `completed`.
_CUT: Final = ("timeout", "insufficient_funds", "error_occurred", "user_cancelled")
#: Ordinary ends after which there may be more to find.
_MORE: Final = ("match_limit_met", "low_match_rate")
_FIELDS: Final = ("candidate_id", "name", "url", "description", "match_status", "output", "basis")


class FindAll(Provider):
    """The FindAll API. It has no field for blocked sites (its exclude_list names entities)."""

    can_cancel: ClassVar[bool] = True

    def __init__(self, section: Section, api: Api) -> None:
        self._api = api
        self.generator: str = section.choice("generator", {name: name for name in _prices.FINDALL})
        self.match_limit = section.whole("match_limit", least=LIMITS[0])
        if self.match_limit > LIMITS[1]:
            raise section.refuse("match_limit", f"a whole number from {LIMITS[0]} to {LIMITS[1]}")
        self._entity_type = section.text("entity_type")
        self._ingest = section.choice("ingest", {True: True, False: False})
        self.settings = {
            "generator": self.generator,
            "match_limit": self.match_limit,
            "entity_type": self._entity_type,
            "ingest": self._ingest,
        }

    async def create(self, ask: Ask) -> Snapshot:
        body = {
            **(await self._search(ask)),
            "generator": self.generator,
            "match_limit": self.match_limit,
            "metadata": metadata(ask),
        }
        return _snapshot(await self._api.json("POST", RUNS, body, headers=BETA))

    async def advance(self, ask: Ask, handle: Handle) -> Snapshot:
        path = path_of(RUNS, handle)
        run = _snapshot(await self._api.json("GET", path, headers=BETA), handle)
        if run.state not in TERMINAL:
            return run
        if mapping(run.body, "run", "status").get("termination_reason") == "insufficient_funds":
            return replace(run, void=self._broke(run))
        try:
            result = await self._api.json("GET", f"{path}/result", headers=BETA)
        except CallError as error:
            ended_well = run.state in ("completed", "incomplete")
            if ended_well and error.kind == "not_found":
                raise not_there("parallel_findall", error) from error
            if ended_well or error.kind not in ("not_found", "bad_request"):
                raise
            return run  # a run that failed need not have a result
        return replace(run, body={**run.body, "candidates": result.get("candidates")})

    async def cancel(self, handle: Handle) -> None:
        # the answer may be empty
        await self._api.reply("POST", f"{path_of(RUNS, handle)}/cancel", {}, headers=BETA)

    async def answer(self, ask: Ask, last: Snapshot) -> Answer:
        candidates = [
            {key: entry[key] for key in _FIELDS if key in entry} for entry in mappings(last.body.get("candidates"))
        ]
        matched = [entry for entry in candidates if entry.get("match_status") == "matched"]
        run = mapping(last.body, "run")
        status = mapping(run, "status")
        reason = status.get("termination_reason")
        notes = []
        if candidates and not matched:
            notes.append(f"no candidate matches ({len(candidates)} looked at)")
        if matched and reason in _MORE:
            notes.append(f"ended by {reason}: there may be more matches")
        text, citations = _listed(matched)
        return Answer(
            text=text or None,
            channel=channel_of(ask.task, "schema"),
            files={TYPED: json.dumps({"candidates": candidates}, ensure_ascii=False)} if matched else {},
            citations=merged(citations),
            paid=self._paid(last.state, status, len(matched)),
            echoed={
                **scalars({"id": run.get("findall_id"), "generator": run.get("generator")}),
                "termination_reason": word(reason) or None,
                "metrics": scalars(status.get("metrics")),
            },
            notes=tuple(notes),
        )

    async def _search(self, ask: Ask) -> dict[str, Any]:
        """What to look for: the task's own words, or what Parallel makes of them (`ingest`)."""
        prompt = ask.task.prompt
        if not self._ingest:
            condition = {"name": "asked_for", "description": prompt}
            return {"objective": prompt, "entity_type": self._entity_type, "match_conditions": [condition]}
        try:
            made = await ask.patiently(
                lambda: self._api.json("POST", INGEST, {"objective": prompt}, headers=BETA),
            )
        except CallError as error:
            if error.meaning.billed == "no":
                raise
            # no run was started: it may be tried again
            raise CallError("server", error.message, request_id=error.request_id) from error
        conditions = [
            {"name": one["name"], "description": one["description"]}
            for one in mappings(made.get("match_conditions"))
            if isinstance(one.get("name"), str) and isinstance(one.get("description"), str)
        ]
        kind = made.get("entity_type")
        if not conditions or not isinstance(kind, str):
            raise CallError("server", "FindAll drew up no conditions for this task: try system.ingest=false")
        return {"objective": prompt, "entity_type": kind, "match_conditions": conditions}

    def _broke(self, run: Snapshot) -> CallError:
        """A list that an empty account cut short says nothing of how long it would have been; it is owed."""
        paid = self._paid(run.state, mapping(run.body, "run", "status"), 0)
        return CallError("quota", f"parallel_findall: {run.said}", cost_usd=paid.usd)

    def _paid(self, state: State, status: Mapping[str, Any], n_matched: int) -> Paid:
        """The generator's fixed price and that of each match; unknown for runs that did not end well."""
        if state not in ("completed", "incomplete"):
            return Paid()
        said = count(mapping(status, "metrics").get("matched_candidates_count"))
        n = n_matched if said is None else said
        fixed, each = _prices.FINDALL[self.generator]
        return Paid(
            fixed + each * n, "computed", {"run": fixed, "matches": each * n} if each * n else {"run": fixed}
        )


def _snapshot(run: Mapping[str, Any], known: Handle | None = None) -> Snapshot:
    status = mapping(run, "status")
    named, reason = status.get("status"), status.get("termination_reason")
    state = state_of(named, STATES)
    if state == "completed" and reason in _CUT:
        state = "incomplete"
    said = f"ended by {reason}" if state in TERMINAL - {"completed"} and isinstance(reason, str) else ""
    return Snapshot(
        state,
        body={"run": run},
        word=word(named),
        said=said,
        handle=handle_of(run, "findall_id", named, known),
    )


def _listed(matched: Sequence[Mapping[str, Any]]) -> tuple[str, list[Citation]]:
    """The matches as a list to read, and their sources, each with the place of the entry that rests on it."""
    text, citations = "", []
    for number, entry in enumerate(matched, start=1):
        url = _line(entry.get("url"))
        name, description = _line(entry.get("name")), _line(entry.get("description"))
        lines = [f"{number}. {name or '(no name)'}" + (f" <{url}>" if url else "")]
        lines += [f"   {description}"] if description else []
        for condition, verdict in mapping(entry.get("output")).items():
            value = mapping(verdict).get("value", verdict)
            lines.append(f"   {_line(condition)}: {_line(value)}")
        start = len(text)
        text += "\n".join(lines)
        place = {"start": start, "end": len(text)}
        if url:
            citations.append(Citation(url=url, **place))
        citations += [found.model_copy(update=place) for found in evidence(entry.get("basis"))]
        text += "\n"
    return text, citations


def _line(value: Any) -> str:
    """A value as it stands in a line of text."""
    if value is None:
        return ""
    return " ".join((value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)).split())


def parallel_findall(config: Mapping[str, Any], services: Services) -> JobSystem:
    """The factory. Raises InputError for a value that can't be used."""
    section = section_of(config, "generator", "match_limit")
    if section.values.get("price") is not None:
        raise section.refuse("price", "null: runs are priced by generator and match, not by token")
    # an account of its own: new runs are counted apart from the Task API's
    api = Api.of(section, services, name="parallel_findall", home=HOME, key_header="x-api-key")
    provider = FindAll(section, api)
    options = JobOptions.of(section)
    if options.estimate_usd is None:
        fixed, each = _prices.FINDALL[provider.generator]
        options = replace(options, estimate_usd=fixed + each * provider.match_limit)
    return JobSystem(provider, api, options, services, warn=_prices.warnings)
