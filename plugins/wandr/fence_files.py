"""Files out of fenced blocks in a message.

A block opens with a line of at least three backticks and `file:<path>` (or `file-base64:<path>`), and closes with
a line of nothing but at least as many backticks. What models do beside that is put up with, and each case noted:

- a fence that nobody closes ends where the next file opens, or with the text; what follows its last complete
  record there and does not begin like one is talk, and no row;
- backticks alone on a line inside a record that is not complete yet do not close the block;
- a line whose record is escaped as a JSON text (`{\\"item\\": …}`, or quoted as a whole) is unescaped, and records
  with a literal `\\n` between them are set apart: JSONL that was written into a text once too often;
- of a path that comes twice the last is used.

Lines end with a line feed and nothing else: a JSON text may hold other line separators.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from core.strict_json import decode, shown
from plugins.wandr.instruction import FENCE, FENCE_BASE64

_TICKS: Final = re.compile(r"[ \t]{0,3}(`{3,})")
#: What the last line of complete records ends with: an object, or one that is quoted as a text.
_COMPLETE: Final = ("}", '}"', "}\\n", '}\\n"')

#: What a line of a record begins with, plain or quoted as a text.
_BEGINS: Final = ("{", '"{')
_UNCLOSED: Final = "the fence is not closed"


@dataclass(frozen=True, slots=True)
class Block:
    """A file as a message gives it. `content` is None where it can't be read, and `fault` says why."""

    path: str
    content: str | None
    fault: str | None = None


@dataclass(frozen=True, slots=True)
class _Opening:
    ticks: int
    path: str
    in_base64: bool


def files_in(text: str) -> tuple[Mapping[str, Block], tuple[str, ...]]:
    """Path → block of a message, and notes on what was odd. Never raises; time grows with the text's length."""
    lines = text.split("\n")
    found: dict[str, Block] = {}
    notes: list[str] = []
    at = 0
    while at < len(lines):
        opening = _opening(lines[at])
        at += 1
        if opening is None:
            continue
        end, note = _end(lines, at, opening)
        if note:
            notes.append(f"{shown(opening.path)}: {note}")
        content = lines[at:end]
        if note == _UNCLOSED and not opening.in_base64:
            content, n_dropped = _without_talk(content)
            if n_dropped:
                notes.append(f"{shown(opening.path)}: {n_dropped} lines after the last record are left out")
        block, more = _block(opening, content)
        notes += [f"{shown(opening.path)}: {each}" for each in more]
        if opening.path in found:
            notes.append(f"{shown(opening.path)}: given more than once, the last is used")
        found[opening.path] = block
        at = end
    return found, tuple(notes)


def _opening(line: str) -> _Opening | None:
    ticks = _TICKS.match(line)
    if ticks is None:
        return None
    # the path stands in messages, which must be writable
    word = line[ticks.end() :].strip().encode("utf-8", "replace").decode("utf-8")
    for mark in (FENCE_BASE64, FENCE):
        path = word.removeprefix(mark).strip()
        if word.startswith(mark) and path:
            return _Opening(len(ticks[1]), path, mark == FENCE_BASE64)
    return None


def _closes(line: str, opening: _Opening) -> bool:
    ticks = line.strip()
    return len(ticks) >= opening.ticks and not ticks.strip("`")


def _end(lines: Sequence[str], start: int, opening: _Opening) -> tuple[int, str | None]:
    """The line that ends a block (its fence, the next file's, or the text's end), and what was odd about it."""
    inside: int | None = None  # the first fence that stood in an incomplete record
    last = ""  # the last line of content that is not blank
    for at in range(start, len(lines)):
        line = lines[at]
        if _closes(line, opening):
            if opening.in_base64 or not last or last.endswith(_COMPLETE):
                return at, None if inside is None else "backticks inside a record were not read as the fence's end"
            if inside is None:
                inside = at
        elif _TICKS.match(line) and (inside is not None or _opening(line) is not None):
            # another block begins: a record left open by then is broken, not long
            return (inside, None) if inside is not None else (at, _UNCLOSED)
        if line.strip():
            last = line.rstrip()
    return (inside, None) if inside is not None else (len(lines), _UNCLOSED)


def _without_talk(lines: Sequence[str]) -> tuple[list[str], int]:
    """Lines of an unclosed block without what is said after its last complete record, and how many those are.

    A line that begins like a record stays: a record that was cut off is refused, not left out.
    """
    words = [line.strip() for line in lines]
    ends = [at for at, word in enumerate(words) if word.startswith(_BEGINS) and word.endswith(_COMPLETE)]
    if not ends:
        return list(lines), 0
    rest = range(ends[-1] + 1, len(lines))
    kept = [lines[at] for at in rest if not words[at] or words[at].startswith(_BEGINS)]
    return [*lines[: ends[-1] + 1], *kept], len(rest) - len(kept)


def _block(opening: _Opening, lines: Sequence[str]) -> tuple[Block, list[str]]:
    if opening.in_base64:
        try:
            content = base64.b64decode("".join("".join(lines).split()), validate=True).decode("utf-8")
        except (binascii.Error, ValueError) as error:
            kind = "UTF-8" if isinstance(error, UnicodeDecodeError) else "base64"
            return Block(opening.path, None, f"the block is not {kind}"), []
        return Block(opening.path, content), []
    content, n_unescaped = unescaped(lines)
    notes = [f"{n_unescaped} lines were escaped as JSON texts"] if n_unescaped else []
    return Block(opening.path, content), notes


def unescaped(lines: Sequence[str]) -> tuple[str, int]:
    """Lines of records joined, those that were escaped as JSON texts set right, and how many those were."""
    plain: list[str] = []
    count = 0
    for line in lines:
        found = _unescaped(line)
        count += found is not None
        plain += [line] if found is None else found
    return "\n".join(plain), count


def _unescaped(line: str) -> list[str] | None:
    """The records in a line that is a JSON text of records; None for a line that is something else."""
    word = line.strip()
    if word.startswith('{\\"'):
        word = f'"{word}"'
    elif "}\\n" in word and word.startswith("{"):
        return _set_apart(word)
    elif not (word.startswith('"') and word.endswith('"')):
        return None
    try:
        text = decode(word)
    except ValueError:
        return None
    if not isinstance(text, str) or not text.lstrip().startswith("{"):
        return None
    return [row for row in text.split("\n") if row.strip()]


def _set_apart(word: str) -> list[str] | None:
    """Records with a literal backslash and n between or after them; None unless the whole line is that."""
    rows: list[str] = []
    at = 0
    decoder = json.JSONDecoder()
    while at < len(word):
        try:
            _, end = decoder.raw_decode(word, at)
        except (ValueError, RecursionError):
            return None
        rows.append(word[at:end])
        at = end
        while word.startswith("\\n", at) or (at < len(word) and word[at] in " \t"):
            at += 2 if word[at] == "\\" else 1
    return None if rows == [word] else rows
