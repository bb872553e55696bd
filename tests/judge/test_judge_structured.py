"""From a model's text to an answer: what is found, what is refused, and that nothing else happens."""

from __future__ import annotations

import json
from typing import Any

import pytest
from fakes.judging import SCHEMA
from hypothesis import given
from hypothesis import strategies as st

from core.errors import CallError
from core.judge.structured import first_object, parse_answer
from core.strict_json import without_surrogates

GOOD = '{"explanation": "It says so.", "verdict": "MET"}'
MET = {"explanation": "It says so.", "verdict": "MET"}


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(GOOD, id="bare"),
        pytest.param(f"\n\n  {GOOD}\n", id="blanks"),
        pytest.param(f"```json\n{GOOD}\n```", id="fence"),
        pytest.param(f"```\n{GOOD}", id="unclosed fence"),
        pytest.param(f"Here is my verdict: {GOOD} I hope it helps {{}}.", id="prose"),
        pytest.param(f'{{"explanation": "It {GOOD}', id="half an object before it"),
        pytest.param(f'{{"met": true}} {GOOD}', id="another object before it"),
        pytest.param(f'{{"answer": {GOOD}}}', id="inside another object"),
        pytest.param(f"[{GOOD}]", id="inside a list"),
        pytest.param(f"<think>Perhaps {GOOD.replace('MET', 'UNMET')}</think>{GOOD}", id="thought first"),
        pytest.param(f"no, {GOOD.replace('MET', 'UNMET')}</think>\n{GOOD}", id="thought without its beginning"),
        pytest.param(f"\\frac{{a}}{{b}} {GOOD}", id="braces of a formula"),
        pytest.param(f"{GOOD}{GOOD.replace('MET', 'UNMET')}", id="the first of two"),
        pytest.param(
            '{"verdict": "MET", "explanation": "It says so.", "sure": 3, "x": {"y": []}}', id="unknown fields"
        ),
        pytest.param('{"sure": 1, "sure": 2, "verdict": "MET", "explanation": "It says so."}', id="unknown twice"),
        pytest.param("\ufeff" + GOOD, id="byte order mark"),
    ],
)
def test_found(text: str) -> None:
    assert parse_answer(text, SCHEMA) == MET


@pytest.mark.parametrize(
    ("explanation", "text"),
    [
        pytest.param("a } brace { in it", '{"explanation": "a } brace { in it", "verdict": "MET"}', id="braces"),
        pytest.param('a "quote"', '{"explanation": "a \\"quote\\"", "verdict": "MET"}', id="quotes"),
        pytest.param("two\nlines", '{"explanation": "two\nlines", "verdict": "MET"}', id="raw line end"),
        pytest.param(
            "it quotes </think>", '{"explanation": "it quotes </think>", "verdict": "MET"}', id="tag quoted"
        ),
        pytest.param("\ufffd", '{"explanation": "\\ud800", "verdict": "MET"}', id="half a surrogate pair"),
        pytest.param("😀", '{"explanation": "\\ud83d\\ude00", "verdict": "MET"}', id="a whole pair"),
    ],
)
def test_what_stands_in_a_text_is_left_alone(explanation: str, text: str) -> None:
    assert parse_answer(text, SCHEMA)["explanation"] == explanation


@pytest.mark.parametrize(
    ("given", "read"),
    [
        ("", ""),
        ('"explanation": null, ', ""),
        ('"explanation": 7, ', "7"),
        ('"explanation": ["a", "b"], ', '["a", "b"]'),
        ('"explanation": {"why": "so"}, ', '{"why": "so"}'),
    ],
    ids=["none", "null", "number", "list", "object"],
)
def test_any_explanation_is_accepted(given: str, read: str) -> None:
    answer = parse_answer(f'{{{given}"verdict": "MET"}}', SCHEMA)
    assert answer == {"explanation": read, "verdict": "MET"}


@pytest.mark.parametrize(
    ("text", "kind", "says"),
    [
        pytest.param("", "empty", "no text", id="empty"),
        pytest.param(" \n\t", "empty", "no text", id="blank"),
        pytest.param("MET", "malformed", "no JSON object with the fields verdict", id="prose"),
        pytest.param("{}", "malformed", "no JSON object", id="no field"),
        pytest.param('{"explanation": "x"}', "malformed", "no JSON object", id="a field is missing"),
        pytest.param(GOOD[:-5], "malformed", "no JSON object", id="cut"),
        pytest.param(
            GOOD.replace("MET", "MAYBE"), "malformed", "verdict: 'MAYBE' is not one of", id="not in enum"
        ),
        pytest.param(GOOD.replace('"MET"', "true"), "malformed", "verdict", id="wrong type"),
        pytest.param(GOOD.replace('"MET"', "null"), "malformed", "verdict", id="null"),
        pytest.param(GOOD.replace('"MET"', "NaN"), "malformed", "no JSON object", id="NaN"),
        pytest.param(
            '{"explanation": "x", "verdict": "MET", "verdict": "UNMET"}',
            "malformed",
            "'verdict' stands twice",
            id="a field twice",
        ),
        pytest.param("'" + GOOD.replace('"', "'"), "malformed", "no JSON object", id="Python's quotes"),
        pytest.param('{"a": ' + "9" * 5000 + "}", "malformed", "no JSON object", id="a number too long"),
    ],
)
def test_refused(text: str, kind: str, says: str) -> None:
    with pytest.raises(CallError) as caught:
        parse_answer(text, SCHEMA)
    assert caught.value.kind == kind
    assert says in caught.value.message


NESTED = {
    "type": "object",
    "properties": {
        "row": {
            "type": "object",
            "properties": {"ok": {"type": "boolean"}},
            "required": ["ok"],
            "additionalProperties": False,
        },
        "items": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"n": {"type": "integer"}},
                "required": ["n"],
                "additionalProperties": False,
            },
        },
    },
    "required": ["row"],
    "additionalProperties": False,
}


def test_unknown_fields_inside_are_dropped_too() -> None:
    text = '{"row": {"ok": true, "why": 1}, "items": [{"n": 1, "m": 2}], "more": {}}'
    assert parse_answer(text, NESTED) == {"row": {"ok": True}, "items": [{"n": 1}]}


def test_a_field_twice_inside_is_refused() -> None:
    with pytest.raises(CallError, match="'ok' stands twice"):
        parse_answer('{"row": {"ok": true, "ok": false}}', NESTED)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("{" * 1_000_000, id="braces"),
        pytest.param('{"' * 500_000, id="braces and quotes"),
        pytest.param("{" + " " * 1_000_000 + "{", id="blanks"),
        pytest.param('{"a":' * 200_000, id="deep objects"),
        pytest.param('{"a":' + "[" * 1_000_000, id="deep lists"),
        pytest.param('{"explanation":' * 50_000 + "1" + "}" * 50_000, id="deep and closed"),
        pytest.param('{"a": "' + "x" * 1_000_000, id="an endless text"),
        pytest.param('{"a": [' + "{}," * 300_000, id="an endless list"),
        pytest.param("x" * 1_000_000, id="no brace"),
    ],
)
def test_a_megabyte_of_nonsense_is_malformed(text: str) -> None:
    with pytest.raises(CallError) as caught:
        parse_answer(text, SCHEMA)
    assert caught.value.kind == "malformed"


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=10,
)
NOISE = st.text(st.characters(blacklist_characters="{", blacklist_categories=["Cs"]), max_size=60)


@given(st.dictionaries(st.text(), VALUES, min_size=1, max_size=5), NOISE, NOISE, st.booleans())
def test_any_object_in_noise_is_found(value: dict[str, Any], before: str, after: str, ascii_only: bool) -> None:
    text = before + json.dumps(value, ensure_ascii=ascii_only) + after
    assert first_object(text, value) == value


@given(st.text() | st.text(st.sampled_from('{}[]":,\\ntrue1e \n'), max_size=200))
def test_any_text_gives_an_answer_or_a_call_error(text: str) -> None:
    try:
        answer = parse_answer(text, SCHEMA)
    except CallError as error:
        assert error.kind in ("empty", "malformed")
    else:
        assert answer.keys() == {"explanation", "verdict"}


@given(st.sampled_from(["MET", "UNMET"]), st.text(), NOISE)
def test_any_answer_is_read_back_and_can_be_written(verdict: str, explanation: str, noise: str) -> None:
    given_answer = {"explanation": explanation, "verdict": verdict}
    found = parse_answer(noise + json.dumps(given_answer), SCHEMA)
    assert found == without_surrogates(given_answer)
    assert json.dumps(found, ensure_ascii=False).encode()
