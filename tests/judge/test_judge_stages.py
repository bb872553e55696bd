"""Stages that think harder or less, answers that a schema can't refuse, and what the judge of rules is told."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from fakes.judging import open_services, question, services
from fakes.model_server import Behaviour, ModelServer

from core.errors import CallError
from core.judge.offline import OfflineJudge
from core.judge.openai_compatible import OpenAICompatibleJudge
from core.judge.question import JUDGE, Probe
from core.judge.via_litellm import LitellmJudge

STAGES = {"deduplicate": "high", "canonicalize": "low"}
GOOD = Behaviour(text='{"explanation": "Yes.", "verdict": "MET"}')


def made(provider: str, base_url: str, given: Any, **changes: Any) -> Any:
    config = {"name": "fake", "provider": provider, "model": "openai/gpt-5.4", "base_url": base_url, **changes}
    return (LitellmJudge if provider == "litellm" else OpenAICompatibleJudge)(config, given)


@pytest.mark.parametrize("provider", ["openai_compatible", "litellm"])
@pytest.mark.parametrize(
    ("effort", "stage", "sent"),
    [
        ("medium", JUDGE, "medium"),
        ("medium", "deduplicate", "high"),
        ("medium", "canonicalize", "low"),
        ("medium", "triage", "medium"),
        (None, JUDGE, None),
        (None, "deduplicate", "high"),
    ],
)
async def test_a_stage_has_its_own_effort(provider: str, effort: str | None, stage: str, sent: str | None) -> None:
    with ModelServer([GOOD, GOOD]) as server:
        async with open_services() as given:
            judge = made(provider, server.base_url, given, effort=effort, stage_efforts=STAGES)
            await judge.ask(question())  # what was encoded for another stage is not sent again
            await judge.ask(question(stage=stage))
            if provider == "litellm":
                await judge.aclose()
    assert server.questions()[1].get("reasoning_effort") == sent


@pytest.mark.parametrize("provider", ["openai_compatible", "litellm"])
def test_efforts_of_stages_are_settings_where_there_are_any(provider: str) -> None:
    plain = made(provider, "http://127.0.0.1:9/v1", services()).settings
    assert "stage_efforts" not in plain
    staged = made(provider, "http://127.0.0.1:9/v1", services(), stage_efforts=STAGES).settings
    assert staged["stage_efforts"] == STAGES


def test_a_stage_is_part_of_the_digest_only_when_it_is_set() -> None:
    assert question(stage=JUDGE).digest == question().digest
    assert len({question(stage=stage).digest for stage in (JUDGE, "triage", "deduplicate")}) == 3


def not_met(value: Mapping[str, Any]) -> str | None:
    return "it may not be MET" if value["verdict"] == "MET" else None


async def test_an_answer_that_the_question_refuses_is_malformed_and_was_paid_for() -> None:
    with ModelServer([GOOD]) as server:
        async with open_services() as given:
            judge = made("openai_compatible", server.base_url, given)
            with pytest.raises(CallError, match="it may not be MET") as caught:
                await judge.ask(question(fault=not_met))
    assert caught.value.kind == "malformed"
    assert caught.value.meaning.retry_judge
    assert caught.value.usage is not None


async def test_the_judge_of_rules_is_held_to_it_too() -> None:
    with pytest.raises(CallError, match="it may not be MET"):
        await OfflineJudge({"name": "offline"}, services()).ask(question(fault=not_met))


@pytest.mark.parametrize(
    ("probes", "expected"),
    [
        pytest.param((Probe("a", decided=True), Probe("b", decided=False)), (True, False, False), id="decided"),
        pytest.param((Probe("a", "sky", "nothing", decided=True),), (True, False, False), id="decided against the rules"),
        pytest.param((Probe("a", decided=True), Probe("b", decided=True), Probe("c", all_of=("a", "b"))), (True, True, True), id="all of it"),
        pytest.param((Probe("a", decided=True), Probe("c", all_of=("a", "b"))), (True, False, False), id="not all of it"),
        pytest.param((Probe("a", "The sky is blue", "The sky is blue."), Probe("c", all_of=("a",))), (True, False, True), id="found and joined"),
    ],
)  # fmt: skip
async def test_probes_that_are_decided_and_joined(probes: tuple[Probe, ...], expected: tuple[bool, ...]) -> None:
    schema = {
        "type": "object",
        "properties": {name: {"type": "boolean"} for name in ("a", "b", "c")},
        "required": ["a", "b", "c"],
    }
    answer = await OfflineJudge({"name": "offline"}, services()).ask(question(schema=schema, probes=probes))
    assert answer.value is not None
    assert tuple(answer.value[name] for name in ("a", "b", "c")) == expected
