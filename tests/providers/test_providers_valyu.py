"""system=valyu against recorded exchanges and what can go wrong beside them, over real HTTP."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fakes.hostile_json import JSON
from fakes.replay_server import (
    KEY,
    Exchange,
    ReplayServer,
    answer,
    cut,
    file_task,
    hang_up,
    make_system,
    plain_task,
    recorded,
    scenario,
    solved,
)
from hypothesis import given
from hypothesis import strategies as st

from adapters.valyu import _snapshot
from core.errors import CallError, InputError
from core.jobs import Ask, Snapshot
from core.model import Submission
from core.testing import services, system

TASKS = "/v1/deepresearch/tasks"
ID = "f0000000-fake-4000-8000-000000000001"
TASK = f"{TASKS}/{ID}"
STATUS = f"{TASK}/status"
ASSET = f"{TASK}/assets/dl_1"
CSV = "name,hq_city\nNorthmere Transmission,Ashby Quay\n"


def created() -> Exchange:
    return recorded("valyu", "01_create_task")


def running(**headers: str) -> Exchange:
    """A task at work, asked again at once."""
    came = recorded("valyu", "02_status_running")
    return replace(came, headers={**came.headers, "retry-after": "0", **headers})


def done(**changes: Any) -> Exchange:
    return recorded("valyu", "03_status_completed").with_json(**changes)


def only(result: Any) -> Submission:
    """The submission, without the key anywhere in it."""
    assert result.submission is not None
    assert KEY not in result.submission.model_dump_json()
    found: Submission = result.submission
    return found


def test_the_happy_scenario_survives_a_page_among_the_polls(tmp_path: Path) -> None:
    exchanges = [
        replace(one, headers={**one.headers, "retry-after": "0"}) if "retry-after" in one.headers else one
        for one in scenario("valyu", "happy")
    ]
    task = file_task("members.csv")
    with ReplayServer(exchanges) as server:
        result = solved(tmp_path, server, "valyu", task, "effort=medium", "system.delivery=file")
    submission = only(result)
    assert (server.unexpected, server.left, result.job_left) == ([], 0, False)
    assert (submission.status, submission.cost_usd, submission.cost_source) == ("completed", 0.6, "reported")
    assert list(submission.files) == ["members.csv"]
    assert submission.files["members.csv"].startswith("name,hq_city,founded_year,source_url\nNorthmere")
    assert (submission.text or "").startswith("The Lakeshore Grid Association has three members.")
    assert [(one.url, one.title, one.excerpt) for one in submission.citations][:1] == [
        (
            "https://lga.example.org/members",
            "Members - Lakeshore Grid Association",
            "The association has three members: Northmere Transmission, Calder Grid and Solvane Networks.",
        )
    ]
    assert len(submission.citations) == 4
    assert submission.settings["mode"] == "standard"
    echoed = submission.settings["echoed"]
    assert (echoed["mode"], echoed["delivered"], echoed["cost"]) == (
        "standard",
        True,
        {"task": 0.5, "deliverables": 0.1},
    )
    assert server.requests[0].headers["x-api-key"] == KEY
    body = server.requests[0].json
    assert len(body["metadata"].pop("token")) == 32
    assert body == {
        "query": task.prompt,
        "mode": "standard",
        "output_formats": ["markdown"],
        "metadata": {"task_id": "lga-001", "attempt": "1"},
        "deliverables": [
            {
                "type": "csv",
                "description": "The file members.csv, with the columns and rows that the task describes.",
            }
        ],
    }
    assert server.requests[-1].query == {"token": "fake"}


def test_the_failed_scenario(tmp_path: Path) -> None:
    with ReplayServer(scenario("valyu", "failed")) as server:
        submission = only(solved(tmp_path, server, "valyu"))
    assert server.left == 0
    assert submission.error is not None
    assert (submission.status, submission.error.message) == (
        "failed",
        f"valyu: Research failed; job {ID}; retry=failed sends it again",
    )
    assert (submission.cost_usd, submission.cost_source) == (None, "unknown")


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        ("Insufficient credits", "quota"),
        ({"message": "out of credits"}, "quota"),
        ({"code": "invalid_api_key"}, "key"),
        ("Research failed", None),
        (None, None),
    ],
)
def test_a_task_that_failed_for_want_of_credit_is_no_score(tmp_path: Path, error: Any, kind: str | None) -> None:
    failed = recorded("valyu", "05_status_failed").with_json(error=error)
    with ReplayServer([created(), failed]) as server:
        result = solved(tmp_path, server, "valyu")
    assert (len(server.sent("POST")), result.job_left) == (1, False)
    assert (None if result.stopped is None else result.stopped.kind) == kind
    assert (result.submission is None) is (kind is not None)


def test_the_cancel_scenario(tmp_path: Path) -> None:
    create, cancel = scenario("valyu", "cancel")
    before = recorded("valyu", "02_status_running").json
    after = {**recorded("valyu", "05_status_failed").json, "status": "cancelled", "error": None}

    def polled() -> bytes:
        return json.dumps(after if server.sent("POST", f"{TASK}/cancel") else before).encode()

    words = ("effort=low", "system.efforts.low.timeout_s=0.1")
    with ReplayServer([create], always=[cancel, answer("GET", STATUS, make=polled)]) as server:
        submission = only(solved(tmp_path, server, "valyu", plain_task(), *words))
    assert server.unexpected == []
    assert [one.path for one in server.sent("POST")] == [TASKS, f"{TASK}/cancel"]
    assert (submission.status, submission.cost_usd, submission.cost_source) == ("timed_out", None, "unknown")


@pytest.mark.parametrize("odd", ["", " ", ".", "..", 7, None])
def test_a_task_without_a_usable_id_is_not_sent_again(tmp_path: Path, odd: Any) -> None:
    with ReplayServer([created().with_json(deepresearch_id=odd)]) as server:
        submission = only(solved(tmp_path, server, "valyu"))
    assert submission.error is not None
    assert (submission.error.kind, len(server.requests)) == ("maybe_billed", 1)


def test_only_plain_values_are_echoed(tmp_path: Path) -> None:
    deep: Any = True
    for _ in range(250):
        deep = {"a": deep}
    odd = done(mode=deep, output_type=deep, tools={"code": True, "more": deep}, output="half \ud800 a character")
    with ReplayServer([created(), odd]) as server:
        submission = only(solved(tmp_path, server, "valyu"))
    assert (submission.status, submission.text) == ("completed", "half \ufffd a character")
    echoed = submission.settings["echoed"]
    assert echoed["tools"] == {"code": True}
    assert {"mode", "output_type"}.isdisjoint(echoed)


@pytest.mark.parametrize(
    ("cancelled", "last", "status"),
    [
        (recorded, {"status": "cancelled"}, "timed_out"),
        (None, {}, "completed"),  # it had ended when it was to be cancelled
    ],
)
def test_the_deadline_cancels_and_then_looks_once_more(
    tmp_path: Path, cancelled: Any, last: dict[str, Any], status: str
) -> None:
    over = answer("POST", f"{TASK}/cancel", 400, {"success": False, "error": "Task already completed"})
    cancel = cancelled("valyu", "06_cancel") if cancelled else over
    words = ("effort=low", "system.efforts.low.timeout_s=0.2")
    with ReplayServer([created(), cancel, done(**last)], always=[running()]) as server:
        submission = only(solved(tmp_path, server, "valyu", plain_task(), *words))
    assert (submission.status, server.left, server.unexpected) == (status, 0, [])
    assert submission.cost_usd == 0.6


@pytest.mark.parametrize(
    ("name", "kind", "said"),
    [("91_err_401", "key", "Invalid API key"), ("92_err_402", "quota", "Insufficient credits")],
)
def test_a_wrong_key_and_an_empty_account_stop_the_run_at_once(
    tmp_path: Path, name: str, kind: str, said: str
) -> None:
    with ReplayServer([recorded("valyu", name)]) as server:
        result = solved(tmp_path, server, "valyu")
    assert len(server.requests) == 1
    assert result.stopped is not None
    assert (result.stopped.kind, said in result.stopped.message) == (kind, True)
    assert not result.job_left


@pytest.mark.parametrize(
    ("effort", "mode", "deadline"),
    [
        ("minimal", "instant", 300),
        ("low", "fast", 1200),
        ("medium", "standard", 3000),
        ("high", "heavy", 7200),
        ("xhigh", "max", 10800),
    ],
)
def test_the_efforts(effort: str, mode: str, deadline: float) -> None:
    made: Any = system("valyu", f"effort={effort}")(services())
    assert made.settings == {"mode": mode, "delivery": "fence", "base_url": "https://api.valyu.ai"}
    assert (made.options.deadline_s, made.can_block) == (deadline, False)


@pytest.mark.parametrize(
    "word", ["system.price={input: 1, output: 1}", "system.transport=stream", "system.delivery=x"]
)
def test_values_that_cannot_be_used_are_refused(word: str) -> None:
    with pytest.raises(InputError, match=r"system\.(price|transport|delivery)"):
        system("valyu", word)(services())


# creates


@pytest.mark.parametrize(
    "exchange",
    [
        answer("POST", TASKS, 429, {"success": False, "error": "Rate limit exceeded", "retry_after": 30}),
        answer("POST", TASKS, 429, {"success": False, "error": "Rate limit exceeded"}, {"retry-after": "30"}),
        answer("POST", TASKS, 429, {"success": False, "error": "Rate limit exceeded"}),
        answer("POST", TASKS, 503, {"success": False, "error": "billing could not be checked"}),
        answer("POST", TASKS, 502, "<html><body>502 Bad Gateway</body></html>"),
    ],
)
def test_a_create_that_was_not_taken_is_made_again(tmp_path: Path, exchange: Exchange) -> None:
    with ReplayServer([exchange, created(), done()]) as server:
        submission = only(solved(tmp_path, server, "valyu"))
    assert (submission.status, len(server.sent("POST"))) == ("completed", 2)


@pytest.mark.parametrize(
    ("exchange", "kind", "cost"),
    [
        (answer("POST", TASKS, 200, {"success": False, "error": "query too long"}), "bad_request", 0.0),
        (answer("POST", TASKS, 400, {"success": False, "error": "query too long"}), "bad_request", 0.0),
        (hang_up("POST", TASKS), "maybe_billed", None),
        (answer("POST", TASKS, 200, "<html>hello</html>"), "maybe_billed", None),
        (answer("POST", TASKS, 200, {"success": True, "status": "queued"}), "maybe_billed", None),
    ],
)
def test_a_create_without_a_task_is_sent_once(
    tmp_path: Path, exchange: Exchange, kind: str, cost: float | None
) -> None:
    with ReplayServer([exchange]) as server:
        result = solved(tmp_path, server, "valyu")
    submission = only(result)
    assert submission.error is not None
    assert (submission.error.kind, submission.cost_usd, len(server.requests)) == (kind, cost, 1)
    assert ("query too long" in submission.error.message) is (kind == "bad_request")
    assert result.job_left is (kind == "maybe_billed")


# polls


@pytest.mark.parametrize(
    "odd",
    [
        answer("GET", STATUS, 502, "<html><body>502 Bad Gateway</body></html>"),
        answer("GET", STATUS, 200, "<html>hello</html>"),
        answer("GET", STATUS, 200, ""),
        answer("GET", STATUS, 200, [1]),
        answer("GET", STATUS, 200, {"success": False, "error": "try later"}),
        answer("GET", STATUS, 404, {"error": "not found"}),
        answer("GET", STATUS, 429, {"error": "slow down", "retry_after": 0}),
        answer("GET", STATUS, 304, None),
        answer("GET", STATUS, 200, {"status": "awaiting_input", "interaction": {}}),
        answer("GET", STATUS, 200, {"status": "paused"}),
        answer("GET", STATUS, 200, {"status": "pondering"}),
        hang_up("GET", STATUS),
        cut(answer("GET", STATUS, 200, {"status": "completed"})),
    ],
)
def test_polls_that_make_no_sense_are_made_again(tmp_path: Path, odd: Exchange) -> None:
    with ReplayServer([created(), odd, done()]) as server:
        submission = only(solved(tmp_path, server, "valyu"))
    assert (submission.status, server.left, server.unexpected) == ("completed", 0, [])
    assert len(server.sent("POST")) == 1


def test_a_poll_sends_the_last_tag_and_takes_not_modified_for_running(tmp_path: Path) -> None:
    same = answer("GET", STATUS, 304, None, {"retry-after": "0"})
    with ReplayServer([created(), running(), same, running(etag='"b2"'), done()]) as server:
        submission = only(solved(tmp_path, server, "valyu"))
    assert submission.status == "completed"
    tags = [request.headers.get("if-none-match") for request in server.sent("GET")]
    assert tags == [None, '"a1"', '"a1"', '"b2"']


@pytest.mark.parametrize(
    ("headers", "word", "hint", "handle"),
    [
        ({"retry-after": "5", "etag": '"a1"'}, "running", 5.0, {"id": "t", "etag": '"a1"'}),
        ({"retry-after": "86400"}, "running", 60.0, {"id": "t"}),
        ({"retry-after": "soon"}, "running", None, {"id": "t"}),
        # what stands for the end of a task would never be sent again
        ({"etag": '"z"'}, "completed", None, {"id": "t"}),
        ({"etag": "x" * 300}, "running", None, {"id": "t"}),
    ],
)
def test_what_a_poll_says_of_the_next_one(
    headers: dict[str, str], word: str, hint: float | None, handle: dict[str, str]
) -> None:
    async def polled() -> Snapshot:
        provider = _provider("fence", server)
        found: Snapshot = await provider.advance(_ask(plain_task()), {"id": "t"})
        return found

    with ReplayServer([answer("GET", f"{TASKS}/t/status", 200, {"status": word}, headers)]) as server:
        found = asyncio.run(polled())
    assert (found.retry_after_s, found.handle) == (hint, handle)


def test_a_task_that_goes_on_after_a_restart_is_found_again(tmp_path: Path) -> None:
    down = answer("GET", STATUS, 503, "")
    with ReplayServer([created(), running(), down]) as server:
        port = server.port
        assert only(solved(tmp_path, server, "valyu")).status == "error"
    with ReplayServer([done()], port=port) as server:
        submission = only(solved(tmp_path, server, "valyu"))
    assert (submission.status, server.sent("POST")) == ("completed", [])
    assert submission.settings["echoed"]["resumed"] is True


# what is delivered


def _deliverable(**changes: Any) -> dict[str, Any]:
    return {
        "id": "dl_1",
        "request": "The file members.csv, with the columns and rows that the task describes.",
        "type": "csv",
        "status": "completed",
        "title": "Lakeshore members",
        "url": f"https://api.valyu.ai{ASSET}?token=fake",
        **changes,
    }


def _asset(status: int = 200, body: str = CSV) -> Exchange:
    return replace(answer("GET", ASSET, status, body), headers={"content-type": "text/csv"})


@pytest.mark.parametrize(
    ("listed", "assets", "files", "status", "note"),
    [
        ([_deliverable()], [_asset()], CSV, "completed", None),
        ([_deliverable(request="x", title="out/members.csv")], [_asset()], CSV, "completed", None),
        ([_deliverable()], [_asset(404, ""), _asset(502, "<html>"), _asset()], CSV, "completed", None),
        ([_deliverable(), _deliverable()], [_asset(), _asset()], CSV, "completed", "more than once"),
        ([_deliverable()], [_asset(404, "")], None, "empty", "not to be had"),
        ([_deliverable()], [_asset(403, "expired")], None, "empty", "not to be had"),
        ([_deliverable()], [_asset(503, "")], None, "empty", "not to be had"),
        ([_deliverable()], [_asset(body="  ")], "  ", "empty", None),
        ([_deliverable(request="x", title="../members.csv")], [_asset()], None, "empty", "not asked for"),
        ([_deliverable(request="x", title="other.csv")], [_asset()], None, "empty", "not asked for"),
        ([_deliverable(status="failed", error="no rows")], [], None, "empty", "no rows"),
        ([_deliverable(url=None)], [], None, "empty", "no address"),
        # a link elsewhere is fetched without the key, and from the public internet alone
        ([_deliverable(url="http://127.0.0.1:9/x.csv")], [], None, "empty", "may not be fetched"),
        ([_deliverable(url="file:///etc/passwd")], [], None, "empty", "may not be fetched"),
        ([_deliverable(url="http://[bad")], [], None, "empty", "may not be fetched"),
        (["dl_1", 3], [], None, "empty", "unknown form"),
        ([], [], None, "empty", None),
        ({"csv": 1}, [], None, "empty", None),
        (None, [], None, "empty", None),
    ],
)
def test_deliverables(
    tmp_path: Path, listed: Any, assets: list[Exchange], files: str | None, status: str, note: str | None
) -> None:
    with ReplayServer([created(), done(deliverables=listed), *assets]) as server:
        submission = only(solved(tmp_path, server, "valyu", file_task(), "system.delivery=file"))
    assert submission.files == ({} if files is None else {"members.csv": files})
    assert (submission.status, server.unexpected, server.left) == (status, [], 0)
    notes = submission.settings["echoed"].get("notes", [])
    assert notes == [] if note is None else any(note in one for one in notes)
    assert submission.cost_usd == 0.6


def test_a_file_of_another_type_is_refused_before_anything_is_sent(tmp_path: Path) -> None:
    with ReplayServer([]) as server:
        submission = only(solved(tmp_path, server, "valyu", file_task("a.csv", "b.jsonl"), "system.delivery=file"))
    assert server.requests == []
    assert submission.error is not None
    assert (submission.error.kind, submission.cost_usd) == ("bad_request", 0.0)
    assert "b.jsonl can't be a deliverable" in submission.error.message
    assert "system.delivery=fence" in submission.error.message


def test_files_as_a_typed_reply(tmp_path: Path) -> None:
    output = {"files": [{"path": "members.csv", "content": CSV}]}
    with ReplayServer([created(), done(output=output, output_type="json")]) as server:
        submission = only(solved(tmp_path, server, "valyu", file_task(), "system.delivery=schema"))
    assert server.requests[0].json["output_formats"] == [file_task().output_schema]
    assert "deliverables" not in server.requests[0].json
    assert (submission.status, submission.files) == ("completed", {"members.csv": CSV})


def test_fences_are_the_text(tmp_path: Path) -> None:
    with ReplayServer([created(), done(output="```csv\nname\n```")]) as server:
        submission = only(solved(tmp_path, server, "valyu", file_task("a.jsonl")))
    assert server.requests[0].json["output_formats"] == ["markdown"]
    assert (submission.status, submission.text, submission.files) == ("completed", "```csv\nname\n```", {})


@pytest.mark.parametrize(
    ("effort", "changes", "usd", "source"),
    [
        ("low", {"cost": None}, 0.10, "list_price"),
        ("low", {"cost": "0.6"}, 0.10, "list_price"),
        ("low", {"cost": -1}, 0.10, "list_price"),
        ("low", {"cost": True}, 0.10, "list_price"),
        ("minimal", {"cost": None}, None, "unknown"),
        ("low", {"cost": 0}, 0.0, "reported"),
        ("low", {"status": "failed", "cost": None}, None, "unknown"),
        ("low", {"status": "failed", "cost": 0.1}, 0.1, "reported"),
        ("low", {"status": "cancelled", "cost": None}, None, "unknown"),
    ],
)
def test_what_it_costs(
    tmp_path: Path, effort: str, changes: dict[str, Any], usd: float | None, source: str
) -> None:
    with ReplayServer([created(), done(**changes)]) as server:
        submission = only(solved(tmp_path, server, "valyu", plain_task(), f"effort={effort}"))
    assert (submission.cost_usd, submission.cost_source) == (usd, source)


@pytest.mark.parametrize("output", [None, "", "   ", {}, []])
def test_completed_with_nothing_is_empty(tmp_path: Path, output: Any) -> None:
    with ReplayServer([created(), done(output=output)]) as server:
        submission = only(solved(tmp_path, server, "valyu"))
    assert (submission.status, submission.cost_usd) == ("empty", 0.6)


# shapes


async def _at_once(make: Any) -> Any:
    return await make()


def _ask(task: Any) -> Ask:
    return Ask(task, 1, "token", lambda handle: None, _at_once)


def _provider(delivery: str, server: ReplayServer) -> Any:
    made: Any = make_system(server, "valyu", f"system.delivery={delivery}")
    return made.provider


#: Texts as addresses, but none that would be looked up.
LINK = JSON | st.sampled_from(["http://127.0.0.1:9/", "file:///x", "ftp://x/", "//x/y"])
FIELDS = ("deepresearch_id", "status", "mode", "output", "output_type", "cost", "cost_breakdown", "error", "tools")
SHAPED = st.fixed_dictionaries(
    {},
    optional={
        **dict.fromkeys(FIELDS, JSON),
        "sources": JSON
        | st.lists(JSON | st.fixed_dictionaries({"url": JSON, "title": JSON, "snippet": JSON}), max_size=2),
        "deliverables": JSON
        | st.lists(
            st.fixed_dictionaries({"request": JSON, "title": JSON, "url": LINK, "status": JSON}), max_size=2
        ),
    },
)


@given(
    body=st.dictionaries(st.text(max_size=8), JSON, max_size=3) | SHAPED,
    delivery=st.sampled_from(["fence", "schema", "file"]),
)
def test_whatever_comes_is_a_snapshot_and_an_answer_or_a_call_error(body: dict[str, Any], delivery: str) -> None:
    for known in (None, {"id": "t"}):
        try:
            assert isinstance(_snapshot(body, known), Snapshot)
        except CallError as error:
            assert error.kind == "malformed"
    if delivery not in _PROVIDERS:
        _PROVIDERS[delivery] = _provider(delivery, ReplayServer([]))
    found = asyncio.run(_PROVIDERS[delivery].answer(_ask(file_task()), Snapshot("completed", body)))
    assert all(isinstance(text, str) for text in found.files.values())


_PROVIDERS: dict[str, Any] = {}
