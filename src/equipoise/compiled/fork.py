"""
A fork of this process that works beside it and leaves its results in files.

It is there to compile: two processes fill the cache of compiled code in little more than half the time
of one. Nothing depends on it. Whatever a fork has not filed, this process compiles itself.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import select
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NamedTuple, NoReturn

# Seconds after which a fork is not waited for; one that compiles takes a few.
PATIENCE = 30.0


class _Fork(NamedTuple):
    """A fork: its process and that of its parent, and a pipe that is at its end when the fork is."""

    process: int
    parent: int
    pipe: int


_forks: list[_Fork] = []


def possible() -> bool:
    """
    Return whether a fork is safe and of use.

    It is safe on Linux, where this process has no other thread of Python's: a fork has no thread that would release
    what another one holds. It is of use with two cores or more.
    """
    return sys.platform == "linux" and threading.active_count() == 1 and len(os.sched_getaffinity(0)) > 1


def begin(work: Callable[[], object]) -> None:
    """Do some work in a fork, which prints nothing; what becomes of it is known from its files alone."""
    with _uninterrupted(), warnings.catch_warnings():
        # Python and others warn that threads and forks do not mix: of those of libraries, which rest.
        warnings.simplefilter("ignore")
        pipe, other_end = os.pipe()
        process = os.fork()
        if process == 0:
            _work(work)
        os.close(other_end)
        if not _forks:
            atexit.register(_abandon)
        _forks.append(_Fork(process, os.getpid(), pipe))


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """Let Ctrl-C wait, lest there be a fork that this process knows nothing of."""
    handler = signal.getsignal(signal.SIGINT)
    if not callable(handler) or threading.current_thread() is not threading.main_thread():
        yield  # it interrupts nothing here
        return
    came: list[tuple[int, FrameType | None]] = []
    signal.signal(signal.SIGINT, lambda *signalled: came.append(signalled))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
        for signalled in came[:1]:
            handler(*signalled)


def _work(work: Callable[[], object]) -> NoReturn:
    """Do some work and end this process, without what Python and the program do at an end."""
    try:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        sys.stdout = sys.stderr = open(os.devnull, "w")  # noqa: SIM115
        for stream in range(3):
            os.dup2(sys.stdout.fileno(), stream)
        work()
    finally:
        os._exit(0)


def finish() -> None:
    """Wait until the forks of this process have ended, if there are any; of several threads one waits."""
    _end_all(PATIENCE)


def _abandon() -> None:
    """End forks that nobody waited for."""
    _end_all(0.0)


def _end_all(patience: float) -> None:
    with contextlib.suppress(IndexError):  # there is none, or another thread was quicker
        while True:
            _end(_forks.pop(), patience)


def _end(each: _Fork, patience: float) -> None:
    """Wait for a fork, and end it by force when patience is at its end; not for one of a parent of this process."""
    try:
        if each.parent == os.getpid():
            end, ended = select.poll(), False
            end.register(each.pipe, select.POLLHUP)
            try:
                ended = bool(end.poll(1000 * patience))
            finally:  # Ctrl-C ends it too
                if not ended:
                    os.kill(each.process, signal.SIGKILL)
                os.waitpid(each.process, 0)
    except (ChildProcessError, ProcessLookupError):
        pass  # the program asks for the ends of all its children itself
    finally:
        os.close(each.pipe)
