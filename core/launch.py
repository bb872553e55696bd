"""From the words of `core.run` to jobs: one in this process, or a sweep through Hydra's launchers.

Every combination of a sweep is composed and checked before the first job starts. Jobs write their exit code
into run.json, because a launcher may run them elsewhere; the process ends with the worst of them.
"""

from __future__ import annotations

import io
import platform
import sys
import time
from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

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

REFUSED: Final = 2
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
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a terminal that lacks a letter shows its code instead
            stream.reconfigure(errors="backslashreplace")
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
    from core.app import SweepJob, job_folder, run, worst
    from core.report.console import Console
    from core.runfolder import RUN, SUMMARY, default_name, free_folder, read_json
    from core.setup import check_parts

    trees = [compose(job, config_dir) for job in expand(overrides)]
    configs = [RunConfig.from_tree(tree) for tree in trees]
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
    _hydra(["--multirun", *options, *(word for word in overrides if not word.startswith("out=")), *places])
    codes = [_code(read_json(path / RUN)) for path in folders]
    summaries = [read_json(path / SUMMARY) for path in folders]
    names = [path.name for path in folders]
    headlines = [config.benchmark.headline for config in configs]
    Console().sweep(list(zip(names, headlines, summaries, codes, strict=True)), folder)
    return worst(codes)


def _code(facts: dict[str, Any] | None) -> int:
    """A job's exit code; one that left none has died, which is a bug."""
    code = (facts or {}).get("exit_code")
    return code if isinstance(code, int) else 1


def _hydra(words: Sequence[str]) -> None:
    import hydra

    sys.argv = [sys.argv[0], *words]
    hydra.main(config_path=f"pkg://{CONFIG_MODULE}", config_name=CONFIG_NAME, version_base=VERSION_BASE)(_job)()


def _job(config: DictConfig) -> None:
    run_job(config)


def run_job(config: DictConfig) -> int:
    """One job of a sweep; writes its exit code into its run.json and never ends the process."""
    from hydra.core.hydra_config import HydraConfig

    from core.app import SweepJob, run

    plugins = PluginManager.discover()
    tree = plain_tree(config)
    number = HydraConfig.get().job.num
    return run(tree, plugins, sweep=SweepJob(Path(str(tree["out"])), number))
