"""The words of a command line, before Hydra reads them.

Hydra's grammar refuses `=`, `#`, `~`, parentheses and letters beyond ASCII in a value, reads `123e4567`
as a number and keeps the last of a list given to a group in silence. Here such words are quoted, text is
kept as text, and a list for a group is refused.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from core.errors import InputError

GROUPS: Final = ("benchmark", "system", "judge", "pages", "experiment")
#: Hydra's options whose value is the next word.
OPTIONS_WITH_VALUE: Final = ("--cfg", "-c", "--package", "-p", "--config-dir", "-cd", "--info", "-i")
#: Keys whose value is text, whatever it looks like.
_TEXT: Final = frozenset(
    {
        "out",
        "store",
        "shard",
        "effort",
        "system.path",
        "system.label",
        "system.command",
        "system.target",
        "system.model",
        "judge.path",
        "judge.model",
        "benchmark.source",
        "benchmark.revision",
        "benchmark.weights.gamma",
        "pages.path",
    }
)
#: Mappings that take keys of their own: Hydra wants `++` for a key that isn't there yet.
_OPEN: Final = (
    "where",
    "judge.params",
    "judge.price",
    "judge.stage_efforts",
    "system.params",
    "system.price",
    "system.efforts",
)
_NULL: Final = frozenset({"null", "Null", "NULL", "none", ""})


def is_sweep(argv: Sequence[str]) -> bool:
    """Whether the words ask for a sweep."""
    return "-m" in argv or "--multirun" in argv


def prepare(argv: Sequence[str]) -> list[str]:
    """The same words in a form that Hydra reads as they were meant; raises InputError."""
    sweep = is_sweep(argv)
    prepared, of_option = [], False
    for word in argv:
        kept = of_option or word.startswith("-")
        prepared.append(word if kept else _override(word, sweep=sweep))
        of_option = not of_option and word in OPTIONS_WITH_VALUE
    return prepared


def _override(word: str, *, sweep: bool) -> str:
    if "=" not in word:
        if word.startswith("~"):
            return word
        raise InputError(
            f"{word!r} is neither an option nor key=value",
            expected="for example benchmark=draco system=replay",
        )
    key, _, value = word.partition("=")
    key, value = key.strip(), value.strip()
    bare = key.lstrip("+~")
    if bare in GROUPS and value.startswith("["):
        inside = value.strip("[]")
        raise InputError(
            f"{bare} takes one name, got a list {value}",
            where=bare,
            expected=f"-m {bare}={inside} for a sweep",
        )
    if key == bare and (
        (bare in _OPEN and value.startswith("{"))
        or any(bare.startswith(f"{prefix}.") for prefix in _OPEN if prefix != "system.efforts")
    ):
        key = f"++{key}"
    if bare == "tasks":
        lists = re.findall(r"\[[^\]]*\]|null", value) if sweep and value.endswith(("]", "null")) else []
        if len(lists) > 1 and ",".join(lists) == value:
            return f"{key}={','.join(_task_words(item) for item in lists)}"
        return f"{key}={_task_words(value)}"
    if value in _NULL or _is_quoted(value):
        return f"{key}={value}"
    is_text = bare in _TEXT or bare.startswith("where.")
    if is_text and not value.startswith(("[", "{")) and not (sweep and "," in value):
        return f"{key}={quoted(value)}"
    if not _parses(f"{key}={value}") or ("," in value and not sweep and not value.startswith(("[", "{"))):
        return f"{key}={quoted(value)}"
    return f"{key}={value}"


def _task_words(value: str) -> str:
    """`[a,b*]` or `a,b*` as a list of quoted words."""
    if value in _NULL - {""}:
        return "null"
    inside = value[1:-1] if value.startswith("[") and value.endswith("]") else value
    words = re.findall(r"""\s*("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|[^,]+)\s*(?:,|$)""", inside)
    texts = [word if _is_quoted(word) else quoted(word.strip()) for word in words if word.strip()]
    return f"[{','.join(texts)}]"


def _is_quoted(value: str) -> bool:
    return len(value) >= 2 and value[0] == value[-1] and value[0] in "'\""


def quoted(value: str) -> str:
    r"""Quoted for Hydra: `\` before a quote is doubled, the quote itself escaped."""
    escaped = re.sub(r"(\\*)'", lambda match: match[1] * 2 + r"\'", value)
    escaped = re.sub(r"(\\+)$", lambda match: match[1] * 2, escaped)
    return f"'{escaped}'"


def _parses(word: str) -> bool:
    from hydra.core.override_parser.overrides_parser import OverridesParser
    from hydra.errors import HydraException

    try:
        OverridesParser.create().parse_override(word)
    except HydraException:
        return False
    return True
