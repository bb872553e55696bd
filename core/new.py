"""`python -m core.new benchmark|system NAME [--out DIR]`: write a package that passes the contract tests.

What is written is a plugin that works: one's own code takes the place of its parts while the tests stay green.
The files stand in core/templates; their @WORDS@ are filled in, nothing else is.
"""

from __future__ import annotations

import argparse
import keyword
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path, PurePosixPath
from typing import Final

from core.errors import InputError

KINDS: Final = ("benchmark", "system")
_DESCRIPTION: Final = (
    "Write a package for a benchmark or a system of your own; it passes the contract tests as written."
)
_NAME: Final = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")
_LONGEST: Final = 40
_SUFFIX: Final = ".tmpl"


def write(kind: str, name: str, out: Path) -> list[Path]:
    """Write the package into `out`, which must not exist; returns its files. Raises InputError."""
    check_name(kind, name)
    words = {
        "@KIND@": kind,
        "@NAME@": name,
        "@PACKAGE@": package_of(name),
        "@DISTRIBUTION@": distribution_of(name),
        "@VARIABLE@": name.upper(),
    }
    try:
        out.mkdir(parents=True)
    except FileExistsError:
        raise InputError("the folder exists", where=str(out), expected="a new one: --out DIR") from None
    except OSError as error:
        raise InputError(f"the folder can't be made: {error.strerror}", where=str(out)) from error
    written = []
    for inside, text in _templates(files("core").joinpath("templates", kind), PurePosixPath()):
        path = out / _filled_path(inside, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(filled(text, words), encoding="utf-8")
        written.append(path)
    return written


def check_name(kind: str, name: str) -> None:
    """Raise InputError unless the name is free and can be a config's, a package's and an entry point's."""
    if not _NAME.fullmatch(name) or len(name) > _LONGEST or keyword.iskeyword(name):
        raise InputError(
            f"{name!r} can't be the name of a {kind}",
            expected=f"at most {_LONGEST} lower-case letters, digits and single _, beginning with a letter",
        )
    from core.compose import add_search_paths, options
    from core.plugin_manager import PluginManager

    add_search_paths(PluginManager.discover())
    if name in options(kind):
        raise InputError(f"a {kind} called {name!r} is there already", expected=f"another name than {name!r}")


def package_of(name: str) -> str:
    return f"leadline_{name}"


def distribution_of(name: str) -> str:
    return f"leadline-{name.replace('_', '-')}"


def filled(text: str, words: Mapping[str, str]) -> str:
    """The text with its @WORDS@ filled in; a word that is not known is a bug of ours."""
    return re.sub(r"@[A-Z]+@", lambda match: words[match[0]], text)


def _templates(folder: Traversable, inside: PurePosixPath) -> Iterator[tuple[PurePosixPath, str]]:
    for entry in sorted(folder.iterdir(), key=lambda entry: entry.name):
        if entry.is_dir():
            yield from _templates(entry, inside / entry.name)
        elif entry.name.endswith(_SUFFIX):
            yield inside / entry.name.removesuffix(_SUFFIX), entry.read_text(encoding="utf-8")


def _filled_path(inside: PurePosixPath, name: str) -> Path:
    """`src/package/conf/system/name.yaml` with the package's and the config's own names."""
    parts = [package_of(name) if part == "package" else part for part in inside.parts]
    return Path(*parts[:-1], f"{name}.yaml" if parts[-1] == "name.yaml" else parts[-1])


def main(argv: Sequence[str] | None = None) -> int:
    """The command; returns the exit code."""
    parser = argparse.ArgumentParser("core.new", description=_DESCRIPTION)
    parser.add_argument("kind", choices=KINDS, help="what the package holds")
    parser.add_argument("name", metavar="NAME", help="how it is called on the command line: benchmark=NAME")
    parser.add_argument("--out", type=Path, metavar="DIR", help="the package's folder (default: leadline-NAME)")
    words = parser.parse_args(argv)
    out = words.out or Path(distribution_of(words.name))
    try:
        written = write(words.kind, words.name, out)
    except InputError as error:
        sys.stderr.write(f"refused: {error}\n")
        return 2
    lines = [str(path) for path in written]
    lines += ["", f"next: pip install -e '{out}[test]' && python -m pytest {out}"]
    sys.stdout.write("\n".join(lines) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
