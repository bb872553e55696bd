"""Which addresses a fetch may reach: http(s) on public addresses, and nothing else.

A page's address comes from a system under test, a redirect from a page: both may point into the network
that the run stands in. The guard is asked three times, each closer to the wire:

    check    reads an address as it is written: scheme, credentials, port, literal addresses
    resolve  looks a name up, once for each connection, and refuses it unless every address is public
    socket   sees the very address that is about to be connected to

aiohttp connects to what `resolve` gave, so a name that changes its address between check and connect
changes nothing. `socket` also holds where aiohttp reads an address otherwise than we do.
"""

from __future__ import annotations

import asyncio
import ipaddress
import re
import socket
from collections.abc import Awaitable, Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from core.pages.page import PageStatus

if TYPE_CHECKING:
    import httpx

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
#: Looks a name up; raises socket.gaierror.
Resolve = Callable[[str], Awaitable[Sequence[str]]]

_LONGEST_URL: Final = 8192
#: Lookups at a time. They have threads of their own: a dead name server must not hold up anything else.
_LOOKUPS: Final = 32
_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.\-]*):")
_AUTHORITY: Final = re.compile(r"[A-Za-z]+://([^/?#]*)")
_NAME: Final = re.compile(r"(?!-)[a-z0-9_-]{1,63}(\.[a-z0-9_-]{1,63})*\.?")
#: A last label that is a number makes a host an IPv4 address, in whatever notation.
_NUMERIC: Final = re.compile(r"(\d+|0x[0-9a-f]*)\.?")
_DEFAULT_PORTS: Final = {"http": 80, "https": 443}

#: Networks that Python's own tables call global in some of the versions that we run on, or always.
_NOT_PUBLIC: Final = tuple(
    ipaddress.ip_network(network)
    for network in (
        "100.64.0.0/10",  # between a provider and its customers (RFC 6598); a cloud's metadata lives here too
        "168.63.129.16/32",  # a public number that Azure serves its metadata at
        "192.0.0.0/24",  # protocol assignments (RFC 6890)
        "192.88.99.0/24",  # 6to4 relays (RFC 7526)
        "::/96",  # IPv4-compatible, given up (RFC 4291)
        "64:ff9b:1::/48",  # translation inside a network (RFC 8215)
        "100::/64",  # discard (RFC 6666)
        "2001::/23",  # protocol assignments (RFC 2928), Teredo among them
        "2001:db8::/32",  # documentation (RFC 3849)
        "3fff::/20",  # documentation (RFC 9637)
        "5f00::/16",  # segment routing (RFC 9602)
        "fec0::/10",  # site-local, given up (RFC 3879)
    )
)
_NAT64: Final = ipaddress.IPv6Network("64:ff9b::/96")
_ISATAP: Final = (0x00005EFE, 0x02005EFE)

#: Ports of services that are no web servers and take commands by the line, or hold data without a password.
_OTHER_SERVICES: Final = frozenset(
    {1, 7, 9, 11, 13, 15, 17, 19, 20, 21, 22, 23, 25, 37, 42, 43, 53, 69, 77, 79, 87, 95, 101, 102, 103, 104, 109}
    | {110, 111, 113, 115, 117, 119, 123, 135, 137, 138, 139, 143, 161, 179, 389, 427, 445, 465, 512, 513, 514}
    | {515, 526, 530, 531, 532, 540, 548, 554, 556, 563, 587, 601, 636, 873, 989, 990, 993, 995, 1080, 1433, 1521}
    | {1719, 1720, 1723, 2049, 2375, 2379, 3306, 3389, 3659, 4045, 4190, 5060, 5061, 5432, 5900, 6000, 6379, 6566}
    | {6665, 6666, 6667, 6668, 6669, 6679, 6697, 9042, 9100, 10080, 11211, 27017}
)


class Refusal(OSError):
    """An address that may not be fetched. `status` is what becomes of the page."""

    def __init__(self, status: PageStatus, message: str) -> None:
        self.status, self.message = status, message
        super().__init__(message)


@dataclass(frozen=True, slots=True)
class Target:
    """An address that may be asked for. `url` is its one spelling, without fragment."""

    url: str
    host: str
    port: int
    allowed: bool


def is_public(address: Address) -> bool:
    """Whether an address lies in the public internet, also behind every way to wrap IPv4 in IPv6."""
    if isinstance(address, ipaddress.IPv6Address):
        inner = _wrapped(address)
        if inner is not None:
            return is_public(inner)
        if address.scope_id is not None:
            return False
    if address.is_multicast or address.is_reserved or address.is_unspecified or not address.is_global:
        return False
    return not any(address in network for network in _NOT_PUBLIC if network.version == address.version)


def _wrapped(address: ipaddress.IPv6Address) -> ipaddress.IPv4Address | None:
    """The IPv4 address that packets to an IPv6 address are really for."""
    if address.ipv4_mapped is not None:
        return address.ipv4_mapped
    if address.sixtofour is not None:
        return address.sixtofour
    if address in _NAT64 or (int(address) >> 32) & 0xFFFFFFFF in _ISATAP:
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return None


async def system_addresses(host: str, pool: ThreadPoolExecutor | None = None) -> list[str]:
    """What the machine's resolver says of a name; raises socket.gaierror."""
    # getaddrinfo encodes a text with the codec of IDNA 2003, which fails on names that are merely long
    name = host.encode("ascii")
    found = await asyncio.get_running_loop().run_in_executor(
        pool, lambda: socket.getaddrinfo(name, None, type=socket.SOCK_STREAM, flags=socket.AI_ADDRCONFIG)
    )
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


class Guard:
    """The guard of one run (a core.http.Dialer).

    `allow_hosts` are `host:port` that may be fetched although they are not public, exactly as they are
    written in an address; `resolve` stands in for the machine's resolver (tests). `proxy` is the run's own
    (host, port): it may be connected to, and names that we can't look up are left to it.
    """

    def __init__(
        self,
        *,
        allow_hosts: Collection[str] = (),
        proxy: tuple[str, int] | None = None,
        resolve: Resolve | None = None,
    ) -> None:
        self._allowed = frozenset(host_and_port(entry) for entry in allow_hosts)
        self._proxy = proxy
        self._resolve = resolve or self._look_up
        self._pool: ThreadPoolExecutor | None = None
        #: addresses and ports that allowed names led to
        self._opened: set[tuple[str, int]] = set()

    def check(self, url: str) -> Target:
        """Read an address as it is written; raises Refusal."""
        parsed, host, port = _read(url)
        target = Target(str(parsed.copy_with(fragment=None)), host, port, self._is_allowed(host, port))
        if target.allowed:
            return target
        literal = _literal(host)
        if literal is not None and not is_public(literal):
            raise Refusal("non_public", f"{host} is not a public address")
        if port in _OTHER_SERVICES:
            raise Refusal("unsupported_scheme", f"port {port} is not a web server's")
        return target

    async def addresses(self, host: str, port: int) -> list[str]:
        """The addresses of a page's host, all of them public; raises Refusal or socket.gaierror."""
        found = [host] if _literal(host) is not None else list(await self._resolve(host))
        if not found:
            raise socket.gaierror(socket.EAI_NONAME, "the name has no address")
        for text in found:
            if not self._is_allowed(host, port) and not is_public(ipaddress.ip_address(text)):
                raise Refusal("non_public", f"{host} leads to {text}, which is not a public address")
        return found

    async def check_name(self, target: Target) -> None:
        """Where a proxy does the looking up: refuse a name that we know to be internal."""
        if _literal(target.host) is not None:
            return
        try:
            await self.addresses(target.host, target.port)
        except socket.gaierror:
            return  # machines behind a proxy often have no name service at all

    async def resolve(self, host: str, port: int = 0, family: int = 0) -> list[dict[str, Any]]:
        """What aiohttp asks for each connection to a name."""
        host = host.lower()
        ours = (host, port) == self._proxy
        found = await (self._resolve(host) if ours else self.addresses(host, port))
        if ours or self._is_allowed(host, port):
            self._opened.update((_plain(text), port) for text in found)
        entries = []
        for text in found:
            kind = socket.AF_INET6 if ":" in text else socket.AF_INET
            if family in (socket.AF_UNSPEC, kind):
                entry = {"hostname": host, "host": text, "port": port, "family": kind, "proto": 0}
                entries.append({**entry, "flags": socket.AI_NUMERICHOST})
        return entries

    def socket(self, address: Any) -> socket.socket:
        """A socket for an address that aiohttp is about to connect to."""
        family, kind, protocol, _, where = address
        text, port = _plain(str(where[0])), int(where[1])
        permitted = self._opened | self._allowed | ({self._proxy} if self._proxy else set())
        if (text, port) not in permitted and not is_public(ipaddress.ip_address(text)):
            raise Refusal("non_public", f"{text} is not a public address")
        return socket.socket(family=family, type=kind, proto=protocol)

    async def close(self) -> None:
        """Give the lookups' threads back."""
        pool, self._pool = self._pool, None
        if pool is not None:
            pool.shutdown(wait=False, cancel_futures=True)

    def _is_allowed(self, host: str, port: int) -> bool:
        """Whether a host is one that may be fetched in any case; a name with its last dot is the same name."""
        return (host.removesuffix("."), port) in self._allowed

    async def _look_up(self, host: str) -> list[str]:
        if self._pool is None:
            self._pool = ThreadPoolExecutor(_LOOKUPS, thread_name_prefix="names")
        return await system_addresses(host, self._pool)


def host_and_port(text: str) -> tuple[str, int]:
    """`host:port` or `[IPv6]:port` as a pair; raises ValueError."""
    host, colon, port = text.rpartition(":")
    host = host.lower()
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host:
        host = ""
    if not colon or not host or not port.isascii() or not port.isdigit() or not 0 < int(port) < 65536:
        raise ValueError(f"expected host:port, for example 127.0.0.1:8123, got {text!r}")
    return _plain(host), int(port)


def check_form(url: str) -> None:
    """Refuse an address that is none of a web page's, wherever it leads; raises Refusal.

    What `Guard.check` refuses besides depends on host and port alone, which two spellings of one page share.
    """
    _read(url)


def _read(url: str) -> tuple[httpx.URL, str, int]:
    """An address that has the form of one, its host in lower case and its port; raises Refusal."""
    parsed = _parsed(url)
    host = parsed.raw_host.decode("ascii").lower()
    if _literal(host) is None and not _NAME.fullmatch(host):
        raise Refusal("unsupported_scheme", "the address has a host that is no host name")
    port = _DEFAULT_PORTS[parsed.scheme] if parsed.port is None else parsed.port
    if not 0 < port < 65536:
        raise Refusal("unsupported_scheme", f"port {port} is not a web server's")
    return parsed, host, port


def _parsed(url: str) -> httpx.URL:
    """An address that has the form of a web address without credentials; raises Refusal."""
    import httpx

    text = url.strip()
    scheme = _SCHEME.match(text)
    if scheme is None or scheme[1].lower() not in _DEFAULT_PORTS:
        said = f"the scheme {scheme[1][:20]!r}" if scheme else "no scheme"
        raise Refusal("unsupported_scheme", f"the address has {said}; only http and https are fetched")
    authority = _AUTHORITY.match(text)
    if authority is None or not authority[1] or re.search(r"[\s\\\x00-\x1f\x7f]", authority[1]):
        raise Refusal("unsupported_scheme", "the address has no usable host")
    if "@" in authority[1]:
        raise Refusal("unsupported_scheme", "an address with credentials is not fetched")
    if not authority[1].startswith("["):
        _literal(authority[1].partition(":")[0].lower())  # httpx knows no octal address and would not say so
    if len(text) > _LONGEST_URL:
        raise Refusal("unsupported_scheme", f"the address is longer than {_LONGEST_URL} characters")
    try:
        parsed = httpx.URL(text)
        host = parsed.raw_host
    except (httpx.InvalidURL, ValueError, TypeError) as error:
        raise Refusal("unsupported_scheme", f"the address can't be read: {str(error)[:120]}") from None
    if not host or parsed.userinfo:
        raise Refusal("unsupported_scheme", "the address has no usable host")
    return parsed


def _literal(host: str) -> Address | None:
    """The address that a host is, None for a name; other notations than the plain one are refused."""
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        pass
    if ":" in host:
        raise Refusal("non_public", f"{host} is not a usable IPv6 address")
    if _NUMERIC.fullmatch(host.rstrip(".").rpartition(".")[2]):
        # 2130706433, 0x7f.1 and 0177.0.0.1 are 127.0.0.1 to some resolvers and nothing to others
        raise Refusal("non_public", f"{host} is a disguised address: only four decimal numbers are read")
    return None


def _plain(text: str) -> str:
    """One spelling of an address; other texts stay as they are."""
    try:
        return str(ipaddress.ip_address(text))
    except ValueError:
        return text
