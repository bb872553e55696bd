"""May these runs be compared? Every difference that bears on the numbers is a finding, above the tables.

A refusal says that the numbers mean different things; a mark says what a reader must keep in mind.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import combinations
from typing import Any, Final

from core.comparison.identity import system_settings
from core.comparison.reading import Run
from core.comparison.results import Finding, Severity
from core.comparison.study import Grid, Study
from core.config import ENSEMBLE, BenchmarkSection
from core.digest import json_digest, plain
from core.runfolder import differences

#: Judged shares of two runs that differ by more than this may shift their numbers.
COVERAGE_GAP: Final = 0.02
#: Keys of a benchmark's section that do not say what a number means: where tasks come from (they are compared by
#: their content), how an answer arrives, when a number is withheld.
_NO_RULES: Final = frozenset(
    {*BenchmarkSection.model_fields, "dataset", "split", "include_not_self_contained", "delivery", "allow_hosts"}
) - {"headline"}
#: So many names or differences are shown.
_SHOWN: Final = 5


def rules_of(run: Run) -> dict[str, Any]:
    """What of a run's configuration says what its numbers mean: form, profile, weights, … and the headline."""
    section = plain(run.config.benchmark.model_dump())
    return {key: value for key, value in section.items() if key not in _NO_RULES}


def group_of(run: Run) -> tuple[str, str]:
    """Runs of one group have numbers of one meaning: the benchmark's name, and a digest of its rules."""
    return run.config.benchmark.name, json_digest(rules_of(run))


def benchmarks(runs: Sequence[Run]) -> list[Finding]:
    """A refusal where runs of several benchmarks are given: no force makes such numbers comparable."""
    names = dict.fromkeys(run.config.benchmark.name for run in runs)
    if len(names) < 2:
        return []
    said = "; ".join(
        f"{name}: {_list([str(run.path) for run in runs if run.config.benchmark.name == name])}" for name in names
    )
    return [Finding(code="benchmarks", severity="refuse", text=f"runs of different benchmarks ({said})")]


def findings(study: Study) -> list[Finding]:
    """All that is to be said of runs of one benchmark; refusals first, those that were forced marked so."""
    found = [*_rules(study), *_tasks(study), *_judged(study), *_same_judge(study), *_runs(study), *_answers(study)]
    return sorted(found, key=lambda finding: (finding.severity != "refuse", not finding.forced))


def _rules(study: Study) -> Iterator[Finding]:
    first = rules_of(study.runs[0])
    for place, run in enumerate(study.runs):
        unlike = [
            text.replace(" before, ", " and ").removesuffix(" now") for text in differences(first, rules_of(run))
        ]
        if unlike:
            text = f"the numbers are made by different rules: {'; '.join(unlike[:_SHOWN])}"
            yield _refusal(study, "rules", text, [0, place])


def _tasks(study: Study) -> Iterator[Finding]:
    sets = [frozenset(run.tasks) - study.foreign.get(place, frozenset()) for place, run in enumerate(study.runs)]
    if study.settings.force:
        sets = [frozenset(run.tasks) for run in study.runs]
    apart = [(one, other) for one, other in combinations(range(len(sets)), 2) if not sets[one] & sets[other]]
    for one, other in apart[:_SHOWN]:
        yield _refusal(study, "no_common_tasks", "no task is in both", [one, other])
    for place, tasks in study.foreign.items():
        what = "compared by id all the same" if study.settings.force else "not compared"
        text = (
            f"{len(tasks)} tasks have the id and not the content of those compared (that of most runs, of the "
            f"first where it is a tie): {what}"
        )
        yield _mark(study, "contents", text, [place])
    common = frozenset.intersection(*sets)
    larger = [place for place, tasks in enumerate(sets) if len(tasks) > len(common)]
    if larger and not apart:
        text = f"different sets of tasks: only the {len(common)} that all runs have are compared"
        yield _mark(study, "task_sets", text, larger)


def _judged(study: Study) -> Iterator[Finding]:
    grid = Grid.of(study)
    everyone = list(range(len(study.runs)))
    yield from _told_apart(study)
    shared = [judge for judge in grid.judges if len(grid.systems_of([judge])) > 1]
    alone = [
        place
        for place, run in enumerate(study.runs)
        if len(grid.systems) > 1 and not set(grid.judges_of(study.systems[place])) & set(shared)
    ]
    if alone:
        yield _mark(
            study,
            "judges",
            "systems are compared under different judges: their numbers differ for the judge's sake too "
            f"({_by(study, alone if shared else everyone, lambda place: study.judges[place])})",
            alone if shared else everyone,
        )
    for judge in grid.judges:
        places = [place for place in everyone if study.judges[place] == judge]
        yield from _unlike(
            study, "prompts", f"judge {judge} was asked with different prompts", places,
            lambda place: study.runs[place].facts.get("prompt_digest"), shown=False,
        )  # fmt: skip
        yield from _unlike(
            study, "repeats", f"judge {judge} was asked a different number of times", places,
            lambda place: study.runs[place].repeats,
        )  # fmt: skip
    yield from _families(study)
    offline = [
        place
        for place, run in enumerate(study.runs)
        if run.config.judge.provider == "offline" or "offline" in run.judge.split("+")
    ]
    if offline:
        text = "the judge is a set of rules, not a model: its verdicts say nothing about a system"
        yield _mark(study, "offline_judge", text, offline)


def _told_apart(study: Study) -> Iterator[Finding]:
    """Systems of one name, and what they differ in."""
    by_name: dict[str, dict[str, list[int]]] = {}
    for place, run in enumerate(study.runs):
        by_name.setdefault(run.system, {}).setdefault(study.systems[place], []).append(place)
    for name, systems in by_name.items():
        first, *others = (system_settings(study.runs[places[0]].config) for places in systems.values())
        unlike = dict.fromkeys(
            text.replace(" before, ", " and ").removesuffix(" now")
            for other in others
            for text in differences(first, other)
        )
        if unlike:
            text = f"systems of the name {name} with different settings are told apart: {_list(list(unlike))}"
            yield _mark(study, "systems", text, [place for places in systems.values() for place in places])


def _families(study: Study) -> Iterator[Finding]:
    """Judges of a system's own family, an ensemble's members among them; and where that is not known."""
    unknown = []
    for place, run in enumerate(study.runs):
        family = run.config.system.family
        if family is not None and family in run.judge_families:
            text = f"judge and system are both of the family {family}: a judge may favour its own"
            yield _mark(study, "own_family", text, [place])
        elif run.config.judge.provider != "offline" and (family is None or None in run.judge_families):
            unknown.append(place)
    if unknown:
        text = "family unknown, of the system or of the judge: whether a judge favours its own is not looked at"
        yield _mark(study, "family_unknown", text, unknown)


def _same_judge(study: Study) -> Iterator[Finding]:
    """Judges whose comparison says nothing of two judges: copies of one, and members that stand as repeats."""
    asked = {run.judge for run in study.runs if run.config.judge.provider != "recorded"}
    copies = [
        place
        for place, run in enumerate(study.runs)
        if run.config.judge.provider == "recorded" and asked & set(run.judge.split("+"))
    ]
    if copies:
        text = (
            "the verdicts are recorded ones of a judge that is compared too: where both agree, it is with itself"
        )
        yield _mark(study, "recorded", text, copies)
    means = [
        place
        for place, run in enumerate(study.runs)
        if run.config.judge.provider == ENSEMBLE and run.config.judge.plain().get("vote") == "mean"
    ]
    if means:
        text = "vote=mean: each repeat is another member's, so what varies by repeat is between judges too"
        yield _mark(study, "vote_mean", text, means)


def _runs(study: Study) -> Iterator[Finding]:
    everyone = list(range(len(study.runs)))
    runs = study.runs
    known = {place: share for place, run in enumerate(runs) if (share := run.coverage) is not None}
    if known and max(known.values()) - min(known.values()) > COVERAGE_GAP:
        text = f"coverage differs by more than {COVERAGE_GAP:.0%}: " + _by(
            study, list(known), lambda place: f"{known[place]:.1%}"
        )
        yield _mark(study, "coverage", text, list(known))
    yield from _parts_lost(study)
    yield from _unlike(
        study, "attempts", "different numbers of attempts", everyone, lambda at: runs[at].config.attempts
    )
    yield from _unlike(
        study, "pages", "different sources of pages", everyone, lambda at: runs[at].config.pages.mode
    )
    yield from _unlike(
        study, "floor", "numbers are withheld at different shares of coverage", everyone,
        lambda at: runs[at].config.benchmark.floor,
    )  # fmt: skip
    yield from _unlike(
        study, "on_failure", "an answer that never came counts differently", everyone,
        lambda at: runs[at].config.system.on_failure,
    )  # fmt: skip
    yield from _unlike(
        study, "version", "different versions of leadline", everyone, lambda at: runs[at].facts.get("leadline")
    )
    metric = study.metrics[0]
    for place, run in enumerate(runs):
        if not any(score.has(metric) for score in run.scores.values()):
            yield _mark(study, "no_numbers", f"no task has a number for {metric}", [place])
        withheld = Counter(score.status for score in run.scores.values() if score.status in ("withheld", "error"))
        if withheld:
            kinds = ", ".join(f"{status} {count}" for status, count in sorted(withheld.items()))
            text = f"{withheld.total()} of {len(run.tasks)} tasks have no number ({kinds}): not compared"
            yield _mark(study, "withheld", text, [place])
        if run.facts.get("exit_code") is None:
            yield _mark(study, "unfinished", "the run has not ended", [place])
        for problem in run.problems[:_SHOWN]:
            yield _mark(study, "damaged", problem, [place])
        if len(run.problems) > _SHOWN:
            yield _mark(study, "damaged", f"{len(run.problems) - _SHOWN} more lines are passed over", [place])


def _parts_lost(study: Study) -> Iterator[Finding]:
    """The same for each part of what is judged: lost negatives raise a score, whatever the coverage of all."""
    shares: dict[tuple[str, str], dict[int, float]] = {}
    for place, run in enumerate(study.runs):
        graded: Counter[tuple[str, str]] = Counter()
        expected: Counter[tuple[str, str]] = Counter()
        for score in run.scores.values():
            for key, (had, due) in score.coverage.items():
                graded[key] += had
                expected[key] += due
        for key, due in expected.items():
            if due:
                shares.setdefault(key, {})[place] = graded[key] / due
    # a run that does not tell the part has it as it has all
    wholes = {place: share for place, run in enumerate(study.runs) if (share := run.coverage) is not None}
    filled = {key: {**wholes, **found}.values() for key, found in shares.items()} if len(study.runs) > 1 else {}
    gaps = {key: max(found) - min(found) for key, found in filled.items()}
    wide = sorted((key for key, gap in gaps.items() if gap > COVERAGE_GAP), key=lambda key: (-gaps[key], key))
    for group, member in wide[:_SHOWN]:
        found = shares[group, member]
        shown = {place: f"{share:.1%}" for place, share in found.items()}
        text = f"coverage of {group} {member} differs by more than {COVERAGE_GAP:.0%}: " + _by(
            study, list(found), shown.__getitem__
        )
        yield _mark(study, "coverage_by", text, list(found))
    if len(wide) > _SHOWN:
        text = f"coverage differs by more than {COVERAGE_GAP:.0%} in {len(wide) - _SHOWN} more parts"
        yield _mark(study, "coverage_by", text, list(range(len(study.runs))))


def _answers(study: Study) -> Iterator[Finding]:
    grid = Grid.of(study)
    again = [
        place for place, key in enumerate(zip(study.systems, study.judges, strict=True)) if grid.runs[key] != place
    ]
    if again:
        text = "another run of the same system and judge: it stands in the tables of systems only"
        yield _mark(study, "again", text, again)


def _unlike(
    study: Study, code: str, text: str, places: Sequence[int], value: Callable[[int], Any], *, shown: bool = True
) -> Iterator[Finding]:
    """A mark where the runs differ in a value; `shown` says which has which."""
    if len({str(value(place)) for place in places}) > 1:
        yield _mark(study, code, f"{text}: {_by(study, places, value)}" if shown else text, places)


def _by(study: Study, places: Sequence[int], value: Callable[[int], Any]) -> str:
    """`names: value; names: value`."""
    names: dict[str, list[str]] = {}
    for place in places:
        names.setdefault(str(value(place)), []).append(study.names[place])
    return "; ".join(f"{said}: {_list(found)}" for said, found in names.items())


def _list(names: Sequence[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more


def _mark(study: Study, code: str, text: str, places: Sequence[int]) -> Finding:
    return Finding(code=code, severity="mark", text=text, runs=tuple(study.names[place] for place in places))


def _refusal(study: Study, code: str, text: str, places: Sequence[int]) -> Finding:
    forced = study.settings.force
    severity: Severity = "mark" if forced else "refuse"
    names = tuple(study.names[place] for place in places)
    return Finding(code=code, severity=severity, text=text, runs=names, forced=forced)
