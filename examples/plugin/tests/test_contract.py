"""What the engine relies on, and what this benchmark's numbers must be."""

from __future__ import annotations

import asyncio

import pytest

from core.errors import InputError
from core.model import Submission
from core.testing import FakeDesk, benchmark, check_benchmark, check_system, system
from leadline_toy.benchmark import Grader, Tasks


def test_the_benchmark_keeps_the_contract() -> None:
    check_benchmark(benchmark("toy"))


@pytest.mark.parametrize(("effort", "times"), [("low", 1), ("high", 3)])
def test_the_system_keeps_the_contract_and_echoes(effort: str, times: int) -> None:
    found = check_system(system("echo", f"effort={effort}"))
    assert found[0].text == "\n".join(["Which rivers flow through Ashby Quay?"] * times)


@pytest.mark.parametrize(("pick", "recall"), [("high", 100.0), ("low", 0.0)], ids=["all stated", "none stated"])
def test_recall_is_the_share_of_points_that_are_stated(pick: str, recall: float) -> None:
    task = next(Tasks({}).load())
    submission = Submission(task_id=task.id, text="A report.")
    grader = Grader(FakeDesk(pick=pick))

    async def rows() -> list:
        return [row async for row in grader.grade(task, submission, 1)]

    assert grader.score(task, submission, asyncio.run(rows())).metrics == {"recall": recall}


@pytest.mark.parametrize(
    ("line", "field"),
    [('{"prompt": "p", "points": ["a"]}', "id"), ('{"id": "t", "prompt": "p", "points": []}', "points")],
)
def test_a_faulty_task_is_refused_with_its_line_and_field(tmp_path, line: str, field: str) -> None:
    path = tmp_path / "tasks.jsonl"
    path.write_text(line, encoding="utf-8")
    with pytest.raises(InputError, match=f"line 1, field {field}"):
        list(Tasks({"source": str(path)}).load())
