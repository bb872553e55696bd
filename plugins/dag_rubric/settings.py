"""The keys of the config section `benchmark` that are this benchmark's own, checked."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from fractions import Fraction
from typing import Any, Final

from core.errors import InputError
from plugins.dag_rubric.weights import DEFAULT, EXPLICIT, SCHEMES, decimal_fraction

FORMS: Final = ("with_hints", "without_hints", "assigned_topic")
ALL_FORMS: Final = "all"
AGGREGATIONS: Final = ("weighted", "gate", "tree_mean", "critical_gate")
#: Aggregations that need a tree.
TREES: Final = frozenset({"tree_mean", "critical_gate"})
JUDGINGS: Final = ("per_node", "per_checkpoint", "per_task")
EDGES: Final[Mapping[str, str]] = {"weak": "0.6", "strong": "0.2", "hard": "0"}
#: The fewest schemes besides the chosen one under which a score is shown.
FEWEST_OTHERS: Final = 2

_THRESHOLD: Final = re.compile(r"threshold\(\s*([^()\s]+)\s*\)")


@dataclass(frozen=True, slots=True)
class NodeRule:
    """How a node's score comes of its checkpoints.

    `fraction`: the share met; `all`: 1 when every one is met, else 0; `threshold`: 1 when the share is at least
    `threshold` (0…1), else 0.
    """

    name: str = "fraction"
    threshold: Fraction | None = None

    def __str__(self) -> str:
        return self.name if self.threshold is None else f"{self.name}({float(self.threshold):g})"


@dataclass(frozen=True, slots=True)
class Settings:
    """What of a configuration shapes tasks, questions and numbers.

    `gamma` serves katz; `others` are the schemes under which the score is shown besides; `passing` maps a type of
    edge to the share of a failed prerequisite's credit that the gate lets through (λ, 0…1).
    """

    form: str
    transitive_reduction: bool
    scheme: str
    gamma: Fraction
    others: tuple[str, ...]
    node_rule: NodeRule
    aggregation: str
    passing: Mapping[str, Fraction]
    judging: str

    @classmethod
    def of(cls, config: Mapping[str, Any]) -> Settings:
        """Read the section; absent keys have their defaults. Raises InputError naming the key."""
        weights = _section(config, "weights", ("scheme", "gamma", "also"))
        gate = _section(config, "gate", tuple(EDGES))
        scheme = _one_of(weights.get("scheme", DEFAULT), tuple(SCHEMES), "benchmark.weights.scheme")
        return cls(
            form=_one_of(config.get("form", FORMS[0]), (*FORMS, ALL_FORMS), "benchmark.form"),
            transitive_reduction=_boolean(config.get("transitive_reduction", False)),
            scheme=scheme,
            gamma=_share(weights.get("gamma", "0.5"), "benchmark.weights.gamma"),
            others=_others(weights.get("also"), scheme),
            node_rule=_node_rule(config.get("node_score", "fraction")),
            aggregation=_one_of(config.get("aggregation", AGGREGATIONS[0]), AGGREGATIONS, "benchmark.aggregation"),
            passing={
                edge: _share(gate.get(edge, usual), f"benchmark.gate.{edge}") for edge, usual in EDGES.items()
            },
            judging=_one_of(config.get("judging", JUDGINGS[0]), JUDGINGS, "benchmark.judging"),
        )


def _section(config: Mapping[str, Any], name: str, known: Sequence[str]) -> Mapping[str, Any]:
    found = config.get(name)
    if found is None:
        return {}
    if not isinstance(found, Mapping):
        raise InputError(
            "not a section", where=f"benchmark.{name}", expected=f"keys of {', '.join(known)}", got=repr(found)
        )
    for key in found:
        _one_of(key, known, f"benchmark.{name}")
    return {key: value for key, value in found.items() if value is not None}


def _one_of(value: object, known: Sequence[str], where: str) -> str:
    if isinstance(value, str) and value in known:
        return value
    close = get_close_matches(str(value), known, n=1)
    hint = f"; did you mean {close[0]!r}?" if close else ""
    raise InputError(
        f"there is no such choice{hint}", where=where, expected=f"one of {', '.join(known)}", got=repr(value)
    )


def _boolean(value: object) -> bool:
    if isinstance(value, bool):
        return value
    raise InputError(
        "not a choice", where="benchmark.transitive_reduction", expected="true or false", got=repr(value)
    )


def _share(value: object, where: str) -> Fraction:
    try:
        found = decimal_fraction(value)
    except ValueError as error:
        raise InputError(str(error), where=where, expected="a decimal number between 0 and 1") from None
    if not 0 <= found <= 1:
        raise InputError("out of range", where=where, expected="a decimal number between 0 and 1", got=repr(value))
    return found


def _others(value: object, scheme: str) -> tuple[str, ...]:
    known = tuple(SCHEMES)
    where = "benchmark.weights.also"
    if value is None:
        chosen: Sequence[object] = [name for name in known if name != EXPLICIT]
    elif isinstance(value, Sequence) and not isinstance(value, str):
        chosen = value
    else:
        raise InputError("not a list", where=where, expected=f"a list of {', '.join(known)}", got=repr(value))
    names = dict.fromkeys(_one_of(name, known, where) for name in chosen)
    found = tuple(name for name in names if name != scheme)
    if len(found) < FEWEST_OTHERS:
        raise InputError(
            "too few other schemes: which one is right is not published, so a score is shown under several",
            where=where,
            expected=f"at least {FEWEST_OTHERS} besides {scheme}",
            got=repr(list(names)),
        )
    return found


def _node_rule(value: object) -> NodeRule:
    if value in ("fraction", "all"):
        return NodeRule(str(value))
    where = "benchmark.node_score"
    match = _THRESHOLD.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        raise InputError(
            "there is no such rule", where=where, expected="fraction, all, or threshold(0.6)", got=repr(value)
        )
    threshold = _share(match[1], where)
    if not threshold:
        raise InputError("every node would pass", where=where, expected="a threshold above 0", got=repr(value))
    return NodeRule("threshold", threshold)
