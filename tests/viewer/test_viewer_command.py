"""`python -m core.view`: what it refuses, what it prints, how it ends."""

from __future__ import annotations

import re
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from conftest import ROOT

from core.view import main


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["nowhere"], "nowhere: there is no such folder or file; expected a run, or a folder of runs"),
        ([], "runs: there is no such folder or file"),
        ([".", "--port", "70000"], "--port 70000: can't listen"),
    ],
)
def test_refused(in_tmp: Path, capsys: pytest.CaptureFixture[str], words: list[str], reason: str) -> None:
    assert main([*words, "--no-open"]) == 2
    assert reason in capsys.readouterr().err


def test_a_port_that_is_taken(in_tmp: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert main([".", "--no-open", "--port", str(port)]) == 2
    assert f"--port {port}: can't listen" in capsys.readouterr().err


@pytest.mark.parametrize("words", [["--prot", "1"], ["--port", "x"]])
def test_unknown_words(words: list[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert ended.value.code == 2


def test_it_serves_until_it_is_interrupted(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "run.json").write_text('{"exit_code": 0}')
    with subprocess.Popen(
        [sys.executable, "-m", "core.view", str(tmp_path), "--no-open"],
        cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        address, said = process.stdout.readline().strip(), process.stdout.readline()
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+/\?token=[\w-]{32}", address)
        assert said == "1 runs; Ctrl-C ends the viewer\n"
        opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
        with opener.open(address) as page:
            assert "<title>Runs – Leadline</title>" in page.read().decode()
        with pytest.raises(urllib.error.HTTPError, match="403"):
            urllib.request.urlopen(address.partition("?")[0])
        process.send_signal(signal.SIGINT)
        _, complaints = process.communicate(timeout=30)
        assert (process.returncode, complaints.strip()) == (0, "")


def test_nothing_heavy_is_imported_to_say_what_it_takes() -> None:
    code = "import core.view, sys; print(sorted({name.split('.')[0] for name in sys.modules}))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert not {"aiohttp", "jinja2", "numpy", "pydantic", "litellm"} & set(re.findall(r"\w+", done.stdout))
