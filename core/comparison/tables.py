"""A comparison as tables of words, the same for a terminal and for Markdown."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from core.audit import Table
from core.comparison.results import (
    FEW,
    LEAST_SYSTEMS,
    LEAST_UNITS,
    Board,
    Comparison,
    Estimate,
    Finding,
    Judges,
    OrderAgreement,
    Ranks,
    Variance,
    YesRates,
)
from core.preflight import money
from core.stats.variance import REPEAT

#: So many runs are named in a finding.
_NAMED: Final = 3
_DASH: Final = "–"


def title(comparison: Comparison) -> str:
    """What was compared, in one line."""
    n_systems = len({run.system for run in comparison.runs})
    n_judges = len({run.judge for run in comparison.runs})
    return (
        f"{comparison.benchmark}: {_count(len(comparison.runs), 'run')}, {_count(n_systems, 'system')}, "
        f"{_count(n_judges, 'judge')}"
    )


def warnings(comparison: Comparison) -> list[str]:
    """What stands above every table."""
    left_out = [f"left out: {left.why}" for left in comparison.left_out]
    return [*(said(finding) for finding in comparison.findings), *left_out]


def said(finding: Finding) -> str:
    """One finding in one line."""
    word = "FORCED " if finding.forced else ""
    runs = list(dict.fromkeys(finding.runs))
    names = ", ".join(runs[:_NAMED])
    more = f" and {len(runs) - _NAMED} more" if len(runs) > _NAMED else ""
    return f"{word}{finding.text}" + (f" [{names}{more}]" if names else "")


def method(comparison: Comparison) -> str:
    """How the numbers were made."""
    settings = comparison.settings
    return (
        f"Intervals: {settings.level:.0%} BCa bootstrap over tasks, {settings.resamples} resamples, seed "
        f"{settings.seed}; with few tasks they hold less often than they say, and by group those of fewer than "
        f"{LEAST_UNITS} tasks have none. p: paired sign-flip test, Holm over the pairs of a table; better and "
        f"worse at {settings.alpha:g} with an interval that excludes 0. Detectable: the least true difference "
        f"found with a chance of {settings.power:.0%}. By group, more than {FEW} systems are in compare.json "
        "alone."
    )


def tables(comparison: Comparison) -> Iterator[Table]:
    """Every table, in the order of reading."""
    for board in comparison.boards:
        yield from _board(board)
    if comparison.judges is not None:
        yield from _judges(comparison.judges)
    if comparison.ranks is not None:
        yield from _ranks(comparison.ranks)
    if comparison.variance is not None:
        yield from _variance(comparison.variance)


def _board(board: Board) -> Iterator[Table]:
    under = f"judge {board.judge}" if board.judge else "SEVERAL JUDGES"
    yield Table(
        f"{board.metric} · {under} · {_count(board.n_common, 'task')} in common",
        (
            "system",
            board.metric,
            "interval",
            "n",
            "own value",
            "own n",
            "coverage",
            "$/task",
            "latency",
            "best for",
        ),
        [
            (
                row.system,
                number(row.score.value),
                interval(row.score),
                str(row.score.n),
                number(row.own),
                f"{row.n_own}/{row.n_tasks}",
                percent(row.coverage),
                _DASH if row.usd_per_task is None else money(row.usd_per_task),
                _DASH if row.latency_s is None else f"{row.latency_s:.1f} s",
                ", ".join(
                    word for word, best in (("cost", row.best_for_cost), ("time", row.best_for_time)) if best
                )
                or _DASH,
            )
            for row in board.systems
        ],
    )
    if len(board.systems) == 1:
        alone = board.systems[0]
        yield Table(
            "what this run could show",
            ("system", "least difference from an unrelated system"),
            [(alone.system, number(alone.detectable))],
        )
    if board.pairs:
        yield Table(
            f"differences in {board.metric} · {under}",
            ("first", "second", "first − second", "interval", "n", "p", "p (Holm)", "first is", "detectable"),
            [
                (
                    pair.first,
                    pair.second,
                    signed(pair.difference.value),
                    interval(pair.difference),
                    str(pair.difference.n),
                    chance(pair.p),
                    chance(pair.p_holm),
                    pair.verdict,
                    number(pair.detectable),
                )
                for pair in board.pairs
            ],
        )
    if board.groups and len(board.systems) <= FEW:
        yield Table(
            f"the same by group, not corrected for their number · {under}",
            ("group", "member", "first", "second", "first − second", "interval", "n"),
            [
                (
                    group.group,
                    group.member,
                    group.first,
                    group.second,
                    signed(group.difference.value),
                    interval(group.difference),
                    str(group.difference.n),
                )
                for group in board.groups
            ],
        )


def _judges(judges: Judges) -> Iterator[Table]:
    yield Table(
        "judges",
        (
            "judge",
            "family",
            "judgements",
            "missing",
            "coverage",
            "by part",
            "$/judgement",
            "with itself: κ",
            "unanimous",
        ),
        [
            (
                judge.judge,
                judge.family or "unknown",
                f"{judge.n:,}",
                percent(judge.missing / judge.n if judge.n else None),
                percent(judge.coverage),
                ", ".join(
                    f"{member} {percent(share)}"
                    for members in judge.coverage_by.values()
                    for member, share in members.items()
                    if share is not None and share < 1
                )
                or _DASH,
                _DASH if judge.usd_per_judgement is None else money(judge.usd_per_judgement),
                _DASH if judge.with_itself is None else number(judge.with_itself.fleiss_kappa),
                _DASH if judge.with_itself is None else percent(judge.with_itself.unanimous),
            )
            for judge in judges.judges
        ],
    )
    if judges.pairs:
        yield Table(
            f"judges with each other · Krippendorff α {number(judges.alpha)} over {judges.n_alpha:,} questions",
            (
                "first",
                "second",
                "n",
                "agreement",
                "Cohen κ",
                "interval",
                "Gwet AC1",
                f"{judges.metric}: second − first",
                "interval",
            ),
            [
                (
                    pair.first,
                    pair.second,
                    f"{pair.n:,}",
                    percent(pair.agreement),
                    number(pair.kappa.value),
                    interval(pair.kappa),
                    number(pair.ac1),
                    signed(pair.shift.value),
                    interval(pair.shift),
                )
                for pair in judges.pairs
            ],
        )
        yield Table(
            "how often judges say yes",
            ("first", "second", "units", "n", "first: yes", "second: yes", "second − first", "interval"),
            [
                (
                    pair.first,
                    pair.second,
                    _which(yes),
                    f"{yes.n:,}",
                    percent(yes.first),
                    percent(yes.second),
                    signed(yes.shift.value),
                    interval(yes.shift),
                )
                for pair in judges.pairs
                for yes in pair.yes
            ],
        )
    if judges.preferences:
        yield Table(
            "own family: what a judge adds for it, beyond what other families' judges and other systems have "
            "(systems and judges taken as fixed: a taste in one system counts as one for its family)",
            ("judge", "family", "own systems", "preference", "interval", "n"),
            [
                (
                    found.judge,
                    found.family,
                    ", ".join(found.own),
                    signed(found.preference.value)
                    + (" (with that of the others)" if found.is_sum else "")
                    + (f" (fewer than {LEAST_SYSTEMS} own or other systems)" if found.few_systems else ""),
                    interval(found.preference),
                    str(found.preference.n),
                )
                for found in judges.preferences
            ],
        )
    overall = next((rate for rate in judges.flip_rates if rate.group is None), None)
    if overall is not None:
        yield Table(
            f"units on which judges differ most · they do on {percent(overall.rate)} of {overall.n:,} questions",
            ("task", "unit", "differing pairs", "n", "share of yes"),
            [
                (
                    flip.task,
                    flip.unit,
                    percent(flip.disagreement),
                    str(flip.n),
                    ", ".join(f"{judge} {percent(share)}" for judge, share in flip.yes.items()),
                )
                for flip in judges.flips
            ],
        )


def _ranks(ranks: Ranks) -> Iterator[Table]:
    yield Table(
        f"order of systems by {ranks.metric} · {_count(ranks.n, 'task')}",
        ("judge", "rank", "system", ranks.metric, "ranks that resampling gives"),
        [
            (
                order.judge,
                str(rank.rank),
                rank.system,
                number(rank.value),
                _DASH if rank.low is None else f"{rank.low} … {rank.high}",
            )
            for order in ranks.orders
            for rank in order.ranks
        ],
    )
    yield agreements(ranks.agreements)


def agreements(found: tuple[OrderAgreement, ...]) -> Table:
    """How far judges order systems alike, and every swap."""
    return Table(
        "judges' orders with each other",
        ("first", "second", "systems", "Kendall τ-b", "Spearman ρ", "swaps"),
        [
            (
                pair.first,
                pair.second,
                str(pair.n_systems),
                number(pair.kendall_tau_b),
                number(pair.spearman),
                "; ".join(map(str, pair.swaps)) or "none",
            )
            for pair in found
        ],
    )


def _variance(variance: Variance) -> Iterator[Table]:
    levels = ", ".join(_count(count, factor) for factor, count in variance.levels.items())
    yield Table(
        f"what varies in {variance.metric} · {levels}",
        ("part", "variance", "share"),
        [
            (
                " × ".join(part.factors) if variance.has_repeats or part.factors != (REPEAT,) else "the rest",
                number(part.variance) + (" (below 0)" if part.clipped else ""),
                percent(part.share),
            )
            for part in variance.parts
        ],
    )
    if variance.designs:
        yield Table(
            "what other designs would give: half widths",
            ("tasks", "judges", "repeats", "one system", "a difference"),
            [
                (
                    str(design.n_tasks),
                    str(design.n_judges),
                    str(design.n_repeats),
                    f"± {number(design.score)}",
                    _DASH if design.difference is None else f"± {number(design.difference)}",
                )
                for design in variance.designs
            ],
        )


def number(value: float | None) -> str:
    """A number as tables show it."""
    if value is None:
        return _DASH
    return f"{value:.3f}" if abs(value) < 1 else f"{value:.2f}"


def signed(value: float | None) -> str:
    """The same, with its sign."""
    return _DASH if value is None else ("+" if value > 0 else "") + number(value)


def interval(found: Estimate) -> str:
    """The limits of an interval."""
    return _DASH if found.low is None else f"{number(found.low)} … {number(found.high)}"


def percent(share: float | None) -> str:
    """A share, 0…1, in per cent."""
    return _DASH if share is None else f"{share:.1%}"


def chance(p: float | None) -> str:
    """A p-value."""
    if p is None:
        return _DASH
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def _which(rates: YesRates) -> str:
    return "all" if rates.group is None else f"{rates.group} {rates.member}"


def _count(count: int, word: str) -> str:
    return f"{count} {word}" + ("" if count == 1 else "s")
