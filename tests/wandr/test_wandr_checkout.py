"""Compiling a checkout: an invented miniature of the released repository, with all that can go wrong in a task."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from core.errors import InputError
from plugins.wandr import checkout
from plugins.wandr.checkout import Failed, compiled, task_names
from plugins.wandr.compile import main
from plugins.wandr.tasks import WandrTasks
from plugins.wandr.tree import tree_of

#: Stands for the released harness: the object names that a task's config.py uses.
CONFIG = """
from dataclasses import dataclass, field
from typing import Any


@dataclass
class KeySpec:
    name: str
    fields: list | None = None
    required: int = 1


@dataclass
class KeyConfig:
    norm: Any = None
    llm: bool = False
    prompt_section_template: str | None = None


CanonKeyConfig = DedupKeyConfig = JudgeKeyConfig = KeyConfig


@dataclass
class Component:
    keys: dict = field(default_factory=dict)
    prompt_section_template: str | None = None
    schema: Any = None


@dataclass
class EvalConfig:
    triage: Any = None
    canon: Any = None
    dedup: Any = None
    judge: Any = None


@dataclass
class TaskConfig:
    name: str
    key_hierarchy: list
    task_template: str
    extra_bindings: dict = field(default_factory=dict)
    eval: Any = None
    subtasks: list = field(default_factory=list)

    @property
    def bindings(self):
        return {**{key.name: key.required for key in self.key_hierarchy}, **self.extra_bindings}


def load_task_config(name, dir):
    raise AssertionError("config.py is run by itself")
"""
NORMS = """
def text_norm(value):
    return value.lower()


def url_norm(value):
    return value.lower()


def _closed(kind, content):
    def norm(value):
        return value

    norm._wandr_fingerprint = (kind, content)
    return norm


def exact_set(*members):
    return _closed("exact_set", members)


def alias_map_set(**members):
    return _closed("alias_map_set", tuple((name, tuple(aliases)) for name, aliases in members.items()))
"""
CITIES = """
from schemas.judgment import Judgment
from src.config import *
from src.norms import alias_map_set, exact_set, text_norm, url_norm
from taxonomy import KINDS, own_norm

print("what a task prints is no answer")
CONFIG = TaskConfig(
    name="cities",
    key_hierarchy=[
        KeySpec("city", required=3),
        KeySpec("kind", required=2),
        KeySpec("head", ["person", "party"], 1),
        KeySpec("code", required=1),
        KeySpec("url", required=2),
    ],
    task_template="Find {= city =}+ cities of {=place=} and {= nobody =}.",
    extra_bindings={"place": "Flanders"},
    eval=EvalConfig(
        triage=Component(),
        canon=Component(
            keys={
                "city": CanonKeyConfig(alias_map_set(ghent=["gent", "gand"], bruges=[]), llm=True),
                "kind": CanonKeyConfig(exact_set(*KINDS), prompt_section_template="One of {= kind =}."),
                "head": CanonKeyConfig(text_norm),
                "code": CanonKeyConfig(own_norm),
                "url": CanonKeyConfig(url_norm),
            }
        ),
        dedup=Component(keys={"head": DedupKeyConfig(llm=True, prompt_section_template="People.")}),
        judge=Component(
            keys={"city": JudgeKeyConfig(prompt_section_template="it is not in {= place =}")},
            prompt_section_template="Be strict about {= place =}.",
            schema=Judgment,
        ),
    ),
    subtasks=[
        TaskConfig(
            name="sights",
            key_hierarchy=[KeySpec("city", required=3), KeySpec("sight"), KeySpec("url")],
            task_template="For {= city =}+ cities, {= kind =}.",
            eval=EvalConfig(canon=Component(keys={
                "city": CanonKeyConfig(alias_map_set(ghent=["gent", "gand"], bruges=[]), llm=True),
                "url": CanonKeyConfig(url_norm),
            })),
        )
    ],
)
"""
JUDGMENT = '''
from pydantic import BaseModel, Field


class Base(BaseModel):
    """One record about a city."""

    reasoning: str = ""
    page_content_usable: bool = Field(description="usable")
    overall_valid: bool = Field(description="valid")
    requirements_all_satisfied: bool = Field(description="all")
    requirements_all_supported: bool = Field(description="all")
    verdict: bool = Field(description="verdict")
    confidence: int = Field(description="0 to 3")


class Judgment(Base):
    city_valid: bool = Field(description="False unless in {= place =}.")
    founding_satisfied: bool = Field(description="The page says when.")
    founding_supported: bool = Field(description="The excerpts say when.")
    source_supported: bool = Field(description="The excerpts say who.")
    is_official: bool = Field(description="An official page.")
'''
#: A task of the same module names, to be told apart from those of `cities`.
RIVERS = """
from src.config import *
from taxonomy import KINDS
from schemas.judgment import SUMMARY

CONFIG = TaskConfig(name="rivers", key_hierarchy=[KeySpec("river", required=len(KINDS)), KeySpec("url")], task_template=SUMMARY)
"""
SIMPLE = """
from src.config import *
CONFIG = TaskConfig(name="{name}", key_hierarchy=[KeySpec("a", required={required}), KeySpec("url")], task_template="Find a.")
"""


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A checkout with tasks that compile."""
    root = tmp_path / "checkout"
    harness = root / "adapters/wandr/src/wandr/origin/wandr_core/src"
    write(harness / "__init__.py", "")
    write(harness / "config.py", CONFIG)
    write(harness / "norms.py", NORMS)
    tasks = root / "reference/wandr_tasks"
    write(tasks / "cities/config.py", CITIES)
    write(tasks / "cities/schemas/judgment.py", JUDGMENT)  # a package without __init__.py
    write(
        tasks / "cities/taxonomy.py",
        "KINDS = ('Large-Town', 'law firm')\ndef own_norm(value):\n    return value\n",
    )
    write(tasks / "rivers/config.py", RIVERS)
    write(tasks / "rivers/schemas/__init__.py", "")
    write(tasks / "rivers/schemas/judgment.py", "SUMMARY = 'Find rivers.'\n")
    write(tasks / "rivers/taxonomy.py", "KINDS = ('a', 'b', 'c', 'd')\n")
    write(tasks / "big_lakes/config.py", SIMPLE.format(name="big_lakes", required=4))
    write(root / "datasets/wandr/big-lakes/instruction.md", "Find {= lake =} and all of them.\n")
    write(
        root / "datasets/wandr/big-lakes/task.toml",
        '[metadata]\ndifficulty = 0.5\ndifficulty-label = "low"\nverticals = ["tech"]\nn = 3\nwhen = 2026-01-01\n'
        "bad = nan\n[metadata.inner]\nx = 1\n[agent]\ntimeout = 5\n",
    )
    return root


def all_of(root: Path, **options: Any) -> dict[str, Any]:
    names = task_names(root)
    found = list(compiled(root, names, **options))
    assert [each.name if isinstance(each, Failed) else each["id"] for each in found] == names
    return dict(zip(names, found, strict=True))


def test_a_task_becomes_a_row(repository: Path) -> None:
    row = all_of(repository)["cities"]
    assert (row["id"], row["instruction"], row["labels"]) == ("cities", None, {})
    assert row["output_files"] == ["results_cities.jsonl", "results_cities.sights.jsonl"]
    tree = row["tree"]
    # bound where something is bound, and as it is written where nothing is
    assert tree["text"] == "Find 3+ cities of Flanders and {= nobody =}."
    assert tree["subtasks"][0]["text"] == "For 3+ cities, {= kind =}."
    assert [each["name"] for each in tree["subtasks"]] == ["cities.sights"]
    keys = {each["name"]: each for each in tree["keys"]}
    assert [(name, each["required"]) for name, each in keys.items()] == [
        ("city", 3), ("kind", 2), ("head", 1), ("code", 1), ("url", 2),
    ]  # fmt: skip
    assert (keys["head"]["fields"], keys["city"]["fields"]) == (["person", "party"], ["city"])
    assert keys["city"]["canonicalize"] == {
        "norm": "alias_set",
        "members": {"ghent": ["gent", "gand"], "bruges": []},
        "llm": True,
        "guidance": None,
    }
    assert keys["kind"]["canonicalize"]["members"] == ["Large-Town", "law firm"]
    assert keys["kind"]["canonicalize"]["guidance"] == "One of 2."
    assert keys["code"]["canonicalize"] == {"norm": "custom", "custom": "own_norm", "llm": False, "guidance": None}
    assert (keys["head"]["canonicalize"]["norm"], keys["url"]["canonicalize"]["norm"]) == ("text", "url")
    assert keys["head"]["deduplicate"] == {"llm": True, "guidance": "People."}
    assert keys["city"]["invalid_if"] == "it is not in Flanders"
    assert "invalid_if" not in keys["kind"]


def test_what_the_judge_is_told(repository: Path) -> None:
    assert all_of(repository)["cities"]["tree"]["judge"] == {
        "summary": "One record about a city.",
        "guidance": "Be strict about Flanders.",
        "validity": [{"name": "city", "description": "False unless in Flanders."}],
        "requirements": [
            {"name": "founding", "satisfied": "The page says when.", "supported": "The excerpts say when."},
            {"name": "source", "supported": "The excerpts say who."},
        ],
        "other_fields": [{"name": "is_official", "type": "<class 'bool'>", "description": "An official page."}],
    }


def test_modules_of_one_task_are_not_those_of_the_next(repository: Path) -> None:
    row = all_of(repository)["rivers"]
    assert (row["tree"]["text"], row["tree"]["keys"][0]["required"]) == ("Find rivers.", 4)


def test_the_released_text_and_labels_are_taken_as_they_are(repository: Path) -> None:
    row = all_of(repository)["big_lakes"]
    assert row["instruction"] == "Find {= lake =} and all of them.\n"
    assert row["labels"] == {"difficulty": 0.5, "difficulty-label": "low", "verticals": ["tech"], "n": 3}


BROKEN = {
    "raises": ("raise RuntimeError('no such\\nthing')", "RuntimeError: no such\nthing"),
    "exits": ("import sys; sys.exit(3)", "SystemExit: 3"),
    "lacks_config": ("x = 1", "AttributeError"),
    "imports": ("import a_package_that_is_not_there", "ModuleNotFoundError"),
    "syntax": ("def (", "SyntaxError"),
    "dies": ("import os; os._exit(7)", "ended with exit code 7"),
    "never_ends": ("import time\nwhile True: time.sleep(1)", "no answer within"),
    "breaks_a_rule": (SIMPLE.format(name="breaks_a_rule", required=0), "tree.keys[0].required"),
    "no_json": (SIMPLE.format(name="no_json", required="object()"), "TypeError"),
    "shouts": (SIMPLE.format(name="shouts", required=1) + "\nimport os\nos.write(1, b'{\"name\": \"z_last\", \"tree\": 1}\\n')", None),
}  # fmt: skip


def test_a_task_that_cannot_be_compiled_is_named_and_the_rest_go_on(repository: Path) -> None:
    for name, (text, _) in BROKEN.items():
        write(repository / "reference/wandr_tasks" / name / "config.py", text)
    write(repository / "reference/wandr_tasks/z_last/config.py", SIMPLE.format(name="z_last", required=2))
    found = all_of(repository, timeout_s=5)
    for name, (_, reason) in BROKEN.items():
        if reason is None:
            assert found[name]["id"] == name
        else:
            assert isinstance(found[name], Failed), name
            assert reason in found[name].reason
    assert {name for name, each in found.items() if not isinstance(each, Failed)} == {
        "big_lakes", "cities", "rivers", "shouts", "z_last",
    }  # fmt: skip
    assert found["z_last"]["tree"]["keys"][0]["required"] == 2


def test_the_child_has_no_keys_and_leaves_the_checkout_as_it_is(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret-secret-secret")
    write(
        repository / "reference/wandr_tasks/spy/config.py",
        "import os\n" + SIMPLE.format(name="spy", required=1) + "CONFIG.task_template = ' '.join(os.environ)",
    )
    before = sorted(repository.rglob("*"))
    row = all_of(repository)["spy"]
    assert "PATH" in row["tree"]["text"].split()
    assert "OPENAI_API_KEY" not in row["tree"]["text"]
    assert sorted(repository.rglob("*")) == before


@pytest.mark.parametrize(
    ("missing", "message"),
    [
        ("adapters/wandr/src/wandr/origin/wandr_core", "there is no folder adapters"),
        ("reference/wandr_tasks", "there is no folder reference"),
    ],
)
def test_a_folder_that_is_no_checkout_is_refused(tmp_path: Path, missing: str, message: str) -> None:
    for part in (checkout.HARNESS, checkout.TASKS):
        if str(part) != missing:
            (tmp_path / part).mkdir(parents=True)
    with pytest.raises(InputError, match=message):
        task_names(tmp_path)


def test_a_checkout_without_tasks_is_refused(tmp_path: Path) -> None:
    for part in (checkout.HARNESS, checkout.TASKS):
        (tmp_path / part).mkdir(parents=True)
    with pytest.raises(InputError, match="there is no task"):
        task_names(tmp_path)


# The command.


def test_nothing_is_run_without_a_yes(
    repository: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    witness = tmp_path / "it ran"
    write(repository / "reference/wandr_tasks/witness/config.py", f"open({str(witness)!r}, 'w')")
    assert main([str(repository), "--out", str(tmp_path / "tasks.jsonl")]) == 2
    said = capsys.readouterr().err
    assert "runs the Python code of 4 tasks" in said
    assert "--yes" in said
    assert not witness.exists()
    assert not (tmp_path / "tasks.jsonl").exists()


@pytest.mark.parametrize("name", ["tasks.jsonl", "tasks.jsonl.gz"])
def test_the_file_is_a_task_file(
    repository: Path, tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    write(repository / "reference/wandr_tasks/worse/config.py", "raise RuntimeError('\\x1b[31mred')")
    out = tmp_path / name
    # 501 tasks are expected, and one of these could not be compiled
    assert main([str(repository), "--out", str(out), "--yes"]) == 3
    said = capsys.readouterr()
    assert said.out == f"3 tasks in {out}\n"
    assert "not compiled: worse: RuntimeError:  [31mred" in said.err
    assert "has 501 tasks, this checkout 4" in said.err
    assert "1 tasks are not in it: worse" in said.err
    tasks = list(WandrTasks({"source": str(out)}).load())
    assert [task.id for task in tasks] == ["big_lakes", "cities", "rivers"]
    assert tree_of(tasks[1]).keys[0].required == 3
    first = out.read_bytes()
    assert main([str(repository), "--out", str(out), "--yes", "--force"]) == 3
    assert out.read_bytes() == first
    assert [path.name for path in tmp_path.iterdir() if path.name != "checkout"] == [name]


def test_all_that_are_expected(repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("plugins.wandr.compile.EXPECTED", 3)
    assert main([str(repository), "--out", str(tmp_path / "tasks.jsonl"), "--yes"]) == 0


@pytest.mark.parametrize(
    ("out", "message"),
    [
        ("tasks.parquet", ".jsonl or .jsonl.gz"),
        ("there.jsonl", "--force"),
        ("no/folder.jsonl", "can't be written"),
    ],
)
def test_a_file_that_cannot_be_written_is_refused(
    repository: Path, tmp_path: Path, out: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "there.jsonl").write_text("mine")
    assert main([str(repository), "--out", str(tmp_path / out), "--yes"]) == 2
    assert message in capsys.readouterr().err
    assert (tmp_path / "there.jsonl").read_text() == "mine"


def test_nothing_that_compiles_writes_nothing(
    repository: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("cities", "rivers", "big_lakes"):
        write(repository / "reference/wandr_tasks" / name / "config.py", "raise ValueError('x')")
    assert main([str(repository), "--out", str(tmp_path / "tasks.jsonl"), "--yes"]) == 2
    assert "no task could be compiled" in capsys.readouterr().err
    assert not (tmp_path / "tasks.jsonl").exists()


def test_the_command_by_its_name() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "plugins.wandr.compile", "--help"],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(__file__).parents[2],
    )
    assert "RUNS THE PYTHON CODE" in " ".join(done.stdout.split())
