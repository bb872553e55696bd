"""core.http over real sockets: what comes back, and what each way of failing is called."""

from __future__ import annotations

import asyncio
import gzip
import zlib
from collections.abc import AsyncIterator

import httpx
import pytest
from fakes.sockets import (
    Handler,
    answering,
    free_port,
    hang_up,
    never,
    never_reads,
    read_request,
    reset,
    serving,
    speaks_no_tls,
)

from core import http as http_module
from core.clock import RealClock
from core.errors import CallError
from core.http import Http, classify, proxy_for


@pytest.fixture
async def http() -> AsyncIterator[Http]:
    client = Http(RealClock())
    yield client
    await client.aclose()


def body(content: bytes, *headers: str) -> bytes:
    lines = ["HTTP/1.1 200 OK", f"Content-Length: {len(content)}", *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + content


async def failure(http: Http, url: str, *, timeout_s: float = 20.0, content: bytes | None = b"{}") -> CallError:
    with pytest.raises(CallError) as caught:
        await http.request("POST", url, content=content, timeout_s=timeout_s)
    return caught.value


async def test_an_answer_comes_back_whole(http: Http) -> None:
    raw = body(b'{"a": "\xc3\xa9"}', "X-Request-Id: req_1", "Content-Type: application/json")
    async with serving(answering(raw)) as port:
        reply = await http.request("GET", f"http://127.0.0.1:{port}/x?y=1", timeout_s=20)
    assert (reply.status, reply.json(), reply.text) == (200, {"a": "é"}, '{"a": "é"}')
    assert reply.headers["content-type"] == reply.headers["Content-Type"] == "application/json"
    assert reply.request_id == "req_1"
    assert reply.latency_s >= 0


async def test_what_is_sent(http: Http) -> None:
    seen: list[bytes] = []

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while len(seen) < 2:
            seen.append(await read_request(reader))
            writer.write(body(b"", "Set-Cookie: a=b; Path=/"))

    async with serving(handle) as port:
        url = f"http://127.0.0.1:{port}/v1/x"
        for _ in range(2):
            await http.request("POST", url, headers={"authorization": "Bearer k"}, content=b"12345", timeout_s=20)
    head, _, sent = seen[1].partition(b"\r\n\r\n")
    lines = head.decode().lower().split("\r\n")
    assert lines[0] == "post /v1/x http/1.1"
    assert sent == b"12345"
    assert "authorization: bearer k" in lines
    assert "accept-encoding: gzip, deflate" in lines
    assert not [line for line in lines if line.startswith("cookie")]


@pytest.mark.parametrize("status", [301, 302, 307, 308])
async def test_a_redirect_is_an_answer_and_is_not_followed(http: Http, status: int) -> None:
    raw = f"HTTP/1.1 {status} Moved\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n".encode()
    async with serving(answering(raw)) as port:
        reply = await http.request("POST", f"http://127.0.0.1:{port}/", content=b"{}", timeout_s=20)
    assert reply.status == status


def raw_deflate(data: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-15)
    return packer.compress(data) + packer.flush()


@pytest.mark.parametrize(
    ("encoding", "packed"),
    [
        pytest.param("gzip", gzip.compress(b"hello" * 99), id="gzip"),
        pytest.param("deflate", zlib.compress(b"hello" * 99), id="deflate"),
        pytest.param("deflate", raw_deflate(b"hello" * 99), id="deflate without a header"),
        pytest.param("identity", b"hello" * 99, id="identity"),
    ],
)
async def test_encodings(http: Http, encoding: str, packed: bytes) -> None:
    async with serving(answering(body(packed, f"Content-Encoding: {encoding}"))) as port:
        reply = await http.request("GET", f"http://127.0.0.1:{port}/", timeout_s=20)
    assert reply.content == b"hello" * 99


@pytest.mark.parametrize(
    ("raw", "kind"),
    [
        pytest.param(body(b"plain", "Content-Encoding: gzip"), "malformed", id="not gzip"),
        pytest.param(body(b"plain", "Content-Encoding: br"), "malformed", id="an encoding nobody asked for"),
        pytest.param(body(gzip.compress(b"a" * 9999)[:-20], "Content-Encoding: gzip"), "cut", id="gzip cut"),
        pytest.param(body(gzip.compress(b"a" * 9_000), "Content-Encoding: gzip"), "malformed", id="gzip bomb"),
        pytest.param(body(b"a" * 9_000), "malformed", id="too long"),
        pytest.param(
            b"HTTP/1.1 200 OK\r\nContent-Length: 99999999\r\n\r\n", "malformed", id="says it is too long"
        ),
        pytest.param(b"HTTP/1.1 200 OK\r\n\r\n" + b"a" * 9_000, "malformed", id="too long, no length"),
        pytest.param(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{}", "cut", id="half a body"),
        pytest.param(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab", "cut", id="half a chunk"),
        pytest.param(b"this is not HTTP at all\r\n\r\n", "malformed", id="not HTTP"),
        pytest.param(b"HTTP/1.1 200", "hung_up", id="half a status line"),
    ],
)
async def test_unusable_answers(http: Http, monkeypatch: pytest.MonkeyPatch, raw: bytes, kind: str) -> None:
    monkeypatch.setattr(http_module, "MAX_BODY", 5_000)
    async with serving(answering(raw)) as port:
        error = await failure(http, f"http://127.0.0.1:{port}/")
    assert error.kind == kind


@pytest.mark.parametrize(
    ("handler", "scheme", "kind"),
    [
        pytest.param(hang_up, "http", "hung_up", id="reads and hangs up"),
        pytest.param(reset, "http", "hung_up", id="reads and resets"),
        pytest.param(never, "http", "timeout", id="never answers"),
        pytest.param(never_reads, "http", "timeout", id="never reads"),
        pytest.param(speaks_no_tls, "https", "tls", id="plain port asked for TLS"),
    ],
)
async def test_servers_that_misbehave(http: Http, handler: Handler, scheme: str, kind: str) -> None:
    async with serving(handler) as port:
        error = await failure(
            http,
            f"{scheme}://127.0.0.1:{port}/",
            timeout_s=0.3 if kind == "timeout" else 20,
            content=b"x" * 10_000_000,
        )
    assert error.kind == kind


@pytest.mark.parametrize(
    ("url", "kind"),
    [
        pytest.param("http://nosuch.invalid/v1", "name", id="unknown name"),
        pytest.param("ftp://127.0.0.1/", "bad_url", id="another scheme"),
        pytest.param("127.0.0.1:8000/v1", "bad_url", id="no scheme"),
        pytest.param("http:///v1", "bad_url", id="no host"),
        pytest.param("http://[::1", "bad_url", id="broken address"),
        pytest.param("http://127.0.0.1:99999/", "bad_url", id="impossible port"),
        pytest.param("", "bad_url", id="nothing"),
        pytest.param("http://a\x00b/", "bad_url", id="control character"),
    ],
)
async def test_addresses(http: Http, url: str, kind: str) -> None:
    assert (await failure(http, url)).kind == kind


async def test_a_refused_port(http: Http) -> None:
    assert (await failure(http, f"http://127.0.0.1:{free_port()}/")).kind == "connect"


async def test_a_key_in_an_address_stays_out_of_the_message(http: Http) -> None:
    error = await failure(http, "ftp://user:secret1@host/path?key=secret2")
    assert "secret" not in str(error)


async def test_cancellation_passes_through(http: Http) -> None:
    async with serving(never) as port:
        task = asyncio.create_task(http.request("GET", f"http://127.0.0.1:{port}/", timeout_s=60))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task


async def test_a_transport_replaces_the_network() -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        return httpx.Response(201, content=request.content[::-1])

    client = Http(RealClock(), transport=httpx.MockTransport(answer))
    reply = await client.request("PUT", "http://nosuch.invalid/", content=b"abc", timeout_s=20)
    assert (reply.status, reply.content) == (201, b"cba")
    await client.aclose()


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        pytest.param(httpx.ConnectError("x"), "connect", id="httpx connect"),
        pytest.param(httpx.ConnectTimeout("x"), "connect", id="httpx connect timeout"),
        pytest.param(httpx.PoolTimeout("x"), "connect", id="httpx pool"),
        pytest.param(httpx.ReadTimeout("x"), "timeout", id="httpx read timeout"),
        pytest.param(httpx.RemoteProtocolError("x"), "hung_up", id="httpx remote protocol"),
        pytest.param(httpx.ReadError("x"), "cut", id="httpx read"),
        pytest.param(httpx.UnsupportedProtocol("x"), "bad_url", id="httpx scheme"),
        pytest.param(httpx.ProxyError("x"), "connect", id="httpx proxy"),
        pytest.param(ConnectionRefusedError(), "connect", id="refused"),
        pytest.param(ConnectionResetError(), "hung_up", id="reset"),
        pytest.param(TimeoutError(), "timeout", id="timeout"),
        pytest.param(KeyError("x"), "crash", id="unknown"),
        pytest.param(CallError("quota", "x"), "quota", id="already told"),
    ],
)
def test_exceptions_without_a_cause(error: Exception, kind: str) -> None:
    assert classify(error).kind == kind


@pytest.mark.parametrize(
    ("environment", "address", "proxy"),
    [
        pytest.param({}, ("https", "api.example.org", None), None, id="none"),
        pytest.param(
            {"HTTPS_PROXY": "http://p:3128"}, ("https", "api.example.org", None), "http://p:3128", id="by scheme"
        ),
        pytest.param({"HTTPS_PROXY": "http://p:3128"}, ("http", "api.example.org", None), None, id="other scheme"),
        pytest.param({"all_proxy": "p:3128"}, ("http", "api.example.org", None), "http://p:3128", id="all"),
        pytest.param(
            {"HTTP_PROXY": "http://p:1", "NO_PROXY": "example.org"},
            ("http", "api.example.org", None),
            None,
            id="excepted",
        ),
        pytest.param({"HTTP_PROXY": "http://p:1"}, ("http", "localhost", 8000), None, id="localhost"),
        pytest.param({"HTTP_PROXY": "http://p:1"}, ("http", "127.0.0.1", 8000), None, id="loopback"),
        pytest.param({"HTTP_PROXY": "http://p:1"}, ("http", "::1", 8000), None, id="loopback of IPv6"),
    ],
)
def test_proxies_of_the_environment(
    monkeypatch: pytest.MonkeyPatch,
    environment: dict[str, str],
    address: tuple[str, str, int | None],
    proxy: str | None,
) -> None:
    clear_proxies(monkeypatch)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert proxy_for(*address) == proxy


def clear_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


async def test_a_proxy_is_used_and_its_refusal_is_ours(http: Http, monkeypatch: pytest.MonkeyPatch) -> None:
    clear_proxies(monkeypatch)
    seen: list[bytes] = []

    async def proxy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        seen.append(await reader.readuntil(b"\r\n\r\n"))
        refused = b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n"
        writer.write(refused if seen[-1].startswith(b"CONNECT") else body(b"from the proxy"))

    async with serving(proxy) as port:
        monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{port}")
        monkeypatch.setenv("HTTPS_PROXY", f"http://127.0.0.1:{port}")
        reply = await http.request("GET", "http://api.invalid/x", timeout_s=20)
        error = await failure(http, "https://api.invalid/x")
    assert reply.content == b"from the proxy"
    assert seen[0].startswith(b"GET http://api.invalid/x")
    assert seen[1].startswith(b"CONNECT api.invalid:443")
    assert error.kind == "connect"


async def test_a_proxy_of_another_kind_is_named(http: Http, monkeypatch: pytest.MonkeyPatch) -> None:
    clear_proxies(monkeypatch)
    monkeypatch.setenv("HTTP_PROXY", "socks5://127.0.0.1:1")
    error = await failure(http, "http://api.invalid/x")
    assert error.kind == "connect"
    assert "socks5" in error.message
