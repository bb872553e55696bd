"""Files that a package carries, by an address that works wherever the package is installed."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from typing import Final

from core.errors import InputError

SCHEME: Final = "pkg://"


def resolve(path: str, *, folder: bool = False) -> Path:
    """The path that a configured value means.

    `pkg://package.name/folder/file` is a file (with `folder`: a folder) of an importable package; anything else
    is an ordinary path, where a leading `~` is the home folder and a relative path is relative to the working
    folder.
    An ordinary path need not exist: whoever opens it reports that.

    Raises InputError for a package that can't be imported and for a packaged file or folder that does not exist.
    """
    if not path.startswith(SCHEME):
        return Path(path).expanduser()
    package, _, inside = path.removeprefix(SCHEME).partition("/")
    if not package or not inside or ".." in Path(inside).parts or Path(inside).is_absolute():
        raise InputError("not the address of a packaged file", expected="pkg://package/file", got=path)
    try:
        found = Path(str(files(package).joinpath(inside)))
    except (ModuleNotFoundError, ValueError, TypeError) as error:
        raise InputError(
            f"there is no package {package!r}", where=path, expected="an importable package"
        ) from error
    if not (found.is_dir() if folder else found.is_file()):
        kind = "folder" if folder else "file"
        raise InputError(f"the package {package!r} has no {kind} {inside!r}", where=path)
    return found
