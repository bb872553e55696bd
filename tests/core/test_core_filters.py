"""Which tasks a run is about: tasks → where → sample → limit → shard."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.config import Shard
from core.errors import InputError
from core.filters import select
from core.model import Task

TASKS = [
    Task(id=f"{letter}{number}", prompt="p", labels={"domain": letter, "tags": [letter, str(number)]}, index=place)
    for place, (letter, number) in enumerate((letter, number) for letter in "ab" for number in range(1, 4))
]


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ({}, "a1 a2 a3 b1 b2 b3"),
        ({"patterns": ["a*"]}, "a1 a2 a3"),
        ({"patterns": ["b2", "a1"]}, "a1 b2"),
        ({"patterns": ["?1"]}, "a1 b1"),
        ({"where": {"domain": "b"}}, "b1 b2 b3"),
        ({"where": {"tags": "2"}}, "a2 b2"),
        ({"where": {"domain": "b", "tags": "2"}}, "b2"),
        ({"limit": 2}, "a1 a2"),
        ({"limit": 99}, "a1 a2 a3 b1 b2 b3"),
        ({"sample": 99}, "a1 a2 a3 b1 b2 b3"),
        ({"shard": Shard(number=1, of=2)}, "a1 a3 b2"),
        ({"shard": Shard(number=2, of=2)}, "a2 b1 b3"),
        ({"shard": Shard(number=7, of=7)}, ""),
        ({"patterns": ["b*"], "limit": 2, "shard": Shard(number=2, of=2)}, "b2"),
    ],
    ids=str,
)
def test_the_chosen_tasks(filters: dict[str, Any], expected: str) -> None:
    assert [task.id for task in select(TASKS, **filters)] == expected.split()


@pytest.mark.parametrize(
    ("filters", "parts"),
    [
        ({"patterns": ["c*"]}, ["'c*'"]),
        ({"patterns": ["a1", "a11"]}, ["'a11'", "did you mean 'a1'"]),
        ({"where": {"domian": "a"}}, ["'domian'", "'domain'"]),
        ({"where": {"domain": "c"}}, ["domain='c'", "a, b"]),
    ],
    ids=str,
)
def test_what_matches_nothing_is_refused(filters: dict[str, Any], parts: list[str]) -> None:
    with pytest.raises(InputError) as refusal:
        select(TASKS, **filters)
    assert all(part in str(refusal.value) for part in parts)


@given(st.integers(1, 6), st.integers(0, 1000))
def test_a_sample_is_drawn_by_the_seed_in_the_order_of_the_source(size: int, seed: int) -> None:
    once = select(TASKS, sample=size, seed=seed)
    assert once == select(TASKS, sample=size, seed=seed)
    assert len(once) == size
    assert [task.index for task in once] == sorted(task.index for task in once)


@given(st.integers(1, 8))
def test_shards_are_disjoint_and_complete(count: int) -> None:
    parts = [select(TASKS, shard=Shard(number=number, of=count)) for number in range(1, count + 1)]
    assert sorted((task for part in parts for task in part), key=lambda task: task.index) == TASKS
