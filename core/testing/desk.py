"""A judge's desk that asks nobody: it makes answers up from their JSON Schema.

The same seed gives the same answer to the same question and repeat, in whatever order questions come, so that what
a grader makes of the answers can be compared between passes.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal

from core.digest import combine
from core.judge.question import Answer, Question
from core.model import Failure
from core.testing.claims import ContractBroken

#: `low` and `high` take the first and the last choice of every field, `random` draws.
Pick = Literal["random", "low", "high"]
_WORDS: Final = ("made", "up", "for", "a", "test")
_DEEPEST: Final = 20


class FakeDesk:
    """A desk (core.services.JudgeDesk) whose answers fit the question's schema.

    `failing` is the share of questions that end in an error, 0…1; which ones depends on the seed alone. `asked`
    keeps the questions, `most_at_once` the most that were in flight together.
    """

    name = "fake"
    recorded = False

    def __init__(self, seed: int = 0, *, failing: float = 0.0, pick: Pick = "random", width: int = 4) -> None:
        self.width = width
        self.asked: list[Question] = []
        self.at_once = self.most_at_once = 0
        self._seed, self._failing, self._pick = seed, failing, pick

    async def ask(self, question: Question) -> Answer:
        self.asked.append(question)
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        rng = self._rng(question)
        try:
            for _ in range(1 + rng.randrange(3)):  # others go ahead or fall behind, as with a real judge
                await asyncio.sleep(0)
        finally:
            self.at_once -= 1
        if rng.random() < self._failing:
            return Answer(error=Failure(kind="malformed", message="made to fail"), judge=self.name)
        try:
            value = value_of(question.schema, rng, pick=self._pick)
        except ValueError as error:
            raise ContractBroken(f"the question about {', '.join(question.units)}: {error}") from error
        return Answer(value=value, judge=self.name, cost_usd=0.0)

    def _rng(self, question: Question) -> random.Random:
        mark = combine(
            seed=str(self._seed),
            question=question.digest,
            attempt=str(question.attempt),
            repeat=str(question.repeat),
            task=question.task_id,
        )
        return random.Random(mark)  # noqa: S311 - made-up answers, not secrets


def value_of(schema: Mapping[str, Any], rng: random.Random, *, pick: Pick = "random") -> Any:
    """A value that fits a JSON Schema of the kind that judges are given.

    Understands type, properties, required, enum, const, items, minItems, maxItems, minimum, maximum, anyOf,
    oneOf and local $ref. Raises ValueError for what is no JSON Schema, and when what it made does not fit: the
    schema asks for more than that.
    """
    import jsonschema

    try:
        jsonschema.Draft202012Validator.check_schema(schema)
    except jsonschema.SchemaError as error:
        raise ValueError(f"its schema is no JSON Schema: {error.message}") from error
    value = _made(schema, schema, rng, pick, 0)
    fault = next(iter(jsonschema.Draft202012Validator(schema).iter_errors(value)), None)
    if fault is not None:
        raise ValueError(f"no value was found for this schema: {fault.message}")
    return value


def _made(schema: Any, root: Mapping[str, Any], rng: random.Random, pick: Pick, depth: int) -> Any:
    if not isinstance(schema, Mapping) or depth > _DEEPEST:
        return None
    if "$ref" in schema:
        return _made(_target(schema["$ref"], root), root, rng, pick, depth + 1)
    if "const" in schema:
        return schema["const"]
    if "enum" in schema:
        return _chosen(schema["enum"], rng, pick)
    for several in ("anyOf", "oneOf"):
        if several in schema:
            return _made(_chosen(schema[several], rng, pick), root, rng, pick, depth + 1)
    kind = schema.get("type", "object" if "properties" in schema else "string")
    if isinstance(kind, list):
        kind = _chosen(kind, rng, pick)
    if kind == "object":
        members = schema.get("properties", {})
        return {name: _made(member, root, rng, pick, depth + 1) for name, member in members.items()}
    if kind == "array":
        least = schema.get("minItems", 0)
        count = _between(least, schema.get("maxItems", max(least, 2)), rng, pick)
        return [_made(schema.get("items", {}), root, rng, pick, depth + 1) for _ in range(count)]
    return _scalar(kind, schema, rng, pick)


def _scalar(kind: str, schema: Mapping[str, Any], rng: random.Random, pick: Pick) -> Any:
    if kind == "boolean":
        return _chosen((False, True), rng, pick)
    if kind in ("integer", "number"):
        low = schema.get("minimum", schema.get("exclusiveMinimum", 0))
        return _between(low, schema.get("maximum", low + 10), rng, pick)
    if kind == "null":
        return None
    text = " ".join(rng.choices(_WORDS, k=4))
    return text.ljust(schema.get("minLength", 0), ".")[: schema.get("maxLength", len(_WORDS) * 20)]


def _chosen(options: Sequence[Any], rng: random.Random, pick: Pick) -> Any:
    return {"low": options[0], "high": options[-1]}.get(pick) if pick != "random" else rng.choice(list(options))


def _between(low: Any, high: Any, rng: random.Random, pick: Pick) -> Any:
    if pick == "low":
        return low
    if pick == "high":
        return high
    return rng.randint(int(low), int(high)) if high >= low + 1 else low


def _target(reference: str, root: Mapping[str, Any]) -> Any:
    found: Any = root
    for part in reference.removeprefix("#/").split("/"):
        found = found[part]
    return found
