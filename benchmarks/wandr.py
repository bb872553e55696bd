"""What grading WANDR costs from end to end: pages fetched, read and aligned, records judged, a score folded.

    python benchmarks/wandr.py [--records 2000] [--pages 500] [--kilobytes 170] [--delay-ms 50]

Makes tasks of invented articles, a replayed submission that cites them, and starts a server of the pages and a
fake model server in processes of their own. Runs the command line against them, once from the web and once more
from the archive (`pages=archive`, a judge's epoch of its own: pages are read again and records judged again).
Measures and never asserts. CPU is user + system time: of the run's process, and of the workers that read pages.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks.engine import model_server, sentence, stats  # noqa: E402  # runs from a checkout
from benchmarks.pages import article  # noqa: E402

#: Serves page n under /n: the article, with the sentences that are this page's own.
SERVER: Final = """
import asyncio, json, sys
body, own = open(sys.argv[1], "rb").read(), json.load(open(sys.argv[2]))
head = b"HTTP/1.1 200 OK\\r\\nContent-Type: text/html; charset=utf-8\\r\\nContent-Length: %d\\r\\n\\r\\n"
async def serve(reader, writer):
    try:
        while True:
            request = await reader.readuntil(b"\\r\\n\\r\\n")
            path = request.split(b" ", 2)[1].decode()[1:]
            page = body.replace(b"PATH", path.encode())
            for place, text in enumerate(own[int(path)]):
                page = page.replace(b"OWN%d." % place, text.encode())
            writer.write(head % len(page) + page)
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()
async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()
asyncio.run(main())
"""
TASKS: Final = 4
#: Excerpts of a record, each a sentence of its page's own.
EXCERPTS: Final = 2


@dataclass(frozen=True)
class Shape:
    """How much there is of what."""

    records: int
    pages: int
    kilobytes: int


@dataclass(frozen=True)
class Used:
    """What a run used: seconds by the clock, seconds of CPU (its process, its workers), bytes at its peak."""

    wall_s: float
    own_s: float
    workers_s: float
    peak_bytes: int
    workers_bytes: int
    code: int


def make_pages(folder: Path, shape: Shape) -> list[list[str]]:
    """One article with places for sentences of a page's own, and these sentences by page."""
    rng = random.Random(11)
    a_page = shape.records * EXCERPTS // shape.pages
    own = [
        [
            f"Station {page}-{place} was opened in {rng.randrange(1800, 2000)}; {sentence(rng, 18)}"
            for place in range(a_page)
        ]
        for page in range(shape.pages)
    ]
    parts = article(shape.kilobytes).decode().split("</p>")
    step = max(1, len(parts) // (a_page + 1))
    for place in range(a_page):
        parts[min((place + 1) * step, len(parts) - 1)] += f"<p>OWN{place}.</p>"
    (folder / "page.html").write_text("</p>".join(parts))
    (folder / "own.json").write_text(json.dumps(own))
    return own


def make_tasks(folder: Path, shape: Shape, own: list[list[str]], port: int) -> None:
    """Tasks that ask for stations, and the submission: so many records a page, its excerpts in order."""
    each, a_page = shape.records // TASKS, shape.records // shape.pages
    answers: list[list[dict[str, Any]]] = [[] for _ in range(TASKS)]
    for number in range(shape.records):
        page, place = divmod(number, a_page)
        page %= shape.pages
        quoted = own[page][place * EXCERPTS : (place + 1) * EXCERPTS]
        answers[min(number // each, TASKS - 1)].append(
            {
                "item": {"station": f"Station {page}-{place}"},
                "url": f"http://127.0.0.1:{port}/{page}",
                "excerpts": quoted,
                "answer": {"opened": 1900},
            }
        )
    with (folder / "tasks.jsonl").open("w") as tasks, (folder / "answers.jsonl").open("w") as submissions:
        for number, rows in enumerate(answers):
            tasks.write(json.dumps(task(number, len(rows))) + "\n")
            text = "\n".join(json.dumps(row) for row in rows)
            line = {"task_id": f"stations-{number}", "files": {"results_stations.jsonl": text}}
            submissions.write(json.dumps({**line, "attempt": 1, "status": "completed"}) + "\n")


def task(number: int, required: int) -> dict[str, Any]:
    plain = {"norm": "text", "llm": False, "guidance": ""}
    keys = [
        {"name": "station", "fields": ["station"], "required": required, "canonicalize": plain},
        {"name": "url", "fields": ["url"], "required": 1, "canonicalize": {**plain, "norm": "url"}},
    ]
    says = "Says when the station was opened."
    judge = {
        "summary": "A station and the year in which it was opened.",
        "guidance": "A year is enough.",
        "validity": [{"name": "station", "description": "The page is about the named station."}],
        "requirements": [{"name": "opened", "satisfied": says, "supported": says}],
    }
    text = f"Name {required}+ stations. For each `station` cite a page that says when it was opened."
    return {
        "id": f"stations-{number}",
        "labels": {"difficulty": "low", "verticals": ["geography"], "topology": "flat", "width": "large"},
        "tree": {"name": "stations", "text": text, "keys": keys, "judge": judge},
    }


@contextmanager
def page_server(folder: Path) -> Iterator[int]:
    words = [sys.executable, "-c", SERVER, str(folder / "page.html"), str(folder / "own.json")]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        yield int(process.stdout.readline())
    finally:
        process.kill()
        process.wait()


def measure(command: list[str]) -> Used:
    """Run a command. Its workers are looked at while it runs: in the end they are counted with their parent."""
    started = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, cwd=ROOT)
    assert process.stderr is not None
    seen: dict[int, tuple[float, int]] = {}
    done = threading.Event()
    watcher = threading.Thread(target=watch, args=(process.pid, seen, done))
    watcher.start()
    errors = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.perf_counter() - started
    done.set()
    watcher.join()
    code = os.waitstatus_to_exitcode(status)
    process.returncode = code
    if code not in (0, 3):
        sys.stderr.write(errors.decode())
    # what wait4 says holds the children that were waited for; the run kills its workers and waits for them
    workers_s = sum(cpu for cpu, _ in seen.values())
    return Used(
        wall_s=wall,
        own_s=usage.ru_utime + usage.ru_stime - workers_s,
        workers_s=workers_s,
        peak_bytes=usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024),
        workers_bytes=sum(peak for _, peak in seen.values()),
        code=code,
    )


def watch(parent: int, seen: dict[int, tuple[float, int]], done: threading.Event) -> None:
    """Seconds of CPU and peak bytes of a process's children, as last seen; nothing where there is no /proc."""
    tick = os.sysconf("SC_CLK_TCK")
    while not done.wait(0.05):
        try:
            children = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
            for child in children:
                fields = Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()
                status = Path(f"/proc/{child}/status").read_text()
                peak = int(status.partition("VmHWM:")[2].split()[0]) * 1024
                seen[int(child)] = ((int(fields[11]) + int(fields[12])) / tick, peak)
        except (OSError, IndexError, ValueError):
            continue


def command(folder: Path, server: str, port: int, out: str, *words: str) -> list[str]:
    return [
        sys.executable, "-m", "core.run", "benchmark=wandr", f"benchmark.source={folder / 'tasks.jsonl'}",
        "system=replay", f"system.path={folder / 'answers.jsonl'}", "judge=openai_compatible", "judge.model=fake",
        f"judge.base_url={server}/v1", "judge.max_in_flight=200", f"out={folder / out}",
        f"store={folder / 'store.sqlite'}", "progress=none", "budget.confirm_usd=1e9", "benchmark.delivery=file",
        f"pages.allow_hosts=[127.0.0.1:{port}]", "pages.control_hosts=[127.0.0.1]", *words,
    ]  # fmt: skip


def run_once(folder: Path, shape: Shape, delay_ms: float, port: int, *words: str) -> None:
    """One run against a fresh model server; prints two lines."""
    with model_server("--delay-ms", str(delay_ms)) as server:
        used = measure(command(folder, server, port, "-".join(words).replace("=", "-"), *words))
        found = stats(server)
    print(
        f"{' '.join(words)}: {shape.records} records over {shape.pages} pages of {shape.kilobytes} kB in"
        f" {used.wall_s:.1f} s: {shape.records / used.wall_s:.0f} records/s,"
        f" {shape.pages / used.wall_s:.0f} pages/s, {found['answered']} calls,"
        f" {found['peak']} in flight at most, exit {used.code}"
    )
    print(
        f"  CPU: {used.own_s:.1f} s the run ({1000 * used.own_s / shape.records:.1f} ms a record),"
        f" {used.workers_s:.1f} s its workers ({1000 * used.workers_s / shape.pages:.1f} ms a page);"
        f" memory: {used.peak_bytes / 2**20:.0f} MiB and {used.workers_bytes / 2**20:.0f} MiB",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=2000)
    parser.add_argument("--pages", type=int, default=500)
    parser.add_argument("--kilobytes", type=int, default=170)
    parser.add_argument("--delay-ms", type=float, default=50)
    words = parser.parse_args()
    shape = Shape(words.records, words.pages, words.kilobytes)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        own = make_pages(folder, shape)
        with page_server(folder) as port:
            make_tasks(folder, shape, own, port)
            run_once(folder, shape, words.delay_ms, port, "pages=web", "judge.epoch=1")
            run_once(folder, shape, words.delay_ms, port, "pages=archive", "judge.epoch=2")


if __name__ == "__main__":
    main()
