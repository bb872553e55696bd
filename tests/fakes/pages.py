"""Stand-ins for the web: a server of pages, a reader of bodies, a clock that never waits."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from fakes.sockets import Handler, read_request, serving

from core.pages.page import PageStatus


def answer(status: int = 200, body: bytes = b"", *fields: str) -> bytes:
    """An HTTP answer, to the byte."""
    lines = [f"HTTP/1.1 {status} Said", f"Content-Length: {len(body)}", *fields]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def page(text: str, *fields: str) -> bytes:
    """An HTML page with a text."""
    return answer(200, f"<p>{text}</p>".encode(), "Content-Type: text/html; charset=utf-8", *fields)


def moved(location: str, status: int = 302) -> bytes:
    return answer(status, b"", f"Location: {location}")


def broken_off(raw: bytes) -> Handler:
    """Write these bytes and close."""

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(raw)
        await writer.drain()

    return handle


@dataclass
class PageServer:
    """Serves `pages` by path; a list is served one after the other, its last for good. `seen` are the heads.

    A handler is called when its request has been read, and ends the connection.
    """

    port: int = 0
    pages: dict[str, bytes | Handler | list[bytes]] = field(default_factory=dict)
    seen: list[str] = field(default_factory=list)
    _open: list[asyncio.StreamWriter] = field(default_factory=list)

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self.port}"

    def url(self, path: str = "/") -> str:
        return f"http://{self.host}{path}"

    def paths(self) -> list[str]:
        return [head.split(" ")[1] for head in self.seen]

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open.append(writer)
        while True:
            first = await reader.readexactly(1)
            if first == b"\x16":
                return  # somebody tries TLS, of which this server knows nothing
            head = (first + await read_request(reader)).decode("latin-1")
            self.seen.append(head)
            found = self.pages.get(head.split(" ")[1], answer(404))
            if isinstance(found, list):
                found = found.pop(0) if len(found) > 1 else found[0]
            if not isinstance(found, bytes):
                await found(reader, writer)
                return
            writer.write(found)
            await writer.drain()


@asynccontextmanager
async def page_server(
    pages: Mapping[str, bytes | Handler | list[bytes]] | None = None,
) -> AsyncIterator[PageServer]:
    """A server of pages on 127.0.0.1."""
    server = PageServer(pages=dict(pages or {}))
    async with serving(server._serve) as port:
        server.port = port
        try:
            yield server
        finally:
            for writer in server._open:
                writer.close()


async def until(condition: Callable[[], object]) -> None:
    """Let others run until something is the case."""
    while not condition():  # noqa: ASYNC110  # what is waited for sets no event
        await asyncio.sleep(0)


class SwiftClock:
    """A clock whose sleeps pass at once. `slept` lists them."""

    def __init__(self, start: float = 1_800_000_000.0) -> None:
        self.start, self.elapsed = start, 0.0
        self.slept: list[float] = []

    def now(self) -> float:
        return self.start + self.elapsed

    def monotonic(self) -> float:
        return self.elapsed

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.elapsed += seconds
        await asyncio.sleep(0)


@dataclass(frozen=True)
class Extracted:
    """What core.pages.extract gives."""

    status: PageStatus
    title: str = ""
    metadata: Sequence[tuple[str, str]] = ()
    main_text: str = ""
    texts: Sequence[tuple[str, str]] = ()
    charset: str | None = None
    extractor_version: str = "fake 1"
    message: str = ""


#: Bodies that say what reading them does.
CRASH, HANG, FAIL, SCRIPTS, BABBLE, ENVIRON = b"CRASH", b"HANG", b"FAIL", b"SCRIPTS", b"BABBLE", b"ENVIRON"


def read(body: bytes, content_type: str | None, charset: str | None, url: str) -> Extracted:
    """A reader that takes the body for the text."""
    if body == CRASH:
        os.abort()
    if body == HANG:
        time.sleep(3600)
    if body == FAIL:
        raise ValueError("not a page at all")
    if body == BABBLE:
        os.write(1, b"a parser's debug print\n")
    if body == SCRIPTS:
        return Extracted("empty_js", message="nothing without JavaScript")
    text = repr(sorted(os.environ)) if body == ENVIRON else body.decode(charset or "utf-8", "replace")
    return Extracted("ok", "title", (("type", content_type or ""),), text, (("all", text), ("url", url)), "utf-8")


READER = "fakes.pages:read"
