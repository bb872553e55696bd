"""Which runs are of one system and which of one judge, and the names that tell them apart.

A name alone is not enough: `system=chat system.model=A,B` are two systems of one name. A system is its name, its
effort and the settings that shape its answers; a judge is its name and its settings.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from core.comparison.reading import Run
from core.comparison.rows import read_answers
from core.config import RunConfig, identity
from core.digest import json_digest, plain
from core.errors import InputError

#: Keys of a system's section that shape no answer: what is said of it, how it is paid, what a failure counts for.
#: The chosen effort's settings are looked at, not the list of all efforts.
_NO_ANSWER: Final = frozenset(
    {"name", "label", "family", "api_key_env", "on_failure", "default_effort", "efforts"}
)
#: The adapter that hands out answers of another run.
_REPLAY: Final = "replay"
#: So much of a digest is shown.
_SHOWN: Final = 6


def system_settings(config: RunConfig) -> dict[str, Any]:
    """What shapes a system's answers: adapter, model, target, … and what its effort sets. Keys that are null are
    left out, so that a run from before a key existed is still the same system."""
    tree = plain(config.model_dump())
    tree["system"] = {**tree["system"], **plain(config.effort_settings())}
    settings = identity(tree)["system"]
    return {key: value for key, value in settings.items() if key not in _NO_ANSWER and value is not None}


def system_names(runs: Sequence[Run]) -> tuple[str, ...]:
    """Each run's system by a name that no other system has: where settings differ, with the model or a digest.

    A replay is the system whose answers it holds, where another run of that name has the very same ones.
    """
    keys = [json_digest(system_settings(run.config)) for run in runs]
    by_name: dict[str, list[int]] = {}
    for place, run in enumerate(runs):
        by_name.setdefault(run.system, []).append(place)
    for places in by_name.values():
        if len({keys[place] for place in places}) > 1:
            _join_replays(runs, places, keys)
    found = []
    for place, run in enumerate(runs):
        models = {keys[other]: _model(runs[other]) for other in by_name[run.system]}
        told = len(set(models.values())) == len(models) and None not in models.values()
        mark = models[keys[place]] if told else keys[place][:_SHOWN]
        found.append(run.system if len(models) == 1 else run.system_with(f" [{mark}]"))
    return tuple(found)


def judge_names(runs: Sequence[Run]) -> tuple[str, ...]:
    """Each run's judge by name; judges of one name and different settings are told apart by their digest."""
    digests: dict[str, set[str]] = {}
    for run in runs:
        digests.setdefault(run.judge, set()).add(run.judge_digest)
    return tuple(
        run.judge if len(digests[run.judge]) == 1 else f"{run.judge} [{run.judge_digest[:_SHOWN]}]" for run in runs
    )


def _join_replays(runs: Sequence[Run], places: Sequence[int], keys: list[str]) -> None:
    """Give each replay the key of the first run of its name that has the same answers."""
    answers: dict[int, dict[tuple[str, int], str]] = {}
    for place in places:
        try:
            answers[place] = read_answers(runs[place].path, [])
        except InputError:
            answers[place] = {}
    # live runs first: a replay joins them, not the other way round
    ordered = sorted(places, key=lambda place: _is_replay(runs[place]))
    for at, place in enumerate(ordered):
        if not _is_replay(runs[place]):
            continue
        for other in ordered[:at]:
            both = answers[place].keys() & answers[other].keys()
            # a replay that states another model is what it states
            if (
                _model(runs[place]) in (None, _model(runs[other]))
                and both
                and all(answers[place][key] == answers[other][key] for key in both)
            ):
                keys[place] = keys[other]
                break


def _is_replay(run: Run) -> bool:
    return run.config.system.adapter == _REPLAY


def _model(run: Run) -> str | None:
    model = system_settings(run.config).get("model")
    return model if isinstance(model, str) else None
