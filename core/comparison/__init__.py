"""How far a number can be trusted: run folders compared by system, by judge, by rank. Imports numpy.

    reading     run folders ─▶ Run: tasks, scores, what was run
    identity    which runs are of one system, of one judge
    match       may they be compared? refusals and marks
    study       runs side by side: one table of numbers, tasks in one order
    systems     a table for each judge: numbers, differences, what could have been seen, cost
    rows        judgements as arrays        agreed      several judges on the same answers
    judges      agreement, bias, flips      preference  own families
    ranks       orders, swaps               variance    what varies, what another design would give
    results     what all of it says (compare.json)      tables, render   for people

Everything is a function of the files read and of the settings: the same input gives the same bytes.
"""

from core.comparison.build import compare, write
from core.comparison.ranks import published_swaps
from core.comparison.results import SCHEMA, Comparison, Settings

__all__ = ["SCHEMA", "Comparison", "Settings", "compare", "published_swaps", "write"]
