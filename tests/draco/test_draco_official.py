"""The official file and real verdicts: counts, extremes, and published scores. Skipped where they are absent."""

from __future__ import annotations

import json
from collections import Counter
from functools import cache

from draco_helpers import RECORDED, all_judged, judgements, needs_official, needs_recorded, official, submission

from core.fold import Attempt, score_of_attempts
from core.model import BY_RULE, Aggregate, Judgement, Task, TaskScore
from plugins.draco.aggregate import DracoAggregator
from plugins.draco.grader import DracoGrader
from plugins.draco.rubric import criteria_of

pytestmark = needs_official

AXES = ("factual-accuracy", "breadth-and-depth-of-analysis", "presentation-quality", "citation-quality")
tasks = cache(official)


def scored(task: Task, rows: list[Judgement]) -> TaskScore:
    score = DracoGrader(None).score(task, submission(task_id=task.id), rows)
    attempt = Attempt("completed", score, has_score=True)
    return score_of_attempts(task, [attempt], headline="normalized", floor=0.95, by_rule=BY_RULE)


def summary(scores: list[TaskScore]) -> Aggregate:
    return DracoAggregator({"coverage_floor": 0.95}).aggregate(scores)


def value(found: Aggregate, name: str) -> float:
    number = found.metrics[name].value
    assert number is not None
    return number


def test_counts() -> None:
    criteria = [criterion for task in tasks() for criterion in criteria_of(task)]
    negatives = [criterion for criterion in criteria if criterion.weight < 0]
    assert (len(tasks()), len(criteria), len(negatives)) == (100, 3934, 415)
    assert len({criterion.id for criterion in criteria}) == 3750
    assert all(tuple(dict.fromkeys(one.section for one in criteria_of(task))) == AXES for task in tasks())
    assert [Counter(one.section for one in criteria)[axis] for axis in AXES] == [2048, 855, 556, 475]
    assert [Counter(one.section for one in negatives)[axis] for axis in AXES] == [40, 108, 178, 89]
    assert (min(one.weight for one in criteria), max(one.weight for one in criteria)) == (-500, 20)


def test_the_range_of_a_task() -> None:
    sizes = [len(criteria_of(task)) for task in tasks()]
    negatives = [sum(one.weight < 0 for one in criteria_of(task)) for task in tasks()]
    positive = [sum(one.weight for one in criteria_of(task) if one.weight > 0) for task in tasks()]
    assert (min(sizes), max(sizes)) == (16, 77)
    assert (min(negatives), max(negatives)) == (3, 7)
    assert (min(positive), max(positive)) == (108, 618)


def test_domains() -> None:
    assert Counter(task.labels["domain"] for task in tasks()) == {
        "Finance": 20,
        "Shopping/Product Comparison": 16,
        "Academic": 12,
        "Technology": 10,
        "General Knowledge": 9,
        "UX Design": 9,
        "Law": 6,
        "Medicine": 6,
        "Needle in a Haystack": 6,
        "Personalized Assistant": 6,
    }


def test_texts_that_a_template_engine_would_read_arrive_unchanged() -> None:
    requirements = [criterion.requirement for task in tasks() for criterion in criteria_of(task)]
    assert sum("$" in text for text in requirements) == 417
    assert sum("<" in text or ">" in text for text in requirements) == 32
    assert sum("{" in text for text in requirements) == 1
    for task in tasks():
        for criterion, question in zip(
            criteria_of(task), DracoGrader(None).questions(task, submission(), 1), strict=True
        ):
            assert f"\n{criterion.requirement}\n" in question.ask
            assert f"\n{task.prompt}\n" in question.context


def test_all_unmet_is_zero_and_passes_what_the_negatives_are_worth() -> None:
    scores = [scored(task, all_judged(task, verdict=False)) for task in tasks()]
    assert {score.metrics["normalized"] for score in scores} == {0}
    found = summary(scores)
    assert value(found, "normalized") == 0
    assert round(value(found, "pass_rate"), 2) == 11.18
    rates = [score.metrics["pass_rate"] or 0 for score in scores]
    assert (round(min(rates), 2), max(rates)) == (4.29, 28)


def test_all_met_costs_the_negatives_and_sinks_three_tasks_of_medicine() -> None:
    scores = [scored(task, all_judged(task, verdict=True)) for task in tasks()]
    assert round(value(summary(scores), "normalized"), 2) == 77.80
    sunk = [score for score in scores if (score.metrics["raw"] or 0) < 0]
    assert [score.labels["domain"] for score in sunk] == ["Medicine"] * 3
    assert {score.metrics["normalized"] for score in sunk} == {0}


def test_a_report_whose_every_call_fails_earns_nothing_and_is_withheld() -> None:
    scores = [scored(task, all_judged(task, verdict=None)) for task in tasks()]
    assert {score.status for score in scores} == {"withheld"}
    found = summary(scores)
    assert {metric.value for metric in found.metrics.values()} == {None}


@needs_recorded
def test_real_verdicts_give_the_published_scores() -> None:
    recorded = json.loads(RECORDED.read_text(encoding="utf-8"))
    scores = []
    for task in tasks():
        if task.id in recorded["met"]:
            places = set(recorded["met"][task.id])
            met = {one.id: place in places for place, one in enumerate(criteria_of(task))}
            scores.append(scored(task, judgements(task, met)))
    found = summary(scores)
    assert len(scores) == 10
    assert round(value(found, "normalized"), 3) == 47.135
    assert round(value(found, "pass_rate"), 3) == 50.234
    axes = [found.groups["axis"][axis]["normalized"] for axis in AXES]
    assert [round(axis or 0, 3) for axis in axes] == [41.788, 25.571, 79.333, 68.647]
