"""The pages of a run, as graders see them: from memory, the archive, a folder, or the web.

    get ─▶ memory ─▶ archive or fixtures ─▶ lease ─▶ fetch ─▶ archive ─▶ read ─▶ Page
                                              └─ one fetch a page, whoever asks: judges, repeats, other processes

A page that we could not see in an earlier run is asked for again; in this run it is asked once. When the
network itself is gone the run's brake is pulled: pages are missing then, and none counts as gone.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final

from core.clock import Clock, RealClock
from core.config import PagesSection
from core.errors import StopRun
from core.pages.archive import Archive
from core.pages.browser import Browser, BrowserError
from core.pages.extraction import AT_HOME, EXTRACT, Extraction
from core.pages.fetched import OURS, Fetched, iso
from core.pages.fixtures import Fixtures
from core.pages.guard import Guard, Refusal, Resolve, check_form
from core.pages.page import Page, PageStatus
from core.pages.urls import archive_key, variants
from core.pages.web import Web, check_section
from core.resources import SCHEME, resolve

if TYPE_CHECKING:
    import httpx

    from core.stop import Stop

#: What pages are read with (core/pages/extract.py), the last for trafilatura.
READERS: Final = ("selectolax", "resiliparse", "trafilatura", "pypdfium2", "lxml_html_clean")
#: Characters of read pages that stay in memory; a benchmark's records come page by page, not at random.
_REMEMBERED: Final = 48 * 1024 * 1024
#: Pages of a packaged sample that are read without a worker: its demonstration starts none.
_SAMPLE: Final = 64
_LEASE_POLL_S: Final = 0.2
#: Outages that one page waits out before it is left alone.
_OUTAGES: Final = 3
#: What reading a body may say of a page that another day may show.
_ASK_AGAIN: Final[frozenset[PageStatus]] = frozenset({"bot_wall", "paywall", "empty_js"})


class PageService:
    """Implements core.pages.page.Pages. Built without touching the network or the store.

    `transport` and `resolve_name` stand in for the network, `target` for the extractor (tests).
    `fetched` and `reused` count pages.
    """

    def __init__(
        self,
        section: PagesSection,
        *,
        transport: httpx.AsyncBaseTransport | None = None,
        resolve_name: Resolve | None = None,
        target: str = EXTRACT,
    ) -> None:
        check_section(section)
        self._section = section
        self._clock: Clock = RealClock()
        self._stop: Stop | None = None
        self._transport, self._resolve_name = transport, resolve_name
        self._fixtures = None
        if section.mode == "fixtures":
            assert section.path is not None
            self._fixtures = Fixtures(resolve(section.path, folder=True), archive_key)
        self._guard = Guard(allow_hosts=section.allow_hosts)
        self._opened: Archive | None = None
        trusted = section.mode == "fixtures" and str(section.path).startswith(SCHEME)
        self._extraction = Extraction(target=target, trusted=trusted, at_home=_SAMPLE if trusted else AT_HOME)
        self._web: Web | None = None
        self._opening = asyncio.Lock()
        self._since = self._fresh_since = 0.0
        self._running: dict[str, asyncio.Task[Page]] = {}
        self._read: OrderedDict[str, tuple[Page, int]] = OrderedDict()
        self._held = 0
        self.fetched = self.reused = 0

    @property
    def _archive(self) -> Archive:
        assert self._opened is not None, "the pages are not open: nothing may be asked before a run starts"
        return self._opened

    def open(self, *, store: Path, clock: Clock, stop: Stop | None = None, started: float | None = None) -> None:
        """The run begins: its store, clock and brake, and when it was first started (for `refresh`)."""
        self._opened = Archive(store)
        self._clock, self._stop = clock, stop
        self._since = clock.now()
        self._fresh_since = self._since if started is None else started

    def check(self) -> list[str]:
        """What a run would lack."""
        browser = self._section.browser
        missing = Browser.missing(browser) if browser else None
        # a library that is not there would make every page unreadable, and so unseen
        absent = [name for name in READERS if find_spec(name) is None]
        return [
            *([missing] if missing else []),
            *(f"pages: the package {name} is not installed" for name in absent),
        ]

    def warnings(self) -> list[str]:
        """What every report of the run says of its pages."""
        section = self._section
        found = []
        if section.allow_hosts:
            hosts = ", ".join(section.allow_hosts)
            found.append(f"pages.allow_hosts: pages were fetched from {hosts}, which need not be public")
        if section.mode == "web" and section.control_hosts == ():
            found.append("pages.control_hosts is empty: without a network every page would count as gone")
        return found

    async def get(self, url: str) -> Page:
        """The page at an address; never raises for what a page does."""
        try:
            self._check(url)
        except Refusal as refusal:
            # of this spelling alone: another one of the same page may be asked for, and shares its key
            return Page(url=url, status=refusal.status, message=refusal.message)
        key = archive_key(url)
        page = self._remembered(key)
        if page is None:
            task = self._running.get(key)
            if task is None:
                # a task of its own: whoever asked first may be cancelled while others wait for the page
                task = self._running[key] = asyncio.create_task(self._load(key, url))
                task.add_done_callback(lambda _: self._running.pop(key, None))
            page = await asyncio.shield(task)
        return page if page.url == url else replace(page, url=url)

    async def aclose(self) -> None:
        """Give up what is under way; close the client, the workers and the store."""
        running = list(self._running.values())
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
        if self._web is not None:
            await self._web.aclose()
            self._web = None
        await self._extraction.aclose()
        if self._opened is not None:
            self._opened.close()

    # one page

    def _check(self, url: str) -> None:
        """Refuse an address as it is written, before anything is looked up under its key; raises Refusal.

        Pages that were fetched under another run's `allow_hosts` may be read where nothing is fetched.
        """
        if self._section.mode == "web":
            self._guard.check(url)
        else:
            check_form(url)

    async def _load(self, key: str, url: str) -> Page:
        try:
            page = await self._find(key, url)
        except StopRun as stop:
            return Page(url=url, status="own_network", message=f"not fetched: {stop.message}")
        if page.status not in OURS or (self._web is not None and self._web.control.alive):
            self._remember(key, page)
        return page

    async def _find(self, key: str, url: str) -> Page:
        if self._section.mode == "web":
            return await self._from_web(key, url)
        found = self._fixtures.get(key) if self._fixtures is not None else self._archive.get(key)
        if found is not None:
            self.reused += 1
            return await self._page(found)
        try:
            self._guard.check(url)
        except Refusal as refusal:
            return Page(url=url, status=refusal.status, message=refusal.message)
        place = self._fixtures.folder if self._fixtures is not None else self._archive.path
        return Page(url=url, status="not_archived", message=f"the page is not in {place}")

    async def _from_web(self, key: str, url: str) -> Page:
        web = await self._network()
        kept = self._archive.get(key)
        if kept is not None and self._is_usable(kept):
            page = await self._page(kept)
            if page.status not in _ASK_AGAIN or kept.fetched_at >= self._since:
                self.reused += 1
                return page
        try:
            while not self._archive.take_lease(key):
                await self._clock.sleep(_LEASE_POLL_S)
            # whoever had the lease may have fetched the page between our look and our lease
            again = self._archive.get(key)
            if again is not None and again.fetched_at >= self._since and self._is_usable(again):
                self.reused += 1
                return await self._page(again)
            return await self._fetch(web, key, url)
        finally:
            self._archive.drop_lease(key)

    def _is_usable(self, kept: Fetched) -> bool:
        """Whether an archived fetch answers for a run that may fetch."""
        if self._section.refresh and kept.fetched_at < self._fresh_since:
            return False
        return kept.settled or kept.fetched_at >= self._since

    async def _fetch(self, web: Web, key: str, url: str) -> Page:
        fetched = await self._once_online(web, url)
        self.fetched += 1
        page = await self._page(fetched)
        if page.status == "empty_js" and web.browser is not None:
            drawn = await self._drawn(web.browser, fetched)
            if drawn is not None:
                fetched, page = drawn, await self._page(drawn)
        self._archive.put(key, fetched)
        return page

    async def _once_online(self, web: Web, url: str) -> Fetched:
        """Fetch, and again when a network that was gone has come back; without one the run ends."""
        for _ in range(_OUTAGES):
            if self._stop is not None:
                self._stop.check()
            fetched = None if web.control.offline else await web.fetcher.fetch(url)
            if fetched is not None and (fetched.status not in OURS or web.control.alive):
                return fetched
            if await web.control.comes_back():
                continue
            if web.control.offline:
                stop = StopRun("connect", "neither pages nor control hosts can be reached: check network and DNS")
                if self._stop is not None:
                    self._stop.pull(stop)
                raise stop
            if fetched is not None:
                return fetched
        return await web.fetcher.fetch(url)

    async def _drawn(self, browser: Browser, fetched: Fetched) -> Fetched | None:
        """The page as a browser draws it; None when it does not."""
        try:
            body = await browser.draw(fetched.final_url or fetched.url)
        except (BrowserError, Refusal):
            return None
        return replace(fetched, body=body, content_type="text/html; charset=utf-8", charset="utf-8", rendered=True)

    async def _page(self, fetched: Fetched) -> Page:
        """A fetch as a page: read, when there is something to read."""
        page = Page(
            url=fetched.url,
            status=fetched.status,
            final_url=fetched.final_url,
            chain=fetched.chain,
            http_status=fetched.http_status,
            content_type=fetched.content_type,
            charset=fetched.charset,
            fetched_at=iso(fetched.fetched_at) if fetched.fetched_at else None,
            digest=fetched.digest(),
            message=fetched.message,
        )
        if fetched.status != "ok":
            return page
        said = await self._extraction.read(fetched)
        page = replace(
            page,
            status=said["status"],
            charset=said.get("charset") or page.charset,
            extractor_version=said.get("extractor_version") or "",
            message=said.get("message") or "",
        )
        if page.status != "ok":
            return page
        return replace(
            page,
            title=said.get("title") or "",
            metadata=tuple((name, value) for name, value in said.get("metadata", ())),
            main_text=said.get("main_text") or "",
            texts=tuple((name, text) for name, text in said["texts"]),
        )

    # memory

    def _remembered(self, key: str) -> Page | None:
        found = self._read.get(key)
        if found is None:
            return None
        self._read.move_to_end(key)
        return found[0]

    def _remember(self, key: str, page: Page) -> None:
        size = len(page.main_text) + sum(len(text) for _, text in page.texts)
        self._read[key] = (page, size)
        self._held += size
        while self._held > _REMEMBERED and len(self._read) > 1:
            _, (_, dropped) = self._read.popitem(last=False)
            self._held -= dropped

    # the network

    async def _network(self) -> Web:
        """What fetches, made when the first page is asked for."""
        async with self._opening:
            if self._web is None:
                web = Web(self._section, self._clock, variants, self._transport, self._resolve_name)
                await web.control.start()
                self._web = web
            return self._web
