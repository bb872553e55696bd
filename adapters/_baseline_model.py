"""The one model of system=search_and_answer, and what an attempt has used of it.

A model is asked the way a judge is (core/judge): a Question goes out, an answer that its schema accepts comes
back, everything else is a CallError with what is known of its cost. So there is no second reading of completions,
and the two doors are the judges' own: straight to an OpenAI-compatible server, or through litellm.

Here a call is made again by the judges' column of the error table: one chat call is cheap. The engine's retry
above would start the whole attempt over and pay for every step of it a second time.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, cast
from urllib.parse import urlsplit

from core.calls import RetryPolicy, call
from core.digest import plain
from core.errors import CallError, InputError, cost_of
from core.judge.completion import CHARACTERS_PER_TOKEN
from core.judge.question import Answer, Question
from core.model import Usage, total_usage
from core.parts import Judge
from core.prices import Price, cost, price_from_config
from core.section import Section
from core.services import Services

#: The share of a token budget that is taken for output in an estimate: the rest is pages that are read.
OUTPUT_SHARE: Final = 0.1

CostSource = Literal["reported", "list_price", "computed", "unknown"]


@dataclass(slots=True)
class Tally:
    """What one attempt has used: the sum over all its calls, failed ones too.

    `usd` is None once the cost of one call is unknown. `tokens` counts input and output, estimated from the
    question's length where a reply does not say: it steers the budget and is reported nowhere as usage.
    """

    usage: Usage | None = None
    usd: float | None = 0.0
    tokens: int = 0
    model_calls: int = 0
    searches: int = 0
    model: str | None = None
    _sources: set[str] = field(default_factory=set)

    def asked(self, question: Question, usage: Usage | None, usd: float | None, source: str | None = None) -> None:
        """Count one call of the model."""
        self.model_calls += 1
        self.usage = total_usage((self.usage, usage))
        known = None if usage is None or usage.input is None else usage.input + (usage.output or 0)
        self.tokens += expected_tokens(question) if known is None else known
        self._pay(usd, source)

    def searched(self, usd: float | None) -> None:
        """Count one call of the search back-end."""
        self.searches += 1
        self._pay(usd, "list_price" if usd else None)

    @property
    def source(self) -> CostSource:
        """Where the sum comes from."""
        if self.usd is None:
            return "unknown"
        return cast("CostSource", next(iter(self._sources)) if len(self._sources) == 1 else "computed")

    def _pay(self, usd: float | None, source: str | None) -> None:
        self.usd = None if usd is None or self.usd is None else self.usd + usd
        if source is not None and source != "unknown":
            self._sources.add(source)


def expected_tokens(question: Question) -> int:
    """Tokens of a question, from its length."""
    characters = len(question.system) + len(question.context) + len(question.ask)
    return characters // CHARACTERS_PER_TOKEN


class Model:
    """The model that an attempt asks.

    `system.model_base_url` names an OpenAI-compatible server, and `system.model` is that server's word for the
    model; without it `system.model` is in litellm's spelling. The limiter is that of the model's account: a judge
    at the same provider shares it.
    """

    def __init__(self, section: Section, services: Services, policy: RetryPolicy, pace: Section) -> None:
        self._services, self._policy = services, policy
        self._name = section.text("name")
        self._model = section.text_or_none("model")
        self._base_url = address_of(section, "model_base_url")
        self._key_env = variable_of(section, "model_key_env")
        self._price = price_from_config(section.values.get("price"), f"{section.where}.price")
        self._judge = self._made(section) if self._model is not None else None
        account = getattr(self._judge, "account", self._name)
        self._limiter = services.limiter.get(account, max_in_flight=pace.whole("model_in_flight"))

    @property
    def settings(self) -> Mapping[str, Any]:
        """All that shapes an answer."""
        return {} if self._judge is None else plain(getattr(self._judge, "settings", {}))

    def check(self) -> list[str]:
        """What is missing: the model's name, its key, the package, litellm's knowledge of its provider."""
        if self._judge is None or self._model is None:
            return [
                "system.model: no model is named; litellm's provider/model, or a name at system.model_base_url"
            ]
        # the judges' own preflight, which speaks of a judge
        found = [line.removeprefix(f"judge {self._name}: ") for line in getattr(self._judge, "check", list)()]
        if not found and self._base_url is None and self._key_env is None:
            from core.judge import via_litellm

            lacking = via_litellm.load().validate_environment(self._model)["missing_keys"]
            # what else litellm calls missing (a region, a role) has other ways to be given
            names = [name for name in lacking if name.endswith("_API_KEY")]
            found = [f"no key for {self._model}: set {' or '.join(names)}"] if names else []
        return [f"the model (system.model, model_base_url, model_key_env): {line}" for line in found]

    def estimate_usd(self, tokens: int) -> float | None:
        """What a budget of tokens costs when it is used up; None without a known price."""
        price = self._price or self._listed()
        output = int(tokens * OUTPUT_SHARE)
        return cost(Usage(input=tokens - output, output=output), price)

    async def ask(self, question: Question, tally: Tally) -> Mapping[str, Any]:
        """The answer, as the question's schema has it. Raises the last CallError, or StopRun."""
        judge = self._judge
        assert judge is not None, "check() refuses a system without a model"

        async def make(_: int) -> Answer:
            try:
                return await judge.ask(question)
            except asyncio.CancelledError:
                tally.asked(question, None, None)  # it was under way and may be billed
                raise

        def failed(error: CallError, _: int) -> None:
            tally.asked(question, error.usage, cost_of(error))

        answer = await call(
            make,
            policy=self._policy,
            limiter=self._limiter,
            clock=self._services.clock,
            rng=self._services.rng,
            on_failure=failed,
        )
        tally.asked(question, answer.usage, answer.cost_usd, answer.cost_source)
        tally.model = answer.model or tally.model
        return answer.value or {}

    async def aclose(self) -> None:
        """Close what the door has opened."""
        close = getattr(self._judge, "aclose", None)
        if close is not None:
            await close()

    def _made(self, section: Section) -> Judge:
        """The door to the model; raises InputError."""
        config = {
            "name": self._name,
            "model": self._model,
            "base_url": self._base_url,
            "api_key_env": self._key_env,
            "effort": section.text_or_none("reasoning_effort"),
            "temperature": section.number_or_none("temperature"),
            "max_output_tokens": section.whole_or_none("max_output_tokens"),
            "structured": section.choice("structured", {True: True, False: False}),
            "params": section.mapping("params"),
            "timeout_s": section.seconds("request_timeout_s"),
            "price": section.values.get("price"),
        }
        try:
            if self._base_url is not None:
                from core.judge.openai_compatible import OpenAICompatibleJudge

                return OpenAICompatibleJudge(config, self._services)
            from core.judge.via_litellm import LitellmJudge

            if self._key_env is None:
                # litellm reads the provider's variable itself: what it may find is kept out of every text
                for name, value in os.environ.items():
                    if name.endswith("_API_KEY"):
                        self._services.keys.remember(value.strip())
            return LitellmJudge(config, self._services)
        except InputError as error:
            raise InputError(f"the model can't be asked: {error}", where=section.where) from error

    def _listed(self) -> Price | None:
        """litellm's list price; a server of one's own has none."""
        if self._model is None or self._base_url is not None:
            return None
        from core.judge.via_litellm import price_of

        return price_of(self._model)


def address_of(section: Section, key: str) -> str | None:
    """An http(s) address without credentials, which would be written down; raises InputError that hides it."""
    value = section.text_or_none(key)
    if value is None:
        return None
    try:
        parts = urlsplit(value)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and "@" not in parts.netloc
    except ValueError:
        usable = False
    if not usable:
        raise InputError(
            "not usable", where=f"{section.where}.{key}", expected="an http(s) address without a password"
        )
    return value


def variable_of(section: Section, key: str) -> str | None:
    """The name of an environment variable; raises InputError that hides what may be a key in the wrong place."""
    value = section.text_or_none(key)
    if value is not None and not (value.isascii() and value.isidentifier()):
        raise InputError(
            "not usable", where=f"{section.where}.{key}", expected="the name of a variable, not a key"
        )
    return value
