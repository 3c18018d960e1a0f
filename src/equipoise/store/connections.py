"""
A bounded number of connections to one database, for any number of studies in it.

A connection keeps nothing of a study between transactions, so that each of them serves any study: a statement that
reads borrows one, and a transaction borrows one from its beginning to its end. Where the server lets in fewer than are
allowed, those that there are serve all, in the order in which they are asked for.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Sequence
from typing import Final, TypeVar

from equipoise.base.errors import EquipoiseError, StoreUnavailable
from equipoise.store.database import Database, Head, Lost, Row, Values

T = TypeVar("T")

# Seconds for which no further connection is tried once the database has refused one, while there are others.
_REFUSED: Final = 1.0


class Connections:
    """
    Connections to a database; any thread may borrow one.

    Parameters
    ----------
    open
        Returns a new connection, for writing or only for reading.
    most
        The most that are open at once. Of two or more, transactions get three quarters at most: they may wait for
        locks, and whatever only reads does not wait for them.
    patience
        Seconds to wait for one.
    clock
        Seconds.
    """

    def __init__(
        self,
        open: Callable[[bool], Database],
        most: int,
        patience: float = 30.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._new, self._most, self._patience, self._clock = open, most, patience, clock
        self._most_writing = max(most - max(most // 4, 1), 1)
        self._room = threading.Condition()
        # Who waits, in order: whether to write.
        self._queue: list[list[bool]] = []
        # How many are open or about to be, and how many of them are in transactions.
        self._open = self._writing = 0
        # A connection is good for as long as none was lost that was opened before it or with it.
        self._era = 0
        self._eras: dict[Database, int] = {}
        self._refused, self._closed = -_REFUSED, False
        first = open(True)  # what is wrong with the database is said at once
        self.name, self.backend = first.name, type(first)
        self._idle, self._eras[first], self._open = [first], self._era, 1

    @property
    def open(self) -> int:
        """How many are open, or about to be."""
        return self._open

    def study(self, name: str) -> Database:
        """Return a study in the database, for one thread at a time; it holds no connection between transactions."""
        return Borrowing(self, name)

    def take(self, writing: bool = False) -> Database:
        """Borrow a connection, to read or for a transaction that writes; Lost where there is none to be had."""
        until = self._clock() + self._patience
        while True:
            with self._room:
                found = self._wait(writing, until)
            if found is not None and (found.can_write or not writing):
                return found
            try:
                if found is not None:
                    self._forget(found)
                found = self._new(writing)
            except BaseException as error:
                with self._room:
                    self._refused = self._clock()
                    self._leave(writing)
                    alone = not self._open
                if not isinstance(error, EquipoiseError | ValueError):
                    raise
                if alone:
                    raise Lost(str(error)) from error
                continue  # wait for one of the others
            with self._room:
                self._eras[found] = self._era
            return found

    def _wait(self, writing: bool, until: float) -> Database | None:
        """
        Wait for a connection, and return it; one that is only for reading is to be replaced by one that can write.

        None where there is room for another one, which is counted as open from then on.
        """
        mine = [writing]
        self._queue.append(mine)
        try:
            while not self._closed and not self._is_next(mine):
                if not self._room.wait(until - self._clock()) and until <= self._clock():
                    raise Lost(f"all connections to {self.name} are busy")
            if self._closed:
                raise StoreUnavailable(f"the connections to {self.name} are closed")
            # The one that was used last, so that the others may grow old; and those for reading are left to readers.
            order = sorted(self._idle, key=lambda each: each.can_write == writing)
            if order and (order[-1].can_write or not writing or not self._may_open()):
                self._idle.remove(order[-1])
                self._writing += writing
                return order[-1]
            self._open += 1
            self._writing += writing
            return None
        finally:
            self._queue = [each for each in self._queue if each is not mine]
            self._room.notify_all()

    def _is_next(self, mine: list[bool]) -> bool:
        """Return whether there is a connection for somebody, and nobody has waited longer for it."""
        first = next((each for each in self._queue if not each[0] or self._writing < self._most_writing), None)
        return first is mine and (bool(self._idle) or self._may_open())

    def _may_open(self) -> bool:
        return self._open == 0 or (self._open < self._most and self._clock() - self._refused > _REFUSED)

    def give(self, connection: Database, writing: bool = False) -> None:
        """Give a connection back."""
        with self._room:
            kept = not self._closed and self._eras[connection] == self._era
            if kept:
                self._idle.append(connection)
                self._writing -= writing
                self._room.notify_all()
        if not kept:
            self.drop(connection, writing)

    def drop(self, connection: Database, writing: bool = False) -> None:
        """Close a connection in place of giving it back."""
        self._forget(connection)
        with self._room:
            self._leave(writing)

    def _forget(self, connection: Database) -> None:
        with contextlib.suppress(EquipoiseError):
            connection.close()
        with self._room:
            self._eras.pop(connection, None)

    def lost(self, connection: Database, writing: bool = False) -> None:
        """Close a connection that was lost; those that are as old may be lost too, as after a restart of the server."""
        with self._room:
            if self._eras[connection] == self._era:
                self._era += 1
            doubtful = [each for each in self._idle if self._eras[each] != self._era]
            self._idle = [each for each in self._idle if self._eras[each] == self._era]
        for each in (connection, *doubtful):
            self.drop(each, writing and each is connection)

    def _leave(self, writing: bool) -> None:
        self._open -= 1
        self._writing -= writing
        self._room.notify_all()

    def close(self) -> None:
        """Close all that are not in use now, and each of the others when it is given back."""
        with self._room:
            self._closed = True
            idle, self._idle = self._idle, []
            self._room.notify_all()
        for each in idle:
            self.drop(each)


class Borrowing(Database):
    """
    A study in a database, on connections that it borrows.

    Outside of a transaction nothing but reading is possible; what was to be read on a connection that is lost is read
    on another one.

    Parameters
    ----------
    connections
        Lends them.
    study_name
        The name of the study.
    """

    def __init__(self, connections: Connections, study_name: str) -> None:
        super().__init__(connections.name, study_name)
        backend = connections.backend
        self.blob, self.table_options, self.clock = backend.blob, backend.table_options, backend.clock
        self._connections = connections
        # That of the transaction, and whether it was lost in it.
        self._pinned: Database | None = None
        self._was_lost = False

    # ---- reading, and whatever is done in a transaction

    def execute(self, sql: str, values: Values = ()) -> Sequence[Values]:
        return self._on_one(lambda each: each.execute(sql, values))

    def execute_many(self, sql: str, rows: Sequence[Values]) -> None:
        self._on_one(lambda each: each.execute_many(sql, rows))

    def insert_many(self, into: str, row: str, then: str, rows: Sequence[Values]) -> None:
        self._on_one(lambda each: each.insert_many(into, row, then, rows))

    def tables(self) -> set[str]:
        return self._on_one(lambda each: each.tables())

    def check_foreign(self, tables: set[str]) -> None:
        self._on_one(lambda each: each.check_foreign(tables))

    def head(self) -> Head:
        return self._on_one(lambda each: each.head())

    def _write_row(self, study: int, row: Row) -> None:
        self._on_one(lambda each: each._write_row(study, row))

    def _drop_rows(self) -> None:
        self._on_one(lambda each: each._drop_rows())

    def settle(self, tickets: Sequence[int]) -> None:
        self._on_one(lambda each: each.settle(tickets))

    def keep_snapshot(self, turn: int, body: bytes, kept: int) -> None:
        self._on_one(lambda each: each.keep_snapshot(turn, body, kept))

    def hold(self, owner: int) -> None:
        self._on_one(lambda each: each.hold(owner))

    def release(self, owner: int) -> None:
        self._on_one(lambda each: each.release(owner))

    def alive(self, owner: int) -> bool:
        return self._on_one(lambda each: each.alive(owner))

    def _on_one(self, do: Callable[[Database], T]) -> T:
        """Do something on the connection of the transaction; outside of one, on any."""
        if self._pinned is None:
            return self._on_another(do)
        try:
            return do(self._pinned)
        except Lost:
            self._was_lost = True
            raise

    def _on_another(self, do: Callable[[Database], T], writing: bool = False, keep: bool = False) -> T:
        """Do something on a connection of its own; on a second one, where the first is lost."""
        for last in (False, True):
            connection = self._connections.take(writing)
            connection.turn_to(self)
            try:
                found = do(connection)
            except Lost:
                self._connections.lost(connection, writing)
                if last:
                    raise
            except (EquipoiseError, ValueError):
                self._give_back(connection, writing)
                raise
            except BaseException:  # what was interrupted may still be under way
                self._connections.drop(connection, writing)
                raise
            else:
                if keep:
                    self._pinned, self._was_lost = connection, False
                else:
                    self._connections.give(connection, writing)
                return found
        raise AssertionError

    def _give_back(self, connection: Database, writing: bool) -> None:
        """Give back a connection on which something was refused; a transaction that has begun on it ends."""
        try:
            if writing:
                connection.rollback()
        except BaseException:
            self._connections.drop(connection, writing)
            raise
        self._connections.give(connection, writing)

    # ---- transactions

    def begin(self) -> Head:
        return self._begin(lambda each: each.begin())

    def begin_creating(self) -> None:
        self._begin(lambda each: each.begin_creating())

    def _begin(self, begin: Callable[[Database], T]) -> T:
        if self._pinned is not None:
            raise EquipoiseError(f"a turn of {self.name} cannot begin within another one")
        return self._on_another(begin, writing=True, keep=True)

    def commit(self) -> None:
        assert self._pinned is not None
        self._on_one(lambda each: each.commit())  # if this fails, the transaction goes on, and `rollback` follows
        connection, self._pinned = self._pinned, None
        self._connections.give(connection, writing=True)

    def rollback(self) -> None:
        connection, self._pinned = self._pinned, None
        if connection is None:
            return
        if self._was_lost:
            with contextlib.suppress(EquipoiseError):
                connection.rollback()  # what is held in this process for it ends too
            self._connections.lost(connection, writing=True)
        else:
            self._give_back(connection, writing=True)

    def delete(self) -> None:
        # SQLite is told to overwrite what is deleted: this connection would do so for ever, so that it is not kept.
        connection = self._connections.take(writing=True)
        connection.turn_to(self)
        try:
            connection.delete()
        finally:
            self._connections.drop(connection, writing=True)

    def reconnect(self) -> None:
        self.rollback()
        self._connections.give(self._connections.take())  # Lost where there is still none

    def close(self) -> None:
        with contextlib.suppress(EquipoiseError):
            self.rollback()
