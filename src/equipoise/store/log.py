"""
The log of one study: what happened, in order, and nothing else.

A log only grows. An event is permanent once `commit` has returned: that is what "acknowledged" means everywhere. Events
are numbered without gaps, and a commit includes all events that were appended before it, so that a crash always leaves
a beginning of the log: never an answer without its ask, nor a later event without an earlier one. The number of events
is saved in the same transaction, so that a missing event is noticed, even the last one.

======= ===================================== =====================================================
kind    columns                               what happened
======= ===================================== =====================================================
start   text: settings as JSON                a run began
ask     ticket, arm                           a ticket was handed out
tell    ticket, value, seconds                its answer arrived, after these seconds of sampling
fail    ticket, value: attempt, text          sampling failed, with this error
forget  ticket, text: why                     it was given up
budget  text: JSON                            the budget was changed
weights text: JSON                            the weights of the losses were changed
more    arm, text: [count, mean, m2] as JSON  samples taken elsewhere were added
close   arm, text: why                        the arm was closed
open    arm                                   the arm was opened again
======= ===================================== =====================================================

Tickets and arms are integers here: the id of a ticket, the place of an arm in the header.
"""

from __future__ import annotations

import contextlib
import math
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from types import FrameType
from typing import Any, Final, NamedTuple

from equipoise.errors import EquipoiseError
from equipoise.store.plain import dumps, loads
from equipoise.store.sql import Lost, Row, connect
from equipoise.strategies import Strategy, Support, deserialise, serialise

# Format 1 had no `equipoise_length` and no events `weights`. The first commit makes a store of it one of format 2.
FORMAT: Final = 2

# Every format has `equipoise_study` with its first four columns, by which an older program recognises a newer store.
_SCHEMA: Final = (
    """create table if not exists equipoise_study (
        study bigint not null, name text not null, format integer not null, header text not null,
        started double precision not null, primary key (study), unique (name))""",
    """create table if not exists equipoise_log (
        study bigint not null, event bigint not null, at double precision not null, kind text not null,
        ticket bigint, arm bigint, value double precision, seconds double precision, text text,
        primary key (study, event))""",
    "create table if not exists equipoise_length (study bigint not null, events bigint not null, primary key (study))",
)
_INSERT: Final = "insert into equipoise_log values (?, ?, ?, ?, ?, ?, ?, ?, ?)"
_PAGE: Final = 20_000

_FIRST_PAUSE: Final = 0.05
_LONGEST_PAUSE: Final = 5.0


@dataclass(frozen=True)
class Patience:
    """For how many seconds to try another connection where one was lost: at once, then less and less often."""

    seconds: float = 60.0
    clock: Callable[[], float] = time.monotonic
    pause: Callable[[float], None] = time.sleep


PATIENCE: Final = Patience()


@dataclass(frozen=True)
class Header:
    """What a study is made of. Equal headers mean equal decisions, given the same answers."""

    arms: Sequence[Any]
    strategy: Strategy
    support: Support
    budget: Any
    seed: int | None
    options: dict[str, Any] = field(default_factory=dict)
    populations: tuple[int | None, ...] | None = None
    first_number: int | None = field(default=None, compare=False)

    def to_json(self) -> str:
        """Return the header as JSON, from which `from_json` makes an equal one."""
        saved = serialise(self.strategy)
        return dumps(
            {
                "arms": self.arms,
                "strategy": [saved["name"], saved["parameters"]],
                "support": self.support,
                "budget": self.budget,
                "seed": self.seed,
                "options": self.options,
                "populations": self.populations,
                "first_number": self.first_number,
            }
        )

    @staticmethod
    def from_json(text: str) -> Header:
        """Return the header that `to_json` wrote."""
        try:
            known = loads(text)
            name, parameters = known.pop("strategy")
        except (AttributeError, KeyError, TypeError, ValueError):
            raise EquipoiseError("cannot read the store: the header of its study is damaged") from None
        return Header(strategy=deserialise({"name": name, "parameters": parameters}), **known)


class Event(NamedTuple):
    """One event of a log."""

    event: int
    at: float
    kind: str
    ticket: int | None
    arm: int | None
    value: float | None
    seconds: float | None
    text: str | None


class Store:
    """
    The log of one study in a file or a database.

    Parameters
    ----------
    where
        A path, for SQLite, or a URL `postgresql://user@host/database#name`; without a name it is "study".
    write
        Whether to write. Only one process at a time can; any number can read meanwhile.
    patience
        How long to try to reconnect.

    Attributes
    ----------
    header
        What the study is made of; None in a new store.
    """

    def __init__(self, where: str | os.PathLike[str], write: bool = False, patience: Patience = PATIENCE) -> None:
        self._database, self._study_name = connect(where, write)
        self._patience = patience
        self._waiting: list[Row] = []
        self._cut = False  # whether the connection is lost
        try:
            self.header = self._read_header()
            if write:
                self._database.claim(self._study_name)
                self.header = self._read_header()
            elif self.header is None:
                raise ValueError(f"there is no study{self._called()} in {self.name}")
            self._next = 0
            if self.header is not None:
                length = self._length()  # first, because another process may be writing
                self._next = self._events()
                if self._next < length:
                    raise self._torn(f"it had {length:,} events, and {self._next:,} are left")
        except BaseException:
            self._database.close()
            raise

    @property
    def name(self) -> str:
        """Where the store is, for messages; without a password."""
        return self._database.name

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the store; what was not committed is lost."""
        self._database.close()

    # ---- writing

    def begin(self, header: Header) -> None:
        """Write the header of a new study."""
        text = header.to_json()
        database = self._database
        database.begin()
        try:
            database.alone()  # two new studies in one database would both make the tables
            for statement in _SCHEMA:
                database.execute(f"{statement} {database.table_options}")
            ((self._study,),) = database.execute("select coalesce(max(study), 0) + 1 from equipoise_study")
            database.execute(
                "insert into equipoise_study values (?, ?, ?, ?, ?)",
                (self._study, self._study_name, FORMAT, text, time.time()),
            )
            database.execute("insert into equipoise_length values (?, 0)", (self._study,))
            database.commit()
        except BaseException:
            database.rollback()
            raise
        self.header, self._format = header, FORMAT

    def _upgrade(self) -> None:
        """
        Upgrade a store of an earlier format, within the transaction of the first commit.

        It is repeated if that commit was lost, so that every statement may run twice.
        """
        database = self._database
        database.alone()
        database.execute(f"{_SCHEMA[-1]} {database.table_options}")
        database.execute("insert into equipoise_length values (?, 0) on conflict do nothing", (self._study,))
        database.execute("update equipoise_study set format = ? where study = ?", (FORMAT, self._study))

    def append(
        self,
        kind: str,
        ticket: int | None = None,
        arm: int | None = None,
        value: float | None = None,
        seconds: float | None = None,
        text: str | None = None,
    ) -> None:
        """Append an event; it is saved once `commit` has returned."""
        self._waiting.append((self._study, self._next, time.time(), kind, ticket, arm, value, seconds, text))
        self._next += 1

    def asked(self, tickets: Sequence[int], arms: Sequence[int]) -> None:
        """Append an ask for each of these tickets."""
        now, study, first = time.time(), self._study, self._next
        self._waiting += [
            (study, first + j, now, "ask", ticket, arm, None, None, None)
            for j, (ticket, arm) in enumerate(zip(tickets, arms, strict=True))
        ]
        self._next += len(tickets)

    def told(self, tickets: Sequence[int], values: Sequence[float], seconds: Sequence[float]) -> None:
        """Append an answer for each of these tickets."""
        now, study, first = time.time(), self._study, self._next
        self._waiting += [
            (study, first + j, now, "tell", ticket, None, value, took, None)
            for j, (ticket, value, took) in enumerate(zip(tickets, values, seconds, strict=True))
        ]
        self._next += len(tickets)

    def commit(self) -> None:
        """
        Write everything that was appended to the disk; if this raises, it can be called again.

        If the connection to a server is lost, this tries to reconnect for about a minute. The interrupted commit may
        have succeeded or not, so that the log is read before anything is written again.
        """
        # After a wait in vain, the next call does not wait.
        patience = self._patience
        seconds = 0.0 if self._cut else patience.seconds
        until, pause = math.inf, _FIRST_PAUSE
        while self._waiting:
            try:
                if self._cut:
                    self._mend()
                self._write_down()
            except Lost:
                self._cut = True
                until = min(until, patience.clock() + seconds)  # from the first loss on, however late it was noticed
                if patience.clock() + pause > until:
                    raise
                patience.pause(pause)
                pause = min(2 * pause, _LONGEST_PAUSE)

    def _mend(self) -> None:
        """Reconnect as the one writer, and check that the log is as it was left."""
        self._database.reconnect()
        # This succeeds only once the lost connection has ended, and with it its last transaction, either way.
        self._database.claim(self._study_name)
        first = self._waiting[0][1]
        sql = "select event, at, kind, ticket from equipoise_log where study = ? and event >= ? order by event"
        kept = list(self._database.execute(sql, (self._study, first)))
        events = self._events()
        if kept != [row[1:5] for row in self._waiting[: len(kept)]] or events != first + len(kept):
            raise EquipoiseError(
                f"the connection to {self.name} was lost, and another process changed the log meanwhile: it had "
                f"{first:,} events and has {events:,}; what was committed is saved"
            )
        del self._waiting[: len(kept)]
        self._cut = False

    def _write_down(self) -> None:
        with _uninterrupted():
            if not self._waiting:
                return
            self._database.begin()
            try:
                if self._format < FORMAT:
                    self._upgrade()
                self._database.insert(_INSERT, self._waiting)
                sql = "update equipoise_length set events = ? where study = ?"
                self._database.execute(sql, (self._next, self._study))
                self._database.commit()
            except BaseException:
                self._database.rollback()
                raise
            self._format = FORMAT
            self._waiting.clear()

    # ---- reading

    def events(self, after: int = -1) -> Iterator[Event]:
        """
        Iterate over the committed events in order, from the one that follows `after`.

        Raises
        ------
        EquipoiseError
            If an event is missing.
        """
        if self.header is None:
            return
        sql = (
            "select event, at, kind, ticket, arm, value, seconds, text from equipoise_log "
            f"where study = ? and event > ? order by event limit {_PAGE}"
        )
        while rows := self._database.execute(sql, (self._study, after)):
            if rows[-1][0] != after + len(rows):
                gap = next(i for i, row in enumerate(rows, after + 1) if row[0] != i)
                raise self._torn(f"event {gap:,} is missing")
            yield from map(Event._make, rows)
            after = rows[-1][0]

    def _events(self) -> int:
        """Return the number of events in the log."""
        sql = "select coalesce(max(event), -1) + 1 from equipoise_log where study = ?"
        ((found,),) = self._database.execute(sql, (self._study,))
        return int(found)

    def _length(self) -> int:
        """Return the number of events committed at least; 0 in a format that did not save it."""
        if self._format < 2:
            return 0
        found = self._database.execute("select events from equipoise_length where study = ?", (self._study,))
        if not found:
            raise self._torn("the number of its events is missing")
        return int(found[0][0])

    def _torn(self, what: str) -> EquipoiseError:
        return EquipoiseError(f"the log in {self.name} is damaged: {what}; restore a copy of it or use another store")

    def _read_header(self) -> Header | None:
        tables = self._database.tables()
        if "equipoise_study" not in tables:
            # A database server may well hold other tables; in a file they mean that it is not a store.
            if tables and self._database.table_options:
                raise ValueError(f"{self.name} is not an equipoise store: it is a database with other tables")
            return None
        sql = "select study, format, header from equipoise_study where name = ?"
        found = self._database.execute(sql, (self._study_name,))
        if not found:
            return None
        ((self._study, self._format, text),) = found
        if self._format > FORMAT:
            raise EquipoiseError(
                f"{self.name} has format {self._format}, and this version of equipoise reads formats up to {FORMAT}; "
                "install a newer version"
            )
        return Header.from_json(text)

    def _called(self) -> str:
        return "" if self._database.table_options else f" called {self._study_name!r}"


@contextlib.contextmanager
def _uninterrupted() -> Iterator[None]:
    """
    Delay Ctrl-C until this is over; a second Ctrl-C is not delayed.

    After an interrupt between the database's commit and ours, it would not be known whether the events are saved.
    """
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(before):
        yield
        return
    delayed: list[tuple[int, FrameType | None]] = []

    def delay(number: int, frame: FrameType | None) -> None:
        delayed.append((number, frame))
        if len(delayed) > 1:
            before(number, frame)

    signal.signal(signal.SIGINT, delay)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if len(delayed) == 1:
            before(*delayed[0])
