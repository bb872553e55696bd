"""What a record's url must be for its row to be well-formed: an http(s) address of a host that may be public.

Only the address's own text is looked at. What a name leads to is seen when its page is fetched, and is then a
matter of that one record and not of the whole submission.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection
from ipaddress import ip_address
from typing import Final
from urllib.parse import SplitResult, urlsplit

from core.pages.guard import host_and_port, is_public

#: The longest address that is accepted, in characters.
MOST: Final = 8192

_SCHEME: Final = re.compile(r"https?://", re.IGNORECASE)
_CONTROL: Final = re.compile(r"[\x00-\x08\x0e-\x1f\x7f-\x9f]")
_BLANK: Final = re.compile(r"\s")
#: A last label that is a number makes a host an address, in whatever notation.
_NUMERIC: Final = re.compile(r"[0-9]+|0[xX][0-9a-fA-F]*")
_PORTS: Final = {"http": 80, "https": 443}


def url_fault(url: str, allow_hosts: Collection[str] = ()) -> str | None:
    """Why an address is refused, or None. `allow_hosts` are `host:port` that need not be public."""
    if len(url) > MOST:
        return f"longer than {MOST} characters"
    if not _SCHEME.match(url):
        return "not an http(s) address"
    if _CONTROL.search(url):
        return "has a control character"
    if _BLANK.search(url):
        return "has a blank"
    if "\\" in url:
        return "has a backslash"
    try:
        parts = urlsplit(url)
        _ = parts.port  # raises for one that is no port
    except ValueError as error:
        return f"not an address: {error}"
    if "@" in parts.netloc:
        return "has credentials"
    if not parts.hostname or "%" in parts.hostname:
        return "has no usable host"
    return None if _is_allowed(parts, allow_hosts) else _host_fault(parts.hostname)


def _is_allowed(parts: SplitResult, allow_hosts: Collection[str]) -> bool:
    port = parts.port or _PORTS[parts.scheme]
    return any(host_and_port(entry) == (parts.hostname, port) for entry in allow_hosts)


def _host_fault(host: str) -> str | None:
    # full-width digits and other spellings of a character are the same host to a client
    host = unicodedata.normalize("NFKC", host).rstrip(".")
    try:
        address = ip_address(host)
    except ValueError:
        last = host.rpartition(".")[2]
        return "its host is a disguised address" if _NUMERIC.fullmatch(last) else None
    return None if is_public(address) else "its host is an address that is not public"
