"""The parts of system=search_and_answer: blocked addresses, links that may stay, what back-ends are asked and say."""

from __future__ import annotations

import json
from typing import Any

import pytest
from adapters_helpers import config
from fakes.search_server import SearchServer

from adapters._baseline_model import Tally
from adapters._baseline_prompts import Source, as_text, fresh_queries, source_of, with_checked_links
from adapters._baseline_search import KINDS, Hit, is_blocked
from adapters.search_and_answer import search_and_answer
from core.errors import CallError
from core.pages.page import Page
from core.testing import TEST_KEY, services

BLOCKED = ("huggingface.co/datasets/org/set", "arxiv.org/abs/2602.11685", "site.example", "b.example/A/b/")


@pytest.mark.parametrize(
    "url",
    [
        "https://huggingface.co/datasets/org/set",
        "http://HuggingFace.co:443/datasets/ORG/set/",
        "https://www.huggingface.co/datasets/org/set/resolve/main/x.parquet?download=1",
        "https://huggingface.co//datasets//org/set#readme",
        "https://huggingface.co/x/../datasets/org/set",
        "https://huggingface.co/datasets/org%2Fset",
        "https://huggingface.co./datasets/org/set",
        "https://me@huggingface.co/datasets/org/set.json",
        "https://arxiv.org/abs/2602.11685v2",
        "https://site.example",
        "https://deep.site.example/any?thing",
        "https://b.example/a/b",
        "https://web.archive.example/web/2026/https://huggingface.co/datasets/org/set",
        "https://go.example/?to=https%3A%2F%2Farxiv.org%2Fabs%2F2602.11685",
    ],
)
def test_what_is_blocked(url: str) -> None:
    assert is_blocked(url, BLOCKED)


@pytest.mark.parametrize(
    "url",
    [
        "https://huggingface.co/datasets/org/settings",
        "https://huggingface.co/datasets/org/set-2",
        "https://huggingface.co/datasets/org",
        "https://nothuggingface.co/datasets/org/set",
        "https://huggingface.co.evil.example/datasets/org/set",
        "https://arxiv.org/abs/2602.116851",
        "https://arxiv.org/abs/2602.11685vx",
        "https://site.example.org/",
        "https://news.example/about/site.example",
        "https://b.example/a/bc",
        "not an address",
        "https://[half/",
        "",
    ],
)
def test_what_is_not_blocked(url: str) -> None:
    assert not is_blocked(url, BLOCKED)
    assert not is_blocked(url, ())


READ = ["https://a.example/x", "https://a.example/wiki/Foo_(bar)", "https://b.example/q?a=1&b=2"]


@pytest.mark.parametrize(
    ("text", "left", "removed"),
    [
        ("See [A](https://a.example/x).", "See [A](https://a.example/x).", []),
        ("See [A](https://a.example/y).", "See A.", ["https://a.example/y"]),
        ("[A](https://a.example/) [B](https://a.example/x)", "A [B](https://a.example/x)", ["https://a.example/"]),
        ("[F](https://a.example/wiki/Foo_(bar)), ok", "[F](https://a.example/wiki/Foo_(bar)), ok", []),
        ("[F](https://a.example/wiki/Bar_(foo)), no", "F, no", ["https://a.example/wiki/Bar_(foo)"]),
        (
            "[Q](https://b.example/q?b=2&a=1&utm_source=x#top)",
            "[Q](https://b.example/q?b=2&a=1&utm_source=x#top)",
            [],
        ),
        ('[T](https://c.example "a title")', "T", ["https://c.example"]),
        ("[T](<https://c.example>)", "T", ["https://c.example"]),
        ("bare https://a.example/x, fine", "bare https://a.example/x, fine", []),
        ("bare https://c.example/x, gone", "bare , gone", ["https://c.example/x"]),
        ("(<https://c.example/x>)", "()", ["https://c.example/x"]),
        ("<https://a.example/x>", "<https://a.example/x>", []),
        ("![pixel](https://c.example/p.png?secret)", "pixel", ["https://c.example/p.png?secret"]),
        ("[https://c.example](https://a.example/x)", "[](https://a.example/x)", ["https://c.example"]),
        ("[https://c.example](https://c.example)", "", ["https://c.example"]),
        ("[1]: https://c.example/x", "[1]: ", ["https://c.example/x"]),
        ('<a href="https://c.example/x">x</a>', '<a href="">x</a>', ["https://c.example/x"]),
        ("[up](#top) [js](javascript:alert) [rel](/etc)", "[up](#top) js rel", ["javascript:alert", "/etc"]),
        ("[half](https://c.example/x", "[half](", ["https://c.example/x"]),
        ("no link [at] (all)", "no link [at] (all)", []),
    ],
)
def test_links_lead_to_pages_that_were_fetched(text: str, left: str, removed: list[str]) -> None:
    assert with_checked_links(text, READ) == (left, removed)


@pytest.mark.parametrize("text", ["[" * 50_000, "[a](" * 20_000, "https://" * 20_000, "[a](" + "(" * 50_000])
def test_hostile_texts_are_checked_in_passing(text: str) -> None:
    with_checked_links(text, READ)


def test_queries_are_lines_of_their_own() -> None:
    proposed = ["  one\n two ", "ONE TWO", "", 7, "x" * 999, "old"]
    assert fresh_queries(proposed, ["Old"], 9) == ["one two", "7", "x" * 299 + "…"]
    assert fresh_queries(None, [], 9) == []


PAGE = Page("https://a.example/x", "ok", texts=(("all", "It was built in 1871 – not earlier. “Red” it is."),))


@pytest.mark.parametrize(
    ("passage", "stays"),
    [
        ("It was built in 1871", True),
        ('It was built\n in 1871 - not earlier. "Red" it is.', True),
        ("It was built … not earlier", True),
        ("It was built in 1872", False),
        ("It was built in 187", False),
        ("It was built in 1871 – earlier", False),
        ("", False),
        ("x" * 3000, False),
    ],
)
def test_a_note_stays_where_its_page_says_it(passage: str, stays: bool) -> None:
    found = source_of(PAGE, "T", {"notes": [{"fact": "f", "passage": passage}]})
    assert (len(found.notes), found.dropped) == ((1, 0) if stays else (0, 1))


def test_a_title_cannot_open_a_link_of_its_own() -> None:
    source = source_of(PAGE, "X](https://evil.example) [y", {"notes": [{"fact": "f", "passage": "Red"}]})
    assert as_text([source, Source("u", "nothing noted")]).splitlines()[0] == (
        "[X https://evil.example y](https://a.example/x)"
    )


def search(server: SearchServer, name: str) -> Any:
    return search_and_answer(config("search_and_answer", search=name, search_url=server.url), services()).search


@pytest.mark.parametrize(
    ("name", "header"),
    [
        ("searxng", {}),
        ("brave", {"x-subscription-token": TEST_KEY}),
        ("tavily", {"authorization": f"Bearer {TEST_KEY}"}),
    ],
)
async def test_a_back_end_is_asked_in_its_own_form(name: str, header: dict[str, str]) -> None:
    with SearchServer({}, ["/a", "https://b.example/"]) as server:
        made, tally = search(server, name), Tally()
        found = await made.find("rivers & «bridges»", tally)
        assert found == [Hit(f"{server.url}/a", "About /a"), Hit("https://b.example/", "About https://b.example/")]
        assert server.queries == ["rivers & «bridges»"]
        assert header.items() <= server.headers[0].items()
        assert tally.searches == 1
        await made._services.http.aclose()


HOSTILE: dict[str, Any] = {
    "no list": {"results": {"url": "https://a.example"}},
    "no objects": {"results": [None, 1, "https://a.example", ["x"]]},
    "no addresses": {"results": [{"url": 1}, {"url": None}, {}, {"title": "x"}]},
    "other schemes": {"results": [{"url": "file:///etc/passwd"}, {"url": "javascript:x"}, {"url": "//a.example"}]},
    "odd addresses": {
        "results": [{"url": "https://a b"}, {"url": "https://a\x00b"}, {"url": "https://a/" + "x" * 3000}]
    },
    "nothing at all": {},
}


@pytest.mark.parametrize("body", HOSTILE.values(), ids=HOSTILE)
@pytest.mark.parametrize("name", KINDS)
async def test_results_of_another_form_are_passed_over(name: str, body: Any) -> None:
    with SearchServer(reply=(200, {"web": body} if name == "brave" else body)) as server:
        made = search(server, name)
        assert await made.find("x", Tally()) == []
        await made._services.http.aclose()


async def test_a_title_is_one_line_of_bounded_length_and_results_are_counted() -> None:
    entries = [{"url": f"https://a.example/{n}", "title": "a\n\x00b" * 200} for n in range(30)]
    with SearchServer(reply=(200, {"results": entries})) as server:
        made = search(server, "searxng")
        found = await made.find("x", Tally())
        assert len(found) == 10
        assert all(len(hit.title) == 200 and hit.title.isprintable() for hit in found)
        await made._services.http.aclose()


async def test_a_failed_search_names_the_back_end_and_hides_the_key() -> None:
    with SearchServer(reply=(400, {"detail": {"error": f"odd query for {TEST_KEY}"}})) as server:
        made, tally = search(server, "tavily"), Tally()
        with pytest.raises(CallError) as caught:
            await made.find("x", tally)
        assert caught.value.kind == "bad_request"
        assert caught.value.message.startswith("tavily: ")
        assert TEST_KEY not in json.dumps(caught.value.message)
        assert (tally.searches, tally.usd) == (1, 0.0)
        await made._services.http.aclose()
