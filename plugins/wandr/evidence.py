"""A page and a record's excerpts as the judge is shown them, and the stand-ins where there is no page yet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from core.judge.question import Question
from core.model import Submission
from core.pages.page import Page
from plugins.wandr.model import Node, Record
from plugins.wandr.norms import normalise_url
from plugins.wandr.prompt import Excerpt, Named, Shown, question
from plugins.wandr.settings import Settings

#: Characters of a page that a price is reckoned with.
TYPICAL_PAGE: Final = 20_000
TYPICAL_EXCERPT: Final = "x" * 300


class View:
    """One page for all of its records: what does not depend on the record is made once."""

    def __init__(self, page: Page, settings: Settings) -> None:
        self._page, self._settings = page, settings

    def excerpts(self, excerpts: Sequence[str]) -> list[Excerpt]:
        raise NotImplementedError

    def shown(self, excerpts: Sequence[str]) -> Shown:
        raise NotImplementedError


def was_moved(page: Page) -> bool:
    """Whether a page was reached at another address than the one that was cited."""
    return page.final_url is not None and normalise_url(page.final_url) != normalise_url(page.url)


def named(canonical: Mapping[str, Mapping[str, str]]) -> dict[str, dict[str, Named]]:
    """Each key's values by their raw form, with the other spellings that the submission has of them."""
    found: dict[str, dict[str, Named]] = {}
    for key, values in canonical.items():
        spellings: dict[str, list[str]] = {}
        for raw, value in values.items():
            spellings.setdefault(value, []).append(raw)
        found[key] = {
            raw: Named(
                key, raw, value, tuple(other for other in spellings[value] if other != raw)[:MOST_SPELLINGS]
            )
            for raw, value in values.items()
        }
    return found


#: Other spellings of a value that are shown.
MOST_SPELLINGS: Final = 8


def typical_question(node: Node, submission: Submission) -> Question:
    """A question about a record of a node, as long as they usually are."""
    item = {field: "x" * 20 for key in node.keys[:-1] for field in key.fields}
    record = Record(node.name, 0, item, "https://example.org/", (TYPICAL_EXCERPT,), {})
    names = [Named(key.name, "x" * 20, "x" * 20) for key in node.keys[:-1]]
    text = "x" * TYPICAL_PAGE
    shown = Shown("https://example.org/", "x" * 60, (), text, "", text)
    excerpts = [Excerpt(TYPICAL_EXCERPT, faithful=True, finding="x" * 80)]
    return question(node, record, submission, 1, names=names, page=shown, excerpts=excerpts)


def bare_question(submission: Submission, repeat: int, units: Sequence[str]) -> Question:
    """A question to a file of judgements: it is answered by its units alone."""
    return Question(submission.task_id, submission.attempt, repeat, tuple(units), "", "", "", {})
