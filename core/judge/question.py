"""A question to a judge, and its answer.

A question's text stands in three parts, in this order: `system` (who the judge is), `context` (the
query and the response: the same for every question about one submission, so that a provider's
prompt cache serves them all) and `ask` (the one criterion). What a system or a page wrote is data in
it and is fenced by the grader that writes the question.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import Any, Final

from core.digest import combine, json_digest, text_digest
from core.errors import CallError
from core.model import Failure, Usage

#: The stage of a question about a verdict; others (a benchmark names them) may think harder or less.
JUDGE: Final = "judge"


@dataclass(frozen=True, slots=True)
class Probe:
    """One field of the answer, in the form that a judge made of rules can decide.

    Is `claim` borne out by `evidence`? The answer's `field` gets `yes` or `no`. Where the grader has found it
    out itself, `decided` says so and nothing is looked for; a conjunction names in `all_of` the fields, probed
    before it, that must be true.
    """

    field: str
    claim: str = ""
    evidence: str = ""
    yes: Any = True
    no: Any = False
    decided: bool | None = None
    all_of: tuple[str, ...] = ()


@dataclass(frozen=True)
class Question:
    """One question about one submission.

    `units` are the judged units that the answer decides; `schema` is the JSON Schema of the answer
    (its properties in the order in which the judge should write them). `fault` says what a schema can't: given a
    schema-checked answer, why it is malformed, else None. `exact` names fields of the answer, objects, in which a
    field that the schema does not know makes it malformed; elsewhere such fields are ignored. Their entries stand
    each for itself: of an answer that stays malformed, those that are valid are kept (Answer). `stage` chooses the
    effort (`judge.stage_efforts`). `decides`: what an answer comes to, where that is a rule over several
    fields: what an ensemble votes on.
    Task, attempt, repeat and units serve the recorded judge and the logs; they are not part of `digest`.
    """

    task_id: str
    attempt: int
    repeat: int
    units: tuple[str, ...]
    system: str
    context: str
    ask: str
    schema: Mapping[str, Any]
    schema_name: str = "answer"
    probes: tuple[Probe, ...] = ()
    stage: str = JUDGE
    fault: Callable[[Mapping[str, Any]], str | None] | None = None
    exact: tuple[str, ...] = ()
    decides: Callable[[Mapping[str, Any]], Any] | None = None

    @cached_property
    def schema_digest(self) -> str:
        return json_digest(self.schema)

    @cached_property
    def prefix_digest(self) -> str:
        """What the questions about one submission share."""
        return combine(system=text_digest(self.system), context=text_digest(self.context))

    @cached_property
    def digest(self) -> str:
        """All that the judge is shown, and a stage other than the usual."""
        stage = {} if self.stage == JUDGE else {"stage": self.stage}
        return combine(prefix=self.prefix_digest, schema=self.schema_digest, ask=self.ask, **stage)

    def check(self, value: Mapping[str, Any]) -> None:
        """Raise CallError `malformed` for a schema-checked answer that is none all the same."""
        reason = self.fault(value) if self.fault is not None else None
        if reason is not None:
            raise CallError("malformed", reason)

    @property
    def user_text(self) -> str:
        """Context and ask as one user message."""
        return f"{self.context}\n\n{self.ask}"


@dataclass(frozen=True, slots=True)
class RecordedVerdict:
    """A verdict read from a file of judgements; null is missing. `absent`: the file has no row on the unit."""

    verdict: Mapping[str, Any] | None
    error: Failure | None = None
    explanation: str | None = None
    judge: str | None = None
    prompt_digest: str | None = None
    judged_at: str | None = None
    cost_usd: float | None = None
    absent: bool = False


@dataclass(frozen=True, slots=True)
class Answer:
    """What came of a question: a schema-checked `value`, recorded `verdicts`, or an `error`.

    Both `error` and `value`: the answer was malformed to the last, and `value` holds the entries of the question's
    `exact` fields that are valid; the error is that of the others. Such an answer is not stored.

    `usage`, `cost_usd` and `calls` cover every call that was made for it, failed ones too; a
    `cost_usd` of None is unknown. `asked_at` is UTC, ISO 8601.
    """

    value: Mapping[str, Any] | None = None
    verdicts: Mapping[str, RecordedVerdict] = field(default_factory=lambda: MappingProxyType({}))
    error: Failure | None = None
    judge: str = ""
    model: str | None = None
    raw: str | None = None
    finish_reason: str | None = None
    usage: Usage | None = None
    cost_usd: float | None = None
    cost_source: str | None = None
    latency_s: float | None = None
    asked_at: str | None = None
    calls: int = 1
