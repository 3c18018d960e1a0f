"""Rates, and how several processes share them."""

from __future__ import annotations

import asyncio
import multiprocessing
import signal
import socket
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from types import SimpleNamespace
from typing import Any

import pytest

from equipoise.base.errors import EquipoiseError
from equipoise.server import Limits, Rate, Settings, process
from equipoise.server.limits import Buckets, Lookup
from equipoise.server.problems import HTTPProblem


def passed(buckets: Buckets, rate: Rate, requests: int) -> int:
    """Return how many of some requests of one caller pass."""

    def passes() -> bool:
        try:
            buckets.take("caller", rate)
        except HTTPProblem:
            return False
        return True

    return sum(passes() for _ in range(requests))


def test_processes_keep_to_a_rate_together() -> None:
    now = 0.0
    rate = Rate(8, 400).share(4)
    workers = [Buckets(lambda: now) for _ in range(4)]
    assert sum(passed(each, rate, 1000) for each in workers) == 400
    now = 10.0
    assert sum(passed(each, rate, 1000) for each in workers) == 80


def test_a_small_number_at_once_is_not_divided() -> None:
    assert Rate(1, 20).share(32) == Rate(1 / 32, 20)
    assert Rate(1, 3).share(2) == Rate(0.5, 3)
    assert Rate(50, 200).share(1) == Rate(50, 200)


def test_workers_share_the_rates(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each is started with its part of every rate, and all other limits as they are."""
    given: list[Settings] = []

    class Worker:
        def __init__(self, target: Callable[..., None], args: tuple[Settings, Any, Any], daemon: bool) -> None:
            given.append(args[0])

        def start(self) -> None:
            if len(given) == 2:
                signal.raise_signal(signal.SIGTERM)

        def is_alive(self) -> bool:
            return True

        def terminate(self) -> None: ...
        def join(self) -> None: ...

    monkeypatch.setattr(multiprocessing, "get_context", lambda how: SimpleNamespace(Process=Worker))
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    limits = Limits(batch=7, ask=Rate(500, 1000))
    try:
        with socket.socket() as listening:
            process.serve(Settings("studies.db", limits=limits), process.Network(), [listening] * 2)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    assert [each.limits.ask for each in given] == [Rate(250, 500)] * 2
    assert {each.limits.batch for each in given} == {7}
    assert (given[0].limits.work, given[0].limits.read) == (Rate(10_000, 20_000), Rate(25, 100))


def test_connections_are_divided() -> None:
    """Two at least for each process."""
    assert [Limits(connections=40).share(workers).connections for workers in (1, 4, 64)] == [40, 10, 2]


def test_ids_are_looked_up_together() -> None:
    """Those that come while others are looked up are next; what goes wrong concerns those who wait for it."""
    looks: list[Sequence[str]] = []

    async def look(ids: Sequence[str]) -> dict[str, str]:
        looks.append(ids)
        if "x" in ids:
            raise EquipoiseError("the database is away")
        await later("c", "d")
        return {each: each.upper() for each in ids if each < "c"}

    async def nothing(seconds: float) -> None: ...

    lookup = Lookup(look, nothing)
    tasks: list[asyncio.Task[str | None]] = []

    async def later(*ids: str) -> None:
        if len(looks) == 1:
            tasks.extend(asyncio.create_task(lookup.find(each)) for each in ids)
            await asyncio.sleep(0)

    async def main() -> None:
        assert await asyncio.gather(*map(lookup.find, "abba")) == ["A", "B", "B", "A"]
        assert await asyncio.gather(*tasks) == [None, None]
        found = await asyncio.gather(lookup.find("x"), lookup.find("a"), return_exceptions=True)
        assert list(map(type, found)) == [EquipoiseError] * 2
        assert await lookup.find("a") == "A"

    asyncio.run(main())
    assert looks == [["a", "b"], ["c", "d"], ["a", "x"], ["a"]]


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere, workers share one socket")
def test_each_worker_gets_its_share_of_connections() -> None:
    with ExitStack() as stack:
        sockets = [stack.enter_context(each) for each in process.listen(process.Network(port=0), workers=2)]
        address = sockets[0].getsockname()
        assert sockets[1].getsockname() == address
        for _ in range(60):
            stack.enter_context(socket.create_connection(address))
        taken = [0, 0]
        for j, own in enumerate(sockets):
            own.setblocking(False)
            with suppress(BlockingIOError):
                while True:
                    stack.enter_context(own.accept()[0])
                    taken[j] += 1
        assert sum(taken) == 60
        assert min(taken) >= 10  # fewer have a probability of 3e-8
        with pytest.raises(EquipoiseError, match=r"cannot listen at 127\.0\.0\.1"):
            process.listen(process.Network(port=address[1]), workers=2)
