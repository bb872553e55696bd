"""Statistics over plain numbers. Imported only when numbers are compared or a run is folded: it loads numpy.

Pure functions: the same input and seed give the same bits on one machine; another one's linear algebra may round
the last digit otherwise. None says that a number is undefined, ValueError that the input is not what the function
takes.

    bootstrap     intervals over tasks: of a mean, a difference, any statistic
    permutation   is a difference more than chance; Holm's correction
    pairwise      every system against every other
    power         what difference n tasks can show, how many tasks a difference needs
    agreement     raters with each other: κ, α, AC1
    ranks         orders of systems, and how sure they are
    variance      task, system, judge, repeat: what varies, and what another design would gain
    calibration   a judge against people
    proportions   a share and its interval
"""

from core.stats.agreement import (
    Confusion,
    PairAgreement,
    by_pair,
    cohen_kappa,
    cohen_kappa_of,
    confusion,
    fleiss_kappa,
    gwet_ac1,
    gwet_ac1_of,
    kappa_interval,
    krippendorff_alpha,
    percent_agreement,
    percent_agreement_of,
)
from core.stats.bootstrap import (
    LEVEL,
    RESAMPLES,
    SEED,
    Interval,
    bootstrap_interval,
    difference_interval,
    mean_interval,
    mean_intervals,
    statistic_interval,
)
from core.stats.calibration import CorrectedShare, JudgeRates, judge_rates, rogan_gladen
from core.stats.pairwise import PairedDifference, compare_all
from core.stats.permutation import SignFlip, holm, sign_flip_test, sign_flip_tests, smallest_p
from core.stats.power import detectable_difference, tasks_needed
from core.stats.proportions import Share, share, wilson
from core.stats.ranks import RankInterval, Swaps, kendall_tau_b, mid_ranks, rank_intervals, spearman, swaps
from core.stats.spread import sd
from core.stats.variance import Component, DesignError, VarianceSplit, design_error, variance_split

__all__ = [
    "LEVEL",
    "RESAMPLES",
    "SEED",
    "Component",
    "Confusion",
    "CorrectedShare",
    "DesignError",
    "Interval",
    "JudgeRates",
    "PairAgreement",
    "PairedDifference",
    "RankInterval",
    "Share",
    "SignFlip",
    "Swaps",
    "VarianceSplit",
    "bootstrap_interval",
    "by_pair",
    "cohen_kappa",
    "cohen_kappa_of",
    "compare_all",
    "confusion",
    "design_error",
    "detectable_difference",
    "difference_interval",
    "fleiss_kappa",
    "gwet_ac1",
    "gwet_ac1_of",
    "holm",
    "judge_rates",
    "kappa_interval",
    "kendall_tau_b",
    "krippendorff_alpha",
    "mean_interval",
    "mean_intervals",
    "mid_ranks",
    "percent_agreement",
    "percent_agreement_of",
    "rank_intervals",
    "rogan_gladen",
    "sd",
    "share",
    "sign_flip_test",
    "sign_flip_tests",
    "smallest_p",
    "spearman",
    "statistic_interval",
    "swaps",
    "tasks_needed",
    "variance_split",
    "wilson",
]
