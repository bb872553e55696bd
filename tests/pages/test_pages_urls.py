"""One spelling for an address, the other addresses of a page, and who owns it."""

from __future__ import annotations

import socket

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.pages.urls import archive_key, is_fetchable_form, registrable_domain, variants


@pytest.mark.parametrize(
    ("url", "key"),
    [
        ("https://example.org", "https://example.org/"),
        ("HTTPS://Example.ORG/Path", "https://example.org/Path"),
        ("https://example.org/a#part", "https://example.org/a"),
        ("https://example.org:443/a", "https://example.org/a"),
        ("http://example.org:80/a", "http://example.org/a"),
        ("https://example.org:8443/a", "https://example.org:8443/a"),
        ("https://example.org./a", "https://example.org/a"),
        ("https://example.org/a?utm_source=x&utm_medium=y", "https://example.org/a"),
        ("https://example.org/a?b=2&gclid=1&fbclid=2&a=1", "https://example.org/a?a=1&b=2"),
        ("https://example.org/a?page=", "https://example.org/a?page="),
        ("https://example.org/a?ref=x", "https://example.org/a?ref=x"),
        ("https://example.org/%7euser%2fx", "https://example.org/~user%2Fx"),
        ("https://example.org/é", "https://example.org/%C3%A9"),
        ("https://bücher.example/", "https://xn--bcher-kva.example/"),
        ("https://user:secret@example.org/a", "https://example.org/a"),
        ("https://[2001:DB8::1]/a", "https://[2001:db8::1]/a"),
        ("  https://example.org/a\n", "https://example.org/a"),
        ("http://[", "http://["),
    ],
)
def test_one_spelling(url: str, key: str) -> None:
    assert archive_key(url) == key


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("https://example.org/a", "http://example.org/a"),
        ("https://example.org/a", "https://www.example.org/a"),
        ("https://example.org/a", "https://example.org/a/"),
        ("https://example.org/a?id=1", "https://example.org/a?id=2"),
        ("https://example.org/A", "https://example.org/a"),
    ],
)
def test_what_may_be_another_page_has_another_key(one: str, other: str) -> None:
    assert archive_key(one) != archive_key(other)


URLS = st.builds(
    "{}://{}{}{}{}".format,
    st.sampled_from(["http", "https", "HTTP"]),
    st.sampled_from(["example.org", "www.Example.org", "a.co.uk:8080", "[2001:db8::1]", "bücher.example"]),
    st.text("/ab.%2é ~", max_size=12).map(lambda path: f"/{path}"),
    st.sampled_from(["", "?", "?a=1&b=&utm_x=1", "?gclid=2&é=ü", "?a=%20+"]),
    st.sampled_from(["", "#x"]),
)


@given(st.one_of(URLS, st.text(max_size=60)))
def test_a_key_is_its_own_key(url: str) -> None:
    assert archive_key(archive_key(url)) == archive_key(url)


@pytest.mark.parametrize(
    ("url", "others"),
    [
        pytest.param(
            "https://example.org/a?utm_source=x",
            ["https://example.org/a", "http://example.org/a", "https://example.org/a/", "https://www.example.org/a",
             "https://www.example.org/a/", "http://www.example.org/a", "http://example.org/a/"],
            id="without tracking first",
        ),
        pytest.param(
            "http://www.example.org/a/",
            ["https://www.example.org/a/", "http://www.example.org/a", "http://example.org/a/", "http://example.org/a",
             "https://example.org/a/", "https://www.example.org/a"],
            id="scheme, slash, www",
        ),
        pytest.param(
            "https://example.org",
            ["http://example.org/", "https://www.example.org/", "http://www.example.org/"],
            id="a site's first page has one slash",
        ),
        pytest.param(
            "https://example.org/report.pdf",
            ["http://example.org/report.pdf", "https://www.example.org/report.pdf", "http://www.example.org/report.pdf"],
            id="a file has no slash",
        ),
        pytest.param("http://127.0.0.1:8123/a", ["http://127.0.0.1:8123/a/"], id="a port belongs to its scheme"),
        pytest.param("ftp://example.org/a", [], id="another scheme"),
        pytest.param("no address", [], id="no address"),
        pytest.param("http://[", [], id="unreadable"),
    ],
)  # fmt: skip
def test_the_other_addresses_of_a_page(url: str, others: list[str]) -> None:
    assert variants(url) == others


@given(URLS)
def test_variants_are_others_and_none_twice(url: str) -> None:
    keys = [url.partition("#")[0], *variants(url)]
    assert len(set(keys)) == len(keys) <= 8


@pytest.mark.parametrize(
    ("url", "domain"),
    [
        ("https://news.bbc.co.uk/a", "bbc.co.uk"),
        ("https://www.Example.org", "example.org"),
        ("example.org/a", "example.org"),
        ("https://127.0.0.1/", "127.0.0.1"),
        ("https://localhost/", "localhost"),
        ("http://[", ""),
    ],
)
def test_who_owns_an_address(url: str, domain: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("the bundled list serves; nothing is fetched")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    assert registrable_domain(url) == domain


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("https://example.org/a?b=c", None),
        ("http://93.184.216.34/", None),
        ("ftp://example.org/", "scheme"),
        ("file:///etc/passwd", "scheme"),
        ("example.org", "scheme"),
        ("http://user:pw@example.org/", "credentials"),
        ("http://127.0.0.1/", "not a public address"),
        ("http://[::ffff:10.0.0.1]/", "not a public address"),
        ("http://2130706433/", "address"),
        ("http://exa mple.org/", "host"),
    ],
)
def test_addresses_that_can_be_fetched_by_their_form(url: str, why: str | None) -> None:
    found = is_fetchable_form(url)
    assert found is None if why is None else why in (found or "")
