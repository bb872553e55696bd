"""The shipped configs of DRACO and its judges, composed as the command line composes them."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from core.compose import compose
from core.config import RunConfig
from core.errors import InputError
from core.plugin_manager import PluginManager
from core.resources import resolve
from plugins.draco import plugin

CONF = Path(__file__).parents[2] / "conf"
JUDGES = sorted(
    path.stem
    for path in (CONF / "judge").glob("*.yaml")
    if not path.stem.startswith("_") and path.stem != "ensemble"
)
PLAIN = ("benchmark=draco", "system=replay")
#: Judges of models that their providers have withdrawn or retire: a model map may drop them.
GONE = {"draco_paper", "claude-sonnet-4-5"}


def judge(name: str) -> dict[str, Any]:
    found: dict[str, Any] = compose([*PLAIN, f"judge={name}"])["judge"]
    return found


def test_the_benchmark_names_its_parts_its_data_and_its_repeats() -> None:
    found = compose(PLAIN)["benchmark"]
    assert (found["loader"], found["grader"], found["aggregator"]) == ("draco", "draco", "draco")
    assert (found["source"], found["revision"]) == ("hub", "ce076749809027649ebd331bcb70f42bf720d387")
    assert (found["repeats"], found["headline"]) == (5, "normalized")
    assert (found["coverage_floor"], found["strict"], found["fail_on"]) == (0.95, False, None)


def test_the_plugin_registers_what_the_benchmark_names() -> None:
    manager = PluginManager()
    manager.add(plugin, name="draco")
    assert [loaded.problem for loaded in manager.plugins] == [None]
    for kind in ("task loader", "grader", "aggregator"):
        assert manager.names(kind) == ["draco"]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        pytest.param(PLAIN, "draco", id="the benchmark's own"),
        pytest.param((*PLAIN, "judge=gpt-5.2"), "gpt-5.2", id="the command line over the benchmark"),
        pytest.param(("experiment=demo_draco",), "offline", id="the experiment over the benchmark"),
        pytest.param(("experiment=demo_draco", "judge=sonnet"), "sonnet", id="the command line over both"),
    ],
)
def test_which_judge_wins(words: tuple[str, ...], expected: str) -> None:
    assert compose(words)["judge"]["name"] == expected


@pytest.mark.parametrize(
    ("name", "model", "effort", "temperature"),
    [
        ("draco", "gemini/gemini-3.1-pro-preview", "low", 0.2),
        ("draco_paper", "gemini/gemini-3-pro-preview", "low", 0.2),
        ("gpt-5.2", "gpt-5.2", "none", 0),
        ("claude-sonnet-4-5", "claude-sonnet-4-5", None, 0),
        ("claude-sonnet-5-5", "claude-sonnet-5-5", "low", None),
        ("gpt-6.1-terra", "gpt-6.1-terra", "low", None),
        ("gemini-4-argon", "gemini/gemini-4-argon", "low", 0.2),
        ("gemini", "gemini/gemini-4-argon", "low", 0.2),
        ("gpt", "gpt-6.1-terra", "low", None),
        ("sonnet", "claude-sonnet-5-5", "low", None),
    ],
)
def test_settings_of_the_paper_and_of_its_successors(
    name: str, model: str, effort: str | None, temperature: float | None
) -> None:
    found = judge(name)
    assert (found["model"], found["effort"], found["temperature"]) == (model, effort, temperature)
    assert found["family"]
    assert found["api_key_env"].endswith("_API_KEY")


@pytest.mark.parametrize("name", JUDGES)
def test_every_judge_has_every_key_and_room_for_thinking(name: str) -> None:
    tree = compose([*PLAIN, f"judge={name}"])
    found = tree["judge"]
    assert found["name"] == name
    assert set(found) == set(judge("offline"))
    if found["provider"] in ("litellm", "openai_compatible"):
        assert found["max_output_tokens"] >= 16_384
    if found["model"] is not None:
        assert RunConfig.from_tree(tree).judge.model == found["model"]


def test_models_are_known_to_litellm() -> None:
    spec = find_spec("litellm")  # finds it without importing it
    if spec is None or spec.origin is None:
        pytest.skip("litellm is not installed")
    text = (Path(spec.origin).parent / "model_prices_and_context_window_backup.json").read_text(encoding="utf-8")
    known = json.loads(text)
    models = {name: judge(name)["model"] for name in JUDGES if name not in GONE}
    unknown = {name: model for name, model in models.items() if model is not None and model not in known}
    assert unknown == {}


@pytest.mark.parametrize("name", ["demo_draco"])
def test_the_demo_needs_nothing_but_the_package(name: str) -> None:
    tree = compose([f"experiment={name}"])
    assert tree["benchmark"]["source"] == "sample"
    assert tree["judge"]["api_key_env"] is None
    assert resolve(tree["system"]["path"]).is_file()
    assert RunConfig.from_tree(tree).benchmark.floor == 0.95


@pytest.mark.parametrize(
    "path",
    [
        "pkg://",
        "pkg://plugins.draco",
        "pkg:///sample/tasks.jsonl",
        "pkg://plugins.draco/sample/../../../pyproject.toml",
        "pkg://plugins.draco/sample/nothing.jsonl",
        "pkg://plugins.draco/sample",
        "pkg://no.such.package/file",
        "pkg://.relative/file",
    ],
)
def test_a_packaged_file_that_is_not_there_is_refused(path: str) -> None:
    with pytest.raises(InputError) as refused:
        resolve(path)
    assert path in str(refused.value)


def test_other_paths_are_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert resolve("~/a.jsonl") == tmp_path / "a.jsonl"
    assert resolve("runs/a.jsonl") == Path("runs/a.jsonl")
