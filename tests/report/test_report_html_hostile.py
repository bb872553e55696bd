"""What systems, pages and judges wrote stays text: no word of a run becomes a part of the page."""

from __future__ import annotations

import json
import unicodedata
from pathlib import Path

import pytest
from report_folders import Page, told, write_folder
from selectolax.lexbor import LexborHTMLParser

from core.report.html import text, write

HOSTILE = [
    "<script>alert(1)</script>",
    "</script><script>alert(1)</script>",
    "</SCRIPT ><img src=x onerror=alert(1)>",
    "<!--<script>",
    "--><script>alert(1)</script>",
    "<![CDATA[<b>x</b>]]>",
    "<?xml version='1.0'?>",
    "<!doctype html>",
    "</style><script>alert(1)</script>",
    "</title><script>alert(1)</script>",
    "</textarea></select></option><b>x</b>",
    "</table></div></section></main></body></html>",
    "</summary></details></article>",
    "</svg><script>alert(1)</script>",
    "<svg/onload=alert(1)>",
    "<svg><animate onbegin=alert(1) attributeName=x dur=1s>",
    "<math><mi xlink:href='javascript:alert(1)'>x",
    "<img src=x onerror=alert(1)>",
    "<iframe src=javascript:alert(1)>",
    "<iframe srcdoc='<script>alert(1)</script>'>",
    "<object data=data:text/html,x>",
    "<embed src=//example.org/x>",
    "<base href=//example.org/>",
    "<meta http-equiv=refresh content='0;url=//example.org'>",
    "<link rel=stylesheet href=//example.org/x.css>",
    "<form action=//example.org><input name=x>",
    "<a href=javascript:alert(1)>x</a>",
    "<body onload=alert(1)>",
    "<plaintext>",
    "<xmp><script>alert(1)</script>",
    "<noscript><p title='</noscript><img src=x>'>",
    "<template><script>alert(1)</script></template>",
    '" onmouseover="alert(1)',
    "' onmouseover='alert(1)",
    '"><script>alert(1)</script>',
    "'><script>alert(1)</script>",
    "`onmouseover=alert(1)",
    "x onfocus=alert(1) autofocus",
    "{{ 7 * 7 }}",
    "{% include 'page.html.j2' %}{# x #}",
    "{{ self.__init__.__globals__ }}",
    "${alert(1)} #{alert(1)} <%= alert(1) %>",
    "javascript:alert(1)",
    "&lt;script&gt;alert(1)&lt;/script&gt;",
    "&#60;script&#62;alert(1)&#60;/script&#62;",
    "\\u003cscript\\u003ealert(1)\\u003c/script\\u003e",
    '\\"},{"id":"x"}]}',
    "a\u2028alert(1)\u2029b",
    "\u202egnp.exe\u2066\u200b\u00ad\ufeff",
    "nul\x00 bell\x07 escape\x1b[31m delete\x7f",
    "lone \ud800 surrogate",
    "\U000e0041\U000e0042 tags \ufe01 selectors \u3164 blanks",
    "Z\u0300\u0301\u0302\u0303\u0304\u0305\u0306\u0307\u0308\u0309a\u030al\u030bgo",
    "_" * 3000,
    "url(//example.org/x) expression(alert(1)) @import 'x'",
    "+ADw-script+AD4-alert(1)+ADw-/script+AD4-",
]


Skeleton = list[tuple[str, tuple[str, ...]]]


@pytest.fixture(scope="module")
def clean(tmp_path_factory: pytest.TempPathFactory) -> tuple[Skeleton, Skeleton]:
    """The elements of a page in which every word is harmless, to a strict parser and to a browser's rules."""
    folder = write_folder(tmp_path_factory.mktemp("clean") / "run", lambda name: "harmless")
    html = write(folder, told(lambda name: "harmless")).read_text(encoding="utf-8")
    return Page(html).skeleton(), repaired(html)


def repaired(html: str) -> Skeleton:
    root = LexborHTMLParser(html).root
    assert root is not None
    return [(node.tag, tuple(node.attributes)) for node in root.traverse() if node.tag]


@pytest.mark.parametrize("words", HOSTILE, ids=range(len(HOSTILE)))
def test_no_word_changes_the_page(tmp_path: Path, clean: tuple[Skeleton, Skeleton], words: str) -> None:
    """The word stands in every field at once: names, keys, texts, reasons, the names of numbers."""
    folder = write_folder(tmp_path / "run", lambda name: words)
    html = write(folder, told(lambda name: words)).read_bytes().decode()
    page = Page(html)
    assert page.skeleton() == clean[0]
    assert repaired(html) == clean[1]
    assert not _unseen(html)

    island = "".join(page.root.one("script", id="facts").texts)
    assert not set("<>&\u2028\u2029") & set(island)
    facts = json.loads(island)
    shown = text.visible(text.name(words))
    assert facts["headline"] == shown
    assert facts["tasks"][0]["flags"] == [shown]


def _unseen(html: str) -> set[str]:
    return {
        letter for letter in html if unicodedata.category(letter) in ("Cc", "Cf", "Cs") and letter not in "\n\t"
    }


def test_a_word_of_a_megabyte_is_cut(tmp_path: Path) -> None:
    giant = "w" * 1_000_000
    html = write(write_folder(tmp_path / "run", lambda name: giant), told(lambda name: giant)).read_text()
    assert len(html) < 400_000
    assert max(map(len, html.split("w" * 7000))) == len(html), "no text is longer than the longest allowed"
    assert "characters]" in html


def test_many_of_everything_are_counted(tmp_path: Path) -> None:
    many = {f"g{place}": {f"m{at}": {"x": 1.0} for at in range(100)} for place in range(100)}
    folder = write_folder(
        tmp_path / "run",
        changes={"warnings": [f"w{place}" for place in range(500)], "groups": many},
    )
    root = Page(write(folder).read_text(encoding="utf-8")).root
    assert root.one("ul", class_="cautions").children[-1].text == "and 444 more warnings in summary.json"
    assert "and 60 more in summary.json" in root.one("section", id="groups").text


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("plain words, é and 漢字 and 🙂", "plain words, é and 漢字 and 🙂"),
        ("two\nlines\tand a tab", "two\nlines\tand a tab"),
        ("line\r\nends", "line\nends"),
        ("a\rb", "a⟨U+000D⟩b"),
        ("\u202eabc", "⟨U+202E⟩abc"),
        ("\u2066a\u2069", "⟨U+2066⟩a⟨U+2069⟩"),
        ("a\u200bb\u200d", "a⟨U+200B⟩b⟨U+200D⟩"),
        ("soft\u00adhyphen", "soft⟨U+00AD⟩hyphen"),
        ("\ufeffmark", "⟨U+FEFF⟩mark"),
        ("\ud83d", "⟨U+D83D⟩"),
        ("a\x00b\x85", "a⟨U+0000⟩b⟨U+0085⟩"),
        ("\u3164\u2800", "⟨U+3164⟩⟨U+2800⟩"),
        ("\U000e0061", "⟨U+E0061⟩"),
        ("\U000e0101\ufe00", "⟨U+E0101⟩⟨U+FE00⟩"),
        ("❤\ufe0f", "❤\ufe0f"),
        ("e" + "\u0301" * 9, "e" + "\u0301" * 4 + "…"),
        ("\ue000", "⟨U+E000⟩"),
    ],
)
def test_what_hides_is_shown(written: str, shown: str) -> None:
    assert text.visible(written) == shown


@pytest.mark.parametrize(
    ("value", "limit", "shown"),
    [
        ("short", 5, "short"),
        ("a longer one", 8, "a longer… [+4 characters]"),
        ("x" * 2000, 3, "xxx… [+1,997 characters]"),
        ("", 3, ""),
    ],
)
def test_what_is_cut_says_so(value: str, limit: int, shown: str) -> None:
    assert text.cut(value, limit) == shown


@pytest.mark.parametrize(
    ("value", "scale", "shown"),
    [
        (None, 100, "–"),
        (43.478, 100, "43.48"),
        (0.17193, 1, "0.172"),
        (-12.5, 100, "−12.50"),
        (1e300, 100, "1e+300"),
    ],
)
def test_numbers_are_shown_alike(value: float | None, scale: float, shown: str) -> None:
    assert text.number(value, scale) == shown


@pytest.mark.parametrize(
    ("value", "shown"), [(None, "–"), (3, "3"), (3.0, "3"), (12345.0, "12,345"), (0.25, "0.250"), (2.5, "2.50"), (-15, "−15")]
)  # fmt: skip
def test_figures_of_unknown_scale(value: float | None, shown: str) -> None:
    assert text.figure(value) == shown
