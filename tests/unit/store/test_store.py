"""What a store refuses, and that it is one writer's at a time, whatever becomes of that writer."""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
import resource
import shutil
import signal
import socket
import sqlite3
import struct
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from equipoise.store.sql import Lost

import equipoise as eq
from equipoise import report
from equipoise.inputs import install_hint
from equipoise.store import FORMAT, Header, Journal, Store, differences, log, replay
from equipoise.store.log import Patience
from equipoise.strategies import resolve
from tests.waiting import until

HEADER = Header(("a", "b"), resolve("auto"), None, 100_000, 1)

# Opens the store for writing, writes a little, says so, and waits to be killed, or until the test has ended.
WRITER = """
import sys
import numpy as np
from equipoise.store import Header, Journal
from equipoise.strategies import resolve
journal = Journal(Header(("a", "b"), resolve("auto"), None, 100_000, 1), sys.argv[1])
ids = journal.ask(10)
journal.tell(ids, np.arange(10.0), np.zeros(10))
journal.commit()
if sys.argv[2] == "fork":
    import os
    if os.fork() == 0:
        print(os.getpid(), flush=True)
        sys.stdin.read()
        os._exit(0)
else:
    print("ready", flush=True)
sys.stdin.read()
"""


def writer(where: str, how: str = "") -> tuple[subprocess.Popen[str], str]:
    words = [sys.executable, "-c", WRITER, where, how]
    child = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    return child, child.stdout.readline().strip()


def end(child: subprocess.Popen[str]) -> None:
    child.kill()
    child.wait()
    assert child.stdout is not None
    assert child.stdin is not None
    child.stdout.close()
    child.stdin.close()


def can_be_written(where: str) -> bool:
    """Whether nobody writes; a server takes a moment to notice that somebody is dead, and a busy one takes longer."""
    try:
        Store(where, write=True).close()
    except eq.EquipoiseError:
        return False
    return True


def test_one_writer_and_many_readers(where: str) -> None:
    child, _ = writer(where)
    try:
        with pytest.raises(
            eq.EquipoiseError, match="is already open for writing in another process; only one can write"
        ):
            Store(where, write=True)
        with Store(where) as one, Store(where) as two:
            assert differences(replay(one), replay(two)) == []
            assert replay(one).result().samples == 10
    finally:
        end(child)
    # The writer is dead, not gone politely: nothing of its lock is left.
    until(lambda: can_be_written(where), "a dead writer is noticed")
    journal = Journal(HEADER, where)
    assert journal.study.result().samples == 10
    journal.close()


def test_a_child_of_a_dead_writer_holds_no_lock(tmp_path: Path) -> None:
    """As the workers of a pool do that outlive the process that was killed."""
    where = str(tmp_path / "study.db")
    child, orphan = writer(where, "fork")
    end(child)
    try:
        os.kill(int(orphan), 0)  # it lives
        Journal(HEADER, where).close()
    finally:
        os.kill(int(orphan), signal.SIGKILL)


def test_twice_in_one_process(where: str) -> None:
    journal = Journal(HEADER, where)
    with pytest.raises(eq.EquipoiseError, match=r"is already open for writing in (this|another) process"):
        Store(where, write=True)
    journal.close()
    Journal(HEADER, where).close()


def test_nothing_lies_about_after_a_clean_end(tmp_path: Path) -> None:
    Journal(HEADER, tmp_path / "study.db").close()
    assert [path.name for path in tmp_path.iterdir()] == ["study.db"]


def test_every_commit_is_synced(tmp_path: Path) -> None:
    """WAL with full sync: what survives a power cut."""
    journal = Journal(HEADER, tmp_path / "study.db")
    assert journal.store is not None
    assert list(journal.store._database.execute("pragma journal_mode")) == [("wal",)]
    assert list(journal.store._database.execute("pragma synchronous")) == [(2,)]
    journal.close()


def test_a_newer_store(where: str) -> None:
    journal = Journal(HEADER, where)
    assert journal.store is not None
    sql = "update equipoise_study set format = ? where name = ?"
    journal.store._database.execute(sql, (FORMAT + 1, journal.store._study_name))
    journal.close()
    for write in (False, True):
        with pytest.raises(
            eq.EquipoiseError, match="has format 3, and this version of equipoise reads formats up to 2"
        ):
            Store(where, write=write)


def test_a_damaged_header(where: str) -> None:
    journal = Journal(HEADER, where)
    assert journal.store is not None
    sql = "update equipoise_study set header = ? where name = ?"
    journal.store._database.execute(sql, ("{}", journal.store._study_name))
    journal.close()
    with pytest.raises(eq.EquipoiseError, match="cannot read the store: the header of its study is damaged"):
        Store(where)


def kept(where: str, samples: int = 20) -> None:
    """A study of so many more samples, twice as many events, in the store."""
    journal = Journal(HEADER, where)
    for _ in range(samples):
        ids = journal.ask(1)
        journal.tell(ids, np.array(ids, float), np.zeros(1))
        journal.commit()
    journal.close()


def by_hand(where: str, *statements: str) -> None:
    """What somebody does to a database, with the study's number."""
    with Store(where, write=True) as store:
        for sql in statements:
            store._database.execute(sql, (store._study,))


@pytest.mark.parametrize(
    ("which", "said"),
    [
        ("event = 0", "event 0 is missing"),
        ("event = 17", "event 17 is missing"),
        ("event in (31, 12)", "event 12 is missing"),
        ("event = 39", "it had 40 events, and 39 are left"),
        ("event > 25", "it had 40 events, and 26 are left"),
        ("event >= 0", "it had 40 events, and 0 are left"),
    ],
)
def test_an_event_that_is_missing_is_noticed(where: str, which: str, said: str) -> None:
    kept(where)
    by_hand(where, f"delete from equipoise_log where study = ? and {which}")
    sentence = rf"^the log in .* is damaged: {said}; restore a copy of it or use another store$"
    looks: list[Callable[[], Any]] = [
        lambda: list(Store(where).events()),
        lambda: Journal(HEADER, where),
        lambda: report.read(where),
        lambda: eq.estimate(lambda arm: 1.0, 100_000, arms=["a", "b"], store=where),
    ]
    for look in looks:
        with pytest.raises(eq.EquipoiseError, match=sentence):
            look()


def test_a_gap_on_a_later_page(where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log, "_PAGE", 10)
    kept(where)
    with Store(where) as store:
        assert [line.event for line in store.events(after=4)] == list(range(5, 40))
    by_hand(where, "delete from equipoise_log where study = ? and event = 20")
    with Store(where) as store, pytest.raises(eq.EquipoiseError, match="event 20 is missing"):
        list(store.events(after=14))


FORGET = "delete from equipoise_length where study = ?"


def test_a_count_that_is_missing_is_noticed(where: str) -> None:
    kept(where)
    by_hand(where, FORGET)
    with pytest.raises(eq.EquipoiseError, match="is damaged: the number of its events is missing; restore"):
        Store(where)


def of_format_1(where: str) -> None:
    kept(where)
    by_hand(where, FORGET, "update equipoise_study set format = 1 where study = ?")
    if "://" not in where:
        connection = sqlite3.connect(where)
        connection.execute("drop table equipoise_length")
        connection.close()


def test_a_store_of_format_1(where: str) -> None:
    """Events were not counted. It is read as it is, and who writes to it makes it one of today."""
    of_format_1(where)
    with Store(where) as store:
        assert replay(store).result().samples == 20
        assert store._format == 1
    kept(where, 5)
    with Store(where) as store:
        assert replay(store).result().samples == 25
        assert store._format == FORMAT
    by_hand(where, "delete from equipoise_log where study = ? and event = 49")
    with pytest.raises(eq.EquipoiseError, match="it had 50 events, and 49 are left"):
        Store(where)


def test_a_refused_call_leaves_a_store_of_format_1_as_it_was(where: str) -> None:
    of_format_1(where)
    before = None if "://" in where else Path(where).read_bytes()
    with pytest.raises(ValueError, match=r"arms must be .* to continue the study in the store"):
        eq.estimate(lambda arm: 1.0, 100_000, arms=["x", "y"], store=where)
    Journal(HEADER, where).close()  # nor does one that is let in, and writes nothing
    with Store(where) as store:
        assert store._format == 1
        assert replay(store).result().samples == 20
    if before is not None:
        assert Path(where).read_bytes() == before


def test_files_that_are_no_store(tmp_path: Path) -> None:
    text = tmp_path / "text.db"
    text.write_text("This is a letter, and long enough to have a header of its own. " * 20)
    before = text.read_bytes()
    for write in (False, True):
        with pytest.raises(ValueError, match=r"text\.db is not an equipoise store: file is not a database$"):
            Store(text, write=write)
    assert text.read_bytes() == before

    other = tmp_path / "other.db"
    connection = sqlite3.connect(other)
    connection.execute("create table letters (text)")
    connection.commit()
    connection.close()
    before = other.read_bytes()
    for write in (False, True):
        with pytest.raises(
            ValueError, match=r"other\.db is not an equipoise store: it is a database with other tables"
        ):
            Store(other, write=write)
    assert other.read_bytes() == before

    with pytest.raises(ValueError, match=r"there is no store .*nothing\.db$"):
        Store(tmp_path / "nothing.db")
    with pytest.raises(ValueError, match="store must be a file, got the folder"):
        Store(tmp_path, write=True)
    with pytest.raises(ValueError, match=r"cannot create .*: there is no folder"):
        Store(tmp_path / "nowhere" / "study.db", write=True)
    (tmp_path / "empty.db").touch()
    with pytest.raises(ValueError, match=r"there is no study in .*empty\.db$"):
        Store(tmp_path / "empty.db")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["empty.db", "other.db", "text.db"]


def test_places_that_are_none() -> None:
    with pytest.raises(
        ValueError, match=r"^store must be a file that outlives the process, such as 'study\.db', got ':memory:'$"
    ):
        Store(":memory:", write=True)
    with pytest.raises(
        ValueError, match=r"store must be a path such as 'study\.db' or a postgresql:// URL, got 'mysql://host/db'"
    ):
        Store("mysql://host/db", write=True)


def test_no_server(tmp_path: Path) -> None:
    with pytest.raises(eq.EquipoiseError, match=r"^cannot use postgresql://u:\*\*\*@/db"):
        Store(f"postgresql://u:secret@/db?host={tmp_path}", write=True)


def test_sqlite_needs_nothing_but_python(tmp_path: Path) -> None:
    """Without the libraries that PostgreSQL wants, a file is a store, and a URL is refused in one sentence."""
    script = (
        "import sys\n"
        "sys.modules['sqlalchemy'] = sys.modules['psycopg'] = None\n"
        "import equipoise as eq\n"
        "print(eq.estimate(lambda arm: 1.0, 20, arms=['a', 'b'], store=sys.argv[1]).samples)\n"
        "try:\n    eq.estimate(lambda arm: 1.0, 20, arms=['a', 'b'], store='postgresql://u@h/d')\n"
        "except ModuleNotFoundError as error:\n    print(error)\n"
    )
    found = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path / "study.db")], capture_output=True, text=True, check=True
    )
    assert found.stdout == (
        f"20\na store in PostgreSQL needs psycopg, which is not installed; {install_hint('serve')}\n"
    )


def test_a_url_that_is_none() -> None:
    with pytest.raises(
        ValueError,
        match=r"^store must be a URL such as postgresql://user@host/database; the one given cannot be parsed$",
    ):
        Store("postgresql://user:secret@host:port/database")


# ---- a connection that is lost


def cut(store: Store, where: str) -> None:
    """The server ends the connection of a store."""
    ((process,),) = store._database.execute("select pg_backend_pid()")
    with Store(where) as other:
        other._database.execute("select pg_terminate_backend(?)", (process,))


def cut_after_commit(store: Store, where: str) -> None:
    """The server commits once more and then ends the connection, before it can say so."""
    database: Any = store._database
    real = database.commit

    def interrupted() -> None:
        database.commit = real
        real()
        cut(store, where)
        real()

    database.commit = interrupted


def one_more(journal: Journal, value: float) -> None:
    ids = journal.ask(2)
    journal.tell(ids[:1], np.array([value]), np.zeros(1))


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


def written(where: str, patience: Patience = log.PATIENCE) -> tuple[Journal, Store]:
    """A store with a sample, and one more that waits to be committed."""
    journal = Journal(HEADER, where, patience)
    assert journal.store is not None
    one_more(journal, 1.0)
    journal.commit()
    one_more(journal, 2.0)
    return journal, journal.store


def values(where: str) -> list[float | None]:
    with Store(where) as reader:
        return [line.value for line in reader.events() if line.kind == "tell"]


@pytest.mark.parametrize("moment", ["begin", "insert", "commit", "after the commit"])
def test_a_connection_is_lost_in_a_commit(postgres: str, moment: str) -> None:
    """Before the server has committed or after: all is there, once, and the store is still this process's alone."""
    where = f"{postgres}#lost in {moment}"
    journal, store = written(where)
    database: Any = store._database
    name = moment.split()[-1]
    real = getattr(database, name)

    def interrupted(*given: Any) -> None:
        setattr(database, name, real)  # this once
        if moment == "after the commit":
            real()
            assert values(where) == [1.0, 2.0]
        cut(store, where)
        real(*given)

    setattr(database, name, interrupted)
    journal.commit()
    assert values(where) == [1.0, 2.0]
    one_more(journal, 3.0)
    journal.commit()
    assert values(where) == [1.0, 2.0, 3.0]
    with pytest.raises(eq.EquipoiseError, match="is already open for writing in another process"):
        Store(where, write=True)
    with Store(where) as reader:
        assert differences(replay(reader), journal.study) == []
    journal.close()


def test_what_was_kept_of_a_commit_that_was_given_up_is_not_written_twice(postgres: str) -> None:
    where = f"{postgres}#given up"
    journal, store = written(where, Patience(0.0))
    cut_after_commit(store, where)
    with pytest.raises(eq.EquipoiseError, match=r"^cannot use .*; what was committed is saved$"):
        journal.commit()
    one_more(journal, 3.0)
    journal.commit()
    assert values(where) == [1.0, 2.0, 3.0]
    journal.close()


def test_a_connection_is_lost_after_a_store_became_one_of_today(postgres: str) -> None:
    """The server has committed that, and nobody heard of it."""
    where = f"{postgres}#format 1"
    of_format_1(where)
    journal = Journal(HEADER, where)
    assert journal.store is not None
    cut_after_commit(journal.store, where)
    for value in (1.0, 2.0):
        one_more(journal, value)
        journal.commit()
    journal.close()
    assert values(where)[20:] == [1.0, 2.0]
    with Store(where) as store:
        assert store._format == FORMAT


def test_a_lost_store_that_somebody_else_has(postgres: str) -> None:
    """As long as another process writes, and for good once it has."""
    where = f"{postgres}#somebody else"
    journal, store = written(where)
    cut(store, where)
    other = Journal(HEADER, where)
    with pytest.raises(eq.EquipoiseError, match="is already open for writing in another process; only one can write"):
        journal.commit()
    one_more(other, 5.0)
    other.commit()
    other.close()
    for _ in range(2):
        with pytest.raises(
            eq.EquipoiseError,
            match=r"^the connection to postgresql://\S+ was lost, and another process changed the log meanwhile: "
            r"it had 3 events and has 6; what was committed is saved$",
        ):
            journal.commit()
    journal.close()
    assert values(where) == [1.0, 5.0]


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

    def clock() -> float:
        return 1000.0 if store._cut else 0.0  # a thousand seconds until it is noticed

    journal, store = written(where, Patience(60.0, clock, pauses.append))
    line.silence()
    journal.commit()
    assert len(pauses) >= 1
    assert values(where) == [1.0, 2.0]
    journal.close()


def test_a_second_loss_before_the_first_connection_is_ended(line: Line) -> None:
    """The server has noticed neither; the first has the lock, and is not forgotten."""
    where = f"{line.url}#twice"
    journal, _ = written(where)
    line.last_words = b"pg_terminate_backend"
    line.cut()
    journal.commit()
    assert not line.last_words
    assert values(where) == [1.0, 2.0]
    journal.close()


def committed(journal: Journal) -> bool:
    """Whether a commit that may have to wait for the server succeeds."""
    try:
        journal.commit()
    except Lost:
        return False
    return True


def test_a_lost_connection_that_does_not_end(line: Line) -> None:
    """It has the lock as long as its process at the server is held up: no other writer, and worth another try."""
    where = f"{line.url}#held up"
    journal, store = written(where, Pauses().patience(0.1))
    ((process,),) = store._database.execute("select pg_backend_pid()")
    line.cut()
    os.kill(process, signal.SIGSTOP)
    try:
        with pytest.raises(
            Lost,
            match=r"^cannot use .*: a lost connection still holds the lock of the study 'held up'; what was",
        ):
            journal.commit()
    finally:
        os.kill(process, signal.SIGCONT)
    until(lambda: committed(journal), "the server has ended the lost connection")
    assert values(where) == [1.0, 2.0]
    journal.close()


@pytest.fixture
def door(postgres: str) -> Iterator[tuple[str, Callable[[bool], None]]]:
    """A database of its own, and a function that lets nobody in, or all again."""
    import sqlalchemy

    url = sqlalchemy.make_url(postgres.replace("postgresql:", "postgresql+psycopg:"))
    engine = sqlalchemy.create_engine(url, isolation_level="AUTOCOMMIT", poolclass=sqlalchemy.NullPool)
    with engine.connect() as connection:
        connection.exec_driver_sql("create database house")

        def let_in(anybody: bool) -> None:
            connection.exec_driver_sql(f"alter database house allow_connections {anybody}")
            if not anybody:
                connection.exec_driver_sql(
                    "select pg_terminate_backend(pid) from pg_stat_activity where datname = 'house'"
                )

        yield url.set(database="house").render_as_string(False).replace("+psycopg", ""), let_in
        let_in(False)
        connection.exec_driver_sql("drop database house")


def test_a_server_that_is_away_for_a_while(door: tuple[str, Callable[[bool], None]]) -> None:
    """It is tried again less and less often, and is back in the fourth pause."""
    where, let_in = door
    pauses = Pauses(lambda nth: let_in(True) if nth == 4 else None)
    journal, _ = written(where, pauses.patience())
    let_in(False)
    journal.commit()
    assert pauses.taken == [0.05, 0.1, 0.2, 0.4]
    assert values(where) == [1.0, 2.0]
    journal.close()


def test_a_server_that_does_not_come_back(door: tuple[str, Callable[[bool], None]]) -> None:
    """One sentence after the time is up, and at once from then on; nothing is lost, should it come back after all."""
    where, let_in = door
    pauses = Pauses()
    journal, _ = written(where, pauses.patience(1.0))
    let_in(False)
    for _ in range(2):
        with pytest.raises(
            eq.EquipoiseError, match=r"^cannot use postgresql://.* is not currently accepting connections; what was"
        ):
            journal.commit()
        assert pauses.taken == [0.05, 0.1, 0.2, 0.4]  # the next one would end after 1.55 seconds
    let_in(True)
    one_more(journal, 3.0)
    journal.commit()
    assert values(where) == [1.0, 2.0, 3.0]
    journal.close()


def test_no_such_study(postgres: str) -> None:
    with pytest.raises(ValueError, match=r"there is no study called 'nobody' in "):
        Store(f"{postgres}#nobody")


def test_a_disk_that_fills(tmp_path: Path) -> None:
    """No file of this process may grow past 300 kB, for a while: one sentence, and what was committed is there."""
    where = tmp_path / "study.db"
    journal = Journal(HEADER, where)
    told = 0
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, before[1]))
    try:
        for _ in range(1000):
            ids = journal.ask(100)
            journal.tell(ids, np.arange(100.0), np.zeros(100))
            journal.commit()
            told += 100
    except eq.EquipoiseError as error:
        said = str(error)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert re.fullmatch(
        r"cannot write to .*study\.db: .*; what was committed is saved, free some space to continue", said
    )
    assert told > 500
    with Store(where) as store:
        assert replay(store).result().samples == told
    # There is room again: even what could not be committed is not lost, as the journal still has it.
    journal.commit()
    journal.close()
    journal = Journal(HEADER, where)
    assert journal.study.result().samples == told + 100
    journal.close()


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Ctrl-C as in a terminal; what is started in the background of a shell ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
def test_a_commit_is_not_interrupted(tmp_path: Path) -> None:
    """Ctrl-C while it commits comes after it, whole; a second one does not wait."""
    journal = Journal(HEADER, tmp_path / "study.db")
    assert journal.store is not None
    database = journal.store._database
    insert = database.insert

    def interrupted(sql: str, rows: Any) -> None:
        signal.raise_signal(signal.SIGINT)
        insert(sql, rows)

    database.insert = interrupted  # type: ignore[method-assign]
    journal.ask(3)
    with pytest.raises(KeyboardInterrupt):
        journal.commit()
    database.insert = insert  # type: ignore[method-assign]
    journal.commit()
    with Store(tmp_path / "study.db") as store:
        assert replay(store).in_flight == 3

    def twice(sql: str, rows: Any) -> None:
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)

    database.insert = twice  # type: ignore[method-assign]
    journal.ask(3)
    with pytest.raises(KeyboardInterrupt):
        journal.commit()
    database.insert = insert  # type: ignore[method-assign]
    with Store(tmp_path / "study.db") as store:
        assert replay(store).in_flight == 3
    journal.commit()
    with Store(tmp_path / "study.db") as store:
        assert replay(store).in_flight == 6
    journal.close()


def test_a_copy_of_the_file_is_a_store(tmp_path: Path) -> None:
    journal = Journal(HEADER, tmp_path / "study.db")
    journal.ask(5)
    journal.commit()
    journal.close()
    shutil.copy(tmp_path / "study.db", tmp_path / "copy.db")
    with Store(tmp_path / "copy.db") as store:
        assert replay(store).in_flight == 5


def test_a_reader_changes_nothing(tmp_path: Path) -> None:
    where = tmp_path / "study.db"
    journal = Journal(HEADER, where)
    journal.ask(5)
    journal.commit()
    journal.close()
    with Store(where) as store, pytest.raises(eq.EquipoiseError, match="readonly"):
        store._database.execute("delete from equipoise_log")


def test_what_a_killed_writer_left_is_put_right_by_a_reader(tmp_path: Path) -> None:
    """A hot journal of a killed writer is rolled back by whoever comes next, a reader as well."""
    where = tmp_path / "study.db"
    journal = Journal(HEADER, where)
    journal.ask(5)
    journal.commit()
    journal.close()
    # A writer that was killed while it wrote pages into the file itself, which a journal beside it can undo.
    script = (
        "import os, sqlite3, sys\n"
        "c = sqlite3.connect(sys.argv[1], isolation_level=None)\n"
        "c.execute('pragma journal_mode = delete')\n"
        "c.execute('pragma cache_size = 1')\n"
        "c.execute('begin immediate')\n"
        "c.executemany('insert into equipoise_log (study, event, at, kind) values (1, ?, 0, ?)',"
        " [(i, 'ask' * 50) for i in range(1000, 3000)])\n"
        "os.kill(os.getpid(), 9)\n"
    )
    subprocess.run([sys.executable, "-c", script, str(where)], check=False)
    assert (tmp_path / "study.db-journal").exists()
    with Store(where) as store:
        assert replay(store).in_flight == 5


def test_a_reader_that_cannot_reach_the_server_is_told_of_no_commit() -> None:
    pytest.importorskip("psycopg")
    with pytest.raises(eq.EquipoiseError, match=r"^cannot use postgresql://nobody@127\.0\.0\.1:1/none: ") as refused:
        Store("postgresql://nobody@127.0.0.1:1/none")
    assert "committed" not in str(refused.value)
