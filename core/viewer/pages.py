"""The viewer's pages. Their templates escape every text; what is long comes later, as JSON (api.py)."""

from __future__ import annotations

from typing import Any, Final

from aiohttp import web

from core.comparison import Settings, compare
from core.comparison.results import Comparison
from core.comparison.tables import method, tables, title, warnings
from core.errors import InputError
from core.report.html import charts
from core.viewer import comparing
from core.viewer.difference import common_tasks, difference
from core.viewer.places import stamps
from core.viewer.state import VIEWER, Viewer, attempt_in, number_in, runs_in, word_in
from core.viewer.templating import pictures, render

#: Runs of one comparison.
_MOST_COMPARED: Final = 24
_KEPT: Final = 4


def routes() -> list[web.RouteDef]:
    """The addresses of pages."""
    return [
        web.get("/", runs),
        web.get("/run/{run}", run),
        web.get("/run/{run}/task/{number}", task),
        web.get("/run/{run}/live", live),
        web.get("/compare", compared),
        web.get("/difference", differing),
        web.get("/label/{sheet}", label),
    ]


async def runs(request: web.Request) -> web.Response:
    """The list of runs and sheets; its rows come as JSON."""
    viewer = request.app[VIEWER]
    listing = await viewer.reading(viewer.library.places.scan)
    return _page("runs.html.j2", n_runs=len(listing.runs), sheets=list(listing.sheets.values()), cut=listing.cut)


async def run(request: web.Request) -> web.Response:
    """A run: the report's overview, and its tasks as a list."""
    viewer, key = request.app[VIEWER], word_in(request, "run")
    found = await viewer.reading(viewer.library.places.run, key)
    card = await viewer.reading(viewer.library.cards.of, found)
    if not card["has_report"]:
        if card["state"] == "unreadable" or card["problem"]:
            raise InputError(card["problem"] or "run.json can't be read", where=found.name)
        return web.Response(status=303, headers={"Location": f"/run/{key}/live"})
    opened = await viewer.reading(viewer.library.open, key)
    content = await viewer.reading(pictures, opened.overview)
    return _page(
        "run.html.j2", run=opened.found, overview=opened.overview, problem=opened.problem, card=card, **content
    )


async def task(request: web.Request) -> web.Response:
    """A task of a run, whole: criteria and graphs as in the report, everything long on demand."""
    viewer = request.app[VIEWER]
    opened = await viewer.reading(viewer.library.open, word_in(request, "run"))
    detail = await viewer.reading(opened.detail, number_in(request))
    return _page(
        "view_task.html.j2", run=opened.found, overview=opened.overview, task=detail, problem=opened.problem
    )


async def live(request: web.Request) -> web.Response:
    """The progress of a run."""
    viewer = request.app[VIEWER]
    found = await viewer.reading(viewer.library.places.run, word_in(request, "run"))
    return _page("live.html.j2", run=found, card=await viewer.reading(viewer.library.cards.of, found))


async def compared(request: web.Request) -> web.Response:
    """Runs side by side."""
    viewer, keys = request.app[VIEWER], runs_in(request)
    if not 2 <= len(keys) <= _MOST_COMPARED:
        raise InputError("runs to compare", expected=f"2 to {_MOST_COMPARED}", got=str(len(keys)))
    found = [await viewer.reading(viewer.library.places.run, key) for key in keys]
    force = request.query.get("force") == "1"
    address = "&".join(f"run={key}" for key in keys)
    try:
        comparison = await _comparison(viewer, [one.path for one in found], force=force)
    except InputError as error:
        return _page(
            "refused.html.j2", reason=str(error), address=None if force else f"/compare?{address}&force=1"
        )
    by_path = {str(one.path): one for one in found}
    return _page(
        "compare.html.j2",
        title=title(comparison),
        warnings=warnings(comparison),
        pictures=comparing.pictures(comparison),
        matrix=comparing.matrix(comparison.judges) if comparison.judges is not None else None,
        swaps=[swap for one in comparison.ranks.agreements for swap in one.swaps] if comparison.ranks else [],
        has_ranks=comparison.ranks is not None,
        tables=comparing.shown(tables(comparison)),
        method=method(comparison),
        canvas=charts,
        runs=[(facts, by_path.get(facts.path)) for facts in comparison.runs],
    )


async def _comparison(viewer: Viewer, folders: list[Any], *, force: bool) -> Comparison:
    """The comparison of folders as they are now; made once, since resampling takes seconds."""
    key = "compare", force, tuple((folder, stamps(folder)) for folder in folders)
    made = viewer.library.made
    if key not in made:
        made[key] = await viewer.computing(compare, folders, Settings(force=force))
        while len(made) > _KEPT:
            made.popitem(last=False)
    found: Comparison = made[key]
    return found


async def differing(request: web.Request) -> web.Response:
    """Two runs task by task, or with `task=` (a number of the first run) two answers to one task."""
    viewer = request.app[VIEWER]
    first = await viewer.reading(viewer.library.open, request.query.get("first", ""))
    second = await viewer.reading(viewer.library.open, request.query.get("second", ""))
    if "task" not in request.query:
        common = await viewer.reading(common_tasks, first, second)
        return _page("differences.html.j2", first=first, second=second, common=common)
    number = number_in(request, "task")
    found = await viewer.reading(difference, first, second, number, attempt_in(request))
    return _page("difference.html.j2", found=found, first=first, second=second, attempt=attempt_in(request))


async def label(request: web.Request) -> web.Response:
    """A sheet to label; its rows come as JSON."""
    viewer = request.app[VIEWER]
    return _page(
        "label.html.j2", sheet=await viewer.reading(viewer.library.places.sheet, word_in(request, "sheet"))
    )


def _page(template: str, **content: Any) -> web.Response:
    return web.Response(text=render(template, **content), content_type="text/html", charset="utf-8")
