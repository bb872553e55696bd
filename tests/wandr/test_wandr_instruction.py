"""What a system is told: a task's own words to the letter, or ours; and how to deliver."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from wandr_helpers import given_tasks, key, needs_given, node, record, root_of, sites, submission

from plugins.wandr.fence_files import files_in
from plugins.wandr.instruction import (
    DELIVERIES,
    delivery_section,
    item_fields,
    output_schema,
    prompt_of,
    render,
    row_format,
)
from plugins.wandr.model import Node
from plugins.wandr.submission import parse
from plugins.wandr.tree import tree_of

URL = key("url")
ONE = root_of(node("t", text="Find {= city =} and {braces} at $1."))
TREE = root_of(sites())
COMPOSITE = root_of(
    node("t", key("head", 4, fields=["firm", "person"]), key("place", fields=["town"]), key("url", 2))
)


def levels(text: str) -> list[str]:
    return [line for line in text.splitlines() if re.match(r" *- (at least|each) ", line)]


@pytest.mark.parametrize("delivery", DELIVERIES)
@pytest.mark.parametrize("own", [None, "", " \n"], ids=["null", "empty", "blank"])
def test_a_task_without_an_instruction_gets_ours(delivery: Any, own: str | None) -> None:
    assert prompt_of(ONE, own, delivery) == render(ONE, delivery)


def test_a_tasks_own_instruction_is_shown_to_the_letter() -> None:
    own = "  Find {= city =}.\n\n```\nx\n```\n\n"
    assert prompt_of(ONE, own, "file") == own


@pytest.mark.parametrize("delivery", ["fence", "schema"])
def test_how_to_deliver_follows_where_the_channel_is_no_file(delivery: Any) -> None:
    prompt = prompt_of(ONE, "Find cities.\n", delivery)
    assert prompt == f"Find cities.\n\n{delivery_section(ONE, delivery)}"
    assert "replaces writing to disk" in prompt


@pytest.mark.parametrize(
    ("root", "expected"),
    [
        pytest.param(ONE, ["- at least 2 `city`", "  - at least 1 source `url` for each `city`"], id="one level"),
        pytest.param(
            COMPOSITE,
            [
                "- at least 4 `head` (given by `firm` and `person`)",
                "  - at least 1 `place` for each `head` (given by `town`)",
                "    - at least 2 source `url` for each `place`",
            ],
            id="composite and renamed",
        ),
        pytest.param(
            TREE,
            [
                "- at least 3 `country`",
                "  - at least 2 `city` for each `country`",
                "    - at least 1 source `url` for each `city`",
                "- each `city` of `trip`",
                "  - at least 2 `site` for each `city`",
                "    - at least 1 source `url` for each `site`",
                "- each `site` of `trip.sites`",
                "  - at least 2 `visit` for each `site`",
                "    - at least 1 source `url` for each `visit`",
            ],
            id="subtasks",
        ),
        pytest.param(root_of(node("t", URL)), ["- at least 1 source `url`"], id="url alone"),
    ],
)
def test_hierarchies_with_their_counts(root: Node, expected: list[str]) -> None:
    assert levels(render(root, "file")) == expected


@pytest.mark.parametrize("delivery", DELIVERIES)
def test_all_that_a_solver_needs_is_said(delivery: Any) -> None:
    text = render(TREE, delivery)
    for each in TREE.walk():
        assert each.text in text
        assert f"`{each.file}`" in text
        assert row_format(each) in text
    assert "belongs to `trip.sites`: give records for every `site`" in text
    for word in ("copied from that page's visible text", "least", "http(s)", "absent"):
        assert word in text


def test_a_task_of_one_node_speaks_of_no_parts() -> None:
    text = render(ONE, "file")
    assert "parts" not in text.split("## Rules")[0]
    assert "belongs to" not in text
    assert "Deliver this file" in text


def test_what_a_text_says_is_not_read_as_a_placeholder() -> None:
    assert "Find {= city =} and {braces} at $1." in render(ONE, "fence")


@pytest.mark.parametrize("root", [ONE, TREE, COMPOSITE], ids=["one", "tree", "composite"])
def test_the_row_format_is_a_row(root: Node) -> None:
    for each in root.walk():
        row = json.loads(row_format(each))
        assert tuple(row["item"]) == item_fields(each)
        assert list(row) == list(record())


def test_fields_that_keys_share_stand_once() -> None:
    root = root_of(node("t", key("a", fields=["x"]), key("b", fields=["x", "y"]), URL))
    assert item_fields(root) == ("x", "y")


def test_channels_differ_in_their_last_section_alone() -> None:
    texts = {delivery: render(TREE, delivery).split("## Delivery\n") for delivery in DELIVERIES}
    assert len({text[0] for text in texts.values()}) == 1
    assert len({text[1] for text in texts.values()}) == len(DELIVERIES)
    assert "```" not in "".join(texts["file"] + texts["schema"])


def test_the_fences_that_are_shown_are_those_that_are_read() -> None:
    files, notes = files_in(delivery_section(TREE, "fence"))
    assert (list(files), notes) == ([each.file for each in TREE.walk()], ())


def test_the_output_schema_takes_what_is_read() -> None:
    from jsonschema import Draft202012Validator

    schema = output_schema(ONE)
    Draft202012Validator.check_schema(schema)
    reply = {"files": [{"path": "results_t.jsonl", "content": json.dumps(record())}]}
    assert Draft202012Validator(schema).is_valid(reply)
    assert len(parse(ONE, submission(json.dumps(reply)), "schema").records) == 1
    others: list[Any] = [
        {"files": [{"path": "x.jsonl", "content": ""}]},
        {"files": [{"path": "results_t.jsonl"}]},
        {},
        [],
    ]
    assert not any(Draft202012Validator(schema).is_valid(other) for other in others)


@needs_given
def test_ours_can_be_made_of_every_given_tree() -> None:
    for task in given_tasks():
        root = tree_of(task)
        for delivery in DELIVERIES:
            text = render(root, delivery)
            # what stands in braces is the rows' JSON, the texts' own, or the fences' ellipsis
            ours = text
            for each in root.walk():
                ours = ours.replace(each.text.strip(), "").replace(row_format(each), "")
            assert not re.search(r"\{(?!\"files\"|\"path\"|…)", ours), task.id
            assert "None" not in ours
        assert len(levels(render(root, "file"))) >= sum(len(each.keys) for each in root.walk())
