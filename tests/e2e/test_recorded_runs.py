"""Whole runs with replayed submissions and recorded judgements: scores, what is missing, what is zero."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from conftest import SHARED
from fakes.runs import Run, draco_row, run, write_rows

OFFICIAL = SHARED / "data" / "draco" / "test.jsonl"
VERDICTS = SHARED / "data" / "draco" / "gradings" / "verdicts_10_tasks.json"
official = pytest.mark.skipif(not OFFICIAL.exists(), reason="the official DRACO file is not on this machine")

CRITERIA = [("p1", 10, "States a."), ("p2", 5, "States b."), ("n1", -5, "Claims c.")]


def official_tasks() -> dict[str, list[dict[str, Any]]]:
    """Task id → its criteria in the order of the file."""
    tasks = {}
    for text in OFFICIAL.read_text(encoding="utf-8").splitlines():
        row = json.loads(text)
        sections = json.loads(row["answer"])["sections"]
        tasks[row["id"]] = [criterion for section in sections for criterion in section["criteria"]]
    return tasks


def recorded(tmp_path: Path, met: Mapping[str, Callable[[int, dict[str, Any]], bool]], *words: str) -> Run:
    tasks = official_tasks()
    submissions = write_rows(
        tmp_path / "submissions.in.jsonl", ({"task_id": task, "text": "A report."} for task in met)
    )
    judgements = write_rows(
        tmp_path / "judgements.in.jsonl",
        (
            {"task_id": task, "unit": f"criterion/{criterion['id']}", "verdict": {"met": rule(number, criterion)}}
            for task, rule in met.items()
            for number, criterion in enumerate(tasks[task])
        ),
    )
    return run(
        tmp_path / "run",
        "benchmark=draco",
        f"benchmark.source={OFFICIAL}",
        "system=replay",
        f"system.path={submissions}",
        "judge=recorded",
        f"judge.path={judgements}",
        *words,
    )


@official
def test_the_recorded_verdicts_give_the_published_scores(tmp_path: Path) -> None:
    content = json.loads(VERDICTS.read_text())
    met = {
        task: (lambda number, _, chosen=frozenset(places): number in chosen)
        for task, places in content["met"].items()
    }
    result = recorded(tmp_path, met, f"tasks=[{','.join(met)}]")
    expected = content["expected"]
    assert result.code == 0
    assert result.value("normalized") == pytest.approx(expected["normalized_pct"], abs=5e-4)
    assert result.value("pass_rate") == pytest.approx(expected["pass_rate_pct"], abs=5e-4)
    axes = result.summary["groups"]["axis"]
    assert {axis: axes[axis]["normalized"] for axis in axes} == pytest.approx(expected["axis_pct"], abs=5e-4)
    assert (result.summary["n_graded"], result.summary["n_tasks"], result.summary["n_scored"]) == (383, 10, 10)


@official
@pytest.mark.parametrize(
    ("verdict", "normalized", "pass_rate", "below_zero"),
    [(False, 0.0, 11.18, 0), (True, 77.80, None, 3)],
    ids=["all UNMET", "all MET"],
)
def test_one_verdict_for_every_criterion(
    tmp_path: Path, verdict: bool, normalized: float, pass_rate: float | None, below_zero: int
) -> None:
    result = recorded(tmp_path, {task: (lambda *_: verdict) for task in official_tasks()})
    assert result.code == 0
    assert result.value("normalized") == pytest.approx(normalized, abs=5e-3)
    if pass_rate is not None:
        assert result.value("pass_rate") == pytest.approx(pass_rate, abs=5e-3)
    assert sum(row["metrics"]["raw"] < 0 for row in result.rows("scores.jsonl")) == below_zero
    assert result.summary["n_expected"] == 3934


@official
def test_the_round_trip_and_eight_shards(tmp_path: Path) -> None:
    """Replay + recorded from a run's own files, and eight merged shards, give the same bytes."""
    from core.merge import main as merge
    from core.rescore import main as rescore

    def rule(number: int, criterion: dict[str, Any]) -> bool:
        return hash_of(criterion["id"]) % 3 > 0

    first = recorded(tmp_path, dict.fromkeys(list(official_tasks())[:24], rule), "limit=24")
    source = [
        "benchmark=draco", f"benchmark.source={OFFICIAL}", "limit=24",
        "system=replay", f"system.path={first.folder / 'submissions.jsonl'}",
        "judge=recorded", f"judge.path={first.folder / 'judgements.jsonl'}",
    ]  # fmt: skip
    again = run(tmp_path / "again", *source)
    assert again.bytes("scores.jsonl") == first.bytes("scores.jsonl")
    assert again.bytes("judgements.jsonl") == first.bytes("judgements.jsonl")

    shards = [run(tmp_path / f"shard{number}", *source, f"shard={number}/8") for number in range(1, 9)]
    assert merge(["--out", str(tmp_path / "merged"), *(str(shard.folder) for shard in reversed(shards))]) == 0
    merged = Run(0, tmp_path / "merged")
    files = ("scores.jsonl", "submissions.jsonl", "judgements.jsonl", "tasks.jsonl")
    for name in files:
        assert merged.bytes(name) == first.bytes(name), name
    assert merged.summary["metrics"] == first.summary["metrics"]
    before = {name: merged.bytes(name) for name in (*files, "summary.json", "run.json")}
    assert merge(["--out", str(tmp_path / "merged"), *(str(shard.folder) for shard in shards)]) == 0
    assert {name: merged.bytes(name) for name in before} == before, "merging twice changes nothing"
    assert rescore([str(merged.folder)]) == 0
    assert {name: merged.bytes(name) for name in before} == before, "rescoring changes nothing"


def hash_of(text: str) -> int:
    import zlib

    return zlib.crc32(text.encode())


@pytest.fixture
def toy(tmp_path: Path) -> Callable[..., Run]:
    """One or more small tasks, replayed and recorded."""

    def make(
        submissions: list[dict[str, Any]],
        judgements: list[dict[str, Any]],
        *words: str,
        tasks: list[dict[str, Any]] | None = None,
    ) -> Run:
        source = write_rows(tmp_path / "tasks.in.jsonl", tasks or [draco_row("t", CRITERIA)])
        return run(
            tmp_path / "run",
            "benchmark=draco",
            f"benchmark.source={source}",
            "system=replay",
            f"system.path={write_rows(tmp_path / 's.jsonl', submissions)}",
            "judge=recorded",
            f"judge.path={write_rows(tmp_path / 'j.jsonl', judgements)}",
            *words,
        )

    return make


def verdicts(task: str = "t", *, repeat: int = 1, attempt: int = 1, **met: bool | None) -> list[dict[str, Any]]:
    return [
        {
            "task_id": task,
            "attempt": attempt,
            "repeat": repeat,
            "unit": f"criterion/{name}",
            "verdict": None if value is None else {"met": value},
        }
        for name, value in met.items()
    ]


ANSWERED = [{"task_id": "t", "text": "An answer."}]


@pytest.mark.parametrize(
    ("submissions", "judgements", "words", "code", "normalized", "status", "graded", "expected"),
    [
        (ANSWERED, verdicts(p1=True, p2=True, n1=False), [], 0, 100.0, "scored", 3, 3),
        (ANSWERED, verdicts(p1=True, p2=False, n1=True), [], 0, 100 * 5 / 15, "scored", 3, 3),
        (ANSWERED, verdicts(p1=True, p2=None, n1=False), [], 3, None, "withheld", 2, 3),
        (ANSWERED, verdicts(p1=True, p2=None, n1=False), ["benchmark.coverage_floor=0.5"], 3, 100.0, "scored", 2, 3),
        (ANSWERED, verdicts(p1=True, p2=None, n1=False), ["benchmark.coverage_floor=0.5", "fail_on=0.34"], 0, 100.0,
         "scored", 2, 3),
        (ANSWERED, verdicts(p1=True, p2=None, n1=False), ["benchmark.coverage_floor=0.5", "benchmark.strict=true"], 3,
         None, "withheld", 2, 3),
        (ANSWERED, verdicts(p1=True, p2=True, n1=False), ["benchmark.strict=true"], 0, 100.0, "scored", 3, 3),
        (ANSWERED, verdicts(p1=True, p2=None, n1=False), ["fail_on=0.5"], 3, None, "withheld", 2, 3),
        (ANSWERED, verdicts(p1=True, p2=None, n1=False), ["fail_on=never"], 0, None, "withheld", 2, 3),
        (ANSWERED, [], [], 3, None, "withheld", 0, 3),
        ([{"task_id": "t", "text": ""}], [], [], 0, 0.0, "zero", 3, 3),
        ([{"task_id": "t", "text": " \n"}], [], [], 0, 0.0, "zero", 3, 3),
        ([{"task_id": "t", "status": "refused"}], [], [], 0, 0.0, "zero", 3, 3),
        ([{"task_id": "t", "status": "failed"}], [], [], 0, 0.0, "zero", 3, 3),
        ([{"task_id": "t", "status": "timed_out"}], [], [], 0, 0.0, "zero", 3, 3),
        ([{"task_id": "t", "status": "refused"}], [], ["system.on_failure=missing"], 3, None, "error", 0, 3),
        ([{"task_id": "t", "status": "error"}], [], [], 3, None, "error", 0, 3),
        ([{"task_id": "t", "status": "incomplete", "text": "x"}], verdicts(p1=True, p2=True, n1=False), [], 0, 100.0,
         "scored", 3, 3),
        ([], [], [], 3, None, "error", 0, 3),
        (ANSWERED, verdicts(p1=True, p2=True, n1=False) + verdicts(repeat=2, p1=True, p2=False, n1=False), [], 0,
         100 * (1 + 10 / 15) / 2, "scored", 6, 6),
    ],
    ids=["all right", "a negative committed", "one missing", "above a lower floor", "within fail_on", "strict",
         "strict and complete", "a withheld task within fail_on",
         "fail_on never", "none judged", "empty", "blank", "refused", "failed", "timed out", "failure is missing",
         "error of ours", "incomplete", "no line in the file", "two repeats"],
)  # fmt: skip
def test_what_is_missing_and_what_is_zero(
    toy: Callable[..., Run],
    submissions: list[dict[str, Any]],
    judgements: list[dict[str, Any]],
    words: list[str],
    code: int,
    normalized: float | None,
    status: str,
    graded: int,
    expected: int,
) -> None:
    repeats = [] if judgements else ["judge.repeats=1"]  # an empty file does not say
    result = toy(submissions, judgements, *words, *repeats)
    score = result.rows("scores.jsonl")[0]
    assert result.code == code
    assert score["metrics"]["normalized"] == (None if normalized is None else pytest.approx(normalized))
    assert (score["status"], score["n_graded"], score["n_expected"]) == (status, graded, expected)
    assert result.json("run.json")["exit_code"] == code
    assert result.summary["n_scored"] == (normalized is not None)


def test_what_a_report_says_of_rules_and_kin(toy: Callable[..., Run]) -> None:
    refused = [{"task_id": "t", "status": "refused"}]
    kin = ["judge.family=qwen", "system.family=qwen", "judge.repeats=1"]
    warnings = " ".join(toy(refused, [], *kin).summary["warnings"])
    assert "both of the family qwen" in warnings
    assert "decided by rule" in warnings


def test_a_failure_that_is_missing_is_not_called_decided_by_rule(toy: Callable[..., Run]) -> None:
    refused = [{"task_id": "t", "status": "refused"}]
    warnings = " ".join(toy(refused, [], "system.on_failure=missing", "judge.family=qwen").summary["warnings"])
    assert "decided by rule" not in warnings
    assert "family" not in warnings


def test_attempts_are_meant_after_repeats(toy: Callable[..., Run]) -> None:
    submissions = [{"task_id": "t", "attempt": number, "text": "x"} for number in (1, 2)]
    judgements = [
        *verdicts(attempt=1, p1=True, p2=True, n1=False),
        *verdicts(attempt=1, repeat=2, p1=False, p2=False, n1=False),
        *verdicts(attempt=2, p1=True, p2=True, n1=False),
        *verdicts(attempt=2, repeat=2, p1=True, p2=True, n1=False),
    ]
    result = toy(submissions, judgements, "attempts=2")
    score = result.rows("scores.jsonl")[0]
    assert score["metrics"]["normalized"] == 75.0
    assert [(row["attempt"], row["repeat"]) for row in score["by_run"]] == [(1, 1), (1, 2), (2, 1), (2, 2)]


def test_an_attempt_that_failed_lowers_the_coverage(toy: Callable[..., Run]) -> None:
    result = toy(ANSWERED, verdicts(p1=True, p2=True, n1=False), "attempts=2")
    score = result.rows("scores.jsonl")[0]
    assert (score["n_graded"], score["n_expected"], score["status"]) == (3, 6, "withheld")
    assert result.code == 3


@pytest.mark.parametrize(
    ("name", "content", "parts"),
    [
        ("j.jsonl", [{"task_id": "t", "unit": "criterion/p9", "verdict": {"met": True}}], ["j.jsonl, line 1", "criterion/p9"]),
        ("j.jsonl", [{"task_id": "t", "unit": "checkpoint/p1", "verdict": {"met": True}}], ["j.jsonl, line 1", "checkpoint/p1"]),
        ("j.jsonl", [{"task_id": "t", "unit": "criterion/p1", "verdict": {"met": "yes"}}], ["j.jsonl, line 1", "met", "yes"]),
        ("j.jsonl", [{"task_id": "t", "unit": "criterion/p1", "verdict": {"verdict": True}}], ["j.jsonl, line 1", "met"]),
        ("j.jsonl", verdicts(p1=True) * 2, ["j.jsonl, line 2", "criterion/p1"]),
        ("j.jsonl", [{"task_id": "t", "unit": "criterion/p1"}], ["j.jsonl, line 1", "verdict"]),
        ("s.jsonl", [{"task_id": "u", "text": "x"}], ["s.jsonl, line 1", "'u'"]),
        ("s.jsonl", ANSWERED * 2, ["s.jsonl, line 2", "attempt"]),
        ("s.jsonl", [{"task_id": "t", "attempt": 0, "text": "x"}], ["s.jsonl, line 1", "attempt"]),
        ("s.jsonl", [{"task_id": "t", "status": "done", "text": "x"}], ["s.jsonl, line 1", "status"]),
        ("s.jsonl", [{"text": "x"}], ["s.jsonl, line 1", "task_id"]),
        ("tasks.in.jsonl", [draco_row("t", [("p1", 0, "x")])], ["tasks.in.jsonl, line 1", "weight", "0"]),
        ("tasks.in.jsonl", [draco_row("t", [("p1", float("nan"), "x")])], ["tasks.in.jsonl, line 1", "NaN"]),
        ("tasks.in.jsonl", [draco_row("t", [("p1", 1, "x"), ("p1", 2, "y")])], ["tasks.in.jsonl, line 1", "p1"]),
        ("tasks.in.jsonl", [draco_row("t", CRITERIA, answer="{no json")], ["tasks.in.jsonl, line 1", "answer"]),
        ("tasks.in.jsonl", [{k: v for k, v in draco_row("t", CRITERIA).items() if k != "problem"}],
         ["tasks.in.jsonl, line 1", "problem"]),
    ],
    ids=lambda value: None if not isinstance(value, str) else value,
)  # fmt: skip
def test_what_is_refused_before_anything_is_sent(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], name: str, content: list[dict[str, Any]], parts: list[str]
) -> None:
    files = {
        "tasks.in.jsonl": [draco_row("t", CRITERIA)],
        "s.jsonl": ANSWERED,
        "j.jsonl": verdicts(p1=True, p2=True, n1=False),
        name: content,
    }
    for file, rows in files.items():
        write_rows(tmp_path / file, rows)
    result = run(
        tmp_path / "run",
        "benchmark=draco",
        f"benchmark.source={tmp_path / 'tasks.in.jsonl'}",
        "system=replay",
        f"system.path={tmp_path / 's.jsonl'}",
        "judge=recorded",
        f"judge.path={tmp_path / 'j.jsonl'}",
    )
    message = capfd.readouterr().err
    assert result.code == 2
    for part in parts:
        assert part in message
    assert not result.folder.exists(), "a refused run leaves nothing behind"


def test_rows_that_do_not_apply_are_ignored_and_counted(toy: Callable[..., Run]) -> None:
    tasks = [draco_row("t", CRITERIA), draco_row("u", CRITERIA)]
    judgements = verdicts(p1=True, p2=True, n1=False) + verdicts("u", p1=True) + verdicts("v", p1=True)
    submissions = [*ANSWERED, {"task_id": "u", "text": "x"}]
    result = toy(submissions, judgements, "tasks=[t]", tasks=tasks)
    assert result.code == 0
    assert result.json("run.json")["ignored_judgements"] == {"filtered": 1, "foreign": 1}
    assert any(warning.startswith("1 recorded judgements") for warning in result.summary["warnings"])


def test_recorded_verdicts_keep_their_provenance(toy: Callable[..., Run]) -> None:
    told = {"judge": "someone", "prompt_digest": "abc", "judged_at": "2026-01-02T03:04:05+00:00", "cost_usd": 0.5}
    result = toy(ANSWERED, [{**row, **told} for row in verdicts(p1=True, p2=True, n1=False)])
    for row in result.rows("judgements.jsonl"):
        assert {name: row[name] for name in told} == told
    judge = result.summary["judge"]
    assert (judge["prompt_digest"], judge["rows"]) == (None, {"someone": 3})
    assert judge["dates"] == {"first": told["judged_at"], "last": told["judged_at"]}
    assert result.summary["cost"]["judge_usd"] == 1.5


def test_a_cost_that_is_not_stated_is_unknown(toy: Callable[..., Run]) -> None:
    cost = toy(ANSWERED, verdicts(p1=True, p2=True, n1=False)).summary["cost"]
    assert (cost["system_usd"], cost["unknown_calls"], cost["source"]) == (0.0, 1, "unknown")


def test_line_separators_inside_a_report_do_not_break_rows(toy: Callable[..., Run]) -> None:
    text = "one\u2028two\u2029three\u0085four"
    result = toy([{"task_id": "t", "text": text}], verdicts(p1=True, p2=True, n1=False))
    assert [row["text"] for row in result.rows("submissions.jsonl")] == [text]


@pytest.mark.parametrize("words", [["tasks=[]"], ["tasks="], ["tasks=[nosuch]"]], ids=str)
def test_a_choice_of_no_task_is_refused(toy: Callable[..., Run], words: list[str]) -> None:
    assert toy(ANSWERED, verdicts(p1=True), *words).code == 2


def test_a_shard_without_a_task_says_so(toy: Callable[..., Run]) -> None:
    result = toy(ANSWERED, verdicts(p1=True, p2=True, n1=False), "shard=2/2")
    assert (result.code, result.summary["n_tasks"]) == (0, 0)
    assert any("no task" in warning for warning in result.summary["warnings"])


@pytest.mark.parametrize("key", ["out", "store"])
@pytest.mark.parametrize("place", ["a-file", "a-file/inside", "/proc/nope/x"])
def test_a_place_that_cannot_be_written_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], key: str, place: str
) -> None:
    from core.launch import launch

    (tmp_path / "a-file").write_text("x")
    (tmp_path / "placed_agent.py").write_text("async def answer(task, effort):\n    return 'x'\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    where = place if place.startswith("/") else str(tmp_path / place)
    places = {"out": str(tmp_path / "run"), "store": str(tmp_path / "s.sqlite"), key: where}
    words = [f"{name}={value}" for name, value in places.items()]
    agent = ["system=python", "system.target=placed_agent:answer"]
    assert launch(["experiment=demo_draco", *agent, "progress=none", *words]) == 2
    assert "refused: " in capfd.readouterr().err
    assert not (tmp_path / "run").exists()


def test_a_folder_of_the_same_configuration_is_continued_and_another_refused(toy: Callable[..., Run]) -> None:
    judgements = verdicts(p1=True, p2=True, n1=False)
    first = toy(ANSWERED, judgements)
    scores = first.bytes("scores.jsonl")
    run_id = first.json("run.json")["run_id"]
    again = toy(ANSWERED, judgements)
    assert (again.code, again.bytes("scores.jsonl"), again.json("run.json")["run_id"]) == (0, scores, run_id)
    assert again.json("run.json")["starts"] == 2
    other = toy(ANSWERED, judgements, "benchmark.strict=true")
    assert other.code == 2
    assert other.bytes("scores.jsonl") == scores


def test_every_file_of_a_run_fits_its_schema(toy: Callable[..., Run]) -> None:
    import jsonschema

    from core.schemas import FILES, load

    result = toy(ANSWERED, verdicts(p1=True, p2=None, n1=False))
    for name, schema in FILES.items():
        validator = jsonschema.Draft202012Validator(load(schema))
        rows = [result.json(name)] if name.endswith(".json") else result.rows(name)
        assert rows
        for row in rows:
            validator.validate(row)
