"""Fetching over real sockets: what each answer, and each way of not answering, makes of a page."""

from __future__ import annotations

import asyncio
import gzip
import socket
import zlib
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from itertools import pairwise
from typing import Any

import httpx
import pytest
from fakes.clock import SimClock
from fakes.pages import PageServer, SwiftClock, answer, broken_off, moved, page, page_server
from fakes.sockets import Handler, free_port, hang_up, never, read_request, reset, serving, speaks_no_tls

from core.clock import Clock
from core.http import Http
from core.pages.control import Control
from core.pages.fetch import Fetcher, Pace, headers_for
from core.pages.fetched import Fetched
from core.pages.guard import Guard, Resolve

DEFAULT = Pace(timeout_s=20.0, max_bytes=100_000)


async def always(host: str) -> Sequence[str]:
    return ["93.184.215.14"]


async def fails(host: str) -> Sequence[str]:
    raise socket.gaierror(socket.EAI_NONAME, "no such name")


def nothing(url: str) -> list[str]:
    return []


@asynccontextmanager
async def fetcher(
    *allowed: str,
    clock: Clock | None = None,
    pace: Pace = DEFAULT,
    resolve: Resolve | None = None,
    control: Resolve = always,
    variants: Callable[[str], list[str]] = nothing,
    transport: httpx.AsyncBaseTransport | None = None,
    proxy: str | None = None,
) -> AsyncIterator[Fetcher]:
    """A fetcher with a guard that allows these host:port; `control` is the network's own state."""
    clock = clock or SwiftClock()
    where = httpx.URL(proxy) if proxy else None
    guard = Guard(allow_hosts=allowed, resolve=resolve, proxy=(where.host, where.port or 80) if where else None)
    http = Http(
        clock, transport=transport, trust_env=False, proxy=proxy, dialer=guard, headers=headers_for("test/1")
    )
    controls = Control(clock, ["control.example"], control, wait_s=1)
    try:
        yield Fetcher(http, guard, controls, clock, pace=pace, variants=variants, proxied=proxy is not None)
    finally:
        await controls.aclose()
        await http.aclose()
        await guard.close()


async def fetch(server: PageServer, path: str = "/", **options: Any) -> Fetched:
    async with fetcher(server.host, **options) as fetching:
        return await fetching.fetch(server.url(path))


async def test_a_page_is_kept_with_all_that_was_said_of_it() -> None:
    raw = page("here", "Last-Modified: Mon, 05 Jan 2026 00:00:00 GMT", "Set-Cookie: id=7", "X-Debug: 1")
    async with page_server({"/a": raw}) as server:
        found = await fetch(server, "/a")
    assert found == Fetched(
        url=server.url("/a"),
        status="ok",
        fetched_at=1_800_000_000.0,
        final_url=server.url("/a"),
        http_status=200,
        content_type="text/html; charset=utf-8",
        charset="utf-8",
        headers={
            "content-type": "text/html; charset=utf-8",
            "content-length": "11",
            "last-modified": "Mon, 05 Jan 2026 00:00:00 GMT",
        },
        body=b"<p>here</p>",
    )


async def test_what_a_server_is_told() -> None:
    pages = {"/": moved("/next") + b"", "/next": page("x")}
    pages["/"] = answer(302, b"", "Location: /next", "Set-Cookie: id=7; Path=/")
    async with page_server(pages) as server:
        await fetch(server)
    fields = [line.lower() for head in server.seen for line in head.split("\r\n")]
    assert fields.count("user-agent: test/1") == 2
    assert fields.count("accept-encoding: gzip, deflate") == 2
    assert not [line for line in fields if line.startswith(("cookie", "authorization", "referer"))]


HALF = b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nx"


@pytest.mark.parametrize(
    ("raw", "status"),
    [
        pytest.param(answer(200, b"x"), "ok", id="200"),
        pytest.param(answer(203, b"x"), "ok", id="203"),
        pytest.param(answer(204), "unsupported_type", id="204"),
        pytest.param(answer(205), "unsupported_type", id="205"),
        pytest.param(answer(404, b"long" * 99_999), "not_found", id="404 with a body that is too large"),
        pytest.param(answer(410), "gone", id="410"),
        pytest.param(answer(401), "forbidden", id="401"),
        pytest.param(answer(403), "forbidden", id="403"),
        pytest.param(answer(403, b"", "CF-Mitigated: challenge"), "bot_wall", id="403 with a challenge"),
        pytest.param(answer(402), "paywall", id="402"),
        pytest.param(answer(451), "forbidden", id="451"),
        pytest.param(answer(400), "forbidden", id="400"),
        pytest.param(answer(418), "forbidden", id="418"),
        pytest.param(answer(429), "rate_limited", id="429"),
        pytest.param(answer(408), "timeout", id="408"),
        pytest.param(answer(500), "server_error", id="500"),
        pytest.param(answer(503), "server_error", id="503"),
        pytest.param(answer(302), "server_error", id="a redirect to nowhere"),
        pytest.param(answer(304), "server_error", id="304"),
        pytest.param(answer(200, b"x" * 100_001), "too_large", id="declared too large"),
        pytest.param(b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * 100_001, "too_large", id="too large, undeclared"),
        pytest.param(
            answer(200, gzip.compress(b"\0" * 50_000_000), "Content-Encoding: gzip"), "too_large", id="gzip bomb"
        ),
        pytest.param(
            answer(200, zlib.compress(b"\0" * 200_000), "Content-Encoding: deflate"),
            "too_large",
            id="deflate bomb",
        ),
        pytest.param(answer(200, b"x", "Content-Encoding: br"), "server_error", id="an encoding nobody asked for"),
        pytest.param(answer(200, b"plain", "Content-Encoding: gzip"), "server_error", id="not gzip"),
        pytest.param(answer(200, b"\x89PNG", "Content-Type: image/png"), "unsupported_type", id="an image"),
        pytest.param(
            answer(200, b"x" * 200_000, "Content-Type: video/mp4"), "unsupported_type", id="a large film"
        ),
        pytest.param(b"this is not HTTP\r\n\r\n", "server_error", id="not HTTP"),
        pytest.param(broken_off(b"HTTP/1.1 200"), "server_error", id="half a status line"),
        pytest.param(broken_off(HALF), "server_error", id="half a body"),
        pytest.param(answer(200, b"x", "A: " + "b" * 40_000), "ok", id="a long header field"),
    ],
)
async def test_answers(raw: bytes | Handler, status: str) -> None:
    async with page_server({"/": raw}) as server:
        found = await fetch(server)
    assert found.status == status
    assert bool(found.message) is (status != "ok")
    assert found.body == b"" or status == "ok"


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        pytest.param(answer(204), "the server answered 204, which means that there is no content", id="204"),
        pytest.param(
            answer(200, b"x", "Content-Encoding: br"),
            "the body has the encoding 'br'; we asked for gzip or deflate",
            id="an encoding nobody asked for",
        ),
        pytest.param(b"SECRET is not HTTP\r\n\r\n", "what came back is not HTTP", id="not HTTP"),
        pytest.param(answer(204, b"SECRET"), "what came back is not HTTP", id="204 with a body"),
        pytest.param(
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nSECRET\r\n",
            "what came back is not HTTP",
            id="no chunks",
        ),
        pytest.param(broken_off(HALF), "the answer broke off", id="half a body"),
    ],
)
async def test_a_failure_is_told_in_our_words(raw: bytes | Handler, said: str) -> None:
    async with page_server({"/": raw}) as server:
        found = await fetch(server)
    assert found.message == said


@pytest.mark.parametrize("encoding", ["gzip", "deflate"])
async def test_a_packed_page_is_unpacked(encoding: str) -> None:
    packed = gzip.compress(b"hello") if encoding == "gzip" else zlib.compress(b"hello")
    async with page_server({"/": answer(200, packed, f"Content-Encoding: {encoding}")}) as server:
        assert (await fetch(server)).body == b"hello"


async def drip(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """A byte at a time, for ever."""
    await read_request(reader)
    writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
    while True:
        writer.write(b"x")
        await writer.drain()
        await asyncio.sleep(0.02)


@pytest.mark.parametrize(
    ("handler", "scheme", "status", "asked"),
    [
        pytest.param(hang_up, "http", "server_error", 4, id="hangs up, which aiohttp tries twice by itself"),
        pytest.param(reset, "http", "server_error", 4, id="resets, which aiohttp tries twice by itself"),
        pytest.param(never, "http", "timeout", 2, id="never answers"),
        pytest.param(drip, "http", "timeout", 2, id="drips"),
        pytest.param(speaks_no_tls, "https", "server_error", 1, id="no TLS"),
    ],
)
async def test_servers_that_misbehave(handler: Handler, scheme: str, status: str, asked: int) -> None:
    connections = 0

    async def counted(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        await handler(reader, writer)

    pace = Pace(timeout_s=0.3 if status == "timeout" else 20)
    async with serving(counted) as port, fetcher(f"127.0.0.1:{port}", pace=pace) as fetching:
        found = await fetching.fetch(f"{scheme}://127.0.0.1:{port}/")
    assert (found.status, connections) == (status, asked)


# redirects


async def test_redirects_are_followed_and_written_down() -> None:
    pages = {"/a": moved("/b", 301), "/b": moved("c?d=1#e", 307), "/c?d=1": page("end")}
    async with page_server(pages) as server:
        found = await fetch(server, "/a")
    assert (found.status, found.body) == ("ok", b"<p>end</p>")
    assert found.chain == (server.url("/b"), server.url("/c?d=1#e"))
    assert found.final_url == server.url("/c?d=1#e")


@pytest.mark.parametrize(
    ("location", "status"),
    [
        pytest.param("http://127.0.0.1:{other}/", "non_public", id="loopback"),
        pytest.param("http://localhost:{other}/", "non_public", id="a name of loopback"),
        pytest.param("http://[::ffff:127.0.0.1]:{other}/", "non_public", id="mapped loopback"),
        pytest.param("//169.254.169.254/latest/meta-data/", "non_public", id="metadata, without a scheme"),
        pytest.param("http://2130706433:{other}/", "non_public", id="decimal"),
        pytest.param("file:///etc/passwd", "unsupported_scheme", id="file"),
        pytest.param("ftp://example.org/", "unsupported_scheme", id="ftp"),
        pytest.param("javascript:alert(1)", "unsupported_scheme", id="javascript"),
        pytest.param("http://me:secret@example.org/", "unsupported_scheme", id="credentials"),
        pytest.param("http://[::1", "unsupported_scheme", id="malformed"),
        pytest.param("/", "server_error", id="itself"),
        pytest.param("/loop", "server_error", id="a circle"),
        pytest.param("/n0", "server_error", id="eleven hops"),
    ],
)
async def test_redirects_that_lead_nowhere(location: str, status: str) -> None:
    async with page_server({"/": page("inside")}) as inner:
        pages: dict[str, Any] = {f"/n{n}": moved(f"/n{n + 1}") for n in range(20)}
        pages |= {"/": moved(location.format(other=inner.port)), "/loop": moved("/back"), "/back": moved("/loop")}
        async with page_server(pages) as server:
            found = await fetch(server)
    assert found.status == status
    assert inner.seen == []
    assert len(server.seen) <= 11
    assert "secret" not in found.message


async def test_a_name_that_redirects_inside_is_refused_at_the_name() -> None:
    async def inside(host: str) -> Sequence[str]:
        return ["10.0.0.7"]

    async with page_server({"/": moved("http://intranet.example/")}) as server:
        found = await fetch(server, resolve=inside)
    assert (found.status, found.chain) == ("non_public", ("http://intranet.example/",))


async def test_redirects_share_one_deadline() -> None:
    clock = SimClock()

    async def slow(request: httpx.Request) -> httpx.Response:
        await clock.sleep(8)
        return httpx.Response(302, headers={"location": f"{request.url.path}x"})

    async with fetcher(clock=clock, transport=httpx.MockTransport(slow), pace=Pace(timeout_s=20)) as fetching:
        found = await clock.run(fetching.fetch("http://example.org/"))
    assert (found.status, len(found.chain)) == ("timeout", 3)


# names, connections, and the network's own state


async def unknown(host: str) -> Sequence[str]:
    raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")


async def no_server(host: str) -> Sequence[str]:
    raise socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")


@pytest.mark.parametrize(
    ("resolve", "control", "status"),
    [
        pytest.param(unknown, always, "no_such_name", id="no such name"),
        pytest.param(unknown, fails, "no_dns", id="no such name, and no network"),
        pytest.param(no_server, always, "no_dns", id="a name server that does not answer"),
        pytest.param(no_server, fails, "no_dns", id="no name server, and no network"),
    ],
)
async def test_names(resolve: Resolve, control: Resolve, status: str) -> None:
    async with fetcher(resolve=resolve, control=control) as fetching:
        found = await fetching.fetch("http://nosuch.example/")
    assert found.status == status


@pytest.mark.parametrize(
    ("control", "status"), [(always, "refused"), (fails, "own_network")], ids=["network", "none"]
)
async def test_a_refused_connection(control: Resolve, status: str) -> None:
    port = free_port()
    async with fetcher(f"127.0.0.1:{port}", control=control) as fetching:
        found = await fetching.fetch(f"http://127.0.0.1:{port}/")
    assert found.status == status


async def test_a_name_that_leads_inside() -> None:
    async def inside(host: str) -> Sequence[str]:
        return ["192.168.7.7"]

    async with fetcher(resolve=inside, control=fails) as fetching:
        found = await fetching.fetch("http://intranet.example/")
    assert found.status == "non_public"


# the second chance, the variants


@pytest.mark.parametrize(
    ("first", "slept", "status"),
    [
        pytest.param(answer(503), [1.0], "ok", id="503"),
        pytest.param(answer(503, b"", "Retry-After: 9"), [9.0], "ok", id="503 that says when"),
        pytest.param(answer(429, b"", "Retry-After: 7"), [7.0], "ok", id="429 that says when"),
        pytest.param(answer(429), [5.0], "ok", id="429 that does not"),
        pytest.param(answer(429, b"", "Retry-After: 3600"), [], "rate_limited", id="429 that says much later"),
        pytest.param(answer(404), [], "not_found", id="404 is an answer"),
        pytest.param(answer(403), [], "forbidden", id="403 is an answer"),
    ],
)
async def test_the_second_chance(first: bytes, slept: list[float], status: str) -> None:
    clock = SwiftClock()
    async with page_server({"/": [first, page("second")]}) as server:
        found = await fetch(server, clock=clock)
    assert found.status == status
    assert [seconds for seconds in clock.slept if seconds in (1.0, 5.0, 7.0, 9.0)][: len(slept)] == slept
    assert len(server.seen) == 1 + bool(slept)


async def test_there_is_no_third_chance() -> None:
    async with page_server({"/": answer(500)}) as server:
        found = await fetch(server)
    assert (found.status, found.http_status, len(server.seen)) == ("server_error", 500, 2)


async def test_variants_are_tried_in_order_while_the_page_is_gone() -> None:
    pages = {"/x": answer(404), "/2": answer(410), "/3": moved("/4"), "/4": page("there"), "/5": page("too late")}
    async with page_server(pages) as server:
        found = await fetch(
            server, "/x", variants=lambda url: [url, *(server.url(path) for path in ("/2", "/3", "/5"))]
        )
    assert (found.status, found.url, found.final_url) == ("ok", server.url("/x"), server.url("/4"))
    assert found.chain == (server.url("/3"), server.url("/4"))
    assert found.tried == (
        (server.url("/x"), "not_found"),
        (server.url("/2"), "gone"),
        (server.url("/3"), "ok"),
    )
    assert "/5" not in server.paths()


async def test_what_is_gone_everywhere_is_what_it_was_at_first() -> None:
    async with page_server({"/x": answer(410), "/2": answer(403)}) as server:
        found = await fetch(server, "/x", variants=lambda url: [server.url("/2")])
    assert found.status == "gone"
    assert found.tried == ((server.url("/x"), "gone"), (server.url("/2"), "forbidden"))


@pytest.mark.parametrize("first", [answer(403), answer(500), answer(200, b"x")], ids=["403", "500", "200"])
async def test_what_is_not_gone_has_no_variants(first: bytes) -> None:
    async with page_server({"/x": first, "/2": page("other")}) as server:
        found = await fetch(server, "/x", variants=lambda url: [server.url("/2")])
    assert found.tried == ()
    assert "/2" not in server.paths()


# pace


async def test_a_host_is_asked_a_few_at_a_time_and_not_without_a_pause() -> None:
    clock = SimClock()
    started: list[float] = []
    at_once, most = 0, 0

    async def slow(request: httpx.Request) -> httpx.Response:
        nonlocal at_once, most
        started.append(clock.monotonic())
        at_once += 1
        most = max(most, at_once)
        await clock.sleep(5)
        at_once -= 1
        return httpx.Response(200, content=b"x")

    pace = Pace(per_host=3, delay_s=0.5, max_in_flight=50)
    async with fetcher(clock=clock, transport=httpx.MockTransport(slow), pace=pace) as fetching:
        await clock.run(
            asyncio.wait_for(asyncio.gather(*(fetching.fetch(f"http://example.org/{n}") for n in range(9))), None)
        )
    assert most == 3
    assert min(after - before for before, after in pairwise(started)) >= 0.499


async def test_all_hosts_together_are_bounded() -> None:
    clock = SimClock()
    at_once, most = 0, 0

    async def slow(request: httpx.Request) -> httpx.Response:
        nonlocal at_once, most
        at_once += 1
        most = max(most, at_once)
        await clock.sleep(5)
        at_once -= 1
        return httpx.Response(200, content=b"x")

    async with fetcher(clock=clock, transport=httpx.MockTransport(slow), pace=Pace(max_in_flight=7)) as fetching:
        await clock.run(
            asyncio.wait_for(asyncio.gather(*(fetching.fetch(f"http://h{n}.example/") for n in range(40))), None)
        )
    assert most == 7


# proxies


async def test_a_proxy_of_the_environment_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{free_port()}")
    async with page_server({"/": page("direct")}) as server:
        assert (await fetch(server)).status == "ok"


async def test_the_configured_proxy_is_used_for_every_page() -> None:
    async with (
        page_server({"http://example.org/": page("through")}) as proxy,
        fetcher(proxy=proxy.url(), resolve=fails) as fetching,
    ):
        found = await fetching.fetch("http://example.org/")
        inner = await fetching.fetch("http://127.0.0.1/")
    assert (found.status, found.body) == ("ok", b"<p>through</p>")
    assert inner.status == "non_public"
    assert len(proxy.seen) == 1


async def test_a_proxy_that_is_gone_is_our_network_and_not_the_page() -> None:
    async with fetcher(proxy=f"http://127.0.0.1:{free_port()}", resolve=always) as fetching:
        found = await fetching.fetch("http://example.org/")
    assert found.status == "own_network"
