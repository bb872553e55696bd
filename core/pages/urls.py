"""Addresses: one spelling of each for the archive, the other addresses a page may have, and who owns it."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Final
from urllib.parse import SplitResult, urlsplit, urlunsplit

if TYPE_CHECKING:
    from tldextract import TLDExtract

#: Parameters that say where a visitor came from, not what is shown.
_TRACKING: Final = re.compile(
    r"utm_\w*|[gdy]clid|fbclid|msclkid|gbraid|wbraid|gclsrc|twclid|li_fat_id|igshid|mc_[ce]id|_ga|_gl|_hs(?:enc|mi)"
    r"|mkt_tok|oly_(?:anon|enc)_id|vero_id|wickedid|srsltid|ref_src|ref_url|s_cid|ncid|cmpid|at_(?:medium|campaign)",
    re.IGNORECASE,
)
_PORTS: Final = {"http": 80, "https": 443}
#: The variants of an address; each costs a fetch.
_MOST_VARIANTS: Final = 7


def archive_key(url: str) -> str:
    """The one spelling under which a page is kept.

    Without fragment, tracking parameters, default port and credentials; scheme and host in lower case, parameters
    in order, escapes in one spelling. Scheme, `www.` and a trailing slash stay: they may be other pages. An
    address that can't be read is its own key. Addresses that are refused have keys too, and share them with
    others that are not: ask core.pages.guard first.
    """
    from w3lib.url import canonicalize_url

    url = url.strip()
    try:
        parts = urlsplit(url)
        return canonicalize_url(urlunsplit(parts._replace(netloc=_host_and_port(parts), query=_kept(parts.query))))
    except (ValueError, UnicodeError):
        return url


def without_tracking(url: str) -> str:
    """The address without the parameters that only say where a visitor came from; otherwise as it is written."""
    try:
        parts = urlsplit(url.strip())
        return urlunsplit(parts._replace(query=_kept(parts.query))) if parts.query else url.strip()
    except ValueError:
        return url.strip()


def variants(url: str) -> list[str]:
    """Other addresses that the same page may have, likeliest first, without the address itself and repetitions.

    Without tracking parameters, with the other scheme, with or without `www.` and a trailing slash.
    """
    try:
        parts = urlsplit(url.strip())
        host = _host_and_port(parts)
    except (ValueError, UnicodeError):
        return []
    if parts.scheme.lower() not in _PORTS or not host:
        return []
    base = SplitResult(parts.scheme.lower(), host, parts.path or "/", _kept(parts.query), "")
    other_scheme = base._replace(scheme="http" if base.scheme == "https" else "https")
    found = [base]
    if ":" not in host:  # a port belongs to one scheme
        found.append(other_scheme)
    other_www, other_slash = _other_www(base), _other_slash(base)
    found += [other_slash, other_www, _other_slash(other_www)]
    if ":" not in host:
        found += [_other_www(other_scheme), _other_slash(other_scheme)]
    seen = {_same(parts)}
    others = []
    for candidate in found:
        if _same(candidate) not in seen:
            seen.add(_same(candidate))
            others.append(urlunsplit(candidate))
    return others[:_MOST_VARIANTS]


def registrable_domain(url: str) -> str:
    """The part of an address's host that somebody registered (`bbc.co.uk`); the host itself where there is none.

    By the list of public suffixes that tldextract carries; nothing is fetched or written.
    """
    try:
        host = (urlsplit(url if "//" in url else f"//{url}").hostname or "").rstrip(".")
    except ValueError:
        return ""
    return _suffixes()(host).top_domain_under_public_suffix or host


def is_fetchable_form(url: str) -> str | None:
    """Why an address is none that can be fetched, by its form alone (core/pages/guard.py); None when it can be."""
    from core.pages.guard import Guard, Refusal

    try:
        Guard().check(url)
    except Refusal as refusal:
        return refusal.message
    return None


def _host_and_port(parts: SplitResult) -> str:
    """Host and port in one spelling; credentials, which no page's address needs, stay away."""
    host = (parts.hostname or "").rstrip(".")
    if not host.isascii():
        host = host.encode("idna").decode()
    if ":" in host:
        host = f"[{host}]"
    return host if parts.port in (None, _PORTS.get(parts.scheme.lower())) else f"{host}:{parts.port}"


def _kept(query: str) -> str:
    """A query without its tracking parameters; the rest as it is spelt."""
    return "&".join(item for item in query.split("&") if item and not _TRACKING.fullmatch(item.partition("=")[0]))


def _other_www(parts: SplitResult) -> SplitResult:
    host = parts.netloc
    if host.startswith("www."):
        return parts._replace(netloc=host.removeprefix("www."))
    is_name = "." in host and ":" not in host and not host.rpartition(".")[2].isdecimal()
    return parts._replace(netloc=f"www.{host}") if is_name else parts


def _other_slash(parts: SplitResult) -> SplitResult:
    path = parts.path
    if path in ("", "/"):
        return parts
    if path.endswith("/"):
        return parts._replace(path=path.rstrip("/") or "/")
    is_file = "." in path.rpartition("/")[2]
    return parts if is_file else parts._replace(path=f"{path}/")


def _same(parts: SplitResult) -> tuple[str, str, str, str]:
    """What two addresses share when asking for them asks the same."""
    return parts.scheme.lower(), _host_and_port(parts), parts.path or "/", parts.query


@lru_cache(maxsize=1)
def _suffixes() -> TLDExtract:
    from tldextract import TLDExtract

    return TLDExtract(suffix_list_urls=(), cache_dir=None)
