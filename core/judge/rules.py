"""Rules that decide whether a claim is borne out by a text: key terms, numbers, negation.

They know words, not meaning: a paraphrase fails them and a parroted claim passes. They exist so that
demos, tests and plumbing run without a model; a score made with them says nothing about a system.

A claim is borne out when some window of up to three sentences
    1. holds enough of the claim's key terms (stop words out, endings off),
    2. holds every number of the claim, and
    3. is negated as often as the claim is, odd or even, in the sentence that is nearest to it.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

#: Raised when a rule changes.
RULES_VERSION: Final = 1
#: Share of the claim's key terms that a window must hold.
ENOUGH: Final = 0.6
#: Sentences in the widest window.
WIDEST: Final = 3

_WORD: Final = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)?")
# a number with its thousands and decimals; "B2B" and "v3" are not numbers
_NUMBER: Final = re.compile(
    r"(?<![\w.,])[-+−]?\d{1,3}(?:[,\u00a0\u202f]\d{3})+(?:\.\d+)?|(?<![\w.])[-+−]?\d+(?:\.\d+)?"
)
_SENTENCE: Final = re.compile(r"(?<=[.!?…。])\s+|\n+")


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_NEGATIONS: Final = _words(
    "no not never none nobody nothing nowhere neither nor without cannot lack lacks lacked lacking hardly"
)
#: Function words, and the words in which a rubric speaks of an answer.
_STOP: Final = _words(
    """
    a about above after again all also an and any are as at be because been before being below between
    both but by can could did do does doing done during each either etc few for from further had has have
    having he her here hers him his how i if in into is it its itself just less made make makes may me
    might more most much must my of off on once one only onto or other others our out over own per same
    she should so some such than that the their them then there these they this those through to too under
    until up upon us use used uses using very via was we were what when where whether which while who whom
    whose why will with within would yet you your address addresses answer answers claim claims cite cites
    clearly contain contains correctly describe describes discuss discusses explain explains explicitly
    give gives identifies identify include includes indicate indicates list lists mention mentions note
    notes point points provide provides report reports response say says specifies specify state stated
    states
    """
)
_ENDINGS: Final = ("ations", "ation", "ings", "ing", "edly", "ed", "ies", "es", "ly", "s", "e", "y")


@dataclass(frozen=True, slots=True)
class Sentence:
    """One sentence as the rules see it."""

    terms: frozenset[str]
    numbers: frozenset[str]
    negated: bool


@dataclass(frozen=True, slots=True)
class Finding:
    """Whether a claim is borne out, and one sentence on why."""

    borne_out: bool
    why: str


def stem(word: str) -> str:
    """A word without its ending: one rule for plurals, tenses and adverbs, at least three letters left."""
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word[: -len(ending)]
    return word


def read_sentence(text: str) -> Sentence:
    """The terms, numbers and negation of one sentence (or of a whole claim)."""
    words = [word.replace("’", "'") for word in _WORD.findall(text.casefold())]
    negations = sum(word in _NEGATIONS or word.endswith("n't") for word in words)
    terms = frozenset(
        stem(word.removesuffix("'s"))
        for word in words
        if len(word) > 1 and word not in _STOP and word not in _NEGATIONS and not word.endswith("n't")
    )
    return Sentence(terms, numbers(text), negations % 2 == 1)


def numbers(text: str) -> frozenset[str]:
    """The numbers of a text in one spelling: no thousands signs, no trailing zeros, `-` for every minus."""
    found = set()
    for match in _NUMBER.findall(text):
        plain = re.sub(r"[,\u00a0\u202f+]", "", match).replace("−", "-")
        if "." in plain:
            plain = plain.rstrip("0").rstrip(".")
        # a dash before a number is a range or a list more often than a sign
        found.add(plain.lstrip("-").lstrip("0") or "0")
    return frozenset(found)


@lru_cache(maxsize=128)
def read_text(text: str) -> tuple[Sentence, ...]:
    """The sentences of a text; kept, since forty claims are put to one report."""
    folded = unicodedata.normalize("NFKC", text)
    return tuple(read_sentence(part) for part in _SENTENCE.split(folded) if part.strip())


def decide(claim: str, evidence: str) -> Finding:
    """Is the claim borne out by the evidence?"""
    wanted = read_sentence(unicodedata.normalize("NFKC", claim))
    if not wanted.terms and not wanted.numbers:
        return Finding(borne_out=False, why="the claim has no key term and no number to look for")
    sentences = read_text(evidence)
    if not sentences:
        return Finding(borne_out=False, why="there is no text to look in")
    best: tuple[float, Finding] | None = None
    for start in range(len(sentences)):
        for window in (sentences[start : start + size] for size in range(1, WIDEST + 1)):
            share, finding = _look(wanted, window)
            if finding.borne_out:
                return finding
            if best is None or share > best[0]:
                best = (share, finding)
    assert best is not None, "there is at least one sentence"
    return best[1]


def _look(wanted: Sentence, window: tuple[Sentence, ...]) -> tuple[float, Finding]:
    """The share of the claim's terms in a window, and the finding there."""
    terms = frozenset().union(*(sentence.terms for sentence in window))
    found = wanted.terms & terms
    share = len(found) / len(wanted.terms) if wanted.terms else 1.0
    have = frozenset().union(*(sentence.numbers for sentence in window))
    missing_numbers = wanted.numbers - have
    nearest = max(window, key=lambda sentence: len(sentence.terms & wanted.terms))
    counted = f"{len(found)} of {len(wanted.terms)} key terms found"
    if share < ENOUGH:
        missing = ", ".join(sorted(wanted.terms - found)[:5])
        return share, Finding(borne_out=False, why=f"only {counted}; missing: {missing}")
    if missing_numbers:
        return share, Finding(borne_out=False, why=f"{counted}, but not {', '.join(sorted(missing_numbers))}")
    if nearest.negated != wanted.negated:
        return share, Finding(borne_out=False, why=f"{counted}, but only one of claim and text is negated")
    numbered = f", with {', '.join(sorted(wanted.numbers))}" if wanted.numbers else ""
    return share, Finding(borne_out=True, why=f"{counted}{numbered}, close together and negated alike")
