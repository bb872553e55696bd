"""What a fetch brought back, before anybody reads the body. Pure data, as the archive and fixtures keep it."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

from core.errors import InputError
from core.pages.page import GONE, STATUSES, PageStatus

#: Header fields that are kept: what tells a page's kind, age and language. Never cookies.
KEPT_HEADERS: Final = (
    "content-type",
    "content-language",
    "content-disposition",
    "content-length",
    "last-modified",
    "etag",
    "date",
    "age",
    "server",
    "retry-after",
    "x-robots-tag",
)
_LONGEST_HEADER: Final = 500
#: Our own fault, or our network's: not a word about the page, and never kept.
OURS: Final[frozenset[PageStatus]] = frozenset({"no_dns", "own_network", "not_archived"})
_CHARSET: Final = re.compile(r"charset\s*=\s*[\"']?([^\s;\"']+)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Fetched:
    """One fetch. `status` is `ok` when there is a body to read, else why there is none.

    `chain` are the addresses after the first: the variant that was asked for instead, redirects, the last one
    being `final_url`. `tried` are the address and its variants with what became of each, when there was more
    than one. `body` is decoded from its transfer, not from its charset. `fetched_at` is in seconds since 1970,
    to the millisecond. `rendered` says that the body is a browser's view of the page and not what the server sent.
    """

    url: str
    status: PageStatus
    fetched_at: float
    final_url: str | None = None
    chain: tuple[str, ...] = ()
    http_status: int | None = None
    content_type: str | None = None
    charset: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    message: str = ""
    tried: tuple[tuple[str, str], ...] = ()
    rendered: bool = False

    @property
    def settled(self) -> bool:
        """Whether asking again would be asking for another answer: there is a body, or the page is gone."""
        return self.status == "ok" or self.status in GONE

    def digest(self) -> str | None:
        """SHA-256 of the body, as hex; None where a fetch brought none."""
        return hashlib.sha256(self.body).hexdigest() if self.status == "ok" or self.body else None

    def meta(self) -> dict[str, Any]:
        """All but address, status, time and body, as JSON."""
        tree: dict[str, Any] = {
            "final_url": self.final_url,
            "chain": list(self.chain),
            "http_status": self.http_status,
            "content_type": self.content_type,
            "charset": self.charset,
            "headers": dict(self.headers),
            "message": self.message,
            "tried": [list(pair) for pair in self.tried],
            "rendered": self.rendered,
        }
        return {name: writable(value) for name, value in tree.items() if value}

    @classmethod
    def from_meta(cls, url: str, status: str, fetched_at: float, meta: Mapping[str, Any], body: bytes) -> Fetched:
        """The counterpart of `meta`; raises InputError for what no fetch of ours can have written."""
        if status not in STATUSES:
            raise InputError(f"{status!r} is not the status of a page", expected=f"one of {', '.join(STATUSES)}")
        known = {
            "final_url": meta.get("final_url"),
            "http_status": meta.get("http_status"),
            "content_type": meta.get("content_type"),
            "charset": meta.get("charset"),
            "message": meta.get("message", ""),
            "rendered": bool(meta.get("rendered")),
        }
        return cls(
            url=url,
            status=status,  # type: ignore[arg-type]  # one of STATUSES, as was just seen
            fetched_at=fetched_at,
            chain=tuple(meta.get("chain", ())),
            headers=dict(meta.get("headers", {})),
            tried=tuple((str(address), str(state)) for address, state in meta.get("tried", ())),
            body=body,
            **known,
        )


def charset_of(content_type: str | None) -> str | None:
    """The charset that a Content-Type names."""
    found = _CHARSET.search(content_type or "")
    return found[1].lower()[:40] if found else None


def kept_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """The header fields worth keeping, each at a bounded length."""
    return {name: headers[name][:_LONGEST_HEADER] for name in KEPT_HEADERS if headers.get(name)}


def writable(value: Any) -> Any:
    """A JSON value whose texts can be encoded: what is half a character becomes a question mark."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode("utf-8")
    if isinstance(value, dict):
        return {str(writable(key)): writable(item) for key, item in value.items()}
    return [writable(item) for item in value] if isinstance(value, list) else value


def iso(seconds: float) -> str:
    """A time in ISO 8601, UTC; to the millisecond, which is what a fetch keeps."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")
