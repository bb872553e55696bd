"""system=exa against recorded exchanges and what can go wrong beside them, over real HTTP."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from fakes.replay_server import (
    KEY,
    ReplayServer,
    answer,
    file_task,
    hang_up,
    plain_task,
    recorded,
    scenario,
    solved,
)

RUN = "/agent/runs/agent_run_01k9fakefakefakefakefake01"


@pytest.mark.parametrize(
    ("name", "words", "status", "usd", "source"),
    [
        ("happy", (), "completed", 0.025, "reported"),
        ("failed", (), "failed", None, "unknown"),
        ("partial", (), "incomplete", 1.0, "reported"),
        ("stream", ("system.transport=stream",), "completed", 0.025, "reported"),
        ("transient_poll", (), "completed", 0.025, "reported"),
        ("concurrency", (), "completed", 0.025, "reported"),
    ],
)
def test_recorded_scenarios_end_as_they_should(
    tmp_path: Path, name: str, words: tuple[str, ...], status: str, usd: float | None, source: str
) -> None:
    with ReplayServer(scenario("exa", name)) as server:
        result = solved(tmp_path, server, "exa", plain_task(), "effort=low", *words)
    assert server.unexpected == []
    assert server.left == 0
    submission = result.submission
    assert submission is not None
    assert (submission.status, submission.cost_usd, submission.cost_source) == (status, usd, source)
    assert not result.job_left, "an ended job is forgotten"
    assert submission.settings["effort"] == "low"
    assert server.requests[0].headers["x-api-key"] == KEY
    assert KEY not in submission.model_dump_json()
    if status == "completed":
        assert submission.text is not None
        assert submission.text.startswith("The Lakeshore Grid Association has three members.")
        assert {citation.url for citation in submission.citations} == {
            "https://lga.example.org/members",
            "https://northmere.example.org/about",
            "https://caldergrid.example.com/company",
            "https://solvane.example.net/history",
        }
        assert submission.settings["echoed"]["state"] == "completed"


def test_what_is_asked(tmp_path: Path) -> None:
    with ReplayServer(scenario("exa", "happy")) as server:
        solved(tmp_path, server, "exa", plain_task(), "effort=low")
    body = server.requests[0].json
    assert body["query"] == plain_task().prompt
    assert body["effort"] == "low"
    assert body["metadata"]["task_id"] == "lga-001"
    assert "outputSchema" not in body


@pytest.mark.parametrize(
    ("status", "body", "kind", "words"),
    [
        (401, {"requestId": "req_1", "error": "Invalid API key", "tag": "INVALID_API_KEY"}, "key", "req_1"),
        (402, {"requestId": "req_2", "error": "credits", "tag": "NO_MORE_CREDITS"}, "quota", "req_2"),
    ],
)
def test_a_wrong_key_and_an_empty_account_stop_the_run_at_once(
    tmp_path: Path, status: int, body: dict[str, str], kind: str, words: str
) -> None:
    with ReplayServer([answer("POST", "/agent/runs", status, body)]) as server:
        result = solved(tmp_path, server, "exa")
    assert len(server.requests) == 1
    assert result.stopped is not None
    assert result.stopped.kind == kind
    assert "exa" in result.stopped.message
    assert words in result.stopped.message
    assert not result.job_left


def test_a_create_that_was_read_is_looked_up_and_not_sent_again(tmp_path: Path) -> None:
    run = recorded("exa", "03_get_run_completed").json

    def what_was_sent() -> bytes:
        token = server.requests[0].json["metadata"]["token"]
        return json.dumps({"data": [{**run, "metadata": {"token": token}}], "hasMore": False}).encode()

    runs = answer("GET", "/agent/runs", make=what_was_sent)
    with ReplayServer([hang_up("POST", "/agent/runs"), runs]) as server:
        result = solved(tmp_path, server, "exa")
    assert result.submission is not None
    assert result.submission.status == "completed"
    assert len(server.sent("POST")) == 1


def test_a_create_that_nobody_knows_of_may_have_been_billed(tmp_path: Path) -> None:
    empty = answer("GET", "/agent/runs", 200, {"data": [], "hasMore": False})
    port = 0
    for again in range(2):
        sent = [] if again else [hang_up("POST", "/agent/runs")]
        with ReplayServer(sent, always=[empty], port=port) as server:
            port = server.port
            result = solved(tmp_path, server, "exa")
        assert result.submission is not None
        assert result.submission.error is not None
        assert result.submission.error.kind == "maybe_billed"
        assert len(server.sent("POST")) == 1 - again, "the second start looks it up and sends nothing"
    assert result.calls == [("maybe_billed", None), ("maybe_billed", 0.0)], "counted once"


def test_files_come_as_a_typed_reply(tmp_path: Path) -> None:
    done = recorded("exa", "03_get_run_completed")
    output = {
        **done.json["output"],
        "structured": {"files": [{"path": "members.csv", "content": "name\nNorthmere\n"}]},
    }
    with ReplayServer([recorded("exa", "01_create_run"), done.with_json(output=output)]) as server:
        result = solved(tmp_path, server, "exa", file_task())
    assert server.requests[0].json["outputSchema"] == file_task().output_schema
    assert result.submission is not None
    assert result.submission.files == {"members.csv": "name\nNorthmere\n"}
    assert result.submission.settings["echoed"]["delivered"] is True
