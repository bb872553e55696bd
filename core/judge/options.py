"""The config section `judge`, checked: what a judge's factory is given."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any, Final

from pydantic import Field, ValidationError, field_validator

from core.config import Retry
from core.errors import InputError
from core.model import Frozen
from core.prices import Price, price_from_config

#: What a judge itself puts into a request; an answer is read as these make it.
_OURS: Final = frozenset({"model", "messages", "stream", "response_format", "n"})


class JudgeOptions(Frozen):
    """The keys of every judge's config; each judge reads those that concern it.

    `timeout_s` is the deadline of one call. `max_output_tokens` is shared with thinking. `params` are merged
    into the request as they stand; a null there takes a parameter out. `price` is dollars per million tokens.
    `stage_efforts` has the efforts of a benchmark's other stages; a stage that it lacks takes `effort`.
    """

    name: str = "judge"
    provider: str = ""
    model: str | None = None
    base_url: str | None = None
    api_key_env: str | None = None
    effort: str | None = None
    stage_efforts: Mapping[str, str] = Field(default_factory=dict)
    temperature: float | None = Field(default=None, ge=0)
    max_output_tokens: int | None = Field(default=None, ge=1)
    timeout_s: float = Field(default=300.0, gt=0)
    structured: bool = True
    params: Mapping[str, Any] = Field(default_factory=dict)
    price: Mapping[str, Any] | None = None
    family: str | None = None
    epoch: int = 0
    path: str | None = None
    repeats: int | None = Field(default=None, ge=1)
    max_in_flight: int = Field(default=32, ge=1)
    requests_per_minute: int | None = Field(default=None, ge=1)
    retry: Retry = Retry()
    # an ensemble's; its members get a section each
    members: Any = None
    vote: Any = None

    @field_validator("params", "stage_efforts", mode="before")
    @classmethod
    def _no_params(cls, value: Any) -> Any:
        return {} if value is None else value

    @classmethod
    def of(cls, config: Mapping[str, Any]) -> JudgeOptions:
        """Check a section; raises InputError naming the key that is unknown or of the wrong type."""
        known = list(cls.model_fields)
        for key in config:
            if key not in known:
                close = get_close_matches(str(key), known, n=1)
                hint = f"; did you mean judge.{close[0]}?" if close else ""
                raise InputError(
                    f"unknown key judge.{key}{hint}", where="judge", expected=f"one of {', '.join(known)}"
                )
        try:
            options = cls.model_validate(dict(config))
        except ValidationError as error:
            first = error.errors()[0]
            key = ".".join(str(part) for part in ("judge", *first["loc"]))
            raise InputError(first["msg"], where=key, got=repr(first["input"])[:80]) from None
        for key in sorted(_OURS & options.params.keys()):
            raise InputError("can't be replaced", where=f"judge.params.{key}", expected="other parameters")
        options.list_price()
        return options

    def effort_of(self, stage: str) -> str | None:
        """How hard to think about a question of this stage; None: nothing is said about it."""
        return self.stage_efforts.get(stage, self.effort)

    def stage_settings(self) -> dict[str, Any]:
        """What `stage_efforts` adds to the settings that shape an answer: nothing when it is empty."""
        return {"stage_efforts": dict(sorted(self.stage_efforts.items()))} if self.stage_efforts else {}

    def list_price(self) -> Price | None:
        """`judge.price` as a price; None when it is not set."""
        return price_from_config(self.price)

    def need_model(self) -> str:
        """The model, which a judge that asks a provider can't do without."""
        if not self.model:
            raise InputError("no model is named", where="judge.model", expected="the provider's name of a model")
        return self.model
