"""One run, from a composed tree to an exit code.

    prepare (refuse early) ─▶ plan printed ─▶ folder, store, budget ─▶ engine ─▶ files ─▶ exit code

Exit codes: 0 all expected numbers present; 2 refused, nothing sent; 3 some number missing; 4 stopped
by the budget; 130 interrupted; 1 a bug of ours. A job never ends the process: it returns its code and
writes it into run.json.
"""

from __future__ import annotations

import asyncio
import platform
import signal
import threading
import traceback
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from core import __version__, preflight
from core.budget import Budget
from core.calls import RetryPolicy
from core.config import RunConfig
from core.engine import Engine, Outcome
from core.errors import InputError, LeadlineError
from core.judge.desk import Tools
from core.limiter import Limiter
from core.logs import file_logger, quiet_libraries
from core.plugin_manager import PluginManager
from core.preflight import money
from core.progress import Display
from core.report import html as report
from core.report.console import Console
from core.runfolder import (
    LOG,
    RUN,
    SCORES,
    SUMMARY,
    TASKS,
    RunFolder,
    default_name,
    free_folder,
    read_json,
    safe_word,
    score_row,
    task_row,
)
from core.setup import Plan, describe, prepare
from core.solving import Solver
from core.stop import Stop, StoppableClock
from core.store import Role, Store
from core.summary import is_complete, summarise

OK, BUG, REFUSED, MISSING, STOPPED, INTERRUPTED = 0, 1, 2, 3, 4, 130
#: The worst first.
WORST: Final = (INTERRUPTED, BUG, STOPPED, REFUSED, MISSING, OK)
DEFAULT_PARENT: Final = Path("runs")
DEFAULT_STORE: Final = DEFAULT_PARENT / "store.sqlite"


@dataclass(frozen=True, slots=True)
class SweepJob:
    """A job's place in a sweep."""

    folder: Path
    number: int


def worst(codes: Sequence[int]) -> int:
    """The exit code of several jobs; no job at all is a bug."""
    return min(codes, key=WORST.index) if codes else BUG


def run(
    tree: Mapping[str, Any],
    plugins: PluginManager,
    *,
    sweep: SweepJob | None = None,
    console: Console | None = None,
) -> int:
    """Run one configuration; returns the exit code and never raises."""
    console = console or Console()
    quiet_libraries()
    try:
        config = RunConfig.from_tree(tree)
        plan = prepare(config, plugins)
        console.plan(describe(plan), plan.warnings)
        preflight.check_money(config, plan.estimate)
        if config.dry_run:
            console.say("dry run: nothing was sent, nothing was written")
            return OK
        store_path = _store_path(config, sweep)
        store = _open_store(plan, store_path)
        try:
            return _run(plan, _folder(plan, sweep), store, store_path, console)
        finally:
            if store is not None:
                store.close()
    except InputError as error:
        console.refused(str(error))
        _note_refusal(tree, sweep, str(error))
        return REFUSED
    except KeyboardInterrupt:
        console.say("interrupted")
        return INTERRUPTED
    except LeadlineError as error:
        console.failed(str(error))
        return BUG
    except Exception:  # noqa: BLE001 - a bug of ours must not end a sweep
        console.failed(traceback.format_exc())
        return BUG


def job_folder(tree: Mapping[str, Any], sweep: SweepJob) -> Path:
    """`<n>-<benchmark>-<system>-<effort>-<judge>` inside the sweep's folder."""
    words = [safe_word(word) for word in _names(tree).values() if word]
    return sweep.folder / "-".join([str(sweep.number), *words])


def _names(tree: Mapping[str, Any]) -> dict[str, str | None]:
    """The names in a folder's name, from a tree that need not be valid."""

    def name(section: str, *keys: str) -> str | None:
        part = tree.get(section)
        found = [part.get(key) for key in keys] if isinstance(part, Mapping) else []
        return next((str(word) for word in found if word), None)

    effort = tree.get("effort") or name("system", "default_effort")
    return {
        "benchmark": name("benchmark", "name"),
        "system": name("system", "label", "name"),
        "effort": str(effort) if effort else "default",
        "judge": name("judge", "name"),
    }


def _folder(plan: Plan, sweep: SweepJob | None) -> Path:
    names = _names(plan.config.model_dump())
    if sweep is not None:
        return job_folder(plan.config.model_dump(), sweep)
    if plan.config.out is not None:
        return Path(plan.config.out)
    return free_folder(DEFAULT_PARENT, default_name(plan.services.clock.now(), *names.values()))


def _note_refusal(tree: Mapping[str, Any], sweep: SweepJob | None, message: str) -> None:
    """A refused job of a sweep says so in its folder; a refused run leaves nothing behind."""
    if sweep is None or tree.get("dry_run"):
        return
    path = job_folder(tree, sweep)
    try:
        folder = RunFolder(path)
    except InputError:
        return
    try:
        if read_json(path / RUN) is None:
            folder.write_json(RUN, "run", {"refused": message, "exit_code": REFUSED})
    finally:
        folder.close()


def _open_store(plan: Plan, path: Path) -> Store | None:
    """The store, where there is something to keep: nothing is written for a replay before an offline judge."""
    keeps = any(getattr(part, "stored", True) for part in (plan.system, plan.judge))
    return Store(path) if keeps else None


def make_store(config: RunConfig) -> None:
    """Make a job's store before several processes open it: SQLite may refuse one that another is just making."""
    Store(_store_path(config)).close()


def _store_path(config: RunConfig, sweep: SweepJob | None = None) -> Path:
    """The store as configured. A job that a launcher started on another machine keeps to its own folder.

    Machines must not share the file, and a job that is started again must find what it had, wherever it runs.
    """
    if config.launched_on in (None, platform.node()) or config.out is None:
        return Path(config.store) if config.store else DEFAULT_STORE
    own = Path(config.out) if sweep is None else job_folder(config.model_dump(), sweep)
    return own / DEFAULT_STORE.name


def _run(plan: Plan, path: Path, store: Store | None, store_path: Path, console: Console) -> int:
    folder = RunFolder(path)
    try:
        digest = plan.config.digest()
        known = folder.lock_config(digest, plan.config.model_dump(mode="json"))
        facts = _facts(plan, known, digest)
        folder.write_json(RUN, "run", facts)
        folder.write_rows(TASKS, "task", map(task_row, plan.tasks))
        with (path / LOG).open("a", encoding="utf-8") as log_file:
            log = file_logger(log_file, plan.services.keys, run=facts["run_id"])
            log.info("started", **describe(plan))
            code, summary = asyncio.run(_work(plan, folder, facts, store, store_path, log, console))
            log.info("finished", exit_code=code)
        console.result(summary, code, path, _work_done(facts))
        return code
    finally:
        folder.close()


async def _work(
    plan: Plan,
    folder: RunFolder,
    facts: dict[str, Any],
    store: Store | None,
    store_path: Path,
    log: Any,
    console: Console,
) -> tuple[int, dict[str, Any]]:
    config, clock, stop = plan.config, plan.services.clock, Stop()
    try:
        engine, budget = _engine(plan, folder, facts, log, stop, store)
        started = datetime.fromisoformat(facts["started_at"]).timestamp()
        plan.pages.open(store=store_path, clock=StoppableClock(clock, stop), stop=stop, started=started)
        for problem in plan.plugins.observe("run_started", run=facts):
            log.warning("observer failed", problem=problem)
        _on_interrupt(engine)
        limiter = _limiter(plan, plan.judge, config.judge)
        async with Display(engine.progress, budget, limiter, console, style=config.progress, clock=clock):
            outcome = await engine.run()
        return _finish(plan, folder, facts, engine, budget, outcome, log, console)
    finally:
        await plan.aclose()


def _engine(
    plan: Plan, folder: RunFolder, facts: Mapping[str, Any], log: Any, stop: Stop, store: Store | None
) -> tuple[Engine, Budget]:
    config, services, run_id = plan.config, plan.services, facts["run_id"]
    budget = Budget(
        config.budget.usd,
        config.budget.judge_usd,
        spent_system=_spent_before(facts, store, "system"),
        spent_judge=_spent_before(facts, store, "judge"),
    )
    clock = StoppableClock(services.clock, stop)
    if services.jobs is not None:
        services.jobs.open(store, run_id)
    plan.desk.open(
        Tools(
            store=store,
            limiter=_limiter(plan, plan.judge, config.judge),
            budget=budget,
            clock=clock,
            rng=services.rng,
            keys=services.keys,
            stop=stop,
            run=run_id,
        )
    )
    solver = Solver(
        plan.system,
        name=config.system.name,
        effort=config.effort_word(),
        width=config.system.max_in_flight,
        policy=RetryPolicy(config.system.retry.attempts, config.system.retry.max_wait_s, "system"),
        retry_failed=config.retry == "failed",
        store=store,
        limiter=_limiter(plan, plan.system, config.system),
        budget=budget,
        clock=clock,
        rng=services.rng,
        keys=services.keys,
        stop=stop,
        run=run_id,
        log=log,
        jobs=services.jobs,
    )
    engine = Engine(
        config, plan.tasks, plan.repeats, solver, plan.grader, plan.desk, folder, plan.plugins, stop, log
    )
    return engine, budget


def _spent_before(facts: Mapping[str, Any], store: Store | None, role: Role) -> float:
    """What earlier starts of the folder cost: by its run.json or, where a start was killed, by the store."""
    noted = float((facts.get("spent") or {}).get(role, 0.0))
    return max(noted, store.spent(facts["run_id"], role).usd if store else 0.0)


def _limiter(plan: Plan, part: Any, section: Any) -> Limiter:
    account = getattr(part, "account", None) or section.name
    return plan.services.limiter.get(
        account,
        max_in_flight=section.max_in_flight,
        requests_per_minute=section.requests_per_minute,
        long_jobs=getattr(part, "long_jobs", False),
    )


def _on_interrupt(engine: Engine) -> None:
    """The first Ctrl-C (or TERM) ends the run cleanly; the second one ends the process.

    Only the main thread may handle signals: a run in another thread leaves them to whoever started it.
    """
    if threading.current_thread() is not threading.main_thread():
        return
    loop = asyncio.get_running_loop()

    def handle(number: int) -> None:
        loop.remove_signal_handler(number)
        engine.interrupt()

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, handle, number)


def _finish(
    plan: Plan,
    folder: RunFolder,
    facts: dict[str, Any],
    engine: Engine,
    budget: Budget,
    outcome: Outcome,
    log: Any,
    console: Console,
) -> tuple[int, dict[str, Any]]:
    """Write the files of a run and find its exit code."""
    warnings = list(plan.warnings)
    if engine.solver.retried or plan.desk.retried:
        warnings.append(
            f"retry=failed: {engine.solver.retried} submissions and {plan.desk.retried} judgements that the"
            " provider had refused or failed were asked for again"
        )
    stop = engine.stop.reason
    if stop is not None:
        warnings.append(f"the run was stopped: {plan.services.keys.redact(str(stop))}")
        log.error("stopped", kind=stop.kind, message=stop.message)
        console.failed(plan.services.keys.redact(str(stop)))
    facts["prompt_digest"] = plan.judge_facts().prompt_digest
    summary = summarise(plan.config, outcome.scores, outcome.totals, plan.aggregator, plan.judge_facts(), warnings)
    folder.finish_rows()
    folder.write_rows(SCORES, "score", map(score_row, outcome.scores))
    folder.write_json(SUMMARY, "summary", summary)
    code = _exit_code(plan.config, summary, stop.kind if stop else None)
    facts |= {
        "finished_at": _iso(plan),
        "exit_code": code,
        "asked": plan.desk.asked,
        "reused": plan.desk.reused,
        "solved": engine.progress.solved - engine.progress.solved_reused,
        "solved_reused": engine.progress.solved_reused,
        "spent": budget.spent_by_role(),
        "warnings": warnings,
    }
    folder.write_json(RUN, "run", facts)
    if (unwritten := report.written(folder.path, plan.grader)) is not None:
        log.warning("no report", problem=unwritten)
    for problem in plan.plugins.observe("run_finished", summary=summary, exit_code=code):
        log.warning("observer failed", problem=problem)
    return code, summary


def _work_done(facts: Mapping[str, Any]) -> str:
    """What this start did itself, and what it found in the store."""
    judged = f"{facts.get('asked', 0):,} judgements asked for, {facts.get('reused', 0):,} from the store"
    solved = f"{facts.get('solved', 0):,} submissions solved, {facts.get('solved_reused', 0):,} from the store"
    spent = money(sum((facts.get("spent") or {}).values()))
    return f"this start: {solved}; {judged}; spent on this folder so far {spent}"


def _exit_code(config: RunConfig, summary: Mapping[str, Any], stopped: str | None) -> int:
    if stopped == "interrupted":
        return INTERRUPTED
    if stopped == "budget":
        return STOPPED
    return OK if is_complete(summary, config.missing_share()) else MISSING


def _facts(plan: Plan, known: Mapping[str, Any] | None, digest: str) -> dict[str, Any]:
    """What run.json says when the run starts; `run_id` outlives restarts of the same folder."""
    known = known or {}
    config = plan.services.keys.redacted(plan.config.model_dump(mode="json"))
    return {
        "run_id": known.get("run_id") or uuid.uuid4().hex,
        "leadline": __version__,
        "config_digest": digest,
        "shared_digest": plan.config.digest(without_shard=True),
        "tasks_digest": plan.tasks_digest(),
        "started_at": known.get("started_at") or _iso(plan),
        "starts": int(known.get("starts", 0)) + 1,
        "spent": known.get("spent"),
        "exit_code": None,
        "judge_settings": dict(plan.judge_facts().settings),
        "plan": dict(describe(plan)),
        "ignored_judgements": {"filtered": plan.ignored.filtered, "foreign": plan.ignored.foreign},
        "plugins": [
            {"name": plugin.name, "source": plugin.source, "version": plugin.version, "problem": plugin.problem}
            for plugin in plan.plugins.plugins
        ],
        "config": config,
    }


def _iso(plan: Plan) -> str:
    return datetime.fromtimestamp(plan.services.clock.now(), UTC).isoformat(timespec="seconds")
