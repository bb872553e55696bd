"""The order of systems under each judge of a published table, where only means are known."""

from __future__ import annotations

import pytest

from core.comparison import published_swaps
from core.comparison.tables import agreements

SYSTEMS = (
    "Perplexity (Opus 4.6)",
    "Perplexity (Opus 4.5)",
    "Gemini Deep Research",
    "o3",
    "o4-mini",
    "Opus 4.6",
    "Opus 4.5",
)
#: Normalized scores by judge: arXiv 2602.11685, the table of judges.
DRACO = {
    "Gemini-3-Pro": dict(zip(SYSTEMS, (70.5, 67.2, 59.0, 52.1, 41.9, 59.8, 46.7), strict=True)),
    "GPT-5.2": dict(zip(SYSTEMS, (50.4, 43.3, 37.8, 31.7, 25.3, 42.7, 31.9), strict=True)),
    "Sonnet-4.5": dict(zip(SYSTEMS, (75.5, 70.3, 61.4, 49.4, 41.7, 70.1, 58.7), strict=True)),
}


@pytest.mark.parametrize(
    ("first", "second", "swapped", "tau"),
    [
        # o3 stands over Opus 4.5 under the paper's judge alone: each of the other judges has it the other way round
        ("Gemini-3-Pro", "GPT-5.2", [("o3", "Opus 4.5")], 19 / 21),
        ("Gemini-3-Pro", "Sonnet-4.5", [("o3", "Opus 4.5")], 19 / 21),
        ("GPT-5.2", "Sonnet-4.5", [], 1.0),
    ],
)
def test_draco_judges_do_not_order_systems_alike(
    first: str, second: str, swapped: list[tuple[str, str]], tau: float
) -> None:
    found = {(pair.first, pair.second): pair for pair in published_swaps(DRACO)}[first, second]
    assert [(swap.above, swap.below) for swap in found.swaps] == swapped
    assert found.kendall_tau_b == pytest.approx(tau, abs=1e-12)
    assert found.n_systems == len(SYSTEMS)


def test_a_swap_is_said_in_words() -> None:
    table = agreements(tuple(published_swaps(DRACO)))
    assert [row[-1] for row in table.rows] == [
        "under judge Gemini-3-Pro o3 > Opus 4.5 (+5.4), under judge GPT-5.2 Opus 4.5 > o3 (-0.2): noise unknown",
        "under judge Gemini-3-Pro o3 > Opus 4.5 (+5.4), under judge Sonnet-4.5 Opus 4.5 > o3 (-9.3): noise unknown",
        "none",
    ]


@pytest.mark.parametrize(
    ("table", "n", "swaps", "tied"),
    [
        ({"a": {"x": 1.0, "y": 2.0}, "b": {"x": 1.0, "y": 1.0}}, 2, 0, (("x", "y"),)),
        ({"a": {"x": 1.0, "y": 2.0}, "b": {"y": 1.0, "x": 3.0, "z": 9.0}}, 2, 1, ()),
        ({"a": {"x": 1.0}, "b": {"y": 1.0}}, 0, 0, ()),
    ],
    ids=["a tie is no swap", "systems of one table alone", "nothing in common"],
)
def test_small_tables(
    table: dict[str, dict[str, float]], n: int, swaps: int, tied: tuple[tuple[str, str], ...]
) -> None:
    (found,) = published_swaps(table)
    assert (found.n_systems, len(found.swaps), found.tied) == (n, swaps, tied)


def test_one_judge_has_nobody_to_be_compared_with() -> None:
    assert published_swaps({"a": {"x": 1.0}}) == []
