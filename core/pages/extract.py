"""From a fetched body to what the page says: a status, a title, texts to find excerpts in, a text for the judge.

Pure and deterministic: the same bytes give the same result. Whatever the bytes are, something comes back; what
could not be read is `unsupported_type` with a message, and a message is never page text.

What the header says of the type is believed unless the bytes say otherwise: PDF files and HTML pages are known by
how they begin, whatever they are called.

    HTML, XHTML                two texts by two extractors, the readable part for the judge; walls are told apart
    PDF                        one text
    plain text, CSV, markdown  the text as it is
    JSON                       ... and one with its escapes read (`\\u00e9`, `\\n`), since nobody quotes those
    XML, feeds                 ... and one without tags
"""

from __future__ import annotations

import html
import re
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib.metadata import version
from typing import Final

from core.pages.charset import decode
from core.pages.html import HTML_VERSION, read_html
from core.pages.markup import why_not_parsed
from core.pages.page import PageStatus
from core.pages.pdf import PDF_VERSION, TooLargeError, UnreadableError, read_pdf
from core.pages.walls import wall

#: Bytes that are read, by kind. Larger pages are too large, not half read.
LARGEST_HTML: Final = 10_000_000
LARGEST_TEXT: Final = 20_000_000
LARGEST_PDF: Final = 50_000_000
#: Bytes in which a file says what it is.
_HEAD: Final = 1024
_HTML: Final = re.compile(
    rb"\s*(?:<!--.{0,500}?-->\s*|<\?xml[^>]{0,200}>\s*)*<(?:!doctype\s+html|html|head|body|title|meta)\b",
    re.IGNORECASE | re.DOTALL,
)
_XML: Final = re.compile(rb"\s*<\?xml\b|\s*<(?:rss|feed|urlset|sitemapindex|rdf:RDF)\b", re.IGNORECASE)
#: How a page without a head begins; believed when the header says nothing.
_ELEMENT: Final = re.compile(
    rb"\s*<(?:div|p|h[1-6]|table|article|main|section|ul|ol|script|center)\b", re.IGNORECASE
)
_JSON: Final = re.compile(rb"\s*[\[{]")
_MARKS: Final = (b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")
#: What begins so is no text.
_BINARY: Final = (
    *(b"\x89PNG", b"\xff\xd8\xff", b"GIF8", b"OggS", b"fLaC", b"wOFF", b"wOF2", b"\x00\x00\x00"),
    *(b"PK\x03\x04", b"\x1f\x8b", b"7z\xbc\xaf", b"Rar!", b"\xd0\xcf\x11\xe0", b"\x7fELF", b"SQLite format 3"),
)
_MEDIA: Final = ("image/", "audio/", "video/", "font/")
_ESCAPE: Final = re.compile(r'\\(?:u([0-9a-fA-F]{4})|(["\\/bfnrt]))')
_PLAIN_ESCAPES: Final = {"b": " ", "f": " ", "n": "\n", "r": "\n", "t": "\t"}
_SURROGATES: Final = re.compile("[\ud800-\udbff][\udc00-\udfff]")
_ALONE: Final = re.compile("[\ud800-\udfff]")
_TAG: Final = re.compile(r"<!\[CDATA\[|\]\]>|<[^<>]*>")


@dataclass(frozen=True, slots=True)
class Extracted:
    """What a body says. `texts` (extractor, text) are where excerpts are looked for: at least one when `ok`.

    `main_text` is for the judge, `title` and `metadata` stand beside it. `message` says why a page is not `ok`.
    """

    status: PageStatus
    title: str = ""
    metadata: tuple[tuple[str, str], ...] = ()
    main_text: str = ""
    texts: tuple[tuple[str, str], ...] = ()
    charset: str | None = None
    extractor_version: str = ""
    message: str = ""


def extract(body: bytes, content_type: str | None, charset: str | None, url: str) -> Extracted:  # noqa: ARG001
    """Read a body. `content_type` and `charset` are the header's, as they came; `url` decides nothing yet.

    Statuses: ok, bot_wall, paywall, empty_js, unsupported_type, too_large. Never raises for what a body holds.
    """
    if not body.strip():
        return Extracted("unsupported_type", message="the body is empty")
    kind = kind_of(body, content_type)
    largest = {"html": LARGEST_HTML, "pdf": LARGEST_PDF}.get(kind, LARGEST_TEXT)
    if kind == "binary":
        told = _mime(content_type) or "no type given"
        return Extracted("unsupported_type", message=f"neither HTML, PDF nor text ({told[:80]})")
    if len(body) > largest:
        return Extracted("too_large", message=f"{len(body)} bytes of {kind}; at most {largest} are read")
    try:
        result = _pdf(body) if kind == "pdf" else _text(body, charset or _parameter(content_type), kind)
    except (TooLargeError, MemoryError) as error:
        result = Extracted("too_large", message=str(error) or "reading it takes too much memory")
    except UnreadableError as error:
        result = Extracted("unsupported_type", message=str(error))
    except Exception as error:  # noqa: BLE001 - parsers of hostile bytes raise what they like
        result = Extracted("unsupported_type", message=f"the {kind} could not be read: {type(error).__name__}")
    return replace(result, extractor_version=_version(kind))


def kind_of(body: bytes, content_type: str | None) -> str:
    """html, pdf, xml, json, text or binary: what the bytes say, else what the header says."""
    head = body[:_HEAD]
    mark = next((mark for mark in _MARKS if head.startswith(mark)), b"")
    if mark in _MARKS[1:]:
        head = head.replace(b"\x00", b"")
    head = head[len(mark) :]
    mime = _mime(content_type)
    if b"%PDF-" in head:
        return "pdf"
    if _HTML.match(head):
        return "html"
    is_media = mime.startswith(_MEDIA) and mime != "image/svg+xml"
    if is_media or head.startswith(_BINARY) or (not mark and _looks_binary(body)):
        return "binary"
    if mime in ("text/html", "application/xhtml+xml") or (not mime and _ELEMENT.match(head)):
        return "html"
    if mime.endswith(("/xml", "+xml")) or _XML.match(head):
        return "xml"
    return "json" if mime.endswith(("/json", "+json")) or (not mime and _JSON.match(head)) else "text"


def _mime(content_type: str | None) -> str:
    return (content_type or "").partition(";")[0].strip().lower()


def _parameter(content_type: str | None) -> str | None:
    """The charset that a whole header names, for callers that give the header as it came."""
    found = re.search(r"charset\s*=\s*[\"']?([\w.:-]{1,40})", content_type or "", re.IGNORECASE)
    return found[1] if found else None


def _looks_binary(body: bytes) -> bool:
    """Whether bytes are no text in any charset: control characters, but not UTF-16's zeros."""
    sample = body[:4096]
    controls = sum(sample.count(byte) for byte in (*range(1, 7), *range(14, 27), *range(28, 32)))
    zeros = sample.count(0)
    sided = abs(sample[::2].count(0) - sample[1::2].count(0)) * 4 > len(sample)
    return controls * 20 > len(sample) or (zeros * 50 > len(sample) and not sided)


def _pdf(body: bytes) -> Extracted:
    read = read_pdf(body)
    return Extracted("ok", read.title, read.metadata, read.text, (("pypdfium2", read.text),))


def _text(body: bytes, declared: str | None, kind: str) -> Extracted:
    text, charset = decode(body, declared)
    if kind == "html":
        return replace(_html(text), charset=charset)
    texts = [("text", text)]
    if kind == "json" and "\\" in text:
        texts.append(("unescaped", _unescaped(text)))
    if kind == "xml":
        texts.append(("without tags", html.unescape(_TAG.sub(" ", text))))
    return Extracted("ok", main_text=texts[-1][1], texts=tuple(texts), charset=charset)


def _html(markup: str) -> Extracted:
    refused = why_not_parsed(markup)
    if refused:
        return Extracted("unsupported_type", message=f"the page is not parsed: {refused}")
    read = read_html(markup)
    seen = read.texts[0][1]
    stopped = wall(
        markup,
        title=read.title,
        text=seen,
        main=read.main,
        without_scripts=read.without_scripts,
        has_scripts=read.has_scripts,
    )
    if stopped is not None:
        status, message = stopped
        return Extracted(status, read.title, message=message)
    if not any(text for _, text in read.texts):
        return Extracted("unsupported_type", read.title, message="the page has no text (pictures or frames?)")
    return Extracted("ok", read.title, read.metadata, read.main, read.texts)


def _unescaped(text: str) -> str:
    """JSON with its escapes read, without parsing it: it may be anything."""

    def read(escape: re.Match[str]) -> str:
        if escape[1]:
            return chr(int(escape[1], 16))
        return _PLAIN_ESCAPES.get(escape[2], escape[2])

    joined = _SURROGATES.sub(_joined, _ESCAPE.sub(read, text))
    return _ALONE.sub("\ufffd", joined).replace("\x00", "")


def _joined(pair: re.Match[str]) -> str:
    return pair[0].encode("utf-16", "surrogatepass").decode("utf-16")


@lru_cache(maxsize=8)
def _version(kind: str) -> str:
    """What a result depends on besides the bytes."""
    if kind == "html":
        libraries = ("selectolax", "resiliparse", "trafilatura")
        return " ".join([f"html/{HTML_VERSION}", *(f"{name}/{version(name)}" for name in libraries)])
    return f"pdf/{PDF_VERSION} pypdfium2/{version('pypdfium2')}" if kind == "pdf" else "text/1"
