"""A judge behind any model that litellm knows. The one module that imports litellm, on first use.

litellm's import takes seconds and its defaults reach for the network, print, and retry; all of that is turned
off before and after the import. What it raises is told apart by cause and by the provider's own answer
(core/http.py, core/reply.py); the classes of litellm count only where both are silent.
"""

from __future__ import annotations

import asyncio
import gc
import os
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, date, datetime
from importlib.util import find_spec
from typing import Any, Final

from core.digest import plain
from core.errors import CallError, InputError
from core.http import Reply, classify, from_status
from core.judge.completion import estimated_cost, instructed, read_completion
from core.judge.options import JudgeOptions
from core.judge.question import JUDGE, Answer, Question
from core.prices import Price
from core.reply import shortened
from core.services import Services

#: Raised when what is sent changes: part of the store's key.
WIRE_VERSION: Final = 1
#: A model that ends within so many days gives scores that can't be repeated.
RETIREMENT_DAYS: Final = 60

_ENVIRONMENT: Final = {
    "LITELLM_OFFLINE_MODE": "true",
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    "LITELLM_MODE": "PRODUCTION",  # else it reads .env files
    "LITELLM_LOG": "ERROR",
}
_MILLION: Final = 1_000_000

#: litellm's word where neither a cause nor the provider's answer says anything.
_KINDS: Final[Mapping[str, str]] = {
    "Timeout": "timeout",
    "ContextWindowExceededError": "too_large",
    "ContentPolicyViolationError": "refused",
    "APIResponseValidationError": "malformed",
    "JSONSchemaValidationError": "malformed",
    "UnsupportedParamsError": "bad_request",
    "LiteLLMUnknownProvider": "not_found",
    "PaymentRequiredError": "quota",
    "BudgetExceededError": "quota",
}
#: Kinds that only litellm tells: its reading of dozens of vendors' messages is finer than a status.
_FINER: Final = frozenset({"ContextWindowExceededError", "ContentPolicyViolationError", "PaymentRequiredError"})

_module: Any = None


def load() -> Any:
    """litellm, imported once, silent and offline. Takes 3 to 5 seconds the first time."""
    global _module
    if _module is None:
        for name, value in _ENVIRONMENT.items():
            os.environ.setdefault(name, value)
        collecting = gc.isenabled()
        gc.disable()  # a third of the import's time is collections that find nothing
        try:
            import litellm
        finally:
            if collecting:
                gc.enable()
        litellm.suppress_debug_info = True
        litellm.drop_params = False  # a setting that is silently dropped would be recorded as used
        for sinks in ("callbacks", "success_callback", "failure_callback", "_async_success_callback"):
            setattr(litellm, sinks, [])
        _module = litellm
    return _module


async def close() -> None:
    """Close litellm's clients, if it was used. May be called more than once."""
    if _module is not None:
        await _module.close_litellm_async_clients()
        # litellm would go on handing out the closed ones
        _module.in_memory_llm_clients_cache.flush_cache()


class LitellmJudge:
    """One model, through litellm."""

    stored = True

    def __init__(self, config: Mapping[str, Any], services: Services) -> None:
        options = JudgeOptions.of(config)
        self._options, self._services = options, services
        self._model = options.need_model()
        self._price = options.list_price()
        self._key: str | None = None
        self.account = f"{self._model.split('/', 1)[0]}#{options.api_key_env or ''}"
        self.settings: Mapping[str, Any] = {
            "provider": "litellm",
            "wire_version": WIRE_VERSION,
            "model": self._model,
            "base_url": options.base_url,
            "structured": options.structured,
            **options.stage_settings(),
            **self._parameters(JUDGE),
        }

    def check(self) -> list[str]:
        """What is missing before a run can start; a model that litellm does not know by any provider counts."""
        found: list[str] = []
        variable = self._options.api_key_env
        if not self._services.keys.has(variable):
            found.append(f"judge {self._options.name}: the environment variable {variable} is not set")
        if find_spec("litellm") is None:
            return [*found, "the package litellm is not installed: pip install litellm"]
        litellm = load()
        try:
            litellm.get_llm_provider(self._model)
        except litellm.exceptions.BadRequestError:  # its message is three screens long
            found.append(
                f"judge {self._options.name}: litellm knows no provider of model {self._model!r}; "
                "write provider/model, such as openai/gpt-5.4"
            )
        return found

    def warnings(self, today: date) -> list[str]:
        """What every report made with this judge should say."""
        found = retirement(self._model, today)
        return [found] if found else []

    def estimate_usd(self, question: Question) -> float | None:
        """What a call is expected to cost: by `judge.price`, else by litellm's price list."""
        return estimated_cost(question, self._price or price_of(self._model))

    async def ask(self, question: Question) -> Answer:
        """One call. Raises CallError."""
        litellm = load()
        clock, timeout_s = self._services.clock, self._options.timeout_s
        arguments = self._arguments(question)
        started = clock.monotonic()
        try:
            async with asyncio.timeout(timeout_s):
                response = await litellm.acompletion(**arguments)
        except TimeoutError as error:
            raise CallError("timeout", f"no answer within {timeout_s:g} s") from error
        except Exception as error:  # litellm raises its own, its vendors' and Python's classes
            raise self._refusal(error) from error
        answer = read_completion(_as_mapping(response), question, self._price)
        return replace(
            answer,
            judge=self._options.name,
            latency_s=clock.monotonic() - started,
            asked_at=datetime.fromtimestamp(clock.now(), UTC).isoformat(timespec="seconds"),
        )

    async def aclose(self) -> None:
        """Close litellm's clients, if it was used."""
        await close()

    def _arguments(self, question: Question) -> dict[str, Any]:
        options = self._options
        structured = options.structured and takes_schema(self._model)
        arguments: dict[str, Any] = {
            "model": self._model,
            "messages": [
                {"role": "system", "content": instructed(question, structured=structured)},
                {"role": "user", "content": _user_content(question, self._model)},
            ],
            "timeout": options.timeout_s,
            "num_retries": 0,
            "max_retries": 0,
            **self._parameters(question.stage),
        }
        if structured:
            named = {"name": question.schema_name, "strict": True, "schema": plain(question.schema)}
            arguments["response_format"] = {"type": "json_schema", "json_schema": named}
        if options.base_url is not None:
            arguments["api_base"] = options.base_url
        if options.api_key_env is not None:
            arguments["api_key"] = self._api_key()
        elif options.base_url is not None:
            arguments["api_key"] = "none"  # a server of one's own: litellm wants some key for it
        return arguments

    def _parameters(self, stage: str) -> dict[str, Any]:
        """The parameters of every call of a stage; `judge.params` comes last, and a null there takes one out."""
        options = self._options
        sent = {
            "reasoning_effort": options.effort_of(stage),
            "temperature": options.temperature,
            "max_tokens": options.max_output_tokens,
        }
        return {name: value for name, value in {**sent, **plain(options.params)}.items() if value is not None}

    def _api_key(self) -> str | None:
        if self._key is None:
            try:
                self._key = self._services.keys.get(self._options.api_key_env)
            except InputError as error:
                raise CallError("key", str(error)) from error
        return self._key

    def _refusal(self, error: Exception) -> CallError:
        found = mapped(error, self._services.clock.now())
        return CallError(
            found.kind,
            self._services.keys.redact(found.message),
            retry_after_s=found.retry_after_s,
            request_id=found.request_id,
        )


def mapped(error: Exception, now: float) -> CallError:
    """What an exception of litellm means: by its cause, else by the provider's answer, else by its class."""
    name = type(error).__name__
    if name in _FINER:
        return CallError(_KINDS[name], shortened(str(error), 300))
    cause = classify(error)
    if cause.kind != "crash":
        return cause
    response = getattr(error, "response", None)
    status = getattr(error, "status_code", None)
    content = getattr(response, "content", b"")
    if response is not None and content:
        return from_status(Reply(response.status_code, response.headers, content, 0.0, ""), now)
    if name in _KINDS:
        return CallError(_KINDS[name], shortened(str(error), 300))
    if isinstance(status, int) and 400 <= status < 600:
        headers = getattr(response, "headers", None) or {}
        said = shortened(str(error), 300).encode()
        return from_status(Reply(status, headers, said, 0.0, ""), now)
    return cause


def _as_mapping(response: Any) -> dict[str, Any]:
    """A ModelResponse as the body it came from: only what an answer is read from."""
    choices = []
    for choice in response.choices or ():
        message = choice.message
        said = {"content": message.content, "refusal": getattr(message, "refusal", None)}
        choices.append({"finish_reason": choice.finish_reason, "message": said})
    return {"model": response.model, "choices": choices, "usage": usage_of(response)}


def usage_of(response: Any) -> dict[str, Any] | None:
    """The usage of a ModelResponse, with litellm's own reckoning as `list_cost` where no cost is reported."""
    usage = getattr(response, "usage", None)
    found: dict[str, Any] | None = usage.model_dump() if usage is not None else None
    if found is not None and found.get("cost") is None:
        # litellm's price list knows tiers, cache writes and tools; it says None for a model it does not know
        found["list_cost"] = response._hidden_params.get("response_cost")  # noqa: SLF001  # documented, no other way
    return found


def _user_content(question: Question, model: str) -> Any:
    """The user message; Anthropic's models cache a prefix only where they are told that it ends."""
    if "claude" not in model:
        return question.user_text
    return [
        {"type": "text", "text": question.context, "cache_control": {"type": "ephemeral"}},
        {"type": "text", "text": question.ask},
    ]


def takes_schema(model: str) -> bool:
    """Does the model take a JSON Schema for its answer, as far as litellm knows?"""
    found: bool = load().supports_response_schema(model=model)
    return found


def _entry(model: str) -> Mapping[str, Any]:
    """The model's entry in litellm's map, with or without the provider's prefix; empty when unknown."""
    models = load().model_cost
    entry = models.get(model) or models.get(model.split("/", 1)[-1])
    return entry if isinstance(entry, Mapping) else {}


def price_of(model: str) -> Price | None:
    """Dollars per million tokens in litellm's list; None for a model that it does not know."""
    entry = _entry(model)
    names = ("input_cost_per_token", "output_cost_per_token", "cache_read_input_token_cost")
    taken, given, cached = (
        rate * _MILLION if isinstance(rate := entry.get(name), (int, float)) else None for name in names
    )
    return None if taken is None or given is None else Price(taken, given, cached)


def retirement(model: str, today: date) -> str | None:
    """A warning when the model is retired or will be within 60 days; None otherwise, or when nothing is known."""
    entry = _entry(model)
    try:
        day = date.fromisoformat(str(entry.get("deprecation_date", "")))
    except ValueError:
        return None
    left = (day - today).days
    if left > RETIREMENT_DAYS:
        return None
    successor = entry.get("successor_model")
    hint = f"; its successor is {successor}" if isinstance(successor, str) else ""
    if left <= 0:
        return f"judge model {model} is retired since {day}: its scores can't be repeated{hint}"
    return f"judge model {model} retires on {day}, in {left} days: its scores can't be repeated then{hint}"
