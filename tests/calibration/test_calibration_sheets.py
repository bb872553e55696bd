"""The sampler and the blind sheet: known chances, nothing of the judge's in it, and everything found again."""

from __future__ import annotations

import csv
import json
import random
from collections import Counter
from pathlib import Path

import pytest
from fakes.run_folders import task_rows, write_run
from fakes.runs import Run, run

from core.calibrate import main
from core.calibration.build import calibrate
from core.calibration.cells import original, read_csv
from core.calibration.judged import read_judged
from core.calibration.material import record_line
from core.calibration.results import Settings
from core.calibration.sample import Allocation, Stratified, draw
from core.calibration.sheet import COLUMNS, Wanted, draw_sheet, write_sheet
from core.errors import InputError
from core.model import Submission
from core.plugin_manager import PluginManager


def items(sizes: dict[str, int]) -> list[Stratified]:
    return [Stratified((name, f"{place:03d}"), (name,)) for name, size in sizes.items() for place in range(size)]


def shares(drawn: list[tuple[Stratified, float]]) -> dict[str, int]:
    return dict(Counter(str(item.stratum[0]) for item, _ in drawn))


@pytest.mark.parametrize("n", [1, 7, 50, 99])
@pytest.mark.parametrize("allocation", ["proportional", "equal"])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_so_many_are_drawn_each_once(n: int, allocation: Allocation, seed: int) -> None:
    drawn = draw(items({"a": 70, "b": 25, "c": 5}), n, seed=seed, allocation=allocation)
    assert len(drawn) == n
    assert len({item.key for item, _ in drawn}) == n
    assert all(weight >= 1 for _, weight in drawn)


@pytest.mark.parametrize(
    ("allocation", "n", "expected"),
    [
        ("proportional", 20, {"a": 14, "b": 5, "c": 1}),
        ("equal", 30, {"a": 12.5, "b": 12.5, "c": 5}),
        ("equal", 12, {"a": 4, "b": 4, "c": 4}),
    ],
)
def test_strata_give_what_they_should(allocation: Allocation, n: int, expected: dict[str, float]) -> None:
    drawn = draw(items({"a": 70, "b": 25, "c": 5}), n, seed=4, allocation=allocation)
    assert all(abs(shares(drawn)[name] - count) < 1 for name, count in expected.items())


def test_the_same_seed_draws_the_same_whatever_the_order() -> None:
    given = items({"a": 30, "b": 10})
    other = random.Random(1).sample(given, len(given))
    assert draw(given, 8, seed=3) == draw(other, 8, seed=3)
    assert draw(given, 8, seed=3) != draw(given, 8, seed=4)


def test_all_are_drawn_where_there_are_no_more() -> None:
    drawn = draw(items({"a": 3, "b": 2}), 9, seed=0)
    assert [weight for _, weight in drawn] == [1] * 5


def test_more_strata_than_draws_leave_nobody_without_a_chance() -> None:
    given = items({f"s{place}": 1 for place in range(10)})
    seen = {item.key for seed in range(60) for item, _ in draw(given, 3, seed=seed, allocation="equal")}
    assert len(seen) == 10


def test_nothing_to_draw() -> None:
    with pytest.raises(ValueError, match="expected 1 or more"):
        draw(items({"a": 3}), 0, seed=0)


@pytest.mark.parametrize("allocation", ["proportional", "equal"])
def test_weighted_shares_are_those_of_the_whole_on_average(allocation: Allocation) -> None:
    """Errors are rare and sit in the rare stratum: an unweighted share of an equal draw would be far off."""
    given = items({"common": 90, "rare": 10})
    right = {item.key: item.stratum == ("common",) or int(item.key[1]) % 2 == 0 for item in given}
    totals = [
        sum(weight * right[item.key] for item, weight in draw(given, 20, seed=seed, allocation=allocation))
        for seed in range(3000)
    ]
    assert sum(totals) / len(totals) == pytest.approx(95, abs=0.6)


# sheets

WEIGHTS = {"c1": 10.0, "c2": 5.0, "c3": -10.0}
HOSTILE = {
    "=1+1": "=cmd|' /C calc'!A0",
    "+a,b": "@SUM(1)\r\nnext",
    '-x"y': "\ttab",
    "'=q": "plain ünï \u2028 text",
}


def hostile_run(folder: Path) -> Path:
    said = {
        task: {unit: [(place + at) % 2 == 0] for at, unit in enumerate(WEIGHTS)}
        for place, task in enumerate(HOSTILE)
    }
    tasks = task_rows(HOSTILE, criteria=WEIGHTS)
    return write_run(
        folder, {task: [50.0] for task in HOSTILE}, tasks=tasks, said=said, answers=HOSTILE,
        judge="judge-zebra", explanation="SECRET-REASON",
    )  # fmt: skip


def sheet(path: Path) -> list[dict[str, str]]:
    return [row for _, row in read_csv(path)]


def test_a_sheet_is_blind_and_safe(tmp_path: Path) -> None:
    folder = hostile_run(tmp_path / "run")
    write_sheet(tmp_path / "s.csv", folder, Wanted(n=100))
    text = (tmp_path / "s.csv").read_text(encoding="utf-8-sig")
    for word in ("judge-zebra", "SECRET-REASON", '"met": true', '"met": false'):
        assert word not in text
    with (tmp_path / "s.csv").open(encoding="utf-8-sig", newline="") as file:
        cells = [cell for row in csv.reader(file) for cell in row]
    assert not [cell for cell in cells if cell.startswith(("=", "+", "-", "@", "\t", "\r", "\n"))]
    rows = sheet(tmp_path / "s.csv")
    assert tuple(rows[0]) == COLUMNS
    assert {row["label"] for row in rows} == {""}
    assert {row["task_id"] for row in rows} == set(HOSTILE)
    assert all(HOSTILE[row["task_id"]].split("\r")[0].strip() in row["shown"] for row in rows)
    assert {row["kind"] for row in rows} == {"sign positive; axis facts", "sign negative; axis facts"}


def test_ids_come_back_to_the_byte(tmp_path: Path) -> None:
    folder = hostile_run(tmp_path / "run")
    write_sheet(tmp_path / "s.csv", folder, Wanted(n=100))
    judged = read_judged(folder)
    rows = sheet(tmp_path / "s.csv")
    for row in rows:
        key = row["task_id"], int(row["attempt"]), row["unit"]
        assert key in judged.rows
        assert row["id"] == judged.sheet_id(key, row["check"])
    assert len({row["id"] for row in rows}) == len(rows) == 12


def filled(path: Path, out: Path, folder: Path, *, wrong: int = 0, columns: tuple[str, ...] = COLUMNS) -> Path:
    """The sheet as a labeller sends it back: saved by another program, right but for the first rows."""
    judged = read_judged(folder)
    with path.open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))
    for place, row in enumerate(rows):
        key = original(row["task_id"]), int(row["attempt"]), original(row["unit"])
        verdict = next(iter(judged.rows[key].values())).verdict or {}
        met = bool(verdict[row["check"]]) != (place < wrong)
        row["label"], row["labeller"] = "MET" if met else "unmet", "ann"
    with out.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, columns, delimiter=";", extrasaction="ignore")
        writer.writeheader()
        writer.writerows(rows)
    return out


@pytest.mark.parametrize("columns", [COLUMNS, ("id", "label"), ("task_id", "attempt", "unit", "label")])
def test_a_filled_sheet_finds_its_verdicts(tmp_path: Path, columns: tuple[str, ...]) -> None:
    folder = hostile_run(tmp_path / "run")
    write_sheet(tmp_path / "s.csv", folder, Wanted(n=100))
    back = filled(tmp_path / "s.csv", tmp_path / "back.csv", folder, wrong=3, columns=columns)
    found = calibrate(back, [folder], Settings(resamples=100))
    accuracy = found.judges[0].checks[0].rates.accuracy
    assert accuracy is not None
    assert (accuracy.count, accuracy.total) == (9, 12)


def test_a_sheet_of_another_answer_is_refused(tmp_path: Path) -> None:
    folder = hostile_run(tmp_path / "run")
    write_sheet(tmp_path / "s.csv", folder, Wanted(n=100))
    back = filled(tmp_path / "s.csv", tmp_path / "back.csv", folder)
    said = {task: {unit: [True] for unit in WEIGHTS} for task in HOSTILE}
    other = write_run(
        tmp_path / "other",
        {task: [50.0] for task in HOSTILE},
        tasks=task_rows(HOSTILE, criteria=WEIGHTS),
        said=said,
    )
    with pytest.raises(InputError, match="drawn from another answer"):
        calibrate(back, [other], Settings(resamples=100))


def test_a_sheet_finds_its_run_by_itself(in_tmp: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = hostile_run(in_tmp / "runs" / "one")
    write_sheet(in_tmp / "s.csv", folder, Wanted(n=100))
    filled(in_tmp / "s.csv", in_tmp / "back.csv", folder)
    assert main(["labels=back.csv"]) == 0
    assert "judge-zebra" in capsys.readouterr().out


def test_weights_are_read_back(tmp_path: Path) -> None:
    names = [f"t{place:02d}" for place in range(40)]
    said = {task: {"c1": [place % 10 == 0], "c2": [False], "c3": [False]} for place, task in enumerate(names)}
    folder = write_run(
        tmp_path / "run", {task: [50.0] for task in names}, tasks=task_rows(names, criteria=WEIGHTS), said=said
    )
    write_sheet(tmp_path / "s.csv", folder, Wanted(n=20, per=("verdict",), allocation="equal"))
    back = filled(tmp_path / "s.csv", tmp_path / "back.csv", folder, wrong=2)
    rows = sheet(back)
    found = calibrate(back, [folder], Settings(resamples=100, least=1))
    rates = found.judges[0].checks[0].rates
    assert rates.weighted
    assert rates.accuracy is not None
    weights = [float(row["weight"]) for row in rows]
    assert rates.accuracy.value == pytest.approx(1 - sum(weights[:2]) / sum(weights))
    assert sum(weights) == pytest.approx(120, rel=0.15)
    assert found.judges[0].checks[0].share.analytic is None


def test_rule_rows_and_lost_ones_are_not_drawn(tmp_path: Path) -> None:
    folder = hostile_run(tmp_path / "run")
    file = folder / "judgements.jsonl"
    rows = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    rows[0]["judge"] = "rule"
    rows[1] |= {"verdict": None, "error": {"kind": "timeout", "message": ""}}
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    drawn = draw_sheet(read_judged(folder), Wanted(n=100), PluginManager.discover())
    assert (drawn.n_units, drawn.apart["by_rule"], drawn.apart["missing"]) == (10, 1, 1)
    units = {(row["task_id"], row["unit"]) for row in drawn.rows}
    assert not units & {(row["task_id"], row["unit"]) for row in rows[:2]}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ["--n", "8"],
            "note: 2 of 2 tasks have fewer than 10 rows on the check that decides (4): blocking will say",
        ),
        (["--n", "24"], None),
    ],
)
def test_drawing_says_where_blocking_will_lack_labels(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str], said: str | None
) -> None:
    units = {f"c{number}": 10.0 for number in range(12)}
    folder = write_run(
        tmp_path / "run", {"t0": [50.0], "t1": [50.0]}, tasks=task_rows(["t0", "t1"], criteria=units),
        said={task: {unit: [True] for unit in units} for task in ("t0", "t1")},
    )  # fmt: skip
    assert main(["sample", str(folder), "--out", str(tmp_path / "s.csv"), *words]) == 0
    printed = capsys.readouterr().out
    assert "too few" not in printed if said is None else said in printed


def test_a_run_without_verdicts(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", {"t": [50.0]}, said={"t": {"c1": [None]}})
    with pytest.raises(InputError, match="no verdict of a judge"):
        write_sheet(tmp_path / "s.csv", folder, Wanted(n=5))


# whole runs of the packaged demonstrations


@pytest.fixture(scope="module")
def demos(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Run]:
    folder = tmp_path_factory.mktemp("demos")
    return {name: run(folder / name, f"experiment={name}") for name in ("demo_draco", "demo_dag", "demo_wandr")}


@pytest.mark.parametrize(
    ("name", "n", "group", "kinds", "corrected"),
    [
        ("demo_draco", 26, "sign", ("negative", "positive"), True),
        ("demo_dag", 57, "type", ("analytical", "evidential"), True),
        ("demo_wandr", 21, None, (), False),
    ],
)
def test_a_demonstration_is_sampled_and_calibrated(
    demos: dict[str, Run],
    tmp_path: Path,
    name: str,
    n: int,
    group: str | None,
    kinds: tuple[str, ...],
    corrected: bool,
) -> None:
    folder = demos[name].folder
    drawn = write_sheet(tmp_path / "s.csv", folder, Wanted(n=1000))
    assert (drawn.n_units, drawn.n_exact) == (n, n), "every row shows to the letter what the judge was shown"
    back = filled(tmp_path / "s.csv", tmp_path / "back.csv", folder)
    found = calibrate(back, [folder], Settings(resamples=100, least=1))
    (report,) = found.judges
    accuracy = report.checks[0].rates.accuracy
    assert accuracy is not None
    assert (accuracy.value, accuracy.total) == (1, n)
    score = report.score
    assert (score.group, score.kinds) == (group, kinds)
    assert score.reported == pytest.approx(demos[name].value(score.metric))
    if corrected:
        assert score.by_kind.value == pytest.approx(score.reported)
        assert score.pooled.value == pytest.approx(score.reported)
    else:
        assert score.by_kind.value is None
        assert score.by_kind.why is not None
        assert "no weighted sum" in score.by_kind.why
        share = report.checks[0].share
        assert share.value == pytest.approx(share.apparent)


def test_a_record_is_shown_with_its_page_and_excerpts(demos: dict[str, Run], tmp_path: Path) -> None:
    write_sheet(tmp_path / "s.csv", demos["demo_wandr"].folder, Wanted(n=1000))
    row = next(row for row in sheet(tmp_path / "s.csv") if row["unit"] == "record/lighthouses/0")
    assert "https://register.sundry.example/lights/corran-head" in row["asked"]
    assert "first lit on 4 May 1871" in row["asked"]
    assert "PAGE TEXT" in row["shown"]
    assert row["prompt"].startswith("Research the open web")


def test_every_check_of_a_record_can_be_labelled(demos: dict[str, Run], tmp_path: Path) -> None:
    folder = demos["demo_wandr"].folder
    write_sheet(tmp_path / "s.csv", folder, Wanted(n=3, checks=("verdict", "excerpts_faithful")))
    assert len(sheet(tmp_path / "s.csv")) == 6
    back = filled(tmp_path / "s.csv", tmp_path / "back.csv", folder)
    (report,) = calibrate(back, [folder], Settings(resamples=100)).judges
    assert [(check.check, check.decides, check.rates.n) for check in report.checks] == [
        ("verdict", True, 3), ("excerpts_faithful", False, 3),
    ]  # fmt: skip
    with pytest.raises(InputError, match="no verdict has such a check; expected one of"):
        write_sheet(tmp_path / "t.csv", folder, Wanted(n=3, checks=("colour",)))


def test_where_pages_are_gone_a_record_stands_for_itself(demos: dict[str, Run], tmp_path: Path) -> None:
    import shutil

    folder = tmp_path / "run"
    shutil.copytree(demos["demo_wandr"].folder, folder)
    facts = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    facts["config"]["pages"]["path"] = str(tmp_path / "nowhere")
    (folder / "run.json").write_text(json.dumps(facts), encoding="utf-8")
    drawn = write_sheet(tmp_path / "s.csv", folder, Wanted(n=1000))
    assert drawn.n_exact == 0
    row = next(row for row in sheet(tmp_path / "s.csv") if row["unit"] == "record/lighthouses/0")
    assert json.loads(row["asked"])["url"] == "https://register.sundry.example/lights/corran-head"
    assert "can't be made again" in row["note"]


@pytest.mark.parametrize(
    ("unit", "expected"),
    [
        ("record/a/0", '{"n": 0}'),
        ("record/a/1", '{"n": 1}'),
        ("record/a/2", None),
        ("record/a.b/0", "x"),
        ("record/c/0", None),
        ("record/a/x", None),
        ("criterion/c1", None),
        ("page/https://x/1", None),
    ],
)
def test_the_line_of_a_record(unit: str, expected: str | None) -> None:
    submission = Submission(
        task_id="t", files={"results_a.jsonl": '\ufeff{"n": 0}\n\n{"n": 1}\n', "results_a.b.jsonl": "x"}
    )
    assert record_line(submission, unit) == expected
