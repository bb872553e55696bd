"""Whose fault a failure is: the page's, or our network's."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest
from fakes.clock import SimClock

from core.pages.control import IN_A_ROW, Control


class Network:
    """A network that can be switched; counts what it is asked."""

    def __init__(self, *, up: bool = True) -> None:
        self.up = up
        self.asked: list[str] = []

    async def probe(self, host: str) -> Sequence[str]:
        self.asked.append(host)
        if not self.up:
            raise OSError("no such name")
        return ["93.184.215.14"]


def control(network: Network, *hosts: str, clock: SimClock | None = None, wait_s: float = 300) -> Control:
    return Control(clock or SimClock(), hosts or ("one.example",), network.probe, wait_s=wait_s)


@pytest.mark.parametrize("up", [True, False])
async def test_a_failure_is_the_pages_while_a_control_answers(up: bool) -> None:
    assert await control(Network(up=up)).vouches() is up


async def test_one_control_of_several_is_enough() -> None:
    async def probe(host: str) -> None:
        if host != "third.example":
            raise OSError

    hosts = ("first.example", "second.example", "third.example")
    assert await Control(SimClock(), hosts, probe, wait_s=1).vouches()


async def test_without_controls_the_network_is_taken_to_work() -> None:
    found = Control(SimClock(), (), Network(up=False).probe, wait_s=1)
    assert await found.vouches()


async def test_the_controls_are_asked_after_the_failure_and_once_for_many() -> None:
    network = Network()
    found = control(network)
    await found.start()
    network.up = False
    assert set(await asyncio.gather(*(found.vouches() for _ in range(40)))) == {False}
    # one question that began with the first failure, one for all that failed while it was asked
    assert len(network.asked) <= 3


@pytest.mark.parametrize(
    ("events", "offline"),
    [
        pytest.param("fffff", True, id="five in a row"),
        pytest.param("ffff", False, id="four"),
        pytest.param("ffffaf", False, id="a server answered in between"),
        pytest.param("ffffvf", False, id="a control answered in between"),
        pytest.param("afffff", True, id="five after an answer"),
    ],
)
async def test_so_many_in_a_row_say_that_there_is_no_network(events: str, offline: bool) -> None:
    network = Network()
    found = control(network)
    for event in events:
        network.up = event != "f"
        if event == "a":
            found.answered()
        else:
            await found.vouches()
    assert found.offline is offline
    assert IN_A_ROW == 5


async def lost(network: Network, found: Control) -> None:
    network.up = False
    for _ in range(IN_A_ROW):
        await found.vouches()


async def test_a_network_that_broke_is_waited_for_and_comes_back() -> None:
    clock, network = SimClock(), Network()
    found = control(network, clock=clock)
    await found.start()
    await lost(network, found)

    async def mended() -> None:
        await clock.sleep(100)
        network.up = True

    async def both() -> bool:
        repair = asyncio.create_task(mended())
        back = await asyncio.gather(*(found.comes_back() for _ in range(3)))
        await repair
        return all(back)

    assert await clock.run(both())
    assert not found.offline
    assert 100 <= clock.elapsed <= 140


@pytest.mark.parametrize(
    ("seen", "wait_s", "expected"),
    [
        pytest.param(True, 300, 300, id="it was there"),
        pytest.param(False, 300, 7, id="nobody ever saw it"),
        pytest.param(False, 2, 2, id="nobody saw it, and the wait is short"),
        pytest.param(True, 0, 0, id="not to be waited for"),
    ],
)
async def test_how_long_a_network_is_waited_for(seen: bool, wait_s: float, expected: float) -> None:
    clock, network = SimClock(), Network(up=seen)
    found = control(network, clock=clock, wait_s=wait_s)
    await found.start()
    await lost(network, found)
    assert not await clock.run(found.comes_back())
    assert clock.elapsed == expected
    assert found.offline
    assert not await clock.run(found.comes_back())
    assert clock.elapsed == expected, "what did not come back is not waited for again"


async def test_closing_ends_the_wait() -> None:
    clock, network = SimClock(), Network(up=False)
    found = control(network, clock=clock)
    waiting = asyncio.create_task(found.comes_back())
    await clock.settle()
    await found.aclose()
    with pytest.raises(asyncio.CancelledError):
        await waiting
