"""One program run to its end: fed, read with caps, and killed with everything it started.

The program leads a process group of its own. When it ends, when its time is up or when the run is
cancelled, the whole group is ended: SIGTERM, a short grace, SIGKILL. Only a process that left the group on
purpose (setsid) can outlive it.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, cast

#: How long a group may take to end after SIGTERM, and a pipe to close after its group has ended.
GRACE_S: Final = 1.0
#: How much of the end of stderr is kept.
STDERR_BYTES: Final = 4096
_POLL_S: Final = 0.02


@dataclass(frozen=True, slots=True)
class Ended:
    """How a program ended. `code` is negative for a signal, as in `subprocess`.

    `stderr` is the end of what it wrote there. `out_of_time`: it was ended at its deadline;
    `flooded`: it was ended because stdout went over the cap, and `stdout` breaks off.
    """

    code: int
    stdout: bytes
    stderr: bytes
    out_of_time: bool = False
    flooded: bool = False

    @property
    def how(self) -> str:
        """In words."""
        if self.code >= 0:
            return f"it ended with exit code {self.code}"
        with contextlib.suppress(ValueError):
            return f"it was ended by {signal.Signals(-self.code).name}"
        return f"it was ended by signal {-self.code}"


class _Watch(asyncio.SubprocessProtocol):
    """What the event loop tells of the program.

    A protocol rather than streams, because the end of the program and the end of its output are two
    events: a child that it left behind keeps the pipes open.
    """

    def __init__(self, cap: int) -> None:
        self.stdout, self.stderr = bytearray(), bytearray()
        #: Set when the program has ended, or has written too much.
        self.over = asyncio.Event()
        self.exited = asyncio.Event()
        #: Set when nobody holds the other end of stdout and stderr.
        self.drained = asyncio.Event()
        self.flooded = False
        self._cap = cap
        self._open = {1, 2}

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        if fd == 2:
            self.stderr += data
            del self.stderr[:-STDERR_BYTES]
        elif len(self.stdout) + len(data) > self._cap:
            self.flooded = True
            self.over.set()
        elif not self.flooded:
            self.stdout += data

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        self._open.discard(fd)
        if not self._open:
            self.drained.set()

    def process_exited(self) -> None:
        self.exited.set()
        self.over.set()


async def run(
    words: Sequence[str], *, stdin: bytes, cwd: str, env: Mapping[str, str], timeout_s: float, max_stdout: int
) -> Ended:
    """Run a program. Raises OSError when it can't be started; when cancelled, ends it first."""
    loop = asyncio.get_running_loop()
    transport, watch = await loop.subprocess_exec(
        lambda: _Watch(max_stdout),
        *words,
        cwd=cwd,
        env=dict(env),
        start_new_session=True,
    )
    out_of_time = False
    try:
        pipe = _stdin(transport)
        if pipe is not None:
            # the transport holds what the program has not read yet; nothing here waits for it
            pipe.write(stdin)
            pipe.close()
        async with asyncio.timeout(timeout_s) as deadline:
            await watch.over.wait()
    except TimeoutError:
        out_of_time = deadline.expired()
    finally:
        try:
            await _end_group(transport.get_pid())
        finally:
            await _settle(transport, watch)
    code = transport.get_returncode()
    return Ended(
        code=-signal.SIGKILL if code is None else code,
        stdout=bytes(watch.stdout),
        stderr=bytes(watch.stderr),
        out_of_time=out_of_time,
        flooded=watch.flooded,
    )


def _stdin(transport: asyncio.SubprocessTransport) -> asyncio.WriteTransport | None:
    return cast("asyncio.WriteTransport | None", transport.get_pipe_transport(0))


async def _end_group(group: int) -> None:
    """End every process of a group that is left. Does nothing when none is."""
    left = _signal(group, signal.SIGTERM)
    try:
        loop = asyncio.get_running_loop()
        end = loop.time() + GRACE_S
        while left and loop.time() < end:
            await asyncio.sleep(_POLL_S)
            left = _signal(group, 0)
    finally:
        if left:  # also when the wait was cancelled
            _signal(group, signal.SIGKILL)


def _signal(group: int, number: int) -> bool:
    """Whether there was a process to get it. macOS answers EPERM for a group of zombies."""
    try:
        os.killpg(group, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True


async def _settle(transport: asyncio.SubprocessTransport, watch: _Watch) -> None:
    """Wait for the program's end and the last of its output, then let go of the pipes."""
    try:
        async with asyncio.timeout(GRACE_S):
            await watch.exited.wait()
            await watch.drained.wait()
    except TimeoutError:
        pass  # a process outside the group holds the pipes: its output is not waited for
    finally:
        pipe = _stdin(transport)
        if pipe is not None and pipe.get_write_buffer_size():
            pipe.abort()  # what nobody read would keep the pipe open
        transport.close()
