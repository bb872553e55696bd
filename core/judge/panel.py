"""judge=ensemble: several judges and a vote, as one desk.

    judge=ensemble judge.members=[gpt,sonnet,gemini-4-argon] judge.vote=majority

Each member has a desk of its own: what it said is stored under its own key, so that a run with that judge alone
and an ensemble that it belongs to ask once between them. With `vote=mean` there is no vote: repeat r is given by
member (r − 1) mod m as its repeat ⌊(r − 1) / m⌋ + 1, so that a score is the mean over members and every verdict a
row. The other votes keep what each member said in the row's `raw`. A question is answered when more than half of
the members answered it, with `vote=veto` when all did; else it failed, with the first failure's kind. A tie is no
verdict: name an odd number of members.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import TYPE_CHECKING, Any

from core.digest import combine, plain
from core.errors import InputError
from core.judge.desk import Desk, Tools
from core.judge.question import Answer, Question
from core.judge.votes import VOTES, Vote, is_split, voted
from core.model import Failure, total_usage

if TYPE_CHECKING:
    from core.config import JudgeSection
    from core.limiter import Limiters
    from core.parts import Judge


@dataclass(frozen=True, slots=True)
class Member:
    """One judge of a panel, with its section of the configuration and its desk."""

    name: str
    judge: Judge
    section: JudgeSection
    desk: Desk


class Ensemble:
    """The members as one judge: what a run reads of a judge before it starts. It is never asked itself."""

    def __init__(self, judges: Mapping[str, Judge], vote: Vote) -> None:
        self.judges, self.vote = dict(judges), vote
        #: without a store only where no member needs one
        self.stored = any(getattr(judge, "stored", True) for judge in judges.values())
        self.settings: Mapping[str, Any] = {
            "vote": vote,
            "members": {name: plain(getattr(judge, "settings", {})) for name, judge in judges.items()},
        }

    async def ask(self, question: Question) -> Answer:  # noqa: ARG002 -- a judge's signature
        """A judge has it, and this one never gets a question: the panel gives each to the members' desks."""
        raise AssertionError("an ensemble was asked as one judge")

    def check(self) -> list[str]:
        """What any member is missing."""
        found: list[str] = []
        for judge in self.judges.values():
            check = getattr(judge, "check", None)
            found += check() if check is not None else []
        return found

    def warnings(self, today: date) -> list[str]:
        """What any member wants said, and that an even number of members can tie."""
        found: list[str] = []
        if self.vote == "majority" and len(self.judges) % 2 == 0:
            found.append(f"an ensemble of {len(self.judges)} members can tie: such verdicts are missing")
        for judge in self.judges.values():
            warn = getattr(judge, "warnings", None)
            found += warn(today) if warn is not None else []
        return found

    def estimate_usd(self, question: Question) -> float | None:
        """The sum over members; with vote=mean the mean, since each asks its own repeats. None: one is unknown."""
        total = 0.0
        for judge in self.judges.values():
            if not getattr(judge, "stored", True):
                continue
            price = getattr(judge, "estimate_usd", None)
            usd = price(question) if price is not None else None
            if usd is None:
                return None
            total += usd
        return total / len(self.judges) if self.vote == "mean" else total

    async def aclose(self) -> None:
        """Close every member."""
        for judge in self.judges.values():
            close = getattr(judge, "aclose", None)
            if close is not None:
                await close()


class Panel:
    """The members' desks as the run's desk (core.services.JudgeDesk)."""

    recorded = False

    def __init__(self, name: str, members: Sequence[Member], vote: Vote, *, limiters: Limiters) -> None:
        self.name = name
        self.members, self.vote = tuple(members), vote
        #: as many questions as the slowest member takes: each question goes to all
        self.width = min(member.desk.width for member in members)
        self._limiters = limiters
        self.splits = 0

    def open(self, tools: Tools) -> None:
        """Begin to take questions: each member with the limits of its own account."""
        for member in self.members:
            section = member.section
            limiter = self._limiters.get(
                getattr(member.judge, "account", None) or section.name,
                max_in_flight=section.max_in_flight,
                requests_per_minute=section.requests_per_minute,
            )
            member.desk.open(replace(tools, limiter=limiter))

    @property
    def asked(self) -> int:
        """Calls that were made, over all members."""
        return sum(member.desk.asked for member in self.members)

    @property
    def reused(self) -> int:
        """Answers that were in the store, over all members."""
        return sum(member.desk.reused for member in self.members)

    @property
    def retried(self) -> int:
        """Stored failures that were asked about again, over all members."""
        return sum(member.desk.retried for member in self.members)

    def prompt_digest(self) -> str | None:
        """Over the members': all are shown the same."""
        found = [digest for member in self.members if (digest := member.desk.prompt_digest())]
        return None if not found else found[0] if len(set(found)) == 1 else combine(members=",".join(found))

    async def ask(self, question: Question) -> Answer:
        """The members' answer; `error` is set where too few answered. Never raises CallError or StopRun."""
        if self.vote == "mean":
            return await self._one(question)
        answers = await asyncio.gather(*(member.desk.ask(question) for member in self.members))
        by_name = dict(zip((member.name for member in self.members), answers, strict=True))
        values = {
            name: answer.value
            for name, answer in by_name.items()
            if answer.value is not None and answer.error is None
        }
        joined = _joined(by_name, self.name)
        enough = len(values) == len(self.members) if self.vote == "veto" else 2 * len(values) > len(self.members)
        if not enough:
            failed = next(answer.error for answer in answers if answer.error is not None or answer.value is None)
            kind = failed.kind if failed is not None else "malformed"
            said = f"{len(values)} of {len(self.members)} members answered: {failed.message if failed else kind}"
            return replace(joined, error=Failure(kind=kind, message=said))
        self.splits += is_split(question, values)
        outcome = voted(question, values, self.vote)
        if outcome.value is None:
            return replace(joined, error=_tied(list(values)))
        return replace(joined, value=outcome.value, error=_tied(outcome.tied) if outcome.tied else None)

    async def _one(self, question: Question) -> Answer:
        """One member's answer, in whose turn this repeat is."""
        turn, index = divmod(question.repeat - 1, len(self.members))
        return await self.members[index].desk.ask(replace(question, repeat=turn + 1))


def _tied(between: Sequence[str]) -> Failure:
    return Failure(kind="tied", message=f"as many votes for one as for another: {', '.join(between)}")


def checked_vote(word: Any) -> Vote:
    """`judge.vote`; null is majority. Raises InputError with the known words."""
    for known in VOTES:
        if word == known or (word is None and known == "majority"):
            return known
    raise InputError("unknown vote", where="judge.vote", expected=f"one of {', '.join(VOTES)}", got=repr(word))


def _joined(by_name: Mapping[str, Answer], name: str) -> Answer:
    """What the members' answers come to but for their verdict: costs, times, and who said what."""
    answers = list(by_name.values())
    said = {
        member: {"value": plain(answer.value)} if answer.error is None else {"error": answer.error.model_dump()}
        for member, answer in by_name.items()
    }
    costs = [answer.cost_usd for answer in answers if answer.calls]
    sources = sorted({answer.cost_source for answer in answers if answer.cost_source})
    times = [answer.latency_s for answer in answers if answer.latency_s is not None]
    return Answer(
        judge=name,
        model=", ".join(answer.model for answer in answers if answer.model) or None,
        raw=json.dumps({"members": said}, ensure_ascii=False),
        usage=total_usage(answer.usage for answer in answers),
        cost_usd=None if any(usd is None for usd in costs) else sum(usd for usd in costs if usd is not None),
        cost_source="+".join(sources) or None,
        latency_s=max(times, default=None),
        asked_at=max((answer.asked_at for answer in answers if answer.asked_at), default=None),
        calls=sum(answer.calls for answer in answers),
    )
