"""Write requirements/ anew from the ranges in pyproject.toml: `python scripts/pin.py [--upgrade]`.

Needs `uv` (0.9 or later) in PATH, or its path in the variable UV. Each set is written twice: NAME.txt has
exact versions and serves as constraints (`pip install -c`), NAME.hashes.txt has the same versions with the
digests of their files, for `pip install --require-hashes -r`. One file serves every supported Python: where
versions differ they carry markers. No file names a host, so an index of one's own serves as well.

Without `--upgrade` the pinned versions stay where the ranges allow them. Sets agree with each other: what
test.txt pins is pinned to the same version everywhere.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]
#: Name of a set → the extras it has besides the run-time dependencies. The first one binds the others.
SETS: Final = {"test": ("test",), "core": (), "launchers": ("launchers",), "ray": ("ray",)}
#: The lowest Python of `requires-python`.
PYTHON: Final = "3.11"
_OPTIONS: Final = (
    "--universal",
    f"--python-version={PYTHON}",
    "--no-header",
    "--no-annotate",
    "--no-emit-index-url",
    "--no-emit-find-links",
    "--quiet",
)


def pin(name: str, extras: Sequence[str], *, upgrade: bool) -> None:
    """Write one set and its hashed twin."""
    plain = ROOT / "requirements" / f"{name}.txt"
    options = [*_OPTIONS, *(f"--extra={extra}" for extra in extras)]
    bound = [] if name == "test" else ["--constraints=requirements/test.txt"]
    _compile([*options, *bound, *(["--upgrade"] if upgrade else [])], plain)
    hashed = plain.with_suffix(".hashes.txt")
    hashed.unlink(missing_ok=True)
    _compile([*options, f"--constraints=requirements/{plain.name}", "--generate-hashes"], hashed)


def _compile(options: Sequence[str], output: Path) -> None:
    uv = os.environ.get("UV", "uv")
    target = output.relative_to(ROOT).as_posix()
    command = [uv, "pip", "compile", *options, "pyproject.toml", f"--output-file={target}"]
    subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)


def main(argv: Sequence[str]) -> int:
    if set(argv) - {"--upgrade"}:
        sys.stderr.write(f"{__doc__}\n")
        return 2
    for name, extras in SETS.items():
        pin(name, extras, upgrade="--upgrade" in argv)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
