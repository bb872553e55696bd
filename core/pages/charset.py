"""Bytes to text: what the page is written in, whatever it says.

    1. a byte order mark
    2. the header's charset, then the page's own (meta tag or XML declaration): the first that the bytes can be
    3. UTF-8, if the bytes are that, with a few mistakes at most
    4. what the bytes look like (uchardet), else Windows-1252

Labels mean what they mean to browsers (latin-1 is Windows-1252, gb2312 is GB18030). A single-byte charset fits
any bytes, so whatever is declared gives way to UTF-8 where the bytes are well-formed UTF-8 with characters beyond
ASCII: that does not happen by chance.
"""

from __future__ import annotations

import re
from typing import Final


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


#: Python's names of the charsets that pages may declare: a label must not reach rot13, idna or unicode_escape.
_KNOWN: Final = _names(
    """
    utf-8 utf-16 utf-16-le utf-16-be utf-32 utf-32-le utf-32-be cp932 shift_jis euc_jp iso2022_jp gb18030 big5
    big5hkscs cp949 euc_kr johab cp866 koi8-r koi8-u mac-roman mac-cyrillic cp874 cp437 cp850 cp852 cp1250 cp1251
    cp1252 cp1253 cp1254 cp1255 cp1256 cp1257 cp1258 iso8859-1 iso8859-2 iso8859-3 iso8859-4 iso8859-5 iso8859-6
    iso8859-7 iso8859-8 iso8859-10 iso8859-11 iso8859-13 iso8859-14 iso8859-15 iso8859-16 tis-620
    """
)
_SINGLE_BYTE: Final = re.compile(r"cp(?:125\d|8\d\d|437)|iso8859-\d+|koi8|mac|tis")
#: Bytes beyond ASCII of which at most one in so many may be no UTF-8, for a page to be UTF-8 with mistakes.
_MISTAKES: Final = 20
#: A declared charset may fail at one byte in so many and still be what the page is written in.
_SLIPS: Final = 2_000
_CONTROLS: Final = re.compile(r"[\x00-\x08\x0b\x0e-\x1f\x7f\ufeff\ufffe\uffff]")
_LAST_RESORT: Final = "cp1252"
#: Bytes that are looked at to tell UTF-16 without a mark.
_SAMPLE: Final = 4096


def decode(body: bytes, declared: str | None) -> tuple[str, str]:
    """A page's text and the charset that it was read with. `declared` is the header's charset, if there was one.

    Never fails: what can't be read becomes U+FFFD. Control characters that no text needs are left out.
    """
    from w3lib.encoding import read_bom, to_unicode

    charset, mark = read_bom(body)
    if charset is None or mark is None:
        charset, mark = _charset(body, declared), b""
    # pdfium, lexbor and SQLite each have their own idea of what to do with U+0000
    return _CONTROLS.sub("", to_unicode(body[len(mark) :], charset)), charset


def known(label: str | None) -> str | None:
    """Python's name of a charset that a page may declare; None for anything else."""
    from w3lib.encoding import resolve_encoding

    name = resolve_encoding(label.strip()) if label and len(label) < 64 and "\x00" not in label else None
    return name if name in _KNOWN else None


def _charset(body: bytes, declared: str | None) -> str:
    from w3lib.encoding import html_body_declared_encoding

    is_utf8 = _is_utf8(body)
    if is_utf8 and not body.isascii():
        return "utf-8"
    for label in (declared, html_body_declared_encoding(body)):
        name = known(label)
        if name is not None and _fits(body, name):
            return name
    if is_utf8 and b"\x00" not in body[:_SAMPLE]:
        return "utf-8"
    return _wide(body) or ("utf-8" if _is_utf8(body, with_mistakes=True) else _looks_like(body))


def _is_utf8(body: bytes, *, with_mistakes: bool = False) -> bool:
    try:
        body.decode()
    except UnicodeDecodeError:
        if not with_mistakes:
            return False
    else:
        return True
    wrong = body.decode("utf-8", "replace").count("\ufffd") - body.count("\ufffd".encode())
    beyond = len(body) - len(body.translate(None, bytes(range(128, 256))))
    return wrong * _MISTAKES <= beyond


def _fits(body: bytes, name: str) -> bool:
    """Whether bytes can be of a declared charset, but for a slip here and there."""
    if name.startswith(("utf-16", "utf-32")):
        # a page whose meta tag could be read as ASCII is not UTF-16, whatever it says
        return _wide(body) is not None
    if _SINGLE_BYTE.match(name):
        return True
    try:
        body.decode(name)
    except UnicodeDecodeError:
        return body.decode(name, "replace").count("\ufffd") * _SLIPS <= len(body)
    return True


def _wide(body: bytes) -> str | None:
    """UTF-16 without a mark, told by the zeros of its ASCII characters."""
    sample = body[:_SAMPLE]
    even, odd = sample[::2].count(0), sample[1::2].count(0)
    if max(even, odd) * 4 < len(sample) or min(even, odd) * 8 > max(even, odd):
        return None
    return "utf-16-le" if odd > even else "utf-16-be"


def _looks_like(body: bytes) -> str:
    from resiliparse.parse.encoding import detect_encoding

    return known(detect_encoding(body, html5_compatible=False)) or _LAST_RESORT
