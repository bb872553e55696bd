"""Where a page says what an excerpt quotes, and why not; folding; numbers and negations."""

from __future__ import annotations

import random
import re
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.pages.align import Alignment, locate, passes
from core.pages.fold_text import Squeezed, fold, fold_text, squeeze
from core.pages.near import difference, nearest
from core.pages.words import cut_changes, read_words, what_matters

PAGE = (
    "Ostermark harbour\nThe harbour of Ostermark was opened in 1874, and it wasn’t deepened until 1912. "
    "In 2023 the “new” basin handled 1,204 ships – more than ever before – with a staff of 312 people. "
    "According to the harbour office, which keeps the tide tables, the mean depth is 11.5 metres at low water. "
    "Critics say that the basin is not profitable. The co\u00adoperative runs a ﬁsh market on pier 4…\n"
    "Year\tShips\tTons\n2022\t1,150\t48,000\n2023\t1,204\t51,300\n"
    "The long-\nterm plan is to build an inter-\nnational terminal; it is impossible to say when. "
    "北京和奥斯特马克之间有十二艘船。 В порту 25 кранов. الميناء مفتوح في الشتاء. It is −5 °C there. See [12] for m² and 10² of it."
)


def find(excerpt: str, page: str = PAGE) -> Alignment:
    return locate(excerpt, [("first", page)])


@pytest.mark.parametrize(
    ("excerpt", "rung"),
    [
        pytest.param("The harbour of Ostermark was opened in 1874", "exact", id="word for word"),
        pytest.param("  The harbour of Ostermark was opened in 1874\n", "exact", id="blanks round it"),
        pytest.param("ostermark was opened in 1874, and", "near", id="another case"),
        pytest.param("and it wasn't deepened until 1912", "folded", id="a straight apostrophe"),
        pytest.param('In 2023 the "new" basin handled 1,204 ships', "folded", id="straight quotes"),
        pytest.param("1,204 ships - more than ever before - with", "folded", id="hyphens for dashes"),
        pytest.param("1,204 ships — more than ever before — with", "folded", id="longer dashes"),
        pytest.param("1,204 ships—more than ever before—with", "squeezed", id="dashes without blanks"),
        pytest.param(
            "The cooperative runs a fish market on pier 4...", "folded", id="soft hyphen, ligature, ellipsis"
        ),
        pytest.param("Ostermark harbour The harbour of", "folded", id="a line end"),
        pytest.param("the\u00a0mean\u2009depth  is\t11.5 metres", "folded", id="other blanks"),
        pytest.param("the **mean depth** is _11.5 metres_ at `low water`", "folded", id="markdown's marks"),
        pytest.param("# Ostermark harbour", "folded", id="a heading of markdown"),
        pytest.param(
            "the [mean depth](https://example.org/depth) is 11.5 metres", "folded", id="a link of markdown"
        ),
        pytest.param("> Critics say that the basin is not profitable.", "folded", id="a quotation of markdown"),
        pytest.param("| 2023 | 1,204 | 51,300 |", "folded", id="a table row of markdown"),
        pytest.param("2023 1,204 51,300", "folded", id="a table row"),
        pytest.param("“Critics say that the basin is not profitable.”", "folded", id="in quotation marks"),
        pytest.param("Critics say that the basin is not&nbsp;profitable.", "folded", id="an entity"),
        pytest.param(
            "The long-term plan is to build an international terminal", "squeezed", id="hyphens at line ends"
        ),
        pytest.param("Year | Ships | Tons | 2022", "folded", id="table cells"),
        pytest.param("YearShipsTons", "squeezed", id="table cells run together"),
        pytest.param("北京和奥斯特马克之间有十二艘船", "exact", id="Chinese"),
        pytest.param("В порту 25 кранов", "exact", id="Russian"),
        pytest.param("\u200fالميناء مفتوح\u200f في الشتاء", "folded", id="right to left, with marks of direction"),
        pytest.param("the mean depth is 11.5 metres … Critics say", "exact", id="an ellipsis"),
        pytest.param("The harbour of Ostermark […] Critics say that […] is not profitable", "exact", id="[…]"),
        pytest.param(
            "The harbour of Ostermark [...] Critics say that (...) is not profitable",
            "exact",
            id="[...] and (...)",
        ),
        pytest.param("The harbour of Ostermark ... Critics say that", "exact", id="three dots"),
        pytest.param("... Critics say that the basin is not profitable ...", "exact", id="ellipses at the ends"),
        pytest.param("runs a ﬁsh market on pier 4…", "exact", id="an ellipsis of the page's own"),
        pytest.param("for m2 and 10^2 of it", "folded", id="superscripts"),
        pytest.param("arbour of Ostermark was ope", "exact", id="cut within words at its ends"),
    ],
)
def test_what_passes(excerpt: str, rung: str) -> None:
    found = find(excerpt)
    assert (found.rung, found.why_not) == (rung, "")
    assert passes(found, offline=False) == (rung != "near")
    assert passes(found, offline=True)
    assert found.located
    assert found.text == "first"


@pytest.mark.parametrize(
    ("excerpt", "why"),
    [
        pytest.param("In 2023 the “new” basin handled 1,304 ships – more than ever before", "number", id="a number altered"),
        pytest.param("In 2022 the “new” basin handled 1,204 ships – more than ever before", "number", id="a year altered"),
        pytest.param("the mean depth is 1.5 metres at low water", "number", id="a number shortened"),
        pytest.param("04 ships – more than ever before – with a staff", "number", id="cut within a number"),
        pytest.param("more than ever before – with a staff of 31", "number", id="cut within a number at the end"),
        pytest.param("Critics say that the basin is profitable. The cooperative runs", "negation", id="a “not” taken out"),
        pytest.param("the harbour of Ostermark was not opened in 1874, and it wasn’t", "negation", id="a “not” put in"),
        pytest.param("it is possible to say when.", "negation", id="a word turned round"),
        pytest.param("possible to say when.", "", id="cut so that a word turns round"),
        pytest.param("It is 5 °C there.", "", id="a sign left out"),
        pytest.param("See [12] for m² and 102 of it", "number", id="a power made a number"),
        pytest.param("According to the harbour office, the mean depth is 11.5 metres at low water.", "cut", id="a clause cut"),
        pytest.param(
            "The harbour of Ostermark was opened in 1874. Critics say that the basin is not profitable.", "", id="sentences stitched"
        ),
        pytest.param("with a staff of 312 people. The harbour of Ostermark was opened in 1874", "stitched", id="stitched in another order"),
        pytest.param("Critics say that the basin is not profitable … The harbour of Ostermark", "order", id="parts in another order"),
        pytest.param("Critics say … that the harbour is hopeless", "harbour is hopeless", id="a part that is missing"),
        pytest.param("Opponents claim the dock makes no money.", "not on the page", id="a paraphrase"),
        pytest.param("In 1874 the harbour in Ostermark opened, and only by 1912 had it been made deeper.", "not on", id="a paraphrase with the numbers"),
        pytest.param("", "no word", id="nothing"),
        pytest.param(" … [...] ", "no word", id="ellipses alone"),
        pytest.param("—", "no word", id="a dash alone"),
        pytest.param("ـ", "no word", id="what folding leaves nothing of"),
        pytest.param("a … " * 500, "parts", id="too many parts"),
    ],
)  # fmt: skip
def test_what_does_not_pass(excerpt: str, why: str) -> None:
    found = find(excerpt)
    assert not passes(found, offline=True), found
    assert not passes(found, offline=False)
    assert why in found.why_not
    assert found.why_not


def test_a_part_is_looked_for_further_on_when_its_first_place_will_not_do() -> None:
    found = find("5 cranes", "There are 25 cranes; 1.5 cranes; 5 cranes.")
    assert found.rung == "exact"
    assert found.parts[0].start == 33


def test_the_text_that_has_it_on_the_stronger_rung_is_taken() -> None:
    texts = [("first", "the “new” basin"), ("second", 'the "new" basin'), ("third", 'the "new" basin')]
    found = locate('the "new" basin', texts)
    assert (found.rung, found.text) == ("exact", "second")


def test_the_parts_have_to_stand_in_one_text() -> None:
    found = locate("The first part … the second part", [("one", "The first part."), ("two", "the second part")])
    assert found.rung == "none"
    assert not found.located


def test_no_text_no_place() -> None:
    assert locate("anything", []).why_not == "the page has no text"


NEAR_PAGE = (
    "Filler sentence before it. The regional organisation of fishing harbours published its yearly report on the "
    "colour of buoys, and 14 of its 27 members signed it without a reservation of their own. Filler after it."
)


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        pytest.param("organisation", "organization", "", id="spelling"),
        pytest.param("colour", "color", "", id="a letter"),
        pytest.param("published its yearly", "published the yearly", "worded differently", id="a word"),
        pytest.param("fishing harbours", "fishing and trading harbours", "added", id="words put in"),
        pytest.param("of fishing harbours ", "", "cut", id="words left out"),
        pytest.param("14", "15", "number", id="a number"),
        pytest.param("14 of its 27", "27 of its 14", "number", id="numbers exchanged"),
        pytest.param("14 of", "of", "number", id="a number left out"),
        pytest.param("without", "with", "negation", id="without"),
        pytest.param("signed", "never signed", "negation", id="never"),
    ],
)
def test_what_differs_in_a_near_passage(old: str, new: str, why: str) -> None:
    quoted = NEAR_PAGE[27:-14]
    assert quoted.count(old) == 1
    found = find(quoted.replace(old, new), NEAR_PAGE)
    assert found.rung == "near"
    assert 90 <= found.ratio < 100
    assert (why in found.why_not) if why else (found.why_not == "")
    assert passes(found, offline=True) == (not why)
    assert not passes(found, offline=False)


def test_marks_of_footnotes_are_no_words() -> None:
    page = "The harbour of Ostermark was opened in 1874[3] by the queen[a] herself, as all the papers had it."
    found = find(
        "The harbour of Ostermark was opened in 1874 by the queen herself, as all the papers had it.", page
    )
    assert (found.rung, found.why_not) == ("near", "")


# --- many at once ---

SUBJECTS = (
    "The harbour office",
    "A committee of the town",
    "The fishing fleet",
    "Every second pilot",
    "The ministry",
    "Our correspondent",
)
VERBS = ("reported", "found", "estimated", "announced", "recorded", "denied")
OBJECTS = (
    "ships in the inner basin",
    "tonnes of herring on the market",
    "cranes along the eastern quay",
    "days of fog in the strait",
)
CLAUSES = (
    "according to the yearly survey",
    "which surprised the council",
    "as the tide tables show",
    "in spite of the storm",
)


def sentences(count: int, seed: int) -> list[str]:
    rng = random.Random(seed)
    return [
        f"{rng.choice(SUBJECTS)} {rng.choice(VERBS)} {rng.randint(2, 9_999):,} {rng.choice(OBJECTS)}, {rng.choice(CLAUSES)}, "
        f"between {rng.randint(1_880, 1_950)} and {rng.randint(1_951, 2_024)} in district {index}."
        for index in range(count)
    ]


def falsified(told: list[str], kind: str, rng: random.Random) -> str:
    place = rng.randrange(len(told) - 5)
    sentence = told[place]
    if kind == "number":
        spot = rng.choice(list(re.finditer(r"\d", sentence)))
        return sentence[: spot.start()] + str((int(spot[0]) + rng.randint(1, 8)) % 10) + sentence[spot.end() :]
    if kind == "not":
        verb = next(verb for verb in VERBS if verb in sentence)
        return sentence.replace(verb, f"not {verb}", 1)
    if kind == "clause":
        return re.sub(r", [a-z ]+, between", " between", sentence, count=1)
    return f"{sentence} {told[place + rng.randint(2, 4)]}"


@pytest.mark.parametrize("kind", ["number", "not", "clause", "stitched"])
@pytest.mark.parametrize("offline", [True, False])
def test_falsified_excerpts_fail(kind: str, offline: bool) -> None:
    told = sentences(400, seed=7)
    texts = [("first", "\n".join(told)), ("second", " ".join(told))]
    rng = random.Random(kind)
    passed = [
        text
        for text in (falsified(told, kind, rng) for _ in range(50))
        if passes(locate(text, texts), offline=offline)
    ]
    assert len(passed) <= 1, passed


NOISE = {
    "curly quotes": ("'", "’"),
    "no-break spaces": (" ", "\u00a0"),
    "dashes": ("-", "–"),
    "line ends": (" in ", "\nin "),
    "inline tags": (" the ", " the"),
    "soft hyphens": ("committee", "com\u00admit\u00adtee"),
    "ligatures": ("fi", "ﬁ"),
    "hyphenated line ends": ("survey", "sur-\nvey"),
    "wide blanks": (", ", ",\u2003"),
    "zero width": ("storm", "st\u200borm"),
}


@pytest.mark.parametrize("noise", NOISE)
def test_true_excerpts_pass_whatever_the_page_did_to_them(noise: str) -> None:
    told = sentences(200, seed=11)
    old, new = NOISE[noise]
    texts = [("first", "\n".join(told).replace(old, new))]
    rng = random.Random(noise)
    for _ in range(20):
        place = rng.randrange(len(told) - 2)
        excerpt = rng.choice(
            [told[place], f"{told[place]} {told[place + 1]}", f"{told[place][:40]} … {told[place + 1]}"]
        )
        assert passes(locate(excerpt, texts), offline=False), excerpt


# --- properties ---

TEXTS = st.text(
    st.one_of(
        st.sampled_from(list("ab c1 25.,-\n’“–…\u00ad*_|²½é\u0301ﬁ#北不no t")),
        st.characters(codec="utf-8"),
    ),
    max_size=80,
)


@given(TEXTS)
def test_folding_a_folded_text_changes_nothing(text: str) -> None:
    once = fold(text)
    assert fold(once.text).text == once.text
    assert Squeezed(once.text).text == squeeze(once.text)


@given(TEXTS, st.data())
def test_offsets_of_a_folded_text_lead_back(text: str, data: st.DataObject) -> None:
    folded = fold(text)
    if not folded.text:
        return
    start = data.draw(st.integers(0, len(folded.text) - 1))
    end = data.draw(st.integers(start + 1, len(folded.text)))
    span = folded.span(start, end)
    if span is not None:
        assert 0 <= span[0] < span[1] <= len(text)
        # what the neighbours would have done to its ends aside, the passage folds to what it folded to
        assert squeeze(fold_text(text[slice(*span)])) == squeeze(
            folded.text[start:end].strip()
        ) or _is_numeric_edge(folded.text, start, end)


def _is_numeric_edge(text: str, start: int, end: int) -> bool:
    """`²` after a digit is `^2`, and alone it is `2`."""
    return text[start] == "^" or text[start : start + 1].isdecimal() or text[end - 1 : end].isdecimal()


@given(st.text("ab -", max_size=60), st.data())
def test_offsets_of_a_squeezed_text_lead_back(text: str, data: st.DataObject) -> None:
    narrow = Squeezed(text * 60)
    if narrow.text:
        at = data.draw(st.integers(0, len(narrow.text) - 1))
        place = narrow.index(at)
        assert (text * 60)[place] == narrow.text[at]
        assert len(squeeze((text * 60)[:place])) == at


@given(TEXTS, TEXTS, TEXTS)
def test_what_is_found_is_what_was_quoted(before: str, excerpt: str, after: str) -> None:
    page = f"{before} {excerpt} {after}"
    found = locate(excerpt, [("first", page)])
    if found.rung in ("exact", "folded", "squeezed"):
        for part in found.parts:
            assert squeeze(fold_text(page[part.start : part.end])) == squeeze(fold_text(part.text))
        assert all(one.end <= other.start for one, other in pairwise(found.parts))


@given(
    st.lists(
        st.sampled_from(["alpha", "beta", "not", "7", "12", "1,204", "-5", "gamma"]), min_size=1, max_size=14
    ),
    st.data(),
)
def test_nothing_passes_with_a_number_or_a_negation_missing(words: list[str], data: st.DataObject) -> None:
    page = " ".join(words) + ". " + " ".join(["delta epsilon"] * 3)
    quoted = list(words)
    for _ in range(data.draw(st.integers(0, 2))):
        place = data.draw(st.integers(0, len(quoted)))
        quoted.insert(place, data.draw(st.sampled_from(["not", "8", "alpha", "never"])))
    excerpt = " ".join(quoted)
    found = locate(excerpt, [("first", page)])
    if passes(found, offline=True):
        said = " ".join(fold_text(page[part.start : part.end]) for part in found.parts)
        mine, theirs = what_matters(read_words(fold_text(excerpt))), what_matters(read_words(said))
        assert mine == theirs


# --- its parts ---


@pytest.mark.parametrize(
    ("text", "folded"),
    [
        ("“a” ‘b’ «c» `d`", "'a' 'b' 'c' d"),
        ("a – b — c − d", "a - b - c - d"),
        ("a -- b", "a - b"),
        ("wait… or.....", "wait... or..."),
        ("e\u0301 é", "é é"),
        ("e\u00ad\u0301", "é"),
        ("ﬁne ﬂow", "fine flow"),
        ("ｶﾞ Ｗｉｄｅ", "ガ Wide"),
        ("a\u200bb\u202ec\ufeffd", "abcd"),
        ("10² km²", "10^2 km2"),
        ("1½ ½", "1 1/2 1/2"),
        ("5①6", "5 1 6"),
        ("**a** _b_ | c | • d", "a b c d"),
        ("5*3 5\u00ad3", "5 3 53"),
        ("العـــربية", "العربية"),
        (" a \t\n b ", " a b "),
        ("Straße", "Straße"),
    ],
)
def test_folding(text: str, folded: str) -> None:
    assert fold(text).text == folded


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("1,204 ships, 11.5 m", ["1204", "ships", "11.5", "m"]),
        ("-5 or (-3) but 1990-1995, 4 -6, a-7", ["-5", "or", "-3", "but", "1990", "1995", "4", "6", "a", "7"]),
        ("don't CAN'T", ["don't", "can't"]),
        ("北京 不", ["北", "京", "不"]),
        ("٣ ships", ["3", "ships"]),
    ],
)
def test_words(text: str, words: list[str]) -> None:
    assert [word.text for word in read_words(text)] == words


@pytest.mark.parametrize(
    ("text", "cut", "changes"),
    [
        ("112 people", "12 people", True),
        ("1.5 million", "5 million", True),
        ("in 2019.", "in 201", True),
        ("at −5 °C", "5 °C", True),
        ("1990-1995", "1995", False),
        ("is impossible", "possible", True),
        ("we can’t go", "we can", True),
        ("a notable", "a not", True),
        ("non-toxic", "toxic", True),
        ("the heart of war", "art of war", False),
        ("with sixty cranes", "with six", True),
        ("Every second pilot", "econd pilot", False),
        ("12 people", "12 people", False),
        ("… ", "…", False),
    ],
)
def test_cuts_that_change_what_is_said(text: str, cut: str, changes: bool) -> None:
    start = text.index(cut)
    assert cut_changes(text, start, start + len(cut)) == changes


def test_likeness_is_found_wherever_it_stands() -> None:
    rng = random.Random(3)
    filler = " ".join("".join(rng.choice("abcdefghij") for _ in range(rng.randint(2, 8))) for _ in range(20_000))
    quoted = "the quick brown foxes jumped over all the lazy dogs in the yard behind the mill"
    for place in (0, len(filler) // 2, len(filler)):
        page = filler[:place] + f" {quoted.replace('brown', 'brawn')} " + filler[place:]
        found = nearest(quoted, page)
        assert found is not None
        assert found.ratio > 97
        assert difference(quoted, page[found.start : found.end]) == ""


@pytest.mark.parametrize(
    ("excerpt", "page"),
    [
        pytest.param("ab" * 150 + "c", "ab" * 75_000, id="two letters"),
        pytest.param("a b " * 1_000 + "c", "a b " * 40_000, id="two words"),
        pytest.param("1" * 200, "1" * 200_000, id="digits"),
        pytest.param("word … " * 190, "word " * 40_000, id="many parts"),
        pytest.param("x" * 9_000, "x " * 100_000, id="a long word"),
        pytest.param("e\u0301" * 100, "e" + "\u0301" * 100_000, id="accents"),
        pytest.param("not on the page " * 600, "not on the pagf " * 15_000, id="near misses"),
        pytest.param("[" * 3_000 + "a", "[a](" * 40_000, id="brackets"),
    ],
)
def test_hostile_pages_end(excerpt: str, page: str) -> None:
    """The work is bounded, so that each of these ends; how fast is measured in benchmarks/alignment.py."""
    found = find(excerpt, page)
    assert found.rung in ("exact", "folded", "squeezed", "near", "none")
    assert found.located == (found.rung != "none")
