"""A judge made of rules, not a model: for demos, tests and plumbing (core/judge/rules.py).

It answers a question's probes, and only those; its scores say nothing about a system, and every summary made
with it says so. It opens no socket, costs nothing and always gives the same answer.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import date
from typing import Any, Final

from core.errors import CallError
from core.judge.options import JudgeOptions
from core.judge.question import Answer, Probe, Question
from core.judge.rules import RULES_VERSION, Finding, decide
from core.judge.structured import parse_answer
from core.services import Services

NOTICE: Final = "Decided by rules, not by a model"


class OfflineJudge:
    """Deterministic verdicts on a question's probes."""

    stored = False
    settings: Mapping[str, Any] = {"provider": "offline", "rules": RULES_VERSION}

    def __init__(self, config: Mapping[str, Any], services: Services) -> None:  # noqa: ARG002  # a factory's form
        self.name = JudgeOptions.of(config).name

    def warnings(self, today: date) -> list[str]:  # noqa: ARG002  # the form of every part's warnings
        """What every report made with this judge says."""
        said = "its verdicts show that the plumbing works and say nothing about a system"
        return [f"judge {self.name} is a set of rules, not a model: {said}"]

    async def ask(self, question: Question) -> Answer:
        """The answer that the rules give. Raises CallError when the question has no probe."""
        if not question.probes:
            raise CallError("bad_request", "the offline judge answers probes, and this question has none")
        value: dict[str, Any] = _blank(question.schema)
        reasons: list[str] = []
        for probe in question.probes:
            finding = _finding(probe, value)
            _set(value, probe.field, probe.yes if finding.borne_out else probe.no)
            _explain_beside(value, probe.field, f"{NOTICE}: {finding.why}.")
            reasons.append(finding.why)
        _explain(value, question, f"{NOTICE}: {'; '.join(reasons[:3])}.")
        raw = json.dumps(value, ensure_ascii=False)
        checked = parse_answer(raw, question.schema, digest=question.schema_digest)
        question.check(checked)
        return Answer(
            value=checked,
            judge=self.name,
            model="rules",
            raw=raw,
            finish_reason="stop",
            cost_usd=0.0,
            cost_source="computed",
            calls=0,
        )


def _finding(probe: Probe, value: Mapping[str, Any]) -> Finding:
    if probe.decided is not None:
        return Finding(borne_out=probe.decided, why=probe.claim or f"{probe.field} was found out before")
    if probe.all_of:
        failed = [name for name in probe.all_of if value.get(name) is not True]
        return Finding(borne_out=not failed, why=f"{', '.join(failed)} failed" if failed else "all of it holds")
    return decide(probe.claim, probe.evidence)


def _blank(schema: Mapping[str, Any]) -> dict[str, Any]:
    """An answer of the schema's form, before any probe is decided."""
    return {name: _blank_value(field) for name, field in (schema.get("properties") or {}).items()}


def _blank_value(field: Mapping[str, Any]) -> Any:
    if "const" in field:
        return field["const"]
    if field.get("enum"):
        return field["enum"][0]
    kind = field.get("type")
    if isinstance(kind, list):
        kind = "null" if "null" in kind else kind[0]
    if kind == "object":
        return _blank(field)
    # the most that a number may be: the rules are certain of what they say
    simple = {"string": "", "boolean": False, "array": [], "null": None}
    return simple[kind] if kind in simple else field.get("maximum", field.get("minimum", 0))


def _set(value: dict[str, Any], path: str, what: Any) -> None:
    """Set a field named by a dotted path."""
    *parents, last = path.split(".")
    for name in parents:
        inner = value.get(name)
        if not isinstance(inner, dict):
            inner = value[name] = {}
        value = inner
    value[last] = what


def _explain_beside(value: dict[str, Any], path: str, text: str) -> None:
    """Put the reason into the empty `explanation` that stands beside a nested field."""
    *parents, _ = path.split(".")
    for name in parents:
        value = value[name]
    if parents and value.get("explanation") == "":
        value["explanation"] = text


def _explain(value: dict[str, Any], question: Question, text: str) -> None:
    """Put the reason into every free text of the answer that no probe decides."""
    decided = {probe.field for probe in question.probes}
    for name, field in (question.schema.get("properties") or {}).items():
        if field.get("type") == "string" and name not in decided and not {"enum", "const"} & field.keys():
            value[name] = text
