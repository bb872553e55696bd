"""The contract of a judge: answers that fit their question's schema, or a reason why there is none."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence

import jsonschema

from core.digest import json_digest, plain
from core.errors import CallError
from core.judge.question import Answer, Question
from core.parts import Judge
from core.services import Services
from core.testing.claims import ContractBroken, as_json, claim, claim_dollars, claim_equal, claim_no_secret
from core.testing.parts import TEST_KEY, compose, sample_question, services

Make = Callable[[Services], Judge]


def judge(name: str, *overrides: str) -> Make:
    """What makes the judge `name` as a run has it: `judge("offline")`.

    Raises InputError when the configuration or the provider's name is refused.
    """
    config, plugins = compose(f"judge={name}", *overrides)

    def make(services: Services) -> Judge:
        made: Judge = plugins.factory("judge", config.judge.provider)(config.judge.plain(), services)
        return made

    return make


def check_judge(
    make: Make,
    *,
    questions: Sequence[Question] | None = None,
    secrets: Iterable[str] = (TEST_KEY,),
) -> list[Answer]:
    """Ask the judge `questions` (default: a few with an explanation and a verdict); raises ContractBroken.

    `make` is a factory with its config: it gets services in which every API key is TEST_KEY, and gives a new
    judge each time. Whatever that speaks to must be there. Returns the answers; a question that ended with a
    CallError gives none.
    """
    secrets = tuple(secrets)
    asked = [sample_question(number) for number in range(1, 7)] if questions is None else list(questions)
    _check_attributes(make, asked, secrets)
    return asyncio.run(_ask_all(make, asked, secrets))


def _check_attributes(make: Make, questions: Sequence[Question], secrets: Sequence[str]) -> None:
    first, second = make(services()), make(services())
    text = as_json(getattr(first, "settings", {}), "settings")
    claim_no_secret(text, secrets, "settings")
    claim_equal(as_json(getattr(second, "settings", {}), "settings"), text, "settings of a second instance")
    claim(isinstance(getattr(first, "stored", True), bool), "stored is true or false")
    check = getattr(first, "check", None)
    if check is not None:
        claim_equal(check(), [], "check(): what is missing before a run can start")
    estimate = getattr(first, "estimate_usd", None)
    if estimate is not None:
        for question in questions:
            claim_dollars(estimate(question), "estimate_usd(question)")


async def _ask_all(make: Make, questions: Sequence[Question], secrets: Sequence[str]) -> list[Answer]:
    given = services()
    judge = make(given)

    def claim_no_key(text: str, what: str) -> None:
        # the engine takes out every key that was read through services.keys; others would be written
        claim_no_secret(given.keys.strip(text), secrets, what)

    try:
        found = await asyncio.gather(*(_ask(judge, question, claim_no_key) for question in questions))
    finally:
        close = getattr(judge, "aclose", None)
        if close is not None:
            await close()
        await given.http.aclose()
    return [answer for answer in found if answer is not None]


async def _ask(judge: Judge, question: Question, claim_no_key: Callable[[str, str], None]) -> Answer | None:
    what = f"the question about {', '.join(question.units)}"
    before = (question.digest, json_digest(plain(question.schema)))
    try:
        answer = await judge.ask(question)
    except CallError as error:
        claim_no_key(f"{error} {error.raw}", f"{what}: the error")
        return None
    except Exception as error:
        kind = type(error).__name__
        raise ContractBroken(f"{what}: expected an Answer or a CallError, got {kind}: {error}") from error
    claim(isinstance(answer, Answer), f"{what}: expected an Answer, got {type(answer).__name__}")
    claim_equal((question.digest, json_digest(plain(question.schema))), before, f"{what}, after it was asked")
    claim_no_key(repr(answer), f"{what}: the answer")
    claim_dollars(answer.cost_usd, f"{what}: cost_usd")
    outcomes = [bool(answer.verdicts), answer.value is not None, answer.error is not None]
    claim_equal(sum(outcomes), 1, f"{what}: a value, recorded verdicts or an error; how many of them there are")
    if answer.value is not None:
        as_json(answer.value, f"{what}: the value")
        fault = next(iter(jsonschema.Draft202012Validator(question.schema).iter_errors(plain(answer.value))), None)
        claim(fault is None, f"{what}: the value does not fit the schema: {fault}")
    strangers = set(answer.verdicts) - set(question.units)
    claim(not strangers, f"{what}: verdicts on other units: {sorted(strangers)}")
    return answer
