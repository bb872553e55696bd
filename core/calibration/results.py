"""The content of calibration.json. Every number is followed by what it rests on; null is undefined, never 0."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

from pydantic import Field

from core.model import Frozen

SCHEMA: Final = "leadline/calibration/1"
Blocked = Literal["yes", "no", "too few"]


class Settings(Frozen):
    """How numbers are made. `least`: labels of a class below which nothing is corrected by it.

    `by`: the group by whose members scores are corrected; none: the first that the benchmark counts by.
    `limit`, `audit_least`: a task whose judge errs on more than this share of so many labels is blocked.
    """

    level: float = Field(default=0.95, gt=0, lt=1)
    resamples: int = Field(default=2000, ge=100)
    seed: int = Field(default=20260211, ge=0, lt=2**32)
    least: int = Field(default=10, ge=1)
    by: str | None = None
    limit: float = Field(default=0.1, ge=0, le=1)
    audit_least: int = Field(default=10, ge=1)


class Limits(Frozen):
    """An interval. Of tasks: from a BCa bootstrap that draws whole tasks."""

    low: float
    high: float


class Rate(Frozen):
    """A share, 0…1: `count` of `total` labelled verdicts, each once.

    Where weights differ `value` is the weighted one.

    `wilson` takes verdicts for independent, and is null where weights differ. `by_task` does not; null where the
    tasks are too few.
    """

    value: float
    count: int
    total: int
    wilson: Limits | None
    by_task: Limits | None


class Confusion(Frozen):
    """Labels by what people and judge say: tp both yes, fn people alone, fp the judge alone, tn neither."""

    tp: int = 0
    fn: int = 0
    fp: int = 0
    tn: int = 0


class Kappa(Frozen):
    """Cohen's κ of people and judge; null where it is undefined."""

    value: float | None
    by_task: Limits | None


class Rates(Frozen):
    """A judge against labels. `weighted`: the values count each label as often as its weight says."""

    n: int
    n_tasks: int
    weighted: bool
    confusion: Confusion
    accuracy: Rate | None
    sensitivity: Rate | None
    specificity: Rate | None
    kappa: Kappa


class Apart(Frozen):
    """Labels that are compared with nothing: no verdict, no judge asked, a verdict that counts for nothing, as
    many repeats for as against, as many labellers for as against."""

    missing: int = 0
    by_rule: int = 0
    unsure: int = 0
    tied: int = 0
    disputed: int = 0


class Corrected(Frozen):
    """A number without the judge's errors, as far as labels tell; `why` says why there is none.

    `apparent`: as judged, from `n` verdicts (of a score: `n` tasks). `raw`: as corrected, may leave the range;
    `value`: the same, held in it where it is a share. `analytic`: Lang and Reiczigel's limits, which take verdicts
    for independent, and are too narrow where those of a task go together; `by_task`: the tasks of verdicts and
    labels drawn together, a little too narrow for a few dozen tasks (docs/calibrate.md has how far).
    """

    apparent: float | None
    n: int
    raw: float | None = None
    value: float | None = None
    analytic: Limits | None = None
    by_task: Limits | None = None
    why: str | None = None


class Check(Frozen):
    """One check of the verdicts. `rates`: what most repeats say; `repeats`: each by itself.

    `share`: the corrected share of yes, of all the run's verdicts on this check; `shares` by group and member.
    """

    check: str
    decides: bool
    rates: Rates
    apart: Apart
    repeats: Mapping[str, Rates]
    groups: Mapping[str, Mapping[str, Rates]]
    share: Corrected
    shares: Mapping[str, Mapping[str, Corrected]]


class Score(Frozen):
    """The headline, corrected. `reported`: the run's own mean over scored tasks.

    `by_kind`: each kind (a member of `group`) by rates of its own; `pooled`: all by the same. Both are of the
    weighted sum before it is held in its range: `n_held` judge runs of the report were.
    """

    metric: str
    reported: float | None
    group: str | None
    kinds: tuple[str, ...]
    by_kind: Corrected
    pooled: Corrected
    n_held: int


class TaskAudit(Frozen):
    """A task's judge errors on the check that decides: `errors` of `n` labelled verdicts, each once."""

    task_id: str
    n: int
    errors: int
    share: float
    wilson: Limits | None
    blocked: Blocked


class JudgeReport(Frozen):
    """One judge in one run. `blocked`: the tasks on which it errs too often."""

    run: str
    path: str
    run_id: str
    judge: str
    checks: tuple[Check, ...]
    score: Score
    audit: tuple[TaskAudit, ...]
    blocked: tuple[str, ...]


class LabellerPair(Frozen):
    """Two labellers over the verdicts that both labelled."""

    first: str
    second: str
    n: int
    agreement: float | None
    kappa: float | None
    ac1: float | None


class Labellers(Frozen):
    """People with each other. `alpha`: Krippendorff's α over all of them."""

    names: tuple[str, ...]
    alpha: float | None
    pairs: tuple[LabellerPair, ...]


class LabelFacts(Frozen):
    """The file of labels. `verdicts`: how many verdicts have a label."""

    path: str
    rows: int
    blank: int
    labels: int
    repeated: int
    verdicts: int
    weighted: bool


class Calibration(Frozen):
    """All of it."""

    leadline: str
    benchmark: str
    settings: Settings
    labels: LabelFacts
    labellers: Labellers | None
    judges: tuple[JudgeReport, ...]
    notes: tuple[str, ...]
