"""The built-in judges, by the names that a judge's config calls `provider`; imported when asked for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from core.hooks import Register, hookimpl

if TYPE_CHECKING:
    from core.parts import Judge
    from core.services import Services


@hookimpl
def register_judges(register: Register) -> None:
    register("litellm", _litellm)
    register("openai_compatible", _openai_compatible)
    register("recorded", _recorded)
    register("offline", _offline)


def _litellm(config: Mapping[str, Any], services: Services) -> Judge:
    from core.judge.via_litellm import LitellmJudge

    return LitellmJudge(config, services)


def _openai_compatible(config: Mapping[str, Any], services: Services) -> Judge:
    from core.judge.openai_compatible import OpenAICompatibleJudge

    return OpenAICompatibleJudge(config, services)


def _recorded(config: Mapping[str, Any], services: Services) -> Judge:
    from core.judge.recorded import RecordedJudge

    return RecordedJudge(config, services)


def _offline(config: Mapping[str, Any], services: Services) -> Judge:
    from core.judge.offline import OfflineJudge

    return OfflineJudge(config, services)
