"""The search back-ends of system=search_and_answer, and the addresses that a task blocks.

    searxng   GET  {search_url}/search?q=…&format=json     a server of your own; no key, no price
    brave     GET  /res/v1/web/search?q=…&count=…          x-subscription-token
    tavily    POST /search {"query", "max_results"}        bearer token; one credit a search

The forms are those of the vendors' references as of AS_OF; nothing here was tried with a paid account. A back-end
gives addresses and titles: its snippets are not used, so what it quotes of a page never reaches the model.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import unquote

from adapters._baseline_model import Tally, address_of, variable_of
from adapters._prices import TAVILY_CREDIT
from core.calls import RetryPolicy, call
from core.errors import CallError, cost_of
from core.jobs import Api
from core.reply import shortened
from core.section import Section
from core.services import Services

AS_OF: Final = "2026-11"
#: Results that one search is asked for, and that are taken of its answer.
RESULTS: Final = 10
#: Seconds for one search; an engine that takes longer has nothing better to say.
TIMEOUT_S: Final = 60.0
_LONGEST_URL: Final = 2000
_LONGEST_TITLE: Final = 200


@dataclass(frozen=True, slots=True)
class Hit:
    """One result: an http(s) address and the title that the back-end gives it. Both are hostile."""

    url: str
    title: str


@dataclass(frozen=True, slots=True)
class _Kind:
    """How a back-end is asked and read. `usd`: dollars a search; None is unknown.

    `request` gives the arguments of Api.json, `results` finds the list in the answer.
    """

    request: Callable[[str], Mapping[str, Any]]
    results: Callable[[Mapping[str, Any]], Any]
    home: str | None = None
    key_env: str | None = None
    key_header: str = "authorization"
    usd: float | None = None


def _top(answer: Mapping[str, Any]) -> Any:
    return answer.get("results")


def _inside_web(answer: Mapping[str, Any]) -> Any:
    web = answer.get("web")
    return web.get("results") if isinstance(web, Mapping) else None


KINDS: Final[Mapping[str, _Kind]] = {
    "searxng": _Kind(
        lambda query: {"method": "GET", "path": "/search", "query": {"q": query, "format": "json"}},
        _top,
        usd=0.0,
    ),
    "brave": _Kind(
        lambda query: {
            "method": "GET",
            "path": "/res/v1/web/search",
            "query": {"q": query, "count": str(RESULTS)},
        },
        _inside_web,
        home="https://api.search.brave.com",
        key_env="BRAVE_API_KEY",
        key_header="x-subscription-token",
    ),
    "tavily": _Kind(
        lambda query: {"method": "POST", "path": "/search", "body": {"query": query, "max_results": RESULTS}},
        _top,
        home="https://api.tavily.com",
        key_env="TAVILY_API_KEY",
        usd=TAVILY_CREDIT,
    ),
}


class Search:
    """The run's search back-end: `system.search`, at `system.search_url` where that is not its vendor's."""

    def __init__(self, section: Section, services: Services, policy: RetryPolicy, pace: Section) -> None:
        self._name = section.choice("search", {name: name for name in KINDS})
        self._kind = KINDS[self._name]
        url = address_of(section, "search_url")
        own_key = variable_of(section, "search_key_env")
        configured = section.number_or_none("search_usd")
        self.usd = self._kind.usd if configured is None else configured
        self._key_env = own_key or self._kind.key_env
        self._is_placed = url is not None or self._kind.home is not None
        home = url or self._kind.home or ""
        self._services, self._policy = services, policy
        self._api = Api(
            services,
            name=self._name,
            home=home,
            base_url=url,
            key_env=self._key_env,
            key_header=self._kind.key_header,
            request_s=TIMEOUT_S,
        )
        self._limiter = services.limiter.get(
            self._api.account,
            max_in_flight=pace.whole("searches_in_flight"),
            requests_per_minute=pace.whole_or_none("searches_per_minute"),
        )
        self.settings: Mapping[str, Any] = {"backend": self._name, "url": self._api.base_url, "results": RESULTS}

    def check(self) -> list[str]:
        """What is missing: the address of a server of one's own, or a vendor's key."""
        found = []
        if not self._is_placed:
            found.append("system.search_url: the address of a SearXNG; or system.search=brave|tavily, with a key")
        if not self._services.keys.has(self._key_env):
            found.append(
                f"system.search={self._name}: the environment variable {self._key_env} is not set "
                "(system.search_key_env names another)"
            )
        return found

    async def find(self, query: str, tally: Tally) -> list[Hit]:
        """The results of one search, best first; a back-end that answers with none gives none.

        Raises the last CallError, or StopRun.
        """

        async def make(_: int) -> list[Hit]:
            return self._read(await self._asked(query))

        def failed(error: CallError, _: int) -> None:
            tally.searched(0.0 if self.usd == 0 else cost_of(error))

        found = await call(
            make,
            policy=self._policy,
            limiter=self._limiter,
            clock=self._services.clock,
            rng=self._services.rng,
            on_failure=failed,
        )
        tally.searched(self.usd)
        return found

    async def _asked(self, query: str) -> Mapping[str, Any]:
        try:
            return await self._api.json(**self._kind.request(query))
        except CallError as error:
            if self._name != "searxng" or error.http_status != 403:
                raise
            # what SearXNG answers while its JSON format is off, as it is when it is installed
            advice = f"{error.message}; does its settings.yml have json in search.formats?"
            raise CallError(error.kind, advice, http_status=403) from error

    def _read(self, answer: Mapping[str, Any]) -> list[Hit]:
        listed = self._kind.results(answer)
        entries = listed if isinstance(listed, list) else []
        silent = answer.get("unresponsive_engines")
        if not entries and self._name == "searxng" and isinstance(silent, list) and silent:
            # no engine was reached or let itself be asked: that is not the web having nothing
            raise CallError("overloaded", f"searxng: no engine answered: {shortened(str(silent), 200)}")
        hits = [hit for entry in entries if (hit := _hit(entry)) is not None]
        return hits[:RESULTS]


def _hit(entry: Any) -> Hit | None:
    """A result; None for whatever has another form or no http(s) address."""
    url = entry.get("url") if isinstance(entry, Mapping) else None
    if not isinstance(url, str) or len(url) > _LONGEST_URL:
        return None
    url = url.strip()
    if not url.lower().startswith(("http://", "https://")) or any(c.isspace() or not c.isprintable() for c in url):
        return None
    title = entry.get("title")
    return Hit(url, shortened(title, _LONGEST_TITLE) if isinstance(title, str) else "")


_SCHEME: Final = re.compile(r"https?:/+")
#: What may follow a blocked path: the end of a step, or an arXiv version.
_AFTER: Final = re.compile(r"(?:v\d+)?(?![\w-])")


def is_blocked(url: str, blocked: Collection[str]) -> bool:
    """Whether an address lies at or below one that a task blocks (`host/path`, without a scheme).

    A subdomain is the same site; scheme, port, case, escapes, doubled slashes, dots and versions make no
    difference. A path is blocked from whole step to whole step: `host/a` leaves `host/ab` alone. Addresses inside
    an address (copies in web archives, redirectors) are looked at as well.
    """
    return any(_lies_in(place, entry) for place in _places(url) for entry in blocked)


def _places(url: str) -> Iterator[tuple[str, str]]:
    """(host, path) of an address and of every address inside it."""
    for part in _SCHEME.split(unquote(url).casefold())[1:]:
        authority = re.split(r"[/?#\\]", part, maxsplit=1)[0]
        host = authority.rpartition("@")[2].partition(":")[0].rstrip(".")
        path = re.split(r"[?#]", part[len(authority) :], maxsplit=1)[0]
        yield host, posixpath.normpath("/" + path.lstrip("/"))[1:]


def _lies_in(place: tuple[str, str], entry: str) -> bool:
    host, _, path = _SCHEME.sub("", unquote(entry).casefold().strip()).partition("/")
    path = path.strip("/")
    if place[0] != host and not place[0].endswith(f".{host}"):
        return False
    return not path or (place[1].startswith(path) and _AFTER.match(place[1], len(path)) is not None)
