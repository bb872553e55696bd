"""`python -m core.compare RUN RUN…`: how far the numbers of runs can be trusted. Asks nobody, fetches nothing.

Systems under one judge, judges on the same answers, the ranks they give; core/comparison says how.
"""

from __future__ import annotations

import argparse
import io
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from core.errors import InputError

#: Exit codes: compared; refused.
OK: Final = 0
REFUSED: Final = 2
_DESCRIPTION: Final = (
    "Compare runs: systems under one judge, with every difference; judges on the same answers; ranks; what varies."
)
_WIDE: Final = 400


def main(argv: Sequence[str] | None = None) -> int:
    """The command; returns the exit code."""
    words = _parser().parse_args(argv)
    if isinstance(sys.stdout, io.TextIOWrapper):  # names come from files, and may hold what no terminal can show
        sys.stdout.reconfigure(errors="replace")
    from pydantic import ValidationError

    from core.comparison import Settings, compare
    from core.comparison.build import as_json, write_files
    from core.comparison.render import markdown, text

    chosen = {
        name: getattr(words, name) for name in ("alpha", "power", "resamples", "seed", "top", "judges", "force")
    }
    try:
        try:
            settings = Settings(
                metrics=tuple(dict.fromkeys(words.metric)),
                **{name: value for name, value in chosen.items() if value is not None},
            )
        except ValidationError as error:
            faults = [f"--{'.'.join(map(str, fault['loc']))}: {fault['msg']}" for fault in error.errors()]
            raise InputError("; ".join(faults)) from None
        comparison = compare(words.runs, settings)
        if words.out is not None:
            try:
                write_files(words.out, comparison)
            except OSError as error:
                raise InputError(f"can't be written: {error.strerror}", where=f"--out {words.out}") from None
    except InputError as error:
        sys.stderr.write(f"refused: {error}\n")
        return REFUSED
    if words.format == "json":
        sys.stdout.write(as_json(comparison))
    elif words.format == "md":
        sys.stdout.write(markdown(comparison))
    else:
        from rich.console import Console

        # what is piped is kept or searched: a table is not cut to a terminal that isn't there
        text(comparison, Console(highlight=False, width=None if sys.stdout.isatty() else _WIDE))
    return OK


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("core.compare", description=_DESCRIPTION)
    parser.add_argument("runs", nargs="+", metavar="RUN", type=Path, help="a run folder")
    parser.add_argument(
        "--metric",
        action="append",
        default=[],
        metavar="NAME",
        help="what to compare by; again for more (headline)",
    )
    parser.add_argument(
        "--judges", action="store_true", help="look at the judges though no two judged one system's answers"
    )
    parser.add_argument(
        "--force", action="store_true", help="compare runs of different rules or tasks all the same, with a mark"
    )
    parser.add_argument(
        "--alpha", type=float, metavar="P", help="the chance of a false difference in a table (0.05)"
    )
    parser.add_argument("--power", type=float, metavar="P", help="the chance of seeing a true difference (0.8)")
    parser.add_argument("--resamples", type=int, metavar="N", help="bootstrap resamples and sign patterns (10000)")
    parser.add_argument("--seed", type=int, metavar="N", help="of the resampling")
    parser.add_argument("--top", type=int, metavar="N", help="units named on which judges differ (20)")
    parser.add_argument("--out", type=Path, metavar="DIR", help="write compare.json and compare.md")
    parser.add_argument("--format", choices=("text", "md", "json"), default="text", help="what is printed (text)")
    return parser


if __name__ == "__main__":
    sys.exit(main())
