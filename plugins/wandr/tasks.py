"""WANDR's rows as tasks: every row is checked before the first task is used.

A task's payload is plain JSON, since run folders keep it: `tree` (as in its row) and `flags`, what must be known
of the task when its score is read: `custom_norm:<key>` (the task's own function is not part of the data and the
plain norm stands in), `no_judge_spec` (the universal checks alone), `not_self_contained`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from datetime import date
from typing import Any, Final

from core.errors import InputError
from core.model import Task
from core.strict_json import shown
from core.taskfile import Placed, distinct
from plugins.wandr import sources
from plugins.wandr.instruction import Delivery, checked_delivery, output_schema, prompt_of
from plugins.wandr.model import Node
from plugins.wandr.norms import custom_flags
from plugins.wandr.shape import check_row, refusal
from plugins.wandr.tree import checked_node, required_files, required_records, tree_of

#: The benchmark's own pages, host/path without a scheme: what a system is asked to leave out of its search.
BLOCKED: Final[tuple[str, ...]] = (
    "huggingface.co/datasets/perplexity-ai/wandr",
    "hf.co/datasets/perplexity-ai/wandr",
    "hf-mirror.com/datasets/perplexity-ai/wandr",
    "github.com/perplexityai/wandr",
    "raw.githubusercontent.com/perplexityai/wandr",
    "arxiv.org/abs/2608.14747",
    "arxiv.org/pdf/2608.14747",
    "arxiv.org/html/2608.14747",
    "doi.org/10.48550/arxiv.2608.14747",
    "huggingface.co/papers/2608.14747",
    "alphaxiv.org/abs/2608.14747",
)
#: The first number of required records of each bin above the lowest, and its label.
VOLUMES: Final = ((480, "≥480"), (300, "300–479"), (200, "200–299"), (120, "120–199"), (30, "30–119"))
SMALLEST_VOLUME: Final = "<30"
#: From this many intermediate keys on they are one bin.
MANY_KEYS: Final = 3

_NOT_SELF_CONTAINED: Final = "not_self_contained"
_NO_JUDGE_SPEC: Final = "no_judge_spec"
_SHOWN_IDS: Final = 10


class WandrTasks:
    """The task loader `wandr`.

    Reads of the section `benchmark`: `source`, `revision`, `delivery` (file | fence | schema; how a submission
    arrives, fixed for the run) and `include_not_self_contained`. `log` is told what was left out.
    """

    def __init__(self, config: Mapping[str, Any], log: Any = None) -> None:
        self._source = str(config.get("source") or "sample")
        revision = config.get("revision")
        self._revision = None if revision is None else str(revision)
        self._delivery = checked_delivery(config.get("delivery"))
        self._include = bool(config.get("include_not_self_contained", False))
        self._log = log
        self._skipped: tuple[str, ...] = ()

    def load(self) -> Iterator[Task]:
        """Every task in the source's order; raises InputError with file, line and field."""
        tasks = tasks_of(sources.rows(self._source, self._revision), where=self._source, delivery=self._delivery)
        marked = [] if self._include else [task for task in tasks if _NOT_SELF_CONTAINED in task.payload["flags"]]
        self._skipped = tuple(task.id for task in marked)
        tasks = [task for task in tasks if task.id not in self._skipped]
        if self._skipped and self._log is not None:
            self._log.warning("tasks left out", reason="not self-contained", ids=list(self._skipped))
        if not tasks:
            raise InputError(
                "no task is self-contained",
                where=self._source,
                expected="benchmark.include_not_self_contained=true to have them all the same",
            )
        return iter(tasks)

    def warnings(self, today: date) -> list[str]:  # noqa: ARG002  # the form that parts' warnings have
        """What a report must say of the tasks that the last `load` left out."""
        if not self._skipped:
            return []
        more = ", …" if len(self._skipped) > _SHOWN_IDS else ""
        ids = ", ".join(self._skipped[:_SHOWN_IDS]) + more
        count = len(self._skipped)
        advice = "benchmark.include_not_self_contained=true has them"
        return [f"{count} tasks are not self-contained and left out ({ids}); {advice}"]


def tasks_of(rows: Iterable[Placed], *, where: str, delivery: Delivery = "fence") -> list[Task]:
    """Checked tasks of unchecked rows; `where` names the source if it has no row."""
    tasks: list[Task] = []
    for place, row in distinct(rows, check_row, where=where):
        tasks.append(_task(row, place, delivery=delivery, index=len(tasks)))
    return tasks


def describe(task: Task) -> str:
    """A task's hierarchies with their counts in one line, and how many records it asks for.

    A subtask stands after `+` under its name without the root's; its first key's count is the parent's matter.
    """
    root = tree_of(task)
    parts = []
    for node in root.walk():
        levels = [f"{key.name}({key.required})" for key in node.keys]
        if node is root:
            parts.append(" → ".join(levels))
        else:
            levels[0] = node.keys[0].name
            parts.append(f"+ {node.name.removeprefix(f'{root.name}.')}: {' → '.join(levels)}")
    return "; ".join([*parts, f"{required_records(root)} records"])


def volume_of(records: int) -> str:
    """The bin of a number of required records."""
    return next((label for least, label in VOLUMES if records >= least), SMALLEST_VOLUME)


def intermediate_keys_of(root: Node) -> str:
    """How many keys stand between the root node's first key and its url: 0, 1, 2, 3+."""
    count = max(0, len(root.keys) - 2)
    return str(count) if count < MANY_KEYS else f"{MANY_KEYS}+"


def _task(row: Mapping[str, Any], place: str, *, delivery: Delivery, index: int) -> Task:
    root = checked_node(row["tree"], place)
    files = required_files(root)
    given = row.get("output_files")
    if given is not None and set(given) != set(files):
        raise refusal(
            "the files are not those of the tree's nodes",
            where=place,
            field="output_files",
            expected=shown(list(files)),
            got=given,
        )
    is_self_contained = row.get("self_contained") is not False
    labels = labels_of(row.get("labels") or {}, root)
    if not is_self_contained:
        labels["self_contained"] = "false"
    flags = [*custom_flags(root)]
    flags += [] if _has_judge(row["tree"]) else [_NO_JUDGE_SPEC]
    flags += [] if is_self_contained else [_NOT_SELF_CONTAINED]
    return Task(
        id=row["id"],
        prompt=prompt_of(root, row.get("instruction"), delivery),
        labels=labels,
        output_schema=output_schema(root) if delivery == "schema" else None,
        required_files=files,
        blocked=BLOCKED,
        payload={"tree": row["tree"], "flags": flags},
        index=index,
    )


def _has_judge(node: Mapping[str, Any]) -> bool:
    """Whether any node of a tree in plain form says anything of its judge, be it that it checks no more."""
    said = any(value is not None for value in node["judge"].values())
    return said or any(_has_judge(subtask) for subtask in node.get("subtasks") or ())


def labels_of(given: Mapping[str, Any], root: Node) -> dict[str, str | list[str]]:
    """A task's labels: its row's, in words, and two that its tree gives.

    Texts and lists of texts are kept. A number `x` becomes the text `x-value`, and `x` is then what `x-label`
    says: a group is a word, not a measure. From the tree: `volume` (required records) and `intermediate_keys`.
    """
    labels: dict[str, str | list[str]] = {}
    for name, value in given.items():
        match value:
            case bool():
                labels[name] = json.dumps(value)
            case int() | float():
                labels[f"{name}-value"] = json.dumps(value)
            case str() if value.strip():
                labels[name] = value
            case list() if value and all(isinstance(word, str) for word in value):
                labels[name] = list(value)
    for name, word in list(labels.items()):
        if name.endswith("-label"):
            labels.setdefault(name.removesuffix("-label"), word)
    labels["volume"] = volume_of(required_records(root))
    labels["intermediate_keys"] = intermediate_keys_of(root)
    return labels
