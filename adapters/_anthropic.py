"""What Anthropic's two APIs have in common: the address, tokens and their price, files."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import PurePosixPath
from typing import Any, Final, Self

from adapters import _prices
from adapters._delivery import placed
from adapters._values import count, is_id, mapping, path_part, word
from core.errors import CallError
from core.jobs import Api, Ask, Paid
from core.jobs.patience import OUTAGE
from core.model import Usage
from core.section import Section
from core.services import Services
from core.strict_json import shown

HOME: Final = "https://api.anthropic.com"
#: Since this version temperature, top_p and top_k are refused, even at their defaults.
VERSION: Final = "2026-10-21"
#: Files of one answer that are looked at.
MOST_FILES: Final = 200


def api_of(section: Section, services: Services, *, betas: Sequence[str] = ()) -> Api:
    """The API as the section has it. Keys go as a bearer token, as the vendor's own client sends them."""
    headers = {"anthropic-version": VERSION}
    if betas:
        headers["anthropic-beta"] = ",".join(betas)
    return Api.of(section, services, name=section.text("name"), home=HOME, headers=headers)


def clean(reply: Mapping[str, Any]) -> dict[str, Any]:
    """A reply as it can be stored and sent on: without NaN, infinity and halves of characters.

    Raises CallError `malformed` for one that is nested too deeply.
    """
    try:
        text = json.dumps(reply, ensure_ascii=False).encode("utf-8", "replace")
        found: dict[str, Any] = json.loads(text, parse_constant=lambda _: None)
    except (ValueError, RecursionError) as error:
        raise CallError("malformed", f"not JSON that can be kept: {type(error).__name__}") from error
    return found


def refusal(details: Any) -> str:
    """Why the model refused, as `stop_details` has it; never empty."""
    found = mapping(details)
    parts = [word(found.get("category")), word(found.get("explanation"))]
    return ": ".join(["refusal", *(part for part in parts if part)])


@dataclass(frozen=True, slots=True)
class Tokens:
    """Tokens of one or several calls. `fresh`, `cached`, `written` and `written_1h` make up the input.

    `thinking` is part of `output`. `searches` and `fetches` are requests of the server's own tools.
    """

    fresh: int = 0
    cached: int = 0
    written: int = 0
    written_1h: int = 0
    output: int = 0
    thinking: int = 0
    searches: int = 0
    fetches: int = 0

    @classmethod
    def read(cls, usage: Any) -> Self | None:
        """The `usage` of a message or a session; None where it does not say how many there were."""
        found = mapping(usage)
        fresh, output = count(found.get("input_tokens")), count(found.get("output_tokens"))
        if fresh is None or output is None:
            return None
        by_age = mapping(found.get("cache_creation"))
        hour = count(by_age.get("ephemeral_1h_input_tokens")) or 0
        written = count(found.get("cache_creation_input_tokens"))
        if written is None:
            written = hour + (count(by_age.get("ephemeral_5m_input_tokens")) or 0)
        tools = mapping(found.get("server_tool_use"))
        return cls(
            fresh=fresh,
            cached=count(found.get("cache_read_input_tokens")) or 0,
            written=max(written - hour, 0),
            written_1h=hour,
            output=output,
            thinking=count(mapping(found.get("output_tokens_details")).get("thinking_tokens")) or 0,
            searches=count(tools.get("web_search_requests")) or 0,
            fetches=count(tools.get("web_fetch_requests")) or 0,
        )

    def plus(self, other: Tokens) -> Tokens:
        ours, theirs = asdict(self), asdict(other)
        return Tokens(**{name: ours[name] + theirs[name] for name in ours})

    def usage(self) -> Usage:
        """The same as a submission has it."""
        return Usage(
            input=self.fresh + self.cached + self.written + self.written_1h,
            cached_input=self.cached,
            output=self.output,
            reasoning=self.thinking or None,
        )

    def paid(self, price: _prices.ModelPrice | None, **fees: float) -> Paid:
        """What they cost; searches are charged beside the tokens, fetches are not."""
        searches = {"web_search": self.searches * _prices.ANTHROPIC_SEARCH}
        known = {name: usd for name, usd in {**searches, **fees}.items() if usd}
        return _prices.tokens_paid(
            price,
            fresh=self.fresh,
            cached=self.cached,
            written=self.written,
            written_1h=self.written_1h,
            output=self.output,
            fees=known,
        )


async def files_of(api: Api, ask: Ask, entries: Sequence[Mapping[str, Any]]) -> tuple[dict[str, str], list[str]]:
    """The files that the task asks for out of those that the provider keeps, and notes on what can't be had.

    `entries`: {"id", "filename", "downloadable"}; an id alone is looked up. Raises CallError where the provider
    can't be asked: what is there can be fetched by a later start.
    """
    required = ask.task.required_files
    pairs: list[tuple[str, str | bytes]] = []
    notes: list[str] = []
    if len(entries) > MOST_FILES:
        notes.append(f"{len(entries)} files: the last {MOST_FILES} are looked at")
    for entry in entries[-MOST_FILES:]:
        known, file_id = entry, word(entry.get("id"))
        if not is_id(file_id):
            notes.append(f"not usable as an id: {shown(entry.get('id'))}")
            continue
        path = f"/v1/files/{path_part(file_id)}"
        try:
            if "filename" not in known:
                known = await ask.patiently(partial(api.json, "GET", path))
            name = full_name(word(known.get("filename")), required)
            if known.get("downloadable") is False:
                notes.append(f"{shown(name)}: the provider does not give it back")
            elif placed([(name, "")], required)[0]:
                pairs.append((name, await ask.patiently(partial(api.download, f"{path}/content"))))
            else:
                notes.append(f"a file that was not asked for: {shown(name)}")
        except CallError as error:
            if not is_about_files(error):
                raise
            told = word(known.get("filename")) or file_id
            notes.append(f"{shown(told)}: could not be fetched: {error.message}")
    files, more = placed(pairs, required)
    return files, [*notes, *more]


def full_name(name: str, required: Sequence[str]) -> str:
    """The required name of a file that is listed without its folder, where only one can be meant."""
    meant = [full for full in required if PurePosixPath(full).name == name]
    return meant[0] if len(meant) == 1 and not placed([(name, "")], required)[0] else name


def is_about_files(error: CallError) -> bool:
    """Does the provider say that files can't be had? False: it can't be asked, so a later start may get them."""
    if error.meaning.stops_run or error.meaning.refusal:
        return False
    return error.http_status is not None or error.kind not in OUTAGE
