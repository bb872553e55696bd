"""The surroundings of an adapter under test: its shipped config, services, a task."""

from __future__ import annotations

import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, cast

from omegaconf import OmegaConf

from core.clock import RealClock
from core.model import Task
from core.secrets import Keys
from core.services import Services

CONF: Final = Path(__file__).parents[2] / "conf" / "system"

TASK: Final = Task(
    id="t1",
    prompt="Which rivers flow through Ashby Quay? – «all of them»\nsecond line",
    output_schema={"type": "object"},
    required_files=("rivers.csv",),
    blocked=("blocked.example",),
)


class Log:
    """Keeps what was logged."""

    def __init__(self) -> None:
        self.warnings: list[tuple[str, Mapping[str, Any]]] = []

    def warning(self, event: str, **fields: Any) -> None:
        self.warnings.append((event, fields))


def config(name: str, **changes: Any) -> dict[str, Any]:
    """The shipped config of a system as its factory gets it, with some keys changed."""
    tree = OmegaConf.merge(OmegaConf.load(CONF / "_base.yaml"), OmegaConf.load(CONF / f"{name}.yaml"))
    plain = cast("dict[str, Any]", OmegaConf.to_container(tree))
    plain.pop("defaults")
    return {**plain, "effort_settings": {}, **changes}


def services(effort: str | None = None, *, log: Log | None = None) -> Services:
    """What a factory is given; these adapters use neither http nor limiter."""
    nothing = cast("Any", None)
    return Services(
        http=nothing,
        limiter=nothing,
        clock=RealClock(),
        rng=random.Random(0),
        log=log or Log(),
        keys=Keys(),
        effort=effort,
    )
