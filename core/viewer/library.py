"""Runs that are open: read once, kept until a file of theirs changes. What a page or an answer is made from."""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from core.errors import InputError
from core.report.html.details import Detail, Explain, Lengths, detail_of
from core.report.html.folder import Folder, read
from core.report.html.overview import Overview, overview_of
from core.report.html.text import LONGEST
from core.runfolder import JUDGEMENTS, RUN, SCORES, SUBMISSIONS, SUMMARY, TASKS
from core.viewer.cards import Cards
from core.viewer.places import Found, Places, stamps

if TYPE_CHECKING:
    from core.plugin_manager import PluginManager

#: All of a task: the viewer shows what report.html has no room for.
ALL: Final = Lengths(prompt=LONGEST, answer=0, requirement=LONGEST, reason=LONGEST, rows=100_000)
_LOG = logging.getLogger(__name__)
_OPEN, _DETAILS = 6, 4
_READ: Final = (RUN, SUMMARY, SCORES, TASKS, SUBMISSIONS, JUDGEMENTS)


@dataclass
class Opened:
    """A run that is open. `problem`: why its benchmark can't say how scores came about."""

    found: Found
    stamp: Sequence[tuple[str, int, int]]
    folder: Folder
    overview: Overview
    explain: Explain | None
    problem: str
    _details: OrderedDict[int, Detail] = field(default_factory=OrderedDict)

    def detail(self, number: int) -> Detail:
        """The task at place `number` (from 1), whole; raises InputError where there is none."""
        if not 1 <= number <= len(self.folder.scores):
            raise InputError("there is no such task", expected=f"1 to {len(self.folder.scores)}", got=str(number))
        if number not in self._details:
            while len(self._details) >= _DETAILS:
                self._details.popitem(last=False)
            self._details[number] = detail_of(self.folder, number, self.explain, ALL)
        return self._details[number]


class Library:
    """What the viewer knows. Not for several threads at a time."""

    def __init__(self, places: Places, plugins: Callable[[], PluginManager]) -> None:
        self.places = places
        self.cards = Cards()
        self.made: OrderedDict[object, Any] = OrderedDict()
        self._discover = plugins
        self._plugins: PluginManager | None = None
        self._open: OrderedDict[str, Opened] = OrderedDict()

    @property
    def plugins(self) -> PluginManager:
        """The plugins, discovered when a run is first opened."""
        if self._plugins is None:
            self._plugins = self._discover()
        return self._plugins

    def open(self, key: str) -> Opened:
        """A run by its id, as its files are now. Raises InputError where it has no scores to show."""
        found = self.places.run(key)
        stamp = stamps(found.path, _READ)
        known = self._open.get(key)
        if known is not None and known.stamp == stamp:
            self._open.move_to_end(key)
            return known
        folder = read(found.path)
        explain, problem = self._explain(found.path)
        opened = Opened(found, stamp, folder, overview_of(folder), explain, problem)
        self._open[key] = opened
        self._open.move_to_end(key)
        while len(self._open) > _OPEN:
            self._open.popitem(last=False)
        return opened

    def _explain(self, path: Path) -> tuple[Explain | None, str]:
        """How the run's benchmark explains a score; a run whose plugin is not there is shown all the same."""
        from core.rescore import fold_parts, read_run

        try:
            grader, _ = fold_parts(read_run(path).config, self.plugins)
        except (InputError, KeyError, TypeError, ValueError) as error:
            _LOG.warning("%s: without how scores came about: %s", path, error)
            return None, f"how scores came about can't be shown: {error}"
        found: Explain | None = getattr(grader, "explain", None)
        return found, ""
