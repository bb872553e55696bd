"""Whole runs against a model server on loopback: what is asked, stored, refused, paid for and stopped."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from fakes.model_server import Behaviour, ModelServer, error
from fakes.runs import Run, draco_row, run, write_rows

SECRET = "sk-test-0123456789abcdefghij"
CRITERIA = [(f"c{number}", 5 if number else -5, f"States fact number {number}.") for number in range(8)]


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer() as running:
        yield running


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """Three tasks and their replayed reports."""
    write_rows(tmp_path / "tasks.jsonl", [draco_row(name, CRITERIA) for name in "abc"])
    write_rows(tmp_path / "reports.jsonl", [{"task_id": name, "text": f"Report on {name}."} for name in "abc"])
    return tmp_path


def words(files: Path, server: ModelServer | None, *more: str) -> list[str]:
    base = [] if server is None else [f"judge.base_url={server.base_url}"]
    return [
        "benchmark=draco", f"benchmark.source={files / 'tasks.jsonl'}",
        "system=replay", f"system.path={files / 'reports.jsonl'}",
        "judge=openai_compatible", "judge.model=fake", "judge.repeats=2", "judge.retry.attempts=2", *base, *more,
    ]  # fmt: skip


def judge(files: Path, server: ModelServer, *more: str, out: str = "run") -> Run:
    return run(files / out, *words(files, server, *more))


def test_a_second_run_asks_nothing_and_gives_the_same_bytes(files: Path, server: ModelServer) -> None:
    first = judge(files, server)
    assert (first.code, server.requests, first.summary["n_graded"]) == (0, 48, 48)
    again, elsewhere = judge(files, server), judge(files, server, out="other")
    assert server.requests == 48
    for name in ("scores.jsonl", "judgements.jsonl", "submissions.jsonl", "summary.json"):
        assert again.bytes(name) == first.bytes(name) == elsewhere.bytes(name), name
    assert (again.json("run.json")["asked"], again.json("run.json")["reused"]) == (0, 48)


def test_the_same_question_has_the_same_body_and_shows_no_weight(files: Path, server: ModelServer) -> None:
    judge(files, server)
    bodies = set(server.bodies)
    assert len(bodies) == 24, "two repeats ask the same"
    for body in bodies:
        assert b"weight" not in body.lower()
        assert sum(f"fact number {number}." in body.decode() for number in range(8)) == 1


@pytest.mark.parametrize(
    ("more", "asked"),
    [
        (["judge.epoch=1"], 48),
        (["judge.temperature=0.7"], 48),
        (["judge.effort=high"], 48),
        (["judge.model=another"], 48),
        (["judge.max_output_tokens=99"], 48),
        (["judge.params={seed: 7}"], 48),
        (["judge.repeats=3"], 24),
        (["judge.repeats=1"], 0),
        (["judge.max_in_flight=3"], 0),
        (["benchmark.strict=true"], 0),
        (["limit=2"], 0),
        (["shard=2/2"], 0),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else None,
)
def test_what_is_asked_again_when_something_changes(
    files: Path, server: ModelServer, more: list[str], asked: int
) -> None:
    judge(files, server)
    before = server.requests
    assert judge(files, server, *more, out="changed").code == 0
    assert server.requests - before == asked


def test_a_changed_report_or_criterion_is_asked_again_and_nothing_else(files: Path, server: ModelServer) -> None:
    judge(files, server)
    reports = [{"task_id": name, "text": f"Report on {name}{'!' * (name == 'b')}."} for name in "abc"]
    write_rows(files / "reports.jsonl", reports)
    judge(files, server, out="changed")
    assert server.requests == 48 + 16
    changed = [(key, weight, text + ("" if key != "c3" else " Precisely.")) for key, weight, text in CRITERIA]
    write_rows(files / "tasks.jsonl", [draco_row(name, changed if name == "c" else CRITERIA) for name in "abc"])
    judge(files, server, out="criterion")
    assert server.requests == 48 + 16 + 2
    reweighed = [(key, weight * 2, text) for key, weight, text in CRITERIA]
    write_rows(files / "tasks.jsonl", [draco_row(name, reweighed) for name in "abc"])
    judge(files, server, out="weights")
    assert server.requests == 48 + 16 + 2, "the text went back to what was asked before; weights are not asked"


def test_two_judges_solve_once(files: Path, server: ModelServer, monkeypatch: pytest.MonkeyPatch) -> None:
    (files / "my_agent.py").write_text(
        "import pathlib\n"
        "async def answer(task, effort):\n"
        "    with open(pathlib.Path(__file__).parent / 'calls.txt', 'a') as file: file.write(task.id)\n"
        "    assert not task.payload\n"
        "    return f'A report on {task.id} for {effort}.'\n"
    )
    monkeypatch.syspath_prepend(str(files))
    common = ["benchmark=draco", f"benchmark.source={files / 'tasks.jsonl'}", "system=python",
              "system.target=my_agent:answer", "effort=low", "judge=openai_compatible",
              f"judge.base_url={server.base_url}", "judge.repeats=1"]  # fmt: skip
    for model in ("one", "two"):
        result = run(files / model, *common, f"judge.model={model}")
        assert result.code == 0
        assert result.rows("submissions.jsonl")[0]["effort"] == "low"
    assert sorted((files / "calls.txt").read_text()) == ["a", "b", "c"]
    assert server.requests == 48


@pytest.mark.parametrize(
    ("behaviour", "kind"),
    [
        (error(500), "server"),
        (error(400, "unknown parameter"), "bad_request"),
        (error(404, "no such model"), "not_found"),
        (Behaviour("malformed"), "malformed"),
        (Behaviour("truncated"), "truncated"),
        (Behaviour("empty"), "empty"),
        (Behaviour("refusal"), "refused"),
        (Behaviour("filtered"), "refused"),
        (Behaviour("hang_up"), "hung_up"),
        (Behaviour("half"), "cut"),
        (Behaviour("html"), "server"),
        (Behaviour("never"), "timeout"),
        (Behaviour(delay_s=3600), "timeout"),
        (Behaviour("ok", text='{"explanation": "x", "verdict": "PERHAPS"}'), "malformed"),
        (Behaviour("ok", text='{"verdict": "MET", "explanation": "x", "verdict": "UNMET"}'), "malformed"),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_a_judge_that_fails_scores_nothing(files: Path, behaviour: Behaviour, kind: str) -> None:
    with ModelServer([behaviour]) as server:
        result = judge(files, server, "limit=1", "judge.retry.max_wait_s=0", "judge.timeout_s=2")
    assert result.code == 3
    assert all(metric["value"] is None for metric in result.summary["metrics"].values())
    assert (result.summary["n_scored"], result.summary["n_graded"], result.summary["n_expected"]) == (0, 0, 16)
    assert result.rows("scores.jsonl")[0]["status"] == "withheld"
    rows = result.rows("judgements.jsonl")
    assert {row["error"]["kind"] for row in rows} == {kind}
    assert all(row["verdict"] is None for row in rows)


def test_a_failed_answer_is_not_stored_and_its_tokens_are_counted(files: Path) -> None:
    with ModelServer([Behaviour("malformed", cost=0.5)]) as server:
        result = judge(files, server, "limit=1", "judge.repeats=1", "judge.retry.max_wait_s=0")
        assert server.requests == 16, "two tries each"
        assert result.summary["cost"]["judge_usd"] == pytest.approx(8.0)
        server.script = [Behaviour(cost=0.25)]
        mended = judge(files, server, "limit=1", "judge.repeats=1")
    assert mended.code == 0
    assert mended.summary["cost"]["judge_usd"] == pytest.approx(2.0)
    assert mended.summary["cost"]["source"] == "reported+unknown", "the replayed reports don't say what they cost"


def test_a_refusal_is_kept_until_it_is_asked_for_again(files: Path) -> None:
    with ModelServer([Behaviour("refusal")]) as server:
        assert judge(files, server, "limit=1", "judge.repeats=1").code == 3
        before = server.requests
        assert judge(files, server, "limit=1", "judge.repeats=1").code == 3
        assert server.requests == before
        server.script = None
        assert judge(files, server, "limit=1", "judge.repeats=1", "retry=failed").code == 0
        assert server.requests == before + 8
    warnings = Run(0, files / "run").summary["warnings"]
    assert any("8 judgements that the provider had refused" in warning for warning in warnings)


@pytest.mark.parametrize(
    ("behaviour", "part"),
    [
        (error(401, f"Incorrect API key provided: {SECRET}", code="invalid_api_key"), "key"),
        (error(429, "You exceeded your current quota", code="insufficient_quota"), "quota"),
        (error(402, "Payment required"), "quota"),
    ],
    ids=["wrong key", "no quota", "no credit"],
)
def test_a_wrong_key_or_an_empty_account_stops_the_run_at_once(
    files: Path,
    behaviour: Behaviour,
    part: str,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("MY_KEY", SECRET)
    with ModelServer([behaviour]) as server:
        result = judge(files, server, "judge.api_key_env=MY_KEY", "judge.max_in_flight=4")
        assert server.headers[0]["authorization"] == f"Bearer {SECRET}"
        assert server.requests <= 4, "what was in flight, and nothing more"
    output = capfd.readouterr()
    assert result.code == 3
    assert part in output.err
    assert {row["error"]["kind"] for row in result.rows("judgements.jsonl")} == {part}
    for path in [*files.rglob("*")]:
        if path.is_file():
            assert SECRET.encode() not in path.read_bytes(), path
    assert SECRET not in output.out + output.err


def test_a_key_that_a_model_repeats_is_not_written(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", SECRET)
    told = json.dumps({"explanation": f"the key is {SECRET}", "verdict": "MET"})
    with ModelServer([Behaviour(text=told)]) as server:
        result = judge(files, server, "judge.api_key_env=MY_KEY", "limit=1", "judge.repeats=1")
    assert result.code == 0
    assert "the key is [redacted]" in result.rows("judgements.jsonl")[0]["explanation"]
    for path in files.rglob("*"):
        if path.is_file():
            assert SECRET.encode() not in path.read_bytes(), path


@pytest.mark.parametrize(
    ("word", "part"),
    [
        ("judge.base_url=http://user:hush-hush@127.0.0.1/v1", "password"),
        ("system.base_url=http://user:hush-hush@127.0.0.1/v1", "password"),
        ("judge.api_key_env=hush-hush-key", "name of an environment variable"),
    ],
)
def test_a_key_in_the_wrong_place_is_refused_and_not_repeated(
    files: Path, server: ModelServer, capfd: pytest.CaptureFixture[str], word: str, part: str
) -> None:
    assert judge(files, server, word).code == 2
    message = capfd.readouterr().err
    assert part in message
    assert "hush" not in message


@pytest.mark.parametrize("option", ["--dry-run", "--multirn", "-x", "--bogus", "--sample=3"])
def test_an_unknown_option_is_refused_and_nothing_is_sent(
    files: Path, server: ModelServer, capfd: pytest.CaptureFixture[str], option: str
) -> None:
    assert judge(files, server, option).code == 2
    assert option.split("=")[0] in capfd.readouterr().err
    assert server.requests == 0


def test_a_budget_is_looked_at_when_a_call_starts(files: Path) -> None:
    """Calls that cost more than was expected stop the run near the bound, not when the queue is empty."""
    with ModelServer([Behaviour(cost=0.5)]) as server:
        more = ["judge.price={input: 1, output: 1}", "judge.max_in_flight=2", "budget.usd=5"]
        stopped = judge(files, server, *more)
    assert stopped.code == 4
    assert stopped.summary["cost"]["usd"] <= 5 + 2 * 0.5


def test_another_store_does_not_renew_the_budget(files: Path) -> None:
    with ModelServer([Behaviour(cost=0.5)]) as server:
        more = ["judge.price={input: 1, output: 1}", "judge.max_in_flight=1", "budget.usd=5"]
        assert judge(files, server, *more).code == 4
        before = server.requests
        assert judge(files, server, *more, f"store={files / 'another.sqlite'}").code == 4
        assert server.requests <= before + 1


def test_a_key_that_is_not_set_is_refused_before_anything_is_sent(
    files: Path, server: ModelServer, capfd: pytest.CaptureFixture[str]
) -> None:
    assert judge(files, server, "judge.api_key_env=NO_SUCH_KEY").code == 2
    assert "NO_SUCH_KEY" in capfd.readouterr().err
    assert server.requests == 0
    assert not (files / "run").exists()


PRICE = "judge.price={input: 1000, cached_input: 1000, output: 1000}"


def test_a_budget_stops_and_a_higher_one_goes_on(files: Path) -> None:
    with ModelServer([Behaviour(cost=0.5)]) as server:
        more = ["budget.confirm_usd=1e9", PRICE]
        stopped = judge(files, server, "budget.usd=10", *more)
        assert stopped.code == 4
        asked = server.requests
        assert 0 < asked < 48
        assert stopped.summary["cost"]["usd"] <= 10
        assert {row["error"]["kind"] for row in stopped.rows("judgements.jsonl") if row["error"]} == {"budget"}
        assert stopped.value("normalized") is None
        finished = judge(files, server, "budget.usd=1000", *more)
        assert (finished.code, server.requests) == (0, 48)


@pytest.mark.parametrize(
    ("more", "part"),
    [
        (["budget.usd=1"], "judge.price"),
        ([PRICE, "budget.confirm_usd=0.5"], "budget.confirm_usd"),
    ],
    ids=["unknown price", "not confirmed"],
)
def test_money_that_cannot_be_bounded_is_refused(
    files: Path, server: ModelServer, capfd: pytest.CaptureFixture[str], more: list[str], part: str
) -> None:
    assert judge(files, server, *more).code == 2
    assert part in capfd.readouterr().err
    assert server.requests == 0


def test_a_dry_run_sends_and_writes_nothing(
    files: Path, server: ModelServer, capfd: pytest.CaptureFixture[str]
) -> None:
    before = sorted(files.rglob("*"))
    assert judge(files, server, "dry_run=true", PRICE, "budget.confirm_usd=1e9").code == 0
    assert (server.requests, sorted(files.rglob("*"))) == (0, before)
    output = capfd.readouterr().err
    assert "48 judgements" in output
    assert "judging" in output


def test_a_server_that_refuses_above_thirty_in_flight(tmp_path: Path) -> None:
    criteria = [(f"c{number}", 5, f"States fact number {number}.") for number in range(40)]
    write_rows(tmp_path / "tasks.jsonl", [draco_row(f"t{number}", criteria) for number in range(20)])
    write_rows(tmp_path / "reports.jsonl", [{"task_id": f"t{n}", "text": f"Report {n}."} for n in range(20)])
    with ModelServer(delay_s=0.02, max_in_flight=30) as server:
        result = judge(tmp_path, server, "judge.max_in_flight=200", "judge.retry.attempts=8")
        assert result.code == 0
        assert server.refused <= 0.05 * server.requests
        assert server.peak <= 200


def command(files: Path, server: ModelServer, *more: str) -> list[str]:
    return [sys.executable, "-m", "core.run", *words(files, server, *more), f"out={files / 'run'}",
            f"store={files / 'store.sqlite'}", "progress=none"]  # fmt: skip


def test_an_interrupt_ends_cleanly_and_the_next_start_goes_on(files: Path) -> None:
    seen: Callable[[int], bool] = lambda number: number == 20  # noqa: E731
    process: list[subprocess.Popen[bytes]] = []

    def script(number: int, body: Any) -> Behaviour:
        if seen(number):
            os.kill(process[0].pid, signal.SIGINT)
        return Behaviour(delay_s=3600 if number >= 20 else 0)

    with ModelServer(script) as server:
        process.append(subprocess.Popen(command(files, server, "judge.max_in_flight=4"), stderr=subprocess.PIPE))
        _, err = process[0].communicate(timeout=60)
        assert process[0].returncode == 130, err
        stopped = Run(130, files / "run")
        assert stopped.json("run.json")["exit_code"] == 130
        assert stopped.value("normalized") is None
        in_flight = server.requests - 20
        server.script = None
        assert judge(files, server, "judge.max_in_flight=4").code == 0
        assert server.requests == 48 + in_flight


def test_a_killed_run_goes_on_where_it_was(files: Path) -> None:
    """kill -9 at ten places: nothing judged is lost, only what was in flight is asked twice, same bytes."""
    with ModelServer() as server:
        undisturbed = judge(files, server, out="undisturbed")
    for name in ("store.sqlite", "store.sqlite-wal", "store.sqlite-shm"):
        (files / name).unlink(missing_ok=True)
    process: list[subprocess.Popen[bytes]] = []
    kill_at = [3, 7, 12, 16, 21, 25, 30, 34, 39, 44]
    in_flight = 0

    def script(number: int, body: Any) -> Behaviour:
        if kill_at and number >= kill_at[0]:
            kill_at.pop(0)
            process[0].send_signal(signal.SIGKILL)
        return Behaviour()

    with ModelServer(script) as server:
        starts = 0
        while True:
            starts += 1
            process[:] = [
                subprocess.Popen(command(files, server, "judge.max_in_flight=4"), stderr=subprocess.PIPE)
            ]
            process[0].communicate(timeout=120)
            if process[0].returncode == 0:
                break
            assert process[0].returncode == -signal.SIGKILL
            in_flight += 4
        assert starts > 5
        assert server.requests <= 48 + in_flight
        resumed = Run(0, files / "run")
        assert resumed.bytes("scores.jsonl") == undisturbed.bytes("scores.jsonl")
        stored = {json.dumps(row["verdict"]) for row in resumed.rows("judgements.jsonl")}
        assert "null" not in stored
        assert not list((files / "run").glob("*.part"))
        assert not list((files / "run").glob("*.tmp"))
