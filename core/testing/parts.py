"""Parts by name, as a run makes them, and the surroundings they are given in a check."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any, Final

from core.clock import RealClock
from core.config import RunConfig
from core.http import Http
from core.judge.question import Probe, Question
from core.limiter import Limiters
from core.logs import silent_logger
from core.model import Task
from core.plugin_manager import PluginManager
from core.secrets import Keys
from core.services import JudgeDesk, Services

#: The value of every API key in a check: it must not come back from anywhere.
TEST_KEY: Final = "leadline-test-key-3f9a"
_DEFAULTS: Final = ("benchmark.source=sample", "system=replay", "judge=offline")


class _EveryKey(Mapping[str, str]):
    """An environment in which every variable is set, to the same key."""

    def __getitem__(self, name: str) -> str:
        return TEST_KEY

    def __iter__(self) -> Any:
        return iter(())

    def __len__(self) -> int:
        return 0


def services(
    *, judge: JudgeDesk | None = None, effort: str | None = None, environ: Mapping[str, str] | None = None
) -> Services:
    """What a factory is given. Without `environ` every API key that is asked for is TEST_KEY.

    The HTTP client is the real one: whatever speaks HTTP is pointed at a server of the test's own.
    """
    clock = RealClock()
    return Services(
        http=Http(clock),
        limiter=Limiters(clock),
        clock=clock,
        rng=random.Random(0),  # noqa: S311 - jitter, not secrets
        log=silent_logger(),
        keys=Keys(_EveryKey() if environ is None else environ),
        judge=judge,
        effort=effort,
    )


def compose(*overrides: str) -> tuple[RunConfig, PluginManager]:
    """The checked configuration of these words, and the plugins that are installed; raises InputError.

    A part that the words don't name is whichever is there: the first benchmark, with its packaged tasks.
    """
    from core.cmdline import prepare
    from core.compose import add_search_paths, options
    from core.compose import compose as composed

    plugins = PluginManager.discover()
    add_search_paths(plugins)
    named = {word.partition("=")[0] for word in overrides}
    words = [] if "benchmark" in named else [f"benchmark={options('benchmark')[0]}"]
    words += [word for word in _DEFAULTS if word.partition("=")[0] not in named]
    return RunConfig.from_tree(composed(prepare([*words, *overrides]))), plugins


def sample_tasks() -> tuple[Task, ...]:
    """Tasks as a system is shown them: plain, in another script with a wanted form, and with a blocked site."""
    return (
        Task(id="plain", prompt="Which rivers flow through Ashby Quay?"),
        Task(
            id="form/ж-1",
            prompt="Назови три моста — «с годами постройки».\nSecond line.",
            output_schema={"type": "object", "properties": {"bridges": {"type": "array"}}},
            required_files=("bridges.jsonl",),
            index=1,
        ),
        Task(id="blocked", prompt="What is a lead line?", blocked=("benchmark.example",), index=2),
    )


def sample_question(number: int = 1, repeat: int = 1) -> Question:
    """A question whose answer is an explanation and a verdict, with a probe for a judge of rules."""
    return Question(
        task_id="plain",
        attempt=1,
        repeat=repeat,
        units=(f"criterion/c{number}",),
        system="You decide whether a response states a fact.",
        context="RESPONSE: The lead line of 1804 was 25 fathoms long.",
        ask=f"Fact {number}: the lead line was {20 + number} fathoms long. Does the response state it?",
        schema={
            "type": "object",
            "properties": {
                "explanation": {"type": "string"},
                "verdict": {"type": "string", "enum": ["YES", "NO"]},
            },
            "required": ["explanation", "verdict"],
            "additionalProperties": False,
        },
        schema_name="stated",
        probes=(
            Probe(
                field="verdict",
                claim=f"The lead line was {20 + number} fathoms long.",
                evidence="The lead line of 1804 was 25 fathoms long.",
                yes="YES",
                no="NO",
            ),
        ),
    )
