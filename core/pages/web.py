"""All that reaches the network for pages: client, guard, control, fetcher and browser, built from the config."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from core.clock import Clock
from core.config import PagesSection
from core.errors import InputError
from core.http import Http
from core.pages.browser import Browser
from core.pages.control import DEFAULT_HOSTS, Control
from core.pages.fetch import Fetcher, Pace, headers_for
from core.pages.guard import Guard, Resolve, host_and_port, system_addresses

if TYPE_CHECKING:
    import httpx


class Web:
    """The parts that reach the network."""

    def __init__(
        self,
        section: PagesSection,
        clock: Clock,
        variants: Callable[[str], Iterable[str]],
        transport: httpx.AsyncBaseTransport | None,
        resolve_name: Resolve | None,
    ) -> None:
        proxy = _proxy(section.proxy)
        self.guard = Guard(allow_hosts=section.allow_hosts, proxy=proxy, resolve=resolve_name)
        self.http = Http(
            clock,
            transport=transport,
            trust_env=False,
            proxy=section.proxy,
            dialer=self.guard,
            headers=headers_for(section.user_agent),
            max_connections=section.max_in_flight,
        )
        hosts = DEFAULT_HOSTS if section.control_hosts is None else section.control_hosts
        if proxy is not None and section.control_hosts is None:
            hosts = (f"{proxy[0]}:{proxy[1]}" if ":" not in proxy[0] else f"[{proxy[0]}]:{proxy[1]}",)
        lookup = resolve_name or system_addresses
        self.control = Control(clock, hosts, lambda host: _reach(host, lookup), wait_s=section.offline_wait_s)
        self.fetcher = Fetcher(
            self.http,
            self.guard,
            self.control,
            clock,
            pace=Pace(
                timeout_s=section.timeout_s,
                max_bytes=section.max_bytes,
                max_in_flight=section.max_in_flight,
                per_host=section.per_host,
                delay_s=section.delay_s,
            ),
            variants=variants,
            proxied=proxy is not None,
        )
        self.browser = None
        if section.browser:
            self.browser = Browser(
                section.browser, self.guard, timeout_s=section.timeout_s, max_bytes=section.max_bytes
            )

    async def aclose(self) -> None:
        await self.control.aclose()
        await self.http.aclose()
        await self.guard.close()


async def _reach(host: str, lookup: Resolve) -> None:
    """Look a control host up, and connect to it where it names a port; raises OSError."""
    try:
        name, port = host_and_port(host)
    except ValueError:
        await lookup(host)
        return
    addresses = await lookup(name)
    _, writer = await asyncio.open_connection(addresses[0], port)
    writer.close()
    with contextlib.suppress(OSError):
        await writer.wait_closed()


def check_section(section: PagesSection) -> None:
    """Refuse a section whose keys don't go together. Never repeats a proxy's address: it may hold a password."""
    if (section.mode == "fixtures") != (section.path is not None):
        raise InputError(
            "the folder of pages=fixtures, and of nothing else", where="pages.path", got=repr(section.path)
        )
    if section.proxy is None:
        return
    parts = urlsplit(section.proxy)
    if parts.username is not None or parts.password is not None:
        raise InputError("credentials would be written into run.json", where="pages.proxy", expected="none")
    if _proxy(section.proxy) is None:
        raise InputError("not a proxy's address", where="pages.proxy", expected="http://host:port")
    if section.browser is not None:
        raise InputError("the browser does not go through pages.proxy", where="pages.browser", expected="null")


def _proxy(address: str | None) -> tuple[str, int] | None:
    """The host and port of a proxy; None where there is none."""
    try:
        parts = urlsplit(address or "")
        port = parts.port
    except ValueError:
        return None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        return None
    return parts.hostname, port or (443 if parts.scheme == "https" else 80)
