"""The guard: which addresses may be fetched, as they are written, looked up and connected to."""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Sequence
from typing import Any

import pytest
from fakes.pages import page, page_server
from hypothesis import given
from hypothesis import strategies as st

from core.clock import RealClock
from core.errors import CallError
from core.http import Http, causes
from core.pages.guard import Guard, Refusal, host_and_port, is_public


@pytest.mark.parametrize(
    ("url", "status"),
    [
        pytest.param("file:///etc/passwd", "unsupported_scheme", id="file"),
        pytest.param("ftp://example.org/x", "unsupported_scheme", id="ftp"),
        pytest.param("gopher://example.org/x", "unsupported_scheme", id="gopher"),
        pytest.param("javascript:alert(1)", "unsupported_scheme", id="javascript"),
        pytest.param("data:text/html,x", "unsupported_scheme", id="data"),
        pytest.param("example.org/x", "unsupported_scheme", id="no scheme"),
        pytest.param("", "unsupported_scheme", id="nothing"),
        pytest.param("http://", "unsupported_scheme", id="no host"),
        pytest.param("http:example.org", "unsupported_scheme", id="no slashes"),
        pytest.param("http:///etc/passwd", "unsupported_scheme", id="three slashes"),
        pytest.param("http://user@example.org/", "unsupported_scheme", id="a user"),
        pytest.param("http://user:word@example.org/", "unsupported_scheme", id="credentials"),
        pytest.param("http://@example.org/", "unsupported_scheme", id="an empty user"),
        pytest.param("http://example.org@127.0.0.1/", "unsupported_scheme", id="a name as the user"),
        pytest.param("http://127.0.0.1\\@example.org/", "unsupported_scheme", id="backslash before @"),
        pytest.param("http://127.0.0.1\\.example.org/", "unsupported_scheme", id="backslash"),
        pytest.param("http://exa mple.org/", "unsupported_scheme", id="blank in the host"),
        pytest.param("http://exam\tple.org/", "unsupported_scheme", id="tab in the host"),
        pytest.param("http://example.org\r\nHost: x/", "unsupported_scheme", id="line break"),
        pytest.param("http://127%2e0%2e0%2e1/", "unsupported_scheme", id="escaped dots"),
        pytest.param("http://example.org:22/", "unsupported_scheme", id="ssh"),
        pytest.param("http://example.org:6379/", "unsupported_scheme", id="redis"),
        pytest.param("http://example.org:99999/", "unsupported_scheme", id="impossible port"),
        pytest.param("http://-example.org/", "unsupported_scheme", id="a host like an option"),
        pytest.param("http://[::1/", "unsupported_scheme", id="broken bracket"),
        pytest.param("http://\ud800.org/", "unsupported_scheme", id="half a character"),
        pytest.param("http://１２７.0.0.1/", "non_public", id="full-width digits"),
        pytest.param("http://example.org/" + "a" * 9000, "unsupported_scheme", id="longer than any address"),
        pytest.param("http://127.0.0.1/", "non_public", id="loopback"),
        pytest.param("HTTP://127.0.0.1/", "non_public", id="upper case"),
        pytest.param(" http://127.0.0.1/ ", "non_public", id="blanks around"),
        pytest.param("http://127.0.0.1:8080/", "non_public", id="loopback with a port"),
        pytest.param("http://127.0.0.1./", "non_public", id="loopback with a final dot"),
        pytest.param("http://10.1.2.3/", "non_public", id="private 10"),
        pytest.param("http://172.16.0.1/", "non_public", id="private 172"),
        pytest.param("http://192.168.1.1/", "non_public", id="private 192"),
        pytest.param("http://169.254.169.254/latest/meta-data/", "non_public", id="metadata"),
        pytest.param("http://100.100.100.200/", "non_public", id="metadata in carrier's space"),
        pytest.param("http://168.63.129.16/", "non_public", id="metadata on a public number"),
        pytest.param("http://0.0.0.0/", "non_public", id="unspecified"),
        pytest.param("http://224.0.0.1/", "non_public", id="multicast"),
        pytest.param("http://255.255.255.255/", "non_public", id="broadcast"),
        pytest.param("http://198.18.0.1/", "non_public", id="benchmarking"),
        pytest.param("http://2130706433/", "non_public", id="decimal"),
        pytest.param("http://0x7f000001/", "non_public", id="hexadecimal"),
        pytest.param("http://0x7f.1/", "non_public", id="hexadecimal, short"),
        pytest.param("http://0177.0.0.1/", "non_public", id="octal"),
        pytest.param("http://127.1/", "non_public", id="short"),
        pytest.param("http://134744072/", "non_public", id="a public one in decimal"),
        pytest.param("http://1.2.3.4.5/", "non_public", id="five numbers"),
        pytest.param("http://[::1]/", "non_public", id="IPv6 loopback"),
        pytest.param("http://[::]/", "non_public", id="IPv6 unspecified"),
        pytest.param("http://[::ffff:127.0.0.1]/", "non_public", id="mapped"),
        pytest.param("http://[::ffff:7f00:1]/", "non_public", id="mapped, in hexadecimal"),
        pytest.param("http://[0:0:0:0:0:ffff:10.0.0.1]/", "non_public", id="mapped, in full"),
        pytest.param("http://[2002:7f00:1::]/", "non_public", id="6to4"),
        pytest.param("http://[64:ff9b::10.0.0.1]/", "non_public", id="NAT64"),
        pytest.param("http://[64:ff9b:1::8.8.8.8]/", "non_public", id="NAT64 inside a network"),
        pytest.param("http://[2001:0:4136:e378:8000:63bf:3fff:fdd2]/", "non_public", id="Teredo"),
        pytest.param("http://[::127.0.0.1]/", "non_public", id="IPv4-compatible"),
        pytest.param("http://[fe80::1]/", "non_public", id="link-local"),
        pytest.param("http://[fd00:ec2::254]/", "non_public", id="metadata in IPv6"),
        pytest.param("http://[fec0::1]/", "non_public", id="site-local"),
        pytest.param("http://[ff02::1]/", "non_public", id="IPv6 multicast"),
        pytest.param("http://[2001:db8::1]/", "non_public", id="documentation"),
    ],
)
def test_addresses_that_are_refused_as_they_are_written(url: str, status: str) -> None:
    with pytest.raises(Refusal) as caught:
        Guard().check(url)
    assert caught.value.status == status
    assert "word" not in caught.value.message


@pytest.mark.parametrize(
    ("url", "host", "port"),
    [
        pytest.param("http://example.org", "example.org", 80, id="plain"),
        pytest.param("HTTPS://Example.ORG/A?b=c#d", "example.org", 443, id="TLS, upper case"),
        pytest.param("http://example.org:8080/", "example.org", 8080, id="another port"),
        pytest.param("http://example.org./", "example.org.", 80, id="final dot"),
        pytest.param("https://bücher.example/ä b", "xn--bcher-kva.example", 443, id="IDNA"),
        pytest.param("http://a_b.example.org/", "a_b.example.org", 80, id="underscore"),
        pytest.param("http://8.8.8.8/", "8.8.8.8", 80, id="public IPv4"),
        pytest.param("http://[2606:4700::1111]:8080/", "2606:4700::1111", 8080, id="public IPv6"),
        pytest.param("http://[64:ff9b::8.8.8.8]/", "64:ff9b::808:808", 80, id="NAT64 of a public one"),
        pytest.param("http://1.2.3.4.example.org/", "1.2.3.4.example.org", 80, id="a name of numbers"),
        pytest.param("http://example.org/a@b:c", "example.org", 80, id="@ in the path"),
    ],
)
def test_addresses_that_may_be_fetched(url: str, host: str, port: int) -> None:
    target = Guard().check(url)
    assert (ipaddress.ip_address(target.host) if ":" in host else target.host) == (
        ipaddress.ip_address(host) if ":" in host else host
    )
    assert target.port == port
    assert "#" not in target.url


V4 = st.integers(0, 2**32 - 1).map(ipaddress.IPv4Address)
INSIDE = st.sampled_from(
    [
        ipaddress.ip_network(net)
        for net in ("10.0.0.0/8", "127.0.0.0/8", "169.254.0.0/16", "192.168.0.0/16", "100.64.0.0/10")
    ]
).flatmap(lambda net: st.integers(int(net.network_address), int(net.broadcast_address)).map(ipaddress.IPv4Address))


def wrapped(address: ipaddress.IPv4Address) -> list[ipaddress.IPv6Address]:
    number = int(address)
    return [
        ipaddress.IPv6Address((0xFFFF << 32) | number),
        ipaddress.IPv6Address((0x2002 << 112) | (number << 80)),
        ipaddress.IPv6Address((0x64FF9B << 96) | number),
        ipaddress.IPv6Address((0x2606_4700 << 96) | (0x5EFE << 32) | number),
    ]


@given(INSIDE)
def test_an_inner_address_stays_inner_however_it_is_wrapped(address: ipaddress.IPv4Address) -> None:
    assert not is_public(address)
    assert not any(is_public(outer) for outer in wrapped(address))


@given(V4)
def test_a_wrapping_is_as_public_as_what_it_wraps(address: ipaddress.IPv4Address) -> None:
    assert {is_public(outer) for outer in wrapped(address)} == {is_public(address)}


def names(*answers: Sequence[str]) -> Any:
    """A resolver that gives one answer after the other, the last for good; counts itself."""
    left = list(answers)

    async def resolve(host: str) -> Sequence[str]:
        resolve.asked.append(host)  # type: ignore[attr-defined]  # a function with a memory
        return left.pop(0) if len(left) > 1 else left[0]

    resolve.asked = []  # type: ignore[attr-defined]
    return resolve


@pytest.mark.parametrize(
    "addresses",
    [
        pytest.param(["127.0.0.1"], id="loopback"),
        pytest.param(["10.0.0.1"], id="private"),
        pytest.param(["93.184.215.14", "192.168.0.1"], id="one public, one private"),
        pytest.param(["::ffff:169.254.169.254"], id="mapped metadata"),
        pytest.param(["2606:4700::1111", "fe80::1"], id="IPv6, one link-local"),
        pytest.param(["fe80::1%eth0"], id="with a zone"),
    ],
)
async def test_a_name_is_refused_unless_every_address_is_public(addresses: list[str]) -> None:
    with pytest.raises(Refusal, match="not a public address") as caught:
        await Guard(resolve=names(addresses)).resolve("intranet.example", 80)
    assert caught.value.status == "non_public"


async def test_a_public_name_gives_its_addresses() -> None:
    found = await Guard(resolve=names(["93.184.215.14", "2606:4700::1111"])).resolve("example.org", 443)
    assert [(entry["host"], entry["family"]) for entry in found] == [
        ("93.184.215.14", socket.AF_INET),
        ("2606:4700::1111", socket.AF_INET6),
    ]


async def test_a_name_without_addresses_does_not_exist() -> None:
    with pytest.raises(socket.gaierror):
        await Guard(resolve=names([])).resolve("example.org", 443)


async def fetch(guard: Guard, url: str) -> bytes:
    http = Http(RealClock(), trust_env=False, dialer=guard)
    try:
        return (await http.request("GET", url, timeout_s=20)).content
    finally:
        await http.aclose()


async def refused(guard: Guard, url: str) -> Refusal:
    with pytest.raises(CallError) as caught:
        await fetch(guard, url)
    return next(cause for cause in causes(caught.value) if isinstance(cause, Refusal))


async def test_a_name_that_leads_inside_reaches_nobody() -> None:
    async with page_server({"/": page("inside")}) as server:
        refusal = await refused(Guard(resolve=names(["127.0.0.1"])), f"http://evil.example:{server.port}/")
    assert refusal.status == "non_public"
    assert server.seen == []


async def test_a_name_is_looked_up_once_and_that_address_is_connected_to() -> None:
    """A name that changes between check and connect has no moment in which to do so."""
    async with page_server({"/": page("here")}) as server:
        resolve = names(["127.0.0.1"], ["10.255.255.1"])
        guard = Guard(allow_hosts=[f"site.example:{server.port}"], resolve=resolve)
        assert b"here" in await fetch(guard, f"http://site.example:{server.port}/")
    assert resolve.asked == ["site.example"]
    assert "site.example" in server.seen[0]


async def test_the_next_connection_is_checked_anew() -> None:
    async with page_server({"/": page("inside")}) as server:
        guard = Guard(resolve=names(["93.184.215.14"], ["127.0.0.1"]))
        await guard.resolve("rebound.example", server.port)
        refusal = await refused(guard, f"http://rebound.example:{server.port}/")
    assert (refusal.status, server.seen) == ("non_public", [])


class Credulous(Guard):
    """A guard whose lookup was got round."""

    async def resolve(self, host: str, port: int = 0, family: int = 0) -> list[dict[str, Any]]:
        return [
            {"hostname": host, "host": "127.0.0.1", "port": port, "family": socket.AF_INET, "proto": 0, "flags": 0}
        ]


@pytest.mark.parametrize("host", ["anything.example", "127.0.0.1"])
async def test_the_socket_is_the_last_to_refuse(host: str) -> None:
    """Literal addresses go past a resolver, and a lookup may be wrong: what is connected to is looked at."""
    async with page_server({"/": page("inside")}) as server:
        refusal = await refused(Credulous(), f"http://{host}:{server.port}/")
    assert (refusal.status, server.seen) == ("non_public", [])


async def test_an_allowed_host_is_allowed_to_the_letter() -> None:
    async with page_server({"/": page("mine")}) as server, page_server() as other:
        guard = Guard(allow_hosts=[server.host], resolve=names(["127.0.0.1"]))
        assert guard.check(server.url()).allowed
        assert b"mine" in await fetch(guard, server.url())
        for url in (
            other.url(),
            f"http://localhost:{server.port}/",
            "http://127.0.0.1/",
            f"http://127.0.0.2:{server.port}/",
        ):
            with pytest.raises((Refusal, CallError)):
                guard.check(url)
                await fetch(guard, url)
    assert len(server.seen) == 1


async def test_an_allowed_name_does_not_allow_other_names_of_its_address() -> None:
    async with page_server({"/": page("mine")}) as server:
        guard = Guard(allow_hosts=[f"mine.example:{server.port}"], resolve=names(["127.0.0.1"]))
        await fetch(guard, f"http://mine.example:{server.port}/")
        refusal = await refused(guard, f"http://yours.example:{server.port}/")
    assert (refusal.status, len(server.seen)) == ("non_public", 1)


async def test_behind_a_proxy_an_internal_name_is_refused_and_an_unknown_one_is_left_to_it() -> None:
    inside = Guard(proxy=("proxy.example", 3128), resolve=names(["10.0.0.1"]))
    with pytest.raises(Refusal):
        await inside.check_name(inside.check("http://intranet.example/"))
    with pytest.raises(Refusal):
        await inside.check_name(inside.check("http://proxy.example:3128/"))
    unknown = Guard(proxy=("proxy.example", 3128), resolve=names([]))
    await unknown.check_name(unknown.check("http://example.org/"))
    assert (await inside.resolve("proxy.example", 3128))[0]["host"] == "10.0.0.1", "the proxy itself may be inside"


@pytest.mark.parametrize(
    ("text", "pair"),
    [
        ("127.0.0.1:8123", ("127.0.0.1", 8123)),
        ("Site.Example:80", ("site.example", 80)),
        ("[::1]:80", ("::1", 80)),
    ],
)
def test_a_host_with_its_port(text: str, pair: tuple[str, int]) -> None:
    assert host_and_port(text) == pair


@pytest.mark.parametrize("text", ["127.0.0.1", "host:", ":80", "host:0", "host:65536", "::1:80", "host:8x", ""])
def test_no_host_with_a_port(text: str) -> None:
    with pytest.raises(ValueError, match="host:port"):
        host_and_port(text)


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST", "localhost."])
def test_an_allowed_name_is_allowed_in_every_spelling(host: str) -> None:
    assert Guard(allow_hosts=["localhost:8123"]).check(f"http://{host}:8123/").allowed
