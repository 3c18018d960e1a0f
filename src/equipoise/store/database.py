"""
The tables of a store, and the interface of the two databases that hold them.

============================ =====================================================================================
table                        what it holds
============================ =====================================================================================
`equipoise_study`            one row for each study: its name, how many turns its log has, and the last one's chain
`equipoise_turn`             the logs: row 0 of a study is its header, each of the others the events of one turn
`equipoise_lease`            who waits for which ticket, and until when; nobody's name means a visitor
`equipoise_call`             which tickets an ask with an idempotency key or a respondent got
`equipoise_snapshot`         states of studies after some turn, from which a replica may start
`equipoise_page`             what a service knows of a study: its status, its title and its poll
`equipoise_key`              the keys of a study, by which a service lets others in, as hashes
`equipoise_service`          what a service knows of itself, by name
`equipoise_session`          sessions of its dashboard that have ended before their time, as hashes
============================ =====================================================================================

Statements are the same for both databases, with `?` for a parameter. Only `equipoise_turn` is the truth: snapshots can
be dropped at any time, and without leases nothing is lost but knowing who samples what.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

from equipoise.base.errors import StoreDamaged, StoreUnavailable

# The format of a store; another one is refused, with the version that reads it.
STORE_FORMAT: Final = 3

Values = tuple[Any, ...]

# Owners of tickets that are not drivers, whose numbers are positive. Below NOBODY are visitors who came with a key.
VISITOR: Final = 0
NOBODY: Final = -1

HEAD: Final = "select turns, chain from equipoise_study where study = ?"

# Those with rows of studies.
_TABLES: Final = (
    "equipoise_study", "equipoise_turn", "equipoise_lease", "equipoise_call", "equipoise_snapshot", "equipoise_page",
    "equipoise_key",
)  # fmt: skip
# The most parameters of one statement.
_MOST: Final = 500
_PAGE: Final = 4096
_TYPES: Final = (int, bytes, float, bytes, bytes)
_STAMP: Final = struct.Struct("<Qd")


class Lost(StoreUnavailable):
    """The connection to a server is lost. A commit that it interrupted may have succeeded or not."""


class Missing(StoreUnavailable, ValueError):
    """The study is not in the database, or no longer."""


class Row(NamedTuple):
    """
    One row of a log.

    Attributes
    ----------
    turn, at
        Its number, from 0 for the header, without gaps; and when it was written, in seconds since 1970.
    id
        Eight random bytes, by which a writer whose connection was lost finds out whether its turn was committed.
    body
        The packed events; of row 0 the header as JSON.
    chain
        A checksum of all this and of the chain of the row before.
    """

    turn: int
    id: bytes
    at: float
    body: bytes
    chain: bytes


class Head(NamedTuple):
    """How far a log goes: the number of its turns, and the chain of the last one."""

    turns: int
    chain: bytes


class Lease(NamedTuple):
    """
    Who waits for a ticket.

    Attributes
    ----------
    ticket
        Its id.
    owner
        The number of a driver; VISITOR, or below NOBODY, for somebody whose silence says nothing; NOBODY where there is
        no lease.
    over
        Whether it has ended.
    """

    ticket: int
    owner: int
    over: bool

    @property
    def visiting(self) -> bool:
        """Whether it is a visitor who is waited for."""
        return self.owner <= VISITOR and self.owner != NOBODY


def link(before: bytes, turn: int, identity: bytes, at: float, body: bytes) -> bytes:
    """Return the chain of a row that follows one with the chain `before`."""
    return hashlib.blake2b(b"".join((before, _STAMP.pack(turn, at), identity, body)), digest_size=8).digest()


class Database:
    """
    One study in a database; the two backends add how to connect, to lock and to commit.

    Attributes
    ----------
    name
        Where it is, for messages; without a password.
    study_name
        The name of the study.
    """

    # What a backend says differently: types, options of tables, and the seconds since 1970 by its clock.
    blob = "blob"
    table_options = ""
    clock = ""

    def __init__(self, name: str, study_name: str) -> None:
        self.name, self.study_name = name, study_name
        self._study: int | None = None

    def turn_to(self, other: Database) -> None:
        """Have the same study of this database as another connection."""
        self._study, self.study_name = other._study, other.study_name

    # ---- what a backend has to do

    def execute(self, sql: str, values: Values = ()) -> Sequence[Values]:
        """Run a statement and return its rows."""
        raise NotImplementedError

    def execute_many(self, sql: str, rows: Sequence[Values]) -> None:
        """Run a statement for each of these rows of values."""
        raise NotImplementedError

    def insert_many(self, into: str, row: str, then: str, rows: Sequence[Values]) -> None:
        """Run `into values row then` for each of these rows of values, no two of them with the same key."""
        self.execute_many(f"{into} values {row} {then}", rows)

    def tables(self) -> set[str]:
        """Return the names of all tables."""
        raise NotImplementedError

    def begin(self) -> Head:
        """Begin a transaction in which nobody else writes the study; return how far its log goes."""
        raise NotImplementedError

    def begin_creating(self) -> None:
        """Begin a transaction in which no other process creates a study."""
        raise NotImplementedError

    def commit(self) -> None:
        """Commit it: what it wrote survives a power cut when this returns."""
        raise NotImplementedError

    def rollback(self) -> None:
        """End it without a trace; does nothing where there is none."""
        raise NotImplementedError

    def reconnect(self) -> None:
        """Replace a connection that was lost."""

    @property
    def can_write(self) -> bool:
        """Whether turns can be taken."""
        return True

    def hold(self, owner: int) -> None:
        """Show that an owner of tickets is alive, where the database lets others see that."""

    def release(self, owner: int) -> None:
        """Say that an owner is gone."""

    def alive(self, owner: int) -> bool:
        """Return whether an owner may be alive; called inside a transaction."""
        return True

    def close(self) -> None:
        """End the connection."""
        raise NotImplementedError

    # ---- the study

    def find(self) -> bool:
        """Return whether the study exists; refuse what is not a store of this format."""
        tables = self.tables()
        if "equipoise_study" not in tables:
            self.check_foreign(tables)
            return False
        sql = "select study, format, name from equipoise_study where name = ?"
        found = self.execute(sql, (self.study_name,))
        if found and (type(found[0][0]) is not int or found[0][2] != self.study_name):  # or it would be another one
            raise self.damaged(f"the number of the study {self.study_name!r} cannot be read")
        formats = [row[1] for row in found] or [
            row[0] for row in self.execute("select distinct format from equipoise_study limit 1")
        ]
        if formats and type(formats[0]) is not int:
            raise self.damaged("its format cannot be read")
        if formats and formats[0] != STORE_FORMAT:
            which = "an earlier version" if formats[0] < STORE_FORMAT else "a later version"
            raise StoreUnavailable(
                f"{self.name} has format {formats[0]}, which {which} of equipoise reads; this version reads format "
                f"{STORE_FORMAT}"
            )
        # Asked for again, as somebody may have created it meanwhile; without this, it would be created a second time.
        if not found and self.study_name in self.studies() and not (found := self.execute(sql, (self.study_name,))):
            raise self.damaged(f"the study {self.study_name!r} is in the table and not in its index")
        self._study = int(found[0][0]) if found else None
        return bool(found)

    def check_foreign(self, tables: set[str]) -> None:
        """Refuse a database that holds tables of others, where that means that it is not a store."""

    def studies(self) -> list[str]:
        """Return the names of all studies in the database."""
        if "equipoise_study" not in self.tables():
            return []
        return [name for (name,) in self.execute("select name from equipoise_study order by study")]

    def create(self, header: Row) -> bool:
        """Write the first row of a new study; False where somebody else has created it meanwhile."""
        self.begin_creating()
        try:
            self.create_tables()
            if self.find():
                self.rollback()
                return False
            # Past all rows of a study that somebody has deleted by hand, and perhaps not from every table.
            numbers = " union all ".join(f"select max(study) as study from {table}" for table in _TABLES)
            ((study,),) = self.execute(f"select coalesce(max(study), 0) + 1 from ({numbers}) as known")
            self.execute(
                "insert into equipoise_study values (?, ?, ?, ?, ?)",
                (study, self.study_name, STORE_FORMAT, header.turn, header.chain),
            )
            self._write_row(int(study), header)
            self.commit()
        except BaseException:
            self.rollback()
            raise
        self._study = int(study)
        return True

    def create_tables(self) -> None:
        """Create the tables that are not there yet; within a transaction of `begin_creating`."""
        for statement in self._schema():
            self.execute(statement)

    def delete(self) -> None:
        """
        Remove the study, and what a service keeps of it.

        Its number stays taken, so that a process that has the study open cannot mistake a later one for it.
        """
        self.begin()
        try:
            self._drop_rows()
            self.execute("insert into equipoise_page (study, status) values (?, 'deleted')", (self._study,))
            self.commit()
        finally:
            self.rollback()

    def _drop_rows(self) -> None:
        for table in _TABLES:
            self.execute(f"delete from {table} where study = ?", (self._study,))

    def _schema(self) -> tuple[str, ...]:
        blob, options = self.blob, self.table_options
        return (
            f"""create table if not exists equipoise_study (
                study bigint not null, name text not null, format integer not null,
                turns bigint not null, chain {blob} not null, primary key (study), unique (name)) {options}""",
            f"""create table if not exists equipoise_turn (
                study bigint not null, turn bigint not null, id {blob} not null, at double precision not null,
                body {blob} not null, chain {blob} not null, primary key (study, turn)) {options}""",
            f"""create table if not exists equipoise_lease (
                study bigint not null, ticket bigint not null, owner bigint not null,
                deadline double precision not null, primary key (study, ticket)) {options}""",
            f"""create table if not exists equipoise_call (
                study bigint not null, call {blob} not null, first bigint not null, tickets bigint not null,
                primary key (study, call)) {options}""",
            f"""create table if not exists equipoise_snapshot (
                study bigint not null, turn bigint not null, body {blob} not null,
                primary key (study, turn)) {options}""",
            f"""create table if not exists equipoise_page (
                study bigint not null, status text not null, created double precision, title text, poll text,
                secret text,
                primary key (study)) {options}""",
            f"""create table if not exists equipoise_key (
                study bigint not null, number bigint not null, id text not null, role text not null,
                label text not null, created double precision not null, hash {blob} not null, public text,
                primary key (study, number), unique (id)) {options}""",
            f"""create table if not exists equipoise_service (
                name text not null, value text not null, primary key (name)) {options}""",
            f"""create table if not exists equipoise_session (
                session {blob} not null, until double precision not null, primary key (session)) {options}""",
        )

    # ---- the log

    def head(self) -> Head:
        """Return how far the log goes."""
        return self.head_of(self.execute(HEAD, (self._study,)))

    def head_of(self, found: Sequence[Values]) -> Head:
        """Return how far the log goes, given what HEAD found."""
        if not found:
            raise Missing(f"the study {self.study_name!r} is no longer in {self.name}")
        turns, chain = found[0]
        if type(turns) is not int or not isinstance(chain, bytes):
            raise self.damaged("the number of its turns cannot be read")
        return Head(turns, chain)

    def rows(self, first: int, last: int) -> Iterator[list[Row]]:
        """Iterate over the rows of the log with these numbers, in pages."""
        sql = (
            "select turn, id, at, body, chain from equipoise_turn "
            f"where study = ? and turn >= ? and turn <= ? order by turn limit {_PAGE}"
        )
        while first <= last:
            rows = list(map(Row._make, self.execute(sql, (self._study, first, last))))
            for number, row in enumerate(rows, first):
                if row.turn != number:
                    raise self.damaged(f"turn {number:,} is missing")
                if tuple(map(type, row)) != _TYPES:
                    raise self.damaged(f"turn {number:,} cannot be read")
            if not rows:
                left = f"it had {last:,} turns, and {first - 1:,} are left"
                raise self.damaged(left if first else "its header is missing")
            yield rows
            first = rows[-1].turn + 1

    def append(self, row: Row) -> None:
        """Append a row, within a transaction of `begin`."""
        assert self._study is not None
        self._write_row(self._study, row)
        sql = "update equipoise_study set turns = ?, chain = ? where study = ?"
        self.execute(sql, (row.turn, row.chain, self._study))

    def _write_row(self, study: int, row: Row) -> None:
        self.execute("insert into equipoise_turn values (?, ?, ?, ?, ?, ?)", (study, *row))

    def damaged(self, what: str) -> StoreDamaged:
        """Return the error that says what is wrong with the log."""
        return StoreDamaged(f"the log in {self.name} is damaged: {what}; restore a copy of it or use another store")

    # ---- leases

    def grant(self, leases: Sequence[tuple[int, int, float]]) -> None:
        """Let owners wait for tickets from now on, whoever did before: ticket, owner, seconds; in a transaction."""
        self.insert_many(
            "insert into equipoise_lease",
            f"(?, ?, ?, {self.clock} + ?)",
            "on conflict (study, ticket) do update set owner = excluded.owner, deadline = excluded.deadline",
            [(self._study, *lease) for lease in {lease[0]: lease for lease in leases}.values()],
        )

    def settle(self, tickets: Sequence[int]) -> None:
        """End the leases of tickets that are no longer waited for."""
        sql = "delete from equipoise_lease where study = ? and ticket = ?"
        self.execute_many(sql, [(self._study, ticket) for ticket in tickets])

    def leases(self) -> list[Lease]:
        """Return all leases that can be read; those are over whose time is, or whose owner is dead."""
        sql = f"select ticket, owner, deadline < {self.clock} from equipoise_lease where study = ?"
        found = [row for row in self.execute(sql, (self._study,)) if type(row[0]) is type(row[1]) is int]
        dead = {
            owner for owner in {owner for _, owner, over in found if owner > 0 and not over} if not self.alive(owner)
        }
        return [Lease(ticket, owner, bool(over) or owner in dead) for ticket, owner, over in found]

    def renew(self, owner: int, seconds: float) -> None:
        """Extend all leases of an owner, from now on."""
        sql = f"update equipoise_lease set deadline = {self.clock} + ? where study = ? and owner = ?"
        self.execute(sql, (seconds, self._study, owner))

    # ---- calls that may be repeated

    def called(self, calls: Sequence[bytes]) -> dict[bytes, range]:
        """Return the ids of the tickets that calls got before; new ones are left out."""
        found: dict[bytes, range] = {}
        for start in range(0, len(calls), _MOST):
            part = calls[start : start + _MOST]
            places = ", ".join("?" * len(part))
            sql = f"select call, first, tickets from equipoise_call where study = ? and call in ({places})"
            for call, first, tickets in self.execute(sql, (self._study, *part)):
                if type(first) is not int or type(tickets) is not int:
                    raise self.damaged("the tickets of an earlier call cannot be read")
                found[bytes(call)] = range(first, first + tickets)
        return found

    def remember(self, calls: Sequence[tuple[bytes, range]]) -> None:
        """Write down which tickets calls got; within a transaction."""
        rows = [(self._study, call, tickets.start, len(tickets)) for call, tickets in calls]
        self.insert_many("insert into equipoise_call", "(?, ?, ?, ?)", "", rows)

    # ---- snapshots

    def snapshot_turns(self) -> list[int]:
        """Return the turns after which there are snapshots, the latest first."""
        sql = "select turn from equipoise_snapshot where study = ? order by turn desc"
        return [turn for (turn,) in self.execute(sql, (self._study,)) if type(turn) is int]

    def snapshots(self) -> Iterator[tuple[int, bytes]]:
        """Iterate over the snapshots and their turns, the latest first."""
        for turn in self.snapshot_turns():
            found = self.execute(
                "select body from equipoise_snapshot where study = ? and turn = ?", (self._study, turn)
            )
            if found and isinstance(found[0][0], bytes):
                yield turn, found[0][0]

    def keep_snapshot(self, turn: int, body: bytes, kept: int) -> None:
        """Add a snapshot, and drop all but the latest few; within a transaction."""
        sql = "insert into equipoise_snapshot values (?, ?, ?) on conflict do nothing"
        self.execute(sql, (self._study, turn, body))
        for old in self.snapshot_turns()[kept:]:
            self.execute("delete from equipoise_snapshot where study = ? and turn = ?", (self._study, old))
