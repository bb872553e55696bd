"""The parts that come with Leadline keep the contract that third-party parts are held to."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from fakes.model_server import Behaviour, ModelServer, error

from core.testing import benchmark, check_benchmark, check_judge, check_system, judge, sample_tasks, system

ANSWER = json.dumps({"explanation": "so it is", "verdict": "YES"})


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer() as running:
        yield running


@pytest.mark.parametrize("overrides", [(), ("benchmark.strict=true",)], ids=["default", "strict"])
def test_draco(overrides: tuple[str, ...]) -> None:
    check_benchmark(benchmark("draco", *overrides))


def test_replay(tmp_path: Path) -> None:
    path = tmp_path / "submissions.jsonl"
    rows = [
        {"task_id": task.id, "attempt": attempt, "text": f"On {task.id}."}
        for task in sample_tasks()
        for attempt in (1, 2)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    assert len(check_system(system("replay", f"system.path={path}"))) == len(rows)


@pytest.mark.parametrize(
    ("line", "statuses"),
    [
        ('{"text": "An answer."}', {"completed"}),
        ('{"text": " "}', {"empty"}),
        ('{"status": "refused", "error": {"kind": "refused", "message": "no"}}', {"refused"}),
        ("no submission", set()),
        ('{"status": "error", "error": {"kind": "rate_limit", "message": "slow"}}', set()),
    ],
    ids=["answer", "nothing in it", "refused", "garbage", "error"],
)
def test_command(tmp_path: Path, line: str, statuses: set[str]) -> None:
    program = tmp_path / "agent.py"
    program.write_text(f"import sys\nsys.stdin.read()\nprint({line!r})\n", encoding="utf-8")
    found = check_system(system("command", f"system.command={sys.executable} {program}"))
    assert {submission.status for submission in found} == statuses


def test_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "contract_agent.py").write_text(
        "async def answer(task, effort):\n    return {'text': f'{effort}: {task.prompt}', 'cost_usd': 0.5}\n",
        encoding="utf-8",
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    found = check_system(system("python", "system.target=contract_agent:answer", "effort=deep"))
    assert [submission.cost_usd for submission in found] == [0.5] * 6
    assert all((submission.text or "").startswith("deep: ") for submission in found)


@pytest.mark.parametrize(
    ("script", "statuses"),
    [
        ([Behaviour("ok", text="An answer.")], {"completed"}),
        ([Behaviour("truncated", text="An ans")], {"incomplete"}),
        ([Behaviour("empty")], {"empty"}),
        ([error(500)], set()),
        ([error(401, "wrong key")], set()),
    ],
    ids=["answer", "cut", "empty", "server error", "wrong key"],
)
@pytest.mark.slow
def test_chat(server: ModelServer, script: list[Behaviour], statuses: set[str]) -> None:
    server.script = script
    words = (f"system.base_url={server.base_url}", "system.model=openai/fake", "system.api_key_env=FAKE_KEY")
    found = check_system(system("chat", *words), tasks=sample_tasks()[:1])
    assert {submission.status for submission in found} == statuses


def test_offline() -> None:
    answers = check_judge(judge("offline"))
    # the sample's evidence states the fifth of six lengths
    assert [bool(answer.value and answer.value["verdict"] == "YES") for answer in answers] == [
        number == 5 for number in range(1, 7)
    ]


def test_recorded(tmp_path: Path) -> None:
    path = tmp_path / "judgements.jsonl"
    row = {"task_id": "plain", "unit": "criterion/c1", "verdict": {"met": True}}
    path.write_text(json.dumps(row) + "\n", encoding="utf-8")
    first, *others = check_judge(judge("recorded", f"judge.path={path}"))
    assert first.verdicts["criterion/c1"].verdict == {"met": True}
    assert all(verdict.verdict is None for answer in others for verdict in answer.verdicts.values())


@pytest.mark.parametrize("name", ["openai_compatible", pytest.param("litellm", marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    ("script", "answered"),
    [
        ([Behaviour("ok", text=ANSWER)], 6),
        ([Behaviour("malformed")], 0),
        ([error(500)], 0),
        ([error(401, "wrong key")], 0),
    ],
    ids=["answers", "malformed", "server error", "wrong key"],
)
def test_judges_of_models(server: ModelServer, name: str, script: list[Behaviour], answered: int) -> None:
    server.script = script
    model = "openai/fake" if name == "litellm" else "fake"
    words = (f"judge.base_url={server.base_url}", f"judge.model={model}", "judge.api_key_env=FAKE_KEY")
    assert len(check_judge(judge(name, *words))) == answered
