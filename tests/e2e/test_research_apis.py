"""Whole runs of a research API, played on loopback: the card's command, kills, interrupts, keys, sweeps of efforts."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from aiohttp import web
from conftest import ROOT
from fakes.exa_server import ExaServer
from fakes.loop_server import LoopServer
from fakes.model_server import ModelServer
from fakes.runs import Run, draco_row, run, write_rows

SAMPLE = ROOT / "plugins" / "wandr" / "sample"
KEY = "exa-key-51c2f0"
SWIFT = ("system.poll.first_s=0.02", "system.poll.longest_s=0.1", "system.retry.max_wait_s=0.1")
CRITERIA = [("c1", 5, "States the fact."), ("c2", -5, "Invents a fact.")]


class SampleSite(LoopServer):
    """The pages that the WANDR sample cites: every site of theirs is a folder of this one."""

    def __init__(self) -> None:
        super().__init__()
        rows = (json.loads(line) for line in (SAMPLE / "pages" / "pages.jsonl").read_text().splitlines())
        self.pages = {self._path(row["url"]): row for row in rows if row.get("file")}
        self.fetched: list[str] = []

    @staticmethod
    def _path(url: str) -> str:
        parts = urlsplit(url)
        return f"/{parts.netloc}{parts.path}"

    def here(self, url: str) -> str:
        return f"{self.base_url}{self._path(url)}"

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        self.fetched.append(request.path)
        row = self.pages.get(request.path)
        if row is None:
            return web.Response(status=404, text="gone")
        body = (SAMPLE / "pages" / row["file"]).read_bytes()
        return web.Response(body=body, headers={"content-type": row["content_type"]})


def sample_records(site: SampleSite) -> Mapping[str, str]:
    """The sample's best submission, its records citing the local site: file name → text."""
    files: dict[str, str] = {}
    for line in (SAMPLE / "submissions.jsonl").read_text(encoding="utf-8").splitlines():
        for name, text in json.loads(line)["files"].items():
            records = []
            for row in filter(str.strip, text.splitlines()):
                try:
                    record = json.loads(row)
                except ValueError:
                    continue
                if isinstance(record, dict) and site._path(str(record.get("url"))) in site.pages:
                    records.append(json.dumps({**record, "url": site.here(record["url"])}))
            files[name] = "\n".join(records)
    return files


def test_the_cards_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EXA_API_KEY", KEY)
    with SampleSite() as site, ModelServer() as model:
        records = sample_records(site)

        def output(request: Mapping[str, Any]) -> Mapping[str, Any]:
            wanted = request["outputSchema"]["properties"]["files"]["items"]["properties"]["path"]["enum"]
            files = [{"path": name, "content": records[name]} for name in wanted]
            return {"text": "Delivered.", "structured": {"files": files}, "grounding": []}

        with ExaServer(output, key=KEY) as exa:
            done = run(
                tmp_path / "run",
                "benchmark=wandr", "benchmark.source=sample", "system=exa", "effort=low",
                f"system.base_url={exa.base_url}", *SWIFT,
                "judge=openai_compatible", f"judge.base_url={model.base_url}", "judge.model=fake",
                "judge.price={input: 1, output: 1}",
                f"pages.allow_hosts=[127.0.0.1:{site.port}]", "pages.control_hosts=[]",
            )  # fmt: skip
    assert done.code == 0
    summary = done.summary
    assert (summary["n_scored"], summary["n_tasks"], exa.creates) == (3, 3, 3)
    assert summary["metrics"]["soft_f1"]["value"] is not None
    assert summary["metrics"]["soft_f1"]["value"] > 0
    assert summary["cost"]["system_usd"] == pytest.approx(0.075)
    assert summary["cost"]["judge_usd"] > 0
    assert summary["effort"] == "low"
    assert any("exa can't be told to leave out" in warning for warning in summary["warnings"])
    assert site.fetched, "the judge saw the cited pages"
    row = done.rows("submissions.jsonl")[0]
    assert row["settings"]["delivery"] == "schema"
    assert row["settings"]["echoed"]["delivered"] is True
    for path in (tmp_path / "run").rglob("*"):
        assert not path.is_file() or KEY.encode() not in path.read_bytes(), path


def test_without_a_key_it_says_which_and_what_it_would_have_cost(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("EXA_API_KEY", raising=False)
    done = run(
        tmp_path / "run", "benchmark=wandr", "benchmark.source=sample", "system=exa", "effort=low", "judge=offline"
    )
    said = "".join(capsys.readouterr())
    assert done.code == 2
    assert "EXA_API_KEY" in said
    assert "solving 0.0750 $" in said
    assert not (tmp_path / "run").exists()


@pytest.fixture
def tasks(tmp_path: Path) -> Path:
    return write_rows(tmp_path / "tasks.jsonl", [draco_row(f"t{number:02d}", CRITERIA) for number in range(50)])


def words(tasks: Path, exa: ExaServer, *more: str) -> list[str]:
    return [
        "benchmark=draco", f"benchmark.source={tasks}", "system=exa", "effort=low", f"system.base_url={exa.base_url}",
        "system.max_in_flight=50", "system.requests_per_minute=null", *SWIFT, "judge=offline", "judge.repeats=1", *more,
    ]  # fmt: skip


class Process:
    """`python -m core.run …` in a process of its own."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        self.folder = folder
        command = [
            sys.executable,
            "-m",
            "core.run",
            *arguments,
            f"out={folder / 'run'}",
            f"store={folder / 'store.sqlite'}",
        ]
        self.process = subprocess.Popen(
            [*command, "progress=none"],
            cwd=ROOT,
            env={**os.environ, "EXA_API_KEY": KEY},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def until(self, holds: Any) -> None:
        """Look again and again until something holds; fails when the process ends first."""
        give_up = time.monotonic() + 120
        while not holds():
            assert self.process.poll() is None, "the run ended too early"
            assert time.monotonic() < give_up, "it never came to that"
            time.sleep(0.02)

    def end(self, number: int) -> int:
        self.process.send_signal(number)
        return self.process.wait(60)


@pytest.fixture
def held() -> Iterator[ExaServer]:
    with ExaServer(held=True) as exa:
        yield exa


@pytest.mark.slow
def test_killed_with_fifty_jobs_running_it_pays_for_fifty(tmp_path: Path, tasks: Path, held: ExaServer) -> None:
    first = Process(tmp_path, *words(tasks, held))
    first.until(lambda: held.creates == 50 and held.polls > 60)
    first.end(signal.SIGKILL)
    held.let_go.set()
    second = Process(tmp_path, *words(tasks, held))
    assert second.process.wait(120) == 0
    assert held.creates == 50
    done = Run(0, tmp_path / "run")
    rows = done.rows("submissions.jsonl")
    assert [row["status"] for row in rows] == ["completed"] * 50
    assert done.summary["cost"]["system_usd"] == pytest.approx(50 * 0.025)
    assert done.summary["cost"]["unknown_calls"] == 0


@pytest.mark.slow
def test_killed_while_creates_are_out_it_finds_them_again(tmp_path: Path, tasks: Path, held: ExaServer) -> None:
    first = Process(tmp_path, *words(tasks, held))
    first.until(lambda: held.creates >= 20)
    first.end(signal.SIGKILL)
    held.let_go.set()
    started = held.creates
    second = Process(tmp_path, *words(tasks, held, "fail_on=never"))
    second.process.wait(120)
    rows = Run(0, tmp_path / "run").rows("submissions.jsonl")
    by_error = [row["error"]["kind"] for row in rows if row["error"]]
    assert set(by_error) <= {"maybe_billed"}, "an intent that the provider never read is not sent again"
    assert held.creates + len(by_error) == 50, f"{started} creates had been read at the kill"
    tokens = [run["request"]["metadata"]["token"] for run in held.runs.values()]
    assert len(set(tokens)) == len(tokens)
    assert len({run["request"]["metadata"]["task_id"] for run in held.runs.values()}) == held.creates, "none twice"


@pytest.mark.slow
def test_an_interrupt_cancels_what_runs_and_the_next_start_asks_anew(
    tmp_path: Path, tasks: Path, held: ExaServer
) -> None:
    first = Process(tmp_path, *words(tasks, held))
    first.until(lambda: held.creates == 50 and held.polls > 60)
    assert first.end(signal.SIGINT) == 130
    assert held.cancels == 50
    rows = Run(130, tmp_path / "run").rows("submissions.jsonl")
    assert {row["status"] for row in rows} <= {"error"}
    held.let_go.set()
    second = Process(tmp_path, *words(tasks, held))
    assert second.process.wait(120) == 0
    assert held.creates == 100


def test_an_interrupt_may_leave_jobs_to_be_collected(tmp_path: Path, tasks: Path, held: ExaServer) -> None:
    more = ("system.cancel_on_interrupt=false", "limit=4")
    first = Process(tmp_path, *words(tasks, held, *more))
    first.until(lambda: held.creates == 4 and held.polls > 4)
    assert first.end(signal.SIGINT) == 130
    held.let_go.set()
    second = Process(tmp_path, *words(tasks, held, *more))
    assert second.process.wait(120) == 0
    assert (held.creates, held.cancels) == (4, 0)


def test_a_create_that_is_hung_up_on_is_found_and_paid_once(
    tmp_path: Path, tasks: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EXA_API_KEY", KEY)
    with ExaServer() as exa:
        exa.hang_up_on = {1, 3}
        done = run(tmp_path / "run", *words(tasks, exa, "limit=4"))
    assert done.code == 0
    assert exa.creates == 4


def test_two_words_for_one_setting_are_told(tmp_path: Path, tasks: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EXA_API_KEY", KEY)
    with ExaServer() as exa:
        more = ["system.efforts.low={agent_effort: minimal}", "system.efforts.minimal={agent_effort: minimal}"]
        done = run(tmp_path / "run", *words(tasks, exa, "limit=1", *more))
    assert "effort low of system exa sets the same as effort minimal" in done.summary["warnings"]
