"""What an answer, or its absence, says of a page. Pure: fetch.py asks, and acts on it."""

from __future__ import annotations

import errno
import socket
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final
from urllib.parse import urljoin

from core.body import BodyTooLong
from core.errors import CallError
from core.http import causes, retry_hint
from core.pages.guard import Refusal
from core.pages.page import PageStatus

if TYPE_CHECKING:
    from core.reply import Reply

#: Seconds before a page that timed out, broke off or answered 5xx is asked again.
SECOND_CHANCE_S: Final = 1.0
#: The same for a server that limits requests and does not say for how long.
AFTER_A_LIMIT_S: Final = 5.0
#: A server that wants to be left alone for longer than this is not asked again.
LONGEST_WAIT_S: Final = 60.0

#: Kinds of content that nobody quotes from: their bodies are not read.
_UNREADABLE: Final = ("image/", "audio/", "video/", "font/")
#: What a client without cookies and accounts gets where a reader may get a page is not gone.
_BY_STATUS: Final[Mapping[int, PageStatus]] = {
    401: "forbidden",
    402: "paywall",
    403: "forbidden",
    404: "not_found",
    407: "own_network",  # the proxy's word
    408: "timeout",
    410: "gone",
    425: "server_error",
    429: "rate_limited",
    451: "forbidden",
}
#: What a client's own exceptions say may hold what the server sent; these words stand for them.
_IN_OUR_WORDS: Final[Mapping[str, str]] = {
    "malformed": "what came back is not HTTP",
    "cut": "the answer broke off",
    "hung_up": "the server hung up without an answer",
    "timeout": "no answer in time",
    "bad_url": "the address can't be asked for",
}
_NO_NETWORK: Final = frozenset({errno.ENETUNREACH, errno.ENETDOWN, errno.EACCES, errno.EPERM})
#: The name does not exist; all else that getaddrinfo says is about the name service.
_NO_SUCH_NAME: Final = frozenset({socket.EAI_NONAME, getattr(socket, "EAI_NODATA", socket.EAI_NONAME)})


class EndedError(Exception):
    """A fetch that brought no page. `again_s`: seconds until it may be tried once more, None for never."""

    def __init__(
        self, status: PageStatus, message: str, *, again_s: float | None = None, http_status: int | None = None
    ) -> None:
        super().__init__(message)
        self.status, self.message, self.again_s, self.http_status = status, message, again_s, http_status


def is_wanted(status: int, headers: Mapping[str, str]) -> bool:
    """Whether an answer's body is read: a page's, of a kind that may hold text."""
    return (
        200 <= status < 300
        and status not in (204, 205)
        and not headers.get("content-type", "").lower().startswith(_UNREADABLE)
    )


def of_answer(reply: Reply, now: float) -> EndedError | None:
    """Why an answer is no page; None when it is one. `now` in seconds since 1970."""
    status = reply.status
    said = f"the server answered {status}"
    if status in (204, 205):
        return EndedError("unsupported_type", f"{said}, which means that there is no content", http_status=status)
    if 200 <= status < 300:
        if is_wanted(status, reply.headers):
            return None
        kind = reply.headers.get("content-type", "")[:60]
        return EndedError("unsupported_type", f"a page of the type {kind!r} is not read", http_status=status)
    if 300 <= status < 400:
        return EndedError("server_error", f"{said} and no address to go to", http_status=status)
    if reply.headers.get("cf-mitigated", "").lower() == "challenge":
        return EndedError("bot_wall", f"{said} with a challenge for browsers", http_status=status)
    fallback: PageStatus = "server_error" if status >= 500 else "forbidden"
    found = _BY_STATUS.get(status, fallback)
    return EndedError(found, said, again_s=_again_s(found, reply, now), http_status=status)


def _again_s(status: PageStatus, reply: Reply, now: float) -> float | None:
    if status not in ("rate_limited", "server_error", "timeout"):
        return None
    hint = retry_hint(reply.headers, None, now)
    if hint is None:
        return AFTER_A_LIMIT_S if status == "rate_limited" else SECOND_CHANCE_S
    return max(hint, SECOND_CHANCE_S) if hint <= LONGEST_WAIT_S else None


def of_failure(error: CallError, *, proxied: bool = False) -> EndedError:
    """What a request that got no answer says, our network being whole. `proxied`: it went to a proxy first."""
    chain = list(causes(error))
    for cause in chain:
        if isinstance(cause, Refusal):
            return EndedError(cause.status, cause.message)
    if isinstance(error, BodyTooLong):
        return EndedError("too_large", error.message)
    if error.kind == "name":
        numbers = {cause.errno for cause in chain if isinstance(cause, socket.gaierror)}
        if proxied:
            return EndedError("own_network", "the proxy's name does not resolve")
        if numbers and not numbers & _NO_SUCH_NAME:
            return EndedError("no_dns", f"the name service gave no answer: {error.message}")
        return EndedError("no_such_name", "there is no such host")
    if error.kind == "timeout" or any(isinstance(cause, TimeoutError) for cause in chain):
        return EndedError("timeout", _IN_OUR_WORDS["timeout"], again_s=SECOND_CHANCE_S)
    if error.kind == "connect":
        return _of_connect(chain, error, proxied=proxied)
    if error.kind == "bad_url":
        return EndedError("unsupported_scheme", _said(error, chain))
    if error.kind == "tls":
        return EndedError("server_error", f"no safe connection: {error.message}")
    again = SECOND_CHANCE_S if error.kind in ("hung_up", "cut") else None
    return EndedError("server_error", _said(error, chain), again_s=again)


def _said(error: CallError, chain: list[BaseException]) -> str:
    """What is said of a failure: never a client's text about bytes that came from a page's server."""
    ours = all(isinstance(cause, CallError) for cause in chain)
    return error.message if ours else _IN_OUR_WORDS.get(error.kind, f"the request failed ({error.kind})")


def _of_connect(chain: list[BaseException], error: CallError, *, proxied: bool) -> EndedError:
    numbers = {cause.errno for cause in chain if isinstance(cause, OSError)}
    if proxied:
        return EndedError("own_network", f"the proxy can't be reached: {error.message}")
    if errno.ECONNREFUSED in numbers:
        return EndedError("refused", "the host refuses connections")
    if numbers & _NO_NETWORK:
        return EndedError("own_network", error.message)
    return EndedError("server_error", error.message, again_s=SECOND_CHANCE_S)


def redirected(url: str, reply: Reply) -> str | None:
    """The address that an answer sends us to; None when it sends us nowhere."""
    location = reply.headers.get("location", "").strip()
    if not 300 <= reply.status < 400 or reply.status == 304 or not location:
        return None
    try:
        return urljoin(url, location)
    except ValueError:
        return location  # the guard says what is wrong with it
