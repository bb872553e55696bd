"""The viewer's HTML: its own templates beside those of report.html, with the same escaping."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any, Final

from jinja2 import ChoiceLoader, Environment, PackageLoader

from core.report.html.overview import Overview
from core.report.html.page import environment as report_environment
from core.report.html.page import pictures as report_pictures

#: What the browser may load, by its name in the address: (package, file, type). Nothing else is served.
STATIC: Final[Mapping[str, tuple[str, str, str]]] = {
    "report.css": ("core.report.html", "style.css", "text/css"),
    **{
        name: ("core.viewer", f"static/{name}", "text/css" if name.endswith(".css") else "text/javascript")
        for name in (
            *("view.css", "common.js", "lists.js", "runs.js", "run.js", "task.js", "live.js", "label.js"),
            *("compare.js", "graphs.js"),
        )
    },
}


@cache
def environment() -> Environment:
    """The report's environment, which also finds the viewer's templates."""
    found = report_environment()
    assert found.loader is not None
    found.loader = ChoiceLoader([PackageLoader("core.viewer"), found.loader])
    return found


def render(template: str, **content: Any) -> str:
    """A page, or a part of one."""
    return environment().get_template(template).render(**content)


def pictures(overview: Overview) -> dict[str, Any]:
    """What the report's overview draws."""
    return report_pictures(overview)


@cache
def static(name: str) -> tuple[bytes, str] | None:
    """A file for the browser and its type; None for every name that is not one of ours."""
    known = STATIC.get(name)
    if known is None:
        return None
    package, path, kind = known
    return files(package).joinpath(path).read_bytes(), kind
