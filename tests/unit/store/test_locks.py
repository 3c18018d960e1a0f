"""Locks that fail, with every error that there is: one sentence each, after a few tries, and nothing is lost."""

from __future__ import annotations

import errno
import os
import re
import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import equipoise as eq
from equipoise import report
from equipoise.store import Log, replay, sqlite
from equipoise.store.gate import _SECOND, _byte, _lock
from tests.refusing import OF_DESCRIPTION, OF_PROCESS, possible, refuse_locks, where_locks_fail
from tests.unit.store.living import header
from tests.waiting import HANG

# A call that was interrupted is made again, by Python and by SQLite, as often as that happens.
ERRORS = sorted(set(errno.errorcode) - {errno.EINTR})
# One of each kind: said of a lock that is taken, of one that others wait for, of one that cannot be, of a full table.
SOME = [errno.EAGAIN, errno.EDEADLK, errno.EINVAL, errno.EIO, errno.ENOLCK, errno.EOPNOTSUPP, errno.EPERM]


@pytest.fixture
def where(tmp_path: Path) -> Path:
    return tmp_path / "study.db"


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """SQLite gives up at once."""
    monkeypatch.setattr(sqlite, "_PATIENCE", 0.0)
    monkeypatch.setattr(sqlite, "_READERS_PATIENCE", 0.0)
    monkeypatch.setattr(sqlite.SQLite._connect, "__defaults__", (None, 0.0))


def refusal(do: Callable[[], Any]) -> str:
    """Return the sentence that something is refused with."""
    with pytest.raises(eq.EquipoiseError) as caught:
        do()
    assert "\n" not in str(caught.value)
    assert "free some space" not in str(caught.value)
    return str(caught.value)


def ask(log: Log) -> int:
    return log.turn(lambda turn: len(turn.ask(1)))


def fail_all(where: Path, errors: list[int]) -> None:
    """Open a store, and take a turn of one that is open, where locks fail; then go on where they do not."""
    asked = 0
    for error in errors:
        with Log(where, header()) as log:
            asked += ask(log)
            assert re.fullmatch(of_the_gate(error), where_locks_fail(lambda: refusal(lambda: ask(log)), error))
            asked += ask(log)
        assert re.fullmatch(of_the_gate(error), where_locks_fail(lambda: refusal(lambda: Log(where)), error))
        assert replay(where).study.in_flight == asked
    Log(where).close()  # removes what those left who could not lock it
    assert [path.name for path in where.parent.iterdir()] == [where.name]


def of_the_gate(error: int) -> str:
    return rf"cannot lock .*study\.db: {re.escape(os.strerror(error))}; a SQLite store needs a file system .*"


@possible
def test_some_errors(where: Path) -> None:
    fail_all(where, SOME)


@possible
@pytest.mark.slow
def test_every_error(where: Path) -> None:
    fail_all(where, ERRORS)


@possible
@pytest.mark.parametrize("errors", [SOME, pytest.param(ERRORS, marks=pytest.mark.slow)], ids=["some", "every"])
def test_errors_of_sqlite_alone(where: Path, hasty: None, errors: list[int]) -> None:
    """Of the database's own locks."""
    Log(where, header()).close()
    for error in errors:
        said = where_locks_fail(lambda: refusal(lambda: Log(where)), error, OF_PROCESS)
        assert re.fullmatch(r"cannot (lock|use) .*study\.db: .*", said), said
    eq.open(where).close()


@possible
@pytest.mark.slow
def test_errors_of_sqlite_alone_in_a_turn(where: Path, hasty: None) -> None:
    """Of the memory that processes share: SQLite tries for ten seconds, whatever the error."""
    with Log(where, header()) as log:
        said = where_locks_fail(lambda: refusal(lambda: ask(log)), errno.ENOLCK, OF_PROCESS)
        assert re.fullmatch(r"cannot lock .*study\.db: another program .*", said)
        ask(log)
    assert replay(where).study.in_flight == 1


@possible
@pytest.mark.parametrize("errors", [SOME, pytest.param(ERRORS, marks=pytest.mark.slow)], ids=["some", "every"])
def test_a_reader(where: Path, hasty: None, errors: list[int]) -> None:
    """It changes nothing."""
    with Log(where, header()) as log:
        ask(log)
    before = where.read_bytes()
    for error in errors:
        said = where_locks_fail(lambda: refusal(lambda: report.read(where)), error)
        assert re.fullmatch(r"cannot (lock|use) .*study\.db: .*", said), said
    assert where.read_bytes() == before
    assert report.read(where).result.samples == 0


@possible
def test_a_driver(where: Path) -> None:
    """What was committed is saved, and the same call goes on."""

    def sampler(arm: str, seed: int) -> float:
        return seed / 2**64

    def run(budget: int) -> eq.Result:
        return eq.estimate(sampler, budget, arms=["a", "b"], seed=1, store=where)

    run(20)
    said = where_locks_fail(lambda: refusal(lambda: run(40)), errno.ENOLCK)
    assert re.fullmatch(of_the_gate(errno.ENOLCK), said)
    assert replay(where).study.result().samples == 20
    assert dict(run(40).means) == dict(eq.estimate(sampler, 40, arms=["a", "b"], seed=1).means)


@possible
@pytest.mark.parametrize("error", sorted({*SOME} - {errno.EINVAL}))
def test_a_lock_that_cannot_be_given_back(where: Path, error: int) -> None:
    """Its file is closed, which ends it, and others pass; what showed that an owner is alive is taken again."""
    with Log(where, header()) as log, Log(where) as other:
        log.hold(7)

        def turn() -> None:
            log._database.begin()
            refuse_locks(error, OF_DESCRIPTION)
            log._database.rollback()

        with ThreadPoolExecutor(1) as pool:
            pool.submit(turn).result(HANG)
        assert in_another_process(where) == [False, False]
        ask(other)
        assert in_another_process(where) == [False, True]


def in_another_process(where: Path) -> list[bool]:
    """Whether another process would wait before the gate, and whether it sees that owner 7 is alive."""
    reader, writer = os.pipe()
    if (asking := os.fork()) == 0:
        file = os.open(f"{where}.gate", os.O_RDWR)
        os.write(writer, bytes(not _lock(file, at, wait=False) for at in (_SECOND, _byte(7))))
        os._exit(0)
    os.waitpid(asking, 0)
    found = [bool(byte) for byte in os.read(reader, 2)]
    os.close(reader)
    os.close(writer)
    return found


# ---- what is locked, or lies elsewhere


def test_another_program_keeps_it_locked(where: Path, hasty: None) -> None:
    Log(where, header()).close()
    other = sqlite3.connect(where, isolation_level=None)
    other.execute("pragma locking_mode = exclusive")
    other.execute("begin exclusive")
    locked = r"cannot lock .*study\.db: another program keeps it locked, or its file system has no locks that work"
    assert re.fullmatch(locked, refusal(lambda: Log(where)))
    assert re.fullmatch(locked, refusal(lambda: report.read(where)))
    other.close()
    eq.open(where).close()


def test_a_hard_link(where: Path) -> None:
    """SQLite keeps what was committed last under one of the names: under the other, it would begin another log."""
    with Log(where, header()) as log:
        ask(log)
        os.link(where, where.parent / "other.db")
        for given in (header(), None):
            said = refusal(partial(Log, where.parent / "other.db", given))
            assert re.fullmatch(
                r".*other\.db has 2 names \(hard links\), and .*: remove the others, or make a copy", said
            )
        ask(log)
    assert "study.db has 2 names" in refusal(lambda: Log(where))
    (where.parent / "other.db").unlink()
    assert replay(where).study.in_flight == 2
    Log(where).close()


def test_a_store_that_is_renamed_while_it_is_open(where: Path) -> None:
    with Log(where, header()) as log:
        ask(log)
        where.rename(where.parent / "new.db")
        said = refusal(lambda: Log(where.parent / "new.db"))
        assert re.fullmatch(r"cannot use .*new\.db: .*: a file of this store was removed, renamed, .*", said)
