"""A submission's records: files out of the channel, rows out of files.

The channel is the run's (`benchmark.delivery`), never guessed from what came: `file` reads the submission's files,
`fence` the blocks in its text, `schema` its text as one JSON reply. One thing comes first whatever the channel:
files that a submission already carries under a required name and that hold something (a replayed run, a program
that wrote files) are its answer, and a note says so where another channel was configured.

Every row that is not well-formed is kept with its file, line and reason. Nothing here raises for what a system
wrote.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from core.model import Submission, Task
from core.strict_json import decode, shown
from plugins.wandr.addresses import url_fault
from plugins.wandr.fence_files import files_in
from plugins.wandr.instruction import Delivery, item_fields
from plugins.wandr.model import Malformed, Node, Parsed, Record
from plugins.wandr.tree import required_files, tree_of

#: More notes than these are counted, not listed: a hostile message can be odd in every line.
MOST_NOTES: Final = 50
_SHOWN_REASON: Final = 300
_SHOWN_NAME: Final = 80


@dataclass(frozen=True, slots=True)
class Delivered:
    """What came over the channel: content by required name, and why a file that was sent can't be read."""

    files: Mapping[str, str] = field(default_factory=dict)
    faults: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Fault:
    """What is wrong with a row: the first field at fault (None: the row itself) and the reason."""

    field: str | None
    reason: str


def parse(
    task: Task | Node, submission: Submission, delivery: Delivery, *, allow_hosts: Collection[str] = ()
) -> Parsed:
    """The records and malformed rows of a submission, in the order of nodes and lines.

    `allow_hosts` are the `host:port` that pages may be fetched from although they are not public
    (`pages.allow_hosts`).
    """
    root = tree_of(task) if isinstance(task, Task) else task
    came = delivered(root, submission, delivery)
    records: list[Record] = []
    malformed: list[Malformed] = []
    for node in root.walk():
        content = came.files.get(node.file)
        if content is None or not content.strip():
            what = "the file is missing" if content is None else "the file is empty"
            reason = came.faults.get(node.file, what)
            malformed.append(Malformed(node.name, node.file, None, None, reason))
            continue
        for row in rows(node, content, allow_hosts):
            if isinstance(row, Record):
                records.append(row)
            else:
                malformed.append(row)
    return Parsed(tuple(records), tuple(malformed), _few(came.notes))


def delivered(root: Node, submission: Submission, delivery: Delivery) -> Delivered:
    """A submission's files as they came over the channel, by the names that the task asks for."""
    required = required_files(root)
    carried = any(submission.files.get(name, "").strip() for name in required)
    if delivery == "file" or carried:
        note = (
            ""
            if delivery == "file"
            else f"the submission carries its files; they are read, not its text ({delivery})"
        )
        return _matched(required, submission.files, {}, [note] if note else [])
    text = submission.text or ""
    if delivery == "fence":
        blocks, notes = files_in(text)
        files = {path: block.content for path, block in blocks.items() if block.content is not None}
        faults = {path: block.fault for path, block in blocks.items() if block.fault is not None}
        return _matched(required, files, faults, list(notes))
    return _reply(required, text)


def rows(node: Node, content: str, allow_hosts: Collection[str] = ()) -> Iterator[Record | Malformed]:
    """The rows of a node's file; blank lines are not counted."""
    fields = item_fields(node)
    line = -1
    # a byte-order mark is no part of the first row; only line feeds end a row
    for text in content.removeprefix("\ufeff").split("\n"):
        if not text.strip():
            continue
        line += 1
        value: Any = None
        try:
            value = _value(text)
            fault = row_fault(value, fields, allow_hosts)
        except ValueError as error:
            fault = Fault(None, str(error)[:_SHOWN_REASON])
        if fault is None:
            yield Record(node.name, line, value["item"], value["url"], tuple(value["excerpts"]), value["answer"])
        else:
            item, url = _readable(value)
            yield Malformed(node.name, node.file, line, fault.field, fault.reason, item, url)


def row_fault(row: Any, fields: Collection[str], allow_hosts: Collection[str] = ()) -> Fault | None:
    """The first thing that is wrong with a decoded row, or None. `fields` are those that its item must have."""
    if not isinstance(row, dict):
        return Fault(None, f"not an object: {shown(row)}")
    for name in ("item", "url", "excerpts", "answer"):
        if name not in row:
            return Fault(name, "missing")
    item, url, excerpts = row["item"], row["url"], row["excerpts"]
    if not isinstance(item, dict):
        return Fault("item", f"not an object: {shown(item)}")
    for name in fields:
        if name not in item:
            return Fault(f"item.{name}", "missing")
        if isinstance(item[name], str) and not item[name].strip():
            return Fault(f"item.{name}", "empty")
    for name, value in item.items():
        if not isinstance(value, str):
            return Fault(f"item.{name[:_SHOWN_NAME]}", f"not a text: {shown(value)}")
    if not isinstance(url, str):
        return Fault("url", f"not a text: {shown(url)}")
    if (reason := url_fault(url, allow_hosts)) is not None:
        return Fault("url", reason)
    if not isinstance(excerpts, list):
        return Fault("excerpts", f"not a list: {shown(excerpts)}")
    for at, excerpt in enumerate(excerpts):
        if not isinstance(excerpt, str):
            return Fault(f"excerpts[{at}]", f"not a text: {shown(excerpt)}")
    if not isinstance(row["answer"], dict):
        return Fault("answer", f"not an object: {shown(row['answer'])}")
    return None


def _value(text: str) -> Any:
    """The value of a JSON text that can be written again; raises ValueError with the reason."""
    value = decode(text)
    try:
        json.dumps(value, ensure_ascii=False, allow_nan=False).encode("utf-8")
    except UnicodeEncodeError:
        raise ValueError("a text holds half a character (a lone surrogate)") from None
    except ValueError:
        # 1e999 is JSON and reads as infinity
        raise ValueError("a number is too large") from None
    except RecursionError:
        raise ValueError("the JSON is nested too deeply") from None
    return value


def _readable(row: Any) -> tuple[dict[str, str], str]:
    """What a malformed row still says: the texts of its item, and its url."""
    if not isinstance(row, dict):
        return {}, ""
    item, url = row.get("item"), row.get("url")
    texts = item if isinstance(item, dict) else {}
    return {name: value for name, value in texts.items() if isinstance(value, str)}, url if isinstance(
        url, str
    ) else ""


def _reply(required: Collection[str], text: str) -> Delivered:
    """A schema-typed reply: `{"files": [{"path", "content"}]}` and nothing else."""
    try:
        reply = _value(text)
    except ValueError as error:
        return _unreadable(required, f"the reply is not what was asked for: {error}")
    entries = reply.get("files") if isinstance(reply, dict) else None
    if not isinstance(entries, list):
        return _unreadable(required, "the reply is not what was asked for: no list `files`")
    files: dict[str, str] = {}
    notes: list[str] = []
    for at, entry in enumerate(entries):
        path = entry.get("path") if isinstance(entry, dict) else None
        content = entry.get("content") if isinstance(entry, dict) else None
        if not isinstance(path, str) or not isinstance(content, str):
            notes.append(f"files[{at}]: not an object of two texts, path and content")
            continue
        if path in files:
            notes.append(f"{shown(path)}: given more than once, the last is used")
        files[path] = content
    return _matched(required, files, {}, notes)


def _unreadable(required: Collection[str], reason: str) -> Delivered:
    return Delivered(faults=dict.fromkeys(required, reason[:_SHOWN_REASON]))


def _matched(
    required: Collection[str], files: Mapping[str, str], faults: Mapping[str, str], notes: list[str]
) -> Delivered:
    """Files by required name. A path that is the name within a folder is taken for it where nothing else is."""
    content: dict[str, str] = {}
    broken: dict[str, str] = {}
    paths = [*files, *(path for path in faults if path not in files)]
    for path in paths:
        name = path if path in required else _last_part(path)
        if name not in required:
            notes.append(f"{shown(path)}: not a file that the task asks for")
            continue
        if name != path and (name in files or name in faults):
            notes.append(f"{shown(path)}: beside a file of the very name {name}, not used")
            continue
        if name != path:
            notes.append(f"{shown(path)}: taken for {name}")
        if path in files:
            content[name] = files[path]
        else:
            broken[name] = faults[path]
    return Delivered(content, broken, tuple(notes))


def _last_part(path: str) -> str:
    return re.split(r"[/\\]", path.strip("`'\" "))[-1]


def _few(notes: tuple[str, ...]) -> tuple[str, ...]:
    if len(notes) <= MOST_NOTES:
        return notes
    return (*notes[:MOST_NOTES], f"{len(notes) - MOST_NOTES} more of this kind")
