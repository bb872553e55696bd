"""Does a judge favour systems of its own family? A difference of differences, task by task.

For a judge j of family f, its own systems, and another system o of family g:

    (own: j − mean of K) − (o: j − mean of K)          K: judges of neither f nor g

How lenient j is to all, and how good a system is to all, fall out; so does what a judge of g might add for o. The
preference is the mean over all o. Where every other judge is of o's family, nothing keeps the two preferences
apart: their sum is given, and said to be one.

The interval is over tasks. Systems and judges are taken as fixed: a judge's taste in one system, for reasons that
have nothing to do with family, is not told from a preference unless several systems of the family share it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from core.comparison.agreed import Seen
from core.comparison.results import LEAST_SYSTEMS, Preference
from core.comparison.study import Grid, Numbers, Study, estimate
from core.stats import mean_intervals

#: Judge or system → its family.
Families = Mapping[str, str]


def preferences(study: Study, grid: Grid, seen: Seen) -> Iterator[Preference]:
    """One for each judge that has judged its own family's systems and others, as have judges of other families.

    Judges and systems of unknown family take no part.
    """
    judges = {
        judge: family
        for (_, judge), place in grid.runs.items()
        if (family := study.runs[place].config.judge.family) is not None
    }
    systems = {
        system: family
        for (system, _), place in grid.runs.items()
        if (family := study.runs[place].config.system.family) is not None
    }
    for judge, family in judges.items():
        against = [other for other, of_other in judges.items() if of_other != family]
        judged = [system for system in grid.systems_of([judge, *against]) if system in systems]
        own = [system for system in judged if systems[system] == family]
        others = {other: _apart(other, against, judges, systems) for other in judged if other not in own}
        clean = {other: panel for other, panel in others.items() if panel}
        if not against or not own or not others:
            continue
        compared = clean or dict.fromkeys(others, against)
        gaps = [
            np.mean([_excess(grid, seen, system, judge, panel) for system in own], axis=0)
            - _excess(grid, seen, other, judge, panel)
            for other, panel in compared.items()
        ]
        gap: Numbers = np.mean(gaps, axis=0)
        yield Preference(
            judge=judge,
            family=family,
            own=tuple(own),
            others=tuple(compared),
            against=tuple(against),
            is_sum=not clean,
            few_systems=min(len(own), len(compared)) < LEAST_SYSTEMS,
            preference=estimate(mean_intervals([gap], **study.bootstrap)[0], gap),
        )


def _apart(system: str, against: Sequence[str], judges: Families, systems: Families) -> list[str]:
    """The judges that are not of the system's family."""
    return [judge for judge in against if judges[judge] != systems[system]]


def _excess(grid: Grid, seen: Seen, system: str, judge: str, panel: Sequence[str]) -> Numbers:
    """(tasks,): a system's number under the judge minus the mean of the panel's; NaN where one of them lacks."""
    found: Numbers = seen.scores(grid, system, judge) - np.mean(
        [seen.scores(grid, system, other) for other in panel], axis=0
    )
    return found
