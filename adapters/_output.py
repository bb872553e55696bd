"""Reading the files that a program left in a folder, as text, without being led out of it."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from pathlib import Path


class BadOutputError(Exception):
    """A folder that can't be read as a submission's files, and why."""


@dataclass(frozen=True, slots=True)
class Collected:
    """`files`: name (relative, with /) → text, in the order of the names. `skipped`: links, special files."""

    files: dict[str, str]
    skipped: tuple[str, ...] = ()


def collect(folder: Path, *, max_files: int, max_bytes: int) -> Collected:
    """Every regular file below the folder. Raises BadOutputError, naming the file.

    Symbolic links, hard links, pipes and devices are never opened for reading: what they lead to is not
    the program's output. More than `max_files` files or `max_bytes` bytes in all, a file that is not UTF-8
    and one that can't be read are refused.
    """
    found: dict[str, str] = {}
    skipped: list[str] = []
    room = max_bytes

    def refuse(error: OSError) -> None:
        raise BadOutputError(f"{error.filename!r} in output_dir can't be read: {error.strerror}") from error

    # by descriptor: a folder that is swapped for a link after it was listed is not followed
    for path, folders, names, descriptor in os.fwalk(folder, onerror=refuse, follow_symlinks=False):
        base = Path(path).relative_to(folder)
        skipped += [(base / name).as_posix() for name in folders if _is_link(name, descriptor)]
        for name in names:
            shown = (base / name).as_posix()
            content = _content(name, descriptor, shown, room)
            if content is None:
                skipped.append(shown)
                continue
            if len(found) == max_files:
                raise BadOutputError(f"output_dir has more than {max_files} files (system.max_files)")
            room -= len(content)
            if room < 0:
                raise BadOutputError(
                    f"the files in output_dir have more than {max_bytes} bytes (system.max_output_bytes)"
                )
            try:
                found[shown.encode("utf-8").decode("utf-8")] = content.decode("utf-8")
            except UnicodeError:
                skipped.append(f"{shown!a}")  # a picture beside the answer is no reason to lose the answer
    return Collected(dict(sorted(found.items())), tuple(sorted(skipped)))


def _is_link(name: str, folder: int) -> bool:
    return stat.S_ISLNK(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)


def _content(name: str, folder: int, shown: str, room: int) -> bytes | None:
    """A file's bytes, at most one more than there is room for; None when it is not a file of its own."""
    try:
        about = os.stat(name, dir_fd=folder, follow_symlinks=False)
        if not stat.S_ISREG(about.st_mode) or about.st_nlink != 1:
            return None
        # it may have become a link or a pipe since: neither is followed nor waited for
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        with os.fdopen(os.open(name, flags, dir_fd=folder), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                return None
            return file.read(room + 1)
    except OSError as error:
        raise BadOutputError(f"{shown!a} in output_dir can't be read: {error.strerror}") from error
