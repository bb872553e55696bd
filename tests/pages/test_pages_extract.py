"""What a body says: types by bytes and header, text that a reader sees, PDF files, and hostile bytes."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.pages import pdf as pdf_module
from core.pages.extract import LARGEST_HTML, Extracted, extract
from core.pages.markup import MOST_ATTRIBUTES, MOST_OPEN
from core.pages.page import STATUSES

ROOT = Path(__file__).resolve().parents[2]


def read(body: bytes | str, content_type: str | None = "text/html", charset: str | None = None) -> Extracted:
    raw = body.encode() if isinstance(body, str) else body
    return extract(raw, content_type, charset, "https://example.org/page")


def texts(body: str) -> dict[str, str]:
    found = read(f"<!doctype html><html><body>{body}</body></html>")
    assert found.status == "ok", found.message
    return dict(found.texts)


def pdf(*pages: list[str]) -> bytes:
    """A small PDF file: each page's lines in one column."""
    count = len(pages)
    kids = " ".join(f"{4 + 2 * index} 0 R" for index in range(count))
    objects = [
        "<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {count} >>",
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>",
    ]
    for index, lines in enumerate(pages):
        shown = "".join(f"({line}) Tj T*\n" for line in lines)
        content = f"BT /F1 12 Tf 72 720 Td 14 TL\n{shown}ET"
        objects.append(
            "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Resources << /Font << /F1 3 0 R >> >> "
            f"/Contents {5 + 2 * index} 0 R >>"
        )
        objects.append(f"<< /Length {len(content)} >>\nstream\n{content}\nendstream")
    objects.append("<< /Title (Tide tables) /Author (Harbour office) >>")
    out, offsets = "%PDF-1.4\n", []
    for number, text in enumerate(objects, 1):
        offsets.append(len(out))
        out += f"{number} 0 obj\n{text}\nendobj\n"
    table = "".join(f"{offset:010d} 00000 n \n" for offset in offsets)
    size = len(objects) + 1
    out += f"xref\n0 {size}\n0000000000 65535 f \n{table}trailer << /Size {size} /Root 1 0 R /Info {size - 1} 0 R >>\n"
    return (out + f"startxref\n{len(out)}\n%%EOF").encode("latin-1")


@pytest.mark.parametrize(
    ("markup", "seen"),
    [
        pytest.param("<p>The <b>inter</b>national <i>market</i></p>", "The international market", id="text split over inline tags"),
        pytest.param("<p>One</p><p>Two</p>three<br>four", "One\nTwo\nthree\nfour", id="blocks and line breaks"),
        pytest.param("<div>a\n   b\t c</div>", "a b c", id="white space"),
        pytest.param("<table><tr><th>Year<th>Ships<tr><td>2019<td>1,204</table>", "Year\tShips\n2019\t1,204", id="table cells"),
        pytest.param("<ul><li>One<li>Two</ul>", "One\nTwo", id="a list"),
        pytest.param("<details><summary>More</summary>inside</details>", "More\ninside", id="details are opened"),
        pytest.param("<button>Question</button><div>Answer</div>", "Question\nAnswer", id="buttons open things"),
        pytest.param("a&nbsp;b &amp; c &eacute; &#8217;", "a\u00a0b & c é ’", id="entities"),
        pytest.param("<p>5 km<sup>2</sup></p>", "5 km2", id="superscripts"),
        pytest.param("<p>grew<sup><a href='#n3'>[3]</a></sup> by half</p>", "grew by half", id="marks of footnotes"),
        pytest.param("<ruby>漢<rp>(</rp><rt>かん</rt><rp>)</rp></ruby>字", "漢字", id="readings above signs"),
        pytest.param("<p hidden=until-found>found</p>", "found", id="hidden until found"),
        pytest.param("<svg><title>no</title><text>Label</text></svg>", "Label", id="labels of a chart"),
        pytest.param("<p>مرحبا <bdi>abc</bdi></p>", "مرحبا abc", id="right to left"),
        pytest.param("<p>unclosed <b>tags <p>here", "unclosed tags\nhere", id="unclosed tags"),
    ],
)  # fmt: skip
def test_what_a_reader_sees(markup: str, seen: str) -> None:
    assert texts(markup)["selectolax"] == seen


@pytest.mark.parametrize(
    "markup",
    [
        pytest.param("<script>secret</script>", id="script"),
        pytest.param("<style>.secret {}</style>", id="style"),
        pytest.param("<!-- secret -->", id="comment"),
        pytest.param("<template><p>secret</p></template>", id="template"),
        pytest.param("<noscript>secret</noscript>", id="noscript"),
        pytest.param("<p hidden>secret</p>", id="hidden attribute"),
        pytest.param("<div style='color:red; DISPLAY : none'><p>secret</p></div>", id="not displayed"),
        pytest.param("<div style='visibility:hidden'>secret</div>", id="not visible"),
        pytest.param("<dialog>secret</dialog>", id="closed dialog"),
        pytest.param("<img alt='secret'>", id="alternative text"),
        pytest.param("<p title='secret' data-x='secret'></p>", id="attributes"),
        pytest.param("<select><option>secret</option></select>", id="options of a form"),
        pytest.param("<input value='secret'><textarea>secret</textarea>", id="fields of a form"),
        pytest.param(
            "<div hidden><div hidden>secret</div><p style='display:none'>secret</p></div>", id="hidden in hidden"
        ),
    ],
)
def test_what_a_reader_does_not_see(markup: str) -> None:
    filler = "<p>The harbour of Ostermark was dredged again in the spring, and ships came back to it.</p>" * 8
    found = read(f"<!doctype html><html><body><p>public</p>{markup}{filler}</body></html>")
    for text in (*(text for _, text in found.texts), found.main_text):
        assert "harbour" in text
        assert "secret" not in text


def test_both_extractors_give_the_whole_text() -> None:
    found = texts(
        "<nav><a href=/>Home</a></nav><article><h1>Title</h1><p>Body of it.</p></article><footer>Imprint</footer>"
    )
    for text in found.values():
        assert all(word in text for word in ("Home", "Title", "Body of it.", "Imprint"))
    assert list(found) == ["selectolax", "resiliparse"]


def test_the_judge_reads_the_readable_part() -> None:
    navigation = "".join(f"<li><a href='/{number}'>Item {number}</a></li>" for number in range(40))
    story = "".join(
        f"<p>Sentence {number} tells, in some length, what happened in the harbour of Ostermark.</p>"
        for number in range(20)
    )
    found = read(
        f"<html><body><nav><ul>{navigation}</ul></nav><article><h1>Ships</h1>{story}</article></body></html>"
    )
    assert "Sentence 19" in found.main_text
    assert "Item 7" not in found.main_text
    assert "Item 7" in dict(found.texts)["selectolax"]


def test_the_fullest_text_serves_where_nothing_is_readable() -> None:
    found = read("<html><body><table><tr><td>42</td></tr></table></body></html>")
    assert "42" in found.main_text


def test_title_and_metadata() -> None:
    found = read(
        "<html lang=en><head><title> Tides\n of Ostermark </title><meta name=author content='Harbour office'>"
        "<meta property='og:description' content='When to sail'><meta name=description content='Tide tables'>"
        "<meta property='article:published_time' content='2025-03-01T10:00:00Z'></head><body><p>High water</p></body></html>"
    )
    assert found.title == "Tides of Ostermark"
    assert dict(found.metadata) == {
        "description": "Tide tables", "author": "Harbour office", "published": "2025-03-01T10:00:00Z", "language": "en",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("head", "title"),
    [
        ("<title></title><meta property='og:title' content='Shared'>", "Shared"),
        ("<h1>Heading</h1>", "Heading"),
        ("<p>x</p>", ""),
        ("<title>" + "x" * 5000 + "</title>", "x" * 500),
    ],
)
def test_titles_where_the_usual_one_is_missing(head: str, title: str) -> None:
    assert read(f"<html>{head}<p>text</p></html>").title == title


@pytest.mark.parametrize(
    ("body", "content_type", "name", "text"),
    [
        pytest.param("plain <b>text</b>", "text/plain", "text", "plain <b>text</b>", id="plain text is as it is"),
        pytest.param("a,b\n1,2\n", "text/csv; charset=utf-8", "text", "a,b\n1,2\n", id="csv"),
        pytest.param("# Head", "application/octet-stream", "text", "# Head", id="text of no type"),
        pytest.param('{"a": "caf\\u00e9\\n\\ud83d\\ude00 \\ud800"}', "application/json", "unescaped", '{"a": "café\n😀 \ufffd"}', id="json"),
        pytest.param("<?xml version='1.0'?><a><b>x &amp; y</b></a>", "application/rss+xml", "without tags", "   x & y  ", id="xml"),
        pytest.param("<!DOCTYPE html><html><p>hi</p></html>", "text/plain", "selectolax", "hi", id="HTML that is called plain text"),
        pytest.param("<html><p>hi</p></html>", "application/pdf", "selectolax", "hi", id="HTML that is called PDF"),
        pytest.param("<?xml version='1.0'?>\n<!DOCTYPE html><html><p>hi</p></html>", "application/xml", "selectolax", "hi", id="XHTML"),
        pytest.param("<div><p>hi</p></div>", None, "selectolax", "hi", id="a fragment without a type"),
        pytest.param("\ufeff<html><p>hi</p></html>", None, "selectolax", "hi", id="a mark before the page"),
    ],
)  # fmt: skip
def test_types(body: str, content_type: str | None, name: str, text: str) -> None:
    found = read(body, content_type)
    assert found.status == "ok"
    assert dict(found.texts)[name] == text
    assert found.charset == "utf-8"
    assert found.extractor_version


def test_the_header_names_the_charset() -> None:
    assert read("<p>dé".encode("cp1252"), "text/html; charset=ISO-8859-1").main_text == "dé"
    assert read("<p>Да".encode("cp1251"), "text/html", "windows-1251").charset == "cp1251"


def test_a_pdf_file_is_read_whatever_it_is_called() -> None:
    body = pdf(
        ["High water at the inter-", "national harbour: 1990-", "1995 and well-", "Known years."], ["Second page"]
    )
    for content_type in ("application/pdf", "text/html", None):
        found = read(body, content_type)
        assert found.status == "ok", found.message
        assert found.title == "Tide tables"
        assert ("author", "Harbour office") in found.metadata
        ((name, text),) = found.texts
        assert name == "pypdfium2"
        assert "the international harbour: 1990-" in text
        assert "well-Known" in text
        assert text.endswith("Second page")
        assert found.main_text == text


@pytest.mark.parametrize(
    ("text", "whole"),
    [
        ("inter\x02national", "international"),
        ("inter\x02\r\nnational", "international"),
        ("inter\ufffenational", "international"),
        ("1990\x021995", "1990-1995"),
        ("Anglo\x02Saxon", "Anglo-Saxon"),
        ("end\x02", "end-"),
    ],
)
def test_hyphens_at_line_ends(text: str, whole: str) -> None:
    assert pdf_module.repaired(text) == whole


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("MOST_PAGES", 1, "2 pages"),
        ("MOST_CHARS", 5, "more than 5 characters"),
        ("MOST_SECONDS", -1.0, "longer than"),
    ],
)
def test_a_pdf_file_beyond_the_bounds_is_too_large(
    name: str, value: float, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pdf_module, name, value)
    found = read(pdf(["First page"], ["Second page"]), "application/pdf")
    assert found.status == "too_large"
    assert message in found.message
    assert not found.texts


WHOLE = pdf(["A page with some text on it"])


@pytest.mark.parametrize(
    ("body", "status", "message"),
    [
        pytest.param(b"", "unsupported_type", "empty", id="nothing"),
        pytest.param(b" \n\t", "unsupported_type", "empty", id="blanks"),
        pytest.param(b"\x89PNG\r\n\x1a\n" + b"x" * 100, "unsupported_type", "neither", id="a picture"),
        pytest.param(b"PK\x03\x04" + b"x" * 100, "unsupported_type", "neither", id="an office file"),
        pytest.param(bytes(range(256)) * 20, "unsupported_type", "neither", id="any bytes"),
        pytest.param(b"\x00" * 1000, "unsupported_type", "neither", id="zeros"),
        pytest.param(b"%PDF-1.7\nnothing", "unsupported_type", "broken", id="the beginning of a PDF file"),
        pytest.param(WHOLE[: len(WHOLE) // 3], "unsupported_type", "", id="a third of a PDF file"),
        pytest.param(pdf([""]), "unsupported_type", "no text", id="a scanned PDF file"),
        pytest.param(b"<html>" + b"<div>" * 100_000, "unsupported_type", f"{MOST_OPEN} deep", id="nested 100,000 deep"),
        pytest.param(b"<html>" + b"<table><tr><td>" * 50_000, "unsupported_type", "deep", id="nested tables"),
        pytest.param(
            b"<html><a " + b" ".join(b"b%d='>'" % number for number in range(50_000)) + b">x", "unsupported_type",
            f"{MOST_ATTRIBUTES} attributes", id="50,000 attributes",
        ),
        pytest.param(b"<html>" + b"x" * LARGEST_HTML, "too_large", "at most", id="a page of 10 MB"),
    ],
)  # fmt: skip
def test_what_cannot_be_read(body: bytes, status: str, message: str) -> None:
    found = read(body)
    assert found.status == status
    assert message in found.message
    assert not found.texts
    assert not found.main_text


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b"<html>" + b"<div>" * 2_000 + b"deep", id="nested 2,000 deep"),
        pytest.param(b"<html>" + b"<b><i><p>" * 800 + b"deep", id="formatting nested in itself"),
        pytest.param(b"<html>" + b"<" * 200_000 + b" deep", id="brackets"),
        pytest.param(b"<html>" + b"&amp;" * 200_000 + b"deep", id="entities"),
        pytest.param(b"<html><p>de\x00e\x1bp</p>", id="control characters"),
        pytest.param(b"<html><p>&#0;&#xD800;&#x110000;</p>deep", id="references to no character"),
        pytest.param(b"<html><a href='" + b"x" * 200_000 + b"'>deep</a>", id="a long attribute"),
        pytest.param(b"<html><script>" + b"if (a<b) c " * 20_000 + b"</script>deep", id="a long script"),
        pytest.param(b"<html>" + b"<p hidden>x</p>" * 5_000 + b"deep", id="much that is hidden"),
    ],
)
def test_strange_markup_is_read(body: bytes) -> None:
    found = read(body)
    assert found.status == "ok", found.message
    assert "deep" in found.main_text
    assert all("deep" in text for _, text in found.texts)


def test_entities_of_xml_are_not_expanded() -> None:
    bomb = '<?xml version="1.0"?><!DOCTYPE a [<!ENTITY b "lol"><!ENTITY c "&b;&b;&b;">]><a>&c;</a>'
    found = read(bomb, "application/xml")
    assert "lollol" not in found.main_text


HEADS = (
    b"",
    b"<html><body>",
    b"%PDF-1.4\n",
    b"{",
    b"<?xml version='1.0'?>",
    b"\xff\xfe",
    b"<!doctype html><p hidden>",
)


@given(
    st.sampled_from(HEADS),
    st.one_of(st.binary(max_size=300), st.text("<>/ab='\"&;!-\x00é \n", max_size=300).map(str.encode)),
    st.sampled_from([None, "text/html", "application/pdf", "application/json", "text/plain", "nonsense"]),
    st.sampled_from([None, "utf-8", "utf-16", "shift_jis", "nonsense"]),
)
def test_whatever_the_bytes_something_comes_back(
    head: bytes, body: bytes, content_type: str | None, charset: str | None
) -> None:
    found = read(head + body, content_type, charset)
    assert found.status in STATUSES
    assert bool(found.texts) == (found.status == "ok")
    assert found == read(head + body, content_type, charset)
    assert pickle.loads(pickle.dumps(found)) == found
    for text in (found.title, found.main_text, found.message, *(text for _, text in found.texts)):
        assert text.encode().decode() == text


HEAVY = ("selectolax", "resiliparse", "trafilatura", "lxml", "pypdfium2", "rapidfuzz", "w3lib", "tldextract")
MODULES = "extract, html, pdf, charset, walls, urls, fold_text, align, windows"


def test_importing_the_engine_and_the_readers_loads_no_library_of_theirs() -> None:
    code = f"import sys, core, core.run; from core.pages import {MODULES}; print([m for m in {HEAVY} if m in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, env=dict(os.environ), check=True
    )
    assert done.stdout.strip() == "[]"
