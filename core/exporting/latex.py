r"""Tables for people as LaTeX: one `table` each, with booktabs rules and nothing else that needs a package.

Names come from files, so every sign that LaTeX gives a meaning is written out. Letters beyond ASCII stay as they
are: since 2018 LaTeX reads UTF-8, and whether a font has them is the document's matter.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from core.exporting.shown import Shown, ShownTable

_HEAD: Final = "% made by python -m core.export; needs \\usepackage{booktabs}"
_ESCAPES: Final[Mapping[str, str]] = {
    "\\": "\\textbackslash{}",
    "~": "\\textasciitilde{}",
    "^": "\\textasciicircum{}",
    "<": "\\textless{}",
    ">": "\\textgreater{}",
    "|": "\\textbar{}",
    # after the end of a row, these would be an option of it
    "[": "{[}",
    "]": "{]}",
    "*": "{*}",
    # alone, or followed by itself: no ligature makes another sign of these
    "`": "{`}",
    "'": "'{}",
    "-": "-{}",
    "–": "--",
    "−": "$-$",
    "…": "\\ldots{}",
    "±": "$\\pm$",
    **{sign: f"\\{sign}" for sign in "&%$#_{}"},
}
_SIGN: Final = re.compile(
    "|".join(f"{re.escape(sign)}(?={re.escape(sign)})" if sign in "-'" else re.escape(sign) for sign in _ESCAPES)
)
#: Characters that show nothing, some of which LaTeX refuses; a blank of any kind is one blank.
_UNSEEN: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]+")


def escaped(text: str) -> str:
    """Text that LaTeX sets as it is."""
    return _SIGN.sub(lambda found: _ESCAPES[found[0]], _one_line(text))


def latex(table: ShownTable) -> str:
    """A table as the content of a .tex file; what a writer must know stands above it as comments."""
    body = [" & ".join(_cell(cell) for cell in row) + r" \\" for row in table.rows]
    notes = "; ".join(table.notes)
    caption = escaped(f"{table.title}. {notes[:1].upper()}{notes[1:]}.")
    sides = "l" * table.words + "r" * (len(table.columns) - table.words)
    lines = [
        _HEAD,
        *(f"% {_one_line(aside)}" for aside in table.asides),
        r"\begin{table}",
        r"\centering",
        rf"\caption{{{caption}}}",
        rf"\label{{tab:{table.name}}}",
        rf"\begin{{tabular}}{{{sides}}}",
        r"\toprule",
        " & ".join(map(escaped, table.columns)) + r" \\",
        r"\midrule",
        *body,
        r"\bottomrule",
        r"\end{tabular}",
        r"\end{table}",
    ]
    return "\n".join(lines) + "\n"


def _cell(cell: Shown) -> str:
    text = escaped(cell.text)
    return f"{text} {{\\scriptsize {escaped(cell.beside)}}}" if cell.beside else text


def _one_line(text: str) -> str:
    return " ".join(_UNSEEN.sub(" ", text).split())
