"""OpenAI's responses made by hand, and a run of system=openai against them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fakes.replay_server import Exchange, ReplayServer, Solved, answer, plain_task, solved, sse

from core.model import Submission, Task

ID = "resp_1"
CREATE = "/v1/responses"
GET = f"{CREATE}/{ID}"
CANCEL = f"{GET}/cancel"
#: A deadline that passes while the job is polled.
SOON = "system.ladders.product.medium.timeout_s=0.1"
OWN = "/mnt/data/members.csv"
CSV = "name,city\nNorthmere,Ashby Quay\n"


def response(status: str = "completed", output: list[Any] | None = None, **more: Any) -> dict[str, Any]:
    return {"id": ID, "object": "response", "status": status, "output": output or [], **more}


def said(text: str, *annotations: Mapping[str, Any], phase: str | None = None) -> dict[str, Any]:
    part = {"type": "output_text", "text": text, "annotations": list(annotations)}
    return {"type": "message", "content": [part], **({"phase": phase} if phase else {})}


def ran(container: str) -> dict[str, Any]:
    return {"type": "code_interpreter_call", "container_id": container}


def created(status: str = "queued") -> Exchange:
    return answer("POST", CREATE, body=response(status))


def ended(*output: Any, **more: Any) -> Exchange:
    return answer("GET", GET, body=response(output=list(output), **more))


def listing(container: str, *files: tuple[str, str, int], **more: Any) -> Exchange:
    data = [{"id": file, "path": path, "created_at": made} for file, path, made in files]
    return answer("GET", f"/v1/containers/{container}/files", body={"data": data, "has_more": False, **more})


def content(container: str, file: str, body: str | bytes = CSV, status: int = 200) -> Exchange:
    path = f"/v1/containers/{container}/files/{file}/content"
    raw = body.encode() if isinstance(body, str) else body
    return Exchange("GET", path, status, {"content-type": "application/octet-stream"}, raw)


def events(*bodies: Mapping[str, Any], method: str = "POST", path: str = CREATE) -> Exchange:
    return Exchange(
        method, path, 200, {"content-type": "text/event-stream"}, sse(*({"data": body} for body in bodies))
    )


def event(kind: str, number: int, **more: Any) -> dict[str, Any]:
    return {"type": f"response.{kind}", "sequence_number": number, **more}


def run(
    folder: Path, exchanges: list[Exchange], task: Task | None = None, *words: str, **more: Any
) -> tuple[Solved, ReplayServer]:
    with ReplayServer(exchanges, always=more.pop("always", ())) as server:
        result = solved(folder, server, "openai", task or plain_task(), *words, **more)
    return result, server


def got(result: Solved) -> Submission:
    assert result.submission is not None
    return result.submission


def cite(url: str, start: Any, end: Any, title: Any = "T") -> dict[str, Any]:
    return {"type": "url_citation", "url": url, "title": title, "start_index": start, "end_index": end}


def used(input_: Any, output: Any, cached: Any = 0, written: Any = 0) -> dict[str, Any]:
    details = {"cached_tokens": cached, "cache_write_tokens": written}
    return {"input_tokens": input_, "output_tokens": output, "input_tokens_details": details}


def file_cited(container: str, file: str, name: str) -> dict[str, Any]:
    named = {"container_id": container, "file_id": file, "filename": name}
    return {"type": "container_file_citation", "start_index": 0, "end_index": 1, **named}
