"""`core.check`: what a system or a judge would use, what is missing, and what it says when it is asked."""

from __future__ import annotations

import pytest
from fakes.exa_server import ExaServer
from fakes.model_server import ModelServer

from core.check import main

KEY = "exa-key-51c2f0"
SWIFT = ("system.poll.first_s=0.01", "system.poll.longest_s=0.02")


@pytest.fixture
def key(monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("EXA_API_KEY", KEY)
    return KEY


def test_nothing_is_sent_unless_asked(capsys: pytest.CaptureFixture[str], key: str) -> None:
    with ExaServer(key=key) as exa:
        code = main(["system=exa", "effort=high", f"system.base_url={exa.base_url}"])
    said = capsys.readouterr().out
    assert (code, exa.creates) == (0, 0)
    for words in ("EXA_API_KEY, set", "0.5000 $", "blocks sites", "nothing was sent", exa.base_url):
        assert words in said
    assert key not in said


def test_what_is_missing_is_named(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("EXA_API_KEY", raising=False)
    assert main(["system=exa", "send=true"]) == 2
    assert "missing: system exa: the environment variable EXA_API_KEY is not set" in capsys.readouterr().out


@pytest.mark.parametrize("value", ["ab\ncdefgh", "schlüssel-9"])
def test_a_key_that_no_header_carries_is_named_and_not_shown(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    monkeypatch.setenv("EXA_API_KEY", value)
    assert main(["system=exa"]) == 2
    said = "".join(capsys.readouterr())
    assert "holds a line break or a letter that no key has" in said
    assert value not in said


def test_the_cheapest_effort_is_asked(capsys: pytest.CaptureFixture[str], key: str) -> None:
    with ExaServer(key=key) as exa:
        code = main(["system=exa", f"system.base_url={exa.base_url}", *SWIFT, "send=true"])
    said = capsys.readouterr().out
    assert code == 0
    assert [run["request"]["effort"] for run in exa.runs.values()] == ["minimal"]
    for words in ("status", "completed", "A report on", "0.0250 $ (reported)"):
        assert words in said


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["system=exa", "effort=xhigh", "send=true", "max_usd=0.5"], "more than max_usd=0.5"),
        (["system=exa", "send=perhaps"], "send: not usable"),
        (["system=exa", "send=true", "max_usd=much"], "max_usd: not usable"),
        (["send=true"], "what is to be checked?"),
        (["system=exxa"], "exxa"),
    ],
)
def test_refusals(capsys: pytest.CaptureFixture[str], key: str, words: list[str], said: str) -> None:
    assert main(words) == 2
    assert said in capsys.readouterr().err


def test_a_system_that_does_not_answer(capsys: pytest.CaptureFixture[str], key: str) -> None:
    with ExaServer(key="another") as exa:
        code = main(["system=exa", f"system.base_url={exa.base_url}", *SWIFT, "send=true"])
    said = capsys.readouterr().out
    assert code == 3
    assert "exa: the server answered 401: Invalid API key (request req_1)" in said


def test_a_judge_is_asked_too(capsys: pytest.CaptureFixture[str]) -> None:
    with ModelServer() as model:
        words = ["judge=openai_compatible", f"judge.base_url={model.base_url}", "judge.model=fake", "send=true"]
        code = main(words)
    said = capsys.readouterr().out
    assert (code, model.requests) == (0, 1)
    assert "met" in said
