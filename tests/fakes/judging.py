"""What the judges' tests share: services, a schema, questions."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final

from core.clock import RealClock
from core.http import Http
from core.judge.question import Probe, Question
from core.limiter import Limiters
from core.secrets import Keys
from core.services import Services

SCHEMA: Final[Mapping[str, Any]] = {
    "type": "object",
    "properties": {"explanation": {"type": "string"}, "verdict": {"type": "string", "enum": ["MET", "UNMET"]}},
    "required": ["explanation", "verdict"],
    "additionalProperties": False,
}


def services(environ: Mapping[str, str] | None = None) -> Services:
    """Real services without any key but those given."""
    clock = RealClock()
    return Services(Http(clock), Limiters(clock), clock, random.Random(0), None, Keys(environ or {}))


@asynccontextmanager
async def open_services(environ: Mapping[str, str] | None = None) -> AsyncIterator[Services]:
    found = services(environ)
    yield found
    await found.http.aclose()


def question(ask: str = "Is the sky blue?", **changes: Any) -> Question:
    fields: dict[str, Any] = {
        "task_id": "t1",
        "attempt": 1,
        "repeat": 1,
        "units": ("criterion/c1",),
        "system": "You are a judge.",
        "context": "<report>The sky is blue.</report>",
        "ask": ask,
        "schema": SCHEMA,
        "schema_name": "verdict",
        "probes": (Probe("verdict", "The sky is blue", "The sky is blue.", "MET", "UNMET"),),
    }
    return Question(**{**fields, **changes})
