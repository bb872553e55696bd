"""Where a page lies: the key of its address, and the other spellings worth trying.

core/pages/urls.py knows addresses and is loaded when the first one is asked about.
"""

from __future__ import annotations

from collections.abc import Sequence


def key_of(url: str) -> str:
    """The archive's key of an address; one that can't be read is its own key."""
    from core.pages.urls import archive_key

    try:
        return archive_key(url)
    except ValueError:
        return url.strip()


def variants(url: str) -> Sequence[str]:
    """Other spellings of an address, best first; none of one that can't be read."""
    from core.pages import urls

    try:
        return urls.variants(url)
    except ValueError:
        return ()
