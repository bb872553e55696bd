"""The engine on toy parts: order, attempts, isolation, observers, money, one process beside another."""

from __future__ import annotations

import multiprocessing
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from fakes import toy
from fakes.model_server import ModelServer
from fakes.runs import Run, draco_row, write_rows
from fakes.runs import run as run_command

from core.app import run
from core.errors import CallError
from core.judge.question import Answer, Question
from core.model import Submission, Task


def go(out: Path, manager: Any, **changes: Any) -> Run:
    return Run(run(toy.tree(out, **changes), manager), out)


def test_rows_stand_in_the_order_of_the_source(tmp_path: Path) -> None:
    names = [f"t{number}" for number in (3, 1, 10, 2)]
    result = go(tmp_path / "run", toy.plugins(tasks=names), attempts=2, judge={"repeats": 2})
    assert result.code == 0
    assert [row["task_id"] for row in result.rows("scores.jsonl")] == names
    assert [(row["task_id"], row["attempt"]) for row in result.rows("submissions.jsonl")] == [
        (name, attempt) for name in names for attempt in (1, 2)
    ]
    assert [
        (row["task_id"], row["attempt"], row["repeat"], row["unit"]) for row in result.rows("judgements.jsonl")
    ] == [
        (name, attempt, repeat, unit)
        for name in names
        for attempt in (1, 2)
        for repeat in (1, 2)
        for unit in toy.UNITS
    ]


def test_a_system_is_not_shown_the_rubric(tmp_path: Path) -> None:
    seen: list[Task] = []

    def solve(task: Task, attempt: int) -> Submission:
        seen.append(task)
        return Submission(task_id=task.id, text="x")

    go(tmp_path / "run", toy.plugins(solve=solve))
    assert [task.payload for task in seen] == [{}, {}]
    assert "secret" not in str(seen)


def crash(task: Task, attempt: int) -> Submission:
    if task.id == "a":
        raise RuntimeError("my agent fell over")
    return Submission(task_id=task.id, text="x")


@pytest.mark.parametrize(
    ("kind", "status", "tries"),
    [
        ("connect", "error", 2),
        ("rate_limit", "error", 2),
        ("server", "error", 2),
        ("timeout", "error", 1),
        ("hung_up", "error", 1),
        ("cut", "error", 1),
        ("bad_request", "error", 1),
        ("malformed", "error", 1),
        ("crash", "error", 1),
        ("maybe_billed", "error", 1),
        ("refused", "refused", 1),
        ("failed", "failed", 1),
        ("timed_out", "timed_out", 1),
        ("empty", "empty", 1),
    ],
)
def test_how_a_systems_call_ends(tmp_path: Path, kind: str, status: str, tries: int) -> None:
    calls: list[str] = []

    def solve(task: Task, attempt: int) -> Submission:
        calls.append(task.id)
        raise CallError(kind, "as the provider says", request_id="req-7")

    manager = toy.plugins(tasks=["a"], solve=solve)
    result = go(tmp_path / "run", manager)
    row = result.rows("submissions.jsonl")[0]
    assert len(calls) == tries, "a job that may have been paid for is not sent twice"
    assert row["status"] == status
    assert row["error"]["kind"] == kind
    assert "req-7" in row["error"]["message"]
    assert result.code == (3 if status == "error" else 0)
    go(tmp_path / "run", manager)
    assert len(calls) == tries * (2 if status == "error" else 1), (
        "the provider's own word is kept, our errors are not"
    )


def test_an_agent_that_raises_costs_its_own_task(tmp_path: Path) -> None:
    result = go(tmp_path / "run", toy.plugins(solve=crash))
    assert result.code == 3
    assert [row["status"] for row in result.rows("scores.jsonl")] == ["error", "scored"]
    assert "my agent fell over" in result.rows("submissions.jsonl")[0]["error"]["message"]
    assert "Traceback" in (result.folder / "log.jsonl").read_text()


def test_a_grader_that_raises_costs_its_own_task(tmp_path: Path) -> None:
    def solve(task: Task, attempt: int) -> Submission:
        return Submission(task_id=task.id, text="break the grader" if task.id == "a" else "x")

    result = go(tmp_path / "run", toy.plugins(solve=solve))
    assert result.code == 3
    assert [row["status"] for row in result.rows("scores.jsonl")] == ["error", "scored"]
    assert (result.summary["n_graded"], result.summary["n_expected"]) == (2, 4)
    assert "the grader broke" in (result.folder / "log.jsonl").read_text()


def test_a_judge_that_raises_costs_its_own_judgement(tmp_path: Path) -> None:
    def ask(question: Question) -> Answer:
        if question.task_id == "a" and question.units == ("u2",):
            raise ZeroDivisionError("a bug in a judge plugin")
        return toy.yes(question)

    result = go(tmp_path / "run", toy.plugins(ask=ask))
    assert result.code == 3
    errors = [row["error"] for row in result.rows("judgements.jsonl") if row["error"]]
    assert len(errors) == 1
    assert "a bug in a judge plugin" in errors[0]["message"]


@pytest.mark.parametrize(
    ("before", "after", "again"),
    [
        ({}, {}, 0),
        ({}, {"attempts": 2}, 2),
        ({}, {"effort": "high"}, 2),
        ({"system": {"wire_version": "1"}}, {"system": {"wire_version": "2"}}, 2),
        ({"system": {"settings": {"a": 1}}}, {"system": {"settings": {"a": 2}}}, 2),
    ],
    ids=["nothing", "another attempt", "another effort", "another wire version", "other settings"],
)
def test_what_is_solved_again_when_something_changes(
    tmp_path: Path, before: dict[str, Any], after: dict[str, Any], again: int
) -> None:
    calls: list[tuple[str, int]] = []

    def solve(task: Task, attempt: int) -> Submission:
        calls.append((task.id, attempt))
        return Submission(task_id=task.id, text=f"{task.id} {attempt}")

    def start(name: str, *, system: dict[str, Any] | None = None, **changes: Any) -> Run:
        return go(
            tmp_path / name, toy.plugins(solve=solve, system=system), store=str(tmp_path / "s.sqlite"), **changes
        )

    start("one", **before)
    first = len(calls)
    result = start("two", **after)
    assert (first, len(calls) - first) == (2, again)
    texts = [row["text"] for row in result.rows("submissions.jsonl")]
    assert len(set(texts)) == len(texts), "attempts are not one and the same"


@pytest.mark.parametrize("part", ["system", "context", "ask", "schema"])
def test_every_part_of_a_question_is_part_of_its_key(part: str) -> None:
    parts: dict[str, Any] = {"system": "s", "context": "c", "ask": "a", "schema": {"type": "object"}}
    changed = {**parts, part: {"type": "array"} if part == "schema" else f"{parts[part]}!"}
    one, other = (Question("t", 1, 1, ("u",), **given) for given in (parts, changed))
    assert one.digest != other.digest
    assert one.digest == Question("another task", 2, 3, ("v",), **parts).digest


def test_observers_see_the_run_go_by_and_cannot_break_it(tmp_path: Path) -> None:
    seen: list[Any] = []

    def broken(score: Any) -> None:
        raise RuntimeError("an observer fell over")

    observers: dict[str, Any] = {
        "run_started": lambda run: seen.append(("started", run["plan"]["tasks"])),
        "task_solved": lambda submission, reused: seen.append(("solved", submission.task_id, reused)),
        "run_finished": lambda summary, exit_code: seen.append(("finished", summary["n_scored"], exit_code)),
        "task_graded": broken,
    }
    result = go(tmp_path / "run", toy.plugins(observers=observers))
    assert result.code == 0
    assert seen[0] == ("started", 2)
    assert sorted(seen[1:-1]) == [("solved", "a", False), ("solved", "b", False)]
    assert seen[-1] == ("finished", 2, 0)
    assert "an observer fell over" in (result.folder / "log.jsonl").read_text()


def test_the_first_question_about_a_report_goes_ahead(tmp_path: Path) -> None:
    order: list[tuple[str, str]] = []

    def ask(question: Question) -> Answer:
        order.append((question.context, question.units[0]))
        return toy.yes(question)

    go(tmp_path / "run", toy.plugins(tasks=["a"], ask=ask), judge={"repeats": 4})
    assert order[0] == ("about a", "u1")
    assert Counter(order) == {("about a", "u1"): 4, ("about a", "u2"): 4}


@pytest.mark.parametrize(
    ("system", "judge", "changes", "code"),
    [
        ({"estimate_usd": 1.0}, {"estimate_usd": lambda question: 0.1}, {"budget": {"usd": 100}}, 0),
        ({"estimate_usd": 1.0}, {"estimate_usd": lambda question: 0.1}, {"budget": {"usd": 1.5}}, 4),
        ({}, {"estimate_usd": lambda question: 0.1}, {"budget": {"usd": 100}}, 2),
        ({"estimate_usd": 60.0}, {"estimate_usd": lambda question: 0.1}, {}, 2),
        ({"estimate_usd": 40.0}, {"estimate_usd": lambda question: 0.1}, {}, 0),
    ],
    ids=["fits", "stops", "unknown price", "must be confirmed", "need not be"],
)
def test_money(tmp_path: Path, system: Any, judge: Any, changes: Any, code: int) -> None:
    def solve(task: Task, attempt: int) -> Submission:
        return Submission(task_id=task.id, text="x", cost_usd=1.0, cost_source="reported")

    manager = toy.plugins(solve=solve, system=system, judge=judge)
    # the toy grader writes no questions in advance, so the judge's price is known only here
    grader_prices = toy.Grader.__dict__.get("questions")
    assert grader_prices is None
    toy.Grader.questions = lambda self, task, submission, repeat: [  # type: ignore[attr-defined]
        Question(task.id, 1, repeat, ("u1",), "s", "c", "a", {})
    ]
    try:
        result = go(tmp_path / "run", manager, **changes)
    finally:
        del toy.Grader.questions  # type: ignore[attr-defined]
    assert result.code == code
    if code in (0, 4):
        cost = result.summary["cost"]
        assert cost["system_usd"] == {0: 2.0, 4: 1.0}[code]
        assert cost["usd"] <= changes.get("budget", {}).get("usd", 100)


def test_unknown_costs_are_counted_and_not_zero(tmp_path: Path) -> None:
    def ask(question: Question) -> Answer:
        return Answer(value={"ok": True}, judge="toy", cost_usd=None, cost_source="unknown")

    cost = go(tmp_path / "run", toy.plugins(ask=ask)).summary["cost"]
    assert (cost["usd"], cost["unknown_calls"], cost["source"]) == (0.0, 6, "unknown")


def _grade(folder: str, name: str, base_url: str) -> None:
    path = Path(folder)
    result = run_command(
        path / name, "benchmark=draco", f"benchmark.source={path / 'tasks.jsonl'}", "system=replay",
        f"system.path={path / 'reports.jsonl'}", "judge=openai_compatible", "judge.model=m",
        f"judge.base_url={base_url}", "judge.repeats=1", f"store={path / 'store.sqlite'}",
    )  # fmt: skip
    raise SystemExit(result.code)


def test_two_processes_never_ask_the_same_question_twice(tmp_path: Path) -> None:
    criteria = [(f"c{number}", 1, f"States fact {number}.") for number in range(30)]
    write_rows(tmp_path / "tasks.jsonl", [draco_row("t", criteria)])
    write_rows(tmp_path / "reports.jsonl", [{"task_id": "t", "text": "A report."}])
    with ModelServer(delay_s=0.03) as server:
        context = multiprocessing.get_context("spawn")
        jobs = [context.Process(target=_grade, args=(str(tmp_path), name, server.base_url)) for name in ("x", "y")]
        for job in jobs:
            job.start()
        for job in jobs:
            job.join()
        assert [job.exitcode for job in jobs] == [0, 0]
        assert server.requests == 30
    first, second = Run(0, tmp_path / "x"), Run(0, tmp_path / "y")
    assert first.bytes("scores.jsonl") == second.bytes("scores.jsonl")


def test_a_folder_in_use_is_refused(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    from core.runfolder import RunFolder

    busy = RunFolder(tmp_path / "run")
    assert go(tmp_path / "run", toy.plugins()).code == 2
    assert "in use by process" in capfd.readouterr().err
    busy.close()
    assert go(tmp_path / "run", toy.plugins()).code == 0


@pytest.mark.parametrize("style", ["plain", "rich"])
def test_progress_says_where_the_run_is(tmp_path: Path, capfd: pytest.CaptureFixture[str], style: str) -> None:
    assert go(tmp_path / "run", toy.plugins(), progress=style).code == 0
    output = capfd.readouterr().err
    assert "solved 2/2" in output
    assert "graded 2/2 tasks" in output
    assert "judgements 4/4" in output
