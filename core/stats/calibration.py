"""A judge against people: how often it is right on what is met and on what is not, and what that does to a share.

Told from counts: tp both say met, fn only the person does, fp only the judge does, tn neither. Verdicts are taken
for independent draws; where several come from one task, the intervals are too narrow.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from core.stats.distributions import two_sided
from core.stats.proportions import Share, share


@dataclass(frozen=True, slots=True)
class JudgeRates:
    """Shares with Wilson intervals; None where there was nothing of that kind to judge."""

    sensitivity: Share | None
    specificity: Share | None
    accuracy: Share | None


@dataclass(frozen=True, slots=True)
class CorrectedShare:
    """A share of units met, corrected for the judge's mistakes; all but `raw` in 0…1.

    `apparent`: as judged. `raw`: as corrected, may leave 0…1. `value`: the same, clipped. `low`, `high`: its
    limits.
    """

    apparent: float
    raw: float
    value: float
    low: float
    high: float


def judge_rates(*, tp: int, fn: int, fp: int, tn: int, level: float = 0.95) -> JudgeRates:
    """Sensitivity tp/(tp + fn), specificity tn/(tn + fp), accuracy (tp + tn)/all, with Wilson intervals."""
    return JudgeRates(
        sensitivity=share(tp, tp + fn, level=level),
        specificity=share(tn, tn + fp, level=level),
        accuracy=share(tp + tn, tp + fn + fp + tn, level=level),
    )


def rogan_gladen(
    met: int, total: int, *, tp: int, fn: int, fp: int, tn: int, level: float = 0.95
) -> CorrectedShare | None:
    """The true share behind `met` of `total` verdicts of a judge that makes mistakes, with its interval.

    p = (apparent + sp − 1)/(se + sp − 1) (Rogan & Gladen 1978), se and sp estimated from the four counts, which
    come from other units than the `total`. The interval is that of Lang & Reiczigel (2014, equations 4, 6, 7,
    16, 17): the delta method after adding z²/2 to either side of the apparent share and one to either side of se
    and sp,

        p′ + d ± z·√(a′(1 − a′)/n′ + p′²·se′(1 − se′)/n₁′ + (1 − p′)²·sp′(1 − sp′)/n₂′) / (se′ + sp′ − 1)
        d = 2z²·(p′·se′(1 − se′)/n₁′ − (1 − p′)·sp′(1 − sp′)/n₂′)

    clipped to 0…1; the paper tried it at 95 % for se and sp above 0.5. None when there are no verdicts, nothing
    met or nothing unmet in the four counts, or se + sp <= 1, before or after the adding: such a judge tells
    nothing. Raises ValueError for negative counts and met > total.
    """
    if min(met, total - met, tp, fn, fp, tn) < 0:
        raise ValueError(f"{met} of {total} with tp={tp}, fn={fn}, fp={fp}, tn={tn}: expected counts of 0 or more")
    z = two_sided(level)
    if not total or not tp + fn or not tn + fp:
        return None
    apparent, se, sp = met / total, tp / (tp + fn), tn / (tn + fp)
    n_, n_se, n_sp = total + z**2, tp + fn + 2, tn + fp + 2
    apparent_, se_, sp_ = (met + z**2 / 2) / n_, (tp + 1) / n_se, (tn + 1) / n_sp
    # compared in whole numbers: 0.7 + 0.3 may round to more than 1
    if tp * (tn + fp) + tn * (tp + fn) <= (tp + fn) * (tn + fp) or se_ + sp_ <= 1:
        return None
    raw = (apparent + sp - 1) / (se + sp - 1)
    centre = (apparent_ + sp_ - 1) / (se_ + sp_ - 1)
    of_se, of_sp = se_ * (1 - se_) / n_se, sp_ * (1 - sp_) / n_sp
    variance = apparent_ * (1 - apparent_) / n_ + centre**2 * of_se + (1 - centre) ** 2 * of_sp
    half = z * math.sqrt(variance) / (se_ + sp_ - 1)
    middle = centre + 2 * z**2 * (centre * of_se - (1 - centre) * of_sp)
    return CorrectedShare(
        apparent=apparent, raw=raw, value=_clipped(raw), low=_clipped(middle - half), high=_clipped(middle + half)
    )


def _clipped(value: float) -> float:
    return min(1.0, max(0.0, value))
