"""The JSON Schemas of a run's files, for other people's scripts.

They are made from the models (core/model.py) and kept as files; `python -m core.schemas` writes them anew, and a
test compares.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

#: File of a run → name of its schema.
FILES: Final[Mapping[str, str]] = {
    "run.json": "run",
    "summary.json": "summary",
    "tasks.jsonl": "task",
    "submissions.jsonl": "submission",
    "judgements.jsonl": "judgement",
    "scores.jsonl": "score",
}
_DRAFT: Final = "https://json-schema.org/draft/2020-12/schema"


def load(name: str) -> dict[str, Any]:
    """The schema of one kind of row or file."""
    text = files("core.schemas").joinpath(f"{name}.schema.json").read_text(encoding="utf-8")
    schema: dict[str, Any] = json.loads(text)
    return schema


def build() -> dict[str, dict[str, Any]]:
    """Every schema, made from the models."""
    from pydantic import BaseModel

    from core.comparison.results import Comparison
    from core.model import Judgement, Submission, Summary, Task, TaskScore
    from core.runfolder import SCHEMAS, RunFile
    from core.sweep import SweepFile

    models: dict[str, type[BaseModel]] = {
        "run": RunFile,
        "summary": Summary,
        "task": Task,
        "submission": Submission,
        "judgement": Judgement,
        "score": TaskScore,
        "compare": Comparison,
        "sweep": SweepFile,
    }
    built: dict[str, dict[str, Any]] = {}
    for name, model in models.items():
        written_only = name in ("summary", "score", "compare", "sweep")
        schema = model.model_json_schema(mode="serialization" if written_only else "validation")
        schema["properties"] = {"schema": {"const": SCHEMAS[name]}, **schema["properties"]}
        schema["required"] = ["schema", *schema.get("required", [])]
        built[name] = {"$schema": _DRAFT, **schema}
    return built


def write(folder: Path) -> None:
    """Write every schema into a folder."""
    for name, schema in build().items():
        text = json.dumps(schema, indent=1, ensure_ascii=False)
        (folder / f"{name}.schema.json").write_text(text + "\n", encoding="utf-8")
