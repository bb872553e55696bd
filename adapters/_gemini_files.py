"""The files in the sandbox of Gemini's antigravity agent: listed in pages, then each downloaded by its path.

    GET /{version}/environments/{id}/files/workspace?recursive=true&page_size=…&page_token=…
    GET /{version}/environments/{id}/files/{path}?alt=media

Only files whose name the task asks for are downloaded. A snapshot of the sandbox may lag behind the agent, so what
is missing is asked for again for a while.
"""

from __future__ import annotations

from functools import partial
from pathlib import PurePosixPath
from typing import Any, Final

from adapters._delivery import placed
from adapters._values import listed, mapping, path_part, word
from core.errors import CallError
from core.jobs import Api, Ask
from core.jobs.patience import OUTAGE
from core.strict_json import shown

#: Where the agent is told to write.
FOLDER: Final = "/workspace"
#: Entries of a page, and pages that are read.
_PAGE: Final = 100
_PAGES: Final = 50
#: How many files that nobody asked for are named.
_NAMED: Final = 5


async def files_of(ask: Ask, api: Api, root: str, environment: Any) -> tuple[dict[str, str], list[str]]:
    """The files that the task asks for, and notes on what could not be had or was not asked for.

    `root` is the API's path up to its version, `environment` what the reply gives as its sandbox's id. Raises
    CallError where it is the network, the provider's health or the key that fails: the job is read again later.
    """
    if not isinstance(environment, str) or not environment:
        return {}, ["the reply names no environment: there is nowhere to look for files"]
    base = f"{root}/environments/{path_part(environment)}/files"
    notes: list[str] = []
    try:
        entries = await _listed(ask, api, base + FOLDER, notes)
    except CallError as error:
        return {}, [_note("the list of files", error)]
    required = ask.task.required_files
    names = {PurePosixPath(name).name for name in required}
    wanted = [entry for entry in entries if entry[0].rpartition("/")[2] in names]
    strange = [shown(path) for path, _ in entries if path.rpartition("/")[2] not in names]
    if strange:
        notes.append(f"files that were not asked for, {len(strange)}: {', '.join(strange[:_NAMED])}")
    in_place = {f"{FOLDER}/{name}".lstrip("/") for name in required}
    # of several with one name the last counts: the newest, but before all the one in its place
    wanted.sort(key=lambda entry: (entry[0] in in_place, entry[1]))
    found: list[tuple[str, str | bytes]] = []
    for path, _ in wanted:
        parts = path.split("/")
        if any(part in ("", ".", "..") for part in parts):
            notes.append(f"a path that leads elsewhere: {shown(path)}")
            continue
        address = "/".join([base, *(path_part(part) for part in parts)])
        try:
            found.append((path, await ask.patiently(partial(api.download, address, query={"alt": "media"}))))
        except CallError as error:
            notes.append(_note(path, error))
    files, more = placed(found, required)
    return files, [*notes, *more]


async def _listed(ask: Ask, api: Api, address: str, notes: list[str]) -> list[tuple[str, str]]:
    """Paths of the files, each with the time of its last change."""
    found: list[tuple[str, str]] = []
    query = {"recursive": "true", "page_size": str(_PAGE)}
    for _ in range(_PAGES):
        page = await ask.patiently(partial(api.json, "GET", address, query=dict(query)))
        for entry in listed(page.get("files")):
            path = mapping(entry).get("path")
            if not isinstance(path, str):
                notes.append(f"an entry of the list of files without a path: {shown(entry)}")
            elif entry.get("type", "file") == "file":
                found.append((path.removeprefix("/"), str(entry.get("modified") or "")))
        token = word(page.get("next_page_token"))
        if not token:
            return found
        query["page_token"] = token
    notes.append(f"the list of files is longer than {_PAGE * _PAGES}: the rest was not read")
    return found


def _note(what: str, error: CallError) -> str:
    """What is said of a file that the provider does not give. Raises what is not its word on the file."""
    if error.kind in OUTAGE or (error.meaning.stops_run and error.http_status != 403):
        raise error
    return f"{what} could not be had: {error.message}"
