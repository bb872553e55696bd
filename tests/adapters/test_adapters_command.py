"""system=command: real programs, and how each of their ends is read."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import stat
import sys
import tempfile
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from adapters_helpers import TASK, Log, config, services

from adapters import _process
from adapters.command import Command, command, resolve, source_digest
from core.errors import CallError, InputError
from core.model import Task

PRELUDE = "import json, os, signal, subprocess, sys, time\nask = json.loads(sys.stdin.readline())\n"
ANSWER = "print(json.dumps({'text': 'an answer'}))\n"

Program = Callable[..., Command]


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Where temporary folders go; whatever a test does, none may be left."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setattr(_process, "GRACE_S", 0.3)
    yield folder
    assert list(folder.iterdir()) == []


@pytest.fixture
def program(tmp_path: Path) -> Program:
    """`program(body)`: a system that runs a Python script with this body; the request is `ask`."""

    def build(
        body: str,
        *,
        effort: str | None = None,
        prelude: str = PRELUDE,
        log: Log | None = None,
        **changes: Any,
    ) -> Command:
        script = tmp_path / "agent.py"
        script.write_text(prelude + textwrap.dedent(body))
        words = [sys.executable, str(script)]
        return command(
            config("command", **{"command": words, "timeout_s": 20, **changes}), services(effort, log=log)
        )

    return build


async def test_a_program_answers(program: Program) -> None:
    system = program(
        """
        print("thinking aloud")
        print(json.dumps({"task_id": "t1", "attempt": 2, "text": ask["prompt"].upper(), "cost_usd": 0.5,
                          "citations": [{"url": "https://a.example"}], "usage": {"output": 3},
                          "settings": {"model": "m"}, "system": "another name"}))
        print()
        """,
        effort="high",
    )
    assert system.check() == []
    row = await system.solve(TASK, 2)
    assert (row.status, row.text) == ("completed", TASK.prompt.upper())
    assert (row.system, row.effort) == ("command", "high")
    assert row.settings == {**system.settings, "reported": {"model": "m"}}
    assert (row.cost_usd, row.cost_source) == (0.5, "reported")
    assert row.citations[0].url == "https://a.example"
    assert row.latency_s is not None
    assert row.latency_s > 0


async def test_the_request_is_the_protocols(program: Program) -> None:
    system = program(
        """
        extra = sys.stdin.read()
        seen = {**ask, "workdir": os.path.samefile(ask["workdir"], os.getcwd()), "extra": extra,
                "output_dir": os.listdir(ask["output_dir"])}
        print(json.dumps({"text": json.dumps(seen)}))
        """,
        effort="low",
    )
    row = await system.solve(TASK, 3)
    assert json.loads(row.text or "") == {
        "protocol": "leadline/1",
        "task_id": "t1",
        "attempt": 3,
        "prompt": TASK.prompt,
        "effort": "low",
        "output_schema": {"type": "object"},
        "required_files": ["rivers.csv"],
        "blocked": ["blocked.example"],
        "workdir": True,
        "output_dir": [],
        "timeout_s": 20,
        "extra": "",
    }


TERMINAL = {
    "an empty text": ("print(json.dumps({'text': ''}))", "empty", None),
    "nothing at all": ("", "empty", None),
    "its own refusal": ("print(json.dumps({'status': 'refused', 'text': 'I can not'}))", "refused", None),
    "cut short": ("print(json.dumps({'status': 'incomplete', 'text': 'half'}))", "incomplete", None),
    "a line, then a crash": (ANSWER + "sys.exit(3)", "completed", None),
    "a crash": ("raise RuntimeError('no such river')", "crash", "exit code 1; stderr: .*no such river"),
    "a signal": ("os.kill(os.getpid(), signal.SIGKILL)", "crash", "ended by SIGKILL"),
    "files, then a crash": (
        "open(os.path.join(ask['output_dir'], 'a.txt'), 'w').write('x'); sys.exit(4)",
        "crash",
        "no submission line: it ended with exit code 4",
    ),
    "no JSON": ("print('done!')", "malformed", "last line of stdout is not a submission: invalid JSON"),
    "a list": ("print([])", "malformed", "not an object"),
    "a wrong type": ("print(json.dumps({'text': 5}))", "malformed", "field text: .*expected a text"),
    "another task": ("print(json.dumps({'task_id': 't2', 'text': 'x'}))", "malformed", "task_id.*'t1'; got 't2'"),
    "another attempt": ("print(json.dumps({'attempt': 9, 'text': 'x'}))", "malformed", "attempt.*1; got 9"),
    "a file outside": ("print(json.dumps({'files': {'../x': 'y'}}))", "malformed", "field files.*without .."),
    "not UTF-8": ("sys.stdout.buffer.write(bytes([34, 255, 34]))", "malformed", "invalid JSON"),
}


@pytest.mark.parametrize(("body", "status", "message"), TERMINAL.values(), ids=TERMINAL)
async def test_how_an_end_is_read(body: str, status: str, message: str | None, program: Program) -> None:
    system = program(body)
    if message is None:
        row = await system.solve(TASK, 1)
        assert (row.status, row.error) == (status, None)
        return
    with pytest.raises(CallError) as caught:
        await system.solve(TASK, 1)
    assert caught.value.kind == status
    assert re.search(message, caught.value.message, re.DOTALL)


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        ({"kind": "rate_limit", "message": "slow"}, "rate_limit"),
        ({"kind": "key"}, "key"),
        ({"kind": "budget"}, "crash"),
        ({"kind": "gremlins", "message": "m"}, "crash"),
        (None, "crash"),
    ],
    ids=["to be retried", "stops the run", "only ours to say", "unknown", "without a reason"],
)
async def test_an_error_it_reports_is_the_engines_to_handle(error: Any, kind: str, program: Program) -> None:
    system = program(f"print(json.dumps({{'status': 'error', 'error': {error!r}}}))")
    with pytest.raises(CallError) as caught:
        await system.solve(TASK, 1)
    assert caught.value.kind == kind


async def test_a_program_need_not_read_its_stdin(program: Program) -> None:
    big = Task(id="t1", prompt="x" * 1_000_000)
    row = await program("import json\n" + ANSWER, prelude="").solve(big, 1)
    assert row.text == "an answer"


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
async def test_output_is_drained(stream: str, program: Program) -> None:
    body = f"for _ in range(300): sys.{stream}.write('x' * 9999 + chr(10))\nsys.{stream}.flush()\n{ANSWER}"
    row = await program(body).solve(TASK, 1)
    assert row.text == "an answer"


async def test_a_flood_is_stopped(program: Program) -> None:
    with pytest.raises(CallError, match="more than 100000 bytes to stdout") as caught:
        await program("while True: print('x' * 9999)", max_output_bytes=100_000).solve(TASK, 1)
    assert caught.value.kind == "malformed"


async def test_the_end_of_stderr_is_kept(program: Program) -> None:
    with pytest.raises(CallError) as caught:
        await program("sys.stderr.write('a' * 90_000 + 'the reason'); sys.exit(1)").solve(TASK, 1)
    assert caught.value.message.endswith("a" * 50 + "the reason")
    assert len(caught.value.message) < 10_000


def lives(pid: int) -> bool:
    """Whether a process runs; one that only waits to be collected does not."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return not Path("/proc/self").exists()


CHILD = """
child = subprocess.Popen([sys.executable, "-c", {code!r}])
open({note!r}, "w").write(f"{{os.getpid()}} {{child.pid}} ")
"""
SLEEPER = "import time; time.sleep(600)"
FOREVER = "time.sleep(600)\n"


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not condition():  # noqa: ASYNC110 (what other processes do sets no event)
            await asyncio.sleep(0.01)


def ended(note: Path) -> Callable[[], bool]:
    """Whether all noted processes have ended; SIGKILL is not instant."""
    pids = [int(pid) for pid in note.read_text().split()]
    assert len(pids) == 2
    return lambda: not any(lives(pid) for pid in pids)


@pytest.mark.parametrize("child", ["", "trap '' TERM;"], ids=["child ends on TERM", "child ignores TERM"])
@pytest.mark.parametrize("parent", ["", "trap '' TERM;"], ids=["parent ends on TERM", "parent ignores TERM"])
async def test_the_deadline_ends_the_whole_group(parent: str, child: str, tmp_path: Path) -> None:
    note = tmp_path / "pids"
    script = f"{parent} ({child} exec sleep 600) & echo $$ $! > {note}; wait; wait; sleep 600"
    system = command(config("command", command=["sh", "-c", script], timeout_s=0.8), services())
    row = await system.solve(TASK, 1)
    assert row.status == "timed_out"
    assert row.error is not None
    assert "did not end within 0.8 s (system.timeout_s)" in row.error.message
    await until(ended(note))


async def test_what_a_program_leaves_behind_is_ended(program: Program, tmp_path: Path) -> None:
    """The child holds stdout open: the answer does not wait for it."""
    note = tmp_path / "pids"
    row = await program(CHILD.format(code=SLEEPER, note=str(note)) + ANSWER).solve(TASK, 1)
    assert row.text == "an answer"
    await until(ended(note))


async def test_a_child_that_left_the_group_does_not_hold_up_the_answer(program: Program, tmp_path: Path) -> None:
    note = tmp_path / "pid"
    body = f"""
    child = subprocess.Popen([sys.executable, "-c", {SLEEPER!r}], start_new_session=True)
    open({str(note)!r}, "w").write(str(child.pid))
    print(json.dumps({{"text": "an answer"}}))
    """
    try:
        row = await program(body).solve(TASK, 1)
        assert row.text == "an answer"
    finally:
        os.kill(int(note.read_text()), 9)


async def test_a_cancelled_run_ends_the_group(program: Program, tmp_path: Path) -> None:
    note = tmp_path / "pids"
    system = program(CHILD.format(code=SLEEPER, note=str(note)) + FOREVER)
    solving = asyncio.create_task(system.solve(TASK, 1))
    await until(lambda: note.exists() and note.read_text().endswith(" "))
    solving.cancel()
    with pytest.raises(asyncio.CancelledError):
        await solving
    await until(ended(note))


async def test_attempts_run_at_once(program: Program, tmp_path: Path) -> None:
    """Each waits for the other's mark, so neither ends unless both run."""
    system = program(
        f"""
        marks = [os.path.join({str(tmp_path)!r}, name) for name in ("mark1", "mark2")]
        open(marks[ask["attempt"] - 1], "w").close()
        while not all(map(os.path.exists, marks)):
            time.sleep(0.01)
        print(json.dumps({{"text": str(ask["attempt"])}}))
        """
    )
    rows = await asyncio.gather(system.solve(TASK, 1), system.solve(TASK, 2))
    assert [row.text for row in rows] == ["1", "2"]


async def test_files_left_in_output_dir_are_read(program: Program) -> None:
    system = program(
        """
        os.chdir(ask["output_dir"])
        os.makedirs("sub/deep")
        open("b.txt", "w").write("b")
        open("sub/deep/ä.csv", "w", encoding="utf-8").write("x,y\\nß")
        open("empty", "w").close()
        print(json.dumps({"text": "see files", "files": {"c.txt": "c", "b.txt": "older"}}))
        """
    )
    row = await system.solve(TASK, 1)
    assert row.files == {"b.txt": "b", "c.txt": "c", "empty": "", "sub/deep/ä.csv": "x,y\nß"}


async def test_files_alone_are_an_answer(program: Program) -> None:
    row = await program("open(ask['output_dir'] + '/a.jsonl', 'w').write('{}')").solve(TASK, 1)
    assert (row.status, row.text, row.files) == ("completed", None, {"a.jsonl": "{}"})


TRICKS = {
    "a symbolic link": "os.symlink(SECRET, 'trick')",
    "a hard link": "os.link(SECRET, 'trick')",
    "a link to a folder": "os.symlink(os.path.dirname(SECRET), 'trick')",
    "a named pipe": "os.mkfifo('trick')",
    "a socket": "import socket; socket.socket(socket.AF_UNIX).bind('trick')",
}


@pytest.mark.parametrize("trick", TRICKS.values(), ids=TRICKS)
async def test_links_and_special_files_are_not_read(trick: str, program: Program, tmp_path: Path) -> None:
    secret = tmp_path / "secret" / "key"
    secret.parent.mkdir()
    secret.write_text("the secret")
    body = f"SECRET = {str(secret)!r}\nos.chdir(ask['output_dir'])\n{trick}\nopen('good', 'w').write('ok')\n"
    log = Log()
    row = await program(body, log=log).solve(TASK, 1)
    assert row.files == {"good": "ok"}
    assert log.warnings == [("output_files_skipped", {"task_id": "t1", "names": ["trick"]})]


FILE_FAULTS = {
    "too many": ("for n in range(4): open(str(n), 'w').close()", "more than 3 files"),
    "too large together": ("for n in 'ab': open(n, 'w').write('x' * 600)", "more than 1000 bytes"),
    "one too large": ("open('a', 'wb').truncate(10 ** 9)", "more than 1000 bytes"),
}


@pytest.mark.parametrize(
    "body",
    ["open('a.bin', 'wb').write(bytes([255, 0]))", "open(b'\\xff.txt', 'w').close()"],
    ids=["content", "name"],
)
async def test_files_that_are_no_text_are_left_out(body: str, program: Program) -> None:
    if sys.platform == "darwin" and body.startswith("open(b"):
        pytest.skip("macOS file systems refuse such names")
    row = await program(f"os.chdir(ask['output_dir'])\nopen('b.txt', 'w').write('x')\n{body}\n{ANSWER}").solve(
        TASK, 1
    )
    assert (row.text, row.files) == ("an answer", {"b.txt": "x"})


@pytest.mark.parametrize(("body", "message"), FILE_FAULTS.values(), ids=FILE_FAULTS)
async def test_files_that_can_not_be_read_fail_the_attempt(body: str, message: str, program: Program) -> None:
    full = f"os.chdir(ask['output_dir'])\n{body}\n"
    with pytest.raises(CallError, match=message) as caught:
        await program(full, max_files=3, max_output_bytes=1000).solve(TASK, 1)
    assert caught.value.kind == "malformed"


async def test_the_environment_is_small(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "not for you")
    monkeypatch.setenv("AGENT_TOKEN", "hush-hush-1234")
    monkeypatch.setenv("AGENT_MODE", "thorough")
    system = program(
        "print(json.dumps({'text': json.dumps(dict(os.environ))}))", env=["AGENT_TOKEN", "AGENT_MODE"]
    )
    seen = json.loads((await system.solve(TASK, 1)).text or "")
    assert seen["AGENT_TOKEN"] == "hush-hush-1234"
    assert seen["AGENT_MODE"] == "thorough"
    assert seen["PATH"] == os.environ["PATH"]
    assert "OPENAI_API_KEY" not in seen


async def test_keys_are_kept_out_of_errors_and_settings(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENT_TOKEN", "hush-hush-1234")
    system = program("sys.exit('bad token ' + os.environ['AGENT_TOKEN'])", env=["AGENT_TOKEN"])
    with pytest.raises(CallError, match=r"bad token \[redacted\]"):
        await system.solve(TASK, 1)
    assert "hush" not in json.dumps(dict(system.settings))


async def test_a_workdir_of_the_users_is_used_and_kept(program: Program, tmp_path: Path) -> None:
    folder = tmp_path / "work"
    folder.mkdir()
    system = program("open('left', 'w').close()\n" + ANSWER, workdir=str(folder))
    row = await system.solve(TASK, 1)
    assert row.text == "an answer"
    assert [path.name for path in folder.iterdir()] == ["left"]


async def test_folders_without_permissions_are_removed(program: Program) -> None:
    """`temporary` checks that nothing is left."""
    row = await program("os.makedirs('a/b'); os.chmod('a', 0)\n" + ANSWER).solve(TASK, 1)
    assert row.text == "an answer"


UNSTARTABLE = {
    "not in PATH": (["no-such-program-7"], "not an executable file or a program in PATH"),
    "no such file": (["./no-such-file"], "not an executable file"),
    "not executable": (["{dir}/plain"], "not an executable file"),
}


@pytest.mark.parametrize(("words", "message"), UNSTARTABLE.values(), ids=UNSTARTABLE)
async def test_what_can_not_be_started_is_found_by_the_preflight(
    words: list[str], message: str, tmp_path: Path
) -> None:
    (tmp_path / "plain").write_text("no program")
    words = [word.format(dir=tmp_path) for word in words]
    system = command(config("command", command=words), services())
    (problem,) = system.check()
    assert message in problem
    with pytest.raises(CallError, match=r"system\.command can't be started"):
        await system.solve(TASK, 1)


def test_the_preflight_lists_everything_at_once(tmp_path: Path) -> None:
    changes = {"command": "no-such-program-7", "workdir": str(tmp_path / "none"), "env": ["NOT_SET_ANYWHERE"]}
    problems = command(config("command", **changes), services()).check()
    assert [problem.partition(":")[0] for problem in problems] == [
        "system.command",
        "system.workdir",
        "system.env",
    ]
    assert not (tmp_path / "none").exists()


BAD_CONFIG = {
    "no command": ({}, r"system\.command.*got null"),
    "an empty command": ({"command": ""}, r"system\.command"),
    "a number": ({"command": 5}, r"system\.command.*a list of texts or one text"),
    "an open quote": ({"command": "a 'b"}, r"system\.command.*No closing quotation"),
    "env with values": ({"command": "a", "env": ["A=b"]}, r"system\.env.*without values"),
    "env a text": ({"command": "a", "env": "A"}, r"system\.env.*a list of texts"),
    "no time": ({"command": "a", "timeout_s": 0}, r"system\.timeout_s"),
    "no output": ({"command": "a", "max_output_bytes": 0}, r"system\.max_output_bytes.*at least 1"),
    "files true": ({"command": "a", "max_files": True}, r"system\.max_files.*got True \(bool\)"),
    "effort settings": ({"command": "a", "effort_settings": {"x": 1}}, r"system\.efforts.*can't set 'x'"),
}


@pytest.mark.parametrize(("changes", "message"), BAD_CONFIG.values(), ids=BAD_CONFIG)
def test_a_bad_config_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        command(config("command", **changes), services())


async def test_no_shell_is_involved() -> None:
    words = f"{sys.executable} -c 'import sys, json; print(json.dumps(dict(text=sys.argv[1])))' '$HOME; *'"
    row = await command(config("command", command=words), services()).solve(TASK, 1)
    assert row.text == "$HOME; *"


async def test_files_among_the_words_are_found_from_where_the_run_began(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    script = tmp_path / "agent"
    script.write_text(f'#!{sys.executable}\nprint(\'{{"text": "ran"}}\')')
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    for words in (["./agent"], [sys.executable, "agent"]):
        system = command(config("command", command=words), services())
        assert system.check() == []
        assert (await system.solve(TASK, 1)).text == "ran"


def test_words_and_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    work = tmp_path / "work"
    work.mkdir()
    for path in (tmp_path / "run", tmp_path / "here.py", work / "there.py"):
        path.write_text("x")
    words = ("run", "here.py", "there.py", "-v", "a\0b", "x" * 5000)
    assert resolve(words, work) == (
        "run",
        str(tmp_path / "here.py"),
        str(work / "there.py"),
        "-v",
        "a\0b",
        "x" * 5000,
    )


def test_an_edited_program_is_another_system(tmp_path: Path) -> None:
    script = tmp_path / "agent.py"
    script.write_text("1")
    before = source_digest(["python", str(script)], None)
    assert source_digest(["python", str(script)], None) == before
    script.write_text("2")
    assert source_digest(["python", str(script)], None) != before


def test_the_effort_is_part_of_the_settings() -> None:
    made = [command(config("command", command="x"), services(effort)).settings for effort in ("low", "high")]
    assert [settings["effort"] for settings in made] == ["low", "high"]
