"""The page: templates, what they may call, and how much of a run they hold.

Every value that a template puts out goes through `_shown` (unseen characters become visible) and autoescape. Two
kinds of text are put in as they are: what these templates rendered before, and what this module made safe for its
place (the style and script of this package, the island of facts). No value from a run is ever marked safe.

A page stays below a megabyte for a hundred tasks. Those that need a look come first and are told in full until
their share is used up; then shorter, then in brief, then only in the table.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Final

from jinja2 import Environment, PackageLoader, StrictUndefined, Template
from markupsafe import Markup

from core.preflight import money
from core.report.html import charts, text, trees
from core.report.html.details import BRIEF, FULL, SHORT, Explain, Lengths, detail_of
from core.report.html.folder import Folder
from core.report.html.overview import Overview, TaskRow, overview_of

#: Bytes of a page, and the shares of what the tables leave that tasks may have taken when a level ends.
LIMIT: Final = 950_000
LEVELS: Final[Sequence[tuple[Lengths, float]]] = ((FULL, 0.35), (SHORT, 0.65), (BRIEF, 1.0))
#: A level ends after so many tasks that did not fit: one giant does not keep the others out.
_MISSES: Final = 3
#: Signs that could end a script element or a line of a script, as JSON escapes.
_ISLAND: Final = {ord(sign): f"\\u{ord(sign):04x}" for sign in "<>&\u2028\u2029"}


@dataclass(frozen=True, slots=True)
class Told:
    """What the page holds of tasks in detail: their HTML in order, and which stand at each level, by number."""

    html: tuple[Markup, ...] = ()
    full: frozenset[int] = frozenset()
    short: frozenset[int] = frozenset()
    brief: frozenset[int] = frozenset()

    @property
    def all(self) -> frozenset[int]:
        """The tasks that have a place of their own."""
        return self.full | self.short | self.brief


def page_of(folder: Folder, explain: Explain | None) -> str:
    """The whole page. The same folder gives the same text."""
    templates = _templates()
    overview = overview_of(folder)
    script = _asset("script.js")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    page = templates.get_template("page.html.j2")
    content = {
        "overview": overview,
        "policy": f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'; img-src data:; "
        "base-uri 'none'; form-action 'none'",
        "style": Markup(_asset("style.css")),  # noqa: S704 -- this package's own file
        "script": Markup(script),  # noqa: S704 -- this package's own file
        "island": Markup(_island(overview)),  # noqa: S704 -- made safe for its place by _island
        **pictures(overview),
    }
    room = LIMIT - len(page.render(told=Told(), **content).encode())
    return page.render(
        told=_told(folder, overview, templates.get_template("task.html.j2"), explain, room), **content
    )


def _told(folder: Folder, overview: Overview, template: Template, explain: Explain | None, room: int) -> Told:
    """Tasks in detail, as many as `room` bytes hold."""
    found: dict[int, Markup] = {}
    chosen: list[set[int]] = [set() for _ in LEVELS]
    misses = [0] * len(LEVELS)
    spent = 0
    for row in sorted(overview.rows, key=_urgency):
        for level, (lengths, share) in enumerate(LEVELS):
            if misses[level] == _MISSES:
                continue
            html = _task(folder, overview, template, explain, row, lengths)
            size = len(html.encode())
            if spent + size <= share * room:
                found[row.number] = html
                chosen[level].add(row.number)
                spent += size
                break
            misses[level] += 1
        if misses[-1] == _MISSES:
            break
    return Told(tuple(found[number] for number in sorted(found)), *map(frozenset, chosen))


def _urgency(row: TaskRow) -> tuple[int, float, int]:
    """Which tasks a reader wants to see first: without a number, then the lowest numbers."""
    return (0 if row.headline is None else 1, row.headline or 0.0, row.number)


def _task(
    folder: Folder, overview: Overview, template: Template, explain: Explain | None, row: TaskRow, lengths: Lengths
) -> Markup:
    detail = detail_of(folder, row.number, explain, lengths)
    return Markup(template.render(task=detail, overview=overview))  # noqa: S704 -- rendered with autoescape


def pictures(overview: Overview) -> dict[str, Any]:
    """The charts of the run as a whole, by the names that overview.html.j2 knows them by."""
    headline = overview.headline.metric if overview.headline else None
    values = [row.headline for row in overview.rows if row.headline is not None]
    return {
        "histogram": charts.histogram(
            values,
            overview.scale,
            headline.value if headline else None,
            headline.low if headline else None,
            headline.high if headline else None,
        ),
        "cost": charts.scatter([(row.id, row.cost_usd, row.headline) for row in overview.rows], overview.scale),
        "latency": charts.scatter(
            [(row.id, row.latency_s, row.headline) for row in overview.rows], overview.scale
        ),
        "canvas": charts,
    }


def _island(overview: Overview) -> str:
    """Every task's essential facts as JSON that can stand inside a script element."""
    content = {
        "schema": "leadline/report/1",
        "headline": text.visible(overview.headline_name),
        "columns": [text.visible(column) for column in overview.columns],
        "tasks": [
            {
                "id": text.visible(row.id),
                "labels": {text.visible(key): text.visible(value) for key, value in row.labels},
                "numbers": row.numbers,
                "status": row.status,
                "flags": [text.visible(flag) for flag in row.flags],
                "n_graded": row.n_graded,
                "n_expected": row.n_expected,
                "cost_usd": row.cost_usd,
                "latency_s": row.latency_s,
            }
            for row in overview.rows
        ],
    }
    return json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":")).translate(_ISLAND)


def _asset(name: str) -> str:
    return files("core.report.html").joinpath(name).read_text(encoding="utf-8")


@cache
def _templates() -> Environment:
    """Made once: compiling the templates takes longer than filling them for a small run."""
    return environment()


def environment() -> Environment:
    """The report's templates with what they may call; a new one for each caller, who may add templates to it."""
    made = Environment(
        loader=PackageLoader("core.report.html"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_shown,
    )
    made.filters.update(
        number=text.number,
        figure=text.figure,
        decimals=text.decimals,
        money=money,
        lines=trees.lines,
        ramp=charts.ramp,
        row=charts.row,
    )
    return made


def _shown(value: Any) -> Any:
    """A value as a template puts it out: text without unseen characters, nothing as a dash."""
    if isinstance(value, Markup):
        return value
    if isinstance(value, str):
        return text.visible(text.cut(value, text.LONGEST))
    return "–" if value is None else value
