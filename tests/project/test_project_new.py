"""core.new: names, folders, what is filled in. That its packages work is in test_project_plugins.py."""

from __future__ import annotations

import ast
import json
import tomllib
from pathlib import Path

import pytest
from omegaconf import OmegaConf

from core.errors import InputError
from core.new import KINDS, main, write


@pytest.mark.parametrize("kind", KINDS)
def test_every_file_is_filled_in_and_can_be_read(kind: str, tmp_path: Path) -> None:
    written = write(kind, "deep_two", tmp_path / "new")
    assert {path for path in (tmp_path / "new").rglob("*") if path.is_file()} == set(written)
    readers = {
        ".py": ast.parse,
        ".toml": tomllib.loads,
        ".jsonl": lambda text: [json.loads(line) for line in text.splitlines()],
        ".yaml": OmegaConf.create,
    }
    for path in written:
        text = path.read_text(encoding="utf-8")
        for word in ("@NAME@", "@PACKAGE@", "@DISTRIBUTION@", "@KIND@", "@VARIABLE@"):
            assert word not in text, path
        readers.get(path.suffix, str)(text)  # type: ignore[operator] # readers of different kinds
    config = tmp_path / "new" / "src" / "leadline_deep_two" / "conf" / kind / "deep_two.yaml"
    assert OmegaConf.select(OmegaConf.load(config), "name") == "deep_two"
    project = tomllib.loads((tmp_path / "new" / "pyproject.toml").read_text())["project"]
    assert project["name"] == "leadline-deep-two"
    assert project["entry-points"]["leadline"] == {"deep_two": "leadline_deep_two.plugin"}


@pytest.mark.parametrize(
    "name",
    ["", "Toy", "9lives", "a-b", "a b", "a__b", "_a", "a_", "../up", "class", "naïve", "x" * 41],
    ids=lambda name: name[:12] or "empty",
)
def test_a_bad_name_is_refused_and_nothing_is_written(
    name: str, in_tmp: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["benchmark", name]) == 2
    assert "can't be the name of a benchmark" in capsys.readouterr().err
    assert list(in_tmp.iterdir()) == []


@pytest.mark.parametrize(("kind", "name"), [("benchmark", "draco"), ("system", "replay")])
def test_a_name_that_is_taken_is_refused(kind: str, name: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is there already"):
        write(kind, name, tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_an_existing_folder_is_refused_and_left_alone(in_tmp: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (in_tmp / "leadline-mine").mkdir()
    assert main(["system", "mine"]) == 2
    assert "leadline-mine: the folder exists" in capsys.readouterr().err
    assert list((in_tmp / "leadline-mine").iterdir()) == []


def test_a_folder_below_a_file_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("")
    assert main(["system", "mine", "--out", str(tmp_path / "file" / "new")]) == 2
    assert "can't be made" in capsys.readouterr().err


def test_it_says_what_it_wrote_and_what_comes_next(in_tmp: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["system", "mine", "--out", "somewhere"]) == 0
    said = capsys.readouterr().out
    assert "somewhere/pyproject.toml" in said
    assert "pip install -e 'somewhere[test]'" in said


def test_an_unknown_kind_is_refused(in_tmp: Path) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["judge", "mine"])
    assert ended.value.code == 2
