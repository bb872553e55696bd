"""Runs inside a process of its own: reads the tasks of a checkout of the released repository by running its code.

This file is started as a script by checkout.py and imports nothing of ours: the checkout's modules have names
like `src`, `schemas` and `taxonomy`, and must find neither ours nor each other's. A request is JSON on standard
input: `harness` (the folder that `src` is imported from), `folders` (of the tasks, by name) and `universal` (the
fields that every judge's answer has). For every task one JSON line goes out, `{"name", "tree"}` or
`{"name", "error"}`; what the checkout's own code prints goes to standard error.

A task's folder has a `config.py` that defines `CONFIG`. Its modules are imported by bare names from there, so
after each task every module that came from there is forgotten.
"""

from __future__ import annotations

import importlib.util
import inspect
import json
import os
import re
import sys
from pathlib import Path
from typing import Any

BINDING = re.compile(r"\{=\s*([A-Za-z0-9_.-]+)\s*=\}")
#: Kinds of closed sets as their fingerprints name them.
CLOSED = {"exact_set": "exact_set", "alias_map_set": "alias_set"}


def main() -> None:
    """Answer the request on standard input."""
    request = json.load(sys.stdin)
    # prints of the checkout's code must not stand between our lines
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    sys.path.insert(0, request["harness"])
    for name, folder in request["folders"].items():
        try:
            tree = tree_of(load_config(Path(folder)), None, frozenset(request["universal"]))
            line = json.dumps({"name": name, "tree": tree})
        except BaseException as error:  # noqa: BLE001  # a task that exits or raises anything fails alone
            line = json.dumps({"name": name, "error": f"{type(error).__name__}: {error}"})
        out.write(line + "\n")
        out.flush()


def load_config(folder: Path) -> Any:
    """`CONFIG` of a task's config.py, run with the task's folder first on the path and forgotten afterwards."""
    before = set(sys.modules)
    sys.path.insert(0, str(folder))
    try:
        spec = importlib.util.spec_from_file_location("config", folder / "config.py")
        if spec is None or spec.loader is None:
            raise ImportError(f"{folder / 'config.py'} can't be imported")
        module = importlib.util.module_from_spec(spec)
        sys.modules["config"] = module
        spec.loader.exec_module(module)
        return module.CONFIG
    finally:
        sys.path.remove(str(folder))
        for name in set(sys.modules) - before | {"config"}:
            if name == "config" or _came_from(sys.modules[name], folder):
                del sys.modules[name]
        importlib.invalidate_caches()


def _came_from(module: Any, folder: Path) -> bool:
    # a package without __init__.py has no file, only a path
    places = [getattr(module, "__file__", None), *getattr(module, "__path__", ())]
    return any(place and Path(place).is_relative_to(folder) for place in places)


def tree_of(config: Any, parent: str | None, universal: frozenset[str]) -> dict[str, Any]:
    """A TaskConfig and its subtasks in the form of a task file's `tree`."""
    name = config.name
    if parent is not None and not name.startswith(f"{parent}."):
        name = f"{parent}.{name}"
    bindings = {key: str(value) for key, value in dict(getattr(config, "bindings", None) or {}).items()}
    evaluation = getattr(config, "eval", None)
    return {
        "name": name,
        "text": bound(config.task_template, bindings),
        "keys": [_key(key, evaluation, bindings) for key in config.key_hierarchy],
        "judge": _judge(getattr(evaluation, "judge", None), bindings, universal),
        "subtasks": [tree_of(subtask, name, universal) for subtask in getattr(config, "subtasks", None) or ()],
    }


def bound(template: str | None, bindings: dict[str, str]) -> str | None:
    """A template with its `{= name =}` filled in; a name that nothing is bound to stays as it is written."""
    if template is None:
        return None
    return BINDING.sub(lambda match: bindings.get(match[1], match[0]), template)


def _settings(component: Any, key: str) -> Any:
    return (getattr(component, "keys", None) or {}).get(key)


def _key(key: Any, evaluation: Any, bindings: dict[str, str]) -> dict[str, Any]:
    found: dict[str, Any] = {
        "name": key.name,
        "fields": list(key.fields) if key.fields else [key.name],
        "required": key.required,
    }
    canon = _settings(getattr(evaluation, "canon", None), key.name)
    if canon is not None:
        found["canonicalize"] = {
            **norm_of(canon.norm),
            "llm": bool(getattr(canon, "llm", False)),
            "guidance": bound(getattr(canon, "prompt_section_template", None), bindings),
        }
    dedup = _settings(getattr(evaluation, "dedup", None), key.name)
    if dedup is not None:
        found["deduplicate"] = {
            "llm": bool(getattr(dedup, "llm", False)),
            "guidance": bound(getattr(dedup, "prompt_section_template", None), bindings),
        }
    judge = _settings(getattr(evaluation, "judge", None), key.name)
    note = bound(getattr(judge, "prompt_section_template", None), bindings)
    if note:
        found["invalid_if"] = note
    return found


def norm_of(norm: Any) -> dict[str, Any]:
    """A norm as data. The harness's own functions are told by their names; any other is the task's own."""
    kind, *rest = getattr(norm, "_wandr_fingerprint", None) or (None,)
    if kind in CLOSED:
        members = rest[0]
        if kind == "exact_set":
            # a set has no order of its own
            listed = sorted(members) if isinstance(members, (set, frozenset)) else list(members)
            return {"norm": "exact_set", "members": listed}
        pairs = members.items() if isinstance(members, dict) else members
        return {
            "norm": "alias_set",
            "members": {
                canonical: sorted(aliases) if isinstance(aliases, (set, frozenset)) else list(aliases)
                for canonical, aliases in pairs
            },
        }
    if norm is None:
        return {"norm": "text"}
    name = norm if isinstance(norm, str) else getattr(norm, "__name__", type(norm).__name__)
    is_released = isinstance(norm, str) or (getattr(norm, "__module__", None) or "").startswith("src.")
    for known in ("url", "text"):
        if is_released and known in name:
            return {"norm": known}
    return {"norm": "custom", "custom": name}


def _judge(judge: Any, bindings: dict[str, str], universal: frozenset[str]) -> dict[str, Any]:
    schema = getattr(judge, "schema", None)
    found: dict[str, Any] = {
        "summary": inspect.getdoc(schema) if schema is not None else None,
        "guidance": bound(getattr(judge, "prompt_section_template", None), bindings),
        "validity": [],
        "requirements": [],
    }
    fields = dict(getattr(schema, "model_fields", None) or {})
    others = []
    for name, field in fields.items():
        base, _, ending = name.rpartition("_")
        description = bound(field.description, bindings) or ""
        if name in universal:
            continue
        if ending == "valid":
            found["validity"].append({"name": base, "description": description})
        elif ending == "satisfied" and f"{base}_supported" in fields:
            continue  # comes with its pair
        elif ending == "supported":
            pair = fields.get(f"{base}_satisfied")
            asked = {} if pair is None else {"satisfied": bound(pair.description, bindings) or ""}
            found["requirements"].append({"name": base, **asked, "supported": description})
        else:
            others.append({"name": name, "type": str(field.annotation), "description": description})
    if others:
        found["other_fields"] = others
    return found


if __name__ == "__main__":
    main()
