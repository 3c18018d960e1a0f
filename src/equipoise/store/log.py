"""
The log of one study, and this process's replica of it.

The log is the only sequencer: whatever happens to a study is decided in a turn, which is taken by one process at a
time. It folds what came meanwhile, decides on its replica, appends and commits. An event is permanent once its turn has
been committed: that is what "acknowledged" means everywhere.
"""

from __future__ import annotations

import contextlib
import itertools
import math
import os
import secrets
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

from equipoise.base import paths
from equipoise.base.errors import EquipoiseError, InvalidInput, StoreUnavailable
from equipoise.base.inputs import check_study_name
from equipoise.base.patience import Patience
from equipoise.store import events as kinds
from equipoise.store import inside, snapshots
from equipoise.store.database import Database, Head, Lost, Missing, Row, link
from equipoise.store.events import Damaged, Event
from equipoise.store.header import Header
from equipoise.store.plain import dumps
from equipoise.store.postgres import Postgres
from equipoise.store.replica import Replica, tag_of
from equipoise.store.sqlite import SQLite
from equipoise.store.turn import Turn
from equipoise.study import Study

T = TypeVar("T")

_FIRST_PAUSE: Final = 0.05
_LONGEST_PAUSE: Final = 5.0
_SNAPSHOTS: Final = 2
# Seconds in which others may write so much that it is folded before the lock is taken, so that it is held for a short
# time. After less, that is not worth a look of its own.
_LONG: Final = 0.1


PATIENCE: Final = Patience()
# The name of a study that nobody named.
UNNAMED: Final = "study"


def located(where: str | os.PathLike[str]) -> tuple[str, str]:
    """Return the path of a file or the URL of a database, and the name of the study in it."""
    place, _, name = os.fspath(where).partition("#")
    return place.removeprefix("sqlite:///"), name or UNNAMED


def connect(where: str | os.PathLike[str], write: bool = True, create: bool = False) -> Database:
    """
    Return the database at a path or a URL, either with `#name` for one of several studies in it.

    Parameters
    ----------
    where
        The path or the URL.
    write, create
        Whether to write, and whether to create a file that does not exist.
    """
    place, name = located(where)
    check_study_name(name)
    if place.startswith(("postgresql://", "postgres://")):
        return Postgres(place, name)
    if "://" in place:
        scheme = place.partition("://")[0]  # not the rest, which may contain a password
        raise InvalidInput(f"store must be a path such as 'study.db' or a postgresql:// URL, got {scheme}://...")
    if place in ("", ":memory:"):
        raise InvalidInput(f"store must be a file that outlives the process, such as 'study.db', got {place!r}")
    path = Path(place)
    try:
        found = paths.kind_of("store", path)
    except OSError as error:
        raise StoreUnavailable(f"cannot use {path}: {error.strerror}") from error
    if found:
        raise InvalidInput(f"store must be a file, got {path}, which is {found}")
    return SQLite(path, name, write, create)


class Log:
    """
    The log of one study in a file or a database, and a replica of the study.

    Parameters
    ----------
    where
        A path, for SQLite, or a URL `postgresql://user@host/database`; with `#name` for one of several studies. Or the
        study in a database that is open already.
    header
        What the study is made of. One that exists must be made of the same, but for its budget, precision, level and
        interval, which are changed to these. None for a study that exists, as it is.
    write
        Whether to take turns; else the log is only read.
    patience
        How long to try to reconnect.
    run
        Whether the study is to be run, which is refused within one of its own samplers.
    """

    def __init__(
        self,
        where: str | os.PathLike[str] | Database,
        header: Header | None = None,
        write: bool = True,
        patience: Patience = PATIENCE,
        run: bool = False,
    ) -> None:
        if header is not None:
            header = Header.from_json(header.to_json())  # so that it compares equal to the one in the store
            header.study()  # if it is refused, nothing is left behind
        self._patience, self._gave_up = patience, False
        self._pid, self._closed = os.getpid(), False
        self._guard, self._thread = threading.Lock(), 0
        self._replica: Replica | None = None
        self._lost, self._followed = False, -math.inf
        # Bytes of the turns since the last snapshot, and the turn of that.
        self._tail = self._snapshot = 0
        self._write = write
        if write:
            inside.check_turn("a store")  # it may be created, which locks it; a URL may contain a password
        if not isinstance(where, Database):
            where = connect(where, write, create=header is not None)
        self._database = where
        try:
            self._reconnecting(lambda: self._open(header))
            if run:
                inside.check_run(self.replica.header.identity, self.label)
            if header is not None:
                self.replica.header.check_same(header)
                self.turn(lambda turn: _continue(turn, header))
        except BaseException:
            self._database.close()
            raise

    def _open(self, header: Header | None) -> None:
        """Find the study, or create it."""
        if self._database.find():
            self._catch_up()
        elif header is not None:
            self._create(header)
        else:
            raise Missing(f"there is no study {self._database.study_name!r} in {self.name}{self._others()}")

    def _others(self) -> str:
        names = self._database.studies()
        return f"; it holds {', '.join(map(repr, names[:5]))}{', ...' * (len(names) > 5)}" if names else ""

    def _create(self, header: Header) -> None:
        seed = secrets.randbits(63) if header.seed is None else header.seed
        whole = replace(header, seed=seed, salt=secrets.token_hex(16))
        identity, at, body = secrets.token_bytes(8), time.time(), whole.to_json().encode()
        row = Row(0, identity, at, body, link(b"", 0, identity, at, body))
        if self._database.create(row):
            self._replica = Replica.begin(row)
        else:
            self._catch_up()

    # ---- what is known

    @property
    def name(self) -> str:
        """Where the store is, for messages; without a password."""
        return self._database.name

    @property
    def label(self) -> str:
        """Where it is, with the name of the study where it has one."""
        own = self._database.study_name
        return self.name if own == UNNAMED else f"{self.name}#{own}"

    @property
    def replica(self) -> Replica:
        """The study as far as this process has followed its log."""
        if self._replica is None:
            self._catch_up()
        assert self._replica is not None
        return self._replica

    @property
    def header(self) -> Header:
        """What the study is made of."""
        return self.replica.header

    @property
    def study(self) -> Study:
        """The study as far as this process has followed its log; to be read."""
        return self.replica.study

    def look(self, view: Callable[[Replica], T]) -> T:
        """Catch up with the log, and return what `view` says of the replica."""

        def looked() -> T:
            self._catch_up()
            return view(self.replica)

        return self._alone(lambda: self._reconnecting(looked))

    @contextlib.contextmanager
    def checked(self) -> Iterator[None]:
        """Say of what is damaged where it is."""
        try:
            yield
        except Damaged as error:
            raise self._database.damaged(str(error)) from None

    def _catch_up(self, head: Head | None = None) -> None:
        """Fold what was written since the last time."""
        try:
            with self.checked():
                self._fold_new(head)
        except BaseException:
            self._replica = None  # in doubt, it is thrown away and folded again
            raise

    def _fold_new(self, head: Head | None) -> None:
        head = head or self._database.head()
        if self._replica is None:
            self._replica = self._start()
        if head.turns < self._replica.turns:
            raise Damaged(f"it had {self._replica.turns:,} turns, and {head.turns:,} are left")
        for rows in self._database.rows(self._replica.turns + 1, head.turns):
            self._replica.fold(rows)
            self._tail += sum(snapshots.weight(row) for row in rows)
        if self._replica.chain != head.chain:
            raise Damaged("the last turn does not match the checksum of the study")
        self._followed = self._patience.clock()

    def _start(self) -> Replica:
        """Return the replica of the latest snapshot that is of use, or of the header alone."""
        database = self._database
        (first,) = next(database.rows(0, 0))
        replica = Replica.begin(first)
        self._tail = self._snapshot = 0
        turns = database.head().turns
        for turn, body in database.snapshots():
            if turn > turns:
                continue
            ((row,),) = database.rows(turn, turn)
            found = snapshots.read(replica.header, turn, row.chain, body)
            if found is not None:
                self._snapshot = turn
                return found
        return replica

    def events(self, after: int = 0) -> Iterator[Event]:
        """Iterate over all events of the turns that follow `after`, in order; refuse what does not fit its checksum."""
        chain, issued = b"", 0
        with self.checked():
            for row in itertools.chain.from_iterable(self.pages()):
                chain = link(chain, row.turn, row.id, row.at, row.body)
                if chain != row.chain:
                    raise Damaged(f"turn {row.turn:,} does not match its checksum")
                found = kinds.unpack([row.body] if row.turn else [])
                for j, kind in enumerate(found.kinds.tolist()):
                    place = int(found.places[j])
                    ticket = place if kind in kinds.OF_TICKET else None
                    if kind == kinds.ASK:
                        ticket, issued = issued, issued + 1
                    if row.turn > after:
                        yield Event(
                            row.turn,
                            row.at,
                            kinds.KINDS[kind],
                            ticket,
                            place if kind in kinds.OF_ARM else None,
                            float(found.values[j]) if kind in kinds.VALUED else None,
                            float(found.seconds[j]) if kind in kinds.TIMED else None,
                            found.texts.get(j),
                        )

    def pages(self) -> Iterator[list[Row]]:
        """Iterate over the rows of the log, in pages, from the header to the last turn there is now."""
        return self._database.rows(0, self._database.head().turns)

    # ---- turns

    def turn(self, work: Callable[[Turn], T]) -> T:
        """
        Take a turn, and return what `work` returns in it.

        What `work` did is committed, also where it raises, unless it was interrupted within one step. If the connection
        to a server is lost, this tries to reconnect for about a minute, and then finds out whether the turn was
        committed. If it was not, `work` is called again: it must not change anything but the turn.

        Raises
        ------
        EquipoiseError
            If the turn could not be committed, within another turn, or in a forked child.
        """
        if not self._write:
            raise EquipoiseError(f"the store {self.name} is open for reading only")

        inside.check_turn(self.name)

        def taken() -> T:
            tried: list[_Tried] = []
            found = self._reconnecting(lambda: self._take(work, tried))
            if snapshots.due(self._tail, self.replica):
                self._write_snapshot()
            return found

        return self._alone(taken)

    def _reconnecting(self, attempt: Callable[[], T]) -> T:
        patience = self._patience
        until, pause = None, _FIRST_PAUSE
        while True:
            try:
                if self._lost:
                    self._database.reconnect()
                    self._lost = False
                found = attempt()
                self._gave_up = False
                return found
            except Lost as error:
                self._lost = True
                now = patience.clock()
                # From the first loss on; after a wait in vain, the next call does not wait.
                until = now + (0.0 if self._gave_up else patience.seconds) if until is None else until
                if now + pause > until:
                    self._gave_up = True
                    raise StoreUnavailable(f"{error}; what was committed is saved") from error
                patience.pause(pause)
                pause = min(2 * pause, _LONGEST_PAUSE)

    def _take(self, work: Callable[[Turn], T], tried: list[_Tried]) -> T:
        """Take a turn, unless one of those that were tried before was committed after all."""
        database = self._database
        if not tried and self._patience.clock() - self._followed > _LONG:
            self._catch_up()
        try:
            self._catch_up(database.begin())
            for before in tried:
                pages = database.rows(before.turns + 1, self.replica.turns)
                if any(row.id == before.identity for rows in pages for row in rows):
                    database.rollback()
                    return _delivered(before.outcome, before.failure)  # type: ignore[no-any-return]
            outcome, failure = self._work_and_commit(Turn(self.replica, database), work, tried)
        except BaseException:
            if os.getpid() == self._pid:
                database.rollback()
            raise
        return _delivered(outcome, failure)  # type: ignore[no-any-return]

    def _work_and_commit(
        self, turn: Turn, work: Callable[[Turn], T], tried: list[_Tried]
    ) -> tuple[T | None, BaseException | None]:
        outcome, failure = None, None
        try:
            try:
                with inside.turn(lambda: self._thread == threading.get_ident()):
                    outcome = work(turn)
                    turn.look()
            except BaseException as error:
                # A child that was forked in the turn leaves it by an exception too; the turn is its parent's.
                if not turn.whole or isinstance(error, Lost) or os.getpid() != self._pid:
                    raise
                failure = error
            self._commit(turn, _Tried(turn.replica.turns, turn.identity, outcome, failure), tried)
        except BaseException:
            self._replica = None  # it is ahead of the log
            raise
        return outcome, failure

    def _commit(self, turn: Turn, this: _Tried, tried: list[_Tried]) -> None:
        database, replica = self._database, self.replica
        if not turn.wrote:
            database.rollback()
            return
        try:
            row = None
            if turn.draft is not None and turn.draft.kinds:
                row = self._row(turn.identity, turn.draft.pack())
                database.append(row)
            turn.write_rest()
            database.commit()
            if row is not None:
                self._tail += snapshots.weight(row)
                if turn.first < replica.study.ledger.issued:
                    replica.numbered([turn.first], [tag_of(row.id)])
                replica.count(turn.draft.kinds if turn.draft is not None else b"")
                replica.written(row.at, row.at, 1, row.chain)
        except Lost:
            tried.append(this)
            raise

    def _row(self, identity: bytes, body: bytes) -> Row:
        replica = self.replica
        turn, at = replica.turns + 1, time.time()
        return Row(turn, identity, at, body, link(replica.chain, turn, identity, at, body))

    def _alone(self, do: Callable[[], T]) -> T:
        """Do something as one thread at a time, in the process that opened the log, and not within its own turn."""
        if os.getpid() != self._pid:
            raise EquipoiseError(f"{self.name} was opened by the parent of this process; open it again here")
        if self._closed:
            raise EquipoiseError(f"the store {self.name} is closed")
        if self._thread == threading.get_ident():
            raise EquipoiseError(f"a turn of {self.name} cannot begin within another one")
        with self._guard:
            try:
                self._thread = threading.get_ident()
                return do()
            finally:
                self._thread = 0

    def _write_snapshot(self) -> None:
        """Write a snapshot, unless another process has written one; what goes wrong with it does no harm."""
        database, replica = self._database, self.replica
        body = snapshots.write(replica)
        try:
            database.begin()
            latest = max(database.snapshot_turns(), default=0)
            if latest <= self._snapshot:
                database.keep_snapshot(replica.turns, body, _SNAPSHOTS)
                latest = replica.turns
            database.commit()
            self._snapshot, self._tail = latest, 0
        except EquipoiseError:
            database.rollback()
        except BaseException:
            database.rollback()
            raise

    # ---- owners of tickets

    def hold(self, owner: int) -> None:
        """Show that an owner of tickets is alive."""
        self._database.hold(owner)

    def release(self, owner: int) -> None:
        """Let others take over the tickets of an owner at once."""

        def released() -> None:
            try:
                self._database.begin()
                self._database.renew(owner, -1.0)
                self._database.commit()
            finally:
                self._database.rollback()
                self._database.release(owner)

        self._alone(released)

    def close(self) -> None:
        """Close the store; what was not committed is lost."""
        if os.getpid() == self._pid and not self._closed:  # else the connection is the parent's
            self._closed = True
            self._database.close()

    def __enter__(self) -> Log:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def replay(where: str | os.PathLike[str]) -> Replica:
    """Return the replica of a log, folded from its beginning, whatever snapshots say."""
    with Log(where, write=False) as log, log.checked():
        replica = None
        for rows in log.pages():
            if replica is None:
                replica = Replica.begin(rows[0])
                rows = rows[1:]
            replica.fold(rows)
        assert replica is not None
        return replica


class _Tried(NamedTuple):
    """A turn whose commit got no reply: after how many turns, its id, and what it would have returned or raised."""

    turns: int
    identity: bytes
    outcome: Any
    failure: BaseException | None


def _delivered(outcome: Any, failure: BaseException | None) -> Any:
    if failure is not None:
        raise failure
    return outcome


def _continue(turn: Turn, header: Header) -> None:
    """Change what a new call asks of a study that exists."""
    if dumps(header.budget) != dumps(turn.study.budget):
        turn.set_budget(header.budget)
    known = turn.replica
    if (dumps(header.precision), header.level, header.interval) != (
        dumps(known.precision),
        known.level,
        known.interval,
    ):
        turn.set_goal(header.precision, header.level, header.interval)
