"""The tree's rules: what is refused, how it is said, and what comes out."""

from __future__ import annotations

import json
from typing import Any

import pytest
from wandr_helpers import key, node, root_of, sites, task_of

from core.errors import InputError
from plugins.wandr.model import Canonicalize, Deduplicate, Requirement, Validity
from plugins.wandr.tree import node_from, required_files, required_records, tree_of

URL = key("url")


def under(*keys: dict[str, Any], name: str = "t.s", **changes: Any) -> dict[str, Any]:
    """A root with city(2) → street(2) → url(1) and one subtask."""
    return node("t", key("city", 2), key("street", 2), URL, subtasks=[node(name, *keys, **changes)])


def alike(first: Any, second: Any) -> dict[str, Any]:
    """A key `city` with these norms in a root and in its subtask."""
    below = node("t.s", key("city", canonicalize=second), URL)
    return node("t", key("city", canonicalize=first), URL, subtasks=[below])


def closed(norm: str, members: Any) -> dict[str, Any]:
    return node("t", key("city", canonicalize={"norm": norm, "members": members}), URL)


NORM = "tree.keys[0].canonicalize"


@pytest.mark.parametrize(
    ("tree", "field", "says"),
    [
        # what the schema says
        pytest.param("t", "tree", 'got "t"', id="no object"),
        pytest.param(node("t", keys=...), "tree.keys", "missing", id="no keys"),
        pytest.param({"keys": [URL], "judge": {}}, "tree.name", "missing", id="no name"),
        pytest.param(node("t", judge=...), "tree.judge", "missing", id="no judge"),
        pytest.param(node("t", judge=[]), "tree.judge", "an object", id="judge is a list"),
        pytest.param(node("t", keys=[]), "tree.keys", "a list of keys", id="empty keys"),
        pytest.param(node("a b"), "tree.name", "letters, digits", id="name with a blank"),
        pytest.param(node("a..b"), "tree.name", "letters, digits", id="name with two dots"),
        pytest.param(node("t\n"), "tree.name", "letters, digits", id="name with a line end"),
        pytest.param(node("t", key("a/b"), URL), "tree.keys[0].name", "letters, digits", id="key with a slash"),
        pytest.param(node("t", key("a", 0), URL), "tree.keys[0].required", "at least 1", id="required 0"),
        pytest.param(node("t", key("a", -3), URL), "tree.keys[0].required", "at least 1", id="required below 0"),
        pytest.param(node("t", key("a", 1.5), URL), "tree.keys[0].required", "whole number", id="required 1.5"),
        pytest.param(
            node("t", key("a", "3"), URL), "tree.keys[0].required", "whole number", id="required is a text"
        ),
        pytest.param(
            node("t", key("a", True), URL), "tree.keys[0].required", "whole number", id="required is a bool"
        ),
        pytest.param(node("t", key("a", required=...), URL), "tree.keys[0].required", "missing", id="no required"),
        pytest.param(node("t", key("a", fields=[]), URL), "tree.keys[0].fields", "at least one", id="no field"),
        pytest.param(node("t", key("a", fields=...), URL), "tree.keys[0].fields", "missing", id="fields missing"),
        pytest.param(
            node("t", key("a", fields=["x", "x"]), URL), "tree.keys[0].fields", "none twice", id="field twice"
        ),
        pytest.param(
            node("t", key("a", fields=[" "]), URL), "tree.keys[0].fields[0]", "not blank", id="blank field"
        ),
        pytest.param(closed("soundex", None), f"{NORM}.norm", "exact_set", id="unknown norm"),
        pytest.param(closed("exact_set", [""]), f"{NORM}.members[0]", "not blank", id="blank member"),
        pytest.param(
            closed("alias_set", {"a": "b"}), f"{NORM}.members.a", "a list of aliases", id="aliases no list"
        ),
        pytest.param(
            node("t", judge={"requirements": [{"name": "x"}]}),
            "tree.judge.requirements[0].supported",
            "missing",
            id="requirement without supported",
        ),
        pytest.param(
            under(key("city"), key("site", 0), URL),
            "tree.subtasks[0].keys[1].required",
            "at least 1",
            id="in a subtask",
        ),
        pytest.param(node("t", text="half \ud800"), "tree", "half a character", id="lone surrogate"),
        # what it can't say
        pytest.param(node("t", key("city")), "tree.keys", "url is not the last key", id="no url"),
        pytest.param(node("t", URL, key("city")), "tree.keys", "url is not the last key", id="url first"),
        pytest.param(
            node("t", key("city"), key("city"), URL), "tree.keys[1].name", "stands twice", id="key twice"
        ),
        pytest.param(node("t", URL, URL), "tree.keys[1].name", "stands twice", id="url twice"),
        pytest.param(
            node("t", key("url", fields=["link"])), "tree.keys[0].fields", '["url"]', id="url of another field"
        ),
        pytest.param(
            node("t", key("url", fields=["url", "x"])), "tree.keys[0].fields", '["url"]', id="composite url"
        ),
        pytest.param(
            node("t", key("a", fields=["a", "url"]), URL),
            "tree.keys[0].fields",
            "fields of the item",
            id="url in another key",
        ),
        pytest.param(
            under(key("site"), URL),
            "tree.subtasks[0].keys[0].name",
            "one of city, street;",
            id="first key is no parent's",
        ),
        pytest.param(
            under(URL), "tree.subtasks[0].keys[0].name", "can't hang on the key url", id="first key is url"
        ),
        pytest.param(
            node("t", URL, subtasks=[node("t.s", key("city"), URL)]),
            "tree.subtasks[0].keys[0].name",
            "the parent has no key but url",
            id="a parent of addresses alone",
        ),
        pytest.param(
            under(key("city"), key("street"), URL),
            "tree.subtasks[0].keys[1].name",
            "does not have",
            id="second key is the parent's",
        ),
        pytest.param(
            under(key("city"), URL, name="s"), "tree.subtasks[0].name", "expected t.<name", id="short name"
        ),
        pytest.param(
            under(key("city"), URL, name="t.s.x"),
            "tree.subtasks[0].name",
            "expected t.<name",
            id="a name too deep",
        ),
        pytest.param(
            under(key("city"), URL, name="tt.s"), "tree.subtasks[0].name", "expected t.<name", id="another's name"
        ),
        pytest.param(
            node("t", subtasks=[node("t.s", key("city"), URL), node("t.s", key("city"), URL)]),
            "tree.subtasks[1].name",
            "other than that of tree.subtasks[0]",
            id="name twice",
        ),
        pytest.param(
            alike({"norm": "text"}, {"norm": "url"}),
            "tree.subtasks[0].keys[0].canonicalize",
            "the same canonicalize as at tree.keys[0]",
            id="another norm",
        ),
        pytest.param(
            alike({"norm": "text"}, None), "tree.subtasks[0].keys[0].canonicalize", "the same", id="no norm"
        ),
        pytest.param(
            alike({"norm": "text"}, {"norm": "text", "llm": True}),
            "tree.subtasks[0].keys[0].canonicalize",
            "the same",
            id="an llm",
        ),
        pytest.param(
            under(key("city", fields=["town"]), URL),
            "tree.subtasks[0].keys[0].fields",
            "the same fields",
            id="other fields",
        ),
        pytest.param(
            under(key("city", deduplicate={"llm": True}), URL),
            "tree.subtasks[0].keys[0].deduplicate",
            "the same deduplicate",
            id="other duplicates",
        ),
        pytest.param(
            node(
                "t",
                subtasks=[
                    node("t.a", key("city"), key("x"), URL),
                    node("t.b", key("city"), key("x", fields=["y"]), URL),
                ],
            ),
            "tree.subtasks[1].keys[1].fields",
            "as at tree.subtasks[0].keys[1]",
            id="siblings differ",
        ),
        pytest.param(
            closed("exact_set", None), f"{NORM}.members", "a list of members", id="exact set without members"
        ),
        pytest.param(closed("exact_set", []), f"{NORM}.members", "at least one", id="empty exact set"),
        pytest.param(
            closed("exact_set", {"a": []}), f"{NORM}.members", "a list of members", id="exact set as an object"
        ),
        pytest.param(
            closed("alias_set", ["a"]), f"{NORM}.members", "{member: [aliases]}", id="alias set as a list"
        ),
        pytest.param(closed("text", ["a"]), f"{NORM}.members", "no members", id="members of an open norm"),
        pytest.param(
            closed("exact_set", ["a b", "A-b"]), f"{NORM}.members", "both are 'a_b'", id="members that fold alike"
        ),
        pytest.param(
            closed("alias_set", {"a": ["x"], "b": ["X!"]}),
            f"{NORM}.members",
            "reads like the member 'a'",
            id="aliases that fold alike",
        ),
        pytest.param(
            closed("alias_set", {"日本": ["Japan"]}),
            f"{NORM}.members",
            "nothing is left",
            id="a member that folds to nothing",
        ),
        pytest.param(
            node("t", judge={"validity": [{"name": "a"}, {"name": "a"}]}),
            "tree.judge.validity[1].name",
            "stands twice",
            id="check twice",
        ),
    ],
)
def test_refused(tree: Any, field: str, says: str) -> None:
    with pytest.raises(InputError) as refused:
        node_from(tree, "tasks.jsonl, line 3")
    assert refused.value.where == f"tasks.jsonl, line 3, field {field}"
    assert says in str(refused.value)


def test_a_tree_without_end_is_refused() -> None:
    tree = node("t", URL)
    for _ in range(3000):
        tree = {**node("t", URL), "subtasks": [tree]}
    with pytest.raises(InputError, match="nested too deeply"):
        node_from(tree, "here")


@pytest.mark.parametrize(
    "tree",
    [
        pytest.param(node("t", URL), id="url alone"),
        pytest.param(
            node("t", key("a", fields=["x", "y"]), key("b", fields=["x", "z"]), URL), id="keys that share a field"
        ),
        pytest.param(node("t", key("a", fields=["other"]), URL), id="a field of another name"),
        pytest.param(node("a.b-c_d", URL), id="a root with dots"),
        pytest.param(under(key("street"), key("site"), URL), id="a subtask on the second key"),
        pytest.param(
            under(key("street"), key("site"), URL, subtasks=[node("t.s.x", key("site"), key("city"), URL)]),
            id="a grandparent's key",
        ),
        pytest.param(
            closed("alias_set", {"Japan": ["日本", "日本国"], "China": ["中国"]}), id="aliases in another script"
        ),
        pytest.param(node("t", key("a", 2.0), URL), id="a whole number written as 2.0"),
        pytest.param(node("t", text=None, subtasks=None, judge={"validity": None, "guidance": None}), id="nulls"),
        pytest.param(
            node("t", key("a", canonicalize=None, deduplicate=None, invalid_if=None), URL), id="nulls in a key"
        ),
    ],
)
def test_accepted(tree: Any) -> None:
    assert root_of(tree).name == tree["name"]


def test_what_comes_out() -> None:
    tree = node(
        "t",
        key(
            "firm_head",
            4,
            fields=["firm", "head"],
            canonicalize={"norm": "alias_set", "members": {"A": ["a1"], "B": []}, "llm": True, "guidance": "g"},
            deduplicate={"llm": True, "guidance": "d"},
            invalid_if="it is closed",
        ),
        key("kind", canonicalize={"norm": "exact_set", "members": ["x", "y"]}),
        key("url", 2),
        judge={
            "summary": "One record.",
            "guidance": None,
            "validity": [{"name": "firm", "description": "False unless real."}],
            "requirements": [{"name": "a", "satisfied": "S", "supported": "U"}, {"name": "b", "supported": "V"}],
            "other_fields": [{"name": "c", "type": "bool"}],
        },
    )
    root = root_of(tree)
    head, kind, url = root.keys
    assert head.canonicalize == Canonicalize("alias_set", {"A": ("a1",), "B": ()}, None, True, "g")
    assert (head.fields, head.deduplicate, head.invalid_if) == (
        ("firm", "head"),
        Deduplicate(True, "d"),
        "it is closed",
    )
    assert kind.canonicalize == Canonicalize("exact_set", {"x": (), "y": ()})
    assert (url.required, url.canonicalize, root.required_records) == (2, None, 8)
    assert root.judge.validity == (Validity("firm", "False unless real."),)
    assert root.judge.requirements == (Requirement("a", "U", "S"), Requirement("b", "V", None))
    assert (root.judge.summary, root.judge.guidance) == ("One record.", "")
    assert root.judge.other_fields == ({"name": "c", "type": "bool"},)


def test_the_whole_tree_counts() -> None:
    root = root_of(sites())
    assert [each.name for each in root.walk()] == ["trip", "trip.sites", "trip.sites.visits"]
    assert required_files(root) == (
        "results_trip.jsonl",
        "results_trip.sites.jsonl",
        "results_trip.sites.visits.jsonl",
    )
    assert required_records(root) == 3 * 2 + 2 + 2


def test_a_task_carries_its_tree() -> None:
    task = task_of(sites())
    read_back = task.model_validate_json(task.model_dump_json())
    assert tree_of(task) == tree_of(read_back) == root_of(sites())
    assert json.loads(json.dumps(task.payload)) == task.payload


def test_the_same_id_in_another_source_is_another_tree() -> None:
    first, second = task_of(node("a")), task_of(node("b"))
    assert first.id == second.id
    assert [tree_of(task).name for task in (first, second, first)] == ["a", "b", "a"]
