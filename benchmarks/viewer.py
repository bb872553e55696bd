"""What looking at large runs costs: how long the viewer takes to answer, and a browser to show it.

    python benchmarks/viewer.py [--tasks 500] [--criteria 40] [--repeats 5] [--records 2750] [--keep DIR]

Makes two run folders: DRACO's form with made-up verdicts, and one WANDR task with so many required records, judged
by rules on pages of a folder. Starts `python -m core.view` on them and asks for each view twice: the first answer
reads files, the second does not. With Chromium and Playwright it also opens them: the time until rows stand in the
page, and that from one frame to the next while a list is scrolled from end to end. Measures and never asserts.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from http.cookiejar import CookieJar
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from fakes.run_folders import task_rows, write_run  # noqa: E402

from core.plugin_manager import PluginManager  # noqa: E402  # runs from a checkout without being installed
from core.rescore import rescore  # noqa: E402
from core.run import main as run  # noqa: E402

CHROMIUM = Path("/usr/bin/chromium")
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
         "--disable-component-update", "--disable-sync"]  # fmt: skip
#: Scrolls the list from end to end in 120 steps, a frame each; milliseconds of every frame.
SCROLL = """async (name) => {
  const box = document.querySelector(name), times = [];
  for (let step = 0; step <= 120; step += 1) {
    const start = performance.now();
    box.scrollTop = (box.scrollHeight - box.clientHeight) * step / 120;
    await new Promise(requestAnimationFrame);
    times.push(performance.now() - start);
  }
  return [times, document.querySelectorAll("*").length];
}"""


def draco(folder: Path, words: argparse.Namespace) -> None:
    """Tasks of so many criteria, each judged so often, with answers of 20 kB."""
    rng = random.Random(7)
    names = [f"task-{at:04d}" for at in range(words.tasks)]
    weights = {f"c{at}": -5.0 if at % 10 == 9 else 5.0 for at in range(words.criteria)}
    write_run(
        folder,
        {name: [0.0] * words.repeats for name in names},
        said={
            name: {key: [rng.random() < 0.6 for _ in range(words.repeats)] for key in weights} for name in names
        },
        tasks=task_rows(names, criteria=weights, domains=10),
        answers=dict.fromkeys(names, "An answer of some length, with one thing after another. " * 360),
        explanation="The answer states this in its second paragraph. " * 8,
        cost_usd=0.1,
        latency_s=60.0,
    )
    rescore(folder, PluginManager.discover())


def wandr(folder: Path, records: int) -> None:
    """One task: regions, 50 stations each, with a page for each region; every sixth record quotes wrongly."""
    made = folder.parent / "made"
    (made / "pages").mkdir(parents=True)
    regions = max(1, records // 50)
    tree = {
        "name": "stations", "text": "Find stations and when they opened.",
        "judge": {
            "summary": "A station and when it was opened.", "guidance": "",
            "validity": [{"name": "station", "description": "The page is about the station."}],
            "requirements": [{"name": "opened", "satisfied": "Says when it was opened.", "supported": "Says so."}],
        },
        "keys": [
            {"name": "region", "fields": ["region"], "required": regions},
            {"name": "station", "fields": ["station"], "required": 50},
            {"name": "url", "fields": ["url"], "required": 1},
        ],
    }  # fmt: skip
    task = {"id": "stations", "instruction": "Find stations.", "labels": {}, "tree": tree}
    rows, pages = [], []
    for region in range(regions):
        url = f"https://stations.example/region-{region}"
        told = [
            f"Station {region}-{place} was opened in {1800 + (7 * place + region) % 200}." for place in range(50)
        ]
        (made / "pages" / f"{region}.html").write_text("<p>" + "</p><p>".join(told) + "</p>")
        pages.append({"url": url, "status": "ok", "content_type": "text/html", "file": f"{region}.html"})
        for place, sentence in enumerate(told):
            quoted = sentence if place % 6 else sentence.replace("opened", "closed for good")
            item = {"region": f"Region {region}", "station": f"Station {region}-{place}"}
            rows.append({"item": item, "url": url, "excerpts": [quoted], "answer": {"opened": sentence[-5:-1]}})
    files = {"results_stations.jsonl": "".join(json.dumps(row) + "\n" for row in rows)}
    answer = {"task_id": "stations", "status": "completed", "files": files}
    _lines(made / "tasks.jsonl", [task])
    _lines(made / "answers.jsonl", [answer])
    _lines(made / "pages" / "pages.jsonl", pages)
    code = run(
        ["benchmark=wandr", f"benchmark.source={made / 'tasks.jsonl'}", "system=replay", "judge=offline",
         f"system.path={made / 'answers.jsonl'}", "pages=fixtures", f"pages.path={made / 'pages'}",
         f"out={folder}", f"store={made / 'store.sqlite'}", "progress=none"]
    )  # fmt: skip
    assert code in (0, 3), f"the run ended with {code}"


def _lines(path: Path, rows: list[dict[str, Any]]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


@contextmanager
def viewer(root: Path) -> Iterator[str]:
    """The command on a folder; gives the address with the token."""
    with subprocess.Popen(
        [sys.executable, "-m", "core.view", str(root), "--no-open"], stdout=subprocess.PIPE, text=True, cwd=ROOT
    ) as process:
        try:
            assert process.stdout is not None
            yield process.stdout.readline().strip()
        finally:
            process.terminate()


def ask(opener: urllib.request.OpenerDirector, address: str) -> tuple[float, bytes]:
    """Seconds to the whole answer, and the answer."""
    start = time.perf_counter()
    with opener.open(address, timeout=120) as response:
        body = response.read()
    return time.perf_counter() - start, body


def server_times(first: str) -> dict[str, str]:
    """Every view twice; returns the ids of the runs by name."""
    base = first.partition("/?")[0]
    opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(CookieJar()))
    print(f"{'the server':34} {'first':>8} {'again':>8} {'kB':>7}")
    ask(opener, first)
    ids = {run["name"]: run["id"] for run in json.loads(ask(opener, f"{base}/api/runs")[1])}
    large, deep = f"/run/{ids['draco']}", f"/run/{ids['wandr']}"
    for name, path in {
        "list of runs": "/api/runs",
        "run of many tasks: page": large,
        "run of many tasks: rows": f"/api{large}/tasks",
        "a task of it": f"{large}/task/1",
        "its judgements": f"/api{large}/task/1/units",
        "one unit, with raw replies": f"/api{large}/task/1/unit?unit=criterion/c1",
        "run of many records: page": deep,
        "its task": f"{deep}/task/1",
        "its tree": f"/api{deep}/task/1/tree",
        "its judgements ": f"/api{deep}/task/1/units?count=200",
        "one record": f"/api{deep}/task/1/unit?unit=record/stations/7",
        "its page, with passages": f"/api{deep}/task/1/evidence?unit=record/stations/7",
    }.items():
        (once, body), (again, _) = ask(opener, base + path), ask(opener, base + path)
        print(f"{name:34} {once:7.2f}s {again:7.2f}s {len(body) / 1000:7.0f}")
    return ids


def browser_times(first: str, ids: dict[str, str]) -> None:
    """How long Chromium takes, where it is there."""
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        print("no browser: Playwright is not installed")
        return
    if not CHROMIUM.exists():
        print(f"no browser: {CHROMIUM} is not there")
        return
    base = first.partition("/?")[0]
    print(f"{'the browser':34} {'rows':>8} {'frame':>8} {'P99':>8} {'elements':>9}")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=str(CHROMIUM), args=FLAGS)
        page = browser.new_page(viewport={"width": 1360, "height": 900})
        page.goto(first)
        for name, path, box in (
            ("run of many tasks", f"/run/{ids['draco']}", "#list"),
            ("tree of many records", f"/run/{ids['wandr']}/task/1", ".list.tree"),
            ("judgements of many records", f"/run/{ids['wandr']}/task/1", ".list.units"),
        ):
            start = time.perf_counter()
            page.goto(base + path)
            page.wait_for_selector(f"{box} .row-line")
            shown = time.perf_counter() - start
            if box == ".list.tree":
                page.focus(box)
                for key in ("End", "ArrowUp", "*"):
                    page.keyboard.press(key)
            times, elements = page.evaluate(SCROLL, box)
            late = sorted(times)[int(len(times) * 0.99) - 1]
            print(f"{name:34} {shown:7.2f}s {statistics.median(times):6.1f}ms {late:6.1f}ms {elements:9,}")
        browser.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in (("tasks", 500), ("criteria", 40), ("repeats", 5), ("records", 2750)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--keep", type=Path, help="make the runs here, or use those that are there")
    words = parser.parse_args()
    os.environ["HF_HUB_OFFLINE"] = "1"
    with tempfile.TemporaryDirectory() as temporary:
        root = words.keep or Path(temporary)
        if not (root / "wandr").exists():
            draco(root / "draco", words)
            wandr(root / "wandr", words.records)
        with viewer(root) as first:
            browser_times(first, server_times(first))


if __name__ == "__main__":
    main()
