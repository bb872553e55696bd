"""The sources that a chat answer names, in the forms that providers have.

Looked for in this order; the first place that names any is taken, and what other places know about the same
address (its title, the quoted text) is added:

    message.annotations[]              {"type": "url_citation", "url_citation": {"url", "title", "content"}},
                                       or the same without the inner object
    message.provider_specific_fields   .citations: lists of {"url", "title", "cited_text"}
    citations[], search_results[]      addresses, or {"url", "title", "snippet"}
    the text                           [title](address) and bare addresses

All of it comes from outside: whatever has another form is passed over.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from core.model import Citation
from core.pages.urls import without_tracking

_EXCERPTS: Final = ("cited_text", "content", "snippet", "excerpt")
#: An address with the title of a Markdown link, if it is one. Each character is looked at once.
_IN_TEXT: Final = re.compile(r"(?:\[([^\[\]\n]{1,300})\]\()?(https?://\w[^\s<>\"'`\[\]{}|\\^]*)", re.IGNORECASE)
_TRAILING: Final = ".,;:!?*_~"


def cited(body: Mapping[str, Any]) -> tuple[Citation, ...]:
    """The sources of a chat completion, each address once, in the order in which they are first named."""
    message = _message(body)
    own = message.get("provider_specific_fields")
    places = [
        list(_read(message.get("annotations"))),
        list(_read(own.get("citations") if isinstance(own, Mapping) else None)),
        [*_read(body.get("citations")), *_read(body.get("search_results"))],
    ]
    named = next((place for place in places if place), None)
    if named is None:
        return in_text(message.get("content"))
    order = dict.fromkeys(citation.url for citation in named)
    return _merged(order, (citation for place in (named, *places) for citation in place))


def merged(citations: Iterable[Citation]) -> tuple[Citation, ...]:
    """Each address once, without tracking parameters, in the order in which they are first named.

    Of what several mentions know, the first title, the first excerpt and the first passage are kept.
    """
    clean = [citation.model_copy(update={"url": without_tracking(citation.url)}) for citation in citations]
    return _merged(dict.fromkeys(citation.url for citation in clean if citation.url), clean)


def source(entry: Any, *, excerpt: str | None = None) -> Citation | None:
    """A source as APIs list it: {"url", "title", …}, the quoted text under one of its usual names.

    `excerpt` stands in where the entry has none. None for whatever has another form.
    """
    found = _citation(entry)
    return (
        found if found is None or found.excerpt or not excerpt else found.model_copy(update={"excerpt": excerpt})
    )


def in_text(text: Any) -> tuple[Citation, ...]:
    """The addresses that a text contains, each once."""
    found = [] if not isinstance(text, str) else [_linked(match) for match in _IN_TEXT.finditer(text)]
    return _merged(dict.fromkeys(citation.url for citation in found), found)


def _message(body: Mapping[str, Any]) -> Mapping[str, Any]:
    choices = body.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    message = first.get("message") if isinstance(first, Mapping) else None
    return message if isinstance(message, Mapping) else {}


def _read(value: Any) -> Iterator[Citation]:
    """The citations in a list of addresses and objects, or of lists of them."""
    for item in value if isinstance(value, (list, tuple)) else ():
        for entry in item if isinstance(item, (list, tuple)) else (item,):
            found = _citation(entry)
            if found is not None:
                yield found


def _citation(entry: Any) -> Citation | None:
    if isinstance(entry, str):
        return Citation(url=entry) if entry.strip() else None
    inner = entry.get("url_citation", entry) if isinstance(entry, Mapping) else None
    url = _text(inner.get("url")) if isinstance(inner, Mapping) else None
    if inner is None or url is None:
        return None
    excerpt = next((text for key in _EXCERPTS if (text := _text(inner.get(key)))), None)
    return Citation(url=url, title=_text(inner.get("title")), excerpt=excerpt)


def _merged(order: Mapping[str, None], known: Iterable[Citation]) -> tuple[Citation, ...]:
    """One citation for each address of `order`: of what is known about it, the first title and excerpt."""
    titles: dict[str, str] = {}
    excerpts: dict[str, str] = {}
    places: dict[str, tuple[int | None, int | None]] = {}
    for citation in known:
        if citation.start is not None:
            places.setdefault(citation.url, (citation.start, citation.end))
        if citation.title:
            titles.setdefault(citation.url, citation.title)
        if citation.excerpt:
            excerpts.setdefault(citation.url, citation.excerpt)
    nowhere = (None, None)
    return tuple(
        Citation(
            url=url,
            title=titles.get(url),
            excerpt=excerpts.get(url),
            start=places.get(url, nowhere)[0],
            end=places.get(url, nowhere)[1],
        )
        for url in order
    )


def _linked(match: re.Match[str]) -> Citation:
    """An address of a text, without the signs of the sentence around it."""
    url = match[2]
    depth = 0
    for place, sign in enumerate(url):
        depth += (sign == "(") - (sign == ")")
        if depth < 0:  # the bracket was opened before the address began
            url = url[:place]
            break
    return Citation(url=url.rstrip(_TRAILING), title=match[1])


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value.strip() else None
