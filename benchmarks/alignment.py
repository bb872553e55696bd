"""What reading a page and finding excerpts in it costs, against rapidfuzz's own search for the nearest passage.

    python benchmarks/alignment.py [--chars 300000] [--excerpts 20] [--repeats 5]

Pages and excerpts are invented. The baseline is `rapidfuzz.fuzz.partial_ratio_alignment` with a cutoff of 90,
which gives a likeness and neither says what differs nor lets a changed number fail. Times are the best of the
repeats, with the page folded before. Nothing is asserted: machines differ.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from rapidfuzz import fuzz  # noqa: E402  # runs from a checkout without being installed

from core.pages.align import Alignment, locate, passes  # noqa: E402
from core.pages.extract import extract  # noqa: E402
from core.pages.fold_text import Squeezed, fold  # noqa: E402
from core.pages.windows import judge_view  # noqa: E402

LETTERS = "eeeeaaaaiiioootttnnnssshhrrddllucmfwygpbvk"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--chars", type=int, default=300_000)
    parser.add_argument("--excerpts", type=int, default=20)
    parser.add_argument("--repeats", type=int, default=5)
    arguments = parser.parse_args()
    rng = random.Random(1)
    told = sentences(rng, arguments.chars)
    page = "\n".join(told)
    measure = Measure(arguments.repeats)

    print(f"page of {len(page):,} characters, {arguments.excerpts} excerpts of ≤ 300 characters\n")
    print(f"{'':<44} {'ms':>9}")
    measure("fold the page", partial(fold, page))
    measure("squeeze the folded page", partial(Squeezed, fold(page).text))
    kinds: dict[str, Callable[[], str]] = {
        "word for word": lambda: quoted(rng, told),
        "other typography": lambda: (
            quoted(rng, told).replace("’", "'").replace(" – ", "-").replace(", ", ",\u00a0")
        ),
        "a letter changed": lambda: with_typo(rng, quoted(rng, told)),
        "a number changed": lambda: with_number(rng, quoted(rng, told)),
        "not on the page": lambda: quoted(rng, sentences(rng, 2_000)),
    }
    for kind, make in kinds.items():
        excerpts = [make() for _ in range(arguments.excerpts)]
        measure(f"{arguments.excerpts} excerpts, {kind}", partial(located, excerpts, page))
        measure("    rapidfuzz", partial(baseline, excerpts, page))
        found = located(excerpts, page)
        near = sum(fuzz.partial_ratio(excerpt, page, score_cutoff=90) >= 90 for excerpt in excerpts)
        rungs = ", ".join(f"{count} {rung}" for rung, count in Counter(each.rung for each in found).most_common())
        passed = sum(passes(each, offline=True) for each in found)
        print(f"        {rungs}; {passed} pass offline; {near} are ≥ 90 to rapidfuzz")

    print(f"\n{'as the page grows':<44} {'ms':>9}")
    for factor in (1, 2, 4, 8):
        longer = "\n".join(sentences(rng, arguments.chars * factor // 2))
        excerpts = [with_typo(rng, quoted(rng, longer.split("\n"))) for _ in range(4)]
        measure(f"fold {len(longer):,} characters", partial(fold, longer))
        measure("    4 excerpts with a letter changed", partial(located, excerpts, longer))

    print(f"\n{'hostile':<44} {'ms':>9}")
    for name, excerpt, text in hostile():
        measure(name, partial(located, [excerpt], text))
        if len(excerpt) < 1_000:  # beyond it the baseline takes minutes
            measure("    rapidfuzz", partial(baseline, [excerpt], text))

    print(f"\n{'pages':<44} {'ms':>9}")
    for size in (20_000, 170_000, 300_000):
        body = html(sentences(rng, size))
        measure(f"extract HTML of {len(body):,} bytes", partial(extract, body, "text/html", "utf-8", ""))
    found = located([quoted(rng, told) for _ in range(arguments.excerpts)], page)
    measure("what the judge sees of the page", partial(judge_view, page, [("text", page)], found))


def located(excerpts: list[str], page: str) -> list[Alignment]:
    return [locate(excerpt, [("text", page)]) for excerpt in excerpts]


def baseline(excerpts: list[str], page: str) -> list[object]:
    return [fuzz.partial_ratio_alignment(excerpt, page, score_cutoff=90) for excerpt in excerpts]


class Measure:
    """Prints the best time of a few."""

    def __init__(self, repeats: int) -> None:
        self._repeats = repeats

    def __call__(self, what: str, run: Callable[[], object]) -> None:
        best = float("inf")
        for _ in range(self._repeats):
            started = time.perf_counter()
            run()
            best = min(best, time.perf_counter() - started)
        print(f"{what:<44} {best * 1000:>9.2f}")


def sentences(rng: random.Random, chars: int) -> list[str]:
    """Sentences of invented words with numbers, quotes, dashes and accents, so many characters of them."""
    words = ["".join(rng.choice(LETTERS) for _ in range(rng.randint(2, 10))) for _ in range(6_000)]
    words += ["l’été", "“néw”", "café", "–"] * 40
    told: list[str] = []
    length = 0
    while length < chars:
        some = [rng.choice(words) for _ in range(rng.randint(8, 30))]
        some.insert(rng.randrange(len(some)), f"{rng.randint(2, 99_999):,}")
        told.append(" ".join(some).capitalize() + ".")
        length += len(told[-1]) + 1
    return told


def quoted(rng: random.Random, told: list[str]) -> str:
    place = rng.randrange(max(1, len(told) - 2))
    return "\n".join(told[place : place + 2])[:300]


def with_typo(rng: random.Random, text: str) -> str:
    places = [place for place in range(1, len(text) - 1) if text[place - 1 : place + 2].isalpha()]
    place = rng.choice(places)
    return f"{text[:place]}q{text[place + 1 :]}"


def with_number(rng: random.Random, text: str) -> str:
    places = [place for place, char in enumerate(text) if char.isdecimal()]
    place = rng.choice(places)
    return f"{text[:place]}{(int(text[place]) + rng.randint(1, 8)) % 10}{text[place + 1 :]}"


def hostile() -> list[tuple[str, str, str]]:
    """Excerpts and pages that make searching slow."""
    return [
        ("two letters, 300 characters", "ab" * 150 + "c", "ab" * 150_000),
        ("two letters, 999 characters", "ab" * 499 + "c", "ab" * 150_000),
        ("two letters, 9,001 characters", "ab" * 4_500 + "c", "ab" * 150_000),
        ("near misses, 9,600 characters", "not on the page " * 600, "not on the pagf " * 19_000),
        ("190 parts", "word … " * 190, "word " * 60_000),
        ("digits", "1" * 300, "1" * 300_000),
        ("accents", "e\u0301" * 100, "e" + "\u0301" * 300_000),
    ]


def html(told: list[str]) -> bytes:
    menu = "".join(f"<li><a href='/{number}'>Item {number}</a></li>" for number in range(60))
    body = "".join(f"<p class='text'>{sentence.replace(' ', ' <b>b</b> ', 1)}</p>\n" for sentence in told)
    head = f"<head><title>T</title></head><body><nav><ul>{menu}</ul></nav>"
    page = f"<html>{head}<article>{body}</article></body></html>"
    return page.encode()


if __name__ == "__main__":
    main()
