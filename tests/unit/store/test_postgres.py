"""A store on a server: lost connections, silent ones, orphans, and what nobody must read in a message."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import socket
import struct
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import equipoise as eq
from equipoise.base.patience import Patience
from equipoise.store import Log, Turn, differences, postgres, replay
from equipoise.store.log import PATIENCE, connect
from equipoise.store.postgres import Postgres as Server
from tests.unit.store.living import header
from tests.waiting import HANG, until

psycopg = pytest.importorskip("psycopg")

ROOT = Path(__file__).parents[3]


def told(turn: Turn, value: float) -> float:
    """Ask for two samples and answer one."""
    ids = turn.ask(2)
    turn.tell(ids[0], value)
    return value


def tell(log: Log, value: float) -> float:
    return log.turn(lambda turn: told(turn, value))


def values(where: str) -> list[float | None]:
    with Log(where, write=False) as reader:
        return [event.value for event in reader.events() if event.kind == "tell"]


def cut(log: Log, where: str) -> None:
    """The server ends the connection of a log."""
    ((process,),) = log._database.execute("select pg_backend_pid()")
    other = connect(where)
    other.execute("select pg_terminate_backend(?)", (process,))
    other.close()


class Pauses:
    """A clock that only pauses move, which are noted; at the start of one, something may happen."""

    def __init__(self, then: Callable[[int], None] | None = None) -> None:
        self.taken: list[float] = []
        self._then = then

    def patience(self, seconds: float = 60.0) -> Patience:
        return Patience(seconds, clock=lambda: sum(self.taken), pause=self._pause)

    def _pause(self, seconds: float) -> None:
        self.taken.append(seconds)
        if self._then is not None:
            self._then(len(self.taken))


def opened(where: str, patience: Patience = PATIENCE) -> Log:
    """A log with one sample."""
    log = Log(where, header(), patience=patience)
    tell(log, 1.0)
    return log


# ---- what a turn is on a server


def test_what_a_transaction_is(postgres: str) -> None:
    """Explicit, whatever the server or the role says; and nothing stays with the session, for proxies."""
    with Log(f"{postgres}#transaction", header()) as log:
        database = log._database
        settings = ("transaction_isolation", "synchronous_commit", "idle_in_transaction_session_timeout")
        database.execute("set default_transaction_isolation = 'serializable'")
        database.execute("set synchronous_commit = off")

        def work(turn: Turn) -> list[Any]:
            told(turn, 1.0)
            return [database.execute(f"show {name}")[0][0] for name in settings]

        assert log.turn(work) == ["read committed", "on", "10s"]
        assert [database.execute(f"show {name}")[0][0] for name in settings[1:]] == ["off", "0"]
        assert database.execute("select count(*) from pg_prepared_statements") == [(0,)]
        held = "select count(*) from pg_locks where locktype = 'advisory' and pid = pg_backend_pid()"
        assert database.execute(held) == [(0,)]


def test_another_session_for_every_transaction(postgres: str) -> None:
    """As behind a proxy that pools transactions: what one session was told, the next does not know."""
    with Log(f"{postgres}#pooled", header()) as log:
        for value in (1.0, 2.0, 3.0):
            log._database.reconnect()
            tell(log, value)
    assert values(f"{postgres}#pooled") == [1.0, 2.0, 3.0]


def test_a_process_that_stops_in_a_turn(postgres: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The server ends its transaction, so that others go on; when it goes on, it takes the turn again."""
    where = f"{postgres}#stopped"
    with opened(where) as log, Log(where) as other, ThreadPoolExecutor(1) as pool:
        monkeypatch.setattr("equipoise.store.postgres._BEGIN", postgres_begin("100ms"))
        attempts = 0

        def work(turn: Turn) -> float:
            nonlocal attempts
            attempts += 1
            if attempts == 1:
                pool.submit(tell, other, 5.0).result(HANG)  # it waits until the server has ended this transaction
            return told(turn, 2.0)

        assert log.turn(work) == 2.0
        assert attempts == 2
        assert values(where) == [1.0, 5.0, 2.0]
        assert differences(replay(where).study, log.study) == []


def postgres_begin(timeout: str) -> str:
    assert "'10s'" in postgres._BEGIN
    return postgres._BEGIN.replace("'10s'", f"'{timeout}'")


PARENT = """
import os, sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from equipoise.store import Log, postgres
from tests.unit.store.living import header
postgres._BEGIN = postgres._BEGIN.replace("'10s'", "'100ms'")
log = Log(sys.argv[1], header())
log.turn(lambda turn: turn.ask(1))

def orphans(turn):
    turn.ask(1)
    pool = ProcessPoolExecutor(2, mp_context=get_context("fork"))
    workers = {pool.submit(os.getpid).result() for _ in range(4)}
    for _ in workers:
        pool.submit(sys.stdin.read)
    print(*workers, flush=True)
    sys.stdin.read()

if sys.argv[2] == "in a turn":
    log.turn(orphans)
else:
    class Nothing:
        ask = staticmethod(lambda m: None)
    orphans(Nothing)
"""


@pytest.mark.parametrize("moment", ["in a turn", "between turns"])
def test_orphans_hold_nothing(postgres: str, moment: str) -> None:
    """Workers that outlive a killed parent have its socket, and the server does not know that it is dead."""
    where = f"{postgres}#orphans {moment}"
    words = [sys.executable, "-W", "ignore", "-c", PARENT, where, moment]
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    # A group of their own, so that all of them can be ended, also a worker that was not asked for its id.
    parent = subprocess.Popen(words, **pipes, text=True, cwd=ROOT, start_new_session=True)
    assert parent.stdout is not None
    assert parent.stdin is not None
    workers = [int(word) for word in parent.stdout.readline().split()]
    os.kill(parent.pid, signal.SIGKILL)
    parent.wait()
    try:
        with Log(where) as log:
            tell(log, 1.0)
        for worker in workers:
            os.kill(worker, 0)  # they live
        assert workers
        assert replay(where).study.ledger.issued == 3
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(parent.pid, signal.SIGKILL)
        parent.stdout.close()
        parent.stdin.close()


def test_names_that_collide(postgres: str) -> None:
    """Two names that the server hashes to one number are two studies, one of which is not busy where the other is."""
    database = connect(postgres)
    found = database.execute(
        "select array_agg(name) from (select 'study ' || n as name from generate_series(1, 300000) as n) as names "
        "group by hashtext(name) having count(*) > 1 limit 1"
    )
    database.close()
    one, two = (f"{postgres}#{name}" for name in found[0][0])
    with Log(one, header()) as first, Log(two, header()) as second, ThreadPoolExecutor(1) as pool:
        first.turn(lambda turn: pool.submit(tell, second, 2.0).result(HANG) + told(turn, 1.0))
    assert (values(one), values(two)) == ([1.0], [2.0])


# ---- what is refused


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://u:s3cret@127.0.0.1:1/db",
        "postgresql://u:s3cret@127.0.0.1:1/db#name",
        "postgresql://u@127.0.0.1:1/db?password=s3cret",
        "postgresql://u:s3cret@host:port/db",
        "postgresql://u:s3cret@[::1/db",
        "postgresql://u:s3cret@127.0.0.1:1/db?nonsense=1",
        "postgresql://u:%733cret@127.0.0.1:1/db",
        "postgres://u:s3cret@/db?host=/nowhere",
        "postgresql+psycopg://u:s3cret@127.0.0.1:1/db",
        "mysql://u:s3cret@host/db",
    ],
)
def test_a_password_is_in_no_message(url: str) -> None:
    for use in (
        lambda: Log(url, header()),
        lambda: Log(url, write=False),
        lambda: eq.open(url, arms=["a", "b"], budget=10),
        lambda: eq.estimate(lambda arm: 1.0, 10, arms=["a", "b"], store=url),
    ):
        with pytest.raises((eq.EquipoiseError, ValueError)) as refused:
            use()
        # The lines of the source that a traceback shows are not a message, and this file has the password in it.
        shown = traceback.format_exception_only(refused.value)
        assert "s3cret" not in "".join(shown)
        assert "%733cret" not in "".join(shown)


def test_no_server(tmp_path: Path) -> None:
    with pytest.raises(eq.EquipoiseError, match=r"^cannot use postgresql://u@/db on ") as refused:
        Log(f"postgresql://u:secret@/db?host={tmp_path}", header())
    assert "committed" not in str(refused.value)


def test_a_url_that_is_none() -> None:
    with pytest.raises(
        ValueError,
        match=r"^store must be a URL such as postgresql://user@host/database; the one given cannot be parsed$",
    ):
        Log("postgresql://user:secret@[::1/database", header())


# ---- a connection that is lost


@pytest.mark.parametrize("moment", ["begin", "append", "commit", "after the commit"])
def test_a_connection_is_lost_in_a_turn(postgres: str, moment: str) -> None:
    """Before the server has committed or after, and whoever writes meanwhile: all is there, once."""
    where = f"{postgres}#lost in {moment}"
    with opened(where) as log, Log(where) as other:
        database: Any = log._database
        name = moment.split()[-1]
        real = getattr(database, name)

        def interrupted(*given: Any) -> Any:
            setattr(database, name, real)  # this once
            if moment == "after the commit":
                real()
                assert values(where) == [1.0, 2.0]
            cut(log, where)
            tell(other, 5.0)
            return real(*given)

        setattr(database, name, interrupted)
        assert tell(log, 2.0) == 2.0
        assert values(where) == ([1.0, 2.0, 5.0] if moment == "after the commit" else [1.0, 5.0, 2.0])
        tell(log, 3.0)
        assert values(where)[3:] == [3.0]
        assert differences(replay(where).study, log.study) == []


def test_a_reader_whose_connection_is_lost(postgres: str) -> None:
    where = f"{postgres}#reader"
    with opened(where) as log, Log(where, write=False) as reader:
        cut(reader, where)
        tell(log, 2.0)
        assert reader.look(lambda replica: replica.turns) == 2


class Line:
    """
    A way to the server that can fail so that the server does not notice.

    `cut` ends all connections for the clients alone; `silence` does not even tell them. What it hears of `last_words`
    it does not pass on: it cuts, once.
    """

    def __init__(self, postgres: str) -> None:
        self._server = postgres.partition("?host=")[2] + "/.s.PGSQL.5432"
        self._door = socket.create_server(("127.0.0.1", 0))
        self.url = postgres.partition("?")[0].replace("@/", f"@127.0.0.1:{self._door.getsockname()[1]}/")
        self.last_words = b""
        self._clients: list[socket.socket] = []
        self._servers: list[socket.socket] = []
        threading.Thread(target=self._let_in, daemon=True).start()

    def _let_in(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, server = self._door.accept()[0], socket.socket(socket.AF_UNIX)
                server.connect(self._server)
                self._clients.append(client)
                self._servers.append(server)
                for way in ((client, server), (server, client)):
                    threading.Thread(target=self._carry, args=way, daemon=True).start()

    def _carry(self, source: socket.socket, target: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while said := source.recv(1 << 16):
                if self.last_words and self.last_words in said:
                    self.last_words = b""
                    self.cut()
                    return
                target.sendall(said)

    def cut(self) -> None:
        for client in self._clients:
            with contextlib.suppress(OSError):
                client.shutdown(socket.SHUT_RDWR)

    def silence(self) -> None:
        """Drop every packet that comes, unacknowledged, by a filter that returns 0."""
        filters = ctypes.create_string_buffer(struct.pack("HBBI", 6, 0, 0, 0))
        for client in self._clients:
            client.setsockopt(socket.SOL_SOCKET, 26, struct.pack("HL", 1, ctypes.addressof(filters)))

    def close(self) -> None:
        self._door.shutdown(socket.SHUT_RDWR)
        for each in (self._door, *self._clients, *self._servers):
            each.close()


@pytest.fixture
def line(postgres: str) -> Iterator[Line]:
    line = Line(postgres)
    yield line
    line.close()


def test_a_connection_that_falls_silent(line: Line) -> None:
    """It takes longer to notice than another one is tried for; the time begins when it is noticed."""
    where = f"{line.url}?tcp_user_timeout=300#silent"
    pauses: list[float] = []
    log: Log | None = None

    def clock() -> float:
        return 1000.0 if log is not None and log._lost else 0.0  # a thousand seconds until it is noticed

    log = opened(where, Patience(60.0, clock, pauses.append))
    line.silence()
    tell(log, 2.0)
    assert len(pauses) >= 1
    assert values(where) == [1.0, 2.0]
    log.close()


@pytest.mark.parametrize("words", [b"insert into equipoise_turn", b"commit\x00"])
def test_the_server_does_not_notice(line: Line, words: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its transaction holds the study until the server ends it; then the turn is taken again."""
    where = f"{line.url}#unnoticed {words!r}"
    monkeypatch.setattr("equipoise.store.postgres._BEGIN", postgres_begin("100ms"))
    with opened(where) as log:
        line.last_words = words
        tell(log, 2.0)
        assert not line.last_words
        assert values(where) == [1.0, 2.0]


def test_a_second_loss_while_it_looks_for_its_turn(line: Line, monkeypatch: pytest.MonkeyPatch) -> None:
    """The turn was committed, and the connection on which the log asks for it is lost too."""
    monkeypatch.setattr("equipoise.store.postgres._BEGIN", postgres_begin("100ms"))
    where = f"{line.url}#twice"
    with opened(where, Patience(60.0, pause=lambda seconds: None)) as log:
        database: Any = log._database
        commit, rows = database.commit, database.rows
        looked = 0

        def lose() -> None:
            database.commit = commit
            commit()
            line.cut()
            database.execute("select 1")

        def lose_again(first: int, last: int) -> Any:
            nonlocal looked
            looked += 1
            if looked == 2:
                line.cut()
            return rows(first, last)

        database.commit, database.rows = lose, lose_again
        assert tell(log, 2.0) == 2.0
        assert looked > 2
        database.rows = rows
        tell(log, 3.0)
    assert values(where) == [1.0, 2.0, 3.0]


def taken(log: Log, value: float) -> bool:
    """Whether a turn that may have to wait for the server is taken."""
    try:
        tell(log, value)
    except eq.EquipoiseError:
        return False
    return True


def test_a_process_of_the_server_that_is_stopped(line: Line) -> None:
    """Other connections do not depend on it, as it holds nothing between turns."""
    where = f"{line.url}#held up"
    with opened(where) as log:
        ((process,),) = log._database.execute("select pg_backend_pid()")
        line.cut()
        os.kill(process, signal.SIGSTOP)
        try:
            tell(log, 2.0)
        finally:
            os.kill(process, signal.SIGCONT)
        assert values(where) == [1.0, 2.0]


# ---- a server that is away


@pytest.fixture
def door(postgres: str) -> Iterator[tuple[str, Callable[[bool], None]]]:
    """A database of its own, and a function that lets nobody in, or all again."""
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute("create database house")

        def let_in(anybody: bool) -> None:
            connection.execute(f"alter database house allow_connections {anybody}")
            if not anybody:
                connection.execute("select pg_terminate_backend(pid) from pg_stat_activity where datname = 'house'")

        yield postgres.replace("/postgres?", "/house?"), let_in
        let_in(False)
        connection.execute("drop database house with (force)")


def test_a_server_that_is_away_for_a_while(door: tuple[str, Callable[[bool], None]]) -> None:
    """It is tried again less and less often, and is back in the fourth pause."""
    where, let_in = door
    pauses = Pauses(lambda nth: let_in(True) if nth == 4 else None)
    with opened(where, pauses.patience()) as log:
        let_in(False)
        tell(log, 2.0)
        assert pauses.taken == [0.05, 0.1, 0.2, 0.4]
        assert values(where) == [1.0, 2.0]


def test_a_server_that_does_not_come_back(door: tuple[str, Callable[[bool], None]]) -> None:
    """One sentence after the time is up, and at once from then on; should it come back after all, turns go on."""
    where, let_in = door
    pauses = Pauses()
    with opened(where, pauses.patience(1.0)) as log:
        let_in(False)
        for _ in range(2):
            with pytest.raises(
                eq.EquipoiseError, match=r"^cannot use postgresql://.* is not currently accepting connections; what was"
            ):
                tell(log, 2.0)
            assert pauses.taken == [0.05, 0.1, 0.2, 0.4]  # the next one would end after 1.55 seconds
        let_in(True)
        until(lambda: taken(log, 3.0), "the server lets the log in")
        assert values(where) == [1.0, 3.0]


# ---- behind a proxy that pools transactions


class Pooled(Server):
    """Each transaction, and each statement outside of one, goes to another session, of which nothing is kept."""

    swaps = 0

    def _open(self) -> None:
        super()._open()
        self._idle = psycopg.connect(autocommit=True, prepare_threshold=None, **self._settings)

    def _swap(self) -> None:
        if not self._connection.info.transaction_status:
            self._connection.execute("discard all")
            self._connection, self._idle = self._idle, self._connection
            Pooled.swaps += 1

    def execute(self, sql: str, values: Any = ()) -> Any:
        self._swap()
        return super().execute(sql, values)

    def begin(self) -> Any:
        self._swap()
        return super().begin()

    def close(self) -> None:
        super().close()
        self._idle.close()


def test_behind_a_proxy_that_pools_transactions(postgres: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("equipoise.store.log.Postgres", Pooled)
    where = f"{postgres}#{tmp_path.name}"
    with eq.open(where, arms=["a", "b"], budget=60) as one, eq.open(where) as two:
        while not one.done:
            for study in (one, two):
                for ticket in study.ask(3, lease=100):
                    study.tell(ticket, float(ticket.id % 5))
        assert one.result().samples == 60
        assert differences(one._log.study, replay(where).study) == []
    assert Pooled.swaps > 100


@pytest.mark.parametrize("exists", [True, False])
def test_a_connection_that_is_lost_while_a_log_is_opened(
    postgres: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, exists: bool
) -> None:
    where = f"{postgres}#{tmp_path.name}"
    if exists:
        with Log(where, header()) as log:
            tell(log, 1.0)
    losses: list[bool] = []

    class Flaky(Server):
        def find(self) -> bool:
            if not losses:
                losses.append(True)
                ((process,),) = self.execute("select pg_backend_pid()")
                self.execute("select pg_terminate_backend(?)", (process,))
            return bool(super().find())

    monkeypatch.setattr("equipoise.store.log.Postgres", Flaky)
    with Log(where, header()) as log:
        assert log.study.result().samples == int(exists)
    assert losses
