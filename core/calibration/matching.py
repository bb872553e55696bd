"""Labels and verdicts, side by side. A label that speaks of no verdict, or of another answer's, is refused."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Final

from core.calibration.judged import Judged, Key, checks_of, decisive_check, units_at
from core.calibration.labels import Label, Labels
from core.calibration.results import LabelFacts, LabellerPair, Labellers
from core.errors import InputError, place
from core.runfolder import TASKS
from core.stats import by_pair, krippendorff_alpha

#: What a label speaks of: a verdict, one of its checks, and one repeat or (None) all.
About = tuple[Key, str, int | None]
#: Names that a refusal offers, and how alike they must be.
_OFFERED: Final = 3
_ALIKE: Final = 0.5


@dataclass(frozen=True, slots=True)
class Truth:
    """What people say of one verdict: `met` None where as many say no as yes."""

    met: bool | None
    weight: float


@dataclass(frozen=True, eq=False)
class Matched:
    """Labels by what they speak of: `said[about][labeller]`."""

    labels: Labels
    said: Mapping[About, Mapping[str, Label]]
    repeated: int

    def truths(self) -> dict[About, Truth]:
        """What most labellers say of each verdict."""
        found = {}
        for about, labels in self.said.items():
            yes, n = sum(label.met for label in labels.values()), len(labels)
            weight = next(iter(labels.values())).weight
            met = None if 2 * yes == n else 2 * yes > n
            found[about] = Truth(met, 1.0 if weight is None else weight)
        return found

    def labellers(self) -> Labellers | None:
        """How far people agree with each other; None where there is one."""
        names = sorted({name for labels in self.said.values() for name in labels})
        if len(names) < 2:
            return None
        ratings = {
            name: [labels[name].met if name in labels else None for labels in self.said.values()] for name in names
        }
        pairs = (
            LabellerPair(
                first=pair.first,
                second=pair.second,
                n=pair.n,
                agreement=pair.agreement,
                kappa=pair.kappa,
                ac1=pair.ac1,
            )
            for pair in by_pair(ratings)
        )
        return Labellers(names=tuple(names), alpha=krippendorff_alpha(list(ratings.values())), pairs=tuple(pairs))

    def facts(self) -> LabelFacts:
        """What calibration.json says of the file."""
        labels = self.labels
        return LabelFacts(
            path=str(labels.path),
            rows=labels.rows,
            blank=labels.blank,
            labels=len(labels.labels),
            repeated=self.repeated,
            verdicts=len({(key, check) for key, check, _ in self.said}),
            weighted=len({label.weight for label in labels.labels}) > 1,
        )


def match(labels: Labels, runs: Sequence[Judged]) -> Matched:
    """Find what each label speaks of. Raises InputError naming line and field for a label of nothing, a label of
    another answer, and two labels of one labeller that differ."""
    if not labels.labels:
        raise InputError(
            f"none of its {labels.rows} rows is labelled",
            where=str(labels.path),
            expected="met or unmet in the column label",
        )
    usual = _usual_check(runs)
    by_id = _by_id(runs) if any(not label.unit for label in labels.labels) else {}
    said: dict[About, dict[str, Label]] = {}
    repeated = 0
    for label in labels.labels:
        about = _about(labels.path, label, runs, by_id, usual)
        earlier = said.setdefault(about, {}).get(label.labeller)
        if earlier is None:
            said[about][label.labeller] = label
        elif earlier.met == label.met:
            repeated += 1
        else:
            who = f"labeller {label.labeller!r}" if label.labeller else "nobody named"
            raise InputError(
                f"{who} labels this otherwise in line {earlier.line}",
                where=place(labels.path, label.line, "label"),
                expected="one label for each verdict and labeller; the column labeller tells people apart",
            )
    _check_answers(labels.path, said, runs)
    return Matched(labels, said, repeated)


def _usual_check(runs: Sequence[Judged]) -> str:
    """The check that decides most verdicts: a label on a verdict that never came speaks of it."""
    found = Counter(
        check for judged in runs for rows in judged.rows.values() if (check := decisive_check(rows)) is not None
    )
    return found.most_common(1)[0][0] if found else ""


def _by_id(runs: Sequence[Judged]) -> dict[str, tuple[Key, str]]:
    found: dict[str, tuple[Key, str]] = {}
    for judged in runs:
        for key, rows in judged.rows.items():
            checks = {check for said in rows.values() for check in checks_of(said.verdict or {})}
            found.update({judged.sheet_id(key, check): (key, check) for check in checks})
    return found


def _about(
    path: Path, label: Label, runs: Sequence[Judged], by_id: Mapping[str, tuple[Key, str]], usual: str
) -> About:
    if not label.unit:
        if label.id not in by_id:
            raise InputError(
                "no verdict of these runs has this id",
                where=place(path, label.line, "id"),
                expected="the run that the sheet was drawn from",
                got=label.id,
            )
        key, check = by_id[label.id]
        return key, check, label.repeat
    key = label.task_id, label.attempt, label.unit
    known = [judged for judged in runs if key in judged.rows]
    if not known:
        # a submission that was never judged lacks its rows: they are missing, not unknown
        if any(_is_unjudged(judged, key) for judged in runs):
            return key, label.check or usual, label.repeat
        raise _unknown(path, label, runs)
    rows = known[0].rows[key]
    check = label.check or decisive_check(rows) or usual
    names = list(dict.fromkeys(name for judged in known for name in _checks(judged, key)))
    if names and check not in names:
        # a rule's verdict may leave checks out; the names are those of the task's other verdicts then
        others = {
            name
            for judged in known
            for other in judged.rows
            if other[0] == key[0]
            for name in _checks(judged, other)
        }
        if check not in others:
            raise InputError(
                "the verdict has no such check",
                where=place(path, label.line, "check"),
                expected=f"one of {', '.join(names)}" if names else "a verdict that is true or false",
                got=label.check or "no check, and none decides",
            )
    if label.repeat is not None and not any(label.repeat in judged.rows[key] for judged in known):
        raise InputError(
            "there is no such repeat",
            where=place(path, label.line, "repeat"),
            expected=f"one of {', '.join(map(str, sorted(rows)))}",
            got=str(label.repeat),
        )
    if label.id and all(judged.sheet_id(key, check) != label.id for judged in known):
        raise InputError(
            "the id does not belong to this unit, or the sheet was drawn from another answer",
            where=place(path, label.line, "id"),
            expected=known[0].sheet_id(key, check),
            got=label.id,
        )
    return key, check, label.repeat


def _checks(judged: Judged, key: Key) -> Iterable[str]:
    return (name for said in judged.rows[key].values() for name in checks_of(said.verdict or {}))


def _is_unjudged(judged: Judged, key: Key) -> bool:
    """Whether the run was to judge this attempt, and has no row on it at all."""
    task, attempt, _ = key
    return (
        any(known.id == task for known in judged.saved.tasks)
        and attempt <= judged.saved.config.attempts
        and not any(found[:2] == (task, attempt) for found in judged.rows)
    )


def _unknown(path: Path, label: Label, runs: Sequence[Judged]) -> InputError:
    """The refusal of a label that names nothing, with the nearest names."""
    tasks = list(dict.fromkeys(task.id for judged in runs for task in judged.saved.tasks))
    if label.task_id not in tasks:
        return _refusal(path, label, "task_id", "no run has this task", label.task_id, tasks, f"an id of {TASKS}")
    attempts = {attempt for judged in runs for task, attempt, _ in judged.rows if task == label.task_id}
    if label.attempt not in attempts:
        listed = ", ".join(map(str, sorted(attempts)))
        return InputError(
            "the task has no such attempt",
            where=place(path, label.line, "attempt"),
            expected=f"one of {listed}",
            got=str(label.attempt),
        )
    units = [unit for judged in runs for unit in units_at(judged.rows, label.task_id, label.attempt)]
    text = f"task {label.task_id!r} has no such unit"
    return _refusal(
        path, label, "unit", text, label.unit, list(dict.fromkeys(units)), "a unit of judgements.jsonl"
    )


def _refusal(
    path: Path, label: Label, field: str, text: str, got: str, known: Sequence[str], expected: str
) -> InputError:
    close = get_close_matches(got, known, n=_OFFERED, cutoff=_ALIKE)
    hint = f"{expected}; the nearest: {', '.join(map(repr, close))}" if close else expected
    return InputError(text, where=place(path, label.line, field), expected=hint, got=repr(got))


def _check_answers(path: Path, said: Iterable[About], runs: Sequence[Judged]) -> None:
    """Labels speak of one answer: runs that judged different ones can't share them."""
    for key, _check, _repeat in said:
        task, attempt, _unit = key
        answers: dict[str, str] = {}
        for judged in runs:
            digest = judged.answers.get((task, attempt))
            if digest is not None:
                answers.setdefault(digest, judged.name)
        if len(answers) > 1:
            first, second, *_ = answers.values()
            raise InputError(
                f"runs {first} and {second} have different answers to task {task!r}, attempt {attempt}, and a "
                "label speaks of one",
                where=str(path),
                expected="runs of the same answers, or a file of labels for each",
            )
