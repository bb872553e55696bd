"""What the viewer's tests share: runs to look at, a viewer on a port, and a client that may send any header."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from http.cookies import SimpleCookie
from pathlib import Path
from typing import Any

import aiohttp
from fakes.runs import run
from yarl import URL

from core.plugin_manager import PluginManager
from core.viewer.guard import Guard
from core.viewer.library import Library
from core.viewer.places import Places
from core.viewer.server import application, start

DEMOS = ("demo_draco", "demo_dag", "demo_wandr")


def demo_runs(folder: Path) -> Path:
    """A folder with the run of every demonstration; made once, which takes a second or two."""
    for name in DEMOS:
        if not (folder / name / "summary.json").exists():
            run(folder / name, f"experiment={name}", "fail_on=never")
    return folder


@dataclass(frozen=True)
class Reply:
    """What the viewer answered."""

    status: int
    text: str
    headers: Mapping[str, str]

    @property
    def json(self) -> Any:
        return json.loads(self.text)


@dataclass(frozen=True)
class Served:
    """A viewer that runs, and a client whose headers are what a test says."""

    guard: Guard
    places: Places
    session: aiohttp.ClientSession

    @property
    def base(self) -> str:
        return f"http://127.0.0.1:{self.guard.port}"

    async def raw(
        self,
        path: str,
        *,
        method: str = "GET",
        headers: Mapping[str, str] | None = None,
        body: bytes | None = None,
    ) -> Reply:
        """A request as it is, without a cookie."""
        async with self.session.request(
            method, URL(self.base + path, encoded=True), headers=headers, data=body, allow_redirects=False
        ) as response:
            return Reply(response.status, await response.text(), response.headers)

    async def get(self, path: str) -> Reply:
        """A request of somebody who was let in."""
        return await self.raw(path, headers={"Cookie": f"{self.guard.cookie}={self.guard.token}"})

    async def post(self, path: str, content: Any) -> Reply:
        """A change, as the viewer's own page makes it."""
        headers = {
            "Cookie": f"{self.guard.cookie}={self.guard.token}",
            "Origin": self.base,
            "X-Leadline": "1",
            "Content-Type": "application/json",
        }
        return await self.raw(path, method="POST", headers=headers, body=json.dumps(content).encode())

    def id_of(self, name: str) -> str:
        """The id of a run or a sheet by its name in the list."""
        listing = self.places.scan()
        return next(found.id for found in (*listing.runs.values(), *listing.sheets.values()) if found.name == name)


@asynccontextmanager
async def serving(*given: Path, store: Path | None = None) -> AsyncIterator[Served]:
    """A viewer on these folders."""
    places, guard = Places(given), Guard()
    runner = await start(application(Library(places, PluginManager.discover), guard, store), guard)
    try:
        async with aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar()) as session:
            yield Served(guard, places, session)
    finally:
        await runner.cleanup()


def cookie_of(reply: Reply) -> SimpleCookie:
    """The cookie that a reply sets."""
    return SimpleCookie(reply.headers.get("Set-Cookie", ""))
