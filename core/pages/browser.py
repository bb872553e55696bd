"""Drawing a page that is empty without JavaScript, with a Chromium of the user's.

A browser looks names up and connects by itself, and a page's scripts may ask it to connect anywhere. So it is
given one way out: a proxy of ours on loopback, which puts every address to the guard and connects to what the
guard allowed. Each page gets a fresh profile, a deadline and a cap on what comes out.

The browser keeps its own sandbox, which needs an ordinary user: as root it does not start.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from core.pages.guard import Guard, Refusal

#: Milliseconds of a page's own time in which its scripts may fill it.
_VIRTUAL_MS: Final = 10_000
#: Browsers at a time: each takes a core and some hundred MiB.
_AT_ONCE: Final = 2
_HEAD: Final = 64 * 1024
_CHUNK: Final = 64 * 1024
#: Bytes that one page may draw through the proxy.
_TRAFFIC: Final = 64 * 1024 * 1024
_CONNECT_S: Final = 20.0
_FLAGS: Final = (
    "--headless",
    "--disable-gpu",
    "--disable-extensions",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-domain-reliability",
    "--disable-sync",
    "--disable-quic",
    "--dns-prefetch-disable",
    "--no-first-run",
    "--no-default-browser-check",
    "--no-pings",
    "--metrics-recording-only",
    "--mute-audio",
    "--block-new-web-contents",
    "--deny-permission-prompts",
    # scripts may open peer connections: not past the proxy
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--proxy-bypass-list=<-loopback>",
)


class BrowserError(Exception):
    """The browser gave no page; the text says why."""


class Browser:
    """Chromium at `path`, each page under `timeout_s` and no longer than `max_bytes` when it is drawn."""

    def __init__(self, path: str, guard: Guard, *, timeout_s: float, max_bytes: int) -> None:
        self._path, self._guard, self._timeout_s, self._max_bytes = path, guard, timeout_s, max_bytes
        self._slots = asyncio.Semaphore(_AT_ONCE)

    @staticmethod
    def missing(path: str) -> str | None:
        """What a run lacks to use a browser; None when it is there."""
        return None if shutil.which(path) else f"pages.browser: there is no program {path!r}"

    async def draw(self, url: str) -> bytes:
        """The page's elements as HTML in UTF-8, after its scripts ran. Raises BrowserError or Refusal."""
        target = self._guard.check(url)
        async with self._slots, doorman(self._guard) as port:
            with tempfile.TemporaryDirectory(prefix="leadline-", ignore_cleanup_errors=True) as profile:
                return await self._run(
                    *_FLAGS,
                    f"--proxy-server=http://127.0.0.1:{port}",
                    f"--user-data-dir={profile}",
                    f"--virtual-time-budget={_VIRTUAL_MS}",
                    "--dump-dom",
                    target.url,
                    home=profile,
                )

    async def _run(self, *arguments: str, home: str) -> bytes:
        environment = {"PATH": os.environ.get("PATH", os.defpath), "HOME": home, "LANG": "C.UTF-8"}
        try:
            process = await asyncio.create_subprocess_exec(
                self._path,
                *arguments,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.DEVNULL,
                env=environment,
                cwd=home,
                start_new_session=True,  # a browser is a family of processes: they end together
            )
        except OSError as error:
            raise BrowserError(f"the browser can't be started: {error.strerror}") from None
        try:
            async with asyncio.timeout(self._timeout_s):
                drawn = await self._output(process)
                code = await process.wait()
        except TimeoutError:
            raise BrowserError(f"the browser took longer than {self._timeout_s:g} s") from None
        finally:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
        if code != 0 or not drawn.strip():
            raise BrowserError(f"the browser ended with {code} and {len(drawn)} bytes")
        return drawn

    async def _output(self, process: asyncio.subprocess.Process) -> bytes:
        assert process.stdout is not None
        parts, size = [], 0
        while chunk := await process.stdout.read(_CHUNK):
            parts.append(chunk)
            size += len(chunk)
            if size > self._max_bytes:
                raise BrowserError(f"the browser's page is longer than {self._max_bytes} bytes")
        return b"".join(parts)


@asynccontextmanager
async def doorman(guard: Guard) -> AsyncIterator[int]:
    """A proxy on loopback that lets through what the guard lets through; gives its port."""
    left = [_TRAFFIC]
    at_work: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        at_work.add(task)
        try:
            with contextlib.suppress(OSError, EOFError, ValueError, asyncio.LimitOverrunError, TimeoutError):
                await _pass_on(guard, reader, writer, left)
        finally:
            at_work.discard(task)
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0, limit=_HEAD)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        for task in list(at_work):
            task.cancel()
        await asyncio.gather(*at_work, return_exceptions=True)


async def _pass_on(
    guard: Guard, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, left: list[int]
) -> None:
    """One connection of the browser's: a tunnel, or one plain request."""
    head = await reader.readuntil(b"\r\n\r\n")
    line, _, fields = head.partition(b"\r\n")
    method, where, version = line.decode("ascii").split(" ")
    tunnel = method == "CONNECT"
    try:
        target = guard.check(f"https://{where}/" if tunnel else where)
        async with asyncio.timeout(_CONNECT_S):
            address = (await guard.resolve(target.host, target.port))[0]["host"]
            there_reader, there_writer = await asyncio.open_connection(address, target.port)
    except (OSError, TimeoutError) as error:
        status = b"403 Forbidden" if isinstance(error, Refusal) else b"502 Bad Gateway"
        writer.write(b"HTTP/1.1 " + status + b"\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        await writer.drain()
        return
    try:
        if tunnel:
            writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        else:
            path = b"/" + where.split("://", 1)[1].partition("/")[2].encode("ascii")
            there_writer.write(b" ".join((method.encode(), path, version.encode())) + b"\r\n" + _once(fields))
        async with asyncio.TaskGroup() as group:
            group.create_task(_pour(reader, there_writer, left))
            group.create_task(_pour(there_reader, writer, left))
    except* (OSError, EOFError):
        pass
    finally:
        there_writer.close()


def _once(fields: bytes) -> bytes:
    """Header fields that ask the server to close after its answer: the next request is checked anew."""
    kept = [line for line in fields.split(b"\r\n") if not line.lower().startswith((b"connection:", b"proxy-"))]
    return b"\r\n".join([b"Connection: close", *kept])


async def _pour(source: asyncio.StreamReader, drain: asyncio.StreamWriter, left: list[int]) -> None:
    """From one side to the other until it ends or the page has had its share."""
    while chunk := await source.read(_CHUNK):
        left[0] -= len(chunk)
        if left[0] < 0:
            raise EOFError("more than one page may draw")
        drain.write(chunk)
        await drain.drain()
    if drain.can_write_eof():
        drain.write_eof()
