"""
What a thread is inside of: a turn of some log, and a sampler of some studies.

Turns do not nest, in whatever stores they are: two threads that each have one and want the other's would wait for ever.
Nor does a run of a study begin within one of its own samplers: it would wait for the sample that waits for it.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Iterator
from contextvars import ContextVar, copy_context
from typing import Final, TypeVar

from equipoise.base.errors import EquipoiseError

T = TypeVar("T")

# The variable by which a command that is a sampler, and whatever it starts, knows the studies that it samples for.
VARIABLE: Final = "EQUIPOISE_SAMPLED"

_sampled: ContextVar[frozenset[str]] = ContextVar("sampled", default=frozenset())


class _Thread(threading.local):
    # Whether the turn that it began last goes on: an interrupt may have left this behind.
    in_turn: Callable[[], bool] | None = None
    tries = 0


_thread = _Thread()


def check_turn(name: str) -> None:
    """Refuse a turn of a store within another one."""
    _thread.tries += 1
    if _thread.in_turn is not None and _thread.in_turn():
        raise EquipoiseError(f"a turn of {name} cannot begin within another one")


@contextlib.contextmanager
def turn(goes_on: Callable[[], bool]) -> Iterator[None]:
    """Be in a turn of a store, as long as it goes on."""
    _thread.in_turn = goes_on
    try:
        yield
    finally:
        _thread.in_turn = None


def turns_tried() -> int:
    """Return how many turns this thread has begun or was refused."""
    return _thread.tries


@contextlib.contextmanager
def sampling(study: str) -> Iterator[None]:
    """Sample for a study, by its identity; for one without a log, which nobody else can run, that is empty."""
    token = _sampled.set(_sampled.get() | {study} if study else _sampled.get())
    try:
        yield
    finally:
        _sampled.reset(token)


def run(study: str, do: Callable[[], T]) -> T:
    """Return what `do` returns, while samples are taken for a study; over with it even where it is interrupted."""

    def work() -> T:
        with sampling(study):
            return do()

    return copy_context().run(work)


def check_run(study: str, name: str) -> None:
    """Refuse to run a study within one of its own samplers."""
    if study in _sampled.get() or study in os.environ.get(VARIABLE, "").split():
        raise EquipoiseError(f"a run of {name} cannot begin within another one: a sampler of that study began it")


def environment() -> dict[str, str]:
    """Return what a command that is started now has to have in its environment."""
    studies = {*_sampled.get(), *os.environ.get(VARIABLE, "").split()}
    return {VARIABLE: " ".join(sorted(studies))} if studies else {}
