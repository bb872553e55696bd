"""How jobs are paced: the keys that every long-job system has (conf/system/_job.yaml says what they mean)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from core.section import Section

#: What an effort may set of them.
JOB_KEYS_BY_EFFORT: Final = ("timeout_s", "estimate_usd")


@dataclass(frozen=True, slots=True)
class JobOptions:
    """The pace of a system's jobs, in seconds.

    `deadline_s` from the create to the end; `request_s` for one request; polls begin `first_s` apart and grow to
    `longest_s`. While a job is asked about, answers that make no sense are waited out for `grace_s`, a provider or
    a network that is down for `outage_s`; at an interrupt a job is given `cancel_s` to be cancelled.
    """

    name: str
    deadline_s: float = 3600.0
    request_s: float = 120.0
    first_s: float = 2.0
    longest_s: float = 15.0
    grace_s: float = 120.0
    outage_s: float = 900.0
    cancel_s: float = 10.0
    cancel_on_interrupt: bool = True
    estimate_usd: float | None = None

    @classmethod
    def of(cls, section: Section) -> JobOptions:
        """Check the keys; raises InputError naming the faulty one."""
        poll = Section(section.mapping("poll"), f"{section.where}.poll")
        first_s = poll.seconds("first_s")
        return cls(
            name=section.text("name"),
            deadline_s=section.seconds("timeout_s"),
            request_s=section.seconds("request_timeout_s"),
            first_s=first_s,
            longest_s=max(first_s, poll.seconds("longest_s")),
            grace_s=poll.seconds("grace_s"),
            outage_s=poll.seconds("outage_s"),
            cancel_on_interrupt=section.choice("cancel_on_interrupt", {True: True, False: False}),
            estimate_usd=section.number_or_none("estimate_usd"),
        )


#: The deadline where neither the config nor the effort has one.
DEADLINE_S: Final = 3600.0


def section_of(config: Mapping[str, Any], *by_effort: str) -> Section:
    """A system's section with the chosen effort laid over it; `by_effort` are the adapter's own keys for it.

    A deadline or an estimate that stands in the config itself is not overridden by the effort's.
    """
    chosen = config.get("effort_settings") or {}
    own = {key for key in JOB_KEYS_BY_EFFORT if config.get(key) is not None}
    if isinstance(chosen, Mapping):
        chosen = {key: value for key, value in chosen.items() if key not in own}
    section = Section({**config, "effort_settings": chosen}).with_effort((*JOB_KEYS_BY_EFFORT, *by_effort))
    if section.values.get("timeout_s") is not None:
        return section
    return Section({**section.values, "timeout_s": DEADLINE_S}, section.where)
