"""The words, numbers and negations of a folded text: what a quotation must not change.

A likeness of two texts does not see a changed number or an inserted "not"; comparing these does.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

#: A number; one sign of a script without blanks; a word with its apostrophes.
_WORD: Final = re.compile(
    r"\d+(?:[.,]\d+)*|[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]|[^\W\d_]+(?:'[^\W\d_]+)*"
)
#: A hyphen that is a sign: before a number, not between two words, nor in "1990 -1995" or "(a) -5".
_SIGN: Final = re.compile(r"(?<![\w)%.])(?<!\d )-[$€£¥]?\Z")
_THOUSANDS: Final = re.compile(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?")
#: Characters looked at beside a cut: longer than any word that can be turned round.
_REACH: Final = 48
#: The signs that make a difference at a cut, in a text that is not folded.
_AS_FOLDED: Final = str.maketrans({"’": "'", "−": "-"})
#: Characters looked at before a number for its sign.
_BEFORE: Final = 4


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


#: Words that turn a sentence round, in the languages that pages are most often written in.
NEGATIONS: Final = _words(
    """
    no not never none nobody nothing nowhere neither nor without cannot hardly scarcely barely unless except
    nicht kein keine keinen keinem keiner keines nie niemals nichts ohne niemand
    ne pas jamais aucun aucune sans rien personne
    nunca sin ningún ninguna ninguno nada nadie tampoco
    non nessun nessuno nessuna mai senza niente
    não nem sem nenhum nenhuma
    niet geen nooit zonder
    ikke aldri uten inte aldrig utan ej ei nie bez nigdy żaden
    не нет ни никогда без нельзя
    değil yok hiç
    لا ليس لم لن بدون
    לא אין בלי
    नहीं न मत
    不 没 沒 未 無 无 非 勿 莫
    """
)
_NUMBER_WORDS: Final = _words(
    """
    zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen
    seventeen eighteen nineteen twenty thirty forty fifty sixty seventy eighty ninety hundred thousand million
    millions billion billions trillion dozen half quarter third double triple twice once first second
    """
)
#: What a word can't lose in front without turning round.
_NEGATIVE_PREFIXES: Final = _words("un in im il ir non dis mis anti de")


@dataclass(frozen=True, slots=True)
class Word:
    """One word of a folded text: its spelling for comparison, and where it stands."""

    text: str
    start: int
    end: int

    @property
    def has_digit(self) -> bool:
        return any(char.isdecimal() for char in self.text)

    @property
    def is_number(self) -> bool:
        return self.has_digit or self.text in _NUMBER_WORDS

    @property
    def is_negation(self) -> bool:
        return self.text in NEGATIONS or self.text.endswith("n't")


def read_words(folded: str, start: int = 0, end: int | None = None) -> list[Word]:
    """The words of a folded text, or of a part, in lower case; numbers with sign, without thousands signs."""
    found = []
    for match in _WORD.finditer(folded, start, len(folded) if end is None else end):
        text = match.group()
        if text[0].isdecimal():
            text = _number(text)
            if _SIGN.search(folded[max(start, match.start() - _BEFORE) : match.start()]):
                text = f"-{text}"
        found.append(Word(text.lower(), match.start(), match.end()))
    return found


def _number(text: str) -> str:
    if _THOUSANDS.fullmatch(text):
        text = text.replace(",", "")
    return text if text.isascii() else "".join(str(int(char)) if char.isdecimal() else char for char in text)


def what_matters(words: Iterable[Word]) -> list[str]:
    """The numbers and negations among words, in order."""
    return [word.text for word in words if word.is_negation or word.has_digit]


def joined_thousands(numbers: list[str]) -> list[str]:
    """Numbers of which `1 234 567` was read as three."""
    joined: list[str] = []
    for number in numbers:
        if joined and len(number) == 3 and number.isdecimal() and joined[-1].lstrip("-").isdecimal():
            joined[-1] += number
        else:
            joined.append(number)
    return joined


def turned_by_prefix(one: str, other: str) -> bool:
    """Whether one word is the other with a negative prefix: `able`, `unable`."""
    short, long = sorted((one, other), key=len)
    return short != long and long.endswith(short) and long.removesuffix(short) in _NEGATIVE_PREFIXES


def cut_changes(text: str, start: int, end: int) -> bool:
    """Whether cutting `text[start:end]` out goes through a number, or through a word so that it turns round.

    `12 people` cut out of `112 people`, `5 °C` of `-5 °C`, `possible` of `impossible`, `can` of `can't`. A word
    may be cut otherwise: a search engine's excerpts begin and end anywhere.
    """
    left = max(0, start - _REACH)
    near = text[left : end + _REACH].translate(_AS_FOLDED)
    start, end = start - left, end - left
    around, inside = read_words(near), read_words(near, start, end)
    if not inside:
        return False
    first = next((word for word in around if word.end > inside[0].start), None)
    last = next((word for word in reversed(around) if word.start < inside[-1].end), None)
    for cut, whole in ((inside[0], first), (inside[-1], last)):
        if whole is None or cut.text == whole.text:
            continue
        if cut.has_digit or whole.has_digit or (cut.is_number and whole.is_number):
            return True
        if cut.is_negation != whole.is_negation:
            return True
        if turned_by_prefix(cut.text, whole.text):
            return True
    # "non-toxic" and "un-American" are two words each
    after_hyphen = start > 0 and near[start - 1] == "-"
    return after_hyphen and any(
        word.end == start - 1 and (word.text in _NEGATIVE_PREFIXES or word.is_negation) for word in around
    )
