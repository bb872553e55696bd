"""What a whole run costs: CPU a judgement, calls in flight, memory a judgement, resume, rescore.

    python benchmarks/engine.py [--tasks 100] [--repeats 5] [--judge openai_compatible|litellm] [--delay-ms 50 200]

Starts a fake model server in a process of its own and runs the command line against it, on invented tasks
of DRACO's shape (3,934 criteria over 100 tasks, reports of 6,000 characters). Measures and never asserts.
CPU is user + system time of the run's process, start-up included; memory is its peak.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
CRITERIA = 3_934
WORDS = (
    "reactor", "orbit", "treaty", "enzyme", "harbour", "index", "glacier", "tariff", "archive", "lens",
    "quorum", "basalt",
)  # fmt: skip


@dataclass(frozen=True)
class Used:
    """What a process used: seconds of CPU, seconds by the clock, bytes at its peak."""

    cpu_s: float
    wall_s: float
    peak_bytes: int
    code: int


def sentence(rng: random.Random, words: int) -> str:
    return " ".join(rng.choice(WORDS) for _ in range(words)).capitalize() + "."


def make_files(folder: Path, tasks: int) -> None:
    """Tasks of DRACO's shape and one report each."""
    rng = random.Random(7)
    with (folder / "tasks.jsonl").open("w") as rows, (folder / "reports.jsonl").open("w") as reports:
        for number in range(tasks):
            count = CRITERIA * (number + 1) // 100 - CRITERIA * number // 100
            criteria = [
                {"id": f"c{place}", "weight": 10 if place % 10 else -10, "requirement": sentence(rng, 25)}
                for place in range(count)
            ]
            rubric = {
                "id": f"r{number}",
                "sections": [{"id": "factual-accuracy", "title": "F", "criteria": criteria}],
            }
            row = {"id": f"t{number}", "problem": sentence(rng, 60), "answer": json.dumps(rubric), "domain": "X"}
            rows.write(json.dumps(row) + "\n")
            text = ""
            while len(text) < 6000:
                text += sentence(rng, 20) + " "
            reports.write(json.dumps({"task_id": f"t{number}", "text": text[:6000]}) + "\n")


@contextmanager
def model_server(*options: str) -> Iterator[str]:
    process = subprocess.Popen(
        [sys.executable, str(ROOT / "tests/fakes/model_server.py"), *options], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    port = process.stdout.readline().strip()
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait()


def stats(server: str) -> dict[str, Any]:
    with urllib.request.urlopen(f"{server}/stats") as reply:
        found: dict[str, Any] = json.load(reply)
        return found


def measure(command: list[str]) -> Used:
    started = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    assert process.stderr is not None
    errors = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    code = os.waitstatus_to_exitcode(status)
    process.returncode = code
    if code not in (0, 3):
        sys.stderr.write(errors.decode())
    scale = 1 if sys.platform == "darwin" else 1024
    wall = time.perf_counter() - started
    return Used(usage.ru_utime + usage.ru_stime, wall, usage.ru_maxrss * scale, code)


def command(folder: Path, server: str, judge: str, out: str, *words: str) -> list[str]:
    model = "openai/fake" if judge == "litellm" else "fake"
    return [
        sys.executable, "-m", "core.run", "benchmark=draco", f"benchmark.source={folder / 'tasks.jsonl'}",
        "system=replay", f"system.path={folder / 'reports.jsonl'}", f"judge={judge}", f"judge.model={model}",
        f"judge.base_url={server}/v1", "judge.api_key_env=FAKE_KEY", "judge.max_in_flight=200",
        f"out={folder / out}", f"store={folder / out}.sqlite", "progress=none", "budget.confirm_usd=1e9", *words,
    ]  # fmt: skip


def run_once(folder: Path, judge: str, delay_ms: float, repeats: int, *words: str) -> tuple[Used, int]:
    """One run against a fresh server; prints a line. Returns what it used and how many were judged."""
    with model_server("--delay-ms", str(delay_ms)) as server:
        name = "-".join([judge, f"{delay_ms:g}", str(repeats), *words])
        used = measure(command(folder, server, judge, name, f"judge.repeats={repeats}", *words))
        found = stats(server)
        n = found["answered"]
        print(
            f"{judge:<18}{delay_ms:>5g} ms{n:>8} calls{used.wall_s:>8.1f} s{n / used.wall_s:>7.0f}/s"
            f"{1000 * used.cpu_s / n:>8.2f} ms CPU a call{found['peak']:>5} in flight at most"
            f"{used.peak_bytes / 2**20:>7.0f} MiB  exit {used.code}",
            flush=True,
        )
        again = measure(command(folder, server, judge, name, f"judge.repeats={repeats}", *words))
        more = stats(server)["requests"] - found["requests"]
        print(f"{'':18}again: {more} calls, {again.wall_s:.1f} s, {again.cpu_s:.1f} s CPU, exit {again.code}")
        return used, n


def rescore(folder: Path, judge: str, delay_ms: float, repeats: int) -> None:
    """Fold a run's folder again."""
    name = f"{judge}-{delay_ms:g}-{repeats}"
    used = measure([sys.executable, "-m", "core.rescore", str(folder / name)])
    print(f"rescore: {used.wall_s:.2f} s, {used.cpu_s:.2f} s CPU, exit {used.code}")


def start_up(folder: Path) -> None:
    """Import, help and the embedded demo, the best of five."""
    for label, words in {
        "python": ["-c", "pass"],
        "import core, core.run": ["-c", "import core, core.run"],
        "--help": ["-m", "core.run", "--help"],
        "experiment=demo": ["-m", "core.run", "experiment=demo", f"out={folder / 'demo'}"],
    }.items():
        best = min((measure([sys.executable, *words]) for _ in range(5)), key=lambda used: used.wall_s)
        print(f"{label:<24}{best.wall_s:>7.3f} s{best.cpu_s:>7.3f} s CPU")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", type=int, default=100)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--judge", nargs="+", default=["openai_compatible", "litellm"])
    parser.add_argument("--delay-ms", type=float, nargs="+", default=[50, 200])
    options = parser.parse_args()
    os.environ["FAKE_KEY"] = "not-a-real-key"
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make_files(folder, options.tasks)
        start_up(folder)
        for judge in options.judge:
            for delay_ms in options.delay_ms:
                used, n = run_once(folder, judge, delay_ms, options.repeats)
            half = f"limit={options.tasks // 2}"
            part, n_part = run_once(folder, judge, options.delay_ms[-1], options.repeats, half)
            if n > n_part:
                grown = (used.peak_bytes - part.peak_bytes) / (n - n_part)
                print(f"memory: {grown:.0f} bytes more for each further judgement")
            rescore(folder, judge, options.delay_ms[-1], options.repeats)


if __name__ == "__main__":
    main()
