"""From a typed configuration to the parts of a run, with nothing sent and nothing written.

Everything that can be refused is refused here: unknown names, faulty files, tasks that match nothing,
recorded judgements that don't fit, missing keys, packages and files (all at once), money.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from core import preflight
from core.calls import RetryPolicy
from core.clock import Clock, RealClock
from core.config import ENSEMBLE, JudgeSection, RunConfig, same_settings
from core.digest import json_digest, plain
from core.errors import CallError, InputError
from core.filters import select
from core.http import Http
from core.jobs.ledger import Jobs
from core.judge.desk import Desk
from core.judge.panel import Ensemble, Member, Panel, checked_vote
from core.limiter import Limiters
from core.logs import silent_logger
from core.model import Task
from core.pages.service import PageService
from core.parts import Aggregator, Grader, Judge, System, TaskLoader
from core.plugin_manager import PluginManager
from core.secrets import Keys
from core.services import Services
from core.summary import JudgeFacts


@dataclass(frozen=True)
class Plan:
    """All that a run needs, checked. `source_tasks` counts the source, `tasks` is what was chosen of it."""

    config: RunConfig
    plugins: PluginManager
    services: Services
    tasks: tuple[Task, ...]
    source_tasks: int
    system: System
    judge: Judge
    desk: Desk | Panel
    grader: Grader
    pages: PageService
    aggregator: Aggregator
    repeats: int
    estimate: preflight.Estimate
    warnings: tuple[str, ...]
    ignored: preflight.Ignored

    def tasks_digest(self) -> str:
        """What the chosen tasks are, to the letter."""
        return json_digest([json_digest(plain(task.model_dump())) for task in self.tasks])

    def judge_facts(self) -> JudgeFacts:
        section = self.config.judge
        return JudgeFacts(
            section.name,
            section.model,
            self.services.keys.redacted(plain(getattr(self.judge, "settings", {}))),
            self.desk.prompt_digest(),
            self.repeats,
            section.family,
        )

    async def aclose(self) -> None:
        """Close what the parts and the services hold open."""
        for part in (self.system, self.judge):
            close = getattr(part, "aclose", None)
            if close is not None:
                await close()
        await self.pages.aclose()
        await self.services.http.aclose()


def prepare(config: RunConfig, plugins: PluginManager, clock: Clock | None = None) -> Plan:
    """Build and check the parts of a run; raises InputError."""
    pages = PageService(config.pages)
    services = replace(make_services(config, clock or RealClock()), pages=pages)
    system, judge = make_asked(config, plugins, services)
    if found := preflight.missing(system, judge, pages):
        raise InputError(
            "; ".join(found) + _would_cost(config, plugins, services, system, judge), where="can't start"
        )
    loader = make_loader(config, plugins, services)
    source = load_tasks(config, loader)
    tasks = _select(config, source)
    check_tasks = getattr(system, "check_tasks", None)
    if check_tasks is not None:
        check_tasks({task.id for task in source})

    repeats = _repeats(config, judge)
    desk = make_desk(config, judge, services)
    grader = make_grader(config, plugins, services, desk)
    warnings = [*_part_warnings(judge, clock=services.clock), *_part_warnings(system, clock=services.clock)]
    warnings += [
        *_part_warnings(loader, clock=services.clock),
        *_unblocked(config, tasks, system),
        *_own_family(config),
        *_same_effort(config),
        *pages.warnings(),
    ]
    if not tasks:
        warnings.append("this shard has no task: there are fewer tasks than shards")
    rows = getattr(judge, "rows", None)
    ignored = preflight.Ignored()
    if rows is not None:
        path = str(config.judge.plain().get("path"))
        ignored = preflight.check_recorded(
            rows(),
            tasks,
            grader,
            source_ids={task.id for task in source},
            attempts=config.attempts,
            repeats=repeats,
            path=path,
        )
        if ignored.foreign:
            warnings.append(f"{ignored.foreign} recorded judgements belong to no task, attempt or repeat: ignored")
    cost = preflight.estimate(config, tasks, system=system, judge=judge, grader=grader, repeats=repeats)
    return Plan(
        config=config,
        plugins=plugins,
        services=services,
        tasks=tuple(tasks),
        source_tasks=len(source),
        system=system,
        judge=judge,
        desk=desk,
        grader=grader,
        pages=pages,
        aggregator=make_aggregator(config, plugins, services),
        repeats=repeats,
        estimate=cost,
        warnings=tuple(warnings),
        ignored=ignored,
    )


def check_parts(config: RunConfig, plugins: PluginManager) -> None:
    """Raise InputError for what a run's system, judge and pages lack, without reading its tasks."""
    services = make_services(config, RealClock())
    system, judge = make_asked(config, plugins, services)
    if found := preflight.missing(system, judge, PageService(config.pages)):
        raise InputError("; ".join(found), where="can't start")


def make_asked(config: RunConfig, plugins: PluginManager, services: Services) -> tuple[System, Judge]:
    """The system and the judge."""
    return make_system(config, plugins, services), make_judge(config, plugins, services)


def make_system(config: RunConfig, plugins: PluginManager, services: Services) -> System:
    """The system, with what the chosen effort sets."""
    section = {**config.system.plain(), "effort_settings": config.effort_settings()}
    system: System = plugins.factory("system", config.system.adapter)(section, services)
    return system


def make_judge(config: RunConfig, plugins: PluginManager, services: Services) -> Judge:
    """The judge; an ensemble is made of its members."""
    section = config.judge
    if section.provider != ENSEMBLE:
        judge: Judge = plugins.factory("judge", section.provider)(section.plain(), services)
        return judge
    judges = {
        name: plugins.factory("judge", member.provider)(member.plain(), services)
        for name, member in section.member_sections().items()
    }
    return Ensemble(judges, checked_vote(section.plain().get("vote")))


def list_tasks(config: RunConfig, plugins: PluginManager) -> tuple[list[Task], Grader]:
    """The tasks that a configuration chooses, and the grader that knows what they expect."""
    services = make_services(config, RealClock())
    tasks = _select(config, load_tasks(config, make_loader(config, plugins, services)))
    return tasks, make_grader(config, plugins, services, None)


def _select(config: RunConfig, source: Sequence[Task]) -> list[Task]:
    return select(
        source,
        patterns=config.tasks,
        where=config.where,
        sample=config.sample,
        seed=config.seed,
        limit=config.limit,
        shard=config.shard,
    )


def make_services(config: RunConfig, clock: Clock) -> Services:
    return Services(
        http=Http(clock),
        limiter=Limiters(clock),
        clock=clock,
        rng=random.Random(config.seed),  # noqa: S311 - jitter and draws, not secrets
        log=silent_logger(),
        keys=Keys(),
        effort=config.effort_word(),
        jobs=Jobs(clock),
    )


def make_loader(config: RunConfig, plugins: PluginManager, services: Services) -> TaskLoader:
    loader: TaskLoader = plugins.factory("task loader", config.benchmark.loader)(
        config.benchmark.plain(), services
    )
    return loader


def load_tasks(config: RunConfig, loader: TaskLoader) -> list[Task]:
    """Every task of the source, numbered; ids must differ."""
    tasks: list[Task] = []
    seen: set[str] = set()
    for task in loader.load():
        if task.id in seen:
            raise InputError(f"task id {task.id!r} is given twice", where=config.benchmark.source)
        seen.add(task.id)
        tasks.append(task.model_copy(update={"index": len(tasks)}))
    if not tasks:
        raise InputError("the source has no task", where=config.benchmark.source)
    return tasks


def make_desk(config: RunConfig, judge: Judge, services: Services) -> Desk | Panel:
    """Where graders ask: the judge's desk, or the desks of an ensemble's members as one."""
    if not isinstance(judge, Ensemble):
        return _desk(config, judge, config.judge)
    members = [
        Member(name, judge.judges[name], section, _desk(config, judge.judges[name], section))
        for name, section in config.judge.member_sections().items()
    ]
    return Panel(config.judge.name, members, judge.vote, limiters=services.limiter)


def _desk(config: RunConfig, judge: Judge, section: JudgeSection) -> Desk:
    return Desk(
        judge,
        name=section.name,
        width=section.max_in_flight,
        policy=RetryPolicy(section.retry.attempts, section.retry.max_wait_s, "judge"),
        epoch=section.epoch,
        retry_failed=config.retry == "failed",
    )


def make_grader(
    config: RunConfig, plugins: PluginManager, services: Services, desk: Desk | Panel | None
) -> Grader:
    grader: Grader = plugins.factory("grader", config.benchmark.grader)(
        config.benchmark.plain(), replace(services, judge=desk)
    )
    return grader


def make_aggregator(config: RunConfig, plugins: PluginManager, services: Services) -> Aggregator:
    aggregator: Aggregator = plugins.factory("aggregator", config.benchmark.aggregator)(
        config.benchmark.plain(), services
    )
    return aggregator


def _part_warnings(part: Any, *, clock: Clock) -> Sequence[str]:
    """What a part wants every report to say. `warnings(today)` is optional."""
    warn = getattr(part, "warnings", None)
    return list(warn(datetime.fromtimestamp(clock.now(), UTC).date())) if warn is not None else []


def _own_family(config: RunConfig) -> list[str]:
    """Whether the judge may favour its own kin: such scores need a mark."""
    family = config.system.family
    judges = [config.judge, *config.judge.member_sections().values()]
    if family is None or family not in [judge.family for judge in judges]:
        return []
    return [f"judge and system are both of the family {family}: a judge may favour its own"]


def _unblocked(config: RunConfig, tasks: Sequence[Task], system: System) -> list[str]:
    """Whether the system may come upon the benchmark's own pages."""
    n_blocked = max((len(task.blocked) for task in tasks), default=0)
    if not n_blocked or not getattr(system, "stored", True) or getattr(system, "can_block", False):
        return []
    advice = "see the contamination flags"
    name = config.system.name
    return [
        f"system {name} can't be told to leave out the benchmark's own pages ({n_blocked} addresses): {advice}"
    ]


def _same_effort(config: RunConfig) -> list[str]:
    """Other effort words that set what the chosen one sets: their runs are repetitions, not levels."""
    word, efforts = config.effort_word(), config.system.efforts
    twins = [other for other in same_settings(efforts or {}).get(word or "", ()) if other != word]
    if not twins:
        return []
    return [f"effort {word} of system {config.system.name} sets the same as effort {' and '.join(twins)}"]


def _repeats(config: RunConfig, judge: Judge) -> int:
    """How often each question is asked; with vote=mean, by each member."""
    repeats = config.judge.repeats or getattr(judge, "highest_repeat", None) or config.benchmark.repeats
    return repeats * len(judge.judges) if isinstance(judge, Ensemble) and judge.vote == "mean" else repeats


def _would_cost(
    config: RunConfig, plugins: PluginManager, services: Services, system: System, judge: Judge
) -> str:
    """What a run that can't start would have cost, as far as that can be told."""
    repeats = _repeats(config, judge)
    try:
        tasks = _select(config, load_tasks(config, make_loader(config, plugins, services)))
        grader = make_grader(config, plugins, services, make_desk(config, judge, services))
        cost = preflight.estimate(config, tasks, system=system, judge=judge, grader=grader, repeats=repeats)
    except (InputError, CallError):  # what is missing may be what the tasks or the prices need
        each = getattr(system, "estimate_usd", None)
        return "" if each is None else f". Solving would cost about {preflight.money(each)} a task"
    solving, judging = preflight.money(cost.solving_usd), preflight.money(cost.judging_usd)
    return f". It would cost: solving {solving}, judging {judging} ({len(tasks)} tasks)"


def describe(plan: Plan) -> Mapping[str, Any]:
    """The plan in numbers, for people and for run.json."""
    config = plan.config
    expected = sum(plan.grader.expected(task, None) for task in plan.tasks) * plan.repeats * config.attempts
    return {
        "benchmark": config.benchmark.name,
        "system": config.system.label or config.system.name,
        "effort": config.effort_word(),
        "judge": config.judge.name,
        "tasks": len(plan.tasks),
        "of": plan.source_tasks,
        "attempts": config.attempts,
        "repeats": plan.repeats,
        "submissions": len(plan.tasks) * config.attempts,
        "judgements": expected,
        "solving_usd": plan.estimate.solving_usd,
        "judging_usd": plan.estimate.judging_usd,
    }
