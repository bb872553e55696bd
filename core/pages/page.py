"""A fetched page as data: what became of the fetch, and what the page says.

A failure's message is never page text. Whether a failed fetch counts against a record or is merely missing is
said once, here (`GONE`, `UNSEEN`): what is gone can't support anything; what we could not see is unknown.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, Protocol, get_args

PageStatus = Literal[
    "ok",
    # gone: the record's evidence does not exist
    "not_found",
    "gone",
    "no_such_name",
    "refused",
    "unsupported_scheme",
    "non_public",
    # unseen: it may exist, we could not see it
    "timeout",
    "server_error",
    "forbidden",
    "rate_limited",
    "bot_wall",
    "paywall",
    "empty_js",
    "too_large",
    "unsupported_type",
    "no_dns",
    "own_network",
    "not_archived",
]
STATUSES: Final[tuple[str, ...]] = get_args(PageStatus)
#: The leaf of a record that cites such a page has failed.
GONE: Final[frozenset[str]] = frozenset(
    {"not_found", "gone", "no_such_name", "refused", "unsupported_scheme", "non_public"}
)
#: The leaf is missing, and the share of such rows stands beside precision.
UNSEEN: Final[frozenset[str]] = frozenset(STATUSES) - GONE - {"ok"}


@dataclass(frozen=True, slots=True)
class Page:
    """One page as it was fetched.

    `texts` are the page's texts by extractor (at least one when `status` is ok): the union of them is what an
    excerpt is looked for in. `main_text` is the readable part for the judge; `title` and `metadata` stand beside
    it. `chain` are the redirects' addresses, `final_url` the last. `digest` is SHA-256 of the decoded body,
    `fetched_at` UTC in ISO 8601. `message` says why a fetch failed and is never page text.
    """

    url: str
    status: PageStatus
    final_url: str | None = None
    chain: tuple[str, ...] = ()
    http_status: int | None = None
    content_type: str | None = None
    charset: str | None = None
    fetched_at: str | None = None
    digest: str | None = None
    title: str = ""
    metadata: tuple[tuple[str, str], ...] = ()
    main_text: str = ""
    texts: tuple[tuple[str, str], ...] = ()
    message: str = ""
    extractor_version: str = ""


class Pages(Protocol):
    """The pages service that a grader is given (core.services.Services.pages)."""

    async def get(self, url: str) -> Page:
        """The page at an address, archived or fetched. What a page does is a status, never raised."""
