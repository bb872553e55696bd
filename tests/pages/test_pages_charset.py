"""What a page is written in, whatever it says."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.pages.charset import decode, known

FRENCH = "Le café “Zürich” coûte 5 € – déjà vu, et l’été n’y change rien. "
JAPANESE = "日本語の文章です。東京は日本の首都であり、人口は約一千四百万人です。"
CHINESE = "中文网页的内容。北京是中华人民共和国的首都，人口超过两千万。"
RUSSIAN = "Москва является столицей России и крупнейшим городом страны. "
KOREAN = "대한민국의 수도는 서울이며 인구는 약 천만 명이다. "
CZECH = "Příliš žluťoučký kůň úpěl ďábelské ódy. "


@pytest.mark.parametrize(
    ("text", "written", "declared", "read"),
    [
        pytest.param(FRENCH, "utf-8", "utf-8", "utf-8", id="what the header says"),
        pytest.param(FRENCH, "cp1252", "iso-8859-1", "cp1252", id="latin-1 is windows-1252, as in browsers"),
        pytest.param(FRENCH, "cp1252", None, "cp1252", id="windows-1252, not declared"),
        pytest.param(FRENCH, "cp1252", "utf-8", "cp1252", id="windows-1252, declared as UTF-8"),
        pytest.param(FRENCH, "utf-8", "iso-8859-1", "utf-8", id="UTF-8, declared as latin-1"),
        pytest.param(FRENCH, "utf-8", None, "utf-8", id="UTF-8, not declared"),
        pytest.param(FRENCH, "utf-8-sig", "cp1252", "utf-8", id="a mark beats the header"),
        pytest.param(FRENCH, "utf-16", "utf-8", "utf-16-le", id="UTF-16 with a mark"),
        pytest.param(FRENCH, "utf-16-be", None, "utf-16-be", id="UTF-16 without a mark"),
        pytest.param(FRENCH, "utf-8", "rot13", "utf-8", id="a codec that is no charset"),
        pytest.param(FRENCH, "utf-8", "no-such-charset", "utf-8", id="a charset that is none"),
        pytest.param("plain", "ascii", "utf-16", "utf-8", id="ASCII, declared as UTF-16"),
        pytest.param(JAPANESE, "cp932", "Shift_JIS", "cp932", id="Shift_JIS"),
        pytest.param(JAPANESE, "cp932", None, "cp932", id="Shift_JIS, not declared"),
        pytest.param(JAPANESE, "cp932", "utf-8", "cp932", id="Shift_JIS, declared as UTF-8"),
        pytest.param(JAPANESE * 3, "euc_jp", None, "euc_jp", id="EUC-JP, not declared"),
        pytest.param(CHINESE, "gb18030", "gb2312", "gb18030", id="gb2312 is GB18030, as in browsers"),
        pytest.param(CHINESE * 3, "gb18030", None, "gb18030", id="GB18030, not declared"),
        pytest.param(RUSSIAN * 3, "cp1251", None, "cp1251", id="windows-1251, not declared"),
        pytest.param(RUSSIAN * 3, "koi8-r", None, "koi8-r", id="KOI8-R, not declared"),
        pytest.param(KOREAN * 3, "cp949", "euc-kr", "cp949", id="euc-kr is CP949, as in browsers"),
        pytest.param(CZECH * 5, "cp1250", "windows-1250", "cp1250", id="windows-1250"),
    ],
)
def test_texts_are_read_as_they_were_written(text: str, written: str, declared: str | None, read: str) -> None:
    assert decode(text.encode(written), declared) == (text, read)


@pytest.mark.parametrize(
    "head",
    [
        '<meta charset="windows-1251">',
        '<META http-equiv="Content-Type" content="text/html; charset=windows-1251">',
        '<?xml version="1.0" encoding="windows-1251"?>',
    ],
)
def test_the_page_says_its_charset_where_the_header_does_not(head: str) -> None:
    # too short to be told by its looks
    assert decode(f"{head}<p>Да".encode("cp1251"), None) == (f"{head}<p>Да", "cp1251")


def test_the_header_comes_before_the_page() -> None:
    text = '<meta charset="windows-1253"><p>Да'
    assert decode(text.encode("cp1251"), "windows-1251")[0] == text


@pytest.mark.parametrize("declared", ["utf-8", None])
def test_utf8_with_a_few_mistakes_stays_utf8(declared: str | None) -> None:
    body = (RUSSIAN * 40).encode()
    text, charset = decode(body[:100] + b"\xff\xfe\x80" + body[100:], declared)
    assert charset == "utf-8"
    assert text.count("Москва") == 40


@pytest.mark.parametrize(
    ("label", "name"),
    [
        ("utf8", "utf-8"),
        ("ISO-8859-1", "cp1252"),
        ("x-sjis", "cp932"),
        (" gbk ", "gb18030"),
        ("rot13", None),
        ("idna", None),
        ("unicode_escape", None),
        ("utf-7", None),
        ("hex", None),
        ("utf-8\x00", None),
        ("", None),
        (None, None),
    ],
)
def test_labels_name_charsets_and_nothing_else(label: str | None, name: str | None) -> None:
    assert known(label) == name


@given(
    st.binary(max_size=400),
    st.sampled_from([None, "utf-8", "utf-16", "shift_jis", "big5", "gb2312", "x", "koi8-r"]),
)
def test_any_bytes_become_a_text_that_can_be_written(body: bytes, declared: str | None) -> None:
    text, charset = decode(body, declared)
    assert known(charset) is not None
    assert text.encode().decode() == text
    assert not set(text) & {"\x00", "\x07", "\x7f", "\ufeff"}
