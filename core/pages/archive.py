"""The pages of one machine's store: each fetched once, for every judge, repeat and later run.

A row holds the decoded body (zstd), its digest, the redirects, a few header fields and the time. What was
gone is kept like what was there. What we could not see is kept too, for the runs that may not fetch, but never
in place of something better, and a run that fetches asks again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from core.errors import InputError
from core.pages.fetched import OURS, Fetched, writable
from core.store import PageRow, Store

#: A page of 170 kB takes 0.7 ms; higher levels take several times as long and save a tenth.
_LEVEL: Final = 3
#: Bytes that an archived body may unpack to; fetched ones are far smaller.
_LARGEST: Final = 256 * 1024 * 1024
_LEASE: Final = "page/"


class Archive:
    """Pages in a store. The file is opened when it is first needed."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._opened: Store | None = None

    @property
    def _store(self) -> Store:
        if self._opened is None:
            self._opened = Store(self.path)
        return self._opened

    def get(self, key: str) -> Fetched | None:
        """What lies under an address's key; None also for a body that does not match its digest."""
        row = self._store.page(writable(key))
        return None if row is None else _unpacked(row)

    def put(self, key: str, fetched: Fetched) -> bool:
        """Keep a fetch; False when it was not worth keeping."""
        key = writable(key)
        if fetched.status in OURS:
            return False
        if not fetched.settled:
            old = self._store.page(key)
            if old is not None and Fetched(old.url, old.status, old.fetched).settled:  # type: ignore[arg-type]
                return False
        self._store.put_page(_packed(key, fetched))
        return True

    def all(self) -> Iterator[tuple[str, Fetched]]:
        """Every page with its key, in the order of keys; one at a time in memory."""
        for key in self._store.page_keys():
            found = self.get(key)
            if found is not None:
                yield key, found

    def take_lease(self, key: str) -> bool:
        """Whether this process may fetch the page: no other living one does."""
        return self._store.take_lease(_LEASE + writable(key))

    def drop_lease(self, key: str) -> None:
        self._store.drop_lease(_LEASE + writable(key))

    def close(self) -> None:
        """Close the file, if it was opened."""
        opened, self._opened = self._opened, None
        if opened is not None:
            opened.close()


def _packed(key: str, fetched: Fetched) -> PageRow:
    import zstandard

    digest = fetched.digest()
    return PageRow(
        key=key,
        url=writable(fetched.url),
        status=fetched.status,
        meta=fetched.meta(),
        digest=digest,
        body=zstandard.ZstdCompressor(level=_LEVEL).compress(fetched.body) if digest else None,
        fetched=fetched.fetched_at,
    )


def _unpacked(row: PageRow) -> Fetched | None:
    import zstandard

    body = b""
    if row.body is not None:
        try:
            if zstandard.frame_content_size(row.body) > _LARGEST:
                return None
            body = zstandard.ZstdDecompressor().decompress(row.body, max_output_size=_LARGEST)
        except zstandard.ZstdError:
            return None
        if hashlib.sha256(body).hexdigest() != row.digest:
            return None
    try:
        return Fetched.from_meta(row.url, row.status, row.fetched, row.meta, body)
    except (InputError, TypeError, ValueError):
        return None
