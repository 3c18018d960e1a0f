"""What the database holds for a service: titles and polls of studies, keys, and what it knows of itself."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple, TypeVar

from equipoise.base.errors import StoreDamaged
from equipoise.store.connections import Connections
from equipoise.store.database import Database, Missing, Values
from equipoise.store.log import connect

T = TypeVar("T")

OPEN, PAUSED, ARCHIVED = STATUSES = ("open", "paused", "archived")

_PAGE: Final = (
    "select s.study, s.name, p.status, p.created, p.title, p.poll "
    "from equipoise_study s left join equipoise_page p on p.study = s.study"
)
# The most parameters of one statement.
_MOST: Final = 500
_KEY: Final = "select study, number, id, role, label, created, hash, public from equipoise_key where study = ?"


class Page(NamedTuple):
    """
    A study as a service sees it.

    Attributes
    ----------
    study, name
        Its number and its name.
    status
        One of STATUSES.
    created
        When it was created, in seconds since 1970; None where a service did not create it.
    title
        For people; the name where there is none.
    poll
        What a web page shows, and where; None where the study is not a poll.
    """

    study: int
    name: str
    status: str
    created: float | None
    title: str
    poll: dict[str, Any] | None


class Key(NamedTuple):
    """
    A key of a study.

    Attributes
    ----------
    study, number
        The number of the study, and that of the key among the study's.
    id
        The part of the key that is not secret.
    role, label, created
        What it may do, what it is for, and since when it is there.
    hash
        Of the whole key.
    public
        The whole key, where it is one for web pages, which show it to everybody.
    """

    study: int
    number: int
    id: str
    role: str
    label: str
    created: float
    hash: bytes
    public: str | None


class Registry:
    """
    The tables of a service, and its connections to the database; any thread may call.

    Parameters
    ----------
    where
        The path or the URL of the database.
    connections
        The most connections.
    patience
        Seconds to wait for one of them.
    """

    def __init__(self, where: str, connections: int = 2, patience: float = 30.0) -> None:
        self.where = where
        new = iter((True,))  # only the first connection creates a file
        self._connections = Connections(
            lambda write: connect(where, write, create=next(new, False)), connections, patience
        )
        try:
            self._any.find()  # refuses what is not a store
            self._write(Database.create_tables)
        except BaseException:
            self._connections.close()
            raise

    def close(self) -> None:
        """End the connections."""
        self._connections.close()

    @property
    def name(self) -> str:
        """Where the database is, without a password."""
        return self._connections.name

    @property
    def connections(self) -> int:
        """How many connections there are now."""
        return self._connections.open

    def place(self, name: str) -> str:
        """Return where the study of this name is, as a store takes it."""
        return f"{self.where}#{name}"

    def study(self, name: str) -> Database:
        """Return the study of this name, on the connections of the service."""
        return self._connections.study(name)

    # ---- the service itself

    def value(self, name: str) -> str | None:
        """Return what the service knows of itself under a name."""
        found = self._read("select value from equipoise_service where name = ?", (name,))
        return str(found[0][0]) if found else None

    def settle(self, name: str, value: str) -> str:
        """Return what the service knows under a name: what another process wrote first, else this."""
        sql = "insert into equipoise_service values (?, ?) on conflict do nothing"
        self._write(lambda database: database.execute(sql, (name, value)))
        return self.value(name) or value

    def ping(self) -> None:
        """Refuse where the database does not answer."""
        self._read("select 1")

    # ---- sessions of the dashboard

    def end_session(self, session: bytes, until: float, now: float) -> None:
        """Write down that a session has ended, which would last until then; forget those that are over anyway."""

        def end(database: Database) -> None:
            database.execute("delete from equipoise_session where until < ?", (now,))
            database.execute("insert into equipoise_session values (?, ?) on conflict do nothing", (session, until))

        self._write(end)

    def ended_sessions(self) -> frozenset[bytes]:
        """Return the sessions that have ended before their time."""
        return frozenset(bytes(session) for (session,) in self._read("select session from equipoise_session"))

    # ---- studies

    def pages(self) -> list[Page]:
        """Return all studies, in the order of their creation."""
        return [_page(row) for row in self._read(f"{_PAGE} order by s.study")]

    def page(self, name: str) -> Page | None:
        """Return the study of a name; None where there is none."""
        found = self._read(f"{_PAGE} where s.name = ?", (name,))
        return _page(found[0]) if found else None

    def write(self, page: Page) -> None:
        """Write down what the service knows of a study."""
        sql = (
            "insert into equipoise_page (study, status, created, title, poll) values (?, ?, ?, ?, ?) "
            "on conflict (study) do update set "
            "status = excluded.status, created = excluded.created, title = excluded.title, poll = excluded.poll"
        )
        poll = None if page.poll is None else json.dumps(page.poll)
        values = (page.study, page.status, page.created, page.title, poll)
        self._write_of(page.study, lambda database: database.execute(sql, values))

    def turns(self, study: int) -> int:
        """Return how many turns a study has."""
        sql = "select turns from equipoise_study where study = ?"
        found = self._read(sql, (study,))
        if not found:
            raise Missing("the study was deleted")
        return int(found[0][0])

    def secret(self, study: int) -> str:
        """Return the secret with which the tickets of a study are signed; it lasts as long as the study."""
        known = "select secret from equipoise_page where study = ? and secret is not null"
        if found := self._read(known, (study,)):
            return str(found[0][0])
        sql = (
            "insert into equipoise_page (study, status, secret) values (?, ?, ?) on conflict (study) do update "
            "set secret = coalesce(equipoise_page.secret, excluded.secret)"
        )
        self._write_of(study, lambda database: database.execute(sql, (study, OPEN, secrets.token_hex(32))))
        return str(self._read(known, (study,))[0][0])

    def delete(self, name: str) -> None:
        """Remove a study, with its log and its keys."""
        database = self.study(name)
        if database.find():
            database.delete()

    # ---- keys

    def keys(self, study: int) -> list[Key]:
        """Return the keys of a study, the oldest first."""
        found = self._read(f"{_KEY} order by created, number", (study,))
        return [Key(*row) for row in found]

    def owners(self, ids: Sequence[str]) -> dict[str, str]:
        """Return the names of the studies that have keys with these ids; those that no study has are left out."""
        found: dict[str, str] = {}
        for start in range(0, len(ids), _MOST):
            part = ids[start : start + _MOST]
            sql = (
                "select k.id, s.name from equipoise_key k join equipoise_study s on s.study = k.study "
                f"where k.id in ({', '.join('?' * len(part))})"
            )
            found |= dict(self._read(sql, tuple(part)))
        return found

    def add_key(self, study: int, identity: str, role: str, label: str, digest: bytes, public: str | None) -> Key:
        """Add a key to a study."""
        created = time.time()

        def add(database: Database) -> Key:
            # Random, as tickets in flight are counted by it, also those of keys that are revoked.
            number = secrets.randbits(40)
            key = Key(study, number, identity, role, label, created, digest, public)
            database.execute("insert into equipoise_key values (?, ?, ?, ?, ?, ?, ?, ?)", tuple(key))
            return key

        return self._write_of(study, add)

    def change_key(self, key: Key, digest: bytes, public: str | None) -> None:
        """Give a key another secret."""
        sql = "update equipoise_key set hash = ?, public = ? where study = ? and number = ?"
        self._write(lambda database: database.execute(sql, (digest, public, key.study, key.number)))

    def revoke(self, key: Key) -> None:
        """Remove a key."""
        sql = "delete from equipoise_key where study = ? and number = ?"
        self._write(lambda database: database.execute(sql, (key.study, key.number)))

    # ---- the connections

    @property
    def _any(self) -> Database:
        return self._connections.study("")

    def _read(self, sql: str, values: Values = ()) -> Sequence[Values]:
        return self._any.execute(sql, values)

    def _write_of(self, study: int, write: Callable[[Database], T]) -> T:
        """Write something of a study, and nothing where it was deleted."""

        def checked(database: Database) -> T:
            # It changes nothing, and locks the study: it cannot be deleted before this is committed.
            sql = "update equipoise_study set format = format where study = ? returning study"
            if not database.execute(sql, (study,)):
                raise Missing("the study was deleted")
            return write(database)

        return self._write(checked)

    def _write(self, write: Callable[[Database], T]) -> T:
        database = self._any
        database.begin_creating()
        try:
            found = write(database)
            database.commit()
            return found
        finally:
            database.rollback()


def _page(row: tuple[Any, ...]) -> Page:
    study, name, status, created, title, poll = row
    try:
        known = None if poll is None else json.loads(poll)
    except ValueError:
        raise StoreDamaged(f"the poll of the study {name!r} cannot be read") from None
    return Page(study, name, status or OPEN, created, title or name, known)
