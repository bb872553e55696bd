"""system=python: what a target may be, what it may return, and what becomes of what it raises."""

from __future__ import annotations

import asyncio
import itertools
import sys
import textwrap
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from adapters_helpers import TASK, config, services

from adapters.python import Python, as_submission, python
from core.errors import CallError, InputError
from core.model import Submission

HEAD = """
import asyncio, functools, sys, threading, time
from core.errors import CallError, StopRun
from core.model import Citation, Submission
"""
_numbers = itertools.count()

Agent = Callable[..., Python]


@pytest.fixture(autouse=True)
def importable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The current folder is a new one; what is imported from it is forgotten afterwards."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if entry])
    before = set(sys.modules)
    yield
    for name in set(sys.modules) - before:
        if str(getattr(sys.modules[name], "__file__", "")).startswith(str(tmp_path)):
            del sys.modules[name]


def write(source: str) -> str:
    """A new module in the current folder; returns its name."""
    name = f"agent_under_test_{next(_numbers)}"
    Path(f"{name}.py").write_text(HEAD + textwrap.dedent(source))
    return name


@pytest.fixture
def agent() -> Agent:
    """`agent(source, name)`: a system whose target is a function of a module with this source."""

    def build(source: str, name: str = "answer", *, effort: str | None = None, timeout_s: float = 20) -> Python:
        target = f"{write(source)}:{name}"
        system: Python = python(config("python", target=target, timeout_s=timeout_s), services(effort))
        return system

    return build


ANSWERS = {
    "an async function": "async def answer(task, effort): return f'{task.id} {effort}'",
    "a plain function": "def answer(task, effort): return f'{task.id} {effort}'",
    "keyword names of its own": "async def answer(question, how, *, depth=3): return f'{question.id} {how}'",
    "a mapping": "async def answer(task, effort): return {'text': f'{task.id} {effort}'}",
    "a submission": "def answer(task, effort): return Submission(task_id='t1', text=f'{task.id} {effort}')",
    "an object that can be called": """
        class Agent:
            async def __call__(self, task, effort): return f'{task.id} {effort}'
        answer = Agent()
        """,
    "a plain function that gives a coroutine": """
        async def inner(task, effort): return f'{task.id} {effort}'
        def answer(task, effort): return inner(task, effort)
        """,
    "a partial": """
        async def inner(word, task, effort): return f'{task.id} {effort}'
        answer = functools.partial(inner, 'word')
        """,
}


@pytest.mark.parametrize("source", ANSWERS.values(), ids=ANSWERS)
async def test_what_a_target_may_be(source: str, agent: Agent) -> None:
    row = await agent(source, effort="high").solve(TASK, 1)
    assert (row.status, row.text) == ("completed", "t1 high")
    assert (row.task_id, row.attempt, row.system, row.effort) == ("t1", 1, "python", "high")


async def test_a_method_of_an_object_is_a_target(agent: Agent) -> None:
    source = """
    class Agent:
        def run(self, task, effort): return "from a method"
    agent = Agent()
    """
    assert (await agent(source, "agent.run").solve(TASK, 1)).text == "from a method"


async def test_a_mapping_carries_what_a_line_carries(agent: Agent) -> None:
    source = """
    async def answer(task, effort):
        return {"text": "x", "files": {"a.csv": "1"}, "cost_usd": 0.5, "settings": {"model": "m"},
                "citations": [{"url": "https://a.example"}, Citation(url="https://b.example", title="B")],
                "usage": {"input": 5}}
    """
    system = agent(source)
    row = await system.solve(TASK, 2)
    assert [cited.url for cited in row.citations] == ["https://a.example", "https://b.example"]
    assert (row.attempt, row.files, row.cost_usd, row.cost_source) == (2, {"a.csv": "1"}, 0.5, "reported")
    assert row.settings == {**system.settings, "reported": {"model": "m"}}
    assert row.usage is not None
    assert row.usage.input == 5


@pytest.mark.parametrize(
    ("given", "status"),
    [
        ("", "empty"),
        ("  \n", "empty"),
        ({"status": "refused", "text": "no"}, "refused"),
        ({"status": "incomplete", "text": "half"}, "incomplete"),
        ({"files": {"a": "x"}}, "completed"),
        ({}, "empty"),
    ],
    ids=["no text", "blanks", "a refusal", "cut short", "files only", "an empty mapping"],
)
async def test_statuses(given: Any, status: str, agent: Agent) -> None:
    row = await agent(f"def answer(task, effort): return {given!r}").solve(TASK, 1)
    assert row.status == status


MALFORMED = {
    "None": (None, "expected a text, a mapping or a core.model.Submission; got NoneType"),
    "bytes": (b"x", "got bytes"),
    "an unknown field": ({"text": "x", "citation": []}, "field citation: no such field; did you mean 'citations'"),
    "a wrong type": ({"text": 5}, "field text"),
    "another task": ({"task_id": "t2", "text": "x"}, "of another request.*'t1'.*'t2'"),
    "another attempt": (Submission(task_id="t1", attempt=4, text="x"), "of another request.*attempt 4"),
    "a file outside": ({"files": {"/etc/passwd": "x"}}, "field files.*relative path"),
    "settings that are no JSON": ({"text": "x", "settings": {"f": object()}}, "that JSON can hold"),
    "settings that are no number": ({"text": "x", "settings": {"f": [float("nan")]}}, "that JSON can hold"),
    "a lone surrogate": ("\ud800", "that JSON can hold"),
}


@pytest.mark.parametrize(("given", "message"), MALFORMED.values(), ids=MALFORMED)
async def test_what_is_no_answer(given: Any, message: str, agent: Agent) -> None:
    system = agent("async def answer(task, effort): return GIVEN")
    sys.modules[system.settings["target"].partition(":")[0]].GIVEN = given  # type: ignore[attr-defined]
    with pytest.raises(CallError, match=message) as caught:
        await system.solve(TASK, 1)
    assert caught.value.kind == "malformed"


RAISED = {
    "an exception": ("raise ValueError('no river')", "crash", "raised ValueError: no river"),
    "its own TimeoutError": ("raise TimeoutError('of a socket')", "crash", "raised TimeoutError: of a socket"),
    "an exit": ("sys.exit(5)", "crash", "SystemExit: 5"),
    "a cancellation of its own": ("raise asyncio.CancelledError()", "crash", "CancelledError"),
    "StopIteration": ("raise StopIteration", "crash", "StopIteration"),
    "a key in the message": ("raise ValueError('sk-abcdefghijklmnop1234')", "crash", r"\[redacted\]"),
    "a kind of the table": ("raise CallError('rate_limit', 'slow down')", "rate_limit", "slow down"),
}


@pytest.mark.parametrize("define", ["async def", "def"])
@pytest.mark.parametrize(("body", "kind", "message"), RAISED.values(), ids=RAISED)
async def test_what_it_raises(body: str, kind: str, message: str, define: str, agent: Agent) -> None:
    with pytest.raises(CallError, match=message) as caught:
        await agent(f"{define} answer(task, effort): {body}").solve(TASK, 1)
    assert caught.value.kind == kind


async def test_an_error_it_returns_is_raised(agent: Agent) -> None:
    given = {"status": "error", "error": {"kind": "overloaded", "message": "busy"}}
    with pytest.raises(CallError, match="busy") as caught:
        await agent(f"def answer(task, effort): return {given!r}").solve(TASK, 1)
    assert caught.value.kind == "overloaded"


SLOW = {
    "an async function": "async def answer(task, effort): await asyncio.sleep(600)",
    "one that wraps what it catches": """
        async def answer(task, effort):
            try: await asyncio.sleep(600)
            except BaseException as error: raise RuntimeError('wrapped') from error
        """,
    "one that swallows its end": """
        async def answer(task, effort):
            try: await asyncio.sleep(600)
            except BaseException: return 'late'
        """,
    "a plain function": """
        release = threading.Event()
        def answer(task, effort): release.wait(600)
        """,
}


@pytest.mark.parametrize("source", SLOW.values(), ids=SLOW)
async def test_the_deadline(source: str, agent: Agent) -> None:
    system = agent(source, timeout_s=0.05)
    row = await system.solve(TASK, 1)
    assert (row.status, row.text) == ("timed_out", None)
    assert row.error is not None
    assert "did not return within 0.05 s (system.timeout_s)" in row.error.message
    module = sys.modules[system.settings["target"].partition(":")[0]]
    if hasattr(module, "release"):
        module.release.set()


async def test_a_cancelled_run_cancels_the_function(agent: Agent) -> None:
    system = agent(
        """
        started, ended = asyncio.Event(), []
        async def answer(task, effort):
            started.set()
            try: await asyncio.sleep(600)
            finally: ended.append(True)
        """
    )
    module = sys.modules[system.settings["target"].partition(":")[0]]
    solving = asyncio.create_task(system.solve(TASK, 1))
    await module.started.wait()
    solving.cancel()
    with pytest.raises(asyncio.CancelledError):
        await solving
    assert module.ended == [True]


async def test_plain_functions_run_at_once(agent: Agent) -> None:
    """Twenty wait for each other, so none ends unless all run; their threads don't keep the process."""
    system = agent(
        """
        everybody = threading.Barrier(20)
        def answer(task, effort):
            everybody.wait(20)
            return str(threading.current_thread().daemon)
        """
    )
    rows = await asyncio.gather(*(system.solve(TASK, attempt) for attempt in range(1, 21)))
    assert {row.text for row in rows} == {"True"}
    assert threading.current_thread() is threading.main_thread()


TARGETS = {
    "no colon": ("json.dumps", "no module and function.*expected pkg.module:function.*got 'json.dumps'"),
    "no function": ("json:", "no module and function"),
    "no module": ("no_such_module_7:f", "importing no_such_module_7 failed: ModuleNotFoundError: No module named"),
    "relative": (".x:f", "importing .x failed: TypeError"),
    "no attribute": ("json:dump5", "json has no 'dump5'; did you mean 'dump"),
    "not callable": ("json:__version__", "'__version__' is not a function but of type str"),
    "a class": ("json:JSONDecoder", "'JSONDecoder' is not a function but a class"),
    "too few arguments": ("textwrap:dedent", r"dedent\(text\) can't be called with \(task, effort\): too many"),
    "too many arguments": ("bisect:_no_such", "bisect has no"),
    "no text": (5, "not usable.*expected pkg.module:function"),
}


@pytest.mark.parametrize(("target", "message"), TARGETS.values(), ids=TARGETS)
def test_a_bad_target_is_refused(target: Any, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        python(config("python", target=target), services())
    assert "system.target" in str(caught.value)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("import no_such_package_7", "ModuleNotFoundError: No module named 'no_such_package_7'"),
        ("def answer(", "SyntaxError"),
        ("sys.exit('no key')", "SystemExit: no key"),
        ("def answer(task): return ''", r"answer\(task\) can't be called with \(task, effort\)"),
        ("def answer(a, b, c): return ''", r"answer\(a, b, c\) can't be called.*missing a required argument: 'c'"),
        ("def answer(task, effort, *, k): return ''", "missing a required argument: 'k'"),
    ],
    ids=["a missing import", "broken syntax", "an exit", "one argument", "three arguments", "a keyword it needs"],
)
def test_a_bad_module_is_refused(source: str, message: str, agent: Agent) -> None:
    with pytest.raises(InputError, match=message):
        agent(source)


def test_effort_settings_are_refused() -> None:
    with pytest.raises(InputError, match=r"system\.efforts.*can't set 'depth'"):
        python(config("python", target="json:dumps", effort_settings={"depth": 1}), services())


def test_settings_know_the_source(agent: Agent) -> None:
    one = agent("def answer(task, effort): return 'one'", effort="low").settings
    two = agent("def answer(task, effort): return 'two'").settings
    again = agent("def answer(task, effort): return 'one'").settings
    assert (one["effort"], two["effort"]) == ("low", None)
    assert one["source_digest"] == again["source_digest"] != two["source_digest"]


def test_a_submission_is_kept_as_it_is() -> None:
    row = Submission(task_id="t1", attempt=2, text="x", latency_s=4)
    assert as_submission(row, "t1", 2) == row
