"""Reading fetched pages: a few small ones at home, all others in worker processes.

Parsers are native code and pages are hostile, so reading has a deadline, and a worker that misses it, dies or
babbles is replaced; the page that did it is one that can't be read. Starting workers takes as long as reading
some dozens of pages, so the first few small texts are read in a thread of this process: a demonstration or a test
never starts a worker. PDF files of strangers are always read by a worker.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from core.pages import worker
from core.pages.fetched import Fetched
from core.pages.page import STATUSES

EXTRACT: Final = "core.pages.extract:extract"
#: Pages that are read at home, and the bytes that such a page may have.
AT_HOME: Final = 16
SMALL: Final = 64 * 1024
#: Bytes of an answer; beyond it a worker babbles.
_LARGEST_ANSWER: Final = 512 * 1024 * 1024
#: Bytes of an answer that are taken in before anybody reads them: most pages' whole, so that nothing pauses it.
_BUFFER: Final = 1024 * 1024
_PASSED_ON: Final = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")

Result = Mapping[str, Any]


class Extraction:
    """Reads pages with `target`, a `module:function` as core.pages.extract:extract.

    At most `workers` processes, started when they are needed. `timeout_s` bounds the work on one page, not
    the wait for a worker. The first `at_home` small texts are read at home; of `trusted` pages (a packaged
    sample's) the first of any kind and size.
    """

    def __init__(
        self,
        *,
        target: str = EXTRACT,
        workers: int = 2,
        timeout_s: float = 60.0,
        at_home: int = AT_HOME,
        trusted: bool = False,
    ) -> None:
        self._target, self._timeout_s, self._trusted = target, timeout_s, trusted
        self._left_at_home = at_home
        self._slots = asyncio.Semaphore(workers)
        self._idle: list[asyncio.subprocess.Process] = []
        self._started: set[asyncio.subprocess.Process] = set()
        self._at_home = asyncio.Lock()

    async def read(self, fetched: Fetched) -> Result:
        """The fields of core.pages.extract.Extracted for a body; never raises for what a page holds."""
        if self._is_for_home(fetched):
            self._left_at_home -= 1
            async with self._at_home:  # one at a time: threads that compute only wait for each other
                return _checked(await asyncio.to_thread(self._read_here, fetched))
        async with self._slots:
            return _checked(await self._read_by_worker(fetched))

    async def aclose(self) -> None:
        """End every worker."""
        for process in list(self._started):
            await self._end(process)
        self._idle.clear()

    def _is_for_home(self, fetched: Fetched) -> bool:
        if self._left_at_home <= 0 or self._trusted:
            return self._left_at_home > 0
        is_pdf = b"%PDF-" in fetched.body[:1024] or "pdf" in (fetched.content_type or "").lower()
        return len(fetched.body) <= SMALL and not is_pdf

    def _read_here(self, fetched: Fetched) -> Result:
        return worker.answer(worker.target(self._target), fetched.body, _header(fetched))

    async def _read_by_worker(self, fetched: Fetched) -> Result:
        process = self._idle.pop() if self._idle else await self._start()
        try:
            async with asyncio.timeout(self._timeout_s):
                result = await _ask(process, fetched)
        except TimeoutError:
            await self._end(process)
            return worker.unreadable(f"it took longer than {self._timeout_s:g} s")
        except (OSError, EOFError, ValueError, RecursionError):
            await self._end(process)
            return worker.unreadable("its reader ended, which malformed pages do to parsers")
        except BaseException:
            # cancelled between question and answer: the next page must not get this one's
            await self._end(process)
            raise
        self._idle.append(process)
        return result

    async def _start(self) -> asyncio.subprocess.Process:
        environment = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
        environment["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-P",  # the working folder may hold modules of other names' sakes
            str(Path(worker.__file__)),
            self._target,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            limit=_BUFFER,
            env=environment,
        )
        self._started.add(process)
        return process

    async def _end(self, process: asyncio.subprocess.Process) -> None:
        self._started.discard(process)
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()
        if process.stdin is not None:
            process.stdin.close()


async def _ask(process: asyncio.subprocess.Process, fetched: Fetched) -> Result:
    """One page there, one answer back."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(worker.frame({**_header(fetched), "size": len(fetched.body)}) + fetched.body)
    await process.stdin.drain()
    (length,) = worker.LENGTH.unpack(await process.stdout.readexactly(worker.LENGTH.size))
    if length > _LARGEST_ANSWER:
        raise ValueError("an answer longer than any page")
    answer = json.loads(await process.stdout.readexactly(length))
    return answer if isinstance(answer, dict) else {}


def _header(fetched: Fetched) -> dict[str, Any]:
    return {
        "content_type": fetched.content_type,
        "charset": fetched.charset,
        "url": fetched.final_url or fetched.url,
    }


def _checked(result: Result) -> Result:
    """The result, if it has the form of one: a worker's word is not taken for granted."""
    texts = result.get("texts", ())
    whole = (
        result.get("status") in STATUSES
        and all(isinstance(result.get(name, ""), str) for name in ("title", "main_text", "message"))
        and all(_is_pair(pair) for pair in (*texts, *result.get("metadata", ())))
        and (result["status"] != "ok" or bool(texts))
    )
    return result if whole else worker.unreadable("its reader gave no usable answer")


def _is_pair(value: Any) -> bool:
    return isinstance(value, (list, tuple)) and len(value) == 2 and all(isinstance(item, str) for item in value)
