"""The sources that a chat answer names: forms, order, what is passed over."""

from __future__ import annotations

import json
from typing import Any

import pytest
from conftest import SHARED
from hypothesis import given
from hypothesis import strategies as st

from adapters._citations import cited, in_text
from core.model import Citation

A, B = "https://a.example/1", "https://b.example/2"


def body(message: Any = None, **top: Any) -> dict[str, Any]:
    return {"choices": [{"message": {"content": "see https://in-text.example", **(message or {})}}], **top}


def annotation(url: Any, **more: Any) -> dict[str, Any]:
    return {"type": "url_citation", "url_citation": {"url": url, **more}}


FORMS: dict[str, tuple[dict[str, Any], list[Citation]]] = {
    "annotations": (
        body({"annotations": [annotation(A, title="One", content="quoted", start_index=0), annotation(B)]}),
        [Citation(url=A, title="One", excerpt="quoted"), Citation(url=B)],
    ),
    "flat annotations": (
        body({"annotations": [{"type": "url_citation", "url": A, "title": "One"}]}),
        [Citation(url=A, title="One")],
    ),
    "an address annotated twice": (
        body({"annotations": [annotation(A), annotation(B), annotation(A, title="One")]}),
        [Citation(url=A, title="One"), Citation(url=B)],
    ),
    "lists of quotations": (
        body({"provider_specific_fields": {"citations": [[{"url": A, "cited_text": "q"}], [{"url": B}]]}}),
        [Citation(url=A, excerpt="q"), Citation(url=B)],
    ),
    "addresses": (body(citations=[A, B]), [Citation(url=A), Citation(url=B)]),
    "addresses and results": (
        body(
            citations=[B], search_results=[{"url": A, "title": "One", "snippet": "s"}, {"url": B, "title": "Two"}]
        ),
        [Citation(url=B, title="Two"), Citation(url=A, title="One", excerpt="s")],
    ),
    "annotations before lists, which add to them": (
        body({"annotations": [annotation(A)]}, citations=[A, B], search_results=[{"url": A, "title": "One"}]),
        [Citation(url=A, title="One")],
    ),
    "the text when nothing else is there": (
        body({"annotations": [], "provider_specific_fields": None}, citations=None),
        [Citation(url="https://in-text.example")],
    ),
    "other forms are passed over": (
        body(
            {
                "annotations": [
                    None,
                    5,
                    {"url_citation": 3},
                    annotation(7),
                    annotation(" "),
                    annotation(B, title=[]),
                ]
            }
        ),
        [Citation(url=B)],
    ),
    "no choices": ({"choices": []}, []),
    "no message": ({"choices": [None]}, []),
    "no text": (body({"content": None}), []),
}


@pytest.mark.parametrize(("answer", "expected"), FORMS.values(), ids=FORMS)
def test_forms(answer: dict[str, Any], expected: list[Citation]) -> None:
    assert list(cited(answer)) == expected


TEXTS = {
    "a sentence's end": (f"See {A}.", [A]),
    "a comma and a quote": (f'"{A}", "{B}"', [A, B]),
    "brackets around": (f"({A}), <{B}>", [A, B]),
    "brackets inside": ("https://a.example/x_(y)_z)", ["https://a.example/x_(y)_z"]),
    "bold": (f"**{A}**", [A]),
    "twice": (f"{A} {B} {A}", [A, B]),
    "a table": (f"| {A} | {B} |", [A, B]),
    "JSON": (json.dumps({"source": A, "other": [B]}), [A, B]),
    "other letters": ("https://müller.example/straße", ["https://müller.example/straße"]),
    "capitals": ("HTTPS://A.example/1", ["HTTPS://A.example/1"]),
    "no host": ("https://. http:// https://)", []),
    "other schemes": ("ftp://a.example javascript:alert(1)", []),
}


@pytest.mark.parametrize(("text", "expected"), TEXTS.values(), ids=TEXTS)
def test_addresses_in_texts(text: str, expected: list[str]) -> None:
    assert [citation.url for citation in in_text(text)] == expected


def test_a_markdown_link_has_a_title() -> None:
    assert in_text(f"[The title]({A}) and [1]({B})") == (
        Citation(url=A, title="The title"),
        Citation(url=B, title="1"),
    )


@given(st.text(alphabet="[]()htps:/a. \n", max_size=200))
def test_every_address_stands_in_the_text(text: str) -> None:
    found = [citation.url for citation in in_text(text)]
    assert all(url in text and url.startswith(("http://", "https://")) for url in found)
    assert len(found) == len(set(found))


SAMPLES = SHARED / "data" / "providers" / "openai_compat"


@pytest.mark.parametrize(
    ("name", "urls", "first"),
    [
        ("01_chat", 1, "The association has three members"),
        ("02_chat_citations_list", 4, "The association has three members"),
    ],
)
def test_recorded_answers(name: str, urls: int, first: str) -> None:
    path = SAMPLES / f"{name}.json"
    if not path.exists():
        pytest.skip("the recorded answers are not part of the repository")
    found = cited(json.loads(path.read_text())["response"]["json"])
    assert len(found) == urls
    assert found[0].title is not None
    assert (found[0].excerpt or "").startswith(first)
