"""The pages of a run: one fetch a page, from wherever it can be had, and nothing that could not be seen counts."""

from __future__ import annotations

import asyncio
import hashlib
import os
import socket
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Any

import httpx
import pytest
from fakes.pages import CRASH, READER, SCRIPTS, SwiftClock, answer, moved, page, page_server, until
from fakes.sockets import free_port

from core.config import PagesSection
from core.errors import InputError, StopRun
from core.pages import service as service_module
from core.pages.archive import Archive
from core.pages.command import export_pages
from core.pages.fetched import Fetched
from core.pages.page import Page
from core.pages.service import PageService
from core.pages.urls import archive_key
from core.stop import Stop, StoppableClock

URL = "http://site.example/a"
Make = Callable[..., PageService]


class Site:
    """The whole web, in memory: answers by path, counts, and can be cut off."""

    def __init__(self, **answers: Any) -> None:
        self.answers: dict[str, Any] = {"/a": "page a", **answers}
        self.asked: list[str] = []
        self.up = True
        self.gate: asyncio.Event | None = None

    async def __call__(self, request: httpx.Request) -> httpx.Response:
        self.asked.append(str(request.url))
        if self.gate is not None:
            await self.gate.wait()
        if not self.up:
            raise httpx.ConnectError("refused") from socket.gaierror(socket.EAI_NONAME, "no such name")
        found = self.answers.get(request.url.path, 404)
        if isinstance(found, int):
            return httpx.Response(found)
        content = found if isinstance(found, bytes) else found.encode()
        return httpx.Response(200, content=content, headers={"content-type": "text/html"})

    async def resolve(self, host: str) -> Sequence[str]:
        if not self.up:
            raise socket.gaierror(socket.EAI_NONAME, "no such name")
        return ["93.184.215.14"]


@pytest.fixture
async def make(tmp_path: Path) -> AsyncIterator[Make]:
    made: list[PageService] = []

    def build(
        site: Site | None = None,
        *,
        clock: SwiftClock | None = None,
        stop: Stop | None = None,
        started: float | None = None,
        store: Path | None = None,
        **keys: Any,
    ) -> PageService:
        pages = PageService(
            PagesSection(**{"mode": "web", "control_hosts": ("control.example",), **keys}),
            transport=httpx.MockTransport(site) if site else None,
            resolve_name=site.resolve if site else None,
            target=READER,
        )
        used = clock or SwiftClock()
        pages.open(
            store=store or tmp_path / "store.sqlite",
            clock=StoppableClock(used, stop) if stop else used,
            stop=stop,
            started=started,
        )
        made.append(pages)
        return pages

    yield build
    for pages in made:
        await pages.aclose()


async def test_a_page_with_all_that_is_known_of_it(make: Make) -> None:
    found = await make(Site()).get(URL)
    assert found == Page(
        url=URL,
        status="ok",
        final_url=URL,
        http_status=200,
        content_type="text/html",
        charset="utf-8",
        fetched_at="2027-01-15T08:00:00.000+00:00",
        digest=hashlib.sha256(b"page a").hexdigest(),
        title="title",
        metadata=(("type", "text/html"),),
        main_text="page a",
        texts=(("all", "page a"), ("url", URL)),
        extractor_version="fake 1",
    )


async def test_whoever_asks_and_however_often_a_page_is_fetched_once(make: Make) -> None:
    site = Site()
    first, second = make(site), make(site)
    answers = await asyncio.gather(*(first.get(URL) for _ in range(20)))
    later = [await first.get(URL), await second.get(URL)]
    assert {page.main_text for page in (*answers, *later)} == {"page a"}
    assert site.asked == [URL]
    assert (first.fetched, second.reused) == (1, 1)


async def test_an_asker_who_leaves_takes_nobody_along(make: Make) -> None:
    site = Site()
    site.gate = asyncio.Event()
    pages = make(site)
    first, second = asyncio.create_task(pages.get(URL)), asyncio.create_task(pages.get(URL))
    await until(lambda: site.asked)
    first.cancel()
    site.gate.set()
    assert (await second).main_text == "page a"
    assert site.asked == [URL]


async def test_another_process_that_fetches_is_waited_for(make: Make, tmp_path: Path) -> None:
    from core.store import _started

    site, clock = Site(), SwiftClock()
    pages = make(site, clock=clock)
    other = Archive(tmp_path / "store.sqlite")
    other._store._owner = f"{os.getppid()}:{_started(os.getppid())}"
    key = archive_key(URL)
    assert other.take_lease(key)
    asking = asyncio.create_task(pages.get(URL))
    await until(lambda: len(clock.slept) >= 3)
    theirs = Fetched(url=URL, status="ok", fetched_at=clock.now(), content_type="text/html", body=b"theirs")
    other.put(key, theirs)
    other.drop_lease(key)
    assert (await asking).main_text == "theirs"
    assert site.asked == []


@pytest.mark.parametrize(
    ("what", "status", "asked_again"),
    [
        pytest.param("text", "ok", False, id="a page"),
        pytest.param(404, "not_found", False, id="gone"),
        pytest.param(410, "gone", False, id="gone for good"),
        pytest.param(403, "forbidden", True, id="unseen"),
        pytest.param(SCRIPTS, "empty_js", True, id="unseen without JavaScript"),
        pytest.param(CRASH, "unsupported_type", False, id="cannot be read"),
    ],
)
async def test_what_a_later_run_asks_again(make: Make, what: Any, status: str, asked_again: bool) -> None:
    site, clock = Site(**{"/x": what}), SwiftClock()
    first = make(site, clock=clock)
    first._extraction._left_at_home = 0
    url = "http://site.example/x"
    for _ in range(2):
        assert (await first.get(url)).status == status
    same_run = make(site, clock=SwiftClock(clock.start))
    same_run._extraction._left_at_home = 0
    assert (await same_run.get(url)).status == status
    assert site.asked.count(url) == 1, "the same run asks once"
    later = make(site, clock=SwiftClock(clock.start + 86_400))
    later._extraction._left_at_home = 0
    assert (await later.get(url)).status == status
    assert site.asked.count(url) == 1 + asked_again


async def test_refresh_fetches_again_once_a_run(make: Make) -> None:
    site = Site()
    await make(site).get(URL)
    site.answers["/a"] = "page a, later"
    day = SwiftClock(SwiftClock().start + 86_400)
    fresh = await make(site, clock=day, refresh=True).get(URL)
    restarted = SwiftClock(day.start + 60)
    again = await make(site, clock=restarted, refresh=True, started=day.start).get(URL)
    assert (fresh.main_text, again.main_text) == ("page a, later", "page a, later")
    assert site.asked == [URL, URL]


async def test_a_fresh_failure_leaves_the_old_page_in_the_archive(make: Make) -> None:
    site = Site()
    await make(site).get(URL)
    site.answers["/a"] = 403
    assert (await make(site, clock=SwiftClock(2e9), refresh=True).get(URL)).status == "forbidden"
    assert (await make(mode="archive").get(URL)).status == "ok"


# without fetching


async def test_the_archive_alone(make: Make) -> None:
    site = Site(**{"/no": 403})
    web = make(site)
    await web.get(URL)
    await web.get("http://site.example/no")
    archive = make(mode="archive")
    assert (await archive.get(URL)).main_text == "page a"
    assert (await archive.get("http://site.example/no")).status == "forbidden"
    missing = await archive.get("http://site.example/other")
    assert missing.status == "not_archived"
    assert "store.sqlite" in missing.message


async def test_fixtures_open_no_socket_and_no_store(
    make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    web = make(Site())
    await web.get(URL)
    await web.aclose()
    export_pages(tmp_path / "store.sqlite", tmp_path / "pages")

    def no_socket(*_: Any, **__: Any) -> Any:
        raise AssertionError("a socket")

    monkeypatch.setattr(socket, "getaddrinfo", no_socket)
    monkeypatch.setattr(socket.socket, "connect", no_socket)
    pages = make(mode="fixtures", path=str(tmp_path / "pages"), store=tmp_path / "never.sqlite")
    assert (await pages.get(URL)).main_text == "page a"
    assert (await pages.get("http://site.example/other")).status == "not_archived"
    assert (await pages.get("ftp://site.example/other")).status == "unsupported_scheme"
    await pages.aclose()
    assert not (tmp_path / "never.sqlite").exists()


@pytest.mark.parametrize("mode", ["web", "archive"])
@pytest.mark.parametrize(
    ("url", "status"),
    [
        ("http://127.0.0.1/", "non_public"),
        ("ftp://site.example/", "unsupported_scheme"),
        ("http://me:word@site.example/", "unsupported_scheme"),
        ("not an address", "unsupported_scheme"),
        ("", "unsupported_scheme"),
        ("http://\ud800/", "unsupported_scheme"),
    ],
)
async def test_addresses_that_are_never_fetched(make: Make, mode: str, url: str, status: str) -> None:
    site = Site()
    found = await make(site, mode=mode).get(url)
    assert (found.status, found.url, site.asked) == (status, url, [])


FULL = "http://site.example/a"
#: Addresses that are refused, and share the key of one that is not.
TWINS = [
    pytest.param("http://me:word@site.example/a", FULL, id="credentials"),
    pytest.param("http://@site.example/a", FULL, id="empty credentials"),
    pytest.param(f"{FULL}#{'x' * 9000}", FULL, id="an endless fragment"),
    pytest.param(f"{FULL}?utm_source={'x' * 9000}", FULL, id="an endless tracking parameter"),
    pytest.param("http://si\tte.example/a", FULL, id="a tab in the host"),
    pytest.param("\x00http://site.example/a", FULL, id="a control character before the scheme"),
    pytest.param("http://site.example../a", FULL, id="two dots at the end"),
    pytest.param("HTTP://U:P@SITE.example:80/a", FULL, id="credentials, case and default port"),
]


@pytest.mark.parametrize("mode", ["web", "archive", "fixtures"])
@pytest.mark.parametrize(("refused", "fine"), TWINS)
@pytest.mark.parametrize("first", ["refused", "fine", "both"])
async def test_a_refusal_is_of_one_spelling(
    make: Make, tmp_path: Path, mode: str, refused: str, fine: str, first: str
) -> None:
    assert archive_key(refused) == archive_key(fine)
    kept = Fetched(fine, "ok", 1.0, content_type="text/html", charset="utf-8", body=b"page a")
    keys: dict[str, Any] = {"mode": mode}
    if mode == "archive":
        archive = Archive(tmp_path / "store.sqlite")
        archive.put(archive_key(fine), kept)
        archive.close()
    if mode == "fixtures":
        (tmp_path / "pages.jsonl").write_text(f'{{"url": "{fine}", "status": "ok", "file": "a.html"}}\n')
        (tmp_path / "a.html").write_bytes(kept.body)
        keys["path"] = str(tmp_path)
    site = Site() if mode == "web" else None
    pages = make(site, **keys)
    order = [fine, refused] if first == "fine" else [refused, fine]
    if first == "both":
        found = dict(zip(order, await asyncio.gather(*map(pages.get, order)), strict=True))
    else:
        found = {url: await pages.get(url) for url in order}
    assert (found[refused].status, found[refused].texts) == ("unsupported_scheme", ())
    assert found[fine].status == "ok"
    assert site is None or site.asked == [fine]


# the network


def urls(count: int) -> list[str]:
    return [f"http://gone{number}.example/" for number in range(count)]


async def test_names_that_do_not_exist_are_gone_while_a_control_answers(make: Make) -> None:
    async def only_control(host: str) -> Sequence[str]:
        if host != "control.example":
            raise socket.gaierror(socket.EAI_NONAME, "no such name")
        return ["93.184.215.14"]

    pages = PageService(
        PagesSection(mode="web", control_hosts=("control.example",)), resolve_name=only_control, target=READER
    )
    stop = Stop()
    pages.open(store=Path(":memory:"), clock=SwiftClock(), stop=stop)
    found = await asyncio.gather(*(pages.get(url) for url in urls(8)))
    assert {page.status for page in found} == {"no_such_name"}
    assert not stop.pulled
    await pages.aclose()


async def test_without_a_network_the_run_ends_and_no_page_is_gone(make: Make, tmp_path: Path) -> None:
    site, stop, clock = Site(), Stop(), SwiftClock()
    site.up = False
    pages = make(site, stop=stop, clock=clock)
    found = await asyncio.gather(*(pages.get(url) for url in urls(30)))
    assert {page.status for page in found} == {"own_network"}
    assert stop.reason is not None
    assert stop.reason.kind == "connect"
    assert sum(clock.slept) > 0, "it waits before it gives up"
    assert list(Archive(tmp_path / "store.sqlite").all()) == []
    before = len(site.asked)
    assert (await pages.get(URL)).status == "own_network"
    assert len(site.asked) == before, "nothing is fetched after the brake"


async def test_a_network_that_comes_back_costs_no_page(make: Make) -> None:
    site, stop = Site(), Stop()
    clock = SwiftClock()
    pages = make(site, stop=stop, clock=clock)
    await pages.get(URL)
    site.answers |= {"/": "back"}
    site.up = False
    asking = [asyncio.create_task(pages.get(url)) for url in urls(20)]
    await until(lambda: sum(clock.slept) >= 20)
    site.up = True
    found = await asyncio.gather(*asking)
    assert {page.main_text for page in found} == {"back"}
    assert not stop.pulled


async def test_a_few_failures_without_a_network_are_missing_and_the_run_goes_on(make: Make) -> None:
    """Pages of an allowed host may be there although nothing else is."""
    site, stop = Site(), Stop()
    site.up = False
    async with page_server({"/": page("local")}) as server:
        pages = PageService(
            PagesSection(
                mode="web",
                control_hosts=("nosuch.example",),
                allow_hosts=(server.host, f"127.0.0.1:{free_port()}"),
            ),
            resolve_name=site.resolve,
            target=READER,
        )
        pages.open(store=Path(":memory:"), clock=SwiftClock(), stop=stop)
        gone = [await pages.get(url) for url in urls(3)]
        local = await pages.get(server.url())
        more = [await pages.get(url) for url in ("http://x.example/", "http://y.example/")]
        await pages.aclose()
    assert {page.status for page in (*gone, *more)} == {"no_dns"}
    assert local.main_text == "<p>local</p>"
    assert not stop.pulled


async def test_a_stopped_run_fetches_nothing_and_still_reads_the_archive(make: Make) -> None:
    site, stop = Site(), Stop()
    pages = make(site, stop=stop)
    await pages.get(URL)
    stop.pull(StopRun("budget"))
    other = make(site, stop=stop)
    assert (await other.get(URL)).status == "ok"
    found = await other.get("http://site.example/b")
    assert found.status == "own_network"
    assert site.asked == [URL]


# real sockets, real variants


async def test_over_real_sockets(make: Make) -> None:
    async with page_server(
        {"/old": moved("/new"), "/new": page("moved"), "/big": answer(200, b"x" * 5000)}
    ) as server:
        pages = make(allow_hosts=(server.host,), control_hosts=("127.0.0.1",), max_bytes=4096)
        found = await pages.get(server.url("/old"))
        assert (found.main_text, found.chain) == ("<p>moved</p>", (server.url("/new"),))
        assert (await pages.get(server.url("/big"))).status == "too_large"
        assert (await pages.get(server.url("/none"))).status == "not_found"
        assert (await pages.get(f"http://localhost:{server.port}/new")).status == "non_public"
    [warning] = pages.warnings()
    assert server.host in warning


async def test_memory_is_bounded(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service_module, "_REMEMBERED", 10_000)
    site = Site(**{f"/{number}": "x" * 1000 for number in range(50)})
    pages = make(site)
    pages._extraction._left_at_home = 100
    for number in range(50):
        await pages.get(f"http://site.example/{number}")
    assert pages._held <= 10_000
    assert len(pages._read) <= 10
    assert (await pages.get("http://site.example/0")).status == "ok"
    assert site.asked.count("http://site.example/0") == 1, "what memory forgot, the archive has"


# the browser


def browser(tmp_path: Path, code: str) -> str:
    """A program that takes a Chromium's arguments."""
    path = tmp_path / "chromium"
    path.write_text(f"#!{sys.executable}\nimport os, sys, time\nurl = sys.argv[-1]\n{code}\n", encoding="utf-8")
    path.chmod(0o755)
    return str(path)


@pytest.mark.parametrize(
    ("code", "status"),
    [
        pytest.param("print('drawn', url)", "ok", id="draws"),
        pytest.param("sys.exit(1)", "empty_js", id="fails"),
        pytest.param("pass", "empty_js", id="draws nothing"),
        pytest.param("time.sleep(60)", "empty_js", id="hangs"),
        pytest.param("print('x' * 5000)", "empty_js", id="draws too much"),
    ],
)
async def test_a_page_of_scripts_is_drawn(make: Make, tmp_path: Path, code: str, status: str) -> None:
    timeout_s = 1 if "sleep" in code else 30
    pages = make(Site(**{"/a": SCRIPTS}), browser=browser(tmp_path, code), max_bytes=4096, timeout_s=timeout_s)
    found = await pages.get(URL)
    assert found.status == status
    if status == "ok":
        assert found.main_text == f"drawn {URL}\n"
        kept = Archive(tmp_path / "store.sqlite").get(archive_key(URL))
        assert kept is not None
        assert kept.rendered


# what is refused before a run


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        pytest.param({"mode": "fixtures"}, "pages.path", id="fixtures without a folder"),
        pytest.param({"mode": "archive", "path": "x"}, "pages.path", id="a folder without fixtures"),
        pytest.param({"mode": "fixtures", "path": "/nonexistent"}, "pages.jsonl", id="no such folder"),
        pytest.param(
            {"mode": "fixtures", "path": "pkg://plugins.draco/nothing"}, "no folder", id="no such packaged folder"
        ),
        pytest.param({"proxy": "socks5://127.0.0.1:1"}, "pages.proxy", id="another kind of proxy"),
        pytest.param({"proxy": "http://:80"}, "pages.proxy", id="a proxy without a host"),
        pytest.param({"proxy": "http://me:secret@proxy.example:80"}, "pages.proxy", id="a proxy with credentials"),
        pytest.param(
            {"proxy": "http://proxy.example:80", "browser": "x"}, "pages.browser", id="a browser and a proxy"
        ),
    ],
)
def test_what_does_not_go_together(keys: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said) as caught:
        PageService(PagesSection(**{"mode": "web", **keys}))
    assert "secret" not in str(caught.value)


def test_a_browser_that_is_not_there_is_missing() -> None:
    [missing] = PageService(PagesSection(mode="web", browser="/nonexistent/chromium")).check()
    assert "pages.browser" in missing
    assert PageService(PagesSection(mode="web", browser=sys.executable)).check() == []


def test_a_reader_that_is_not_installed_is_told_before_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    service = PageService(PagesSection())
    assert service.check() == []
    monkeypatch.setattr("core.pages.service.READERS", ("json", "no_such_reader"))
    assert service.check() == ["pages: the package no_such_reader is not installed"]
