"""
Two databases behind one small face: SQLite by Python's own module, PostgreSQL by SQLAlchemy and psycopg.

Statements are the same for both, with `?` for a parameter. A database that is opened for writing belongs to this
process: SQLite's by a lock on a file beside it, PostgreSQL's by an advisory lock of the connection. The operating
system and the server take such a lock back when the process ends, however it ends.
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

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

Row = tuple[Any, ...]

_BUSY = "is being written by another process; one at a time can, and any number can read"
_LOCKS = 1162957897  # tells our advisory locks from other programs'
_PATIENCE = 2.0  # seconds that a server may take to notice that a client has died
# So that both sides notice within a minute when the other is silently gone; the server then takes a writer's lock back.
_KEEPALIVES = {"keepalives_idle": 30, "keepalives_interval": 10, "keepalives_count": 3}
_TIMEOUTS = {"connect_timeout": 10, "tcp_user_timeout": 60_000}


class Lost(EquipoiseError):
    """The connection to a server is gone, or cannot be had again. A commit that it ended may be kept or not."""


class Database(Protocol):
    """What a log needs of a database."""

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
    """The database at a path or a URL, and the name of the study in it."""
    text = os.fspath(where)
    if text.startswith(("postgresql://", "postgres://", "postgresql+psycopg://")):
        url, _, study = text.partition("#")
        return Postgres("postgresql+psycopg://" + url.partition("://")[2]), study or "study"
    if "://" in text and not text.startswith("sqlite:///"):
        raise ValueError(f"store={text!r} will not do; a path such as 'study.db' will, or a postgresql:// URL")
    text = text.removeprefix("sqlite:///")
    if text in ("", ":memory:"):
        raise ValueError(f"store={text!r} will not do; a store is a file that outlives the process, such as 'study.db'")
    return SQLite(Path(text), write), "study"


# ---- SQLite


class SQLite:
    """One file; WAL, so that others read while it is written; every commit reaches the disk before it returns."""

    table_options = "without rowid"

    def __init__(self, path: Path, write: bool) -> None:
        self.name = str(path)
        self._lock: FileLock | None = None
        if path.is_dir():
            raise ValueError(f"{self.name} is a folder; a store is a file in one")
        if write:
            if not path.absolute().parent.is_dir():
                raise ValueError(f"{self.name} cannot be made: there is no folder {path.absolute().parent}")
            self._lock = FileLock(path)
        elif not path.exists():
            raise ValueError(f"there is no store {self.name}")
        try:
            with self._sentences():
                # Autocommit, as this module's own transactions would begin at statements of its choosing. A reader may
                # write too, as SQLite itself must be able to put a file right whose writer was killed.
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
        """Every transaction is alone here."""

    def commit(self) -> None:
        self.execute("commit")

    def rollback(self) -> None:
        if self._connection.in_transaction:
            self.execute("rollback")

    def execute(self, sql: str, values: Row = ()) -> Sequence[Row]:
        with self._sentences():
            return self._connection.execute(sql, values).fetchall()

    def insert(self, sql: str, rows: Sequence[Row]) -> None:
        with self._sentences():
            self._connection.executemany(sql, rows)

    def claim(self, study: str) -> None:
        """The whole file is this process's already."""

    def reconnect(self) -> None:
        """A file is not lost."""

    def close(self) -> None:
        if hasattr(self, "_connection"):
            self._connection.close()
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    @contextlib.contextmanager
    def _sentences(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            said = str(error)
            if "full" in said or "disk I/O" in said:
                raise EquipoiseError(
                    f"{self.name} cannot grow ({said}); what was committed is kept: make room, then open it again"
                ) from error
            if isinstance(error, sqlite3.DatabaseError) and ("not a database" in said or "malformed" in said):
                raise ValueError(f"{self.name} is no store of a study ({said})") from None
            raise EquipoiseError(f"{self.name} cannot be used: {said}") from error


class FileLock:
    """
    A lock on `<path>.lock` that dies with its process.

    A record lock, as a child made by fork does not hold it, and a worker may outlive a parent that was killed. Such
    locks do not keep a process from itself; the set of paths does.
    """

    _held: set[str] = set()  # noqa: RUF012
    _guard = threading.Lock()

    def __init__(self, path: Path) -> None:
        self._name = str(path)
        self._key = os.path.realpath(path)
        self._path = Path(f"{self._key}.lock")
        with self._guard:
            if self._key in self._held:
                raise EquipoiseError(f"{self._name} is open for writing in this process already, and once is enough")
            self._file = self._take()
            self._held.add(self._key)

    def _take(self) -> IO[bytes]:
        while True:
            try:
                file = open(self._path, "ab")  # noqa: SIM115
            except OSError as error:
                raise EquipoiseError(f"{self._name} cannot be written: {error.strerror}") from error
            try:
                if sys.platform == "win32":
                    msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
                else:
                    fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                file.close()
                raise EquipoiseError(f"{self._name} {_BUSY}") from None
            # Whoever held it before removes the file: a lock on a removed file keeps nobody away.
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
    """A database that may hold many studies, each with its own writer."""

    table_options = ""

    def __init__(self, url: str) -> None:
        try:
            import psycopg  # noqa: F401
            import sqlalchemy
        except ModuleNotFoundError as error:
            raise ModuleNotFoundError(
                f'a store in PostgreSQL needs {error.name}, which is not installed: pip install "equipoise[serve]"'
            ) from None
        self._error = sqlalchemy.exc.SQLAlchemyError
        try:
            address = sqlalchemy.make_url(url)
        except (self._error, ValueError):
            # Not shown, as there may be a password in it.
            raise ValueError("the store's URL will not do; postgresql://user@host/database is one") from None
        self.name = address.render_as_string(hide_password=True).replace("+psycopg", "")
        given = {name: value for name, value in (_KEEPALIVES | _TIMEOUTS).items() if name not in address.query}
        self._engine = sqlalchemy.create_engine(address, poolclass=sqlalchemy.pool.NullPool, connect_args=given)
        self._lost: set[Row] = set()  # sessions that were ours, and may have the lock as long as the server has them
        self._connect()

    def _connect(self) -> None:
        with self._sentences():
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
        """Keep those waiting who call this too, until the transaction ends."""
        self.execute("select pg_advisory_xact_lock(?)", (_LOCKS,))

    def commit(self) -> None:
        self.execute("commit")

    def rollback(self) -> None:
        with contextlib.suppress(EquipoiseError):
            self.execute("rollback")

    def execute(self, sql: str, values: Row = ()) -> Sequence[Row]:
        with self._sentences():
            found = self._connection.exec_driver_sql(sql.replace("?", "%s"), values or None)
            return [tuple(row) for row in found] if found.returns_rows else []

    def insert(self, sql: str, rows: Sequence[Row]) -> None:
        with self._sentences():
            self._connection.exec_driver_sql(sql.replace("?", "%s"), list(rows))

    def claim(self, study: str) -> None:
        """Be the one writer of a study of this name, or say who is not."""
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
                        f"{self.name} cannot be used: a connection that was lost still has the lock of the study "
                        f"{study!r}; what was committed is kept"
                    )
                raise EquipoiseError(f"the study {study!r} in {self.name} {_BUSY}")
            time.sleep(0.05)

    def reconnect(self) -> None:
        """A new connection for one that was lost. The server is told to end the old one, as it may not have noticed."""
        self._lost.add(self._session)
        with contextlib.suppress(self._error):
            self._connection.close()
        try:
            self._connect()
        except EquipoiseError as error:
            raise Lost(str(error)) from error
        self._end_lost()

    def _end_lost(self) -> None:
        """Tell the server to end the sessions that were lost; those that it does not have any more are forgotten."""
        sql = "select pg_terminate_backend(pid) from pg_stat_activity where pid = ? and backend_start = ?"
        try:
            self._lost -= {session for session in self._lost if not self.execute(sql, session)}
        except Lost:
            raise
        except EquipoiseError:  # if we may not, the server itself notices in a while; the lock says when
            pass

    def close(self) -> None:
        self._connection.close()
        self._engine.dispose()

    @contextlib.contextmanager
    def _sentences(self) -> Iterator[None]:
        try:
            yield
        except self._error as error:
            said = str(getattr(error, "orig", error)).strip().splitlines()[0]
            kind = Lost if getattr(error, "connection_invalidated", False) else EquipoiseError
            raise kind(f"{self.name} cannot be used: {said}; what was committed is kept") from error
