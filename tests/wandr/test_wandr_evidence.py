"""What of a page the judge sees: every excerpt that was located, whatever the page's length."""

from __future__ import annotations

from dataclasses import replace

import pytest
from wandr_grading import page

from core.pages.page import Page
from core.pages.windows import LIMIT
from plugins.wandr.evidence import HEAD, View, was_moved
from plugins.wandr.settings import PROFILES, Settings

FILLER = " ".join(f"Line {number} of the long chronicle says nothing of note." for number in range(6_000))
EARLY, MIDDLE, LATE = (
    f"The {word} gate was finished in the autumn of {year}."
    for word, year in (("first", 1611), ("second", 1622), ("third", 1633))
)


def long_page() -> Page:
    half = len(FILLER) // 2
    return page("https://a.example/", f"{EARLY} {FILLER[:half]} {MIDDLE} {FILLER[half:]} {LATE}")


@pytest.mark.parametrize("excerpts", [[EARLY], [MIDDLE], [LATE], [EARLY, MIDDLE, LATE], [f"{EARLY} … {LATE}"], []])
def test_every_located_excerpt_is_in_view_and_the_view_is_bounded(excerpts: list[str]) -> None:
    shown = View(long_page(), Settings()).shown(excerpts)
    view = shown.beginning + shown.windows
    assert all(part in view for excerpt in excerpts for part in excerpt.split(" … "))
    assert len(view) <= LIMIT + 100
    assert len(shown.beginning) > HEAD


def test_records_of_a_long_page_share_its_beginning() -> None:
    view = View(long_page(), Settings())
    assert view.shown([MIDDLE]).beginning == view.shown([LATE]).beginning
    assert MIDDLE not in view.shown([LATE]).windows


def test_as_released_what_stands_late_is_not_seen() -> None:
    shown = View(long_page(), PROFILES["released"]).shown([LATE])
    assert LATE not in shown.beginning + shown.windows
    assert len(shown.beginning) <= LIMIT + 100


def test_a_page_within_the_limit_is_whole_and_has_no_windows() -> None:
    whole = page("https://a.example/", f"{EARLY} {LATE}")
    shown = View(whole, Settings()).shown([LATE])
    assert (shown.beginning, shown.windows) == (whole.main_text, "")


def test_what_the_main_text_lacks_is_shown_from_elsewhere() -> None:
    given = replace(page("https://a.example/", "The main text."), texts=(("all", f"Menu. {LATE} The main text."),))
    shown = View(given, Settings()).shown([LATE])
    assert shown.beginning == "The main text."
    assert LATE in shown.windows


def test_a_short_passage_is_shown_at_its_own_place() -> None:
    filler = FILLER[: LIMIT * 2]
    given = page("https://a.example/", f"Opened 1899? {filler} Height: 12 m. Opened 1899.")
    assert "Height: 12 m. Opened 1899." in View(given, Settings()).shown(["12 m. Opened 1899."]).windows


@pytest.mark.parametrize(
    ("excerpt", "faithful", "said"),
    [
        (LATE, True, "stands on the page word for word"),
        (LATE.replace("The", "“The").replace("1633.", "1633.”"), True, "stands on the page"),
        (LATE.replace("1633", "1634"), False, "a number differs"),
        (f"{EARLY} {LATE}", False, "was not found"),
        ("Nothing of the kind was ever written here.", False, "was not found"),
    ],
)
def test_findings(excerpt: str, faithful: bool, said: str) -> None:
    (found,) = View(long_page(), Settings()).excerpts([excerpt])
    assert (found.text, found.faithful) == (excerpt, faithful)
    assert said in found.finding


@pytest.mark.parametrize(
    ("final_url", "moved"),
    [(None, False), ("https://www.a.example", False), ("http://a.example/", False), ("https://b.example/", True)],
)
def test_a_page_is_moved_when_its_address_is_another_page(final_url: str | None, moved: bool) -> None:
    assert was_moved("https://a.example/", final_url) is moved
