"""The same answers on other pages: what moved, and what it is put down to."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from aiohttp import web
from conftest import ROOT
from fakes.loop_server import LoopServer
from fakes.run_folders import write_run
from fakes.runs import Run, run, write_rows

from core.calibrate import main
from core.calibration.drift import Drift, as_json, drift
from core.calibration.results import Settings
from core.errors import InputError

SAMPLE = ROOT / "plugins" / "wandr" / "sample"
SETTINGS = Settings(resamples=200)
CORRAN, AVEN, WICK = (
    "/register.sundry.example/lights/corran-head", "/atlas.aven.example/port-aven", "/register.sundry.example/lights/wick-ness",
)  # fmt: skip


class Site(LoopServer):
    """The pages that the WANDR sample cites, each site of theirs a folder of this one; `changed` bodies and gone ones."""

    def __init__(self) -> None:
        super().__init__()
        lines = (SAMPLE / "pages" / "pages.jsonl").read_text(encoding="utf-8").splitlines()
        rows = [row for row in map(json.loads, lines) if row["status"] == "ok"]
        self.rows = {self.path(row["url"]): row for row in rows}
        self.bodies = {path: (SAMPLE / "pages" / row["file"]).read_bytes() for path, row in self.rows.items()}
        self.gone: set[str] = set()

    @staticmethod
    def path(url: str) -> str:
        parts = urlsplit(url)
        return f"/{parts.netloc}{parts.path}"

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        row = self.rows.get(request.path)
        if row is None or request.path in self.gone:
            return web.Response(status=404, text="gone")
        return web.Response(body=self.bodies[request.path], headers={"content-type": row["content_type"]})

    def archived(self, folder: Path) -> Path:
        """The pages as a folder of fixtures, as they are now."""
        (folder / "bodies").mkdir(parents=True)
        rows = []
        for number, (path, body) in enumerate(self.bodies.items()):
            (folder / "bodies" / f"{number}").write_bytes(body)
            row = {"url": self.base_url + path, "status": "ok", "content_type": self.rows[path]["content_type"]}
            rows.append({**row, "file": f"bodies/{number}"})
        write_rows(folder / "pages.jsonl", rows)
        return folder

    def submissions(self, file: Path) -> Path:
        """The sample's first submission to each task, its well-formed records citing this site."""
        rows = []
        for line in (SAMPLE / "submissions.jsonl").read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            row["files"] = {name: "\n".join(self._records(text)) for name, text in row["files"].items()}
            rows.append(row)
        return write_rows(file, rows)

    def _records(self, text: str) -> Iterator[str]:
        for line in filter(str.strip, text.splitlines()):
            try:
                record: Any = json.loads(line)
            except ValueError:
                continue
            if isinstance(record, dict) and self.path(str(record.get("url"))) in self.rows:
                yield json.dumps({**record, "url": self.base_url + self.path(record["url"])})


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Run, Run, Site]]:
    """From an archive, then from the site with two pages changed and one gone."""
    folder = tmp_path_factory.mktemp("drift")
    with Site() as site:
        words = [
            "benchmark=wandr", "benchmark.source=sample", "system=replay", f"system.path={site.submissions(folder / 's.jsonl')}",
            "judge=offline", f"pages.allow_hosts=[127.0.0.1:{site.port}]", "fail_on=never", "benchmark.coverage_floor=0.5",
        ]  # fmt: skip
        first = run(folder / "first", *words, "pages=fixtures", f"pages.path={site.archived(folder / 'pages')}")
        for path, (old, new) in {CORRAN: (b"1871", b"1899"), AVEN: (b"184,200", b"190,000")}.items():
            assert old in site.bodies[path]
            site.bodies[path] = site.bodies[path].replace(old, new)
        site.gone.add(WICK)
        second = run(folder / "second", *words, "pages=web", "pages.control_hosts=[]")
        yield first, second, site


def test_pages_and_verdicts_that_moved(runs: tuple[Run, Run, Site]) -> None:
    first, second, site = runs
    found = drift(first.folder, second.folder, SETTINGS)
    changes = {page.url.removeprefix(site.base_url): page.change for page in found.pages if page.change != "same"}
    assert changes == {CORRAN: "text", AVEN: "text", WICK: "status"}
    gone = next(page for page in found.pages if page.url.endswith(WICK))
    assert (gone.status, gone.units) == (("ok", "not_found"), 1)
    changed = next(page for page in found.pages if page.url.endswith(CORRAN))
    assert None not in changed.digest
    assert changed.digest[0] != changed.digest[1]

    flips = {(flip.unit, flip.first, flip.second, flip.question, flip.cause) for flip in found.flips}
    assert ("record/lighthouses/0", True, False, "changed", "page") in flips
    assert ("record/cities/0", True, False, "changed", "page") in flips
    assert {flip.cause for flip in found.flips} == {"page"}
    assert all(flip.url is not None and flip.url.endswith((CORRAN, AVEN, WICK)) for flip in found.flips)

    assert (found.noise.flipped, found.noise.rate, found.reused, found.by_noise) == (0, 0, 0, 0)
    assert found.noise.n == found.questions["same"]
    assert found.questions["one"] == 1
    assert sum(found.questions.values()) == found.n_units
    assert found.notes == ()


def test_how_far_the_score_moved(runs: tuple[Run, Run, Site]) -> None:
    first, second, _ = runs
    score = drift(first.folder, second.folder, SETTINGS).score
    assert (score.metric, score.n) == ("soft_f1", 3)
    assert score.first == pytest.approx(first.value("soft_f1"))
    assert score.second == pytest.approx(second.value("soft_f1"))
    assert score.difference is not None
    assert score.difference < 0
    assert score.by_task is not None
    assert score.by_task.low <= score.difference <= score.by_task.high


def test_a_run_with_itself_does_not_drift(runs: tuple[Run, Run, Site]) -> None:
    found = drift(runs[0].folder, runs[0].folder, SETTINGS)
    assert (found.flips, found.score.difference) == ((), 0)
    assert {page.change for page in found.pages} == {"same"}


@pytest.mark.parametrize("form", ["text", "md", "json"])
def test_the_command(
    runs: tuple[Run, Run, Site], tmp_path: Path, capsys: pytest.CaptureFixture[str], form: str
) -> None:
    first, second, _ = runs
    words = ["drift", str(first.folder), str(second.folder), "--out", str(tmp_path / "out"), "--format", form]
    assert main(words) == 0
    assert "soft" in capsys.readouterr().out
    content = json.loads((tmp_path / "out" / "drift.json").read_text(encoding="utf-8"))
    assert content.pop("schema") == "leadline/drift/1"
    assert as_json(Drift.model_validate(content)).encode() == (tmp_path / "out" / "drift.json").read_bytes()
    assert (tmp_path / "out" / "drift.md").exists()


# by hand: what a flip is put down to

ROW = {"task_id": "t", "attempt": 1, "unit": "criterion/c1", "repeat": 1, "judge": "j", "error": None}


def by_hand(folder: Path, rows: list[Mapping[str, Any]], **more: Any) -> Path:
    write_run(folder, {"t": [50.0]}, answers={"t": "the answer"}, **more)
    (folder / "judgements.jsonl").write_text(
        "".join(json.dumps({"schema": "leadline/judgement/1", **ROW, **row}) + "\n" for row in rows),
        encoding="utf-8",
    )
    return folder


MET, UNMET = {"met": True}, {"met": False}


@pytest.mark.parametrize(
    ("first", "second", "question", "cause"),
    [
        ({"verdict": MET, "prompt_digest": "a"}, {"verdict": UNMET, "prompt_digest": "a"}, "same", "noise"),
        ({"verdict": MET, "prompt_digest": "a"}, {"verdict": UNMET, "prompt_digest": "b"}, "changed", "page"),
        ({"verdict": MET, "prompt_digest": "a"}, {"verdict": UNMET, "judge": "rule"}, "one", "page"),
        ({"verdict": MET, "judge": "rule"}, {"verdict": UNMET, "judge": "rule"}, "none", "page"),
        ({"verdict": MET}, {"verdict": UNMET}, "unknown", "unknown"),
        ({"verdict": MET, "prompt_digest": "a"}, {"verdict": None, "prompt_digest": "a"}, "same", "noise"),
        ({"verdict": MET, "prompt_digest": "a"}, None, "unknown", "unknown"),
    ],
)
def test_what_a_flip_is_put_down_to(
    tmp_path: Path, first: Mapping[str, Any], second: Mapping[str, Any] | None, question: str, cause: str
) -> None:
    one = by_hand(tmp_path / "a", [first])
    other = by_hand(tmp_path / "b", [] if second is None else [second])
    found = drift(one, other, SETTINGS)
    (flip,) = found.flips
    assert (flip.question, flip.cause) == (question, cause)
    assert found.lost == (flip.second is None)


def test_an_answer_from_the_store_says_nothing_of_noise(tmp_path: Path) -> None:
    row = {"verdict": MET, "prompt_digest": "a", "judged_at": "2026-01-01T00:00:00+00:00"}
    found = drift(by_hand(tmp_path / "a", [row]), by_hand(tmp_path / "b", [row]), SETTINGS)
    assert (found.reused, found.noise.n, found.noise.rate, found.by_noise) == (1, 0, None, None)
    assert any("taken from the store" in note for note in found.notes)


@pytest.mark.parametrize(
    ("other", "facts"),
    [({"judge": "k"}, {}), ({}, {"judge_settings": {"model": "newer"}}), ({"judge": "k"}, {"judge_settings": {}})],
)
@pytest.mark.parametrize(
    ("digest", "question", "cause"),
    [("a", "same", "unknown"), ("b", "changed", "unknown"), (None, "none", "page")],
)
def test_of_two_judges_no_flip_is_noise(
    tmp_path: Path,
    other: Mapping[str, Any],
    facts: Mapping[str, Any],
    digest: str | None,
    question: str,
    cause: str,
) -> None:
    rule = {"judge": "rule"} if digest is None else {}
    pair = (
        {"verdict": MET, "prompt_digest": "a", **rule},
        {"verdict": UNMET, "prompt_digest": digest, **other, **rule},
    )
    # the runs' judges differ by a row of their own, whatever the row in question is
    more = [{"unit": "criterion/c2", "verdict": MET}, {"unit": "criterion/c2", "verdict": MET, **other}]
    one = by_hand(tmp_path / "a", [pair[0], more[0]])
    two = by_hand(tmp_path / "b", [pair[1], more[1]], facts=facts)
    found = drift(one, two, SETTINGS)
    (flip,) = found.flips
    assert (flip.question, flip.cause) == (question, cause)
    assert (found.noise.n, found.noise.rate, found.by_noise) == (0, None, None)
    assert "the judges differ" in " ".join(found.notes)


def attempts(folder: Path, numbers: Mapping[int, list[float | None]], answers: Mapping[int, str]) -> Path:
    """A task of several attempts, each with its answer and a number for each repeat."""
    write_run(folder, {"t": [50.0]}, config={"attempts": len(answers)})
    means = [
        sum(there) / len(there) for found in numbers.values() if (there := [x for x in found if x is not None])
    ]
    score = json.loads((folder / "scores.jsonl").read_text(encoding="utf-8"))
    score["metrics"]["normalized"] = sum(means) / len(means)
    score["by_run"] = [
        {"attempt": attempt, "repeat": repeat, "metrics": {"normalized": x}, "n_graded": 1, "n_expected": 1}
        for attempt, found in numbers.items()
        for repeat, x in enumerate(found, start=1)
    ]
    write_rows(folder / "scores.jsonl", [score])
    rows = [
        {"schema": "leadline/submission/1", "task_id": "t", "attempt": number, "status": "completed", "text": text}
        for number, text in answers.items()
    ]
    write_rows(folder / "submissions.jsonl", rows)
    return folder


@pytest.mark.parametrize(
    ("first", "second", "answers", "expected"),
    [
        ({1: [50], 2: [50]}, {1: [50], 2: [80]}, {1: "a", 2: "other"}, (50, 50, 0, 1)),
        ({1: [40], 2: [50]}, {1: [60], 2: [80]}, {1: "a", 2: "b"}, (45, 70, 25, 1)),
        ({1: [40, 60], 2: [0]}, {1: [70], 2: [0]}, {1: "a", 2: "other"}, (50, 70, 20, 1)),
        ({1: [40], 2: [90], 3: [0]}, {1: [None], 2: [80], 3: [0]}, {1: "a", 2: "b", 3: "other"}, (90, 80, -10, 1)),
        ({1: [40], 2: [90]}, {1: [None], 2: [80]}, {1: "a", 2: "other"}, (None, None, None, 0)),
    ],
)
def test_the_score_rests_on_the_answers_that_both_have(
    tmp_path: Path,
    first: Mapping[int, list[float | None]],
    second: Mapping[int, list[float | None]],
    answers: Mapping[int, str],
    expected: tuple[float | None, float | None, float | None, int],
) -> None:
    mine = dict(zip(answers, "abc", strict=False))
    one, two = attempts(tmp_path / "a", first, mine), attempts(tmp_path / "b", second, answers)
    score = drift(one, two, SETTINGS).score
    assert (score.first, score.second, score.difference, score.n) == expected


def test_noise_is_told_from_pages(tmp_path: Path) -> None:
    def rows(flipped: set[int], digest: str) -> list[Mapping[str, Any]]:
        return [
            {
                "unit": f"criterion/c{number}",
                "verdict": UNMET if number in flipped else MET,
                "prompt_digest": f"{number}" if number < 20 else f"{number}{digest}",
            }
            for number in range(30)
        ]

    found = drift(
        by_hand(tmp_path / "a", rows(set(), "a")), by_hand(tmp_path / "b", rows({0, 1, 25, 26, 27}, "b")), SETTINGS
    )
    assert (found.noise.n, found.noise.flipped, found.changed.n, found.changed.flipped) == (20, 2, 10, 3)
    assert found.by_noise == 1


def test_other_judges_and_prompts_are_noted(tmp_path: Path) -> None:
    one = by_hand(tmp_path / "a", [{"verdict": MET}])
    other = by_hand(tmp_path / "b", [{"verdict": MET, "judge": "k"}], facts={"prompt_digest": "q"})
    notes = " ".join(drift(one, other, SETTINGS).notes)
    assert "the judges differ (j; k)" in notes
    assert "the judges' prompts differ" in notes


def test_runs_without_an_answer_in_common_are_refused(tmp_path: Path) -> None:
    one = by_hand(tmp_path / "a", [{"verdict": MET}])
    other = write_run(tmp_path / "b", {"t": [50.0]}, answers={"t": "another answer"})
    with pytest.raises(InputError, match="the runs have no answer in common"):
        drift(one, other, SETTINGS)
