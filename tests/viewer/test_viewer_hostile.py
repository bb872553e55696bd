"""What systems, pages and judges wrote changes no page: with whatever text, its elements are the same."""

from __future__ import annotations

from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from hostile import HOSTILE, poison_run, poison_sheet
from viewer_helpers import Served, demo_runs, serving

#: Attributes whose values come from nobody but this package, and those that may hold a text.
_TEXTS = frozenset({"title", "aria-label", "value", "placeholder", "d"})


#: The elements of the pages of plain runs, found once.
_PLAIN: dict[Path, dict[str, list[tuple[str, tuple[str, ...]]]]] = {}


class Elements(HTMLParser):
    """The elements of a page with their attributes, but for texts in them."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.found: list[tuple[str, tuple[str, ...]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, tuple(name if name in _TEXTS else f"{name}={value}" for name, value in attrs)))

    def handle_comment(self, data: str) -> None:
        self.found.append(("comment", ()))


def elements(page: str) -> list[tuple[str, tuple[str, ...]]]:
    reader = Elements()
    reader.feed(page)
    return reader.found


def texts(value: Any) -> Iterator[str]:
    """The texts of JSON that a page shows; ids and names of units are sent back as they are."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from texts(item)
    elif isinstance(value, dict):
        for key, item in value.items():
            if key not in ("id", "unit"):
                yield from texts(item)


@pytest.fixture(scope="module")
def demos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return demo_runs(tmp_path_factory.mktemp("runs"))


def folder_of(demos: Path, where: Path, text: str) -> Path:
    for name in ("demo_draco", "demo_dag", "demo_wandr"):
        poison_run(demos / name, where / name, text)
    poison_run(demos / "demo_draco", where / "other", text)
    poison_sheet(where / "sheet.csv", text)
    return where


async def pages_of(served: Served) -> dict[str, str]:
    """Every page, with the ids of this folder taken out."""
    keys = {name: served.id_of(name) for name in ("demo_draco", "demo_dag", "demo_wandr", "other", "sheet.csv")}
    pair = f"first={keys['demo_draco']}&second={keys['other']}"
    paths = [
        "/",
        *(f"/run/{keys[name]}{part}" for name in list(keys)[:3] for part in ("", "/task/1", "/live")),
        f"/difference?{pair}",
        f"/difference?{pair}&task=1",
        f"/label/{keys['sheet.csv']}",
    ]
    found = {}
    for path in paths:
        reply = await served.get(path)
        assert reply.status == 200, reply.text
        found[_named(path, keys)] = _named(reply.text, keys)
    return found


def _named(text: str, keys: dict[str, str]) -> str:
    for name, key in keys.items():
        text = text.replace(key, name)
    return text


@pytest.fixture(scope="module")
def plain(demos: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return folder_of(demos, tmp_path_factory.mktemp("plain"), "plain text")


@pytest.mark.parametrize("number", range(len(HOSTILE)))
async def test_no_text_adds_an_element(demos: Path, plain: Path, tmp_path: Path, number: int) -> None:
    if plain not in _PLAIN:
        async with serving(plain) as served:
            _PLAIN[plain] = {path: elements(page) for path, page in (await pages_of(served)).items()}
    async with serving(folder_of(demos, tmp_path, HOSTILE[number])) as served:
        for path, page in (await pages_of(served)).items():
            assert elements(page) == _PLAIN[plain][path], path
            assert "\x00" not in page


@pytest.mark.parametrize("number", range(len(HOSTILE)))
async def test_data_is_json_whatever_is_in_it(demos: Path, tmp_path: Path, number: int) -> None:
    async with serving(folder_of(demos, tmp_path, HOSTILE[number])) as served:
        run = f"/api/run/{served.id_of('demo_wandr')}"
        for path in ("/api/runs", f"{run}/tasks", f"{run}/live", f"{run}/task/1/tree", f"{run}/task/1/units",
                     f"{run}/task/1/answer", f"{run}/task/1/unit?unit=record/lighthouses/0",
                     f"/api/sheet/{served.id_of('sheet.csv')}/0"):  # fmt: skip
            reply = await served.get(path)
            assert (reply.status, reply.headers["Content-Type"]) == (200, "application/json; charset=utf-8"), path
            assert reply.headers["X-Content-Type-Options"] == "nosniff"
            assert not set("".join(texts(reply.json))) & set("\u202e\u2066\u200b\u0000\ufeff"), path


@pytest.mark.parametrize(
    "content",
    [
        "",
        "{",
        "[]",
        "null",
        "7",
        '{"schema": 7}',
        '{"schema": "leadline/run/1"}',
        "\x00",
        "[" * 5000,
        '{"a": NaN}',
    ],
)
@pytest.mark.parametrize("name", ["run.json", "summary.json", "scores.jsonl", "tasks.jsonl", "judgements.jsonl"])
async def test_a_file_of_another_shape_is_named(demos: Path, tmp_path: Path, name: str, content: str) -> None:
    copy = tmp_path / "run"
    copy.mkdir()
    for path in (demos / "demo_draco").iterdir():
        (copy / path.name).write_bytes(path.read_bytes())
    (copy / name).write_text(content)
    async with serving(tmp_path) as served:
        key = served.id_of("run")
        assert (await served.get("/")).status == 200
        assert len((await served.get("/api/runs")).json) == 1
        for address in (f"/run/{key}", f"/run/{key}/task/1", f"/run/{key}/live", f"/api/run/{key}/tasks",
                     f"/api/run/{key}/live", f"/api/run/{key}/task/1/units"):  # fmt: skip
            assert (await served.get(address)).status in (200, 303, 404), address
