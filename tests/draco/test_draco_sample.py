"""The packaged tasks and answers: their form, and what they score."""

from __future__ import annotations

import json
from collections import Counter

import pytest
from draco_helpers import FakeDesk, all_judged, says

from core.compose import compose
from core.config import RunConfig
from core.judge.offline import OfflineJudge
from core.judge.question import Answer, Question
from core.model import Submission, Task
from core.resources import resolve
from core.services import JudgeDesk
from core.testing import BenchmarkUnderTest, check_benchmark, services
from plugins.draco.aggregate import DracoAggregator
from plugins.draco.grader import DracoGrader
from plugins.draco.leaks import scan
from plugins.draco.rubric import criteria_of
from plugins.draco.tasks import DracoTasks

TASKS: list[Task] = list(DracoTasks({"source": "sample"}).load())
#: good, partial, one that commits a negative, empty: in the order in which they should score.
ORDER = ["sample-halley", "sample-haber", "sample-baikal", "sample-kilogram"]
#: What a careful reader says of the answers.
MET = {
    "sample-halley": {
        "next-perihelion",
        "giotto-distance",
        "nucleus-size",
        "retrograde",
        "meteor-showers",
        "key-dates",
        "source-orbit",
    },
    "sample-haber": {"iron-catalyst", "conditions", "oppau"},
    "sample-baikal": {"depth", "largest-by-area", "rift", "angara"},
    "sample-kilogram": set[str](),
}


def submissions() -> dict[str, Submission]:
    text = resolve("pkg://plugins.draco/sample/submissions.jsonl").read_text(encoding="utf-8")
    found = [Submission.model_validate(json.loads(line)) for line in text.splitlines()]
    return {one.task_id: one for one in found}


async def scores(desk: JudgeDesk) -> dict[str, float | None]:
    grader, found = DracoGrader(desk), {}
    for task in TASKS:
        given = submissions()[task.id]
        rows = [row async for row in grader.grade(task, given, 1)]
        found[task.id] = grader.score(task, given, rows).metrics["normalized"]
    return found


def test_four_small_tasks_over_the_four_sections_with_a_negative_each() -> None:
    assert [task.id for task in TASKS] == ORDER == list(submissions())
    for task in TASKS:
        criteria = criteria_of(task)
        assert 6 <= len(criteria) <= 10
        assert len({criterion.section for criterion in criteria}) == 4
        assert Counter(criterion.sign for criterion in criteria)["negative"] >= 1


def test_the_answers_are_good_partial_wrong_and_empty() -> None:
    given = submissions()
    assert [given[name].settled().status for name in ORDER] == ["completed"] * 3 + ["empty"]
    assert all(scan(one) == () for one in given.values())


async def test_a_careful_reader_ranks_them() -> None:
    met = {(task.id, f"criterion/{name}") for task in TASKS for name in MET[task.id]}
    found = await scores(FakeDesk(lambda q: says("MET" if (q.task_id, q.units[0]) in met else "UNMET")))
    assert found == {
        "sample-halley": 100,
        "sample-haber": 50,
        "sample-baikal": 100 * (26 - 15) / 46,
        "sample-kilogram": 0,
    }


async def test_the_offline_judge_decides_as_a_careful_reader() -> None:
    judge = OfflineJudge({"name": "offline"}, services())
    verdicts: dict[str, set[str]] = {task.id: set() for task in TASKS}

    class Desk:
        name, width, recorded = "offline", 4, False

        async def ask(self, question: Question) -> Answer:
            answer = await judge.ask(question)
            if (answer.value or {})["verdict"] == "MET":
                verdicts[question.task_id].add(question.units[0].removeprefix("criterion/"))
            return answer

    found = await scores(Desk())
    assert verdicts == MET
    values = [found[name] or 0 for name in ORDER]
    assert values == sorted(set(values), reverse=True)


@pytest.mark.parametrize("task", TASKS, ids=ORDER)
def test_meeting_every_criterion_meets_the_errors_too(task: Task) -> None:
    found = DracoGrader(None).score(task, None, all_judged(task, verdict=True)).metrics["normalized"]
    assert found is not None
    assert found < 100


@pytest.mark.parametrize("strict", [False, True])
def test_the_parts_keep_the_contract_of_a_benchmark(strict: bool) -> None:
    config = RunConfig.from_tree(compose(["experiment=demo_draco", f"benchmark.strict={strict}"]))
    section = config.benchmark.plain()
    check_benchmark(
        BenchmarkUnderTest(config, lambda: DracoTasks(section), DracoGrader, lambda: DracoAggregator(section))
    )
