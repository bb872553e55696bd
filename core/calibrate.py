"""`python -m core.calibrate labels=FILE run=RUN`: a judge against people's labels. Asks nobody, fetches nothing.

sample RUN --out sheet.csv    a blind sheet to label, drawn from a run's verdicts
    labels=sheet.csv run=RUN      accuracy, κ, sensitivity, specificity; scores without its errors; blocked tasks
drift RUN RUN                 the same answers on other pages: what moved, and was it the pages or the judge
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from core.errors import InputError

#: Exit codes: done; refused.
OK: Final = 0
REFUSED: Final = 2
#: The words of the command itself, and the options that they are.
_KEYS: Final[Mapping[str, str]] = {"labels": "--labels", "run": "--run", "out": "--out", "by": "--by"}
#: Where runs lie that are not named.
_RUNS: Final = Path("runs")
_WIDE: Final = 400


def main(argv: Sequence[str] | None = None) -> int:
    """The command; returns the exit code."""
    words = list(sys.argv[1:] if argv is None else argv)
    forms: dict[str, Callable[[list[str]], None]] = {"sample": _sample, "drift": _drift}
    try:
        if words and words[0] in forms:
            forms[words[0]](words[1:])
        else:
            _labels(words)
    except InputError as error:
        sys.stderr.write(f"refused: {error}\n")
        return REFUSED
    return OK


def _labels(words: list[str]) -> None:
    parser = argparse.ArgumentParser(
        "core.calibrate",
        usage="core.calibrate labels=FILE [run=RUN …] [options]\n"
        "       core.calibrate sample RUN --out FILE [options]\n"
        "       core.calibrate drift RUN RUN [options]",
        description="How far a judge can be trusted: its verdicts against people's labels.",
        epilog="`core.calibrate sample --help` and `core.calibrate drift --help` say what these take.",
    )
    parser.add_argument(
        "--labels", type=Path, metavar="FILE", help="labels, .csv or .jsonl; also as the word labels=FILE"
    )
    parser.add_argument(
        "--run", type=Path, action="append", default=[], metavar="RUN",
        help="a run folder, again for more judges of the same answers; also run=RUN. A sheet of `sample` finds "
        "its run in runs/",
    )  # fmt: skip
    parser.add_argument(
        "--by", metavar="GROUP", help="correct scores by the members of this group (sign, type, …)"
    )
    parser.add_argument("--least", type=int, metavar="N", help="labels of a class that correcting needs (10)")
    parser.add_argument("--limit", type=float, metavar="P", help="share of judge errors that blocks a task (0.1)")
    parser.add_argument("--audit-least", type=int, metavar="N", help="labels that blocking a task needs (10)")
    parser.add_argument("--level", type=float, metavar="P", help="of intervals (0.95)")
    _common(parser, "calibration.json and calibration.md")
    chosen = parser.parse_args(_as_options(words))
    if chosen.labels is None:
        parser.print_usage(sys.stderr)
        raise InputError("no file of labels is named", expected="labels=FILE")
    from core.calibration import build, render
    from core.calibration.labels import read_labels

    settings = _settings(chosen, "by", "least", "limit", "audit_least", "level", "resamples", "seed")
    runs = chosen.run or _named_runs(chosen.labels, read_labels(chosen.labels).runs)
    found = build.calibrate(chosen.labels, runs, settings)
    if chosen.out is not None:
        _written(chosen.out, lambda: build.write_files(chosen.out, found))
    if chosen.format == "json":
        sys.stdout.write(build.as_json(found))
    elif chosen.format == "md":
        sys.stdout.write(render.markdown(found))
    else:
        render.text(render.title(found), found.notes, list(render.tables(found)), render.method(found), _console())


def _sample(words: list[str]) -> None:
    parser = argparse.ArgumentParser(
        "core.calibrate sample",
        description="Draw a blind sheet to label from a run's verdicts. It holds none of them; its ids find them.",
    )
    parser.add_argument("run", metavar="RUN", type=Path, help="a run folder")
    parser.add_argument("--out", type=Path, required=True, metavar="FILE", help="the sheet, a new .csv file")
    parser.add_argument("--n", type=int, default=100, help="verdicts to draw (100)")
    parser.add_argument("--seed", type=int, default=0, help="another one draws others (0)")
    parser.add_argument(
        "--per", default="task,verdict,kind", metavar="NAMES", help="what strata are made of (task,verdict,kind)"
    )
    parser.add_argument(
        "--allocation", choices=("proportional", "equal"), default="proportional",
        help="what strata give: by their size, or as much each (then the column weight tells of verdicts)",
    )  # fmt: skip
    parser.add_argument(
        "--check", action="append", default=[], metavar="NAME",
        help="which check of a verdict to label, again for more, or all (the one that decides)",
    )  # fmt: skip
    parser.add_argument(
        "--store", type=Path, metavar="FILE", help="where the run's pages are archived (as its configuration says)"
    )
    chosen = parser.parse_args(words)
    from core.calibration.sheet import PER, Wanted, write_sheet

    per = tuple(name.strip() for name in chosen.per.split(",") if name.strip())
    unknown = [name for name in per if name not in PER]
    if unknown:
        raise InputError("unknown name", where="--per", expected=f"some of {', '.join(PER)}", got=unknown[0])
    if chosen.n < 1:
        raise InputError("nothing to draw", where="--n", expected="1 or more", got=str(chosen.n))
    if chosen.out.suffix != ".csv":
        raise InputError("not a name of a sheet", where="--out", expected="FILE.csv", got=str(chosen.out))
    wanted = Wanted(chosen.n, chosen.seed, per, chosen.allocation, tuple(chosen.check), chosen.store)
    drawn = write_sheet(chosen.out, chosen.run, wanted)
    apart = ", ".join(f"{count} {name}" for name, count in drawn.apart.items() if count)
    sys.stdout.write(
        f"{drawn.n_drawn} of {drawn.n_units} verdicts, {len(drawn.rows)} rows in {chosen.out}; "
        f"{drawn.n_exact} as the judge was shown them to the letter\n"
        + (f"apart: {apart}\n" if apart else "")
        + _too_few(drawn.by_task)
        + "fill the column label (met, unmet), then: "
        + f"python -m core.calibrate labels={chosen.out} run={chosen.run}\n"
    )


def _too_few(by_task: Mapping[str, int]) -> str:
    """A line where a full sheet would still be too little to block a task, else nothing."""
    from core.calibration.results import Settings

    least = Settings().audit_least
    found = [count for count in by_task.values() if count < least]
    if not found:
        return ""
    span = f"{min(found)}" if min(found) == max(found) else f"{min(found)} to {max(found)}"
    return (
        f"note: {len(found)} of {len(by_task)} tasks have fewer than {least} rows on the check that decides "
        f'({span}): blocking will say "too few" of them; draw more (--n), or ask for fewer later (--audit-least)\n'
    )


def _drift(words: list[str]) -> None:
    parser = argparse.ArgumentParser(
        "core.calibrate drift",
        description="The same answers judged on other pages: what moved, and whether pages or the judge moved it.",
    )
    parser.add_argument("first", metavar="RUN", type=Path, help="a run folder, such as one of archived pages")
    parser.add_argument("second", metavar="RUN", type=Path, help="another over the same submissions")
    for name in ("first", "second"):
        parser.add_argument(
            f"--{name}-store", type=Path, metavar="FILE", help=f"where the {name} run's pages are archived"
        )
    _common(parser, "drift.json and drift.md")
    chosen = parser.parse_args(words)
    from core.calibration import drift, drift_render, render
    from core.runfolder import replace_file

    settings = _settings(chosen, "resamples", "seed")
    found = drift.drift(chosen.first, chosen.second, settings, (chosen.first_store, chosen.second_store))
    parts = (drift_render.title(found), found.notes, list(drift_render.tables(found)), drift_render.METHOD)
    if chosen.out is not None:

        def write() -> None:
            chosen.out.mkdir(parents=True, exist_ok=True)
            replace_file(chosen.out / drift.JSON_NAME, [drift.as_json(found).encode("utf-8", "surrogatepass")])
            replace_file(chosen.out / "drift.md", [render.document(*parts).encode("utf-8", "replace")])

        _written(chosen.out, write)
    if chosen.format == "json":
        sys.stdout.write(drift.as_json(found))
    elif chosen.format == "md":
        sys.stdout.write(render.document(*parts))
    else:
        render.text(*parts, _console())


def _common(parser: argparse.ArgumentParser, files: str) -> None:
    parser.add_argument("--resamples", type=int, metavar="N", help="bootstrap resamples (2000)")
    parser.add_argument("--seed", type=int, metavar="N", help="of the resampling")
    parser.add_argument("--out", type=Path, metavar="DIR", help=f"write {files}; also out=DIR")
    parser.add_argument("--format", choices=("text", "md", "json"), default="text", help="what is printed (text)")


def _as_options(words: Sequence[str]) -> list[str]:
    """`labels=FILE` as `--labels FILE`, and so on; raises InputError for a word that is neither."""
    from difflib import get_close_matches

    found: list[str] = []
    of_option = False
    for word in words:
        key, equals, value = word.partition("=")
        if of_option or word.startswith("-"):
            found.append(word)
            of_option = word.startswith("--") and not equals and not of_option
        elif key in _KEYS and equals:
            found += [_KEYS[key], value] if not value.startswith("-") else [f"{_KEYS[key]}={value}"]
        else:
            close = get_close_matches(key, [*_KEYS, "sample", "drift"], n=1)
            hint = f"; did you mean {close[0]!r}?" if close else ""
            raise InputError(
                f"no word is called {key!r}{hint}", expected="labels=FILE run=RUN, or sample, or drift"
            )
    return found


def _settings(chosen: argparse.Namespace, *names: str) -> Any:
    from pydantic import ValidationError

    from core.calibration.results import Settings

    given = {name: getattr(chosen, name) for name in names if getattr(chosen, name) is not None}
    try:
        return Settings(**given)
    except ValidationError as error:
        faults = [f"--{'.'.join(map(str, fault['loc']))}: {fault['msg']}" for fault in error.errors()]
        raise InputError("; ".join(faults).replace("_", "-")) from None


def _named_runs(labels: Path, run_ids: Sequence[str]) -> list[Path]:
    """The folders in runs/ that a sheet was drawn from; raises InputError where they are not there."""
    from core.runfolder import RUN, read_json

    known: dict[str, Path] = {}
    for file in sorted([*_RUNS.glob(f"*/{RUN}"), *_RUNS.glob(f"*/*/{RUN}")]):
        try:
            facts = read_json(file) or {}
        except (InputError, OSError, UnicodeDecodeError):
            continue  # no run of ours, or none that can be read: it is not the one
        known.setdefault(str(facts.get("run_id")), file.parent)
    lacking = [run_id for run_id in run_ids if run_id not in known]
    if lacking or not run_ids:
        what = f"runs/ has no run {lacking[0]}" if lacking else "the file does not say of which run its labels are"
        raise InputError(what, where=str(labels), expected="run=FOLDER")
    return [known[run_id] for run_id in run_ids]


def _written(out: Path, write: Callable[[], None]) -> None:
    try:
        write()
    except OSError as error:
        raise InputError(f"can't be written: {error.strerror}", where=f"--out {out}") from None


def _console() -> Any:
    from rich.console import Console

    # what is piped is kept or searched: a table is not cut to a terminal that isn't there
    return Console(highlight=False, width=None if sys.stdout.isatty() else _WIDE)


if __name__ == "__main__":
    sys.exit(main())
