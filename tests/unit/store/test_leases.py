"""Who samples which ticket, and what becomes of the tickets of the dead."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import equipoise as eq
from equipoise.store import Log, Turn, replay
from equipoise.store.database import NOBODY, VISITOR, Lease
from equipoise.store.leases import Owner, sweep
from tests.unit.store.living import by_hand, header
from tests.waiting import until

LONG = 1000.0


def ask(log: Log, owner: int, seconds: float, m: int = 2) -> range:
    def work(turn: Turn) -> range:
        turn.own(owner, seconds)
        return turn.ask(m)

    return log.turn(work)


def test_only_what_is_in_flight_is_waited_for(where: str) -> None:
    """A ticket that is answered or given back in the turn that asked for it gets no lease."""

    def work(turn: Turn) -> None:
        turn.own(VISITOR, LONG)
        turn.ask(4)
        turn.tell(0, 1.0)
        turn.forget(1, "lost")

    with Log(where, header()) as log:
        log.turn(work)
        assert [lease.ticket for lease in log.turn(Turn.leases)] == [2, 3]
        assert [lease.ticket for lease in log._database.leases()] == [2, 3]


def test_a_ticket_without_a_lease_is_nobodys(where: str) -> None:
    """So that one whose lease was lost with its table is sampled again."""
    with Log(where, header()) as log:
        log.hold(5)
        ask(log, 5, LONG)
        log.turn(lambda turn: turn.ask(1))
        by_hand(where, "delete from equipoise_lease where ticket = 0 and study = ?")
        assert log.turn(Turn.leases) == [Lease(0, NOBODY, True), Lease(1, 5, False), Lease(2, NOBODY, True)]
        assert log.turn(lambda turn: sweep(turn, 6, LONG)) == [0, 2]
        log.hold(6)
        assert log.turn(Turn.leases) == [Lease(0, 6, False), Lease(1, 5, False), Lease(2, 6, False)]


def test_a_visitor_is_forgotten_and_a_driver_is_followed(where: str) -> None:
    with Log(where, header()) as log:
        ask(log, VISITOR, -1.0)
        ask(log, 5, -1.0)
        assert log.turn(sweep) == []  # a visitor takes over nothing
        assert log.study.in_flight == 2
        assert [(event.ticket, event.text) for event in log.events() if event.kind == "forget"] == [
            (0, "no answer in time"),
            (1, "no answer in time"),
        ]
        assert log.turn(lambda turn: sweep(turn, 6, LONG)) == [2, 3]
        assert log.study.in_flight == 2
        log.turn(lambda turn: turn.tell(0, 4.5))  # late, and counted
        assert replay(where).study.result().samples == 1


def test_settled_leases_are_swept(where: str) -> None:
    """What is left in the table of tickets that are no longer in flight is removed."""
    with Log(where, header()) as log:
        ask(log, VISITOR, LONG)
        log.turn(lambda turn: turn.tell(0, 1.0))
        assert [lease.ticket for lease in log._database.leases()] == [1]
        with Log(where) as other:
            other._database.execute_many(
                "insert into equipoise_lease values (?, ?, 0, 0)", [(other._database._study, 0)]
            )
            other.turn(sweep)
        assert [lease.ticket for lease in log._database.leases()] == [1]


def test_deadlines_are_the_databases(where: str) -> None:
    """Moved by hand, a lease is over, whatever the clock of this process says."""
    with Log(where, header()) as log:
        log.hold(5)
        ask(log, 5, LONG)
        by_hand(where, "update equipoise_lease set deadline = deadline - 1001 where study = ?")
        assert [lease.over for lease in log.turn(Turn.leases)] == [True, True]


@pytest.mark.parametrize("lease", [0, -1, float("nan"), float("inf"), 1e308, 1.1e9, "long"])
def test_a_lease_that_is_none(tmp_path: Path, lease: object) -> None:
    with pytest.raises((ValueError, TypeError), match=r"lease must be (a positive|at most 1,000,000,000) "):
        eq.open(tmp_path / "study.db", arms=["a", "b"], budget=10, lease=lease)  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == []


# ---- owners


def test_an_owner_renews_until_it_is_closed(where: str) -> None:
    """By a connection of its own, while this one does something else."""
    with Log(where, header()) as log:
        owner = Owner(log, where, seconds=0.06)
        ask(log, owner.number, 0.0)

        def is_over() -> bool:
            return log.turn(Turn.leases)[0].over

        until(lambda: not is_over(), "the lease is renewed")
        owner.close()
        until(is_over, "the lease is over")


def test_an_owner_that_is_closed_lets_go_at_once(where: str) -> None:
    with Log(where, header()) as log:
        owner = Owner(log, where, seconds=LONG)
        ask(log, owner.number, LONG)
        assert not any(lease.over for lease in log.turn(Turn.leases))
        owner.close()
        assert all(lease.over for lease in log.turn(Turn.leases))


def test_owners_have_numbers_of_their_own(tmp_path: Path) -> None:
    with Log(tmp_path / "study.db", header()) as log:
        owners = [Owner(log, tmp_path / "study.db", LONG) for _ in range(5)]
        assert len({owner.number for owner in owners}) == 5
        assert all(0 < owner.number < 1 << 48 for owner in owners)
        for owner in owners:
            owner.close()


DRIVER = """
import sys
from equipoise.store import Log
from equipoise.store.leases import Owner
from tests.unit.store.test_leases import ask
log = Log(sys.argv[1])
owner = Owner(log, sys.argv[1], 1000.0)
ask(log, owner.number, 1000.0)
print("ready", flush=True)
sys.stdin.read()
"""


def test_the_tickets_of_a_killed_driver(tmp_path: Path) -> None:
    """On one machine it is seen at once that a driver is dead, however long its lease is."""
    where = str(tmp_path / "study.db")
    with Log(where, header()) as log:
        words = [sys.executable, "-c", DRIVER, where]
        root = Path(__file__).parents[3]
        with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=root) as driver:
            assert driver.stdout is not None
            assert driver.stdout.readline() == "ready\n"
            assert log.turn(lambda turn: sweep(turn, 6, LONG)) == []
            driver.kill()
            driver.wait()
        assert log.turn(lambda turn: sweep(turn, 6, LONG)) == [0, 1]
        log.hold(6)
        assert log.turn(lambda turn: sweep(turn, 7, LONG)) == []
