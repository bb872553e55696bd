"""The typed configuration of one run.

Hydra composes YAML and overrides to a plain tree; `RunConfig` checks it before anything is sent. The
sections `benchmark`, `system` and `judge` have the keys that the engine reads; what else they hold
belongs to the plugin that their names point to, and its factory checks it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any, Final, Literal
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from core.digest import json_digest, plain
from core.errors import InputError

#: Keys that may differ between two starts of one run folder: where things lie, how fast, how much.
_NOT_IN_DIGEST: Final = frozenset(
    {"out", "store", "dry_run", "budget", "retry", "fail_on", "progress", "launched_on"}
)
_PACE: Final = frozenset(
    {
        *("max_in_flight", "requests_per_minute", "retry", "timeout_s", "price", "estimate_usd"),
        *("poll", "request_timeout_s", "cancel_on_interrupt", "transport", "about", "pace", "search_usd"),
    }
)
#: What a benchmark's section says of how its numbers are shown, and when a run counts as complete.
_BENCHMARK_SHOWN: Final = frozenset({"fail_on", "tables"})
_PAGES_PACE: Final = frozenset(
    {"refresh", "proxy", "control_hosts", "timeout_s", "max_in_flight", "per_host", "delay_s", "offline_wait_s"}
)


#: The provider of a judge that is made of others.
ENSEMBLE: Final = "ensemble"
_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
#: Keys whose value an error does not show.
_PRIVATE: Final = ("api_key_env", "base_url")


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="allow", allow_inf_nan=False)

    def plain(self) -> dict[str, Any]:
        """The section as a factory gets it."""
        found: dict[str, Any] = plain(self.model_dump())
        return found


class _Strict(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class Retry(_Strict):
    """The retry layer: tries a call may take, and the longest single wait in seconds."""

    attempts: int = Field(default=6, ge=1, le=100)
    max_wait_s: float = Field(default=60.0, ge=0)


class BenchmarkSection(_Section):
    """`headline` is the metric without which a task counts as having no number."""

    name: str
    loader: str
    grader: str
    aggregator: str
    headline: str
    source: str = "sample"
    revision: str | None = None
    coverage_floor: float = Field(default=0.95, ge=0, le=1)
    strict: bool = False
    repeats: int = Field(default=1, ge=1)
    fail_on: str | float | None = None
    tables: Mapping[str, Any] | None = None

    @property
    def floor(self) -> float:
        """The least coverage at which a score is published; strict wants all of it."""
        return 1.0 if self.strict else self.coverage_floor


class _Provider(_Section):
    """What systems and judges have in common: where they are asked, and with whose key."""

    base_url: str | None = None
    api_key_env: str | None = None

    @field_validator("base_url")
    @classmethod
    def _no_password(cls, value: str | None) -> str | None:
        if value is not None and "@" in urlsplit(value).netloc:
            raise ValueError("an address with a password would be written down: name the key's variable instead")
        return value

    @field_validator("api_key_env")
    @classmethod
    def _is_a_name(cls, value: str | None) -> str | None:
        if value is not None and not _VARIABLE.fullmatch(value):
            raise ValueError("expected the name of an environment variable, not a key")
        return value


class SystemSection(_Provider):
    """`efforts` maps effort words to an adapter's settings; null: any word is handed on."""

    name: str
    adapter: str
    label: str | None = None
    family: str | None = None
    max_in_flight: int = Field(default=8, ge=1)
    requests_per_minute: int | None = Field(default=None, ge=1)
    on_failure: Literal["zero", "missing"] = "zero"
    default_effort: str | None = None
    efforts: Mapping[str, Mapping[str, Any]] | None = None
    retry: Retry = Retry()


class JudgeSection(_Provider):
    name: str
    provider: str
    model: str | None = None
    family: str | None = None
    epoch: int = 0
    repeats: int | None = Field(default=None, ge=1)
    max_in_flight: int = Field(default=32, ge=1)
    requests_per_minute: int | None = Field(default=None, ge=1)
    retry: Retry = Retry()
    members: Mapping[str, Mapping[str, Any]] | None = None

    def member_sections(self) -> dict[str, JudgeSection]:
        """An ensemble's members by name; of any other judge none."""
        return {name: JudgeSection.model_validate(member) for name, member in (self.members or {}).items()}


class PagesSection(_Strict):
    """Where pages come from, and how they are fetched; conf/pages/_base.yaml says what each key means."""

    mode: Literal["web", "archive", "fixtures"] = "archive"
    path: str | None = None
    allow_hosts: tuple[str, ...] = ()
    control_hosts: tuple[str, ...] | None = None
    refresh: bool = False
    proxy: str | None = None
    browser: str | None = None
    user_agent: str | None = Field(default=None, max_length=200, pattern=r"^[ -~]+$")
    timeout_s: float = Field(default=30.0, gt=0)
    max_bytes: int = Field(default=16 * 1024 * 1024, ge=1024, le=256 * 1024 * 1024)
    max_in_flight: int = Field(default=64, ge=1)
    per_host: int = Field(default=4, ge=1)
    delay_s: float = Field(default=0.2, ge=0, le=60)
    offline_wait_s: float = Field(default=300.0, ge=0)

    @field_validator("allow_hosts")
    @classmethod
    def _pairs(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        from core.pages.guard import host_and_port

        for entry in value:
            host_and_port(entry)
        return value


class BudgetSection(_Strict):
    usd: float | None = Field(default=None, ge=0)
    judge_usd: float | None = Field(default=None, ge=0)
    confirm_usd: float = Field(default=100.0, ge=0)


class Shard(_Strict):
    """Every `of`-th task, beginning with the `number`-th; numbers from 1."""

    number: int = Field(ge=1)
    of: int = Field(ge=1)

    @model_validator(mode="after")
    def _inside(self) -> Shard:
        if self.number > self.of:
            raise ValueError(f"shard {self.number}/{self.of}: the first number is 1 … {self.of}")
        return self


class RunConfig(_Strict):
    """All of one run. Built only by `from_tree`, which turns every fault into an InputError."""

    benchmark: BenchmarkSection
    system: SystemSection
    judge: JudgeSection
    pages: PagesSection = PagesSection()
    effort: str | None = None
    attempts: int = Field(default=1, ge=1)
    tasks: tuple[str, ...] | None = None
    where: Mapping[str, str] = Field(default_factory=dict)
    sample: int | None = Field(default=None, ge=1)
    seed: int = 0
    limit: int | None = Field(default=None, ge=1)
    shard: Shard | None = None
    budget: BudgetSection = BudgetSection()
    out: str | None = None
    store: str | None = None
    dry_run: bool = False
    fail_on: Literal["any", "never"] | float | None = None
    retry: Literal["none", "failed"] = "none"
    progress: Literal["auto", "rich", "plain", "none"] = "auto"
    launched_on: str | None = None

    @field_validator("tasks", mode="before")
    @classmethod
    def _words(cls, value: Any) -> Any:
        return [value] if isinstance(value, str) else value

    @field_validator("where", mode="before")
    @classmethod
    def _labels(cls, value: Any) -> Any:
        if not isinstance(value, Mapping):
            return value
        return {key: item if isinstance(item, str) else str(item) for key, item in value.items()}

    @field_validator("shard", mode="before")
    @classmethod
    def _shard(cls, value: Any) -> Any:
        if not isinstance(value, str):
            return value
        number, slash, of = value.partition("/")
        if not slash or not number.isdigit() or not of.isdigit() or not 1 <= int(number) <= int(of):
            raise ValueError("expected shard=i/n with i from 1 to n, for example shard=1/8")
        return {"number": int(number), "of": int(of)}

    @field_validator("fail_on")
    @classmethod
    def _share(cls, value: Any) -> Any:
        if isinstance(value, float) and not 0 <= value <= 1:
            raise ValueError("expected any, never, or a share between 0 and 1")
        return value

    @classmethod
    def from_tree(cls, tree: Mapping[str, Any]) -> RunConfig:
        """Check a composed tree; raises InputError naming every faulty key."""
        try:
            config = cls.model_validate(dict(tree))
        except ValidationError as error:
            raise InputError(_describe(error)) from None
        config.effort_settings()
        return config

    def effort_word(self) -> str | None:
        return self.effort or self.system.default_effort

    def effort_settings(self) -> dict[str, Any]:
        """What the chosen effort means for the system; an unknown word is refused."""
        word, known = self.effort_word(), self.system.efforts
        if word is None or known is None:
            return {}
        if word not in known:
            close = get_close_matches(word, list(known), n=1)
            hint = f"; did you mean {close[0]!r}?" if close else ""
            raise InputError(
                f"system {self.system.name!r} has no effort {word!r}{hint}",
                where="effort",
                expected=f"one of {', '.join(known)}",
            )
        return dict(known[word])

    def missing_share(self) -> float | None:
        """The share of expected judgements that may be missing; None: any share."""
        chosen = self.fail_on if self.fail_on is not None else self.benchmark.fail_on
        if chosen == "never":
            return None
        return 0.0 if chosen in (None, "any") else float(chosen)

    def digest(self, *, without_shard: bool = False) -> str:
        """What makes two starts the same run: all but where it is written, its pace and its money."""
        tree = identity(plain(self.model_dump()))
        if without_shard:
            tree.pop("shard")
        return json_digest(tree)


def same_settings(efforts: Mapping[str, Mapping[str, Any]]) -> dict[str, tuple[str, ...]]:
    """Each effort word → all words that set what it sets, itself among them; deadlines and prices apart."""
    set_by = {
        word: json_digest({key: plain(item) for key, item in settings.items() if key not in _PACE})
        for word, settings in efforts.items()
    }
    return {word: tuple(other for other in set_by if set_by[other] == digest) for word, digest in set_by.items()}


def identity(tree: Mapping[str, Any]) -> dict[str, Any]:
    """The part of a configuration, as plain data, that makes two starts the same run."""
    kept = {key: item for key, item in tree.items() if key not in _NOT_IN_DIGEST}
    for section in ("system", "judge"):
        kept[section] = {key: item for key, item in kept[section].items() if key not in _PACE}
    members = kept["judge"].pop("members", None)
    if members:
        kept["judge"]["members"] = {
            name: {key: item for key, item in member.items() if key not in _PACE}
            for name, member in members.items()
        }
    kept["benchmark"] = {key: item for key, item in kept["benchmark"].items() if key not in _BENCHMARK_SHOWN}
    return kept


def _describe(error: ValidationError) -> str:
    """One line a fault: key, what is wrong, what came; close names for unknown keys."""
    lines = []
    for fault in error.errors():
        key = ".".join(str(part) for part in fault["loc"] if part != "float" and "[" not in str(part))
        if fault["type"] == "extra_forbidden":
            close = get_close_matches(key, list(RunConfig.model_fields), n=1)
            hint = f"; did you mean {close[0]!r}?" if close else ""
            lines.append(f"unknown key {key!r}{hint}")
        elif fault["type"] == "missing":
            lines.append(f"{key}: missing")
        else:
            # what was given may be a key in the wrong place: it is not repeated
            got = "" if key.endswith(_PRIVATE) else f"; got {fault['input']!r}"
            lines.append(f"{key}: {fault['msg'].removeprefix('Value error, ')}{got}")
    return "; ".join(dict.fromkeys(lines))
