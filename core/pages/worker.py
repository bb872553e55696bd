"""A process that reads pages for another one: hostile bytes meet native parsers here, and nothing of value.

Frames on standard input and output: four bytes of length, then so much JSON; a request's JSON is followed by
the page's body, whose length it gives as `size`. The answer is data, never code: a worker that a page has taken
over can say something wrong of that page and nothing else. It sees no API key (its environment is chosen by
whoever starts it) and ends when its input does.

    python worker.py MODULE:FUNCTION     the function is called with (body, content_type, charset, url)
"""

from __future__ import annotations

import dataclasses
import importlib
import json
import os
import struct
import sys
from typing import Any, BinaryIO, Final

LENGTH: Final = struct.Struct(">I")
#: Bytes of memory for one page; a parser that wants more fails alone.
_MEMORY: Final = 4 * 1024**3


def frame(value: Any) -> bytes:
    """A value as a frame."""
    text = json.dumps(value).encode()
    return LENGTH.pack(len(text)) + text


def target(name: str) -> Any:
    """The function that `module:function` names."""
    module, _, function = name.partition(":")
    return getattr(importlib.import_module(module), function)


def answer(read: Any, body: bytes, header: dict[str, Any]) -> dict[str, Any]:
    """What a page says, as the fields of core.pages.extract.Extracted; a reader that fails is one of them."""
    try:
        return dataclasses.asdict(read(body, header["content_type"], header["charset"], header["url"]))
    except Exception as error:  # noqa: BLE001 - whatever a parser raises says that it can't read the page
        return unreadable(f"{type(error).__name__}: {str(error)[:200]}")


def unreadable(reason: str) -> dict[str, Any]:
    """The result of a page that could not be read."""
    return {"status": "unsupported_type", "message": f"the page could not be read: {reason}"}


def serve(name: str, requests: BinaryIO, answers: BinaryIO) -> None:
    """Answer until the input ends."""
    read = target(name)
    while len(length := requests.read(LENGTH.size)) == LENGTH.size:
        header = json.loads(requests.read(*LENGTH.unpack(length)))
        body = requests.read(header["size"])
        answers.write(frame(answer(read, body, header)))
        answers.flush()


def main() -> None:
    """Keep the output to ourselves: what a parser prints must not stand between two frames."""
    import resource

    with os.fdopen(os.dup(1), "wb") as answers:
        os.dup2(2, 1)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        if sys.platform == "linux":  # elsewhere the limit counts what was never touched
            resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
        serve(sys.argv[1], sys.stdin.buffer, answers)


if __name__ == "__main__":
    main()
