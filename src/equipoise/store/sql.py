"""
Two databases behind one interface: SQLite by the standard library, PostgreSQL by SQLAlchemy and psycopg.

Statements are the same for both, with `?` for a parameter. A database that is open for writing is locked by this
process: SQLite by a lock on a file next to the database, PostgreSQL by an advisory lock of the connection. The
operating system and the server release such a lock when the process ends, however it ends.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any, Protocol

from equipoise.errors import EquipoiseError
from equipoise.inputs import install_hint

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

Row = tuple[Any, ...]

_BUSY = "is already open for writing in another process; only one can write at a time, and any number can read"
_LOCKS = 1162957897  # distinguishes our advisory locks from those of other programs
_PATIENCE = 2.0  # seconds that a server may take to notice that a client has died
# So that both sides notice within a minute if the other is silently gone; the server then releases a writer's lock.
_KEEPALIVES = {"keepalives_idle": 30, "keepalives_interval": 10, "keepalives_count": 3}
_TIMEOUTS = {"connect_timeout": 10, "tcp_user_timeout": 60_000}


class Lost(EquipoiseError):
    """The connection to a server is lost. A commit that it interrupted may have succeeded or not."""


class Database(Protocol):
    """The interface that a log needs from a database."""

    name: str
    table_options: str

    def tables(self) -> set[str]: ...
    def begin(self) -> None: ...
    def alone(self) -> None: ...
    def commit(self) -> None: ...
    def rollback(self) -> None: ...
    def execute(self, sql: str, values: Row = ()) -> Sequence[Row]: ...
    def insert(self, sql: str, rows: Sequence[Row]) -> None: ...
    def claim(self, study: str) -> None: ...
    def reconnect(self) -> None: ...
    def close(self) -> None: ...


def connect(where: str | os.PathLike[str], write: bool) -> tuple[Database, str]:
    """Return the database at a path or a URL, and the name of the study in it."""
    text = os.fspath(where)
    if text.startswith(("postgresql://", "postgres://", "postgresql+psycopg://")):
        url, _, study = text.partition("#")
        return Postgres("postgresql+psycopg://" + url.partition("://")[2], write), study or "study"
    if "://" in text and not text.startswith("sqlite:///"):
        raise ValueError(f"store must be a path such as 'study.db' or a postgresql:// URL, got {text!r}")
    text = text.removeprefix("sqlite:///")
    if text in ("", ":memory:"):
        raise ValueError(f"store must be a file that outlives the process, such as 'study.db', got {text!r}")
    return SQLite(Path(text), write), "study"


# ---- SQLite


class SQLite:
    """One file in WAL mode, so that others can read meanwhile; every commit is synced to the disk."""

    table_options = "without rowid"

    def __init__(self, path: Path, write: bool) -> None:
        self.name = str(path)
        self._lock: FileLock | None = None
        if path.is_dir():
            raise ValueError(f"store must be a file, got the folder {self.name}")
        if write:
            if not path.absolute().parent.is_dir():
                raise ValueError(f"cannot create {self.name}: there is no folder {path.absolute().parent}")
            self._lock = FileLock(path)
        elif not path.exists():
            raise ValueError(f"there is no store {self.name}")
        try:
            with self._explained():
                # Autocommit, because sqlite3 would otherwise begin transactions at statements of its own choosing. A
                # reader opens the file for writing too, so that SQLite can repair it after its writer was killed.
                mode = "rwc" if write else "rw"
                self._connection = sqlite3.connect(
                    f"{path.absolute().as_uri()}?mode={mode}",
                    uri=True,
                    timeout=30,
                    isolation_level=None,
                    check_same_thread=False,
                )
                if not write:
                    self.execute("pragma query_only = on")
                if write and all(name.startswith("equipoise_") for name in self.tables()):
                    self.execute("pragma journal_mode = wal")
                    self.execute("pragma synchronous = full")
        except BaseException:
            self.close()
            raise

    def tables(self) -> set[str]:
        return {name for (name,) in self.execute("select name from sqlite_master where type = 'table'")}

    def begin(self) -> None:
        self.execute("begin immediate")

    def alone(self) -> None:
        """Do nothing: a transaction in SQLite is always alone."""

    def commit(self) -> None:
        self.execute("commit")

    def rollback(self) -> None:
        if self._connection.in_transaction:
            self.execute("rollback")

    def execute(self, sql: str, values: Row = ()) -> Sequence[Row]:
        with self._explained():
            return self._connection.execute(sql, values).fetchall()

    def insert(self, sql: str, rows: Sequence[Row]) -> None:
        with self._explained():
            self._connection.executemany(sql, rows)

    def claim(self, study: str) -> None:
        """Do nothing: the file is locked already."""

    def reconnect(self) -> None:
        """Do nothing: a file has no connection to lose."""

    def close(self) -> None:
        if hasattr(self, "_connection"):
            self._connection.close()
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    @contextlib.contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            message = str(error)
            if "full" in message or "disk I/O" in message:
                raise EquipoiseError(
                    f"cannot write to {self.name}: {message}; what was committed is saved, free some space to continue"
                ) from error
            if isinstance(error, sqlite3.DatabaseError) and ("not a database" in message or "malformed" in message):
                raise ValueError(f"{self.name} is not an equipoise store: {message}") from None
            raise EquipoiseError(f"cannot use {self.name}: {message}") from error


class FileLock:
    """
    A lock on `<path>.lock` that ends with its process.

    It is a record lock, which a forked child does not inherit, because a worker may outlive a parent that was killed.
    Such a lock does not exclude the process that holds it; the set of paths does.
    """

    _held: set[str] = set()  # noqa: RUF012
    _guard = threading.Lock()

    def __init__(self, path: Path) -> None:
        self._name = str(path)
        self._key = os.path.realpath(path)
        self._path = Path(f"{self._key}.lock")
        with self._guard:
            if self._key in self._held:
                raise EquipoiseError(f"the store {self._name} is already open for writing in this process")
            self._file = self._take()
            self._held.add(self._key)

    def _take(self) -> IO[bytes]:
        while True:
            try:
                file = open(self._path, "ab")  # noqa: SIM115
            except OSError as error:
                raise EquipoiseError(f"cannot write to {self._name}: {error.strerror}") from error
            try:
                if sys.platform == "win32":
                    msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
                else:
                    fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                file.close()
                raise EquipoiseError(f"the store {self._name} {_BUSY}") from None
            # The previous holder removes the file, and a lock on a removed file excludes nobody.
            with contextlib.suppress(OSError):
                if os.path.samestat(os.fstat(file.fileno()), os.stat(self._path)):
                    return file
            file.close()

    def release(self) -> None:
        with self._guard:
            with contextlib.suppress(OSError):
                self._path.unlink()
            self._file.close()
            self._held.discard(self._key)


# ---- PostgreSQL


class Postgres:
    """A database that can hold many studies, each with its own writer."""

    table_options = ""

    def __init__(self, url: str, write: bool = True) -> None:
        self._saved = "; what was committed is saved" if write else ""
        try:
            import psycopg  # noqa: F401
            import sqlalchemy
        except ModuleNotFoundError as error:
            raise ModuleNotFoundError(
                f"a store in PostgreSQL needs {error.name}, which is not installed; {install_hint('serve')}"
            ) from None
        self._error = sqlalchemy.exc.SQLAlchemyError
        try:
            address = sqlalchemy.make_url(url)
        except (self._error, ValueError):
            # The URL is not shown, because it may contain a password.
            raise ValueError(
                "store must be a URL such as postgresql://user@host/database; the one given cannot be parsed"
            ) from None
        self.name = address.render_as_string(hide_password=True).replace("+psycopg", "")
        given = {name: value for name, value in (_KEEPALIVES | _TIMEOUTS).items() if name not in address.query}
        self._engine = sqlalchemy.create_engine(address, poolclass=sqlalchemy.pool.NullPool, connect_args=given)
        self._lost: set[Row] = set()  # our former sessions, which may hold the lock as long as the server has them
        self._connect()

    def _connect(self) -> None:
        with self._explained():
            self._connection = self._engine.connect().execution_options(isolation_level="AUTOCOMMIT")
        for setting, value in _KEEPALIVES.items():
            self.execute(f"set tcp_{setting} = {value}")
        self.execute("set synchronous_commit = on")
        sql = "select pid, backend_start from pg_stat_activity where pid = pg_backend_pid()"
        (self._session,) = self.execute(sql)

    def tables(self) -> set[str]:
        return {name for (name,) in self.execute("select tablename from pg_tables where schemaname = current_schema()")}

    def begin(self) -> None:
        self.execute("begin")

    def alone(self) -> None:
        """Wait until no other transaction that called this is open."""
        self.execute("select pg_advisory_xact_lock(?)", (_LOCKS,))

    def commit(self) -> None:
        self.execute("commit")

    def rollback(self) -> None:
        with contextlib.suppress(EquipoiseError):
            self.execute("rollback")

    def execute(self, sql: str, values: Row = ()) -> Sequence[Row]:
        with self._explained():
            found = self._connection.exec_driver_sql(sql.replace("?", "%s"), values or None)
            return [tuple(row) for row in found] if found.returns_rows else []

    def insert(self, sql: str, rows: Sequence[Row]) -> None:
        with self._explained():
            self._connection.exec_driver_sql(sql.replace("?", "%s"), list(rows))

    def claim(self, study: str) -> None:
        """Become the one writer of a study, or raise if there is another."""
        until = time.monotonic() + _PATIENCE
        while True:
            ((mine,),) = self.execute("select pg_try_advisory_lock(?, hashtext(?))", (_LOCKS, study))
            if mine:
                self._lost.clear()
                return
            if time.monotonic() > until:
                self._end_lost()
                if self._lost:
                    raise Lost(
                        f"cannot use {self.name}: a lost connection still holds the lock of the study {study!r}; "
                        "what was committed is saved"
                    )
                raise EquipoiseError(f"the study {study!r} in {self.name} {_BUSY}")
            time.sleep(0.05)

    def reconnect(self) -> None:
        """Replace a lost connection; the server is told to end the old one, which it may not have noticed."""
        self._lost.add(self._session)
        with contextlib.suppress(self._error):
            self._connection.close()
        try:
            self._connect()
        except EquipoiseError as error:
            raise Lost(str(error)) from error
        self._end_lost()

    def _end_lost(self) -> None:
        """Tell the server to end our lost sessions, and forget those that have ended."""
        sql = "select pg_terminate_backend(pid) from pg_stat_activity where pid = ? and backend_start = ?"
        try:
            self._lost -= {session for session in self._lost if not self.execute(sql, session)}
        except Lost:
            raise
        except EquipoiseError:  # without permission, the server notices by itself after a while, and releases the lock
            pass

    def close(self) -> None:
        self._connection.close()
        self._engine.dispose()

    @contextlib.contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except self._error as error:
            message = str(getattr(error, "orig", error)).strip().splitlines()[0]
            kind = Lost if getattr(error, "connection_invalidated", False) else EquipoiseError
            raise kind(f"cannot use {self.name}: {message}{self._saved}") from error
