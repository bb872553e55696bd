"""What judging costs in CPU and how the limiter behaves, measured against a fake model server on this machine.

    python benchmarks/judges.py [--calls 4000] [--width 200] [--delay-ms 50] [--skip litellm]

The server runs in a process of its own; figures are this process's CPU. Reports have 6,000 characters. Nothing
is asserted: machines differ.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import subprocess
import sys
import time
import urllib.request
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from core.calls import RetryPolicy, call  # noqa: E402  # runs from a checkout without being installed
from core.clock import RealClock  # noqa: E402
from core.errors import CallError  # noqa: E402
from core.http import Http  # noqa: E402
from core.judge.openai_compatible import OpenAICompatibleJudge  # noqa: E402
from core.judge.question import Question  # noqa: E402
from core.judge.via_litellm import LitellmJudge, load  # noqa: E402
from core.limiter import Limiter, Limiters  # noqa: E402
from core.parts import Judge  # noqa: E402
from core.secrets import Keys  # noqa: E402
from core.services import Services  # noqa: E402

SCHEMA = {
    "type": "object",
    "properties": {"explanation": {"type": "string"}, "verdict": {"type": "string", "enum": ["MET", "UNMET"]}},
    "required": ["explanation", "verdict"],
    "additionalProperties": False,
}
REPORTS = [f"{number} " + "word " * 1200 for number in range(100)]
QUESTIONS_A_REPORT = 40


@dataclass(frozen=True)
class Figures:
    """One line of the table. `refused` is the share of all requests."""

    what: str
    cpu_ms: float
    calls_per_s: float
    peak: int
    refused: float
    lost: int = 0

    def __str__(self) -> str:
        return (
            f"{self.what:<52} {self.cpu_ms:>8.2f} {self.calls_per_s:>9.0f} {self.peak:>6} "
            f"{self.refused:>8.2%} {self.lost:>5}"
        )


@contextmanager
def server(*arguments: str) -> Iterator[int]:
    """The fake model server in its own process; gives its port."""
    command = [sys.executable, str(ROOT / "tests" / "fakes" / "model_server.py"), *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield int(process.stdout.readline())
        finally:
            process.terminate()


def stats(port: int) -> dict[str, int]:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/stats") as answer:
        found: dict[str, int] = json.load(answer)
        return found


def question(number: int) -> Question:
    report = REPORTS[number // QUESTIONS_A_REPORT % len(REPORTS)]
    ask = f"Criterion {number}: the report states the figure. " * 4
    unit = (f"criterion/{number}",)
    return Question("task", 1, 1, unit, "You judge one criterion. " * 40, report, ask, SCHEMA)


async def measured(what: str, port: int, ask: Callable[[int], Awaitable[Any]], calls: int, width: int) -> Figures:
    """Make so many calls by so many workers, after a short run that warms connections and caches."""
    lost = 0

    async def work(numbers: Iterator[int]) -> None:
        nonlocal lost
        for number in numbers:
            try:
                await ask(number)
            except CallError:
                lost += 1

    async def run(count: int) -> None:
        numbers = iter(range(count))
        await asyncio.gather(*(work(numbers) for _ in range(width)))

    await run(width)
    before, cpu, wall = stats(port), time.process_time(), time.perf_counter()
    lost = 0
    await run(calls)
    cpu, wall, after = time.process_time() - cpu, time.perf_counter() - wall, stats(port)
    asked = after["requests"] - before["requests"]
    refused = (after["refused"] - before["refused"]) / asked
    return Figures(what, cpu / calls * 1000, calls / wall, after["peak"], refused, lost)


def services(clock: RealClock, http: Http) -> Services:
    return Services(http, Limiters(clock), clock, random.Random(0), None, Keys({"KEY": "sk-benchmark"}))


async def clients(arguments: argparse.Namespace) -> None:
    """CPU of a call: the bare client, the fast judge, litellm."""
    clock = RealClock()
    http = Http(clock)
    given = services(clock, http)
    with server("--delay-ms", str(arguments.delay_ms)) as port:
        base = f"http://127.0.0.1:{port}/v1"
        config = {"name": "x", "base_url": base, "model": "fake", "effort": "low", "max_output_tokens": 4096}
        fast = OpenAICompatibleJudge(config, given)
        body = fast.body(question(0))

        async def bare(_: int) -> Any:
            return await http.request("POST", f"{base}/chat/completions", content=body, timeout_s=60)

        print(await measured("http alone", port, bare, arguments.calls, arguments.width))
        asked = partial(_ask, fast)
        print(await measured("openai_compatible.ask", port, asked, arguments.calls, arguments.width))
        limiter = Limiter(clock, max_in_flight=arguments.width)
        retried = _with_retries(asked, limiter, clock)
        what = "openai_compatible.ask, limiter and retries"
        print(await measured(what, port, retried, arguments.calls, arguments.width))
        if "litellm" not in arguments.skip:
            started = time.perf_counter()
            load()
            print(f"import of litellm: {time.perf_counter() - started:.1f} s")
            judge = LitellmJudge({**config, "model": "openai/gpt-5.4", "api_key_env": "KEY"}, given)
            slow = partial(_ask, judge)
            calls = max(arguments.width, arguments.calls // 4)
            print(await measured("litellm.ask", port, slow, calls, arguments.width))
            await judge.aclose()
    await http.aclose()


async def limits(arguments: argparse.Namespace) -> None:
    """How the limiter finds a ceiling, or that there is none."""
    clock = RealClock()
    for what, flags in (
        ("server takes 30 at once", ("--max-in-flight", "30")),
        ("server takes 30 at once, Retry-After: 1", ("--max-in-flight", "30", "--retry-after", "1")),
        ("server takes all", ()),
    ):
        http = Http(clock)
        with server("--delay-ms", str(arguments.delay_ms), *flags) as port:
            judge = OpenAICompatibleJudge(
                {"name": "x", "base_url": f"http://127.0.0.1:{port}/v1", "model": "fake"}, services(clock, http)
            )
            limiter = Limiter(clock, max_in_flight=arguments.width)
            ask = _with_retries(partial(_ask, judge), limiter, clock)
            print(await measured(what, port, ask, arguments.calls, arguments.width))
        await http.aclose()


async def _ask(judge: Judge, number: int) -> Any:
    return await judge.ask(question(number))


def _with_retries(
    ask: Callable[[int], Awaitable[Any]], limiter: Limiter, clock: RealClock
) -> Callable[[int], Awaitable[Any]]:
    rng = random.Random(0)

    async def retried(number: int) -> Any:
        return await call(lambda _: ask(number), policy=RetryPolicy(), limiter=limiter, clock=clock, rng=rng)

    return retried


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=3934)
    parser.add_argument("--width", type=int, default=200)
    parser.add_argument("--delay-ms", type=float, default=50.0)
    parser.add_argument("--skip", nargs="*", default=(), choices=["litellm", "limits"])
    arguments = parser.parse_args()
    print(f"{'':<52} {'CPU ms':>8} {'calls/s':>9} {'peak':>6} {'refused':>8} {'lost':>5}")
    asyncio.run(clients(arguments))
    if "limits" not in arguments.skip:
        asyncio.run(limits(arguments))


if __name__ == "__main__":
    main()
