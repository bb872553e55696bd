"""The console script `leadline`: the same commands as `python -m core.<command>`."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Final

COMMANDS: Final[Mapping[str, str]] = {
    "run": "run a benchmark on a system and score it with a judge (key=value)",
    "list": "what is there: plugins, benchmarks, systems, efforts, judges, tasks (key=value)",
    "check": "whether a system or a judge could be asked, and what it says when it is (key=value)",
    "report": "write report.html into a run folder",
    "rescore": "fold a run folder's judgements again; asks nobody",
    "compare": "how far numbers can be trusted: systems, judges, ranks",
    "view": "look at runs in a browser: a server on this machine alone",
    "export": "write runs as tables: Parquet, CSV, LaTeX, Markdown",
    "calibrate": "a judge against people's labels; a blind sheet to label; drift between two runs",
    "merge": "put the shards of one run together",
    "audit": "look behind the numbers: rubrics, weights, convergence, saturation",
    "pages": "move archived pages out of a store and into one",
    "new": "write a package for a benchmark or a system of your own",
}


def main(argv: Sequence[str] | None = None) -> int:
    """`leadline COMMAND …`; returns the exit code."""
    words = list(sys.argv[1:] if argv is None else argv)
    if not words or words[0] in ("-h", "--help"):
        lines = [f"  {name:<10}{text}" for name, text in COMMANDS.items()]
        sys.stdout.write("\n".join(["leadline COMMAND …   (or: python -m core.COMMAND …)", "", *lines, ""]))
        return 0
    if words[0] == "--version":
        from core import __version__

        sys.stdout.write(f"leadline {__version__}\n")
        return 0
    if words[0] not in COMMANDS:
        from difflib import get_close_matches

        close = get_close_matches(words[0], list(COMMANDS), n=1)
        hint = f"; did you mean {close[0]!r}?" if close else f"; expected one of {', '.join(COMMANDS)}"
        sys.stderr.write(f"refused: no command is called {words[0]!r}{hint}\n")
        return 2
    return int(import_module(f"core.{words[0]}").main(words[1:]))
