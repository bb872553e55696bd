"""The aggregator `wandr`: from tasks' scores to the numbers of a summary.

Every number is the unweighted mean over tasks (core/aggregate.py). A task without a number is missing; under
`benchmark.profile=released` it counts 0, as in the released harness. The analysis (analysis.py) is added up over
tasks: shares over rows are shares over all rows.
"""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from core.aggregate import Numbers, by_rule_warnings, floor_of, group, members, metric
from core.fold import mean
from core.model import Aggregate, RunScore, TaskScore
from plugins.wandr import analysis, identity, norms
from plugins.wandr.analysis import IdentityLoss, Share, TaskAnalysis
from plugins.wandr.levels import NAMES
from plugins.wandr.notes import first_refused
from plugins.wandr.rollup import NO_LEAF, RETRIEVAL
from plugins.wandr.scoring import MALFORMED
from plugins.wandr.tasks import SMALLEST_VOLUME, VOLUMES

#: The metric without which a task has no number.
HEADLINE: Final = "soft_f1"
#: What the readings and lineages of a metric's name end in.
SUFFIXES: Final[Mapping[str, str]] = {
    "": "a leaf holds when page and excerpts do; one malformed row makes a task 0",
    RETRIEVAL: "a leaf holds when the page does; one malformed row makes a task 0",
    "_lenient": "a leaf holds when page and excerpts do; a malformed row is a leaf that failed",
    f"{RETRIEVAL}_lenient": "a leaf holds when the page does; a malformed row is a leaf that failed",
}
_BASE: Final[Mapping[str, str]] = {
    "soft_precision": "mean of the root's entities, surplus and duplicates included",
    "soft_recall": "best required of the root's entities, the worst of each identity, padded with 0",
    "soft_f1": "harmonic mean of the task's soft precision and recall",
    "hard_precision": "as soft precision, of entities that are complete",
    "hard_recall": "as soft recall, of entities that are complete",
    "hard_f1": "harmonic mean of the task's hard precision and recall",
}
#: The numbers of a summary, 0…1, and how a task's is made.
METRICS: Final[Mapping[str, str]] = {
    f"{name}{suffix}": f"{_BASE[name]}; {leaf}" for suffix, leaf in SUFFIXES.items() for name in NAMES
}
#: The labels whose values are groups, with the order of values that are not in alphabetical order.
GROUPS: Final[Mapping[str, Sequence[str]]] = {
    "verticals": (),
    "difficulty": ("low", "medium", "high"),
    "topology": (),
    "width": ("tiny", "small", "medium", "large", "xlarge"),
    "volume": (SMALLEST_VOLUME, *(label for _, label in reversed(VOLUMES))),
    "intermediate_keys": (),
}
#: The groups that show how numbers scale with what a task asks for: here a task without a number counts 0 too.
SCALING: Final = ("volume", "intermediate_keys")
_ERRORS_0: Final = "_errors_0"
#: Flags `<word>:<key>` that a reader must know of, and what they mean.
_KEY_FLAGS: Final[Mapping[str, str]] = {
    identity.CANONICAL_FLAG: "canonical forms of a key stay as the norm has them, since a question failed",
    identity.CLUSTER_FLAG: "duplicates of a key are those of the norm, since a question failed",
    norms.CUSTOM_FLAG: "a plain norm stands in for a key's own function",
}
#: Gaps between two numbers of a summary, named for what they show: (shown name, higher, lower).
GAPS: Final[Mapping[str, Sequence[tuple[str, str, str]]]] = {
    "under_delivery": (
        ("full", "soft_precision", "soft_recall"),
        ("retrieval", f"soft_precision{RETRIEVAL}", f"soft_recall{RETRIEVAL}"),
    ),
    "incomplete_members": (
        ("full", "soft_f1", "hard_f1"),
        ("retrieval", f"soft_f1{RETRIEVAL}", f"hard_f1{RETRIEVAL}"),
    ),
    "evidence_lost_on_good_pages": (
        ("soft", f"soft_f1{RETRIEVAL}", "soft_f1"),
        ("hard", f"hard_f1{RETRIEVAL}", "hard_f1"),
    ),
}
#: So many checks are in a summary, those that are least often true; scores.jsonl has them all.
WEAKEST: Final = 20
#: So many keys are named in a warning.
SHOWN_KEYS: Final = 5
#: Below this many tasks a mean says little without its interval.
SMALL: Final = 30


class WandrAggregator:
    """Reads `coverage_floor`, `strict` and `profile` of the section `benchmark`."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        self._floor = floor_of(config)
        self._errors_are_zero = config.get("profile") == "released"

    def aggregate(self, scores: Sequence[TaskScore]) -> Aggregate:
        """Metrics, groups by label, the analysis as further groups, and what a reader must know."""
        given = [score for score in scores if score.metrics.get(HEADLINE) is not None]
        counted = with_zeros(scores) if self._errors_are_zero else list(scores)
        groups = {
            label: {
                member: self._group(tasks, scaling=label in SCALING)
                for member, tasks in _in_order(members(counted, label), order)
            }
            for label, order in GROUPS.items()
        }
        found = [part for score in given if (part := analysis.from_metrics(score.metrics)) is not None]
        return Aggregate(
            metrics={name: metric(counted, name, how, self._floor) for name, how in METRICS.items()},
            groups={**groups, "gaps": self._gaps(counted), **analysed(found)},
            warnings=tuple(self._warnings(scores, given)),
        )

    def _group(self, tasks: Sequence[TaskScore], *, scaling: bool) -> Numbers:
        """A label's group: the means over its scored tasks, and what solving them took where that is known.

        `cost_usd`: dollars, the mean over the tasks that state it. `latency_median_s`: seconds, the median over
        these. Where numbers scale, `soft_f1_errors_0` and `hard_f1_errors_0` too: means over all scheduled tasks
        of the group, one without a number counting 0.
        """
        numbers = group(tasks, {name: name for name in NAMES}, self._floor)
        latencies = [task.latency_s for task in tasks if task.latency_s is not None]
        numbers["cost_usd"] = mean(task.cost_usd for task in tasks)
        numbers["latency_median_s"] = statistics.median(latencies) if latencies else None
        if scaling:
            for name in ("soft_f1", "hard_f1"):
                numbers[f"{name}{_ERRORS_0}"] = mean(task.metrics.get(name) or 0.0 for task in tasks)
        return numbers

    def _gaps(self, scores: Sequence[TaskScore]) -> dict[str, Numbers]:
        overall = group(scores, {name: name for name in METRICS}, self._floor)
        return {
            gap: {shown: _difference(overall[high], overall[low]) for shown, high, low in pairs}
            for gap, pairs in GAPS.items()
        }

    def _warnings(self, scores: Sequence[TaskScore], given: Sequence[TaskScore]) -> Iterable[str]:
        yield from by_rule_warnings(scores, "every number is 0")
        no_leaf = sum(NO_LEAF in score.flags for score in given)
        if no_leaf:
            yield f"{no_leaf} of {len(scores)} tasks with a number that no leaf decides: it is written as 0"
        yield from _refused_warnings(given, len(scores))
        yield from _key_warnings(scores)
        lost = len(scores) - len(given)
        if self._errors_are_zero and lost:
            yield f"{lost} of {len(scores)} tasks have no number and count 0 (profile released)"
        if len(given) < SMALL:
            yield f"only {len(given)} tasks are scored: compare intervals, not means"


def _refused_warnings(given: Sequence[TaskScore], n_tasks: int) -> Iterable[str]:
    """One warning where malformed rows made strict numbers 0: of how many tasks, and the first row."""
    refused = [score for score in given if MALFORMED in score.flags]
    if not refused:
        return
    # another attempt at the task may have been well-formed
    zero = sum(score.metrics[HEADLINE] == 0 for score in refused)
    partly = f", and {len(refused) - zero} more in some attempts" if len(refused) > zero else ""
    first = next(((score.task_id, note) for score in refused if (note := first_refused(score.notes))), None)
    shown = "" if first is None else f"; first: task {first[0]}: {first[1]}"
    yield (
        f"{zero} of {n_tasks} tasks are 0 in the strict numbers because of malformed rows or missing "
        f"files{partly}{shown}"
    )


def _key_warnings(scores: Sequence[TaskScore]) -> Iterable[str]:
    """One warning for each kind of flag on keys: how many tasks have it, and the keys that most have."""
    for word, meaning in _KEY_FLAGS.items():
        found = [{flag for flag in score.flags if flag.startswith(f"{word}:")} for score in scores]
        n_tasks = sum(map(bool, found))
        if n_tasks:
            keys = Counter(flag.partition(":")[2] for flags in found for flag in flags)
            ranked = sorted(keys.items(), key=lambda item: (-item[1], item[0]))
            listed = ", ".join(f"{key} {count}" for key, count in ranked[:SHOWN_KEYS])
            more = ", …" if len(ranked) > SHOWN_KEYS else ""
            yield f"{n_tasks} of {len(scores)} tasks with {word} ({listed}{more}): {meaning}"


def with_zeros(scores: Sequence[TaskScore]) -> list[TaskScore]:
    """The scores with 0 in every metric, and in every judge run of the others, of a task without a number."""
    runs = sorted({(run.attempt, run.repeat) for score in scores for run in score.by_run})
    zeros = dict.fromkeys(METRICS, 0.0)
    by_run = tuple(
        RunScore(attempt=attempt, repeat=repeat, metrics=zeros, n_graded=0, n_expected=0)
        for attempt, repeat in runs
    )
    return [
        score
        if score.metrics.get(HEADLINE) is not None
        else score.model_copy(update={"metrics": zeros, "by_run": by_run})
        for score in scores
    ]


def analysed(found: Sequence[TaskAnalysis]) -> dict[str, dict[str, Numbers]]:
    """The analysis of a run from that of its tasks, as groups of a summary.

    `row_failures`, `unverifiable`, `judge`: {"share", "n"}, over all rows of all tasks. `structural_completion`:
    {"value", "n"}, the mean over the n tasks that have such a node. `identity_loss`: see `_identity_loss`.
    `weakest_checks`: {"share", "n", "soft_f1", "hard_f1"} of up to 20 checks, the least often true first.
    """
    return {
        "row_failures": _shares([task.row_failures for task in found]),
        "structural_completion": {
            role: _mean([task.structural_completion[role].value for task in found]) for role in analysis.ROLES
        },
        "identity_loss": {analysis.ALL: _identity_loss([task.identity_loss[analysis.ALL] for task in found])},
        "unverifiable": _shares([task.unverifiable for task in found]),
        "judge": _shares([task.judge for task in found]),
        "weakest_checks": _weakest(found),
    }


def _shares(tasks: Sequence[Mapping[str, Share]]) -> dict[str, Numbers]:
    names = dict.fromkeys(name for task in tasks for name in task)
    pooled = {}
    for name in names:
        count = math.fsum(task[name].count for task in tasks)
        n = math.fsum(task[name].n for task in tasks)
        pooled[name] = _share(count, n)
    return pooled


def _share(count: float, n: float) -> Numbers:
    return {"share": _ratio(count, n), "n": _count(n)}


def _mean(values: Sequence[float | None]) -> Numbers:
    return {"value": mean(values), "n": sum(value is not None for value in values)}


def _identity_loss(tasks: Sequence[IdentityLoss]) -> Numbers:
    """The pooled loss of all tasks' non-url nodes.

    `mean` over all nodes, `mean_affected` over those with a loss; `nodes_affected`, `tasks_affected` and
    `values_collapsed` are shares of nodes, tasks and provided values; `nodes` and `tasks` are their numbers.
    """
    total = {
        name: math.fsum(getattr(task, name) for task in tasks)
        for name in ("loss", "nodes", "affected", "provided", "collapsed", "tasks")
    }
    return {
        "mean": _ratio(total["loss"], total["nodes"]),
        "mean_affected": _ratio(total["loss"], total["affected"]),
        "nodes_affected": _ratio(total["affected"], total["nodes"]),
        "tasks_affected": _ratio(total["tasks"], len(tasks)),
        "values_collapsed": _ratio(total["collapsed"], total["provided"]),
        "nodes": _count(total["nodes"]),
        "tasks": len(tasks),
    }


def _weakest(tasks: Sequence[TaskAnalysis]) -> dict[str, Numbers]:
    checks = [
        (check.count / check.n, name, check) for task in tasks for name, check in task.checks.items() if check.n
    ]
    checks.sort(key=lambda found: found[:2])
    return {
        name: {**_share(check.count, check.n), "soft_f1": check.soft_f1, "hard_f1": check.hard_f1}
        for _, name, check in checks[:WEAKEST]
    }


def _in_order(found: Mapping[str, list[TaskScore]], order: Sequence[str]) -> Iterable[tuple[str, list[TaskScore]]]:
    known = [member for member in order if member in found]
    return [(member, found[member]) for member in (*known, *(name for name in found if name not in known))]


def _difference(high: float | None, low: float | None) -> float | None:
    return None if high is None or low is None else high - low


def _ratio(count: float, n: float) -> float | None:
    return count / n if n else None


def _count(n: float) -> int | float:
    """A mean of counts over judge runs need not be whole."""
    return int(n) if n.is_integer() else n
