"""What comparing many runs costs: CPU, memory, and against merely reading the files, on this machine.

    python benchmarks/compare.py [--systems 10] [--judges 3] [--repeats 5] [--tasks 100] [--criteria 40]
    python benchmarks/compare.py --labels --missing 0.02

Writes run folders with made-up verdicts into a temporary folder, compares them in a process of its own, and takes
that process's CPU seconds and peak memory. `read` is what it takes to parse the same judgements as JSON and keep
nothing: the part that no comparison can save. Nothing is asserted: machines differ.

`--labels` gives tasks five labels of 42 values, as rich benchmarks have; `--missing` is the share of tasks that a
run has no number for, each run others: then hardly two pairs of systems have the same tasks.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from fakes.run_folders import task_rows, write_run  # noqa: E402  # runs from a checkout without being installed

READ = """
import json, sys
for path in sys.argv[1:]:
    with open(path + "/judgements.jsonl", "rb") as file:
        for line in file:
            json.loads(line)
"""
COMPARE = "import sys; from core.compare import main; sys.exit(main(sys.argv[1:]))"
FAMILIES = ("openai", "google", "anthropic")


def write(root: Path, words: argparse.Namespace) -> list[Path]:
    """A folder for each system and judge. Judges differ in leniency, and flip a tenth of the verdicts."""
    rng = random.Random(20260211)
    weights: dict[str, float] = {f"c{at}": -5 if at % 10 == 9 else 5 for at in range(words.criteria)}
    names = [f"task-{at}" for at in range(words.tasks)]
    tasks = task_rows(names, criteria=weights, domains=10)
    if words.labels:
        for at, row in enumerate(tasks):
            row["labels"] |= {"width": f"w{at % 4}", "shape": f"p{at % 5}", "difficulty": f"x{at % 3}"}
            row["labels"]["vertical"] = [f"v{at % 20}", f"v{at * 7 % 20}"]
    positive = sum(weight for weight in weights.values() if weight > 0)
    folders = []
    for system in range(words.systems):
        truth = {task: [rng.random() < 0.4 + 0.03 * system for _ in weights] for task in names}
        for judge in range(words.judges):
            said: dict[str, dict[str, list[bool | None]]] = {}
            scores: dict[str, list[float | None]] = {}
            for task in names:
                columns = [
                    [met != (rng.random() < 0.1 + 0.02 * judge) for _ in range(words.repeats)]
                    for met in truth[task]
                ]
                lost = rng.random() < words.missing
                said[task] = {name: list(column) for name, column in zip(weights, columns, strict=True)}
                scores[task] = [
                    None
                    if lost
                    else max(
                        0.0,
                        100
                        * sum(w for w, column in zip(weights.values(), columns, strict=True) if column[at])
                        / positive,
                    )
                    for at in range(words.repeats)
                ]
            folders.append(
                write_run(
                    root / f"{system}-{judge}",
                    scores,
                    system=f"system-{system}",
                    judge=f"judge-{judge}",
                    system_family=FAMILIES[system % len(FAMILIES)],
                    judge_family=FAMILIES[judge % len(FAMILIES)],
                    said=said,
                    tasks=tasks,
                    cost_usd=0.1 * (system + 1),
                    latency_s=60.0 * (system + 1),
                    judgement_usd=0.01,
                    explanation="because " * words.words,
                )
            )
    return folders


def measure(code: str, *arguments: str) -> dict[str, Any]:
    """CPU and wall seconds and peak memory of `python -c code arguments`."""
    wrapped = (
        "import json, resource, sys\n"
        f"code = {code!r}\n"
        "try:\n    exec(compile(code, 'measured', 'exec'))\n"
        "except SystemExit as end:\n    assert not end.code, end.code\n"
        "used = resource.getrusage(resource.RUSAGE_SELF)\n"
        "sys.stderr.write(json.dumps([used.ru_utime + used.ru_stime, used.ru_maxrss]))\n"
    )
    started = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", wrapped, *arguments], capture_output=True, text=True, check=True, cwd=ROOT
    )
    cpu_s, peak = json.loads(done.stderr.splitlines()[-1])
    unit = 2**20 if sys.platform == "darwin" else 2**10
    return {"cpu_s": cpu_s, "wall_s": time.perf_counter() - started, "peak_mib": peak / unit}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in (
        ("systems", 10),
        ("judges", 3),
        ("repeats", 5),
        ("tasks", 100),
        ("criteria", 40),
        ("words", 60),
    ):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--labels", action="store_true")
    parser.add_argument("--missing", type=float, default=0.0)
    words = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        folders = [str(path) for path in write(Path(folder), words)]
        size = sum(path.stat().st_size for path in Path(folder).rglob("judgements.jsonl"))
        n = words.systems * words.judges * words.repeats * words.tasks * words.criteria
        print(f"{len(folders)} run folders, {n:,} judgements, {size / 2**20:,.0f} MiB of them")
        read = measure(READ, *folders)
        compare = measure(COMPARE, *folders, "--format", "json")
        empty = measure("import core.comparison")
    print(f"{'':<10} {'CPU s':>8} {'wall s':>8} {'peak MiB':>9} {'CPU / read':>11} {'µs/judgement':>13}")
    for name, found in (("import", empty), ("read", read), ("compare", compare)):
        print(
            f"{name:<10} {found['cpu_s']:>8.2f} {found['wall_s']:>8.2f} {found['peak_mib']:>9.0f} "
            f"{found['cpu_s'] / read['cpu_s']:>11.2f} {1e6 * found['cpu_s'] / n:>13.1f}"
        )


if __name__ == "__main__":
    main()
