"""Structured logs, without keys: one JSON line an event, in the run folder."""

from __future__ import annotations

import logging
from collections.abc import Callable, MutableMapping
from typing import Any, TextIO

from core.secrets import Keys


def file_logger(file: TextIO, keys: Keys, **fields: Any) -> Any:
    """A logger that writes JSON lines to `file`; every text in an event is redacted.

    Exceptions are written with their traceback, redacted too. `fields` stand in every line.
    """
    import structlog

    return structlog.wrap_logger(
        structlog.WriteLogger(file),
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            _redactor(keys),
            structlog.processors.JSONRenderer(ensure_ascii=False, default=str),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.INFO),
        **fields,
    )


def silent_logger() -> Any:
    """A logger that writes nothing, for work outside a run."""
    import structlog

    return structlog.wrap_logger(
        structlog.ReturnLogger(),
        processors=[],
        wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL),
    )


def quiet_libraries() -> None:
    """Keep the libraries' own loggers out of the console: what they have to say reaches us as errors."""
    for name in ("httpx", "httpcore", "aiohttp", "asyncio", "datasets", "huggingface_hub", "filelock", "LiteLLM"):
        logging.getLogger(name).setLevel(logging.CRITICAL)


def _redactor(keys: Keys) -> Callable[[Any, str, MutableMapping[str, Any]], MutableMapping[str, Any]]:
    def redact(_logger: Any, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
        for name, value in event.items():
            event[name] = keys.redacted(value)
        return event

    return redact
