"""From a model's text to a schema-checked answer.

Text of a model is hostile input: it may be prose around JSON, half an object, a megabyte of braces.
Whatever it is, `parse_answer` gives a dict that the schema accepts, or CallError `empty` or `malformed`;
nothing else.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import jsonschema

from core.digest import json_digest, plain
from core.errors import CallError
from core.reply import shortened
from core.strict_json import without_surrogates

#: Fields that hold a judge's reasons, not its verdict.
EXPLANATIONS: Final = ("explanation", "reasoning")
#: Characters that the search may look at in all, over its attempts at every brace: a bound on hostile text.
_SEARCH_BUDGET: Final = 4_000_000
#: What an attempt counts that ran into Python's recursion limit (its real length is not known).
_DEEP: Final = 20_000
#: How an object begins; the braces of formulas and code are passed over.
_OBJECT: Final = re.compile(r'\{\s*["}]')
_END_OF_THOUGHT: Final = "</think>"
_VALIDATORS: Final[dict[str, Any]] = {}
_VALIDATORS_KEPT: Final = 64
#: How many faults of one answer a message names.
_FAULTS_SHOWN: Final = 5


class _Repeated(dict[str, Any]):
    """An object in which keys stood twice; `repeated` are those."""

    repeated: frozenset[str] = frozenset()


def _pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(items)
    if len(found) == len(items):
        return found
    marked = _Repeated(found)
    seen: set[str] = set()
    marked.repeated = frozenset(key for key, _ in items if key in seen or seen.add(key))  # type: ignore[func-returns-value]  # add gives None
    return marked


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


# strict=False: models put raw line ends into strings
_DECODER: Final = json.JSONDecoder(object_pairs_hook=_pairs, parse_constant=_no_constant, strict=False)


def first_object(text: str, required_keys: Iterable[str]) -> dict[str, Any] | None:
    """The first balanced JSON object in the text that has all of these keys; None when there is none.

    Tolerates prose and fences around it, braces in strings, objects that break off before it, objects
    that hold it. What stands after the end of a thinking tag comes first.
    """
    required = frozenset(required_keys)
    thought = text.rfind(_END_OF_THOUGHT)
    if thought >= 0 and not text.lstrip().startswith("{"):  # inside an object the tag is only a quotation
        found = _search(text, thought, required)
        if found is not None:
            return found
    return _search(text, 0, required)


def _search(text: str, start: int, required: frozenset[str]) -> dict[str, Any] | None:
    budget = _SEARCH_BUDGET
    for brace in _OBJECT.finditer(text, start):
        at = brace.start()
        try:
            found, end = _DECODER.raw_decode(text, at)
        except json.JSONDecodeError as error:
            # the error counts the lines before it, so a failure late in a long text is dear
            budget -= error.pos - at + error.pos // 16
        except (RecursionError, ValueError):  # too deep; a number too long to read
            budget -= _DEEP
        else:
            if isinstance(found, dict) and found.keys() >= required:
                return found
            budget -= end - at
        if budget <= 0:
            break
    return None


def parse_answer(
    text: str, schema: Mapping[str, Any], *, digest: str | None = None, exact: Iterable[str] = ()
) -> dict[str, Any]:
    """The answer in a model's text, as the schema wants it.

    An explanation that is missing or no text is no fault: the verdict is what was asked for. Fields that the
    schema does not know are dropped, but not inside the top-level fields that `exact` names: there
    they make the answer malformed, and the error's `partial` holds their entries that are valid.
    `digest` is the schema's digest, if it is at hand.
    Raises CallError `empty` for blank text, `malformed` for everything else that is not an answer: no
    object with the required fields, one of them twice, a value of the wrong type or outside its enum.
    """
    if not text.strip():
        raise CallError("empty", "the answer has no text")
    free = [name for name in EXPLANATIONS if name in (schema.get("properties") or ())]
    required = [name for name in schema.get("required") or schema.get("properties") or () if name not in free]
    try:
        found = first_object(text, required)
        if found is None:
            raise _malformed(f"no JSON object with the fields {', '.join(required)}", text)
        parts = {field: _entries(found.get(field), schema["properties"][field]) for field in exact}
        faults = [f"{field}: {fault}" for field, part in parts.items() for fault in part.faults]
        if faults:
            raise _malformed(_listed(faults), text, _partial(found, parts, required))
        value = _known(found, schema)
        fault = next(_validator(digest or json_digest(schema), schema).iter_errors(value), None)
    except RecursionError as error:
        raise _malformed("the JSON is nested too deep", text) from error
    if fault is not None:
        raise _malformed(_said(fault), text)
    return without_surrogates(value) if "\\u" in text else value  # type: ignore[no-any-return]  # a dict stays one


def _as_text(value: Any) -> str:
    """Any explanation is accepted: a list or an object as its JSON, none as nothing."""
    if isinstance(value, str):
        return value
    return "" if value is None else json.dumps(value, ensure_ascii=False)


@dataclass(frozen=True, slots=True)
class _Part:
    """An exact field: its valid entries, and what is wrong with the others."""

    valid: Mapping[str, Any]
    faults: Sequence[str]


def _entries(value: Any, schema: Mapping[str, Any]) -> _Part:
    """Each entry of an exact field by itself; a value that is no object is left to the schema of the answer."""
    if not isinstance(value, dict):
        return _Part({}, ())
    asked = schema["properties"]
    faults = [f"{shortened(repr(name), 100)} was not asked for" for name in sorted(value.keys() - asked.keys())]
    twice = value.repeated if isinstance(value, _Repeated) else frozenset[str]()
    digests: dict[int, str] = {}  # entries mostly share one schema, whose digest is dear
    valid = {}
    for name, part in asked.items():
        if name not in value:
            faults += [f"{name} was left out"] if name in schema.get("required", asked) else []
        elif name in twice:
            faults.append(f"{name} stands twice")
        else:
            try:
                entry = _known(value[name], part)
            except CallError as error:
                faults.append(f"{name}: {error.message}")
                continue
            digest = digests.get(id(part)) or digests.setdefault(id(part), json_digest(part))
            fault = next(_validator(digest, part).iter_errors(entry), None)
            if fault is None:
                valid[name] = entry
            else:
                faults.append(_said(fault, name))
    return _Part(valid, faults)


def _partial(
    found: Mapping[str, Any], parts: Mapping[str, _Part], required: Sequence[str]
) -> Mapping[str, Any] | None:
    """The valid entries of the exact fields; None where there is none, or the answer needs more than them."""
    twice = found.repeated if isinstance(found, _Repeated) else frozenset[str]()
    if not parts.keys() >= set(required) or twice & parts.keys() or not any(part.valid for part in parts.values()):
        return None
    usable: Mapping[str, Any] = without_surrogates({field: dict(part.valid) for field, part in parts.items()})
    return usable


def _said(fault: Any, *inside: str) -> str:
    """A schema's complaint, with the field to which it belongs; `inside` leads to what was checked."""
    field = ".".join([*inside, *(str(part) for part in fault.absolute_path)])
    return f"{field or 'the answer'}: {shortened(fault.message, 200)}"


def _listed(faults: Sequence[str]) -> str:
    more = len(faults) - _FAULTS_SHOWN
    return "; ".join(faults[:_FAULTS_SHOWN]) + (f"; and {more} more" if more > 0 else "")


def _known(value: Any, schema: Any) -> Any:
    """The value without what the schema does not know; raises for a known field that stood twice."""
    if not isinstance(schema, Mapping):
        return value
    if isinstance(value, dict):
        fields = schema.get("properties")
        if not isinstance(fields, Mapping):
            return value
        twice = sorted(value.repeated & fields.keys()) if isinstance(value, _Repeated) else ()
        if twice:
            raise CallError("malformed", f"the field {twice[0]!r} stands twice in the answer")
        open_ended = isinstance(schema.get("additionalProperties"), Mapping)
        known = {
            key: _known(item, fields[key]) if key in fields else item
            for key, item in value.items()
            if key in fields or open_ended
        }
        reasons = [name for name in EXPLANATIONS if name in fields]
        return known | {name: _as_text(value.get(name)) for name in reasons}
    if isinstance(value, list) and "items" in schema:
        return [_known(item, schema["items"]) for item in value]
    return value


def _validator(digest: str, schema: Mapping[str, Any]) -> Any:
    """The compiled schema; compiling costs a hundred times what one check does."""
    found = _VALIDATORS.get(digest)
    if found is None:
        compiled = plain(schema)
        jsonschema.Draft202012Validator.check_schema(compiled)
        if len(_VALIDATORS) >= _VALIDATORS_KEPT:
            _VALIDATORS.clear()
        found = _VALIDATORS[digest] = jsonschema.Draft202012Validator(compiled)
    return found


def _malformed(message: str, text: str, partial: Mapping[str, Any] | None = None) -> CallError:
    return CallError("malformed", message, raw=text[:20_000], partial=partial)
