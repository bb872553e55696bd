"""Streams that are only news of a job: read until they say that it has ended; the job itself is asked next.

A stream that is opened again may start from its beginning, so its events are not kept.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from core.errors import CallError
from core.jobs import Api
from core.sse import Event

#: Ways for a request that waits to end without news of the job.
NO_NEWS: Final = ("not_found", "bad_request", "malformed", "hung_up", "cut", "timeout", "gateway_timeout")


async def watched(api: Api, path: str, ended: Callable[[Event], bool], *, timeout_s: float) -> None:
    """Read a job's events until one of them is its end, the stream ends or breaks, or `timeout_s` have passed.

    Raises CallError for whatever is no lack of news: a key that does not serve, a limit.
    """
    try:
        async with api.events("GET", path, timeout_s=timeout_s) as events:
            async for event in events:
                if ended(event):
                    return
    except CallError as error:
        if error.kind not in NO_NEWS:
            raise
