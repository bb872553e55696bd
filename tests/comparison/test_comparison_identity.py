"""Which runs are of one system, and by which names systems of one name are told apart."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from comparison_helpers import SCORES, compare
from fakes.run_folders import write_run


def chat(**keys: Any) -> dict[str, Any]:
    return {"adapter": "chat", **keys}


EFFORTS = {"efforts": {"high": {"budget": 9, "timeout_s": 10}}}


@pytest.mark.parametrize(
    ("first", "second", "names"),
    [
        (chat(model="a/x"), chat(model="b/y"), ["s [a/x]", "s [b/y]"]),
        (chat(model="a/x"), chat(model="a/x", on_failure="missing", max_in_flight=3), ["s", "s"]),
        (chat(model="a/x"), chat(model="a/x", price={"input": 1.0}, timeout_s=9, about=None), ["s", "s"]),
        (chat(model="a/x"), chat(model="a/x", new_key=None), ["s", "s"]),
        (chat(model="a/x"), chat(model="a/x", api_key_env="OTHER", family="z", label="s"), ["s", "s"]),
        (chat(efforts={"high": {"budget": 1}}), chat(efforts={"high": {"budget": 1}, "low": {}}), ["s", "s"]),
    ],
    ids=[
        "model",
        "failures and pace",
        "price and deadline",
        "a key that is null",
        "label and key",
        "other efforts",
    ],
)
def test_systems_are_one_where_what_shapes_their_answers_is(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    first: Mapping[str, Any],
    second: Mapping[str, Any],
    names: list[str],
) -> None:
    folders = [
        write_run(tmp_path / name, SCORES, system="s", config={"system": section})
        for name, section in (("a", first), ("b", second))
    ]
    found = compare(capsys, folders)
    assert [run["system"] for run in found.json["runs"]] == names
    assert ("again" in found.codes) is (names[0] == names[1])


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (chat(target="agent:one"), chat(target="agent:two")),
        (chat(model="a/x", target="agent:one"), chat(model="a/x", target="agent:two")),
        (chat(), {"adapter": "python"}),
    ],
    ids=["target", "one model, two targets", "adapter"],
)
def test_without_a_model_that_tells_them_apart_a_digest_does(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], first: Mapping[str, Any], second: Mapping[str, Any]
) -> None:
    folders = [
        write_run(tmp_path / name, SCORES, system="s", effort="high", config={"system": {**section, **EFFORTS}})
        for name, section in (("a", first), ("b", second))
    ]
    found = compare(capsys, folders)
    one, other = (run["system"] for run in found.json["runs"])
    assert one != other
    assert all(name.startswith("s [") and name.endswith("] (high)") for name in (one, other)), (one, other)
    assert "told apart" in found.finding("systems")["text"]


def test_what_an_effort_sets_is_part_of_the_system(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folders = [
        write_run(
            tmp_path / str(budget),
            SCORES,
            system="s",
            effort="high",
            config={"system": chat(efforts={"high": {"budget": budget}})},
        )
        for budget in (1, 2)
    ]
    found = compare(capsys, folders)
    assert len({run["system"] for run in found.json["runs"]}) == 2
    assert "budget: 1 and 2" in found.finding("systems")["text"]


def test_two_models_under_two_judges_are_a_grid(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folders = [
        write_run(
            tmp_path / f"{model}{judge}",
            {task: [numbers[0] + by] for task, numbers in SCORES.items()},
            system="chat",
            judge=judge,
            config={"system": chat(model=model)},
        )
        for model, by in (("x", 0), ("y", 9))
        for judge in ("a", "b")
    ]
    found = compare(capsys, folders)
    assert "again" not in found.codes
    content = found.json
    assert [[rank["system"] for rank in order["ranks"]] for order in content["ranks"]["orders"]] == [
        ["chat [y]", "chat [x]"],
        ["chat [y]", "chat [x]"],
    ]
    assert content["judges"]["pairs"][0]["shift"]["n"] == 10
    assert content["variance"]["levels"]["system"] == 2
    assert "2 systems, 2 judges" in compare(capsys, folders, "--format", "md").out


@pytest.mark.parametrize(
    ("answers", "names"),
    [({}, ["s", "s"]), ({"t3": "another"}, ["digest", "digest"])],
    ids=["the same answers", "one differs"],
)
def test_a_replay_is_the_system_whose_answers_it_holds(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], answers: Mapping[str, str], names: list[str]
) -> None:
    live = write_run(tmp_path / "a", SCORES, system="s", judge="a", config={"system": chat(model="m")})
    replay = write_run(
        tmp_path / "b",
        SCORES,
        system="s",
        judge="b",
        answers=answers,
        config={"system": {"adapter": "replay", "path": "a/submissions.jsonl"}},
    )
    for folders in ([live, replay], [replay, live]):
        content = compare(capsys, folders).json
        assert ["digest" if "[" in run["system"] else run["system"] for run in content["runs"]] == names
        assert (content["judges"] is None) is (names[0] != "s")


def test_replays_that_state_their_models_are_what_they_state(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folders = [
        write_run(tmp_path / model, SCORES, system="s", config={"system": {"model": model}}) for model in "xy"
    ]
    assert [run["system"] for run in compare(capsys, folders).json["runs"]] == ["s [x]", "s [y]"]


def test_a_replay_whose_answers_cannot_be_read_is_a_system_of_its_own(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folders = [
        write_run(tmp_path / path, SCORES, system="s", judge=path, config={"system": {"path": path}})
        for path in ("a", "b")
    ]
    (folders[1] / "submissions.jsonl").unlink()
    found = compare(capsys, folders)
    assert found.code == 0
    assert len({run["system"] for run in found.json["runs"]}) == 2
