"""Digests of what shapes a result: the keys of the store.

A digest of a whole is built from the digests of its parts, so that a report that is judged by 200
questions is hashed once.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any


@lru_cache(maxsize=256)
def text_digest(text: str) -> str:
    """SHA-256 of a text, as hex. Kept for the last few texts: reports, prompts, schemas recur."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def canonical_json(value: Any) -> str:
    """One spelling of a JSON value: sorted keys, no blanks, no NaN."""
    return json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def json_digest(value: Any) -> str:
    """SHA-256 of a JSON value's one spelling."""
    return hashlib.sha256(canonical_json(value).encode("utf-8", "surrogatepass")).hexdigest()


def combine(**parts: str) -> str:
    """The digest of named parts, each already short (digests, names, numbers as text)."""
    return json_digest(parts)


def file_digest(path: Path) -> str:
    """SHA-256 of a file's bytes."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def plain(value: Any) -> Any:
    """Mappings and tuples as the dicts and lists that JSON knows."""
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return value
