"""What a system is told: a task's own instruction, or one made from its tree, and how to deliver.

A task's own instruction is shown to the letter. It speaks of files; where the channel is another, what to do
instead is said below it and never inside it. The made one says all that a solver needs and nothing that only the
judge knows: no members of closed sets, no checks, no guidance.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, Literal, get_args

from core.errors import InputError
from plugins.wandr.model import URL, Key, Node
from plugins.wandr.tree import required_files

Delivery = Literal["file", "fence", "schema"]
DELIVERIES: Final[tuple[Delivery, ...]] = get_args(Delivery)
#: How a file is opened in a message: by its path, its content as it is or in base64.
FENCE: Final = "file:"
FENCE_BASE64: Final = "file-base64:"

_TYPED_CONTENT: Final = (
    "The whole text of the file, one JSON record a line, each with item, url, excerpts (passages copied from the "
    "visible text of that page) and answer."
)
_RULES: Final = """\
## Rules for every record

- **Minimum counts.** Each count is the least that is asked for; more that is right is welcome. Below a subtask's
  first key the same holds; that key itself takes its values from the parent's records.
- **One name for one thing.** Spell a value the same way in every row and every file, and never give one thing two
  names: values that turn out to be the same count once, and as well as the worst of them.
- **One page a row.** `url` is a public http(s) address that answers with the page itself, without a login. It may
  not carry credentials, blanks or backslashes.
- **Excerpts prove the answer.** `excerpts` are passages copied from that page's visible text. White space and
  typographic marks may differ and `…` may stand for words left out inside one passage; words, numbers and their
  meaning may not change, and passages from different places are separate excerpts. Someone who reads nothing but
  the excerpts, the page's title and its address must be able to confirm every part of the item and the answer.
- **What people see.** Quote what a reader of the page sees: no hidden metadata, no scripts' data, no replies of an
  API, no text inside images.
- **Say what is absent.** If the task lets you answer that something is not stated, say so in a field of `answer`
  whose name makes it plain, and quote the passage where it would have stood. Otherwise take another page or leave
  the row out.
"""


def checked_delivery(word: Any) -> Delivery:
    """The channel that a configuration names; null is `fence`. Raises InputError with the known words."""
    if word is None:
        return "fence"
    for known in DELIVERIES:
        if word == known:
            return known
    raise InputError(
        "unknown channel",
        where="benchmark.delivery",
        expected=f"one of {', '.join(DELIVERIES)}",
        got=repr(word),
    )


def prompt_of(root: Node, instruction: str | None, delivery: Delivery) -> str:
    """What the system is shown: the task's own instruction to the letter, else one made from the tree.

    How to deliver follows, except where a task's own instruction asks for files and files are the channel.
    """
    if instruction is None or not instruction.strip():
        return render(root, delivery)
    if delivery == "file":
        return instruction
    return f"{instruction.rstrip()}\n\n{delivery_section(root, delivery)}"


def render(root: Node, delivery: Delivery) -> str:
    """A solver's instruction made from a tree."""
    nodes = list(root.walk())
    parts = [
        "Research the open web and report what you find as records, each backed by passages of one page.",
        _overview(nodes),
        *(_node(node, None if node is root else _parent(root, node)) for node in nodes),
        _RULES,
        delivery_section(root, delivery),
    ]
    return "\n\n".join(part.strip("\n") for part in parts if part) + "\n"


def delivery_section(root: Node, delivery: Delivery) -> str:
    """How the files reach the grader over a channel."""
    names = required_files(root)
    listed = "\n".join(f"- `{name}`" for name in names)
    what = "this file" if len(names) == 1 else f"these {len(names)} files"
    lines = [
        f"## Delivery\n\nDeliver {what}, one JSON object a line (JSONL, UTF-8), none of them empty:\n\n{listed}\n"
    ]
    match delivery:
        case "file":
            lines.append("Write them into your output folder under exactly these names.")
        case "fence":
            lines.append(
                "Put each whole at the end of your final message, in a fenced block of its own that opens with "
                f"three backticks, `{FENCE}` and its name, and closes with three backticks on a line alone. This "
                "replaces writing to disk: what does not stand in the final message is not read.\n"
            )
            lines += [f"```{FENCE}{name}\n{{…one record a line…}}\n```" for name in names]
        case "schema":
            lines.append(
                'Reply with one JSON object, `{"files": [{"path": "<name>", "content": "<text>"}]}`, and nothing '
                "else: an entry for each file, with its whole text. This replaces writing to disk."
            )
    return "\n".join(lines) + "\n"


def output_schema(root: Node) -> Mapping[str, Any]:
    """The JSON Schema of a schema-typed reply: every file with its name and its text."""
    entry = {
        "type": "object",
        "properties": {
            "path": {"type": "string", "enum": list(required_files(root))},
            # citations of most systems quote nothing: the records themselves must carry their passages
            "content": {"type": "string", "description": _TYPED_CONTENT},
        },
        "required": ["path", "content"],
        "additionalProperties": False,
    }
    return {
        "type": "object",
        "properties": {"files": {"type": "array", "items": entry}},
        "required": ["files"],
        "additionalProperties": False,
    }


def _overview(nodes: list[Node]) -> str:
    if len(nodes) == 1:
        return ""
    listed = "\n".join(f"- `{node.name}`" for node in nodes)
    return (
        "The task has parts that share some of their entities. Solve them together; each part's records go into a "
        f"file of its own.\n\n{listed}"
    )


def _parent(root: Node, node: Node) -> Node:
    return next(other for other in root.walk() if any(child is node for child in other.subtasks))


def _node(node: Node, parent: Node | None) -> str:
    parts = [f"## `{node.name}`", node.text.strip()]
    if parent is not None:
        first = node.keys[0].name
        parts.append(
            f"This part belongs to `{parent.name}`: give records for every `{first}` that you report there, and "
            f"write each `{first}` exactly as you do there."
        )
    parts.append("What is counted:\n\n" + "\n".join(_levels(node, parent)))
    parts.append(f"One record a line in `{node.file}`:\n\n{row_format(node)}")
    return "\n\n".join(part for part in parts if part)


def _levels(node: Node, parent: Node | None) -> Iterator[str]:
    for depth, key in enumerate(node.keys):
        indent = "  " * depth
        if depth == 0 and parent is not None and key.name != URL:
            yield f"- each `{key.name}` of `{parent.name}`{_composed(key)}"
            continue
        each = f" for each `{node.keys[depth - 1].name}`" if depth else ""
        noun = "source `url`" if key.name == URL else f"`{key.name}`"
        yield f"{indent}- at least {key.required} {noun}{each}{_composed(key)}"


def _composed(key: Key) -> str:
    if key.fields in ((key.name,), (URL,)):
        return ""
    return f" (given by {_listed(key.fields)})"


def _listed(fields: tuple[str, ...]) -> str:
    quoted = [f"`{field}`" for field in fields]
    return quoted[0] if len(quoted) == 1 else f"{', '.join(quoted[:-1])} and {quoted[-1]}"


def row_format(node: Node) -> str:
    """A row as it is written, with what stands where; every field of the item is a text that is not empty."""
    item = ", ".join(f'"{field}": "<{field}>"' for field in item_fields(node))
    return (
        f'{{"item": {{{item}}}, "url": "<the page\'s address>", "excerpts": ["<passage>", "<another>"], '
        '"answer": {"<field>": "<what the task asks about the item>"}}'
    )


def item_fields(node: Node) -> tuple[str, ...]:
    """The fields that every item of a node has: those of all keys but the url, each once, in the keys' order."""
    return tuple(dict.fromkeys(field for key in node.keys if key.name != URL for field in key.fields))
