"""The contract checks of systems and judges catch what they are for: a part breaks one rule, and is told which."""

from __future__ import annotations

import itertools
import os
from collections.abc import Mapping
from typing import Any, cast

import pytest

from core.errors import CallError
from core.judge.question import Answer, Question
from core.model import Failure, Submission, Task
from core.services import Services
from core.testing import TEST_KEY, ContractBroken, check_judge, check_system
from leadline_toy.system import Echo

_counter = itertools.count()
ECHO = {"effort_settings": {"times": 1}}


class KeyInSettings(Echo):
    def __init__(self, services: Services) -> None:
        super().__init__(ECHO)
        self.settings = {"key": services.keys.get("SOME_KEY")}


class OtherSettingsEachTime(Echo):
    def __init__(self, services: Services) -> None:
        super().__init__(ECHO)
        self.settings = {"call": next(_counter)}


class NotJson(Echo):
    def __init__(self, services: Services) -> None:
        super().__init__(ECHO)
        self.settings = {"share": float("nan")}


class NegativeEstimate(Echo):
    def __init__(self, services: Services) -> None:
        super().__init__(ECHO)
        self.estimate_usd = -1.0


class NotReady(Echo):
    def __init__(self, services: Services) -> None:
        super().__init__(ECHO)

    def check(self) -> list[str]:
        return ["a key is missing"]


class ChangedSubmission(Echo):
    def __init__(self, services: Services) -> None:
        super().__init__(ECHO)

    async def solve(self, task: Task, attempt: int) -> Submission:
        return self.changed(await super().solve(task, attempt))

    def changed(self, submission: Submission) -> Submission:
        return submission


class Raises(ChangedSubmission):
    def changed(self, submission: Submission) -> Submission:
        raise KeyError("text")


class GivesText(ChangedSubmission):
    def changed(self, submission: Submission) -> Submission:
        return cast("Submission", submission.text)


class AnotherAttempt(ChangedSubmission):
    def changed(self, submission: Submission) -> Submission:
        return submission.model_copy(update={"attempt": 7})


class FailsWithoutReason(ChangedSubmission):
    def changed(self, submission: Submission) -> Submission:
        return submission.model_copy(update={"status": "failed", "text": None})


class LeaksAKeyOfItsOwn(ChangedSubmission):
    """Reads a key past services.keys, so that nobody can take it out."""

    def changed(self, submission: Submission) -> Submission:
        return submission.model_copy(update={"text": f"I used {os.environ['LEADLINE_OWN_KEY']}."})


class LeaksInAnError(ChangedSubmission):
    def changed(self, submission: Submission) -> Submission:
        raise CallError("key", f"the key {os.environ['LEADLINE_OWN_KEY']} is wrong")


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (KeyInSettings, "settings holds an API key"),
        (OtherSettingsEachTime, "settings of a second instance"),
        (NotJson, "settings must be JSON"),
        (NegativeEstimate, "estimate_usd: expected dollars"),
        (NotReady, "what is missing before a run can start"),
        (Raises, "expected a Submission or a CallError, got KeyError"),
        (GivesText, "expected a Submission, got str"),
        (AnotherAttempt, "whose submission it is"),
        (FailsWithoutReason, "failed, no reason"),
        (LeaksAKeyOfItsOwn, "the submission holds an API key"),
        (LeaksInAnError, "the error holds an API key"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_a_system_that_breaks_a_rule_is_told_which(make: Any, says: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LEADLINE_OWN_KEY", "own-key-12345678")
    with pytest.raises(ContractBroken, match=says):
        check_system(make, secrets=(TEST_KEY, "own-key-12345678"))


class FixedJudge:
    """Gives one answer to everything."""

    settings: Mapping[str, Any] = {}

    def __init__(self, answer: Answer | Exception, **attributes: Any) -> None:
        self._answer = answer
        vars(self).update(attributes)

    async def ask(self, question: Question) -> Answer:
        if isinstance(self._answer, Exception):
            raise self._answer
        return self._answer


YES = {"explanation": "so it is", "verdict": "YES"}


@pytest.mark.parametrize(
    ("answer", "attributes", "says"),
    [
        (Answer(value={"verdict": "YES"}), {}, "does not fit the schema"),
        (Answer(value=YES, error=Failure(kind="malformed")), {}, "a value, recorded verdicts or an error"),
        (Answer(), {}, "a value, recorded verdicts or an error"),
        (Answer(value=YES, cost_usd=float("nan")), {}, "cost_usd"),
        (Answer(value=YES, raw="own-key-12345678"), {}, "the answer holds an API key"),
        (RuntimeError("no"), {}, "expected an Answer or a CallError, got RuntimeError"),
        (Answer(value=YES), {"settings": {"key": TEST_KEY}}, "settings holds an API key"),
        (Answer(value=YES), {"stored": "yes"}, "stored is true or false"),
        (Answer(value=YES), {"check": lambda: ["no model"]}, "what is missing before a run can start"),
        (Answer(value=YES), {"estimate_usd": lambda question: -1}, "expected dollars"),
    ],
    ids=[
        "form", "two outcomes", "no outcome", "cost", "key", "exception", "settings", "stored", "check", "estimate"
    ],
)  # fmt: skip
def test_a_judge_that_breaks_a_rule_is_told_which(
    answer: Answer | Exception, attributes: dict[str, Any], says: str
) -> None:
    with pytest.raises(ContractBroken, match=says):
        check_judge(lambda services: FixedJudge(answer, **attributes), secrets=(TEST_KEY, "own-key-12345678"))


def test_a_judge_that_keeps_the_contract_passes() -> None:
    assert len(check_judge(lambda services: FixedJudge(Answer(value=YES)))) == 6
    assert check_judge(lambda services: FixedJudge(CallError("overloaded"))) == []
