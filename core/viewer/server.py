"""The viewer on a port of the loopback address, until it is told to end."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Final

from aiohttp import web

from core.errors import InputError
from core.viewer import api, pages
from core.viewer.guard import LARGEST_BODY, Guard
from core.viewer.library import Library
from core.viewer.state import VIEWER, Viewer
from core.viewer.templating import static

HOST: Final = "127.0.0.1"
#: Seconds that open requests get when the server ends.
_GRACE_S: Final = 1.0


def application(library: Library, guard: Guard, store: Path | None = None) -> web.Application:
    """All routes behind the guard."""
    app = web.Application(middlewares=[guard.middleware()], client_max_size=LARGEST_BODY)
    app[VIEWER] = Viewer(library, store)
    app.add_routes([*pages.routes(), *api.routes(), web.get("/static/{name}", _static)])
    app.on_cleanup.append(_close)
    return app


async def start(app: web.Application, guard: Guard, port: int = 0) -> web.AppRunner:
    """Listen on 127.0.0.1; `port` 0 takes a free one. Raises InputError for a port that can't be had."""
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=_GRACE_S)
    await runner.setup()
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((HOST, port))
    except (OSError, OverflowError) as error:
        listener.close()
        await runner.cleanup()
        raise InputError(f"can't listen: {error}", where=f"--port {port}", expected="a free port, or 0") from None
    guard.port = listener.getsockname()[1]
    await web.SockSite(runner, listener).start()
    return runner


def address(guard: Guard) -> str:
    """Where a browser begins: the token is in it, and in no address after it."""
    return f"http://{HOST}:{guard.port}/?token={guard.token}"


async def _static(request: web.Request) -> web.Response:
    found = static(request.match_info["name"])
    if found is None:
        raise web.HTTPNotFound
    return web.Response(body=found[0], content_type=found[1], charset="utf-8")


async def _close(app: web.Application) -> None:
    await app[VIEWER].aclose()
