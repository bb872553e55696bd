"""The viewer's JSON: lists, and what is long, when it is opened. Texts reach a page as text, never as markup."""

from __future__ import annotations

import json
from typing import Any, Final

from aiohttp import web

from core.errors import InputError
from core.report.html.text import visible
from core.strict_json import without_surrogates
from core.viewer.evidence import evidence_of
from core.viewer.labelling import Sheet, asked
from core.viewer.state import VIEWER, attempt_in, number_in, word_in
from core.viewer.task_rows import (
    answer_json,
    attempt_of,
    judgement_json,
    judgements_of,
    record_of,
    submission_of,
    tree_rows,
    unit_rows,
)

#: Rows of one part of a long list.
_MOST_ROWS: Final = 500
#: Lists that are kept for the next part of them.
_MOST_MADE: Final = 12


def routes() -> list[web.RouteDef]:
    """The addresses of data."""
    task = "/api/run/{run}/task/{number}"
    return [
        web.get("/api/runs", runs),
        web.get("/api/run/{run}/tasks", tasks),
        web.get("/api/run/{run}/live", live),
        web.get(f"{task}/tree", tree),
        web.get(f"{task}/units", units),
        web.get(f"{task}/unit", unit),
        web.get(f"{task}/answer", answer),
        web.get(f"{task}/evidence", evidence),
        web.get("/api/sheet/{sheet}", sheet),
        web.get("/api/sheet/{sheet}/{number}", sheet_row),
        web.post("/api/sheet/{sheet}", put_label),
    ]


async def runs(request: web.Request) -> web.Response:
    """Every run's card."""
    viewer = request.app[VIEWER]
    library = viewer.library
    return _json(
        await viewer.reading(lambda: [library.cards.of(found) for found in library.places.scan().runs.values()])
    )


async def tasks(request: web.Request) -> web.Response:
    """A run's tasks, a row each."""
    viewer = request.app[VIEWER]
    opened = await viewer.reading(viewer.library.open, word_in(request, "run"))
    overview = opened.overview
    return _json(
        {
            "columns": [visible(column) for column in overview.columns],
            "scale": overview.scale,
            "rows": [
                {
                    "number": row.number,
                    "id": visible(row.id),
                    "labels": [[visible(key), visible(value)] for key, value in row.labels],
                    "numbers": row.numbers,
                    "status": row.status,
                    "flags": [visible(flag) for flag in row.flags],
                    "n_graded": row.n_graded,
                    "n_expected": row.n_expected,
                    "cost_usd": row.cost_usd,
                    "latency_s": row.latency_s,
                }
                for row in overview.rows
            ],
        }
    )


async def live(request: web.Request) -> web.Response:
    """How far a run is."""
    viewer = request.app[VIEWER]
    found = await viewer.reading(viewer.library.places.run, word_in(request, "run"))
    return _json(await viewer.reading(viewer.live.look, found))


async def tree(request: web.Request) -> web.Response:
    """The trees of an attempt."""
    viewer = request.app[VIEWER]
    opened = await viewer.reading(viewer.library.open, word_in(request, "run"))
    detail = await viewer.reading(opened.detail, number_in(request))
    return _json(await viewer.reading(lambda: tree_rows(attempt_of(detail, attempt_in(request)))))


async def units(request: web.Request) -> web.Response:
    """What was judged, a row a unit: `from` and `count` say which part, `find` and `tone` which rows."""
    viewer = request.app[VIEWER]
    opened = await viewer.reading(viewer.library.open, word_in(request, "run"))
    number, attempt = number_in(request), attempt_in(request)
    key = "units", opened.found.id, opened.stamp, number, attempt
    made = viewer.library.made
    if key not in made:
        made[key] = await viewer.reading(unit_rows, opened, number, attempt)
        while len(made) > _MOST_MADE:
            made.popitem(last=False)
    words = request.query.get("find", "").lower().split()
    tone = request.query.get("tone", "")
    rows = [row for row in made[key] if _is_wanted(row, words, tone)]
    since, most = number_in(request, "from", 0), min(number_in(request, "count", _MOST_ROWS), _MOST_ROWS)
    return _json({"n": len(rows), "of": len(made[key]), "rows": rows[since : since + most]})


def _is_wanted(row: dict[str, Any], words: list[str], tone: str) -> bool:
    if tone and not (row["split"] if tone == "split" else row["tone"] == tone):
        return False
    text = f"{row['shown']} {row['said']} {row['why']}".lower()
    return all(word in text for word in words)


async def unit(request: web.Request) -> web.Response:
    """Every judgement of one unit, with the judge's raw replies, and the record that it is about."""
    viewer = request.app[VIEWER]
    opened = await viewer.reading(viewer.library.open, word_in(request, "run"))
    number, attempt, name = number_in(request), attempt_in(request), request.query.get("unit", "")
    rows = await viewer.reading(judgements_of, opened, number, attempt)
    chosen = sorted((row for row in rows if row.unit == name), key=lambda row: row.repeat)
    record = await viewer.reading(_record, opened, number, attempt, name)
    if not chosen and record is None:
        raise InputError("the attempt has no such unit", got=repr(name[:80]))
    shown = None
    if record is not None:
        shown = {**record, "url": visible(record["url"]), "excerpts": [visible(one) for one in record["excerpts"]]}
    return _json({"unit": visible(name), "judgements": [judgement_json(row) for row in chosen], "record": shown})


def _record(opened: Any, number: int, attempt: int, name: str) -> dict[str, Any] | None:
    try:
        return record_of(submission_of(opened, number, attempt), name)
    except InputError:
        return None


async def evidence(request: web.Request) -> web.Response:
    """The page of a record's address, with what the record quotes marked in it."""
    viewer, key = request.app[VIEWER], word_in(request, "run")
    opened = await viewer.reading(viewer.library.open, key)
    name = request.query.get("unit", "")
    record = await viewer.reading(_record, opened, number_in(request), attempt_in(request), name)
    if record is None or not record["url"]:
        raise InputError("the unit is about no record with an address", got=repr(name[:80]))
    page = await viewer.page(key, record["url"])
    if page is None:
        return _json({"status": "not_at_hand", "excerpts": [], "pieces": [], "length": 0})
    whole = request.query.get("whole") == "1"
    return _json(await viewer.computing(evidence_of, page, record["excerpts"], whole=whole))


async def answer(request: web.Request) -> web.Response:
    """An answer, whole."""
    viewer = request.app[VIEWER]
    opened = await viewer.reading(viewer.library.open, word_in(request, "run"))
    found = await viewer.reading(submission_of, opened, number_in(request), attempt_in(request))
    return _json(await viewer.reading(answer_json, found))


async def sheet(request: web.Request) -> web.Response:
    """Which rows of a sheet are labelled."""
    viewer = request.app[VIEWER]
    found = await viewer.reading(viewer.library.places.sheet, word_in(request, "sheet"))
    return _json(await viewer.reading(lambda: Sheet(found.path).overview()))


async def sheet_row(request: web.Request) -> web.Response:
    """One row of a sheet."""
    viewer = request.app[VIEWER]
    found = await viewer.reading(viewer.library.places.sheet, word_in(request, "sheet"))
    number = number_in(request)
    return _json(await viewer.reading(lambda: Sheet(found.path).row(number)))


async def put_label(request: web.Request) -> web.Response:
    """Put a label into a sheet: the one thing that the viewer writes."""
    viewer = request.app[VIEWER]
    found = await viewer.reading(viewer.library.places.sheet, word_in(request, "sheet"))
    try:
        body = await request.json()
    except (ValueError, RecursionError):
        raise InputError("the body is not JSON") from None
    words = asked(body)
    viewer.library.places.inside(
        found.path.with_name(f"{found.path.name}.tmp")
    )  # written first, then put in place
    async with viewer.labelling:  # one at a time: each reads the file and writes it
        await viewer.reading(lambda: Sheet(found.path).put(*words))
    return _json({"saved": True})


def _json(content: Any) -> web.Response:
    text = json.dumps(without_surrogates(content), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return web.Response(text=text, content_type="application/json", charset="utf-8")
