"""The judge that speaks chat completions, over real HTTP on loopback."""

from __future__ import annotations

import json
from typing import Any

import pytest
from fakes.judging import SCHEMA, open_services, question, services
from fakes.model_server import Behaviour, ModelServer, Script, error
from fakes.sockets import free_port

from core.errors import CallError, InputError
from core.judge.openai_compatible import OPENAI, OpenAICompatibleJudge
from core.judge.question import Answer
from core.model import Usage

KEY = "sk-test-0123456789abcdef"


def config(base_url: str | None, **changes: Any) -> dict[str, Any]:
    base = {"name": "fake", "provider": "openai_compatible", "model": "m-1", "base_url": base_url, "timeout_s": 20}
    return {**base, **changes}


async def asked(script: Script | None = None, *asks: str, environ: Any = None, **changes: Any) -> Any:
    """Ask a fresh server; gives the answers and the server."""
    with ModelServer(script) as server:
        async with open_services(environ) as given:
            judge = OpenAICompatibleJudge(config(server.base_url, **changes), given)
            answers: list[Answer] = [await judge.ask(question(ask)) for ask in asks or ("Is it?",)]
    return answers, server


async def failure(behaviour: Behaviour, **changes: Any) -> CallError:
    with pytest.raises(CallError) as caught:
        await asked([behaviour], **changes)
    return caught.value


async def test_an_answer() -> None:
    (answer,), _ = await asked([Behaviour(text='{"explanation": "Yes.", "verdict": "MET"}')])
    assert answer.value == {"explanation": "Yes.", "verdict": "MET"}
    assert (answer.judge, answer.model, answer.finish_reason, answer.calls) == ("fake", "m-1", "stop", 1)
    assert answer.raw == '{"explanation": "Yes.", "verdict": "MET"}'
    assert answer.usage == Usage(input=1500, output=40)
    assert (answer.cost_usd, answer.cost_source) == (None, "unknown")
    assert answer.latency_s > 0
    assert answer.asked_at.endswith("+00:00")


async def test_what_is_sent_by_default() -> None:
    _, server = await asked(None, "Is it?")
    (body,) = server.questions()
    assert body == {
        "model": "m-1",
        "messages": [
            {"role": "system", "content": "You are a judge."},
            {"role": "user", "content": "<report>The sky is blue.</report>\n\nIs it?"},
        ],
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "verdict", "strict": True, "schema": SCHEMA},
        },
    }
    assert "authorization" not in server.headers[0]
    assert server.headers[0]["content-type"] == "application/json"


@pytest.mark.parametrize(
    ("changes", "parts"),
    [
        pytest.param({"effort": "low"}, {"reasoning_effort": "low"}, id="effort"),
        pytest.param({"temperature": 0}, {"temperature": 0}, id="temperature"),
        pytest.param({"max_output_tokens": 99}, {"max_tokens": 99}, id="limit"),
        pytest.param({"params": {"top_p": 0.5, "x": {"y": [1]}}}, {"top_p": 0.5, "x": {"y": [1]}}, id="params"),
        pytest.param(
            {"effort": "low", "params": {"reasoning_effort": "high"}}, {"reasoning_effort": "high"}, id="wins"
        ),
        pytest.param(
            {"max_output_tokens": 99, "params": {"max_tokens": None, "max_completion_tokens": 7}},
            {"max_tokens": None, "max_completion_tokens": 7},
            id="null takes out",
        ),
    ],
)
async def test_settings_reach_the_wire(changes: dict[str, Any], parts: dict[str, Any]) -> None:
    _, server = await asked(None, **changes)
    (body,) = server.questions()
    assert {name: body.get(name) for name in parts} == parts


async def test_without_a_schema_the_model_is_told() -> None:
    (answer,), server = await asked(
        [Behaviour(text='Well: {"explanation": "", "verdict": "UNMET"}')], structured=False
    )
    (body,) = server.questions()
    assert answer.value["verdict"] == "UNMET"
    assert "response_format" not in body
    system = body["messages"][0]["content"]
    assert system.startswith("You are a judge.")
    assert system.index('"explanation"') < system.index('"verdict"')


async def test_the_same_question_gives_the_same_bytes() -> None:
    _, server = await asked(None, "One?", "Two?", "One?")
    assert server.bodies[0] == server.bodies[2] != server.bodies[1]
    prefix = server.bodies[0].index(b"One?")
    assert server.bodies[0][:prefix] == server.bodies[1][:prefix]


@pytest.mark.parametrize(
    "text",
    ['quote " and \\ and \n', "é 😀 中", "\x00\x1f\u2028", "half a pair: \ud800", '"}], "model": "other"'],
    ids=["escapes", "Unicode", "control", "surrogate", "injection"],
)
async def test_any_text_arrives_as_it_is(text: str) -> None:
    with ModelServer() as server:
        async with open_services() as given:
            judge = OpenAICompatibleJudge(config(server.base_url), given)
            await judge.ask(question(text, system=text, context=text))
    (body,) = server.questions()
    clean = text.replace("\ud800", "\ufffd")
    assert body["model"] == "m-1"
    assert [message["content"] for message in body["messages"]] == [clean, f"{clean}\n\n{clean}"]


async def test_the_key_is_sent_and_never_shown() -> None:
    _, server = await asked(None, environ={"K": KEY}, api_key_env="K")
    assert server.headers[0]["authorization"] == f"Bearer {KEY}"
    refused = await failure(error(401, f"Incorrect API key: {KEY}"), environ={"K": KEY}, api_key_env="K")
    assert refused.kind == "key"
    assert KEY not in f"{refused} {refused.raw}"


@pytest.mark.parametrize(
    ("behaviour", "kind"),
    [
        pytest.param(Behaviour("malformed"), "malformed", id="prose"),
        pytest.param(Behaviour("truncated"), "truncated", id="truncated"),
        pytest.param(Behaviour("empty"), "empty", id="empty"),
        pytest.param(Behaviour("refusal"), "refused", id="refusal"),
        pytest.param(Behaviour("filtered"), "refused", id="filtered"),
        pytest.param(
            Behaviour(text='{"explanation": "a", "verdict": "MET", "verdict": "UNMET"}'),
            "malformed",
            id="a field twice",
        ),
        pytest.param(Behaviour(text='{"explanation": "a", "verdict": "SO-SO"}'), "malformed", id="not in enum"),
    ],
)
async def test_answers_that_are_none_are_billed_all_the_same(behaviour: Behaviour, kind: str) -> None:
    found = await failure(behaviour, price={"input": 2, "output": 10})
    assert found.kind == kind
    assert found.usage == Usage(input=1500, output=40)
    assert found.cost_usd == pytest.approx((1500 * 2 + 40 * 10) / 1e6)
    assert found.model == "m-1"
    assert found.raw is not None


@pytest.mark.parametrize(
    ("behaviour", "kind", "retry_after_s"),
    [
        pytest.param(error(429, retry_after="3"), "rate_limit", 3, id="429"),
        pytest.param(error(429, "x", code="insufficient_quota"), "quota", None, id="quota"),
        pytest.param(error(402), "quota", None, id="402"),
        pytest.param(error(401), "key", None, id="401"),
        pytest.param(error(400), "bad_request", None, id="400"),
        pytest.param(error(404), "not_found", None, id="404"),
        pytest.param(error(500), "server", None, id="500"),
        pytest.param(error(529), "overloaded", None, id="529"),
        pytest.param(Behaviour("html"), "server", None, id="a page"),
        pytest.param(Behaviour("hang_up"), "hung_up", None, id="hangs up"),
        pytest.param(Behaviour("half"), "cut", None, id="half"),
        pytest.param(Behaviour("error_in_200"), "rate_limit", None, id="an error in a 200"),
        pytest.param(Behaviour("reply", body="<html>hello</html>"), "malformed", None, id="a page with 200"),
        pytest.param(Behaviour("reply", body=[]), "malformed", None, id="a list"),
        pytest.param(Behaviour("reply", body={}), "malformed", None, id="an empty object"),
        pytest.param(Behaviour("reply", body={"choices": []}), "malformed", None, id="no choice"),
        pytest.param(Behaviour("reply", body={"choices": [3]}), "malformed", None, id="a choice that is none"),
        pytest.param(Behaviour("reply", body={"choices": [{"message": None}]}), "empty", None, id="no message"),
        pytest.param(
            Behaviour("reply", status=307, headers={"location": "http://x/"}, body={}),
            "redirect",
            None,
            id="redirect",
        ),
    ],
)
async def test_failures(behaviour: Behaviour, kind: str, retry_after_s: float | None) -> None:
    found = await failure(behaviour)
    assert (found.kind, found.retry_after_s) == (kind, retry_after_s)


async def test_a_deadline() -> None:
    assert (await failure(Behaviour("never"), timeout_s=0.2)).kind == "timeout"


async def test_a_server_that_is_not_there() -> None:
    async with open_services() as given:
        judge = OpenAICompatibleJudge(config(f"http://127.0.0.1:{free_port()}/v1"), given)
        with pytest.raises(CallError) as caught:
            await judge.ask(question())
    assert caught.value.kind == "connect"


def reply_with(usage: Any, content: Any = '{"explanation": "", "verdict": "MET"}') -> Behaviour:
    choice = {"finish_reason": "stop", "message": {"role": "assistant", "content": content}}
    return Behaviour("reply", body={"model": "m-2", "choices": [choice], "usage": usage})


PRICE = {"input": 1.0, "cached_input": 0.1, "output": 10.0}


@pytest.mark.parametrize(
    ("usage", "price", "cost", "source"),
    [
        pytest.param(
            {"prompt_tokens": 10, "completion_tokens": 1, "cost": 0.5}, PRICE, 0.5, "reported", id="reported"
        ),
        pytest.param({"cost": {"total_cost": 0.25}}, None, 0.25, "reported", id="reported in parts"),
        pytest.param({"prompt_tokens": 1000, "completion_tokens": 100}, PRICE, 0.002, "computed", id="computed"),
        pytest.param(
            {
                "prompt_tokens": 1000,
                "completion_tokens": 100,
                "prompt_tokens_details": {"cached_tokens": 900},
                "completion_tokens_details": {"reasoning_tokens": 60},
            },
            PRICE,
            0.00119,
            "computed",
            id="cached",
        ),
        pytest.param({"prompt_tokens": 1000, "completion_tokens": 100}, None, None, "unknown", id="no price"),
        pytest.param({"prompt_tokens": 1000}, PRICE, None, "unknown", id="no output tokens"),
        pytest.param(None, PRICE, None, "unknown", id="no usage"),
        pytest.param("many", PRICE, None, "unknown", id="usage is a word"),
        pytest.param(
            {"prompt_tokens": -1, "completion_tokens": True, "cost": "x"}, PRICE, None, "unknown", id="nonsense"
        ),
        pytest.param(
            {"prompt_tokens": 1000, "completion_tokens": 100, "cost": -1}, PRICE, 0.002, "computed", id="negative"
        ),
    ],
)
async def test_cost(usage: Any, price: Any, cost: float | None, source: str) -> None:
    (answer,), _ = await asked([reply_with(usage)], price=price)
    assert answer.cost_usd == (cost if cost is None else pytest.approx(cost))
    assert answer.cost_source == source
    assert answer.model == "m-2"


async def test_content_in_parts() -> None:
    parts = [{"type": "text", "text": '{"explanation": "", '}, {"type": "text", "text": '"verdict": "MET"}'}]
    (answer,), _ = await asked([reply_with(None, parts)])
    assert answer.value["verdict"] == "MET"


@pytest.mark.parametrize(
    ("changes", "names"),
    [
        pytest.param({"base_url": None}, "judge.base_url", id="no address and no key"),
        pytest.param({"base_url": "127.0.0.1:80"}, "judge.base_url", id="no scheme"),
        pytest.param({"model": None}, "judge.model", id="no model"),
        pytest.param({"modle": "x"}, "did you mean judge.model", id="misspelt"),
        pytest.param({"temperature": "warm"}, "judge.temperature", id="not a number"),
        pytest.param({"timeout_s": 0}, "judge.timeout_s", id="no time"),
        pytest.param({"max_output_tokens": 0}, "judge.max_output_tokens", id="no room"),
        pytest.param({"structured": "perhaps"}, "judge.structured", id="not a yes or no"),
        pytest.param({"params": [1]}, "judge.params", id="params is a list"),
        pytest.param({"params": {"model": "x"}}, "judge.params.model", id="params replaces the model"),
        pytest.param({"retry": {"attempts": 0}}, "judge.retry.attempts", id="no attempt"),
        pytest.param({"price": {"input": 1}}, "judge.price.output", id="half a price"),
        pytest.param({"price": {"input": 1, "output": -1}}, "judge.price.output", id="a negative price"),
        pytest.param({"price": {"input": 1, "output": 1, "out": 1}}, "judge.price", id="an unknown price"),
    ],
)
def test_a_config_that_is_refused(changes: dict[str, Any], names: str) -> None:
    with pytest.raises(InputError) as caught:
        OpenAICompatibleJudge({**config("http://127.0.0.1:1/v1"), **changes}, services())
    assert names in str(caught.value)


@pytest.mark.parametrize(
    ("base_url", "limit", "host"),
    [
        pytest.param(None, "max_completion_tokens", "api.openai.com", id="OpenAI by default"),
        pytest.param(OPENAI, "max_completion_tokens", "api.openai.com", id="OpenAI"),
        pytest.param("https://api.example.org/v1/", "max_tokens", "api.example.org", id="another"),
    ],
)
def test_the_name_of_the_limit(base_url: str | None, limit: str, host: str) -> None:
    judge = OpenAICompatibleJudge(config(base_url, api_key_env="K", max_output_tokens=9), services({"K": KEY}))
    assert json.loads(judge.body(question()))[limit] == 9
    assert judge.account.startswith(host)


def test_what_is_missing_is_told_before_the_start() -> None:
    judge = OpenAICompatibleJudge(config("http://127.0.0.1:1/v1", api_key_env="NO_SUCH_KEY"), services())
    assert judge.check() == ["judge fake: the environment variable NO_SUCH_KEY is not set"]
    assert OpenAICompatibleJudge(config("http://127.0.0.1:1/v1"), services()).check() == []


@pytest.mark.parametrize(
    ("change", "same"),
    [
        pytest.param({"effort": "high"}, False, id="effort"),
        pytest.param({"temperature": 0.5}, False, id="temperature"),
        pytest.param({"model": "m-2"}, False, id="model"),
        pytest.param({"structured": False}, False, id="structured"),
        pytest.param({"max_output_tokens": 5}, False, id="limit"),
        pytest.param({"params": {"seed": 1}}, False, id="params"),
        pytest.param({"timeout_s": 5}, True, id="deadline"),
        pytest.param({"max_in_flight": 5}, True, id="pace"),
        pytest.param({"price": PRICE}, True, id="price"),
        pytest.param({"name": "other"}, True, id="name"),
        pytest.param({"base_url": "http://127.0.0.1:2/v1"}, False, id="address"),
    ],
)
def test_settings_hold_what_shapes_an_answer(change: dict[str, Any], same: bool) -> None:
    one = OpenAICompatibleJudge(config("http://127.0.0.1:1/v1"), services())
    other = OpenAICompatibleJudge(config("http://127.0.0.1:1/v1") | change, services())
    assert (one.settings == other.settings) is same


def test_an_estimate_needs_a_price() -> None:
    plain = OpenAICompatibleJudge(config("http://127.0.0.1:1/v1"), services())
    priced = OpenAICompatibleJudge(config("http://127.0.0.1:1/v1", price=PRICE), services())
    assert plain.estimate_usd(question()) is None
    longer = priced.estimate_usd(question(context="word " * 10_000))
    assert longer is not None
    assert longer > (priced.estimate_usd(question()) or 0) > 0
