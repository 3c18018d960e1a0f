"""The desk: one turn for whatever has arrived, and refusals that hurt nobody else."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import equipoise as eq
from equipoise.base.errors import EquipoiseError
from equipoise.ledger.ledger import Ledger
from equipoise.server.commands import Ask, Change, Tell, Work
from equipoise.server.problems import HTTPProblem
from equipoise.server.turn_queue import Desk
from equipoise.store import Log, Turn, replay
from tests.logs import expire_leases, kinds
from tests.waiting import HANG, until

NAN = float("nan")
MANY = 1 << 30


@pytest.fixture
def desk(where: str) -> Iterator[Desk]:
    """The desk of a new study."""
    eq.open(where, arms=["a", "b"], budget=1000, support="binary").close()
    found = Desk(where, "ab" * 32, most_waiting=100, patience=1.0)
    yield found
    found.close()


def ask(many: int = 1, owner: int = -2, respondent: bytes | None = None, seconds: float = 3600.0) -> Ask:
    return Ask(many, owner, seconds, MANY, None, respondent)


def tell(number: int, value: float | None) -> Tell:
    return Tell([number], [value], [NAN], [NAN])


def together(desk: Desk, works: list[Work]) -> list[Any]:
    """Have several pieces of work arrive while a turn is under way; return what came of each."""
    begun, release = threading.Event(), threading.Event()

    def hold(turn: Turn) -> None:
        begun.set()
        assert release.wait(HANG)

    async def main() -> list[Any]:
        first = asyncio.create_task(desk.do(Change(hold)))
        await asyncio.to_thread(begun.wait, HANG)
        others = [asyncio.create_task(desk.do(work)) for work in works]
        await asyncio.sleep(0)
        release.set()
        await first
        return await asyncio.gather(*others, return_exceptions=True)

    return asyncio.run(main())


def do(desk: Desk, work: Work) -> Any:
    async def main() -> Any:
        return await desk.do(work)

    return asyncio.run(main())


def test_one_turn_for_all_who_wait(desk: Desk, where: str) -> None:
    handed = together(desk, [ask() for _ in range(50)])
    numbers = [each.tickets[0].number for each in handed]
    assert len(set(numbers)) == 50
    assert replay(where).turns == 1
    told = together(desk, [tell(number, 1.0) for number in numbers])
    assert [each.each for each in told] == [["taken"]] * 50
    assert replay(where).turns == 2
    assert replay(where).study.ledger.samples == 50


def test_a_turn_waits_for_those_who_come_back(where: str) -> None:
    """Only where several were answered together the last time, and not longer than anybody comes."""
    eq.open(where, arms=["a", "b"]).close()
    pauses: list[float] = []
    desk = Desk(where, "ab" * 32, most_waiting=100, patience=1.0, pause=pauses.append)
    do(desk, ask())
    assert pauses == []
    together(desk, [ask() for _ in range(8)])
    assert pauses == []
    do(desk, ask())
    assert len(pauses) == 1
    do(desk, ask())
    assert len(pauses) == 1
    desk.close()


def test_a_turn_begins_when_all_who_are_expected_are_here(where: str) -> None:
    eq.open(where, arms=["a", "b"]).close()
    desk = Desk(where, "ab" * 32, most_waiting=100, patience=1.0)
    desk._pause = lambda seconds: desk._all_here.wait(HANG)
    together(desk, [ask() for _ in range(8)])

    async def main() -> None:
        await asyncio.gather(*(desk.do(ask()) for _ in range(8)))

    asyncio.run(main())
    assert replay(where).turns == 2
    desk.close()


def test_whatever_arrives_before_the_turn_begins_is_served_in_it(desk: Desk, where: str) -> None:
    """Another process may have the lock for a while."""
    begun, release = threading.Event(), threading.Event()

    def hold(turn: Turn) -> None:
        begun.set()
        assert release.wait(HANG)

    async def main() -> None:
        first = asyncio.create_task(desk.do(ask()))
        await asyncio.to_thread(until, lambda: desk.waiting == 0, "the desk has taken the first")
        others = [asyncio.create_task(desk.do(ask())) for _ in range(5)]
        await asyncio.sleep(0)
        release.set()
        await asyncio.gather(first, *others)

    with Log(where) as other:
        holder = threading.Thread(target=other.turn, args=(hold,))
        holder.start()
        assert begun.wait(HANG)
        asyncio.run(main())
        holder.join(HANG)
    assert replay(where).turns == 1
    assert kinds(where) == ["ask"] * 6


def test_the_same_respondent_twice_in_one_turn(desk: Desk, where: str) -> None:
    one, other, third = together(
        desk, [ask(respondent=b"x" * 16), ask(respondent=b"x" * 16), ask(respondent=b"y" * 16)]
    )
    assert one == other != third
    assert kinds(where) == ["ask", "ask"]
    assert do(desk, ask(respondent=b"y" * 16)) == third
    assert do(desk, tell(third.tickets[0].number, None)).each == ["taken"]
    assert do(desk, ask(respondent=b"y" * 16)).reason == "answered"


def test_a_refusal_hurts_nobody_else(desk: Desk, where: str) -> None:
    def refuse(turn: Turn) -> None:
        turn.set_budget(-5)

    found = together(desk, [ask(), Change(refuse), tell(12345, 1.0), ask()])
    assert len(found[0].tickets) == len(found[3].tickets) == 1
    assert isinstance(found[1], ValueError)
    assert found[2].each == ["refused"]
    assert kinds(where) == ["ask", "ask"]


def test_work_that_breaks_its_turn_is_served_alone(desk: Desk, where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was done before it in the same turn is done again without it."""
    right: Callable[[Ledger, int], int] = Ledger.ask

    def wrong(ledger: Ledger, m: int) -> int:
        if m == 7:
            raise EquipoiseError("the strategy failed")
        return right(ledger, m)

    monkeypatch.setattr(Ledger, "ask", wrong)
    found = together(desk, [ask(2), ask(7), ask(3)])
    assert [len(found[0].tickets), len(found[2].tickets)] == [2, 3]
    assert isinstance(found[1], EquipoiseError)
    assert kinds(where) == ["ask"] * 5
    assert replay(where).turns == 2


def test_a_queue_that_is_full(where: str) -> None:
    eq.open(where, arms=["a", "b"]).close()
    desk = Desk(where, "ab" * 32, most_waiting=3, patience=1.0)
    found = together(desk, [ask() for _ in range(5)])
    desk.close()
    assert [isinstance(each, HTTPProblem) for each in found] == [False, False, False, True, True]
    assert (found[4].status, found[4].headers["Retry-After"]) == (503, "1")


def test_who_waits_is_served_before_the_end(where: str) -> None:
    eq.open(where, arms=["a", "b"]).close()
    desk = Desk(where, "ab" * 32, most_waiting=100, patience=1.0)
    begun, release = threading.Event(), threading.Event()

    async def main() -> list[Any]:
        def hold(turn: Turn) -> None:
            begun.set()
            assert release.wait(HANG)

        waiting = [asyncio.create_task(desk.do(work)) for work in (Change(hold), ask(), ask())]
        await asyncio.to_thread(begun.wait, HANG)
        closing = asyncio.create_task(asyncio.to_thread(desk.close))
        release.set()
        await closing
        return await asyncio.gather(*waiting)

    assert [len(each.tickets) for each in asyncio.run(main())[1:]] == [1, 1]


def test_a_store_that_is_gone(tmp_path: Path) -> None:
    where = str(tmp_path / "study.db")
    eq.open(where, arms=["a", "b"]).close()
    desk = Desk(where, "ab" * 32, most_waiting=100, patience=0.1)
    for file in tmp_path.iterdir():
        file.rename(file.with_suffix(".moved"))
    with pytest.raises(HTTPProblem, match="removed or replaced"):
        do(desk, ask())
    with pytest.raises(HTTPProblem, match="removed or replaced"):  # and it goes on
        do(desk, ask())
    desk.close()


def test_open_tickets_are_counted_by_owner(where: str) -> None:
    eq.open(where, arms=["a", "b"]).close()
    now = 0.0
    desk = Desk(where, "ab" * 32, most_waiting=100, patience=1.0, clock=lambda: now)

    def few(owner: int, many: int = 1) -> Any:
        return do(desk, Ask(many, owner, 3600.0, 3))

    tickets = [few(-2).tickets[0] for _ in range(3)]
    with pytest.raises(HTTPProblem, match="too many open tickets"):
        few(-2)
    assert len(few(-3, 3).tickets) == 3
    do(desk, tell(tickets[0].number, 1.0))
    now += 1.0  # then they are counted again
    assert len(few(-2).tickets) == 1
    with pytest.raises(HTTPProblem):
        few(-2)
    expire_leases(where, of=[-2])
    now += 1.0
    assert len(few(-2, 3).tickets) == 3
    desk.close()


def test_tickets_of_the_same_turn_are_open_too(where: str) -> None:
    """A look for tickets that are waited for in vain, in the middle of a turn, does not forget those before it."""
    eq.open(where, arms=["a", "b"]).close()
    desk = Desk(where, "ab" * 32, most_waiting=100, patience=1.0, clock=lambda: 0.0)
    few = [Ask(1, -2, 3600.0, 3) for _ in range(9)]
    first = do(desk, few[0]).tickets[0]
    do(desk, tell(first.number, 1.0))  # so that there is something to count again
    handed = together(desk, [*few])
    assert [isinstance(each, HTTPProblem) for each in handed] == [False] * 3 + [True] * 6
    assert replay(where).study.in_flight == 3
    desk.close()


def test_open_tickets_are_counted_whichever_process_handed_them_out(where: str) -> None:
    eq.open(where, arms=["a", "b"]).close()
    desks = [Desk(where, "ab" * 32, most_waiting=100, patience=1.0, clock=lambda: 0.0) for _ in range(2)]
    refused = 0
    for turn in range(12):
        try:
            do(desks[turn % 2], Ask(1, -2, 3600.0, 5))
        except HTTPProblem:
            refused += 1
    assert (replay(where).study.in_flight, refused) == (5, 7)
    assert len(do(desks[0], Ask(5, -3, 3600.0, 5)).tickets) == 5  # another caller has tickets of its own
    for desk in desks:
        desk.close()


def test_two_desks_of_one_study(desk: Desk, where: str) -> None:
    other = Desk(where, "ab" * 32, most_waiting=100, patience=1.0)
    first = do(desk, ask(respondent=b"r" * 16))
    assert do(other, ask(respondent=b"r" * 16)) == first
    assert do(other, tell(first.tickets[0].number, 1.0)).each == ["taken"]
    assert do(desk, tell(first.tickets[0].number, 1.0)).each == ["known"]
    assert do(desk, ask(respondent=b"r" * 16)).reason == "answered"
    other.close()
