"""PDF to text, page by page, with what a line end did to words repaired.

pypdfium2 is not safe in threads: one file at a time in a process. What a file may cost is bounded by its pages,
its text and its time; a file beyond the bounds is too large, not half read: an excerpt could be in the other half.
"""

from __future__ import annotations

import re
import time
from dataclasses import dataclass
from typing import Final

#: Raised when a file may come out differently.
PDF_VERSION: Final = 1

MOST_PAGES: Final = 2_000
MOST_CHARS: Final = 10_000_000
MOST_SECONDS: Final = 30.0

#: pdfium says U+0002 (U+FFFE in its other call) for a hyphen at a line's end, and nothing for the line's end.
_LINE_END_HYPHEN: Final = re.compile(r"[\x02\ufffe](?:\r?\n)?(?=(.?))", re.DOTALL)
_TITLE: Final = 500


class TooLargeError(Exception):
    """A file beyond the bounds; the text says which."""


class UnreadableError(Exception):
    """A file that has no text for us; the text says why."""


@dataclass(frozen=True, slots=True)
class PdfText:
    """What a PDF file says: pages are separated by an empty line."""

    title: str
    metadata: tuple[tuple[str, str], ...]
    text: str


def read_pdf(body: bytes) -> PdfText:
    """Read a file. Raises UnreadableError (broken, encrypted, scanned) and TooLargeError."""
    import pypdfium2

    try:
        document = pypdfium2.PdfDocument(body)
    except pypdfium2.PdfiumError as error:
        encrypted = "password" in str(error).lower()
        raise UnreadableError("the PDF file is encrypted" if encrypted else "the PDF file is broken") from error
    try:
        number = len(document)
        if number > MOST_PAGES:
            raise TooLargeError(f"the PDF file has {number} pages; at most {MOST_PAGES} are read")
        text = _text(document, number)
        if not text:
            raise UnreadableError("the PDF file has no text (scanned pages?)")
        said = document.get_metadata_dict()
    finally:
        document.close()
    about = (("author", said.get("Author")), ("published", said.get("CreationDate")))
    metadata = tuple((key, " ".join(value.split())[:_TITLE]) for key, value in about if value and value.strip())
    return PdfText(" ".join((said.get("Title") or "").split())[:_TITLE], metadata, text)


def _text(document: object, number: int) -> str:
    import pypdfium2

    assert isinstance(document, pypdfium2.PdfDocument)
    until = time.monotonic() + MOST_SECONDS
    pages: list[str] = []
    length = broken = 0
    for index in range(number):
        if time.monotonic() > until:
            raise TooLargeError(f"the PDF file takes longer than {MOST_SECONDS:g} s to read")
        try:
            page = document[index]
            pages.append(page.get_textpage().get_text_bounded())
            page.close()
        except pypdfium2.PdfiumError:
            broken += 1
            continue
        length += len(pages[-1])
        if length > MOST_CHARS:
            raise TooLargeError(f"the PDF file has more than {MOST_CHARS} characters")
    if broken == number:
        raise UnreadableError("the PDF file is broken: none of its pages can be read")
    return repaired("\n\n".join(page.replace("\r\n", "\n").strip() for page in pages)).strip()


def repaired(text: str) -> str:
    """A text without the hyphens that a line's end put into words; before a digit or a capital they stay."""
    return _LINE_END_HYPHEN.sub(lambda hyphen: "" if hyphen[1].islower() else "-", text)
