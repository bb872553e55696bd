"""Where our grading differs from the released harness: every difference is a named setting.

`benchmark.profile` chooses them all at once (`default` or `released`); a setting that the config names itself
stands above its profile.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from types import MappingProxyType
from typing import Any, Final, Literal, get_args, get_type_hints

from core.errors import InputError
from plugins.wandr.checks import VerdictFrom

View = Literal["windows", "head"]
Gone = Literal["failed", "missing"]
Redirects = Literal["follow", "drop"]
Findings = Literal["shown", "hidden"]
Triage = Literal["off", "judge"]


@dataclass(frozen=True, slots=True)
class Settings:
    """How records are graded.

    `view`: what the judge sees of a long page: its beginning and a window around every located excerpt, or its
    first 50,000 characters. `gone`: what a record is whose page does not exist. `verdict`: equation 1, or the
    judge's own word. `redirects`: a page that was reached through a redirect to another address is judged, or its
    records are missing. `findings`: whether the judge is told where each excerpt was found. `triage`: whether
    the judge is first asked if a page is usable at all; one that is not is unseen.
    """

    view: View = "windows"
    gone: Gone = "failed"
    verdict: VerdictFrom = "recomputed"
    redirects: Redirects = "follow"
    findings: Findings = "shown"
    triage: Triage = "off"


PROFILES: Final[Mapping[str, Settings]] = MappingProxyType(
    {
        "default": Settings(),
        "released": Settings(
            view="head", gone="missing", verdict="judge", redirects="drop", findings="hidden", triage="judge"
        ),
    }
)


def settings_of(config: Mapping[str, Any]) -> Settings:
    """The settings of the section `benchmark`; raises InputError for an unknown profile or word."""
    profile = str(config.get("profile") or "default")
    if profile not in PROFILES:
        raise InputError(
            "unknown profile", where="benchmark.profile", expected=f"one of {', '.join(PROFILES)}", got=profile
        )
    words = get_type_hints(Settings)
    chosen: dict[str, Any] = {}
    for field in fields(Settings):
        word = config.get(field.name)
        # YAML reads a bare `off` as false
        word = "off" if word is False else word
        if word is None:
            word = getattr(PROFILES[profile], field.name)
        if word not in get_args(words[field.name]):
            raise InputError(
                "unknown word",
                where=f"benchmark.{field.name}",
                expected=f"one of {', '.join(get_args(words[field.name]))}",
                got=repr(word),
            )
        chosen[field.name] = word
    return Settings(**chosen)
