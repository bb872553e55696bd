"""A search engine and the web behind it, on 127.0.0.1: for agents that search and read.

`results` are the addresses that a search gives, by query or for every query; they may be paths of `pages`, which the
same server serves. It answers in the forms of SearXNG (`/search`), Brave (`/res/v1/web/search`) and Tavily (POST
`/search`), and keeps what it was asked: `queries` in order, `paths` of the pages, `headers` of the searches.

    with SearchServer({"/a": "<p>A page.</p>"}, ["/a"]) as server:
        …  server.url, server.host, server.page("/a")
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Mapping, Sequence
from typing import Any, Self

from aiohttp import web

#: Addresses of results: for every query, or by query.
Results = Sequence[str] | Mapping[str, Sequence[str]]


class SearchServer:
    """The server, in a thread of its own.

    A page is its HTML, a status, or the place it sends on to (`-> /path`). `reply` replaces the answer to every
    search: (status, JSON).
    """

    def __init__(
        self,
        pages: Mapping[str, str | int] | None = None,
        results: Results = (),
        *,
        reply: tuple[int, Any] | None = None,
    ) -> None:
        self.pages = dict(pages or {})
        self.results = results
        self.reply = reply
        self.port = 0
        self.queries: list[str] = []
        self.paths: list[str] = []
        self.headers: list[dict[str, str]] = []
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None
        self._ready = threading.Event()

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def url(self) -> str:
        return f"http://{self.host}"

    def page(self, path: str) -> str:
        """The address of a page; an address stays as it is."""
        return path if "://" in path else f"{self.url}{path}"

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), daemon=True)
        self._thread.start()
        if not self._ready.wait(10):
            raise RuntimeError("the fake search server did not start")
        return self

    def __exit__(self, *_: object) -> None:
        assert self._loop is not None
        assert self._stop is not None
        assert self._thread is not None
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(10)

    async def _serve(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        runner = web.ServerRunner(web.Server(self._handle, access_log=None), shutdown_timeout=0)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        self.port = runner.addresses[0][1]
        self._ready.set()
        try:
            await self._stop.wait()
        finally:
            await runner.cleanup()

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        if request.path in ("/search", "/res/v1/web/search"):
            return await self._search(request)
        self.paths.append(request.path)
        found = self.pages.get(request.path, 404)
        if isinstance(found, int):
            return web.Response(status=found)
        if found.startswith("-> "):
            return web.Response(status=302, headers={"location": found.removeprefix("-> ")})
        return web.Response(text=found, content_type="text/html")

    async def _search(self, request: web.BaseRequest) -> web.Response:
        query = str((await request.json())["query"]) if request.method == "POST" else request.query["q"]
        self.queries.append(query)
        self.headers.append({name.lower(): value for name, value in request.headers.items()})
        if self.reply is not None:
            status, body = self.reply
            return web.json_response(body, status=status)
        listed = self.results.get(query, ()) if isinstance(self.results, Mapping) else self.results
        entries = [{"url": self.page(at), "title": f"About {at}", "content": "A snippet."} for at in listed]
        return web.json_response(
            {"web": {"results": entries}} if "/res/" in request.path else {"results": entries}
        )
