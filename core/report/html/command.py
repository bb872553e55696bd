"""`python -m core.report RUN…`: write report.html anew from a run folder. Asks nobody, fetches nothing."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from core.errors import InputError

if TYPE_CHECKING:
    from core.plugin_manager import PluginManager
    from core.report.html.details import Explain

#: Exit codes: written; refused.
OK: Final = 0
REFUSED: Final = 2
_DESCRIPTION: Final = "Write report.html into run folders: one page that needs nothing beside it."


def main(argv: Sequence[str] | None = None) -> int:
    """The command; returns the exit code."""
    parser = argparse.ArgumentParser("core.report", description=_DESCRIPTION)
    parser.add_argument("runs", nargs="+", metavar="RUN", type=Path, help="a run folder")
    words = parser.parse_args(argv)
    from core.plugin_manager import PluginManager
    from core.report.html import write

    plugins = PluginManager.discover()
    for path in words.runs:
        try:
            sys.stdout.write(f"{write(path, _explain_of(path, plugins))}\n")
        except InputError as error:
            sys.stderr.write(f"refused: {error}\n")
            return REFUSED
        except OSError as error:
            sys.stderr.write(f"refused: {path}: can't be written: {error.strerror}\n")
            return REFUSED
    return OK


def _explain_of(path: Path, plugins: PluginManager) -> Explain | None:
    """How the run's benchmark explains a score. A report does not need its plugin: without it, it says less."""
    from core.rescore import fold_parts, read_run

    try:
        grader, _ = fold_parts(read_run(path).config, plugins)
    except InputError as error:
        sys.stderr.write(f"{path}: without how scores came about: {error}\n")
        return None
    found: Explain | None = getattr(grader, "explain", None)
    return found
