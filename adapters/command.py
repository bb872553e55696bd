"""system=command: any program, spoken to over stdin and stdout.

    python -m core.run benchmark=draco system=command system.command='python my_agent.py'

The program is started once for each attempt, in a temporary folder, with a small environment and without
a shell. It reads one JSON line:

    {"protocol": "leadline/1", "task_id", "attempt", "prompt", "effort", "output_schema",
     "required_files", "blocked", "workdir", "output_dir", "timeout_s"}

and writes a submission line (docs/files.md) as the last line of stdout; `task_id` and `attempt` may be left
out. Text files that it leaves in `output_dir` become the submission's `files`. How its end is read:

    a submission line                       that line, whatever the exit code
    exit code 0, no line                    completed when there are files, else empty
    another exit code or a signal, no line  error (crash): no number, not a score of 0
    a last line that is no submission, too much output, too many files   error (malformed)
    the time is up                          timed_out

To report an error that is not an answer (no key, a rate limit) it writes the status `error` with an
`error.kind` of the error table; the engine then retries or stops as the table says.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import re
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from adapters._output import BadOutputError, Collected, collect
from adapters._process import Ended, run
from adapters._rows import BadRowError, Origin, read_line
from core.errors import CallError
from core.model import Submission, Task
from core.section import Section
from core.services import Services

PROTOCOL: Final = "leadline/1"
#: What a program needs of its surroundings; everything else is passed only when `env` names it.
KEPT: Final = (
    *("PATH", "HOME", "USER", "LOGNAME", "TMPDIR", "TZ", "LANG", "LC_ALL", "LC_CTYPE"),
    *(
        "HTTP_PROXY",
        "HTTPS_PROXY",
        "ALL_PROXY",
        "NO_PROXY",
        "http_proxy",
        "https_proxy",
        "all_proxy",
        "no_proxy",
    ),
    *("SSL_CERT_FILE", "SSL_CERT_DIR"),
)
_SECRET: Final = re.compile(r"(?i)key|token|secret|passw|credential|auth")
_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True, slots=True)
class Limits:
    """What a program may use: seconds, bytes of stdout (and, apart, of its files), number of files."""

    timeout_s: float
    max_output_bytes: int
    max_files: int


class Command:
    """A program as a system."""

    wire_version: Final = PROTOCOL

    def __init__(
        self,
        words: Sequence[str],
        *,
        env: Sequence[str],
        workdir: Path | None,
        limits: Limits,
        origin: Origin,
        services: Services,
        estimate_usd: float | None = None,
    ) -> None:
        self.settings = origin.settings
        self.estimate_usd = estimate_usd
        #: `blocked` is part of what the program is told.
        self.can_block: Final = True
        self._words, self._env, self._workdir = tuple(words), tuple(env), workdir
        self._limits, self._origin, self._services = limits, origin, services

    def check(self) -> list[str]:
        """What keeps the program from being started."""
        problems = []
        if shutil.which(self._words[0]) is None:
            problems.append(f"system.command: {self._words[0]!r} is not an executable file or a program in PATH")
        if self._workdir is not None and not self._workdir.is_dir():
            problems.append(f"system.workdir: there is no folder {self._workdir}")
        problems += [
            f"system.env: the environment variable {name} is not set"
            for name in self._env
            if name not in os.environ
        ]
        return problems

    async def solve(self, task: Task, attempt: int) -> Submission:
        """One run of the program."""
        base = tempfile.TemporaryDirectory(prefix="leadline-", ignore_cleanup_errors=True)
        try:
            return await self._attempt(task, attempt, Path(base.name))
        finally:
            # a thread, since a program may leave a large tree; shielded, since a cancelled run removes it too
            await asyncio.shield(asyncio.to_thread(base.cleanup))

    async def _attempt(self, task: Task, attempt: int, base: Path) -> Submission:
        clock = self._services.clock
        start = clock.monotonic()
        workdir, output = self._workdir or base / "work", base / "output"
        (base / "work").mkdir()
        output.mkdir()
        try:
            ended = await run(
                self._words,
                stdin=self._request(task, attempt, workdir, output),
                cwd=str(workdir),
                env=self._environment(),
                timeout_s=self._limits.timeout_s,
                max_stdout=self._limits.max_output_bytes,
            )
        except OSError as error:
            raise CallError("crash", f"system.command can't be started: {error}") from error
        return await self._read(task, attempt, ended, output, clock.monotonic() - start)

    def _request(self, task: Task, attempt: int, workdir: Path, output: Path) -> bytes:
        request = {
            "protocol": PROTOCOL,
            "task_id": task.id,
            "attempt": attempt,
            "prompt": task.prompt,
            "effort": self._origin.effort,
            "output_schema": task.output_schema,
            "required_files": task.required_files,
            "blocked": task.blocked,
            "workdir": str(workdir),
            "output_dir": str(output),
            "timeout_s": self._limits.timeout_s,
        }
        return json.dumps(request).encode() + b"\n"

    def _environment(self) -> dict[str, str]:
        return {name: os.environ[name] for name in (*KEPT, *self._env) if name in os.environ}

    async def _read(self, task: Task, attempt: int, ended: Ended, output: Path, latency_s: float) -> Submission:
        """What the program's end comes to, by the table above."""

        def why(message: str) -> str:
            said = ended.stderr.decode("utf-8", "replace").strip()
            return self._services.keys.redact(f"{message}; stderr: {said}" if said else message)

        if ended.out_of_time:
            late = f"the program did not end within {self._limits.timeout_s:g} s (system.timeout_s)"
            return self._origin.ended(task.id, attempt, "timed_out", why(late), latency_s)
        if ended.flooded:
            limit = self._limits.max_output_bytes
            flood = f"the program wrote more than {limit} bytes to stdout (system.max_output_bytes)"
            raise CallError("malformed", why(flood))
        line = next((line for line in reversed(ended.stdout.splitlines()) if line.strip()), None)
        if line is None and ended.code != 0:
            raise CallError("crash", why(f"the program gave no submission line: {ended.how}"))
        try:
            left = await asyncio.to_thread(
                collect, output, max_files=self._limits.max_files, max_bytes=self._limits.max_output_bytes
            )
            row = self._row(task, attempt, line, left)
        except BadOutputError as error:
            raise CallError("malformed", why(str(error))) from error
        except BadRowError as error:
            problem = f"the last line of stdout is not a submission: {error}; {ended.how}"
            raise CallError("malformed", why(problem)) from error
        return self._origin.own(row, latency_s)

    def _row(self, task: Task, attempt: int, line: bytes | None, left: Collected) -> Submission:
        if left.skipped:
            self._services.log.warning("output_files_skipped", task_id=task.id, names=list(left.skipped[:10]))
        mine = {"task_id": task.id, "attempt": attempt, "files": {}}
        row = read_line(json.dumps(mine).encode() if line is None else line, mine)
        for name, expected, got in (("task_id", task.id, row.task_id), ("attempt", attempt, row.attempt)):
            if expected != got:
                raise BadRowError("of another request", at=name, expected=repr(expected), got=repr(got))
        return row.model_copy(update={"files": {**row.files, **left.files}})


def command(config: Mapping[str, Any], services: Services) -> Command:
    """The factory. Raises InputError for a value that can't be used."""
    section = Section(config).with_effort(())
    words = section.words("command", split=True)
    if not words or not words[0].strip():
        raise section.refuse("command", "a program and its arguments: system.command='python my_agent.py'")
    env = section.words("env")
    for name in env:
        if not _VARIABLE.fullmatch(name):
            raise section.refuse("env", "names of environment variables, without values")
        if _SECRET.search(name):
            services.keys.remember(os.environ.get(name, ""))
    folder = section.text_or_none("workdir")
    workdir = None if folder is None else Path(folder).resolve()
    resolved = resolve(words, workdir)
    settings = {
        "command": [services.keys.redact(word) for word in words],
        "source_digest": source_digest(resolved, workdir),
        "env": list(env),
        "effort": services.effort,
    }
    return Command(
        resolved,
        env=env,
        workdir=workdir,
        limits=Limits(
            timeout_s=section.seconds("timeout_s"),
            max_output_bytes=section.whole("max_output_bytes"),
            max_files=section.whole("max_files"),
        ),
        origin=Origin(section.text("name"), services.effort, settings),
        services=services,
        estimate_usd=section.number_or_none("estimate_usd"),
    )


def resolve(words: Sequence[str], workdir: Path | None) -> tuple[str, ...]:
    """The words, with those that name a file made absolute.

    The program runs in another folder than the one in which the command was typed, where `my_agent.py`
    would not be found. A first word without a / is a program of PATH, as in a shell.
    """
    return tuple(
        str(path) if (at > 0 or "/" in word) and (path := _file(word, workdir)) is not None else word
        for at, word in enumerate(words)
    )


def source_digest(words: Sequence[str], workdir: Path | None) -> str:
    """SHA-256 over the contents of the files among the words: an edited program is asked anew.

    A program of PATH is known by its name only, and so is what the files import.
    """
    total = hashlib.sha256()
    for at, word in enumerate(words):
        path = _file(word, workdir) if at > 0 or "/" in word else None
        if path is None:
            continue
        with path.open("rb") as file:
            total.update(hashlib.file_digest(file, "sha256").digest())
    return total.hexdigest()


def _file(word: str, workdir: Path | None) -> Path | None:
    """The regular file that a word names, seen from here or from the program's folder."""
    try:
        for path in (Path(word), (workdir or Path()) / word):
            if path.is_file():
                return path.absolute()
    except (OSError, ValueError):  # too long, or with a NUL: not a file's name
        return None
    return None
