"""Walls are told apart from pages, and pages about walls are pages."""

from __future__ import annotations

import pytest

from core.pages.extract import extract

SENTENCE = "The harbour of the invented town of Ostermark was dredged again in the spring, and ships came back. "


def page(title: str, body: str, head: str = "") -> bytes:
    return f"<!doctype html><html><head><title>{title}</title>{head}</head><body>{body}</body></html>".encode()


def status(body: bytes) -> str:
    found = extract(body, "text/html", None, "https://example.org/")
    if found.status == "ok":
        assert found.texts
        assert not found.message
    else:
        assert not found.texts, "a wall's text is no page text"
        assert not found.main_text
        assert found.message
    return found.status


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(
            page(
                "Just a moment...",
                "<h1>example.org</h1><p>Checking your browser</p><script>window._cf_chl_opt={}</script>",
            ),
            id="a challenge with scripts",
        ),
        pytest.param(
            page("Just a moment...", "<noscript>Enable JavaScript and cookies to continue</noscript>"),
            id="a title",
        ),
        pytest.param(
            page(
                "Attention Required! | Cloudflare",
                "<h1>Sorry, you have been blocked</h1><p>You are unable to access it.",
            ),
            id="blocked",
        ),
        pytest.param(page("example.org", "<p>Please verify you are a human</p>"), id="a request"),
        pytest.param(
            page("example.org", "<p>Verify that you’re not a robot.</p>"), id="a request with a curly apostrophe"
        ),
        pytest.param(
            page("example.org", "<div>Press &amp; Hold to confirm you are a human</div><div id=px-captcha></div>"),
            id="a button",
        ),
        pytest.param(
            page(
                "https://example.org/",
                "Our systems have detected unusual traffic from your computer network. Try later.",
            ),
            id="unusual traffic",
        ),
        pytest.param(
            page(
                "Access Denied",
                'You don\'t have permission to access "http://example.org/a" on this server. Reference #18',
            ),
            id="access denied",
        ),
        pytest.param(
            page(
                "",
                "<iframe src='/_Incapsula_Resource?x=1'>Request unsuccessful. Incapsula incident ID: 1</iframe>",
            ),
            id="nothing but a frame of a wall",
        ),
        pytest.param(
            page(
                "example.org", "<p>Security check</p><script src='https://ct.captcha-delivery.com/c.js'></script>"
            ),
            id="a captcha's script",
        ),
    ],
)
def test_walls_for_robots(body: bytes) -> None:
    assert status(body) == "bot_wall"


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(
            page(
                "How captchas work",
                "<h1>How captchas work</h1>"
                + "<p>A page asks you to verify you are human.</p>" * 3
                + f"<p>{SENTENCE * 20}",
            ),
            id="an article about captchas",
        ),
        pytest.param(
            page(
                "CAPTCHA",
                "<p>A CAPTCHA is a test with which sites verify you are human. It was named in 2003.</p>",
            ),
            id="a short entry about captchas",
        ),
        pytest.param(
            page("Security check", "<p>The security check at the airport of Ostermark opens at five.</p>"),
            id="a title by chance",
        ),
        pytest.param(
            page(
                "News",
                f"<p>{SENTENCE * 3}</p><script src='/cdn-cgi/challenge-platform/scripts/jsd/main.js'></script>",
            ),
            id="a page behind Cloudflare",
        ),
        pytest.param(
            page("Contact", f"<form><div class='g-recaptcha'></div></form><p>{SENTENCE}</p>"),
            id="a form with a captcha",
        ),
        pytest.param(
            page("Access denied", f"<p>{SENTENCE * 8}</p><p>The novel “Access denied” is set there.</p>"),
            id="a novel's title",
        ),
        pytest.param(
            page(
                "Cloudflare",
                f"<article><p>{SENTENCE * 20}</p><p>Visitors then see “Just a moment...”.</p></article>",
            ),
            id="an article that quotes a wall",
        ),
    ],
)
def test_pages_that_speak_of_robots(body: bytes) -> None:
    assert status(body) == "ok"


NOT_FREE = '<script type="application/ld+json">{"@type":"NewsArticle","isAccessibleForFree": false}</script>'


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        pytest.param(
            page("News", f"<article><p>{SENTENCE * 2}</p><p>Subscribe to continue reading.</p></article>"), "paywall", id="a teaser"
        ),
        pytest.param(
            page("News", f"<article><p>{SENTENCE}</p><p>This article is for subscribers only.</p></article>"), "paywall",
            id="for subscribers only",
        ),
        pytest.param(
            page("News", f"<article><p>{SENTENCE * 4}</p></article><p>Already a subscriber? Log in</p>", NOT_FREE), "paywall",
            id="says that it is not free, and asks to log in",
        ),
        pytest.param(
            page("News", f"<p>Already a subscriber? Log in</p><article><p>{SENTENCE * 4}</p></article>"), "ok",
            id="a short piece with a door for subscribers",
        ),
        pytest.param(
            page("News", f"<article>{f'<p>{SENTENCE}</p>' * 30}</article><p>Subscribe to continue reading</p>", NOT_FREE), "ok",
            id="the whole article is there",
        ),
        pytest.param(page("News", f"<article><p>{SENTENCE * 4}</p></article>", NOT_FREE), "ok", id="not free, but shown"),
        pytest.param(
            page("News", f"<article><p>{SENTENCE * 3}</p><p>Subscribe to our newsletter.</p></article>"), "ok", id="a newsletter"
        ),
    ],
)  # fmt: skip
def test_walls_for_those_who_do_not_pay(body: bytes, expected: str) -> None:
    assert status(body) == expected


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        pytest.param(page("App", "<div id='root'></div><script src=/main.js></script>"), "empty_js", id="an application's frame"),
        pytest.param(
            page("App", "<noscript>You need to enable JavaScript to run this app.</noscript><div id=root>Loading</div><script></script>"),
            "empty_js", id="it asks for scripts",
        ),
        pytest.param(page("App", "<p>JavaScript is required</p><script></script>"), "empty_js", id="it asks in its text"),
        pytest.param(page("Hi", "<p>A short page, with a counter.</p><script src=/count.js></script>"), "ok", id="a short page"),
        pytest.param(page("Hi", "<p>JavaScript is required in the second term.</p>"), "ok", id="no scripts to wait for"),
        pytest.param(
            page("App", f"<noscript>Enable JavaScript</noscript><div id=root><p>{SENTENCE * 3}</p></div><script></script>"), "ok",
            id="rendered by the server",
        ),
        pytest.param(page("Photo", "<img src=a.png alt='A boat'>"), "unsupported_type", id="nothing but a picture"),
    ],
)  # fmt: skip
def test_pages_that_are_empty_without_scripts(body: bytes, expected: str) -> None:
    assert status(body) == expected
