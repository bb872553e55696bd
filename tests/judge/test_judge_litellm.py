"""The judge behind litellm: real HTTP on loopback through litellm's own client."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest
from fakes.judging import open_services, question, services
from fakes.model_server import Behaviour, ModelServer, Script, error
from fakes.sockets import free_port

from core.errors import CallError, InputError
from core.judge import via_litellm
from core.judge.question import Answer
from core.judge.via_litellm import LitellmJudge, mapped, price_of, retirement
from core.model import Usage

KEY = "sk-test-0123456789abcdef"
KNOWN = "openai/gpt-5.4"
UNKNOWN = "openai/a-model-of-ours"
EXAMPLE = "provider/model, such as openai/gpt-5.4"
GOOD = Behaviour(text='{"explanation": "Yes.", "verdict": "MET"}')


def config(**changes: Any) -> dict[str, Any]:
    return {"name": "fake", "provider": "litellm", "model": KNOWN, "api_key_env": "K", "timeout_s": 20, **changes}


async def asked(script: Script | None = None, **changes: Any) -> tuple[Answer, ModelServer]:
    with ModelServer(script) as server:
        async with open_services({"K": KEY}) as given:
            judge = LitellmJudge(config(base_url=server.base_url, **changes), given)
            try:
                answer = await judge.ask(question())
            finally:
                await judge.aclose()
    return answer, server


async def failure(behaviour: Behaviour, **changes: Any) -> CallError:
    with pytest.raises(CallError) as caught:
        await asked([behaviour], **changes)
    return caught.value


async def test_an_answer_and_what_was_sent() -> None:
    answer, server = await asked([GOOD], max_output_tokens=999, effort="low")
    assert answer.value == {"explanation": "Yes.", "verdict": "MET"}
    assert (answer.judge, answer.model, answer.finish_reason) == ("fake", "gpt-5.4", "stop")
    assert answer.usage == Usage(input=1500, output=40)
    assert answer.cost_usd == pytest.approx(1500 * 2.5e-6 + 40 * 15e-6)
    assert answer.cost_source == "computed"
    (body,) = server.questions()
    assert body["messages"][1]["content"] == question().user_text
    assert body["response_format"]["json_schema"]["strict"] is True
    assert body["reasoning_effort"] == "low"
    assert 999 in (body.get("max_tokens"), body.get("max_completion_tokens"))
    assert server.headers[0]["authorization"] == f"Bearer {KEY}"


async def test_an_unknown_model_has_an_unknown_price_and_is_told_the_schema() -> None:
    answer, server = await asked([GOOD], model=UNKNOWN)
    assert (answer.cost_usd, answer.cost_source) == (None, "unknown")
    (body,) = server.questions()
    assert "response_format" not in body
    assert "JSON Schema" in body["messages"][0]["content"]


@pytest.mark.parametrize(
    ("behaviour", "changes", "cost", "source"),
    [
        pytest.param(Behaviour(text=GOOD.text, cost=0.5), {}, 0.5, "reported", id="reported"),
        pytest.param(
            GOOD, {"model": UNKNOWN, "price": {"input": 1, "output": 10}}, 0.0019, "computed", id="price of ours"
        ),
    ],
)
async def test_cost(behaviour: Behaviour, changes: dict[str, Any], cost: float, source: str) -> None:
    answer, _ = await asked([behaviour], **changes)
    assert answer.cost_usd == pytest.approx(cost)
    assert answer.cost_source == source


@pytest.mark.parametrize(
    ("behaviour", "kind", "retry_after_s"),
    [
        pytest.param(error(429, "slow down", retry_after="3"), "rate_limit", 3, id="429"),
        pytest.param(error(429, "x", code="insufficient_quota"), "quota", None, id="quota"),
        pytest.param(error(402), "quota", None, id="402"),
        pytest.param(error(401, f"Incorrect API key {KEY}"), "key", None, id="401"),
        pytest.param(error(400), "bad_request", None, id="400"),
        pytest.param(error(400, "x", code="context_length_exceeded"), "too_large", None, id="too long"),
        pytest.param(error(404), "not_found", None, id="404"),
        pytest.param(error(500), "server", None, id="500"),
        pytest.param(error(503, "overloaded"), "overloaded", None, id="503"),
        pytest.param(error(529), "overloaded", None, id="529"),
        pytest.param(Behaviour("html"), "server", None, id="a page"),
        pytest.param(Behaviour("hang_up"), "hung_up", None, id="hangs up"),
        pytest.param(Behaviour("half"), "cut", None, id="half"),
        pytest.param(Behaviour("error_in_200"), "rate_limit", None, id="an error in a 200"),
        pytest.param(Behaviour("truncated"), "truncated", None, id="truncated"),
        pytest.param(Behaviour("empty"), "empty", None, id="empty"),
        pytest.param(Behaviour("refusal"), "refused", None, id="refusal"),
        pytest.param(Behaviour("malformed"), "malformed", None, id="prose"),
    ],
)
async def test_failures_are_called_what_they_are_and_not_retried(
    behaviour: Behaviour, kind: str, retry_after_s: float | None
) -> None:
    with ModelServer([behaviour]) as server:
        async with open_services({"K": KEY}) as given:
            judge = LitellmJudge(config(base_url=server.base_url), given)
            with pytest.raises(CallError) as caught:
                await judge.ask(question())
            await judge.aclose()
    found = caught.value
    assert (found.kind, found.retry_after_s, server.requests) == (kind, retry_after_s, 1)
    assert KEY not in str(found)
    if found.meaning.billed == "yes":
        assert found.usage == Usage(input=1500, output=40)
        assert found.cost_usd is not None


async def test_a_deadline() -> None:
    assert (await failure(Behaviour("never"), timeout_s=0.3)).kind == "timeout"


@pytest.mark.parametrize(
    ("base_url", "kind"),
    [
        pytest.param(f"http://127.0.0.1:{free_port()}/v1", "connect", id="refused"),
        pytest.param("http://nosuch.invalid/v1", "name", id="unknown name"),
    ],
)
async def test_servers_that_are_not_there(base_url: str, kind: str) -> None:
    async with open_services({"K": KEY}) as given:
        judge = LitellmJudge(config(base_url=base_url), given)
        with pytest.raises(CallError) as caught:
            await judge.ask(question())
        await judge.aclose()
    assert caught.value.kind == kind


async def test_an_unsupported_parameter_is_refused_and_not_dropped() -> None:
    found = await failure(GOOD, effort="high", temperature=0.7)
    assert found.kind == "bad_request"


def test_what_nobody_knows_is_a_crash() -> None:
    assert mapped(KeyError("x"), 0.0).kind == "crash"


@pytest.mark.parametrize(
    ("changes", "missing"),
    [
        pytest.param({}, [], id="nothing"),
        pytest.param(
            {"api_key_env": "NONE"}, ["judge fake: the environment variable NONE is not set"], id="the key"
        ),
        pytest.param(
            {"model": "no-such-model"},
            [f"judge fake: litellm knows no provider of model 'no-such-model'; write {EXAMPLE}"],
            id="the provider",
        ),
    ],
)
def test_what_is_missing_is_told_before_the_start(changes: dict[str, Any], missing: list[str]) -> None:
    assert LitellmJudge(config(**changes), services({"K": KEY})).check() == missing


def test_a_model_is_needed() -> None:
    with pytest.raises(InputError, match=r"judge\.model"):
        LitellmJudge(config(model=None), services())


MODELS = {
    "ours/old": {"deprecation_date": "2026-11-30", "successor_model": "ours/new"},
    "ours/new": {"input_cost_per_token": 1e-06, "output_cost_per_token": 5e-06},
    "bare": {"input_cost_per_token": 1e-06, "output_cost_per_token": 2e-06, "cache_read_input_token_cost": 1e-07},
    "odd": {"deprecation_date": "some day", "input_cost_per_token": "dear"},
}


@pytest.fixture
def models(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(via_litellm.load(), "model_cost", MODELS)


@pytest.mark.usefixtures("models")
@pytest.mark.parametrize(
    ("model", "today", "says"),
    [
        pytest.param("ours/old", date(2026, 9, 30), None, id="61 days before"),
        pytest.param("ours/old", date(2026, 10, 1), "in 60 days", id="60 days before"),
        pytest.param("ours/old", date(2026, 11, 29), "in 1 days", id="the day before"),
        pytest.param("ours/old", date(2026, 11, 30), "is retired since 2026-11-30", id="the day"),
        pytest.param("ours/old", date(2027, 5, 1), "its successor is ours/new", id="later"),
        pytest.param("ours/new", date(2026, 11, 30), None, id="no date"),
        pytest.param("odd", date(2026, 11, 30), None, id="no date to read"),
        pytest.param("unknown", date(2026, 11, 30), None, id="unknown"),
    ],
)
def test_retirement(model: str, today: date, says: str | None) -> None:
    warning = retirement(model, today)
    assert (warning is None) if says is None else (warning is not None and says in warning)


@pytest.mark.usefixtures("models")
def test_prices_of_the_list() -> None:
    new, bare = price_of("ours/new"), price_of("any/bare")
    assert new is not None
    assert [new.input, new.output] == pytest.approx([1, 5])
    assert new.cached_input is None
    assert bare is not None
    assert bare.cached_input == pytest.approx(0.1)
    assert price_of("odd") is None
    assert price_of("unknown") is None


def test_the_default_judges_are_in_litellms_list() -> None:
    for model in ("gpt-5.4", "gemini/gemini-3.1-pro-preview", "dashscope/qwen3.7-max", "claude-sonnet-5-5"):
        assert price_of(model) is not None, model


async def test_claude_is_told_where_its_cache_ends() -> None:
    judge = LitellmJudge(config(model="claude-sonnet-5-5"), services({"K": KEY}))
    content = judge._arguments(question())["messages"][1]["content"]
    assert [part.get("cache_control") for part in content] == [{"type": "ephemeral"}, None]
    assert [part["text"] for part in content] == [question().context, question().ask]
