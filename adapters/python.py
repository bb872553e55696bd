"""system=python: a function of the user's, which is how a lab holds its agent.

    python -m core.run benchmark=draco system=python system.target=my_agent.main:answer

The function takes `(task, effort)`: the task as a system is shown it (core/model.py: Task, with the prompt,
the output schema, the files that are asked for and the list of blocked sites), and the run's effort word or
None. It returns

    a text                    the answer
    a mapping                 some fields of a submission: {"text": …, "citations": […], "cost_usd": …}
    a core.model.Submission   all of it; its task_id and attempt must be those that were asked for

It may be `async` or not; one that is not runs in a thread of its own. What it raises becomes the attempt's
error; a `core.errors.CallError` keeps its kind, so that `rate_limit` is retried and `key` stops the run. The
module is imported with the current folder importable, as `python -m` has it.

A thread can't be stopped: a function that is not async and runs past `timeout_s` goes on in the background
until it returns. It does not keep the process from ending.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import importlib
import inspect
import sys
import threading
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final

from pydantic import ValidationError

from adapters._rows import BadRowError, Origin, check_file_names
from core.digest import canonical_json, file_digest, plain
from core.errors import CallError, InputError, LeadlineError
from core.model import Submission, Task
from core.section import Section
from core.services import Services

_EXPECTED: Final = "pkg.module:function"


class Python:
    """A function as a system. `can_block`: the task that it gets carries the blocked sites."""

    can_block: Final = True

    def __init__(
        self,
        function: Callable[..., Any],
        *,
        timeout_s: float,
        origin: Origin,
        services: Services,
        estimate_usd: float | None = None,
    ) -> None:
        self.settings = origin.settings
        self.estimate_usd = estimate_usd
        self._function, self._timeout_s = function, timeout_s
        self._origin, self._services = origin, services

    async def solve(self, task: Task, attempt: int) -> Submission:
        """One call of the function."""
        clock = self._services.clock
        start = clock.monotonic()
        try:
            async with asyncio.timeout(self._timeout_s) as deadline:
                answer = await self._call(task)
        except (Exception, asyncio.CancelledError, SystemExit) as error:
            if not deadline.expired():
                raise self._named(error) from error
        if deadline.expired():
            message = f"{self._target} did not return within {self._timeout_s:g} s (system.timeout_s)"
            return self._origin.ended(task.id, attempt, "timed_out", message, clock.monotonic() - start)
        try:
            row = as_submission(answer, task.id, attempt)
        except BadRowError as error:
            message = self._services.keys.redact(f"what {self._target} returned is not an answer: {error}")
            raise CallError("malformed", message) from error
        return self._origin.own(row, clock.monotonic() - start)

    def _named(self, error: BaseException) -> BaseException:
        """What the function raised, as what the engine is told."""
        if isinstance(error, LeadlineError):
            return error
        task = asyncio.current_task()
        if isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling():
            return error  # the run was cancelled; otherwise it is the function's own and no end of ours
        said = f"{type(error).__name__}: {error}".encode("utf-8", "replace").decode()
        text = self._services.keys.redact(said)
        return CallError("crash", f"{self._target} raised {text}")

    @property
    def _target(self) -> str:
        return str(self.settings["target"])

    async def _call(self, task: Task) -> Any:
        effort = self._origin.effort
        if is_async(self._function):
            return await self._function(task, effort)
        answer = await _in_thread(self._function, task, effort)
        # a plain function may hand back a coroutine (a partial, a decorator)
        return await answer if inspect.isawaitable(answer) else answer


def as_submission(answer: Any, task_id: str, attempt: int) -> Submission:
    """What a function returned, as a submission. Raises BadRowError."""
    if isinstance(answer, Submission):
        fields: Mapping[str, Any] = answer.model_dump()
    elif isinstance(answer, str):
        fields = {"text": answer}
    elif isinstance(answer, Mapping):
        fields = answer
    else:
        got = type(answer).__name__
        raise BadRowError("not an answer", expected="a text, a mapping or a core.model.Submission", got=got)
    for key in fields:
        if key not in Submission.model_fields:
            close = get_close_matches(str(key), Submission.model_fields, n=1)
            hint = f"; did you mean {close[0]!r}?" if close else ""
            known = ", ".join(Submission.model_fields)
            raise BadRowError(f"no such field{hint}", at=str(key), expected=f"fields out of {known}")
    try:
        row = Submission.model_validate({"task_id": task_id, "attempt": attempt, **fields})
        # a row is written as JSON: what JSON can't hold is refused here, where the function can be named
        canonical_json(plain(row.model_dump())).encode()
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(str(part) for part in first["loc"]) or None
        raise BadRowError(first["msg"], at=place, expected="a field of a submission") from None
    except (ValueError, TypeError, RecursionError) as error:
        raise BadRowError(str(error), expected="fields that JSON can hold") from None
    if (row.task_id, row.attempt) != (task_id, attempt):
        got = f"task {row.task_id!r}, attempt {row.attempt}"
        raise BadRowError("of another request", expected=f"task {task_id!r}, attempt {attempt}", got=got)
    check_file_names(row.files)
    return row


async def _in_thread(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call in a daemon thread: a pool's threads are waited for at exit, and one that hangs would hang it."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[tuple[Any, BaseException | None]] = loop.create_future()
    context = contextvars.copy_context()

    def settle(result: Any, error: BaseException | None) -> None:
        if not done.done():  # else the deadline passed
            done.set_result((result, error))

    def work() -> None:
        result, error = None, None
        try:
            result = context.run(function, *arguments)
        except BaseException as raised:  # noqa: BLE001 (handed over to the waiting task)
            error = raised
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(settle, result, error)

    threading.Thread(target=work, name="leadline-python-system", daemon=True).start()
    result, error = await done
    if error is None:
        return result
    if isinstance(error, Exception):
        raise error
    # a SystemExit or a CancelledError of a thread means nothing to this task
    raise RuntimeError(f"{type(error).__name__}: {error}") from error


def is_async(function: Callable[..., Any]) -> bool:
    """Whether a call gives a coroutine: an async function, or an object whose `__call__` is one."""
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
        getattr(function, "__call__", None)  # noqa: B004 (not whether it can be called, but how)
    )


def load(target: str) -> Callable[..., Any]:
    """The function that `pkg.module:function` names. Raises InputError, with the import's own error."""
    module_name, colon, path = target.partition(":")
    if not colon or not module_name or not path:
        raise _refuse(target, "no module and function")
    if "" not in sys.path and str(Path.cwd()) not in sys.path:
        # what `python -m` does, and a console script does not
        sys.path.insert(0, str(Path.cwd()))
    try:
        found: Any = importlib.import_module(module_name)
    except (Exception, SystemExit) as error:  # whatever the user's module does while it is imported
        raise _refuse(target, f"importing {module_name} failed: {type(error).__name__}: {error}") from error
    for name in path.split("."):
        if not hasattr(found, name):
            close = get_close_matches(name, [known for known in dir(found) if known[:1] != "_"], n=1)
            hint = f"; did you mean {close[0]!r}?" if close else ""
            raise _refuse(target, f"{module_name} has no {path!r}{hint}")
        found = getattr(found, name)
    if not callable(found) or inspect.isclass(found):
        raise _refuse(target, f"{path!r} is not a function but {_kind(found)}")
    function: Callable[..., Any] = found
    try:
        inspect.signature(function).bind("task", "effort")
    except TypeError as error:
        given = f"{path}{inspect.signature(function)}"
        raise _refuse(target, f"{given} can't be called with (task, effort): {error}") from error
    except ValueError:
        return function  # a built-in without a signature: the call will tell
    return function


def _kind(found: Any) -> str:
    return "a class" if inspect.isclass(found) else f"of type {type(found).__name__}"


def _refuse(target: str, message: str) -> InputError:
    return InputError(message, where="system.target", expected=_EXPECTED, got=repr(target))


def python(config: Mapping[str, Any], services: Services) -> Python:
    """The factory: imports the target. Raises InputError when there is none that can be called."""
    section = Section(config).with_effort(())
    target = section.text("target", _EXPECTED)
    timeout_s = section.seconds("timeout_s")
    function = load(target)
    settings = {"target": target, "source_digest": source_digest(target), "effort": services.effort}
    return Python(
        function,
        timeout_s=timeout_s,
        origin=Origin(section.text("name"), services.effort, settings),
        services=services,
        estimate_usd=section.number_or_none("estimate_usd"),
    )


def source_digest(target: str) -> str | None:
    """SHA-256 of the target module's file: an edited agent is asked anew. What it imports does not count.

    None for a module without a file (made in an interactive session).
    """
    module = sys.modules[target.partition(":")[0]]
    file = getattr(module, "__file__", None)
    return file_digest(Path(file)) if file and Path(file).is_file() else None
