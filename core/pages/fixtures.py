"""Pages as files: a folder with `pages.jsonl` and the bodies beside it. Reading it opens no socket.

A line: `{"url", "status", "final_url", "chain", "content_type", "charset", "fetched_at", "file"}`. `url` and
`status` are needed, and `file` where the status is ok; `fetched_at` is ISO 8601 with an offset (UTC where it has
none). An export adds `http_status`, `headers`, `message`, `tried` and `rendered`, so that an import brings back
what was archived; other fields are ignored. A body lies inside the folder, under a relative path.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import Any, Final

from core.errors import InputError, place
from core.pages.fetched import Fetched, charset_of, iso
from core.pages.page import STATUSES

INDEX: Final = "pages.jsonl"
_BODIES: Final = "bodies"
_SUFFIXES: Final[Mapping[str, str]] = {
    "text/html": ".html",
    "application/xhtml+xml": ".html",
    "application/pdf": ".pdf",
    "text/plain": ".txt",
}
_SHOWN: Final = 80
#: Field → what it must be, for those that may also be absent or null.
_OPTIONAL: Final[Mapping[str, type]] = {
    "final_url": str,
    "content_type": str,
    "charset": str,
    "file": str,
    "message": str,
    "http_status": int,
    "rendered": bool,
}
_NAMES: Final = {str: "a text", int: "a whole number", bool: "true or false"}


@dataclass(frozen=True, slots=True)
class _Entry:
    """A line that was read: the fetch without its body, and where the body lies."""

    fetched: Fetched
    body: Path | None
    line: int


class Fixtures:
    """The pages of a folder, every line checked when it is opened; raises InputError.

    `key_of` makes the key of an address that pages are looked up by.
    """

    def __init__(self, folder: Path, key_of: Callable[[str], str]) -> None:
        self.folder = folder
        self._entries: dict[str, _Entry] = {}
        index = folder / INDEX
        try:
            lines = index.read_bytes().splitlines()
        except OSError as error:
            raise InputError(
                f"can't be read: {error.strerror}", where=str(index), expected=f"a folder with a file {INDEX}"
            ) from None
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            entry = _read(line, number, folder)
            key = key_of(entry.fetched.url)
            if key in self._entries:
                raise InputError(
                    f"the same page as line {self._entries[key].line}",
                    where=place(index, number, "url"),
                    expected="each address once",
                    got=repr(entry.fetched.url[:_SHOWN]),
                )
            self._entries[key] = entry

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, key: str) -> Fetched | None:
        """The page under an address's key, with its body; raises InputError when the body can't be read."""
        entry = self._entries.get(key)
        return None if entry is None else self._whole(entry)

    def all(self) -> Iterable[Fetched]:
        """Every page in the order of the lines; one at a time in memory."""
        return (self._whole(entry) for entry in self._entries.values())

    def _whole(self, entry: _Entry) -> Fetched:
        from dataclasses import replace

        if entry.body is None:
            return entry.fetched
        try:
            return replace(entry.fetched, body=entry.body.read_bytes())
        except OSError as error:
            where = place(self.folder / INDEX, entry.line, "file")
            raise InputError(f"the body can't be read: {error.strerror}", where=where) from None


def write(folder: Path, pages: Iterable[Fetched]) -> int:
    """Write pages as fixtures into a new or empty folder; returns how many. Raises InputError."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError("the folder exists and is not empty", where=str(folder), expected="a new folder")
    (folder / _BODIES).mkdir(parents=True, exist_ok=True)
    count = 0
    with (folder / INDEX).open("w", encoding="utf-8") as index:
        for fetched in pages:
            index.write(json.dumps(_row(folder, fetched), ensure_ascii=False) + "\n")
            count += 1
    return count


def _row(folder: Path, fetched: Fetched) -> dict[str, Any]:
    """A page's line; its body is written beside it, under its digest, so that equal bodies are kept once."""
    file = None
    digest = fetched.digest()
    if digest is not None:
        kind = (fetched.content_type or "").split(";")[0].strip().lower()
        file = f"{_BODIES}/{digest}{_SUFFIXES.get(kind, '.bin')}"
        (folder / file).write_bytes(fetched.body)
    meta = fetched.meta()
    row: dict[str, Any] = {
        "url": fetched.url,
        "status": fetched.status,
        "final_url": fetched.final_url,
        "chain": meta.get("chain", []),
        "content_type": fetched.content_type,
        "charset": fetched.charset,
        "fetched_at": iso(fetched.fetched_at),
        "file": file,
    }
    return {**row, **{name: value for name, value in meta.items() if name not in row}}


def _read(line: bytes, number: int, folder: Path) -> _Entry:
    index = folder / INDEX

    def refuse(field: str | None, message: str, expected: str, got: Any = None) -> InputError:
        said = None if got is None else repr(got)[:_SHOWN]
        return InputError(message, where=place(index, number, field), expected=expected, got=said)

    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise refuse(None, f"not JSON: {error}", "one JSON object a line", line[:_SHOWN]) from None
    if not isinstance(row, dict):
        raise refuse(None, "not an object", "one JSON object a line", row)
    url, status = row.get("url"), row.get("status")
    if not isinstance(url, str) or not url.strip():
        raise refuse("url", "no address", "the address of the page", url)
    if status not in STATUSES:
        raise refuse("status", "not the status of a page", f"one of {', '.join(STATUSES)}", status)
    for field, kind in _OPTIONAL.items():
        value = row.get(field)
        if value is not None and (not isinstance(value, kind) or (kind is int and isinstance(value, bool))):
            raise refuse(field, "of the wrong type", f"{_NAMES[kind]} or null", value)
    chain, headers, tried = row.get("chain") or [], row.get("headers") or {}, row.get("tried") or []
    if not isinstance(chain, list) or not all(isinstance(hop, str) for hop in chain):
        raise refuse("chain", "not a list of addresses", "a list of texts", chain)
    if not isinstance(headers, dict) or not all(isinstance(value, str) for value in headers.values()):
        raise refuse("headers", "not header fields", "an object of texts", headers)
    if not isinstance(tried, list) or not all(_is_pair(pair) for pair in tried):
        raise refuse("tried", "not what was tried", "a list of [address, status]", tried)
    at = _seconds(row.get("fetched_at"))
    if at is None:
        raise refuse("fetched_at", "not a time", "ISO 8601, as 2026-01-31T12:00:00+00:00", row.get("fetched_at"))
    file = row.get("file")
    if file is None and status == "ok":
        raise refuse("file", "a page that is ok has a body", f"the path of a file inside {folder}")
    body = None if file is None else _inside(folder, file)
    if file is not None and body is None:
        raise refuse("file", "no such file in the folder", f"the path of a file inside {folder}", file)
    content_type = row.get("content_type")
    meta = {
        **row,
        "chain": chain,
        "headers": headers,
        "tried": tried,
        "message": row.get("message") or "",
        "charset": row.get("charset") or charset_of(content_type),
        "final_url": row.get("final_url") or (chain[-1] if chain else url),
    }
    return _Entry(Fetched.from_meta(url, str(status), at, meta, b""), body, number)


def _is_pair(value: Any) -> bool:
    return isinstance(value, list) and len(value) == 2 and all(isinstance(item, str) for item in value)


def _seconds(value: Any) -> float | None:
    """A time in seconds since 1970, 0 where none is given, None where it is no time."""
    if value is None:
        return 0.0
    try:
        when = datetime.fromisoformat(value)
        return (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp()
    except (TypeError, ValueError, OverflowError):
        return None


def _inside(folder: Path, name: str) -> Path | None:
    """A file inside a folder, links followed; None for whatever is not."""
    relative = PurePosixPath(name)
    if not name or "\0" in name or "\\" in name or relative.is_absolute() or ".." in relative.parts:
        return None
    try:
        found = (folder / relative).resolve(strict=True)
    except OSError:
        return None
    return found if found.is_file() and found.is_relative_to(folder.resolve()) else None
