"""Servers that misbehave below HTTP: what a connection meets, byte by byte."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def serving(handler: Handler) -> AsyncIterator[int]:
    """A server on 127.0.0.1; gives its port."""

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            await handler(reader, writer)
        writer.close()

    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()


async def read_request(reader: asyncio.StreamReader) -> bytes:
    """The head and body of one request."""
    head = await reader.readuntil(b"\r\n\r\n")
    length = 0
    for line in head.lower().split(b"\r\n"):
        if line.startswith(b"content-length:"):
            length = int(line.split(b":")[1])
    return head + await reader.readexactly(length)


def answering(raw: bytes) -> Handler:
    """Read a request, write these bytes, close."""

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        writer.write(raw)
        await writer.drain()

    return handle


async def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Read a request and close."""
    await read_request(reader)


async def reset(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Read a request and reset the connection."""
    await read_request(reader)
    writer.transport.abort()


async def speaks_no_tls(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer whatever comes as a plain HTTP server does."""
    await reader.read(10)
    writer.write(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
    await writer.drain()


async def never(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Read a request and say nothing until the other side leaves."""
    await read_request(reader)
    await reader.read()


async def never_reads(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Begin an answer without reading the request, then say nothing more."""
    reader._transport.pause_reading()  # type: ignore[attr-defined]  # a reader that does not read
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n12345")
    await asyncio.sleep(3600)


def free_port() -> int:
    """A port on which nobody listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
