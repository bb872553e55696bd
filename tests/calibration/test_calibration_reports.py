"""Labels against run folders: what is reported, what is kept apart, what is refused; the command."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from fakes.run_folders import task_rows, write_run

from core.calibrate import main
from core.calibration.build import as_json, calibrate, write_files
from core.calibration.fold import groups_of, points_of
from core.calibration.results import Apart, Calibration, Check, Confusion, Settings
from core.errors import InputError
from core.model import Submission, Task
from core.plugin_manager import PluginManager

WEIGHTS = {"c1": 10.0, "c2": 10.0, "c3": 5.0, "c4": -10.0}
TASKS = [f"t{number:02d}" for number in range(12)]
Said = dict[str, dict[str, list[bool | None]]]
SETTINGS = Settings(resamples=200, least=3)


def truth(seed: int = 3) -> dict[tuple[str, str], bool]:
    rng = random.Random(seed)
    return {(task, unit): rng.random() < 0.5 for task in TASKS for unit in WEIGHTS}


def verdicts(met: Mapping[tuple[str, str], bool], repeats: int = 1) -> Said:
    said: Said = {}
    for (task, unit), value in met.items():
        said.setdefault(task, {})[unit] = [value] * repeats
    return said


def folder(path: Path, said: Said, **more: Any) -> Path:
    """A run with these verdicts, whose scores are DRACO's own."""
    tasks = task_rows(TASKS, criteria=WEIGHTS)
    repeats = max(len(values) for units in said.values() for values in units.values())
    scores = {
        task: [
            max(0.0, sum(WEIGHTS[unit] for unit, values in units.items() if values[repeat]) / 25 * 100)
            for repeat in range(repeats)
        ]
        for task, units in said.items()
    }
    return write_run(path, scores, tasks=tasks, said=said, **more)


def labels(path: Path, rows: Sequence[Mapping[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def rows_of(met: Mapping[tuple[str, str], bool], **more: Any) -> list[dict[str, Any]]:
    return [
        {"task_id": task, "unit": f"criterion/{unit}", "label": value, **more}
        for (task, unit), value in met.items()
    ]


def one_check(found: Calibration) -> Check:
    assert len(found.judges) == 1
    assert len(found.judges[0].checks) == 1
    return found.judges[0].checks[0]


def test_perfect_labels(tmp_path: Path) -> None:
    met = truth()
    found = calibrate(
        labels(tmp_path / "l.jsonl", rows_of(met)), [folder(tmp_path / "run", verdicts(met))], SETTINGS
    )
    check, score = one_check(found), found.judges[0].score
    assert (check.check, check.decides, check.rates.n, check.rates.n_tasks) == ("met", True, 48, 12)
    assert check.rates.accuracy is not None
    assert check.rates.accuracy.value == 1
    assert check.rates.kappa.value == 1
    assert check.share.value == pytest.approx(check.share.apparent)
    assert (score.metric, score.group, score.kinds) == ("normalized", "sign", ("negative", "positive"))
    for corrected in (score.by_kind, score.pooled):
        assert corrected.value == corrected.apparent
        assert corrected.why is None
    assert {row.blocked for row in found.judges[0].audit} == {"too few"}
    assert (found.judges[0].blocked, found.notes) == ((), ())


def test_by_sign_and_axis(tmp_path: Path) -> None:
    met = truth()
    wrong = {(task, unit): not value if unit == "c4" else value for (task, unit), value in met.items()}
    found = calibrate(
        labels(tmp_path / "l.jsonl", rows_of(met)), [folder(tmp_path / "run", verdicts(wrong))], SETTINGS
    )
    check = one_check(found)
    accuracies = {
        (group, member): rates.accuracy.value
        for group, members in check.groups.items()
        for member, rates in members.items()
        if rates.accuracy is not None
    }
    assert accuracies == {("axis", "facts"): 0.75, ("sign", "negative"): 0, ("sign", "positive"): 1}
    assert check.shares["sign"]["positive"].value == pytest.approx(check.shares["sign"]["positive"].apparent)
    assert check.shares["sign"]["negative"].why is not None
    assert found.judges[0].score.by_kind.why is not None
    assert "negative: sensitivity + specificity is 1 or less" in found.judges[0].score.by_kind.why


def test_a_score_is_corrected_by_what_labels_tell(tmp_path: Path) -> None:
    """The judge overlooks half of the errors and some merits; each kind is corrected by its own rates."""
    met = {(task, unit): unit != "c4" or place < 6 for place, task in enumerate(TASKS) for unit in WEIGHTS}
    met |= {(task, "c1"): place % 2 == 0 for place, task in enumerate(TASKS)}
    said = dict(met)
    for place, task in enumerate(TASKS):
        said[task, "c4"] = met[task, "c4"] and place % 2 == 0
        said[task, "c2"] = place % 3 != 0
    found = calibrate(
        labels(tmp_path / "l.jsonl", rows_of(met)), [folder(tmp_path / "run", verdicts(said))], SETTINGS
    )
    score = found.judges[0].score
    # merits: 26 of 30 met ones are seen, and none of the 6 others; faults: 3 of 6, and none of the 6 others
    assert score.by_kind.value == pytest.approx((200 / (26 / 30) - 30 / (3 / 6)) / 25 * 100 / 12)
    assert score.by_kind.apparent == pytest.approx(
        sum(WEIGHTS[unit] for (_, unit), value in said.items() if value) / 25 * 100 / 12
    )


def test_repeats_by_majority_and_each(tmp_path: Path) -> None:
    met = truth()
    said: Said = {}
    for (task, unit), value in met.items():
        said.setdefault(task, {})[unit] = [value, value, not value]
    found = calibrate(labels(tmp_path / "l.jsonl", rows_of(met)), [folder(tmp_path / "run", said)], SETTINGS)
    check = one_check(found)
    assert check.rates.accuracy is not None
    assert check.rates.accuracy.value == 1
    values = [rates.accuracy.value for rates in check.repeats.values() if rates.accuracy is not None]
    assert (list(check.repeats), values) == (["1", "2", "3"], [1, 1, 0])
    # what is corrected is the mean of repeats: each verdict is right two times of three
    assert found.judges[0].score.pooled.value is not None


def test_a_label_of_one_repeat_speaks_of_that_one(tmp_path: Path) -> None:
    said: Said = {"t00": {"c1": [True, False, False]}}
    rows = [{"task_id": "t00", "unit": "criterion/c1", "label": "met", "repeat": 1}]
    found = calibrate(labels(tmp_path / "l.jsonl", rows), [folder(tmp_path / "run", said)], SETTINGS)
    check = one_check(found)
    assert (check.rates.n, check.rates.confusion.tp, check.rates.confusion.fn) == (1, 1, 0)
    assert [rates.n for rates in check.repeats.values()] == [1, 0, 0]


@pytest.mark.parametrize(
    ("judge", "label", "expected", "apart"),
    [
        ([True, False, False], {1: "met", 2: "met", 3: "met"}, Confusion(fn=1), Apart()),
        ([True, False, False], {1: "met", 2: "met"}, Confusion(), Apart(tied=1)),
        ([True, True, False], {1: "met", 2: "met", 3: "unmet"}, Confusion(tp=1), Apart()),
        ([True, True, False], {1: "met", 2: "unmet"}, Confusion(), Apart(disputed=1)),
        ([True, False, False], {None: "unmet", 1: "unmet"}, Confusion(tn=1), Apart()),
    ],
)
def test_labels_of_a_verdicts_repeats_count_once(
    tmp_path: Path, judge: list[bool | None], label: dict[int | None, str], expected: Confusion, apart: Apart
) -> None:
    rows = [
        {"task_id": "t00", "unit": "criterion/c1", "label": word, "repeat": number}
        for number, word in label.items()
    ]
    run = folder(tmp_path / "run", {"t00": {"c1": judge}})
    check = one_check(calibrate(labels(tmp_path / "l.jsonl", rows), [run], SETTINGS))
    assert (check.rates.confusion, check.apart) == (expected, apart)
    for group in check.groups.values():
        assert [rates.confusion for rates in group.values()] == [expected]


def test_repeats_of_two_verdicts_block_no_task(tmp_path: Path) -> None:
    rows = [
        {"task_id": "t00", "unit": f"criterion/{unit}", "label": "unmet", "repeat": number}
        for unit in ("c1", "c2")
        for number in range(1, 6)
    ]
    run = folder(tmp_path / "run", {"t00": {"c1": [True] * 5, "c2": [True] * 5}})
    (report,) = calibrate(labels(tmp_path / "l.jsonl", rows), [run], Settings(resamples=200)).judges
    (row,) = report.audit
    assert (row.errors, row.n, row.blocked, report.blocked) == (2, 2, "too few", ())
    assert row.wilson is not None
    assert row.wilson.low < 0.35
    assert report.score.by_kind.why == "positive: 0 labels met and 2 unmet, expected 10 of each"


def test_what_has_no_verdict_is_apart_and_never_wrong(tmp_path: Path) -> None:
    met = truth()
    said = verdicts(met, repeats=2)
    said["t00"]["c1"] = [None, None]
    said["t00"]["c2"] = [True, False]
    said["t00"]["c3"] = [met["t00", "c3"], None]
    run = folder(tmp_path / "run", said)
    ruled = [json.loads(line) for line in (run / "judgements.jsonl").read_text().splitlines()]
    for row in ruled:
        if row["task_id"] == "t01" and row["unit"] == "criterion/c1":
            row["judge"], row["verdict"] = "rule", {"met": False}
        if row["task_id"] == "t01" and row["unit"] == "criterion/c2":
            row["verdict"] = {"met": True, "confidence": 1}
    (run / "judgements.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ruled))
    disputed = [
        {"task_id": "t01", "unit": "criterion/c3", "label": label, "labeller": who}
        for who, label in (("ann", "met"), ("bob", "unmet"))
    ]
    rows = [*(row for row in rows_of(met) if (row["task_id"], row["unit"]) != ("t01", "criterion/c3")), *disputed]
    check = one_check(calibrate(labels(tmp_path / "l.jsonl", rows), [run], SETTINGS))
    assert check.apart == Apart(missing=1, by_rule=1, unsure=1, tied=1, disputed=1)
    assert (check.rates.n, check.rates.confusion.fn, check.rates.confusion.fp) == (43, 0, 0)


def test_labellers_with_each_other(tmp_path: Path) -> None:
    met = truth()
    others = {key: not value if key[1] == "c1" else value for key, value in met.items()}
    rows = [*rows_of(met, labeller="ann"), *rows_of(others, labeller="bob"), *rows_of(met, labeller="cy")]
    found = calibrate(labels(tmp_path / "l.jsonl", rows), [folder(tmp_path / "run", verdicts(met))], SETTINGS)
    people = found.labellers
    assert people is not None
    assert people.names == ("ann", "bob", "cy")
    assert [(pair.first, pair.second, pair.n, pair.agreement) for pair in people.pairs] == [
        ("ann", "bob", 48, 0.75), ("ann", "cy", 48, 1.0), ("bob", "cy", 48, 0.75),
    ]  # fmt: skip
    assert people.alpha is not None
    accuracy = one_check(found).rates.accuracy
    assert accuracy is not None
    assert accuracy.value == 1, "most labellers are right"


def test_several_judges_of_the_same_answers(tmp_path: Path) -> None:
    met = truth()
    runs = [
        folder(tmp_path / "a", verdicts(met), judge="good"),
        folder(tmp_path / "b", verdicts({key: not value for key, value in met.items()}), judge="bad"),
    ]
    found = calibrate(labels(tmp_path / "l.jsonl", rows_of(met)), runs, SETTINGS)
    accuracies = {
        report.judge: report.checks[0].rates.accuracy.value
        for report in found.judges
        if report.checks[0].rates.accuracy is not None
    }
    assert accuracies == {"good": 1, "bad": 0}


def test_blocked_tasks(tmp_path: Path) -> None:
    met = truth()
    wrong = dict(met)
    for unit in ("c1", "c2"):
        wrong["t03", unit] = not wrong["t03", unit]
    found = calibrate(
        labels(tmp_path / "l.jsonl", rows_of(met)),
        [folder(tmp_path / "run", verdicts(wrong))],
        SETTINGS.model_copy(update={"audit_least": 4}),
    )
    assert found.judges[0].blocked == ("t03",)
    by_task = {row.task_id: (row.errors, row.n, row.blocked) for row in found.judges[0].audit}
    assert (by_task["t03"], by_task["t04"]) == ((2, 4, "yes"), (0, 4, "no"))


LABEL = {"task_id": "t00", "unit": "criterion/c1", "label": "met"}


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([{**LABEL, "unit": "criterion/c9"}], "line 1, field unit: task 't00' has no such unit"),
        ([{**LABEL, "unit": "criterion/c9"}], "'criterion/c4'"),
        ([LABEL, {**LABEL, "task_id": "t0O"}], "line 2, field task_id: no run has this task"),
        ([{**LABEL, "task_id": "t0O"}], "the nearest: 't"),
        ([{**LABEL, "attempt": 2}], "field attempt: the task has no such attempt; expected one of 1"),
        ([{**LABEL, "repeat": 2}], "field repeat: there is no such repeat; expected one of 1"),
        ([{**LABEL, "check": "faithful"}], "field check: the verdict has no such check; expected one of met"),
        (
            [LABEL, {**LABEL, "label": "unmet"}],
            "line 2, field label: nobody named labels this otherwise in line 1",
        ),
        (
            [{**LABEL, "labeller": "ann"}, {**LABEL, "label": "unmet", "labeller": "ann"}],
            "labeller 'ann' labels this otherwise in line 1",
        ),
        ([{**LABEL, "id": "abc"}], "field id: the id does not belong to this unit"),
        ([{"id": "abc", "label": "met"}], "field id: no verdict of these runs has this id"),
        ([{**LABEL, "label": ""}], "none of its 1 rows is labelled"),
    ],
)
def test_labels_of_nothing_are_refused(tmp_path: Path, rows: list[dict[str, Any]], said: str) -> None:
    run = folder(tmp_path / "run", verdicts(truth()))
    with pytest.raises(InputError) as refused:
        calibrate(labels(tmp_path / "l.jsonl", rows), [run], SETTINGS)
    assert said in str(refused.value)


def test_a_label_given_twice_counts_once(tmp_path: Path) -> None:
    run = folder(tmp_path / "run", verdicts(truth()))
    found = calibrate(labels(tmp_path / "l.jsonl", [LABEL, LABEL]), [run], SETTINGS)
    assert (found.labels.labels, found.labels.verdicts, found.labels.repeated) == (2, 1, 1)
    assert one_check(found).rates.n == 1
    assert any("given twice" in note for note in found.notes)


def test_labels_speak_of_one_answer(tmp_path: Path) -> None:
    said = verdicts(truth())
    runs = [
        folder(tmp_path / "a", said, answers=dict.fromkeys(TASKS, "this")),
        folder(tmp_path / "b", said, answers=dict.fromkeys(TASKS, "that")),
    ]
    with pytest.raises(InputError, match="runs a and b have different answers to task 't00'"):
        calibrate(labels(tmp_path / "l.jsonl", [LABEL]), runs, SETTINGS)


def test_by_a_group_that_there_is_not(tmp_path: Path) -> None:
    run = folder(tmp_path / "run", verdicts(truth()))
    with pytest.raises(InputError, match="expected one of sign, axis"):
        calibrate(labels(tmp_path / "l.jsonl", [LABEL]), [run], SETTINGS.model_copy(update={"by": "colour"}))


# what the fold tells


def draco(weights: Mapping[str, float]) -> tuple[Any, Task, Submission]:
    from core.clock import RealClock
    from core.config import RunConfig
    from core.setup import make_grader, make_services

    config = RunConfig.from_tree(
        {
            "benchmark": dict.fromkeys(("name", "loader", "grader", "aggregator"), "draco")
            | {"headline": "normalized"},
            "system": {"name": "s", "adapter": "replay"},
            "judge": {"name": "j", "provider": "offline"},
        }
    )
    grader = make_grader(config, PluginManager.discover(), make_services(config, RealClock()), None)
    return grader, Task(**task_rows(["t"], criteria=weights)[0]), Submission(task_id="t", text="answer")


@pytest.mark.parametrize(
    ("weights", "expected"),
    [
        ({"a": 10, "b": 30}, {"a": 25, "b": 75}),
        ({"a": 10, "b": 10, "c": -5}, {"a": 50, "b": 50, "c": -25}),
        # held at 0: how much it takes can't be seen
        ({"a": 10, "b": -10}, None),
    ],
)
def test_points(weights: dict[str, float], expected: dict[str, float] | None) -> None:
    grader, task, submission = draco(weights)
    found = points_of(
        grader, task, submission, "met", [{f"criterion/{unit}": True for unit in weights}], "normalized"
    )
    if expected is None:
        assert found is None
    else:
        assert found is not None
        assert (found.start, found.top) == (0, 100)
        assert found.by_unit == pytest.approx({f"criterion/{unit}": value for unit, value in expected.items()})


def test_a_headline_that_is_no_sum_is_seen() -> None:
    class Gate:
        """All or nothing."""

        def score(self, task: Task, submission: Submission, rows: Sequence[Any]) -> Any:
            value = 100.0 if all(row.verdict["met"] for row in rows) else 0.0
            return type("Score", (), {"metrics": {"score": value}})

    _, task, submission = draco({"a": 1})
    verdicts = [{"u/1": True, "u/2": False}]
    assert points_of(Gate(), task, submission, "met", verdicts, "score") is None  # type: ignore[arg-type]


def test_groups() -> None:
    grader, task, submission = draco({"a": 10, "b": -5})
    assert groups_of(grader, task, submission, "criterion/b", {"met": True}) == {
        "sign": "negative",
        "axis": "facts",
    }
    assert groups_of(grader, task, submission, "criterion/x", {"met": True}) == {}


# files and the command


def test_files(tmp_path: Path) -> None:
    met = truth()
    found = calibrate(
        labels(tmp_path / "l.jsonl", rows_of(met)), [folder(tmp_path / "run", verdicts(met))], SETTINGS
    )
    write_files(tmp_path / "out", found)
    content = json.loads((tmp_path / "out" / "calibration.json").read_text(encoding="utf-8"))
    assert content.pop("schema") == "leadline/calibration/1"
    assert Calibration.model_validate(content) == found
    assert as_json(found).encode() == (tmp_path / "out" / "calibration.json").read_bytes()
    assert content["judges"][0]["blocked"] == []
    assert (tmp_path / "out" / "calibration.md").read_text(encoding="utf-8").startswith("# draco: 48 labels")


def test_names_out_of_files_are_no_markup(tmp_path: Path) -> None:
    run = folder(tmp_path / "run", verdicts(truth()), judge="<b>|x|</b>")
    found = calibrate(labels(tmp_path / "l.jsonl", [LABEL]), [run], SETTINGS)
    write_files(tmp_path / "out", found)
    assert "<b>" not in (tmp_path / "out" / "calibration.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("form", ["text", "md", "json"])
def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str], form: str) -> None:
    met = truth()
    run = folder(tmp_path / "run", verdicts(met))
    file = labels(tmp_path / "l.jsonl", rows_of(met))
    words = [f"labels={file}", f"run={run}", f"out={tmp_path / 'out'}", "--resamples", "200", "--format", form]
    assert main(words) == 0
    said = capsys.readouterr().out
    assert "judge-a" in said
    assert (tmp_path / "out" / "calibration.json").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["label=x.csv"], "no word is called 'label'; did you mean 'labels'?"),
        (["sampel", "x"], "did you mean 'sample'?"),
        (["run=x"], "no file of labels is named; expected labels=FILE"),
        (["labels=absent.csv", "run=x"], "absent.csv: can't be read"),
        (["labels=l.csv", "run=absent"], "absent: there is no such folder"),
        (["labels=l.csv"], "l.csv: the file does not say of which run its labels are; expected run=FOLDER"),
        (["labels=l.csv", "run=x", "--level", "2"], "--level: Input should be less than 1"),
        (["labels=l.csv", "run=x", "--audit-least", "0"], "--audit-least: Input should be greater"),
        (["sample", "x", "--out", "s.csv"], "x: there is no such folder"),
        (["sample", "x", "--out", "s.csv", "--n", "0"], "--n: nothing to draw"),
        (["sample", "x", "--out", "s.xlsx"], "--out: not a name of a sheet"),
        (["sample", "x", "--out", "l.csv"], "the file exists: it may hold labels"),
        (["sample", "x", "--out", "s.csv", "--per", "task,colour"], "--per: unknown name"),
        (["drift", "x", "y"], "x: there is no such folder"),
    ],
)
def test_refusals_of_the_command(
    in_tmp: Path, capsys: pytest.CaptureFixture[str], words: list[str], said: str
) -> None:
    (in_tmp / "l.csv").write_text("task_id,unit,label\nt,u,met\n")
    assert main(words) == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize("words", [["--help"], ["sample", "--help"], ["drift", "--help"]])
def test_help(words: list[str]) -> None:
    code = (
        "import sys\n"
        "from core.calibrate import main\n"
        f"try: main({words!r})\n"
        "except SystemExit as end: assert not end.code\n"
        "assert not {'numpy', 'litellm', 'datasets', 'hydra', 'pydantic'} & set(sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "core.calibrate" in done.stdout
