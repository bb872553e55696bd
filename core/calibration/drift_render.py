"""A drift for people."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Final

from core.audit import Table
from core.calibration.drift import Drift, FlipRate
from core.comparison.tables import number, percent, signed

#: Flips and pages that are printed; drift.json has all.
_SHOWN: Final = 40
_DASH: Final = "–"
METHOD: Final = (
    "Same: the judge was asked the same to the letter, so its flips are noise; changed: what it was shown "
    "differs; unknown: among others, what two different judges were asked. The score is that of the answers that "
    "both runs judged; the interval of its difference draws whole tasks."
)


def title(found: Drift) -> str:
    """What was compared, in one line."""
    return f"drift from {found.first} to {found.second}: {found.n_tasks} tasks, {found.n_units} verdicts"


def tables(found: Drift) -> Iterator[Table]:
    """Every table, in the order of reading."""
    score = found.score
    span = _DASH if score.by_task is None else f"{signed(score.by_task.low)} … {signed(score.by_task.high)}"
    yield Table(
        "score",
        ("metric", "first", "second", "second − first", "interval", "tasks"),
        [(score.metric, number(score.first), number(score.second), signed(score.difference), span, score.n)],
    )
    yield Table(
        f"flips · {found.reused} answers taken from the store say nothing of noise",
        ("question", "verdicts", "yes or no in both", "flipped", "rate", "Wilson", "by noise alone"),
        [
            _rate("same", found.questions.get("same", 0), found.noise, _DASH),
            _rate("changed", found.questions.get("changed", 0), found.changed, number(found.by_noise)),
            *(
                (name, found.questions.get(key, 0), _DASH, _DASH, _DASH, _DASH, _DASH)
                for name, key in (
                    ("asked in one run", "one"),
                    ("asked in neither", "none"),
                    ("can't be told", "unknown"),
                )
            ),
        ],
    )
    changed = [page for page in found.pages if page.change != "same"]
    kinds = Counter(page.change for page in found.pages)
    if found.pages:
        yield Table(
            "pages · " + ", ".join(f"{kind} {count}" for kind, count in sorted(kinds.items())) + _more(changed),
            ("page", "change", "first", "second", "verdicts"),
            [
                (page.url, page.change, page.status[0] or _DASH, page.status[1] or _DASH, page.units)
                for page in changed[:_SHOWN]
            ],
        )
    if found.flips:
        yield Table(
            f"verdicts that moved · {found.lost} lost, {found.found} found{_more(found.flips)}",
            ("task", "unit", "repeat", "first", "second", "put down to", "page"),
            [
                (
                    flip.task_id,
                    flip.unit,
                    flip.repeat,
                    _word(flip.first),
                    _word(flip.second),
                    flip.cause,
                    flip.url or _DASH,
                )
                for flip in found.flips[:_SHOWN]
            ],
        )


def _rate(name: str, n: int, found: FlipRate, by_noise: str) -> tuple[str | int, ...]:
    span = _DASH if found.wilson is None else f"{percent(found.wilson.low)} … {percent(found.wilson.high)}"
    return name, n, found.n, found.flipped, percent(found.rate), span, by_noise


def _word(value: bool | None) -> str:  # noqa: FBT001  # a verdict is what it is
    return "missing" if value is None else "yes" if value else "no"


def _more(items: object) -> str:
    count = len(items) if isinstance(items, (list, tuple)) else 0
    return f" · the first {_SHOWN} of {count}" if count > _SHOWN else ""
