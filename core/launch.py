"""From the words of `core.run` to jobs: one in this process, or a sweep through Hydra's launchers.

Every combination of a sweep is composed and checked before the first job starts. Jobs write their exit code
into run.json, because a launcher may run them elsewhere; the process ends with the worst of them.
"""

from __future__ import annotations

import io
import os
import platform
import signal
import sys
import threading
import time
from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Final

from core.cmdline import OPTIONS_WITH_VALUE, is_sweep, prepare, quoted
from core.compose import (
    CONFIG_MODULE,
    CONFIG_NAME,
    VERSION_BASE,
    add_search_paths,
    check_not_hidden,
    compose,
    expand,
    plain_tree,
)
from core.config import RunConfig
from core.errors import InputError
from core.plugin_manager import PluginManager

if TYPE_CHECKING:
    from omegaconf import DictConfig

    from core.sweep import Job

OK, BUG, REFUSED, INTERRUPTED = 0, 1, 2, 130
#: Hydra's launcher that runs one job after the other in this process.
IN_PROCESS: Final = "basic"
#: This process's number while it waits for a sweep: a job that finds its own there has not left the process,
#: whatever the launcher (joblib with one worker has none).
_sweeping: Final[set[int]] = set()
OPTIONS: Final = (
    *OPTIONS_WITH_VALUE,
    "-m",
    "--multirun",
    "--hydra-help",
    "--resolve",
    "-r",
    "--help",
    "-h",
)
#: With these Hydra prints something instead of running a job.
_HYDRA_PRINTS: Final = ("--cfg", "-c", "--info", "-i", "--hydra-help")


def launch(argv: Sequence[str]) -> int:
    """Run what the words say; returns the exit code."""
    _accept_any_letter()
    try:
        check_not_hidden()
        words = prepare(argv)
        plugins = PluginManager.discover()
        add_search_paths(plugins)
        config_dir, overrides = _split(words)
        if is_sweep(words):
            return _sweep(overrides, config_dir, plugins)
        tree = compose(overrides, config_dir)
        if any(word.split("=")[0] in _HYDRA_PRINTS for word in words):
            _hydra(words)
            return 0
    except InputError as error:
        sys.stderr.write(f"refused: {error}\n")
        return REFUSED
    from core.app import run

    return run(tree, plugins)


def _split(words: Sequence[str]) -> tuple[str | None, list[str]]:
    """The value of --config-dir, and the words that are no options."""
    config_dir, overrides, rest = None, [], iter(words)
    for word in rest:
        if word in ("--config-dir", "-cd"):
            config_dir = next(rest, None)
        elif word.startswith("--config-dir="):
            config_dir = word.partition("=")[2]
        elif word in OPTIONS_WITH_VALUE:
            next(rest, None)
        elif word.startswith("-"):
            _check_option(word)
        else:
            overrides.append(word)
    if config_dir is not None and not Path(config_dir).is_dir():
        raise InputError("not a folder", where="--config-dir", got=config_dir)
    return (str(Path(config_dir).resolve()) if config_dir else None), overrides


def _check_option(word: str) -> None:
    """Refuse an option that nobody knows: a `--dry-run` must not become a run."""
    option = word.partition("=")[0]
    if option in OPTIONS:
        return
    key = option.lstrip("-").replace("-", "_")
    close = get_close_matches(option, OPTIONS, n=1)
    hint = f"{key}=…" if key in RunConfig.model_fields else close[0] if close else ""
    raise InputError(
        f"unknown option {option!r}" + (f"; did you mean {hint!r}?" if hint else ""),
        expected=f"key=value, or one of {', '.join(OPTIONS)}",
    )


def _sweep(overrides: list[str], config_dir: str | None, plugins: PluginManager) -> int:
    from core.app import SweepJob, job_folder, make_store, run, worst
    from core.report.console import Console
    from core.runfolder import RUN, default_name, free_folder, read_json
    from core.setup import check_parts
    from core.sweep import choices, read_job, same_runs, told

    words = _combinations(overrides)
    trees = [compose(job, config_dir) for job in words]
    configs = [RunConfig.from_tree(tree) for tree in trees]
    chosen = choices(words)
    console = Console()
    for numbers in same_runs(configs):
        names = [f"{number} ({told(chosen[number])})" if chosen[number] else str(number) for number in numbers]
        console.warn([f"jobs {' and '.join(names)} are the same run: what differs changes no answer and no task"])
    if any(config.dry_run for config in configs):
        return worst([run(tree, plugins) for tree in trees])
    outs = {config.out for config in configs}
    if len(outs) > 1:
        raise InputError("out is the folder of the whole sweep", where="out", expected="one folder")
    out = outs.pop()
    folder = Path(out) if out else free_folder(Path("runs"), default_name(time.time(), "sweep"))
    folders = [job_folder(tree, SweepJob(folder, number)) for number, tree in enumerate(trees)]
    for path, config in zip(folders, configs, strict=True):
        known = read_json(path / RUN) or {}
        if known.get("config_digest") not in (None, config.digest()):
            raise InputError("the folder holds a job of another sweep", where=str(path), expected="another out=")
    for config in configs:
        check_parts(config, plugins)  # a key that the last job lacks is told before the first one is paid for
    folder.mkdir(parents=True, exist_ok=True)
    options = ["--config-dir", config_dir] if config_dir else []
    # Hydra notes the sweep in a multirun.yaml: it belongs into the sweep's folder
    places = [
        f"out={quoted(str(folder))}",
        f"launched_on={quoted(platform.node())}",
        f"hydra.sweep.dir={quoted(str(folder))}",
    ]
    if _leaves_process(overrides):
        for config in configs:
            make_store(config)
        if all(config.progress == "auto" for config in configs):
            places.append("progress=plain")  # live lines of several processes would write over each other
    kept = [word for word in overrides if not word.startswith("out=")]
    ended = _run_jobs(["--multirun", *options, *kept, *places])
    jobs = [
        read_job(path, choice, config.benchmark.headline)
        for path, choice, config in zip(folders, chosen, configs, strict=True)
    ]
    _finish_sweep(folder, jobs)
    return worst([ended, *(BUG if job.exit_code is None else job.exit_code for job in jobs)])


def _combinations(overrides: list[str]) -> list[list[str]]:
    from hydra.errors import HydraException

    try:
        return list(expand(overrides))
    except HydraException as error:
        # Hydra can expand a glob, but only where the options of a group are known
        raise InputError(
            f"a sweep can't be expanded: {error}", expected="the values, with commas: judge=gpt,sonnet"
        ) from None


def _leaves_process(overrides: Sequence[str]) -> bool:
    """Whether the jobs run in processes of their own."""
    chosen = [word.partition("=")[2].strip("'\"") for word in overrides if word.startswith("hydra/launcher=")]
    return bool(chosen) and chosen[-1] != IN_PROCESS


def _run_jobs(words: Sequence[str]) -> int:
    """Let Hydra run the jobs. The code of how that ended; a job that failed has a code of its own."""
    before = None
    _sweeping.add(os.getpid())
    if threading.current_thread() is threading.main_thread():
        # a launcher kills its workers on Ctrl-C; ended by TERM without a word, it would leave them working
        before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        _hydra(words)
    except KeyboardInterrupt:
        return INTERRUPTED
    except SystemExit:  # the launcher failed (a worker died, a cluster is gone), and Hydra has said how
        sys.stderr.write("the launcher gave up; the same command with the same out= does what is missing\n")
        return BUG
    finally:
        _sweeping.clear()
        if before is not None:
            signal.signal(signal.SIGTERM, before)
    return OK


def _finish_sweep(folder: Path, jobs: Sequence[Job]) -> None:
    """What a sweep leaves when its jobs have ended, well or not: sweep.json, the table, how its runs compare."""
    from core import sweep
    from core.comparison import write as compare
    from core.report.console import Console

    sweep.write(folder, jobs)
    console = Console()
    console.sweep(jobs, folder)
    for said in compare(folder, [folder / job.folder for job in jobs if job.headline is not None]):
        console.say(said)


def _hydra(words: Sequence[str]) -> None:
    import hydra

    sys.argv = [sys.argv[0], *words]
    hydra.main(config_path=f"pkg://{CONFIG_MODULE}", config_name=CONFIG_NAME, version_base=VERSION_BASE)(_job)()


def _job(config: DictConfig) -> None:
    run_job(config)


def run_job(config: DictConfig) -> int:
    """One job of a sweep; writes its exit code into its run.json and never ends the process.

    An interrupted job raises KeyboardInterrupt where the other jobs wait in the same process: it ends the sweep.
    """
    from hydra.core.hydra_config import HydraConfig

    from core.app import SweepJob, run

    hydra = HydraConfig.get()
    in_process = os.getpid() in _sweeping
    if not in_process:
        _settle(Path(hydra.runtime.cwd))
    plugins = PluginManager.discover()
    add_search_paths(plugins)
    tree = plain_tree(config)
    code = run(tree, plugins, sweep=SweepJob(Path(str(tree["out"])), hydra.job.num))
    if code == INTERRUPTED and in_process:
        raise KeyboardInterrupt
    return code


def _settle(started_in: Path) -> None:
    """Make a launcher's process like the one that began the sweep, where the launcher did not."""
    _accept_any_letter()
    if started_in.is_dir():  # Ray's workers of a running cluster start elsewhere; paths may be relative
        os.chdir(started_in)
    sys.stdin = None  # several processes must not ask one terminal: what needs a yes is refused


def _accept_any_letter() -> None:
    """A terminal that lacks a letter shows its code instead."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
