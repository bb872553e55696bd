"""Reading the body of an answer, whole or piece by piece, with a cap on what is taken and what it decodes to."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import AsyncIterable, AsyncIterator, Mapping
from typing import Final

from core.errors import CallError

#: Bytes of a decoded body that are read; a larger one is an error.
MAX_BODY: Final = 64 * 1024 * 1024


class BodyTooLong(CallError):
    """An answer whose body, as it came or decoded, is longer than the caller takes."""

    def __init__(self, limit: int) -> None:
        super().__init__("malformed", f"the body is longer than {limit / 2**20:g} MiB")


async def pieces(stream: AsyncIterable[bytes], idle_s: float) -> AsyncIterator[bytes]:
    """A body's bytes as they come, up to MAX_BODY in all; TimeoutError when `idle_s` seconds bring none."""
    source = aiter(stream)
    size = 0
    while True:
        try:
            async with asyncio.timeout(idle_s):
                piece = await anext(source)
        except StopAsyncIteration:
            return
        size += len(piece)
        if size > MAX_BODY:
            raise BodyTooLong(MAX_BODY)
        yield piece


async def read(stream: AsyncIterable[bytes], headers: Mapping[str, str], limit: int) -> bytes:
    """A body, decoded as its headers say, up to `limit` bytes."""
    declared = headers.get("content-length", "")
    if declared.isdigit() and int(declared) > limit:
        raise BodyTooLong(limit)
    chunks: list[bytes] = []
    size = 0
    async for chunk in stream:
        chunks.append(chunk)
        size += len(chunk)
        if size > limit:
            raise BodyTooLong(limit)
    body = chunks[0] if len(chunks) == 1 else b"".join(chunks)
    encoding = headers.get("content-encoding", "").strip().lower()
    return _decoded(body, encoding, limit) if encoding and body else body


def _decoded(body: bytes, encoding: str, limit: int) -> bytes:
    if encoding == "identity":
        return body
    if encoding not in ("gzip", "x-gzip", "deflate"):
        raise CallError("malformed", f"the body has the encoding {encoding[:40]!r}; we asked for gzip or deflate")
    for window in (47, -15):  # a zlib or gzip header; some servers send `deflate` without one
        decoder = zlib.decompressobj(window)
        try:
            decoded = decoder.decompress(body, limit + 1)
        except zlib.error:
            continue
        if len(decoded) > limit:
            raise BodyTooLong(limit)
        if not decoder.eof:
            raise CallError("cut", "the compressed body broke off")
        return decoded
    raise CallError("malformed", f"the body is not {encoding}, as its header says")
