"""Forks: what they leave behind, when they are possible, and how they end."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from equipoise.compiled import fork

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="forks are made on Linux alone")


def test_a_fork_leaves_a_file(tmp_path: Path) -> None:
    fork.begin((tmp_path / "left").touch)
    process = fork._forks[-1].process
    fork.finish()
    assert (tmp_path / "left").exists()
    with pytest.raises(ChildProcessError):  # it is gone
        os.waitpid(process, os.WNOHANG)


def test_nothing_is_left_to_wait_for() -> None:
    fork.finish()


def test_a_fork_that_fails_is_silent(capfd: pytest.CaptureFixture[str]) -> None:
    def fail() -> None:
        print("words", flush=True)
        raise RuntimeError

    fork.begin(fail)
    fork.finish()
    assert capfd.readouterr() == ("", "")


def test_a_fork_that_hangs_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fork, "PATIENCE", 0.0)
    fork.begin(threading.Event().wait)
    process = fork._forks[-1].process
    fork.finish()
    with pytest.raises(ChildProcessError):
        os.waitpid(process, os.WNOHANG)


@pytest.fixture
def _ctrl_c() -> Iterator[None]:
    """Ctrl-C raises KeyboardInterrupt, even if it was ignored where the tests were started."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("_ctrl_c")
def test_ctrl_c_ends_a_fork_that_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    poll = select.poll

    class Poll:
        def __init__(self) -> None:
            self.register = poll().register

        def poll(self, patience: float) -> None:
            os.kill(os.getpid(), signal.SIGINT)

    fork.begin(threading.Event().wait)
    process = fork._forks[-1].process
    monkeypatch.setattr(select, "poll", Poll)
    with pytest.raises(KeyboardInterrupt):
        fork.finish()
    with pytest.raises(ChildProcessError):
        os.waitpid(process, os.WNOHANG)


@pytest.mark.usefixtures("_ctrl_c")
def test_ctrl_c_while_a_fork_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is raised when the fork is known."""
    real = os.fork

    def interrupted() -> int:
        process = real()
        if process:
            os.kill(os.getpid(), signal.SIGINT)
        return process

    monkeypatch.setattr(os, "fork", interrupted)
    with pytest.raises(KeyboardInterrupt):
        fork.begin(threading.Event().wait)
    process = fork._forks[-1].process
    fork._abandon()
    with pytest.raises(ChildProcessError):
        os.waitpid(process, os.WNOHANG)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_fork_waits_for_no_fork_of_its_parent(tmp_path: Path) -> None:
    fork.begin(threading.Event().wait)

    def work() -> None:
        fork.finish()
        (tmp_path / "left").touch()

    fork.begin(work)
    second = fork._forks.pop()
    fork._abandon()
    fork._forks.append(second)
    fork.finish()
    assert (tmp_path / "left").exists()


def test_a_fork_does_not_outlive_its_parent() -> None:
    """Its pipe, which the fork alone holds open, is at its end when the parent is."""
    code = """
import os, threading
from equipoise.compiled import fork
fork.begin(threading.Event().wait)
print(fork._forks[0].process)
"""
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    with pytest.raises(ProcessLookupError):
        os.kill(int(found.stdout), 0)


def test_a_fork_needs_a_single_thread_and_two_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {0, 1})
    monkeypatch.setattr(threading, "active_count", lambda: 1)
    assert fork.possible()
    monkeypatch.setattr(threading, "active_count", lambda: 2)
    assert not fork.possible()
    monkeypatch.setattr(threading, "active_count", lambda: 1)
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {0})
    assert not fork.possible()
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {0, 1})
    monkeypatch.setattr(sys, "platform", "darwin")
    assert not fork.possible()
