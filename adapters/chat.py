"""system=chat: any model that litellm can call, with its own web search where it has one.

    python -m core.run benchmark=draco system=chat system.model=anthropic/claude-sonnet-5-5 effort=high

The model is told the task's prompt and nothing else, unless `system_prompt` is set. One call is one attempt.
How the answer is read:

    an answer, whole or cut at max_output_tokens     completed / incomplete (empty without a text)
    a refusal, the provider's filter                 refused
    no answer within timeout_s                       timed_out
    everything else                                  an error of the table, as for a judge behind litellm

A list of blocked sites can't be passed on: litellm's `web_search_options` has no field for it. The prompt is
not changed to say so.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from typing import Any, Final

from adapters._citations import cited
from adapters._completion import outcome
from adapters._values import mapping
from core.digest import plain
from core.errors import CallError, InputError
from core.judge.completion import bill, first_choice, text_of
from core.model import Failure, Submission, Task, Usage
from core.prices import Price, cost, price_from_config
from core.section import Section
from core.services import Services
from core.strict_json import without_surrogates

#: What an effort may set.
_BY_EFFORT: Final = (*("reasoning_effort", "web_search", "max_output_tokens", "temperature", "model", "params"),)
_WEB_SEARCH: Final[Mapping[Any, bool | None]] = {"auto": None, True: True, False: False}
#: Seconds that litellm's own deadline comes after ours, so that ours is the one that counts.
_LATER_S: Final = 30.0


@dataclass(frozen=True, slots=True)
class Options:
    """The checked config. `web_search` None: where litellm knows that the model has one.

    `params` are merged into the request as they stand; a null there takes a parameter out.
    """

    name: str
    model: str
    base_url: str | None
    api_key_env: str | None
    reasoning_effort: str | None
    web_search: bool | None
    max_output_tokens: int | None
    temperature: float | None
    system_prompt: str | None
    params: Mapping[str, Any]
    timeout_s: float
    price: Price | None
    estimate_usd: float | None

    @classmethod
    def of(cls, config: Mapping[str, Any], effort: str | None) -> Options:
        """Check the section; raises InputError naming the key. Without `efforts` the word itself is sent."""
        section = Section(config).with_effort(_BY_EFFORT)
        handed_on = effort if config.get("efforts") is None else None
        return cls(
            name=section.text("name"),
            model=section.text("model", "a model in litellm's spelling: provider/model"),
            base_url=section.text_or_none("base_url"),
            api_key_env=section.text_or_none("api_key_env"),
            reasoning_effort=section.text_or_none("reasoning_effort") or handed_on,
            web_search=section.choice("web_search", _WEB_SEARCH),
            max_output_tokens=section.whole_or_none("max_output_tokens"),
            temperature=section.number_or_none("temperature"),
            system_prompt=section.text_or_none("system_prompt"),
            params=section.mapping("params"),
            timeout_s=section.seconds("timeout_s"),
            price=price_from_config(section.values.get("price"), "system.price"),
            estimate_usd=section.number_or_none("estimate_usd"),
        )


#: Tokens of a long answer with its thinking, and of what a searching model reads for it.
LONG_ANSWER: Final = 16_000
LONG_READING: Final = 200_000


class Chat:
    """A chat model as a system."""

    can_block: Final = False
    wire_version: Final = "1"

    def __init__(self, options: Options, services: Services) -> None:
        self._options, self._services = options, services
        self.account = f"{options.model.split('/', 1)[0]}#{options.api_key_env or ''}"

    @cached_property
    def settings(self) -> Mapping[str, Any]:
        """What shapes an answer; whether the model searches is known only once litellm is asked."""
        return {
            "model": self._options.model,
            "base_url": self._options.base_url,
            "effort": self._services.effort,
            "system_prompt": self._options.system_prompt,
            "web_search": self._searches,
            **self._parameters,
        }

    @cached_property
    def estimate_usd(self) -> float | None:
        """What an attempt is expected to cost: as configured, else the price of a long answer."""
        options = self._options
        if options.estimate_usd is not None:
            return options.estimate_usd
        length = min(options.max_output_tokens or LONG_ANSWER, LONG_ANSWER)
        expected = Usage(input=LONG_READING if self._searches else LONG_ANSWER, output=length)
        return cost(expected, options.price or _litellm().price_of(options.model))

    def check(self) -> list[str]:
        """What is missing: the package, the model's provider, its key."""
        options, keys = self._options, self._services.keys
        found = []
        if not keys.has(options.api_key_env):
            found.append(f"system.api_key_env: the environment variable {options.api_key_env} is not set")
        if find_spec("litellm") is None:
            return [*found, "system chat: the package litellm is not installed: pip install litellm"]
        litellm = _litellm().load()
        try:
            litellm.get_llm_provider(options.model)
        except Exception:  # noqa: BLE001 (litellm's own class, whose message is three screens long)
            hint = "openai/… for a server of yours" if options.base_url else "such as openai/gpt-5.4"
            unknown = f"system.model: litellm knows no provider of {options.model!r}; write provider/model, {hint}"
            return [*found, unknown]
        if options.api_key_env is None and options.base_url is None:
            missing = litellm.validate_environment(options.model)["missing_keys"]
            # other things that it calls missing (a region, a role) have other ways to be given
            names = [name for name in missing if name.endswith("_API_KEY")]
            if names:
                found.append(
                    f"system.model: no key for {options.model}: set {' or '.join(names)}, "
                    "or name another variable in system.api_key_env"
                )
        return found

    async def solve(self, task: Task, attempt: int) -> Submission:
        """One call of the model. Raises CallError."""
        via, clock = _litellm(), self._services.clock
        arguments = self._arguments(task)
        start = clock.monotonic()
        try:
            async with asyncio.timeout(self._options.timeout_s) as deadline:
                response = await via.load().acompletion(**arguments)
        except Exception as error:
            if deadline.expired():
                return self._late(task, attempt, clock.monotonic() - start)
            raise self._refusal(via.mapped(error, clock.now())) from error
        body = without_surrogates({**response.model_dump(), "usage": via.usage_of(response)})
        return self._submission(task, attempt, body, clock.monotonic() - start)

    async def aclose(self) -> None:
        """Close litellm's clients."""
        await _litellm().close()

    @cached_property
    def _searches(self) -> bool:
        """Whether the model is asked to search. litellm must know both that it can and how to ask for it."""
        asked, model = self._options.web_search, self._options.model
        if asked is not None:
            return asked
        litellm = _litellm().load()
        try:
            takes = litellm.get_supported_openai_params(model) or ()
            return bool(litellm.supports_web_search(model)) and "web_search_options" in takes
        except Exception:  # noqa: BLE001 (a model that litellm does not know; `check` tells)
            return False

    @cached_property
    def _parameters(self) -> dict[str, Any]:
        """The parameters of every call; `params` comes last, and a null there takes one out."""
        options = self._options
        sent = {
            "reasoning_effort": options.reasoning_effort,
            "max_tokens": options.max_output_tokens,
            "temperature": options.temperature,
            "web_search_options": {} if self._searches else None,
            **plain(options.params),
        }
        return {name: value for name, value in sent.items() if value is not None}

    def _arguments(self, task: Task) -> dict[str, Any]:
        options = self._options
        messages = [{"role": "user", "content": task.prompt}]
        if options.system_prompt is not None:
            messages.insert(0, {"role": "system", "content": options.system_prompt})
        arguments: dict[str, Any] = {
            "model": options.model,
            "messages": messages,
            "timeout": options.timeout_s + _LATER_S,
            "num_retries": 0,
            "max_retries": 0,
            **plain(self._parameters),  # a copy: litellm changes what it is given
        }
        if options.base_url is not None:
            # a server of one's own may want no key, but litellm wants some
            arguments |= {"api_base": options.base_url, "api_key": "none"}
        if options.api_key_env is not None:
            try:
                arguments["api_key"] = self._services.keys.get(options.api_key_env)
            except InputError as error:
                raise CallError("key", str(error)) from error
        return arguments

    def _submission(self, task: Task, attempt: int, body: Mapping[str, Any], latency_s: float) -> Submission:
        paid = bill(body, self._options.price)
        choice = first_choice(body)
        message = mapping(choice, "message")
        text = text_of(message)
        finish = str(choice.get("finish_reason") or "").lower()
        if finish == "error" and not text.strip():
            broken = "the provider broke off the generation"
            raise CallError("server", broken, usage=paid.usage, cost_usd=paid.usd)
        status, error = outcome(finish, message.get("refusal"))
        return Submission(
            task_id=task.id,
            attempt=attempt,
            status=status,
            text=text or None,
            citations=cited(body),
            usage=paid.usage,
            cost_usd=paid.usd,
            cost_source=paid.source,
            latency_s=latency_s,
            error=error,
            system=self._options.name,
            effort=self._services.effort,
            settings={**self.settings, "echoed": {"model": body.get("model")}},
        ).settled()

    def _late(self, task: Task, attempt: int, latency_s: float) -> Submission:
        message = f"no answer within {self._options.timeout_s:g} s (system.timeout_s)"
        return Submission(
            task_id=task.id,
            attempt=attempt,
            status="timed_out",
            latency_s=latency_s,
            cost_source="unknown",
            error=Failure(kind="timed_out", message=message),
            system=self._options.name,
            effort=self._services.effort,
            settings=self.settings,
        )

    def _refusal(self, error: CallError) -> CallError:
        return CallError(
            error.kind,
            self._services.keys.redact(error.message),
            retry_after_s=error.retry_after_s,
            request_id=error.request_id,
        )


def _litellm() -> Any:
    """The one module that imports litellm."""
    from core.judge import via_litellm

    return via_litellm


def chat(config: Mapping[str, Any], services: Services) -> Chat:
    """The factory. Raises InputError for a value that can't be used."""
    options = Options.of(config, services.effort)
    if options.api_key_env is None:
        # litellm reads the provider's variable itself: what it may find is kept out of every text
        for name, value in os.environ.items():
            if name.endswith("_API_KEY"):
                services.keys.remember(value.strip())
    return Chat(options, services)
