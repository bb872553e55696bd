"""Files out of the containers in which OpenAI's models run their code.

    GET /v1/containers/{id}/files   GET /v1/containers/{id}/files/{id}/content

A container can't be read for long: it dies after 20 idle minutes, and after about an hour in any case. So its
files are fetched as soon as the response has ended. What can't be had is a note.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any, Final, TypeVar

from adapters._delivery import placed
from adapters._openai import Held, Items, cleaned, containers_of, named_files
from adapters._values import count, is_id, listed, mapping, path_part, word
from core.errors import CallError
from core.jobs import Api, Ask
from core.jobs.patience import OUTAGE
from core.strict_json import shown

T = TypeVar("T")

#: Where the sandbox keeps what it gives back.
FOLDER: Final = "/mnt/data"
#: Files of a container: so many to a page (the API's most), and so many pages.
_PAGE: Final = 100
_PAGES: Final = 20


async def delivered(api: Api, ask: Ask, items: Items, notes: list[str]) -> Mapping[str, str]:
    """The required files, by name. Adds to `notes` what was odd.

    Every container of the run is looked through. Of several files of a name, those in the output folder go before
    those elsewhere, and of these the newest counts. Raises CallError where the provider is down.
    """
    containers = containers_of(items)
    listings = await asyncio.gather(*(_listing(api, ask, container, notes) for container in containers))
    held = [file for listing in listings for file in listing or ()]
    # a file that a message names is there even where a listing lacks it; what is listed goes before it
    gone = {container for container, listing in zip(containers, listings, strict=True) if listing is None}
    known = {(file.container, file.file) for file in held}
    held += [
        file
        for file in named_files(items)
        if file.container not in gone and (file.container, file.file) not in known
    ]
    own = {f"{FOLDER}/{name}" for name in ask.task.required_files}
    held.sort(key=lambda file: (file.path in own, file.made))
    # which files count is known before any is fetched: the last of a name
    places, odd = placed([(file.path, _content(file)) for file in held], ask.task.required_files)
    notes += odd
    found: list[tuple[str, str | bytes]] = []
    for name, path in places.items():
        content = await _had(ask, name, partial(api.download, path), notes)
        found += [] if content is None else [(name, content)]
    files, odd = placed(found, ask.task.required_files)
    notes += odd
    return files


async def _listing(api: Api, ask: Ask, container: str, notes: list[str]) -> list[Held] | None:
    """The files of a container; None where it can't be listed: it has expired, for one."""
    what = f"the files of container {shown(container)}"
    found: list[Held] = []
    after = ""
    for _ in range(_PAGES):
        page = await _had(ask, what, partial(_page, api, container, after), notes)
        if page is None:
            return found or None
        found += [file for entry in listed(page.get("data")) if (file := _held(container, entry)) is not None]
        last = page.get("last_id")
        if page.get("has_more") is not True or not isinstance(last, str) or last in ("", after):
            return found
        after = last
    notes.append(f"{what}: there are more than {_PAGE * _PAGES:,}, the first ones were looked at")
    return found


async def _page(api: Api, container: str, after: str) -> Mapping[str, Any]:
    query = {"limit": str(_PAGE), **({"after": after} if after else {})}
    page: Mapping[str, Any] = cleaned(await api.json("GET", f"{_path(container)}/files", query=query))
    return page


def _held(container: str, entry: Any) -> Held | None:
    said = mapping(entry)
    file, path = word(said.get("id")), said.get("path")
    if not is_id(file) or not isinstance(path, str):
        return None
    return Held(container, file, path, count(said.get("created_at")) or 0)


async def _had(ask: Ask, what: str, get: Callable[[], Awaitable[T]], notes: list[str]) -> T | None:
    """What a free request gives; None and a note where the provider does not give it.

    Raises CallError where the provider is down, or the run has to stop: the next start asks again.
    """
    try:
        found: T = await ask.patiently(get)
    except CallError as error:
        if error.kind in OUTAGE or error.meaning.stops_run:
            raise
        notes.append(f"{what}: {error.message}")
        return None
    return found


def _path(container: str) -> str:
    return f"/v1/containers/{path_part(container)}"


def _content(file: Held) -> str:
    return f"{_path(file.container)}/files/{path_part(file.file)}/content"
