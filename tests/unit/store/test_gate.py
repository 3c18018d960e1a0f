"""Writers pass one at a time and in turn, and the dead hold nobody up."""

from __future__ import annotations

import errno
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import equipoise as eq
from equipoise.store import Log, replay
from equipoise.store.gate import Gate, _byte
from tests.refusing import OF_DESCRIPTION, possible, refuse_locks
from tests.unit.store.living import header
from tests.waiting import until

pytestmark = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
FORK = multiprocessing.get_context("fork")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "study.db"


@contextmanager
def child(what: Callable[..., None], *arguments: Any) -> Iterator[Any]:
    """A forked process that does something with a pipe to the test, and is killed in the end."""
    here, there = FORK.Pipe()
    process = FORK.Process(target=what, args=(there, *arguments), daemon=True)
    process.start()
    there.close()  # so that `recv` fails where the child has
    try:
        yield here, process
    finally:
        process.kill()
        process.join()


def test_one_at_a_time_in_one_process(path: Path) -> None:
    gate, order = Gate.of(path), []
    assert Gate.of(path) is gate
    inside = 0

    def pass_often(name: str) -> None:
        nonlocal inside
        user = object()
        for _ in range(50):
            gate.enter(user)
            inside += 1
            order.append((name, inside))
            inside -= 1
            gate.exit(user)

    threads = [threading.Thread(target=pass_often, args=(name,)) for name in "abc"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(order) == 150
    assert {inside for _, inside in order} == {1}
    gate.leave()
    gate.leave()
    assert not gate.path.exists()


def _pass(pipe: Any, path: Path) -> None:
    gate = Gate.of(path)
    pipe.send("waits")
    gate.enter("child")
    pipe.send("inside")
    pipe.recv()
    gate.exit("child")
    pipe.send("outside")
    pipe.recv()


def test_another_process_waits(path: Path) -> None:
    gate = Gate.of(path)
    gate.enter("test")
    with child(_pass, path) as (pipe, _):
        assert pipe.recv() == "waits"
        # A lock that a waiting process has is seen from here: so it is in the queue, and not inside.
        until(lambda: _is_locked(gate, 0), "the child waits")
        assert not pipe.poll()
        gate.exit("test")
        assert pipe.recv() == "inside"
        assert _is_locked(gate, 1)
        pipe.send("go on")
        assert pipe.recv() == "outside"
        gate.enter("test")
        gate.exit("test")
    gate.leave()


def _is_locked(gate: Gate, byte: int) -> bool:
    """Whether another process has one of the locks, asked of a process that has none."""
    import fcntl

    reader, writer = os.pipe()
    if (asking := os.fork()) == 0:
        file = os.open(gate.path, os.O_RDWR)
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, byte)
            os.write(writer, b"0")
        except OSError:
            os.write(writer, b"1")
        os._exit(0)
    os.waitpid(asking, 0)
    found = os.read(reader, 1) == b"1"
    os.close(reader)
    os.close(writer)
    return found


def test_the_dead_hold_nobody_up(path: Path) -> None:
    """Whoever is killed inside the gate, or while waiting, is out at once."""
    gate = Gate.of(path)
    with child(_pass, path) as (pipe, process):
        assert [pipe.recv(), pipe.recv()] == ["waits", "inside"]
        os.kill(process.pid, signal.SIGKILL)
        gate.enter("test")
    with child(_pass, path) as (pipe, process):
        assert pipe.recv() == "waits"
        until(lambda: _is_locked(gate, 0), "the child waits")
        os.kill(process.pid, signal.SIGKILL)
        process.join()
        gate.exit("test")
        gate.enter("test")
        gate.exit("test")
    gate.leave()


def test_a_child_does_not_inherit_a_place(path: Path) -> None:
    """A forked child neither holds the gate of its parent nor gives it back."""
    gate = Gate.of(path)
    gate.enter("test")
    if (forked := os.fork()) == 0:
        gate.exit("test")
        os._exit(0)
    os.waitpid(forked, 0)
    with child(_pass, path) as (pipe, _):
        assert pipe.recv() == "waits"
        until(lambda: _is_locked(gate, 0), "the child waits")
        assert not pipe.poll()
        gate.exit("test")
        assert pipe.recv() == "inside"
    gate.leave()


def test_the_file_is_removed_by_the_last_one(path: Path) -> None:
    gate = Gate.of(path)
    with child(_pass, path) as (pipe, _):
        assert [pipe.recv(), pipe.recv()] == ["waits", "inside"]
        gate._open()
        gate.leave()
        assert gate.path.exists()  # the child is inside
        pipe.send("go on")
        assert pipe.recv() == "outside"
    gate = Gate.of(path)
    gate.enter("test")
    gate.exit("test")
    gate.leave()
    assert not gate.path.exists()


def test_a_file_that_was_removed_is_made_again(path: Path) -> None:
    """A lock on a file that is no longer there would exclude nobody."""
    gate = Gate.of(path)
    gate.enter("test")
    gate.exit("test")
    gate.path.unlink()
    gate.enter("test")
    assert gate.path.exists()
    with child(_pass, path) as (pipe, _):
        assert pipe.recv() == "waits"
        until(lambda: _is_locked(gate, 0), "the child waits")
        gate.exit("test")
        assert pipe.recv() == "inside"
    gate.leave()


def test_twice_in_one_thread(path: Path) -> None:
    gate = Gate.of(path)
    gate.enter("one")
    with pytest.raises(eq.EquipoiseError, match=r"a turn of .*study\.db cannot begin within another one"):
        gate.enter("two")
    gate.exit("two")  # which is not inside
    assert _is_locked(gate, 1)
    gate.exit("one")
    assert not _is_locked(gate, 1)
    gate.leave()


def test_who_is_alive(path: Path) -> None:
    """An owner of tickets is alive until it is released or its process ends, however it ends."""

    def hold(pipe: Any) -> None:
        own = Gate.of(path)
        own.hold(7)
        own.hold(8)
        pipe.send("held")
        pipe.recv()
        own.release(8)
        pipe.send("released")
        pipe.recv()

    gate = Gate.of(path)

    def alive() -> list[bool]:
        gate.enter("test")
        found = [gate.alive(owner) for owner in (7, 8, 9)]
        gate.exit("test")
        return found

    with child(hold) as (pipe, process):
        assert pipe.recv() == "held"
        gate.hold(9)
        assert alive() == [True, True, True]
        pipe.send("go on")
        assert pipe.recv() == "released"
        assert alive() == [True, False, True]
        os.kill(process.pid, signal.SIGKILL)
        process.join()
        assert alive() == [False, False, True]
    gate.release(9)
    assert alive() == [False, False, False]
    gate.leave()


def _cross(pipe: Any, own: Path, other: Path, kind: str) -> None:
    """Be inside one gate, and let another thread wait before the other."""
    if kind == "of processes":
        refuse_locks(errno.EINVAL, OF_DESCRIPTION)
    inside, outside = Gate.of(own), Gate.of(other)
    inside.enter("first")
    pipe.send("inside")
    pipe.recv()

    def wait() -> None:
        outside.enter("second")
        outside.exit("second")

    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(wait)
        waiting.add_done_callback(lambda waited: pipe.send(repr(waited.exception())))
        pipe.recv()
        inside.exit("first")
    pipe.recv()


@pytest.mark.parametrize("kind", ["of descriptions", pytest.param("of processes", marks=possible)])
def test_two_gates_in_two_threads_of_two_processes(tmp_path: Path, kind: str) -> None:
    """Processes that have a lock each and wait for the other's are a deadlock to the system; other threads go on."""
    one, two = tmp_path / "one.db", tmp_path / "two.db"
    gates = [Gate.of(one), Gate.of(two)]
    with child(_cross, one, two, kind) as (a, _), child(_cross, two, one, kind) as (b, _):
        assert [a.recv(), b.recv()] == ["inside", "inside"]
        for pipe in (a, b):
            pipe.send("wait")
        until(lambda: all(_is_locked(gate, 0) for gate in gates) or a.poll() or b.poll(), "both wait")
        for pipe in (a, b):
            pipe.send("go on")
        assert [a.recv(), b.recv()] == ["None", "None"]
    for gate in gates:
        gate.leave()


@possible
def test_either_kind_of_lock_excludes_the_other(path: Path) -> None:
    """Where the system has locks of descriptions and the file system of another process does not."""
    gate = Gate.of(path)
    gate.enter("test")

    def old(pipe: Any) -> None:
        refuse_locks(errno.EINVAL, OF_DESCRIPTION)
        _pass(pipe, path)

    with child(old) as (pipe, process):
        assert pipe.recv() == "waits"
        until(lambda: _is_locked(gate, 0), "the child waits")
        assert not pipe.poll()
        gate.exit("test")
        assert pipe.recv() == "inside"
        assert _is_locked(gate, 1)
        os.kill(process.pid, signal.SIGKILL)
        gate.enter("test")
        gate.exit("test")
    gate.leave()


def test_a_copy_of_its_file_ends_no_lock(path: Path) -> None:
    """Locks of a process end when anybody in it closes the file, as who copies the folder does."""
    gate = Gate.of(path)
    gate.hold(7)
    gate.enter("test")
    gate.path.read_bytes()
    assert _is_locked(gate, 1)
    assert _is_locked(gate, _byte(7))
    gate.exit("test")
    gate.release(7)
    gate.leave()


def test_a_fork_holds_nothing(path: Path) -> None:
    """A child that lives on after its parent was killed in the gate, and after others forked it in any thread."""

    def fork(pipe: Any) -> None:
        gate = Gate.of(path)
        gate.hold(7)
        gate.enter("parent")
        orphan = os.fork()
        if orphan == 0:
            gate.exit("parent")  # which is not inside here
            gate.release(7)
            pipe.send("forked")
            pipe.recv()
            os._exit(0)
        signal.pause()

    gate = Gate.of(path)
    gate.enter("test")
    gate.exit("test")
    with child(fork) as (pipe, process):
        assert pipe.recv() == "forked"
        assert _is_locked(gate, 1)
        assert _is_locked(gate, _byte(7))
        os.kill(process.pid, signal.SIGKILL)
        process.join()
        gate.enter("test")
        assert not gate.alive(7)
        gate.exit("test")
        pipe.send("end")
    gate.leave()


# ---- fairness, counted


def _write(pipe: Any, where: str, turns: int) -> None:
    with Log(where) as log:
        pipe.send("ready")
        pipe.recv()
        own = 0
        while log.turn(lambda turn: len(turn.ask(1)) if turn.replica.turns < turns else 0):
            own += 1
        pipe.send(own)
        pipe.recv()


def test_four_writers_share_the_turns(where: str) -> None:
    """Of 400 turns, each of four processes that take one after the other gets at least 60."""
    Log(where, header()).close()
    with (
        child(_write, where, 400) as (a, _),
        child(_write, where, 400) as (b, _),
        child(_write, where, 400) as (c, _),
        child(_write, where, 400) as (d, _),
    ):
        pipes = (a, b, c, d)
        assert [pipe.recv() for pipe in pipes] == ["ready"] * 4
        for pipe in pipes:
            pipe.send("go")
        own = [pipe.recv() for pipe in pipes]
    assert sum(own) == 400
    assert min(own) >= 60, own
    assert replay(where).turns == 400
