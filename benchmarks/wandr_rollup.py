"""What WANDR's rollup costs: seconds and peak memory by number of records, and whether it grows linearly.

    python benchmarks/wandr_rollup.py [--most 1000000] [--analysis]

Invented records, judged at random; every tenth entity is a duplicate. Each shape runs in a process of its own, so
that its peak is its own; "input" is the peak before the rollup, records included. Measures and never asserts.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from plugins.wandr.analysis import JudgedRow, analyse  # noqa: E402 -- the repository's root comes first
from plugins.wandr.explain import as_tree  # noqa: E402
from plugins.wandr.model import Identity, JudgeSpec, Key, Leaf, Node, Requirement  # noqa: E402
from plugins.wandr.rollup import rollup  # noqa: E402


@dataclass(frozen=True)
class Shape:
    """`tasks` tasks of `entities` x `each` records, and one record an entity in a subtask where there is one."""

    name: str
    tasks: int
    entities: int
    each: int
    has_subtask: bool

    @property
    def records(self) -> int:
        return self.tasks * self.entities * (self.each + self.has_subtask)


def shapes(most: int) -> Iterator[Shape]:
    """Shapes of up to `most` records; none of them is a real task."""
    yield Shape("largest task", 1, 550, 5, has_subtask=False)
    yield Shape("3,000 entities x 3 + subtask", 1, 3_000, 3, has_subtask=True)
    yield Shape("608 nodes", 304, 112, 4, has_subtask=True)
    records = 10_000
    while records <= most:
        yield Shape("one task", 1, records // 10, 10, has_subtask=False)
        records *= 10
    yield Shape("one task + subtask", 1, most // 10, 9, has_subtask=True)


def node(shape: Shape) -> Node:
    judge = JudgeSpec(requirements=tuple(Requirement(f"r{number}", "shown", "met") for number in range(4)))

    def keys(first: int, each: int) -> tuple[Key, ...]:
        middle = (Key("item", ("item",), each),) if each > 1 else ()
        return (Key("entity", ("entity",), first), *middle, Key("url", ("url",), 1))

    below = (Node("t.s", "", keys(shape.entities, 1), judge),) if shape.has_subtask else ()
    return Node("t", "", keys(shape.entities, shape.each), judge, below)


def records(shape: Shape, rng: random.Random) -> list[Leaf]:
    outcomes = (True, True, True, False, None)
    found = []
    for entity in range(shape.entities):
        for item in range(shape.each):
            values = {"entity": f"entity {entity}", "item": f"item {item}"}
            url = f"https://example.org/{entity}/{item}"
            found.append(Leaf("t", values, url, rng.choice(outcomes), rng.choice(outcomes)))
        if shape.has_subtask:
            url = f"https://example.org/{entity}"
            found.append(Leaf("t.s", {"entity": f"entity {entity}"}, url, rng.choice(outcomes), None))
    rng.shuffle(found)
    return found


def identity(shape: Shape) -> Identity:
    """Every tenth entity is another spelling of the one before."""
    twins = {f"entity {number}": f"entity {number - 1}" for number in range(1, shape.entities, 10)}
    return Identity(cluster={"entity": twins})


def peak_mib() -> float:
    scale = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * scale / 2**20


def measure(shape: Shape, *, with_analysis: bool) -> None:
    rng = random.Random(7)
    root = node(shape)
    known = identity(shape)
    task = records(shape, rng)
    before = peak_mib()
    started = time.perf_counter()
    for _ in range(shape.tasks):
        rolled = rollup(root, task, known)
    seconds = time.perf_counter() - started
    peak = peak_mib()
    print(
        f"{shape.name:<30}{shape.records:>10,} records{seconds:>9.3f} s{1e6 * seconds / shape.records:>7.1f} µs"
        f" a record{before:>8.0f} MiB input{peak:>8.0f} MiB peak",
        end="",
    )
    if shape.records <= 20_000:
        started = time.perf_counter()
        size = len(json.dumps(as_tree(rolled)))
        print(f"   tree {time.perf_counter() - started:.3f} s, {size / 2**20:.1f} MiB", end="")
    if with_analysis and shape.records <= 200_000:
        names = [f"r{number}_{word}" for number in range(4) for word in ("satisfied", "supported")]
        rows = [JudgedRow(leaf, {name: rng.random() < 0.7 for name in names}) for leaf in task]
        started = time.perf_counter()
        for _ in range(shape.tasks):
            analyse(root, rows, rolled, known)
        print(f"   analysis {time.perf_counter() - started:.2f} s", end="")
    print(flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--most", type=int, default=1_000_000)
    parser.add_argument("--analysis", action="store_true", help="also the analysis, with eight checks a node")
    parser.add_argument("--only", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    found = list(shapes(options.most))
    if options.only is not None:
        measure(found[options.only], with_analysis=options.analysis)
        return
    flags = ["--analysis"] if options.analysis else []
    for number in range(len(found)):
        words = ["--most", str(options.most), "--only", str(number), *flags]
        subprocess.run([sys.executable, __file__, *words], check=True)


if __name__ == "__main__":
    main()
