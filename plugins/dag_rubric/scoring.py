"""The numbers of a DAG rubric, from verdicts alone.

With w(v) the normalised weight of node v (weights.py) and s(v) its score, of its checkpoints that have a verdict:

    score      = Σ w(v)·s(v)                        shown × 100
    evidential = the same sum over evidential nodes
    analytical = the same sum over analytical nodes, so that the two add up to the score

The gate puts q(v) in the place of s(v) (gate.py); the aggregations for trees have contributions of their own
(trees.py). `score/<scheme>` is the score under another weight scheme. A missing verdict is neither met nor unmet:
it leaves its node's score; a node without any verdict leaves its judge run without numbers. Sums are exact and
divided once, so each number is the float nearest to the true one (but for the gate in deep graphs, see gate.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from core.errors import InputError
from core.fold import CoverageBy, add_counts, by_repeat
from core.model import Count, Judgement, RunScore
from core.verdicts import met_by_id
from plugins.dag_rubric.gate import gated
from plugins.dag_rubric.rubric import ANALYTICAL, EVIDENTIAL, TYPES, Rubric
from plugins.dag_rubric.settings import TREES, NodeRule, Settings
from plugins.dag_rubric.trees import critical_gate, tree_mean, why_no_tree
from plugins.dag_rubric.weights import EXPLICIT, Weights, weigh

#: Upper end of the scale on which every metric is given.
FULL: Final = 100
HEADLINE: Final = "score"


@dataclass(frozen=True)
class Plan:
    """All of a task and a configuration that its numbers rest on, made once.

    `weights` are those of the chosen scheme; `others` those under which the score is shown besides, None where
    the task has no weights of its own.
    """

    rubric: Rubric
    settings: Settings
    weights: Weights
    others: Mapping[str, Weights | None]

    @classmethod
    def of(cls, name: str, rubric: Rubric, settings: Settings) -> Plan:
        """The plan for task `name`; raises InputError where the configuration does not fit the task."""
        if settings.scheme == EXPLICIT and rubric.own_weights is None:
            raise InputError(
                f"task {name!r} has no weights of its own",
                where="benchmark.weights.scheme=explicit",
                expected="a weight on every node of every task, or another scheme",
            )
        reason = why_no_tree(rubric.graph) if settings.aggregation in TREES else None
        if reason is not None:
            raise InputError(
                f"the graph of task {name!r} is not a tree: {reason}",
                where=f"benchmark.aggregation={settings.aggregation}",
                expected="graphs in which each node feeds one other and all end in one conclusion (tasks=[…] "
                "chooses them), or benchmark.aggregation=weighted or gate",
            )

        def of_scheme(scheme: str) -> Weights | None:
            if scheme == EXPLICIT and rubric.own_weights is None:
                return None
            return weigh(rubric.graph, scheme, gamma=settings.gamma, explicit=rubric.own_weights)

        chosen = of_scheme(settings.scheme)
        assert chosen is not None, "a task without weights was refused above"
        return cls(rubric, settings, chosen, {scheme: of_scheme(scheme) for scheme in settings.others})


def metric_names(settings: Settings) -> list[str]:
    """The metrics of a task, in the order in which they are written."""
    return [HEADLINE, *TYPES, *(f"{HEADLINE}/{scheme}" for scheme in shown_besides(settings))]


def shown_besides(settings: Settings) -> tuple[str, ...]:
    """The schemes of `score/<scheme>`; to a tree's aggregation, the chosen scheme is another one too."""
    return (settings.scheme, *settings.others) if settings.aggregation in TREES else settings.others


def node_score(n_met: int, n_graded: int, rule: NodeRule) -> Fraction:
    """A node's score, 0…1, of its graded checkpoints (at least one)."""
    share = Fraction(n_met, n_graded)
    if rule.name == "fraction":
        return share
    needed = Fraction(1) if rule.threshold is None else rule.threshold
    return Fraction(share >= needed)


def node_scores(rubric: Rubric, met: Mapping[str, bool], rule: NodeRule) -> list[Fraction] | None:
    """Every node's score; None when a node has no graded checkpoint.

    `met` maps checkpoint ids to verdicts; an id that it lacks is missing.
    """
    found = []
    for node in rubric.nodes:
        verdicts = [met[checkpoint.id] for checkpoint in node.checkpoints if checkpoint.id in met]
        if not verdicts:
            return None
        found.append(node_score(sum(verdicts), len(verdicts), rule))
    return found


def run_metrics(plan: Plan, met: Mapping[str, bool]) -> dict[str, float | None]:
    """All metrics of one judge run, from the verdicts that exist; all None where a node has none."""
    settings, rubric = plan.settings, plan.rubric
    names = metric_names(settings)
    scores = node_scores(rubric, met, settings.node_rule)
    if scores is None:
        return dict.fromkeys(names)
    if settings.aggregation in TREES:
        tree = tree_mean if settings.aggregation == "tree_mean" else critical_gate
        earned, parts, total = scores, tree(rubric, scores), Fraction(1)
    else:
        is_gated = settings.aggregation == "gate"
        earned = gated(rubric, scores, settings.passing) if is_gated else scores
        parts, total = contributions(plan.weights, earned), Fraction(plan.weights.total)
    by_type = {
        kind: _sum(part for part, node in zip(parts, rubric.nodes, strict=True) if node.type == kind) / total
        for kind in TYPES
    }
    found: dict[str, float | None] = {
        HEADLINE: _shown(by_type[EVIDENTIAL] + by_type[ANALYTICAL]),
        **{kind: _shown(value) for kind, value in by_type.items()},
    }
    schemes = {settings.scheme: plan.weights, **plan.others}
    for scheme in shown_besides(settings):
        weights = schemes[scheme]
        found[f"{HEADLINE}/{scheme}"] = (
            None if weights is None else _shown(_sum(contributions(weights, earned)) / weights.total)
        )
    return {name: found[name] for name in names}


def contributions(weights: Weights, earned: Sequence[Fraction]) -> list[Fraction]:
    """What each node adds to the score, before the one division by the weights' total.

    Raw weights may have thousands of digits: dividing each would cost more than all the rest.
    """
    return [raw * credit if credit else Fraction(0) for raw, credit in zip(weights.raw, earned, strict=True)]


def run_scores(plan: Plan, judgements: Sequence[Judgement]) -> tuple[list[RunScore], CoverageBy]:
    """Each judge run of one attempt, in the order of repeats, and the coverage by type of node.

    The repeats are those that `judgements` have; each expects a verdict for every checkpoint, whether or not it
    has a row. Raises ValueError for two rows of one (checkpoint, repeat) or for rows of several attempts,
    InputError for a unit that the task does not have or a verdict of another form.
    """
    if len({row.attempt for row in judgements}) > 1:
        raise ValueError("the judgements of one attempt are scored at a time")
    runs: list[RunScore] = []
    counts: list[CoverageBy] = []
    for repeat, rows in by_repeat(judgements).items():
        met = verdicts(plan.rubric, rows)
        runs.append(
            RunScore(
                attempt=rows[0].attempt,
                repeat=repeat,
                metrics=run_metrics(plan, met),
                n_graded=len(met),
                n_expected=len(plan.rubric.checkpoints),
            )
        )
        counts.append(coverage_of(plan.rubric, met))
    return runs, add_counts(counts)


def verdicts(rubric: Rubric, rows: Iterable[Judgement]) -> dict[str, bool]:
    """Checkpoint id → met, of one repeat's rows; rows without a verdict are left out."""
    ids = {unit: checkpoint.id for unit, checkpoint in rubric.by_unit.items()}
    return met_by_id(rows, ids, kind="checkpoint")


def coverage_of(rubric: Rubric, met: Mapping[str, bool]) -> CoverageBy:
    """How many of one repeat's verdicts exist, by type of node."""
    counts = {kind: [0, 0] for kind in TYPES}
    for node in rubric.nodes:
        counts[node.type][0] += sum(checkpoint.id in met for checkpoint in node.checkpoints)
        counts[node.type][1] += len(node.checkpoints)
    return {
        "type": {
            kind: Count(graded=graded, expected=expected)
            for kind, (graded, expected) in counts.items()
            if expected
        }
    }


def _sum(parts: Iterable[Fraction]) -> Fraction:
    return sum(parts, Fraction(0))


def _shown(value: Fraction) -> float:
    return float(FULL * value)
