"""Fetching one page: its redirects, its second chance, its other spellings.

    fetch ─▶ the address, then its variants while what was tried is gone
      └▶ patiently ─▶ once more after a timeout or a 5xx, and after a 429 when the server says
           └▶ follow ─▶ hop by hop, each checked by the guard, in its host's turn, under one deadline

Nothing here raises for what a page does: every outcome is a Fetched.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from core import __version__
from core.errors import CallError
from core.http import Http
from core.limiter import Limiter
from core.pages.control import Control
from core.pages.fetched import Fetched, charset_of, kept_headers
from core.pages.guard import Guard, Refusal, Target
from core.pages.outcome import EndedError, is_wanted, of_answer, of_failure, redirected
from core.pages.page import PageStatus

if TYPE_CHECKING:
    from core.clock import Clock
    from core.reply import Reply

MOST_HOPS: Final = 10
USER_AGENT: Final = f"Mozilla/5.0 (compatible; leadline/{__version__})"
#: Hosts whose pace is remembered.
_HOSTS_KEPT: Final = 4096
#: What is gone under one spelling may be there under another.
_TRY_OTHERS: Final[frozenset[PageStatus]] = frozenset({"not_found", "gone", "no_such_name", "refused"})
#: What a machine without a network sees too.
_DOUBTFUL: Final[frozenset[PageStatus]] = frozenset({"no_such_name", "refused", "no_dns", "own_network"})


def headers_for(user_agent: str | None) -> tuple[tuple[str, str], ...]:
    """What a page's server is told of us: what we read, and no more encodings than we decode with a cap."""
    return (
        ("user-agent", user_agent or USER_AGENT),
        ("accept", "text/html,application/xhtml+xml,application/pdf,text/plain;q=0.9,*/*;q=0.8"),
        ("accept-language", "en,*;q=0.5"),
        ("accept-encoding", "gzip, deflate"),
    )


@dataclass(frozen=True, slots=True)
class Pace:
    """How much is asked of servers. `delay_s` stands between two requests to one host.

    `timeout_s` bounds the work on one address, redirects included; waiting for a turn does not count.
    """

    timeout_s: float = 30.0
    max_bytes: int = 16 * 1024 * 1024
    max_in_flight: int = 64
    per_host: int = 4
    delay_s: float = 0.2


class Fetcher:
    """Fetches pages over a guarded client. `variants` gives an address's other spellings, best first."""

    def __init__(
        self,
        http: Http,
        guard: Guard,
        control: Control,
        clock: Clock,
        *,
        pace: Pace,
        variants: Callable[[str], Iterable[str]],
        proxied: bool = False,
    ) -> None:
        self._http, self._guard, self._control, self._clock = http, guard, control, clock
        self._pace, self._variants, self._proxied = pace, variants, proxied
        self._slots = asyncio.Semaphore(pace.max_in_flight)
        self._hosts: dict[str, Limiter] = {}

    async def fetch(self, url: str) -> Fetched:
        """The page at an address, or at the first of its variants that is there while the address is gone."""
        first = await self._patiently(url)
        if first.status not in _TRY_OTHERS:
            return first
        tried = [(url, str(first.status))]
        for variant in self._variants(url):
            if any(variant == address for address, _ in tried):
                continue
            other = await self._patiently(variant)
            tried.append((variant, other.status))
            if other.status == "ok":
                chain = (variant, *other.chain)
                return replace(other, url=url, chain=chain, final_url=chain[-1], tried=tuple(tried))
        return replace(first, tried=tuple(tried) if len(tried) > 1 else ())

    async def _patiently(self, url: str) -> Fetched:
        """One address, with its second chance."""
        chain: list[str] = []
        try:
            reply = await self._follow(url, chain)
        except EndedError as end:
            if end.again_s is None:
                return self._ended(url, chain, end)
            await self._clock.sleep(end.again_s)
        else:
            return self._arrived(url, chain, reply)
        chain = []
        try:
            reply = await self._follow(url, chain)
        except EndedError as end:
            return self._ended(url, chain, end)
        return self._arrived(url, chain, reply)

    async def _follow(self, url: str, chain: list[str]) -> Reply:
        """The answer at the end of the redirects; `chain` gets their addresses. Raises EndedError."""
        seen: set[str] = set()
        left_s = self._pace.timeout_s
        while True:
            target = await self._checked(url)
            if target.url in seen:
                raise EndedError("server_error", "its redirects go in a circle")
            if len(seen) > MOST_HOPS:
                raise EndedError("server_error", f"it redirects more than {MOST_HOPS} times")
            seen.add(target.url)
            if left_s <= 0:
                raise EndedError("timeout", f"its redirects took longer than {self._pace.timeout_s:g} s")
            reply = await self._hop(target, left_s)
            left_s -= reply.latency_s
            next_url = redirected(target.url, reply)
            if next_url is None:
                end = of_answer(reply, self._clock.now())
                if end is not None:
                    raise end
                return reply
            url = next_url
            chain.append(url)

    async def _checked(self, url: str) -> Target:
        try:
            target = self._guard.check(url)
            if self._proxied:
                await self._guard.check_name(target)
        except Refusal as refusal:
            raise EndedError(refusal.status, refusal.message) from None
        return target

    async def _hop(self, target: Target, timeout_s: float) -> Reply:
        """One request, in the host's turn."""
        limiter = self._limiter(target)
        ticket = await limiter.acquire()
        try:
            async with self._slots:
                reply = await self._http.request(
                    "GET", target.url, timeout_s=timeout_s, max_body=self._pace.max_bytes, wanted=is_wanted
                )
        except CallError as error:
            raise await self._failure(error) from error
        else:
            self._control.answered()
            if reply.status == 429:
                end = of_answer(reply, self._clock.now())
                limiter.refused(end.again_s if end else None, ticket)
            else:
                limiter.succeeded()
            return reply
        finally:
            limiter.release()

    async def _failure(self, error: CallError) -> EndedError:
        """What a failed request says of the page, once the network is known to work."""
        end = of_failure(error, proxied=self._proxied)
        if end.status not in _DOUBTFUL or await self._control.vouches():
            return end
        by_name = end.status in ("no_such_name", "no_dns")
        return EndedError("no_dns" if by_name else "own_network", f"{end.message}; no control host answers either")

    def _limiter(self, target: Target) -> Limiter:
        """The turn of a host. Hosts of the user's own (allow_hosts) need no delay."""
        found = self._hosts.pop(target.host, None)
        if found is None:
            delay_s = 0.0 if target.allowed else self._pace.delay_s
            found = Limiter(
                self._clock,
                max_in_flight=self._pace.per_host,
                requests_per_minute=max(1, round(60 / delay_s)) if delay_s else None,
            )
        self._hosts[target.host] = found  # the host asked last stands last
        if len(self._hosts) > _HOSTS_KEPT:
            oldest = next(iter(self._hosts))
            if self._hosts[oldest].in_flight == 0:
                del self._hosts[oldest]
        return found

    def _arrived(self, url: str, chain: list[str], reply: Reply) -> Fetched:
        content_type = reply.headers.get("content-type")
        return Fetched(
            url=url,
            status="ok",
            fetched_at=round(self._clock.now(), 3),
            final_url=chain[-1] if chain else url,
            chain=tuple(chain),
            http_status=reply.status,
            content_type=content_type,
            charset=charset_of(content_type),
            headers=kept_headers(reply.headers),
            body=reply.content,
        )

    def _ended(self, url: str, chain: list[str], end: EndedError) -> Fetched:
        return Fetched(
            url=url,
            status=end.status,
            fetched_at=round(self._clock.now(), 3),
            final_url=chain[-1] if chain else url,
            chain=tuple(chain),
            http_status=end.http_status,
            message=end.message,
        )
