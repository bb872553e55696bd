"""The browser's one way out: a proxy that asks the guard."""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from fakes.pages import answer, page, page_server

from core.pages.browser import Browser, BrowserError, doorman
from core.pages.guard import Guard, Refusal
from core.store import _started


async def through(port: int, request: str, then: str = "") -> bytes:
    """What comes back from a proxy for a request, and for what is sent through its tunnel."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request.encode())
    if then:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(then.encode())
    found = await reader.read()
    writer.close()
    return found


async def inside(host: str) -> Sequence[str]:
    return ["127.0.0.1"]


@pytest.mark.parametrize(
    "request_line",
    [
        pytest.param("CONNECT 127.0.0.1:{port} HTTP/1.1", id="a tunnel to loopback"),
        pytest.param("CONNECT inside.example:{port} HTTP/1.1", id="a tunnel to a name that leads inside"),
        pytest.param("CONNECT [::ffff:127.0.0.1]:{port} HTTP/1.1", id="a tunnel to mapped loopback"),
        pytest.param("GET http://127.0.0.1:{port}/ HTTP/1.1", id="plain loopback"),
        pytest.param("GET http://2130706433:{port}/ HTTP/1.1", id="decimal loopback"),
        pytest.param("GET http://inside.example:{port}/ HTTP/1.1", id="a name that leads inside"),
        pytest.param("GET file:///etc/passwd HTTP/1.1", id="a file"),
        pytest.param("GET /etc/passwd HTTP/1.1", id="a path"),
    ],
)
async def test_what_the_guard_refuses_is_not_reached(request_line: str) -> None:
    async with page_server({"/": page("inside")}) as server, doorman(Guard(resolve=inside)) as port:
        said = await through(port, request_line.format(port=server.port) + "\r\nHost: x\r\n\r\n")
    assert said.startswith(b"HTTP/1.1 403")
    assert server.seen == []


async def test_what_the_guard_allows_is_passed_on() -> None:
    async with (
        page_server({"/a?b=1": page("here", "Connection: close")}) as server,
        doorman(Guard(allow_hosts=[server.host])) as port,
    ):
        fields = "Host: x\r\nProxy-Connection: keep-alive\r\nConnection: keep-alive\r\nX-A: 1\r\n\r\n"
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(f"GET {server.url('/a?b=1')} HTTP/1.1\r\n{fields}".encode())
        plain = await reader.readuntil(b"</p>")
        writer.close()
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(f"CONNECT {server.host} HTTP/1.1\r\n\r\n".encode())
        assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200")
        writer.write(b"GET /a?b=1 HTTP/1.1\r\n\r\n")
        tunnelled = await reader.readuntil(b"</p>")
        writer.close()
    assert plain.endswith(b"<p>here</p>")
    assert tunnelled.endswith(b"<p>here</p>")
    lines = server.seen[0].lower().split("\r\n")
    assert lines[0] == "get /a?b=1 http/1.1"
    assert "connection: close" in lines
    assert "x-a: 1" in lines
    assert not [line for line in lines if line.startswith("proxy-") or "keep-alive" in line]


@pytest.mark.parametrize(
    "raw", ["nonsense\r\n\r\n", "\r\n\r\n", "GET \xff\xff HTTP/1.1\r\n\r\n", "a" * 100_000], ids=str.__len__
)
async def test_nonsense_ends_its_connection_and_nothing_else(raw: str) -> None:
    async with page_server({"/": answer(200, b"x")}) as server, doorman(Guard(allow_hosts=[server.host])) as port:
        with contextlib.suppress(ConnectionError):
            await through(port, raw)
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(f"GET {server.url()} HTTP/1.1\r\n\r\n".encode())
        assert (await reader.readuntil(b"x")).startswith(b"HTTP/1.1 200")
        writer.close()


def program(tmp_path: Path, code: str) -> str:
    path = tmp_path / "chromium"
    path.write_text(f"#!{sys.executable}\nimport json, os, sys\n{code}\n", encoding="utf-8")
    path.chmod(0o755)
    return str(path)


def there(path: str) -> bool:
    return Path(path).exists()


async def test_how_a_browser_is_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-very-secret")
    path = program(tmp_path, "print(json.dumps([sys.argv[1:], dict(os.environ), os.getcwd()]))")
    browser = Browser(path, Guard(), timeout_s=30, max_bytes=100_000)
    words, environ, folder = json.loads(await browser.draw("http://example.org/a#b"))
    assert words[-2:] == ["--dump-dom", "http://example.org/a"]
    assert "--proxy-bypass-list=<-loopback>" in words
    assert any(word.startswith("--proxy-server=http://127.0.0.1:") for word in words)
    assert f"--user-data-dir={folder}" in words
    assert not any("no-sandbox" in word for word in words)
    assert "OPENAI_API_KEY" not in environ
    assert not there(folder)


@pytest.mark.parametrize(
    ("code", "said"),
    [("sys.exit(3)", "ended with 3"), ("pass", "0 bytes"), ("print('x' * 5000)", "longer than")],
    ids=["fails", "draws nothing", "draws too much"],
)
async def test_a_browser_that_gives_no_page(tmp_path: Path, code: str, said: str) -> None:
    with pytest.raises(BrowserError, match=said):
        await Browser(program(tmp_path, code), Guard(), timeout_s=30, max_bytes=4096).draw("http://example.org/")


async def test_a_browser_that_hangs_ends_with_its_family(tmp_path: Path) -> None:
    note = tmp_path / "child"
    code = f"import subprocess, time\nchild = subprocess.Popen(['sleep', '600'])\nopen({str(note)!r}, 'w').write(str(child.pid))\ntime.sleep(600)"
    with pytest.raises(BrowserError, match="longer than"):
        await Browser(program(tmp_path, code), Guard(), timeout_s=2, max_bytes=4096).draw("http://example.org/")
    assert _started(int(note.read_text(encoding="utf-8"))) in ("", "ended")


async def test_no_such_program() -> None:
    with pytest.raises(BrowserError, match="can't be started"):
        await Browser("/nonexistent/x", Guard(), timeout_s=30, max_bytes=4096).draw("http://example.org/")


async def test_the_address_itself_is_checked_first() -> None:
    with pytest.raises(Refusal):
        await Browser("/nonexistent/x", Guard(), timeout_s=30, max_bytes=4096).draw("http://127.0.0.1/")
