"""A judge behind any server that speaks OpenAI's chat completions: asked directly, the fast way.

A request is one non-streaming `POST {base_url}/chat/completions`. Its body is put together from pieces:
what all questions about a report share is encoded once, so a call encodes only its criterion, and the
same question gives the same bytes. The context stands before the criterion, so that a prompt cache serves
it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, Final
from urllib.parse import urlsplit

from core.digest import plain
from core.errors import CallError, InputError
from core.http import Reply, from_status
from core.judge.completion import estimated_cost, instructed, read_completion
from core.judge.options import JudgeOptions
from core.judge.question import JUDGE, Answer, Question
from core.services import Services
from core.strict_json import without_surrogates

OPENAI: Final = "https://api.openai.com/v1"
#: Raised when what is sent changes: part of the store's key.
WIRE_VERSION: Final = 1
#: Reports whose encoded text is kept: more than are judged at once.
_REPORTS_KEPT: Final = 256


class OpenAICompatibleJudge:
    """One model at one endpoint.

    `settings` is all that shapes an answer. The address is among them: behind one model name, two servers
    may run different weights.
    """

    stored = True

    def __init__(self, config: Mapping[str, Any], services: Services) -> None:
        options = JudgeOptions.of(config)
        self._options, self._services = options, services
        self._model = options.need_model()
        self._url = _endpoint(options)
        self._price = options.list_price()
        self._key: str | None = None
        self._prefix = lru_cache(maxsize=_REPORTS_KEPT)(self._encode_prefix)
        self._suffixes: dict[str, bytes] = {}
        self.account = f"{urlsplit(self._url).netloc}#{options.api_key_env or ''}"
        self.settings: Mapping[str, Any] = {
            "provider": "openai_compatible",
            "wire_version": WIRE_VERSION,
            "model": self._model,
            "base_url": self._url,
            "structured": options.structured,
            **options.stage_settings(),
            **self._parameters(JUDGE),
        }

    def check(self) -> list[str]:
        """What is missing before a run can start."""
        variable = self._options.api_key_env
        if self._services.keys.has(variable):
            return []
        return [f"judge {self._options.name}: the environment variable {variable} is not set"]

    def estimate_usd(self, question: Question) -> float | None:
        """What a call is expected to cost; None without `judge.price`."""
        return estimated_cost(question, self._price)

    async def ask(self, question: Question) -> Answer:
        """One call. Raises CallError."""
        services, options = self._services, self._options
        reply = await services.http.request(
            "POST",
            self._url,
            headers=self._headers(),
            content=self.body(question),
            timeout_s=options.timeout_s,
        )
        if reply.status != 200:
            raise self._refusal(reply)
        completion = reply.json()
        if not isinstance(completion, Mapping):
            raise CallError("malformed", "the body is not a JSON object", raw=reply.text[:2000])
        if completion.get("error"):
            raise self._refusal(reply)
        answer = read_completion(completion, question, self._price, request_id=reply.request_id)
        return replace(
            answer,
            judge=options.name,
            latency_s=reply.latency_s,
            asked_at=datetime.fromtimestamp(services.clock.now(), UTC).isoformat(timespec="seconds"),
        )

    def body(self, question: Question) -> bytes:
        """The request's body: the same bytes for the same question."""
        system = instructed(question, structured=self._options.structured)
        return b"".join((self._prefix(system, question.context), _inner(question.ask), self._suffix(question)))

    def _encode_prefix(self, system: str, context: str) -> bytes:
        """Everything before the criterion, which ends the open string of the user message."""
        head = _encoded({"model": self._model})[:-1] + b',"messages":['
        opened = b',{"role":"user","content":"' + _inner(context) + _inner("\n\n")
        return head + _encoded({"role": "system", "content": system}) + opened

    def _suffix(self, question: Question) -> bytes:
        """Everything after the criterion; questions of one schema and stage share it."""
        digest = question.schema_digest + question.schema_name + question.stage
        found = self._suffixes.get(digest)
        if found is None:
            parameters: dict[str, Any] = {}
            if self._options.structured:
                named = {"name": question.schema_name, "strict": True, "schema": plain(question.schema)}
                parameters["response_format"] = {"type": "json_schema", "json_schema": named}
            parameters |= self._parameters(question.stage)
            tail = b"," + _encoded(parameters)[1:] if parameters else b"}"
            found = self._suffixes[digest] = b'"}]' + tail
        return found

    def _parameters(self, stage: str) -> dict[str, Any]:
        """The parameters of every call of a stage; `judge.params` comes last, and a null there takes one out."""
        options = self._options
        sent: dict[str, Any] = {}
        effort = options.effort_of(stage)
        if effort is not None:
            sent["reasoning_effort"] = effort
        if options.temperature is not None:
            sent["temperature"] = options.temperature
        if options.max_output_tokens is not None:
            sent[_name_of_limit(self._url)] = options.max_output_tokens
        sent |= plain(options.params)
        return {name: value for name, value in sent.items() if value is not None}

    def _headers(self) -> dict[str, str]:
        if self._options.api_key_env is None:
            return {"content-type": "application/json"}
        if self._key is None:
            try:
                self._key = self._services.keys.get(self._options.api_key_env)
            except InputError as error:
                raise CallError("key", str(error)) from error
        return {"content-type": "application/json", "authorization": f"Bearer {self._key}"}

    def _refusal(self, reply: Reply) -> CallError:
        """An answer that is an error, with keys that the provider echoes taken out."""
        error = from_status(reply, self._services.clock.now())
        redact = self._services.keys.redact
        return CallError(
            error.kind,
            redact(error.message),
            retry_after_s=error.retry_after_s,
            request_id=error.request_id,
            raw=redact(reply.text[:2000]),
        )


def _endpoint(options: JudgeOptions) -> str:
    base = options.base_url
    if base is None and options.api_key_env is None:
        raise InputError(
            "no endpoint is named",
            where="judge.base_url",
            expected="the address of a server, such as http://127.0.0.1:8000/v1 "
            f"(or judge.api_key_env, for {OPENAI})",
        )
    base = (base or OPENAI).rstrip("/")
    if not base.startswith(("http://", "https://")) or not urlsplit(base).hostname:
        raise InputError("not an http(s) address", where="judge.base_url", got=repr(base))
    return base if base.endswith("/chat/completions") else f"{base}/chat/completions"


def _name_of_limit(url: str) -> str:
    """`max_tokens`, but at OpenAI's own endpoints, whose thinking models refuse it.

    Elsewhere the old name is the safe one: servers that know only it would let the new one pass without
    effect, and those that know only the new one say so. `judge.params={max_completion_tokens: N}` sends
    the other.
    """
    host = urlsplit(url).hostname or ""
    own = host == "api.openai.com" or host.endswith(".openai.azure.com")
    return "max_completion_tokens" if own else "max_tokens"


def _encoded(value: Any) -> bytes:
    """JSON as UTF-8; half a surrogate pair, which no server reads, becomes U+FFFD."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    try:
        return text.encode()
    except UnicodeEncodeError:
        return json.dumps(without_surrogates(value), ensure_ascii=False, separators=(",", ":")).encode()


def _inner(text: str) -> bytes:
    """A text as the inside of a JSON string."""
    return _encoded(text)[1:-1]
