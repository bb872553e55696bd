"""DRACO's numbers, from verdicts alone.

With v = 1 where a criterion is MET and 0 where it is UNMET, over the criteria that have a verdict:

    raw        = Σ v·w / Σ max(0, w)          may be negative: a met negative costs its weight
    normalized = raw clamped to 0…1
    pass rate  = share of criteria that are positive and MET or negative and UNMET, unweighted

A rubric (or section) of negatives alone has no positive sum; its raw is 1 + Σ v·w / Σ |w|.
All are shown × 100. A missing verdict is neither MET nor UNMET: it leaves numerator and denominator. A
repeat without a judged positive has no number. Sums are exact and divided once, so each number is the
float nearest to the true one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from core.fold import CoverageBy, add_counts, by_repeat
from core.model import Count, Judgement, RunScore
from core.verdicts import met_by_id
from plugins.draco.rubric import Criterion

#: Upper end of the scale on which every metric is given.
FULL: Final = 100


@dataclass(frozen=True, slots=True)
class Scores:
    """The three numbers of one judge run, 0…100 (`raw` has no lower end); all None where there is none."""

    raw: float | None
    normalized: float | None
    pass_rate: float | None


NO_SCORES: Final = Scores(None, None, None)


def score(criteria: Sequence[Criterion], met: Mapping[str, bool]) -> Scores:
    """The numbers of a rubric, or of one of its sections, from the verdicts that exist.

    `met` maps criterion ids to verdicts; an id that it lacks is missing.
    """
    judged = [criterion for criterion in criteria if criterion.id in met]
    has_positives = any(criterion.weight > 0 for criterion in criteria)
    earned = total(criterion.weight for criterion in judged if met[criterion.id])
    if has_positives:
        most = total(criterion.weight for criterion in judged if criterion.weight > 0)
    else:
        most = total(-criterion.weight for criterion in judged)
        earned += most
    if not most:
        return NO_SCORES
    raw = float(FULL * earned / most)
    passed = sum(met[criterion.id] == (criterion.weight > 0) for criterion in judged)
    return Scores(raw, min(max(raw, 0.0), float(FULL)), FULL * passed / len(judged))


def total(weights: Iterable[float]) -> int | Fraction:
    """Their exact sum: an integer for whole weights."""
    return sum(weight if isinstance(weight, int) else Fraction(weight) for weight in weights)


def metric_names(criteria: Sequence[Criterion]) -> list[str]:
    """The metrics of a task, in the order in which they are written."""
    axes = dict.fromkeys(criterion.section for criterion in criteria)
    names = ["normalized", "pass_rate", "raw"]
    return names + [f"{name}/{axis}" for name in ("normalized", "pass_rate") for axis in axes]


def run_metrics(criteria: Sequence[Criterion], met: Mapping[str, bool]) -> dict[str, float | None]:
    """All metrics of one judge run: the whole rubric's, and each section's as `<metric>/<section>`."""
    whole = score(criteria, met)
    found: dict[str, float | None] = {
        "normalized": whole.normalized,
        "pass_rate": whole.pass_rate,
        "raw": whole.raw,
    }
    for axis in dict.fromkeys(criterion.section for criterion in criteria):
        part = score([criterion for criterion in criteria if criterion.section == axis], met)
        found[f"normalized/{axis}"] = part.normalized
        found[f"pass_rate/{axis}"] = part.pass_rate
    return {name: found[name] for name in metric_names(criteria)}


def run_scores(
    criteria: Sequence[Criterion], judgements: Sequence[Judgement]
) -> tuple[list[RunScore], CoverageBy]:
    """Each judge run of one attempt, in the order of repeats, and the coverage by sign and axis.

    The repeats are those that `judgements` have; each expects a verdict for every criterion, whether or
    not it has a row. Raises ValueError for two rows of one (criterion, repeat) or for rows of several
    attempts, InputError for a unit that the rubric does not have or a verdict of another form.
    """
    if len({row.attempt for row in judgements}) > 1:
        raise ValueError("the judgements of one attempt are scored at a time")
    runs: list[RunScore] = []
    counts: list[CoverageBy] = []
    for repeat, rows in by_repeat(judgements).items():
        met = verdicts(criteria, rows)
        runs.append(
            RunScore(
                attempt=rows[0].attempt,
                repeat=repeat,
                metrics=run_metrics(criteria, met),
                n_graded=len(met),
                n_expected=len(criteria),
            )
        )
        counts.append(coverage_of(criteria, met))
    return runs, add_counts(counts)


def verdicts(criteria: Sequence[Criterion], rows: Iterable[Judgement]) -> dict[str, bool]:
    """Criterion id → MET, of one repeat's rows; rows without a verdict are left out."""
    return met_by_id(rows, {criterion.unit: criterion.id for criterion in criteria}, kind="criterion")


def coverage_of(criteria: Sequence[Criterion], met: Mapping[str, bool]) -> CoverageBy:
    """How many of one repeat's verdicts exist, by sign (positive, negative) and axis (section)."""
    members = {
        "sign": [criterion.sign for criterion in criteria],
        "axis": [criterion.section for criterion in criteria],
    }
    judged = [criterion.id in met for criterion in criteria]
    found: dict[str, dict[str, Count]] = {}
    for group, names in members.items():
        graded = Counter(name for name, is_judged in zip(names, judged, strict=True) if is_judged)
        found[group] = {
            name: Count(graded=graded[name], expected=expected) for name, expected in Counter(names).items()
        }
    return found
