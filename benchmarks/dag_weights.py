"""What weights cost on graphs far beyond any task: time and memory of each scheme, of two of them by depth.

    python benchmarks/dag_weights.py [--nodes 100000] [--edges 300000] [--reach 500] [--only leaf_sum katz]

A graph has its nodes in a random order; each edge goes from a node to one of the `reach` nodes after it, so
that a smaller reach gives a deeper graph. Each scheme runs in a process of its own. Measures and never asserts.
Memory is the peak of what Python allocated while it weighed, from a second pass that is not timed.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Mapping, Sequence

from plugins.dag_rubric.graph import Graph
from plugins.dag_rubric.weights import SCHEMES, weigh

#: Schemes whose numbers grow with the depth of a graph, and the reaches at which they are measured, on a tenth of
#: the nodes.
BY_DEPTH = ("leaf_split", "katz")
REACHES = (10_000, 3_000, 1_000, 300, 100, 10)


def random_graph(nodes: int, edges: int, reach: int) -> dict[str, list[str]]:
    """Node → parents."""
    rng = random.Random(20260802)
    names = [f"n{number}" for number in range(nodes)]
    rng.shuffle(names)
    parents: list[set[int]] = [set() for _ in names]
    made = 0
    while made < edges:
        child = rng.randrange(1, nodes)
        parent = rng.randrange(max(0, child - reach), child)
        if parent not in parents[child]:
            parents[child].add(parent)
            made += 1
    return {name: [names[parent] for parent in found] for name, found in zip(names, parents, strict=True)}


def measure(scheme: str, nodes: int, edges: int, reach: int) -> dict[str, float]:
    """Seconds of reading the graph, of raw weights, of their shares; bytes; depth; the largest number's bits."""
    parents = random_graph(nodes, edges, reach)
    start = time.perf_counter()
    graph = Graph.of(parents)
    read = time.perf_counter()
    explicit = [1.5] * nodes if scheme == "explicit" else None
    weights = weigh(graph, scheme, explicit=explicit)
    weighed = time.perf_counter()
    shares = weights.shares()
    end = time.perf_counter()
    tracemalloc.start()
    weigh(graph, scheme, explicit=explicit)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    largest = max(max(raw.numerator.bit_length(), raw.denominator.bit_length()) for raw in weights.raw)
    return {
        "read_s": read - start,
        "raw_s": weighed - read,
        "shares_s": end - weighed,
        "bytes": peak,
        "depth": max(graph.heights()),
        "bits": largest,
        "sum": sum(shares),
    }


def apart(scheme: str, nodes: int, edges: int, reach: int) -> Mapping[str, float]:
    """`measure` in a process of its own, so that one scheme's memory is not another's."""
    words = [
        sys.executable,
        __file__,
        "--one",
        scheme,
        "--nodes",
        str(nodes),
        "--edges",
        str(edges),
        "--reach",
        str(reach),
    ]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    found: Mapping[str, float] = json.loads(done.stdout)
    return found


def show(names: Sequence[str], found: Mapping[str, float]) -> None:
    cells = [
        f"{found['depth']:>7.0f}",
        f"{found['read_s']:>8.2f}",
        f"{found['raw_s']:>8.2f}",
        f"{found['shares_s']:>9.2f}",
        f"{found['bytes'] / 2**20:>9.1f}",
        f"{found['bits']:>9.0f}",
    ]
    print(f"{' '.join(names):<20}", *cells, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--nodes", type=int, default=100_000)
    parser.add_argument("--edges", type=int, default=300_000)
    parser.add_argument("--reach", type=int, default=10_000, help="how far an edge may go in the order of nodes")
    parser.add_argument("--only", nargs="+", default=list(SCHEMES), choices=list(SCHEMES))
    parser.add_argument("--one", choices=list(SCHEMES), help=argparse.SUPPRESS)
    words = parser.parse_args()
    if words.one:
        print(json.dumps(measure(words.one, words.nodes, words.edges, words.reach)))
        return
    head = f"{'':<20} {'depth':>7} {'read s':>8} {'raw s':>8} {'shares s':>9} {'MiB':>9} {'bits':>9}"
    print(f"{words.nodes:,} nodes, {words.edges:,} edges, reach {words.reach:,}\n{head}")
    for scheme in words.only:
        show([scheme], apart(scheme, words.nodes, words.edges, words.reach))
    nodes, edges = words.nodes // 10, words.edges // 10
    for scheme in BY_DEPTH:
        if scheme in words.only:
            print(f"\n{scheme} by depth: {nodes:,} nodes, {edges:,} edges\n{head}")
            for reach in REACHES:
                show(["reach", f"{reach:,}"], apart(scheme, nodes, edges, reach))


if __name__ == "__main__":
    main()
