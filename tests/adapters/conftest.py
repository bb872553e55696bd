"""The surroundings of an adapter under test: its shipped config, services, a task."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, cast

import pytest
from omegaconf import OmegaConf

from core.clock import RealClock
from core.model import Task
from core.secrets import Keys
from core.services import Services

CONF = Path(__file__).parents[2] / "conf" / "system"


class Log:
    """Keeps what was logged."""

    def __init__(self) -> None:
        self.warnings: list[tuple[str, Mapping[str, Any]]] = []

    def warning(self, event: str, **fields: Any) -> None:
        self.warnings.append((event, fields))


@pytest.fixture
def log() -> Log:
    return Log()


@pytest.fixture
def config() -> Callable[..., dict[str, Any]]:
    """`config(name, **changes)`: the shipped config of a system as its factory gets it."""

    def build(name: str, **changes: Any) -> dict[str, Any]:
        tree = OmegaConf.merge(OmegaConf.load(CONF / "_base.yaml"), OmegaConf.load(CONF / f"{name}.yaml"))
        plain = cast("dict[str, Any]", OmegaConf.to_container(tree))
        plain.pop("defaults")
        return {**plain, "effort_settings": {}, **changes}

    return build


@pytest.fixture
def services(log: Log) -> Callable[..., Services]:
    """`services(effort)`: what a factory is given; these adapters use neither http nor limiter."""

    def build(effort: str | None = None) -> Services:
        nothing = cast("Any", None)
        return Services(
            http=nothing,
            limiter=nothing,
            clock=RealClock(),
            rng=random.Random(0),
            log=log,
            keys=Keys(),
            effort=effort,
        )

    return build


@pytest.fixture
def task() -> Task:
    return Task(
        id="t1",
        prompt="Which rivers flow through Ashby Quay? – «all of them»\nsecond line",
        output_schema={"type": "object"},
        required_files=("rivers.csv",),
        blocked=("blocked.example",),
    )
