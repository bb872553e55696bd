"""The contract of a system: what the engine reads of it before a run, and what it may give."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from core.errors import CallError
from core.model import GRADED, Submission, Task
from core.parts import System
from core.runfolder import submission_row
from core.services import Services
from core.testing.claims import ContractBroken, as_json, claim, claim_dollars, claim_equal, claim_no_secret
from core.testing.parts import TEST_KEY, compose, sample_tasks, services

#: Attempts at each task; two at a time, so that state kept between calls shows.
_ATTEMPTS = (1, 2)


Make = Callable[[Services], System]


def system(name: str, *overrides: str) -> Make:
    """What makes the system `name` as a run has it: `system("echo", "effort=low")`.

    Raises InputError when the configuration or the adapter's name is refused.
    """
    config, plugins = compose(f"system={name}", *overrides)
    section = {**config.system.plain(), "effort_settings": config.effort_settings()}

    def make(services: Services) -> System:
        factory = plugins.factory("system", config.system.adapter)
        made: System = factory(section, replace(services, effort=config.effort_word()))
        return made

    return make


def check_system(
    make: Make,
    *,
    tasks: Sequence[Task] | None = None,
    secrets: Iterable[str] = (TEST_KEY,),
) -> list[Submission]:
    """Try the system on `tasks` (default: `sample_tasks()`), two attempts each; raises ContractBroken.

    `make` is a factory with its config: it gets services in which every API key is TEST_KEY, and gives a new
    system each time. Whatever that speaks to must be there: a server of the test's own, a file. Returns the
    submissions; a call that ended with a CallError gives none.
    """
    secrets = tuple(secrets)
    shown = [task.shown() for task in (sample_tasks() if tasks is None else tasks)]
    _check_attributes(make, secrets)
    return asyncio.run(_solve_all(make, shown, secrets))


def _check_attributes(make: Make, secrets: Sequence[str]) -> None:
    """What shapes an answer is in `settings`, the same each time; keys never are."""
    first, second = make(services()), make(services())
    settings = getattr(first, "settings", {})
    text = as_json(settings, "settings")
    claim_no_secret(text, secrets, "settings")
    claim_equal(as_json(getattr(second, "settings", {}), "settings"), text, "settings of a second instance")
    for name, kinds in (
        ("wire_version", str),
        ("account", (str, type(None))),
        ("stored", bool),
        ("can_block", bool),
    ):
        value = getattr(first, name, None)
        claim(
            not hasattr(first, name) or isinstance(value, kinds),
            f"{name}: see core/parts.py for its type; got {value!r}",
        )
    claim_dollars(getattr(first, "estimate_usd", None), "estimate_usd")
    check = getattr(first, "check", None)
    if check is not None:
        found = check()
        claim(
            isinstance(found, list) and all(isinstance(line, str) for line in found),
            f"check() gives a list of texts; got {found!r}",
        )
        claim_no_secret(" ".join(found), secrets, "what check() says")
        claim_equal(found, [], "check(): what is missing before a run can start")


async def _solve_all(make: Make, tasks: Sequence[Task], secrets: Sequence[str]) -> list[Submission]:
    submissions: list[Submission] = []
    given = services()
    system = make(given)

    def claim_no_key(text: str, what: str) -> None:
        # the engine takes out every key that was read through services.keys; others would be written
        claim_no_secret(given.keys.strip(text), secrets, what)

    try:
        check_tasks = getattr(system, "check_tasks", None)
        if check_tasks is not None:
            check_tasks({task.id for task in tasks})
        for task in tasks:
            before = as_json(task.model_dump(), f"task {task.id!r}")
            found = await asyncio.gather(*(_solve(system, task, attempt, claim_no_key) for attempt in _ATTEMPTS))
            claim_equal(as_json(task.model_dump(), f"task {task.id!r}"), before, f"task {task.id!r} after solve")
            submissions += [submission for submission in found if submission is not None]
    finally:
        close = getattr(system, "aclose", None)
        if close is not None:
            await close()
        await given.http.aclose()
    return submissions


async def _solve(
    system: System, task: Task, attempt: int, claim_no_key: Callable[[str, str], None]
) -> Submission | None:
    what = f"task {task.id!r}, attempt {attempt}"
    try:
        submission = await system.solve(task, attempt)
    except CallError as error:
        claim_no_key(f"{error} {error.raw}", f"{what}: the error")
        return None
    except Exception as error:
        kind = type(error).__name__
        raise ContractBroken(f"{what}: expected a Submission or a CallError, got {kind}: {error}") from error
    claim(isinstance(submission, Submission), f"{what}: expected a Submission, got {type(submission).__name__}")
    claim_equal((submission.task_id, submission.attempt), (task.id, attempt), f"{what}: whose submission it is")
    text = as_json(submission_row(submission), f"{what}: the submission")
    claim_no_key(text, f"{what}: the submission")
    claim_equal(
        Submission.model_validate(submission_row(submission)), submission, f"{what}: read back from its row"
    )
    submission = submission.settled()  # the engine does so: an answer without content is an empty one
    if submission.status in GRADED:
        claim(submission.error is None or submission.status == "incomplete", f"{what}: an answer with an error")
    else:
        claim(
            submission.error is not None or submission.status == "empty", f"{what}: {submission.status}, no reason"
        )
    return submission
