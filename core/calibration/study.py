"""One judge's verdicts in one run, beside what people say of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from core.calibration import fold
from core.calibration.judged import (
    APART,
    Judged,
    Key,
    Said,
    checks_of,
    decisive_check,
    majority,
    of_judge,
    values_of,
)
from core.calibration.matching import About, Truth
from core.calibration.rates import Pair
from core.calibration.results import Apart, Settings
from core.model import Submission, Task
from core.parts import Grader


@dataclass(frozen=True, slots=True)
class Labelled:
    """One verdict that people labelled: what they say of it, and the repeats that they speak of."""

    key: Key
    truth: Truth
    rows: Mapping[int, Said]


class JudgeStudy:
    """One judge's verdicts in one run, against labels."""

    def __init__(
        self,
        run: Judged,
        judge: str,
        truths: Mapping[About, Truth],
        settings: Settings,
        grader: Grader,
    ) -> None:
        self.run, self.judge, self.settings, self.grader = run, judge, settings, grader
        names = run.judges()
        self.rows = {key: of_judge(rows, judge, names) for key, rows in run.rows.items()}
        self.alone = len(names) == 1
        self.truths = self._named(truths)
        self.tasks: dict[str, Task] = {task.id: task for task in run.saved.tasks}
        self._groups: dict[Key, dict[str, str]] = {}

    @cached_property
    def submissions(self) -> dict[tuple[str, int], Submission]:
        """Every submission by task and attempt."""
        return {(found.task_id, found.attempt): found for found in self.run.saved.submissions()}

    @cached_property
    def decisive(self) -> str | None:
        """The check that decides most of what was labelled."""
        found = Counter(
            check for key, _, _ in self.truths if (check := decisive_check(self.rows.get(key, {}))) is not None
        )
        return found.most_common(1)[0][0] if found else None

    @cached_property
    def is_yes_or_no(self) -> bool:
        """Whether every verdict that a judge gave is a single yes or no."""
        return all(
            len(said.verdict) == 1 and checks_of(said.verdict)
            for rows in self.rows.values()
            for said in rows.values()
            if said.verdict is not None
        )

    def labelled(self, check: str | None, repeat: int | None = None) -> Iterator[Labelled]:
        """Each labelled verdict on a check once, or of one repeat.

        Repeats are the same judge on the same answer: labels of single ones are no more evidence of it than one
        label of all. Their truth is what most of these labels say.
        """
        by_key: dict[Key, dict[int | None, Truth]] = {}
        for (key, about, only), truth in self.truths.items():
            if about == check and (repeat is None or only in (None, repeat)):
                by_key.setdefault(key, {})[only] = truth
        for key, truths in by_key.items():
            rows = self.rows.get(key, {})
            spoken = set(truths) if repeat is None else {repeat}
            if None not in spoken:
                rows = {number: said for number, said in rows.items() if number in spoken}
            yield Labelled(key, _most(list(truths.values())), rows)

    def pairs(self, check: str | None, repeat: int | None = None) -> tuple[list[Pair], Apart]:
        """Labels of a check with what most repeats (or one) say, and those that are compared with nothing."""
        found: list[Pair] = []
        apart: Counter[str] = Counter()
        for one in self.labelled(check, repeat):
            value = majority(one.rows, check or "")
            if one.truth.met is None:
                apart["disputed"] += 1
            elif isinstance(value, bool):
                found.append(Pair(one.key[0], one.truth.met, value, one.truth.weight))
            else:
                apart[value] += 1
        return found, Apart(**{name: apart[name] for name in (*APART, "disputed")})

    def groups(self, key: Key) -> dict[str, str]:
        """Group → member of a unit, as the benchmark's fold counts it."""
        if key not in self._groups:
            task, submission = self.tasks.get(key[0]), self.submissions.get(key[:2])
            verdict = next(
                (said.verdict for said in self.run.rows[key].values() if said.verdict is not None), None
            )
            self._groups[key] = (
                {}
                if task is None or submission is None or verdict is None
                else fold.groups_of(self.grader, task, submission, key[2], verdict)
            )
        return self._groups[key]

    def graded(self, check: str) -> dict[Key, tuple[bool, float, float]]:
        """(label, share of repeats that say yes, weight) of each labelled verdict that has one."""
        found: dict[Key, tuple[bool, float, float]] = {}
        for one in self.labelled(check):
            values = values_of(one.rows, check)
            if values and one.truth.met is not None:
                found[one.key] = one.truth.met, sum(values) / len(values), one.truth.weight
        return found

    def _named(self, truths: Mapping[About, Truth]) -> dict[About, Truth]:
        """The truths that this run's tasks have, in the order of its rows."""
        tasks = {task.id for task in self.run.saved.tasks}
        order = {key: place for place, key in enumerate(self.rows)}
        kept = [(about, truth) for about, truth in truths.items() if about[0][0] in tasks]
        return dict(sorted(kept, key=lambda item: order.get(item[0][0], len(order))))


def _most(truths: Sequence[Truth]) -> Truth:
    """What most labels of one verdict say, with the weight of the first: a row of it stands for as many verdicts
    as any other."""
    said = [truth.met for truth in truths if truth.met is not None]
    yes = sum(said)
    return Truth(None if 2 * yes == len(said) else 2 * yes > len(said), truths[0].weight)
