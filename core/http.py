"""The one place that builds an HTTP client, and that says what an exception means.

The API is httpx's, the sockets are aiohttp's (httpx-aiohttp): at 200 calls in flight that costs a thirteenth
of httpcore's CPU. Requests go straight to the transport: cookies, redirects, auth flows and hooks of
httpx.AsyncClient are what an evaluation must not have, and they cost as much CPU as the call itself.

    Http.request ─▶ Reply            any status (core/reply.py says what it means)
    Http.stream  ─▶ Streamed         the same, read piece by piece
                 └▶ CallError        no usable answer: connect, name, tls, bad_url, timeout, hung_up, cut

`classify` reads an exception's cause, not its class: httpx-aiohttp reports a refused connection, an
unknown name and a server that read the request and hung up all as httpx.ConnectTimeout, and lets some of
aiohttp's own exceptions through. Only the first two are safe to send again where a call costs money.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, Protocol

from core import __version__
from core.body import MAX_BODY, pieces, read
from core.errors import CallError
from core.reply import Reply, from_status, retry_hint, shortened

if TYPE_CHECKING:
    import httpx

    from core.clock import Clock

__all__ = [
    "Dialer",
    "Http",
    "Reply",
    "Streamed",
    "causes",
    "classify",
    "from_status",
    "retry_hint",
]

#: Seconds for a TCP and TLS handshake; a server that takes longer is not reachable.
CONNECT_TIMEOUT_S: Final = 20.0
#: Idle connections are closed by us before most servers do, so that a POST seldom meets a closing one.
KEEPALIVE_S: Final = 15.0

#: Bytes of one header field that are read: some sites' security policies are longer than aiohttp's 8 KiB.
MAX_HEADER: Final = 64 * 1024

_HEADERS: Final = (
    ("accept", "application/json, */*"),
    # what we can decode with a cap; br and zstd expand a kilobyte into tens of megabytes in one step
    ("accept-encoding", "gzip, deflate"),
    ("user-agent", f"leadline/{__version__}"),
)


@dataclass(frozen=True, slots=True)
class Streamed:
    """An answer whose body is still coming: `pieces` gives its bytes as they arrive."""

    status: int
    headers: Mapping[str, str]
    url: str
    pieces: AsyncIterator[bytes]


class Dialer(Protocol):
    """Which addresses a client may connect to; raises OSError for any other.

    aiohttp asks `resolve` for every name, each time a connection is opened, and `socket` for every address
    that is about to be connected to, literal ones too.
    """

    async def resolve(self, host: str, port: int = 0, family: int = 0) -> list[dict[str, Any]]:
        """The addresses of a name, as aiohttp's resolvers give them."""

    def socket(self, address: Any) -> socket.socket:
        """An unconnected socket for one address, given as getaddrinfo gives it."""

    async def close(self) -> None:
        """Nothing more will be asked."""


class Http:
    """Requests to systems, judges and pages. Never follows redirects, keeps no cookies.

    `transport` replaces the network (tests). `trust_env` honours HTTP(S)_PROXY, ALL_PROXY and NO_PROXY;
    loopback addresses never go through such a proxy. `proxy` is one for every address, whatever the
    environment says. `dialer` has a say in every connection. `headers` replace the usual ones. At most
    `max_connections` sockets are open at once.
    """

    def __init__(
        self,
        clock: Clock,
        *,
        transport: httpx.AsyncBaseTransport | None = None,
        trust_env: bool = True,
        proxy: str | None = None,
        dialer: Dialer | None = None,
        headers: Sequence[tuple[str, str]] = _HEADERS,
        max_connections: int = 512,
    ) -> None:
        self._clock = clock
        self._transport = transport
        self._trust_env = trust_env
        self._proxy = proxy
        self._dialer = dialer
        self._headers = tuple(headers)
        self._max_connections = max_connections
        self._session: Any = None
        self._ssl: ssl.SSLContext | bool = True
        self._by_proxy: dict[str | None, httpx.AsyncBaseTransport] = {}
        self._by_origin: dict[tuple[str, str, int | None], httpx.AsyncBaseTransport] = {}

    async def request(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        content: bytes | None = None,
        timeout_s: float,
        max_body: int | None = None,
        wanted: Callable[[int, Mapping[str, str]], bool] | None = None,
    ) -> Reply:
        """One request, one answer of whatever status.

        `timeout_s` bounds the whole exchange, from the wait for a connection to the last byte; `max_body`
        (None: MAX_BODY) the bytes of the body, as it comes and decoded. `wanted` tells from status and headers
        whether the body is worth reading; one that is not stays empty.
        Raises CallError, BodyTooLong among them; asyncio.CancelledError passes through and closes the connection.
        """
        import httpx

        started = self._clock.monotonic()
        host = "the server"
        try:
            target = _parse_url(url)
            host = target.host
            request = httpx.Request(
                method,
                target,
                headers=[*self._headers, *(headers.items() if headers else ())],
                content=content,
                extensions={"timeout": {"connect": min(CONNECT_TIMEOUT_S, timeout_s)}},
            )
            async with asyncio.timeout(timeout_s):
                response = await self._transport_for(target).handle_async_request(request)
                try:
                    skipped = wanted is not None and not wanted(response.status_code, response.headers)
                    stream: Any = response.stream  # an async transport's
                    body = b"" if skipped else await read(stream, response.headers, max_body or MAX_BODY)
                finally:
                    await response.stream.aclose()  # type: ignore[union-attr]  # an async transport's
        except CallError:
            raise
        except TimeoutError as error:
            raise CallError("timeout", f"{host} gave no answer within {timeout_s:g} s") from error
        except Exception as error:  # whatever a transport raises is told apart by its cause
            raise classify(error) from error
        return Reply(
            status=response.status_code,
            headers=response.headers,
            content=body,
            latency_s=self._clock.monotonic() - started,
            url=url,
        )

    @asynccontextmanager
    async def stream(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        content: bytes | None = None,
        timeout_s: float,
        idle_s: float,
    ) -> AsyncIterator[Streamed]:
        """One request whose answer is read piece by piece: server-sent events.

        `timeout_s` bounds the whole exchange, `idle_s` each wait for the next piece; leaving the block closes the
        connection. Raises CallError, also from inside the block where the connection broke.
        """
        import httpx

        try:
            target = _parse_url(url)
            fields = {**dict(self._headers), "accept-encoding": "identity", **(headers or {})}
            request = httpx.Request(
                method,
                target,
                headers=fields,
                content=content,
                extensions={"timeout": {"connect": min(CONNECT_TIMEOUT_S, timeout_s)}},
            )
            async with asyncio.timeout(timeout_s):
                async with asyncio.timeout(idle_s):
                    response = await self._transport_for(target).handle_async_request(request)
                try:
                    stream: Any = response.stream  # an async transport's
                    yield Streamed(response.status_code, response.headers, url, pieces(stream, idle_s))
                finally:
                    await response.stream.aclose()  # type: ignore[union-attr]  # an async transport's
        except (CallError, GeneratorExit):
            raise
        except TimeoutError as error:
            host = _origin(url)
            raise CallError("timeout", f"{host} sent nothing for {min(idle_s, timeout_s):g} s") from error
        except Exception as error:
            raise classify(error) from error

    async def aclose(self) -> None:
        """Close every connection. Harmless when called twice or when nothing was opened."""
        session, self._session = self._session, None
        self._by_proxy.clear()
        self._by_origin.clear()
        if self._transport is not None:
            await self._transport.aclose()
        if session is not None:
            await session.close()

    def _transport_for(self, url: httpx.URL) -> httpx.AsyncBaseTransport:
        if self._transport is not None:
            return self._transport
        origin = (url.scheme, url.host, url.port)
        found = self._by_origin.get(origin)
        if found is None:
            proxy = self._proxy
            if proxy is None and self._trust_env:
                proxy = proxy_for(url.scheme, url.host, url.port)
            found = self._by_origin[origin] = self._transport_through(proxy)
        return found

    def _transport_through(self, proxy: str | None) -> httpx.AsyncBaseTransport:
        """The transport of a proxy (None: direct); all share one session and its pool."""
        found = self._by_proxy.get(proxy)
        if found is None:
            import httpx
            from httpx_aiohttp import AiohttpTransport

            if self._session is None:
                self._session, self._ssl = _session(self._max_connections, self._dialer, trust_env=self._trust_env)
            found = self._by_proxy[proxy] = AiohttpTransport(
                client=self._session,
                verify=self._ssl,
                proxy=httpx.Proxy(proxy) if proxy else None,
            )
        return found


def _session(max_connections: int, dialer: Dialer | None, *, trust_env: bool) -> tuple[Any, ssl.SSLContext]:
    """Our own aiohttp session: no cookies, no netrc, no proxies of its own, no deadline of its own."""
    import aiohttp
    import httpx

    context = httpx.create_ssl_context(trust_env=trust_env)
    chosen: dict[str, Any] = {"ttl_dns_cache": 60}
    if dialer is not None:  # what it allows, it allows for this one connection
        chosen = {"use_dns_cache": False, "resolver": dialer, "socket_factory": dialer.socket}
    connector = aiohttp.TCPConnector(limit=max_connections, ssl=context, keepalive_timeout=KEEPALIVE_S, **chosen)
    session = aiohttp.ClientSession(
        connector=connector,
        cookie_jar=aiohttp.DummyCookieJar(),
        timeout=aiohttp.ClientTimeout(total=None),
        trust_env=False,
        max_line_size=MAX_HEADER,
        max_field_size=MAX_HEADER,
    )
    return session, context


@lru_cache(maxsize=256)
def _parse_url(url: str) -> httpx.URL:
    """The URL, or CallError `bad_url` with the reason (never with a query, which may hold a key)."""
    import httpx

    try:
        parsed = httpx.URL(url)
    except (httpx.InvalidURL, TypeError, ValueError) as error:
        raise CallError("bad_url", f"{_origin(url)!r} is not a URL: {shortened(str(error), 120)}") from error
    if parsed.scheme not in ("http", "https") or not parsed.host:
        raise CallError("bad_url", f"{_origin(url)!r} is not an http(s) URL with a host")
    return parsed


def _origin(url: Any) -> str:
    return shortened(str(url).split("?", 1)[0].rsplit("@", 1)[-1], 120)


def proxy_for(scheme: str, host: str, port: int | None) -> str | None:
    """The proxy that the environment names for an address, or None.

    HTTP_PROXY, HTTPS_PROXY, ALL_PROXY and NO_PROXY in either case; loopback addresses are always direct.
    """
    from urllib.request import getproxies, proxy_bypass

    if host == "localhost" or host.startswith("127.") or host in ("::1", "[::1]"):
        return None
    proxies = getproxies()
    proxy = proxies.get(scheme) or proxies.get("all")
    address = f"{host}:{port}" if port else host
    if not proxy or proxy_bypass(address):
        return None
    if "://" not in proxy:
        proxy = f"http://{proxy}"
    if not proxy.lower().startswith(("http://", "https://")):
        kind = proxy.split("://", 1)[0]
        raise CallError("connect", f"the environment names a {kind} proxy; only http(s) proxies are supported")
    return proxy


def classify(exc: BaseException) -> CallError:
    """The one word on what an exception of a client, a transport or a socket means.

    Walks the chain of causes. What aiohttp says counts before what httpx made of it, and either before
    the bare socket error: the same reset connection is "hung up" before an answer and "cut" inside one.
    What nobody knows is `crash`.
    """
    chain = list(causes(exc))
    for error in chain:
        if isinstance(error, CallError):
            return error
    for kinds in (_aiohttp_kinds(), _httpx_kinds(), _SOCKET_KINDS):
        for error in chain:
            kind = next((kind for kind, classes in kinds if isinstance(error, classes)), None)
            if kind is not None:
                kind = _reason_of_connect(chain) if kind == "connect" else kind
                return CallError(kind, shortened(str(error) or type(error).__name__, 300))
    return CallError("crash", shortened(f"{type(exc).__name__}: {exc}", 300))


def causes(exc: BaseException) -> Iterator[BaseException]:
    """The exception, then what it was raised from, outermost first."""
    seen: set[int] = set()
    error: BaseException | None = exc
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)


def _reason_of_connect(chain: list[BaseException]) -> str:
    """Why a connection was never made."""
    if any(isinstance(error, socket.gaierror) for error in chain):
        return "name"
    return "tls" if any(isinstance(error, ssl.SSLError) for error in chain) else "connect"


_Kinds = tuple[tuple[str, tuple[type[BaseException], ...]], ...]


@lru_cache(maxsize=1)
def _aiohttp_kinds() -> _Kinds:
    """aiohttp's exceptions, the narrower class before the wider."""
    import aiohttp

    return (
        ("tls", (aiohttp.ClientSSLError, aiohttp.ServerFingerprintMismatch)),
        ("connect", (aiohttp.ClientConnectorError, aiohttp.ClientHttpProxyError)),
        ("connect", (aiohttp.ConnectionTimeoutError,)),
        ("timeout", (aiohttp.ServerTimeoutError,)),
        ("hung_up", (aiohttp.ClientConnectionError,)),
        ("cut", (aiohttp.ClientPayloadError,)),
        ("malformed", (aiohttp.ClientResponseError,)),
        ("bad_url", (aiohttp.InvalidURL, aiohttp.NonHttpUrlClientError)),
    )


@lru_cache(maxsize=1)
def _httpx_kinds() -> _Kinds:
    """httpx's exceptions as httpcore and in-memory transports raise them, without aiohttp inside."""
    import httpx

    return (
        ("bad_url", (httpx.InvalidURL, httpx.UnsupportedProtocol)),
        ("connect", (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout, httpx.ProxyError)),
        ("timeout", (httpx.TimeoutException,)),
        ("cut", (httpx.ReadError, httpx.DecodingError)),
        ("hung_up", (httpx.RemoteProtocolError, httpx.WriteError, httpx.CloseError)),
        ("bad_request", (httpx.LocalProtocolError,)),
    )


_SOCKET_KINDS: Final[_Kinds] = (
    ("name", (socket.gaierror,)),
    ("tls", (ssl.SSLError,)),
    ("connect", (ConnectionRefusedError,)),
    ("timeout", (TimeoutError,)),
    ("hung_up", (ConnectionError,)),
)
