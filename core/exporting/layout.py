"""Which numbers the tables of a benchmark show, and how: the key `tables` of its configuration.

    tables:
      overall: {title: Scores, metrics: {score: Score, "score/*": null}, facts: [usd_per_task], decimals: 1}
      form: {group: form, rows: runs, metrics: {score: Score}}

A run carries its layout in run.json. Where it has none, every metric and every group is shown.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any, Final, Literal, get_args

from pydantic import Field, ValidationError

from core.comparison.reading import mapping
from core.errors import InputError, place
from core.load import LoadedRun
from core.model import Frozen
from core.runfolder import RUN

#: What can stand beside metrics: dollars, and seconds or minutes of solving.
Fact = Literal[
    "usd_per_task", "judge_usd", "median_s", "p90_s", "median_minutes", "p90_minutes", "coverage", "attempts"
]
#: What the rows of a group's table are: each member in each run, members beside runs, or runs beside members.
Rows = Literal["both", "members", "runs"]
#: Numbers of a group that say how many tasks its others are means of.
COUNTS: Final = ("n_scored", "n_tasks")
_EVERY: Final = "*"


class Layout(Frozen):
    """One table. `group`: the group of the summary that it shows; none: a row a run, with intervals.

    `metrics`: names or patterns, each with its heading; null: the name itself. A name that no run has is left out.
    `decimals`: of its metrics; null: by their size.
    """

    title: str | None = None
    group: str | None = None
    rows: Rows = "both"
    metrics: Mapping[str, str | None] = Field(default_factory=lambda: {_EVERY: None})
    facts: tuple[Fact, ...] = ()
    decimals: int | None = Field(default=None, ge=0, le=6)

    def columns(self, names: Iterable[str]) -> dict[str, str]:
        """The metrics that are shown of those there are, in the layout's order: name → heading."""
        known = list(dict.fromkeys(name for name in names if name not in COUNTS))
        found: dict[str, str] = {}
        for pattern, heading in self.metrics.items():
            # a name may hold what a pattern gives a meaning, as [ does
            for name in [pattern] if pattern in known else [n for n in known if fnmatchcase(n, pattern)]:
                found.setdefault(name, heading or name)
        return found


def layouts_of(runs: Sequence[LoadedRun]) -> dict[str, Layout]:
    """The tables of runs of one benchmark, as the first of them that has a layout says; else all there is.

    Raises InputError for a layout that is none.
    """
    for run in runs:
        given = run.config.benchmark.plain().get("tables")
        if given is not None:
            return _read(given, place(run.path / RUN, field="config.benchmark.tables"))
    groups = dict.fromkeys(name for run in runs for name in mapping(run.summary.get("groups")))
    headline = runs[0].config.benchmark.headline
    # a group may be called as the table of all is
    overall = "overall" if "overall" not in groups else "all"
    return {
        overall: Layout(metrics={headline: None, _EVERY: None}, facts=("usd_per_task", "median_s", "p90_s")),
        **{name: Layout(title=f"by {name}", group=name) for name in groups},
    }


def _read(given: Any, where: str) -> dict[str, Layout]:
    if not isinstance(given, Mapping):
        raise InputError("not tables", where=where, expected="{name: {metrics: …}}", got=type(given).__name__)
    found = {}
    for name, layout in given.items():
        try:
            found[str(name)] = Layout.model_validate(layout)
        except ValidationError as error:
            fault = error.errors()[0]
            key = ".".join(map(str, (name, *fault["loc"])))
            facts = f"; facts are {', '.join(get_args(Fact))}" if "facts" in fault["loc"] else ""
            raise InputError(f"{fault['msg']}{facts}", where=f"{where}.{key}") from None
    return found
