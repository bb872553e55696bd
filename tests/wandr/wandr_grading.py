"""What the WANDR grading tests share: small tasks, submissions, pages that are made up, desks that answer."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from core.judge.question import Answer, Question
from core.model import Failure, Judgement, Submission, Task
from core.pages.page import Page, PageStatus
from core.services import JudgeDesk
from plugins.wandr.grader import WandrGrader
from plugins.wandr.tasks import tasks_of

URL_KEY = {"name": "url", "fields": ["url"], "required": 1}


def key(name: str, required: int = 1, **more: Any) -> dict[str, Any]:
    return {"name": name, "fields": [name], "required": required, **more}


def node(
    name: str, *keys: Mapping[str, Any], subtasks: Sequence[Mapping[str, Any]] = (), **judge: Any
) -> dict[str, Any]:
    """A node in plain form; `url` is added to its keys, and a requirement where none is given."""
    judge.setdefault(
        "requirements", [{"name": "fact", "satisfied": "The page says it.", "supported": "It is quoted."}]
    )
    return {
        "name": name,
        "text": f"Text of {name}.",
        "keys": [*keys, URL_KEY],
        "judge": judge,
        "subtasks": list(subtasks),
    }


def task(tree: Mapping[str, Any], task_id: str = "t1") -> Task:
    (made,) = tasks_of([("a test", {"id": task_id, "tree": tree})], where="a test", delivery="file")
    return made


def row(
    url: str = "https://a.example/1", excerpts: Sequence[str] = ("a quote",), answer: Any = None, **item: str
) -> str:
    return json.dumps(
        {"item": item, "url": url, "excerpts": list(excerpts), "answer": answer or {}}, ensure_ascii=False
    )


def submission(task_: Task, rows: Mapping[str, Sequence[str]], **more: Any) -> Submission:
    """Rows by node name as files; a node that is not named has none."""
    files = {f"results_{name}.jsonl": "\n".join(lines) for name, lines in rows.items()}
    return Submission(task_id=task_.id, files=files, **more)


class FakePages:
    """Pages by address: a text, a status, or a whole page; all others say their own address. Counts the fetches."""

    def __init__(self, pages: Mapping[str, str | Page] | None = None, **status: PageStatus) -> None:
        self.pages = dict(pages or {})
        self.asked: list[str] = []

    async def get(self, url: str) -> Page:
        self.asked.append(url)
        await asyncio.sleep(0)
        found = self.pages.get(url, f"This is {url}. It says a quote.")
        if isinstance(found, Page):
            return found
        return page(url, found)


def page(url: str, text: str = "", *, status: PageStatus = "ok", **more: Any) -> Page:
    texts = (("plain", text),) if status == "ok" else ()
    return Page(url=url, status=status, final_url=more.pop("final_url", url), main_text=text, texts=texts, **more)


class Desk:
    """A judge's desk that answers with `say(question)`: a value, or an error's kind."""

    name = "said"
    recorded = False

    def __init__(self, say: Callable[[Question], Any], width: int = 4) -> None:
        self._say, self.width = say, width
        self.asked: list[Question] = []

    async def ask(self, question: Question) -> Answer:
        self.asked.append(question)
        await asyncio.sleep(0)
        said = self._say(question)
        if isinstance(said, str):
            return Answer(error=Failure(kind=said, message="made to fail"), judge=self.name)
        return Answer(value=said, judge=self.name, cost_usd=0.5, cost_source="reported")


def all_true(question: Question, **changes: Any) -> dict[str, Any]:
    """Every check true, with certainty; of identity: nothing changed."""
    fields = question.schema["properties"]
    if "groups" in fields:
        count = question.ask.count('. "')
        return {"reasoning": "", "groups": [[number] for number in range(1, count + 1)], **changes}
    if "canonical" in fields:
        return {"reasoning": "", "canonical": question.units[0].split("/", 2)[2].strip().lower(), **changes}
    made: dict[str, Any] = {}
    for name, field in fields.items():
        made[name] = {"boolean": True, "integer": 3, "string": "said"}[field["type"]]
        if field.get("enum") and field["type"] == "string":
            made[name] = field["enum"][0]
    return {**made, **changes}


def grader(desk: JudgeDesk | None = None, pages: Any = None, **config: Any) -> WandrGrader:
    return WandrGrader({"delivery": "file", **config}, desk, pages if pages is not None else FakePages())


def graded(made: WandrGrader, task_: Task, given: Submission, repeat: int = 1) -> list[Judgement]:
    async def run() -> list[Judgement]:
        return [judgement async for judgement in made.grade(task_, given, repeat)]

    return asyncio.run(run())


def by_unit(rows: Sequence[Judgement]) -> dict[str, Judgement]:
    return {judgement.unit: judgement for judgement in rows}
