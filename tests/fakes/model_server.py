"""A small OpenAI-compatible model server for tests and benchmarks, on 127.0.0.1.

`ModelServer` runs in a thread of its own. What it does with each request is scripted: `script` is a function
from the request's number (from 0) and its parsed body to a `Behaviour`, or a list whose last entry repeats.
It counts what it sees, and gives a deterministic verdict for each question (a hash of its last message).

    with ModelServer(delay_s=0.05) as server:
        …  f"{server.base_url}/chat/completions"

As a process, for benchmarks and kill tests: `python tests/fakes/model_server.py --port 0 --delay-ms 50`
prints its port on one line; GET /stats gives the counters as JSON.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Self

from aiohttp import web

PATH: Final = "/v1/chat/completions"
GARBAGE_PAGE: Final = "<html><head><title>502 Bad Gateway</title></head><body><h1>nginx</h1></body></html>"

Body = Mapping[str, Any]


@dataclass(frozen=True)
class Behaviour:
    """What one request gets.

    `mode` is one of MODES. `delay_s` passes before the answer. `text` replaces the verdict; `status`,
    `headers` and `body` make up an answer by hand (mode `reply`). `usage` and `cost` are what the answer
    reports.
    """

    mode: str = "ok"
    delay_s: float | None = None
    text: str | None = None
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    body: Any = None
    usage: Mapping[str, Any] | None = field(
        default_factory=lambda: {"prompt_tokens": 1500, "completion_tokens": 40, "total_tokens": 1540}
    )
    cost: float | None = None


MODES: Final = (
    "ok",
    "reply",
    "malformed",
    "truncated",
    "empty",
    "refusal",
    "filtered",
    "duplicate",
    "hang_up",
    "half",
    "never",
    "html",
    "error_in_200",
)

Script = Callable[[int, Body], Behaviour] | Sequence[Behaviour]


def error(
    status: int, message: str = "an error", *, code: str | None = None, retry_after: str | None = None
) -> Behaviour:
    """An error in OpenAI's form."""
    headers = {} if retry_after is None else {"retry-after": retry_after}
    body = {"error": {"message": message, "type": code or "error", "param": None, "code": code}}
    return Behaviour("reply", status=status, headers=headers, body=body)


#: What is answered to a question whose form stands in its text alone.
_ASKED_IN_WORDS: Final[Mapping[str, Any]] = {
    "explanation": {"type": "string"},
    "met": {"type": "boolean"},
    "verdict": {"enum": ["MET", "UNMET"]},
}


def verdict(body: Body) -> dict[str, Any]:
    """The verdict on a question: the same for the same last message, whatever the order of questions.

    Fills the fields of the schema that the request names; those of `_ASKED_IN_WORDS` when it names none.
    """
    last = str(body["messages"][-1]["content"])
    met = hashlib.sha256(last.encode("utf-8", "replace")).digest()[0] % 2 == 0
    asked = (body.get("response_format") or {}).get("json_schema", {}).get("schema", {})
    fields = asked.get("properties") or _ASKED_IN_WORDS
    return {name: _value(schema, met) for name, schema in fields.items()}


def _value(schema: Mapping[str, Any], met: bool) -> Any:
    if "enum" in schema:
        return schema["enum"][0 if met else -1]
    kind = schema.get("type")
    if kind == "object":
        return {name: _value(inner, met) for name, inner in (schema.get("properties") or {}).items()}
    simple = {"boolean": met, "integer": 3, "number": 3, "array": []}
    return simple.get(str(kind), "The response says so." if met else "The response does not say so.")


class ModelServer:
    """The server. `max_in_flight`: what it takes at once before it answers 429."""

    def __init__(
        self,
        script: Script | None = None,
        *,
        delay_s: float = 0.0,
        max_in_flight: int | None = None,
        retry_after: str | None = None,
        keep_bodies: bool = True,
        port: int = 0,
    ) -> None:
        self.script = script
        self.delay_s = delay_s
        self.max_in_flight = max_in_flight
        self.retry_after = retry_after
        self.keep_bodies = keep_bodies
        self.port = port
        self.requests = self.in_flight = self.peak = self.refused = self.answered = 0
        self.bodies: list[bytes] = []
        self.headers: list[dict[str, str]] = []
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._ready = threading.Event()
        self._stop: asyncio.Event | None = None

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    @property
    def stats(self) -> dict[str, int]:
        names = ("requests", "in_flight", "peak", "refused", "answered")
        return {name: getattr(self, name) for name in names}

    def questions(self) -> list[Body]:
        """The parsed bodies, in the order of arrival."""
        return [json.loads(body) for body in self.bodies]

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=lambda: asyncio.run(self.serve()), daemon=True)
        self._thread.start()
        if not self._ready.wait(10):
            raise RuntimeError("the fake model server did not start")
        return self

    def __exit__(self, *_: object) -> None:
        assert self._loop is not None
        assert self._stop is not None
        assert self._thread is not None
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(10)

    async def serve(self, on_ready: Callable[[int], None] | None = None) -> None:
        """Serve until stopped; `on_ready` gets the port."""
        self._loop = asyncio.get_running_loop()
        self._stop = asyncio.Event()
        runner = web.ServerRunner(web.Server(self._handle, access_log=None), shutdown_timeout=0)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", self.port, backlog=1024)
        await site.start()
        self.port = runner.addresses[0][1]
        self._ready.set()
        if on_ready is not None:
            on_ready(self.port)
        try:
            await self._stop.wait()
        finally:
            await runner.cleanup()

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        if request.path == "/stats":
            return web.json_response(self.stats)
        raw = await request.read()
        if request.path != PATH:
            return _json(404, {"error": {"message": f"no such path: {request.path}"}})
        number = self.requests
        self.requests += 1
        self.in_flight += 1
        self.peak = max(self.peak, self.in_flight)
        if self.keep_bodies:
            self.bodies.append(raw)
            self.headers.append({name.lower(): value for name, value in request.headers.items()})
        try:
            if self.max_in_flight is not None and self.in_flight > self.max_in_flight:
                self.refused += 1
                return _reply(error(429, "Rate limit reached", code="rate_limit", retry_after=self.retry_after))
            body = json.loads(raw)
            behaviour = self._behaviour(number, body)
            delay = self.delay_s if behaviour.delay_s is None else behaviour.delay_s
            if delay:
                await asyncio.sleep(delay)
            return await self._answer(request, behaviour, body)
        finally:
            self.in_flight -= 1

    def _behaviour(self, number: int, body: Body) -> Behaviour:
        if self.script is None:
            return Behaviour()
        if callable(self.script):
            return self.script(number, body)
        return self.script[min(number, len(self.script) - 1)]

    async def _answer(self, request: web.BaseRequest, what: Behaviour, body: Body) -> web.StreamResponse:
        if what.mode == "reply":
            self.refused += what.status == 429
            return _reply(what)
        if what.mode == "never":
            assert self._stop is not None
            await self._stop.wait()
        if what.mode in ("hang_up", "half", "never"):
            assert request.transport is not None
            if what.mode == "half":
                request.transport.write(b'HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n{"choices": [{"mess')
            request.transport.close()
            return web.Response()
        if what.mode == "html":
            return web.Response(status=502, text=GARBAGE_PAGE, content_type="text/html")
        self.answered += 1
        return _json(200, completion(what, body))


def completion(what: Behaviour, body: Body) -> dict[str, Any]:
    """The body of a chat completion in one of the modes."""
    if what.mode == "error_in_200":
        return {"error": what.body or {"code": 429, "message": "Rate limit exceeded upstream"}}
    text: str | None = what.text if what.text is not None else json.dumps(verdict(body))
    finish, refusal = "stop", None
    if what.mode == "malformed":
        text = "I would say that the criterion is met."
    elif what.mode == "truncated":
        finish, text = "length", str(text)[: len(str(text)) // 2]
    elif what.mode == "empty":
        text = ""
    elif what.mode == "refusal":
        text, refusal = None, "I can't help with that."
    elif what.mode == "filtered":
        finish, text = "content_filter", ""
    elif what.mode == "duplicate":
        text = '{"explanation": "a", "met": true, "met": false}'
    message = {"role": "assistant", "content": text, "refusal": refusal}
    usage = None if what.usage is None else dict(what.usage)
    if usage is not None and what.cost is not None:
        usage["cost"] = what.cost
    return {
        "id": "chatcmpl-fake",
        "object": "chat.completion",
        "created": 1,
        "model": str(body.get("model", "fake")),
        "choices": [{"index": 0, "finish_reason": finish, "message": message}],
        "usage": usage,
    }


def _reply(what: Behaviour) -> web.Response:
    if isinstance(what.body, str):
        return web.Response(status=what.status, headers=what.headers, text=what.body, content_type="text/html")
    return _json(what.status, what.body, what.headers)


def _json(status: int, body: Any, headers: Mapping[str, str] | None = None) -> web.Response:
    return web.Response(
        status=status, headers=headers, body=json.dumps(body).encode(), content_type="application/json"
    )


def cycled(*behaviours: Behaviour) -> Script:
    """A script that gives these in turn, over and over."""
    return lambda number, _: behaviours[number % len(behaviours)]


def once_then_ok(*behaviours: Behaviour) -> Script:
    """A script that gives these first, and answers every later request."""
    return [*behaviours, Behaviour()]


def main() -> None:
    parser = argparse.ArgumentParser(description="A fake OpenAI-compatible model server on 127.0.0.1.")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--delay-ms", type=float, default=0.0)
    parser.add_argument("--max-in-flight", type=int, help="more than this at once gets a 429")
    parser.add_argument("--retry-after", help="the Retry-After header of those")
    parser.add_argument("--mode", choices=MODES, default="ok", help="what every request gets")
    parser.add_argument("--status", type=int, help="every request gets an error of this status")
    parser.add_argument("--cost", type=float, help="usage.cost of every answer")
    arguments = parser.parse_args()
    behaviour = error(arguments.status) if arguments.status else Behaviour(arguments.mode, cost=arguments.cost)
    server = ModelServer(
        [replace(behaviour, delay_s=None)],
        delay_s=arguments.delay_ms / 1000,
        max_in_flight=arguments.max_in_flight,
        retry_after=arguments.retry_after,
        keep_bodies=False,
        port=arguments.port,
    )
    asyncio.run(server.serve(lambda port: print(port, flush=True)))


if __name__ == "__main__":
    main()
