"""What is known of HTML's elements, and which markup no parser should be given."""

from __future__ import annotations

import re
from typing import Final


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


#: Elements whose content is no text of the page.
INVISIBLE: Final = _names(
    """
    script style template noscript head title meta link base iframe object embed audio video canvas map area param
    source track select datalist option optgroup textarea input img picture desc defs metadata annotation
    annotation-xml rp rt
    """
)
#: Elements that begin a new line and end it.
BLOCKS: Final = _names(
    """
    address article aside blockquote button caption center dd details dialog dir div dl dt fieldset figcaption
    figure footer form h1 h2 h3 h4 h5 h6 header hgroup hr legend li main menu nav ol p pre search section
    summary table tbody text tfoot thead tr ul
    """
)
CELLS: Final = _names("td th")

#: Elements that may be open at once (browsers stop at 512) and attributes of one element.
MOST_OPEN: Final = 3_000
MOST_ATTRIBUTES: Final = 500
#: A tag of fewer characters has not so many attributes.
_LONG_TAG: Final = 2 * MOST_ATTRIBUTES

#: A start tag, its quoted values included, read as parsers read it; each character is looked at once.
_TAG: Final = re.compile(r"""<[a-zA-Z](?>[^>"'=]+|=\s*+"[^"]*"|=\s*+'[^']*'|[="'])*+""")
_QUOTED: Final = re.compile(r"""=\s*+(?:"[^"]*"|'[^']*')""")
_SCRIPTS: Final = re.compile(r"<(?:script|style)\b.*?(?:</(?:script|style)|\Z)", re.IGNORECASE | re.DOTALL)
_OPEN_OR_CLOSE: Final = re.compile(r"<(/?)([a-zA-Z][a-zA-Z0-9-]*)")
#: Elements that have no end, or that the next of their kind ends.
_DO_NOT_NEST: Final = _names(
    """
    area base br col embed hr img input link meta param source track wbr p li dt dd tr td th option optgroup thead
    tbody tfoot rp rt html head body path rect circle line polygon use stop
    """
)


def why_not_parsed(markup: str) -> str:
    """Why a page must not be given to a parser; empty when it may."""
    if _most_attributes(markup) > MOST_ATTRIBUTES and _most_attributes(_no_scripts(markup)) > MOST_ATTRIBUTES:
        return f"an element has more than {MOST_ATTRIBUTES} attributes"
    if markup.count("<") > MOST_OPEN and _most_open(markup) > MOST_OPEN < _most_open(_no_scripts(markup)):
        return f"its elements are nested more than {MOST_OPEN} deep"
    return ""


def _no_scripts(markup: str) -> str:
    """Markup without scripts, in which `a < b` may look like a tag."""
    return _SCRIPTS.sub("", markup)


def _most_attributes(markup: str) -> int:
    tags = (match.group() for match in _TAG.finditer(markup) if match.end() - match.start() > _LONG_TAG)
    return max((len(re.split(r"[\s/]+", _QUOTED.sub("= ", tag))) for tag in tags), default=0)


def _most_open(markup: str) -> int:
    """The most elements that may be open at once: those that were opened and not closed."""
    depth = most = 0
    for closing, name in _OPEN_OR_CLOSE.findall(markup):
        if name.lower() in _DO_NOT_NEST:
            continue
        depth = max(0, depth - 1) if closing else depth + 1
        most = max(most, depth)
    return most
