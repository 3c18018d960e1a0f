"""
The log of one study: what happened, in order, and nothing else.

A log only grows. An event is there for good once `commit` has returned: that is what "acknowledged" means everywhere.
Events are numbered without gaps and a commit takes all that were appended before it, so that what a crash leaves is
always a beginning of the log: never an answer without its ask, nor a second without the first. How many there are is
kept beside them, in the same transaction, so that an event that is missing is noticed, the last one too.

======= ===================================== =====================================================
kind    columns                               what happened
======= ===================================== =====================================================
start   text: settings as JSON                a run began, or began again
ask     ticket, arm                           a ticket was handed out
tell    ticket, value, seconds                its answer came, after so many seconds of sampling
fail    ticket, value: attempt, text          sampling failed, and how
forget  ticket, text: why                     it was given up
budget  text: JSON                            the budget is now this
weights text: JSON                            how much each arm's loss matters is now this
more    arm, text: [count, mean, m2] as JSON  samples from elsewhere
close   arm, text: why                        no more of this arm
open    arm                                   the arm is asked for again
======= ===================================== =====================================================

Tickets and arms are whole numbers here: a ticket's id, an arm's place in the header.
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
from equipoise.store.plain import dumps, loads, plain_strategy, strategy_of
from equipoise.store.sql import Lost, Row, connect
from equipoise.strategies import Strategy, Support

# Format 1 had no `equipoise_length` and no events `weights`. The first commit makes a store of it one of format 2.
FORMAT: Final = 2

# Every format keeps `equipoise_study` with its first four columns, by which an older program knows a newer store.
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
    """What a study is made of. Two headers are equal if their studies would do the same with the same answers."""

    arms: Sequence[Any]
    strategy: Strategy
    support: Support
    budget: Any
    seed: int | None
    options: dict[str, Any] = field(default_factory=dict)
    populations: tuple[int | None, ...] | None = None
    first_number: int | None = field(default=None, compare=False)

    def to_json(self) -> str:
        """Everything, so that `from_json` gives an equal header."""
        return dumps(
            {
                "arms": self.arms,
                "strategy": plain_strategy(self.strategy),
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
        """The header that `to_json` wrote."""
        try:
            known = loads(text)
            name, parameters = known.pop("strategy")
        except (AttributeError, KeyError, TypeError, ValueError):
            raise EquipoiseError("the store cannot be read: the header of its study is damaged") from None
        return Header(strategy=strategy_of(name, parameters), **known)


class Event(NamedTuple):
    """One line of a log."""

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
        Whether to write. Of several processes one may; the others are told so. Any number may read meanwhile.
    patience
        For how long to try to connect again.

    Attributes
    ----------
    header
        What the study is made of; None in a store that is new.
    """

    def __init__(self, where: str | os.PathLike[str], write: bool = False, patience: Patience = PATIENCE) -> None:
        self._database, self._study_name = connect(where, write)
        self._patience = patience
        self._waiting: list[Row] = []
        self._cut = False  # whether the connection was lost, and is not had again
        try:
            self.header = self._read_header()
            if write:
                self._database.claim(self._study_name)
                self.header = self._read_header()
            elif self.header is None:
                raise ValueError(f"{self.name} holds no study{self._called()}")
            self._next = 0
            if self.header is not None:
                length = self._length()  # first, as somebody may be writing
                self._next = self._events()
                if self._next < length:
                    raise self._torn(f"it had {length:,} events and has {self._next:,}")
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
        """Let go of the store. What was not committed is not kept."""
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
        Make a store of an earlier format one of this, within the transaction of the first commit.

        Again, if nobody knows whether that was kept.
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
        """One more event; it is kept once `commit` has returned."""
        self._waiting.append((self._study, self._next, time.time(), kind, ticket, arm, value, seconds, text))
        self._next += 1

    def asked(self, tickets: Sequence[int], arms: Sequence[int]) -> None:
        """Many tickets were handed out."""
        now, study, first = time.time(), self._study, self._next
        self._waiting += [
            (study, first + j, now, "ask", ticket, arm, None, None, None)
            for j, (ticket, arm) in enumerate(zip(tickets, arms, strict=True))
        ]
        self._next += len(tickets)

    def told(self, tickets: Sequence[int], values: Sequence[float], seconds: Sequence[float]) -> None:
        """Many answers came."""
        now, study, first = time.time(), self._study, self._next
        self._waiting += [
            (study, first + j, now, "tell", ticket, None, value, took, None)
            for j, (ticket, value, took) in enumerate(zip(tickets, values, seconds, strict=True))
        ]
        self._next += len(tickets)

    def commit(self) -> None:
        """
        All that was appended is on the disk when this returns; if it raises, it can be tried again.

        Where the connection to a server is lost, another one is tried for about a minute. A commit that was on its way
        may be kept or not, so that the log is looked at before anything is written again.
        """
        # Who has waited in vain, or would not wait, does not wait again.
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
        """Connect again, as the one writer, and see that the log is as it was left."""
        self._database.reconnect()
        # Had only when the lost connection has ended, and its last transaction with it, one way or the other.
        self._database.claim(self._study_name)
        first = self._waiting[0][1]
        sql = "select event, at, kind, ticket from equipoise_log where study = ? and event >= ? order by event"
        kept = list(self._database.execute(sql, (self._study, first)))
        events = self._events()
        if kept != [row[1:5] for row in self._waiting[: len(kept)]] or events != first + len(kept):
            raise EquipoiseError(
                f"the connection to {self.name} was lost, and somebody else changed the log meanwhile: it had "
                f"{first:,} events and has {events:,}; what was committed is kept"
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
        What is committed, in order, from the event behind `after` on.

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
        """How many events there are."""
        sql = "select coalesce(max(event), -1) + 1 from equipoise_log where study = ?"
        ((found,),) = self._database.execute(sql, (self._study,))
        return int(found)

    def _length(self) -> int:
        """How many events were committed, at least; 0 in a store of a format in which nobody counted."""
        if self._format < 2:
            return 0
        found = self._database.execute("select events from equipoise_length where study = ?", (self._study,))
        if not found:
            raise self._torn("how many events it has was not kept")
        return int(found[0][0])

    def _torn(self, what: str) -> EquipoiseError:
        return EquipoiseError(
            f"the log in {self.name} is not whole: {what}; go on with a whole copy, or begin anew in another store"
        )

    def _read_header(self) -> Header | None:
        tables = self._database.tables()
        if "equipoise_study" not in tables:
            # A database server's other tables are nobody's mistake; a file's are.
            if tables and self._database.table_options:
                raise ValueError(f"{self.name} is no store of a study; it is a database with other tables")
            return None
        sql = "select study, format, header from equipoise_study where name = ?"
        found = self._database.execute(sql, (self._study_name,))
        if not found:
            return None
        ((self._study, self._format, text),) = found
        if self._format > FORMAT:
            raise EquipoiseError(
                f"{self.name} was written by a newer equipoise, in format {self._format}; this one reads up to "
                f"{FORMAT}: a newer equipoise is needed"
            )
        return Header.from_json(text)

    def _called(self) -> str:
        return "" if self._database.table_options else f" called {self._study_name!r}"


@contextlib.contextmanager
def _uninterrupted() -> Iterator[None]:
    """
    Put a Ctrl-C off until this is over; a second one is not put off.

    Interrupted between the database's commit and ours, one would not know whether the events are kept.
    """
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(before):
        yield
        return
    put_off: list[tuple[int, FrameType | None]] = []

    def put_off_one(number: int, frame: FrameType | None) -> None:
        put_off.append((number, frame))
        if len(put_off) > 1:
            before(number, frame)

    signal.signal(signal.SIGINT, put_off_one)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if len(put_off) == 1:
            before(*put_off[0])
