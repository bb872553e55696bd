"""Whole runs of system=search_and_answer on the benchmarks' samples, with everything on 127.0.0.1."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from adapters_helpers import config
from fakes.model_server import Behaviour, ModelServer
from fakes.runs import Run, run
from fakes.search_server import SearchServer

from adapters._baseline_model import Tally
from adapters._baseline_prompts import plan_question
from adapters.search_and_answer import search_and_answer
from core.model import Task
from core.testing import services

HALLEY = "Halley's Comet next reaches perihelion on 28 July 2061."
LIGHT = "The lighthouse of Skerry Point was first lit in 1894, after three years of building."
FILLER = "<p>This page is about more than one thing, and says a good deal besides what is asked of it here.</p>"
PAGES = {
    "/halley": f"<html><head><title>Halley</title></head><body><article><p>{HALLEY}</p>{FILLER}</article></body></html>",
    "/light": f"<html><head><title>Skerry Point</title></head><body><article><p>{LIGHT}</p>{FILLER}</article></body></html>",
}


def script(_: int, body: Any) -> Behaviour:
    asked, step = body["messages"][-1]["content"], body["response_format"]["json_schema"]["name"]
    address = "".join(re.findall(r"http://127[^\s()]*/halley", asked)[:1])
    record = {
        "file": "results_lighthouses.jsonl",
        "item": [{"name": "lighthouse", "value": "Skerry Point"}],
        "excerpts": [LIGHT],
        "answer": [{"name": "first_lit", "value": "1894"}],
    }
    answers: dict[str, Any] = {
        "plan": {"queries": ["a search"]},
        "notes": {"notes": [{"fact": HALLEY, "passage": HALLEY}] if HALLEY in asked else []},
        "records": {"records": [record, {**record, "excerpts": ["It was never lit."]}]},
        "report": {"report": f"{HALLEY} See [it]({address}) and [more](https://invented.example/more)."},
    }
    return Behaviour(text=json.dumps(answers[step]), cost=0.01)


@pytest.fixture
def asked() -> Iterator[ModelServer]:
    with ModelServer(script) as running:
        yield running


@pytest.fixture
def web() -> Iterator[SearchServer]:
    with SearchServer(PAGES, ["/halley", "/light"]) as running:
        yield running


def start(folder: Path, asked: ModelServer, web: SearchServer, *words: str) -> Run:
    return run(
        folder, "benchmark.source=sample", "system=search_and_answer", "effort=low", "judge=offline",
        "system.model=m", f"system.model_base_url={asked.base_url}", f"system.search_url={web.url}",
        f"pages.allow_hosts=[{web.host}]", "pages.control_hosts=[]", "pages.delay_s=0", *words,
    )  # fmt: skip


def test_draco_from_search_to_score(tmp_path: Path, asked: ModelServer, web: SearchServer) -> None:
    done = start(tmp_path / "run", asked, web, "benchmark=draco")
    assert done.code == 0
    rows = done.rows("submissions.jsonl")
    assert {row["status"] for row in rows} == {"completed"}
    assert all("invented.example" not in json.dumps(row) for row in rows)
    assert rows[0]["citations"][0]["url"] == web.page("/halley")
    assert rows[0]["citations"][0]["excerpt"] == HALLEY
    assert done.summary["cost"]["system_usd"] == pytest.approx(0.01 * asked.requests)
    assert (done.value("normalized") or 0) > 0
    assert web.paths.count("/halley") == 1, "a page is fetched once, whatever asks for it"
    assert not any("can't be told to leave out" in warning for warning in done.summary["warnings"])
    before = asked.requests
    again = start(tmp_path / "again", asked, web, "benchmark=draco")
    assert (again.code, asked.requests) == (0, before), "what was solved is in the store"


def test_wandr_records_are_judged_against_the_pages_they_came_from(
    tmp_path: Path, asked: ModelServer, web: SearchServer
) -> None:
    done = start(tmp_path / "run", asked, web, "benchmark=wandr", "tasks=[sundry-lighthouses]")
    assert done.code == 0
    (row,) = done.rows("submissions.jsonl")
    # the other page does not have the passage, and no page has the second record's
    (line,) = row["files"]["results_lighthouses.jsonl"].splitlines()
    assert json.loads(line)["url"] == web.page("/light")
    assert row["status"] == "completed"
    judged = [each for each in done.rows("judgements.jsonl") if each["unit"].startswith("record/")]
    assert [each["verdict"]["verdict"] for each in judged] == [True]
    assert web.paths.count("/light") == 1, "the judge reads what the agent read"


def test_nothing_is_sent_without_a_model_and_a_search(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    done = run(
        tmp_path / "run", "benchmark=draco", "benchmark.source=sample", "system=search_and_answer", "judge=offline"
    )
    said = "".join(capsys.readouterr())
    assert done.code == 2
    assert "system.model: no model is named" in said
    assert "system.search_url" in said


async def test_the_model_can_be_asked_through_litellm(asked: ModelServer) -> None:
    changes = {"model": "openai/gpt-5.4", "params": {"api_base": asked.base_url, "api_key": "none"}}
    made, tally = search_and_answer(config("search_and_answer", **changes), services()), Tally()
    question = plan_question(Task(id="t", prompt="What?"), 1, [], 3, "2030-01-01")
    assert await made.model.ask(question, tally) == {"queries": ["a search"]}
    assert (tally.model_calls, tally.usd, tally.source, tally.tokens) == (1, 0.01, "reported", 1540)
    assert made.estimate_usd is not None, "litellm's price list has the model"
    await made.aclose()
