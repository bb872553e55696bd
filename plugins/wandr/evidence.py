"""A page and a record's excerpts as the judge is shown them, and the stand-ins where there is no page yet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from core.judge.question import Question
from core.model import Submission
from core.pages.align import Alignment, Part, locate, passes
from core.pages.page import Page
from core.pages.windows import LEFT_OUT, LIMIT, judge_view
from plugins.wandr.model import Node, Record
from plugins.wandr.norms import normalise_url
from plugins.wandr.prompt import Excerpt, Named, Shown, question
from plugins.wandr.settings import Settings

#: Characters of a long page's beginning, which all of its records share; the rest of the limit is the record's.
HEAD: Final = 30_000
#: A passage of so many characters is the same wherever it stands.
UNMISTAKABLE: Final = 40
GOES_ON: Final = "\n[… goes on with the record …]"
#: Characters of a page that a price is reckoned with.
TYPICAL_PAGE: Final = 20_000
TYPICAL_EXCERPT: Final = "x" * 300


class View:
    """One page for all of its records: what does not depend on the record is made once.

    A page within the limit is shown whole. Of a longer one every record has the beginning in common, and then what
    is next of it with a window round each excerpt that was located beyond. As released, it is the first characters
    alone.
    """

    def __init__(self, page: Page, settings: Settings) -> None:
        self._page, self._texts = page, dict(page.texts)
        self._has_windows = settings.view == "windows"
        shown = HEAD if self._has_windows and len(page.main_text) > LIMIT else LIMIT
        self._beginning, self._rest = page.main_text[:shown], page.main_text[shown:]
        self._mark = (GOES_ON if self._has_windows else LEFT_OUT.rstrip("\n")) if self._rest else ""
        self._found: dict[str, Alignment] = {}
        # where the main text was recognised wrongly, the evidence is still in the longest text
        self._evidence = max(self._texts.values(), key=len, default=page.main_text)

    def excerpts(self, excerpts: Sequence[str]) -> list[Excerpt]:
        """Each excerpt with what the alignment found."""
        return [
            Excerpt(excerpt, passes(found, offline=True), finding(found))
            for excerpt, found in zip(excerpts, self._located(excerpts), strict=True)
        ]

    def shown(self, excerpts: Sequence[str]) -> Shown:
        """The page as it is shown for a record with these excerpts."""
        page = self._page
        return Shown(
            url=page.final_url or page.url,
            title=page.title,
            metadata=page.metadata,
            beginning=self._beginning + self._mark,
            windows=self._windows(excerpts) if self._has_windows else "",
            evidence=self._evidence,
        )

    def _windows(self, excerpts: Sequence[str]) -> str:
        """What is next of the page, and windows round the excerpts that the beginning does not have."""
        beyond = [
            found
            for found in self._located(excerpts)
            if not all(self._is_in_beginning(self._texts[found.text], part) for part in found.parts)
        ]
        return judge_view(self._rest, self._page.texts, beyond, limit=LIMIT - HEAD).strip()

    def _is_in_beginning(self, text: str, part: Part) -> bool:
        """Whether a passage is shown with the beginning; a short one at its own place, elsewhere it is another."""
        if text == self._page.main_text:
            return part.end <= len(self._beginning)
        said = text[part.start : part.end]
        return len(said) >= UNMISTAKABLE and said in self._beginning

    def _located(self, excerpts: Sequence[str]) -> list[Alignment]:
        for excerpt in excerpts:
            if excerpt not in self._found:
                self._found[excerpt] = locate(excerpt, self._page.texts)
        return [self._found[excerpt] for excerpt in excerpts]


def finding(found: Alignment) -> str:
    """What an alignment says, in words."""
    match found.rung:
        case "exact":
            return "stands on the page word for word"
        case "folded" | "squeezed":
            return "stands on the page, but for typography and white space"
        case "near":
            like = f"a passage of the page is {found.ratio:.0f} % like it"
            return f"{like}, but {found.why_not}" if found.why_not else f"{like}, with every number and negation"
        case _:
            return f"was not found: {found.why_not}"


def was_moved(url: str, final_url: str | None) -> bool:
    """Whether a page was reached at another address than the one that was cited."""
    return final_url is not None and normalise_url(final_url) != normalise_url(url)


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
