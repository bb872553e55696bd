"""system=parallel_findall against recorded exchanges and what can go wrong beside them, over real HTTP."""

from __future__ import annotations

import asyncio
import json
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

from adapters.parallel_findall import _snapshot
from core.errors import CallError, InputError
from core.jobs import Ask, Snapshot
from core.model import Submission
from core.testing import services, system

NAME = "parallel_findall"
RUNS = "/v1beta/findall/runs"
RUN = f"{RUNS}/findall_fake_1"
RESULT = f"{RUN}/result"
INGEST = "/v1beta/findall/ingest"


def created() -> Exchange:
    return recorded("parallel", "20_findall_create")


def run(word: str = "completed", reason: str | None = "candidates_exhausted", matched: Any = 3) -> Exchange:
    metrics = {"generated_candidates_count": 7, "matched_candidates_count": matched}
    status = {"status": word, "is_active": False, "termination_reason": reason, "metrics": metrics}
    return recorded("parallel", "21_findall_get").with_json(status=status)


def result() -> Exchange:
    return recorded("parallel", "22_findall_result")


def only(found: Any) -> Submission:
    """The submission, without the key anywhere in it."""
    assert found.submission is not None
    assert KEY not in found.submission.model_dump_json()
    submission: Submission = found.submission
    return submission


def test_the_recorded_scenario(tmp_path: Path) -> None:
    with ReplayServer(scenario("parallel", "findall")) as server:
        found = solved(tmp_path, server, NAME, plain_task(), "effort=medium", "system.match_limit=50")
    submission = only(found)
    assert (server.unexpected, server.left, found.job_left) == ([], 0, False)
    assert all(one.headers["parallel-beta"] == "findall-2025-09-15" for one in server.requests)
    assert all(one.headers["x-api-key"] == KEY for one in server.requests)
    body = server.requests[0].json
    assert len(body["metadata"].pop("token")) == 32
    assert body == {
        "objective": plain_task().prompt,
        "entity_type": "entities",
        "match_conditions": [{"name": "asked_for", "description": plain_task().prompt}],
        "generator": "core",
        "match_limit": 50,
        "metadata": {"task_id": "lga-001", "attempt": "1"},
    }
    assert submission.status == "completed"
    assert submission.text == (
        "1. Northmere Transmission <https://northmere.example.org/about>\n"
        "   Grid operator in Ashby Quay\n"
        "   lga_member: yes\n"
        "2. Calder Grid <https://caldergrid.example.com/company>\n"
        "   Grid operator in Wexley\n"
        "   lga_member: yes\n"
        "3. Solvane Networks <https://solvane.example.net/history>\n"
        "   Grid operator in Tarn Hollow\n"
        "   lga_member: yes\n"
    )
    typed = json.loads(submission.files["output.json"])["candidates"]
    assert [(one["name"], one["match_status"]) for one in typed] == [
        ("Northmere Transmission", "matched"),
        ("Calder Grid", "matched"),
        ("Solvane Networks", "matched"),
    ]
    assert typed[0]["basis"][0]["citations"][0]["url"] == "https://lga.example.org/members"
    cited = {one.url: one for one in submission.citations}
    assert list(cited) == [
        "https://northmere.example.org/about",
        "https://lga.example.org/members",
        "https://caldergrid.example.com/company",
        "https://solvane.example.net/history",
    ]
    members = cited["https://lga.example.org/members"]
    assert members.title == "Members - Lakeshore Grid Association"
    assert (members.excerpt or "").startswith("The association has three members")
    calder = cited["https://caldergrid.example.com/company"]
    assert submission.text[calder.start : calder.end].startswith("2. Calder Grid")
    assert submission.text[calder.start : calder.end].endswith("lga_member: yes")
    assert submission.cost_usd == pytest.approx(2.00 + 3 * 0.15)
    assert submission.cost_source == "computed"
    echoed = submission.settings["echoed"]
    assert (echoed["generator"], echoed["termination_reason"]) == ("core", "candidates_exhausted")
    assert echoed["metrics"] == {"generated_candidates_count": 7, "matched_candidates_count": 3}


@pytest.mark.parametrize(
    ("words", "generator", "limit", "estimate"),
    [
        (("effort=minimal",), "preview", 10, 0.10),
        (("effort=low",), "base", 100, 3.25),
        (("effort=medium",), "core", 100, 17.0),
        (("effort=high",), "pro", 100, 110.0),
        (("effort=low", "system.match_limit=1000"), "base", 1000, 30.25),
        (("effort=low", "system.estimate_usd=1"), "base", 100, 1.0),
    ],
)
def test_the_efforts(words: tuple[str, ...], generator: str, limit: int, estimate: float) -> None:
    made: Any = system(NAME, *words)(services())
    assert made.settings == {
        "generator": generator,
        "match_limit": limit,
        "entity_type": "entities",
        "ingest": False,
        "base_url": "https://api.parallel.ai",
    }
    assert (made.estimate_usd, made.can_block) == (pytest.approx(estimate), False)


@pytest.mark.parametrize(
    "word",
    [
        "system.match_limit=4",
        "system.match_limit=1001",
        "system.efforts.medium.generator=ultra",
        "system.ingest=maybe",
        "system.price={input: 1, output: 1}",
    ],
)
def test_values_that_cannot_be_used_are_refused(word: str) -> None:
    with pytest.raises(InputError, match=r"system\.(match_limit|generator|ingest|price)"):
        system(NAME, "effort=medium", word)(services())


# ingest


MADE = {
    "objective": "members",
    "entity_type": "companies",
    "match_conditions": [{"name": "member", "description": "is one", "more": 1}, 3, {"name": 4}],
    "enrichments": [],
}


def test_the_conditions_can_be_drawn_up_first(tmp_path: Path) -> None:
    exchanges = [answer("POST", INGEST, 200, MADE), created(), run(), result()]
    with ReplayServer(exchanges) as server:
        submission = only(solved(tmp_path, server, NAME, plain_task(), "system.ingest=true"))
    assert server.requests[0].json == {"objective": plain_task().prompt}
    body = server.requests[1].json
    assert (body["objective"], body["entity_type"]) == (plain_task().prompt, "companies")
    assert body["match_conditions"] == [{"name": "member", "description": "is one"}]
    assert submission.status == "completed"


@pytest.mark.parametrize(
    "odd",
    [
        answer("POST", INGEST, 200, {"match_conditions": []}),
        answer("POST", INGEST, 200, {**MADE, "entity_type": None}),
        hang_up("POST", INGEST),
        answer("POST", INGEST, 200, "<html>hello</html>"),
    ],
)
def test_a_first_step_that_fails_costs_nothing_and_starts_nothing(tmp_path: Path, odd: Exchange) -> None:
    with ReplayServer([], always=[odd]) as server:
        found = solved(tmp_path, server, NAME, plain_task(), "system.ingest=true", attempts=2)
    submission = only(found)
    assert submission.error is not None
    assert (submission.error.kind, submission.cost_usd, found.job_left) == ("server", 0.0, False)
    assert server.sent("POST", RUNS) == []


# creates


@pytest.mark.parametrize(
    ("status", "kind", "message"),
    [(401, "key", "invalid credentials"), (402, "quota", "insufficient credit in account")],
)
def test_a_wrong_key_and_an_empty_account_stop_the_run_at_once(
    tmp_path: Path, status: int, kind: str, message: str
) -> None:
    with ReplayServer([answer("POST", RUNS, status, {"type": "error", "error": {"message": message}})]) as server:
        found = solved(tmp_path, server, NAME)
    assert len(server.requests) == 1
    assert found.stopped is not None
    assert (found.stopped.kind, message in found.stopped.message) == (kind, True)


@pytest.mark.parametrize(
    ("status", "body", "headers"),
    [
        (429, {"error": {"message": "Too many requests"}}, {"retry-after": "1"}),
        (429, {"error": {"message": "Too many requests"}}, {}),
        (503, {"error": {"message": "unavailable"}}, {}),
        (502, "<html><body>502 Bad Gateway</body></html>", {}),
    ],
)
def test_a_create_that_was_not_taken_is_made_again(
    tmp_path: Path, status: int, body: Any, headers: dict[str, str]
) -> None:
    with ReplayServer([answer("POST", RUNS, status, body, headers), created(), run(), result()]) as server:
        submission = only(solved(tmp_path, server, NAME))
    assert (submission.status, len(server.sent("POST"))) == ("completed", 2)


@pytest.mark.parametrize(
    "exchange",
    [
        hang_up("POST", RUNS),
        answer("POST", RUNS, 200, "<html>hello</html>"),
        answer("POST", RUNS, 200, {"status": {}}),
    ],
)
def test_a_create_whose_answer_was_lost_may_have_been_billed(tmp_path: Path, exchange: Exchange) -> None:
    with ReplayServer([exchange]) as server:
        found = solved(tmp_path, server, NAME)
    submission = only(found)
    assert submission.error is not None
    assert (submission.error.kind, len(server.requests), found.job_left) == ("maybe_billed", 1, True)


# polls and ends


@pytest.mark.parametrize(
    "odd",
    [
        answer("GET", RUN, 404, {"error": {"message": "not found"}}),
        answer("GET", RUN, 502, "<html>502</html>"),
        answer("GET", RUN, 200, "<html>hello</html>"),
        answer("GET", RUN, 200, {"findall_id": "findall_fake_1", "status": "completed"}),
        answer("GET", RUN, 200, {"findall_id": "findall_fake_1", "status": {"status": "pondering"}}),
        answer("GET", RUN, 200, {"status": {"status": "action_required"}}),
        hang_up("GET", RUN),
        cut(answer("GET", RUN, 200, {"findall_id": "findall_fake_1", "status": {"status": "completed"}})),
    ],
)
def test_polls_that_make_no_sense_are_made_again(tmp_path: Path, odd: Exchange) -> None:
    late = answer("GET", RESULT, 404, {"error": {"message": "not yet"}})
    with ReplayServer([created(), odd, run(), late, run(), result()]) as server:
        submission = only(solved(tmp_path, server, NAME))
    assert (submission.status, server.left, server.unexpected) == ("completed", 0, [])


@pytest.mark.parametrize(
    ("last", "status", "usd", "note"),
    [
        ({"reason": "match_limit_met"}, "completed", 2.45, "match_limit_met: there may be more"),
        ({"reason": "low_match_rate"}, "completed", 2.45, "low_match_rate: there may be more"),
        ({"reason": "timeout"}, "incomplete", 2.45, None),
        ({"word": "failed", "reason": "error_occurred"}, "failed", None, None),
        ({"word": "cancelled", "reason": "user_cancelled"}, "failed", None, None),
        ({"word": "timed_out", "reason": None}, "timed_out", None, None),
        ({"matched": None}, "completed", 2.45, None),
        ({"matched": True}, "completed", 2.45, None),
    ],
)
def test_how_a_run_ends(
    tmp_path: Path, last: dict[str, Any], status: str, usd: float | None, note: str | None
) -> None:
    with ReplayServer([created(), run(**last), result()]) as server:
        submission = only(solved(tmp_path, server, NAME, plain_task(), "effort=medium"))
    assert (submission.status, server.left) == (status, 0)
    assert submission.cost_usd == (None if usd is None else pytest.approx(usd))
    assert submission.text is not None, "what was found is kept"
    notes = submission.settings["echoed"].get("notes", [])
    assert notes == [] if note is None else any(note in one for one in notes)
    if status == "incomplete":
        assert submission.error is not None
        assert submission.error.message.startswith("parallel_findall: ended by ")


def test_a_failed_run_need_not_have_a_result(tmp_path: Path) -> None:
    gone = answer("GET", RESULT, 404, {"error": {"message": "no result"}})
    with ReplayServer([created(), run("failed", "error_occurred"), gone]) as server:
        submission = only(solved(tmp_path, server, NAME))
    assert submission.error is not None
    assert (submission.status, submission.error.message) == (
        "failed",
        "parallel_findall: ended by error_occurred; job findall_fake_1; retry=failed sends it again",
    )


@pytest.mark.parametrize(
    ("word", "matched", "usd"), [("completed", 3, 2.45), ("completed", 0, 2.0), ("failed", 3, 0.0)]
)
def test_a_list_that_an_empty_account_cut_short_is_no_score(
    tmp_path: Path, word: str, matched: int, usd: float
) -> None:
    with ReplayServer([created(), run(word, "insufficient_funds", matched)], always=[result()]) as server:
        found = solved(tmp_path, server, NAME, plain_task(), "effort=medium")
    assert found.submission is None
    assert found.stopped is not None
    assert (found.stopped.kind, found.job_left) == ("quota", False)
    assert [kind for kind, _ in found.calls] == ["quota"]
    assert found.calls[0][1] == pytest.approx(usd), "what it found is owed"


def test_a_result_that_never_comes_is_no_word_on_the_run(tmp_path: Path) -> None:
    gone = answer("GET", RESULT, 404, {"error": {"message": "no result"}})
    with ReplayServer([created()], always=[run(), gone]) as server:
        found = solved(tmp_path, server, NAME)
    submission = only(found)
    assert submission.error is not None
    assert (submission.status, submission.error.kind) == ("error", "unreachable")
    assert "completed and its result is not there" in submission.error.message
    assert found.job_left, "the next start asks again"


def test_only_plain_values_are_echoed(tmp_path: Path) -> None:
    deep: Any = 3
    for _ in range(250):
        deep = {"a": deep}
    status = {"status": "completed", "termination_reason": deep, "metrics": {"a": deep, "generated": 7}}
    odd = recorded("parallel", "21_findall_get").with_json(status=status, generator=deep)
    with ReplayServer([created(), odd, result()]) as server:
        submission = only(solved(tmp_path, server, NAME))
    echoed = submission.settings["echoed"]
    assert (submission.status, echoed["termination_reason"], echoed["metrics"]) == (
        "completed",
        None,
        {"generated": 7},
    )
    assert "generator" not in echoed


@pytest.mark.parametrize(
    ("cancel", "last", "status"),
    [
        (answer("POST", f"{RUN}/cancel", 200, ""), {"word": "cancelled"}, "timed_out"),
        (answer("POST", f"{RUN}/cancel", 400, {"error": {"message": "not active"}}), {}, "completed"),
    ],
)
def test_the_deadline_cancels_and_then_looks_once_more(
    tmp_path: Path, cancel: Exchange, last: dict[str, Any], status: str
) -> None:
    words = ("effort=medium", "system.efforts.medium.timeout_s=0.2")
    with ReplayServer([created(), cancel, run(**last), result()], always=[run("running", None)]) as server:
        submission = only(solved(tmp_path, server, NAME, plain_task(), *words))
    assert (submission.status, server.left, server.unexpected) == (status, 0, [])


@pytest.mark.parametrize("candidates", [[], None, "x", [3], [{"name": "A", "match_status": "unmatched"}]])
def test_nothing_that_matches_is_empty(tmp_path: Path, candidates: Any) -> None:
    with ReplayServer([created(), run(matched=0), result().with_json(candidates=candidates)]) as server:
        submission = only(solved(tmp_path, server, NAME, plain_task(), "effort=medium"))
    assert (submission.status, submission.cost_usd, submission.files) == ("empty", 2.0, {})


def test_only_matches_are_listed_and_every_candidate_is_kept(tmp_path: Path) -> None:
    candidates = [
        {
            "name": "A\nB",
            "url": "https://a.example.org/",
            "match_status": "matched",
            "output": {"x": {"value": [1]}},
        },
        {"name": "C", "match_status": "unmatched", "hidden": 1},
        {"match_status": "matched", "output": {"y": None, "z": "w"}},
        {"name": "D", "match_status": "generated"},
        {"name": "E", "match_status": "discarded"},
    ]
    with ReplayServer([created(), run(), result().with_json(candidates=candidates)]) as server:
        submission = only(solved(tmp_path, server, NAME))
    assert submission.text == "1. A B <https://a.example.org/>\n   x: [1]\n2. (no name)\n   y: \n   z: w\n"
    kept = json.loads(submission.files["output.json"])["candidates"]
    assert [one.get("match_status") for one in kept] == [
        "matched",
        "unmatched",
        "matched",
        "generated",
        "discarded",
    ]
    assert kept[1] == {"name": "C", "match_status": "unmatched"}


def test_files_that_a_task_prescribes_are_not_what_it_gives(tmp_path: Path) -> None:
    with ReplayServer([created(), run(), result()]) as server:
        submission = only(solved(tmp_path, server, NAME, file_task("members.csv")))
    assert submission.status == "empty"
    assert submission.error is not None
    assert submission.error.message == "parallel_findall: not delivered: members.csv; job findall_fake_1"
    with ReplayServer([created(), run(), result()]) as server:
        submission = only(solved(tmp_path / "b", server, NAME, file_task("output.json")))
    assert submission.status == "completed"


# shapes


async def _at_once(make: Any) -> Any:
    return await make()


STATUS = st.fixed_dictionaries({}, optional=dict.fromkeys(("status", "termination_reason", "metrics"), JSON))
CANDIDATE = st.fixed_dictionaries(
    {"match_status": st.just("matched")},
    optional={
        **dict.fromkeys(("name", "url", "description", "output"), JSON),
        "basis": JSON
        | st.lists(st.fixed_dictionaries({"citations": JSON | st.lists(JSON, max_size=2)}), max_size=2),
    },
)
SHAPED = st.fixed_dictionaries({}, optional={"findall_id": JSON, "status": JSON | STATUS})


@given(
    body=st.dictionaries(st.text(max_size=8), JSON, max_size=3) | SHAPED,
    candidates=JSON | st.lists(JSON | CANDIDATE, max_size=3),
)
def test_whatever_comes_is_a_snapshot_and_an_answer_or_a_call_error(body: dict[str, Any], candidates: Any) -> None:
    for known in (None, {"id": "t"}):
        try:
            assert isinstance(_snapshot(body, known), Snapshot)
        except CallError as error:
            assert error.kind == "malformed"
    if not _PROVIDERS:
        made: Any = make_system(ReplayServer([]), NAME)
        _PROVIDERS.append(made.provider)
    ask = Ask(plain_task(), 1, "token", lambda handle: None, _at_once)
    found = asyncio.run(_PROVIDERS[0].answer(ask, Snapshot("completed", {"run": body, "candidates": candidates})))
    text = found.text or ""
    assert all(0 <= one.start < one.end <= len(text) for one in found.citations)


_PROVIDERS: list[Any] = []
