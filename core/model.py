"""The things that flow through a run, left to right, each frozen.

    Task ─▶ Submission ─▶ Judgement… ─▶ TaskScore ─▶ Summary

Judgements are rows; scores are folds over rows. Three outcomes everywhere: a value, not
applicable, an error; an error never enters a mean, and every number carries n graded / n expected.
The shapes are those of the files of a run (docs/files.md): what is written here can be read back.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

SubmissionStatus = Literal["completed", "incomplete", "empty", "refused", "failed", "timed_out", "error"]
#: Statuses that a grader asks the judge about.
GRADED: Final[frozenset[str]] = frozenset({"completed", "incomplete"})
#: Statuses that are scored by rule, without a judge: the system had its turn and gave nothing.
BY_RULE: Final[frozenset[str]] = frozenset({"empty", "refused", "failed", "timed_out"})

TaskStatus = Literal["scored", "zero", "withheld", "error"]
#: The judge named in rows that were decided by rule.
RULE_JUDGE: Final = "rule"


class Frozen(BaseModel):
    """Base of the models: immutable, unknown fields refused, NaN and infinity refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class Row(Frozen):
    """Base of what is read from files: unknown fields are ignored, so newer files stay readable."""

    model_config = ConfigDict(frozen=True, extra="ignore", allow_inf_nan=False)


class Failure(Row):
    """What went wrong: `kind` is a name of the error table (core/errors.py)."""

    kind: str
    message: str = ""


class Usage(Row):
    """Tokens of one or several calls. `input` includes `cached_input`; null is unknown."""

    input: int | None = None
    cached_input: int | None = None
    output: int | None = None
    reasoning: int | None = None


def total_usage(usages: Iterable[Usage | None]) -> Usage | None:
    """The tokens of several calls: of each kind the sum of what is known; None where no call says anything."""
    said = [usage for usage in usages if usage is not None]
    if not said:
        return None
    totals: dict[str, int | None] = {}
    for name in Usage.model_fields:
        known = [value for usage in said if (value := getattr(usage, name)) is not None]
        totals[name] = sum(known) if known else None
    return Usage(**totals)


class Citation(Row):
    """A source that a system names; `excerpt` is the quoted text, if it gives one.

    `start` and `end`: the passage of the submission's text that first rests on it, in characters from 0, `end` not
    included; null where the system does not say.
    """

    url: str
    title: str | None = None
    excerpt: str | None = None
    start: int | None = Field(default=None, ge=0)
    end: int | None = Field(default=None, ge=0)


class Task(Frozen):
    """One question put to a system.

    `prompt`, `output_schema`, `required_files` and `blocked` are what a system is shown.
    `payload` belongs to the benchmark (its rubric): it never leaves the grader, see `shown`.
    `labels` serve `where.<label>=` and the groups of the summary. `index` is the task's place in
    its source, from 0: files are written in this order whatever order work ends in.
    """

    id: str
    prompt: str
    labels: Mapping[str, str | Sequence[str]] = Field(default_factory=dict)
    output_schema: Mapping[str, Any] | None = None
    required_files: tuple[str, ...] = ()
    blocked: tuple[str, ...] = ()
    payload: Mapping[str, Any] = Field(default_factory=dict)
    index: int = 0

    def shown(self) -> Task:
        """The task as a system may see it: without the rubric and without its labels."""
        return self.model_copy(update={"payload": {}, "labels": {}})


class Submission(Row):
    """What a system gave for one attempt at one task. `latency_s` in seconds, `cost_usd` in dollars.

    `cost_usd` null is unknown, never free. `system`, `effort` and `settings` (the effective
    settings, as sent and as echoed by the server) say where the submission came from.
    """

    task_id: str
    attempt: int = Field(default=1, ge=1)
    status: SubmissionStatus = "completed"
    text: str | None = None
    files: Mapping[str, str] = Field(default_factory=dict)
    citations: tuple[Citation, ...] = ()
    usage: Usage | None = None
    latency_s: float | None = Field(default=None, ge=0)
    cost_usd: float | None = Field(default=None, ge=0)
    cost_source: Literal["reported", "list_price", "computed", "unknown"] | None = None
    error: Failure | None = None
    system: str | None = None
    effort: str | None = None
    settings: Mapping[str, Any] = Field(default_factory=dict)

    def settled(self) -> Submission:
        """The same, with the status `empty` where an answer was claimed and there is none."""
        has_text = bool(self.text and self.text.strip())
        has_files = any(content.strip() for content in self.files.values())
        if self.status in GRADED and not has_text and not has_files:
            return self.model_copy(update={"status": "empty"})
        return self


class Judgement(Row):
    """One verdict of one judge on one unit of one submission, or the reason why there is none.

    `unit` is the benchmark's name for what is judged (`criterion/<id>`, `checkpoint/<id>`, …);
    `verdict` has the unit's own form and is null when the judgement is missing. `prompt_digest`
    is the digest of the whole question; `cost_usd` is the cost of every call it took.
    """

    task_id: str
    attempt: int = Field(default=1, ge=1)
    unit: str
    repeat: int = Field(default=1, ge=1)
    verdict: Mapping[str, Any] | None = None
    error: Failure | None = None
    judge: str | None = None
    explanation: str | None = None
    raw: str | None = None
    usage: Usage | None = None
    latency_s: float | None = None
    cost_usd: float | None = None
    cost_source: str | None = None
    prompt_digest: str | None = None
    judged_at: str | None = None


class RunScore(Frozen):
    """The metrics of one judge run (attempt, repeat) of one task."""

    attempt: int
    repeat: int
    metrics: Mapping[str, float | None]
    n_graded: int
    n_expected: int


class Count(Frozen):
    """How many of the expected judgements were decided, by a verdict or by rule."""

    graded: int = 0
    expected: int = 0


class TaskScore(Frozen):
    """A task's numbers: means over repeats, then attempts; null metrics are not numbers.

    `coverage_by` splits n_graded / n_expected by group and member (sign, axis, …). `notes` say what a reader of
    this task's numbers should know (a row that was refused, and why). `cost_usd` and `latency_s` are the means
    over the task's submissions; null is unknown.
    """

    task_id: str
    metrics: Mapping[str, float | None]
    by_run: tuple[RunScore, ...] = ()
    n_graded: int
    n_expected: int
    status: TaskStatus
    flags: tuple[str, ...] = ()
    labels: Mapping[str, str | Sequence[str]] = Field(default_factory=dict)
    coverage_by: Mapping[str, Mapping[str, Count]] = Field(default_factory=dict)
    notes: tuple[str, ...] = ()
    cost_usd: float | None = None
    latency_s: float | None = None


class Metric(Frozen):
    """One number of a summary: its value, its 95 % interval, its spread, and how it was made."""

    value: float | None
    low: float | None = None
    high: float | None = None
    sd: float | None = None
    n: int
    estimator: str

    @field_validator("value", "low", "high", "sd")
    @classmethod
    def _finite(cls, value: float | None) -> float | None:
        if value is not None and not math.isfinite(value):
            raise ValueError("a metric is a finite number or null")
        return value


class Aggregate(Frozen):
    """What an aggregator gives: the benchmark's parts of a summary."""

    metrics: Mapping[str, Metric]
    groups: Mapping[str, Mapping[str, Mapping[str, int | float | None]]] = Field(default_factory=dict)
    warnings: tuple[str, ...] = ()


class JudgeSummary(Frozen):
    """Whose verdicts a summary rests on: they travel with every score.

    `prompt_digest` covers the judge's system texts and answer schemas; `rows` counts the rows by the judge they
    name; `dates` are the first and the last judgement's, UTC.
    """

    name: str
    model: str | None
    family: str | None
    settings: Mapping[str, Any]
    prompt_digest: str | None
    repeats: int
    rows: Mapping[str, int]
    dates: Mapping[Literal["first", "last"], str | None]


class Coverage(Frozen):
    """The share of expected judgements that were decided, 0…1; null when none was expected."""

    coverage: float | None
    n_graded: int
    n_expected: int


class Cost(Frozen):
    """Dollars. `source` joins where they come from; `unknown_calls` could not be priced and are not in them."""

    usd: float
    system_usd: float
    judge_usd: float
    unknown_calls: int
    source: str | None


class Latency(Frozen):
    """Seconds of solving, over the `n` submissions that say."""

    median_s: float | None
    p90_s: float | None
    n: int


class Summary(Frozen):
    """The content of summary.json.

    `coverage` = Σ n_graded / Σ n_expected over all scheduled tasks; `n_scored` counts the tasks with a headline
    number; `status`, `submissions` and `errors` count tasks, submissions and failures by kind.
    """

    benchmark: str
    system: str
    effort: str | None
    judge: JudgeSummary
    attempts: int
    n_tasks: int
    n_scored: int
    n_graded: int
    n_expected: int
    coverage: float | None
    coverage_by: Mapping[str, Mapping[str, Coverage]]
    metrics: Mapping[str, Metric]
    groups: Mapping[str, Mapping[str, Mapping[str, int | float | None]]]
    status: Mapping[str, int]
    submissions: Mapping[str, int]
    errors: Mapping[str, int]
    cost: Cost
    latency: Latency
    warnings: tuple[str, ...]
