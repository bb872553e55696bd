"""What a comparison says: the content of compare.json, and the settings that it was made with.

Intervals are bootstrap intervals over tasks (core/stats). A null limit says that there are too few tasks for one,
a null value that there is no number. `n` counts tasks unless it says otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

from pydantic import Field

from core.model import Frozen
from core.runfolder import SCHEMAS

#: With more systems than this in a table, differences by group stand in compare.json alone, and their intervals
#: are percentile ones of fewer resamples.
FEW: Final = 3
#: Below so many units an interval's true level is well under the one asked (84 % at 5, 90 % at 12 for 95 %; less
#: for differences that are mostly 0): differences by group then have none.
LEAST_UNITS: Final = 15
#: A preference for a family is marked with fewer systems of its own, or of others, than this.
LEAST_SYSTEMS: Final = 3
SCHEMA: Final = SCHEMAS["compare"]
Severity = Literal["refuse", "mark"]
Verdict = Literal["better", "worse", "inconclusive"]


class Settings(Frozen):
    """What is asked of a comparison.

    `metrics`: those to compare, the headline where none is named; judges, ranks and variance speak of the first.
    `alpha`: the chance of a false difference, over all pairs of one table; intervals have the level 1 − alpha.
    `power`: the chance with which the least detectable difference is found. `judges`: compare judges though no two
    runs share a system. `top`: how many units that judges disagree on are named. `force`: a refusal becomes a mark
    where numbers still mean something.
    """

    metrics: tuple[str, ...] = ()
    alpha: float = Field(default=0.05, gt=0, lt=1)
    power: float = Field(default=0.8, ge=0.5, lt=1)
    resamples: int = Field(default=10_000, ge=100)
    seed: int = Field(default=20260211, ge=0, lt=2**32)
    top: int = Field(default=20, ge=0)
    judges: bool = False
    force: bool = False

    @property
    def level(self) -> float:
        """The level of confidence of intervals."""
        return 1 - self.alpha


class Finding(Frozen):
    """Something a reader must know before the numbers. `forced`: it would have been a refusal without force."""

    code: str
    severity: Severity
    text: str
    runs: tuple[str, ...] = ()
    forced: bool = False


class LeftOut(Frozen):
    """A folder that takes no part, and why."""

    path: str
    why: str


class Estimate(Frozen):
    """A number with its interval, from `n` tasks (or clusters of them, where tasks share their questions)."""

    value: float | None
    low: float | None = None
    high: float | None = None
    n: int

    @property
    def excludes_zero(self) -> bool:
        """Whether there is an interval, and 0 is not in it."""
        return self.low is not None and self.high is not None and (self.low > 0 or self.high < 0)


class RunFacts(Frozen):
    """One run folder. `name` stands for it in findings and tables; `judge_digest` is over its judge's settings.

    `system` holds the effort, and where several systems have one name, the model or a digest of the settings.
    """

    name: str
    path: str
    run_id: str | None
    leadline: str | None
    exit_code: int | None
    system: str
    system_family: str | None
    judge: str
    judge_family: str | None
    judge_model: str | None
    judge_digest: str
    prompt_digest: str | None
    repeats: int
    attempts: int
    n_tasks: int
    n_scored: int
    coverage: float | None


class SystemRow(Frozen):
    """A system under one judge. `system` holds its effort.

    `score`: over the tasks that every run of the table has a number for. `own`: over all `n_own` tasks of the run
    that have one, null where these are too few of the `n_tasks` scheduled (the run's coverage floor).
    `usd_per_task`: dollars, the mean over the `n_cost` tasks that state it; `latency_s`: the median over the
    `n_latency`. `detectable`: the least difference from a system whose scores are unrelated, task by task.
    `best_for_cost`, `best_for_time`: no other system is at least as good in both and better in one; null where
    the price or the time is unknown.
    """

    system: str
    effort: str | None
    run: str
    judge: str
    score: Estimate
    own: float | None
    n_own: int
    n_tasks: int
    coverage: float | None
    usd_per_task: float | None
    n_cost: int
    latency_s: float | None
    n_latency: int
    detectable: float | None
    best_for_cost: bool | None = None
    best_for_time: bool | None = None


class Pair(Frozen):
    """`first` minus `second` over the tasks that both have a number for.

    `p`: the sign-flip test's; `p_holm`: corrected for all pairs of the table. `verdict`: better or worse where
    p_holm < alpha and the interval excludes 0, under one judge: between numbers of two judges it is inconclusive.
    `detectable`: the least true difference that would have been found, at alpha over the number of pairs; null
    where so few tasks differ, or there are so many pairs, that the test finds none however large.
    """

    first: str
    second: str
    difference: Estimate
    p: float | None
    p_holm: float | None
    verdict: Verdict
    detectable: float | None


class GroupDifference(Frozen):
    """The same difference in one group of tasks, or in one part of the metric. Not corrected for their number.

    Below 15 tasks (or clusters) it has no interval. In tables of more than 3 systems the interval is a percentile
    one, of at most 2,000 resamples.
    """

    group: str
    member: str
    first: str
    second: str
    difference: Estimate


class Board(Frozen):
    """The systems under one judge, best first, by one metric. `judge` is null where there were several.

    `patterns`: sign patterns of each test that draws them, at least `resamples`: many pairs need more.
    """

    metric: str
    judge: str | None
    n_common: int
    systems: tuple[SystemRow, ...]
    pairs: tuple[Pair, ...]
    patterns: int
    groups: tuple[GroupDifference, ...]


class SelfAgreement(Frozen):
    """A judge with itself over repeats of one question: `n` questions that got `repeats` verdicts each."""

    repeats: int
    n: int
    unanimous: float | None
    fleiss_kappa: float | None


class JudgeFacts(Frozen):
    """A judge over all its runs here.

    `n`: rows that needed the judge; `missing` of them have no verdict, `errors` by kind. `by_rule` rows needed
    none; `other` have a verdict that is no yes or no (names, groups) and is not compared. `coverage_by`: the
    share of expected judgements that were decided. `usd_per_judgement` is null where the price of any is unknown.
    `family`: of an ensemble, those of its members, with + between; null is unknown.
    """

    judge: str
    family: str | None
    runs: tuple[str, ...]
    n: int
    missing: int
    errors: Mapping[str, int]
    by_rule: int
    other: int
    coverage: float | None
    coverage_by: Mapping[str, Mapping[str, float | None]]
    usd: float
    unknown_costs: int
    usd_per_judgement: float | None
    with_itself: SelfAgreement | None


class YesRates(Frozen):
    """How often two judges say yes (MET, true) to the same `n` questions, and `second` minus `first`."""

    group: str | None
    member: str | None
    n: int
    first: float
    second: float
    shift: Estimate


class JudgePair(Frozen):
    """Two judges on the `n` questions about the same answers that both decided, repeat by repeat.

    `kappa`: Cohen's, `ac1`: Gwet's. `shift`: the metric under `second` minus that under `first`, over tasks, in
    the metric's unit. `yes`: over all questions, then by the labels that the benchmark gives them (sign, axis).
    """

    first: str
    second: str
    n: int
    agreement: float | None
    kappa: Estimate
    ac1: float | None
    shift: Estimate
    yes: tuple[YesRates, ...]


class Flip(Frozen):
    """A unit that judges disagree on.

    `disagreement`: the share of the `n` pairs of verdicts that differ, over systems and repeats; `yes`: each
    judge's share of yes.
    """

    task: str
    unit: str
    disagreement: float
    n: int
    yes: Mapping[str, float]


class FlipRate(Frozen):
    """The share of questions that got different verdicts from different judges, of `n` decided by two or more."""

    group: str | None
    member: str | None
    rate: float
    n: int


class Preference(Frozen):
    """What a judge adds for its own family's systems, in the metric's unit; preference.py says how it is told.

    `against`: the judges of other families. `is_sum`: what these add for the other systems, their own, is in it.
    The interval draws tasks; systems and judges are taken as fixed, so a judge's taste in one system is in it too.
    `few_systems`: fewer than 3 systems of the family, or of others, so that such a taste is hardly told apart.
    """

    judge: str
    family: str
    own: tuple[str, ...]
    others: tuple[str, ...]
    against: tuple[str, ...]
    is_sum: bool
    few_systems: bool
    preference: Estimate


class Judges(Frozen):
    """The judges with each other. `alpha`: Krippendorff's, over all of them, from `n_alpha` questions."""

    metric: str
    judges: tuple[JudgeFacts, ...]
    pairs: tuple[JudgePair, ...]
    alpha: float | None
    n_alpha: int
    flip_rates: tuple[FlipRate, ...]
    flips: tuple[Flip, ...]
    preferences: tuple[Preference, ...]


class Rank(Frozen):
    """A system's place under one judge, 1 the best, and the places that resampled tasks give it."""

    system: str
    value: float
    rank: int
    low: int | None = None
    high: int | None = None


class Order(Frozen):
    """The systems under one judge, best first."""

    judge: str
    ranks: tuple[Rank, ...]


class Swap(Frozen):
    """Under `first`, `above` stands over `below`; under `second` it is the other way round.

    `gap_first`, `gap_second`: above minus below under each. `beyond_noise`: both intervals exclude 0; null where
    only means are known.
    """

    first: str
    second: str
    above: str
    below: str
    gap_first: Estimate
    gap_second: Estimate
    beyond_noise: bool | None

    def __str__(self) -> str:
        noise = {True: "beyond noise", False: "within noise", None: "noise unknown"}[self.beyond_noise]
        return (
            f"under judge {self.first} {self.above} > {self.below} ({self.gap_first.value:+.3g}), under judge "
            f"{self.second} {self.below} > {self.above} ({self.gap_second.value:+.3g}): {noise}"
        )


class OrderAgreement(Frozen):
    """How far two judges order the same systems alike; null where a coefficient is undefined."""

    first: str
    second: str
    n_systems: int
    kendall_tau_b: float | None
    spearman: float | None
    swaps: tuple[Swap, ...]
    tied: tuple[tuple[str, str], ...]


class Ranks(Frozen):
    """Orders of systems by judge, over the `n` tasks that every one of these runs has a number for."""

    metric: str
    n: int
    orders: tuple[Order, ...]
    agreements: tuple[OrderAgreement, ...]


class VariancePart(Frozen):
    """A variance component, in squared units of the metric; `clipped`: its estimate was below 0."""

    factors: tuple[str, ...]
    variance: float
    share: float | None
    clipped: bool


class Design(Frozen):
    """What another number of tasks, judges and repeats would give. Both in the metric's unit.

    `score`: the half width of one system's interval; `difference`: that of two systems on the same tasks and
    judges, null in a study of one system.
    """

    n_tasks: int
    n_judges: int
    n_repeats: int
    score: float
    difference: float | None


class Variance(Frozen):
    """Where the metric varies. `levels`: how many tasks, systems and judges were in it; repeats hold attempts."""

    metric: str
    n: int
    levels: Mapping[str, int]
    has_repeats: bool
    parts: tuple[VariancePart, ...]
    designs: tuple[Design, ...]


class Comparison(Frozen):
    """The content of compare.json."""

    leadline: str
    benchmark: str
    settings: Settings
    findings: tuple[Finding, ...]
    left_out: tuple[LeftOut, ...]
    runs: tuple[RunFacts, ...]
    boards: tuple[Board, ...]
    judges: Judges | None
    ranks: Ranks | None
    variance: Variance | None
