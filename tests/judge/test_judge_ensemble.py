"""judge=ensemble: what a vote makes of several answers, what is kept, what is asked and paid."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from fakes.judging import question
from fakes.model_server import Behaviour, ModelServer, error
from fakes.runs import draco_row, run, write_rows

from core.compose import compose
from core.config import RunConfig
from core.errors import InputError
from core.judge.question import Probe
from core.judge.votes import is_split, voted

SCHEMA = {
    "type": "object",
    "properties": {
        "explanation": {"type": "string"},
        "verdict": {"type": "string", "enum": ["YES", "NO"]},
        "ok": {"type": "boolean"},
        "confidence": {"type": "integer"},
        "groups": {"type": "array"},
    },
}
ASKED = question(schema=SCHEMA, probes=(Probe("verdict", yes="YES", no="NO"),))


@pytest.mark.parametrize(
    ("field", "given", "majority", "veto"),
    [
        ("verdict", ["YES", "YES", "NO"], "YES", "NO"),
        ("verdict", ["NO", "NO", "YES"], "NO", "NO"),
        ("verdict", ["YES", "YES", "YES"], "YES", "YES"),
        ("verdict", ["YES", "NO"], None, "NO"),
        ("verdict", ["NO", "YES"], None, "NO"),
        ("ok", [True, True, False], True, False),
        ("ok", [False, False, True], False, False),
        ("confidence", [3, 1, 2], 2, 1),
        ("confidence", [3, 1], 1, 1),
        ("groups", [[["a", "b"]], [["a"]], [["a", "b"]]], [["a", "b"]], [["a", "b"]]),
        ("groups", [[["a", "b"]], [["a"]], [["b"]]], None, None),
    ],
)
def test_a_vote(field: str, given: list[Any], majority: Any, veto: Any) -> None:
    values = {f"m{number}": {field: value} for number, value in enumerate(given)}
    for vote, outcome in (("majority", majority), ("veto", veto)):
        found = voted(ASKED, values, vote).value  # type: ignore[arg-type]  # both are votes
        assert found == (None if outcome is None else {field: outcome})
    assert is_split(ASKED, values) is (len({json.dumps(value) for value in given}) > 1)


def test_the_words_are_those_of_the_first_member_that_agrees_with_the_outcome() -> None:
    values = {
        "a": {"explanation": "No, because.", "verdict": "NO"},
        "b": {"explanation": "Yes, because.", "verdict": "YES"},
        "c": {"explanation": "Also yes.", "verdict": "YES"},
    }
    assert voted(ASKED, values, "majority").value == {"explanation": "Yes, because.", "verdict": "YES"}
    assert voted(ASKED, values, "veto").value == {"explanation": "No, because.", "verdict": "NO"}


CHECKS = ("one", "two", "three")
RULED = question(
    schema={"type": "object", "properties": {name: {"type": "boolean"} for name in CHECKS}},
    decides=lambda answer: all(answer[name] for name in CHECKS),
)


def failing(*names: str) -> dict[str, bool]:
    return {name: name not in names for name in CHECKS}


@pytest.mark.parametrize(
    ("given", "majority", "veto"),
    [
        ([failing("one"), failing("two"), failing("three")], failing("one"), failing("one")),
        ([failing(), failing("two"), failing()], failing(), failing("two")),
        ([failing(), failing(), failing()], failing(), failing()),
        ([failing("one"), failing()], None, failing("one")),
    ],
    ids=["each fails another check", "two of three hold", "all hold", "a tie"],
)
def test_a_vote_is_over_what_an_answer_comes_to(given: list[Any], majority: Any, veto: Any) -> None:
    values = {f"m{number}": value for number, value in enumerate(given)}
    assert voted(RULED, values, "majority").value == majority
    assert voted(RULED, values, "veto").value == veto


SEVERAL = question(
    schema={"type": "object", "properties": {"verdicts": {"type": "object"}}},
    exact=("verdicts",),
    probes=tuple(Probe(f"verdicts.{name}.verdict", yes="MET", no="UNMET") for name in ("c1", "c2", "c3")),
)


def entries(*met: bool) -> dict[str, Any]:
    words = {
        f"c{n + 1}": {"explanation": f"words {yes} {n}", "verdict": "MET" if yes else "UNMET"}
        for n, yes in enumerate(met)
    }
    return {"verdicts": words}


@pytest.mark.parametrize(
    ("given", "vote", "met", "tied"),
    [
        (
            [(True, True, False), (True, False, False), (False, True, False)],
            "majority",
            {"c1": True, "c2": True, "c3": False},
            (),
        ),
        ([(True, True, False), (True, False, False)], "majority", {"c1": True, "c3": False}, ("c2",)),
        ([(True, True, False), (True, False, False)], "veto", {"c1": True, "c2": False, "c3": False}, ()),
    ],
)
def test_checkpoints_of_one_answer_are_voted_on_one_by_one(
    given: Any, vote: Any, met: dict[str, bool], tied: tuple[str, ...]
) -> None:
    found = voted(SEVERAL, {f"m{n}": entries(*flags) for n, flags in enumerate(given)}, vote)
    assert found.value is not None
    verdicts = found.value["verdicts"]
    assert {name: entry["verdict"] == "MET" for name, entry in verdicts.items()} == met
    assert all(entry["explanation"].startswith(f"words {met[name]}") for name, entry in verdicts.items())
    assert found.tied == tied


def always(met: bool) -> Behaviour:
    return Behaviour(
        text=json.dumps({"explanation": "Because.", "verdict": "MET" if met else "UNMET", "met": met})
    )


CRITERIA = [("c1", 5, "States fact one."), ("c2", -5, "States fact two.")]


@pytest.fixture
def files(tmp_path: Path) -> Path:
    write_rows(tmp_path / "tasks.jsonl", [draco_row("a", CRITERIA)])
    write_rows(tmp_path / "reports.jsonl", [{"task_id": "a", "text": "A report."}])
    return tmp_path


def words(files: Path, *more: str) -> list[str]:
    return [
        "benchmark=draco", f"benchmark.source={files / 'tasks.jsonl'}",
        "system=replay", f"system.path={files / 'reports.jsonl'}", *more,
    ]  # fmt: skip


def member(name: str, server: ModelServer) -> str:
    price = "{input: 1, cached_input: null, output: 1}"
    return (
        f"{{judge: openai_compatible, name: {name}, model: {name}, base_url: '{server.base_url}', price: {price}}}"
    )


@pytest.mark.parametrize(
    ("vote", "met", "score", "rows"),
    [
        ("majority", (True, True, False), 0.0, 4),
        ("majority", (True, False, False), 0.0, 4),
        ("veto", (True, True, False), 0.0, 4),
        ("mean", (True, False, False), 0.0, 12),
    ],
)
def test_a_run_with_three_members(files: Path, vote: str, met: tuple[bool, ...], score: float, rows: int) -> None:
    with (
        ModelServer([always(met[0])]) as a,
        ModelServer([always(met[1])]) as b,
        ModelServer([always(met[2])]) as c,
    ):
        members = ", ".join(member(name, server) for name, server in (("a", a), ("b", b), ("c", c)))
        done = run(
            files / "run", *words(files, "judge=ensemble", f"judge.members=[{members}]", f"judge.vote={vote}", "judge.repeats=2")
        )  # fmt: skip
        assert done.code == 0
        assert [server.requests for server in (a, b, c)] == [4, 4, 4]
        # a member alone has been asked already
        alone = run(files / "alone", *words(files, *_alone("b", b), "judge.repeats=2"))
        assert alone.code == 0
        assert b.requests == 4
    written = done.rows("judgements.jsonl")
    assert len(written) == rows
    expected = {"majority": sum(met) > 1, "veto": all(met)}
    if vote == "mean":
        by_judge = {row["judge"]: row["verdict"]["met"] for row in written}
        assert by_judge == dict(zip("abc", met, strict=True)), "every member's verdict is a row"
        assert done.summary["n_expected"] == 12
    else:
        assert {row["verdict"]["met"] for row in written} == {expected[vote]}
        said = json.loads(written[0]["raw"])["members"]
        assert {name: entry["value"]["verdict"] for name, entry in said.items()} == {
            name: "MET" if yes else "UNMET" for name, yes in zip("abc", met, strict=True)
        }
        assert written[0]["judge"] == "ensemble"
        assert written[0]["cost_usd"] == pytest.approx(3 * 1540 / 1e6), "all members are paid"


def _alone(name: str, server: ModelServer) -> list[str]:
    return [
        "judge=openai_compatible", f"judge.name={name}", f"judge.model={name}", f"judge.base_url={server.base_url}",
        "judge.price={input: 1, output: 1}",
    ]  # fmt: skip


@pytest.mark.parametrize(("down", "graded", "code"), [(1, 2, 0), (2, 0, 3)])
def test_more_than_half_must_answer(files: Path, down: int, graded: int, code: int) -> None:
    scripts = [[error(500)]] * down + [[always(True)]] * (3 - down)
    with ModelServer(scripts[0]) as a, ModelServer(scripts[1]) as b, ModelServer(scripts[2]) as c:
        members = ", ".join(member(name, server) for name, server in (("a", a), ("b", b), ("c", c)))
        more = [
            "judge.members=["
            + members.replace("judge: openai", "retry: {attempts: 1, max_wait_s: 0}, judge: openai")
            + "]"
        ]
        done = run(files / "run", *words(files, "judge=ensemble", *more, "judge.repeats=1"))
    assert (done.code, done.summary["n_graded"]) == (code, graded)
    row = done.rows("judgements.jsonl")[0]
    if graded:
        assert json.loads(row["raw"])["members"]["a"]["error"]["kind"] == "server"
    else:
        assert row["error"]["kind"] == "server"
        assert "1 of 3 members answered" in row["error"]["message"]


@pytest.mark.parametrize(
    ("members", "said"),
    [
        ("null", "two members or more"),
        ("[offline]", "two members or more"),
        ("[offline,offline]", "named twice"),
        ("[offline,ensemble]", "ensemble can't be a member"),
        ("[offline,recorded]", "recorded can't be a member"),
        ("[offline,nobody]", "nobody"),
        ("[offline,{judge: gpt, modle: x}]", "unknown key 'modle'"),
        ("[offline,3]", "not a judge"),
    ],
)
def test_members_are_checked_before_anything_is_sent(members: str, said: str) -> None:
    with pytest.raises(InputError) as caught:
        compose(["benchmark=draco", "system=replay", "judge=ensemble", f"judge.members={members}"])
    assert said in str(caught.value)


def test_a_member_is_part_of_the_runs_identity_but_its_pace_is_not() -> None:
    def digest(entry: str) -> str:
        words = ["benchmark=draco", "system=replay", "judge=ensemble", f"judge.members=[offline,{entry}]"]
        return RunConfig.from_tree(compose(words)).digest()

    plain = digest("{judge: gpt}")
    assert digest("{judge: gpt, max_in_flight: 2}") == plain
    assert digest("{judge: gpt, effort: high}") != plain
