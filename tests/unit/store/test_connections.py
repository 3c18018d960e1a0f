"""A bounded number of connections for any number of studies: the bound, the order, and what is lost or refused."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from equipoise.base.errors import EquipoiseError
from equipoise.store import Log, differences, replay
from equipoise.store.connections import Borrowing, Connections
from equipoise.store.database import Database, Lost
from equipoise.store.log import connect
from equipoise.store.postgres import Postgres
from equipoise.store.sqlite import SQLite
from tests.unit.store.living import header, live
from tests.waiting import HANG, until


class Door:
    """Opens connections to a database, or refuses to; it knows those that are open."""

    def __init__(self, place: str) -> None:
        self.place, self.refusing, self.tried = place, False, 0
        self.inside: list[Database] = []

    def __call__(self, write: bool) -> Database:
        self.tried += 1
        if self.refusing:
            raise EquipoiseError("too many clients already")
        database = connect(self.place, write, create=write)
        self.inside.append(database)
        close = database.close

        def leave() -> None:
            if database in self.inside:
                self.inside.remove(database)
            close()

        database.close = leave  # type: ignore[method-assign]
        return database


@pytest.fixture
def door(where: str) -> Door:
    """The way into a database of each kind."""
    return Door(where.partition("#")[0])


@pytest.fixture
def lend(door: Door) -> Iterator[Callable[..., Connections]]:
    """Makes connections, which are closed in the end, and none is left."""
    with ExitStack() as stack:

        def made(most: int, patience: float = HANG, clock: Callable[[], float] | None = None) -> Connections:
            found = Connections(door, most, patience, *([clock] if clock else []))
            stack.callback(found.close)
            return found

        yield made
    assert door.inside == []


def name() -> str:
    return uuid.uuid4().hex


def in_threads(do: Callable[[int], Any], many: int) -> list[Any]:
    """Return what comes of something that many threads do at the same time."""
    found: dict[int, Any] = {}

    def work(k: int) -> None:
        try:
            found[k] = do(k)
        except Exception as error:
            found[k] = error

    threads = [threading.Thread(target=work, args=(k,), daemon=True) for k in range(many)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(HANG)
    return [found[k] for k in range(many)]


def test_many_studies_on_few_connections(door: Door, lend: Callable[..., Connections]) -> None:
    """All that a log does, in twelve threads at once on three connections, is what it is on one of its own."""
    connections, most = lend(3), 0

    def work(k: int) -> Any:
        nonlocal most
        own = name()
        with Log(connections.study(own), header(seed=k)) as log:
            live(log, 25, seed=k)
            most = max(most, len(door.inside), connections.open)
            log._write_snapshot()
            with Log(connections.study(own), write=False) as reader:
                assert differences(reader.study, log.study) == []
        return differences(replay(f"{door.place}#{own}").study, log.study)

    assert in_threads(work, 12) == [[]] * 12
    assert 1 < most <= 3


def test_what_waits_for_a_lock_holds_up_no_reader(lend: Callable[..., Connections]) -> None:
    """Transactions have three of four connections, and two of them wait for the third's lock."""
    connections, own = lend(4), name()
    with Log(connections.study(own), header()) as log:
        with ExitStack() as stack:
            others = [stack.enter_context(Log(connections.study(own))) for _ in range(5)]

            def work(turn: Any) -> None:
                turn.ask(1)
                for other in others:
                    thread = threading.Thread(target=other.turn, args=(lambda turn: turn.ask(1),), daemon=True)
                    stack.callback(thread.join, HANG)
                    thread.start()
                until(lambda: connections._writing == 3 and len(connections._queue) == 3, "all others wait")
                assert connections.study(own).find()

            log.turn(work)
        assert log.look(lambda replica: replica.turns) == 6


def test_in_the_order_of_asking(lend: Callable[..., Connections]) -> None:
    connections, order = lend(1), []
    first = connections.take()

    def work(k: int) -> None:
        taken = connections.take()
        order.append(k)
        connections.give(taken)

    threads = [threading.Thread(target=work, args=(k,), daemon=True) for k in range(8)]
    for k, thread in enumerate(threads, 1):
        thread.start()
        until(lambda k=k: len(connections._queue) == k, "it waits")  # type: ignore[misc]
    connections.give(first)
    for thread in threads:
        thread.join(HANG)
    assert order == list(range(8))


def test_those_that_there_are_serve_all(door: Door, lend: Callable[..., Connections]) -> None:
    """Where the database lets no more in; after a second, another one is tried."""
    now = 10.0
    connections = lend(40, clock=lambda: now)
    studies = [name() for _ in range(6)]
    for study in studies:
        Log(connections.study(study), header()).close()
    door.refusing = True
    assert in_threads(lambda k: connections.study(studies[k]).find(), 6) == [True] * 6
    assert connections.open == len(door.inside)
    door.refusing, before = False, door.tried
    taken = [connections.take() for _ in range(len(door.inside))]
    assert door.tried == before
    now += 2.0
    taken.append(connections.take())
    assert connections.open == len(taken) == len(door.inside)
    for each in taken:
        connections.give(each)


def test_a_database_that_lets_nobody_in(door: Door, lend: Callable[..., Connections]) -> None:
    """It is said at once, to all, and over when the database is back."""
    connections, study = lend(2), name()
    Log(connections.study(study), header()).close()
    connections.lost(connections.take())
    door.refusing = True
    for found in in_threads(lambda k: connections.study(study).find(), 5):
        assert isinstance(found, Lost)
        assert str(found) == "too many clients already"
    assert connections.open == 0
    door.refusing = False
    assert in_threads(lambda k: connections.study(study).find(), 5) == [True] * 5


def test_a_wait_that_is_in_vain(door: Door, lend: Callable[..., Connections]) -> None:
    connections = lend(1, patience=0.0)
    taken = connections.take()
    with pytest.raises(Lost, match=r"^all connections to .* are busy$"):
        connections.study("x").find()
    assert connections._queue == []
    connections.give(taken)
    connections.close()
    with pytest.raises(EquipoiseError, match=r"^the connections to .* are closed$"):
        connections.study("x").find()


def test_connections_that_the_server_has_cut(postgres: str) -> None:
    """Nobody who reads or begins notices; and all that are as old are replaced, as after a restart of the server."""
    connections, study = Connections(lambda write: connect(postgres, write), 4), name()
    with Log(connections.study(study), header()) as log:
        for again in range(3):
            taken = [connections.take() for _ in range(4)]
            for each in taken:
                connections.give(each)
            processes = [each.execute("select pg_backend_pid()")[0][0] for each in taken]
            other = connect(postgres)
            other.execute("select pg_terminate_backend(pid, 60000) from unnest(?::int[]) as pid", (processes,))
            other.close()
            if again:
                assert connections.study(study).find()
            log.turn(lambda turn: turn.ask(1))
            assert connections.open == 1
        assert log.study.ledger.issued == 3
    connections.close()
    assert connections.open == 0


def test_a_transaction_that_is_refused_leaves_nothing(lend: Callable[..., Connections]) -> None:
    """Neither a lock nor a connection; the next one has both."""
    connections, study = lend(2), name()
    with Log(connections.study(study), header()) as log, Log(connections.study(study)) as stale:
        gone = connections.study(study)
        assert gone.find()
        gone.delete()
        for each in (log, stale):
            with pytest.raises(EquipoiseError, match="is no longer in"):
                each.turn(lambda turn: turn.ask(1))
        assert connections._writing == 0
    with Log(connections.study(study), header()) as log:
        assert log.turn(lambda turn: turn.ask(1)) == range(1)


class Interrupted(BaseException):
    """As from a keyboard."""


def test_what_is_interrupted_is_not_used_again(door: Door, lend: Callable[..., Connections]) -> None:
    connections = lend(2)
    first = door.inside[0]

    def interrupted(*given: Any) -> Any:
        raise Interrupted

    first.tables = interrupted  # type: ignore[method-assign]
    with pytest.raises(Interrupted):
        connections.study("x").find()
    assert first not in door.inside
    assert not connections.study("x").find()


def test_what_only_reads_can_be_told_from_what_writes(tmp_path: Path) -> None:
    """A file is opened for writing only to write: that may have to wait for a lock."""
    connections = Connections(Door(str(tmp_path / "study.db")), 3)
    writer = connections.take(writing=True)
    reader, other = connections.take(), connections.take()
    assert [each.can_write for each in (writer, reader, other)] == [True, False, False]
    connections.give(writer, writing=True)
    assert connections.take() is writer  # rather than to wait
    connections.give(writer)
    assert connections.take(writing=True) is writer
    connections.give(reader)
    second = connections.take(writing=True)  # in place of one that only reads
    assert second.can_write
    assert connections.open == 3
    connections.give(other)
    connections.give(second, writing=True)
    assert connections.take() is other
    connections.drop(other)
    connections.give(writer, writing=True)
    connections.close()
    assert connections.open == 0


def test_it_does_whatever_a_database_does_in_its_own_way() -> None:
    """What one of the backends overrides is asked of a connection, and nothing else is."""
    known = {each for each in vars(Database) if not each.startswith("__")}
    overridden = {each for backend in (SQLite, Postgres) for each in vars(backend) if each in known}
    assert overridden - {"blob", "clock", "table_options", "can_write"} <= vars(Borrowing).keys()
    asked = {each for each in vars(Borrowing) if each in known}
    assert asked <= overridden
