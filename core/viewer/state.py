"""What every request shares: the library, the threads that work on it, and how an address is read."""

from __future__ import annotations

import asyncio
import re
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final, ParamSpec, TypeVar

from aiohttp import web

from core.errors import InputError
from core.pages.page import Page
from core.pages.service import PageService
from core.viewer.evidence import pages_for
from core.viewer.library import Library
from core.viewer.live import Live

P = ParamSpec("P")
T = TypeVar("T")
_ID: Final = re.compile(r"[0-9a-f]{16}")
_NUMBER: Final = re.compile(r"[0-9]{1,7}")
_MOST_PAGES: Final = 4


class Viewer:
    """The running viewer. `store`: where pages are archived, if not where a run says."""

    def __init__(self, library: Library, store: Path | None = None) -> None:
        self.library = library
        self.live = Live()
        self.labelling = asyncio.Lock()
        self._store = store
        self._pages: OrderedDict[str, PageService | None] = OrderedDict()
        # the library is not for threads: its one reader is a thread of its own, and what computes for long another
        self._reader = ThreadPoolExecutor(1, "viewer-reads")
        self._computer = ThreadPoolExecutor(1, "viewer-computes")

    async def reading(self, function: Callable[P, T], *words: P.args, **more: P.kwargs) -> T:
        """Run what reads the library; a file that can't be read is an InputError, whatever is wrong with it."""
        loop = asyncio.get_running_loop()
        try:
            return await loop.run_in_executor(self._reader, lambda: function(*words, **more))
        except OSError as error:
            name = Path(str(error.filename)).name if error.filename else ""
            raise InputError(f"a file can't be read: {error.strerror}", where=name) from None
        except (RecursionError, UnicodeDecodeError) as error:
            raise InputError(f"a file can't be read: {error}") from None

    async def computing(self, function: Callable[P, T], *words: P.args, **more: P.kwargs) -> T:
        """Run what takes seconds and reads nothing of the library."""
        return await asyncio.get_running_loop().run_in_executor(self._computer, lambda: function(*words, **more))

    async def page(self, run: str, url: str) -> Page | None:
        """A page as a run's archive has it; None where the archive is not at hand. Nothing is fetched."""
        if run not in self._pages:
            while len(self._pages) >= _MOST_PAGES:
                await _close(self._pages.popitem(last=False)[1])
            path = (await self.reading(self.library.places.run, run)).path
            self._pages[run] = await self.reading(pages_for, path, self.library.places, self._store)
        service = self._pages[run]
        return None if service is None else await service.get(url)

    async def aclose(self) -> None:
        """Close archives and end the threads."""
        for service in self._pages.values():
            await _close(service)
        self._pages.clear()
        self._reader.shutdown(wait=False, cancel_futures=True)
        self._computer.shutdown(wait=False, cancel_futures=True)


VIEWER: Final = web.AppKey("viewer", Viewer)


async def _close(service: PageService | None) -> None:
    if service is not None:
        await service.aclose()


def word_in(request: web.Request, name: str) -> str:
    """An id out of the address; raises InputError for what can't be one."""
    word = request.match_info.get(name, "")
    if not _ID.fullmatch(word):
        raise InputError(f"not the id of a {name}", got=repr(word[:40]))
    return word


def runs_in(request: web.Request) -> list[str]:
    """The ids of runs out of the query, each once."""
    keys = list(dict.fromkeys(request.query.getall("run", [])))
    for key in keys:
        if not _ID.fullmatch(key):
            raise InputError("not the id of a run", got=repr(key[:40]))
    return keys


def number_in(request: web.Request, name: str = "number", default: int | None = None) -> int:
    """A whole number out of the path or the query; raises InputError."""
    word = request.match_info.get(name) or request.query.get(name)
    if word is None and default is not None:
        return default
    if word is None or not _NUMBER.fullmatch(word):
        raise InputError(f"{name}: not a whole number", got=repr((word or "")[:40]))
    return int(word)


def attempt_in(request: web.Request) -> int:
    """The attempt that is asked for: the first, unless the query says."""
    return number_in(request, "attempt", 1)
