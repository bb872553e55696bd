"""HTML to text: what a reader sees on a page, by two extractors, and the readable part of it for the judge.

Page text is what a browser shows to whoever opens everything that can be opened: tables, `details`, buttons,
captions. It is not scripts, styles, comments, templates, `noscript` (browsers run scripts), what an attribute or
an inline style hides, the options of a form, nor alternative texts: nobody reads those on the page. Readings above
signs (ruby) and marks of footnotes are left out of the first text, since those who quote leave them out, and stand
in the second. An excerpt is looked for in both.

Parsers take quadratic time for elements nested thousands deep and for elements with thousands of attributes; a
page that has them is refused before a parser sees it.
"""

from __future__ import annotations

import logging
import re
import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from core.pages.markup import BLOCKS, CELLS, INVISIBLE

if TYPE_CHECKING:
    from selectolax.lexbor import LexborHTMLParser, LexborNode

#: Raised when a page may come out differently.
HTML_VERSION: Final = 1

#: Beyond these, finding the readable part takes seconds and finds little: the fullest text serves.
_READABLE_CHARS: Final = 2_000_000
_READABLE_ELEMENTS: Final = 20_000
#: A readable part shorter than this, or than this share of the page, has missed it where there is more.
_TOO_SHORT: Final = 250
_TOO_SMALL_A_SHARE: Final = 0.05

_HIDING: Final = re.compile(r"(?:^|[;\s])(?:display\s*:\s*none|visibility\s*:\s*hidden)", re.IGNORECASE)
_NOTE: Final = re.compile(r"\s*[\[(]?\s*(?:(?:note )?\d{1,3}|[a-z*†‡§])\s*[\])]?\s*", re.IGNORECASE)
#: White space that is not one blank already: most of a page's is.
_BLANKS: Final = re.compile(r"(?: [ \t\n\r\f]|[\t\n\r\f])[ \t\n\r\f]*")
#: Signs put into the tree where a line and a cell end; control characters were left out of its markup.
_NEW_LINE: Final = "\x1e"
_NEW_CELL: Final = "\x1f"

_INVISIBLE: Final = ", ".join(sorted(INVISIBLE))
_BLOCKS: Final = ", ".join(sorted(BLOCKS))
_CELLS: Final = ", ".join(sorted(CELLS))

#: What is told of a page, and the names of the meta tags that tell it, best first.
_METADATA: Final = {
    "description": ("description", "og:description", "dc.description"),
    "author": ("author", "article:author", "dc.creator", "citation_author"),
    "published": ("article:published_time", "date", "dc.date", "dc.date.issued", "citation_publication_date"),
    "modified": ("article:modified_time", "last-modified", "og:updated_time"),
    "site": ("og:site_name", "application-name"),
}
_LONGEST_VALUE: Final = 500


@dataclass(frozen=True, slots=True)
class HtmlText:
    """What an HTML page says. `texts` are its whole text by extractor; `main` is its readable part.

    `without_scripts` is what it shows to a browser that runs no scripts, and `title` may be empty.
    """

    title: str
    metadata: tuple[tuple[str, str], ...]
    texts: tuple[tuple[str, str], ...]
    main: str
    without_scripts: str
    has_scripts: bool


def read_html(markup: str) -> HtmlText:
    """Read a page that core.pages.markup.why_not_parsed has nothing against."""
    from resiliparse.extract.html2text import extract_plain_text
    from selectolax.lexbor import LexborHTMLParser

    tree = LexborHTMLParser(markup)
    title, metadata = _title(tree), tuple(_metadata(tree))
    without_scripts = " ".join(_text(node) for node in tree.css("noscript"))[:_LONGEST_VALUE]
    has_scripts = tree.css_first("script") is not None
    unseen = list(_topmost(_hidden(tree)))
    if unseen:
        # the other extractors know fewer ways to hide something
        for node in unseen:
            node.decompose()
        markup = tree.html or ""
    other = extract_plain_text(markup, preserve_formatting=True, alt_texts=False, list_bullets=False)
    is_large = len(markup) > _READABLE_CHARS or len(tree.css("body *")) > _READABLE_ELEMENTS
    seen = _visible_text(tree)
    fullest = max(seen, other, key=len)
    return HtmlText(
        title=title,
        metadata=metadata,
        texts=(("selectolax", seen), ("resiliparse", other)),
        main=fullest if is_large else _readable(markup, fullest),
        without_scripts=without_scripts,
        has_scripts=has_scripts,
    )


def _visible_text(tree: LexborHTMLParser) -> str:
    """The text that a reader sees. The tree is used up."""
    for node in list(_topmost([*tree.css(_INVISIBLE), *_notes(tree)])):
        node.decompose()
    for node in tree.css(_BLOCKS):
        node.insert_before(_NEW_LINE)
        node.insert_after(_NEW_LINE)
    for node in tree.css("br"):
        node.insert_before(_NEW_LINE)
    for node in tree.css(_CELLS):
        node.insert_after(_NEW_CELL)
    body = tree.body
    text = _BLANKS.sub(" ", body.text() if body is not None else "")
    text = _rejoined(text, _NEW_CELL, "\t", " ")
    return _rejoined(text, _NEW_LINE, "\n", " \t").strip()


def _rejoined(text: str, mark: str, sign: str, blanks: str) -> str:
    """A text with one sign for each run of marks and the blanks round them; none at its ends."""
    return sign.join(part for part in (part.strip(blanks) for part in text.split(mark)) if part)


def _topmost(nodes: Sequence[LexborNode]) -> Iterator[LexborNode]:
    """Those nodes that none of the others holds: taking them away takes the others away too."""
    chosen = {node.mem_id for node in nodes}
    held: dict[int, bool] = {}  # what is known of the nodes above, so that no way up is gone twice
    for node in nodes:
        way: list[int] = []
        above = node.parent
        while above is not None and above.mem_id not in chosen and above.mem_id not in held:
            way.append(above.mem_id)
            above = above.parent
        is_held = above is not None and held.get(above.mem_id, True)
        held.update(dict.fromkeys(way, is_held))
        if not is_held:
            yield node


def _hidden(tree: LexborHTMLParser) -> list[LexborNode]:
    """Elements that a reader does not see, though they may hold text."""
    found = tree.css("noscript, template, dialog:not([open]), select, datalist, textarea")
    found += [n for n in tree.css("[hidden]") if (n.attributes.get("hidden") or "").lower() != "until-found"]
    found += [n for n in tree.css("[style]") if _HIDING.search(n.attributes.get("style") or "")]
    return found


def _notes(tree: LexborHTMLParser) -> list[LexborNode]:
    """Marks of footnotes: their text is none of the sentence that they stand in."""
    return [
        node
        for node in tree.css("sup")
        if node.css_first('a[href*="#"]') is not None and _NOTE.fullmatch(node.text())
    ]


def _title(tree: LexborHTMLParser) -> str:
    """The page's title, else the one for those who share it, else its first heading."""
    for selector in ("head > title", 'meta[property="og:title"]', 'meta[name="twitter:title"]', "h1"):
        node = tree.css_first(selector)
        if node is not None and (title := _text(node) or _one_line(node.attributes.get("content"))):
            return title
    return ""


def _text(node: LexborNode) -> str:
    return _one_line(node.text())


def _one_line(text: str | None) -> str:
    return " ".join((text or "").split())[:_LONGEST_VALUE]


def _metadata(tree: LexborHTMLParser) -> Iterator[tuple[str, str]]:
    said: dict[str, str] = {}
    for node in tree.css("meta[content]"):
        attributes = node.attributes
        name = (attributes.get("name") or attributes.get("property") or "").lower()
        if name and (value := _one_line(attributes.get("content"))):
            said.setdefault(name, value)
    for key, names in _METADATA.items():
        value = next((said[name] for name in names if name in said), "")
        if value:
            yield key, value
    root = tree.css_first("html[lang]")
    if root is not None and (language := _one_line(root.attributes.get("lang"))):
        yield "language", language


def _readable(markup: str, fullest: str) -> str:
    """The readable part of a page; its fullest text where there is none or it has missed the page."""
    main = _trafilatura(markup) or ""
    missed = len(main) < max(_TOO_SHORT, _TOO_SMALL_A_SHARE * len(fullest)) and len(main) < len(fullest)
    return fullest if missed else main


@contextmanager
def _no_probing() -> Iterator[None]:
    """While urllib3 is imported, which trafilatura brings: it opens a socket to learn whether there is IPv6.

    A run over fixtures opens none, and nothing here speaks through urllib3.
    """
    known = socket.has_ipv6
    socket.has_ipv6 = False
    try:
        yield
    finally:
        socket.has_ipv6 = known


def _trafilatura(markup: str) -> str | None:
    with _no_probing():
        import trafilatura

    for name in ("trafilatura", "htmldate", "courlan", "justext"):
        # what it has to say of a page's markup is of no use to anybody
        logging.getLogger(name).setLevel(logging.CRITICAL)
    try:
        return trafilatura.extract(markup, fast=True, include_comments=False, include_tables=True)
    except Exception:  # noqa: BLE001 - hostile markup; the fullest text serves as well
        return None
