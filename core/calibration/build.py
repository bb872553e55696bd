"""From labels and run folders to a calibration, and to its files."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from core import __version__
from core.calibration.correct import Counted, corrected_share
from core.calibration.judged import Judged, Key, majority, read_judged
from core.calibration.labels import read_labels
from core.calibration.matching import Matched, match
from core.calibration.rates import Pair, rates
from core.calibration.results import (
    SCHEMA,
    Calibration,
    Check,
    Corrected,
    JudgeReport,
    Rates,
    Settings,
)
from core.calibration.scores import audit, score_of
from core.calibration.study import JudgeStudy
from core.clock import RealClock
from core.errors import InputError
from core.parts import Grader
from core.plugin_manager import PluginManager
from core.runfolder import replace_file
from core.setup import make_grader, make_services

JSON_NAME: Final = "calibration.json"
MARKDOWN_NAME: Final = "calibration.md"


def calibrate(labels: Path, folders: Sequence[Path], settings: Settings | None = None) -> Calibration:
    """Compare the judges of run folders with people's labels. Raises InputError."""
    settings = settings or Settings()
    people = read_labels(labels)
    runs = [read_judged(folder) for folder in folders]
    if not runs:
        raise InputError("no run is named", expected="run=FOLDER")
    names = sorted({run.saved.config.benchmark.name for run in runs})
    if len(names) > 1:
        raise InputError(f"runs of different benchmarks: {', '.join(names)}", expected="runs of one")
    matched = match(people, runs)
    truths = matched.truths()
    plugins = PluginManager.discover()
    reports = [
        report_of(JudgeStudy(run, judge, truths, settings, grader_of(run, plugins)))
        for run in runs
        for judge in run.judges()
    ]
    if not reports:
        raise InputError("no verdict of these runs is a judge's", where=", ".join(run.name for run in runs))
    return Calibration(
        leadline=__version__,
        benchmark=names[0],
        settings=settings,
        labels=matched.facts(),
        labellers=matched.labellers(),
        judges=tuple(reports),
        notes=tuple(_notes(matched, runs)),
    )


def grader_of(run: Judged, plugins: PluginManager) -> Grader:
    """The benchmark's grader, to fold and not to ask."""
    config = run.saved.config
    return make_grader(config, plugins, make_services(config, RealClock()), None)


def report_of(study: JudgeStudy) -> JudgeReport:
    """Everything that labels tell of this judge."""
    decisive = study.decisive
    checks = list(dict.fromkeys(check for _, check, _ in study.truths))
    checks.sort(key=lambda check: check != decisive)  # what decides stands first
    audited = audit(study.pairs(decisive)[0], study.settings) if decisive is not None else ()
    return JudgeReport(
        run=study.run.name,
        path=str(study.run.path),
        run_id=study.run.run_id,
        judge=study.judge,
        checks=tuple(check_of(study, check) for check in checks),
        score=score_of(study),
        audit=audited,
        blocked=tuple(task.task_id for task in audited if task.blocked == "yes"),
    )


def check_of(study: JudgeStudy, check: str) -> Check:
    """What labels tell of one check."""
    pairs, apart = study.pairs(check)
    numbers = sorted({repeat for rows in study.rows.values() for repeat in rows})
    by_member: dict[str, dict[str, list[Pair]]] = {}
    for one in study.labelled(check):
        value = majority(one.rows, check)
        if one.truth.met is None or not isinstance(value, bool):
            continue
        for group, member in study.groups(one.key).items():
            pair = Pair(one.key[0], one.truth.met, value, one.truth.weight)
            by_member.setdefault(group, {}).setdefault(member, []).append(pair)
    verdicts = _verdicts(study, check)
    shares: dict[str, dict[str, Corrected]] = {}
    if study.is_yes_or_no:  # of a verdict of many checks, groups are asked of what is labelled alone
        for group, members in sorted(by_member.items()):
            shares[group] = {
                member: corrected_share(
                    _counted(
                        (key, met) for key, met in verdicts.items() if study.groups(key).get(group) == member
                    ),
                    found,
                    study.settings,
                )
                for member, found in sorted(members.items())
            }
    return Check(
        check=check,
        decides=check == study.decisive,
        rates=rates(pairs, study.settings),
        apart=apart,
        repeats=_repeats(study, check, numbers),
        groups={
            group: {member: rates(found, study.settings) for member, found in sorted(members.items())}
            for group, members in sorted(by_member.items())
        },
        share=corrected_share(_counted(verdicts.items()), pairs, study.settings),
        shares=shares,
    )


def _repeats(study: JudgeStudy, check: str, numbers: Sequence[int]) -> dict[str, Rates]:
    if len(numbers) < 2:
        return {}
    return {str(number): rates(study.pairs(check, number)[0], study.settings) for number in numbers}


def _verdicts(study: JudgeStudy, check: str) -> dict[Key, bool]:
    """What most repeats say of each of the run's verdicts that have this check."""
    found = ((key, majority(rows, check)) for key, rows in study.rows.items())
    return {key: value for key, value in found if isinstance(value, bool)}


def _counted(verdicts: Iterable[tuple[Key, bool]]) -> dict[str, Counted]:
    yes: Counter[str] = Counter()
    n: Counter[str] = Counter()
    for (task, _, _), met in verdicts:
        yes[task] += met
        n[task] += 1
    return {task: Counted(yes[task], count) for task, count in n.items()}


def _notes(matched: Matched, runs: Sequence[Judged]) -> Iterable[str]:
    yield from (problem for run in runs for problem in run.problems)
    if matched.repeated:
        yield f"{matched.repeated} labels are given twice by the same labeller; each counts once"
    if matched.labels.blank:
        yield (
            f"{matched.labels.blank} of {matched.labels.rows} rows have no label: the numbers speak of all only "
            "if these are like the others"
        )


def write_files(folder: Path, calibration: Calibration) -> None:
    """Write calibration.json and calibration.md; raises OSError."""
    from core.calibration.render import markdown

    folder.mkdir(parents=True, exist_ok=True)
    replace_file(folder / JSON_NAME, [as_json(calibration).encode("utf-8", "surrogatepass")])
    replace_file(folder / MARKDOWN_NAME, [markdown(calibration).encode("utf-8", "replace")])


def as_json(calibration: Calibration) -> str:
    """The content of calibration.json."""
    content = {"schema": SCHEMA, **calibration.model_dump(mode="json")}
    return json.dumps(content, ensure_ascii=False, indent=1, allow_nan=False) + "\n"
