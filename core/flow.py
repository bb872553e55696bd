"""Bounded concurrency: so many workers pull from an iterator, never a coroutine for each item."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")


async def as_done(
    items: Iterable[T], work: Callable[[T], Awaitable[R]], *, width: int
) -> AsyncGenerator[tuple[T, R], None]:
    """(item, result) in the order of completion, with at most `width` at work.

    The first exception of `work` ends the iteration and is raised; the rest is cancelled. Closing the
    iterator early cancels what is at work.
    """
    pending: dict[asyncio.Task[R], T] = {}
    source = iter(items)
    try:
        while True:
            while len(pending) < width:
                try:
                    item = next(source)
                except StopIteration:
                    break
                pending[asyncio.ensure_future(_run(work, item))] = item
            if not pending:
                return
            done, _ = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                yield pending.pop(task), task.result()
    finally:
        for task in pending:
            task.cancel()
        await asyncio.gather(*pending, return_exceptions=True)


async def _run(work: Callable[[T], Awaitable[R]], item: T) -> R:
    return await work(item)
