"""Deterministic norms: tables of what becomes of a value, and what holds for every value."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from wandr_helpers import given_tasks, needs_given, root_of
from wandr_helpers import key as plain_key
from wandr_helpers import node as plain_node

from plugins.wandr import norms
from plugins.wandr.model import Canonicalize, Key
from plugins.wandr.norms import NOT_FOUND, fold_alias, fold_exact, normalise, normalise_url, raw_value
from plugins.wandr.tree import tree_of

QUARTERS = Canonicalize("exact_set", {"2024-Q1": (), "law firm": (), "in_house": ()})
CITIES = Canonicalize("alias_set", {"São Paulo": ("sampa", "SP"), "the_hague": ("Den Haag", "'s-Gravenhage")})


def key(spec: Canonicalize | None, name: str = "k", *fields: str) -> Key:
    return Key(name, fields or (name,), 1, spec)


@pytest.mark.parametrize(
    ("spec", "raw", "expected"),
    [
        pytest.param(None, "  As Is ", "  As Is ", id="no norm"),
        pytest.param(Canonicalize("text"), "  The\t BIG\n\u00a0City ", "the big city", id="text: case and blanks"),
        pytest.param(Canonicalize("text"), "R&D — 2.0", "r&d — 2.0", id="text: marks stay"),
        pytest.param(Canonicalize("url"), " HTTPS://www.Example.org/A/ ", "example.org/a", id="url: all at once"),
        pytest.param(Canonicalize("url"), "http://example.org", "example.org", id="url: scheme"),
        pytest.param(Canonicalize("url"), "www.example.org//", "example.org", id="url: several slashes"),
        pytest.param(Canonicalize("url"), "https://m.www.org/?q=A#B", "m.www.org/?q=a#b", id="url: query stays"),
        pytest.param(QUARTERS, "2024-q1", "2024-Q1", id="exact: as the member is written"),
        pytest.param(QUARTERS, "2024 Q1", "2024-Q1", id="exact: a blank is a dash"),
        pytest.param(QUARTERS, "2024_q1", "2024-Q1", id="exact: so is an underscore"),
        pytest.param(QUARTERS, " Law  Firm ", "law firm", id="exact: the member has a blank"),
        pytest.param(QUARTERS, "In-House", "in_house", id="exact: fixed point"),
        pytest.param(QUARTERS, "2024-Q5", NOT_FOUND, id="exact: no member"),
        pytest.param(QUARTERS, "law firms", NOT_FOUND, id="exact: nearly a member"),
        pytest.param(QUARTERS, "", NOT_FOUND, id="exact: empty"),
        pytest.param(CITIES, "SAO PAULO", "São Paulo", id="alias: the member without its accent"),
        pytest.param(CITIES, "Sampa!", "São Paulo", id="alias: an alias"),
        pytest.param(CITIES, "sp", "São Paulo", id="alias: an alias in another case"),
        pytest.param(CITIES, "The Hague", "the_hague", id="alias: the member's underscore"),
        pytest.param(CITIES, "s gravenhage", "the_hague", id="alias: folded on both sides"),
        pytest.param(CITIES, "ＳＰ", "São Paulo", id="alias: full-width letters"),
        pytest.param(CITIES, "サンパウロ", NOT_FOUND, id="alias: another script"),
        pytest.param(CITIES, "—", NOT_FOUND, id="alias: nothing left"),
        pytest.param(Canonicalize("custom", custom="f"), " A  B", "a b", id="custom: text"),
    ],
)
def test_what_becomes_of_a_value(spec: Canonicalize | None, raw: str, expected: str) -> None:
    assert normalise(key(spec), raw) == expected


def test_a_custom_norm_of_the_url_is_the_url_norm() -> None:
    assert normalise(key(Canonicalize("custom", custom="f"), "url"), "http://www.A.org/") == "a.org"


@pytest.mark.parametrize(
    ("fields", "item", "expected"),
    [
        pytest.param(("city",), {"city": "Ghent", "more": "x"}, "Ghent", id="one field"),
        pytest.param(("company", "appointee"), {"appointee": "B", "company": "A"}, "A,B", id="in the key's order"),
        pytest.param(("a", "b"), {"a": "x,y", "b": ""}, "x,y,", id="nothing is quoted"),
        pytest.param(("a", "b"), {"b": "y"}, ",y", id="a field that is missing is empty"),
    ],
)
def test_raw_value(fields: tuple[str, ...], item: dict[str, str], expected: str) -> None:
    assert raw_value(key(None, "k", *fields), item) == expected


@given(raw=st.text())
def test_the_text_norm_is_idempotent(raw: str) -> None:
    once = normalise(key(Canonicalize("text")), raw)
    assert normalise(key(Canonicalize("text")), once) == once
    assert once.split(" ") == once.split() or once == ""


@given(raw=st.text(alphabet=st.characters(exclude_categories=["Z", "C"])))
def test_the_url_norm_is_idempotent_where_one_scheme_stands(raw: str) -> None:
    once = normalise_url(raw)
    assert not once.endswith("/")
    if not once.startswith(("http://", "https://", "www.")):  # one scheme is taken off, not two
        assert normalise_url(once) == once
        assert normalise_url(f"https://www.{once}") == once


@given(raw=st.text())
def test_folds_are_idempotent(raw: str) -> None:
    assert fold_exact(fold_exact(raw)) == fold_exact(raw)
    assert fold_alias(fold_alias(raw)) == fold_alias(raw)


@given(path=st.from_regex(r"[a-z0-9]{1,9}(/[A-Za-z0-9]{1,5}){0,3}", fullmatch=True))
def test_a_page_has_one_address(path: str) -> None:
    spellings = [
        f"{scheme}{www}{path}{slash}"
        for scheme in ("http://", "https://")
        for www in ("", "www.")
        for slash in ("", "/")
    ]
    assert {normalise_url(each) for each in spellings} == {normalise_url(f"https://{path}")}


names = st.text(alphabet="abcXYZ019 -_éß", min_size=1, max_size=9).filter(fold_alias)


@given(members=st.lists(names, min_size=1, max_size=6, unique_by=fold_exact), raw=st.text(max_size=12))
def test_an_exact_set_gives_members_as_written_or_nothing(members: list[str], raw: str) -> None:
    spec = key(Canonicalize("exact_set", dict.fromkeys(members, ())))
    assert normalise(spec, raw) in {*members, NOT_FOUND}
    for member in members:
        for spelling in (member, member.lower(), f" {member}\n", fold_exact(member)):
            assert normalise(spec, spelling) == member


@given(
    sets=st.dictionaries(names, st.lists(names, max_size=3), min_size=1, max_size=4),
    raw=st.text(max_size=12),
)
def test_an_alias_set_folds_both_sides(sets: dict[str, list[str]], raw: str) -> None:
    spec = Canonicalize("alias_set", {member: tuple(aliases) for member, aliases in sets.items()})
    owners: dict[str, str] = {}
    for fold, _, member in norms.folds(spec):
        owners.setdefault(fold, member)
    assert normalise(key(spec), raw) == owners.get(fold_alias(raw), NOT_FOUND)
    for fold, written, _ in norms.folds(spec):
        assert normalise(key(spec), f"({written.upper()})") == owners.get(fold_alias(written.upper()), NOT_FOUND)
        assert normalise(key(spec), fold) == owners[fold]


def test_no_set_answers_for_another() -> None:
    for number in range(norms._MOST_FOLDED + 5):
        spec = Canonicalize("exact_set", {f"m{number}": ()})
        assert normalise(key(spec), f"M{number}") == f"m{number}"
        assert normalise(key(spec), f"m{number + 1}") == NOT_FOUND
    assert len(norms._FOLDED) <= norms._MOST_FOLDED


def test_custom_norms_are_flagged_once_a_key() -> None:
    custom = {"norm": "custom", "custom": "f"}
    below = plain_node("t.s", plain_key("city", canonicalize=custom), plain_key("url"))
    tree = plain_node("t", plain_key("city", canonicalize=custom), plain_key("url"), subtasks=[below])
    assert norms.custom_flags(root_of(tree)) == ("custom_norm:city",)


@needs_given
def test_every_member_of_the_given_closed_sets_folds_to_itself() -> None:
    moved, closed = 0, 0
    for task in given_tasks():
        for node in tree_of(task).walk():
            for each in node.keys:
                spec = each.canonicalize
                if spec is None or spec.norm not in ("exact_set", "alias_set"):
                    continue
                closed += 1
                for member, aliases in spec.members.items():
                    assert {normalise(each, written) for written in (member, *aliases)} == {member}
                if spec.norm == "exact_set":
                    moved += sum(fold_exact(member) != member for member in spec.members)
    assert (closed, moved) == (520, 31)
