"""What exporting a run costs by format, and against merely reading its judgements: CPU and memory on this machine.

    python benchmarks/export.py [--tasks 100] [--criteria 40] [--repeats 5] [--words 60]

Writes a run folder with made-up verdicts, 20,000 unless told otherwise, and exports it in a process of its own for
each format. `frame` is loading all tables as data frames. Nothing is asserted: machines differ.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from fakes.run_folders import task_rows, write_run  # noqa: E402  # runs from a checkout without being installed

from benchmarks.compare import READ, measure  # noqa: E402

EXPORT = "import sys; from core.export import main; sys.exit(main(sys.argv[1:]))"
FRAME = """
import sys
from core.exporting.tables import TABLES
from core.load import load
run = load(sys.argv[1])
for name in TABLES:
    run.frame(name)
"""
FORMATS = ("parquet", "csv", "latex", "markdown")


def write(folder: Path, words: argparse.Namespace) -> Path:
    """A run in which every thirtieth verdict is missing."""
    rng = random.Random(20260211)
    names = [f"task-{at}" for at in range(words.tasks)]
    weights = {f"c{at}": 5.0 for at in range(words.criteria)}

    def verdicts() -> Sequence[bool | None]:
        return [None if rng.random() < 1 / 30 else rng.random() < 0.6 for _ in range(words.repeats)]

    return write_run(
        folder,
        {name: [rng.uniform(0, 100) for _ in range(words.repeats)] for name in names},
        said={name: {criterion: verdicts() for criterion in weights} for name in names},
        tasks=task_rows(names, criteria=weights, domains=10),
        judgement_usd=0.0145,
        explanation="because " * words.words,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in (("tasks", 100), ("criteria", 40), ("repeats", 5), ("words", 60)):
        parser.add_argument(f"--{name}", type=int, default=default)
    words = parser.parse_args()
    n = words.tasks * words.criteria * words.repeats
    with tempfile.TemporaryDirectory() as folder:
        run, out = str(write(Path(folder, "run"), words)), str(Path(folder, "out"))
        found = {"import": measure("import core.load"), "read": measure(READ, run)}
        for form in FORMATS:
            found[form] = measure(EXPORT, run, "--format", form, "--out", out, "--texts")
        found["frame"] = measure(FRAME, run)
    print(f"{n:,} judgements")
    print(f"{'':<10} {'CPU s':>8} {'wall s':>8} {'peak MiB':>9} {'µs/judgement':>13}")
    for name, cost in found.items():
        print(
            f"{name:<10} {cost['cpu_s']:>8.2f} {cost['wall_s']:>8.2f} {cost['peak_mib']:>9.0f} "
            f"{1e6 * cost['cpu_s'] / n:>13.1f}"
        )


if __name__ == "__main__":
    main()
