"""Two hundred jobs of eight providers at once, for a simulated hour: none lost, none doubled, limits kept."""

from __future__ import annotations

import asyncio
import gc
import json
import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest
from fakes.clock import SimClock

from core.budget import Budget
from core.calls import RetryPolicy
from core.clock import Clock
from core.http import Http
from core.jobs.ledger import Jobs
from core.limiter import Limiters
from core.logs import silent_logger
from core.model import Submission, Task
from core.services import Services
from core.solving import Solver
from core.stop import Stop
from core.store import Store
from core.testing import services as core_services
from core.testing import system as system_factory

SYSTEMS = ("exa", "parallel", "openai", "tavily", "valyu", "perplexity", "gemini", "you")
ACTIVE = 25
TASKS = 125
#: Creates beyond these active jobs are refused by the provider.
CEILING = 28


class Provider:
    """Any of the APIs: jobs last minutes of simulated time; now and then a create or a poll is refused."""

    def __init__(self, name: str, clock: Clock) -> None:
        self.name, self.clock = name, clock
        self.rng = random.Random(name)
        self.jobs: dict[str, dict[str, Any]] = {}
        self.creates: Counter[str] = Counter()
        self.active = self.peak = self.refused = self.requests = 0

    def handle(self, request: httpx.Request) -> httpx.Response:
        self.requests += 1
        if request.method == "POST":
            return self._create(json.loads(request.content))
        if self.rng.random() < 0.02:
            return httpx.Response(502, text="<html><body>502 Bad Gateway</body></html>")
        name = next(part for part in request.url.path.split("/") if part.startswith("job-"))
        job = self.jobs[name]
        if job["end"] is not None and self.clock.monotonic() >= job["end"]:
            job["end"] = None
            self.active -= 1
        return httpx.Response(200, json=self._view(name, done=job["end"] is None))

    def _create(self, body: Any) -> httpx.Response:
        if self.active >= CEILING or self.rng.random() < 0.05:
            self.refused += 1
            return httpx.Response(429, json={"error": {"message": "slow down"}}, headers={"retry-after": "3"})
        prompt = str(body.get("query") or body.get("input"))
        self.creates[prompt] += 1
        name = f"job-{len(self.jobs):05d}"
        self.jobs[name] = {"prompt": prompt, "end": self.clock.monotonic() + self.rng.uniform(400, 1200)}
        self.active += 1
        self.peak = max(self.peak, self.active)
        return httpx.Response(200, json=self._view(name, done=False))

    def _view(self, name: str, *, done: bool) -> dict[str, Any]:
        text = f"Report on {self.jobs[name]['prompt']}"
        word = "completed" if done else "running"
        views: dict[str, dict[str, Any]] = {
            "exa": {
                "id": name,
                "status": word,
                "output": {"text": text} if done else None,
                "costDollars": {"total": 0.1} if done else None,
            },
            "parallel": {
                "run_id": name,
                "status": word,
                "run": {"run_id": name, "status": word},
                "output": {"type": "text", "content": text, "basis": []},
            },
            "openai": {
                "id": name,
                "status": "completed" if done else "in_progress",
                "model": "gpt-6.1-sol",
                "output": [
                    {"type": "message", "content": [{"type": "output_text", "text": text, "annotations": []}]}
                ]
                if done
                else [],
            },
            "tavily": {
                "request_id": name,
                "status": "completed" if done else "in_progress",
                "content": text,
                "sources": [],
            },
            "you": {
                "task_id": name,
                "id": name,
                "status": word,
                "output": {"content": text, "sources": []} if done else None,
            },
            "gemini": {
                "id": name,
                "status": "completed" if done else "in_progress",
                "steps": [{"type": "model_output", "content": [{"type": "text", "text": text}]}] if done else [],
            },
            "valyu": {
                "success": True,
                "deepresearch_id": name,
                "status": word,
                "output": text if done else None,
                "cost": 0.5,
            },
        }
        views["perplexity"] = views["openai"]
        return views[self.name]


class Keys(dict[str, str]):
    def get(self, name: str, default: Any = None) -> Any:
        return "a-key-of-the-test"


def solver(name: str, services: Services, store: Store, stop: Stop) -> Solver:
    words = [
        "system.retry.attempts=50",
        "system.poll.longest_s=60",
        "system.timeout_s=3600",
        "system.requests_per_minute=null",
    ]
    system = system_factory(name, *words)(services)
    assert services.jobs is not None
    return Solver(
        system,
        name=name,
        effort=None,
        width=ACTIVE,
        policy=RetryPolicy(50, 60.0, "system"),
        retry_failed=False,
        store=store,
        limiter=services.limiter.get(system.account, max_in_flight=ACTIVE, long_jobs=True),  # type: ignore[attr-defined]  # a job system has it
        budget=Budget(),
        clock=services.clock,
        rng=random.Random(1),
        keys=services.keys,
        stop=stop,
        run="run",
        log=silent_logger(),
        jobs=services.jobs,
    )


@pytest.mark.slow
def test_two_hundred_jobs_for_an_hour(tmp_path: Path) -> None:
    clock = SimClock()
    providers = {name: Provider(name, clock) for name in SYSTEMS}
    hosts = {**{name: name for name in SYSTEMS}, "gemini": "google", "you": "you.com"}

    async def handle(request: httpx.Request) -> httpx.Response:
        await clock.sleep(0.2)
        return next(providers[name] for name, word in hosts.items() if word in request.url.host).handle(request)

    store = Store(tmp_path / "store.sqlite")
    jobs = Jobs(clock)
    jobs.open(store)
    services = replace(
        core_services(environ=Keys()),
        http=Http(clock, transport=httpx.MockTransport(handle)),
        limiter=Limiters(clock),
        clock=clock,
        jobs=jobs,
    )
    stop = Stop()
    alive: list[int] = []
    ended: list[Submission] = []

    async def work(solving: Solver, tasks: Iterator[Task]) -> None:
        for task in tasks:
            submission, reused = await solving.solve(task, 1)
            assert not reused
            ended.append(submission.model_copy(update={"text": None, "settings": {}}))
            if len(ended) % 250 == 0:
                gc.collect()
                alive.append(
                    sum(
                        str(type(one).__module__).startswith(("core", "asyncio", "httpx"))
                        for one in gc.get_objects()
                    )
                )

    async def all_of_it() -> None:
        async with asyncio.TaskGroup() as group:
            for name in SYSTEMS:
                solving = solver(name, services, store, stop)
                tasks = iter(
                    [Task(id=f"{name}-{number}", prompt=f"{name} question {number}") for number in range(TASKS)]
                )
                for _ in range(ACTIVE):
                    group.create_task(work(solving, tasks))

    asyncio.run(clock.run(all_of_it()))
    assert clock.elapsed >= 3600
    assert len(ended) == len(SYSTEMS) * TASKS
    assert Counter(one.status for one in ended) == {"completed": len(ended)}
    for name, provider in providers.items():
        assert set(provider.creates.values()) == {1}, f"{name}: each question was sent once"
        assert len(provider.creates) == TASKS, name
        assert provider.peak <= ACTIVE, f"{name}: its account's limit"
        assert provider.peak > ACTIVE * 0.6, f"{name}: it was made use of"
        assert provider.refused > 0, f"{name}: refusals were met"
    assert max(alive) < 1.2 * min(alive[:-1]), f"objects alive after each 250 jobs: {alive}"
    assert store._db.execute("SELECT COUNT(*) FROM job").fetchone() == (0,)
