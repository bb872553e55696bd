"""A WANDR task and a submission as data.

A node asks for records. Its keys form a hierarchy `[key_1(required n_1), …, key_k, url(required m)]`, `url` always
last; a subtask hangs on the key of its parent that is its own first key.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

URL: Final = "url"
Norm = Literal["text", "url", "exact_set", "alias_set", "custom"]


@dataclass(frozen=True, slots=True)
class Canonicalize:
    """How a key's values are brought to one spelling. `members`: canonical form → its aliases (closed sets)."""

    norm: Norm = "text"
    members: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    custom: str | None = None
    llm: bool = False
    guidance: str = ""


@dataclass(frozen=True, slots=True)
class Deduplicate:
    llm: bool = False
    guidance: str = ""


@dataclass(frozen=True, slots=True)
class Key:
    """One level of a hierarchy: its item fields (several for a composite key) and how many are required."""

    name: str
    fields: tuple[str, ...]
    required: int
    canonicalize: Canonicalize | None = None
    deduplicate: Deduplicate | None = None
    invalid_if: str | None = None


@dataclass(frozen=True, slots=True)
class Validity:
    name: str
    description: str = ""


@dataclass(frozen=True, slots=True)
class Requirement:
    """A pair of checks; without `satisfied` only `<name>_supported` is asked."""

    name: str
    supported: str
    satisfied: str | None = None


@dataclass(frozen=True, slots=True)
class JudgeSpec:
    summary: str = ""
    guidance: str = ""
    validity: tuple[Validity, ...] = ()
    requirements: tuple[Requirement, ...] = ()
    other_fields: tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True, slots=True)
class Node:
    """A node of the task tree. `name` is the full name, `parent.child`."""

    name: str
    text: str
    keys: tuple[Key, ...]
    judge: JudgeSpec = JudgeSpec()
    subtasks: tuple[Node, ...] = ()

    @property
    def required_records(self) -> int:
        """The product of the node's own counts."""
        return math.prod(key.required for key in self.keys)

    @property
    def file(self) -> str:
        """The file of the submission that holds this node's records."""
        return f"results_{self.name}.jsonl"

    def walk(self) -> Iterator[Node]:
        """This node and all below it, parents first, in the order of the task."""
        yield self
        for subtask in self.subtasks:
            yield from subtask.walk()


@dataclass(frozen=True, slots=True)
class Record:
    """One well-formed row. `line` counts from 0 over the file's non-blank rows, malformed ones included."""

    node: str
    line: int
    item: Mapping[str, str]
    url: str
    excerpts: tuple[str, ...]
    answer: Mapping[str, Any]

    @property
    def unit(self) -> str:
        return f"record/{self.node}/{self.line}"


@dataclass(frozen=True, slots=True)
class Malformed:
    """One row that is refused: where and why. `line` is None for a file that is missing or empty.

    `item` and `url` are what could be read of it: the texts among its item's fields, and its address.
    """

    node: str
    file: str
    line: int | None
    field: str | None
    reason: str
    # by its full name: this class has a field called `field`
    item: Mapping[str, str] = dataclasses.field(default_factory=dict)
    url: str = ""


@dataclass(frozen=True, slots=True)
class Parsed:
    """A submission's rows, in the order of nodes and lines. Strict: any `malformed` makes the task score 0.

    `notes` say what was odd about the delivery and was put up with: an unclosed fence, a path given twice.
    """

    records: tuple[Record, ...] = ()
    malformed: tuple[Malformed, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Leaf:
    """One record as the rollup sees it: its values by key (raw fields joined), address and two outcomes.

    None is missing. A malformed row is, in the lenient reading, a leaf that failed; it has what values it has.
    """

    node: str
    values: Mapping[str, str]
    url: str
    full: bool | None
    retrieval: bool | None


@dataclass(frozen=True)
class Identity:
    """Who is who. What is not in it is itself.

    `canonical[key][raw value]` is a value's canonical form; `cluster[key][canonical or raw value]` its identity.
    """

    canonical: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    cluster: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
