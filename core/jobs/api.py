"""One provider's HTTP API: where it is, who asks, and errors that name it.

    Api.json    ─▶ the JSON object of a 2xx answer
    Api.bytes   ─▶ the body of a download
    Api.events  ─▶ the server-sent events of an answer

Everything else is a CallError whose message begins with the provider's name and carries the request id, without
keys. Nothing here waits or tries again.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlencode, urlsplit, urlunsplit

from core.errors import CallError, InputError
from core.http import Http, Reply, causes, from_status
from core.pages.guard import Guard, Refusal
from core.section import Section
from core.sse import Event, events
from core.strict_json import without_surrogates

if TYPE_CHECKING:
    from core.services import Services

#: Bytes of one downloaded file; answers in JSON have core.body.MAX_BODY.
MAX_DOWNLOAD: Final = 64 * 1024 * 1024
#: Seconds without a byte after which a stream counts as broken; providers send keep-alives far more often.
IDLE_S: Final = 300.0


class Api:
    """A provider's API.

    `home` is the provider's own address (scheme and host, no path), `base_url` another one to use instead: a
    gateway, a server of one's own; a version at its end (`/v1`) is taken as part of the paths below. `key_env`
    names the variable with the key, `key_header` the header that carries it.
    """

    def __init__(
        self,
        services: Services,
        *,
        name: str,
        home: str,
        base_url: str | None,
        key_env: str | None,
        key_header: str = "authorization",
        headers: Mapping[str, str] | None = None,
        request_s: float = 120.0,
    ) -> None:
        self.name = name
        self.home = home.rstrip("/")
        self.base_url = (base_url or home).rstrip("/")
        self.key_env = key_env
        self._key_header, self._headers = key_header, dict(headers or {})
        self._request_s = request_s
        self._services = services
        self._guard = Guard()
        self._elsewhere: Http | None = None

    @classmethod
    def of(cls, section: Section, services: Services, *, name: str, home: str, **more: Any) -> Api:
        """The API as a system's section has it: its address, its key's variable, the seconds of a request."""
        return cls(
            services,
            name=name,
            home=home,
            base_url=section.text_or_none("base_url"),
            key_env=section.text_or_none("api_key_env"),
            request_s=section.seconds("request_timeout_s"),
            **more,
        )

    @property
    def account(self) -> str:
        """Whose limits apply: one address, one key."""
        return f"{self.name}@{self.base_url}#{self.key_env or ''}"

    def missing(self) -> list[str]:
        """What a run lacks to ask this API."""
        fault = self._services.keys.fault(self.key_env)
        return [] if fault is None else [f"system {self.name}: {fault} (system.api_key_env)"]

    async def json(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        *,
        query: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        timeout_s: float | None = None,
    ) -> dict[str, Any]:
        """The JSON object of a 2xx answer. Raises CallError: any other status, HTML, no object."""
        reply = await self.reply(method, path, body, query=query, headers=headers, timeout_s=timeout_s)
        try:
            found = without_surrogates(reply.json())
        except CallError as error:
            raise self._named(error) from error
        except RecursionError as error:
            deep = CallError("malformed", "the JSON is nested too deeply to be read", request_id=reply.request_id)
            raise self._named(deep) from error
        if not isinstance(found, dict):
            shown = "a list" if isinstance(found, list) else type(found).__name__
            raise self._named(
                CallError(
                    "malformed",
                    f"expected a JSON object, got {shown}",
                    request_id=reply.request_id,
                    raw=reply.text[:2000],
                    http_status=reply.status,
                )
            )
        return found

    async def reply(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        *,
        query: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        timeout_s: float | None = None,
    ) -> Reply:
        """A 2xx answer as it came. Raises CallError for every other."""
        url, fields, content = self._request(path, body, query, headers)
        try:
            reply = await self._services.http.request(
                method, url, headers=fields, content=content, timeout_s=timeout_s or self._request_s
            )
        except CallError as error:
            raise self._named(error) from error
        if not 200 <= reply.status < 300:
            raise self._named(from_status(reply, self._services.clock.now()))
        return reply

    async def download(self, path_or_url: str, *, query: Mapping[str, str] | None = None) -> bytes:
        """A file of the provider. An address elsewhere (a signed link) is asked without the key, and only if it
        lies in the public internet. Raises CallError, `bad_url` for an address that may not be fetched.
        """
        path = self._own_path(path_or_url)
        if path is not None:
            return (await self.reply("GET", path, query=query)).content
        if self._elsewhere is None:
            self._elsewhere = Http(self._services.clock, dialer=self._guard, trust_env=False)
        try:
            url = self._guard.check(path_or_url).url
            reply = await self._elsewhere.request("GET", url, timeout_s=self._request_s, max_body=MAX_DOWNLOAD)
        except (Refusal, CallError) as error:
            refusal = next((cause for cause in causes(error) if isinstance(cause, Refusal)), None)
            if refusal is not None:
                refused = CallError("bad_url", f"a link to a file may not be fetched: {refusal}")
                raise self._named(refused) from error
            assert isinstance(error, CallError)
            raise self._named(error) from error
        if not 200 <= reply.status < 300:
            raise self._named(from_status(reply, self._services.clock.now()))
        return reply.content

    @asynccontextmanager
    async def events(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        *,
        query: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        timeout_s: float,
    ) -> AsyncIterator[AsyncIterator[Event]]:
        """The events of a streamed answer; a 2xx answer that is plain JSON is one event.

        Raises CallError, also while the events are read: `cut` where the connection broke.
        """
        url, fields, content = self._request(path, body, query, {"accept": "text/event-stream", **(headers or {})})
        try:
            async with self._services.http.stream(
                method, url, headers=fields, content=content, timeout_s=timeout_s, idle_s=min(IDLE_S, timeout_s)
            ) as answer:
                kind = answer.headers.get("content-type", "").partition(";")[0].strip().lower()
                if not 200 <= answer.status < 300 or kind != "text/event-stream":
                    content = b"".join([piece async for piece in answer.pieces])
                    reply = Reply(answer.status, answer.headers, content, 0.0, url)
                    if not 200 <= answer.status < 300:
                        raise from_status(reply, self._services.clock.now())
                    reply.json()  # an HTML page with 200 is no answer
                    yield _single(reply.text)
                    return
                yield events(answer.pieces)
        except CallError as error:
            raise self._named(error) from error

    def _request(
        self,
        path: str,
        body: Mapping[str, Any] | None,
        query: Mapping[str, str] | None,
        headers: Mapping[str, str] | None,
    ) -> tuple[str, dict[str, str], bytes | None]:
        fields = {**self._auth(), **self._headers, **(headers or {})}
        content = None
        if body is not None:
            fields["content-type"] = "application/json"
            content = json.dumps(body, ensure_ascii=False, allow_nan=False).encode("utf-8", "replace")
        return self._url(path, query), fields, content

    def _url(self, path: str, query: Mapping[str, str] | None) -> str:
        base = self.base_url
        version = base.rpartition("/")[2]
        if path.startswith(f"/{version}/"):  # both the address and the path name the API's version
            base = base[: -len(version) - 1]
        separator = "&" if "?" in path else "?"
        return base + path + (separator + urlencode(query) if query else "")

    def _auth(self) -> dict[str, str]:
        try:
            key = self._services.keys.get(self.key_env)
        except InputError as error:
            raise self._named(CallError("key", str(error))) from error
        if key is None:
            return {}
        return {self._key_header: f"Bearer {key}" if self._key_header == "authorization" else key}

    def _own_path(self, path_or_url: str) -> str | None:
        """The path of an address of this provider; None for one elsewhere."""
        if path_or_url.startswith("/") and not path_or_url.startswith("//"):
            return path_or_url
        try:
            parts = urlsplit(path_or_url)
        except ValueError:  # the guard says what is wrong with it
            return None
        origin = f"{parts.scheme}://{parts.netloc}"
        for own in (self.home, self.base_url):
            known = urlsplit(own)
            if origin == f"{known.scheme}://{known.netloc}":
                return urlunsplit(("", "", parts.path or "/", parts.query, ""))
        return None

    def _named(self, error: CallError) -> CallError:
        """The error with the provider's name before it and without keys. Named once."""
        prefix = f"{self.name}: "
        message = self._services.keys.redact(error.message)
        return CallError(
            error.kind,
            message if message.startswith(prefix) else prefix + message,
            retry_after_s=error.retry_after_s,
            # a gateway may echo anything there
            request_id=None if error.request_id is None else self._services.keys.redact(error.request_id),
            usage=error.usage,
            cost_usd=error.cost_usd,
            raw=None if error.raw is None else self._services.keys.redact(error.raw),
            model=error.model,
            http_status=error.http_status,
            crowded=error.crowded,
        )

    async def aclose(self) -> None:
        """Close what downloads from elsewhere have opened."""
        if self._elsewhere is not None:
            await self._elsewhere.aclose()


async def _single(text: str) -> AsyncIterator[Event]:
    yield Event(text)
