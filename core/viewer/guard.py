"""Who may ask the viewer, and what every reply says to the browser.

The server listens on the loopback address, but every page that a browser shows can send requests there. So a
request needs, in this order:

1. our own host and port in `Host` (else another name was made to point here: DNS rebinding);
2. `Origin`, where there is one, of our own; `Sec-Fetch-Site`, where there is one, of no other site;
3. the token: once as `?token=…`, which sets a cookie and leads to the address without it, then by the cookie;
4. for POST, `Origin`, a header that no form can send, and JSON.

Replies allow nothing but this package's own scripts and styles. There is no CORS header: no other site may read.
"""

from __future__ import annotations

import hmac
import logging
import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from core.errors import InputError

#: The header of a POST: a browser sends it to another origin only after asking, and nobody here says yes.
CSRF_HEADER: Final = "X-Leadline"
#: Bytes of a request's body.
LARGEST_BODY: Final = 256 * 1024
#: Characters of an address with its query.
_LONGEST_PATH: Final = 4096
HEADERS: Final[Mapping[str, str]] = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src data: 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
_log = logging.getLogger(__name__)
_OWN_SITES: Final = ("none", "same-origin")
_TOKEN: Final = re.compile(r"[\x21-\x7e]{1,200}")


@dataclass
class Guard:
    """The door. `port` is set once the server has one."""

    token: str = field(default_factory=lambda: secrets.token_urlsafe(24), repr=False)
    port: int = 0

    @property
    def cookie(self) -> str:
        """Its name: browsers keep one jar for all ports of a host, so two viewers need two names."""
        return f"leadline_{self.port}"

    @property
    def hosts(self) -> tuple[str, str]:
        """What `Host` may say."""
        return f"127.0.0.1:{self.port}", f"localhost:{self.port}"

    def refuses(self, request: web.Request) -> str:
        """Why a request gets no answer; empty where it may have one, or is a first visit with the right token."""
        if request.host not in self.hosts:
            return "the request is for another host"
        origin = request.headers.get("Origin")
        if origin is not None and origin not in [f"http://{host}" for host in self.hosts]:
            return "the request comes from another origin"
        if request.method == "POST":
            if origin is None or request.headers.get(CSRF_HEADER) != "1":
                return "a change must come from the viewer's own page"
            if request.content_type != "application/json":
                return "a change must be JSON"
        elif request.method not in ("GET", "HEAD"):
            return "the viewer answers GET, HEAD and POST"
        if len(request.raw_path) > _LONGEST_PATH:
            return "the address is too long"
        if self.is_first_visit(request):
            return ""
        if request.headers.get("Sec-Fetch-Site", "none") not in _OWN_SITES:
            return "the request comes from another site: open the address in a tab of its own"
        if not self._is_token(request.cookies.get(self.cookie, "")):
            return "no token: open the address that the command printed"
        return ""

    def is_first_visit(self, request: web.Request) -> bool:
        """Whether the request brings the token in its address."""
        return request.method == "GET" and self._is_token(request.query.get("token", ""))

    def _is_token(self, word: str) -> bool:
        return bool(_TOKEN.fullmatch(word)) and hmac.compare_digest(word, self.token)

    def middleware(self) -> Middleware:
        """What stands before every handler: refuses, lets in, and puts the headers on every reply."""

        @web.middleware
        async def guarded(request: web.Request, handler: Handler) -> web.StreamResponse:
            response = await self._answer(request, handler)
            response.headers.update(HEADERS)
            return response

        return guarded

    async def _answer(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        reason = self.refuses(request)
        if reason:
            return web.Response(status=403, text=f"refused: {reason}\n")
        if self.is_first_visit(request):
            return self._let_in(request)
        try:
            return await handler(request)
        except web.HTTPException as error:
            return web.Response(status=error.status, text=f"{error.status}: {error.reason}\n")
        except InputError as error:
            return web.Response(status=404, text=f"{error}\n")
        except Exception:  # noqa: BLE001 -- logged, and told to the browser without its text
            # the reply to a bug of ours needs the headers as well; what a page shows must not tell of paths
            _log.exception("the viewer could not answer")
            return web.Response(status=500, text="the viewer could not answer: its terminal says why\n")

    def _let_in(self, request: web.Request) -> web.Response:
        kept = {name: value for name, value in request.query.items() if name != "token"}
        # one slash at the start: two would name another host
        address = request.rel_url.with_path("/" + request.path.lstrip("/")).with_query(kept)
        response = web.Response(status=303, headers={"Location": str(address)})
        response.set_cookie(self.cookie, self.token, httponly=True, samesite="Strict", path="/")
        return response
