"""system=chat: litellm against a server on this machine; what is sent, and how answers and failures are read."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import pytest
from adapters_helpers import TASK, config, services
from conftest import SHARED
from fakes.model_server import Behaviour, ModelServer, error

from adapters._completion import outcome
from adapters.chat import Chat, chat
from core.errors import CallError, InputError

KEY = "the-secret-of-the-chat"


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer([Behaviour(text="Two rivers: see https://rivers.example/1.")]) as running:
        yield running


def system(server: ModelServer, *, effort: str | None = None, **changes: Any) -> Chat:
    """A system that asks the server; its script is what the test says it is."""
    made = chat(
        config("chat", **{"model": "openai/my-model", "base_url": server.base_url, "timeout_s": 20, **changes}),
        services(effort),
    )
    assert made.check() == []
    return made


def replies(server: ModelServer, message: Any = None, *, finish: str = "stop", **top: Any) -> None:
    """Let the server answer with this message."""
    body = {
        "id": "x",
        "object": "chat.completion",
        "created": 1,
        "model": "my-model-2030-01-01",
        "choices": [
            {
                "index": 0,
                "finish_reason": finish,
                "message": {"role": "assistant", "content": "x", **(message or {})},
            }
        ],
        "usage": {"prompt_tokens": 60, "completion_tokens": 420, "total_tokens": 480},
        **top,
    }
    server.script = [Behaviour("reply", body=body)]


async def test_an_answer(server: ModelServer) -> None:
    made = system(server, effort="low", effort_settings={"reasoning_effort": "low"})
    row = await made.solve(TASK, 2)
    assert (row.task_id, row.attempt, row.status) == ("t1", 2, "completed")
    assert row.text == "Two rivers: see https://rivers.example/1."
    assert [cited.url for cited in row.citations] == ["https://rivers.example/1"]
    assert (row.system, row.effort) == ("chat", "low")
    assert row.settings == {**made.settings, "echoed": {"model": "my-model"}}
    assert row.usage is not None
    assert (row.usage.input, row.usage.output) == (1500, 40)
    assert (row.cost_usd, row.cost_source) == (None, "unknown")
    assert row.latency_s is not None
    assert made.can_block is False


async def test_the_prompt_is_all_that_is_sent(server: ModelServer) -> None:
    """No system prompt, no parameter that the config leaves to the provider, no word on blocked sites."""
    await system(server).solve(TASK, 1)
    (sent,) = server.questions()
    assert sent == {"model": "my-model", "messages": [{"role": "user", "content": TASK.prompt}]}


async def test_what_the_config_sets_is_sent(server: ModelServer) -> None:
    made = system(
        server,
        system_prompt="Be brief.",
        max_output_tokens=900,
        temperature=0.5,
        web_search=True,
        params={"seed": 7, "temperature": None},
        effort_settings={"reasoning_effort": "high", "max_output_tokens": 9000},
    )
    await made.solve(TASK, 1)
    (sent,) = server.questions()
    assert sent["messages"][0] == {"role": "system", "content": "Be brief."}
    assert sent["reasoning_effort"] == "high"
    assert sent["seed"] == 7
    assert sent["web_search_options"] == {}
    assert 9000 in (sent.get("max_tokens"), sent.get("max_completion_tokens"))
    assert "temperature" not in sent
    assert made.settings["web_search"] is True
    assert made.settings["max_tokens"] == 9000


async def test_an_effort_without_a_mapping_is_handed_on(server: ModelServer) -> None:
    await system(server, effort="xhigh", efforts=None).solve(TASK, 1)
    (sent,) = server.questions()
    assert sent["reasoning_effort"] == "xhigh"


async def test_the_key_comes_from_its_variable(server: ModelServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", KEY)
    await system(server, api_key_env="MY_KEY").solve(TASK, 1)
    assert server.headers[0]["authorization"] == f"Bearer {KEY}"
    assert KEY not in json.dumps(dict(system(server, api_key_env="MY_KEY").settings))


ANSWERS: dict[str, tuple[dict[str, Any], str, str | None, str | None]] = {
    "whole": ({"message": {"content": "x"}}, "completed", "x", None),
    "cut": ({"message": {"content": "half"}, "finish": "length"}, "incomplete", "half", "truncated"),
    "cut before the first word": ({"message": {"content": ""}, "finish": "length"}, "empty", None, "truncated"),
    "no text": ({"message": {"content": None}}, "empty", None, None),
    "blanks": ({"message": {"content": " \n"}}, "empty", " \n", None),
    "filtered": ({"message": {"content": ""}, "finish": "content_filter"}, "refused", None, "refused"),
    "a refusal": ({"message": {"content": None, "refusal": "I will not."}}, "refused", None, "refused"),
    "half a surrogate pair": ({"message": {"content": "a\ud800b"}}, "completed", "a\ufffdb", None),
}


@pytest.mark.parametrize(("reply", "status", "text", "kind"), ANSWERS.values(), ids=ANSWERS)
async def test_how_an_answer_is_read(
    reply: dict[str, Any], status: str, text: str | None, kind: str | None, server: ModelServer
) -> None:
    replies(server, **reply)
    row = await system(server).solve(TASK, 1)
    assert (row.status, row.text) == (status, text)
    assert (row.error.kind if row.error else None) == kind
    assert row.settings["echoed"] == {"model": "my-model-2030-01-01"}
    row.model_dump_json().encode()


@pytest.mark.parametrize(
    ("name", "status", "urls"),
    [("01_chat", "completed", 1), ("02_chat_citations_list", "incomplete", 4)],
    ids=["annotations", "top-level lists"],
)
async def test_recorded_answers_keep_their_sources(name: str, status: str, urls: int, server: ModelServer) -> None:
    """Through litellm, which rebuilds the answer and must not lose them."""
    path = SHARED / "data" / "providers" / "openai_compat" / f"{name}.json"
    if not path.exists():
        pytest.skip("the recorded answers are not part of the repository")
    server.script = [Behaviour("reply", body=json.loads(path.read_text())["response"]["json"])]
    row = await system(server).solve(TASK, 1)
    assert (row.status, len(row.citations)) == (status, urls)
    assert row.citations[0].title == "Members - Lakeshore Grid Association"
    assert (row.citations[0].excerpt or "").startswith("The association has three members")


async def test_sources_survive_litellm(server: ModelServer) -> None:
    replies(server, citations=["https://a.example"], search_results=[{"url": "https://a.example", "title": "A"}])
    row = await system(server).solve(TASK, 1)
    assert [(cited.url, cited.title) for cited in row.citations] == [("https://a.example", "A")]


COSTS: dict[str, tuple[dict[str, Any], dict[str, Any], float | None, str]] = {
    "reported": ({"cost": 0.0012}, {"price": {"input": 1, "output": 1}}, 0.0012, "reported"),
    "computed": ({}, {"price": {"input": 10, "output": 100}}, 0.0006 + 0.042, "computed"),
    "unknown": ({}, {}, None, "unknown"),
}


@pytest.mark.parametrize(("usage", "changes", "usd", "source"), COSTS.values(), ids=COSTS)
async def test_what_it_cost(
    usage: dict[str, Any], changes: dict[str, Any], usd: float | None, source: str, server: ModelServer
) -> None:
    replies(server, usage={"prompt_tokens": 60, "completion_tokens": 420, "total_tokens": 480, **usage})
    row = await system(server, **changes).solve(TASK, 1)
    assert row.cost_source == source
    assert row.cost_usd == pytest.approx(usd)


FAILURES = {
    "a wrong key": (error(401, "Bad key", code="invalid_api_key"), "key"),
    "no credit": (error(429, "You exceeded your current quota", code="insufficient_quota"), "quota"),
    "too fast": (error(429, "Slow down", code="rate_limit_exceeded", retry_after="3"), "rate_limit"),
    "an unknown parameter": (error(400, "Unknown parameter: seed", code="unknown_parameter"), "bad_request"),
    "an unknown model": (error(404, "no such model", code="model_not_found"), "not_found"),
    "a broken server": (error(500, "Oops"), "server"),
    "hung up": (Behaviour("hang_up"), "hung_up"),
    "broken off": (Behaviour("half"), "cut"),
}


@pytest.mark.parametrize(("behaviour", "kind"), FAILURES.values(), ids=FAILURES)
async def test_failures_have_the_tables_kinds(behaviour: Behaviour, kind: str, server: ModelServer) -> None:
    """Each once: neither litellm nor the vendor's client tries again on its own."""
    server.script = [behaviour]
    with pytest.raises(CallError) as caught:
        await system(server).solve(TASK, 1)
    assert caught.value.kind == kind
    assert server.requests == 1
    if kind == "rate_limit":
        assert caught.value.retry_after_s == 3


async def test_a_key_that_the_server_repeats_is_not_shown(
    server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_KEY", KEY)
    server.script = [error(401, f"the key {KEY} is wrong")]
    with pytest.raises(CallError) as caught:
        await system(server, api_key_env="MY_KEY").solve(TASK, 1)
    assert KEY not in str(caught.value)
    assert "[redacted]" in str(caught.value)


async def test_the_deadline(server: ModelServer) -> None:
    server.script = [Behaviour("never")]
    row = await system(server, timeout_s=0.3).solve(TASK, 1)
    assert (row.status, row.text) == ("timed_out", None)
    assert row.error is not None
    assert row.error.message == "no answer within 0.3 s (system.timeout_s)"


async def test_a_cancelled_call_ends(server: ModelServer) -> None:
    server.script = [Behaviour("never")]
    solving = asyncio.create_task(system(server).solve(TASK, 1))
    async with asyncio.timeout(20):
        while not server.requests:  # noqa: ASYNC110 (the server runs in another thread)
            await asyncio.sleep(0.01)
    solving.cancel()
    with pytest.raises(asyncio.CancelledError):
        await solving


SEARCH = {
    "a model that searches": ("perplexity/sonar-pro", "auto", True),
    "a model that litellm asks otherwise": ("gpt-5.2", "auto", False),
    "a model that litellm does not know": ("openai/my-model", "auto", False),
    "asked for": ("openai/my-model", True, True),
    "not wanted": ("perplexity/sonar-pro", False, False),
}


@pytest.mark.parametrize(("model", "asked", "searches"), SEARCH.values(), ids=SEARCH)
def test_whether_it_searches(model: str, asked: Any, searches: bool) -> None:
    settings = chat(config("chat", model=model, web_search=asked), services()).settings
    assert settings["web_search"] is searches
    assert ("web_search_options" in settings) is searches


MISSING: dict[str, tuple[dict[str, Any], list[str]]] = {
    "its variable": (
        {"model": "openai/m", "api_key_env": "NOT_SET_ANYWHERE"},
        ["system.api_key_env: the environment variable NOT_SET_ANYWHERE is not set"],
    ),
    "the provider's variable": (
        {"model": "anthropic/claude-sonnet-5-5"},
        [
            (
                "system.model: no key for anthropic/claude-sonnet-5-5: set ANTHROPIC_API_KEY, "
                "or name another variable in system.api_key_env"
            )
        ],
    ),
    "the provider": (
        {"model": "my-model", "base_url": "http://127.0.0.1:1/v1"},
        [
            (
                "system.model: litellm knows no provider of 'my-model'; write provider/model, "
                "openai/… for a server of yours"
            )
        ],
    ),
    "nothing": ({"model": "openai/m", "base_url": "http://127.0.0.1:1/v1"}, []),
}


@pytest.mark.parametrize(("changes", "problems"), MISSING.values(), ids=MISSING)
def test_what_the_preflight_lists(changes: dict[str, Any], problems: list[str]) -> None:
    assert chat(config("chat", **changes), services()).check() == problems


BAD_CONFIG = {
    "no model": ({"model": None}, r"system\.model.*provider/model.*got null"),
    "a list for a model": ({"model": ["a", "b"]}, r"system\.model"),
    "search maybe": ({"web_search": "maybe"}, r"system\.web_search.*one of auto, true, false.*'maybe'"),
    "search 1": ({"web_search": 1}, r"system\.web_search.*one of auto, true, false"),
    "no room": ({"max_output_tokens": 0}, r"system\.max_output_tokens.*at least 1"),
    "a negative temperature": ({"temperature": -1}, r"system\.temperature"),
    "params a list": ({"params": [1]}, r"system\.params.*a mapping"),
    "no time": ({"timeout_s": None}, r"system\.timeout_s"),
    "half a price": ({"price": {"input": 1}}, r"system\.price\.output"),
    "a misspelt effort": ({"effort_settings": {"reasoning_efort": "x"}}, "did you mean 'reasoning_effort'"),
}


@pytest.mark.parametrize(("changes", "message"), BAD_CONFIG.values(), ids=BAD_CONFIG)
def test_a_bad_config_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        chat(config("chat", **{"model": "openai/m", **changes}), services())


def test_the_shipped_efforts() -> None:
    shipped = config("chat")
    assert {word: list(knobs) for word, knobs in shipped["efforts"].items()} == {
        "low": ["reasoning_effort"],
        "medium": ["reasoning_effort"],
        "high": ["reasoning_effort"],
    }
    assert shipped["default_effort"] is None


@pytest.mark.parametrize(
    ("finish", "refusal", "status"),
    [
        ("stop", None, "completed"),
        ("", None, "completed"),
        ("tool_calls", None, "completed"),
        ("length", None, "incomplete"),
        ("max_tokens", None, "incomplete"),
        ("content_filter", None, "refused"),
        ("safety", None, "refused"),
        ("stop", "no", "refused"),
        ("stop", "  ", "completed"),
        ("length", "no", "refused"),
    ],
)
def test_outcomes(finish: str, refusal: str | None, status: str) -> None:
    assert outcome(finish, refusal)[0] == status


async def test_closing_does_no_harm_to_later_calls(server: ModelServer) -> None:
    made = system(server)
    await made.solve(TASK, 1)
    await made.aclose()
    await made.aclose()
    assert (await made.solve(TASK, 1)).status == "completed"
