"""`python -m core.view [RUN|FOLDER|SHEET…]`: look at runs in a browser. Asks no provider, fetches nothing.

A server on 127.0.0.1 that reads run folders and writes nothing but labels into blind sheets; Ctrl-C ends it.
The address that is printed holds a token, without which nobody gets an answer.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from core.errors import InputError

#: Exit codes: ended; refused.
OK: Final = 0
REFUSED: Final = 2
_DESCRIPTION: Final = "Look at runs in a browser: a server on this machine alone, until Ctrl-C."


def main(argv: Sequence[str] | None = None) -> int:
    """The command; returns the exit code."""
    words = _parser().parse_args(argv)
    given = words.given or [Path("runs")]
    try:
        for path in given:
            if not path.exists():
                raise InputError(
                    "there is no such folder or file", where=str(path), expected="a run, or a folder of runs"
                )
        asyncio.run(_serve(given, words.port, words.store, opens=words.open))
    except InputError as error:
        sys.stderr.write(f"refused: {error}\n")
        return REFUSED
    except KeyboardInterrupt:
        sys.stderr.write("\n")
    return OK


async def _serve(given: Sequence[Path], port: int, store: Path | None, *, opens: bool) -> None:
    from core.plugin_manager import PluginManager
    from core.viewer.guard import Guard
    from core.viewer.library import Library
    from core.viewer.places import Places
    from core.viewer.server import address, application, start

    places = Places(given)
    listing = places.scan()
    guard = Guard()
    runner = await start(application(Library(places, PluginManager.discover), guard, store), guard, port)
    try:
        n_runs, n_sheets = len(listing.runs), len(listing.sheets)
        sheets = f" and {n_sheets} sheets to label" if n_sheets else ""
        sys.stdout.write(f"{address(guard)}\n{n_runs} runs{sheets}; Ctrl-C ends the viewer\n")
        sys.stdout.flush()
        if opens:
            import webbrowser

            await asyncio.to_thread(webbrowser.open, address(guard))
        await asyncio.Event().wait()
    finally:
        await runner.cleanup()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("core.view", description=_DESCRIPTION)
    parser.add_argument(
        "given", nargs="*", metavar="RUN|FOLDER|SHEET", type=Path,
        help="run folders, folders of runs, blind sheets (runs)",
    )  # fmt: skip
    parser.add_argument("--port", type=int, default=0, metavar="N", help="the port; 0 takes a free one (0)")
    parser.add_argument(
        "--open", action=argparse.BooleanOptionalAction, default=sys.stdout.isatty(),
        help="open the browser (on a terminal)",
    )  # fmt: skip
    parser.add_argument("--store", type=Path, metavar="FILE", help="where the runs' pages are archived")
    return parser


if __name__ == "__main__":
    sys.exit(main())
