"""system=openai: the files that its containers hold, or do not, over real HTTP."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from fakes.openai_exchanges import (
    CSV,
    GET,
    OWN,
    content,
    created,
    ended,
    file_cited,
    got,
    listing,
    ran,
    response,
    run,
    said,
)
from fakes.replay_server import (
    Exchange,
    answer,
    file_task,
)


@pytest.mark.parametrize(
    ("output", "exchanges", "files", "notes"),
    [
        pytest.param(
            [ran("c1"), ran("c2"), ran("c1")],
            [listing("c1", ("f1", OWN, 5)), listing("c2", ("f2", OWN, 9)), content("c2", "f2")],
            {"members.csv": CSV},
            ["members.csv: delivered more than once, the last one counts"],
            id="the newest of all containers",
        ),
        pytest.param(
            [ran("c1")],
            [listing("c1", ("f2", OWN, 9), ("f1", OWN, 5)), content("c1", "f2")],
            {"members.csv": CSV},
            ["members.csv: delivered more than once, the last one counts"],
            id="the newest, whatever the order",
        ),
        pytest.param(
            [ran("c1")],
            [listing("c1", ("f1", OWN, 5), ("f2", "/mnt/data/drafts/members.csv", 9)), content("c1", "f1")],
            {"members.csv": CSV},
            ["members.csv: delivered more than once, the last one counts"],
            id="the output folder before others",
        ),
        pytest.param(
            [ran("c1")],
            [listing("c1", ("f1", "/mnt/data/rows.csv", 5))],
            {},
            ['a file that was not asked for: "/mnt/data/rows.csv"'],
            id="a wrong name",
        ),
        pytest.param(
            [ran("c1")],
            [listing("c1", ("f1", "/mnt/data/../members.csv", 5), ("f2", "", 1))],
            {},
            ['a file that was not asked for: ""', 'a file that was not asked for: "/mnt/data/../members.csv"'],
            id="a path that climbs",
        ),
        pytest.param(
            [ran("c1")],
            [listing("c1", ("f1", OWN, 5)), content("c1", "f1", "")],
            {"members.csv": ""},
            [],
            id="empty",
        ),
        pytest.param(
            [ran("c1")],
            [listing("c1", ("f1", OWN, 5)), content("c1", "f1", b"\xff\xfe\x00")],
            {},
            ["members.csv: not UTF-8"],
            id="no text",
        ),
        pytest.param([said("Done.")], [], {}, [], id="no container"),
        pytest.param([ran("c1")], [listing("c1", has_more=True)], {}, [], id="a list of nothing"),
        pytest.param(
            [ran("../x?y"), ran(".."), {"type": "code_interpreter_call", "container_id": 7}],
            [listing("../x?y", ("f/1", OWN, 5)), content("../x?y", "f/1")],
            {"members.csv": CSV},
            [],
            id="names that would climb",
        ),
        pytest.param(
            [ran("c1")],
            [
                listing("c1", ("f1", "/mnt/data/notes.txt", 1), has_more=True, last_id="f1"),
                listing("c1", ("f2", OWN, 2), has_more=True, last_id="f2"),
                listing("c1", has_more=True, last_id="f2"),
                content("c1", "f2"),
            ],
            {"members.csv": CSV},
            ['a file that was not asked for: "/mnt/data/notes.txt"'],
            id="pages",
        ),
    ],
)
def test_files(
    tmp_path: Path, output: list[Any], exchanges: list[Exchange], files: dict[str, str], notes: list[str]
) -> None:
    result, server = run(tmp_path, [created(), ended(*output, said("Done.")), *exchanges], file_task())
    submission = got(result)
    assert submission.files == files
    assert submission.settings["echoed"].get("notes", []) == notes
    delivered = any(text.strip() for text in files.values())
    assert submission.settings["echoed"]["delivered"] is delivered
    assert submission.status == ("completed" if delivered else "empty")
    assert server.unexpected == []


def test_pages_are_asked_for_after_the_last_file(tmp_path: Path) -> None:
    pages = [listing("c1", ("f1", OWN, 1), has_more=True, last_id="f1"), listing("c1")]
    _, server = run(tmp_path, [created(), ended(ran("c1")), *pages, content("c1", "f1")], file_task())
    asked = [request.query for request in server.sent("GET", "/v1/containers/c1/files")]
    assert asked == [{"limit": "100"}, {"limit": "100", "after": "f1"}]


def test_a_file_that_only_the_answer_names_is_fetched(tmp_path: Path) -> None:
    output = [said("Done.", file_cited("c7", "f7", "members.csv"))]
    result, _ = run(tmp_path, [created(), ended(*output), listing("c7"), content("c7", "f7")], file_task())
    assert got(result).files == {"members.csv": CSV}


def test_what_is_listed_goes_before_what_is_named(tmp_path: Path) -> None:
    output = [ran("c1"), said("Done.", file_cited("c1", "old", "members.csv"))]
    exchanges = [created(), ended(*output), listing("c1", ("new", OWN, 0)), content("c1", "new")]
    result, server = run(tmp_path, exchanges, file_task())
    assert got(result).files == {"members.csv": CSV}
    assert server.left == 0


@pytest.mark.parametrize("status", [404, 400, 410])
def test_an_expired_container_is_a_note(tmp_path: Path, status: int) -> None:
    gone = answer("GET", "/v1/containers/c1/files", status, {"error": {"message": "Container is expired."}})
    output = [ran("c1"), ran("c2"), said("Done.", file_cited("c1", "f0", "members.csv"))]
    always = [gone, listing("c2", ("f2", "/mnt/data/b.csv", 3)), content("c2", "f2")]
    task = file_task("members.csv", "b.csv")
    result, server = run(tmp_path, [created(), ended(*output)], task, always=always)
    submission = got(result)
    assert submission.files == {"b.csv": CSV}
    assert submission.status == "incomplete"
    assert submission.error is not None
    assert "not delivered: members.csv" in submission.error.message
    (note,) = submission.settings["echoed"]["notes"]
    assert note.startswith('the files of container "c1": openai: the server answered')
    assert "Container is expired." in note
    assert server.unexpected == [], "its files are not asked for one by one"
    assert not result.job_left


def test_a_file_may_take_a_moment_to_be_there(tmp_path: Path) -> None:
    missing = answer("GET", "/v1/containers/c1/files/f1/content", 404, {"error": {"message": "not found"}})
    busy = answer("GET", "/v1/containers/c1/files", 503, "<html>busy</html>")
    exchanges = [
        created(),
        ended(ran("c1")),
        busy,
        listing("c1", ("f1", OWN, 1)),
        missing,
        content("c1", "f1"),
    ]
    result, _ = run(tmp_path, exchanges, file_task())
    assert got(result).files == {"members.csv": CSV}


def test_a_file_that_never_comes_is_a_note(tmp_path: Path) -> None:
    missing = answer("GET", "/v1/containers/c1/files/f1/content", 404, {"error": {"message": "not found"}})
    result, _ = run(tmp_path, [created(), ended(ran("c1")), listing("c1", ("f1", OWN, 1)), missing], file_task())
    submission = got(result)
    assert submission.status == "empty"
    (note,) = submission.settings["echoed"]["notes"]
    assert note.startswith("members.csv: openai: the server answered 404")


def test_a_provider_that_is_down_leaves_the_job_to_the_next_start(tmp_path: Path) -> None:
    down = answer("GET", "/v1/containers/c1/files", 503, "<html>down</html>")
    result, _ = run(tmp_path, [created(), ended(ran("c1")), down], file_task())
    submission = got(result)
    assert submission.status == "error"
    assert submission.error is not None
    assert submission.error.kind == "unreachable"
    assert result.job_left


def test_an_unfinished_job_with_its_files_has_delivered(tmp_path: Path) -> None:
    body = response("incomplete", [ran("c1")], incomplete_details={"reason": "max_output_tokens"})
    exchanges = [created(), answer("GET", GET, body=body), listing("c1", ("f1", OWN, 1)), content("c1", "f1")]
    result, _ = run(tmp_path, exchanges, file_task())
    assert (got(result).status, got(result).settings["echoed"]["delivered"]) == ("incomplete", True)
