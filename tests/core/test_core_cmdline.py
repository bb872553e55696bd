"""The words of a command line reach the configuration as they were meant."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.cmdline import prepare
from core.compose import compose, expand
from core.config import RunConfig
from core.errors import InputError

DEMO = "experiment=demo_draco"


def value_of(word: str, *path: str) -> Any:
    tree: Any = compose(prepare([DEMO, word]))
    for key in path:
        tree = tree[key]
    return tree


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("/data/a=b.jsonl", "/data/a=b.jsonl"),
        ("/data/a#b.jsonl", "/data/a#b.jsonl"),
        ("~/x.jsonl", "~/x.jsonl"),
        ("a(1).jsonl", "a(1).jsonl"),
        ("naïve/größe.jsonl", "naïve/größe.jsonl"),
        ("日本.jsonl", "日本.jsonl"),
        ("two words.jsonl", "two words.jsonl"),
        ("a,b.jsonl", "a,b.jsonl"),
        ("123e4567", "123e4567"),
        ("007", "007"),
        ("'quoted, kept'", "quoted, kept"),
        ("it's.jsonl", "it's.jsonl"),
        ("back\\slash", "back\\slash"),
        ("ends\\", "ends\\"),
        ("true", "true"),
        ("a:b", "a:b"),
        ("null", None),
    ],
)
def test_a_text_value_arrives_unchanged(value: str, expected: str | None) -> None:
    assert value_of(f"system.path={value}", "system", "path") == expected


@given(st.text(alphabet=st.characters(codec="utf-8", exclude_characters="\n\r$"), min_size=1).map(str.strip))
def test_any_printable_text_arrives_unchanged(value: str) -> None:
    if not value or value[0] in "'\"[{" or value.lower() in ("null", "none") or not value.isprintable():
        return
    assert value_of(f"system.path={value}", "system", "path") == value


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("tasks=[123e4567,a*]", ["123e4567", "a*"]),
        ("tasks=a,b", ["a", "b"]),
        ("tasks=0c2c668a", ["0c2c668a"]),
        ("tasks=[1e5]", ["1e5"]),
        ("tasks=['a,b',c]", ["a,b", "c"]),
        ("tasks=[é(1)]", ["é(1)"]),
        ("tasks=null", None),
    ],
)
def test_task_words_are_text(word: str, expected: list[str] | None) -> None:
    assert value_of(word, "tasks") == expected


@pytest.mark.parametrize(
    ("word", "path", "expected"),
    [
        ("where.domain=Shopping/Product Comparison", ("where", "domain"), "Shopping/Product Comparison"),
        ("where.year=2024", ("where", "year"), "2024"),
        ("judge.params={a: 1, b: {c: x}}", ("judge", "params"), {"a": 1, "b": {"c": "x"}}),
        (
            "judge.price={input: 1, cached_input: 0.1, output: 4}",
            ("judge", "price"),
            {"input": 1, "cached_input": 0.1, "output": 4},
        ),
        ("judge.temperature=0.2", ("judge", "temperature"), 0.2),
        ("sample=3", ("sample",), 3),
        ("shard=2/8", ("shard",), "2/8"),
        ("budget.usd=1.5", ("budget", "usd"), 1.5),
    ],
)
def test_other_values(word: str, path: tuple[str, ...], expected: Any) -> None:
    assert value_of(word, *path) == expected


@pytest.mark.parametrize(
    ("words", "parts"),
    [
        (["benchmark=draco", "system=replay", "judge=[a,b]"], ["judge", "-m judge=a,b"]),
        (["system=[exa,parallel]"], ["system", "-m system=exa,parallel"]),
        (["nonsense"], ["'nonsense'", "key=value"]),
        ([DEMO, "effrt=low"], ["'effrt'", "did you mean 'effort'"]),
        ([DEMO, "judge.temprature=1"], ["judge.temprature", "'judge.temperature'"]),
        ([DEMO, "limt=3"], ["'limt'", "'limit'"]),
        (["benchmark=drako", "system=replay"], ["'drako'", "'draco'"]),
        (["benchmark=draco", "system=replai"], ["'replai'", "'replay'"]),
        (["benchmark=draco", "system=replay", "judge=offlin"], ["'offlin'", "'offline'"]),
        (["benchmark=draco", "system=replay", "judge=gpt,sonnet"], ["-m judge=gpt,sonnet"]),
        ([DEMO, "hydra/launcher=rq"], ["not installed", "hydra-rq-launcher"]),
        (["benchmrk=draco"], ["'benchmrk'", "'benchmark'"]),
        (["benchmark=draco"], ["system", "replay"]),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_refusals_name_the_word_and_what_was_meant(words: list[str], parts: list[str]) -> None:
    with pytest.raises(InputError) as refusal:
        compose(prepare(words))
    for part in parts:
        assert part in str(refusal.value)


@pytest.mark.parametrize(
    ("word", "part"),
    [
        ("limit=x", "limit"),
        ("sample=0", "sample"),
        ("attempts=-1", "attempts"),
        ("shard=9/8", "shard"),
        ("shard=8", "i/n"),
        ("fail_on=2.5", "fail_on"),
        ("fail_on=perhaps", "fail_on"),
        ("retry=always", "retry"),
        ("benchmark.coverage_floor=1.2", "coverage_floor"),
        ("system.on_failure=skip", "on_failure"),
        ("judge.max_in_flight=0", "max_in_flight"),
    ],
)
def test_faulty_values_are_refused_by_name(word: str, part: str) -> None:
    tree = compose(prepare([DEMO, word]))
    with pytest.raises(InputError, match=part):
        RunConfig.from_tree(tree)


def test_an_unknown_effort_is_refused_with_the_known_words() -> None:
    tree = compose(prepare(["benchmark=draco", "system=chat", "system.model=x", "effort=hihg"]))
    with pytest.raises(InputError, match=r"'hihg'.*'high'.*low, medium, high"):
        RunConfig.from_tree(tree)


def test_a_sweep_is_expanded_to_every_combination() -> None:
    words = prepare(["-m", "benchmark=draco", "system=replay,chat", "judge=gpt,sonnet", "tasks=[a,b]"])
    jobs = list(expand([word for word in words if not word.startswith("-")]))
    assert len(jobs) == 4
    assert {tuple(word for word in job if word.startswith(("system", "judge"))) for job in jobs} == {
        (f"system={system}", f"judge={judge}") for system in ("replay", "chat") for judge in ("gpt", "sonnet")
    }


@pytest.mark.parametrize(
    ("words", "same"),
    [
        (["out=elsewhere"], True),
        (["store=other.sqlite"], True),
        (["budget.usd=5"], True),
        (["retry=failed"], True),
        (["fail_on=never"], True),
        (["judge.max_in_flight=3"], True),
        (["system.max_in_flight=3"], True),
        (["judge.temperature=0.7"], False),
        (["judge.repeats=2"], False),
        (["limit=2"], False),
        (["attempts=2"], False),
        (["benchmark.strict=true"], False),
        (["shard=1/2"], False),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else None,
)
def test_what_makes_two_starts_the_same_run(words: list[str], same: bool) -> None:
    plain = RunConfig.from_tree(compose(prepare([DEMO])))
    changed = RunConfig.from_tree(compose(prepare([DEMO, *words])))
    assert (plain.digest() == changed.digest()) is same


def test_the_digest_without_the_shard() -> None:
    shards = [RunConfig.from_tree(compose(prepare([DEMO, f"shard={n}/2"]))) for n in (1, 2)]
    assert shards[0].digest() != shards[1].digest()
    assert shards[0].digest(without_shard=True) == shards[1].digest(without_shard=True)


@pytest.mark.parametrize(
    ("words", "share"),
    [([], 0.0), (["fail_on=any"], 0.0), (["fail_on=never"], None), (["fail_on=0.05"], 0.05)],
    ids=str,
)
def test_the_share_that_may_be_missing(words: list[str], share: float | None) -> None:
    assert RunConfig.from_tree(compose(prepare([DEMO, *words]))).missing_share() == share
