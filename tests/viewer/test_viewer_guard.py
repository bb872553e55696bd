"""Who gets an answer: every request that is not the viewer's own page on this machine is refused, with a reason."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from viewer_helpers import Served, cookie_of, serving

from core.errors import InputError
from core.plugin_manager import PluginManager
from core.viewer.guard import HEADERS, LARGEST_BODY, Guard
from core.viewer.library import Library
from core.viewer.places import Places
from core.viewer.server import address, application, start


@pytest_asyncio.fixture
async def served(tmp_path: Path) -> AsyncIterator[Served]:
    (tmp_path / "runs").mkdir()
    async with serving(tmp_path / "runs") as found:
        yield found


def cookie(served: Served, token: str | None = None) -> dict[str, str]:
    return {"Cookie": f"{served.guard.cookie}={served.guard.token if token is None else token}"}


PATHS = (
    "/",
    "/api/runs",
    "/static/common.js",
    "/static/report.css",
    "/run/0123456789abcdef",
    "/compare",
    "/nothing",
)


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("token", ["", "x", "long" * 100, "%00"])
async def test_without_the_token_nothing_is_answered(served: Served, path: str, token: str) -> None:
    for reply in (
        await served.raw(path),
        await served.raw(f"{path}?token={token or 'y'}"),
        await served.raw(path, headers=cookie(served, token)),
    ):
        assert (reply.status, reply.text[:8]) == (403, "refused:")
        assert "no token" in reply.text


async def test_the_first_visit_sets_a_cookie_and_leads_to_the_address_without_the_token(served: Served) -> None:
    reply = await served.raw(f"/?token={served.guard.token}&x=1")
    assert (reply.status, reply.headers["Location"], reply.text) == (303, "/?x=1", "")
    morsel = cookie_of(reply)[served.guard.cookie]
    assert (morsel.value, morsel["httponly"], morsel["samesite"], morsel["path"]) == (
        served.guard.token, True, "Strict", "/",
    )  # fmt: skip
    assert (await served.raw("/", headers={"Cookie": f"{morsel.key}={morsel.value}"})).status == 200


async def test_the_first_visit_leads_nowhere_else(served: Served) -> None:
    reply = await served.raw(f"//evil.example/x?token={served.guard.token}")
    assert (reply.status, reply.headers["Location"]) == (303, "/evil.example/x")


async def test_the_token_is_not_enough_for_a_change(served: Served) -> None:
    reply = await served.raw(f"/api/sheet/0123456789abcdef?token={served.guard.token}", method="POST")
    assert (reply.status, "Set-Cookie" in reply.headers) == (403, False)


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("127.0.0.1:PORT", 200),
        ("localhost:PORT", 200),
        ("127.0.0.1", 403),
        ("127.0.0.1:1", 403),
        ("localhost", 403),
        ("LOCALHOST.evil.example:PORT", 403),
        ("evil.example:PORT", 403),
        ("evil.example", 403),
        ("0.0.0.0:PORT", 403),
        ("[::1]:PORT", 403),
        ("127.0.0.1:PORT.evil.example", 403),
        ("127.0.0.1:PORT@evil.example", 403),
    ],
)
async def test_host(served: Served, host: str, status: int) -> None:
    headers = {**cookie(served), "Host": host.replace("PORT", str(served.guard.port))}
    assert (await served.raw("/api/runs", headers=headers)).status == status


@pytest.mark.parametrize(
    ("name", "value", "status"),
    [
        ("Origin", "http://127.0.0.1:PORT", 200),
        ("Origin", "http://localhost:PORT", 200),
        ("Origin", "https://127.0.0.1:PORT", 403),
        ("Origin", "http://127.0.0.1:1", 403),
        ("Origin", "http://evil.example", 403),
        ("Origin", "null", 403),
        ("Origin", "", 403),
        ("Sec-Fetch-Site", "same-origin", 200),
        ("Sec-Fetch-Site", "none", 200),
        ("Sec-Fetch-Site", "same-site", 403),
        ("Sec-Fetch-Site", "cross-site", 403),
    ],
)
async def test_where_a_request_comes_from(served: Served, name: str, value: str, status: int) -> None:
    headers = {**cookie(served), name: value.replace("PORT", str(served.guard.port))}
    assert (await served.raw("/api/runs", headers=headers)).status == status


async def test_a_link_from_elsewhere_still_brings_the_token(served: Served) -> None:
    reply = await served.raw(f"/?token={served.guard.token}", headers={"Sec-Fetch-Site": "cross-site"})
    assert reply.status == 303


@pytest.mark.parametrize(
    ("left_out", "changed", "status"),
    [
        ((), {}, 404),  # through the door: there is no such sheet
        (("Origin",), {}, 403),
        (("X-Leadline",), {}, 403),
        ((), {"X-Leadline": "0"}, 403),
        ((), {"Origin": "http://evil.example"}, 403),
        ((), {"Content-Type": "text/plain"}, 403),
        ((), {"Content-Type": "application/x-www-form-urlencoded"}, 403),
        (("Cookie",), {}, 403),
    ],
)
async def test_a_change(served: Served, left_out: tuple[str, ...], changed: dict[str, str], status: int) -> None:
    headers = {
        **cookie(served), "Origin": served.base, "X-Leadline": "1", "Content-Type": "application/json", **changed,
    }  # fmt: skip
    for name in left_out:
        del headers[name]
    reply = await served.raw("/api/sheet/0123456789abcdef", method="POST", headers=headers, body=b"{}")
    assert reply.status == status


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "PROPFIND"])
async def test_other_methods(served: Served, method: str) -> None:
    assert (await served.raw("/", method=method, headers=cookie(served))).status == 403


@pytest.mark.parametrize(
    "path", ["/", "/api/runs", "/static/view.css", "/api/run/0123456789abcdef/tasks", "/nothing"]
)
async def test_every_reply_has_the_headers(served: Served, path: str) -> None:
    for headers in ({}, cookie(served)):
        reply = await served.raw(path, headers=headers)
        assert {name: reply.headers.get(name) for name in HEADERS} == dict(HEADERS)
        assert not [name for name in reply.headers if name.lower().startswith("access-control")]


def test_the_policy_allows_our_own_files_alone() -> None:
    policy = dict(part.strip().split(" ", 1) for part in HEADERS["Content-Security-Policy"].split(";"))
    assert policy == {
        "default-src": "'none'", "script-src": "'self'", "style-src": "'self'", "img-src": "data: 'self'",
        "connect-src": "'self'", "base-uri": "'none'", "form-action": "'none'", "frame-ancestors": "'none'",
    }  # fmt: skip


async def test_a_body_has_an_end(served: Served) -> None:
    headers = {
        **cookie(served), "Origin": served.base, "X-Leadline": "1", "Content-Type": "application/json",
    }  # fmt: skip
    served.places.roots[0].joinpath("s.csv").write_text("id,run,task_id,attempt,unit,label\na,,t,1,u,\n")
    path = f"/api/sheet/{served.id_of('s.csv')}"
    reply = await served.raw(path, method="POST", headers=headers, body=b" " * (LARGEST_BODY + 1))
    assert reply.status == 413
    assert (await served.raw("/" + "x" * 5000, headers=cookie(served))).status == 403


async def test_only_the_loopback_address_listens(tmp_path: Path) -> None:
    guard = Guard()
    runner = await start(application(Library(Places([tmp_path]), _no_plugins), guard), guard)
    try:
        assert runner.addresses == [("127.0.0.1", guard.port)]
        assert address(guard) == f"http://127.0.0.1:{guard.port}/?token={guard.token}"
        with pytest.raises(InputError, match=r"--port \d+: can't listen"):
            await start(application(Library(Places([tmp_path]), _no_plugins), Guard()), Guard(), guard.port)
    finally:
        await runner.cleanup()


def _no_plugins() -> PluginManager:
    raise AssertionError("no run is opened")


def test_tokens_differ_and_are_not_shown() -> None:
    first, second = Guard(), Guard()
    assert first.token != second.token
    assert len(first.token) >= 32
    assert first.token not in repr(first)
