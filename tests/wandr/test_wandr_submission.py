"""A submission's rows: what is malformed and why, and how files come over each channel."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from wandr_helpers import jsonl, key, node, record, root_of, submission, task_of

from core.model import Submission
from plugins.wandr.addresses import url_fault
from plugins.wandr.fence_files import files_in
from plugins.wandr.instruction import DELIVERIES, delivery_section
from plugins.wandr.model import Malformed, Record
from plugins.wandr.submission import MOST_NOTES, delivered, parse, rows

URL = key("url")
ONE = root_of(node("t"))
TWO = root_of(node("t", subtasks=[node("t.sights", key("city"), key("sight", 2), URL)]))
COMPOSITE = root_of(node("t", key("head", 2, fields=["firm", "person"]), key("firm", 1), URL))
FILE, SIGHTS = "results_t.jsonl", "results_t.sights.jsonl"
GHENT = json.dumps(record())


def block(content: str, path: str = FILE, mark: str = "file:") -> str:
    return f"```{mark}{path}\n{content}```\n"


def only(content: str, tree: Any = ONE) -> Record | Malformed:
    (row,) = rows(tree, content)
    return row


# Rows.


def changed(**changes: Any) -> str:
    return json.dumps(record(**changes))


@pytest.mark.parametrize(
    ("line", "field", "reason"),
    [
        # the line
        pytest.param("{", None, "invalid JSON", id="no JSON"),
        pytest.param(GHENT[:-1], None, "invalid JSON", id="cut"),
        pytest.param(GHENT + ",", None, "invalid JSON: Extra data", id="a comma after it"),
        pytest.param(GHENT * 2, None, "invalid JSON: Extra data", id="two records on a line"),
        pytest.param("[1]", None, "not an object: [1]", id="a list"),
        pytest.param('"text"', None, 'not an object: "text"', id="a text"),
        pytest.param("null", None, "not an object: null", id="null"),
        pytest.param(GHENT.replace('"630"', "NaN"), None, "NaN is not a JSON number", id="NaN"),
        pytest.param(GHENT.replace('"630"', "-Infinity"), None, "-Infinity is not", id="infinity"),
        pytest.param(GHENT.replace('"630"', "1e999"), None, "a number is too large", id="a number without a float"),
        pytest.param(GHENT.replace('"630"', "9" * 5000), None, "4300", id="a number without end"),
        pytest.param(GHENT[:-1] + ', "url": "https://example.org"}', None, "the key 'url' stands twice", id="a key twice"),
        pytest.param(GHENT.replace('"founded"', '"a": 1, "a"'), None, "the key 'a' stands twice", id="a key twice inside"),
        pytest.param("[" * 100_000, None, "the JSON is nested too deeply", id="nested too deeply"),
        pytest.param(GHENT.replace("630", "\\ud800"), None, "half a character", id="half a character, escaped"),
        pytest.param(GHENT.replace("630", "\ud800"), None, "half a character", id="half a character, raw"),
        pytest.param(GHENT.replace("630", "\x00"), None, "invalid JSON: Invalid control", id="NUL"),
        # the item
        pytest.param(changed(item=...), "item", "missing", id="no item"),
        pytest.param(changed(item=["Ghent"]), "item", 'not an object: ["Ghent"]', id="item is a list"),
        pytest.param(changed(item={}), "item.city", "missing", id="no field"),
        pytest.param(changed(item={"town": "Ghent"}), "item.city", "missing", id="another field"),
        pytest.param(changed(item={"city": ""}), "item.city", "empty", id="empty"),
        pytest.param(changed(item={"city": " \t"}), "item.city", "empty", id="blank"),
        pytest.param(changed(item={"city": 630}), "item.city", "not a text: 630", id="a number"),
        pytest.param(changed(item={"city": None}), "item.city", "not a text: null", id="null field"),
        pytest.param(changed(item={"city": ["Ghent"]}), "item.city", "not a text", id="a list of one"),
        pytest.param(changed(item={"city": "Ghent", "x": 1}), "item.x", "not a text: 1", id="a further field that is no text"),
        # the url
        pytest.param(changed(url=...), "url", "missing", id="no url"),
        pytest.param(changed(url=None), "url", "not a text: null", id="null url"),
        pytest.param(changed(url=["https://example.org"]), "url", "not a text", id="a list of urls"),
        pytest.param(changed(url=""), "url", "not an http(s) address", id="empty url"),
        pytest.param(changed(url="ftp://example.org"), "url", "not an http(s) address", id="ftp"),
        # the rest
        pytest.param(changed(excerpts=...), "excerpts", "missing", id="no excerpts"),
        pytest.param(changed(excerpts="Ghent is a city."), "excerpts", "not a list", id="excerpts are a text"),
        pytest.param(changed(excerpts=["a", 3]), "excerpts[1]", "not a text: 3", id="an excerpt is a number"),
        pytest.param(changed(excerpts=[{"text": "a"}]), "excerpts[0]", "not a text", id="an excerpt is an object"),
        pytest.param(changed(answer=...), "answer", "missing", id="no answer"),
        pytest.param(changed(answer="630"), "answer", 'not an object: "630"', id="answer is a text"),
        pytest.param(changed(answer=None), "answer", "not an object: null", id="answer is null"),
    ],
)  # fmt: skip
def test_malformed(line: str, field: str | None, reason: str) -> None:
    row = only(line)
    assert isinstance(row, Malformed)
    assert (row.node, row.file, row.line, row.field) == ("t", FILE, 0, field)
    assert row.reason.startswith(reason) or (reason in row.reason and field is None)
    json.dumps([row.reason, dict(row.item), row.url], ensure_ascii=False).encode("utf-8")


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({}, id="as it should be"),
        pytest.param({"excerpts": [], "answer": {}}, id="nothing quoted, nothing answered"),
        pytest.param(
            {"item": {"city": "Gent", "country": "Belgium", "note": ""}}, id="further fields of the item"
        ),
        pytest.param({"note": 3}, id="a further part of the row"),
        pytest.param({"item": {"city": "日本\u2028, né 𝔊"}}, id="any characters"),
        pytest.param({"answer": {"list": [1, {"x": None}], "n": 2.5}}, id="any JSON as the answer"),
    ],
)
def test_well_formed(changes: dict[str, Any]) -> None:
    given_row = record(**changes)
    for line in (json.dumps(given_row), json.dumps(given_row, ensure_ascii=False), f"  {json.dumps(given_row)}\r"):
        row = only(line)
        assert isinstance(row, Record)
        assert (row.item, row.url, row.answer) == (given_row["item"], given_row["url"], given_row["answer"])
        assert list(row.excerpts) == given_row["excerpts"]


def test_lines_are_counted_without_blank_ones_and_with_malformed_ones() -> None:
    content = f"\ufeff\n{GHENT}\n\n  \nnonsense\r\n{GHENT}"
    found = list(rows(ONE, content))
    assert [(type(row).__name__, row.line) for row in found] == [("Record", 0), ("Malformed", 1), ("Record", 2)]
    assert isinstance(found[0], Record)
    assert found[0].unit == "record/t/0"


def test_all_fields_of_all_keys_are_asked_for() -> None:
    assert isinstance(only(jsonl(record(item={"firm": "F", "person": "P"})), COMPOSITE), Record)
    row = only(jsonl(record(item={"firm": "F"})), COMPOSITE)
    assert isinstance(row, Malformed)
    assert (row.field, row.item, row.url) == ("item.person", {"firm": "F"}, "https://example.org/ghent")


def test_a_malformed_row_keeps_what_can_be_read_of_it() -> None:
    row = only(jsonl(record(item={"city": "Ghent", "year": 630}, answer=None)))
    assert isinstance(row, Malformed)
    assert (row.field, row.item, row.url) == ("item.year", {"city": "Ghent"}, "https://example.org/ghent")
    broken = only("{")
    assert isinstance(broken, Malformed)
    assert (broken.item, broken.url) == ({}, "")


@pytest.mark.parametrize(
    ("url", "fault"),
    [
        ("https://example.org", None),
        ("HTTP://Example.ORG:8080/a?b=c#d", None),
        ("https://münchen.example/straße?q=ü", None),
        ("https://example.org/@user/a%20b", None),
        ("https://example.org/?next=http://127.0.0.1/", None),
        ("http://93.184.216.34/", None),
        ("http://[2606:2800:220:1::1]/", None),
        ("http://localhost/", None),  # a name: what it leads to is seen when it is fetched
        ("https://" + "a" * 9000, "longer than"),
        ("example.org", "not an http(s)"),
        ("//example.org", "not an http(s)"),
        ("file:///etc/passwd", "not an http(s)"),
        ("javascript:alert(1)", "not an http(s)"),
        (" https://example.org", "not an http(s)"),
        ("https://example.org/a b", "has a blank"),
        ("https://example.org/a\u00a0b", "has a blank"),
        ("https://example.org\n", "has a blank"),
        ("https://example.org/\x00", "has a control character"),
        ("https://example.org/\x7f", "has a control character"),
        ("https://example.org\\@evil.example", "has a backslash"),
        ("https://user@example.org", "has credentials"),
        ("https://user:secret@example.org", "has credentials"),
        ("https://:@example.org", "has credentials"),
        ("https://", "has no usable host"),
        ("https:///path", "has no usable host"),
        ("https://ex%61mple.org", "has no usable host"),
        ("https://example.org:99999", "not an address"),
        ("https://example.org:http", "not an address"),
        ("https://[::1", "not an address"),
        ("http://127.0.0.1/", "not public"),
        ("http://127.0.0.1.:80/", "not public"),
        ("http://10.1.2.3", "not public"),
        ("http://192.168.0.1", "not public"),
        ("http://169.254.169.254/latest/meta-data", "not public"),
        ("http://100.64.0.1", "not public"),
        ("http://0.0.0.0", "not public"),
        ("http://224.0.0.1", "not public"),
        ("http://[::1]/", "not public"),
        ("http://[::ffff:10.0.0.1]/", "not public"),
        ("http://[fe80::1]/", "not public"),
        ("http://[fd00::1]/", "not public"),
        ("http://2130706433/", "disguised"),
        ("http://0x7f.1/", "disguised"),
        ("http://0177.0.0.1/", "disguised"),
        ("http://127.1/", "disguised"),
        ("http://１２７.０.０.１/", "not public"),
    ],
)
def test_addresses(url: str, fault: str | None) -> None:
    found = url_fault(url)
    assert found is None if fault is None else found is not None and fault in found


@pytest.mark.parametrize(
    ("url", "allowed"),
    [
        ("http://127.0.0.1:8123/a", True),
        ("http://127.0.0.1:8124/a", False),
        ("http://127.0.0.1/a", False),
        ("http://127.0.0.2:8123/a", False),
        ("http://[::1]:8123/a", True),
        ("http://user@127.0.0.1:8123/a", False),
        ("https://10.0.0.5/", True),
    ],
)
def test_hosts_that_the_run_allows(url: str, allowed: bool) -> None:
    hosts = ("127.0.0.1:8123", "[::1]:8123", "10.0.0.5:443")
    assert (url_fault(url, hosts) is None) is allowed
    came = parse(ONE, submission(files={FILE: jsonl(record(url=url))}), "file", allow_hosts=hosts)
    assert (len(came.records), len(came.malformed)) == ((1, 0) if allowed else (0, 1))


# Channels.


def test_missing_and_empty_files_are_malformed() -> None:
    came = parse(TWO, submission(files={FILE: "\n  \n"}), "file")
    assert came.malformed == (
        Malformed("t", FILE, None, None, "the file is empty"),
        Malformed("t.sights", SIGHTS, None, None, "the file is missing"),
    )
    assert came.records == ()


SIGHT = jsonl(record(item={"city": "Ghent", "sight": "Belfry"}))
BOTH = {FILE: jsonl(record()), SIGHTS: SIGHT}


@pytest.mark.parametrize(
    ("delivery", "given_submission"),
    [
        pytest.param("file", submission(files=BOTH), id="file"),
        pytest.param("fence", submission("Here they are.\n" + "".join(block(text, name) for name, text in BOTH.items())), id="fence"),
        pytest.param("schema", submission(json.dumps({"files": [{"path": name, "content": text} for name, text in BOTH.items()]})), id="schema"),
    ],
)  # fmt: skip
def test_each_channel_gives_the_same(delivery: Any, given_submission: Submission) -> None:
    task = task_of(node("t", subtasks=[node("t.sights", key("city"), key("sight", 2), URL)]))
    for asked in (task, TWO):
        came = parse(asked, given_submission, delivery)
        assert [row.unit for row in came.records] == ["record/t/0", "record/t.sights/0"]
        assert (came.malformed, came.notes) == ((), ())
    for other in set(DELIVERIES) - {delivery}:
        if given_submission.files:
            continue  # files come first whatever the channel: below
        assert parse(TWO, given_submission, other).records == (), "no channel falls back on another"


@pytest.mark.parametrize("delivery", ["fence", "schema"])
def test_files_that_a_submission_carries_come_first_and_it_is_noted(delivery: Any) -> None:
    text = block(jsonl(record(item={"city": "In the text"})))
    came = parse(ONE, submission(text, files={FILE: jsonl(record())}), delivery)
    assert [row.item["city"] for row in came.records] == ["Ghent"]
    assert came.notes == (f"the submission carries its files; they are read, not its text ({delivery})",)


@pytest.mark.parametrize("files", [{}, {FILE: "  "}, {"notes.txt": "x"}], ids=["none", "empty", "another"])
def test_files_that_are_no_answer_do_not_come_first(files: dict[str, str]) -> None:
    came = parse(ONE, submission(block(jsonl(record())), files=files), "fence")
    assert (len(came.records), came.malformed, came.notes) == (1, (), ())


@pytest.mark.parametrize(
    ("files", "content", "notes"),
    [
        pytest.param({FILE: "a"}, "a", [], id="by its name"),
        pytest.param({f"out/{FILE}": "a"}, "a", ["taken for"], id="in a folder"),
        pytest.param({f"./{FILE}": "a"}, "a", ["taken for"], id="from here"),
        pytest.param({f"out/{FILE}": "a", FILE: "b"}, "b", ["not used"], id="the very name comes first"),
        pytest.param({"x.jsonl": "a"}, None, ["not a file that the task asks for"], id="another file"),
        pytest.param({f"{FILE}.bak": "a"}, None, ["not a file"], id="nearly the name"),
    ],
)
def test_paths(files: dict[str, str], content: str | None, notes: list[str]) -> None:
    came = delivered(ONE, submission(files=files), "file")
    assert came.files.get(FILE) == content
    assert len(came.notes) == len(notes)
    assert all(part in note for part, note in zip(notes, came.notes, strict=True))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        pytest.param(None, "invalid JSON", id="no text"),
        pytest.param("Here are the files.", "invalid JSON", id="prose"),
        pytest.param('```json\n{"files": []}\n```', "invalid JSON", id="a fenced reply"),
        pytest.param("[]", "no list `files`", id="a list"),
        pytest.param('{"files": {}}', "no list `files`", id="files is an object"),
        pytest.param("[" * 100_000, "nested too deeply", id="nested too deeply"),
    ],
)
def test_a_reply_of_another_form_leaves_every_file_out(text: str | None, reason: str) -> None:
    came = parse(TWO, submission(text), "schema")
    assert [row.file for row in came.malformed] == [FILE, SIGHTS]
    assert all(reason in row.reason and "not what was asked for" in row.reason for row in came.malformed)


def test_entries_of_a_reply() -> None:
    entries = [
        {"path": FILE, "content": "old"},
        {"path": FILE, "content": jsonl(record())},
        {"path": 3, "content": "x"},
        {"path": SIGHTS},
        "x",
        {"path": "more.txt", "content": ""},
    ]
    came = parse(ONE, submission(json.dumps({"files": entries, "more": 1})), "schema")
    assert len(came.records) == 1
    assert [note.partition(": ")[2] for note in came.notes] == [
        "given more than once, the last is used",
        *["not an object of two texts, path and content"] * 3,
        "not a file that the task asks for",
    ]


# Fenced blocks.

PLAIN = jsonl(record())
ESCAPED = json.dumps(GHENT)[1:-1]
TICKS = jsonl(record(excerpts=["Use ```file:x``` or ``` here."]))
OPEN = '{"item": {"city": "Ghent"}, "excerpts": ["code:\n```\nx = 1\n```\n"], "url": "https://example.org", "answer": {}}\n'


@pytest.mark.parametrize(
    ("text", "content", "notes"),
    [
        pytest.param(block(PLAIN), PLAIN, [], id="plain"),
        pytest.param(f"Done.\n\n{block(PLAIN)}\nThat is all.", PLAIN, [], id="between prose"),
        pytest.param(block(PLAIN).replace("\n", "\r\n"), PLAIN, [], id="CRLF"),
        pytest.param(f"````markdown\n{block(PLAIN)}````\n", PLAIN, [], id="inside another fence"),
        pytest.param(f"````file:{FILE}\n{PLAIN}```\n````\n", PLAIN + "```\n", [], id="more backticks"),
        pytest.param(f"  ``` file: {FILE} \n{PLAIN}  ```  \n", PLAIN, [], id="blanks"),
        pytest.param(block(""), "", [], id="empty"),
        pytest.param(block(PLAIN) + "```json\n{}\n```\n", PLAIN, [], id="another block after it"),
        pytest.param(f"```python\nx\n```\n{block(PLAIN)}", PLAIN, [], id="another block before it"),
        # put up with, and noted
        pytest.param(f"```file:{FILE}\n{PLAIN}", PLAIN, ["not closed"], id="unclosed"),
        pytest.param(f"```file:{FILE}\n{PLAIN}```file:x\n```", PLAIN, ["not closed"], id="unclosed before another"),
        pytest.param(f"```file:{FILE}\n{PLAIN}\nThat is all.\n- Ghent\n", PLAIN, ["not closed", "2 lines after the last record"], id="unclosed before prose"),
        pytest.param(f"```file:{FILE}\n{PLAIN}Next:\n```file:x\n```", PLAIN, ["not closed", "1 lines after"], id="unclosed before prose and another"),
        pytest.param(f"```file:{FILE}\n{PLAIN}{{\"item\": \nand so on", PLAIN + '{"item": \n', ["not closed", "1 lines after"], id="unclosed, a record cut"),
        pytest.param(f"```file:{FILE}\nprose\n{PLAIN}", "prose\n" + PLAIN, ["not closed"], id="unclosed, prose before the record"),
        pytest.param(f"```file:{FILE}\nprose\n", "prose\n", ["not closed"], id="unclosed, no record"),
        pytest.param(block(PLAIN + "That is all.\n"), PLAIN + "That is all.\n", [], id="prose in a closed fence"),
        pytest.param(block(TICKS), TICKS, [], id="backticks inside a line"),
        pytest.param(block(OPEN + PLAIN), OPEN + PLAIN, ["backticks inside a record"], id="a fence inside a record"),
        pytest.param(block('{"item": 1\n') + "prose\n```json\n{}\n```\n", '{"item": 1\n', [], id="a record cut before the fence"),
        pytest.param(block('{"item": 1\n') + "prose", '{"item": 1\n', [], id="a record cut, then prose"),
        pytest.param(block(ESCAPED + "\n"), PLAIN, ["1 lines were escaped"], id="an escaped line"),
        pytest.param(block(f"{ESCAPED}\\n{ESCAPED}\n"), PLAIN * 2, ["1 lines"], id="escaped lines on one line"),
        pytest.param(block(json.dumps(PLAIN * 2) + "\n"), PLAIN * 2, ["1 lines"], id="the whole as one text"),
        pytest.param(block(f"{GHENT}\\n{GHENT}\\n\n"), PLAIN * 2, ["1 lines"], id="a literal line end between records"),
        pytest.param(block('{\\"item\\": "}\n'), '{\\"item\\": "}\n', [], id="escaped, but no JSON text"),
        pytest.param(block('"a text"\n'), '"a text"\n', [], id="a text that is no record"),
        pytest.param(block("old\n") + block(PLAIN), PLAIN, ["more than once"], id="the same path twice"),
    ],
)  # fmt: skip
def test_blocks(text: str, content: str, notes: list[str]) -> None:
    files, found = files_in(text)
    # the last line's own end is the fence's, where there is one
    assert (files[FILE].content or "").replace("\r", "").rstrip("\n") == content.rstrip("\n")
    assert len(found) == len(notes)
    assert all(part in note for part, note in zip(notes, found, strict=True))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "no block",
        "```\nfile:a\n```",
        "```file:\nx\n```",
        "`` `file:a\nx\n```",
        "> ```file:a\nx\n> ```",
        "a ```file:a\nx\n```",
    ],
)
def test_what_is_no_block(text: str) -> None:
    assert files_in(text) == ({}, ())


@pytest.mark.parametrize(
    ("inside", "fault"),
    [
        pytest.param(base64.b64encode(PLAIN.encode()).decode(), None, id="on one line"),
        pytest.param(base64.encodebytes(PLAIN.encode()).decode(), None, id="in short lines"),
        pytest.param("?" * 8, "not base64", id="no base64"),
        pytest.param(base64.b64encode(b"\xff\xfe").decode(), "not UTF-8", id="no UTF-8"),
    ],
)
def test_base64_blocks(inside: str, fault: str | None) -> None:
    came = parse(ONE, submission(block(inside + "\n", mark="file-base64:")), "fence")
    if fault is None:
        assert (len(came.records), came.malformed) == (1, ())
    else:
        assert [(row.file, row.line, row.reason) for row in came.malformed] == [
            (FILE, None, f"the block is {fault}")
        ]


def test_the_last_block_of_a_path_counts_even_if_it_cannot_be_read() -> None:
    came = parse(ONE, submission(block(PLAIN) + block("???", mark="file-base64:")), "fence")
    assert [row.reason for row in came.malformed] == ["the block is not base64"]


def test_notes_are_few() -> None:
    came = parse(ONE, submission("".join(block(PLAIN, f"x{number}") for number in range(200))), "fence")
    assert len(came.notes) == MOST_NOTES + 1
    assert came.notes[-1] == f"{200 - MOST_NOTES} more of this kind"


def test_our_own_delivery_section_is_no_submission() -> None:
    """A system that repeats its instruction before its answer has answered."""
    echoed = delivery_section(TWO, "fence")
    came = parse(TWO, submission(echoed + "".join(block(text, name) for name, text in BOTH.items())), "fence")
    assert (len(came.records), came.malformed) == (2, ())


# Whatever a system writes.

text_of_any_kind = st.text(alphabet=st.characters(), max_size=40)
plain_records = st.builds(
    lambda city, excerpts, answer: record(item={"city": city}, excerpts=excerpts, answer={"a": answer}),
    st.text(min_size=1, max_size=20, alphabet=st.characters(exclude_categories=["Cs"])).filter(str.strip),
    st.lists(
        st.text(max_size=30, alphabet=st.characters(exclude_categories=["Cs"])) | st.just("```\nx\n```"),
        max_size=3,
    ),
    st.text(max_size=10, alphabet="`{}\\n\"' file:\n"),
)


@given(found=st.lists(plain_records, min_size=1, max_size=4), escape=st.booleans(), close=st.booleans())
def test_rendered_blocks_are_read_back(found: list[dict[str, Any]], escape: bool, close: bool) -> None:
    lines = [json.dumps(each, ensure_ascii=escape) for each in found]
    text = f"Prose.\n```file:{FILE}\n" + "\n".join(lines) + ("\n```\nMore prose." if close else "")
    came = parse(ONE, submission(text), "fence")
    assert came.malformed == ()
    assert [(row.item, list(row.excerpts), row.answer) for row in came.records] == [
        (each["item"], each["excerpts"], each["answer"]) for each in found
    ]


@given(found=st.lists(plain_records, min_size=1, max_size=4))
def test_lines_that_were_escaped_are_read_back(found: list[dict[str, Any]]) -> None:
    lines = [json.dumps(json.dumps(each))[1:-1] for each in found]
    came = parse(ONE, submission(block("\n".join(lines) + "\n")), "fence")
    assert came.malformed == ()
    assert [row.item for row in came.records] == [each["item"] for each in found]


hostile = st.lists(
    st.sampled_from(["```", f"```file:{FILE}", "```file-base64:x", "````", '{"item":', GHENT, ESCAPED, "}", '"', "\\n", "\ud800", "\x00", "\u2028", "  "])
    | text_of_any_kind,
    max_size=12,
).map("\n".join)  # fmt: skip


@given(text=hostile, as_line=st.booleans())
def test_nothing_raises(text: str, as_line: bool) -> None:
    # a lone surrogate can't come in through a file of submissions, but a system inside the process can give one
    given_text = Submission.model_construct(task_id="t", text=text, files={})
    given_file = Submission.model_construct(
        task_id="t", text=None, files={FILE: text.replace("\n", "") if as_line else text}
    )
    for delivery, each in (("file", given_file), ("fence", given_text), ("schema", given_text)):
        came = parse(TWO, each, delivery)  # type: ignore[arg-type]  # the words are channels
        for row in came.records:
            json.dumps([dict(row.item), row.answer, row.excerpts], ensure_ascii=False, allow_nan=False).encode()
        json.dumps(
            [[row.reason, row.field, dict(row.item), row.url] for row in came.malformed], ensure_ascii=False
        ).encode()
        json.dumps(came.notes, ensure_ascii=False).encode()
        assert {row.file for row in came.malformed} | {row.node for row in came.records}


@pytest.mark.parametrize(
    "line",
    [
        pytest.param('{"a":' * 200_000, id="deep"),
        pytest.param('"' + "x" * 1_000_000, id="an open text"),
        pytest.param("{" + ",".join(f'"{n}":0' for n in range(60_000)) + ',"7":1}', id="many keys and one twice"),
        pytest.param(json.dumps(record(answer={"a": "y" * 1_000_000})), id="a long answer"),
        pytest.param("{}\\n" * 50_000, id="many records with literal line ends"),
        pytest.param("x" + "`" * 1_000_000, id="backticks"),
    ],
)
def test_long_lines_are_read_in_passing(line: str) -> None:
    came = parse(ONE, submission(block(f"{line}\n{GHENT}\n")), "fence")
    assert came.records
    assert came.records[-1].item == {"city": "Ghent"}
