"""What stands behind a task's scores: which rows fail and why, what is not there, what collapses. Pure.

From one repeat's rows and the rolled-up task `analyse` counts; nothing is divided before counts of several tasks
have been added up, so that a share over rows is a share over all rows. A task's counts travel in its metrics,
`analysis/<group>/<member>/<field>` (`to_metrics`, `from_metrics`): folding, merging and scoring anew need nothing
else.

A key-level node is one key below one entity (rollup.Level). The first level of a subtask is none: its count has no
part in the task, and its entities are those of the parent.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Final, Literal

from core.fold import mean
from core.pages.page import GONE, STATUSES, UNSEEN
from plugins.wandr.checks import (
    CONFIDENCE,
    FAITHFUL,
    JUDGE_VERDICT,
    SATISFIED,
    SUPPORTED,
    SURE,
    UNIVERSAL,
    USABLE,
    VALID,
    VERDICT,
    node_checks,
    verdict_full,
)
from plugins.wandr.model import URL, Identity, JudgeSpec, Leaf, Node
from plugins.wandr.rollup import Level, Rolled, rollup

Value = float | None
Role = Literal["discovery", "enrichment", "evidence"]

#: What can be wrong with a judged row, and the check that says so when it is false. Not exclusive.
ROW_FAILURES: Final[Mapping[str, str]] = {
    "page_unusable": USABLE,
    "invalid": VALID,
    "page_requirement_unmet": SATISFIED,
    "excerpt_unfaithful": FAITHFUL,
    "excerpt_requirement_unmet": SUPPORTED,
    "verdict_false": VERDICT,
}
#: Which key-level nodes a completion speaks of: the root's first key, keys between, urls.
ROLES: Final[tuple[Role, ...]] = ("discovery", "enrichment", "evidence")
#: The member that stands for all members of its group.
ALL: Final = "all"
_PREFIX: Final = "analysis"


@dataclass(frozen=True, slots=True)
class JudgedRow:
    """One well-formed row of a submission in one repeat.

    `verdict` is the content of its row in a file of judgements (checks.RECORD_SCHEMA and whatever checks stand
    beside), None where it was not judged. `page_status` is one of core.pages.page.STATUSES, None where nothing is
    known of the page.
    """

    leaf: Leaf
    verdict: Mapping[str, Any] | None
    page_status: str | None = None

    @property
    def checks(self) -> Mapping[str, Any]:
        """What a judge said; nothing where none was asked: a page that is gone is failed by rule."""
        return {} if self.verdict is None or self.page_status in GONE else self.verdict


@dataclass(frozen=True, slots=True)
class Share:
    """`count` of `n` rows; both are means where a task was judged several times."""

    count: float
    n: float


@dataclass(frozen=True, slots=True)
class Completion:
    """The mean over a task's key-level nodes of min(provided, required) / required; None where it has none."""

    value: Value


@dataclass(frozen=True, slots=True)
class IdentityLoss:
    """What duplicates cost the non-url nodes of a task.

    Of a node with p values provided, d of them beyond one for each identity, and r required, the loss is
    (min(p, r) - min(p - d, r)) / r. `loss` is the sum over `nodes`, `affected` counts those with a loss,
    `provided` is Σ p, `collapsed` Σ d, `tasks` 1 for a task with an affected node, else 0.
    """

    loss: float
    nodes: float
    affected: float
    provided: float
    collapsed: float
    tasks: float


@dataclass(frozen=True, slots=True)
class Check:
    """One check of one node: true in `count` of the `n` judged rows that state it.

    The F1 are its own rollup: those of its node alone if a row held whenever this check does. A row that is
    missing there is missing here; one whose page is gone fails.
    """

    count: float
    n: float
    soft_f1: Value
    hard_f1: Value


@dataclass(frozen=True, slots=True)
class TaskAnalysis:
    """All that is counted of one task, by member. `checks`: `<node>/<check>`.

    `unverifiable`: rows whose page we could not see, by its status and together, of those whose page has one.
    `judge`: rows in which the judge's own verdict is not equation 1 (`disagreement`), and in which it was too
    little confident to count (`unsure`).
    """

    row_failures: Mapping[str, Share]
    structural_completion: Mapping[str, Completion]
    identity_loss: Mapping[str, IdentityLoss]
    unverifiable: Mapping[str, Share]
    judge: Mapping[str, Share]
    checks: Mapping[str, Check]


_MEMBERS: Final[Mapping[str, Callable[..., Any]]] = {
    "row_failures": Share,
    "structural_completion": Completion,
    "identity_loss": IdentityLoss,
    "unverifiable": Share,
    "judge": Share,
    "checks": Check,
}


def analyse(root: Node, rows: Sequence[JudgedRow], rolled: Rolled, identity: Identity) -> TaskAnalysis:
    """The analysis of one repeat. `rolled` may hold more leaves than `rows`: those of malformed rows."""
    specs = {node.name: node.judge for node in root.walk()}
    return TaskAnalysis(
        row_failures={kind: _falses(rows, check) for kind, check in ROW_FAILURES.items()},
        structural_completion=_completions(rolled),
        identity_loss={ALL: _identity_loss(rolled)},
        unverifiable=_unverifiable(rows),
        judge={
            "disagreement": _share(_disagrees(row, specs[row.leaf.node]) for row in rows),
            "unsure": _share(row.checks[CONFIDENCE] < SURE for row in rows if CONFIDENCE in row.checks),
        },
        checks=dict(_checks(root, rows, identity)),
    )


def to_metrics(found: TaskAnalysis) -> dict[str, Value]:
    """The analysis as numbers of a task. Their names depend on the task's tree alone."""
    return {
        f"{_PREFIX}/{group}/{member}/{field.name}": getattr(record, field.name)
        for group in _MEMBERS
        for member, record in getattr(found, group).items()
        for field in fields(record)
    }


def from_metrics(metrics: Mapping[str, Value]) -> TaskAnalysis | None:
    """The analysis out of a task's metrics; None where they have none, or only nulls."""
    groups: dict[str, dict[str, dict[str, Value]]] = {group: {} for group in _MEMBERS}
    is_there = False
    for name, value in metrics.items():
        if name.startswith(f"{_PREFIX}/"):
            group, _, rest = name.removeprefix(f"{_PREFIX}/").partition("/")
            member, _, field = rest.rpartition("/")
            groups[group].setdefault(member, {})[field] = value
            is_there = is_there or value is not None
    if not is_there:
        return None
    return TaskAnalysis(
        **{
            group: {member: _MEMBERS[group](**numbers) for member, numbers in members.items()}
            for group, members in groups.items()
        }
    )


def of_nothing(root: Node) -> dict[str, Value]:
    """The numbers of a submission without rows: nothing is discovered, and of nothing there are no shares.

    Its keys are the names of `to_metrics` for every submission to this task.
    """
    nobody = Identity()
    return to_metrics(analyse(root, (), rollup(root, (), nobody), nobody))


def _share(outcomes: Iterator[bool | None]) -> Share:
    """How many are true, of those that are there."""
    there = [outcome for outcome in outcomes if outcome is not None]
    return Share(float(sum(there)), float(len(there)))


def _falses(rows: Sequence[JudgedRow], check: str) -> Share:
    return _share(row.checks[check] is False for row in rows if check in row.checks)


def _unverifiable(rows: Sequence[JudgedRow]) -> dict[str, Share]:
    def of(statuses: Collection[str]) -> Share:
        return _share(row.page_status in statuses for row in rows if row.page_status is not None)

    return {ALL: of(UNSEEN)} | {status: of((status,)) for status in STATUSES if status in UNSEEN}


def _disagrees(row: JudgedRow, spec: JudgeSpec) -> bool | None:
    """Whether the judge's own word is another than equation 1's; None where one of them can't be told."""
    own = row.checks.get(JUDGE_VERDICT)
    if own is None:
        return None
    if all(name in row.checks for name in (*UNIVERSAL, *node_checks(spec))):
        return bool(own != verdict_full(row.checks, spec))
    return bool(own != row.checks[VERDICT])


def _levels(rolled: Rolled) -> Iterator[tuple[Role, Level]]:
    """The key-level nodes of a task, and what each is for."""
    for node in rolled.walk():
        for level in node.level.walk():
            if level.key == URL:
                yield "evidence", level
            elif level is not node.level:
                yield "enrichment", level
            elif node is rolled:
                yield "discovery", level


def _completions(rolled: Rolled) -> dict[str, Completion]:
    found: dict[Role, list[float]] = {role: [] for role in ROLES}
    for role, level in _levels(rolled):
        found[role].append(min(level.provided, level.required) / level.required)
    return {role: Completion(mean(shares)) for role, shares in found.items()}


def _identity_loss(rolled: Rolled) -> IdentityLoss:
    levels = [level for role, level in _levels(rolled) if role != "evidence"]
    losses = [loss(level.provided, level.duplicates, level.required) for level in levels]
    affected = sum(value > 0 for value in losses)
    return IdentityLoss(
        loss=math.fsum(losses),
        nodes=float(len(levels)),
        affected=float(affected),
        provided=float(sum(level.provided for level in levels)),
        collapsed=float(sum(level.duplicates for level in levels)),
        tasks=float(affected > 0),
    )


def loss(provided: int, variants: int, required: int) -> float:
    """A node's identity loss, 0…1; `variants` are the values beyond one for each identity."""
    return (min(provided, required) - min(provided - variants, required)) / required


def _checks(root: Node, rows: Sequence[JudgedRow], identity: Identity) -> Iterator[tuple[str, Check]]:
    by_node: dict[str, list[JudgedRow]] = {}
    for row in rows:
        by_node.setdefault(row.leaf.node, []).append(row)
    for node in root.walk():
        own = by_node.get(node.name, [])
        alone = replace(node, subtasks=())
        for name in node_checks(node.judge):
            true = _share(row.checks[name] is True for row in own if name in row.checks)
            leaves = [replace(row.leaf, full=_outcome(row, name), retrieval=None) for row in own]
            scores = rollup(alone, leaves, identity).standalone.full
            yield f"{node.name}/{name}", Check(true.count, true.n, scores.soft_f1, scores.hard_f1)


def _outcome(row: JudgedRow, check: str) -> bool | None:
    if row.leaf.full is None:
        return None
    if check in row.checks:
        return row.checks[check] is True
    return False if row.page_status in GONE else None
