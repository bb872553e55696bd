"""A provider played from recorded exchanges, over real HTTP on 127.0.0.1.

The exchanges of a scenario are expected in order: the next request must have the method and path of the next
exchange; a request that repeats the last one (a poll) gets the last answer again. Anything else is answered with
418 and noted in `unexpected`, which a test asserts to be empty.

    with ReplayServer(scenario("exa", "happy")) as server:
        submission = solved(tmp_path, server, "exa", task)
"""

from __future__ import annotations

import asyncio
import base64
import json
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

import pytest
from aiohttp import web
from conftest import ROOT
from fakes.loop_server import LoopServer

from core.budget import Budget
from core.calls import RetryPolicy
from core.clock import RealClock
from core.config import RunConfig
from core.errors import StopRun
from core.jobs.ledger import Jobs
from core.limiter import Limiters
from core.logs import silent_logger
from core.model import Submission, Task
from core.parts import System
from core.plugin_manager import PluginManager
from core.services import Services
from core.solving import Solver
from core.stop import Stop
from core.store import Store
from core.testing import services as test_services
from core.testing.parts import compose

RECORDED: Final = ROOT.parent / "shared" / "data" / "providers"
KEY: Final = "provider-key-7c1e"
#: Polls and waits as short as a test wants them.
SWIFT: Final = (
    "system.poll.first_s=0.01",
    "system.poll.longest_s=0.02",
    "system.poll.grace_s=0.3",
    "system.poll.outage_s=0.6",
)


@dataclass(frozen=True)
class Exchange:
    """One request that is expected, and its answer. `fault`: hang_up (read, then closed), cut (half of the body).

    `make` gives the body when the request comes: for what depends on what was sent before.
    """

    method: str
    path: str
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    aliases: tuple[str, ...] = ()
    fault: str | None = None
    make: Callable[[], bytes] | None = None

    def with_json(self, **changes: Any) -> Exchange:
        """The same with some fields of its JSON body changed."""
        return replace(self, body=json.dumps({**json.loads(self.body), **changes}).encode())

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass(frozen=True)
class Request:
    """One request as it came."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body) if self.body else None


def answer(
    method: str,
    path: str,
    status: int = 200,
    body: Any = None,
    headers: Mapping[str, str] | None = None,
    **more: Any,
) -> Exchange:
    """An exchange made by hand: `body` is JSON, or a text as it stands."""
    content = body.encode() if isinstance(body, str) else b"" if body is None else json.dumps(body).encode()
    kind = "text/html" if isinstance(body, str) else "application/json"
    return Exchange(method, path, status, {"content-type": kind, **(headers or {})}, content, **more)


def hang_up(method: str, path: str) -> Exchange:
    """The request is read, and the connection closed without a word."""
    return Exchange(method, path, fault="hang_up")


def cut(exchange: Exchange) -> Exchange:
    """The answer breaks off in the middle of its body."""
    return replace(exchange, fault="cut")


def recorded(provider: str, name: str) -> Exchange:
    """A recorded exchange; the test is skipped where the recordings are absent."""
    path = RECORDED / provider / f"{name}.json"
    if not path.is_file():
        pytest.skip("the recorded exchanges are not here")
    tree = json.loads(path.read_text(encoding="utf-8"))
    asked, came = tree["request"], tree["response"]
    if "sse" in came:
        content = b"".join(_event(event) for event in came["sse"])
    elif "base64" in came:
        content = base64.b64decode(came["base64"])
    elif "text" in came:
        content = came["text"].encode()
    else:
        content = json.dumps(came.get("json"), ensure_ascii=False).encode()
    aliases = tuple(asked.get("path_aliases") or ())
    return Exchange(
        asked["method"], asked["path"], came["status"], came.get("headers") or {}, content, aliases=aliases
    )


def scenario(provider: str, name: str) -> list[Exchange]:
    """The exchanges of a recorded scenario, in order."""
    path = RECORDED / provider / "scenarios.json"
    if not path.is_file():
        pytest.skip("the recorded exchanges are not here")
    return [recorded(provider, step) for step in json.loads(path.read_text(encoding="utf-8"))[name]]


def sse(*events: Mapping[str, Any]) -> bytes:
    """Events as they are sent: {"data": …, "event"?: …, "id"?: …}."""
    return b"".join(_event(event) for event in events)


def _event(event: Mapping[str, Any]) -> bytes:
    lines = [f"{name}: {event[name]}" for name in ("id", "event") if name in event]
    data = event["data"]
    lines.append(f"data: {data if isinstance(data, str) else json.dumps(data, ensure_ascii=False)}")
    return ("\n".join(lines) + "\n\n").encode()


class ReplayServer(LoopServer):
    """The server. `always` are exchanges that may come at any time (a list of runs, a cancel), by method and path."""

    def __init__(self, exchanges: Sequence[Exchange], *, always: Sequence[Exchange] = (), port: int = 0) -> None:
        super().__init__(port)
        self.exchanges = list(exchanges)
        self.always = list(always)
        self.requests: list[Request] = []
        self.unexpected: list[str] = []
        self._next = 0

    @property
    def left(self) -> int:
        """Exchanges that nobody asked for."""
        return len(self.exchanges) - self._next

    def sent(self, method: str, path: str | None = None) -> list[Request]:
        """The requests of this method (and path), in the order of arrival."""
        return [one for one in self.requests if one.method == method and path in (None, one.path)]

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        raw = await request.read()
        headers = {name.lower(): value for name, value in request.headers.items()}
        self.requests.append(Request(request.method, request.path, dict(request.query), headers, raw))
        found = self._find(request.method, request.path)
        if found is None:
            self.unexpected.append(f"{request.method} {request.path}")
            return web.json_response({"error": {"message": "not in the scenario"}}, status=418)
        if found.make is not None:
            found = replace(found, body=found.make())
        if found.fault == "hang_up":
            assert request.transport is not None
            request.transport.close()
            return web.Response()
        if found.fault == "cut":
            response = web.StreamResponse(status=found.status, headers=found.headers)
            response.content_length = len(found.body)
            await response.prepare(request)
            await response.write(found.body[: len(found.body) // 2])
            assert request.transport is not None
            request.transport.close()
            return response
        return web.Response(status=found.status, headers=found.headers, body=found.body)

    def _find(self, method: str, path: str) -> Exchange | None:
        def fits(exchange: Exchange) -> bool:
            return exchange.method == method and path in (exchange.path, *exchange.aliases)

        if self._next < len(self.exchanges) and fits(self.exchanges[self._next]):
            self._next += 1
            return self.exchanges[self._next - 1]
        if self._next and fits(self.exchanges[self._next - 1]) and method == "GET":
            return self.exchanges[self._next - 1]
        return next((exchange for exchange in self.always if fits(exchange)), None)


def plain_task(**changes: Any) -> Task:
    """A task whose answer is a text."""
    return Task(**{"id": "lga-001", "prompt": "List the members of the association.", **changes})


def file_task(*names: str, **changes: Any) -> Task:
    """A task that asks for files, with the typed form in which a reply may carry them."""
    entry = {
        "type": "object",
        "properties": {"path": {"type": "string"}, "content": {"type": "string"}},
        "required": ["path", "content"],
        "additionalProperties": False,
    }
    schema = {
        "type": "object",
        "properties": {"files": {"type": "array", "items": entry}},
        "required": ["files"],
        "additionalProperties": False,
    }
    return plain_task(**{"required_files": names or ("members.csv",), "output_schema": schema, **changes})


def make_system(server: ReplayServer, name: str, *words: str, given: Services | None = None) -> System:
    """The system as a run has it, pointed at the server, with short waits."""
    config, plugins = _composed(name, *SWIFT, *words)
    section = {**config.system.plain(), "effort_settings": config.effort_settings()}
    if not any(word.startswith("system.base_url=") for word in words):
        section["base_url"] = server.base_url
    made: System = plugins.factory("system", config.system.adapter)(
        section, replace(given or provider_services(), effort=config.effort_word())
    )
    return made


@lru_cache(maxsize=256)
def _composed(name: str, *words: str) -> tuple[RunConfig, PluginManager]:
    """A system's configuration: composing takes longer than most tests' requests."""
    return compose(f"system={name}", *words)


def provider_services() -> Services:
    """Services whose every key is KEY."""
    return test_services(environ=_Keys())


class _Keys(dict[str, str]):
    def get(self, name: str, default: Any = None) -> Any:
        return KEY


@dataclass
class Solved:
    """What came of an attempt: the submission, or the reason why the run stops; what the ledger says."""

    submission: Submission | None
    stopped: StopRun | None
    calls: list[tuple[str | None, float | None]]
    job_left: bool


def solved(
    folder: Path,
    server: ReplayServer,
    name: str,
    task: Task | None = None,
    *words: str,
    attempt: int = 1,
    retry_failed: bool = False,
    attempts: int = 4,
) -> Solved:
    """Solve one task through the run's own layers: retries, store, ledger. The store stays in `folder`."""
    task = task or plain_task()
    return asyncio.run(_solved(folder, server, name, task, words, attempt, retry_failed, attempts))


async def _solved(
    folder: Path,
    server: ReplayServer,
    name: str,
    task: Task,
    words: Sequence[str],
    attempt: int,
    retry_failed: bool,
    attempts: int,
) -> Solved:
    clock = RealClock()
    store = Store(folder / "store.sqlite")
    jobs = Jobs(clock)
    jobs.open(store)
    given = replace(provider_services(), jobs=jobs, limiter=Limiters(clock))
    system = make_system(server, name, *words, given=given)
    solver = Solver(
        system,
        name=name,
        effort=given.effort,
        width=1,
        policy=RetryPolicy(attempts, 0.02, "system"),
        retry_failed=retry_failed,
        store=store,
        limiter=given.limiter.get(getattr(system, "account", name), max_in_flight=4),
        budget=Budget(),
        clock=clock,
        rng=random.Random(0),
        keys=given.keys,
        stop=Stop(),
        run="run",
        log=silent_logger(),
        jobs=jobs,
    )
    submission, stopped = None, None
    try:
        submission, _ = await solver.solve(task, attempt)
    except StopRun as stop:
        stopped = stop
    finally:
        await system.aclose()  # type: ignore[attr-defined]  # a job system has it
        await given.http.aclose()
    rows = store._db.execute("SELECT error, usd FROM call ORDER BY id").fetchall()
    left = store.job(solver.key(task, attempt)) is not None
    store.close()
    return Solved(submission, stopped, [tuple(row) for row in rows], left)
