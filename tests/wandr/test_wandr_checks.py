"""The answer about a record: its schema, equation 1, and what a verdict means to the rollup."""

from __future__ import annotations

import gzip
import json
from itertools import product
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from core.errors import InputError
from plugins.wandr import checks
from plugins.wandr.model import JudgeSpec, Requirement, Validity
from plugins.wandr.settings import PROFILES, Settings, settings_of
from plugins.wandr.tasks import tasks_of
from plugins.wandr.tree import tree_of

SPEC = JudgeSpec(
    validity=(Validity("town", "it is a town"),),
    requirements=(Requirement("age", "quoted", "on the page"), Requirement("quoted_only", "quoted")),
    other_fields=({"name": "kind", "type": "str"}, {"name": "official", "type": "<class 'bool'>"}),
)
OWN = ("town_valid", "age_satisfied", "age_supported", "quoted_only_supported")
TASKS = Path(__file__).parents[3] / "shared" / "data" / "wandr" / "tasks.jsonl.gz"


def answer(**changes: Any) -> dict[str, Any]:
    made: dict[str, Any] = dict.fromkeys((*checks.UNIVERSAL, *OWN, "verdict", "official"), True)
    return {"reasoning": "", "confidence": 3, "kind": "x", **made, **changes}


def test_the_fields_stand_in_the_order_of_asking() -> None:
    schema = checks.answer_schema(SPEC)
    expected = ["reasoning", *checks.UNIVERSAL, "verdict", "confidence", *OWN, "kind", "official"]
    assert list(schema["properties"]) == expected
    assert schema["required"] == expected
    assert schema["additionalProperties"] is False


def test_a_requirement_without_satisfied_asks_for_support_alone() -> None:
    assert "quoted_only_satisfied" not in checks.answer_schema(SPEC)["properties"]


@pytest.mark.parametrize("confidence", [-1, 4, 1.5, True, "3"])
def test_confidence_is_a_whole_number_from_0_to_3(confidence: Any) -> None:
    validator = jsonschema.Draft202012Validator(checks.answer_schema(SPEC))
    assert validator.is_valid(answer())
    assert not validator.is_valid(answer(confidence=confidence))


def test_equation_1_is_the_conjunction_of_every_check() -> None:
    assert checks.verdict_full(answer(), SPEC)
    for name in (*checks.UNIVERSAL, *OWN):
        assert not checks.verdict_full(answer(**{name: False}), SPEC), name
        lacking = answer()
        del lacking[name]
        assert not checks.verdict_full(lacking, SPEC), name


@pytest.mark.parametrize("name", ["verdict", "official", "confidence"])
def test_equation_1_leaves_out_what_is_no_check(name: str) -> None:
    assert checks.verdict_full(answer(**{name: False}), SPEC)


@pytest.mark.parametrize(
    ("own", "age_supported", "verdict_from", "expected"),
    [
        (own, supported, word, own if word == "judge" else supported)
        for own, supported, word in product((True, False), (True, False), ("recomputed", "judge"))
    ],
)
def test_a_row_has_the_verdict_that_the_profile_wants_and_the_judges_own(
    own: bool, age_supported: bool, verdict_from: checks.VerdictFrom, expected: bool
) -> None:
    row = checks.record_verdict(answer(verdict=own, age_supported=age_supported), SPEC, verdict_from)
    assert (row["verdict"], row["judge_verdict"]) == (expected, own)
    assert row["age_supported"] is age_supported
    assert "reasoning" not in row
    jsonschema.Draft202012Validator(checks.RECORD_SCHEMA).validate(row)


@pytest.mark.parametrize(
    ("verdict", "expected"),
    [
        pytest.param(None, (None, None), id="not judged"),
        pytest.param(
            {"verdict": True, "requirements_all_satisfied": True, "confidence": 3}, (True, True), id="true"
        ),
        pytest.param(
            {"verdict": False, "requirements_all_satisfied": True, "confidence": 2}, (False, True), id="retrieval"
        ),
        pytest.param(
            {"verdict": True, "requirements_all_satisfied": True, "confidence": 1}, (None, None), id="unsure"
        ),
        pytest.param(
            {"verdict": False, "requirements_all_satisfied": False, "confidence": 0}, (None, None), id="a guess"
        ),
    ],
)
def test_outcomes(verdict: dict[str, Any] | None, expected: tuple[bool | None, bool | None]) -> None:
    assert checks.outcomes(verdict) == expected


def test_a_rule_fails_a_record_with_certainty() -> None:
    assert checks.outcomes(checks.failed_verdict(page_status="gone")) == (False, False)


def test_names_that_universal_checks_have_are_not_taken() -> None:
    spec = JudgeSpec(
        validity=(Validity("overall"),),
        requirements=(Requirement("requirements_all", "quoted", "there"),),
        other_fields=({"name": "verdict"}, {"name": "reasoning"}, {}),
    )
    assert checks.node_checks(spec) == ()
    assert checks.other_checks(spec) == ()
    fields = checks.answer_schema(spec)["properties"]
    assert list(fields) == ["reasoning", *checks.UNIVERSAL, "verdict", "confidence"]


@pytest.mark.skipif(not TASKS.is_file(), reason="the released tasks are not beside the repository")
def test_every_node_of_the_released_tasks_has_a_schema() -> None:
    with gzip.open(TASKS, "rt", encoding="utf-8") as file:
        rows = [("a line", json.loads(line)) for line in file]
    seen = 0
    for task in tasks_of(rows, where="the released tasks"):
        for node in tree_of(task).walk():
            schema = checks.answer_schema(node.judge)
            jsonschema.Draft202012Validator.check_schema(schema)
            pairs = sum(1 if need.satisfied is None else 2 for need in node.judge.requirements)
            names = list(schema["properties"])
            assert len(names) == 9 + len(node.judge.validity) + pairs + len(node.judge.other_fields)
            seen += 1
    assert seen >= 608


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        pytest.param({}, Settings(), id="default"),
        pytest.param({"profile": "released"}, PROFILES["released"], id="released"),
        pytest.param(
            {"profile": "released", "gone": "failed", "triage": False},
            Settings(view="head", verdict="judge", redirects="drop", findings="hidden"),
            id="a setting stands above its profile, and YAML's off is off",
        ),
        pytest.param({"view": "head"}, Settings(view="head"), id="one setting"),
    ],
)
def test_settings(config: dict[str, Any], expected: Settings) -> None:
    assert settings_of(config) == expected


@pytest.mark.parametrize(
    ("config", "place"),
    [
        ({"profile": "relased"}, "benchmark.profile"),
        ({"gone": "zero"}, "benchmark.gone"),
        ({"view": True}, "benchmark.view"),
    ],
)
def test_unknown_words_are_refused_with_those_that_are_known(config: dict[str, Any], place: str) -> None:
    with pytest.raises(InputError, match="expected one of") as refused:
        settings_of(config)
    assert refused.value.where == place


def test_every_difference_of_the_profiles_is_a_setting() -> None:
    default, released = PROFILES["default"], PROFILES["released"]
    assert all(getattr(default, name) != getattr(released, name) for name in Settings.__dataclass_fields__)
