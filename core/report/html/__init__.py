"""report.html: one page about one run, which needs nothing beside it. See docs/read-a-report.md.

folder.py    reads a run folder                  overview.py  the run as a whole
details.py   a task: answers and verdicts        criteria.py, graph.py, trees.py  what explain tells (shapes.md)
charts.py    what to draw where                  page.py      templates, budgets, escaping
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from core.errors import LeadlineError

if TYPE_CHECKING:
    from core.report.html.details import Explain

NAME: Final = "report.html"


def write(folder: Path, explain: Explain | None = None) -> Path:
    """Write `report.html` into a run folder that has ended, and return its path.

    The same folder gives the same bytes. `explain` is the grader's (core.parts.Grader), if it has one: without it
    the page has every verdict, but not how they make the score. Raises InputError where run.json, summary.json or
    scores.jsonl is not there, and where a row is not what a run writes.
    """
    from core.report.html.folder import read
    from core.report.html.page import page_of
    from core.runfolder import replace_file

    page = page_of(read(folder), explain)
    replace_file(folder / NAME, [page.encode()])
    return folder / NAME


def written(folder: Path, grader: Any) -> str | None:
    """Write `report.html` if it can be; why it could not, else None. A page decides nothing of a run."""
    try:
        write(folder, getattr(grader, "explain", None))
    except (LeadlineError, OSError) as error:
        return f"no {NAME}: {error}"
    return None
