"""The shape `criteria` (shapes.md): sections of weighted criteria, with errors that were committed on top."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from core.report.html import text
from core.report.html.reading import finite, mappings
from core.report.html.reading import text as text_of
from core.report.html.units import Unit


@dataclass(frozen=True, slots=True)
class Criterion:
    """One criterion. `weight` below 0: its text states an error, so MET is bad. `unit` None: no row at all."""

    key: str
    text: str
    weight: float | None
    contribution: float | None
    unit: Unit | None

    @property
    def is_error(self) -> bool:
        """Whether its text states an error."""
        return self.weight is not None and self.weight < 0

    @property
    def is_committed(self) -> bool:
        """Whether it states an error that at least one repeat found."""
        return self.is_error and self.unit is not None and self.unit.n_yes > 0


@dataclass(frozen=True, slots=True)
class Section:
    """Criteria under one title. `earned`: the sum of the contributions that are known."""

    title: str
    criteria: tuple[Criterion, ...]

    @property
    def earned(self) -> float | None:
        """The points that the section adds to the score."""
        known = [criterion.contribution for criterion in self.criteria if criterion.contribution is not None]
        return sum(known) if known else None


@dataclass(frozen=True, slots=True)
class Criteria:
    """A rubric's sections. `committed` repeats the criteria whose error was made; `more` were left out."""

    sections: tuple[Section, ...]
    committed: tuple[Criterion, ...]
    units: frozenset[str]
    more: int


def criteria_of(shape: Any, units: Mapping[str, Unit], *, longest: int, most: int) -> Criteria | None:
    """The view of a `criteria` shape; None where it has no criterion. `most`: criteria shown."""
    sections: list[Section] = []
    named: set[str] = set()
    left, more = most, 0
    for listed in mappings(shape):
        found = []
        for entry in mappings(listed.get("criteria")):
            unit = text_of(entry.get("unit"))
            named.add(unit)
            if not left:
                more += 1
                continue
            left -= 1
            found.append(
                Criterion(
                    key=text.name(unit.partition("/")[2] or unit),
                    text=text.cut(text_of(entry.get("text")), longest),
                    weight=finite(entry.get("weight")),
                    contribution=finite(entry.get("contribution")),
                    unit=units.get(unit),
                )
            )
        if found:
            title = text_of(listed.get("title")) or text_of(listed.get("id"))
            sections.append(Section(text.name(title) or "Criteria", tuple(found)))
    if not sections:
        return None
    committed = tuple(one for section in sections for one in section.criteria if one.is_committed)
    return Criteria(tuple(sections), committed, frozenset(named), more)
