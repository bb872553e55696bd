"""Every view in Chromium: it opens without an error, asks nobody else, works by keyboard, and axe finds no fault.

Playwright rather than Selenium: it tells of every request and every line of the console, and needs no driver of the
browser's very version. `LEADLINE_SCREENSHOTS=DIR` keeps a picture of each view, in light and dark.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from conftest import ROOT
from fakes.run_folders import task_rows, write_run
from hostile import HOSTILE, poison_run, poison_sheet
from viewer_helpers import demo_runs

from core.calibration.labels import read_labels
from core.calibration.sheet import Wanted, write_sheet

if TYPE_CHECKING:
    from playwright.sync_api import BrowserType, Page

CHROMIUM = Path(os.environ.get("LEADLINE_CHROMIUM", "/usr/bin/chromium"))
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
         "--disable-component-update", "--disable-sync"]  # fmt: skip
SHOTS = os.environ.get("LEADLINE_SCREENSHOTS")

pytest.importorskip("playwright", reason="Playwright is not installed: the extra `test` has it")
pytest.importorskip("axe_playwright_python", reason="axe-core is not installed: the extra `test` has it")
pytestmark = pytest.mark.skipif(not CHROMIUM.exists(), reason=f"there is no browser at {CHROMIUM}")


@dataclass
class Seen:
    """A page, what its console said, and whom it asked."""

    page: Page
    base: str
    ids: dict[str, str]
    complaints: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    def open(self, path: str) -> None:
        """Go to a view; `{name}` stands for the id of a run."""
        for name, key in self.ids.items():
            path = path.replace(f"{{{name}}}", key)
        self.page.goto(self.base + path)

    def check(self) -> None:
        """Nothing was complained of, and nobody else was asked."""
        assert self.complaints == []
        assert [url for url in self.requests if not url.startswith((self.base + "/", "data:"))] == []


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Demonstrations, a sweep of systems and judges, a run that goes on, a sheet."""
    folder = demo_runs(tmp_path_factory.mktemp("looked-at"))
    names = [f"task-{place:02d}" for place in range(12)]
    criteria = {f"c{place}": -5.0 if place == 3 else 10.0 for place in range(6)}
    tasks = task_rows(names, criteria=criteria)
    (folder / "made-sweep").mkdir()
    for system, base, usd in (("alpha", 60.0, 0.4), ("beta", 52.0, 0.1)):
        for effort, more in (("low", 0.0), ("high", 14.0)):
            for judge, shift in (("judge-a", 0.0), ("judge-b", -7.0)):
                write_run(
                    folder / "made-sweep" / f"{system}-{effort}-{judge}",
                    {name: [base + more + shift + (place * 7) % 11] for place, name in enumerate(names)},
                    system=system, effort=effort, judge=judge, tasks=tasks, cost_usd=usd * (3 if more else 1),
                    latency_s=base * (4 if more else 1),
                    said={
                        name: {key: [(place + at) % (5 if shift else 4) != 0] for at, key in enumerate(criteria)}
                        for place, name in enumerate(names)
                    },
                )  # fmt: skip
    going = folder / "going-on"
    going.mkdir()
    config = json.loads((folder / "demo_draco" / "run.json").read_text())["config"]
    (going / "run.json").write_text(
        json.dumps({"schema": "leadline/run/1", "run_id": "g", "exit_code": None, "starts": 1, "config": config,
                    "started_at": "2026-03-01T08:00:00+00:00", "plan": {"submissions": 4, "judgements": 180}})
    )  # fmt: skip
    (going / ".lock").write_text(f"process {os.getpid()}")
    for name in ("submissions.jsonl", "judgements.jsonl"):
        lines = (folder / "demo_draco" / name).read_text().splitlines(keepends=True)
        (going / f"{name}.part").write_text("".join(lines[: len(lines) // 2]))
    write_sheet(folder / "sheet.csv", folder / "demo_draco", Wanted(n=8))
    return folder


@contextmanager
def viewer(*given: Path) -> Iterator[str]:
    """The command itself; gives the address that it prints."""
    with subprocess.Popen(
        [sys.executable, "-m", "core.view", *map(str, given), "--no-open"],
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    ) as process:
        try:
            assert process.stdout is not None
            yield process.stdout.readline().strip()
        finally:
            process.terminate()


@contextmanager
def looking(chromium: BrowserType, first: str, profile: Path) -> Iterator[Seen]:
    """A browser with an empty profile, let in."""
    context = chromium.launch_persistent_context(
        str(profile), executable_path=str(CHROMIUM), args=FLAGS, headless=True,
        viewport={"width": 1360, "height": 900}, color_scheme="light",
    )  # fmt: skip
    try:
        page = context.new_page()
        page.set_default_timeout(15_000)
        seen = Seen(page, first.partition("/?")[0], {})
        page.on("console", lambda line: seen.complaints.append(f"{line.type}: {line.text}"))
        page.on("pageerror", lambda error: seen.complaints.append(str(error)))
        page.on("request", lambda request: seen.requests.append(request.url))
        page.goto(first)
        runs = page.evaluate("fetch('/api/runs').then((reply) => reply.json())")
        seen.ids.update({run["name"]: run["id"] for run in runs})
        links = page.eval_on_selector_all(
            "a[href^='/label/']", "all => all.map((a) => [a.textContent, a.pathname])"
        )
        seen.ids.update({name: path.rpartition("/")[2] for name, path in links})
        yield seen
    finally:
        context.close()


@pytest.fixture(scope="module")
def chromium(root: Path) -> Iterator[BrowserType]:  # the runs are made before: Playwright's loop takes the thread
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        yield playwright.chromium


@pytest.fixture(scope="module")
def first(root: Path) -> Iterator[str]:
    with viewer(root) as address:
        yield address


@pytest.fixture(scope="module")
def browser(chromium: BrowserType, first: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Seen]:
    with looking(chromium, first, tmp_path_factory.mktemp("profile")) as seen:
        yield seen


@pytest.fixture
def seen(browser: Seen) -> Iterator[Seen]:
    browser.complaints.clear()
    browser.requests.clear()
    yield browser
    browser.check()


SWEEP = [f"made-sweep/{system}-{effort}-{judge}" for system in ("alpha", "beta") for effort in ("low", "high")
         for judge in ("judge-a", "judge-b")]  # fmt: skip
#: A view's name, its address, and what stands in it once it is there.
VIEWS = {
    "runs": ("/", "#runs .row-line .status"),
    "run-draco": ("/run/{demo_draco}", "#list .row-line .status"),
    "run-dag": ("/run/{demo_dag}", "#list .row-line .status"),
    "run-wandr": ("/run/{demo_wandr}", "#list .row-line .status"),
    "task-draco": ("/run/{demo_draco}/task/1", ".units .row-line .m"),
    "task-dag": ("/run/{demo_dag}/task/1", ".graph g.node"),
    "task-wandr": ("/run/{demo_wandr}/task/1", ".tree .row-line .what"),
    "compare": ("/compare?" + "&".join(f"run={{{name}}}" for name in SWEEP), ".matrix"),
    "differences": ("/difference?first={demo_draco}&second={demo_draco}", "tbody a"),
    "difference": ("/difference?first={demo_draco}&second={demo_draco}&task=1", ".diff"),
    "live": ("/run/{going-on}/live", "#state[data-state=running]"),
    "label": ("/label/{sheet.csv}", "#row:not([hidden])"),
}


@pytest.mark.parametrize("name", VIEWS)
def test_a_view_opens_and_has_no_serious_fault(seen: Seen, name: str) -> None:
    path, there = VIEWS[name]
    seen.open(path)
    seen.page.wait_for_selector(there)
    shoot(seen.page, name)
    assert faults(seen.page) == []


@pytest.mark.parametrize("name", ["runs", "task-wandr", "task-dag", "compare", "live", "label"])
def test_a_dark_view_has_no_serious_fault(seen: Seen, name: str) -> None:
    seen.page.emulate_media(color_scheme="dark")
    try:
        path, there = VIEWS[name]
        seen.open(path)
        seen.page.wait_for_selector(there)
        shoot(seen.page, f"{name}-dark")
        assert faults(seen.page) == []
    finally:
        seen.page.emulate_media(color_scheme="light")


@pytest.mark.parametrize("width", [1360, 500])
@pytest.mark.parametrize("name", ["demo_draco", "demo_dag", "demo_wandr"])
def test_a_report_asks_nobody_and_has_no_serious_fault(seen: Seen, root: Path, name: str, width: int) -> None:
    page = seen.page.context.new_page()
    complaints: list[str] = []
    requests: list[str] = []
    page.on("console", lambda line: complaints.append(f"{line.type}: {line.text}"))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("request", lambda request: requests.append(request.url))
    try:
        page.set_viewport_size({"width": width, "height": 900})
        address = (root / name / "report.html").as_uri()
        page.goto(address)
        page.wait_for_selector("#table tbody tr")
        shoot(page, f"report-{name}-{width}")
        assert faults(page) == []
        assert complaints == []
        assert [url for url in requests if not url.startswith(("data:", address))] == []
    finally:
        page.close()


def shoot(page: Page, name: str) -> None:
    if SHOTS:
        Path(SHOTS).mkdir(parents=True, exist_ok=True)
        page.screenshot(path=Path(SHOTS) / f"view-{name}.png", full_page=True)


def faults(page: Page) -> list[Any]:
    """What axe-core calls serious or critical. It is put in from outside, past the page's policy."""
    page.evaluate(files("axe_playwright_python").joinpath("axe.min.js").read_text(encoding="utf-8"))
    found = page.evaluate("() => axe.run(document, {resultTypes: ['violations']})")
    return [
        (one["id"], [node["html"][:160] for node in one["nodes"]][:3])
        for one in found["violations"]
        if one["impact"] in ("serious", "critical")
    ]


# by keyboard


def focus(page: Page, selector: str) -> None:
    page.wait_for_selector(f"{selector} .row-line")
    page.focus(selector)


def says(page: Page, selector: str, start: str) -> None:
    """Wait until an element's text begins so."""
    page.locator(selector, has_text=re.compile(f"^{re.escape(start)}")).wait_for()


def active(page: Page, selector: str) -> str:
    """The row that the list calls active."""
    return str(page.evaluate(
        "(name) => document.getElementById(document.querySelector(name).getAttribute('aria-activedescendant')).innerText",
        selector,
    ))  # fmt: skip


def test_the_list_of_runs_by_keyboard(seen: Seen) -> None:
    page = seen.page
    seen.open("/")
    focus(page, "#runs")
    page.keyboard.press("End")
    last = active(page, "#runs")
    page.keyboard.press("Home")
    assert active(page, "#runs") != last
    for _ in range(2):
        page.keyboard.press("Space")
        page.keyboard.press("ArrowDown")
    assert page.inner_text("#chosen") in ("2 chosen", "1 chosen", "8 chosen", "9 chosen")
    page.fill("#find", "demo_draco")
    says(page, "#found", "1 of")
    focus(page, "#runs")
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/run/{seen.ids['demo_draco']}")


def test_tasks_sort_and_open_by_keyboard(seen: Seen) -> None:
    page = seen.page
    seen.open("/run/{demo_draco}")
    focus(page, "#list")
    first = active(page, "#list")
    page.focus("#list [role=columnheader]:nth-child(4) button")
    page.keyboard.press("Enter")
    assert page.get_attribute("#list [role=columnheader]:nth-child(4)", "aria-sort") == "ascending"
    page.focus("#list")
    page.keyboard.press("Home")
    lowest = active(page, "#list")
    page.keyboard.press("End")
    assert active(page, "#list") != lowest
    assert first
    page.keyboard.press("Enter")
    page.wait_for_url("**/task/*")


def test_a_tree_by_keyboard(seen: Seen) -> None:
    page = seen.page
    seen.open("/run/{demo_wandr}/task/1")
    focus(page, ".tree")
    for key in ("ArrowDown", "ArrowDown", "ArrowDown"):
        page.keyboard.press(key)
    assert "corran head light" in active(page, ".tree")
    before = page.locator(".tree .row-line").count()
    page.keyboard.press("ArrowRight")
    assert page.locator(".tree .row-line[aria-expanded=true].active").count() == 1
    assert page.locator(".tree .row-line").count() > before
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowDown")
    assert "register.sundry.example" in active(page, ".tree")
    page.keyboard.press("Enter")
    page.wait_for_selector(".tree + .side mark")
    assert page.inner_text(".tree + .side mark").startswith("The lighthouse was first lit on 4 May 1871")
    shoot(page, "task-wandr-record")
    assert faults(page) == []
    for key in ["ArrowLeft"] * 4:  # to the level, which closes; to the entity, which closes
        page.keyboard.press(key)
    assert page.locator(".tree .row-line").count() == before


def test_a_graph_by_keyboard(seen: Seen) -> None:
    page = seen.page
    seen.open("/run/{demo_dag}/task/1")
    page.focus(".graph g.node[tabindex='0']")
    start = page.inner_text(".panel")
    page.keyboard.press("ArrowRight")
    assert page.inner_text(".panel") != start
    page.keyboard.press("ArrowLeft")
    assert page.evaluate("document.activeElement.classList.contains('on')")


def test_judgements_by_keyboard(seen: Seen) -> None:
    page = seen.page
    seen.open("/run/{demo_draco}/task/1")
    page.wait_for_selector(".units .row-line .m")
    focus(page, ".units")
    page.keyboard.press("Enter")
    page.wait_for_selector(".units + .side .judgement")
    assert page.locator(".units + .side .judgement").count() == 5
    assert "raw reply" in page.inner_text(".units + .side")
    shoot(page, "task-draco-judgement")
    assert faults(page) == []
    page.click("details.answer summary")
    page.wait_for_selector("details.answer .text")


def test_labels_by_keyboard(seen: Seen, root: Path) -> None:
    page = seen.page
    seen.open("/label/{sheet.csv}")
    page.wait_for_selector("#row:not([hidden])")
    page.fill("#labeller", "Ann")
    page.press("#labeller", "y")  # a letter of a name is no label
    page.fill("#labeller", "Ann")
    page.focus("#main")
    for number, key in enumerate("yn", start=1):
        page.keyboard.press(key)
        says(page, "#count", f"{number} of")
    page.keyboard.press("s")
    says(page, "#where", "Row 4 ")
    page.keyboard.press("ArrowLeft")
    says(page, "#where", "Row 3 ")
    assert [(label.met, label.labeller) for label in read_labels(root / "sheet.csv").labels] == [
        (True, "Ann"), (False, "Ann"),
    ]  # fmt: skip
    page.keyboard.press("ArrowLeft")
    says(page, "#where", "Row 2 ")
    page.keyboard.press("u")
    says(page, "#count", "1 of")
    assert [label.met for label in read_labels(root / "sheet.csv").labels] == [True]


def test_progress_says_when_a_run_ends(seen: Seen, root: Path) -> None:
    page = seen.page
    going = root / "going-on"
    run = json.loads((going / "run.json").read_text())
    seen.open("/run/{going-on}/live")
    page.wait_for_selector("#state[data-state=running]")
    says(page, "#o-tasks", "2 of 4")
    lines = (root / "demo_draco" / "submissions.jsonl").read_text()
    (going / "submissions.jsonl.part").write_text(lines)
    says(page, "#o-tasks", "4 of 4")
    try:
        (going / "run.json").write_text(json.dumps({**run, "exit_code": 0}))
        page.wait_for_selector("#state[data-state=ended] a")
        assert page.inner_text("#state") == "The run has ended, with exit code 0. Its report"
    finally:
        (going / "run.json").write_text(json.dumps(run))


# long lists


def test_only_rows_that_can_be_seen_are_in_the_page(chromium: BrowserType, tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    for number in range(700):
        (runs / f"run-{number:03d}").mkdir(parents=True)
        (runs / f"run-{number:03d}" / "run.json").write_text('{"exit_code": 0}')
    with viewer(runs) as address, looking(chromium, address, tmp_path / "profile") as seen:
        page = seen.page
        focus(page, "#runs")
        assert page.inner_text("#found") == "700 runs"
        for key, shown in (("End", "run-699"), ("Home", "run-000"), ("PageDown", "run-0")):
            page.keyboard.press(key)
            assert shown in active(page, "#runs")
            assert page.locator("#runs .row-line").count() < 60
        seen.check()


# hostile texts


@pytest.mark.parametrize("part", range(4))
def test_hostile_texts_are_shown_as_texts(chromium: BrowserType, root: Path, tmp_path: Path, part: int) -> None:
    """Every view of runs whose texts try to run, with a few of them in each text."""
    text = " ".join(one for one in HOSTILE[part::4] if len(one) < 1000)
    for name in ("demo_draco", "demo_dag", "demo_wandr"):
        poison_run(root / name, tmp_path / "runs" / str(part) / name, text)
    poison_sheet(tmp_path / "runs" / str(part) / "sheet.csv", text)
    with viewer(tmp_path / "runs") as address, looking(chromium, address, tmp_path / "profile") as seen:
        page = seen.page
        keys = {name.rpartition("/")[2]: key for name, key in seen.ids.items()}
        for path, there in (
            ("/", "#runs .row-line .status"),
            (f"/run/{keys['demo_draco']}", "#list .row-line .status"),
            (f"/run/{keys['demo_wandr']}/task/1", ".tree .row-line .what"),
            (f"/run/{keys['demo_dag']}/task/1", ".units .row-line .m"),
            (f"/run/{keys['demo_draco']}/task/1", ".units .row-line .m"),
            (f"/difference?first={keys['demo_draco']}&second={keys['demo_draco']}&task=1", ".diff"),
            (f"/label/{keys['sheet.csv']}", "#row:not([hidden])"),
        ):
            page.goto(seen.base + path)
            page.wait_for_selector(there)
            if "/task/" in path and "difference" not in path:
                page.focus(".units")
                page.keyboard.press("Enter")
                page.wait_for_selector(".units + .side h4")
                page.click("details.answer summary")
                page.wait_for_selector("details.answer .body > :first-child")
            assert page.evaluate("window.owned") is None
            assert (
                page.locator(
                    "iframe, object, embed, img, base, style, form[action^=http], a[href^=javascript]"
                ).count()
                == 0
            )
            assert page.locator("script:not([src^='/static/']), link[href*=evil], h1 + h1").count() == 0
            assert page.title() != "owned"
        seen.check()
