"""What the database holds for a service: titles and polls of studies, keys, and what it knows of itself."""

from __future__ import annotations

import json
import secrets
import threading
import time
from collections.abc import Callable
from contextlib import closing
from typing import Any, Final, NamedTuple, TypeVar

from equipoise.errors import EquipoiseError
from equipoise.store.database import Lost, Missing
from equipoise.store.log import connect

T = TypeVar("T")

OPEN, PAUSED, ARCHIVED = STATUSES = ("open", "paused", "archived")

_PAGE: Final = (
    "select s.study, s.name, p.status, p.created, p.title, p.poll "
    "from equipoise_study s left join equipoise_page p on p.study = s.study"
)
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
    The tables of a service; any thread may call.

    Parameters
    ----------
    where
        The path or the URL of the database.
    """

    def __init__(self, where: str) -> None:
        self.where = where
        self._guard = threading.Lock()
        self._database = connect(where, create=True, private=True)  # it holds secrets
        try:
            self._database.find()  # refuses what is not a store
            self._database.begin_creating()
            try:
                self._database.create_tables()
                self._database.commit()
            finally:
                self._database.rollback()
        except BaseException:
            self._database.close()
            raise

    def close(self) -> None:
        """End the connection."""
        with self._guard:
            self._database.close()

    @property
    def name(self) -> str:
        """Where the database is, without a password."""
        return self._database.name

    def place(self, name: str) -> str:
        """Return where the study of this name is, as a store takes it."""
        return f"{self.where}#{name}"

    # ---- the service itself

    def value(self, name: str) -> str | None:
        """Return what the service knows of itself under a name."""
        found = self._read(
            lambda: self._database.execute("select value from equipoise_service where name = ?", (name,))
        )
        return str(found[0][0]) if found else None

    def settle(self, name: str, value: str) -> str:
        """Return what the service knows under a name: what another process wrote first, else this."""
        sql = "insert into equipoise_service values (?, ?) on conflict do nothing"
        self._write(lambda: self._database.execute(sql, (name, value)))
        return self.value(name) or value

    def ping(self) -> None:
        """Refuse where the database does not answer."""
        self._read(lambda: self._database.execute("select 1"))

    # ---- studies

    def pages(self) -> list[Page]:
        """Return all studies, in the order of their creation."""
        return [_page(row) for row in self._read(lambda: self._database.execute(f"{_PAGE} order by s.study"))]

    def page(self, name: str) -> Page | None:
        """Return the study of a name; None where there is none."""
        found = self._read(lambda: self._database.execute(f"{_PAGE} where s.name = ?", (name,)))
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
        self._write_of(page.study, lambda: self._database.execute(sql, values))

    def turns(self, study: int) -> int:
        """Return how many turns a study has."""
        sql = "select turns from equipoise_study where study = ?"
        found = self._read(lambda: self._database.execute(sql, (study,)))
        if not found:
            raise Missing("the study was deleted")
        return int(found[0][0])

    def secret(self, study: int) -> str:
        """Return the secret with which the tickets of a study are signed; it lasts as long as the study."""
        sql = (
            "insert into equipoise_page (study, status, secret) values (?, ?, ?) on conflict (study) do update "
            "set secret = coalesce(equipoise_page.secret, excluded.secret)"
        )
        self._write_of(study, lambda: self._database.execute(sql, (study, OPEN, secrets.token_hex(32))))
        found = self._read(
            lambda: self._database.execute("select secret from equipoise_page where study = ?", (study,))
        )
        return str(found[0][0])

    def delete(self, name: str) -> None:
        """Remove a study, with its log and its keys."""
        with closing(connect(self.place(name))) as database:
            if database.find():
                database.delete()

    # ---- keys

    def keys(self, study: int) -> list[Key]:
        """Return the keys of a study, the oldest first."""
        found = self._read(lambda: self._database.execute(f"{_KEY} order by created, number", (study,)))
        return [Key(*row) for row in found]

    def add_key(self, study: int, identity: str, role: str, label: str, digest: bytes, public: str | None) -> Key:
        """Add a key to a study."""
        created = time.time()

        def add() -> Key:
            # Random, as tickets in flight are counted by it, also those of keys that are revoked.
            number = secrets.randbits(40)
            key = Key(study, number, identity, role, label, created, digest, public)
            self._database.execute("insert into equipoise_key values (?, ?, ?, ?, ?, ?, ?, ?)", tuple(key))
            return key

        return self._write_of(study, add)

    def change_key(self, key: Key, digest: bytes, public: str | None) -> None:
        """Give a key another secret."""
        sql = "update equipoise_key set hash = ?, public = ? where study = ? and number = ?"
        self._write(lambda: self._database.execute(sql, (digest, public, key.study, key.number)))

    def revoke(self, key: Key) -> None:
        """Remove a key."""
        sql = "delete from equipoise_key where study = ? and number = ?"
        self._write(lambda: self._database.execute(sql, (key.study, key.number)))

    # ---- the connection

    def _read(self, read: Callable[[], T]) -> T:
        with self._guard:
            try:
                return read()
            except Lost:
                self._database.reconnect()
                return read()

    def _write_of(self, study: int, write: Callable[[], T]) -> T:
        """Write something of a study, and nothing where it was deleted."""

        def checked() -> T:
            # It changes nothing, and locks the study: it cannot be deleted before this is committed.
            sql = "update equipoise_study set format = format where study = ? returning study"
            if not self._database.execute(sql, (study,)):
                raise Missing("the study was deleted")
            return write()

        return self._write(checked)

    def _write(self, write: Callable[[], T]) -> T:
        with self._guard:
            try:
                self._database.begin_creating()
            except Lost:
                self._database.reconnect()
                self._database.begin_creating()
            try:
                found = write()
                self._database.commit()
                return found
            finally:
                self._database.rollback()


def _page(row: tuple[Any, ...]) -> Page:
    study, name, status, created, title, poll = row
    try:
        known = None if poll is None else json.loads(poll)
    except ValueError:
        raise EquipoiseError(f"the poll of the study {name!r} cannot be read") from None
    return Page(study, name, status or OPEN, created, title or name, known)
