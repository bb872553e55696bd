"""`python -m plugins.wandr.compile CHECKOUT --out FILE --yes`: a task file from the released repository.

The released tasks are Python packages: reading them runs the code of the checkout. So this is never part of a run;
it is done once, by this command, and refused without `--yes`.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from core.errors import InputError
from plugins.wandr.checkout import EXPECTED, TASKS, TIMEOUT_S, Failed, compiled, task_names

_DESCRIPTION: Final = (
    "Compile a checkout of the released WANDR repository into a task file for benchmark.source=FILE. This RUNS "
    f"THE PYTHON CODE of the checkout ({TASKS}/*/config.py and what it imports), in a child process without keys: "
    "do it with a checkout that you trust."
)
_SUFFIXES: Final = (".jsonl", ".jsonl.gz")


def main(argv: Sequence[str] | None = None) -> int:
    """The command. Returns 0; 2 when it refuses; 3 when tasks are missing from the file it wrote."""
    parser = argparse.ArgumentParser(prog="python -m plugins.wandr.compile", description=_DESCRIPTION)
    parser.add_argument("checkout", type=Path, help="the folder of the checkout")
    parser.add_argument("--out", type=Path, required=True, help="the file to write: .jsonl or .jsonl.gz")
    parser.add_argument("--yes", action="store_true", help="yes, run the checkout's code")
    parser.add_argument("--force", action="store_true", help="replace the file if it exists")
    parser.add_argument("--timeout", type=float, default=TIMEOUT_S, metavar="S", help="seconds for one task")
    given = parser.parse_args(argv)
    try:
        return _compile(given.checkout, given.out, given.yes, given.force, given.timeout)
    except InputError as error:
        sys.stderr.write(f"refused: {error}\n")
        return 2


def _compile(checkout: Path, out: Path, yes: bool, force: bool, timeout_s: float) -> int:  # noqa: FBT001  # flags
    if not out.name.endswith(_SUFFIXES):
        raise InputError("not a task file's name", where="--out", expected=" or ".join(_SUFFIXES), got=out.name)
    if out.exists() and not force:
        raise InputError("the file exists", where=str(out), expected="another --out, or --force to replace it")
    names = task_names(checkout)
    if not yes:
        raise InputError(
            f"this runs the Python code of {len(names)} tasks in {checkout / TASKS}",
            expected="--yes to say that the checkout may be run",
        )
    sys.stderr.write(f"running the code of {checkout} for {len(names)} tasks\n")
    rows: list[dict[str, Any]] = []
    failed: list[Failed] = []
    for found in compiled(checkout, names, timeout_s=timeout_s):
        if isinstance(found, Failed):
            failed.append(found)
            sys.stderr.write(f"not compiled: {_shown(found.name)}: {_shown(found.reason)}\n")
        else:
            rows.append(found)
    if not rows:
        raise InputError("no task could be compiled", where=str(checkout), expected="the reasons are above")
    _write(out, rows)
    sys.stdout.write(f"{len(rows)} tasks in {out}\n")
    if len(names) != EXPECTED:
        sys.stderr.write(f"the released repository has {EXPECTED} tasks, this checkout {len(names)}\n")
    if failed:
        sys.stderr.write(f"{len(failed)} tasks are not in it: {', '.join(_shown(each.name) for each in failed)}\n")
    return 0 if len(rows) == EXPECTED else 3


def _write(out: Path, rows: Sequence[dict[str, Any]]) -> None:
    """The whole file or none: it is written beside its place and then moved there."""
    content = "".join(json.dumps(row, ensure_ascii=False, allow_nan=False) + "\n" for row in rows).encode("utf-8")
    if out.name.endswith(".gz"):
        content = gzip.compress(content, mtime=0)  # the same tasks give the same bytes
    part = out.with_name(f"{out.name}.{os.getpid()}.part")
    try:
        part.write_bytes(content)
        part.replace(out)
    except OSError as error:
        part.unlink(missing_ok=True)
        raise InputError(f"the file can't be written: {error}", where=str(out)) from error


def _shown(text: str) -> str:
    """Text of the checkout's as a terminal may show it: one line, no control characters."""
    return "".join(character if character.isprintable() else " " for character in text)[:500]


if __name__ == "__main__":
    sys.exit(main())
