"""How an answer's files come back: over the channel that the system's config names, and over no other.

    text     the answer is the text; the task asks for no files
    file     files that the provider keeps: of a sandbox, a container, a session
    schema   one typed JSON reply, {"files": [{"path", "content"}]}
    fence    blocks in the text; the benchmark reads them

The channel is authoritative: what comes another way is not looked for. Names are the provider's and not trusted:
they are matched to the names that the task asks for, and nothing else is kept.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from pathlib import PurePosixPath
from typing import Any, Final, Literal

from core.model import Task
from core.section import Section
from core.strict_json import shown, without_surrogates

Channel = Literal["text", "file", "schema", "fence"]
#: The name under which a typed reply of another form is kept, so that nothing is lost.
TYPED: Final = "output.json"


def channel_of(task: Task, configured: Channel | None) -> Channel:
    """The channel of one task: text where it asks for no files."""
    return "text" if not task.required_files else configured or "fence"


def checked_channel(section: Section, *allowed: Channel) -> Channel | None:
    """`system.delivery`; raises InputError with the channels that the provider has."""
    options: dict[Any, Channel | None] = {None: None, **{word: word for word in allowed}}
    found: Channel | None = section.choice("delivery", options)
    return found


def schema_of(task: Task, channel: Channel) -> Mapping[str, Any] | None:
    """The JSON Schema that a typed reply must have; None where none is asked for."""
    return task.output_schema if channel in ("schema", "text") else None


def message(task: Task, channel: Channel, *, folder: str = "", hint: str = "") -> str:
    """The one user message: the task's prompt, which says what to deliver; for files, also where.

    `folder` is where the provider's sandbox keeps what it gives back, `hint` what must be done there besides.
    """
    if channel != "file":
        return task.prompt
    listed = ", ".join(f"{folder}/{name}" for name in task.required_files)
    lines = f"Your output folder is {folder}. The files to write: {listed}. Name each path in your final answer."
    return "\n\n".join([task.prompt.rstrip(), f"{lines} {hint}".rstrip()])


def placed(
    found: Iterable[tuple[str, str | bytes]], required: Collection[str]
) -> tuple[dict[str, str], list[str]]:
    """Files by the names that the task asks for, and notes on what did not fit. The last of a name wins.

    A path matches the required name that it ends with (`/mnt/data/a.jsonl` is `a.jsonl`); the longest one where
    several do.
    """
    files: dict[str, str] = {}
    notes: list[str] = []
    for path, content in found:
        name = _matching(path, required)
        if name is None:
            notes.append(f"a file that was not asked for: {shown(path)}")
            continue
        text = _text(content)
        if text is None:
            notes.append(f"{name}: not UTF-8")
            continue
        if name in files:
            notes.append(f"{name}: delivered more than once, the last one counts")
        files[name] = text
    return dict(sorted(files.items())), notes


def typed(value: Any, required: Collection[str]) -> tuple[dict[str, str], list[str]]:
    """The files of a typed reply, given as an object or as its JSON text; notes on what does not fit."""
    if isinstance(value, str):
        try:
            value = without_surrogates(json.loads(value))
        except (ValueError, RecursionError):
            return {}, ["the typed reply is not JSON: it may have been cut"]
    entries = value.get("files") if isinstance(value, Mapping) else None
    if not isinstance(entries, list):
        if value in (None, {}, []):
            return {}, []
        return {TYPED: json.dumps(value, ensure_ascii=False)}, []
    pairs: list[tuple[str, str | bytes]] = []
    notes: list[str] = []
    for entry in entries:
        path = entry.get("path") if isinstance(entry, Mapping) else None
        content = entry.get("content") if isinstance(entry, Mapping) else None
        if isinstance(path, str) and isinstance(content, str):
            pairs.append((path, content))
        else:
            notes.append(f"an entry of `files` without a path or content: {shown(entry)}")
    files, more = placed(pairs, required)
    return files, [*notes, *more]


def hosts_of(task: Task, most: int) -> tuple[list[str], list[str]]:
    """The hosts of the task's block-list, each once, at most so many; a note on those that are left out.

    For APIs that take no paths: a blocked page costs its whole host.
    """
    found = (entry.partition("/")[0].strip().lower() for entry in task.blocked)
    hosts = list(dict.fromkeys(host for host in found if host))
    notes = [f"only the first {most} of {len(hosts)} blocked hosts were passed on"] if len(hosts) > most else []
    return hosts[:most], notes


def _matching(path: str, required: Collection[str]) -> str | None:
    parts = PurePosixPath(path.strip().replace("\\", "/")).parts
    if ".." in parts:
        return None
    matches = [name for name in required if parts[-len(PurePosixPath(name).parts) :] == PurePosixPath(name).parts]
    return max(matches, key=len, default=None)


def _text(content: str | bytes) -> str | None:
    if isinstance(content, str):
        return content
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return None
