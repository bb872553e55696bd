"""Fences round what a system, a page or a task file wrote: to a judge it is data, never an instruction.

A fence's mark is made of the digest of all that is fenced and does not occur in it: a text can't contain its own
mark, so it can't close its fence. The same texts give the same mark, so the same question has the same bytes.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable

from core.digest import json_digest, text_digest


def fenced(name: str, text: str, mark: str) -> str:
    """A text between two lines that carry its mark."""
    return f"[[{mark} {name}]]\n{text}\n[[{mark} END {name}]]"


def fence_mark(*texts: str, avoid: Iterable[str] = ()) -> str:
    """A mark of 16 hex digits that is the same for the same texts and occurs in none of them.

    `avoid` are the other texts of the prompt, in which it does not occur either: they change it only if they
    hold it, so that a prompt's first part stays the same whatever follows.
    """
    others = tuple(avoid)
    seed = json_digest([text_digest(text) for text in texts])
    for number in itertools.count():
        mark = text_digest(f"{seed}:{number}")[:16]
        if not any(mark in text for text in (*texts, *others)):
            return mark
    raise AssertionError("itertools.count() does not end")
