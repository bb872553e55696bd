"""`core.audit lint FILE…`: is a task file right, and what is odd about it?"""

from __future__ import annotations

import argparse

from core.audit import OK, REFUSED, Report, Table
from core.errors import InputError
from plugins.dag_rubric.audits.reading import placed_rows
from plugins.dag_rubric.lint import findings
from plugins.dag_rubric.tasks import check_row


class Lint:
    """Every task of the files is looked at, also after a faulty one. Exit code 2 when one would be refused."""

    summary = "check task files: what a run would refuse (exit 2), and what is odd (exit 0)"

    def arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            "files", nargs="+", metavar="FILE", help="a task file (.jsonl, .jsonl.gz, .parquet), or sample"
        )

    def run(self, words: argparse.Namespace) -> Report:
        refused: list[dict[str, str]] = []
        odd: list[dict[str, str]] = []
        n_tasks = 0
        for file in words.files:
            places: dict[str, str] = {}
            no_json: list[InputError] = []
            for place, row in placed_rows(file, on_fault=no_json.append):
                n_tasks += 1
                try:
                    check_row(row, place)
                    if row["id"] in places:
                        raise InputError(f"the task id stands twice, first in {places[row['id']]}", where=place)
                except InputError as error:
                    refused.append({"place": place, "fault": str(error)})
                    continue
                places[row["id"]] = place
                odd += [
                    {"place": place, "task_id": row["id"], "rule": rule, "at": at, "finding": text}
                    for rule, at, text in findings(row)
                ]
            n_tasks += len(no_json)
            refused += [{"place": str(error.where), "fault": str(error)} for error in no_json]
        tables = []
        if refused:
            tables.append(Table("refused", ("fault",), [(found["fault"],) for found in refused]))
        if odd:
            columns = ("task_id", "at", "rule", "finding")
            tables.append(Table("warnings", columns, [tuple(found[key] for key in columns) for found in odd]))
        note = f"{n_tasks} tasks: {len(refused)} refused, {len(odd)} warnings"
        data = {"n_tasks": n_tasks, "refused": refused, "warnings": odd}
        return Report(tables, data, notes=(note,), code=REFUSED if refused else OK)
