"""What fetching and keeping pages costs: the guard, the fetch, the archive, and reading in workers.

    python benchmarks/pages.py [--pages 500] [--kilobytes 170]

Starts a server of invented pages in a process of its own and asks a run's pages service for each. Measures and
never asserts. CPU is user + system time of this process, without the server and the workers.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from core.clock import RealClock
from core.config import PagesSection
from core.pages.archive import Archive
from core.pages.extraction import EXTRACT, Extraction
from core.pages.fetched import Fetched
from core.pages.guard import Guard
from core.pages.service import PageService

WORDS: Final = ("reactor", "orbit", "treaty", "enzyme", "harbour", "index", "glacier", "tariff", "archive", "lens")
#: A server that speaks just enough HTTP to cost next to nothing.
SERVER: Final = """
import asyncio, sys
body = open(sys.argv[1], "rb").read()
head = b"HTTP/1.1 200 OK\\r\\nContent-Type: text/html; charset=utf-8\\r\\nContent-Length: %d\\r\\n\\r\\n"
async def serve(reader, writer):
    try:
        while True:
            request = await reader.readuntil(b"\\r\\n\\r\\n")
            page = body.replace(b"PATH", request.split(b" ", 2)[1])
            writer.write(head % len(page) + page)
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()
async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()
asyncio.run(main())
"""


@dataclass
class Used:
    """Seconds by the clock and of this process's CPU."""

    wall_s: float = 0.0
    cpu_s: float = 0.0


@contextmanager
def measured() -> Iterator[Used]:
    used, wall, before = Used(), time.perf_counter(), resource.getrusage(resource.RUSAGE_SELF)
    yield used
    after = resource.getrusage(resource.RUSAGE_SELF)
    used.wall_s = time.perf_counter() - wall
    used.cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def report(name: str, used: Used, count: int) -> None:
    print(f"{name:<44}{count / used.wall_s:>10,.0f} /s{used.cpu_s / count * 1000:>10.3f} ms CPU each", flush=True)


def article(kilobytes: int) -> bytes:
    """An invented article of a usual make: a fifth of it is text, the rest scripts, navigation and attributes."""
    rng = random.Random(7)

    def sentence(words: int) -> str:
        return " ".join(rng.choice(WORDS) for _ in range(words)).capitalize() + "."

    script = "".join(f"window.v{number}={rng.random()};" for number in range(kilobytes * 15))
    parts = [f"<html><head><title>PATH</title><script>{script}</script></head><body><nav>"]
    parts += [
        f'<div class="menu item-{number}"><a href="/{number}?from=nav">{sentence(2)}</a></div>'
        for number in range(100)
    ]
    parts.append('</nav><article class="content main"><h1>PATH</h1>')
    size = 0
    while size < kilobytes * 450:
        attributes = " ".join(f'data-{word}="{rng.random()}"' for word in WORDS[:6])
        parts.append(f'<p class="body {sentence(2)}" {attributes}>{sentence(40)} <b>{sentence(5)}</b></p>')
        size += len(parts[-1])
    rows = ("".join(f'<td class="cell">{rng.randrange(10_000)}</td>' for _ in range(6)) for _ in range(40))
    parts.append(f"<table>{''.join(f'<tr>{row}</tr>' for row in rows)}</table></article></body></html>")
    return "".join(parts).encode()


@contextmanager
def serving(body: bytes, folder: Path) -> Iterator[int]:
    file = folder / "body.html"
    file.write_bytes(body)
    process = subprocess.Popen([sys.executable, "-c", SERVER, str(file)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        yield int(process.stdout.readline())
    finally:
        process.kill()
        process.wait()


async def ask(urls: Sequence[str], section: PagesSection, store: Path, name: str) -> None:
    """Every page once, 64 askers at a time, as a grader's workers do."""
    pages = PageService(section)
    pages.open(store=store, clock=RealClock())
    left = iter(urls)
    statuses: set[str] = set()

    async def worker() -> None:
        for url in left:
            statuses.add((await pages.get(url)).status)

    with measured() as used:
        await asyncio.gather(*(worker() for _ in range(64)))
    report(name, used, len(urls))
    if statuses != {"ok"}:
        print(f"  not all pages were ok: {sorted(statuses)}")
    await pages.aclose()


async def fetch_only(urls: Sequence[str], section: PagesSection) -> None:
    """The fetch without archive and reading."""
    from core.pages.web import Web

    web = Web(section, RealClock(), lambda _: (), None, None)
    left = iter(urls)

    async def worker() -> None:
        for url in left:
            await web.fetcher.fetch(url)

    with measured() as used:
        await asyncio.gather(*(worker() for _ in range(64)))
    report("fetch", used, len(urls))
    await web.aclose()


def guard(urls: Sequence[str]) -> None:
    checker = Guard()
    with measured() as used:
        for url in urls:
            checker.check(url)
    report("guard: an address as it is written", used, len(urls))


def archive(body: bytes, count: int, folder: Path) -> None:
    kept = Archive(folder / "archive.sqlite")
    pages = [
        Fetched(f"u{number}", "ok", 1.0, body=body.replace(b"PATH", str(number).encode()))
        for number in range(count)
    ]
    with measured() as used:
        for page in pages:
            kept.put(page.url, page)
    report("archive: put", used, count)
    with measured() as used:
        for page in pages:
            kept.get(page.url)
    report("archive: get", used, count)
    kept.close()
    print(f"  {len(body):,} bytes a page, {(folder / 'archive.sqlite').stat().st_size / count:,.0f} in the store")


async def reading(body: bytes, count: int) -> None:
    """Where pages are read: the first at home, the rest in two workers."""
    page = Fetched("http://a.example/", "ok", 1.0, content_type="text/html", charset="utf-8", body=body)
    for name, at_home in (("read: in a thread of this process", count), ("read: in two workers", 0)):
        extraction = Extraction(target=EXTRACT, at_home=at_home and 2 * at_home, trusted=True)
        with measured() as used:
            await extraction.read(page)
        print(f"{name + ', the first page':<44}{used.wall_s:>10.2f} s")
        await extraction.read(page)
        with measured() as used:
            await asyncio.gather(*(extraction.read(page) for _ in range(count)))
        report(name, used, count)
        await extraction.aclose()


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", type=int, default=500)
    parser.add_argument("--kilobytes", type=int, default=170)
    words = parser.parse_args()
    body = article(words.kilobytes)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        guard([f"https://example.org/{number}?a=b#c" for number in range(5000)])
        archive(body, words.pages, folder)
        await reading(body, words.pages // 5)
        with serving(body, folder) as port:
            urls = [f"http://127.0.0.1:{port}/{number}" for number in range(words.pages)]
            section = PagesSection(mode="web", allow_hosts=(f"127.0.0.1:{port}",), control_hosts=("127.0.0.1",))
            await fetch_only(urls, section)
            store = folder / "store.sqlite"
            await ask(urls, section, store, "a page: fetch, archive, read")
            await ask(urls, section, store, "a page of the archive, read")


if __name__ == "__main__":
    asyncio.run(main())
