"""The benchmark's own rubrics and paper on the web: what to block, and a scan for what got through.

A system that reads the rubric writes to it, and its score means nothing. So every task carries the list of
these pages (`Task.blocked`) for systems that can block, and every answer is scanned for signs of them. A
sign is not a proof: it flags the task and leaves its score alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Final, Literal
from urllib.parse import unquote

from core.model import Submission

What = Literal["dataset", "paper", "mirror"]

_ARTICLE: Final = "evaluating-deep-research-performance-in-the-wild-with-the-draco-benchmark"
#: Pages that hold the rubrics or the paper: (what, host/path). `mirror`: copies and published gradings.
PAGES: Final[tuple[tuple[What, str], ...]] = (
    ("dataset", "huggingface.co/datasets/perplexity-ai/draco"),
    ("dataset", "hf.co/datasets/perplexity-ai/draco"),
    ("dataset", "hf-mirror.com/datasets/perplexity-ai/draco"),
    ("mirror", "huggingface.co/datasets/maxkru92/draco"),
    ("mirror", "github.com/valyuai/valyu-benchmarks"),
    ("mirror", "github.com/steel-experiments/durable-researcher"),
    ("paper", "arxiv.org/abs/2602.11685"),
    ("paper", "arxiv.org/pdf/2602.11685"),
    ("paper", "arxiv.org/html/2602.11685"),
    ("paper", "doi.org/10.48550/arxiv.2602.11685"),
    ("paper", "huggingface.co/papers/2602.11685"),
    ("paper", "alphaxiv.org/abs/2602.11685"),
    ("paper", "emergentmind.com/papers/2602.11685"),
    ("paper", "sciencestack.ai/paper/2602.11685"),
    ("paper", "r2cdn.perplexity.ai/pplx-draco.pdf"),
    ("paper", f"research.perplexity.ai/articles/{_ARTICLE}"),
)
#: What a system is asked to block: host/path without a scheme, the form that domain filters take.
BLOCKED: Final[tuple[str, ...]] = tuple(url for _, url in PAGES)
#: The same for systems that block whole hosts only. It costs them all of arXiv and of the Hub.
BLOCKED_HOSTS: Final[tuple[str, ...]] = tuple(sorted({url.partition("/")[0] for url in BLOCKED}))

#: The dataset's name wherever it stands: in other hosts' addresses, API calls, cache folders.
_DATASET: Final = re.compile(r"(?:(?<![\w-])|(?<=--))perplexity-ai(?:/|--|___)draco(?![\w-])")
_PAPER: Final = re.compile(r"(?<!\d)2602\.11685(?:v\d+)?(?!\d)")
#: What makes that number the paper and not a quantity: the word arXiv, or an address that it ends.
_BEFORE_PAPER: Final = re.compile(
    r"(?:arxiv(?:\s+(?:id|preprint))?\s*[:.\[(]?\s*|[a-z0-9-]\.[a-z]{2,}(?::\d+)?/\S*)$"
)
#: Characters before the number that are looked at: bounds the work on a hostile text.
_WINDOW: Final = 200


@dataclass(frozen=True, slots=True)
class Finding:
    """One sign of contamination: what was found, and where (`text`, `file <name>`, `citation <n>`)."""

    what: What
    place: str


def scan(submission: Submission) -> tuple[Finding, ...]:
    """Signs that the system saw the benchmark's rubrics or paper; each (what, place) once.

    Addresses count whatever their scheme, `www.`, subdomain, port, case, percent-encoding, version, query,
    fragment or trailing slash.
    """
    found: dict[Finding, None] = {}
    for place, text in _texts(submission):
        for what in _signs(text):
            found[Finding(what, place)] = None
    return tuple(found)


def flags(submission: Submission | None) -> tuple[str, ...]:
    """The findings as a task's flags: `contaminated:dataset`, `contaminated:mirror`, `contaminated:paper`."""
    if submission is None:
        return ()
    return tuple(sorted({f"contaminated:{finding.what}" for finding in scan(submission)}))


def _texts(submission: Submission) -> Iterator[tuple[str, str]]:
    if submission.text:
        yield "text", submission.text
    for name, content in submission.files.items():
        yield f"file {name}", content
    for number, citation in enumerate(submission.citations, start=1):
        yield (
            f"citation {number}",
            "\n".join(part for part in (citation.url, citation.title, citation.excerpt) if part),
        )


def _signs(text: str) -> Iterator[What]:
    plain = unquote(text).casefold()
    for what, pattern in _page_patterns():
        if pattern.search(plain):
            yield what
    if _DATASET.search(plain):
        yield "dataset"
    for match in _PAPER.finditer(plain):
        if _BEFORE_PAPER.search(plain, max(0, match.start() - _WINDOW), match.start()):
            yield "paper"
            return


@cache
def _page_patterns() -> tuple[tuple[What, re.Pattern[str]], ...]:
    found = []
    for what, url in PAGES:
        host, _, path = url.partition("/")
        steps = "/+".join(re.escape(step) for step in path.split("/"))
        # a subdomain is the same site; the next character must not go on with the last step
        pattern = rf"(?<![\w-]){re.escape(host)}(?::\d+)?/+{steps}(?:v\d+)?(?![\w-])"
        found.append((what, re.compile(pattern)))
    return tuple(found)
