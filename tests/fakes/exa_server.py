"""Exa's Agent API as far as a run uses it: runs that last until they are let go, and a count of what was asked."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping
from typing import Any

from aiohttp import web
from fakes.loop_server import LoopServer

Output = Callable[[Mapping[str, Any]], Mapping[str, Any]]


def a_report(request: Mapping[str, Any]) -> Mapping[str, Any]:
    return {"text": f"A report on: {request['query'][:60]}", "structured": None, "grounding": []}


class ExaServer(LoopServer):
    """`output` makes a run's output from its request. Runs end at their first poll once `let_go` is set.

    `fail_creates`: so many creates are read and then hung up on, after the run was started.
    """

    def __init__(self, output: Output = a_report, *, held: bool = False, key: str | None = None) -> None:
        super().__init__()
        self.output, self.key = output, key
        self.let_go = threading.Event()
        if not held:
            self.let_go.set()
        self.runs: dict[str, dict[str, Any]] = {}
        self.creates = self.polls = self.cancels = self.lists = 0
        self.hang_up_on: set[int] = set()

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        if self.key is not None and request.headers.get("x-api-key") != self.key:
            return web.json_response({"requestId": "req_1", "error": "Invalid API key"}, status=401)
        *_, last = parts = request.path.strip("/").split("/")
        if request.method == "POST" and parts == ["agent", "runs"]:
            return await self._create(request)
        if request.method == "GET" and parts == ["agent", "runs"]:
            self.lists += 1
            return web.json_response({"data": list(self.runs.values()), "hasMore": False})
        run = self.runs.get(parts[2] if len(parts) > 2 else "")
        if run is None:
            return web.json_response({"error": {"code": "NOT_FOUND", "message": "no such run"}}, status=404)
        if last == "cancel":
            self.cancels += 1
            run |= {"status": "cancelled", "stopReason": "cancelled"}
        elif run["status"] == "running":
            self.polls += 1
            if self.let_go.is_set():
                run |= {
                    "status": "completed",
                    "stopReason": "schema_satisfied",
                    "output": self.output(run["request"]),
                    "costDollars": {"total": 0.025, "agentCompute": 0.025},
                }
        return web.json_response(run)

    async def _create(self, request: web.BaseRequest) -> web.StreamResponse:
        body = json.loads(await request.read())
        self.creates += 1
        name = f"agent_run_{self.creates:04d}"
        self.runs[name] = run = {
            "id": name,
            "object": "agent_run",
            "status": "running",
            "stopReason": None,
            "request": body,
            "output": None,
            "costDollars": None,
            "error": None,
        }
        if self.creates in self.hang_up_on:
            assert request.transport is not None
            request.transport.close()
        return web.json_response({**run, "status": "queued"})
