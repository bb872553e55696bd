"""What the judge sees of a page: its beginning, and every located excerpt, within a limit."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.pages.align import Alignment, Part, locate
from core.pages.windows import ELSEWHERE, LEFT_OUT, LIMIT, judge_view

FILLER = "".join(f"Sentence {number} of the page tells nothing. " for number in range(8_000))
EVIDENCE = "The harbour of Ostermark was opened in 1874, says its chronicle."


def page(*pieces: str) -> tuple[str, list[tuple[str, str]]]:
    text = "".join(pieces)
    return text, [("text", text)]


def test_a_short_page_is_shown_whole() -> None:
    main, texts = page("A short page. ", EVIDENCE)
    assert judge_view(main, texts, [locate(EVIDENCE, texts)]) == main


def test_a_long_page_is_cut_with_a_mark() -> None:
    view = judge_view(FILLER, [("text", FILLER)], [])
    assert LIMIT - 100 < len(view) <= LIMIT
    assert view == FILLER[: len(view) - len(LEFT_OUT)] + LEFT_OUT


@pytest.mark.parametrize("where", [0.0, 0.2, 0.5, 1.0])
def test_evidence_anywhere_on_a_page_of_300_kb_is_in_view_with_what_is_round_it(where: float) -> None:
    cut = int(300_000 * where)
    main, texts = page(FILLER[:cut], EVIDENCE, FILLER[cut:300_000])
    view = judge_view(main, texts, [locate(EVIDENCE, texts)])
    assert main[max(0, cut - 500) : cut + len(EVIDENCE) + 500] in view
    assert view.startswith(FILLER[:1000] if where else EVIDENCE)
    assert LIMIT - 100 < len(view) <= LIMIT


def test_windows_stand_in_the_order_of_the_page_and_neighbours_are_one() -> None:
    first, second, third = (f"{EVIDENCE} ({number})" for number in ("one", "two", "three"))
    main, texts = page(FILLER[:100_000], first, FILLER[:300], second, FILLER[:100_000], third, FILLER[:50_000])
    found = [locate(excerpt, texts) for excerpt in (third, first, second)]
    view = judge_view(main, texts, found, limit=5_000)
    assert view.index(first) < view.index(second) < view.index(third)
    assert LEFT_OUT not in view[view.index(first) : view.index(second)]
    assert LEFT_OUT in view[view.index(second) : view.index(third)]
    assert view.count(LEFT_OUT) == 3
    assert len(view) <= 5_000


def test_every_part_of_an_excerpt_with_ellipses_is_in_view() -> None:
    main, texts = page(
        FILLER[:60_000], "The first part stands here. ", FILLER[:60_000], "The second part there. ", FILLER[:9_000]
    )
    found = locate("The first part stands here … The second part there", texts)
    view = judge_view(main, texts, [found], limit=2_000)
    assert len(found.parts) == 2
    assert view.index("The first part stands here") < view.index("The second part there")


def test_what_the_main_text_does_not_have_is_shown_from_the_text_that_has_it() -> None:
    whole = f"Menu. {FILLER[:100_000]} Table: {EVIDENCE} End."
    texts = [("selectolax", whole)]
    view = judge_view("The readable part.", texts, [locate(EVIDENCE, texts)], limit=3_000)
    assert view.startswith("The readable part.")
    assert EVIDENCE in view[view.index(ELSEWHERE) :]


def test_a_short_part_is_shown_where_it_was_found() -> None:
    whole = f"No. 7 is far. {FILLER[:80_000]} The pier with the lamp is No. 7 of them. End."
    place = whole.rindex("No. 7")
    found = Alignment("No. 7", "exact", "text", (Part("No. 7", place, place + 5),), 100.0)
    view = judge_view("No. 7 is far.", [("text", whole)], [found], limit=2_000)
    assert "The pier with the lamp is No. 7 of them." in view


def test_excerpts_that_were_not_found_change_nothing() -> None:
    texts = [("text", FILLER)]
    missing = locate("There is nothing of this kind on the page at all", texts)
    assert not missing.located
    assert judge_view(FILLER, texts, [missing]) == judge_view(FILLER, texts, [])


def test_excerpts_longer_than_the_limit_win() -> None:
    main, texts = page(FILLER[:10_000], EVIDENCE * 10, FILLER[:10_000])
    view = judge_view(main, texts, [locate(EVIDENCE * 10, texts)], limit=100)
    assert view == LEFT_OUT + EVIDENCE * 10 + LEFT_OUT


SPANS = st.lists(st.tuples(st.floats(0, 1), st.integers(1, 200)), max_size=8)


@given(st.integers(0, 6_000), SPANS, st.integers(0, 4_000), st.booleans())
def test_every_located_excerpt_is_in_view_and_the_limit_holds(
    length: int, spans: list[tuple[float, int]], limit: int, in_main: bool
) -> None:
    text = "".join(chr(0x4E00 + number % 5_000) for number in range(length))
    places = [(int(share * length), int(share * length) + size) for share, size in spans]
    parts = [Part("", start, end) for start, end in places if end <= length]
    found = [Alignment("", "exact", "text", (part,), 100.0) for part in parts]
    main = text if in_main else text[: length // 3]
    view = judge_view(main, [("text", text)], found, limit=limit)
    for part in parts:
        assert text[part.start : part.end] in view
    alone = sum(part.end - part.start for part in parts) + (len(parts) + 3) * len(LEFT_OUT) + len(ELSEWHERE)
    assert len(view) <= max(limit, alone if parts else 0)
    if not parts:
        assert view.startswith(main[: max(0, limit - len(LEFT_OUT))])


@given(st.integers(0, 9_000), st.integers(0, 9_000))
def test_the_room_that_excerpts_leave_is_used(length: int, limit: int) -> None:
    text = FILLER[:length]
    view = judge_view(text, [("text", text)], [])
    assert view == text
    assert len(judge_view(text, [], [], limit=limit)) >= min(length, limit) - len(LEFT_OUT)
