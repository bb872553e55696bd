"""`python -m core.check system=exa`: whether a system or a judge could be asked, and what it says when it is."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from core.config import RunConfig
    from core.judge.question import Question
    from core.model import Submission
    from core.services import Services

HELP: Final = """\
python -m core.check system=NAME [effort=WORD] [judge=NAME] [KEY=VALUE…] [send=true [max_usd=1]]

Says what a run with this system (and this judge) would use: address, key, what the effort sets, what an attempt is
expected to cost, and what is missing. With send=true the smallest real request is sent (the cheapest effort unless
one is given) and what came back is shown; one that is expected to cost more than max_usd dollars is refused.
Nothing is stored; a provider bills the request.

exit code  0 ready (send=true: answered) · 2 something is missing · 3 asked and not answered
"""
#: Short, cheap, answerable from one page, and recognisable in a provider's console.
PROMPT: Final = "In one sentence: what was a sounding lead used for on ships? Name one source with its address."
_SHOWN: Final = 300


def main(argv: Sequence[str] | None = None) -> int:
    """The command; returns the exit code."""
    words = list(sys.argv[1:] if argv is None else argv)
    if any(word in ("--help", "-h") for word in words):
        sys.stdout.write(HELP)
        return 0
    import asyncio

    from core.errors import InputError
    from core.logs import quiet_libraries

    quiet_libraries()
    try:
        most, config = _config(words)
        kinds = [kind for kind in ("system", "judge") if any(word.startswith(f"{kind}=") for word in words)]
        return asyncio.run(_check(config, kinds, most=most))
    except InputError as error:
        sys.stderr.write(f"refused: {error}\n")
        return 2


def _config(words: Sequence[str]) -> tuple[float | None, RunConfig]:
    """What is to be checked, and how many dollars a request may cost; None where none is to be sent.

    The benchmark is whichever is there: nothing of it is asked.
    """
    from core.cmdline import prepare
    from core.compose import add_search_paths, compose, options
    from core.config import RunConfig
    from core.errors import InputError
    from core.plugin_manager import PluginManager

    given = dict(word.split("=", 1) for word in words if word.startswith(("send=", "max_usd=")))
    if given.get("send", "false") not in ("true", "false"):
        raise InputError("not usable", where="send", expected="true or false", got=given["send"])
    try:
        most = float(given.get("max_usd", "1"))
    except ValueError:
        raise InputError("not usable", where="max_usd", expected="dollars", got=given["max_usd"]) from None
    rest = [word for word in words if not word.startswith(("send=", "max_usd="))]
    if not any(word.startswith(("system=", "judge=")) for word in rest):
        raise InputError("what is to be checked?", expected="system=NAME or judge=NAME, for example system=exa")
    add_search_paths(PluginManager.discover())
    if not any(word.startswith("benchmark=") for word in rest):
        rest.insert(0, f"benchmark={options('benchmark')[0]}")
    if not any(word.startswith("system=") for word in rest):
        rest.append("system=replay")
    if not any(word.startswith("judge=") for word in rest):
        rest.append("judge=offline")
    send = given.get("send") == "true"
    tree = compose(prepare(rest))
    if send and tree.get("effort") is None:
        tree["effort"] = _cheapest((tree.get("system") or {}).get("efforts") or {})
    return (most if send else None), RunConfig.from_tree(tree)


def _cheapest(efforts: Mapping[str, Any]) -> str | None:
    """The effort of the lowest expected cost; the first one where none says what it costs."""
    priced = {word: sets.get("estimate_usd") for word, sets in efforts.items()}
    known = {word: usd for word, usd in priced.items() if isinstance(usd, (int, float))}
    return min(known, key=lambda word: known[word]) if known else next(iter(efforts), None)


async def _check(config: RunConfig, kinds: Sequence[str], *, most: float | None) -> int:
    from core.clock import RealClock
    from core.errors import InputError
    from core.plugin_manager import PluginManager
    from core.preflight import missing, money
    from core.setup import make_judge, make_services, make_system

    services = make_services(config, RealClock())
    plugins = PluginManager.discover()
    parts: list[tuple[str, Any, Any]] = []
    if "system" in kinds:
        parts.append(("system", make_system(config, plugins, services), config.system))
    if "judge" in kinds:
        judge = make_judge(config, plugins, services)
        sections = config.judge.member_sections()
        judges = getattr(judge, "judges", {config.judge.name: judge})  # an ensemble's members are asked one by one
        parts += [("judge", one, sections.get(name, config.judge)) for name, one in judges.items()]
    absent: list[str] = []
    try:
        for kind, part, section in parts:
            lacks = missing(part)
            absent += lacks
            facts: dict[str, Any] = {"address": section.base_url or "the provider's own"}
            key = section.api_key_env
            facts["key"] = "none" if key is None else f"{key}, {'set' if services.keys.has(key) else 'not set'}"
            if kind == "system":
                facts |= {"effort": config.effort_word(), **_abilities(part)}
                facts["an attempt costs about"] = money(getattr(part, "estimate_usd", None))
            facts["settings"] = services.keys.redacted(dict(getattr(part, "settings", {})))
            _say(f"{kind} {section.name}", facts)
        for line in absent:
            sys.stdout.write(f"missing: {line}\n")
        if absent:
            return 2
        if most is None:
            sys.stdout.write("nothing was sent; send=true asks for real\n")
            return 0
        for kind, part, section in parts:
            usd = getattr(part, "estimate_usd", None) if kind == "system" else None
            if usd is not None and usd > most:
                said = f"system {section.name} is expected to cost about {money(usd)}, more than max_usd={most:g}"
                raise InputError(said, expected=f"max_usd={usd:g}, or a cheaper effort")
        answered = [await _asked(kind, part, services) for kind, part, _ in parts]
        return 0 if all(answered) else 3
    finally:
        for _, each, _ in parts:
            close = getattr(each, "aclose", None)
            if close is not None:
                await close()
        await services.http.aclose()


def _abilities(system: Any) -> dict[str, Any]:
    """What the system can beside answering; unknown for one that is no research API."""
    provider = getattr(system, "provider", None)
    found = {"blocks sites": getattr(system, "can_block", False)}
    if provider is not None:
        found |= {"can be cancelled": provider.can_cancel, "finds a lost job": provider.can_find}
    return {name: "yes" if able else "no" for name, able in found.items()}


async def _asked(kind: str, part: Any, services: Services) -> bool:
    """Send the smallest request and show what came; whether it was answered."""
    from core.errors import CallError
    from core.model import GRADED, Task

    sys.stdout.write(f"asking the {kind} …\n")
    try:
        if kind == "system":
            submission = await part.solve(Task(id="check", prompt=PROMPT), 1)
            _say("answered", services.keys.stripped(_of_submission(submission)))
            return submission.settled().status in GRADED
        answer = await part.ask(_question())
        shown = {"answer": dict(answer.value or {}), "usage": answer.usage, "cost": answer.cost_usd}
        _say("answered", services.keys.stripped({name: str(value) for name, value in shown.items()}))
    except CallError as error:
        _say("not answered", {"kind": error.kind, "message": services.keys.redact(error.failure().message)})
        return False
    return answer.error is None


def _of_submission(submission: Submission) -> Mapping[str, Any]:
    from core.preflight import money

    text = " ".join((submission.text or "").split())
    return {
        "status": submission.settled().status,
        "text": text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…",
        "citations": ", ".join(citation.url for citation in submission.citations[:5]) or "none",
        "usage": submission.usage.model_dump(exclude_none=True) if submission.usage else "unknown",
        "cost": f"{money(submission.cost_usd)} ({submission.cost_source or 'unknown'})",
        "latency": "unknown" if submission.latency_s is None else f"{submission.latency_s:.1f} s",
        "said to be": submission.settings.get("echoed"),
        "error": submission.error.message if submission.error else "none",
    }


def _question() -> Question:
    """A question with an obvious answer, in the form of a benchmark's."""
    from core.judge.question import Question

    return Question(
        task_id="check",
        attempt=1,
        repeat=1,
        units=("criterion/check",),
        system="You decide whether a response states a fact.",
        context="RESPONSE: A sounding lead measures the depth of water.",
        ask="Fact: the lead measures depth. Does the response state it?",
        schema={
            "type": "object",
            "properties": {"explanation": {"type": "string"}, "met": {"type": "boolean"}},
            "required": ["explanation", "met"],
            "additionalProperties": False,
        },
        schema_name="stated",
    )


def _say(title: str, facts: Mapping[str, Any]) -> None:
    sys.stdout.write(f"{title}\n")
    width = max(len(name) for name in facts)
    for name, value in facts.items():
        sys.stdout.write(f"  {name:<{width}}  {value}\n")


if __name__ == "__main__":
    sys.exit(main())
