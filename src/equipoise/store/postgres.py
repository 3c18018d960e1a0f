"""A store in PostgreSQL, for any number of machines."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any, Final

from equipoise.base.errors import InvalidInput, StoreUnavailable
from equipoise.base.inputs import install_hint
from equipoise.store.database import HEAD, Database, Head, Lost, Values

# Distinguishes our advisory locks from those of other programs.
_LOCK: Final = 1162957897
# So that a silent connection is noticed within a minute.
_DEFAULTS: Final = {
    "connect_timeout": "10",
    "keepalives_idle": "30",
    "keepalives_interval": "10",
    "keepalives_count": "3",
    "tcp_user_timeout": "60000",
}
# The most rows of one statement.
_ROWS: Final = 1000
# A transaction holds the lock of its study. One whose client was stopped, or is gone without a word, is ended after
# this time, so that others can go on. Nothing is said to a session: behind a pooling proxy, each transaction may have
# another one.
_BEGIN: Final = (
    "begin isolation level read committed; set local synchronous_commit = on; "
    "set local idle_in_transaction_session_timeout = '10s'"
)


class Postgres(Database):
    """
    A database that holds many studies.

    Parameters
    ----------
    url
        As libpq takes it.
    study_name
        The name of the study.
    """

    blob = "bytea"
    clock = "extract(epoch from clock_timestamp())::double precision"

    def __init__(self, url: str, study_name: str) -> None:
        try:
            import psycopg
        except ModuleNotFoundError as error:
            raise ModuleNotFoundError(
                f"a store in PostgreSQL needs {error.name}, which is not installed; {install_hint('postgres')}"
            ) from None
        self._psycopg = psycopg
        try:
            known = psycopg.conninfo.conninfo_to_dict(url)
        except psycopg.Error:
            # The URL is not shown, because it may contain a password.
            raise InvalidInput(
                "store must be a URL such as postgresql://user@host/database; the one given cannot be parsed"
            ) from None
        super().__init__(_described(known), study_name)
        self._settings: dict[str, Any] = _DEFAULTS | known
        self._password = str(known.get("password") or "")
        self._open()

    def _open(self) -> None:
        with self._explained():
            # Prepared statements belong to a session, and behind a proxy the next one may be another.
            self._connection = self._psycopg.connect(autocommit=True, prepare_threshold=None, **self._settings)

    def execute(self, sql: str, values: Values = ()) -> Sequence[Values]:
        with self._explained():
            cursor = self._connection.execute(sql.replace("?", "%s"), values or None)
            return cursor.fetchall() if cursor.description else []

    def execute_many(self, sql: str, rows: Sequence[Values]) -> None:
        # As one message. `executemany` sends a pipeline, whose end leaves the server without the timeout of an idle
        # transaction: a writer that is stopped or lost then would hold the study for ever.
        if rows:
            with self._explained(), self._psycopg.ClientCursor(self._connection) as cursor:
                statement = sql.replace("?", "%s")
                cursor.execute("; ".join(cursor.mogrify(statement, row) for row in rows))

    def insert_many(self, into: str, row: str, then: str, rows: Sequence[Values]) -> None:
        # The server reads one statement of many rows in a fraction of the time of many statements.
        for start in range(0, len(rows), _ROWS):
            part = rows[start : start + _ROWS]
            values = tuple(value for each in part for value in each)
            self.execute(f"{into} values {', '.join([row] * len(part))} {then}", values)

    def settle(self, tickets: Sequence[int]) -> None:
        sql = "delete from equipoise_lease where study = ? and ticket = any(?)"
        self.execute(sql, (self._study, list(tickets)))

    def tables(self) -> set[str]:
        return {name for (name,) in self.execute("select tablename from pg_tables where schemaname = current_schema()")}

    def begin(self) -> Head:
        # The number of the study is ours, so that one message does for all of it.
        with self._explained():
            cursor = self._connection.execute(f"{_BEGIN}; {HEAD.replace('?', str(self._study))} for update")
            while cursor.nextset():
                pass
            found = cursor.fetchall()
        return self.head_of(found)

    def begin_creating(self) -> None:
        self.execute(f"{_BEGIN}; select pg_advisory_xact_lock({_LOCK})")

    def commit(self) -> None:
        self.execute("commit")

    def rollback(self) -> None:
        if self._connection.closed or not self._connection.info.transaction_status:
            return
        try:
            self.execute("rollback")
        except BaseException:  # an interrupted statement may still be under way: another connection is sure
            self._connection.close()

    def reconnect(self) -> None:
        if not self._connection.closed:
            with contextlib.suppress(self._psycopg.Error):
                self._connection.close()
        try:
            self._open()
        except StoreUnavailable as error:
            raise Lost(str(error)) from error

    def close(self) -> None:
        self._connection.close()

    @contextlib.contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except self._psycopg.Error as error:
            connection = getattr(self, "_connection", None)
            # What libpq says by itself has no code. After a timeout it does not count the connection as closed.
            unheard = isinstance(error, self._psycopg.OperationalError) and error.sqlstate is None
            lost = connection is not None and (connection.closed or unheard)
            message = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
            if self._password:
                message = message.replace(self._password, "***")
            raise (Lost if lost else StoreUnavailable)(f"cannot use {self.name}: {message}") from None


def _described(known: dict[str, Any]) -> str:
    """Return where a database is, without a password."""
    host = str(known.get("host") or "localhost")
    user = f"{known['user']}@" if known.get("user") else ""
    port = f":{known['port']}" if known.get("port") else ""
    name = f"/{known['dbname']}" if known.get("dbname") else ""
    if host.startswith("/"):
        return f"postgresql://{user}{port}{name} on {host}"
    return f"postgresql://{user}{host}{port}{name}"
